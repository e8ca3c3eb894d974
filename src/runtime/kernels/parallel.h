#pragma once

#include <type_traits>

#include "base/thread_pool.h"

namespace tombolo {

/// body(begin, end) over [0, count), split among threads in parts of about `grain` or more.
template <typename Body>
void parallel(int64_t count, int64_t grain, Body&& body) {
  parallel_for(
      count, grain,
      [](void* argument, int64_t begin, int64_t end) {
        (*static_cast<std::remove_reference_t<Body>*>(argument))(begin, end);
      },
      const_cast<std::remove_const_t<std::remove_reference_t<Body>>*>(&body));
}

}  // namespace tombolo
