#include "cli/inputs.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/tensor_io.h"

namespace tombolo::cli {

namespace {

Result<std::vector<double>> numbers_of(const Args& args, std::string_view option) {
  std::vector<double> values;
  const std::string text = args.get(option).value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    char* end = nullptr;
    const std::string part = text.substr(at, comma - at);
    values.push_back(std::strtod(part.c_str(), &end));
    if (part.empty() || *end != '\0')
      return usage_error("--" + std::string(option) + " takes numbers like 0.5,0.5,0.5, not \"" +
                         text + "\"");
    at = comma + 1;
  }
  return values;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// All names, for the help of a usage error.
Result<const SessionPort*> port_of(const Session& session, const std::string& name) {
  std::vector<std::string> names;
  for (const SessionPort& port : session.inputs()) {
    if (port.name == name) return &port;
    names.push_back(port.name);
  }
  return usage_error("the model has no input \"" + name + "\"")
      .with_help("its inputs are: " + listed(names));
}

/// The shape that `sizes` gives a declared type with names in it, the first one of a name; nothing
/// when it has none of them.
std::optional<std::vector<int64_t>> sized(const SessionPort& port, const NamedSizes& sizes) {
  if (port.type == nullptr || !port.type->is_tensor() || !port.type->has_shape) return std::nullopt;
  std::vector<int64_t> dims;
  bool found = false;
  for (const Dim& dim : port.type->dims) {
    const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) {
      return dim.kind == Dim::Kind::kParam && dim.param == s.first;
    });
    dims.push_back(size != sizes.end()             ? size->second
                   : dim.kind == Dim::Kind::kValue ? dim.value
                                                   : 1);
    found |= size != sizes.end();
  }
  if (!found) return std::nullopt;
  return dims;
}

/// Sizes of dimensions that no input names would be given in vain.
Status expect_named(const Session& session, const NamedSizes& sizes) {
  std::vector<std::string> known;
  for (const SessionPort& port : session.inputs())
    if (port.type != nullptr && port.type->is_tensor() && port.type->has_shape)
      for (const Dim& dim : port.type->dims)
        if (dim.kind == Dim::Kind::kParam &&
            std::find(known.begin(), known.end(), dim.param) == known.end())
          known.emplace_back(dim.param);
  for (const auto& [name, size] : sizes) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return usage_error("no input of the model has a dimension \"" + name + "\"")
        .with_help(known.empty() ? "its inputs name none" : "its inputs name: " + listed(known));
  }
  return ok();
}

}  // namespace

Result<std::vector<NamedValue>> gather_inputs(const Args& args, const Session& session, bool random,
                                              NamedSizes sizes) {
  for (const std::string& text : args.all("size")) {
    TRY(const auto part, name_and_value("size", text));
    TRY(const int64_t size, whole_number(part.first, part.second));
    sizes.emplace_back(part.first, size);
  }
  CHECK_OK(expect_named(session, sizes));
  ImageOptions image;
  TRY(image.mean, numbers_of(args, "mean"));
  TRY(image.std, numbers_of(args, "std"));
  std::vector<NamedValue> values;
  auto given = [&](const std::string& name) {
    return std::any_of(values.begin(), values.end(),
                       [&](const NamedValue& v) { return v.name == name; });
  };

  std::vector<NamedShape> shapes;
  std::vector<std::pair<std::string, std::vector<Tensor>>> stacked;
  for (const std::string& text : args.all("input")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      auto shape = parse_named_shape(text);
      if (!shape)
        return usage_error("--input takes NAME=FILE or NAME:1x3x224x224, not \"" + text + "\"");
      TRY(const SessionPort* port, port_of(session, shape->name));
      (void)port;
      shapes.push_back(*std::move(shape));
      continue;
    }
    TRY(const SessionPort* port, port_of(session, text.substr(0, equals)));
    TRY(RunValue value, read_value(text.substr(equals + 1), *port, image));
    auto entry = std::find_if(stacked.begin(), stacked.end(),
                              [&](const auto& e) { return e.first == port->name; });
    if (value.is_tensor() && entry != stacked.end()) {
      entry->second.push_back(value.tensor());
    } else if (value.is_tensor()) {
      stacked.push_back({port->name, {value.tensor()}});
    } else {
      values.push_back({port->name, std::move(value)});
    }
  }
  for (auto& [name, tensors] : stacked) {
    // The same name several times: a batch.
    auto batch = concatenate(tensors);
    if (!batch) return std::move(batch).error().at("input \"" + name + "\"");
    values.push_back({name, RunValue(*std::move(batch))});
  }
  if (auto path = args.get("inputs")) {
    TRY(MappedFile file, MappedFile::open(*path));
    auto tensors = read_npz(file);
    if (!tensors) return std::move(tensors).error().at("file \"" + *path + "\"");
    TRY(std::vector<NamedValue> bound, bind_inputs(*std::move(tensors), session));
    for (NamedValue& value : bound) {
      if (given(value.name)) continue;
      // An archive has arrays at any address: a session would copy such an input in every run.
      if (value.value.is_tensor() && !value.value.tensor().aligned()) {
        TRY(Tensor copy, value.value.tensor().clone());
        value.value = RunValue(std::move(copy));
      }
      values.push_back(std::move(value));
    }
  }
  TRY(int64_t seed, args.get_int("seed", 0));
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const SessionPort& port = session.inputs()[i];
    if (given(port.name)) continue;
    const NamedShape* shape = nullptr;
    for (const NamedShape& candidate : shapes)
      if (candidate.name == port.name) shape = &candidate;
    if (shape == nullptr && ((!random && !args.flag("random")) || port.has_default)) continue;
    const std::optional<std::vector<int64_t>> own = sized(port, sizes);
    const std::vector<int64_t>* dims = shape != nullptr ? &shape->dims : own ? &*own : nullptr;
    TRY(RunValue value, random_value(port, dims, static_cast<uint64_t>(seed) * 1000003 + i));
    values.push_back({port.name, std::move(value)});
  }
  return values;
}

Result<std::pair<std::string, std::string>> name_and_value(std::string_view option,
                                                           const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return usage_error("--" + std::string(option) + " takes NAME=VALUE, not \"" + text + "\"");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<int64_t> whole_number(const std::string& key, const std::string& text) {
  if (const std::optional<int64_t> value = read_whole(text)) return *value;
  return usage_error(key + " takes whole numbers, not \"" + text + "\"");
}

Result<double> number_of(const Args& args, std::string_view option, double fallback) {
  auto text = args.get(option);
  if (!text) return fallback;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (text->empty() || *end != '\0' || !(value >= 0))
    return usage_error("--" + std::string(option) + " takes a number, not \"" + *text + "\"");
  return value;
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::vector<Option> input_options(std::vector<Option> more) {
  std::vector<Option> options = {
      {"inputs", "", "FILE", "inputs by name, or arr_0, arr_1, ... by position", "", false,
       Completes::kFile},
      {"input", "i", "NAME=FILE", "one input; or NAME:1x3x224x224 for random values of that shape",
       "", true, Completes::kFile},
      {"random", "", "", "random values for inputs that are not given"},
      {"size", "", "NAME=N", "size of a dimension that the model names, in random values", "",
       true},
      {"seed", "", "S", "seed of random inputs and random operators", "0"},
  };
  for (Option& option : more) options.push_back(option);
  return options;
}

}  // namespace tombolo::cli
