#pragma once

// Zero points of quantised weights, as the products of bytes see them.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "ir/tensor.h"

namespace tombolo {

/// How far each output's zero point is from the middle of the weights' type; empty where all are
/// there. `zero`: bytes of that type, one or one for each output; null stands for 0.
inline std::vector<int32_t> weight_zeros(const Tensor* zero, bool is_signed, int64_t outputs) {
  std::vector<int32_t> zeros;
  for (int64_t i = 0; i < outputs; ++i) {
    const uint8_t code =
        zero == nullptr ? uint8_t{0} : zero->data<uint8_t>()[zero->size() == 1 ? 0 : i];
    zeros.push_back(static_cast<int8_t>(is_signed ? code : code ^ 0x80));
  }
  if (std::all_of(zeros.begin(), zeros.end(), [](int32_t z) { return z == 0; })) zeros.clear();
  return zeros;
}

/// Tells packed weights of other zero points apart; empty where there are none.
inline std::string weight_zeros_key(const std::vector<int32_t>& zeros) {
  return zeros.empty() ? std::string() : "/zeros/" + Sha1::of(std::as_bytes(std::span(zeros)));
}

}  // namespace tombolo
