#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/lp_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/norm/lp_rows.h"
#include "runtime/kernels/norm/powers-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
HWY_INLINE hn::Vec<hn::Rebind<T, D>> rounded(VD v) {
  if constexpr (sizeof(T) == 8)
    return v;
  else
    return hn::DemoteTo(hn::Rebind<T, D>(), v);
}

/// Sums of as many rows as a vector has numbers, place by place.
template <Power kPower, typename T>
HWY_INLINE VD sums_of_rows(const T* x, int64_t n) {
  const D d;
  const hn::Rebind<T, D> dt;
  const hn::RebindToSigned<decltype(dt)> di;
  using Index = hn::TFromD<decltype(di)>;
  const auto row = hn::Mul(hn::Iota(hn::Rebind<int32_t, D>(), 0),
                           hn::Set(hn::Rebind<int32_t, D>(), static_cast<int32_t>(n)));
  hn::Vec<decltype(di)> at;
  if constexpr (sizeof(Index) == 8)
    at = hn::PromoteTo(di, row);
  else
    at = row;
  VD sum = hn::Zero(d);
  for (int64_t i = 0; i < n; ++i)
    sum = add_power<kPower>(sum, as_doubles<decltype(dt)>(hn::GatherIndex(dt, x + i, at)));
  return sum;
}

constexpr int64_t kRows = 64, kShort = 8, kSpreadRow = 32;

template <Power kPower, typename T>
void divide_rows(const T* x, int64_t rows, int64_t n, T* y) {
  const D d;
  const hn::Rebind<T, D> dt;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN double factors[kRows];
  // Which of some rows each place of theirs belongs to: n vectors are so many rows.
  HWY_ALIGN int64_t owners[kSpreadRow * HWY_LANES(double)];
  const bool spreads = n <= kSpreadRow;
  for (int64_t r = 0; spreads && r < lanes; ++r) std::fill_n(owners + r * n, n, r);
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    const T* from = x + first * n;
    T* to = y + first * n;
    int64_t row = 0;
    if (n <= kShort)
      for (; row + lanes <= count; row += lanes)
        hn::Store(sums_of_rows<kPower>(from + row * n, n), d, factors + row);
    for (; row < count; ++row) factors[row] = sum_of_powers<kPower>(from + row * n, n, 0);
    for (; row % lanes != 0; ++row) factors[row] = 0;
    for (int64_t r = 0; r < count; r += lanes) {
      VD norm = hn::Load(d, factors + r);
      if constexpr (kPower == Power::kSquare) norm = hn::Sqrt(norm);
      const auto none = hn::Eq(norm, hn::Zero(d));
      hn::Store(hn::IfThenZeroElse(none, hn::Div(hn::Set(d, 1.0), norm)), d, factors + r);
    }
    row = 0;
    if (spreads)
      for (; row + lanes <= count; row += lanes) {
        const VD group = hn::Load(d, factors + row);
        for (int64_t v = 0; v < n; ++v) {
          const int64_t at = row * n + v * lanes;
          const auto owner = hn::IndicesFromVec(d, hn::Load(di, owners + v * lanes));
          const VD factor = hn::TableLookupLanes(group, owner);
          hn::StoreU(rounded<T>(hn::Mul(load_doubles(from + at), factor)), dt, to + at);
        }
      }
    for (; row < count; ++row) {
      const VD factor = hn::Set(d, factors[row]);
      const T* one = from + row * n;
      T* out = to + row * n;
      int64_t i = 0;
      for (; i + lanes <= n; i += lanes)
        hn::StoreU(rounded<T>(hn::Mul(load_doubles(one + i), factor)), dt, out + i);
      if (i < n) {
        const VD v = as_doubles<decltype(dt)>(load_n(dt, one + i, n - i));
        store_n(rounded<T>(hn::Mul(v, factor)), dt, out + i, n - i);
      }
    }
  }
}

template <typename T>
void divide_any(bool squares, const T* x, int64_t rows, int64_t n, T* y) {
  squares ? divide_rows<Power::kSquare>(x, rows, n, y)
          : divide_rows<Power::kMagnitude>(x, rows, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void lp_rows(bool squares, const T* x, int64_t rows, int64_t n, T* y) {
  TOMBOLO_TARGET(void(bool, const T*, int64_t, int64_t, T*), divide_any<T>)
  (squares, x, rows, n, y);
}
template void lp_rows(bool, const float*, int64_t, int64_t, float*);
template void lp_rows(bool, const double*, int64_t, int64_t, double*);

}  // namespace tombolo
#endif
