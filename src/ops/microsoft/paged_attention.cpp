// PagedAttention: sequences without padding, whose keys and values lie in blocks that a table
// names.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/rotate.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kKeyCache,
  kValueCache,
  kEnds,
  kPast,
  kTable,
  kCosines,
  kSines,
  kSlots,
  kSinks
};

Status refuse_variants(const KernelContext& context) {
  const auto& attributes = context.attributes;
  if (attributes.get_string("kv_cache_layout", "SEPARATE") != "SEPARATE" ||
      attributes.get_string("k_quant_type", "NONE") != "NONE" ||
      attributes.get_string("v_quant_type", "NONE") != "NONE" ||
      attributes.get_int("v_head_size", 0) != 0 || attributes.get_int("rotary_offset", 0) != 0)
    return unsupported("joint, quantised or asymmetric caches of PagedAttention");
  for (size_t i = kSinks + 1; i < context.input_count(); ++i)
    if (context.has_input(i))
      return unsupported("input " + std::to_string(i) + " of PagedAttention");
  if (context.has_input(kSlots)) return unsupported("slot_mapping of PagedAttention");
  return ok();
}

/// A sequence of the packed batch.
struct Sequence {
  int64_t first, steps, past;  ///< its tokens in the batch; those in the cache before
};

template <typename T>
Status paged_attention(KernelContext& context, const Tensor& query) {
  CHECK_OK(refuse_variants(context));
  const auto& attributes = context.attributes;
  const int64_t heads = attributes.get_int("num_heads", 0);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  TRY(const Tensor* key, context.optional_input(kKey));
  TRY(const Tensor* value, context.optional_input(kValue));
  TRY(const Tensor* key_cache, context.input(kKeyCache));
  TRY(const Tensor* value_cache, context.input(kValueCache));
  TRY(const Tensor* ends, context.input(kEnds));
  TRY(const Tensor* pasts, context.input(kPast));
  TRY(const Tensor* table, context.input(kTable));
  if (kv_heads < 1 || heads < 1 || heads > 1 << 20 || heads % kv_heads != 0)
    return context.error("num_heads is " + std::to_string(heads) + ", kv_num_heads is " +
                         std::to_string(kv_heads));
  if ((key == nullptr) != (value == nullptr))
    return context.error("key and value must be given together");
  const int64_t parts = key == nullptr ? heads + 2 * kv_heads : heads;
  if (query.rank() != 2 || query.dim(1) % parts != 0)
    return context.error("query must be [tokens, " + std::to_string(parts) + " * size], is " +
                         to_string(query));
  const int64_t tokens = query.dim(0), size = query.dim(1) / parts;
  if (key_cache->rank() != 4)
    return context.error("key_cache must have rank 4, is " + to_string(*key_cache));
  const int64_t blocks = key_cache->dim(0), block = key_cache->dim(1);
  CHECK_OK(check_dims(context, "key_cache", *key_cache, {{blocks, block, kv_heads, size}}));
  CHECK_OK(check_dims(context, "value_cache", *value_cache, {{blocks, block, kv_heads, size}}));
  if (key_cache->size() == 0 || block > int64_t{1} << 31)
    return context.error("key_cache holds nothing: " + to_string(*key_cache));
  if (table->rank() != 2) return context.error("block_table must be a matrix");
  const int64_t batch = table->dim(0), most = table->dim(1);
  CHECK_OK(check_dims(context, "cumulative_sequence_length", *ends, {{batch + 1}}));
  CHECK_OK(check_dims(context, "past_seqlens", *pasts, {{batch}}));

  TRY(const Tensor q_in, as<T>(context, query));
  Tensor kv_in[2];
  int64_t kv_width = query.dim(1), kv_offset[2] = {heads * size, (heads + kv_heads) * size};
  for (int i = 0; i < 2; ++i) {
    if (key == nullptr) {
      kv_in[i] = q_in;
      continue;
    }
    const Tensor& given = i == 0 ? *key : *value;
    kv_width = kv_heads * size, kv_offset[i] = 0;
    CHECK_OK(check_dims(context, i == 0 ? "key" : "value", given, {{tokens, kv_width}}));
    TRY(kv_in[i], as<T>(context, given));
  }
  TRY(Tensor cosine, optional_as<T>(context, kCosines));
  TRY(Tensor sine, optional_as<T>(context, kSines));
  const bool rotary = attributes.get_int("do_rotary", 0) != 0;
  if (rotary && (absent(cosine) || absent(sine) || cosine.rank() != 2 ||
                 cosine.dims() != sine.dims() || 2 * cosine.dim(1) > size))
    return context.error("do_rotary needs cos_cache and sin_cache, matrices of one shape");
  const bool interleaved = attributes.get_int("rotary_interleaved", 0) != 0;

  TRY(const Tensor old_keys, as<T>(context, *key_cache));
  TRY(const Tensor old_values, as<T>(context, *value_cache));
  TRY(Tensor keys, old_keys.clone());
  TRY(Tensor values, old_values.clone());
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{tokens, heads * size}}));
  const int64_t window = attributes.get_int("local_window_size", -1);
  const bool causal = attributes.get_int("is_causal", 1) != 0;
  TRY(const Tensor sinks, optional_as<T>(context, kSinks));
  if (!absent(sinks)) CHECK_OK(check_dims(context, "head_sink", sinks, {{heads}}));
  if (ends->get_int64(0) != 0 || ends->get_int64(batch) != tokens)
    return context.error("cumulative_sequence_length does not count " + std::to_string(tokens) +
                         " tokens");
  for (int64_t b = 0; b < batch; ++b) {
    const Sequence sequence{ends->get_int64(b), ends->get_int64(b + 1) - ends->get_int64(b),
                            pasts->get_int64(b)};
    const int64_t total = sequence.past + sequence.steps;
    if (sequence.steps < 0 || sequence.first + sequence.steps > tokens || sequence.past < 0 ||
        total > most * block)
      return context.error("sequence " + std::to_string(b) + " has " +
                           std::to_string(sequence.past) + " tokens and " +
                           std::to_string(sequence.steps) + " more, its blocks hold " +
                           std::to_string(most * block));
    if (rotary && total > cosine.dim(0))
      return context.error("cos_cache has " + std::to_string(cosine.dim(0)) + " rows, needs " +
                           std::to_string(total));
    TRY(Tensor k, context.allocate(dtype_of<T>(), {{1, kv_heads, total, size}}));
    TRY(Tensor v, context.allocate(dtype_of<T>(), {{1, kv_heads, total, size}}));
    std::vector<int64_t> slots;
    for (int64_t t = 0; t < total; ++t) {
      const int64_t number = table->get_int64(b * most + t / block);
      if (number < 0 || number >= blocks)
        return context.error("block_table has the value " + std::to_string(number) +
                             ", there are " + std::to_string(blocks) + " blocks");
      slots.push_back(number * block + t % block);
    }
    TRY(Tensor q, context.allocate(dtype_of<T>(), {{1, heads, sequence.steps, size}}));
    for (int64_t s = 0; s < sequence.steps; ++s) {
      const int64_t token = sequence.first + s, position = sequence.past + s;
      const T* c = rotary ? cosine.data<T>() + position * cosine.dim(1) : nullptr;
      const T* n = rotary ? sine.data<T>() + position * cosine.dim(1) : nullptr;
      for (int64_t h = 0; h < heads; ++h) {
        T* to = q.data<T>() + (h * sequence.steps + s) * size;
        std::copy_n(q_in.data<T>() + token * query.dim(1) + h * size, size, to);
        if (rotary) rotate_features(to, cosine.dim(1), c, n, interleaved);
      }
      for (int64_t h = 0; h < kv_heads; ++h)
        for (int i = 0; i < 2; ++i) {
          T* to = (i == 0 ? keys : values).data<T>() +
                  (slots[static_cast<size_t>(position)] * kv_heads + h) * size;
          std::copy_n(kv_in[i].data<T>() + token * kv_width + kv_offset[i] + h * size, size, to);
          if (rotary && i == 0) rotate_features(to, cosine.dim(1), c, n, interleaved);
        }
    }
    for (int64_t h = 0; h < kv_heads; ++h)
      for (int64_t t = 0; t < total; ++t) {
        const int64_t from = (slots[static_cast<size_t>(t)] * kv_heads + h) * size;
        std::copy_n(keys.data<T>() + from, size, k.data<T>() + (h * total + t) * size);
        std::copy_n(values.data<T>() + from, size, v.data<T>() + (h * total + t) * size);
      }
    const Attend<T> arguments{.q = q,
                              .k = k,
                              .v = v,
                              .scale = attention_scale(context, size),
                              .softcap = static_cast<double>(attributes.get_float("softcap", 0)),
                              .sinks = absent(sinks) ? nullptr : sinks.data<T>()};
    TRY(const Tensor out, attend<T>(context, arguments, [&](int64_t, int64_t, int64_t i, T* row) {
          const int64_t end = causal ? sequence.past + i + 1 : total;
          const int64_t start = causal && window >= 0 ? std::max<int64_t>(0, end - window) : 0;
          std::fill_n(row, start, -std::numeric_limits<T>::infinity());
          std::fill(row + end, row + total, -std::numeric_limits<T>::infinity());
        }));
    std::copy_n(out.data<T>(), out.size(), y.data<T>() + sequence.first * heads * size);
  }
  CHECK_OK(give(context, 1, key_cache->dtype(), std::move(keys)));
  CHECK_OK(give(context, 2, value_cache->dtype(), std::move(values)));
  return give(context, 0, query.dtype(), std::move(y));
}

Status run_paged_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return paged_attention<T>(context, *query); });
}

Status infer_paged_attention(InferContext& context) {
  context.same_as_input(1, kKeyCache);
  if (context.has_input(kValueCache)) context.same_as_input(2, kValueCache);
  const SymShape* query = context.shape(kQuery);
  if (query == nullptr || context.attributes.get_int("v_head_size", 0) != 0) return ok();
  CHECK_OK(expect_rank(context, kQuery, 2));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (heads < 1 || heads > 1 << 20 || kv_heads < 1 || kv_heads > heads)
    return context.error("num_heads and kv_num_heads must be positive, and not huge");
  const int64_t all = heads + 2 * kv_heads;
  set_shape(
      context, 0,
      {(*query)[0], context.has_input(kKey) ? (*query)[1]
                                            : floor_div((*query)[1], SymDim(all)) * SymDim(heads)});
  return ok();
}

}  // namespace

OPERATOR(microsoft_PagedAttention) = {
    .name = "PagedAttention",
    .domain = "com.microsoft",
    .doc = "attention over keys and values in blocks that a table names",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"key_cache", "T_CACHE"},
            {"value_cache", "T_CACHE", kOptional},
            {"cumulative_sequence_length", "S"},
            {"past_seqlens", "S"},
            {"block_table", "S"},
            {"cos_cache", "T", kOptional},
            {"sin_cache", "T", kOptional},
            {"slot_mapping", "S", kOptional},
            {"head_sink", "T", kOptional},
            {"q_norm_weight", "T", kOptional},
            {"k_norm_weight", "T", kOptional},
            {"k_scale", "T_KV_SCALE", kOptional},
            {"v_scale", "T_KV_SCALE", kOptional},
            {"attention_metadata", "S", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"key_cache_out", "T_CACHE", kOptional},
            {"value_cache_out", "T_CACHE", kOptional},
        },
    .attributes =
        {
            {"do_rotary", Attr::kInt},
            {"is_causal", 1},
            {"k_cache_dtype", ""},
            {"k_quant_type", "NONE"},
            {"kv_cache_layout", "SEPARATE"},
            {"kv_num_heads", required(Attr::kInt)},
            {"local_window_size", -1},
            {"num_heads", required(Attr::kInt)},
            {"qk_norm_epsilon", Attr::kFloat},
            {"rotary_interleaved", Attr::kInt},
            {"rotary_offset", Attr::kInt},
            {"scale", Attr::kFloat},
            {"softcap", Attr::kFloat},
            {"v_cache_dtype", ""},
            {"v_head_size", Attr::kInt},
            {"v_quant_type", "NONE"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16}}},
            {"T_CACHE", {{1, kInt8s | kBf16 | kF16 | tensor_of(DType::kFloat8E4M3FN)}}},
            {"T_KV_SCALE", {{1, kF32}}},
            {"S", {{1, kI32}}},
        },
    .infer = infer_paged_attention,
    .reference = run_paged_attention,
};

}  // namespace tombolo::ops
