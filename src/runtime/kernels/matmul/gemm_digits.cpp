#include "runtime/kernels/matmul/gemm_digits.h"

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

bool digits_fit(int64_t n, int64_t k) { return n >= 16 && k >= 64 && has_amx_int8(); }

bool digits_pay_for_floats(int64_t m, int64_t n, int64_t k) {
  return has_amx_int8() && k >= 128 && m >= 96 && n >= 96 && m * n >= 128 * 192;
}

bool digits_pay_for_bytes(int64_t m, int64_t n, int64_t k) {
  return has_amx_int8() && m >= 12 && n >= 32 && k >= 64;
}

int64_t digits_depth(int64_t rows, int64_t steps) {
  const auto parts = [](int64_t whole, int64_t most) { return (whole + most - 1) / most; };
  const int64_t most =
      near_bytes() * 5 / 4 / (parts(rows, kDigitsRows) * digit_tile_bytes(kDigitsDepth));
  return parts(steps, parts(steps, std::max<int64_t>(1, most)));
}

namespace {

/// Rows of A in blocks, some of which are kept as digits.
struct RowBlocks {
  const float* a;
  int64_t lda, m, k;
  int64_t rows;  ///< of a block
  float* scales;
  std::byte* digits;

  int64_t tile_bytes() const { return digit_tile_bytes(k); }
  int64_t tiles() const { return rows / kDigitsRows; }
  int64_t blocks() const { return (m + rows - 1) / rows; }
  static size_t floats(int64_t rows, int64_t k) {
    return static_cast<size_t>(digit_block_floats(rows, k));
  }
  /// Room for so many blocks, which are 64 bytes aligned.
  void keep_in(float* room, int64_t count) {
    scales = room;
    digits = reinterpret_cast<std::byte*>(room + count * rows);
  }
  /// Blocks from `first` on are kept. Threaded.
  void split(int64_t first, int64_t count) const {
    const int64_t begin = first * rows, left = m - begin;
    parallel(std::min(count * rows, round_up(left, kDigitsRows)), std::max<int64_t>(1, 8192 / k),
             [&](int64_t from, int64_t to) {
               split_rows(from, to, left, k, digits, scales, [&](int64_t r) {
                 return DigitRow{a + (begin + r) * lda, 16, k};
               });
             });
  }
};

/// C, and what becomes of its sums.
struct WholeC {
  float* c;
  int64_t ldc;
  const GemmEpilogue& epilogue;
};
struct RowsPost {
  const BlockPost* post;
  float* c;
  int64_t ldc, row;
  static void apply(const void* argument, int64_t rows, int64_t column, int64_t columns) {
    const auto& p = *static_cast<const RowsPost*>(argument);
    p.post->apply(p.post->argument, p.c + column, p.ldc, p.row, rows, column, columns);
  }
};

/// Block `block` of A, which is kept as number `kept`, by halves [from, to) of panels.
void multiply_block(const RowBlocks& a, int64_t block, int64_t kept, const std::byte* b,
                    const DigitPanels& panels, const WholeC& to_c, int64_t depth, int64_t from,
                    int64_t to) {
  const GemmEpilogue& e = to_c.epilogue;
  const int64_t row = block * a.rows;
  const PlainRows floats{a.a + row * a.lda, a.lda};
  const DigitRows split{.digits = a.digits + kept * a.tiles() * a.tile_bytes(),
                        .tile = a.tile_bytes(),
                        .scales = a.scales + kept * a.rows,
                        .floats = &PlainRows::row,
                        .argument = &floats};
  DigitResult result{.c = to_c.c + row * to_c.ldc, .ldc = to_c.ldc};
  if (e.init != nullptr) {
    result.init = e.init + row * e.ldi;
    result.ldi = e.ldi;
  }
  if (e.row_bias != nullptr) result.row_bias = e.row_bias + row;
  result.column_bias = e.col_bias;
  result.clamp = e.clamp;
  result.lo = e.lo;
  result.hi = e.hi;
  const RowsPost post{e.post, result.c, to_c.ldc, row};
  if (e.post != nullptr) {
    result.post = &RowsPost::apply;
    result.argument = &post;
  }
  digits_product(split, std::min(a.rows, a.m - row), b, panels, result, depth, from, to);
}

/// What a GemmEpilogue does, from a column on.
struct ShiftedEpilogue {
  const GemmEpilogue& whole;
  int64_t column;
  BlockPost post{&apply, this};

  static void apply(const void* argument, float* c, int64_t ldc, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
    const auto& self = *static_cast<const ShiftedEpilogue*>(argument);
    const BlockPost& inner = *self.whole.post;
    inner.apply(inner.argument, c, ldc, row, rows, self.column + column, columns);
  }
  GemmEpilogue epilogue() const {
    GemmEpilogue e = whole;
    if (e.col_bias != nullptr) e.col_bias += column;
    if (e.init != nullptr) e.init += column;
    if (e.post != nullptr) e.post = &post;
    return e;
  }
};

}  // namespace

void gemm_digits(int64_t m, const float* a, int64_t lda, const std::byte* b,
                 const DigitPanels& panels, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m <= 0) return;
  constexpr int64_t kMostBytes = 16 << 20;
  RowBlocks rows{a, lda, m, panels.k, digits_block(m), nullptr, nullptr};
  const int64_t block_bytes = rows.tiles() * rows.tile_bytes();
  const int64_t depth = digits_depth(rows.rows, panels.steps());
  const int64_t at_once =
      thread_count() == 1 ? 1 : std::clamp<int64_t>(kMostBytes / block_bytes, 1, rows.blocks());
  rows.keep_in(
      thread_floats(4, static_cast<size_t>(at_once) * RowBlocks::floats(rows.rows, panels.k)),
      at_once);
  for (int64_t done = 0; done < rows.blocks(); done += at_once) {
    const int64_t blocks = std::min(at_once, rows.blocks() - done);
    rows.split(done, blocks);
    share_products(
        blocks, panel_groups(blocks, panels.halves()), panels.halves(),
        [&](int64_t block, int64_t from, int64_t to) {
          multiply_block(rows, done + block, block, b, panels, {c, ldc, epilogue}, depth, from, to);
        });
  }
}

void gemm_digits(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const FloatPanels& b,
                 float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m <= 0) return;
  constexpr int64_t kMostRows = 1024, kMostBytes = 4 << 20;  // of A and of B, kept as digits
  RowBlocks rows{a, lda, m, k, digits_block(m), nullptr, nullptr};
  const int64_t at_once = std::clamp<int64_t>(kMostRows / rows.rows, 1, rows.blocks());
  const int64_t digits = b.bytes != nullptr ? 1 : 4;
  const DigitPanels all{k, n, digits};
  const int64_t panels = all.panels(), threads = thread_count();
  rows.keep_in(thread_floats(4, static_cast<size_t>(at_once) * RowBlocks::floats(rows.rows, k)),
               at_once);
  const int64_t depth = digits_depth(rows.rows, all.steps());
  const auto panel_floats = [&](int64_t panel, int slot) {
    return b.panel(b.argument, panel,
                   thread_floats(slot, static_cast<size_t>(round_up(k, 4) * kDigitsWidth)));
  };
  std::vector<uint8_t> held(static_cast<size_t>(panels));
  // Panels from `first` on, in this thread's own room.
  struct Some {
    int64_t first;
    DigitPanels shape;
    std::byte* matrix;
  };
  const auto room_for = [&](int64_t first, int64_t count) {
    const DigitPanels shape{k, std::min(n - first * kDigitsWidth, count * kDigitsWidth), digits};
    float* const room = thread_floats(6, static_cast<size_t>(shape.bytes() / 4));
    return Some{first, shape, reinterpret_cast<std::byte*>(room)};
  };
  // Those [from, to) of them.
  const auto pack = [&](const Some& some, int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p)
      if (b.bytes != nullptr) {
        std::byte* const halves = some.matrix + some.shape.scales() + p * 2 * some.shape.half();
        b.bytes(b.argument, some.first + p, some.shape.half(), halves,
                reinterpret_cast<float*>(some.matrix) + p * kDigitsWidth);
        held[static_cast<size_t>(some.first + p)] = 1;
      } else {
        held[static_cast<size_t>(some.first + p)] = digits_pack_panel(
            panel_floats(some.first + p, 0), k, {-1, 0}, some.shape, p, some.matrix);
      }
  };
  const auto multiply = [&](int64_t done, int64_t block, const Some& some, int64_t from,
                            int64_t to) {
    const ShiftedEpilogue shifted{epilogue, some.first * kDigitsWidth};
    const GemmEpilogue own = shifted.epilogue();
    const WholeC to_c{c + some.first * kDigitsWidth, ldc, own};
    const uint8_t* const hold = held.data() + some.first;
    for (int64_t p = from; p < to; ++p) {
      const int64_t start = p;
      while (p < to && hold[p] != 0) ++p;
      if (start < p)
        multiply_block(rows, done + block, block, some.matrix, some.shape, to_c, depth, 2 * start,
                       2 * p);
    }
  };
  // Each thread makes digits of some panels for itself, and multiplies them while they are near.
  // Few panels do not come out even: all are made before blocks of rows are shared, too.
  const bool few = threads > 1 && panels < 4 * threads;
  const int64_t most = std::max<int64_t>(1, kMostBytes / (2 * all.half()));
  const int64_t least = threads == 1 ? 1 : 4 * threads;  // cores are not equally fast at all times
  const int64_t tasks =
      std::min(panels, round_up(std::max((panels + most - 1) / most, least), threads));
  for (int64_t done = 0; done < rows.blocks(); done += at_once) {
    const int64_t blocks = std::min(at_once, rows.blocks() - done);
    rows.split(done, blocks);
    if (few) {
      const Some whole = room_for(0, panels);
      parallel(panels, 1, [&](int64_t begin, int64_t end) { pack(whole, begin, end); });
      share_products(
          blocks, panel_groups(blocks, panels), panels,
          [&](int64_t block, int64_t from, int64_t to) { multiply(done, block, whole, from, to); });
      continue;
    }
    parallel(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = panels * task / tasks, count = panels * (task + 1) / tasks - first;
        const Some some = room_for(first, count);
        pack(some, 0, count);
        for (int64_t block = 0; block < blocks; ++block) multiply(done, block, some, 0, count);
      }
    });
  }
  constexpr int kBeside = 2;  // what gemm() does not use itself
  for (int64_t p = 0; p < panels; ++p) {
    if (held[static_cast<size_t>(p)] != 0) continue;
    const int64_t column = p * kDigitsWidth;
    const ShiftedEpilogue shifted{epilogue, column};
    gemm(m, std::min(kDigitsWidth, n - column), k, a, lda, panel_floats(p, kBeside), c + column,
         ldc, shifted.epilogue());
  }
}

}  // namespace tombolo
