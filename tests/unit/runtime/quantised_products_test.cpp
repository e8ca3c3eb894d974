// Quantised products of matrices.

#include "each_isa.h"
#include "quantised_fixture.h"

namespace tombolo {
namespace {

TEST_F(Quantised, ProductsOfGroupsOfEachKind) {
  // Neighbours that are too large together in one order of their four bytes, in two, or in all, and
  // those that two groups may be added of: sums are exact.
  const int64_t patterns[][4] = {
      {127, 2, 1, 0},           {127, 127, 0, 0},    {-128, 0, -128, 1}, {100, 90, 80, 70},
      {-128, -1, -1, -1},       {127, -128, 127, 0}, {64, 64, 64, 64},   {-64, -64, -64, -64},
      {65, 64, 0, 0},           {0, 127, 127, 127},  {3, -2, 9, 1},      {0, 0, 0, 0},
      {-128, -128, -128, -128}, {20, 30, 10, 15},    {32, 32, 32, 32},   {127, 1, 127, 1}};
  for (const int64_t k : {4, 30, 256, 1031})
    for (const int64_t n : {16, 37})
      for (const int64_t m : {1, 7, 23})
        for (const int kinds : {16, 3}) {
          std::vector<int64_t> w(static_cast<size_t>(k * n));
          for (int64_t g = 0; g < k; g += 4)
            for (int64_t j = 0; j < n; ++j) {
              // Mostly small, as one large column decides for all.
              const bool large = integer(0, kinds == 3 ? 40 : 8) == 0;
              const auto& pattern = patterns[large ? integer(0, 15) : integer(10, 11)];
              for (int64_t i = g; i < std::min(k, g + 4); ++i)
                w[static_cast<size_t>(i * n + j)] = pattern[i - g];
            }
          const std::string text =
              "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (uint8[" + list({m, k}) +
              "] x) => (int32[m,n] y) <" +
              given("int8[" + list({k, n}) + "] w", k * n,
                    [&](int64_t i) { return w[static_cast<size_t>(i)]; }) +
              ", uint8 z = {255}, int8 wz = {0}> {\n y = MatMulInteger (x, w, z, wz)\n}\n";
          Tensor x = codes({m, k}, false);
          agree(text, x, 0, "matmul_integer");
          for (int64_t i = 0; i < x.size(); ++i)
            x.data<uint8_t>()[i] = integer(0, 9) == 0 ? 0 : 255;
          agree(text, x, 0, "matmul_integer");
        }
}

TEST_F(Quantised, DynamicProducts) {
  for (const int64_t m : {1, 5, 33})
    for (const bool is_signed : {false, true}) {
      const int64_t k = 70, n = 45;
      const std::string t = is_signed ? "int8" : "uint8";
      const std::string text =
          "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (float[1,m," + std::to_string(k) +
          "] x) => (float[1,m,n] y) <" +
          constant(t, "w", {k, n}, is_signed ? -128 : 0, is_signed ? 127 : 255) + ", " +
          constant(t, "wz", {}, is_signed ? -3 : 110, is_signed ? 4 : 140) +
          ", float ws = {0.01}, float[45] c = {0.5" +
          [] {
            std::string more;
            for (int i = 1; i < 45; ++i) more += ",0.25";
            return more;
          }() +
          "}> {\n q, s, z = DynamicQuantizeLinear (x)\n i = MatMulInteger (q, "
          "w, z, wz)\n"
          " f = Cast <to = 1> (i)\n m = Mul (s, ws)\n p = Mul (f, m)\n y = Add "
          "(p, c)\n}\n";
      agree(text, floats({1, m, k}), 1e-4, "matmul_integer_to_float");
    }
}

TEST_F(Quantised, ProductsOfManyMatrices) {
  for (const int64_t m : {1, 7, 40})
    for (const bool is_signed : {false, true}) {
      const std::string t = is_signed ? "int8" : "uint8";
      const std::string low = is_signed ? "-128" : "0", zero = is_signed ? "-20" : "107";
      const std::string head = "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (" + t + "[" +
                               list({2, 3, m, 37}) + "] x) => (";
      const std::string zeros = t + " xz = {" + zero + "}, " + t + " wz = {" + low + "}";
      const Tensor x = codes({2, 3, m, 37}, is_signed);
      const std::string turned = " t = Transpose <perm = [0, 1, 3, 2]> (x)\n";
      agree(head + "int32[a,b,c,d] y) <" + zeros + "> {\n" + turned +
                " y = MatMulInteger (x, t, xz, xz)\n}\n",
            x, 0, "matmul_integer");
      const std::string w =
          constant(t, "w", {3, 37, 18}, is_signed ? -128 : 0, is_signed ? 127 : 255);
      agree(head + "int32[a,b,c,d] y) <" + zeros + ", " + w +
                "> {\n y = MatMulInteger (x, w, xz, wz)\n}\n",
            x, 0, "matmul_integer");
      // One matrix for all of several, and several for each of one.
      agree(head + "int32[a,b,c,d] y) <" + zeros + ", " + w +
                ", int64[1] one = {1}, int64[1] none = {0}, int64[1] axis = {1}> {\n"
                " s = Slice (x, none, one, axis)\n y = MatMulInteger (s, w, xz, wz)\n}\n",
            x, 0, "matmul_integer");
      agree(head + t + "[a,b,c,d] y) <" + zeros + ", float xs = {0.02}, float ys = {0.4}> {\n" +
                turned + " y = QLinearMatMul (x, xs, xz, t, xs, xz, ys, xz)\n}\n",
            x, 1, "qlinear_matmul");
    }
}

TEST_F(Quantised, ProductsOfWhatIsGiven) {
  const Isa before = active_isa();
  for (const Isa isa : {Isa::kSse4, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > best_isa()) break;
    set_isa(isa);
    for (const bool is_signed : {false, true})
      for (const int64_t k : {1, 6, 64, 301, 600})
        for (const int64_t n : {1, 8, 32, 45, 100, 192})
          for (const int64_t m : {1, 2, 3, 7, 9}) {
            // Few rows by a matrix that is not packed, or more.
            const std::string t = is_signed ? "int8" : "uint8",
                              of_a = m % 2 == 0 ? "int8" : "uint8";
            const std::string text =
                "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (" + t + "[" + list({k, n}) +
                "] x) => (int32[m,n] y) <" +
                constant(of_a, "a", {m, k}, m % 2 == 0 ? -128 : 0, m % 2 == 0 ? 127 : 255) + ", " +
                of_a + " z = {9}, " + t + " xz = {5}> {\n y = MatMulInteger (a, x, z, xz)\n}\n";
            agree(text, codes({k, n}, is_signed), 0, "matmul_integer");
          }
  }
  set_isa(before);
}

/// Results that are much wider than what is multiplied go block by block.
TEST_F(Quantised, WideProducts) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 17]>\nmain (uint8[300,9] x) => (int32[m,n] y) <" +
      constant("int8", "w", {9, 3000}, -128, 127) +
      ", uint8 z = {9}> {\n y = MatMulInteger (x, w, z)\n}\n";
  agree(text, codes({300, 9}, false), 0, "matmul_integer");
}

TEST_F(Quantised, ProductsWithWeightsOfTwoAndFourBits) {
  const Isa before = active_isa();
  // The best that the machine has, then each level without dot products of bytes.
  for (const Isa isa : {Isa::kScalar, Isa::kSse4, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > best_isa()) break;
    if (isa != Isa::kScalar) {
      set_isa(isa);
      limit_extras(Extras::kNone);
    }
    for (const int64_t block : {16, 32, 128})
      for (const int64_t m : {1, 5, 41})
        for (const int choices : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) {
          const bool zeros = choices & 1;
          const int64_t level = choices & 2 ? 4 : 0;
          const Streams streams((choices & 4) != 0);
          const int64_t bits = choices & 8 ? 2 : 4;
          const int64_t n = 43, k = 3 * block - 7, blocks = 3;
          std::string scale = "float[" + std::to_string(n * blocks) + "] s = {0.01";
          for (int64_t i = 1; i < n * blocks; ++i)
            scale += ",0.0" + std::to_string(integer(10, 99));
          const std::string text =
              "<ir_version: 10, opset_import: [\"\" : 17, \"com.microsoft\" : "
              "1]>\n"
              "main (float[m," +
              std::to_string(k) + "] x) => (float[m,n] y) <" +
              constant("uint8", "w", {n, blocks, block * bits / 8}, 0, 255) + ", " + scale + "}, " +
              constant("uint8", "z", {n, (blocks * bits + 7) / 8}, 0, 255) +
              "> {\n y = com.microsoft.MatMulNBits <K = " + std::to_string(k) +
              ", N = " + std::to_string(n) + ", bits = " + std::to_string(bits) +
              ", block_size = " + std::to_string(block) +
              ", accuracy_level = " + std::to_string(level) + "> (x, w, s" + (zeros ? ", z" : "") +
              ")\n}\n";
          agree_roughly(text, floats({m, k}), level == 4 ? 2e-2 : 1e-5, "matmul_nbits");
        }
  }
  set_isa(before);
  limit_extras(Extras::kTiles);
}

// One scale for a column: with AMX the weights are one digit. Rows whose numbers lie far apart,
// which integers do not hold, go by vectors.
TEST_F(Quantised, ProductsWithWeightsOfEightBitsAndOneScale) {
  for (const int64_t k : {64, 100, 333, 768, 1100})
    for (const int64_t m : {11, 12, 37, 100})
      for (const bool far_apart : {false, true})
        for (const int kind : {0, 1, 2}) {  // where the zero points are
          const bool is_signed = k % 2 == 0;
          const int64_t n = 32 + k % 47;
          const std::string type = is_signed ? "int8" : "uint8";
          const std::string text =
              "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[m," + std::to_string(k) +
              "] x) => (float[m,n] y) <" +
              constant(type, "q", {k, n}, is_signed ? -128 : 0, is_signed ? 127 : 255) + ", " +
              scales("s", n) + ", " + zero_points(is_signed, kind, n) + ", " + scales("b", n) +
              "> {\n" + (kind == 2 ? "" : " z = Expand (zw, c)\n") +
              " w = DequantizeLinear <axis = 1> (q, s, " + (kind == 2 ? "zw" : "z") +
              ")\n p = MatMul (x, w)\n y = Add (p, b)\n}\n";
          const auto at = text.find("> {");
          const std::string whole =
              text.substr(0, at) + ", int64[1] c = {" + std::to_string(n) + "}" + text.substr(at);
          Tensor x = floats({m, k});
          // Of which the large ones meet a weight of few columns alone.
          if (far_apart)
            for (int64_t row = 3; row < m; row += 5)
              for (int64_t i = 0; i < k; ++i)
                x.data<float>()[row * k + i] *= i % 50 == 0 ? 1.0f : 1e-4f;
          agree_roughly(whole, x, 1e-5, "matmul_nbits");
        }
}

TEST_F(Quantised, GroupsOfQueriesWithACache) {
  // 4 heads of 8 features over 2 of keys; queries, keys and values come in one tensor.
  for (const int64_t rows : {1, 6})
    for (const int64_t past : {0, 5})
      for (const bool interleaved : {false, true}) {
        const int64_t total = past + rows;
        const std::string text =
            "<ir_version: 10, opset_import: [\"\" : 18, \"com.microsoft\" : 1]>\n"
            "main (float[2,s,64] x) => (float[2,s,32] y, float[2,2,t,8] pk, float[2,2,t,8] pv) <" +
            scales("cos", 96) + ", " + scales("sin", 96) +
            ", int64[2] shape = {24, 4}, int64[3] parts = {32, 16, 16}, int32[2] lengths = {" +
            std::to_string(total - 1) + "," + std::to_string(total - 1 - (past == 0 && rows > 1)) +
            "}, int32 total = {" + std::to_string(total) + "}, " +
            (past > 0 ? scales("flat_k", 32 * past) + ", " + scales("flat_v", 32 * past) +
                            ", int64[4] cache = {2, 2, " + std::to_string(past) + ", 8}, "
                      : "") +
            "float one = {10}> {\n c = Reshape (cos, shape)\n n = Reshape (sin, shape)\n"
            " big = Mul (x, one)\n q, k, v = Split <axis = 2> (big, parts)\n" +
            (past > 0 ? " ck = Reshape (flat_k, cache)\n cv = Reshape (flat_v, cache)\n" : "") +
            " y, pk, pv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2,"
            " do_rotary = 1, rotary_interleaved = " +
            (interleaved ? "1" : "0") + "> (q, k, v, " + (past > 0 ? "ck, cv" : "\"\", \"\"") +
            ", lengths, total, c, n)\n}\n";
        agree_roughly(text, floats({2, rows, 64}), 1e-5, "group_query_attention_f32");
      }
}

}  // namespace
}  // namespace tombolo
