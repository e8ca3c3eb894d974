// Attention with masks at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Isa, Attentions,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
