#pragma once

// Weights in 26 bits. Products of few rows wait for memory, and have a fifth less to wait for.
//
// A group is eight rows of a panel, sixteen vectors. Its numbers are multiples of one power of two,
// 2^-24 of the one that its largest number begins with: those from half of that on stay as they
// are, and what is rounded off the others is at most half of what a float rounds off the largest.
// Zeros stay zeros. The integers, of 26 bits, are the upper ones of words. Thirteen vectors of
// words lie one behind the other; in the six bits that each has left are the other three vectors:
// four times six bits and, from the thirteenth, two.
//
// So that no row and no column loses what matters to it, a group keeps its floats where the largest
// number of one is less than an eighth of that power (or an infinity, a NaN, or nearly denormal):
// thirteen vectors in their place, three behind all groups of the panel, kFixed26Raw for a scale.
//
//   matrix: header of 64 bytes, panels
//   panel:  scales (a byte each, up to a multiple of 64), groups of thirteen vectors, `raws` times
//           three vectors

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

inline constexpr int64_t kFixed26Rows = 8;    ///< of k in a group
inline constexpr int64_t kFixed26Words = 13;  ///< vectors of words in a group
inline constexpr int64_t kFixed26Rest = 2 * kFixed26Rows - kFixed26Words;
inline constexpr uint8_t kFixed26Raw = 255;
inline constexpr int64_t kFixed26Header = 64;  ///< bytes

/// How the panels of a matrix of k rows lie; counts are of floats.
struct Fixed26Panels {
  int64_t k = 0;
  int64_t lanes = 0;  ///< in a vector
  int64_t raws = 0;   ///< groups that a panel, but the last, can keep as floats

  int64_t groups() const { return (k + kFixed26Rows - 1) / kFixed26Rows; }
  int64_t group() const { return kFixed26Words * lanes; }
  int64_t words() const { return (groups() + 63) / 64 * 16; }  ///< where groups begin
  int64_t raw() const { return words() + groups() * group(); }
  int64_t panel() const { return (raw() + raws * kFixed26Rest * lanes + 15) / 16 * 16; }
  /// The last panel may have few columns, and keep all groups as floats.
  int64_t bytes(int64_t panels) const {
    return kFixed26Header + (panels * panel() + (groups() - raws) * kFixed26Rest * lanes) * 4;
  }
};

/// The bits, without signs, of the largest number of a group, and of the least of those that are
/// the largest of a row or a column that is not zero.
struct Fixed26Range {
  int32_t low, high;

  bool fits() const {
    return high == 0 || (high < 255 << 23 && high >= 25 << 23 && (high >> 23) - (low >> 23) <= 3);
  }
  /// The exponent of what the integers are multiples of, as a float has it.
  int32_t scale() const { return high == 0 ? 1 : (high >> 23) - 24; }
};

/// How B, k x n floats at any address (turned: n x k), fits into such panels of the active
/// instruction set: not at all if too many groups keep their floats. k and n are at least a panel's
/// width. Threaded.
std::optional<Fixed26Panels> fixed26_fits(const std::byte* b, int64_t k, int64_t n, bool turned,
                                          const ReadFloats& read);

/// The header, before the first panel is packed.
void fixed26_begin(const Fixed26Panels& panels, std::byte* matrix);
/// Rows [k0, k0 + k) of a panel from floats [k up to a multiple of eight][two vectors], of which
/// those behind row k are written over. k0 is a multiple of eight; what comes before it is packed
/// already.
void fixed26_pack(float* rows, int64_t k0, int64_t k, const Fixed26Panels& panels, int64_t panel,
                  std::byte* matrix);
/// Panel `panel` as floats, [k up to a multiple of eight][two vectors].
void fixed26_widen(const Fixed26Panels& panels, int64_t panel, const void* matrix, float* out);
/// What the header of a packed matrix of k rows says.
Fixed26Panels fixed26_panels(const void* matrix, int64_t k);

}  // namespace tombolo
