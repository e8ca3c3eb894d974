#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/norm/lp_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/across-inl.h"
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

/// Sums of as many short rows as a vector has numbers, which are added across at once.
template <Power kPower, typename T>
HWY_INLINE VD sums_of_rows(const T* x, int64_t n) {
  const D d;
  const hn::Rebind<T, D> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n == 1) return add_power<kPower>(hn::Zero(d), load_doubles(x));
  VD parts[HWY_LANES(double)];
  for (int64_t r = 0; r < lanes; ++r, x += n) {
    VD sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += lanes)
      sum = add_power<kPower>(sum, as_doubles<decltype(dt)>(load_n(dt, x + i, n - i)));
    parts[r] = sum;
  }
  return sums_across(d, parts);
}

/// What rows of these sums of powers are multiplied by: 1 / norm, and 0 where that is zero.
template <Power kPower, typename T>
HWY_INLINE VD factors_of(VD sums) {
  const D d;
  const VD norm = kPower == Power::kSquare ? hn::Sqrt(sums) : sums;
  const auto none = hn::Eq(norm, hn::Zero(d));
#if HWY_TARGET == HWY_AVX3
  // Roots and divisions take most of the time of short rows. The guess is good to 14 bits, two
  // steps of Newton's method to all that a float asks for; of an infinite sum they make no number.
  if constexpr (kPower == Power::kSquare && sizeof(T) == 4) {
    VD guess{_mm512_rsqrt14_pd(sums.raw)};
    for (int i = 0; i < 2; ++i) {
      const VD error = hn::NegMulAdd(hn::Mul(sums, guess), guess, hn::Set(d, 1.0));
      guess = hn::MulAdd(hn::Mul(guess, hn::Set(d, 0.5)), error, guess);
    }
    const auto infinite = hn::Eq(sums, hn::Inf(d));
    return hn::IfThenZeroElse(hn::Or(hn::Eq(sums, hn::Zero(d)), infinite), guess);
  }
#endif
  return hn::IfThenZeroElse(none, hn::Div(hn::Set(d, 1.0), norm));
}

/// Rows of 2, 3 or 4 numbers: vectors of their first numbers, their second ones and so on. Gives
/// how many rows are done.
template <Power kPower, typename T, int kN>
HWY_INLINE int64_t divide_shortest(const T* x, int64_t rows, T* y) {
  const D d;
  const hn::Rebind<T, D> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t row = 0;
  for (; row + lanes <= rows; row += lanes) {
    hn::Vec<decltype(dt)> v[4];
    if constexpr (kN == 2) hn::LoadInterleaved2(dt, x + row * kN, v[0], v[1]);
    if constexpr (kN == 3) hn::LoadInterleaved3(dt, x + row * kN, v[0], v[1], v[2]);
    if constexpr (kN == 4) hn::LoadInterleaved4(dt, x + row * kN, v[0], v[1], v[2], v[3]);
    VD sum = hn::Zero(d);
    for (int i = 0; i < kN; ++i) sum = add_power<kPower>(sum, as_doubles<decltype(dt)>(v[i]));
    const VD factor = factors_of<kPower, T>(sum);
    for (int i = 0; i < kN; ++i) v[i] = rounded<T>(hn::Mul(as_doubles<decltype(dt)>(v[i]), factor));
    if constexpr (kN == 2) hn::StoreInterleaved2(v[0], v[1], dt, y + row * kN);
    if constexpr (kN == 3) hn::StoreInterleaved3(v[0], v[1], v[2], dt, y + row * kN);
    if constexpr (kN == 4) hn::StoreInterleaved4(v[0], v[1], v[2], v[3], dt, y + row * kN);
  }
  return row;
}

constexpr int64_t kRows = 64, kShort = 8, kSpreadRow = 32;

template <Power kPower, typename T>
void divide_rows(const T* x, int64_t rows, int64_t n, T* y) {
  if (n >= 2 && n <= 4) {
    const int64_t done = n == 2   ? divide_shortest<kPower, T, 2>(x, rows, y)
                         : n == 3 ? divide_shortest<kPower, T, 3>(x, rows, y)
                                  : divide_shortest<kPower, T, 4>(x, rows, y);
    x += done * n;
    y += done * n;
    rows -= done;
  }
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
    for (int64_t r = 0; r < count; r += lanes)
      hn::Store(factors_of<kPower, T>(hn::Load(d, factors + r)), d, factors + r);
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

/// kC vectors of columns of `length` rows, `step` apart; `left` numbers of each row.
template <Power kPower, typename T, int kC>
void divide_some_columns(const T* x, int64_t length, int64_t step, int64_t left, T* y) {
  const D d;
  const hn::Rebind<T, D> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const T* row, int c) HWY_ATTR {
    return as_doubles<decltype(dt)>(load_n(dt, row + c * lanes, left - c * lanes));
  };
  VD sums[kC];
#pragma GCC unroll 4
  for (int c = 0; c < kC; ++c) sums[c] = hn::Zero(d);
  for (int64_t i = 0; i < length; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) sums[c] = add_power<kPower>(sums[c], load(x + i * step, c));
#pragma GCC unroll 4
  for (int c = 0; c < kC; ++c) sums[c] = factors_of<kPower, T>(sums[c]);
  for (int64_t i = 0; i < length; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c)
      store_n(rounded<T>(hn::Mul(load(x + i * step, c), sums[c])), dt, y + i * step + c * lanes,
              left - c * lanes);
}

template <Power kPower, typename T>
void divide_columns(const T* x, int64_t length, int64_t step, int64_t width, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t column = 0;
  for (; column + 4 * lanes <= width; column += 4 * lanes)
    divide_some_columns<kPower, T, 4>(x + column, length, step, 4 * lanes, y + column);
  for (; column < width; column += lanes)
    divide_some_columns<kPower, T, 1>(x + column, length, step, width - column, y + column);
}

template <typename T>
void divide_columns_any(bool squares, const T* x, int64_t length, int64_t step, int64_t width,
                        T* y) {
  squares ? divide_columns<Power::kSquare>(x, length, step, width, y)
          : divide_columns<Power::kMagnitude>(x, length, step, width, y);
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

template <typename T>
void lp_columns(bool squares, const T* x, int64_t length, int64_t step, int64_t width, T* y) {
  using Fn = void(bool, const T*, int64_t, int64_t, int64_t, T*);
  TOMBOLO_TARGET(Fn, divide_columns_any<T>)(squares, x, length, step, width, y);
}

template void lp_columns(bool, const float*, int64_t, int64_t, int64_t, float*);
template void lp_columns(bool, const double*, int64_t, int64_t, int64_t, double*);
template void lp_rows(bool, const float*, int64_t, int64_t, float*);
template void lp_rows(bool, const double*, int64_t, int64_t, double*);

}  // namespace tombolo
#endif
