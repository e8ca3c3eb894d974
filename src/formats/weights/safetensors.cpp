#include "formats/weights/safetensors.h"

#include <algorithm>
#include <unordered_map>

#include "base/output_file.h"
#include "formats/common/byte_reader.h"
#include "formats/common/json_view.h"
#include "formats/weights/shards.h"

namespace tombolo {

namespace {

constexpr uint64_t kMaxHeader = uint64_t{100} << 20;  // the format's own limit

struct Row {
  std::string_view name;
  DType dtype;
};
// Names that are read; the first one of a type is the one that is written.
constexpr Row kRows[] = {
    {"BOOL", DType::kBool},
    {"U8", DType::kUInt8},
    {"I8", DType::kInt8},
    {"U16", DType::kUInt16},
    {"I16", DType::kInt16},
    {"U32", DType::kUInt32},
    {"I32", DType::kInt32},
    {"U64", DType::kUInt64},
    {"I64", DType::kInt64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"C64", DType::kComplex64},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E4M3FN", DType::kFloat8E4M3FN},
    {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"F8_E5M2", DType::kFloat8E5M2},
    {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"F8_E8M0", DType::kFloat8E8M0},
    {"F4", DType::kFloat4E2M1},
    {"F6_E2M3", DType::kFloat6E2M3},
    {"F6_E3M2", DType::kFloat6E3M2},
};

DType dtype_of(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return DType::kUndefined;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Error damaged(const std::string& what) { return parse_error("damaged safetensors file: " + what); }

/// The JSON header, when the bytes begin as a safetensors file does.
std::string_view header_text(std::span<const std::byte> bytes) {
  if (bytes.size() < 10) return {};
  ByteReader in(bytes);
  const uint64_t size = in.u64();
  if (size < 2 || size > kMaxHeader || size > in.left()) return {};
  return in.text(size);
}

}  // namespace

Result<std::vector<Weight>> read_safetensors(std::span<const std::byte> bytes,
                                             const std::shared_ptr<const void>& owner,
                                             WeightMetadata* metadata) {
  const std::string_view header = header_text(bytes);
  if (header.empty()) return damaged("its header does not fit; the file may be truncated");
  auto parsed = JsonDocument::parse(header);
  if (!parsed.ok()) return std::move(parsed).error().at("header");
  const Json root = parsed->root();
  if (!root.is_object()) return damaged("its header is no JSON object");
  const auto data = bytes.subspan(8 + header.size());

  struct Entry {
    uint64_t begin = 0, end = 0;
    Weight weight;
  };
  std::vector<Entry> entries;
  for (size_t i = 0; i < root.size(); ++i) {
    const Json value = root.member(i);
    if (root.key(i) == "__metadata__") {
      for (size_t k = 0; metadata != nullptr && k < value.size(); ++k)
        metadata->emplace_back(value.key(k), value.member(k).string_or(""));
      continue;
    }
    Entry entry;
    entry.weight.name = std::string(root.key(i));
    const std::string place = "tensor \"" + entry.weight.name + "\"";
    const std::string_view type = value["dtype"].string_or("");
    const DType dtype = dtype_of(type);
    if (dtype == DType::kUndefined)
      return unsupported("element type \"" + std::string(type) + "\"").at(place);
    const auto shape = value["shape"].as_ints(), range = value["data_offsets"].as_ints();
    const int64_t count = shape ? element_count(*shape) : -1;
    if (count < 0 || !range || range->size() != 2 || (*range)[0] < 0 || (*range)[1] < (*range)[0])
      return damaged("impossible shape or offsets").at(place);
    entry.begin = static_cast<uint64_t>((*range)[0]);
    entry.end = static_cast<uint64_t>((*range)[1]);
    if (entry.end > data.size())
      return damaged("its data end beyond the file, which may be truncated").at(place);
    const auto size = packed_bytes(dtype, static_cast<uint64_t>(count));
    if (!size || *size != entry.end - entry.begin)
      return damaged("its data are not of the size that type and shape need").at(place);
    entry.weight.dtype = dtype;
    entry.weight.dims = *shape;
    entry.weight.tensor =
        Tensor::view(dtype, *shape, data.subspan(entry.begin, entry.end - entry.begin), owner);
    entries.push_back(std::move(entry));
  }
  // The format wants the data to be without holes and overlaps: nothing hides in the file.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t at = 0;
  std::vector<Weight> weights;
  for (Entry& entry : entries) {
    if (entry.begin != at) return damaged("tensors overlap, or leave bytes unused");
    at = entry.end;
    weights.push_back(std::move(entry.weight));
  }
  if (at != data.size()) return damaged("bytes stand behind the last tensor");
  return weights;
}

int probe_safetensors(const Source& source) {
  if (source.is_folder) return find_index(source.path, ".safetensors") ? 3 : 0;
  if (is_index_of(source, ".safetensors")) return 3;
  const std::string_view header = header_text(source.file.bytes());
  const bool plausible = header.size() >= 2 && header.front() == '{';
  if (plausible) return 3;
  return source.path.ends_with(".safetensors") ? 1 : 0;
}

Result<std::unique_ptr<Model>> load_safetensors(const Source& source, const LoadOptions&) {
  auto storage = std::make_shared<Storage>();
  WeightMetadata metadata;
  std::vector<Weight> weights;
  if (source.is_folder || is_index_of(source, ".safetensors")) {
    TRY(weights, read_shards(source, ".safetensors",
                             [&](const MappedFile& file) -> Result<std::vector<Weight>> {
                               storage->keep(file);
                               return read_safetensors(file.bytes(), file.owner());
                             }));
  } else {
    storage->keep(source.file);
    TRY(weights, read_safetensors(source.file.bytes(), source.file.owner(), &metadata));
  }
  return weights_model(std::move(weights), std::move(storage), "safetensors", metadata);
}

Status save_safetensors(const Model& model, const std::string& path, const ExportOptions&) {
  TRY(std::vector<Weight> weights, weights_of(model, "safetensors"));
  std::string header = "{";
  if (!model.metadata.empty()) {
    header += "\"__metadata__\":{";
    for (size_t i = 0; i < model.metadata.size(); ++i)
      header += (i == 0 ? "" : ",") + json_text(model.metadata[i].key) + ":" +
                json_text(model.metadata[i].value);
    header += "}";
  }
  uint64_t at = 0;
  for (const Weight& weight : weights) {
    std::string_view type;
    for (const Row& row : kRows)
      if (row.dtype == weight.dtype && type.empty()) type = row.name;
    if (type.empty())
      return unsupported("safetensors has no element type for " +
                         std::string(name_of(weight.dtype)))
          .at("tensor \"" + weight.name + "\"");
    std::string dims;
    for (const int64_t dim : weight.dims) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    const uint64_t end = at + weight.tensor.bytes().size();
    header += (header.size() > 1 ? "," : "") + json_text(weight.name) + ":{\"dtype\":\"" +
              std::string(type) + "\",\"shape\":[" + dims + "],\"data_offsets\":[" +
              std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  header += "}";
  // Padded with spaces, so that the data begin at a multiple of eight bytes.
  header.append((8 - header.size() % 8) % 8, ' ');
  TRY(OutputFile out, OutputFile::create(path));
  std::string size;
  for (int i = 0; i < 8; ++i) size += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  CHECK_OK(out.write(size));
  CHECK_OK(out.write(header));
  for (const Weight& weight : weights) {
    CHECK_OK(out.write(weight.tensor.bytes()));
    const auto bytes = weight.tensor.bytes();
    model.storage().release({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return out.commit();
}

}  // namespace tombolo
