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
/// `headers_only`: names, types and shapes of the weights suffice.
Result<std::unique_ptr<Model>> open_model(const Args& args, bool headers_only = false);

/// OUT: the positional, or -o; empty when neither is given. A usage error when both are.
Result<std::string> output_path(const Args& args);

/// The refusal of an operator set, with every node that blocks it (opset.cpp).
Error cannot_be_said(const Diagnostics& blockers, size_t count, int64_t opset);

std::string human_bytes(uint64_t bytes);

}  // namespace tombolo::cli
