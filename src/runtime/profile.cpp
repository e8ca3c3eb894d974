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

ProfileScope::ProfileScope(Profile& profile, const Frame& frame, const NodePlan& node,
                           const char* kernel)
    : profile_(profile), frame_(frame), node_(node) {
  event_.node = node.node;
  event_.kernel = kernel;
  event_.depth = profile.depth++;
  for (const ValueRef& ref : frame.plan->inputs_of(node))
    add(frame.resolve(ref), profile.shapes, event_.inputs, event_.read_bytes);
  event_.begin_ns = now_ns();
}

ProfileScope::~ProfileScope() { --profile_.depth; }

void ProfileScope::finish(bool main) {
  event_.end_ns = now_ns();
  event_.live_bytes = live_tensor_bytes();
  const std::span<const int> slots = frame_.plan->outputs_of(node_);
  if (profile_.shapes) {
    std::vector<const RunValue*> inputs, outputs;
    for (const ValueRef& ref : frame_.plan->inputs_of(node_)) inputs.push_back(frame_.resolve(ref));
    for (int slot : slots)
      outputs.push_back(slot >= 0 ? &frame_.slots[static_cast<size_t>(slot)] : nullptr);
    event_.operations = operation_count(*node_.node, inputs, outputs);
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    const RunValue& value = frame_.slots[static_cast<size_t>(slots[i])];
    add(&value, profile_.shapes, event_.outputs, event_.written_bytes);
    if (main && event_.depth == 0 && profile_.observe != nullptr)
      profile_.observe(profile_.user, *node_.node, i, value);
  }
  profile_.events.push_back(std::move(event_));
}

}  // namespace tombolo
