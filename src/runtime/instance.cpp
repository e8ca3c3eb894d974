#include "runtime/instance.h"

#include <algorithm>
#include <cstring>

namespace tombolo {

namespace {

/// A tensor in memory that somebody else keeps.
Tensor borrowed(const SlotPlan& plan, std::byte* at) {
  return Tensor::view(plan.dtype, plan.dims, {at, plan.bytes}, nullptr);
}

RunValue nothing() { return RunValue(Tensor()); }

}  // namespace

void Instance::Call::bind(const Tensor* const* inputs, uint32_t input_count, Tensor* const* outputs,
                          const bool* wanted, uint32_t output_count, std::byte* scratch,
                          const KernelState* state, const KernelOptions* options) {
  inputs_ = inputs;
  input_count_ = input_count;
  outputs_ = outputs;
  wanted_ = wanted;
  output_count_ = output_count;
  scratch_ = scratch;
  state_ = state;
  options_ = options;
}

Result<Tensor*> Instance::Call::new_output(size_t index, DType dtype,
                                           std::span<const int64_t> dims) {
  if (index >= output_count_)
    return runtime_error("the node has no output " + std::to_string(index));
  const int64_t count = element_count(dims);
  if (count >= 0)
    if (auto bytes = packed_bytes(dtype, static_cast<uint64_t>(count)))
      CHECK_OK(instance->executor->reserve(*bytes));
  TRY(Tensor tensor, Tensor::allocate(dtype, dims));
  const int slot = instance->plan->outputs_of(last())[index];
  if (slot < 0) {
    instance->unwanted.push_back(std::make_unique<Tensor>(std::move(tensor)));
    return instance->unwanted.back().get();
  }
  RunValue& value = instance->slots[static_cast<size_t>(slot)];
  value = RunValue(std::move(tensor));
  const SlotPlan& planned = instance->specialisation->slots[static_cast<size_t>(slot)];
  if (planned.tensor && (planned.dtype != dtype || !same(planned.dims, dims))) {
    instance->varying.push_back(slot);
    instance->deviated = true;
  }
  return &value.tensor();
}

Status Instance::Call::new_view(size_t index, size_t input, size_t offset, DType dtype,
                                std::span<const int64_t> dims) {
  if (index >= output_count_)
    return runtime_error("the node has no output " + std::to_string(index));
  const Tensor& base = *inputs_[input];
  const std::byte* at = base.data<std::byte>() + offset;
  if (at >= instance->arena_begin && at < instance->arena_end) {
    // The plan does not know of this view, so the memory may be given to others: copy.
    TRY(Tensor * copy, new_output(index, dtype, dims));
    std::memcpy(copy->mutable_bytes().data(), at, copy->bytes().size());
    return ok();
  }
  const int slot = instance->plan->outputs_of(last())[index];
  if (slot < 0) return ok();
  const int64_t count = std::max<int64_t>(element_count(dims), 0);
  const auto bytes =
      static_cast<size_t>(packed_bytes(dtype, static_cast<uint64_t>(count)).value_or(0));
  const bool whole = offset == 0 && bytes == base.bytes().size() && count == base.size();
  instance->slots[static_cast<size_t>(slot)] =
      whole ? RunValue(base.reshaped(dims).reinterpreted(dtype))
            : RunValue(Tensor::view(dtype, dims, {at, bytes}, std::make_shared<Tensor>(base)));
  const SlotPlan& planned = instance->specialisation->slots[static_cast<size_t>(slot)];
  if (planned.tensor && (planned.dtype != dtype || !same(planned.dims, dims))) {
    instance->varying.push_back(slot);
    instance->deviated = true;
  }
  return ok();
}

Result<std::unique_ptr<Instance>> Instance::create(const GraphPlan& plan,
                                                   SpecialisationPtr specialisation,
                                                   const KernelOptions& options) {
  auto made = std::make_unique<Instance>();
  made->plan = &plan;
  made->specialised = true;
  made->owner = specialisation;
  made->specialisation = specialisation.get();
  made->slots.resize(static_cast<size_t>(plan.slot_count));
  for (RunValue& slot : made->slots) slot = nothing();
  if (specialisation->arena_bytes == 0) made->place();  // else with the arena
  // All pointers first: the calls keep pointers into these lists.
  size_t inputs = 0, outputs = 0;
  for (const StepPlan& step : specialisation->steps) {
    const size_t nodes = step.kernels().size();
    for (size_t k = 0; k < nodes; ++k) inputs += plan.nodes[step.node - k].inputs.count;
    if (nodes > 0) outputs += plan.nodes[step.node].outputs.count;
  }
  made->input_pointers.resize(inputs);
  made->output_pointers.resize(outputs);
  made->wanted = std::make_unique<bool[]>(outputs);
  made->calls.resize(specialisation->steps.size());
  size_t input_at = 0, output_at = 0;
  for (size_t i = 0; i < made->calls.size(); ++i) {
    const StepPlan& step = specialisation->steps[i];
    Call& call = made->calls[i];
    call.instance = made.get();
    const std::span<const PreparedPtr> kernels = step.kernels();
    const size_t together = std::max<size_t>(1, kernels.size());
    call.nodes = std::span(plan.nodes).subspan(step.node + 1 - together, together);
    call.dead_begin = step.dead_begin;
    call.dead_count = step.dead_count;
    if (kernels.empty()) continue;
    const JoinedStep* const joined = step.joined.get();
    call.kernel = joined != nullptr ? joined->row->name.data : step.prepared->row->name.data;
    call.run = joined != nullptr ? joined->row->run : step.prepared->row->run;
    if (step.by_values) call.chosen = step.prepared.get();
    const size_t first_input = input_at, first_output = output_at;
    for (size_t k = 0; k < kernels.size(); ++k) {
      const size_t first = input_at;
      for (const ValueRef& ref : plan.inputs_of(call.nodes[k])) {
        const Tensor*& pointer = made->input_pointers[input_at];
        if (ref.constant != nullptr)
          pointer = ref.constant->is_tensor() ? &ref.constant->tensor() : nullptr;
        else if (ref.depth > 0)
          made->outer.push_back({input_at, ref});
        else if (ref.slot >= 0 && specialisation->slots[static_cast<size_t>(ref.slot)].tensor)
          pointer = &made->slots[static_cast<size_t>(ref.slot)].tensor();
        ++input_at;
      }
      for (const auto& [input, copy] : kernels[k]->aligned)
        made->input_pointers[first + input] = &copy.tensor();
    }
    for (int slot : plan.outputs_of(call.last())) {
      made->wanted[output_at] = slot >= 0;
      if (slot >= 0) {
        const SlotPlan& at = specialisation->slots[static_cast<size_t>(slot)];
        if (at.where == SlotPlan::Where::kArena || at.where == SlotPlan::Where::kRoot)
          made->output_pointers[output_at] = &made->slots[static_cast<size_t>(slot)].tensor();
      }
      ++output_at;
    }
    call.bind(made->input_pointers.data() + first_input,
              static_cast<uint32_t>(input_at - first_input),
              made->output_pointers.data() + first_output, made->wanted.get() + first_output,
              call.last().outputs.count, nullptr,
              joined != nullptr ? joined->state.get() : step.prepared->state.get(), &options);
  }
  return made;
}

Status Instance::take_arena() {
  if (specialisation->arena_bytes == 0) return ok();
  TRY(arena, plan->cache->arenas.take(specialisation->arena_bytes, base));
  if (arena.data<std::byte>() == base) return ok();
  base = arena.data<std::byte>();
  arena_begin = base;
  arena_end = base + specialisation->arena_bytes;
  place();
  for (size_t i = 0; i < calls.size(); ++i)
    if (specialisation->steps[i].scratch != SIZE_MAX)
      calls[i].set_scratch(base + specialisation->steps[i].scratch);
  return ok();
}

void Instance::give_arena() {
  if (plan->cache != nullptr) plan->cache->arenas.give(std::move(arena));
  arena = Tensor();
}

void Instance::place() {
  for (size_t i = 0; i < slots.size(); ++i) {
    const SlotPlan& at = specialisation->slots[i];
    if (at.where == SlotPlan::Where::kArena)
      slots[i] = RunValue(borrowed(at, base + at.offset));
    else if (at.where == SlotPlan::Where::kFixed)
      slots[i] = RunValue(at.value);
    else if (at.where == SlotPlan::Where::kNone)
      slots[i] = RunValue(borrowed(at, nullptr));  // its shape, for profiles
    else
      slots[i] = nothing();
  }
}

Status Instance::enter(Frame* around, std::vector<RunValue> inputs, const AttributeBinding* given,
                       std::span<const Tensor> bound) {
  parent = around;
  binding = given;
  deviated = false;
  varying.clear();
  for (size_t i = 0; i < plan->inputs.size(); ++i) {
    RunValue& slot = slots[static_cast<size_t>(plan->inputs[i])];
    if (i < inputs.size() && !inputs[i].is_none())
      slot = std::move(inputs[i]);
    else if (plan->defaults[i] != nullptr)
      slot = *plan->defaults[i];
    else
      slot = RunValue();
  }
  for (const Specialisation::Root& root : specialisation->roots) {
    RunValue& first = slots[static_cast<size_t>(root.slot)];
    std::shared_ptr<const Tensor> block;
    if (root.input) {
      block = std::make_shared<const Tensor>(first.tensor());
    } else {
      const SlotPlan& at = specialisation->slots[static_cast<size_t>(root.slot)];
      if (at.plain_output) {
        const Tensor* target = nullptr;
        for (size_t i = 0; i < bound.size() && i < plan->outputs.size(); ++i)
          if (plan->outputs[i].slot == root.slot && plan->outputs[i].depth == 0 &&
              plan->outputs[i].constant == nullptr && bound[i].dtype() == at.dtype &&
              bound[i].dims() == at.dims)
            target = &bound[i];
        if (target != nullptr) {
          first = RunValue(*target);
        } else {
          CHECK_OK(executor->reserve(at.bytes));
          TRY(Tensor tensor, Tensor::allocate(at.dtype, at.dims));
          first = RunValue(std::move(tensor));
        }
        continue;
      }
      CHECK_OK(executor->reserve(root.bytes));
      const int64_t dims[] = {static_cast<int64_t>(root.bytes)};
      TRY(Tensor memory, Tensor::allocate(DType::kUInt8, dims));
      block = std::make_shared<const Tensor>(std::move(memory));
    }
    for (int member : root.members) {
      const SlotPlan& at = specialisation->slots[static_cast<size_t>(member)];
      // A view of the whole of an input shares its owner, as in Executor's new_view.
      const bool whole = root.input && at.offset == 0 && at.bytes == block->bytes().size() &&
                         element_count(at.dims) == block->size();
      slots[static_cast<size_t>(member)] =
          whole ? RunValue(block->reshaped(at.dims).reinterpreted(at.dtype))
                : RunValue(Tensor::view(at.dtype, at.dims,
                                        {block->data<std::byte>() + at.offset, at.bytes}, block));
    }
  }
  for (const Outer& outside : outer) {
    const RunValue* value = resolve(outside.ref);
    input_pointers[outside.pointer] =
        value != nullptr && value->is_tensor() ? &value->tensor() : nullptr;
  }
  return ok();
}

void Instance::leave() {
  for (int slot : plan->inputs) slots[static_cast<size_t>(slot)] = nothing();
  for (const Specialisation::Root& root : specialisation->roots)
    for (int member : root.members) slots[static_cast<size_t>(member)] = nothing();
  for (int slot : specialisation->left) slots[static_cast<size_t>(slot)] = nothing();
  unwanted.clear();
  parent = nullptr;
  binding = nullptr;
  executor = nullptr;
}

void Instance::compare(const NodePlan& node) {
  for (int slot : plan->outputs_of(node)) {
    if (slot < 0) continue;
    const SlotPlan& planned = specialisation->slots[static_cast<size_t>(slot)];
    if (!planned.tensor) continue;
    const RunValue& value = slots[static_cast<size_t>(slot)];
    if (value.is_tensor() && value.tensor().dtype() == planned.dtype &&
        value.tensor().dims() == planned.dims)
      continue;
    varying.push_back(slot);
    deviated = true;
  }
}

}  // namespace tombolo
