#pragma once

// Function bodies of operators as complete ONNX text, ready for the text parser.

#include <span>
#include <string>

#include "base/result.h"
#include "ops/attributes.h"
#include "ops/registry.h"

namespace tombolo {

/// What the builder of a context-dependent body sees of the node, and where it writes.
struct FunctionContext {
  const OpVersion& version;
  int opset;                            ///< the operator set to write in
  AttributeReader attributes;           ///< of the node
  std::span<const DType> input_types;   ///< element types; kUndefined where absent or unknown
  std::span<const bool> output_wanted;  ///< per output of the node
  std::string body = {};                ///< nodes as ONNX text, one a line
  /// Values around the node that its subgraphs read: `outer_0`, `outer_1`, ... in the body.
  std::vector<const Value*> captured = {};
  std::span<const bool> sequence_inputs = {};  ///< per input of the node; absent ones are tensors

  bool has_input(size_t index) const { return input_type(index) != DType::kUndefined; }
  DType input_type(size_t index) const {
    return index < input_types.size() ? input_types[index] : DType::kUndefined;
  }
  bool is_sequence(size_t index) const {
    return index < sequence_inputs.size() && sequence_inputs[index];
  }
  bool wants_output(size_t index) const {
    return index < output_wanted.size() && output_wanted[index];
  }
  void line(std::string_view text) { (body += text) += '\n'; }
  /// The nodes of a subgraph of the node, as lines: inputs take these names, what is inside begins
  /// with `prefix`. Gives the names of the outputs.
  Result<std::vector<std::string>> inline_graph(const Graph& graph, std::string_view prefix,
                                                std::span<const std::string> inputs);
};

/// Name of input or output `index` of a function's signature: variadic ones are numbered.
std::string function_name(std::span<const ResolvedParam> params, size_t index);

/// The whole function: opset import, signature (inputs, outputs and attributes with their defaults,
/// from the version's rows) around the nodes `body`.
std::string function_text(const OpVersion& version, int opset, std::string_view body);

/// As above, with the row's fixed text or what its builder writes. Error: kUnsupported when the row
/// has neither, and what the builder says (a type that it needs and nobody knows).
Result<std::string> function_text(const FunctionBody& row, FunctionContext& context);

/// The body row to use where the model imports `opset`: the newest one written in an operator set
/// not above it, or null.
const FunctionBody* function_body(const OpVersion& version, int opset);

}  // namespace tombolo
