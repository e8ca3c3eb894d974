#include "ops/kernel_context.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tombolo {

Result<const Tensor*> KernelContext::optional_input(size_t index) const {
  if (!has_input(index)) return static_cast<const Tensor*>(nullptr);
  if (!inputs[index]->is_tensor())
    return error("input " + std::to_string(index) + " must be a tensor");
  return &inputs[index]->tensor();
}

Result<const Tensor*> KernelContext::input(size_t index) const {
  TRY(const Tensor* tensor, optional_input(index));
  if (tensor == nullptr) return error("input " + std::to_string(index) + " is missing");
  return tensor;
}

Result<std::vector<int64_t>> KernelContext::input_ints(size_t index) const {
  TRY(const Tensor* tensor, input(index));
  if (!is_integer(tensor->dtype()))
    return error("input " + std::to_string(index) + " must be a tensor of integers, is " +
                 to_string(*tensor));
  // Axes, pads, shapes: as many as a tensor has dimensions. A long list is an attack.
  if (tensor->size() > 4096)
    return error("input " + std::to_string(index) + " has " + std::to_string(tensor->size()) +
                 " elements, more than any shape has");
  std::vector<int64_t> values(static_cast<size_t>(tensor->size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = tensor->get_int64(static_cast<int64_t>(i));
  return values;
}

Result<Tensor> KernelContext::allocate(DType dtype, std::span<const int64_t> dims) const {
  const int64_t count = element_count(dims);
  if (count >= 0 && dtype != DType::kString)
    if (auto bytes = packed_bytes(dtype, static_cast<uint64_t>(count)))
      CHECK_OK(host.reserve(*bytes));
  return Tensor::allocate(dtype, dims);
}

Result<Tensor*> KernelContext::output(size_t index, DType dtype, std::span<const int64_t> dims) {
  if (index >= outputs.size()) return error("the node has no output " + std::to_string(index));
  TRY(Tensor tensor, allocate(dtype, dims));
  outputs[index] = RunValue(std::move(tensor));
  return &outputs[index].tensor();
}

Result<int64_t> normalize_axis(int64_t axis, int64_t rank, const char* what) {
  if (axis < -rank || axis >= rank)
    return runtime_error(std::string(what) + " " + std::to_string(axis) +
                         " is out of range for rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

// ---- Random streams: xoshiro256** (Blackman and Vigna, https://prng.di.unimi.it), seeded by
// SplitMix64 as its authors recommend.

RandomStream RandomStream::seeded(uint64_t seed) {
  RandomStream stream;
  for (uint64_t& word : stream.state) {
    seed += 0x9E3779B97F4A7C15u;
    uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    word = mixed ^ (mixed >> 31);
  }
  return stream;
}

uint64_t RandomStream::next() {
  const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = std::rotl(state[3], 45);
  return result;
}

double RandomStream::next_unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double RandomStream::next_normal() {
  // Box-Muller; 1 - u lies in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - next_unit()));
  return radius * std::cos(6.283185307179586476925286766559 * next_unit());
}

RandomStream KernelContext::random() const {
  if (attributes.has("seed")) {
    const float seed = attributes.get_float("seed", 0);
    return RandomStream::seeded(std::bit_cast<uint32_t>(seed));
  }
  return RandomStream::seeded(host.seed() * 0x9E3779B97F4A7C15u + node.id());
}

}  // namespace tombolo
