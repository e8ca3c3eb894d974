#pragma once

// What the random operators share: their streams, and filling a tensor from one.

#include <array>
#include <optional>

#include "ops/kernels/arguments.h"

namespace tombolo::ops {

/// The stream of a node that has a seed: the Mersenne Twister as numpy.random.RandomState(seed)
/// draws from it, so that equal seeds give what the official reference implementation gives.
class SeededStream {
 public:
  explicit SeededStream(uint32_t seed);
  double next_unit();    ///< uniform in [0, 1), 53 bits
  double next_normal();  ///< standard normal (Marsaglia's polar method, in pairs)

 private:
  uint32_t next();
  void refill();

  std::array<uint32_t, 624> state_;
  size_t at_ = 624;
  std::optional<double> second_;  ///< the other normal number of the pair
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

/// Output 0 filled by draw(stream): of the shape and type of input 0 (`like`), or of the
/// attributes shape and dtype.
template <typename Draw>
Status fill_random(KernelContext& context, bool like, Draw&& draw) {
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
    for (int64_t i = 0; i < out->size(); ++i) out->set_double(i, draw(random));
    return ok();
  });
}

}  // namespace tombolo::ops
