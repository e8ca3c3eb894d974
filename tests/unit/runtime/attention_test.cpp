// Attention with masks at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"
#include "ops/microsoft/kv_cache.h"

namespace tombolo {
namespace {

class MicrosoftAttention : public Operators {};

class Attentions : public Operators {
 protected:
  Attentions() { opset_ = 23; }

  /// -infinity in about a third of the places, and for all keys of some queries.
  Tensor added_mask(std::initializer_list<int64_t> dims) {
    Tensor mask = numbers(dims, 1);
    const int64_t columns = mask.dim(3);
    for (int64_t i = 0; i < mask.size(); ++i)
      if (i / columns % 5 == 2 || engine_() % 3 == 0) mask.data<float>()[i] = -INFINITY;
    return mask;
  }
};

TEST_P(Attentions, MasksOfAllKinds) {
  for (const int64_t rows : {1, 5, 16, 37})
    for (const int64_t columns : {1, 7, 16, 49, 70})
      for (const int64_t size : {8, 24, 36}) {
        std::vector<NamedValue> inputs = {{"q", numbers({2, 6, rows, size}, 1)},
                                          {"k", numbers({2, 3, columns, size}, 1)},
                                          {"v", numbers({2, 3, columns, size}, 1)},
                                          {"m", added_mask({1, 1, rows, columns})},
                                          {"w", added_mask({2, 6, rows, columns})}};
        const std::string head =
            "main (float[2,6,R,S] q, float[2,3,C,S] k, float[2,3,C,S] v, float[1,1,R,C] m, "
            "float[2,6,R,C] w) => (y) <float z = {-0.5}> { ";
        for (const char* attributes :
             {"", "<scale = 0.3> ", "<is_causal = 1> ", "<softcap = 2.0> "})
          for (const char* mask : {"", ", m", ", w", ", a", ", b"})
            agree(head + "a = Greater (m, z) b = Greater (w, z) y = Attention " + attributes +
                      "(q, k, v" + mask + ") }",
                  inputs, 1e-5);
      }
}

/// Masks of some heads, images and keys alone, heads that lie side by side, and keys that only
/// count up to a length.
TEST_P(Attentions, MasksThatHeadsShare) {
  opset_ = 24;
  const NamedValue lengths{"n", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{2},
                                                    std::vector<int64_t>{11, 0})};
  for (const int64_t rows : {9, 33, 70})
    for (const int64_t columns : {15, 83, 450})
      for (const int64_t size : {16, 20}) {
        const std::vector<NamedValue> inputs = {
            {"q", numbers({2, rows, 4 * size}, 1)},    {"k", numbers({2, columns, 2 * size}, 1)},
            {"v", numbers({2, columns, 2 * size}, 1)}, {"a", added_mask({2, 1, rows, columns})},
            {"b", added_mask({1, 4, rows, columns})},  {"c", added_mask({1, 1, 1, columns})},
            {"d", added_mask({2, 1, 1, columns})},     lengths};
        const std::string head =
            "main (float[2,R,Q] q, float[2,C,K] k, float[2,C,K] v, float[2,1,R,C] a, "
            "float[1,4,R,C] b, float[1,1,1,C] c, float[2,1,1,C] d, int64[2] n) => (y) "
            "<float z = {-0.5}> { e = Greater (a, z) f = Greater (c, z) "
            "y = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v";
        for (const char* mask :
             {"", ", a", ", b", ", c", ", d", ", e", ", f", ", , , , n", ", b, , , n"})
          agree(head + mask + ") }", inputs, 1e-5);
      }
}

TEST_P(Attentions, NumbersThatAreNone) {
  for (const int64_t columns : {5, 40}) {
    const std::vector<NamedValue> inputs = {{"q", numbers({1, 2, 40, 16}, 1, true)},
                                            {"k", numbers({1, 2, columns, 16}, 1)},
                                            {"v", numbers({1, 2, columns, 16}, 1)},
                                            {"m", added_mask({1, 1, 40, columns})}};
    const std::string head =
        "main (float[1,2,R,16] q, float[1,2,C,16] k, float[1,2,C,16] v, float[1,1,R,C] m) => (y) { "
        "y = ";
    agree(head + "Attention (q, k, v) }", inputs, 1e-5);
    agree(head + "Attention (q, k, v, m) }", inputs, 1e-5);
  }
}

/// Long enough for products of integers, where the processor has them.
TEST_P(Attentions, LongSequences) {
  const std::string types =
      "main (float[1,4,R,S] q, float[1,2,C,S] k, float[1,2,C,V] v, float[1,1,R,C] m, "
      "float[1,4,R,C] w) => (y) <float z = {-0.5}> { a = Greater (m, z) y = Attention ";
  for (const int64_t columns : {131, 213}) {
    const int64_t rows = 141, size = columns == 131 ? 100 : 64, value_size = 70;
    const std::vector<NamedValue> inputs = {{"q", numbers({1, 4, rows, size}, 1)},
                                            {"k", numbers({1, 2, columns, size}, 1)},
                                            {"v", numbers({1, 2, columns, value_size}, 1)},
                                            {"m", added_mask({1, 1, rows, columns})},
                                            {"w", added_mask({1, 4, rows, columns})}};
    for (const char* attributes : {"", "<scale = -0.3, is_causal = 1> ", "<softcap = 2.0> "})
      for (const char* mask : {"", ", w", ", a"})
        agree(types + attributes + "(q, k, v" + mask + ") }", inputs, 1e-5);
  }
}

TEST_P(Attentions, LongSequencesWithOddNumbers) {
  const std::string head =
      "main (float[1,4,R,S] q, float[1,2,C,S] k, float[1,2,C,S] v) => (y) { y = Attention ";
  const auto place = [](Tensor& x, int64_t row, int64_t column, float value) {
    x.data<float>()[row * 64 + column] = value;
  };
  // Of queries, then of keys, then of values: one that integers do not hold, and none.
  for (size_t which = 0; which < 3; ++which)
    for (const float odd : {30000.0f, 1e30f, NAN, -INFINITY}) {
      Tensor x[] = {numbers({1, 4, 150, 64}, 0.2f), numbers({1, 2, 200, 64}, 0.2f),
                    numbers({1, 2, 200, 64}, 1)};
      place(x[which], 77, 5, odd);
      place(x[which], 120, 63, odd == 30000 ? -50000 : 1);
      for (int64_t i = 0; i < 64; ++i) place(x[which], 30, i, 0);
      // What a weight of zero meets counts for the reference alone.
      const std::string causal = std::isfinite(odd) ? "<is_causal = 1> " : "";
      agree(head + causal + "(q, k, v) }", {{"q", x[0]}, {"k", x[1]}, {"v", x[2]}}, 1e-5);
    }
}

TEST_P(Attentions, LongSequencesOfWhichPartsCount) {
  opset_ = 24;
  Tensor k = numbers({2, 2, 260, 64}, 1), v = numbers({2, 2, 260, 64}, 1);
  for (int64_t head = 0; head < 4; ++head)  // nobody reads these
    for (int64_t i = 230 * 64; i < 260 * 64; ++i)
      k.data<float>()[head * 260 * 64 + i] = v.data<float>()[head * 260 * 64 + i] = 1e6f;
  const NamedValue lengths{"n", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{2},
                                                    std::vector<int64_t>{230, 151})};
  agree(
      "main (float[2,2,150,64] q, float[2,2,260,64] k, float[2,2,260,64] v, int64[2] n) => (y) { y "
      "= Attention <is_causal = 1> (q, k, v, , , , n) }",
      {{"q", numbers({2, 2, 150, 64}, 1)}, {"k", k}, {"v", v}, lengths}, 1e-5);
  const auto of = [](int32_t value) {
    return Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{1}, std::vector<int32_t>{value});
  };
  for (const char* window : {"", ", local_window_size = 70"})
    agree(std::string("main (float[1,150,256] q, float[1,150,128] k, float[1,150,128] v, "
                      "float[1,2,63,64] g, float[1,2,63,64] h, int32[1] s, int32[1] t) => (y) { y, "
                      ", = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2") +
              window + "> (q, k, v, g, h, s, t) }",
          {{"q", numbers({1, 150, 256}, 1)},
           {"k", numbers({1, 150, 128}, 1)},
           {"v", numbers({1, 150, 128}, 1)},
           {"g", numbers({1, 2, 63, 64}, 1)},
           {"h", numbers({1, 2, 63, 64}, 1)},
           {"s", of(212)},
           {"t", of(213)}},
          1e-5);
}

// Queries of one step, whose heads become rows where they share keys; with a cache and without.
TEST_P(Attentions, OneQuery) {
  const std::string types =
      "main (float[2,H,1,S] q, float[2,2,N,S] k, float[2,2,N,V] v, float[M,H2,1,C] m, "
      "float[2,2,P,S] a, float[2,2,P,V] b, int64[2] n) => ";
  struct Case {
    int64_t group, size, value_size, steps, past;
    bool mask_per_head;
  };
  const Case cases[] = {{1, 64, 64, 1, 300, true},  {3, 40, 24, 1, 70, true},
                        {4, 16, 32, 5, 33, false},  {8, 64, 64, 1, 130, true},
                        {12, 48, 16, 1, 20, false}, {5, 20, 64, 90, 0, true}};
  for (const Case& c : cases) {
    const int64_t heads = 2 * c.group, columns = c.steps + c.past;
    const std::vector<NamedValue> inputs = {
        {"q", numbers({2, heads, 1, c.size}, 1)},
        {"k", numbers({2, 2, c.steps, c.size}, 1)},
        {"v", numbers({2, 2, c.steps, c.value_size}, 1)},
        {"m", added_mask({c.mask_per_head ? 2 : 1, c.mask_per_head ? heads : 1, 1, columns})},
        {"a", numbers({2, 2, c.past, c.size}, 1)},
        {"b", numbers({2, 2, c.past, c.value_size}, 1)},
        {"n", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{2},
                                  std::vector<int64_t>{columns / 2, columns})}};
    for (const char* attributes : {"", "<is_causal = 1> ", "<softcap = 2.0, scale = 0.3> "})
      for (const char* mask : {"", "m"}) {
        const std::string call = std::string("Attention ") + attributes + "(q, k, v, " + mask;
        if (c.past > 0) {
          opset_ = 23;
          agree(types + "(y, g, h) { y, g, h = " + call + ", a, b) }", inputs, 1e-5);
        } else {
          opset_ = 24;
          agree(types + "(y) { y = " + call + ") }", inputs, 1e-5);
          agree(types + "(y) { y = " + call + ", , , n) }", inputs, 1e-5);
        }
      }
  }
}

// A new token for a cache: heads that share keys, sizes of odd length, parts of the cache that do
// not count; whether somebody keeps it or not, floats and codes.
TEST_P(Attentions, OneTokenMore) {
  const auto of = [](std::vector<int32_t> values) {
    return Tensor::of<int32_t>(DType::kInt32,
                               std::vector<int64_t>{static_cast<int64_t>(values.size())}, values);
  };
  const auto codes = [&](const std::vector<int64_t>& dims) {
    std::vector<int8_t> values(static_cast<size_t>(element_count(dims)));
    for (int8_t& value : values) value = static_cast<int8_t>(engine_() % 256);
    return Tensor::of<int8_t>(DType::kInt8, dims, values);
  };
  struct Case {
    int64_t group, size, capacity;
    const char* attributes;
    const char* more;  ///< inputs behind the total
  };
  const Case cases[] = {{1, 64, 150, "", ""},
                        {3, 40, 150, "", ""},
                        {2, 24, 31, ", local_window_size = 9", ""},
                        {4, 64, 150, ", local_window_size = 33", ", , , , , f"},
                        {5, 16, 600, ", smooth_softmax = 1", ""},
                        {8, 128, 70, ", do_rotary = 1", ", c, d"},
                        {12, 20, 70, ", softcap = 3.0", ""}};
  for (const Case& c : cases)
    for (const bool coded : {false, true})
      for (const char* outputs : {"y", "y, g, h"}) {
        const int64_t kv = 2 * c.size, heads = 2 * c.group;
        const std::string element = coded ? "int8" : "float";
        const std::string more = std::string(c.more) + (!coded              ? ""
                                                        : c.more[0] == '\0' ? ", , , , , , w, w"
                                                        : c.more[2] == 'c'  ? ", , , , w, w"
                                                                            : ", w, w");
        const std::vector<int64_t> cache = {2, 2, c.capacity, c.size};
        const auto past = [&] {
          return coded ? codes(cache) : numbers({2, 2, c.capacity, c.size}, 1);
        };
        const auto total = static_cast<int32_t>(c.capacity * 3 / 4);
        agree("main (float[2,1,Q] q, float[2,1,K] k, float[2,1,K] v, " + element + "[2,2,C,S] a, " +
                  element +
                  "[2,2,C,S] b, int32[2] s, int32[1] t, float[N,M] c, float[N,M] d, "
                  "float[H] f) => (" +
                  outputs + ") <float[1] w = {0.02}> { " + outputs +
                  " = com.microsoft.GroupQueryAttention <num_heads = " + std::to_string(heads) +
                  ", kv_num_heads = 2" + c.attributes +
                  (coded ? ", k_quant_type = \"PER_TENSOR\", v_quant_type = \"PER_TENSOR\"" : "") +
                  "> (q, k, v, a, b, s, t" + more + ") }",
              {{"q", numbers({2, 1, heads * c.size}, 1)},
               {"k", numbers({2, 1, kv}, 1)},
               {"v", numbers({2, 1, kv}, 1)},
               {"a", past()},
               {"b", past()},
               {"s", of({total - 1, 5})},
               {"t", of({total})},
               {"c", numbers({c.capacity, c.size / 2}, 1)},
               {"d", numbers({c.capacity, c.size / 2}, 1)},
               {"f", numbers({heads}, 1)}},
              1e-5);
      }
}

// A cache that lets go of steps: prompts that do not fit it, single steps before and after it is
// full, several steps of which the first see what goes; batches whose sequences differ.
TEST_P(Attentions, CacheOfWindow) {
  const auto of = [](std::vector<int32_t> values) {
    return Tensor::of<int32_t>(DType::kInt32,
                               std::vector<int64_t>{static_cast<int64_t>(values.size())}, values);
  };
  struct Case {
    int64_t batch, group, rows, capacity, window;
    std::vector<int32_t> totals;
    bool biased = false;
  };
  const Case cases[] = {{2, 2, 40, 16, 16, {40, 33}},      {2, 1, 9, 16, 12, {9, 3}},
                        {2, 4, 1, 16, 16, {10, 57}, true}, {3, 3, 1, 20, 7, {20, 21, 90}},
                        {1, 2, 25, 16, 9, {60}, true},     {1, 5, 3, 30, 12, {33}},
                        {1, 2, 70, 130, 100, {400}},       {2, 1, 1, 1, 1, {5, 1}}};
  for (const Case& c : cases)
    for (const bool coded : {false, true}) {
      constexpr int64_t kSize = 24;
      const int64_t heads = 2 * c.group;
      const int32_t total = *std::max_element(c.totals.begin(), c.totals.end());
      std::vector<int32_t> last = c.totals;
      for (int32_t& each : last) --each;
      // What lies behind the steps that stay is not said.
      std::vector<uint8_t> stays;
      for (const int32_t each : c.totals)
        for (int64_t i = 0; i < c.capacity; ++i)
          stays.push_back(i < ops::resident_steps(each, c.capacity, c.window));
      const auto past = [&] {
        const std::vector<int64_t> dims = {c.batch, 2, c.capacity, kSize};
        if (!coded) return numbers({c.batch, 2, c.capacity, kSize}, 1);
        std::vector<int8_t> values(static_cast<size_t>(element_count(dims)));
        for (int8_t& value : values) value = static_cast<int8_t>(engine_() % 256);
        return Tensor::of<int8_t>(DType::kInt8, dims, values);
      };
      const std::string element = coded ? "int8" : "float";
      agree(
          "main (float[B,R,Q] q, float[B,R,48] k, float[B,R,48] v, " + element + "[B,2,C,24] a, " +
              element +
              "[B,2,C,24] b, int32[B] s, int32[1] t, float[N,12] c, float[N,12] d, "
              "float[1,H,R,T] f, bool[B,1,C,1] m) => (y, x, z) <float[1] w = {0.02}, " +
              element +
              " nought = {0}> { y, g, h = "
              "com.microsoft.GroupQueryAttention <num_heads = " +
              std::to_string(heads) +
              ", kv_num_heads = 2, do_rotary = 1, sliding_window_cache = 1, local_window_size = " +
              std::to_string(c.window) +
              (coded ? ", k_quant_type = \"PER_TENSOR\", v_quant_type = \"PER_TENSOR\"" : "") +
              "> (q, k, v, a, b, s, t, c, d, , " + (c.biased ? "f" : "") +
              (coded ? ", , w, w" : "") + ")\nx = Where (m, g, nought)\nz = Where (m, h, nought) }",
          {{"q", numbers({c.batch, c.rows, heads * kSize}, 1)},
           {"k", numbers({c.batch, c.rows, 2 * kSize}, 1)},
           {"v", numbers({c.batch, c.rows, 2 * kSize}, 1)},
           {"a", past()},
           {"b", past()},
           {"s", of(last)},
           {"t", of({total})},
           {"c", numbers({total + 1, kSize / 2}, 1)},
           {"d", numbers({total + 1, kSize / 2}, 1)},
           {"f", numbers({1, heads, c.rows, total}, 1)},
           {"m", Tensor::of<uint8_t>(DType::kBool, std::vector<int64_t>{c.batch, 1, c.capacity, 1},
                                     stays)}},
          1e-5);
    }
}

TEST_P(MicrosoftAttention, Masks) {
  const auto whole = [&]<typename T>(DType dtype, std::initializer_list<int64_t> dims, T below) {
    const std::vector<int64_t> shape(dims);
    std::vector<T> values(static_cast<size_t>(element_count(shape)));
    for (T& value : values) value = static_cast<T>(engine_() % below);
    return Tensor::of<T>(dtype, shape, values);
  };
  const auto codes = [&](std::initializer_list<int64_t> dims) {
    return whole(DType::kUInt8, dims, uint8_t{251});
  };
  const auto rows = [&](std::initializer_list<int64_t> dims, int32_t below) {
    return whole(DType::kInt32, dims, below);
  };
  const Tensor x = numbers({2, 9, 24}, 0.3f), k = numbers({2, 7, 24}, 0.3f),
               v = numbers({2, 7, 36}, 0.3f);
  const Tensor wide = numbers({2, 3, 9, 7}, 0.3f),
               mask = Tensor::of<int32_t>(
                   DType::kInt32, std::vector<int64_t>{2, 7},
                   std::vector<int32_t>{1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0});
  const std::string head = "main (float[2,9,24] x, float[2,7,24] k, float[2,7,36] v";
  const auto heads = [](const std::string& more) {
    return "com.microsoft.MultiHeadAttention <num_heads = 3" + more + "> ";
  };
  agree(head + ") => (y) { y = " + heads("") + "(x, k, v) }", {{"x", x}, {"k", k}, {"v", v}}, 1e-5);
  agree(head + ", float[84] b, int32[2,7] m, float[2,3,9,7] s) => (y) { y = " +
            heads(", scale = 0.5, mask_filter_value = -3.0") + "(x, k, v, b, m, s) }",
        {{"x", x}, {"k", k}, {"v", v}, {"b", numbers({84}, 0.3f)}, {"m", mask}, {"s", wide}}, 1e-5);
  agree("main (float[2,9,24] x, float[2,9,24] k, float[2,9,24] v) => (y) { y = " +
            heads(", unidirectional = 1") + "(x, k, v) }",
        {{"x", x}, {"k", numbers({2, 9, 24}, 0.3f)}, {"v", numbers({2, 9, 24}, 0.3f)}}, 1e-5);
  agree("main (float[2,1,24] x, float[2,3,5,8] a, float[2,3,5,8] b) => (y, c, d) { y, c, d = " +
            heads("") + "(x, x, x, , , , a, b) }",
        {{"x", numbers({2, 1, 24}, 0.3f)},
         {"a", numbers({2, 3, 5, 8}, 0.3f)},
         {"b", numbers({2, 3, 5, 8}, 0.3f)}},
        1e-5);
  const Tensor w = numbers({24, 72}, 0.3f), bias = numbers({72}, 0.3f);
  const std::vector<NamedValue> given = {{"x", x}, {"w", w}, {"b", bias}};
  const std::string projected = "main (float[2,9,24] x, float[24,72] w, float[72] b";
  const std::string op = "com.microsoft.Attention <num_heads = 3";
  agree(projected + ") => (y) { y = " + op + "> (x, w, b) }", given, 1e-5);
  agree(projected + ") => (y) { y = " + op + ", qkv_hidden_sizes = [18, 18, 36]> (x, w, b) }",
        given, 1e-5);
  std::vector<NamedValue> masked = given;
  masked.push_back({"m", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{2},
                                             std::vector<int32_t>{9, 4})});
  agree(projected + ", int32[2] m) => (y) { y = " + op + ", unidirectional = 1> (x, w, b, m) }",
        masked, 1e-5);
  // Lengths that may be pairs of ends and starts, and a cache, stay as they are.
  masked.back().value =
      Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{4}, std::vector<int32_t>{9, 4, 1, 0});
  agree(projected + ", int32[4] m) => (y) { y = " + op + "> (x, w, b, m) }", masked, 1e-5);
  agree(
      "main (int32[2,6] i, float[11,16] w, float[8,16] p, int32[2,6] j, float[2,16] q, float[16] "
      "g, "
      "float[16] h) => (y, s) { y, , s = com.microsoft.EmbedLayerNormalization (i, j, w, p, q, g, "
      "h) }",
      {{"i", rows({2, 6}, 11)},
       {"w", numbers({11, 16}, 0.3f)},
       {"p", numbers({8, 16}, 0.3f)},
       {"j", rows({2, 6}, 2)},
       {"q", numbers({2, 16}, 0.3f)},
       {"g", numbers({16}, 0.3f)},
       {"h", numbers({16}, 0.3f)}},
      1e-5);
  agree(
      "main (float[5,24] x, uint8[24,40] w, float[40] s, uint8[40] z, float[40] b) => (y) { y = "
      "com.microsoft.DynamicQuantizeMatMul (x, w, s, z, b) }",
      {{"x", numbers({5, 24}, 0.3f)},
       {"w", codes({24, 40})},
       {"s", numbers({40}, 0.3f)},
       {"z", codes({40})},
       {"b", numbers({40}, 0.3f)}},
      1e-5);
  agree(
      "main (uint8[2,9,24] x, uint8[24,72] w, float[72] b, float s, float[72] t, uint8 y, uint8 z) "
      "=> (o) "
      "{ o = com.microsoft.QAttention <num_heads = 3> (x, w, b, s, t, , y, z) }",
      {{"x", codes({2, 9, 24})},
       {"w", codes({24, 72})},
       {"b", bias},
       {"s", Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{}, std::vector<float>{0.01f})},
       {"t", Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{72},
                               std::vector<float>(72, 0.01f))},
       {"y", Tensor::of<uint8_t>(DType::kUInt8, std::vector<int64_t>{}, std::vector<uint8_t>{120})},
       {"z", Tensor::of<uint8_t>(DType::kUInt8, std::vector<int64_t>{}, std::vector<uint8_t>{99})}},
      1e-5);
}

INSTANTIATE_TEST_SUITE_P(Isa, Attentions,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

INSTANTIATE_TEST_SUITE_P(Isa, MicrosoftAttention,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
