// Attention to keys that somebody else selected (DynamicSparseAttention), and the selection
// (SparseAttentionIndexer).

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/rms.h"
#include "ops/microsoft/rotate.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status normalise_heads(const KernelContext& context, Tensor& x, size_t weight_input) {
  TRY(const Tensor weight, optional_as<T>(context, weight_input));
  if (absent(weight)) return ok();
  const int64_t size = x.dim(3);
  CHECK_OK(check_dims(context, "a norm's weight", weight, {{size}}));
  const auto epsilon = static_cast<double>(context.attributes.get_float("qk_norm_epsilon", 1e-6f));
  if (size != 0) normalize_rows(x.data<T>(), x.size() / size, size, weight.data<T>(), epsilon);
  return ok();
}

/// Columns [from, to) of the last axis of a rank 3 tensor.
template <typename T>
Result<Tensor> columns(const KernelContext& context, const Tensor& x, int64_t from, int64_t to) {
  const int64_t rows = x.dim(0) * x.dim(1), width = x.dim(2);
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{x.dim(0), x.dim(1), to - from}}));
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.data<T>() + row * width + from, to - from, out.data<T>() + row * (to - from));
  return out;
}

template <typename T>
Status dynamic_sparse_attention(KernelContext& context, const Tensor& given) {
  enum : size_t { kKey = 1, kValue, kPastKey, kPastValue, kAuxKey, kAuxValue, kIndices, kCounts };
  enum : size_t { kLengths = 9, kTotal, kCosines, kSines, kPositions, kQNorm, kKNorm, kSink };
  const AttributeReader& attributes = context.attributes;
  const int64_t heads = attributes.get_int("num_heads", 0);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  const bool local =
      attributes.get_string("attention_mode", "selected_only") == "local_plus_selected";
  const bool aux = attributes.get_string("selected_kv_source", "main") == "auxiliary";
  const int64_t window = attributes.get_int("local_window_size", -1);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || given.rank() != 3)
    return context.error("num_heads " + std::to_string(heads) + " and kv_num_heads " +
                         std::to_string(kv_heads) + " do not fit query " + to_string(given));
  if (local != aux || (local && window < 1) || attributes.get_int("is_causal", 1) != 1)
    return context.error(
        "attention_mode, selected_kv_source, local_window_size and is_causal do "
        "not go together");
  TRY(const Tensor query, as<T>(context, given));
  TRY(Tensor key, optional_as<T>(context, kKey));
  TRY(Tensor value, optional_as<T>(context, kValue));
  const int64_t batch = query.dim(0), steps = query.dim(1);
  Tensor asked = query;
  int64_t size = 0;
  if (absent(key) && absent(value)) {
    size = query.dim(2) / (heads + 2 * kv_heads);
    if (size < 1 || query.dim(2) != size * (heads + 2 * kv_heads))
      return context.error("packed query " + to_string(given) + " does not fit the heads");
    TRY(asked, columns<T>(context, query, 0, heads * size));
    TRY(key, columns<T>(context, query, heads * size, (heads + kv_heads) * size));
    TRY(value, columns<T>(context, query, (heads + kv_heads) * size, query.dim(2)));
  } else {
    size = query.dim(2) / heads;
    if (absent(key) || absent(value) || query.dim(2) % heads != 0)
      return context.error("query " + to_string(given) + " needs key and value, or neither");
    CHECK_OK(check_dims(context, "key", key, {{batch, steps, kv_heads * size}}));
    CHECK_OK(check_dims(context, "value", value, {{batch, steps, kv_heads * size}}));
  }
  TRY(Tensor q, split_heads<T>(context, "query", asked, heads));
  TRY(Tensor k, split_heads<T>(context, "key", key, kv_heads));
  TRY(const Tensor v, split_heads<T>(context, "value", value, kv_heads));
  CHECK_OK(normalise_heads<T>(context, q, kQNorm));
  CHECK_OK(normalise_heads<T>(context, k, kKNorm));
  // How far each sequence is.
  TRY(const Tensor* lengths, context.input(kLengths));
  TRY(const int64_t longest, scalar_int(context, kTotal, "total_sequence_length"));
  CHECK_OK(check_dims(context, "seqlens_k", *lengths, {{batch}}));
  TRY(const Tensor past_key, optional_as<T>(context, kPastKey));
  TRY(const Tensor past_value, optional_as<T>(context, kPastValue));
  int64_t capacity = 0;
  for (const Tensor* past : {&past_key, &past_value}) {
    if (absent(*past)) continue;
    capacity = past->rank() == 4 ? past->dim(2) : 0;
    CHECK_OK(check_dims(context, "a cache", *past, {{batch, kv_heads, capacity, size}}));
  }
  if (longest < 1 || longest > int64_t{1} << 31 || absent(past_key) != absent(past_value))
    return context.error("total_sequence_length is " + std::to_string(longest));
  const int64_t room = std::max(capacity, longest);
  std::vector<int64_t> totals;
  for (int64_t b = 0; b < batch; ++b) {
    totals.push_back(lengths->get_int64(b) + 1);
    if (totals.back() < steps || totals.back() > longest || totals.back() - steps > capacity)
      return context.error("seqlens_k has the value " + std::to_string(totals.back() - 1));
  }
  if (attributes.get_int("do_rotary", 0) != 0) {
    TRY(const Tensor cosine, optional_as<T>(context, kCosines));
    TRY(const Tensor sine, optional_as<T>(context, kSines));
    TRY(const Tensor* positions, context.optional_input(kPositions));
    const int64_t offset = attributes.get_int("rotary_offset", 0);
    if (absent(cosine) || absent(sine) || cosine.rank() != 2 || cosine.dims() != sine.dims() ||
        offset < 0 || offset > size || 2 * cosine.dim(1) > size - offset)
      return context.error("do_rotary needs cos_cache and sin_cache that fit the heads");
    if (positions != nullptr)
      CHECK_OK(check_dims(context, "position_ids", *positions, {{batch, steps}}));
    const bool interleaved = attributes.get_int("rotary_interleaved", 0) != 0;
    for (Tensor* x : {&q, &k})
      for (int64_t i = 0; i < x->dim(0) * x->dim(1) * steps; ++i) {
        const int64_t b = i / steps / x->dim(1), s = i % steps;
        const int64_t position = positions != nullptr ? positions->get_int64(b * steps + s)
                                                      : totals[static_cast<size_t>(b)] - steps + s;
        if (position < 0 || position >= cosine.dim(0))
          return context.error("position " + std::to_string(position) + ", but cos_cache has " +
                               std::to_string(cosine.dim(0)) + " rows");
        const int64_t row = position * cosine.dim(1);
        rotate_features(x->data<T>() + i * size + offset, cosine.dim(1), cosine.data<T>() + row,
                        sine.data<T>() + row, interleaved);
      }
  }
  // The caches, with the new steps behind what each sequence has.
  Tensor caches[2];
  for (size_t which = 0; which < 2; ++which) {
    const Tensor& past = which == 0 ? past_key : past_value;
    const Tensor& now = which == 0 ? k : v;
    TRY(caches[which], context.allocate(dtype_of<T>(), {{batch, kv_heads, room, size}}));
    std::fill_n(caches[which].data<T>(), caches[which].size(), T{});
    for (int64_t i = 0; i < batch * kv_heads; ++i) {
      T* to = caches[which].data<T>() + i * room * size;
      if (!absent(past)) std::copy_n(past.data<T>() + i * capacity * size, capacity * size, to);
      const int64_t first = totals[static_cast<size_t>(i / kv_heads)] - steps;
      std::copy_n(now.data<T>() + i * steps * size, steps * size, to + first * size);
    }
  }
  TRY(const Tensor aux_key, optional_as<T>(context, kAuxKey));
  TRY(Tensor aux_value, optional_as<T>(context, kAuxValue));
  int64_t aux_length = 0;
  if (aux) {
    if (absent(aux_key)) return context.error("auxiliary_key is missing");
    aux_length = aux_key.rank() == 4 ? aux_key.dim(2) : 0;
    if (absent(aux_value) && attributes.get_int("auxiliary_kv_shared", 0) != 0) aux_value = aux_key;
    if (absent(aux_value)) return context.error("auxiliary_value is missing");
    CHECK_OK(check_dims(context, "auxiliary_key", aux_key, {{batch, kv_heads, aux_length, size}}));
    CHECK_OK(
        check_dims(context, "auxiliary_value", aux_value, {{batch, kv_heads, aux_length, size}}));
  }
  TRY(const Tensor* indices, context.input(kIndices));
  TRY(const Tensor* counts, context.input(kCounts));
  const int64_t width = indices->rank() == 2 ? indices->dim(1) : -1;
  CHECK_OK(check_dims(context, "selected_counts", *counts, {{batch * steps}}));
  if (width < 0) return context.error("selected_indices is " + to_string(*indices));
  CHECK_OK(check_dims(context, "selected_indices", *indices, {{batch * steps, width}}));
  TRY(const Tensor sink, optional_as<T>(context, kSink));
  if (!absent(sink)) CHECK_OK(check_dims(context, "head_sink", sink, {{heads}}));
  const T none{};
  const bool smooth = attributes.get_int("smooth_softmax", 0) != 0;
  const double scale = attention_scale(context, size);
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{batch, steps, heads * size}}));
  for (int64_t t = 0; t < batch * steps; ++t) {
    const int64_t b = t / steps, count = counts->get_int64(t);
    const int64_t now = totals[static_cast<size_t>(b)] - steps + t % steps;
    if (count < 0 || count > width)
      return context.error("selected_counts has the value " + std::to_string(count));
    // Places in the main cache; those of the auxiliary one are below zero.
    std::vector<int64_t> places;
    for (int64_t j = std::max<int64_t>(0, now - window + 1); local && j <= now; ++j)
      places.push_back(j);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t index = indices->get_int64(t * width + j);
      if (index < 0 || index >= (aux ? aux_length : totals[static_cast<size_t>(b)]))
        return context.error("selected_indices has the value " + std::to_string(index));
      if (aux)
        places.push_back(-1 - index);
      else if (index <= now)
        places.push_back(index);
    }
    std::vector<T> row(places.size());
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kv = b * kv_heads + h / (heads / kv_heads);
      const auto line = [&](const Tensor& main, const Tensor& other, int64_t place) {
        return place >= 0 ? main.data<T>() + (kv * room + place) * size
                          : other.data<T>() + (kv * aux_length - 1 - place) * size;
      };
      const T* from = q.data<T>() + ((b * heads + h) * steps + t % steps) * size;
      for (size_t j = 0; j < places.size(); ++j) {
        const T* with = line(caches[0], aux_key, places[j]);
        double sum = 0;
        for (int64_t i = 0; i < size; ++i)
          sum += static_cast<double>(from[i]) * static_cast<double>(with[i]);
        row[j] = static_cast<T>(sum * scale);
      }
      const T* extra = !absent(sink) ? sink.data<T>() + h : smooth ? &none : nullptr;
      attention_softmax<T>(row.data(), static_cast<int64_t>(row.size()), extra);
      for (int64_t i = 0; i < size; ++i) {
        double sum = 0;
        for (size_t j = 0; j < places.size(); ++j)
          sum += static_cast<double>(row[j]) *
                 static_cast<double>(line(caches[1], aux_value, places[j])[i]);
        y.data<T>()[t * heads * size + h * size + i] = static_cast<T>(sum);
      }
    }
  }
  CHECK_OK(give(context, 0, given.dtype(), std::move(y)));
  CHECK_OK(give(context, 1, given.dtype(), std::move(caches[0])));
  return give(context, 2, given.dtype(), std::move(caches[1]));
}

Status run_dynamic_sparse_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return dynamic_sparse_attention<T>(context, *query); });
}

Status infer_dynamic_sparse_attention(InferContext& context) {
  const SymShape* query = context.shape(0);
  const SymShape* past = context.shape(3);
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (query == nullptr || query->size() != 3 || heads < 1 || kv_heads < 1 || heads > kMost ||
      kv_heads > kMost)
    return ok();
  const bool packed = !context.has_input(1);
  const SymDim size = floor_div((*query)[2], SymDim(packed ? heads + 2 * kv_heads : heads));
  set_shape(context, 0, {(*query)[0], (*query)[1], SymDim(heads) * size});
  SymDim room;
  const auto total = context.constant_ints(10);
  if (total && total->size() == 1) {
    if (past == nullptr) room = SymDim((*total)[0]);
    if (past != nullptr && past->size() == 4 && (*past)[2].is_value())
      room = SymDim(std::max((*past)[2].value(), (*total)[0]));
  }
  for (const size_t output : {size_t{1}, size_t{2}})
    set_shape(context, output, {(*query)[0], SymDim(kv_heads), room, size});
  return ok();
}

constexpr TypeSet kHalfs = kF32 | kF16 | kBf16;

}  // namespace

OPERATOR(microsoft_DynamicSparseAttention) = {
    .name = "DynamicSparseAttention",
    .domain = "com.microsoft",
    .doc = "attention to keys that were selected, and to a window of neighbours",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"past_key", "T", kOptional},
            {"past_value", "T", kOptional},
            {"auxiliary_key", "T", kOptional},
            {"auxiliary_value", "T", kOptional},
            {"selected_indices", "M"},
            {"selected_counts", "M"},
            {"seqlens_k", "M"},
            {"total_sequence_length", "M"},
            {"cos_cache", "T", kOptional},
            {"sin_cache", "T", kOptional},
            {"position_ids", "tensor(int64)", kOptional},
            {"q_norm_weight", "T", kOptional},
            {"k_norm_weight", "T", kOptional},
            {"head_sink", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_key", "T", kOptional},
            {"present_value", "T", kOptional},
        },
    .attributes =
        {
            {"attention_mode", "selected_only"},
            {"auxiliary_kv_shared", 0},
            {"do_rotary", 0},
            {"is_causal", 1},
            {"kv_num_heads", required(Attr::kInt)},
            {"local_window_size", -1},
            {"num_heads", required(Attr::kInt)},
            {"qk_norm_epsilon", 1e-6f},
            {"rotary_interleaved", 0},
            {"rotary_offset", 0},
            {"scale", Attr::kFloat},
            {"selected_kv_source", "main"},
            {"smooth_softmax", 0},
        },
    .types = {{"T", {{1, kHalfs}}}, {"M", {{1, kI32}}}},
    .infer = infer_dynamic_sparse_attention,
    .reference = run_dynamic_sparse_attention,
};

}  // namespace tombolo::ops
