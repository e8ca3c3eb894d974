#include <algorithm>

#include "analysis/checker_impl.h"
#include "analysis/infer.h"

namespace tombolo {

namespace {
constexpr size_t kMaxFunctions = 10'000;
/// A model some releases behind is common (exporters pin the IR version); one that skips this many
/// was not written by anything that knew the operators.
constexpr int64_t kIrLagTolerated = 4;

bool is_standard_domain(std::string_view domain) { return latest_opset(domain) != 0; }
}  // namespace

void check(const Model& model, const CheckOptions& options, Diagnostics& diagnostics) {
  Checker(model, options, diagnostics).run();
}

void Checker::run() {
  const Place model_place = Place::text("model");
  if (!model_.has_ir_version)
    report(rules::kIrVersion, model_place, "the model does not say its IR version",
           "set ir_version");
  else if (model_.ir_version < 1 || model_.ir_version > kNewestIrVersion)
    report(rules::kIrVersion, model_place,
           "the IR version is " + std::to_string(model_.ir_version) + ", known are 1 to " +
               std::to_string(kNewestIrVersion));
  if (model_.ir_version >= 3) {
    if (model_.opset_imports.empty())
      report(rules::kOpsetImport, model_place,
             "the model imports no operator set, which IR " + std::to_string(model_.ir_version) +
                 " needs",
             "add an opset_import of ai.onnx");
  } else if (!model_.opset_imports.empty()) {
    report(rules::kOpsetImport, model_place,
           "the model imports operator sets, which IR " + std::to_string(model_.ir_version) +
               " does not have");
  }
  opset_imports(model_.opset_imports, model_place);
  metadata(model_.metadata, model_place);
  configurations();

  for (const auto& function : model_.functions) {
    functions_.emplace(function_key(function->domain, function->name, function->overload),
                       function.get());
    function_domains_.insert(canonical_domain(function->domain));
  }
  if (model_.graph == nullptr) {
    report(rules::kNoGraph, model_place, "the model has no graph");
  } else {
    const Place place = Place::text("graph");
    graph(*model_.graph, nullptr, Unit(), place);
  }
  functions();
  training();
  if (options_.infer && model_.graph != nullptr) {
    Inference inference(model_);
    inference.run(diagnostics_);
  }
}

void Checker::needs_ir(int64_t ir, const char* feature, const Place& place) {
  if (model_.ir_version >= ir || !model_.has_ir_version) return;
  report(rules::kFeatureIr, place,
         std::string(feature) + " came with IR " + std::to_string(ir) + ", but the model says IR " +
             std::to_string(model_.ir_version),
         "raise ir_version to " + std::to_string(ir));
}

void Checker::element_type_ir(DType dtype, const Place& place) {
  switch (dtype) {
    case DType::kBFloat16:
      return needs_ir(4, "bfloat16", place);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return needs_ir(9, "float8", place);
    case DType::kInt4:
    case DType::kUInt4:
      return needs_ir(10, "int4", place);
    case DType::kFloat4E2M1:
      return needs_ir(11, "float4e2m1", place);
    case DType::kFloat8E8M0:
      return needs_ir(12, "float8e8m0", place);
    case DType::kInt2:
    case DType::kUInt2:
      return needs_ir(13, "int2", place);
    case DType::kFloat6E2M3:
    case DType::kFloat6E3M2:
      return needs_ir(14, "float6", place);
    default:
      return;
  }
}

void Checker::opset_imports(const std::vector<OpsetImport>& imports, const Place& place) {
  std::unordered_map<std::string_view, int64_t> seen;
  for (const OpsetImport& import : imports) {
    const Text domain = canonical_domain(import.domain);
    const std::string shown = domain.empty() ? std::string("ai.onnx") : std::string(domain);
    const auto [it, first] = seen.emplace(domain, import.version);
    if (!first)
      report(rules::kDuplicateOpset, place,
             "domain " + shown + " is imported twice, in versions " + std::to_string(it->second) +
                 " and " + std::to_string(import.version));
    const int latest = latest_opset(domain);
    if (import.version < 1)
      report(rules::kOpsetVersion, place,
             "domain " + shown + " is imported in version " + std::to_string(import.version));
    else if (latest != 0 && import.version > latest)
      report(rules::kOpsetVersion, place,
             "domain " + shown + " is imported in version " + std::to_string(import.version) +
                 ", the newest known is " + std::to_string(latest));
    else if (domain.empty() && model_.ir_version >= 3) {
      const int64_t needed = ir_version_for_opset(static_cast<int>(import.version));
      if (needed - model_.ir_version >= kIrLagTolerated)
        report(rules::kIrMuchTooOld, place,
               "operator set " + std::to_string(import.version) + " came with IR " +
                   std::to_string(needed) + ", but the model says IR " +
                   std::to_string(model_.ir_version),
               "raise ir_version to " + std::to_string(needed));
      else if (needed > model_.ir_version)
        report(rules::kIrTooOld, place,
               "operator set " + std::to_string(import.version) + " came with IR " +
                   std::to_string(needed) + ", but the model says IR " +
                   std::to_string(model_.ir_version),
               "raise ir_version to " + std::to_string(needed));
    }
  }
}

void Checker::metadata(const std::vector<StringEntry>& entries, const Place& place) {
  std::unordered_set<std::string_view> seen;
  for (const StringEntry& entry : entries)
    if (!seen.insert(entry.key).second)
      report(rules::kDuplicateMetadata, place,
             "the metadata key " + quote_name(entry.key) + " is there twice");
}

void Checker::configurations() {
  const Place place = Place::text("model");
  if (model_.configurations.empty()) return;
  needs_ir(11, "device configurations", place);
  std::unordered_set<std::string_view> seen;
  for (const DeviceConfiguration& configuration : model_.configurations) {
    const Place here = Place::named("configuration", configuration.name, &place);
    if (configuration.name.empty()) report(rules::kDevice, here, "the configuration has no name");
    if (!seen.insert(configuration.name).second)
      report(rules::kDevice, here, "two configurations have this name");
    if (configuration.num_devices < 1)
      report(rules::kDevice, here,
             "num_devices is " + std::to_string(configuration.num_devices) + ", not positive");
    else if (!configuration.devices.empty() &&
             configuration.devices.size() != static_cast<size_t>(configuration.num_devices))
      report(rules::kDevice, here,
             "num_devices is " + std::to_string(configuration.num_devices) + ", but " +
                 std::to_string(configuration.devices.size()) + " devices are named");
  }
}

void Checker::training() {
  if (model_.training.empty()) return;
  const Place place = Place::text("training_info");
  needs_ir(7, "training information", place);
  using Names = std::unordered_set<std::string_view>;
  const auto collect = [](const Graph* from, Names& names) {
    if (from == nullptr) return;
    for (const Value* value : from->initializers()) names.insert(value->name());
    for (const Value* value : from->sparse_initializers()) names.insert(value->name());
  };
  Names main;
  collect(model_.graph.get(), main);
  for (const TrainingInfo& info : model_.training) {
    Names variables = main;
    collect(info.algorithm.get(), variables);
    const auto bindings = [&](const std::vector<StringEntry>& entries, const Graph* from,
                              const char* name) {
      Names outputs, keys;
      if (from != nullptr)
        for (const GraphOutput& output : from->outputs())
          if (output.value != nullptr) outputs.insert(output.value->name());
      for (const StringEntry& entry : entries) {
        if (!variables.contains(entry.key))
          report(rules::kTraining, place,
                 std::string(name) + " binds " + quote_name(entry.key) +
                     ", which is no initialiser of the graph or the algorithm");
        if (!keys.insert(entry.key).second)
          report(rules::kTraining, place,
                 std::string(name) + " binds " + quote_name(entry.key) + " twice");
        if (!outputs.contains(entry.value))
          report(rules::kTraining, place,
                 std::string(name) + " takes " + quote_name(entry.value) +
                     ", which is no output of its graph");
      }
    };
    bindings(info.initialization_binding, info.initialization.get(), "initialization_binding");
    bindings(info.update_binding, info.algorithm.get(), "update_binding");
    if (info.initialization != nullptr) {
      const Place inner = Place::text("initialization", &place);
      graph(*info.initialization, nullptr, Unit(), inner);
    }
    if (info.algorithm != nullptr) {
      const Place inner = Place::text("algorithm", &place);
      borrowed_ = main;
      graph(*info.algorithm, nullptr, Unit(), inner);
      borrowed_.clear();
    }
  }
}

// ---- functions ----

void Checker::functions() {
  if (model_.functions.empty()) return;
  const Place place = Place::text("model");
  needs_ir(8, "model functions", place);
  if (model_.functions.size() > kMaxFunctions)
    report(rules::kTooManyFunctions, place,
           "the model has " + std::to_string(model_.functions.size()) + " functions, more than " +
               std::to_string(kMaxFunctions));
  std::unordered_set<std::string> seen;
  for (const auto& function : model_.functions) {
    if (!seen.insert(function_key(function->domain, function->name, function->overload)).second)
      report(rules::kDuplicateFunction, Place::named("function", function->name),
             "two functions have this name, domain and overload");
    this->function(*function);
  }
  calls();
}

void Checker::function(const Function& function) {
  const Place place = Place::named("function", function.name);
  if (function.name.empty()) report(rules::kFunctionName, place, "the function has no name");
  const Text domain = canonical_domain(function.domain);
  if (const OpDecl* op = find_operator(domain, function.name);
      op != nullptr && op->domain == domain && is_standard_domain(domain))
    report(rules::kShadowsOperator, place,
           "the function has the name of the standard operator " +
               (domain.empty() ? std::string() : std::string(domain) + ".") +
               std::string(function.name),
           "put it into a domain of its own");
  else if (domain.empty() && !present(function.domain))
    report(rules::kFunctionName, place, "the function has no domain");
  if (!function.overload.empty()) needs_ir(10, "overload", place);
  metadata(function.metadata, place);
  opset_imports(function.opset_imports, place);
  if (function.opset_imports.empty())
    report(rules::kOpsetImport, place, "the function imports no operator set");

  Unit unit;
  unit.function = &function;
  for (const Text name : function.attributes)
    if (!unit.attributes.insert(name).second)
      report(rules::kFunctionAttribute, place,
             "attribute " + quote_name(name) + " is declared twice");
  if (!function.attribute_protos.empty()) needs_ir(9, "defaults of function attributes", place);
  Scope scope;
  scope.unit = &unit;
  for (const Attribute& attribute : function.attribute_protos) {
    if (!unit.attributes.insert(attribute.name).second)
      report(rules::kFunctionAttribute, place,
             "attribute " + quote_name(attribute.name) + " is declared twice");
    const Place inner = Place::named("attribute", attribute.name, &place);
    this->attribute(attribute, scope, inner);
  }
  // A call sits in a graph that imports another version of the same set: each operator must mean
  // the same in both.
  for (const OpsetImport& import : function.opset_imports) {
    const int64_t outer = model_.opset(import.domain);
    if (outer == 0 || outer == import.version || !is_standard_domain(import.domain)) continue;
    for (const Node* node : function.body.nodes()) {
      if (canonical_domain(node->domain()) != canonical_domain(import.domain)) continue;
      const OpVersion* own =
          find_version(import.domain, node->op_type(),
                       static_cast<int>(std::clamp<int64_t>(import.version, 0, 9999)));
      const OpVersion* model = find_version(import.domain, node->op_type(),
                                            static_cast<int>(std::clamp<int64_t>(outer, 0, 9999)));
      if (own == nullptr || model == nullptr || own->since == model->since) continue;
      report(rules::kFunctionOpset, place,
             "the function uses " + std::string(node->op_type()) + "-" +
                 std::to_string(own->since) + " (operator set " + std::to_string(import.version) +
                 "), but in the model's set " + std::to_string(outer) + " it is " +
                 std::string(node->op_type()) + "-" + std::to_string(model->since),
             "bring function and model to one operator set");
      break;
    }
  }
  graph(function.body, nullptr, unit, place);
}

void Checker::calls() {
  // Depth-first with an explicit stack: a chain of 10,000 functions must not use up ours.
  std::unordered_map<const Function*, std::vector<const Function*>> callees;
  for (const auto& function : model_.functions) {
    std::vector<const Function*>& list = callees[function.get()];
    for_each_graph(const_cast<Graph&>(function->body), [&](Graph& graph) {
      for (const Node* node : graph.nodes())
        if (const Function* callee = find_function(*node)) list.push_back(callee);
    });
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  enum class State : uint8_t { kNew, kActive, kDone };
  std::unordered_map<const Function*, State> state;
  std::unordered_map<const Function*, int> height;
  struct Step {
    const Function* function;
    size_t next;
  };
  for (const auto& root : model_.functions) {
    if (state[root.get()] != State::kNew) continue;
    std::vector<Step> stack = {{root.get(), 0}};
    state[root.get()] = State::kActive;
    while (!stack.empty()) {
      Step& top = stack.back();
      const Function* current = top.function;
      const std::vector<const Function*>& list = callees[current];
      if (top.next == list.size()) {
        int deepest = 0;
        for (const Function* callee : list) deepest = std::max(deepest, height[callee]);
        height[current] = deepest + 1;
        if (deepest + 1 == kMaxCallDepth + 1)
          report(rules::kRecursion, Place::named("function", current->name),
                 "calls nest more than " + std::to_string(kMaxCallDepth) + " deep");
        state[current] = State::kDone;
        stack.pop_back();
        continue;
      }
      const Function* callee = list[top.next++];
      if (state[callee] == State::kActive) {
        report(rules::kRecursion, Place::named("function", current->name),
               "calls " + quote_name(callee->name) + ", which calls it in turn");
      } else if (state[callee] == State::kNew) {
        state[callee] = State::kActive;
        stack.push_back({callee, 0});
      }
    }
  }
}

}  // namespace tombolo
