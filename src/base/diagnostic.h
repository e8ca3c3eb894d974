#pragma once

// Checker, inference and importers report everything they find instead of stopping at the first.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tombolo {

enum class Severity { kNote, kWarning, kError };

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string code;     ///< stable kebab-case name of the rule: "duplicate-name"
  std::string where;    ///< path of places, outermost first
  std::string message;  ///< lower case, no full stop, able to stand alone
  std::string help;     ///< the way out, may be empty
};

/// An ordered list of diagnostics. Keeps at most `limit` of them and counts the rest, so that a
/// hostile file of a million faults costs no more memory than a report a person can read.
class Diagnostics {
 public:
  explicit Diagnostics(size_t limit = 1000) : limit_(limit) {}

  void add(Diagnostic diagnostic) {
    if (diagnostic.severity == Severity::kError) ++errors_;
    if (diagnostic.severity == Severity::kWarning) ++warnings_;
    if (list_.size() < limit_)
      list_.push_back(std::move(diagnostic));
    else
      ++dropped_;
  }
  void error(std::string code, std::string where, std::string message, std::string help = {}) {
    add({Severity::kError, std::move(code), std::move(where), std::move(message), std::move(help)});
  }
  void warning(std::string code, std::string where, std::string message, std::string help = {}) {
    add({Severity::kWarning, std::move(code), std::move(where), std::move(message),
         std::move(help)});
  }

  const std::vector<Diagnostic>& list() const { return list_; }
  size_t errors() const { return errors_; }
  size_t warnings() const { return warnings_; }
  size_t dropped() const { return dropped_; }  ///< beyond the limit: counted, not kept
  /// True when the limit is reached: a long scan may stop here.
  bool full() const { return list_.size() >= limit_; }

 private:
  std::vector<Diagnostic> list_;
  size_t limit_;
  size_t errors_ = 0, warnings_ = 0, dropped_ = 0;
};

}  // namespace tombolo
