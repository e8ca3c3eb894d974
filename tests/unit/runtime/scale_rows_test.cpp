// QuantizeLinear and DequantizeLinear of every type and share of scales, at every instruction set
// of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

class ScaleRowsOf : public Operators {
 protected:
  void SetUp() override {
    Operators::SetUp();
    opset_ = 25;
  }
  /// Numbers of a constant: "0.5, 0.25, ...".
  std::string list(int64_t count, const std::vector<std::string>& of) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + of[engine_() % of.size()];
    return text;
  }
  static std::string type(const std::string& name, const std::vector<int64_t>& dims) {
    std::string text = name;
    for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
    return dims.empty() ? text : text + "]";
  }
};

TEST_P(ScaleRowsOf, QuantizeAndDequantize) {
  struct Kind {
    const char* name;
    std::vector<std::string> zeros;
  };
  const Kind kinds[] = {
      {"int2", {"-2", "0", "1"}},  {"uint2", {"0", "3"}},          {"int4", {"-8", "0", "7"}},
      {"uint4", {"0", "9", "15"}}, {"int8", {"-128", "5", "127"}}, {"uint8", {"0", "128", "255"}},
      {"int16", {"-32768", "9"}},  {"uint16", {"0", "65535"}},     {"float8e4m3fn", {"0.0"}},
      {"float8e4m3fnuz", {"0.0"}}, {"float8e5m2", {"0.0"}},        {"float8e5m2fnuz", {"0.0"}}};
  struct Share {
    std::string attributes;
    std::vector<int64_t> scales;
  };
  const std::vector<int64_t> dims = {3, 70, 5};
  const Share shares[] = {{"", {}},
                          {"axis = 0", {3}},
                          {"axis = 1", {70}},
                          {"axis = -1", {5}},
                          {"axis = 1, block_size = 32", {3, 3, 5}},
                          {"axis = 2, block_size = 2", {3, 70, 3}},
                          {"axis = 0, block_size = 2", {2, 70, 5}},
                          // Blocks that nothing fills.
                          {"axis = 1, block_size = 9223372036854775807", {3, 1, 5}},
                          {"axis = 2, block_size = 9223372036854775807", {3, 70, 1}}};
  const std::vector<std::string> scales = {"0.5", "0.01", "0.037", "2.0", "0.0003", "300.0"};
  for (const Kind& kind : kinds)
    for (const Share& share : shares)
      for (const bool zero : {false, true}) {
        const std::string of = "float[3,70,5]";
        const std::string constants = type("float", share.scales) + " s = {" +
                                      list(element_count(share.scales), scales) + "}, " +
                                      type(kind.name, share.scales) + " z = {" +
                                      list(element_count(share.scales), kind.zeros) + "}";
        const std::string number = std::to_string(static_cast<int>(*dtype_from_name(kind.name)));
        const std::string separator = share.attributes.empty() ? "" : ", ";
        const std::string quantise = zero
                                         ? "q = QuantizeLinear <" + share.attributes + "> (x, s, z)"
                                         : "q = QuantizeLinear <" + share.attributes + separator +
                                               "output_dtype = " + number + "> (x, s)";
        agree("main (" + of + " x) => (q, y) <" + constants + "> { " + quantise +
                  " y = DequantizeLinear <" + share.attributes + "> (q, s" + (zero ? ", z" : "") +
                  ") }",
              {{"x", numbers({3, 70, 5}, 10, true)}});
      }
}

INSTANTIATE_TEST_SUITE_P(Isa, ScaleRowsOf,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
