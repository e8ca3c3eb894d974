// Runs the parts of *.test files.
//
//   tombolo_text_tests [--update] [--list] [PATH[:LINE]]...
//
// PATH: a file or a folder (default: tests/). LINE: only the part that holds it. --update rewrites
// what parts expect to what they gave.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "runner/part.h"
#include "runner/verbs.h"

namespace fs = std::filesystem;

namespace tombolo::test {
namespace {

std::string describe(const Error& error) {
  std::string text = error.where.empty() ? error.message : error.where + ": " + error.message;
  if (!error.help.empty()) text += "\n" + error.help;
  return text;
}

std::string trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == text.npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

/// Runs the steps; the state's output is what the last one printed, or the model.
Status steps(State& state) {
  TRY(state.model, parse_text(state.part.model));
  std::istringstream pipeline(state.part.run);
  for (std::string step; std::getline(pipeline, step, '|');) {
    step = trim(step);
    const size_t space = std::min(step.find(' '), step.size());
    const std::string name = step.substr(0, space);
    const auto known = verbs();
    const auto verb =
        std::find_if(known.begin(), known.end(), [&](const Verb& row) { return row.name == name; });
    if (verb == known.end()) {
      std::string all;
      for (const Verb& row : known) (all += " ") += row.name;
      return usage_error("RUN does not know \"" + name + "\"").with_help("steps:" + all);
    }
    if (state.model == nullptr) return usage_error("nothing may follow `run`");
    CHECK_OK(verb->step(state, trim(step.substr(space))));
  }
  if (state.output.empty() && !state.is_values && state.model != nullptr)
    state.output = print_text(*state.model);
  return ok();
}

/// Empty when the part passes, else what is wrong. Updates the part's expectation where asked.
std::string judge(Part& part, bool update) {
  State state{part, nullptr};
  if (part.run.empty()) return "the part has no RUN line";
  if (auto status = steps(state); !status.ok()) {
    const std::string given = describe(status.error());
    if (!part.has_error && !update) return "fails:\n" + given;
    if (part.has_error) try {
        if (std::regex_search(given, std::regex(part.error))) return "";
      } catch (const std::regex_error& bad) {
        return std::string("ERROR is no regular expression: ") + bad.what();
      }
    if (!update) return "ERROR " + part.error + " is not in:\n" + given;
    part.has_error = true;
    part.has_expect = false;
    part.error =
        std::regex_replace(status.error().message, std::regex(R"([\\^$.|?*+()[\]{}])"), R"(\$&)");
    return "";
  }
  if (part.has_error && !update) return "does not fail, ERROR was " + part.error;
  std::string reason = "the output differs";
  const bool same = state.is_values ? same_values(state.output, part.expect, reason)
                                    : trim(state.output) == trim(part.expect);
  if (part.has_expect && same) return "";
  if (update) {
    part.has_error = false;
    part.has_expect = true;
    part.expect = state.output;
    return "";
  }
  // A part without EXPECT shows only that the steps succeed.
  return part.has_expect ? reason + ":\n" + state.output + "expected:\n" + part.expect : "";
}

struct Selection {
  std::string path;
  int line = 0;
};

struct Runner {
  bool update = false, list = false;
  std::string program;
  int passed = 0, failed = 0;

  void file(const std::string& path, int line) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream content;
    content << in.rdbuf();
    TestFile tests = parse_test_file(content.str());
    for (size_t i = 0; i < tests.parts.size(); ++i) {
      Part& part = tests.parts[i];
      const int next = i + 1 < tests.parts.size() ? tests.parts[i + 1].line : INT32_MAX;
      if (trim(part.head).empty() && !part.has_expect && !part.has_error) continue;
      if (line != 0 && (line < part.line || line >= next)) continue;
      const std::string place = path + ":" + std::to_string(part.line);
      if (list) {
        std::printf("%s: %s\n", place.c_str(), (part.name + " [" + part.run + "]").c_str());
        continue;
      }
      const std::string wrong = judge(part, update);
      if (wrong.empty()) {
        ++passed;
        continue;
      }
      ++failed;
      std::printf("FAILED %s %s\n%s\n  repeat: %s %s\n", place.c_str(), part.name.c_str(),
                  wrong.c_str(), program.c_str(), place.c_str());
    }
    if (update && print_test_file(tests) != content.str()) {
      std::ofstream(path, std::ios::binary) << print_test_file(tests);
      std::printf("updated %s\n", path.c_str());
    }
  }

  void path(const Selection& selection) {
    if (!fs::is_directory(selection.path)) return file(selection.path, selection.line);
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(selection.path))
      if (entry.is_regular_file() && entry.path().extension() == ".test")
        files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    for (const std::string& one : files) file(one, 0);
  }
};

int run(int argc, char** argv) {
  Runner runner;
  runner.program = argv[0];
  std::vector<Selection> selections;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--update") {
      runner.update = true;
    } else if (argument == "--list") {
      runner.list = true;
    } else if (argument == "--help") {
      std::printf("%s [--update] [--list] [PATH[:LINE]]...\nsteps of a RUN line:\n", argv[0]);
      for (const Verb& verb : verbs())
        std::printf("  %-10s %s\n", std::string(verb.name).c_str(), std::string(verb.help).c_str());
      return 0;
    } else {
      Selection selection{argument};
      const size_t colon = argument.rfind(':');
      if (colon != argument.npos && !fs::exists(argument)) {
        selection.path = argument.substr(0, colon);
        selection.line = std::atoi(argument.c_str() + colon + 1);
      }
      if (!fs::exists(selection.path)) {
        std::fprintf(stderr, "%s: there is no such file\n", selection.path.c_str());
        return 2;
      }
      selections.push_back(selection);
    }
  }
  if (selections.empty()) selections.push_back({TOMBOLO_SOURCE_DIR "/tests"});
  for (const Selection& selection : selections) runner.path(selection);
  if (runner.list) return 0;
  std::printf("%d parts passed, %d failed\n", runner.passed, runner.failed);
  if (runner.passed + runner.failed == 0) {
    std::fprintf(stderr, "no parts were found\n");
    return 2;
  }
  return runner.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tombolo::test

int main(int argc, char** argv) { return tombolo::test::run(argc, argv); }
