#include "runner/verbs.h"

#include "analysis/checker.h"
#include "analysis/infer.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "onnx/json.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "passes/pipeline.h"
#include "passes/retarget.h"
#include "runtime/compare.h"
#include "runtime/equivalence.h"
#include "runtime/session.h"

namespace tombolo::test {

namespace {

/// The model through another form and back, which must change nothing.
Status exchange(State& state, std::unique_ptr<Model> again, std::string_view form) {
  std::string difference;
  if (!equal(*state.model, *again, &difference))
    return runtime_error("the model differs after " + std::string(form) + ": " + difference);
  state.model = std::move(again);
  return ok();
}

Status through_onnx(State& state, std::string_view) {
  TRY(std::string bytes, write_onnx(*state.model));
  auto storage = std::make_shared<Storage>();
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  storage->keep(owner);
  TRY(auto again, read_onnx(*owner, storage));
  return exchange(state, std::move(again), "the .onnx file");
}

Status through_json(State& state, std::string_view) {
  TRY(std::string text, write_json(*state.model));
  TRY(auto again, read_json(text));
  return exchange(state, std::move(again), "JSON");
}

Status print(State& state, std::string_view) {
  state.output = print_text(*state.model);
  TRY(auto again, parse_text(state.output));
  if (print_text(*again) != state.output)
    return runtime_error("the printed text prints otherwise:\n" + print_text(*again));
  return exchange(state, std::move(again), "text");
}

/// The initialisers of a graph whose declarations are `text`.
Result<std::unique_ptr<Graph>> declarations(const std::string& text) {
  return parse_graph("values () => () <" + text + "> {}", std::make_shared<Storage>());
}

/// A sequence's items are NAME.0, NAME.1, ...; an absent value is `? NAME`.
Status declare(Graph& graph, const std::string& name, const RunValue& value) {
  switch (value.kind()) {
    case RunValue::Kind::kTensor:
      graph.add_initializer(name, value.tensor());
      return ok();
    case RunValue::Kind::kSequence: {
      size_t index = 0;
      for (const RunValue& item : value.sequence().items)
        CHECK_OK(declare(graph, name + "." + std::to_string(index++), item));
      return ok();
    }
    case RunValue::Kind::kOptional:
      if (value.optional_content() != nullptr)
        return declare(graph, name, *value.optional_content());
      [[fallthrough]];
    case RunValue::Kind::kNone:
      graph.add_value_info(graph.new_value(name));
      return ok();
    default:
      return unsupported("the output " + name + " is a map or a sparse tensor");
  }
}

std::string list_of(const Graph& graph) {
  // The printer writes `values () => ()\n<\n  DECLARATION,\n ...\n>\n{\n}`.
  std::string text = print_graph(graph);
  const size_t begin = text.find("\n<\n"), end = text.rfind("\n>\n");
  if (begin == text.npos || end == text.npos) return "";
  std::string list;
  for (size_t at = begin + 3; at < end;) {
    const size_t stop = std::min(text.find('\n', at), end);
    list += text.substr(at + 2, stop - at - 2) + "\n";
    at = stop + 1;
  }
  return list;
}

/// Contradictions that inference finds are errors here: all of them, a line each.
Status infer(State& state, std::string_view) {
  Diagnostics diagnostics;
  infer_types(*state.model, diagnostics);
  std::string found;
  for (const Diagnostic& one : diagnostics.list())
    found += (found.empty() ? "" : "\n") + one.code + ": " + one.where + ": " + one.message;
  if (!found.empty()) return runtime_error(std::move(found));
  return ok();
}

/// All that the checker says, a line each; nothing for a model without a word against it.
Status check_model(State& state, std::string_view) {
  Diagnostics diagnostics;
  check(*state.model, {}, diagnostics);
  state.output.clear();
  for (const Diagnostic& one : diagnostics.list())
    state.output += (one.severity == Severity::kError ? "error " : "warning ") + one.code + ": " +
                    one.where + ": " + one.message + "\n";
  if (state.output.empty()) state.output = "valid\n";
  return ok();
}

/// INPUT lines as values.
Result<std::vector<NamedValue>> given_inputs(const State& state) {
  TRY(auto given, declarations(state.part.inputs));
  std::vector<NamedValue> inputs;
  for (const Value* value : given->initializers()) {
    TRY(Tensor tensor, value->initializer()->value(given->storage_ptr()));
    inputs.push_back({std::string(value->name()), RunValue(std::move(tensor))});
  }
  return inputs;
}

Status run(State& state, std::string_view) {
  TRY(const auto inputs, given_inputs(state));
  SessionOptions options;
  options.optimise = 0;  // these tests are about the operators as written
  TRY(auto session, Session::create(std::move(state.model), options));
  TRY(auto outputs, session->run(inputs));
  Graph results(std::make_shared<Storage>());
  results.name = "values";
  for (size_t i = 0; i < outputs.size(); ++i)
    CHECK_OK(declare(results, session->outputs()[i].name, outputs[i]));
  state.output = list_of(results);
  state.is_values = true;
  return ok();
}

/// `optimise PASS...` or `optimise O2`: runs them, checks the structure after each, the whole model
/// by the checker, and that the outputs on random inputs (or the INPUT lines) stay.
Status optimise_model(State& state, std::string_view arguments) {
  OptimiseOptions options;
  options.verify = true;
  std::string words(arguments);
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    if (word.size() == 2 && word[0] == 'O')
      options.level = word[1] - '0';
    else if (word == "runtime")
      options.target = Target::kRuntime;
    else if (!word.empty())
      options.only.push_back(word);
    begin = end + 1;
  }
  auto before = clone(*state.model);
  TRY(const OptimiseReport done, optimise(*state.model, options));
  if (!done.settled) return runtime_error("the passes do not come to an end");
  Diagnostics diagnostics;
  check(*state.model, {}, diagnostics);
  for (const Diagnostic& one : diagnostics.list())
    if (one.severity == Severity::kError)
      return runtime_error("the result is invalid: " + one.where + ": " + one.message);
  size_t changes = 0;
  for (const PassResult& one : done.passes) changes += one.changes;
  if (changes == 0) {
    state.output = "unchanged\n";
    return ok();
  }
  TRY(const auto given, given_inputs(state));
  SessionOptions plain;
  plain.optimise = 0;
  TRY(auto original, Session::create(std::move(before), plain));
  TRY(auto optimised, Session::create(clone(*state.model), plain));
  for (const bool vary : {false, true}) {
    RandomInputOptions random;
    random.vary = vary;
    random.seed = vary ? 100 : 0;
    TRY(const Equivalence same, compare_models(*original, *optimised, 3, random, given));
    if (!same.equal) return runtime_error("the outputs differ: " + same.difference);
  }
  state.output = print_graph(*state.model->graph) + "\n";
  return ok();
}

/// `opset N`: the graph in that operator set, valid, whose outputs on random inputs stay.
Status to_opset(State& state, std::string_view arguments) {
  int version = 0;
  for (const char digit : arguments)
    if (digit >= '0' && digit <= '9') version = version * 10 + digit - '0';
  auto before = clone(*state.model);
  const OpsetTarget target{"", version};
  CHECK_OK(retarget(state.model, {&target, 1}));
  Diagnostics diagnostics;
  check(*state.model, {}, diagnostics);
  for (const Diagnostic& one : diagnostics.list())
    if (one.severity == Severity::kError)
      return runtime_error("the result is invalid: " + one.where + ": " + one.message);
  TRY(const auto given, given_inputs(state));
  SessionOptions plain;
  plain.optimise = 0;
  TRY(auto original, Session::create(std::move(before), plain));
  TRY(auto converted, Session::create(clone(*state.model), plain));
  TRY(const Equivalence same, compare_models(*original, *converted, 3, {}, given));
  if (!same.equal) return runtime_error("the outputs differ: " + same.difference);
  state.output = print_graph(*state.model->graph) + "\n";
  return ok();
}

constexpr Verb kVerbs[] = {
    {"onnx", "through the .onnx file and back: nothing may change", through_onnx},
    {"json", "through JSON and back: nothing may change", through_json},
    {"print", "as ONNX text, which must read back equal", print},
    {"infer", "types and shapes written as value_info; what contradicts is an error", infer},
    {"check", "what the checker reports, a line each; `valid` when nothing", check_model},
    {"optimise",
     "passes by name, or O1, O2, O3: the graph, whose outputs on random inputs must stay; "
     "`unchanged` when no pass found anything",
     optimise_model},
    {"opset", "the graph in operator set N; it must be valid and give the same outputs", to_opset},
    {"run", "the outputs for the INPUT lines; EXPECT is compared with the tolerance of the type",
     run},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

bool same_values(const std::string& actual, const std::string& expected, std::string& reason) {
  auto have = declarations(actual), want = declarations(expected);
  if (!want.ok()) {
    reason = "EXPECT is not a list of tensors: " + want.error().message;
    return false;
  }
  if (!have.ok()) {
    reason = have.error().message;
    return false;
  }
  const auto& a = (*have)->initializers();
  const auto& b = (*want)->initializers();
  if (a.size() != b.size() || (*have)->value_infos().size() != (*want)->value_infos().size()) {
    reason = "another number of outputs";
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    auto x = a[i]->initializer()->value((*have)->storage_ptr());
    auto y = b[i]->initializer()->value((*want)->storage_ptr());
    if (a[i]->name() != b[i]->name() || !x.ok() || !y.ok()) {
      reason = "output " + std::to_string(i) + " is " + std::string(a[i]->name()) + ", not " +
               std::string(b[i]->name());
      return false;
    }
    const Comparison result = compare(*x, *y);
    if (!result.equal) {
      reason = std::string(a[i]->name()) + ": " + result.reason;
      return false;
    }
  }
  return true;
}

}  // namespace tombolo::test
