// Graphs: name, inputs, outputs, initialisers and value infos, nodes.

#include "ir/text/parser_impl.h"

namespace tombolo::text {

bool Parser::graph(Graph& graph, GraphLinker* outer) {
  Depth depth(depth_);
  if (!too_deep() || !charge(sizeof(Graph) + 200)) return false;
  Text found;
  if (!name(found, "the name of a graph")) return false;
  graph.name = keep(found);
  GraphLinker linker(graph, outer, {.copy_names = true});
  if (!graph_annotation(graph) || !inputs(linker, true)) return false;
  if (!match("=>")) return fail("expected \"=>\" after the inputs of the graph, " + this->found());
  if (!outputs(linker, true) || !declarations(linker) || !node_list(graph, linker)) return false;
  linker.finish();
  return true;
}

bool Parser::graph_annotation(Graph& graph) {
  static constexpr std::string_view kKeys[] = {"doc_string", "metadata_props",
                                               "quantization_annotation", "unknown"};
  return annotation(kKeys, [&](size_t key) {
    Graph::Extra& extra = graph.ensure_extra();
    switch (key) {
      case 0:
        return text_value(extra.doc);
      case 1:
        return string_entries(extra.metadata);
      case 2:
        return list(extra.quantization,
                    [&](QuantizationAnnotation& item) { return quantization(item); });
      default:
        return hex_value(extra.unknown);
    }
  });
}

bool Parser::quantization(QuantizationAnnotation& out) {
  static constexpr std::string_view kKeys[] = {"tensor_name", "quant_parameter_tensor_names",
                                               "unknown"};
  return expect('{', "to begin a quantization annotation") && entries('}', kKeys, [&](size_t key) {
           return key == 0   ? text_value(out.tensor_name)
                  : key == 1 ? string_entries(out.parameters)
                             : hex_value(out.unknown);
         });
}

bool Parser::entry(Entry& out) {
  static constexpr std::string_view kKeys[] = {"doc_string", "metadata_props", "unknown"};
  if (next_is_type()) {
    const size_t begin = position();
    const std::string_view first = word();
    peek();
    const size_t behind_word = position();
    rewind(begin);
    if (!type(out.type)) return false;
    // A value may be called like a type: then no name follows.
    if (!next_is_name() && !first.empty() && position() == behind_word) {
      out.type = nullptr;
      out.name = first;
      return true;
    }
  }
  peek();
  const size_t at = position();
  if (!name(out.name, "the name of a value")) return false;
  if (out.type == nullptr && (peek() == '[' || peek() == '(' || next_is_name()))
    return fail_type(out.name, at);  // a misspelt one reads as a name
  return annotation(kKeys, [&](size_t key) {
    if (!out.info) out.info = std::make_unique<ValueInfo>();
    switch (key) {
      case 0:
        return text_value(out.info->doc);
      case 1:
        return string_entries(out.info->metadata);
      default:
        return hex_value(out.info->unknown);
    }
  });
}

bool Parser::inputs(GraphLinker& linker, bool typed) {
  if (!expect('(', "before the inputs")) return false;
  if (match(')')) return true;
  do {
    Entry item;
    if (!charge(sizeof(Value) + 64) || !entry(item) || !charge(item.name.size())) return false;
    linker.input(item.name, item.type, typed ? std::move(item.info) : nullptr);
    if (typed) {
      if (match('=') && !initializer(linker, item)) return false;
    } else if (item.type != nullptr || item.info != nullptr) {
      linker.value_info(item.name, item.type, std::move(item.info));
    }
  } while (match(','));
  return expect(')', "after the inputs");
}

bool Parser::outputs(GraphLinker& linker, bool typed) {
  if (!expect('(', "before the outputs")) return false;
  if (match(')')) return true;
  do {
    Entry item;
    if (!charge(sizeof(Value) + 200) || !entry(item) || !charge(item.name.size())) return false;
    if (!typed && (item.type != nullptr || item.info != nullptr))
      linker.value_info(item.name, item.type, std::exchange(item.info, nullptr));
    linker.output(item.name, typed ? item.type : nullptr, std::move(item.info));
  } while (match(','));
  return expect(')', "after the outputs");
}

/// `<` initialisers and value infos `>`
bool Parser::declarations(GraphLinker& linker) {
  if (!match('<')) return true;
  if (match('>')) return true;
  do {
    Entry item;
    if (!charge(sizeof(Value) + 110) || !entry(item) || !charge(item.name.size())) return false;
    if (match('=')) {
      if (!initializer(linker, item)) return false;
    } else {
      linker.value_info(item.name, item.type, std::move(item.info));
    }
  } while (match(','));
  return expect('>', "after the initialisers and value infos");
}

bool Parser::initializer(GraphLinker& linker, const Entry& entry) {
  if (entry.type == nullptr) return fail("an initialiser needs a type");
  if (entry.type->kind == Type::Kind::kSparseTensor) {
    auto sparse = std::make_unique<SparseConstant>();
    if (!charge(sizeof(SparseConstant)) || !sparse_constant(*sparse, *entry.type)) return false;
    sparse->values.name = entry.name;
    linker.sparse_initializer(std::move(sparse));
    return true;
  }
  auto dense = std::make_unique<Constant>();
  if (!charge(sizeof(Constant)) || !constant(*dense, *entry.type)) return false;
  dense->name = entry.name;
  linker.initializer(std::move(dense));
  return true;
}

bool Parser::node_list(Graph& graph, GraphLinker& linker) {
  if (!expect('{', "before the nodes")) return false;
  while (!match('}')) {
    if (at_end()) return fail("expected a node or '}', found the end of the text");
    if (!node(graph, linker)) return false;
  }
  return true;
}

}  // namespace tombolo::text
