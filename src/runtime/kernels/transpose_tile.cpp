#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/transpose_tile.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/transpose_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void scalar_tile(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) y[j * y_step + i] = x[i * x_step + j];
}

/// Four rows of four 32-bit elements.
HWY_INLINE void tile4(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
  const hn::CappedTag<uint32_t, 4> d;
  const hn::RepartitionToWide<decltype(d)> w;
  const auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + x_step), c = hn::LoadU(d, x + 2 * x_step),
             e = hn::LoadU(d, x + 3 * x_step);
  const auto ab = hn::BitCast(w, hn::InterleaveLower(d, a, b));
  const auto ce = hn::BitCast(w, hn::InterleaveLower(d, c, e));
  const auto ab1 = hn::BitCast(w, hn::InterleaveUpper(d, a, b));
  const auto ce1 = hn::BitCast(w, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, ab, ce)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, ab, ce)), d, y + y_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, ab1, ce1)), d, y + 2 * y_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, ab1, ce1)), d, y + 3 * y_step);
}

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

/// Few columns that lie one after the other, or few rows that go side by side: pixels and planes.
template <typename T>
bool interleaved(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  int64_t i = 0;
  if (x_step == columns && columns >= 2 && columns <= 4) {
    V a, b, c, e;
    for (; i + lanes <= rows; i += lanes) {
      if (columns == 2 && sizeof(T) == 4) {
        a = hn::LoadU(d, x + i * 2);
        b = hn::LoadU(d, x + i * 2 + lanes);
        const V even = hn::ConcatEven(d, b, a);
        b = hn::ConcatOdd(d, b, a);
        a = even;
      } else if (columns == 2) {
        hn::LoadInterleaved2(d, x + i * 2, a, b);
      } else if (columns == 3) {
        hn::LoadInterleaved3(d, x + i * 3, a, b, c);
        hn::StoreU(c, d, y + 2 * y_step + i);
      } else {
        hn::LoadInterleaved4(d, x + i * 4, a, b, c, e);
        hn::StoreU(c, d, y + 2 * y_step + i);
        hn::StoreU(e, d, y + 3 * y_step + i);
      }
      hn::StoreU(a, d, y + i);
      hn::StoreU(b, d, y + y_step + i);
    }
    scalar_tile(x + i * x_step, x_step, y + i, y_step, rows - i, columns);
    return true;
  }
  if (y_step == rows && rows >= 2 && rows <= 4) {
    for (; i + lanes <= columns; i += lanes) {
      const V a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + x_step + i);
      if (rows == 2) {
        hn::StoreInterleaved2(a, b, d, y + i * 2);
        continue;
      }
      const V c = hn::LoadU(d, x + 2 * x_step + i);
      if (rows == 3)
        hn::StoreInterleaved3(a, b, c, d, y + i * 3);
      else
        hn::StoreInterleaved4(a, b, c, hn::LoadU(d, x + 3 * x_step + i), d, y + i * 4);
    }
    scalar_tile(x + i, x_step, y + i * y_step, y_step, rows, columns - i);
    return true;
  }
  return false;
}

/// A square of 64-bit elements whose side is half a cache line, or a quarter of one.
HWY_INLINE void tile_wide(const uint64_t* x, int64_t x_step, uint64_t* y, int64_t y_step) {
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

/// Blocks of one cache line by one cache line, of squares of kSide, walked along what lies closer
/// together: few places far apart are read or written at a time.
template <int64_t kSide, typename T, typename Square>
HWY_INLINE void squares(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                        int64_t columns, Square&& square) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  const auto block = [&](int64_t i0, int64_t j0) HWY_ATTR {
    const int64_t i1 = std::min(rows, i0 + kLine), j1 = std::min(columns, j0 + kLine);
#if HWY_TARGET == HWY_AVX3
    if constexpr (kLine == 16)
      if (i1 - i0 == kLine && j1 - j0 == kLine)
        return tile16(x + i0 * x_step + j0, x_step, y + j0 * y_step + i0, y_step);
#endif
    int64_t j = j0;
    for (; j + kSide <= j1; j += kSide) {
      int64_t i = i0;
      for (; i + kSide <= i1; i += kSide)
        square(x + i * x_step + j, x_step, y + j * y_step + i, y_step);
      scalar_tile(x + i * x_step + j, x_step, y + j * y_step + i, y_step, i1 - i, kSide);
    }
    scalar_tile(x + i0 * x_step + j, x_step, y + j * y_step + i0, y_step, i1 - i0, j1 - j);
  };
  if (x_step >= y_step) {
    for (int64_t i = 0; i < rows; i += kLine)
      for (int64_t j = 0; j < columns; j += kLine) block(i, j);
  } else {
    for (int64_t j = 0; j < columns; j += kLine)
      for (int64_t i = 0; i < rows; i += kLine) block(i, j);
  }
}

/// As many rows as there are elements in 128 bits. Rows i and i + half, taken in turns, move the
/// highest bit of the row's number to the end of the column's: as many rounds as it has bits.
template <typename T>
HWY_INLINE void tile_square(const T* x, int64_t x_step, T* y, int64_t y_step) {
  constexpr size_t kSide = 16 / sizeof(T), kHalf = kSide / 2;
  const hn::CappedTag<T, kSide> d;
  hn::Vec<decltype(d)> a[kSide], b[kSide];
#pragma GCC unroll 16
  for (size_t i = 0; i < kSide; ++i) a[i] = hn::LoadU(d, x + static_cast<int64_t>(i) * x_step);
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

template <typename T>
void tile_any(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
              int64_t columns) {
  constexpr int64_t kSide = 64 / static_cast<int64_t>(sizeof(T));
  constexpr int64_t kSquare = 16 / static_cast<int64_t>(sizeof(T));
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
  for (int64_t i0 = 0; i0 < rows; i0 += kSide)
    for (int64_t j0 = 0; j0 < columns; j0 += kSide) {
      const int64_t i1 = std::min(rows, i0 + kSide), j1 = std::min(columns, j0 + kSide);
      int64_t j = j0;
      if constexpr (sizeof(T) <= 2)
        for (; j + kSquare <= j1; j += kSquare) {
          int64_t i = i0;
          for (; i + kSquare <= i1; i += kSquare)
            tile_square(from + i * x_step + j, x_step, to + j * y_step + i, y_step);
          scalar_tile(from + i * x_step + j, x_step, to + j * y_step + i, y_step, i1 - i, kSquare);
        }
      scalar_tile(from + i0 * x_step + j, x_step, to + j * y_step + i0, y_step, i1 - i0, j1 - j);
    }
}

void tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
          int64_t columns, int64_t bytes) {
  switch (bytes) {
    case 1:
      if (interleaved(reinterpret_cast<const uint8_t*>(x), x_step, reinterpret_cast<uint8_t*>(y),
                      y_step, rows, columns))
        return;
      return tile_any<uint8_t>(x, x_step, y, y_step, rows, columns);
    case 2:
      return tile_any<uint16_t>(x, x_step, y, y_step, rows, columns);
    case 4: {
      const auto* from = reinterpret_cast<const uint32_t*>(x);
      auto* to = reinterpret_cast<uint32_t*>(y);
      if (interleaved(from, x_step, to, y_step, rows, columns)) return;
      return squares<4>(from, x_step, to, y_step, rows, columns, tile4);
    }
    default:
      return squares<hn::MaxLanes(hn::CappedTag<uint64_t, 4>())>(
          reinterpret_cast<const uint64_t*>(x), x_step, reinterpret_cast<uint64_t*>(y), y_step,
          rows, columns, tile_wide);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void transpose_tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
                    int64_t columns, int64_t bytes) {
  TOMBOLO_TARGET(void(const std::byte*, int64_t, std::byte*, int64_t, int64_t, int64_t, int64_t),
                 tile)
  (x, x_step, y, y_step, rows, columns, bytes);
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
