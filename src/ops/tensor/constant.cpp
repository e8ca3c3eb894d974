#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_constant(InferContext& context) {
  const AttributeReader& attributes = context.attributes;
  if (const Constant* constant = attributes.get_tensor("value")) {
    SymShape shape;
    for (const int64_t dim : constant->dims.span())
      shape.push_back(dim < 0 ? SymDim() : SymDim(dim));
    context.set_tensor(0, constant->dtype(), std::move(shape));
    // The engine reads the elements of a constant itself, where they are wanted.
    return ok();
  }
  const auto list = [](size_t size) { return SymShape{SymDim(static_cast<int64_t>(size))}; };
  if (attributes.has("value_int")) {
    context.set_tensor(0, DType::kInt64, {});
  } else if (attributes.has("value_float")) {
    context.set_tensor(0, DType::kFloat32, {});
  } else if (attributes.has("value_string")) {
    context.set_tensor(0, DType::kString, {});
  } else if (attributes.has("value_ints")) {
    context.set_tensor(0, DType::kInt64, list(attributes.get_ints("value_ints").size()));
  } else if (attributes.has("value_floats")) {
    context.set_tensor(0, DType::kFloat32, list(attributes.get_floats("value_floats").size()));
  } else if (attributes.has("value_strings")) {
    context.set_tensor(0, DType::kString, list(attributes.get_strings("value_strings").size()));
  } else if (const Attribute* sparse = attributes.find("sparse_value");
             sparse != nullptr && sparse->sparse_tensor() != nullptr) {
    SymShape shape;
    for (const int64_t dim : sparse->sparse_tensor()->dims.span()) shape.push_back(dim);
    context.set_tensor(0, sparse->sparse_tensor()->values.dtype(), std::move(shape));
  }
  return ok();
}
}  // namespace

OPERATOR(Constant) = {
    .name = "Constant",
    .doc = "a value stored in the node",
    .versions = {1, 9, 11, 12, 13, 19, 21, 23, 24, 25},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"value", required(Attr::kTensor), {.until = 10}},
            {"value", Attr::kTensor, {.since = 11}},
            {"sparse_value", Attr::kSparseTensor, {.since = 11}},
            {"value_float", Attr::kFloat, {.since = 12}},
            {"value_floats", Attr::kFloats, {.since = 12}},
            {"value_int", Attr::kInt, {.since = 12}},
            {"value_ints", Attr::kInts, {.since = 12}},
            {"value_string", Attr::kString, {.since = 12}},
            {"value_strings", Attr::kStrings, {.since = 12}},
        },
    .types = {{"T",
               {{1, kFloats},
                {9, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {19, kFp8},
                {21, kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
    .infer = infer_constant,
};

}  // namespace tombolo::ops
