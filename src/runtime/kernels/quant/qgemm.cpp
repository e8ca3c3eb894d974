#include "runtime/kernels/quant/qgemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qgemm_sorted.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

void put(std::byte* out, int64_t index, int element, int32_t value) {
  if (element == 1) {
    out[index] = static_cast<std::byte>(value);
  } else {
    const auto wide = static_cast<int16_t>(value);
    std::memcpy(out + 2 * index, &wide, 2);
  }
}

}  // namespace

void q_turn_bytes(const uint8_t* from, int64_t n, uint8_t mask, uint8_t* to) {
  if (mask == 0) {
    std::memcpy(to, from, static_cast<size_t>(n));
    return;
  }
  // Words: gcc leaves loops of bytes as they are.
  const uint64_t turn = mask * uint64_t{0x0101010101010101};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    uint64_t words[4];
    std::memcpy(words, from + i, 32);
    for (uint64_t& word : words) word ^= turn;
    std::memcpy(to + i, words, 32);
  }
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, from + i, sizeof word);
    word ^= turn;
    std::memcpy(to + i, &word, sizeof word);
  }
  for (; i < n; ++i) to[i] = from[i] ^ mask;
}

int64_t q_row_bytes(int64_t k, const QTiles& tiles) { return tiles.groups_of(k) * 4; }

void q_pack_rows(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                 std::byte* out, const QTiles& tiles) {
  const int64_t row_bytes = q_row_bytes(k, tiles);
  parallel(m, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, k)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const uint8_t* from = x + i * ldx;
               std::byte* to = out + i * row_bytes;
               if (tiles.element == 1) {
                 const uint8_t mask = flip ? 0x80 : 0;
                 auto* bytes = reinterpret_cast<uint8_t*>(to);
                 q_turn_bytes(from, k, mask, bytes);
               } else {
                 auto* wide = reinterpret_cast<int16_t*>(to);
                 const uint8_t mask = flip ? 0x80 : 0;
                 if (is_signed)
                   for (int64_t j = 0; j < k; ++j) wide[j] = static_cast<int8_t>(from[j] ^ mask);
                 else
                   for (int64_t j = 0; j < k; ++j) wide[j] = static_cast<uint8_t>(from[j] ^ mask);
               }
               std::memset(to + k * tiles.element, 0,
                           static_cast<size_t>(row_bytes - k * tiles.element));
             }
           });
}

int64_t amx_chunk(int64_t run) {
  const int64_t chunks = std::max<int64_t>(1, (run + 63) / 64);
  return std::max<int64_t>(4, ((run + chunks - 1) / chunks + 3) / 4 * 4);
}

int64_t q_panel_groups(int64_t k, const QTiles& tiles) {
  if (tiles.element != 1 || tiles.sorted) return tiles.groups_of(k);
  const int64_t chunk = amx_chunk(k);
  return (k + chunk - 1) / chunk * chunk / 4;
}

namespace {

int64_t panel_bytes(const QTiles& tiles, int64_t groups) {
  const int64_t bytes = groups * tiles.panel * 4;
  if (!tiles.sorted) return bytes;
  return bytes + SortedPanel::bytes(groups);
}

}  // namespace

size_t q_stretch_bytes(int64_t stretches, int64_t run, int64_t n, const QTiles& tiles) {
  const int64_t groups = stretches * q_panel_groups(run, tiles);
  return static_cast<size_t>((n + tiles.panel - 1) / tiles.panel * panel_bytes(tiles, groups));
}

size_t q_panel_bytes(int64_t k, int64_t n, const QTiles& tiles) {
  return q_stretch_bytes(1, k, n, tiles);
}

namespace {

/// One stretch of a panel whose columns lie side by side, in groups of four bytes: a word a column.
void pack_beside(const uint8_t* x, int64_t row, int64_t run, int64_t columns, const QTiles& tiles,
                 uint8_t mask, std::byte* out, int32_t* sums) {
  const int64_t width = tiles.panel;
  if (tiles.pack_words != nullptr) return tiles.pack_words(x, row, run, columns, mask, out, sums);
  const int64_t done = q_pack_words(x, row, run, columns, width, mask, out, sums);
  for (int64_t i = 0; i < run && done < columns; ++i)
    for (int64_t c = done; c < columns; ++c) {
      const auto value = static_cast<int8_t>(x[i * row + c] ^ mask);
      out[(i / 4 * width + c) * 4 + i % 4] = static_cast<std::byte>(value);
      sums[c] += value;
    }
}

/// One stretch of one column whose bytes lie side by side.
void pack_below(const uint8_t* x, int64_t run, int64_t width, uint8_t mask, std::byte* out,
                int32_t& sum) {
  const uint32_t turn = mask * 0x01010101u;
  for (int64_t i = 0; i < run; i += 4, out += width * 4) {
    uint32_t word = turn;
    std::memcpy(&word, x + i, static_cast<size_t>(std::min<int64_t>(4, run - i)));
    word ^= turn;
    std::memcpy(out, &word, 4);
  }
  sum += static_cast<int32_t>(q_sum_bytes(x, run, mask ^ 0x80) - 128 * run);
}

/// One stretch of a panel of such columns, `column` bytes apart.
void pack_columns_below(const uint8_t* x, int64_t column, int64_t run, int64_t columns,
                        int64_t width, uint8_t mask, std::byte* out, int32_t* sums) {
  int64_t done = 0;
  if (column % 4 == 0 && run >= 16) {  // words of four bytes are turned in squares
    const int64_t words = run / 4;
    done = words * 4;
    transpose_tile(reinterpret_cast<const std::byte*>(x), column / 4, out, width, columns, words,
                   4);
    for (int64_t i = 0; i < words && mask != 0; ++i)
      for (int64_t j = 0; j < columns * 4; ++j) out[i * width * 4 + j] ^= std::byte{mask};
    for (int64_t c = 0; c < columns; ++c)
      sums[c] += static_cast<int32_t>(q_sum_bytes(x + c * column, done, mask ^ 0x80) - 128 * done);
  }
  for (int64_t c = 0; c < columns && done < run; ++c)
    pack_below(x + c * column + done, run - done, width, mask, out + done * width + c * 4, sums[c]);
}

/// One stretch of one column in groups of two 16-bit numbers.
void pack_pairs_below(const uint8_t* x, int64_t run, int64_t width, uint8_t mask, std::byte* out,
                      int32_t& sum) {
  for (int64_t i = 0; i < run; i += 2, out += width * 4) {
    const int32_t v0 = static_cast<int8_t>(x[i] ^ mask);
    const int32_t v1 = i + 1 < run ? static_cast<int8_t>(x[i + 1] ^ mask) : 0;
    const uint32_t word = (static_cast<uint32_t>(v0) & 0xFFFF) | static_cast<uint32_t>(v1) << 16;
    std::memcpy(out, &word, 4);
    sum += v0 + v1;
  }
}

/// One stretch of one column whose bytes lie anywhere.
void pack_apart(const uint8_t* x, int64_t row, int64_t run, const QTiles& tiles, uint8_t mask,
                std::byte* out, int64_t c, int32_t& sum) {
  for (int64_t i = 0; i < run; ++i, x += row) {
    const int32_t value = static_cast<int8_t>(*x ^ mask);
    sum += value;
    put(out, (i / tiles.group * tiles.panel + c) * tiles.group + i % tiles.group, tiles.element,
        value);
  }
}

}  // namespace

void q_pack_stretches(const uint8_t* x, int64_t row, int64_t column, int64_t stretches, int64_t run,
                      int64_t n, bool flip, std::byte* out, int32_t* sums, const QTiles& tiles) {
  const int64_t width = tiles.panel, groups = q_panel_groups(run, tiles);
  const int64_t k = stretches * run, all = stretches * groups;
  const int64_t panels = (n + width - 1) / width, step = panel_bytes(tiles, all);
  const bool pairs = tiles.element != 1;
  const uint8_t mask = flip ? 0x80 : 0;
  // Rows that lie beside one another are read in whole: so many of each stretch at a time, for all
  // panels.
  constexpr int64_t kRows = 256;
  const int64_t most = column == 1 ? kRows : run;
  const bool all_written =
      !tiles.sorted && (column == 1 && tiles.pack_words != nullptr
                            ? groups == tiles.groups_of(run)
                            : groups * tiles.group == run && panels * width == n);
  parallel(panels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * width)),
           [&](int64_t begin, int64_t end) {
             std::vector<int32_t> down(static_cast<size_t>((end - begin) * width));
             const auto pack = [&](int64_t p, int64_t s, int64_t first, int64_t rows) {
               const int64_t columns = std::min(width, n - p * width);
               const uint8_t* from = x + p * width * column + (s * run + first) * row;
               std::byte* to = out + p * step + (s * groups + first / tiles.group) * width * 4;
               int32_t* sum = down.data() + (p - begin) * width;
               if (column == 1) {
                 if (pairs)
                   q_pack_pairs(from, row, rows, columns, width, mask, to, sum);
                 else
                   pack_beside(from, row, rows, columns, tiles, mask, to, sum);
               } else if (row == 1 && !pairs) {
                 pack_columns_below(from, column, rows, columns, width, mask, to, sum);
               } else {
                 for (int64_t c = 0; c < columns; ++c, from += column)
                   if (row == 1)
                     pack_pairs_below(from, rows, width, mask, to + c * 4, sum[c]);
                   else
                     pack_apart(from, row, rows, tiles, mask, to, c, sum[c]);
               }
             };
             if (!all_written)
               std::memset(out + begin * step, 0, static_cast<size_t>((end - begin) * step));
             for (int64_t s = 0; s < stretches; ++s)
               for (int64_t first = 0; first < run; first += most)
                 for (int64_t p = begin; p < end; ++p)
                   pack(p, s, first, std::min(most, run - first));
             for (int64_t p = begin; p < end; ++p) {
               const int32_t* sum = down.data() + (p - begin) * width;
               if (sums != nullptr)
                 std::copy_n(sum, std::min(width, n - p * width), sums + p * width);
               if (!tiles.sorted) continue;
               const SortedPanel sorted(out + p * step, all);
               std::copy_n(sum, width, sorted.column_sums());
               q_sort_groups(out + p * step, stretches, groups, sorted.counts(0), sorted.order(0));
             }
           });
}

void q_pack_panels(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n, bool flip,
                   bool /*is_signed*/, std::byte* out, int32_t* sums, const QTiles& tiles) {
  q_pack_stretches(x, row, column, 1, k, n, flip, out, sums, tiles);
}

int64_t q_tile_rows(int64_t m, bool amx, const QTiles& tiles) {
  return amx ? 16 : tiles.tile_rows(m);
}

bool q_use_amx(int64_t m) { return m > 4 && has_amx_int8(); }

QProduct q_plan_rows(int64_t m, int64_t n, int64_t k, int64_t lda, bool a_signed,
                     const QTiles& tiles) {
  QProduct p;
  p.inner = &tiles;
  p.n = n;
  p.run = k;
  p.lda = lda;
  p.amx = q_use_amx(m);
  p.a_signed = a_signed;
  p.add_rows(0, m, q_tile_rows(m, p.amx, tiles), [&](int64_t at, int32_t rows) {
    p.runs.push_back({0, rows, at});
  });
  return p;
}

namespace {

constexpr int64_t kPanel = 32;  ///< columns of a panel of AMX

struct Task {
  const QProduct& p;
  const std::byte* a;
  int64_t a_bytes;
  const QFinish& finish;
  int64_t stretch_bytes;  ///< of a panel
};

void finish_rows(const Task& t, const QTileRows& rows, const int32_t* sums, int64_t column) {
  const int64_t columns = std::min(kPanel, t.p.n - column);
  for (int32_t i = rows.first_run; i < rows.last_run; ++i) {
    const QRun& run = t.p.runs[static_cast<size_t>(i)];
    q_finish(t.finish, sums + run.from * kPanel, kPanel, run.to, run.count, column, columns);
  }
}

/// Sums of AMX: those of two tiles become results while the next two are multiplied.
class AmxSums {
 public:
  explicit AmxSums(const Task& task) : task_(task) {}

  /// Room for the sums of the next two.
  int32_t* room() { return sums_[turn_]; }
  /// What is to be done meanwhile goes into the tile.
  void take_along(AmxTile& tile) const {
    tile.meanwhile = &finish_tile;
    tile.argument = this;
    tile.turns = tiles_;
  }
  /// room() holds the sums of these tiles now, and those before are results.
  void keep(size_t first, int tiles, int64_t column) {
    first_ = first;
    tiles_ = tiles;
    column_ = column;
    turn_ ^= 1;
  }
  void finish() {
    for (int64_t i = 0; i < tiles_; ++i) finish_tile(this, i);
    tiles_ = 0;
  }

 private:
  static void finish_tile(const void* argument, int64_t tile) {
    const auto& self = *static_cast<const AmxSums*>(argument);
    finish_rows(self.task_, self.task_.p.tiles[self.first_ + static_cast<size_t>(tile)],
                self.sums_[self.turn_ ^ 1] + tile * 16 * kPanel, self.column_);
  }

  const Task& task_;
  alignas(64) int32_t sums_[2][32 * kPanel];
  int turn_ = 0, tiles_ = 0;
  size_t first_ = 0;
  int64_t column_ = 0;
};

/// Tiles [first, last) times one panel with AMX, two tiles at a time. While it is multiplied, the
/// one after it comes nearer.
void amx_rows(const Task& t, size_t first, size_t last, const std::byte* panel,
              const std::byte* next, int64_t column, int64_t chunk, AmxSums& sums) {
  const QProduct& p = t.p;
  const int64_t chunks = (p.run + chunk - 1) / chunk, padded = chunks * chunk;
  const auto turns = static_cast<int64_t>((last - first + 1) / 2);
  std::byte* room = nullptr;
  for (size_t i = first; i < last; i += 2) {
    const int parts = i + 1 < last ? 2 : 1;
    AmxTile tile{{nullptr, nullptr},
                 {0, 0},
                 panel,
                 chunks,
                 p.offsets.data(),
                 static_cast<int64_t>(p.offsets.size()),
                 sums.room()};
    sums.take_along(tile);
    if (next != nullptr) tile.ask(next, static_cast<int64_t>((i - first) / 2), turns, chunk);
    for (int part = 0; part < parts; ++part) {
      const QTileRows& rows = p.tiles[i + static_cast<size_t>(part)];
      tile.a[part] = t.a + rows.offset;
      tile.lda[part] = p.lda;
      // Tiles are read whole: one that would leave A is copied. Only products without stretches
      // have such, the others have A in a copy with room behind it.
      if (rows.offset + 15 * p.lda + padded + p.offsets.back() <= t.a_bytes) continue;
      if (room == nullptr)
        room = reinterpret_cast<std::byte*>(thread_floats(1, static_cast<size_t>(8 * padded)));
      std::byte* to = room + part * 16 * padded;
      std::memset(to, 0, static_cast<size_t>(16 * padded));
      for (int64_t r = 0; r < rows.count; ++r)
        std::memcpy(to + r * padded, tile.a[part] + r * p.lda, static_cast<size_t>(p.run));
      tile.a[part] = to;
      tile.lda[part] = padded;
    }
    amx_tile(tile, parts, p.n - column, p.a_signed ? AmxKind::kSigned : AmxKind::kUnsigned);
    sums.keep(i, parts, column);
  }
}

/// QEnds of a product's panels. What they have in common is made once: asked for with every panel
/// it took as long as the products of one row.
class PanelEnds {
 public:
  /// Of the last panel, which may have fewer columns than others.
  struct Room {
    int32_t add[kMaxQPanel];
    float scale[kMaxQPanel], bias[kMaxQPanel];
  };

  PanelEnds(const QFinish& finish, const QTiles& tiles, int64_t n)
      : f_(finish), tiles_(tiles), words_(finish.kind != QFinish::Kind::kByte) {
    serves_ = rows()[1] != nullptr && f_.of_columns();
    if (!serves_) return;
    common_.ldo = f_.ldo;
    common_.integers = f_.kind == QFinish::Kind::kInt32;
    if (common_.integers) return;
    if (f_.column_scale == nullptr) {
      scales_.assign(kMaxQPanel, f_.scale);
    } else if (f_.scale != 1) {
      scales_.assign(f_.column_scale, f_.column_scale + n);
      for (float& scale : scales_) scale *= f_.scale;
    }
    if (!words_) serves_ = set_bytes(n);
  }

  /// Else q_finish does it.
  bool serves(int64_t columns) const { return serves_ && columns >= tiles_.least_columns; }
  bool words() const { return words_; }
  QEndTileFn* const* rows() const {
    return words_ ? tiles_.word_rows : tiles_.byte_rows[f_.rest != nullptr ? 1 : 0];
  }

  QEnds of(int64_t column, int64_t columns, Room& room) const {
    QEnds e = common_;
    const auto part = [&](const auto* all, auto* to) {
      if (columns >= tiles_.panel) return all + column;
      std::fill(std::copy_n(all + column, columns, to), to + kMaxQPanel, 0);
      return static_cast<decltype(all)>(to);
    };
    static constexpr int32_t kNothing[kMaxQPanel] = {};
    e.add = f_.column_add != nullptr ? part(f_.column_add, room.add) : kNothing;
    if (f_.column_scale == nullptr)
      e.scale = scales_.data();
    else
      e.scale = part(scales_.empty() ? f_.column_scale : scales_.data(), room.scale);
    if (f_.column_bias != nullptr) e.bias = part(f_.column_bias, room.bias);
    e.rest = f_.rest != nullptr ? f_.rest + column : nullptr;
    e.out = static_cast<std::byte*>(f_.out) + column * f_.element();
    return e;
  }
  /// From a whole panel to the next one, which is whole too.
  void advance(QEnds& e) const {
    const int64_t columns = tiles_.panel;
    if (f_.column_add != nullptr) e.add += columns;
    if (f_.column_scale != nullptr) e.scale += columns;
    if (e.bias != nullptr) e.bias += columns;
    if (e.rest != nullptr) e.rest += columns;
    e.out += columns * f_.element();
  }

 private:
  /// Whether 32 bits hold every sum times its scale, with what is added to it.
  bool set_bytes(int64_t n) {
    // Sums of 32 bits times less than 1; numbers of a byte times less than 2^20.
    constexpr float kOwn = 1 << 20;
    const bool rest = f_.rest != nullptr;
    if (rest && !(std::abs(f_.own) < kOwn && std::abs(f_.other) < kOwn)) return false;
    const bool below_one = scales_.empty()
                               ? f_.below_one || q_below_one(f_.column_scale, n)
                               : q_below_one(scales_.data(), static_cast<int64_t>(scales_.size()));
    if (!below_one) return false;
    QEnds& e = common_;
    const int32_t origin = rest ? f_.zero_point2 : f_.zero_point;
    const int32_t low = rest ? f_.least2 : f_.least, high = rest ? f_.greatest2 : f_.greatest;
    const int32_t middle = low < 0 ? 0 : 128;
    e.own_low = static_cast<float>(f_.least - f_.zero_point);
    e.own_high = static_cast<float>(f_.greatest - f_.zero_point);
    e.own = f_.own;
    e.other = f_.other;
    e.rest_zero = f_.rest_zero;
    e.zero = static_cast<int16_t>(origin - middle);
    e.least = static_cast<int8_t>(low - middle);
    e.greatest = static_cast<int8_t>(high - middle);
    e.middle = static_cast<int8_t>(middle);
    e.rest_signed = f_.rest_signed;
    return true;
  }

  const QFinish& f_;
  const QTiles& tiles_;
  bool words_, serves_ = false;
  QEnds common_;
  std::vector<float> scales_;  ///< one for all columns, or times QFinish::scale; else empty
};

constexpr int kSumRows = 40;  ///< of the tiles whose sums are finished at once

/// Tiles [first, last), whose sums lie one after the other: runs that go on are finished as one.
void finish_tiles(const Task& t, size_t first, size_t last, const int32_t* sums, int64_t width,
                  int64_t column) {
  const int64_t columns = std::min(width, t.p.n - column);
  int64_t from = 0, count = 0, to = 0, start = 0;
  const auto flush = [&] {
    if (count > 0) q_finish(t.finish, sums + from * width, width, to, count, column, columns);
  };
  for (size_t i = first; i < last; ++i) {
    const QTileRows& rows = t.p.tiles[i];
    for (int32_t r = rows.first_run; r < rows.last_run; ++r) {
      const QRun& run = t.p.runs[static_cast<size_t>(r)];
      if (from + count != start + run.from || to + count != run.to) {
        flush();
        from = start + run.from;
        to = run.to;
        count = 0;
      }
      count += run.count;
    }
    start += rows.count;
  }
  flush();
}

/// Whether rows of A and of the result go on from tile to tile.
bool in_line(const QProduct& p) {
  int64_t offset = p.tiles.front().offset, to = p.runs.front().to;
  for (const QTileRows& rows : p.tiles) {
    const QRun* const run = p.whole_run(rows);
    if (run == nullptr || run->to != to || rows.offset != offset) return false;
    to += rows.count;
    offset += rows.count * p.lda;
  }
  return true;
}

/// Tiles [first, last) that are in_line(), whose `tile` is set but for its rows.
void line_rows(const Task& t, size_t first, size_t last, QTile& tile, const QEnds& ends,
               int64_t columns) {
  const QTiles& tiles = *t.p.inner;
  const int64_t kind = t.finish.rest != nullptr ? 1 : 0;
  const auto row_of = [&](const QTileRows& rows) {
    return t.p.runs[static_cast<size_t>(rows.first_run)].to;
  };
  const QTileRows &front = t.p.tiles[first], &back = t.p.tiles[last - 1];
  const int64_t row = row_of(front), rows = row_of(back) + back.count - row;
  const int64_t count = rows / tiles.line_rows, left = rows % tiles.line_rows;
  tile.a = t.a + front.offset;
  if (count > 0) {
    const int64_t steps = count * tile.groups;
    tile.next_step = tile.next != nullptr ? (tile.stretch_bytes + steps - 1) / steps : 0;
    tiles.byte_lines[kind](tile, ends, row, count, columns);
  }
  tile.a += (rows - left) * tile.lda;
  tile.next = nullptr;
  if (left > 0) tiles.byte_rows[kind][left](tile, ends, row + rows - left, columns);
}

/// Tiles [first, last), and which lines of the next panel each asks for: a few each, as all at once
/// wait for one another.
struct Block {
  size_t first, last;
  int64_t shared, step;  ///< bytes: of a tile, and from group to group

  Block(const Task& t, size_t from, size_t to) : first(from), last(to) {
    const auto stretches = static_cast<int64_t>(t.p.offsets.size());
    const int64_t steps = stretches * t.p.inner->groups_of(t.p.run);
    shared = stretches * t.stretch_bytes / static_cast<int64_t>(last - first);
    step = (shared + steps - 1) / steps;
  }
};

/// What tiles of a panel have in common.
QTile tile_of_panel(const Task& t, const std::byte* panel) {
  const QTiles& tiles = *t.p.inner;
  QTile tile{nullptr, t.p.lda, panel, tiles.groups_of(t.p.run), nullptr, tiles.panel};
  tile.offsets = t.p.offsets.data();
  tile.stretches = static_cast<int64_t>(t.p.offsets.size());
  tile.stretch_bytes = t.stretch_bytes;
  tile.streams = t.p.streams;
  return tile;
}

/// `sorted`: of these tiles, where panels are sorted. `line`: they are in_line().
void plain_rows(const Task& t, const Block& block, const std::byte* panel, const std::byte* next,
                int64_t column, const PanelEnds& panel_ends, SortedRows* sorted, bool line) {
  const auto [first, last, shared, step] = block;
  const QProduct& p = t.p;
  const QTiles& tiles = *p.inner;
  alignas(64) int32_t sums[kSumRows * kMaxQPanel];
  QTile tile = tile_of_panel(t, panel);
  tile.c = sums;
  if (sorted != nullptr) sorted->begin(panel);
  const bool ask = next != nullptr && tiles.asks(p.tiles[first].count);
  const bool share = next != nullptr && tiles.shares;
  if (share) tile.next_step = step;
  const int64_t columns = std::min<int64_t>(tiles.panel, p.n - column);
  tile.columns = columns;
  const bool ends_here = panel_ends.serves(columns);
  QEndTileFn* const* const end_rows = panel_ends.rows();
  QEnds ends;
  PanelEnds::Room room;
  if (ends_here) ends = panel_ends.of(column, columns, room);
  if (ends_here && line && !panel_ends.words() && columns >= tiles.line_columns) {
    tile.next = share ? next : nullptr;
    return line_rows(t, first, last, tile, ends, columns);
  }
  const auto at_once = static_cast<size_t>(std::max(1, kSumRows / tiles.max_rows));
  for (size_t i = first; i < last; i += at_once) {
    const size_t end = std::min(last, i + at_once);
    tile.c = sums;
    size_t summed = i;  // tiles before it are finished
    for (size_t j = i; j < end; ++j) {
      const QTileRows& rows = p.tiles[j];
      tile.a = t.a + rows.offset;
      tile.lda = p.lda;
      tile.ahead = ask && j == first ? next - panel : 0;
      if (share) tile.next = next + static_cast<int64_t>(j - first) * shared;
      if (sorted != nullptr && rows.count > kQUnsortedRows) sorted->set(j - first, tile);
      if (const QRun* const run = ends_here ? p.whole_run(rows) : nullptr; run != nullptr) {
        finish_tiles(t, summed, j, sums, tiles.panel, column);
        end_rows[rows.count](tile, ends, run->to, columns);
        tile.c = sums;
        summed = j + 1;
        continue;
      }
      tiles.unsigned_rows[rows.count](tile);
      tile.c += rows.count * tile.ldc;
    }
    finish_tiles(t, summed, end, sums, tiles.panel, column);
  }
}

/// Whole panels, `step` bytes apart, of the one tile of few rows that there is, from `column` on:
/// all that is done for a panel of more rows would take half as long as the products of one.
void few_rows(const Task& t, const std::byte* panel, int64_t step, int64_t count, int64_t column,
              const PanelEnds& panel_ends) {
  const QTiles& tiles = *t.p.inner;
  const QTileRows& rows = t.p.tiles.front();
  QTile tile = tile_of_panel(t, panel);
  tile.a = t.a + rows.offset;
  PanelEnds::Room room;
  QEnds ends = panel_ends.of(column, tiles.panel, room);
  QEndTileFn* const end_rows = panel_ends.rows()[rows.count];
  const int64_t row = t.p.whole_run(rows)->to;
  tile.next_step = int64_t{tiles.panel} * 4;  // from group to group
  for (int64_t i = 0; i < count; ++i, tile.b += step, panel_ends.advance(ends)) {
    const bool more = column + (i + 1) * tiles.panel < t.p.n;
    tile.ahead = tiles.asks(rows.count) && more ? step : 0;
    tile.next = tiles.shares && more ? tile.b + step : nullptr;
    end_rows(tile, ends, row, tiles.panel);
  }
}

/// Tiles of a block of rows that the second cache holds; each block streams all the weights: where
/// these are far away, blocks are larger. `step`: bytes of a panel.
int64_t block_tiles(const QProduct& p, const QFinish& finish, int64_t panels, int64_t step) {
  const auto count = static_cast<int64_t>(p.tiles.size());
  if (count == 1) return p.amx ? 2 : 1;  // asked for, all this would take as long as a row
  const int64_t rows = std::max(1, p.tiles.front().count);
  const bool sorted = p.inner->sorted, far = panels * step > near_bytes();
  const int64_t row_bytes = rows * (sorted ? SortedProduct::row_bytes(p) : p.lda);
  const int64_t room = std::max(int64_t{192} << 10, far || sorted ? near_bytes() / 2 : 0);
  int64_t most = std::max<int64_t>(2, room / std::max<int64_t>(1, row_bytes));
  // What becomes of a panel is a narrow column of the result: of wide ones blocks are so low that
  // its rows stay near until they are whole.
  const int64_t written = rows * p.n * finish.element();
  if (!far) most = std::min(most, std::max<int64_t>(2, near_bytes() / 2 / written));
  int64_t blocks = (count + most - 1) / most;
  // Threads that took panels of the same rows would write to the same cache lines, and few panels
  // are seldom as many for each: rows are cut where all the weights stay near.
  const int64_t threads = thread_count();
  if (threads > 1 && panels * step <= near_bytes()) {
    if (count >= 8 * threads)
      blocks = std::max(blocks, 2 * threads);
    else if (count >= 2 * threads && panels < 4 * threads)
      blocks = std::max(blocks, threads);
  }
  const int64_t block = (count + blocks - 1) / blocks;
  return p.amx ? block + block % 2 : block;
}

}  // namespace

bool q_below_one(const float* x, int64_t n) {
  // A float's bits rise with it, up to NaN: below zero where one is not below those of 1.
  int32_t left = 0;
  for (int64_t i = 0; i < n; ++i)
    left |= std::bit_cast<int32_t>(1.0f) - 1 - (std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF);
  return left >= 0;
}

void q_product(const QProduct& p, const std::byte* a, int64_t a_bytes, const std::byte* b,
               const QFinish& finish) {
  const QTiles& tiles = *p.inner;
  const int64_t width = tiles.panel, panels = (p.n + width - 1) / width;
  const auto count = static_cast<int64_t>(p.tiles.size());
  if (count == 0 || panels <= 0) return;
  const int64_t stretches = static_cast<int64_t>(p.offsets.size());
  const int64_t groups = q_panel_groups(p.run, tiles);
  const int64_t step = panel_bytes(tiles, stretches * groups);
  const Task task{p, a, a_bytes, finish, groups * width * 4};
  const PanelEnds ends(finish, tiles, p.n);
  // A block of rows times as many panels as make a task worth while.
  constexpr int64_t kWorth = 600'000;
  if (count == 1 && !p.amx && !SortedProduct::serves(p) &&
      p.tiles.front().count <= tiles.most_asking && p.whole_run(p.tiles.front()) != nullptr &&
      ends.serves(width)) {
    // A panel takes as long to come as some rows to be multiplied.
    constexpr int64_t kRowsOfAPanel = 3;
    const int64_t rows = std::max<int64_t>(p.tiles.front().count, kRowsOfAPanel);
    const int64_t work = rows * width * p.run * stretches, whole = p.n / width;
    parallel(panels, work > 0 ? kWorth / work + 1 : panels, [&](int64_t begin, int64_t end) {
      if (const int64_t last = std::min(end, whole); last > begin)
        few_rows(task, b + begin * step, step, last - begin, begin * width, ends);
      if (end > whole)
        plain_rows(task, Block(task, 0, 1), b + whole * step, nullptr, whole * width, ends, nullptr,
                   false);
    });
    return;
  }
  const int64_t block = block_tiles(p, finish, panels, step);
  const int64_t blocks = (count + block - 1) / block;
  const int64_t rows = std::max(1, p.tiles.front().count);
  const int64_t work = std::max<int64_t>(1, block * rows * width * p.run * stretches);
  const int64_t group = std::clamp<int64_t>((p.amx ? 4'000'000 : kWorth) / work, 1, panels);
  const int64_t turns = (panels + group - 1) / group;
  const int64_t chunk = p.amx ? amx_chunk(p.run) : 0;
  const bool line = !p.amx && tiles.byte_lines[0] != nullptr && stretches == 1 &&
                    tiles.groups_of(p.run) <= tiles.line_groups && in_line(p);
  const std::optional<SortedProduct> sorted_product =
      SortedProduct::serves(p) ? std::optional<SortedProduct>(std::in_place, p, a) : std::nullopt;
  parallel(blocks * turns, 1, [&](int64_t begin, int64_t end) {
    AmxSums sums(task);
    if (p.amx) amx_begin(chunk);
    for (int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<size_t>(i / turns * block);
      const size_t last = std::min(static_cast<size_t>(count), first + static_cast<size_t>(block));
      const Block part(task, first, last);
      SortedRows* sorted = nullptr;
      if (sorted_product)
        sorted =
            &sorted_rows(*sorted_product, i / turns, first, last, b + i % turns * group * step);
      int64_t q = i % turns * group;
      const int64_t end_panel = std::min(panels, q + group);
      for (; q < end_panel; ++q) {
        const std::byte* panel = b + q * step;
        if (p.amx)
          amx_rows(task, first, last, panel, q + 1 < panels ? panel + step : nullptr, q * width,
                   chunk, sums);
        else
          plain_rows(task, part, panel, q + 1 < panels ? panel + step : nullptr, q * width, ends,
                     sorted, line);
      }
    }
    sums.finish();
    if (p.amx) amx_end();
  });
}

void qgemm(int64_t m, int64_t n, int64_t k, const std::byte* a, const std::byte* b,
           const QFinish& finish, const QTiles& tiles) {
  if (m <= 0 || n <= 0) return;
  const int64_t lda = q_row_bytes(k, tiles);
  q_product(q_plan_rows(m, n, k, lda, false, tiles), a, m * lda, b, finish);
}

}  // namespace tombolo
