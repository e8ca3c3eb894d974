#pragma once

// What the byte tiles of AVX2 (qgemm_bytes.cpp) ask of both sides of a product before it begins:
// the groups of each panel are sorted when it is packed, rows are looked at when they are
// multiplied.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "runtime/kernels/quant/qgemm.h"

namespace tombolo {

inline constexpr size_t kCaps = std::size(kQCaps);

/// Counts and order (QSorted) of a panel of 16 columns with so many groups in each stretch, for one
/// cap after the other.
void q_sort_groups(const std::byte* panel, int64_t stretches, int64_t groups, int32_t* counts,
                   uint16_t* order);
/// How many groups are kQWide whatever the numbers of the other side.
int64_t q_count_wide(const std::byte* panel, int64_t groups);
/// The 64 bytes of a group as 16-bit numbers: two even ones of each column, then two odd ones.
void q_widen_group(const std::byte* group, std::byte* out);
/// How many bytes are above the limit.
int64_t q_count_above(const uint8_t* x, int64_t n, uint8_t limit);
/// The largest and the smallest number of some rows in each group of a stretch.
void q_range_of_groups(const std::byte* a, int64_t lda, int32_t rows, int64_t run, uint8_t* most,
                       uint8_t* least);
/// to[i] = {order[i] * 4 + first, order[i] * 64} for i < n
void q_place_groups(const uint16_t* order, int64_t n, uint32_t first, QGroup* to);
/// to[r * to_step + i] = from[r * step + i] - less for i < run
void q_copy_less(const std::byte* from, int64_t step, int32_t rows, int64_t run, uint8_t less,
                 std::byte* to, int64_t to_step);

/// A sorted panel. Behind its bytes lie what its columns sum to, and of each cap in turn the counts
/// and the order (QSorted).
class SortedPanel {
 public:
  SortedPanel() = default;
  SortedPanel(const std::byte* panel, int64_t groups)
      : panel_(const_cast<std::byte*>(panel)), groups_(groups) {}

  std::byte* panel() const { return panel_; }
  int32_t* column_sums() const { return reinterpret_cast<int32_t*>(panel_ + groups_ * 64); }
  int32_t* counts(size_t cap) const { return column_sums() + 16 + cap * size_t{kQKinds}; }
  uint16_t* order(size_t cap) const {
    return reinterpret_cast<uint16_t*>(counts(kCaps)) + groups_ * static_cast<int64_t>(cap);
  }
  /// Whether most groups fit sums of 16 bits in their own order, whatever the other side.
  bool fits() const {
    const int32_t* of = counts(0);
    return of[kQCrossed] + of[kQOuter] + of[kQWide] <= groups_ / 4;
  }
  /// Instructions that 128 products of a row take.
  double cost(size_t cap) const;

  /// Of what lies behind so many groups.
  static int64_t bytes(int64_t groups) {
    constexpr auto kFixed = static_cast<int64_t>((16 + kCaps * size_t{kQKinds}) * sizeof(int32_t));
    return (kFixed + static_cast<int64_t>(kCaps * sizeof(uint16_t)) * groups + 63) / 64 * 64;
  }

 private:
  std::byte* panel_ = nullptr;
  int64_t groups_ = 0;
};

/// A product whose panels are sorted, and what does not change from one of them to the next.
class SortedProduct {
 public:
  SortedProduct(const QProduct& product, const std::byte* a);

  const QProduct& product() const { return product_; }
  const std::byte* a() const { return a_; }
  uint64_t id() const { return id_; }  ///< of no other one
  int64_t stretches() const { return static_cast<int64_t>(product_.offsets.size()); }
  int64_t groups_of_stretch() const { return product_.inner->groups_of(product_.run); }
  int64_t groups() const { return stretches() * groups_of_stretch(); }
  /// Where a group is in a row of A, in bytes.
  uint32_t place(uint16_t group) const { return places_[group]; }

  /// Whether a product has any use for one: sorted panels, and a tile of more than kQUnsortedRows
  /// rows.
  static bool serves(const QProduct& p);
  /// Of a row whose stretches lie side by side.
  static int64_t row_bytes(const QProduct& p) {
    return static_cast<int64_t>(p.offsets.size()) * p.inner->groups_of(p.run) * 4;
  }

 private:
  const QProduct& product_;
  const std::byte* a_;
  uint64_t id_;
  std::vector<uint32_t> places_;
};

/// The rows of some tiles of a sorted product. Where it serves a tile, it has a copy of its rows,
/// without what lies between most of their numbers and 0, under a cap that all but a few groups are
/// within; those few are multiplied as 16-bit numbers.
class SortedRows {
 public:
  /// For tiles [first, last); `panel` stands for all, `room` is what they lie in. Of small products
  /// nothing is asked of the numbers: that takes longer than it saves.
  SortedRows(const SortedProduct& product, size_t first, size_t last, const SortedPanel& panel,
             std::vector<uint64_t>& room);

  /// The products after it are those with this panel.
  void begin(const std::byte* panel);
  /// What the product of tile i of these reads, until the next one is asked for.
  void set(size_t i, QTile& out);

 private:
  struct Tile {
    const std::byte* a = nullptr;
    std::byte* copy = nullptr;
    int16_t* rare = nullptr;
    uint16_t* rare_groups = nullptr;
    size_t cap = 0;
    int32_t rares = 0;
    uint8_t less = 0;
  };

  int64_t row_bytes() const { return groups_ * 4; }
  uint8_t* most_of(size_t tile) const { return most_ + static_cast<int64_t>(tile) * groups_; }
  uint8_t* least_of(size_t tile) const { return least_ + static_cast<int64_t>(tile) * groups_; }
  void ask(size_t begin, size_t end, size_t first);
  void copy(Tile& tile, const QTileRows& rows) const;
  void place(size_t which);

  const SortedProduct& product_;
  int64_t groups_;
  double costs_[kCaps];
  std::vector<Tile> tiles_;
  /// The largest and the smallest number of each group, of kTogether tiles.
  uint8_t *most_ = nullptr, *least_ = nullptr;
  // Of the panel: where groups are in rows, then in copies, of each cap, once a tile has asked.
  SortedPanel panel_;
  QGroup* places_ = nullptr;
  bool placed_[2 * kCaps] = {};
  std::vector<std::byte> wide_[kCaps];
  QSorted sorted_ = {};
};

/// The rows of a block of tiles [first, last), kept by the thread until it comes to another one:
/// loops come in parts.
SortedRows& sorted_rows(const SortedProduct& product, int64_t block, size_t first, size_t last,
                        const std::byte* panel);

}  // namespace tombolo
