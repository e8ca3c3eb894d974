#include <cmath>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_rms_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  // Y has the type of scale (V), which may differ from that of X.
  if (const SymShape* x = context.shape(0))
    CHECK_OK(checked_axis(context, context.attributes.get_int("axis", -1), x->size()));
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status rms_normalization(KernelContext& context, const Tensor& x, const Tensor& scale_input) {
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -1), static_cast<int64_t>(x.rank())));
  const auto normalized = x.dims().span().subspan(static_cast<size_t>(axis));
  const int64_t length = element_count(normalized);
  const int64_t rows = element_count(x.dims().span().first(static_cast<size_t>(axis)));
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  TRY(Tensor scale, as<T>(context, scale_input));
  int64_t period = length;
  if (scale.dims() != Dims(normalized)) {
    TRY(scale, expanded<T>(context, "scale", scale, x.dims()));
    period = x.size();
  }
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  context.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* from = in.data<T>() + row * length;
      double squares = 0;
      for (int64_t i = 0; i < length; ++i)
        squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * length + i;
        y.data<T>()[at] = static_cast<T>(static_cast<double>(from[i]) * inverse *
                                         static_cast<double>(scale.data<T>()[at % period]));
      }
    }
  });
  return give(context, 0, scale_input.dtype(), std::move(y));
}

Status run_rms_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* scale, context.input(1));
  return with_float(context, *x,
                    [&]<typename T>() { return rms_normalization<T>(context, *x, *scale); });
}

}  // namespace

OPERATOR(RMSNormalization) = {
    .name = "RMSNormalization",
    .doc = "divides by the root mean square of the axes from `axis` on, then scales",
    .versions = {23},
    .inputs =
        {
            {"X", "T"},
            {"scale", "V"},
        },
    .outputs = {{"Y", "V"}},
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{23, kFloats | kBf16}}},
            {"V", {{23, kFloats | kBf16}}},
        },
    .functions = {{.opset = 23, .text = R"(
wide = Cast <to: int = @stash_type> (X)
flat = Flatten <axis: int = @axis> (wide)
square = Mul (flat, flat)
inner_axis = Constant <value_ints = [1]> ()
mean = ReduceMean (square, inner_axis)
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, wide)
raised = Add (mean, epsilon)
root = Sqrt (raised)
divided = Div (flat, root)
shape = Shape (X)
normal = Reshape <allowzero = 1> (divided, shape)
narrow = CastLike (normal, scale)
Y = Mul (narrow, scale)
)"}},
    .infer = infer_rms_normalization,
    .reference = run_rms_normalization,
    .down = {{23, 0, expand_rms_normalization}},
};

}  // namespace tombolo::ops
