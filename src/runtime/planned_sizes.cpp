#include "runtime/planned_sizes.h"

#include <algorithm>

namespace tombolo {

namespace {

/// Operators whose output shares its input's buffer.
bool is_view(Text op) {
  for (const char* name : {"Reshape", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Dropout"})
    if (op == name) return true;
  return false;
}

/// Bytes of the value when its shape is all numbers: UINT64_MAX when that overflows, 0 when
/// unknown.
uint64_t bytes_of_value(const InferredShapes& shapes, const Value& value) {
  auto dims = shapes.dims(value);
  if (!dims) return 0;
  for (int64_t& dim : *dims) dim = std::max<int64_t>(dim, 0);
  const int64_t count = element_count(*dims);
  if (count < 0) return UINT64_MAX;
  const DType elem = shapes.type(value)->elem;
  if (elem == DType::kString || elem == DType::kUndefined) return static_cast<uint64_t>(count);
  return packed_bytes(elem, static_cast<uint64_t>(count)).value_or(UINT64_MAX);
}

}  // namespace

Status check_planned_sizes(const InferredShapes& shapes, const GraphPlan& plan, uint64_t limit) {
  std::vector<uint64_t> held(static_cast<size_t>(plan.slot_count));
  uint64_t alive = 0;
  for (const NodePlan& node : plan.nodes) {
    const std::span<const int> slots = plan.outputs_of(node);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] < 0) continue;
      if (is_view(node.node->op_type())) continue;
      const uint64_t bytes = bytes_of_value(shapes, *node.node->output(i));
      if (bytes > limit || alive > limit - bytes)
        return resource_error("output \"" + std::string(node.node->output(i)->name()) +
                              "\" needs " +
                              (bytes == UINT64_MAX ? "more bytes than can be counted"
                                                   : std::to_string(bytes) + " bytes") +
                              ", beside " + std::to_string(alive) +
                              " bytes alive then; the limit is " + std::to_string(limit))
            .at(describe(*node.node))
            .with_help("give smaller inputs, or raise the limit with --memory-limit");
      held[static_cast<size_t>(slots[i])] = bytes;
      alive += bytes;
    }
    for (int slot : plan.dead_after(node)) {
      alive -= held[static_cast<size_t>(slot)];
      held[static_cast<size_t>(slot)] = 0;
    }
  }
  return ok();
}

}  // namespace tombolo
