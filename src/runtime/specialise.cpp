#include "runtime/specialise.h"

#include <algorithm>
#include <cstring>

#include "ops/registry.h"
#include "runtime/arena_plan.h"
#include "runtime/instance.h"

namespace tombolo {

namespace {

bool is_shape_query(const Node& node) {
  return canonical_domain(node.domain()).empty() &&
         (node.op_type() == "Shape" || node.op_type() == "Size");
}

bool is_deterministic(const Node& node) {
  const OpDecl* decl = find_operator(node.domain(), node.op_type());
  return decl != nullptr && decl->determinism == Determinism::kDeterministic;
}

/// Slots that lie in one piece of memory, each at its own offset.
struct Group {
  enum class Where : uint8_t { kArena, kOutput, kInput };
  Where where = Where::kArena;
  size_t bytes = 0;
  int first = 0, last = 0;  ///< nodes that write it first and read it last
  int input = -1;           ///< slot of the graph input that it lies in
  bool joined = false;      ///< holds inputs of a Concat: not to be written in place
  /// Was seen by a node that runs as such, whose outputs may share its memory. Those are copied out
  /// of the arena, but not out of a caller's output: nothing may be written over it there.
  bool handed_out = false;
  std::vector<std::pair<int, size_t>> members;
};

class Builder {
 public:
  Builder(const GraphPlan& plan, const Trace& trace, const std::vector<uint8_t>& varying,
          const KernelOptions& options)
      : plan_(plan),
        trace_(trace),
        varying_(varying),
        options_(options),
        result_(std::make_shared<Specialisation>()),
        group_of_(trace.slots.size(), -1),
        offset_(trace.slots.size()),
        last_(trace.slots.size(), kNever),
        is_output_(trace.slots.size()) {}

  SpecialisationPtr run() {
    result_->slots.resize(trace_.slots.size());
    find_lifetimes();
    for (int slot : plan_.inputs) take_input(slot);
    for (size_t at = 0; at < plan_.nodes.size();) at += take(plan_.nodes[at]);
    place_groups();
    for (const NodePlan& node : plan_.nodes) list_dead(node);
    for (size_t slot = 0; slot < last_.size(); ++slot)
      if (last_[slot] == kAlways && result_->slots[slot].where == SlotPlan::Where::kFree)
        result_->left.push_back(static_cast<int>(slot));
    result_->kept_bytes = kept_bytes();
    return std::move(result_);
  }

 private:
  static constexpr int kNever = -1, kAlways = INT32_MAX;
  static constexpr size_t kStepBytes = 2048;

  /// What kernels note of a shape grows with its pixels, each of at least sixteen floats, and takes
  /// less than a sixteenth of them.
  size_t kept_bytes() const {
    size_t bytes = result_->slots.size() * sizeof(SlotPlan) + result_->steps.size() * kStepBytes;
    for (const SlotPlan& slot : result_->slots) bytes += slot.bytes / 16;
    return bytes;
  }

  SlotPlan& slot_plan(int slot) { return result_->slots[static_cast<size_t>(slot)]; }
  const TraceSlot& traced(int slot) const { return trace_.slots[static_cast<size_t>(slot)]; }
  bool varies(int slot) const {
    return static_cast<size_t>(slot) < varying_.size() && varying_[static_cast<size_t>(slot)] != 0;
  }

  void find_lifetimes() {
    std::fill(last_.begin(), last_.end(), kAlways);
    for (const NodePlan& node : plan_.nodes)
      for (int slot : plan_.dead_after(node))
        last_[static_cast<size_t>(slot)] = static_cast<int>(node.index);
    for (const ValueRef& ref : plan_.outputs)
      if (ref.constant == nullptr && ref.depth == 0 && ref.slot >= 0)
        is_output_[static_cast<size_t>(ref.slot)] = 1;
  }

  void take_input(int slot) {
    SlotPlan& target = slot_plan(slot);
    const TraceSlot& seen = traced(slot);
    target.where = SlotPlan::Where::kCaller;
    if (seen.from != TraceSlot::From::kTensor) return;
    target.tensor = true;
    target.dtype = seen.dtype;
    target.dims = seen.dims;
    target.bytes = seen.bytes;
    Group group;
    group.where = Group::Where::kInput;
    group.bytes = seen.bytes;
    group.last = kAlways;
    group.input = slot;
    new_group(std::move(group), slot);
  }

  void new_group(Group group, int slot) {
    group_of_[static_cast<size_t>(slot)] = static_cast<int>(groups_.size());
    offset_[static_cast<size_t>(slot)] = 0;
    group.members.emplace_back(slot, 0);
    groups_.push_back(std::move(group));
  }

  void add_to(int group, int slot, size_t offset) {
    group_of_[static_cast<size_t>(slot)] = group;
    offset_[static_cast<size_t>(slot)] = offset;
    Group& target = groups_[static_cast<size_t>(group)];
    target.members.emplace_back(slot, offset);
    target.last = std::max(target.last, last_[static_cast<size_t>(slot)]);
    if (is_output_[static_cast<size_t>(slot)] != 0 && target.where == Group::Where::kArena)
      target.where = Group::Where::kOutput;
  }

  /// Puts all of `from` into `into`, `offset` bytes from its start.
  void merge(int from, int into, size_t offset) {
    Group moved = std::move(groups_[static_cast<size_t>(from)]);
    groups_[static_cast<size_t>(from)].members.clear();
    for (const auto& [slot, at] : moved.members) add_to(into, slot, offset + at);
    Group& target = groups_[static_cast<size_t>(into)];
    target.first = std::min(target.first, moved.first);
    target.joined = true;
  }

  /// Whether every tensor that the node reads has the traced shape in every run that follows the
  /// plan.
  bool inputs_hold(const NodePlan& node) {
    for (const ValueRef& ref : plan_.inputs_of(node)) {
      if (ref.constant != nullptr || ref.slot < 0 || ref.depth > 0) continue;
      if (!slot_plan(ref.slot).tensor && traced(ref.slot).from != TraceSlot::From::kNothing)
        return false;
    }
    return true;
  }

  bool outputs_fixed(const NodePlan& node) {
    if (node.function != nullptr || node.slice != nullptr || node.subgraphs || node.bound ||
        !is_deterministic(*node.node))
      return false;
    if (!is_shape_query(*node.node))
      for (const ValueRef& ref : plan_.inputs_of(node)) {
        if (ref.constant != nullptr || (ref.slot < 0 && ref.depth == 0)) continue;
        if (ref.depth > 0 || slot_plan(ref.slot).where != SlotPlan::Where::kFixed) return false;
      }
    for (int slot : plan_.outputs_of(node))
      if (slot >= 0 && (traced(slot).value.dtype() == DType::kUndefined || varies(slot) ||
                        is_output_[static_cast<size_t>(slot)] != 0))
        return false;
    return true;
  }

  void fix(int slot) {
    SlotPlan& target = slot_plan(slot);
    const TraceSlot& seen = traced(slot);
    target.where = SlotPlan::Where::kFixed;
    target.tensor = true;
    target.dtype = seen.dtype;
    target.dims = seen.dims;
    target.bytes = seen.bytes;
    target.value = seen.value;
  }

  /// Takes the node, and some behind it where they run as one: how many in all.
  size_t take(const NodePlan& node) {
    const PreparedPtr& prepared = trace_.nodes[node.index];
    const bool steady = inputs_hold(node);
    if (steady && outputs_fixed(node)) {
      for (int slot : plan_.outputs_of(node))
        if (slot >= 0) fix(slot);
      ++result_->fixed_nodes;
      return 1;
    }
    const bool fast = steady && prepared != nullptr && prepared->row != nullptr &&
                      !varies(plan_.slot_count + static_cast<int>(node.index));
    if (fast && prepared->row->joined != nullptr)
      if (const size_t taken = run_as_one(node); taken > 1) return taken;
    StepPlan step;
    step.node = node.index;
    if (fast) {
      step.prepared = prepared;
      add_scratch(prepared->state.get(), node.index, step);
    }
    if (!fast) hand_out(node);
    bool all_views = true;
    bool first = true;
    for (int slot : plan_.outputs_of(node)) {
      if (slot >= 0) all_views &= place_output({&node, 1}, fast, slot, first);
      first = false;
    }
    if (fast && prepared->row->view_only && all_views && views_follow(node)) return 1;
    step.by_values = fast && prepared->by_values && !values_hold(node, *prepared);
    if (fast && prepared->state != nullptr && prepared->state->joins_inputs) join(node);
    result_->steps.push_back(step);
    return 1;
  }

  void add_scratch(const KernelState* state, uint32_t node, StepPlan& step) {
    if (state == nullptr || state->scratch_bytes == 0) return;
    step.scratch = scratches_.size();
    scratches_.push_back({state->scratch_bytes, static_cast<int>(node), static_cast<int>(node), 0});
  }

  /// Whether the node alone reads what `before` wrote, as its input 0, and whether all else that it
  /// reads was there before the first of the nodes that are to run as one.
  bool follows(const NodePlan& before, const NodePlan& node, const JoinedRow* row) {
    const PreparedPtr& prepared = trace_.nodes[node.index];
    if (prepared == nullptr || prepared->row == nullptr || prepared->row->joined != row ||
        prepared->state == nullptr || prepared->by_values ||
        varies(plan_.slot_count + static_cast<int>(node.index)))
      return false;
    const std::span<const int> made = plan_.outputs_of(before);
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    if (made.size() != 1 || made[0] < 0 || plan_.outputs_of(node).size() != 1 || refs.empty())
      return false;
    const auto is_made = [&](const ValueRef& ref) {
      return ref.constant == nullptr && ref.depth == 0 && ref.slot == made[0];
    };
    if (!is_made(refs[0]) || last_[static_cast<size_t>(made[0])] != static_cast<int>(node.index))
      return false;
    for (const int slot : {made[0], plan_.outputs_of(node)[0]})
      if (slot < 0 || traced(slot).from != TraceSlot::From::kTensor || traced(slot).free ||
          traced(slot).bytes == 0 || varies(slot))
        return false;
    for (const ValueRef& ref : refs.subspan(1)) {
      if (ref.constant != nullptr || (ref.slot < 0 && ref.depth == 0)) continue;
      if (ref.depth > 0 || is_made(ref) || !slot_plan(ref.slot).tensor) return false;
    }
    return true;
  }

  /// The node and some behind it as one step, if they gain by it: how many; else 0.
  size_t run_as_one(const NodePlan& first) {
    const PreparedPtr& prepared = trace_.nodes[first.index];
    if (prepared->state == nullptr || prepared->by_values) return 0;
    const JoinedRow* const row = prepared->row->joined;
    size_t count = 1;
    while (first.index + count < plan_.nodes.size() &&
           follows(plan_.nodes[first.index + count - 1], plan_.nodes[first.index + count], row))
      ++count;
    if (count < 2) return 0;
    const std::span<const NodePlan> nodes = std::span(plan_.nodes).subspan(first.index, count);
    std::vector<JoinedNode> parts;
    for (const NodePlan& node : nodes) {
      const std::span<const ValueRef> refs = plan_.inputs_of(node);
      JoinedNode part{trace_.nodes[node.index]->state.get(), refs.size(), 0};
      for (size_t i = 0; i < std::min<size_t>(refs.size(), 32); ++i)
        if (refs[i].constant != nullptr || refs[i].depth > 0 || refs[i].slot >= 0)
          part.present |= 1u << i;
      parts.push_back(part);
    }
    auto joined = std::make_shared<JoinedStep>();
    joined->row = row;
    size_t taken = 0;
    joined->state = row->prepare(parts, options_, taken);
    if (joined->state == nullptr) return 0;
    take_as_one(nodes.first(taken), std::move(joined));
    return taken;
  }

  /// Places them in memory as one node that reads what all of them read.
  void take_as_one(std::span<const NodePlan> nodes, std::shared_ptr<JoinedStep> joined) {
    const NodePlan& last = nodes.back();
    const auto begin = static_cast<int>(nodes.front().index), end = static_cast<int>(last.index);
    StepPlan step;
    step.node = last.index;
    add_scratch(joined->state.get(), last.index, step);
    for (const NodePlan& node : nodes) {
      joined->nodes.push_back(trace_.nodes[node.index]);
      // What any of them reads is there until all are done.
      for (const ValueRef& ref : plan_.inputs_of(node)) {
        if (ref.constant != nullptr || ref.slot < 0 || ref.depth > 0) continue;
        const int group = group_of_[static_cast<size_t>(ref.slot)];
        if (group < 0) continue;
        int& until = groups_[static_cast<size_t>(group)].last;
        if (until >= begin) until = std::max(until, end);
      }
      if (&node == &last) break;
      const int between = plan_.outputs_of(node)[0];
      SlotPlan& target = slot_plan(between);
      target.where = SlotPlan::Where::kNone;
      target.dtype = traced(between).dtype;
      target.dims = traced(between).dims;
    }
    step.joined = std::move(joined);
    place_output(nodes, true, plan_.outputs_of(last)[0], true);
    result_->steps.push_back(std::move(step));
  }

  /// A subgraph may reach for anything that was there before it.
  void hand_out(const NodePlan& node) {
    if (node.subgraphs) {
      for (Group& group : groups_) group.handed_out = true;
      return;
    }
    for (const ValueRef& ref : plan_.inputs_of(node)) {
      if (ref.constant != nullptr || ref.slot < 0 || ref.depth > 0) continue;
      const int index = group_of_[static_cast<size_t>(ref.slot)];
      if (index >= 0) groups_[static_cast<size_t>(index)].handed_out = true;
    }
  }

  /// Whether the inputs of a node that only makes views cannot change what it makes.
  bool views_follow(const NodePlan& node) {
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    for (size_t i = 1; i < refs.size(); ++i) {
      if (refs[i].constant != nullptr || (refs[i].slot < 0 && refs[i].depth == 0)) continue;
      if (refs[i].depth > 0 || slot_plan(refs[i].slot).where != SlotPlan::Where::kFixed)
        return false;
    }
    return true;
  }

  /// Whether the values that the kernel was chosen by are the same in all runs that follow the
  /// plan.
  bool values_hold(const NodePlan& node, const Prepared& prepared) {
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    for (size_t i = 0; i < refs.size(); ++i) {
      if (prepared.inputs[i].value.dtype() == DType::kUndefined) continue;
      if (refs[i].depth > 0) return false;
      const SlotPlan::Where where = slot_plan(refs[i].slot).where;
      // Those of inputs are part of the signature.
      if (where != SlotPlan::Where::kFixed && where != SlotPlan::Where::kCaller) return false;
    }
    return true;
  }

  /// An output of the last of `nodes`, which run as one. True for a view of something that the plan
  /// knows where to find.
  bool place_output(std::span<const NodePlan> nodes, bool fast, int slot, bool first) {
    const TraceSlot& seen = traced(slot);
    SlotPlan& target = slot_plan(slot);
    const bool tensor = seen.from >= TraceSlot::From::kTensor && !varies(slot);
    target.tensor = tensor;
    target.dtype = seen.dtype;
    target.dims = seen.dims;
    target.bytes = seen.bytes;
    if (!tensor || !fast) return false;
    if (seen.from == TraceSlot::From::kConstantView) {
      if (is_output_[static_cast<size_t>(slot)] != 0) return false;
      target.where = SlotPlan::Where::kFixed;
      target.value = seen.value;
      return true;
    }
    if (seen.from == TraceSlot::From::kSlotView) {
      const int group = group_of_[static_cast<size_t>(seen.base)];
      if (slot_plan(seen.base).where == SlotPlan::Where::kFixed) {
        target.where = SlotPlan::Where::kFree;
        return false;
      }
      if (group < 0) return false;
      add_to(group, slot, offset_[static_cast<size_t>(seen.base)] + seen.offset);
      return true;
    }
    if (seen.bytes == 0 || seen.free) return false;
    if (first && place_in_input(nodes, slot)) return false;
    Group group;
    group.where =
        is_output_[static_cast<size_t>(slot)] != 0 ? Group::Where::kOutput : Group::Where::kArena;
    group.bytes = seen.bytes;
    group.first = static_cast<int>(nodes.front().index);
    group.last = std::max(last_[static_cast<size_t>(slot)], static_cast<int>(nodes.back().index));
    new_group(std::move(group), slot);
    return false;
  }

  /// Output 0 where an input lies that dies here, when the kernel allows it.
  bool place_in_input(std::span<const NodePlan> nodes, int slot) {
    const NodePlan& node = nodes.back();
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    const uint32_t allowed = trace_.nodes[node.index]->row->in_place;
    for (size_t i = 0; i < refs.size() && i < 32; ++i) {
      if ((allowed >> i & 1) == 0 || refs[i].constant != nullptr || refs[i].depth > 0 ||
          refs[i].slot < 0)
        continue;
      const int input = refs[i].slot;
      const int index = group_of_[static_cast<size_t>(input)];
      if (index < 0) continue;
      Group& group = groups_[static_cast<size_t>(index)];
      const bool output =
          group.where == Group::Where::kOutput || is_output_[static_cast<size_t>(slot)] != 0;
      if (group.where == Group::Where::kInput || group.joined || (output && group.handed_out) ||
          group.last != static_cast<int>(node.index) || traced(input).bytes != traced(slot).bytes)
        continue;
      // Another input that is a different part of the same memory would be overwritten; one that is
      // the same part, too, where the kernel reads it elsewhere than it writes.
      bool shared = false;
      for (const NodePlan& before : nodes.first(nodes.size() - 1))
        for (const ValueRef& other : plan_.inputs_of(before))
          shared = shared || (other.constant == nullptr && other.depth == 0 && other.slot >= 0 &&
                              group_of_[static_cast<size_t>(other.slot)] == index);
      for (size_t k = 0; k < refs.size(); ++k) {
        const ValueRef& other = refs[k];
        if (k == i || other.constant != nullptr || other.depth > 0 || other.slot < 0 ||
            group_of_[static_cast<size_t>(other.slot)] != index)
          continue;
        shared = shared || k >= 32 || (allowed >> k & 1) == 0 ||
                 offset_[static_cast<size_t>(other.slot)] != offset_[static_cast<size_t>(input)] ||
                 !(traced(other.slot).dims == traced(input).dims);
      }
      if (shared) continue;
      add_to(index, slot, offset_[static_cast<size_t>(input)]);
      return true;
    }
    return false;
  }

  /// Lets the producers of a Concat's inputs write into its output.
  void join(const NodePlan& node) {
    const int output = plan_.outputs_of(node)[0];
    if (output < 0) return;
    const int into = group_of_[static_cast<size_t>(output)];
    if (into < 0) return;
    const std::span<const ValueRef> refs = plan_.inputs_of(node);
    size_t at = offset_[static_cast<size_t>(output)];
    for (size_t i = 0; i < refs.size(); ++i) {
      const ValueRef& ref = refs[i];
      if (ref.constant != nullptr) {
        at += ref.constant->is_tensor() ? ref.constant->tensor().bytes().size() : 0;
        continue;
      }
      if (ref.depth > 0) return;  // its size is not at hand: what follows is copied
      if (ref.slot < 0) continue;
      const size_t bytes = traced(ref.slot).bytes;
      const int from = group_of_[static_cast<size_t>(ref.slot)];
      const bool once =
          std::count_if(refs.begin(), refs.end(), [&](const ValueRef& other) {
            return other.constant == nullptr && other.depth == 0 && other.slot == ref.slot;
          }) == 1;
      if (from >= 0 && from != into && once) {
        const Group& group = groups_[static_cast<size_t>(from)];
        if (group.where == Group::Where::kArena && group.bytes == bytes &&
            offset_[static_cast<size_t>(ref.slot)] == 0)
          merge(from, into, at);
      }
      at += bytes;
    }
  }

  void place_groups() {
    std::vector<ArenaBlock> blocks;
    std::vector<int> block_of(groups_.size(), -1);
    for (size_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      if (group.members.empty() || group.where != Group::Where::kArena) continue;
      block_of[i] = static_cast<int>(blocks.size());
      blocks.push_back({group.bytes, group.first, group.last, 0});
    }
    const size_t first_scratch = blocks.size();
    blocks.insert(blocks.end(), scratches_.begin(), scratches_.end());
    result_->arena_bytes = place_blocks(blocks);
    for (StepPlan& step : result_->steps)
      if (step.scratch != SIZE_MAX) step.scratch = blocks[first_scratch + step.scratch].offset;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      if (group.members.empty()) continue;
      if (group.where == Group::Where::kArena) {
        for (const auto& [slot, offset] : group.members) {
          slot_plan(slot).where = SlotPlan::Where::kArena;
          slot_plan(slot).offset = blocks[static_cast<size_t>(block_of[i])].offset + offset;
        }
        continue;
      }
      Specialisation::Root root;
      root.input = group.where == Group::Where::kInput;
      root.bytes = group.bytes;
      root.slot = root.input ? group.input : group.members[0].first;
      for (const auto& [slot, offset] : group.members) {
        if (slot == group.input) continue;
        SlotPlan& target = slot_plan(slot);
        target.where = SlotPlan::Where::kRoot;
        target.root = static_cast<uint32_t>(result_->roots.size());
        target.offset = offset;
        root.members.push_back(slot);
      }
      if (root.members.empty()) continue;
      if (!root.input && root.members.size() == 1) slot_plan(root.slot).plain_output = true;
      result_->roots.push_back(std::move(root));
    }
  }

  void list_dead(const NodePlan& node) {
    while (step_ < result_->steps.size() && result_->steps[step_].node < node.index) ++step_;
    if (step_ == result_->steps.size()) {
      for (int slot : plan_.dead_after(node))
        if (slot_plan(slot).where == SlotPlan::Where::kFree) result_->left.push_back(slot);
      return;
    }
    StepPlan& step = result_->steps[step_];
    // What dies at a node that was left out dies at the next step.
    if (step.dead_count == 0) step.dead_begin = static_cast<uint32_t>(result_->dead.size());
    for (int slot : plan_.dead_after(node))
      if (slot_plan(slot).where == SlotPlan::Where::kFree) {
        result_->dead.push_back(slot);
        ++step.dead_count;
      }
  }

  const GraphPlan& plan_;
  const Trace& trace_;
  const std::vector<uint8_t>& varying_;
  const KernelOptions& options_;
  SpecialisationPtr result_;
  std::vector<Group> groups_;
  std::vector<ArenaBlock> scratches_;
  std::vector<int> group_of_;
  std::vector<size_t> offset_;
  std::vector<int> last_;
  std::vector<uint8_t> is_output_;
  size_t step_ = 0;
};

}  // namespace

void Signature::add(const RunValue* value) {
  if (value == nullptr || !value->is_tensor()) {
    words.push_back(value == nullptr ? -1 : -2 - static_cast<int64_t>(value->kind()));
    return;
  }
  const Tensor& tensor = value->tensor();
  words.push_back(static_cast<int64_t>(tensor.dtype()) << 32 | static_cast<int64_t>(tensor.rank()));
  for (int64_t dim : tensor.dims()) words.push_back(dim);
}

void Signature::add_value(const RunValue* value) {
  if (value == nullptr || !value->is_tensor()) return;
  const Tensor& tensor = value->tensor();
  if (!is_chosen_value(1, 0, tensor)) return;
  const size_t bytes = tensor.bytes().size(), first = words.size();
  words.resize(first + (bytes + sizeof(int64_t) - 1) / sizeof(int64_t));
  if (bytes != 0) std::memcpy(words.data() + first, tensor.data<std::byte>(), bytes);
}

void Signature::finish() {
  hash = 0x9E3779B97F4A7C15u;
  for (int64_t word : words) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0xBF58476D1CE4E5B9u;
    hash ^= hash >> 29;
  }
}

Specialisation::~Specialisation() = default;

std::shared_ptr<const void> KeptTables::get(size_t node) {
  std::lock_guard lock(mutex_);
  return node < made_.size() ? made_[node] : nullptr;
}

void KeptTables::set(size_t node, std::shared_ptr<const void> made) {
  std::lock_guard lock(mutex_);
  if (node >= made_.size()) made_.resize(node + 1);
  made_[node] = std::move(made);
}

Result<Tensor> ArenaPool::take(size_t bytes, const std::byte* preferred) {
  Tensor small;  // goes before a larger one is made
  {
    std::lock_guard lock(mutex_);
    auto best = free_.end(), largest = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->bytes().size() >= bytes) {
        if (at->data<std::byte>() == preferred) {
          best = at;
          break;
        }
        if (best == free_.end() || at->bytes().size() < best->bytes().size()) best = at;
      }
      if (largest == free_.end() || at->bytes().size() > largest->bytes().size()) largest = at;
    }
    if (best == free_.end()) best = largest;
    if (best != free_.end()) {
      Tensor found = std::move(*best);
      *best = std::move(free_.back());
      free_.pop_back();
      if (found.bytes().size() >= bytes) return found;
      small = std::move(found);
    }
  }
  small = Tensor();
  const int64_t dims[] = {static_cast<int64_t>(bytes)};
  return Tensor::allocate(DType::kUInt8, dims, true);
}

void ArenaPool::give(Tensor block) {
  if (block.bytes().empty()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

SpecialisationPtr specialise(const GraphPlan& plan, const Trace& trace,
                             const std::vector<uint8_t>& varying, const KernelOptions& options) {
  return Builder(plan, trace, varying, options).run();
}

SpecialisationPtr SpecialisationCache::find(const Signature& signature) {
  std::lock_guard lock(mutex_);
  for (auto at = list_.begin(); at != list_.end(); ++at)
    if ((*at)->signature == signature) {
      if (at != list_.begin()) list_.splice(list_.begin(), list_, at);
      return list_.front();
    }
  return nullptr;
}

bool SpecialisationCache::worth_tracing(const Signature& signature) {
  constexpr int kAtOnce = 4;
  constexpr size_t kSeen = 256;
  std::lock_guard lock(mutex_);
  const bool again = std::find(seen_.begin(), seen_.end(), signature.hash) != seen_.end();
  if (!again) {
    if (seen_.size() >= kSeen) seen_.erase(seen_.begin(), seen_.begin() + kSeen / 2);
    seen_.push_back(signature.hash);
  }
  return traced_++ < kAtOnce || again;
}

bool SpecialisationCache::insert(const GraphPlan& plan, Signature signature, const Trace& trace,
                                 const KernelOptions& options) {
  std::vector<uint8_t> varying;
  {
    std::lock_guard lock(mutex_);
    varying = varying_;
  }
  SpecialisationPtr made = specialise(plan, trace, varying, options);
  made->signature = std::move(signature);
  std::lock_guard lock(mutex_);
  for (const SpecialisationPtr& known : list_)
    if (known->signature == made->signature) return false;  // another thread was faster
  kept_bytes_ += made->kept_bytes;
  list_.push_front(std::move(made));
  while (list_.size() > kKeepMost || (list_.size() > kKeepAlways && kept_bytes_ > kKeepBytes)) {
    kept_bytes_ -= list_.back()->kept_bytes;
    list_.pop_back();
  }
  return list_.size() == 1;
}

void SpecialisationCache::note_varying(const GraphPlan& plan, const SpecialisationPtr& wrong,
                                       const std::vector<int>& list) {
  std::lock_guard lock(mutex_);
  varying_.resize(static_cast<size_t>(plan.slot_count) + plan.nodes.size());
  for (int at : list) varying_[static_cast<size_t>(at)] = 1;
  if (list_.remove(wrong) > 0) kept_bytes_ -= wrong->kept_bytes;
}

size_t SpecialisationCache::size() {
  std::lock_guard lock(mutex_);
  return list_.size();
}

}  // namespace tombolo
