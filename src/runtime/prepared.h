#pragma once

// Choosing the kernel of a node for inputs of certain types and shapes, and remembering the choice.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ir/run_value.h"
#include "runtime/kernels/kernel.h"
#include "runtime/plan.h"

namespace tombolo {

/// A node made ready for inputs of these types and shapes.
struct Prepared {
  struct Input {
    DType dtype = DType::kUndefined;  ///< kUndefined: absent
    Dims dims;
    Tensor value;  ///< where that is part of the choice; else of no type
  };
  std::vector<Input> inputs;
  bool by_values = false;          ///< an input has one
  const KernelRow* row = nullptr;  ///< null: the reference kernel
  std::shared_ptr<const KernelState> state;
  /// Constants that lie unaligned in the model's file and that the kernel wants aligned, by input.
  std::vector<std::pair<size_t, RunValue>> aligned;

  bool fits(std::span<const RunValue* const> values) const;
  /// Whether `other` is for the same but for the length of the first axis of input 0.
  bool same_but_rows(const Prepared& other) const;
  /// Whether the values that are part of the choice are those of inputs of the same shapes.
  bool values_fit(const Tensor* const* given) const;
};
using PreparedPtr = std::shared_ptr<const Prepared>;

/// What a session lends to the choice of kernels.
struct KernelSetting {
  KernelOptions options;
  PackStore& packs;
};

/// The choices made so far for the nodes of one graph, a few shapes a node. Safe to share.
class PreparedCache {
 public:
  explicit PreparedCache(size_t nodes) : nodes_(nodes) {}
  /// Null when the reference kernel is all there is for these values (they may be no tensors).
  Result<PreparedPtr> get(const GraphPlan& plan, const NodePlan& node,
                          std::span<const RunValue* const> values, const KernelSetting& setting);

 private:
  /// What was prepared for the node and kernel of `prepared` with another number of rows.
  std::shared_ptr<const KernelState> of_other_rows(size_t node, const Prepared& prepared);

  static constexpr size_t kKeep = 8;  ///< shapes a node
  std::mutex mutex_;
  std::vector<std::vector<PreparedPtr>> nodes_;  ///< most recently used first
};

}  // namespace tombolo
