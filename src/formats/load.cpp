#include "formats/load.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "formats/common/cut.h"

namespace tombolo {

namespace {

Result<Source> open_source(const std::string& path) {
  Source source;
  source.path = path;
  struct stat info;
  if (path != "-" && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    source.is_folder = true;
    return source;
  }
  TRY(source.file, MappedFile::open(path));
  return source;
}

std::string known_formats() {
  std::string names;
  for (const Format& format : formats())
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

Result<const Format*> choose(const Source& source, const std::string& from) {
  if (!from.empty()) {
    if (const Format* format = find_format(from)) return format;
    return usage_error("there is no format \"" + from + "\"")
        .with_help("formats: " + known_formats());
  }
  const Format* best = nullptr;
  int sureness = 0;
  for (const Format& format : formats()) {
    const int sure = format.probe(source);
    if (sure > sureness) {
      best = &format;
      sureness = sure;
    }
  }
  if (best != nullptr) return best;
  if (source.is_folder) return parse_error("the folder holds no model of a known format");
  if (source.file.size() == 0) return parse_error("the file is empty");
  return parse_error("the file is of no known format")
      .with_help("formats: " + known_formats() + "; force one with --from");
}

bool ends_with(std::string_view text, std::string_view tail) { return text.ends_with(tail); }

/// Splits "a b c" and calls visit for each until it returns true.
template <typename Visit>
bool any_extension(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const size_t space = std::min(list.find(' '), list.size());
    if (visit(list.substr(0, space))) return true;
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return false;
}

}  // namespace

const Format* find_format(std::string_view name) {
  for (const Format& format : formats())
    if (format.name == name) return &format;
  return nullptr;
}

Result<std::unique_ptr<Model>> load_model(const std::string& path, const LoadOptions& options) {
  TRY(Source source, open_source(path));
  return load_source(source, options);
}

Result<std::unique_ptr<Model>> load_source(const Source& source, const LoadOptions& options) {
  TRY(const Format* format, choose(source, options.from));
  if ((!options.signature.empty() || !options.set.empty()) && format->name != "torchscript")
    return usage_error("models of format " + std::string(format->name) +
                       " have no signatures and no arguments that are not tensors")
        .with_help("leave out --signature and --set");
  TRY(std::unique_ptr<Model> model, format->load(source, options));
  CHECK_OK(cut_graph(*model, options.input_names, options.output_names));
  return model;
}

Result<std::string> format_of(const std::string& path) {
  TRY(Source source, open_source(path));
  TRY(const Format* format, choose(source, ""));
  return std::string(format->name);
}

Status save_model(const Model& model, const std::string& path, const ExportOptions& options) {
  const Format* format = nullptr;
  if (!options.to.empty()) {
    format = find_format(options.to);
    if (format == nullptr)
      return usage_error("there is no format \"" + options.to + "\"")
          .with_help("formats: " + known_formats());
  } else {
    for (const Format& candidate : formats())
      if (any_extension(candidate.extensions,
                        [&](std::string_view ending) { return ends_with(path, ending); })) {
        format = &candidate;
        break;
      }
    if (format == nullptr) format = find_format("onnx");
  }
  if (format->save == nullptr)
    return unsupported("models cannot be written as " + std::string(format->name));
  return format->save(model, path, options);
}

std::string find_model_file(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> candidates;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name == "model" || name.starts_with("model.")) candidates.push_back(entry.path().string());
  }
  std::sort(candidates.begin(), candidates.end());
  std::string best;
  int sureness = 0;
  for (const std::string& path : candidates) {
    auto source = open_source(path);
    if (!source) continue;
    for (const Format& format : formats()) {
      const int sure = format.probe(*source);
      if (sure > sureness) {
        sureness = sure;
        best = path;
      }
    }
  }
  return best;
}

}  // namespace tombolo
