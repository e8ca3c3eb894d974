// tombolo run MODEL: runs a model on tensors, pictures or random values.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "cli/open.h"
#include "cli/tensor_io.h"
#include "cli/verbs.h"
#include "formats/common/json_tensor.h"
#include "runtime/compare.h"
#include "runtime/flatten.h"
#include "runtime/session.h"

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

/// Names close to what was given, for the help of a usage error.
Result<const SessionPort*> port_of(const Session& session, const std::string& name) {
  std::string names;
  for (const SessionPort& port : session.inputs()) {
    if (port.name == name) return &port;
    names += (names.empty() ? "" : ", ") + port.name;
  }
  return usage_error("the model has no input \"" + name + "\"")
      .with_help("its inputs are: " + names);
}

/// --inputs, --input and --random, in this order of precedence for one name: --input first.
Result<std::vector<NamedValue>> gather_inputs(const Args& args, const Session& session) {
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
    for (NamedValue& value : bound)
      if (!given(value.name)) values.push_back(std::move(value));
  }
  TRY(int64_t seed, args.get_int("seed", 0));
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    const SessionPort& port = session.inputs()[i];
    if (given(port.name)) continue;
    const NamedShape* shape = nullptr;
    for (const NamedShape& candidate : shapes)
      if (candidate.name == port.name) shape = &candidate;
    if (shape == nullptr && (!args.flag("random") || port.has_default)) continue;
    TRY(RunValue value, random_value(port, shape != nullptr ? &shape->dims : nullptr,
                                     static_cast<uint64_t>(seed) * 1000003 + i));
    values.push_back({port.name, std::move(value)});
  }
  return values;
}

std::string element_text(const Tensor& tensor, int64_t index) {
  if (tensor.is_string()) return json_quote(tensor.strings()[static_cast<size_t>(index)]);
  if (is_complex(tensor.dtype())) return "...";
  if (!is_float(tensor.dtype())) return std::to_string(tensor.get_int64(index));
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", tensor.get_double(index));
  return text;
}

void print_tensor(Console& console, const NamedTensor& named) {
  const Tensor& tensor = named.tensor;
  std::string line = named.name + "  " + to_string(tensor) + "  ";
  constexpr int64_t kShown = 12;
  line += "{";
  for (int64_t i = 0; i < std::min(tensor.size(), kShown); ++i)
    line += (i == 0 ? "" : ", ") + element_text(tensor, i);
  if (tensor.size() > kShown) line += ", ... " + std::to_string(tensor.size() - kShown) + " more";
  console.print(line + "}\n");
}

/// Indices of the `k` largest elements of each row along the last axis.
std::vector<std::vector<int64_t>> top(const Tensor& tensor, int64_t k) {
  const int64_t width = tensor.rank() == 0 ? 1 : tensor.dim(tensor.rank() - 1);
  std::vector<std::vector<int64_t>> rows;
  for (int64_t begin = 0; width > 0 && begin < tensor.size(); begin += width) {
    std::vector<int64_t> order(static_cast<size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    const auto count = static_cast<std::ptrdiff_t>(std::min(k, width));
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
      const double x = tensor.get_double(begin + a), y = tensor.get_double(begin + b);
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
      return x != y ? x > y : a < b;
    });
    order.resize(static_cast<size_t>(count));
    rows.push_back(std::move(order));
  }
  return rows;
}

void print_top(Console& console, const NamedTensor& named, int64_t k) {
  const Tensor& tensor = named.tensor;
  const int64_t width = tensor.rank() == 0 ? 1 : tensor.dim(tensor.rank() - 1);
  const auto rows = top(tensor, k);
  for (size_t row = 0; row < rows.size(); ++row) {
    std::string line = named.name + (rows.size() == 1 ? "" : "[" + std::to_string(row) + "]") + " ";
    for (int64_t index : rows[row])
      line += "  " + std::to_string(index) + ": " +
              element_text(tensor, static_cast<int64_t>(row) * width + index);
    console.print(line + "\n");
  }
}

std::string json_of(const NamedTensor& named, int64_t k) {
  const Tensor& tensor = named.tensor;
  std::string out = "{\"name\":" + json_quote(named.name) + ",\"type\":\"" +
                    std::string(name_of(tensor.dtype())) + "\",\"shape\":[";
  for (size_t axis = 0; axis < tensor.rank(); ++axis)
    out += (axis == 0 ? "" : ",") + std::to_string(tensor.dim(axis));
  out += "]";
  if (k > 0 && !tensor.is_string() && !is_complex(tensor.dtype())) {
    const int64_t width = tensor.rank() == 0 ? 1 : tensor.dim(tensor.rank() - 1);
    out += ",\"top\":[";
    const auto rows = top(tensor, k);
    for (size_t row = 0; row < rows.size(); ++row) {
      out += row == 0 ? "[" : ",[";
      for (size_t i = 0; i < rows[row].size(); ++i) {
        const double value = tensor.get_double(static_cast<int64_t>(row) * width + rows[row][i]);
        const Tensor scalar = Tensor::scalar_float(static_cast<float>(value));
        out += (i == 0 ? "" : ",") + std::string("{\"index\":") + std::to_string(rows[row][i]) +
               ",\"value\":" + tensor_to_json(scalar) + "}";
      }
      out += "]";
    }
    out += "]";
  } else {
    out += ",\"data\":" + tensor_to_json(tensor);
  }
  return out + "}";
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

/// --expected: the outputs against those of an .npz, by name or by position (arr_0, out_0).
Result<int> compare_with(const std::string& path, const Session& session,
                         const std::vector<RunValue>& outputs, const Args& args, Console& console) {
  TRY(MappedFile file, MappedFile::open(path));
  TRY(std::vector<NamedTensor> expected, read_npz(file));
  const bool own = args.get("rtol") || args.get("atol");
  Tolerance tolerance;
  TRY(tolerance.rtol, number_of(args, "rtol", 0));
  TRY(tolerance.atol, number_of(args, "atol", 0));
  const std::vector<NamedTensor> flat = flatten_outputs(session.outputs(), outputs);
  bool equal = true;
  std::string json;
  for (NamedTensor& want : expected) {
    const NamedTensor* found = nullptr;
    for (size_t i = 0; i < flat.size(); ++i)
      if (flat[i].name == want.name || want.name == "arr_" + std::to_string(i)) found = &flat[i];
    if (found == nullptr)
      return usage_error("the model has no output \"" + want.name + "\"").at(path);
    TRY(want.tensor, from_numpy_carrier(std::move(want.tensor), found->tensor.dtype()));
    const Comparison result =
        compare(RunValue(found->tensor), RunValue(want.tensor), own ? &tolerance : nullptr);
    equal = equal && result.equal;
    char largest[40];
    std::snprintf(largest, sizeof largest, "%.3g", result.max_abs);
    if (console.json)
      json += (json.empty() ? "" : ",") + std::string("{\"name\":") + json_quote(found->name) +
              ",\"equal\":" + (result.equal ? "true" : "false") + ",\"max_abs\":" + largest +
              ",\"reason\":" + json_quote(result.reason) + "}";
    else
      console.print(found->name + (result.equal ? "  agrees" : "  DIFFERS: " + result.reason) +
                    "; largest difference " + largest + "\n");
  }
  if (console.json)
    console.print(std::string("{\"equal\":") + (equal ? "true" : "false") + ",\"outputs\":[" +
                  json + "]}\n");
  return equal ? kYes : kNo;
}

Result<int> run(const Args& args, Console& console) {
  TRY(int64_t k, args.get_int("top", 0));
  TRY(int64_t seed, args.get_int("seed", 0));
  TRY(int64_t limit_mib, args.get_int("memory-limit", 0));
  TRY(std::unique_ptr<Model> model, open_model(args));
  SessionOptions options;
  options.seed = static_cast<uint64_t>(seed);
  options.memory_limit = static_cast<uint64_t>(limit_mib) << 20;
  TRY(double seconds, number_of(args, "time-limit", 0));
  options.time_limit_ms = static_cast<uint64_t>(std::min(seconds, 1e9) * 1000);
  auto session = Session::create(std::move(model), options);
  if (!session) return std::move(session).error().at(args.positional("MODEL"));
  TRY(std::vector<NamedValue> inputs, gather_inputs(args, **session));
  auto outputs = (*session)->run(inputs);
  if (!outputs) return std::move(outputs).error().at(args.positional("MODEL"));
  const std::vector<NamedTensor> flat = flatten_outputs((*session)->outputs(), *outputs);

  if (auto path = args.get("expected"))
    return compare_with(*path, **session, *outputs, args, console);
  if (auto path = args.get("outputs")) {
    TRY(OutputFile file, OutputFile::create(*path));
    CHECK_OK(write_npz(flat, file));
    CHECK_OK(file.commit());
    if (*path == "-") return kYes;
  }
  if (console.json) {
    std::string out = "{\"outputs\":[";
    for (size_t i = 0; i < flat.size(); ++i) out += (i == 0 ? "" : ",") + json_of(flat[i], k);
    console.print(out + "]}\n");
    return kYes;
  }
  if (args.get("outputs") && k == 0) return kYes;
  for (const NamedTensor& named : flat) {
    if (k > 0 && !named.tensor.is_string() && !is_complex(named.tensor.dtype()))
      print_top(console, named, k);
    else
      print_tensor(console, named);
  }
  return kYes;
}

}  // namespace

const Verb run_verb = {
    .name = "run",
    .summary = "run a model on tensors, pictures or random values",
    .description =
        "Inputs come from an .npz (--inputs), from files (--input NAME=FILE: .npy, .pb, .png, "
        ".jpg, .json; the "
        "same name several times makes a batch), or at random (--random, --input "
        "NAME:1x3x224x224). A picture "
        "becomes pixel/255 for a float input, then (x - mean) / std.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"}},
    .options = load_options({
        {"inputs", "", "FILE", "inputs by name, or arr_0, arr_1, ... by position", "", false,
         Completes::kFile},
        {"input", "i", "NAME=FILE",
         "one input; or NAME:1x3x224x224 for random values of that shape", "", true,
         Completes::kFile},
        {"random", "", "", "random values for inputs that are not given"},
        {"seed", "", "S", "seed of random inputs and random operators", "0"},
        {"mean", "", "R,G,B", "subtracted from each channel of a picture"},
        {"std", "", "R,G,B", "each channel is divided by"},
        {"outputs", "", "FILE", "write the outputs as .npz", "", false, Completes::kFile},
        {"expected", "", "FILE", "compare the outputs with this .npz; exit 1 if they differ", "",
         false, Completes::kFile},
        {"atol", "", "X", "absolute tolerance of --expected (default: by type)"},
        {"rtol", "", "X", "relative tolerance of --expected (default: by type)"},
        {"top", "", "K", "print the K largest elements of each row instead of tensors"},
        {"memory-limit", "", "MIB",
         "tensors may take at most this much (default: what the machine has)"},
        {"time-limit", "", "SECONDS", "stop with exit code 6 when the run takes longer"},
    }),
    .examples = {"tombolo run model.onnx --random",
                 "tombolo run digits.keras --input image=3.png --top 3",
                 "tombolo run model.onnx --inputs in.npz --outputs out.npz"},
    .run = run,
};

}  // namespace tombolo::cli
