#include "formats/pytorch/pt2/program.h"

#include <algorithm>
#include <cmath>

#include "formats/pytorch/pt2/cleanup.h"
#include "formats/pytorch/pt2/symbolic.h"

namespace tombolo::pytorch {
namespace {

constexpr int kMaxDepth = 64;

/// "torch.ops.aten.conv2d.default" -> "aten::conv2d"; "_operator.mul" -> "_operator::mul".
std::string operator_name(std::string_view target) {
  if (target.starts_with("torch.ops."))
    target.remove_prefix(10);
  else if (target.starts_with("torch._ops."))
    target.remove_prefix(11);
  if (target.starts_with("<built-in function ")) {
    target.remove_prefix(19);
    if (target.ends_with(">")) target.remove_suffix(1);
    return "_operator::" + std::string(target);
  }
  const size_t dot = target.find('.');
  if (dot == target.npos) return std::string(target);
  std::string name =
      std::string(target.substr(0, dot)) + "::" + std::string(target.substr(dot + 1));
  if (name.ends_with(".default")) name.resize(name.size() - 8);
  return name;
}

/// Python's own functions of numbers; their arguments have the names that Python's source gives
/// them.
bool is_python(std::string_view name) {
  return name.starts_with("_operator::") || name.starts_with("torch::") ||
         name.starts_with("math::") || name.starts_with("builtins::");
}

bool is_higher_order(std::string_view name) { return name.starts_with("higher_order::"); }

/// The one member of a union that is set: {"as_int": 3}, or with every other member null.
std::pair<std::string_view, Json> member_of(Json value) {
  for (size_t i = 0; i < value.size(); ++i)
    if (!value.member(i).is_null()) return {value.key(i), value.member(i)};
  return {"as_none", Json()};
}

/// Old layouts wrap what a tensor is like: {"meta": {...}}.
Json unwrapped(Json meta) { return meta["meta"].is_object() ? meta["meta"] : meta; }

}  // namespace

Status Program::run() {
  const Json root = archive_.program(), module = root["graph_module"];
  Scope scope{module["graph"], {}};
  if (!scope.graph.is_object()) return parse_error("the program has no graph");
  survey(scope.graph, 0);
  if (!refusals_.empty()) return refusals_.error();
  CHECK_OK(bind_inputs(scope));
  CHECK_OK(walk(scope));
  if (!refusals_.empty()) return refusals_.error();
  c_.b.set_scope("");
  c_.b.set_metadata({});
  CHECK_OK(finish(scope));
  return clean_up(model_);
}

/// Gives a tensor that a tensor subclass is made of.
constexpr std::string_view kSubclassPart = "export::access_subclass_inner_tensor";

namespace {

/// File and line of the user's source, from the trace of the stack that a node keeps.
std::string source_of(Json node) {
  const std::string_view trace = node["metadata"]["stack_trace"].string_or("");
  std::string source;
  for (size_t at = trace.rfind("File \""); at != trace.npos;
       at = at == 0 ? trace.npos : trace.rfind("File \"", at - 1)) {
    const size_t close = trace.find('"', at + 6);
    const size_t line = trace.find("line ", close == trace.npos ? at : close);
    if (close == trace.npos || line == trace.npos) break;
    const std::string_view path = trace.substr(at + 6, close - at - 6);
    const size_t end = trace.find_first_not_of("0123456789", line + 5);
    const std::string found =
        std::string(path) + ":" + std::string(trace.substr(line + 5, end - line - 5));
    if (source.empty()) source = found;
    // The user's own line says more than the library's.
    if (path.find("/torch/") == path.npos) return found;
  }
  return source;
}

/// A node's name and where it stands, for messages.
std::string label_of(Json node) {
  std::string label(node["name"].string_or(""));
  if (label.empty()) label = std::string(node["outputs"].at(0)["as_tensor"]["name"].string_or(""));
  return label;
}
std::string place_of(Json node) {
  const std::string source = source_of(node);
  return label_of(node) + (source.empty() ? "" : " at " + source);
}

}  // namespace

/// Reports every operator that has no handler, here and in bodies.
void Program::survey(Json graph, int depth) {
  if (depth > kMaxDepth) return;
  const Json nodes = graph["nodes"];
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Json node = nodes.at(i);
    const std::string name = operator_name(node["target"].string_or(""));
    const Json inputs = node["inputs"];
    for (size_t k = 0; k < inputs.size(); ++k)
      if (const Json body = inputs.at(k)["arg"]["as_graph"]; body.is_object())
        survey(body["graph"], depth + 1);
    if (is_higher_order(name) || AtenContext::knows(name) || name.starts_with(kSubclassPart))
      continue;
    const bool custom = !name.starts_with("aten::") && !name.starts_with("prims::") &&
                        !name.starts_with("_operator::");
    if (custom && !custom_domain_.empty()) continue;
    refusals_.add(
        (custom ? "custom operator " : "operator ") + name, place_of(node), "",
        custom ? "keep it as a call to a domain of its own with --custom-op-domain NAME" : "");
  }
}

DType Program::meta_type(const Scope& scope, std::string_view name) const {
  const Json meta = unwrapped(scope.graph["tensor_values"][name]);
  return dtype_from_export(meta["dtype"].int_or(0)).value_or(DType::kUndefined);
}

SymShape Program::meta_shape(const Scope& scope, std::string_view name) const {
  const Json sizes = unwrapped(scope.graph["tensor_values"][name])["sizes"];
  SymShape shape;
  for (size_t i = 0; i < sizes.size(); ++i) shape.push_back(read_sym_int(sizes.at(i)));
  if (is_complex(meta_type(scope, name))) shape.emplace_back(2);
  return shape;
}

void Program::bind_symbols(Value* value, const SymShape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_expression()) continue;
    const std::string text = shape[i].to_string();
    if (text.find_first_of(" +-*/%(") == text.npos)
      c_.bind_symbol(text, value, static_cast<int64_t>(i));
  }
}

/// A parameter, buffer or constant of the archive; `label` names it in the model.
Result<Ref> Program::make_tensor(const std::string& name, const std::string& label) {
  const Tensor* tensor = archive_.find(name);
  if (!tensor) return parse_error("the archive has no data for \"" + name + "\"");
  const std::string key = archive_.identity(name);
  if (const auto found = weights_.find(key); !key.empty() && found != weights_.end())
    return found->second;
  Value* value = c_.b.weight(*tensor, label);
  Ref cell = c_.cell(value);
  if (!key.empty()) weights_[key] = cell;
  return cell;
}

Status Program::bind_inputs(Scope& scope) {
  const Json module = archive_.program()["graph_module"], signature = module["signature"];
  const Json inputs = scope.graph["inputs"];
  struct Kind {
    enum { kUser, kWeight, kBuffer, kConstant, kNumber, kSkip } what = kUser;
    std::string source;
    Json value;
  };
  std::unordered_map<std::string, Kind> kinds;
  const Json specs = signature["input_specs"];
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto [kind, spec] = member_of(specs.at(i));
    std::string name(spec["arg"]["name"].string_or(""));
    if (kind == "parameter")
      kinds[name] = {Kind::kWeight, std::string(spec["parameter_name"].string_or("")), {}};
    else if (kind == "buffer")
      kinds[name] = {Kind::kBuffer, std::string(spec["buffer_name"].string_or("")), {}};
    else if (kind == "tensor_constant")
      kinds[name] = {Kind::kConstant, std::string(spec["tensor_constant_name"].string_or("")), {}};
    else if (kind == "constant_input")
      kinds[std::string(spec["name"].string_or(""))] = {Kind::kNumber, "", spec["value"]};
    else if (kind != "user_input")
      kinds[name] = {Kind::kSkip, "", {}};
  }
  const Json parameters = signature["inputs_to_parameters"],
             buffers = signature["inputs_to_buffers"];
  for (size_t i = 0; i < parameters.size(); ++i)
    kinds[std::string(parameters.key(i))] = {
        Kind::kWeight, std::string(parameters.member(i).string_or("")), {}};
  for (size_t i = 0; i < buffers.size(); ++i)
    kinds[std::string(buffers.key(i))] = {
        Kind::kBuffer, std::string(buffers.member(i).string_or("")), {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto [member, reference] = member_of(inputs.at(i));
    const std::string name(member == "as_tensor" ? reference["name"].string_or("")
                                                 : reference["as_name"].string_or(""));
    const auto found = kinds.find(name);
    const Kind kind = found == kinds.end() ? Kind{} : found->second;
    if (member != "as_tensor") {
      if (member == "as_sym_int" && !name.empty()) {
        // An integer that the caller gives: a 0-d input.
        Value* value = c_.b.input(name, DType::kInt64, {});
        const Arg number = sym_number(scope, name);
        if (number.integer.dim.is_expression())
          c_.bind_symbol(number.integer.dim.to_string(), value);
        scope.names[name] = Arg(SymInt(number.integer.dim, value));
      }
      continue;  // numbers, strings and None that the program was exported with
    }
    switch (kind.what) {
      case Kind::kWeight:
      case Kind::kBuffer:
      case Kind::kConstant: {
        std::string label = kind.source;
        if (archive_.is_subclass(label)) {
          Arg parts;
          parts.kind = Arg::Kind::kOther;
          parts.text = label;
          scope.names[name] = std::move(parts);
          break;
        }
        const Tensor* data = archive_.find(label);
        if (!data) return parse_error("the archive has no data for \"" + label + "\"");
        Ref cell;
        if (kind.what == Kind::kConstant && data->size() <= 4096) {
          cell = c_.cell(c_.b.constant(*data, label));
        } else {
          TRY(cell, make_tensor(kind.source, label));
        }
        const DType type = meta_type(scope, name), held = c_.dtype(cell->value);
        const bool pairs = !is_complex(type) || c_.b.dim(cell->value, -1).constant() == 2;
        if (type != DType::kUndefined && (AtenContext::real_of(type) != held || !pairs))
          return parse_error("\"" + label + "\" is said to be " + torch_name(type) +
                             ", its data is " + torch_name(held));
        cell->dtype = type;
        if (kind.what == Kind::kBuffer) state_.push_back({kind.source, cell, cell->value});
        scope.names[name] = Arg(cell);
        break;
      }
      case Kind::kNumber:
        break;
      case Kind::kSkip:
        scope.names[name].kind = Arg::Kind::kOther;  // tokens, which only order effects
        break;
      case Kind::kUser: {
        const SymShape shape = meta_shape(scope, name);
        const DType type = meta_type(scope, name);
        if (type == DType::kUndefined)
          return unsupported("input \"" + name + "\" has an element type that ONNX lacks");
        Value* value = c_.b.input(name, AtenContext::real_of(type), shape);
        Ref cell = c_.cell(value, type);
        by_input_[name] = cell;
        scope.names[name] = Arg(cell);
        break;
      }
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name(inputs.at(i)["as_tensor"]["name"].string_or(""));
    if (const auto found = by_input_.find(name); found != by_input_.end())
      bind_symbols(found->second->value, meta_shape(scope, name));
  }
  return ok();
}

Arg Program::sym_number(const Scope& scope, std::string_view name) const {
  for (const char* table : {"sym_int_values", "sym_float_values", "sym_bool_values"}) {
    const Json value = scope.graph[table][name];
    if (!value.exists()) continue;
    return Arg(SymInt(read_sym_int(value)));
  }
  return Arg(SymInt());
}

Result<Arg> Program::named_tensor(const Scope& scope, Json reference) const {
  const std::string name(reference["name"].string_or(""));
  const auto found = scope.names.find(name);
  if (found == scope.names.end()) return parse_error("nothing defines \"" + name + "\"");
  return found->second;
}

Result<Arg> Program::read_arg(Scope& scope, Json value, int depth) {
  if (depth > kMaxDepth) return parse_error("arguments nested too deeply");
  const auto named = member_of(value);
  const auto& kind = named.first;  // clang 14 lets no lambda use a structured binding
  const Json member = named.second;
  const auto symbolic = [&](Json number) -> Result<Arg> {
    if (const Json name = number["as_name"]; name.is_string()) {
      const auto found = scope.names.find(std::string(name.string_or("")));
      if (found != scope.names.end()) return found->second;
      return sym_number(scope, name.string_or(""));
    }
    if (const Json flag = number["as_bool"]; flag.is_bool()) return Arg(flag.bool_or(false));
    if (const Json real = number["as_float"]; real.is_number()) return Arg(real.double_or(0));
    return Arg(number["as_int"].int_or(0));
  };
  const auto list = [&](auto&& read) -> Result<Arg> {
    Args items;
    for (size_t i = 0; i < member.size(); ++i) {
      TRY(Arg item, read(member.at(i)));
      items.push_back(std::move(item));
    }
    return Arg(std::move(items));
  };
  const auto real_of = [](Json number) {
    // Infinite and undefined numbers are written as strings.
    if (number.is_string()) {
      const std::string_view text = number.string_or("");
      if (text == "Infinity" || text == "inf") return Arg(INFINITY);
      if (text == "-Infinity" || text == "-inf") return Arg(-INFINITY);
      return Arg(static_cast<double>(NAN));
    }
    return Arg(number.double_or(0));
  };
  if (kind == "as_none") return Arg();
  if (kind == "as_tensor") return named_tensor(scope, member);
  if (kind == "as_tensors" || kind == "as_nested_tensors")
    return list([&](Json item) -> Result<Arg> {
      if (!item.is_array()) return named_tensor(scope, item);
      Args inner;
      for (size_t i = 0; i < item.size(); ++i) {
        TRY(Arg one, named_tensor(scope, item.at(i)));
        inner.push_back(std::move(one));
      }
      return Arg(std::move(inner));
    });
  if (kind == "as_optional_tensor") return read_arg(scope, member, depth + 1);
  if (kind == "as_optional_tensors")
    return list([&](Json item) { return read_arg(scope, item, depth + 1); });
  if (kind == "as_int") return Arg(member.int_or(0));
  if (kind == "as_ints") return list([&](Json item) -> Result<Arg> { return Arg(item.int_or(0)); });
  if (kind == "as_int_lists")
    return list([&](Json item) -> Result<Arg> {
      return Arg::ints(item.as_ints().value_or(std::vector<int64_t>{}));
    });
  if (kind == "as_float") return real_of(member);
  if (kind == "as_floats") return list([&](Json item) -> Result<Arg> { return real_of(item); });
  if (kind == "as_bool") return Arg(member.bool_or(false));
  if (kind == "as_bools")
    return list([&](Json item) -> Result<Arg> { return Arg(item.bool_or(false)); });
  if (kind == "as_operator") return Arg(operator_name(member.string_or("")));
  if (kind == "as_string") return Arg(std::string(member.string_or("")));
  if (kind == "as_strings")
    return list([&](Json item) -> Result<Arg> { return Arg(std::string(item.string_or(""))); });
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float")
    return symbolic(member);
  if (kind == "as_sym_ints" || kind == "as_sym_bools" || kind == "as_sym_floats")
    return list([&](Json item) { return symbolic(item); });
  if (kind == "as_scalar_type") {
    const auto type = dtype_from_export(member.int_or(0));
    if (!type) return unsupported("an element type that ONNX lacks");
    return Arg(*type);
  }
  if (kind == "as_complex")
    return Arg::complex(member["real"].double_or(0), member["imag"].double_or(0));
  if (kind == "as_graph") {
    Arg arg;
    arg.kind = Arg::Kind::kGraph;
    arg.index = bodies_.size();
    bodies_.push_back(member["graph"]);
    return arg;
  }
  Arg other;
  other.kind = Arg::Kind::kOther;
  return other;
}

/// Where a node comes from: the module's path and the line of the user's source.
void Program::set_metadata(Json node) {
  std::vector<StringEntry> entries;
  const std::string_view stack = node["metadata"]["nn_module_stack"].string_or("");
  if (!stack.empty()) {
    // "key,path,class;key,path,class": the innermost is the last.
    std::string_view last = stack.substr(stack.rfind(';') + 1);
    const size_t first = last.find(','), second = last.rfind(',');
    if (first != last.npos && second > first) {
      std::string_view path = last.substr(first + 1, second - first - 1);
      for (const std::string_view lead : {"L['self'].", "L__self__."})
        if (path.starts_with(lead)) path.remove_prefix(lead.size());
      if (!path.empty() && path != "L['self']")
        entries.push_back({"module", model_.storage().copy(path)});
    }
  }
  const std::string source = source_of(node);
  if (!source.empty()) entries.push_back({"source", model_.storage().copy(source)});
  c_.b.set_metadata(std::move(entries));
}

Status Program::walk(Scope& scope) {
  if (++depth_ > kMaxDepth) return parse_error("graphs nested too deeply");
  const Json nodes = scope.graph["nodes"];
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Json node = nodes.at(i);
    const std::string label = label_of(node);
    c_.b.set_scope(label);
    set_metadata(node);
    if (auto done = lower_node(scope, node); !done) {
      const Error& error = done.error();
      if (error.kind != ErrorKind::kUnsupported)
        return std::move(done).at("node \"" + label + "\" (" +
                                  operator_name(node["target"].string_or("")) + ")");
      refusals_.add("operator " + operator_name(node["target"].string_or("")), place_of(node),
                    error.message, error.help);
      CHECK_OK(make_placeholders(scope, node));
      (void)c_.take_status();
    }
  }
  --depth_;
  return ok();
}

/// After a refusal: values of the right types, so that the rest can be looked at, too.
Status Program::make_placeholders(Scope& scope, Json node) {
  const Json outputs = node["outputs"];
  const auto define = [&](Json reference) {
    const std::string name(reference["name"].string_or(""));
    Value* value = model_.graph->new_value(name);
    c_.b.set_type(value, AtenContext::real_of(meta_type(scope, name)), meta_shape(scope, name));
    scope.names[name] = Arg(c_.cell(value, meta_type(scope, name)));
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, member] = member_of(outputs.at(i));
    if (kind == "as_tensor") define(member);
    if (kind == "as_tensors")
      for (size_t k = 0; k < member.size(); ++k) define(member.at(k));
    if (kind.starts_with("as_sym"))
      scope.names[std::string(member["as_name"].string_or(""))] = Arg(SymInt(1));
  }
  return ok();
}

Status Program::bind_tensor(Scope& scope, Json reference, Arg result, uint32_t first_id) {
  const std::string name(reference["name"].string_or(""));
  if (result.kind == Arg::Kind::kOther) {
    scope.names[name] = std::move(result);
    return ok();
  }
  if (!result.is_tensor()) {
    // A number where the program has a 0-d tensor.
    if (!result.is_number()) return unsupported("the handler gave no tensor for \"" + name + "\"");
    result = Arg(c_.cell(c_.operand_of(result, meta_type(scope, name)), meta_type(scope, name)));
  }
  const Json known = scope.graph["tensor_values"][name];
  if (known.exists()) {
    const DType type = meta_type(scope, name);
    SymShape shape = meta_shape(scope, name);
    Value* value = c_.read(result.tensor);
    if (c_.b.dtype(value) != AtenContext::real_of(type) && type != DType::kUndefined) {
      value = c_.cast(value, AtenContext::real_of(type));
      result = Arg(c_.cell(value, type));
    }
    result.tensor->dtype = type;
    if (c_.has_rank(value) && c_.b.rank(value) != static_cast<int64_t>(shape.size()))
      return unsupported("the result \"" + name + "\" has " + std::to_string(c_.b.rank(value)) +
                         " axes in place of " + std::to_string(shape.size()));
    for (size_t i = 0; i < shape.size(); ++i) {
      const SymDim found = c_.b.dim(value, static_cast<int64_t>(i));
      if (found.is_value() && shape[i].is_value() && !found.equals(shape[i]))
        return unsupported("axis " + std::to_string(i) + " of the result \"" + name +
                           "\" has length " + found.to_string() + " in place of " +
                           shape[i].to_string());
      if (shape[i].is_unknown()) shape[i] = found;
    }
    if (value->producer()) c_.b.set_type(value, c_.b.dtype(value), shape);
    bind_symbols(value, shape);
    // Strides tell whether a view of it is possible.
    const Json sizes = unwrapped(known)["sizes"], strides = unwrapped(known)["strides"];
    result.tensor->layout = CellLayout::kUnknown;
    if (sizes.size() == strides.size()) {
      SymShape lengths, steps;
      for (size_t i = 0; i < sizes.size(); ++i) {
        lengths.push_back(read_sym_int(sizes.at(i)));
        steps.push_back(read_sym_int(strides.at(i)));
      }
      AtenContext::set_strides(*result.tensor, lengths, std::move(steps));
    }
    if (value->producer() && value->id() >= first_id && value->name() != name)
      c_.b.rename(value, name);
  }
  scope.names[name] = std::move(result);
  return ok();
}

Status Program::bind_result(Scope& scope, Json output, Arg result, uint32_t first_id) {
  const auto [kind, member] = member_of(output);
  if (kind == "as_tensor") return bind_tensor(scope, member, std::move(result), first_id);
  if (kind == "as_optional_tensor") return bind_result(scope, member, std::move(result), first_id);
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    if (result.kind != Arg::Kind::kList || result.list.size() < member.size())
      return unsupported("the handler gave no list of " + std::to_string(member.size()) +
                         " tensors");
    for (size_t i = 0; i < member.size(); ++i) {
      if (kind == "as_tensors")
        CHECK_OK(bind_tensor(scope, member.at(i), std::move(result.list[i]), first_id));
      else
        CHECK_OK(bind_result(scope, member.at(i), std::move(result.list[i]), first_id));
    }
    return ok();
  }
  if (kind.starts_with("as_sym")) {
    const std::string name(member["as_name"].string_or(""));
    if (name.empty()) return ok();
    Arg known = sym_number(scope, name);
    if (result.is_tensor())
      result = Arg(SymInt(SymDim(), c_.cast(c_.read(result.tensor), DType::kInt64)));
    if (kind == "as_sym_int" && result.kind == Arg::Kind::kInt) {
      const SymDim& dim = known.integer.dim;
      if (dim.is_expression()) {
        const std::string text = dim.to_string();
        if (result.integer.value && text.find_first_of(" +-*/%(") == text.npos)
          c_.bind_symbol(text, result.integer.value);
      }
      if (!dim.is_unknown())
        result.integer = SymInt(dim, dim.is_value() ? nullptr : result.integer.value);
    }
    scope.names[name] = std::move(result);
  }
  return ok();
}

Status Program::bind_all(Scope& scope, Json node, Args results, uint32_t first_id) {
  const Json outputs = node["outputs"];
  // Several results of one type are one list in the JSON where the operator returns a list.
  if (outputs.size() == 1 && outputs.at(0)["as_tensors"].is_array() &&
      (results.size() != 1 || results[0].kind != Arg::Kind::kList)) {
    Arg all(std::move(results));
    results.clear();
    results.push_back(std::move(all));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, member] = member_of(outputs.at(i));
    if (kind == "as_none") continue;
    if (i >= results.size())
      return unsupported("the handler gave " + std::to_string(results.size()) + " of " +
                         std::to_string(outputs.size()) + " results");
    if (results[i].is_none()) continue;  // not wanted by anyone, or refused where it is used
    CHECK_OK(bind_result(scope, outputs.at(i), std::move(results[i]), first_id));
  }
  return ok();
}

Status Program::lower_node(Scope& scope, Json node) {
  const std::string target = operator_name(node["target"].string_or(""));
  const Json inputs = node["inputs"];
  if (is_higher_order(target)) return lower_higher_order(scope, node, target);
  if (target.starts_with(kSubclassPart)) {
    TRY(const Arg whole, read_arg(scope, inputs.at(0)["arg"]));
    TRY(const Arg part, read_arg(scope, inputs.at(1)["arg"]));
    if (whole.kind != Arg::Kind::kOther || !archive_.is_subclass(whole.text))
      return unsupported("a part of a tensor that is no weight of a subclass");
    const std::string label = whole.text + "." + part.text;
    const uint32_t first_part = model_.storage().id_count();
    TRY(Ref cell, make_tensor(label, label));
    return bind_all(scope, node, {Arg(cell)}, first_part);
  }
  if (!AtenContext::knows(target)) return keep_custom(scope, node, target);
  Args args;
  Named named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json input = inputs.at(i);
    TRY(Arg value, read_arg(scope, input["arg"]));
    const std::string name(input["name"].string_or(""));
    if (name.empty() || is_python(target))
      args.push_back(std::move(value));
    else
      named.emplace_back(name, std::move(value));
  }
  const uint32_t first_id = model_.storage().id_count();
  auto results = c_.call(target, std::move(args), std::move(named));
  if (!results && is_python(target)) {
    // A number that is not known (the offset of a storage) may be for an assertion alone: whoever
    // else takes it is refused.
    Arg unknown;
    unknown.kind = Arg::Kind::kOther;
    return bind_all(scope, node, {unknown}, first_id);
  }
  if (!results) return results.error();
  return bind_all(scope, node, *std::move(results), first_id);
}

/// A call of the user's own operator, as a node of the domain that was asked for.
Status Program::keep_custom(Scope& scope, Json node, std::string_view target) {
  const Json inputs = node["inputs"], outputs = node["outputs"];
  Node* made = c_.b.graph().add_node(target.substr(target.find("::") + 2), custom_domain_);
  made->set_name(c_.b.fresh_name(c_.b.scope()));
  if (model_.opset(custom_domain_) == 0) model_.set_opset(model_.storage().copy(custom_domain_), 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    TRY(Arg value, read_arg(scope, inputs.at(i)["arg"]));
    const std::string name(inputs.at(i)["name"].string_or(""));
    const auto add = [&](const Arg& one) {
      made->add_input(one.is_tensor() ? c_.read(one.tensor) : nullptr);
    };
    if (value.is_tensor()) {
      add(value);
    } else if (value.kind == Arg::Kind::kList && !value.list.empty() &&
               value.list.front().is_tensor()) {
      for (const Arg& one : value.list) add(one);
    } else if ((value.kind == Arg::Kind::kInt || value.kind == Arg::Kind::kBool) &&
               value.integer.is_number()) {
      made->set_int(model_.storage().copy(name), value.integer.dim.value());
    } else if (value.kind == Arg::Kind::kFloat) {
      made->set_float(model_.storage().copy(name), static_cast<float>(value.real));
    } else if (value.kind == Arg::Kind::kString) {
      made->set_string(model_.storage().copy(name), value.text);
    } else if (value.kind == Arg::Kind::kList) {
      std::vector<int64_t> numbers;
      for (const Arg& one : value.list) {
        if (one.kind != Arg::Kind::kInt || !one.integer.is_number())
          return unsupported("the argument \"" + name + "\" of a custom operator");
        numbers.push_back(one.integer.dim.value());
      }
      made->set_ints(model_.storage().copy(name), numbers);
    } else if (!value.is_none() && value.kind != Arg::Kind::kOther) {
      return unsupported("the argument \"" + name + "\" of a custom operator");
    }
  }
  const auto define = [&](Json reference) {
    const std::string name(reference["name"].string_or(""));
    Value* value = made->add_output(c_.b.fresh_name(name));
    const DType type = meta_type(scope, name);
    c_.b.set_type(value, AtenContext::real_of(type), meta_shape(scope, name));
    scope.names[name] = Arg(c_.cell(value, type));
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, member] = member_of(outputs.at(i));
    if (kind == "as_tensor") {
      define(member);
    } else if (kind == "as_tensors") {
      for (size_t k = 0; k < member.size(); ++k) define(member.at(k));
    } else {
      return unsupported("a custom operator whose result is no tensor");
    }
  }
  return ok();
}

Status Program::add_output(Value* value, const std::string& name) {
  Graph& graph = *model_.graph;
  // Each output needs a node of its own.
  if (!value->producer() || value->output_uses() != 0) value = c_.b.op("Identity", {value});
  if (!name.empty() && value->name() != name) c_.b.rename(value, name);
  graph.add_output(value);
  return ok();
}

Status Program::finish(Scope& scope) {
  const Json module = archive_.program()["graph_module"], signature = module["signature"];
  const Json outputs = scope.graph["outputs"], specs = signature["output_specs"];
  std::unordered_map<std::string, bool> mutated;  // outputs that are not the user's own
  struct Mutation {
    std::string target;
    Value* initial;
    Value* value;
  };
  std::vector<Mutation> mutations;
  const auto find_state = [&](std::string_view name) -> Value* {
    for (const State& one : state_)
      if (one.name == name) return one.initial;
    return nullptr;
  };
  const auto add_mutation = [&](const std::string& target, Value* initial, Value* value) {
    for (const Mutation& one : mutations)
      if (one.target == target) return;
    mutations.push_back({target, initial, value});
  };
  std::vector<std::pair<std::string, Arg>> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, spec] = i < specs.size()
                                  ? member_of(specs.at(i))
                                  : std::pair<std::string_view, Json>{"user_output", {}};
    if (kind == "token") continue;
    TRY(Arg value, read_arg(scope, outputs.at(i)));
    const std::string name(outputs.at(i)["as_tensor"]["name"].string_or(
        outputs.at(i)["as_sym_int"]["as_name"].string_or("output")));
    if (kind == "buffer_mutation") {
      const std::string target(spec["buffer_name"].string_or(""));
      if (value.is_tensor()) add_mutation(target, find_state(target), c_.read(value.tensor));
    } else if (kind == "user_input_mutation") {
      const std::string target(spec["user_input_name"].string_or(""));
      if (value.is_tensor()) add_mutation(target, nullptr, c_.read(value.tensor));
    } else if (kind == "user_output" || kind == "loss_output") {
      const Json old = signature["buffers_to_mutate"][name];
      if (old.is_string()) {
        const std::string target(old.string_or(""));
        if (value.is_tensor()) add_mutation(target, find_state(target), c_.read(value.tensor));
      } else {
        results.emplace_back(name, std::move(value));
      }
    }
  }
  for (const State& one : state_)
    if (AtenContext::root(one.cell)->version > 0)
      add_mutation(one.name, one.initial, c_.read(one.cell));
  const Json inputs = scope.graph["inputs"];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name(inputs.at(i)["as_tensor"]["name"].string_or(""));
    const auto found = by_input_.find(name);
    if (found != by_input_.end() && AtenContext::root(found->second)->version > 0)
      add_mutation(name, nullptr, c_.read(found->second));
  }
  for (auto& [name, value] : results) {
    if (value.is_tensor()) {
      CHECK_OK(add_output(c_.read(value.tensor), name));
    } else if (value.is_number() && outputs.size() != 0) {
      const bool symbolic = (value.kind == Arg::Kind::kInt && !value.integer.is_number()) ||
                            value.computed != nullptr;
      if (symbolic)
        CHECK_OK(add_output(value.computed ? value.computed : c_.int_value(value.integer), name));
    }
  }
  // State: the initial value is the default of an input, the new one an output.
  for (const Mutation& one : mutations) {
    if (one.initial && one.initial->initializer() && !one.initial->is_input()) {
      c_.b.set_type(one.initial, c_.b.dtype(one.initial), SymShape(c_.b.shape(one.initial)));
      model_.graph->define_input(one.initial);
    }
    CHECK_OK(add_output(one.value, one.target + ".new"));
  }
  return c_.take_status();
}

}  // namespace tombolo::pytorch
