#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
