#include "onnx/reader.h"

#include "base/mapped_file.h"
#include "onnx/decoder.h"
#include "onnx/wire.h"

namespace tombolo {

namespace {

using onnx::WireReader;
using onnx::WireType;

struct Magic {
  std::string_view prefix;
  const char* what;
};
constexpr Magic kMagics[] = {
    {"PK\x03\x04", "a zip archive (.keras, .npz, .pt and .mar files are such)"},
    {"\x89HDF\r\n", "an HDF5 file (Keras .h5?)"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x80\x02", "a Python pickle (PyTorch?)"},
    {"\x80\x04", "a Python pickle"},
    {"\x89PNG", "a PNG picture"},
    {"\xFF\xD8\xFF", "a JPEG picture"},
    {"\x1F\x8B", "a gzip-compressed file"},
    {"version https://git-lfs", "a Git LFS pointer: fetch the file with `git lfs pull`"},
    {"\x7F"
     "ELF",
     "a Linux program"},
    {"%PDF", "a PDF document"},
    {"GGUF", "a GGUF model"},
};

std::string describe(std::string_view bytes) {
  for (const Magic& magic : kMagics)
    if (bytes.starts_with(magic.prefix)) return std::string("it looks like ") + magic.what;
  if (bytes.size() > 8 && bytes.substr(4, 3) == "TFL")
    return "it looks like a TensorFlow Lite model";
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const std::string_view rest = first == bytes.npos ? "" : bytes.substr(first);
  if (rest.starts_with("<")) return "it looks like a web page or XML";
  if (rest.starts_with("{")) return "it looks like JSON";
  return {};
}

/// The wire type of each field of ModelProto that proves something.
bool of_model(const WireReader& reader) {
  switch (reader.field) {
    case 1:
    case 5:
      return reader.type == WireType::kVarint;
    case 2:
    case 3:
    case 4:
    case 6:
    case 7:
    case 8:
    case 14:
    case 20:
    case 25:
    case 26:
      return reader.type == WireType::kBytes;
    default:
      return false;
  }
}

}  // namespace

Status looks_like_onnx(std::string_view bytes) {
  if (bytes.empty()) return parse_error("the file is empty");
  const std::string guess = describe(bytes);
  if (!guess.empty()) return parse_error("not an ONNX model: " + guess);
  WireReader reader(bytes);
  size_t known = 0, foreign = 0;
  bool version = false, telling = false;
  while (known + foreign < 1000 && reader.next()) {
    const bool fits = of_model(reader);
    ++(fits ? known : foreign);
    version = version || (fits && reader.field == 1);
    telling = telling || (fits && (reader.field == 7 || reader.field == 8));
  }
  // A truncated model still counts as one: reading it will say where it breaks off.
  const bool whole = reader.fault == nullptr;
  if (known > foreign && (telling || (version && !whole))) return ok();
  if (known > foreign && version)
    // As TensorFlow's SavedModel, Core ML's Model and CNTK's Dictionary begin, too.
    return parse_error("not an ONNX model: a version, but neither a graph nor operator sets");
  return parse_error("not an ONNX model: the bytes are not those of a ModelProto");
}

Result<std::unique_ptr<Model>> read_onnx(std::string_view bytes, StoragePtr storage) {
  if (bytes.data() == nullptr) bytes = "";
  auto model = std::make_unique<Model>(storage);
  onnx::Decoder decoder(bytes, std::move(storage));
  if (!decoder.model(bytes, *model)) return std::move(decoder.error);
  return model;
}

Result<std::unique_ptr<Model>> load_onnx(const std::string& path) {
  TRY(MappedFile file, MappedFile::open(path));
  if (Status plausible = looks_like_onnx(file.text()); !plausible)
    return std::move(plausible).error().at(file.name());
  auto storage = std::make_shared<Storage>();
  storage->keep(file);
  const size_t slash = path.rfind('/');
  storage->set_folder(slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
  return read_onnx(file.text(), std::move(storage)).at(file.name());
}

}  // namespace tombolo
