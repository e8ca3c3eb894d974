// Any bytes either give an error with a message or a Keras model. Reaches the readers of HDF5, ZIP
// and JSON, the importer and the layout pass. JSON takes its weights from behind the first NUL.
// Start from real files: keras_fuzzer CORPUS tests/keras/cases/*

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "formats/common/hdf5_file.h"
#include "formats/keras/keras.h"

namespace {

void walk(tombolo::Hdf5File& file, const std::string& path, int depth, int& left) {
  auto object = file.object(path);
  if (!object.ok()) {
    if (object.error().message.empty()) std::abort();
    return;
  }
  if ((*object)->is_dataset) (void)file.dataset(path);
  const auto links = (*object)->links;
  for (const auto& link : links) {
    if (depth < 8 && left-- > 0) walk(file, path + "/" + link.name, depth + 1, left);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tombolo;
  // A copy whose end the sanitizer watches.
  auto owner = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span<const char>(*owner));
  keras::Source source;
  source.model = {bytes, owner};
  if (size > 0 && data[0] == '{') {
    const size_t end = owner->find('\0');
    if (end != std::string::npos) {
      source.model.bytes = bytes.first(end);
      source.weights = {bytes.subspan(end + 1), owner};
    }
  }
  auto model = keras::import_model(source);
  if (!model.ok() && model.error().message.empty()) std::abort();
  if (Hdf5File::probe(bytes)) {
    auto file = Hdf5File::open(bytes, owner);
    int left = 200;
    if (file.ok()) walk(**file, "", 0, left);
  }
  return 0;
}
