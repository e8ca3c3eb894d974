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

void tile32(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step, int64_t rows,
            int64_t columns) {
  // Blocks of one cache line by one cache line.
  for (int64_t i0 = 0; i0 < rows; i0 += 16)
    for (int64_t j0 = 0; j0 < columns; j0 += 16) {
      const int64_t i1 = std::min(rows, i0 + 16), j1 = std::min(columns, j0 + 16);
      int64_t j = j0;
      for (; j + 4 <= j1; j += 4) {
        int64_t i = i0;
        for (; i + 4 <= i1; i += 4) tile4(x + i * x_step + j, x_step, y + j * y_step + i, y_step);
        scalar_tile(x + i * x_step + j, x_step, y + j * y_step + i, y_step, i1 - i, 4);
      }
      scalar_tile(x + i0 * x_step + j, x_step, y + j * y_step + i0, y_step, i1 - i0, j1 - j);
    }
}

template <typename T>
void tile_any(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
              int64_t columns) {
  constexpr int64_t kSide = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < rows; i += kSide)
    for (int64_t j = 0; j < columns; j += kSide)
      scalar_tile(reinterpret_cast<const T*>(x) + i * x_step + j, x_step,
                  reinterpret_cast<T*>(y) + j * y_step + i, y_step, std::min(kSide, rows - i),
                  std::min(kSide, columns - j));
}

void tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
          int64_t columns, int64_t bytes) {
  switch (bytes) {
    case 1:
      return tile_any<uint8_t>(x, x_step, y, y_step, rows, columns);
    case 2:
      return tile_any<uint16_t>(x, x_step, y, y_step, rows, columns);
    case 4:
      return tile32(reinterpret_cast<const uint32_t*>(x), x_step, reinterpret_cast<uint32_t*>(y),
                    y_step, rows, columns);
    default:
      return tile_any<uint64_t>(x, x_step, y, y_step, rows, columns);
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
