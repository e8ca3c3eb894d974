#include "base/dtype.h"

namespace tombolo {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 1; i < kDTypeCount; ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_user_name(std::string_view name) {
  if (auto type = dtype_from_name(name)) return type;
  for (size_t i = 1; i < kDTypeCount; ++i) {
    if (kDTypes[i].numpy == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace tombolo
