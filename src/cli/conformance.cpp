// tombolo conformance DIR...: runs every test case below the folders and compares.
//
// A case is a folder with a model.* and
//   - test_data_set_N/{input,output}_K.pb (the official layout), or
//   - io.npz with in_0.., out_0.. and perhaps in2_.., out2_..; case.json may give "rtol" and "atol"
//   and
//     "expect": "refused" for a model that must not convert.
// Besides, NAME.onnx beside NAME_output_0.pb (the official `light` networks): the float input is
// (arange(n) / n) in the declared shape.

#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <regex>
#include <thread>

#include "base/cpu.h"
#include "cli/excluded_cases.h"
#include "cli/open.h"
#include "cli/tensor_io.h"
#include "cli/verbs.h"
#include "onnx/tensor_file.h"
#include "runtime/compare.h"
#include "runtime/session.h"

namespace tombolo::cli {

namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  fs::path folder;
  fs::path light;  ///< the .onnx of a light network; empty for a folder case
};

struct Outcome {
  enum class Status { kPassed, kFailed, kSkipped, kExcluded } status = Status::kPassed;
  std::string reason;
  bool only_values = false;  ///< of a failed case: kinds, types and shapes agree
};

Outcome failed(std::string reason) { return {Outcome::Status::kFailed, std::move(reason)}; }
Outcome failed(const Error& error) {
  return failed(error.where.empty() ? error.message : error.where + ": " + error.message);
}

void collect(const fs::path& root, std::vector<Case>& cases) {
  std::error_code code;
  std::vector<fs::path> folders = {root};
  for (fs::recursive_directory_iterator it(root, code), end; it != end; it.increment(code)) {
    if (code) break;
    if (it->is_directory(code)) folders.push_back(it->path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    bool model = false, data = false;
    std::vector<fs::path> onnx_files;
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      const std::string name = entry.path().filename().string();
      model = model || name == "model" || name.starts_with("model.") || name.starts_with("model_");
      data = data || name == "io.npz" || name.starts_with("test_data_set_") || name == "case.json";
      if (entry.path().extension() == ".onnx") onnx_files.push_back(entry.path());
    }
    if (model && data)
      cases.push_back({fs::relative(folder, root.parent_path(), code).string(), folder, {}});
    std::sort(onnx_files.begin(), onnx_files.end());
    for (const fs::path& file : onnx_files) {
      fs::path output = file;
      output.replace_filename(file.stem().string() + "_output_0.pb");
      if (fs::exists(output, code))
        cases.push_back({fs::relative(file, root.parent_path(), code).string(), folder, file});
    }
  }
}

/// What case.json says.
struct Expectation {
  bool refused = false;
  std::string file;  ///< which of the files is the model; empty: by the rule of `convert`
  std::optional<Tolerance> tolerance;
};

Result<Expectation> read_expectation(const fs::path& folder) {
  Expectation expectation;
  std::error_code code;
  const fs::path path = folder / "case.json";
  if (!fs::exists(path, code)) return expectation;
  TRY(MappedFile file, MappedFile::open(path.string()));
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(file.text().data(), file.text().size());
  if (json.HasParseError() || !json.IsObject())
    return parse_error("case.json is not a JSON object");
  auto number = [&](const char* name) -> std::optional<double> {
    if (json.HasMember(name) && json[name].IsNumber()) return json[name].GetDouble();
    return std::nullopt;
  };
  expectation.refused = json.HasMember("expect") && json["expect"].IsString() &&
                        std::string_view(json["expect"].GetString()) == "refused";
  if (json.HasMember("files") && json["files"].IsArray() && !json["files"].Empty() &&
      json["files"][0].IsString())
    expectation.file = json["files"][0].GetString();
  const auto rtol = number("rtol"), atol = number("atol");
  if (rtol || atol) expectation.tolerance = Tolerance{rtol.value_or(0), atol.value_or(0)};
  return expectation;
}

Result<std::unique_ptr<Session>> open_session(const fs::path& path, const SessionOptions& options) {
  LoadOptions load;
  // Inputs of the case say what a file does not: types and ranks of TorchScript's.
  std::error_code code;
  const fs::path beside = path.parent_path() / "io.npz";
  if (fs::exists(beside, code)) load.sample = beside.string();
  TRY(std::unique_ptr<Model> model, load_model(path.string(), load));
  return Session::create(std::move(model), options);
}

/// Compares outputs with `expected`, which may be fewer.
Outcome judge(const Session& session, const std::vector<RunValue>& outputs,
              const std::vector<RunValue>& expected, const Tolerance* tolerance) {
  if (expected.size() > outputs.size())
    return failed("the model has " + std::to_string(outputs.size()) + " outputs, " +
                  std::to_string(expected.size()) + " are expected");
  for (size_t i = 0; i < expected.size(); ++i)
    if (Comparison result = compare(outputs[i], expected[i], tolerance); !result.equal) {
      Outcome outcome = failed("output \"" + session.outputs()[i].name + "\": " + result.reason);
      outcome.only_values = outputs[i].is_tensor() && expected[i].is_tensor() &&
                            outputs[i].tensor().dtype() == expected[i].tensor().dtype() &&
                            outputs[i].tensor().dims() == expected[i].tensor().dims();
      return outcome;
    }
  return {};
}

Outcome run_pb_set(const Session& session, const fs::path& folder, const Tolerance* tolerance) {
  auto read_all = [&](const char* stem,
                      const std::vector<SessionPort>& ports) -> Result<std::vector<RunValue>> {
    std::vector<RunValue> values;
    for (size_t k = 0;; ++k) {
      const fs::path path = folder / (std::string(stem) + "_" + std::to_string(k) + ".pb");
      std::error_code code;
      if (!fs::exists(path, code)) break;
      auto value = load_tensor_file(path.string(), k < ports.size() ? ports[k].type : nullptr);
      if (!value) return std::move(value).error().at(path.filename().string());
      // Data older than their element type hold its bits: bfloat16 as uint16.
      if (value->is_tensor() && k < ports.size() && ports[k].type != nullptr &&
          ports[k].type->is_tensor()) {
        TRY(Tensor tensor, from_numpy_carrier(value->tensor(), ports[k].type->dtype()));
        value = RunValue(std::move(tensor));
      }
      values.push_back(*std::move(value));
    }
    return values;
  };
  // Test inputs stand for the inputs in order; older files leave out those that initialisers give.
  std::vector<SessionPort> required;
  for (const SessionPort& port : session.inputs())
    if (!port.has_default) required.push_back(port);
  auto inputs = read_all("input", session.inputs());
  if (inputs && inputs->size() <= required.size() && required.size() != session.inputs().size())
    inputs = read_all("input", required);
  if (!inputs) return failed(inputs.error());
  const std::vector<SessionPort>& ports =
      inputs->size() <= required.size() ? required : session.inputs();
  auto expected = read_all("output", session.outputs());
  if (!expected) return failed(expected.error());
  std::vector<NamedValue> named;
  for (size_t i = 0; i < inputs->size() && i < ports.size(); ++i)
    if (!(*inputs)[i].is_none()) named.push_back({ports[i].name, (*inputs)[i]});
  // Twice: the first run is traced, the second follows the plan made from the trace.
  for (int i = 0; i < 2; ++i) {
    auto outputs = session.run(named);
    if (!outputs) return failed(outputs.error());
    if (Outcome outcome = judge(session, *outputs, *expected, tolerance);
        outcome.status != Outcome::Status::kPassed)
      return outcome;
  }
  return {};
}

Outcome run_npz(const Session& session, const fs::path& path, const Tolerance* tolerance) {
  auto file = MappedFile::open(path.string());
  if (!file) return failed(file.error());
  auto tensors = read_npz(*file);
  if (!tensors) return failed(tensors.error());
  for (const std::string set : {"", "2"}) {
    std::vector<NamedTensor> inputs;
    std::vector<std::pair<size_t, Tensor>> expected;
    for (const NamedTensor& named : *tensors) {
      if (named.name.starts_with("in" + set + "_")) inputs.push_back(named);
      if (named.name.starts_with("out" + set + "_"))
        expected.push_back(
            {std::strtoul(named.name.c_str() + 4 + set.size(), nullptr, 10), named.tensor});
    }
    if (expected.empty()) {
      if (set.empty()) return failed("io.npz holds no outputs");
      continue;
    }
    auto bound = bind_inputs(std::move(inputs), session, "in" + set + "_");
    if (!bound) return failed(bound.error());
    if (auto traced = session.run(*bound); !traced) return failed(traced.error());
    auto outputs = session.run(*bound);  // along the plan made from the first run
    if (!outputs) return failed(outputs.error());
    for (const auto& [index, tensor] : expected) {
      if (index >= outputs->size())
        return failed("out" + set + "_" + std::to_string(index) + " is expected, the model has " +
                      std::to_string(outputs->size()) + " outputs");
      const RunValue& actual = (*outputs)[index];
      Tensor want = tensor;
      if (actual.is_tensor())
        if (auto carried = from_numpy_carrier(want, actual.tensor().dtype())) want = *carried;
      if (Comparison result = compare(actual, RunValue(want), tolerance); !result.equal)
        return failed("output \"" + session.outputs()[index].name + "\"" +
                      (set.empty() ? "" : " at the second size") + ": " + result.reason);
    }
  }
  return {};
}

Outcome run_light(const Case& test, const SessionOptions& options) {
  auto session = open_session(test.light, options);
  if (!session) return failed(session.error());
  std::vector<NamedValue> inputs;
  for (const SessionPort& port : (*session)->inputs()) {
    if (port.has_default) continue;
    auto value = random_value(port, nullptr, 0);
    if (!value) return failed(value.error());
    Tensor& tensor = value->tensor();
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_double(i, static_cast<double>(i) / static_cast<double>(tensor.size()));
    inputs.push_back({port.name, *std::move(value)});
  }
  fs::path path = test.light;
  path.replace_filename(test.light.stem().string() + "_output_0.pb");
  auto expected = load_tensor_file(path.string(), (*session)->outputs()[0].type);
  if (!expected) return failed(expected.error());
  auto outputs = (*session)->run(inputs);
  if (!outputs) return failed(outputs.error());
  const Tolerance loose{2e-3, 1e-7};  // upstream's own for densenet121
  return judge(**session, *outputs, {*std::move(expected)},
               test.name.find("densenet121") != std::string::npos ? &loose : nullptr);
}

Outcome run_case(const Case& test, const SessionOptions& options) {
  if (!test.light.empty()) return run_light(test, options);
  auto expectation = read_expectation(test.folder);
  if (!expectation) return failed(expectation.error());
  const std::string model = expectation->file.empty() ? find_model_file(test.folder.string())
                                                      : (test.folder / expectation->file).string();
  if (model.empty()) return {Outcome::Status::kSkipped, "no model.* of a format that can be read"};
  auto session = open_session(model, options);
  if (expectation->refused) {
    if (session) return failed("the model converts, but must be refused");
    return session.error().kind == ErrorKind::kUnsupported ? Outcome() : failed(session.error());
  }
  if (!session) return failed(session.error());
  const Tolerance* tolerance = expectation->tolerance ? &*expectation->tolerance : nullptr;
  std::error_code code;
  if (fs::exists(test.folder / "io.npz", code))
    return run_npz(**session, test.folder / "io.npz", tolerance);
  for (int set = 0;; ++set) {
    const fs::path folder = test.folder / ("test_data_set_" + std::to_string(set));
    if (!fs::exists(folder, code)) break;
    if (Outcome outcome = run_pb_set(**session, folder, tolerance);
        outcome.status != Outcome::Status::kPassed)
      return outcome;
  }
  return {};
}

/// A failed case with a row in the table of excluded ones is excluded, if no more is wrong than
/// the row says.
Outcome excuse(const Case& test, Outcome outcome) {
  if (outcome.status != Outcome::Status::kFailed) return outcome;
  const ExcludedCase* row = find_excluded_case(test.folder.string());
  if (row == nullptr || row->runs != outcome.only_values) return outcome;
  return {Outcome::Status::kExcluded, std::string(row->reason) + ": " + std::string(row->evidence)};
}

Result<int> run_conformance(const Args& args, Console& console) {
  TRY(int64_t jobs, args.get_int("jobs", static_cast<int64_t>(allowed_cores())));
  SessionOptions options;
  options.reference = args.flag("reference");
  std::regex filter;
  const std::string pattern = args.get("filter").value_or("");
  try {
    filter = std::regex(pattern);
  } catch (const std::regex_error&) {
    return usage_error("--filter takes a regular expression, not \"" + pattern + "\"");
  }
  std::vector<Case> cases;
  for (const std::string& root : args.positionals("DIR")) {
    std::error_code code;
    if (!fs::is_directory(root, code)) return parse_error("no such folder: " + root);
    fs::path folder = fs::absolute(root, code).lexically_normal();
    collect(folder.has_filename() ? folder : folder.parent_path(), cases);
  }
  if (!pattern.empty())
    std::erase_if(cases, [&](const Case& test) { return !std::regex_search(test.name, filter); });

  std::vector<Outcome> outcomes(cases.size());
  std::atomic<size_t> next{0}, done{0};
  std::mutex mutex;
  auto work = [&] {
    for (size_t i; (i = next++) < cases.size();) {
      outcomes[i] = excuse(cases[i], run_case(cases[i], options));
      std::lock_guard lock(mutex);
      console.step("conformance", ++done, cases.size());
    }
  };
  std::vector<std::thread> workers;
  for (int64_t i = 1; i < std::min<int64_t>(jobs, 64); ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  console.step_done();

  size_t counts[4] = {0, 0, 0, 0};
  std::string json;
  constexpr const char* names[] = {"passed", "failed", "skipped", "excluded"};
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto status = static_cast<size_t>(outcomes[i].status);
    ++counts[status];
    if (console.json)
      json += (i == 0 ? "" : ",") + std::string("{\"name\":") + json_quote(cases[i].name) +
              ",\"status\":\"" + names[status] + "\",\"reason\":" + json_quote(outcomes[i].reason) +
              "}";
    else if (status != 0 || console.verbosity > 0)
      console.print(std::string(names[status]) + "  " + cases[i].name +
                    (outcomes[i].reason.empty() ? "" : "  " + outcomes[i].reason) + "\n");
  }
  if (console.json)
    console.print("{\"passed\":" + std::to_string(counts[0]) + ",\"failed\":" +
                  std::to_string(counts[1]) + ",\"skipped\":" + std::to_string(counts[2]) +
                  ",\"excluded\":" + std::to_string(counts[3]) + ",\"cases\":[" + json + "]}\n");
  else
    console.print(std::to_string(counts[0]) + " passed, " + std::to_string(counts[1]) +
                  " failed, " + std::to_string(counts[2]) + " skipped\n");
  return counts[1] == 0 ? kYes : kNo;
}

}  // namespace

const Verb conformance_verb = {
    .name = "conformance",
    .summary = "run every test case below folders and compare outputs",
    .description =
        "A case is a folder with a model.* and test_data_set_N/{input,output}_K.pb, or with a "
        "model.* and "
        "io.npz (in_0.., out_0.., in2_0.., out2_0..). Official cases whose record is wrong are "
        "listed as excluded, with the evidence, and not counted. Exit 1 if any case failed.",
    .positionals = {{"DIR", "folders to walk", true, true}},
    .options = {{"filter", "", "RE", "only cases whose path matches the regular expression"},
                {"reference", "", "", "reference kernels alone"},
                {"jobs", "", "N", "cases at a time (default: cores allowed)"}},
    .examples = {"tombolo conformance tests/keras/cases",
                 "tombolo conformance DIR --filter softmax --json"},
    .run = run_conformance,
};

}  // namespace tombolo::cli
