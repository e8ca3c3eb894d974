#pragma once

// Derivatives of operators, for Gradient: each rule says the gradients of a node's inputs in other
// operators, which the reference kernels compute.

#include <string_view>
#include <vector>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Calls operators of the newest set by name. The first failure sticks: later calls do nothing and
/// give undefined tensors, and status() tells.
class Calculus {
 public:
  explicit Calculus(KernelContext& context);

  using Configure = void (*)(Node& node, const void* argument);
  Tensor call(const char* op, std::initializer_list<Tensor> inputs, Configure configure = nullptr,
              const void* argument = nullptr);
  /// Runs one node of the model at `opset`; outputs in order.
  Result<std::vector<RunValue>> run(const Node& node, int opset,
                                    const std::vector<RunValue>& inputs);

  Tensor add(const Tensor& a, const Tensor& b) { return call("Add", {a, b}); }
  Tensor sub(const Tensor& a, const Tensor& b) { return call("Sub", {a, b}); }
  Tensor mul(const Tensor& a, const Tensor& b) { return call("Mul", {a, b}); }
  Tensor div(const Tensor& a, const Tensor& b) { return call("Div", {a, b}); }
  Tensor neg(const Tensor& a) { return call("Neg", {a}); }
  /// A scalar of `like`'s type.
  Tensor scalar(const Tensor& like, double value);
  /// A tensor of `like`'s type and shape, all of one value.
  Tensor filled(const Tensor& like, double value);
  /// Sums over the axes that broadcasting to x's shape had repeated.
  Tensor reduce_to(const Tensor& x, std::span<const int64_t> dims);
  Tensor reshape(const Tensor& x, std::span<const int64_t> dims);
  Tensor expand(const Tensor& x, std::span<const int64_t> dims);
  Tensor swap_last(const Tensor& x);  ///< the last two axes exchanged
  Tensor to_type(const Tensor& x, DType dtype);

  const Status& status() const { return status_; }
  void fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }

 private:
  KernelContext& context_;
  Graph scratch_;
  Status status_ = ok();
};

/// A node whose outputs' gradients are known.
struct Differentiation {
  Calculus& calculus;
  const Node& node;
  std::span<const Tensor> inputs, outputs;  ///< undefined where absent
  std::span<const Tensor> gradients;        ///< of the outputs; undefined where y does not depend
  std::span<Tensor> result;                 ///< of the inputs, to be filled

  const Tensor& x(size_t index) const { return inputs[index]; }
  const Tensor& y() const { return outputs[0]; }
  const Tensor& dy() const { return gradients[0]; }
};

using DerivativeFn = void (*)(Differentiation&);

/// The rule of an operator of ai.onnx; null when it has none. An operator that does not depend
/// smoothly on its inputs (Shape, Greater, Floor) has a rule that says nothing.
DerivativeFn derivative_of(std::string_view op);

}  // namespace tombolo::ops
