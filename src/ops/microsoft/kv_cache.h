#pragma once

// The cache of keys and values of GroupQueryAttention: plain, or quantised to 8 or 4 bits.

#include <vector>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// How one of the two caches is quantised.
struct KvQuantization {
  bool used = false;
  Tensor scales;         ///< float: one, or one for each head and feature
  bool channel = false;  ///< per channel
};

/// How many of the last steps a cache for `capacity` of them keeps after `total`, of which each
/// query sees `window` <= capacity (sliding_window_cache): as many as fit, and where they do not,
/// room is made for more than one at once. They lie from the first row on, in order.
inline int64_t resident_steps(int64_t total, int64_t capacity, int64_t window) {
  const int64_t at_once = capacity - window + 1, excess = total - capacity;
  return excess <= 0 ? total : total - at_once * ((excess + at_once - 1) / at_once);
}

struct KvCache {
  bool given = false;
  int64_t window = 0;    ///< steps that a query sees, if no more are kept than the capacity; else 0
  int64_t capacity = 0;  ///< steps that the given cache holds
  int bits = 8;
  const Tensor* key = nullptr;
  const Tensor* value = nullptr;
  KvQuantization key_scale, value_scale;
};

/// Reads past_key and past_value from input `past`, their scales from input `scale`; `now` are the
/// new keys [batch, heads, steps, size].
Result<KvCache> read_kv_cache(const KernelContext& context, size_t past, size_t scale,
                              const Tensor& now);

struct KvPair {
  Tensor key, value;                ///< T [batch, heads, columns, size], as they count
  Tensor stored_key, stored_value;  ///< as they are put out
};

/// Per sequence the first past[b] steps of the cache, then the new ones; zeros up to `columns`.
template <typename T>
Result<KvPair> extend_kv_cache(const KernelContext& context, const KvCache& cache,
                               const Tensor& key, const Tensor& value,
                               const std::vector<int64_t>& past, int64_t columns, DType type);

/// Rows first[b] to first[b] + count[b] of each head of a cache [batch, heads, steps, size], zeros
/// up to `capacity`.
Result<Tensor> keep_steps(const KernelContext& context, const Tensor& cache,
                          const std::vector<int64_t>& first, const std::vector<int64_t>& count,
                          int64_t capacity);

extern template Result<KvPair> extend_kv_cache<float>(const KernelContext&, const KvCache&,
                                                      const Tensor&, const Tensor&,
                                                      const std::vector<int64_t>&, int64_t, DType);
extern template Result<KvPair> extend_kv_cache<double>(const KernelContext&, const KvCache&,
                                                       const Tensor&, const Tensor&,
                                                       const std::vector<int64_t>&, int64_t, DType);

}  // namespace tombolo::ops
