#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_one_hot_encoder(InferContext& context) {
  const SymShape* x = context.shape(0);
  const size_t columns = std::max(context.attributes.get_ints("cats_int64s").size(),
                                  context.attributes.get_strings("cats_strings").size());
  if (x == nullptr) return ok();
  SymShape out = *x;
  out.push_back(static_cast<int64_t>(columns));
  context.set_tensor(0, DType::kFloat32, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(OneHotEncoder) = {
    .name = "OneHotEncoder",
    .domain = "ai.onnx.ml",
    .doc = "a new axis with 1 at the category of the element",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"zeros", 1},
        },
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
    .infer = infer_one_hot_encoder,
};

}  // namespace tombolo::ops
