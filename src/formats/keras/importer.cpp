#include "formats/keras/importer.h"

#include <algorithm>
#include <functional>

namespace tombolo::keras {
namespace {

constexpr int kMaxNesting = 32;
constexpr size_t kMaxCalls = 1'000'000;

bool is_sequential(std::string_view class_name) { return class_name == "Sequential"; }
bool is_functional(std::string_view class_name) {
  return class_name == "Functional" || class_name == "Model";
}
bool is_model(std::string_view class_name) {
  return is_sequential(class_name) || is_functional(class_name);
}

/// Keras 1 and early 2 stored a Sequential's configuration as the bare list of its layers.
Json layers_of(Json root) {
  const Json config = root["config"];
  return config.is_array() ? config : config["layers"];
}

std::string_view name_of(Json layer) {
  const Json name = layer["config"]["name"];
  return name.is_string() ? name.string_or("") : layer["name"].string_or("");
}

void flatten(const Arg& arg, std::vector<KerasTensor>& out) {
  if (arg.is_tensor()) out.push_back(arg.tensor);
  for (const Arg& inner : arg.list) flatten(inner, out);
}

/// [["a", 0, 0], ["b", 0, 0]], or ["a", 0, 0] alone, or a dictionary of either, by sorted keys as
/// Keras flattens it.
struct Reference {
  std::string layer;
  int64_t node = 0, tensor = 0;
};
void read_references(Json value, std::vector<Reference>& out, int depth = 0) {
  if (depth > kMaxNesting) return;
  if (value.is_array() && value.size() >= 3 && value.at(0).is_string() && value.at(1).is_int()) {
    out.push_back(
        {std::string(value.at(0).string_or("")), value.at(1).int_or(0), value.at(2).int_or(0)});
    return;
  }
  std::vector<std::pair<std::string_view, Json>> members;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value.is_array())
      read_references(value.at(i), out, depth + 1);
    else
      members.emplace_back(value.key(i), value.member(i));
  }
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, member] : members) read_references(member, out, depth + 1);
}

/// Casts every floating tensor among the arguments.
void cast_floats(GraphBuilder& b, Arg& arg, DType to) {
  if (arg.is_tensor() && is_float(b.dtype(arg.tensor.value))) {
    arg.tensor.value = b.cast(arg.tensor.value, to);
  }
  for (Arg& inner : arg.list) cast_floats(b, inner, to);
}

}  // namespace

/// A functional model: its layers by name, and the tensors made so far.
struct Importer::Network {
  struct Entry {
    size_t index = 0;  ///< in the list of layers
    int64_t first_node = 0;
    std::vector<Json> calls;
    std::vector<std::optional<Outputs>> done;
  };
  std::unordered_map<std::string, Entry> entries;

  /// The place of a reference's call: null when there is no such layer or call.
  const std::optional<Outputs>* find(const Reference& reference) const {
    const auto found = entries.find(reference.layer);
    if (found == entries.end()) return nullptr;
    const Entry& entry = found->second;
    int64_t node = reference.node - entry.first_node;
    // Old files count the calls that built a layer too; with a single call there is no doubt.
    if (entry.done.size() == 1) node = 0;
    if (node < 0 || node >= static_cast<int64_t>(entry.done.size())) return nullptr;
    return &entry.done[static_cast<size_t>(node)];
  }
};

Status Importer::run(Json root) {
  const std::string_view class_name = root["class_name"].string_or("");
  if (!is_model(class_name)) {
    return unsupported("the model is of class " + std::string(class_name) +
                       ", whose graph is Python code and not in the file")
        .with_help("export it from Keras with model.export(..., format=\"onnx\") or as SavedModel");
  }
  survey(root, 0);
  auto outputs = network(root, Scope(), {});
  if (!refusals_.empty()) return refusals_.error();
  if (!outputs) return outputs.error();
  if (!builder_.status().ok()) {
    return Error(builder_.status().error()).at("the model contradicts itself");
  }

  // Outputs take the names of the layers that make them.
  std::vector<std::string> names;
  if (is_functional(class_name)) {
    std::vector<Reference> references;
    read_references(root["config"]["output_layers"], references);
    for (const Reference& reference : references) names.push_back(reference.layer);
  } else {
    const Json layers = layers_of(root);
    names.emplace_back(name_of(layers.at(layers.size() - 1)));
  }
  Graph& graph = builder_.graph();
  builder_.set_scope("");
  for (size_t i = 0; i < outputs->size(); ++i) {
    Value* value = (*outputs)[i].value;
    // Each output needs a value of its own.
    if (!value->producer() || value->output_uses() != 0) value = builder_.op("Identity", {value});
    builder_.rename(value, names.size() == outputs->size() ? names[i] : "output");
    graph.add_output(value);
  }
  return ok();
}

void Importer::survey(Json root, int depth) {
  if (depth > kMaxNesting) return;
  const Json layers = layers_of(root);
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json layer = layers.at(i);
    const std::string class_name(layer["class_name"].string_or(""));
    if (is_model(class_name)) {
      survey(layer, depth + 1);
      continue;
    }
    if (class_name == "InputLayer") continue;
    const std::string name(name_of(layer));
    if (is_operation(layer)) {
      if (!find_operation(class_name)) {
        refusals_.add("operation " + class_name, name, "");
      }
      continue;
    }
    if (class_name == "Lambda") {
      refusals_.add("layer Lambda", name, "it holds Python bytecode",
                    "replace Lambda by Keras layers or keras.ops and save the model again");
    } else if (!find_layer(class_name)) {
      refusals_.add("layer " + class_name, name, "");
    }
  }
}

Result<KerasTensor> Importer::make_input(Json layer) {
  const Json config = layer["config"];
  Json shape = config["batch_shape"];
  if (shape.is_null()) shape = config["batch_input_shape"];
  const std::string name(name_of(layer));
  if (!shape.is_array()) return parse_error("input \"" + name + "\" has no shape");
  if (config["sparse"].bool_or(false) || config["ragged"].bool_or(false)) {
    return unsupported("input \"" + name + "\" is sparse or ragged");
  }
  SymShape dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = shape.at(i).as_int();
    if (size && *size < 0) return parse_error("input \"" + name + "\" has a negative size");
    if (size) {
      dims.emplace_back(*size);
    } else {
      dims.push_back(SymDim::symbol(i == 0 ? "batch" : name + "_d" + std::to_string(i)));
    }
  }
  Json dtype = config["dtype"];
  if (dtype.is_object()) dtype = dtype["config"]["name"];
  const auto type = dtype_from_user_name(dtype.string_or("float32"));
  if (!type) return unsupported("input \"" + name + "\" has type " + dtype.to_string());
  return KerasTensor{builder_.input(name.empty() ? "input" : name, *type, dims), nullptr};
}

Result<Importer::Outputs> Importer::network(Json root, const Scope& scope,
                                            const std::vector<KerasTensor>& inputs) {
  if (scope.depth > kMaxNesting) return parse_error("models nested too deeply");
  auto result = is_sequential(root["class_name"].string_or("")) ? sequential(root, scope, inputs)
                                                                : functional(root, scope, inputs);
  return result;
}

Result<Importer::Outputs> Importer::sequential(Json root, const Scope& scope,
                                               const std::vector<KerasTensor>& inputs) {
  const Json layers = layers_of(root);
  if (layers.size() == 0) return parse_error("the model has no layers");
  Outputs current = inputs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json layer = layers.at(i);
    const bool is_input = layer["class_name"].string_or("") == "InputLayer";
    if (current.empty()) {
      // Keras 2 lets the first layer carry the input's shape; so does a build_input_shape.
      if (is_input || !layer["config"]["batch_input_shape"].is_null()) {
        TRY(KerasTensor made, make_input(layer));
        if (!is_input) builder_.rename(made.value, std::string(name_of(layer)) + "_input");
        current = {made};
      } else {
        Json shape = root["config"]["build_input_shape"];
        if (!shape.is_array()) shape = layer["build_config"]["input_shape"];
        if (!shape.is_array()) {
          return unsupported("the model has not been built: its input has no shape")
              .with_help("call model.build(shape), or add keras.Input, and save it again");
        }
        SymShape dims;
        for (size_t k = 0; k < shape.size(); ++k) {
          const auto size = shape.at(k).as_int();
          dims.push_back(size ? SymDim(*size)
                              : SymDim::symbol(k == 0 ? "batch" : "input_d" + std::to_string(k)));
        }
        const bool indices = layer["class_name"].string_or("") == "Embedding";
        current = {
            {builder_.input("input", indices ? DType::kInt32 : DType::kFloat32, dims), nullptr}};
      }
    }
    if (is_input) continue;
    std::vector<Arg> args;
    if (current.size() == 1) {
      args.push_back(Arg{current.front(), {}, {}, false});
    } else {
      Arg list;
      list.is_list = true;
      for (const KerasTensor& tensor : current) list.list.push_back(Arg{tensor, {}, {}, false});
      args.push_back(std::move(list));
    }
    TRY(current, call(layers, i, false, scope, std::move(args), {}));
    if (current.empty()) return current;  // refused
  }
  return current;
}

Result<Arg> Importer::read_arg(const Network& network, Json value) const {
  Arg arg;
  const auto tensor = [&](const Reference& reference) -> Status {
    const auto* outputs = network.find(reference);
    if (!outputs || !*outputs || reference.tensor < 0 ||
        reference.tensor >= static_cast<int64_t>((*outputs)->size())) {
      return parse_error("there is no output " + std::to_string(reference.tensor) + " of call " +
                         std::to_string(reference.node) + " of layer \"" + reference.layer + "\"");
    }
    arg.tensor = (**outputs)[static_cast<size_t>(reference.tensor)];
    return ok();
  };
  if (value.is_object() && value["class_name"].string_or("") == "__keras_tensor__") {
    std::vector<Reference> references;
    read_references(value["config"]["keras_history"], references);
    if (references.size() != 1) return parse_error("a tensor reference is malformed");
    CHECK_OK(tensor(references[0]));
    return arg;
  }
  if (value.is_array() && (value.size() == 3 || value.size() == 4) && value.at(0).is_string() &&
      value.at(1).is_int()) {
    if (value.at(0).string_or("") == "_CONSTANT_VALUE") {
      arg.constant = value.at(2);
      return arg;
    }
    std::vector<Reference> references;
    read_references(value, references);
    if (network.entries.count(references[0].layer)) {
      CHECK_OK(tensor(references[0]));
      return arg;
    }
  }
  if (value.is_array()) {
    arg.is_list = true;
    for (size_t i = 0; i < value.size(); ++i) {
      TRY(Arg inner, read_arg(network, value.at(i)));
      arg.list.push_back(std::move(inner));
    }
  }
  arg.constant = value;
  return arg;
}

namespace {

/// Calls visit(reference) for every tensor that a call of a layer mentions.
template <typename Visit>
void mentioned(Json value, const Visit& visit, int depth = 0) {
  if (depth > 64) return;
  if (value.is_array() && value.size() >= 3 && value.at(0).is_string() && value.at(1).is_int()) {
    visit(Reference{std::string(value.at(0).string_or("")), value.at(1).int_or(0),
                    value.at(2).int_or(0)});
  }
  for (size_t i = 0; i < value.size(); ++i) {
    mentioned(value.is_array() ? value.at(i) : value.member(i), visit, depth + 1);
  }
}

}  // namespace

Result<Importer::Outputs> Importer::functional(Json root, const Scope& scope,
                                               const std::vector<KerasTensor>& inputs) {
  const Json config = root["config"];
  const Json layers = layers_of(root);
  Network network;
  std::vector<Reference> input_names, output_names;
  read_references(config["input_layers"], input_names);
  read_references(config["output_layers"], output_names);
  if (output_names.empty()) return parse_error("the model has no outputs");
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json layer = layers.at(i);
    const std::string name(layer["name"].is_string() ? layer["name"].string_or("")
                                                     : name_of(layer));
    auto& entry = network.entries[name];
    entry.index = i;
    entry.calls.clear();
    // A nested model has a call of its own, the one that built it, which is not in the file.
    const std::string_view class_name = layer["class_name"].string_or("");
    const bool has_input = layers_of(layer).at(0)["class_name"].string_or("") == "InputLayer";
    if (is_functional(class_name) || (is_sequential(class_name) && keras_ < 3 && has_input)) {
      entry.first_node = 1;
    }
    const Json nodes = layer["inbound_nodes"];
    // Keras 2 writes a bare call for operators: ["x", 0, 0, {...}] instead of a list of these.
    for (size_t k = 0; k < nodes.size(); ++k) entry.calls.push_back(nodes.at(k));
    entry.done.resize(class_name == "InputLayer" ? 1 : entry.calls.size());
  }
  if (!inputs.empty() && inputs.size() != input_names.size()) {
    return parse_error("a nested model gets " + std::to_string(inputs.size()) + " inputs, not " +
                       std::to_string(input_names.size()));
  }
  for (size_t i = 0; i < input_names.size(); ++i) {
    const auto found = network.entries.find(input_names[i].layer);
    if (found == network.entries.end()) {
      return parse_error("there is no input layer \"" + input_names[i].layer + "\"");
    }
    KerasTensor tensor;
    if (inputs.empty()) {
      TRY(tensor, make_input(layers.at(found->second.index)));
    } else {
      tensor = inputs[i];
    }
    found->second.done.assign(1, Outputs{tensor});
    found->second.first_node = 0;
  }

  // Calls in the order in which their inputs come to exist.
  struct Pending {
    std::string layer;
    size_t call;
    size_t missing = 0;
  };
  std::vector<Pending> pending;
  std::unordered_map<const void*, std::vector<size_t>> waiting;
  std::vector<size_t> ready;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json layer = layers.at(i);
    const std::string name(layer["name"].is_string() ? layer["name"].string_or("")
                                                     : name_of(layer));
    const auto& entry = network.entries.at(name);
    if (entry.index != i || layer["class_name"].string_or("") == "InputLayer") continue;
    for (size_t k = 0; k < entry.calls.size(); ++k) {
      Pending item{name, k, 0};
      mentioned(entry.calls[k], [&](const Reference& reference) {
        const auto* outputs = network.find(reference);
        if (outputs && !outputs->has_value()) {
          ++item.missing;
          waiting[outputs].push_back(pending.size());
        }
      });
      if (item.missing == 0) ready.push_back(pending.size());
      pending.push_back(std::move(item));
    }
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    const Pending item = pending[ready[next]];
    auto& entry = network.entries.at(item.layer);
    const Json node = entry.calls[item.call];
    std::vector<Arg> args;
    std::map<std::string, Arg, std::less<>> kwargs;
    const auto add_kwargs = [&](Json map) -> Status {
      for (size_t i = 0; i < map.size(); ++i) {
        TRY(Arg arg, read_arg(network, map.member(i)));
        kwargs[std::string(map.key(i))] = std::move(arg);
      }
      return ok();
    };
    bool refused_input = false;
    mentioned(node, [&](const Reference& reference) {
      const auto* outputs = network.find(reference);
      if (outputs && outputs->has_value() && (*outputs)->empty()) refused_input = true;
    });
    Outputs made;
    if (!refused_input) {
      if (node.is_object()) {  // Keras 3
        const Json list = node["args"];
        for (size_t i = 0; i < list.size(); ++i) {
          TRY(Arg arg, read_arg(network, list.at(i)));
          args.push_back(std::move(arg));
        }
        CHECK_OK(add_kwargs(node["kwargs"]));
      } else if (node.at(0).is_string()) {  // an operator of Keras 2: the call itself
        TRY(Arg arg, read_arg(network, node));
        args.push_back(std::move(arg));
        CHECK_OK(add_kwargs(node.at(3)));
      } else {
        Arg list;
        list.is_list = true;
        for (size_t i = 0; i < node.size(); ++i) {
          TRY(Arg arg, read_arg(network, node.at(i)));
          list.list.push_back(std::move(arg));
          CHECK_OK(add_kwargs(node.at(i).at(3)));
        }
        if (list.list.size() == 1) {
          Arg only = std::move(list.list.front());
          list = std::move(only);
        }
        args.push_back(std::move(list));
      }
      TRY(made, call(layers, entry.index, true, scope, std::move(args), std::move(kwargs)));
    }
    entry.done[item.call] = std::move(made);
    for (const size_t index : waiting[&entry.done[item.call]]) {
      if (--pending[index].missing == 0) ready.push_back(index);
    }
  }
  if (ready.size() != pending.size())
    return parse_error("the layers depend on each other in a circle");

  Outputs outputs;
  for (const Reference& reference : output_names) {
    const auto* made = network.find(reference);
    if (!made || !made->has_value()) {
      return parse_error("there is no output layer \"" + reference.layer + "\"");
    }
    if ((*made)->empty()) return Outputs();  // refused
    if (reference.tensor < 0 || reference.tensor >= static_cast<int64_t>((*made)->size())) {
      return parse_error("layer \"" + reference.layer + "\" has no output " +
                         std::to_string(reference.tensor));
    }
    outputs.push_back((**made)[static_cast<size_t>(reference.tensor)]);
  }
  return outputs;
}

Result<Importer::Outputs> Importer::call(Json layers, size_t index, bool functional,
                                         const Scope& scope, std::vector<Arg> args,
                                         std::map<std::string, Arg, std::less<>> kwargs) {
  if (++calls_ > kMaxCalls) return resource_error("the model calls more than a million layers");
  const Json layer = layers.at(index);
  const std::string_view class_name = layer["class_name"].string_or("");
  const std::string name(name_of(layer));
  std::vector<KerasTensor> inputs;
  for (const Arg& arg : args) flatten(arg, inputs);
  if (is_model(class_name)) {
    Scope inner;
    inner.weights = weights_.nested(scope.weights, layers, index, functional);
    inner.prefix = scope.prefix + name + "/";
    inner.depth = scope.depth + 1;
    return network(layer, inner, inputs).at("model \"" + name + "\"");
  }
  const bool operation = is_operation(layer);
  const LayerRow* row = operation ? find_operation(class_name) : find_layer(class_name);
  if (!row) return Outputs();  // already reported by survey()

  builder_.set_scope(scope.prefix + name);
  LayerCall call{builder_,        keras_, class_name,      name,
                 layer["config"], {},     std::move(args), std::move(kwargs)};
  if (!operation && !layer["config"]["dtype"].is_null()) {
    // Keras brings floating arguments to the type in which the layer computes.
    for (Arg& arg : call.args) cast_floats(builder_, arg, call.compute_type());
    inputs.clear();
    for (const Arg& arg : call.args) flatten(arg, inputs);
  }
  call.inputs = std::move(inputs);
  if (call.inputs.empty() && !operation) {
    return parse_error("layer \"" + name + "\" has no input");
  }
  const std::string place = "layer \"" + name + "\" (" + std::string(class_name) + ")";
  if (!operation) {
    auto weights = weights_.layer(scope.weights, layers, index, functional);
    if (!weights) return std::move(weights).at(place).error();
    call.weights = std::move(*weights);
  }
  Status done = row->handler(call);
  if (done.ok() && !builder_.status().ok()) {
    // What the handler built cannot be: the layer does not fit its input.
    done = builder_.status();
    builder_.clear_status();
    if (done.error().kind == ErrorKind::kUnsupported) {
      refusals_.add("layer " + std::string(class_name), name, done.error().message);
      return Outputs();
    }
  }
  if (!done.ok()) {
    if (done.error().kind == ErrorKind::kUnsupported) {
      refusals_.add((operation ? "operation " : "layer ") + std::string(class_name), name,
                    done.error().message, done.error().help);
      return Outputs();
    }
    return std::move(done).at(place).error();
  }
  if (!call.mask_set) {
    for (KerasTensor& output : call.outputs) {
      if (row->mask == MaskRule::kPass) output.mask = call.mask();
      for (size_t i = 0; row->mask == MaskRule::kMerge && i < call.inputs.size(); ++i) {
        Value* mask = call.inputs[i].mask;
        if (mask && output.mask && mask != output.mask)
          mask = builder_.op("And", {output.mask, mask});
        if (mask) output.mask = mask;
      }
    }
  }
  return call.outputs;
}

}  // namespace tombolo::keras
