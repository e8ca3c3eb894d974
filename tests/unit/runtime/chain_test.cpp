// Random trees of elementwise operators, fused and one by one: the same bits, on every instruction
// set.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "passes/pipeline.h"
#include "runtime/kernels/isa.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Chains : public EachIsa {};

struct Random {
  std::mt19937 engine;
  int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }
};

/// `steps` operators on inputs x0.. and constants; the last one is the output.
std::string random_model(Random& random, const std::vector<std::string>& shapes, int steps) {
  static constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"};
  static constexpr const char* kUnary[] = {"Abs",
                                           "Neg",
                                           "Relu",
                                           "Floor",
                                           "Ceil",
                                           "Sqrt",
                                           "Reciprocal",
                                           "LeakyRelu <alpha = 0.25>",
                                           "Round",
                                           "Exp",
                                           "Sigmoid",
                                           "Tanh",
                                           "Erf",
                                           "Gelu",
                                           "Gelu <approximate = \"tanh\">",
                                           "HardSwish",
                                           "HardSigmoid <beta = 0.25>",
                                           "Softplus",
                                           "Elu <alpha = 0.5>",
                                           "Selu",
                                           "Celu",
                                           "Shrink <bias = 0.5>",
                                           "ThresholdedRelu",
                                           "Softsign",
                                           "Mish",
                                           "Cos"};
  std::string inputs, body;
  std::vector<std::string> values;
  for (size_t i = 0; i < shapes.size(); ++i) {
    values.push_back("x" + std::to_string(i));
    inputs += (i == 0 ? "" : ", ") + ("float" + shapes[i]) + " " + values.back();
  }
  values.insert(values.end(), {"c0", "c1"});
  for (int i = 0; i < steps; ++i) {
    // As a rule the newest value goes on, so that there are long chains with branches.
    const auto pick = [&] {
      const int n = static_cast<int>(values.size());
      return values[static_cast<size_t>(random.below(3) != 0 ? std::max(0, n - 1 - random.below(3))
                                                             : random.below(n))];
    };
    const std::string name = i + 1 == steps ? "y" : "v" + std::to_string(i);
    const int kind = random.below(5);
    if (kind == 0) {
      const std::string op = kUnary[random.below(static_cast<int>(std::size(kUnary)))];
      body += "  " + name + " = " + op + " (" + pick() + ")\n";
    } else if (kind == 1) {
      body += "  " + name + " = Clip (" + pick() + ", lo, hi)\n";
    } else {
      const std::string op = kBinary[random.below(static_cast<int>(std::size(kBinary)))];
      const std::string a = pick(), b = op == "PRelu" ? "c0" : pick();  // it may not spread x
      body += "  " + name + " = " + op + " (" + a + ", " + b + ")\n";
    }
    values.push_back(name);
  }
  return "<ir_version: 10, opset_import: [\"\" : 21]>\ng (" + inputs +
         ") => (float y) <float c0 = {1.5}, float[1] c1 = {-0.75}, float lo = {-2}, float hi = "
         "{3}> {\n" +
         body + "}\n";
}

TEST_P(Chains, GiveWhatTheirPartsGive) {
  const std::vector<std::vector<std::vector<int64_t>>> shapes = {
      {{2, 3, 5, 7}},
      {{1, 4, 300}, {300}, {4, 1}},
      {{2, 8, 9, 11}, {8, 1, 1}, {2, 1, 1, 11}, {1}},
      {{3000}, {3000}},
      {{6, 1}, {1, 50}, {}},
      {{1}, {1, 1}},
      {{0, 4}, {4}},
      {{2, 1, 260}, {2, 3, 1}, {2, 3, 260}},
      // Short rows: values spread along them, rows that repeat, and both at several depths.
      {{90, 30, 1}, {1, 30, 16}},
      {{20, 70, 7}, {20, 1, 7}, {7}},
      {{400, 24}, {400, 1}, {24}, {1, 1}},
      {{6, 5, 60, 3}, {5, 60, 1}, {6, 1, 1, 3}, {6, 1, 60, 1}},
      {{2, 50, 33}, {50, 1}, {2, 1, 1}, {2, 1, 33}},
  };
  Random random;
  random.engine.seed(11);
  for (int round = 0; round < 104; ++round) {
    const auto& dims = shapes[static_cast<size_t>(round) % shapes.size()];
    std::vector<std::string> texts;
    std::vector<NamedValue> inputs;
    for (size_t i = 0; i < dims.size(); ++i) {
      texts.push_back(dims_to_string(dims[i]));
      if (dims[i].empty()) texts.back() = "";
      std::vector<float> x(static_cast<size_t>(element_count(dims[i])));
      for (float& value : x) {
        value = static_cast<float>(random.below(2001) - 1000) / 256;
        if (random.below(200) == 0) value = std::nanf("");
        if (random.below(200) == 0) value = HUGE_VALF;
      }
      inputs.push_back({"x" + std::to_string(i), Tensor::of<float>(DType::kFloat32, dims[i], x)});
    }
    const std::string text = random_model(random, texts, 2 + random.below(30));
    std::vector<RunValue> results;
    for (const bool fuse : {true, false}) {
      auto model = parse_text(text);
      ASSERT_TRUE(model) << model.error().message << text;
      SessionOptions options;
      options.optimise = 0;
      if (fuse) {
        const OptimiseOptions only{
            .level = 2, .target = Target::kRuntime, .only = {"fuse-elementwise"}};
        auto report = optimise(**model, only);
        ASSERT_TRUE(report) << report.error().message << text;
      }
      auto session = Session::create(*std::move(model), options);
      ASSERT_TRUE(session) << session.error().message << text;
      std::vector<NamedValue> given;
      for (const SessionPort& port : (*session)->inputs())
        for (const NamedValue& input : inputs)
          if (input.name == port.name) given.push_back(input);
      for (int run = 0; run < 2; ++run) {
        auto outputs = (*session)->run(given);
        ASSERT_TRUE(outputs) << outputs.error().message << text;
        if (run == 1) results.push_back((*outputs)[0]);
      }
    }
    const Tensor &fused = results[0].tensor(), &parts = results[1].tensor();
    ASSERT_EQ(fused.dims(), parts.dims()) << text;
    for (int64_t i = 0; i < fused.size(); ++i) {
      const float a = fused.data<float>()[i], b = parts.data<float>()[i];
      ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0)
          << a << " is not " << b << " at " << i << "\n"
          << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Chains,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
