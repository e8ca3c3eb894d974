// Equal constants become one, and so do nodes that compute the same of the same values.

#include <algorithm>
#include <map>

#include "passes/passes.h"

namespace tombolo::passes {
namespace {

void put(std::string& key, const void* data, size_t size) {
  const uint64_t length = size;
  key.append(reinterpret_cast<const char*>(&length), sizeof length);
  key.append(static_cast<const char*>(data), size);
}
void put(std::string& key, Text text) { put(key, text.data(), text.size()); }
template <typename T>
void put_number(std::string& key, T number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// The attribute's value as bytes; false where it cannot be compared so.
bool put(std::string& key, const Attribute& attribute, const StoragePtr& storage) {
  put(key, attribute.name);
  put_number(key, attribute.value.index());
  if (const auto* f = std::get_if<float>(&attribute.value))
    put_number(key, *f);
  else if (const auto* i = std::get_if<int64_t>(&attribute.value))
    put_number(key, *i);
  else if (const auto* s = std::get_if<Text>(&attribute.value))
    put(key, *s);
  else if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value))
    put(key, floats->data(), floats->size() * sizeof(float));
  else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value))
    put(key, ints->data(), ints->size() * sizeof(int64_t));
  else if (const auto* texts = std::get_if<std::vector<Text>>(&attribute.value))
    for (const Text text : *texts) put(key, text);
  else if (const Constant* constant = attribute.tensor()) {
    auto tensor = constant->value(storage);
    if (!tensor || tensor->is_string()) return false;
    put_number(key, tensor->dtype());
    put(key, tensor->dims().data(), tensor->dims().size() * sizeof(int64_t));
    put(key, tensor->bytes().data(), tensor->bytes().size());
  } else if (std::holds_alternative<const Type*>(attribute.value)) {
    put_number(key, std::get<const Type*>(attribute.value));
  } else {
    return std::holds_alternative<std::monostate>(attribute.value);
  }
  return !attribute.is_reference();
}

/// True when another node reads all that this one reads; most nodes need not be looked at further.
bool may_have_equal(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(), [](const Value* input) {
    return input == nullptr || input->uses().size() > 1;
  });
}

/// Everything that decides what a node gives, but how many outputs are wanted; false when the node
/// must stay by itself.
bool key_of(Rewriter& rewriter, const Node& node, std::string& key) {
  const OpDecl* decl = rewriter.declaration(node);
  if (decl == nullptr || decl->determinism != Determinism::kDeterministic) return false;
  key.clear();
  put(key, node.op_type());
  put(key, canonical_domain(node.domain()));
  put_number(key, node.opset_override());
  put_number(key, node.inputs().size());
  for (const Value* input : node.inputs()) put_number(key, input);
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes()) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
  for (const Attribute* attribute : attributes)
    if (!put(key, *attribute, rewriter.model().storage_ptr())) return false;
  return true;
}

bool merge(Rewriter& rewriter, Node& first, Node& second) {
  for (size_t i = 0; i < second.outputs().size(); ++i) {
    Value* from = second.output(i);
    if (from == nullptr || !from->has_uses()) continue;
    Value* to = first.output(i);
    if (to == nullptr || !rewriter.replaceable(*from, *to)) return false;
  }
  for (size_t i = 0; i < second.outputs().size(); ++i) {
    Value* from = second.output(i);
    if (from != nullptr && from->has_uses()) rewriter.replace(*from, *first.output(i));
  }
  rewriter.erase(second);
  return true;
}

}  // namespace

Result<size_t> merge_equal_nodes(Rewriter& rewriter) {
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    std::unordered_map<std::string, Node*> seen;
    std::string key;
    for (Node* node : graph.nodes()) {
      if (!may_have_equal(*node) || !key_of(rewriter, *node, key)) continue;
      auto [entry, fresh] = seen.try_emplace(key, node);
      if (fresh) continue;
      if (entry->second->outputs().size() < node->outputs().size()) {
        entry->second = node;
        continue;
      }
      count += merge(rewriter, *entry->second, *node);
    }
  });
  return count;
}

/// Of some of the bytes: equal weights agree in them, others differ there as a rule, and reading
/// all of a large model costs more than everything else that is done to it. Of a large weight in
/// two places: each takes a page of the file, and where weights agree there, a comparison finds out
/// soon.
static size_t hash_of_samples(std::string_view bytes) {
  constexpr size_t kWhole = 8192, kSample = 64;
  const std::hash<std::string_view> hash;
  if (bytes.size() <= kWhole) return hash(bytes);
  return hash(bytes.substr(0, kSample)) * 31 + hash(bytes.substr(bytes.size() / 2, kSample));
}

Result<size_t> merge_equal_constants(Rewriter& rewriter) {
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    // Weights are read only where another one of the same type and shape exists.
    std::map<std::string, std::vector<Value*>> groups;
    for (Value* value : graph.initializers()) {
      if (value->is_input() || value->output_uses() != 0 || !value->has_uses()) continue;
      const Constant& constant = *value->initializer();
      if (constant.deferred() != nullptr) continue;
      std::string key;
      put_number(key, constant.data_type);
      put(key, constant.dims.data(), constant.dims.size() * sizeof(int64_t));
      groups[key].push_back(value);
    }
    for (auto& [key, values] : groups) {
      if (values.size() < 2) continue;
      std::unordered_multimap<size_t, Value*> seen;
      for (Value* value : values) {
        auto tensor = value->initializer()->value(rewriter.model().storage_ptr());
        if (!tensor || tensor->is_string()) continue;
        const auto bytes = tensor->bytes();
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const size_t hash = hash_of_samples(text);
        Value* same = nullptr;
        const auto range = seen.equal_range(hash);
        for (auto at = range.first; at != range.second && same == nullptr; ++at) {
          auto other = at->second->initializer()->value(rewriter.model().storage_ptr());
          if (other && *other == *tensor) same = at->second;
        }
        rewriter.model().storage().release(text);
        if (same == nullptr) {
          seen.emplace(hash, value);
          continue;
        }
        rewriter.replace(*value, *same);
        graph.remove_initializer(value);
        ++count;
      }
    }
  });
  return count;
}

}  // namespace tombolo::passes
