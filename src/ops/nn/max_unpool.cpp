#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/window.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_max_unpool(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (context.has_input(2)) {
    if (const auto shape = elements_or_unknown(context, 2))
      set_shape(context, 0, *shape);
    else if (x != nullptr)
      set_rank(context, 0, x->size());
    return ok();
  }
  if (x == nullptr) return ok();
  const auto kernel = context.attributes.get_ints("kernel_shape");
  const auto strides = context.attributes.get_ints("strides");
  const auto pads = context.attributes.get_ints("pads");
  if (x->size() < 3) return context.error("X must have spatial axes");
  const size_t spatial = x->size() - 2;
  if (kernel.size() != spatial || (!strides.empty() && strides.size() != spatial) ||
      (!pads.empty() && pads.size() != 2 * spatial))
    return context.error("kernel_shape, strides or pads does not fit " + std::to_string(spatial) +
                         " spatial axes");
  SymShape out = *x;
  for (size_t i = 0; i < spatial; ++i) {
    const SymDim padding = pads.empty() ? SymDim(0) : SymDim(pads[i]) + SymDim(pads[i + spatial]);
    out[i + 2] = ((*x)[i + 2] - 1) * (strides.empty() ? 1 : strides[i]) + kernel[i] - padding;
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

namespace {

Status run_max_unpool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* places, context.input(1));
  if (x->rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(*x));
  CHECK_OK(check_dims(context, "I", *places, x->dims()));
  if (!is_integer(places->dtype()))
    return context.error("I must be a tensor of integers, is " + to_string(*places));
  TRY(const Window window, read_window(context, x->dims().span().subspan(2), {}));
  Dims dims = {x->dim(0), x->dim(1)};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    if (window.input[axis] >= int64_t{1} << 31)
      return context.error("a spatial axis of length " + std::to_string(window.input[axis]) +
                           " is too long");
    dims.push_back((window.input[axis] - 1) * window.strides[axis] + window.kernel[axis] -
                   window.pads_begin[axis] - window.pads_end[axis]);
  }
  Dims given = dims;
  if (context.has_input(2)) {
    TRY(const std::vector<int64_t> shape, context.input_ints(2));
    given.assign(shape);
    if (given.size() != x->rank())
      return context.error("output_shape is " + dims_to_string(given) + ", X is " + to_string(*x));
  }
  for (int64_t dim : given)
    if (dim < 0) return context.error("the output's shape would be " + dims_to_string(given));
  if (element_count(dims) < 0)
    return context.error("the output's shape would be " + dims_to_string(dims));
  // Indices count in the shape that the attributes give, whatever output_shape adds to it.
  const bool larger = given != dims;
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(Tensor in, as<T>(context, *x));
    TRY(Tensor y, context.allocate(dtype_of<T>(), given));
    std::fill_n(y.data<T>(), y.size(), T{});
    for (int64_t i = 0; i < in.size(); ++i) {
      const int64_t place = places->get_int64(i);
      if (place < 0 || place >= element_count(dims))
        return context.error("index " + std::to_string(place) +
                             " is outside the output, which is " + dims_to_string(dims));
      int64_t at = place;
      if (larger) {
        const BoxIndex index(dims, place);
        at = 0;
        for (size_t axis = 0; axis < dims.size(); ++axis) {
          if (index[axis] >= given[axis])
            return context.error("index " + std::to_string(place) +
                                 " is outside output_shape, which is " + dims_to_string(given));
          at = at * given[axis] + index[axis];
        }
      }
      y.data<T>()[at] = in.data<T>()[i];
    }
    return give(context, 0, x->dtype(), std::move(y));
  });
}

}  // namespace

OPERATOR(MaxUnpool) = {
    .name = "MaxUnpool",
    .doc = "puts pooled values back where MaxPool found them",
    .versions = {9, 11, 22},
    .inputs =
        {
            {"X", "T1"},
            {"I", "T2"},
            {"output_shape", "T2", kOptional},
        },
    .outputs = {{"output", "T1"}},
    .attributes =
        {
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{9, kFloats}, {22, kBf16}}},
            {"T2", {{9, kI64}}},
        },
    .infer = infer_max_unpool,
    .reference = run_max_unpool,
};

}  // namespace tombolo::ops
