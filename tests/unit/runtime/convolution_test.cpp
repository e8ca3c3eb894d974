// Graphs of convolutions at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "ir/text/parser.h"
#include "runtime/kernels/isa.h"
#include "runtime/profile.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Networks : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa() || (best_isa() >= Isa::kSse4 && GetParam() < Isa::kSse4))
      GTEST_SKIP() << "not on this machine";
    set_isa(GetParam());
  }
  void TearDown() override { set_isa(best_isa()); }

  float number() { return distribution_(engine_); }

  /// "float[2,3] name = {...}" with random numbers.
  std::string constant(const std::string& name, const std::vector<int64_t>& dims) {
    std::string text = "float[";
    int64_t size = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
      size *= dims[i];
    }
    text += "] " + name + " = {";
    for (int64_t i = 0; i < size; ++i) text += (i == 0 ? "" : ",") + std::to_string(number());
    return text + "}";
  }

  /// Runs main(float[...] x) => (float[...] y) with these initialisers and nodes, twice with each
  /// shape of x, and compares. Gives the names of the kernels of the last run.
  std::vector<std::string> agree(const std::string& constants, const std::string& nodes,
                                 const std::vector<std::vector<int64_t>>& shapes) {
    std::string rank;
    for (size_t i = 0; i < shapes[0].size(); ++i) {
      if (i > 0) rank += ",";
      rank += i == 1 ? std::to_string(shapes[0][1]) : "d" + std::to_string(i);
    }
    const std::string text = "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[" + rank +
                             "] x) => (y) <" + constants + "> {\n" + nodes + "\n}\n";
    SessionOptions plain;
    plain.reference = true;
    plain.optimise = 0;
    std::unique_ptr<Session> sessions[2];
    for (int i = 0; i < 2; ++i) {
      auto model = parse_text(text);
      EXPECT_TRUE(model) << model.error().message;
      if (!model) return {};
      auto session = Session::create(*std::move(model), i == 0 ? SessionOptions{} : plain);
      EXPECT_TRUE(session) << session.error().message;
      if (!session) return {};
      sessions[i] = *std::move(session);
    }
    Profile profile;
    for (int round = 0; round < 2; ++round)
      for (const auto& shape : shapes) {
        std::vector<float> values(static_cast<size_t>(element_count(shape)));
        for (float& value : values) value = number();
        const std::vector<NamedValue> inputs = {
            {"x", Tensor::of<float>(DType::kFloat32, shape, values)}};
        profile = {};
        RunOptions options;
        options.profile = &profile;
        auto got = sessions[0]->run(inputs, options), want = sessions[1]->run(inputs);
        EXPECT_TRUE(got) << got.error().where << ": " << got.error().message;
        EXPECT_TRUE(want) << want.error().message;
        if (!got || !want) return {};
        const Tensor &a = (*got)[0].tensor(), &b = (*want)[0].tensor();
        EXPECT_EQ(Dims(a.dims()), Dims(b.dims()));
        if (a.size() != b.size()) return {};
        double error = 0, scale = 0;
        for (int64_t i = 0; i < a.size(); ++i) {
          const double d =
              static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i]);
          error += d * d;
          scale +=
              static_cast<double>(b.data<float>()[i]) * static_cast<double>(b.data<float>()[i]);
        }
        EXPECT_LT(std::sqrt(error / std::max(scale, 1e-30)), 1e-5) << nodes;
      }
    std::vector<std::string> kernels;
    for (const auto& event : profile.events) kernels.emplace_back(event.kernel);
    return kernels;
  }

 private:
  std::mt19937 engine_{1};
  std::normal_distribution<float> distribution_;
};

TEST_P(Networks, TransposedConvolutions) {
  for (const char* attributes :
       {"strides = [2, 2]", "strides = [1, 1], pads = [1, 0, 1, 2]",
        "strides = [3, 2], dilations = [2, 1], output_padding = [2, 1], pads = [1, 1, 0, 1]",
        "strides = [2, 1], auto_pad = \"SAME_UPPER\"", "strides = [1, 2], pads = [4, 0, 4, 0]"}) {
    const std::string list(attributes);
    const auto kernels =
        agree(constant("w", {6, 5, 3, 2}) + "," + constant("b", {5}),
              "y = ConvTranspose <" + list + "> (x, w, b)", {{1, 6, 7, 9}, {2, 6, 8, 5}});
    if (list.find("auto_pad") == std::string::npos) {
      EXPECT_EQ(kernels, std::vector<std::string>{"conv_transpose_f32"});
    }
    agree(constant("w", {6, 5, 3, 2}), "y = ConvTranspose <group = 3, " + list + "> (x, w)",
          {{2, 6, 7, 9}});
  }
  agree(constant("w", {4, 3, 3}), "y = ConvTranspose <strides = [2]> (x, w)", {{2, 4, 9}});
  agree(constant("w", {4, 3, 2, 3, 2}), "y = ConvTranspose <strides = [2, 1, 2]> (x, w)",
        {{1, 4, 3, 4, 5}});
  agree(constant("w", {40, 20, 2, 2}) + "," + constant("b", {20}),
        "y = ConvTranspose <strides = [2, 2]> (x, w, b)", {{1, 40, 14, 15}});
}

INSTANTIATE_TEST_SUITE_P(Isa, Networks,
                         ::testing::Values(Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kNeon),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace tombolo
