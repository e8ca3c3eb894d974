#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_pad(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  std::optional<SymShape> pads;
  if (context.opset >= 11) {
    if (const SymShape* known = context.ints(1)) pads = *known;
  } else {
    SymShape list;
    for (const int64_t pad : context.attributes.get_ints(context.opset < 2 ? "paddings" : "pads"))
      list.push_back(pad);
    pads = std::move(list);
  }
  std::vector<size_t> axes(data->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  if (context.opset >= 18 && context.has_input(3)) {
    const auto given = context.constant_ints(3);
    if (!given) {
      set_rank(context, 0, data->size());
      return ok();
    }
    TRY(axes, checked_axes(context, *given, data->size()));
  }
  SymShape out = *data;
  if (!pads) {
    for (const size_t axis : axes) out[axis] = SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  if (pads->size() != 2 * axes.size())
    return context.error("pads holds " + std::to_string(pads->size()) + " numbers, but " +
                         std::to_string(axes.size()) + " axes need " +
                         std::to_string(2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    SymDim& dim = out[axes[i]];
    dim = dim + (*pads)[i] + (*pads)[i + axes.size()];
    if (dim.is_value() && dim.value() < 0)
      return context.error("pads remove more than axis " + std::to_string(axes[i]) +
                           " of data of shape " + shape_to_string(*data) + " has");
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(Pad) = {
    .name = "Pad",
    .doc = "adds (or, with negative pads, removes) elements at the borders",
    .versions = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"pads", "tensor(int64)", kSingle, {.since = 11}},
            {"constant_value", "T", kOptional, {.since = 11}},
            {"axes", "Tind", kOptional, {.since = 18}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"mode", "constant"},
            {"paddings", required(Attr::kInts), {.until = 1}},
            {"value", 0.0f, {.until = 10}},
            {"pads", required(Attr::kInts), {.since = 2, .until = 10}},
        },
    .types =
        {
            {"T",
             {{1, kFloats},
              {11, kInts},
              {13, kComplex | kStr | kBool | kBf16},
              {21, kFp8 | kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"Tind", {{18, kIndices}}, {.since = 18}},
        },
    .infer = infer_pad,
};

}  // namespace tombolo::ops
