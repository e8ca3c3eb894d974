// Nodes: `[name] outputs = domain.Operator:overload <attributes> (inputs) <attributes> annotation`.

#include "ir/text/parser_impl.h"

namespace tombolo::text {

bool Parser::node(Graph& graph, GraphLinker& linker, Node** out) {
  Text label, domain, op_type, overload;
  if (match('[')) {
    label = "";
    if (next_is_name()) {
      if (!name(label, "the name of a node")) return false;
      label = keep(label);
    }
    if (!expect(']', "after the node's name")) return false;
  }
  if (!names('=') || !expect('=', "after the outputs of the node")) return false;
  if (!qualified(domain, op_type)) return false;
  if (match(':') && !name(overload, "an overload")) return false;

  if (!charge(sizeof(Node) + label.size() + 16 + names_.size() * (sizeof(Value) + 48)))
    return false;
  Node* node = graph.add_node_view(op_type, domain, label);
  if (out != nullptr) *out = node;
  if (present(overload)) node->ensure_extra().overload = intern(overload);
  for (Text output : names_) linker.node_output(node, output);

  if (!node_attributes(node, linker)) return false;
  if (!expect('(', "before the inputs of the node") || !names(')') ||
      !expect(')', "after the inputs of the node") || !charge(names_.size() * 48))
    return false;
  for (Text input : names_) node->add_input(linker.use(input));
  if (node->attributes().empty() && !node_attributes(node, linker)) return false;
  return node_annotation(node);
}

/// Names up to (not including) `close`, into names_. An empty name is `""`, or nothing before a
/// comma; a comma at the end says nothing.
bool Parser::names(char close) {
  names_.clear();
  while (peek() != close) {
    Text found("");
    if (peek() != ',') {
      if (!next_is_name())
        return fail(std::string("expected a name or '") + close + "', " + this->found());
      if (!name(found, "a name")) return false;
    }
    if (!charge_growth(names_.size(), names_.capacity(), sizeof(Text))) return false;
    names_.push_back(found);
    if (!match(',')) break;
  }
  return true;
}

bool Parser::qualified(Text& domain, Text& op_type) {
  Text part;
  if (!name(part, "an operator")) return false;
  if (peek() != '.') {
    op_type = intern(part);
    return true;
  }
  scratch_.clear();
  for (bool first = true; match('.'); first = false) {
    if (!first) scratch_ += '.';
    scratch_ += part;
    if (!name(part, "a name behind the '.'")) return false;
  }
  // keep() copies what lies in the text; the scratch is neither there nor in the storage.
  if (auto known = interned_.find(scratch_); known != interned_.end())
    domain = *known;
  else
    domain = *interned_.insert(storage().copy(scratch_)).first;
  op_type = intern(part);
  return true;
}

bool Parser::node_attributes(Node* node, GraphLinker& linker) {
  if (!match('<')) return true;
  if (match('>')) return true;
  do {
    Text found;
    auto& list = node->attributes();
    if (!charge_growth(list.size(), list.capacity(), sizeof(Attribute)) ||
        !name(found, "the name of an attribute"))
      return false;
    Attribute attribute;
    attribute.name = intern(found);
    if (!this->attribute(attribute, node, &linker)) return false;
    list.push_back(std::move(attribute));
  } while (match(','));
  return expect('>', "after the attributes");
}

bool Parser::node_annotation(Node* node) {
  static constexpr std::string_view kKeys[] = {"doc_string", "metadata_props",
                                               "device_configurations", "opset", "unknown"};
  return annotation(kKeys, [&](size_t key) {
    if (key == 3) {
      int32_t version;
      peek();
      const size_t at = position();
      if (!int32_value(version)) return false;
      if (version < 0 || version > INT16_MAX) return fail("not an opset version", {}, at);
      node->set_opset_override(version);
      return true;
    }
    Node::Extra& extra = node->ensure_extra();
    switch (key) {
      case 0:
        return text_value(extra.doc);
      case 1:
        return string_entries(extra.metadata);
      case 2:
        return list(extra.devices, [&](NodeDeviceConfiguration& item) { return device(item); });
      default:
        return hex_value(extra.unknown);
    }
  });
}

bool Parser::device(NodeDeviceConfiguration& out) {
  static constexpr std::string_view kKeys[] = {"configuration_id", "sharding_spec",
                                               "pipeline_stage", "unknown"};
  return expect('{', "to begin a device configuration") && entries('}', kKeys, [&](size_t key) {
           switch (key) {
             case 0:
               return text_value(out.configuration_id);
             case 1:
               return list(out.sharding, [&](ShardingSpec& item) { return sharding(item); });
             case 2:
               out.has_pipeline_stage = true;
               return int32_value(out.pipeline_stage);
             default:
               return hex_value(out.unknown);
           }
         });
}

bool Parser::sharding(ShardingSpec& out) {
  static constexpr std::string_view kKeys[] = {"tensor_name", "device", "index_to_device_group_map",
                                               "sharded_dim", "unknown"};
  static constexpr std::string_view kGroupKeys[] = {"key", "value", "unknown"};
  auto group = [&](ShardingSpec::Group& item) {
    return expect('{', "to begin a device group") && entries('}', kGroupKeys, [&](size_t key) {
             if (key == 0) item.has_key = true;
             return key == 0   ? number(item.key, "an integer")
                    : key == 1 ? ints_value(item.values)
                               : hex_value(item.unknown);
           });
  };
  return expect('{', "to begin a sharding spec") && entries('}', kKeys, [&](size_t key) {
           switch (key) {
             case 0:
               return text_value(out.tensor_name);
             case 1:
               return ints_value(out.devices);
             case 2:
               return list(out.groups, group);
             case 3:
               return list(out.dims, [&](ShardedDim& item) { return sharded_dim(item); });
             default:
               return hex_value(out.unknown);
           }
         });
}

bool Parser::sharded_dim(ShardedDim& out) {
  static constexpr std::string_view kKeys[] = {"axis", "simple_sharding", "unknown"};
  static constexpr std::string_view kSimpleKeys[] = {"dim", "num_shards", "unknown"};
  auto simple = [&](ShardedDim::Simple& item) {
    return expect('{', "to begin a sharding") && entries('}', kSimpleKeys, [&](size_t key) {
             if (key == 1) item.has_num_shards = true;
             return key == 0   ? dim(item.dim)
                    : key == 1 ? number(item.num_shards, "an integer")
                               : hex_value(item.unknown);
           });
  };
  return expect('{', "to begin a sharded dimension") && entries('}', kKeys, [&](size_t key) {
           if (key == 0) out.has_axis = true;
           return key == 0   ? number(out.axis, "an integer")
                  : key == 1 ? list(out.simple, simple)
                             : hex_value(out.unknown);
         });
}

}  // namespace tombolo::text
