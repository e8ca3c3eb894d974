#include "formats/pytorch/pt2/archive.h"

#include <algorithm>
#include <cstring>

#include "formats/pytorch/aten/arg.h"
#include "formats/pytorch/checkpoint.h"
#include "formats/pytorch/pt2/symbolic.h"

namespace tombolo::pytorch {
namespace {

bool ends_with(std::string_view text, std::string_view tail) { return text.ends_with(tail); }

/// models/NAME.json of the newer layouts; the program is the first one.
bool is_model(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == name.npos || !ends_with(name, ".json")) return false;
  const std::string_view folder = name.substr(0, slash);
  return folder == "models" || ends_with(folder, "/models");
}

const ZipArchive::Member* find_old(const ZipArchive& zip, std::string_view stem) {
  for (const char* ending : {".pt", ".json"})
    if (const auto* member = zip.find(std::string(stem) + ending)) return member;
  return nullptr;
}

struct Layout {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

/// Sizes and strides of a TensorMeta, all of which must be numbers.
Result<Layout> read_layout(Json meta) {
  Layout layout;
  const Json sizes = meta["sizes"], strides = meta["strides"];
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto size = read_sym_int(sizes.at(i)).constant();
    const auto stride = read_sym_int(strides.at(i)).constant();
    // Of complex elements it is doubled.
    if (!size || !stride || *size < 0 || *stride < 0 || *stride > INT64_MAX / 2)
      return parse_error("the shape is no list of numbers");
    layout.sizes.push_back(*size);
    layout.strides.push_back(*stride);
  }
  layout.offset = read_sym_int(meta["storage_offset"]).constant().value_or(0);
  if (layout.offset < 0 || layout.offset > INT64_MAX / 2)
    return parse_error("the offset of a tensor is out of range");
  return layout;
}

/// The tensor as ONNX has it: the bytes themselves where they are contiguous.
Result<Tensor> dense(const Blob& blob, DType dtype, Layout layout) {
  // Complex elements are pairs.
  int64_t width = static_cast<int64_t>(bytes_of(dtype));
  if (is_complex(dtype)) {
    dtype = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    width /= 2;
    for (int64_t& stride : layout.strides) stride *= 2;
    layout.offset *= 2;
    layout.sizes.push_back(2);
    layout.strides.push_back(1);
  }
  const int64_t count = element_count(layout.sizes),
                held = static_cast<int64_t>(blob.bytes.size()) / std::max<int64_t>(1, width);
  if (count < 0 || width == 0) return unsupported("an element type or size that ONNX lacks");
  if (count == 0) return Tensor::allocate(dtype, layout.sizes);
  // How far the last element lies; sums cannot overflow, since each part is checked against `held`.
  int64_t reach = 1, expected = 1;
  bool contiguous = true;
  for (size_t i = layout.sizes.size(); i-- > 0;) {
    const int64_t size = layout.sizes[i], stride = layout.strides[i];
    if (size > 1 && stride > held) return parse_error("the strides lead out of the storage");
    if (size > 1 && (size - 1) > (held / std::max<int64_t>(stride, 1)) && stride != 0)
      return parse_error("the strides lead out of the storage");
    reach += (size - 1) * stride;
    contiguous = contiguous && (size == 1 || stride == expected);
    expected *= size;
  }
  // The file holds the elements from the offset on, or the whole storage.
  int64_t offset = layout.offset;
  if (offset < 0 || offset > held - reach) offset = 0;
  if (reach > held) return parse_error("the data are shorter than the shape");
  const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(width);
  const auto start = blob.bytes.subspan(static_cast<size_t>(offset * width));
  if (contiguous) return Tensor::view(dtype, layout.sizes, start.first(bytes), blob.owner);
  if (count > held * 16 + (1 << 20)) return parse_error("a weight is much larger than its data");
  TRY(Tensor result, Tensor::allocate(dtype, layout.sizes));
  std::vector<int64_t> index(layout.sizes.size(), 0);
  std::byte* to = result.mutable_bytes().data();
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i, to += width) {
    std::memcpy(to, start.data() + at * width, static_cast<size_t>(width));
    for (size_t axis = index.size(); axis-- > 0;) {
      at += layout.strides[axis];
      if (++index[axis] < layout.sizes[axis]) break;
      at -= layout.strides[axis] * layout.sizes[axis];
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

bool Pt2Archive::probe(std::span<const std::byte> bytes) {
  if (!ZipArchive::probe(bytes)) return false;
  auto zip = ZipArchive::open(bytes, nullptr);
  if (!zip) return false;
  for (const ZipArchive::Member& member : zip->members()) {
    if (is_model(member.name) || member.name == "serialized_exported_program.json" ||
        ends_with(member.name, "/serialized_exported_program.json") ||
        ends_with(member.name, "archive_format") ||
        member.name.find("aotinductor/") != std::string::npos)
      return true;
  }
  return false;
}

Result<Pt2Archive> Pt2Archive::open(Blob file) {
  TRY(const ZipArchive zip, ZipArchive::open(file.bytes, file.owner));
  Pt2Archive archive;
  const ZipArchive::Member* program = nullptr;
  bool compiled = false;
  for (const ZipArchive::Member& member : zip.members()) {
    compiled = compiled || member.name.find("aotinductor/") != std::string::npos;
    if (!program && is_model(member.name)) program = &member;
  }
  const auto* old = zip.find("serialized_exported_program.json");
  if (!program && !old) {
    if (compiled)
      return unsupported("the archive is an AOTInductor package: compiled code, and no graph")
          .with_help("save the program itself with torch.export.save(program, \"model.pt2\")");
    return parse_error("the archive holds no exported program");
  }
  TRY(const Blob json, zip.read(program ? *program : *old));
  auto document = JsonDocument::parse(json.text(), 4096);
  if (!document) return std::move(document).at((program ? *program : *old).name).error();
  archive.program_ = *std::move(document);
  if (old && !program) {
    for (const char* stem : {"serialized_state_dict", "serialized_constants"}) {
      const auto* member = find_old(zip, stem);
      if (!member || member->size == 0) continue;
      TRY(Blob blob, zip.read(*member));
      if (auto done = archive.read_blob(std::move(blob)); !done)
        return std::move(done).at(member->name).error();
    }
    if (const auto* member = find_old(zip, "serialized_example_inputs"); member && member->size) {
      TRY(archive.samples_, zip.read(*member));
    }
    return archive;
  }
  const size_t models = program->name.rfind("models/");
  const std::string root = program->name.substr(0, models);
  const std::string name = program->name.substr(models + 7, program->name.size() - models - 7 - 5);
  for (const auto& [folder, endings] :
       {std::pair{"weights",
                  std::vector<std::string>{"_weights_config.json", "_model_param_config.json"}},
        std::pair{"constants", std::vector<std::string>{"_constants_config.json",
                                                        "_model_constants_config.json"}}}) {
    const std::string place = root + "data/" + folder + "/";
    bool found = false;
    for (const std::string& ending : endings) {
      const auto* member = zip.find(place + name + ending);
      if (!member) continue;
      TRY(const Blob text, zip.read(*member));
      if (auto done = archive.read_weights(zip, place, std::string(text.text())); !done)
        return std::move(done).at(member->name).error();
      found = true;
      break;
    }
    if (found) continue;
    // Between the two layouts they were written by torch.save.
    for (const std::string& file_name : {name + ".pt", std::string("model.pt")})
      if (const auto* member = zip.find(place + file_name)) {
        TRY(Blob blob, zip.read(*member));
        if (auto done = archive.read_blob(std::move(blob)); !done)
          return std::move(done).at(member->name).error();
        break;
      }
  }
  if (const auto* member = zip.find(root + "data/sample_inputs/" + name + ".pt")) {
    TRY(archive.samples_, zip.read(*member));
  }
  return archive;
}

Status Pt2Archive::read_weights(const ZipArchive& zip, const std::string& folder,
                                const std::string& config) {
  TRY(const JsonDocument document, JsonDocument::parse(config));
  const Json entries = document.root()["config"];
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string name(entries.key(i));
    const Json entry = entries.member(i), meta = entry["tensor_meta"];
    const std::string path(entry["path_name"].string_or(""));
    const auto* member = zip.find(folder + path);
    if (!member) {
      if (path.empty()) continue;
      return parse_error("the archive lacks " + folder + path + ", the data of \"" + name + "\"");
    }
    TRY(Blob blob, zip.read(*member));
    if (entry["use_pickle"].bool_or(false)) {
      auto inner = torch::read_checkpoint(std::move(blob), true);
      if (!inner) return std::move(inner).at("weight \"" + name + "\"").error();
      if (inner->size() == 1 && inner->front().name.empty()) {
        tensors_[name] = {std::move(inner->front().tensor), folder + path};
        continue;
      }
      subclasses_.insert(name);
      for (Weight& part : *inner) {
        std::string key = folder + path + "/" + part.name;
        tensors_[name + "." + part.name] = {std::move(part.tensor), std::move(key)};
      }
      continue;
    }
    if (meta.is_null()) continue;  // an object, which only a custom operator uses
    const auto dtype = dtype_from_export(meta["dtype"].int_or(0));
    if (!dtype) return unsupported("\"" + name + "\" has an element type that ONNX lacks");
    TRY(Layout layout, read_layout(meta));
    std::string key = folder + path + "@" + std::to_string(layout.offset);
    for (size_t k = 0; k < layout.sizes.size(); ++k)
      key += "," + std::to_string(layout.sizes[k]) + ":" + std::to_string(layout.strides[k]);
    auto tensor = dense(blob, *dtype, std::move(layout));
    if (!tensor) return std::move(tensor).at("weight \"" + name + "\"").error();
    tensors_[name] = {*std::move(tensor), key + "#" + torch_name(*dtype)};
  }
  return ok();
}

Status Pt2Archive::read_blob(Blob blob) {
  TRY(std::vector<Weight> weights, torch::read_checkpoint(std::move(blob), true));
  for (Weight& weight : weights) {
    // Tied weights are views of the same bytes.
    const auto bytes = weight.tensor.bytes();
    std::string key;
    if (!bytes.empty())
      key = std::to_string(reinterpret_cast<uintptr_t>(bytes.data())) +
            dims_to_string(weight.tensor.dims().span()) + torch_name(weight.tensor.dtype());
    tensors_[weight.name] = {std::move(weight.tensor), std::move(key)};
  }
  return ok();
}

const Tensor* Pt2Archive::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.tensor;
}

std::string Pt2Archive::identity(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? "" : found->second.key;
}

}  // namespace tombolo::pytorch
