#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "rooms.h"
#include "runtime/session.h"

namespace tombolo {

/// Single operators by fast kernels and by the reference's.
class Operators : public EachIsa {
 protected:
  /// Numbers of either sign; some of them equal, some zero, now and then one that is none.
  Tensor numbers(std::vector<int64_t> shape, float scale, bool odd = false) {
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values) {
      value = std::round(normal_(engine_) * 64) / 64 * scale;
      if (!odd) continue;
      if (engine_() % 40 == 0) value = std::numeric_limits<float>::quiet_NaN();
      if (engine_() % 40 == 0) value = engine_() % 2 == 0 ? INFINITY : -INFINITY;
    }
    return Tensor::of<float>(DType::kFloat32, shape, values);
  }

  /// Places along an axis, also counted from its end.
  Tensor places(std::initializer_list<int64_t> dims, int64_t length) {
    const std::vector<int64_t> shape(dims);
    std::vector<int64_t> values(static_cast<size_t>(element_count(shape)));
    for (int64_t& value : values)
      value = static_cast<int64_t>(engine_() % static_cast<uint32_t>(2 * length)) - length;
    return Tensor::of<int64_t>(DType::kInt64, shape, values);
  }

  std::string model_text(const std::string& main) const {
    return "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset_) +
           ", \"com.microsoft\" : 1, \"ai.onnx.ml\" : 4]>\n" + main;
  }

  /// Runs main (...) => (...) { nodes }, which must fail and say `why`.
  void refuse(const std::string& main, const std::vector<NamedValue>& inputs,
              std::string_view why) const {
    auto model = parse_text(model_text(main));
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*std::move(model), SessionOptions{});
    ASSERT_TRUE(session) << session.error().message;
    const auto got = (*session)->run(inputs);
    ASSERT_FALSE(got) << main;
    EXPECT_NE(got.error().message.find(why), std::string::npos) << got.error().message;
  }

  /// Runs main (...) => (...) { nodes }, twice; outputs must be `error` apart at most, measured by
  /// the greatest number.
  void agree(const std::string& main, const std::vector<NamedValue>& inputs, double error = 0) {
    agree_in_turn(main, {inputs, inputs}, error);
  }
  /// The same of one session that is given these inputs, one after the other.
  void agree_in_turn(const std::string& main, const std::vector<std::vector<NamedValue>>& turns,
                     double error = 0) {
    SessionOptions plain;
    plain.reference = true;
    plain.optimise = 0;
    const std::string text = model_text(main);
    std::unique_ptr<Session> sessions[2];
    for (int i = 0; i < 2; ++i) {
      auto model = parse_text(text);
      ASSERT_TRUE(model) << model.error().message;
      auto session = Session::create(*std::move(model), i == 0 ? SessionOptions{} : plain);
      ASSERT_TRUE(session) << session.error().message;
      sessions[i] = *std::move(session);
    }
    for (const std::vector<NamedValue>& inputs : turns) {
      spoil_rooms();
      auto got = sessions[0]->run(inputs), want = sessions[1]->run(inputs);
      ASSERT_TRUE(got) << main << got.error().where << ": " << got.error().message;
      ASSERT_TRUE(want) << main << want.error().message;
      for (size_t i = 0; i < want->size(); ++i) {
        const Tensor &a = (*got)[i].tensor(), &b = (*want)[i].tensor();
        if (error == 0 || a.dtype() != DType::kFloat32 || Dims(a.dims()) != Dims(b.dims())) {
          EXPECT_EQ(a, b) << main;
          continue;
        }
        double greatest = 0, apart = 0;
        for (int64_t j = 0; j < a.size(); ++j) {
          const auto p = static_cast<double>(a.data<float>()[j]),
                     q = static_cast<double>(b.data<float>()[j]);
          if (std::isfinite(q)) greatest = std::max(greatest, std::fabs(q));
          if (p == q || (p != p && q != q)) continue;
          apart = std::max(apart, p == p && q == q ? std::fabs(p - q) : INFINITY);
        }
        EXPECT_LE(apart, error * greatest) << main;
      }
    }
  }

  int opset_ = 21;
  std::mt19937 engine_{11};
  std::normal_distribution<float> normal_;
};

}  // namespace tombolo
