#include "ops/function_text.h"
#include "ops/schema.h"

namespace tombolo::ops {

constexpr std::initializer_list<int64_t> kMeanVarianceNormalizationAxes = {0, 2, 3};

/// Before CastLike, the type of the small constant must be written out.
static Status body_of_mean_variance_normalization(FunctionContext& context) {
  const DType type = context.input_type(0);
  if (type == DType::kUndefined) return runtime_error("the element type of the input is not known");
  context.body += R"(
mean = ReduceMean <axes: ints = @axes> (X)
centred = Sub (X, mean)
square = Mul (centred, centred)
variance = ReduceMean <axes: ints = @axes> (square)
deviation = Sqrt (variance)
least_f = Constant <value = float {1e-9}> ()
)";
  context.line("least = Cast <to = " + std::to_string(static_cast<int>(type)) + "> (least_f)");
  context.line("divisor = Add (deviation, least)");
  context.line("Y = Div (centred, divisor)");
  return ok();
}

OPERATOR(MeanVarianceNormalization) = {
    .name = "MeanVarianceNormalization",
    .doc = "(x - mean) / standard deviation over the given axes",
    .versions = {9, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"axes", &kMeanVarianceNormalizationAxes}},
    .types = {{"T", {{9, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 12}, .opset = 9, .builder = body_of_mean_variance_normalization},
            {.versions = {.since = 13},
             .opset = 13,
             .builder = body_of_mean_variance_normalization},
            {.versions = {.since = 13}, .opset = 18, .text = R"(
axes = Constant <value_ints: ints = @axes> ()
mean = ReduceMean (X, axes)
centred = Sub (X, mean)
square = Mul (centred, centred)
variance = ReduceMean (square, axes)
deviation = Sqrt (variance)
least_f = Constant <value = float {1e-9}> ()
least = CastLike (least_f, X)
divisor = Add (deviation, least)
Y = Div (centred, divisor)
)"},
        },
};

}  // namespace tombolo::ops
