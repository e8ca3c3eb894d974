#include "ops/microsoft/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ops/kernels/cast.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

namespace {

Status read_quantization(const KernelContext& context, const char* attribute, size_t index,
                         const Tensor& now, KvQuantization& result) {
  const Text kind = context.attributes.get_string(attribute, "NONE");
  if (kind == "NONE" || kind.empty()) return ok();
  if (kind != "PER_TENSOR" && kind != "PER_CHANNEL")
    return context.error(std::string(attribute) + " is \"" + std::string(kind) +
                         "\", must be NONE, PER_TENSOR or PER_CHANNEL");
  TRY(const Tensor* scales, context.input(index));
  result.used = true;
  result.channel = kind == "PER_CHANNEL";
  const int64_t wanted = result.channel ? now.dim(1) * now.dim(3) : 1;
  if (scales->size() != wanted)
    return context.error(std::string(attribute) + " is " + std::string(kind) + ", which takes " +
                         std::to_string(wanted) + " scales, not " + to_string(*scales));
  TRY(result.scales, as<float>(context, *scales));
  return ok();
}

/// Bytes or elements of one step of a head in the stored cache.
int64_t stored_width(const KvCache& cache, bool quantised, int64_t size) {
  return quantised && cache.bits == 4 ? (size + 1) / 2 : size;
}

double dequantised(const KvCache& cache, const Tensor& stored, int64_t row, int64_t width,
                   int64_t feature) {
  if (cache.bits != 4) return stored.get_double(row * width + feature);
  const auto byte = static_cast<unsigned>(stored.get_int64(row * width + feature / 2));
  return static_cast<double>((feature % 2 == 0 ? byte & 15 : byte >> 4 & 15)) - 8;
}

void store(const KvCache& cache, Tensor& stored, int64_t row, int64_t width, int64_t feature,
           double value) {
  if (!is_integer(stored.dtype())) {
    stored.set_double(row * width + feature, value);
  } else if (cache.bits != 4) {
    stored.set_int64(row * width + feature,
                     static_cast<int64_t>(std::clamp(std::nearbyint(value), -128.0, 127.0)));
  } else {
    const auto code = static_cast<int64_t>(std::clamp(std::nearbyint(value), -8.0, 7.0)) + 8;
    const int64_t at = row * width + feature / 2;
    const int64_t other = stored.get_int64(at);
    stored.set_int64(at, feature % 2 == 0 ? (other & 0xF0) | code : (other & 0x0F) | code << 4);
  }
}

/// extend_one() of a cache of plain floats.
template <typename T>
Result<Tensor> extend_plain(const KernelContext& context, const KvCache& cache, const Tensor* old,
                            const Tensor& now, const std::vector<int64_t>& past, int64_t columns,
                            DType type, Tensor& stored) {
  const int64_t heads = now.dim(1), steps = now.dim(2), size = now.dim(3);
  TRY(const Tensor from, old == nullptr ? Result<Tensor>(Tensor()) : as<T>(context, *old));
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{now.dim(0), heads, columns, size}}));
  for (int64_t head = 0; head < now.dim(0) * heads; ++head) {
    const int64_t before = past[static_cast<size_t>(head / heads)];
    const int64_t room = std::min(steps, columns - before);
    T* to = out.data<T>() + head * columns * size;
    if (before != 0)
      to = std::copy_n(from.data<T>() + head * cache.capacity * size, before * size, to);
    to = std::copy_n(now.data<T>() + head * steps * size, room * size, to);
    std::fill_n(to, (columns - before - room) * size, T{});
  }
  TRY(stored, cast_tensor(context, out, old != nullptr ? old->dtype() : type));
  return out;
}

template <typename T>
Result<Tensor> extend_one(const KernelContext& context, const KvCache& cache, const Tensor* old,
                          const KvQuantization& scale, const Tensor& now,
                          const std::vector<int64_t>& past, int64_t columns, DType type,
                          Tensor& stored) {
  const int64_t batch = now.dim(0), heads = now.dim(1), steps = now.dim(2), size = now.dim(3);
  if (!scale.used) return extend_plain<T>(context, cache, old, now, past, columns, type, stored);
  const int64_t width = stored_width(cache, true, size);
  const DType kept = old != nullptr ? old->dtype() : cache.bits == 4 ? DType::kUInt8 : DType::kInt8;
  TRY(Tensor plain, context.allocate(dtype_of<T>(), {{batch, heads, columns, size}}));
  std::fill_n(plain.data<T>(), plain.size(), T{});
  TRY(stored, context.allocate(kept, {{batch, heads, columns, width}}));
  std::ranges::fill(stored.mutable_bytes(), std::byte{0});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t before = past[static_cast<size_t>(b)];
      const int64_t head = b * heads + h;
      const auto factor = [&](int64_t i) {
        return static_cast<double>(scale.scales.data<float>()[scale.channel ? h * size + i : 0]);
      };
      T* to = plain.data<T>() + head * columns * size;
      for (int64_t s = 0; s < before; ++s) {
        const int64_t from = head * cache.capacity + s, row = head * columns + s;
        for (int64_t i = 0; i < width; ++i) {
          if (is_integer(kept))
            stored.set_int64(row * width + i, old->get_int64(from * width + i));
          else
            stored.set_double(row * width + i, old->get_double(from * width + i));
        }
        for (int64_t i = 0; i < size; ++i)
          to[s * size + i] = static_cast<T>(dequantised(cache, *old, from, width, i) * factor(i));
      }
      const int64_t room = std::min(steps, columns - before);
      for (int64_t s = 0; s < room; ++s)
        for (int64_t i = 0; i < size; ++i) {
          const T value = now.data<T>()[(head * steps + s) * size + i];
          const int64_t row = head * columns + before + s;
          store(cache, stored, row, width, i, static_cast<double>(value) / factor(i));
          to[(before + s) * size + i] =
              static_cast<T>(dequantised(cache, stored, row, width, i) * factor(i));
        }
    }
  return plain;
}

}  // namespace

Result<KvCache> read_kv_cache(const KernelContext& context, size_t past, size_t scale,
                              const Tensor& now) {
  KvCache cache;
  const int64_t bits = context.attributes.get_int("kv_cache_bit_width", 8);
  CHECK_OK(read_quantization(context, "k_quant_type", scale, now, cache.key_scale));
  CHECK_OK(read_quantization(context, "v_quant_type", scale + 1, now, cache.value_scale));
  if ((cache.key_scale.used || cache.value_scale.used) && bits != 8 && bits != 4)
    return context.error("kv_cache_bit_width is " + std::to_string(bits) + ", must be 8 or 4");
  cache.bits = bits == 4 ? 4 : 8;
  TRY(cache.key, context.optional_input(past));
  TRY(cache.value, context.optional_input(past + 1));
  if ((cache.key == nullptr) != (cache.value == nullptr))
    return context.error("past_key and past_value must be given together");
  cache.given = cache.key != nullptr;
  const bool windowed = context.attributes.get_int("sliding_window_cache", 0) != 0;
  if (windowed && !cache.given)
    return context.error("sliding_window_cache needs past_key and past_value");
  if (!cache.given) return cache;
  if (cache.key->rank() != 4)
    return context.error("past_key must have rank 4, is " + to_string(*cache.key));
  cache.capacity = cache.key->dim(2);
  if (windowed) {
    cache.window = context.attributes.get_int("local_window_size", -1);
    if (cache.window < 1 || cache.window > cache.capacity)
      return context.error(
          "sliding_window_cache needs a local_window_size from 1 to the steps of the cache, which "
          "are " +
          std::to_string(cache.capacity) + "; is " + std::to_string(cache.window));
  }
  for (const bool value : {false, true}) {
    const Tensor& tensor = value ? *cache.value : *cache.key;
    const bool quantised = value ? cache.value_scale.used : cache.key_scale.used;
    CHECK_OK(check_dims(
        context, value ? "past_value" : "past_key", tensor,
        {{now.dim(0), now.dim(1), cache.capacity, stored_width(cache, quantised, now.dim(3))}}));
    const bool fits = quantised
                          ? tensor.dtype() == DType::kInt8 || tensor.dtype() == DType::kUInt8 ||
                                tensor.dtype() == DType::kFloat8E4M3FN
                          : is_float(tensor.dtype());
    if (!fits || (quantised && cache.bits == 4 && !is_integer(tensor.dtype())))
      return context.error("the cache's type does not fit its quantisation: " + to_string(tensor));
  }
  return cache;
}

template <typename T>
Result<KvPair> extend_kv_cache(const KernelContext& context, const KvCache& cache,
                               const Tensor& key, const Tensor& value,
                               const std::vector<int64_t>& past, int64_t columns, DType type) {
  KvPair pair;
  TRY(pair.key, extend_one<T>(context, cache, cache.key, cache.key_scale, key, past, columns, type,
                              pair.stored_key));
  TRY(pair.value, extend_one<T>(context, cache, cache.value, cache.value_scale, value, past,
                                columns, type, pair.stored_value));
  return pair;
}

Result<Tensor> keep_steps(const KernelContext& context, const Tensor& cache,
                          const std::vector<int64_t>& first, const std::vector<int64_t>& count,
                          int64_t capacity) {
  const int64_t heads = cache.dim(1), size = cache.dim(3);
  TRY(Tensor kept, context.allocate(cache.dtype(), {{cache.dim(0), heads, capacity, size}}));
  fill_zero(kept);
  for (int64_t i = 0; i < cache.dim(0) * heads; ++i) {
    const auto b = static_cast<size_t>(i / heads);
    copy_elements(cache, (i * cache.dim(2) + first[b]) * size, kept, i * capacity * size,
                  count[b] * size);
  }
  return kept;
}

template Result<KvPair> extend_kv_cache<float>(const KernelContext&, const KvCache&, const Tensor&,
                                               const Tensor&, const std::vector<int64_t>&, int64_t,
                                               DType);
template Result<KvPair> extend_kv_cache<double>(const KernelContext&, const KvCache&, const Tensor&,
                                                const Tensor&, const std::vector<int64_t>&, int64_t,
                                                DType);

}  // namespace tombolo::ops
