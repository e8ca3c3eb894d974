#include "runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "base/block_cache.h"
#include "ops/kernel_context.h"
#include "runtime/instance.h"

namespace tombolo {

namespace {

std::string describe_inputs(std::span<const RunValue* const> inputs) {
  std::string text = "inputs (";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i != 0) text += ", ";
    const RunValue* value = inputs[i];
    if (value == nullptr || value->is_none())
      text += "absent";
    else if (value->is_tensor())
      text += to_string(value->tensor());
    else if (value->kind() == RunValue::Kind::kSequence)
      text += "sequence of " + std::to_string(value->sequence().size());
    else
      text += value->kind() == RunValue::Kind::kOptional ? "optional" : "map or sparse tensor";
  }
  return text + ")";
}

/// A list of pointers without a heap block in the usual case.
class Pointers {
 public:
  explicit Pointers(size_t count) : size_(count) {
    if (count > kInline) heap_ = std::make_unique<const RunValue*[]>(count);
  }
  const RunValue*& operator[](size_t i) { return heap_ ? heap_[i] : inline_[i]; }
  std::span<const RunValue* const> span() const { return {heap_ ? heap_.get() : inline_, size_}; }

 private:
  static constexpr size_t kInline = 12;
  const RunValue* inline_[kInline];
  std::unique_ptr<const RunValue*[]> heap_;
  size_t size_;
};

bool within(const Tensor& tensor, const std::byte* begin, const std::byte* end) {
  const std::byte* at = tensor.data<std::byte>();
  return begin != nullptr && at >= begin && at < end;
}

/// Whether any tensor inside lies in [begin, end).
bool touches(const RunValue& value, const std::byte* begin, const std::byte* end) {
  switch (value.kind()) {
    case RunValue::Kind::kNone:
      return false;
    case RunValue::Kind::kTensor:
      return within(value.tensor(), begin, end);
    case RunValue::Kind::kSequence:
      if (begin != nullptr && value.sequence().apart_from == SequenceValue::Memory{begin, end})
        return false;
      if (const auto& rows = value.sequence().rows)
        return within(rows->keys, begin, end) || within(rows->scalars, begin, end);
      return std::any_of(value.sequence().items.begin(), value.sequence().items.end(),
                         [&](const RunValue& item) { return touches(item, begin, end); });
    case RunValue::Kind::kOptional:
      return value.optional_content() != nullptr && touches(*value.optional_content(), begin, end);
    case RunValue::Kind::kMap:
      return within(value.map().keys, begin, end) || within(value.map().scalars, begin, end) ||
             std::any_of(value.map().values.begin(), value.map().values.end(),
                         [&](const RunValue& item) { return touches(item, begin, end); });
    case RunValue::Kind::kSparse:
      return within(value.sparse().values, begin, end) ||
             within(value.sparse().indices, begin, end);
  }
  return false;
}

}  // namespace

Result<RunValue> detached(const RunValue& value, const std::byte* begin, const std::byte* end) {
  if (!touches(value, begin, end)) return value;
  switch (value.kind()) {
    case RunValue::Kind::kTensor: {
      TRY(Tensor copy, value.tensor().clone());
      return RunValue(std::move(copy));
    }
    case RunValue::Kind::kSequence: {
      SequenceValue copy = value.sequence();
      if (copy.rows != nullptr) {
        MapRows rows;
        TRY(rows.keys, copy.rows->keys.clone());
        TRY(rows.scalars, copy.rows->scalars.clone());
        copy.rows = std::make_shared<const MapRows>(std::move(rows));
      }
      for (RunValue& item : copy.items) {
        TRY(item, detached(item, begin, end));
      }
      return RunValue(std::move(copy));
    }
    case RunValue::Kind::kOptional: {
      TRY(RunValue content, detached(*value.optional_content(), begin, end));
      return RunValue::optional_of(std::move(content));
    }
    case RunValue::Kind::kMap: {
      MapValue copy = value.map();
      TRY(copy.keys, copy.keys.clone());
      if (copy.of_scalars()) {
        TRY(copy.scalars, copy.scalars.clone());
      }
      for (RunValue& item : copy.values) {
        TRY(item, detached(item, begin, end));
      }
      return RunValue(std::move(copy));
    }
    case RunValue::Kind::kSparse: {
      SparseValue copy = value.sparse();
      TRY(copy.values, copy.values.clone());
      TRY(copy.indices, copy.indices.clone());
      return RunValue(std::move(copy));
    }
    case RunValue::Kind::kNone:
      break;
  }
  return value;
}

const RunValue* Frame::resolve(const ValueRef& ref) const {
  if (ref.constant != nullptr) return ref.constant;
  if (ref.slot < 0) return nullptr;
  const Frame* at = this;
  for (int depth = ref.depth; depth > 0; --depth) at = at->parent;
  return &at->slots[static_cast<size_t>(ref.slot)];
}

Executor::Executor(const ModelPlan& plan, const ExecutorSetting& setting, const RunLimits& limits,
                   Profile* profile)
    : plan_(plan),
      setting_(setting),
      limits_(limits),
      profile_(profile),
      watched_(limits.time_ms != 0 || limits.cancelled != nullptr) {
  if (limits.time_ms != 0) deadline_ = Clock::now() + std::chrono::milliseconds(limits.time_ms);
}

Executor::~Executor() {
  for (auto& instance : held_) put_back(std::move(instance));
}

Status Executor::interrupted() const {
  if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed))
    return resource_error("the run was cancelled");
  if (deadline_ == Clock::time_point() || Clock::now() <= deadline_) return ok();
  return resource_error("the run takes longer than its limit of " +
                        std::to_string(limits_.time_ms) + " ms");
}

Status Executor::reserve(uint64_t bytes) const {
  const uint64_t live = live_tensor_bytes();
  if (bytes <= limits_.memory && live <= limits_.memory - bytes) return ok();
  return resource_error("needs " + std::to_string(bytes) +
                        " bytes more, which exceeds the limit of " +
                        std::to_string(limits_.memory) + " bytes")
      .with_help("give smaller inputs, or raise the limit with --memory-limit");
}

/// Runs subgraphs for the kernel of one node.
class Executor::Host final : public KernelHost {
 public:
  Host(Executor& executor, const NodePlan& node, Frame& frame)
      : executor_(executor), node_(node), frame_(frame) {}
  Result<std::vector<RunValue>> run_graph(const Graph& graph,
                                          std::vector<RunValue> inputs) override {
    auto found = frame_.plan->subgraphs.find(&graph);
    if (found == frame_.plan->subgraphs.end())
      return runtime_error("the subgraph does not belong to the node");
    return executor_.graph(*found->second, &frame_, std::move(inputs), frame_.binding);
  }
  Status reserve(uint64_t bytes) override { return executor_.reserve(bytes); }
  uint64_t seed() override { return executor_.setting_.seed; }
  void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                    void* argument) override {
    tombolo::parallel_for(count, grain, body, argument);
  }
  RunValue* last_use(size_t index) override {
    const auto inputs = frame_.plan->inputs_of(node_);
    const ValueRef& ref = inputs[index];
    if (ref.constant != nullptr || ref.depth != 0 || ref.slot < 0) return nullptr;
    const auto dead = frame_.plan->dead_after(node_);
    const auto reads = std::count_if(inputs.begin(), inputs.end(), [&](const ValueRef& other) {
      return other.constant == nullptr && other.depth == 0 && other.slot == ref.slot;
    });
    return reads == 1 && std::find(dead.begin(), dead.end(), ref.slot) != dead.end()
               ? &frame_.slots[static_cast<size_t>(ref.slot)]
               : nullptr;
  }
  // Attributes that a call of a function gives differ from call to call.
  std::shared_ptr<const void> kept() override {
    return node_.bound ? nullptr : frame_.plan->cache->kept.get(node_.index);
  }
  void keep(std::shared_ptr<const void> made) override {
    if (!node_.bound) frame_.plan->cache->kept.set(node_.index, std::move(made));
  }

 private:
  Executor& executor_;
  const NodePlan& node_;
  Frame& frame_;
};

Result<std::vector<RunValue>> Executor::graph(const GraphPlan& plan, Frame* parent,
                                              std::vector<RunValue> inputs,
                                              const AttributeBinding* binding,
                                              std::span<const Tensor> bound) {
  CHECK_OK(check());  // here too: the body of a Loop may hold no node
  if (inputs.size() > plan.inputs.size())
    return runtime_error("graph \"" + std::string(plan.graph->name) + "\" takes " +
                         std::to_string(plan.inputs.size()) + " inputs, got " +
                         std::to_string(inputs.size()));
  Frame frame;
  frame.plan = &plan;
  frame.parent = parent;
  frame.binding = binding;
  // Who observes every value is shown those, too, that nodes which run as one do not write.
  if (!setting_.specialise || !plan.own_slots || Profile::observed(profile_)) {
    frame.slots.resize(static_cast<size_t>(plan.slot_count));
    return node_by_node(frame, std::move(inputs), nullptr);
  }
  signature_.clear();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const RunValue* input =
        i < inputs.size() && !inputs[i].is_none() ? &inputs[i] : plan.defaults[i];
    signature_.add(input);
    if (plan.chosen_by[i]) signature_.add_value(input);
  }
  for (const ValueRef& ref : plan.outer) signature_.add(frame.resolve(ref));
  signature_.finish();
  for (auto& held : held_)
    if (held->plan == &plan && held->specialisation->signature == signature_) {
      std::unique_ptr<Instance> instance = std::move(held);
      held = std::move(held_.back());
      held_.pop_back();
      return along(std::move(instance), parent, std::move(inputs), binding, bound);
    }
  if (SpecialisationPtr known = plan.cache->find(signature_)) {
    TRY(auto instance, instance_for(plan, std::move(known)));
    return along(std::move(instance), parent, std::move(inputs), binding, bound);
  }
  frame.slots.resize(static_cast<size_t>(plan.slot_count));
  if (!plan.cache->worth_tracing(signature_))
    return node_by_node(frame, std::move(inputs), nullptr);
  Trace trace;
  trace.slots.resize(frame.slots.size());
  trace.nodes.resize(plan.nodes.size());
  Signature signature = signature_;
  TRY(auto outputs, node_by_node(frame, std::move(inputs), &trace));
  const bool first =
      plan.cache->insert(plan, std::move(signature), trace, setting_.kernels.options);
  if (first && parent == nullptr) drop_kept_blocks();  // the next run has its arena
  return outputs;
}

Result<std::unique_ptr<Instance>> Executor::instance_for(const GraphPlan& plan,
                                                         SpecialisationPtr specialisation) {
  std::unique_ptr<Instance> instance;
  {
    std::lock_guard lock(specialisation->mutex);
    if (!specialisation->idle.empty()) {
      instance = std::move(specialisation->idle.back());
      specialisation->idle.pop_back();
    }
  }
  if (instance != nullptr) {
    instance->owner = std::move(specialisation);
  } else {
    CHECK_OK(reserve(specialisation->arena_bytes));
    TRY(instance, Instance::create(plan, std::move(specialisation), setting_.kernels.options));
  }
  CHECK_OK(instance->take_arena());
  return instance;
}

void Executor::put_back(std::unique_ptr<Instance> instance) {
  SpecialisationPtr owner = std::move(instance->owner);
  instance->give_arena();
  std::lock_guard lock(owner->mutex);
  owner->idle.push_back(std::move(instance));
}

Result<std::vector<RunValue>> Executor::outputs_of(Frame& frame) {
  std::vector<RunValue> outputs;
  outputs.reserve(frame.plan->outputs.size());
  for (const ValueRef& ref : frame.plan->outputs) {
    const RunValue* value = frame.resolve(ref);
    if (value == nullptr) {
      outputs.emplace_back();
    } else if (frame.arena_begin != nullptr &&
               touches(*value, frame.arena_begin, frame.arena_end)) {
      TRY(RunValue copy, detached(*value, frame.arena_begin, frame.arena_end));
      outputs.push_back(std::move(copy));
    } else {
      outputs.push_back(*value);
    }
  }
  return outputs;
}

Result<std::vector<RunValue>> Executor::node_by_node(Frame& frame, std::vector<RunValue> inputs,
                                                     Trace* trace) {
  const GraphPlan& plan = *frame.plan;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    RunValue& slot = frame.slots[static_cast<size_t>(plan.inputs[i])];
    if (i < inputs.size() && !inputs[i].is_none())
      slot = std::move(inputs[i]);
    else if (plan.defaults[i] != nullptr)
      slot = *plan.defaults[i];
    if (trace == nullptr || slot.is_none()) continue;
    TraceSlot& seen = trace->slots[static_cast<size_t>(plan.inputs[i])];
    seen.from = TraceSlot::From::kOther;
    if (!slot.is_tensor()) continue;
    seen.from = TraceSlot::From::kTensor;
    seen.dtype = slot.tensor().dtype();
    seen.dims = slot.tensor().dims();
    seen.bytes = slot.tensor().bytes().size();
  }
  for (const NodePlan& node : plan.nodes)
    if (Status status = this->node(node, frame, trace); !status)
      return std::move(status).error().at(describe(*node.node));
  return outputs_of(frame);
}

Result<std::vector<RunValue>> Executor::along(std::unique_ptr<Instance> instance, Frame* parent,
                                              std::vector<RunValue> inputs,
                                              const AttributeBinding* binding,
                                              std::span<const Tensor> bound) {
  instance->executor = this;
  CHECK_OK(instance->enter(parent, std::move(inputs), binding, bound));
  CHECK_OK(steps(*instance));  // after an error the instance is not used again
  TRY(auto outputs, outputs_of(*instance));
  if (instance->deviated) {
    instance->plan->cache->note_varying(*instance->plan, instance->owner, instance->varying);
    return outputs;
  }
  instance->leave();
  if (parent != nullptr)
    held_.push_back(std::move(instance));
  else
    put_back(std::move(instance));
  return outputs;
}

Status Executor::steps(Instance& instance) {
  const std::vector<int>& dead = instance.specialisation->dead;
  // Subgraphs and functions run within a step of the graph around them.
  const bool outermost = instance.parent == nullptr && instance.binding == nullptr;
  SharedRun sharing(outermost && profile_ == nullptr ? &instance.owner->sharing : nullptr);
  for (Instance::Call& call : instance.calls) {
    if (watched_) CHECK_OK(interrupted());
    sharing.begin_step(static_cast<size_t>(&call - instance.calls.data()));
    if (call.chosen != nullptr && !call.values_fit()) {
      if (Status status = node(call.last(), instance, nullptr); !status)
        return std::move(status).error().at(describe(*call.last().node));
      instance.compare(call.last());
      instance.varying.push_back(instance.plan->slot_count + static_cast<int>(call.last().index));
      instance.deviated = true;
    } else if (call.run != nullptr && profile_ == nullptr) [[likely]] {
      if (Status status = call.run(call); !status) [[unlikely]] {
        Pointers inputs(call.last().inputs.count);
        size_t at = 0;
        for (const ValueRef& ref : instance.plan->inputs_of(call.last()))
          inputs[at++] = instance.resolve(ref);
        return std::move(status)
            .error()
            .at(describe_inputs(inputs.span()))
            .at(describe(*call.last().node));
      }
    } else if (call.run != nullptr) {
      ProfileScope scope(*profile_, instance, call.nodes, call.kernel);
      if (Status status = call.run(call); !status)
        return std::move(status).error().at(describe(*call.last().node));
      scope.finish(true);
    } else {
      if (Status status = node(call.last(), instance, nullptr); !status)
        return std::move(status).error().at(describe(*call.last().node));
      instance.compare(call.last());
    }
    for (uint32_t i = 0; i < call.dead_count; ++i)
      instance.slots[static_cast<size_t>(dead[call.dead_begin + i])] = RunValue(Tensor());
    if (!instance.deviated) [[likely]]
      continue;
    // Something came out otherwise than in the trace: the rest goes node by node.
    for (size_t i = call.last().index + 1; i < instance.plan->nodes.size(); ++i) {
      const NodePlan& rest = instance.plan->nodes[i];
      if (Status status = node(rest, instance, nullptr); !status)
        return std::move(status).error().at(describe(*rest.node));
      instance.compare(rest);
      for (int slot : instance.plan->dead_after(rest))
        instance.slots[static_cast<size_t>(slot)] = RunValue();
    }
    return ok();
  }
  sharing.finish();
  return ok();
}

namespace {

/// The call of a kernel outside a specialisation: every output is new memory.
class SingleCall final : public KernelRun {
 public:
  SingleCall(Executor& executor, const NodePlan& node, Frame& frame, const Prepared& prepared,
             std::span<const RunValue* const> inputs, Trace* trace, const KernelOptions& options,
             Status (Executor::*reserve)(uint64_t) const)
      : executor_(executor), node_(node), frame_(frame), trace_(trace), reserve_(reserve) {
    if (inputs.size() > kInline) many_inputs_ = std::make_unique<const Tensor*[]>(inputs.size());
    const Tensor** list = many_inputs_ ? many_inputs_.get() : few_inputs_;
    for (size_t i = 0; i < inputs.size(); ++i)
      list[i] = inputs[i] != nullptr && inputs[i]->is_tensor() ? &inputs[i]->tensor() : nullptr;
    const std::span<const int> slots = frame.plan->outputs_of(node);
    if (slots.size() > kInline) {
      many_outputs_ = std::make_unique<Tensor*[]>(slots.size());
      many_wanted_ = std::make_unique<bool[]>(slots.size());
    }
    bool* wanted = many_wanted_ ? many_wanted_.get() : few_wanted_;
    for (size_t i = 0; i < slots.size(); ++i) wanted[i] = slots[i] >= 0;
    inputs_ = list;
    outputs_ = many_outputs_ ? many_outputs_.get() : few_outputs_;
    wanted_ = wanted;
    input_count_ = static_cast<uint32_t>(inputs.size());
    output_count_ = static_cast<uint32_t>(slots.size());
    state_ = prepared.state.get();
    options_ = &options;
  }
  void set_scratch(std::byte* scratch) { scratch_ = scratch; }

 protected:
  Result<Tensor*> new_output(size_t index, DType dtype, std::span<const int64_t> dims) override {
    if (index >= output_count_)
      return runtime_error("the node has no output " + std::to_string(index));
    const int64_t count = element_count(dims);
    if (count >= 0)
      if (auto bytes = packed_bytes(dtype, static_cast<uint64_t>(count)))
        CHECK_OK((executor_.*reserve_)(*bytes));
    TRY(Tensor tensor, Tensor::allocate(dtype, dims));
    const int slot = frame_.plan->outputs_of(node_)[index];
    if (slot < 0) {
      unwanted_.push_back(std::make_unique<Tensor>(std::move(tensor)));
      return unwanted_.back().get();
    }
    RunValue& value = frame_.slots[static_cast<size_t>(slot)];
    value = RunValue(std::move(tensor));
    if (trace_ != nullptr) note(slot, value.tensor(), TraceSlot::From::kTensor);
    return &value.tensor();
  }

  Status new_view(size_t index, size_t input, size_t offset, DType dtype,
                  std::span<const int64_t> dims) override {
    if (index >= output_count_)
      return runtime_error("the node has no output " + std::to_string(index));
    const int slot = frame_.plan->outputs_of(node_)[index];
    if (slot < 0) return ok();
    const Tensor& base = *inputs_[input];
    const int64_t count = std::max<int64_t>(element_count(dims), 0);
    const auto bytes =
        static_cast<size_t>(packed_bytes(dtype, static_cast<uint64_t>(count)).value_or(0));
    // The whole tensor shares its owner: views of views of views, as a loop makes them, must not
    // hang on each other, or letting go of the last runs out of stack.
    const bool whole = offset == 0 && bytes == base.bytes().size() && count == base.size();
    Tensor view = whole ? base.reshaped(dims).reinterpreted(dtype)
                        : Tensor::view(dtype, dims, {base.data<std::byte>() + offset, bytes},
                                       std::make_shared<const Tensor>(base));
    if (trace_ != nullptr) {
      const ValueRef& ref = frame_.plan->inputs_of(node_)[input];
      if (ref.constant != nullptr) {
        note(slot, view, TraceSlot::From::kConstantView);
        trace_->slots[static_cast<size_t>(slot)].value = view;
      } else if (ref.depth == 0) {
        note(slot, view, TraceSlot::From::kSlotView);
        trace_->slots[static_cast<size_t>(slot)].base = ref.slot;
        trace_->slots[static_cast<size_t>(slot)].offset = offset;
      } else {
        note(slot, view, TraceSlot::From::kTensor);
        trace_->slots[static_cast<size_t>(slot)].free = true;
      }
    }
    frame_.slots[static_cast<size_t>(slot)] = RunValue(std::move(view));
    return ok();
  }

 private:
  static constexpr size_t kInline = 12;

  void note(int slot, const Tensor& tensor, TraceSlot::From from) {
    TraceSlot& seen = trace_->slots[static_cast<size_t>(slot)];
    seen.from = from;
    seen.dtype = tensor.dtype();
    seen.dims = tensor.dims();
    seen.bytes = tensor.bytes().size();
    seen.free = tensor.is_string();  // texts lie on the heap, not in an arena
  }

  Executor& executor_;
  const NodePlan& node_;
  Frame& frame_;
  Trace* trace_;
  Status (Executor::*reserve_)(uint64_t) const;
  const Tensor* few_inputs_[kInline];
  Tensor* few_outputs_[kInline] = {};
  bool few_wanted_[kInline];
  std::unique_ptr<const Tensor*[]> many_inputs_;
  std::unique_ptr<Tensor*[]> many_outputs_;
  std::unique_ptr<bool[]> many_wanted_;
  std::vector<std::unique_ptr<Tensor>> unwanted_;
};

/// Part of a batch.
Tensor images(const Tensor& batch, int64_t first, int64_t count) {
  std::vector<int64_t> dims(batch.dims().begin(), batch.dims().end());
  const int64_t image = batch.size() / dims[0];
  dims[0] = count;
  return batch.part(first * image, dims);
}

constexpr size_t kSmall = 4096;  ///< tensors that a trace keeps, in case they are fixed

/// Kernels go through rows also where these have no elements: 2^40 of them, which take no memory,
/// would take hours.
Status check_empty(std::span<const RunValue* const> inputs) {
  constexpr int64_t kMost = int64_t{1} << 27;
  for (const RunValue* input : inputs) {
    if (input == nullptr || !input->is_tensor() || input->tensor().size() != 0) continue;
    int64_t rows = 1;
    for (const int64_t dim : input->tensor().dims())
      if (dim > 0 && (__builtin_mul_overflow(rows, dim, &rows) || rows > kMost))
        return resource_error("an input is empty, but its other dimensions make more than " +
                              std::to_string(kMost) + " rows")
            .at(describe_inputs(inputs));
  }
  return ok();
}

}  // namespace

Status Executor::node(const NodePlan& plan, Frame& frame, Trace* trace) {
  CHECK_OK(check());
  Pointers pointers(plan.inputs.count);
  size_t count = 0;
  for (const ValueRef& ref : frame.plan->inputs_of(plan)) pointers[count++] = frame.resolve(ref);
  const std::span<const RunValue* const> inputs = pointers.span();
  CHECK_OK(check_empty(inputs));
  PreparedPtr prepared;
  if (!plan.rows.empty()) {
    TRY(prepared, frame.plan->cache->prepared.get(*frame.plan, plan, inputs, setting_.kernels));
    if (prepared != nullptr)
      for (const auto& [i, copy] : prepared->aligned) pointers[i] = &copy;
  }
  const bool fast = prepared != nullptr && prepared->row != nullptr;
  if (trace != nullptr) trace->nodes[plan.index] = prepared;
  if (profile_ != nullptr && plan.slice == nullptr) {
    ProfileScope scope(*profile_, frame, {&plan, 1},
                       fast                       ? prepared->row->name.data
                       : plan.function != nullptr ? "function"
                                                  : "reference");
    CHECK_OK(fast ? fast_node(plan, frame, prepared, inputs, trace)
                  : generic_node(plan, frame, inputs, trace));
    scope.finish(frame.parent == nullptr);
  } else {
    CHECK_OK(fast ? fast_node(plan, frame, prepared, inputs, trace)
                  : generic_node(plan, frame, inputs, trace));
  }
  if (trace != nullptr)
    for (int slot : frame.plan->outputs_of(plan)) {
      if (slot < 0) continue;
      const RunValue& value = frame.slots[static_cast<size_t>(slot)];
      if (value.is_tensor() && value.tensor().bytes().size() <= kSmall &&
          value.tensor().size() <= static_cast<int64_t>(kSmall))
        trace->slots[static_cast<size_t>(slot)].value = value.tensor();
    }
  // Along a specialisation the caller clears what is dead: it knows what is not to be touched.
  if (!frame.specialised)
    for (int slot : frame.plan->dead_after(plan))
      frame.slots[static_cast<size_t>(slot)] = RunValue();
  return ok();
}

Status Executor::fast_node(const NodePlan& plan, Frame& frame, const PreparedPtr& prepared,
                           std::span<const RunValue* const> inputs, Trace* trace) {
  SingleCall call(*this, plan, frame, *prepared, inputs, trace, setting_.kernels.options,
                  &Executor::reserve);
  Tensor scratch;
  if (prepared->state != nullptr && prepared->state->scratch_bytes != 0) {
    CHECK_OK(reserve(prepared->state->scratch_bytes));
    const int64_t dims[] = {static_cast<int64_t>(prepared->state->scratch_bytes)};
    TRY(scratch, Tensor::allocate(DType::kUInt8, dims));
    call.set_scratch(scratch.data<std::byte>());
  }
  if (Status status = prepared->row->run(call); !status)
    return std::move(status).error().at(describe_inputs(inputs));
  return detach_outputs(plan, frame);
}

Status Executor::detach_outputs(const NodePlan& plan, Frame& frame) {
  if (frame.arena_begin == nullptr) return ok();
  for (int slot : frame.plan->outputs_of(plan)) {
    if (slot < 0) continue;
    RunValue& value = frame.slots[static_cast<size_t>(slot)];
    if (touches(value, frame.arena_begin, frame.arena_end)) {
      TRY(value, detached(value, frame.arena_begin, frame.arena_end));
    }
    if (SequenceValue* own = value.own_sequence())
      own->apart_from = {frame.arena_begin, frame.arena_end};
  }
  return ok();
}

Status Executor::generic_node(const NodePlan& plan, Frame& frame,
                              std::span<const RunValue* const> inputs, Trace* trace) {
  const std::span<const int> slots = frame.plan->outputs_of(plan);
  std::vector<RunValue> outputs(slots.size());
  if (plan.function != nullptr) {
    TRY(outputs, call(plan, inputs, frame));
  } else if (plan.slice != nullptr) {
    TRY(outputs, by_images(plan, inputs, frame));
  } else {
    if (plan.kernel == nullptr)
      return unsupported("no kernel of " + std::string(plan.node->op_type()) +
                         " takes these inputs")
          .at(describe_inputs(inputs));
    Host host(*this, plan, frame);
    KernelContext context{
        *plan.node, plan.opset,   inputs, outputs, AttributeReader(*plan.node, frame.binding),
        host,       frame.binding};
    if (Status status = plan.kernel(context); !status)
      return std::move(status).error().at(describe_inputs(inputs));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    if (trace != nullptr && !outputs[i].is_none()) {
      TraceSlot& seen = trace->slots[static_cast<size_t>(slots[i])];
      seen.from = TraceSlot::From::kOther;
      if (outputs[i].is_tensor()) {
        const Tensor& tensor = outputs[i].tensor();
        seen.from = TraceSlot::From::kTensor;
        seen.free = true;
        seen.dtype = tensor.dtype();
        seen.dims = tensor.dims();
        seen.bytes = tensor.bytes().size();
      }
    }
    frame.slots[static_cast<size_t>(slots[i])] = std::move(outputs[i]);
  }
  return detach_outputs(plan, frame);
}

Result<std::vector<RunValue>> Executor::by_images(const NodePlan& plan,
                                                  std::span<const RunValue* const> inputs,
                                                  Frame& frame) {
  const int64_t all = inputs[0]->tensor().dim(0);
  std::vector<RunValue> whole(plan.outputs.count);
  std::vector<Tensor> places;
  for (int64_t first = 0; first < all; first += plan.images) {
    const int64_t count = std::min(plan.images, all - first);
    std::vector<RunValue> values;
    values.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(i < plan.batches ? RunValue(images(inputs[i]->tensor(), first, count))
                                        : *inputs[i]);
    places.clear();
    if (first != 0)
      for (const RunValue& output : whole) places.push_back(images(output.tensor(), first, count));
    TRY(auto made, graph(*plan.slice, &frame, std::move(values), frame.binding, places));
    for (size_t i = 0; i < whole.size(); ++i) {
      const Tensor& part = made[i].tensor();
      if (first == 0) {
        std::vector<int64_t> dims(part.dims().begin(), part.dims().end());
        dims[0] = all;
        CHECK_OK(
            reserve(part.bytes().size() / static_cast<size_t>(count) * static_cast<size_t>(all)));
        TRY(Tensor tensor, Tensor::allocate(part.dtype(), dims));
        whole[i] = RunValue(std::move(tensor));
      }
      Tensor place = images(whole[i].tensor(), first, count);
      if (place.bytes().data() == part.bytes().data()) continue;
      if (place.dtype() != part.dtype() || !(place.dims() == part.dims()))
        return runtime_error("images of one batch come out as " + to_string(place) + " and " +
                             to_string(part));
      std::memcpy(place.mutable_bytes().data(), part.bytes().data(), part.bytes().size());
    }
  }
  return whole;
}

Result<std::vector<RunValue>> Executor::call(const NodePlan& plan,
                                             std::span<const RunValue* const> inputs,
                                             Frame& frame) {
  AttributeBinding binding;
  for (const Attribute& attribute : plan.node->attributes()) binding.given.push_back(&attribute);
  binding.defaults = plan.function->attribute_protos;
  binding.outer = frame.binding;
  std::vector<RunValue> values;
  values.reserve(inputs.size());
  for (const RunValue* input : inputs) values.push_back(input != nullptr ? *input : RunValue());
  auto outputs = graph(*plan_.functions.at(plan.function), nullptr, std::move(values), &binding);
  if (!outputs)
    return std::move(outputs).error().at("function \"" + std::string(plan.function->name) + "\"");
  outputs->resize(plan.outputs.count);
  return outputs;
}

}  // namespace tombolo
