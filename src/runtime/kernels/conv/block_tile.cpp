#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/block_tile.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// Registers: 32 take 14 x 2 sums, 16 take 6 x 2, with two of B and one of A besides.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kRows = 14;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kRows = 10;
#elif HWY_TARGET == HWY_SSE4  // without fused products fewer sums hide what they wait for
inline constexpr int kRows = 4;
#else
inline constexpr int kRows = 6;
#endif
// One vector of channels takes more pixels: fewer sums than these wait for one another.
inline constexpr int kSingleRows = std::min(2 * kRows, kMaxBlockRows);
inline constexpr int kLanes = static_cast<int>(HWY_LANES(float)) < 16 ? HWY_LANES(float) : 16;

// One pixel is through with its weights as fast as they come: they are asked for early.
template <int kR>
inline constexpr int64_t kAhead = kR == 1 ? 128 : 16;

/// Of one input its products with kR pixels, whose second half lies somewhere else.
template <int kR, int kV>
HWY_INLINE void add_input(V (&acc)[kR][kV], const float* a, const float* second, int64_t step,
                          const float* b) {
  const F f;
  constexpr int kHalf = kR / 2;
  V bv[kV];
#pragma GCC unroll 2
  for (int v = 0; v < kV; ++v) bv[v] = hn::LoadU(f, b + v * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    const V av = hn::Set(f, r < kHalf ? a[r * step] : second[(r - kHalf) * step]);
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) add_product(acc[r][v], av, bv[v]);
  }
}

/// Of vectors narrower than a block: every second line of four inputs' weights that are needed a
/// little later, as lines come in pairs, and of what is needed soon.
template <int kR, int kV>
HWY_INLINE void ask_ahead(const float* b, const float*& next, int64_t ahead) {
  __builtin_prefetch(b + kAhead<kR> * kV * kLanes);
  if (kV * kLanes >= 16) __builtin_prefetch(b + (kAhead<kR> + 2) * kV * kLanes);
  __builtin_prefetch(next, 0, 2);
  __builtin_prefetch(next + 2 * ahead, 0, 2);
  next += 4 * ahead;
}

/// Sums over `entries` entries of `length` inputs.
template <int kR, int kV, int64_t kStep>
HWY_INLINE const float* add_entries(V (&acc)[kR][kV], const BlockTile& t, const int64_t* offsets,
                                    int64_t entries, int64_t length, const float* HWY_RESTRICT b,
                                    const float*& next) {
  const int64_t step = kStep != 0 ? kStep : t.step;
  const int64_t jump = t.jump;
  // A constant where it is always the same: one more register took an eighth of the speed there.
  const int64_t ahead = kLanes < kBlock ? t.ahead : kBlock;
  for (int64_t e = 0; e < entries; ++e) {
    const float* HWY_RESTRICT a = t.a + offsets[e];
    const float* HWY_RESTRICT second = a + jump;
    const auto one = [&](int s) HWY_ATTR __attribute__((always_inline)) {
      add_input<kR, kV>(acc, a + s, second + s, step, b + s * kV * kLanes);
    };
    int64_t i = 0;
    // Sixteen registers do with few sums a step, so what surrounds them counts: four steps at a
    // time.
    if constexpr (kLanes < 16 && kR > 2)
      for (; i + 4 <= length; i += 4) {
        ask_ahead<kR, kV>(b, next, ahead);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) one(s);
        a += 4;
        second += 4;
        b += 4 * kV * kLanes;
      }
    // Three are a row of most kernels over an image of few channels, whose weights are few too.
    if constexpr (kLanes < 16 && kR > 2) {
      if (i + 3 == length) {
#pragma GCC unroll 3
        for (int s = 0; s < 3; ++s) one(s);
        b += 3 * kV * kLanes;
        continue;
      }
    }
    for (; i < length; ++i) {
      if constexpr (kLanes >= 16 || kR <= 2) {
        __builtin_prefetch(b + kAhead<kR> * kV * kLanes);
        if (kV * kLanes > 16) __builtin_prefetch(b + kAhead<kR> * kV * kLanes + 16);
        __builtin_prefetch(next, 0, 2);
        next += ahead;
      }
      one(0);
      ++a;
      ++second;
      b += kV * kLanes;
    }
  }
  return b;
}

/// The same out of an image of few channels, whose pixels lie kStep floats apart in one row:
/// entries are short, and their weights are near.
template <int kR, int kV, int64_t kStep>
HWY_INLINE void add_plain_entries(V (&acc)[kR][kV], const BlockTile& t) {
  const F f;
  const float* HWY_RESTRICT b = t.b;
  for (int64_t e = 0; e < t.entries; ++e) {
    const float* HWY_RESTRICT a = t.a + t.offsets[e];
    const auto one = [&](int s, auto alone) HWY_ATTR __attribute__((always_inline)) {
      // What another input of the entry reads is read again, or gcc would carry it over in memory.
      const float* at = a + s;
      if (alone) asm("" : "+r"(at));
      V bv[kV];
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) bv[v] = hn::LoadU(f, b + (s * kV + v) * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        V av = hn::Set(f, at[r * kStep]);
        if (kV > 1) keep_in_register(av);
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) add_product(acc[r][v], av, bv[v]);
      }
    };
    if (t.length == 3) {
#pragma GCC unroll 3
      for (int s = 0; s < 3; ++s) one(s, std::bool_constant<(kV > 1)>());
      b += 3 * kV * kLanes;
      continue;
    }
    int64_t i = 0;
    if constexpr (kLanes < 16)  // as in add_entries()
      for (; i + 4 <= t.length; i += 4, a += 4, b += 4 * kV * kLanes)
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s) one(s, std::true_type());
    for (; i < t.length; ++i, ++a, b += kV * kLanes) one(0, std::true_type());
  }
}

#if HWY_TARGET == HWY_AVX3
/// Half the rows, as the sums of an entry take registers too.
template <int kR, int kV>
void summed_tile(const BlockTile& t) {
  const F f;
  V total[kR][kV];
  const auto place = [&](int r, int v) HWY_ATTR { return t.c + v * t.c_block + r * kBlock; };
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      __builtin_prefetch(place(r, v), 1);
      total[r][v] = hn::Zero(f);
    }
  const float* next = t.next != nullptr ? t.next : t.b;
  const float* b = t.b;
  for (int64_t e = 0; e < t.entries + t.rest; ++e) {
    V acc[kR][kV];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(f);
    b = add_entries<kR, kV, kBlock>(acc, t, t.offsets + e, 1,
                                    e < t.entries ? t.length : t.rest_length, b, next);
    if (e == 0) {
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) total[r][v] = acc[r][v];
      continue;
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) total[r][v] = hn::Add(total[r][v], acc[r][v]);
  }
  const bool more = t.init != nullptr;
#pragma GCC unroll 2
  for (int v = 0; v < kV; ++v) {
    float* to = place(0, v);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r, to += kBlock)
      hn::StoreU(more ? hn::Add(total[r][v], hn::LoadU(f, to)) : total[r][v], f, to);
  }
}

#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
/// The sums so far wait in the first cache: sixteen registers have no room for them.
template <int kR, int kV>
void summed_tile(const BlockTile& t) {
  const F f;
  HWY_ALIGN float sums[kR * kV * kLanes];
  // Told that they are read elsewhere: gcc otherwise holds them in registers and moves these about.
  asm volatile("" : : "r"(sums) : "memory");
  const auto place = [&](int r, int v) HWY_ATTR {
    return t.c + r * kBlock + v * kLanes / kBlock * t.c_block + v * kLanes % kBlock;
  };
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) __builtin_prefetch(place(r, 0), 1);
  const float* next = t.next != nullptr ? t.next : t.b;
  const float* b = t.b;
  const int64_t entries = t.entries + t.rest;
  for (int64_t e = 0; e < entries; ++e) {
    V acc[kR][kV];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(f);
    b = add_entries<kR, kV, kBlock>(acc, t, t.offsets + e, 1,
                                    e < t.entries ? t.length : t.rest_length, b, next);
    const bool last = e + 1 == entries, more = last && t.init != nullptr;
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) {
        float* const sum = sums + (r * kV + v) * kLanes;
        if (e > 0) acc[r][v] = hn::Add(acc[r][v], hn::Load(f, sum));
        if (more) acc[r][v] = hn::Add(acc[r][v], hn::LoadU(f, place(r, v)));
        if (last)
          hn::StoreU(acc[r][v], f, place(r, v));
        else
          hn::Store(acc[r][v], f, sum);
      }
  }
}
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr int kSummedRows = HWY_TARGET == HWY_AVX3 ? kRows / 2 : kRows;
template <int... kR>
void fill_summed(BlockTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.summed[kR + 1][1] = &summed_tile<kR + 1, 1>), ...);
  ((tiles.summed[kR + 1][2] = &summed_tile<kR + 1, 2>), ...);
}
#endif

/// kSkips: the second half of the pixels goes somewhere else. Asking t.c_skip of all tiles would
/// cost networks of small ones a hundredth.
template <int kR, int kV, bool kSkips>
HWY_INLINE int64_t place(const BlockTile& t, int r, int v) {
  return r * t.c_step + (!kSkips || r < kR / 2 ? 0 : t.c_skip) + v * kLanes / kBlock * t.c_block +
         v * kLanes % kBlock;
}

/// What is written in the end, and what is added, comes nearer meanwhile.
template <int kR, int kV, bool kSkips>
HWY_INLINE void ask_for_results(const BlockTile& t) {
  // With AVX-512 asking took MobileNets a fiftieth.
  if (kLanes < 16)
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) __builtin_prefetch(t.c + place<kR, kV, kSkips>(t, r, 0), 1);
  if (t.init != nullptr && t.init != t.c)
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; v += kLanes == 16 ? 1 : 2)
        __builtin_prefetch(t.init + place<kR, kV, kSkips>(t, r, v));
}

/// Sums to results.
template <int kR, int kV, bool kSkips>
HWY_INLINE void finish(V (&acc)[kR][kV], const BlockTile& t) {
  const F f;
  const auto at = [&](int r, int v) HWY_ATTR { return place<kR, kV, kSkips>(t, r, v); };
  // Not begun with: every product would be rounded to the digits of the two (MobileNet v3 had 1.3
  // times the error).
  if (t.bias != nullptr) {
    V bias[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) bias[v] = hn::LoadU(f, t.bias + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::Add(acc[r][v], bias[v]);
  }
  if (t.init != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = hn::Add(acc[r][v], hn::LoadU(f, t.init + at(r, v)));
  }
  if (t.clamp) {  // in this order, and with these arguments, a NaN stays
    const V lo = hn::Set(f, t.lo);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) acc[r][v] = max_of(lo, acc[r][v]);
    if (t.hi < std::numeric_limits<float>::infinity()) {
      const V hi = hn::Set(f, t.hi);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < kV; ++v) acc[r][v] = min_of(hi, acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) hn::StoreU(acc[r][v], f, t.c + at(r, v));
}

template <int kR, int kV, int64_t kStep, bool kSkips>
HWY_INLINE void any_tile(const BlockTile& t) {
  const F f;
  V acc[kR][kV];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(f);
  ask_for_results<kR, kV, kSkips>(t);
  if constexpr (kStep == 1 || kStep == 2) {
    add_plain_entries<kR, kV, kStep>(acc, t);
  } else {
    const float* next = t.next != nullptr ? t.next : t.b;
    const float* b = add_entries<kR, kV, kStep>(acc, t, t.offsets, t.entries, t.length, t.b, next);
    if (t.rest > 0)
      add_entries<kR, kV, kStep>(acc, t, t.offsets + t.entries, t.rest, t.rest_length, b, next);
  }
  finish<kR, kV, kSkips>(acc, t);
}

/// Not part of others, whose frame it would make larger.
template <int kR, int kV, int64_t kStep, bool kSkips>
HWY_NOINLINE void other_tile(const BlockTile& t) {
  any_tile<kR, kV, kStep, kSkips>(t);
}

/// Entries of whole blocks, and a rest of fours. Tiles of few blocks feel every instruction around
/// their products.
template <int kR, int kV, int64_t kStep, bool kSkips>
HWY_INLINE void tile_by_fours(const BlockTile& t) {
  const F f;
  V acc[kR][kV];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(f);
  ask_for_results<kR, kV, kSkips>(t);
  const float* next = t.next != nullptr ? t.next : t.b;
  const float* HWY_RESTRICT b = t.b;
  const int64_t jump = t.jump, ahead = t.ahead;
  const int64_t* offset = t.offsets;
  const auto add = [&](int64_t entries, int64_t length) HWY_ATTR __attribute__((always_inline)) {
    for (const int64_t* const end = offset + entries; offset != end; ++offset) {
      const float* HWY_RESTRICT a = t.a + *offset;
      const float* HWY_RESTRICT second = a + jump;
#pragma GCC unroll 1
      for (int64_t i = 0; i < length; i += 4) {
        ask_ahead<kR, kV>(b, next, ahead);
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s)
          add_input<kR, kV>(acc, a + s, second + s, kStep, b + s * kV * kLanes);
        a += 4;
        second += 4;
        b += 4 * kV * kLanes;
      }
    }
  };
  add(t.entries, kBlock);
  if (t.rest > 0) add(t.rest, t.rest_length);
  finish<kR, kV, kSkips>(acc, t);
}

template <int kR, int kV, int64_t kStep, bool kSkips = false>
void tile(const BlockTile& t) {
  if constexpr (kLanes < 16 && kR > 2 && kStep >= kBlock) {
    if (t.length == kBlock && (t.rest == 0 || t.rest_length % 4 == 0))
      return tile_by_fours<kR, kV, kStep, kSkips>(t);
    other_tile<kR, kV, kStep, kSkips>(t);
  } else {
    any_tile<kR, kV, kStep, kSkips>(t);
  }
}

template <int kV, int... kR>
void fill(BlockTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.dense[kR + 1][kV] = &tile<kR + 1, kV, kBlock>), ...);
  constexpr int64_t kSecond = HWY_TARGET == HWY_SSE4 ? 0 : 2 * kBlock;
  ((tiles.every_second[kR + 1][kV] = &tile<kR + 1, kV, kSecond>), ...);
  ((tiles.strided[kR + 1][kV] = &tile<kR + 1, kV, 0>), ...);
}

#if HWY_TARGET != HWY_SSE4  // processors of long ago: strided tiles do
/// Rows of pixels that are cut evenly have at least half of the most.
template <int kV, int kLeast, int... kR>
void fill_plain(BlockTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.plain[kLeast + kR][kV][0] = &tile<kLeast + kR, kV, 1>), ...);
  ((tiles.plain[kLeast + kR][kV][1] = &tile<kLeast + kR, kV, 2>), ...);
}
#endif

template <int... kR>
void fill_two_rows(BlockTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.two_rows[kR + 1][1] = &tile<2 * kR + 2, 1, kBlock, true>), ...);
  ((tiles.two_rows[kR + 1][2] = &tile<2 * kR + 2, 2, kBlock, true>), ...);
}

BlockTiles make_block_tiles() {
  BlockTiles tiles{kRows, kSingleRows, kLanes};
  fill_two_rows(tiles, std::make_integer_sequence<int, kRows / 2>());
  fill<1>(tiles, std::make_integer_sequence<int, kSingleRows>());
  fill<2>(tiles, std::make_integer_sequence<int, kRows>());
#if HWY_TARGET != HWY_SSE4
  fill_plain<1, kSingleRows / 2>(
      tiles, std::make_integer_sequence<int, kSingleRows - kSingleRows / 2 + 1>());
  fill_plain<2, kRows / 2>(tiles, std::make_integer_sequence<int, kRows - kRows / 2 + 1>());
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
  tiles.summed_rows = kSummedRows;
  fill_summed(tiles, std::make_integer_sequence<int, kSummedRows>());
#endif
  return tiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

const BlockTiles& block_tiles() {
  static IsaTables<BlockTiles> tables;
  return tables.get(TOMBOLO_TARGET(BlockTiles(), make_block_tiles));
}

}  // namespace tombolo
#endif
