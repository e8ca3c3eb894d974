#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
};

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
};

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
};

}  // namespace tombolo::ops
