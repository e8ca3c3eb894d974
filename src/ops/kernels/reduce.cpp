#include "ops/kernels/reduce.h"

#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

Result<ReducePlan> plan_reduction(const Tensor& data, const std::vector<int64_t>& axes,
                                  bool keep_dims) {
  TRY(const std::vector<int64_t> normal, normalize_axes(axes, static_cast<int64_t>(data.rank())));
  std::vector<bool> is_reduced(data.rank(), false);
  for (const int64_t axis : normal) is_reduced[static_cast<size_t>(axis)] = true;

  ReducePlan plan;
  const Dims strides = contiguous_strides(data.dims());
  std::vector<bool> groups;  // of the merged axes: reduced or kept
  Dims dims, group_strides;
  for (size_t j = 0; j < data.rank(); ++j) {
    const int64_t dim = data.dim(j);
    if (is_reduced[j]) plan.count *= dim;
    if (!is_reduced[j]) plan.output.push_back(dim);
    if (is_reduced[j] && keep_dims) plan.output.push_back(1);
    if (dim == 1) continue;
    if (!groups.empty() && groups.back() == is_reduced[j]) {
      dims.back() *= dim;
      group_strides.back() = strides[j];
    } else {
      groups.push_back(is_reduced[j]);
      dims.push_back(dim);
      group_strides.push_back(strides[j]);
    }
  }
  if (!groups.empty()) {
    plan.inner = dims.back();
    plan.inner_reduced = groups.back();
  }
  for (size_t j = 0; j + 1 < groups.size(); ++j) {
    (groups[j] ? plan.reduced : plan.kept).push_back(dims[j]);
    (groups[j] ? plan.reduced_strides : plan.kept_strides).push_back(group_strides[j]);
  }
  return plan;
}

Result<ReducePlan> plan_reduction(const KernelContext& context, const Tensor& data) {
  TRY(auto axes, optional_ints(context, 1, "axes"));
  const bool keep_dims = context.attributes.get_int("keepdims", 1) != 0;
  if (!axes || axes->empty()) {
    axes.emplace();
    const bool none = context.attributes.get_int("noop_with_empty_axes", 0) != 0;
    for (size_t j = 0; !none && j < data.rank(); ++j) axes->push_back(static_cast<int64_t>(j));
  }
  return plan_reduction(data, *axes, keep_dims);
}

}  // namespace tombolo::ops
