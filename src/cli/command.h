#pragma once

// A verb of the command line is a row: what it takes, what it says of itself, and the function that
// runs it. Parsing, help, shell completion and man pages all read these rows.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/json_quote.h"
#include "base/result.h"

namespace tombolo::cli {

/// Exit codes (cli.md). From 2 on they are the values of ErrorKind.
inline constexpr int kYes = 0;
inline constexpr int kNo = 1;
inline constexpr int kInterrupted = 130;

enum class Completes { kNothing, kFile, kFolder };

struct Option {
  std::string_view name;        ///< long name without dashes: "output"
  std::string_view short_name;  ///< one letter or empty
  std::string_view value;       ///< "FILE"; empty for a flag
  std::string_view help;
  std::string_view default_text = "";
  bool repeats = false;
  Completes completes = Completes::kNothing;
  std::string_view choices = "";  ///< "text|json"
};

struct Positional {
  std::string_view name;
  std::string_view help;
  bool required = true;
  bool repeats = false;
};

/// A whole number that is not negative, if the text is one and nothing else.
std::optional<int64_t> read_whole(std::string_view text);

class Args;
class Console;

struct Verb {
  std::string_view name;
  std::string_view summary;      ///< one line
  std::string_view description;  ///< paragraphs; may be empty
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::vector<std::string_view> examples;
  Result<int> (*run)(const Args&, Console&);
};

/// What was given on the command line.
class Args {
 public:
  std::optional<std::string> get(std::string_view option) const;
  std::vector<std::string> all(std::string_view option) const;
  bool flag(std::string_view option) const { return all_.contains(std::string(option)); }
  /// Positional by name; empty when an optional one was not given.
  std::string positional(std::string_view name) const;
  std::vector<std::string> positionals(std::string_view name) const;
  /// A non-negative integer, `fallback` when not given.
  Result<int64_t> get_int(std::string_view option, int64_t fallback) const;

  void add(std::string name, std::string value) {
    all_[std::move(name)].push_back(std::move(value));
  }

 private:
  std::map<std::string, std::vector<std::string>> all_;
};

/// Where verbs print. Results go to stdout, all else to stderr; with --json nothing but one JSON
/// document reaches stdout.
class Console {
 public:
  bool json = false;
  bool quiet = false;
  int verbosity = 0;
  bool color = false;     ///< of stderr
  bool progress = false;  ///< stderr is a terminal and --no-progress was not given

  void print(std::string_view text);              ///< to stdout
  void message(std::string_view text);            ///< to stderr, unless quiet
  void error(const Error& error);                 ///< to stderr, and as JSON to stdout with --json
  void diagnostic(const Diagnostic& diagnostic);  ///< to stderr
  /// Progress of a long task: redraws one line at most ten times a second.
  void step(std::string_view task, size_t done, size_t total);
  void step_done();
  Status flush();  ///< false when stdout could not be written (disk full, closed pipe)

 private:
  int64_t last_step_ms_ = 0;
  bool step_shown_ = false;
};

std::span<const Verb> verbs();
/// Options that every verb takes.
std::span<const Option> common_options();

std::string_view kind_name(ErrorKind kind);

/// The whole program: parses, runs, reports, returns the exit code.
int main(int argc, char** argv);

}  // namespace tombolo::cli
