#pragma once

// Checkpoints in several files with an index that says which tensor lies where:
// model.safetensors.index.json, pytorch_model.bin.index.json.

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "formats/common/json_view.h"
#include "formats/format.h"
#include "formats/weights/weights_model.h"

namespace tombolo {

/// The path of the folder's index of files that end in `ending`; null when it has none.
std::unique_ptr<std::string> find_index(const std::string& folder, std::string_view ending);
/// True when the source is such an index itself.
bool is_index_of(const Source& source, std::string_view ending);

struct ShardIndex {
  std::string folder;
  std::vector<std::string> tensors, files;  ///< tensor k lies in files[file_of[k]]
  std::vector<size_t> file_of;
};
Result<ShardIndex> read_index(const Source& source, std::string_view ending);
/// A file of the index. Its name may not leave the folder; symbolic links are followed, since the
/// caches of model hubs are made of them, and what they lead to must be a checkpoint itself.
Result<MappedFile> open_shard(const ShardIndex& index, size_t file);

/// The tensors of all files, in the order of the index. `read(const MappedFile&)` gives those of
/// one file.
template <typename Read>
Result<std::vector<Weight>> read_shards(const Source& source, std::string_view ending,
                                        Read&& read) {
  TRY(ShardIndex index, read_index(source, ending));
  std::unordered_map<std::string, Weight> found;
  std::unordered_set<std::string> wanted(index.tensors.begin(), index.tensors.end());
  for (size_t i = 0; i < index.files.size(); ++i) {
    TRY(MappedFile file, open_shard(index, i));
    auto weights = read(file);
    if (!weights.ok()) return std::move(weights).error().at("file \"" + index.files[i] + "\"");
    for (Weight& weight : *weights) {
      if (!wanted.contains(weight.name))
        return parse_error("tensor \"" + weight.name + "\" is not in the index")
            .at("file \"" + index.files[i] + "\"");
      found.insert_or_assign(weight.name, std::move(weight));
    }
  }
  std::vector<Weight> result;
  for (size_t i = 0; i < index.tensors.size(); ++i) {
    const auto at = found.find(index.tensors[i]);
    if (at == found.end())
      return parse_error("tensor \"" + index.tensors[i] + "\" is not in \"" +
                         index.files[index.file_of[i]] + "\"");
    result.push_back(std::move(at->second));
    found.erase(at);
  }
  return result;
}

}  // namespace tombolo
