#pragma once

// The printer behind printer.h. Split over print_*.cpp by subject. Internal.

#include <span>
#include <string>

#include "ir/text/number.h"
#include "ir/text/printer.h"

namespace tombolo::text {

class Printer {
 public:
  Printer(TextSink* sink, const PrintOptions& options) : sink_(sink), options_(options) {}

  void model(const Model& model);
  void function(const Function& function);
  void graph(const Graph& graph);
  void node(const Node& node);
  Status finish();
  std::string take() { return std::move(buffer_); }  ///< without a sink: all of it

 private:
  /// `@{key: value, ...}`, begun with the first key and ended by the destructor.
  class Annotation {
   public:
    explicit Annotation(Printer& printer, std::string_view open = " @{",
                        std::string_view close = "}", std::string_view separator = ", ")
        : printer_(printer), open_(open), close_(close), separator_(separator) {}
    ~Annotation() {
      if (!empty_) printer_.put(close_);
    }
    Annotation(const Annotation&) = delete;
    Annotation& operator=(const Annotation&) = delete;
    void flag(std::string_view key) {
      printer_.put(empty_ ? open_ : separator_);
      printer_.put(key);
      empty_ = false;
    }
    void key(std::string_view key) {
      flag(key);
      printer_.put(": ");
    }
    void text(std::string_view name, Text value) {  // absent: nothing
      if (!present(value)) return;
      key(name);
      printer_.quoted(value);
    }
    void hex(std::string_view name, Text bytes) {
      if (bytes.empty()) return;
      key(name);
      printer_.hex(bytes);
    }
    void number(std::string_view name, int64_t value) {
      key(name);
      printer_.number(value);
    }
    void entries(std::string_view name, const std::vector<StringEntry>& entries) {
      if (entries.empty()) return;
      key(name);
      printer_.entries(entries);
    }
    bool empty() const { return empty_; }

   private:
    Printer& printer_;
    std::string_view open_, close_, separator_;
    bool empty_ = true;
  };

  // printer.cpp
  void put(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kFlush && sink_ != nullptr) flush();
  }
  void put(char c) { buffer_ += c; }
  void flush();
  void line(int indent);
  template <typename T>
  void number(T value) {
    char text[kMaxNumberText];
    put(std::string_view(text, static_cast<size_t>(write_number(text, value) - text)));
  }
  void quoted(Text text);
  void name(Text text);
  /// Words with dots between stand as they are; anything else is quoted as a whole.
  void qualified(Text text);
  void value_name(const Value* value) { name(value != nullptr ? value->name() : Text("")); }
  void hex(std::string_view bytes);
  void entries(const std::vector<StringEntry>& entries);
  void integers(std::span<const int64_t> values);
  template <typename List, typename Item>
  void list(const List& items, std::string_view separator, Item&& item) {
    std::string_view next;
    for (const auto& one : items) {
      put(next);
      item(one);
      next = separator;
    }
  }

  // print_model.cpp
  void opset_imports(const std::vector<OpsetImport>& imports);
  void training(const TrainingInfo& info);

  // print_graph.cpp
  void graph_annotation(const Graph& graph);
  void entry(Text name, const Type* type, const ValueInfo* info);
  void declarations(const Graph& graph);
  void node_list(const Graph& graph);
  void initializer(const Value& value);
  void op_type(const Node& node);
  void node_attributes(const Node& node);
  void node_annotation(const Node& node);
  void device(const NodeDeviceConfiguration& device);
  void sharding(const ShardingSpec& spec);

  // print_value.cpp
  void attribute(const Attribute& attribute);
  void attribute_value(const Attribute& attribute);
  void type(const Type* type);
  void tensor_type(int32_t elem_type, bool has_elem_type, bool has_shape, bool annotate);
  void type_annotation(const Type& type);
  void dim(const Dim& dim);
  void opaque(const Type& type);

  // print_tensor.cpp
  void constant_type(const Constant& constant);
  /// ` = data` for an initialiser, ` data` for an attribute.
  void constant_data(const Constant& constant, bool initializer);
  void named_constant(const Constant& constant);
  void sparse(const SparseConstant& constant, Text name, bool initializer);
  void elements(const Tensor& tensor);

  static constexpr size_t kFlush = 1 << 16;
  TextSink* sink_;
  PrintOptions options_;
  std::string buffer_;
  Status status_ = ok();
  int indent_ = 0;
  StoragePtr storage_;  // of the graph being printed
};

bool is_word(Text text);
/// The word begins a type (or is a number): as a name it must be quoted where both may stand.
bool is_reserved(Text word);

}  // namespace tombolo::text
