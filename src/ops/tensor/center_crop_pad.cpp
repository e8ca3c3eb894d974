#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_center_crop_pad(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  const auto sizes = elements_or_unknown(context, 1);
  std::vector<size_t> axes(data->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  if (context.attributes.has("axes")) {
    TRY(axes, checked_axes(context, context.attributes.get_ints("axes"), data->size()));
  }
  SymShape out = *data;
  if (sizes && sizes->size() != axes.size())
    return context.error("shape holds " + std::to_string(sizes->size()) + " numbers for " +
                         std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = sizes ? (*sizes)[i] : SymDim();
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

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
    .infer = infer_center_crop_pad,
};

}  // namespace tombolo::ops
