#pragma once

// Runs passes over a model: levels are plain lists of passes, repeated until nothing changes.
//
// For the runtime: `optimise(model, {.level = 2, .target = Target::kRuntime})` on a model that was
// read. It brings the model to the newest operator sets, runs the passes of that level and then the
// runtime's own (rows of kRuntimeLevel), and leaves it at the newest set, in memory only. What
// those write beyond standard ONNX is listed in passes/runtime_operators.h.

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "passes/pass.h"
#include "passes/rewriter.h"

namespace tombolo {

enum class Target : uint8_t {
  kFile,     ///< a model that others run: the lowest operator set that says it, not below its own
  kRuntime,  ///< this process: newest operator sets, operators of ai.tombolo allowed
};

struct OptimiseOptions {
  int level = 2;
  Target target = Target::kFile;
  std::vector<std::string> only;  ///< names of passes, run in this order; empty: the level's list
  std::vector<std::string> disabled;  ///< names of passes that shall not run
  int max_rounds = 10;
  bool verify = false;  ///< the graph's structure is checked after every pass
  RewriteLimits limits = {};
  bool fast_math = false;  ///< the runtime may round products: Rewriter::fast_math
  /// With it folding leaves what costs much to the runtime's kernels; null: reference kernels.
  NodeRunner run_node = nullptr;
};

struct PassResult {
  const Pass* pass = nullptr;
  size_t changes = 0;
  double milliseconds = 0;
};

struct OptimiseReport {
  std::vector<PassResult> passes;  ///< one for each pass that ran, all rounds added up
  int rounds = 0;
  bool settled = true;  ///< the last round changed nothing
  size_t nodes_before = 0, nodes_after = 0;
  uint64_t weight_bytes_before = 0, weight_bytes_after = 0;
  int64_t opset_before = 0, opset_after = 0;
};

/// Optimises in place. kUsage for an unknown pass; on another error the model is not to be used.
Result<OptimiseReport> optimise(Model& model, const OptimiseOptions& options = {});

/// Nodes of the main graph and everything below it.
size_t count_all_nodes(const Graph& graph);

}  // namespace tombolo
