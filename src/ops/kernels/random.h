#pragma once

// What RandomNormal, RandomUniform and their "Like" forms share.

#include "ops/kernels/arguments.h"

namespace tombolo::ops {

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
  RandomStream random = context.random();
  for (int64_t i = 0; i < out->size(); ++i) out->set_double(i, draw(random));
  return ok();
}

}  // namespace tombolo::ops
