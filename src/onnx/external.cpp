#include "onnx/external.h"

#include <map>

#include "base/checksum.h"
#include "base/path_containment.h"
#include "onnx/for_each_constant.h"

namespace tombolo {

namespace {

/// SHA-1 of a whole file, read in blocks that are let go again.
Result<std::string> digest_of(const std::string& folder, Text location) {
  constexpr size_t kBlock = size_t{16} << 20;
  TRY(MappedFile file, open_contained(folder, location));
  Sha1 sha1;
  for (size_t at = 0; at < file.size(); at += kBlock) {
    const auto block = file.bytes().subspan(at, std::min(kBlock, file.size() - at));
    sha1.update(block);
    file.release_pages(block);
  }
  return sha1.finish();
}

bool equal_hex(Text a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] >= 'A' && a[i] <= 'F' ? a[i] - 'A' + 'a' : a[i]) != b[i]) return false;
  return true;
}

}  // namespace

void verify_external(const Model& model, Diagnostics& diagnostics, bool checksum) {
  std::map<std::string, std::string, std::less<>> digests;  // by location
  onnx::for_each_constant(model, [&](const Constant& constant) {
    if (!constant.is_external()) return;
    const std::string where = "tensor \"" + std::string(constant.name.substr(0, 200)) + "\"";
    if (auto value = constant.value(model.storage_ptr()); !value) {
      diagnostics.error("external-data", where, value.error().message, value.error().help);
      return;
    }
    const ExternalData entry = *external_data(constant);  // value() has read the same entries
    if (!checksum || !present(entry.checksum)) return;
    auto known = digests.find(entry.location);
    if (known == digests.end()) {
      auto digest = digest_of(model.storage().folder(), entry.location);
      known = digests.emplace(entry.location, digest ? *digest : "").first;
    }
    if (!equal_hex(entry.checksum, known->second))
      diagnostics.error("external-checksum", where,
                        "the SHA-1 of \"" + std::string(entry.location) + "\" is " + known->second +
                            ", the model says " + std::string(entry.checksum.substr(0, 100)));
  });
}

}  // namespace tombolo
