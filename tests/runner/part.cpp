#include "runner/part.h"

namespace tombolo::test {

namespace {

bool is_separator(std::string_view line) {
  return line.size() >= 3 && line.find_first_not_of('-') == line.npos;
}

/// What stands behind `key` at the beginning of the line.
bool directive(std::string_view line, std::string_view key, std::string_view& rest) {
  if (!line.starts_with(key)) return false;
  rest = line.substr(key.size());
  while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  return true;
}

}  // namespace

TestFile parse_test_file(std::string_view text) {
  TestFile file;
  file.parts.emplace_back();
  int number = 0;
  bool expecting = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    Part& part = file.parts.back();
    std::string_view rest;
    if (is_separator(line)) {
      file.separators.emplace_back(line);
      file.parts.emplace_back();
      file.parts.back().line = number + 1;
      expecting = false;
    } else if (expecting) {
      (part.expect += line) += '\n';
    } else if (directive(line, "EXPECT:", rest)) {
      part.has_expect = expecting = true;
      if (!rest.empty()) (part.expect += rest) += '\n';
    } else if (directive(line, "ERROR:", rest)) {
      part.has_error = true;
      part.error = rest;
    } else {
      (part.head += line) += '\n';
      bool is_model = false;
      if (directive(line, "RUN:", rest)) {
        part.run = rest;
        part.line = number;
      } else if (directive(line, "NAME:", rest)) {
        part.name = rest;
      } else if (directive(line, "INPUT:", rest)) {
        if (!part.inputs.empty()) part.inputs += ",\n";
        part.inputs += rest;
      } else {
        is_model = true;
      }
      // A directive leaves an empty line: the lines of errors count from the part's first.
      if (is_model) part.model += line;
      part.model += '\n';
    }
  }
  return file;
}

std::string print_test_file(const TestFile& file) {
  std::string text;
  for (size_t i = 0; i < file.parts.size(); ++i) {
    const Part& part = file.parts[i];
    text += part.head;
    if (part.has_error) text += "ERROR: " + part.error + "\n";
    if (part.has_expect) text += "EXPECT:\n" + part.expect;
    if (i < file.separators.size()) text += file.separators[i] + "\n";
  }
  return text;
}

}  // namespace tombolo::test
