#pragma once

// A weight as in a model's file, at an odd address, of which each float is to be read once.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

class OddFile {
 public:
  explicit OddFile(const std::vector<float>& floats)
      : bytes_(floats.size() * sizeof(float) + 1), times_(floats.size()) {
    std::memcpy(bytes_.data() + 1, floats.data(), floats.size() * sizeof(float));
  }
  const std::byte* data() const { return bytes_.data() + 1; }
  /// Counts what is read, as long as the file lives.
  ReadFloats read() {
    return {[](const void* argument, int64_t begin, int64_t end) {
              auto& times = *static_cast<std::vector<int>*>(const_cast<void*>(argument));
              for (int64_t i = begin; i < end; ++i) ++times[static_cast<size_t>(i)];
            },
            &times_};
  }
  bool read_once() const {
    return std::all_of(times_.begin(), times_.end(), [](int times) { return times == 1; });
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<int> times_;
};

}  // namespace tombolo
