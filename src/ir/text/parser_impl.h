#pragma once

// The recursive-descent parser behind parser.h, one member function a rule of docs/text.md.
// Split over parse_*.cpp by subject. Internal.

#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph_linker.h"
#include "ir/model.h"
#include "ir/text/lexer.h"
#include "ir/text/parser.h"

namespace tombolo::text {

/// Keys of an annotation block, in the order of the handler's cases.
using Keys = std::span<const std::string_view>;

class Parser : public Lexer {
 public:
  Parser(std::string_view text, StoragePtr storage, const ParseOptions& options)
      : Lexer(text, *storage), storage_ptr_(std::move(storage)), budget_(options.memory_limit) {}

  [[nodiscard]] bool model(Model& model);
  [[nodiscard]] bool function(Function& function);
  [[nodiscard]] bool graph(Graph& graph, GraphLinker* outer);
  [[nodiscard]] bool node(Graph& graph, GraphLinker& linker, Node** out = nullptr);
  [[nodiscard]] bool end_of_text();
  bool begins_model();
  using Lexer::at_end;

 private:
  /// One entry of a list of values: `type? name annotation?`.
  struct Entry {
    Text name;
    const Type* type = nullptr;
    std::unique_ptr<ValueInfo> info;
  };
  /// Counts nested graphs and types on the stack.
  struct Depth {
    explicit Depth(int& depth) : depth(depth) { ++depth; }
    ~Depth() { --depth; }
    int& depth;
  };

  // parse_model.cpp
  [[nodiscard]] bool model_header(Model& model);
  [[nodiscard]] bool function_attributes(Function& function);
  [[nodiscard]] bool opset_imports(std::vector<OpsetImport>& out);
  [[nodiscard]] bool training(TrainingInfo& out);
  [[nodiscard]] bool device_configuration(DeviceConfiguration& out);

  // parse_graph.cpp
  [[nodiscard]] bool graph_annotation(Graph& graph);
  [[nodiscard]] bool quantization(QuantizationAnnotation& out);
  [[nodiscard]] bool entry(Entry& out);
  [[nodiscard]] bool inputs(GraphLinker& linker, bool typed);
  [[nodiscard]] bool outputs(GraphLinker& linker, bool typed);
  [[nodiscard]] bool declarations(GraphLinker& linker);
  [[nodiscard]] bool initializer(GraphLinker& linker, const Entry& entry);
  [[nodiscard]] bool node_list(Graph& graph, GraphLinker& linker);

  // parse_node.cpp
  [[nodiscard]] bool names(char close);
  [[nodiscard]] bool qualified(Text& domain, Text& name);
  [[nodiscard]] bool node_attributes(Node* node, GraphLinker& linker);
  [[nodiscard]] bool node_annotation(Node* node);
  [[nodiscard]] bool device(NodeDeviceConfiguration& out);
  [[nodiscard]] bool sharding(ShardingSpec& out);
  [[nodiscard]] bool sharded_dim(ShardedDim& out);

  // parse_attribute.cpp
  /// `annotation? (':' type)? '=' value`, behind the name.
  [[nodiscard]] bool attribute(Attribute& out, Node* node, GraphLinker* linker);
  [[nodiscard]] bool attribute_value(Attribute& out, AttrType expected, Node* node,
                                     GraphLinker* linker);
  [[nodiscard]] bool attribute_list(Attribute& out, Node* node, GraphLinker* linker);
  [[nodiscard]] bool typed_value(Attribute& out);
  [[nodiscard]] bool number_value(Attribute& out, AttrType expected);
  [[nodiscard]] bool append(Attribute& list, Attribute&& item);

  // parse_type.cpp
  bool next_is_type();
  bool fail_type(std::string_view word, size_t at);
  [[nodiscard]] bool type(const Type*& out);
  [[nodiscard]] bool shape(std::vector<Dim>& out);
  [[nodiscard]] bool dim(Dim& out);
  [[nodiscard]] bool opaque(Type& out);
  [[nodiscard]] bool type_annotation(Type& out);

  // parse_tensor.cpp
  /// What stands behind the type and the name: `'='? annotation? ('{' values '}' | '[' external
  /// ']')?`. The name of `out` is set by the caller.
  [[nodiscard]] bool constant(Constant& out, const Type& type);
  [[nodiscard]] bool sparse_constant(SparseConstant& out, const Type& type);
  [[nodiscard]] bool whole_constant(Constant& out, bool& has);
  [[nodiscard]] bool constant_annotation(Constant& out);
  [[nodiscard]] bool constant_values(Constant& out);
  [[nodiscard]] bool strings_of(Constant& out, uint64_t count);
  template <typename T>
  [[nodiscard]] bool numbers_of(Constant& out, uint64_t count);
  [[nodiscard]] bool codes_of(Constant& out, DType dtype, uint64_t count);
  [[nodiscard]] bool dims_of(const Type& type, InlineVector<int64_t, 4>& out);

  // parse_annotation.cpp
  template <typename OnKey>
  [[nodiscard]] bool entries(char close, Keys keys, OnKey&& on_key);
  template <typename OnKey>
  [[nodiscard]] bool annotation(Keys keys, OnKey&& on_key) {
    return !match("@{") || entries('}', keys, on_key);
  }
  /// `[item, ...]`
  template <typename Item>
  [[nodiscard]] bool items(Item&& item);
  template <typename T, typename Item>
  [[nodiscard]] bool list(std::vector<T>& out, Item&& item);
  [[nodiscard]] bool text_value(Text& out);
  [[nodiscard]] bool hex_value(Text& out);
  [[nodiscard]] bool int32_value(int32_t& out);
  [[nodiscard]] bool ints_value(std::vector<int64_t>& out);
  [[nodiscard]] bool texts_value(std::vector<Text>& out);
  [[nodiscard]] bool string_entries(std::vector<StringEntry>& out);
  [[nodiscard]] bool string_entry(StringEntry& out);

  [[nodiscard]] bool charge(size_t bytes) {
    return bytes <= budget_ ? (budget_ -= bytes, true) : too_large();
  }
  /// What one more item of a vector costs: its growth while the old block is still there.
  [[nodiscard]] bool charge_growth(size_t size, size_t capacity, size_t item) {
    if (size < capacity) return true;
    return charge(capacity == 0 ? item + 16 : capacity * item * (capacity < 4096 ? 1 : 2));
  }
  bool too_large();
  [[nodiscard]] bool too_deep();
  /// The one copy of a string that many nodes share.
  Text intern(Text text);

  StoragePtr storage_ptr_;
  size_t budget_;
  int depth_ = 0;
  std::vector<Text> names_;  // of the node being read
  std::string scratch_;
  std::unordered_set<Text> interned_;
  std::unordered_set<const Type*> types_;  // charged for
};

inline constexpr int kMaxDepth = 200;

template <typename OnKey>
bool Parser::entries(char close, Keys keys, OnKey&& on_key) {
  if (match(close)) return true;
  do {
    peek();
    const size_t at = position();
    const std::string_view key = word();
    size_t index = 0;
    while (index < keys.size() && keys[index] != key) ++index;
    if (index == keys.size())
      return fail(key.empty() ? "expected a key, " + found()
                              : "unknown key \"" + std::string(key.substr(0, 40)) + "\"",
                  suggest(key, keys), at);
    match(':');  // a flag has no value
    if (!on_key(index)) return false;
  } while (match(','));
  return expect(close, "after the last entry");
}

template <typename Item>
bool Parser::items(Item&& item) {
  if (!expect('[', "to begin a list")) return false;
  if (match(']')) return true;
  do {
    if (!item()) return false;
  } while (match(','));
  return expect(']', "after the last item");
}

template <typename T, typename Item>
bool Parser::list(std::vector<T>& out, Item&& item) {
  return items([&] {
    if (!charge(2 * sizeof(T))) return false;
    return item(out.emplace_back());
  });
}

}  // namespace tombolo::text
