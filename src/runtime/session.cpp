#include "runtime/session.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/infer.h"
#include "base/block_cache.h"
#include "base/thread_pool.h"
#include "ir/symbolic_dim.h"
#include "passes/pipeline.h"
#include "runtime/batch_slices.h"
#include "runtime/executor.h"
#include "runtime/pack_store.h"
#include "runtime/planned_sizes.h"
#include "runtime/run_node.h"
#include "version/upgrade.h"

namespace tombolo {

uint64_t default_memory_limit() {
  uint64_t limit = UINT64_MAX;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) limit = kib * 1024;
    std::fclose(file);
  }
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "re")) {
    unsigned long long bytes = 0;
    if (std::fscanf(file, "%llu", &bytes) == 1) limit = std::min<uint64_t>(limit, bytes);
    std::fclose(file);
  }
  rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    limit = std::min<uint64_t>(limit, space.rlim_cur);
  return limit == UINT64_MAX ? limit : limit / 10 * 9;
}

struct Session::Impl {
  explicit Impl(StoragePtr storage) : packs(std::move(storage)), setting{{{}, packs}} {}

  SessionOptions options;
  ModelPlan plan;  ///< initialisers that are inputs too count as constants
  /// The plan for runs that give such inputs; made when the first one comes.
  std::once_flag open_once;
  std::unique_ptr<Result<ModelPlan>> open_plan;
  bool has_defaults = false;
  std::unordered_map<std::string, size_t> input_at;
  SessionPacks packs;
  ExecutorSetting setting;
  std::mutex mutex;                       ///< of what follows
  std::unordered_set<uint64_t> accepted;  ///< hashes of input signatures whose planned sizes fit
  uint64_t accepted_bytes = 0;            ///< of the largest inputs among them
  /// Plans for large batches by the inputs' shapes, the latest used first; null where the whole
  /// batch goes through every node.
  struct Sliced {
    Signature signature;
    std::shared_ptr<const GraphPlan> plan;
  };
  std::list<Sliced> sliced;
  int64_t room = 0;  ///< batch_room(); 0: batches are never cut

  /// `shapes()` infers, where that was not done before.
  template <typename Shapes>
  std::shared_ptr<const GraphPlan> sliced_plan(Signature signature, int64_t batch,
                                               const Shapes& shapes);
};

namespace {

/// Checks a caller's tensor against the declared type. `symbols` holds the sizes of names so far.
Status check_input(const SessionPort& port, const RunValue& value,
                   std::unordered_map<std::string_view, int64_t>& symbols) {
  if (port.type == nullptr || port.type->kind != Type::Kind::kTensor || !value.is_tensor())
    return ok();
  const Tensor& tensor = value.tensor();
  auto wrong = [&] {
    return usage_error("input \"" + port.name + "\" must be " + to_string(*port.type) + ", is " +
                       to_string(tensor));
  };
  if (port.type->dtype() != DType::kUndefined && tensor.dtype() != port.type->dtype())
    return wrong();
  if (!port.type->has_shape) return ok();
  if (port.type->dims.size() != tensor.rank()) return wrong();
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    const Dim& dim = port.type->dims[axis];
    if (dim.kind == Dim::Kind::kValue && dim.value != tensor.dim(axis)) return wrong();
    if (dim.kind == Dim::Kind::kParam && !SymDim::names_nothing(dim.param)) {
      auto [entry, inserted] = symbols.try_emplace(dim.param, tensor.dim(axis));
      if (!inserted && entry->second != tensor.dim(axis))
        return usage_error("input \"" + port.name + "\" has " + std::to_string(tensor.dim(axis)) +
                           " for dimension " + std::string(dim.param) + ", another input has " +
                           std::to_string(entry->second));
    }
  }
  return ok();
}

}  // namespace

/// Plans of one shape come and go with their use, the decision does not: the same inputs give the
/// same bits in every run.
template <typename Shapes>
std::shared_ptr<const GraphPlan> Session::Impl::sliced_plan(Signature signature, int64_t batch,
                                                            const Shapes& shapes) {
  constexpr size_t kKeep = 32;
  const auto known = std::find_if(sliced.begin(), sliced.end(), [&](const Sliced& entry) {
    return entry.signature == signature;
  });
  if (known != sliced.end()) {
    sliced.splice(sliced.begin(), sliced, known);
  } else {
    sliced.push_front({std::move(signature), slice_batch(*plan.main, shapes(), batch, room)});
    if (sliced.size() > kKeep) sliced.pop_back();
  }
  return sliced.front().plan;
}

Session::Session() = default;
Session::~Session() = default;

namespace {

/// TOMBOLO_ISA=reference, for tests of whole programs.
bool reference_asked_for() {
  const char* isa = std::getenv("TOMBOLO_ISA");
  return isa != nullptr && std::string_view(isa) == "reference";
}

/// A body that never runs gives empty tensors of the types that it declares.
bool leaves_body_types_open(Model& model) {
  bool open = false;
  if (model.graph)
    for_each_graph(*model.graph, [&](const Graph& graph) {
      if (&graph == model.graph.get()) return;
      for (const GraphOutput& output : graph.outputs())
        open |= !(output.declared && output.declared->type != nullptr) &&
                (output.value == nullptr || output.value->type() == nullptr);
    });
  return open;
}

/// Whether the graph adds to a cache of keys and values that it is given and gives back, as a
/// decoder that makes one token after the other.
bool keeps_cache(const Graph& graph) {
  const auto gives = [](const Value* value) {
    return value != nullptr && value->output_uses() != 0;
  };
  const auto is_given = [](const Value* value) { return value != nullptr && value->is_input(); };
  for (const Node* node : graph.nodes()) {
    const std::string_view op = node->op_type();
    if ((op == "Concat" || op.ends_with("Attention")) &&
        std::any_of(node->inputs().begin(), node->inputs().end(), is_given) &&
        std::any_of(node->outputs().begin(), node->outputs().end(), gives))
      return true;
  }
  return false;
}

/// Whether batches of the graph may be worth to be cut: where pixels are many to a weight.
bool has_convolutions(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->op_type().find("Conv") != Text::npos) return true;
  return false;
}

/// Elements of all initialisers.
double count_weights(const Graph& graph) {
  double all = 0;
  for (const Value* value : graph.initializers()) {
    double elements = 1;
    if (const Constant* weight = value->initializer())
      for (const int64_t dim : weight->dims) elements *= static_cast<double>(dim);
    all += elements;
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::unique_ptr<Model> model,
                                                 SessionOptions options) {
  const FixedPieces pieces(options.deterministic);
  std::unique_ptr<Session> session(new Session);
  if (options.memory_limit == 0) options.memory_limit = default_memory_limit();
  size_block_cache(options.memory_limit);
  if (reference_asked_for()) options.reference = true;
  session->model_ = std::move(model);
  if (options.reference || options.optimise <= 0) {
    Diagnostics notes;  // nodes that keep an old version run as such
    CHECK_OK(upgrade(*session->model_, notes));
  } else {
    OptimiseOptions rewrite{.level = options.optimise, .target = Target::kRuntime};
    // What is constant is computed once, whatever its size: it would be made in every run.
    rewrite.limits.fold_growth = rewrite.limits.total_growth = options.memory_limit / 4;
    rewrite.run_node = run_node;
    rewrite.fast_math = options.fast_math;
    CHECK_OK(optimise(*session->model_, rewrite));
  }
  if (leaves_body_types_open(*session->model_)) {
    Diagnostics notes;  // contradictions are for `check`
    infer_types(*session->model_, notes);
  }
  session->impl_ = std::make_unique<Impl>(session->model_->storage_ptr());
  Impl& impl = *session->impl_;
  impl.options = options;
  if (!options.pack_cache.empty()) {
    TRY(auto cache, PackCache::open(options.pack_cache));
    impl.packs.set_cache(std::move(cache));
  }
  impl.setting.seed = options.seed;
  impl.setting.specialise = options.specialise;
  const Graph* const whole = session->model_->graph.get();
  impl.setting.kernels.options = {.threads = thread_count(),
                                  .fast_math = options.fast_math,
                                  .decodes = whole != nullptr && keeps_cache(*whole)};
  if (whole != nullptr) impl.setting.kernels.options.weights = count_weights(*whole);
  TRY(impl.plan, plan_model(*session->model_, {!options.reference, true}));
  const Graph& graph = *session->model_->graph;
  // Kernels are chosen by the images that they see at a time.
  if (!options.reference && options.specialise && !impl.setting.kernels.options.decodes &&
      has_convolutions(graph))
    impl.room = options.batch_room != 0 ? options.batch_room
                                        : batch_room(options.deterministic ? 1 : thread_count());
  for (const Value* input : graph.inputs()) {
    impl.input_at.emplace(std::string(input->name()), session->inputs_.size());
    impl.has_defaults |= input->is_initializer();
    session->inputs_.push_back(
        {std::string(input->name()), input->type(), input->is_initializer()});
  }
  for (const GraphOutput& output : graph.outputs()) {
    const bool own = output.declared && present(output.declared->name);
    session->outputs_.push_back({std::string(own ? output.declared->name : output.value->name()),
                                 output.declared ? output.declared->type : output.value->type(),
                                 false});
  }
  return session;
}

const SessionOptions& Session::options() const { return impl_->options; }
uint64_t Session::packed_bytes() const { return impl_->packs.bytes(); }

Result<size_t> Session::input_index(const std::string& name) const {
  const auto found = impl_->input_at.find(name);
  if (found != impl_->input_at.end()) return found->second;
  std::string names;
  for (const SessionPort& known : inputs_) names += (names.empty() ? "" : ", ") + known.name;
  return usage_error("the model has no input \"" + name + "\"")
      .with_help("its inputs are: " + names);
}

Result<std::vector<RunValue>> Session::run(const std::vector<NamedValue>& inputs,
                                           const RunOptions& options) const {
  std::vector<RunValue> values(inputs_.size());
  for (const NamedValue& given : inputs) {
    TRY(const size_t index, input_index(given.name));
    values[index] = given.value;
  }
  return run_ordered(std::move(values), options);
}

Result<std::vector<RunValue>> Session::run_ordered(std::vector<RunValue> values,
                                                   const RunOptions& options) const {
  const FixedPieces pieces(impl_->options.deterministic);
  if (values.size() != inputs_.size())
    return usage_error("the model has " + std::to_string(inputs_.size()) + " inputs, " +
                       std::to_string(values.size()) + " were given");
  std::unordered_map<std::string_view, int64_t> symbols;
  bool given_default = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    RunValue& value = values[i];
    const SessionPort& port = inputs_[i];
    if (value.is_none()) {
      if (port.is_required()) return usage_error("input \"" + port.name + "\" is missing");
      if (port.is_optional()) value = RunValue::empty_optional();
      continue;
    }
    given_default |= port.has_default;
    CHECK_OK(check_input(port, value, symbols));
    if (value.is_tensor() && !value.tensor().aligned()) {
      TRY(Tensor copy, value.tensor().clone());
      value = RunValue(std::move(copy));
    }
  }
  Impl& impl = *impl_;
  const ModelPlan* plan = &impl.plan;
  if (given_default) {
    std::call_once(impl.open_once, [&] {
      impl.open_plan = std::make_unique<Result<ModelPlan>>(
          plan_model(*model_, {!impl.options.reference, false}));
    });
    if (!*impl.open_plan) return Error(impl.open_plan->error());
    plan = &**impl.open_plan;
  }
  RunLimits limits;
  limits.memory = options.memory_limit != 0 ? options.memory_limit : impl.options.memory_limit;
  limits.time_ms = options.time_limit_ms != 0 ? options.time_limit_ms : impl.options.time_limit_ms;
  limits.cancelled = options.cancelled;
  Signature signature;
  uint64_t input_bytes = 0;
  for (const RunValue& value : values) {
    signature.add(&value);
    if (value.is_tensor()) input_bytes += value.tensor().bytes().size();
  }
  signature.finish();
  std::shared_ptr<const GraphPlan> sliced;
  {
    std::lock_guard lock(impl.mutex);
    std::optional<InferredShapes> shapes;
    auto inferred = [&]() -> const InferredShapes& {
      return shapes ? *shapes : shapes.emplace(*model_, values);
    };
    // Inference of the whole graph is not for every token of a text that grows: inputs up to twice
    // the size of some that fitted are let pass, and what kernels allocate is counted in any case.
    const uint64_t key = signature.hash ^ limits.memory;
    const bool known = (input_bytes <= 2 * impl.accepted_bytes && input_bytes != 0 &&
                        limits.memory == impl.options.memory_limit) ||
                       impl.accepted.contains(key);
    if (!known) {
      CHECK_OK(check_planned_sizes(inferred(), *plan->main, limits.memory));
      if (impl.accepted.size() < 1000) impl.accepted.insert(key);
      impl.accepted_bytes = std::max(impl.accepted_bytes, input_bytes);
    }
    // Behind a few pixels no node has many; and what a profile observes are whole batches.
    const auto least = static_cast<uint64_t>(impl.room / 64);
    if (impl.room != 0 && !given_default && !Profile::observed(options.profile) &&
        input_bytes >= least)
      if (const int64_t batch = batch_of(values); batch > 1)
        sliced = impl.sliced_plan(std::move(signature), batch, inferred);
  }
  const GraphPlan& graph = sliced != nullptr ? *sliced : *plan->main;
  std::vector<std::span<const std::byte>> borrowed;
  if (options.borrowed_inputs)
    for (const RunValue& value : values)
      if (value.is_tensor() && !value.tensor().bytes().empty())
        borrowed.push_back(value.tensor().bytes());
  // Memory that other sessions hold counts too: the limit is the process's.
  Executor executor(*plan, impl.setting, limits, options.profile);
  TRY(auto outputs, executor.graph(graph, nullptr, std::move(values), nullptr, options.outputs));
  for (const std::span<const std::byte> part : borrowed)
    for (RunValue& output : outputs) {
      TRY(output, detached(output, part.data(), part.data() + part.size()));
    }
  for (size_t i = 0; i < options.outputs.size() && i < outputs.size(); ++i) {
    const Tensor& target = options.outputs[i];
    if (target.dtype() == DType::kUndefined || !outputs[i].is_tensor()) continue;
    const Tensor& made = outputs[i].tensor();
    if (made.dtype() != target.dtype() || !(made.dims() == target.dims()) || made.is_string())
      continue;
    if (made.bytes().data() == target.bytes().data()) continue;
    Tensor copy = target;
    std::memmove(copy.mutable_bytes().data(), made.bytes().data(), made.bytes().size());
    outputs[i] = RunValue(std::move(copy));
  }
  return outputs;
}

}  // namespace tombolo
