// Kernels of rows, transforms and lookups against plain loops, at every instruction set of this
// machine.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/float_formats.h"
#include "each_isa.h"
#include "runtime/kernels/attention/rotate.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/math/fft.h"
#include "runtime/kernels/matmul/gemm_wide.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/pool/pool_rows.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/reduce/extremum.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/reduce/scan.h"
#include "runtime/kernels/tensor/lookup.h"

namespace tombolo {
namespace {

class RowKernels : public EachIsa {
 protected:
  /// Whole numbers in [low, high], so that sums in any order are equal.
  template <typename T>
  std::vector<T> numbers(int64_t n, int low, int high) {
    std::vector<T> v(static_cast<size_t>(n));
    std::uniform_int_distribution<int> distribution(low, high);
    for (T& x : v) x = static_cast<T>(distribution(engine_));
    return v;
  }

  std::mt19937 engine_{7};
};

constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 515};

template <typename T>
void expect_bits(const std::vector<T>& a, const std::vector<T>& b, const char* what, int64_t n) {
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << what << " of " << n;
}

template <typename T>
void check_pairs(DType dtype, std::vector<T> a, std::vector<T> b) {
  const auto n = static_cast<int64_t>(a.size());
  __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  const auto each = [&](Binary op, auto exact) {
    BinaryFn* fn = binary_fn(op, dtype);
    ASSERT_NE(fn, nullptr);
    for (const int repeats : {0, 1, 2}) {
      std::vector<T> y(a.size()), expected(a.size());
      for (size_t i = 0; i < a.size(); ++i)
        expected[i] = static_cast<T>(exact(static_cast<Wide>(a[repeats == 1 ? 0 : i]),
                                           static_cast<Wide>(b[repeats == 2 ? 0 : i])));
      fn(a.data(), repeats == 1, b.data(), repeats == 2, y.data(), n);
      expect_bits(y, expected, "pairs", n);
    }
  };
  each(Binary::kAdd, [](Wide u, Wide v) { return u + v; });
  each(Binary::kSub, [](Wide u, Wide v) { return u - v; });
  each(Binary::kMul, [](Wide u, Wide v) { return u * v; });
  each(Binary::kMax, [](Wide u, Wide v) { return u > v ? u : v; });
  each(Binary::kMin, [](Wide u, Wide v) { return u < v ? u : v; });
  each(Binary::kBitXor, [](Wide u, Wide v) { return u ^ v; });
  for (T& x : b) x = x == 0 ? T{3} : x;
  each(Binary::kDiv, [](Wide u, Wide v) { return u / v; });
  each(Binary::kFmod, [](Wide u, Wide v) { return u % v; });
  each(Binary::kMod, [](Wide u, Wide v) {
    const Wide rest = u % v;
    return rest != 0 && (rest < 0) != (v < 0) ? rest + v : rest;
  });
}

TEST_P(RowKernels, IntegersComputeInTheirWidth) {
  const auto all = [&]<typename T>(DType dtype, T) {
    for (const int64_t n : kSizes) {
      std::vector<T> a(static_cast<size_t>(n)), b(static_cast<size_t>(n));
      for (auto* v : {&a, &b})
        for (T& x : *v) {
          const uint64_t bits = uint64_t{engine_()} << 32 | engine_();
          // All sizes of numbers, and the ends of the range.
          x = static_cast<T>(bits >> (engine_() % 64));
          if (engine_() % 16 == 0) x = std::numeric_limits<T>::lowest();
          if (engine_() % 16 == 0) x = static_cast<T>(-1);
        }
      check_pairs(dtype, a, b);
      // None so large, up to either side of 2^51 in magnitude: quotients of doubles.
      for (auto* v : {&a, &b})
        for (T& x : *v) {
          const uint64_t bits = uint64_t{engine_()} << 32 | engine_();
          uint64_t size = bits >> (13 + engine_() % 51);
          if (engine_() % 16 == 0) size = (uint64_t{1} << 51) - 1 - engine_() % 2;
          x = static_cast<T>(std::is_signed_v<T> && engine_() % 2 == 0 ? 0 - size : size);
        }
      check_pairs(dtype, a, b);
      b.assign(b.size(), b[0]);
      check_pairs(dtype, a, b);
    }
  };
  all(DType::kInt8, int8_t{});
  all(DType::kUInt8, uint8_t{});
  all(DType::kInt16, int16_t{});
  all(DType::kUInt16, uint16_t{});
  all(DType::kInt32, int32_t{});
  all(DType::kUInt32, uint32_t{});
  all(DType::kInt64, int64_t{});
  all(DType::kUInt64, uint64_t{});
}

constexpr float kOdd[] = {0.0f,          -0.9f,         1.9f,         -300.0f,        300.0f,
                          2147483520.0f, 2.2e9f,        -3e9f,        65535.9f,       40000.5f,
                          -32769.0f,     9.223371e18f,  9.3e18f,      -1e30f,         NAN,
                          1e30f,         127.5f,        -128.9f,      -INFINITY,      INFINITY,
                          255.9f,        -1.0f,         5.0f,         -NAN,           2147483648.0f,
                          1e-30f,        65520.0f,      65519.9f,     -2147483648.0f, 1e-7f,
                          4294967040.0f, 4294967296.0f, 2147483904.0f};

TEST_P(RowKernels, CastsSaturate) {
  const auto check = [&]<typename T>(DType dtype, T) {
    for (const int64_t n : kSizes)
      for (size_t from = 0; from < std::size(kOdd); from += 7) {
        std::vector<float> x(static_cast<size_t>(n));
        for (size_t i = 0; i < x.size(); ++i) x[i] = kOdd[(from + i) % std::size(kOdd)];
        std::vector<T> y(x.size() + 1, T{77});
        convert_fn(DType::kFloat32, dtype)(x.data(), y.data(), n);
        for (size_t i = 0; i < x.size(); ++i) {
          const double value = static_cast<double>(x[i]);
          const T expected = value != value ? T{0}
                             : value <= static_cast<double>(std::numeric_limits<T>::lowest())
                                 ? std::numeric_limits<T>::lowest()
                             : value >= static_cast<double>(std::numeric_limits<T>::max())
                                 ? std::numeric_limits<T>::max()
                                 : static_cast<T>(value);
          EXPECT_EQ(y[i], expected) << x[i];
        }
        EXPECT_EQ(y.back(), T{77}) << n;
      }
  };
  check(DType::kInt8, int8_t{});
  check(DType::kUInt8, uint8_t{});
  check(DType::kInt16, int16_t{});
  check(DType::kUInt16, uint16_t{});
  check(DType::kInt32, int32_t{});
  check(DType::kInt64, int64_t{});
  check(DType::kUInt32, uint32_t{});
}

TEST_P(RowKernels, HalvesRoundToEvenAndDropPayloads) {
  for (const int64_t n : kSizes) {
    std::vector<float> x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto bits = static_cast<uint32_t>(engine_());
      x[i] = i % 3 == 0 ? kOdd[i % std::size(kOdd)]
             : i % 3 == 1  // in the middle between two of them, or next to it
                 ? std::bit_cast<float>((bits & 0x80FFF000u) + 0x3F000000u + (bits & 1))
                 : std::bit_cast<float>(bits);
    }
    if (n > 2) x[static_cast<size_t>(n) - 2] = std::bit_cast<float>(0xFF800001u);
    std::vector<uint16_t> half(x.size() + 1, 77), brain(x.size() + 1, 77);
    f32_to_f16(x.data(), half.data(), n);
    f32_to_bf16(x.data(), brain.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(half[i], encode_float<kF16>(unpack_number(x[i]), false)) << x[i];
      EXPECT_EQ(brain[i], encode_float<kBF16>(unpack_number(x[i]), false)) << x[i];
    }
    EXPECT_EQ(half.back(), 77);
    EXPECT_EQ(brain.back(), 77);
  }
}

TEST_P(RowKernels, Folds) {
  const auto all = [&]<typename T>(T) {
    for (const int64_t n : kSizes)
      for (const int64_t width : {int64_t{1}, int64_t{5}, int64_t{40}, int64_t{300}}) {
        const auto x = numbers<T>(n * width, -9, 9);
        for (const Fold fold :
             {Fold::kSum, Fold::kSumSquare, Fold::kSumAbs, Fold::kMax, Fold::kMin}) {
          const auto combine = [&](T sum, T v) -> T {
            switch (fold) {
              case Fold::kSum:
                return sum + v;
              case Fold::kSumSquare:
                return sum + v * v;
              case Fold::kSumAbs:
                return sum + (v < 0 ? -v : v);
              case Fold::kMax:
                return std::max(sum, v);
              default:
                return std::min(sum, v);
            }
          };
          const T start = fold == Fold::kMax ? T{-100} : fold == Fold::kMin ? T{100} : T{0};
          std::vector<T> expected(static_cast<size_t>(width), start), y(expected.size());
          T total = start;
          for (int64_t i = 0; i < n * width; ++i) {
            T& sum = expected[static_cast<size_t>(i % width)];
            sum = combine(sum, x[static_cast<size_t>(i)]);
            total = combine(total, x[static_cast<size_t>(i)]);
          }
          fold_columns(fold, x.data(), n, width, width, y.data());
          expect_bits(y, expected, "columns", n);
          EXPECT_EQ(fold_row(fold, x.data(), n * width), total) << n;
        }
      }
  };
  all(float{});
  all(double{});
  all(int32_t{});
  all(int64_t{});
}

TEST_P(RowKernels, RunningSums) {
  for (const int64_t n : kSizes)
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        const int64_t width = 70;
        const auto x = numbers<float>(n * width, -9, 9);
        std::vector<float> down(x.size()), along(x.size()), expected_down(x.size()),
            expected_along(x.size());
        running_sums(x.data(), 1, n, width, width, exclusive, reverse, down.data());
        running_rows(x.data(), width, n, exclusive, reverse, along.data());
        const auto walk = [&](int64_t first, int64_t step, std::vector<float>& out) {
          float sum = 0;
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(first + (reverse ? n - 1 - i : i) * step);
            out[at] = exclusive ? sum : sum + x[at];
            sum += x[at];
          }
        };
        for (int64_t j = 0; j < width; ++j) {
          walk(j, width, expected_down);
          walk(j * n, 1, expected_along);
        }
        expect_bits(down, expected_down, "down", n);
        expect_bits(along, expected_along, "along", n);
      }
}

TEST_P(RowKernels, Extremes) {
  const auto all = [&]<typename T>(T, DType dtype) {
    ASSERT_TRUE(has_extremum_places(dtype));
    for (const int64_t n : kSizes)
      for (const bool greatest : {false, true})
        for (const bool last : {false, true}) {
          const int64_t width = 21;
          auto x = numbers<T>(n * width, std::is_signed_v<T> ? -9 : 0, 9);
          // The ends of the type: an unsigned number is no negative one.
          for (auto& v : x)
            if (engine_() % 16 == 0)
              v = engine_() % 2 == 0 ? std::numeric_limits<T>::max()
                                     : std::numeric_limits<T>::lowest();
          if constexpr (std::is_floating_point_v<T>)
            for (auto& v : x)
              if (engine_() % 64 == 0) v = std::numeric_limits<T>::quiet_NaN();
          const auto expected = [&](int64_t first, int64_t step) {
            int64_t place = 0;
            for (int64_t i = 1; i < n; ++i) {
              const T v = x[static_cast<size_t>(first + i * step)],
                      best = x[static_cast<size_t>(first + place * step)];
              const bool equal = v == best || (v != v && best != best);
              const bool better = best == best && (v != v || (greatest ? v > best : v < best));
              if (equal ? last : better) place = i;
            }
            return place;
          };
          std::vector<int64_t> down(static_cast<size_t>(width)), along(down.size());
          extremum_places({n, width, greatest, last}, dtype, x.data(), width, down.data());
          extremum_places({n, 1, greatest, last}, dtype, x.data(), width, along.data());
          for (int64_t j = 0; j < width; ++j) {
            EXPECT_EQ(down[static_cast<size_t>(j)], expected(j, width)) << n;
            EXPECT_EQ(along[static_cast<size_t>(j)], expected(j * n, 1)) << n;
          }
        }
  };
  all(float{}, DType::kFloat32);
  all(double{}, DType::kFloat64);
  all(int8_t{}, DType::kInt8);
  all(uint8_t{}, DType::kUInt8);
  all(int16_t{}, DType::kInt16);
  all(uint16_t{}, DType::kUInt16);
  all(int32_t{}, DType::kInt32);
  all(uint32_t{}, DType::kUInt32);
  all(int64_t{}, DType::kInt64);
  all(uint64_t{}, DType::kUInt64);
}

TEST_P(RowKernels, RangesAndBytes) {
  for (const int64_t n : kSizes) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = std::normal_distribution<float>(0, 9)(engine_);
    // Halves lie in the middle between two bytes; NaN is 0 and outside of no range.
    for (float& v : x)
      if (engine_() % 8 == 0) v = static_cast<float>(engine_() % 64) / 2;
    for (float& v : x)
      if (engine_() % 32 == 0) v = std::numeric_limits<float>::quiet_NaN();
    float least = -1, greatest = 2;
    for (const float v : x) {
      least = std::min(least, v);
      greatest = std::max(greatest, v);
    }
    float found[2] = {-1, 2};
    value_range(x.data(), n, found[0], found[1]);
    EXPECT_EQ(found[0], least);
    EXPECT_EQ(found[1], greatest);
    if (n > 4) {
      x[0] = INFINITY;
      x[2] = -INFINITY;
      x[3] = -3e38f;
    }
    const auto check = [&]<typename T>(T, float scale, int zero) {
      constexpr int kLeast = std::numeric_limits<T>::lowest(),
                    kMost = std::numeric_limits<T>::max();
      std::vector<T> y(x.size()), expected(x.size());
      quantize_row(x.data(), n, scale, zero, std::is_signed_v<T>,
                   reinterpret_cast<uint8_t*>(y.data()));
      for (size_t i = 0; i < x.size(); ++i) {
        const double q = static_cast<double>(x[i] / scale);
        expected[i] = static_cast<T>(
            q != q ? zero : std::clamp<double>(std::nearbyint(q) + zero, kLeast, kMost));
      }
      expect_bits(y, expected, "bytes", n);
    };
    for (const float scale : {1.0f, 0.1f, 3e38f, 1e-38f})
      for (const int zero : {0, 3, 127}) {
        check(int8_t{}, scale, zero);
        check(int8_t{}, scale, zero - 128);
        check(uint8_t{}, scale, zero);
        check(uint8_t{}, scale, zero + 128);
      }
  }
}

TEST_P(RowKernels, WideProducts) {
  for (const int64_t m : {1, 5, 13, 30})
    for (const int64_t n : {1, 9, 33})
      for (const int64_t k : {0, 1, 7, 300}) {
        const auto check = [&]<typename T>(T) {
          const auto a = numbers<T>(m * k, 0, 50), b = numbers<T>(k * n, 0, 50);
          const int64_t width = wide_panel<T>(), panels = (n + width - 1) / width;
          std::vector<T> packed(static_cast<size_t>(panels * width * k) + 64);
          std::vector<T> c(static_cast<size_t>(m * n)), expected(c.size());
          pack_wide(b.data(), n, 1, k, n, 0, panels, packed.data());
          multiply_wide(WideProduct<T>{a.data(), k, packed.data(), c.data(), n, n, k}, 0, m, 0,
                        panels);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t p = 0; p < k; ++p)
                expected[static_cast<size_t>(i * n + j)] +=
                    a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
          expect_bits(c, expected, "product", k);
        };
        check(double{});
        check(uint32_t{});
        check(uint64_t{});
      }
}

TEST_P(RowKernels, Transforms) {
  std::normal_distribution<double> normal;
  for (const int64_t n :
       {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 17, 30, 49, 64, 97, 121, 143, 200, 512, 768})
    for (const int64_t signals : {1, 3, 8, 9}) {
      const FftPlan plan(n);
      const auto size = static_cast<size_t>(n * signals);
      std::vector<double> re(size), im(size), work(plan.work_doubles(signals));
      for (auto* v : {&re, &im})
        for (double& x : *v) x = normal(engine_);
      const auto re0 = re, im0 = im;
      double *to_re = re.data(), *to_im = im.data();
      plan.run(to_re, to_im, work.data(), signals);
      double worst = 0;
      for (int64_t s = 0; s < signals; ++s)
        for (int64_t k = 0; k < n; ++k) {
          std::complex<double> sum = 0;
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(i * signals + s);
            const double angle =
                -6.283185307179586 * static_cast<double>(i * k % n) / static_cast<double>(n);
            sum += std::complex<double>(re0[at], im0[at]) * std::polar(1.0, angle);
          }
          const auto at = static_cast<size_t>(k * signals + s);
          worst = std::fmax(worst, std::abs(sum - std::complex<double>(to_re[at], to_im[at])));
        }
      EXPECT_LT(worst, 1e-12 * static_cast<double>(n + 8)) << n << " by " << signals;
    }
}

TEST_P(RowKernels, Pools) {
  for (const int64_t n : kSizes)
    for (const int64_t taps : {1, 2, 3, 5})
      for (const int64_t stride : {1, 2, 3})
        for (const int64_t dilation : {1, 2}) {
          const int64_t line = n * stride + taps * dilation + 192;
          const auto x = numbers<float>(2 * line, -9, 9);
          for (const PoolFold fold : {PoolFold::kMax, PoolFold::kSum}) {
            std::vector<float> y(static_cast<size_t>(2 * n)), expected(y.size());
            pool_neighbours(fold, x.data(), PoolLines{2, line, taps, stride, dilation, n, false},
                            y.data());
            for (int64_t i = 0; i < 2 * n; ++i) {
              const int64_t first = i / n * line + i % n * stride;
              float sum = x[static_cast<size_t>(first)];
              for (int64_t k = 1; k < taps; ++k) {
                const float v = x[static_cast<size_t>(first + k * dilation)];
                sum = fold == PoolFold::kMax ? std::fmax(sum, v) : sum + v;
              }
              expected[static_cast<size_t>(i)] = sum;
            }
            expect_bits(y, expected, "neighbours", n);
          }
        }
}

TEST_P(RowKernels, RowsOfPools) {
  for (const int64_t width : kSizes)
    for (const int64_t taps : {1, 3})
      for (const int64_t pad : {0, 2})
        for (const int64_t dilation : {1, 2}) {
          constexpr int64_t kDepth = 3, kHeight = 7, kRows = 6;
          auto x = numbers<float>(kDepth * kHeight * width, -9, 9);
          for (const bool numbers_only : {true, false})
            for (const PoolFold fold : {PoolFold::kMax, PoolFold::kSum, PoolFold::kSumSquare}) {
              if (!numbers_only) x[x.size() / 2] = NAN;
              EXPECT_EQ(any_nan(x.data(), static_cast<int64_t>(x.size())), !numbers_only);
              const PoolWindows windows{2, -1,       2,   kDepth,  kRows, taps,
                                        1, dilation, pad, kHeight, width, width};
              std::vector<float> y(static_cast<size_t>(kRows * width), 7.0f);
              pool_rows(fold, x.data(), windows, -1.0f, numbers_only, y.data());
              for (int64_t r = 0; r < kRows; ++r)
                for (int64_t i = 0; i < width; ++i) {
                  float sum = 0;
                  int64_t count = 0;
                  for (int64_t k = 0; k < taps; ++k) {
                    const int64_t row = r - pad + k * dilation;
                    if (row < 0 || row >= kHeight) continue;
                    // Of depths -1 and 1, only the second is there.
                    const float v = x[static_cast<size_t>((kHeight + row) * width + i)];
                    if (fold == PoolFold::kMax)
                      sum = count == 0 || v != v || (sum == sum && v > sum) ? v : sum;
                    else
                      sum += fold == PoolFold::kSum ? v : v * v;
                    ++count;
                  }
                  const float result = y[static_cast<size_t>(r * width + i)];
                  if (count == 0) sum = -1;
                  EXPECT_TRUE(result == sum || (result != result && sum != sum))
                      << width << " " << taps << " " << r << " " << i;
                }
            }
        }
}

TEST_P(RowKernels, Lookups) {
  for (const int64_t n : kSizes) {
    const auto index = numbers<int64_t>(n, -20, 19);
    std::vector<int32_t> y(static_cast<size_t>(n));
    for (const int64_t step : {0, 1}) {
      ASSERT_TRUE(place_offsets(index.data(), n, 20, step, 25, y.data()));
      for (int64_t i = 0; i < n; ++i) {
        const int64_t given = index[static_cast<size_t>(i)];
        EXPECT_EQ(y[static_cast<size_t>(i)], i * step + (given < 0 ? given + 20 : given) * 25);
      }
    }
    auto outside = index;
    for (int64_t& place : outside) place = place < 0 ? place + 20 : place;
    EXPECT_TRUE(all_places_inside(outside.data(), n, 20));
    for (const int64_t wrong : {int64_t{20}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
      outside[static_cast<size_t>(n / 2)] = wrong;
      EXPECT_FALSE(all_places_inside(outside.data(), n, 20));
    }
    outside = index;
    outside.back() = 20;
    EXPECT_FALSE(place_offsets(outside.data(), n, 20, 0, 25, y.data()));
    outside.back() = -21;
    EXPECT_FALSE(place_offsets(outside.data(), n, 20, 0, 25, y.data()));

    auto x = numbers<float>(n, -9, 9);
    x[0] = NAN;
    std::vector<int32_t> places(static_cast<size_t>(n) + 64);
    for (const bool greater : {false, true})
      for (const bool inclusive : {false, true}) {
        int64_t expected = 0;
        const int64_t found = places_beyond(x.data(), n, 2, inclusive, greater, places.data());
        for (int64_t i = 0; i < n; ++i) {
          const float v = x[static_cast<size_t>(i)];
          if ((greater ? v <= 2 : v >= 2) && !(inclusive && v == 2)) continue;
          ASSERT_LT(expected, found);
          EXPECT_EQ(places[static_cast<size_t>(expected++)], i);
        }
        EXPECT_EQ(expected, found);
        for (const int64_t k : {1, 5, 24}) {
          const float bound = bound_of_best(x.data(), n, k, greater);
          int64_t reach = 0;
          for (const float v : x) reach += greater ? v >= bound : v <= bound;
          EXPECT_TRUE(reach >= k || std::isinf(bound)) << n << ' ' << k;
        }
      }
  }
}

TEST_P(RowKernels, SumsInDouble) {
  for (const int64_t n : kSizes) {
    const auto x = numbers<float>(n, -9, 9);
    double sum = 0, squares = 0, sizes = 0;
    for (const float v : x) {
      const double moved = static_cast<double>(v) - 0.5;
      sum += moved;
      squares += moved * moved;
      sizes += std::fabs(moved);
    }
    EXPECT_EQ(row_sum_f64(Power::kValue, x.data(), n, 0.5), sum) << n;
    EXPECT_EQ(row_sum_f64(Power::kSquare, x.data(), n, 0.5), squares) << n;
    EXPECT_EQ(row_sum_f64(Power::kMagnitude, x.data(), n, 0.5), sizes) << n;
  }
}

TEST_P(RowKernels, Rotations) {
  for (const int64_t half : {1, 3, 8, 16, 17, 40})
    for (const bool interleaved : {false, true}) {
      const int64_t size = 2 * half + 3;
      const auto x = numbers<float>(size, -9, 9), c = numbers<float>(half, -3, 3),
                 s = numbers<float>(half, -3, 3);
      std::vector<float> y(x.size()), expected = x;
      rotate_row(x.data(), y.data(), size, half, c.data(), s.data(), interleaved);
      for (int64_t i = 0; i < half; ++i) {
        const auto p = static_cast<size_t>(interleaved ? 2 * i : i),
                   q = static_cast<size_t>(interleaved ? 2 * i + 1 : half + i),
                   k = static_cast<size_t>(i);
        expected[p] = x[p] * c[k] - x[q] * s[k];
        expected[q] = x[p] * s[k] + x[q] * c[k];
      }
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], expected[i]) << half;
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, RowKernels,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
