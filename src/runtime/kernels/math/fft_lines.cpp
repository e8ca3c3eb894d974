#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/fft_lines.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/fft_lines.h"
#include "runtime/kernels/math/square-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FftTag = SquareTag;
using FftWide = SquareRow;
constexpr int kFftLanes = kSquare;
static_assert(kFftSignals % kFftLanes == 0);
template <typename T>
void lines_to_rows(const T* const* lines, int64_t numbers, bool apart, const T* window,
                   FftRows rows) {
  const FftTag d;
  const SquareNumbers<T> few;
  const auto some = [&](int64_t g, int64_t m, auto whole) HWY_ATTR {
    const int64_t left = whole ? kFftLanes : numbers - m;
    FftWide v[kFftLanes];
#pragma GCC unroll 8
    for (int j = 0; j < kFftLanes; ++j) v[j] = widened<T>(load_n(few, lines[g + j] + m, left));
    if (window != nullptr) {
      const FftWide weight = widened<T>(load_n(few, window + m, left));
#pragma GCC unroll 8
      for (int j = 0; j < kFftLanes; ++j) v[j] = hn::Mul(v[j], weight);
    }
    transpose_square(v);
#pragma GCC unroll 8
    for (int t = 0; t < kFftLanes; ++t)
      if (whole || t < left) {
        double* const part = apart && t % 2 != 0 ? rows.im : rows.re;
        const int64_t row = apart ? m / 2 + t / 2 : m + t;
        hn::StoreU(v[t], d, part + row * kFftSignals + g);
      }
  };
  int64_t m = 0;
  for (; m + kFftLanes <= numbers; m += kFftLanes)
    for (int64_t g = 0; g < kFftSignals; g += kFftLanes) some(g, m, std::true_type());
  if (m < numbers)
    for (int64_t g = 0; g < kFftSignals; g += kFftLanes) some(g, m, std::false_type());
}

template <typename T>
void neighbours_to_rows(const T* x, int64_t step, int64_t elements, bool complex, bool apart,
                        int64_t count, FftRows rows) {
  const FftTag d;
  const SquareNumbers<T> few;
  for (int64_t g = 0; g < kFftSignals; g += kFftLanes) {
    const int64_t left = count - g;
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t at = i * kFftSignals + g;
      const T* const from = x + i * step + (complex ? 2 * g : g);
      if (!complex) {
        const FftWide v = widened<T>(load_n(few, from, left));
        if (apart)
          hn::StoreU(v, d, (i % 2 != 0 ? rows.im : rows.re) + i / 2 * kFftSignals + g);
        else
          hn::StoreU(v, d, rows.re + at);
        continue;
      }
      hn::Vec<SquareNumbers<T>> re, im;
      if (left >= kFftLanes) {
        hn::LoadInterleaved2(few, from, re, im);
      } else {
        HWY_ALIGN T numbers[2 * kFftLanes] = {};
        if (left > 0) std::copy_n(from, 2 * left, numbers);
        hn::LoadInterleaved2(few, numbers, re, im);
      }
      hn::StoreU(widened<T>(re), d, rows.re + at);
      hn::StoreU(widened<T>(im), d, rows.im + at);
    }
  }
}

/// What rows hold, times a factor.
struct FftPlainSource {
  FftRows rows;
  double scale;
  HWY_INLINE void take(int64_t i, int64_t g, FftWide& re, FftWide& im) const {
    re = real(i, g);
    im = hn::Mul(hn::LoadU(FftTag(), rows.im + i * kFftSignals + g), hn::Set(FftTag(), scale));
  }
  HWY_INLINE FftWide real(int64_t i, int64_t g) const {
    return hn::Mul(hn::LoadU(FftTag(), rows.re + i * kFftSignals + g), hn::Set(FftTag(), scale));
  }
};

/// The spectrum of real numbers, from the transform of even + i odd elements.
struct FftPairsSource {
  FftRows rows;
  FftPairs pairs;
  HWY_INLINE void take(int64_t i, int64_t g, FftWide& re, FftWide& im) const {
    const FftTag d;
    // The second half is the conjugate of the first.
    const int64_t half = pairs.length / 2, k = i <= half ? i : pairs.length - i;
    const int64_t at = (k < half ? k : 0) * kFftSignals + g;
    const int64_t other = (k > 0 ? half - k : 0) * kFftSignals + g;
    const FftWide zr = hn::LoadU(d, rows.re + at), zi = hn::LoadU(d, rows.im + at);
    const FftWide cr = hn::LoadU(d, rows.re + other), ci = hn::LoadU(d, rows.im + other);
    const FftWide by = hn::Set(d, 0.5);
    const FftWide even_re = hn::Mul(by, hn::Add(zr, cr)), even_im = hn::Mul(by, hn::Sub(zi, ci));
    const FftWide odd_re = hn::Mul(by, hn::Add(zi, ci)), odd_im = hn::Mul(by, hn::Sub(cr, zr));
    const FftWide c = hn::Set(d, pairs.cosine[k]), s = hn::Set(d, pairs.sine[k]);
    re = hn::MulAdd(odd_im, s, hn::MulAdd(odd_re, c, even_re));
    im = hn::NegMulAdd(odd_re, s, hn::MulAdd(odd_im, c, even_im));
    if (i > half) im = hn::Neg(im);
  }
  HWY_INLINE FftWide real(int64_t i, int64_t g) const {
    FftWide re, im;
    take(i, g, re, im);
    return re;
  }
};

template <typename T, class Source>
void source_to_lines(const Source& source, int64_t elements, bool complex, int64_t count,
                     T* const* lines) {
  const SquareNumbers<T> few;
  const auto some = [&](int64_t g, int64_t i, auto as_complex) HWY_ATTR {
    constexpr int kStep = decltype(as_complex)::value ? kFftLanes / 2 : kFftLanes;
    constexpr int kParts = kFftLanes / kStep;
    FftWide v[kFftLanes];
#pragma GCC unroll 8
    for (int t = 0; t < kStep; ++t) {
      const int64_t element = std::min(i + t, elements - 1);
      if constexpr (decltype(as_complex)::value)
        source.take(element, g, v[2 * t], v[2 * t + 1]);
      else
        v[t] = source.real(element, g);
    }
    transpose_square(v);
    const int64_t left = (elements - i) * kParts;
#pragma GCC unroll 8
    for (int j = 0; j < kFftLanes; ++j)
      if (g + j < count) store_n(narrowed<T>(v[j]), few, lines[g + j] + i * kParts, left);
  };
  for (int64_t i = 0; i < elements; i += complex ? kFftLanes / 2 : kFftLanes)
    for (int64_t g = 0; g < count; g += kFftLanes)
      if (complex)
        some(g, i, std::true_type());
      else
        some(g, i, std::false_type());
}

template <typename T>
void rows_to_lines(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                   double scale, int64_t count, T* const* lines) {
  if (pairs != nullptr)
    source_to_lines(FftPairsSource{rows, *pairs}, elements, complex, count, lines);
  else
    source_to_lines(FftPlainSource{rows, scale}, elements, complex, count, lines);
}

template <typename T, class Source>
void source_to_neighbours(const Source& source, int64_t elements, bool complex, int64_t count, T* y,
                          int64_t step) {
  const SquareNumbers<T> few;
  for (int64_t g = 0; g < count; g += kFftLanes) {
    const int64_t left = count - g;
    for (int64_t i = 0; i < elements; ++i) {
      if (!complex) {
        store_n(narrowed<T>(source.real(i, g)), few, y + i * step + g, left);
        continue;
      }
      T* const to = y + i * step + 2 * g;
      FftWide re, im;
      source.take(i, g, re, im);
      if (left >= kFftLanes) {
        hn::StoreInterleaved2(narrowed<T>(re), narrowed<T>(im), few, to);
      } else {
        HWY_ALIGN T numbers[2 * kFftLanes];
        hn::StoreInterleaved2(narrowed<T>(re), narrowed<T>(im), few, numbers);
        std::copy_n(numbers, 2 * left, to);
      }
    }
  }
}

template <typename T>
void rows_to_neighbours(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                        double scale, int64_t count, T* y, int64_t step) {
  if (pairs != nullptr)
    source_to_neighbours(FftPairsSource{rows, *pairs}, elements, complex, count, y, step);
  else
    source_to_neighbours(FftPlainSource{rows, scale}, elements, complex, count, y, step);
}

template <typename T>
void line_to_row(const T* x, int64_t numbers, bool apart, const T* window, FftRows rows) {
  const FftTag d;
  const SquareNumbers<T> few;
  int64_t m = 0;
  if (apart) {
    for (; m + 2 * kFftLanes <= numbers; m += 2 * kFftLanes) {
      hn::Vec<SquareNumbers<T>> even, odd;
      hn::LoadInterleaved2(few, x + m, even, odd);
      FftWide re = widened<T>(even), im = widened<T>(odd);
      if (window != nullptr) {
        hn::LoadInterleaved2(few, window + m, even, odd);
        re = hn::Mul(re, widened<T>(even));
        im = hn::Mul(im, widened<T>(odd));
      }
      hn::StoreU(re, d, rows.re + m / 2);
      hn::StoreU(im, d, rows.im + m / 2);
    }
  } else {
    for (; m + kFftLanes <= numbers; m += kFftLanes) {
      FftWide re = widened<T>(hn::LoadU(few, x + m));
      if (window != nullptr) re = hn::Mul(re, widened<T>(hn::LoadU(few, window + m)));
      hn::StoreU(re, d, rows.re + m);
    }
  }
  for (; m < numbers; ++m) {
    const double weight = window == nullptr ? 1.0 : static_cast<double>(window[m]);
    const double number = static_cast<double>(x[m]) * weight;
    if (apart)
      (m % 2 == 0 ? rows.re : rows.im)[m / 2] = number;
    else
      rows.re[m] = number;
  }
}

template <typename T>
void row_to_line(FftRows rows, int64_t elements, bool complex, double scale, T* y) {
  const FftTag d;
  const SquareNumbers<T> few;
  const FftWide by = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kFftLanes <= elements; i += kFftLanes) {
    const auto re = narrowed<T>(hn::Mul(hn::LoadU(d, rows.re + i), by));
    if (complex)
      hn::StoreInterleaved2(re, narrowed<T>(hn::Mul(hn::LoadU(d, rows.im + i), by)), few,
                            y + 2 * i);
    else
      hn::StoreU(re, few, y + i);
  }
  for (; i < elements; ++i) {
    y[complex ? 2 * i : i] = static_cast<T>(rows.re[i] * scale);
    if (complex) y[2 * i + 1] = static_cast<T>(rows.im[i] * scale);
  }
}

/// What FftPairsSource does, along one line.
template <typename T>
void spectrum_to_line(FftRows rows, const FftPairs& pairs, int64_t elements, T* y) {
  const FftTag d;
  const SquareNumbers<T> few;
  const int64_t n = pairs.length, half = n / 2;
  const bool mirrored = elements > half + 1;
  int64_t k = 1;
  for (; k + kFftLanes <= half; k += kFftLanes) {
    const int64_t other = half - k - kFftLanes + 1;
    const FftWide zr = hn::LoadU(d, rows.re + k), zi = hn::LoadU(d, rows.im + k);
    const FftWide cr = hn::Reverse(d, hn::LoadU(d, rows.re + other));
    const FftWide ci = hn::Reverse(d, hn::LoadU(d, rows.im + other));
    const FftWide by = hn::Set(d, 0.5);
    const FftWide even_re = hn::Mul(by, hn::Add(zr, cr)), even_im = hn::Mul(by, hn::Sub(zi, ci));
    const FftWide odd_re = hn::Mul(by, hn::Add(zi, ci)), odd_im = hn::Mul(by, hn::Sub(cr, zr));
    const FftWide c = hn::LoadU(d, pairs.cosine + k), s = hn::LoadU(d, pairs.sine + k);
    const FftWide re = hn::MulAdd(odd_im, s, hn::MulAdd(odd_re, c, even_re));
    const FftWide im = hn::NegMulAdd(odd_re, s, hn::MulAdd(odd_im, c, even_im));
    hn::StoreInterleaved2(narrowed<T>(re), narrowed<T>(im), few, y + 2 * k);
    if (mirrored)
      hn::StoreInterleaved2(narrowed<T>(hn::Reverse(d, re)),
                            narrowed<T>(hn::Reverse(d, hn::Neg(im))), few,
                            y + 2 * (n - k - kFftLanes + 1));
  }
  const auto one = [&](int64_t i) {
    const int64_t at = i % half, other = (half - i) % half;
    const double even_re = (rows.re[at] + rows.re[other]) / 2;
    const double even_im = (rows.im[at] - rows.im[other]) / 2;
    const double odd_re = (rows.im[at] + rows.im[other]) / 2;
    const double odd_im = (rows.re[other] - rows.re[at]) / 2;
    const double re = even_re + odd_re * pairs.cosine[i] + odd_im * pairs.sine[i];
    const double im = even_im + odd_im * pairs.cosine[i] - odd_re * pairs.sine[i];
    y[2 * i] = static_cast<T>(re);
    y[2 * i + 1] = static_cast<T>(im);
    if (!mirrored || i == 0 || i == half) return;
    y[2 * (n - i)] = static_cast<T>(re);
    y[2 * (n - i) + 1] = static_cast<T>(-im);
  };
  one(0);
  for (; k <= half && k < elements; ++k) one(k);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void read_fft_lines(const T* const* lines, int64_t numbers, bool apart, const T* window,
                    FftRows rows) {
  using Fn = void(const T* const*, int64_t, bool, const T*, FftRows);
  TOMBOLO_TARGET(Fn, lines_to_rows<T>)(lines, numbers, apart, window, rows);
}

template <typename T>
void read_fft_neighbours(const T* x, int64_t step, int64_t elements, bool complex, bool apart,
                         int64_t count, FftRows rows) {
  using Fn = void(const T*, int64_t, int64_t, bool, bool, int64_t, FftRows);
  TOMBOLO_TARGET(Fn, neighbours_to_rows<T>)(x, step, elements, complex, apart, count, rows);
}

template <typename T>
void write_fft_lines(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                     double scale, int64_t count, T* const* lines) {
  using Fn = void(FftRows, const FftPairs*, int64_t, bool, double, int64_t, T* const*);
  TOMBOLO_TARGET(Fn, rows_to_lines<T>)(rows, pairs, elements, complex, scale, count, lines);
}

template <typename T>
void write_fft_neighbours(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                          double scale, int64_t count, T* y, int64_t step) {
  using Fn = void(FftRows, const FftPairs*, int64_t, bool, double, int64_t, T*, int64_t);
  TOMBOLO_TARGET(Fn, rows_to_neighbours<T>)
  (rows, pairs, elements, complex, scale, count, y, step);
}

template <typename T>
void read_fft_line(const T* x, int64_t numbers, bool apart, const T* window, FftRows rows) {
  using Fn = void(const T*, int64_t, bool, const T*, FftRows);
  TOMBOLO_TARGET(Fn, line_to_row<T>)(x, numbers, apart, window, rows);
}

template <typename T>
void write_fft_line(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                    double scale, T* y) {
  using Fn = void(FftRows, int64_t, bool, double, T*);
  using PairsFn = void(FftRows, const FftPairs&, int64_t, T*);
  if (pairs == nullptr)
    TOMBOLO_TARGET(Fn, row_to_line<T>)(rows, elements, complex, scale, y);
  else
    TOMBOLO_TARGET(PairsFn, spectrum_to_line<T>).get()(rows, *pairs, elements, y);
}

#define TOMBOLO_FFT_LINES(T)                                                                       \
  template void read_fft_lines(const T* const*, int64_t, bool, const T*, FftRows);                 \
  template void read_fft_neighbours(const T*, int64_t, int64_t, bool, bool, int64_t, FftRows);     \
  template void write_fft_lines(FftRows, const FftPairs*, int64_t, bool, double, int64_t,          \
                                T* const*);                                                        \
  template void write_fft_neighbours(FftRows, const FftPairs*, int64_t, bool, double, int64_t, T*, \
                                     int64_t);                                                     \
  template void read_fft_line(const T*, int64_t, bool, const T*, FftRows);                         \
  template void write_fft_line(FftRows, const FftPairs*, int64_t, bool, double, T*);
TOMBOLO_FFT_LINES(float)
TOMBOLO_FFT_LINES(double)
#undef TOMBOLO_FFT_LINES

}  // namespace tombolo
#endif
