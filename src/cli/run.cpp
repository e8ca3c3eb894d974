// tombolo run MODEL: runs a model on tensors, pictures or random values.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "cli/inputs.h"
#include "cli/open.h"
#include "cli/tensor_io.h"
#include "cli/verbs.h"
#include "formats/common/json_tensor.h"
#include "runtime/compare.h"
#include "runtime/flatten.h"
#include "runtime/session.h"

namespace tombolo::cli {

namespace {

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

Result<int> run_model(const Args& args, Console& console) {
  TRY(int64_t k, args.get_int("top", 0));
  TRY(int64_t seed, args.get_int("seed", 0));
  TRY(int64_t limit_mib, args.get_int("memory-limit", 0));
  TRY(int64_t runs, args.get_int("runs", 1));
  if (runs < 1) return usage_error("--runs is " + std::to_string(runs) + ", must be 1 at least");
  std::vector<NamedTensor> sample;
  TRY(std::unique_ptr<Model> model,
      open_model(args, false, args.flag("sample") ? &sample : nullptr));
  if (args.flag("sample") && sample.empty())
    return usage_error("the file stores no example inputs")
        .with_help("give them with --inputs FILE");
  SessionOptions options;
  options.seed = static_cast<uint64_t>(seed);
  options.reference = args.flag("reference");
  options.fast_math = args.flag("fast-math");
  options.deterministic = args.flag("deterministic");
  options.pack_cache = args.get("pack-cache").value_or("");
  options.memory_limit = static_cast<uint64_t>(limit_mib) << 20;
  TRY(double seconds, number_of(args, "time-limit", 0));
  options.time_limit_ms = static_cast<uint64_t>(std::min(seconds, 1e9) * 1000);
  auto session = Session::create(std::move(model), options);
  if (!session) return std::move(session).error().at(args.positional("MODEL"));
  TRY(std::vector<NamedValue> inputs, gather_inputs(args, **session));
  for (NamedTensor& example : sample)
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](const NamedValue& value) { return value.name == example.name; }))
      inputs.push_back({example.name, RunValue(std::move(example.tensor))});
  for (const SessionPort& port : (*session)->inputs()) {
    if (!port.is_required() ||
        std::any_of(inputs.begin(), inputs.end(),
                    [&](const NamedValue& value) { return value.name == port.name; }))
      continue;
    return usage_error("input \"" + port.name + "\" is missing")
        .at(args.positional("MODEL"))
        .with_help("give it with --input " + port.name +
                   "=FILE or --inputs FILE.npz, or all that is missing with --random");
  }
  auto outputs = (*session)->run(inputs);
  for (int64_t i = 1; outputs && i < runs; ++i) outputs = (*session)->run(inputs);
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
    .options = load_options(input_options({
        {"sample", "", "", "on the example inputs that the file stores (.pt2)"},
        {"reference", "", "", "reference kernels alone: slow, and what defines the right result"},
        {"fast-math", "", "", "products of 8 or 16 bits may stand for those of 32"},
        {"runs", "", "N", "run N times and give what the last one gives (default: 1)"},
        {"deterministic", "", "", "the same bits whatever the number of threads"},
        {"pack-cache", "", "DIR", "keep packed weights here for sessions to come", "", false,
         Completes::kFolder},
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
    })),
    .examples = {"tombolo run model.onnx --random",
                 "tombolo run digits.keras --input image=3.png --top 3",
                 "tombolo run model.onnx --inputs in.npz --outputs out.npz",
                 "tombolo run model.pt2 --sample"},
    .run = run_model,
};

}  // namespace tombolo::cli
