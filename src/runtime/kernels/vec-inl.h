// Helpers for kernel files; included once for each target (Highway's include guards toggle).
#if defined(TOMBOLO_VEC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_VEC_INL_H
#undef TOMBOLO_VEC_INL_H
#else
#define TOMBOLO_VEC_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// So many bytes, eight at most, as a number: parts that overlap instead of a loop.
HWY_INLINE uint64_t few_bytes(const void* from, int64_t n) {
  const auto* p = static_cast<const uint8_t*>(from);
  const auto both = [&]<typename W>(W) -> uint64_t {
    constexpr auto kSize = static_cast<int64_t>(sizeof(W));
    W first, last;
    std::memcpy(&first, p, sizeof(W));
    std::memcpy(&last, p + n - kSize, sizeof(W));
    return uint64_t{first} | uint64_t{last} << (8 * (n - kSize));
  };
  if (n >= 8) return both(uint64_t{});
  if (n >= 4) return both(uint32_t{});
  if (n >= 2) return both(uint16_t{});
  return n == 1 ? *p : 0;
}
HWY_INLINE void store_few_bytes(uint64_t bytes, void* to, int64_t n) {
  auto* p = static_cast<uint8_t*>(to);
  const auto both = [&]<typename W>(W) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(W));
    const auto first = static_cast<W>(bytes), last = static_cast<W>(bytes >> (8 * (n - kSize)));
    std::memcpy(p, &first, sizeof(W));
    std::memcpy(p + n - kSize, &last, sizeof(W));
  };
  if (n >= 8) return both(uint64_t{});
  if (n >= 4) return both(uint32_t{});
  if (n >= 2) return both(uint16_t{});
  if (n == 1) *p = static_cast<uint8_t>(bytes);
}

/// The first n of fewer elements than a vector has, zeros behind.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_few(D d, const T* p, int64_t n) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T)), kInWord = 8 / kSize;
  if constexpr (sizeof(T) * hn::MaxLanes(D()) > 16) {
    const hn::Half<D> half;
    const auto lanes = static_cast<int64_t>(hn::Lanes(half));
    const auto lower = n >= lanes ? hn::LoadU(half, p) : load_few(half, p, n);
    return hn::Combine(d, n > lanes ? load_few(half, p + lanes, n - lanes) : hn::Zero(half), lower);
  } else if constexpr (sizeof(T) * hn::MaxLanes(D()) < 8) {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    if (n > 0) std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
    return hn::Load(d, buffer);
  } else {
    const hn::Repartition<uint64_t, D> words;
    const auto low = hn::Set(words, few_bytes(p, std::clamp<int64_t>(n, 0, kInWord) * kSize));
    if constexpr (sizeof(T) * hn::MaxLanes(D()) == 8) {
      return hn::BitCast(d, low);
    } else {
      const uint64_t high = n > kInWord ? few_bytes(p + kInWord, (n - kInWord) * kSize) : 0;
      return hn::BitCast(d, hn::InterleaveLower(words, low, hn::Set(words, high)));
    }
  }
}
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_few(hn::Vec<D> v, D d, T* p, int64_t n) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T)), kInWord = 8 / kSize;
  if constexpr (sizeof(T) * hn::MaxLanes(D()) > 16) {
    const hn::Half<D> half;
    const auto lanes = static_cast<int64_t>(hn::Lanes(half));
    const auto lower = hn::LowerHalf(half, v);
    if (n < lanes) return store_few(lower, half, p, n);
    hn::StoreU(lower, half, p);
    if (n > lanes) store_few(hn::UpperHalf(half, v), half, p + lanes, n - lanes);
  } else if constexpr (sizeof(T) * hn::MaxLanes(D()) < 8) {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    hn::Store(v, d, buffer);
    if (n > 0) std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(T));
  } else {
    const hn::Repartition<uint64_t, D> words;
    const auto bits = hn::BitCast(words, v);
    store_few_bytes(hn::GetLane(bits), p, std::clamp<int64_t>(n, 0, kInWord) * kSize);
    if constexpr (sizeof(T) * hn::MaxLanes(D()) == 16)
      if (n > kInWord)
        store_few_bytes(hn::GetLane(hn::InterleaveUpper(words, bits, bits)), p + kInWord,
                        (n - kInWord) * kSize);
  }
}

// Calls: written out they would fill the loops whose last vector alone needs them.
template <class D, typename T = hn::TFromD<D>>
HWY_NOINLINE hn::Vec<D> load_rest(D d, const T* p, int64_t n) {
  return load_few(d, p, n);
}
template <class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void store_rest(hn::Vec<D> v, D d, T* p, int64_t n) {
  store_few(v, d, p, n);
}

#if HWY_TARGET == HWY_AVX2
/// The first n lanes, by halves. Masked stores take AMD's processors before Zen 4 twelve cycles and
/// more, and how many lanes there are hardly ever changes from one vector to the next.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_halves(hn::Vec<D> v, D d, T* p, int64_t n) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    if (n > 0) hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> half;
    constexpr auto kHalf = static_cast<int64_t>(hn::MaxLanes(half));
    const auto lower = hn::LowerHalf(half, v);
    if (n < kHalf) return store_halves(lower, half, p, n);
    hn::StoreU(lower, half, p);
    store_halves(hn::UpperHalf(half, v), half, p + kHalf, n - kHalf);
  }
}
#endif

/// The first n lanes from p, zeros after; touches nothing beyond them. Highway's MaskedLoad needs
/// alignment and reads the whole vector below AVX2 and for lanes of one or two bytes.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_n(D d, const T* p, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= lanes) return hn::LoadU(d, p);
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(T) >= 4 || HWY_TARGET <= HWY_AVX3)
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n < 0 ? 0 : n)), d, p);
#endif
  return load_rest(d, p, n);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_n(hn::Vec<D> v, D d, T* p, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= lanes) return hn::StoreU(v, d, p);
#if HWY_TARGET <= HWY_AVX3
  return hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n < 0 ? 0 : n)), d, p);
#elif HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(T) >= 4) return store_halves(v, d, p, n);
#endif
  store_rest(v, d, p, n);
}

/// Lanes from element `at` of a row of n floats on, which may begin before the row or end behind
/// it: `fill` stands there.
template <class D>
HWY_INLINE hn::Vec<D> load_within(D d, const float* row, int64_t at, int64_t n, hn::Vec<D> fill) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (at >= 0 && at + lanes <= n) return hn::LoadU(d, row + at);
  if (at >= n || at + lanes <= 0) return fill;
#if HWY_TARGET <= HWY_AVX2
  const auto before = hn::FirstN(d, static_cast<size_t>(at < 0 ? -at : 0));
  const auto inside = hn::AndNot(before, hn::FirstN(d, static_cast<size_t>(n - at)));
  return hn::IfThenElse(inside, hn::MaskedLoad(inside, d, row + at), fill);
#else
  HWY_ALIGN float buffer[HWY_LANES(float)];
  hn::Store(fill, d, buffer);
  const int64_t from = at < 0 ? -at : 0, to = n - at < lanes ? n - at : lanes;
  std::memcpy(buffer + from, row + at + from, static_cast<size_t>(to - from) * sizeof(float));
  return hn::Load(d, buffer);
#endif
}

/// The lesser (greater) one; `b` where either is no number, on every instruction set: min_of(limit,
/// x) keeps a NaN, min_of(x, least) passes over one. Highway's own do what the machine's does.
template <class V>
HWY_INLINE V min_of(V a, V b) {
#if HWY_ARCH_X86
  return hn::Min(a, b);
#else
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) return hn::IfThenElse(hn::Lt(a, b), a, b);
  return hn::Min(a, b);
#endif
}
template <class V>
HWY_INLINE V max_of(V a, V b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) return hn::IfThenElse(hn::Gt(a, b), a, b);
  return hn::Max(a, b);
#endif
}

/// sum += a * b, for tiles. Told so: where steps are unrolled, gcc otherwise moves sums between
/// sixteen registers and the stack.
template <class V>
HWY_INLINE void add_product(V& sum, V a, V b) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(hn::TFromV<V>) == 8)
    asm("vfmadd231pd %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "x"(b.raw));
  else
    asm("vfmadd231ps %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "x"(b.raw));
#else
  sum = hn::MulAdd(a, b, sum);
#endif
}

/// What was loaded for several sums stays loaded: gcc otherwise reads it again for each.
template <class V>
HWY_INLINE void keep_in_register(V& v) {
#if HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#else
  (void)v;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
