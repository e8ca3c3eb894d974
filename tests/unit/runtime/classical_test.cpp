// Rows of features on the fast kernels and on the reference: softmax of short rows and of doubles,
// distances, scalers, narrow products.

#include <gtest/gtest.h>

#include <string>

#include "operators.h"
#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

class Classical : public Operators {};

/// Blocks, planes and images that are shorter than a vector, some of them together.
TEST_P(Classical, NormsOfShortPlanes) {
  for (const auto& dims :
       {std::vector<int64_t>{40, 3, 2, 9}, {70, 5, 7, 1}, {17, 2, 11, 5}, {3, 2, 3, 4}}) {
    const Tensor x = numbers(dims, 3);
    for (const char* op : {"Softmax", "LogSoftmax", "LpNormalization"})
      for (const char* axis : {"0", "1", "2", "3"})
        agree("main (float[A,B,C,D] x) => (y) { y = " + std::string(op) + " <axis = " + axis +
                  "> (x) }",
              {{"x", x}}, 2e-6);
  }
  for (const int64_t n : {1, 9, 100})
    for (const int64_t plane : {3, 8, 31, 130}) {
      const std::vector<NamedValue> inputs = {
          {"x", numbers({n, 5, plane}, 3)}, {"s", numbers({5}, 1)}, {"b", numbers({5}, 1)}};
      agree(
          "main (float[A,B,C] x, float[B] s, float[B] b) => (y) { y = InstanceNormalization (x, s, "
          "b) }",
          inputs, 2e-6);
      agree(
          "main (float[A,B,C] x, float[B] s, float[B] b) => (y) { v = Abs (s) y = "
          "BatchNormalization (x, s, b, b, v) }",
          inputs, 2e-6);
    }
}

TEST_P(Classical, SoftmaxOfShortRowsAndDoubles) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const int64_t rows : {1, 7, 15, 16, 33, 64, 65, 200})
      for (const int64_t n : {1, 2, 3, 5, 11, 12, 17, 63, 64, 65, 130}) {
        const Tensor x = numbers({rows, n}, 20);
        agree(std::string("main (float[R,N] x) => (y) { y = ") + op + " (x) }", {{"x", x}}, 1e-6);
        agree(std::string("main (float[R,N] x) => (y) { d = Cast <to = 11> (x)\n e = ") + op +
                  " (d)\n y = Cast <to = 1> (e) }",
              {{"x", x}}, 1e-7);
      }
}

TEST_P(Classical, ProductsWithFewColumns) {
  for (const int64_t rows : {31, 32, 47, 130, 1000})
    for (const int64_t k : {1, 9, 20, 33, 128, 129})
      for (const int64_t n : {1, 3, 4, 5, 8, 9}) {
        agree("main (float[R,K] a, float[K,N] b) => (y) { y = MatMul (a, b) }",
              {{"a", numbers({rows, k}, 1)}, {"b", numbers({k, n}, 1)}}, 1e-5);
        agree(
            "main (float[R,K] a, float[N,K] b, float[N] c) => (y) {\n g = Gemm <transB = 1, "
            "alpha = 0.5> (a, b, c)\n y = Relu (g) }",
            {{"a", numbers({rows, k}, 1)}, {"b", numbers({n, k}, 1)}, {"c", numbers({n}, 1)}},
            1e-5);
      }
}

TEST_P(Classical, ProductsOfAColumnAndARow) {
  for (const int64_t rows : {1, 2, 5, 31, 40, 1000})
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 70, 3000}) {
      agree("main (float[R,K] a, float[K,N] b) => (y) { y = MatMul (a, b) }",
            {{"a", numbers({rows, 1}, 1)}, {"b", numbers({1, n}, 1)}}, 1e-6);
      agree("main (float[R,K] a, float[K,N] b) => (y) { y = Gemm <alpha = 0.5> (a, b) }",
            {{"a", numbers({rows, 1}, 1)}, {"b", numbers({1, n}, 1)}}, 1e-6);
      if (rows <= 40 && n <= 70)
        agree("main (float[B,R,K] a, float[B,K,N] b) => (y) { y = MatMul (a, b) }",
              {{"a", numbers({3, rows, 1}, 1)}, {"b", numbers({3, 1, n}, 1)}}, 1e-6);
    }
  // What is turned behind, and parts of longer rows.
  agree(
      "main (float[B,R,K] a, float[B,K,N] b) => (y, z) { p = MatMul (a, b) y = Transpose <perm = "
      "[1, 0, 2]> (p) z = Transpose <perm = [0, 2, 1]> (p) }",
      {{"a", numbers({3, 40, 1}, 1)}, {"b", numbers({3, 1, 24}, 1)}}, 1e-6);
}

/// A turned B that no constant is, and all that may surround its product.
TEST_P(Classical, TurnedProductsWithMoreAround) {
  for (const int64_t rows : {1, 3, 6, 20})
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{9, 300}, {70, 257}, {300, 64}}) {
      const Tensor a = numbers({rows, k}, 1), b = numbers({n, k}, 1), z = numbers({rows, n}, 3);
      const std::string inputs = "main (float[R,K] a, float[N,K] b, float[";
      for (const char* act : {"Relu (g)", "Elu (g)", "Gelu (g)", "Add (g, g)"})
        for (const char* addend : {"N", "R,1"})
          agree(inputs + addend +
                    "] c) => (y) { g = Gemm <transB = 1, alpha = 0.5> (a, b, c) y = " + act + " }",
                {{"a", a},
                 {"b", b},
                 {"c", addend[0] == 'N' ? numbers({n}, 1) : numbers({rows, 1}, 1)}},
                1e-5);
      // The sum may take the place of the residual.
      agree(inputs +
                "R,N] z) => (y) { t = Transpose <perm = [1, 0]> (b) r = Exp (z) p = MatMul (a, t) "
                "s = Add (p, r) y = Elu (s) }",
            {{"a", a}, {"b", b}, {"z", z}}, 1e-5);
    }
}

/// Many rows of both sides, none of them a constant.
TEST_P(Classical, LargeProducts) {
  Tensor odd = numbers({160, 200}, 1);
  odd.data<float>()[77] = 1e6f;
  for (const Tensor& b : {numbers({160, 200}, 1), odd}) {
    agree(
        "main (float[R,K] a, float[K,N] b, float[N] c) => (y) { p = MatMul (a, b) s = Add (p, c) y "
        "= Gelu (s) }",
        {{"a", numbers({140, 160}, 1)}, {"b", b}, {"c", numbers({200}, 1)}}, 1e-5);
    agree(
        "main (float[B,R,K] a, float[K,N] b, float[B,R,N] z) => (y) { p = MatMul (a, b) y = Add "
        "(p, z) }",
        {{"a", numbers({3, 130, 160}, 1)}, {"b", b}, {"z", numbers({3, 130, 200}, 1)}}, 1e-5);
    agree("main (float[R,N] a, float[K,N] b) => (y) { y = Gemm <transB = 1, alpha = 0.3> (a, b) }",
          {{"a", numbers({190, 200}, 1)}, {"b", b}}, 1e-5);
  }
  agree("main (float[B,R,K] a, float[B,K,N] b) => (y) { y = MatMul (a, b) }",
        {{"a", numbers({5, 130, 150}, 1)}, {"b", numbers({5, 150, 199}, 1)}}, 1e-5);
}

/// Few results of many numbers each, which threads share.
TEST_P(Classical, FoldsOfLongColumns) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp",
                         "ReduceSumSquare", "ReduceL1", "ReduceL2"})
    for (const char* axes : {"0, 1, 2", "1", "1, 2", "2"})
      for (const int64_t length : {4096, 4099}) {
        const std::string text =
            std::string("main (float[A,B,C] x) => (y) {\n a = Constant <value_ints = [") + axes +
            "]> ()\n y = " + op + " <keepdims = 0> (x, a) }";
        agree(text, {{"x", numbers({2, length, 40}, 1)}}, 1e-5);
      }
  // Wide ones, of which threads share the columns.
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceL2"})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{70, 5003}, {3, 70001}})
      agree(
          std::string("main (float[A,B] x) => (y) {\n a = Constant <value_ints = [0]> ()\n y = ") +
              op + " (x, a) }",
          {{"x", numbers({rows, columns}, 1)}}, 1e-5);
}

TEST_P(Classical, DistancesOfDoubles) {
  for (const int64_t rows : {1, 3, 4, 21})
    for (const int64_t others : {1, 63, 64, 70})
      for (const int64_t width : {1, 5, 40})
        for (const char* metric : {"euclidean", "sqeuclidean"})
          agree(std::string("main (float[A,C] a, float[B,C] b) => (y) {\n c = Cast <to = 11> (a)\n "
                            "d = Cast <to = 11> (b)\n e = com.microsoft.CDist <metric = \"") +
                    metric + "\"> (c, d)\n y = Cast <to = 1> (e) }",
                {{"a", numbers({rows, width}, 1)}, {"b", numbers({others, width}, 1)}}, 1e-7);
}

TEST_P(Classical, NormsAndMissingValuesOfAllTypes) {
  for (const int64_t rows : {1, 5, 40})
    for (const int64_t features : {1, 3, 8, 70})
      for (const char* type : {"1", "11", "7", "6"}) {
        const Tensor x = numbers({rows, features}, 4);
        const std::string in =
            std::string("main (float[N, F] x) => (y) { f = Cast <to = ") + type + "> (x)\n ";
        for (const char* norm : {"MAX", "L1", "L2"})
          agree(in + "y = ai.onnx.ml.Normalizer <norm = \"" + norm + "\"> (f) }", {{"x", x}}, 1e-6);
        if (*type == '6') continue;
        std::string floats = "[1.5", ints = "[9";
        for (int64_t i = 1; i < features; ++i) {
          floats += ", " + std::to_string(0.5 * static_cast<double>(i));
          ints += ", " + std::to_string(i);
        }
        for (const char* marker : {"2.0", "0.0"})
          agree(in + "y = ai.onnx.ml.Imputer <imputed_value_floats = " + floats +
                    "], imputed_value_int64s = " + ints +
                    "], replaced_value_int64 = 2, "
                    "replaced_value_float = " +
                    marker + "> (f) }",
                {{"x", x}});
      }
}

TEST_P(Classical, ReductionsOfShortRows) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceLogSumExp",
                         "ReduceSumSquare", "ReduceL1"})
    for (const int64_t rows : {31, 32, 63, 64, 65, 200})
      for (const int64_t n : {1, 2, 3, 7, 11, 12})
        for (const char* type : {"1", "11"}) {
          const Tensor x = numbers({rows, n}, 2);
          agree(std::string("main (float[R,N] x) => (y) {\n c = Cast <to = ") + type +
                    "> (x)\n a = Constant <value_ints = [-1]> ()\n d = " + op +
                    " <keepdims = 0> (c, a)\n y = Cast <to = 1> (d) }",
                {{"x", x}}, 2e-6);
        }
}

TEST_P(Classical, ColumnsJoined) {
  for (const int64_t rows : {15, 16, 64, 65, 200})
    for (const int columns : {7, 8, 17, 70})
      for (const char* type : {"1", "11", "7", "6"}) {
        std::string text =
            "main (float[R,1] x) => (y) {\n c0 = Cast <to = " + std::string(type) + "> (x)\n ";
        std::string names = "c0";
        for (int i = 1; i < columns; ++i) {
          const std::string name = "c" + std::to_string(i);
          text += name + " = Add (c" + std::to_string(i - 1) + ", c0)\n ";
          names += ", " + name;
        }
        agree(text + "z = Concat <axis = 1> (" + names + ")\n y = Cast <to = 1> (z) }",
              {{"x", numbers({rows, 1}, 1)}});
      }
}

TEST_P(Classical, Maps) {
  const auto run = [](const std::string& main, const MapValue& map) {
    auto model =
        parse_text("<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 4]>\n" + main);
    EXPECT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), {});
    EXPECT_TRUE(session) << session.error().message;
    auto outputs = (*session)->run({{"m", RunValue(map)}});
    EXPECT_TRUE(outputs) << outputs.error().message;
    return outputs ? (*outputs)[0].tensor() : Tensor();
  };
  const int64_t three[] = {3}, numbers[] = {7, 2, 5};
  const float values[] = {0.5f, 1.5f, 2.5f};
  const Tensor scalars = Tensor::of<float>(DType::kFloat32, three, values);
  const std::vector<RunValue> apart = {scalars.part(0, {}), scalars.part(1, {}),
                                       scalars.part(2, {})};
  const Tensor words = Tensor::of_strings(three, {"b", "a", "c"});
  for (const bool together : {false, true}) {
    const auto map = [&](const Tensor& keys) {
      return together ? MapValue{keys, {}, scalars} : MapValue{keys, apart, {}};
    };
    const float by_word[] = {1.5f, 0, 0.5f, 1.5f}, by_number[] = {2.5f, 0.5f, 0},
                in_order[] = {1.5f, 2.5f, 0.5f};
    EXPECT_EQ(run("main (map(string, float) m) => (y) { y = ai.onnx.ml.DictVectorizer "
                  "<string_vocabulary = [\"a\", \"x\", \"b\", \"a\"]> (m) }",
                  map(words)),
              Tensor::of<float>(DType::kFloat32, {{1, 4}}, by_word));
    EXPECT_EQ(run("main (map(int64, float) m) => (y) { y = ai.onnx.ml.DictVectorizer "
                  "<int64_vocabulary = [5, 7, 100000]> (m) }",
                  map(Tensor::int64s(numbers))),
              Tensor::of<float>(DType::kFloat32, {{1, 3}}, by_number));
    EXPECT_EQ(run("main (map(int64, float) m) => (y) { y = ai.onnx.ml.CastMap (m) }",
                  map(Tensor::int64s(numbers))),
              Tensor::of<float>(DType::kFloat32, three, in_order).reshaped({{1, 3}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Classical,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
