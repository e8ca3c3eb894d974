// tombolo profile MODEL: where the time of a run goes, node by node.

#include <algorithm>
#include <map>

#include "base/output_file.h"
#include "base/thread_pool.h"
#include "cli/inputs.h"
#include "cli/measure.h"
#include "cli/open.h"
#include "cli/verbs.h"
#include "runtime/profile.h"
#include "runtime/roofline.h"

namespace tombolo::cli {

namespace {

/// One node over all profiled runs.
struct ProfileLine {
  std::string name, op, kernel, inputs, outputs;
  Times times;
  double operations = 0, bytes = 0;
  uint64_t live_bytes = 0;
  int depth = 0;

  double gops() const { return times.median() > 0 ? operations / times.median() * 1e-6 : 0; }
  double gbps() const { return times.median() > 0 ? bytes / times.median() * 1e-6 : 0; }
  /// The share of what the machine could do at best.
  double attained(const Roofline& roofline) const {
    const double seconds = times.median() * 1e-3;
    if (seconds <= 0 || roofline.flops <= 0) return 0;
    const double rate = bytes > 16e6 ? roofline.bandwidth : roofline.cached;
    return std::min(1.0, std::max(operations / roofline.flops, bytes / rate) / seconds);
  }
};

std::string name_of_node(const Node& node) {
  if (!node.name().empty()) return std::string(node.name());
  for (const Value* output : node.outputs())
    if (output != nullptr) return std::string(output->name());
  return "?";
}

std::string json_of(const ProfileLine& line, const Roofline& roofline) {
  return "{\"name\":" + json_quote(line.name) + ",\"op\":" + json_quote(line.op) +
         ",\"kernel\":" + json_quote(line.kernel) + ",\"depth\":" + std::to_string(line.depth) +
         ",\"calls\":" + std::to_string(line.times.size()) +
         ",\"median_ms\":" + json_number(line.times.median()) +
         ",\"operations\":" + json_number(line.operations) +
         ",\"bytes\":" + json_number(line.bytes) +
         ",\"roofline_share\":" + json_number(line.attained(roofline)) +
         ",\"live_bytes\":" + std::to_string(line.live_bytes) +
         ",\"inputs\":" + json_quote(line.inputs) + ",\"outputs\":" + json_quote(line.outputs) +
         "}";
}

/// The last run as a trace that chrome://tracing and Perfetto show.
Status write_trace(const std::string& path, const Profile& profile) {
  TRY(OutputFile file, OutputFile::create(path));
  const uint64_t start = profile.events.empty() ? 0 : profile.events.front().begin_ns;
  auto microseconds = [&](uint64_t ns) {
    return json_number(static_cast<double>(static_cast<int64_t>(ns - start)) * 1e-3);
  };
  std::string out = "{\"traceEvents\":[\n";
  bool first = true;
  for (const ProfileEvent& event : profile.events) {
    out +=
        (first ? "" : ",\n") + std::string("{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":") +
        json_quote(name_of_node(*event.node)) + ",\"cat\":" + json_quote(event.node->op_type()) +
        ",\"ts\":" + microseconds(event.begin_ns) +
        ",\"dur\":" + json_number(static_cast<double>(event.end_ns - event.begin_ns) * 1e-3) +
        ",\"args\":{\"op\":" + json_quote(event.node->op_type()) +
        ",\"kernel\":" + json_quote(event.kernel) +
        ",\"operations\":" + std::to_string(event.operations) +
        ",\"inputs\":" + json_quote(event.inputs) + ",\"outputs\":" + json_quote(event.outputs) +
        "}},\n{\"ph\":\"C\",\"pid\":1,\"name\":\"tensors\",\"ts\":" + microseconds(event.end_ns) +
        ",\"args\":{\"bytes\":" + std::to_string(event.live_bytes) + "}}";
    first = false;
    if (out.size() > (size_t{1} << 20)) {
      CHECK_OK(file.write(out));
      out.clear();
    }
  }
  CHECK_OK(file.write(out + "\n]}\n"));
  return file.commit();
}

/// The calls of one run. A node of the main graph has one, also where a batch goes through it a few
/// images at a time.
std::vector<ProfileEvent> calls_of(const Profile& profile) {
  std::vector<ProfileEvent> calls;
  std::map<const Node*, size_t> call_of;
  for (const ProfileEvent& event : profile.events) {
    if (event.depth == 0)
      if (const auto [entry, first] = call_of.try_emplace(event.node, calls.size()); !first) {
        ProfileEvent& call = calls[entry->second];
        call.end_ns += event.end_ns - event.begin_ns;
        call.operations += event.operations;
        call.read_bytes += event.read_bytes;
        call.written_bytes += event.written_bytes;
        call.live_bytes = std::max(call.live_bytes, event.live_bytes);
        continue;
      }
    calls.push_back(event);
  }
  return calls;
}

Result<int> run_profile(const Args& args, Console& console) {
  TRY(int64_t runs, args.get_int("runs", 10));
  TRY(int64_t top, args.get_int("top", 30));
  TRY(int64_t level, args.get_int("level", 2));
  TRY(std::unique_ptr<Model> model, open_model(args));
  SessionOptions options;
  options.reference = args.flag("reference");
  options.fast_math = args.flag("fast-math");
  options.optimise = static_cast<int>(level);
  auto session = Session::create(std::move(model), options);
  if (!session) return std::move(session).error().at(args.positional("MODEL"));
  TRY(std::vector<NamedValue> inputs, gather_inputs(args, **session, true));

  for (int i = 0; i < 2; ++i) CHECK_OK((*session)->run(inputs));
  std::vector<ProfileLine> lines;
  std::map<std::pair<const Node*, int>, size_t> line_of;
  Profile profile;
  profile.shapes = true;
  Times whole;
  uint64_t peak_live = 0;
  for (int64_t i = 0; i < std::max<int64_t>(runs, 1); ++i) {
    profile.events.clear();
    RunOptions profiled;
    profiled.profile = &profile;
    const double start = now_ms();
    CHECK_OK((*session)->run(inputs, profiled));
    whole.add(now_ms() - start);
    for (const ProfileEvent& event : calls_of(profile)) {
      auto [entry, made] = line_of.try_emplace({event.node, event.depth}, lines.size());
      if (made) {
        ProfileLine line;
        line.name = name_of_node(*event.node);
        line.op = std::string(event.node->op_type());
        line.kernel = event.kernel;
        line.depth = event.depth;
        lines.push_back(std::move(line));
      }
      ProfileLine& line = lines[entry->second];
      line.times.add(static_cast<double>(event.end_ns - event.begin_ns) * 1e-6);
      line.operations = static_cast<double>(event.operations);
      line.bytes = static_cast<double>(event.read_bytes + event.written_bytes);
      line.inputs = event.inputs;
      line.outputs = event.outputs;
      line.live_bytes = event.live_bytes;
      peak_live = std::max(peak_live, event.live_bytes);
    }
  }
  if (auto path = args.get("trace")) CHECK_OK(write_trace(*path, profile));
  const Roofline roofline = measure_roofline(thread_count());
  if (console.json) {
    std::string out;
    for (const ProfileLine& line : lines) out += (out.empty() ? "" : ",") + json_of(line, roofline);
    console.print("{\"model\":" + json_quote(args.positional("MODEL")) + ",\"threads\":" +
                  std::to_string(thread_count()) + ",\"median_ms\":" + json_number(whole.median()) +
                  ",\"peak_flops\":" + json_number(roofline.flops) +
                  ",\"bandwidth\":" + json_number(roofline.bandwidth) + ",\"peak_live_bytes\":" +
                  std::to_string(peak_live) + ",\"nodes\":[" + out + "]}\n");
    return kYes;
  }

  double total = 0;
  std::map<std::string, std::pair<double, size_t>> by_op;
  for (const ProfileLine& line : lines) {
    if (line.depth != 0) continue;
    const double ms = line.times.median();
    total += ms;
    auto& [sum, count] = by_op[line.op + "  " + line.kernel];
    sum += ms;
    ++count;
  }
  auto pad = [](std::string text, size_t width, bool right = true) {
    if (text.size() > width && !right) text = text.substr(0, width - 1) + "~";
    const std::string space(width - std::min(width, text.size()), ' ');
    return right ? space + text : text + space;
  };
  std::vector<const ProfileLine*> order;
  for (const ProfileLine& line : lines) order.push_back(&line);
  std::stable_sort(order.begin(), order.end(), [](const ProfileLine* a, const ProfileLine* b) {
    return a->times.median() > b->times.median();
  });
  std::string out = "run     " + short_number(whole.median()) + " ms on " +
                    std::to_string(thread_count()) + " threads, nodes " + short_number(total) +
                    " ms; tensors at most " + human_bytes(peak_live) + "\n" + "machine " +
                    short_number(roofline.flops * 1e-9) + " Gop/s of float, " +
                    short_number(roofline.bandwidth * 1e-9) + " GB/s from memory, " +
                    short_number(roofline.cached * 1e-9) + " GB/s from cache\n\n";
  out += pad("ms", 10) + pad("%", 9) + pad("Gop/s", 9) + pad("GB/s", 8) + pad("roof %", 8) + "  " +
         pad("operator", 22, false) + pad("kernel", 22, false) + "node\n";
  for (size_t i = 0; i < order.size() && static_cast<int64_t>(i) < top; ++i) {
    const ProfileLine& line = *order[i];
    out += pad(short_number(line.times.median()), 10) +
           pad(short_number(total > 0 ? line.times.median() / total * 100 : 0), 9) +
           pad(short_number(line.gops()), 9) + pad(short_number(line.gbps()), 8) +
           pad(short_number(line.attained(roofline) * 100), 8) + "  " +
           pad(std::string(static_cast<size_t>(line.depth), '>') + line.op, 22, false) +
           pad(line.kernel, 22, false) + line.name + "\n";
    if (console.verbosity > 0)
      out += std::string(46, ' ') + line.inputs + " -> " + line.outputs + "\n";
  }
  out += "\nby operator and kernel\n";
  std::vector<std::pair<std::string, std::pair<double, size_t>>> sums(by_op.begin(), by_op.end());
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  for (const auto& [key, sum] : sums)
    out += pad(short_number(sum.first), 10) +
           pad(short_number(total > 0 ? sum.first / total * 100 : 0), 9) +
           pad(std::to_string(sum.second) + "x", 9) + "  " + key + "\n";
  console.print(out);
  return kYes;
}

}  // namespace

const Verb profile_verb = {
    .name = "profile",
    .summary = "show where the time of a run goes, node by node",
    .description =
        "Times are medians over --runs. Operations count a multiply-add as two, whatever the "
        "kernel "
        "does; bytes are those of a node's inputs and outputs. \"roof %\" is the share of the "
        "machine's own arithmetic or bandwidth, whichever binds. Nodes below an If, Loop or Scan "
        "are marked with >. With -v, types and shapes.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"}},
    .options = load_options(input_options({
        {"runs", "", "N", "runs that are profiled", "10"},
        {"top", "", "N", "nodes that are listed", "30"},
        {"trace", "", "FILE", "write the last run as a Chrome trace, with the memory alive", "",
         false, Completes::kFile},
        {"level", "", "L", "graph rewrites, 0 to 3", "2"},
        {"fast-math", "", "", "products of 8 or 16 bits may stand for those of 32"},
        {"reference", "", "", "reference kernels alone"},
    })),
    .examples = {"tombolo profile model.onnx --threads 1",
                 "tombolo profile model.onnx --trace t.json"},
    .run = run_profile,
};

}  // namespace tombolo::cli
