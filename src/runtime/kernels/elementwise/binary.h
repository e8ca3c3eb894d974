#pragma once

// Rows of numbers through a function of two variables. A step of 0 repeats a single number.

#include <cstdint>

#include "base/dtype.h"

namespace tombolo {

using BinaryFn = void(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y,
                      int64_t n);

enum class Binary : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPRelu,
  kPow,
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
  kMod,   ///< of integers: the sign of the divisor
  kFmod,  ///< the sign of the dividend
};

inline bool is_comparison(Binary op) {
  return op >= Binary::kEqual && op <= Binary::kGreaterOrEqual;
}

/// For the active instruction set; null where there is none for this type. Comparisons write bytes.
BinaryFn* binary_fn(Binary op, DType dtype);

// The parts.
BinaryFn* arithmetic_fn(Binary op, DType dtype);
BinaryFn* comparison_fn(Binary op, DType dtype);
BinaryFn* pow_fn(DType dtype);
BinaryFn* typed_fn(Binary op, DType dtype);  ///< what the others lack: plain loops
BinaryFn* typed_compare_fn(Binary op, DType dtype);
BinaryFn* fmod_fn(DType dtype);  ///< of floats

/// y[i] = c[i] ? a[i] : b[i] for elements of 1, 2, 4 or 8 bytes.
using WhereFn = void(const uint8_t* c, bool c_repeats, const void* a, bool a_repeats, const void* b,
                     bool b_repeats, void* y, int64_t n);
WhereFn* where_fn(size_t bytes);

}  // namespace tombolo
