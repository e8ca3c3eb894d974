#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// One element of a map in another type. Text that is no number is an error.
Status cast_element(const KernelContext& context, const Tensor& from, Tensor& to, int64_t at) {
  if (from.is_string() && !to.is_string()) {
    const std::string& text = from.strings()[0];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return context.error("\"" + text.substr(0, 40) + "\" is not a number");
    to.set_double(at, value);
  } else if (to.is_string() && !from.is_string()) {
    char text[32];
    const auto end =
        std::to_chars(text, text + sizeof text, static_cast<float>(from.get_double(0)));
    to.strings()[static_cast<size_t>(at)] = std::string(text, end.ptr);
  } else if (to.is_string()) {
    to.strings()[static_cast<size_t>(at)] = from.strings()[0];
  } else {
    to.set_double(at, from.get_double(0));
  }
  return ok();
}

Status run_cast_map(KernelContext& context) {
  if (!context.has_input(0) || context.value(0).kind() != RunValue::Kind::kMap)
    return context.error("X must be a map");
  const MapValue& map = context.value(0).map();
  if (map.keys.is_string()) return context.error("the map's keys must be integers");
  const Text to = context.attributes.get_string("cast_to", "TO_FLOAT");
  const DType dtype = to == "TO_FLOAT"    ? DType::kFloat32
                      : to == "TO_INT64"  ? DType::kInt64
                      : to == "TO_STRING" ? DType::kString
                                          : DType::kUndefined;
  if (dtype == DType::kUndefined)
    return context.error("cast_to \"" + std::string(to) + "\" is not known");
  const Text form = context.attributes.get_string("map_form", "DENSE");
  if (form != "DENSE" && form != "SPARSE")
    return context.error("map_form \"" + std::string(form) + "\" is not known");
  const bool sparse = form == "SPARSE";
  std::vector<size_t> order(map.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) { return map.keys.get_int64(static_cast<int64_t>(i)); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  const int64_t width =
      sparse ? context.attributes.get_int("max_map", 1) : static_cast<int64_t>(order.size());
  if (width < 0) return context.error("max_map is " + std::to_string(width));
  TRY(Tensor * y, context.output(0, dtype, {{1, width}}));
  fill_zero(*y);
  for (size_t i = 0; i < order.size(); ++i) {
    const RunValue value = map.value(order[i]);
    if (!value.is_tensor() || value.tensor().size() != 1)
      return context.error("the map's values must be scalars");
    const int64_t at = sparse ? key(order[i]) : static_cast<int64_t>(i);
    if (at < 0 || at >= width)
      return context.error("the map has the key " + std::to_string(at) + ", max_map is " +
                           std::to_string(width));
    CHECK_OK(cast_element(context, value.tensor(), *y, at));
  }
  return ok();
}

}  // namespace

namespace {
Status infer_cast_map(InferContext& context) {
  const Text to = context.attributes.get_string("cast_to", "TO_FLOAT");
  const DType dtype = to == "TO_FLOAT"    ? DType::kFloat32
                      : to == "TO_INT64"  ? DType::kInt64
                      : to == "TO_STRING" ? DType::kString
                                          : DType::kUndefined;
  if (dtype == DType::kUndefined)
    return context.error("cast_to is \"" + std::string(to.substr(0, 40)) +
                         "\", which is none of TO_FLOAT, TO_INT64, TO_STRING");
  const bool sparse = context.attributes.get_string("map_form", "DENSE") == "SPARSE";
  const int64_t columns = context.attributes.get_int("max_map", 1);
  context.set_tensor(0, dtype, {SymDim(1), sparse ? SymDim(columns) : SymDim()});
  return ok();
}
}  // namespace

OPERATOR(CastMap) = {
    .name = "CastMap",
    .domain = "ai.onnx.ml",
    .doc = "the values of a map as a tensor",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"cast_to", "TO_FLOAT"},
            {"map_form", "DENSE"},
            {"max_map", 1},
        },
    .types =
        {
            {"T1", {{1, kMapI64Str | kMapI64F32}}},
            {"T2", {{1, kF32 | kI64 | kStr}}},
        },
    .infer = infer_cast_map,
    .reference = run_cast_map,
};

}  // namespace tombolo::ops
