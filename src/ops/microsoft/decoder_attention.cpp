// DecoderAttention: self- and cross-attention of fairseq's decoders, steps before the batch.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/gemm.h"
#include "ops/microsoft/heads.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// x [steps, batch, hidden] times columns of w [hidden, width] plus bias, as heads.
template <typename T>
Result<Tensor> projected(const KernelContext& context, const Tensor& x, const Tensor& w,
                         int64_t column, int64_t columns, const T* bias, int64_t heads) {
  const int64_t steps = x.dim(0), batch = x.dim(1), hidden = x.dim(2), size = columns / heads;
  TRY(Tensor flat, context.allocate(dtype_of<T>(), {{steps * batch, columns}}));
  for (int64_t i = 0; i < flat.size(); ++i) flat.data<T>()[i] = bias[i % columns];
  parallel_gemm<T>(context, steps * batch, columns, hidden, {x.data<T>(), hidden, 1},
                   {w.data<T>() + column, w.dim(1), 1}, flat.data<T>(), columns, true);
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{batch, heads, steps, size}}));
  T* to = out.data<T>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < steps; ++s)
        to = std::copy_n(flat.data<T>() + (s * batch + b) * columns + h * size, size, to);
  return out;
}

Result<bool> flag(const KernelContext& context, size_t index, const char* name) {
  TRY(const Tensor* value, context.input(index));
  if (value->size() != 1 || value->dtype() != DType::kBool)
    return context.error(std::string(name) + " must be one bool, is " + to_string(*value));
  return value->get_int64(0) != 0;
}

template <typename T>
Status decoder_attention(KernelContext& context, const Tensor& query) {
  TRY(const Tensor* key, context.input(1));
  TRY(const Tensor* q_weight, context.input(2));
  TRY(const Tensor* kv_weight, context.input(3));
  TRY(const Tensor* bias, context.input(4));
  TRY(const bool is_static, flag(context, 8, "static_kv"));
  TRY(const bool use_past, flag(context, 9, "use_past"));
  TRY(const bool has_mask, flag(context, 11, "has_key_padding_mask"));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (query.rank() != 3 || key->rank() != 3 || heads < 1 || query.dim(2) % heads != 0)
    return context.error("query and key must be [steps, batch, " + std::to_string(heads) +
                         " * size], are " + to_string(query) + " and " + to_string(*key));
  const int64_t batch = query.dim(1), hidden = query.dim(2), rows = query.dim(0);
  CHECK_OK(check_dims(context, "key", *key, {{key->dim(0), batch, hidden}}));
  CHECK_OK(check_dims(context, "q_weight", *q_weight, {{hidden, hidden}}));
  CHECK_OK(check_dims(context, "kv_weight", *kv_weight, {{hidden, 2 * hidden}}));
  CHECK_OK(check_dims(context, "bias", *bias, {{3 * hidden}}));
  TRY(const Tensor q_in, as<T>(context, query));
  TRY(const Tensor k_in, as<T>(context, *key));
  TRY(const Tensor wq, as<T>(context, *q_weight));
  TRY(const Tensor wkv, as<T>(context, *kv_weight));
  TRY(const Tensor b, as<T>(context, *bias));
  TRY(const Tensor q, projected<T>(context, q_in, wq, 0, hidden, b.data<T>(), heads));
  TRY(const Tensor key_cache, optional_as<T>(context, 6));
  TRY(const Tensor value_cache, optional_as<T>(context, 7));
  if (use_past && (absent(key_cache) || absent(value_cache) || key_cache.rank() != 4 ||
                   value_cache.rank() != 4))
    return context.error("use_past needs key_cache and value_cache of rank 4");
  Tensor k, v;
  if (is_static && use_past) {
    k = key_cache, v = value_cache;
  } else {
    // Cross-attention projects the encoder's output, self-attention the query.
    const Tensor& from = is_static ? k_in : q_in;
    TRY(k, projected<T>(context, from, wkv, 0, hidden, b.data<T>() + hidden, heads));
    TRY(v, projected<T>(context, from, wkv, hidden, hidden, b.data<T>() + 2 * hidden, heads));
    if (use_past) {
      TRY(k, append_heads<T>(context, "key_cache", key_cache, key_cache.dim(2), k));
      TRY(v, append_heads<T>(context, "value_cache", value_cache, value_cache.dim(2), v));
    }
  }
  TRY(const Tensor* mask, context.optional_input(5));
  if (has_mask) {
    if (mask == nullptr) return context.error("has_key_padding_mask is set, the mask is absent");
    CHECK_OK(check_dims(context, "key_padding_mask", *mask, {{batch, k.dim(2)}}));
  }
  const int64_t columns = k.dim(2);
  const Attend<T> arguments{
      .q = q, .k = k, .v = v, .scale = attention_scale(context, hidden / heads)};
  TRY(const Tensor y, attend<T>(context, arguments, [&](int64_t n, int64_t, int64_t, T* row) {
        for (int64_t j = 0; has_mask && j < columns; ++j)
          if (mask->get_int64(n * columns + j) != 0) row[j] = -std::numeric_limits<T>::infinity();
      }));
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{rows, batch, hidden}}));
  for (int64_t s = 0; s < rows; ++s)
    for (int64_t n = 0; n < batch; ++n)
      std::copy_n(y.data<T>() + (n * rows + s) * hidden, hidden,
                  out.data<T>() + (s * batch + n) * hidden);
  CHECK_OK(give(context, 1, query.dtype(), std::move(k)));
  CHECK_OK(give(context, 2, query.dtype(), std::move(v)));
  return give(context, 0, query.dtype(), std::move(out));
}

Status run_decoder_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return decoder_attention<T>(context, *query); });
}

Status infer_decoder_attention(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* query = context.shape(0);
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  if (heads < 1) return context.error("num_heads must be at least 1");
  if (query == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  for (size_t i = 1; i <= 2; ++i)
    context.set_tensor(
        i, context.elem(0),
        {(*query)[1], SymDim(heads), SymDim(), floor_div((*query)[2], SymDim(heads))});
  return ok();
}

}  // namespace

OPERATOR(microsoft_DecoderAttention) = {
    .name = "DecoderAttention",
    .domain = "com.microsoft",
    .doc = "self- and cross-attention of fairseq's decoders",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T"},
            {"q_weight", "T"},
            {"kv_weight", "T"},
            {"bias", "T"},
            {"key_padding_mask", "B", kOptional},
            {"key_cache", "T", kOptional},
            {"value_cache", "T", kOptional},
            {"static_kv", "B"},
            {"use_past", "B"},
            {"has_layer_state", "B"},
            {"has_key_padding_mask", "B"},
        },
    .outputs =
        {
            {"output", "T"},
            {"new_key_cache", "T", kOptional},
            {"new_value_cache", "T", kOptional},
        },
    .attributes =
        {
            {"mask_filter_value", Attr::kFloat},
            {"num_heads", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"B", {{1, kBool}}},
        },
    .infer = infer_decoder_attention,
    .reference = run_decoder_attention,
};

}  // namespace tombolo::ops
