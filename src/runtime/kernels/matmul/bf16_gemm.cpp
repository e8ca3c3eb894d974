// Products of bf16: how the work is shared out, and matrices of floats by them.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

constexpr int64_t kFewRows = 8;  ///< for which tiles of 16 rows are mostly empty
std::atomic<bool> always_pays{false};

void finish_rows(const QProduct& p, const Bf16Finish& finish, const QTileRows& rows,
                 const float* sums, int64_t column) {
  for (int32_t i = rows.first_run; i < rows.last_run; ++i) {
    const QRun& run = p.runs[static_cast<size_t>(i)];
    finish.apply(finish.argument, sums + run.from * kBf16Panel, run.to, run.count, column,
                 std::min(kBf16Panel, p.n - column));
  }
}

/// Tiles [first, last) times one panel. While it is multiplied, the one after it comes nearer.
void tile_rows(const QProduct& p, const std::vector<int64_t>& b_offsets, const std::byte* a,
               size_t first, size_t last, const std::byte* panel, const std::byte* next,
               int64_t column, int64_t chunk, const Bf16Finish& finish) {
  alignas(64) float sums[32 * kBf16Panel];
  const auto turns = static_cast<int64_t>((last - first + 1) / 2);
  const int64_t chunks = p.run * 2 / chunk;
  const auto stretches = static_cast<int64_t>(p.offsets.size());
  for (size_t i = first; i < last; i += 2) {
    const int parts = i + 1 < last ? 2 : 1;
    AmxTile tile{{nullptr, nullptr}, {p.lda, p.lda}, panel, chunks,
                 p.offsets.data(),   stretches,      sums};
    if (!b_offsets.empty()) tile.b_offsets = b_offsets.data();
    for (int part = 0; part < parts; ++part)
      tile.a[part] = a + p.tiles[i + static_cast<size_t>(part)].offset;
    if (next != nullptr) tile.ask(next, static_cast<int64_t>((i - first) / 2), turns, chunk);
    amx_tile(tile, parts, p.n - column, AmxKind::kBf16);
    for (int part = 0; part < parts; ++part)
      finish_rows(p, finish, p.tiles[i + static_cast<size_t>(part)], sums + part * 16 * kBf16Panel,
                  column);
  }
}

/// The same of dot products; `a` holds tile `held` and those after it.
void dot_rows(const QProduct& p, const std::byte* a, size_t held, size_t first, size_t last,
              const std::byte* panel, const std::byte* next, int64_t column,
              const Bf16Scales& scales, const Bf16Finish& finish) {
  alignas(64) float sums[kBf16DotRows * kBf16Panel];
  const auto stretches = static_cast<int64_t>(p.offsets.size());
  Bf16Dot dot{nullptr, p.lda, p.offsets.data(), stretches, p.run / 2, panel, sums};
  const int64_t pairs = stretches * p.run / 2;
  const int64_t shared = pairs * 4 * kBf16Panel / static_cast<int64_t>(last - first);
  dot.summed = scales.summed;
  dot.next_step = next != nullptr ? (shared + pairs - 1) / pairs : 0;
  const bool f16 = has_f16_products();
  const auto product = f16 ? &f16_dot : &bf16_dot;
  const int64_t columns = std::min(kBf16Panel, p.n - column);
  for (size_t i = first; i < last; ++i) {
    const QTileRows& rows = p.tiles[i];
    dot.a = a + rows.offset - p.tiles[held].offset;
    dot.scale = scales.of(i);
    // With one tile B itself is what comes from afar.
    if (next != nullptr && last - first > 1)
      dot.next = next + static_cast<int64_t>(i - first) * shared;
    const QRun* const run = finish.blocks != nullptr && !f16 ? p.whole_run(rows) : nullptr;
    if (run != nullptr) {
      bf16_dot_blocks(dot, rows.count, *finish.blocks, run->to, column, columns);
      continue;
    }
    product(dot, rows.count);
    finish_rows(p, finish, rows, sums, column);
  }
}

/// Rows of k floats.
struct RowsToRound {
  const float* a;
  int64_t lda, k, depth;

  static float round(const void* argument, int64_t row, int64_t rows, std::byte* to, int64_t step) {
    const RowsToRound& self = *static_cast<const RowsToRound*>(argument);
    const int64_t k = self.k;
    const float* from = self.a + row * self.lda;
    const bool f16 = has_f16_products();
    float scale = 1;
    if (f16) {
      float largest = 0;
      for (int64_t i = 0; i < rows; ++i)
        largest = std::max(largest, largest_finite(from + i * self.lda, k));
      scale = f16_scale(largest);
    }
    for (int64_t i = 0; i < rows; ++i, from += self.lda, to += step) {
      f16 ? round_f16(from, k, scale, to) : round_bf16(from, k, to);
      std::memset(to + k * 2, 0, static_cast<size_t>((self.depth - k) * 2));
    }
    return scale;
  }
};

/// C in rows, as GemmEpilogue says.
struct Rows {
  float* c;
  int64_t ldc;
  const GemmEpilogue& e;

  static void finish(const void* argument, const float* sums, int64_t row, int64_t rows,
                     int64_t column, int64_t columns) {
    const Rows& self = *static_cast<const Rows*>(argument);
    const GemmEpilogue& e = self.e;
    float* c = self.c + row * self.ldc + column;
    bf16_store(e, sums, row, rows, column, columns, c, self.ldc);
    if (e.post != nullptr) e.post->apply(e.post->argument, c, self.ldc, row, rows, column, columns);
  }
};

}  // namespace

void let_bf16_pay(bool always) { always_pays = always; }

bool bf16_pays(const Bf16Work& w) {
  if (always_pays) return true;
  constexpr double kNumber = 0.5, kSum = 0.5;
  const auto m = static_cast<double>(w.m), k = static_cast<double>(w.k);
  const auto wide = static_cast<double>(round_up(w.n, kBf16Panel));
  return m * k * static_cast<double>(round_up(w.n, 16)) / kFloatsACycle >
         m * wide * (static_cast<double>(w.rounded_k) / kRoundedACycle + kSum) +
             static_cast<double>(w.rounded) * kNumber;
}

bool bf16_use_amx(int64_t m) { return m > kFewRows && has_amx_bf16(); }

int64_t bf16_tile_rows(int64_t m) {
  if (bf16_use_amx(m)) return 16;
  const int64_t tiles = (m + kBf16DotRows - 1) / kBf16DotRows;
  return (m + tiles - 1) / tiles;
}

int64_t bf16_stretch(int64_t k, int64_t unit) {
  for (int64_t n = round_up(std::max<int64_t>(k, 1), unit);; n += unit)
    if (n * 2 % amx_chunk(n * 2) == 0) return n;
}

void bf16_product(const QProduct& p, const std::byte* a, const std::byte* b,
                  const Bf16Scales& scales, const Bf16Finish& finish) {
  const int64_t panels = (p.n + kBf16Panel - 1) / kBf16Panel;
  const auto count = static_cast<int64_t>(p.tiles.size());
  if (count == 0 || panels <= 0) return;
  const int64_t depth = static_cast<int64_t>(p.offsets.size()) * p.run;
  const int64_t stretch_bytes = p.run * 2 * kBf16Panel;
  const int64_t panel_bytes = p.stretches_of_b() * stretch_bytes;
  std::vector<int64_t> b_offsets;
  for (const int64_t stretch : p.b_stretches) b_offsets.push_back(stretch * stretch_bytes);
  // A block of rows that the second cache holds, times as many panels as make a task worth while.
  const int64_t rows = std::max(1, p.tiles.front().count);
  const int64_t most = std::max<int64_t>(2, near_bytes() / std::max<int64_t>(1, rows * p.lda));
  int64_t blocks = (count + most - 1) / most;
  // Weights that stay near are used for one part of the rows after the other.
  const int64_t threads = thread_count();
  if (threads > 1 && panels * panel_bytes <= near_bytes() && count >= 8 * threads)
    blocks = std::max(blocks, 2 * threads);
  const int64_t block = round_up((count + blocks - 1) / blocks, 2);
  blocks = (count + block - 1) / block;
  const int64_t work = std::max<int64_t>(1, block * rows * kBf16Panel * depth);
  const int64_t group = std::clamp<int64_t>((p.amx ? 4'000'000 : 600'000) / work, 1, panels);
  const int64_t turns = (panels + group - 1) / group;
  const int64_t chunk = amx_chunk(p.run * 2);
  parallel(blocks * turns, 1, [&](int64_t begin, int64_t end) {
    if (p.amx) amx_begin(chunk);
    for (int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<size_t>(i / turns * block);
      const size_t last = std::min(static_cast<size_t>(count), first + static_cast<size_t>(block));
      for (int64_t q = i % turns * group; q < std::min(panels, (i % turns + 1) * group); ++q) {
        const std::byte* panel = b + q * panel_bytes;
        const std::byte* next = q + 1 < panels ? panel + panel_bytes : nullptr;
        if (p.amx)
          tile_rows(p, b_offsets, a, first, last, panel, next, q * kBf16Panel, chunk, finish);
        else
          dot_rows(p, a, 0, first, last, panel, next, q * kBf16Panel, scales, finish);
      }
    }
    if (p.amx) amx_end();
  });
}

namespace {

/// Tiles [first, last), one after the other, and what brings their sums back.
void round_tiles(const QProduct& p, const Bf16Source& source, size_t first, size_t last,
                 std::byte* to, float scale, float* scales) {
  for (size_t i = first; i < last; ++i, to += p.lda * p.tiles[i - 1].count)
    scales[i - first] = scale_of_sums(
        source.round(source.argument, p.tiles[i].offset / p.lda, p.tiles[i].count, to, p.lda),
        scale);
}

/// Tiles that are rounded together: the first cache holds them while B, which is nearby, passes, or
/// the second one while B comes from afar.
size_t tiles_together(const QProduct& p) {
  constexpr int64_t kRows = 64 << 10;
  const int64_t b_bytes = round_up(p.n, kBf16Panel) * p.run * 2;
  const int64_t room = b_bytes <= near_bytes() ? kRows : near_bytes();
  return static_cast<size_t>(std::max<int64_t>(1, room / (p.tiles.front().count * p.lda)));
}

/// Room of the calling thread for the rows and scales of so many tiles.
struct TileRoom {
  std::byte* rows;
  float* scales;
  TileRoom(const QProduct& p, size_t tiles) {
    const int64_t bytes = static_cast<int64_t>(tiles) * p.tiles.front().count * p.lda;
    rows = reinterpret_cast<std::byte*>(
        thread_floats(0, static_cast<size_t>(bytes + 4096) / sizeof(float) + tiles));
    scales = reinterpret_cast<float*>(rows + round_up(bytes + 2048, 64));
  }
};

/// Blocks [begin, end) of `together` tiles by all panels. What lies at `after` is needed after the
/// last tile.
void multiply_blocks(const QProduct& p, const Bf16Source& source, size_t together, size_t begin,
                     size_t end, const std::byte* b, const std::byte* after, float scale,
                     int64_t summed, const Bf16Finish& finish) {
  const TileRoom room(p, together);
  const size_t count = p.tiles.size();
  const int64_t panels = (p.n + kBf16Panel - 1) / kBf16Panel, bytes = p.run * 2 * kBf16Panel;
  for (size_t block = begin; block < end; ++block) {
    const size_t first = block * together, last = std::min(count, first + together);
    round_tiles(p, source, first, last, room.rows, scale, room.scales);
    const std::byte* behind = last < count ? nullptr : after;
    for (int64_t q = 0; q < panels; ++q)
      dot_rows(p, room.rows, first, first, last, b + q * bytes,
               q + 1 < panels ? b + (q + 1) * bytes : behind, q * kBf16Panel,
               {.tiles = room.scales - first, .summed = summed}, finish);
  }
}

}  // namespace

void bf16_rows_product_alone(const QProduct& p, const Bf16Source& source, const std::byte* b,
                             const std::byte* after, float scale, int64_t summed,
                             const Bf16Finish& finish) {
  const size_t count = p.tiles.size(), together = std::min(count, tiles_together(p));
  multiply_blocks(p, source, together, 0, (count + together - 1) / together, b, after, scale,
                  summed, finish);
}

void bf16_rows_product(const QProduct& p, const Bf16Source& source, const std::byte* b, float scale,
                       const Bf16Finish& finish) {
  const size_t count = p.tiles.size();
  if (count == 0 || p.n <= 0) return;
  const size_t together = std::min(count, tiles_together(p));
  const size_t blocks = (count + together - 1) / together;
  const auto threads = static_cast<size_t>(thread_count());
  const int64_t tile = p.tiles.front().count;
  if (!p.amx && (threads == 1 || blocks >= 4 * threads)) {
    const int64_t work = static_cast<int64_t>(together) * tile * p.run * p.n;
    parallel(static_cast<int64_t>(blocks),
             std::max<int64_t>(1, 600'000 / std::max<int64_t>(1, work)),
             [&](int64_t begin, int64_t end) {
               multiply_blocks(p, source, together, static_cast<size_t>(begin),
                               static_cast<size_t>(end), b, nullptr, scale, kF16Summed, finish);
             });
    return;
  }
  const TileRoom room(p, count);
  parallel(static_cast<int64_t>(count), std::max<int64_t>(1, 16384 / (tile * p.run)),
           [&](int64_t begin, int64_t end) {
             round_tiles(p, source, static_cast<size_t>(begin), static_cast<size_t>(end),
                         room.rows + p.tiles[static_cast<size_t>(begin)].offset, scale,
                         room.scales + begin);
           });
  bf16_product(p, room.rows, b, {.tiles = room.scales}, finish);
}

namespace {

int64_t panels_bytes(int64_t k, int64_t n) { return round_up(n, kBf16Panel) * bf16_stretch(k) * 2; }

}  // namespace

int64_t bf16_b_bytes(int64_t k, int64_t n) { return panels_bytes(k, n) + kScaleBytes; }

float f16_scale(float largest) {
  if (!(largest > 0)) return 1;
  // A double, as the quotient of the least floats is none. Limited: two of them and their inverses
  // are normal numbers.
  const int exponent = std::ilogb(static_cast<double>(kMostF16) / largest);
  return std::ldexp(1.0f, std::clamp(exponent, -62, 62));
}

void put_scale(float scale, std::byte* line) { std::memcpy(line, &scale, sizeof scale); }

float read_scale(const std::byte* line) {
  float scale;
  std::memcpy(&scale, line, sizeof scale);
  return scale;
}

void bf16_pack_scale(float scale, int64_t k, int64_t n, std::byte* packed) {
  put_scale(scale, packed + panels_bytes(k, n));
}

void bf16_pack(const float* rows, int64_t from, int64_t k, int64_t depth, int64_t panel,
               float scale, std::byte* packed) {
  const int64_t stretch = bf16_stretch(depth);
  std::byte* to = packed + panel * stretch * 2 * kBf16Panel;
  if (has_f16_products())
    f16_pair_rows(rows, k, scale, to + from * 2 * kBf16Panel);
  else
    bf16_pair_rows(rows, k, to + from * 2 * kBf16Panel);
  const int64_t end = round_up(from + k, 2);
  if (from + k == depth)
    std::memset(to + end * 2 * kBf16Panel, 0,
                static_cast<size_t>((stretch - end) * 2 * kBf16Panel));
}

void bf16_pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                 std::byte* packed) {
  constexpr int64_t kRows = 128;
  const int64_t panels = (n + kBf16Panel - 1) / kBf16Panel;
  float scale = 1;
  if (has_f16_products()) {
    float largest = 0;
    const bool beside = column == 1;
    for (int64_t i = 0; i < (beside ? k : n); ++i)
      largest = std::max(largest, largest_finite(b + i * (beside ? row : column), beside ? n : k));
    scale = f16_scale(largest * std::abs(alpha));
  }
  bf16_pack_scale(scale, k, n, packed);
  parallel(panels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * kBf16Panel)),
           [&](int64_t begin, int64_t end) {
             alignas(64) float room[kRows * kBf16Panel];
             for (int64_t p = begin; p < end; ++p)
               for (int64_t from = 0; from == 0 || from < k; from += kRows) {
                 const int64_t rows = std::min(kRows, k - from);
                 pack_b_panel(b + p * kBf16Panel * column + from * row, row, column, rows,
                              std::min(kBf16Panel, n - p * kBf16Panel), alpha, room);
                 bf16_pack(room, from, rows, k, p, scale, packed);
               }
           });
}

float largest_of(const float* x, int64_t ldx, int64_t m, int64_t k) {
  std::atomic<float> largest = 0;
  parallel(m, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, k)),
           [&](int64_t begin, int64_t end) {
             float most = 0;
             for (int64_t i = begin; i < end; ++i)
               most = std::max(most, largest_finite(x + i * ldx, k));
             for (float before = largest;
                  before < most && !largest.compare_exchange_weak(before, most);) {
             }
           });
  return largest;
}

QProduct bf16_plan_rows(int64_t m, int64_t n, int64_t k) {
  QProduct p;
  p.n = n;
  p.run = bf16_stretch(k);
  // Rows of a tile begin in lines of their own, and not all in one set of the caches.
  p.lda = round_up(p.run * 2, 64) + 64;
  p.amx = bf16_use_amx(m);
  p.add_rows(0, m, bf16_tile_rows(m), [&](int64_t at, int32_t rows) {
    p.runs.push_back({0, rows, at});
  });
  return p;
}

void bf16_gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const std::byte* b,
               float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  const QProduct p = bf16_plan_rows(m, n, k);
  const RowsToRound from{a, lda, k, p.run};
  const Rows rows{c, ldc, epilogue};
  bf16_rows_product(p, {&RowsToRound::round, &from}, b, read_scale(b + panels_bytes(k, n)),
                    {&Rows::finish, &rows});
}

}  // namespace tombolo
