#pragma once

// Writing .onnx files. Fields go out in order of their numbers, as upstream's own writers do, so a
// file that those wrote comes back byte for byte. Tensor bytes go from the mapped input to the
// output without a stop in between; there is no size limit.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "ir/model.h"

namespace tombolo {

/// Where tensor data go. SPEC ExternalData.md.
struct SaveOptions {
  enum class Data : uint8_t {
    kAuto,       ///< in the model while that stays below 2 GB (protobuf's limit in other programs),
                 ///< else as kOneFile
    kKeep,       ///< where they are: external ones stay references, which are not opened
    kEmbed,      ///< in the model, whatever the size
    kOneFile,    ///< in `<model file name>.data` beside the model
    kPerTensor,  ///< a file each: `<model file name>.data`, `.data.1`, `.data.2`, ...
    kSharded,    ///< in files of at most `shard_bytes` (a larger tensor gets one to itself)
  };
  Data data = Data::kAuto;
  uint64_t threshold = 1024;  ///< smaller tensors stay in the model
  uint64_t shard_bytes = uint64_t{2} << 30;
  bool checksum = false;  ///< adds the SHA-1 of the data file to each entry
};

/// Offsets of tensors in external files are multiples of this, so that they can be mapped.
inline constexpr uint64_t kExternalAlignment = 4096;

/// Writes `model` to `path` ("-": standard output). The model refers only to data in itself and in
/// the files that are written with it: external data of the input are carried over. Either all
/// files appear, complete, or none. Errors: those of OutputFile, and of reading external data.
Status save_onnx(const Model& model, const std::string& path, const SaveOptions& options = {});

/// The model as wire bytes, data where they are (external stay external).
Result<std::string> write_onnx(const Model& model);
/// How many bytes write_onnx gives.
uint64_t onnx_size(const Model& model);

}  // namespace tombolo
