#pragma once

// The plan of a graph: nodes in order, each with its kernel, where its inputs lie, and which values
// die after it. Built once a session; read by many runs at a time.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"
#include "ir/run_value.h"
#include "ops/schema.h"

namespace tombolo {

struct GraphPlan;

/// Where a value lies: a constant of the plan, or slot `slot` of the frame `depth` levels out.
struct ValueRef {
  const RunValue* constant = nullptr;
  int depth = 0;
  int slot = -1;  ///< -1 with no constant: absent
};

struct NodePlan {
  const Node* node = nullptr;
  int opset = 0;
  KernelFn kernel = nullptr;
  const Function* function = nullptr;  ///< a call of a model function, when kernel is null
  GraphPlan* body = nullptr;           ///< its plan
  std::vector<ValueRef> inputs;
  std::vector<int> outputs;  ///< slots; -1 where not wanted
  std::vector<int> dead;     ///< slots of this frame not used after this node
};

struct GraphPlan {
  const Graph* graph = nullptr;
  const GraphPlan* parent = nullptr;
  int slot_count = 0;
  std::vector<NodePlan> nodes;
  std::vector<int> inputs;                ///< slot of each graph input
  std::vector<const RunValue*> defaults;  ///< per input: its initialiser, or null
  std::vector<ValueRef> outputs;
  std::unordered_map<const Value*, ValueRef> places;
  std::vector<std::unique_ptr<RunValue>> constants;
  std::unordered_map<const Graph*, std::unique_ptr<GraphPlan>> subgraphs;
};

/// All plans of a model.
struct ModelPlan {
  std::unique_ptr<GraphPlan> main;
  std::unordered_map<const Function*, std::unique_ptr<GraphPlan>> functions;
};

/// Plans the model. Fails with kUnsupported naming every operator without a kernel, with kParse
/// when a graph refers to what is not there, has a cycle, or calls functions in a circle.
Result<ModelPlan> plan_model(Model& model);

/// "node \"conv1\" (Conv, #12)" for messages.
std::string describe(const Node& node);

}  // namespace tombolo
