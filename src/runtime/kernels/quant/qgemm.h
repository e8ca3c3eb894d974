#pragma once

// Products of bytes with sums of 32 bits. Both sides are cut into groups of k that fill four bytes:
// four bytes where the processor has VNNI or AVX2, two 16-bit numbers elsewhere (whose products
// cannot saturate). One side is broadcast group by group, the other lies in panels [group][column].
//
// Everywhere below, unsigned numbers a' are 0..255 (signed ones are stored plus 128) and signed
// numbers b' are -128..127 (unsigned ones are stored minus 128); zero points move along.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tombolo {

/// How a group of four bytes of k is multiplied where sums of two products have 16 bits: with three
/// others, or one; alone, with the bytes 0 1 2 3, 0 2 1 3 or 0 3 1 2 side by side; or as 16-bit
/// numbers.
enum QKind : uint8_t { kQFour, kQDouble, kQSingle, kQCrossed, kQOuter, kQWide };
inline constexpr int kQKinds = 6;
/// What numbers of the broadcast side may not be above, for each of which groups are sorted.
inline constexpr uint8_t kQCaps[] = {255, 208, 160, 128};
inline constexpr int kQRareRows = 5;  ///< of tiles that are sorted, at most
/// Tiles of so few rows take a sorted panel as it lies.
inline constexpr int kQUnsortedRows = 2;

/// Dot products of a few rows would wait for their own sums: groups take turns among so many.
constexpr int q_turns(int rows) {
  if (rows == 1) return 4;
  return rows == 2 ? 2 : 1;
}

/// What dot products multiply: bytes, of which the rows or the panels are the unsigned ones, or
/// pairs of 16-bit numbers, whose sums may wrap.
enum class QDotKind : uint8_t { kUnsignedRows, kSignedRows, kPairs };

/// Where a group of four bytes is, in bytes: in a row, and in a panel of 16 columns.
struct QGroup {
  uint32_t row, panel;
};

/// What a tile of sorted groups knows of its panel and of its rows.
struct QSorted {
  /// How many groups there are of each QKind (of two, and of two times two neighbours), and which
  /// those are, kind by kind.
  const int32_t* counts;
  const QGroup* groups;
  const std::byte* wide;  ///< those of kQWide as 16-bit numbers, see q_widen_group()
  const int32_t* column_sums;
  int32_t less;  ///< than they should be the rows are
  /// Groups with numbers that are not within: 0 in the rows, and here what those would be,
  /// [group][kQRareRows][4]: the even ones, then the odd ones.
  int32_t rares;
  const uint16_t* rare_groups;
  const int16_t* rare;
};

struct QTile {
  const std::byte* a;  ///< broadcast side: rows of groups
  int64_t lda;         ///< bytes from row to row
  const std::byte* b;  ///< panel
  int64_t groups;      ///< of one stretch of k
  int32_t* c;
  int64_t ldc;
  // Several stretches of k: where each begins in `a` (bytes), and how far apart they are in `b`.
  const int64_t* offsets = nullptr;
  int64_t stretches = 1, stretch_bytes = 0;
  bool add = false;                 ///< to what is in c; pairs of 16-bit numbers alone do
  const QSorted* sorted = nullptr;  ///< of QTiles::sorted
  bool streams = false;             ///< panels come from memory: best read as they lie
  int64_t ahead = 0;                ///< bytes from `b` to what is needed next, see QTiles::asks
  /// Part of the next panel, for tiles of more rows: a line at `next` is asked for with each group,
  /// `next_step` bytes on. Null: nothing is.
  const std::byte* next = nullptr;
  int64_t next_step = 0;
  int64_t columns = INT64_MAX;  ///< of the panel, or more: sums beyond may be left out
};
using QTileFn = void(const QTile&);

inline constexpr int kMaxQRows = 14;
inline constexpr int kMaxQPanel = 32;  ///< columns of a panel, at most

/// What makes the result of a panel's sums, see QFinish.
struct QEnds {
  // Of the panel's columns, all that a panel has: of those that there are not, anything.
  const int32_t* add = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;  ///< of floats, or null
  bool integers = false;        ///< the result is the sums with `add`, not floats
  float own_low = 0, own_high = 0, own = 0, other = 0;
  int32_t rest_zero = 0;
  // Of bytes that are `middle` lower than those of the result: unsigned ones are limited as signed
  // ones and turned at the end.
  int16_t zero = 0;
  int8_t least = 0, greatest = 0, middle = 0;
  bool rest_signed = false;
  const std::byte* rest = nullptr;  ///< the panel's columns of the first row, or null
  std::byte* out = nullptr;         ///< of the panel's first column
  int64_t ldo = 0;                  ///< elements
};
/// A tile of the result from `row` on: what q_finish would make of its sums.
using QEndTileFn = void(const QTile&, const QEnds&, int64_t row, int64_t columns);
/// The same for `count` times QTiles::line_rows rows, each `lda` after the one before.
using QEndLinesFn = void(const QTile&, const QEnds&, int64_t row, int64_t count, int64_t columns);
/// One stretch of a panel with so many columns, as q_pack_words.
using QPackFn = void(const uint8_t* x, int64_t row, int64_t run, int64_t columns, uint8_t mask,
                     std::byte* out, int32_t* sums);

struct QTiles {
  int max_rows = 0;
  int panel = 0;    ///< columns
  int group = 0;    ///< elements of k in a group: 4 or 2
  int element = 0;  ///< bytes of one: 1 or 2
  /// Products side by side are added in 16 bits: the groups of a panel are sorted by how they have
  /// to be multiplied so that such sums fit.
  bool sorted = false;
  QTileFn* unsigned_rows[kMaxQRows + 1] = {};  ///< the broadcast side is unsigned
  QTileFn* signed_rows[kMaxQRows + 1] = {};    ///< the broadcast side is signed
  /// The broadcast side is unsigned, and QFinish has no addends or scales of rows; second with
  /// QFinish::rest. Null where q_finish does it, as for fewer columns than `least_columns`.
  QEndTileFn* byte_rows[2][kMaxQRows + 1] = {};
  /// The same of 32 bits, floats or QEnds::integers; of all heights or none.
  QEndTileFn* word_rows[kMaxQRows + 1] = {};
  int least_columns = 1;
  QPackFn* pack_words = nullptr;    ///< null: q_pack_words does it
  QEndLinesFn* byte_lines[2] = {};  ///< as byte_rows; null where there are none
  int line_rows = 0;
  /// Of k, at most: of longer sums what becomes of them takes little, and tiles of more rows read
  /// the panel less often.
  int line_groups = 0;
  /// Of lines, at least: fewer are as many sums of a row, and lines have too few rows to add them
  /// up without waiting.
  int line_columns = 1;
  /// Tiles of so many rows ask for QTile::ahead: of fewer it is better to ask before, and more
  /// share the next panel among them, where `shares` (QTile::next).
  int least_asking = 0, most_asking = 0;
  bool shares = false;
  const char* name = "";

  bool asks(int rows) const { return rows >= least_asking && rows <= most_asking; }
  int64_t groups_of(int64_t k) const { return (k + group - 1) / group; }
  int tile_rows(int64_t rows) const {
    if (rows <= 0) return 1;
    const int64_t tiles = (rows + max_rows - 1) / max_rows;
    return static_cast<int>((rows + tiles - 1) / tiles);
  }
};
/// What serves any numbers. Below, `tiles` of a product and of both its sides are the same.
const QTiles& q_tiles();
/// Pairs of 16-bit numbers, whatever else there is.
const QTiles& q_pair_tiles();
/// VNNI's, AVX2's, AVX-VNNI's and Arm's, where the compiler can; the caller asks whether the
/// processor has it.
QTiles make_vnni_tiles();
QTiles make_vnni_pair_tiles();
QTiles make_byte_tiles();
/// AVX2's pairs of 16-bit numbers, and what makes results of their sums.
QTiles with_ends(QTiles pairs);
QTiles make_avx_vnni_tiles();
QTiles make_arm_dot_tiles();
QTiles make_avx_vnni_pair_tiles();

/// What becomes of a block of sums: value = sum + row_add[r] + column_add[c] - row_sum[r] *
/// zero[c].
struct QFinish {
  const int32_t* row_add = nullptr;
  const int32_t* column_add = nullptr;
  const int32_t* row_sum = nullptr;
  const int32_t* zero = nullptr;     ///< one for each column, with row_sum
  const float* row_scale = nullptr;  ///< float and byte results: value * row_scale * column_scale
  const float* column_scale = nullptr;
  float scale = 1;
  bool below_one = false;              ///< all of column_scale is known to be
  const float* column_bias = nullptr;  ///< float results
  enum class Kind : uint8_t { kInt32, kFloat, kByte } kind = Kind::kInt32;
  // Bytes: round to nearest even, add the zero point, clamp.
  int32_t zero_point = 0, least = 0, greatest = 255;
  /// Bytes of the result's shape that are added to those: what was just rounded, times own, plus
  /// (rest - rest_zero) times other, is rounded and clamped again, around zero_point2.
  const std::byte* rest = nullptr;
  bool rest_signed = false;
  int32_t rest_zero = 0, zero_point2 = 0, least2 = 0, greatest2 = 255;
  float own = 0, other = 0;
  void* out = nullptr;
  int64_t ldo = 0;  ///< elements from row to row

  /// Bytes of a number of the result.
  int64_t element() const { return kind == Kind::kByte ? 1 : 4; }
  /// What is done depends on columns alone.
  bool of_columns() const {
    return row_add == nullptr && row_sum == nullptr && row_scale == nullptr;
  }
};
/// Whether all are between -1 and 1, which QFinish::below_one says of scales.
bool q_below_one(const float* x, int64_t n);
/// sums[rows][columns] (ldc apart) belong at (row, column) of the result.
void q_finish(const QFinish& finish, const int32_t* sums, int64_t ldc, int64_t row, int64_t rows,
              int64_t column, int64_t columns);

/// The side that is broadcast: m rows of k bytes as groups, zeros at the end. `flip` adds (or takes
/// away) 128. `is_signed` says what the bytes are after that.
int64_t q_row_bytes(int64_t k, const QTiles& tiles = q_tiles());
void q_pack_rows(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                 std::byte* out, const QTiles& tiles = q_tiles());
/// The side in panels: x[i * row + j * column] for i < k, j < n; sums[j] is the sum down column j.
/// Each stretch of k is filled up with zeros to whole groups, and to whole tiles of AMX.
int64_t q_panel_groups(int64_t k, const QTiles& tiles = q_tiles());
size_t q_panel_bytes(int64_t k, int64_t n, const QTiles& tiles = q_tiles());
void q_pack_panels(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n, bool flip,
                   bool is_signed, std::byte* out, int32_t* sums, const QTiles& tiles = q_tiles());
/// The same for k in stretches of `run`: x[(s * run + i) * row + j * column] in stretch s.
size_t q_stretch_bytes(int64_t stretches, int64_t run, int64_t n, const QTiles& tiles = q_tiles());
void q_pack_stretches(const uint8_t* x, int64_t row, int64_t column, int64_t stretches, int64_t run,
                      int64_t n, bool flip, std::byte* out, int32_t* sums,
                      const QTiles& tiles = q_tiles());
/// What serves constant panels of these numbers best for tiles of so many rows; packing may take
/// its time.
const QTiles& q_constant_tiles(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n,
                               bool flip, int64_t rows);
/// rows[i][0..width) (bytes, `step` apart), i < k, as one panel.
void q_interleave(const uint8_t* rows, int64_t step, int64_t k, bool is_signed, std::byte* out);
/// Rows of bytes, in which `mask` is turned, to out[i / 4][column][i % 4] for i < run, with `width`
/// columns in a group, and what column j sums to as signed ones added to sums[j]: as many columns
/// as vectors take, whose number it gives.
int64_t q_pack_words(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                     uint8_t mask, std::byte* out, int32_t* sums);
/// The same to out[i / 2][column][i % 2] of 16 bits, of all columns.
void q_pack_pairs(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                  uint8_t mask, std::byte* out, int32_t* sums);
void q_row_sums(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                int32_t* sums);

/// to[i] = from[i] ^ mask
void q_turn_bytes(const uint8_t* from, int64_t n, uint8_t mask, uint8_t* to);
/// The sum of n bytes, each with `mask` turned in it.
int64_t q_sum_bytes(const uint8_t* x, int64_t n, uint8_t mask);

/// Which rows of A make a tile and where their results go: consecutive rows of A lie `lda` bytes
/// apart, a run of them makes consecutive rows of the result, what is in no run is dropped.
struct QRun {
  int32_t from, count;
  int64_t to;
};
struct QTileRows {
  int64_t offset;  ///< bytes from the start of A
  int32_t count, first_run, last_run;
};

/// C = A B: rows of A as tiles, k in stretches that begin at offsets from a row's start.
struct QProduct {
  int64_t n = 0, run = 0;  ///< elements of a stretch
  int64_t lda = 0;
  std::vector<int64_t> offsets = {0};
  /// Products of bf16 by AMX: which stretch of B each of A meets, in rising order. Empty: one after
  /// the other.
  std::vector<int64_t> b_stretches;
  std::vector<QTileRows> tiles;
  std::vector<QRun> runs;
  bool amx = false;       ///< tiles of 16 rows, which may be read whole where A goes on so far
  bool a_signed = false;  ///< AMX only
  bool streams = false;   ///< B comes from memory in each run
  const QTiles* inner = nullptr;

  /// The run that a tile's rows are, all of them, or null.
  const QRun* whole_run(const QTileRows& rows) const {
    const QRun& run = runs[static_cast<size_t>(rows.first_run)];
    const bool one = rows.last_run == rows.first_run + 1;
    return one && run.from == 0 && run.count == rows.count ? &run : nullptr;
  }
  /// Stretches of a panel of B.
  int64_t stretches_of_b() const {
    return b_stretches.empty() ? static_cast<int64_t>(offsets.size()) : b_stretches.back() + 1;
  }
  /// Appends `count` rows of A that begin at `offset`, as tiles whose runs `add_runs` names.
  template <typename AddRuns>
  void add_rows(int64_t offset, int64_t count, int64_t tile_rows, AddRuns&& add_runs) {
    for (int64_t at = 0; at < count; at += tile_rows) {
      const auto rows = static_cast<int32_t>(count - at < tile_rows ? count - at : tile_rows);
      const auto first = static_cast<int32_t>(runs.size());
      add_runs(at, rows);
      tiles.push_back({offset + at * lda, rows, first, static_cast<int32_t>(runs.size())});
    }
  }
};
/// Rows of a tile for products of m rows: whether with AMX is for the caller to ask (has_amx_int8).
int64_t q_tile_rows(int64_t m, bool amx, const QTiles& tiles = q_tiles());
/// Whether AMX is there and worth it for m rows.
bool q_use_amx(int64_t m);
/// m rows of A, lda bytes apart, times n columns.
QProduct q_plan_rows(int64_t m, int64_t n, int64_t k, int64_t lda, bool a_signed = false,
                     const QTiles& tiles = q_tiles());
/// Threaded. `a_bytes` may be read from `a`.
void q_product(const QProduct& product, const std::byte* a, int64_t a_bytes, const std::byte* b,
               const QFinish& finish);

/// C = A B, A unsigned rows (q_row_bytes apart), B signed panels, finished. Threaded.
void qgemm(int64_t m, int64_t n, int64_t k, const std::byte* a, const std::byte* b,
           const QFinish& finish, const QTiles& tiles = q_tiles());

/// Few rows by a matrix that comes with the run and is not packed: sums[m][n] of A [m][k] and B
/// [k][n], whose bytes are turned by `flip` (0 or 0x80) and then unsigned or signed (A), signed
/// (B); and those of B's columns.
struct QFewRows {
  int64_t m = 0, n = 0, k = 0;
  const uint8_t* a = nullptr;
  uint8_t a_flip = 0, b_flip = 0;
  bool a_signed = false;
  const uint8_t* b = nullptr;
  int32_t *sums = nullptr, *column_sums = nullptr;
};
/// Whether that takes less time than to pack B.
bool q_few_rows_pays(int64_t m);
void q_few_rows(const QFewRows& product);

/// Tiles of AMX: 32 rows (two parts of 16, wherever they lie) times one panel.
struct AmxTile {
  const std::byte* a[2];
  int64_t lda[2];
  const std::byte* b;
  int64_t chunks;          ///< of `amx_begin`'s size, in a stretch
  const int64_t* offsets;  ///< of each stretch of k in `a`, bytes
  int64_t stretches;
  void* c;                             ///< [32][32], of int32 or float
  const int64_t* b_offsets = nullptr;  ///< of each stretch in `b`; null: one after the other
  bool accumulate = false;
  /// What is needed soon, or null: so many cache lines of it are asked for with each chunk, the
  /// next ones `next_step` bytes on.
  const std::byte* next = nullptr;
  int64_t next_lines = 0, next_step = 0;
  /// What is done meanwhile, in `turns` parts: the processor multiplies on while vectors work.
  void (*meanwhile)(const void* argument, int64_t turn) = nullptr;
  const void* argument = nullptr;
  int64_t turns = 0;

  /// Asks for part `turn` of `turns` of the next panel, whose chunks of k have 32 columns: of each
  /// chunk some lines, so that pages of memory come nearer side by side.
  void ask(const std::byte* panel, int64_t turn, int64_t turns, int64_t chunk) {
    next_lines = (chunk / 2 + turns - 1) / turns;
    next = panel + turn * next_lines * 64;
    next_step = chunk * 32;
  }
};
enum class AmxKind : uint8_t { kUnsigned, kSigned, kBf16 };  ///< of A; B is signed, or bf16
/// Sets this thread's tiles up for chunks of so many bytes of k (a multiple of 4, at most 64).
void amx_begin(int64_t chunk);
void amx_end();
void amx_tile(const AmxTile& tile, int parts, int64_t columns, AmxKind kind);
/// Bytes of a chunk for stretches of `run` bytes.
int64_t amx_chunk(int64_t run);

}  // namespace tombolo
