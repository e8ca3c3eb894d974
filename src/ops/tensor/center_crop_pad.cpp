#include "ops/function_text.h"
#include "ops/schema.h"

namespace tombolo::ops {

static Status body_of_center_crop_pad(FunctionContext& context) {
  const bool some_axes = context.attributes.has("axes");
  context.line("wanted = Cast <to = 7> (shape)");
  context.line("all_dims = Shape (input_data)");
  if (some_axes) {
    context.line("axes = Constant <value_ints: ints = @axes> ()");
    context.line("dims = Gather (all_dims, axes)");
  } else {
    context.line("dims = Identity (all_dims)");
  }
  context.body += R"(
zero = Constant <value_int = 0> ()
two = Constant <value_int = 2> ()
over = Sub (dims, wanted)
surplus = Max (over, zero)
start = Div (surplus, two)
kept = Min (dims, wanted)
end = Add (start, kept)
under = Sub (wanted, dims)
missing = Max (under, zero)
before = Div (missing, two)
after = Sub (missing, before)
pads = Concat <axis = 0> (before, after)
)";
  context.line(some_axes ? "cropped = Slice (input_data, start, end, axes)"
                         : "cropped = Slice (input_data, start, end)");
  context.line(some_axes ? "output_data = Pad (cropped, pads, , axes)"
                         : "output_data = Pad (cropped, pads)");
  return ok();
}

OPERATOR(CenterCropPad) = {
    .name = "CenterCropPad",
    .doc = "crops or pads around the centre to a given shape",
    .versions = {18},
    .inputs =
        {
            {"input_data", "T"},
            {"shape", "Tind"},
        },
    .outputs = {{"output_data", "T"}},
    .attributes = {{"axes", Attr::kInts}},
    .types =
        {
            {"T", {{18, kAll | kBf16}}},
            {"Tind", {{18, kIndices}}},
        },
    .functions = {{.opset = 18, .builder = body_of_center_crop_pad}},
};

}  // namespace tombolo::ops
