#pragma once

// What the attention operators share: heads as [batch, heads, steps, size] tensors, the cache in
// front of them, masks in the forms that BERT and GPT exports use, and the attention itself.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"

namespace tombolo::ops {

/// Splits the last axis of [batch, steps, heads * size]; adds bias[offset...] to it when given.
template <typename T>
Result<Tensor> split_heads(const KernelContext& context, const char* name, const Tensor& x,
                           int64_t heads, const Tensor& bias = {}, int64_t offset = 0) {
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0)
    return context.error(std::string(name) + " must be [batch, steps, " + std::to_string(heads) +
                         " * size], is " + to_string(x));
  const int64_t batch = x.dim(0), steps = x.dim(1), width = x.dim(2), size = width / heads;
  if (!absent(bias) && (bias.rank() != 1 || bias.dim(0) < offset + width))
    return context.error("the bias does not cover " + std::string(name) + ": " + to_string(bias));
  TRY(const Tensor in, as<T>(context, x));
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{batch, heads, steps, size}}));
  T* to = out.data<T>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < steps; ++s)
        for (int64_t i = 0; i < size; ++i) {
          const int64_t column = h * size + i;
          *to = in.data<T>()[(b * steps + s) * width + column];
          if (!absent(bias)) *to += bias.data<T>()[offset + column];
          ++to;
        }
  return out;
}

/// Part `which` of [batch, steps, heads, parts, size] as [batch, heads, steps, size].
template <typename T>
Result<Tensor> packed_heads(const KernelContext& context, const Tensor& x, int64_t which,
                            const Tensor& bias = {}) {
  const int64_t batch = x.dim(0), steps = x.dim(1), heads = x.dim(2), parts = x.dim(3);
  const int64_t size = x.dim(4), width = heads * size;
  if (!absent(bias) && (bias.rank() != 1 || bias.dim(0) < (which + 1) * width))
    return context.error("the bias does not cover the packed heads: " + to_string(bias));
  TRY(const Tensor in, as<T>(context, x));
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{batch, heads, steps, size}}));
  T* to = out.data<T>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t s = 0; s < steps; ++s)
        for (int64_t i = 0; i < size; ++i) {
          *to = in.data<T>()[(((b * steps + s) * heads + h) * parts + which) * size + i];
          if (!absent(bias)) *to += bias.data<T>()[which * width + h * size + i];
          ++to;
        }
  return out;
}

/// [batch, heads, past + steps, size]: the first `past` steps of the cache [batch, heads, length,
/// size], then `now`; `room` steps in all when that is more, the rest zeros.
template <typename T>
Result<Tensor> append_heads(const KernelContext& context, const char* name, const Tensor& cache,
                            int64_t past, const Tensor& now, int64_t room = 0) {
  const int64_t batch = now.dim(0), heads = now.dim(1), steps = now.dim(2), size = now.dim(3);
  const int64_t length = absent(cache) ? 0 : cache.rank() == 4 ? cache.dim(2) : -1;
  if (length < 0 || past < 0 || past > length)
    return context.error(std::string(name) + " cannot hold " + std::to_string(past) +
                         " steps, is " + to_string(cache));
  if (!absent(cache)) CHECK_OK(check_dims(context, name, cache, {{batch, heads, length, size}}));
  const int64_t total = std::max(past + steps, room);
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{batch, heads, total, size}}));
  T* to = out.data<T>();
  for (int64_t i = 0; i < batch * heads; ++i) {
    if (past != 0) to = std::copy_n(cache.data<T>() + i * length * size, past * size, to);
    to = std::copy_n(now.data<T>() + i * steps * size, steps * size, to);
    to = std::fill_n(to, (total - past - steps) * size, T{});
  }
  return out;
}

/// Scores between `q` [batch, heads, rows, size] and `k` [batch, kv_heads, columns, size], softmax,
/// sums of `v` [batch, kv_heads, columns, value size].
template <typename T>
struct Attend {
  Tensor q, k, v;
  double scale = 1;
  double softcap = 0;
  std::vector<int64_t> lengths;  ///< keys that count, per batch; all when empty
  const T* sinks = nullptr;      ///< per head: one more score, without a value
  bool keep_after = false;       ///< `kept` holds the scores after softmax, else before
  Tensor* kept = nullptr;        ///< [batch, heads, rows, columns], or null
};

/// Softmax in place over `count` scores; -infinity never counts, and a row of it alone gives zeros.
template <typename T>
void attention_softmax(T* row, int64_t count, const T* sink) {
  T most = sink != nullptr ? *sink : -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < count; ++j)
    if (!(row[j] <= most)) most = row[j];
  if (most == -std::numeric_limits<T>::infinity()) {
    std::fill_n(row, count, T{});
    return;
  }
  const auto peak = static_cast<double>(most);
  double sum = sink != nullptr ? std::exp(static_cast<double>(*sink) - peak) : 0;
  for (int64_t j = 0; j < count; ++j) sum += std::exp(static_cast<double>(row[j]) - peak);
  for (int64_t j = 0; j < count; ++j)
    row[j] = static_cast<T>(std::exp(static_cast<double>(row[j]) - peak) / sum);
}

/// Gives [batch, rows, heads * value size]. `adjust(b, h, row, scores)` changes a row of scores
/// after scale and softcap: adds biases, sets what must not count to -infinity.
template <typename T, typename Adjust>
Result<Tensor> attend(const KernelContext& context, const Attend<T>& a, Adjust&& adjust) {
  const int64_t batch = a.q.dim(0), heads = a.q.dim(1), rows = a.q.dim(2), size = a.q.dim(3);
  const int64_t kv_heads = a.k.dim(1), columns = a.k.dim(2), value_size = a.v.dim(3);
  if (a.k.dim(0) != batch || a.v.dim(0) != batch || a.k.dim(3) != size || a.v.dim(1) != kv_heads ||
      a.v.dim(2) != columns || kv_heads < 1 || heads % kv_heads != 0)
    return context.error("query, key and value do not fit each other: " + to_string(a.q) + ", " +
                         to_string(a.k) + ", " + to_string(a.v));
  for (const int64_t length : a.lengths)
    if (length < 0 || length > columns)
      return context.error("a sequence of " + std::to_string(length) + " keys is said to be in " +
                           std::to_string(columns));
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{batch, rows, heads * value_size}}));
  std::atomic<bool> failed = false;
  context.parallel_for(batch * heads, 1, [&](int64_t first, int64_t last) {
    auto scratch = context.allocate(dtype_of<T>(), {{rows, columns}});
    if (!scratch) {
      failed = true;
      return;
    }
    T* s = scratch->template data<T>();
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / heads, h = task % heads;
      const int64_t kv = b * kv_heads + h / (heads / kv_heads);
      const int64_t length = a.lengths.empty() ? columns : a.lengths[static_cast<size_t>(b)];
      gemm<T>(rows, length, size, {a.q.template data<T>() + task * rows * size, size, 1},
              {a.k.template data<T>() + kv * columns * size, 1, size}, s, columns);
      for (int64_t i = 0; i < rows; ++i) {
        T* row = s + i * columns;
        for (int64_t j = 0; j < length; ++j) row[j] = static_cast<T>(row[j] * a.scale);
        if (a.softcap > 0)
          for (int64_t j = 0; j < length; ++j)
            row[j] = static_cast<T>(a.softcap * std::tanh(static_cast<double>(row[j]) / a.softcap));
        std::fill(row + length, row + columns, -std::numeric_limits<T>::infinity());
        adjust(b, h, i, row);
        const auto keep = [&] {
          std::copy_n(row, columns, a.kept->template data<T>() + (task * rows + i) * columns);
        };
        if (a.kept != nullptr && !a.keep_after) keep();
        attention_softmax(row, columns, a.sinks == nullptr ? nullptr : a.sinks + h);
        if (a.kept != nullptr && a.keep_after) keep();
      }
      gemm<T>(rows, value_size, length, {s, columns, 1},
              {a.v.template data<T>() + kv * columns * value_size, value_size, 1},
              y.data<T>() + (b * rows * heads + h) * value_size, heads * value_size);
    }
  });
  if (failed)
    return resource_error("no memory for " + std::to_string(rows) + " by " +
                          std::to_string(columns) + " attention scores a thread");
  return y;
}

/// What is added to scores: a mask per batch, and a bias.
template <typename T>
struct ScoreBias {
  Tensor mask;  ///< T [batch, rows, columns], or undefined
  Tensor bias;  ///< T [batch or 1, heads or 1, rows, columns], or undefined
  int64_t rows = 0, columns = 0;

  void operator()(int64_t b, int64_t h, int64_t i, T* row) const {
    (*this)(b, h, i, row, 0, columns);
  }
  /// Only columns [begin, end), to a row that starts there.
  void operator()(int64_t b, int64_t h, int64_t i, T* row, int64_t begin, int64_t end) const {
    const T* first = nullptr;
    const T* second = nullptr;
    if (!absent(mask)) first = mask.data<T>() + (b * rows + i) * columns;
    if (!absent(bias)) {
      const int64_t b0 = bias.dim(0) == 1 ? 0 : b, h0 = bias.dim(1) == 1 ? 0 : h;
      second = bias.data<T>() + ((b0 * bias.dim(1) + h0) * rows + i) * columns;
    }
    // The mask takes the bias first: next to -10000 the last digits of a score are lost either way.
    for (int64_t j = begin; j < end; ++j, ++row) {
      if (first != nullptr && second != nullptr)
        *row += first[j] + second[j];
      else if (first != nullptr)
        *row += first[j];
      else if (second != nullptr)
        *row += second[j];
    }
  }
};

/// Input `index` as the bias of scores, checked.
template <typename T>
Result<Tensor> read_score_bias(const KernelContext& context, size_t index, int64_t batch,
                               int64_t heads, int64_t rows, int64_t columns) {
  TRY(const Tensor* given, context.optional_input(index));
  if (given == nullptr) return Tensor();
  if (given->rank() != 4 || (given->dim(0) != 1 && given->dim(0) != batch) ||
      (given->dim(1) != 1 && given->dim(1) != heads) || given->dim(2) != rows ||
      given->dim(3) != columns)
    return context.error("attention_bias does not broadcast to " +
                         dims_to_string({{batch, heads, rows, columns}}) + ", is " +
                         to_string(*given));
  return as<T>(context, *given);
}

/// The masks of BERT and GPT exports as numbers to add, [batch, rows, columns]: `filter` where the
/// mask (int32; may be null) leaves a key out, the least number where `causal` does. The mask is
/// [batch, columns], [batch, rows, columns], [batch, 1, longest, longest], or lengths: [batch]
/// ends, [2 * batch] ends, then starts. Undefined when nothing is masked.
template <typename T>
Result<Tensor> padding_mask(const KernelContext& context, const Tensor* mask, bool causal,
                            double filter, int64_t batch, int64_t rows, int64_t columns,
                            int64_t past) {
  causal = causal && rows > 1;
  if (mask == nullptr && !causal) return Tensor();
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{batch, rows, columns}}));
  std::fill_n(out.data<T>(), out.size(), T{});
  enum { kNone, kEnds, kEndsAndStarts, kKeys, kRows, kSquare } form = kNone;
  if (mask != nullptr) {
    const auto is = [&](std::initializer_list<int64_t> dims) { return mask->dims() == Dims(dims); };
    if (is({batch, columns})) {
      form = kKeys;
    } else if (is({batch})) {
      form = kEnds;
    } else if (is({2 * batch})) {
      form = kEndsAndStarts;
    } else if (is({batch, rows, columns})) {
      form = kRows;
    } else if (mask->rank() == 4 && mask->dim(0) == batch && mask->dim(1) == 1 &&
               mask->dim(2) == mask->dim(3) && mask->dim(2) >= columns && past + rows <= columns) {
      form = kSquare;
    } else {
      return context.error("the mask has none of the shapes [" + std::to_string(batch) + "], [" +
                           std::to_string(2 * batch) + "], " + dims_to_string({{batch, columns}}) +
                           ", " + dims_to_string({{batch, rows, columns}}) + ", is " +
                           to_string(*mask));
    }
    if (mask->dtype() != DType::kInt32)
      return context.error("the mask must be of int32, is " + to_string(*mask));
  }
  const T out_of_it = static_cast<T>(filter);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < rows; ++i) {
      T* row = out.data<T>() + (b * rows + i) * columns;
      for (int64_t j = 0; j < columns; ++j) {
        bool counts = true;
        if (form == kEnds || form == kEndsAndStarts) counts = j < mask->get_int64(b);
        if (form == kEndsAndStarts) counts = counts && j >= mask->get_int64(batch + b);
        if (form == kKeys) counts = mask->get_int64(b * columns + j) > 0;
        if (form == kRows) counts = mask->get_int64((b * rows + i) * columns + j) > 0;
        if (form == kSquare)
          counts = mask->get_int64((b * mask->dim(2) + past + i) * mask->dim(3) + j) > 0;
        if (!counts) row[j] = out_of_it;
        if (causal && j > past + i) row[j] = std::numeric_limits<T>::lowest();
      }
    }
  return out;
}

/// Beams share their past: the first `past` steps of cache [batch * beams, heads, length, size],
/// where step t of a beam is that of the beam which input `indirection`, [batch, beams, at least
/// `past`], names. Input `beams` holds their number. The cache itself when there is no indirection.
template <typename T>
Result<Tensor> follow_beams(const KernelContext& context, const Tensor& cache, int64_t past,
                            size_t beams, size_t indirection) {
  TRY(const Tensor* from, context.optional_input(indirection));
  TRY(const Tensor* width, context.optional_input(beams));
  if (from == nullptr || width == nullptr || absent(cache)) return cache;
  const int64_t count = width->size() == 1 ? width->get_int64(0) : 0;
  if (count < 1 || cache.dim(0) % count != 0)
    return context.error("beam_width does not divide the batch: " + to_string(*width));
  if (from->rank() != 3 || from->dim(0) != cache.dim(0) / count || from->dim(1) != count ||
      from->dim(2) < past)
    return context.error("cache_indirection must be [batch, beams, steps], is " + to_string(*from));
  TRY(Tensor out, context.allocate(dtype_of<T>(), cache.dims()));
  std::copy_n(cache.data<T>(), cache.size(), out.data<T>());
  const int64_t heads = cache.dim(1), length = cache.dim(2), size = cache.dim(3);
  for (int64_t b = 0; b < cache.dim(0); ++b)
    for (int64_t t = 0; t < past; ++t) {
      const int64_t beam = from->get_int64(b * from->dim(2) + t);
      if (beam < 0 || beam >= count)
        return context.error("cache_indirection has the value " + std::to_string(beam) +
                             ", there are " + std::to_string(count) + " beams");
      const int64_t source = b / count * count + beam;
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(cache.data<T>() + ((source * heads + h) * length + t) * size, size,
                    out.data<T>() + ((b * heads + h) * length + t) * size);
    }
  return out;
}

/// The cache after a step in a shared buffer: `made` [batch, heads, columns, size] in front, then
/// what the old cache holds there, `room` steps in all. `made` itself when there is no more room.
template <typename T>
Result<Tensor> refill_cache(const KernelContext& context, const Tensor& made, const Tensor& old,
                            int64_t room) {
  const int64_t columns = made.dim(2), size = made.dim(3);
  if (room <= columns) return made;
  TRY(Tensor out, context.allocate(dtype_of<T>(), {{made.dim(0), made.dim(1), room, size}}));
  T* to = out.data<T>();
  for (int64_t i = 0; i < made.dim(0) * made.dim(1); ++i) {
    to = std::copy_n(made.data<T>() + i * columns * size, columns * size, to);
    to = std::copy_n(old.data<T>() + (i * room + columns) * size, (room - columns) * size, to);
  }
  return out;
}

/// `scale`, or one over the root of the head's size where it is 0 or absent.
inline double attention_scale(const KernelContext& context, int64_t size) {
  const auto given = static_cast<double>(context.attributes.get_float("scale", 0));
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(size, 1)));
}

}  // namespace tombolo::ops
