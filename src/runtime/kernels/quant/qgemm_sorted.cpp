#include "runtime/kernels/quant/qgemm_sorted.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>

#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

constexpr int64_t kLeastColumns = 40, kLeastProducts = 2048;  ///< that numbers are asked of
constexpr size_t kMostShare = 8;  ///< one group of so many may be beyond a copy's cap
constexpr double kRareCost = 18;  ///< of such a group, as SortedPanel::cost()
constexpr int kStep = 16;         ///< of what copies are less
/// Tiles under one cap: loops over kinds of groups whose numbers differ from tile to tile end where
/// no processor foretells it.
constexpr size_t kTogether = 8;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

double SortedPanel::cost(size_t cap) const {
  constexpr double kCosts[kQKinds] = {4 * 9, 2 * 10, 12, 14, 14, 20};
  double sum = 0;
  for (int i = 0; i < kQKinds; ++i) sum += kCosts[i] * counts(cap)[i];
  return sum / static_cast<double>(groups_);
}

SortedProduct::SortedProduct(const QProduct& product, const std::byte* a)
    : product_(product), a_(a), id_(next_id()) {
  if (stretches() == 1) return;
  places_.reserve(static_cast<size_t>(groups()));
  for (const int64_t offset : product.offsets)
    for (int64_t i = 0; i < groups_of_stretch(); ++i)
      places_.push_back(static_cast<uint32_t>(offset + 4 * i));
}

bool SortedProduct::serves(const QProduct& p) {
  return p.inner->sorted && std::any_of(p.tiles.begin(), p.tiles.end(), [](const QTileRows& rows) {
           return rows.count > kQUnsortedRows;
         });
}

SortedRows::SortedRows(const SortedProduct& product, size_t first, size_t last,
                       const SortedPanel& panel, std::vector<uint64_t>& room)
    : product_(product), groups_(product.groups()), tiles_(last - first) {
  const QProduct& p = product.product();
  const bool asks = p.n >= kLeastColumns && p.run * p.n >= kLeastProducts;
  const auto all = static_cast<size_t>(groups_);
  const size_t rares = all / kMostShare, tiles = tiles_.size();
  const size_t rows = asks ? static_cast<size_t>(row_bytes() * p.inner->max_rows) : 0;
  const size_t bytes = tiles * (rows + rares * (8 * kQRareRows + 2)) +
                       all * (2 * kCaps * sizeof(QGroup) + 2 * kTogether) + 64;
  if (room.size() < bytes / 8) room.resize(bytes / 8);
  places_ = reinterpret_cast<QGroup*>(room.data());
  auto* rare = reinterpret_cast<int16_t*>(places_ + 2 * kCaps * all);
  auto* copies = reinterpret_cast<std::byte*>(rare + tiles * rares * size_t{4 * kQRareRows});
  auto* rare_groups = reinterpret_cast<uint16_t*>(copies + tiles * rows);
  most_ = reinterpret_cast<uint8_t*>(rare_groups + tiles * rares);
  least_ = most_ + kTogether * all;
  for (size_t i = 0; i < tiles; ++i) {
    Tile& tile = tiles_[i];
    tile.a = product.a() + p.tiles[first + i].offset;
    tile.copy = copies + rows * i;
    tile.rare = rare + rares * i * size_t{4 * kQRareRows};
    tile.rare_groups = rare_groups + rares * i;
  }
  for (size_t cap = 0; cap < kCaps; ++cap) costs_[cap] = panel.cost(cap);
  for (size_t i = 0; i < tiles && asks; i += kTogether)
    ask(i, std::min(tiles, i + kTogether), first);
}

void SortedRows::begin(const std::byte* panel) {
  panel_ = SortedPanel(panel, groups_);
  std::fill_n(placed_, 2 * kCaps, false);
  sorted_.column_sums = panel_.column_sums();
}

void SortedRows::set(size_t i, QTile& out) {
  const Tile& tile = tiles_[i];
  const bool copied = tile.a == tile.copy;
  const size_t which = tile.cap + (copied ? kCaps : 0);
  if (!placed_[which]) place(which);
  sorted_.counts = panel_.counts(tile.cap);
  sorted_.groups = places_ + groups_ * static_cast<int64_t>(which);
  sorted_.wide = wide_[tile.cap].data();
  sorted_.less = tile.less;
  sorted_.rares = tile.rares;
  sorted_.rare_groups = tile.rare_groups;
  sorted_.rare = tile.rare;
  out.sorted = &sorted_;
  out.a = tile.a;
  out.lda = copied ? row_bytes() : product_.product().lda;
}

/// Copies of tiles [begin, end) where they are worth it.
void SortedRows::ask(size_t begin, size_t end, size_t first) {
  const QProduct& p = product_.product();
  const int64_t stretches = product_.stretches(), each = product_.groups_of_stretch();
  for (size_t i = begin; i < end; ++i)
    for (int64_t s = 0; s < stretches; ++s)
      q_range_of_groups(tiles_[i].a + p.offsets[static_cast<size_t>(s)], p.lda,
                        p.tiles[first + i].count, p.run, most_of(i - begin) + s * each,
                        least_of(i - begin) + s * each);
  // Copies hold what is from `less` to as much above it as the cap is: what serves these tiles
  // best, as far as the panel of costs_ tells.
  const int64_t all = groups_ * static_cast<int64_t>(end - begin);
  constexpr int kSteps = 8;
  int64_t below[kSteps + 1] = {}, above[256 / kStep + 1] = {};
  for (int i = 1; i <= kSteps; ++i)
    below[i] = all - q_count_above(least_, all, static_cast<uint8_t>(i * kStep - 1));
  for (int i = kQCaps[kCaps - 1] / kStep; i < 256 / kStep; ++i)
    above[i] = q_count_above(most_, all, static_cast<uint8_t>(i * kStep));
  double best = costs_[0];
  size_t cap = 0;
  int less = 0;
  for (size_t c = 1; c < kCaps; ++c)
    for (int i = 0; i <= kSteps; ++i) {
      const int64_t rares = below[i] + above[std::min(256 / kStep, i + kQCaps[c] / kStep)];
      const double cost =
          costs_[c] + kRareCost * static_cast<double>(rares) / static_cast<double>(all);
      if (cost >= best) continue;
      best = cost;
      cap = c;
      less = i * kStep;
    }
  if (cap == 0) return;
  const int limit = std::min(255, less + kQCaps[cap]);
  for (size_t i = begin; i < end; ++i) {
    const uint8_t *most = most_of(i - begin), *least = least_of(i - begin);
    Tile& tile = tiles_[i];
    for (int64_t j = 0; j < groups_; ++j)
      if (most[j] > limit || least[j] < less) {
        if (tile.rares == groups_ / static_cast<int64_t>(kMostShare)) {
          tile.rares = -1;
          break;
        }
        tile.rare_groups[tile.rares++] = static_cast<uint16_t>(j);
      }
    if (tile.rares < 0) {
      tile.rares = 0;
      continue;
    }
    tile.cap = cap;
    tile.less = static_cast<uint8_t>(less);
    if (less > 0 || tile.rares > 0) copy(tile, p.tiles[first + i]);
  }
}

void SortedRows::copy(Tile& tile, const QTileRows& rows) const {
  const QProduct& p = product_.product();
  const int64_t each = product_.groups_of_stretch();
  for (int64_t s = 0; s < product_.stretches(); ++s)
    q_copy_less(tile.a + p.offsets[static_cast<size_t>(s)], p.lda, rows.count, p.run, tile.less,
                tile.copy + s * each * 4, row_bytes());
  tile.a = tile.copy;
  for (int32_t i = 0; i < tile.rares; ++i)
    for (int32_t r = 0; r < rows.count; ++r) {
      std::byte* at = tile.copy + r * row_bytes() + int64_t{tile.rare_groups[i]} * 4;
      int16_t* rare = tile.rare + (i * kQRareRows + r) * 4;
      for (int j = 0; j < 4; ++j) {
        // As it was, less so much; what is beyond the run meets zeros.
        const auto was = static_cast<uint8_t>(static_cast<uint8_t>(at[j]) + tile.less);
        rare[j % 2 * 2 + j / 2] = static_cast<int16_t>(was - tile.less);
      }
      std::memset(at, 0, 4);
    }
}

/// Where the panel's groups are, in order: of a cap in rows, then in copies.
void SortedRows::place(size_t which) {
  const size_t cap = which % kCaps;
  QGroup* groups = places_ + groups_ * static_cast<int64_t>(which);
  const uint16_t* order = panel_.order(cap);
  const int32_t* counts = panel_.counts(cap);
  int64_t listed = 2 * (counts[kQFour] + counts[kQDouble]);
  for (int k = kQSingle; k < kQKinds; ++k) listed += counts[k];
  if (!placed_[(which + kCaps) % (2 * kCaps)]) {
    const int32_t wide = counts[kQWide];
    wide_[cap].resize(std::max(wide_[cap].size(), static_cast<size_t>(wide) * 128));
    for (int32_t i = 0; i < wide; ++i)
      q_widen_group(panel_.panel() + int64_t{order[listed - wide + i]} * 64,
                    wide_[cap].data() + i * 128);
  }
  if (which < kCaps && product_.stretches() > 1) {
    for (int64_t i = 0; i < listed; ++i) groups[i] = {product_.place(order[i]), 64u * order[i]};
  } else {
    const int64_t first = which < kCaps ? product_.product().offsets[0] : 0;
    q_place_groups(order, listed, static_cast<uint32_t>(first), groups);
  }
  placed_[which] = true;
}

SortedRows& sorted_rows(const SortedProduct& product, int64_t block, size_t first, size_t last,
                        const std::byte* panel) {
  struct Last {
    uint64_t product = 0;
    int64_t block = -1;
    std::vector<uint64_t> room;
    std::optional<SortedRows> rows;
  };
  thread_local Last now;
  if (now.product != product.id() || now.block != block) {
    now.product = product.id();
    now.block = block;
    now.rows.emplace(product, first, last, SortedPanel(panel, product.groups()), now.room);
  }
  return *now.rows;
}

const QTiles& q_constant_tiles(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n,
                               bool flip, int64_t rows_of_product) {
  constexpr int64_t kMostGroups = int64_t{1} << 16;  // that an order can name
  if (active_isa() != Isa::kAvx2 || has_avx_vnni() || k > kMostGroups) return q_tiles();
  static const QTiles bytes = make_byte_tiles();
  const QTiles& pairs = q_pair_tiles();
  if (rows_of_product <= kQUnsortedRows) return bytes;  // pairs take twice as long to come
  // Groups that are multiplied as 16-bit numbers take 20 instructions for 128 products, pairs of
  // such numbers 16, and there is no choice to make: where few of the bytes of some panels fit side
  // by side, they are no gain.
  constexpr double kMost = 0.6;
  constexpr int64_t kSamples = 4, kSampleRows = 64;
  QTiles natural = bytes;
  natural.sorted = false;
  const int64_t width = bytes.panel, panels = (n + width - 1) / width;
  const int64_t rows = std::min(k, kSampleRows), groups = bytes.groups_of(rows);
  std::vector<std::byte> panel(q_panel_bytes(rows, width, natural));
  int64_t wide = 0, samples = 0;
  for (int64_t p = 0; p < panels; p += (panels + kSamples - 1) / kSamples, ++samples) {
    q_pack_panels(x + p * width * column, row, column, rows, std::min(width, n - p * width), flip,
                  true, panel.data(), nullptr, natural);
    wide += q_count_wide(panel.data(), groups);
  }
  return static_cast<double>(wide) > kMost * static_cast<double>(groups * samples) ? pairs : bytes;
}

}  // namespace tombolo
