// Steps of decoders with their caches at every instruction set of this machine, against the
// reference kernels: GroupQueryAttention, DecoderMaskedMultiHeadAttention.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

class Decoding : public Operators {
 protected:
  Tensor ints(std::initializer_list<int64_t> dims, int64_t most) {
    const std::vector<int64_t> shape(dims);
    Tensor made = *Tensor::allocate(DType::kInt32, shape);
    for (int64_t i = 0; i < made.size(); ++i)
      made.set_int64(i, static_cast<int64_t>(engine_() % static_cast<uint32_t>(most)));
    return made;
  }
};

TEST_P(Decoding, GroupQueryAttention) {
  // Two sequences, six heads over three of keys and values.
  for (const int64_t steps : {1, 5})
    for (const char* more :
         {"", "local_window_size = 3", "smooth_softmax = 1", "softcap = 2.0", "causal = 0",
          "do_rotary = 1", "do_rotary = 1, local_window_size = 4, rotary_interleaved = 1"})
      for (const char* rest : {"", ", , , , , n", ", , , , x", ", , , , x, n", ", c, d, p",
                               ", c, d, p, , , , , e, f", ", c, d"}) {
        if (std::string(more).find("rotary") != std::string::npos &&
            !std::string(rest).starts_with(", c"))
          continue;
        const int64_t total = steps == 1 ? 12 : steps, capacity = steps == 1 ? 14 : 0;
        const std::string count = std::to_string(total), rows = std::to_string(steps);
        const std::string attributes = " <num_heads = 6, kv_num_heads = 3" +
                                       (more[0] == 0 ? "" : ", " + std::string(more)) + "> ";
        std::vector<NamedValue> inputs = {{"q", numbers({2, steps, 48}, 0.3f)},
                                          {"k", numbers({2, steps, 24}, 0.3f)},
                                          {"v", numbers({2, steps, 24}, 0.3f)},
                                          {"w", numbers({2, steps, 96}, 0.3f)},
                                          {"a", numbers({2, 3, capacity, 8}, 0.3f)},
                                          {"b", numbers({2, 3, capacity, 8}, 0.3f)},
                                          {"c", numbers({16, 3}, 1)},
                                          {"d", numbers({16, 3}, 1)},
                                          {"e", numbers({8}, 1)},
                                          {"f", numbers({8}, 1)},
                                          {"n", numbers({6}, 1)},
                                          {"x", numbers({1, 6, steps, total}, 1)}};
        const std::string head =
            "main (float[2,S,48] q, float[2,S,24] k, float[2,S,24] v, float[2,S,96] w, "
            "float[2,3,P,8] a, float[2,3,P,8] b, float[16,3] c, float[16,3] d, float[8] e, "
            "float[8] f, float[6] n, float[1,6,S,T] x) => (y, g, h) <int32 t = {" +
            count + "}, int32[2] l = {" + std::to_string(total - 1) + "," +
            std::to_string(total - (steps == 1 ? 5 : 1)) + "}, int64[2," + rows + "] p = {";
        std::string places;
        for (int64_t i = 0; i < 2 * steps; ++i)
          places += (i == 0 ? "" : ",") + std::to_string((7 * i + 3) % 16);
        for (const char* news : {"q, k, v, ", "w, , , "})
          agree(head + places + "}> { y, g, h = com.microsoft.GroupQueryAttention" + attributes +
                    "(" + news + (steps == 1 ? "a, b" : ", ") + ", l, t" + rest + ") }",
                inputs, 1e-5);
      }
}

TEST_P(Decoding, CachesOfCodes) {
  // Two sequences, four heads over two of keys and values, codes of 8 and of 4 bits.
  for (const int64_t steps : {1, 5})
    for (const int64_t past : {0, 9})
      for (const int bits : {8, 4})
        for (const char* kinds : {"PER_TENSOR", "PER_CHANNEL"})
          for (const bool turn : {false, true}) {
            const bool channel = std::string(kinds) == "PER_CHANNEL";
            const int64_t size = 16, total = past + steps, width = bits == 4 ? size / 2 : size;
            const std::string type = bits == 4 ? "uint8" : "int8",
                              number = std::to_string(total - 1);
            const auto codes = [&] {
              Tensor made = *Tensor::allocate(dtype_from_name(type).value(),
                                              std::vector<int64_t>{2, 2, past + 2, width});
              for (int64_t i = 0; i < made.size(); ++i)
                made.set_int64(i, static_cast<int64_t>(engine_() % 256));
              return made;
            };
            Tensor scales = numbers({channel ? 2 * size : 1}, 1);
            for (float& scale : scales.span<float>())
              scale = (std::fabs(scale) + 0.3f) * (bits == 4 ? 0.2f : 0.01f);
            agree("main (float[2,S,64] q, float[2,S,32] k, float[2,S,32] v, " + type +
                      "[2,2,P,W] a, " + type +
                      "[2,2,P,W] b, float[N] s, float[32,8] c, float[32,8] d) => (y, g, h) <int32 "
                      "t = {" +
                      std::to_string(total) + "}, int32[2] l = {" + number + "," + number +
                      "}> { y, g, h = com.microsoft.GroupQueryAttention <num_heads = 4, "
                      "kv_num_heads = 2, do_rotary = " +
                      (turn ? "1" : "0") + ", kv_cache_bit_width = " + std::to_string(bits) +
                      ", k_quant_type = \"" + kinds + "\", v_quant_type = \"" + kinds +
                      "\"> (q, k, v, " + (past == 0 ? ", " : "a, b") +
                      ", l, t, c, d, , , , s, s) }",
                  {{"q", numbers({2, steps, 64}, 0.5f)},
                   {"k", numbers({2, steps, 32}, 0.5f, !turn && channel)},
                   {"v", numbers({2, steps, 32}, 0.5f)},
                   {"a", codes()},
                   {"b", codes()},
                   {"s", scales},
                   {"c", numbers({32, 8}, 1)},
                   {"d", numbers({32, 8}, 1)}},
                  1e-5);
          }
}

TEST_P(Decoding, SharedBuffers) {
  for (const int64_t size : {8, 20, 64})
    for (const int64_t before : {0, 3, 8})
      for (const char* more : {"", ", r, s", ", , , z", ", r, s, z"})
        for (const int shape : {0, 1, 2}) {
          // Two beams of two sequences.
          const int64_t width = 3 * size, columns = before + 1;
          agree(
              "main (float[4,1,W] q, float[4,1,W] k, float[4,1,W] v, int32[4,C] m, "
              "float[1,3,1,C] x, float[4,3,9,D] a, float[4,3,9,D] b, int32[1] p, int32[1] r, "
              "int32[2,2,9] s, float[B] z) => (y, g, h) { y, g, h = "
              "com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 3, "
              "past_present_share_buffer = 1> (q, k, v, " +
                  std::string(shape == 0   ? ", "
                              : shape == 1 ? "m, "
                                           : "m, x") +
                  ", a, b, p" + more + ") }",
              {{"q", numbers({4, 1, width}, 0.3f)},
               {"k", numbers({4, 1, width}, 0.3f)},
               {"v", numbers({4, 1, width}, 0.3f)},
               {"m", ints({4, columns}, 2)},
               {"x", numbers({1, 3, 1, columns}, 1)},
               {"a", numbers({4, 3, 9, size}, 0.3f)},
               {"b", numbers({4, 3, 9, size}, 0.3f)},
               {"p", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{1},
                                         std::vector<int32_t>{static_cast<int32_t>(before)})},
               {"r", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{1},
                                         std::vector<int32_t>{2})},
               {"s", ints({2, 2, 9}, 2)},
               {"z", numbers({3 * width}, 0.3f)}},
              1e-5);
        }
}

TEST_P(Decoding, KeysOfAnEncoder) {
  agree(
      "main (float[2,1,24] q, float[2,3,7,8] k, float[2,3,7,12] v, float[84] z) => (y, w) { y, , "
      ", w = com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 3, output_qk = 1> (q, k, "
      "v, , , , , , , , z) }",
      {{"q", numbers({2, 1, 24}, 0.3f)},
       {"k", numbers({2, 3, 7, 8}, 0.3f)},
       {"v", numbers({2, 3, 7, 12}, 0.3f)},
       {"z", numbers({84}, 0.3f)}},
      1e-5);
  agree(
      "main (float[2,1,24] q, float[2,1,24] k, float[2,3,5,8] a, float[2,3,5,8] b) => (y, g, h) { "
      "y, g, h = com.microsoft.DecoderMaskedMultiHeadAttention <num_heads = 3> (q, k, k, , , a, b) "
      "}",
      {{"q", numbers({2, 1, 24}, 0.3f)},
       {"k", numbers({2, 1, 24}, 0.3f)},
       {"a", numbers({2, 3, 5, 8}, 0.3f)},
       {"b", numbers({2, 3, 5, 8}, 0.3f)}},
      1e-5);
}

TEST_P(Decoding, LengthsOfSequences) {
  const std::vector<NamedValue> inputs = {
      {"x", numbers({2, 7, 24}, 0.3f)},
      {"w", numbers({24, 72}, 0.3f)},
      {"b", numbers({72}, 0.3f)},
      {"m",
       Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{2}, std::vector<int32_t>{7, 3})}};
  for (const char* shape : {"B,S", "2,7"}) {
    const std::string head = "main (float[" + std::string(shape) +
                             ",24] x, float[24,72] w, float[72] b, int32[" + std::string(shape, 1) +
                             "] m) => (y) { y = com.microsoft.";
    agree(head + "Attention <num_heads = 3> (x, w, b, m) }", inputs, 1e-5);
    agree(head + "MultiHeadAttention <num_heads = 3> (x, x, x, b, m) }", inputs, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Decoding,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
