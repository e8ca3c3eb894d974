// tombolo compare A [B]: two models, or one model on several runtimes, side by side.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <thread>

#include "base/thread_pool.h"
#include "cli/inputs.h"
#include "cli/measure.h"
#include "cli/onnxruntime.h"
#include "cli/open.h"
#include "cli/verbs.h"
#include "runtime/compare.h"
#include "runtime/flatten.h"
#include "runtime/profile.h"

namespace tombolo::cli {

namespace {

/// One model on one runtime.
struct Side {
  std::string name;
  std::unique_ptr<Session> session;  ///< ours; else:
  std::unique_ptr<OnnxRuntime> other;
  bool timed = true;
  double load_ms = 0, first_ms = 0;
  Times times;
  std::vector<NamedTensor> outputs;
  std::string failure;  ///< why it did not run
};

/// How far `actual` is from `expected`.
struct Distance {
  bool comparable = false;
  double max_abs = 0, rms = 0;  ///< rms: of the difference, in parts of the expected values' rms
  bool equal = false;
  std::string reason;
};

Distance distance_of(const Tensor& actual, const Tensor& expected, const Tolerance* tolerance) {
  Distance result;
  const Comparison comparison = compare(RunValue(actual), RunValue(expected), tolerance);
  result.equal = comparison.equal;
  result.reason = comparison.reason;
  result.max_abs = comparison.max_abs;
  if (actual.dtype() != expected.dtype() || !(actual.dims() == expected.dims()) ||
      actual.is_string() || is_complex(actual.dtype()))
    return result;
  result.comparable = true;
  double error = 0, size = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double want = expected.get_double(i), got = actual.get_double(i);
    if (!std::isfinite(want) || !std::isfinite(got)) continue;
    error += (got - want) * (got - want);
    size += want * want;
  }
  result.rms = size > 0 ? std::sqrt(error / size) : std::sqrt(error);
  return result;
}

Result<std::vector<RunValue>> ordered(const Session& session,
                                      const std::vector<NamedValue>& inputs) {
  std::vector<RunValue> values(session.inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Two models may name their inputs differently: then position counts.
    auto index = session.input_index(inputs[i].name);
    const size_t at = index ? *index : i;
    if (at >= values.size()) return std::move(index).error();
    values[at] = inputs[i].value;
  }
  return values;
}

/// Runs once; outputs are kept when `keep`.
Status run_once(Side& side, const std::vector<NamedValue>& inputs, bool keep, double* ms) {
  if (side.session != nullptr) {
    TRY(std::vector<RunValue> values, ordered(*side.session, inputs));
    const double begin = now_ms();
    TRY(auto outputs, side.session->run_ordered(std::move(values)));
    if (keep) side.outputs = flatten_outputs(side.session->outputs(), outputs);
    // ONNX Runtime's outputs of the run before are let go of while the clock runs, too.
    outputs.clear();
    if (ms != nullptr) *ms = now_ms() - begin;
    return ok();
  }
  std::vector<NamedTensor> tensors;
  for (const NamedValue& input : inputs) {
    if (!input.value.is_tensor()) return unsupported("input \"" + input.name + "\" is no tensor");
    tensors.push_back({input.name, input.value.tensor()});
  }
  const double begin = now_ms();
  CHECK_OK(side.other->run(tensors));
  if (ms != nullptr) *ms = now_ms() - begin;
  if (!keep) return ok();
  TRY(const std::vector<RunValue> values, side.other->results());
  std::vector<SessionPort> ports(values.size());
  for (size_t i = 0; i < ports.size(); ++i) ports[i].name = side.other->outputs()[i];
  side.outputs = flatten_outputs(ports, values);
  return ok();
}

Result<Side> own_side(const Args& args, const std::string& name, const std::string& path,
                      bool reference) {
  Side side;
  side.name = name;
  TRY(int64_t level, args.get_int("level", 2));
  const double begin = now_ms();
  TRY(std::unique_ptr<Model> model, load_model(path));
  SessionOptions options;
  options.reference = reference;
  options.fast_math = args.flag("fast-math") && !reference;
  options.optimise = static_cast<int>(level);
  TRY(side.session, Session::create(std::move(model), options));
  side.load_ms = now_ms() - begin;
  side.timed = !reference;
  return side;
}

Side other_side(const std::string& name, const std::string& library, const std::string& path,
                const std::string& disabled) {
  Side side;
  side.name = name;
  const double begin = now_ms();
  auto opened = OnnxRuntime::open(library, path, {thread_count(), disabled});
  side.load_ms = now_ms() - begin;
  if (opened)
    side.other = *std::move(opened);
  else
    side.failure = opened.error().message;
  return side;
}

/// Values inside the main graph, by name.
struct Layers {
  std::vector<std::string> order;
  std::map<std::string, Tensor> values;
  std::map<std::string, std::string> made_by;
};

void keep_layer(void* user, const Node& node, size_t output, const RunValue& value) {
  auto& layers = *static_cast<Layers*>(user);
  const Value* named = node.output(output);
  if (named == nullptr || !value.is_tensor() || value.tensor().is_string()) return;
  auto copy = value.tensor().clone();  // the plan may give its memory to another value
  if (!copy) return;
  std::string name(named->name());
  layers.made_by[name] = std::string(node.op_type());
  layers.order.push_back(name);
  layers.values[std::move(name)] = *std::move(copy);
}

Result<Layers> layers_of(Side& side, const std::vector<NamedValue>& inputs) {
  Layers layers;
  Profile profile;
  profile.observe = keep_layer;
  profile.user = &layers;
  RunOptions options;
  options.profile = &profile;
  TRY(std::vector<RunValue> values, ordered(*side.session, inputs));
  CHECK_OK(side.session->run_ordered(std::move(values), options));
  return layers;
}

struct BadLayer {
  std::string name, op;
  Distance distance;
};

/// Layers that both have under one name and that differ, in the order of the expected side.
Result<std::vector<BadLayer>> bad_layers(Side& expected, Side& actual,
                                         const std::vector<NamedValue>& inputs,
                                         const Tolerance* tolerance, size_t& compared) {
  TRY(const Layers want, layers_of(expected, inputs));
  TRY(const Layers got, layers_of(actual, inputs));
  std::vector<BadLayer> bad;
  for (const std::string& name : want.order) {
    const auto found = got.values.find(name);
    if (found == got.values.end()) continue;
    ++compared;
    const Distance distance = distance_of(found->second, want.values.at(name), tolerance);
    if (!distance.equal) bad.push_back({name, want.made_by.at(name), distance});
  }
  return bad;
}

struct Line {
  std::string side, output;
  Distance distance;
};

std::string scientific(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

std::string json_text(const std::vector<Side>& sides, const std::vector<Line>& lines,
                      const std::vector<BadLayer>& bad, bool equal) {
  std::string out = std::string("{\"equal\":") + (equal ? "true" : "false") +
                    ",\"threads\":" + std::to_string(thread_count()) + ",\"sides\":[";
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    out += (i == 0 ? "" : ",") + std::string("{\"name\":") + json_quote(side.name) +
           ",\"failure\":" + json_quote(side.failure) +
           ",\"load_ms\":" + json_number(side.load_ms) +
           ",\"first_ms\":" + json_number(side.first_ms) +
           ",\"runs\":" + std::to_string(side.times.size()) +
           ",\"median_ms\":" + json_number(side.times.median()) +
           ",\"min_ms\":" + json_number(side.times.min()) +
           ",\"spread\":" + json_number(side.times.spread()) + "}";
  }
  out += "],\"outputs\":[";
  for (size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? "" : ",") + std::string("{\"side\":") + json_quote(lines[i].side) +
           ",\"name\":" + json_quote(lines[i].output) +
           ",\"equal\":" + (lines[i].distance.equal ? "true" : "false") +
           ",\"max_abs\":" + json_number(lines[i].distance.max_abs) +
           ",\"relative_rms\":" + json_number(lines[i].distance.rms) +
           ",\"reason\":" + json_quote(lines[i].distance.reason) + "}";
  out += "],\"layers\":[";
  for (size_t i = 0; i < bad.size(); ++i)
    out += (i == 0 ? "" : ",") + std::string("{\"name\":") + json_quote(bad[i].name) +
           ",\"op\":" + json_quote(bad[i].op) +
           ",\"max_abs\":" + json_number(bad[i].distance.max_abs) +
           ",\"relative_rms\":" + json_number(bad[i].distance.rms) +
           ",\"reason\":" + json_quote(bad[i].distance.reason) + "}";
  return out + "]}\n";
}

/// Waits until the threads of the side that ran before do nothing: some look for work for a tenth
/// of a second, on the cores that the next side needs. The clock of a running thread moves at
/// ticks.
void let_others_rest() {
  const auto cpu_seconds = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  for (int i = 0; i < 50; ++i) {
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (cpu_seconds() - before < 1e-3) return;
  }
}

Result<int> run_compare(const Args& args, Console& console) {
  TRY(int64_t runs, args.get_int("runs", 10));
  TRY(double seconds, number_of(args, "max-time", 20));
  Tolerance own;
  TRY(own.rtol, number_of(args, "rtol", 0));
  TRY(own.atol, number_of(args, "atol", 0));
  const Tolerance* tolerance = args.get("rtol") || args.get("atol") ? &own : nullptr;
  const std::string a = args.positional("MODEL"), b = args.positional("OTHER");

  // The first side that runs says what is expected of the others.
  std::vector<Side> sides;
  if (!b.empty()) {
    TRY(Side first, own_side(args, a, a, false));
    TRY(Side second, own_side(args, b, b, false));
    sides.push_back(std::move(first));
    sides.push_back(std::move(second));
  } else {
    if (!args.flag("no-reference")) {
      TRY(Side reference, own_side(args, "reference", a, true));
      sides.push_back(std::move(reference));
    }
    TRY(Side fast, own_side(args, "tombolo", a, false));
    sides.push_back(std::move(fast));
    const std::string library = find_onnxruntime(args.get("onnxruntime").value_or(""));
    if (!library.empty()) {
      sides.push_back(other_side("onnxruntime", library, a, ""));
      for (const std::string& name : args.all("ort-without"))
        sides.push_back(other_side("onnxruntime without " + name, library, a, name));
    } else {
      console.message("ONNX Runtime was not found: name its library with --onnxruntime\n");
    }
  }
  TRY(const std::vector<NamedValue> inputs, gather_inputs(args, *sides[0].session, true));

  // First runs, then turns of a few runs each, so that what else the machine does meets all.
  for (Side& side : sides) {
    if (!side.failure.empty()) continue;
    if (Status status = run_once(side, inputs, !side.timed, &side.first_ms); !status) {
      if (side.session != nullptr) return std::move(status).error().at(side.name);
      side.failure = status.error().message;
    }
  }
  constexpr int64_t kTurns = 6;
  constexpr int kWarmRuns = 4;
  const double limit = now_ms() + seconds * 1000;
  const int64_t each = (runs + kTurns - 1) / kTurns;
  for (int64_t turn = 0, done = 0; done < runs; ++turn, done += each) {
    if (now_ms() > limit && turn > 2) break;
    for (Side& side : sides) {
      if (!side.timed || !side.failure.empty()) continue;
      let_others_rest();
      double ms = 0;
      // The caches are those of another side, threads sleep, and the first runs of all meet memory
      // that is new to the machine: not timed.
      const double warm = now_ms() + 5, enough = warm + 45;
      for (int i = 0; i == 0 || now_ms() < (i < kWarmRuns ? enough : warm); ++i)
        CHECK_OK(run_once(side, inputs, false, &ms));
      const double end = now_ms() + seconds * 1000 / kTurns;
      for (int64_t i = 0; i < std::min(each, runs - done) && (i == 0 || now_ms() < end); ++i) {
        CHECK_OK(run_once(side, inputs, false, &ms));
        side.times.add(ms);
      }
    }
    console.step("compare", static_cast<size_t>(turn + 1), static_cast<size_t>(kTurns));
  }
  console.step_done();
  // What is compared is what all runs but the first give: that one went node by node, they follow
  // a plan of memory.
  for (Side& side : sides)
    if (side.timed && side.failure.empty()) CHECK_OK(run_once(side, inputs, true, nullptr));

  bool equal = true;
  std::vector<Line> lines;
  for (size_t i = 1; i < sides.size(); ++i) {
    if (!sides[i].failure.empty()) continue;
    const auto& want = sides[0].outputs;
    const auto& got = sides[i].outputs;
    for (size_t k = 0; k < want.size(); ++k) {
      Line line;
      line.side = sides[i].name;
      line.output = want[k].name;
      const NamedTensor* found = nullptr;
      if (k < got.size() && got[k].name == want[k].name) found = &got[k];
      for (size_t at = 0; at < got.size() && found == nullptr; ++at)
        if (got[at].name == want[k].name) found = &got[at];
      if (found == nullptr && k < got.size() && !b.empty()) found = &got[k];
      if (found == nullptr)
        line.distance.reason = "is not among the outputs";
      else
        line.distance = distance_of(found->tensor, want[k].tensor, tolerance);
      // What ONNX Runtime gives is told, and does not decide.
      equal = equal && (line.distance.equal || sides[i].other != nullptr);
      lines.push_back(std::move(line));
    }
  }
  std::vector<BadLayer> bad;
  size_t compared = 0;
  const bool layers = args.flag("layers") || !equal;
  if (layers && sides.size() > 1 && sides[1].session != nullptr) {
    TRY(bad, bad_layers(sides[0], sides[1], inputs, tolerance, compared));
  }

  if (console.json) {
    console.print(json_text(sides, lines, bad, equal));
    return equal ? kYes : kNo;
  }
  std::string out;
  for (const Side& side : sides) {
    out += side.name + ": ";
    if (!side.failure.empty()) {
      out += "does not run: " + side.failure + "\n";
      continue;
    }
    out +=
        "load " + short_number(side.load_ms) + " ms, first " + short_number(side.first_ms) + " ms";
    if (side.times.size() != 0)
      out += ", median " + short_number(side.times.median()) + " ms of " +
             std::to_string(side.times.size()) + " (min " + short_number(side.times.min()) +
             ", spread " + short_number(side.times.spread() * 100) + " %)";
    out += "\n";
  }
  out += "\n";
  for (const Line& line : lines) {
    out += line.output + " of " + line.side +
           (line.distance.equal ? " agrees" : " DIFFERS: " + line.distance.reason);
    if (line.distance.comparable)
      out += "; largest difference " + scientific(line.distance.max_abs) + ", relative rms " +
             scientific(line.distance.rms);
    out += "\n";
  }
  if (layers && compared != 0) {
    if (bad.empty()) {
      out += "all " + std::to_string(compared) + " values with the same name inside agree\n";
    } else {
      out += "first value inside that differs: \"" + bad[0].name + "\" (" + bad[0].op +
             "): " + bad[0].distance.reason + "; " + std::to_string(bad.size()) + " of " +
             std::to_string(compared) + " differ\n";
    }
  }
  console.print(out);
  return equal ? kYes : kNo;
}

}  // namespace

const Verb compare_verb = {
    .name = "compare",
    .summary = "compare two models, or one model on several runtimes",
    .description =
        "With OTHER, runs both models on the same inputs. Without, runs MODEL with the reference "
        "kernels, the fast ones, and ONNX Runtime if its library is found. Outputs are compared "
        "with those of the first, times are medians of runs that take turns. Exit 1 when outputs "
        "of ours differ; the first value inside that differs is named then.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"},
                    {"OTHER", "a second model", false}},
    .options = input_options({
        {"runs", "", "N", "rounds that are timed", "10"},
        {"max-time", "", "SECONDS", "no further rounds after this time", "20"},
        {"rtol", "", "R", "relative tolerance (default: that of conformance)"},
        {"atol", "", "A", "absolute tolerance"},
        {"layers", "", "", "compare the values inside even when the outputs agree"},
        {"onnxruntime", "", "FILE", "libonnxruntime.so", "", false, Completes::kFile},
        {"ort-without", "", "NAME", "one more side: ONNX Runtime with this optimiser off", "",
         true},
        {"no-reference", "", "", "leave out the reference kernels, which are slow"},
        {"level", "", "L", "graph rewrites, 0 to 3", "2"},
        {"fast-math", "", "", "products of 8 or 16 bits may stand for those of 32"},
    }),
    .examples = {"tombolo compare before.onnx after.onnx",
                 "tombolo compare model.onnx --onnxruntime libonnxruntime.so.1 --threads 1"},
    .run = run_compare,
};

}  // namespace tombolo::cli
