#pragma once

// Graph -> ONNX text (docs/text.md): upstream's syntax wherever upstream has one, so that its
// parser reads it; annotations `@{...}` for the rest. Lossless: parse_text gives an equal model.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// Takes the text piece by piece.
class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual Status write(std::string_view piece) = 0;
};

struct PrintOptions {
  /// Tensors of more elements than this are written as the hex digits of their bytes: shorter and
  /// faster than decimal numbers, but no longer upstream's language.
  uint64_t hex_above = UINT64_MAX;
};

/// Streams: memory does not grow with the model. External data are not read: their place is
/// printed. Fails only when the sink does.
Status print_text(const Model& model, TextSink& sink, const PrintOptions& options = {});
std::string print_text(const Model& model, const PrintOptions& options = {});

std::string print_graph(const Graph& graph, const PrintOptions& options = {});
std::string print_function(const Function& function, const PrintOptions& options = {});
/// Without a line end.
std::string print_node(const Node& node, const PrintOptions& options = {});

}  // namespace tombolo
