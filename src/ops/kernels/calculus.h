#pragma once

// The tape of Gradient: operators that were run, in order, with what they read and gave. Running an
// operator through it computes at once and notes the call if it depends on a value of interest.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// A value on the tape.
struct Var {
  int id = -1;
  Tensor value;

  const Dims& dims() const { return value.dims(); }
  size_t rank() const { return value.rank(); }
  int64_t dim(size_t axis) const { return value.dim(axis); }
  int64_t size() const { return value.size(); }
  DType dtype() const { return value.dtype(); }
};
inline bool absent(const Var& var) { return var.id < 0; }

/// Calls operators of the newest set by name. The first failure sticks: later calls do nothing and
/// give absent values, and status() tells.
class Tape {
 public:
  struct Entry {
    const Node* node;
    int opset;
    const AttributeBinding* binding;
    std::vector<int> inputs, outputs;  ///< -1 where absent
  };

  explicit Tape(KernelContext& context);

  // Values.
  int add(RunValue value, bool active);
  Var constant(Tensor tensor) {
    const int id = add(RunValue(tensor), false);
    return {id, std::move(tensor)};
  }
  Var constant(std::span<const int64_t> values) { return constant(Tensor::int64s(values)); }
  const RunValue& value(int id) const { return values_[static_cast<size_t>(id)]; }
  /// The value as a tensor; absent when there is none or it is something else.
  Var var(int id) const;
  /// Whether it depends on a value of interest.
  bool active(int id) const { return id >= 0 && active_[static_cast<size_t>(id)]; }
  void set_active(int id) { active_[static_cast<size_t>(id)] = true; }

  // Calls.
  using Configure = void (*)(Node& node, const void* argument);
  std::vector<Var> call_all(const char* op, std::span<const Var> inputs, size_t outputs,
                            Configure configure, const void* argument);
  Var call(const char* op, std::initializer_list<Var> inputs, Configure configure = nullptr,
           const void* argument = nullptr);
  /// With integer attributes: call("Gather", {x, i}, {{"axis", 1}}).
  Var call(const char* op, std::initializer_list<Var> inputs,
           std::initializer_list<std::pair<const char*, int64_t>> attributes);
  /// Runs a node and notes it; ids of its outputs.
  Result<std::vector<int>> run(const Node& node, int opset, const AttributeBinding* binding,
                               std::span<const int> inputs);
  /// Runs a node on other values, without a note.
  Result<std::vector<RunValue>> run_aside(const Node& node, int opset,
                                          const AttributeBinding* binding,
                                          std::span<const RunValue> inputs, size_t outputs);
  /// What a kernel of this node would see, to read attributes by its functions.
  KernelContext context_of(const Node& node, int opset, const AttributeBinding* binding) const;

  Var add(const Var& a, const Var& b) { return call("Add", {a, b}); }
  Var sub(const Var& a, const Var& b) { return call("Sub", {a, b}); }
  Var mul(const Var& a, const Var& b) { return call("Mul", {a, b}); }
  Var div(const Var& a, const Var& b) { return call("Div", {a, b}); }
  Var neg(const Var& a) { return call("Neg", {a}); }
  /// A scalar of `like`'s type.
  Var scalar(const Var& like, double value);
  /// A constant of `like`'s type, all of one value.
  Var filled(const Var& like, std::span<const int64_t> dims, double value);
  Var filled(const Var& like, double value) { return filled(like, like.dims(), value); }
  /// Sums over the axes that broadcasting to x's shape had repeated.
  Var reduce_to(const Var& x, std::span<const int64_t> dims);
  Var reshape(const Var& x, std::span<const int64_t> dims);
  Var expand(const Var& x, std::span<const int64_t> dims);
  Var transpose(const Var& x, const std::vector<int64_t>& order);
  Var swap_last(const Var& x);  ///< the last two axes exchanged
  Var to_type(const Var& x, DType dtype);
  /// The sum of `flat` (rank 1) into `count` places: element i goes to places[i]; a place beyond
  /// the last is dropped.
  Var scatter_sum(const Var& flat, const Tensor& places, int64_t count);

  std::vector<Entry>& entries() { return entries_; }
  bool recording = true;  ///< false: calls are computed and not noted

  const Status& status() const { return status_; }
  void fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }
  const KernelContext& context() const { return context_; }

 private:
  KernelContext& context_;
  Graph scratch_;
  std::vector<Entry> entries_;
  std::vector<RunValue> values_;
  std::vector<bool> active_;
  Status status_ = ok();
};

}  // namespace tombolo::ops
