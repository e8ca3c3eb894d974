#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/text_table.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_dict_vectorizer(KernelContext& context) {
  if (!context.has_input(0) || context.value(0).kind() != RunValue::Kind::kMap)
    return context.error("X must be a map");
  const MapValue& map = context.value(0).map();
  const auto ints = context.attributes.get_ints("int64_vocabulary");
  const auto strings = context.attributes.get_strings("string_vocabulary");
  const size_t count = map.keys.is_string() ? strings.size() : ints.size();
  DType dtype = DType::kFloat32;
  std::vector<Tensor> values;
  for (size_t i = 0; i < map.size(); ++i) {
    const RunValue value = map.value(i);
    if (!value.is_tensor() || value.tensor().size() != 1)
      return context.error("the map's values must be scalars");
    values.push_back(value.tensor());
    dtype = values.back().dtype();
  }
  TRY(Tensor * y, context.output(0, dtype, {{1, static_cast<int64_t>(count)}}));
  fill_zero(*y);
  // Of repeated keys the last counts; a repeated word of the vocabulary has the value each time.
  const auto fill = [&](auto&& place_of) {
    for (size_t at = 0; at < count; ++at)
      if (const int64_t place = place_of(at); place >= 0)
        copy_elements(values[static_cast<size_t>(place)], 0, *y, static_cast<int64_t>(at), 1);
    return ok();
  };
  if (map.keys.is_string()) {
    TextTable table(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      table.add(map.keys.strings()[i], static_cast<int64_t>(i), true);
    return fill([&](size_t at) { return table.find(strings[at]); });
  }
  std::vector<int64_t> keys;
  for (size_t i = 0; i < values.size(); ++i)
    keys.push_back(map.keys.get_int64(static_cast<int64_t>(i)));
  const IntTable table(keys, true);
  return fill([&](size_t at) { return table.find(ints[at]); });
}

}  // namespace

namespace {
Status infer_dict_vectorizer(InferContext& context) {
  const InferType& map = context.input(0);
  InferType type = InferType::tensor(map.element ? map.element->elem : DType::kUndefined);
  const size_t columns = map.key == DType::kString
                             ? context.attributes.get_strings("string_vocabulary").size()
                             : context.attributes.get_ints("int64_vocabulary").size();
  type.shape = SymShape{SymDim(1), SymDim(static_cast<int64_t>(columns))};
  if (map.kind == Type::Kind::kSequence || map.key == DType::kUndefined) type.shape.reset();
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
    .reference = run_dict_vectorizer,
};

}  // namespace tombolo::ops
