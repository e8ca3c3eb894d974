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

struct KvCache {
  bool given = false;
  bool windowed = false;
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

extern template Result<KvPair> extend_kv_cache<float>(const KernelContext&, const KvCache&,
                                                      const Tensor&, const Tensor&,
                                                      const std::vector<int64_t>&, int64_t, DType);
extern template Result<KvPair> extend_kv_cache<double>(const KernelContext&, const KvCache&,
                                                       const Tensor&, const Tensor&,
                                                       const std::vector<int64_t>&, int64_t, DType);

}  // namespace tombolo::ops
