// Semantic equality of models, with the first difference named: what the round-trip tests ask.

#include <string>

#include "ir/model.h"

namespace tombolo {

namespace {

/// Compares two models place by place; `at_` is where, `what_` the first difference.
class Comparer {
 public:
  Comparer(const Model& a, const Model& b) : a_(a), b_(b) {}
  std::string what;

  bool models() {
    return number("ir_version", a_.ir_version, b_.ir_version) &&
           number("model_version", a_.model_version, b_.model_version) &&
           text("producer_name", a_.producer_name, b_.producer_name) &&
           text("producer_version", a_.producer_version, b_.producer_version) &&
           text("domain", a_.domain, b_.domain) && text("doc_string", a_.doc, b_.doc) &&
           text("unknown fields", a_.unknown, b_.unknown) && entries(a_.metadata, b_.metadata) &&
           imports(a_.opset_imports, b_.opset_imports) && graphs(a_.graph.get(), b_.graph.get()) &&
           list("training_info", a_.training, b_.training,
                [&](const TrainingInfo& x, const TrainingInfo& y) {
                  return graphs(x.initialization.get(), y.initialization.get()) &&
                         graphs(x.algorithm.get(), y.algorithm.get()) &&
                         entries(x.initialization_binding, y.initialization_binding) &&
                         entries(x.update_binding, y.update_binding) &&
                         text("unknown fields", x.unknown, y.unknown);
                }) &&
           list("configuration", a_.configurations, b_.configurations,
                [&](const DeviceConfiguration& x, const DeviceConfiguration& y) {
                  return text("name", x.name, y.name) &&
                         number("num_devices", x.num_devices, y.num_devices) &&
                         texts("device", x.devices, y.devices) &&
                         text("unknown fields", x.unknown, y.unknown);
                }) &&
           list("functions", a_.functions, b_.functions,
                [&](const auto& x, const auto& y) { return functions(*x, *y); });
  }

 private:
  bool differ(std::string_view field, std::string_view a, std::string_view b) {
    what = at_ + std::string(field) + ": " + std::string(a.substr(0, 200)) + " against " +
           std::string(b.substr(0, 200));
    return false;
  }
  bool number(std::string_view field, int64_t a, int64_t b) {
    return a == b || differ(field, std::to_string(a), std::to_string(b));
  }
  bool text(std::string_view field, Text a, Text b) { return a == b || differ(field, a, b); }
  template <typename List, typename Equal>
  bool list(std::string_view field, const List& a, const List& b, Equal&& equal) {
    if (!number(std::string(field) + " count", static_cast<int64_t>(a.size()),
                static_cast<int64_t>(b.size())))
      return false;
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t mark = at_.size();
      at_ += std::string(field) + " " + std::to_string(i) + " > ";
      if (!equal(a[i], b[i])) return false;
      at_.resize(mark);
    }
    return true;
  }
  bool texts(std::string_view field, const std::vector<Text>& a, const std::vector<Text>& b) {
    return list(field, a, b, [&](Text x, Text y) { return text("", x, y); });
  }
  bool entries(const std::vector<StringEntry>& a, const std::vector<StringEntry>& b) {
    return list("entry", a, b, [&](const StringEntry& x, const StringEntry& y) {
      return text("key", x.key, y.key) && text("value", x.value, y.value) &&
             text("unknown fields", x.unknown, y.unknown);
    });
  }
  bool imports(const std::vector<OpsetImport>& a, const std::vector<OpsetImport>& b) {
    return list("opset_import", a, b, [&](const OpsetImport& x, const OpsetImport& y) {
      return text("domain", x.domain, y.domain) && number("version", x.version, y.version) &&
             text("unknown fields", x.unknown, y.unknown);
    });
  }

  bool dims(const Dim& a, const Dim& b) {
    return number("dimension kind", static_cast<int>(a.kind), static_cast<int>(b.kind)) &&
           number("dim_value", a.value, b.value) && text("dim_param", a.param, b.param) &&
           text("denotation", a.denotation, b.denotation) &&
           text("unknown fields", a.unknown, b.unknown);
  }
  bool types(const Type* a, const Type* b) {
    // A TypeProto without any member says as much as none.
    static const Type kEmpty;
    if (a == nullptr) a = &kEmpty;
    if (b == nullptr) b = &kEmpty;
    if (a == b) return true;
    if (!(number("type kind", static_cast<int>(a->kind), static_cast<int>(b->kind)) &&
          number("elem_type", a->elem_type, b->elem_type) &&
          number("has shape", a->has_shape, b->has_shape) &&
          number("key_type", a->key_type, b->key_type) &&
          text("opaque domain", a->opaque_domain, b->opaque_domain) &&
          text("opaque name", a->opaque_name, b->opaque_name) &&
          text("denotation", a->denotation, b->denotation) &&
          text("unknown fields", a->unknown, b->unknown) &&
          text("unknown fields", a->unknown_inner, b->unknown_inner) &&
          text("unknown fields", a->unknown_shape, b->unknown_shape) &&
          list("dim", a->dims, b->dims, [&](const Dim& x, const Dim& y) { return dims(x, y); })))
      return false;
    if (a->element == nullptr && b->element == nullptr) return true;
    return types(a->element, b->element);
  }

  bool constants(const Constant& a, const Constant& b) {
    static const Constant::Extra kNone;
    const Constant::Extra& x = a.extra ? *a.extra : kNone;
    const Constant::Extra& y = b.extra ? *b.extra : kNone;
    if (!(text("tensor name", a.name, b.name) && number("data_type", a.data_type, b.data_type) &&
          list("dims", a.dims, b.dims, [&](int64_t p, int64_t q) { return number("dim", p, q); }) &&
          text("doc_string", x.doc, y.doc) && entries(x.metadata, y.metadata) &&
          number("segment", x.has_segment, y.has_segment) &&
          number("segment begin", x.segment_begin, y.segment_begin) &&
          number("segment end", x.segment_end, y.segment_end) &&
          text("unknown fields", x.unknown, y.unknown)))
      return false;
    if (a.is_external() && b.is_external() && x.external.size() == y.external.size()) {
      bool same = true;
      for (size_t i = 0; i < x.external.size(); ++i)
        same = same && x.external[i].key == y.external[i].key &&
               x.external[i].value == y.external[i].value;
      if (same) return true;
    }
    auto left = a.value(a_.storage_ptr());
    auto right = b.value(b_.storage_ptr());
    if (left.ok() && right.ok())
      return *left == *right || differ("tensor values", "these", "those");
    // Neither decodes (an invalid tensor): equal when the bytes as stored are.
    if (left.ok() != right.ok()) return differ("tensor data", "readable", "not readable");
    return number("encoding", static_cast<int>(a.encoding), static_cast<int>(b.encoding)) &&
           text("data", a.bytes, b.bytes) && texts("string_data", a.strings, b.strings) &&
           entries(x.external, y.external);
  }
  bool sparse(const SparseConstant& a, const SparseConstant& b) {
    return constants(a.values, b.values) && constants(a.indices, b.indices) &&
           list("dims", a.dims, b.dims,
                [&](int64_t p, int64_t q) { return number("dim", p, q); }) &&
           text("unknown fields", a.unknown, b.unknown);
  }

  static bool is_default(const Attribute& attribute) {
    return std::visit(
        [](const auto& value) -> bool {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            return true;
          else if constexpr (std::is_same_v<T, float>)
            return __builtin_bit_cast(uint32_t, value) == 0;
          else if constexpr (std::is_same_v<T, int64_t>)
            return value == 0;
          else if constexpr (requires { value.empty(); })
            return value.empty();
          else
            return false;
        },
        attribute.value);
  }
  /// Attribute values of one alternative, compared by kind; the order is that of Attribute::Value.
  bool attribute_values(const Attribute& a, const Attribute& b) {
    // An absent member says as much as its default.
    if (a.value.index() != b.value.index() && is_default(a) && is_default(b)) return true;
    if (!number("attribute member", static_cast<int64_t>(a.value.index()),
                static_cast<int64_t>(b.value.index())))
      return false;
    return std::visit(
        [&](const auto& x) -> bool {
          using T = std::decay_t<decltype(x)>;
          const T& y = std::get<T>(b.value);
          if constexpr (std::is_same_v<T, std::monostate>) {
            return true;
          } else if constexpr (std::is_same_v<T, float>) {
            return floats(x, y);
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            return list("floats", x, y, [&](float p, float q) { return floats(p, q); });
          } else if constexpr (std::is_same_v<T, int64_t>) {
            return number("i", x, y);
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            return list("ints", x, y, [&](int64_t p, int64_t q) { return number("", p, q); });
          } else if constexpr (std::is_same_v<T, Text>) {
            return text("s", x, y);
          } else if constexpr (std::is_same_v<T, std::vector<Text>>) {
            return texts("strings", x, y);
          } else if constexpr (std::is_same_v<T, std::unique_ptr<Constant>>) {
            return constants(*x, *y);
          } else if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
            return graphs(x.get(), y.get());
          } else if constexpr (std::is_same_v<T, std::unique_ptr<SparseConstant>>) {
            return sparse(*x, *y);
          } else if constexpr (std::is_same_v<T, const Type*>) {
            return types(x, y);
          } else if constexpr (std::is_same_v<T, std::vector<Constant>>) {
            return list("tensors", x, y,
                        [&](const auto& p, const auto& q) { return constants(p, q); });
          } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
            return list("graphs", x, y,
                        [&](const auto& p, const auto& q) { return graphs(p.get(), q.get()); });
          } else if constexpr (std::is_same_v<T, std::vector<SparseConstant>>) {
            return list("sparse_tensors", x, y,
                        [&](const auto& p, const auto& q) { return sparse(p, q); });
          } else {
            return list("type_protos", x, y,
                        [&](const Type* p, const Type* q) { return types(p, q); });
          }
        },
        a.value);
  }
  bool floats(float a, float b) {
    return __builtin_bit_cast(uint32_t, a) == __builtin_bit_cast(uint32_t, b) ||
           differ("f", std::to_string(a), std::to_string(b));
  }
  bool attributes(const Attribute& a, const Attribute& b) {
    static const Attribute::Extra kNone;
    const Attribute::Extra& x = a.extra ? *a.extra : kNone;
    const Attribute::Extra& y = b.extra ? *b.extra : kNone;
    return text("name", a.name, b.name) &&
           number("type", static_cast<int>(a.type), static_cast<int>(b.type)) &&
           text("ref_attr_name", x.ref_attr_name, y.ref_attr_name) &&
           text("doc_string", x.doc, y.doc) && text("unknown fields", x.unknown, y.unknown) &&
           attribute_values(a, b);
  }

  bool devices(const NodeDeviceConfiguration& a, const NodeDeviceConfiguration& b) {
    auto numbers = [&](const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
      return list("device", x, y, [&](int64_t p, int64_t q) { return number("", p, q); });
    };
    return text("configuration_id", a.configuration_id, b.configuration_id) &&
           number("has pipeline_stage", a.has_pipeline_stage, b.has_pipeline_stage) &&
           number("pipeline_stage", a.pipeline_stage, b.pipeline_stage) &&
           text("unknown fields", a.unknown, b.unknown) &&
           list("sharding_spec", a.sharding, b.sharding,
                [&](const ShardingSpec& x, const ShardingSpec& y) {
                  return text("tensor_name", x.tensor_name, y.tensor_name) &&
                         numbers(x.devices, y.devices) &&
                         text("unknown fields", x.unknown, y.unknown) &&
                         list("group", x.groups, y.groups,
                              [&](const auto& p, const auto& q) {
                                return number("key", p.key, q.key) && numbers(p.values, q.values) &&
                                       text("unknown fields", p.unknown, q.unknown);
                              }) &&
                         list("sharded_dim", x.dims, y.dims, [&](const auto& p, const auto& q) {
                           return number("axis", p.axis, q.axis) &&
                                  text("unknown fields", p.unknown, q.unknown) &&
                                  list("simple_sharding", p.simple, q.simple,
                                       [&](const auto& s, const auto& t) {
                                         return dims(s.dim, t.dim) &&
                                                number("num_shards", s.num_shards, t.num_shards) &&
                                                text("unknown fields", s.unknown, t.unknown);
                                       });
                         });
                });
  }
  static Text name_of_value(const Value* value) {
    return value != nullptr ? value->name() : Text();
  }
  bool value_names(std::string_view field, std::span<Value* const> a, std::span<Value* const> b) {
    return list(field, a, b, [&](const Value* x, const Value* y) {
      return text("name", name_of_value(x), name_of_value(y));
    });
  }
  bool nodes(const Node& a, const Node& b) {
    static const Node::Extra kNone;
    const Node::Extra& x = a.extra() ? *a.extra() : kNone;
    const Node::Extra& y = b.extra() ? *b.extra() : kNone;
    return text("op_type", a.op_type(), b.op_type()) && text("domain", a.domain(), b.domain()) &&
           text("name", a.name(), b.name()) && text("overload", x.overload, y.overload) &&
           text("doc_string", x.doc, y.doc) && text("unknown fields", x.unknown, y.unknown) &&
           entries(x.metadata, y.metadata) && value_names("input", a.inputs(), b.inputs()) &&
           value_names("output", a.outputs(), b.outputs()) &&
           list("attribute", a.attributes(), b.attributes(),
                [&](const Attribute& p, const Attribute& q) { return attributes(p, q); }) &&
           list("device_configuration", x.devices, y.devices,
                [&](const auto& p, const auto& q) { return devices(p, q); });
  }

  bool infos(const ValueInfo* a, const ValueInfo* b) {
    static const ValueInfo kNone;
    if (a == nullptr) a = &kNone;
    if (b == nullptr) b = &kNone;
    return text("doc_string", a->doc, b->doc) && entries(a->metadata, b->metadata) &&
           text("unknown fields", a->unknown, b->unknown);
  }
  bool values(const Value* a, const Value* b) {
    return text("name", a->name(), b->name()) && types(a->type(), b->type()) &&
           infos(a->info(), b->info());
  }
  /// What a graph output's entry says, wherever it is kept.
  bool outputs(const GraphOutput& a, const GraphOutput& b) {
    auto name = [](const GraphOutput& o) {
      return o.declared && present(o.declared->name) ? o.declared->name : name_of_value(o.value);
    };
    auto type = [](const GraphOutput& o) {
      return o.declared ? o.declared->type : o.value->type();
    };
    auto info = [](const GraphOutput& o) {
      return o.declared ? o.declared.get() : o.value->info();
    };
    return text("name", name(a), name(b)) && types(type(a), type(b)) && infos(info(a), info(b));
  }
  bool graphs(const Graph* a, const Graph* b) {
    if (a == nullptr || b == nullptr) return number("has graph", a != nullptr, b != nullptr);
    static const Graph::Extra kNone;
    const Graph::Extra& x = a->extra ? *a->extra : kNone;
    const Graph::Extra& y = b->extra ? *b->extra : kNone;
    auto values_equal = [&](const Value* p, const Value* q) { return values(p, q); };
    if (!(text("graph name", a->name, b->name) && text("doc_string", x.doc, y.doc) &&
          entries(x.metadata, y.metadata) && text("unknown fields", x.unknown, y.unknown) &&
          list("input", a->inputs(), b->inputs(), values_equal) &&
          list("initializer", a->initializers(), b->initializers(),
               [&](const Value* p, const Value* q) {
                 return constants(*p->initializer(), *q->initializer());
               }) &&
          list("sparse_initializer", a->sparse_initializers(), b->sparse_initializers(),
               [&](const Value* p, const Value* q) {
                 return sparse(*p->sparse_initializer(), *q->sparse_initializer());
               }) &&
          list("value_info", a->value_infos(), b->value_infos(), values_equal) &&
          list("quantization_annotation", x.quantization, y.quantization,
               [&](const auto& p, const auto& q) {
                 return text("tensor_name", p.tensor_name, q.tensor_name) &&
                        entries(p.parameters, q.parameters) &&
                        text("unknown fields", p.unknown, q.unknown);
               }) &&
          list("output", a->outputs(), b->outputs(),
               [&](const GraphOutput& p, const GraphOutput& q) { return outputs(p, q); }) &&
          number("node count", static_cast<int64_t>(a->node_count()),
                 static_cast<int64_t>(b->node_count()))))
      return false;
    size_t index = 0;
    for (const Node *p = a->first_node(), *q = b->first_node(); p != nullptr;
         p = p->next(), q = q->next(), ++index) {
      const size_t mark = at_.size();
      at_ += "node " + std::to_string(index) + " > ";
      if (!nodes(*p, *q)) return false;
      at_.resize(mark);
    }
    return true;
  }
  bool functions(const Function& a, const Function& b) {
    return text("name", a.name, b.name) && text("domain", a.domain, b.domain) &&
           text("overload", a.overload, b.overload) && text("doc_string", a.doc, b.doc) &&
           text("unknown fields", a.unknown, b.unknown) && entries(a.metadata, b.metadata) &&
           texts("attribute", a.attributes, b.attributes) &&
           imports(a.opset_imports, b.opset_imports) &&
           list("attribute_proto", a.attribute_protos, b.attribute_protos,
                [&](const Attribute& p, const Attribute& q) { return attributes(p, q); }) &&
           graphs(&a.body, &b.body);
  }

  const Model& a_;
  const Model& b_;
  std::string at_;
};

}  // namespace

bool equal(const Model& a, const Model& b, std::string* difference) {
  Comparer comparer(a, b);
  const bool same = comparer.models();
  if (!same && difference != nullptr) *difference = comparer.what;
  return same;
}

}  // namespace tombolo
