// Attention with queries as lanes: scores are [key][query], so that keys and values are read where
// they lie, and the weights are what tiles take as a packed left side.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention/attention_turned.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/attention/attention_parts.h"
#include "runtime/kernels/attention/attention_turned.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_ATTENTION_TURNED_ONCE  // included once for each target
#define TOMBOLO_ATTENTION_TURNED_ONCE
namespace tombolo {
/// Scores of n keys, a row each, with some vectors of queries, and what makes weights of them.
struct TurnedScores {
  float* scores;
  int64_t ld, n;
  const float* mask;     ///< added, or null: one for each key or, mask_ld apart, as the scores
  int64_t mask_ld;       ///< 0: one for each key
  const uint8_t* bytes;  ///< of truth, one for each key, or null
  float* factors;        ///< for each query, what its weights lack
};
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// Scores to weights but for factors, in place.
template <int kVectors>
void weigh_vectors(const TurnedScores& w) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V never = hn::Set(f, -std::numeric_limits<float>::infinity());
  const V least = hn::Set(f, 1e-30f), zero = hn::Zero(f), one = hn::Set(f, 1.0f);
  V top[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    V most = never, most1 = never;
    float* at = w.scores + v * lanes;
    if (w.mask == nullptr && w.bytes == nullptr) {
      int64_t j = 0;
      for (; j + 2 <= w.n; j += 2, at += 2 * w.ld) {
        most = max_of(hn::LoadU(f, at), most);
        most1 = max_of(hn::LoadU(f, at + w.ld), most1);
      }
      if (j < w.n) most = max_of(hn::LoadU(f, at), most);
    } else {
      for (int64_t j = 0; j < w.n; ++j, at += w.ld) {
        V x = hn::LoadU(f, at);
        if (w.mask != nullptr)
          x = hn::Add(x, w.mask_ld == 0 ? hn::Set(f, w.mask[j])
                                        : hn::LoadU(f, w.mask + j * w.mask_ld + v * lanes));
        if (w.bytes != nullptr && w.bytes[j] == 0) x = never;
        hn::StoreU(x, f, at);
        most = max_of(x, most);
      }
    }
    most = max_of(most, most1);
    // Where no key counts all weights are 0, and NaN where there is one.
    top[v] = hn::IfThenElse(hn::Eq(most, never), zero, most);
  }
  constexpr int kRows = kGroup > kVectors ? kGroup / kVectors : 1, kTogether = kRows * kVectors;
  V sum[kTogether], sum1[kTogether];
  for (int i = 0; i < kTogether; ++i) sum[i] = sum1[i] = zero;
  const auto one_row = [&](float* row, V* sums) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V e = v_exp_or_zero(f, hn::Sub(hn::LoadU(f, row + v * lanes), top[v]), least);
      hn::StoreU(e, f, row + v * lanes);
      sums[v] = hn::Add(sums[v], e);
    }
  };
  const auto rows = [&](float* row, V* sums) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kTogether == kGroup && kGroup > 1) {
      Group<V> x, m;
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        x.v[i] = hn::LoadU(f, row + i / kVectors * w.ld + i % kVectors * lanes);
        m.v[i] = top[i % kVectors];
      }
      const Group<V> e = v_exp_or_zero(f, gn::Sub(x, m), least);
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        hn::StoreU(e.v[i], f, row + i / kVectors * w.ld + i % kVectors * lanes);
        sums[i] = hn::Add(sums[i], e.v[i]);
      }
    } else {
      one_row(row, sums);
    }
  };
  int64_t j = 0;
  for (; j + 2 * kRows <= w.n; j += 2 * kRows) {
    rows(w.scores + j * w.ld, sum);
    rows(w.scores + (j + kRows) * w.ld, sum1);
  }
  for (; j < w.n; ++j) one_row(w.scores + j * w.ld, sum);
  for (int v = 0; v < kVectors; ++v) {
    V all = zero;
    for (int i = v; i < kTogether; i += kVectors) all = hn::Add(all, hn::Add(sum[i], sum1[i]));
    hn::StoreU(hn::IfThenElse(hn::Eq(all, zero), one, hn::Div(one, all)), f, w.factors + v * lanes);
  }
}
void weigh_turned(const TurnedScores& w) {
  if (w.ld <= static_cast<int64_t>(hn::Lanes(F())))
    weigh_vectors<1>(w);
  else
    weigh_vectors<2>(w);
}
/// Rows of ld floats, whole vectors, times a factor for each column.
void scale_columns(float* x, int64_t rows, int64_t ld, const float* factors) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t column = 0; column < ld; column += lanes) {
    const V factor = hn::LoadU(f, factors + column);
    for (int64_t r = 0; r < rows; ++r) {
      float* const at = x + r * ld + column;
      hn::StoreU(hn::Mul(hn::LoadU(f, at), factor), f, at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

/// Blocks of queries of which a panel holds one each.
int64_t turned_blocks(const AttentionShape& s) {
  return (s.rows + gemm_tiles().panel() - 1) / gemm_tiles().panel();
}
int64_t masks_of_heads(const AttentionShape& s) { return s.mask_stride[1] != 0 ? s.q_heads : 1; }
/// Masks of [query][key] that heads share; 0 where there are too many to turn, or none.
int64_t turned_masks(const AttentionShape& s) {
  if (s.mask_columns == 0 || s.mask_stride[2] == 0) return 0;
  const int64_t masks = (s.mask_stride[0] != 0 ? s.batch : 1) * masks_of_heads(s);
  return 2 * masks <= s.batch * s.q_heads ? masks : 0;
}
int64_t turned_mask_floats(const AttentionShape& s) {
  return turned_blocks(s) * gemm_tiles().panel() * s.mask_columns;
}
/// Whether values are the rows of the second product and queries its columns, the result to be
/// turned: sizes that leave lanes of a panel idle, or half of one, leave none as rows.
bool values_as_rows(const AttentionShape& s) {
  const int64_t panel = gemm_tiles().panel(), lanes = gemm_tiles().lanes;
  const int64_t rest = s.value_size % panel;
  // Of a tile's rows by one vector it is the loads that bind, to a fifth more than half of two.
  const int64_t idle = rest == 0 ? 0 : rest <= lanes ? lanes * 12 / 10 - rest : panel - rest;
  return idle * 16 > s.value_size;
}
size_t packed_floats(const AttentionShape& s) {
  if (!gathers_values(s)) return 0;
  return static_cast<size_t>(values_as_rows(s) ? s.columns * s.value_size
                                               : packed_b_floats(s.columns, s.value_size));
}

/// Keys of a part of the second product: what the first cache holds of it meets all rows.
constexpr int64_t kKeysAtOnce = 320;

/// y[count, size) = weights [key][query] times values, in packed panels or as they lie, times a
/// factor for each query.
void turned_product(int64_t count, int64_t size, bool panels, int64_t keys, const float* weights,
                    int64_t ld, const float* v, int64_t v_step, int64_t panel_step,
                    const float* factors, float* y, int64_t y_step) {
  const GemmTiles& tiles = gemm_tiles();
  const int64_t width = tiles.panel(), height = tiles.tile_rows(count);
  const LastValues last(v, v_step, panels ? 0 : keys, size);
  const int64_t lie = keys - last.count(), parts = (lie + kKeysAtOnce - 1) / kKeysAtOnce;
  const int64_t all = parts + (last.count() > 0 ? 1 : 0);
  GemmTile tile{.lda = ld, .ldc = y_step, .ldi = y_step};
  for (int64_t column = 0; column < size; column += width) {
    tile.cols = std::min(width, size - column);
    for (int64_t part = 0; part < all; ++part) {
      const bool lies = part < parts;
      const int64_t from = lies ? lie * part / parts : lie;
      tile.k = (lies ? lie * (part + 1) / parts : keys) - from;
      tile.ldb = lies ? v_step : last.ld();
      tile.b = lies ? v + from * v_step + column / width * panel_step : last.at() + column;
      for (int64_t r = 0; r < count; r += height) {
        tile.a = weights + from * ld + r;
        tile.c = y + r * y_step + column;
        tile.init = part > 0 ? tile.c : nullptr;
        tile.row_scale = part + 1 == all ? factors + r : nullptr;
        tiles.packed_tile(static_cast<int>(std::min(height, count - r)), tile.cols)(tile);
      }
    }
  }
}

/// The same of values `v_step` apart as rows, with their sums at `room`.
void turned_by_values(int64_t count, int64_t size, int64_t keys, const float* weights, int64_t ld,
                      const float* v, int64_t v_step, const float* factors, float* room, float* y,
                      int64_t y_step) {
  const GemmTiles& tiles = gemm_tiles();
  const int64_t height = tiles.tile_rows(size), parts = (keys + kKeysAtOnce - 1) / kKeysAtOnce;
  GemmTile tile{.lda = v_step, .ldb = ld, .ldc = ld, .cols = ld, .ldi = ld};
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t from = keys * part / parts;
    tile.k = keys * (part + 1) / parts - from;
    tile.b = weights + from * ld;
    for (int64_t r = 0; r < size; r += height) {
      tile.a = v + from * v_step + r;
      tile.c = room + r * ld;
      tile.init = part > 0 ? tile.c : nullptr;
      tiles.packed_tile(static_cast<int>(std::min(height, size - r)), ld)(tile);
    }
  }
  TOMBOLO_TARGET(void(float*, int64_t, int64_t, const float*), scale_columns)
  (room, size, ld, factors);
  transpose_tile(reinterpret_cast<const std::byte*>(room), ld, reinterpret_cast<std::byte*>(y),
                 y_step, size, count, sizeof(float));
}

/// A block of queries of one head, with values in panels at `packed`, or null.
void attend(const AttentionShape& s, const AttentionData& d, int64_t b, int64_t h, int64_t block,
            const float* packed, const float* turned_mask, float* room) {
  const GemmTiles& tiles = gemm_tiles();
  const int64_t width = tiles.panel(), first = block * width;
  const int64_t count = std::min(width, s.rows - first);
  const int64_t ld = count <= tiles.lanes ? tiles.lanes : width;
  const int64_t head = h / (s.q_heads / s.kv_heads);
  const int64_t keys = range_of(s, d, b, first).to;
  float* const y = d.y + s.y.at(b, h) + first * s.y.step_stride;
  if (keys == 0) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(y + i * s.y.step_stride, s.value_size, 0.0f);
    return;
  }
  float *const queries = room, *const scores = queries + s.size * width,
               *const factors = scores + s.columns * width;
  pack_b_panel(d.q + s.q.at(b, h) + first * s.q.step_stride, 1, s.q.step_stride, s.size, count,
               s.scale, queries);
  attention_product(keys, ld, s.size, d.k + s.k.at(b, head), s.k.step_stride, queries, width, 0,
                    scores, ld);
  const int64_t mask_at = b * s.mask_stride[0] + h * s.mask_stride[1];
  TurnedScores turned{.scores = scores,
                      .ld = ld,
                      .n = keys,
                      .mask = d.mask != nullptr ? d.mask + mask_at : nullptr,
                      .mask_ld = 0,
                      .bytes = d.bool_mask != nullptr ? d.bool_mask + mask_at : nullptr,
                      .factors = factors};
  if (d.mask != nullptr && s.mask_stride[2] != 0) {
    const int64_t mask =
        (s.mask_stride[0] != 0 ? b : 0) * masks_of_heads(s) + (s.mask_stride[1] != 0 ? h : 0);
    turned.mask = turned_mask + (mask * turned_blocks(s) + block) * width * s.mask_columns;
    turned.mask_ld = width;
  }
  TOMBOLO_TARGET(void(const TurnedScores&), weigh_turned)(turned);
  if (values_as_rows(s)) {
    const float* const v = packed != nullptr ? packed : d.v + s.v.at(b, head);
    const int64_t v_step = packed != nullptr ? s.value_size : s.v.step_stride;
    turned_by_values(count, s.value_size, keys, scores, ld, v, v_step, factors, factors + 2 * width,
                     y, s.y.step_stride);
  } else if (packed != nullptr)
    turned_product(count, s.value_size, true, keys, scores, ld, packed, width, width * s.columns,
                   factors, y, s.y.step_stride);
  else
    turned_product(count, s.value_size, false, keys, scores, ld, d.v + s.v.at(b, head),
                   s.v.step_stride, width, factors, y, s.y.step_stride);
}

}  // namespace

bool attention_turns(const AttentionShape& s) {
  constexpr int64_t kMostKeys = 1024;  // sums of weights are as long as there are keys
  return s.products == AttentionProducts::kFloats && same_for_all(s) && s.softcap <= 0 &&
         s.rows > kFewQueries && s.columns <= kMostKeys && s.value_size <= kLongValue;
}
bool attention_turns(const AttentionShape& s, const AttentionData& d) {
  const bool by_row = (d.mask != nullptr || d.bool_mask != nullptr) && s.mask_stride[2] != 0;
  return attention_turns(s) && d.sinks == nullptr && d.make == nullptr &&
         (!by_row || (d.mask != nullptr && turned_masks(s) > 0));
}

size_t attention_turned_floats(const AttentionShape& s) {
  if (!attention_turns(s)) return 0;
  return static_cast<size_t>(s.batch * s.kv_heads) * packed_floats(s) +
         static_cast<size_t>(turned_masks(s) * turned_mask_floats(s)) + 16;
}

void run_attention_turned(const AttentionShape& s, const AttentionData& d, float* scratch) {
  float* const turned_mask =
      scratch + (static_cast<size_t>(s.batch * s.kv_heads) * packed_floats(s) + 15) / 16 * 16;
  const int64_t width = gemm_tiles().panel(), blocks = turned_blocks(s);
  const int64_t masks = d.mask != nullptr ? turned_masks(s) : 0;
  parallel(masks * blocks, std::max<int64_t>(1, (1 << 14) / (width * s.mask_columns + 1)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const int64_t first = i % blocks * width, mask = i / blocks;
               const int64_t at = mask / masks_of_heads(s) * s.mask_stride[0] +
                                  mask % masks_of_heads(s) * s.mask_stride[1] +
                                  first * s.mask_stride[2];
               pack_b_panel(d.mask + at, 1, s.mask_stride[2], s.mask_columns,
                            std::min(width, s.rows - first), 1,
                            turned_mask + i * width * s.mask_columns);
             }
           });
  const bool packs = gathers_values(s);
  if (packs)
    parallel(s.batch * s.kv_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const float* const v = d.v + s.v.at(line / s.kv_heads, line % s.kv_heads);
        float* const to = scratch + static_cast<size_t>(line) * packed_floats(s);
        if (values_as_rows(s)) {
          const auto bytes = static_cast<size_t>(s.value_size) * sizeof(float);
          copy_strided(reinterpret_cast<const std::byte*>(v),
                       static_cast<size_t>(s.v.step_stride) * sizeof(float),
                       reinterpret_cast<std::byte*>(to), bytes, bytes, s.columns);
        } else {
          pack_b(v, s.v.step_stride, 1, s.columns, s.value_size, 1, to);
        }
      }
    });
  const int64_t sums = values_as_rows(s) ? s.value_size : 0;
  const int64_t floats = (s.size + s.columns + 2 + sums) * width;
  parallel(s.batch * s.q_heads * blocks, 1, [&](int64_t begin, int64_t end) {
    float* const room = thread_floats(1, static_cast<size_t>(floats));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / blocks / s.q_heads, h = task / blocks % s.q_heads;
      const int64_t line = b * s.kv_heads + h / (s.q_heads / s.kv_heads);
      attend(s, d, b, h, task % blocks,
             packs ? scratch + static_cast<size_t>(line) * packed_floats(s) : nullptr, turned_mask,
             room);
    }
  });
}

}  // namespace tombolo
#endif
