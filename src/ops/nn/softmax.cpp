#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// The lines along which softmax runs. Before operator set 13 all axes from `axis` on are one.
struct SoftmaxLines {
  int64_t outer, length, inner;
};

Result<SoftmaxLines> softmax_lines(const KernelContext& context, const Tensor& x) {
  const bool coerced = context.opset < 13;
  const auto rank = static_cast<int64_t>(x.rank());
  const int64_t given = context.attributes.get_int("axis", coerced ? 1 : -1);
  if (!is_float(x.dtype())) return context.error("floats are needed, not " + to_string(x));
  if (coerced && given == rank) return SoftmaxLines{x.size(), 1, 1};
  TRY(const int64_t axis, normalize_axis(given, rank));
  const auto at = static_cast<size_t>(axis);
  const int64_t outer = product(x.dims(), 0, at);
  if (coerced) return SoftmaxLines{outer, product(x.dims(), at, x.rank()), 1};
  return SoftmaxLines{outer, x.dim(at), product(x.dims(), at + 1, x.rank())};
}

/// Calls work(line, length) for each line of numbers, in double, and stores what it leaves there.
template <typename Work>
Status for_each_line(KernelContext& context, Work&& work) {
  TRY(const Tensor* x, context.input(0));
  TRY(const SoftmaxLines lines, softmax_lines(context, *x));
  TRY(Tensor * y, context.output(0, x->dtype(), x->dims()));
  if (x->size() == 0) return ok();
  // Lines that lie side by side are read and written together.
  constexpr int64_t kSide = 64;
  const int64_t sides = (lines.inner + kSide - 1) / kSide;
  const int64_t scratch[] = {std::min(lines.inner, kSide), lines.length};
  CHECK_OK(context.allocate(DType::kFloat64, scratch));  // counts what a block needs
  context.parallel_for(lines.outer * sides, std::max<int64_t>(1, (1 << 14) / lines.length),
                       [&](int64_t begin, int64_t end) {
                         std::vector<double> block(static_cast<size_t>(scratch[0] * lines.length));
                         double row[kSide];
                         for (int64_t task = begin; task < end; ++task) {
                           const int64_t column = task % sides * kSide;
                           const int64_t width = std::min(kSide, lines.inner - column);
                           const int64_t base = task / sides * lines.length * lines.inner + column;
                           if (lines.inner == 1) {
                             load_doubles(*x, base, lines.length, block.data());
                             work(block.data(), lines.length);
                             store_doubles(block.data(), lines.length, *y, base);
                             continue;
                           }
                           for (int64_t j = 0; j < lines.length; ++j) {
                             load_doubles(*x, base + j * lines.inner, width, row);
                             for (int64_t c = 0; c < width; ++c)
                               block[static_cast<size_t>(c * lines.length + j)] = row[c];
                           }
                           for (int64_t c = 0; c < width; ++c)
                             work(block.data() + c * lines.length, lines.length);
                           for (int64_t j = 0; j < lines.length; ++j) {
                             for (int64_t c = 0; c < width; ++c)
                               row[c] = block[static_cast<size_t>(c * lines.length + j)];
                             store_doubles(row, width, *y, base + j * lines.inner);
                           }
                         }
                       });
  return ok();
}

}  // namespace

namespace {
Status infer_softmax(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* x = context.shape(0);
  if (x == nullptr || x->empty()) return ok();
  const int64_t axis = context.attributes.get_int("axis", context.opset < 13 ? 1 : -1);
  // Before 13 the axis splits a 2-D view: it may also equal the rank.
  if (context.opset < 13 && axis == static_cast<int64_t>(x->size())) return ok();
  return checked_axis(context, axis, x->size()).ok()
             ? ok()
             : Status(checked_axis(context, axis, x->size()).error());
}
Status run_softmax(KernelContext& context) {
  return for_each_line(context, [](double* x, int64_t length) {
    const double greatest = *std::max_element(x, x + length);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += x[i] = std::exp(x[i] - greatest);
    for (int64_t i = 0; i < length; ++i) x[i] /= sum;
  });
}

}  // namespace

OPERATOR(Softmax) = {
    .name = "Softmax",
    .doc = "e^x divided by its sum along an axis",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.since = 13}, .opset = 13, .text = R"(
axis_0 = Constant <value_int: int = @axis> ()
shape = Constant <value_ints = [1]> ()
axes = Reshape (axis_0, shape)
place = ArgMax <axis: int = @axis> (input)
greatest = GatherElements <axis: int = @axis> (input, place)
shifted = Sub (input, greatest)
exponential = Exp (shifted)
sum = ReduceSum (exponential, axes)
output = Div (exponential, sum)
)"},
            {.versions = {.since = 13}, .opset = 18, .text = R"(
axis_0 = Constant <value_int: int = @axis> ()
shape = Constant <value_ints = [1]> ()
axes = Reshape (axis_0, shape)
greatest = ReduceMax (input, axes)
shifted = Sub (input, greatest)
exponential = Exp (shifted)
sum = ReduceSum (exponential, axes)
output = Div (exponential, sum)
)"},
        },
    .infer = infer_softmax,
    .reference = run_softmax,
    .up = {{11, 13, step_one_axis}},
    .down = {{13, 11, step_axis_last}, {11, 1, step_axis_from_front}},
};

namespace {

Status run_log_softmax(KernelContext& context) {
  return for_each_line(context, [](double* x, int64_t length) {
    const double greatest = *std::max_element(x, x + length);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += std::exp(x[i] - greatest);
    const double shift = greatest + std::log(sum);
    for (int64_t i = 0; i < length; ++i) x[i] -= shift;
  });
}

}  // namespace

OPERATOR(LogSoftmax) = {
    .name = "LogSoftmax",
    .doc = "logarithm of softmax along an axis",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .functions =
        {
            {.versions = {.since = 13}, .opset = 13, .text = R"(
axis_0 = Constant <value_int: int = @axis> ()
shape = Constant <value_ints = [1]> ()
axes = Reshape (axis_0, shape)
place = ArgMax <axis: int = @axis> (input)
greatest = GatherElements <axis: int = @axis> (input, place)
shifted = Sub (input, greatest)
exponential = Exp (shifted)
sum = ReduceSum (exponential, axes)
logarithm = Log (sum)
output = Sub (shifted, logarithm)
)"},
            {.versions = {.since = 13}, .opset = 18, .text = R"(
axis_0 = Constant <value_int: int = @axis> ()
shape = Constant <value_ints = [1]> ()
axes = Reshape (axis_0, shape)
greatest = ReduceMax (input, axes)
shifted = Sub (input, greatest)
exponential = Exp (shifted)
sum = ReduceSum (exponential, axes)
logarithm = Log (sum)
output = Sub (shifted, logarithm)
)"},
        },
    .infer = infer_softmax,
    .reference = run_log_softmax,
    .up = {{11, 13, step_one_axis}},
    .down = {{13, 11, step_axis_last}, {11, 1, step_axis_from_front}},
};

namespace {

Status run_hardmax(KernelContext& context) {
  return for_each_line(context, [](double* x, int64_t length) {
    const int64_t place = std::max_element(x, x + length) - x;  // the first of several
    for (int64_t i = 0; i < length; ++i) x[i] = i == place;
  });
}

}  // namespace

OPERATOR(Hardmax) = {
    .name = "Hardmax",
    .doc = "1 at the first maximum along an axis, else 0",
    .versions = {1, 11, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 1, {.until = 12}},
            {"axis", -1, {.since = 13}},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_softmax,
    .reference = run_hardmax,
    .up = {{11, 13, step_one_axis}},
    .down = {{13, 11, step_axis_last}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
