#include "runtime/kernels/matmul/gemm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/fixed26.h"
#include "runtime/kernels/matmul/gemm_halves.h"
#include "runtime/kernels/matmul/gemm_parts.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

constexpr int64_t kBlockBytes = 512 << 10;  ///< of C, to stay in the second cache
constexpr int64_t kBlockRows = 256;
constexpr int64_t kMostDepth = 1024;      ///< of k, that is summed over at a time
constexpr int64_t kMostSpread = 4 << 20;  ///< floats of A that are copied at once

struct Free {
  void operator()(float* p) const { std::free(p); }
};

/// A weight as it lies in a model's file, perhaps at an odd address.
template <typename T>
T load_any(const T* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

struct Product {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;         ///< unpacked: from row to row
  int64_t panel_step;  ///< from panel to panel
  const float* tail;   ///< unpacked: the last panel where it is not whole, packed; else null
  float* c;
  int64_t ldc;
  const GemmEpilogue& e;
  /// A once more, packed by tiles (pack_rows), or null: the tile that begins at row r at `r * k`.
  const float* packed = nullptr;
  PanelFormat format = PanelFormat::kFloat32;  ///< of B, where `b` points to
  /// B lies in no panels, alpha * b[i * row + j * column]: each panel is packed when its turn
  /// comes, and is near then.
  bool lies = false;
  int64_t row = 0, column = 0;
  float alpha = 1;
  bool turned = false;  ///< A is [k][m], lda from one k to the next

  bool halves() const {
    return format == PanelFormat::kFloat16 || format == PanelFormat::kBfloat16;
  }
  int64_t element() const { return halves() ? 2 : 4; }
  /// Element `at` of B.
  const float* b_at(int64_t at) const {
    return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(b) + at * element());
  }
  Fixed26Panels fixed26() const { return {k, gemm_tiles().lanes, 0}; }
  /// Where rows of B from k0 on begin in a panel.
  const float* panel_at(int64_t panel, int64_t k0) const {
    if (format != PanelFormat::kFixed26) return b_at(panel * panel_step + k0 * ldb);
    const Fixed26Panels layout = fixed26();
    return b + panel * panel_step + layout.words() + k0 / kFixed26Rows * layout.group();
  }
};

/// Rows of A, which fall into one set of the first cache, that it holds beside lines of B.
int64_t held_rows() {
  static const int64_t rows = [] {
#if defined(_SC_LEVEL1_DCACHE_ASSOC)
    const int64_t ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
    if (ways > 2) return ways - 2;
#endif
    return int64_t{0};
  }();
  return rows;
}

/// Whether tiles of rows where they lie would push each other's out of the first cache.
bool collides(const Product& p) { return !p.turned && p.k > 0 && rows_collide(p.lda); }
/// Where tiles of a few rows less do not, A is not copied.
bool copies(const GemmTiles& tiles, const Product& p) {
  constexpr int64_t kEnough = 10;
  return collides(p) && held_rows() < std::min<int64_t>(kEnough, tiles.max_rows);
}

/// Rows of B that are summed over at a time: as many as leave what is used of A, `rows` rows, in
/// the second cache, in even parts. Each part reads and writes C once.
int64_t depth_of(int64_t rows, int64_t k) {
  if (rows <= kMaxWideRows || k < 1) return std::max<int64_t>(k, 1);
  const int64_t most = std::clamp<int64_t>(near_bytes() / (rows * 4), 256, kMostDepth);
  const int64_t parts = (k + most - 1) / most;
  return round_up((k + parts - 1) / parts, kFixed26Rows);  // no group is taken apart
}

/// Rows of a block of C at most: a long k would be cut in more parts for more rows. A B that is
/// packed on the way is packed for each block.
int64_t block_rows(const Product& p) {
  constexpr int64_t kLeast = 128;
  if (p.lies) return kBlockRows;
  const int64_t depth = std::clamp<int64_t>(p.k, 1, kMostDepth);
  return std::clamp(near_bytes() / (depth * 4), kLeast, kBlockRows);
}

/// How many panels of B to take at a time for so few rows, of `left` whole ones.
int64_t wide_panels(const GemmTiles& tiles, PanelFormat format, int64_t rows, int64_t left) {
  if (rows > kMaxWideRows) return 1;
  // With 256 bits a panel is half as wide: four are as many lines as two.
  const bool one = reads_one_stream() && tiles.lanes == 16 && format != PanelFormat::kFloat32;
  const int64_t most = !one ? 4 : format == PanelFormat::kFixed26 ? 2 : 1;
  for (const int64_t panels : {4, 2})
    if (panels <= std::min(left, most) && tiles.wide[0][rows][panels] != nullptr) return panels;
  return 1;
}

/// Whether to pack A, for so many rows and panels: rows lie far from each other and six of them
/// keep the processor's streams busy, where packed ones are one stream; panels have to repay the
/// copy.
bool packs(const GemmTiles& tiles, int64_t rows, int64_t panels, int64_t k) {
  return tiles.packs_rows && rows > tiles.max_rows && panels >= 16 && k >= 64;
}

/// The tiles of a block of rows, which are of about the same height, and the first row of each.
int64_t tiles_of(int64_t most, int64_t rows) { return (rows + most - 1) / most; }
int64_t tile_begin(int64_t rows, int64_t turns, int64_t turn) { return rows * turn / turns; }

/// Rows of A from `row` on, of them k numbers from k0 on, to [k][rows], as packed tiles read them.
void pack_tile(const Product& p, int64_t row, int64_t rows, int64_t k0, int64_t k, float* out) {
  if (p.turned) {
    const float* from = p.a + k0 * p.lda + row;
    for (int64_t i = 0; i < k; ++i, from += p.lda, out += rows)
      std::memcpy(out, from, static_cast<size_t>(rows) * sizeof(float));
    return;
  }
  transpose_tile(reinterpret_cast<const std::byte*>(p.a + row * p.lda + k0), p.lda,
                 reinterpret_cast<std::byte*>(out), rows, rows, k, sizeof(float));
}

/// Of a turned A, whose rows lie side by side, tiles read few panels' worth where it lies: a page
/// for each k, perhaps.
constexpr int64_t kTurnedPanels = 4;

/// Sums in registers, of rows that lie one behind the other; or null.
GemmRowsFn* short_rows_of(const Product& p, const GemmTiles& tiles) {
  return p.k <= kMaxShort && !p.turned && p.packed == nullptr ? tiles.short_rows[p.k] : nullptr;
}

/// Whether a block goes down its rows, with all panels of each tile before the next: sums so short
/// take no longer than to write them, which is best done in long runs. B stays in the second cache.
bool goes_by_rows(const Product& p, const GemmTiles& tiles, int64_t rows, int64_t panels) {
  constexpr int64_t kShort = 256;
  return p.format == PanelFormat::kFloat32 && p.k >= 1 && p.k <= kShort &&
         (panels > 1 || short_rows_of(p, tiles) != nullptr) &&
         rows > std::max<int64_t>(tiles.max_rows, kMaxWideRows) && !p.e.backwards &&
         p.k * panels * tiles.panel() * 4 <= near_bytes();
}

/// block() of such.
void block_by_rows(const Product& p, const GemmTiles& tiles, int64_t row, int64_t rows,
                   int64_t from, int64_t to) {
  const bool side_by_side = p.turned || p.packed != nullptr;
  GemmRowsFn* const short_rows = short_rows_of(p, tiles);
  constexpr int64_t kShortRows = 32;  // of C, so that they stay near until they are whole
  const int64_t width = tiles.panel();
  const int64_t turns = tiles_of(short_rows != nullptr ? kShortRows : tiles.max_rows, rows);
  float* const room =
      p.lies ? thread_floats(5, static_cast<size_t>((to - from) * p.k * width)) : nullptr;
  GemmTile t{
      .k = p.k, .ldc = p.ldc, .ldi = p.e.ldi, .clamp = p.e.clamp, .lo = p.e.lo, .hi = p.e.hi};
  // What is done to sums is done to as many panels of them as are in the first cache: long runs.
  constexpr int64_t kNearBytes = 16 << 10;
  const auto finish = [&](int64_t r, int64_t count, int64_t first, int64_t last) {
    const int64_t column = first * width;
    p.e.post->apply(p.e.post->argument, p.c + r * p.ldc + column, p.ldc, r, count, column,
                    std::min(p.n, last * width) - column);
  };
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t r = row + tile_begin(rows, turns, turn);
    const int count = static_cast<int>(row + tile_begin(rows, turns, turn + 1) - r);
    t.lda = p.packed != nullptr ? count : p.lda;
    t.a = p.packed != nullptr ? p.packed + r * p.k : p.turned ? p.a + r : p.a + r * p.lda;
    t.row_bias = p.e.row_bias != nullptr ? p.e.row_bias + r : nullptr;
    const int64_t near = std::max<int64_t>(1, kNearBytes / (count * width * 4));
    int64_t finished = from;
    for (int64_t panel = from; panel < to; ++panel) {
      const int64_t column = panel * width, cols = std::min(width, p.n - column);
      t.cols = cols;
      // While the first panel is multiplied the next rows come, where they follow these.
      t.next = panel == from && turn + 1 < turns && !p.turned && (side_by_side || p.lda == p.k)
                   ? t.a + count * p.k
                   : nullptr;
      t.c = p.c + r * p.ldc + column;
      t.col_bias = p.e.col_bias != nullptr ? p.e.col_bias + column : nullptr;
      t.init = p.e.init != nullptr ? p.e.init + r * p.e.ldi + column : nullptr;
      bool keeps = false;
      if (room != nullptr) {
        float* const here = room + (panel - from) * p.k * width;
        const float* const raw = p.b + column * p.column;
        keeps =
            turn == 0 && cols == width && p.column == 1 && p.alpha == 1 && short_rows == nullptr;
        if (turn == 0 && !keeps) pack_b_panel(raw, p.row, p.column, p.k, cols, p.alpha, here);
        t.b = keeps ? raw : here;
        t.ldb = keeps ? p.row : width;
        t.widened = here;
      } else if (p.tail != nullptr && cols < width) {
        t.b = p.tail;
        t.ldb = width;
      } else {
        t.b = p.panel_at(panel, 0);
        t.ldb = p.ldb;
      }
      if (short_rows != nullptr)
        short_rows(t, count);
      else
        (keeps          ? tiles.widening[0][count][side_by_side ? 1 : 0]
         : side_by_side ? tiles.packed_tile(count, cols)
                        : tiles.row_major_tile(count, cols))(t);
      if (p.e.post != nullptr && (panel + 1 - finished == near || panel + 1 == to))
        finish(r, count, std::exchange(finished, panel + 1), panel + 1);
    }
  }
}

/// Rows [row, row + rows) by panels [from, to) of C.
void block(const Product& p, const GemmTiles& tiles, int64_t row, int64_t rows, int64_t from,
           int64_t to) {
  if (goes_by_rows(p, tiles, rows, to - from)) return block_by_rows(p, tiles, row, rows, from, to);
  const int64_t width = tiles.panel();
  const int tile_rows = tiles.tile_rows(rows);
  const int64_t depth = depth_of(rows, p.k), whole = p.n / width;  // whole: panels
  const bool pack = p.packed == nullptr &&
                    (p.turned ? to - from > kTurnedPanels : packs(tiles, rows, to - from, p.k));
  const bool side_by_side = p.turned || pack || p.packed != nullptr;  ///< rows of A
  const bool copy =
      p.packed == nullptr && !pack && rows > tile_rows && copies(tiles, p) && to - from > 2;
  const bool lower = rows > tile_rows && !side_by_side && collides(p) && !copies(tiles, p);
  const int64_t turns =
      tiles_of(lower ? std::min<int64_t>(held_rows(), tiles.max_rows) : tiles.max_rows, rows);
  const auto& wide = tiles.wide[static_cast<int>(p.format)];
  const auto& widening = tiles.widening[static_cast<int>(p.format)];
  const bool widens = p.format != PanelFormat::kFloat32 && rows > kMaxWideRows;
  const bool keeps = rows > kMaxWideRows && turns > 1;  // the first tile packs for the others
  for (int64_t k0 = 0; k0 == 0 || k0 < p.k; k0 += depth) {
    const int64_t k = std::min(depth, p.k - k0);
    const bool first = k0 == 0, last = k0 + k >= p.k;
    const float* a = p.turned ? p.a + k0 * p.lda + row : p.a + row * p.lda + k0;
    int64_t lda = p.lda;
    // These rows packed, of `packed_k` inputs, of which `skipped` come before k0.
    const float* packed = p.packed != nullptr ? p.packed + row * p.k : nullptr;
    int64_t packed_k = p.k, skipped = k0;
    if (pack) {
      float* const here = thread_floats(0, static_cast<size_t>(rows * depth));
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int64_t r = tile_begin(rows, turns, turn);
        pack_tile(p, row + r, tile_begin(rows, turns, turn + 1) - r, k0, k, here + r * k);
      }
      packed = here;
      packed_k = k;
      skipped = 0;
    } else if (copy) {
      lda = round_up(depth, 16) + 16;
      float* spread = thread_floats(0, static_cast<size_t>(rows * lda));
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(spread + r * lda, a + r * p.lda, static_cast<size_t>(k) * sizeof(float));
      a = spread;
    }
    for (int64_t begin = from, end = to; begin < end;) {
      const bool partial = p.e.backwards && end > whole;
      const int64_t step = partial || side_by_side
                               ? 1
                               : wide_panels(tiles, p.format, rows, std::min(end, whole) - begin);
      const int64_t panel = p.e.backwards ? end -= step : std::exchange(begin, begin + step);
      const int64_t column = panel * width;
      const int64_t cols = std::min(step * width, p.n - column);
      GemmTile t{.panel_step = p.panel_step, .k = k, .cols = cols};
      if (p.lies) {
        float* const room = thread_floats(5, static_cast<size_t>(depth * width));
        const float* const raw = p.b + k0 * p.row + column * p.column;
        if (keeps && cols == width && p.column == 1 && p.alpha == 1) {
          t.b = raw;
          t.ldb = p.row;
          t.widened = room;
        } else {
          pack_b_panel(raw, p.row, p.column, k, cols, p.alpha, room);
          t.b = room;
          t.ldb = width;
        }
      } else if (p.tail != nullptr && cols < width) {
        t.b = p.tail + k0 * width;
        t.ldb = width;
      } else {
        t.b = p.panel_at(panel, k0);
        t.ldb = p.ldb;
      }
      if (p.format == PanelFormat::kFixed26) {
        const Fixed26Panels layout = p.fixed26();
        const float* const begins = p.b + panel * p.panel_step;
        const int64_t groups = k0 / kFixed26Rows;
        t.scales = reinterpret_cast<const uint8_t*>(begins) + groups;
        t.raws = begins + layout.raw() +
                 std::count(t.scales - groups, t.scales, kFixed26Raw) * kFixed26Rest * layout.lanes;
        t.widened_once = turns == 1;
      }
      t.ldc = p.ldc;
      if (first && p.e.col_bias != nullptr) t.col_bias = p.e.col_bias + column;
      t.clamp = last && p.e.clamp;
      t.lo = p.e.lo;
      t.hi = p.e.hi;
      // While this panel is multiplied, what comes next is asked for: the next panel, then the next
      // rows of the first one, then the panel of the next task.
      const float* next = nullptr;
      const int64_t panels = (p.n + width - 1) / width;
      if (p.format == PanelFormat::kFixed26 && rows <= kMaxWideRows && panel + step < panels)
        t.next = p.panel_at(panel + step, k0);
      if (rows > kMaxWideRows && p.tail == nullptr && !p.lies) {
        if (panel + 1 < to)
          next = p.panel_at(panel + 1, k0);
        else if (!last)
          next = p.panel_at(from, k0 + depth);
        else if (to < panels)
          next = p.panel_at(to, 0);
      }
      // A single panel stays near, so it is the next rows that have to come.
      const bool streams = to - from == 1 && p.n <= width && packed == nullptr && !copy &&
                           !p.turned && k == p.k && lda == k && rows > kMaxWideRows &&
                           p.format == PanelFormat::kFloat32;
      const int64_t panel_floats = k * width * p.element() / 4;
      const int64_t ahead = panel_floats / turns;
      // Whole groups of rows, as fixed26 has them.
      if (widens)
        t.widened = thread_floats(6, static_cast<size_t>(round_up(k, kFixed26Rows) * width));
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int64_t r = tile_begin(rows, turns, turn);
        if (next != nullptr) {
          t.next = next + turn * ahead / 2;
          t.next_step = (ahead / 2 + k - 1) / std::max<int64_t>(k, 1);
          t.next_also = panel_floats / 2;
        }
        const int count = static_cast<int>(tile_begin(rows, turns, turn + 1) - r);
        t.lda = packed != nullptr ? count : lda;
        t.a = packed != nullptr ? packed + r * packed_k + skipped * count
              : p.turned        ? a + r
                                : a + r * lda;
        if (streams) t.next = t.a + count * lda;
        t.c = p.c + (row + r) * p.ldc + column;
        if (!first) {
          t.init = t.c;
          t.ldi = p.ldc;
        } else if (p.e.init != nullptr) {
          t.init = p.e.init + (row + r) * p.e.ldi + column;
          t.ldi = p.e.ldi;
        }
        t.row_bias = first && p.e.row_bias != nullptr ? p.e.row_bias + row + r : nullptr;
        // All columns are summed in the same order: equal ones give equal bits.
        (t.widened != nullptr   ? widening[count][side_by_side ? 1 : 0]
         : side_by_side         ? tiles.packed_tile(count, cols)
         : rows <= kMaxWideRows ? wide[count][step]
                                : tiles.row_major_tile(count, cols))(t);
        if (t.widened != nullptr) {
          t.b = std::exchange(t.widened, nullptr);
          t.ldb = width;
        }
        // At once, while the tile is in the first cache.
        if (last && p.e.post != nullptr)
          p.e.post->apply(p.e.post->argument, t.c, p.ldc, row + r, count, column, cols);
      }
    }
  }
}

/// How the parts of A (gemm_parts.h) lie: blocks of rows, of each its stretches of k one after the
/// other, so that what a panel of B meets at a time stays in the second cache.
struct PartsPlan {
  int64_t row_blocks, rows, turns;  ///< turns: of 32 rows, in a block
  int64_t depth, stretches;
  int64_t stretch_bytes() const { return turns * turn_bytes(); }
  int64_t turn_bytes() const { return depth / kPartsDepth * kPartsBytesA; }
  int64_t block_bytes() const { return stretches * stretch_bytes(); }
};

constexpr int64_t kPartsStep = 4 * kPartsDepth;   ///< of B, whose parts stay in the first cache
constexpr int64_t kPartsSummed = 4 * kPartsStep;  ///< what is summed up before it is added

PartsPlan plan_parts(const Product& p) {
  PartsPlan plan{};
  plan.row_blocks = (p.m + kBlockRows - 1) / kBlockRows;
  plan.rows = round_up((p.m + plan.row_blocks - 1) / plan.row_blocks, kPartsRows);
  plan.row_blocks = (p.m + plan.rows - 1) / plan.rows;
  plan.turns = plan.rows / kPartsRows;
  const int64_t most = std::max(
      kPartsStep, near_bytes() * 5 / 4 / (plan.rows * kPartsBytesA / (kPartsRows * kPartsDepth)));
  plan.stretches = (p.k + most - 1) / most;
  plan.depth = round_up((p.k + plan.stretches - 1) / plan.stretches, kPartsStep);
  plan.stretches = (p.k + plan.depth - 1) / plan.depth;
  return plan;
}

/// Rows [row, row + rows), whose parts are `a`, by panels [from, to) of C. What turns out not to be
/// finite is left to vectors.
void parts_block(const Product& p, const PartsPlan& plan, const std::byte* a, int64_t row,
                 int64_t rows, int64_t from, int64_t to) {
  const int64_t sum_floats = plan.rows * kPartsWidth;
  const bool whole = plan.stretches == 1;  // each panel is done with at once
  float* const some =
      thread_floats(5, static_cast<size_t>((whole ? 2 : to - from + 1) * sum_floats));
  alignas(64) std::byte b[kPartsStep / kPartsDepth * parts_bytes_b(PanelFormat::kFloat16)];
  amx_begin(64);
  for (int64_t k0 = 0; k0 < p.k; k0 += plan.depth, a += plan.stretch_bytes()) {
    const int64_t k = std::min(plan.depth, p.k - k0);
    const bool last = k0 + k >= p.k;
    for (int64_t panel = from; panel < to; ++panel) {
      const int64_t at = panel * p.panel_step + k0 * kPartsWidth;
      float* sums = some + (whole ? 1 : panel - from + 1) * sum_floats;
      for (int64_t i = 0; i < k; i += kPartsStep) {
        const int64_t count = std::min(kPartsStep, k - i);
        parts_of_panel(p.format, p.b_at(at + i * kPartsWidth), count, b);
        const float* next = nullptr;
        if (i + kPartsStep < k)
          next = p.b_at(at + (i + kPartsStep) * kPartsWidth);
        else if (panel + 1 < to)
          next = p.b_at(at + p.panel_step);
        else if (!last)
          next = p.b_at(from * p.panel_step + (k0 + plan.depth) * kPartsWidth);
        const bool first = k0 == 0 && i < kPartsSummed;
        parts_product({p.format, a + i / kPartsDepth * kPartsBytesA, plan.turn_bytes(), rows, b,
                       (count + kPartsDepth - 1) / kPartsDepth, i % kPartsSummed != 0,
                       first ? sums : some, next});
        if (!first && ((i + kPartsStep) % kPartsSummed == 0 || i + kPartsStep >= k))
          parts_add(some, rows, sums);
      }
      if (!last) continue;
      const int64_t column = panel * kPartsWidth, columns = std::min(kPartsWidth, p.n - column);
      if (!parts_finite(sums, rows)) {
        block(p, gemm_tiles(), row, rows, panel, panel + 1);
        continue;
      }
      float* c = p.c + row * p.ldc + column;
      bf16_store(p.e, sums, row, rows, column, columns, c, p.ldc);
      if (p.e.post != nullptr)
        p.e.post->apply(p.e.post->argument, c, p.ldc, row, rows, column, columns);
    }
  }
  amx_end();
}

/// By AMX: some blocks of rows are taken apart at a time, for all panels.
void run_parts(const Product& p) {
  constexpr int64_t kMostBytes = 16 << 20;
  const PartsPlan plan = plan_parts(p);
  const int64_t panels = (p.n + kPartsWidth - 1) / kPartsWidth, threads = thread_count();
  const int64_t at_once =
      threads == 1 ? 1 : std::clamp<int64_t>(kMostBytes / plan.block_bytes(), 1, plan.row_blocks);
  auto* const a = reinterpret_cast<std::byte*>(
      thread_floats(4, static_cast<size_t>(at_once * plan.block_bytes() / 4)));
  for (int64_t first = 0; first < plan.row_blocks; first += at_once) {
    const int64_t blocks = std::min(at_once, plan.row_blocks - first);
    parallel(blocks * plan.turns, std::max<int64_t>(1, 1024 / p.k),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t row = first * plan.rows + i * kPartsRows;
                 std::byte* to =
                     a + i / plan.turns * plan.block_bytes() + i % plan.turns * plan.turn_bytes();
                 if (row >= p.m) continue;
                 for (int64_t k0 = 0; k0 < p.k; k0 += plan.depth, to += plan.stretch_bytes())
                   parts_of_rows(p.a + row * p.lda + k0, p.lda, std::min(kPartsRows, p.m - row),
                                 std::min(plan.depth, p.k - k0), to);
               }
             });
    const int64_t groups = panel_groups(blocks, std::max<int64_t>(1, panels / 2));
    parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t row = (first + task / groups) * plan.rows, at = task % groups;
        parts_block(p, plan, a + task / groups * plan.block_bytes(), row,
                    std::min(plan.rows, p.m - row), panels * at / groups,
                    panels * (at + 1) / groups);
      }
    });
  }
}

/// By pairs of bytes: rows of A become such once, each panel of B when its turn comes. What has
/// numbers that are not for that is left to vectors of floats.
void run_halves(const Product& p) {
  constexpr int64_t kMostBytes = 4 << 20;
  const int64_t panels = (p.n + kHalvesWidth - 1) / kHalvesWidth;
  const int64_t tile_bytes = round_up(halves_tile_bytes(kHalvesRows, p.k), 64);
  const int64_t turns = (p.m + kHalvesRows - 1) / kHalvesRows;
  const int64_t at_once = std::clamp<int64_t>(kMostBytes / tile_bytes, 1, turns);
  auto* const a =
      reinterpret_cast<std::byte*>(thread_floats(4, static_cast<size_t>(at_once * tile_bytes / 4)));
  for (int64_t first = 0; first < turns; first += at_once) {
    const int64_t last = std::min(turns, first + at_once);
    const auto row_of = [&](int64_t turn) { return tile_begin(p.m, turns, turn); };
    std::vector<uint8_t> odd(static_cast<size_t>(last - first));
    parallel(last - first, std::max<int64_t>(1, 4096 / p.k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = row_of(first + i), count = row_of(first + i + 1) - r;
        bool even = true;
        for (int64_t at = 0; at < count && even; ++at)
          even = halves_of_row(p.a + (r + at) * p.lda, 16, p.k, at, count, a + i * tile_bytes);
        odd[static_cast<size_t>(i)] = !even;
      }
    });
    const int64_t row = row_of(first), rows = row_of(last) - row;
    const int64_t groups = panel_groups(1, panels);
    parallel(groups, 1, [&](int64_t begin, int64_t end) {
      auto* const bytes = reinterpret_cast<std::byte*>(
          thread_floats(5, static_cast<size_t>(halves_panel_bytes(p.k) / 4)));
      alignas(64) float sums[kHalvesRows * kHalvesWidth];
      for (int64_t panel = panels * begin / groups; panel < panels * end / groups; ++panel) {
        if (!halves_of_panel(p.format, p.panel_at(panel, 0), p.k, bytes)) {
          block(p, gemm_tiles(), row, rows, panel, panel + 1);
          continue;
        }
        const int64_t column = panel * kHalvesWidth, columns = std::min(kHalvesWidth, p.n - column);
        // Each tile asks for a part of the next panel.
        const int64_t part = p.k * kHalvesWidth * p.element() / (last - first);
        const auto* next =
            reinterpret_cast<const std::byte*>(p.panel_at(std::min(panel + 1, panels - 1), 0));
        for (int64_t turn = first; turn < last; ++turn, next += part) {
          const int64_t r = row_of(turn), count = row_of(turn + 1) - r;
          if (odd[static_cast<size_t>(turn - first)] != 0) {
            block(p, gemm_tiles(), r, count, panel, panel + 1);
            continue;
          }
          halves_product(a + (turn - first) * tile_bytes, count, bytes, p.k, next, sums);
          float* const c = p.c + r * p.ldc + column;
          bf16_store(p.e, sums, r, count, column, columns, c, p.ldc);
          if (p.e.post != nullptr)
            p.e.post->apply(p.e.post->argument, c, p.ldc, r, count, column, columns);
        }
      }
    });
  }
}

/// A with its rows in other sets.
Product spread_rows(const Product& p) {
  int64_t lda = round_up(p.k, 16) + 16;
  if (rows_collide(lda)) lda += 16;
  float* a = thread_floats(4, static_cast<size_t>(p.m * lda));
  parallel(p.m, std::max<int64_t>(1, 16384 / p.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(a + i * lda, p.a + i * p.lda, static_cast<size_t>(p.k) * sizeof(float));
  });
  Product changed = p;
  changed.a = a;
  changed.lda = lda;
  return changed;
}

/// A packed by the tiles that `run` cuts it into: blocks of `rows` rows, in each tiles of about the
/// same height.
Product pack_rows(const Product& p, const GemmTiles& tiles, int64_t rows) {
  float* packed = thread_floats(4, static_cast<size_t>(p.m * p.k));
  const int64_t most = tiles_of(tiles.max_rows, rows);
  parallel((p.m + rows - 1) / rows * most, std::max<int64_t>(1, 4096 / p.k),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               const int64_t row = i / most * rows, height = std::min(rows, p.m - row);
               const int64_t turns = tiles_of(tiles.max_rows, height), turn = i % most;
               if (turn >= turns) continue;
               const int64_t r = row + tile_begin(height, turns, turn);
               pack_tile(p, r, row + tile_begin(height, turns, turn + 1) - r, 0, p.k,
                         packed + r * p.k);
             }
           });
  Product changed = p;
  changed.packed = packed;
  return changed;
}

/// A small B of floats for rows of one tile, as block() does it: finding out how to cut it would
/// take longer than the product.
void one_tile(const Product& p, const GemmTiles& tiles) {
  const int64_t width = tiles.panel(), whole = p.n / width;
  const auto rows = static_cast<int>(p.m);
  GemmTile t{.a = p.a, .lda = p.lda, .panel_step = p.panel_step, .k = p.k, .ldc = p.ldc};
  t.near = true;
  t.ldi = p.e.ldi;
  t.row_bias = p.e.row_bias;
  t.clamp = p.e.clamp;
  t.lo = p.e.lo;
  t.hi = p.e.hi;
  for (int64_t panel = 0, column = 0; column < p.n; column = panel * width) {
    const int64_t step = wide_panels(tiles, PanelFormat::kFloat32, rows, whole - panel);
    const bool tail = p.tail != nullptr && panel == whole;
    t.b = tail ? p.tail : p.b + panel * p.panel_step;
    t.ldb = tail ? width : p.ldb;
    t.next = t.b;  // what tall tiles read, not what lies behind it
    t.c = p.c + column;
    t.cols = std::min(step * width, p.n - column);
    if (p.e.init != nullptr) t.init = p.e.init + column;
    if (p.e.col_bias != nullptr) t.col_bias = p.e.col_bias + column;
    (rows <= kMaxWideRows ? tiles.wide[static_cast<int>(PanelFormat::kFloat32)][rows][step]
                          : tiles.row_major_tile(rows, t.cols))(t);
    panel += step;
  }
  if (p.e.post != nullptr) p.e.post->apply(p.e.post->argument, p.c, p.ldc, 0, p.m, 0, p.n);
}

void run(const Product& p) {
  const GemmTiles& tiles = gemm_tiles();
  if (p.m <= 0 || p.n <= 0) return;
  constexpr int64_t kSmallB = 1 << 14;  // floats
  if (p.m <= tiles.max_rows && p.n * p.k <= kSmallB && !p.turned && !p.lies &&
      p.packed == nullptr && p.format == PanelFormat::kFloat32)
    return one_tile(p, tiles);
  const int64_t panels = (p.n + tiles.panel() - 1) / tiles.panel();
  const int64_t threads = thread_count();
  // Row blocks of about the same height.
  constexpr int64_t kLeastRows = 32;
  const int64_t most = block_rows(p);
  const int64_t row_work = panels * tiles.panel() * std::max<int64_t>(p.k, 1);
  const int64_t blocks = row_blocks((p.m + most - 1) / most, panels, p.m,
                                    std::max(kLeastRows, kWorthATurn / row_work));
  const int64_t rows = (p.m + blocks - 1) / blocks;
  if (p.packed == nullptr && packs(tiles, rows, panels, p.k) && p.m * p.k <= kMostSpread)
    return run(pack_rows(p, tiles, rows));
  if (threads > 1 && p.packed == nullptr && copies(tiles, p) && p.m >= 64 && panels > 2 &&
      p.m * p.k <= kMostSpread)
    return run(spread_rows(p));
  // Panels a task: enough work to be worth a turn (few rows wait for B, not for sums), few enough
  // that C stays in the second cache; several for each thread, as cores are not equally fast at all
  // times, unless each has to copy A.
  const int64_t work = std::max<int64_t>(1, std::max<int64_t>(rows, 4) * tiles.panel() * p.k);
  int64_t group = std::max<int64_t>(1, kWorthATurn / work);
  if (rows <= kMaxWideRows) {
    constexpr int64_t kWorthReading = 64 << 10;  // floats of B
    const int64_t least =
        std::clamp<int64_t>(kWorthReading / (tiles.panel() * std::max<int64_t>(p.k, 1)), 1, 4);
    group = std::max(group, std::clamp<int64_t>((panels + threads - 1) / threads, least, 4));
  }
  const int64_t most_groups = threads <= kFewThreads ? 8 : 4 * threads;
  if (rows > tiles.max_rows) group = std::max(group, std::min<int64_t>(8, panels / most_groups));
  if (rows >= 64) {
    const int64_t stays = std::max<int64_t>(1, kBlockBytes / (rows * tiles.panel() * 4));
    const int64_t tasks =
        threads == 1 ? 1 : (p.packed == nullptr && copies(tiles, p) ? 2 : 8) * threads;
    group = std::max(group, std::min(stays, panels * blocks / tasks));
  }
  // Tasks begin where few rows take panels several at a time, unless threads would not come out
  // even.
  const int64_t wide = p.turned ? 1 : wide_panels(tiles, p.format, rows, panels);
  const int64_t unit = threads == 1 || panels >= 2 * threads * wide ? wide : 1;
  const int64_t units = (panels + unit - 1) / unit;
  int64_t groups = std::max<int64_t>(1, (panels + group - 1) / group);
  if (groups >= threads) groups = (groups + threads - 1) / threads * threads;
  groups = std::min(units, groups);
  parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t task = p.e.backwards ? begin + end - 1 - i : i;
      const int64_t row = task / groups * rows, at = task % groups;
      if (row >= p.m) continue;
      block(p, tiles, row, std::min(rows, p.m - row), units * at / groups * unit,
            std::min(panels, units * (at + 1) / groups * unit));
    }
  });
}

}  // namespace

bool images_apart(int64_t batch, int64_t weight_floats, int64_t parts) {
  const int64_t threads = thread_count();
  if (threads == 1 || weight_floats * 4 > near_bytes()) return false;
  return batch >= 2 * threads || (batch == threads && parts < 8 * threads);
}

int64_t row_blocks(int64_t blocks, int64_t each, int64_t rows, int64_t least) {
  constexpr int64_t kPieces = 3;  ///< of a thread
  const int64_t threads = thread_count();
  if (threads <= kFewThreads) {
    // One piece more for some of them would be all that the others wait for.
    const int64_t pieces = blocks * each, even = blocks * threads;
    const bool is_even = pieces % threads == 0 || pieces >= 8 * threads;
    return is_even || rows < even * least ? blocks : even;
  }
  return std::max(blocks, std::min((kPieces * threads + each - 1) / each, rows / least));
}

int64_t panel_groups(int64_t blocks, int64_t panels) {
  const int64_t threads = thread_count();
  if (threads == 1) return 1;
  const int64_t each = blocks > 1 ? 8 : threads <= kFewThreads ? 1 : 4;
  return std::clamp<int64_t>(each * threads / blocks, 1, panels);
}

int64_t near_bytes() {
  static const int64_t bytes = [] {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    const int64_t size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (size > 0) return std::clamp<int64_t>(size / 2, 128 << 10, 1 << 20);
#endif
    return int64_t{512} << 10;
  }();
  return bytes;
}

float* thread_floats(int slot, size_t count) {
  struct Buffer {
    std::unique_ptr<float, Free> data;
    size_t size = 0;
  };
  static thread_local Buffer buffers[kThreadRooms];
  Buffer& buffer = buffers[slot];
  if (buffer.size < count || buffer.size == 0) {
    const size_t size = (count + 1024) / 1024 * 1024;
    buffer.data.reset();
    buffer.size = 0;
    buffer.data.reset(static_cast<float*>(std::aligned_alloc(64, size * sizeof(float))));
    if (buffer.data == nullptr) throw std::bad_alloc();
    buffer.size = size;
  }
  return buffer.data.get();
}

int64_t packed_b_floats(int64_t k, int64_t n) { return k * round_up(n, gemm_tiles().panel()); }

bool takes_panels(PanelFormat format) {
  return gemm_tiles().wide[static_cast<int>(format)][1][1] != nullptr;
}

namespace {

/// A panel of any element; `change(elements, count)` sees each piece that was written.
template <typename T, typename Change>
void pack_panel(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, T* out,
                Change&& change) {
  const int64_t width = gemm_tiles().panel();
  if (column == 1) {
    for (int64_t i = 0; i < k; ++i, b += row, out += width) {
      std::memcpy(out, b, static_cast<size_t>(n) * sizeof(T));
      std::fill(out + n, out + width, T{0});
      change(out, n);
    }
    return;
  }
  if (row == 1 && reinterpret_cast<uintptr_t>(b) % sizeof(T) == 0) {
    constexpr int64_t kRun = 64;
    for (int64_t i0 = 0; i0 < k; i0 += kRun) {
      const int64_t run = std::min(kRun, k - i0);
      T* to = out + i0 * width;
      transpose_tile(reinterpret_cast<const std::byte*>(b + i0), column,
                     reinterpret_cast<std::byte*>(to), width, n, run, sizeof(T));
      if (n < width)
        for (int64_t i = 0; i < run; ++i) std::fill(to + i * width + n, to + (i + 1) * width, T{0});
      change(to, run * width);
    }
    return;
  }
  // Columns are far apart: short runs down each, so that what is written stays in the cache.
  constexpr int64_t kRun = 16;
  for (int64_t i0 = 0; i0 < k; i0 += kRun) {
    const int64_t run = std::min(kRun, k - i0);
    T* to = out + i0 * width;
    for (int64_t j = 0; j < n; ++j) {
      const T* from = b + i0 * row + j * column;
      for (int64_t i = 0; i < run; ++i) to[i * width + j] = load_any(from + i * row);
    }
    for (int64_t i = 0; i < run; ++i) std::fill(to + i * width + n, to + (i + 1) * width, T{0});
    change(to, run * width);
  }
}

}  // namespace

void pack_b_panel(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                  float* out) {
  if (column == 1) return gemm_tiles().pack_rows(b, row, k, n, alpha, out);
  pack_panel(b, row, column, k, n, out, [alpha](float* x, int64_t count) {
    if (alpha != 1) gemm_tiles().scale(x, count, alpha);
  });
}

void pack_b_panel(const uint16_t* b, int64_t row, int64_t column, int64_t k, int64_t n,
                  uint16_t* out) {
  pack_panel(b, row, column, k, n, out, [](uint16_t*, int64_t) {});
}

void pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
            float* out) {
  if (k == 0) return;
  const int64_t width = gemm_tiles().panel();
  const int64_t panels = (n + width - 1) / width;
  parallel(panels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t p = begin; p < end; ++p)
               pack_b_panel(b + p * width * column, row, column, k, std::min(width, n - p * width),
                            alpha, out + p * width * k);
           });
}

void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed_b,
          float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  const int64_t width = gemm_tiles().panel();
  const Product product{m, n, k, a, lda, packed_b, width, width * k, nullptr, c, ldc, epilogue};
  run(product);
}

void gemm_turned(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                 const LyingB* lies, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  const int64_t width = gemm_tiles().panel();
  Product product{m, n, k, a, lda, b, width, width * k, nullptr, c, ldc, epilogue};
  product.turned = true;
  if (lies != nullptr) {
    product.lies = true;
    product.row = lies->row;
    product.column = lies->column;
    product.alpha = lies->alpha;
  }
  run(product);
}

void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const void* packed_b,
          PanelFormat format, float* c, int64_t ldc, const GemmEpilogue& epilogue, bool short_a) {
  const int64_t width = gemm_tiles().panel();
  const auto* const b = static_cast<const float*>(packed_b);
  if (format == PanelFormat::kFloat32) return gemm(m, n, k, a, lda, b, c, ldc, epilogue);
  if (format == PanelFormat::kFixed26)
    return run({m, n, k, a, lda, b + kFixed26Header / 4, width, fixed26_panels(b, k).panel(),
                nullptr, c, ldc, epilogue, nullptr, format});
  const Product product{m,         n,       k, a,   lda,      b,       width,
                        width * k, nullptr, c, ldc, epilogue, nullptr, format};
  if (short_a && parts_fit(format, m, n, k)) return run_parts(product);
  if (short_a && product.halves() && halves_pay(m, n, k)) return run_halves(product);
  run(product);
}

void gemm_unpacked(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  const int64_t width = gemm_tiles().panel();
  if (k == 0) return gemm(m, n, 0, a, lda, thread_floats(3, 1), c, ldc, epilogue);
  const int64_t rest = n % width;
  float* tail = nullptr;
  if (rest != 0) {
    tail = thread_floats(3, static_cast<size_t>(k * width));
    pack_b_panel(b + n - rest, ldb, 1, k, rest, 1, tail);
  }
  run({m, n, k, a, lda, b, ldb, width, tail, c, ldc, epilogue});
}

bool gemm_packing_fits(int64_t m) { return m > kMaxWideRows && m <= kBlockRows; }

void gemm_packing(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                  int64_t row, int64_t column, float alpha, float* c, int64_t ldc,
                  const GemmEpilogue& epilogue) {
  Product product{m, n, k, a, lda, b, 0, 0, nullptr, c, ldc, epilogue};
  product.lies = true;
  product.row = row;
  product.column = column;
  product.alpha = alpha;
  run(product);
}

int64_t packed_a_floats(int64_t m, int64_t k) {
  const int64_t rows = gemm_tiles().tile_rows(m);
  return round_up(m, rows) * k;
}

void pack_a(const float* a, int64_t row, int64_t column, int64_t m, int64_t k, float* out) {
  const int64_t rows = gemm_tiles().tile_rows(m);
  const int64_t count = (m + rows - 1) / rows;
  parallel(count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * rows)),
           [&](int64_t begin, int64_t end) {
             for (int64_t t = begin; t < end; ++t) {
               float* to = out + t * rows * k;
               const int64_t used = std::min(rows, m - t * rows);
               if (column == 1 && reinterpret_cast<uintptr_t>(a) % sizeof(float) == 0) {
                 if (used < rows) std::fill_n(to, rows * k, 0.0f);
                 transpose_tile(reinterpret_cast<const std::byte*>(a + t * rows * row), row,
                                reinterpret_cast<std::byte*>(to), rows, used, k, sizeof(float));
                 continue;
               }
               if (row == 1) {
                 for (int64_t j = 0; j < k; ++j, to += rows) {
                   std::memcpy(to, a + t * rows + j * column,
                               static_cast<size_t>(used) * sizeof(float));
                   std::fill(to + used, to + rows, 0.0f);
                 }
                 continue;
               }
               for (int64_t r = 0; r < rows; ++r) {
                 const int64_t i = t * rows + r;
                 for (int64_t j = 0; j < k; ++j)
                   to[j * rows + r] = i < m ? a[i * row + j * column] : 0.0f;
               }
             }
           });
}

}  // namespace tombolo
