#pragma once

// What the scatter operators share.

#include "ops/kernel_context.h"

namespace tombolo::ops {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

/// The attribute `reduction`, checked against the element types of data and updates.
Result<Reduction> scatter_reduction(const KernelContext& context, const Tensor& data,
                                    const Tensor& updates);

/// out[to] = reduce(out[to], updates[from])
void combine_element(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out,
                     int64_t to);

/// The same for `count` neighbours, one after the other.
void combine_run(Reduction reduction, const Tensor& updates, int64_t from, Tensor& out, int64_t to,
                 int64_t count);

/// ScatterElements, and Scatter before it.
Status scatter_elements(KernelContext& context);

}  // namespace tombolo::ops
