#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/profile.h"
#include "runtime/session.h"

namespace tombolo {

/// Small networks at each instruction set of this machine, beside the reference kernels.
class Networks : public EachIsa {
 protected:
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

  static void expect_near(const Tensor& a, const Tensor& b, const std::string& what) {
    ASSERT_EQ(Dims(a.dims()), Dims(b.dims())) << what;
    double error = 0, scale = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      const double d =
          static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i]);
      error += d * d;
      scale += static_cast<double>(b.data<float>()[i]) * static_cast<double>(b.data<float>()[i]);
    }
    EXPECT_LT(std::sqrt(error / std::max(scale, 1e-30)), 1e-5) << what;
  }

  /// Runs main(float[...] x) => (float[...] y) with these initialisers and nodes, twice with each
  /// shape of x, and compares; batches also an image at a time. Gives the names of the kernels of
  /// the last run. `fixed`: the model says the only shape.
  std::vector<std::string> agree(const std::string& constants, const std::string& nodes,
                                 const std::vector<std::vector<int64_t>>& shapes,
                                 bool fixed = false) {
    std::string rank;
    for (size_t i = 0; i < shapes[0].size(); ++i) {
      if (i > 0) rank += ",";
      rank += i == 1 || fixed ? std::to_string(shapes[0][i]) : "d" + std::to_string(i);
    }
    const std::string text = "<ir_version: 10, opset_import: [\"\" : 21]>\nmain (float[" + rank +
                             "] x) => (y) <" + constants + "> {\n" + nodes + "\n}\n";
    SessionOptions kinds[3];
    kinds[1].reference = true;
    kinds[1].optimise = 0;
    kinds[2].batch_room = 1;
    std::unique_ptr<Session> sessions[3];
    for (int i = 0; i < 3; ++i) {
      auto model = parse_text(text);
      EXPECT_TRUE(model) << model.error().message;
      if (!model) return {};
      auto session = Session::create(*std::move(model), kinds[i]);
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
        expect_near((*got)[0].tensor(), (*want)[0].tensor(), nodes);
        if (round == 0 || shape[0] < 2) continue;
        auto cut = sessions[2]->run(inputs);
        EXPECT_TRUE(cut) << cut.error().where << ": " << cut.error().message;
        if (cut) expect_near((*cut)[0].tensor(), (*want)[0].tensor(), nodes + ", by images");
      }
    std::vector<std::string> kernels;
    for (const auto& event : profile.events) kernels.emplace_back(event.kernel);
    return kernels;
  }

 private:
  std::mt19937 engine_{1};
  std::normal_distribution<float> distribution_;
};

}  // namespace tombolo
