#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_split(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  const size_t outputs = context.outputs.size();
  if (outputs == 0) return ok();
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
  const SymDim& size = (*data)[axis];
  SymShape parts(outputs);
  const bool by_input = context.opset >= 13 || (context.opset < 2 && context.has_input(1));
  const bool given = by_input ? context.has_input(1) : context.attributes.has("split");
  if (given) {
    std::optional<SymShape> lengths;
    if (by_input) {
      if (const SymShape* known = context.ints(1)) lengths = *known;
    } else {
      SymShape list;
      for (const int64_t length : context.attributes.get_ints("split")) list.push_back(length);
      lengths = std::move(list);
    }
    if (lengths) {
      if (lengths->size() != outputs)
        return context.error("split holds " + std::to_string(lengths->size()) + " lengths for " +
                             std::to_string(outputs) + " outputs");
      SymDim total = 0;
      for (const SymDim& length : *lengths) {
        if (length.is_value() && length.value() < 0)
          return context.error("split holds a negative length");
        total = total + length;
      }
      if (total.is_value() && size.is_value() && total.value() != size.value())
        return context.error("the lengths in split add up to " + total.to_string() + ", but axis " +
                             std::to_string(axis) + " has " + size.to_string());
      parts = *lengths;
    }
  } else {
    const auto count = static_cast<int64_t>(outputs);
    if (context.opset >= 18) {
      const int64_t declared = context.attributes.get_int("num_outputs", count);
      if (declared != count)
        return context.error("num_outputs is " + std::to_string(declared) + ", but the node has " +
                             std::to_string(count) + " outputs");
      // Equal parts; the last may be smaller.
      const SymDim part = ceil_div(size, SymDim(count));
      for (size_t i = 0; i + 1 < outputs; ++i) parts[i] = part;
      parts[outputs - 1] = size - part * (count - 1);
      if (parts[outputs - 1].is_value() && parts[outputs - 1].value() < 0)
        return context.error("an axis of " + size.to_string() + " does not split into " +
                             std::to_string(count) + " parts");
    } else {
      if (size.is_value() && size.value() % count != 0)
        return context.error("an axis of " + size.to_string() + " does not split into " +
                             std::to_string(count) + " equal parts");
      for (SymDim& part : parts) part = floor_div(size, SymDim(count));
    }
  }
  const SymShape* elements = context.ints(0);
  size_t at = 0;
  for (size_t i = 0; i < outputs; ++i) {
    SymShape out = *data;
    out[axis] = parts[i];
    if (elements != nullptr && data->size() == 1 && parts[i].is_value() && parts[i].value() >= 0 &&
        at + static_cast<size_t>(parts[i].value()) <= elements->size()) {
      const auto begin = elements->begin() + static_cast<std::ptrdiff_t>(at);
      context.set_value(i, SymShape(begin, begin + parts[i].value()));
      at += static_cast<size_t>(parts[i].value());
    } else {
      elements = nullptr;
    }
    set_shape(context, i, std::move(out));
  }
  return ok();
}
}  // namespace

OPERATOR(Split) = {
    .name = "Split",
    .doc = "cuts a tensor into parts along an axis",
    .versions = {1, 2, 11, 13, 18},
    .inputs =
        {
            {"input", "T"},
            {"split", "T", kOptional, {.until = 1}},
            {"split", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs =
        {
            {"outputs...", "T", kVariadic, {.until = 1}},
            {"outputs", "T", kVariadic, {.since = 2}},
        },
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 1}},
            {"axis", 0, {.since = 2}},
            {"split", Attr::kInts, {.until = 12}},
            {"num_outputs", Attr::kInt, {.since = 18}},
        },
    .types = {{"T", {{1, kFloats}, {2, kInts | kComplex | kStr | kBool}, {13, kBf16}}}},
    .infer = infer_split,
};

}  // namespace tombolo::ops
