#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/binary_arithmetic.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, typename Fn>
HWY_INLINE void zip_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y,
                        int64_t n, Fn&& fn) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* p = static_cast<const T*>(a);
  const T* q = static_cast<const T*>(b);
  T* out = static_cast<T*>(y);
  int64_t i = 0;
  if (a_repeats) {
    const auto av = hn::Set(d, *p);
    for (; i + lanes <= n; i += lanes) hn::StoreU(fn(d, av, hn::LoadU(d, q + i)), d, out + i);
    if (i < n) store_n(fn(d, av, load_n(d, q + i, n - i)), d, out + i, n - i);
    return;
  }
  if (b_repeats) {
    const auto bv = hn::Set(d, *q);
    for (; i + lanes <= n; i += lanes) hn::StoreU(fn(d, hn::LoadU(d, p + i), bv), d, out + i);
    if (i < n) store_n(fn(d, load_n(d, p + i, n - i), bv), d, out + i, n - i);
    return;
  }
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(fn(d, hn::LoadU(d, p + i), hn::LoadU(d, q + i)), d, out + i);
  if (i < n) store_n(fn(d, load_n(d, p + i, n - i), load_n(d, q + i, n - i)), d, out + i, n - i);
}

#define ZIP(name, T, ...)                                                         \
  void name(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) { \
    zip_row<T>(a, ar, b, br, y, n, [](auto d, auto u, auto v) HWY_ATTR {          \
      (void)d;                                                                    \
      return __VA_ARGS__;                                                         \
    });                                                                           \
  }
#define ZIP_ALL(op, ...)              \
  ZIP(op##_f32, float, __VA_ARGS__)   \
  ZIP(op##_f64, double, __VA_ARGS__)  \
  ZIP(op##_i32, int32_t, __VA_ARGS__) \
  ZIP(op##_i64, int64_t, __VA_ARGS__)

ZIP_ALL(add, hn::Add(u, v))
ZIP_ALL(sub, hn::Sub(u, v))
ZIP(mul_f32, float, hn::Mul(u, v))
ZIP(mul_f64, double, hn::Mul(u, v))
ZIP(mul_i32, int32_t, hn::Mul(u, v))
ZIP(div_f32, float, hn::Div(u, v))
ZIP(div_f64, double, hn::Div(u, v))
// A NaN on either side stays.
ZIP(max_f32, float, hn::IfThenElse(hn::IsNaN(u), u, hn::IfThenElse(hn::Lt(v, u), u, v)))
ZIP(min_f32, float, hn::IfThenElse(hn::IsNaN(u), u, hn::IfThenElse(hn::Gt(v, u), u, v)))
ZIP(max_i64, int64_t, max_of(u, v))
ZIP(min_i64, int64_t, min_of(u, v))
ZIP(max_i32, int32_t, max_of(u, v))
ZIP(min_i32, int32_t, min_of(u, v))
ZIP(prelu_f32, float, hn::IfThenElse(hn::Lt(u, hn::Zero(d)), hn::Mul(u, v), u))
ZIP(and_u8, uint8_t, hn::And(u, v))
ZIP(or_u8, uint8_t, hn::Or(u, v))
ZIP(xor_u8, uint8_t, hn::Xor(u, v))

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

BinaryFn* arithmetic_fn(Binary op, DType dtype) {
#define ROW(id, type, name) \
  if (op == Binary::id && dtype == DType::type) return TOMBOLO_TARGET(BinaryFn, name).get();
  ROW(kAdd, kFloat32, add_f32)
  ROW(kAdd, kFloat64, add_f64)
  ROW(kAdd, kInt32, add_i32)
  ROW(kAdd, kInt64, add_i64)
  ROW(kSub, kFloat32, sub_f32)
  ROW(kSub, kFloat64, sub_f64)
  ROW(kSub, kInt32, sub_i32)
  ROW(kSub, kInt64, sub_i64)
  ROW(kMul, kFloat32, mul_f32)
  ROW(kMul, kFloat64, mul_f64)
  ROW(kMul, kInt32, mul_i32)
  ROW(kDiv, kFloat32, div_f32)
  ROW(kDiv, kFloat64, div_f64)
  ROW(kMax, kFloat32, max_f32)
  ROW(kMin, kFloat32, min_f32)
  ROW(kMax, kInt64, max_i64)
  ROW(kMin, kInt64, min_i64)
  ROW(kMax, kInt32, max_i32)
  ROW(kMin, kInt32, min_i32)
  ROW(kPRelu, kFloat32, prelu_f32)
  ROW(kAnd, kBool, and_u8)
  ROW(kOr, kBool, or_u8)
  ROW(kXor, kBool, xor_u8)
#undef ROW
  return nullptr;
}

BinaryFn* binary_fn(Binary op, DType dtype) {
  if (op == Binary::kPow) return pow_fn(dtype);
  if (op == Binary::kFmod && is_float(dtype)) return fmod_fn(dtype);
  if (is_comparison(op)) {
    BinaryFn* fn = comparison_fn(op, dtype);
    return fn != nullptr ? fn : typed_compare_fn(op, dtype);
  }
  BinaryFn* fn = arithmetic_fn(op, dtype);
  return fn != nullptr ? fn : typed_fn(op, dtype);
}

}  // namespace tombolo
#endif
