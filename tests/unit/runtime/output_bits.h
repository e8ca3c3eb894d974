#pragma once

#include <cstddef>
#include <vector>

#include "ir/run_value.h"

namespace tombolo {

/// The bytes of all outputs, one tensor after the other.
inline std::vector<std::byte> output_bits(const std::vector<RunValue>& outputs) {
  std::vector<std::byte> bits;
  for (const RunValue& output : outputs) {
    const auto bytes = output.tensor().bytes();
    bits.insert(bits.end(), bytes.begin(), bytes.end());
  }
  return bits;
}

}  // namespace tombolo
