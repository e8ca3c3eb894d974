// Stages of convolutions and pools, a band of output rows of the last one at a time: of an image of
// one row, a line, its pixels are the rows. Each stage but
// the last has a window of rows in the memory of its thread; those that the next band reads, too,
// move to the front of it, so that no row is computed twice but where the image is cut for threads.

#include "runtime/kernels/conv/block_bands.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

struct Stage {
  BlockConvPlan conv;
  BlockPool pool;
  bool pools = false;
  const float* packed = nullptr;
  Activation activation;
  size_t input = 0;  ///< of the run: input 0 of its node
  bool bias = false, residual = false;
  bool flat = false;       ///< a direct convolution of one pixel for each pixel, both in blocks
  int64_t row_pieces = 0;  ///< direct, not flat: pieces of a row
  int axis = 1;            ///< that rows lie along: of a line 2
  int64_t window = 0;      ///< rows that are kept at a time; of the last stage: the band
  size_t window_at = 0;    ///< floats before it

  const ConvGeometry& shape() const { return pools ? pool.shape : conv.shape; }
  int64_t blocks() const {
    const ConvGeometry& s = shape();
    return pools ? s.groups / kBlock : blocks_of(s.groups * s.out_channels);
  }
  int64_t rows() const { return shape().out[axis]; }
  int64_t row_floats() const { return (axis == 2 ? 1 : shape().out[2]) * kBlock; }
  /// The first row of the input that output row `row` sees, and the one behind the last.
  int64_t first_row(int64_t row) const {
    const ConvGeometry& s = shape();
    return std::clamp<int64_t>(row * s.stride[axis] - s.pad[axis], 0, s.in[axis]);
  }
  int64_t end_row(int64_t row) const {
    const ConvGeometry& s = shape();
    return std::clamp<int64_t>(row * s.stride[axis] - s.pad[axis] + s.extent(axis), 0, s.in[axis]);
  }
};

struct BandsState final : KernelState {
  std::vector<Stage> stages;
  size_t room_floats = 0;  ///< of a thread: the windows
  int64_t pieces = 1;      ///< of an image
  Dims output;
};

/// Rows of an image, `count` ones from the `first` on, which lie at `at`, `plane` floats from block
/// to block.
template <typename Float>
struct Rows {
  int64_t first, count;
  Float* at;
  int64_t plane;
};

/// Whether a convolution can be a stage: of channels by themselves, of one pixel, or a direct one
/// if it is the first.
bool is_stage(const BlockConvPlan& plan, bool first) {
  const ConvGeometry& s = plan.shape;
  if (plan.algorithm == BlockConvPlan::Algorithm::kGroups) return true;
  if (plan.algorithm != BlockConvPlan::Algorithm::kDirect || plan.copy || plan.over_images ||
      s.groups != 1)
    return false;
  if (!plan.plain && is_flat(s)) return true;
  // Each piece is a part of one row.
  return first && s.out[2] * 2 > block_tiles().pixels(s.out_channels) &&
         static_cast<int64_t>(plan.pieces.size()) % s.out[1] == 0;
}

/// Whether the node can be a stage behind those that there are.
bool add_stage(const JoinedNode& node, size_t input, std::vector<Stage>& stages) {
  const auto& state = static_cast<const BlockStageState&>(*node.state);
  if (state.conv == nullptr ? state.pool == nullptr : !is_stage(*state.conv, stages.empty()))
    return false;
  const ConvGeometry& s = state.conv != nullptr ? state.conv->shape : state.pool->shape;
  if (s.in[0] != 1 || s.out[0] != 1) return false;
  const bool line = s.in[1] == 1 && s.out[1] == 1 && s.pad[1] == 0 && state.conv != nullptr &&
                    (state.conv->algorithm == BlockConvPlan::Algorithm::kGroups ||
                     (!state.conv->plain && is_flat(s)));
  if (s.joined() && !line) return false;
  if (!stages.empty()) {
    const ConvGeometry& before = stages.back().shape();
    if (before.out[1] != s.in[1] || before.out[2] != s.in[2] || line != (stages.back().axis == 2))
      return false;
  }
  Stage& stage = stages.emplace_back();
  stage.input = input;
  stage.bias = (node.present >> 2 & 1) != 0;
  stage.residual = (node.present >> 3 & 1) != 0;
  stage.packed = state.packed;
  stage.activation = state.activation;
  stage.axis = line ? 2 : 1;
  stage.pools = state.pool != nullptr;
  if (stage.pools) {
    stage.pool = *state.pool;
    return true;
  }
  const BlockConvPlan& plan = stage.conv = *state.conv;
  if (plan.algorithm == BlockConvPlan::Algorithm::kGroups) return true;
  stage.flat = !plan.plain && is_flat(s);
  if (!stage.flat) stage.row_pieces = static_cast<int64_t>(plan.pieces.size()) / s.out[1];
  return true;
}

/// The windows of `count` stages for a band of so many rows; returns their floats.
size_t plan_windows(std::vector<Stage>& stages, size_t count, int64_t band) {
  size_t floats = 0;
  int64_t rows = band;
  for (size_t i = count; i-- > 0;) {
    Stage& stage = stages[i];
    const ConvGeometry& s = stage.shape();
    stage.window = std::min(rows, stage.rows());
    stage.window_at = floats;
    if (i + 1 < count)
      floats += static_cast<size_t>(stage.blocks() * stage.row_floats() * stage.window);
    rows = (stage.window - 1) * s.stride[stage.axis] + s.extent(stage.axis);
  }
  return floats;
}

int64_t image_bytes(const Stage& stage) {
  return stage.blocks() * stage.row_floats() * stage.rows() * 4;
}

/// Of `rows` rows of the last of `count` stages: how many of those that a stage before it makes for
/// them are neighbours' as well, as a part of the others. The most of all stages.
double overlap(const std::vector<Stage>& stages, size_t count, int64_t rows) {
  double most = 0;
  auto seen = static_cast<double>(rows), own = seen;
  for (size_t i = count; i-- > 1;) {
    const ConvGeometry& s = stages[i].shape();
    const int axis = stages[i].axis;
    const auto stride = static_cast<double>(s.stride[axis]);
    seen = (seen - 1) * stride + static_cast<double>(s.extent(axis));
    own *= stride;
    most = std::max(most, (seen - own) / own);
  }
  return most;
}

int64_t products(const Stage& stage) {
  const ConvGeometry& s = stage.shape();
  return stage.pools ? 0 : s.groups * s.out_channels * s.depth() * s.out_plane();
}

/// What each of two threads, which have half of the rows of the last of so many stages, makes that
/// the other one makes, too.
int64_t made_twice(const std::vector<Stage>& stages, size_t count) {
  int64_t all = 0, rows = 0;  // of the stage at hand: those behind its half
  for (size_t i = count; i-- > 1;) {
    const ConvGeometry& s = stages[i].shape();
    const int64_t stride = s.stride[stages[i].axis], extent = s.extent(stages[i].axis);
    rows = rows * stride + std::max<int64_t>(0, extent - stride + 1) / 2;
    all += rows * (products(stages[i - 1]) / stages[i - 1].rows());
  }
  return all;
}
/// Products that a thread makes while others come together for a loop.
constexpr int64_t kLoop = 60'000;

/// Pieces of an image for so many threads, twice as many where that leaves each some rows, as
/// threads are not equally fast. Rows at the edges of pieces are made twice, so that they have to
/// be few.
int64_t pieces_of(const std::vector<Stage>& stages, size_t count, int64_t threads) {
  constexpr double kMostTwice = 0.125;
  const int64_t all = stages[count - 1].rows();
  if (threads == 1 || stages[0].shape().batch >= 2 * threads) return 1;
  const auto fits = [&](int64_t pieces, int64_t least) {
    const int64_t rows = all / pieces;
    return rows >= least && overlap(stages, count, rows) <= kMostTwice;
  };
  const bool few = threads <= kFewThreads;
  const bool cheap = few && all >= 2 * threads &&
                     made_twice(stages, count) <= kLoop * static_cast<int64_t>(count - 1);
  return fits(2 * threads, 4) ? 2 * threads : cheap || fits(threads, few ? 2 : 4) ? threads : 1;
}

/// Rows of the last of so many stages that leave room for all weights, which every band reads, in
/// what stays near; 0 where that are too few beside those that move on to the next band.
int64_t rows_of_band(std::vector<Stage>& stages, size_t count) {
  constexpr int64_t kMostRows = 32, kMostPixels = 512;
  constexpr double kMostMoved = 0.34;
  const int64_t room = near_bytes() * 3 / 2;
  int64_t weights = 0;
  for (size_t i = 0; i < count; ++i)
    if (!stages[i].pools) weights += static_cast<int64_t>(stages[i].conv.weight_floats) * 4;
  if (2 * weights > near_bytes()) return 0;
  const Stage& last = stages[count - 1];
  int64_t rows = std::min(last.rows(), last.axis == 2 ? kMostPixels : kMostRows);
  while (rows > 1 && static_cast<int64_t>(plan_windows(stages, count, rows)) * 4 + weights > room)
    --rows;
  return overlap(stages, count, rows) > kMostMoved ? 0 : rows;
}

/// Whether the last of so many stages is to follow in the same piece although what lies between is
/// near: one loop of threads for two, each of which may be too little for several. It sees no row
/// twice, or rows that are made in less time than a loop takes.
bool shares_loop(const std::vector<Stage>& stages, size_t count, int64_t threads) {
  constexpr int64_t kLeast = 100'000;  // of a thread
  const Stage& last = stages[count - 1];
  if (threads == 1) return false;
  if (last.shape().extent(last.axis) > last.shape().stride[last.axis] &&
      (threads > kFewThreads || made_twice(stages, count) - made_twice(stages, count - 1) > kLoop))
    return false;
  int64_t all = 0;
  for (size_t i = 0; i < count; ++i) all += products(stages[i]);
  return all >= kLeast * threads &&
         static_cast<int64_t>(last.conv.weight_floats) * 4 <= near_bytes() / 4;
}

/// How many of the stages, from the first on, gain by running as one; less than two: none. What
/// lies between two of them is more than the threads keep near, or they share a loop; what the last
/// one writes is as little as it may be.
size_t count_stages(std::vector<Stage>& stages, int64_t threads) {
  const int64_t far = near_bytes() * threads;
  size_t best = 1;
  for (size_t count = 2; count <= stages.size(); ++count) {
    // Of a line a block's pixels are few enough to stay near: QuartzNet's layers took 1.05 of the
    // time by bands on one thread.
    const bool apart = stages[0].axis != 2 && image_bytes(stages[count - 2]) > far;
    if (!apart && !shares_loop(stages, count, threads)) break;
    if (rows_of_band(stages, count) == 0 ||
        stages[0].shape().batch * pieces_of(stages, count, threads) < threads)
      continue;
    if (best == 1 || image_bytes(stages[count - 1]) <= image_bytes(stages[best - 1])) best = count;
  }
  return best;
}

std::unique_ptr<KernelState> prepare_bands(std::span<const JoinedNode> nodes,
                                           const KernelOptions& options, size_t& taken) {
  auto state = std::make_unique<BandsState>();
  std::vector<Stage>& stages = state->stages;
  size_t input = 0;
  for (const JoinedNode& node : nodes) {
    if (!add_stage(node, input, stages)) break;
    input += node.inputs;
    if (stages.back().residual) break;  // it lies as a whole output does, not as a window
  }
  const size_t count = count_stages(stages, std::max(1, options.threads));
  if (count < 2) return nullptr;
  stages.resize(count);
  const ConvGeometry& last = stages.back().shape();
  state->pieces = pieces_of(stages, count, std::max(1, options.threads));
  state->room_floats = plan_windows(stages, count, rows_of_band(stages, count));
  for (size_t i = 0; i < count; ++i) {
    Stage& stage = stages[i];
    const ConvGeometry& s = stage.shape();
    if (i > 0 && stage.flat)
      for (size_t b = 0; b < stage.conv.offsets.size(); ++b)
        stage.conv.offsets[b] =
            static_cast<int64_t>(b) * stages[i - 1].window * stages[i - 1].row_floats();
    if (stage.bias && s.groups * s.out_channels % kBlock != 0)
      state->scratch_bytes += static_cast<size_t>(stage.blocks() * kBlock) * sizeof(float);
  }
  state->output = {last.batch, stages.back().blocks(), last.out_size(1), last.out_size(2), kBlock};
  taken = count;
  return state;
}

/// Where row 0 of such an image would be. Rows before `first` are never touched.
float* row_zero(float* at, int64_t first, int64_t row_floats) {
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(at) -
                                  static_cast<uintptr_t>(first * row_floats) * sizeof(float));
}

/// Pieces of neighbouring pixels, whole rows of them, that a flat convolution makes of as many.
std::vector<BlockConvPlan::Piece> pieces_of_run(int64_t pixels, int most) {
  const int64_t count = (pixels + most - 1) / most;
  std::vector<BlockConvPlan::Piece> pieces;
  pieces.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = pixels * i / count, rows = pixels * (i + 1) / count - from;
    pieces.push_back({from * kBlock, from * kBlock, rows / 2 * kBlock, static_cast<int>(rows)});
  }
  return pieces;
}

/// Output rows [from, to) of a stage.
void run_stage(const Stage& stage, const Rows<const float>& in, const Rows<float>& out,
               int64_t from, int64_t to, const ConvEpilogue& epilogue) {
  const ConvGeometry& s = stage.shape();
  const int64_t row = stage.row_floats();
  if (stage.flat || stage.row_pieces > 0) {
    const BlockConvPlan& plan = stage.conv;
    const BlockTiles& tiles = block_tiles();
    const int64_t padded = vector_channels(s.out_channels), width = tiles.panel();
    const float* image = in.at;
    float* y = out.at;
    const float* residual = epilogue.residual;
    std::vector<BlockConvPlan::Piece> run;
    std::span<const BlockConvPlan::Piece> pieces;
    if (stage.flat) {
      image += (from - in.first) * row;
      y += (from - out.first) * row;
      if (residual != nullptr) residual += from * row;
      pieces = run = pieces_of_run((to - from) * row / kBlock, tiles.pixels(s.out_channels));
    } else {
      y = row_zero(y, out.first, row);
      pieces = std::span(plan.pieces)
                   .subspan(static_cast<size_t>(from * stage.row_pieces),
                            static_cast<size_t>((to - from) * stage.row_pieces));
    }
    for (int64_t first = 0; first < padded; first += width) {
      const int64_t at = first / kBlock * out.plane + first % kBlock;
      const BlockTile t{.offsets = plan.offsets.data(),
                        .entries = static_cast<int64_t>(plan.offsets.size()) - plan.rest,
                        .step = plan.step,
                        .b = stage.packed + first * s.depth(),
                        .c_block = out.plane};
      run_block_panel(plan, t, std::min(width, padded - first), image, y + at, epilogue,
                      epilogue.bias != nullptr ? epilogue.bias + first : nullptr,
                      residual != nullptr ? residual + at : nullptr, pieces);
    }
    return;
  }
  const BlockRows sees{in.first, in.count}, makes{from, to - from};
  for (int64_t b = 0; b < stage.blocks(); ++b) {
    float* const y = out.at + b * out.plane + (from - out.first) * row;
    const float* const x = in.at + b * in.plane;
    if (stage.pools) {
      run_block_pool_rows(stage.pool, sees, x, makes, y);
      continue;
    }
    ConvEpilogue part = epilogue;
    if (part.residual != nullptr) part.residual += b * out.plane + from * row;
    run_block_group_rows(stage.conv, stage.packed, part, b, sees, x, makes, y, stage.axis);
  }
}

/// Output rows [from, to) of the last stage, of the image at x to that at y. What it adds lies as y
/// does.
void run_rows(const BandsState& state, std::span<const ConvEpilogue> epilogues,
              const float* residual, const float* x, float* y, int64_t from, int64_t to) {
  const std::vector<Stage>& stages = state.stages;
  const size_t count = stages.size();
  float* const room = thread_floats(3, state.room_floats + 16);
  const ConvGeometry& first = stages[0].shape();
  const int64_t pixel = !stages[0].pools && stages[0].conv.plain ? 1 : kBlock;
  const Rows<const float> given{0, first.in[stages[0].axis], x, first.in_plane() * pixel};
  std::vector<Rows<float>> windows;  // what the stages write
  for (const Stage& stage : stages)
    windows.push_back({0, 0, room + stage.window_at, stage.window * stage.row_floats()});
  windows.back() = {0, 0, y, stages.back().rows() * stages.back().row_floats()};
  std::vector<int64_t> begin(count), end(count);  // rows that are still to be made
  const int64_t band = stages.back().window;
  for (int64_t row = from; row < to; row += band) {
    begin[count - 1] = row;
    end[count - 1] = std::min(to, row + band);
    for (size_t i = count - 1; i > 0; --i) {
      Rows<float>& window = windows[i - 1];
      const int64_t least = stages[i].first_row(begin[i]);
      const int64_t kept = std::max<int64_t>(0, window.first + window.count - least);
      if (kept > 0 && least != window.first) {
        const int64_t floats = stages[i - 1].row_floats();
        for (int64_t b = 0; b < stages[i - 1].blocks(); ++b) {
          float* const plane = window.at + b * window.plane;
          std::memmove(plane, plane + (least - window.first) * floats,
                       static_cast<size_t>(kept * floats) * sizeof(float));
        }
      }
      begin[i - 1] = least + kept;
      end[i - 1] = std::max(begin[i - 1], stages[i].end_row(end[i] - 1));
      window.first = least;
      window.count = end[i - 1] - least;
    }
    Rows<const float> in = given;
    for (size_t i = 0; i < count; ++i) {
      const Rows<float>& out = windows[i];
      ConvEpilogue epilogue = epilogues[i];
      if (i + 1 == count) epilogue.residual = residual;
      if (begin[i] < end[i]) run_stage(stages[i], in, out, begin[i], end[i], epilogue);
      in = {out.first, out.count, out.at, out.plane};
    }
  }
}

Status run_bands(KernelRun& run) {
  const auto& state = run.state<BandsState>();
  const std::vector<Stage>& stages = state.stages;
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  auto* padded = reinterpret_cast<float*>(run.scratch());
  std::vector<ConvEpilogue> epilogues;
  for (const Stage& stage : stages) {
    ConvEpilogue& epilogue = epilogues.emplace_back();
    epilogue.activation = stage.activation;
    if (!stage.bias) continue;
    const ConvGeometry& s = stage.shape();
    epilogue.bias =
        whole_blocks(run.data<float>(stage.input + 2), s.groups * s.out_channels, padded);
    if (epilogue.bias == padded) padded += stage.blocks() * kBlock;
  }
  const float* const residual =
      stages.back().residual ? run.data<float>(stages.back().input + 3) : nullptr;
  const ConvGeometry& first = stages[0].shape();
  const int64_t batch = first.batch, rows = stages.back().rows();
  const int64_t out = y->size() / batch, in = run.input(0).size() / batch;
  const int64_t parts = state.pieces;
  parallel(batch * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / parts, part = task % parts;
      run_rows(state, epilogues, residual != nullptr ? residual + n * out : nullptr,
               run.data<float>(0) + n * in, y->data<float>() + n * out, rows * part / parts,
               rows * (part + 1) / parts);
    }
  });
  return ok();
}

}  // namespace

constinit const JoinedRow kBlockBands = {
    .name = "block_bands_f32",
    .prepare = prepare_bands,
    .run = products<run_bands>,
};

}  // namespace tombolo
