// The fast kernels against plain loops in double, at every instruction set of this machine.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "each_isa.h"
#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/integer_pow.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_small.h"
#include "runtime/kernels/quant/qgemm_sorted.h"
#include "runtime/kernels/reduce/rows.h"

namespace tombolo {
namespace {

class Kernels : public EachIsa {
 protected:
  std::vector<float> normal(size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = distribution_(engine_);
    return v;
  }
  std::vector<uint8_t> bytes(size_t n) {
    std::vector<uint8_t> v(n);
    for (uint8_t& x : v) x = static_cast<uint8_t>(engine_());
    return v;
  }

 private:
  std::mt19937 engine_{1};
  std::normal_distribution<float> distribution_;
};

TEST_P(Kernels, SmallProducts) {
  for (const int64_t m : {1, 2, 4, 5, 8, 11, 30})
    for (const int64_t n : {1, 3, 8, 17, 32, 50})
      for (const int64_t k : {1, 3, 8, 20, 70}) {
        const auto a = normal(static_cast<size_t>(m * k)), b = normal(static_cast<size_t>(k * n));
        const auto columns = normal(static_cast<size_t>(n)), rows = normal(static_cast<size_t>(m));
        const auto rest = normal(static_cast<size_t>(m * n));
        std::vector<float> turned(b.size());
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < n; ++j)
            turned[static_cast<size_t>(j * k + i)] = b[static_cast<size_t>(i * n + j)];
        const GemmEpilogue epilogues[] = {
            {},
            {.row_bias = rows.data(), .col_bias = columns.data()},
            {.init = rest.data(), .ldi = n, .clamp = true, .lo = -1, .hi = 2}};
        for (const GemmEpilogue& e : epilogues) {
          const auto check = [&](const std::vector<float>& c, const char* way) {
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (int64_t q = 0; q < k; ++q)
                  sum += static_cast<double>(a[static_cast<size_t>(i * k + q)]) *
                         static_cast<double>(b[static_cast<size_t>(q * n + j)]);
                sum *= 0.5;
                if (e.row_bias != nullptr)
                  sum += static_cast<double>(e.row_bias[i] + e.col_bias[j]);
                if (e.init != nullptr) sum += static_cast<double>(e.init[i * n + j]);
                if (e.clamp) sum = std::fmin(std::fmax(sum, -1), 2);
                EXPECT_NEAR(static_cast<double>(c[static_cast<size_t>(i * n + j)]), sum, 2e-5)
                    << way << " " << m << " x " << n << " x " << k << " at " << i << ", " << j;
              }
          };
          std::vector<float> c(static_cast<size_t>(m * n));
          if (gemm_small_fits(m, n, k, e))
            for (const bool trans : {false, true}) {
              gemm_small(m, n, k, a.data(), k, trans ? turned.data() : b.data(), trans ? k : n,
                         trans, 0.5f, c.data(), n, e);
              check(c, trans ? "turned" : "small");
            }
          if (gemm_dots_fits(m, e)) {
            gemm_dots(m, n, k, a.data(), k, turned.data(), k, 0.5f, c.data(), n, e);
            check(c, "dots");
          }
        }
      }
}

TEST_P(Kernels, LimitsOfSmallProductsKeepWhatIsNoNumber) {
  const float a[] = {1, std::numeric_limits<float>::quiet_NaN(), 1}, b[] = {1, 1, 1, 2, 2, 2};
  const GemmEpilogue limits{.clamp = true, .lo = 0, .hi = 6};
  for (const int way : {0, 1, 2}) {
    float c[2] = {};
    if (way < 2 && gemm_small_fits(1, 2, 3, limits))
      gemm_small(1, 2, 3, a, 3, b, way == 1 ? 3 : 2, way == 1, 1, c, 2, limits);
    else if (way == 2 && gemm_dots_fits(1, limits))
      gemm_dots(1, 2, 3, a, 3, b, 3, 1, c, 2, limits);
    else
      continue;
    EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1])) << way;
  }
}

TEST_P(Kernels, ProductsOfOddSizes) {
  double worst = 0;
  for (const int64_t m : {1, 2, 3, 4, 6, 8, 14, 29, 70})
    for (const int64_t n : {1, 16, 31, 33, 165})
      for (const int64_t k : {0, 1, 3, 9, 257, 1100}) {
        const auto a = normal(static_cast<size_t>(m * k)), b = normal(static_cast<size_t>(k * n));
        const auto bias = normal(static_cast<size_t>(n)), rest = normal(static_cast<size_t>(m * n));
        std::vector<float> packed(static_cast<size_t>(packed_b_floats(k, n)) + 16);
        std::vector<float> c[2] = {std::vector<float>(static_cast<size_t>(m * n)),
                                   std::vector<float>(static_cast<size_t>(m * n))};
        pack_b(b.data(), n, 1, k, n, 1, packed.data());
        // The same from B turned.
        std::vector<float> turned(b.size()), again(packed.size());
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < n; ++j)
            turned[static_cast<size_t>(j * k + i)] = b[static_cast<size_t>(i * n + j)];
        pack_b(turned.data(), 1, k, k, n, 1, again.data());
        EXPECT_EQ(packed, again);
        const GemmEpilogue epilogue{.col_bias = bias.data(),
                                    .init = rest.data(),
                                    .ldi = n,
                                    .clamp = true,
                                    .lo = -3,
                                    .hi = 20};
        gemm(m, n, k, a.data(), k, packed.data(), c[0].data(), n, epilogue);
        gemm_unpacked(m, n, k, a.data(), k, b.data(), n, c[1].data(), n, epilogue);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = static_cast<double>(bias[static_cast<size_t>(j)]) +
                         static_cast<double>(rest[static_cast<size_t>(i * n + j)]);
            for (int64_t q = 0; q < k; ++q)
              sum += static_cast<double>(a[static_cast<size_t>(i * k + q)]) *
                     static_cast<double>(b[static_cast<size_t>(q * n + j)]);
            sum = std::fmin(std::fmax(sum, -3), 20);
            for (const auto& result : c)
              worst = std::fmax(
                  worst,
                  std::fabs(sum - static_cast<double>(result[static_cast<size_t>(i * n + j)])));
          }
      }
  EXPECT_LT(worst, 1e-4);
}

TEST_P(Kernels, EqualColumnsGiveEqualBits) {
  const int64_t k = 1300, n = 330;
  for (const int64_t m : {1, 2, 3, 6, 7, 30}) {
    const auto a = normal(static_cast<size_t>(m * k)), column = normal(static_cast<size_t>(k));
    std::vector<float> b, c[2], packed(static_cast<size_t>(packed_b_floats(k, n)) + 16);
    for (const float x : column) b.insert(b.end(), static_cast<size_t>(n), x);
    for (auto& result : c) result.resize(static_cast<size_t>(m * n));
    pack_b(b.data(), n, 1, k, n, 1, packed.data());
    gemm(m, n, k, a.data(), k, packed.data(), c[0].data(), n, {});
    gemm_unpacked(m, n, k, a.data(), k, b.data(), n, c[1].data(), n, {});
    for (const auto& result : c)
      for (int64_t i = 0; i < m * n; ++i)
        ASSERT_EQ(result[static_cast<size_t>(i)], result[static_cast<size_t>(i / n * n)])
            << m << " rows, element " << i;
  }
}

TEST_P(Kernels, LongSumsAreSummedInParts) {
  const int64_t k = 3072, n = 96;
  const auto b = normal(static_cast<size_t>(k * n));
  std::vector<float> packed(static_cast<size_t>(packed_b_floats(k, n)) + 16);
  pack_b(b.data(), n, 1, k, n, 1, packed.data());
  for (const int64_t m : {1, 4, 40}) {
    const auto a = normal(static_cast<size_t>(m * k));
    std::vector<float> c(static_cast<size_t>(m * n));
    gemm(m, n, k, a.data(), k, packed.data(), c.data(), n, {});
    double squares = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = -static_cast<double>(c[static_cast<size_t>(i * n + j)]);
        for (int64_t q = 0; q < k; ++q)
          sum += static_cast<double>(a[static_cast<size_t>(i * k + q)]) *
                 static_cast<double>(b[static_cast<size_t>(q * n + j)]);
        squares += sum * sum;
      }
    // In one piece it would be 3 to 5e-5.
    EXPECT_LT(std::sqrt(squares / static_cast<double>(m * n)), 2e-5) << m << " rows";
  }
}

struct ConvCase {
  int64_t batch, groups, in, out, image[3], kernel[3], stride[3], dilation[3], pad[3];
};

double conv_error(const ConvGeometry& s, const std::vector<float>& x, const std::vector<float>& w,
                  const std::vector<float>& bias, const std::vector<float>& rest,
                  const std::vector<float>& y) {
  double worst = 0;
  const auto at = [](const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  int64_t index = 0;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.groups * s.out_channels; ++o)
      for (int64_t pixel = 0; pixel < s.out_plane(); ++pixel, ++index) {
        const int64_t out[3] = {pixel / (s.out[1] * s.out[2]), pixel / s.out[2] % s.out[1],
                                pixel % s.out[2]};
        double sum = at(bias, o) + at(rest, index);
        for (int64_t c = 0; c < s.in_channels; ++c)
          for (int64_t tap = 0; tap < s.taps(); ++tap) {
            const int64_t k[3] = {tap / (s.kernel[1] * s.kernel[2]),
                                  tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
            int64_t offset = 0;
            bool inside = true;
            for (int axis = 0; axis < 3; ++axis) {
              const int64_t p =
                  out[axis] * s.stride[axis] - s.pad[axis] + k[axis] * s.dilation[axis];
              inside = inside && p >= 0 && p < s.in[axis];
              offset = offset * s.in[axis] + p;
            }
            if (!inside) continue;
            const int64_t channel = (n * s.groups + o / s.out_channels) * s.in_channels + c;
            sum += at(x, channel * s.in_plane() + offset) *
                   at(w, (o * s.in_channels + c) * s.taps() + tap);
          }
        sum = std::fmin(std::fmax(sum, -1), 6);
        worst = std::fmax(worst, std::fabs(sum - at(y, index)));
      }
  return worst;
}

TEST_P(Kernels, Convolutions) {
  const ConvCase cases[] = {
      {2, 1, 70, 80, {1, 9, 9}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
      {1, 1, 70, 66, {1, 14, 13}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}},
      {1, 1, 3, 20, {1, 17, 18}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {2, 2, 17, 19, {1, 23, 24}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {1, 1, 40, 65, {1, 14, 17}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {1, 1, 3, 9, {1, 23, 23}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}},
      {1, 1, 4, 4, {1, 21, 21}, {1, 3, 3}, {1, 3, 3}, {1, 2, 2}, {0, 2, 2}},
      {1, 1, 4, 5, {5, 6, 7}, {3, 2, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}},
      {1, 1, 8, 5, {1, 1, 40}, {1, 1, 5}, {1, 1, 2}, {1, 1, 2}, {0, 0, 4}},
      {2, 6, 1, 2, {1, 14, 9}, {1, 5, 5}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}},
      {1, 6, 1, 1, {5, 5, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {1, 4, 8, 8, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {1, 1, 600, 90, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
      {1, 1, 128, 160, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {1, 1, 16, 16, {1, 70, 90}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
      {6, 1, 40, 70, {1, 1, 100}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}},
      {2, 1, 300, 100, {1, 1, 100}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
      {2, 1, 20, 40, {1, 1, 133}, {1, 1, 3}, {1, 1, 1}, {1, 1, 4}, {0, 0, 4}},
      {3, 1, 20, 40, {1, 1, 133}, {1, 1, 3}, {1, 1, 1}, {1, 1, 4}, {0, 0, 4}},
  };
  for (const ConvCase& c : cases) {
    ConvGeometry s;
    s.batch = c.batch;
    s.groups = c.groups;
    s.in_channels = c.in;
    s.out_channels = c.out;
    for (int i = 0; i < 3; ++i) {
      s.in[i] = c.image[i];
      s.kernel[i] = c.kernel[i];
      s.stride[i] = c.stride[i];
      s.dilation[i] = c.dilation[i];
      s.pad[i] = c.pad[i];
      s.out[i] = (s.in[i] + 2 * s.pad[i] - s.extent(i)) / s.stride[i] + 1;
    }
    const ConvPlan plan = plan_convolution(s);
    const auto outputs = static_cast<size_t>(s.groups * s.out_channels);
    const auto x = normal(static_cast<size_t>(s.batch * s.groups * s.in_channels * s.in_plane()));
    auto w = normal(outputs * static_cast<size_t>(s.depth()));
    for (float& v : w) v /= std::sqrt(static_cast<float>(s.depth()));
    const auto bias = normal(outputs);
    std::vector<float> y(static_cast<size_t>(s.batch * s.out_plane()) * outputs);
    const auto rest = normal(y.size());
    std::vector<float> packed(plan.weight_floats + 64), scratch(plan.scratch_floats + 64);
    pack_convolution(plan, w.data(), packed.data());
    run_convolution(plan, x.data(), packed.data(), y.data(),
                    {bias.data(), rest.data(), {Activation::Kind::kClamp, -1, 6}}, scratch.data());
    EXPECT_LT(conv_error(s, x, w, bias, rest, y), 4e-5)
        << name_of(plan.algorithm) << " " << c.in << " -> " << c.out << " at " << c.image[2];
  }
}

struct ExactFunction {
  Unary op;
  double (*exact)(double);
  float low, high;
  double ulps;
  float a = 0, b = 0;
};

TEST_P(Kernels, FunctionsWithinTheirBounds) {
  const ExactFunction functions[] = {
      {Unary::kExp, [](double x) { return std::exp(x); }, -85, 88, 1.5},
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 3},
      {Unary::kTanh, [](double x) { return std::tanh(x); }, -12, 12, 6},
      {Unary::kErf, [](double x) { return std::erf(x); }, -6, 6, 2},
      {Unary::kSwish, [](double x) { return x / (1 + std::exp(-x)); }, -85, 89, 3, 1},
      {Unary::kGeluTanh,
       [](double x) {
         return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
       },
       -4, 10, 24},
      {Unary::kGelu, [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }, -4, 10, 24},
      {Unary::kGelu, [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }, -6, 1,
       GetParam() == Isa::kAvx512 ? 4 : 60.0},
      {Unary::kSoftplus,
       [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, -50, 50, 4},
      {Unary::kMish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -85, 85, 6},
      {Unary::kElu, [](double x) { return x < 0 ? std::expm1(x) : x; }, -20, 20, 4, 1},
      {Unary::kSelu,
       [](double x) {
         return 1.0507010221481323 * (x < 0 ? 1.6732631921768188 * std::expm1(x) : x);
       },
       -20, 20, 4, 1.67326319217681884765625f, 1.05070102214813232421875f},
      {Unary::kCelu, [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }, -20, 20, 4, 2},
      {Unary::kLog, [](double x) { return std::log(x); }, 1e-37f, 1e4f, 4},
      {Unary::kSin, [](double x) { return std::sin(x); }, -50000, 50000, 3},
      {Unary::kCos, [](double x) { return std::cos(x); }, -10, 10, 3},
      {Unary::kTan, [](double x) { return std::tan(x); }, -20, 20, 1},
      {Unary::kAtan, [](double x) { return std::atan(x); }, -10, 10, 3},
      {Unary::kAsinh, [](double x) { return std::asinh(x); }, -100, 100, 3},
      {Unary::kAcosh, [](double x) { return std::acosh(x); }, 1, 100, 3},
      {Unary::kAtanh, [](double x) { return std::atanh(x); }, -1, 1, 3},
      {Unary::kAsin, [](double x) { return std::asin(x); }, -1, 1, 3},
      {Unary::kAcos, [](double x) { return std::acos(x); }, -1, 1, 3},
      {Unary::kSinh, [](double x) { return std::sinh(x); }, -80, 80, 4},
      {Unary::kCosh, [](double x) { return std::cosh(x); }, -80, 80, 3},
  };
  constexpr int64_t kCount = 30011;
  for (const bool divides : {false, true}) {
    const Divisions divisions(divides);
    for (const ExactFunction& f : functions) {
      std::vector<float> x(kCount), y(kCount);
      for (int64_t i = 0; i < kCount; ++i)
        x[static_cast<size_t>(i)] =
            f.low + (f.high - f.low) * (static_cast<float>(i) / static_cast<float>(kCount - 1));
      unary_fn(f.op)(x.data(), y.data(), kCount, f.a, f.b);
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double exact = f.exact(static_cast<double>(x[i]));
        const float rounded = std::fabs(static_cast<float>(exact));
        if (std::isinf(rounded)) continue;
        const double ulp = static_cast<double>(std::nextafter(rounded, 1e38f) - rounded);
        const double error = std::fabs(static_cast<double>(y[i]) - exact) / ulp;
        if (!(error <= worst)) {
          worst = error;
          where = x[i];
        }
      }
      EXPECT_LT(worst, f.ulps) << "function " << static_cast<int>(f.op) << " at " << where;
    }
  }
}

// Subnormal numbers take some processors a hundred times as long, in what comes next too.
TEST_P(Kernels, ActivationsGiveNoSubnormalNumbers) {
  const struct {
    Unary op;
    double (*exact)(double);
    float a = 0;
  } functions[] = {
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Unary::kSwish, [](double x) { return x / (1 + std::exp(-x)); }, 1},
      {Unary::kGelu, [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }},
      {Unary::kGeluTanh,
       [](double x) {
         return x / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
       }},
      {Unary::kSoftplus, [](double x) { return std::log1p(std::exp(x)); }},
      {Unary::kMish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
  };
  std::vector<float> x;
  for (float v = -120; v < 0; v += 0.01f) x.push_back(v);
  for (const float v : {-1e3f, -1e6f, -1e30f}) x.push_back(v);
  std::vector<float> y(x.size());
  const auto count = static_cast<int64_t>(x.size());
  for (const auto& f : functions) {
    unary_fn(f.op)(x.data(), y.data(), count, f.a, 0);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NE(std::fpclassify(y[i]), FP_SUBNORMAL) << static_cast<int>(f.op) << " of " << x[i];
      const double exact = f.exact(static_cast<double>(x[i]));
      EXPECT_NEAR(static_cast<double>(y[i]), exact, 2e-5 * std::fabs(exact) + 2e-36)
          << static_cast<int>(f.op) << " of " << x[i];
    }
  }
  // Exp has them: to half of the last place, and next to numbers that are none.
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  x.insert(x.end(), {-HUGE_VALF, -90, 1, -88, -1e30f});
  y.resize(x.size());
  unary_fn(Unary::kExp)(x.data(), y.data(), static_cast<int64_t>(x.size()), 0, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (std::isnan(exact))
      EXPECT_TRUE(std::isnan(y[i]));
    else
      EXPECT_NEAR(static_cast<double>(y[i]), exact, 1.5e-7 * exact + 0.75e-45) << x[i];
  }
}

TEST_P(Kernels, ExpAndLogOfDoublesWithinTheirBounds) {
  const struct {
    UnaryTyped op;
    long double (*exact)(long double);
    double low, high, ulps;
  } functions[] = {
      {UnaryTyped::kExp, [](long double x) { return std::exp(x); }, -740, 709, 1},
      {UnaryTyped::kLog, [](long double x) { return std::log(x); }, 1e-300, 3, 4},
      {UnaryTyped::kLog, [](long double x) { return std::log(x); }, 1e-3, 1e300, 4},
  };
  constexpr int64_t kCount = 30011;
  for (const auto& f : functions) {
    std::vector<double> x(kCount), y(kCount);
    for (int64_t i = 0; i < kCount; ++i)
      x[static_cast<size_t>(i)] =
          f.low + (f.high - f.low) * (static_cast<double>(i) / static_cast<double>(kCount - 1));
    UnaryTypedFn* fn = unary_typed_fn(f.op, DType::kFloat64);
    ASSERT_NE(fn, nullptr);
    fn(x.data(), y.data(), kCount, 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = f.exact(static_cast<long double>(x[i]));
      const double rounded = std::fabs(static_cast<double>(exact));
      const long double ulp = static_cast<long double>(std::nextafter(rounded, 1e308)) -
                              static_cast<long double>(rounded);
      ASSERT_LE(std::fabs(static_cast<long double>(y[i]) - exact),
                static_cast<long double>(f.ulps) * ulp)
          << "function " << static_cast<int>(f.op) << " at " << x[i];
    }
  }
}

TEST_P(Kernels, PowersOfAllSigns) {
  const float bases[] = {0.0f,  -0.0f,  1.0f,    -1.0f,     2.5f,     -2.5f, 0.3f, -0.3f, 1e20f,
                         -7.0f, 1e-40f, 3.4e38f, -INFINITY, INFINITY, NAN,   5.0f, -8.0f};
  const float powers[] = {0.0f, 1.0f, 2.0f, 3.0f, -1.0f, -3.0f, 0.5f,     3.5f, -0.5f,
                          7.5f, 8.0f, 9.0f, 0.3f, -2.7f, 1e10f, INFINITY, NAN,  -1.5f};
  BinaryFn* fn = binary_fn(Binary::kPow, DType::kFloat32);
  constexpr auto kCount = static_cast<int64_t>(std::size(bases));
  for (const float power : powers)
    for (const bool repeats : {false, true}) {
      const std::vector<float> all(std::size(bases), power);
      float y[kCount];
      fn(bases, false, all.data(), repeats, y, kCount);
      for (int64_t i = 0; i < kCount; ++i) {
        const float exact =
            static_cast<float>(std::pow(static_cast<double>(bases[i]), static_cast<double>(power)));
        if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(y[i])) << bases[i] << " to " << power;
        } else if (std::isinf(exact) || exact == 0) {
          EXPECT_EQ(y[i], exact) << bases[i] << " to " << power;
          EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << bases[i] << " to " << power;
        } else {
          EXPECT_LE(std::fabs(y[i] / exact - 1), 2e-7f) << bases[i] << " to " << power;
        }
      }
    }
}

TEST_P(Kernels, FunctionsHaveNoValueBeyondTheirInterval) {
  const float x[] = {1.5f, -1.5f, 0.5f, NAN, -INFINITY, 1.0f};
  float y[6];
  for (const Unary op : {Unary::kAsin, Unary::kAcos, Unary::kAtanh}) {
    unary_fn(op)(x, y, 6, 0, 0);
    for (const int i : {0, 1, 3, 4}) EXPECT_TRUE(std::isnan(y[i])) << static_cast<int>(op);
    EXPECT_FALSE(std::isnan(y[2]));
  }
  EXPECT_EQ(y[5], INFINITY);  // atanh(1)
  unary_fn(Unary::kAcosh)(x, y, 6, 0, 0);
  for (const int i : {1, 2, 3, 4}) EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(y[5], 0);
}

TEST_P(Kernels, FunctionsKeepInfinitiesAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, infinity, -infinity, std::nanf(""), 1e-40f};
  float y[6];
  const auto of = [&](Unary op) { unary_fn(op)(x, y, 6, 1, 1); };
  of(Unary::kExp);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[2], infinity);
  EXPECT_EQ(y[3], 0);
  EXPECT_TRUE(std::isnan(y[4]));
  of(Unary::kLog);
  EXPECT_EQ(y[0], -infinity);
  EXPECT_EQ(y[2], infinity);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_TRUE(std::isnan(y[4]));
  for (const Unary op : {Unary::kTanh, Unary::kErf}) {
    of(op);
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(y[3], -1);
    EXPECT_TRUE(std::isnan(y[4]));
  }
  // Far out: nothing is left of a negative number, all of a positive one.
  for (const Unary op : {Unary::kSwish, Unary::kGelu, Unary::kGeluTanh, Unary::kMish}) {
    for (const float far : {110.0f, 1e4f, 1e20f, 3e38f}) {
      const float ends[] = {far, -far};
      unary_fn(op)(ends, y, 2, 1, 0);
      EXPECT_EQ(y[0], far) << static_cast<int>(op);
      EXPECT_EQ(y[1], 0) << static_cast<int>(op) << " of " << -far;
    }
  }
  for (const Unary op : {Unary::kRelu, Unary::kClip, Unary::kSigmoid, Unary::kSoftplus,
                         Unary::kGelu, Unary::kElu, Unary::kMish, Unary::kSin, Unary::kAtan}) {
    of(op);
    EXPECT_TRUE(std::isnan(y[4])) << static_cast<int>(op);
  }
}

TEST_P(Kernels, CastsToAndFromLongIntegers) {
  constexpr auto kLeast = std::numeric_limits<int64_t>::min();
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  std::vector<float> x = {0.0f, -0.0f, 0.99f, -0.99f, -1.5f, NAN, INFINITY, -INFINITY, 1e-40f};
  for (int power = 0; power < 70; ++power)
    for (const float factor : {1.0f, -1.0f, 1.2345671f, -1.9999999f})
      x.push_back(std::ldexp(factor, power));
  for (int i = 0; i < 67; ++i) x.push_back(static_cast<float>(i) * -1234.56f);
  std::vector<int64_t> whole(x.size()), expected;
  convert_fn(DType::kFloat32, DType::kInt64)(x.data(), whole.data(),
                                             static_cast<int64_t>(x.size()));
  for (const float v : x)
    expected.push_back(std::isnan(v)  ? 0
                       : v >= 0x1p63f ? kMost
                       : v < -0x1p63f ? kLeast
                                      : static_cast<int64_t>(v));
  EXPECT_EQ(whole, expected);

  std::vector<int64_t> from = {kLeast, kMost, 0x7FFFFFFF, 0x80000000, -0x80000000LL, -0x80000001LL};
  for (int power = 0; power < 63; ++power)
    for (const int64_t more : {-1, 0, 1}) from.push_back((int64_t{1} << power) + more);
  for (int64_t i = 0; i < 67; ++i) from.push_back(i * -12345678);
  std::vector<float> to(from.size()), nearest;
  convert_fn(DType::kInt64, DType::kFloat32)(from.data(), to.data(),
                                             static_cast<int64_t>(from.size()));
  for (const int64_t v : from) nearest.push_back(static_cast<float>(v));
  EXPECT_EQ(to, nearest);

  for (const int64_t exponent : {0, 1, 2, 3, 6, 7, 64}) {
    std::vector<uint64_t> base(from.begin(), from.end()), power(base.size());
    power_u64(base.data(), power.data(), static_cast<int64_t>(base.size()), exponent);
    for (size_t i = 0; i < base.size(); ++i) {
      uint64_t product = 1;
      for (int64_t j = 0; j < exponent; ++j) product *= base[i];
      EXPECT_EQ(power[i], product) << base[i] << " to " << exponent;
    }
  }
}

TEST_P(Kernels, RowsOfAnyLength) {
  for (const int64_t n : {1, 3, 15, 16, 17, 31, 64, 100, 1000}) {
    const auto x = normal(static_cast<size_t>(n));
    std::vector<float> y(x.size());
    double sum = 0, squares = 0, total = 0;
    float most = x[0];
    for (float v : x) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
      most = std::max(most, v);
    }
    for (float v : x) total += std::exp(static_cast<double>(v - most));
    EXPECT_NEAR(static_cast<double>(fold_row(Fold::kSum, x.data(), n)), sum, 1e-4);
    EXPECT_NEAR(static_cast<double>(fold_row(Fold::kSumSquare, x.data(), n)), squares,
                1e-6 * squares);
    EXPECT_EQ(fold_row(Fold::kMax, x.data(), n), most);
    // Rows alone, several together, and in place: each gives the same.
    constexpr int64_t kRows = 6;
    std::vector<float> many, out(x.size() * kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (const float v : x) many.push_back(v * (1 - 0.125f * static_cast<float>(r)));
    for (const bool logarithm : {false, true}) {
      softmax_rows(x.data(), y.data(), 1, n, logarithm);
      for (size_t i = 0; i < x.size(); ++i) {
        const double power = static_cast<double>(x[i] - most);
        EXPECT_NEAR(static_cast<double>(y[i]),
                    logarithm ? power - std::log(total) : std::exp(power) / total, 1e-6);
      }
      softmax_rows(many.data(), out.data(), kRows, n, logarithm);
      for (size_t i = 0; i < out.size(); ++i) {
        if (i % x.size() == 0) softmax_rows(many.data() + i, y.data(), 1, n, logarithm);
        EXPECT_NEAR(out[i], y[i % x.size()], 1e-6f) << i;
      }
      std::vector<float> in_place = many;
      softmax_rows(in_place.data(), in_place.data(), kRows, n, logarithm);
      EXPECT_EQ(in_place, out);
    }
    const double mean = sum / static_cast<double>(n);
    double variance = 0;
    for (float v : x) variance += std::pow(static_cast<double>(v) - mean, 2);
    const RowMoments moments = row_moments(x.data(), n, 1e-5f);
    EXPECT_NEAR(static_cast<double>(moments.mean), mean, 1e-6);
    EXPECT_NEAR(static_cast<double>(moments.inverse_deviation) *
                    std::sqrt(variance / static_cast<double>(n) + 1e-5),
                1, 1e-5);
  }
}

/// a[m][k] of unsigned bytes times b[k][n] of signed ones.
void expect_exact_product(const QTiles& tiles, int64_t m, int64_t n, int64_t k,
                          const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  std::vector<std::byte> rows(static_cast<size_t>(m * q_row_bytes(k, tiles)) + 64);
  std::vector<std::byte> panels(q_panel_bytes(k, n, tiles) + 64);
  std::vector<int32_t> sums(static_cast<size_t>(n) + 64), c(static_cast<size_t>(m * n));
  q_pack_rows(a.data(), k, m, k, false, false, rows.data(), tiles);
  q_pack_panels(b.data(), n, 1, k, n, false, true, panels.data(), sums.data(), tiles);
  for (int64_t j = 0; j < n; ++j) {
    int32_t sum = 0;
    for (int64_t q = 0; q < k; ++q) sum += static_cast<int8_t>(b[static_cast<size_t>(q * n + j)]);
    ASSERT_EQ(sums[static_cast<size_t>(j)], sum) << n << " " << k;
  }
  QFinish finish;
  finish.out = c.data();
  finish.ldo = n;
  qgemm(m, n, k, rows.data(), panels.data(), finish, tiles);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t q = 0; q < k; ++q)
        sum += a[static_cast<size_t>(i * k + q)] *
               static_cast<int8_t>(b[static_cast<size_t>(q * n + j)]);
      ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum) << m << " " << n << " " << k;
    }
}

template <typename Bytes>
void products_of_bytes_are_exact(const QTiles& tiles, Bytes&& bytes) {
  for (const int64_t m : {1, 3, 13, 30})
    for (const int64_t n : {1, 16, 17, 32, 42, 70})
      for (const int64_t k : {1, 3, 4, 7, 64, 301}) {
        const auto a = bytes(static_cast<size_t>(m * k)), b = bytes(static_cast<size_t>(k * n));
        expect_exact_product(tiles, m, n, k, a, b);
      }
}

// Tiles make bytes and floats of their sums themselves where they can: those that q_finish makes.
TEST_P(Kernels, ResultsOfTilesAreThoseOfSums) {
  const QTiles& tiles = q_tiles();
  constexpr int64_t k = 52, kMost = 48;
  const std::vector<int32_t> add(kMost, 77);
  std::vector<float> scales(kMost);
  for (size_t j = 0; j < scales.size(); ++j) scales[j] = 0.0004f + 0.00001f * static_cast<float>(j);
  for (int64_t m = 1; m <= 30; ++m)
    for (const int64_t n : {5, 15, 16, 24, 32, 33, 48}) {
      const auto a = bytes(static_cast<size_t>(m * k)), b = bytes(static_cast<size_t>(k * n)),
                 more = bytes(static_cast<size_t>(m * n));
      std::vector<std::byte> rows(static_cast<size_t>(m * q_row_bytes(k, tiles)) + 64),
          panels(q_panel_bytes(k, n, tiles) + 64);
      std::vector<int32_t> ignored(static_cast<size_t>(n) + 64);
      std::vector<int32_t> c(static_cast<size_t>(m * n) + 64);  // q_finish reads whole vectors
      q_pack_rows(a.data(), k, m, k, false, false, rows.data(), tiles);
      q_pack_panels(b.data(), n, 1, k, n, false, true, panels.data(), ignored.data(), tiles);
      QFinish finish;
      finish.out = c.data();
      finish.ldo = n;
      qgemm(m, n, k, rows.data(), panels.data(), finish, tiles);
      finish.column_add = add.data();
      finish.column_scale = scales.data();
      for (const auto kind : {QFinish::Kind::kFloat, QFinish::Kind::kByte})
        for (const bool rest : {false, true}) {
          finish.kind = kind;
          finish.zero_point = 120;
          finish.rest = rest && kind == QFinish::Kind::kByte
                            ? reinterpret_cast<const std::byte*>(more.data())
                            : nullptr;
          finish.rest_zero = 100, finish.zero_point2 = 90;
          finish.own = 0.7f, finish.other = 0.4f;
          std::vector<std::byte> want(static_cast<size_t>(4 * m * n)), got(want.size());
          finish.out = want.data();
          q_finish(finish, c.data(), n, 0, m, 0, n);
          finish.out = got.data();
          qgemm(m, n, k, rows.data(), panels.data(), finish, tiles);
          ASSERT_EQ(got, want) << m << " " << n << " " << rest;
        }
    }
}

TEST_P(Kernels, SumsOfRowsOfBytesAreExact) {
  for (const int64_t k : {1, 7, 15, 16, 63, 64, 65, 130, 300})
    for (const bool flip : {false, true})
      for (const bool is_signed : {false, true}) {
        constexpr int64_t kRows = 5;
        const auto x = bytes(static_cast<size_t>(kRows * k));
        std::vector<int32_t> sums(kRows);
        q_row_sums(x.data(), k, kRows, k, flip, is_signed, sums.data());
        for (int64_t i = 0; i < kRows; ++i) {
          int32_t sum = 0;
          for (int64_t q = 0; q < k; ++q) {
            const auto byte =
                static_cast<uint8_t>(x[static_cast<size_t>(i * k + q)] ^ (flip ? 0x80 : 0));
            sum += is_signed ? static_cast<int8_t>(byte) : byte;
          }
          ASSERT_EQ(sums[static_cast<size_t>(i)], sum) << k << flip << is_signed;
        }
      }
}

TEST_P(Kernels, ProductsOfBytesAreExact) {
  products_of_bytes_are_exact(q_tiles(), [&](size_t n) { return bytes(n); });
}

// Whatever the numbers: what would saturate is split.
TEST_P(Kernels, SplitProductsOfBytesAreExact) {
  if (GetParam() != Isa::kAvx2) GTEST_SKIP() << "only AVX2's tiles split";
  products_of_bytes_are_exact(make_byte_tiles(), [&](size_t n) { return bytes(n); });
}

/// Normal numbers, those beyond a byte at its ends.
std::vector<uint8_t> normal_bytes(size_t n, float middle, float deviation, bool is_signed) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> numbers(middle, deviation);
  std::vector<uint8_t> out(n);
  for (uint8_t& x : out)
    x = is_signed ? static_cast<uint8_t>(std::clamp(std::lround(numbers(random)), -128L, 127L))
                  : static_cast<uint8_t>(std::clamp(std::lround(numbers(random)), 0L, 255L));
  return out;
}

// Sums of 16 bits hold what the groups were sorted for, whatever the numbers within the cap.
TEST_P(Kernels, SortedProductsOfBytesAreExactAtTheirCaps) {
  if (GetParam() != Isa::kAvx2) GTEST_SKIP() << "only AVX2's tiles sort";
  const QTiles tiles = make_byte_tiles();
  constexpr int64_t kColumns = 48;
  for (const float deviation : {12.0f, 26.0f, 42.0f, 90.0f})
    for (const int64_t k : {44, 257, 640}) {
      const auto b = normal_bytes(static_cast<size_t>(k * kColumns), 0, deviation, true);
      for (const int cap : {255, 208, 160, 128})
        for (const int least : {0, 40}) {
          // Row i is the worst one for column i: what is above zero alone, and what is below.
          const auto most = static_cast<uint8_t>(std::min(255, least + cap));
          std::vector<uint8_t> a(static_cast<size_t>(2 * kColumns * k));
          for (int64_t i = 0; i < 2 * kColumns; ++i)
            for (int64_t q = 0; q < k; ++q) {
              const auto weight = static_cast<int8_t>(b[static_cast<size_t>(q * kColumns + i / 2)]);
              a[static_cast<size_t>(i * k + q)] =
                  (weight > 0) == (i % 2 == 0) ? most : static_cast<uint8_t>(least);
            }
          expect_exact_product(tiles, 2 * kColumns, kColumns, k, a, b);
          for (const int64_t rows : {1, 2})  // take panels in another way
            for (int64_t i = 0; i < 2 * kColumns; i += 7) {
              const auto from = a.begin() + i * k;
              expect_exact_product(tiles, rows, kColumns, k, {from, from + rows * k}, b);
            }
        }
    }
}

// Rows around a zero point, with some numbers far from it, are copied without what most of them
// have.
TEST_P(Kernels, SortedProductsOfBytesAreExactBeyondTheirCaps) {
  if (GetParam() != Isa::kAvx2) GTEST_SKIP() << "only AVX2's tiles sort";
  const QTiles tiles = make_byte_tiles();
  constexpr int64_t kColumns = 50;
  for (const int64_t m : {2, 37, 90})
    for (const int64_t k : {120, 768, 1001})
      for (const float deviation : {8.0f, 25.0f})
        for (const int64_t far : {0, 300, 40}) {
          auto a = normal_bytes(static_cast<size_t>(m * k), 128, deviation, false);
          for (size_t i = 0; far > 0 && i < a.size(); i += static_cast<size_t>(far))
            a[i] = i % 2 == 0 ? 0 : 255;
          const auto b = normal_bytes(static_cast<size_t>(k * kColumns), 0, 30, true);
          expect_exact_product(tiles, m, kColumns, k, a, b);
        }
}

// Stretches of k lie apart in a row: what is beside a group in a panel need not be there.
TEST_P(Kernels, SortedProductsOfStretchesAreExact) {
  if (GetParam() != Isa::kAvx2) GTEST_SKIP() << "only AVX2's tiles sort";
  const QTiles tiles = make_byte_tiles();
  constexpr int64_t kRows = 23, kStretches = 3, kGap = 100;
  for (const int64_t n : {8, 60})
    for (const int64_t run : {1, 12, 20, 64})
      for (const float deviation : {5.0f, 30.0f}) {
        const int64_t lda = kStretches * (run + kGap), k = kStretches * run;
        const auto a = normal_bytes(static_cast<size_t>(kRows * lda + 64), 100, deviation, false);
        const auto b = normal_bytes(static_cast<size_t>(k * n), 0, deviation, true);
        std::vector<std::byte> panels(q_stretch_bytes(kStretches, run, n, tiles) + 64);
        q_pack_stretches(b.data(), n, 1, kStretches, run, n, false, panels.data(), nullptr, tiles);
        QProduct product = q_plan_rows(kRows, n, run, lda, false, tiles);
        product.offsets = {0, run + kGap, 2 * (run + kGap)};
        std::vector<int32_t> c(static_cast<size_t>(kRows * n));
        QFinish finish;
        finish.out = c.data();
        finish.ldo = n;
        q_product(product, reinterpret_cast<const std::byte*>(a.data()),
                  static_cast<int64_t>(a.size()), panels.data(), finish);
        for (int64_t i = 0; i < kRows; ++i)
          for (int64_t j = 0; j < n; ++j) {
            int32_t sum = 0;
            for (int64_t q = 0; q < k; ++q)
              sum += a[static_cast<size_t>(i * lda + q / run * (run + kGap) + q % run)] *
                     static_cast<int8_t>(b[static_cast<size_t>(q * n + j)]);
            ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum) << n << " " << run;
          }
      }
}

TEST_P(Kernels, SortedGroupsAreAllThere) {
  if (GetParam() != Isa::kAvx2) GTEST_SKIP() << "only AVX2's tiles sort";
  constexpr int64_t kGroups = 201;
  for (const float deviation : {15.0f, 30.0f, 60.0f}) {
    const auto panel = normal_bytes(kGroups * 64, 0, deviation, true);
    int32_t counts[std::size(kQCaps)][kQKinds];
    uint16_t order[std::size(kQCaps)][kGroups];
    q_sort_groups(reinterpret_cast<const std::byte*>(panel.data()), 3, kGroups / 3, counts[0],
                  order[0]);
    for (size_t cap = 0; cap < std::size(kQCaps); ++cap) {
      std::vector<int> seen(kGroups);
      const uint16_t* at = order[cap];
      for (int i = 0; i < 2 * counts[cap][kQFour]; ++i, ++at) ++seen[*at], ++seen[*at + 1u];
      int64_t others = 2 * counts[cap][kQDouble];
      for (int kind = kQSingle; kind < kQKinds; ++kind) others += counts[cap][kind];
      for (; others > 0; --others, ++at) ++seen[*at];
      EXPECT_EQ(seen, std::vector<int>(kGroups, 1)) << deviation << " " << int{kQCaps[cap]};
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Kernels,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
