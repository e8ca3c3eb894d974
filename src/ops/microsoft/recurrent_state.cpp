// Convolution and attention that hand on a state, as ai.onnx took them up later.

#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

constexpr int kOpset = 27;

Status refuse(const KernelContext& context, const char* attribute, int64_t known) {
  const int64_t given = context.attributes.get_int(attribute, known);
  if (given == known) return ok();
  return unsupported(std::string(attribute) + " of " + std::to_string(given));
}

Status run_ms_causal_conv(KernelContext& context) {
  CHECK_OK(refuse(context, "dilation", 1));
  CHECK_OK(refuse(context, "ndim", 1));
  CHECK_OK(refuse(context, "channels_last", 0));
  CHECK_OK(refuse(context, "state_window", 0));
  return run_as(context, "CausalConvWithState", kOpset);
}
Status infer_ms_causal_conv(InferContext& context) {
  if (context.attributes.get_int("ndim", 1) != 1 ||
      context.attributes.get_int("state_window", 0) != 0 ||
      context.attributes.get_int("channels_last", 0) != 0 ||
      context.attributes.get_int("dilation", 1) != 1)
    return ok();
  return infer_as(context, "CausalConvWithState", kOpset);
}

Status run_ms_linear_attention(KernelContext& context) {
  CHECK_OK(refuse(context, "state_window", 0));
  return run_as(context, "LinearAttention", kOpset);
}
Status infer_ms_linear_attention(InferContext& context) {
  if (context.attributes.get_int("state_window", 0) != 0) return ok();
  return infer_as(context, "LinearAttention", kOpset);
}

}  // namespace

OPERATOR(microsoft_CausalConvWithState) = {
    .name = "CausalConvWithState",
    .domain = "com.microsoft",
    .doc = "depthwise causal convolution that hands on its last samples",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"bias", "T", kOptional},
            {"past_state", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "T"},
        },
    .attributes =
        {
            {"activation", "none"},
            {"channels_last", 0},
            {"dilation", 1},
            {"ndim", 1},
            {"state_window", 0},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_ms_causal_conv,
    .reference = run_ms_causal_conv,
};

OPERATOR(microsoft_LinearAttention) = {
    .name = "LinearAttention",
    .domain = "com.microsoft",
    .doc = "attention without softmax as a recurrence over a state matrix",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T"},
            {"value", "T"},
            {"past_state", "S", kOptional},
            {"decay", "T", kOptional},
            {"beta", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "S"},
        },
    .attributes =
        {
            {"chunk_size", 64},
            {"kv_num_heads", required(Attr::kInt)},
            {"q_num_heads", required(Attr::kInt)},
            {"scale", 0.0f},
            {"state_window", 0},
            {"update_rule", "gated_delta"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"S", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_ms_linear_attention,
    .reference = run_ms_linear_attention,
};

}  // namespace tombolo::ops
