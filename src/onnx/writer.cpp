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

/// Writes the data of large tensors to files beside the model.
class DataFiles {
 public:
  DataFiles(const std::string& path, const SaveOptions& options, Placements& placements,
            OutputSet& files)
      : options_(options), placements_(placements), files_(files) {
    const size_t slash = path.rfind('/');
    folder_ = slash == path.npos ? "" : path.substr(0, slash + 1);
    stem_ = path.substr(folder_.size()) + ".data";
  }

  Status add(const Constant& constant, const StoragePtr& storage) {
    const uint64_t length = external_size(constant, options_.threshold);
    if (length == 0) return ok();
    auto tensor = constant.value(storage);
    // Data that do not fit their shape stay as they are: not ours to repair.
    if (!tensor) return constant.is_external() ? Status(std::move(tensor).error()) : ok();
    const bool full =
        options_.data == SaveOptions::Data::kPerTensor ||
        (options_.data == SaveOptions::Data::kSharded && file_ != nullptr &&
         (length > options_.shard_bytes || aligned_end() > options_.shard_bytes - length));
    if (file_ == nullptr || full) {
      finish_file();
      location_ = count_ == 0 ? stem_ : stem_ + "." + std::to_string(count_);
      ++count_;
      TRY(file_, files_.create(folder_ + location_));
    }
    const uint64_t before = file_->position();
    CHECK_OK(file_->pad_to(kExternalAlignment));
    Placement& placement = placements_[&constant];
    placement.external = true;
    placement.location = location_;
    placement.offset = file_->position();
    placement.length = length;
    if (options_.checksum) {
      static constexpr std::byte kZeros[kExternalAlignment] = {};
      sha1_.update({kZeros, placement.offset - before});
      sha1_.update(tensor->bytes());
      in_file_.push_back(&placement);
    }
    onnx::ReleasingOutput output{*file_, *storage};
    return output.write({reinterpret_cast<const char*>(tensor->bytes().data()), length});
  }

  /// SPEC ExternalData.md: the checksum is that of the whole file, so it is known at its end.
  void finish_file() {
    if (options_.checksum && file_ != nullptr) {
      const std::string digest = sha1_.finish();
      for (Placement* placement : in_file_) placement->checksum = digest;
    }
    sha1_ = Sha1();
    in_file_.clear();
  }

 private:
  uint64_t aligned_end() const {
    return (file_->position() + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment;
  }

  const SaveOptions& options_;
  Placements& placements_;
  OutputSet& files_;
  std::string folder_, stem_, location_;
  OutputFile* file_ = nullptr;
  size_t count_ = 0;
  Sha1 sha1_;
  std::vector<Placement*> in_file_;  // the elements of an unordered_map stay where they are
};

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
  if (options.data != Data::kKeep) CHECK_OK(onnx::embed_all(model, placements));
  const bool embed =
      options.data == Data::kKeep || options.data == Data::kEmbed ||
      (options.data == Data::kAuto && path == "-") ||
      (options.data == Data::kAuto && sizes_of(model, &placements).total <= kOtherReadersLimit);
  if (!embed && path == "-")
    return usage_error("external data need a file to stand beside, not standard output");
  OutputSet files;
  if (!embed) {
    DataFiles data(path, options, placements, files);
    Status status = ok();
    onnx::for_each_constant(model, [&](const Constant& constant) {
      if (status.ok()) status = data.add(constant, model.storage_ptr());
    });
    CHECK_OK(std::move(status));
    data.finish_file();
  }
  TRY(OutputFile * file, files.create(path));
  onnx::ReleasingOutput output{*file, model.storage()};
  CHECK_OK(write_to(output, model, &placements));
  return files.commit();
}

}  // namespace tombolo
