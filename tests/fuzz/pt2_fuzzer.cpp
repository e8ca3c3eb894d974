// Exported programs: an archive as it is, or the graph's JSON alone, which is wrapped into one.

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/pytorch/pt2/importer.h"

namespace {

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value));
}

/// A ZIP archive of stored members (APPNOTE.TXT 4.3).
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out, directory;
  for (const auto& [name, content] : members) {
    std::string common;
    put(common, 20, 2);  // version, then flags, method, time, date
    put(common, 0, 8);
    put(common, crc32(0, reinterpret_cast<const Bytef*>(content.data()), uInt(content.size())), 4);
    put(common, content.size(), 4);
    put(common, content.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    directory += std::string("PK\1\2\0\0", 6) + common;
    put(directory, 0, 10);
    put(directory, out.size(), 4);
    directory += name;
    out += "PK\3\4" + common + name + content;
  }
  const size_t at = out.size();
  out += directory;
  out += std::string("PK\5\6\0\0\0\0", 8);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tombolo;
  // A copy whose end the sanitizer watches.
  auto owner = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  if (size > 0 && data[0] == '{')
    *owner = archive_of({{"m/archive_version", "0"},
                         {"m/data/weights/model_weights_config.json", "{\"config\": {}}"},
                         {"m/data/constants/model_constants_config.json", "{\"config\": {}}"},
                         {"m/models/model.json", *owner}});
  const auto bytes = std::as_bytes(std::span<const char>(*owner));
  auto model = pytorch::import_pt2({bytes, owner}, {});
  if (!model.ok() && model.error().message.empty()) std::abort();
  return 0;
}
