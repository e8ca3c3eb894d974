#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention/attention.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/kernels/across-inl.h"
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_parts.h"
#include "runtime/kernels/attention/attention_turned.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_digits.h"
#include "runtime/kernels/matmul/turned_rows.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_ATTENTION_ONCE  // included once for each target
#define TOMBOLO_ATTENTION_ONCE
namespace tombolo {
/// Scores of queries for which the same keys count, `ld` apart, and what makes weights of them.
struct WholeRows {
  float* scores;
  int64_t ld, rows, n;
  float scale;
  const float* mask;     ///< added, or null; rows mask_step apart
  const uint8_t* bytes;  ///< bytes of truth, or null
  int64_t mask_step;
  float* factors;  ///< for each row, what its weights lack
};
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// kV vectors of each row, the last perhaps of less, in several sums that do not wait for each
/// other.
template <int kV>
void add_rest(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT v, int64_t step,
              int64_t n, int64_t size, float* HWY_RESTRICT out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr int kSums = kV == 1 ? 8 : kV == 2 ? 4 : 2, kLast = kV - 1;
  const int64_t last = size - kLast * lanes;
  V s[kSums][kV];
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i)
#pragma GCC unroll 4
    for (int r = 0; r < kV; ++r) s[i][r] = hn::Zero(f);
  const auto add = [&](int i, int64_t j, auto&& load) HWY_ATTR __attribute__((always_inline)) {
    const V w = hn::Set(f, weights[j]);
    const float* const row = v + j * step;
#pragma GCC unroll 4
    for (int r = 0; r < kLast; ++r) s[i][r] = hn::MulAdd(w, hn::LoadU(f, row + r * lanes), s[i][r]);
    s[i][kLast] = hn::MulAdd(w, load(row + kLast * lanes), s[i][kLast]);
  };
  const auto rows = [&](auto&& load) HWY_ATTR __attribute__((always_inline)) {
    int64_t j = 0;
    for (; j + kSums <= n; j += kSums)
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) add(i, j + i, load);
    for (; j < n; ++j) add(0, j, load);
  };
  if (last == lanes)
    rows([&](const float* p) HWY_ATTR __attribute__((always_inline)) { return hn::LoadU(f, p); });
  else
    rows([&](const float* p) HWY_ATTR
         __attribute__((always_inline)) { return load_n(f, p, last); });
#pragma GCC unroll 4
  for (int r = 0; r < kV; ++r) {
#pragma GCC unroll 8
    for (int i = 1; i < kSums; ++i) s[0][r] = hn::Add(s[0][r], s[i][r]);
    const int64_t left = size - r * lanes;
    store_n(hn::Add(s[0][r], load_n(f, out + r * lanes, left)), f, out + r * lanes, left);
  }
}

void add_rows(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT v, int64_t step,
              int64_t n, int64_t size, float* HWY_RESTRICT out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    V s[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) s[r] = hn::LoadU(f, out + i + r * lanes);
    for (int64_t j = 0; j < n; ++j) {
      const V w = hn::Set(f, weights[j]);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r)
        s[r] = hn::MulAdd(w, hn::LoadU(f, v + j * step + i + r * lanes), s[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) hn::StoreU(s[r], f, out + i + r * lanes);
  }
  switch ((size - i + lanes - 1) / lanes) {
    case 1:
      return add_rest<1>(weights, v + i, step, n, size - i, out + i);
    case 2:
      return add_rest<2>(weights, v + i, step, n, size - i, out + i);
    case 3:
      return add_rest<3>(weights, v + i, step, n, size - i, out + i);
    case 4:
      return add_rest<4>(weights, v + i, step, n, size - i, out + i);
    default:
      return;
  }
}

/// row = e^(row - most); gives the sum, lane by lane. What is too small to matter is 0: denormal
/// numbers would slow down the product with the values.
template <int kTogether>
HWY_INLINE V powers_by_lanes(float* row, int64_t n, float most) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V m = hn::Set(f, most), least = hn::Set(f, 1e-30f);
  const auto power = [&](auto x) HWY_ATTR __attribute__((always_inline)) {
    return v_exp_or_zero(f, decltype(x)(gn::Sub(x, m)), least);
  };
  V sum = hn::Zero(f), sum1 = sum;
  int64_t i = 0;
  if constexpr (kTogether == 4)
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      const auto e = power(gn::Load(f, row + i));
      sum = hn::Add(sum, hn::Add(e.v[0], e.v[1]));
      sum1 = hn::Add(sum1, hn::Add(e.v[2], e.v[3]));
      gn::Store(e, f, row + i);
    }
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V a = power(hn::LoadU(f, row + i)), b = power(hn::LoadU(f, row + i + lanes));
    sum = hn::Add(sum, a);
    sum1 = hn::Add(sum1, b);
    hn::StoreU(a, f, row + i);
    hn::StoreU(b, f, row + i + lanes);
  }
  for (; i < n; i += lanes) {
    const V e = power(load_n(f, row + i, n - i));
    const int64_t left = std::min(lanes, n - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(f, static_cast<size_t>(left)), e));
    store_n(e, f, row + i, n - i);
  }
  return hn::Add(sum, sum1);
}
float powers(float* row, int64_t n, float most) {
  return hn::GetLane(hn::SumOfLanes(F(), powers_by_lanes<kGroup>(row, n, most)));
}

/// x * scale + mask, -infinity where a byte is 0, in place; gives the greatest, lane by lane.
HWY_INLINE V prepare_row(float* row, int64_t n, float scale, const float* mask,
                         const uint8_t* bytes) {
  const F f;
  const hn::RebindToSigned<F> integers;
  const hn::Rebind<uint8_t, F> small;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V s = hn::Set(f, scale), never = hn::Set(f, -std::numeric_limits<float>::infinity());
  const bool as_it_is = mask == nullptr && bytes == nullptr && scale == 1;
  V top = never, top1 = never;
  int64_t i = 0;
  if (as_it_is)
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      top = max_of(hn::LoadU(f, row + i), top);
      top1 = max_of(hn::LoadU(f, row + i + lanes), top1);
    }
  for (; i < n; i += lanes) {
    const int64_t left = std::min(lanes, n - i);
    V x = load_n(f, row + i, left);
    if (!as_it_is) {
      x = hn::Mul(x, s);
      if (mask != nullptr) x = hn::Add(x, load_n(f, mask + i, left));
      if (bytes != nullptr) {
        const auto seen = hn::PromoteTo(integers, load_n(small, bytes + i, left));
        x = hn::IfThenElse(hn::RebindMask(f, hn::Eq(seen, hn::Zero(integers))), never, x);
      }
      store_n(x, f, row + i, left);
    }
    if (left < lanes) x = hn::IfThenElse(hn::FirstN(f, static_cast<size_t>(left)), x, never);
    top = max_of(x, top);
  }
  return max_of(top, top1);
}

float scale_and_mask(float* row, int64_t n, float scale, const float* mask, const uint8_t* bytes) {
  return hn::GetLane(hn::MaxOfLanes(F(), prepare_row(row, n, scale, mask, bytes)));
}

/// As weigh() does, rows of which all keys count: what a row of few keys takes is mostly what is
/// done across lanes, once for several rows here.
void weigh_whole_rows(const WholeRows& w) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const V one = hn::Set(f, 1.0f);
  V parts[HWY_LANES(float)];
  HWY_ALIGN float tops[HWY_LANES(float)];
  for (int64_t first = 0; first < w.rows; first += lanes) {
    const int64_t count = std::min(lanes, w.rows - first);
    float* const scores = w.scores + first * w.ld;
    for (int64_t r = 0; r < lanes; ++r) {
      const int64_t mask_at = (first + r) * w.mask_step;
      parts[r] = r >= count ? one
                            : prepare_row(scores + r * w.ld, w.n, w.scale,
                                          w.mask != nullptr ? w.mask + mask_at : nullptr,
                                          w.bytes != nullptr ? w.bytes + mask_at : nullptr);
    }
    const auto greater = [](V a, V b) HWY_ATTR { return max_of(a, b); };
    hn::Store(fold_across(f, parts, greater), f, tops);
    for (int64_t r = 0; r < lanes; ++r) {
      float* const row = scores + r * w.ld;
      parts[r] = one;
      if (r >= count) continue;
      if (tops[r] == kNever &&
          std::none_of(row, row + w.n, [](float v) { return std::isnan(v); })) {
        std::fill_n(row, w.n, 0.0f);
        parts[r] = hn::IfThenElseZero(hn::FirstN(f, 1), one);
      } else {
        parts[r] = powers_by_lanes<kGroup>(row, w.n, tops[r]);
      }
    }
    store_n(hn::Div(one, sums_across(f, parts)), f, w.factors + first, count);
  }
}

void multiply_rows(float* y, int64_t step, int64_t rows, int64_t n, const float* factors) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t r = 0; r < rows; ++r, y += step) {
    const V factor = hn::Set(f, factors[r]);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(f, y + i), factor), f, y + i);
    if (i < n) store_n(hn::Mul(load_n(f, y + i, n - i), factor), f, y + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

bool by_bf16(const AttentionShape& s) { return s.products == AttentionProducts::kBf16; }
bool by_digits(const AttentionShape& s) { return s.products == AttentionProducts::kDigits; }

bool pack_keys(const AttentionShape& s) {
  return s.products != AttentionProducts::kFloats ||
         s.rows * (s.q_heads / s.kv_heads) > kFewQueries;
}
/// Of more than a few queries values are whole vectors.
bool pack_values(const AttentionShape& s) {
  return s.products != AttentionProducts::kFloats ||
         (s.value_size % gemm_tiles().lanes != 0 &&
          (s.rows > kFewQueries || s.value_size > kLongValue)) ||
         gathers_values(s);
}

DigitPanels key_panels(const AttentionShape& s) { return {s.size, s.columns}; }
DigitPanels value_panels(const AttentionShape& s) { return {s.columns, s.value_size}; }

/// Floats of B[k, n] as products take it.
size_t floats_of(const AttentionShape& s, int64_t k, int64_t n) {
  if (by_bf16(s)) return static_cast<size_t>((bf16_b_bytes(k, n) + 63) / 64 * 16);
  const int64_t floats = packed_b_floats(k, n);
  return static_cast<size_t>(by_digits(s) ? std::max(floats, DigitPanels{k, n}.bytes() / 4)
                                          : floats);
}
size_t key_floats(const AttentionShape& s) {
  return pack_keys(s) ? floats_of(s, s.size, s.columns) : 0;
}
size_t value_floats(const AttentionShape& s) {
  return pack_values(s) ? floats_of(s, s.columns, s.value_size) : 0;
}

std::byte* bytes_of(float* p) { return reinterpret_cast<std::byte*>(p); }

/// Scores of one query to weights but for a factor, in place; outside of the range they become 0.
/// Gives the factor.
float weigh(const AttentionShape& s, const AttentionData& d, int64_t b, int64_t h, int64_t row,
            KeyRange range, KeyRange block, float* scores) {
  const int64_t n = range.to - range.from;
  float* x = scores + range.from;
  std::fill(scores + block.from, x, 0.0f);
  std::fill(x + n, scores + block.to, 0.0f);
  if (n == 0) return 1;
  const int64_t mask_at =
      b * s.mask_stride[0] + h * s.mask_stride[1] + row * s.mask_stride[2] + range.from;
  const float* mask = d.mask != nullptr ? d.mask + mask_at : nullptr;
  const uint8_t* bytes = d.bool_mask != nullptr ? d.bool_mask + mask_at : nullptr;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  float scale = pack_keys(s) ? 1 : s.scale;  // packed keys have it
  if (s.softcap > 0) {
    unary_fn(Unary::kAffine)(x, x, n, scale / s.softcap, 0);
    unary_fn(Unary::kTanh)(x, x, n, 0, 0);
    scale = s.softcap;
  }
  float most = scale_scores(x, n, scale, mask, bytes);
  if (most == kNever && std::none_of(x, x + n, [](float v) { return std::isnan(v); })) {
    std::fill_n(x, n, 0.0f);
    return 1;
  }
  float rest = 0;
  if (d.sinks != nullptr) {
    const float sink = d.sinks[h * s.sink_head + row * s.sink_row];
    most = std::max(most, sink);
    rest = std::exp(sink - most);
  }
  return 1 / (rest + powers_of_scores(x, n, most));
}

}  // namespace

KeyRange range_of(const AttentionShape& s, const AttentionData& d, int64_t b, int64_t row) {
  const int64_t position = d.offsets[b] + row;
  KeyRange range{0, std::min(s.columns, d.valid[b])};
  if (s.causal) range.to = std::min(range.to, position + 1);
  if (s.left >= 0) range.from = std::max(range.from, position - s.left);
  if (s.right >= 0) range.to = std::min(range.to, position + s.right + 1);
  if (d.mask != nullptr || d.bool_mask != nullptr) range.to = std::min(range.to, s.mask_columns);
  range.to = std::max(range.to, int64_t{0});
  if (s.last >= 0) range.from = std::max(range.from, range.to - s.last);
  range.from = std::min(range.from, range.to);
  return range;
}

void attention_product(int64_t rows, int64_t columns, int64_t k, const float* a, int64_t lda,
                       const float* b, int64_t ldb, int64_t panel_step, float* c, int64_t ldc,
                       bool add) {
  constexpr int64_t kMost = 320;
  const GemmTiles& tiles = gemm_tiles();
  const int64_t turns = (rows + tiles.max_rows - 1) / tiles.max_rows;
  const int64_t width = tiles.panel(), parts = (k + kMost - 1) / kMost;
  GemmTile tile{.lda = lda, .ldb = ldb, .ldc = ldc};
  for (int64_t column = 0; column < columns; column += width)
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = k * part / parts;
      tile.k = k * (part + 1) / parts - from;
      tile.b = b + column / width * panel_step + from * ldb;
      tile.cols = std::min(width, columns - column);
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int64_t r = rows * turn / turns;
        tile.a = a + r * lda + from;
        tile.c = c + r * ldc + column;
        tile.init = add || part > 0 ? tile.c : nullptr;
        tile.ldi = ldc;
        const int count = static_cast<int>(rows * (turn + 1) / turns - r);
        tiles.row_major_tile(count, tile.cols)(tile);
      }
    }
}

void scale_rows(float* y, int64_t step, int64_t rows, int64_t n, const float* factors) {
  TOMBOLO_TARGET(void(float*, int64_t, int64_t, int64_t, const float*), multiply_rows)
  (y, step, rows, n, factors);
}

void dot_rows(const float* q, const float* k, int64_t step, int64_t n, int64_t size, float* out) {
  turned_rows({q, 0, 1, k, step, n, size, out, 0});
}

void add_weighted_rows(const float* weights, const float* v, int64_t step, int64_t n, int64_t size,
                       float* out) {
  TOMBOLO_TARGET(void(const float*, const float*, int64_t, int64_t, int64_t, float*), add_rows)
  (weights, v, step, n, size, out);
}

float scale_scores(float* row, int64_t n, float scale, const float* mask, const uint8_t* bytes) {
  using Fn = float(float*, int64_t, float, const float*, const uint8_t*);
  return TOMBOLO_TARGET(Fn, scale_and_mask)(row, n, scale, mask, bytes);
}

float powers_of_scores(float* row, int64_t n, float most) {
  return TOMBOLO_TARGET(float(float*, int64_t, float), powers)(row, n, most);
}

bool attention_bf16_fits(const AttentionShape& s) {
  return has_bf16_dot() && s.rows >= 16 && s.columns >= 16 && s.size >= 16 && s.value_size >= 16;
}

AttentionProducts attention_products(const AttentionShape& s, bool rounds) {
  if (rounds && attention_bf16_fits(s)) return AttentionProducts::kBf16;
  // What it takes to pack keys and values and to split queries has to come back.
  const int64_t size = std::min(s.size, s.value_size), group = s.q_heads / s.kv_heads;
  const bool pays = s.rows >= 16 && s.rows * group >= 128 && s.columns >= 128 && size >= 48 &&
                    size * s.columns >= 192 * 64;
  return pays && has_amx_int8() ? AttentionProducts::kDigits : AttentionProducts::kFloats;
}

bool attention_reads_once(const AttentionShape& s) {
  return s.q_heads == s.kv_heads && s.rows <= kFewQueries && !pack_keys(s) && !pack_values(s);
}

size_t attention_scratch_floats(const AttentionShape& s) {
  const size_t lines = static_cast<size_t>(s.batch * s.kv_heads);
  return std::max(lines * (key_floats(s) + value_floats(s)), attention_turned_floats(s)) + 128;
}

namespace {

/// One run: keys and values packed, and blocks of queries.
class Attention {
 public:
  Attention(const AttentionShape& shape, const AttentionData& data, float* scratch)
      : s_(shape),
        d_(data),
        key_step_(key_floats(shape)),
        value_step_(value_floats(shape)),
        packed_keys_(scratch),
        packed_values_(scratch +
                       (static_cast<size_t>(shape.batch * shape.kv_heads) * key_step_ + 15) / 16 *
                           16),
        held_(static_cast<size_t>(shape.batch * shape.kv_heads)) {
    // Blocks whose scores take at most half a megabyte. A causal block computes a triangle that
    // counts for nothing: smaller ones waste less.
    const int64_t most = s_.causal ? std::clamp<int64_t>(s_.rows / 8, 32, 256) : 256;
    const int64_t together = std::clamp<int64_t>((1 << 17) / ld_, 4, most);
    blocks_ = (s_.rows + together - 1) / together;
    constexpr int64_t kLeastRows = 16;
    const int64_t products = s_.columns * (s_.size + s_.value_size);
    blocks_ = row_blocks(blocks_, s_.batch * s_.q_heads, s_.rows,
                         std::max(kLeastRows, kWorthATurn / std::max<int64_t>(products, 1)));
    // Even parts: a block of a row or two would be summed in another order. Whole tiles of AMX.
    unit_ = by_digits(s_) ? kDigitsRows : 1;
    units_ = (s_.rows + unit_ - 1) / unit_;
    blocks_ = std::min(blocks_, units_);
    block_ = (units_ + blocks_ - 1) / blocks_ * unit_;
  }

  void run() {
    const bool packs = pack_keys(s_) || pack_values(s_), makes = d_.make != nullptr && !once_;
    if (packs || makes)
      parallel(s_.batch * s_.kv_heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          for (const bool values : {false, true})
            if (makes) d_.make(d_.argument, line, values, 0, s_.columns, true);
          if (packs) pack(line);
        }
      });
    parallel(s_.batch * s_.q_heads * blocks_, 1, [&](int64_t begin, int64_t end) {
      const int64_t tiles = by_digits(s_) ? block_ / kDigitsRows : 0;
      float* const room = thread_floats(
          1, static_cast<size_t>(block_ * (ld_ + 2) +
                                 tiles * digit_tile_bytes(std::max(s_.size, s_.columns)) / 4 + 16));
      for (int64_t task = begin; task < end; ++task)
        attend(task / blocks_ / s_.q_heads, task / blocks_ % s_.q_heads, task % blocks_, room);
    });
  }

 private:
  float* keys_of(int64_t line) const {
    return packed_keys_ + static_cast<size_t>(line) * key_step_;
  }
  float* values_of(int64_t line) const {
    return packed_values_ + static_cast<size_t>(line) * value_step_;
  }

  void pack(int64_t line) {
    const int64_t b = line / s_.kv_heads, h = line % s_.kv_heads;
    const float *k = d_.k + s_.k.at(b, h), *v = d_.v + s_.v.at(b, h);
    // What does not count may be no number: it must not meet even a weight of 0.
    const int64_t valid = std::min(s_.columns, d_.valid[b]);
    float *const keys = keys_of(line), *const values = values_of(line);
    if (by_bf16(s_)) {
      bf16_pack_b(k, 1, s_.k.step_stride, s_.size, s_.columns, s_.scale, bytes_of(keys));
      bf16_pack_b(v, s_.v.step_stride, 1, valid, s_.value_size, 1, bytes_of(values));
      return;
    }
    if (by_digits(s_)) {
      held_[static_cast<size_t>(line)] =
          digits_pack_b(k, 1, s_.k.step_stride, s_.size, valid, s_.scale, true, key_panels(s_),
                        bytes_of(keys)) &&
          digits_pack_b(v, s_.v.step_stride, 1, valid, s_.value_size, 1, false, value_panels(s_),
                        bytes_of(values));
      if (held_[static_cast<size_t>(line)]) return;
    }
    if (pack_keys(s_)) pack_b(k, 1, s_.k.step_stride, s_.size, s_.columns, s_.scale, keys);
    if (pack_values(s_)) pack_b(v, s_.v.step_stride, 1, s_.columns, s_.value_size, 1, values);
  }

  /// The keys that count for any of the queries, in whole panels.
  KeyRange keys_for(int64_t b, int64_t first, int64_t last) const {
    KeyRange whole{s_.columns, 0};
    for (int64_t row = first; row < last; ++row) {
      const KeyRange range = range_of(s_, d_, b, row);
      if (range.from == range.to) continue;
      whole.from = std::min(whole.from, range.from);
      whole.to = std::max(whole.to, range.to);
    }
    if (whole.from >= whole.to) return {0, 0};
    // The values of bf16 are packed as one.
    if (by_bf16(s_)) return {0, std::min(s_.columns, d_.valid[b])};
    const int64_t unit = by_digits(s_) ? kDigitsDepth : gemm_tiles().panel();
    return {whole.from / unit * unit, whole.to};
  }

  /// The first query of a block.
  int64_t start_of(int64_t block) const {
    return std::min(s_.rows, units_ * block / blocks_ * unit_);
  }

  void attend(int64_t b, int64_t h, int64_t block, float* scores) const {
    const int64_t first = start_of(block), count = start_of(block + 1) - first;
    const int64_t line = b * s_.kv_heads + h / (s_.q_heads / s_.kv_heads);
    float* const y = d_.y + s_.y.at(b, h) + first * s_.y.step_stride;
    const KeyRange keys = keys_for(b, first, first + count);
    if (keys.from == keys.to) {
      for (const bool values : {false, true})
        each_part(line, values, keys, nullptr, [](auto...) {});
      for (int64_t i = 0; i < count; ++i)
        std::fill_n(y + i * s_.y.step_stride, s_.value_size, 0.0f);
      return;
    }
    const float* const q = d_.q + s_.q.at(b, h) + first * s_.q.step_stride;
    float* const factors = scores + block_ * ld_;
    if (by_digits(s_) && held_[static_cast<size_t>(line)]) {
      float* const scales = factors + block_;
      const Digits digits{scales, bytes_of(scales + round_up(block_, 16))};
      score_by_digits(line, q, count, keys, digits, scores);
      weigh_by_digits(b, h, first, count, keys, digits, scores, factors);
      return add_values_by_digits(line, count, keys, digits, factors, y);
    }
    score(b, h, line, q, count, keys, scores);
    weigh_rows(b, h, first, count, keys, scores, factors);
    add_values(b, h, line, count, keys, scores, y);
    scale_rows(y, s_.y.step_stride, count, s_.value_size, factors);
  }

  void score(int64_t b, int64_t h, int64_t line, const float* q, int64_t count, KeyRange keys,
             float* scores) const {
    const int64_t width = gemm_tiles().panel();
    if (by_bf16(s_))
      return bf16_gemm(count, keys.to, s_.size, q, s_.q.step_stride, bytes_of(keys_of(line)),
                       scores, ld_, {});
    if (pack_keys(s_))
      return attention_product(count, keys.to - keys.from, s_.size, q, s_.q.step_stride,
                               keys_of(line) + keys.from * s_.size, width, width * s_.size,
                               scores + keys.from, ld_);
    each_part(line, false, keys, d_.k + s_.k.at(b, h / (s_.q_heads / s_.kv_heads)),
              [&](const float* k, int64_t from, int64_t to) {
                turned_rows({q, s_.q.step_stride, count, k, s_.k.step_stride, to - from, s_.size,
                             scores + from, ld_});
              });
  }

  /// take(steps, from, to) for the keys that count, or their values: all of them where they lie
  /// (`there`), or as they are made, while they are in the first cache.
  template <typename Take>
  void each_part(int64_t line, bool values, KeyRange keys, const float* there, Take&& take) const {
    const int64_t step = values ? s_.v.step_stride : s_.k.step_stride;
    if (d_.make == nullptr || !once_) {
      if (keys.from < keys.to) take(there + keys.from * step, keys.from, keys.to);
      return;
    }
    constexpr int64_t kNear = 4096;  // floats
    const int64_t together = std::clamp<int64_t>(kNear / step / 16 * 16, 16, 256);
    for (int64_t at = 0; at < s_.columns; at += together) {
      const int64_t end = std::min(s_.columns, at + together);
      const float* const made = d_.make(d_.argument, line, values, at, end, false);
      const int64_t from = std::max(at, keys.from), to = std::min(end, keys.to);
      if (from < to) take(made + (from - at) * step, from, to);
    }
  }

  /// Scores of queries to weights but for factors.
  void weigh_rows(int64_t b, int64_t h, int64_t first, int64_t count, KeyRange keys, float* scores,
                  float* factors) const {
    if (s_.softcap <= 0 && d_.sinks == nullptr && same_for_all(s_) &&
        range_of(s_, d_, b, first).to == keys.to) {
      const int64_t mask_at =
          b * s_.mask_stride[0] + h * s_.mask_stride[1] + first * s_.mask_stride[2];
      const WholeRows rows{.scores = scores,
                           .ld = ld_,
                           .rows = count,
                           .n = keys.to,
                           .scale = pack_keys(s_) ? 1 : s_.scale,
                           .mask = d_.mask != nullptr ? d_.mask + mask_at : nullptr,
                           .bytes = d_.bool_mask != nullptr ? d_.bool_mask + mask_at : nullptr,
                           .mask_step = s_.mask_stride[2],
                           .factors = factors};
      return TOMBOLO_TARGET(void(const WholeRows&), weigh_whole_rows)(rows);
    }
    for (int64_t i = 0; i < count; ++i)
      factors[i] =
          weigh(s_, d_, b, h, first + i, range_of(s_, d_, b, first + i), keys, scores + i * ld_);
  }

  void add_values(int64_t b, int64_t h, int64_t line, int64_t count, KeyRange keys,
                  const float* weights, float* y) const {
    const int64_t width = gemm_tiles().panel(), used = keys.to - keys.from;
    if (by_bf16(s_))
      return bf16_gemm(count, s_.value_size, keys.to, weights, ld_, bytes_of(values_of(line)), y,
                       s_.y.step_stride, {});
    if (pack_values(s_))
      return attention_product(count, s_.value_size, used, weights + keys.from, ld_,
                               values_of(line) + keys.from * width, width, width * s_.columns, y,
                               s_.y.step_stride);
    each_part(line, true, keys, d_.v + s_.v.at(b, h / (s_.q_heads / s_.kv_heads)),
              [&](const float* v, int64_t from, int64_t to) {
                const LastValues last(v, s_.v.step_stride, to - from, s_.value_size);
                const int64_t lie = to - from - last.count();
                if (lie > 0)
                  attention_product(count, s_.value_size, lie, weights + from, ld_, v,
                                    s_.v.step_stride, width, y, s_.y.step_stride, from > keys.from);
                if (last.count() > 0)
                  attention_product(count, s_.value_size, last.count(), weights + from + lie, ld_,
                                    last.at(), last.ld(), width, y, s_.y.step_stride,
                                    from + lie > keys.from);
              });
  }

  /// Rows of queries or weights as integers.
  struct Digits {
    float* scales;
    std::byte* tiles;
  };

  void score_by_digits(int64_t line, const float* q, int64_t count, KeyRange keys,
                       const Digits& digits, float* scores) const {
    const PlainRows queries{q, s_.q.step_stride};
    // One scale for each tile: where blocks end changes nothing.
    for (int64_t row = 0; row < count; row += kDigitsRows) {
      const float* const from = q + row * s_.q.step_stride;
      const int64_t some = std::min(kDigitsRows, count - row);
      split_tiles(
          some, s_.size, digits.tiles + row / kDigitsRows * digit_tile_bytes(s_.size),
          digits.scales + row,
          [&](int64_t r) {
            return DigitRow{from + r * s_.q.step_stride, 16, s_.size};
          },
          digits_scale_of_rows(from, s_.q.step_stride, some, s_.size));
    }
    const DigitRows rows{.digits = digits.tiles,
                         .tile = digit_tile_bytes(s_.size),
                         .scales = digits.scales,
                         .floats = &PlainRows::row,
                         .argument = &queries};
    digits_product(rows, count, bytes_of(keys_of(line)), key_panels(s_), {.c = scores, .ldc = ld_},
                   digits_depth(count, key_panels(s_).steps()), keys.from / kDigitsHalf,
                   (keys.to + kDigitsHalf - 1) / kDigitsHalf);
  }

  /// As weigh_rows(), and weights to integers while they are near.
  void weigh_by_digits(int64_t b, int64_t h, int64_t first, int64_t count, KeyRange keys,
                       const Digits& digits, float* scores, float* factors) const {
    const int64_t used = keys.to - keys.from;
    constexpr int64_t kNear = 8192;  // floats
    const int64_t together = std::clamp<int64_t>(kNear / used, 1, kDigitsRows);
    for (int64_t row = 0; row < count; row += together) {
      const int64_t some = std::min(together, count - row);
      weigh_rows(b, h, first + row, some, keys, scores + row * ld_, factors + row);
      for (int64_t r = row; r < row + some; ++r) {
        split_digits_as({scores + r * ld_ + keys.from, 16, used}, kDigitsOfOne,
                        digit_places(digits.tiles, r, used));
        digits.scales[r] = factors[r] * kDigitsOfOne.scale;
      }
    }
    for (int64_t r = count; r < round_up(count, kDigitsRows); ++r)
      clear_digits(used, digit_places(digits.tiles, r, used));
  }

  void add_values_by_digits(int64_t line, int64_t count, KeyRange keys, const Digits& digits,
                            const float* factors, float* y) const {
    DigitPanels panels = value_panels(s_);
    panels.whole = panels.steps();
    panels.skipped = keys.from / kDigitsDepth;
    panels.k = keys.to - keys.from;
    const DigitRows rows{.digits = digits.tiles,
                         .tile = digit_tile_bytes(panels.k),
                         .scales = digits.scales,
                         .floats = nullptr,  // weights are between 0 and 1
                         .argument = nullptr};
    digits_product(rows, count, bytes_of(values_of(line)), panels,
                   {.c = y, .ldc = s_.y.step_stride}, digits_depth(count, panels.steps()), 0,
                   panels.halves());
    for (int64_t r = 0; r < count; ++r)
      if (std::isnan(factors[r])) std::fill_n(y + r * s_.y.step_stride, s_.value_size, factors[r]);
  }

  const AttentionShape& s_;
  const AttentionData& d_;
  const int64_t ld_ = (s_.columns + 15) / 16 * 16 + 16;
  const bool once_ = attention_reads_once(s_);
  const size_t key_step_, value_step_;  ///< floats of a head
  int64_t unit_ = 1, units_ = 0;        ///< of queries that stay together
  int64_t block_ = 0, blocks_ = 0;      ///< queries of the largest block
  float *packed_keys_, *packed_values_;
  std::vector<uint8_t> held_;  ///< lines whose keys and values integers hold
};

}  // namespace

void run_attention(const AttentionShape& s, const AttentionData& d, float* scratch) {
  if (attention_turns(s, d)) return run_attention_turned(s, d, scratch);
  Attention(s, d, scratch).run();
}

}  // namespace tombolo
#endif
