#include "formats/pytorch/checkpoint.h"

#include <cctype>
#include <charconv>

#include "formats/common/deflate.h"
#include "formats/weights/shards.h"

namespace tombolo::torch {

namespace {

using Kind = PickleValue::Kind;

/// The folder of the archive that holds data.pkl.
std::string root_of(const ZipArchive& zip) {
  for (const std::string_view name : {"data.pkl", "constants.pkl", "bytecode.pkl", "version"})
    for (const ZipArchive::Member& member : zip.members()) {
      const size_t slash = member.name.find('/');
      if (slash == std::string::npos) continue;
      if (std::string_view(member.name).substr(slash + 1) == name)
        return member.name.substr(0, slash + 1);
    }
  return "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

}  // namespace

Result<TorchArchive> TorchArchive::open(Blob file) {
  TorchArchive archive;
  TRY(archive.zip_, ZipArchive::open(file.bytes, file.owner));
  archive.root_ = root_of(archive.zip_);
  if (archive.find("byteorder")) {
    TRY(Blob order, archive.read("byteorder"));
    archive.big_endian_ = trimmed(order.text()) == "big";
  }
  for (const std::string_view name : {"version", ".data/version"}) {
    if (!archive.find(name)) continue;
    TRY(Blob text, archive.read(name));
    const std::string_view digits = trimmed(text.text());
    std::from_chars(digits.data(), digits.data() + digits.size(), archive.version_);
    break;
  }
  return archive;
}

const ZipArchive::Member* TorchArchive::find(std::string_view name) const {
  return zip_.find(root_ + std::string(name));
}

Result<Blob> TorchArchive::read(std::string_view name) const {
  const ZipArchive::Member* member = find(name);
  if (member == nullptr) return parse_error("the archive has no \"" + std::string(name) + "\"");
  if (verify_) CHECK_OK(zip_.verify(*member));
  return zip_.read(*member);
}

Result<Pickle> TorchArchive::pickle(std::string_view name) const {
  TRY(Blob blob, read(name));
  auto pickle = Pickle::parse(blob.bytes, blob.owner);
  if (!pickle.ok()) return std::move(pickle).error().at("\"" + std::string(name) + "\"");
  return pickle;
}

Result<TorchStorage> TorchArchive::storage(const PickleValue& id) {
  // ("storage", type, key, device, number of elements)
  const PickleValue *type = id.at(1), *key = id.at(2), *count = id.at(4);
  if (!type || !key || !key->is_text() || !count || !count->as_int())
    return parse_error("a reference to a storage that is incomplete");
  TorchStorage storage;
  storage.big_endian = big_endian_;
  if (type->is(Kind::kGlobal)) storage.type = element_type_of_storage(type->text);
  if (storage.type == nullptr && !(type->is(Kind::kGlobal) && type->text == "UntypedStorage"))
    return unsupported("storages of type " + type->qualified_name());
  TRY(storage.blob, read(storage_folder_ + std::string(key->text)));
  const int64_t bits = storage.type ? storage.type->bits : 8;
  const auto size = static_cast<uint64_t>(*count->as_int());
  if (*count->as_int() < 0 || size > storage.blob.bytes.size() * 8 / static_cast<uint64_t>(bits))
    return parse_error("storage \"" + std::string(key->text) + "\" is shorter than it should be");
  return storage;
}

Result<std::vector<Weight>> read_checkpoint(Blob file, bool data) {
  if (is_deflated(file.bytes)) {  // joblib compresses whole files
    constexpr uint64_t kMost = uint64_t{1} << 32;
    TRY(file, inflated(file.bytes, Deflate::kZlibGzip, kMost));
  }
  if (!ZipArchive::probe(file.bytes)) {
    if (is_tar_checkpoint(file.bytes)) return read_tar_checkpoint(file, data);
    if (is_legacy_checkpoint(file.bytes)) return read_legacy_checkpoint(file, data);
    // A pickle alone: NumPy arrays, as a rule.
    struct None final : StorageSource {
      Result<TorchStorage> storage(const PickleValue&) override {
        return parse_error("a pickle that refers to storages outside of itself");
      }
    } none;
    TRY(Pickle pickle, Pickle::parse(file.bytes, file.owner));
    TensorReader reader(none, pickle.owner(), data);
    return collect_weights(pickle.root(), reader);
  }
  TRY(TorchArchive archive, TorchArchive::open(file));
  if (!archive.find("data.pkl")) return parse_error("the archive has no data.pkl");
  TRY(Pickle pickle, archive.pickle("data.pkl"));
  archive.set_verify(data);
  TensorReader reader(archive, pickle.owner(), data);
  return collect_weights(pickle.root(), reader);
}

int probe_checkpoint(const Source& source) {
  if (source.is_folder)
    return is_distributed_checkpoint(source.path) || find_index(source.path, ".bin") ? 3 : 0;
  if (is_index_of(source, ".bin")) return 3;
  const auto bytes = source.file.bytes();
  if (is_legacy_checkpoint(bytes) || is_tar_checkpoint(bytes)) return 3;
  if (ZipArchive::probe(bytes)) {
    auto zip = ZipArchive::open(bytes, source.file.owner());
    if (!zip) {
      for (const std::string_view ending : {".pt", ".pth", ".bin", ".ckpt"})
        if (source.path.ends_with(ending)) return 1;
      return 0;
    }
    const std::string root = root_of(*zip);
    return !root.empty() && zip->find(root + "data.pkl") != nullptr ? 2 : 0;
  }
  if (is_deflated(bytes)) {
    const std::string head = inflated_head(bytes, 64);
    return Pickle::probe(std::as_bytes(std::span<const char>(head))) ? 1 : 0;
  }
  return Pickle::probe(bytes) ? 1 : 0;
}

Result<std::unique_ptr<Model>> load_checkpoint(const Source& source, const LoadOptions& options) {
  const bool data = !options.headers_only;
  auto storage = std::make_shared<Storage>();
  std::vector<Weight> weights;
  if (source.is_folder && is_distributed_checkpoint(source.path)) {
    TRY(weights, read_distributed_checkpoint(source.path, data, *storage));
  } else if (source.is_folder || is_index_of(source, ".bin")) {
    TRY(weights,
        read_shards(source, ".bin", [&](const MappedFile& file) -> Result<std::vector<Weight>> {
          storage->keep(file);
          return read_checkpoint({file.bytes(), file.owner()}, data);
        }));
  } else {
    storage->keep(source.file);
    TRY(weights, read_checkpoint({source.file.bytes(), source.file.owner()}, data));
    // Verifying checksums touched every page.
    source.file.release_pages(source.file.bytes());
  }
  if (weights.empty())
    return unsupported("the file holds no tensors")
        .with_help("a checkpoint is what torch.save writes of a state_dict or a module");
  return weights_model(std::move(weights), std::move(storage), "pytorch");
}

}  // namespace tombolo::torch
