#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/ml.h"
#include "ops/kernels/text_table.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct CategoryTable {
  TextTable by_text;
  IntTable by_number;
};

/// Of equal keys the last counts.
Result<CategoryTable> read_table(std::span<const int64_t> ints, std::span<const Text> strings) {
  CategoryTable table{TextTable(strings.size()), IntTable(ints, true)};
  for (size_t i = 0; i < strings.size(); ++i)
    table.by_text.add(strings[i], static_cast<int64_t>(i), true);
  return table;
}

Status run_category_mapper(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto ints = context.attributes.get_ints("cats_int64s");
  const auto strings = context.attributes.get_strings("cats_strings");
  if (ints.size() != strings.size())
    return context.error("cats_int64s has " + std::to_string(ints.size()) +
                         " values, cats_strings " + std::to_string(strings.size()));
  if (!x->is_string() && !is_integer(x->dtype()))
    return context.error("X must hold integers or text, is " + to_string(*x));
  TRY(const auto table,
      context.made_once<CategoryTable>([&] { return read_table(ints, strings); }));
  if (x->is_string()) {
    const int64_t fallback = context.attributes.get_int("default_int64", -1);
    TRY(Tensor * y, context.output(0, DType::kInt64, x->dims()));
    int64_t* to = y->data<int64_t>();
    for (const std::string& text : x->strings()) {
      const int64_t at = table->by_text.find(text);
      *to++ = at < 0 ? fallback : ints[static_cast<size_t>(at)];
    }
    return ok();
  }
  const Text fallback = context.attributes.get_string("default_string", "_Unused");
  TRY(Tensor * y, context.output(0, DType::kString, x->dims()));
  std::string* to = y->strings().data();
  const auto put = [&](int64_t at) {
    const Text text = at < 0 ? fallback : strings[static_cast<size_t>(at)];
    to++->assign(text.data(), text.size());
  };
  if (x->dtype() == DType::kInt64)
    table->by_number.find_each({x->data<int64_t>(), static_cast<size_t>(x->size())}, put);
  else
    table->by_number.find_each(
        x->size(), [x](int64_t i) { return x->get_int64(i); }, put);
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
