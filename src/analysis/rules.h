#pragma once

// The table of what the checker and inference report: code, severity, one line. Documentation is
// made from it; `report` takes the severity from it.

#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace tombolo {

struct Rule {
  std::string_view code;
  Severity severity;
  std::string_view summary;
};

namespace rules {
#define RULE(name, code, severity, summary) \
  inline constexpr Rule name{code, Severity::severity, summary};
#include "analysis/rules.inc"
#undef RULE
}  // namespace rules

/// Every rule, in the order of the table.
std::span<const Rule> all_rules();

inline void report(Diagnostics& diagnostics, const Rule& rule, std::string where,
                   std::string message, std::string help = {}) {
  diagnostics.add({rule.severity, std::string(rule.code), std::move(where), std::move(message),
                   std::move(help)});
}

}  // namespace tombolo
