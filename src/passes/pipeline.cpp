#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "passes/lower.h"
#include "passes/verify.h"
#include "version/upgrade.h"

namespace tombolo {
namespace {

uint64_t weight_bytes(Model& model) {
  uint64_t bytes = 0;
  const auto add = [&](const Constant& constant) {
    const int64_t count = element_count(constant.dims.span());
    if (count > 0)
      bytes += packed_bytes(constant.dtype(), static_cast<uint64_t>(count)).value_or(0);
  };
  if (model.graph)
    for_each_graph(*model.graph, [&](Graph& graph) {
      for (const Value* value : graph.initializers()) add(*value->initializer());
      for (const Node* node : graph.nodes())
        for (const Attribute& attribute : node->attributes())
          if (const Constant* constant = attribute.tensor()) add(*constant);
    });
  return bytes;
}

Result<std::vector<const Pass*>> chosen(const OptimiseOptions& options) {
  for (const auto* names : {&options.only, &options.disabled})
    for (const std::string& name : *names)
      if (find_pass(name) == nullptr)
        return usage_error("there is no pass \"" + name + "\"")
            .with_help("tombolo optimise --list shows all passes");
  if (options.target == Target::kFile)
    for (const std::string& name : options.only)
      if (find_pass(name)->level == kRuntimeLevel)
        return usage_error("the pass \"" + name + "\" writes what only this runtime knows")
            .with_help("models that are run get it by themselves");
  std::vector<const Pass*> list;
  if (!options.only.empty()) {
    for (const std::string& name : options.only) list.push_back(find_pass(name));
  } else {
    for (const Pass& pass : all_passes())
      if (pass.level <= options.level ||
          (pass.level == kRuntimeLevel && options.target == Target::kRuntime && options.level > 0))
        list.push_back(&pass);
  }
  std::erase_if(list, [&](const Pass* pass) {
    return std::find(options.disabled.begin(), options.disabled.end(), pass->name) !=
           options.disabled.end();
  });
  return list;
}

/// Before IR 4 every initialiser had to be listed among the inputs, and was no input for that. From
/// IR 4 on such an entry lets callers replace the weight: those models never meant that.
void drop_formal_inputs(Model& model) {
  if (model.ir_version >= 4 || !model.graph) return;
  const std::vector<Value*> inputs = model.graph->inputs();
  for (Value* input : inputs)
    if (input->is_initializer()) model.graph->remove_input(input);
}

/// Gradient names values of the graph in its attributes: a graph that has one is left as it was
/// written.
bool names_values_in_attributes(Model& model) {
  bool found = false;
  for_each_graph(*model.graph, [&](Graph& graph) {
    for (const Node* node : graph.nodes())
      found |= node->op_type() == "Gradient" && node->domain() == "ai.onnx.preview.training";
  });
  return found;
}

/// Some runtimes refuse two nodes of one name; new nodes carry the name of what they came from.
void name_nodes_apart(Model& model) {
  std::unordered_set<std::string_view> taken;
  std::unordered_map<std::string_view, int> suffix;
  for_each_graph(*model.graph, [&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->name().empty() || taken.insert(node->name()).second) continue;
      const Text stem = node->name();
      do {
        node->set_name(std::string(stem) + "_" + std::to_string(++suffix[stem]));
      } while (!taken.insert(node->name()).second);
    }
  });
}

/// Passes hold as much again as the graph itself; a command stays within half a gigabyte whatever
/// it is given.
Status check_size(Model& model) {
  constexpr size_t kLargest = size_t{300} << 20;
  size_t bytes = 0;
  for_each_graph(*model.graph, [&](Graph& graph) {
    bytes += graph.node_count() * (sizeof(Node) + sizeof(Value));
    for (const Node* node : graph.nodes())
      bytes += node->attributes().size() * sizeof(Attribute) +
               (node->inputs().size() + node->outputs().size()) * sizeof(Value*) +
               (std::max<size_t>(node->outputs().size(), 1) - 1) * sizeof(Value);
  });
  if (bytes <= kLargest) return ok();
  return resource_error("a graph of " + std::to_string(count_all_nodes(*model.graph)) +
                        " nodes needs more than " + std::to_string(kLargest >> 20) +
                        " MiB to describe, too much to be optimised or run")
      .with_help("split the model (tombolo check and convert take it whole)");
}

/// One after another until nothing changes; a pass that cannot reach an end is stopped by the cap.
Status run_passes(Rewriter& rewriter, const std::vector<const Pass*>& list,
                  const OptimiseOptions& options, OptimiseReport& report) {
  using Clock = std::chrono::steady_clock;
  const size_t first = report.passes.size();
  for (const Pass* pass : list) report.passes.push_back({pass, 0, 0});
  for (report.settled = false; !report.settled && report.rounds < options.max_rounds;) {
    ++report.rounds;
    report.settled = true;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto begin = Clock::now();
      auto changes = list[i]->run(rewriter);
      if (!changes) return std::move(changes).error().at("pass " + std::string(list[i]->name.data));
      PassResult& result = report.passes[first + i];
      result.changes += *changes;
      result.milliseconds +=
          std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      if (*changes != 0) report.settled = false;
      if (*changes != 0 && options.verify)
        if (Status status = verify_graph(rewriter.model()); !status)
          return std::move(status).error().at("after pass " + std::string(list[i]->name.data));
    }
  }
  return ok();
}

}  // namespace

size_t count_all_nodes(const Graph& graph) {
  size_t count = 0;
  for_each_graph(const_cast<Graph&>(graph), [&](Graph& inner) { count += inner.node_count(); });
  return count;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : all_passes())
    if (pass.name == name) return &pass;
  return nullptr;
}

Result<OptimiseReport> optimise(Model& model, const OptimiseOptions& options) {
  TRY(std::vector<const Pass*> list, chosen(options));
  OptimiseReport report;
  if (!model.graph) return parse_error("the model has no graph");
  report.nodes_before = count_all_nodes(*model.graph);
  report.weight_bytes_before = weight_bytes(model);
  report.opset_before = report.opset_after = model.opset();
  report.nodes_after = report.nodes_before;
  report.weight_bytes_after = report.weight_bytes_before;
  if (list.empty() && options.target == Target::kFile) return report;

  CHECK_OK(check_size(model));
  bool sorted = true;
  for_each_graph(*model.graph, [&](Graph& graph) { sorted &= graph.sort(); });
  if (!sorted) return parse_error("the graph has a cycle");
  if (Status status = verify_graph(model); !status)
    return parse_error(status.error().message).with_help("tombolo check says more");
  drop_formal_inputs(model);
  const OriginalImports original = remember_imports(model);
  Diagnostics kept;
  CHECK_OK(upgrade(model, kept));
  if (names_values_in_attributes(model)) list.clear();
  Rewriter rewriter(model, options.level, options.limits);
  rewriter.defers = options.target == Target::kRuntime;
  rewriter.fast_math = options.fast_math;
  rewriter.run_node = options.run_node;
  // The runtime's own operators come last: no other pass knows them.
  const auto own = std::stable_partition(list.begin(), list.end(), [&](const Pass* pass) {
    return pass->level != kRuntimeLevel || !options.only.empty();
  });
  const std::vector<const Pass*> standard(list.begin(), own);
  CHECK_OK(run_passes(rewriter, standard, options, report));
  // Each of them until nothing changes, then the next, which sees what it has left.
  const auto follow = [&](const std::vector<const Pass*>& passes) {
    const int rounds = std::exchange(report.rounds, 0);
    Status status = run_passes(rewriter, passes, options, report);
    report.rounds += rounds;
    return status;
  };
  for (auto pass = own; pass != list.end(); ++pass) {
    const size_t row = report.passes.size();
    CHECK_OK(follow({*pass}));
    if ((*pass)->again && report.passes[row].changes != 0) CHECK_OK(follow(standard));
  }
  name_nodes_apart(model);
  if (options.target == Target::kFile) CHECK_OK(lower(model, original));
  report.nodes_after = count_all_nodes(*model.graph);
  report.weight_bytes_after = weight_bytes(model);
  report.opset_after = model.opset();
  return report;
}

}  // namespace tombolo
