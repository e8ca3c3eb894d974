#pragma once

// Where a writer puts tensor data when not where they are.

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/output_file.h"
#include "base/result.h"
#include "ir/model.h"

namespace tombolo::onnx {

struct Placement {
  bool external = false;
  std::string_view bytes;  ///< the raw data to embed
  std::string location;    ///< the file, relative to the model's folder
  uint64_t offset = 0, length = 0;
  std::string checksum;  ///< SHA-1 of the file in hex, empty: none
};
using Placements = std::unordered_map<const Constant*, Placement>;

/// Output into a file that lets go of the model's mapped bytes behind it, so that writing a large
/// model takes little memory.
struct ReleasingOutput {
  static constexpr size_t kBlock = size_t{16} << 20;
  OutputFile& file;
  const Storage& storage;
  Status write(std::string_view bytes) {
    for (; bytes.size() > kBlock; bytes.remove_prefix(kBlock)) {
      CHECK_OK(file.write(bytes.substr(0, kBlock)));
      storage.release(bytes.substr(0, kBlock));
    }
    CHECK_OK(file.write(bytes));
    if (bytes.size() > kBlock / 16) storage.release(bytes);
    return ok();
  }
};

/// Makes every external tensor of `model` an embedded one. The bytes stay in the mapped files.
Status embed_all(const Model& model, Placements& placements);

}  // namespace tombolo::onnx
