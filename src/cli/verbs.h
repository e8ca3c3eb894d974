#pragma once

// The verbs, one a file of the same name.

#include "cli/command.h"

namespace tombolo::cli {

extern const Verb bench_verb, check_verb, compare_verb, completion_verb, conformance_verb,
    convert_verb, doctor_verb, info_verb, infer_verb, man_verb, ops_verb, opset_verb, optimise_verb,
    parse_verb, print_verb, profile_verb, run_verb, weights_verb;

}  // namespace tombolo::cli
