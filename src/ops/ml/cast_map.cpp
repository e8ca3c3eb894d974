#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
