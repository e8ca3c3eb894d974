// Products of floats by AMX as integers of four digits: nearer to the exact ones than sums of
// floats.

#include "runtime/kernels/matmul/gemm_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ir/text/parser.h"
#include "odd_file.h"
#include "runtime/kernels/isa.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

struct Aligned {
  void operator()(std::byte* p) const { std::free(p); }
};

struct DigitsProblem {
  int64_t m, n, k;
  bool turned = false;  ///< B is n x k
  std::vector<float> a, b, c;
  DigitPanels panels;
  std::unique_ptr<std::byte, Aligned> packed;

  DigitsProblem(int64_t rows, int64_t columns, int64_t depth)
      : m(rows), n(columns), k(depth), a(size(m, k)), b(size(k, n)), c(size(m, n)) {}
  static size_t size(int64_t x, int64_t y) { return static_cast<size_t>(x * y); }
  float b_at(int64_t p, int64_t j) const {
    return b[static_cast<size_t>(turned ? j * k + p : p * n + j)];
  }

  /// Whether B lies as digits, in pieces of 128 rows, read from an odd address.
  bool pack() {
    OddFile file(b);
    std::vector<float> scales(static_cast<size_t>(round_up(n, kDigitsWidth)));
    const bool fits = digits_of(file.data(), k, n, turned, file.read(), scales.data());
    EXPECT_TRUE(file.read_once());
    if (!fits) return false;
    panels = {k, n};
    packed.reset(static_cast<std::byte*>(
        std::aligned_alloc(64, static_cast<size_t>(round_up(panels.bytes(), 64)))));
    std::memcpy(packed.get(), scales.data(), scales.size() * sizeof(float));
    constexpr int64_t kPiece = 128;
    std::vector<float> rows(static_cast<size_t>(kPiece * kDigitsWidth));
    for (int64_t panel = 0; panel < panels.panels(); ++panel)
      for (int64_t k0 = 0; k0 < k; k0 += kPiece) {
        const int64_t some = std::min(kPiece, k - k0);
        for (int64_t i = 0; i < some; ++i)
          for (int64_t j = 0; j < kDigitsWidth; ++j) {
            const int64_t column = panel * kDigitsWidth + j;
            rows[static_cast<size_t>(i * kDigitsWidth + j)] =
                column < n ? b_at(k0 + i, column) : 0.0f;
          }
        digits_pack(rows.data(), k0, some, panels, panel, packed.get());
      }
    return true;
  }
  void multiply(const GemmEpilogue& epilogue = {}) {
    gemm_digits(m, a.data(), k, packed.get(), panels, c.data(), n, epilogue);
  }
  /// The same without pack().
  void multiply_floats(const GemmEpilogue& epilogue = {}) {
    struct Panels {
      static const float* panel(const void* argument, int64_t panel, float* room) {
        const auto& x = *static_cast<const DigitsProblem*>(argument);
        const int64_t first = panel * kDigitsWidth;
        pack_b_panel(x.b.data() + first * (x.turned ? x.k : 1), x.turned ? 1 : x.n,
                     x.turned ? x.k : 1, x.k, std::min(kDigitsWidth, x.n - first), 1, room);
        return room;
      }
    };
    gemm_digits(m, n, k, a.data(), k, {&Panels::panel, this}, c.data(), n, epilogue);
  }
  /// By vectors, in floats.
  std::vector<float> by_vectors() const {
    std::vector<float> floats(static_cast<size_t>(packed_b_floats(k, n)) + 16), out(c.size());
    pack_b(b.data(), turned ? 1 : n, turned ? k : 1, k, n, 1, floats.data());
    gemm(m, n, k, a.data(), k, floats.data(), out.data(), n, {});
    return out;
  }
  /// Root of the mean square of what `values` are off, over that of the product itself.
  double error(const std::vector<float>& values) const {
    double off = 0, all = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double want = 0;
        for (int64_t p = 0; p < k; ++p)
          want += double{a[static_cast<size_t>(i * k + p)]} * b_at(p, j);
        const double d = values[static_cast<size_t>(i * n + j)] - want;
        off += d * d;
        all += want * want;
      }
    return std::sqrt(off / all);
  }
};

class GemmDigits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_amx_int8()) GTEST_SKIP() << "no AMX on this machine";
  }
  void TearDown() override { set_thread_count(0); }

  using Number = std::function<float()>;
  float normal() { return normal_(engine_); }
  float laplace() { return std::log(uniform_(engine_)) * (engine_() % 2 == 0 ? 1 : -1); }
  /// One in a hundred is a hundred times as large.
  float outlier() { return normal() * (engine_() % 100 == 0 ? 100 : 1); }
  float sparse() { return engine_() % 50 == 0 ? normal() : 0; }
  float of_all_sizes() { return std::ldexp(normal(), static_cast<int>(engine_() % 41) - 20); }
  float integer() { return static_cast<float>(static_cast<int>(engine_() % 19) - 9); }
  float positive() { return std::max(0.0f, normal()); }
  static void fill(std::vector<float>& values, const Number& number) {
    for (float& x : values) x = number();
  }

  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
  std::uniform_real_distribution<float> uniform_{1e-6f, 1};
};

TEST_F(GemmDigits, AreAtLeastAsExactAsVectors) {
  const std::array<Number, 6> numbers = {[&] { return normal(); },  [&] { return laplace(); },
                                         [&] { return outlier(); }, [&] { return sparse(); },
                                         [&] { return integer(); }, [&] { return positive(); }};
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 16, 64},
                                {7, 33, 65},
                                {16, 64, 130},
                                {17, 100, 400},
                                {40, 96, 768},
                                {300, 48, 1100}})
    for (size_t of_a = 0; of_a < numbers.size(); ++of_a)
      for (size_t of_b = 0; of_b < numbers.size(); ++of_b) {
        DigitsProblem x(m, n, k);
        x.turned = (of_a + of_b) % 2 == 1;
        fill(x.a, numbers[of_a]);
        fill(x.b, numbers[of_b]);
        ASSERT_TRUE(x.pack()) << of_b;
        x.multiply();
        // Rounded once for each 256 numbers; few of them leave vectors little to round off.
        EXPECT_LE(x.error(x.c), std::max(7e-8, x.error(x.by_vectors())))
            << m << " x " << n << " x " << k << " of " << of_a << " and " << of_b;
      }
}

TEST_F(GemmDigits, OfWholeNumbersAreExact) {
  for (const int64_t m : {1, 5, 16, 33}) {
    DigitsProblem x(m, 70, 500);
    fill(x.a, [&] { return integer(); });
    fill(x.b, [&] { return integer(); });
    ASSERT_TRUE(x.pack());
    x.multiply();
    EXPECT_EQ(x.error(x.c), 0) << m;
  }
}

// Activations of networks that nobody trained grow or vanish from layer to layer.
TEST_F(GemmDigits, OfHugeAndTinyNumbersAreThoseOfOthersScaled) {
  DigitsProblem x(20, 70, 500);
  fill(x.a, [&] { return normal(); });
  fill(x.b, [&] { return normal(); });
  ASSERT_TRUE(x.pack());
  x.multiply();
  const std::vector<float> a = x.a, b = x.b, usual = x.c;
  for (const int left : {-56, 56})
    for (const int right : {-50, 50}) {
      for (size_t i = 0; i < a.size(); ++i) x.a[i] = std::ldexp(a[i], left);
      for (size_t i = 0; i < b.size(); ++i) x.b[i] = std::ldexp(b[i], right);
      ASSERT_TRUE(x.pack());
      x.multiply();
      for (size_t i = 0; i < usual.size(); ++i)
        ASSERT_EQ(x.c[i], std::ldexp(usual[i], left + right)) << left << " " << right;
    }
}

TEST_F(GemmDigits, GiveTheSameBitsOnAnyNumberOfThreads) {
  DigitsProblem x(530, 200, 1500);
  fill(x.a, [&] { return normal(); });
  fill(x.b, [&] { return normal(); });
  ASSERT_TRUE(x.pack());
  set_thread_count(1);
  x.multiply();
  const std::vector<float> one = x.c;
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    x.multiply();
    EXPECT_EQ(x.c, one) << threads;
  }
}

// B becomes digits on the way: the same bits.
TEST_F(GemmDigits, OfFloatsAreThoseOfDigits) {
  for (const int64_t m : {20, 300, 1100})
    for (const bool turned : {false, true}) {
      DigitsProblem x(m, 200, 700);
      x.turned = turned;
      fill(x.a, [&] { return normal(); });
      fill(x.b, [&] { return normal(); });
      ASSERT_TRUE(x.pack());
      x.multiply();
      const std::vector<float> want = x.c;
      for (const int threads : {1, 2, 3}) {
        set_thread_count(threads);
        std::fill(x.c.begin(), x.c.end(), 0.0f);
        x.multiply_floats();
        EXPECT_EQ(x.c, want) << m << " " << threads;
      }
    }
}

// A row comes out the same whatever is multiplied beside it.
TEST_F(GemmDigits, GiveARowTheSameBitsAmongAnyNumberOfRows) {
  DigitsProblem all(300, 50, 2000);
  fill(all.a, [&] { return normal(); });
  fill(all.b, [&] { return normal(); });
  ASSERT_TRUE(all.pack());
  all.multiply();
  for (const int64_t m : {1, 2, 15, 16, 17, 100, 257}) {
    std::vector<float> some(static_cast<size_t>(m * all.n));
    gemm_digits(m, all.a.data(), all.k, all.packed.get(), all.panels, some.data(), all.n, {});
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.c.begin())) << m;
  }
}

TEST_F(GemmDigits, ApplyTheirEpilogueOnce) {
  enum class Of { kDigits, kFloats, kFloatsWithOddColumn };
  for (const int64_t k : {64, 1024, 1500})
    for (const auto& [of, odd] :
         {std::pair{Of::kDigits, 0.0f}, std::pair{Of::kDigits, 1e30f}, std::pair{Of::kFloats, 0.0f},
          std::pair{Of::kFloats, 1e30f}, std::pair{Of::kFloatsWithOddColumn, 0.0f}}) {
      DigitsProblem x(130, 70, k);
      fill(x.a, [&] { return integer(); });
      fill(x.b, [&] { return integer(); });
      if (of == Of::kFloatsWithOddColumn) x.b[5 * 70 + 40] = 1 << 14;
      ASSERT_EQ(x.pack(), of != Of::kFloatsWithOddColumn);
      std::vector<float> columns(70), rows(130), init(130 * 70);
      for (auto* list : {&columns, &rows, &init}) fill(*list, [&] { return integer(); });
      x.c = init;  // in place
      x.a[static_cast<size_t>(20 * k + 3)] += odd;
      struct Post {
        static void apply(const void*, float* c, int64_t ldc, int64_t, int64_t some, int64_t,
                          int64_t width) {
          for (int64_t i = 0; i < some; ++i)
            for (int64_t j = 0; j < width; ++j) c[i * ldc + j] *= 2;
        }
      };
      const BlockPost post{&Post::apply, nullptr};
      const GemmEpilogue e{.row_bias = rows.data(),
                           .col_bias = columns.data(),
                           .init = x.c.data(),
                           .ldi = 70,
                           .clamp = true,
                           .lo = -200,
                           .hi = 150,
                           .post = &post};
      of == Of::kDigits ? x.multiply(e) : x.multiply_floats(e);
      for (int64_t i = 0; i < 130; ++i)
        for (int64_t j = 0; j < 70; ++j) {
          const auto at = static_cast<size_t>(i * 70 + j);
          double want =
              double{rows[static_cast<size_t>(i)]} + columns[static_cast<size_t>(j)] + init[at];
          for (int64_t p = 0; p < k; ++p)
            want += double{x.a[static_cast<size_t>(i * k + p)]} * x.b_at(p, j);
          if (odd != 0 && i == 20 && x.b_at(3, j) == 0) continue;
          ASSERT_EQ(x.c[at], 2 * std::clamp(want, -200.0, 150.0)) << i << " " << j;
        }
    }
}

// Infinities, NaN, and rows whose numbers are far from one another come out as in floats; the rows
// beside them as without them.
TEST_F(GemmDigits, LeaveOddRowsToVectors) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e20f, 1e6f, 1e-42f}) {
    DigitsProblem x(40, 96, 100);
    fill(x.a, [&] { return integer(); });
    fill(x.b, [&] { return integer(); });
    for (int64_t j = 0; j < x.n; j += 3) x.b[static_cast<size_t>(7 * x.n + j)] = 0;
    ASSERT_TRUE(x.pack());
    x.multiply();
    const std::vector<float> before = x.c;
    for (int64_t p = 0; p < x.k; ++p) x.a[static_cast<size_t>(5 * x.k + p)] *= 1e-3f;
    x.a[5 * 100 + 7] = odd;
    x.multiply();
    const std::vector<float> want = x.by_vectors();
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j) {
        const auto at = static_cast<size_t>(i * x.n + j);
        if (i != 5)
          ASSERT_EQ(x.c[at], before[at]) << odd << " at " << i << " " << j;
        else if (std::isnan(want[at]))
          ASSERT_TRUE(std::isnan(x.c[at])) << odd << " at " << i << " " << j;
        else if (std::isinf(want[at]))
          ASSERT_EQ(x.c[at], want[at]) << odd << " at " << i << " " << j;
        else
          ASSERT_NEAR(x.c[at], want[at], 2e-6f * (std::fabs(want[at]) + 1)) << odd << " at " << j;
      }
  }
}

TEST_F(GemmDigits, DoNotHoldColumnsOfAllSizes) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto fits = [&](const Number& number, float odd) {
    bool both = true;
    for (const bool turned : {false, true}) {
      DigitsProblem x(1, 40, 200);
      x.turned = turned;
      fill(x.b, number);
      if (odd != 0) x.b[77] = odd;
      both = x.pack() && both;
    }
    return both;
  };
  EXPECT_TRUE(fits([&] { return normal(); }, 0));
  EXPECT_TRUE(fits([&] { return 1e-6f * normal(); }, 0));
  EXPECT_TRUE(fits([] { return 0.0f; }, 0));
  EXPECT_FALSE(fits([&] { return of_all_sizes(); }, 0));
  for (const float odd : {kInf, std::nanf(""), 1e30f, 1e4f}) {
    EXPECT_FALSE(fits([&] { return normal(); }, odd)) << odd;
    EXPECT_FALSE(fits([&] { return normal(); }, -odd)) << odd;
  }
  EXPECT_FALSE(fits([&] { return 1e-30f * normal(); }, 0));
}

// Weights of a model, once and for all matrices of a batch; the first run decides.
TEST_F(GemmDigits, AreWhatAModelMultipliesBy) {
  constexpr int64_t kDepth = 200, kColumns = 128;
  struct Form {
    const char* weight;
    const char* node;
    int64_t matrices;
    bool turned;
  };
  for (const Form& form : {Form{"[200,128]", "MatMul (x, w)", 1, false},
                           Form{"[128,200]", "Gemm <transB = 1> (x, w)", 1, true},
                           Form{"[3,200,128]", "MatMul (x, w)", 3, false}})
    for (const int64_t first : {1, 20}) {
      std::vector<float> x(20 * kDepth), w(static_cast<size_t>(form.matrices * kDepth * kColumns));
      fill(x, [&] { return normal(); });
      fill(w, [&] { return normal(); });
      std::string text =
          "<ir_version: 11, opset_import: [\"\" : 21]>\nmain (float[n,200] x) => (y) <float";
      text += std::string(form.weight) + " w = {";
      for (size_t i = 0; i < w.size(); ++i) {
        char number[32];
        std::snprintf(number, sizeof number, i == 0 ? "%.9g" : ",%.9g", double{w[i]});
        text += number;
      }
      text += std::string("}> {\n y = ") + form.node + "\n}\n";
      auto model = parse_text(text);
      ASSERT_TRUE(model) << model.error().message;
      auto session = Session::create(*std::move(model));
      ASSERT_TRUE(session) << session.error().message;
      for (const int64_t rows : {first, int64_t{20}, int64_t{3}}) {
        const std::vector<float> some(x.begin(), x.begin() + rows * kDepth);
        const std::vector<int64_t> dims = {rows, kDepth};
        auto got = (*session)->run({{"x", Tensor::of<float>(DType::kFloat32, dims, some)}});
        ASSERT_TRUE(got) << got.error().message;
        const float* const y = (*got)[0].tensor().data<float>();
        for (int64_t b = 0; b < form.matrices; ++b)
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < kColumns; ++j) {
              double want = 0;
              for (int64_t p = 0; p < kDepth; ++p) {
                const int64_t at = form.turned ? j * kDepth + p : p * kColumns + j;
                want += double{x[static_cast<size_t>(i * kDepth + p)]} *
                        w[static_cast<size_t>(b * kDepth * kColumns + at)];
              }
              ASSERT_NEAR(y[(b * rows + i) * kColumns + j], want, 3e-5) << form.node << " " << rows;
            }
      }
    }
}

}  // namespace
}  // namespace tombolo
