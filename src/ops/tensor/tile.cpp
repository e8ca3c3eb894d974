#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_tile(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  if (context.opset < 6) {  // tiles and axis: scalars
    SymShape out = *data;
    const auto tiles = scalar_of(context, 1), axis = scalar_of(context, 2);
    if (!axis || !axis->is_value()) {
      set_rank(context, 0, data->size());
      return ok();
    }
    TRY(const size_t index, checked_axis(context, axis->value(), data->size()));
    out[index] = tiles ? out[index] * *tiles : SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  const auto repeats = elements_or_unknown(context, 1);
  if (!repeats) {
    set_rank(context, 0, data->size());
    return ok();
  }
  if (repeats->size() != data->size())
    return context.error("repeats holds " + std::to_string(repeats->size()) +
                         " numbers for an input of rank " + std::to_string(data->size()));
  SymShape out;
  for (size_t i = 0; i < data->size(); ++i) out.push_back((*data)[i] * (*repeats)[i]);
  const SymShape* elements = context.ints(0);
  if (elements != nullptr && out.size() == 1 && out[0].is_value() && out[0].value() >= 0 &&
      out[0].value() <= kMaxElements && !elements->empty()) {
    SymShape tiled;
    for (size_t i = 0; i < static_cast<size_t>(out[0].value()); ++i)
      tiled.push_back((*elements)[i % elements->size()]);
    context.set_value(0, std::move(tiled));
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(Tile) = {
    .name = "Tile",
    .doc = "repeats along each axis",
    .versions = {1, 6, 13},
    .inputs =
        {
            {"input", "T"},
            {"tiles", "T", kSingle, {.until = 5}},
            {"axis", "T", kSingle, {.until = 5}},
            {"repeats", "T1", kSingle, {.since = 6}},
        },
    .outputs = {{"output", "T"}},
    .types =
        {
            {"T", {{1, kFloats}, {6, kInts | kComplex | kStr | kBool}, {13, kBf16}}},
            {"T1", {{1, kI64}}},
        },
    .infer = infer_tile,
};

}  // namespace tombolo::ops
