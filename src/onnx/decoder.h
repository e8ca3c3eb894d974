#pragma once

// Decoder: wire bytes -> IR, one method a message. Internal to onnx/; reader.h is the interface.
//
// Methods return false after setting `error`; callers on the way out put their place in front.
// Text that is read is a view of the bytes. What does not fit (unknown fields, known fields of
// another wire type, a second member of a oneof-like pair) goes to `unknown`, as wire bytes.

#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ir/name_table.h"
#include "onnx/wire.h"

namespace tombolo::onnx {

/// Graphs in graphs and types in types beyond this depth are refused: nothing real comes near, and
/// code that walks a model may recurse.
inline constexpr int kMaxDepth = 100;

class Decoder {
 public:
  Decoder(std::string_view file, StoragePtr storage);

  Error error;

  bool model(std::string_view bytes, Model& model);
  bool constant(std::string_view bytes, Constant& constant);
  bool sparse(std::string_view bytes, SparseConstant& sparse);
  bool type(std::string_view bytes, const Type*& type, int depth = 0);
  bool entry(std::string_view bytes, StringEntry& entry);

  /// What became of a field.
  enum class Took : uint8_t { kYes, kNo, kFailed };

  /// Calls handle(reader) for every field; those it does not take are added to `unknown`.
  template <typename Handle>
  bool fields(std::string_view message, Pieces& unknown, Handle&& handle) {
    WireReader reader(message);
    while (reader.next()) {
      const Took took = handle(reader);
      if (took == Took::kYes) continue;
      if (took == Took::kFailed) return false;
      unknown.add(reader.slice());
    }
    return reader.fault == nullptr || malformed(reader);
  }
  template <typename Handle>
  bool fields(std::string_view message, Text& unknown, Handle&& handle) {
    Pieces pieces;
    if (!fields(message, pieces, handle)) return false;
    unknown = pieces.text(*storage_);
    return true;
  }
  /// Puts `place` in front of the error's path. Returns false, to be returned.
  bool at(std::string place);

  template <typename Integer>
  static Took number(const WireReader& reader, Integer& out, bool& has) {
    if (reader.type != WireType::kVarint) return Took::kNo;
    out = static_cast<Integer>(reader.number);
    has = true;
    return Took::kYes;
  }
  /// A repeated integer, packed or not.
  template <typename List>
  Took integers(const WireReader& reader, List& out);
  /// Sets `error` from the reader's fault; false.
  bool malformed(const WireReader& reader);

 private:
  /// A subgraph met in an attribute: read when the graph around it is complete, because names in
  /// it may mean values that the outer graph defines later in the file.
  struct Pending {
    Graph* graph;
    std::string_view bytes;
    std::string place;
  };
  struct Unresolved {
    Node* node;
    uint32_t index;
    Text name;
  };

  /// A graph being read.
  struct Scope {
    Scope(Graph& of, const Scope* around) : graph(&of), outer(around) {}
    Graph* graph;
    const Scope* outer;
    NameTable names;
    std::vector<Unresolved> unresolved;
    std::vector<Pending> pending;
    /// Content and whole field of each value_info entry.
    std::vector<std::pair<std::string_view, std::string_view>> value_infos;
  };

  static Took text(const WireReader& reader, Text& out) {
    if (reader.type != WireType::kBytes) return Took::kNo;
    out = reader.bytes;
    return Took::kYes;
  }
  static Took piece(const WireReader& reader, Pieces& out) {
    if (reader.type != WireType::kBytes) return Took::kNo;
    out.add(reader.bytes);
    return Took::kYes;
  }
  static Took took(bool fine) { return fine ? Took::kYes : Took::kFailed; }
  Took texts(const WireReader& reader, std::vector<Text>& out);
  Took floats(const WireReader& reader, std::vector<float>& out);
  Took entries(const WireReader& reader, std::vector<StringEntry>& out);
  /// A repeated message.
  template <typename Item, typename Read>
  Took items(const WireReader& reader, std::vector<Item>& out, const char* what, Read&& read);

  bool dim(std::string_view bytes, Dim& dim);
  bool shape(std::string_view bytes, Type& type);
  bool type_member(std::string_view bytes, Type& type, int depth);
  bool constant_data(std::string_view bytes, uint32_t main_field, Constant& constant,
                     Pieces& unknown);
  bool opset_import(std::string_view bytes, OpsetImport& import);
  bool value_info(std::string_view bytes, ValueInfo& info);
  bool attribute(std::string_view bytes, Attribute& attribute, Graph& home, Node* parent,
                 std::vector<Pending>& pending);
  Took attribute_member(const WireReader& reader, Attribute& attribute, Pieces& message);
  bool attribute_message(std::string_view bytes, Attribute& attribute, Graph& home, Node* parent,
                         std::vector<Pending>& pending);
  bool device_configuration(std::string_view bytes, NodeDeviceConfiguration& out);
  bool sharding(std::string_view bytes, ShardingSpec& out);
  bool sharded_dim(std::string_view bytes, ShardedDim& out);
  bool simple_sharding(std::string_view bytes, ShardedDim::Simple& out);

  bool graph(std::string_view bytes, Graph& graph, const Scope* outer, int depth);
  bool node(std::string_view bytes, Scope& scope);
  bool graph_input(std::string_view bytes, Scope& scope);
  bool initializer(std::string_view bytes, Scope& scope);
  bool sparse_initializer(std::string_view bytes, Scope& scope);
  Took keep_value_info(const WireReader& reader, Scope& scope);
  /// Resolves what was left open, then reads the value infos.
  bool settle(Scope& scope, Pieces& unknown);
  bool subgraphs(Scope& scope, int depth);
  bool graph_output(std::string_view bytes, Scope& scope);
  bool annotate(std::string_view bytes, std::string_view slice, Scope& scope, Pieces& unknown);
  Value* resolve(Text name, Scope& scope);
  Value* define(Text name, Scope& scope);
  bool function(std::string_view bytes, Function& function);
  bool training(std::string_view bytes, TrainingInfo& training);
  bool device(std::string_view bytes, DeviceConfiguration& device);

  /// Accounts for memory that the model will take beyond the file itself.
  bool spend(size_t bytes) {
    spent_ += bytes;
    return spent_ <= allowance_ || too_large();
  }
  bool too_large();

  std::string_view file_;
  StoragePtr storage_;
  size_t spent_ = 0;
  size_t allowance_;
  std::vector<Text> inputs_, outputs_;  // of the node being read
  std::vector<std::string_view> attributes_;
};

template <typename List>
Decoder::Took Decoder::integers(const WireReader& reader, List& out) {
  using Integer = std::decay_t<decltype(*out.data())>;
  if (reader.type == WireType::kVarint) {
    if (!spend(sizeof(Integer))) return Took::kFailed;
    out.push_back(static_cast<Integer>(reader.number));
    return Took::kYes;
  }
  if (reader.type != WireType::kBytes) return Took::kNo;
  uint64_t value = 0;
  unsigned shift = 0;
  for (const char c : reader.bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (shift >= 70) break;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    if (!spend(sizeof(Integer))) return Took::kFailed;
    out.push_back(static_cast<Integer>(value));
    value = 0;
    shift = 0;
  }
  if (shift == 0) return Took::kYes;
  error = parse_error("a packed list of numbers has a malformed number");
  return Took::kFailed;
}

template <typename Item, typename Read>
Decoder::Took Decoder::items(const WireReader& reader, std::vector<Item>& out, const char* what,
                             Read&& read) {
  if (reader.type != WireType::kBytes) return Took::kNo;
  if (!spend(sizeof(Item))) return Took::kFailed;
  out.emplace_back();
  if (read(reader.bytes, out.back())) return Took::kYes;
  at(std::string(what) + " " + std::to_string(out.size() - 1));
  return Took::kFailed;
}

}  // namespace tombolo::onnx
