#pragma once

// Elementwise kernels. An operator is one small function over a number; it is instantiated for the
// four types in which we compute (float, double, int64, uint64). Elements of other types are
// widened to one of these, a block at a time, and rounded (or wrapped) once on the way back, which
// gives the same result as computing in the narrow integer type.

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "ir/tensor.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The type in which elements of a type are computed.
enum class Compute : uint8_t { kFloat, kDouble, kInt64, kUInt64, kNone };
/// kNone for strings and complex numbers. Bool computes as 0 and 1 in uint64.
Compute compute_type(DType dtype);

/// Elements [begin, begin + count) as numbers of compute_type(tensor.dtype()). Any type but strings
/// and complex; the tensor is aligned.
void widen(const Tensor& tensor, int64_t begin, int64_t count, void* out);
/// The inverse: rounds floats to nearest even, wraps integers.
void narrow(const void* in, int64_t count, Tensor& tensor, int64_t begin);

/// Elements as doubles, whatever number type they are; integers beyond 2^53 are rounded.
void load_doubles(const Tensor& tensor, int64_t begin, int64_t count, double* out);
/// Doubles as elements of a float type, rounded once. `begin` is a multiple of 4 in packed types.
void store_doubles(const double* in, int64_t count, Tensor& tensor, int64_t begin);

/// A double as an integer: truncated, out of range saturates, NaN is 0.
template <typename I>
I to_integer(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<I>::lowest()))
    return std::numeric_limits<I>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<I>::max()))
    return std::numeric_limits<I>::max();
  return static_cast<I>(value);
}

/// One element: as a double from any number type, or as an integer (wrapping back).
inline void load_number(const Tensor& tensor, int64_t at, double& out) {
  out = tensor.get_double(at);
}
inline void load_number(const Tensor& tensor, int64_t at, int64_t& out) {
  out = tensor.get_int64(at);
}
inline void store_number(double value, Tensor& tensor, int64_t at) { tensor.set_double(at, value); }
inline void store_number(int64_t value, Tensor& tensor, int64_t at) { tensor.set_int64(at, value); }

/// Computes out[i] = op(in[0][i * steps[0]], ...) for i < count.
using RowFn = void (*)(const void* const* in, const uint8_t* steps, void* out, int64_t count,
                       const void* op);

enum class Bools : uint8_t { kRefuse, kTake, kOnly };

/// An elementwise operator over its compute types; null where it does not take one.
struct RowFns {
  RowFn fns[4] = {};
  Bools bools = Bools::kRefuse;
  bool to_bool = false;  ///< the output is bool, else of the inputs' type
};

/// Runs it over `inputs`, which must be of one type, into output 0.
Status run_rows(KernelContext& context, std::span<const Tensor* const> inputs, const RowFns& fns,
                const void* op);
/// The same with the node's first `count` inputs. Two inputs of an operator set before 7 follow its
/// attributes `broadcast` and `axis`.
Status run_rows(KernelContext& context, size_t count, const RowFns& fns, const void* op);

/// An error that says where, if integer input `index` holds a zero. Floats may.
Status refuse_zero_divisor(KernelContext& context, size_t index);

/// Folds all inputs of the node with a binary operator, left to right, rounding once at the end;
/// floats are multiplied by `scale` before that. At least one input.
Status run_fold(KernelContext& context, const RowFns& fns, const void* op, double scale = 1);

namespace rows {

template <typename T, typename R, typename Op>
void unary(const void* const* in, const uint8_t* steps, void* out, int64_t count, const void* op) {
  const T* x = static_cast<const T*>(in[0]);
  R* y = static_cast<R*>(out);
  const Op& f = *static_cast<const Op*>(op);
  const int64_t step = steps[0];
  if (step == 1)
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(x[i]));
  else
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(x[0]));
}

template <typename T, typename R, typename Op>
void binary(const void* const* in, const uint8_t* steps, void* out, int64_t count, const void* op) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  R* y = static_cast<R*>(out);
  const Op& f = *static_cast<const Op*>(op);
  if (steps[0] && steps[1]) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(a[i], b[i]));
  } else if (steps[0]) {
    const T fixed = b[0];
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(a[i], fixed));
  } else if (steps[1]) {
    const T fixed = a[0];
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(fixed, b[i]));
  } else {
    const R value = static_cast<R>(f(a[0], b[0]));
    for (int64_t i = 0; i < count; ++i) y[i] = value;
  }
}

}  // namespace rows

/// Which compute types an operator is instantiated for.
enum Family : uint8_t { kFamilyFloats = 1, kFamilySigned = 2, kFamilyUnsigned = 4 };
inline constexpr uint8_t kFamilyInts = kFamilySigned | kFamilyUnsigned;
inline constexpr uint8_t kFamilyNumbers = kFamilyFloats | kFamilyInts;

/// The table of a unary operator. The lambda takes and gives one number (or gives a bool).
template <uint8_t Families, bool ToBool, typename Op>
constexpr RowFns unary_rows(Bools bools) {
  RowFns table;
  table.bools = bools;
  table.to_bool = ToBool;
  if constexpr ((Families & kFamilyFloats) != 0) {
    table.fns[0] = &rows::unary<float, std::conditional_t<ToBool, uint8_t, float>, Op>;
    table.fns[1] = &rows::unary<double, std::conditional_t<ToBool, uint8_t, double>, Op>;
  }
  if constexpr ((Families & kFamilySigned) != 0)
    table.fns[2] = &rows::unary<int64_t, std::conditional_t<ToBool, uint8_t, int64_t>, Op>;
  if constexpr ((Families & kFamilyUnsigned) != 0)
    table.fns[3] = &rows::unary<uint64_t, std::conditional_t<ToBool, uint8_t, uint64_t>, Op>;
  return table;
}

template <uint8_t Families, bool ToBool, typename Op>
constexpr RowFns binary_rows(Bools bools) {
  RowFns table;
  table.bools = bools;
  table.to_bool = ToBool;
  if constexpr ((Families & kFamilyFloats) != 0) {
    table.fns[0] = &rows::binary<float, std::conditional_t<ToBool, uint8_t, float>, Op>;
    table.fns[1] = &rows::binary<double, std::conditional_t<ToBool, uint8_t, double>, Op>;
  }
  if constexpr ((Families & kFamilySigned) != 0)
    table.fns[2] = &rows::binary<int64_t, std::conditional_t<ToBool, uint8_t, int64_t>, Op>;
  if constexpr ((Families & kFamilyUnsigned) != 0)
    table.fns[3] = &rows::binary<uint64_t, std::conditional_t<ToBool, uint8_t, uint64_t>, Op>;
  return table;
}

/// y = op(x) over floats (or more), input 0 to output 0.
template <uint8_t Families = kFamilyFloats, typename Op>
Status map(KernelContext& context, Op op, Bools bools = Bools::kRefuse) {
  return run_rows(context, 1, unary_rows<Families, false, Op>(bools), &op);
}
template <uint8_t Families = kFamilyFloats, typename Op>
Status map_to_bool(KernelContext& context, Op op, Bools bools = Bools::kRefuse) {
  return run_rows(context, 1, unary_rows<Families, true, Op>(bools), &op);
}
/// y = op(a, b) with broadcasting, inputs 0 and 1 to output 0.
template <uint8_t Families = kFamilyNumbers, typename Op>
Status zip(KernelContext& context, Op op, Bools bools = Bools::kRefuse) {
  return run_rows(context, 2, binary_rows<Families, false, Op>(bools), &op);
}
template <uint8_t Families = kFamilyNumbers, typename Op>
Status zip_to_bool(KernelContext& context, Op op, Bools bools = Bools::kRefuse) {
  return run_rows(context, 2, binary_rows<Families, true, Op>(bools), &op);
}

/// Arithmetic that wraps in signed integers (their overflow is undefined in C++).
template <typename T>
constexpr T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <typename T>
constexpr T wrap_sub(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <typename T>
constexpr T wrap_mul(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

}  // namespace tombolo::ops
