// QuantizeLinear and DequantizeLinear as they stood before ai.onnx took 16 and 4 bits.

#include "ops/infer_helpers.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status run_ms_quantize_linear(KernelContext& context) { return run_as(context, "QuantizeLinear"); }
Status run_ms_dequantize_linear(KernelContext& context) {
  return run_as(context, "DequantizeLinear");
}
Status infer_ms_quantize_linear(InferContext& context) {
  InferType type = InferType::tensor(context.has_input(2) ? context.elem(2) : DType::kUInt8);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
Status infer_ms_dequantize_linear(InferContext& context) {
  InferType type = InferType::tensor(context.elem(1));
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(microsoft_QuantizeLinear) = {
    .name = "QuantizeLinear",
    .domain = "com.microsoft",
    .doc = "saturate(round(x / scale) + zero point), per tensor or axis",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"y_scale", "T1"},
            {"y_zero_point", "T2", kOptional},
        },
    .outputs =
        {
            {"y", "T2"},
        },
    .attributes =
        {
            {"axis", Attr::kInt},
        },
    .types =
        {
            {"T1", {{1, kF16 | kF32}}},
            {"T2", {{1, kInt16s | kInt4 | kInt8s}}},
        },
    .infer = infer_ms_quantize_linear,
    .reference = run_ms_quantize_linear,
};

OPERATOR(microsoft_DequantizeLinear) = {
    .name = "DequantizeLinear",
    .domain = "com.microsoft",
    .doc = "(x - zero point) * scale, per tensor or axis",
    .versions = {1},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "T2"},
            {"x_zero_point", "T1", kOptional},
        },
    .outputs =
        {
            {"y", "T2"},
        },
    .attributes =
        {
            {"axis", Attr::kInt},
        },
    .types =
        {
            {"T1", {{1, kInt16s | kInt4 | kInt8s | kI32}}},
            {"T2", {{1, kF16 | kF32}}},
        },
    .infer = infer_ms_dequantize_linear,
    .reference = run_ms_dequantize_linear,
};

}  // namespace tombolo::ops
