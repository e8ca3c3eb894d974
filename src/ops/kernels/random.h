#pragma once

// What the random operators share: their streams, and filling a tensor from one.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"

namespace tombolo::ops {

/// The stream of a node that has a seed: the Mersenne Twister as numpy.random.RandomState(seed)
/// draws from it, so that equal seeds give what the official reference implementation gives.
class SeededStream {
 public:
  explicit SeededStream(uint32_t seed);
  /// Uniform in [0, 1), 53 bits.
  double next_unit() {
    if (at_ == words_.size()) refill();
    const uint64_t high = words_[at_] >> 5, low = words_[at_ + 1] >> 6;
    at_ += 2;
    return static_cast<double>(static_cast<int64_t>(high << 26 | low)) * 0x1p-53;
  }

 private:
  void refill();

  std::array<uint32_t, 624> state_, words_;  ///< words_: what is given out, tempered
  size_t at_ = 624;
};

/// Standard normal numbers by Marsaglia's polar method, in pairs, as RandomState gives them. It
/// draws ahead: the stream serves nothing else.
template <typename Stream>
class NormalStream {
 public:
  explicit NormalStream(Stream& stream) : stream_(stream) {}
  double next() {
    if (at_ == count_) refill();
    return values_[at_++];
  }

 private:
  static constexpr size_t kPairs = 128;

  /// Points of the unit disk first, then what each is scaled by: loops without a branch that
  /// depends on the numbers.
  void refill() {
    double x[kPairs + 1], y[kPairs + 1], square[kPairs + 1];
    size_t pairs = 0;
    while (pairs < kPairs) {
      x[pairs] = 2 * stream_.next_unit() - 1;
      y[pairs] = 2 * stream_.next_unit() - 1;
      const double s = x[pairs] * x[pairs] + y[pairs] * y[pairs];
      square[pairs] = s;
      pairs += static_cast<size_t>(s < 1) & static_cast<size_t>(s != 0);
    }
    double factor[kPairs];
    for (size_t i = 0; i < kPairs; ++i) factor[i] = std::log(square[i]);
    for (size_t i = 0; i < kPairs; ++i) factor[i] = std::sqrt(-2 * factor[i] / square[i]);
    for (size_t i = 0; i < kPairs; ++i) {
      values_[2 * i] = factor[i] * y[i];
      values_[2 * i + 1] = factor[i] * x[i];
    }
    at_ = 0;
    count_ = 2 * kPairs;
  }

  Stream& stream_;
  size_t at_ = 0, count_ = 0;
  std::array<double, 2 * kPairs> values_;
};

/// The node's `seed`, an integer or a float that is cut to one, where RandomState would take it.
std::optional<uint32_t> seed_of(const KernelContext& context);

/// use(stream): the stream of the node's seed, else that of the session and the node.
template <typename Use>
Status with_random(const KernelContext& context, Use&& use) {
  if (const std::optional<uint32_t> seed = seed_of(context)) {
    SeededStream random(*seed);
    return use(random);
  }
  RandomStream random = context.random();
  return use(random);
}

/// All elements of a tensor of floats from draw(), a double, in turn.
template <typename Draw>
void fill_by(Tensor& out, Draw&& draw) {
  const int64_t size = out.size();
  if (out.dtype() == DType::kFloat32) {
    float* to = out.data<float>();
    for (int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(draw());
    return;
  }
  double block[256];
  for (int64_t begin = 0; begin < size; begin += 256) {
    const int64_t count = std::min<int64_t>(256, size - begin);
    for (int64_t i = 0; i < count; ++i) block[i] = draw();
    store_doubles(block, count, out, begin);
  }
}

/// Output 0 filled by fill(tensor, stream): of the shape and type of input 0 (`like`), or of the
/// attributes shape and dtype.
template <typename Fill>
Status fill_random(KernelContext& context, bool like, Fill&& fill) {
  Dims dims;
  DType dtype = DType::kFloat32;
  if (like) {
    TRY(const Tensor* x, context.input(0));
    dims = x->dims();
    dtype = x->dtype();
  } else {
    dims.assign(context.attributes.get_ints("shape"));
  }
  TRY(dtype, dtype_attribute(context, "dtype", dtype));
  if (!is_float(dtype)) return unsupported("draws of type " + std::string(name_of(dtype)));
  TRY(Tensor * out, context.output(0, dtype, dims));
  return with_random(context, [&](auto& random) {
    fill(*out, random);
    return ok();
  });
}

}  // namespace tombolo::ops
