// GroupQueryAttention: what decoders of language models are exported with.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/kv_cache.h"
#include "ops/microsoft/projected.h"
#include "ops/microsoft/rms.h"
#include "ops/microsoft/rotate.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kScoreBias,
  kHeadSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

/// How far each sequence of the batch is.
struct Progress {
  int64_t total = 0;                  ///< the longest, this step included
  bool first = false;                 ///< no past: the prompt
  std::vector<int64_t> totals;        ///< per sequence, this step included
  std::vector<int64_t> past;          ///< steps of the cache that stay
  std::vector<int64_t> before_first;  ///< keys before the first query
  std::vector<int64_t> gone;          ///< of these, how many the cache has let go of
};

Result<Progress> read_progress(const KernelContext& context, int64_t batch, int64_t rows,
                               int64_t added, const KvCache& cache) {
  Progress result;
  TRY(const Tensor* lengths, context.input(kLengths));
  TRY(result.total, scalar_int(context, kTotal, "total_sequence_length"));
  if (lengths->size() != batch)
    return context.error("seqlens_k must have one length for each of " + std::to_string(batch) +
                         " sequences, is " + to_string(*lengths));
  result.first = result.total == rows;
  if (result.total < 1 || result.total > int64_t{1} << 31)
    return context.error("total_sequence_length is " + std::to_string(result.total));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t total = lengths->get_int64(b) + 1;
    int64_t past = 0, before = 0;
    if (cache.given && added == 0) {
      past = total;
      before = result.first ? 0 : total - rows;
    } else if (cache.given && !result.first) {
      past = before = total - rows;
    }
    if (cache.window > 0 && past > 0) past = resident_steps(past, cache.capacity, cache.window);
    if (total < 1 || total > result.total || past < 0 || past > cache.capacity || before < 0 ||
        (!cache.given && total > added))
      return context.error("seqlens_k has the value " + std::to_string(total - 1) + " with " +
                           std::to_string(rows) + " new steps, a cache of " +
                           std::to_string(cache.capacity) + " and a total of " +
                           std::to_string(result.total));
    result.totals.push_back(total);
    result.past.push_back(past);
    result.before_first.push_back(before);
    result.gone.push_back(cache.window > 0 ? before - past : 0);
  }
  return result;
}

/// Each head's features by their root mean square, in place.
template <typename T>
void normalize_heads(Tensor& x, const Tensor& weight, double epsilon) {
  const int64_t size = x.dim(3);
  if (size != 0) normalize_rows(x.data<T>(), x.size() / size, size, weight.data<T>(), epsilon);
}

/// Turns queries and keys by their positions: position_ids, else where the sequence stands.
template <typename T>
Status rotate_parts(const KernelContext& context, Projected& parts, const Progress& progress) {
  TRY(const Tensor cosine, optional_as<T>(context, kCosines));
  TRY(const Tensor sine, optional_as<T>(context, kSines));
  if (absent(cosine) || absent(sine) || cosine.rank() != 2 || cosine.dims() != sine.dims())
    return context.error("do_rotary needs cos_cache and sin_cache, matrices of one shape");
  TRY(const Tensor* positions, context.optional_input(kPositions));
  const int64_t batch = parts.q.dim(0), rows = parts.q.dim(2), size = parts.q.dim(3);
  if (positions != nullptr)
    CHECK_OK(check_dims(context, "position_ids", *positions, {{batch, rows}}));
  if (2 * cosine.dim(1) > size)
    return context.error("cos_cache turns " + std::to_string(2 * cosine.dim(1)) +
                         " features, heads have " + std::to_string(size));
  const bool interleaved = context.attributes.get_int("rotary_interleaved", 0) != 0;
  for (Tensor* x : {&parts.q, &parts.k}) {
    const int64_t heads = x->dim(1), steps = x->dim(2);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t s = 0; s < steps; ++s) {
        const auto at = static_cast<size_t>(b);
        int64_t position = progress.before_first[at] + s;
        // Padding behind the end of a prompt.
        if (progress.first && position >= progress.totals[at]) position = 1;
        if (positions != nullptr) position = positions->get_int64(b * rows + s);
        if (position < 0 || position >= cosine.dim(0))
          return context.error("position " + std::to_string(position) + ", but cos_cache has " +
                               std::to_string(cosine.dim(0)) + " rows");
        const int64_t row = position * cosine.dim(1);
        for (int64_t h = 0; h < heads; ++h)
          rotate_features(x->data<T>() + ((b * heads + h) * steps + s) * size, cosine.dim(1),
                          cosine.data<T>() + row, sine.data<T>() + row, interleaved);
      }
  }
  return ok();
}

template <typename T>
Result<Projected> read_parts(const KernelContext& context, const Tensor& query, int64_t heads,
                             int64_t kv_heads) {
  TRY(const Tensor* key, context.optional_input(kKey));
  TRY(const Tensor* value, context.optional_input(kValue));
  if ((key == nullptr) != (value == nullptr))
    return context.error("key and value must be given together");
  Projected parts;
  if (key != nullptr) {
    TRY(parts.q, split_heads<T>(context, "query", query, heads));
    TRY(parts.k, split_heads<T>(context, "key", *key, kv_heads));
    TRY(parts.v, split_heads<T>(context, "value", *value, kv_heads));
  } else {
    TRY(const Tensor all, split_heads<T>(context, "query", query, heads + 2 * kv_heads));
    Tensor* made[] = {&parts.q, &parts.k, &parts.v};
    const int64_t counts[] = {heads, kv_heads, kv_heads};
    int64_t first = 0;
    for (int i = 0; i < 3; ++i) {
      TRY(*made[i],
          context.allocate(dtype_of<T>(), {{all.dim(0), counts[i], all.dim(2), all.dim(3)}}));
      const int64_t head = all.dim(2) * all.dim(3);
      T* to = made[i]->template data<T>();
      for (int64_t b = 0; b < all.dim(0); ++b)
        to = std::copy_n(all.data<T>() + (b * all.dim(1) + first) * head, counts[i] * head, to);
      first += counts[i];
    }
  }
  const Tensor &q = parts.q, &k = parts.k, &v = parts.v;
  // Without new keys the step attends to a cache that another layer has filled.
  if (k.dims() != v.dims() || k.dim(0) != q.dim(0) || k.dim(3) != q.dim(3) ||
      (k.dim(2) != q.dim(2) && k.dim(2) != 0))
    return context.error("query, key and value do not fit each other: " + to_string(q) + ", " +
                         to_string(k) + ", " + to_string(v));
  return parts;
}

template <typename T>
Status group_query_attention(KernelContext& context, const Tensor& query) {
  const auto& attributes = context.attributes;
  const int64_t heads = attributes.get_int("num_heads", 0);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  if (kv_heads < 1 || heads < 1 || heads > 1 << 20 || heads % kv_heads != 0)
    return context.error("num_heads is " + std::to_string(heads) + ", kv_num_heads is " +
                         std::to_string(kv_heads));
  TRY(Projected parts, read_parts<T>(context, query, heads, kv_heads));
  const int64_t batch = parts.q.dim(0), rows = parts.q.dim(2), size = parts.q.dim(3);
  const int64_t added = parts.k.dim(2);
  TRY(const KvCache caches, read_kv_cache(context, kPastKey, kKeyScale, parts.k));
  const bool windowed = caches.window > 0;
  if (windowed && added == 0)
    return context.error(
        "sliding_window_cache needs new keys: the cache has no longer all old ones");
  const bool causal = attributes.get_int("causal", 1) != 0;
  if (windowed && !causal) return context.error("sliding_window_cache needs causal = 1");
  TRY(const Progress progress, read_progress(context, batch, rows, added, caches));

  TRY(const Tensor query_norm, optional_as<T>(context, kQueryNorm));
  TRY(const Tensor key_norm, optional_as<T>(context, kKeyNorm));
  const auto epsilon = static_cast<double>(attributes.get_float("qk_norm_epsilon", 1e-6f));
  if (!absent(query_norm)) {
    CHECK_OK(check_dims(context, "q_norm_weight", query_norm, {{size}}));
    normalize_heads<T>(parts.q, query_norm, epsilon);
  }
  if (!absent(key_norm)) {
    CHECK_OK(check_dims(context, "k_norm_weight", key_norm, {{size}}));
    normalize_heads<T>(parts.k, key_norm, epsilon);
  }
  if (attributes.get_int("do_rotary", 0) != 0) CHECK_OK(rotate_parts<T>(context, parts, progress));

  int64_t columns = std::max(progress.total, caches.capacity);
  if (windowed) columns = *std::max_element(progress.past.begin(), progress.past.end()) + added;
  TRY(KvPair present,
      extend_kv_cache<T>(context, caches, parts.k, parts.v, progress.past, columns, query.dtype()));
  std::vector<int64_t> lengths = progress.totals;
  for (size_t b = 0; b < lengths.size(); ++b) {
    lengths[b] -= progress.gone[b];
    if (lengths[b] > columns)
      return context.error("seqlens_k goes beyond the cache of " + std::to_string(columns));
  }

  const int64_t window = attributes.get_int("local_window_size", -1);
  TRY(const Tensor bias,
      read_score_bias<T>(context, kScoreBias, batch, heads, rows, progress.total));
  TRY(Tensor sinks, optional_as<T>(context, kHeadSink));
  if (!absent(sinks)) CHECK_OK(check_dims(context, "head_sink", sinks, {{heads}}));
  if (absent(sinks) && attributes.get_int("smooth_softmax", -1) == 1) {
    TRY(sinks, context.allocate(dtype_of<T>(), {{heads}}));
    std::fill_n(sinks.data<T>(), heads, T{});
  }
  const int64_t mode = attributes.get_int("qk_output", 0);
  const bool wants_scores = context.wants_output(3) && mode != 0;
  if (wants_scores && windowed)
    return unsupported("qk_output of GroupQueryAttention with sliding_window_cache");
  Tensor kept;
  Attend<T> arguments{.q = parts.q,
                      .k = present.key,
                      .v = present.value,
                      .scale = attention_scale(context, size),
                      .softcap = static_cast<double>(attributes.get_float("softcap", 0)),
                      .lengths = lengths,
                      .sinks = absent(sinks) ? nullptr : sinks.data<T>(),
                      .keep_after = mode == 2};
  if (wants_scores) {
    TRY(kept, context.allocate(dtype_of<T>(), {{batch, heads, rows, columns}}));
    arguments.kept = &kept;
  }
  const ScoreBias<T> add{{}, bias, rows, progress.total};
  TRY(Tensor y, attend<T>(context, arguments, [&](int64_t b, int64_t h, int64_t i, T* row) {
        const auto at = static_cast<size_t>(b);
        const int64_t gone = progress.gone[at], total = lengths[at];
        // Its columns are those of all steps.
        if (!absent(bias)) add(b, h, i, row, gone, std::min(progress.total, gone + columns));
        const int64_t next = progress.before_first[at] - gone + i + 1;
        const int64_t end = causal ? std::min(next, total) : total;
        const int64_t start = causal && window >= 0 ? std::max<int64_t>(0, end - window) : 0;
        std::fill_n(row, start, -std::numeric_limits<T>::infinity());
        std::fill(row + end, row + columns, -std::numeric_limits<T>::infinity());
      }));
  if (wants_scores) {
    TRY(Tensor scores, context.allocate(dtype_of<T>(), {{batch, heads, rows, progress.total}}));
    for (int64_t i = 0; i < batch * heads * rows; ++i)
      for (int64_t j = 0; j < progress.total; ++j) {
        const T score = kept.data<T>()[i * columns + j];
        // What does not count is 0 in the output, before softmax as after it.
        scores.data<T>()[i * progress.total + j] =
            score == -std::numeric_limits<T>::infinity() ? T{} : score;
      }
    CHECK_OK(give(context, 3, query.dtype(), std::move(scores)));
  }
  if (windowed) {
    std::vector<int64_t> first, count;
    for (size_t b = 0; b < lengths.size(); ++b) {
      count.push_back(resident_steps(progress.totals[b], caches.capacity, caches.window));
      first.push_back(lengths[b] - count[b]);
    }
    for (Tensor* stored : {&present.stored_key, &present.stored_value}) {
      TRY(*stored, keep_steps(context, *stored, first, count, caches.capacity));
    }
  }
  if (context.wants_output(1)) context.set_output(1, std::move(present.stored_key));
  if (context.wants_output(2)) context.set_output(2, std::move(present.stored_value));
  return give(context, 0, query.dtype(), std::move(y));
}

Status run_group_query_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return group_query_attention<T>(context, *query); });
}

Status infer_group_query_attention(InferContext& context) {
  const SymShape* query = context.shape(kQuery);
  const SymShape* past = context.shape(kPastKey);
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (heads < 1 || heads > 1 << 20 || kv_heads < 1 || heads % kv_heads != 0)
    return context.error("num_heads must be a multiple of kv_num_heads");
  const DType cache = context.has_input(kPastKey) ? context.elem(kPastKey) : context.elem(kQuery);
  for (size_t i = 1; i <= 2; ++i) context.set_tensor(i, cache);
  if (query == nullptr) return ok();
  CHECK_OK(expect_rank(context, kQuery, 3));
  const bool packed = !context.has_input(kKey);
  const SymDim size = floor_div((*query)[2], SymDim(packed ? heads + 2 * kv_heads : heads));
  set_shape(context, 0, {(*query)[0], (*query)[1], packed ? size * SymDim(heads) : (*query)[2]});
  const std::optional<SymDim> total = scalar_of(context, kTotal);
  SymDim length, stored = size;
  if (context.has_input(kPastKey)) {
    if (past != nullptr && past->size() == 4) {
      stored = (*past)[3];
      const bool windowed = context.attributes.get_int("sliding_window_cache", 0) != 0;
      if (windowed)
        length = (*past)[2];
      else if (total)
        length = max((*past)[2], *total);
    } else {
      stored = SymDim();
    }
  } else if (total) {
    length = *total;
  }
  for (size_t i = 1; i <= 2; ++i)
    context.set_tensor(i, cache, {(*query)[0], SymDim(kv_heads), length, stored});
  context.set_tensor(3, context.elem(kQuery),
                     {(*query)[0], SymDim(heads), (*query)[1], total.value_or(SymDim())});
  return ok();
}

}  // namespace

OPERATOR(microsoft_GroupQueryAttention) = {
    .name = "GroupQueryAttention",
    .domain = "com.microsoft",
    .doc = "causal attention with grouped heads, rotation, cache, window, softcap and sinks",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"past_key", "T_CACHE", kOptional},
            {"past_value", "T_CACHE", kOptional},
            {"seqlens_k", "M"},
            {"total_sequence_length", "M"},
            {"cos_cache", "T", kOptional},
            {"sin_cache", "T", kOptional},
            {"position_ids", "tensor(int64)", kOptional},
            {"attention_bias", "T", kOptional},
            {"head_sink", "T", kOptional},
            {"k_scale", "T_KV_SCALE", kOptional},
            {"v_scale", "T_KV_SCALE", kOptional},
            {"q_norm_weight", "T", kOptional},
            {"k_norm_weight", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_key", "T_CACHE", kOptional},
            {"present_value", "T_CACHE", kOptional},
            {"output_qk", "T", kOptional},
        },
    .attributes =
        {
            {"causal", 1},
            {"do_rotary", Attr::kInt},
            {"k_quant_type", "NONE"},
            {"kv_cache_bit_width", Attr::kInt},
            {"kv_num_heads", required(Attr::kInt)},
            {"local_window_size", -1},
            {"num_heads", required(Attr::kInt)},
            {"qk_norm_epsilon", 1e-06f},
            {"qk_output", 0},
            {"rotary_interleaved", Attr::kInt},
            {"scale", Attr::kFloat},
            {"sliding_window_cache", 0},
            {"smooth_softmax", -1},
            {"softcap", Attr::kFloat},
            {"v_quant_type", "NONE"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"T_CACHE", {{1, kInt8s | kBf16 | kF16 | kF32 | tensor_of(DType::kFloat8E4M3FN)}}},
            {"T_KV_SCALE", {{1, kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_group_query_attention,
    .reference = run_group_query_attention,
};

}  // namespace tombolo::ops
