#pragma once

// Checkpoints: what torch.save writes (the zip form, the older run of pickles, the oldest tar), its
// shards with an index, and the folders of torch.distributed.checkpoint.

#include "formats/format.h"
#include "formats/pytorch/torch_tensor.h"
#include "formats/weights/weights_model.h"

namespace tombolo::torch {

int probe_checkpoint(const Source& source);
Result<std::unique_ptr<Model>> load_checkpoint(const Source& source, const LoadOptions& options);

/// The tensors of a value, named by their dotted paths; those of a pickled module by the names of
/// its state dict.
Result<std::vector<Weight>> collect_weights(const PickleValue& root, TensorReader& reader);

/// The tensors of a file that torch.save wrote, in any of its forms. `data` false: names, types and
/// shapes only. Checksums are verified when data are asked for.
Result<std::vector<Weight>> read_checkpoint(Blob file, bool data);

/// A zip archive of torch.save or torch.jit.save: everything lies in one folder of it.
class TorchArchive final : public StorageSource {
 public:
  static Result<TorchArchive> open(Blob file);

  const ZipArchive& zip() const { return zip_; }
  const std::string& root() const { return root_; }  ///< "archive/"
  const ZipArchive::Member* find(std::string_view name) const;
  /// The content of member `name` inside the folder.
  Result<Blob> read(std::string_view name) const;
  Result<Pickle> pickle(std::string_view name) const;
  bool big_endian() const { return big_endian_; }
  /// Version of the file format, 0 when there is none.
  int version() const { return version_; }
  /// Where storages lie below the folder: "data/", "constants/".
  void set_storage_folder(std::string folder) { storage_folder_ = std::move(folder); }
  void set_verify(bool verify) { verify_ = verify; }
  Result<TorchStorage> storage(const PickleValue& id) override;

 private:
  ZipArchive zip_;
  std::string root_, storage_folder_ = "data/";
  bool big_endian_ = false, verify_ = true;
  int version_ = 0;
};

// distributed_checkpoint.cpp
bool is_distributed_checkpoint(const std::string& folder);
Result<std::vector<Weight>> read_distributed_checkpoint(const std::string& folder, bool data,
                                                        Storage& storage);
// legacy_checkpoint.cpp
bool is_legacy_checkpoint(std::span<const std::byte> bytes);
Result<std::vector<Weight>> read_legacy_checkpoint(const Blob& file, bool data);
bool is_tar_checkpoint(std::span<const std::byte> bytes);
Result<std::vector<Weight>> read_tar_checkpoint(const Blob& file, bool data);

}  // namespace tombolo::torch
