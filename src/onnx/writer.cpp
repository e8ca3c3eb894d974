#include "onnx/writer.h"

#include "base/checksum.h"
#include "base/output_file.h"
#include "onnx/encoder.h"
#include "onnx/for_each_constant.h"
#include "onnx/wire_writer.h"

namespace tombolo {

namespace {

using onnx::Encoder;
using onnx::Placement;
using onnx::Placements;
using onnx::WireSizer;
using onnx::WireWriter;

/// Protobuf's other implementations refuse messages of 2 GB and more.
constexpr uint64_t kOtherReadersLimit = (uint64_t{1} << 31) - 1;

WireSizer sizes_of(const Model& model, const Placements* placements) {
  WireSizer sizer;
  Encoder<WireSizer>(sizer, placements).model(model);
  return sizer;
}

template <typename Output>
Status write_to(Output& output, const Model& model, const Placements* placements) {
  const WireSizer sizer = sizes_of(model, placements);
  auto writer = std::make_unique<WireWriter<Output>>(output, sizer.sizes);
  Encoder<WireWriter<Output>>(*writer, placements).model(model);
  writer->flush();
  return std::move(writer->status);
}

/// Bytes that a constant would take in an external file; 0 when it cannot or need not go there.
uint64_t external_size(const Constant& constant, uint64_t threshold) {
  const int64_t count = element_count(constant.dims);
  const DType dtype = constant.dtype();
  if (count <= 0 || dtype == DType::kUndefined || dtype == DType::kString) return 0;
  if (constant.encoding == Constant::Encoding::kNone && !constant.is_external()) return 0;
  const auto bytes = packed_bytes(dtype, static_cast<uint64_t>(count));
  return bytes && *bytes >= threshold ? *bytes : 0;
}

/// Writes the data of all large tensors to files beside the model.
Status write_data(const Model& model, const std::string& path, const SaveOptions& options,
                  Placements& placements, OutputSet& files) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  const std::string stem = path.substr(folder.size()) + ".data";
  OutputFile* file = nullptr;
  std::string location;
  size_t file_count = 0;
  Status status = ok();
  auto place = [&](const Constant& constant) -> Status {
    const uint64_t length = external_size(constant, options.threshold);
    if (length == 0) return ok();
    auto tensor = constant.value(model.storage_ptr());
    // Data that do not fit their shape stay as they are: not ours to repair.
    if (!tensor) return constant.is_external() ? Status(std::move(tensor).error()) : ok();
    const bool full =
        options.data == SaveOptions::Data::kPerTensor ||
        (options.data == SaveOptions::Data::kSharded && file != nullptr &&
         (length > options.shard_bytes || file->position() > options.shard_bytes - length));
    if (file == nullptr || full) {
      location = file_count == 0 ? stem : stem + "." + std::to_string(file_count);
      ++file_count;
      TRY(file, files.create(folder + location));
    }
    CHECK_OK(file->pad_to(kExternalAlignment));
    Placement& placement = placements[&constant];
    placement.external = true;
    placement.location = location;
    placement.offset = file->position();
    placement.length = length;
    if (options.checksum) placement.checksum = Sha1::of(tensor->bytes());
    return file->write(tensor->bytes());
  };
  onnx::for_each_constant(model, [&](const Constant& constant) {
    if (status.ok()) status = place(constant);
  });
  return status;
}

}  // namespace

Status onnx::embed_all(const Model& model, Placements& placements) {
  Status status = ok();
  onnx::for_each_constant(model, [&](const Constant& constant) {
    if (!status.ok() || !constant.is_external()) return;
    auto tensor = constant.value(model.storage_ptr());
    if (!tensor) {
      status = std::move(tensor).error();
      return;
    }
    // A view of the mapped file, which the model's storage keeps.
    const auto bytes = tensor->bytes();
    placements[&constant].bytes = {bytes.empty() ? "" : reinterpret_cast<const char*>(bytes.data()),
                                   bytes.size()};
  });
  return status;
}

uint64_t onnx_size(const Model& model) { return sizes_of(model, nullptr).total; }

Result<std::string> write_onnx(const Model& model) {
  std::string text;
  onnx::StringOutput output{text};
  CHECK_OK(write_to(output, model, nullptr));
  return text;
}

Status save_onnx(const Model& model, const std::string& path, const SaveOptions& options) {
  using Data = SaveOptions::Data;
  Placements placements;
  CHECK_OK(onnx::embed_all(model, placements));
  const bool embed =
      options.data == Data::kEmbed || (options.data == Data::kAuto && path == "-") ||
      (options.data == Data::kAuto && sizes_of(model, &placements).total <= kOtherReadersLimit);
  if (!embed && path == "-")
    return usage_error("external data need a file to stand beside, not standard output");
  OutputSet files;
  if (!embed) CHECK_OK(write_data(model, path, options, placements, files));
  TRY(OutputFile * file, files.create(path));
  CHECK_OK(write_to(*file, model, &placements));
  return files.commit();
}

}  // namespace tombolo
