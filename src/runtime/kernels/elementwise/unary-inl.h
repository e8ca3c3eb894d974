// The loop that every function of one variable is put into. Included once for each target.
#if defined(TOMBOLO_UNARY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_UNARY_INL_H
#undef TOMBOLO_UNARY_INL_H
#else
#define TOMBOLO_UNARY_INL_H
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "runtime/kernels/group-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

template <typename Fn>
HWY_INLINE void map_row(const float* x, float* y, int64_t n, Fn&& fn) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if constexpr (kGroup > 1) {
    if constexpr (std::is_invocable_v<Fn, Group<V>>)
      for (; i + kGroup * lanes <= n; i += kGroup * lanes)
        gn::Store(fn(gn::Load(d, x + i)), d, y + i);
  }
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    hn::StoreU(fn(a), d, y + i);
    hn::StoreU(fn(b), d, y + i + lanes);
  }
  for (; i < n; i += lanes) store_n(fn(load_n(d, x + i, n - i)), d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

/// A function `name` of rows; the body makes a vector of the vector x, with d, a and b in scope.
#define TOMBOLO_UNARY(name, ...) TOMBOLO_UNARY_OF(V, name, __VA_ARGS__)
/// The same where x may also be a group of vectors.
#define TOMBOLO_GROUP_UNARY(name, ...) TOMBOLO_UNARY_OF(auto, name, __VA_ARGS__)
#define TOMBOLO_UNARY_OF(X, name, ...)                                                         \
  void name(const float* in, float* out, int64_t n, [[maybe_unused]] float alpha,              \
            [[maybe_unused]] float beta) {                                                     \
    [[maybe_unused]] const F d;                                                                \
    [[maybe_unused]] const V a = hn::Set(d, alpha), b = hn::Set(d, beta);                      \
    [[maybe_unused]] const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);                       \
    map_row(                                                                                   \
        in, out, n, [&](X x) HWY_ATTR __attribute__((always_inline)) { return __VA_ARGS__; }); \
  }

/// The same, and a function tile_`name` of short rows that lie `step` floats apart: its constants
/// are loaded once for all of them.
#define TOMBOLO_ACTIVATION(name, ...) TOMBOLO_ACTIVATION_OF(V, name, __VA_ARGS__)
#define TOMBOLO_GROUP_ACTIVATION(name, ...) TOMBOLO_ACTIVATION_OF(auto, name, __VA_ARGS__)
#define TOMBOLO_ACTIVATION_OF(X, name, ...)                                             \
  TOMBOLO_UNARY_OF(X, row_##name, __VA_ARGS__)                                          \
  void tile_##name(float* rows, int64_t step, int64_t count, int64_t n,                 \
                   [[maybe_unused]] float alpha, [[maybe_unused]] float beta) {         \
    [[maybe_unused]] const F d;                                                         \
    [[maybe_unused]] const V a = hn::Set(d, alpha), b = hn::Set(d, beta);               \
    [[maybe_unused]] const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);                \
    for (; count > 0; --count, rows += step)                                            \
      map_row(                                                                          \
          rows, rows,                                                                   \
          n, [&](X x) HWY_ATTR __attribute__((always_inline)) { return __VA_ARGS__; }); \
  }

#endif
