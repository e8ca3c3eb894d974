#pragma once

// ONNX text -> graph. The language is upstream's (onnx/docs/Syntax.md) and a superset of it:
// docs/text.md has the grammar. What parses is not checked: invalid models are representable.
//
// Errors: kParse with `where` "line 3, column 7" and the line with a caret in `help`; kResource
// when the graph would need more memory than allowed. Safe on hostile text: nesting, numbers and
// memory are bounded.

#include <memory>
#include <string_view>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

struct ParseOptions {
  /// Bytes that the graph (nodes, values, names, tensors) may take, roughly.
  size_t memory_limit = size_t(450) << 20;
};

/// True when `text` begins as a model does: a header with a key that headers have, or a name and
/// the inputs of a graph. Looks at the beginning only.
bool looks_like_text(std::string_view text);

/// A whole model. Nothing refers to `text` afterwards.
Result<std::unique_ptr<Model>> parse_text(std::string_view text, const ParseOptions& options = {});

/// `name (inputs) => (outputs) <initialisers and value infos> { nodes }`. Names that are not
/// defined inside become undefined values.
Result<std::unique_ptr<Graph>> parse_graph(std::string_view text, StoragePtr storage);

/// `<domain: ..., opset_import: [...]> name <attributes> (inputs) => (outputs) { nodes }`.
Result<std::unique_ptr<Function>> parse_function(std::string_view text, StoragePtr storage);

/// `outputs = Operator <attributes> (inputs)`, added at the end of `graph`; input names are looked
/// up in it. Linear in the size of the graph. On failure the graph is left with what was read.
Result<Node*> parse_node(std::string_view text, Graph& graph);

/// As parse_node, for any number of nodes (a function body without its braces).
Status parse_nodes(std::string_view text, Graph& graph);

}  // namespace tombolo
