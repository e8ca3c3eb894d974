#pragma once

// Encoder: IR -> the fields of onnx.proto, in order of their numbers, one method a message. What
// happens to the fields is the sink's business: counting (WireSizer), writing (WireWriter), JSON.
//
// A sink has: number(field, uint64), fixed32(field, float), bytes(field, view) for strings, bytes
// and packed lists, message(field, f), and raw(view) for whole fields kept as wire bytes.

#include <bit>
#include <string_view>

#include "ir/model.h"
#include "onnx/placement.h"
#include "onnx/wire.h"

namespace tombolo::onnx {

template <typename Sink>
class Encoder {
 public:
  explicit Encoder(Sink& sink, const Placements* placements = nullptr)
      : sink_(sink), placements_(placements) {}

  void model(const Model& model) {
    number(1, model.has_ir_version, model.ir_version);
    text(2, model.producer_name);
    text(3, model.producer_version);
    text(4, model.domain);
    number(5, model.has_model_version, model.model_version);
    text(6, model.doc);
    if (model.graph) sink_.message(7, [&] { graph(*model.graph); });
    for (const OpsetImport& item : model.opset_imports)
      sink_.message(8, [&] { opset_import(item); });
    entries(14, model.metadata);
    for (const TrainingInfo& item : model.training) sink_.message(20, [&] { training(item); });
    for (const auto& item : model.functions) sink_.message(25, [&] { function(*item); });
    for (const DeviceConfiguration& item : model.configurations)
      sink_.message(26, [&] {
        text(1, item.name);
        number(2, item.has_num_devices, item.num_devices);
        for (Text name : item.devices) sink_.bytes(3, name);
        raw(item.unknown);
      });
    raw(model.unknown);
  }

  /// TensorProto. `name` replaces the constant's own (initialisers are named by their value).
  void constant(const Constant& constant, Text name) {
    static const Constant::Extra kNone;
    const Constant::Extra& extra = constant.extra ? *constant.extra : kNone;
    const Placement* placement = nullptr;
    if (placements_ != nullptr)
      if (auto found = placements_->find(&constant); found != placements_->end())
        placement = &found->second;
    const auto data = [&](Constant::Encoding encoding, uint32_t field) {
      if (placement == nullptr && constant.encoding == encoding) sink_.bytes(field, constant.bytes);
    };
    integers(1, constant.dims.span());
    number(2, constant.has_data_type, constant.data_type);
    if (extra.has_segment)
      sink_.message(3, [&] {
        number(1, extra.has_segment_begin, extra.segment_begin);
        number(2, extra.has_segment_end, extra.segment_end);
      });
    data(Constant::Encoding::kFloat, 4);
    data(Constant::Encoding::kInt32, 5);
    if (constant.encoding == Constant::Encoding::kString)
      for (Text item : constant.strings) sink_.bytes(6, item);
    data(Constant::Encoding::kInt64, 7);
    text(8, name);
    data(Constant::Encoding::kRaw, 9);
    if (placement != nullptr && !placement->external) sink_.bytes(9, placement->bytes);
    data(Constant::Encoding::kDouble, 10);
    data(Constant::Encoding::kUInt64, 11);
    text(12, extra.doc);
    if (placement == nullptr) {
      entries(13, extra.external);
      number(14, extra.has_location, extra.location);
    } else if (placement->external) {
      external(*placement);
      number(14, true, 1);
    }
    entries(16, extra.metadata);
    raw(extra.unknown);
  }

  void sparse(const SparseConstant& sparse, Text name) {
    if (sparse.has_values) sink_.message(1, [&] { constant(sparse.values, name); });
    if (sparse.has_indices)
      sink_.message(2, [&] { constant(sparse.indices, sparse.indices.name); });
    integers(3, sparse.dims.span());
    raw(sparse.unknown);
  }

  void type(const Type& type) {
    const auto nested = [&](uint32_t field) {
      if (type.element != nullptr) sink_.message(field, [&] { this->type(*type.element); });
    };
    const auto member = [&](uint32_t field, auto&& write) {
      sink_.message(field, [&] {
        write();
        raw(type.unknown_inner);
      });
    };
    const auto tensor = [&] {
      number(1, type.has_elem_type, type.elem_type);
      if (type.has_shape)
        sink_.message(2, [&] {
          for (const Dim& item : type.dims) sink_.message(1, [&] { dim(item); });
          raw(type.unknown_shape);
        });
    };
    const auto sequence = [&] { nested(1); };
    using Kind = Type::Kind;
    if (type.kind == Kind::kTensor) member(1, tensor);
    if (type.kind == Kind::kSequence) member(4, sequence);
    if (type.kind == Kind::kMap)
      member(5, [&] {
        number(1, type.has_key_type, type.key_type);
        nested(2);
      });
    text(6, type.denotation);
    if (type.kind == Kind::kOpaque)
      member(7, [&] {
        text(1, type.opaque_domain);
        text(2, type.opaque_name);
      });
    if (type.kind == Kind::kSparseTensor) member(8, tensor);
    if (type.kind == Kind::kOptional) member(9, sequence);
    raw(type.unknown);
  }

 private:
  void text(uint32_t field, Text text) {
    if (present(text)) sink_.bytes(field, text);
  }
  void number(uint32_t field, bool has, int64_t value) {
    if (has) sink_.number(field, static_cast<uint64_t>(value));
  }
  void integers(uint32_t field, std::span<const int64_t> values) {
    for (int64_t value : values) sink_.number(field, static_cast<uint64_t>(value));
  }
  void raw(Text unknown) {
    if (present(unknown)) sink_.raw(unknown);
  }
  /// Of `unknown`, the messages of that number, or all else.
  void raw(Text unknown, uint32_t field, bool equal) {
    if (!present(unknown)) return;
    WireReader reader(unknown);
    while (reader.next())
      if (reader.is(field, WireType::kBytes) == equal) sink_.raw(reader.slice());
  }
  void entries(uint32_t field, const std::vector<StringEntry>& list) {
    for (const StringEntry& item : list)
      sink_.message(field, [&] {
        text(1, item.key);
        text(2, item.value);
        raw(item.unknown);
      });
  }
  void external(const Placement& placement) {
    const auto entry = [&](Text key, Text value) {
      sink_.message(13, [&] {
        sink_.bytes(1, key);
        sink_.bytes(2, value);
      });
    };
    entry("location", placement.location);
    entry("offset", std::to_string(placement.offset));
    entry("length", std::to_string(placement.length));
    if (!placement.checksum.empty()) entry("checksum", placement.checksum);
  }
  void opset_import(const OpsetImport& item) {
    text(1, item.domain);
    number(2, item.has_version, item.version);
    raw(item.unknown);
  }
  void dim_value(const Dim& dim) {
    if (dim.kind == Dim::Kind::kValue || dim.value < 0) number(1, true, dim.value);
    if (dim.kind == Dim::Kind::kParam) sink_.bytes(2, dim.param);
  }
  void dim(const Dim& dim) {
    dim_value(dim);
    text(3, dim.denotation);
    raw(dim.unknown);
  }
  void value_info(Text name, const Type* type, const ValueInfo* info) {
    text(1, name);
    if (type != nullptr) sink_.message(2, [&] { this->type(*type); });
    if (info == nullptr) return;
    text(3, info->doc);
    entries(4, info->metadata);
    raw(info->unknown);
  }
  void value(uint32_t field, const Value& value) {
    sink_.message(field, [&] { value_info(value.name(), value.type(), value.info()); });
  }
  void output(const GraphOutput& output) {
    const ValueInfo* declared = output.declared.get();
    sink_.message(12, [&] {
      if (declared == nullptr)
        value_info(output.value->name(), output.value->type(), output.value->info());
      else
        value_info(present(declared->name) ? declared->name : output.value->name(), declared->type,
                   declared);
    });
  }

  void graph(const Graph& graph) {
    static const Graph::Extra kNone;
    const Graph::Extra& extra = graph.extra ? *graph.extra : kNone;
    for (const Node* item : graph.nodes()) sink_.message(1, [&] { node(*item); });
    text(2, graph.name);
    for (const Value* item : graph.initializers())
      sink_.message(5,
                    [&] { constant(*item->initializer(), name_of(*item, *item->initializer())); });
    text(10, extra.doc);
    for (const Value* item : graph.inputs()) value(11, *item);
    for (const GraphOutput& item : graph.outputs()) output(item);
    for (const Value* item : graph.value_infos()) value(13, *item);
    raw(extra.unknown, 13, true);
    for (const QuantizationAnnotation& item : extra.quantization)
      sink_.message(14, [&] {
        text(1, item.tensor_name);
        entries(2, item.parameters);
        raw(item.unknown);
      });
    for (const Value* item : graph.sparse_initializers()) {
      const SparseConstant& data = *item->sparse_initializer();
      sink_.message(15, [&] { sparse(data, name_of(*item, data.values)); });
    }
    entries(16, extra.metadata);
    raw(extra.unknown, 13, false);
  }

  /// The value's name, which edits keep; the constant's own decides whether an empty one is there.
  static Text name_of(const Value& value, const Constant& constant) {
    return value.name().empty() ? constant.name : value.name();
  }

  static Text name_of(const Value* value) {
    if (value == nullptr) return "";
    return present(value->name()) ? value->name() : Text("");
  }

  void node(const Node& node) {
    static const Node::Extra kNone;
    const Node::Extra& extra = node.extra() != nullptr ? *node.extra() : kNone;
    for (const Value* item : node.inputs()) sink_.bytes(1, name_of(item));
    for (const Value* item : node.outputs()) sink_.bytes(2, name_of(item));
    text(3, node.name());
    text(4, node.op_type());
    for (const Attribute& item : node.attributes()) sink_.message(5, [&] { attribute(item); });
    text(6, extra.doc);
    text(7, node.domain());
    text(8, extra.overload);
    entries(9, extra.metadata);
    for (const NodeDeviceConfiguration& item : extra.devices)
      sink_.message(10, [&] { device_configuration(item); });
    raw(extra.unknown);
  }

  void attribute(const Attribute& attribute) {
    static const Attribute::Extra kNone;
    const Attribute::Extra& extra = attribute.extra ? *attribute.extra : kNone;
    text(1, attribute.name);
    const bool late = attribute.value.index() == kTypeIndex || attribute.value.index() == kTypes;
    const bool last = attribute.value.index() == kSparse || attribute.value.index() == kSparses;
    if (!late && !last) attribute_value(attribute);
    text(13, extra.doc);
    if (late) attribute_value(attribute);
    number(20, attribute.has_type, static_cast<int64_t>(attribute.type));
    text(21, extra.ref_attr_name);
    if (last) attribute_value(attribute);
    raw(extra.unknown);
  }
  // Indices of Attribute::Value whose field numbers come after the others.
  static constexpr size_t kSparse = 9, kTypeIndex = 10, kSparses = 13, kTypes = 14;

  void attribute_value(const Attribute& attribute) {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, float>) {
            sink_.fixed32(2, value);
          } else if constexpr (std::is_same_v<T, int64_t>) {
            number(3, true, value);
          } else if constexpr (std::is_same_v<T, Text>) {
            sink_.bytes(4, value);
          } else if constexpr (std::is_same_v<T, std::unique_ptr<Constant>>) {
            sink_.message(5, [&] { constant(*value, value->name); });
          } else if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
            sink_.message(6, [&] { graph(*value); });
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            sink_.floats(7, value);
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            integers(8, value);
          } else if constexpr (std::is_same_v<T, std::vector<Text>>) {
            for (Text item : value) sink_.bytes(9, item);
          } else if constexpr (std::is_same_v<T, std::vector<Constant>>) {
            for (const Constant& item : value)
              sink_.message(10, [&] { constant(item, item.name); });
          } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
            for (const auto& item : value) sink_.message(11, [&] { graph(*item); });
          } else if constexpr (std::is_same_v<T, const Type*>) {
            if (value != nullptr) sink_.message(14, [&] { type(*value); });
          } else if constexpr (std::is_same_v<T, std::vector<const Type*>>) {
            for (const Type* item : value) sink_.message(15, [&] { type(*item); });
          } else if constexpr (std::is_same_v<T, std::unique_ptr<SparseConstant>>) {
            sink_.message(22, [&] { sparse(*value, value->values.name); });
          } else if constexpr (std::is_same_v<T, std::vector<SparseConstant>>) {
            for (const SparseConstant& item : value)
              sink_.message(23, [&] { sparse(item, item.values.name); });
          }
        },
        attribute.value);
  }

  void device_configuration(const NodeDeviceConfiguration& item) {
    text(1, item.configuration_id);
    for (const ShardingSpec& spec : item.sharding) sink_.message(2, [&] { sharding(spec); });
    number(3, item.has_pipeline_stage, item.pipeline_stage);
    raw(item.unknown);
  }
  void sharding(const ShardingSpec& spec) {
    text(1, spec.tensor_name);
    integers(2, spec.devices);
    for (const ShardingSpec::Group& group : spec.groups)
      sink_.message(3, [&] {
        number(1, group.has_key, group.key);
        integers(2, group.values);
        raw(group.unknown);
      });
    for (const ShardedDim& item : spec.dims)
      sink_.message(4, [&] {
        number(1, item.has_axis, item.axis);
        for (const ShardedDim::Simple& simple : item.simple)
          sink_.message(2, [&] {
            dim_value(simple.dim);
            number(3, simple.has_num_shards, simple.num_shards);
            raw(simple.unknown);
          });
        raw(item.unknown);
      });
    raw(spec.unknown);
  }

  void training(const TrainingInfo& item) {
    if (item.initialization) sink_.message(1, [&] { graph(*item.initialization); });
    if (item.algorithm) sink_.message(2, [&] { graph(*item.algorithm); });
    entries(3, item.initialization_binding);
    entries(4, item.update_binding);
    raw(item.unknown);
  }

  void function(const Function& function) {
    const Graph& body = function.body;
    text(1, function.name);
    for (const Value* item : body.inputs()) sink_.bytes(4, name_of(item));
    for (const GraphOutput& item : body.outputs())
      sink_.bytes(5, item.declared && present(item.declared->name) ? item.declared->name
                                                                   : name_of(item.value));
    for (Text item : function.attributes) sink_.bytes(6, item);
    for (const Node* item : body.nodes()) sink_.message(7, [&] { node(*item); });
    text(8, function.doc);
    for (const OpsetImport& item : function.opset_imports)
      sink_.message(9, [&] { opset_import(item); });
    text(10, function.domain);
    for (const Attribute& item : function.attribute_protos)
      sink_.message(11, [&] { attribute(item); });
    for (const Value* item : body.value_infos()) value(12, *item);
    raw(function.unknown, 12, true);
    text(13, function.overload);
    entries(14, function.metadata);
    raw(function.unknown, 12, false);
  }

  Sink& sink_;
  const Placements* placements_;
};

}  // namespace tombolo::onnx
