// Weights of float32 in 26 bits: a fifth less memory, and products nearer to the exact ones.

#include "runtime/kernels/matmul/fixed26.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "odd_file.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Fixed26 : public EachIsa {
 protected:
  std::vector<float> numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(engine_);
    return values;
  }

  struct Packed {
    Fixed26Panels panels;
    std::vector<std::byte> matrix;
  };
  /// B, k x n or turned n x k, in pieces of some rows, as a weight is packed.
  static std::optional<Packed> pack(const std::vector<float>& b, int64_t k, int64_t n,
                                    bool turned) {
    OddFile file(b);
    const auto fits = fixed26_fits(file.data(), k, n, turned, file.read());
    if (!fits) return std::nullopt;
    EXPECT_TRUE(file.read_once());
    const int64_t width = gemm_tiles().panel(), count = (n + width - 1) / width;
    Packed packed{*fits, std::vector<std::byte>(static_cast<size_t>(fits->bytes(count)))};
    fixed26_begin(*fits, packed.matrix.data());
    constexpr int64_t kPiece = 24;
    std::vector<float> rows(static_cast<size_t>(kPiece * width));
    for (int64_t k0 = 0; k0 < k; k0 += kPiece)
      for (int64_t p = 0; p < count; ++p) {
        const int64_t some = std::min(kPiece, k - k0), columns = std::min(width, n - p * width);
        const int64_t row = turned ? 1 : n, column = turned ? k : 1;
        pack_b_panel(b.data() + k0 * row + p * width * column, row, column, some, columns, 1,
                     rows.data());
        fixed26_pack(rows.data(), k0, some, *fits, p, packed.matrix.data());
      }
    return packed;
  }

  std::mt19937 engine_{3};
  std::normal_distribution<float> normal_;
};

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

/// The weights that products see, k x n.
std::vector<float> widened(const Fixed26Panels& panels, const std::vector<std::byte>& matrix,
                           int64_t k, int64_t n) {
  const int64_t width = 2 * panels.lanes;
  std::vector<float> b(static_cast<size_t>(k * n));
  std::vector<float> panel(static_cast<size_t>(panels.groups() * kFixed26Rows * width));
  for (int64_t p = 0; p * width < n; ++p) {
    fixed26_widen(panels, p, matrix.data(), panel.data());
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = p * width; j < std::min(n, (p + 1) * width); ++j)
        b[static_cast<size_t>(i * n + j)] = panel[static_cast<size_t>(i * width + j - p * width)];
  }
  return b;
}

/// Root of the mean square of what `c` misses of a b.
double error(const std::vector<float>& c, const std::vector<float>& a, const std::vector<float>& b,
             int64_t m, int64_t n, int64_t k) {
  double squares = 0;
  std::vector<double> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        row[static_cast<size_t>(j)] +=
            double{a[static_cast<size_t>(i * k + l)]} * double{b[static_cast<size_t>(l * n + j)]};
    for (int64_t j = 0; j < n; ++j)
      squares +=
          std::pow(double{c[static_cast<size_t>(i * n + j)]} - row[static_cast<size_t>(j)], 2);
  }
  return std::sqrt(squares / static_cast<double>(m * n));
}

std::vector<float> turned_of(const std::vector<float>& b, int64_t k, int64_t n) {
  std::vector<float> turned(b.size());
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      turned[static_cast<size_t>(j * k + i)] = b[static_cast<size_t>(i * n + j)];
  return turned;
}

// Columns that end within a panel, rows within a group, groups that do not fit.
TEST_P(Fixed26, RoundsToHalfOfWhatAFloatRoundsOffTheLargest) {
  for (const bool turned : {false, true})
    for (const auto& [n, k] :
         {std::array<int64_t, 2>{32, 32}, {70, 35}, {256, 300}, {97, 1101}, {600, 1101}}) {
      std::vector<float> b = numbers(k * n);
      for (size_t i = 0; i < b.size(); i += 11) b[i] = 0;
      if (k > 100) {
        const float odd[] = {-0.0f, 0x1p-149f, 0x1p-126f, 1e38f, INFINITY, -INFINITY, NAN};
        for (size_t i = 0; i < 7; ++i) b[b.size() * i / 7 + i] = odd[i];
      }
      const auto packed = pack(turned ? turned_of(b, k, n) : b, k, n, turned);
      if (!packed) {
        ADD_FAILURE() << n << " x " << k;
        continue;
      }
      const std::vector<float> got = widened(packed->panels, packed->matrix, k, n);
      const int64_t width = gemm_tiles().panel();
      int64_t exact = 0;
      for (int64_t row = 0; row < k; row += kFixed26Rows)
        for (int64_t column = 0; column < n; column += width) {
          const auto each = [&](auto&& look) {
            for (int64_t i = row; i < std::min(k, row + kFixed26Rows); ++i)
              for (int64_t j = column; j < std::min(n, column + width); ++j)
                look(b[static_cast<size_t>(i * n + j)], got[static_cast<size_t>(i * n + j)]);
          };
          float largest = 0;
          bool odd = false;
          each([&](float want, float) {
            largest = std::max(largest, std::abs(want));
            odd = odd || !(std::abs(want) < 1e30f);
          });
          const float power = std::exp2(std::floor(std::log2(largest)));
          each([&](float want, float is) {
            exact += bits(want) == bits(is);
            if (odd || want == 0 || std::abs(want) >= power / 2) {
              EXPECT_TRUE(odd ? bits(is) == bits(want) : is == want) << is << " for " << want;
            } else {
              EXPECT_LE(std::abs(want - is), power * 0x1p-25f) << is << " for " << want;
            }
          });
        }
      EXPECT_LT(exact, k * n * 3 / 4);  // most groups are not floats
    }
}

TEST_P(Fixed26, LeavesRowsAndColumnsWhatMatters) {
  constexpr int64_t kDepth = 256, kColumns = 160;
  for (const bool turned : {false, true})
    for (const bool rows : {false, true}) {
      std::vector<float> b = numbers(kDepth * kColumns);
      for (int64_t i = 0; i < kDepth; ++i)
        for (int64_t j = 0; j < kColumns; ++j)
          if ((rows ? i : j) == 40) b[static_cast<size_t>(i * kColumns + j)] *= 0x1p-12f;
      const auto packed =
          pack(turned ? turned_of(b, kDepth, kColumns) : b, kDepth, kColumns, turned);
      // Its groups keep their floats: a row's are one of each panel, a column's all of one.
      ASSERT_EQ(packed.has_value(), rows);
      if (!packed) continue;
      const std::vector<float> got = widened(packed->panels, packed->matrix, kDepth, kColumns);
      for (size_t j = 0; j < kColumns; ++j)
        EXPECT_EQ(bits(got[40 * kColumns + j]), bits(b[40 * kColumns + j])) << j;
    }
}

// Few rows, one tile and many, parts of k.
TEST_P(Fixed26, MultipliesWhatTheWeightsAre) {
  for (const auto& [n, k] :
       {std::array<int64_t, 2>{32, 32}, {70, 35}, {256, 300}, {131, 9000}, {600, 1101}}) {
    const std::vector<float> b = numbers(k * n);
    const auto packed = pack(b, k, n, false);
    if (!packed) {
      ADD_FAILURE() << n << " x " << k;
      continue;
    }
    const std::vector<float> rounded = widened(packed->panels, packed->matrix, k, n);
    std::vector<float> floats(static_cast<size_t>(packed_b_floats(k, n)) + 16);
    pack_b(rounded.data(), n, 1, k, n, 1, floats.data());
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 29, 130, 300}) {
      if (m > 29 && k > 2000) continue;
      const std::vector<float> a = numbers(m * k), bias = numbers(n);
      GemmEpilogue epilogue;
      epilogue.col_bias = bias.data();
      const auto size = static_cast<size_t>(m * n);
      std::vector<float> want(size), got(size, -1);
      const auto run = [&](std::vector<float>& c) {
        gemm(m, n, k, a.data(), k, packed->matrix.data(), PanelFormat::kFixed26, c.data(), n,
             epilogue);
      };
      gemm(m, n, k, a.data(), k, floats.data(), want.data(), n, epilogue);
      run(got);
      if (m > kMaxWideRows) {
        ASSERT_EQ(0, std::memcmp(got.data(), want.data(), size * sizeof(float)))
            << m << " x " << n << " x " << k;
        continue;
      }
      // Sums of eight first: nearer to the exact ones than one after the other, even though the
      // weights are rounded.
      epilogue = {};
      gemm(m, n, k, a.data(), k, floats.data(), want.data(), n, epilogue);
      for (const bool one_stream : {false, true}) {
        const Streams streams(one_stream);
        run(got);
        EXPECT_LE(error(got, a, b, m, n, k), error(want, a, rounded, m, n, k))
            << m << " x " << n << " x " << k;
      }
    }
  }
}

// Integers are up to 2^25 times as large as the weights they stand for.
TEST_P(Fixed26, TakesNumbersThatIntegersWouldMakeInfinite) {
  constexpr int64_t kDepth = 64, kColumns = 256;
  std::vector<float> b = numbers(kDepth * kColumns);
  for (float& x : b) x *= 0x1p-6f;
  const auto packed = pack(b, kDepth, kColumns, false);
  ASSERT_TRUE(packed);
  std::vector<float> a = numbers(3 * kDepth), got(3 * kColumns);
  a[5] = 0x1p127f;           // finite
  a[kDepth + 7] = INFINITY;  // of the sign of the weight
  a[2 * kDepth + 9] = -0x1.8p126f;
  gemm(3, kColumns, kDepth, a.data(), kDepth, packed->matrix.data(), PanelFormat::kFixed26,
       got.data(), kColumns, {});
  const std::vector<float> rounded = widened(packed->panels, packed->matrix, kDepth, kColumns);
  for (size_t j = 0; j < kColumns; ++j) {
    EXPECT_FLOAT_EQ(got[j], a[5] * rounded[5 * kColumns + j]);
    EXPECT_EQ(got[kColumns + j], a[kDepth + 7] * rounded[7 * kColumns + j]);
    EXPECT_FLOAT_EQ(got[2 * kColumns + j], a[2 * kDepth + 9] * rounded[9 * kColumns + j]);
  }
}

TEST_P(Fixed26, LeavesAloneWhatItWouldMakeLarger) {
  for (const bool turned : {false, true}) {
    std::vector<float> b = numbers(256 * 128);
    for (float& x : b) x = std::ldexp(normal_(engine_), static_cast<int>(engine_() % 60) - 30);
    EXPECT_FALSE(pack(b, 256, 128, turned));
    std::fill(b.begin(), b.end(), 0x1p-110f);
    EXPECT_FALSE(pack(b, 256, 128, turned));
    std::fill(b.begin(), b.end(), 0.0f);
    EXPECT_TRUE(pack(b, 256, 128, turned));
  }
}

// A weight that no second cache holds; the first product has few rows, or is the first of a
// decoder.
TEST_P(Fixed26, TakesAFifthLessMemory) {
  constexpr int64_t kDepth = 640, kColumns = 1030;
  struct Case {
    int64_t rows;
    bool decodes, turned;
  };
  for (const Case& c :
       {Case{1, false, false}, {1, false, true}, {20, true, false}, {130, true, false}}) {
    const std::vector<float> x = numbers(c.rows * kDepth);
    std::vector<float> weights = numbers(kDepth * kColumns);
    const auto run = [&](uint64_t& packed_bytes) {
      std::string text =
          std::string("<ir_version: 11, opset_import: [\"\" : 21]>\nmain (float[n,640] x") +
          (c.decodes ? ", float[p,640] past) => (y, present) <float[" : ") => (y) <float[");
      text += c.turned ? "1030,640" : "640,1030";
      text += "] w = {";
      for (size_t i = 0; i < weights.size(); ++i) {
        char number[32];
        std::snprintf(number, sizeof number, i == 0 ? "%.9g" : ",%.9g", double{weights[i]});
        text += number;
      }
      text += c.turned ? "}> {\n y = Gemm <transB = 1> (x, w)\n" : "}> {\n y = MatMul (x, w)\n";
      text += c.decodes ? " present = Concat <axis = 0> (past, x)\n}\n" : "}\n";
      auto session = Session::create(*parse_text(text));
      EXPECT_TRUE(session) << session.error().message;
      const std::vector<int64_t> dims = {c.rows, kDepth};
      std::vector<NamedValue> inputs = {{"x", Tensor::of<float>(DType::kFloat32, dims, x)}};
      if (c.decodes) inputs.push_back({"past", inputs[0].value});
      auto got = (*session)->run(inputs);
      EXPECT_TRUE(got) << got.error().message;
      packed_bytes = (*session)->packed_bytes();
      const Tensor& y = (*got)[0].tensor();
      return std::vector<float>(y.data<float>(), y.data<float>() + y.size());
    };
    uint64_t small = 0, large = 0;
    const std::vector<float> y = run(small);
    // One column of much smaller numbers: all are kept as floats.
    for (int64_t i = 0; i < kDepth; ++i)
      weights[static_cast<size_t>(c.turned ? i : i * kColumns)] *= 0x1p-20f;
    const std::vector<float> floats = run(large);
    ASSERT_EQ(y.size(), floats.size());
    for (size_t i = 0; i < y.size(); ++i)
      if (i % kColumns != 0) {
        ASSERT_NEAR(y[i], floats[i], 2e-4) << i;
      }
    // All weights of so small a model stay in a shared cache, and floats with vectors of 256 bits.
    if (gemm_tiles().lanes == 16)
      EXPECT_LT(small * 100, large * 84);
    else
      EXPECT_EQ(small, large);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Fixed26, ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& level) { return std::string(name_of(level.param)); });

}  // namespace
}  // namespace tombolo
