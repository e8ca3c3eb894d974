// Attention.

#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// scaled_dot_product_attention: [.., L, E] against [.., S, E].
Value* attend(C& c, Value* q, Value* k, Value* v, Value* mask, bool causal, bool grouped) {
  const int64_t r = c.rank(q);
  const auto width = c.known(q, r - 1);
  const bool own_scale = c.has_arg("scale") && c.given("scale");
  const DType type = c.dtype(q);
  if (mask && c.dtype(mask) != DType::kBool) mask = c.cast(mask, type);
  if (r == 3) {
    // One head fewer than the operator has.
    Value* y = attend(c, c.unsqueeze(q, {1}), c.unsqueeze(k, {1}), c.unsqueeze(v, {1}),
                      mask && c.rank(mask) > 2 ? c.unsqueeze(mask, {1}) : mask, causal, grouped);
    return c.squeeze(y, {1});
  }
  const bool equal_heads = r == 4 && c.rank(k) == 4 && c.rank(v) == 4 &&
                           (grouped || c.b.dim(q, 1).equals(c.b.dim(k, 1))) &&
                           c.b.dim(k, 1).equals(c.b.dim(v, 1)) &&
                           c.b.dim(q, 0).equals(c.b.dim(k, 0));
  if (equal_heads && is_float(type)) {
    Attrs attrs;
    if (own_scale) attrs.emplace_back("scale", c.real("scale"));
    if (causal) attrs.emplace_back("is_causal", 1);
    return c.op("Attention", {q, k, v, mask}, attrs);
  }
  if (!width && !own_scale) {
    c.refuse("attention over heads of unknown width");
    return q;
  }
  const double scale =
      own_scale ? c.real("scale") : 1 / std::sqrt(static_cast<double>(width.value_or(1)));
  if (grouped) {
    const SymInt times = c.floor_div(c.size(q, r - 3), c.size(k, r - 3));
    if (!times.is(1)) {
      k = c.lower("repeat_interleave.self_int", {Arg(c.cell(k)), Arg(times), Arg(r - 3)});
      v = c.lower("repeat_interleave.self_int", {Arg(c.cell(v)), Arg(times), Arg(r - 3)});
    }
  }
  Value* scores = c.op("MatMul", {c.mul(q, c.like(scale, q)), c.swap(k, -1, -2)});
  if (causal) {
    Value* rows = c.unsqueeze(c.range(c.size(q, -2)), {1});
    Value* columns = c.range(c.size(k, -2));
    mask = c.op("GreaterOrEqual", {rows, columns});
  }
  if (mask)
    scores = c.dtype(mask) == DType::kBool ? c.where(mask, scores, c.like(-INFINITY, scores))
                                           : c.add(scores, mask);
  Value* weights = c.op("Softmax", {scores}, {{"axis", -1}});
  if (mask && c.dtype(mask) == DType::kBool) {
    // A row that sees nothing gives zeros.
    Value* high = c.reduce("ReduceMax", scores, {c.rank(scores) - 1}, true);
    weights = c.where(c.op("IsInf", {high}, {{"detect_positive", 0}}), c.like(0, weights), weights);
  }
  return c.op("MatMul", {weights, v});
}

void attention(C& c) {
  if (c.has_arg("dropout_p") && c.given("dropout_p") && c.real("dropout_p") != 0)
    return c.refuse("it draws random numbers", "export the model after model.eval()");
  // Whether it is causal may be the model's to say: then as a part of the mask.
  Value* perhaps_causal = c.has_arg("is_causal") ? c.arg("is_causal").computed : nullptr;
  const bool causal = !perhaps_causal && c.has_arg("is_causal") && c.flag("is_causal");
  const bool grouped = c.has_arg("enable_gqa") && c.flag("enable_gqa");
  Value* mask = c.has_arg("attn_mask")   ? c.opt("attn_mask")
                : c.has_arg("attn_bias") ? c.opt("attn_bias")
                                         : nullptr;
  if (perhaps_causal) {
    Value *rows = c.range(c.size(c.x("query"), -2)), *columns = c.range(c.size(c.x("key"), -2));
    Value* seen = c.op("GreaterOrEqual", {c.unsqueeze(rows, {1}), columns});
    seen = c.op("Or", {seen, c.op("Not", {perhaps_causal})});
    mask = mask == nullptr                 ? seen
           : c.dtype(mask) == DType::kBool ? c.op("And", {mask, seen})
                                           : c.where(seen, mask, c.like(-INFINITY, mask));
  }
  Value* y = attend(c, c.x("query"), c.x("key"), c.x("value"), mask, causal, grouped);
  c.out(y);
  if (c.name() == "_scaled_dot_product_flash_attention_for_cpu") {
    Value *q = c.x("query"), *k = c.x("key");
    const auto width = c.known(q, -1 + c.rank(q));
    const double scale =
        c.given("scale") ? c.real("scale") : 1 / std::sqrt(static_cast<double>(width.value_or(1)));
    Value* scores = c.op("MatMul", {c.mul(q, c.like(scale, q)), c.swap(k, -1, -2)});
    if (causal) {
      Value* seen = c.op("GreaterOrEqual",
                         {c.unsqueeze(c.range(c.size(q, -2)), {1}), c.range(c.size(k, -2))});
      scores = c.where(seen, scores, c.like(-INFINITY, scores));
    }
    if (mask) {
      scores = c.dtype(mask) == DType::kBool ? c.where(mask, scores, c.like(-INFINITY, scores))
                                             : c.add(scores, mask);
    }
    return c.out(c.reduce("ReduceLogSumExp", scores, {c.rank(scores) - 1}, false));
  }
  // What the fused forms return beside is only for the backward pass.
  for (size_t i = 1; i < c.schema().results.size(); ++i) c.out_arg(Arg());
}

/// nn.MultiheadAttention's fast path.
void native_multi_head(C& c) {
  Value *q = c.x("query"), *k = c.x("key"), *v = c.x("value");
  const int64_t heads = c.integer("num_head"), embed = c.integer("embed_dim");
  if (heads <= 0) return c.refuse("attention without heads");
  Value *w = c.x("qkv_weight"), *bias = c.x("qkv_bias");
  const auto part = [&](Value* x, int64_t i) {
    Value* weight = c.slice(w, 0, SymInt(i * embed), SymInt((i + 1) * embed));
    Value* shift = c.slice(bias, 0, SymInt(i * embed), SymInt((i + 1) * embed));
    Value* y = c.add(c.op("MatMul", {x, c.swap(weight, 0, 1)}), shift);
    y = c.reshape(y, {c.size(x, 0), c.size(x, 1), SymInt(heads), SymInt(embed / heads)});
    return c.transpose(y, {0, 2, 1, 3});
  };
  Value *hq = part(q, 0), *hk = part(k, 1), *hv = part(v, 2);
  Value* scores = c.op(
      "MatMul",
      {c.mul(hq,
             c.like(1 / std::sqrt(static_cast<double>(embed) / static_cast<double>(heads)), hq)),
       c.swap(hk, -1, -2)});
  if (c.given("mask")) {
    Value* mask = c.x("mask");
    const int64_t kind = c.given("mask_type") ? c.integer("mask_type") : 0;
    if (kind == 1) mask = c.unsqueeze(mask, {1, 2});
    if (c.dtype(mask) == DType::kBool)
      scores = c.where(mask, c.like(-INFINITY, scores), scores);
    else
      scores = c.add(scores, mask);
  }
  Value* weights = c.op("Softmax", {scores}, {{"axis", -1}});
  Value* y = c.transpose(c.op("MatMul", {weights, hv}), {0, 2, 1, 3});
  y = c.reshape(y, {c.size(q, 0), c.size(q, 1), SymInt(embed)});
  y = c.add(c.op("MatMul", {y, c.swap(c.x("proj_weight"), 0, 1)}), c.x("proj_bias"));
  c.out(y);
  if (!c.flag("need_weights")) return c.out_arg(Arg());
  c.out(c.flag("average_attn_weights") ? c.reduce("ReduceMean", weights, {1}, false) : weights);
}

/// nn.TransformerEncoderLayer's fast path.
void encoder_layer(C& c) {
  Value* x = c.x("src");
  const bool norm_first = c.flag("norm_first");
  const auto normed = [&](Value* v, const char* weight, const char* bias) {
    return c.op("LayerNormalization", {v, c.x(weight), c.x(bias)},
                {{"axis", -1}, {"epsilon", c.real("eps")}});
  };
  const auto attended = [&](Value* v) {
    const Ref cell = c.cell(v);
    return c.lower("_native_multi_head_attention",
                   {Arg(cell), Arg(cell), Arg(cell), c.arg("embed_dim"), c.arg("num_heads"),
                    c.arg("qkv_weight"), c.arg("qkv_bias"), c.arg("proj_weight"),
                    c.arg("proj_bias"), c.arg("mask"), Arg(false), Arg(true), c.arg("mask_type")});
  };
  const auto fed = [&](Value* v) {
    Value* h = c.add(c.op("MatMul", {v, c.swap(c.x("ffn_weight_1"), 0, 1)}), c.x("ffn_bias_1"));
    h = c.op(c.flag("use_gelu") ? "Gelu" : "Relu", {h});
    return c.add(c.op("MatMul", {h, c.swap(c.x("ffn_weight_2"), 0, 1)}), c.x("ffn_bias_2"));
  };
  if (norm_first) {
    x = c.add(x, attended(normed(x, "norm_weight_1", "norm_bias_1")));
    return c.out(c.add(x, fed(normed(x, "norm_weight_2", "norm_bias_2"))));
  }
  x = normed(c.add(x, attended(x)), "norm_weight_1", "norm_bias_1");
  c.out(normed(c.add(x, fed(x)), "norm_weight_2", "norm_bias_2"));
}

constexpr Row kAttentionRows[] = {
    {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
     "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> "
     "Tensor",
     attention},
    {"_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
     "dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
     "(Tensor output, Tensor logsumexp)",
     attention},
    {"_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
     "dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
     "(Tensor, Tensor, Tensor, Tensor, SymInt, SymInt, Tensor, Tensor, Tensor)",
     attention},
    {"_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? "
     "attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? "
     "scale=None) -> (Tensor, Tensor, Tensor, Tensor)",
     attention},
    {"_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? "
     "attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool "
     "return_debug_mask=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor, SymInt, "
     "SymInt, Tensor, Tensor, Tensor)",
     attention},
    {"_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? "
     "attn_mask=None, float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, "
     "float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
     attention},
    {"_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, "
     "Tensor? attn_bias=None, float dropout_p=0.0, bool is_causal=False, bool "
     "return_debug_mask=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor, SymInt, "
     "SymInt, Tensor, Tensor, Tensor)",
     attention},
    {"_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int "
     "num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
     "mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> "
     "(Tensor, Tensor)",
     native_multi_head},
    {"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
     "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float "
     "eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
     "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? "
     "mask=None, int? mask_type=None) -> Tensor",
     encoder_layer},
};

}  // namespace

std::span<const Row> attention_rows() { return kAttentionRows; }

}  // namespace tombolo::pytorch
