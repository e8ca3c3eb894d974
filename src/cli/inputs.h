#pragma once

// How verbs that run a model come by its inputs: --inputs, --input, --random.

#include <string>
#include <vector>

#include "cli/command.h"
#include "runtime/session.h"

namespace tombolo::cli {

/// The options that say where inputs come from.
std::vector<Option> input_options(std::vector<Option> more = {});

/// Dimensions that a model names, and their sizes.
using NamedSizes = std::vector<std::pair<std::string, int64_t>>;

/// --input, --inputs, --random, in this order of precedence for one name. `random`: as if --random
/// was given. `sizes` come before those of --size.
Result<std::vector<NamedValue>> gather_inputs(const Args& args, const Session& session,
                                              bool random = false, NamedSizes sizes = {});

/// `NAME=VALUE` in its parts.
Result<std::pair<std::string, std::string>> name_and_value(std::string_view option,
                                                           const std::string& text);

/// A whole number that is not negative, for what `key` names.
Result<int64_t> whole_number(const std::string& key, const std::string& text);

/// A number that is not negative.
Result<double> number_of(const Args& args, std::string_view option, double fallback);

/// `a,b,c` in its parts; empty ones left out.
std::vector<std::string> split_commas(const std::string& text);

}  // namespace tombolo::cli
