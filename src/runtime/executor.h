#pragma once

// Runs plans: node by node (tracing if asked), or along a specialisation.

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "ir/run_value.h"
#include "ops/attributes.h"
#include "runtime/plan.h"
#include "runtime/prepared.h"
#include "runtime/profile.h"
#include "runtime/specialise.h"

namespace tombolo {

/// What one run may take, and who may stop it.
struct RunLimits {
  uint64_t memory = UINT64_MAX;  ///< bytes of tensors alive in the process
  uint64_t time_ms = 0;          ///< 0: none
  const std::atomic<bool>* cancelled = nullptr;
};

/// What all runs of a session share.
struct ExecutorSetting {
  KernelSetting kernels;
  uint64_t seed = 0;
  bool specialise = true;
};

/// The values of one running graph.
struct Frame {
  const GraphPlan* plan = nullptr;
  Frame* parent = nullptr;
  const AttributeBinding* binding = nullptr;
  std::vector<RunValue> slots;
  /// Memory of the run that ends with it: tensors in it have to be copied to live on.
  const std::byte* arena_begin = nullptr;
  const std::byte* arena_end = nullptr;
  bool specialised = false;  ///< an Instance

  const RunValue* resolve(const ValueRef& ref) const;
};

struct Instance;

class Executor {
 public:
  Executor(const ModelPlan& plan, const ExecutorSetting& setting, const RunLimits& limits,
           Profile* profile = nullptr);
  ~Executor();

  /// Runs a graph. `inputs` in order; what is missing takes its default. `bound`, when given, are
  /// tensors for the outputs to be written to, where type and shape agree.
  Result<std::vector<RunValue>> graph(const GraphPlan& plan, Frame* parent,
                                      std::vector<RunValue> inputs, const AttributeBinding* binding,
                                      std::span<const Tensor> bound = {});

 private:
  class Host;
  friend struct Instance;
  using Clock = std::chrono::steady_clock;

  Result<std::vector<RunValue>> node_by_node(Frame& frame, std::vector<RunValue> inputs,
                                             Trace* trace);
  Result<std::vector<RunValue>> along(std::unique_ptr<Instance> instance, Frame* parent,
                                      std::vector<RunValue> inputs, const AttributeBinding* binding,
                                      std::span<const Tensor> bound);
  Status steps(Instance& instance);
  Result<std::vector<RunValue>> outputs_of(Frame& frame);
  Result<std::unique_ptr<Instance>> instance_for(const GraphPlan& plan,
                                                 SpecialisationPtr specialisation);
  void put_back(std::unique_ptr<Instance> instance);
  /// One node; outputs into the frame's slots. `trace` may be null.
  Status node(const NodePlan& plan, Frame& frame, Trace* trace);
  Status fast_node(const NodePlan& plan, Frame& frame, const PreparedPtr& prepared,
                   std::span<const RunValue* const> inputs, Trace* trace);
  Status generic_node(const NodePlan& plan, Frame& frame, std::span<const RunValue* const> inputs,
                      Trace* trace);
  static Status detach_outputs(const NodePlan& plan, Frame& frame);
  Result<std::vector<RunValue>> call(const NodePlan& plan, std::span<const RunValue* const> inputs,
                                     Frame& frame);
  /// A stretch of nodes (NodePlan::slice), for a few images of its batch after the other.
  Result<std::vector<RunValue>> by_images(const NodePlan& plan,
                                          std::span<const RunValue* const> inputs, Frame& frame);
  Status reserve(uint64_t bytes) const;
  Status interrupted() const;
  Status check() const { return watched_ ? interrupted() : ok(); }

  const ModelPlan& plan_;
  const ExecutorSetting& setting_;
  const RunLimits& limits_;
  Profile* profile_;
  const bool watched_;
  Clock::time_point deadline_{};  ///< the epoch: none
  Signature signature_;           ///< made anew for each graph
  /// Instances of subgraphs, kept for the next iteration of the loop around them.
  std::vector<std::unique_ptr<Instance>> held_;
};

/// A copy of `value` if any part of it lies in [begin, end) or belongs to nobody.
Result<RunValue> detached(const RunValue& value, const std::byte* begin, const std::byte* end);

}  // namespace tombolo
