// Attention of BERT and GPT exports: the projections to queries, keys and values are inside.

#include <utility>

#include "ops/infer_helpers.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/projected.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status attention(KernelContext& context, const Tensor& input) {
  TRY(const Tensor* weights, context.input(1));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  TRY(const Projection widths, read_projection(context, input, *weights, heads));
  if (input.rank() != 3) return context.error("input must have rank 3, is " + to_string(input));
  TRY(const Tensor in, as<T>(context, input));
  TRY(const Tensor w, as<T>(context, *weights));
  TRY(const Tensor bias, optional_as<T>(context, 2));
  TRY(Projected parts, project<T>(context, in, w, bias, widths));
  return attend_projected<T>(context, std::move(parts), widths, input.dtype(),
                             {.mask = 3, .past = 4, .bias = 5, .past_length = 6, .present = 1});
}

Status run_ms_attention(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  return with_float(context, *input, [&]<typename T>() { return attention<T>(context, *input); });
}

Status infer_ms_attention(InferContext& context) { return infer_projected(context, 4, 6); }

}  // namespace

OPERATOR(microsoft_Attention) = {
    .name = "Attention",
    .domain = "com.microsoft",
    .doc = "multi-head attention with its projections, masks, cache and bias",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weights", "T"},
            {"bias", "T", kOptional},
            {"mask_index", "M", kOptional},
            {"past", "T", kOptional},
            {"attention_bias", "T", kOptional},
            {"past_sequence_length", "M", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present", "T", kOptional},
        },
    .attributes =
        {
            {"do_rotary", Attr::kInt},
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
            {"past_present_share_buffer", Attr::kInt},
            {"qkv_hidden_sizes", Attr::kInts},
            {"rotary_embedding_dim", Attr::kInt},
            {"scale", Attr::kFloat},
            {"unidirectional", 0},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_ms_attention,
    .reference = run_ms_attention,
};

}  // namespace tombolo::ops
