// MaxPool, AveragePool, LpPool and the global pools. The rows of a window are combined over the
// whole width of an image, then neighbours within that row. Small images are turned, many into one.

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/pool/plane_windows.h"
#include "runtime/kernels/pool/pool_rows.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

enum class Pool : uint8_t { kMax, kAverage, kLp };

struct PoolState final : KernelState {
  ConvGeometry shape;
  Dims output;
  PoolFold fold = PoolFold::kMax;
  std::vector<float> factors;  ///< one over the elements of each window, for averages
};

template <Pool kPool>
std::optional<SlidingWindow> window_of(const KernelQuery& query) {
  if (active_isa() == Isa::kScalar || query.dims(0).size() < 3 ||
      element_count(query.dims(0)) < 1 || query.wants_output(1))
    return std::nullopt;
  const DType dtype = query.dtype(0);
  if (dtype != DType::kFloat32 &&
      !(kPool == Pool::kMax && (dtype == DType::kUInt8 || dtype == DType::kInt8)))
    return std::nullopt;
  if (kPool == Pool::kLp) {
    const int64_t p = query.attributes.get_int("p", 2);
    if (query.opset < 2 || (p != 1 && p != 2)) return std::nullopt;
  }
  auto window = read_sliding_window(query.attributes, query.dims(0).subspan(2), {},
                                    query.attributes.get_int("ceil_mode", 0) != 0);
  if (window) join_column(*window);
  return window;
}

template <Pool kPool>
bool supports_pool(const KernelQuery& query) {
  return window_of<kPool>(query).has_value();
}

template <Pool kPool>
Result<std::unique_ptr<KernelState>> prepare_pool(const PrepareContext& context) {
  auto state = std::make_unique<PoolState>();
  const SlidingWindow window = *window_of<kPool>(context);
  state->shape = window.shape;
  const ConvGeometry& s = state->shape;
  state->output = output_dims(s, context.dims(0)[1], context.dims(0).size() - 2);
  state->output[0] = context.dims(0)[0];
  if (kPool == Pool::kLp)
    state->fold =
        context.attributes.get_int("p", 2) == 2 ? PoolFold::kSumSquare : PoolFold::kSumMagnitude;
  if (kPool != Pool::kAverage) return state;
  state->fold = PoolFold::kSum;
  // Positions of a window along each axis that count: those inside the input, or inside the
  // padding too; never what lies beyond because the output's size was rounded up.
  const bool pads = context.attributes.get_int("count_include_pad", 0) != 0;
  std::vector<int64_t> along[3];
  for (int axis = 0; axis < 3; ++axis)
    for (int64_t o = 0; o < s.out[axis]; ++o) {
      int64_t count = 0;
      for (int64_t k = 0; k < s.kernel[axis]; ++k) {
        const int64_t at = o * s.stride[axis] - s.pad[axis] + k * s.dilation[axis];
        count += pads ? at < s.in[axis] + window.pad_end[axis] : at >= 0 && at < s.in[axis];
      }
      along[axis].push_back(count);
    }
  for (int64_t d : along[0])
    for (int64_t r : along[1])
      for (int64_t c : along[2])
        state->factors.push_back(d * r * c == 0 ? 0 : 1 / static_cast<float>(d * r * c));
  return state;
}

template <typename T>
constexpr T fill_of(PoolFold fold) {
  using Limits = std::numeric_limits<T>;
  if (fold != PoolFold::kMax) return T{0};
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

/// The first element from `at` on that begins a cache line.
template <typename T>
T* next_line(T* at) {
  return at + (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64 / sizeof(T);
}

/// Lines of combined rows: what lies left and right of an image is filled in.
template <typename T>
class Lines {
 public:
  /// Of images whose pixels are `pixel` numbers, as many rows at a time as stay near.
  Lines(const PoolState& state, int64_t pixel) : pixel_(pixel) {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T)), kNear = 16384 / sizeof(T);
    constexpr int64_t kSlack = 3 * kLine;  // whole vectors are read
    const ConvGeometry& s = state.shape;
    const int64_t reach = (s.out[2] - 1) * s.stride[2] + s.extent(2);
    step_ = (std::max(reach, s.pad[2] + s.in[2]) * pixel + kSlack) / kLine * kLine;
    rows_ = s.out[1];
    if (s.in[0] == 1)
      rows_ = std::clamp<int64_t>(kNear / (step_ + s.stride[1] * s.in[2] * pixel), 1, rows_);
    room_.assign(static_cast<size_t>(step_ * rows_ + kLine), fill_of<T>(state.fold));
    // What an image's rows give begins a cache line.
    lines_ = next_line(room_.data() + s.pad[2] * pixel) - s.pad[2] * pixel;
  }

  /// One image, depth by depth: the rows of windows combined, a line each, then neighbours within
  /// the lines.
  void pool(const PoolState& state, const T* from, T* to) {
    const ConvGeometry& s = state.shape;
    PoolLines work{rows_, step_, s.kernel[2], s.stride[2], s.dilation[2], s.out[2] * pixel_};
    work.pixel = pixel_;
    if constexpr (std::is_same_v<T, float>)
      if (s.in[0] > 1)
        work.numbers = state.fold != PoolFold::kMax || !any_nan(from, s.in_plane() * pixel_);
    for (int64_t d = 0; d < s.out[0]; ++d)
      for (int64_t row = 0; row < s.out[1]; row += rows_) {
        work.rows = std::min(rows_, s.out[1] - row);
        if (s.in[0] == 1) work.numbers = only_numbers(state, from, row, work.rows);
        const PoolWindows windows{s.kernel[0],
                                  d * s.stride[0] - s.pad[0],
                                  s.dilation[0],
                                  s.in[0],
                                  work.rows,
                                  s.kernel[1],
                                  s.stride[1],
                                  s.dilation[1],
                                  s.pad[1] - row * s.stride[1],
                                  s.in[1],
                                  s.in[2] * pixel_,
                                  step_};
        pool_rows(state.fold, from, windows, fill_of<T>(state.fold), work.numbers,
                  lines_ + s.pad[2] * pixel_);
        const int64_t at = (d * s.out[1] + row) * s.out[2];
        if (!state.factors.empty()) work.factors = state.factors.data() + at;
        pool_neighbours(state.fold, lines_, work, to + at * pixel_);
      }
  }

 private:
  /// Whether no NaN is in the windows of these rows.
  bool only_numbers(const PoolState& state, const T* from, int64_t row, int64_t rows) const {
    if constexpr (std::is_same_v<T, float>) {
      if (state.fold != PoolFold::kMax) return true;
      const ConvGeometry& s = state.shape;
      const int64_t width = s.in[2] * pixel_;
      const int64_t begin = std::max<int64_t>(0, row * s.stride[1] - s.pad[1]);
      const int64_t end =
          std::min(s.in[1], (row + rows - 1) * s.stride[1] - s.pad[1] + s.extent(1));
      return begin >= end || !any_nan(from + begin * width, (end - begin) * width);
    }
    return true;
  }

  int64_t pixel_, step_ = 0, rows_ = 0;
  std::vector<T> room_;
  T* lines_ = nullptr;
};

void take_roots(const PoolState& state, float* y, int64_t count) {
  if (state.fold == PoolFold::kSumSquare) unary_fn(Unary::kSqrt)(y, y, count, 0, 0);
}

/// y[p] = fold over plane p of input 0.
void reduce_planes(KernelRun& run, Fold fold, int64_t planes, int64_t plane, Tensor& y) {
  const float* from = run.data<float>(0);
  float* to = y.data<float>();
  run.parallel_for(planes, std::max<int64_t>(1, 16384 / plane), [&](int64_t begin, int64_t end) {
    fold_rows(fold, from + begin * plane, plane, end - begin, to + begin);
  });
}

/// Windows side by side without a gap, that cover an image exactly: rows of several planes are
/// those of one, and neighbours of all rows lie behind one another.
bool tiles_exactly(const PoolState& state) {
  const ConvGeometry& s = state.shape;
  bool exact = state.factors.empty() && s.in[0] == 1 && s.kernel[0] == 1 && s.pad[0] == 0;
  for (int axis = 1; axis < 3; ++axis)
    exact = exact && s.pad[axis] == 0 && s.kernel[axis] == s.stride[axis] &&
            s.in[axis] == s.out[axis] * s.stride[axis] &&
            (s.dilation[axis] == 1 || s.kernel[axis] == 1);
  return exact;
}
template <typename T>
void pool_tiles(const KernelRun& run, const PoolState& state, int64_t planes, const T* x, T* y) {
  const ConvGeometry& s = state.shape;
  constexpr int64_t kNumbers = 4096, kSlack = 192;  // whole vectors are read
  const int64_t in = s.in_plane(), out = s.out_plane(), width = s.in[2];
  const int64_t together = std::clamp<int64_t>(kNumbers / (s.out[1] * width), 1, planes);
  run.parallel_for(
      (planes + together - 1) / together, std::max<int64_t>(1, 16384 / (together * (in + out))),
      [&](int64_t begin, int64_t end) {
        std::vector<T> lines(static_cast<size_t>(together * s.out[1] * width + kSlack));
        for (int64_t p = begin * together; p < std::min(planes, end * together); p += together) {
          const int64_t some = std::min(together, planes - p), rows = some * s.out[1];
          const T* from = x + p * in;
          T* to = y + p * out;
          bool numbers = true;
          if constexpr (std::is_same_v<T, float>)
            numbers = state.fold != PoolFold::kMax || !any_nan(from, some * in);
          const PoolWindows windows{
              1, 0, 1, 1, rows, s.kernel[1], s.stride[1], 1, 0, some * s.in[1], width, width};
          pool_rows(state.fold, from, windows, fill_of<T>(state.fold), numbers, lines.data());
          const PoolLines work{1, 0, s.kernel[2], s.stride[2], 1, some * out, numbers};
          pool_neighbours(state.fold, lines.data(), work, to);
          if constexpr (std::is_same_v<T, float>) take_roots(state, to, some * out);
        }
      });
}

/// As many small planes at a time as a cache line has numbers, turned into one image of pixels: the
/// rows of each alone would not fill vectors.
template <typename T>
constexpr int64_t kTurned = 64 / static_cast<int64_t>(sizeof(T));
template <typename T>
bool worth_turning(const PoolState& state, int64_t planes) {
  constexpr int64_t kMost = int64_t{1} << 18;  // bytes
  const ConvGeometry& s = state.shape;
  // Where rows fill vectors, slices of volumes lie too far apart, and tiles need no neighbours.
  const bool rows = s.in[2] >= 16 && (s.in[0] > 1 || (s.in[2] >= 24 && tiles_exactly(state)));
  return planes >= kTurned<T> / 2 && !rows && s.out_plane() > 1 && s.in_plane() * 64 <= kMost &&
         s.out_plane() * 64 <= kMost;
}
template <typename T>
void pool_turned(const KernelRun& run, const PoolState& state, int64_t planes, const T* x, T* y) {
  constexpr int64_t kPixel = kTurned<T>;
  const int64_t in = state.shape.in_plane(), out = state.shape.out_plane();
  run.parallel_for(
      (planes + kPixel - 1) / kPixel, std::max<int64_t>(1, 16384 / (kPixel * (in + out))),
      [&](int64_t begin, int64_t end) {
        Lines<T> lines(state, kPixel);
        std::vector<T> room(static_cast<size_t>((in + out + 1) * kPixel));
        T* image = next_line(room.data());
        T* pooled = image + in * kPixel;
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * kPixel, some = std::min(kPixel, planes - first);
          transpose_tile(reinterpret_cast<const std::byte*>(x + first * in), in,
                         reinterpret_cast<std::byte*>(image), kPixel, some, in, sizeof(T));
          lines.pool(state, image, pooled);
          transpose_tile(reinterpret_cast<const std::byte*>(pooled), kPixel,
                         reinterpret_cast<std::byte*>(y + first * out), out, out, some, sizeof(T));
          if constexpr (std::is_same_v<T, float>) take_roots(state, y + first * out, some * out);
        }
      });
}

/// Planes of floats whose windows are combined without turning or tiling.
bool worth_no_turning(const PoolState& state) {
  const ConvGeometry& s = state.shape;
  // Turned planes fill vectors of sixteen; narrow ones gain more by that than they pay for it.
  const bool turns_well = active_isa() == Isa::kAvx512;
  const int64_t least = !turns_well ? 16 : s.kernel[2] > 3 ? 22 : 20;
  return s.in[2] >= least && folds_planes(state.fold, s);
}
void pool_straight(const KernelRun& run, const PoolState& state, int64_t planes, const float* x,
                   float* y) {
  const ConvGeometry& s = state.shape;
  const int64_t in = s.in_plane(), out = s.out_plane();
  run.parallel_for(
      planes, std::max<int64_t>(1, 16384 / (in + out)), [&](int64_t begin, int64_t end) {
        std::vector<float> room(static_cast<size_t>(plane_room(s) + 16),
                                fill_of<float>(state.fold));
        while (begin < end) {
          begin += fold_planes(state.fold, s, end - begin, x + begin * in, state.factors.data(),
                               y + begin * out, next_line(room.data()));
          if (begin == end) break;
          Lines<float>(state, 1).pool(state, x + begin * in, y + begin * out);
          ++begin;
        }
      });
}

template <typename T>
Status pool_all(KernelRun& run) {
  const auto& state = run.state<PoolState>();
  const ConvGeometry& s = state.shape;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), state.output));
  const int64_t pixels = s.out_plane();
  if constexpr (std::is_same_v<T, float>) {
    // One window that is the whole plane, as adaptive pools write global ones.
    const int64_t plane = s.in_plane();
    bool whole = pixels == 1 && s.taps() == plane;
    for (int axis = 0; axis < 3; ++axis)
      whole = whole && s.pad[axis] == 0 && s.extent(axis) == s.in[axis];
    if (whole) {
      const Fold fold = state.fold == PoolFold::kMax         ? Fold::kMax
                        : state.fold == PoolFold::kSum       ? Fold::kSum
                        : state.fold == PoolFold::kSumSquare ? Fold::kSumSquare
                                                             : Fold::kSumAbs;
      reduce_planes(run, fold, x.dim(0) * x.dim(1), plane, *y);
      for (size_t i = 0; !state.factors.empty() && i < static_cast<size_t>(y->size()); ++i)
        y->data<float>()[i] *= state.factors[0];
      take_roots(state, y->data<float>(), y->size());
      return ok();
    }
  }
  const int64_t planes = x.dim(0) * x.dim(1);
  if constexpr (std::is_same_v<T, float>)
    if (worth_no_turning(state)) {
      pool_straight(run, state, planes, x.data<float>(), y->data<float>());
      return ok();
    }
  if (worth_turning<T>(state, planes)) {
    pool_turned(run, state, planes, x.data<T>(), y->data<T>());
    return ok();
  }
  if (tiles_exactly(state)) {
    pool_tiles(run, state, planes, x.data<T>(), y->data<T>());
    return ok();
  }
  run.parallel_for(planes, std::max<int64_t>(1, 16384 / (s.in_plane() + pixels)),
                   [&](int64_t begin, int64_t end) {
                     Lines<T> lines(state, 1);
                     for (int64_t p = begin; p < end; ++p) {
                       T* to = y->data<T>() + p * pixels;
                       lines.pool(state, x.data<T>() + p * s.in_plane(), to);
                       if constexpr (std::is_same_v<T, float>) take_roots(state, to, pixels);
                     }
                   });
  return ok();
}

Status run_pool(KernelRun& run) {
  switch (run.input(0).dtype()) {
    case DType::kFloat32:
      return pool_all<float>(run);
    case DType::kUInt8:
      return pool_all<uint8_t>(run);
    default:
      return pool_all<int8_t>(run);
  }
}

bool supports_global_pool(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && query.dtype(0) == DType::kFloat32 &&
         query.dims(0).size() >= 3 && element_count(query.dims(0)) > 0;
}

template <bool kAverage>
Status run_global_pool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Dims dims = x.dims();
  for (uint32_t i = 2; i < dims.size(); ++i) dims[i] = 1;
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  const int64_t planes = x.dim(0) * x.dim(1), plane = x.size() / planes;
  reduce_planes(run, kAverage ? Fold::kSum : Fold::kMax, planes, plane, *y);
  if (kAverage)
    for (float& value : y->span<float>()) value /= static_cast<float>(plane);
  return ok();
}

}  // namespace

KERNEL(max_pool) = {
    .name = "max_pool",
    .op = "MaxPool",
    .supports = supports_pool<Pool::kMax>,
    .prepare = prepare_pool<Pool::kMax>,
    .run = run_pool,
};
KERNEL(average_pool_f32) = {
    .name = "average_pool_f32",
    .op = "AveragePool",
    .supports = supports_pool<Pool::kAverage>,
    .prepare = prepare_pool<Pool::kAverage>,
    .run = run_pool,
};
KERNEL(lp_pool) = {
    .name = "lp_pool",
    .op = "LpPool",
    .supports = supports_pool<Pool::kLp>,
    .prepare = prepare_pool<Pool::kLp>,
    .run = run_pool,
};
KERNEL(global_average_pool_f32) = {
    .name = "global_average_pool_f32",
    .op = "GlobalAveragePool",
    .supports = supports_global_pool,
    .run = run_global_pool<true>,
};
KERNEL(global_max_pool_f32) = {
    .name = "global_max_pool_f32",
    .op = "GlobalMaxPool",
    .supports = supports_global_pool,
    .run = run_global_pool<false>,
};

}  // namespace tombolo
