// Weights of float32 in 28 bits: an eighth less memory, and the same bits.

#include "runtime/kernels/matmul/float28.h"

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

class Float28 : public EachIsa {
 protected:
  std::vector<float> numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(engine_);
    return values;
  }

  struct Packed {
    Float28Panels panels;
    std::vector<std::byte> matrix;
  };
  /// B, k x n or turned n x k, in pieces of some rows, as a weight is packed.
  static std::optional<Packed> pack(const std::vector<float>& b, int64_t k, int64_t n,
                                    bool turned) {
    OddFile file(b);
    const auto fits = float28_fits(file.data(), k, n, turned, file.read());
    if (!fits) return std::nullopt;
    EXPECT_TRUE(file.read_once());
    const int64_t width = gemm_tiles().panel(), count = (n + width - 1) / width;
    Packed packed{*fits, std::vector<std::byte>(static_cast<size_t>(fits->bytes(count)))};
    float28_begin(*fits, packed.matrix.data());
    constexpr int64_t kPiece = 24;
    std::vector<float> rows(static_cast<size_t>(kPiece * width));
    for (int64_t k0 = 0; k0 < k; k0 += kPiece)
      for (int64_t p = 0; p < count; ++p) {
        const int64_t some = std::min(kPiece, k - k0), columns = std::min(width, n - p * width);
        const int64_t row = turned ? 1 : n, column = turned ? k : 1;
        pack_b_panel(b.data() + k0 * row + p * width * column, row, column, some, columns, 1,
                     rows.data());
        float28_pack(rows.data(), k0, some, columns, *fits, p, packed.matrix.data());
      }
    return packed;
  }

  std::mt19937 engine_{3};
  std::normal_distribution<float> normal_;
};

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

// Few rows, one tile and many, parts of k, columns that end within a panel, groups that do not fit.
TEST_P(Float28, GivesTheBitsOfFloats) {
  for (const bool odd : {false, true})
    for (const bool turned : {false, true})
      for (const auto& [n, k] :
           {std::array<int64_t, 2>{32, 32}, {70, 35}, {256, 300}, {600, 1101}}) {
        std::vector<float> b = numbers(k * n);
        if (odd && k > 100) {
          const float values[] = {0.0f,  -0.0f,    0x1p-149f, 0x1p-126f, -0x1p-20f,
                                  1e38f, INFINITY, -INFINITY, NAN};
          for (size_t i = 0; i < 9; ++i) b[b.size() * i / 9 + i] = values[i];
        }
        std::vector<float> turned_b = b;
        if (turned)
          for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < n; ++j)
              turned_b[static_cast<size_t>(j * k + i)] = b[static_cast<size_t>(i * n + j)];
        const auto packed = pack(turned_b, k, n, turned);
        if (!packed) {
          ADD_FAILURE() << n << " x " << k;
          continue;
        }
        if (odd && k > 100) {
          EXPECT_GT(packed->panels.raws, 0);
        } else {
          EXPECT_LE(packed->panels.raws, packed->panels.groups() / 16 + 1);
        }
        std::vector<float> floats(static_cast<size_t>(packed_b_floats(k, n)) + 16);
        pack_b(b.data(), n, 1, k, n, 1, floats.data());
        for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 29, 130, 300}) {
          const std::vector<float> a = numbers(m * k), bias = numbers(n);
          GemmEpilogue epilogue;
          epilogue.col_bias = bias.data();
          const auto size = static_cast<size_t>(m * n);
          std::vector<float> want(size), got(size, -1);
          gemm(m, n, k, a.data(), k, floats.data(), want.data(), n, epilogue);
          gemm(m, n, k, a.data(), k, packed->matrix.data(), PanelFormat::kFloat28, got.data(), n,
               epilogue);
          for (size_t i = 0; i < size; ++i)
            if (!std::isnan(want[i]) || !std::isnan(got[i])) {
              ASSERT_EQ(bits(got[i]), bits(want[i]))
                  << m << " x " << n << " x " << k << " at " << i;
            }
        }
      }
}

TEST_P(Float28, LeavesAloneWhatItWouldMakeLarger) {
  for (const bool turned : {false, true}) {
    std::vector<float> b = numbers(256 * 128);
    for (size_t i = 0; i < b.size(); i += 7) b[i] = 0;
    EXPECT_FALSE(pack(b, 256, 128, turned));
    for (float& x : b) x = std::ldexp(normal_(engine_), static_cast<int>(engine_() % 60) - 30);
    EXPECT_FALSE(pack(b, 256, 128, turned));
  }
}

// A weight that no second cache holds; the first product has few rows, or is the first of a
// decoder.
TEST_P(Float28, TakesAnEighthLessMemory) {
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
    // One column of zeros: the others have the same bits.
    for (int64_t i = 0; i < kDepth; ++i)
      weights[static_cast<size_t>(c.turned ? i : i * kColumns)] = 0;
    const std::vector<float> floats = run(large);
    ASSERT_EQ(y.size(), floats.size());
    for (size_t i = 0; i < y.size(); ++i)
      if (i % kColumns != 0) {
        ASSERT_EQ(bits(y[i]), bits(floats[i])) << i;
      }
    EXPECT_LT(small * 10, large * 9);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Float28, ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& level) { return std::string(name_of(level.param)); });

}  // namespace
}  // namespace tombolo
