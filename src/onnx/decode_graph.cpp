// GraphProto, NodeProto and the meaning of names.
//
// A graph is read in three steps. First its fields, in file order: nodes with their outputs,
// initialisers and inputs define values; of node inputs those are resolved whose value is already
// known. Then what was left open: a name means the value of that name in this graph, wherever in
// the file it is defined, else the nearest graph around it, else an undefined value made here.
// Then the graphs in attributes, which may refer to all of that.

#include "onnx/decoder.h"

namespace tombolo::onnx {

namespace {

/// Bytes that one object takes in memory, with its heap header, for the allowance.
template <typename T>
constexpr size_t kCost = sizeof(T) + 16;

std::string quoted(Text text) { return "\"" + std::string(text.substr(0, 200)) + "\""; }

}  // namespace

/// The value that a definition of `name` fills: a new one, registered unless the name is taken.
Value* Decoder::define(Text name, Scope& scope) {
  Value* value = scope.graph->new_value_view(name);
  if (name.empty()) return value;
  Value*& slot = scope.names.slot(name);
  if (slot == nullptr) slot = value;
  return value;
}

Value* Decoder::resolve(Text name, Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer)
    if (Value* value = at->names.find(name)) return value;
  return define(name, scope);
}

bool Decoder::node(std::string_view bytes, Scope& scope) {
  inputs_.clear();
  outputs_.clear();
  attributes_.clear();
  Text op_type, domain, name, overload, doc;
  std::vector<StringEntry> metadata;
  std::vector<NodeDeviceConfiguration> devices;
  Pieces unknown;
  const bool fine = fields(bytes, unknown, [&](const WireReader& r) {
    switch (r.field) {
      case 1:
        if (r.type != WireType::kBytes) return Took::kNo;
        inputs_.push_back(r.bytes);
        return Took::kYes;
      case 2:
        if (r.type != WireType::kBytes) return Took::kNo;
        outputs_.push_back(r.bytes);
        return Took::kYes;
      case 3:
        return text(r, name);
      case 4:
        return text(r, op_type);
      case 5:
        if (r.type != WireType::kBytes) return Took::kNo;
        attributes_.push_back(r.bytes);
        return Took::kYes;
      case 6:
        return text(r, doc);
      case 7:
        return text(r, domain);
      case 8:
        return text(r, overload);
      case 9:
        return entries(r, metadata);
      case 10:
        return items(r, devices, "device configuration",
                     [&](std::string_view part, NodeDeviceConfiguration& item) {
                       return device_configuration(part, item);
                     });
      default:
        return Took::kNo;
    }
  });
  auto place = [&] {
    return at("node " + std::to_string(scope.graph->node_count() - 1) + " " + quoted(name) + " (" +
              std::string(op_type.substr(0, 200)) + ")");
  };
  Graph& graph = *scope.graph;
  Node* node = graph.add_node_view(op_type, domain, name);
  if (!fine || !spend(kCost<Node> + attributes_.size() * sizeof(Attribute) +
                      inputs_.size() * (2 * sizeof(Value*) + sizeof(Use)) +
                      outputs_.size() * (kCost<Value> + 3 * sizeof(Value*) + 2 * sizeof(Value*))))
    return place();

  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    Value* value = inputs_[i].empty() ? nullptr : scope.names.find(inputs_[i]);
    node->add_input(value);
    if (value == nullptr && !inputs_[i].empty()) {
      if (!spend(sizeof(Unresolved))) return place();
      scope.unresolved.push_back({node, i, inputs_[i]});
    }
  }
  for (Text output : outputs_) {
    if (output.empty())
      node->add_absent_output();
    else
      graph.define_output(node, define(output, scope));
  }
  node->attributes().reserve(attributes_.size());
  for (std::string_view part : attributes_) {
    Attribute& item = node->attributes().emplace_back();
    const size_t first = scope.pending.size();
    if (!attribute(part, item, graph, node, scope.pending)) {
      at("attribute " + quoted(item.name));
      return place();
    }
    for (size_t i = first; i < scope.pending.size(); ++i)
      scope.pending[i].place = "node " + std::to_string(graph.node_count() - 1) + " " +
                               quoted(name) + " > " + scope.pending[i].place;
  }
  if (present(overload) || present(doc) || unknown.any() || !metadata.empty() || !devices.empty()) {
    if (!spend(kCost<Node::Extra>)) return place();
    Node::Extra& extra = node->ensure_extra();
    extra.overload = overload;
    extra.doc = doc;
    extra.metadata = std::move(metadata);
    extra.devices = std::move(devices);
    extra.unknown = unknown.text(*storage_);
  }
  return true;
}

bool Decoder::value_info(std::string_view bytes, ValueInfo& info) {
  Pieces type_bytes;
  return fields(bytes, info.unknown,
                [&](const WireReader& r) {
                  switch (r.field) {
                    case 1:
                      return text(r, info.name);
                    case 2:
                      return piece(r, type_bytes);
                    case 3:
                      return text(r, info.doc);
                    case 4:
                      return entries(r, info.metadata);
                    default:
                      return Took::kNo;
                  }
                }) &&
         (!type_bytes.any() || type(type_bytes.text(*storage_), info.type));
}

namespace {

bool says_more(const ValueInfo& info) {
  return present(info.doc) || present(info.unknown) || !info.metadata.empty();
}

/// Puts what an entry says on the value that has said nothing yet.
void describe(Value& value, ValueInfo info) {
  value.set_type(info.type);
  if (!says_more(info)) return;
  info.name = Text();
  info.type = nullptr;
  value.ensure_info() = std::move(info);
}

bool same_text(Text a, Text b) { return present(a) == present(b) && a == b; }

bool says_the_same(const Value& value, const ValueInfo& info) {
  if (value.type() != info.type) return false;
  const ValueInfo* own = value.info();
  if (own == nullptr) return !says_more(info);
  if (!same_text(own->doc, info.doc) || !same_text(own->unknown, info.unknown) ||
      own->metadata.size() != info.metadata.size())
    return false;
  for (size_t i = 0; i < info.metadata.size(); ++i)
    if (!same_text(own->metadata[i].key, info.metadata[i].key) ||
        !same_text(own->metadata[i].value, info.metadata[i].value) ||
        !same_text(own->metadata[i].unknown, info.metadata[i].unknown))
      return false;
  return true;
}

}  // namespace

bool Decoder::graph_input(std::string_view bytes, Scope& scope) {
  ValueInfo info;
  if (!spend(kCost<Value> + 2 * sizeof(Value*))) return false;
  if (!value_info(bytes, info)) return at("input " + quoted(info.name));
  Value* value = info.name.empty() ? nullptr : scope.names.find(info.name);
  // An initialiser of that name is this input's default; anything else is a second definition.
  if (value == nullptr || value->is_input() || value->producer() != nullptr)
    value = define(info.name, scope);
  scope.graph->define_input(value);
  describe(*value, std::move(info));
  return true;
}

bool Decoder::initializer(std::string_view bytes, Scope& scope) {
  auto data = std::make_unique<Constant>();
  if (!spend(kCost<Constant> + kCost<Value>)) return false;
  if (!constant(bytes, *data)) return at("initializer " + quoted(data->name));
  Value* value = data->name.empty() ? nullptr : scope.names.find(data->name);
  if (value == nullptr || value->is_initializer() || value->producer() != nullptr)
    value = define(data->name, scope);
  scope.graph->define_initializer(value, std::move(data));
  return true;
}

bool Decoder::sparse_initializer(std::string_view bytes, Scope& scope) {
  auto data = std::make_unique<SparseConstant>();
  if (!spend(kCost<SparseConstant> + kCost<Value>)) return false;
  if (!sparse(bytes, *data)) return at("sparse initializer " + quoted(data->values.name));
  const Text name = data->values.name;
  Value* value = name.empty() ? nullptr : scope.names.find(name);
  if (value == nullptr || value->is_initializer() || value->producer() != nullptr)
    value = define(name, scope);
  scope.graph->define_sparse_initializer(value, std::move(data));
  return true;
}

bool Decoder::graph_output(std::string_view bytes, Scope& scope) {
  ValueInfo info;
  if (!spend(2 * sizeof(GraphOutput))) return false;
  if (!value_info(bytes, info)) return at("output " + quoted(info.name));
  Value* value = info.name.empty() ? define(info.name, scope) : resolve(info.name, scope);
  scope.graph->add_output(value);
  if (says_the_same(*value, info)) return true;
  if (value->type() == nullptr && value->info() == nullptr && &value->graph() == scope.graph &&
      value->output_uses() == 1 && !value->is_input()) {
    describe(*value, std::move(info));
    return true;
  }
  if (!spend(kCost<ValueInfo>)) return false;
  info.name = Text();
  scope.graph->outputs().back().declared = std::make_unique<ValueInfo>(std::move(info));
  return true;
}

/// One entry of value_info. What contradicts an input's own entry, or an earlier value_info, has no
/// place in the graph and is kept as it is.
bool Decoder::annotate(std::string_view bytes, std::string_view slice, Scope& scope,
                       Pieces& unknown) {
  ValueInfo info;
  if (!value_info(bytes, info)) return at("value_info " + quoted(info.name));
  Value* value = info.name.empty() ? nullptr : scope.names.find(info.name);
  if (value == nullptr) {  // a note on a name that the graph does not have
    if (!spend(kCost<Value> + 2 * sizeof(Value*))) return false;
    value = scope.graph->new_value_view(info.name);
  } else if (value->type() != nullptr || value->info() != nullptr) {
    if (!says_the_same(*value, info)) {
      unknown.add(slice);
      return true;
    }
  } else if (value->is_input() && !says_the_same(*value, info)) {
    unknown.add(slice);
    return true;
  }
  describe(*value, std::move(info));
  scope.graph->add_value_info(value);
  return true;
}

bool Decoder::graph(std::string_view bytes, Graph& graph, const Scope* outer, int depth) {
  if (depth > kMaxDepth) {
    error = parse_error("graphs nest deeper than " + std::to_string(kMaxDepth) + " levels");
    return false;
  }
  Scope scope(graph, outer);
  Pieces unknown;
  auto sub = [&](const WireReader& r, auto method) {
    return r.type == WireType::kBytes ? took((this->*method)(r.bytes, scope)) : Took::kNo;
  };
  std::vector<std::string_view> outputs;
  if (!fields(bytes, unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return sub(r, &Decoder::node);
          case 2:
            return text(r, graph.name);
          case 5:
            return sub(r, &Decoder::initializer);
          case 10:
            return r.type == WireType::kBytes ? text(r, graph.ensure_extra().doc) : Took::kNo;
          case 11:
            return sub(r, &Decoder::graph_input);
          case 12:
            if (r.type != WireType::kBytes) return Took::kNo;
            if (!spend(sizeof(std::string_view))) return Took::kFailed;
            outputs.push_back(r.bytes);
            return Took::kYes;
          case 13:
            return keep_value_info(r, scope);
          case 14:
            if (r.type != WireType::kBytes) return Took::kNo;
            return items(r, graph.ensure_extra().quantization, "quantization annotation",
                         [&](std::string_view part, QuantizationAnnotation& item) {
                           return fields(part, item.unknown, [&](const WireReader& q) {
                             if (q.field == 1) return text(q, item.tensor_name);
                             return q.field == 2 ? entries(q, item.parameters) : Took::kNo;
                           });
                         });
          case 15:
            return sub(r, &Decoder::sparse_initializer);
          case 16:
            return r.type == WireType::kBytes ? entries(r, graph.ensure_extra().metadata)
                                              : Took::kNo;
          default:
            return Took::kNo;
        }
      }))
    return false;
  if (!settle(scope, unknown)) return false;
  for (std::string_view output : outputs)
    if (!graph_output(output, scope)) return false;
  if (!subgraphs(scope, depth)) return false;
  if (unknown.any()) graph.ensure_extra().unknown = unknown.text(*storage_);
  return true;
}

Decoder::Took Decoder::keep_value_info(const WireReader& reader, Scope& scope) {
  if (reader.type != WireType::kBytes) return Took::kNo;
  if (!spend(2 * sizeof(std::string_view))) return Took::kFailed;
  scope.value_infos.push_back({reader.bytes, reader.slice()});
  return Took::kYes;
}

bool Decoder::settle(Scope& scope, Pieces& unknown) {
  for (const Unresolved& open : scope.unresolved) {
    if (scope.outer == nullptr && !spend(kCost<Value> / 4)) return false;
    open.node->set_input(open.index, resolve(open.name, scope));
  }
  scope.unresolved = {};
  for (const auto& [bytes, slice] : scope.value_infos)
    if (!annotate(bytes, slice, scope, unknown)) return false;
  scope.value_infos = {};
  return true;
}

bool Decoder::subgraphs(Scope& scope, int depth) {
  for (const Pending& inner : scope.pending)
    if (!graph(inner.bytes, *inner.graph, &scope, depth + 1)) return at(inner.place);
  return true;
}

bool Decoder::function(std::string_view bytes, Function& function) {
  Scope scope(function.body, nullptr);
  Pieces unknown;
  std::vector<Text> outputs;
  if (!fields(bytes, unknown, [&](const WireReader& r) {
        switch (r.field) {
          case 1:
            return text(r, function.name);
          case 4: {
            if (r.type != WireType::kBytes) return Took::kNo;
            if (!spend(kCost<Value> + 2 * sizeof(Value*))) return Took::kFailed;
            scope.graph->define_input(define(r.bytes, scope));
            return Took::kYes;
          }
          case 5:
            return texts(r, outputs);
          case 6:
            return texts(r, function.attributes);
          case 7:
            return r.type == WireType::kBytes ? took(node(r.bytes, scope)) : Took::kNo;
          case 8:
            return text(r, function.doc);
          case 9:
            return items(
                r, function.opset_imports, "opset_import",
                [&](std::string_view part, OpsetImport& item) { return opset_import(part, item); });
          case 10:
            return text(r, function.domain);
          case 11:
            return items(r, function.attribute_protos, "attribute",
                         [&](std::string_view part, Attribute& item) {
                           return attribute(part, item, function.body, nullptr, scope.pending);
                         });
          case 12:
            return keep_value_info(r, scope);
          case 13:
            return text(r, function.overload);
          case 14:
            return entries(r, function.metadata);
          default:
            return Took::kNo;
        }
      }))
    return false;
  if (!settle(scope, unknown)) return false;
  for (Text output : outputs)
    function.body.add_output(output.empty() ? define(output, scope) : resolve(output, scope));
  if (!subgraphs(scope, 1)) return false;
  function.unknown = unknown.text(*storage_);
  return true;
}

}  // namespace tombolo::onnx
