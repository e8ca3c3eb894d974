// tombolo bench MODEL: how fast a model runs here, and what keeps it from running faster.

#include <algorithm>
#include <cmath>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "cli/inputs.h"
#include "cli/measure.h"
#include "cli/open.h"
#include "cli/verbs.h"
#include "runtime/profile.h"
#include "runtime/roofline.h"

namespace tombolo::cli {

namespace {

/// One combination of what --each varies.
struct Setting {
  std::vector<std::pair<std::string, std::string>> given;  ///< as on the command line, for tables
  int64_t threads = 0;
  int64_t level = -1;
  bool fast_math = false;
  bool reference = false;
  NamedSizes sizes;  ///< besides those of --size
};

struct Row {
  Setting setting;
  int threads = 1;
  size_t runs = 0;
  double load_ms = 0, first_ms = 0;
  Times times;
  uint64_t rss_loaded = 0, rss_peak = 0, packed = 0;
  // Of one run, by the nodes' meaning.
  double operations = 0, bytes = 0;
  size_t nodes = 0;
  std::string bound;    ///< compute, bandwidth, overhead or kernels; empty when not measured
  double attained = 0;  ///< the share of what the machine could do at best
};

Status apply(Setting& setting, const std::string& key, const std::string& value) {
  setting.given.emplace_back(key, value);
  TRY(const int64_t number, whole_number(key, value));
  if (key == "threads")
    setting.threads = number;
  else if (key == "level")
    setting.level = number;
  else if (key == "fast-math")
    setting.fast_math = number != 0;
  else if (key == "reference")
    setting.reference = number != 0;
  else
    setting.sizes.emplace_back(key, number);
  return ok();
}

/// The product of all --each lists, over what the other options fix.
Result<std::vector<Setting>> settings_of(const Args& args) {
  Setting base;
  TRY(base.threads, args.get_int("threads", 0));
  base.fast_math = args.flag("fast-math");
  base.reference = args.flag("reference");
  if (args.get("level")) {
    TRY(base.level, args.get_int("level", 2));
  }
  std::vector<Setting> list = {base};
  for (const std::string& text : args.all("each")) {
    TRY(const auto part, name_and_value("each", text));
    std::vector<Setting> product;
    for (const Setting& so_far : list)
      for (const std::string& value : split_commas(part.second)) {
        Setting next = so_far;
        CHECK_OK(apply(next, part.first, value));
        product.push_back(std::move(next));
      }
    list = std::move(product);
  }
  return list;
}

/// What a run does, from a profiled one, against what the machine can do.
void judge(Row& row, const Profile& profile, const Roofline& roofline) {
  for (const ProfileEvent& event : profile.events) {
    if (event.depth != 0) continue;
    row.operations += static_cast<double>(event.operations);
    if (event.operations != 0 || event.written_bytes != 0)
      row.bytes += static_cast<double>(event.read_bytes + event.written_bytes);
    ++row.nodes;
  }
  const double seconds = row.times.median() * 1e-3;
  if (seconds <= 0 || roofline.flops <= 0) return;
  const double compute = row.operations / roofline.flops;
  // What fits in the caches does not come from memory.
  const double rate = row.bytes > 32e6 ? roofline.bandwidth : roofline.cached;
  const double traffic = rate > 0 ? row.bytes / rate : 0;
  constexpr double kDispatch = 50e-9;
  const double overhead = static_cast<double>(row.nodes) * kDispatch;
  const double best = std::max({compute, traffic, overhead});
  row.attained = std::min(best / seconds, 1.0);
  row.bound = best == overhead ? "overhead" : best == compute ? "compute" : "bandwidth";
  if (row.attained < 0.4) row.bound = "kernels";
}

Result<Row> measure(const Args& args, const Setting& setting, Console& console) {
  Row row;
  row.setting = setting;
  TRY(int64_t runs, args.get_int("runs", 50));
  TRY(int64_t warmup, args.get_int("warmup", 3));
  TRY(double seconds, number_of(args, "max-time", 10));
  set_thread_count(static_cast<int>(std::min<int64_t>(setting.threads, 1024)));
  row.threads = thread_count();
  const double begin = now_ms();
  TRY(std::unique_ptr<Model> model, open_model(args));
  SessionOptions options;
  options.reference = setting.reference;
  options.fast_math = setting.fast_math;
  options.pack_cache = args.get("pack-cache").value_or("");
  if (setting.level >= 0) options.optimise = static_cast<int>(setting.level);
  TRY(std::unique_ptr<Session> session, Session::create(std::move(model), options));
  row.load_ms = now_ms() - begin;
  row.rss_loaded = current_rss_bytes();
  if (runs == 0) {
    row.rss_peak = peak_rss_bytes();
    return row;
  }
  TRY(std::vector<NamedValue> named, gather_inputs(args, *session, true, setting.sizes));
  std::vector<RunValue> inputs(session->inputs().size());
  for (NamedValue& value : named) {
    TRY(const size_t index, session->input_index(value.name));
    inputs[index] = std::move(value.value);
  }
  auto once = [&]() -> Result<double> {
    const double start = now_ms();
    TRY(auto outputs, session->run_ordered(inputs));
    return now_ms() - start;
  };
  const double limit = now_ms() + seconds * 1000;
  if (warmup > 0) {
    TRY(row.first_ms, once());
    for (int64_t i = 1; i < warmup && now_ms() < limit; ++i) CHECK_OK(once());
  }
  for (int64_t i = 0; i < runs; ++i) {
    TRY(const double ms, once());
    if (row.first_ms == 0) row.first_ms = ms;
    row.times.add(ms);
    console.step("bench", static_cast<size_t>(i) + 1, static_cast<size_t>(runs));
    if (now_ms() > limit && i >= 2) break;
  }
  console.step_done();
  row.runs = row.times.size();
  row.rss_peak = peak_rss_bytes();
  row.packed = session->packed_bytes();
  if (!args.flag("no-roofline")) {
    Profile profile;
    profile.shapes = true;
    RunOptions profiled;
    profiled.profile = &profile;
    CHECK_OK(session->run_ordered(inputs, profiled));
    judge(row, profile, measure_roofline(row.threads));
  }
  return row;
}

std::string json_of(const Args& args, const Row& row) {
  std::string out = "{\"model\":" + json_quote(args.positional("MODEL"));
  for (const auto& [key, value] : row.setting.given)
    if (key != "threads") out += "," + json_quote(key) + ":" + value;
  auto number = [&](const char* name, double value) {
    out += std::string(",\"") + name + "\":" + json_number(value);
  };
  number("threads", row.threads);
  number("runs", static_cast<double>(row.runs));
  number("load_ms", row.load_ms);
  number("first_ms", row.first_ms);
  number("median_ms", row.times.median());
  number("min_ms", row.times.min());
  number("mean_ms", row.times.mean());
  number("p90_ms", row.times.percentile(90));
  number("p99_ms", row.times.percentile(99));
  number("max_ms", row.times.max());
  number("spread", row.times.spread());
  number("rss_after_load_bytes", static_cast<double>(row.rss_loaded));
  number("peak_rss_bytes", static_cast<double>(row.rss_peak));
  number("packed_bytes", static_cast<double>(row.packed));
  if (!row.bound.empty()) {
    number("operations", row.operations);
    number("bytes", row.bytes);
    number("nodes", static_cast<double>(row.nodes));
    number("roofline_share", row.attained);
    out += ",\"bound\":" + json_quote(row.bound);
  }
  return out + "}";
}

std::string explain(const Row& row) {
  const double seconds = row.times.median() * 1e-3;
  std::string text = short_number(row.operations / seconds * 1e-9) + " Gop/s, " +
                     short_number(row.bytes / seconds * 1e-9) + " GB/s, " +
                     std::to_string(row.nodes) + " nodes; ";
  const std::string share = short_number(row.attained * 100) + " % of what this machine can do";
  if (row.bound == "kernels")
    return text + "bound by kernels: " + share + " (tombolo profile says which)";
  return text + "bound by " + row.bound + ": " + share;
}

void print_table(Console& console, const std::vector<Row>& rows, bool csv) {
  std::vector<std::string> head;
  for (const auto& [key, value] : rows[0].setting.given)
    if (key != "threads") head.push_back(key);
  for (const char* name : {"threads", "runs", "load ms", "first ms", "median ms", "min ms",
                           "p90 ms", "p99 ms", "spread %", "peak MB", "bound", "roofline %"})
    head.emplace_back(name);
  auto line = [&](const std::vector<std::string>& cells) {
    std::string text = csv ? "" : "| ";
    for (size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : csv ? "," : " | ") + cells[i];
    console.print(text + (csv ? "\n" : " |\n"));
  };
  line(head);
  if (!csv) line(std::vector<std::string>(head.size(), "---"));
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.setting.given)
      if (key != "threads") cells.push_back(value);
    for (const std::string& cell :
         {std::to_string(row.threads), std::to_string(row.runs), short_number(row.load_ms),
          short_number(row.first_ms), short_number(row.times.median()),
          short_number(row.times.min()), short_number(row.times.percentile(90)),
          short_number(row.times.percentile(99)), short_number(row.times.spread() * 100),
          short_number(static_cast<double>(row.rss_peak) * 1e-6), row.bound,
          short_number(row.attained * 100)})
      cells.push_back(cell);
    line(cells);
  }
}

Result<int> run_bench(const Args& args, Console& console) {
  TRY(const std::vector<Setting> settings, settings_of(args));
  std::vector<Row> rows;
  for (const Setting& setting : settings) {
    auto row = measure(args, setting, console);
    if (!row) return std::move(row).error().at(args.positional("MODEL"));
    rows.push_back(*std::move(row));
  }
  const std::string format = args.get("format").value_or("");
  if (console.json || format == "json") {
    std::string out;
    for (const Row& row : rows) out += (out.empty() ? "" : ",") + json_of(args, row);
    console.print((rows.size() == 1 ? out : "{\"results\":[" + out + "]}") + "\n");
    return kYes;
  }
  if (rows.size() > 1 || !format.empty()) {
    print_table(console, rows, format == "csv");
    return kYes;
  }
  const Row& row = rows[0];
  std::string out = "load    " + short_number(row.load_ms) + " ms, " + human_bytes(row.rss_loaded) +
                    " resident\n";
  if (row.runs != 0) {
    out += "first   " + short_number(row.first_ms) + " ms\n";
    out += "median  " + short_number(row.times.median()) + " ms of " + std::to_string(row.runs) +
           " runs on " + std::to_string(row.threads) + (row.threads == 1 ? " thread" : " threads") +
           " (min " + short_number(row.times.min()) + ", p90 " +
           short_number(row.times.percentile(90)) + ", p99 " +
           short_number(row.times.percentile(99)) + ", spread " +
           short_number(row.times.spread() * 100) + " %)\n";
    out += "memory  " + human_bytes(row.rss_peak) + " at most, " + human_bytes(row.packed) +
           " of it packed weights\n";
    if (!row.bound.empty()) out += "rate    " + explain(row) + "\n";
  }
  console.print(out);
  return kYes;
}

}  // namespace

const Verb bench_verb = {
    .name = "bench",
    .summary = "measure how fast a model runs, and what binds it",
    .description =
        "Inputs that are not given are random. --each KEY=A,B,... measures every combination; KEY "
        "is "
        "threads, level, fast-math, reference or a dimension that the model names.",
    .positionals = {{"MODEL", "a file or folder of any format that can be read"}},
    .options = load_options(input_options({
        {"runs", "", "N", "runs that are timed; 0 only loads", "50"},
        {"warmup", "", "N", "runs before", "3"},
        {"max-time", "", "SECONDS", "no further runs after this time", "10"},
        {"each", "", "KEY=A,B", "measure once for each value; several give all combinations", "",
         true},
        {"level", "", "L", "graph rewrites, 0 to 3", "2"},
        {"fast-math", "", "", "products of 8 or 16 bits may stand for those of 32"},
        {"reference", "", "", "reference kernels alone"},
        {"pack-cache", "", "DIR", "keep packed weights here for sessions to come", "", false,
         Completes::kFolder},
        {"no-roofline", "", "", "do not measure what the machine can do"},
        {"format", "", "FORMAT", "of a table", "", false, Completes::kNothing, "md|csv|json"},
    })),
    .examples = {"tombolo bench model.onnx --threads 2 --runs 100",
                 "tombolo bench bert.onnx --each threads=1,2 --each sequence=16,128 --format md"},
    .run = run_bench,
};

}  // namespace tombolo::cli
