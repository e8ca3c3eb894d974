#pragma once

// Rows of numbers other than floats of 32 bits through functions of one variable.

#include <cstdint>

#include "base/dtype.h"

namespace tombolo {

enum class UnaryTyped : uint8_t {
  kAbs,
  kNeg,
  kSign,
  kRelu,
  kNot,
  kLogicalNot,
  kSqrt,
  kFloor,
  kCeil,
  kRound,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kSin,
  kCos,
  kReciprocal,
  kIsNan,
  kIsInf
};

/// y[i] = f(x[i]); y may be x. `flags` of kIsInf: 1 counts infinities below, 2 those above.
using UnaryTypedFn = void(const void* x, void* y, int64_t n, int flags);
/// For the active instruction set; null where there is none. kIsNan and kIsInf write bytes.
UnaryTypedFn* unary_typed_fn(UnaryTyped op, DType dtype);

/// y[i] = x[i], raised to *low and then lowered to *high; a null limit is none. y may be x.
using ClipFn = void(const void* x, void* y, int64_t n, const void* low, const void* high);
ClipFn* clip_fn(DType dtype);

/// From one type to another as Cast does it (docs/numerics.md); null where there is none.
using ConvertFn = void(const void* x, void* y, int64_t n);
ConvertFn* convert_fn(DType from, DType to);
/// Doubles to floats that have more digits than 16 bits hold, and are odd where some were lost: to
/// round those again gives what rounding the doubles would.
void f64_to_odd(const double* x, float* y, int64_t n);

}  // namespace tombolo
