// Fourier transforms at every instruction set of this machine, against the reference kernels.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "operators.h"

namespace tombolo {
namespace {

class Signal : public Operators {};

// Lengths by steps of 8, 4, 2, 3, 5 and other primes, by Bluestein's algorithm, and lines alone.
const std::vector<int64_t> kLengths = {1,  2,  3,  4,   6,   7,   8,   15,  16,  24,  25,  32,  40,
                                       64, 77, 96, 100, 128, 135, 194, 256, 375, 512, 768, 1040};

TEST_P(Signal, Lines) {
  for (const int64_t n : kLengths)
    for (const int64_t lines : {1, 3, 9})
      for (const int64_t parts : {1, 2})
        for (const char* attributes : {"", "<inverse = 1>"}) {
          const std::string node = std::string("y = DFT ") + attributes + " (x, , axis)\n}";
          agree("main (float[N,M,P] x) => (y) <int64 axis = {1}> {" + node,
                {{"x", numbers({lines, n, parts}, 1)}}, 1e-6);
        }
}

TEST_P(Signal, OnesidedLines) {
  for (const int64_t n : kLengths) {
    const std::string length = "<int64 axis = {1}, int64 length = {" + std::to_string(n) + "}> {";
    for (const int64_t lines : {2, 12}) {
      agree(
          "main (float[N,M,1] x) => (y) " + length + "y = DFT <onesided = 1> (x, length, axis)\n}",
          {{"x", numbers({lines, n, 1}, 1)}}, 1e-6);
      agree("main (float[N,M,2] x) => (y) " + length +
                "y = DFT <onesided = 1, inverse = 1> (x, length, axis)\n}",
            {{"x", numbers({lines, n / 2 + 1, 2}, 1)}}, 1e-6);
    }
  }
}

// Lines that are cut off or filled up.
TEST_P(Signal, OtherLengths) {
  for (const int64_t n : {5, 8, 30, 64, 600})
    for (const int64_t given : {1, 4, 7, 40, 1001})
      for (const int64_t lines : {1, 8})
        for (const int64_t parts : {1, 2})
          agree("main (float[N,M,P] x) => (y) <int64 axis = {1}, int64 length = {" +
                    std::to_string(n) + "}> { y = DFT (x, length, axis) }",
                {{"x", numbers({lines, given, parts}, 1)}}, 1e-6);
}

// Lines whose elements lie apart: eight of them in one piece, fewer, or beyond an end.
TEST_P(Signal, InnerAxes) {
  for (const int64_t n : {6, 15, 16, 97, 512})
    for (const int64_t inner : {2, 3, 8, 11, 20})
      for (const int64_t parts : {1, 2})
        for (const char* attributes : {"", "<inverse = 1>"}) {
          const std::string node = std::string("y = DFT ") + attributes + " (x, , axis)\n}";
          agree("main (float[N,M,I,P] x) => (y) <int64 axis = {1}> {" + node,
                {{"x", numbers({3, n, inner, parts}, 1)}}, 1e-6);
        }
  for (const int64_t inner : {3, 10}) {
    agree(
        "main (float[N,M,I,1] x) => (y) <int64 axis = {1}> { y = DFT <onesided = 1> (x, , axis) }",
        {{"x", numbers({3, 64, inner, 1}, 1)}}, 1e-6);
    agree(
        "main (float[N,M,I,2] x) => (y) <int64 axis = {1}> {"
        "y = DFT <onesided = 1, inverse = 1> (x, , axis) }",
        {{"x", numbers({3, 33, inner, 2}, 1)}}, 1e-6);
  }
}

TEST_P(Signal, Doubles) {
  for (const int64_t n : {9, 16, 160, 1024})
    for (const int64_t lines : {2, 9})
      agree(
          "main (float[N,M,2] x) => (y) <int64 axis = {1}> { d = Cast <to = 11> (x)\n"
          "e = DFT (d, , axis)\n y = Cast <to = 1> (e) }",
          {{"x", numbers({lines, n, 2}, 1)}}, 1e-6);
}

TEST_P(Signal, Frames) {
  for (const int64_t length : {5, 16, 100, 1024})
    for (const int64_t parts : {1, 2})
      for (const bool window : {false, true})
        for (const char* onesided : {"0", "1"}) {
          if (parts == 2 && onesided[0] == '1') continue;
          const std::string node = std::string("y = STFT <onesided = ") + onesided + "> (x, hop, " +
                                   (window ? "w" : "") + ", length) }";
          std::vector<NamedValue> inputs = {{"x", numbers({2, 2000, parts}, 1)}};
          if (window) inputs.push_back({"w", numbers({length}, 1)});
          agree(std::string("main (float[N,M,P] x") + (window ? ", float[L] w" : "") +
                    ") => (y) <int64 hop = {97}, int64 length = {" + std::to_string(length) +
                    "}> {" + node,
                inputs, 1e-6);
        }
}

INSTANTIATE_TEST_SUITE_P(Isa, Signal,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
