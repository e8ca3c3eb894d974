#pragma once

#include <algorithm>
#include <string_view>

namespace tombolo::pytorch {

/// Whether a list of operators' names holds one.
template <size_t N>
bool listed(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace tombolo::pytorch
