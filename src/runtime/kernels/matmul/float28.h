#pragma once

// Floats in 28 bits, none of which is lost. Weights of a layer are of about one size, so the
// exponents of a group of them lie within a few steps of the largest one: four bits beside a base
// for the group say which. Products of few rows wait for memory, and have an eighth less to wait
// for.
//
// A group is four rows of a panel, eight vectors. Seven of them lie one behind the other, each word
//   sign | four bits of the eighth vector's word | exponent - base (4 bits) | mantissa (23 bits),
// so that a float is `(word & 0x87FFFFFF) + (base << 23)`. The eighth vector's word without its
// gap, sign first, is cut into seven times four bits, of which the seventh vector has the highest.
// A group that does not fit (zeros, infinities, exponents too far apart) keeps its floats: seven
// vectors in their place, the eighth behind all groups of the panel, and kFloat28Raw for a base.
//
//   matrix: header of 64 bytes, panels
//   panel:  bases (a byte each, up to a multiple of 64), groups of seven vectors, `raws` vectors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

inline constexpr int64_t kFloat28Rows = 4;  ///< of k in a group
inline constexpr uint8_t kFloat28Raw = 255;
inline constexpr int64_t kFloat28Header = 64;  ///< bytes

/// How the panels of a matrix of k rows lie; counts are of floats.
struct Float28Panels {
  int64_t k = 0;
  int64_t lanes = 0;  ///< in a vector
  int64_t raws = 0;   ///< groups that a panel can keep as floats

  int64_t groups() const { return (k + kFloat28Rows - 1) / kFloat28Rows; }
  int64_t group() const { return 7 * lanes; }
  int64_t words() const { return (groups() + 63) / 64 * 16; }  ///< where groups begin
  int64_t raw() const { return words() + groups() * group(); }
  int64_t panel() const { return (raw() + raws * lanes + 15) / 16 * 16; }
  int64_t bytes(int64_t panels) const { return kFloat28Header + panels * panel() * 4; }
};

/// The bits, without signs, of the least and the greatest number of a group.
struct Float28Range {
  int32_t low, high;

  /// Numbers, none of which is denormal or zero, whose exponents are at most 15 apart.
  bool fits() const {
    return low >= 1 << 23 && high < 255 << 23 && (high >> 23) - (low >> 23) <= 15;
  }
  uint32_t base() const { return static_cast<uint32_t>(std::max(0, (high >> 23) - 15)); }
};

/// How B, k x n floats at any address (turned: n x k), fits into such panels of the active
/// instruction set: not at all if too many groups keep their floats. k and n are at least a panel's
/// width. Threaded.
std::optional<Float28Panels> float28_fits(const std::byte* b, int64_t k, int64_t n, bool turned,
                                          const ReadFloats& read);

/// The header, before the first panel is packed.
void float28_begin(const Float28Panels& panels, std::byte* matrix);
/// Rows [k0, k0 + k) of a panel from floats [k up to a multiple of four][two vectors], of which the
/// first k rows and `columns` columns count; the others are written over. k0 is a multiple of four;
/// what comes before it is packed already.
void float28_pack(float* rows, int64_t k0, int64_t k, int64_t columns, const Float28Panels& panels,
                  int64_t panel, std::byte* matrix);
/// Panel `panel` as floats, [k up to a multiple of four][two vectors].
void float28_widen(const Float28Panels& panels, int64_t panel, const void* matrix, float* out);
/// What the header of a packed matrix of k rows says.
Float28Panels float28_panels(const void* matrix, int64_t k);

}  // namespace tombolo
