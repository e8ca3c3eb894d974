#include "analysis/rules.h"

namespace tombolo {

std::span<const Rule> all_rules() {
  static constexpr Rule kAll[] = {
#define RULE(name, code, severity, summary) rules::name,
#include "analysis/rules.inc"
#undef RULE
  };
  return kAll;
}

}  // namespace tombolo
