// Numbers as integers of four digits (gemm_digits.h).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/kernels/matmul/gemm_digits.h"
#include "runtime/kernels/parallel.h"

#if defined(__x86_64__)
#include "runtime/kernels/matmul/digits_target.h"

namespace tombolo {
namespace {

// Either way: products stay inside of float, and so do products of scales.
constexpr int kMostExponent = 60;

/// What is known of 16 rows or columns of numbers, or of 16 parts of one.
struct Numbers {
  __m512i greatest;  ///< bits without the sign
  __m512i some;      ///< how many are not zero
  __m512 roots;      ///< sum of about the square roots: a few large numbers do not hide the others
};
TOMBOLO_DIGITS_INLINE Numbers no_numbers() {
  return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_ps()};
}
TOMBOLO_DIGITS_INLINE void look_at(__m512 x, Numbers& seen) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 some = _mm512_test_epi32_mask(bits, bits);
  seen.greatest = _mm512_max_epu32(seen.greatest, bits);
  seen.some = _mm512_mask_add_epi32(seen.some, some, seen.some, _mm512_set1_epi32(1));
  // Half of the exponent, with the mantissa behind it, is within 6 % of the root.
  const __m512i root = _mm512_add_epi32(_mm512_srli_epi32(bits, 1), _mm512_set1_epi32(0x1FBD1DF5));
  seen.roots = _mm512_mask_add_ps(seen.roots, some, seen.roots, _mm512_castsi512_ps(root));
}

/// The same of one row or column.
struct Summary {
  uint32_t greatest = 0;
  int32_t some = 0;
  float roots = 0;

  /// About how large they are where they are not zero, whatever a few of them are.
  float usual() const {
    const float root = roots / static_cast<float>(std::max(1, some));
    return root * root;
  }
  /// 2^(30 - exponent) makes of them integers below 2^31, with room for digits to carry.
  int exponent() const {
    const int exponent = static_cast<int>(greatest >> 23) - 127;
    return exponent + ((greatest & 0x7FFFFF) >= 0x7E0000 ? 1 : 0);
  }
  /// Whether such integers hold them: what one rounds off is less than what a float of the usual
  /// size does.
  bool held() const {
    constexpr float kFarthest = 512;
    if (some == 0) return true;
    return std::abs(exponent()) <= kMostExponent &&
           std::bit_cast<float>(greatest) <= kFarthest * usual();
  }
};
TOMBOLO_DIGITS_INLINE Summary summary_of(const Numbers& seen) {
  return {_mm512_reduce_max_epu32(seen.greatest), _mm512_reduce_add_epi32(seen.some),
          _mm512_reduce_add_ps(seen.roots)};
}

DigitScale scale_of(const Summary& numbers) {
  if (!numbers.held()) return {-1, 0};
  if (numbers.some == 0) return {1, 0};
  return {power_of_two(numbers.exponent() - kHighest), numbers.exponent()};
}
/// That of a column, 0 where it has zeros alone; false where integers do not hold it.
bool set_column_scale(const Summary& numbers, float& scale) {
  scale = numbers.some == 0 ? 0 : scale_of(numbers).scale;
  return scale >= 0;
}

/// a where the mask is set, b elsewhere.
TOMBOLO_DIGITS_INLINE __m512i pick(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}

/// Byte b of each of 4 x 16 integers: out[b] has in each lane those of x[0] to x[3], in order.
TOMBOLO_DIGITS_INLINE void turn_bytes(const __m512i (&x)[4], __m512i (&out)[4]) {
  const __m512i even = _mm512_set1_epi32(0x00FF00FF), low = _mm512_set1_epi32(0xFFFF);
  const __m512i even01 = pick(even, x[0], _mm512_slli_epi32(x[1], 8));
  const __m512i odd01 = pick(even, _mm512_srli_epi32(x[0], 8), x[1]);
  const __m512i even23 = pick(even, x[2], _mm512_slli_epi32(x[3], 8));
  const __m512i odd23 = pick(even, _mm512_srli_epi32(x[2], 8), x[3]);
  out[0] = pick(low, even01, _mm512_slli_epi32(even23, 16));
  out[1] = pick(low, odd01, _mm512_slli_epi32(odd23, 16));
  out[2] = pick(low, _mm512_srli_epi32(even01, 16), even23);
  out[3] = pick(low, _mm512_srli_epi32(odd01, 16), odd23);
}

/// The nearest integer of each number, in bytes that are its digits: half of a digit is added to
/// each but the highest, and taken off its byte without a carry.
TOMBOLO_DIGITS_INLINE __m512i digits_in(__m512 x, __m512 scale) {
  const __m512i halves = _mm512_set1_epi32(0x808080);
  const __m512i integer = _mm512_cvtps_epi32(_mm512_mul_ps(x, scale));
  return _mm512_xor_si512(_mm512_add_epi32(integer, halves), halves);
}

/// Digits of 4 x 16 numbers, the highest first, `step` bytes apart: what is in lane i of all four
/// lies side by side.
TOMBOLO_DIGITS_INLINE void store_digits(const __m512i (&digits)[4], std::byte* out, int64_t step) {
  __m512i bytes[4];
  turn_bytes(digits, bytes);
  for (int i = 0; i < kDigits; ++i) _mm512_store_si512(out + i * step, bytes[kDigits - 1 - i]);
}

/// Digits of `k` numbers, which integers hold, by sixteens.
TOMBOLO_DIGITS void split_numbers(const DigitRow& row, int exponent, const DigitPlaces& to) {
  const __m512 scale = _mm512_set1_ps(power_of_two(kIntegerBits - exponent));
  std::byte* out = to.digits;
  const float* a = row.a;
  for (int64_t i = 0; i < row.k; i += kDigitsDepth, out += to.step) {
    __m512i x[4];
    for (int64_t v = 0; v < 4; ++v, a += row.plane)
      x[v] = digits_in(_mm512_maskz_loadu_ps(first_lanes(row.k - i - v * 16), a), scale);
    store_digits(x, out, to.digit);
  }
}

TOMBOLO_DIGITS Summary look_at_row(const DigitRow& row) {
  Numbers seen = no_numbers();
  const float* a = row.a;
  int64_t i = 0;
  for (; i + 16 <= row.k; i += 16, a += row.plane) look_at(_mm512_loadu_ps(a), seen);
  if (i < row.k) look_at(_mm512_maskz_loadu_ps(first_lanes(row.k - i), a), seen);
  return summary_of(seen);
}

/// What is known of 16 columns, in memory.
struct alignas(64) ColumnNumbers {
  std::byte greatest[64] = {}, some[64] = {}, roots[64] = {};

  Summary column(int64_t i) const {
    Summary summary;
    std::memcpy(&summary.greatest, greatest + i * 4, 4);
    std::memcpy(&summary.some, some + i * 4, 4);
    std::memcpy(&summary.roots, roots + i * 4, 4);
    return summary;
  }
};

TOMBOLO_DIGITS void look_down(const std::byte* b, int64_t rows, int64_t step, int64_t columns,
                              ColumnNumbers& numbers) {
  Numbers seen{_mm512_load_si512(numbers.greatest), _mm512_load_si512(numbers.some),
               _mm512_load_ps(numbers.roots)};
  const __mmask16 there = first_lanes(columns);
  for (int64_t i = 0; i < rows; ++i, b += step) look_at(_mm512_maskz_loadu_ps(there, b), seen);
  _mm512_store_si512(numbers.greatest, seen.greatest);
  _mm512_store_si512(numbers.some, seen.some);
  _mm512_store_ps(numbers.roots, seen.roots);
}

/// `rows` rows of k numbers at any address, `step` bytes apart.
TOMBOLO_DIGITS Summary look_along(const std::byte* b, int64_t step, int64_t rows, int64_t k) {
  Numbers seen = no_numbers();
  for (int64_t r = 0; r < rows; ++r, b += step)
    for (int64_t i = 0; i < k; i += 16)
      look_at(_mm512_maskz_loadu_ps(first_lanes(k - i), b + i * 4), seen);
  return summary_of(seen);
}

std::vector<Summary> look_at_columns(const std::byte* b, int64_t k, int64_t n, bool turned,
                                     const ReadFloats& read) {
  constexpr int64_t kFloats = int64_t{1} << 20;
  std::vector<Summary> columns(static_cast<size_t>(n));
  if (turned) {
    const int64_t some = std::max<int64_t>(1, kFloats / k);
    for (int64_t from = 0; from < n; from += some) {
      const int64_t to = std::min(n, from + some);
      parallel(to - from, std::max<int64_t>(1, 16384 / k), [&](int64_t begin, int64_t end) {
        for (int64_t j = from + begin; j < from + end; ++j)
          columns[static_cast<size_t>(j)] = look_along(b + j * k * 4, 0, 1, k);
      });
      read.done(read.argument, from * k, to * k);
    }
    return columns;
  }
  const int64_t groups = (n + 15) / 16, some = std::max<int64_t>(1, kFloats / n);
  std::vector<ColumnNumbers> numbers(static_cast<size_t>(groups));
  for (int64_t from = 0; from < k; from += some) {
    const int64_t to = std::min(k, from + some);
    parallel(groups, std::max<int64_t>(4, 1024 / (to - from)), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g)
        look_down(b + (from * n + g * 16) * 4, to - from, n * 4, n - g * 16,
                  numbers[static_cast<size_t>(g)]);
    });
    read.done(read.argument, from * n, to * n);
  }
  for (int64_t j = 0; j < n; ++j)
    columns[static_cast<size_t>(j)] = numbers[static_cast<size_t>(j / 16)].column(j % 16);
  return columns;
}

}  // namespace

bool digits_of(const std::byte* b, int64_t k, int64_t n, bool turned, const ReadFloats& read,
               float* scales) {
  const std::vector<Summary> columns = look_at_columns(b, k, n, turned, read);
  std::fill_n(scales, round_up(n, kDigitsWidth), 0.0f);
  for (const Summary& column : columns)
    if (!set_column_scale(column, *scales++)) return false;
  return true;
}

TOMBOLO_DIGITS void digits_pack(const float* rows, int64_t k0, int64_t k, const DigitPanels& panels,
                                int64_t panel, std::byte* matrix) {
  const auto* const scales = reinterpret_cast<const float*>(matrix) + panel * kDigitsWidth;
  std::byte* const begins = matrix + panels.scales() + panel * 2 * panels.half();
  for (int64_t half = 0; half < 2; ++half) {
    const __m512 column = _mm512_loadu_ps(scales + half * 16);
    const __m512 scale =
        _mm512_maskz_div_ps(_mm512_cmp_ps_mask(column, _mm512_setzero_ps(), _CMP_NEQ_UQ),
                            _mm512_set1_ps(power_of_two(kIntegerBits - kHighest)), column);
    const int64_t step = k0 / kDigitsDepth;
    std::byte* out = begins + half * panels.half() + step * kStepBytes;
    for (int64_t i = 0; i < k; i += kDigitsDepth, out += kStepBytes)
      for (int64_t line = 0; line < 16; ++line) {
        __m512i x[4];
        for (int64_t v = 0; v < 4; ++v) {
          const int64_t row = i + v * 16 + line;
          x[v] = row < k ? digits_in(_mm512_loadu_ps(rows + row * kDigitsWidth + half * 16), scale)
                         : _mm512_setzero_si512();
        }
        store_digits(x, out + line * 64, kDigitTile);
      }
  }
}

DigitScale digits_scale_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t k) {
  return scale_of(look_along(reinterpret_cast<const std::byte*>(x), ldx * 4, rows, k));
}

bool digits_pack_panel(const float* rows, int64_t k, const DigitScale& all,
                       const DigitPanels& panels, int64_t panel, std::byte* matrix) {
  float* const scales = reinterpret_cast<float*>(matrix) + panel * kDigitsWidth;
  std::fill_n(scales, kDigitsWidth, std::max(all.scale, 0.0f));
  for (int64_t half = 0; half < kDigitsWidth && !(all.scale > 0); half += 16) {
    ColumnNumbers numbers;
    look_down(reinterpret_cast<const std::byte*>(rows + half), k, kDigitsWidth * 4, 16, numbers);
    for (int64_t i = 0; i < 16; ++i)
      if (!set_column_scale(numbers.column(i), scales[half + i])) return false;
  }
  digits_pack(rows, 0, k, panels, panel, matrix);
  return true;
}

bool digits_pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                   bool alike, const DigitPanels& panels, std::byte* matrix) {
  const DigitScale all = !alike        ? DigitScale{-1, 0}
                         : column == 1 ? digits_scale_of_rows(b, row, k, n)
                                       : digits_scale_of_rows(b, column, n, k);
  float* const room = thread_floats(0, static_cast<size_t>(k * kDigitsWidth));
  for (int64_t j = 0; j < n; j += kDigitsWidth) {
    pack_b_panel(b + j * column, row, column, k, std::min(kDigitsWidth, n - j), 1, room);
    if (!digits_pack_panel(room, k, all, panels, j / kDigitsWidth, matrix)) return false;
  }
  auto* const scales = reinterpret_cast<float*>(matrix);
  for (int64_t j = 0; j < n; ++j) scales[j] *= alpha;
  return true;
}

float split_digits(const DigitRow& row, const DigitPlaces& to) {
  const DigitScale scale = scale_of(look_at_row(row));
  if (scale.scale > 0)
    split_digits_as(row, scale, to);
  else
    clear_digits(row.k, to);
  return scale.scale;
}

void split_digits_as(const DigitRow& row, const DigitScale& scale, const DigitPlaces& to) {
  split_numbers(row, scale.exponent, to);
}

DigitScale digits_scale(const float* x, int64_t channels, int64_t pixels) {
  const int64_t groups = (channels + 15) / 16;
  constexpr int64_t kPiece = 1024;  // pixels
  const int64_t pieces = (pixels + kPiece - 1) / kPiece;
  std::vector<ColumnNumbers> seen(static_cast<size_t>(groups * pieces));
  parallel(groups * pieces, std::max<int64_t>(1, 1024 / pixels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / pieces, pixel = i % pieces * kPiece;
      look_down(reinterpret_cast<const std::byte*>(x + (group * pixels + pixel) * 16),
                std::min(kPiece, pixels - pixel), 64, channels - group * 16,
                seen[static_cast<size_t>(i)]);
    }
  });
  Summary all;
  for (const ColumnNumbers& numbers : seen)
    for (int64_t i = 0; i < 16; ++i) {
      const Summary some = numbers.column(i);
      all.greatest = std::max(all.greatest, some.greatest);
      all.some += some.some;
      all.roots += some.roots;
    }
  return scale_of(all);
}

void clear_digits(int64_t k, const DigitPlaces& to) {
  std::byte* out = to.digits;
  for (int64_t i = 0; i < k; i += kDigitsDepth, out += to.step)
    for (int64_t d = 0; d < kDigits; ++d) std::memset(out + d * to.digit, 0, 64);
}

}  // namespace tombolo

#else

namespace tombolo {
float split_digits(const DigitRow&, const DigitPlaces&) { return 0; }
void split_digits_as(const DigitRow&, const DigitScale&, const DigitPlaces&) {}
DigitScale digits_scale(const float*, int64_t, int64_t) { return {0, 0}; }
DigitScale digits_scale_of_rows(const float*, int64_t, int64_t, int64_t) { return {0, 0}; }
void clear_digits(int64_t, const DigitPlaces&) {}
bool digits_of(const std::byte*, int64_t, int64_t, bool, const ReadFloats&, float*) {
  return false;
}
void digits_pack(const float*, int64_t, int64_t, const DigitPanels&, int64_t, std::byte*) {}
bool digits_pack_panel(const float*, int64_t, const DigitScale&, const DigitPanels&, int64_t,
                       std::byte*) {
  return false;
}
bool digits_pack_b(const float*, int64_t, int64_t, int64_t, int64_t, float, bool,
                   const DigitPanels&, std::byte*) {
  return false;
}
}  // namespace tombolo

#endif
