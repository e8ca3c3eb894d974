#include "formats/keras/weights.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace tombolo::keras {
namespace {

/// "dense/kernel:0" -> "kernel".
std::string_view leaf(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != name.npos) name = name.substr(slash + 1);
  return name.substr(0, name.find(':'));
}

/// Whether a component of the path before the leaf starts with `prefix` (or equals it).
bool has_component(std::string_view name, std::string_view prefix, bool whole) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = name.find('/', at);
    if (end == name.npos) return false;
    const std::string_view part = name.substr(at, end - at);
    if (whole ? part == prefix : part.substr(0, prefix.size()) == prefix) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string snake_case(std::string_view class_name) {
  // Keras: (.)([A-Z][a-z]+) -> \1_\2, then ([a-z])([A-Z]) -> \1_\2, then lower case.
  std::string first;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const auto at = [&](size_t k) {
      return k < class_name.size() ? static_cast<unsigned char>(class_name[k]) : 0;
    };
    if (!std::isalnum(at(i)) && at(i) != '_') continue;
    if (!first.empty() && std::isupper(at(i)) && std::islower(at(i + 1))) first += '_';
    first += class_name[i];
  }
  std::string result;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto c = static_cast<unsigned char>(first[i]);
    if (i > 0 && std::isupper(c) && std::islower(static_cast<unsigned char>(first[i - 1]))) {
      result += '_';
    }
    result += static_cast<char>(std::tolower(c));
  }
  return result;
}

bool is_operation(Json layer) {
  const std::string_view module = layer["module"].string_or("");
  return module.find(".ops.") != module.npos || module == "keras.ops";
}

LayerWeights LayerWeights::sub(std::string_view path, std::string_view named) const {
  LayerWeights part = *this;
  part.next_ = 0;
  if (positional_) {
    part.group_ += "/" + std::string(path);
    // Keras 2.15 hides some parts behind an underscore: _query_dense.
    if (file_ && !file_->exists(part.group_)) {
      const std::string hidden = group_ + "/_" + std::string(path);
      if (file_->exists(hidden)) part.group_ = hidden;
    }
  } else if (!named.empty()) {
    std::erase_if(part.named_,
                  [&](const Named& entry) { return !has_component(entry.name, named, false); });
  }
  return part;
}

std::string LayerWeights::next_path(std::string_view name, Named** named) {
  if (!file_) return {};
  if (positional_) {
    const std::string path = group_ + "/vars/" + std::to_string(next_);
    return file_->exists(path) ? path : std::string();
  }
  for (Named& entry : named_) {
    if (!entry.used && leaf(entry.name) == name) {
      *named = &entry;
      return entry.path;
    }
  }
  return {};
}

bool LayerWeights::has(std::string_view name) {
  Named* named = nullptr;
  return !next_path(name, &named).empty();
}

Result<Tensor> LayerWeights::take(std::string_view name) {
  Named* named = nullptr;
  const std::string path = next_path(name, &named);
  if (path.empty()) {
    return parse_error("the file holds no weight \"" + std::string(name) + "\"");
  }
  TRY(Tensor value, file_->dataset(path));
  if (named) named->used = true;
  ++next_;
  return value;
}

WeightStore::WeightStore(std::shared_ptr<Hdf5File> file) : file_(std::move(file)) {
  if (file_->exists("model_weights")) named_root_ = "model_weights/";
  positional_ = named_root_.empty() &&
                (file_->exists("layers") || file_->exists("_layer_checkpoint_dependencies"));
}

std::string WeightStore::positional_group(const std::string& model, Json layers, size_t index,
                                          bool functional) {
  // Keras 2.12 and 2.13 called the container _layer_checkpoint_dependencies.
  std::string base = model.empty() ? "" : model + "/";
  base += file_->exists(base + "layers") ? "layers/" : "_layer_checkpoint_dependencies/";
  const Json layer = layers.at(index);
  const std::string_view name = layer["config"]["name"].string_or("");
  std::unordered_map<std::string, size_t> used;
  std::string group;
  for (size_t i = 0; i <= index; ++i) {
    const Json other = layers.at(i);
    if (is_operation(other)) continue;
    const std::string_view class_name = other["class_name"].string_or("");
    if (!functional && class_name == "InputLayer") continue;
    group = snake_case(class_name);
    const size_t count = used[group]++;
    if (count != 0) group += "_" + std::to_string(count);
  }
  group = base + group;
  const auto said = file_->string(group + "/vars", "name");
  if (!said || *said == name) return group;
  // Counted otherwise than thought: look for the true name.
  if (auto all = file_->object(base)) {
    for (const Hdf5Link& link : (*all)->links) {
      if (file_->string(base + link.name + "/vars", "name") == name) return base + link.name;
    }
  }
  return group;
}

WeightStore::Scope WeightStore::nested(const Scope& scope, Json layers, size_t index,
                                       bool functional) {
  Scope inner = scope;
  inner.named.emplace_back(layers.at(index)["config"]["name"].string_or(""));
  if (file_ && positional_) inner.group = positional_group(scope.group, layers, index, functional);
  return inner;
}

Result<LayerWeights> WeightStore::layer(const Scope& scope, Json layers, size_t index,
                                        bool functional) {
  LayerWeights weights;
  if (!file_) return weights;
  weights.file_ = file_.get();
  weights.positional_ = positional_;
  const std::string name(layers.at(index)["config"]["name"].string_or(""));
  if (positional_) {
    weights.group_ = positional_group(scope.group, layers, index, functional);
    return weights;
  }
  const std::string top = named_root_ + (scope.named.empty() ? name : scope.named.front());
  if (!file_->exists(top)) return weights;
  TRY(const std::vector<std::string> names, file_->strings(top, "weight_names"));
  for (const std::string& entry : names) {
    weights.named_.push_back({entry, top + "/" + entry, false});
  }
  if (!scope.named.empty()) {
    // All weights of the nested model stand here: those of this layer have its name in their path.
    std::erase_if(weights.named_, [&](const LayerWeights::Named& entry) {
      return !has_component(entry.name, name, true);
    });
  }
  return weights;
}

}  // namespace tombolo::keras
