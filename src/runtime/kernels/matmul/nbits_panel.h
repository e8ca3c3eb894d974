#pragma once

// How packed weights of few bits lie (nbits.h), for the files that read them.

#include "runtime/kernels/matmul/nbits.h"

namespace tombolo {

/// A panel from one of its blocks on.
struct NbitsPanel {
  const std::byte* at;
  int64_t blocks, block;
  bool has_zeros;
  NbitsKind kind;
  const float* table;

  int64_t bytes() const { return block * nbits_of(kind) / 8; }  ///< of a column
  int64_t step(int64_t lanes) const { return lanes * (bytes() + 4 + (has_zeros ? 1 : 0)); }
  const uint32_t* words() const { return reinterpret_cast<const uint32_t*>(at); }
  const float* scales(int64_t lanes) const {
    return reinterpret_cast<const float*>(at + lanes * bytes());
  }
  const uint8_t* zeros(int64_t lanes) const {
    return reinterpret_cast<const uint8_t*>(at + lanes * (bytes() + 4));
  }
};

inline int64_t nbits_panels(const NbitsShape& s) {
  return (s.n + nbits_panel() - 1) / nbits_panel();
}
inline int64_t nbits_panel_bytes(const NbitsShape& s) {
  const NbitsPanel panel{nullptr, s.blocks(), s.block, s.has_zeros, s.kind, s.table};
  return panel.step(nbits_panel()) * s.blocks();
}
inline NbitsPanel nbits_panel_at(const NbitsShape& s, const std::byte* packed, int64_t index) {
  return {packed + index * nbits_panel_bytes(s), s.blocks(), s.block, s.has_zeros, s.kind, s.table};
}

}  // namespace tombolo
