#include "formats/keras/keras_format.h"

#include <sys/stat.h>

#include "formats/common/hdf5_file.h"
#include "formats/keras/keras.h"

namespace tombolo {
namespace {

bool is_file(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Blob blob_of(const MappedFile& file) { return {file.bytes(), file.owner()}; }

}  // namespace

int probe_keras(const Source& source) {
  if (source.is_folder) {
    // What a .keras archive holds, unpacked.
    return is_file(source.path + "/config.json") && is_file(source.path + "/model.weights.h5") ? 2
                                                                                               : 0;
  }
  const auto bytes = source.file.bytes();
  if (Hdf5File::probe(bytes)) {
    // A file of weights alone is recognised, too, so that the message can say what is missing.
    auto file = Hdf5File::open(bytes, nullptr);
    return file && (*file)->string("", "model_config") ? 3 : 1;
  }
  if (keras::probe_archive(bytes)) return 3;
  return keras::probe_json(source.file.text().substr(0, 4096)) ? 2 : 0;
}

Result<std::unique_ptr<Model>> load_keras_format(const Source& source, const LoadOptions& options) {
  keras::Source files;
  MappedFile model = source.file, weights;
  std::string weights_path = options.weights;
  if (source.is_folder) {
    TRY(model, MappedFile::open(source.path + "/config.json"));
    if (weights_path.empty()) weights_path = source.path + "/model.weights.h5";
  } else if (weights_path.empty() && keras::probe_json(model.text().substr(0, 4096))) {
    weights_path = keras::find_weights(source.path);
  }
  if (!weights_path.empty()) {
    TRY(weights, MappedFile::open(weights_path));
    files.weights = blob_of(weights);
  }
  files.model = blob_of(model);
  TRY(std::unique_ptr<Model> result, keras::import_model(files));
  return result;
}

}  // namespace tombolo
