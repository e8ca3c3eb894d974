#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/nbits.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_digits.h"
#include "runtime/kernels/matmul/nbits.h"
#include "runtime/kernels/matmul/nbits_pairs.h"
#include "runtime/kernels/matmul/nbits_panel.h"
#include "runtime/kernels/matmul/nbits_pieces.h"
#include "runtime/kernels/matmul/nbits_round.h"
#include "runtime/kernels/pair_products-inl.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using U = hn::RebindToUnsigned<F>;
using V = hn::Vec<F>;

/// What codes stand for, but for the scale.
template <NbitsKind kKind>
class Weights {
 public:
  static constexpr int kBits = nbits_of(kKind);
  static constexpr int64_t kStep = nbits_step(kKind);
  static constexpr int64_t kWords = kKind == NbitsKind::kEight ? 2 : 1;

  explicit Weights(const NbitsPanel& p) {
    if constexpr (kKind == NbitsKind::kTable) {
      table_ = p.table;
#if HWY_TARGET <= HWY_AVX2
      const F f;
      low_ = hn::LoadU(f, table_);
      high_ = hn::LoadU(f, table_ + 16 - hn::Lanes(f));
#endif
    }
#if HWY_TARGET <= HWY_AVX3
    // The lookup takes four bits, whichever of them are the code's.
    if constexpr (kBits <= 4 && kKind != NbitsKind::kTable) {
      const hn::RebindToSigned<F> d;
      low_ = hn::ConvertTo(F(), hn::And(hn::Iota(d, 0), hn::Set(d, (1 << kBits) - 1)));
    }
#endif
  }
  /// The next block: its zero points, with 2^23 unless codes are looked up.
  void next(const NbitsPanel& p, int64_t lanes) {
    if constexpr (kKind != NbitsKind::kTable) {
      const U u;
      const hn::Rebind<uint8_t, U> bytes;
      const auto number = p.has_zeros ? hn::PromoteTo(u, hn::LoadU(bytes, p.zeros(lanes)))
                                      : hn::Set(u, 1u << (kBits - 1));
#if HWY_TARGET <= HWY_AVX3
      if constexpr (kBits <= 4) {
        zero_ = hn::ConvertTo(F(), hn::BitCast(hn::RebindToSigned<F>(), number));
        return;
      }
#endif
      zero_ = hn::BitCast(F(), hn::Or(number, hn::Set(u, 0x4B000000)));
    }
  }
  /// The words of 8 of the next kStep k: the even ones begin in the first, the odd ones in the
  /// second.
  void load(const uint32_t* words, int64_t lanes, int64_t eight) {
    const U u;
    even_ = hn::LoadU(u, words);
    if (kKind == NbitsKind::kTwo && eight == 1) even_ = hn::ShiftRight<2>(even_);
    odd_ = kWords == 2 ? hn::LoadU(u, words + lanes) : hn::ShiftRight<4>(even_);
  }
  V even() const { return weight(even_); }
  V odd() const { return weight(odd_); }
  void shift() {
    even_ = hn::ShiftRight<8>(even_);
    odd_ = hn::ShiftRight<8>(odd_);
  }

 private:
  /// The code in the lowest bits, less the zero point, exactly: it becomes the last bits of 2^23,
  /// from which 2^23 plus the zero point is taken.
  HWY_INLINE V weight(hn::Vec<U> word) const {
    const U u;
    if constexpr (kKind == NbitsKind::kTable) {
#if HWY_TARGET <= HWY_AVX3
      return V{_mm512_permutexvar_ps(word.raw, low_.raw)};
#elif HWY_TARGET == HWY_AVX2
      // The lookup takes three bits; the fourth says of which half.
      const V low{_mm256_permutevar8x32_ps(low_.raw, word.raw)};
      const V high{_mm256_permutevar8x32_ps(high_.raw, word.raw)};
      return V{_mm256_blendv_ps(low.raw, high.raw, hn::BitCast(F(), hn::ShiftLeft<28>(word)).raw)};
#else
      const hn::RebindToSigned<F> d;
      return hn::GatherIndex(F(), table_, hn::BitCast(d, hn::And(word, hn::Set(u, 15))));
#endif
#if HWY_TARGET <= HWY_AVX3
    } else if constexpr (kBits <= 4) {
      return hn::Sub(V{_mm512_permutexvar_ps(word.raw, low_.raw)}, zero_);
#endif
    } else {
      const auto code = hn::And(word, hn::Set(u, (1u << kBits) - 1));
      return hn::Sub(hn::BitCast(F(), hn::Or(code, hn::Set(u, 0x4B000000))), zero_);
    }
  }

  hn::Vec<U> even_, odd_;
  V zero_, low_, high_;
  const float* table_ = nullptr;
};

/// kR rows of a (lda apart, padded to whole blocks) times one panel.
template <NbitsKind kKind, int kR>
void panel_rows(NbitsPanel p, const float* HWY_RESTRICT a, int64_t lda, const float* bias,
                float* out, int64_t ldo, int64_t cols) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  Weights<kKind> weights(p);
  V total[kR];
  for (int r = 0; r < kR; ++r) total[r] = bias != nullptr ? load_n(f, bias, cols) : hn::Zero(f);
  const int64_t step = p.step(lanes);
  for (int64_t b = 0; b < p.blocks; ++b, p.at += step) {
    const uint32_t* words = p.words();
    const V scale = hn::LoadU(f, p.scales(lanes));
    weights.next(p, lanes);
    // Few rows have few sums: more of each are in flight.
    constexpr int kSets = kR <= 2 ? 2 : 1;
    V even[kSets][kR], odd[kSets][kR];
#pragma GCC unroll 2
    for (int set = 0; set < kSets; ++set)
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r) even[set][r] = odd[set][r] = hn::Zero(f);
    const float* x = a + b * p.block;
    const float* const end = x + p.block;
    for (; x < end; words += weights.kWords * lanes) {
      __builtin_prefetch(words + kNbitsAhead / 4);
      if constexpr (weights.kWords == 2) __builtin_prefetch(words + kNbitsAhead / 4 + lanes);
#pragma GCC unroll 2
      for (int64_t eight = 0; eight < weights.kStep / 8; ++eight, x += 8) {
        weights.load(words, lanes, eight);
#pragma GCC unroll 4
        for (int j = 0; j < 8; j += 2) {
          const V w0 = weights.even(), w1 = weights.odd();
          weights.shift();
          const int set = j / 2 % kSets;
#pragma GCC unroll 4
          for (int r = 0; r < kR; ++r) {
            even[set][r] = hn::MulAdd(hn::Set(f, x[r * lda + j]), w0, even[set][r]);
            odd[set][r] = hn::MulAdd(hn::Set(f, x[r * lda + j + 1]), w1, odd[set][r]);
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r) {
      V sum = hn::Add(even[0][r], odd[0][r]);
      if constexpr (kSets == 2) sum = hn::Add(sum, hn::Add(even[1][r], odd[1][r]));
      total[r] = hn::MulAdd(scale, sum, total[r]);
    }
  }
  for (int r = 0; r < kR; ++r) store_n(total[r], f, out + r * ldo, cols);
}

template <NbitsKind kKind>
void panel_of(const NbitsPanel& p, int rows, const float* a, int64_t lda, const float* bias,
              float* out, int64_t ldo, int64_t cols) {
  switch (rows) {
    case 1:
      return panel_rows<kKind, 1>(p, a, lda, bias, out, ldo, cols);
    case 2:
      return panel_rows<kKind, 2>(p, a, lda, bias, out, ldo, cols);
    case 3:
      return panel_rows<kKind, 3>(p, a, lda, bias, out, ldo, cols);
    default:
      return panel_rows<kKind, 4>(p, a, lda, bias, out, ldo, cols);
  }
}

void panel_any(const NbitsPanel& p, int rows, const float* a, int64_t lda, const float* bias,
               float* out, int64_t ldo, int64_t cols) {
  switch (p.kind) {
    case NbitsKind::kTwo:
      return panel_of<NbitsKind::kTwo>(p, rows, a, lda, bias, out, ldo, cols);
    case NbitsKind::kFour:
      return panel_of<NbitsKind::kFour>(p, rows, a, lda, bias, out, ldo, cols);
    case NbitsKind::kEight:
      return panel_of<NbitsKind::kEight>(p, rows, a, lda, bias, out, ldo, cols);
    case NbitsKind::kTable:
      return panel_of<NbitsKind::kTable>(p, rows, a, lda, bias, out, ldo, cols);
  }
}

/// Blocks [from, to) of a panel as floats: out[k][column], rows ldo apart.
template <NbitsKind kKind>
void widen_of(NbitsPanel p, int64_t from, int64_t to, float* HWY_RESTRICT out, int64_t ldo) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  Weights<kKind> weights(p);
  const int64_t step = p.step(lanes);
  p.at += from * step;
  for (int64_t b = from; b < to; ++b, p.at += step) {
    const uint32_t* words = p.words();
    const V scale = hn::LoadU(f, p.scales(lanes));
    weights.next(p, lanes);
    for (int64_t k = 0; k < p.block; k += weights.kStep, words += weights.kWords * lanes) {
#pragma GCC unroll 2
      for (int64_t eight = 0; eight < weights.kStep / 8; ++eight) {
        weights.load(words, lanes, eight);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j, out += 2 * ldo) {
          hn::StoreU(hn::Mul(weights.even(), scale), f, out);
          hn::StoreU(hn::Mul(weights.odd(), scale), f, out + ldo);
          weights.shift();
        }
      }
    }
  }
}

void widen(const NbitsPanel& p, int64_t from, int64_t to, float* out, int64_t ldo) {
  switch (p.kind) {
    case NbitsKind::kTwo:
      return widen_of<NbitsKind::kTwo>(p, from, to, out, ldo);
    case NbitsKind::kFour:
      return widen_of<NbitsKind::kFour>(p, from, to, out, ldo);
    case NbitsKind::kEight:
      return widen_of<NbitsKind::kEight>(p, from, to, out, ldo);
    case NbitsKind::kTable:
      return widen_of<NbitsKind::kTable>(p, from, to, out, ldo);
  }
}

/// Byte q of each of four vectors of words, side by side, to words q, as signed bytes.
template <typename W>
HWY_INLINE void transpose_bytes(const W (&v)[4], uint32_t* (&to)[4]) {
  const U u;
  const W even = hn::Set(u, 0x00FF00FFu), half = hn::Set(u, 0xFFFFu);
  const W sign = hn::Set(u, 0x80808080u);
  W pairs[2][2];  // of v[0] and v[1], of v[2] and v[3]: their even bytes, then the odd ones
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const W a = v[2 * i], b = v[2 * i + 1];
    pairs[i][0] = hn::Or(hn::And(a, even), hn::ShiftLeft<8>(hn::And(b, even)));
    pairs[i][1] = hn::Or(hn::And(hn::ShiftRight<8>(a), even), hn::AndNot(even, b));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const W a = pairs[0][i], b = pairs[1][i];
    hn::StoreU(hn::Xor(hn::Or(hn::And(a, half), hn::ShiftLeft<16>(b)), sign), u, to[i]);
    hn::StoreU(hn::Xor(hn::Or(hn::ShiftRight<16>(a), hn::AndNot(half, b)), sign), u, to[i + 2]);
  }
}

/// A panel of codes of 8 bits as the one digit of half a panel of gemm_digits.h, whose columns are
/// as many as a vector has there.
void codes_as_digits(const NbitsPanel& panel, uint32_t* out) {
  const U u;
  using W = hn::Vec<U>;
  constexpr int64_t kGroups = kDigitsDepth / 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(u));
  const int64_t of_block = panel.block / 8, groups = panel.blocks * of_block;
  const W middle = hn::Set(u, 0x80808080u);
  const std::byte* at = panel.at;
  const uint32_t* words = panel.words();
  int64_t left = of_block;
  for (int64_t g = 0; g < groups; g += kGroups, out += 16 * lanes) {
    W codes[kGroups][2];  // of eight k the even ones and the odd ones
    for (int64_t i = 0; i < kGroups; ++i) {
      const bool inside = g + i < groups;
      codes[i][0] = inside ? hn::LoadU(u, words) : middle;
      codes[i][1] = inside ? hn::LoadU(u, words + lanes) : middle;
      words += 2 * lanes;
      if (--left > 0) continue;
      at += panel.step(lanes);
      words = reinterpret_cast<const uint32_t*>(at);
      left = of_block;
    }
    for (int64_t first = 0; first < 2; ++first)
      for (int64_t odd = 0; odd < 2; ++odd) {
        const W four[4] = {codes[first][odd], codes[2 + first][odd], codes[4 + first][odd],
                           codes[6 + first][odd]};
        uint32_t* to[4];
        for (int64_t q = 0; q < 4; ++q) to[q] = out + (8 * first + 2 * q + odd) * lanes;
        transpose_bytes(four, to);
      }
  }
}

#if HWY_ARCH_X86
/// Products of unsigned bytes and signed ones, two added in 16 bits.
template <class V>
HWY_INLINE V pairs(V codes, V bytes) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_maddubs_epi16(codes.raw, bytes.raw)};
#elif HWY_TARGET == HWY_AVX2
  return V{_mm256_maddubs_epi16(codes.raw, bytes.raw)};
#else
  return V{_mm_maddubs_epi16(codes.raw, bytes.raw)};
#endif
}
/// Codes times bytes without VNNI. Sums of 16 bits are safe: two products of 4 bits and a byte are
/// 3,840 at most, and eight of those fit; of 2 bits, 768, and 32 do. Codes of 8 bits go by halves.
/// kShort: of blocks of 32.
template <NbitsKind kKind, bool kShort, int kR>
void bytes_tile(const NbitsTile& t) {
  constexpr bool kEight = kKind == NbitsKind::kEight, kTwo = kKind == NbitsKind::kTwo;
  constexpr int64_t kSafe = kTwo ? 128 : 32;  ///< k
  const F f;
  const hn::RebindToSigned<F> d;
  const hn::Repartition<int16_t, F> d16;
  using W = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr int64_t kAhead = kR <= kNbitsFewRows ? kNbitsAhead : 2048;
  constexpr int64_t kWords = kEight ? 2 : 1;
  const auto mask = hn::Set(d, kTwo ? 0x03030303 : 0x0F0F0F0F);
  const auto ones = hn::Set(d16, 1);
  const auto word_at = [&](const std::byte* p) HWY_ATTR {
    int32_t word;
    std::memcpy(&word, p, 4);
    return hn::Set(d, word);
  };
  const auto product = [&](W codes, const std::byte* p)
                           HWY_ATTR { return hn::BitCast(d16, pairs(codes, word_at(p))); };
  V total[kR];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) total[r] = t.bias != nullptr ? hn::LoadU(f, t.bias) : hn::Zero(f);
  NbitsPanel p{t.panel, t.blocks, t.block, t.has_zeros, t.kind, nullptr};
  const int64_t step = p.step(lanes);
  const std::byte* a = t.a;
  for (int64_t b = 0; b < t.blocks; ++b, p.at += step) {
    const hn::Rebind<uint8_t, F> bytes;
    const auto zero = t.has_zeros ? hn::PromoteTo(d, hn::LoadU(bytes, p.zeros(lanes)))
                                  : hn::Set(d, 1 << (nbits_of(kKind) - 1));
    W sum[kR];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      // Of so short a block both have 16 bits.
      const W less = word_at(a + 4 * r);
      sum[r] = kShort || t.block <= 256
                   ? pair_products(hn::BitCast(d16, zero), hn::BitCast(d16, less))
                   : hn::Mul(zero, less);
    }
    const std::byte* const scales = a + 4 * kR;
    a += 8 * kR;
    const uint32_t* words = p.words();
    const int64_t block = kShort ? 32 : t.block;
    for (int64_t k = 0; k < block; k += kSafe) {
      hn::Vec<decltype(d16)> part[kR], high[kR];
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) part[r] = high[r] = hn::Zero(d16);
      const auto add_eight = [&](auto word) HWY_ATTR {
        const auto first = hn::And(word, mask), second = hn::And(hn::ShiftRight<4>(word), mask);
        if constexpr (kEight) {
          const auto odd = hn::BitCast(d, hn::LoadU(U(), words + lanes));
          const auto third = hn::And(odd, mask), fourth = hn::And(hn::ShiftRight<4>(odd), mask);
#pragma GCC unroll 8
          for (int r = 0; r < kR; ++r) {
            part[r] =
                hn::Add(part[r], hn::Add(product(first, a + 8 * r), product(third, a + 8 * r + 4)));
            high[r] = hn::Add(high[r],
                              hn::Add(product(second, a + 8 * r), product(fourth, a + 8 * r + 4)));
          }
        } else {
#pragma GCC unroll 8
          for (int r = 0; r < kR; ++r)
            part[r] = hn::Add(part[r],
                              hn::Add(product(first, a + 8 * r), product(second, a + 8 * r + 4)));
        }
        a += 8 * kR;
      };
      const auto add_words = [&]() HWY_ATTR {
        __builtin_prefetch(reinterpret_cast<const std::byte*>(words) + kAhead);
        add_eight(hn::BitCast(d, hn::LoadU(U(), words)));
        if constexpr (kTwo) {
          asm("" : "+r"(words));  // read once more: all registers hold sums
          add_eight(hn::ShiftRight<2>(hn::BitCast(d, hn::LoadU(U(), words))));
        }
        words += kWords * lanes;
      };
      constexpr int64_t kStep = nbits_step(kKind);
      if constexpr (kShort) {
        for (int64_t i = 0; i < 32; i += kStep) add_words();
      } else {
        for (int64_t j = k; j < k + kSafe && j < block; j += kStep) add_words();
      }
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        sum[r] = hn::Add(sum[r], pair_products(part[r], ones));
        if constexpr (kEight)
          sum[r] = hn::Add(sum[r], hn::ShiftLeft<4>(pair_products(high[r], ones)));
      }
    }
    const V scale = hn::LoadU(f, p.scales(lanes));
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const V row_scale = hn::BitCast(f, word_at(scales + 4 * r));
      total[r] = hn::MulAdd(hn::Mul(scale, hn::ConvertTo(f, sum[r])), row_scale, total[r]);
    }
  }
  for (int r = 0; r < kR; ++r) store_n(total[r], f, t.y + r * t.ldy, t.cols);
}

/// Rows whose parts have registers; what is added to once a block may be in memory.
constexpr int kBytesRows = HWY_TARGET == HWY_AVX3 ? 8 : 6;
template <NbitsKind kKind, bool kShort>
constexpr std::array<void (*)(const NbitsTile&), kBytesRows> kBytesTiles = [
]<int... kR>(std::integer_sequence<int, kR...>) {
  return std::array<void (*)(const NbitsTile&), kBytesRows>{&bytes_tile<kKind, kShort, kR + 1>...};
}
(std::make_integer_sequence<int, kBytesRows>());
void bytes_tiles(const NbitsTile& t, int rows) {
  const auto run = [&]<NbitsKind kKind>() {
    const auto& tiles = t.block == 32 ? kBytesTiles<kKind, true> : kBytesTiles<kKind, false>;
    tiles[static_cast<size_t>(rows - 1)](t);
  };
  if (t.kind == NbitsKind::kTwo) return run.template operator()<NbitsKind::kTwo>();
  if (t.kind == NbitsKind::kEight) return run.template operator()<NbitsKind::kEight>();
  run.template operator()<NbitsKind::kFour>();
}
int bytes_rows() { return kBytesRows; }
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
int nbits_panel() { return vector_floats(); }

namespace {

/// How rows of bytes meet panels.
struct Tiling {
  NbitsTileFn* tile = nullptr;  ///< null: this processor has none
  int rows = 1;                 ///< at most at a time
  bool pairs = false;           ///< two panels at a time
};

/// For so many rows. Few would wait for their bytes to be read again for each panel, unless panels
/// are one stream; many that are read for each panel keep AMD's two loads a cycle busier than its
/// products (4.9 of 8 in a cycle, 6 by pairs), where Intel's have no time left beside the products.
Tiling nbits_tiling(int64_t rows) {
  if (NbitsTileFn* const tile = nbits_vnni_tile()) {
    const bool few = rows <= kNbitsFewRows, pairs = few != reads_one_stream();
    return {tile, pairs && !few ? kNbitsPairRows : kNbitsRows, pairs};
  }
#if HWY_ARCH_X86
  return {TOMBOLO_TARGET(NbitsTileFn, bytes_tiles).get(), TOMBOLO_TARGET(int(), bytes_rows)()};
#else
  return {};
#endif
}

}  // namespace

bool nbits_has_bytes() { return nbits_tiling(1).tile != nullptr; }

namespace {

/// Whether blocks of rows can be bytes that meet these codes.
bool rows_fit_bytes(const NbitsShape& s) {
  return s.kind != NbitsKind::kTable && s.block % 16 == 0;
}

}  // namespace

bool nbits_may_round(const NbitsShape& s, int64_t accuracy_level, bool fast_math) {
  constexpr int64_t kShort = 128;
  const bool asked = accuracy_level == 4 || (fast_math && s.block <= kShort);
  return asked && rows_fit_bytes(s) && nbits_has_bytes();
}

namespace {

constexpr int64_t kMostPanel = 16;

/// Rows as bytes, `kParts` for each of their numbers, times the panels. False where a row has no
/// such parts.
template <int64_t kParts>
bool rows_by_parts(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                   const float* bias, float* y) {
  const int64_t width = nbits_panel(), panels = nbits_panels(s), blocks = s.blocks();
  const int64_t padded = blocks * s.block, panel_bytes = nbits_panel_bytes(s);
  const auto [tile, most, pairs] = nbits_tiling(m * kParts);
  const int64_t fit = most / kParts;
  const int64_t tiles = (m + fit - 1) / fit, height = (m + tiles - 1) / tiles;
  const int64_t row_bytes = blocks * (8 + s.block) * kParts;
  // Whole words: blocks are of whole 16.
  auto* const rows =
      reinterpret_cast<std::byte*>(thread_floats(4, static_cast<size_t>(m * row_bytes / 4)));
  std::atomic<bool> fine = true;
  parallel(m, std::max<int64_t>(1, 16384 / padded), [&](int64_t begin, int64_t end) {
    NbitsRoundFn* const round = nbits_round(kParts);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / height * height, r = (i - first) * kParts;
      const int64_t tall = std::min(height, m - first) * kParts;
      std::byte* to = rows + first * row_bytes;
      for (int64_t k = 0; k < padded; k += s.block, to += tall * (8 + s.block)) {
        int32_t less[kParts];
        float scale = round(a + i * s.k + k, std::min(s.block, s.k - k), s.block,
                            to + 8 * tall + 8 * r, 8 * tall, less);
        if (kParts > 1 && !std::isfinite(scale)) fine = false;
        for (int64_t part = kParts; part-- > 0; scale *= 256) {
          std::memcpy(to + 4 * (r + part), &less[part], 4);
          std::memcpy(to + 4 * (tall + r + part), &scale, 4);
        }
      }
    }
  });
  if (!fine) return false;
  parallel(panels, std::max<int64_t>(1, kWorthATurn / (padded * width * m)),
           [&](int64_t begin, int64_t end) {
             float sums[kParts == 1 ? 1 : kNbitsRows * 2 * kMostPanel];
             for (int64_t p = begin, count = 1; p < end; p += count) {
               count = pairs && p + 1 < end ? 2 : 1;
               const int64_t cols = std::min(count * width, s.n - p * width);
               float padded_bias[2 * kMostPanel] = {};
               if (bias != nullptr) std::copy_n(bias + p * width, cols, padded_bias);
               const std::byte* const panel = nbits_panel_at(s, packed, p).at;
               // Each tile asks for its part of both panels that come next.
               const int64_t part = panel_bytes / tiles;
               const std::byte* next = p + count < end ? panel + count * panel_bytes : panel;
               for (int64_t r = 0; r < m; r += height, next += part) {
                 const int64_t tall = std::min(height, m - r);
                 float* out = y + r * s.n + p * width;
                 tile({.a = rows + r * row_bytes,
                       .panel = panel,
                       .kind = s.kind,
                       .has_zeros = s.has_zeros,
                       .blocks = blocks,
                       .block = s.block,
                       .bias = kParts == 1 && bias != nullptr ? padded_bias : nullptr,
                       .y = kParts == 1 ? out : sums,
                       .ldy = kParts == 1 ? s.n : count * width,
                       .cols = cols,
                       .panel_step = count == 2 ? panel_bytes : 0,
                       .next = next,
                       .next_step = std::min<int64_t>(64, (part * 8 + padded - 1) / padded),
                       .next_also = panel_bytes},
                      static_cast<int>(tall * kParts));
                 if (kParts > 1)
                   nbits_add_parts(sums, count * width, tall, padded_bias, out, s.n, cols);
               }
             }
           });
  return true;
}

/// The same for any number of rows: as bytes all of them stay in a cache that threads share.
template <int64_t kParts>
bool gemm_parts(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                const float* bias, float* y) {
  const int64_t row_bytes = s.blocks() * (8 + s.block) * kParts;
  const int64_t most = std::max<int64_t>(kNbitsRows, 8 * near_bytes() / row_bytes);
  const int64_t row_blocks = (m + most - 1) / most;
  for (int64_t i = 0; i < row_blocks; ++i) {
    const int64_t from = m * i / row_blocks, rows = m * (i + 1) / row_blocks - from;
    if (!rows_by_parts<kParts>(s, rows, a + from * s.k, packed, bias, y + from * s.n)) return false;
  }
  return true;
}

/// Whether three products of bytes take less time than one of floats, for which codes are widened
/// first: unless many rows share that, sums are of short blocks, or so few columns meet the bytes
/// of a row that making them takes longer. Without VNNI only those of a row or two with codes of 2
/// or 4 bits.
bool parts_pay(const NbitsShape& s, int64_t m) {
  if (nbits_vnni_tile() == nullptr)
    return m <= 2 && s.kind != NbitsKind::kEight && s.n >= 40 * m && nbits_has_bytes();
  // In quarters of what a product of floats takes, per row and k: what a column gains, less what a
  // block and a result cost, against what it takes to split a number. One row or two share nothing,
  // of up to eight both ways take as long for a result.
  const auto rows = static_cast<double>(m), block = static_cast<double>(s.block);
  const double split = (160 + 2430 / block) * std::min(1.0, rows / 3);
  if (!reads_one_stream()) return m * 8 <= s.block * 3 && static_cast<double>(s.n) >= split / 2;
  const double gain = 1 + 14 / std::max(rows, 12.0) - (s.has_zeros ? 39 : 29) / block -
                      117 * std::max(0.0, 1 - 8 / rows) / static_cast<double>(s.k);
  return static_cast<double>(s.n) * gain >= split;
}

/// Blocks [from, to) of `columns` columns, those of whole panels, as floats: out[k][column], rows
/// `columns` long. Columns that are not there are zeros.
void widen_columns(const NbitsShape& s, const std::byte* packed, int64_t first, int64_t columns,
                   int64_t from, int64_t to, float* out) {
  using Fn = void(const NbitsPanel&, int64_t, int64_t, float*, int64_t);
  Fn* const widen_panel = TOMBOLO_TARGET(Fn, widen).get();
  const int64_t width = nbits_panel();
  if (first + columns > s.n) std::fill_n(out, (to - from) * s.block * columns, 0.0f);
  for (int64_t at = 0; at < columns && first + at < s.n; at += width)
    widen_panel(nbits_panel_at(s, packed, (first + at) / width), from, to, out + at, columns);
}

/// What zero points that are not in the middle add to products by codes less the middle: the sum of
/// a row times a number of the column.
class ZeroTerms {
 public:
  ZeroTerms(const NbitsShape& s, const std::byte* packed, int64_t m, const float* a)
      : sums_(static_cast<size_t>(m)), columns_(static_cast<size_t>(s.n)) {
    constexpr int64_t kLanes = 8;
    parallel(m, std::max<int64_t>(1, 65536 / s.k), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* x = a + row * s.k;
        double some[kLanes] = {};
        int64_t i = 0;
        for (; i + kLanes <= s.k; i += kLanes)
          for (int64_t lane = 0; lane < kLanes; ++lane)
            some[lane] += static_cast<double>(x[i + lane]);
        for (; i < s.k; ++i) some[0] += static_cast<double>(x[i]);
        sums_[static_cast<size_t>(row)] =
            static_cast<float>(std::accumulate(std::begin(some), std::end(some), 0.0));
      }
    });
    const int64_t width = nbits_panel();
    for (int64_t c = 0; c < s.n; ++c) {
      const NbitsPanel panel = nbits_panel_at(s, packed, c / width);
      columns_[static_cast<size_t>(c)] =
          panel.scales(width)[c % width] * static_cast<float>(128 - panel.zeros(width)[c % width]);
    }
  }
  BlockPost post() const { return {&apply, this}; }
  bool finite() const {
    return std::all_of(sums_.begin(), sums_.end(), [](float sum) { return std::isfinite(sum); });
  }

 private:
  static void apply(const void* argument, float* c, int64_t ldc, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
    const auto& self = *static_cast<const ZeroTerms*>(argument);
    const float* const terms = self.columns_.data() + column;
    for (int64_t r = 0; r < rows; ++r) {
      const float sum = self.sums_[static_cast<size_t>(row + r)];
      for (int64_t i = 0; i < columns; ++i) c[r * ldc + i] += sum * terms[i];
    }
  }

  std::vector<float> sums_, columns_;
};

/// Panels as floats, for gemm_digits().
struct WidePanels {
  const NbitsShape& shape;
  const std::byte* packed;

  static const float* panel(const void* argument, int64_t panel, float* room) {
    const auto& [s, packed] = *static_cast<const WidePanels*>(argument);
    const int64_t first = panel * kDigitsWidth;
    widen_columns(s, packed, first, kDigitsWidth, 0, s.blocks(), room);
    return room;
  }
  /// Where NbitsShape::one_scale.
  static void bytes(const void* argument, int64_t panel, int64_t half, std::byte* to,
                    float* scales) {
    const auto& [s, packed] = *static_cast<const WidePanels*>(argument);
    std::fill_n(scales, kDigitsWidth, 0.0f);
    for (int64_t i = 0; i < 2; ++i, to += half) {
      const int64_t at = 2 * panel + i;
      if (at * kDigitsHalf >= s.n) {
        std::memset(to, 0, static_cast<size_t>(half));
        continue;
      }
      const NbitsPanel codes = nbits_panel_at(s, packed, at);
      std::copy_n(codes.scales(kDigitsHalf), std::min(kDigitsHalf, s.n - at * kDigitsHalf),
                  scales + i * kDigitsHalf);
      TOMBOLO_TARGET(void(const NbitsPanel&, uint32_t*), codes_as_digits)
      (codes, reinterpret_cast<uint32_t*>(to));
    }
  }
};

DigitPanels digit_panels(const NbitsShape& s) { return {s.k, s.n, 1}; }

}  // namespace

bool nbits_digits_fit(const NbitsShape& s, int64_t m) {
  return s.one_scale && !s.has_zeros && s.k % s.block == 0 && digits_pay_for_bytes(m, s.n, s.k);
}
size_t nbits_digit_bytes(const NbitsShape& s) {
  return static_cast<size_t>(digit_panels(s).bytes());
}
void nbits_pack_digits(const NbitsShape& s, const std::byte* packed, std::byte* digits) {
  const DigitPanels all = digit_panels(s);
  const WidePanels wide{s, packed};
  parallel(all.panels(), std::max<int64_t>(1, 65536 / (s.k * kDigitsWidth)),
           [&](int64_t begin, int64_t end) {
             for (int64_t p = begin; p < end; ++p)
               WidePanels::bytes(&wide, p, all.half(), digits + all.scales() + p * 2 * all.half(),
                                 reinterpret_cast<float*>(digits) + p * kDigitsWidth);
           });
}
void nbits_gemm_digits(const NbitsShape& s, int64_t m, const float* a, const std::byte* digits,
                       const float* bias, float* y) {
  GemmEpilogue epilogue;
  epilogue.col_bias = bias;
  gemm_digits(m, a, s.k, digits, digit_panels(s), y, s.n, epilogue);
}

void nbits_gemm(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                const float* bias, float* y) {
  const int64_t width = nbits_panel(), panels = nbits_panels(s), blocks = s.blocks();
  const int64_t padded = blocks * s.block;
  bool digits = s.one_scale && digits_pay_for_bytes(m, s.n, padded);
  std::optional<ZeroTerms> zeros;
  // An infinity has a sign that its terms would not agree on.
  if (digits && s.has_zeros) digits = zeros.emplace(s, packed, m, a).finite();
  if (!digits && nbits_pieces_fit(s, m) && nbits_gemm_pieces(s, m, a, packed, bias, y)) return;
  if (!digits && parts_pay(s, m) && rows_fit_bytes(s) && s.block <= 1 << 15 &&
      gemm_parts<3>(s, m, a, packed, bias, y))
    return;
  if (nbits_vnni_tile() == nullptr && nbits_pairs_fit(s, m) &&
      nbits_gemm_pairs(s, m, a, packed, bias, y))
    return;
  // Rows of whole blocks.
  std::vector<float> copy;
  if (padded != s.k) {
    copy.assign(static_cast<size_t>(m * padded), 0.0f);
    for (int64_t i = 0; i < m; ++i) std::copy_n(a + i * s.k, s.k, copy.data() + i * padded);
    a = copy.data();
  }
  if (m <= 8) {
    using Fn =
        void(const NbitsPanel&, int, const float*, int64_t, const float*, float*, int64_t, int64_t);
    Fn* const run = TOMBOLO_TARGET(Fn, panel_any).get();
    parallel(panels, std::max<int64_t>(1, 65536 / (padded * width)),
             [&](int64_t begin, int64_t end) {
               for (int64_t p = begin; p < end; ++p) {
                 const NbitsPanel panel = nbits_panel_at(s, packed, p);
                 const int64_t cols = std::min(width, s.n - p * width);
                 for (int64_t r = 0; r < m; r += 4) {
                   const int rows = static_cast<int>(std::min<int64_t>(4, m - r));
                   const float* more = bias != nullptr ? bias + p * width : nullptr;
                   const float* x = a + r * padded;
                   float* out = y + r * s.n + p * width;
                   run(panel, rows, x, padded, more, out, s.n, cols);
                 }
               }
             });
    // Codes times the greatest of floats are too much for one before their scale makes less of
    // them: those are widened with it.
    if (std::all_of(y, y + m * s.n, [](float v) { return std::isfinite(v); })) return;
  }
  if (digits || digits_pay_for_floats(m, s.n, padded)) {
    const WidePanels wide{s, packed};
    GemmEpilogue epilogue;
    epilogue.col_bias = bias;
    BlockPost post = {};
    if (digits && zeros) {
      post = zeros->post();
      epilogue.post = &post;
    }
    return gemm_digits(m, s.n, padded, a, padded,
                       {&WidePanels::panel, &wide, digits ? &WidePanels::bytes : nullptr}, y, s.n,
                       epilogue);
  }
  // Many rows: widen a few panels for a stretch of k, then products of floats with rows that stay
  // near.
  const GemmTiles& tiles = gemm_tiles();
  const int64_t wide = tiles.panel(), count = (s.n + wide - 1) / wide;
  const int64_t step = std::max<int64_t>(1, 256 / s.block);
  // To widen a panel takes as long as to multiply it by ten rows: many share it, even if not all of
  // them stay in the second cache.
  constexpr int64_t kShare = 128;
  const int64_t near = std::max<int64_t>(kShare, near_bytes() / (padded * 4));
  const int64_t row_blocks = (m + near - 1) / near;
  const bool packs = tiles.packs_rows;
  const bool spreads = !packs && rows_collide(padded);
  const int64_t lda = spreads ? padded + 16 : padded;
  const int64_t panel_floats = nbits_panel_bytes(s) / 4, block_floats = panel_floats / blocks;
  // The codes of panel q from block b on; those of its second half lie panel_floats behind them.
  const auto codes_at = [&](int64_t q, int64_t b) {
    return reinterpret_cast<const float*>(packed) + q * (wide / width) * panel_floats +
           b * block_floats;
  };
  // Rows [top, end), as tiles read them, times panel q.
  const auto multiply = [&](int64_t top, int64_t end, const float* rows, int64_t q, float* room) {
    const int64_t cols = std::min(wide, s.n - q * wide);
    const int tile_rows = tiles.tile_rows(end - top);
    for (int64_t b = 0; b < blocks; b += step) {
      const int64_t last = std::min(blocks, b + step), depth = (last - b) * s.block;
      widen_columns(s, packed, q * wide, wide, b, last, room);
      GemmTile tile{.lda = packs ? tile_rows : lda,
                    .b = room,
                    .ldb = wide,
                    .k = std::min(depth, s.k - b * s.block),
                    .ldc = s.n,
                    .cols = cols,
                    .ldi = s.n,
                    .next = room};
      // The first tile asks for the codes that are widened next: nothing else does in time.
      if (last < blocks || q + 1 < count) {
        tile.next = last < blocks ? codes_at(q, last) : codes_at(q + 1, 0);
        tile.next_step = (step * block_floats + depth - 1) / depth;
        tile.next_also = panel_floats;
      }
      if (b == 0 && bias != nullptr) tile.col_bias = bias + q * wide;
      for (int64_t r = 0; r < end - top; r += tile_rows) {
        const int some = static_cast<int>(std::min<int64_t>(tile_rows, end - top - r));
        tile.a = packs ? rows + r * padded + b * s.block * tile_rows : rows + r * lda + b * s.block;
        tile.c = y + (top + r) * s.n + q * wide;
        if (b != 0) tile.init = tile.c;
        (packs ? tiles.packed_tile(some, cols) : tiles.row_major_tile(some, cols))(tile);
        tile.next = room;
      }
    }
  };
  for (int64_t i = 0; i < row_blocks; ++i) {
    const int64_t top = m * i / row_blocks, end = m * (i + 1) / row_blocks, height = end - top;
    const float* rows = a + top * padded;
    if (packs) {
      float* const tall = thread_floats(4, static_cast<size_t>(packed_a_floats(height, padded)));
      pack_a(rows, padded, 1, height, padded, tall);
      rows = tall;
    } else if (spreads) {
      float* const apart = thread_floats(4, static_cast<size_t>(height * lda));
      for (int64_t r = 0; r < height; ++r) std::copy_n(rows + r * padded, padded, apart + r * lda);
      rows = apart;
    }
    parallel(count, 1, [&](int64_t begin, int64_t last) {
      float* room = thread_floats(1, static_cast<size_t>(step * s.block * wide) + 64);
      for (int64_t q = begin; q < last; ++q) multiply(top, end, rows, q, room);
    });
  }
}

namespace {

/// Many rows with AMX: weights become bf16 once for all of them, and so do the
/// rows. That keeps more of the numbers than bytes do.
void gemm_bf16(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
               const float* bias, float* y) {
  constexpr int64_t kWide = 32;
  const int64_t panels = nbits_panels(s), blocks = s.blocks(), padded = blocks * s.block;
  // Rows of a tile begin in lines of their own, and not all in one set of the caches.
  const int64_t depth = padded * 2, lda = (depth + 63) / 64 * 64 + 64, tall = (m + 31) / 32 * 32;
  std::vector<std::byte> memory(static_cast<size_t>(tall * lda + 64));
  std::byte* const rows =
      memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  parallel(m, std::max<int64_t>(1, 16384 / padded), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) round_bf16(a + i * s.k, s.k, rows + i * lda);
  });
  const int64_t chunk = amx_chunk(depth), chunks = depth / chunk;
  parallel((s.n + kWide - 1) / kWide, 1, [&](int64_t begin, int64_t end) {
    auto* room = reinterpret_cast<std::byte*>(
        thread_floats(1, static_cast<size_t>(padded * kWide / 2 + 64)));
    alignas(64) float sums[32 * kWide];
    const int64_t start = 0;
    amx_begin(chunk);
    for (int64_t q = begin; q < end; ++q) {
      const int64_t columns = std::min(kWide, s.n - q * kWide);
      const bool two = 2 * q + 1 < panels;
      nbits_widen_bf16(s, nbits_panel_at(s, packed, 2 * q).at,
                       two ? nbits_panel_at(s, packed, 2 * q + 1).at : nullptr, room);
      for (int64_t r = 0; r < m; r += 32) {
        const std::byte* from = rows + r * lda;
        amx_tile({{from, from + 16 * lda}, {lda, lda}, room, chunks, &start, 1, sums},
                 m - r > 16 ? 2 : 1, columns, AmxKind::kBf16);
        for (int64_t i = 0; i < std::min<int64_t>(32, m - r); ++i) {
          float* to = y + (r + i) * s.n + q * kWide;
          const float* sum = sums + i * kWide;
          if (bias == nullptr)
            std::copy_n(sum, columns, to);
          else
            for (int64_t c = 0; c < columns; ++c) to[c] = sum[c] + bias[q * kWide + c];
        }
      }
    }
    amx_end();
  });
}

}  // namespace

void nbits_gemm_bytes(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y) {
  // Blocks of 32 and more are whole tiles.
  if (m >= 24 && s.block % 32 == 0 && has_amx_bf16()) return gemm_bf16(s, m, a, packed, bias, y);
  gemm_parts<1>(s, m, a, packed, bias, y);
}

}  // namespace tombolo
#endif
