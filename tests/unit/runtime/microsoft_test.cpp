// Operators of com.microsoft at every instruction set of this machine, against the reference
// kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"
#include "runtime/kernels/matmul/nbits.h"

namespace tombolo {
namespace {

class Microsoft : public Operators {
 protected:
  Tensor codes(DType dtype, std::initializer_list<int64_t> dims) {
    const std::vector<int64_t> shape(dims);
    std::vector<uint8_t> values(static_cast<size_t>(element_count(shape)));
    for (uint8_t& value : values) value = static_cast<uint8_t>(engine_());
    if (dtype == DType::kUInt8) return Tensor::of<uint8_t>(dtype, shape, values);
    return Tensor::of<int8_t>(dtype, shape, std::vector<int8_t>(values.begin(), values.end()));
  }
  Tensor scales(std::initializer_list<int64_t> dims) {
    const std::vector<int64_t> shape(dims);
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values) value = static_cast<float>(1 + engine_() % 64) / 1024;
    return Tensor::of<float>(DType::kFloat32, shape, values);
  }
  /// "kind[dims] name = {0,200,13,...}": a constant of codes.
  std::string constant(const std::string& name, std::initializer_list<int64_t> dims) {
    const Tensor made = codes(DType::kUInt8, dims);
    return listed("uint8", name, made);
  }
  std::string constant_scales(const std::string& name, std::initializer_list<int64_t> dims) {
    return listed("float", name, scales(dims));
  }

 private:
  static std::string listed(const std::string& kind, const std::string& name, const Tensor& made) {
    std::string text = kind + "[";
    for (size_t i = 0; i < made.rank(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(made.dim(i));
    text += "] " + name + " = {";
    for (int64_t i = 0; i < made.size(); ++i)
      text += (i == 0 ? "" : ",") + (kind == "float" ? std::to_string(made.get_double(i))
                                                     : std::to_string(made.get_int64(i)));
    return text + "}";
  }
};

TEST_P(Microsoft, QLinearWhere) {
  for (const bool is_signed : {false, true})
    for (const char* z : {"0.02", "0.035"}) {
      const std::string kind = is_signed ? "int8" : "uint8";
      const DType dtype = is_signed ? DType::kInt8 : DType::kUInt8;
      const auto check = [&](std::initializer_list<int64_t> c, std::initializer_list<int64_t> x,
                             std::initializer_list<int64_t> y) {
        const std::vector<int64_t> shape(c);
        Tensor condition = *Tensor::allocate(DType::kBool, shape);
        for (int64_t i = 0; i < condition.size(); ++i) condition.set_int64(i, engine_() % 2);
        const auto rank = [](size_t count) {
          std::string text = "[";
          for (size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ",?";
          return text + "]";
        };
        agree("main (bool" + rank(c.size()) + " c, " + kind + rank(x.size()) + " x, " + kind +
                  rank(y.size()) + " y) => (z) <float s = {0.02}, float t = {" + z + "}, " + kind +
                  " o = {7}> { z = com.microsoft.QLinearWhere (c, x, s, o, y, t, o, t, o) }",
              {{"c", condition}, {"x", codes(dtype, x)}, {"y", codes(dtype, y)}});
      };
      check({3, 5000}, {3, 5000}, {3, 5000});
      check({7, 1, 33}, {7, 20, 33}, {1});
      check({40}, {1}, {3, 1});
    }
}

TEST_P(Microsoft, GatherBlockQuantized) {
  const Tensor places_of = places({2, 3}, 6);
  for (const int64_t bits : {2, 4, 8})
    for (const int gather : {0, 1, 2})
      for (const int quantize : {1, 2})
        for (const bool zeros : {false, true}) {
          const int64_t width = 40, deep = quantize == 1 ? 1 : 6, wide = quantize == 2 ? 3 : 40;
          const std::string node =
              "(uint8[?,?,?] w, int64[2,3] i, float[?,?,?] s, uint8[?,?,?] z) => (y) { y = "
              "com.microsoft.GatherBlockQuantized <bits = " +
              std::to_string(bits) + ", block_size = 16, gather_axis = " + std::to_string(gather) +
              ", quantize_axis = " + std::to_string(quantize) + "> (w, i, s" +
              (zeros ? ", z" : "") + ") }";
          agree("main " + node, {{"w", codes(DType::kUInt8, {6, 6, width * bits / 8})},
                                 {"i", places_of},
                                 {"s", scales({6, deep, wide})},
                                 {"z", codes(DType::kUInt8, {6, deep, (wide * bits + 7) / 8})}});
        }
}

TEST_P(Microsoft, InverseMatrices) {
  const std::string text = "main (float[N,M,M] x) => (y) { y = com.microsoft.Inverse (x) }";
  for (const int64_t n :
       {1, 2, 3, 4, 7, 8, 13, 16, 24, 31, 32, 33, 48, 49, 95, 96, 101, 129, 200}) {
    const Tensor x = numbers({n < 50 ? 11 : 2, n, n}, 1), alone = numbers({1, n, n}, 1);
    agree(text, {{"x", x}}, 1e-4);
    agree(text, {{"x", alone}}, 1e-4);
    agree(
        "main (float[N,M,M] x) => (y) { d = Cast <to = 11> (x)\n e = com.microsoft.Inverse (d)\n"
        " y = Cast <to = 1> (e) }",
        {{"x", x}}, 1e-4);
  }
  // Some that have no inverse or no number, and one whose rows are exchanged.
  for (const int64_t n : {5, 20, 40, 100}) {
    Tensor x = numbers({10, n, n}, 1);
    std::fill_n(x.data<float>() + n * (n / 2), n, 0.0f);
    x.data<float>()[2 * n * n + n + 1] = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < n * n; ++i)
      x.data<float>()[n * n + i] = (i / n + i % n) % n == n / 2 ? 2.0f : 0.0f;
    agree(text, {{"x", x}}, 1e-4);
  }
}

TEST_P(Microsoft, RealTransforms) {
  for (const int64_t n : {1, 2, 5, 16, 60, 97}) {
    agree("main (float[N,M] x) => (y) { y = com.microsoft.Rfft <signal_ndim = 1> (x) }",
          {{"x", numbers({9, n}, 0.3f)}}, 1e-6);
    agree("main (float[N,M,2] x) => (y) { y = com.microsoft.Irfft <signal_ndim = 1> (x) }",
          {{"x", numbers({9, n + 1, 2}, 0.3f)}}, 1e-6);
  }
}

// Rows of B are read where they lie for a few of A, and packed for more.
TEST_P(Microsoft, FewRowsTimesRows) {
  for (const int64_t m : {1, 2, 3, 5, 8, 13, 30})
    for (const int64_t n : {8, 9, 51})
      for (const int64_t k : {32, 45, 130})
        for (const char* alpha : {"1.0", "0.125"})
          agree(
              "main (float[B,M,K] a, float[B,N,K] b) => (y) { y = com.microsoft.FusedMatMul "
              "<transB = 1, alpha = " +
                  std::string(alpha) + "> (a, b) }",
              {{"a", numbers({2, m, k}, 1)}, {"b", numbers({2, n, k}, 1)}}, 2e-6);
}

TEST_P(Microsoft, ProductsWithWeightsOfFewBits) {
  for (const int64_t m : {1, 3, 9, 30})
    for (const int64_t bits : {2, 8})
      for (const bool zeros : {false, true})
        for (const int64_t level : {0, 1, 2, 3, 4, 5}) {
          // The odd ones without dot products of bytes and tiles.
          if (level % 2 == 1) limit_extras(Extras::kNone);
          // Few columns meet floats, many meet the bytes of them.
          const int64_t n = level < 2 ? 301 : 21, block = 32, k = 2 * block + 9, blocks = 3;
          agree("main (float[M," + std::to_string(k) + "] x) => (y) <" +
                    constant("w", {n, blocks, block * bits / 8}) + ", " +
                    constant_scales("s", {n * blocks}) + ", " +
                    constant("z", {n * ((blocks * bits + 7) / 8)}) +
                    "> { y = com.microsoft.MatMulNBits <K = " + std::to_string(k) +
                    ", N = " + std::to_string(n) + ", bits = " + std::to_string(bits) +
                    ", block_size = 32, accuracy_level = " + std::to_string(level / 4 * 4) +
                    "> (x, w, s" + (zeros ? ", z" : "") + ") }",
                {{"x", numbers({m, k}, 1)}}, level >= 4 ? 2e-2 : 1e-5);
          limit_extras(Extras::kTiles);
        }
}

// The option does what accuracy_level 4 asks for, unless blocks are long.
TEST_P(Microsoft, FastMathRoundsWhatMeetsShortBlocks) {
  const auto run = [&](const std::string& main, const Tensor& x, bool fast_math) {
    SessionOptions options;
    options.fast_math = fast_math;
    auto session = Session::create(*parse_text(model_text(main)), options);
    EXPECT_TRUE(session) << main;
    auto got = (*session)->run(std::vector<NamedValue>{{"x", x}});
    EXPECT_TRUE(got) << main;
    return (*got)[0].tensor();
  };
  const auto check = [&](const std::string& head, const std::string& node,
                         const std::string& inputs, const Tensor& x, bool is_short) {
    const bool rounds = is_short && nbits_has_bytes();
    const auto text = [&](int level) {
      return head + "> { y = com.microsoft." + node +
             ", accuracy_level = " + std::to_string(level) + "> " + inputs + " }";
    };
    const Tensor floats = run(text(0), x, false);
    EXPECT_EQ(run(text(0), x, true), rounds ? run(text(4), x, false) : floats) << node;
    EXPECT_EQ(run(text(0), x, true) != floats, rounds) << node;
  };
  for (const int64_t block : {32, 128, 256})
    for (const int64_t bits : {4, 8}) {
      const int64_t n = 21, k = 2 * block;
      check("main (float[5," + std::to_string(k) + "] x) => (y) <" +
                constant("w", {n, 2, block * bits / 8}) + ", " + constant_scales("s", {n * 2}),
            "MatMulNBits <K = " + std::to_string(k) + ", N = 21, bits = " + std::to_string(bits) +
                ", block_size = " + std::to_string(block),
            "(x, w, s)", numbers({5, k}, 1), block <= 128);
    }
  for (const int64_t block : {0, 16})
    check("main (float[9,24] x) => (y) <" + constant("w", {4, 32, 12}) + ", " +
              (block == 0 ? constant_scales("s", {4, 32}) : constant_scales("s", {4, 32, 2})) +
              ", " + constant("v", {4, 24, 16}) + ", " +
              (block == 0 ? constant_scales("t", {4, 24}) : constant_scales("t", {4, 24, 2})) +
              ", " + constant_scales("r", {9, 4}),
          std::string("QMoE <k = 2, expert_weight_bits = 4") +
              (block == 0 ? "" : ", block_size = 16"),
          "(x, r, w, s, , v, t)", numbers({9, 24}, 1), true);
}

TEST_P(Microsoft, NumbersThatHaveNoBytes) {
  const auto product = [&](float odd) {
    Tensor x = numbers({2, 64}, 1);
    x.data<float>()[70] = odd;
    for (const int64_t bits : {4, 8})
      for (const int64_t n : {5, 301})
        for (const Extras extras : {Extras::kTiles, Extras::kNone}) {
          limit_extras(extras);
          agree("main (float[2,64] x) => (y) <" + constant("w", {n, 2, 4 * bits}) + ", " +
                    constant_scales("s", {2 * n}) +
                    "> { y = com.microsoft.MatMulNBits <K = 64, N = " + std::to_string(n) +
                    ", bits = " + std::to_string(bits) + ", block_size = 32> (x, w, s) }",
                {{"x", x}}, 1e-5);
          limit_extras(Extras::kTiles);
        }
  };
  product(INFINITY);
  product(std::numeric_limits<float>::quiet_NaN());
  product(3e38f);
  product(1e-38f);
}

// Digits where there are tiles; blocks of rows, of which the last is smaller.
TEST_P(Microsoft, ManyRowsTimesWeightsOfFewBits) {
  for (const int64_t m : {100, 301})
    for (const int64_t block : {32, 256})
      for (const int64_t bits : {4, 8})
        for (const float odd : {0.0f, INFINITY, 1e30f}) {
          const int64_t n = m < 200 ? 250 : 100, k = 2 * block * (block == 32 ? 9 : 2) - 5;
          const int64_t blocks = (k + block - 1) / block;
          Tensor x = numbers({m, k}, 1);
          if (odd != 0) x.data<float>()[3 * k + 7] = odd;
          agree("main (float[M," + std::to_string(k) + "] x) => (y) <" +
                    constant("w", {n, blocks, block * bits / 8}) + ", " +
                    constant_scales("s", {n * blocks}) +
                    "> { y = com.microsoft.MatMulNBits <K = " + std::to_string(k) +
                    ", N = " + std::to_string(n) + ", bits = " + std::to_string(bits) +
                    ", block_size = " + std::to_string(block) + "> (x, w, s) }",
                {{"x", x}}, 1e-5);
        }
}

// Some rows of floats, which tiles take as pieces: of halves there are fewer.
TEST_P(Microsoft, SomeRowsTimesWeightsOfFewBits) {
  for (const int64_t m : {13, 16, 17, 40})
    for (const int64_t n : {7, 16, 33, 70})
      for (const int64_t bits : {4, 8})
        for (const int type : {1, 10, 16}) {
          const int64_t block = m == 17 ? 64 : 32, k = 3 * block - 9;
          agree("main (float[M," + std::to_string(k) + "] x, float[" + std::to_string(n) +
                    "] b) => (y) <" + constant("w", {n, 3, block * bits / 8}) + ", " +
                    constant_scales("s", {n * 3}) + ", " +
                    constant("z", {n * ((3 * bits + 7) / 8)}) +
                    "> { h = Cast <to = " + std::to_string(type) +
                    "> (x)\n f = Cast <to = 1> (h)\n y = com.microsoft.MatMulNBits <K = " +
                    std::to_string(k) + ", N = " + std::to_string(n) +
                    ", bits = " + std::to_string(bits) + ", block_size = " + std::to_string(block) +
                    "> (f, w, s, " + (n % 2 == 0 ? "z, " : ", ") + ", b) }",
                {{"x", numbers({m, k}, 1)}, {"b", numbers({n}, 1)}}, 1e-5);
        }
}

TEST_P(Microsoft, ProductsWithFormatsOfBitsandbytes) {
  for (const int64_t m : {1, 3, 30})
    for (const int kind : {0, 1})
      agree("main (float[M,64] x) => (y) <" + constant("w", {21 * 32}) + ", " +
                constant_scales("s", {42}) +
                "> { y = com.microsoft.MatMulBnb4 <K = 64, N = 21, block_size = 32, quant_type = " +
                std::to_string(kind) + "> (x, w, s) }",
            {{"x", numbers({m, 64}, 1)}}, 1e-5);
}

TEST_P(Microsoft, MixturesOfExperts) {
  for (const int64_t rows : {1, 13, 700})
    for (const char* activation :
         {"\"relu\"", "\"gelu\"", "\"silu\"", "\"identity\"",
          "\"swiglu\", swiglu_fusion = 1, swiglu_limit = 0.5, activation_beta = 1.0",
          "\"swiglu\", swiglu_fusion = 2, activation_alpha = 1.7"}) {
      const std::vector<NamedValue> inputs = {
          {"x", numbers({rows, 24}, 1)}, {"r", numbers({rows, 4}, 1)}, {"b", numbers({4, 32}, 1)}};
      const bool mixes = activation == std::string("\"silu\"");
      const bool gated = std::string(activation).find("fusion") != std::string::npos;
      const int64_t inner = gated ? 16 : 32;
      const std::string head = "main (float[R,24] x, float[R,4] r, float[4,32] b) => (y) <";
      const std::string attributes =
          std::string("<k = 2, ") +
          (mixes ? "use_sparse_mixer = 1" : "normalize_routing_weights = 1") +
          ", activation_type = " + activation;
      agree(head + constant_scales("w", {4, 32, 24}) + ", " + constant_scales("v", {4, 24, inner}) +
                "> { y = com.microsoft.MoE " + attributes + "> (x, r, w, b, v) }",
            inputs, 1e-5);
      // Weights that come with the run, also of 16 bits.
      std::vector<NamedValue> all = inputs;
      all.push_back({"w", numbers({4, 32, 24}, 0.2f)});
      all.push_back({"v", numbers({4, 24, inner}, 0.2f)});
      const std::string open =
          "main (float[R,24] x, float[R,4] r, float[4,32] b, float[4,32,24] "
          "w, float[4,24," +
          std::to_string(inner) + "] v) => (y) { ";
      agree(open + "y = com.microsoft.MoE " + attributes + "> (x, r, w, b, v) }", all, 1e-5);
      agree(open + "p = Cast <to = 10> (w)\n q = Cast <to = 10> (v)\n y = com.microsoft.MoE " +
                attributes + "> (x, r, p, b, q) }",
            all, 1e-5);
      for (const int64_t bits : {2, 4, 8})
        for (const int64_t block : {0, 16}) {
          const int64_t first = block == 0 ? 1 : 2, second = block == 0 ? 1 : inner / 16;
          const auto zeros_of = [&](int64_t out, int64_t blocks) {
            return block == 0 ? constant("z", {4, (out * bits + 7) / 8})
                              : constant("z", {4, out, (blocks * bits + 7) / 8});
          };
          agree(head + constant("w", {4, 32, 24 * bits / 8}) + ", " +
                    constant_scales("s", {4, 32, first}) + ", " +
                    constant("v", {4, 24, inner * bits / 8}) + ", " +
                    constant_scales("t", {4, 24, second}) + ", " + zeros_of(32, first) +
                    "> { y = com.microsoft.QMoE " + attributes + ", expert_weight_bits = " +
                    std::to_string(bits) + (block == 0 ? "" : ", block_size = 16") +
                    "> (x, r, w, s, b, v, t" + (bits == 4 ? ", , , , , z" : "") + ") }",
                inputs, 1e-5);
        }
    }
}

TEST_P(Microsoft, NormsOfGroups) {
  for (const int last : {0, 1})
    for (const int activation : {0, 1}) {
      const std::string attributes =
          "<groups = 4, epsilon = 0.01, channels_last = " + std::to_string(last) +
          ", activation = " + std::to_string(activation) + "> ";
      const Tensor x = last != 0 ? numbers({2, 9, 7, 20}, 1) : numbers({2, 20, 9, 7}, 1);
      const std::vector<NamedValue> inputs = {
          {"x", x},
          {"g", numbers({20}, 1)},
          {"b", numbers({20}, 1)},
          {"s", last != 0 ? numbers({2, 9, 7, 20}, 1) : numbers({2, 20, 9, 7}, 1)},
          {"t", numbers({2, 20}, 1)}};
      const std::string head =
          "main (float[?,?,?,?] x, float[20] g, float[20] b, float[?,?,?,?] s, float[2,20] t) => (";
      agree(head + "y) { y = com.microsoft.GroupNorm " + attributes + "(x, g, b) }", inputs, 1e-5);
      agree(head + "y, z) { y, z = com.microsoft.SkipGroupNorm " + attributes + "(x, g, b, s, g) }",
            inputs, 1e-5);
      agree(head + "y) { y = com.microsoft.SkipGroupNorm " + attributes + "(x, g, b, t) }", inputs,
            1e-5);
    }
}

TEST_P(Microsoft, AttentionWithItsCache) {
  const Tensor w = numbers({24, 72}, 0.3f), b = numbers({72}, 0.3f);
  for (const int64_t steps : {1, 4})
    for (const int64_t past : {0, 5})
      for (const int causal : {0, 1})
        for (const int masked : {0, 2, 3}) {
          const int64_t all = steps + past;
          Tensor mask =
              *Tensor::allocate(DType::kInt32, masked == 3 ? std::vector<int64_t>{2, steps, all}
                                                           : std::vector<int64_t>{2, all});
          for (int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, engine_() % 4 == 0 ? 0 : 1);
          agree("main (float[2,S,24] x, float[24,72] w, float[72] b, int32[" +
                    std::string(masked == 3 ? "2,S,T" : "2,T") +
                    "] m, float[2,2,3,P,8] p) => (y, z) { y, z = com.microsoft.Attention "
                    "<num_heads = 3, unidirectional = " +
                    std::to_string(causal) + "> (x, w, b, " + (masked != 0 ? "m" : "") + ", p) }",
                {{"x", numbers({2, steps, 24}, 0.3f)},
                 {"w", w},
                 {"b", b},
                 {"m", mask},
                 {"p", numbers({2, 2, 3, past, 8}, 0.3f)}},
                1e-5);
        }
  agree(
      "main (float[2,4,24] x, float[24,72] w, float[72] b) => (y, z) { y, z = "
      "com.microsoft.Attention <num_heads = 3, unidirectional = 1> (x, w, b) }",
      {{"x", numbers({2, 4, 24}, 0.3f)}, {"w", w}, {"b", b}}, 1e-5);
}

TEST_P(Microsoft, AttentionToKeysThatLieAsHeads) {
  for (const int64_t steps : {1, 5}) {
    const std::vector<NamedValue> inputs = {{"x", numbers({2, steps, 24}, 0.3f)},
                                            {"k", numbers({2, 3, 7, 8}, 0.3f)},
                                            {"v", numbers({2, 3, 7, 12}, 0.3f)},
                                            {"b", numbers({84}, 0.3f)}};
    const std::string head =
        "main (float[2,S,24] x, float[2,3,7,8] k, float[2,3,7,12] v, "
        "float[84] b) => (y) { y = com.microsoft.MultiHeadAttention "
        "<num_heads = 3> (x, k, v";
    agree(head + ") }", inputs, 1e-5);
    agree(head + ", b) }", inputs, 1e-5);
  }
}

TEST_P(Microsoft, CausalAttentionWithMaskAndCache) {
  for (const int64_t steps : {1, 4}) {
    Tensor mask = *Tensor::allocate(DType::kInt32, std::vector<int64_t>{2, steps + 5});
    for (int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, engine_() % 4 == 0 ? 0 : 1);
    agree(
        "main (float[2,S,24] x, int32[2,T] m, float[2,3,5,8] a, float[2,3,5,8] b) => (y, c, d) { "
        "y, c, d = com.microsoft.MultiHeadAttention <num_heads = 3, unidirectional = 1> (x, x, x, "
        ", m, , a, b) }",
        {{"x", numbers({2, steps, 24}, 0.3f)},
         {"m", mask},
         {"a", numbers({2, 3, 5, 8}, 0.3f)},
         {"b", numbers({2, 3, 5, 8}, 0.3f)}},
        1e-5);
  }
}

TEST_P(Microsoft, LinearAttention) {
  // Sizes of a state: less than a strip of columns, whole ones and a part, and rows for which
  // strips are narrow.
  for (const auto& [keys, values] :
       {std::pair<int64_t, int64_t>{5, 37}, {6, 130}, {260, 64}, {1, 1}})
    for (const int64_t steps : {1, 3, 70})
      for (const char* rule : {"linear", "gated", "delta", "gated_delta"})
        for (const int per_key : {0, 1})
          for (const int heads : {1, 2, 4}) {
            // Two states; a query of four, two or one head.
            if (keys > 100 && (heads != 4 || steps == 70)) continue;
            const bool gated = std::string(rule).find("gated") == 0;
            const bool delta = std::string(rule).find("delta") != std::string::npos;
            const int64_t gates = per_key == 1 ? 2 * keys : 2;
            Tensor decay = numbers({2, steps, gates}, 0.3f),
                   beta = numbers({2, steps, 2 - per_key}, 1);
            for (float& value : decay.span<float>()) value = -std::fabs(value);
            for (float& value : beta.span<float>()) value = std::fabs(value) / 4;
            const float size = keys > 100 ? 0.05f : 0.3f;
            agree(
                "main (float[2,S,?] q, float[2,S,?] k, float[2,S,?] v, float[2,2,?,?] s, "
                "float[2,S,?] g, float[2,S,?] b) => (y, z) { y, z = com.microsoft.LinearAttention "
                "<q_num_heads = " +
                    std::to_string(heads) + ", kv_num_heads = 2, update_rule = \"" +
                    std::string(rule) + "\"> (q, k, v, " + (per_key == 1 && steps == 3 ? "" : "s") +
                    ", " + (gated ? "g" : "") + ", " + (delta ? "b" : "") + ") }",
                {{"q", numbers({2, steps, keys * heads}, size)},
                 {"k", numbers({2, steps, 2 * keys}, size)},
                 {"v", numbers({2, steps, 2 * values}, 0.3f)},
                 {"s", numbers({2, 2, keys, values}, 0.3f)},
                 {"g", decay},
                 {"b", beta}},
                2e-5);
          }
}

TEST_P(Microsoft, CausalConvWithState) {
  for (const int64_t length : {1, 2, 50})
    for (const char* activation : {"none", "silu"})
      for (const char* more : {"", ", b", ", , s", ", b, s"})
        agree(
            "main (float[2,9,L] x, float[9,1,4] w, float[9] b, float[2,9,3] s) => (y, z) { y, z "
            "= com.microsoft.CausalConvWithState <activation = \"" +
                std::string(activation) + "\"> (x, w" + more + ") }",
            {{"x", numbers({2, 9, length}, 1)},
             {"w", numbers({9, 1, 4}, 1)},
             {"b", numbers({9}, 1)},
             {"s", numbers({2, 9, 3}, 1)}},
            1e-5);
}

TEST_P(Microsoft, SparseAttention) {
  // Two layouts of four blocks of 4 keys, for six heads over three of keys and values.
  const std::string layout =
      "int32[2,5] r = {0,1,3,5,7, 0,1,2,4,8}, int32[2,8] c = {0,0,1,0,2,0,3,0, 0,1,0,2,0,1,2,3}";
  for (const int rotary : {0, 1})
    for (const int64_t steps : {1, 9}) {
      const int64_t total = steps == 1 ? 14 : steps;
      const std::string count = std::to_string(total), rows = std::to_string(steps);
      agree("main (float[2," + rows + ",48] q, float[2," + rows + ",24] k, float[2," + rows +
                ",24] v, float[2,3,16,8] a, float[2,3,16,8] b, float[16,4] e, float[16,4] f) => "
                "(y, g, h) <" +
                layout + ", int32 t = {" + count + "}, int32[2] l = {" + count + "," +
                std::to_string(total - (steps == 1 ? 5 : 0)) +
                "}> { y, g, h = com.microsoft.SparseAttention <num_heads = 6, kv_num_heads = 3, "
                "sparse_block_size = 4, do_rotary = " +
                std::to_string(rotary) + "> (q, k, v, a, b, r, c, t, l, e, f) }",
            {{"q", numbers({2, steps, 48}, 0.3f)},
             {"k", numbers({2, steps, 24}, 0.3f)},
             {"v", numbers({2, steps, 24}, 0.3f)},
             {"a", numbers({2, 3, 16, 8}, 0.3f)},
             {"b", numbers({2, 3, 16, 8}, 0.3f)},
             {"e", numbers({16, 4}, 1)},
             {"f", numbers({16, 4}, 1)}},
            1e-5);
    }
}

TEST_P(Microsoft, FusedProducts) {
  const std::vector<NamedValue> inputs = {
      {"x", numbers({5, 17}, 1)}, {"w", numbers({9, 17}, 1)}, {"b", numbers({9}, 1)}};
  for (const char* activation : {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Softplus"})
    agree(
        "main (float[5,17] x, float[9,17] w, float[9] b) => (y) { y = com.microsoft.FusedGemm "
        "<transB = 1, alpha = 0.5, beta = 2.0, activation = \"" +
            std::string(activation) + "\"> (x, w, b) }",
        inputs, 1e-5);
  agree(
      "main (float[5,17] x, float[9,17] w) => (y) { y = com.microsoft.TransposeMatMul "
      "<transB = 1, alpha = 0.5> (x, w) }",
      {inputs[0], inputs[1]}, 1e-5);
}

TEST_P(Microsoft, Distances) {
  for (const char* metric : {"euclidean", "sqeuclidean"})
    for (const int64_t rows : {1, 6, 12, 70})
      for (const int64_t columns : {1, 15, 40, 100}) {
        const std::vector<NamedValue> inputs = {{"a", numbers({rows, 13}, 1)},
                                                {"b", numbers({columns, 13}, 1)}};
        const std::string node = std::string("com.microsoft.CDist <metric = \"") + metric + "\"> ";
        agree("main (float[A,C] a, float[B,C] b) => (y) { y = " + node + "(a, b) }", inputs, 1e-6);
        agree(
            "main (float[A,C] a, float[B,C] b) => (y) { c = Cast <to = 11> (a)\n"
            " d = Cast <to = 11> (b)\n e = " +
                node + "(c, d)\n y = Cast <to = 1> (e) }",
            inputs, 1e-6);
      }
}

// Of many features from products: rows that are equal, or all near each other, are not.
TEST_P(Microsoft, DistancesOfManyFeatures) {
  for (const char* metric : {"euclidean", "sqeuclidean"})
    for (const int64_t width : {48, 67, 200})
      for (const bool odd : {false, true}) {
        const Tensor a = numbers({40, width}, 1, odd);
        const std::string node = std::string("com.microsoft.CDist <metric = \"") + metric + "\"> ";
        for (const Tensor& b : {a, numbers({70, width}, 1)})
          for (const char* offset : {"0", "50"}) {
            const std::string head =
                std::string("main (float[A,C] a, float[B,C] b) => (y) <float h = {") + offset +
                "}> { c = Add (a, h)\n d = Add (b, h)\n ";
            agree(head + "y = " + node + "(c, d) }", {{"a", a}, {"b", b}}, 3e-6);
            agree(head + "e = Cast <to = 11> (c)\n f = Cast <to = 11> (d)\n g = " + node +
                      "(e, f)\n y = Cast <to = 1> (g) }",
                  {{"a", a}, {"b", b}}, 1e-6);
          }
      }
}

TEST_P(Microsoft, EmbeddingsOfCodes) {
  const std::string scale = ", float e = {0.01}, uint8 o = {120}";
  const Tensor ids = Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{1, 4},
                                         std::vector<int32_t>{3, 0, 6, 3});
  const std::string head = "main (int32[1,4] i) => (y) <" + constant("w", {7, 16}) + ", " +
                           constant("p", {5, 16}) + ", " + constant("q", {7, 16}) + ", " +
                           constant("g", {16}) + ", " + constant("h", {16}) + scale +
                           "> { y, m = com.microsoft.QEmbedLayerNormalization ";
  agree(head + "(i, , w, p, , g, h, , e, e, , e, e, o, o, , o, o) }", {{"i", ids}}, 1e-5);
  agree(head + "(i, i, w, p, q, g, h, , e, e, e, e, e, o, o, o, o, o) }", {{"i", ids}}, 1e-5);
}

TEST_P(Microsoft, EmbeddingsOfBert) {
  const Tensor ids = Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{2, 3},
                                         std::vector<int32_t>{3, 0, 6, 3, 1, 1});
  const std::vector<NamedValue> inputs = {
      {"i", ids}, {"w", numbers({7, 16}, 1)}, {"p", numbers({5, 16}, 1)}, {"g", numbers({16}, 1)}};
  const std::string head =
      "main (int32[2,3] i, float[7,16] w, float[5,16] p, float[16] g) => (y, m) { y, m = "
      "com.microsoft.EmbedLayerNormalization <epsilon = 0.01> (i, ";
  for (const char* rest :
       {", w, p, , g, g", "i, w, p, w, g, g", ", w, p, , g, g, i", "i, w, p, w, g, g, i, "})
    agree(head + rest + ") }", inputs, 1e-5);
}

TEST_P(Microsoft, ProductsWithBlocksInAnyOrder) {
  for (const int64_t m : {1, 30})
    for (const int64_t bits : {2, 4, 8})
      for (const int64_t last : {16, 9}) {
        // Three blocks of 16, the last one perhaps not full.
        const int64_t n = 21, k = 32 + last;
        std::vector<int64_t> blocks(static_cast<size_t>(k));
        for (int64_t i = 0; i < k; ++i) blocks[static_cast<size_t>(i)] = i / 16;
        std::shuffle(blocks.begin(), blocks.end(), engine_);
        std::string order;
        for (const int64_t block : blocks)
          order += (order.empty() ? "" : ",") + std::to_string(block);
        agree(
            "main (float[M," + std::to_string(k) + "] x) => (y) <" +
                constant("w", {n, 3, 16 * bits / 8}) + ", " + constant_scales("s", {n * 3}) + ", " +
                constant("z", {n * ((3 * bits + 7) / 8)}) + ", int32[" + std::to_string(k) +
                "] g = {" + order + "}> { y = com.microsoft.MatMulNBits <K = " + std::to_string(k) +
                ", N = 21, bits = " + std::to_string(bits) + ", block_size = 16> (x, w, s, z, g) }",
            {{"x", numbers({m, k}, 1)}}, 1e-5);
      }
}

TEST_P(Microsoft, SumsAndProductsOfCodes) {
  for (const char* op : {"QLinearAdd", "QLinearMul"})
    for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
      const std::string kind = dtype == DType::kUInt8 ? "uint8" : "int8";
      const auto check = [&](std::initializer_list<int64_t> x, std::initializer_list<int64_t> y) {
        agree("main (" + kind + "[A,B,C] x, " + kind +
                  "[D,E,F] y) => (z) <float s = {0.5}, float "
                  "t = {0.25}, float u = {2.0}, " +
                  kind + " o = {7}> { z = com.microsoft." + op + " (x, s, o, y, t, o, u, o) }",
              {{"x", codes(dtype, x)}, {"y", codes(dtype, y)}});
      };
      check({3, 7, 50}, {3, 7, 50});
      check({3, 7, 50}, {1, 7, 1});
      check({1, 7, 1}, {3, 7, 50});
      check({2, 3, 5000}, {1, 1, 1});
      check({2, 7, 50}, {1, 1, 50});
      check({2, 7, 1}, {1, 7, 130});
      check({1, 70, 9}, {30, 70, 1});
      check({40, 1, 3}, {1, 50, 3});
    }
}

TEST_P(Microsoft, PoolsOfCodes) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    const std::string kind = dtype == DType::kUInt8 ? "uint8" : "int8";
    const std::string head = "main (" + kind + "[N,A,B,C] x) => (z) <float s = {0.5}, " + kind +
                             " o = {7}> { z = com.microsoft.";
    const std::vector<NamedValue> x = {{"x", codes(dtype, {2, 9, 7, 83})}};
    agree(head +
              "NhwcMaxPool <kernel_shape = [3,2], strides = [2,1], pads = [1,1,1,0], dilations "
              "= [2,1]> (x) }",
          x);
    agree(head + "QLinearGlobalAveragePool <channels_last = 0> (x, s, o, s, o) }", x);
    agree(head + "QLinearGlobalAveragePool <channels_last = 1> (x, s, o, s, o) }", x);
    agree(head + "QLinearGlobalAveragePool <channels_last = 1> (x, s, o, s, o) }",
          {{"x", codes(dtype, {1, 20, 20, 40})}});
    agree(head + "QLinearConcat <axis = 3> (s, o, x, s, o, x, s, o) }", x);
  }
}

TEST_P(Microsoft, SoftmaxOfCodesAlongAnyAxis) {
  for (const int axis : {0, 1, 2})
    agree(
        "main (uint8[5,9,70] x) => (z) <float s = {0.03}, uint8 o = {7}, float t = {0.00390625}, "
        "uint8 u = {0}> { z = com.microsoft.QLinearSoftmax <opset = 13, axis = " +
            std::to_string(axis) + "> (x, s, o, t, u) }",
        {{"x", codes(DType::kUInt8, {5, 9, 70})}});
}

TEST_P(Microsoft, WordsFromCharacters) {
  Tensor text = *Tensor::allocate(DType::kInt32, std::vector<int64_t>{9, 7});
  for (int64_t i = 0; i < text.size(); ++i)
    text.set_int64(i, i % 7 < i / 7 ? static_cast<int64_t>(1 + engine_() % 10) : 0);
  for (const int64_t window : {1, 3, 7})
    agree("main (int32[9,7] i, float[19] b, float[11,6] c) => (y) <" +
              constant_scales("w", {19, 1, window, 6}) +
              "> { y = com.microsoft.WordConvEmbedding (i, w, b, c) }",
          {{"i", text}, {"b", numbers({19}, 1)}, {"c", numbers({11, 6}, 1)}}, 1e-5);
}

TEST_P(Microsoft, InWordsOfTheStandard) {
  Tensor mask = *Tensor::allocate(DType::kInt32, std::vector<int64_t>{1, 4, 9, 8});
  for (int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, engine_() % 3 == 0 ? 0 : 1);
  agree(
      "main (float[2,4,9,8] x, int32[1,4,9,8] m) => (y) { y = com.microsoft.MaxpoolWithMask "
      "<kernel_shape = [3,2], strides = [2,1], pads = [1,0,1,0]> (x, m) }",
      {{"x", numbers({2, 4, 9, 8}, 1)}, {"m", mask}});
  agree("main (float[N] x) => (y, i, c) { y, i, c = com.microsoft.Unique (x) }",
        {{"x", numbers({50}, 1)}});
  const Tensor pads =
      Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{4}, std::vector<int64_t>{1, 0, 2, 1});
  agree(
      "main (float[1,3,5,6] x, float[3,2,4,4] w, int64[4] p, float[2] b) => (y) { y = "
      "com.microsoft.ConvTransposeWithDynamicPads <strides = [2,2], output_padding = [1,0]> (x, "
      "w, p, b) }",
      {{"x", numbers({1, 3, 5, 6}, 1)},
       {"w", numbers({3, 2, 4, 4}, 1)},
       {"p", pads},
       {"b", numbers({2}, 1)}},
      1e-5);
  for (const char* sides : {"transBatchA = 1", "transBatchB = 1", "transBatchA = 1, transA = 1"})
    agree("main (float[4,4,4,4] a, float[4,4,4,4] b) => (y) { y = com.microsoft.FusedMatMul <" +
              std::string(sides) + "> (a, b) }",
          {{"a", numbers({4, 4, 4, 4}, 1)}, {"b", numbers({4, 4, 4, 4}, 1)}}, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Isa, Microsoft,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
