#include "cli/coverage.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "base/cpu.h"
#include "cli/verbs.h"
#include "ops/registry.h"
#include "runtime/recipes/recipe.h"

namespace tombolo::cli {

namespace {

/// One type of one type variable of one version.
struct Triple {
  const OpVersion* version;
  size_t variable;
  ValueType type;
  ProbeResult result;
};

std::vector<Triple> all_triples(std::string_view wanted) {
  std::vector<Triple> triples;
  for (const OpVersion& version : all_versions()) {
    const std::string_view name = version.decl->name, domain = version.decl->domain;
    if ((!wanted.empty() && name != wanted) || domain == "com.microsoft") continue;
    for (size_t i = 0; i < version.types.size(); ++i)
      for (const ValueType& type : members_of(version.types[i].allowed))
        triples.push_back({&version, i, type, {}});
  }
  return triples;
}

std::string label(const OpVersion& version) {
  const std::string_view domain = version.decl->domain;
  return (domain.empty() ? "" : std::string(domain) + ".") +
         std::string(std::string_view(version.decl->name)) + "-" + std::to_string(version.since);
}

std::string markdown(const std::vector<Triple>& triples) {
  size_t run = 0, checked = 0;
  for (const Triple& triple : triples) run += triple.result.runs, checked += triple.result.checked;
  std::string out =
      "# What runs\n\nMade by `tombolo ops --coverage`, which runs each operator, in each version, "
      "with each type that a type variable may\nhave, and compares with the same model in double "
      "or "
      "int64.\n\n" +
      std::to_string(triples.size()) + " types of type variables: " + std::to_string(run) +
      " run, " + std::to_string(checked) +
      " of them compared (the others are the wide types themselves, text, or operators of one "
      "type).\n\n| operator | variable | types |\n|---|---|---|\n";
  for (size_t i = 0; i < triples.size();) {
    const Triple& first = triples[i];
    std::map<ValueType::Kind, std::vector<std::string>> names;
    std::string missing;
    size_t end = i;
    for (; end < triples.size() && triples[end].version == first.version &&
           triples[end].variable == first.variable;
         ++end) {
      const ValueType& type = triples[end].type;
      const std::string name = type.kind == ValueType::Kind::kMap
                                   ? type.schema_text()
                                   : std::string(name_of(type.dtype));
      if (triples[end].result.runs)
        names[type.kind].push_back(name);
      else
        missing +=
            (missing.empty() ? "" : "; ") + type.schema_text() + ": " + triples[end].result.reason;
    }
    constexpr const char* kKinds[] = {"", "sequences of ", "optional ", "optional sequences of ",
                                      ""};
    std::string text;
    for (const auto& [kind, list] : names) {
      text += (text.empty() ? "" : "; ") + std::string(kKinds[static_cast<size_t>(kind)]);
      for (size_t k = 0; k < list.size(); ++k) text += (k == 0 ? "" : ", ") + list[k];
    }
    if (!missing.empty()) text += " **not: " + missing + "**";
    out += "| " + label(*first.version) + " | " +
           std::string(first.version->types[first.variable].name) + " | " + text + " |\n";
    i = end;
  }
  return out;
}

/// The operators of com.microsoft: those that run, and why others do not.
std::string microsoft_markdown() {
  std::vector<std::string_view> names;
  for (const OpDecl* op : all_operators())
    if (std::string_view(op->domain) == "com.microsoft" && op->reference != nullptr)
      names.push_back(op->name);
  std::sort(names.begin(), names.end());
  std::string out = "\n## com.microsoft\n\n" + std::to_string(names.size()) +
                    " operators run (tools/oracle_microsoft.py compares them):\n\n";
  size_t width = 0;
  for (const std::string_view name : names) {
    if (width + name.size() > 126) {
      out.back() = '\n';
      width = 0;
    }
    out += std::string(name) + (name == names.back() ? ".\n" : ", ");
    width += name.size() + 2;
  }
  return out +
         "\nThese do not:\n\n"
         "| operator | why |\n|---|---|\n"
         "| EPContext, Snpe | hold a network that was compiled for the hardware of one vendor |\n"
         "| QuantizeBFP, DequantizeBFP | the layout of their bytes is nowhere published, and no "
         "runtime has a kernel |\n"
         "| SparseAttentionIndexer, PackedSparseAttentionIndexer, SparsePagedAttention | exist for "
         "GPUs alone; how blocks and masks go together is not described |\n"
         "| SparseToDenseMatMul | takes a sparse tensor at run time, which no exporter writes; "
         "not done yet |\n";
}

std::string json(const std::vector<Triple>& triples) {
  size_t run = 0, checked = 0;
  std::string rows;
  for (const Triple& triple : triples) {
    run += triple.result.runs;
    checked += triple.result.checked;
    const OpDecl& op = *triple.version->decl;
    rows += (rows.empty() ? "\n" : ",\n") + std::string("{\"domain\":") +
            json_quote(std::string_view(op.domain)) +
            ",\"name\":" + json_quote(std::string_view(op.name)) +
            ",\"version\":" + std::to_string(triple.version->since) +
            ",\"variable\":" + json_quote(triple.version->types[triple.variable].name) +
            ",\"type\":" + json_quote(triple.type.schema_text()) +
            ",\"runs\":" + (triple.result.runs ? "true" : "false") +
            ",\"checked\":" + (triple.result.checked ? "true" : "false") +
            ",\"reason\":" + json_quote(triple.result.reason) + "}";
  }
  return "{\"total\":" + std::to_string(triples.size()) + ",\"runs\":" + std::to_string(run) +
         ",\"checked\":" + std::to_string(checked) + ",\"types\":[" + rows + "\n]}\n";
}

}  // namespace

Result<int> print_coverage(Console& console, std::string_view wanted) {
  std::vector<Triple> triples = all_triples(wanted);
  if (triples.empty() && !wanted.empty())
    return usage_error("there is no operator \"" + std::string(wanted) + "\" with type variables");
  std::atomic<size_t> next{0}, done{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < triples.size();) {
      triples[i].result = probe(*triples[i].version, triples[i].variable, triples[i].type);
      std::lock_guard lock(mutex);
      console.step("coverage", ++done, triples.size());
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 1; i < std::min(allowed_cores(), 64u); ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  console.step_done();
  console.print(console.json ? json(triples)
                             : markdown(triples) + (wanted.empty() ? microsoft_markdown() : ""));
  const bool all = std::all_of(triples.begin(), triples.end(),
                               [](const Triple& triple) { return triple.result.runs; });
  return all ? kYes : kNo;
}

}  // namespace tombolo::cli
