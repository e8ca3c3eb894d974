#pragma once

// A part of a .test file:
//
//   NAME: what it shows                 optional
//   RUN: json | print                   steps, left to right (verbs.cpp)
//   INPUT: float[2] x = {1, 2}          for `run`: values of inputs, any number of lines
//   <ONNX text>
//   EXPECT:
//   <what the last step printed>
//
// or, in place of EXPECT, `ERROR: regex` that the error (place, message, help) must contain.
// Parts are separated by a line of at least three dashes.

#include <string>
#include <string_view>
#include <vector>

namespace tombolo::test {

struct Part {
  int line = 1;  ///< of the file where the part begins
  std::string name, run, model, inputs, expect, error;
  bool has_expect = false, has_error = false;
  std::string head;  ///< all before EXPECT or ERROR, as it stands in the file
};

struct TestFile {
  std::vector<Part> parts;
  std::vector<std::string> separators;  ///< the lines between the parts
};

TestFile parse_test_file(std::string_view text);
/// The file again, with what its parts now say.
std::string print_test_file(const TestFile& file);

}  // namespace tombolo::test
