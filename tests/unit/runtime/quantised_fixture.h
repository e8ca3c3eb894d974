#pragma once

// Quantised graphs at every instruction set of this machine, with and without its dot products and
// tiles, against the reference kernels: one step apart at most, and the same everywhere.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ir/text/parser.h"
#include "runtime/kernels/isa.h"
#include "runtime/profile.h"
#include "runtime/session.h"

namespace tombolo {

struct Level {
  Isa isa;
  Extras extras;
  const char* name;
};
inline constexpr Level kLevels[] = {
    {Isa::kNeon, Extras::kTiles, "neon"},          {Isa::kSse4, Extras::kNone, "sse4"},
    {Isa::kAvx2, Extras::kNone, "avx2"},           {Isa::kAvx2, Extras::kDot, "avx2_dot"},
    {Isa::kAvx512, Extras::kNone, "avx512"},       {Isa::kAvx512, Extras::kDot, "avx512_dot"},
    {Isa::kAvx512, Extras::kTiles, "avx512_tiles"}};

inline bool is_here(const Level& level) {
  return level.isa <= best_isa() && (best_isa() < Isa::kSse4 || level.isa >= Isa::kSse4);
}

class Quantised : public ::testing::Test {
 protected:
  void TearDown() override {
    set_isa(best_isa());
    limit_extras(Extras::kTiles);
    set_thread_count(0);
  }

  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  /// "int8[2,3] name = {...}"
  std::string constant(const std::string& type, const std::string& name,
                       const std::vector<int64_t>& dims, int64_t low, int64_t high) {
    std::string text = type;
    int64_t size = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
      size *= dims[i];
    }
    text += dims.empty() ? " " : "] ";
    text += name + " = {";
    for (int64_t i = 0; i < size; ++i)
      text += (i == 0 ? "" : ",") + std::to_string(integer(low, high)) +
              (type == "float16" ? ".0" : "");  // without a point: the bits
    return text + "}";
  }
  /// Scales of weights, from 0.01 on.
  std::string scales(const std::string& name, int64_t count) {
    std::string text = "float[" + std::to_string(count) + "] " + name + " = {";
    for (int64_t i = 0; i < count; ++i)
      text += (i == 0 ? "0.0" : ",0.0") + std::to_string(integer(10, 99));
    return text + "}";
  }

  std::unique_ptr<Session> session(const std::string& text, bool plain) {
    auto model = parse_text(text);
    EXPECT_TRUE(model) << model.error().message << "\n" << text.substr(0, 2000);
    if (!model) return nullptr;
    SessionOptions options;
    options.reference = plain;
    if (plain) options.optimise = 0;
    auto made = Session::create(*std::move(model), options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *std::move(made) : nullptr;
  }

  /// compare(level, session, want) at every level that is here: a session of the text, and what the
  /// reference gives for the graph as written.
  template <typename Compare>
  void at_each_level(const std::string& text, const std::vector<NamedValue>& inputs,
                     Compare&& compare) {
    auto reference = session(text, true);
    ASSERT_TRUE(reference);
    auto want = reference->run(inputs);
    ASSERT_TRUE(want) << want.error().message;
    for (const Level& level : kLevels) {
      if (!is_here(level)) continue;
      set_isa(level.isa);
      limit_extras(level.extras);
      auto fast = session(text, false);
      ASSERT_TRUE(fast);
      compare(level, *fast, (*want)[0].tensor());
      if (HasFatalFailure()) return;
    }
  }

  /// Runs main at all levels on x and compares with the reference on the graph
  /// as written: `apart` at most. The levels give the same.
  void agree(const std::string& text, const Tensor& x, double apart, const char* kernel) {
    const std::vector<NamedValue> inputs = {{"x", x}};
    std::vector<double> first;
    at_each_level(text, inputs, [&](const Level& level, Session& fast, const Tensor& b) {
      Profile profile;
      RunOptions options;
      options.profile = &profile;
      for (int round = 0; round < 2; ++round) {
        profile = {};
        profile.shapes = true;
        auto got = fast.run(inputs, options);
        ASSERT_TRUE(got) << got.error().message;
        const Tensor& a = (*got)[0].tensor();
        ASSERT_EQ(a.size(), b.size()) << text.substr(0, 300);
        std::vector<double> values;
        int64_t other = 0;
        for (int64_t i = 0; i < a.size(); ++i) {
          values.push_back(a.get_double(i));
          const double difference = std::abs(a.get_double(i) - b.get_double(i));
          ASSERT_LE(difference, apart) << level.name << " at " << i << "\n" << text.substr(0, 600);
          other += difference > 0;
        }
        if (is_integer(a.dtype())) {
          EXPECT_LE(other, 2 + a.size() / 100) << level.name << "\n" << text.substr(0, 600);
        }
        if (first.empty()) first = values;
        EXPECT_EQ(first, values) << level.name << "\n" << text.substr(0, 600);
      }
      bool found = false;
      for (const auto& node : profile.events) {
        if (std::string(node.kernel) != kernel) continue;
        found = true;
        EXPECT_GT(node.operations, 0u) << kernel;
      }
      EXPECT_TRUE(found) << kernel << " at " << level.name << "\n" << text.substr(0, 600);
    });
  }

  /// As agree(), for floats that levels round otherwise.
  void agree_roughly(const std::string& text, const Tensor& x, double apart, const char* kernel) {
    const std::vector<NamedValue> inputs = {{"x", x}};
    at_each_level(text, inputs, [&](const Level& level, Session& fast, const Tensor& b) {
      double scale = 0;
      for (int64_t i = 0; i < b.size(); ++i) scale = std::max(scale, std::abs(b.get_double(i)));
      Profile profile;
      RunOptions options;
      options.profile = &profile;
      auto got = fast.run(inputs, options);
      ASSERT_TRUE(got) << got.error().message;
      const Tensor& a = (*got)[0].tensor();
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(a.size(), b.size());
      for (int64_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a.get_double(i), b.get_double(i), apart * scale) << level.name << " at " << i;
      bool found = false;
      for (const auto& node : profile.events) found |= std::string(node.kernel) == kernel;
      EXPECT_TRUE(found) << kernel << " at " << level.name;
    });
  }

  Tensor codes(const std::vector<int64_t>& dims, bool is_signed) {
    std::vector<uint8_t> values(static_cast<size_t>(element_count(dims)));
    for (uint8_t& value : values) value = static_cast<uint8_t>(engine_());
    if (!is_signed) return Tensor::of<uint8_t>(DType::kUInt8, dims, values);
    std::vector<int8_t> other(values.begin(), values.end());
    return Tensor::of<int8_t>(DType::kInt8, dims, other);
  }
  Tensor floats(const std::vector<int64_t>& dims) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (float& value : values) value = static_cast<float>(integer(-3000, 3000)) / 1000;
    return Tensor::of<float>(DType::kFloat32, dims, values);
  }

 private:
  std::mt19937 engine_{7};
};

inline std::string list(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

/// Of weights: in the middle, anywhere, or one for each output.
inline std::string zero_points(bool is_signed, int kind, int64_t outputs) {
  const int low = is_signed ? -128 : 0;
  const std::string type = is_signed ? "int8" : "uint8";
  if (kind == 0) return type + " zw = {" + std::to_string(low + 128) + "}";
  if (kind == 1) return type + " zw = {" + std::to_string(low + 17) + "}";
  std::string text = type + "[" + std::to_string(outputs) + "] zw = {";
  for (int64_t i = 0; i < outputs; ++i)
    text += (i == 0 ? "" : ",") + std::to_string(low + i * 83 % 256);
  return text + "}";
}

/// "name = {...}" of so many numbers, each from `of(i)`.
template <typename Of>
std::string given(const std::string& head, int64_t count, Of&& of) {
  std::string text = head + " = {";
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(of(i));
  return text + "}";
}

}  // namespace tombolo
