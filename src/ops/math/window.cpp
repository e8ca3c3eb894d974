#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// c0 - c1 cos(t) + c2 cos(2 t), t over one period. A symmetric window of one element is 1.
Status run_cosine_window(KernelContext& context, double c0, double c1, double c2) {
  TRY(const std::vector<int64_t> given, context.input_ints(0));
  if (given.size() != 1 || given[0] < 0)
    return context.error("size must be a scalar that is not negative");
  const auto type = dtype_from_number(context.attributes.get_int("output_datatype", 1));
  if (!type || is_string(*type) || is_complex(*type))
    return context.error("output_datatype is not a type of numbers");
  const int64_t size = given[0];
  const bool periodic = context.attributes.get_int("periodic", 1) != 0;
  const double period = static_cast<double>(periodic ? size : size - 1);
  TRY(Tensor y, context.allocate(DType::kFloat64, {{size}}));
  const int64_t last = periodic ? size : size - 1;
  for (int64_t i = 0; i <= last / 2 && i < size; ++i) {
    const double angle =
        2 * 3.14159265358979323846264338327950288 * static_cast<double>(i) / period;
    const double wave = std::cos(angle);  // that of twice the angle is 2 wave^2 - 1
    double value = period == 0 ? 1 : c0 - c1 * wave + c2 * (2 * wave * wave - 1);
    // Integers truncate: the top of a window, 1 but for the last bit, must not become 0.
    if (!is_float(*type)) value = static_cast<double>(static_cast<float>(value));
    y.data<double>()[i] = value;
    // The second half mirrors the first.
    if (last - i < size) y.data<double>()[last - i] = value;
  }
  return give(context, 0, *type, std::move(y));
}

Status run_hann_window(KernelContext& context) { return run_cosine_window(context, 0.5, 0.5, 0); }
Status run_hamming_window(KernelContext& context) {
  return run_cosine_window(context, 25.0 / 46, 21.0 / 46, 0);
}
Status run_blackman_window(KernelContext& context) {
  return run_cosine_window(context, 0.42, 0.5, 0.08);
}

}  // namespace

namespace {
Status infer_window(InferContext& context) {
  const auto dtype = dtype_from_number(context.attributes.get_int("output_datatype", 1));
  if (!dtype)
    return context.error("output_datatype is " +
                         std::to_string(context.attributes.get_int("output_datatype", 1)) +
                         ", which is no type");
  const auto size = scalar_of(context, 0);
  context.set_tensor(0, *dtype, {size ? *size : SymDim()});
  return ok();
}
}  // namespace

OPERATOR(HannWindow) = {
    .name = "HannWindow",
    .doc = "Hann window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17, .text = R"(
zero = Constant <value = double {0}> ()
one = Constant <value = double {1}> ()
periodic_i = Constant <value_int: int = @periodic> ()
periodic = Cast <to = 11> (periodic_i)
length = Cast <to = 11> (size)
short = Sub (length, one)
period = Add (short, periodic)
step = Range (zero, length, one)
part = Div (step, period)
turn = Constant <value = double {6.283185307179586}> ()
angle = Mul (turn, part)
wave = Cos (angle)
c0 = Constant <value = double {0.5}> ()
c1 = Constant <value = double {0.5}> ()
first = Mul (c1, wave)
window = Sub (c0, first)
output = Cast <to: int = @output_datatype> (window)
)"}},
    .infer = infer_window,
    .reference = run_hann_window,
};

OPERATOR(HammingWindow) = {
    .name = "HammingWindow",
    .doc = "Hamming window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17, .text = R"(
zero = Constant <value = double {0}> ()
one = Constant <value = double {1}> ()
periodic_i = Constant <value_int: int = @periodic> ()
periodic = Cast <to = 11> (periodic_i)
length = Cast <to = 11> (size)
short = Sub (length, one)
period = Add (short, periodic)
step = Range (zero, length, one)
part = Div (step, period)
turn = Constant <value = double {6.283185307179586}> ()
angle = Mul (turn, part)
wave = Cos (angle)
c0 = Constant <value = double {0.5434782608695652}> ()
c1 = Constant <value = double {0.45652173913043476}> ()
first = Mul (c1, wave)
window = Sub (c0, first)
output = Cast <to: int = @output_datatype> (window)
)"}},
    .infer = infer_window,
    .reference = run_hamming_window,
};

OPERATOR(BlackmanWindow) = {
    .name = "BlackmanWindow",
    .doc = "Blackman window of the given length",
    .versions = {17},
    .inputs = {{"size", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"output_datatype", 1},
            {"periodic", 1},
        },
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kNumbers | kBf16}}},
        },
    .functions = {{.opset = 17, .text = R"(
zero = Constant <value = double {0}> ()
one = Constant <value = double {1}> ()
periodic_i = Constant <value_int: int = @periodic> ()
periodic = Cast <to = 11> (periodic_i)
length = Cast <to = 11> (size)
short = Sub (length, one)
period = Add (short, periodic)
step = Range (zero, length, one)
part = Div (step, period)
turn = Constant <value = double {6.283185307179586}> ()
angle = Mul (turn, part)
wave = Cos (angle)
c0 = Constant <value = double {0.42}> ()
c1 = Constant <value = double {0.5}> ()
first = Mul (c1, wave)
raised = Sub (c0, first)
double_angle = Add (angle, angle)
double_wave = Cos (double_angle)
c2 = Constant <value = double {0.08}> ()
second = Mul (c2, double_wave)
window = Add (raised, second)
output = Cast <to: int = @output_datatype> (window)
)"}},
    .infer = infer_window,
    .reference = run_blackman_window,
};

}  // namespace tombolo::ops
