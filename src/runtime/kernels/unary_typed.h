#pragma once

// Rows of numbers other than floats of 32 bits through functions of one variable.

#include <cstdint>

#include "base/dtype.h"

namespace tombolo {

enum class UnaryTyped : uint8_t { kAbs, kNeg, kSign, kRelu, kNot, kExp, kLog, kIsNan, kIsInf };

/// y[i] = f(x[i]); y may be x. `flags` of kIsInf: 1 counts infinities below, 2 those above.
using UnaryTypedFn = void(const void* x, void* y, int64_t n, int flags);
/// For the active instruction set; null where there is none. kIsNan and kIsInf write bytes.
UnaryTypedFn* unary_typed_fn(UnaryTyped op, DType dtype);

/// From one type to another as Cast does it (docs/numerics.md); null where there is none.
using ConvertFn = void(const void* x, void* y, int64_t n);
ConvertFn* convert_fn(DType from, DType to);

}  // namespace tombolo
