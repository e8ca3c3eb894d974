// Higher-order operators: bodies become If, Loop and Scan, or are inlined.

#include "formats/pytorch/pt2/program.h"

namespace tombolo::pytorch {
namespace {

/// Regions that only change what does not matter here: gradients, autocast, checkpoints, hints.
bool is_region(std::string_view name) {
  for (const char* known :
       {"wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap", "tag_activation_checkpoint",
        "wrap_activation_checkpoint", "hints_wrapper", "strict_mode", "invoke_subgraph",
        "inductor_compiled_code", "checkpoint"})
    if (name == known) return true;
  return false;
}

Value* value_of(AtenContext& c, const Arg& arg) {
  if (arg.is_tensor()) return c.read(arg.tensor);
  if (arg.kind == Arg::Kind::kInt) return c.int_value(arg.integer);
  if (arg.kind == Arg::Kind::kBool)
    return arg.computed ? arg.computed
                        : c.scalar(static_cast<double>(arg.integer.dim.constant().value_or(0)),
                                   DType::kBool);
  if (arg.kind == Arg::Kind::kFloat)
    return arg.computed ? arg.computed : c.scalar(arg.real, DType::kFloat64);
  return nullptr;
}

/// Flattens lists one level, as operands of bodies are.
std::vector<Arg> flat(const std::vector<Arg>& args) {
  std::vector<Arg> result;
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kList)
      result.insert(result.end(), arg.list.begin(), arg.list.end());
    else
      result.push_back(arg);
  }
  return result;
}

std::vector<Arg> flat(const Arg& arg) {
  return arg.kind == Arg::Kind::kList ? arg.list : Args{arg};
}

}  // namespace

Result<std::vector<Arg>> Program::call_body(Json graph, const Args& args) {
  Scope scope{graph, {}};
  const Json inputs = graph["inputs"];
  if (inputs.size() > args.size())
    return parse_error("a body takes " + std::to_string(inputs.size()) + " operands, not " +
                       std::to_string(args.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json input = inputs.at(i);
    std::string name(input["as_tensor"]["name"].string_or(""));
    if (name.empty()) name = std::string(input["as_sym_int"]["as_name"].string_or(""));
    if (!name.empty()) scope.names[name] = args[i];
  }
  const std::string label = c_.b.scope();
  CHECK_OK(walk(scope));
  c_.b.set_scope(label);
  const Json outputs = graph["outputs"];
  Args results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TRY(Arg value, read_arg(scope, outputs.at(i)));
    results.push_back(std::move(value));
  }
  return results;
}

Status Program::lower_higher_order(Scope& scope, Json node, std::string_view target) {
  target.remove_prefix(target.find("::") + 2);
  const Json inputs = node["inputs"];
  Args args;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TRY(Arg value, read_arg(scope, inputs.at(i)["arg"]));
    args.push_back(std::move(value));
  }
  const uint32_t first_id = model_.storage().id_count();
  if (is_region(target)) {
    // Settings come first, then the body, then its operands.
    size_t at = 0;
    while (at < args.size() && args[at].kind != Arg::Kind::kGraph) ++at;
    if (at == args.size()) return unsupported("a region without a body");
    size_t first = at + 1;
    if (target == "invoke_subgraph") {
      while (first < args.size() && args[first].kind == Arg::Kind::kString) ++first;
    }
    const Args operands = flat(Args(args.begin() + static_cast<ptrdiff_t>(first), args.end()));
    TRY(Args results, call_body(bodies_[args[at].index], operands));
    return bind_all(scope, node, std::move(results), first_id);
  }
  if (target == "with_effects") {
    // A call whose order matters, with a token that is passed on: there is one order here.
    if (args.size() < 2 || args[1].kind != Arg::Kind::kString)
      return unsupported("an effect of what is no operator");
    const std::string name = args[1].text;
    Args results;
    if (name != "aten::_linalg_check_errors") {
      Named named;
      Args plain;
      for (size_t i = 2; i < args.size(); ++i) {
        const std::string label(inputs.at(i)["name"].string_or(""));
        if (label.empty())
          plain.push_back(args[i]);
        else
          named.emplace_back(label, args[i]);
      }
      TRY(results, c_.call(name, std::move(plain), std::move(named)));
    }
    results.insert(results.begin(), args[0]);
    return bind_all(scope, node, std::move(results), first_id);
  }
  if (target == "cond") return lower_cond(scope, node, std::move(args));
  if (target == "while_loop") return lower_while(scope, node, std::move(args));
  if (target == "scan") return lower_scan(scope, node, std::move(args), false);
  if (target == "map_impl" || target == "map")
    return lower_scan(scope, node, std::move(args), true);
  return unsupported("the higher-order operator " + std::string(target));
}

Status Program::lower_cond(Scope& scope, Json node, Args args) {
  if (args.size() < 3 || args[1].kind != Arg::Kind::kGraph || args[2].kind != Arg::Kind::kGraph)
    return unsupported("cond without two bodies");
  const Args operands = args.size() > 3 ? flat(Args(args.begin() + 3, args.end())) : Args{};
  const uint32_t first_id = model_.storage().id_count();
  const Arg& predicate = args[0];
  if (predicate.kind == Arg::Kind::kBool && !predicate.computed && predicate.integer.is_number()) {
    const Arg& taken = args[predicate.integer.is(0) ? 2 : 1];
    TRY(Args results, call_body(bodies_[taken.index], operands));
    return bind_all(scope, node, std::move(results), first_id);
  }
  Value* condition = value_of(c_, predicate);
  if (!condition) return unsupported("cond on what is no tensor");
  condition = c_.cast(condition, DType::kBool);
  if (c_.rank(condition) != 0) condition = c_.reshape(condition, {});
  const std::vector<Value*> inputs = {condition};
  Node* made = c_.b.begin("If", inputs);
  std::vector<DType> types;
  for (const auto& [name, index] :
       {std::pair{"then_branch", size_t{1}}, std::pair{"else_branch", size_t{2}}}) {
    Graph& graph = made->set_graph(name);
    graph.name = name;
    c_.enter(graph);
    auto results = call_body(bodies_[args[index].index], operands);
    if (results) {
      types.clear();
      for (const Arg& result : *results) {
        Value* value = value_of(c_, result);
        if (!value) continue;
        // A branch returns values of its own.
        if (!value->producer() || &value->graph() != &graph || value->output_uses() != 0)
          value = c_.op("Identity", {value});
        types.push_back(result.is_tensor() ? result.tensor->dtype : c_.dtype(value));
        graph.add_output(value);
      }
    }
    c_.leave();
    if (!results) return results.error();
  }
  const std::vector<Value*> values = c_.b.finish(made, types.size());
  Args results;
  for (size_t i = 0; i < values.size(); ++i) results.emplace_back(c_.cell(values[i], types[i]));
  return bind_all(scope, node, std::move(results), first_id);
}

Status Program::lower_while(Scope& scope, Json node, Args args) {
  if (args.size() < 3) return unsupported("while_loop without operands");
  const Args carried = flat(args[2]), extra = args.size() > 3 ? flat(args[3]) : Args{};
  const uint32_t first_id = model_.storage().id_count();
  const auto with_extra = [&](Args list) {
    list.insert(list.end(), extra.begin(), extra.end());
    return list;
  };
  TRY(Args first, call_body(bodies_[args[0].index], with_extra(carried)));
  Value* condition = first.empty() ? nullptr : value_of(c_, first[0]);
  if (!condition) return unsupported("a condition that is no tensor");
  condition = c_.reshape(c_.cast(condition, DType::kBool), {});
  std::vector<Value*> inputs = {nullptr, condition};
  std::vector<DType> types;
  for (const Arg& arg : carried) {
    inputs.push_back(value_of(c_, arg));
    if (!inputs.back()) return unsupported("a loop that carries what is no tensor");
    types.push_back(arg.is_tensor() ? arg.tensor->dtype : c_.dtype(inputs.back()));
  }
  Node* made = c_.b.begin("Loop", inputs);
  Graph& graph = made->set_graph("body");
  graph.name = "body";
  c_.enter(graph);
  const auto build = [&]() -> Status {
    (void)c_.b.input("iteration", DType::kInt64, {});
    (void)c_.b.input("condition", DType::kBool, {});
    Args inner;
    for (size_t i = 0; i < carried.size(); ++i) {
      Value* outer = inputs[i + 2];
      Value* value = c_.b.input("carried", c_.dtype(outer), SymShape(c_.b.shape(outer)));
      if (carried[i].is_tensor()) {
        inner.emplace_back(c_.cell(value, types[i]));
      } else {
        inner.emplace_back(SymInt(SymDim(), value));
      }
    }
    TRY(Args results, call_body(bodies_[args[1].index], with_extra(inner)));
    TRY(Args again, call_body(bodies_[args[0].index], with_extra(results)));
    if (again.empty() || results.size() < carried.size())
      return unsupported("a body without results");
    Value* go_on = value_of(c_, again[0]);
    if (!go_on) return unsupported("a condition that is no tensor");
    graph.add_output(c_.op("Identity", {c_.reshape(c_.cast(go_on, DType::kBool), {})}));
    for (size_t i = 0; i < carried.size(); ++i) {
      Value* value = value_of(c_, results[i]);
      if (!value) return unsupported("a loop that carries what is no tensor");
      if (!value->producer() || &value->graph() != &graph || value->output_uses() != 0)
        value = c_.op("Identity", {value});
      graph.add_output(value);
    }
    return ok();
  };
  const Status built = build();
  c_.leave();
  CHECK_OK(built);
  const std::vector<Value*> values = c_.b.finish(made, carried.size());
  Args results;
  for (size_t i = 0; i < values.size(); ++i) {
    c_.b.set_type(values[i], c_.dtype(inputs[i + 2]), SymShape(c_.b.shape(inputs[i + 2])));
    if (carried[i].is_tensor())
      results.emplace_back(c_.cell(values[i], types[i]));
    else
      results.emplace_back(SymInt(SymDim(), values[i]));
  }
  return bind_all(scope, node, std::move(results), first_id);
}

/// scan(body, init, xs, additional) and map(body, xs, additional): along the first axis.
Status Program::lower_scan(Scope& scope, Json node, Args args, bool map) {
  if (args.size() < 2) return unsupported("scan without operands");
  const Args init = map ? Args{} : flat(args[1]);
  const size_t at = map ? 1 : 2;
  if (args.size() <= at) return unsupported("scan without operands");
  const Args xs = flat(args[at]);
  Args extra;
  for (size_t i = at + 1; i < args.size(); ++i) {
    if (args[i].kind == Arg::Kind::kList || args[i].is_tensor()) {
      const Args more = flat(args[i]);
      extra.insert(extra.end(), more.begin(), more.end());
    } else if (args[i].kind == Arg::Kind::kBool && !args[i].integer.is(0)) {
      return unsupported("a scan that runs backwards");
    }
  }
  const uint32_t first_id = model_.storage().id_count();
  std::vector<Value*> inputs;
  for (const Args* list : {&init, &xs})
    for (const Arg& arg : *list) {
      inputs.push_back(value_of(c_, arg));
      if (!inputs.back()) return unsupported("a scan over what is no tensor");
    }
  Node* made = c_.b.begin("Scan", inputs, {{"num_scan_inputs", static_cast<int64_t>(xs.size())}});
  Graph& graph = made->set_graph("body");
  graph.name = "body";
  std::vector<DType> types;
  std::vector<SymShape> shapes;
  const SymDim steps = xs.empty() ? SymDim() : c_.b.dim(inputs[init.size()], 0);
  c_.enter(graph);
  const auto build = [&]() -> Status {
    Args inner;
    for (size_t i = 0; i < inputs.size(); ++i) {
      SymShape shape = c_.b.shape(inputs[i]);
      if (i >= init.size() && !shape.empty()) shape.erase(shape.begin());
      const Arg& outer = i < init.size() ? init[i] : xs[i - init.size()];
      inner.emplace_back(
          c_.cell(c_.b.input(i < init.size() ? "carried" : "item", c_.dtype(inputs[i]), shape),
                  outer.is_tensor() ? outer.tensor->dtype : DType::kUndefined));
    }
    inner.insert(inner.end(), extra.begin(), extra.end());
    TRY(Args results, call_body(bodies_[args[0].index], inner));
    for (const Arg& result : results) {
      Value* value = value_of(c_, result);
      if (!value) return unsupported("a body whose result is no tensor");
      if (!value->producer() || &value->graph() != &graph || value->output_uses() != 0)
        value = c_.op("Identity", {value});
      SymShape shape = c_.b.shape(value);
      if (types.size() >= init.size()) shape.insert(shape.begin(), steps);
      types.push_back(result.is_tensor() ? result.tensor->dtype : c_.dtype(value));
      shapes.push_back(std::move(shape));
      graph.add_output(value);
    }
    return ok();
  };
  const Status built = build();
  c_.leave();
  CHECK_OK(built);
  const std::vector<Value*> values = c_.b.finish(made, types.size());
  Args results;
  for (size_t i = 0; i < values.size(); ++i) {
    c_.b.set_type(values[i], AtenContext::real_of(types[i]), shapes[i]);
    results.emplace_back(c_.cell(values[i], types[i]));
  }
  return bind_all(scope, node, std::move(results), first_id);
}

}  // namespace tombolo::pytorch
