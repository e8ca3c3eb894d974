#include "formats/keras/keras.h"

#include <sys/stat.h>

#include "formats/common/layout.h"
#include "formats/keras/importer.h"

namespace tombolo::keras {
namespace {

/// "3.15.1" -> 3; 0 when there is no number.
int major_version(std::string_view version) {
  int value = 0;
  for (const char c : version) {
    if (c < '0' || c > '9') break;
    value = value * 10 + (c - '0');
    if (value > 1000) return 0;
  }
  return value;
}

/// Keras 3 as a file's own words say it; tf_keras calls itself by TensorFlow's version (2.x).
int version_of(std::string_view version, Json root) {
  if (const int major = major_version(version)) return major >= 3 ? 3 : 2;
  if (const int major = major_version(root["keras_version"].string_or("")))
    return major >= 3 ? 3 : 2;
  return root["module"].exists() ? 3 : 2;
}

bool is_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

bool probe_archive(std::span<const std::byte> bytes) {
  if (!ZipArchive::probe(bytes)) return false;
  auto archive = ZipArchive::open(bytes, nullptr);
  return archive.ok() && archive->find("config.json") &&
         (archive->find("model.weights.h5") || archive->find("metadata.json"));
}

bool probe_json(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == text.npos || text[start] != '{') return false;
  return text.find("\"class_name\"") != text.npos && text.find("\"config\"") != text.npos;
}

std::string find_weights(const std::string& json_path) {
  const size_t slash = json_path.rfind('/');
  const std::string folder = slash == json_path.npos ? "" : json_path.substr(0, slash + 1);
  std::string stem = json_path.substr(folder.size());
  const size_t dot = stem.rfind('.');
  if (dot != stem.npos) stem.resize(dot);
  for (const std::string& name : {stem + ".weights.h5", stem + "_weights.h5", stem + ".h5",
                                  std::string("model.weights.h5"), stem + ".hdf5"}) {
    if (is_file(folder + name)) return folder + name;
  }
  return {};
}

Result<std::unique_ptr<Model>> import_model(const Source& source) {
  Blob config_blob, weights_blob = source.weights;
  std::string config_text, version;
  std::shared_ptr<Hdf5File> weights;
  if (Hdf5File::probe(source.model.bytes)) {
    TRY(std::unique_ptr<Hdf5File> file, Hdf5File::open(source.model.bytes, source.model.owner));
    weights = std::move(file);
    const auto config = weights->string("", "model_config");
    if (!config) {
      return unsupported("the file holds weights only, no model")
          .with_help("give the model's JSON beside it: tombolo convert model.json --weights FILE");
    }
    config_text = *config;
    version = weights->string("", "keras_version").value_or("");
  } else if (ZipArchive::probe(source.model.bytes)) {
    TRY(const ZipArchive archive, ZipArchive::open(source.model.bytes, source.model.owner));
    TRY(config_blob, archive.read("config.json"));
    config_text = std::string(config_blob.text());
    if (archive.find("metadata.json")) {
      TRY(const Blob metadata, archive.read("metadata.json"));
      if (auto document = JsonDocument::parse(metadata.text())) {
        version = std::string(document->root()["keras_version"].string_or(""));
      }
    }
    if (weights_blob.bytes.empty()) {
      if (!archive.find("model.weights.h5")) {
        return unsupported("the archive has no model.weights.h5");
      }
      TRY(weights_blob, archive.read("model.weights.h5"));
    }
  } else {
    config_text = std::string(source.model.text());
  }
  if (!weights && !weights_blob.bytes.empty()) {
    auto file = Hdf5File::open(weights_blob.bytes, weights_blob.owner);
    if (!file) return std::move(file).at("weights").error();
    weights = *std::move(file);
  }
  TRY(const JsonDocument document, JsonDocument::parse(config_text));
  const Json root = document.root();
  if (!weights) {
    return parse_error("the weights of the model are missing")
        .with_help("put them beside the JSON as NAME.weights.h5, or give --weights FILE");
  }
  if (version.empty()) version = weights->string("", "keras_version").value_or("");

  auto model = std::make_unique<Model>(Model::create(kImportOpset));
  Storage& storage = model->storage();
  model->graph->name = storage.copy(root["config"]["name"].string_or("model"));
  model->producer_name = "tombolo";
  model->metadata.push_back({"source", "keras"});
  if (!version.empty()) model->metadata.push_back({"keras_version", storage.copy(version)});
  Importer importer(*model, WeightStore(weights), version_of(version, root));
  CHECK_OK(importer.run(root));
  CHECK_OK(resolve_layout(*model->graph));
  return model;
}

}  // namespace tombolo::keras
