#pragma once

// Adding and removing elements at the borders: Pad, CenterCropPad.

#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

/// `before` and `after` hold a number for each axis; a negative one removes elements, before the
/// others are added. `value` is one element, null for zero; it matters to kConstant only.
Result<Tensor> pad_tensor(const KernelContext& context, const Tensor& data,
                          const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                          PadMode mode, const Tensor* value);

}  // namespace tombolo::ops
