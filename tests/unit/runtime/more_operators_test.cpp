// Operators whose kernels select, step over and fold: against the reference's, over types.

#include "base/thread_pool.h"
#include "operators.h"
#include "runtime/kernels/elementwise/binary.h"

namespace tombolo {
namespace {

class MoreOperators : public Operators {
 protected:
  /// Nodes whose input x is `given`, cast to each of the types.
  void agree_cast(std::initializer_list<int> types, const std::string& nodes, const Tensor& given,
                  const std::string& outputs = "y", const std::string& constants = "",
                  double error = 0) {
    std::string axes;
    for (size_t i = 0; i < given.rank(); ++i) axes += (i == 0 ? "D" : ",D") + std::to_string(i);
    for (const int type : types)
      agree("main (float[" + axes + "] given) => (" + outputs + ") " + constants +
                " { x = Cast <to = " + std::to_string(type) + "> (given) " + nodes + " }",
            {{"given", given}}, error);
  }
};
constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI16 = 5, kI32 = 6, kI64 = 7, kF16 = 10, kF64 = 11,
              kU64 = 13, kBf16 = 16;

TEST_P(MoreOperators, SeveralWithBroadcasting) {
  // Rows of all lengths, columns, numbers, and what repeats in the middle, in any place.
  const std::vector<std::vector<std::vector<int64_t>>> shapes = {
      {{40, 70}, {70}, {40, 1}},
      {{70}, {40, 1}, {1}},
      {{1}, {1, 1}, {1}},
      {{2, 1, 9}, {33, 1}, {2, 33, 9}},
      {{5, 17, 16}, {17, 1}, {16}, {}},
      {{3, 1, 5, 1}, {7, 1, 13}, {3, 7, 5, 13}, {13}},
      {{1, 3000}, {1, 3000}, {1, 3000}},
      {{300, 1, 3}, {1, 4, 1}, {300, 4, 3}},
      {{2, 1100}, {1100}, {2, 1}},
      {{0, 4}, {4}, {1, 1}},
      {{6, 200}, {1, 200}}};
  for (const auto& given : shapes)
    for (const char* op : {"Sum", "Mean", "Max", "Min"})
      for (const int type : {kF32, kF64, kF16, kBf16, kI8, kU64, kI32, kI16}) {
        const bool whole = type != kF32 && type != kF64 && type != kF16 && type != kBf16;
        if (whole && *op != 'M') continue;
        if (whole && std::string(op) == "Mean") continue;
        std::string inputs, casts, names;
        std::vector<NamedValue> values;
        std::vector<std::string> kept;
        for (size_t i = 0; i < given.size(); ++i) {
          const std::string n = std::to_string(i);
          std::string axes;
          for (size_t j = 0; j < given[i].size(); ++j)
            axes += (j == 0 ? "A" : ",A") + n + "_" + std::to_string(j);
          inputs += (i == 0 ? "float[" : ", float[") + axes + "] g" + n;
          casts += " x" + n + " = Cast <to = " + std::to_string(type) + "> (g" + n + ")";
          names += (i == 0 ? "x" : ", x") + n;
          std::vector<float> numbers(static_cast<size_t>(element_count(given[i])));
          for (float& x : numbers) {
            x = std::round(normal_(engine_) * 64) / (whole ? 1.0f : 64.0f);
            if (!whole && engine_() % 50 == 0) x = std::numeric_limits<float>::quiet_NaN();
          }
          kept.push_back("g" + n);
          values.push_back({kept.back(), Tensor::of<float>(DType::kFloat32, given[i], numbers)});
        }
        agree("main (" + inputs + ") => (y) {" + casts + " y = " + op + " (" + names + ") }",
              values);
      }
}

TEST_P(MoreOperators, TopKOfMany) {
  for (const char* attributes :
       {"sorted = 0", "sorted = 1", "sorted = 0, largest = 0", "sorted = 1, largest = 0"})
    for (const int64_t k : {1, 7, 24, 25, 64, 100, 700, 1500, 2999, 3000}) {
      const std::string node = std::string("y, places = TopK <") + attributes + "> (x, k)";
      const std::string constants = "<int64[1] k = {" + std::to_string(k) + "}>";
      // Numbers of all sizes, few that differ, and one more than all others.
      for (const float scale : {1e6f, 0.03f, 0.0f}) {
        agree_cast({kI32, kI64}, node, numbers({2, 3000}, scale), "y, places", constants);
        agree_cast({kF32, kF64, kF16}, node, numbers({2, 3000}, std::min(scale, 100.0f), true),
                   "y, places", constants);
      }
    }
  // More than are looked at together, in order and against it.
  const auto line = [&](auto&& number) {
    std::vector<float> values(20000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = number(i);
    return Tensor::of<float>(DType::kFloat32, std::vector<int64_t>{1, 20000}, values);
  };
  for (const auto& x : {line([](size_t i) { return static_cast<float>(i); }),
                        line([](size_t i) { return -static_cast<float>(i / 3); }),
                        line([&](size_t) { return static_cast<float>(engine_()); })})
    for (const char* k : {"30", "900", "9000"})
      for (const char* attributes : {"sorted = 0", "largest = 0"})
        agree_cast({kF32, kF64, kI32, kI64},
                   std::string("y, places = TopK <") + attributes + "> (x, k)", x, "y, places",
                   std::string("<int64[1] k = {") + k + "}>");
  // Short lines that are turned, and those side by side.
  for (const char* axis : {"0", "1", "2"})
    agree_cast({kF32, kF64, kI32, kI64},
               std::string("y, places = TopK <sorted = 0, axis = ") + axis + "> (x, k)",
               numbers({40, 33, 35}, 2), "y, places", "<int64[1] k = {27}>");
  for (const char* k : {"1", "5", "8"})
    for (const char* axis : {"0", "1"})
      agree_cast({kF32, kF64, kI32, kI64},
                 std::string("y, places = TopK <sorted = 0, axis = ") + axis + "> (x, k)",
                 numbers({40, 33}, 2), "y, places", std::string("<int64[1] k = {") + k + "}>");
}

TEST_P(MoreOperators, LpNormalization) {
  for (const char* p : {"1", "2"})
    for (const char* axis : {"0", "1", "2"})
      for (const auto& x :
           {numbers({67, 3, 1}, 1), numbers({3, 16, 5}, 1), numbers({2, 33, 20}, 1),
            numbers({5, 9, 33}, 1), numbers({1, 70, 128}, 1), numbers({20, 8, 3}, 1),
            numbers({3, 1, 700}, 1), numbers({70, 2, 17}, 0), numbers({9, 40, 2}, 1, true),
            numbers({50, 4, 1}, 1e-18f), numbers({7, 29, 4}, 1, true), numbers({31, 3, 1}, 1e18f),
            numbers({2, 3, 67}, 1, true)}) {
        const std::string node =
            std::string("n = LpNormalization <p = ") + p + ", axis = " + axis + "> (x) ";
        agree_cast({kF32, kF64}, node + "y = Cast <to = 1> (n)", x, "y", "", 1e-6);
      }
}

TEST_P(MoreOperators, RemaindersOfDoublesAreExact) {
  BinaryFn* fn = binary_fn(Binary::kFmod, DType::kFloat64);
  ASSERT_NE(fn, nullptr);
  constexpr double kOdd[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.1,
                             3.0,
                             1e300,
                             5e-324,
                             2.5e-310,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             9007199254740993.0,
                             1e16,
                             1.7e308,
                             0.3};
  std::vector<double> a, b;
  for (const double u : kOdd)
    for (const double v : kOdd) {
      a.push_back(u);
      b.push_back(v);
    }
  std::uniform_real_distribution<double> any(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    const double v = std::ldexp(any(engine_), static_cast<int>(engine_() % 60) - 30);
    // Multiples, and next to them, where a quotient is rounded to one too many.
    double u = v * static_cast<double>(static_cast<int64_t>(engine_() % 1000000));
    if (i % 3 == 1) u = std::nextafter(u, i % 2 == 0 ? INFINITY : -INFINITY);
    if (i % 3 == 2) u = std::ldexp(any(engine_), static_cast<int>(engine_() % 80) - 30);
    a.push_back(u);
    b.push_back(v);
  }
  const auto n = static_cast<int64_t>(a.size());
  for (const int repeats : {0, 1, 2}) {
    std::vector<double> y(a.size());
    const size_t one = 300;
    fn(a.data() + (repeats == 1 ? one : 0), repeats == 1, b.data() + (repeats == 2 ? one : 0),
       repeats == 2, y.data(), n - static_cast<int64_t>(repeats == 0 ? 0 : one));
    for (size_t i = 0; i + (repeats == 0 ? 0 : one) < a.size(); ++i) {
      const double u = a[repeats == 1 ? one : i], v = b[repeats == 2 ? one : i];
      const double want = std::fmod(u, v);
      if (want != want)
        EXPECT_NE(y[i], y[i]) << u << " " << v;
      else
        EXPECT_TRUE(y[i] == want && std::signbit(y[i]) == std::signbit(want)) << u << " " << v;
    }
  }
}

TEST_P(MoreOperators, PowersOfIntegers) {
  const auto pow = [&](int base, int exponent, float least, float most, int64_t rows,
                       int64_t columns, bool each) {
    std::vector<float> x(static_cast<size_t>(rows * columns)), e(each ? x.size() : 1);
    for (float& v : x) v = std::round(normal_(engine_) * 20);
    for (float& v : e) {
      v = least + (most - least) * static_cast<float>(engine_() % 1000) / 1000;
      if (engine_() % 2 == 0) v = std::floor(v);
    }
    const std::vector<int64_t> full{rows, columns}, one{1};
    agree("main (float[N,M] a, float" + std::string(each ? "[N,M]" : "[1]") +
              " b) => (y) { x = Cast <to = " + std::to_string(base) +
              "> (a) e = Cast <to = " + std::to_string(exponent) + "> (b) y = Pow (x, e) }",
          {{"a", Tensor::of<float>(DType::kFloat32, full, x)},
           {"b", Tensor::of<float>(DType::kFloat32, each ? full : one, e)}});
  };
  for (const int base : {kI32, kI64})
    for (const int exponent : {kI32, kI64, kF32, kF64})
      for (const bool each : {false, true}) {
        pow(base, exponent, 0, 9, 3, 40, each);
        pow(base, exponent, 0, 70, 5, 333, each);
        if (exponent == kF32 || exponent == kF64) pow(base, exponent, -3, 3, 7, 33, each);
      }
  // Exponents beyond what a base of 32 bits can tell apart, and those below zero.
  const std::vector<int64_t> exponents = {
      0, 1, 31, 32, 1 << 30, (int64_t{1} << 32) + 3, int64_t{1} << 62, -1, -2, -3};
  for (const char* base : {"int32", "int64"})
    for (const char* x : {"1", "-1", "2", "3", "-7", "10"}) {
      const auto count = static_cast<int64_t>(exponents.size());
      agree(std::string("main (int64[N] e) => (y) { f = Constant <value_float = ") + x +
                ".0> () x = Cast <to = " + (base[3] == '3' ? "6" : "7") + "> (f) y = Pow (x, e) }",
            {{"e", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{count}, exponents)}});
    }
}

TEST_P(MoreOperators, SixteenBitsByTheirBits) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  opset_ = 20;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16})
    for (const char* node : {"IsNaN (x)", "IsInf (x)", "IsInf <detect_negative = 0> (x)",
                             "IsInf <detect_positive = 0> (x)",
                             "IsInf <detect_positive = 0, detect_negative = 0> (x)", "Sign (x)"})
      for (const int64_t n : {65536, 65533, 1, 0}) {
        const std::span<const uint16_t> some(all.data(), static_cast<size_t>(n));
        agree(std::string("main (") + (dtype == DType::kFloat16 ? "float16" : "bfloat16") +
                  "[N] x) => (y) { y = " + node + " }",
              {{"x", Tensor::of<uint16_t>(dtype, std::vector<int64_t>{n}, some)}});
      }
}

TEST_P(MoreOperators, SlicesThatStepOver) {
  for (const char* step : {"2", "3", "4", "5", "-1", "-2", "-3", "-4", "-7"})
    for (const char* bounds : {"0, 1000", "1, -1", "-1, -1000", "-2, 3", "5, 60"})
      for (const int64_t width : {16, 33, 64, 130, 300}) {
        const std::string starts(bounds, std::string(bounds).find(',')),
            ends(bounds + starts.size() + 2);
        agree_cast({kF32, kF64, kU8, kI16}, "y = Slice (x, s, e, a, p)", numbers({3, 5, width}, 40),
                   "y",
                   "<int64[1] s = {" + starts + "}, int64[1] e = {" + ends +
                       "}, int64[1] a = {-1}, int64[1] p = {" + step + "}>");
      }
  agree_cast({kF32, kU8}, "y = Slice (x, s, e, a, p)", numbers({7, 5, 70}, 40), "y",
             "<int64[3] s = {-1, 4, 1}, int64[3] e = {-100, 0, 69}, int64[3] a = {0, 1, 2}, "
             "int64[3] p = {-2, -1, 3}>");
  agree_cast({kF32}, "y = Slice (x, s, e, a, p)", numbers({7, 40, 1}, 40), "y",
             "<int64[2] s = {0, 0}, int64[2] e = {3, 100}, int64[2] a = {-3, 1}, "
             "int64[2] p = {1, 2}>");
}

TEST_P(MoreOperators, Ranges) {
  for (const char* type : {"float", "double", "int32", "int64"})
    for (const char* numbers : {"0, 100, 1", "5, -70, -3", "3, 3, 1", "2, 1, 1", "-7, 1000, 7"}) {
      std::string text(numbers);
      const auto first = text.find(','), second = text.find(',', first + 1);
      agree(std::string("main (") + type + "[] s, " + type + "[] l, " + type +
                "[] d) => (y) { y = Range (s, l, d) }",
            [&] {
              std::vector<NamedValue> values;
              const std::string parts[] = {text.substr(0, first),
                                           text.substr(first + 1, second - first - 1),
                                           text.substr(second + 1)};
              const char* names[] = {"s", "l", "d"};
              for (int i = 0; i < 3; ++i) {
                const double number = std::stod(parts[i]);
                const std::vector<int64_t> none;
                const std::string_view t = type;
                Tensor tensor =
                    t == "float"
                        ? Tensor::of<float>(DType::kFloat32, none,
                                            std::vector<float>{static_cast<float>(number) * 1.1f})
                    : t == "double" ? Tensor::of<double>(DType::kFloat64, none,
                                                         std::vector<double>{number * 1.1})
                    : t == "int32"
                        ? Tensor::of<int32_t>(DType::kInt32, none,
                                              std::vector<int32_t>{static_cast<int32_t>(number)})
                        : Tensor::of<int64_t>(DType::kInt64, none,
                                              std::vector<int64_t>{static_cast<int64_t>(number)});
                values.push_back({names[i], std::move(tensor)});
              }
              return values;
            }());
    }
}

TEST_P(MoreOperators, LossesOfDoubles) {
  for (const auto& [scores, targets] :
       {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{9, 130}, {9}},
        {{5000, 3}, {5000}},
        {{3, 4, 33}, {3, 33}},
        {{2, 21, 17, 19}, {2, 17, 19}},
        {{3, 2, 5000}, {3, 5000}}}) {
    std::vector<float> x(static_cast<size_t>(element_count(scores)));
    for (float& score : x) score = 3 * normal_(engine_);
    std::vector<int64_t> t(static_cast<size_t>(element_count(targets)));
    for (int64_t& target : t)
      target = static_cast<int64_t>(engine_() % static_cast<uint32_t>(scores[1]));
    t[1] = -1;
    const std::vector<NamedValue> inputs = {{"x", Tensor::of<float>(DType::kFloat32, scores, x)},
                                            {"t", Tensor::of<int64_t>(DType::kInt64, targets, t)},
                                            {"w", numbers({scores[1]}, 1)}};
    for (const int type : {kF32, kF64})
      for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
        for (const char* reduction : {"none", "sum", "mean"})
          for (const char* more : {"", ", v"}) {
            const std::string cast = std::to_string(type),
                              call = std::string(" = ") + op +
                                     " <ignore_index = -1, reduction = \"" + reduction +
                                     "\"> (d, t" + more + ") ";
            const std::string head = "main (float[] x, int64[] t, float[] w) => (y";
            const std::string casts =
                "{ a = Abs (w) d = Cast <to = " + cast + "> (x) v = Cast <to = " + cast + "> (a) ";
            agree(head + ") " + casts + "l" + call + "y = Cast <to = 1> (l) }", inputs, 4e-6);
            if (*op == 'S')
              agree(head + ", p) " + casts + "l, q" + call +
                        "y = Cast <to = 1> (l) p = Cast <to = 1> (q) }",
                    inputs, 4e-6);
          }
  }
}

TEST_P(MoreOperators, RunningSumsOfManyColumns) {
  for (const auto& x : {numbers({11, 1100}, 9), numbers({3, 1024}, 9), numbers({2, 9, 64}, 9),
                        numbers({2, 7, 65}, 9), numbers({40, 2, 33}, 9), numbers({7, 2, 3}, 9),
                        numbers({5, 11, 2}, 9), numbers({3, 17, 4}, 9), numbers({9, 5}, 9)})
    for (const char* attributes :
         {"", "exclusive = 1", "reverse = 1", "exclusive = 1, reverse = 1"})
      for (const char* axis : {"0", "1"})
        agree_cast({kF32, kF64, kI32, kI64},
                   std::string("y = CumSum <") + attributes + "> (x, axis)", x, "y",
                   std::string("<int64 axis = {") + axis + "}>");
}

TEST_P(MoreOperators, GatheredElements) {
  for (const char* index : {"6", "7"})
    for (const int axis : {0, 1, 2}) {
      const std::string node = "{ x = Cast <to = TYPE> (g) i = Cast <to = " + std::string(index) +
                               "> (p) y = GatherElements <axis = " + std::to_string(axis) +
                               "> (x, i) }";
      for (const int type : {kU8, kI16, kF32, kF64, kI64}) {
        std::string text = node;
        text.replace(text.find("TYPE"), 4, std::to_string(type));
        const std::string main = "main (float[A,B,C] g, int64[D,E,F] p) => (y) " + text;
        agree(main, {{"g", numbers({5, 7, 33}, 30)}, {"p", places({5, 7, 33}, 5)}});
        agree(main, {{"g", numbers({9, 9, 9}, 30)}, {"p", places({3, 4, 9}, 9)}});
        agree(main, {{"g", numbers({9, 9, 9}, 30)}, {"p", places({9, 2, 1}, 9)}});
      }
    }
  agree("main (float[A,B] g, int64[D,E] p) => (y) { y = GatherElements <axis = 1> (g, p) }",
        {{"g", numbers({2, 3000}, 30)}, {"p", places({2, 2500}, 3000)}});
  // A place that lies outside is refused, wherever it stands.
  for (const int64_t outside : {7, -8}) {
    Tensor places_of = places({2, 1500}, 7);
    places_of.data<int64_t>()[2777] = outside;
    refuse("main (float[2,7] g, int64[2,1500] p) => (y) { y = GatherElements <axis = 1> (g, p) }",
           {{"g", numbers({2, 7}, 1)}, {"p", places_of}}, "out of range");
  }
}

TEST_P(MoreOperators, ScatteredAndCombined) {
  opset_ = 18;
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const int64_t piece : {1, 2, 7, 8, 33, 5003}) {
      std::vector<int64_t> index(60);
      for (int64_t& place : index) place = static_cast<int64_t>(engine_() % 40) - 20;
      const bool single = piece == 1;
      const std::string node =
          std::string("y = ScatterND <reduction = \"") + reduction + "\"> (x, i, u) }";
      const Tensor places_of =
          Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{60, 1}, index);
      if (single)
        agree("main (float[A] x, int64[N,1] i, float[N] u) => (y) { " + node,
              {{"x", numbers({20}, 1, true)}, {"i", places_of}, {"u", numbers({60}, 1, true)}});
      else
        agree("main (float[A,P] x, int64[N,1] i, float[N,P] u) => (y) { " + node,
              {{"x", numbers({20, piece}, 1, piece < 100)},  // of two NaN either may stay
               {"i", places_of},
               {"u", numbers({60, piece}, 1, piece < 100)}});
    }
}

TEST_P(MoreOperators, ScatteredAndPickedRowsOfGroups) {
  opset_ = 18;
  for (const auto& [groups, piece] :
       {std::pair<int64_t, int64_t>{1, 64}, {3, 1}, {5, 33}, {2, 3000}}) {
    std::vector<int64_t> index(60);
    for (int64_t& place : index) place = static_cast<int64_t>(engine_() % 40) - 20;
    const Tensor places_of =
        Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{1, 60, 1}, index);
    const std::string inputs =
        "main (float[G,A,P] x, int64[1,N,1] i, float[G,N,P] u) => (y) { s = Shape (u) e = Expand "
        "(i, s) y = ";
    for (const char* reduction : {"none", "add", "mul", "max", "min"})
      agree(inputs + "ScatterElements <axis = 1, reduction = \"" + reduction + "\"> (x, e, u) }",
            {{"x", numbers({groups, 20, piece}, 1, piece < 100)},
             {"i", places_of},
             {"u", numbers({groups, 60, piece}, 1, piece < 100)}});
    agree(inputs + "GatherElements <axis = 1> (x, e) }", {{"x", numbers({groups, 20, piece}, 1)},
                                                          {"i", places_of},
                                                          {"u", numbers({groups, 60, piece}, 1)}});
    index[59] = 20;
    refuse(inputs + "ScatterElements <axis = 1> (x, e, u) }",
           {{"x", numbers({groups, 20, piece}, 1)},
            {"i", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{1, 60, 1}, index)},
            {"u", numbers({groups, 60, piece}, 1)}},
           "index 20 is out of range for axis 1");
  }
}

TEST_P(MoreOperators, ScatteredLongPiecesOutOfRange) {
  const std::vector<int64_t> index = {2, 3};
  refuse("main (float[A,P] x, int64[N,1] i, float[N,P] u) => (y) { y = ScatterND (x, i, u) }",
         {{"x", numbers({3, 9000}, 1)},
          {"i", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{2, 1}, index)},
          {"u", numbers({2, 9000}, 1)}},
         "index 3 is out of range for axis 0");
}

TEST_P(MoreOperators, BatchNormalizationTrainsRowsWithoutScale) {
  const int64_t channels = 300;
  const auto ones = [&](float first) {
    Tensor x = numbers({channels}, 1);
    for (int64_t i = 0; i < channels; ++i)
      x.data<float>()[i] = i == 5 ? first : 1 + 0.01f * static_cast<float>(i);
    return x;
  };
  for (const float scale : {1.0f, 0.0f})
    agree(
        "main (float[N,C] x, float[C] s, float[C] b, float[C] m, float[C] v) => (y, p, q) { y, p, "
        "q = BatchNormalization <training_mode = 1> (x, s, b, m, v) }",
        {{"x", numbers({33, channels}, 2)},
         {"s", ones(scale)},
         {"b", numbers({channels}, 50)},
         {"m", numbers({channels}, 1)},
         {"v", ones(1)}},
        2e-6);
}

TEST_P(MoreOperators, PoolsOfWidePlanes) {
  // Which of two zeros is the greatest is left open: they are compared as numbers.
  const auto pool = [&](const std::string& attributes, const Tensor& x) {
    agree_cast({kF32}, "y = MaxPool <" + attributes + "> (x)", x, "y", "", 1e-12);
    agree_cast({kF32}, "y = AveragePool <count_include_pad = 1, " + attributes + "> (x)", x, "y",
               "", 1e-6);
  };
  for (const char* attributes :
       {"kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]",
        "kernel_shape = [2, 2], strides = [2, 2]", "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
        "kernel_shape = [5, 5], pads = [2, 2, 2, 2]", "kernel_shape = [1, 4], strides = [3, 2]",
        "kernel_shape = [5, 3], strides = [3, 2], pads = [2, 2, 0, 1], ceil_mode = 1",
        "kernel_shape = [4, 1], strides = [1, 2], pads = [3, 0, 3, 0]",
        "kernel_shape = [30, 3], strides = [30, 1], pads = [0, 2, 29, 0]",
        "kernel_shape = [2, 5], strides = [2, 1], dilations = [3, 1]"})
    for (const int64_t width : {16, 24, 25, 31, 39, 40, 47, 64, 100, 199, 200}) {
      pool(attributes, numbers({1, 17, 23, width}, 1));
      pool(attributes, numbers({2, 3, 9, width}, 1, true));
    }
  for (const int64_t width : {30, 41, 150, 5001})
    pool("kernel_shape = [3], strides = [2], pads = [2, 1]", numbers({2, 9, width}, 1));
  for (const char* attributes :
       {"kernel_shape = [2, 2, 2], strides = [2, 2, 2]",
        "kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]",
        "kernel_shape = [2, 3, 5], strides = [1, 2, 2], pads = [1, 0, 2, 1, 2, 4]"})
    for (const int64_t width : {24, 33, 64}) {
      pool(attributes, numbers({1, 3, 5, 7, width}, 1));
      pool(attributes, numbers({2, 2, 3, 40, width}, 1));
    }
  // Steps of three and four, of any number of results.
  for (const char* step : {"3", "4"})
    for (const char* taps : {"1", "2", "3", "4", "5", "7", "13"})
      for (const int64_t width : {13, 16, 21, 30, 35, 50, 52, 67, 112, 113}) {
        const std::string attributes =
            std::string("kernel_shape = [2, ") + taps + "], strides = [1, " + step + "]";
        pool(attributes, numbers({1, 5, 3, width}, 1));
        pool(attributes + ", pads = [0, 0, 1, 0]", numbers({1, 2, 4, width}, 1, true));
      }
  // A NaN in one plane of many, and in one slice of many.
  for (const int64_t at : {0, 39, 3 * 70 * 40 + 69 * 40 + 5, 4 * 70 * 40 - 1}) {
    Tensor planes = numbers({1, 5, 70, 40}, 1), slices = numbers({1, 1, 5, 70, 40}, 1);
    planes.span<float>()[static_cast<size_t>(at)] = std::nanf("");
    slices.span<float>()[static_cast<size_t>(at)] = std::nanf("");
    pool("kernel_shape = [3, 3], pads = [1, 1, 1, 1]", planes);
    pool("kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]", slices);
    pool("kernel_shape = [2, 2, 2], strides = [2, 2, 2]", slices);
  }
}

TEST_P(MoreOperators, SumsOfShortRows) {
  for (const char* op : {"ReduceSum", "ReduceL1", "ReduceSumSquare", "ReduceMean"})
    for (const int64_t rows : {1, 3, 4, 6, 150})
      for (const int64_t n : {16, 17, 31, 32, 49, 100, 128, 129})
        for (const bool odd : {false, true})
          agree("main (float[A,B] x) => (y) <int64[1] a = {1}> { y = " + std::string(op) +
                    " <keepdims = 0> (x, a) }",
                {{"x", numbers({rows, n}, 1, odd)}}, 1e-6);
}

TEST_P(MoreOperators, OneHot) {
  // Indices on both sides of what counts, of rows that several threads share.
  for (const int axis : {0, 1, 2, -1})
    for (const int depth : {1, 5, 90})
      for (const int type : {1, 7, 9, 10})
        for (const char* index : {"6", "7"})
          for (const char* off : {"0", "3"})
            for (const Tensor& x : {places({7, 5}, 2 * depth), places({80, 13}, depth + 1)})
              agree("main (int64[A,B] x) => (y) <int64[1] d = {" + std::to_string(depth) +
                        "}, float[2] v = {" + off + ", 1}> { i = Cast <to = " + index +
                        "> (x) w = Cast <to = " + std::to_string(type) +
                        "> (v) z = OneHot <axis = " + std::to_string(axis) +
                        "> (i, d, w) y = Cast <to = 1> (z) }",
                    {{"x", x}});
}

// Draws are made in order, however many threads share the rows.
TEST_P(MoreOperators, MultinomialInThreads) {
  const std::string main = "main (float[N,C] x) => (y) { y = Multinomial <sample_size = 3> (x) }";
  Tensor x = numbers({60, 700}, 1);
  Tensor drawn[2];
  for (const int threads : {1, 2}) {
    auto model = parse_text(model_text(main));
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    ASSERT_TRUE(session) << session.error().message;
    set_thread_count(threads);
    auto got = (*session)->run({{"x", x}});
    ASSERT_TRUE(got) << got.error().message;
    drawn[threads - 1] = (*got)[0].tensor();
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  for (const int64_t row : {50, 7, 23})
    std::fill_n(x.data<float>() + row * 700, 700, -std::numeric_limits<float>::infinity());
  refuse(main, {{"x", x}}, "row 7 has no finite probabilities");
  set_thread_count(0);
}

// PyTorch's exporter leaves out the axis of length 1 behind a real signal.
TEST_P(MoreOperators, SpectraOfSignalsOfTwoAxes) {
  for (const int64_t length : {8, 9, 100}) {
    const std::string n = std::to_string(length);
    for (const char* window : {"", "w"})
      agree("main (float[A,B] x, float[N] w) => (float[A,F,K,2] y) <int64 s = {5}, int64 n = {" +
                n + "}> { y = STFT (x, s, " + window + ", n) }",
            {{"x", numbers({3, 117}, 1)}, {"w", numbers({length}, 1)}}, 1e-6);
  }
}

// Matrices that are picked for each token, in the forms that exporters write.
TEST_P(MoreOperators, ProductsWithPickedMatrices) {
  const int64_t experts = 5;
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{7, 3}, {64, 33}, {40, 130}}) {
    const Tensor w = numbers({experts, k, n}, 1);
    std::string values;
    for (const float value : w.span<float>())
      values += (values.empty() ? "" : ", ") + std::to_string(value);
    const auto constant = [&](int64_t rows, int64_t columns) {
      return "<float[5," + std::to_string(rows) + "," + std::to_string(columns) + "] w = {" +
             values + "}, int64[2] s = {-1, 1}> { ";
    };
    const std::string picked = "g = Gather (w, i) ",
                      tuples = "t = Reshape (i, s) g = GatherND (w, t) ",
                      turned = "r = Transpose <perm = [0, 2, 1]> (g) ";
    for (const int64_t batch : {1, 2, 40, 1100}) {
      const Tensor i = places({batch}, experts);
      for (const int64_t m : {1, 3}) {
        const std::vector<NamedValue> given = {{"a", numbers({batch, m, k}, 1)}, {"i", i}};
        agree("main (float[T,M,K] a, int64[T] i) => (y) " + constant(k, n) + picked +
                  "y = MatMul (a, g) }",
              given, 2e-6);
        agree("main (float[T,M,K] a, int64[T] i) => (y) " + constant(n, k) + picked + turned +
                  "y = MatMul (a, r) }",
              given, 2e-6);
        // One side is the same for all.
        agree("main (float[A,M,K] a, int64[T] i) => (y) " + constant(k, n) + picked +
                  "y = MatMul (a, g) }",
              {{"a", numbers({1, m, k}, 1)}, {"i", i}}, 2e-6);
        agree("main (float[A,M,K] a, int64[T] i) => (y) " + constant(k, n) + picked +
                  "y = MatMul (a, g) }",
              {{"a", numbers({batch, m, k}, 1)}, {"i", places({1}, experts)}}, 2e-6);
      }
      const std::vector<NamedValue> column = {{"b", numbers({batch, k, 1}, 1)}, {"i", i}};
      agree("main (float[T,K,1] b, int64[T] i) => (y) " + constant(n, k) + picked +
                "y = MatMul (g, b) }",
            column, 2e-6);
      agree("main (float[T,K,1] b, int64[T] i) => (y) " + constant(n, k) + tuples +
                "y = MatMul (g, b) }",
            column, 2e-6);
      agree("main (float[T,K,1] b, int32[T] i) => (y) " + constant(k, n) + picked + turned +
                "y = MatMul (r, b) }",
            {{"b", numbers({batch, k, 1}, 1)},
             {"i", Tensor::of<int32_t>(DType::kInt32, std::vector<int64_t>{batch},
                                       std::vector<int32_t>(static_cast<size_t>(batch), 3))}},
            2e-6);
    }
    // A network of 16-bit floats, whose weights stay such.
    for (const auto& [type, number, error] :
         {std::tuple{"float16", "10", 1e-3}, {"bfloat16", "16", 8e-3}})
      agree("main (float[T,M,K] a, int64[T] i) => (y) <" + std::string(type) + "[5," +
                std::to_string(n) + "," + std::to_string(k) + "] w = {" + values +
                "}> { h = Cast <to = " + number + "> (a) " + picked + turned +
                "z = MatMul (h, r) y = Cast <to = 1> (z) }",
            {{"a", numbers({9, 2, k}, 1)}, {"i", places({9}, experts)}}, error);
    refuse("main (float[T,M,K] a, int64[T] i) => (y) " + constant(k, n) + picked +
               "y = MatMul (a, g) }",
           {{"a", numbers({2, 1, k}, 1)},
            {"i", Tensor::of<int64_t>(DType::kInt64, std::vector<int64_t>{2},
                                      std::vector<int64_t>{-5, 5})}},
           "index 5");
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, MoreOperators,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Few rows or columns of many elements, and large matrices, whose sides are powers of two or not.
TEST_P(MoreOperators, TurnedMatrices) {
  for (const int type : {1, 2, 7, 10}) {
    const auto turn = [&](int64_t batch, int64_t rows, int64_t columns) {
      agree(
          "main (float[A,B,C] x) => (y) <float l = {0}, float h = {200}> "
          "{ c = Clip (x, l, h) z = Cast <to = " +
              std::to_string(type) + "> (c) y = Transpose <perm = [0, 2, 1]> (z) }",
          {{"x", numbers({batch, rows, columns}, 60)}});
    };
    for (const int64_t few : {2, 3, 4, 5, 6, 7})
      for (const int64_t many : {7, 16, 33, 64, 100}) {
        turn(3, few, many);
        turn(3, many, few);
      }
    turn(1, 1024, 70);
    turn(1, 70, 1024);
    turn(1, 520, 512);
    turn(1, 64, 515);
  }
}

TEST_P(MoreOperators, NonZeroOfShortRows) {
  for (const auto& dims : {Dims{17, 9, 12, 2}, Dims{3, 1, 500}, Dims{70, 1, 3}, Dims{5, 5, 5, 5, 5},
                           Dims{1, 1, 1}, Dims{9}, Dims{2, 2000, 2}}) {
    std::string shape;
    for (const int64_t dim : dims) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    agree("main (float[" + shape + "] x) => (y) { r = Relu (x) y = NonZero (r) }",
          {{"x", numbers({dims.begin(), dims.end()}, 1)}});
  }
}

/// More than a few of lines many times as long, of which some are in order.
TEST_P(MoreOperators, TopKOfLongLines) {
  for (const char* type : {"float", "double", "int32", "int64"})
    for (const int64_t k : {25, 50, 200})
      for (const int64_t n : {400, 4096, 9000})
        for (const char* largest : {"0", "1"})
          agree(std::string("main (float[R,N] x) => (v, i) <int64[1] k = {") + std::to_string(k) +
                    "}, int64 one = {1}> { a = Abs (x) b = CumSum (a, one) s = Concat <axis = 0> "
                    "(x, b) z = Cast <to = " +
                    (type[0] == 'f'   ? "1"
                     : type[0] == 'd' ? "11"
                     : type[3] == '3' ? "6"
                                      : "7") +
                    "> (s) v, i = TopK <axis = 1, largest = " + largest + "> (z, k) }",
                {{"x", numbers({5, n}, 40)}});
}

}  // namespace
}  // namespace tombolo
