#pragma once

// What torch.export.save writes, in every layout since 2.1: the graph's JSON, weights and
// constants by name, sample inputs.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/common/json_view.h"
#include "formats/common/zip.h"
#include "ir/tensor.h"

namespace tombolo::pytorch {

class Pt2Archive {
 public:
  static bool probe(std::span<const std::byte> bytes);
  static Result<Pt2Archive> open(Blob file);

  Json program() const { return program_->root(); }
  /// A parameter, buffer or constant; views of the file wherever it is contiguous. Null when the
  /// archive has none of that name.
  const Tensor* find(const std::string& name) const;
  /// Two names of one tensor give one key; empty when the archive has no such name.
  std::string identity(const std::string& name) const;
  /// True for a weight of a tensor subclass: its parts are "NAME.qdata", "NAME.scale" and the like.
  bool is_subclass(const std::string& name) const { return subclasses_.contains(name); }
  std::optional<Blob> sample_inputs() const { return samples_; }

 private:
  Status read_weights(const ZipArchive& zip, const std::string& folder, const std::string& config);
  Status read_blob(Blob blob);

  struct Entry {
    Tensor tensor;
    std::string key;
  };
  std::optional<JsonDocument> program_;
  std::map<std::string, Entry> tensors_;
  std::set<std::string> subclasses_;
  std::optional<Blob> samples_;
};

}  // namespace tombolo::pytorch
