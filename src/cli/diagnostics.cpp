#include "cli/diagnostics.h"

#include "cli/command.h"

namespace tombolo::cli {

std::string diagnostics_json(const Diagnostics& diagnostics) {
  std::string out = "[";
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    const char* severity = diagnostic.severity == Severity::kError     ? "error"
                           : diagnostic.severity == Severity::kWarning ? "warning"
                                                                       : "note";
    out += (out.size() == 1 ? "" : ",") + std::string("{\"severity\":\"") + severity +
           "\",\"code\":" + json_quote(diagnostic.code) +
           ",\"where\":" + json_quote(diagnostic.where) +
           ",\"message\":" + json_quote(diagnostic.message) +
           ",\"help\":" + json_quote(diagnostic.help) + "}";
  }
  return out + "]";
}

}  // namespace tombolo::cli
