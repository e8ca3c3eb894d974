#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/kernels/matmul/nbits_panel.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

size_t nbits_packed_bytes(const NbitsShape& s) {
  return static_cast<size_t>(nbits_panels(s) * nbits_panel_bytes(s)) + 64;
}

namespace {

/// The words of eight codes of a row; behind its end there are zeros.
std::array<uint32_t, 2> words_of(const NbitsWeights& w, const uint8_t* row, int64_t eight) {
  uint64_t bytes = 0;
  const int64_t at = eight * w.bits;
  const int64_t inside = std::clamp<int64_t>(w.row_bytes - at, 0, w.bits);
  std::memcpy(&bytes, row + std::min(at, w.row_bytes), static_cast<size_t>(inside));
  if (w.bits == 4) {
    const auto word = static_cast<uint32_t>(bytes);
    if (!w.high_first) return {word, 0};
    return {(word & 0x0F0F0F0F) << 4 | (word >> 4 & 0x0F0F0F0F), 0};
  }
  std::array<uint32_t, 2> words = {};
  for (uint32_t i = 0; i < 8; ++i) {
    if (w.bits == 2)
      words[0] |= (static_cast<uint32_t>(bytes) >> (2 * i) & 3) << (4 * i);
    else
      words[i % 2] |= static_cast<uint32_t>(bytes >> (8 * i) & 255) << (i / 2 * 8);
  }
  return words;
}

}  // namespace

void nbits_pack(const NbitsShape& s, const NbitsWeights& w, std::byte* packed) {
  const int64_t width = nbits_panel(), blocks = s.blocks(), eights = s.block / 8;
  const bool twos = s.kind == NbitsKind::kTwo;
  const int64_t each = s.kind == NbitsKind::kEight ? 2 : 1, step = nbits_step(s.kind) / 8;
  parallel(nbits_panels(s), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const NbitsPanel panel = nbits_panel_at(s, packed, p);
      std::byte* to = packed + p * nbits_panel_bytes(s);
      for (int64_t b = 0; b < blocks; ++b, to += panel.step(width)) {
        auto* to_scales = reinterpret_cast<float*>(to + width * panel.bytes());
        auto* to_zeros = reinterpret_cast<uint8_t*>(to_scales + width);
        for (int64_t c = 0; c < width; ++c) {
          const int64_t column = p * width + c;
          const bool inside = column < s.n;
          const uint8_t* row = w.codes + column * w.row_bytes;
          for (int64_t i = 0; i < eights; i += step) {
            std::array<uint32_t, 2> words = {};
            if (inside) words = words_of(w, row, b * eights + i);
            if (inside && twos) words[0] |= words_of(w, row, b * eights + i + 1)[0] << 2;
            for (int64_t j = 0; j < each; ++j)
              std::memcpy(to + ((i / step * each + j) * width + c) * 4,
                          &words[static_cast<size_t>(j)], 4);
          }
          to_scales[c] = inside ? w.scales[column * blocks + b] : 0.0f;
          if (s.has_zeros) to_zeros[c] = inside ? w.zeros[column * blocks + b] : uint8_t{0};
        }
      }
    }
  });
}

}  // namespace tombolo
