#pragma once

// What verbs share: opening MODEL, and naming OUT.

#include <memory>
#include <string>

#include "cli/command.h"
#include "formats/load.h"
#include "ir/model.h"

namespace tombolo::cli {

/// The options that say how MODEL is read (`--from`, `--weights`, ...): every verb takes them.
std::vector<Option> load_options(std::vector<Option> more = {});

/// Opens positional MODEL by content, whatever its format, with those options.
/// `headers_only`: names, types and shapes of the weights suffice. `stored_sample` gets the example
/// inputs that the file keeps.
Result<std::unique_ptr<Model>> open_model(const Args& args, bool headers_only = false,
                                          std::vector<NamedTensor>* stored_sample = nullptr);

/// OUT: the positional, or -o; empty when neither is given. A usage error when both are.
Result<std::string> output_path(const Args& args);

std::string human_bytes(uint64_t bytes);

}  // namespace tombolo::cli
