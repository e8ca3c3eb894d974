#pragma once

// Kernels and inference of ai.onnx, for operators of com.microsoft that are one of them under
// another name, in another layout, or between other steps.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ops/infer_context.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The operator set whose meaning is asked for unless said otherwise.
inline constexpr int kOfficialOpset = 25;

/// Runs the node as if it were ai.onnx's `op_type` of that operator set: same inputs, attributes
/// and outputs.
Status run_as(KernelContext& context, const char* op_type, int opset = kOfficialOpset);
/// The same for inference.
Status infer_as(InferContext& context, const char* op_type, int opset = kOfficialOpset);

/// Operators of ai.onnx on tensors at hand. A Tensor of kUndefined is an absent input.
class Official {
 public:
  explicit Official(const KernelContext& context);

  /// A node to set attributes on; lives as long as this object.
  Node& node(const char* op_type, int outputs = 1);
  /// A node with those of the running node's attributes that are named and given.
  Node& node_with(const char* op_type, std::initializer_list<const char*> attributes,
                  int outputs = 1);
  Result<std::vector<RunValue>> run(const Node& node, std::span<const Tensor> inputs,
                                    int opset = kOfficialOpset);
  /// The first output, a tensor.
  Result<Tensor> call(const Node& node, std::initializer_list<Tensor> inputs,
                      int opset = kOfficialOpset);
  /// Without attributes.
  Result<Tensor> call(const char* op_type, std::initializer_list<Tensor> inputs,
                      int opset = kOfficialOpset) {
    return call(node(op_type), inputs, opset);
  }

 private:
  const KernelContext& context_;
  Graph scratch_;
};

/// Axis i of the result is axis perm[i] of `tensor`.
Result<Tensor> transposed(const KernelContext& context, const Tensor& tensor,
                          std::span<const int64_t> perm);
/// [N, spatial..., C] as [N, C, spatial...], and back. Rank 2 at least.
Result<Tensor> channels_first(const KernelContext& context, const Tensor& tensor);
Result<Tensor> channels_last(const KernelContext& context, const Tensor& tensor);
SymShape channels_first(const SymShape& shape);
SymShape channels_last(const SymShape& shape);

/// Input `index`, absent: a Tensor of kUndefined.
Result<Tensor> tensor_or_absent(const KernelContext& context, size_t index);
/// Input `index` that must be there.
Result<Tensor> tensor_at(const KernelContext& context, size_t index);

}  // namespace tombolo::ops
