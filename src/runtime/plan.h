#pragma once

// The plan of a graph: nodes in order, each with its kernel, where its inputs lie, and which values
// die after it. Built once a session; read by many runs at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"
#include "ir/run_value.h"
#include "ops/schema.h"

namespace tombolo {

struct GraphPlan;
struct KernelRow;
class SpecialisationCache;

/// Where a value lies: a constant of the plan, or slot `slot` of the frame `depth` levels out.
struct ValueRef {
  const RunValue* constant = nullptr;
  int depth = 0;
  int slot = -1;  ///< -1 with no constant: absent
};

/// A run of elements in one of the plan's flat lists: a plan of a million nodes has no lists of its
/// own in each of them.
struct Span {
  uint32_t begin = 0, count = 0;
};

struct NodePlan {
  const Node* node = nullptr;
  KernelFn kernel = nullptr;               ///< the reference
  std::span<const KernelRow* const> rows;  ///< fast kernels, best first
  const Function* function = nullptr;      ///< a call of a model function, when kernel is null
  int opset = 0;
  uint32_t index = 0;      ///< in GraphPlan::nodes
  bool subgraphs = false;  ///< the node holds graphs
  bool bound = false;      ///< attributes are taken from the function that is called
  uint32_t values = 0;     ///< KernelRow::values of all its rows
  Span inputs;             ///< of GraphPlan::refs
  Span outputs;            ///< of GraphPlan::slots; -1 where not wanted
  Span dead;               ///< of GraphPlan::dead: slots of this frame not used after this node
  /// A stretch of nodes that goes through so many images of a batch at a time
  /// (runtime/batch_slices.h): the first `batches` inputs and all outputs are cut.
  const GraphPlan* slice = nullptr;
  int64_t images = 0;
  uint32_t batches = 0;
};

struct GraphPlan {
  const Graph* graph = nullptr;
  const GraphPlan* parent = nullptr;
  int slot_count = 0;
  std::vector<NodePlan> nodes;
  std::vector<ValueRef> refs;
  std::vector<int> slots, dead;
  std::vector<int> inputs;                ///< slot of each graph input
  std::vector<const RunValue*> defaults;  ///< per input: its initialiser, or null
  std::vector<bool> chosen_by;            ///< per input: its value may decide on kernels
  std::vector<ValueRef> outputs;
  std::vector<std::unique_ptr<RunValue>> constants;
  std::unordered_map<const Graph*, std::unique_ptr<GraphPlan>> subgraphs;
  std::vector<std::unique_ptr<GraphPlan>> slices;  ///< of its nodes
  bool own_slots = false;       ///< every value has a slot of its own: shapes can be specialised
  std::vector<ValueRef> outer;  ///< slots of frames around that this graph (or one inside) reads
  std::unique_ptr<SpecialisationCache> cache;

  GraphPlan();
  ~GraphPlan();

  std::span<const ValueRef> inputs_of(const NodePlan& node) const {
    return std::span(refs).subspan(node.inputs.begin, node.inputs.count);
  }
  std::span<const int> outputs_of(const NodePlan& node) const {
    return std::span(slots).subspan(node.outputs.begin, node.outputs.count);
  }
  std::span<const int> dead_after(const NodePlan& node) const {
    return std::span(dead).subspan(node.dead.begin, node.dead.count);
  }
};

/// All plans of a model.
struct ModelPlan {
  std::unique_ptr<GraphPlan> main;
  std::unordered_map<const Function*, std::unique_ptr<GraphPlan>> functions;
};

struct PlanOptions {
  bool fast_kernels = true;  ///< false: reference kernels alone
  /// An initialiser that is also an input counts as a constant: no run may give that input then.
  bool defaults_are_constant = false;
};

/// Plans the model. Fails with kUnsupported naming every operator without a kernel, with kParse
/// when a graph refers to what is not there, has a cycle, or calls functions in a circle.
Result<ModelPlan> plan_model(Model& model, PlanOptions options = {});

/// Fills in what follows from nodes, inputs and outputs: which values die where, and the cache.
void finish_plan(GraphPlan& plan);

/// "node \"conv1\" (Conv, #12)" for messages.
std::string describe(const Node& node);

}  // namespace tombolo
