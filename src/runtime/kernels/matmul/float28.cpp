#include "runtime/kernels/matmul/float28.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/float28.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm_tile-inl.h"
#include "runtime/kernels/matmul/gemm_tile.h"
#include "runtime/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using U = hn::RebindToUnsigned<F>;
using W = hn::Vec<U>;

/// Four bits of `from`'s word that belong to the eighth one.
template <int kAt>
HWY_INLINE W with_part(W so_far, W from) {
  const U u;
  return hn::OrAnd(so_far, hn::ShiftRight<27 - 4 * kAt>(from), hn::Set(u, 0xFu << (4 * kAt)));
}

/// Hands the eight vectors of a group to put(index, vector), one by one: registers are few. `raw`
/// is where the next eighth one lies that is kept as floats.
template <class Put>
HWY_INLINE void take_group(const float* HWY_RESTRICT words, uint32_t base,
                           const float* HWY_RESTRICT& raw, Put&& put) {
  const F f;
  const U u;
  constexpr int64_t lanes = HWY_LANES(float);
  if (base == kFloat28Raw) [[unlikely]] {
#pragma GCC unroll 8
    for (int i = 0; i < 7; ++i) put(i, hn::LoadU(f, words + i * lanes));
    put(7, hn::LoadU(f, raw));
    raw += lanes;
    return;
  }
  const W from = hn::Set(u, base << 23), keep = hn::Set(u, 0x87FFFFFFu);
  const auto next = [&](int i) HWY_ATTR __attribute__((always_inline)) {
    const W word = hn::BitCast(u, hn::LoadU(f, words + i * lanes));
    put(i, hn::BitCast(f, hn::Add(hn::And(word, keep), from)));
    return word;
  };
  W last = hn::And(hn::ShiftRight<27>(next(0)), hn::Set(u, 0xFu));
  last = with_part<1>(last, next(1));
  last = with_part<2>(last, next(2));
  last = with_part<3>(last, next(3));
  last = with_part<4>(last, next(4));
  last = with_part<5>(last, next(5));
  const W seventh = next(6);
  last = hn::OrAnd(last, hn::ShiftRight<3>(seventh), hn::Set(u, 0x07000000u));
  last = hn::OrAnd(last, hn::ShiftLeft<1>(seventh), hn::Set(u, 0x80000000u));
  put(7, hn::BitCast(f, hn::Add(last, from)));
}

/// Rows ahead that are asked for: taking groups apart leaves the processor's own streams less time.
inline constexpr int64_t kSoon = 24;

/// Some panels side by side, summed as the wide tiles of floats do (gemm_tile.cpp): equal bits.
template <int kR, int kP>
void wide28(const GemmTile& t) {
  const F f;
  constexpr int64_t lanes = HWY_LANES(float);
  V acc[kR][2 * kP];
  zero(acc);
  const float* HWY_RESTRICT a = t.a;
  const int64_t lda = t.lda, panel = t.panel_step;
  const uint8_t* HWY_RESTRICT bases = t.bases;
  const float* HWY_RESTRICT words = t.b;
  const float* raw[kP];
  for (int p = 0; p < kP; ++p) raw[p] = t.raws + p * panel;
  Parts<kR, 2 * kP> parts;
  // Rows of B that are summed: all of a group but at the end.
  const auto group = [&](auto whole, int64_t rows) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int p = 0; p < kP; ++p) {
      if constexpr (kP == 1) {
#pragma GCC unroll 8
        for (int line = 0; line < 7; ++line) {
          __builtin_prefetch(words + (kFarAlone / kFloat28Rows * 7 + line) * lanes, 0, 2);
          __builtin_prefetch(words + (kAlone / kFloat28Rows * 7 + line) * lanes);
        }
      } else {
#pragma GCC unroll 8
        for (int line = 0; line < 7; ++line)
          __builtin_prefetch(words + p * panel + (kSoon / kFloat28Rows * 7 + line) * lanes);
      }
      V b[8];
      take_group(
          words + p * panel, bases[p * panel * 4],
          raw[p], [&](int i, V v) HWY_ATTR __attribute__((always_inline)) { b[i] = v; });
#pragma GCC unroll 4
      for (int s = 0; s < kFloat28Rows; ++s) {
        if (!decltype(whole)::value && s >= rows) break;
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
          const V av = hn::Set(f, a[r * lda + s]);
          acc[r][2 * p] = hn::MulAdd(av, b[2 * s], acc[r][2 * p]);
          acc[r][2 * p + 1] = hn::MulAdd(av, b[2 * s + 1], acc[r][2 * p + 1]);
        }
      }
    }
    a += kFloat28Rows;
    ++bases;
    words += 7 * lanes;
  };
  bool any = false;
  for (int64_t k = t.k; k > 0;) {
    const int64_t part = next_part(k);
    k -= part;
    int64_t i = 0;
    for (; i + kFloat28Rows <= part; i += kFloat28Rows) group(std::true_type(), kFloat28Rows);
    if (i < part) group(std::false_type(), part - i);
    if (any) parts.take(acc);
    any = k > 0;
    if (any) parts.put(acc);
  }
  finish(t, acc);
}

/// Many rows of A by a panel, which goes to `t.widened` as floats for the tiles after this: a group
/// at a time, so that taking it apart hides behind the products.
template <int kR, bool kPacked>
void widening28(const GemmTile& t) {
  const F f;
  constexpr int64_t lanes = HWY_LANES(float), width = 2 * lanes;
  V acc[kR][2];
  begin<kR, 2>(t, acc);
  RowsOfA<kR, kPacked> a(t.a, t.lda);
  const uint8_t* HWY_RESTRICT bases = t.bases;
  const float* HWY_RESTRICT words = t.b;
  const float* raw = t.raws;
  float* HWY_RESTRICT widened = t.widened;
  const int64_t kept = t.widened_once ? 0 : kFloat28Rows * width;
  const float* next = t.next != nullptr ? t.next : words + kFarAlone / kFloat28Rows * 7 * lanes;
  const int64_t next_step = t.next != nullptr ? t.next_step : width;
  const int64_t also = t.next != nullptr ? t.next_also : lanes;
  Parts<kR, 2> parts;
  bool any = false;
  for (int64_t k = t.k; k > 0;) {
    const int64_t part = next_part(k);
    k -= part;
    for (int64_t i = 0; i < part; i += kFloat28Rows, words += 7 * lanes, widened += kept) {
      take_group(
          words, *bases++, raw, [&](int v, V b) HWY_ATTR __attribute__((always_inline)) {
            hn::StoreU(b, f, widened + v * lanes);
          });
#pragma GCC unroll 8
      for (int line = 0; line < 7; ++line)
        __builtin_prefetch(words + (kSoon / kFloat28Rows * 7 + line) * lanes);
      const int64_t rows = std::min(kFloat28Rows, part - i);
      for (int64_t s = 0; s < rows; ++s) {
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + also, 0, 2);
        next += next_step;
        step<kR, 2, kPacked>(acc, a, widened + s * width);
        a.advance();
      }
    }
    if (any) parts.take(acc);
    any = k > 0;
    if (any) parts.put(acc);
  }
  finish(t, acc);
}

using I = hn::RebindToSigned<F>;

/// The least and the greatest of a group, without signs, so far.
struct Range28 {
  hn::Vec<I> low, high;
};
HWY_INLINE Range28 no_range() { return {hn::Set(I(), INT32_MAX), hn::Zero(I())}; }
HWY_INLINE void take(hn::Vec<I> bits, Range28& range) {
  const auto size = hn::And(bits, hn::Set(I(), INT32_MAX));
  range.low = hn::Min(range.low, size);
  range.high = hn::Max(range.high, size);
}
HWY_INLINE Float28Range all_of(const Range28& range) {
  return {hn::GetLane(hn::MinOfLanes(I(), range.low)),
          hn::GetLane(hn::MaxOfLanes(I(), range.high))};
}

/// Of `rows` rows of at least one vector, `step` numbers apart.
Float28Range range28(const int32_t* b, int64_t step, int64_t rows, int64_t columns) {
  constexpr int64_t lanes = HWY_LANES(float);
  Range28 range = no_range();
  for (int64_t r = 0; r < rows; ++r, b += step) {
    for (int64_t j = 0; j + lanes < columns; j += lanes) take(hn::LoadU(I(), b + j), range);
    take(hn::LoadU(I(), b + columns - lanes), range);
  }
  return all_of(range);
}

/// Of each of n numbers, at least one vector, and what is there.
void ranges28(const int32_t* b, int64_t n, int32_t* HWY_RESTRICT low, int32_t* HWY_RESTRICT high) {
  constexpr int64_t lanes = HWY_LANES(float);
  const I i;
  for (int64_t j = 0; j < n; j += lanes) {
    const int64_t at = std::min(j, n - lanes);
    const auto size = hn::And(hn::LoadU(i, b + at), hn::Set(i, INT32_MAX));
    hn::StoreU(hn::Min(hn::LoadU(i, low + at), size), i, low + at);
    hn::StoreU(hn::Max(hn::LoadU(i, high + at), size), i, high + at);
  }
}

/// Groups of floats [4][two vectors].
void pack28(const float* rows, int64_t groups, uint8_t* bases, float* words, float* raws) {
  constexpr int64_t lanes = HWY_LANES(float);
  const U u;
  for (; groups > 0; --groups, rows += 8 * lanes, words += 7 * lanes) {
    W w[8];
    Range28 range = no_range();
    for (int v = 0; v < 8; ++v) {
      w[v] = hn::BitCast(u, hn::LoadU(F(), rows + v * lanes));
      take(hn::BitCast(I(), w[v]), range);
    }
    const Float28Range all = all_of(range);
    const auto put = [&](float* to, W word)
                         HWY_ATTR { hn::StoreU(hn::BitCast(F(), word), F(), to); };
    if (!all.fits()) {
      *bases++ = kFloat28Raw;
      for (int v = 0; v < 7; ++v) put(words + v * lanes, w[v]);
      put(raws, w[7]);
      raws += lanes;
      continue;
    }
    const uint32_t base = all.base();
    *bases++ = static_cast<uint8_t>(base);
    for (W& word : w)  // sign, exponent - base, mantissa
      word = hn::OrAnd(hn::And(word, hn::Set(u, 0x80000000u)),
                       hn::Sub(word, hn::Set(u, base << 23)), hn::Set(u, 0x07FFFFFFu));
    const W last = hn::Or(hn::ShiftRight<4>(hn::And(w[7], hn::Set(u, 0x80000000u))),
                          hn::And(w[7], hn::Set(u, 0x07FFFFFFu)));
    for (int v = 0; v < 7; ++v) {
      const W part = hn::And(hn::ShiftRightSame(last, 4 * v), hn::Set(u, 0xFu));
      put(words + v * lanes, hn::Or(w[v], hn::ShiftLeft<27>(part)));
    }
  }
}

/// Groups of a panel, as floats.
void widen28(const uint8_t* bases, int64_t groups, const float* words, const float* raw,
             float* out) {
  constexpr int64_t lanes = HWY_LANES(float);
  for (int64_t g = 0; g < groups; ++g, words += 7 * lanes, out += 8 * lanes)
    take_group(
        words, bases[g], raw, [&](int i, V v) HWY_ATTR __attribute__((always_inline)) {
          hn::StoreU(v, F(), out + i * lanes);
        });
}

template <int... kR>
void fill_wide28(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  constexpr int kSums = kRows * 2;  // that registers hold
  auto& to = tiles.wide[static_cast<int>(PanelFormat::kFloat28)];
  (((to[kR + 1][1] = &wide28<kR + 1, 1>),
    (to[kR + 1][2] = (kR + 1) * 4 <= kSums ? &wide28<kR + 1, 2> : nullptr),
    (to[kR + 1][4] = (kR + 1) * 8 <= kSums ? &wide28<kR + 1, 4> : nullptr)),
   ...);
}

template <int... kR>
void fill_widening28(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  auto& to = tiles.widening[static_cast<int>(PanelFormat::kFloat28)];
  ((to[kR + kRows / 2][0] = &widening28<kR + kRows / 2, false>), ...);
  if (tiles.packs_rows) ((to[kR + kRows / 2][1] = &widening28<kR + kRows / 2, true>), ...);
}

void fill_float28(GemmTiles& tiles) {
  fill_wide28(tiles, std::make_integer_sequence<int, kMaxWideRows>());
  fill_widening28(tiles, std::make_integer_sequence<int, kRows - kRows / 2 + 1>());
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

/// The greatest number of groups of one panel that do not fit.
class Misfits {
 public:
  explicit Misfits(int64_t panels) : of_panel_(static_cast<size_t>(panels)) {}
  void add(int64_t panel, int64_t count) {
    of_panel_[static_cast<size_t>(panel)].fetch_add(count, std::memory_order_relaxed);
  }
  int64_t most() const {
    int64_t most = 0;
    for (const auto& count : of_panel_) most = std::max(most, count.load());
    return most;
  }

 private:
  std::vector<std::atomic<int64_t>> of_panel_;
};

}  // namespace

std::optional<Float28Panels> float28_fits(const std::byte* b, int64_t k, int64_t n, bool turned,
                                          const ReadFloats& read) {
  const int64_t width = gemm_tiles().panel(), panels = (n + width - 1) / width;
  Float28Panels layout{k, gemm_tiles().lanes, 0};
  const int64_t groups = layout.groups();
  // One vector more for each sixteenth group is a hundredth of the whole.
  const int64_t allowed = groups / 16 + 1;
  Misfits misfits(panels);
  std::atomic<bool> too_many = false;
  const auto* bits = reinterpret_cast<const int32_t*>(b);
  using Range = Float28Range(const int32_t*, int64_t, int64_t, int64_t);
  using Ranges = void(const int32_t*, int64_t, int32_t*, int32_t*);
  if (turned) {  // a column of B is a row of floats
    parallel(panels, std::max<int64_t>(1, 65536 / (k * width)), [&](int64_t begin, int64_t end) {
      const auto size = static_cast<size_t>(k);
      std::vector<int32_t> low(size), high(size);
      for (int64_t p = begin; p < end && !too_many; ++p) {
        std::fill(low.begin(), low.end(), INT32_MAX);
        std::fill(high.begin(), high.end(), 0);
        const int64_t to = std::min(n, (p + 1) * width);
        for (int64_t j = p * width; j < to; ++j)
          TOMBOLO_TARGET(Ranges, ranges28)(bits + j * k, k, low.data(), high.data());
        int64_t count = 0;
        for (int64_t i = 0; i < k; i += kFloat28Rows) {
          const int64_t end_of_group = std::min(k, i + kFloat28Rows);
          count += !Float28Range{*std::min_element(low.data() + i, low.data() + end_of_group),
                                 *std::max_element(high.data() + i, high.data() + end_of_group)}
                        .fits();
        }
        misfits.add(p, count);
        if (count > allowed) too_many = true;
        read.done(read.argument, p * width * k, to * k);
      }
    });
  } else {
    parallel(groups, std::max<int64_t>(1, 65536 / n), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end && !too_many; ++g) {
        const int64_t row = g * kFloat28Rows, rows = std::min(k - row, kFloat28Rows);
        // The last panel is looked at together with what is left of it from the one before, so that
        // there is a whole vector.
        for (int64_t p = 0; p < panels; ++p) {
          const int64_t column = std::min(p * width, n - layout.lanes);
          const int64_t columns = std::min((p + 1) * width, n) - column;
          if (!TOMBOLO_TARGET(Range, range28)(bits + row * n + column, n, rows, columns).fits())
            misfits.add(p, 1);
        }
        if (g % 64 == 0 && misfits.most() > allowed) too_many = true;
      }
      read.done(read.argument, begin * kFloat28Rows * n, std::min(k, end * kFloat28Rows) * n);
    });
  }
  layout.raws = misfits.most();
  if (too_many || layout.raws > allowed) return std::nullopt;
  return layout;
}

void float28_begin(const Float28Panels& panels, std::byte* matrix) {
  std::memset(matrix, 0, kFloat28Header);
  std::memcpy(matrix, &panels.raws, sizeof panels.raws);
}

Float28Panels float28_panels(const void* matrix, int64_t k) {
  Float28Panels panels{k, gemm_tiles().lanes, 0};
  std::memcpy(&panels.raws, matrix, sizeof panels.raws);
  return panels;
}

void float28_widen(const Float28Panels& panels, int64_t panel, const void* matrix, float* out) {
  const auto* const at =
      static_cast<const float*>(matrix) + kFloat28Header / 4 + panel * panels.panel();
  using Fn = void(const uint8_t*, int64_t, const float*, const float*, float*);
  TOMBOLO_TARGET(Fn, widen28)
  (reinterpret_cast<const uint8_t*>(at), panels.groups(), at + panels.words(), at + panels.raw(),
   out);
}

void float28_pack(float* rows, int64_t k0, int64_t k, int64_t columns, const Float28Panels& panels,
                  int64_t panel, std::byte* matrix) {
  const int64_t lanes = panels.lanes, width = 2 * lanes, first = k0 / kFloat28Rows;
  const int64_t groups = (k + kFloat28Rows - 1) / kFloat28Rows;
  // What fills up the panel and its last group is never used: as any number of the group, it fits.
  for (int64_t i = 0; i < groups * kFloat28Rows; ++i)
    if (i < k)
      std::fill(rows + i * width + columns, rows + (i + 1) * width, rows[i * width]);
    else
      std::copy_n(rows + (i - 1) * width, width, rows + i * width);
  float* const out = reinterpret_cast<float*>(matrix + kFloat28Header) + panel * panels.panel();
  auto* const bases = reinterpret_cast<uint8_t*>(out);
  TOMBOLO_TARGET(void(const float*, int64_t, uint8_t*, float*, float*), pack28)
  (rows, groups, bases + first, out + panels.words() + first * panels.group(),
   out + panels.raw() + std::count(bases, bases + first, kFloat28Raw) * lanes);
}

}  // namespace tombolo
#endif
