#pragma once

// A node of Resize whose inputs, but for the image, are constant.

#include <algorithm>
#include <optional>
#include <vector>

#include "ops/kernels/resize.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/no_host.h"

namespace tombolo {

class ResizeQuery {
 public:
  explicit ResizeQuery(const KernelQuery& q)
      : values_(q.inputs.size()),
        inputs_(q.inputs.size(), nullptr),
        dims_(q.dims(0)),
        context_{q.node, q.opset, inputs_, {}, q.attributes, host_, nullptr} {
    for (size_t i = 1; i < q.inputs.size(); ++i) {
      if (!q.has_input(i)) continue;
      if (q.constant(i) == nullptr) return;
      values_[i] = RunValue(*q.constant(i));
      inputs_[i] = &values_[i];
    }
    auto plan = ops::plan_resize(context_, dims_);
    // Of scales that lie, an axis may be as long as any number: no tables before there is a result.
    constexpr int64_t kLongest = int64_t{1} << 24;
    if (plan && std::all_of(plan->axes.begin(), plan->axes.end(),
                            [](const ops::ResizeAxis& axis) { return axis.length <= kLongest; }))
      plan_ = *std::move(plan);
  }
  ResizeQuery(const ResizeQuery&) = delete;
  ResizeQuery& operator=(const ResizeQuery&) = delete;

  /// Nothing where it is for the reference kernel, or for the message that this one has.
  const std::optional<ops::ResizePlan>& plan() const { return plan_; }
  Result<std::vector<ops::ResizeTaps>> taps(size_t axis) const {
    return ops::resize_taps(context_, plan_->options, plan_->axes[axis], dims_[axis]);
  }

 private:
  std::vector<RunValue> values_;
  std::vector<const RunValue*> inputs_;
  Dims dims_;
  NoHost host_;
  KernelContext context_;
  std::optional<ops::ResizePlan> plan_;
};

}  // namespace tombolo
