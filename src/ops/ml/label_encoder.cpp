#include <bit>
#include <numeric>
#include <unordered_map>

#include "ops/infer_helpers.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/ml.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

/// A number as a key: equal numbers have equal keys, and so have all NaNs.
int64_t number_key(const Tensor& tensor, int64_t index) {
  if (!is_float(tensor.dtype())) return tensor.get_int64(index);
  const double value = tensor.get_double(index);
  return value != value ? INT64_MIN + 1 : std::bit_cast<int64_t>(value == 0 ? 0.0 : value);
}

/// The default for values of type `dtype`.
Result<Tensor> read_default(const KernelContext& context, DType dtype) {
  TRY(Tensor given, read_tensor(context, "default_tensor"));
  if (!absent(given)) {
    if (given.dtype() != dtype || given.size() != 1)
      return context.error("default_tensor must be one " + std::string(name_of(dtype)) + ", is " +
                           to_string(given));
    return given;
  }
  if (is_string(dtype))
    return Tensor::of_strings(
        {}, {std::string(context.attributes.get_string("default_string", "_Unused"))});
  TRY(Tensor value, context.allocate(dtype, {}));
  if (is_float(dtype))
    value.set_double(0, static_cast<double>(context.attributes.get_float("default_float", -0.0f)));
  else
    value.set_int64(0, context.attributes.get_int("default_int64", -1));
  return value;
}

Status run_label_encoder(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  Tensor keys, values;
  if (context.attributes.has("classes_strings")) {  // version 1: texts and their positions
    const auto classes = context.attributes.get_strings("classes_strings");
    std::vector<std::string> texts(classes.begin(), classes.end());
    std::vector<int64_t> places(classes.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    const int64_t dims[] = {static_cast<int64_t>(texts.size())};
    keys = Tensor::of_strings(dims, std::move(texts));
    values = Tensor::int64s(places);
    if (!x->is_string()) std::swap(keys, values);
  } else {
    TRY(keys, read_list(context, "keys"));
    TRY(values, read_list(context, "values"));
    if (keys.size() == 0 && values.size() == 0)
      return context.error("the attributes keys_* and values_* are missing");
  }
  if (keys.size() != values.size())
    return context.error("there are " + std::to_string(keys.size()) + " keys and " +
                         std::to_string(values.size()) + " values");
  if (keys.is_string() != x->is_string() || is_float(keys.dtype()) != is_float(x->dtype()))
    return context.error("the keys are " + to_string(keys) + ", X is " + to_string(*x));
  TRY(const Tensor fallback, read_default(context, values.dtype()));
  // Of repeated keys the last counts.
  std::unordered_map<std::string_view, int64_t> by_text;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < keys.size(); ++i) {
    if (keys.is_string())
      by_text[keys.strings()[static_cast<size_t>(i)]] = i;
    else
      numbers.push_back(number_key(keys, i));
  }
  const IntTable by_number(numbers, true);
  TRY(Tensor * y, context.output(0, values.dtype(), x->dims()));
  if (x->dtype() == DType::kInt64 && bits_of(values.dtype()) == 32) {
    uint32_t* to = y->data<uint32_t>();
    // What is no key stands before the values, where place -1 leads to: no branch guesses well.
    std::vector<uint32_t> labels = {*fallback.data<uint32_t>()};
    labels.insert(labels.end(), values.data<uint32_t>(), values.data<uint32_t>() + values.size());
    const uint32_t* label = labels.data() + 1;
    by_number.find_each({x->data<int64_t>(), static_cast<size_t>(x->size())},
                        [&](int64_t at) { *to++ = label[at]; });
    return ok();
  }
  for (int64_t i = 0; i < x->size(); ++i) {
    int64_t at = -1;
    if (x->is_string()) {
      const auto found = by_text.find(x->strings()[static_cast<size_t>(i)]);
      if (found != by_text.end()) at = found->second;
    } else {
      at = by_number.find(number_key(*x, i));
    }
    copy_elements(at < 0 ? fallback : values, at < 0 ? 0 : at, *y, i, 1);
  }
  return ok();
}

}  // namespace

namespace {
Status infer_label_encoder(InferContext& context) {
  const AttributeReader& attributes = context.attributes;
  InferType type = InferType::tensor(DType::kUndefined);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  if (const Constant* values = attributes.get_tensor("values_tensor"))
    type.elem = values->dtype();
  else if (attributes.has("values_strings"))
    type.elem = DType::kString;
  else if (attributes.has("values_int64s"))
    type.elem = DType::kInt64;
  else if (attributes.has("values_floats"))
    type.elem = DType::kFloat32;
  else if (context.opset < 2 || attributes.has("classes_strings"))
    type.elem = context.elem(0) == DType::kString ? DType::kInt64 : DType::kString;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

namespace {

/// The position in `classes_strings` was the label, in whichever direction the input asks for.
Status step_classes_to_table(StepContext& step) {
  const Attribute* classes = step.node.attribute("classes_strings");
  const DType dtype = step.dtype(0);
  if (dtype != DType::kString && dtype != DType::kInt64)
    return step.cannot("the type of the input is not known");
  std::vector<Text> strings;
  if (classes != nullptr) strings.assign(classes->strings().begin(), classes->strings().end());
  std::vector<int64_t> numbers(strings.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const bool to_number = dtype == DType::kString;
  step.node.remove_attribute("classes_strings");
  step.node.set_attribute(
      {to_number ? "keys_strings" : "values_strings", AttrType::kStrings, std::move(strings)});
  step.node.set_ints(to_number ? "values_int64s" : "keys_int64s", numbers);
  return ok();
}

}  // namespace

OPERATOR(LabelEncoder) = {
    .name = "LabelEncoder",
    .domain = "ai.onnx.ml",
    .doc = "maps each element by a table of keys and values",
    .versions = {1, 2, 4},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"classes_strings", Attr::kStrings, {.until = 1}},
            {"default_int64", -1},
            {"default_string", "_Unused"},
            {"default_float", -0.0f, {.since = 2}},
            {"keys_floats", Attr::kFloats, {.since = 2}},
            {"keys_int64s", Attr::kInts, {.since = 2}},
            {"keys_strings", Attr::kStrings, {.since = 2}},
            {"values_floats", Attr::kFloats, {.since = 2}},
            {"values_int64s", Attr::kInts, {.since = 2}},
            {"values_strings", Attr::kStrings, {.since = 2}},
            {"default_tensor", Attr::kTensor, {.since = 4}},
            {"keys_tensor", Attr::kTensor, {.since = 4}},
            {"values_tensor", Attr::kTensor, {.since = 4}},
        },
    .types =
        {
            {"T1", {{1, kI64 | kStr}, {2, kF32}, {4, kI16 | kI32 | kF64}}},
            {"T2", {{1, kI64 | kStr}, {2, kF32}, {4, kI16 | kI32 | kF64}}},
        },
    .infer = infer_label_encoder,
    .reference = run_label_encoder,
    .up = {{1, 2, step_classes_to_table}},
};

}  // namespace tombolo::ops
