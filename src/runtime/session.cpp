#include "runtime/session.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/thread_pool.h"
#include "ops/kernel_context.h"
#include "runtime/plan.h"
#include "runtime/planned_sizes.h"
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
  ModelPlan plan;
  SessionOptions options;
  std::mutex mutex;                ///< of what follows
  std::set<std::string> accepted;  ///< signatures of inputs whose planned sizes fit
};

namespace {

/// The values of one running graph.
struct Frame {
  const GraphPlan& plan;
  Frame* parent;
  const AttributeBinding* binding;
  std::vector<RunValue> slots;
};

const RunValue* resolve(const ValueRef& ref, Frame& frame) {
  if (ref.constant != nullptr) return ref.constant;
  if (ref.slot < 0) return nullptr;
  Frame* at = &frame;
  for (int depth = ref.depth; depth > 0; --depth) at = at->parent;
  return &at->slots[static_cast<size_t>(ref.slot)];
}

class Executor {
 public:
  Executor(const ModelPlan& plan, const SessionOptions& options)
      : plan_(plan), options_(options), limit_(options.memory_limit) {
    if (options.time_limit_ms != 0)
      deadline_ = Clock::now() + std::chrono::milliseconds(options.time_limit_ms);
  }

  Result<std::vector<RunValue>> graph(const GraphPlan& plan, Frame* parent,
                                      std::vector<RunValue> inputs,
                                      const AttributeBinding* binding) {
    CHECK_OK(in_time());  // here too: the body of a Loop may hold no node
    if (inputs.size() > plan.inputs.size())
      return runtime_error("graph \"" + std::string(plan.graph->name) + "\" takes " +
                           std::to_string(plan.inputs.size()) + " inputs, got " +
                           std::to_string(inputs.size()));
    Frame frame{plan, parent, binding, std::vector<RunValue>(static_cast<size_t>(plan.slot_count))};
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      RunValue& slot = frame.slots[static_cast<size_t>(plan.inputs[i])];
      if (i < inputs.size() && !inputs[i].is_none())
        slot = std::move(inputs[i]);
      else if (plan.defaults[i] != nullptr)
        slot = *plan.defaults[i];
    }
    for (const NodePlan& node : plan.nodes)
      if (Status status = run(node, frame); !status)
        return std::move(status).error().at(describe(*node.node));
    std::vector<RunValue> outputs;
    outputs.reserve(plan.outputs.size());
    for (const ValueRef& ref : plan.outputs) {
      const RunValue* value = resolve(ref, frame);
      outputs.push_back(value != nullptr ? *value : RunValue());
    }
    return outputs;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Runs subgraphs for the kernel of one node.
  class Host final : public KernelHost {
   public:
    Host(Executor& executor, Frame& frame) : executor_(executor), frame_(frame) {}
    Result<std::vector<RunValue>> run_graph(const Graph& graph,
                                            std::vector<RunValue> inputs) override {
      auto found = frame_.plan.subgraphs.find(&graph);
      if (found == frame_.plan.subgraphs.end())
        return runtime_error("the subgraph does not belong to the node");
      return executor_.graph(*found->second, &frame_, std::move(inputs), frame_.binding);
    }
    Status reserve(uint64_t bytes) override {
      const uint64_t live = live_tensor_bytes();
      if (bytes <= executor_.limit_ && live <= executor_.limit_ - bytes) return ok();
      return resource_error("needs " + std::to_string(bytes) +
                            " bytes more, which exceeds the limit of " +
                            std::to_string(executor_.limit_) + " bytes")
          .with_help("give smaller inputs, or raise the limit with --memory-limit");
    }
    uint64_t seed() override { return executor_.options_.seed; }
    void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                      void* argument) override {
      tombolo::parallel_for(count, grain, body, argument);
    }

   private:
    Executor& executor_;
    Frame& frame_;
  };

  Status in_time() const {
    if (deadline_ == Clock::time_point() || Clock::now() <= deadline_) return ok();
    return resource_error("the run takes longer than its limit of " +
                          std::to_string(options_.time_limit_ms) + " ms");
  }

  Status run(const NodePlan& plan, Frame& frame) {
    CHECK_OK(in_time());
    std::vector<const RunValue*> inputs;
    inputs.reserve(plan.inputs.count);
    for (const ValueRef& ref : frame.plan.inputs_of(plan)) inputs.push_back(resolve(ref, frame));
    const std::span<const int> slots = frame.plan.outputs_of(plan);
    std::vector<RunValue> outputs(slots.size());
    if (plan.function != nullptr) {
      TRY(outputs, call(plan, inputs, frame));
    } else {
      Host host(*this, frame);
      KernelContext context{
          *plan.node, plan.opset,   inputs, outputs, AttributeReader(*plan.node, frame.binding),
          host,       frame.binding};
      if (Status status = plan.kernel(context); !status)
        return std::move(status).error().at(describe_inputs(inputs));
    }
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i] >= 0) frame.slots[static_cast<size_t>(slots[i])] = std::move(outputs[i]);
    for (int slot : frame.plan.dead_after(plan))
      frame.slots[static_cast<size_t>(slot)] = RunValue();
    return ok();
  }

  Result<std::vector<RunValue>> call(const NodePlan& plan,
                                     const std::vector<const RunValue*>& inputs, Frame& frame) {
    AttributeBinding binding;
    for (const Attribute& attribute : plan.node->attributes()) binding.given.push_back(&attribute);
    binding.defaults = plan.function->attribute_protos;
    binding.outer = frame.binding;
    std::vector<RunValue> values;
    for (const RunValue* input : inputs) values.push_back(input != nullptr ? *input : RunValue());
    auto outputs = graph(*plan_.functions.at(plan.function), nullptr, std::move(values), &binding);
    if (!outputs)
      return std::move(outputs).error().at("function \"" + std::string(plan.function->name) + "\"");
    outputs->resize(plan.outputs.count);
    return outputs;
  }

  static std::string describe_inputs(const std::vector<const RunValue*>& inputs) {
    std::string text = "inputs (";
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i != 0) text += ", ";
      const RunValue* value = inputs[i];
      if (value == nullptr || value->is_none())
        text += "absent";
      else if (value->is_tensor())
        text += to_string(value->tensor());
      else if (value->kind() == RunValue::Kind::kSequence)
        text += "sequence of " + std::to_string(value->sequence().items.size());
      else
        text += value->kind() == RunValue::Kind::kOptional ? "optional" : "map or sparse tensor";
    }
    return text + ")";
  }

  const ModelPlan& plan_;
  const SessionOptions& options_;
  const uint64_t limit_;
  Clock::time_point deadline_{};  ///< the epoch: none
};

/// Checks a caller's tensor against the declared type. `symbols` holds the sizes of names so far.
Status check_input(const SessionPort& port, const RunValue& value,
                   std::unordered_map<std::string, int64_t>& symbols) {
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
    if (dim.kind == Dim::Kind::kParam && !dim.param.empty()) {
      auto [entry, inserted] = symbols.try_emplace(std::string(dim.param), tensor.dim(axis));
      if (!inserted && entry->second != tensor.dim(axis))
        return usage_error("input \"" + port.name + "\" has " + std::to_string(tensor.dim(axis)) +
                           " for dimension " + std::string(dim.param) + ", another input has " +
                           std::to_string(entry->second));
    }
  }
  return ok();
}

}  // namespace

Session::Session() = default;
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::unique_ptr<Model> model,
                                                 SessionOptions options) {
  std::unique_ptr<Session> session(new Session);
  if (options.memory_limit == 0) options.memory_limit = default_memory_limit();
  session->model_ = std::move(model);
  Diagnostics notes;  // nodes that keep an old version run as such
  CHECK_OK(upgrade(*session->model_, notes));
  session->impl_ = std::make_unique<Impl>();
  session->impl_->options = options;
  TRY(session->impl_->plan, plan_model(*session->model_));
  const Graph& graph = *session->model_->graph;
  for (const Value* input : graph.inputs())
    session->inputs_.push_back(
        {std::string(input->name()), input->type(), input->is_initializer()});
  for (const GraphOutput& output : graph.outputs()) {
    const bool own = output.declared && present(output.declared->name);
    session->outputs_.push_back({std::string(own ? output.declared->name : output.value->name()),
                                 output.declared ? output.declared->type : output.value->type(),
                                 false});
  }
  return session;
}

Result<std::vector<RunValue>> Session::run(const std::vector<NamedValue>& inputs) const {
  std::vector<RunValue> values(inputs_.size());
  std::unordered_map<std::string, int64_t> symbols;
  for (const NamedValue& given : inputs) {
    const auto port =
        std::find_if(inputs_.begin(), inputs_.end(),
                     [&](const SessionPort& candidate) { return candidate.name == given.name; });
    if (port == inputs_.end()) {
      std::string names;
      for (const SessionPort& known : inputs_) names += (names.empty() ? "" : ", ") + known.name;
      return usage_error("the model has no input \"" + given.name + "\"")
          .with_help("its inputs are: " + names);
    }
    CHECK_OK(check_input(*port, given.value, symbols));
    RunValue value = given.value;
    if (value.is_tensor() && !value.tensor().aligned()) {
      TRY(Tensor copy, value.tensor().clone());
      value = RunValue(std::move(copy));
    }
    values[static_cast<size_t>(port - inputs_.begin())] = std::move(value);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool optional =
        inputs_[i].type != nullptr && inputs_[i].type->kind == Type::Kind::kOptional;
    if (values[i].is_none() && optional) values[i] = RunValue::empty_optional();
    if (values[i].is_none() && !inputs_[i].has_default)
      return usage_error("input \"" + inputs_[i].name + "\" is missing");
  }
  std::string signature;
  for (const RunValue& value : values)
    signature += value.is_tensor() ? to_string(value.tensor()) + ";" : "-;";
  {
    std::lock_guard lock(impl_->mutex);
    if (!impl_->accepted.contains(signature)) {
      CHECK_OK(
          check_planned_sizes(*model_, *impl_->plan.main, values, impl_->options.memory_limit));
      if (impl_->accepted.size() < 1000) impl_->accepted.insert(std::move(signature));
    }
  }
  // Memory that other sessions hold counts too: the limit is the process's.
  Executor executor(impl_->plan, impl_->options);
  return executor.graph(*impl_->plan.main, nullptr, std::move(values), nullptr);
}

}  // namespace tombolo
