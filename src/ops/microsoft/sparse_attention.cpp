// SparseAttention: grouped heads that see blocks of keys which a layout in compressed rows names.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/projected.h"
#include "ops/microsoft/rotate.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Which blocks of keys a block of queries sees, for each layout.
struct BlockLayout {
  int64_t layouts = 0, blocks = 0, block = 1;
  std::vector<bool> seen;  ///< [layouts, blocks, blocks]

  bool sees(int64_t head, int64_t query, int64_t key) const {
    const int64_t row = query / block, column = key / block;
    if (row >= blocks || column >= blocks) return false;
    return seen[static_cast<size_t>((head % layouts * blocks + row) * blocks + column)];
  }
};

Result<BlockLayout> read_layout(const KernelContext& context) {
  TRY(const Tensor* rows, context.input(5));
  TRY(const Tensor* columns, context.input(6));
  BlockLayout layout;
  layout.block = context.attributes.get_int("sparse_block_size", 0);
  if (layout.block < 1 || rows->rank() != 2 || columns->rank() != 2 || rows->dim(0) < 1 ||
      rows->dim(1) < 1 || columns->dim(0) != rows->dim(0))
    return context.error(
        "block_row_indices and block_col_indices must be matrices of one height, "
        "are " +
        to_string(*rows) + " and " + to_string(*columns));
  layout.layouts = rows->dim(0), layout.blocks = rows->dim(1) - 1;
  if (layout.blocks > 1 << 14) return context.error("a layout of more than 16384 blocks");
  const int64_t most = columns->dim(1);
  layout.seen.resize(static_cast<size_t>(layout.layouts * layout.blocks * layout.blocks));
  for (int64_t l = 0; l < layout.layouts; ++l)
    for (int64_t row = 0; row < layout.blocks; ++row) {
      const int64_t begin = rows->get_int64(l * (layout.blocks + 1) + row);
      const int64_t end = rows->get_int64(l * (layout.blocks + 1) + row + 1);
      if (begin < 0 || end < begin || end > most)
        return context.error("block_row_indices has the value " + std::to_string(end) +
                             ", there are " + std::to_string(most) + " columns");
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = columns->get_int64(l * most + i);
        if (column < 0 || column >= layout.blocks)
          return context.error("block_col_indices has the value " + std::to_string(column) +
                               ", there are " + std::to_string(layout.blocks) + " blocks");
        layout.seen[static_cast<size_t>((l * layout.blocks + row) * layout.blocks + column)] = true;
      }
    }
  return layout;
}

template <typename T>
Status sparse_attention(KernelContext& context, const Tensor& query) {
  const auto& attributes = context.attributes;
  const int64_t heads = attributes.get_int("num_heads", 0);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  TRY(const Tensor* key, context.optional_input(1));
  TRY(const Tensor* value, context.optional_input(2));
  TRY(const Tensor* lengths, context.input(8));
  TRY(const int64_t longest, scalar_int(context, 7, "total_sequence_length"));
  if (kv_heads < 1 || heads < 1 || heads > 1 << 20 || heads % kv_heads != 0)
    return context.error("num_heads is " + std::to_string(heads) + ", kv_num_heads is " +
                         std::to_string(kv_heads));
  if ((key == nullptr) != (value == nullptr))
    return context.error("key and value must be given together");
  Tensor q, k, v;
  if (key != nullptr) {
    TRY(q, split_heads<T>(context, "query", query, heads));
    TRY(k, split_heads<T>(context, "key", *key, kv_heads));
    TRY(v, split_heads<T>(context, "value", *value, kv_heads));
  } else {
    const int64_t all = heads + 2 * kv_heads;
    if (query.rank() != 3 || query.dim(2) % all != 0)
      return context.error("a query alone must be [batch, steps, " + std::to_string(all) +
                           " * size], is " + to_string(query));
    const int64_t size = query.dim(2) / all;
    TRY(const Tensor in, as<T>(context, query));
    Tensor* const made[] = {&q, &k, &v};
    int64_t first = 0;
    for (int i = 0; i < 3; ++i) {
      const int64_t count = i == 0 ? heads : kv_heads;
      TRY(*made[i], context.allocate(dtype_of<T>(), {{query.dim(0), count, query.dim(1), size}}));
      T* to = made[i]->template data<T>();
      for (int64_t b = 0; b < query.dim(0); ++b)
        for (int64_t h = first; h < first + count; ++h)
          for (int64_t s = 0; s < query.dim(1); ++s)
            to = std::copy_n(in.data<T>() + (b * query.dim(1) + s) * query.dim(2) + h * size, size,
                             to);
      first += count;
    }
  }
  const int64_t batch = q.dim(0), steps = q.dim(2), size = q.dim(3);
  CHECK_OK(check_dims(context, "the keys", k, {{batch, kv_heads, steps, size}}));
  CHECK_OK(check_dims(context, "the values", v, {{batch, kv_heads, steps, size}}));
  CHECK_OK(check_dims(context, "key_total_sequence_lengths", *lengths, {{batch}}));
  TRY(const Tensor past_key, optional_as<T>(context, 3));
  TRY(const Tensor past_value, optional_as<T>(context, 4));
  if (absent(past_key) || absent(past_value) || past_key.rank() != 4)
    return context.error("past_key and past_value must be caches of rank 4");
  const int64_t room = past_key.dim(2);
  CHECK_OK(check_dims(context, "past_key", past_key, {{batch, kv_heads, room, size}}));
  CHECK_OK(check_dims(context, "past_value", past_value, {{batch, kv_heads, room, size}}));
  TRY(const BlockLayout layout, read_layout(context));
  std::vector<int64_t> totals, past;
  const bool prompt = longest == steps;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t total = lengths->get_int64(b), before = prompt ? 0 : total - steps;
    if (total < 1 || total > longest || before < 0 || before + steps > room || total > room)
      return context.error("key_total_sequence_lengths has the value " + std::to_string(total) +
                           " with " + std::to_string(steps) + " new steps, a cache of " +
                           std::to_string(room) + " and a total of " + std::to_string(longest));
    totals.push_back(total);
    past.push_back(before);
  }
  if (attributes.get_int("do_rotary", 0) != 0) {
    TRY(const Tensor cosine, optional_as<T>(context, 9));
    TRY(const Tensor sine, optional_as<T>(context, 10));
    if (absent(cosine) || absent(sine) || cosine.rank() != 2 || cosine.dims() != sine.dims() ||
        2 * cosine.dim(1) > size || cosine.dim(0) < longest)
      return context.error("do_rotary needs cos_cache and sin_cache for " +
                           std::to_string(longest) + " positions");
    const bool interleaved = attributes.get_int("rotary_interleaved", 0) != 0;
    for (Tensor* x : {&q, &k})
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < x->dim(1); ++h)
          for (int64_t s = 0; s < steps; ++s) {
            const auto at = static_cast<size_t>(b);
            int64_t position = past[at] + s;
            if (prompt && position >= totals[at]) position = std::min<int64_t>(1, longest - 1);
            rotate_features(x->data<T>() + ((b * x->dim(1) + h) * steps + s) * size, cosine.dim(1),
                            cosine.data<T>() + position * cosine.dim(1),
                            sine.data<T>() + position * cosine.dim(1), interleaved);
          }
  }
  TRY(Tensor keys, past_key.clone());
  TRY(Tensor values, past_value.clone());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < kv_heads; ++h) {
      const int64_t head = b * kv_heads + h,
                    to = (head * room + past[static_cast<size_t>(b)]) * size;
      std::copy_n(k.data<T>() + head * steps * size, steps * size, keys.data<T>() + to);
      std::copy_n(v.data<T>() + head * steps * size, steps * size, values.data<T>() + to);
    }
  const Attend<T> arguments{
      .q = q, .k = keys, .v = values, .scale = attention_scale(context, size), .lengths = totals};
  TRY(Tensor y, attend<T>(context, arguments, [&](int64_t b, int64_t h, int64_t i, T* row) {
        const auto at = static_cast<size_t>(b);
        const int64_t place = past[at] + i;
        for (int64_t j = 0; j < totals[at]; ++j)
          if (j > place || !layout.sees(h, place, j)) row[j] = -std::numeric_limits<T>::infinity();
      }));
  CHECK_OK(give(context, 1, query.dtype(), std::move(keys)));
  CHECK_OK(give(context, 2, query.dtype(), std::move(values)));
  return give(context, 0, query.dtype(), std::move(y));
}

Status run_sparse_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query,
                    [&]<typename T>() { return sparse_attention<T>(context, *query); });
}

Status infer_sparse_attention(InferContext& context) {
  context.same_as_input(1, 3);
  context.same_as_input(2, 4);
  const SymShape* query = context.shape(0);
  if (query == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (heads < 1 || heads > 1 << 20 || kv_heads < 1 || kv_heads > heads)
    return context.error("num_heads and kv_num_heads must be positive, and not huge");
  const int64_t all = heads + 2 * kv_heads;
  set_shape(
      context, 0,
      {(*query)[0], (*query)[1],
       context.has_input(1) ? (*query)[2] : floor_div((*query)[2], SymDim(all)) * SymDim(heads)});
  return ok();
}

}  // namespace

OPERATOR(microsoft_SparseAttention) = {
    .name = "SparseAttention",
    .domain = "com.microsoft",
    .doc = "causal attention over blocks of keys that a layout names",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"past_key", "T"},
            {"past_value", "T"},
            {"block_row_indices", "M"},
            {"block_col_indices", "M"},
            {"total_sequence_length", "M"},
            {"key_total_sequence_lengths", "M"},
            {"cos_cache", "T", kOptional},
            {"sin_cache", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_key", "T"},
            {"present_value", "T"},
        },
    .attributes =
        {
            {"do_rotary", Attr::kInt},
            {"kv_num_heads", required(Attr::kInt)},
            {"num_heads", required(Attr::kInt)},
            {"rotary_interleaved", Attr::kInt},
            {"scale", Attr::kFloat},
            {"sparse_block_size", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"M", {{1, kI32}}},
        },
    .infer = infer_sparse_attention,
    .reference = run_sparse_attention,
};

}  // namespace tombolo::ops
