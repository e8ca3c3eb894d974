#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
InferType from_type_proto(const Type& type) {
  InferType out;
  out.kind = type.kind;
  out.elem = type.kind == Type::Kind::kTensor ? type.dtype() : DType::kUndefined;
  if (type.kind == Type::Kind::kTensor && type.has_shape) {
    SymShape shape;
    for (const Dim& dim : type.dims)
      shape.push_back(dim.kind == Dim::Kind::kValue && dim.value >= 0 ? SymDim(dim.value)
                      : dim.kind == Dim::Kind::kParam                 ? SymDim::parse(dim.param)
                                                                      : SymDim());
    out.shape = std::move(shape);
  }
  if (type.element != nullptr)
    out.element = std::make_shared<const InferType>(from_type_proto(*type.element));
  return out;
}
Status infer_optional(InferContext& context) {
  if (context.has_input(0)) {
    context.set_output(0, InferType::optional(context.input(0)));
  } else if (const Type* type = context.attributes.get_type("type")) {
    context.set_output(0, InferType::optional(from_type_proto(*type)));
  } else {
    return context.error("Optional needs an input or the attribute type");
  }
  return ok();
}
Status infer_optional_get_element(InferContext& context) {
  const InferType& input = context.input(0);
  if (input.kind != Type::Kind::kOptional)
    context.same_as_input(0, 0);  // since 18 a tensor or sequence is its own element
  else if (input.element)
    context.set_output(0, *input.element);
  return ok();
}
Status infer_optional_has_element(InferContext& context) {
  context.set_tensor(0, DType::kBool, {});
  return ok();
}
Status run_optional(KernelContext& context) {
  context.set_output(0, context.has_input(0) ? RunValue::optional_of(context.value(0))
                                             : RunValue::empty_optional());
  return ok();
}

}  // namespace

OPERATOR(Optional) = {
    .name = "Optional",
    .doc = "an optional value that holds the input, or nothing of a type",
    .versions = {15, 28},
    .inputs = {{"input", "V", kOptional}},
    .outputs = {{"output", "O"}},
    .attributes = {{"type", Attr::kType}},
    .types =
        {
            {"V", {{15, kAll | seq_of(kAll)}, {28, kSmall | kBf16 | seq_of(kSmall | kBf16)}}},
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {28, optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
        },
    .infer = infer_optional,
    .reference = run_optional,
};

namespace {

Status run_optional_get_element(KernelContext& context) {
  if (!context.has_input(0)) return context.error("input 0 is missing");
  const RunValue& value = context.value(0);
  if (value.kind() != RunValue::Kind::kOptional) {
    context.set_output(0, value);
    return ok();
  }
  const RunValue* content = value.optional_content();
  if (content == nullptr) return context.error("the optional is empty");
  context.set_output(0, *content);
  return ok();
}

}  // namespace

OPERATOR(OptionalGetElement) = {
    .name = "OptionalGetElement",
    .doc = "what an optional value holds",
    .versions = {15, 18, 28},
    .inputs = {{"input", "O"}},
    .outputs = {{"output", "V"}},
    .types =
        {
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {18, kAll | seq_of(kAll)},
              {28, kSmall | kBf16 | seq_of(kSmall | kBf16) |
                       optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
            {"V", {{15, kAll | seq_of(kAll)}, {28, kSmall | kBf16 | seq_of(kSmall | kBf16)}}},
        },
    .infer = infer_optional_get_element,
    .reference = run_optional_get_element,
};

namespace {

Status run_optional_has_element(KernelContext& context) {
  bool has = context.has_input(0);
  if (has && context.value(0).kind() == RunValue::Kind::kOptional)
    has = context.value(0).optional_content() != nullptr;
  TRY(Tensor * out, context.output(0, DType::kBool, {}));
  *out->data<bool>() = has;
  return ok();
}

}  // namespace

OPERATOR(OptionalHasElement) = {
    .name = "OptionalHasElement",
    .doc = "whether an optional value holds something",
    .versions = {15, 18, 28},
    .inputs =
        {
            {"input", "O", kSingle, {.until = 17}},
            {"input", "O", kOptional, {.since = 18}},
        },
    .outputs = {{"output", "B"}},
    .types =
        {
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {18, kAll | seq_of(kAll)},
              {28, kSmall | kBf16 | seq_of(kSmall | kBf16) |
                       optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
            {"B", {{15, kBool}}},
        },
    .infer = infer_optional_has_element,
    .reference = run_optional_has_element,
};

}  // namespace tombolo::ops
