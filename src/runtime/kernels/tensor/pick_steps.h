#pragma once

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// y[i] = x[i * step] for i in [0, n), of elements of 1, 2, 4 or 8 bytes; step is not 0, x[0] is
/// the first of them, whether they go up or down.
using PickStepsFn = void(const void* x, int64_t step, int64_t n, void* y);
PickStepsFn* pick_steps_fn(size_t bytes);

/// y[i] = start + i * delta: in double, or wrapping.
void fill_range(double start, double delta, int64_t n, float* y);
void fill_range(double start, double delta, int64_t n, double* y);
void fill_range(int64_t start, int64_t delta, int64_t n, int32_t* y);
void fill_range(int64_t start, int64_t delta, int64_t n, int64_t* y);

}  // namespace tombolo
