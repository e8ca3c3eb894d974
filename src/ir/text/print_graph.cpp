#include "ir/text/printer_impl.h"

namespace tombolo::text {

void Printer::graph(const Graph& graph) {
  if (storage_ == nullptr) storage_ = graph.storage_ptr();
  // As an attribute a graph is told from a type or a number by its name.
  if (is_reserved(graph.name))
    quoted(graph.name);
  else
    name(graph.name);
  graph_annotation(graph);
  put(" (");
  list(graph.inputs(), ", ",
       [&](const Value* value) { entry(value->name(), value->type(), value->info()); });
  put(") => (");
  list(graph.outputs(), ", ", [&](const GraphOutput& output) {
    const ValueInfo* declared = output.declared.get();
    Text shown = output.value != nullptr ? output.value->name() : Text("");
    if (declared != nullptr && present(declared->name)) shown = declared->name;
    if (declared != nullptr || output.value == nullptr)
      entry(shown, declared != nullptr ? declared->type : nullptr, declared);
    else
      entry(shown, output.value->type(), output.value->info());
  });
  put(')');
  declarations(graph);
  node_list(graph);
}

void Printer::graph_annotation(const Graph& graph) {
  if (graph.extra == nullptr) return;
  const Graph::Extra& extra = *graph.extra;
  Annotation fields(*this);
  fields.text("doc_string", extra.doc);
  fields.entries("metadata_props", extra.metadata);
  if (!extra.quantization.empty()) {
    fields.key("quantization_annotation");
    put('[');
    list(extra.quantization, ", ", [&](const QuantizationAnnotation& item) {
      put('{');
      {
        Annotation inner(*this, "", "");
        inner.text("tensor_name", item.tensor_name);
        inner.entries("quant_parameter_tensor_names", item.parameters);
        inner.hex("unknown", item.unknown);
      }
      put('}');
    });
    put(']');
  }
  fields.hex("unknown", extra.unknown);
}

void Printer::entry(Text shown, const Type* type, const ValueInfo* info) {
  if (type != nullptr) {
    this->type(type);
    put(' ');
    name(shown);
  } else if (is_reserved(shown)) {
    quoted(shown);
  } else {
    name(shown);
  }
  if (info == nullptr) return;
  Annotation fields(*this);
  fields.text("doc_string", info->doc);
  fields.entries("metadata_props", info->metadata);
  fields.hex("unknown", info->unknown);
}

void Printer::declarations(const Graph& graph) {
  if (graph.initializers().empty() && graph.sparse_initializers().empty() &&
      graph.value_infos().empty()) {
    put(' ');
    return;
  }
  line(indent_);
  put('<');
  const char* next = "";
  auto each = [&](const std::vector<Value*>& values, auto&& print) {
    for (const Value* value : values) {
      put(next);
      line(indent_ + 1);
      print(*value);
      next = ",";
    }
  };
  each(graph.initializers(), [&](const Value& value) { initializer(value); });
  each(graph.sparse_initializers(),
       [&](const Value& value) { sparse(*value.sparse_initializer(), value.name(), true); });
  each(graph.value_infos(),
       [&](const Value& value) { entry(value.name(), value.type(), value.info()); });
  line(indent_);
  put('>');
  line(indent_);
}

void Printer::initializer(const Value& value) {
  constant_type(*value.initializer());
  put(' ');
  name(value.name());
  constant_data(*value.initializer(), true);
}

void Printer::node_list(const Graph& graph) {
  put('{');
  ++indent_;
  for (const Node* node : graph.nodes()) {
    line(indent_);
    this->node(*node);
  }
  --indent_;
  line(indent_);
  put('}');
}

void Printer::node(const Node& node) {
  if (storage_ == nullptr) storage_ = node.graph().storage_ptr();
  if (present(node.name())) {
    put('[');
    name(node.name());
    put("] ");
  }
  list(node.outputs(), ", ", [&](const Value* value) { value_name(value); });
  put(node.outputs().empty() ? "= " : " = ");
  op_type(node);
  // Subgraphs are long: they read better behind the inputs.
  bool has_graph = false;
  for (const Attribute& attribute : node.attributes())
    has_graph =
        has_graph || attribute.type == AttrType::kGraph || attribute.type == AttrType::kGraphs;
  if (!has_graph) node_attributes(node);
  put(" (");
  list(node.inputs(), ", ", [&](const Value* value) { value_name(value); });
  put(')');
  if (has_graph) node_attributes(node);
  node_annotation(node);
}

void Printer::op_type(const Node& node) {
  if (!node.domain().empty()) {
    qualified(node.domain());
    put('.');
  }
  name(node.op_type());
  if (!node.overload().empty()) {
    put(':');
    name(node.overload());
  }
}

void Printer::node_attributes(const Node& node) {
  if (node.attributes().empty()) return;
  put(" <");
  list(node.attributes(), ", ", [&](const Attribute& item) { attribute(item); });
  put('>');
}

void Printer::node_annotation(const Node& node) {
  Annotation fields(*this);
  if (node.opset_override() != 0) fields.number("opset", node.opset_override());
  if (node.extra() == nullptr) return;
  const Node::Extra& extra = *node.extra();
  fields.text("doc_string", extra.doc);
  fields.entries("metadata_props", extra.metadata);
  if (!extra.devices.empty()) {
    fields.key("device_configurations");
    put('[');
    list(extra.devices, ", ", [&](const NodeDeviceConfiguration& item) { device(item); });
    put(']');
  }
  fields.hex("unknown", extra.unknown);
}

void Printer::device(const NodeDeviceConfiguration& device) {
  put('{');
  Annotation fields(*this, "", "");
  fields.text("configuration_id", device.configuration_id);
  if (!device.sharding.empty()) {
    fields.key("sharding_spec");
    put('[');
    list(device.sharding, ", ", [&](const ShardingSpec& spec) { sharding(spec); });
    put(']');
  }
  if (device.has_pipeline_stage) fields.number("pipeline_stage", device.pipeline_stage);
  fields.hex("unknown", device.unknown);
  put('}');
}

void Printer::sharding(const ShardingSpec& spec) {
  put('{');
  Annotation fields(*this, "", "");
  fields.text("tensor_name", spec.tensor_name);
  if (!spec.devices.empty()) {
    fields.key("device");
    integers(spec.devices);
  }
  if (!spec.groups.empty()) {
    fields.key("index_to_device_group_map");
    put('[');
    list(spec.groups, ", ", [&](const ShardingSpec::Group& group) {
      put('{');
      Annotation inner(*this, "", "");
      if (group.has_key) inner.number("key", group.key);
      if (!group.values.empty()) {
        inner.key("value");
        integers(group.values);
      }
      inner.hex("unknown", group.unknown);
      put('}');
    });
    put(']');
  }
  if (!spec.dims.empty()) {
    fields.key("sharded_dim");
    put('[');
    list(spec.dims, ", ", [&](const ShardedDim& sharded) {
      put('{');
      Annotation inner(*this, "", "");
      if (sharded.has_axis) inner.number("axis", sharded.axis);
      if (!sharded.simple.empty()) {
        inner.key("simple_sharding");
        put('[');
        list(sharded.simple, ", ", [&](const ShardedDim::Simple& simple) {
          put('{');
          Annotation innermost(*this, "", "");
          innermost.key("dim");
          dim(simple.dim);
          if (simple.has_num_shards) innermost.number("num_shards", simple.num_shards);
          innermost.hex("unknown", simple.unknown);
          put('}');
        });
        put(']');
      }
      inner.hex("unknown", sharded.unknown);
      put('}');
    });
    put(']');
  }
  fields.hex("unknown", spec.unknown);
  put('}');
}

}  // namespace tombolo::text
