#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/tensor/transpose_tile.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/tensor/transpose_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void scalar_tile(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) y[j * y_step + i] = x[i * x_step + j];
}

#if HWY_TARGET <= HWY_AVX2
/// Eight rows of four 32-bit elements, one beside another: two rounds are left, and one store goes
/// to each row.
HWY_INLINE void tile8x4(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
  const hn::CappedTag<uint32_t, 8> d;
  const hn::Half<decltype(d)> half;
  const hn::RepartitionToWide<decltype(d)> w;
  const auto load = [&](int64_t i) HWY_ATTR {
    return hn::Combine(d, hn::LoadU(half, x + (i + 4) * x_step), hn::LoadU(half, x + i * x_step));
  };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ab = hn::BitCast(w, hn::InterleaveLower(d, a, b));
  const auto ce = hn::BitCast(w, hn::InterleaveLower(d, c, e));
  const auto ab1 = hn::BitCast(w, hn::InterleaveUpper(d, a, b));
  const auto ce1 = hn::BitCast(w, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, ab, ce)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, ab, ce)), d, y + y_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, ab1, ce1)), d, y + 2 * y_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, ab1, ce1)), d, y + 3 * y_step);
}
HWY_INLINE void tile8(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
  tile8x4(x, x_step, y, y_step);
  tile8x4(x + 4, x_step, y + 4 * y_step, y_step);
}
#endif

#if HWY_TARGET == HWY_AVX3
/// Sixteen rows of sixteen: whole cache lines on both sides.
HWY_INLINE void tile16(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
  const hn::ScalableTag<uint32_t> d;
  const hn::RepartitionToWide<decltype(d)> w;
  using V = hn::Vec<decltype(d)>;
  V a[16], b[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) a[i] = hn::LoadU(d, x + i * x_step);
    // Within 128 bits: pairs, then fours.
#pragma GCC unroll 8
  for (size_t i = 0; i < 16; i += 2) {
    b[i] = hn::InterleaveLower(d, a[i], a[i + 1]);
    b[i + 1] = hn::InterleaveUpper(d, a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 16; i += 4) {
    const auto wide = [&](V v) HWY_ATTR { return hn::BitCast(w, v); };
    a[i] = hn::BitCast(d, hn::InterleaveLower(w, wide(b[i]), wide(b[i + 2])));
    a[i + 1] = hn::BitCast(d, hn::InterleaveUpper(w, wide(b[i]), wide(b[i + 2])));
    a[i + 2] = hn::BitCast(d, hn::InterleaveLower(w, wide(b[i + 1]), wide(b[i + 3])));
    a[i + 3] = hn::BitCast(d, hn::InterleaveUpper(w, wide(b[i + 1]), wide(b[i + 3])));
  }
  // Then the blocks of 128 bits among themselves.
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    const __m512i p = _mm512_shuffle_i32x4(a[i].raw, a[i + 4].raw, 0x88),
                  q = _mm512_shuffle_i32x4(a[i].raw, a[i + 4].raw, 0xdd),
                  r = _mm512_shuffle_i32x4(a[i + 8].raw, a[i + 12].raw, 0x88),
                  s = _mm512_shuffle_i32x4(a[i + 8].raw, a[i + 12].raw, 0xdd);
    const auto row = static_cast<int64_t>(i);
    hn::StoreU(V{_mm512_shuffle_i32x4(p, r, 0x88)}, d, y + row * y_step);
    hn::StoreU(V{_mm512_shuffle_i32x4(q, s, 0x88)}, d, y + (row + 4) * y_step);
    hn::StoreU(V{_mm512_shuffle_i32x4(p, r, 0xdd)}, d, y + (row + 8) * y_step);
    hn::StoreU(V{_mm512_shuffle_i32x4(q, s, 0xdd)}, d, y + (row + 12) * y_step);
  }
}
#endif

/// Rows of few columns that lie one after the other, from `i` on: as many as D has lanes.
template <int64_t kColumns, class D, typename T>
HWY_INLINE void take_apart(D d, const T* x, T* y, int64_t y_step, int64_t i) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> a, b, c, e;
  if constexpr (kColumns == 2 && sizeof(T) == 4) {
    const auto first = hn::LoadU(d, x + i * 2), second = hn::LoadU(d, x + i * 2 + lanes);
    a = hn::ConcatEven(d, second, first);
    b = hn::ConcatOdd(d, second, first);
  } else if constexpr (kColumns == 2) {
    hn::LoadInterleaved2(d, x + i * 2, a, b);
  } else if constexpr (kColumns == 3) {
    hn::LoadInterleaved3(d, x + i * 3, a, b, c);
  } else {
    hn::LoadInterleaved4(d, x + i * 4, a, b, c, e);
    hn::StoreU(e, d, y + 3 * y_step + i);
  }
  if constexpr (kColumns > 2) hn::StoreU(c, d, y + 2 * y_step + i);
  hn::StoreU(a, d, y + i);
  hn::StoreU(b, d, y + y_step + i);
}
/// The way back, of as many columns.
template <int64_t kRows, class D, typename T>
HWY_INLINE void put_together(D d, const T* x, int64_t x_step, T* y, int64_t i) {
  const auto row = [&](int64_t r) HWY_ATTR { return hn::LoadU(d, x + r * x_step + i); };
  if constexpr (kRows == 2) hn::StoreInterleaved2(row(0), row(1), d, y + i * 2);
  if constexpr (kRows == 3) hn::StoreInterleaved3(row(0), row(1), row(2), d, y + i * 3);
  if constexpr (kRows == 4) hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, y + i * 4);
}

/// one(d, i) for vectors that cover [0, n), the last of which reaches back; short ones where n is
/// less than a whole one. False where it is less than those, too.
template <typename T, typename One>
HWY_INLINE bool cover(int64_t n, One&& one) {
  const auto with = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    if (n < lanes) return false;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) one(d, i);
    if (i < n) one(d, n - lanes);
    return true;
  };
  if (with(hn::ScalableTag<T>())) return true;
  if constexpr (sizeof(T) == 8)
    return with(hn::CappedTag<T, 4>()) || with(hn::CappedTag<T, 2>());
  else if constexpr (sizeof(T) == 4)
    return with(hn::CappedTag<T, 8>()) || with(hn::CappedTag<T, 4>());
  else if constexpr (sizeof(T) == 2)
    return with(hn::CappedTag<T, 16>()) || with(hn::CappedTag<T, 8>());
  else
    return with(hn::CappedTag<T, 16>());
}

/// Of the vectors that are shuffled below: bytes by 128 bits, others by whole vectors of AVX-512.
template <typename T>
inline constexpr int kFewLanes = sizeof(T) == 1 ? 16 : 64 / sizeof(T);

/// Where the lanes of each of kFew vectors come from when rows are put together or taken apart: of
/// one of the others, whose lane it is.
template <int kFew, typename T, bool kTogether>
struct FewPlaces {
  static constexpr int kLanes = kFewLanes<T>;
  T lane[kFew][kFew][kLanes] = {};  ///< [of the result][of the source]; 0x80: of none
  uint32_t own[kFew][kFew] = {};    ///< which of the result's lanes are the source's

  constexpr FewPlaces() {
    for (int to = 0; to < kFew; ++to)
      for (int at = 0; at < kLanes; ++at) {
        const int wide = to * kLanes + at, narrow = at * kFew + to;
        const int from = kTogether ? wide % kFew : narrow / kLanes;
        const int source = kTogether ? wide / kFew : narrow % kLanes;
        for (int other = 0; other < kFew; ++other) lane[to][other][at] = T{0x80};
        lane[to][from][at] = static_cast<T>(source);
        own[to][from] |= uint32_t{1} << at;
        // The first two are looked up at once.
        if (from == 1 && sizeof(T) > 1) lane[to][0][at] = static_cast<T>(source + kLanes);
      }
  }
};

/// Result `to` of kFew vectors.
template <int kFew, typename T, class Places, class V>
HWY_INLINE V place_few(const Places& places, int to, const V* x) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) > 1) {
    const auto at = [&](int from) HWY_ATTR { return _mm512_loadu_si512(places.lane[to][from]); };
    __m512i y = sizeof(T) == 4 ? _mm512_permutex2var_epi32(x[0].raw, at(0), x[1].raw)
                               : _mm512_permutex2var_epi16(x[0].raw, at(0), x[1].raw);
#pragma GCC unroll 8
    for (int from = 2; from < kFew; ++from) {
      const uint32_t own = places.own[to][from];
      if constexpr (sizeof(T) == 4)
        y = _mm512_mask_permutexvar_epi32(y, static_cast<__mmask16>(own), at(from), x[from].raw);
      else
        y = _mm512_mask_permutexvar_epi16(y, own, at(from), x[from].raw);
    }
    return V{y};
  } else
#endif
  {
    const hn::CappedTag<uint8_t, 16> d;
    V y = hn::TableLookupBytesOr0(x[0], hn::LoadU(d, places.lane[to][0]));
#pragma GCC unroll 8
    for (int from = 1; from < kFew; ++from)
      y = hn::Or(y, hn::TableLookupBytesOr0(x[from], hn::LoadU(d, places.lane[to][from])));
    return y;
  }
}

/// Five to seven columns that lie one after the other, or as many rows that go side by side.
template <int kFew, typename T>
HWY_INLINE bool shuffled(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                         int64_t columns) {
  const hn::CappedTag<T, static_cast<size_t>(kFewLanes<T>)> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = kFewLanes<T>;
  const auto cover = [&](int64_t n, auto&& one) HWY_ATTR {
    if (n < kLanes) return false;
    for (int64_t i = 0; i + kLanes <= n; i += kLanes) one(i);
    if (n % kLanes != 0) one(n - kLanes);
    return true;
  };
  V v[kFew];
  if (x_step == columns && columns == kFew)
    return cover(rows, [&](int64_t i) HWY_ATTR {
      static constexpr FewPlaces<kFew, T, false> kPlaces;
#pragma GCC unroll 8
      for (int r = 0; r < kFew; ++r) v[r] = hn::LoadU(d, x + i * kFew + r * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kFew; ++r)
        hn::StoreU(place_few<kFew, T>(kPlaces, r, v), d, y + r * y_step + i);
    });
  if (y_step == rows && rows == kFew)
    return cover(columns, [&](int64_t i) HWY_ATTR {
      static constexpr FewPlaces<kFew, T, true> kPlaces;
#pragma GCC unroll 8
      for (int r = 0; r < kFew; ++r) v[r] = hn::LoadU(d, x + r * x_step + i);
#pragma GCC unroll 8
      for (int r = 0; r < kFew; ++r)
        hn::StoreU(place_few<kFew, T>(kPlaces, r, v), d, y + i * kFew + r * kLanes);
    });
  return false;
}

/// Few columns that lie one after the other, or few rows that go side by side: pixels and planes.
template <int64_t kFew, typename T>
HWY_INLINE bool interleaved(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                            int64_t columns) {
  if (x_step == columns && columns == kFew)
    return cover<T>(rows,
                    [&](auto d, int64_t i) HWY_ATTR { take_apart<kFew>(d, x, y, y_step, i); });
  if (y_step == rows && rows == kFew)
    return cover<T>(columns,
                    [&](auto d, int64_t i) HWY_ATTR { put_together<kFew>(d, x, x_step, y, i); });
  return false;
}

/// A square of 64-bit elements whose side is half a cache line, or a quarter of one.
HWY_INLINE void quarter_wide(const uint64_t* x, int64_t x_step, uint64_t* y, int64_t y_step) {
  const hn::CappedTag<uint64_t, 4> d;
  const auto load = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i * x_step); };
  const auto a = load(0), b = load(1);
  const auto ab = hn::InterleaveLower(d, a, b), ab_up = hn::InterleaveUpper(d, a, b);
  if constexpr (hn::MaxLanes(hn::CappedTag<uint64_t, 4>()) == 4) {
    const auto c = load(2), e = load(3);
    const auto ce = hn::InterleaveLower(d, c, e), ce_up = hn::InterleaveUpper(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, y);
    hn::StoreU(hn::ConcatLowerLower(d, ce_up, ab_up), d, y + y_step);
    hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, y + 2 * y_step);
    hn::StoreU(hn::ConcatUpperUpper(d, ce_up, ab_up), d, y + 3 * y_step);
  } else {
    hn::StoreU(ab, d, y);
    hn::StoreU(ab_up, d, y + y_step);
  }
}

/// Four of them.
HWY_INLINE void tile_wide(const uint64_t* x, int64_t x_step, uint64_t* y, int64_t y_step) {
  constexpr auto kSide = static_cast<int64_t>(hn::MaxLanes(hn::CappedTag<uint64_t, 4>()));
  quarter_wide(x, x_step, y, y_step);
  quarter_wide(x + kSide * x_step, x_step, y + kSide, y_step);
  quarter_wide(x + kSide, x_step, y + kSide * y_step, y_step);
  quarter_wide(x + kSide * x_step + kSide, x_step, y + kSide * y_step + kSide, y_step);
}

/// Stores as many rows as kSide turned, in each block of 128 bits. Rows i and i + half, taken in
/// turns, move the highest bit of the row's number to the end of the column's: as many rounds as it
/// has bits.
template <size_t kSide, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_turned(D d, hn::Vec<D>* a, T* y, int64_t y_step) {
  constexpr size_t kHalf = kSide / 2;
  hn::Vec<D> b[kSide];
#pragma GCC unroll 4
  for (size_t round = 1; round < kSide; round *= 2) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kHalf; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + kHalf]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + kHalf]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < kSide; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kSide; ++i) hn::StoreU(a[i], d, y + static_cast<int64_t>(i) * y_step);
}

/// A square of kSide.
template <size_t kSide, typename T>
HWY_INLINE void tile_square(const T* x, int64_t x_step, T* y, int64_t y_step) {
  const hn::CappedTag<T, kSide> d;
  hn::Vec<decltype(d)> a[kSide];
#pragma GCC unroll 16
  for (size_t i = 0; i < kSide; ++i) a[i] = hn::LoadU(d, x + static_cast<int64_t>(i) * x_step);
  store_turned<kSide>(d, a, y, y_step);
}

#if HWY_TARGET <= HWY_AVX2
/// Two of them, the second of rows from kSide on: each half of a vector is one's.
template <size_t kSide, typename T>
HWY_INLINE void tile_tall(const T* x, int64_t x_step, T* y, int64_t y_step) {
  constexpr auto kRows = static_cast<int64_t>(kSide);
  const hn::CappedTag<T, 2 * kSide> d;
  const hn::Half<decltype(d)> half;
  hn::Vec<decltype(d)> a[kSide];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRows; ++i)
    a[i] =
        hn::Combine(d, hn::LoadU(half, x + (i + kRows) * x_step), hn::LoadU(half, x + i * x_step));
  store_turned<kSide>(d, a, y, y_step);
}
#endif

/// Tiles of kRows x kColumns; the last ones reach back over what is done. They follow each other
/// along the longer side: few streams are read and written at a time, in order. Where it is very
/// long, parts of it: of each of their lines a piece is left, and is to be taken while it is near.
template <int64_t kRows, int64_t kColumns, typename T, typename Square>
HWY_INLINE void squares(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                        int64_t columns, Square&& square) {
  constexpr int64_t kPart = 512;
  if (rows == kRows && columns == kColumns) return square(x, x_step, y, y_step);
  const bool down = rows > columns || (rows == columns && x_step < y_step);
  const auto at = [&](int64_t i, int64_t j) HWY_ATTR {
    i = std::min(i, rows - kRows);
    j = std::min(j, columns - kColumns);
    square(x + i * x_step + j, x_step, y + j * y_step + i, y_step);
  };
  if (down) {
    for (int64_t first = 0; first < rows; first += kPart)
      for (int64_t j = 0; j < columns; j += kColumns)
        for (int64_t i = first; i < std::min(rows, first + kPart); i += kRows) at(i, j);
  } else {
    for (int64_t first = 0; first < columns; first += kPart)
      for (int64_t i = 0; i < rows; i += kRows)
        for (int64_t j = first; j < std::min(columns, first + kPart); j += kColumns) at(i, j);
  }
}

/// Elements of one or two bytes by squares of whole cache lines, turned in a room of their own:
/// each line of either side is touched once. False where that is slower: where lines of which a
/// piece is left stay near, as they do unless powers of two put them into few sets of the cache.
template <int64_t kRows, int64_t kColumns, typename T, typename Square>
HWY_NOINLINE bool line_squares(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                               int64_t columns, Square&& square) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  const int64_t whole_rows = rows / kLine * kLine, whole_columns = columns / kLine * kLine;
  constexpr int64_t kMany = 8 * kLine, kBytes = sizeof(T);
  const bool down = rows > columns && rows >= kMany && x_step * kBytes % 128 == 0;
  const bool along = columns >= rows && columns >= kMany && y_step * kBytes % 1024 == 0;
  if (whole_rows == 0 || whole_columns == 0 || (!down && !along)) return false;
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  HWY_ALIGN T room[kLine * kLine];
  for (int64_t j = 0; j < whole_columns; j += kLine)
    for (int64_t i = 0; i < whole_rows; i += kLine) {
      squares<kRows, kColumns>(x + i * x_step + j, x_step, room, kLine, kLine, kLine, square);
      for (int64_t line = 0; line < kLine; ++line)
#pragma GCC unroll 4
        for (int64_t at = 0; at < kLine; at += kLanes)
          hn::StoreU(hn::Load(d, room + line * kLine + at), d, y + (j + line) * y_step + i + at);
    }
  // What is left reaches back over what is done.
  if (const int64_t left = std::max(rows - whole_rows, kRows); whole_rows < rows)
    squares<kRows, kColumns>(x + (rows - left) * x_step, x_step, y + rows - left, y_step, left,
                             columns, square);
  if (const int64_t left = std::max(columns - whole_columns, kColumns); whole_columns < columns)
    squares<kRows, kColumns>(x + columns - left, x_step, y + (columns - left) * y_step, y_step,
                             rows, left, square);
  return true;
}

#if HWY_TARGET == HWY_AVX3
/// What is left of n beside whole tiles of sixteen where these are few: as squares of four or eight
/// it is less than tiles that reach back. Nought where they may as well.
HWY_INLINE int64_t narrow_rest(int64_t n) {
  constexpr int64_t kFewTiles = 8;
  const int64_t rest = n % 16;
  if (n < 16 || n >= kFewTiles * 16 || rest == 0 || rest > 8) return 0;
  return rest <= 4 ? 4 : 8;
}
#endif

template <typename T>
void tile_of(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  const int64_t shorter = std::min(rows, columns);
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    // Part by part, so that both pieces of a line are written while it is near.
    constexpr int64_t kPart = 512;
    const auto sides = [&](int64_t rest, int64_t few, int64_t many, auto&& part) HWY_ATTR {
      const int64_t whole = few / 16 * 16;
      for (int64_t at = 0; at < many; at += kPart) {
        const int64_t some = std::min(kPart, many - at);
        part(0, whole, at, some);
        part(few - rest, rest, at, some);
      }
    };
    if (const int64_t rest = narrow_rest(rows); rest != 0 && columns >= 16)
      return sides(rest, rows, columns, [&](int64_t i, int64_t n, int64_t j, int64_t m) HWY_ATTR {
        tile_of(x + i * x_step + j, x_step, y + j * y_step + i, y_step, n, m);
      });
    if (const int64_t rest = narrow_rest(columns); rest != 0 && rows >= 16)
      return sides(rest, columns, rows, [&](int64_t j, int64_t n, int64_t i, int64_t m) HWY_ATTR {
        tile_of(x + i * x_step + j, x_step, y + j * y_step + i, y_step, m, n);
      });
  }
#endif
  if (shorter == 2 && interleaved<2>(x, x_step, y, y_step, rows, columns)) return;
  if (shorter == 3 && interleaved<3>(x, x_step, y, y_step, rows, columns)) return;
  if (shorter == 4 && interleaved<4>(x, x_step, y, y_step, rows, columns)) return;
  if constexpr (sizeof(T) == 1 || (HWY_TARGET == HWY_AVX3 && sizeof(T) < 8)) {
    if (shorter == 5 && shuffled<5>(x, x_step, y, y_step, rows, columns)) return;
    if (shorter == 6 && shuffled<6>(x, x_step, y, y_step, rows, columns)) return;
    if (shorter == 7 && shuffled<7>(x, x_step, y, y_step, rows, columns)) return;
  }
  const auto with = [&]<int64_t kSide>(auto&& square) HWY_ATTR {
    squares<kSide, kSide>(x, x_step, y, y_step, rows, columns, square);
  };
  if constexpr (sizeof(T) == 8) {
    constexpr auto kSide = static_cast<int64_t>(hn::MaxLanes(hn::CappedTag<T, 4>()));
    if (shorter >= 2 * kSide) return with.template operator()<2 * kSide>(tile_wide);
    if (shorter >= kSide) return with.template operator()<kSide>(quarter_wide);
  } else if constexpr (sizeof(T) == 4) {
#if HWY_TARGET == HWY_AVX3
    if (shorter >= 16) return with.template operator()<16>(tile16);
#endif
#if HWY_TARGET <= HWY_AVX2
    if (shorter >= 8) return with.template operator()<8>(tile8);
    if (rows >= 16 && columns >= 4)
      return squares<8, 4>(x, x_step, y, y_step, rows, columns, tile8x4);
#endif
    if (shorter >= 4) return with.template operator()<4>(tile_square<4, T>);
  } else {
    constexpr size_t kSide = 16 / sizeof(T);
#if HWY_TARGET <= HWY_AVX2
    constexpr auto kColumns = static_cast<int64_t>(kSide), kTall = 2 * kColumns;
    if (line_squares<kTall, kColumns>(x, x_step, y, y_step, rows, columns, tile_tall<kSide, T>))
      return;
    if (rows >= kTall && columns >= kColumns)
      return squares<kTall, kColumns>(x, x_step, y, y_step, rows, columns, tile_tall<kSide, T>);
#endif
    if (shorter >= int64_t{kSide}) return with.template operator()<kSide>(tile_square<kSide, T>);
    if (shorter >= int64_t{kSide / 2})
      return with.template operator()<kSide / 2>(tile_square<kSide / 2, T>);
  }
  scalar_tile(x, x_step, y, y_step, rows, columns);
}

void tiles(const std::byte* x, std::byte* y, const Tiles& t, int64_t bytes) {
  const auto typed = [&]<typename T>(T) HWY_ATTR {
    for (int64_t line = 0; line < t.lines; ++line) {
      const T* from = reinterpret_cast<const T*>(x) + line * t.x_line;
      T* to = reinterpret_cast<T*>(y) + line * t.y_line;
      for (int64_t i = 0; i < t.count; ++i, from += t.x_next, to += t.y_next)
        tile_of(from, t.x_step, to, t.y_step, t.rows, t.columns);
    }
  };
  switch (bytes) {
    case 1:
      return typed(uint8_t{});
    case 2:
      return typed(uint16_t{});
    case 4:
      return typed(uint32_t{});
    default:
      return typed(uint64_t{});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void transpose_tiles(const std::byte* x, std::byte* y, const Tiles& all, int64_t bytes) {
  TOMBOLO_TARGET(void(const std::byte*, std::byte*, const Tiles&, int64_t), tiles)
  (x, y, all, bytes);
}

void transpose_tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
                    int64_t columns, int64_t bytes) {
  transpose_tiles(x, y, {x_step, y_step, rows, columns}, bytes);
}

void copy_strided(const std::byte* x, size_t x_step, std::byte* y, size_t y_step, size_t size,
                  int64_t count) {
  const auto fixed = [&]<size_t kSize>() {
    for (int64_t i = 0; i < count; ++i, x += x_step, y += y_step) std::memcpy(y, x, kSize);
  };
  switch (size) {
    case 1:
      return fixed.template operator()<1>();
    case 2:
      return fixed.template operator()<2>();
    case 4:
      return fixed.template operator()<4>();
    case 8:
      return fixed.template operator()<8>();
    case 12:
      return fixed.template operator()<12>();
    case 16:
      return fixed.template operator()<16>();
    case 32:
      return fixed.template operator()<32>();
    case 64:
      return fixed.template operator()<64>();
    default:
      for (int64_t i = 0; i < count; ++i, x += x_step, y += y_step) std::memcpy(y, x, size);
  }
}

}  // namespace tombolo
#endif
