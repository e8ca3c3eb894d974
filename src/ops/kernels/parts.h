#pragma once

// Loops in threads for helpers of kernels that see no context.

#include <type_traits>

#include "base/thread_pool.h"

namespace tombolo::ops {

/// body(begin, end) over [0, count), in parts of at least `grain`.
template <typename Body>
void parallel_parts(int64_t count, int64_t grain, Body&& body) {
  if (count <= grain) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  parallel_for(
      count, grain,
      [](void* argument, int64_t begin, int64_t end) {
        (*static_cast<std::remove_reference_t<Body>*>(argument))(begin, end);
      },
      &body);
}

}  // namespace tombolo::ops
