// Transpose of elements of whole bytes: axes that stay neighbours are joined; what remains is
// copying of runs, or tiles of two axes that change places.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct TransposeState final : KernelState {
  Dims output;
  // Joined axes of the output, outermost first, with where they are in the input (in elements).
  std::vector<int64_t> length, from, to;
  int64_t run = 1;    ///< elements that stay together
  size_t source = 0;  ///< axis of the output that is innermost in the input; tiles need it
  int64_t bytes = 4;
};

/// A tensor of these sizes with its axes in the order `perm`.
void plan_axes(std::span<const int64_t> dims, const std::vector<size_t>& perm,
               TransposeState& state) {
  const size_t rank = dims.size();
  std::vector<int64_t> stride(rank, 1);
  for (size_t i = rank - 1; i-- > 0;) stride[i] = stride[i + 1] * dims[i + 1];
  for (size_t i = 0; i < rank; ++i) {
    const int64_t length = dims[perm[i]], from = stride[perm[i]];
    if (length == 1) continue;
    if (!state.length.empty() && state.from.back() == from * length) {
      state.length.back() *= length;
      state.from.back() = from;
    } else {
      state.length.push_back(length);
      state.from.push_back(from);
    }
  }
  if (!state.length.empty() && state.from.back() == 1) {
    state.run = state.length.back();
    state.length.pop_back();
    state.from.pop_back();
  }
  // A run as large as an element can be is one.
  if (const int64_t bytes = state.run * state.bytes; bytes == 2 || bytes == 4 || bytes == 8) {
    for (int64_t& from : state.from) from /= state.run;
    state.run = 1;
    state.bytes = bytes;
  }
  int64_t to = state.run;
  state.to.resize(state.length.size());
  for (size_t i = state.length.size(); i-- > 0; to *= state.length[i]) {
    state.to[i] = to;
    if (state.from[i] == 1) state.source = i;
  }
}

bool takes_type(const KernelQuery& query, TransposeState& state) {
  const size_t bytes = bytes_of(query.dtype(0));
  state.bytes = static_cast<int64_t>(bytes);
  return active_isa() != Isa::kScalar && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
         element_count(query.dims(0)) > 0 && !query.dims(0).empty();
}

bool plan_transpose(const KernelQuery& query, TransposeState& state) {
  if (!takes_type(query, state)) return false;
  const auto dims = query.dims(0);
  const size_t rank = dims.size();
  std::vector<size_t> perm(rank);
  const auto given = query.attributes.get_ints("perm");
  if (!given.empty() && given.size() != rank) return false;
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t axis = given.empty() ? static_cast<int64_t>(rank - 1 - i) : given[i];
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)])
      return false;
    seen[static_cast<size_t>(axis)] = true;
    perm[i] = static_cast<size_t>(axis);
    state.output.push_back(dims[perm[i]]);
  }
  plan_axes(dims, perm, state);
  return true;
}

// SpaceToDepth and DepthToSpace: turned axes of blocks.

bool plan_blocks(const KernelQuery& query, bool to_depth, TransposeState& state) {
  const auto x = query.dims(0);
  const int64_t b = query.attributes.get_int("blocksize", 0);
  if (!takes_type(query, state) || x.size() != 4 || b < 1 || b > 1 << 20) return false;
  const Text mode = query.attributes.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return false;
  if (to_depth) {
    if (x[2] % b != 0 || x[3] % b != 0) return false;
    state.output = {x[0], x[1] * b * b, x[2] / b, x[3] / b};
    const int64_t dims[] = {x[0], x[1], x[2] / b, b, x[3] / b, b};
    if (mode == "DCR")
      plan_axes(dims, {0, 3, 5, 1, 2, 4}, state);
    else
      plan_axes(dims, {0, 1, 3, 5, 2, 4}, state);
    return true;
  }
  if (x[1] % (b * b) != 0) return false;
  const int64_t c = x[1] / (b * b);
  state.output = {x[0], c, x[2] * b, x[3] * b};
  if (mode == "DCR") {
    const int64_t dims[] = {x[0], b, b, c, x[2], x[3]};
    plan_axes(dims, {0, 3, 4, 1, 5, 2}, state);
  } else {
    const int64_t dims[] = {x[0], c, b, b, x[2], x[3]};
    plan_axes(dims, {0, 1, 4, 2, 5, 3}, state);
  }
  return true;
}
template <bool kToDepth>
bool supports_blocks(const KernelQuery& query) {
  TransposeState state;
  return plan_blocks(query, kToDepth, state);
}
template <bool kToDepth>
Result<std::unique_ptr<KernelState>> prepare_blocks(const PrepareContext& context) {
  auto state = std::make_unique<TransposeState>();
  plan_blocks(context, kToDepth, *state);
  return state;
}

bool supports_transpose(const KernelQuery& query) {
  TransposeState state;
  return plan_transpose(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_transpose(const PrepareContext& context) {
  auto state = std::make_unique<TransposeState>();
  plan_transpose(context, *state);
  return state;
}

/// Offsets of position `index` in the axes `axes`.
void locate(const TransposeState& s, const std::vector<size_t>& axes, int64_t index, int64_t& from,
            int64_t& to) {
  from = to = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    const size_t axis = axes[i];
    const int64_t at = index % s.length[axis];
    index /= s.length[axis];
    from += at * s.from[axis];
    to += at * s.to[axis];
  }
}

void copy_runs(const KernelRun& run, const TransposeState& s, const std::byte* x, std::byte* y) {
  const size_t size = static_cast<size_t>(s.run * s.bytes);
  const size_t last = s.length.size() - 1;
  std::vector<size_t> axes;
  for (size_t i = 0; i < last; ++i) axes.push_back(i);
  int64_t outer = 1;
  for (size_t axis : axes) outer *= s.length[axis];
  // Rows of the last axis: neighbours in the output, a step apart in the input.
  const int64_t count = s.length[last], step = s.from[last] * s.bytes;
  const int64_t row_bytes = count * s.run * s.bytes;
  const int64_t cuts = std::min(count, std::max<int64_t>(1, row_bytes / 65536));
  run.parallel_for(outer * cuts, std::max<int64_t>(1, 65536 * cuts / row_bytes),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       int64_t from, to;
                       locate(s, axes, task / cuts, from, to);
                       const int64_t first = task % cuts * count / cuts;
                       const int64_t stop = (task % cuts + 1) * count / cuts;
                       const std::byte* source = x + from * s.bytes + first * step;
                       std::byte* target = y + to * s.bytes + first * static_cast<int64_t>(size);
                       copy_strided(source, static_cast<size_t>(step), target, size, size,
                                    stop - first);
                     }
                   });
}

constexpr int64_t kShared = 65536;  ///< bytes that are worth another thread

/// Tiles of the last axis by a cache line's columns, one after the other along all other axes.
Status run_strips(const KernelRun& run, const TransposeState& s, const std::vector<size_t>& axes,
                  int64_t outer, const std::byte* in, std::byte* out) {
  const size_t last = s.length.size() - 1, inner = axes.back();
  const int64_t rows = s.length[last], columns = s.length[s.source], along = s.length[inner];
  const int64_t width = 64 / s.bytes, strips = columns / width, runs = outer / along;
  run.parallel_for(strips * runs, std::max<int64_t>(1, kShared / (rows * width * along * s.bytes)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t strip = task / runs, column = strip * width;
                       int64_t from, to;
                       locate(s, axes, task % runs * along, from, to);
                       Tiles tiles{s.from[last], s.to[s.source], rows,
                                   strip + 1 == strips ? columns - column : width};
                       tiles.count = along;
                       tiles.x_next = s.from[inner];
                       tiles.y_next = s.to[inner];
                       transpose_tiles(in + (from + column) * s.bytes,
                                       out + (to + column * s.to[s.source]) * s.bytes, tiles,
                                       s.bytes);
                     }
                   });
  return ok();
}

Status run_transpose(KernelRun& run) {
  const auto& s = run.state<TransposeState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), s.output));
  const std::byte* in = x.data<std::byte>();
  std::byte* out = y->data<std::byte>();
  if (s.length.empty()) {
    std::memcpy(out, in, x.bytes().size());
    return ok();
  }
  if (s.run > 1) {
    copy_runs(run, s, in, out);
    return ok();
  }
  // The last axis of the output (rows of what is read) and the innermost of the input (columns).
  const size_t last = s.length.size() - 1;
  std::vector<size_t> axes;
  int64_t outer = 1;
  for (size_t i = 0; i < last; ++i)
    if (i != s.source) {
      axes.push_back(i);
      outer *= s.length[i];
    }
  const int64_t rows = s.length[last], columns = s.length[s.source];
  // Tiles that are one piece of the input are taken in its order, others in the output's.
  if (s.from[last] == columns)
    std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return s.from[a] > s.from[b]; });
  // Tasks are parts of the longer side, and where these are many elements, parts of the other side,
  // one after the other: lines of which one task takes a piece are near for the next. The last part
  // takes what is left, which would be too narrow for squares.
  constexpr int64_t kShort = 64;
  const int64_t long_part = std::max<int64_t>(1024, 65536 / std::min(rows, columns));
  // To write along rows is faster but for few of them, and for short elements, whose lines hold
  // many.
  const bool by_rows = rows >= columns || (s.bytes >= 4 && rows > kShort);
  const int64_t row_part = by_rows ? long_part : kShort;
  const int64_t column_part = by_rows ? kShort : long_part;
  const int64_t row_parts = std::max<int64_t>(1, rows / row_part);
  const int64_t column_parts = std::max<int64_t>(1, columns / column_part);
  const int64_t parts = row_parts * column_parts;
  // Short pieces of lines that the next tile goes on with, of more lines than the first cache keeps
  // until then (eight in each of its 64 sets): a few columns of all tiles first.
  constexpr int64_t kLine = 64, kSets = 64, kWays = 8;
  const int64_t step = s.to[s.source] * s.bytes;
  const int64_t sets = step % kLine == 0 ? kSets / std::gcd(kSets, step / kLine) : kSets;
  const bool strips = parts == 1 && rows * s.bytes < kLine && columns > kWays * sets &&
                      columns * s.bytes >= 2 * kLine && !axes.empty() && s.to[axes.back()] == rows;
  if (strips) return run_strips(run, s, axes, outer, in, out);
  run.parallel_for(
      outer * parts,
      std::max<int64_t>(
          1, kShared / (std::min(rows, row_part) * std::min(columns, column_part) * s.bytes)),
      [&](int64_t begin, int64_t end) {
        // Tiles that are one part follow each other along the two innermost of the other axes.
        const size_t levels = parts > 1 ? 0 : std::min<size_t>(2, axes.size());
        const size_t inner = levels > 0 ? axes.back() : 0;
        const size_t around = levels > 1 ? axes[axes.size() - 2] : 0;
        const int64_t along = levels > 0 ? s.length[inner] : 1;
        int64_t done = 1;
        for (int64_t task = begin; task < end; task += done) {
          int64_t from, to;
          locate(s, axes, task / parts, from, to);
          const int64_t part = task % parts;
          const int64_t at_row = by_rows ? part / column_parts : part % row_parts;
          const int64_t at_column = by_rows ? part % column_parts : part / row_parts;
          const int64_t row = at_row * row_part, column = at_column * column_part;
          Tiles tiles{s.from[last], s.to[s.source], at_row + 1 == row_parts ? rows - row : row_part,
                      at_column + 1 == column_parts ? columns - column : column_part};
          if (levels > 0) {
            tiles.count = std::min(end - task, along - task % along);
            tiles.x_next = s.from[inner];
            tiles.y_next = s.to[inner];
          }
          if (levels > 1 && tiles.count == along) {
            const int64_t line = task / along % s.length[around];
            tiles.lines = std::min((end - task) / along, s.length[around] - line);
            tiles.x_line = s.from[around];
            tiles.y_line = s.to[around];
          }
          done = tiles.count * tiles.lines;
          transpose_tiles(in + (from + row * s.from[last] + column) * s.bytes,
                          out + (to + column * s.to[s.source] + row) * s.bytes, tiles, s.bytes);
        }
      });
  return ok();
}

}  // namespace

KERNEL(transpose) = {
    .name = "transpose",
    .op = "Transpose",
    .supports = supports_transpose,
    .prepare = prepare_transpose,
    .run = run_transpose,
};

KERNEL(space_to_depth) = {
    .name = "space_to_depth",
    .op = "SpaceToDepth",
    .supports = supports_blocks<true>,
    .prepare = prepare_blocks<true>,
    .run = run_transpose,
};
KERNEL(depth_to_space) = {
    .name = "depth_to_space",
    .op = "DepthToSpace",
    .supports = supports_blocks<false>,
    .prepare = prepare_blocks<false>,
    .run = run_transpose,
};

}  // namespace tombolo
