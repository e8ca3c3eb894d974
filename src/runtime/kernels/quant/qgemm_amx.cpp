// Tiles of products with AMX, of bytes and of bf16. Functions carry their target; the panels are
// those of VNNI, of which 16 groups make a tile.

#include "runtime/kernels/quant/qgemm.h"

#include <algorithm>

#if defined(__x86_64__)
#include "runtime/kernels/amx.h"
#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16,avx512f")))

namespace tombolo {
namespace {

// Tiles 0 to 3 are sums, 4 and 5 of A, 6 and 7 of B. Their numbers must be constants.
#define TOMBOLO_AMX_PRODUCT(sum, a, b)          \
  do {                                          \
    if constexpr (kKind == AmxKind::kSigned)    \
      _tile_dpbssd(sum, a, b);                  \
    else if constexpr (kKind == AmxKind::kBf16) \
      _tile_dpbf16ps(sum, a, b);                \
    else                                        \
      _tile_dpbusd(sum, a, b);                  \
  } while (false)

template <bool kTwoParts, bool kTwoColumns, AmxKind kKind>
TOMBOLO_AMX void tile(const AmxTile& t, int64_t chunk) {
  TOMBOLO_AMX_FENCE();
  auto* const c = static_cast<std::byte*>(t.c);
  if (t.accumulate) {
    _tile_loadd(0, c, 128);
    if constexpr (kTwoColumns) _tile_loadd(1, c + 64, 128);
    if constexpr (kTwoParts) _tile_loadd(2, c + 2048, 128);
    if constexpr (kTwoParts && kTwoColumns) _tile_loadd(3, c + 2112, 128);
  } else {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoParts) _tile_zero(2);
    if constexpr (kTwoParts && kTwoColumns) _tile_zero(3);
  }
  const std::byte *b = t.b, *next = t.next;
  // Evenly, from the first chunk on.
  const int64_t wait = t.turns > 0 ? std::max<int64_t>(1, t.stretches * t.chunks / t.turns) : 0;
  int64_t turn = 0, left = t.turns > 0 ? 1 : -1;
  const int64_t lines = next != nullptr ? t.next_lines : 0;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a0 = t.a[0] + t.offsets[s];
    const std::byte* a1 = t.a[kTwoParts ? 1 : 0] + t.offsets[s];
    if (t.b_offsets != nullptr) b = t.b + t.b_offsets[s];
    for (int64_t i = 0; i < t.chunks; ++i) {
      for (int64_t line = 0; line < lines; ++line) __builtin_prefetch(next + line * 64, 0, 2);
      next += t.next_step;
      // All loads first: where another thread of the core uses tiles, a load that waits for a
      // product holds up the others.
      _tile_loadd(4, a0, t.lda[0]);
      _tile_loadd(6, b, 128);
      if constexpr (kTwoColumns) _tile_loadd(7, b + 64, 128);
      if constexpr (kTwoParts) _tile_loadd(5, a1, t.lda[1]);
      TOMBOLO_AMX_PRODUCT(0, 4, 6);
      if constexpr (kTwoColumns) TOMBOLO_AMX_PRODUCT(1, 4, 7);
      if constexpr (kTwoParts) TOMBOLO_AMX_PRODUCT(2, 5, 6);
      if constexpr (kTwoParts && kTwoColumns) TOMBOLO_AMX_PRODUCT(3, 5, 7);
      a0 += chunk;
      a1 += chunk;
      b += chunk * 32;
      if (--left != 0) continue;
      t.meanwhile(t.argument, turn);
      left = ++turn < t.turns ? wait : -1;
    }
  }
  for (; turn < t.turns; ++turn) t.meanwhile(t.argument, turn);
  _tile_stored(0, c, 128);
  if constexpr (kTwoColumns) _tile_stored(1, c + 64, 128);
  if constexpr (kTwoParts) _tile_stored(2, c + 2048, 128);
  if constexpr (kTwoParts && kTwoColumns) _tile_stored(3, c + 2112, 128);
  TOMBOLO_AMX_FENCE();
}

thread_local int64_t current_chunk = 0;

template <AmxKind kKind>
void any_tile(const AmxTile& t, int parts, int64_t columns) {
  const int64_t chunk = current_chunk;
  if (parts == 2)
    columns > 16 ? tile<true, true, kKind>(t, chunk) : tile<true, false, kKind>(t, chunk);
  else
    columns > 16 ? tile<false, true, kKind>(t, chunk) : tile<false, false, kKind>(t, chunk);
}

}  // namespace

TOMBOLO_AMX void amx_begin(int64_t chunk) {
  TileConfig config;
  for (int i = 0; i < 4; ++i) {
    config.rows[i] = 16;
    config.column_bytes[i] = 64;
  }
  for (int i = 4; i < 6; ++i) {
    config.rows[i] = 16;
    config.column_bytes[i] = static_cast<uint16_t>(chunk);
  }
  for (int i = 6; i < 8; ++i) {
    config.rows[i] = static_cast<uint8_t>(chunk / 4);
    config.column_bytes[i] = 64;
  }
  TOMBOLO_AMX_FENCE();
  _tile_loadconfig(&config);
  current_chunk = chunk;
}

TOMBOLO_AMX void amx_end() { _tile_release(); }

void amx_tile(const AmxTile& t, int parts, int64_t columns, AmxKind kind) {
  switch (kind) {
    case AmxKind::kSigned:
      return any_tile<AmxKind::kSigned>(t, parts, columns);
    case AmxKind::kBf16:
      return any_tile<AmxKind::kBf16>(t, parts, columns);
    default:
      return any_tile<AmxKind::kUnsigned>(t, parts, columns);
  }
}

}  // namespace tombolo

#else

namespace tombolo {
void amx_begin(int64_t) {}
void amx_end() {}
void amx_tile(const AmxTile&, int, int64_t, AmxKind) {}
}  // namespace tombolo

#endif
