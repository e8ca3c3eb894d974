#pragma once

// The parts of the checker; private to src/analysis.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/checker.h"
#include "analysis/place.h"
#include "analysis/rules.h"
#include "ops/registry.h"

namespace tombolo {

class Checker {
 public:
  Checker(const Model& model, const CheckOptions& options, Diagnostics& diagnostics)
      : model_(model), options_(options), diagnostics_(diagnostics) {}
  void run();

 private:
  /// The function (or main graph) that is being checked.
  struct Unit {
    const Function* function = nullptr;
    std::unordered_set<std::string_view> attributes;  ///< declared by the function
  };
  /// A graph and those around it.
  struct Scope {
    const Graph* graph = nullptr;
    const Scope* outer = nullptr;
    const Unit* unit = nullptr;
    int depth = 0;
    std::vector<std::string_view> names;  ///< sorted: what the graph defines
  };

  void report(const Rule& rule, const Place& place, std::string message, std::string help = {}) {
    Rule lowered = rule;
    if (advisory_) lowered.severity = Severity::kWarning;
    tombolo::report(diagnostics_, lowered, diagnostics_.full() ? std::string() : to_string(place),
                    std::move(message), std::move(help));
  }

  // check_model.cpp
  void opset_imports(const std::vector<OpsetImport>& imports, const Place& place);
  void metadata(const std::vector<StringEntry>& entries, const Place& place);
  void functions();
  void function(const Function& function);
  void calls();
  void training();
  void configurations();
  void needs_ir(int64_t ir, const char* feature, const Place& place);
  void element_type_ir(DType dtype, const Place& place);

  // check_graph.cpp
  void graph(const Graph& graph, const Scope* outer, const Unit& unit, const Place& place);
  void names(const Graph& graph, Scope& scope, const Place& place);
  void uses(const Node& node, const Place& place);
  void ports(const Graph& graph, const Scope& scope, const Place& place);
  void annotations(const Graph& graph, const Scope& scope, const Place& place);
  void type(const Type* type, bool complete, const Place& place, int depth = 0);
  bool is_defined(const Value& value) const {
    return value.id() < defined_.size() && defined_[value.id()];
  }
  bool is_borrowed(const Value& value) const {
    return value.is_undefined() && borrowed_.contains(value.name());
  }
  void define(const Value& value) {
    if (value.id() >= defined_.size()) defined_.resize(value.id() + 1 + value.id() / 2);
    defined_[value.id()] = true;
  }

  // check_node.cpp
  void node(const Node& node, const Scope& scope, const Place& place);
  void operator_of(const Node& node, const Scope& scope, const Place& place);
  void call(const Node& node, const Function& function, const Place& place);
  void arity(const Node& node, const OpVersion& version, const Place& place);
  /// arity() and attributes(), as warnings.
  void advisory(const Node& node, const OpVersion& version, const Place& place);
  void attributes(const Node& node, const OpVersion& version, const Place& place);
  void attribute(const Attribute& attribute, const Scope& scope, const Place& place);
  void attribute_text(const Node& node, const Attribute& attribute, const Place& place);
  void devices(const Node& node, const Place& place);
  int64_t opset(Text domain, const Unit& unit) const;
  const Function* find_function(const Node& node) const;
  static std::string function_key(Text domain, Text name, Text overload);

  // check_tensor.cpp
  void constant(const Constant& constant, const Place& place);
  void external(const Constant& constant, uint64_t bytes, const Place& place);
  void inline_data(const Constant& constant, uint64_t count, const Place& place);
  void sparse(const SparseConstant& sparse, const Place& place);

  const Model& model_;
  const CheckOptions& options_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, const Function*> functions_;
  std::unordered_set<std::string_view> function_domains_;
  /// Names of another graph that the one at hand may use: a training algorithm sees the
  /// initialisers of the main graph.
  std::unordered_set<std::string_view> borrowed_;
  bool advisory_ = false;      ///< report errors as warnings
  std::vector<bool> defined_;  ///< by Value::id: seen in the order of the file
};

}  // namespace tombolo
