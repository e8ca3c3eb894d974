#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/int_table.h"
#include "ops/kernels/ml.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/text_table.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

/// A number as a key: equal numbers have equal keys, and so have all NaNs.
int64_t number_key(double value) {
  return value != value ? INT64_MIN + 1 : std::bit_cast<int64_t>(value == 0 ? 0.0 : value);
}
int64_t number_key(const Tensor& tensor, int64_t index) {
  return is_float(tensor.dtype()) ? number_key(tensor.get_double(index)) : tensor.get_int64(index);
}

/// Whether numbers are whole ones that a table may have as integers.
bool whole_numbers(const Tensor& keys) {
  constexpr double kMost = 1LL << 52;
  for (int64_t i = 0; i < keys.size(); ++i) {
    const double value = keys.get_double(i);
    if (!(std::fabs(value) <= kMost) || value != std::floor(value)) return false;
  }
  return true;
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

struct LabelTable {
  Tensor keys;
  Tensor values;  ///< after what stands for everything that is no key: place -1 leads there
  TextTable by_text;
  IntTable by_number;
  bool whole = false;  ///< keys are floats, and in the table as integers
};

/// The value of each key, and before them that of all else, as one list.
Result<Tensor> with_fallback(const Tensor& values, const Tensor& fallback) {
  const int64_t dims[] = {values.size() + 1};
  TRY(Tensor all, Tensor::allocate(values.dtype(), dims));
  copy_elements(fallback, 0, all, 0, 1);
  copy_elements(values, 0, all, 1, values.size());
  return all;
}

Result<LabelTable> read_table(const KernelContext& context, bool texts) {
  LabelTable table;
  Tensor values;
  if (context.attributes.has("classes_strings")) {  // version 1: texts and their positions
    const auto classes = context.attributes.get_strings("classes_strings");
    std::vector<std::string> names(classes.begin(), classes.end());
    std::vector<int64_t> places(classes.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    const int64_t dims[] = {static_cast<int64_t>(names.size())};
    table.keys = Tensor::of_strings(dims, std::move(names));
    values = Tensor::int64s(places);
    if (!texts) std::swap(table.keys, values);
  } else {
    TRY(table.keys, read_list(context, "keys"));
    TRY(values, read_list(context, "values"));
    if (table.keys.size() == 0 && values.size() == 0)
      return context.error("the attributes keys_* and values_* are missing");
  }
  const Tensor& keys = table.keys;
  if (keys.size() != values.size())
    return context.error("there are " + std::to_string(keys.size()) + " keys and " +
                         std::to_string(values.size()) + " values");
  TRY(const Tensor fallback, read_default(context, values.dtype()));
  TRY(table.values, with_fallback(values, fallback));
  // Of repeated keys the last counts.
  if (keys.is_string()) {
    table.by_text = TextTable(keys.strings().size());
    for (size_t i = 0; i < keys.strings().size(); ++i)
      table.by_text.add(keys.strings()[i], static_cast<int64_t>(i), true);
  } else {
    table.whole = is_float(keys.dtype()) && whole_numbers(keys);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < keys.size(); ++i)
      numbers.push_back(table.whole ? static_cast<int64_t>(keys.get_double(i))
                                    : number_key(keys, i));
    table.by_number = IntTable(numbers, true);
  }
  return table;
}

/// done(place) for each of `count` floats in turn.
template <typename T, typename Done>
void find_floats(const LabelTable& table, const T* from, int64_t count, Done&& done) {
  if (!table.whole)
    return table.by_number.find_each(
        count, [from](int64_t i) { return number_key(static_cast<double>(from[i])); }, done);
  // What is no whole number, or too large for one that a float holds, is no key.
  table.by_number.find_each(
      count,
      [from](int64_t i) {
        const T value = from[i];
        const bool fits = std::fabs(value) < static_cast<T>(1LL << 53);
        const auto whole = static_cast<int64_t>(fits ? value : T{0});
        return fits && static_cast<T>(whole) == value ? whole : INT64_MIN;
      },
      done);
}

/// done(place) for each element of x in turn.
template <typename Done>
void find_each(const LabelTable& table, const Tensor& x, Done&& done) {
  if (x.is_string()) {
    for (const std::string& text : x.strings()) done(table.by_text.find(text));
  } else if (x.dtype() == DType::kInt64) {
    table.by_number.find_each({x.data<int64_t>(), static_cast<size_t>(x.size())}, done);
  } else if (x.dtype() == DType::kFloat32) {
    find_floats(table, x.data<float>(), x.size(), done);
  } else if (x.dtype() == DType::kFloat64) {
    find_floats(table, x.data<double>(), x.size(), done);
  } else {
    table.by_number.find_each(
        x.size(), [&x](int64_t i) { return number_key(x, i); }, done);
  }
}

Status run_label_encoder(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const auto table,
      context.made_once<LabelTable>([&] { return read_table(context, x->is_string()); }));
  const Tensor &keys = table->keys, &values = table->values;
  if (keys.is_string() != x->is_string() || is_float(keys.dtype()) != is_float(x->dtype()))
    return context.error("the keys are " + to_string(keys) + ", X is " + to_string(*x));
  TRY(Tensor * y, context.output(0, values.dtype(), x->dims()));
  if (values.is_string()) {
    const std::string* label = values.strings().data() + 1;
    std::string* to = y->strings().data();
    find_each(*table, *x, [&](int64_t at) { *to++ = label[at]; });
  } else if (bits_of(values.dtype()) == 32) {
    const uint32_t* label = values.data<uint32_t>() + 1;
    uint32_t* to = y->data<uint32_t>();
    find_each(*table, *x, [&](int64_t at) { *to++ = label[at]; });
  } else if (bits_of(values.dtype()) == 64 && !is_complex(values.dtype())) {
    const uint64_t* label = values.data<uint64_t>() + 1;
    uint64_t* to = y->data<uint64_t>();
    find_each(*table, *x, [&](int64_t at) { *to++ = label[at]; });
  } else {
    int64_t to = 0;
    find_each(*table, *x, [&](int64_t at) { copy_elements(values, at + 1, *y, to++, 1); });
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
