#include "ops/kernels/pad.h"

#include <algorithm>

#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

namespace {

/// One axis: which input element an output element shows.
struct PadAxis {
  int64_t first, length;  ///< the part of the input that is kept
  int64_t added;          ///< elements before it in the output

  /// The input's index for output index `i`; -1 for the constant.
  int64_t source(int64_t i, PadMode mode) const {
    int64_t at = i - added;
    if (at >= 0 && at < length) return first + at;
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return first + std::clamp<int64_t>(at, 0, length - 1);
      case PadMode::kWrap:
        at %= length;
        return first + (at < 0 ? at + length : at);
      case PadMode::kReflect: {
        if (length == 1) return first;
        const int64_t period = 2 * (length - 1);
        at %= period;
        if (at < 0) at += period;
        return first + (at < length ? at : period - at);
      }
    }
    return -1;
  }
};

}  // namespace

Result<Tensor> pad_tensor(const KernelContext& context, const Tensor& data,
                          const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                          PadMode mode, const Tensor* value) {
  const size_t rank = data.rank();
  std::vector<PadAxis> axes;
  Dims dims;
  for (size_t j = 0; j < rank; ++j) {
    int64_t length = 0;
    if (__builtin_add_overflow(data.dim(j), before[j], &length) ||
        __builtin_add_overflow(length, after[j], &length) || length < 0 ||
        before[j] < -data.dim(j) || after[j] < -data.dim(j))
      return context.error("pads of " + std::to_string(before[j]) + " and " +
                           std::to_string(after[j]) + " do not fit axis " + std::to_string(j) +
                           " of " + to_string(data));
    const int64_t first = std::max<int64_t>(0, -before[j]);
    const int64_t last = data.dim(j) - std::max<int64_t>(0, -after[j]);
    axes.push_back({first, std::max<int64_t>(last - first, 0), std::max<int64_t>(before[j], 0)});
    if (axes[j].length == 0 && length > 0 && mode != PadMode::kConstant)
      return context.error("axis " + std::to_string(j) + " of " + to_string(data) +
                           " has no elements to repeat");
    dims.push_back(length);
  }
  TRY(Tensor zero, context.allocate(data.dtype(), {}));
  fill_zero(zero);
  if (value == nullptr) value = &zero;
  TRY(Tensor out, context.allocate(data.dtype(), dims));
  if (out.size() == 0) return out;
  if (rank == 0) return data;

  std::vector<std::vector<int64_t>> tables(rank);
  for (size_t j = 0; j < rank; ++j)
    for (int64_t i = 0; i < dims[j]; ++i) tables[j].push_back(axes[j].source(i, mode));
  copy_by_tables(data, data.dims(), tables, value, out);
  return out;
}

}  // namespace tombolo::ops
