// Comparisons and choices: between numbers and bytes of truth. Plain loops, one for each case of
// repetition, which the compiler turns into vectors for each instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/binary_compare.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/binary.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

template <typename T, typename Fn>
HWY_INLINE void compare_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y,
                            int64_t n, Fn&& fn) {
  const T* HWY_RESTRICT p = static_cast<const T*>(a);
  const T* HWY_RESTRICT q = static_cast<const T*>(b);
  uint8_t* HWY_RESTRICT out = static_cast<uint8_t*>(y);
  if (a_repeats) {
    const T u = *p;
    for (int64_t i = 0; i < n; ++i) out[i] = fn(u, q[i]);
  } else if (b_repeats) {
    const T v = *q;
    for (int64_t i = 0; i < n; ++i) out[i] = fn(p[i], v);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = fn(p[i], q[i]);
  }
}

#define COMPARE(name, op)                                                         \
  template <typename T>                                                           \
  void name(const void* a, bool ar, const void* b, bool br, void* y, int64_t n) { \
    compare_row<T>(a, ar, b, br, y, n, [](T u, T v) HWY_ATTR { return u op v; }); \
  }
COMPARE(equal, ==)
COMPARE(less, <)
COMPARE(less_equal, <=)
COMPARE(greater, >)
COMPARE(greater_equal, >=)

template <typename T>
void where(const uint8_t* HWY_RESTRICT c, bool c_repeats, const void* a, bool a_repeats,
           const void* b, bool b_repeats, void* y, int64_t n) {
  const T* p = static_cast<const T*>(a);
  const T* q = static_cast<const T*>(b);
  T* HWY_RESTRICT out = static_cast<T*>(y);
  if (c_repeats) {
    const T* from = *c != 0 ? p : q;
    if (*c != 0 ? a_repeats : b_repeats) {
      const T value = *from;
      for (int64_t i = 0; i < n; ++i) out[i] = value;
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = from[i];
    }
  } else if (a_repeats && b_repeats) {
    const T u = *p, v = *q;
    for (int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? u : v;
  } else if (a_repeats) {
    const T u = *p;
    for (int64_t i = 0; i < n; ++i) {
      const T v = q[i];
      out[i] = c[i] != 0 ? u : v;
    }
  } else if (b_repeats) {
    const T v = *q;
    for (int64_t i = 0; i < n; ++i) {
      const T u = p[i];
      out[i] = c[i] != 0 ? u : v;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const T u = p[i], v = q[i];
      out[i] = c[i] != 0 ? u : v;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

BinaryFn* comparison_fn(Binary op, DType dtype) {
#define TYPES(id, name)                                                               \
  if (op == Binary::id) {                                                             \
    if (dtype == DType::kFloat32) return TOMBOLO_TARGET(BinaryFn, name<float>).get(); \
    if (dtype == DType::kInt64) return TOMBOLO_TARGET(BinaryFn, name<int64_t>).get(); \
    if (dtype == DType::kInt32) return TOMBOLO_TARGET(BinaryFn, name<int32_t>).get(); \
  }
  TYPES(kEqual, equal)
  TYPES(kLess, less)
  TYPES(kLessOrEqual, less_equal)
  TYPES(kGreater, greater)
  TYPES(kGreaterOrEqual, greater_equal)
#undef TYPES
  return nullptr;
}

WhereFn* where_fn(size_t bytes) {
  switch (bytes) {
    case 1:
      return TOMBOLO_TARGET(WhereFn, where<uint8_t>).get();
    case 2:
      return TOMBOLO_TARGET(WhereFn, where<uint16_t>).get();
    case 4:
      return TOMBOLO_TARGET(WhereFn, where<uint32_t>).get();
    case 8:
      return TOMBOLO_TARGET(WhereFn, where<uint64_t>).get();
    default:
      return nullptr;
  }
}

}  // namespace tombolo
#endif
