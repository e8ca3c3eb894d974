#include "formats/weights/shards.h"

#include <algorithm>
#include <filesystem>

#include "base/path_containment.h"

namespace tombolo {

std::unique_ptr<std::string> find_index(const std::string& folder, std::string_view ending) {
  const std::string tail = std::string(ending) + ".index.json";
  std::error_code code;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    std::string path = entry.path().string();
    if (path.ends_with(tail)) found.push_back(std::move(path));
  }
  if (found.empty()) return nullptr;
  std::sort(found.begin(), found.end());
  return std::make_unique<std::string>(found.front());
}

bool is_index_of(const Source& source, std::string_view ending) {
  if (source.is_folder || source.file.size() < 2) return false;
  std::string_view text = source.file.text();
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  if (!text.starts_with("{")) return false;
  const size_t map = text.find("\"weight_map\"");
  return map != std::string_view::npos && text.find(ending, map) != std::string_view::npos;
}

Result<ShardIndex> read_index(const Source& source, std::string_view ending) {
  ShardIndex index;
  MappedFile file = source.file;
  std::string path = source.path;
  if (source.is_folder) {
    const auto found = find_index(source.path, ending);
    if (!found) return parse_error("the folder has no *" + std::string(ending) + ".index.json");
    path = *found;
    TRY(file, MappedFile::open(path));
  }
  const size_t slash = path.rfind('/');
  index.folder = slash == std::string::npos ? "." : path.substr(0, slash);
  TRY(JsonDocument document, JsonDocument::parse(file.text()));
  const Json map = document.root()["weight_map"];
  if (!map.is_object()) return parse_error("the index has no weight_map");
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < map.size(); ++i) {
    const auto name = map.member(i).as_string();
    if (!name)
      return parse_error("the index names no file for \"" + std::string(map.key(i)) + "\"");
    CHECK_OK(check_location(*name));
    const auto [at, added] = known.emplace(*name, index.files.size());
    if (added) index.files.emplace_back(*name);
    index.tensors.emplace_back(map.key(i));
    index.file_of.push_back(at->second);
  }
  return index;
}

Result<MappedFile> open_shard(const ShardIndex& index, size_t file) {
  return MappedFile::open(index.folder + "/" + index.files[file]);
}

}  // namespace tombolo
