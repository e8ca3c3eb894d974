#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_dict_vectorizer(InferContext& context) {
  const InferType& map = context.input(0);
  InferType type = InferType::tensor(map.element ? map.element->elem : DType::kUndefined);
  const size_t columns = std::max(context.attributes.get_strings("string_vocabulary").size(),
                                  context.attributes.get_ints("int64_vocabulary").size());
  type.shape = SymShape{SymDim(1), SymDim(static_cast<int64_t>(columns))};
  if (map.kind == Type::Kind::kSequence) type.shape.reset();
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(DictVectorizer) = {
    .name = "DictVectorizer",
    .domain = "ai.onnx.ml",
    .doc = "a vector with the values of a map in the order of a vocabulary",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"int64_vocabulary", Attr::kInts},
            {"string_vocabulary", Attr::kStrings},
        },
    .types =
        {
            {"T1",
             {{1, kMapI64Str | kMapI64F32 | kMapI64F64 | kMapStrI64 | kMapStrF32 | kMapStrF64}}},
            {"T2", {{1, kFloats32 | kI64 | kStr}}},
        },
    .infer = infer_dict_vectorizer,
};

}  // namespace tombolo::ops
