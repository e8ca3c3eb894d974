// Matrix products at their own interface: exactness, shapes that do not fill tiles, what is not
// finite.

#include "runtime/kernels/matmul/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "each_isa.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm_halves.h"
#include "runtime/kernels/matmul/gemm_parts.h"
#include "runtime/kernels/matmul/gemm_small.h"

namespace tombolo {
namespace {

struct Matrices {
  int64_t m, n, k;
  std::vector<float> a, b, c;

  Matrices(int64_t rows, int64_t columns, int64_t depth)
      : m(rows), n(columns), k(depth), a(size(m, k)), b(size(k, n)), c(size(m, n)) {}
  static size_t size(int64_t x, int64_t y) { return static_cast<size_t>(x * y); }

  template <typename Number>
  void fill(Number&& number) {
    for (float& x : a) x = number();
    for (float& x : b) x = number();
  }
  void multiply(const GemmEpilogue& epilogue = {}) {
    std::vector<float> packed(static_cast<size_t>(packed_b_floats(k, n)) + 16);
    pack_b(b.data(), n, 1, k, n, 1, packed.data());
    gemm(m, n, k, a.data(), k, packed.data(), c.data(), n, epilogue);
  }
  /// Element (i, j) in double.
  double exact(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum += double{a[static_cast<size_t>(i * k + p)]} * b[static_cast<size_t>(p * n + j)];
    return sum;
  }
  /// Root of the mean square of what C is off, over that of C itself.
  double error() const {
    double off = 0, all = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double want = exact(i, j), d = c[static_cast<size_t>(i * n + j)] - want;
        off += d * d;
        all += want * want;
      }
    return std::sqrt(off / all);
  }
};

class Gemm : public ::testing::Test {
 protected:
  void TearDown() override {
    limit_extras(Extras::kTiles);
    set_thread_count(0);
  }
  std::mt19937 engine_{7};
  std::normal_distribution<float> normal_;
};

TEST_F(Gemm, GivesTheSameBitsOnAnyNumberOfThreads) {
  Matrices x(260, 300, 700);
  x.fill([&] { return normal_(engine_); });
  set_thread_count(1);
  x.multiply();
  const std::vector<float> one = x.c;
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    x.multiply();
    EXPECT_EQ(x.c, one) << threads;
  }
}

// Rows 4 KiB apart go by lower tiles: each of C's numbers is the same sum for all that.
TEST_F(Gemm, GivesTheSameBitsWhereRowsCollide) {
  for (const int threads : {1, 2})
    for (const int64_t m : {13, 20, 131}) {
      set_thread_count(threads);
      Matrices x(m, 100, 2048);
      x.fill([&] { return normal_(engine_); });
      x.multiply();
      Matrices apart(m, 100, 2048);
      std::vector<float> a(static_cast<size_t>(m * 2064));
      for (int64_t i = 0; i < m; ++i) std::copy_n(&x.a[i * 2048], 2048, &a[i * 2064]);
      std::vector<float> packed(static_cast<size_t>(packed_b_floats(2048, 100)));
      pack_b(x.b.data(), 100, 1, 2048, 100, 1, packed.data());
      gemm(m, 100, 2048, a.data(), 2064, packed.data(), apart.c.data(), 100, {});
      EXPECT_EQ(x.c, apart.c) << m << " rows on " << threads;
    }
}

TEST_F(Gemm, GivesTheSameBitsBackwards) {
  for (const int threads : {1, 2})
    for (const int64_t m : {1, 2, 4, 6, 7, 20, 300})
      for (const int64_t n : {1, 33, 130, 400}) {
        set_thread_count(threads);
        Matrices x(m, n, 300);
        x.fill([&] { return normal_(engine_); });
        std::vector<float> bias(static_cast<size_t>(n));
        for (float& b : bias) b = normal_(engine_);
        x.multiply({.col_bias = bias.data()});
        const std::vector<float> forwards = x.c;
        std::fill(x.c.begin(), x.c.end(), 0.0f);
        x.multiply({.col_bias = bias.data(), .backwards = true});
        ASSERT_EQ(x.c, forwards) << m << " x " << n << " on " << threads << " threads";
      }
}

TEST_F(Gemm, OfNothingIsZero) {
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Matrices x(100, 200, 0);
    std::fill(x.c.begin(), x.c.end(), 1.0f);
    x.multiply();
    EXPECT_EQ(x.c, std::vector<float>(x.c.size(), 0.0f)) << threads;
    gemm_unpacked(100, 200, 0, nullptr, 0, nullptr, 200, x.c.data(), 200, {});
    EXPECT_EQ(x.c, std::vector<float>(x.c.size(), 0.0f)) << threads;
  }
}

TEST_F(Gemm, AppliesItsEpilogueOnce) {
  for (const int64_t k : {64, 1500}) {
    Matrices x(130, 70, k);
    x.fill([&] { return static_cast<float>(static_cast<int>(engine_() % 5) - 2); });
    std::vector<float> columns(70), rows(130), init(130 * 70);
    for (auto* list : {&columns, &rows, &init})
      for (float& value : *list) value = static_cast<float>(static_cast<int>(engine_() % 9) - 4);
    x.c = init;  // in place
    GemmEpilogue e{.row_bias = rows.data(),
                   .col_bias = columns.data(),
                   .init = x.c.data(),
                   .ldi = 70,
                   .clamp = true,
                   .lo = -20,
                   .hi = 15};
    x.multiply(e);
    for (int64_t i = 0; i < 130; ++i)
      for (int64_t j = 0; j < 70; ++j) {
        const auto at = static_cast<size_t>(i * 70 + j);
        const double want = x.exact(i, j) + rows[static_cast<size_t>(i)] +
                            columns[static_cast<size_t>(j)] + init[at];
        ASSERT_EQ(x.c[at], std::clamp(want, -20.0, 15.0)) << i << " " << j;
      }
  }
}

class GemmOnEachIsa : public EachIsa {
 protected:
  static std::vector<float> packed_twice(const Matrices& x, bool turned, int64_t ldb) {
    std::vector<float> packed(static_cast<size_t>(packed_b_floats(x.k, x.n)) + 16);
    pack_b(x.b.data(), turned ? 1 : ldb, turned ? ldb : 1, x.k, x.n, 2, packed.data());
    return packed;
  }
  /// [k][m], a number apart.
  static std::vector<float> turned_a(const Matrices& x) {
    std::vector<float> turned(static_cast<size_t>(x.k * (x.m + 1) - 1), 1e30f);
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t p = 0; p < x.k; ++p)
        turned[static_cast<size_t>(p * (x.m + 1) + i)] = x.a[static_cast<size_t>(i * x.k + p)];
    return turned;
  }
  void TearDown() override {
    set_thread_count(0);
    EachIsa::TearDown();
  }
  std::mt19937 engine_{7};
  std::normal_distribution<float> normal_;
};
INSTANTIATE_TEST_SUITE_P(Isa, GemmOnEachIsa,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// What reads B where it lies: few rows, few columns, panels packed on the way. Whole numbers are
// exact in any order; nothing beyond the matrices is read or written (guards, sanitizers).
TEST_P(GemmOnEachIsa, ReadsBWhereItLies) {
  const auto small = [&] { return static_cast<float>(static_cast<int>(engine_() % 5) - 2); };
  using Product =
      void(const Matrices&, bool turned, int64_t ldb, float* c, int64_t ldc, const GemmEpilogue&);
  const struct {
    const char* name;
    Product* run;
    bool (*fits)(int64_t m, int64_t n, int64_t k, bool turned);
  } kProducts[] = {
      {"few",
       [](const Matrices& x, bool, int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& e) {
         gemm_few(x.m, x.n, x.k, x.a.data(), x.k, x.b.data(), ldb, 2, c, ldc, e);
       },
       [](int64_t m, int64_t n, int64_t, bool turned) { return !turned && gemm_few_fits(m, n); }},
      {"columns",
       [](const Matrices& x, bool, int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& e) {
         gemm_columns(x.m, x.n, x.k, x.a.data(), x.k, x.b.data(), ldb, 2, c, ldc, e);
       },
       [](int64_t, int64_t n, int64_t k, bool turned) {
         return turned && gemm_columns_fits(n, k);
       }},
      {"packing",
       [](const Matrices& x, bool turned, int64_t ldb, float* c, int64_t ldc,
          const GemmEpilogue& e) {
         gemm_packing(x.m, x.n, x.k, x.a.data(), x.k, x.b.data(), turned ? 1 : ldb,
                      turned ? ldb : 1, 2, c, ldc, e);
       },
       [](int64_t m, int64_t, int64_t, bool) { return gemm_packing_fits(m); }},
      {"unpacked",
       [](const Matrices& x, bool, int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& e) {
         std::vector<float> twice = x.b;
         for (float& value : twice) value *= 2;
         gemm_unpacked(x.m, x.n, x.k, x.a.data(), x.k, twice.data(), ldb, c, ldc, e);
       },
       [](int64_t, int64_t, int64_t, bool turned) { return !turned; }},
      {"packed",
       [](const Matrices& x, bool turned, int64_t ldb, float* c, int64_t ldc,
          const GemmEpilogue& e) {
         gemm(x.m, x.n, x.k, x.a.data(), x.k, packed_twice(x, turned, ldb).data(), c, ldc, e);
       },
       [](int64_t, int64_t, int64_t, bool) { return true; }},
      {"packed, A turned",
       [](const Matrices& x, bool turned, int64_t ldb, float* c, int64_t ldc,
          const GemmEpilogue& e) {
         gemm_turned(x.m, x.n, x.k, turned_a(x).data(), x.m + 1,
                     packed_twice(x, turned, ldb).data(), nullptr, c, ldc, e);
       },
       [](int64_t, int64_t, int64_t, bool) { return true; }},
      {"packing, A turned",
       [](const Matrices& x, bool turned, int64_t ldb, float* c, int64_t ldc,
          const GemmEpilogue& e) {
         const LyingB lies{turned ? 1 : ldb, turned ? ldb : 1, 2};
         gemm_turned(x.m, x.n, x.k, turned_a(x).data(), x.m + 1, x.b.data(), &lies, c, ldc, e);
       },
       [](int64_t, int64_t, int64_t, bool) { return true; }},
  };
  const auto check = [&](const auto& product, int64_t m, int64_t n, int64_t k, bool turned) {
    SCOPED_TRACE(testing::Message() << product.name << " " << m << " x " << k << " x " << n
                                    << (turned ? " turned" : ""));
    const int64_t ldb = (turned ? k : n) + 3, ldc = n + 2;
    Matrices x(m, n, k);
    x.fill(small);
    const std::vector<float> dense = x.b;
    x.b.assign(static_cast<size_t>((turned ? n - 1 : k - 1) * ldb + (turned ? k : n)), 1e30f);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j)
        x.b[static_cast<size_t>(turned ? j * ldb + i : i * ldb + j)] =
            dense[static_cast<size_t>(i * n + j)];
    std::vector<float> columns(static_cast<size_t>(n)), rows(static_cast<size_t>(m));
    std::vector<float> c(static_cast<size_t>((m - 1) * ldc + n + 1), 7.0f);
    for (auto* list : {&columns, &rows, &c})
      for (float& value : *list) value = small();
    const std::vector<float> init = c;
    const GemmEpilogue e{.row_bias = rows.data(),
                         .col_bias = columns.data(),
                         .init = c.data(),  // in place
                         .ldi = ldc,
                         .clamp = true,
                         .lo = -60,
                         .hi = 50};
    product.run(x, turned, ldb, c.data(), ldc, e);
    x.b = dense;
    std::vector<float> want = init;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(i * ldc + j);
        want[at] = static_cast<float>(std::clamp(2 * x.exact(i, j) + rows[static_cast<size_t>(i)] +
                                                     columns[static_cast<size_t>(j)] + init[at],
                                                 -60.0, 50.0));
      }
    EXPECT_EQ(c, want);
  };
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    for (const auto& product : kProducts)
      for (const bool turned : {false, true})
        for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
                 {1, 1, 1},     {1, 3, 700},    {1, 13, 64},   {1, 40, 9},     {1, 47, 1201},
                 {1, 250, 33},  {1, 300, 6},    {1, 3000, 41}, {1, 5000, 5},   {2, 2, 500},
                 {2, 75, 5},    {2, 2100, 37},  {3, 5, 1300},  {4, 30, 400},   {5, 70, 100},
                 {6, 120, 7},   {7, 4, 129},    {7, 40, 70},   {13, 100, 50},  {15, 31, 300},
                 {29, 64, 200}, {31, 90, 77},   {40, 8, 500},  {60, 33, 1100}, {70, 300, 60},
                 {300, 70, 40}, {300, 200, 200}})
          if (product.fits(m, n, k, turned)) check(product, m, n, k, turned);
  }
}

// Whatever surrounds them, and in whole panels and parts of one.
TEST_P(GemmOnEachIsa, ShortSumsAreExact) {
  const auto small = [&] { return static_cast<float>(static_cast<int>(engine_() % 5) - 2); };
  for (int64_t k = 1; k <= 12; ++k)
    for (const int64_t n : {9, 23, 64, 100}) {
      SCOPED_TRACE(testing::Message() << k << " x " << n);
      Matrices x(75, n, k);
      x.fill(small);
      x.multiply();
      std::vector<float> columns(static_cast<size_t>(n)), rows(75);
      for (float& value : columns) value = small();
      for (float& value : rows) value = small();
      Matrices y = x;
      y.multiply({.row_bias = rows.data(),
                  .col_bias = columns.data(),
                  .init = y.c.data(),
                  .ldi = n,
                  .clamp = true,
                  .lo = -9,
                  .hi = 8});
      for (int64_t i = 0; i < x.m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const auto at = static_cast<size_t>(i * n + j);
          ASSERT_EQ(x.c[at], x.exact(i, j)) << i << " " << j;
          const double sum =
              2 * x.exact(i, j) + rows[static_cast<size_t>(i)] + columns[static_cast<size_t>(j)];
          ASSERT_EQ(y.c[at], std::clamp(sum, -9.0, 8.0)) << i << " " << j;
        }
    }
}

// Long sums by sets and parts are as exact as those of tiles, and alike on any number of threads.
TEST_P(GemmOnEachIsa, FewRowsAreExact) {
  for (const int64_t n : {5, 47, 200, 700}) {
    if (!gemm_few_fits(1, n)) GTEST_SKIP() << "vectors are short";
    Matrices x(1, n, 6000);
    x.fill([&] { return normal_(engine_); });
    set_thread_count(1);
    gemm_few(1, n, x.k, x.a.data(), x.k, x.b.data(), n, 1, x.c.data(), n, {});
    EXPECT_LT(x.error(), 4e-7) << n;
    const std::vector<float> one = x.c;
    set_thread_count(3);
    gemm_few(1, n, x.k, x.a.data(), x.k, x.b.data(), n, 1, x.c.data(), n, {});
    EXPECT_EQ(x.c, one) << n;
  }
}

// Panels of halves give the bits of the same numbers as floats: few rows (widened in registers),
// one tile and many, parts of k, columns that end within a panel; both from rows and from columns
// of B.
TEST_F(Gemm, HalvesGiveTheBitsOfFloats) {
  for (const PanelFormat format : {PanelFormat::kFloat16, PanelFormat::kBfloat16}) {
    if (!takes_panels(format)) continue;
    for (const auto& [n, k] : {std::array<int64_t, 2>{1, 1}, {70, 33}, {256, 300}, {600, 1100}})
      for (const int64_t m : {1, 2, 5, 6, 7, 8, 13, 14, 15, 29, 130, 300}) {
        Matrices x(m, n, k);
        x.fill([&] { return normal_(engine_); });
        std::vector<uint16_t> halves(x.b.size()), turned(x.b.size());
        const auto count = static_cast<int64_t>(x.b.size());
        if (format == PanelFormat::kFloat16) {
          f32_to_f16(x.b.data(), halves.data(), count);
          f16_to_f32(halves.data(), x.b.data(), count);
        } else {
          f32_to_bf16(x.b.data(), halves.data(), count);
          bf16_to_f32(halves.data(), x.b.data(), count);
        }
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < n; ++j)
            turned[static_cast<size_t>(j * k + i)] = halves[static_cast<size_t>(i * n + j)];
        std::vector<float> bias(static_cast<size_t>(n), 0.25f);
        GemmEpilogue epilogue;
        epilogue.col_bias = bias.data();
        x.multiply(epilogue);
        const int64_t width = gemm_tiles().panel();
        std::vector<uint16_t> packed(static_cast<size_t>(packed_b_floats(k, n)), 0xFFFF);
        for (const bool columns : {false, true}) {
          for (int64_t j = 0; j < n; j += width)
            pack_b_panel(columns ? turned.data() + j * k : halves.data() + j, columns ? 1 : n,
                         columns ? k : 1, k, std::min(width, n - j), packed.data() + j * k);
          for (const bool one_stream : {false, true}) {
            const Streams streams(one_stream);
            std::vector<float> c(x.c.size(), -1);
            gemm(m, n, k, x.a.data(), k, packed.data(), format, c.data(), n, epilogue);
            ASSERT_EQ(c, x.c) << m << " x " << n << " x " << k << (columns ? " by columns" : "");
          }
        }
      }
  }
}

/// Of a model in halves 16 bits count; what is not finite comes out as in floats.
class ModelsInHalves : public Gemm {
 protected:
  using Fits = bool(PanelFormat, int64_t, int64_t, int64_t);
  static bool bytes_fit(PanelFormat, int64_t m, int64_t n, int64_t k) {
    return halves_pay(m, n, k);
  }

  std::vector<uint16_t> round(std::vector<float>& floats, bool f16) {
    std::vector<uint16_t> halves(floats.size());
    const auto count = static_cast<int64_t>(floats.size());
    (f16 ? f32_to_f16 : f32_to_bf16)(floats.data(), halves.data(), count);
    (f16 ? f16_to_f32 : bf16_to_f32)(halves.data(), floats.data(), count);
    return halves;
  }

  /// Numbers lie up to 2^spread from usual ones.
  void check(Fits* fits, std::span<const std::array<int64_t, 3>> shapes, int spread, double least,
             double most) {
    for (const PanelFormat format : {PanelFormat::kFloat16, PanelFormat::kBfloat16})
      for (const bool short_a : {false, true})
        for (const bool odd_b : {false, true})
          for (const float odd : {0.0f, std::numeric_limits<float>::infinity(), std::nanf(""),
                                  std::bit_cast<float>(0x7FFFFFFFu), 3.4e38f, 1e-42f})
            for (const auto& [m, n, k] : shapes) {
              Matrices x(m, n, k);
              x.fill([&] {
                return std::ldexp(
                    normal_(engine_),
                    static_cast<int>(engine_() % static_cast<unsigned>(2 * spread + 1)) - spread);
              });
              if (odd != 0 && odd_b) x.b[static_cast<size_t>(2 * n + 5)] = odd;
              const bool f16 = format == PanelFormat::kFloat16;
              const std::vector<uint16_t> halves = round(x.b, f16);
              if (short_a) round(x.a, f16);
              if (odd != 0 && !odd_b) x.a[static_cast<size_t>(k + 5)] = odd;
              ASSERT_TRUE(fits(format, m, n, k));
              check(x, halves, format, odd, least, most);
            }
  }

  static void multiply(const Matrices& x, const std::vector<uint16_t>& halves, PanelFormat format,
                       std::vector<float>& c, const GemmEpilogue& epilogue, bool short_a) {
    const int64_t width = gemm_tiles().panel();
    std::vector<uint16_t> packed(static_cast<size_t>(packed_b_floats(x.k, x.n)));
    for (int64_t j = 0; j < x.n; j += width)
      pack_b_panel(halves.data() + j, x.n, 1, x.k, std::min(width, x.n - j),
                   packed.data() + j * x.k);
    gemm(x.m, x.n, x.k, x.a.data(), x.k, packed.data(), format, c.data(), x.n, epilogue, short_a);
  }

 private:
  void check(Matrices& x, const std::vector<uint16_t>& halves, PanelFormat format, float odd,
             double least, double most) {
    const auto multiply = [&](std::vector<float>& c, const GemmEpilogue& epilogue, bool short_a) {
      ModelsInHalves::multiply(x, halves, format, c, epilogue, short_a);
    };
    multiply(x.c, {}, true);
    if (odd == 0) {
      const double error = x.error();
      EXPECT_LT(error, most) << x.m << " x " << x.n << " x " << x.k;
      EXPECT_GE(error, least) << "nothing was rounded";
      for (const int threads : {2, 3}) {
        set_thread_count(threads);
        std::vector<float> c(x.c.size());
        multiply(c, {}, true);
        EXPECT_EQ(c, x.c) << threads << " threads";
      }
      set_thread_count(0);
      std::vector<float> bias(static_cast<size_t>(x.n), 0.25f), c(x.c.size(), 0.5f);
      multiply(c, {.col_bias = bias.data(), .init = c.data(), .ldi = x.n, .clamp = true, .hi = 9},
               true);
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_NEAR(c[i], std::clamp(x.c[i] + 0.75f, 0.0f, 9.0f), 1e-5f) << i;
      return;
    }
    std::vector<float> want(x.c.size());
    multiply(want, {}, false);
    for (size_t i = 0; i < want.size(); ++i)
      if (std::isnan(want[i]))
        ASSERT_TRUE(std::isnan(x.c[i])) << odd << " at " << i;
      else if (std::isinf(want[i]) || std::fabs(want[i]) > 1e30f)
        ASSERT_EQ(x.c[i], want[i]) << odd << " at " << i;
      else
        ASSERT_NEAR(x.c[i], want[i], 0.05f) << odd << " at " << i;
  }
};

TEST_F(ModelsInHalves, GoByAmx) {
  if (!has_amx_bf16()) GTEST_SKIP() << "no AMX on this machine";
  constexpr std::array<int64_t, 3> kShapes[] = {
      {16, 64, 64}, {17, 65, 67}, {113, 100, 130}, {300, 96, 2000}};
  // At most 2^-17 of A, and 2^-16 of the product of what the first of two numbers leave.
  check(&parts_fit, kShapes, 4, 0, 5e-6);
}

// A number far above its neighbours would take their digits, and here it counts for nothing.
TEST_F(ModelsInHalves, KeepTheirDigitsBesideLargeNumbers) {
  if (!takes_panels(PanelFormat::kFloat16)) GTEST_SKIP() << "nothing widens float16 here";
  const Streams one(true);
  for (const bool in_b : {false, true}) {
    Matrices x(50, 70, 200);
    x.fill([&] { return 0.01f * normal_(engine_); });
    for (int64_t i = 0; i < x.m; ++i) x.a[static_cast<size_t>(i * x.k + 7)] = in_b ? 0 : 1000;
    for (int64_t j = 0; j < x.n; ++j) x.b[static_cast<size_t>(7 * x.n + j)] = in_b ? 1000 : 0;
    const std::vector<uint16_t> halves = round(x.b, true);
    round(x.a, true);
    multiply(x, halves, PanelFormat::kFloat16, x.c, {}, true);
    EXPECT_LT(x.error(), 5e-6) << in_b;
  }
}

TEST_F(ModelsInHalves, GoByBytes) {
  const Streams one(true);
  constexpr std::array<int64_t, 3> kShapes[] = {
      {48, 64, 64}, {51, 65, 67}, {113, 100, 130}, {300, 96, 2000}};
  limit_extras(Extras::kDot);  // AMX would take them
  if (!halves_pay(48, 64, 64)) GTEST_SKIP() << "no VNNI on this machine";
  // Each is off by 2^-17 of the largest of 128, a product by 2^-16 of theirs.
  check(&bytes_fit, kShapes, 1, 1e-5, 1.2e-4);
}

}  // namespace
}  // namespace tombolo
