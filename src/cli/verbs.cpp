#include "cli/verbs.h"

namespace tombolo::cli {

std::span<const Verb> verbs() {
  static const Verb all[] = {
      convert_verb,  run_verb,         bench_verb,  profile_verb,    compare_verb, info_verb,
      check_verb,    infer_verb,       print_verb,  parse_verb,      ops_verb,     opset_verb,
      optimise_verb, conformance_verb, doctor_verb, completion_verb, man_verb,     weights_verb};
  return all;
}

}  // namespace tombolo::cli
