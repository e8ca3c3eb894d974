#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/pad.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_center_crop_pad(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  const auto sizes = elements_or_unknown(context, 1);
  std::vector<size_t> axes(data->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  if (const auto given = context.attributes.get_ints("axes"); !given.empty()) {
    TRY(axes, checked_axes(context, given, data->size()));
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
  const bool some_axes = !context.attributes.get_ints("axes").empty();
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

namespace {

Status run_center_crop_pad(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> shape, context.input_ints(1));
  const size_t rank = data->rank();
  std::vector<int64_t> axes(rank), before(rank, 0), after(rank, 0);
  for (size_t j = 0; j < rank; ++j) axes[j] = static_cast<int64_t>(j);
  if (const auto given = context.attributes.get_ints("axes"); !given.empty()) {
    TRY(axes, normalize_axes({given.begin(), given.end()}, static_cast<int64_t>(rank)));
  }
  if (shape.size() != axes.size())
    return context.error("shape " + dims_to_string(shape) + " for " + std::to_string(axes.size()) +
                         " axes");
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    if (shape[k] < 0) return context.error("shape " + dims_to_string(shape) + " is negative");
    // Both halve downwards: a crop drops the odd element at the end, padding adds it there.
    const int64_t difference = shape[k] - data->dim(axis);
    before[axis] = difference / 2;
    after[axis] = difference - before[axis];
  }
  TRY(Tensor out, pad_tensor(context, *data, before, after, PadMode::kConstant, nullptr));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

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
    .reference = run_center_crop_pad,
};

}  // namespace tombolo::ops
