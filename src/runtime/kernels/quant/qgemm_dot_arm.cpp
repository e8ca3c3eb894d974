// The tile of byte products with Arm's dot products of signed bytes, which Highway does not know
// yet. Functions carry their target; nothing else in this file uses it.
//
// The unsigned side is turned: u - 128 is signed, and what it lacks is 128 times the sum of the
// other side.

#include <cstring>
#include <utility>

#include "runtime/kernels/quant/qgemm.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define TOMBOLO_ARM_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define TOMBOLO_INLINE TOMBOLO_ARM_DOT inline __attribute__((always_inline))

namespace tombolo {
namespace {

constexpr int kRows = 8;      ///< times two vectors of sums, of rows and of what those lack
constexpr int kVectors = 4;   ///< of a panel, two at a time
constexpr int kColumns = 16;  ///< of a panel

TOMBOLO_INLINE int8x16_t load(const std::byte* p, uint8x16_t turn) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)), turn));
}
/// One group, four times.
TOMBOLO_INLINE int8x16_t load_group(const std::byte* p, uint8x16_t turn) {
  uint32_t group;
  std::memcpy(&group, p, 4);
  return vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(group)), turn));
}

/// 128 times the sum of each of so many rows.
template <int kR>
TOMBOLO_INLINE void sums_of_rows(const QTile& t, int32_t (&sums)[kR]) {
  for (int r = 0; r < kR; ++r) {
    int32x4_t sum = vdupq_n_s32(0);
    int32_t rest = 0;
    for (int64_t s = 0; s < t.stretches; ++s) {
      const auto* a = reinterpret_cast<const int8_t*>(t.a) + r * t.lda +
                      (t.offsets != nullptr ? t.offsets[s] : 0);
      int64_t i = 0;
      for (; i + 16 <= 4 * t.groups; i += 16) sum = vdotq_s32(sum, vld1q_s8(a + i), vdupq_n_s8(1));
      for (; i < 4 * t.groups; ++i) rest += a[i];
    }
    sums[r] = 128 * (vaddvq_s32(sum) + rest);
  }
}

/// What is turned of rows and of panels.
template <bool kUnsignedRows>
struct Turn {
  uint8x16_t rows = vdupq_n_u8(kUnsignedRows ? 0x80 : 0);
  uint8x16_t panel = vdupq_n_u8(kUnsignedRows ? 0 : 0x80);
};

/// A group of the panel at `b`, and the one of each row that is so far in its register.
template <int kR, bool kUnsignedRows, int kLane>
TOMBOLO_INLINE void add_group(const Turn<kUnsignedRows>& turn, const int8x16_t (&rows)[kR],
                              const std::byte* b, int32x4_t (&acc)[kR][2], int32x4_t (&down)[2]) {
  const std::byte* const at = b + kLane * 4 * kColumns;
  const int8x16_t b0 = load(at, turn.panel), b1 = load(at + 16, turn.panel);
  if constexpr (kUnsignedRows) {
    down[0] = vdotq_s32(down[0], b0, vdupq_n_s8(1));
    down[1] = vdotq_s32(down[1], b1, vdupq_n_s8(1));
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    acc[r][0] = vdotq_laneq_s32(acc[r][0], b0, rows[r], kLane);
    acc[r][1] = vdotq_laneq_s32(acc[r][1], b1, rows[r], kLane);
  }
}

/// Groups that lie side by side in rows and below one another in the panel: four in a register of
/// each row, or one.
template <int kR, bool kUnsignedRows, int... kLane>
TOMBOLO_INLINE void add_groups(const QTile& t, const std::byte* a, const std::byte* b,
                               int32x4_t (&acc)[kR][2], int32x4_t (&down)[2],
                               std::integer_sequence<int, kLane...>) {
  const Turn<kUnsignedRows> turn;
  int8x16_t rows[kR];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
    rows[r] = sizeof...(kLane) == 4 ? load(a + r * t.lda, turn.rows)
                                    : load_group(a + r * t.lda, turn.rows);
  (add_group<kR, kUnsignedRows, kLane>(turn, rows, b, acc, down), ...);
}

template <int kR, bool kUnsignedRows>
TOMBOLO_ARM_DOT void tile(const QTile& t) {
  int32_t row_sums[kR] = {};
  if constexpr (!kUnsignedRows) sums_of_rows<kR>(t, row_sums);
  for (int v = 0; v < kVectors; v += 2) {
    int32x4_t acc[kR][2], down[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) acc[r][0] = acc[r][1] = vdupq_n_s32(row_sums[r]);
    for (int64_t s = 0; s < t.stretches; ++s) {
      const std::byte* a = t.a + (t.offsets != nullptr ? t.offsets[s] : 0);
      const std::byte* b = t.b + s * t.stretch_bytes + 16 * v;
      int64_t g = t.groups;
      for (; g >= 4; g -= 4, a += 16, b += 16 * kColumns)
        add_groups<kR, kUnsignedRows>(t, a, b, acc, down, std::make_integer_sequence<int, 4>());
      for (; g > 0; --g, a += 4, b += 4 * kColumns)
        add_groups<kR, kUnsignedRows>(t, a, b, acc, down, std::make_integer_sequence<int, 1>());
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      for (int i = 0; i < 2; ++i)
        vst1q_s32(t.c + r * t.ldc + 4 * (v + i), vaddq_s32(acc[r][i], vshlq_n_s32(down[i], 7)));
  }
}

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &tile<kR + 1, true>), ...);
  ((tiles.signed_rows[kR + 1] = &tile<kR + 1, false>), ...);
}

}  // namespace

QTiles make_arm_dot_tiles() {
  QTiles tiles{
      .max_rows = kRows, .panel = kColumns, .group = 4, .element = 1, .name = "arm dot products"};
  fill(tiles, std::make_integer_sequence<int, kRows>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_arm_dot_tiles() { return {}; }
}  // namespace tombolo

#endif
