#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_zip_map(InferContext& context) {
  InferType map;
  map.kind = Type::Kind::kMap;
  const bool strings = !context.attributes.get_strings("classlabels_strings").empty();
  map.key = strings ? DType::kString : DType::kInt64;
  map.element = std::make_shared<const InferType>(InferType::tensor(DType::kFloat32, {}));
  context.set_output(0, InferType::sequence(std::move(map)));
  return ok();
}
}  // namespace

OPERATOR(ZipMap) = {
    .name = "ZipMap",
    .domain = "ai.onnx.ml",
    .doc = "a sequence of maps from class label to the scores of each row",
    .versions = {1},
    .inputs = {{"X", "tensor(float)"}},
    .outputs = {{"Z", "T"}},
    .attributes =
        {
            {"classlabels_int64s", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
        },
    .types = {{"T", {{1, kSeqMapStrF32 | kSeqMapI64F32}}}},
    .infer = infer_zip_map,
};

}  // namespace tombolo::ops
