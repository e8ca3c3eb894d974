#include "runtime/kernels/qgemm.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// A byte as the number that the products see.
int32_t number(uint8_t byte, bool flip, bool is_signed) {
  const auto value = static_cast<uint8_t>(flip ? byte ^ 0x80 : byte);
  return is_signed ? static_cast<int8_t>(value) : value;
}

void put(std::byte* out, int64_t index, int element, int32_t value) {
  if (element == 1) {
    out[index] = static_cast<std::byte>(value);
  } else {
    const auto wide = static_cast<int16_t>(value);
    std::memcpy(out + 2 * index, &wide, 2);
  }
}

}  // namespace

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
                 for (int64_t j = 0; j < k; ++j) bytes[j] = from[j] ^ mask;
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
  if (tiles.element != 1) return tiles.groups_of(k);
  const int64_t chunk = amx_chunk(k);
  return (k + chunk - 1) / chunk * chunk / 4;
}

namespace {

/// What lies behind the panels where they are split, for each: how many groups had to be, where
/// they belong, and their second summands. There is room for all groups; few networks need a tenth.
struct Rests {
  int32_t* count;
  QRest* places;
  std::byte* groups;
};
int64_t place_bytes(int64_t groups) { return (groups * 8 + 127) / 64 * 64; }
int64_t rest_bytes(const QTiles& tiles, int64_t groups) {
  return tiles.splits ? 64 + place_bytes(groups) + groups * tiles.panel * 4 : 0;
}
Rests rests_at(std::byte* at, int64_t groups) {
  return {reinterpret_cast<int32_t*>(at), reinterpret_cast<QRest*>(at + 64),
          at + 64 + place_bytes(groups)};
}

/// Whether unsigned bytes times these may add up to more than 16 bits hold.
bool too_large(int8_t first, int8_t second) {
  const int above = std::max<int>(first, 0) + std::max<int>(second, 0);
  const int below = std::min<int>(first, 0) + std::min<int>(second, 0);
  return above > 128 || below < -128;
}

void split_panel(std::byte* panel, int64_t stretches, int64_t groups, int64_t width,
                 const Rests& rests) {
  int32_t count = 0;
  auto* words = reinterpret_cast<int8_t*>(panel);
  for (int64_t i = 0; i < stretches * groups; ++i, words += width * 4) {
    bool any = false;
    for (int64_t c = 0; c < width * 4; c += 2) any |= too_large(words[c], words[c + 1]);
    if (!any) continue;
    rests.places[count] = {static_cast<int32_t>(i / groups), static_cast<int32_t>(i % groups)};
    auto* rest = reinterpret_cast<int8_t*>(rests.groups + count++ * width * 4);
    std::memset(rest, 0, static_cast<size_t>(width * 4));
    for (int64_t c = 0; c < width * 4; c += 2) {
      if (!too_large(words[c], words[c + 1])) continue;
      for (int64_t at = c; at < c + 2; ++at) {
        const auto half = static_cast<int8_t>(words[at] / 2);
        rest[at] = static_cast<int8_t>(words[at] - half);
        words[at] = half;
      }
    }
  }
  *rests.count = count;
}

}  // namespace

size_t q_stretch_bytes(int64_t stretches, int64_t run, int64_t n, const QTiles& tiles) {
  const int64_t groups = stretches * q_panel_groups(run, tiles);
  return static_cast<size_t>((n + tiles.panel - 1) / tiles.panel *
                             (tiles.panel * groups * 4 + rest_bytes(tiles, groups)));
}

size_t q_panel_bytes(int64_t k, int64_t n, const QTiles& tiles) {
  return q_stretch_bytes(1, k, n, tiles);
}

const QTiles& q_tiles_for(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n,
                          bool flip, int64_t spread, int64_t next) {
  if (x == nullptr || active_isa() != Isa::kAvx2 || has_vnni()) return q_tiles();
  static const QTiles bytes = make_byte_tiles();
  // A split group is one group more; the byte tile is faster by a quarter at least. Some thousand
  // groups tell.
  constexpr double kMost = 0.2;
  constexpr int64_t kSample = 4096;
  const int64_t groups = k / bytes.group, panels = (n + bytes.panel - 1) / bytes.panel;
  const int64_t all = spread * panels * groups, step = std::max<int64_t>(1, all / kSample);
  int64_t seen = 0, split = 0;
  for (int64_t at = 0; at < all; at += step, ++seen) {
    const int64_t s = at / (panels * groups), p = at / groups % panels, g = at % groups;
    bool any = false;
    for (int64_t c = p * bytes.panel; c < std::min(n, (p + 1) * bytes.panel); ++c) {
      int8_t group[4];
      for (int64_t i = 0; i < 4; ++i)
        group[i] =
            static_cast<int8_t>(number(x[s * next + (g * 4 + i) * row + c * column], flip, true));
      any |= too_large(group[0], group[1]) || too_large(group[2], group[3]);
    }
    split += any;
  }
  return static_cast<double>(split) <= kMost * static_cast<double>(seen) ? bytes : q_tiles();
}

namespace {

/// One stretch of a panel whose columns lie side by side, in groups of four bytes: a word a column.
void pack_beside(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                 uint8_t mask, std::byte* out, int32_t* sums) {
  std::vector<uint8_t> none(static_cast<size_t>(columns), mask);
  for (int64_t i = 0; i < run; i += 4, out += width * 4) {
    const uint8_t* rows[4];
    for (int64_t r = 0; r < 4; ++r) rows[r] = i + r < run ? x + (i + r) * row : none.data();
    const uint8_t *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
    uint32_t words[kMaxQPanel];
    for (int64_t c = 0; c < columns; ++c) {
      const uint32_t b0 = r0[c] ^ mask, b1 = r1[c] ^ mask, b2 = r2[c] ^ mask, b3 = r3[c] ^ mask;
      words[c] = b0 | b1 << 8 | b2 << 16 | b3 << 24;
      sums[c] += static_cast<int8_t>(b0) + static_cast<int8_t>(b1) + static_cast<int8_t>(b2) +
                 static_cast<int8_t>(b3);
    }
    std::memcpy(out, words, static_cast<size_t>(columns) * 4);
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

}  // namespace

void q_pack_stretches(const uint8_t* x, int64_t row, int64_t column, int64_t stretches, int64_t run,
                      int64_t n, bool flip, std::byte* out, int32_t* sums, const QTiles& tiles) {
  const int64_t width = tiles.panel, groups = q_panel_groups(run, tiles);
  const int64_t k = stretches * run, bytes = stretches * groups * width * 4;
  const int64_t panels = (n + width - 1) / width, rest = rest_bytes(tiles, stretches * groups);
  const auto split = [&](int64_t p) {
    if (tiles.splits)
      split_panel(out + p * bytes, stretches, groups, width,
                  rests_at(out + panels * bytes + p * rest, stretches * groups));
  };
  parallel(panels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t p = begin; p < end; ++p) {
               std::byte* panel = out + p * bytes;
               std::memset(panel, 0, static_cast<size_t>(bytes));
               const int64_t columns = std::min(width, n - p * width);
               const uint8_t mask = flip ? 0x80 : 0;
               int32_t room[kMaxQPanel] = {};
               if (tiles.element == 1 && (column == 1 || row == 1)) {
                 for (int64_t s = 0; s < stretches; ++s) {
                   const uint8_t* from = x + p * width * column + s * run * row;
                   std::byte* to = panel + s * groups * width * 4;
                   if (column == 1)
                     pack_beside(from, row, run, columns, width, mask, to, room);
                   else
                     for (int64_t c = 0; c < columns; ++c)
                       pack_below(from + c * column, run, width, mask, to + c * 4, room[c]);
                 }
                 if (sums != nullptr) std::copy_n(room, columns, sums + p * width);
                 split(p);
                 continue;
               }
               for (int64_t c = 0; c < columns; ++c) {
                 const uint8_t* from = x + (p * width + c) * column;
                 int32_t sum = 0;
                 for (int64_t s = 0; s < stretches; ++s) {
                   std::byte* to = panel + s * groups * width * 4;
                   for (int64_t i = 0; i < run; ++i, from += row) {
                     const int32_t value = number(*from, flip, true);
                     sum += value;
                     put(to, (i / tiles.group * width + c) * tiles.group + i % tiles.group,
                         tiles.element, value);
                   }
                 }
                 if (sums != nullptr) sums[p * width + c] = sum;
               }
               split(p);
             }
           });
}

void q_pack_panels(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n, bool flip,
                   bool /*is_signed*/, std::byte* out, int32_t* sums, const QTiles& tiles) {
  q_pack_stretches(x, row, column, 1, k, n, flip, out, sums, tiles);
}

void q_row_sums(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                int32_t* sums) {
  // A signed byte is the unsigned one with its first bit turned, less 128.
  const uint8_t mask = flip != is_signed ? 0x80 : 0;
  const int64_t less = is_signed ? 128 * k : 0;
  parallel(m, std::max<int64_t>(1, 262144 / std::max<int64_t>(1, k)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i)
               sums[i] = static_cast<int32_t>(q_sum_bytes(x + i * ldx, k, mask) - less);
           });
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
};

void finish_rows(const Task& t, const QTileRows& rows, const int32_t* sums, int64_t width,
                 int64_t column) {
  const int64_t columns = std::min(width, t.p.n - column);
  for (int32_t i = rows.first_run; i < rows.last_run; ++i) {
    const QRun& run = t.p.runs[static_cast<size_t>(i)];
    q_finish(t.finish, sums + run.from * width, width, run.to, run.count, column, columns);
  }
}

/// Tiles [first, last) times one panel with AMX, two tiles at a time. While it is multiplied, the
/// one after it comes nearer.
void amx_rows(const Task& t, size_t first, size_t last, const std::byte* panel,
              const std::byte* next, int64_t column, int64_t chunk) {
  const QProduct& p = t.p;
  alignas(64) int32_t sums[32 * kPanel];
  const int64_t chunks = (p.run + chunk - 1) / chunk, padded = chunks * chunk;
  const auto turns = static_cast<int64_t>((last - first + 1) / 2);
  const int64_t bytes = static_cast<int64_t>(p.offsets.size()) * padded * kPanel;
  std::byte* room = nullptr;
  for (size_t i = first; i < last; i += 2) {
    const int parts = i + 1 < last ? 2 : 1;
    AmxTile tile{{nullptr, nullptr},
                 {0, 0},
                 panel,
                 chunks,
                 p.offsets.data(),
                 static_cast<int64_t>(p.offsets.size()),
                 sums};
    if (next != nullptr) tile.ask(next, bytes, static_cast<int64_t>((i - first) / 2), turns, chunk);
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
    for (int part = 0; part < parts; ++part)
      finish_rows(t, p.tiles[i + static_cast<size_t>(part)], sums + part * 16 * kPanel, kPanel,
                  column);
  }
}

void plain_rows(const Task& t, size_t first, size_t last, const std::byte* panel,
                const std::byte* rest, int64_t column) {
  const QProduct& p = t.p;
  const QTiles& tiles = *p.inner;
  alignas(64) int32_t sums[kMaxQRows * 32];
  QTile tile{nullptr, p.lda, panel, tiles.groups_of(p.run), sums, tiles.panel};
  tile.offsets = p.offsets.data();
  tile.stretches = static_cast<int64_t>(p.offsets.size());
  tile.stretch_bytes = q_panel_groups(p.run, tiles) * tiles.panel * 4;
  if (tiles.splits) {
    const Rests rests =
        rests_at(const_cast<std::byte*>(rest), tile.stretches * q_panel_groups(p.run, tiles));
    tile.rest_count = *rests.count;
    tile.rest_places = rests.places;
    tile.rests = rests.groups;
  }
  for (size_t i = first; i < last; ++i) {
    const QTileRows& rows = p.tiles[i];
    tile.a = t.a + rows.offset;
    tiles.unsigned_rows[rows.count](tile);
    finish_rows(t, rows, sums, tiles.panel, column);
  }
}

}  // namespace

void q_product(const QProduct& p, const std::byte* a, int64_t a_bytes, const std::byte* b,
               const QFinish& finish) {
  const QTiles& tiles = *p.inner;
  const int64_t width = tiles.panel, panels = (p.n + width - 1) / width;
  const auto count = static_cast<int64_t>(p.tiles.size());
  if (count == 0 || panels <= 0) return;
  const int64_t stretches = static_cast<int64_t>(p.offsets.size());
  const int64_t panel_bytes = stretches * q_panel_groups(p.run, tiles) * width * 4;
  const int64_t rest = rest_bytes(tiles, stretches * q_panel_groups(p.run, tiles));
  // A block of rows that the second cache holds, times as many panels as make a task worth while.
  const int64_t rows = std::max(1, p.tiles.front().count), row_bytes = rows * p.lda;
  const int64_t most = std::max<int64_t>(2, (int64_t{192} << 10) / std::max<int64_t>(1, row_bytes));
  int64_t blocks = (count + most - 1) / most;
  // Threads that took panels of the same rows would write to the same cache lines: rows are cut
  // where all the weights stay near.
  const int64_t threads = thread_count();
  if (threads > 1 && panels * panel_bytes <= near_bytes() && count >= 8 * threads)
    blocks = std::max(blocks, 2 * threads);
  int64_t block = (count + blocks - 1) / blocks;
  if (p.amx) block += block % 2;
  blocks = (count + block - 1) / block;
  const int64_t work = std::max<int64_t>(1, block * rows * width * p.run * stretches);
  const int64_t group = std::clamp<int64_t>((p.amx ? 4'000'000 : 600'000) / work, 1, panels);
  const int64_t turns = (panels + group - 1) / group;
  const int64_t chunk = amx_chunk(p.run);
  const Task task{p, a, a_bytes, finish};
  parallel(blocks * turns, 1, [&](int64_t begin, int64_t end) {
    if (p.amx) amx_begin(chunk);
    for (int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<size_t>(i / turns * block);
      const size_t last = std::min(static_cast<size_t>(count), first + static_cast<size_t>(block));
      for (int64_t q = i % turns * group; q < std::min(panels, (i % turns + 1) * group); ++q) {
        const std::byte* panel = b + q * panel_bytes;
        if (p.amx)
          amx_rows(task, first, last, panel, q + 1 < panels ? panel + panel_bytes : nullptr,
                   q * width, chunk);
        else
          plain_rows(task, first, last, panel, b + panels * panel_bytes + q * rest, q * width);
      }
    }
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
