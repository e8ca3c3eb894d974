#include "ops/expansions.h"
#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_layer_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  // Mean and InvStdDev: 1 from `axis` on; float unless stash_type says otherwise.
  const auto stash = dtype_from_number(context.attributes.get_int("stash_type", 1));
  const SymShape* x = context.shape(0);
  SymShape out;
  if (x != nullptr) {
    TRY(const size_t axis,
        checked_axis(context, context.attributes.get_int("axis", -1), x->size()));
    out = *x;
    for (size_t i = axis; i < out.size(); ++i) out[i] = 1;
    if (const SymShape* scale = context.shape(1)) {
      const SymShape normalized(x->begin() + static_cast<std::ptrdiff_t>(axis), x->end());
      TRY(const SymShape both, broadcast(normalized, *scale));
      if (both.size() != normalized.size() && both.size() > x->size())
        return context.error("Scale of shape " + shape_to_string(*scale) +
                             " does not broadcast to the normalised axes " +
                             shape_to_string(normalized));
    }
  }
  for (size_t i = 1; i < context.outputs.size(); ++i) {
    InferType type = InferType::tensor(stash.value_or(DType::kFloat32));
    if (x != nullptr) type.shape = out;
    context.set_output(i, std::move(type));
  }
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status layer_normalization(KernelContext& context, const Tensor& x) {
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -1), static_cast<int64_t>(x.rank())));
  const auto normalized = x.dims().span().subspan(static_cast<size_t>(axis));
  Dims kept(x.dims().span().first(static_cast<size_t>(axis)));
  const int64_t rows = element_count(kept), length = element_count(normalized);
  kept.resize(static_cast<uint32_t>(x.rank()), 1);
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  const auto stash = dtype_from_number(context.attributes.get_int("stash_type", 1));
  if (!stash || !is_float(*stash))
    return context.error("stash_type is " +
                         std::to_string(context.attributes.get_int("stash_type", 1)) +
                         ", not a type of floats");
  // Scale and B either have the normalised shape, or are repeated to X's.
  Tensor factors[2];
  int64_t period[2] = {length, length};
  for (size_t i = 0; i < 2; ++i) {
    TRY(factors[i], optional_as<T>(context, i + 1));
    if (absent(factors[i])) continue;
    if (factors[i].dims() != Dims(normalized)) {
      TRY(factors[i], expanded<T>(context, i == 0 ? "Scale" : "B", factors[i], x.dims()));
      period[i] = x.size();
    }
  }
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  TRY(Tensor mean, context.allocate(dtype_of<T>(), kept));
  TRY(Tensor deviation, context.allocate(dtype_of<T>(), kept));
  context.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* from = in.data<T>() + row * length;
      const Moments moments = moments_of(from, length);
      const double inverse = moments.inverse_deviation(epsilon);
      mean.data<T>()[row] = static_cast<T>(moments.mean);
      deviation.data<T>()[row] = static_cast<T>(inverse);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * length + i;
        double value = (static_cast<double>(from[i]) - moments.mean) * inverse;
        if (!absent(factors[0])) value *= static_cast<double>(factors[0].data<T>()[at % period[0]]);
        if (!absent(factors[1])) value += static_cast<double>(factors[1].data<T>()[at % period[1]]);
        y.data<T>()[at] = static_cast<T>(value);
      }
    }
  });
  CHECK_OK(give(context, 1, *stash, std::move(mean)));
  CHECK_OK(give(context, 2, *stash, std::move(deviation)));
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_layer_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return layer_normalization<T>(context, *x); });
}

}  // namespace

/// Mean and deviation over the rows of X as a matrix, whose columns are the axes from `axis` on.
static Status body_of_layer_normalization(FunctionContext& context) {
  context.body += R"(
wide = Cast <to: int = @stash_type> (X)
flat = Flatten <axis: int = @axis> (wide)
)";
  const bool axes_input = context.opset >= 18;  // an attribute before
  if (axes_input) context.line("columns = Constant <value_ints = [1]> ()");
  const std::string mean = axes_input ? "ReduceMean (" : "ReduceMean <axes = [1]> (";
  const std::string end = axes_input ? ", columns)" : ")";
  context.line("mean = " + mean + "flat" + end);
  context.body += R"(
centred = Sub (flat, mean)
square = Mul (centred, centred)
)";
  context.line("variance = " + mean + "square" + end);
  context.body += R"(
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, wide)
raised = Add (variance, epsilon)
deviation = Sqrt (raised)
inverse = Reciprocal (deviation)
divided = Div (centred, deviation)
shape = Shape (X)
normal = Reshape <allowzero = 1> (divided, shape)
narrow = CastLike (normal, Scale)
)";
  context.line(context.has_input(2) ? "scaled = Mul (narrow, Scale)\nY = Add (scaled, B)"
                                    : "Y = Mul (narrow, Scale)");
  context.body += R"(
outer = Shape <end: int = @axis> (X)
inner = Shape <start: int = @axis> (X)
count = Shape (inner)
ones = ConstantOfShape <value = int64[1] {1}> (count)
reduced = Concat <axis = 0> (outer, ones)
Mean = Reshape <allowzero = 1> (mean, reduced)
InvStdDev = Reshape <allowzero = 1> (inverse, reduced)
)";
  return ok();
}

OPERATOR(LayerNormalization) = {
    .name = "LayerNormalization",
    .doc = "normalises the axes from `axis` on to mean 0 and variance 1, then scales",
    .versions = {17},
    .inputs =
        {
            {"X", "T"},
            {"Scale", "T"},
            {"B", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
            {"Mean", "U", kOptional},
            {"InvStdDev", "U", kOptional},
        },
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{17, kFloats | kBf16}}},
            {"U", {{17, kF32 | kBf16}}},
        },
    .functions =
        {
            {.opset = 17, .builder = body_of_layer_normalization},
            {.opset = 18, .builder = body_of_layer_normalization},
        },
    .infer = infer_layer_normalization,
    .reference = run_layer_normalization,
    .down = {{17, 0, expand_layer_normalization}},
};

}  // namespace tombolo::ops
