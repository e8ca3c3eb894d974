#include <string>
#include <unordered_map>

#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_category_mapper(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto ints = context.attributes.get_ints("cats_int64s");
  const auto strings = context.attributes.get_strings("cats_strings");
  if (ints.size() != strings.size())
    return context.error("cats_int64s has " + std::to_string(ints.size()) +
                         " values, cats_strings " + std::to_string(strings.size()));
  if (x->is_string()) {
    std::unordered_map<std::string_view, int64_t> table;
    for (size_t i = 0; i < ints.size(); ++i) table[strings[i]] = ints[i];
    const int64_t fallback = context.attributes.get_int("default_int64", -1);
    TRY(Tensor * y, context.output(0, DType::kInt64, x->dims()));
    for (size_t i = 0; i < x->strings().size(); ++i) {
      const auto found = table.find(x->strings()[i]);
      y->data<int64_t>()[i] = found == table.end() ? fallback : found->second;
    }
    return ok();
  }
  if (!is_integer(x->dtype()))
    return context.error("X must hold integers or text, is " + to_string(*x));
  std::unordered_map<int64_t, Text> table;
  for (size_t i = 0; i < ints.size(); ++i) table[ints[i]] = strings[i];
  const Text fallback = context.attributes.get_string("default_string", "_Unused");
  TRY(Tensor * y, context.output(0, DType::kString, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i) {
    const auto found = table.find(x->get_int64(i));
    y->strings()[static_cast<size_t>(i)] =
        std::string(found == table.end() ? fallback : found->second);
  }
  return ok();
}

}  // namespace

namespace {
Status infer_category_mapper(InferContext& context) {
  InferType type = InferType::tensor(DType::kUndefined);
  if (context.elem(0) == DType::kString) type.elem = DType::kInt64;
  if (context.elem(0) == DType::kInt64) type.elem = DType::kString;
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(CategoryMapper) = {
    .name = "CategoryMapper",
    .domain = "ai.onnx.ml",
    .doc = "maps strings to numbers or back by a table",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"cats_int64s", Attr::kInts},
            {"cats_strings", Attr::kStrings},
            {"default_int64", -1},
            {"default_string", "_Unused"},
        },
    .types =
        {
            {"T1", {{1, kI64 | kStr}}},
            {"T2", {{1, kI64 | kStr}}},
        },
    .infer = infer_category_mapper,
    .reference = run_category_mapper,
};

}  // namespace tombolo::ops
