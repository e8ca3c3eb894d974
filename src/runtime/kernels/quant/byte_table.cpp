#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/byte_table.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/quant/byte_table.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3
/// The table as 128 words in four vectors, of which a lookup takes two: first the words, then the
/// byte of each.
void look_up_any(const uint8_t* table, const uint8_t* x, int64_t n, uint8_t* y) {
  const hn::ScalableTag<uint8_t> d8;
  const hn::ScalableTag<uint16_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d8));
  V words[4];
  for (int i = 0; i < 4; ++i) words[i] = hn::BitCast(d, hn::LoadU(d8, table + i * lanes));
  const V one = hn::Set(d, 1), low = hn::Set(d, 0xFF), half = hn::Set(d, 127);
  const auto look = [&](V code) HWY_ATTR __attribute__((always_inline)) {
    const V at = hn::ShiftRight<1>(code);  // of which the lookup takes six bits
    const V first{_mm512_permutex2var_epi16(words[0].raw, at.raw, words[1].raw)};
    const V second{_mm512_permutex2var_epi16(words[2].raw, at.raw, words[3].raw)};
    const V word = hn::IfThenElse(hn::Gt(code, half), second, first);
    return hn::Shr(word, hn::ShiftLeft<3>(hn::And(code, one)));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V codes = hn::BitCast(d, hn::LoadU(d8, x + i));
    const V even = hn::And(look(hn::And(codes, low)), low), odd = look(hn::ShiftRight<8>(codes));
    hn::StoreU(hn::BitCast(d8, hn::Or(even, hn::ShiftLeft<8>(odd))), d8, y + i);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}
#elif HWY_ARCH_X86
/// Sixteen at a time: a lookup takes the lower four bits of an index that is not negative, and
/// gives zero for others. So an index meets its own part of the table and those before it in its
/// half, and each part is kept as what it differs by from the one before.
void look_up_any(const uint8_t* table, const uint8_t* x, int64_t n, uint8_t* y) {
  const hn::ScalableTag<uint8_t> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN uint8_t parts[256];
  for (int i = 0; i < 256; ++i)
    parts[i] = i % 128 < 16 ? table[i] : static_cast<uint8_t>(table[i] ^ table[i - 16]);
  const auto half = hn::Set(di, int8_t{-128}), part = hn::Set(di, int8_t{16});
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto low = hn::BitCast(di, hn::LoadU(d, x + i)), high = hn::Xor(low, half);
    auto first = hn::Zero(d), second = hn::Zero(d);
#pragma GCC unroll 8
    for (int at = 0; at < 128; at += 16) {
      first = hn::Xor(first,
                      hn::TableLookupBytesOr0(hn::LoadDup128(d, parts + at), hn::BitCast(d, low)));
      second = hn::Xor(second, hn::TableLookupBytesOr0(hn::LoadDup128(d, parts + 128 + at),
                                                       hn::BitCast(d, high)));
      low = hn::SaturatedSub(low, part);
      high = hn::SaturatedSub(high, part);
    }
    hn::StoreU(hn::Xor(first, second), d, y + i);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}
#else
/// Sixteen at a time: an index outside of a part of the table gets its highest bit set, for which
/// a lookup gives zero.
void look_up_any(const uint8_t* table, const uint8_t* x, int64_t n, uint8_t* y) {
  const hn::ScalableTag<uint8_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V far = hn::Set(d, 0x70);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V codes = hn::LoadU(d, x + i);
    V result = hn::Zero(d);
    for (int part = 0; part < 256; part += 16) {
      V at = hn::SaturatedAdd(hn::Xor(codes, hn::Set(d, static_cast<uint8_t>(part))), far);
      at = hn::And(at, hn::Set(d, 0x8F));  // an index from 16 on is outside as well
      result = hn::Or(result, hn::TableLookupBytesOr0(hn::LoadDup128(d, table + part), at));
    }
    hn::StoreU(result, d, y + i);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void look_up_bytes(const uint8_t* table, const uint8_t* x, int64_t n, uint8_t* y) {
  using Fn = void(const uint8_t*, const uint8_t*, int64_t, uint8_t*);
  TOMBOLO_TARGET(Fn, look_up_any)(table, x, n, y);
}

}  // namespace tombolo
#endif
