#pragma once

// Model: ModelProto. Main graph, functions, operator-set imports and everything else that the file
// says, understood or not.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tombolo {

/// The IR version of the newest onnx.proto that this code knows.
inline constexpr int64_t kNewestIrVersion = 14;

struct OpsetImport {
  Text domain;
  bool has_version = false;
  int64_t version = 0;
  Text unknown;
};

/// How deep functions may call each other, as in upstream's checker.
inline constexpr int kMaxCallDepth = 100;

/// FunctionProto. The body's inputs and outputs are values of `body`; types come from value_info.
struct Function {
  explicit Function(StoragePtr storage) : body(std::move(storage)) {}
  Text name, domain, overload, doc;
  std::vector<Text> attributes;             ///< names of attributes without default
  std::vector<Attribute> attribute_protos;  ///< attributes with a default
  std::vector<OpsetImport> opset_imports;
  std::vector<StringEntry> metadata;
  Text unknown;
  Graph body;
};

struct TrainingInfo {
  std::unique_ptr<Graph> initialization, algorithm;
  std::vector<StringEntry> initialization_binding, update_binding;
  Text unknown;
};

struct DeviceConfiguration {
  Text name;
  bool has_num_devices = false;
  int32_t num_devices = 0;
  std::vector<Text> devices;
  Text unknown;
};

class Model {
 public:
  Model() : storage_(std::make_shared<Storage>()) {}
  explicit Model(StoragePtr storage) : storage_(std::move(storage)) {}

  Storage& storage() const { return *storage_; }
  const StoragePtr& storage_ptr() const { return storage_; }

  bool has_ir_version = false;
  int64_t ir_version = 0;
  std::vector<OpsetImport> opset_imports;
  Text producer_name, producer_version, domain, doc;
  bool has_model_version = false;
  int64_t model_version = 0;
  std::unique_ptr<Graph> graph;  ///< null when the file has none
  std::vector<StringEntry> metadata;
  std::vector<TrainingInfo> training;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<DeviceConfiguration> configurations;
  Text unknown;

  /// A model with an empty graph, the newest IR version, and one import of ai.onnx at `opset`.
  static Model create(int64_t opset, Text graph_name = "graph");

  /// Imported version of `domain` ("" and "ai.onnx" are the same), 0 when it is not imported.
  /// Before IR 3 there are no imports: version 1 of ai.onnx then.
  int64_t opset(Text domain = {}) const;
  void set_opset(Text domain, int64_t version);
  const Function* find_function(Text domain, Text name, Text overload) const;

 private:
  StoragePtr storage_;
};

/// "ai.onnx" -> "", everything else unchanged.
inline Text canonical_domain(Text domain) { return domain == "ai.onnx" ? Text("") : domain; }

/// Calls visit(Graph&) for `graph` and every graph nested in its nodes' attributes, outermost
/// first.
template <typename Visit>
void for_each_graph(Graph& graph, Visit&& visit) {
  visit(graph);
  for (Node* node : graph.nodes())
    for (Attribute& attribute : node->attributes()) {
      if (Graph* inner = attribute.graph()) for_each_graph(*inner, visit);
      if (auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
        for (auto& inner : *list) for_each_graph(*inner, visit);
    }
}

/// A deep copy: an own storage for what is edited, sharing mapped files and tensor bytes.
std::unique_ptr<Model> clone(const Model& model);

/// True when two models say the same: same structure, names, order, metadata and element values.
/// Storage encodings (raw_data or typed data), absent against empty or default fields, and external
/// against embedded data do not count. On false, `difference` (if given) names the first place.
bool equal(const Model& a, const Model& b, std::string* difference = nullptr);

}  // namespace tombolo
