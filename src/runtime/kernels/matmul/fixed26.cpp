#include "runtime/kernels/matmul/fixed26.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/fixed26.cpp"
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
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm_tile-inl.h"
#include "runtime/kernels/matmul/gemm_tile.h"
#include "runtime/kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using W = hn::Vec<U>;

/// The lowest six bits of a word become those of a number that follow its first `kBefore`.
template <int kBefore>
HWY_INLINE W with_bits(W so_far, W from) {
  return hn::OrAnd(so_far, hn::ShiftLeft<26 - kBefore>(from), hn::Set(U(), 0xFC000000u >> kBefore));
}

/// Hands the sixteen vectors of a group to put(index, vector), one by one: registers are few.
/// Returns what they are to be multiplied by, unless they are to be floats already. `raw` is where
/// the next three lie that are kept as floats. kAsks: for the group at `ahead`, a vector with each.
template <bool kFloats, bool kAsks = false, class Put>
HWY_INLINE V take_group(const float* HWY_RESTRICT words, uint32_t scale,
                        const float* HWY_RESTRICT& raw, Put&& put,
                        [[maybe_unused]] const float* ahead = nullptr) {
  const F f;
  const U u;
  constexpr int64_t lanes = HWY_LANES(float);
  if (scale == kFixed26Raw) [[unlikely]] {
#pragma GCC unroll 16
    for (int i = 0; i < kFixed26Words; ++i) {
      if constexpr (kAsks) __builtin_prefetch(ahead + i * lanes);
      put(i, hn::LoadU(f, words + i * lanes));
    }
#pragma GCC unroll 4
    for (int i = 0; i < kFixed26Rest; ++i) put(kFixed26Words + i, hn::LoadU(f, raw + i * lanes));
    raw += kFixed26Rest * lanes;
    return hn::Set(f, 1);
  }
  const V unit = hn::BitCast(f, hn::Set(u, scale << 23));
  const auto put_word = [&](int i, W word) HWY_ATTR __attribute__((always_inline)) {
    const V integer = hn::ConvertTo(f, hn::ShiftRight<6>(hn::BitCast(I(), word)));
    put(i, kFloats ? hn::Mul(integer, unit) : integer);
    return word;
  };
  const auto next = [&](int i) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kAsks) __builtin_prefetch(ahead + i * lanes);
    return put_word(i, hn::BitCast(u, hn::LoadU(f, words + i * lanes)));
  };
  const W last = next(12), two = hn::Set(u, 0xC0u);
  const auto gather = [&](int i) HWY_ATTR __attribute__((always_inline)) {
    W rest = hn::ShiftLeft<26>(next(i));
    rest = with_bits<6>(rest, next(i + 1));
    rest = with_bits<12>(rest, next(i + 2));
    return with_bits<18>(rest, next(i + 3));
  };
  put_word(13, hn::OrAnd(gather(0), hn::ShiftLeft<6>(last), two));
  put_word(14, hn::OrAnd(gather(4), hn::ShiftLeft<4>(last), two));
  put_word(15, hn::OrAnd(gather(8), hn::ShiftLeft<2>(last), two));
  return unit;
}

/// Where so many rows on lie.
constexpr int64_t words_of(int64_t rows) {
  return rows / kFixed26Rows * kFixed26Words * HWY_LANES(float);
}

inline constexpr int64_t kLine = 16;  ///< floats of a cache line
/// Asks for a group, in the first cache (3) or the second (2).
template <int kCache, size_t... kI>
HWY_INLINE void ask_for(const float* words, std::index_sequence<kI...>) {
  (__builtin_prefetch(words + kI * kLine, 0, kCache), ...);
}
template <int kCache>
HWY_INLINE void ask_for(const float* words) {
  constexpr size_t kLines = (words_of(kFixed26Rows) + kLine - 1) / kLine;
  ask_for<kCache>(words, std::make_index_sequence<kLines>());
}

/// Rows from which on parts are twice as long: about as many parts as sums in each.
inline constexpr int64_t kDeep = 8192;
/// Rows ahead that are asked for: taking groups apart leaves the processor's own streams less time.
inline constexpr int64_t kSoon = 24;
int64_t rows_ahead(int panels) {
  if (panels == 1) return kAlone;
  return reads_one_stream() && HWY_LANES(float) < 16 ? 2 * kSoon : kSoon;
}

/// The sums of a tile once more, of floats: integers are up to 2^25 times as large as what they
/// stand for, so that a number of A beyond 2^100 made some infinite.
void sum_again(const GemmTile& t, int rows, int panels, float* sums) {
  const F f;
  constexpr int64_t lanes = HWY_LANES(float);
  for (int r = 0; r < rows; ++r)
    for (int p = 0; p < panels; ++p) {
      V acc[2] = {hn::Zero(f), hn::Zero(f)};
      const uint8_t* scales = t.scales + p * t.panel_step * 4;
      const float *words = t.b + p * t.panel_step, *raw = t.raws + p * t.panel_step;
      for (int64_t k = 0; k < t.k; k += kFixed26Rows, words += kFixed26Words * lanes)
        take_group<true>(words, *scales++, raw, [&](int i, V v) HWY_ATTR {
          if (k + i / 2 >= t.k) return;
          acc[i % 2] = hn::MulAdd(hn::Set(f, t.a[r * t.lda + k + i / 2]), v, acc[i % 2]);
        });
      for (const V& sum : acc) {
        hn::StoreU(sum, f, sums);
        sums += lanes;
      }
    }
}

/// Whether all are finite.
template <int kR, int kV>
HWY_INLINE bool finite(const V (&acc)[kR][kV]) {
  V zeros = hn::Zero(F());  // a number times zero, or NaN
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) zeros = hn::MulAdd(acc[r][v], hn::Zero(F()), zeros);
  return hn::AllTrue(F(), hn::Eq(zeros, zeros));
}

/// Some panels side by side. Products of a group are added up before they meet the sum of the ones
/// before it: nearer to the exact one than one after the other, and one scale for all.
template <int kR, int kP>
void wide26(const GemmTile& t) {
  const F f;
  constexpr int64_t lanes = HWY_LANES(float);
  V acc[kR][2 * kP];
  zero(acc);
  const float* HWY_RESTRICT a = t.a;
  const int64_t lda = t.lda, panel = t.panel_step;
  const uint8_t* HWY_RESTRICT scales = t.scales;
  const float* HWY_RESTRICT words = t.b;
  const float* raw[kP];
  for (int p = 0; p < kP; ++p) raw[p] = t.raws + p * panel;
  Parts<kR, 2 * kP> parts;
  const int64_t rows_before = rows_ahead(kP);
  const float* ahead = words + words_of(rows_before);
  const int64_t groups = (t.k + kFixed26Rows - 1) / kFixed26Rows;
  int64_t left = std::max<int64_t>(groups - rows_before / kFixed26Rows, 0);
  const float* const next = t.next != nullptr ? t.next : words + words_of(t.k);
  const uint8_t* const next_scales =
      reinterpret_cast<const uint8_t*>(next) - (reinterpret_cast<const uint8_t*>(t.b) - t.scales);
  // All lines of a group asked for at once keep the loads waiting, where vectors are lines.
  constexpr bool kAsks = kP == 2 && lanes == 16;
  // Rows of B that are summed: all of a group but at the end.
  const auto group = [&](auto whole, int64_t rows) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int p = 0; p < kP; ++p) {
      const float* HWY_RESTRICT at = words + p * panel;
      asm("" : "+r"(at));  // else gcc holds an address for each line, most of them in memory
      const float* then = ahead + p * panel;
      asm("" : "+r"(then));
      if constexpr (kP == 1) ask_for<2>(at + words_of(kFarAlone));
      if constexpr (!kAsks) ask_for<3>(then);
      V sums[kR][2];
      zero(sums);
      const V unit = take_group<false, kAsks>(
          at, scales[p * panel * 4], raw[p],
          [&](int i, V v) HWY_ATTR __attribute__((always_inline)) {
            if (!decltype(whole)::value && i / 2 >= rows) return;
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r)
              sums[r][i % 2] = hn::MulAdd(hn::Set(f, a[r * lda + i / 2]), v, sums[r][i % 2]);
          },
          then);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r)
        for (int v = 0; v < 2; ++v)
          acc[r][2 * p + v] = hn::MulAdd(sums[r][v], unit, acc[r][2 * p + v]);
    }
    a += kFixed26Rows;
    ++scales;
    words += kFixed26Words * lanes;
    ahead += kFixed26Words * lanes;
    if (--left == 0) {  // the panels after these
      ahead = next;
      for (int p = 0; p < kP; ++p) __builtin_prefetch(next_scales + p * panel * 4);
    }
  };
  bool any = false;
  for (int64_t k = t.k; k > 0;) {
    const int64_t part = t.k > kDeep ? next_part(k, 2 * kPart) : next_part(k);
    k -= part;
    int64_t i = 0;
    for (; i + kFixed26Rows <= part; i += kFixed26Rows) group(std::true_type(), kFixed26Rows);
    if (i < part) group(std::false_type(), part - i);
    if (any) parts.take(acc);
    any = k > 0;
    if (any) parts.put(acc);
  }
  if (!finite(acc)) [[unlikely]] {
    HWY_ALIGN float again[kR * 2 * kP * lanes];
    sum_again(t, kR, kP, again);
#pragma GCC unroll 32
    for (int i = 0; i < kR * 2 * kP; ++i)
      acc[i / (2 * kP)][i % (2 * kP)] = hn::Load(f, again + i * lanes);
  }
  finish(t, acc);
}

/// Many rows of A by a panel, which goes to `t.widened` as floats for the tiles after this: a group
/// at a time, so that taking it apart hides behind the products.
template <int kR, bool kPacked>
void widening26(const GemmTile& t) {
  const F f;
  constexpr int64_t lanes = HWY_LANES(float), width = 2 * lanes;
  V acc[kR][2];
  begin<kR, 2>(t, acc);
  RowsOfA<kR, kPacked> a(t.a, t.lda);
  const uint8_t* HWY_RESTRICT scales = t.scales;
  const float* HWY_RESTRICT words = t.b;
  const float* raw = t.raws;
  float* HWY_RESTRICT widened = t.widened;
  const int64_t kept = t.widened_once ? 0 : kFixed26Rows * width;
  const float* next = t.next != nullptr ? t.next : words + words_of(kFarAlone);
  const int64_t next_step = t.next != nullptr ? t.next_step : width;
  const int64_t also = t.next != nullptr ? t.next_also : lanes;
  Parts<kR, 2> parts;
  bool any = false;
  for (int64_t k = t.k; k > 0;) {
    const int64_t part = next_part(k);
    k -= part;
    for (int64_t i = 0; i < part;
         i += kFixed26Rows, words += kFixed26Words * lanes, widened += kept) {
      take_group<true>(
          words, *scales++, raw, [&](int v, V b) HWY_ATTR __attribute__((always_inline)) {
            hn::StoreU(b, f, widened + v * lanes);
          });
      ask_for<3>(words + words_of(kSoon));
      const int64_t rows = std::min(kFixed26Rows, part - i);
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

/// Bits without the sign.
HWY_INLINE hn::Vec<I> size_of(hn::Vec<I> bits) { return hn::And(bits, hn::Set(I(), INT32_MAX)); }
/// The lesser one, where zero, a row or a column of zeros, does not count.
HWY_INLINE hn::Vec<I> lesser(hn::Vec<I> low, hn::Vec<I> size) {
  const auto none = hn::Eq(size, hn::Zero(I()));
  return min_of(low, hn::IfThenElse(none, hn::Set(I(), INT32_MAX), size));
}

/// Of at most eight rows, two vectors each, `step` numbers apart.
Fixed26Range range26(const int32_t* b, int64_t step, int64_t rows) {
  constexpr int64_t lanes = HWY_LANES(float);
  const I i;
  auto first = hn::Zero(i), second = first, low = hn::Set(i, INT32_MAX);
  for (int64_t r = 0; r < rows; ++r, b += step) {
    const auto left = size_of(hn::LoadU(i, b)), right = size_of(hn::LoadU(i, b + lanes));
    first = max_of(first, left);
    second = max_of(second, right);
    low = lesser(low, hn::MaxOfLanes(i, max_of(left, right)));
  }
  low = lesser(lesser(low, first), second);
  return {hn::GetLane(hn::MinOfLanes(i, low)),
          hn::GetLane(hn::MaxOfLanes(i, max_of(first, second)))};
}

/// A column of B, n numbers as they lie: rows' largest ones so far in `high`, and in `low` of each
/// group, in all its rows, the least of the columns' largest ones. n is a multiple of a vector and
/// of a group.
void ranges26(const int32_t* b, int64_t n, int32_t* HWY_RESTRICT low, int32_t* HWY_RESTRICT high) {
  constexpr int64_t lanes = HWY_LANES(float);
  const I i;
  const auto largest_of_four = [](hn::Vec<I> x) HWY_ATTR {
    x = max_of(x, hn::Shuffle2301(x));
    return max_of(x, hn::Shuffle1032(x));
  };
  const auto look = [&](int64_t j) HWY_ATTR {
    const auto size = size_of(hn::LoadU(i, b + j));
    hn::StoreU(max_of(hn::LoadU(i, high + j), size), i, high + j);
    return size;
  };
  const auto lower = [&](int64_t j, hn::Vec<I> largest) HWY_ATTR {
    hn::StoreU(lesser(hn::LoadU(i, low + j), largest), i, low + j);
  };
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  for (int64_t j = 0; j < n; j += lanes) {
    const auto four = largest_of_four(look(j));
    lower(j, max_of(four, hn::SwapAdjacentBlocks(four)));
  }
#else
  static_assert(lanes == 4);
  for (int64_t j = 0; j < n; j += 2 * lanes) {
    const auto left = look(j), both = largest_of_four(max_of(left, look(j + lanes)));
    lower(j, both);
    lower(j + lanes, both);
  }
#endif
}

/// Groups of floats [8][two vectors].
void pack26(const float* rows, int64_t groups, uint8_t* scales, float* words, float* raws) {
  constexpr int64_t lanes = HWY_LANES(float);
  const F f;
  const U u;
  for (; groups > 0; --groups, rows += 16 * lanes, words += kFixed26Words * lanes) {
    const Fixed26Range all =
        range26(reinterpret_cast<const int32_t*>(rows), 2 * lanes, kFixed26Rows);
    if (!all.fits()) {
      *scales++ = kFixed26Raw;
      std::copy_n(rows, kFixed26Words * lanes, words);
      std::copy_n(rows + kFixed26Words * lanes, kFixed26Rest * lanes, raws);
      raws += kFixed26Rest * lanes;
      continue;
    }
    *scales++ = static_cast<uint8_t>(all.scale());
    const V inverse = hn::BitCast(f, hn::Set(u, static_cast<uint32_t>(254 - all.scale()) << 23));
    W w[2 * kFixed26Rows];
    for (int v = 0; v < 2 * kFixed26Rows; ++v)
      w[v] = hn::ShiftLeft<6>(
          hn::BitCast(u, hn::NearestInt(hn::Mul(hn::LoadU(f, rows + v * lanes), inverse))));
    for (int r = 0; r < kFixed26Rest; ++r) {
      W& rest = w[kFixed26Words + r];
      for (int v = 0; v < 4; ++v, rest = hn::ShiftLeft<6>(rest))
        w[4 * r + v] = hn::Or(w[4 * r + v], hn::ShiftRight<26>(rest));
      w[12] = hn::Or(w[12], hn::ShiftRightSame(rest, 30 - 2 * r));
    }
    for (int v = 0; v < kFixed26Words; ++v) hn::StoreU(hn::BitCast(f, w[v]), f, words + v * lanes);
  }
}

/// Groups of a panel, as floats.
void widen26(const uint8_t* scales, int64_t groups, const float* words, const float* raw,
             float* out) {
  constexpr int64_t lanes = HWY_LANES(float);
  for (int64_t g = 0; g < groups; ++g, words += kFixed26Words * lanes, out += 16 * lanes)
    take_group<true>(
        words, scales[g], raw, [&](int i, V v) HWY_ATTR __attribute__((always_inline)) {
          hn::StoreU(v, F(), out + i * lanes);
        });
}

template <int... kR>
void fill_wide26(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  constexpr int kSums = kRows * 2;  // that registers hold
  auto& to = tiles.wide[static_cast<int>(PanelFormat::kFixed26)];
  (((to[kR + 1][1] = &wide26<kR + 1, 1>),
    (to[kR + 1][2] = (kR + 1) * 4 <= kSums ? &wide26<kR + 1, 2> : nullptr),
    (to[kR + 1][4] = (kR + 1) * 8 <= kSums ? &wide26<kR + 1, 4> : nullptr)),
   ...);
}

template <int... kR>
void fill_widening26(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  auto& to = tiles.widening[static_cast<int>(PanelFormat::kFixed26)];
  ((to[kR + kRows / 2][0] = &widening26<kR + kRows / 2, false>), ...);
  if (tiles.packs_rows) ((to[kR + kRows / 2][1] = &widening26<kR + kRows / 2, true>), ...);
}

void fill_fixed26(GemmTiles& tiles) {
  fill_wide26(tiles, std::make_integer_sequence<int, kMaxWideRows>());
  fill_widening26(tiles, std::make_integer_sequence<int, kRows - kRows / 2 + 1>());
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

/// Groups that do not fit of a panel whose columns, k floats each, lie one behind the other.
int64_t misfits_of_columns(const std::byte* b, int64_t k) {
  using Ranges = void(const int32_t*, int64_t, int32_t*, int32_t*);
  const GemmTiles& tiles = gemm_tiles();
  // Whole vectors of whole groups, and what is left, filled up.
  const int64_t unit = std::max<int64_t>(kFixed26Rows, tiles.lanes), whole = k / unit * unit;
  const auto size = static_cast<size_t>(whole + unit);
  std::vector<int32_t> low(size, INT32_MAX), high(size), rest(static_cast<size_t>(unit));
  for (int64_t j = 0; j < tiles.panel(); ++j, b += k * 4) {
    TOMBOLO_TARGET(Ranges, ranges26)
    (reinterpret_cast<const int32_t*>(b), whole, low.data(), high.data());
    std::memcpy(rest.data(), b + whole * 4, static_cast<size_t>(k - whole) * 4);
    TOMBOLO_TARGET(Ranges, ranges26)(rest.data(), unit, low.data() + whole, high.data() + whole);
  }
  int64_t count = 0;
  for (auto i = low.begin(), row = high.begin(); i < low.end(); i += kFixed26Rows) {
    Fixed26Range range{*i, 0};
    for (const auto end = row + kFixed26Rows; row < end; ++row) {
      range.high = std::max(range.high, *row);
      if (*row != 0) range.low = std::min(range.low, *row);
    }
    count += !range.fits();
  }
  return count;
}

}  // namespace

std::optional<Fixed26Panels> fixed26_fits(const std::byte* b, int64_t k, int64_t n, bool turned,
                                          const ReadFloats& read) {
  const int64_t width = gemm_tiles().panel(), panels = (n + width - 1) / width;
  Fixed26Panels layout{k, gemm_tiles().lanes, 0};
  const int64_t groups = layout.groups();
  // Three vectors more for each fourth group are a seventeenth of the whole. A last panel that is
  // not whole does not count: of a few columns no row has what the whole row has.
  const int64_t allowed = groups / 4 + 1, whole = n / width;
  Misfits misfits(whole);
  std::atomic<bool> too_many = false;
  if (turned) {  // a column of B is a row of floats
    parallel(panels, std::max<int64_t>(1, 65536 / (k * width)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end && !too_many; ++p) {
        const int64_t count = p < whole ? misfits_of_columns(b + p * width * k * 4, k) : 0;
        if (p < whole) misfits.add(p, count);
        if (count > allowed) too_many = true;
        read.done(read.argument, p * width * k, std::min(n, (p + 1) * width) * k);
      }
    });
  } else {
    using Range = Fixed26Range(const int32_t*, int64_t, int64_t);
    parallel(groups, std::max<int64_t>(1, 65536 / n), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end && !too_many; ++g) {
        const int64_t row = g * kFixed26Rows, rows = std::min(k - row, kFixed26Rows);
        const auto* group = reinterpret_cast<const int32_t*>(b) + row * n;
        for (int64_t p = 0; p < whole; ++p, group += width)
          if (!TOMBOLO_TARGET(Range, range26)(group, n, rows).fits()) misfits.add(p, 1);
        if (g % 64 == 0 && misfits.most() > allowed) too_many = true;
      }
      read.done(read.argument, begin * kFixed26Rows * n, std::min(k, end * kFixed26Rows) * n);
    });
  }
  layout.raws = misfits.most();
  if (too_many || layout.raws > allowed) return std::nullopt;
  return layout;
}

void fixed26_begin(const Fixed26Panels& panels, std::byte* matrix) {
  std::memset(matrix, 0, kFixed26Header);
  std::memcpy(matrix, &panels.raws, sizeof panels.raws);
}

Fixed26Panels fixed26_panels(const void* matrix, int64_t k) {
  Fixed26Panels panels{k, gemm_tiles().lanes, 0};
  std::memcpy(&panels.raws, matrix, sizeof panels.raws);
  return panels;
}

void fixed26_widen(const Fixed26Panels& panels, int64_t panel, const void* matrix, float* out) {
  const auto* const at =
      static_cast<const float*>(matrix) + kFixed26Header / 4 + panel * panels.panel();
  using Fn = void(const uint8_t*, int64_t, const float*, const float*, float*);
  TOMBOLO_TARGET(Fn, widen26)
  (reinterpret_cast<const uint8_t*>(at), panels.groups(), at + panels.words(), at + panels.raw(),
   out);
}

void fixed26_pack(float* rows, int64_t k0, int64_t k, const Fixed26Panels& panels, int64_t panel,
                  std::byte* matrix) {
  const int64_t lanes = panels.lanes, width = 2 * lanes, first = k0 / kFixed26Rows;
  const int64_t groups = (k + kFixed26Rows - 1) / kFixed26Rows;
  std::fill(rows + k * width, rows + groups * kFixed26Rows * width, 0.0f);
  float* const out = reinterpret_cast<float*>(matrix + kFixed26Header) + panel * panels.panel();
  auto* const scales = reinterpret_cast<uint8_t*>(out);
  TOMBOLO_TARGET(void(const float*, int64_t, uint8_t*, float*, float*), pack26)
  (rows, groups, scales + first, out + panels.words() + first * panels.group(),
   out + panels.raw() + std::count(scales, scales + first, kFixed26Raw) * kFixed26Rest * lanes);
}

}  // namespace tombolo
#endif
