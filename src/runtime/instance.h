#pragma once

// An instance of a specialisation: arena, slots and kernel calls with all pointers in place, for
// one run at a time. What is left to do for a node is to call its kernel.

#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "runtime/kernels/kernel.h"
#include "runtime/specialise.h"

namespace tombolo {

struct Instance final : Frame {
  /// The call of one step's kernel.
  struct Call final : KernelRun {
    Instance* instance = nullptr;
    std::span<const NodePlan> nodes;      ///< one, or several that run as one
    const char* kernel = "";              ///< its name
    Status (*run)(KernelRun&) = nullptr;  ///< null: run as in a run without specialisation
    const Prepared* chosen = nullptr;     ///< by values that may be others in this run; else null
    uint32_t dead_begin = 0, dead_count = 0;

    const NodePlan& last() const { return nodes.back(); }
    void set_scratch(std::byte* scratch) { scratch_ = scratch; }
    bool values_fit() const { return chosen->values_fit(inputs_); }
    void bind(const Tensor* const* inputs, uint32_t input_count, Tensor* const* outputs,
              const bool* wanted, uint32_t output_count, std::byte* scratch,
              const KernelState* state, const KernelOptions* options);
    Result<Tensor*> new_output(size_t index, DType dtype, std::span<const int64_t> dims) override;
    Status new_view(size_t index, size_t input, size_t offset, DType dtype,
                    std::span<const int64_t> dims) override;
  };

  static Result<std::unique_ptr<Instance>> create(const GraphPlan& plan,
                                                  SpecialisationPtr specialisation,
                                                  const KernelOptions& options);
  /// Takes the arena for a run, and gives it back.
  Status take_arena();
  void give_arena();
  /// Points what the plan leaves to the run: values around, inputs, outputs.
  Status enter(Frame* parent, std::vector<RunValue> inputs, const AttributeBinding* binding,
               std::span<const Tensor> bound);
  /// Lets go of the caller's tensors.
  void leave();
  /// The slots of `call` that came out otherwise than planned.
  void compare(const NodePlan& node);

  SpecialisationPtr owner;  ///< while in use
  const Specialisation* specialisation = nullptr;
  Tensor arena;
  std::byte* base = nullptr;  ///< where the arena was when slots were last made
  std::vector<Call> calls;
  std::vector<const Tensor*> input_pointers;
  std::vector<Tensor*> output_pointers;
  std::unique_ptr<bool[]> wanted;
  std::vector<std::unique_ptr<Tensor>> unwanted;  ///< outputs that a kernel made for nobody
  struct Outer {
    size_t pointer;  ///< into input_pointers
    ValueRef ref;
  };
  std::vector<Outer> outer;
  Executor* executor = nullptr;  ///< of the run that is going on
  std::vector<int> varying;      ///< what came out otherwise in this run, as note_varying() has it
  bool deviated = false;

 private:
  /// Points every slot of the plan to its place.
  void place();
};

}  // namespace tombolo
