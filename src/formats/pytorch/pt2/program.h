#pragma once

// Walks the JSON of an exported program and lowers every node.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/common/refusal.h"
#include "formats/pytorch/aten/context.h"
#include "formats/pytorch/pt2/archive.h"

namespace tombolo::pytorch {

class Program {
 public:
  Program(Model& model, const Pt2Archive& archive, std::string custom_domain)
      : model_(model), c_(model), archive_(archive), custom_domain_(std::move(custom_domain)) {}

  Status run();

 private:
  /// The names of one graph of the program: the main one, or a body.
  struct Scope {
    Json graph;
    std::unordered_map<std::string, Arg> names;
  };
  using Args = std::vector<Arg>;
  using Named = std::vector<std::pair<std::string, Arg>>;

  void survey(Json graph, int depth);
  Status bind_inputs(Scope& scope);
  Result<Ref> make_tensor(const std::string& name, const std::string& label);
  Status walk(Scope& scope);
  void set_metadata(Json node);
  Status lower_node(Scope& scope, Json node);
  Status keep_custom(Scope& scope, Json node, std::string_view target);
  Result<Arg> read_arg(Scope& scope, Json value, int depth = 0);
  Result<Arg> named_tensor(const Scope& scope, Json reference) const;
  Status bind_result(Scope& scope, Json output, Arg result, uint32_t first_id);
  Status bind_tensor(Scope& scope, Json reference, Arg result, uint32_t first_id);
  Status make_placeholders(Scope& scope, Json node);
  Arg sym_number(const Scope& scope, std::string_view name) const;
  SymShape meta_shape(const Scope& scope, std::string_view name) const;
  DType meta_type(const Scope& scope, std::string_view name) const;
  void bind_symbols(Value* value, const SymShape& shape);
  Status finish(Scope& scope);
  Status add_output(Value* value, const std::string& name);

  // higher_order.cpp
  Status lower_higher_order(Scope& scope, Json node, std::string_view target);
  Result<Args> call_body(Json graph, const Args& args);
  Status lower_cond(Scope& scope, Json node, Args args);
  Status lower_while(Scope& scope, Json node, Args args);
  Status lower_scan(Scope& scope, Json node, Args args, bool map);
  Status bind_all(Scope& scope, Json node, Args results, uint32_t first_id);

  Model& model_;
  AtenContext c_;
  const Pt2Archive& archive_;
  std::string custom_domain_;
  Refusals refusals_;
  std::vector<Json> bodies_;            ///< graphs that kGraph arguments name
  std::map<std::string, Ref> weights_;  ///< by identity of their bytes
  struct State {
    std::string name;
    Ref cell;
    Value* initial = nullptr;
  };
  std::vector<State> state_;                       ///< buffers, in the order of the signature
  std::unordered_map<std::string, Ref> by_input_;  ///< user inputs by placeholder
  int depth_ = 0;
};

}  // namespace tombolo::pytorch
