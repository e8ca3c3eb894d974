// tombolo_random_graphs: graphs of random operators with random types, shapes, attributes and
// values, grown from the recipes of runtime/recipes. Each is checked, inferred, printed and read
// back, and run. Nothing may crash, hang or leave an error without a message, what inference said
// must be what came out, and further runs, of these inputs and of others, give what a first one
// gave.
//
//   tombolo_random_graphs [--seconds N] [--seed S] [--count N] [--verbose]
//
// A report names the seed that repeats it: --seed S --count 1 --verbose prints the graph.

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "analysis/checker.h"
#include "analysis/infer.h"
#include "ir/clone.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ops/infer_helpers.h"
#include "ops/registry.h"
#include "runtime/compare.h"
#include "runtime/recipes/numbers.h"
#include "runtime/recipes/recipe.h"

namespace tombolo {
namespace {

/// Of processor time; ten times as long on the clock, as others may have the processor.
constexpr unsigned kSeconds = 20;
char g_case[100];

void on_signal(int signal) {
  const char* what = signal == SIGALRM || signal == SIGPROF ? "took too long\n" : "crashed\n";
  (void)!write(2, g_case, std::strlen(g_case));
  (void)!write(2, what, std::strlen(what));
  _exit(1);
}

void limit_time(unsigned seconds) {
  const itimerval processor = {{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &processor, nullptr);
  alarm(10 * seconds);
}

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename Items>
  auto& pick(Items& items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(std::size(items))))];
  }
};

int64_t odd_integer(Random& random) {
  constexpr int64_t kOdd[] = {
      0,     1,   -1,        2,         3,         5,         -2,
      -7,    100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 40,
      65536, -100};
  return random.chance(70) ? random.below(9) - 2 : random.pick(kOdd);
}

double odd_number(Random& random) {
  const double kOdd[] = {0,     -0.0,     1,         -1,  0.5,  1e30, -1e30,
                         1e-30, INFINITY, -INFINITY, NAN, 1e10, 3};
  return random.chance(70) ? static_cast<double>(random.below(200)) / 20 - 5 : random.pick(kOdd);
}

/// Dimensions in the recipe's text, changed here and there.
std::string with_other_dims(std::string text, Random& random) {
  for (size_t at = 0; (at = text.find('[', at)) != std::string::npos; ++at) {
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '(' || text[at - 1] == ':') continue;
    for (size_t i = at + 1; i < text.size() && text[i] != ']'; ++i)
      if (text[i] >= '0' && text[i] <= '9' && random.chance(8))
        text[i] = static_cast<char>('0' + random.below(6));
  }
  return text;
}

class Grower {
 public:
  explicit Grower(uint64_t seed) : random_{seed} {}

  Result<std::unique_ptr<Model>> grow() {
    const int newest = latest_opset("");
    const int opset = random_.chance(60) ? newest : 1 + static_cast<int>(random_.below(newest));
    auto model = std::make_unique<Model>(Model::create(opset));
    model->set_opset("ai.onnx.ml", latest_opset("ai.onnx.ml"));
    model->set_opset("ai.onnx.preview", 1);
    model->set_opset("ai.onnx.preview.training", 1);
    const int64_t count = 1 + random_.below(random_.chance(50) ? 2 : 7);
    for (int64_t i = 0; i < count; ++i) add_recipe(*model, opset);
    if (random_.chance(60)) disturb(*model->graph);
    Graph& graph = *model->graph;
    std::vector<Value*> open;
    for (Node* node : graph.nodes())
      for (Value* value : node->outputs())
        if (value != nullptr && (!value->has_uses() || random_.chance(10))) open.push_back(value);
    for (Value* value : open) graph.add_output(value);
    if (random_.chance(80)) {  // an output without a shape is not valid
      Diagnostics ignored;
      infer_types(*model, ignored);
    }
    return model;
  }

  RunValue input_for(const SessionPort& port);
  Random& random() { return random_; }

 private:
  void add_recipe(Model& model, int opset) {
    static const std::span<const OpDecl* const> all = all_operators();
    for (int attempt = 0; attempt < 20; ++attempt) {
      const OpDecl& op = *random_.pick(all);
      const std::string_view domain = op.domain;
      if (domain == "com.microsoft") continue;
      const OpVersion* version = resolve(op, domain.empty() ? opset : latest_opset(domain));
      if (version == nullptr) continue;
      const Recipe* recipe = find_recipe(*version);
      if (recipe == nullptr) continue;
      TypeAssignment types;
      if (version->types.empty()) {
        types = {};
      } else {
        const size_t variable =
            static_cast<size_t>(random_.below(static_cast<int64_t>(version->types.size())));
        const std::vector<ValueType> members = members_of(version->types[variable].allowed);
        if (members.empty()) continue;
        types = assign_types(*version, *recipe, variable, random_.pick(members));
      }
      std::string text = recipe_text(*version, *recipe, types);
      if (random_.chance(50)) text = with_other_dims(std::move(text), random_);
      auto part = parse_text(text);
      if (!part || (*part)->graph == nullptr) continue;
      merge(**part, model);
      return;
    }
  }

  /// Puts the nodes of `part` into the graph; its inputs become inputs, or values that are there.
  void merge(const Model& part, Model& model) {
    Graph& graph = *model.graph;
    Cloner cloner(part.storage_ptr(), model.storage_ptr());
    std::vector<Value*> there;
    for (Value* value : graph.inputs()) there.push_back(value);
    for (Node* node : graph.nodes())
      for (Value* value : node->outputs())
        if (value != nullptr) there.push_back(value);
    for (const Value* input : part.graph->inputs()) {
      Value* value = nullptr;
      if (!there.empty() && random_.chance(35)) {
        value = random_.pick(there);
      } else {
        const Type* type = input->type() == nullptr ? nullptr : cloner.type(input->type());
        value = graph.add_input(graph.unique_name(input->name()), type);
      }
      cloner.values[input] = value;
    }
    for (const Node* node : part.graph->nodes()) {
      Node* copy = cloner.node(*node, graph);
      for (Value* value : copy->outputs())
        if (value != nullptr) value->set_name(graph.unique_name(value->name()));
    }
  }

  void disturb(Graph& graph) {
    for (Node* node : graph.nodes()) {
      for (Attribute& attribute : node->attributes()) {
        if (!random_.chance(35)) continue;
        if (auto* i = std::get_if<int64_t>(&attribute.value))
          *i = odd_integer(random_);
        else if (auto* f = std::get_if<float>(&attribute.value))
          *f = static_cast<float>(odd_number(random_));
        else if (auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) {
          if (random_.chance(30)) ints->resize(static_cast<size_t>(random_.below(6)));
          for (int64_t& value : *ints)
            if (random_.chance(40)) value = odd_integer(random_);
        } else if (auto* floats = std::get_if<std::vector<float>>(&attribute.value)) {
          if (random_.chance(30)) floats->resize(static_cast<size_t>(random_.below(6)));
          for (float& value : *floats)
            if (random_.chance(40)) value = static_cast<float>(odd_number(random_));
        }
      }
      if (random_.chance(10) && !node->attributes().empty())
        node->remove_attribute(node->attributes()[0].name);
      if (random_.chance(10) && !node->inputs().empty())
        node->set_input(
            static_cast<uint32_t>(random_.below(static_cast<int64_t>(node->inputs().size()))),
            nullptr);
      if (random_.chance(5) && node->inputs().size() > 1)
        node->set_input(0, node->input(node->inputs().size() - 1));
      add_known_attribute(*node);
    }
  }

  /// An optional attribute that the recipe does not use, with an odd value.
  void add_known_attribute(Node& node) {
    if (!random_.chance(40)) return;
    const OpDecl* op = find_operator(node.domain(), node.op_type());
    if (op == nullptr || op->attributes.size() == 0) return;
    const AttrDecl& row =
        op->attributes.begin()[random_.below(static_cast<int64_t>(op->attributes.size()))];
    const std::string_view name = row.name;
    if (node.attribute(name) != nullptr) return;
    if (row.spec.type == AttrType::kInt) node.set_int(name, odd_integer(random_));
    if (row.spec.type == AttrType::kFloat)
      node.set_float(name, static_cast<float>(odd_number(random_)));
    if (row.spec.type == AttrType::kInts) {
      std::vector<int64_t> values(static_cast<size_t>(random_.below(5)));
      for (int64_t& value : values) value = odd_integer(random_);
      node.set_ints(name, values);
    }
  }

  Random random_;
};

RunValue value_of(const Type& type, Random& random, int depth = 0) {
  switch (type.kind) {
    case Type::Kind::kTensor: {
      Dims dims;
      for (const Dim& dim : type.dims)
        dims.push_back(dim.kind == Dim::Kind::kValue ? dim.value : random.below(4));
      auto tensor = Tensor::allocate(type.dtype(), dims);
      if (!tensor) return {};
      const std::vector<double> usual = usual_numbers(type.dtype(), random.chance(30));
      const bool odd = random.chance(30);
      for (int64_t i = 0; i < tensor->size(); ++i) {
        if (odd && is_integer(type.dtype()))
          tensor->set_int64(i, odd_integer(random));
        else
          put_number(*tensor, i,
                     odd && is_float(type.dtype()) ? odd_number(random) : random.pick(usual),
                     false);
      }
      return *std::move(tensor);
    }
    case Type::Kind::kSequence: {
      SequenceValue sequence;
      if (type.element == nullptr || depth > 3) return {};
      sequence.elem = type.element->dtype();
      const int64_t count = random.below(4);
      for (int64_t i = 0; i < count; ++i)
        sequence.items.push_back(value_of(*type.element, random, depth + 1));
      return RunValue(std::move(sequence));
    }
    case Type::Kind::kOptional:
      if (type.element == nullptr || random.chance(20)) return RunValue::empty_optional();
      return RunValue::optional_of(value_of(*type.element, random, depth + 1));
    case Type::Kind::kMap: {
      MapValue map;
      if (type.element == nullptr) return {};
      const int64_t dims[] = {2};
      auto keys = Tensor::allocate(static_cast<DType>(type.key_type), dims);
      if (!keys) return {};
      for (int64_t i = 0; i < 2; ++i) {
        put_number(*keys, i, static_cast<double>(i), false);
        map.values.push_back(value_of(*type.element, random, depth + 1));
      }
      map.keys = *std::move(keys);
      return RunValue(std::move(map));
    }
    default:
      return {};
  }
}

struct Tally {
  size_t graphs = 0, valid = 0, ran = 0, wrong = 0;
};

[[noreturn]] void fail(const std::string& what, const std::string& text) {
  std::fprintf(stderr, "%s%s\n%s\n", g_case, what.c_str(), text.c_str());
  std::exit(1);
}

void expect_message(const Error& error, const std::string& text) {
  if (error.message.empty()) fail("an error without a message", text);
}

/// What inference says of an output, against what came out. Empty when they agree.
std::string contradiction(const InferType* inferred, const RunValue& actual) {
  if (inferred == nullptr || !inferred->is_tensor() || !actual.is_tensor()) return {};
  const Tensor& tensor = actual.tensor();
  if (inferred->elem != DType::kUndefined && inferred->elem != tensor.dtype())
    return "inferred " + std::string(name_of(inferred->elem)) + ", ran " + to_string(tensor);
  if (!inferred->shape) return {};
  if (inferred->shape->size() != tensor.rank())
    return "inferred " + ops::shape_to_string(*inferred->shape) + ", ran " + to_string(tensor);
  for (size_t i = 0; i < tensor.rank(); ++i)
    if (const auto dim = (*inferred->shape)[i].constant(); dim && *dim != tensor.dim(i))
      return "inferred " + ops::shape_to_string(*inferred->shape) + ", ran " + to_string(tensor);
  return {};
}

/// The model without any declared shape but those of its inputs. Inference believes what bodies
/// declare, as a model's own word; where other shapes come to them the model was wrong, not we.
std::unique_ptr<Model> without_claims(const Model& model) {
  std::unique_ptr<Model> copy = clone(model);
  const auto forget = [](Value* value) {
    if (value == nullptr || value->type() == nullptr) return;
    Type type = *value->type();
    type.has_shape = false;
    type.dims.clear();
    value->set_type(std::move(type));
  };
  for_each_graph(*copy->graph, [&](Graph& graph) {
    if (&graph != copy->graph.get())
      for (Value* input : graph.inputs()) forget(input);
    for (Node* node : graph.nodes())
      for (Value* output : node->outputs()) forget(output);
  });
  return copy;
}

bool is_random(Model& model) {
  bool random = false;
  for_each_graph(*model.graph, [&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      const OpDecl* op = find_operator(node->domain(), node->op_type());
      random |= op != nullptr && op->determinism == Determinism::kRandom;
    }
  });
  return random;
}

/// Runs of a session that has run before, which follow a memory plan, give what the first run of a
/// new one gave.
void expect_the_same(const Session& session, const std::vector<NamedValue>& inputs,
                     const Result<std::vector<RunValue>>& first, int runs, const char* which,
                     const std::string& text) {
  constexpr Tolerance kRounding{1e-4, 1e-5};
  for (int turn = 0; turn < runs; ++turn) {
    auto outputs = session.run(inputs);
    if (bool(outputs) != bool(first))
      fail(std::string(which) + ": " + (outputs ? first : outputs).error().message, text);
    for (size_t i = 0; first && i < first->size(); ++i) {
      const RunValue& expected = (*first)[i];
      const bool wide = expected.is_tensor() && bits_of(expected.tensor().dtype()) >= 32;
      const Comparison same = compare((*outputs)[i], expected, wide ? &kRounding : nullptr);
      if (!same.equal)
        fail(std::string(which) + ": output " + std::to_string(i) + ": " + same.reason, text);
    }
  }
}

std::vector<NamedValue> inputs_of(const Session& session, Random& random) {
  std::vector<NamedValue> inputs;
  for (const SessionPort& port : session.inputs())
    if (port.type != nullptr) inputs.push_back({port.name, value_of(*port.type, random)});
  return inputs;
}

void exercise(uint64_t seed, bool verbose, Tally& tally) {
  Grower grower(seed);
  auto grown = grower.grow();
  if (!grown) return;
  ++tally.graphs;
  std::unique_ptr<Model> model = *std::move(grown);
  const std::string text = print_text(*model);
  if (verbose) std::printf("%s\n", text.c_str());
  std::fflush(stdout);  // a case that takes too long does not come back
  auto again = parse_text(text);
  if (!again) fail("printed text does not parse: " + again.error().message, text);
  if (print_text(**again) != text) fail("printed text changes when it is read back", text);
  Diagnostics diagnostics;
  check(**again, {}, diagnostics);
  const bool valid = diagnostics.errors() == 0;
  tally.valid += valid;
  if (verbose)
    for (const Diagnostic& diagnostic : diagnostics.list())
      std::printf("%s: %s\n", diagnostic.where.c_str(), diagnostic.message.c_str());
  Diagnostics inference_diagnostics;
  Inference inference(**again);
  inference.run(inference_diagnostics);
  const bool random = is_random(*model);
  SessionOptions options;
  options.memory_limit = uint64_t{64} << 20;
  options.time_limit_ms = 3000;
  auto session = Session::create(std::move(model), options);
  if (!session) {
    if (verbose) std::printf("no session: %s\n", session.error().message.c_str());
    return expect_message(session.error(), text);
  }
  const std::vector<NamedValue> inputs = inputs_of(**session, grower.random());
  const auto outputs = (*session)->run(inputs);
  if (!outputs) {
    if (verbose)
      std::printf("no run: %s: %s\n", outputs.error().where.c_str(),
                  outputs.error().message.c_str());
    return expect_message(outputs.error(), text);
  }
  ++tally.ran;
  if (!random) {
    expect_the_same(**session, inputs, outputs, 2, "again", text);
    auto fresh = Session::create(*parse_text(text), options);
    if (!fresh) fail(fresh.error().message, text);
    const std::vector<NamedValue> others = inputs_of(**fresh, grower.random());
    expect_the_same(**session, others, (*fresh)->run(others), 2, "other inputs", text);
    expect_the_same(**session, inputs, outputs, 1, "the first inputs", text);
  }
  if (!valid) return;
  const auto& declared = (*again)->graph->outputs();
  for (size_t i = 0; i < outputs->size() && i < declared.size(); ++i) {
    const std::string difference = contradiction(inference.type(*declared[i].value), (*outputs)[i]);
    if (difference.empty()) continue;
    const std::unique_ptr<Model> plain = without_claims(**again);
    Inference second(*plain);
    second.run(inference_diagnostics);
    if (contradiction(second.type(*plain->graph->outputs()[i].value), (*outputs)[i]).empty())
      continue;
    ++tally.wrong;
    std::fprintf(stderr, "%soutput %s: %s\n%s\n", g_case,
                 std::string(declared[i].value->name()).c_str(), difference.c_str(), text.c_str());
  }
}

int run(int argc, char** argv) {
  double seconds = 10;
  uint64_t seed = 1, count = UINT64_MAX;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "0";
    if (argument == "--seconds")
      seconds = std::strtod(value, nullptr), ++i;
    else if (argument == "--seed")
      seed = std::strtoull(value, nullptr, 10), ++i;
    else if (argument == "--count")
      count = std::strtoull(value, nullptr, 10), ++i;
    else if (argument == "--verbose")
      verbose = true;
    else
      return std::fprintf(
                 stderr,
                 "usage: tombolo_random_graphs [--seconds N] [--seed S] [--count N] [--verbose]\n"),
             2;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGALRM, SIGPROF}) ::signal(signal, on_signal);
  const auto start = std::chrono::steady_clock::now();
  Tally tally;
  for (uint64_t i = 0; i < count; ++i) {
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - start;
    if (past.count() > seconds) break;
    std::snprintf(g_case, sizeof g_case,
                  "--seed %llu --count 1: ", static_cast<unsigned long long>(seed + i));
    limit_time(kSeconds);
    try {
      exercise(seed + i, verbose, tally);
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      fail(std::string("threw ") + error.what(), "");
    }
  }
  limit_time(0);
  std::printf("%zu random graphs: %zu valid, %zu ran, %zu outputs not as inferred\n", tally.graphs,
              tally.valid, tally.ran, tally.wrong);
  return tally.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tombolo

int main(int argc, char** argv) { return tombolo::run(argc, argv); }
