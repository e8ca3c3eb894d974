#include "ops/kernels/cast.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
/// The element after a cast, where it stays the same number.
SymDim cast_element(const SymDim& x, DType to) {
  if (to == DType::kBool) {
    if (x.is_value()) return x.value() != 0 ? 1 : 0;
    const auto low = x.lower_bound();
    return low && *low > 0 ? SymDim(1) : SymDim();
  }
  if (!x.is_value()) return x;  // sizes of tensors fit every type that people cast them to
  // Beyond these the number wraps or is rounded.
  int64_t low = INT64_MIN, high = INT64_MAX;
  switch (to) {
    case DType::kInt8:
      low = INT8_MIN, high = INT8_MAX;
      break;
    case DType::kUInt8:
      low = 0, high = UINT8_MAX;
      break;
    case DType::kInt16:
      low = INT16_MIN, high = INT16_MAX;
      break;
    case DType::kUInt16:
      low = 0, high = UINT16_MAX;
      break;
    case DType::kInt32:
      low = INT32_MIN, high = INT32_MAX;
      break;
    case DType::kUInt32:
      low = 0, high = UINT32_MAX;
      break;
    case DType::kUInt64:
      low = 0;
      break;
    case DType::kInt64:
      break;
    case DType::kFloat32:
      low = -(1 << 24), high = 1 << 24;
      break;
    case DType::kFloat64:
      low = -(int64_t{1} << 53), high = int64_t{1} << 53;
      break;
    case DType::kFloat16:
      low = -2048, high = 2048;
      break;
    case DType::kBFloat16:
      low = -256, high = 256;
      break;
    default:
      return {};
  }
  return x.value() >= low && x.value() <= high ? x : SymDim();
}

Status infer_cast(InferContext& context) {
  std::optional<DType> dtype;
  if (context.opset < 6) {
    const Text name = context.attributes.get_string("to", "");
    for (size_t i = 1; i < kDTypeCount; ++i) {
      // Version 1 names types as the enumeration does: FLOAT, INT64.
      const auto candidate = static_cast<DType>(i);
      const std::string_view own = name_of(candidate);
      const bool same = own.size() == name.size() &&
                        std::equal(own.begin(), own.end(), name.begin(), [](char a, char b) {
                          return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
                        });
      if (same) dtype = candidate;
    }
    if (!dtype)
      return context.error("to is \"" + std::string(name.substr(0, 40)) + "\", which is no type");
  } else {
    const int64_t number = context.attributes.get_int("to", 0);
    dtype = dtype_from_number(number);
    if (!dtype) return context.error("to is " + std::to_string(number) + ", which is no type");
  }
  InferType type = InferType::tensor(*dtype);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  if (const SymShape* elements = context.ints(0)) {
    SymShape out;
    for (const SymDim& x : *elements) out.push_back(cast_element(x, *dtype));
    context.set_value(0, std::move(out));
  }
  return ok();
}
/// The type of attribute `to`: a number, or before operator set 6 a name in capitals.
Result<DType> cast_target(const KernelContext& context) {
  if (context.opset >= 6) return dtype_attribute(context, "to", DType::kUndefined);
  std::string name(context.attributes.get_string("to", ""));
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  const auto dtype = dtype_from_name(name);
  if (!dtype) return context.error("attribute to=\"" + name + "\" is not an element type");
  return *dtype;
}

Status run_cast(KernelContext& context) {
  TRY(const Tensor* in, context.input(0));
  TRY(const DType to, cast_target(context));
  if (to == DType::kUndefined) return context.error("attribute to is missing");
  TRY(const CastOptions options, cast_options(context));
  TRY(Tensor out, cast_tensor(context, *in, to, options));
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

namespace {

bool same_letters(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

/// `to` was the name of the element type in TensorProto.DataType.
Status step_type_name_to_number(StepContext& step) {
  const std::string_view name = step.get_string("to", "");
  for (size_t i = 1; i < kDTypeCount; ++i) {
    if (!same_letters(name, kDTypes[i].name)) continue;
    step.node.set_int("to", static_cast<int64_t>(i));
    return ok();
  }
  return step.cannot("\"to\" names no element type");
}

/// Up to version 23 floats beyond the range of 4 bits became its ends, and NaN the greatest float4;
/// later they wrap, and NaN becomes a zero. (The text calls both undefined; the official data do
/// not.)
Status step_saturating_to_wrapping(StepContext& step) {
  const auto to = static_cast<DType>(step.get_int("to", 0));
  if (to != DType::kInt4 && to != DType::kUInt4 && to != DType::kFloat4E2M1) return ok();
  const DType from = step.dtype(0);
  if (from == DType::kUndefined)
    return step.cannot("whether the input may exceed 4 bits is not known");
  if (from != DType::kFloat32 && from != DType::kFloat64 && from != DType::kFloat16 &&
      from != DType::kBFloat16)
    return ok();
  Value* input = step.node.input(0);
  if (to == DType::kFloat4E2M1) {
    TRY(Value * greatest, step.scalar(from, 6, "greatest"));
    Node& is_nan = step.before("IsNaN", {input}, "is_nan");
    Node& number = step.before("Where", {is_nan.output(0), greatest, input}, "number");
    step.node.set_input(0, number.output(0));
    return ok();
  }
  TRY(Value * low, step.scalar(from, to == DType::kInt4 ? -8 : 0, "low"));
  TRY(Value * high, step.scalar(from, to == DType::kInt4 ? 7 : 15, "high"));
  Node& clip = step.before("Clip", {input, low, high}, "in_range");
  step.node.set_input(0, clip.output(0));
  return ok();
}

}  // namespace

namespace {

/// Numbers beyond 4 bits saturate there, and wrap since.
Status step_wrapping_to_saturating(StepContext& step) {
  const auto to = static_cast<DType>(step.get_int("to", 0));
  const DType from = step.dtype(0);
  if ((to == DType::kInt4 || to == DType::kUInt4 || to == DType::kFloat4E2M1) &&
      (from == DType::kUndefined || is_float(from)))
    return step.cannot("numbers beyond 4 bits came out otherwise");
  if (step.get_string("round_mode", "up") != "up") return step.cannot("it had no round_mode");
  step.node.remove_attribute("round_mode");
  return ok();
}

}  // namespace

namespace {

/// Only float8 saturates.
Status step_no_saturation(StepContext& step) {
  const auto to = static_cast<DType>(step.get_int("to", 0));
  if (is_float8(to)) return step.cannot("there was no " + std::string(name_of(to)));
  step.node.remove_attribute("saturate");
  return ok();
}

}  // namespace

OPERATOR(Cast) = {
    .name = "Cast",
    .doc = "converts the element type",
    .versions = {1, 6, 9, 13, 19, 21, 23, 24, 25, 28},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"to", required(Attr::kString), {.until = 5}},
            {"to", required(Attr::kInt), {.since = 6}},
            {"saturate", 1, {.since = 19}},
            {"round_mode", "up", {.since = 24}},
        },
    .types =
        {
            {"T1",
             {{1, kNumbers | kBool},
              {9, kStr},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2},
              {28, kFp6}}},
            {"T2",
             {{1, kNumbers | kBool},
              {9, kStr},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2},
              {28, kFp6}}},
        },
    .infer = infer_cast,
    .reference = run_cast,
    .up = {{1, 6, step_type_name_to_number}, {23, 24, step_saturating_to_wrapping}},
    .down = {{24, 23, step_wrapping_to_saturating}, {19, 13, step_no_saturation}},
};

}  // namespace tombolo::ops
