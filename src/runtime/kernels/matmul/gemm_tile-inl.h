// What tiles of float products share: how sums are added up and written. Included once for each
// target.
#if defined(TOMBOLO_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_GEMM_TILE_INL_H
#undef TOMBOLO_GEMM_TILE_INL_H
#else
#define TOMBOLO_GEMM_TILE_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/matmul/gemm_tile.h"
#include "runtime/kernels/row_pointers.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// Registers: 32 take 14 x 2 sums, 16 take 6 x 2, with two of B and one of A besides. NEON's
// products take A from registers of its own.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kRows = 14;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kRows = 10;  // of 12 gcc keeps sums on the stack
#else
inline constexpr int kRows = 6;
#endif

/// How elements of a format become floats.
template <PanelFormat kFormat>
struct Element {
  using Type = float;
  static HWY_INLINE V load(const float* b) { return hn::LoadU(F(), b); }
};
#if HWY_TARGET <= HWY_AVX2
template <>
struct Element<PanelFormat::kFloat16> {
  using Type = uint16_t;
  static HWY_INLINE V load(const uint16_t* b) {
    const hn::Rebind<hwy::float16_t, F> half;
    return hn::PromoteTo(F(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(b)));
  }
};
#endif
template <>
struct Element<PanelFormat::kBfloat16> {
  using Type = uint16_t;
  static HWY_INLINE V load(const uint16_t* b) {
    const hn::Rebind<uint16_t, F> half;
    const hn::RebindToUnsigned<F> word;
    return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(word, hn::LoadU(half, b))));
  }
};

/// A where the next step of k reads it: kR rows lda apart, or packed, rows side by side and steps
/// lda apart.
template <int kR, bool kPacked>
class RowsOfA {
 public:
  HWY_INLINE RowsOfA(const float* a, int64_t lda) : rows_(a, lda), lda_(lda) {}
  /// Of row r, so many steps on.
  HWY_INLINE float get(int r, int steps = 0) const {
    return kPacked ? rows_.at(0)[steps * lda_ + r] : rows_.at(r)[steps];
  }
  HWY_INLINE void advance(int steps = 1) { rows_.advance(kPacked ? steps * lda_ : steps); }

 private:
  RowPointers<float, kPacked ? 1 : kR> rows_;
  int64_t lda_;
};

// One step of k, the next one or `ahead` of it: `acc += a[:, k] * b[k, :]`. Where b is kept for the
// tiles after this one (widened, or it lies in no panel), its floats go to `widened`.
template <int kR, int kV, bool kPacked, PanelFormat kFormat = PanelFormat::kFloat32,
          bool kKeeps = kFormat != PanelFormat::kFloat32>
HWY_INLINE void step(V (&acc)[kR][kV], const RowsOfA<kR, kPacked>& a,
                     const typename Element<kFormat>::Type* HWY_RESTRICT b,
                     [[maybe_unused]] float* HWY_RESTRICT widened = nullptr, int ahead = 0) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V bv[kV];
#pragma GCC unroll 4
  for (int v = 0; v < kV; ++v) {
    bv[v] = Element<kFormat>::load(b + v * lanes);
    if constexpr (kKeeps) hn::Store(bv[v], f, widened + v * lanes);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    const V av = hn::Set(f, a.get(r, ahead));
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) add_product(acc[r][v], av, bv[v]);
  }
}

template <int kR, int kV>
HWY_INLINE void zero(V (&acc)[kR][kV]) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) acc[r][v] = hn::Zero(F());
}

/// Sums of zero. What is written in the end comes nearer meanwhile: rows of C lie far apart.
template <int kR, int kV>
HWY_INLINE void begin(const GemmTile& t, V (&acc)[kR][kV]) {
  if (kR >= 4)
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      __builtin_prefetch(t.c + r * t.ldc, 1);
      if (kV * HWY_LANES(float) > 16) __builtin_prefetch(t.c + r * t.ldc + 16, 1);
    }
  if (kR >= 4 && t.init != nullptr && t.init != t.c)
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      __builtin_prefetch(t.init + r * t.ldi);
      if (kV * HWY_LANES(float) > 16) __builtin_prefetch(t.init + r * t.ldi + 16);
    }
  zero(acc);
}

/// Rows of B that a panel which is the only stream is asked for ahead of the sums.
inline constexpr int64_t kAlone = 32, kFarAlone = 192;

/// What surrounds the sums, and the sums to C. Asked once for whole tiles, not for each vector: few
/// products are not hidden behind it.
/// kMasks: of a part of the columns, by masks of AVX-512.
template <int kR, int kV, bool kMasks = false>
HWY_INLINE void finish_whole(const GemmTile& t, V (&acc)[kR][kV]) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto some = [&](int64_t at) HWY_ATTR __attribute__((always_inline)) {
    return hn::FirstN(f, static_cast<size_t>(std::max<int64_t>(0, t.cols - at)));
  };
  const hn::Mask<F> masks[2] = {some(0), some(lanes)};
  const auto load = [&](const float* p, int64_t at) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kMasks) return hn::MaskedLoad(masks[at == 0 ? 0 : 1], f, p + at);
    return hn::LoadU(f, p + at);
  };
  // By value: what is stored to C might else have changed them.
  float* const c = t.c;
  const int64_t ldc = t.ldc;
  const auto each = [&](auto&& change) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) acc[r][v] = change(acc[r][v], r, v * lanes);
  };
  if (t.row_bias != nullptr)
    each([&](V x, int r, int64_t) HWY_ATTR
         __attribute__((always_inline)) { return hn::Add(x, hn::Set(f, t.row_bias[r])); });
  if (t.col_bias != nullptr)
    each([&](V x, int, int64_t at) HWY_ATTR
         __attribute__((always_inline)) { return hn::Add(x, load(t.col_bias, at)); });
  if (t.init != nullptr)
    each([&](V x, int r, int64_t at) HWY_ATTR
         __attribute__((always_inline)) { return hn::Add(x, load(t.init + r * t.ldi, at)); });
  if (t.row_scale != nullptr)
    each([&](V x, int r, int64_t) HWY_ATTR
         __attribute__((always_inline)) { return hn::Mul(x, hn::Set(f, t.row_scale[r])); });
  if (t.clamp) {
    const V lo = hn::Set(f, t.lo), hi = hn::Set(f, t.hi);
    each([&](V x, int, int64_t) HWY_ATTR __attribute__((always_inline)) {
      return min_of(hi, max_of(lo, x));  // in this order a NaN stays
    });
  }
  each([&](V x, int r, int64_t at) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kMasks && HWY_TARGET <= HWY_AVX3)
      hn::BlendedStore(x, masks[at == 0 ? 0 : 1], f, c + r * ldc + at);
    else if constexpr (kMasks)
      store_n(x, f, c + r * ldc + at, t.cols - at);
    else
      hn::StoreU(x, f, c + r * ldc + at);
    return x;
  });
}

/// The same where C ends within the tile. What lanes count is told once for all rows.
template <int kR, int kV>
void finish_part(const GemmTile& given, const float* sums) {
  const F f;
  const GemmTile t = given;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V lo = hn::Set(f, t.lo), hi = hn::Set(f, t.hi);
  for (int v = 0; v < kV; ++v) {
    const int64_t at = v * lanes, left = std::min(lanes, t.cols - at);
    if (left <= 0) break;
    const auto load = [&](const float* p) HWY_ATTR { return load_n(f, p, left); };
    const auto store = [&](V x, float* p) HWY_ATTR { store_n(x, f, p, left); };
    const V columns = t.col_bias != nullptr ? load(t.col_bias + at) : hn::Zero(f);
    float* c = t.c + at;
    const float* init = t.init != nullptr ? t.init + at : nullptr;
    for (int r = 0; r < kR; ++r, c += t.ldc) {
      V x = hn::Load(f, sums + (r * kV + v) * lanes);
      if (t.row_bias != nullptr) x = hn::Add(x, hn::Set(f, t.row_bias[r]));
      if (t.col_bias != nullptr) x = hn::Add(x, columns);
      if (init != nullptr) x = hn::Add(x, load(init + r * t.ldi));
      if (t.row_scale != nullptr) x = hn::Mul(x, hn::Set(f, t.row_scale[r]));
      if (t.clamp) x = min_of(hi, max_of(lo, x));
      store(x, c);
    }
  }
}

template <int kR, int kV>
HWY_INLINE void finish(const GemmTile& t, V (&acc)[kR][kV]) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
#if HWY_TARGET <= HWY_AVX3
  // A mask that is all ones costs no more than none.
  if constexpr (kV <= 2) return finish_whole<kR, kV, true>(t, acc);
#endif
  if (t.cols >= kV * lanes) return finish_whole(t, acc);
#if HWY_TARGET == HWY_AVX2
  if constexpr (kV <= 2) return finish_whole<kR, kV, true>(t, acc);
#endif
  HWY_ALIGN float sums[kR * kV * HWY_LANES(float)];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) hn::Store(acc[r][v], f, sums + (r * kV + v) * lanes);
  finish_part<kR, kV>(t, sums);
}

/// Rows of B that are summed in one piece. Sums of such parts are added: the error of a long sum
/// grows with the root of its length.
inline constexpr int64_t kPart = 192;
inline int64_t next_part(int64_t k, int64_t part = kPart) { return k > part + part / 2 ? part : k; }

/// The sums of the parts so far.
template <int kR, int kV>
struct Parts {
  HWY_ALIGN float sums[kR * kV * HWY_LANES(float)];

  // Told that they are read elsewhere: gcc otherwise holds them in registers, which a short sum,
  // the only part of its own, then moves about.
  HWY_INLINE Parts() { asm volatile("" : : "r"(sums) : "memory"); }
  /// acc begins anew.
  HWY_INLINE void put(V (&acc)[kR][kV]) {
    const F f;
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) {
        hn::Store(acc[r][v], f, sums + (r * kV + v) * HWY_LANES(float));
        acc[r][v] = hn::Zero(f);
      }
  }
  /// acc, and all before it.
  HWY_INLINE void take(V (&acc)[kR][kV]) const {
    const F f;
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v)
        acc[r][v] = hn::Add(acc[r][v], hn::Load(f, sums + (r * kV + v) * HWY_LANES(float)));
  }
};

/// Puts the panels of PanelFormat::kFixed26 (fixed26.h) into the table.
void fill_fixed26(GemmTiles& tiles);

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
