#include <cmath>
#include <vector>

#include "ops/function_text.h"
#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status mean_variance_normalization(KernelContext& context, const Tensor& x) {
  const size_t rank = x.rank();
  const int64_t default_axes[] = {0, 2, 3};
  auto axes = context.attributes.get_ints("axes");
  if (axes.empty()) axes = default_axes;
  std::vector<uint8_t> reduced(rank);
  for (int64_t given : axes) {
    TRY(const int64_t axis, normalize_axis(given, static_cast<int64_t>(rank), "axes: the value"));
    reduced[static_cast<size_t>(axis)] = 1;
  }
  // The stride of each axis in the tensor of the kept ones.
  Dims kept, strides;
  strides.resize(static_cast<uint32_t>(rank));
  int64_t groups = 1;
  for (size_t axis = rank; axis-- > 0;)
    if (!reduced[axis]) {
      strides[axis] = groups;
      groups *= x.dim(axis);
    }
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  if (x.size() == 0) return give(context, 0, x.dtype(), std::move(y));
  const int64_t dims[] = {2, groups};
  TRY(Tensor sums, context.allocate(DType::kFloat64, dims));
  double *means = sums.data<double>(), *deviations = means + groups;
  for (int64_t i = 0; i < 2 * groups; ++i) means[i] = 0;
  auto walk = [&](auto visit) {
    Dims at;
    at.resize(static_cast<uint32_t>(rank));
    int64_t group = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      visit(i, group);
      for (size_t axis = rank; axis-- > 0;) {
        group += strides[axis];
        if (++at[axis] < x.dim(axis)) break;
        group -= strides[axis] * x.dim(axis);
        at[axis] = 0;
      }
    }
  };
  const double members = static_cast<double>(x.size() / groups);
  const T* from = in.data<T>();
  walk([&](int64_t i, int64_t group) { means[group] += static_cast<double>(from[i]); });
  for (int64_t group = 0; group < groups; ++group) means[group] /= members;
  walk([&](int64_t i, int64_t group) {
    const double d = static_cast<double>(from[i]) - means[group];
    deviations[group] += d * d;
  });
  // The function body of the specification adds 1e-9 to the standard deviation.
  for (int64_t group = 0; group < groups; ++group)
    deviations[group] = std::sqrt(deviations[group] / members) + 1e-9;
  walk([&](int64_t i, int64_t group) {
    y.data<T>()[i] =
        static_cast<T>((static_cast<double>(from[i]) - means[group]) / deviations[group]);
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_mean_variance_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x,
                    [&]<typename T>() { return mean_variance_normalization<T>(context, *x); });
}

}  // namespace

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
    .infer = infer_unary,
    .reference = run_mean_variance_normalization,
};

}  // namespace tombolo::ops
