#pragma once

// AMX's instructions in AVX-512, so that what is only for processors with AMX can be tested on
// others: built with TOMBOLO_EMULATE_AMX (`make amx`). What LDTILECFG and the products refuse
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2) ends the process.

#include "runtime/kernels/intrinsics.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define TOMBOLO_EMULATED __attribute__((target("avx512f,avx512bw,avx512vnni,avx512bf16")))

namespace tombolo::amx {

struct Tile {
  int rows = 0, bytes = 0;  ///< none: not configured
  alignas(64) uint8_t data[16][64] = {};
};
struct Tiles {
  bool configured = false;
  Tile tile[8];
};
inline Tiles& tiles() {
  static thread_local Tiles value;
  return value;
}
inline void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "AMX: %s\n", what);
  std::abort();
}
inline Tile& tile(int i) {
  demand(tiles().configured && tiles().tile[i].rows > 0, "a tile that is not configured");
  return tiles().tile[i];
}

inline void load_config(const void* config) {
  const auto* bytes = static_cast<const uint8_t*>(config);
  demand(bytes[0] == 1, "a palette other than 1");
  tiles() = {};
  tiles().configured = true;
  for (int i = 0; i < 8; ++i) {
    Tile& t = tiles().tile[i];
    t.bytes = bytes[16 + 2 * i] + 256 * bytes[17 + 2 * i];
    t.rows = bytes[48 + i];
    demand(t.rows <= 16 && t.bytes <= 64 && (t.rows == 0) == (t.bytes == 0), "a tile's size");
  }
}
inline void release() { tiles() = {}; }
inline void zero(int i) { std::memset(tile(i).data, 0, sizeof(Tile::data)); }
inline void load(int i, const void* from, int64_t stride) {
  Tile& t = tile(i);
  zero(i);
  for (int r = 0; r < t.rows; ++r)
    std::memcpy(t.data[r], static_cast<const uint8_t*>(from) + r * stride,
                static_cast<size_t>(t.bytes));
}
inline void store(int i, void* to, int64_t stride) {
  const Tile& t = tile(i);
  for (int r = 0; r < t.rows; ++r)
    std::memcpy(static_cast<uint8_t*>(to) + r * stride, t.data[r], static_cast<size_t>(t.bytes));
}

enum class Product { kUnsigned, kSigned, kBf16 };  ///< what A's elements are; B's are signed

template <Product kProduct>
TOMBOLO_EMULATED void product(int sums, int left, int right) {
  Tile& c = tile(sums);
  const Tile &a = tile(left), &b = tile(right);
  demand(a.rows == c.rows && b.bytes == c.bytes && a.bytes == 4 * b.rows, "tiles that do not fit");
  const __m512i middle = _mm512_set1_epi8(-128);
  for (int m = 0; m < c.rows; ++m) {
    __m512i sum = _mm512_load_si512(c.data[m]);
    for (int k = 0; k < b.rows; ++k) {
      int32_t four;
      std::memcpy(&four, a.data[m] + 4 * k, sizeof(four));
      const __m512i x = _mm512_set1_epi32(four), y = _mm512_load_si512(b.data[k]);
      if constexpr (kProduct == Product::kUnsigned) {
        sum = _mm512_dpbusd_epi32(sum, x, y);
      } else if constexpr (kProduct == Product::kSigned) {
        const __m512i more = _mm512_dpbusd_epi32(_mm512_setzero_si512(), middle, y);
        sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(x, middle), y);  // of x + 128
        sum = _mm512_sub_epi32(sum, more);
      } else {
        sum = _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sum),
                                                   reinterpret_cast<__m512bh>(x),
                                                   reinterpret_cast<__m512bh>(y)));
      }
    }
    _mm512_store_si512(c.data[m], sum);
  }
}

}  // namespace tombolo::amx

#undef TOMBOLO_EMULATED
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#undef _tile_dpbssd
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) ::tombolo::amx::load_config(config)
#define _tile_release() ::tombolo::amx::release()
#define _tile_zero(i) ::tombolo::amx::zero(i)
#define _tile_loadd(i, from, stride) ::tombolo::amx::load(i, from, stride)
#define _tile_stored(i, to, stride) ::tombolo::amx::store(i, to, stride)
#define _tile_dpbusd(sums, a, b) \
  ::tombolo::amx::product<::tombolo::amx::Product::kUnsigned>(sums, a, b)
#define _tile_dpbssd(sums, a, b) \
  ::tombolo::amx::product<::tombolo::amx::Product::kSigned>(sums, a, b)
#define _tile_dpbf16ps(sums, a, b) \
  ::tombolo::amx::product<::tombolo::amx::Product::kBf16>(sums, a, b)
