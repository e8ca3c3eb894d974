#include "runtime/kernels/qgemm.h"

#include <algorithm>
#include <cstring>

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

int64_t q_row_bytes(int64_t k) { return q_tiles().groups_of(k) * 4; }

void q_pack_rows(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                 std::byte* out) {
  const QTiles& tiles = q_tiles();
  const int64_t row_bytes = q_row_bytes(k);
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

size_t q_panel_bytes(int64_t k, int64_t n) {
  const QTiles& tiles = q_tiles();
  return static_cast<size_t>((n + tiles.panel - 1) / tiles.panel * tiles.panel *
                             tiles.groups_of(k) * 4);
}

void q_pack_panels(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n, bool flip,
                   bool is_signed, std::byte* out, int32_t* sums) {
  const QTiles& tiles = q_tiles();
  const int64_t width = tiles.panel, groups = tiles.groups_of(k);
  parallel((n + width - 1) / width, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * width)),
           [&](int64_t begin, int64_t end) {
             for (int64_t p = begin; p < end; ++p) {
               std::byte* panel = out + p * groups * width * 4;
               std::memset(panel, 0, static_cast<size_t>(groups * width * 4));
               for (int64_t c = 0; c < std::min(width, n - p * width); ++c) {
                 const uint8_t* from = x + (p * width + c) * column;
                 int32_t sum = 0;
                 for (int64_t i = 0; i < k; ++i) {
                   const int32_t value = number(from[i * row], flip, is_signed);
                   sum += value;
                   put(panel, (i / tiles.group * width + c) * tiles.group + i % tiles.group,
                       tiles.element, value);
                 }
                 if (sums != nullptr) sums[p * width + c] = sum;
               }
             }
           });
}

void q_row_sums(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                int32_t* sums) {
  parallel(m, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, k)),
           [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               int32_t sum = 0;
               for (int64_t j = 0; j < k; ++j) sum += number(x[i * ldx + j], flip, is_signed);
               sums[i] = sum;
             }
           });
}

void qgemm(int64_t m, int64_t n, int64_t k, const std::byte* a, const std::byte* b,
           const QFinish& finish) {
  const QTiles& tiles = q_tiles();
  const int64_t width = tiles.panel, groups = tiles.groups_of(k), lda = groups * 4;
  const int64_t panels = (n + width - 1) / width;
  if (m <= 0 || panels <= 0) return;
  constexpr int64_t kBlockRows = 224;
  const int64_t blocks = (m + kBlockRows - 1) / kBlockRows, rows = (m + blocks - 1) / blocks;
  const int64_t work = std::max<int64_t>(1, std::min(rows, m) * width * k);
  const int64_t group = std::clamp<int64_t>(600'000 / work, 1, panels);
  const int64_t turns = (panels + group - 1) / group;
  parallel(blocks * turns, 1, [&](int64_t begin, int64_t end) {
    alignas(64) int32_t sums[kMaxQRows * 32];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / turns * rows, stop = std::min(m, row + rows);
      if (row >= m) continue;
      const int tile_rows = tiles.tile_rows(stop - row);
      const int64_t first = task % turns * group;
      for (int64_t p = first; p < std::min(panels, first + group); ++p)
        for (int64_t r = row; r < stop; r += tile_rows) {
          const int count = static_cast<int>(std::min<int64_t>(tile_rows, stop - r));
          tiles.unsigned_rows[count](
              {a + r * lda, lda, b + p * groups * width * 4, groups, sums, width});
          q_finish(finish, sums, width, r, count, p * width, std::min(width, n - p * width));
        }
    }
  });
}

}  // namespace tombolo
