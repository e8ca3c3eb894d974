#include "runtime/profile.h"

#include <chrono>

#include "runtime/cost.h"
#include "runtime/executor.h"

namespace tombolo {

namespace {

void add(const RunValue* value, bool shapes, std::string& text, uint64_t& bytes) {
  if (value == nullptr || value->is_none()) return;
  if (value->is_tensor()) bytes += value->tensor().bytes().size();
  if (!shapes) return;
  if (!text.empty()) text += ", ";
  text += value->is_tensor() ? to_string(value->tensor()) : "(no tensor)";
}

}  // namespace

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

ProfileScope::ProfileScope(Profile& profile, const Frame& frame, std::span<const NodePlan> nodes,
                           const char* kernel)
    : profile_(profile), frame_(frame), nodes_(nodes) {
  event_.node = nodes.back().node;
  event_.kernel = kernel;
  event_.depth = profile.depth++;
  for (const NodePlan& node : nodes) {
    std::span<const ValueRef> refs = frame.plan->inputs_of(node);
    if (&node != &nodes.front()) refs = refs.subspan(1);  // what the node before it made
    for (const ValueRef& ref : refs)
      add(frame.resolve(ref), profile.shapes, event_.inputs, event_.read_bytes);
  }
  event_.begin_ns = now_ns();
}

ProfileScope::~ProfileScope() { --profile_.depth; }

void ProfileScope::finish(bool main) {
  event_.end_ns = now_ns();
  event_.live_bytes = live_tensor_bytes();
  for (const NodePlan& node : profile_.shapes ? nodes_ : std::span<const NodePlan>()) {
    std::vector<const RunValue*> inputs, outputs;
    for (const ValueRef& ref : frame_.plan->inputs_of(node)) inputs.push_back(frame_.resolve(ref));
    for (int slot : frame_.plan->outputs_of(node))
      outputs.push_back(slot >= 0 ? &frame_.slots[static_cast<size_t>(slot)] : nullptr);
    event_.operations += operation_count(*node.node, inputs, outputs);
  }
  const std::span<const int> slots = frame_.plan->outputs_of(nodes_.back());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    const RunValue& value = frame_.slots[static_cast<size_t>(slots[i])];
    add(&value, profile_.shapes, event_.outputs, event_.written_bytes);
    if (main && event_.depth == 0 && profile_.observe != nullptr)
      profile_.observe(profile_.user, *nodes_.back().node, i, value);
  }
  profile_.events.push_back(std::move(event_));
}

}  // namespace tombolo
