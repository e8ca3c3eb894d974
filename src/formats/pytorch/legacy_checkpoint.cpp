// Checkpoints before PyTorch 1.6: five pickles in a row, then the storages; and the tar archives of
// the 0.1 series.

#include <algorithm>
#include <unordered_map>

#include "formats/common/byte_reader.h"
#include "formats/pytorch/checkpoint.h"

namespace tombolo::torch {

namespace {

using Kind = PickleValue::Kind;

// 0x1950a86a20f9469cfc6c, little-endian.
constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);

/// A key as text, whether it was pickled as text or as a number.
std::string key_of(const PickleValue* value) {
  if (value == nullptr) return "";
  if (value->is_text()) return std::string(value->text);
  return value->is(Kind::kInt) ? std::to_string(value->integer) : "";
}

class LegacyStorages final : public StorageSource {
 public:
  std::unordered_map<std::string, TorchStorage> storages;
  bool big_endian = false;

  Result<TorchStorage> storage(const PickleValue& id) override {
    // ("storage", type, key, device, number of elements, view): view is None or (key, offset, size)
    const PickleValue *type = id.at(1), *key = id.at(2), *view = id.at(5);
    if (!type || !key) return parse_error("a reference to a storage that is incomplete");
    const auto found = storages.find(key_of(key));
    if (found == storages.end())
      return parse_error("storage \"" + key_of(key) + "\" is not in the file");
    TorchStorage storage = found->second;
    storage.big_endian = big_endian;
    storage.type = type->is(Kind::kGlobal) ? element_type_of_storage(type->text) : nullptr;
    if (storage.type == nullptr) return unsupported("storages of type " + type->qualified_name());
    if (view != nullptr && view->items.size() >= 3) {
      const auto offset = view->at(1)->as_int(), size = view->at(2)->as_int();
      const uint64_t width = storage.type->bits / 8;
      const uint64_t capacity = width ? storage.blob.bytes.size() / width : 0;
      if (!offset || !size || *offset < 0 || *size < 0 ||
          static_cast<uint64_t>(*offset) > capacity ||
          static_cast<uint64_t>(*size) > capacity - static_cast<uint64_t>(*offset))
        return parse_error("a view beyond its storage");
      storage.blob.bytes = storage.blob.bytes.subspan(static_cast<uint64_t>(*offset) * width,
                                                      static_cast<uint64_t>(*size) * width);
    }
    return storage;
  }
};

/// Types of the storages that a pickle refers to, by key: how many bytes an element takes.
void find_storage_types(const PickleValue& root,
                        std::unordered_map<std::string, const ElementType*>& types) {
  // Iterative, each node once.
  std::vector<const PickleValue*> stack = {&root};
  std::unordered_map<const PickleValue*, bool> seen;
  while (!stack.empty()) {
    const PickleValue* value = stack.back();
    stack.pop_back();
    if (value == nullptr || !seen.emplace(value, true).second) continue;
    if (value->is(Kind::kPersistent)) {
      const PickleValue &id = *value->callable, *type = id.at(1);
      if (type != nullptr && type->is(Kind::kGlobal))
        types[key_of(id.at(2))] = element_type_of_storage(type->text);
      continue;
    }
    stack.insert(stack.end(), value->items.begin(), value->items.end());
    stack.insert(stack.end(), value->entries.begin(), value->entries.end());
    stack.push_back(value->state);
  }
}

/// One storage as PyTorch writes it to a file: its number of elements, then its bytes.
Result<Blob> read_storage(const Blob& file, size_t& at, const ElementType* type) {
  ByteReader in(file.bytes.subspan(at));
  const uint64_t count = in.u64();
  const uint64_t bits = type ? type->bits : 8;
  if (!in.ok() || count > in.left() * 8 / bits)
    return parse_error("a storage ends beyond the file, which may be truncated");
  const uint64_t size = (count * bits + 7) / 8;
  at += 8 + size;
  return Blob{in.take(size), file.owner};
}

}  // namespace

bool is_legacy_checkpoint(std::span<const std::byte> bytes) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 64));
  return head.size() > 4 && head[0] == '\x80' && head.find(kMagic) != std::string_view::npos;
}

Result<std::vector<Weight>> read_legacy_checkpoint(const Blob& file, bool data) {
  size_t at = 0;
  auto next = [&]() -> Result<Pickle> {
    auto pickle = Pickle::parse(file.bytes.subspan(at), file.owner);
    if (pickle.ok()) at += pickle->size();
    return pickle;
  };
  TRY(Pickle magic, next());
  TRY(Pickle version, next());
  if (version.root().as_int().value_or(0) != 1001)
    return unsupported("a checkpoint of an unknown protocol version");
  TRY(Pickle system, next());
  TRY(Pickle object, next());
  TRY(Pickle keys, next());
  LegacyStorages storages;
  const PickleValue* little = system.root().find("little_endian");
  storages.big_endian = little != nullptr && little->as_int().value_or(1) == 0;
  std::unordered_map<std::string, const ElementType*> types;
  find_storage_types(object.root(), types);
  for (const PickleValue* key : keys.root().items) {
    const std::string name = key_of(key);
    const auto type = types.find(name);
    TorchStorage storage;
    TRY(storage.blob, read_storage(file, at, type == types.end() ? nullptr : type->second));
    storages.storages.emplace(name, std::move(storage));
  }
  TensorReader reader(storages, object.owner(), data);
  return collect_weights(object.root(), reader);
}

namespace {

constexpr size_t kBlock = 512;

/// The members of a tar archive: plain files with short names, as Python's tarfile wrote them.
Result<std::unordered_map<std::string, std::span<const std::byte>>> read_tar(
    std::span<const std::byte> bytes) {
  std::unordered_map<std::string, std::span<const std::byte>> members;
  size_t at = 0;
  while (at + kBlock <= bytes.size()) {
    const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + at, kBlock);
    if (header[0] == '\0') break;
    const std::string_view field = header.substr(0, 100);
    const std::string name(field.substr(0, std::min(field.find('\0'), field.size())));
    uint64_t size = 0;
    for (const char c : header.substr(124, 11))
      if (c >= '0' && c <= '7') size = size * 8 + static_cast<uint64_t>(c - '0');
    at += kBlock;
    if (size > bytes.size() - at)
      return parse_error("tar member \"" + name + "\" ends beyond the file");
    if (header[156] == '0' || header[156] == '\0') members[name] = bytes.subspan(at, size);
    at += (size + kBlock - 1) / kBlock * kBlock;
  }
  return members;
}

}  // namespace

bool is_tar_checkpoint(std::span<const std::byte> bytes) {
  if (bytes.size() < kBlock) return false;
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), kBlock);
  if (head.substr(257, 5) != "ustar") return false;
  auto members = read_tar(bytes);
  return members.ok() && members->contains("storages") && members->contains("tensors") &&
         members->contains("pickle");
}

Result<std::vector<Weight>> read_tar_checkpoint(const Blob& file, bool data) {
  TRY(auto members, read_tar(file.bytes));
  size_t at = 0;
  Blob part;
  auto next = [&]() -> Result<Pickle> {
    auto pickle = Pickle::parse(part.bytes.subspan(at), part.owner);
    if (pickle.ok()) at += pickle->size();
    return pickle;
  };
  // Storages: a count, then for each (key, device, type), the number of elements and the bytes.
  part = {members["storages"], file.owner};
  std::unordered_map<std::string, TorchStorage> storages;
  TRY(Pickle storage_count, next());
  const int64_t count = storage_count.root().as_int().value_or(0);
  for (int64_t i = 0; i < count; ++i) {
    TRY(Pickle entry, next());
    const PickleValue* type = entry.root().at(2);
    TorchStorage storage;
    if (type && type->is(Kind::kGlobal)) storage.type = element_type_of_storage(type->text);
    if (storage.type == nullptr) return unsupported("a storage of an unknown type");
    TRY(storage.blob, read_storage(part, at, storage.type));
    storages.emplace(key_of(entry.root().at(0)), std::move(storage));
  }
  TRY(Pickle views, next());
  for (const PickleValue* view : views.root().items) {
    const auto root = storages.find(key_of(view->at(1)));
    if (view->items.size() < 4 || root == storages.end())
      return parse_error("a view of a storage that is not in the file");
    const uint64_t width = root->second.type->bits / 8;
    const auto offset = static_cast<uint64_t>(view->at(2)->as_int().value_or(-1)) * width;
    const auto size = static_cast<uint64_t>(view->at(3)->as_int().value_or(-1)) * width;
    TorchStorage storage = root->second;
    if (offset > storage.blob.bytes.size() || size > storage.blob.bytes.size() - offset)
      return parse_error("a view beyond its storage");
    storage.blob.bytes = storage.blob.bytes.subspan(offset, size);
    storages.insert_or_assign(key_of(view->at(0)), std::move(storage));
  }
  // Tensors: a count, then for each (key, storage, type), rank, sizes, strides and offset.
  part = {members["tensors"], file.owner};
  at = 0;
  std::unordered_map<std::string, TorchTensor> tensors;
  TRY(Pickle tensor_count, next());
  const int64_t total = tensor_count.root().as_int().value_or(0);
  for (int64_t i = 0; i < total; ++i) {
    TRY(Pickle entry, next());
    const auto storage = storages.find(key_of(entry.root().at(1)));
    ByteReader in(part.bytes.subspan(at));
    const uint32_t rank = in.u32();
    in.skip(4);
    if (storage == storages.end() || rank > 64) return parse_error("a damaged tensor record");
    TorchTensor tensor;
    tensor.storage = storage->second;
    tensor.type = storage->second.type;
    for (uint32_t k = 0; k < rank; ++k) tensor.sizes.push_back(static_cast<int64_t>(in.u64()));
    for (uint32_t k = 0; k < rank; ++k) tensor.strides.push_back(static_cast<int64_t>(in.u64()));
    tensor.offset = static_cast<int64_t>(in.u64());
    if (!in.ok()) return parse_error("a tensor record ends beyond the file");
    at += in.position();
    tensors.emplace(key_of(entry.root().at(0)), std::move(tensor));
  }
  // The object refers to tensors and storages by their keys.
  TRY(Pickle object, Pickle::parse(members["pickle"], file.owner));
  struct Keyed final : StorageSource {
    const std::unordered_map<std::string, TorchTensor>* tensors;
    Result<TorchStorage> storage(const PickleValue&) override {
      return parse_error("a storage where a tensor should be");
    }
    const TorchTensor* tensor(const PickleValue& id) override {
      const auto found = tensors->find(key_of(&id));
      return found == tensors->end() ? nullptr : &found->second;
    }
  } keyed;
  keyed.tensors = &tensors;
  TensorReader reader(keyed, object.owner(), data);
  return collect_weights(object.root(), reader);
}

}  // namespace tombolo::torch
