// Operators over types and axes that networks use now and then: fast kernels against the
// reference's.

#include "operators.h"
#include "runtime/kernels/elementwise/unary_typed.h"

namespace tombolo {
namespace {

class TypedOperators : public Operators {
 protected:
  /// `node` (of x) over numbers that are first cast to each of the types. Those that no byte holds
  /// keep their low bits.
  void agree_cast(std::initializer_list<int> types, const std::string& node, const Tensor& x,
                  const std::string& outputs = "y", const std::string& constants = "") {
    std::string axes;
    for (size_t i = 0; i < x.rank(); ++i) axes += (i == 0 ? "D" : ",D") + std::to_string(i);
    for (const int type : types)
      agree("main (float[" + axes + "] given) => (" + outputs + ") " + constants +
                " { x = Cast <to = " + std::to_string(type) + "> (given) " + outputs + " = " +
                node + " }",
            {{"given", x}});
  }
};
constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7, kBool = 9, kF16 = 10, kF64 = 11,
              kU32 = 12, kU64 = 13;

TEST_P(TypedOperators, MaxPoolGivesPlaces) {
  for (const char* attributes :
       {"kernel_shape = [2, 2], strides = [2, 2]", "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
        "kernel_shape = [3, 2], strides = [2, 3], pads = [2, 1, 0, 1], ceil_mode = 1",
        "kernel_shape = [2, 3], dilations = [2, 3], storage_order = 1",
        "kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_UPPER\", storage_order = 1"})
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{7, 8}, {9, 40}, {20, 35}})
      for (const bool odd : {false, true})
        agree_cast(odd ? std::initializer_list<int>{kF32, kF64}
                       : std::initializer_list<int>{kF32, kF64, kU8, kI8},
                   std::string("MaxPool <") + attributes + "> (x)",
                   numbers({2, 3, height, width}, odd ? 0.05f : 20, odd), "y, places");
  agree_cast({kF32, kI8}, "MaxPool <kernel_shape = [3], strides = [2], pads = [2, 2]> (x)",
             numbers({2, 2, 65}, 30), "y, places");
  agree_cast({kF32, kU8},
             "MaxPool <kernel_shape = [2, 2, 3], strides = [1, 2, 2], pads = [1, 0, 1, 1, 1, 1], "
             "storage_order = 1> (x)",
             numbers({1, 2, 5, 6, 21}, 30), "y, places");
  // Doubles without places, and windows that see nothing but padding.
  agree_cast({kF64}, "MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (x)",
             numbers({1, 3, 17, 19}, 1, true));
  agree_cast({kF32, kU8},
             "MaxPool <kernel_shape = [2, 2], strides = [2, 2], dilations = [4, 4], pads = [2, 2, "
             "2, 2]> (x)",
             numbers({1, 1, 5, 5}, 9), "y, places");
}

// Matrices that are cut into tiles of every size, with what is left beside them.
TEST_P(TypedOperators, TransposedMatrices) {
  for (const int64_t rows : {5, 7, 8, 16, 17, 20, 24, 31, 33, 36, 50, 70, 600})
    for (const int64_t columns : {7, 8, 16, 19, 25, 40, 65, 530})
      if (rows * columns < 100000)
        agree_cast({kU8, kF16, kF32, kI64}, "Transpose <perm = [0, 2, 1]> (x)",
                   numbers({2, rows, columns}, 60));
}

TEST_P(TypedOperators, MaxUnpool) {
  const auto model = [](const std::string& shape) {
    return "main (float[N,C,H,W] given) => (y)" +
           (shape.empty() ? "" : " <int64[4] s = {" + shape + "}>") +
           " { x, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (given) wide = Cast <to = "
           "11> (x) y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (wide, i" +
           (shape.empty() ? ")" : ", s)") + " }";
  };
  agree(model(""), {{"given", numbers({2, 3, 8, 10}, 1)}});
  agree(model("2, 3, 8, 10"), {{"given", numbers({2, 3, 8, 10}, 1)}});
  agree(model("2, 3, 9, 13"), {{"given", numbers({2, 3, 8, 10}, 1)}});
  agree(model("2, 3, 11, 10"), {{"given", numbers({2, 3, 8, 10}, 1)}});
}

TEST_P(TypedOperators, ExtremesOfAnyAxis) {
  for (const bool odd : {false, true})
    for (const auto& x :
         {numbers({70, 5, 3}, odd ? 0.05f : 20, odd), numbers({3, 40, 33}, odd ? 0.05f : 20, odd),
          numbers({2, 17, 300}, odd ? 0.05f : 20, odd)})
      for (const char* axis : {"0", "1", "-1"}) {
        const std::string on = std::string("<axis = ") + axis;
        agree_cast({kF32, kF64}, "Hardmax " + on + "> (x)", x);
        for (const char* op : {"ArgMax ", "ArgMin "})
          for (const char* last :
               {", select_last_index = 0, keepdims = 0> (x)", ", select_last_index = 1> (x)"}) {
            agree_cast({kF32, kF64, kF16}, op + on + last, x);
            if (!odd) agree_cast({kU8, kI8, kI32, kI64, kU32, kU64}, op + on + last, x);
          }
      }
}

TEST_P(TypedOperators, BestOfColumns) {
  for (const bool odd : {false, true})
    for (const auto& x :
         {numbers({70, 8, 3}, odd ? 0.05f : 20, odd), numbers({3, 40, 33}, odd ? 0.05f : 20, odd),
          numbers({9, 64}, odd ? 0.05f : 20, odd), numbers({40, 64}, odd ? 0.05f : 20, odd)})
      for (const char* axis : {"1", "-1"})
        for (const char* k : {"1", "2", "3", "8"})
          for (const char* largest : {"0", "1"}) {
            if (*k > '3' && x.dim(x.rank() - 1) == 3 && *axis == '-') continue;
            const std::string node = std::string("TopK <axis = ") + axis +
                                     ", largest = " + largest + "> (x, k)",
                              constants = std::string("<int64[1] k = {") + k + "}>";
            agree_cast({kF32, kF64, kF16}, node, x, "y, places", constants);
            if (!odd) agree_cast({kI32, kI64}, node, x, "y, places", constants);
          }
  // Nothing is better than the least integer: those come by their places.
  const std::vector<int64_t> least(20 * 16, std::numeric_limits<int64_t>::min());
  Tensor x = Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{20, 16}, least);
  x.data<int64_t>()[5] = x.data<int64_t>()[40] = 3;
  for (const char* axis : {"0", "1"})
    agree(std::string("main (int64[N,M] x) => (y, i) <int64[1] k = {3}> { y, i = TopK <axis = ") +
              axis + "> (x, k) }",
          {{"x", x}});
}

TEST_P(TypedOperators, ReductionsOfIntegers) {
  opset_ = 20;
  for (const auto& x : {numbers({70, 3}, 60), numbers({5, 200}, 60), numbers({4, 33, 18}, 60),
                        numbers({3, 7, 64, 2}, 60)})
    for (const char* axes : {"{0}", "{1}", "{-1}", "{0, 1}"})
      for (const char* keep : {"0", "1"}) {
        const std::string count = std::string(axes) == "{0, 1}" ? "2" : "1";
        const std::string constants = "<int64[" + count + "] a = " + axes + ">",
                          end = std::string(" <keepdims = ") + keep + "> (x, a)";
        agree_cast({kU8, kI8, kBool, kI32, kI64}, "ReduceMax" + end, x, "y", constants);
        agree_cast({kU8, kI8, kBool, kI32, kI64}, "ReduceMin" + end, x, "y", constants);
        for (const char* op : {"ReduceMean", "ReduceProd", "ReduceSum", "ReduceL1", "ReduceL2",
                               "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
          agree_cast({kI32, kI64}, op + end, x, "y", constants);
      }
  // A sum that int32 does not hold, of which the mean is one.
  const std::vector<int32_t> great(300, 2000000000);
  agree("main (int32[N,M] x) => (y) <int64[1] a = {1}> { y = ReduceMean (x, a) }",
        {{"x", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{3, 100}, great)}});
  agree("main (int32[N,M] x) => (y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }",
        {{"x", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{3, 100}, great)}});
}

// NaNs in any place of columns, whose extrema go without them where there are none.
TEST_P(TypedOperators, ExtremaDownColumns) {
  opset_ = 20;
  for (const auto& x :
       {numbers({3, 37, 56}, 6, true), numbers({2, 9, 300}, 6), numbers({2, 9, 300}, 6, true),
        numbers({4, 5, 3}, 6, true), numbers({2, 130, 35}, 6), numbers({1, 6, 1}, 6, true)})
    for (const char* op : {"ReduceMax", "ReduceMin"})
      agree_cast({kF32, kF64}, std::string(op) + " (x, a)", x, "y", "<int64[1] a = {1}>");
  // Rows of one to four vectors.
  for (const int64_t width : {4, 7, 8, 9, 16, 17, 31, 50, 63, 64, 65, 100})
    for (const char* op : {"ReduceMax", "ReduceMin"}) {
      agree_cast({kF32, kF64}, std::string(op) + " (x, a)", numbers({37, width}, 6), "y",
                 "<int64[1] a = {1}>");
      agree_cast({kF32, kF64}, std::string(op) + " (x, a)", numbers({37, width}, 6, true), "y",
                 "<int64[1] a = {1}>");
    }
}

TEST_P(TypedOperators, ExpandsRowsOfOneElement) {
  for (const char* shape : {"{5, 7, 3}", "{5, 7, 64}", "{2, 5, 7, 9}", "{5, 7, 900}"}) {
    const std::string size =
        std::string(shape).front() == '{' && std::string(shape)[1] == '2' ? "4" : "3";
    agree_cast({kF32, kU8, kI64, kF16}, "Expand (x, s)", numbers({7, 1}, 6), "y",
               "<int64[" + size + "] s = " + shape + ">");
    agree_cast({kF32, kU8}, "Expand (x, s)", numbers({5, 7, 1}, 6), "y",
               "<int64[" + size + "] s = " + shape + ">");
  }
}

/// Lines of every length, repeated a few times and often, in blocks that are near and far.
TEST_P(TypedOperators, TilesAxesThatAreRepeatedAndCopied) {
  for (const char* times : {"1, 1, 1", "3, 1, 1", "1, 3, 1", "1, 1, 3", "2, 1, 5", "1, 4, 40",
                            "3, 2, 2", "0, 1, 2", "1, 40, 1"})
    for (const auto& shape : {std::vector<int64_t>{5, 7, 1},
                              {4, 3, 3},
                              {3, 17, 9},
                              {2, 6, 40},
                              {9, 3, 130},
                              {2, 2, 700}}) {
      const std::string list = "<int64[3] t = {" + std::string(times) + "}>";
      for (const int to : {kF32, kU8, kI64, kF16})
        agree("main (float[A,B,C] given) => (y) " + list +
                  " { x = Cast <to = " + std::to_string(to) + "> (given) y = Tile (x, t) }",
              {{"given", numbers(shape, 60)}});
      agree("main (float[A,B,C] given) => (y) <int64[6] apart = {" + std::to_string(shape[0]) +
                ",1," + std::to_string(shape[1]) + ",1," + std::to_string(shape[2]) +
                ",1}, int64[6] e = {1,3,1,2,1,9}> { x = Reshape (given, apart) y = Expand (x, e) }",
            {{"given", numbers(shape, 60)}});
    }
  agree("main (float[A,B] x) => (y) <int64[2] t = {3, 3}> { y = Tile (x, t) }",
        {{"x", numbers({300, 501}, 1)}});
}

TEST_P(TypedOperators, WhereAlongShortRows) {
  const std::vector<std::vector<int64_t>> shapes = {{3, 49, 17, 5}, {1, 49, 1, 1}, {3, 49, 17, 1},
                                                    {17, 5},        {5},           {3, 1, 1, 5}};
  for (const int to : {kF32, kU8, kI64, kF16})
    for (const auto& c : shapes)
      for (const auto& a : shapes)
        for (const auto& b : shapes) {
          const auto input = [](const std::vector<int64_t>& dims, char name) {
            std::string text = "float[";
            for (size_t i = 0; i < dims.size(); ++i)
              text += (i == 0 ? "" : ",") + (name + std::to_string(i));
            return text + "] " + name;
          };
          const std::string cast = " = Cast <to = " + std::to_string(to) + "> (";
          agree("main (" + input(c, 'c') + ", " + input(a, 'a') + ", " + input(b, 'b') +
                    ") => (y) { r = Floor (c) p = Relu (r) m = Cast <to = 9> (p) u" + cast +
                    "a) v" + cast + "b) y = Where (m, u, v) }",
                {{"c", numbers(c, 3)}, {"a", numbers(a, 9)}, {"b", numbers(b, 9)}});
        }
}

TEST_P(TypedOperators, CastOfAllPairs) {
  std::vector<double> values;
  for (const double x : {0.0,
                         0.4,
                         0.6,
                         1.5,
                         127.9,
                         128.0,
                         255.5,
                         256.0,
                         32767.7,
                         32768.0,
                         65519.99,
                         65520.0,
                         65535.5,
                         65536.0,
                         2147483647.9,
                         2147483648.0,
                         4294967295.9,
                         4294967296.0,
                         9.2233720368547748e18,
                         9.2233720368547758e18,
                         1.8446744073709550e19,
                         1.8446744073709552e19,
                         1e30,
                         1e300,
                         2049.0,
                         2049.0000001,
                         2051.0,
                         1.00048828125,
                         1.0004882812500002,
                         3e-8,
                         2.98e-8,
                         2.9802322387695312e-8,
                         2.980232238769532e-8,
                         1e-320,
                         HUGE_VAL})
    values.insert(values.end(), {x, -x});
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  const Tensor x = Tensor::of<double>(
      DType::kFloat64, std::vector<int64_t>{static_cast<int64_t>(values.size())}, values);
  // Halfway between bfloat16 numbers, but for the last bit of an int64.
  std::vector<int64_t> long_ones;
  for (const int64_t v :
       {int64_t{257} << 53, int64_t{257} << 45, int64_t{259} << 53, int64_t{771} << 46})
    for (const int64_t by : {-1, 0, 1, 700, -700})
      long_ones.insert(long_ones.end(), {v + by, -v + by});
  agree("main (int64[N] x) => (y) { y = Cast <to = 16> (x) }",
        {{"x", Tensor::of<int64_t>(DType::kInt64,
                                   std::vector<int64_t>{static_cast<int64_t>(long_ones.size())},
                                   long_ones)}});
  std::vector<int32_t> ones;
  for (const int32_t v : {257 << 21, 257 << 16, 259 << 21, 771 << 17, (1 << 24) + 1, 0})
    for (const int32_t by : {-1, 0, 1, 70, -70}) ones.insert(ones.end(), {v + by, -v + by});
  agree("main (int32[N] x) => (y) { y = Cast <to = 16> (x) }",
        {{"x", Tensor::of<int32_t>(
                   DType::kInt32, std::vector<int64_t>{static_cast<int64_t>(ones.size())}, ones)}});
  for (const int from : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16})
    for (const int to : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}) {
      if (from == to) continue;
      const std::string first =
          from == kF64 ? "" : "v = Cast <to = " + std::to_string(from) + "> (x) ";
      agree("main (double[N] x) => (y) { " + first + "y = Cast <to = " + std::to_string(to) +
                "> (" + (from == kF64 ? "x" : "v") + ") }",
            {{"x", x}});
    }
}

TEST_P(TypedOperators, NormsGiveTheirMoments) {
  for (const int64_t n : {7, 33, 64, 200}) {
    const std::vector<NamedValue> inputs = {
        {"x", numbers({3, 5, n}, 1)}, {"s", numbers({n}, 1)}, {"b", numbers({n}, 1)}};
    agree(
        "main (float[A,B,C] x, float[C] s, float[C] b) => (y, m, v) { y, m, v = "
        "LayerNormalization (x, s, b) }",
        inputs, 1e-5);
    agree(
        "main (float[A,B,C] x, float[C] s, float[C] b) => (y, v) { y, v = "
        "SimplifiedLayerNormalization (x, s) }",
        inputs, 1e-5);
    agree(
        "main (float[A,B,C] x, float[C] s, float[C] b) => (y, v, t) { y, m, v, t = "
        "com.microsoft.SkipSimplifiedLayerNormalization (x, x, s, b) }",
        inputs, 1e-5);
    agree(
        "main (float[A,B,C] x, float[C] s, float[C] b) => (y, m, v) { y, m, v = "
        "com.microsoft.SkipLayerNormalization (x, x, s, b) }",
        inputs, 1e-5);
  }
}

TEST_P(TypedOperators, QuantiseHalves) {
  for (const char* type : {"uint8", "int8", "int16"})
    for (const bool odd : {false, true}) {
      const auto model = [&](const std::string& attributes) {
        return "main (float[A,B] given, float[S,T] scales, " + std::string(type) +
               "[S,T] z) => (q, y) { x = Cast <to = 10> (given) s = Cast <to = 10> (scales) q = "
               "QuantizeLinear <" +
               attributes + "> (x, s, z) y = DequantizeLinear <" + attributes + "> (q, s, z) }";
      };
      const auto zeros = [&](std::vector<int64_t> dims) {
        Tensor z = *Tensor::allocate(dtype_from_name(type).value(), dims);
        for (int64_t i = 0; i < z.size(); ++i) z.set_int64(i, i % 7);
        return z;
      };
      Tensor scales = numbers({9, 5}, 0.01f);
      for (float& s : scales.span<float>()) s = std::fabs(s) + 0.003f;
      agree(model("axis = 1, block_size = 16"),
            {{"given", numbers({9, 70}, 1, odd)}, {"scales", scales}, {"z", zeros({9, 5})}});
    }
}

TEST_P(TypedOperators, ThreeOperands) {
  for (const char* op : {"Max", "Min", "Sum"})
    for (const int type : {kF64, kI32, kI64, kU8, kI8}) {
      if (*op == 'S' && type != kF64) continue;
      const std::string to = std::to_string(type);
      agree(
          "main (float[A,B,C] a, float[B,C2] b, float[A,B2,C] c, float[C] d) => (y) { p = Cast "
          "<to = " +
              to + "> (a) q = Cast <to = " + to + "> (b) r = Cast <to = " + to +
              "> (c) s = Cast <to = " + to + "> (d) y = " + op + " (p, q, r, s) }",
          {{"a", numbers({5, 7, 90}, 20)},
           {"b", numbers({7, 1}, 20)},
           {"c", numbers({5, 1, 90}, 20, type == kF64)},
           {"d", numbers({90}, 20)}});
    }
}

TEST_P(TypedOperators, ProductsOfDoubles) {
  const auto model = [](const std::string& node) {
    return "main (float[A,B,C] x, float[A2,B2,C2] w) => (y) { a = Cast <to = 11> (x) b = Cast <to "
           "= 11> (w) z = " +
           node + " y = Cast <to = 1> (z) }";
  };
  const auto fused = [](const std::string& attributes) {
    return "com.microsoft.FusedMatMul <" + attributes + "> (a, b)";
  };
  agree(model(fused("transB = 1, alpha = 0.25")),
        {{"x", numbers({3, 17, 20}, 1)}, {"w", numbers({3, 9, 20}, 1)}}, 1e-6);
  agree(model(fused("transA = 1, alpha = -3.0")),
        {{"x", numbers({2, 20, 17}, 1)}, {"w", numbers({1, 20, 9}, 1)}}, 1e-6);
  agree(model(fused("transA = 1, transB = 1")),
        {{"x", numbers({2, 20, 5}, 1)}, {"w", numbers({2, 33, 20}, 1)}}, 1e-6);
  for (const int64_t k : {1, 20, 300, 513})
    for (const int64_t n : {1, 7, 64, 75, 150})
      agree(model("MatMul (a, b)"), {{"x", numbers({3, 1, k}, 1)}, {"w", numbers({3, k, n}, 1)}},
            1e-6);
  agree(model("Einsum <equation = \"bid,bjd->bij\"> (a, b)"),
        {{"x", numbers({3, 17, 20}, 1)}, {"w", numbers({3, 9, 20}, 1)}}, 1e-6);
  agree(model("Einsum <equation = \"abc,dec->adbe\"> (a, b)"),
        {{"x", numbers({3, 7, 20}, 1)}, {"w", numbers({2, 9, 20}, 1)}}, 1e-6);
}

TEST_P(TypedOperators, NormsOfDoubles) {
  opset_ = 23;
  for (const int64_t n : {1, 7, 33, 200}) {
    const auto model = [](const std::string& node) {
      return "main (float[A,B,C] given, float[C] scales, float[C] biases) => (y) { x = Cast <to = "
             "11> (given) s = Cast <to = 11> (scales) b = Cast <to = 11> (biases) z = " +
             node + " y = Cast <to = 1> (z) }";
    };
    const std::vector<NamedValue> inputs = {
        {"given", numbers({3, 5, n}, 1)}, {"scales", numbers({n}, 1)}, {"biases", numbers({n}, 1)}};
    for (const char* node :
         {"LayerNormalization (x, s, b)", "LayerNormalization (x, s)", "RMSNormalization (x, s)",
          "SimplifiedLayerNormalization (x, s)", "LpNormalization <axis = -1, p = 1> (x)",
          "LpNormalization <axis = 1> (x)", "LpNormalization <axis = 0, p = 1> (x)",
          "Softmax <axis = 1> (x)", "LogSoftmax <axis = 0> (x)"})
      agree(model(node), inputs, 1e-6);
    for (const char* axis : {"0", "1", "2"})
      for (const bool odd : {false, true})
        agree("main (float[A,B,C] given) => (y) <int64[1] a = {" + std::string(axis) +
                  "}> { x = Cast <to = 11> (given) z = ReduceLogSumExp (x, a) y = Cast <to = 1> "
                  "(z) }",
              {{"given", numbers({3, 5, n}, 4, odd)}}, 1e-6);
  }
}

TEST_P(TypedOperators, PowersOfDoubles) {
  for (const char* exponent :
       {"double k = {2}", "double k = {3}", "double k = {0.5}", "double k = {-1.5}",
        "double[7] k = {0, 1, 2, 3, -2, 0.5, 1.25}", "double[5,1] k = {2, 3, -1, 0.25, 7}"})
    agree_cast({kF64}, "Pow (x, k)", numbers({3, 5, 7}, 2, true), "y",
               std::string("<") + exponent + ">");
}

TEST_P(TypedOperators, ProductsOf16Bits) {
  for (const auto& [a, b] : {std::pair<const char*, const char*>{"int16", "int16"},
                             {"uint16", "uint16"},
                             {"int16", "uint16"}})
    agree("main (float[A,B,C] x, float[C,D] w, " + std::string(a) + "[1] p, " + b +
              "[1] q) => (y) { a = CastLike (x, p) b = CastLike (w, q) y = "
              "com.microsoft.MatMulInteger16 (a, b) }",
          {{"x", numbers({2, 17, 40}, 20000)},
           {"w", numbers({40, 33}, 20000)},
           {"p", *Tensor::allocate(dtype_from_name(a).value(), std::vector<int64_t>{1})},
           {"q", *Tensor::allocate(dtype_from_name(b).value(), std::vector<int64_t>{1})}});
}

/// The greatest distance from `exact` in units of the last place.
double worst(UnaryTyped op, double low, double high, double (*exact)(double),
             std::mt19937& engine) {
  std::uniform_real_distribution<double> any(low, high);
  std::vector<double> x(10007), y(x.size());
  for (double& v : x) v = any(engine);
  unary_typed_fn(op, DType::kFloat64)(x.data(), y.data(), static_cast<int64_t>(x.size()), 0);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(x[i]);
    const double unit = std::nextafter(std::fabs(want), HUGE_VAL) - std::fabs(want);
    most = std::max(most, std::fabs(y[i] - want) / unit);
  }
  return most;
}

TEST_P(TypedOperators, FunctionsOfDoubles) {
  for (const double size : {0.01, 1.0, 5.0, 30.0, 600.0}) {
    const auto at = [&](UnaryTyped op, double (*exact)(double)) {
      return worst(op, -size, size, exact, engine_);
    };
    EXPECT_LE(at(UnaryTyped::kTanh, [](double x) { return std::tanh(x); }), 4) << size;
    EXPECT_LE(at(UnaryTyped::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 4) << size;
    EXPECT_LE(at(UnaryTyped::kExp, [](double x) { return std::exp(x); }), 2) << size;
    EXPECT_LE(at(UnaryTyped::kSin, [](double x) { return std::sin(x); }), 4) << size;
    EXPECT_LE(at(UnaryTyped::kCos, [](double x) { return std::cos(x); }), 4) << size;
  }
  for (const char* type : {"uint8", "uint16", "int8", "uint32", "int64"})
    for (const char* op : {"Abs", "Sign"})
      agree("main (float[N] given, " + std::string(type) +
                "[1] like) => (y) { x = CastLike (given, like) y = " + op + " (x) }",
            {{"given", numbers({100}, 100)},
             {"like", *Tensor::allocate(dtype_from_name(type).value(), std::vector<int64_t>{1})}});
  for (const char* op : {"Tanh", "Exp", "Sigmoid", "Sin", "Cos", "Reciprocal", "Sign"}) {
    const std::vector<double> odd = {std::numeric_limits<double>::quiet_NaN(),
                                     HUGE_VAL,
                                     -HUGE_VAL,
                                     -0.0,
                                     0.0,
                                     1e300,
                                     -1e300,
                                     5e-324,
                                     -5e-324,
                                     1e-300,
                                     710,
                                     -746};
    agree("main (double[N] x) => (y) { z = " + std::string(op) + " (x) y = Cast <to = 1> (z) }",
          {{"x", Tensor::of<double>(DType::kFloat64,
                                    std::vector<int64_t>{static_cast<int64_t>(odd.size())}, odd)}},
          1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, TypedOperators,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
