#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/deform.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/conv/deform.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

template <typename T>
HWY_INLINE V load_wide(const T* from, int64_t n) {
  const D d;
  if constexpr (sizeof(T) == sizeof(double))
    return load_n(d, from, n);
  else
    return hn::PromoteTo(d, load_n(hn::Rebind<float, D>(), from, n));
}

/// Points in double, as the reference has them; weights are rounded once.
template <typename T>
void corners(const ConvGeometry& s, const DeformBlock& b, int64_t tap, const T* offset_y,
             const T* offset_x, const T* mask, int32_t* places, T* weights) {
  const D d;
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<T, D> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto set = [&](int64_t v) HWY_ATTR { return hn::Set(d, static_cast<double>(v)); };
  const V row = set(tap / s.kernel[2] * s.dilation[1] - s.pad[1]);
  const V column = set(tap % s.kernel[2] * s.dilation[2] - s.pad[2]);
  const V height = set(s.in[1]), width = set(s.in[2]), nowhere = set(s.in[1] * s.in[2]);
  const V zero = hn::Zero(d), one = hn::Set(d, 1), before = hn::Set(d, -1);
  for (int64_t i = 0; i < b.count; i += lanes) {
    const int64_t left = b.count - i;
    const V y = hn::Add(hn::Add(hn::LoadU(d, b.rows + i), row), load_wide(offset_y + i, left));
    const V x =
        hn::Add(hn::Add(hn::LoadU(d, b.columns + i), column), load_wide(offset_x + i, left));
    // Not where a coordinate is no number.
    const auto inside = hn::And(hn::And(hn::Gt(y, before), hn::Lt(y, height)),
                                hn::And(hn::Gt(x, before), hn::Lt(x, width)));
    const V top = hn::Floor(y), start = hn::Floor(x);
    const V down = hn::Sub(y, top), across = hn::Sub(x, start);
    const V by_row[] = {hn::Sub(one, down), down}, by_column[] = {hn::Sub(one, across), across};
    const auto factor = mask != nullptr ? load_n(dt, mask + i, left) : hn::Set(dt, T{1});
    for (int corner = 0; corner < 4; ++corner) {
      const V at_y = corner / 2 != 0 ? hn::Add(top, one) : top;
      const V at_x = corner % 2 != 0 ? hn::Add(start, one) : start;
      const V part = hn::Mul(by_row[corner / 2], by_column[corner % 2]);
      const auto counts = hn::And(hn::And(inside, hn::Ne(part, zero)),
                                  hn::And(hn::And(hn::Ge(at_y, zero), hn::Lt(at_y, height)),
                                          hn::And(hn::Ge(at_x, zero), hn::Lt(at_x, width))));
      const V place = hn::IfThenElse(counts, hn::MulAdd(at_y, width, at_x), nowhere);
      hn::StoreU(hn::DemoteTo(di, place), di, places + corner * kDeformPixels + i);
      const V weight = hn::IfThenElseZero(counts, part);
      T* const to = weights + corner * kDeformPixels + i;
      if constexpr (sizeof(T) == sizeof(double))
        hn::StoreU(hn::Mul(weight, factor), dt, to);
      else
        hn::StoreU(hn::Mul(hn::DemoteTo(dt, weight), factor), dt, to);
    }
  }
}

template <typename T>
void gather_rows(const DeformGather<T>& g) {
  const hn::ScalableTag<T> d;
  using Values = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // From the first element of a row to its last: what is too much is written anew by the next.
  for (int64_t p = 0; p < g.pixels; ++p)
    for (int64_t group = 0; group < g.groups; ++group)
      for (int64_t tap = 0; tap < g.taps; ++tap)
        for (int64_t i = g.first[group]; i < g.first[group + 1]; ++i) {
          const DeformPiece& piece = g.pieces[i];
          const int64_t at = (piece.share * g.taps + tap) * 4 * kDeformPixels + p;
          const T* from[4];
          Values weight[4];
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            from[k] = g.image + g.places[at + k * kDeformPixels] * g.channels + piece.channel;
            weight[k] = hn::Set(d, g.weights[at + k * kDeformPixels]);
          }
          T* const to = g.rows + p * g.row + piece.to + tap * piece.step;
          for (int64_t c = 0; c < piece.count; c += lanes) {
            const auto load = [&](int k) HWY_ATTR __attribute__((always_inline)) {
              return hn::LoadU(d, from[k] + c);
            };
            const Values a = hn::MulAdd(load(1), weight[1], hn::Mul(load(0), weight[0]));
            const Values b = hn::MulAdd(load(3), weight[3], hn::Mul(load(2), weight[2]));
            hn::StoreU(hn::Add(a, b), d, to + c);
          }
        }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

DeformBlock deform_block(const ConvGeometry& s, int64_t first, int64_t count) {
  DeformBlock block;
  block.first = first;
  block.count = count;
  for (int64_t i = 0; i < count; ++i) {
    block.rows[i] = static_cast<double>((first + i) / s.out[2] * s.stride[1]);
    block.columns[i] = static_cast<double>((first + i) % s.out[2] * s.stride[2]);
  }
  std::fill_n(block.rows + count, 16, 0.0);
  std::fill_n(block.columns + count, 16, 0.0);
  return block;
}

template <typename T>
void deform_corners(const ConvGeometry& shape, const DeformBlock& block, int64_t tap,
                    const T* offset_y, const T* offset_x, const T* mask, int32_t* places,
                    T* weights) {
  using Fn = void(const ConvGeometry&, const DeformBlock&, int64_t, const T*, const T*, const T*,
                  int32_t*, T*);
  TOMBOLO_TARGET(Fn, corners<T>)
      .get()(shape, block, tap, offset_y, offset_x, mask, places, weights);
}
template <typename T>
void deform_gather(const DeformGather<T>& task) {
  TOMBOLO_TARGET(void(const DeformGather<T>&), gather_rows<T>).get()(task);
}

#define TOMBOLO_DEFORM(T)                                                                  \
  template void deform_corners(const ConvGeometry&, const DeformBlock&, int64_t, const T*, \
                               const T*, const T*, int32_t*, T*);                          \
  template void deform_gather(const DeformGather<T>&);
TOMBOLO_DEFORM(float)
TOMBOLO_DEFORM(double)
#undef TOMBOLO_DEFORM

}  // namespace tombolo
#endif
