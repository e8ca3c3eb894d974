// Resize of floats and bytes by linear and cubic interpolation: axis by axis, the last one first,
// as sums of the taps that the reference kernel computes.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/kernels/image/resample.h"
#include "runtime/kernels/image/resize_query.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct Axis {
  size_t axis = 0;
  int64_t length = 0, taps = 0;  ///< of the output; a place
  std::vector<int32_t> first;
  std::vector<float> weights;  ///< [tap][place] for the last axis, else [place][tap]
  std::vector<double> exact;   ///< the same for bytes, instead
  int64_t rows = 1;  ///< of the last axis: so many, one behind the other, stand in the lists

  const float* weights_for(const float*) const { return weights.data(); }
  const double* weights_for(const double*) const { return exact.data(); }
};

struct ResizeState final : KernelState {
  Dims output;
  std::vector<Axis> axes;  ///< in the order in which they are done
  size_t room = 0;         ///< numbers of one intermediate tensor
  /// tf_crop_and_resize: which places of each axis lie beyond the image; empty where none does.
  std::vector<std::vector<uint8_t>> outside;
  float extrapolation = 0;
};

/// Two neighbouring axes row by row, so that what lies between them stays in the cache.
bool is_plane(const ResizeState& s) {
  return s.axes.size() == 2 &&
         std::max(s.axes[0].axis, s.axes[1].axis) == std::min(s.axes[0].axis, s.axes[1].axis) + 1;
}

/// Everything but the image is constant, and the interpolation is one of weighted sums.
bool supports_resize(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty()) return false;
  const bool crops = q.attributes.get_string("coordinate_transformation_mode", "half_pixel") ==
                     "tf_crop_and_resize";
  if (q.dtype(0) != DType::kFloat32 && (crops || !is_byte(q.dtype(0)))) return false;
  const Text mode = q.attributes.get_string("mode", "nearest");
  if ((mode != "linear" && mode != "cubic") || q.inputs[0].size() == 0 || q.dims(0).empty())
    return false;
  for (size_t i = 1; i < q.inputs.size(); ++i)
    if (q.has_input(i) && q.constant(i) == nullptr) return false;
  for (const int64_t length : q.dims(0))
    if (length > INT32_MAX / 2) return false;
  return q.inputs[0].size() < INT32_MAX && ResizeQuery(q).plan().has_value();
}

Axis axis_of(size_t index, bool last, bool bytes, int64_t length,
             const std::vector<ops::ResizeTaps>& places) {
  Axis axis{index, static_cast<int64_t>(places.size())};
  for (const auto& place : places)
    axis.taps = std::max(axis.taps, static_cast<int64_t>(place.weights.size()));
  axis.taps = std::min(axis.taps, length);
  const auto taps = static_cast<size_t>(axis.taps);
  axis.exact.assign(places.size() * taps, 0.0);
  for (size_t i = 0; i < places.size(); ++i) {
    // What is padded must lie inside too: taps move down where they would reach over the end.
    const int64_t first = std::min(places[i].first, length - axis.taps);
    const auto shift = static_cast<size_t>(places[i].first - first);
    axis.first.push_back(static_cast<int32_t>(first));
    for (size_t t = 0; t < places[i].weights.size(); ++t) {
      const size_t at = t + shift;
      axis.exact[last ? at * places.size() + i : i * taps + at] = places[i].weights[t];
    }
  }
  if (bytes) return axis;
  for (const double weight : axis.exact) axis.weights.push_back(static_cast<float>(weight));
  axis.exact = {};
  return axis;
}

/// Rows shorter than some vectors are resampled several at a time; not where places fall, as those
/// of the next row rise then.
void join_rows(Axis& axis, int64_t length) {
  if (!std::is_sorted(axis.first.begin(), axis.first.end())) return;
  constexpr int64_t kEnough = 64, kMost = 16;
  axis.rows = std::clamp<int64_t>(kEnough / std::max<int64_t>(1, axis.length), 1, kMost);
  const std::vector<int32_t> first = std::exchange(axis.first, {});
  const std::vector<float> weights = std::exchange(axis.weights, {});
  for (int64_t row = 0; row < axis.rows; ++row)
    for (const int32_t place : first)
      axis.first.push_back(place + static_cast<int32_t>(row * length));
  for (auto tap = weights.begin(); tap != weights.end(); tap += axis.length)
    for (int64_t row = 0; row < axis.rows; ++row)
      axis.weights.insert(axis.weights.end(), tap, tap + axis.length);
}

/// `count` rows along the last axis, which has `length` elements in x.
template <typename T>
void resample_rows(const Axis& axis, const T* x, int64_t length, int64_t count, T* y) {
  while (count > 0) {
    const int64_t rows = std::min(count, axis.rows);
    resample_row(x, rows * length, axis.first.data(), axis.weights_for(x), axis.rows * axis.length,
                 axis.taps, rows * axis.length, y);
    x += rows * length;
    y += rows * axis.length;
    count -= rows;
  }
}

void note_outside(size_t axis, size_t rank, const std::vector<ops::ResizeTaps>& places,
                  ResizeState& state) {
  const auto lies_outside = [](const ops::ResizeTaps& place) { return place.outside; };
  if (std::none_of(places.begin(), places.end(), lies_outside)) return;
  state.outside.resize(rank);
  for (const auto& place : places) state.outside[axis].push_back(place.outside);
}

/// Whether each place takes the element of its own number.
bool moves_nothing(const std::vector<ops::ResizeTaps>& places, int64_t length) {
  if (static_cast<int64_t>(places.size()) != length) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [first, weights, outside] = places[i];
    for (size_t k = 0; k < weights.size(); ++k)
      if (weights[k] != (first + static_cast<int64_t>(k) == static_cast<int64_t>(i) ? 1 : 0))
        return false;
  }
  return true;
}

Result<std::unique_ptr<KernelState>> prepare_resize(const PrepareContext& q) {
  auto state = std::make_unique<ResizeState>();
  const ResizeQuery resize(q);
  const ops::ResizePlan& plan = *resize.plan();
  Dims now(q.dims(0));
  state->output = now;
  const size_t rank = now.size();
  const bool bytes = is_byte(q.dtype(0));
  for (size_t j = rank; j-- > 0;) {
    state->output[j] = plan.axes[j].length;
    const bool crops = plan.options.coordinates == "tf_crop_and_resize";
    if (!crops && plan.axes[j].scale == 1 && plan.axes[j].length == now[j]) continue;
    TRY(const auto places, resize.taps(j));
    if (crops) {
      note_outside(j, rank, places, *state);
      state->extrapolation = static_cast<float>(plan.options.extrapolation);
      if (moves_nothing(places, now[j])) continue;
    }
    state->axes.push_back(axis_of(j, j + 1 == rank, bytes, now[j], places));
    if (j + 1 == rank && !bytes) join_rows(state->axes.back(), now[j]);
  }
  // Rows that are left out need not be resampled: axes that shrink come before the last one, whose
  // elements are gathered one by one, and those that grow after it.
  if (bytes)  // as the reference kernel does it
    std::reverse(state->axes.begin(), state->axes.end());
  else
    std::stable_partition(state->axes.begin(), state->axes.end(), [&](const Axis& axis) {
      return axis.axis + 1 < rank && axis.length < now[axis.axis];
    });
  int64_t most = bytes ? element_count(now) : 0;
  for (const Axis& axis : state->axes) {
    now[axis.axis] = axis.length;
    most = std::max(most, element_count(now));
  }
  if (most < 0) return runtime_error("the result of Resize is too large");
  state->room = static_cast<size_t>(most + 64) / 16 * 16;
  const size_t between = state->axes.empty() ? 0 : state->axes.size() - 1;
  state->scratch_bytes = bytes ? 2 * state->room * sizeof(double)
                         : is_plane(*state)
                             ? 0
                             : std::min<size_t>(between, 2) * state->room * sizeof(float);
  return state;
}

template <typename T>
void do_axis(const KernelRun& run, const Axis& axis, const T* x, const Dims& dims, T* y) {
  const auto rank = dims.size();
  int64_t outer = 1, inner = 1;
  for (size_t j = 0; j < axis.axis; ++j) outer *= dims[j];
  for (size_t j = axis.axis + 1; j < rank; ++j) inner *= dims[j];
  const int64_t length = dims[axis.axis];
  if (axis.axis + 1 == rank) {
    run.parallel_for(outer, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, axis.length)),
                     [&](int64_t begin, int64_t end) {
                       resample_rows(axis, x + begin * length, length, end - begin,
                                     y + begin * axis.length);
                     });
    return;
  }
  const T* weights = axis.weights_for(x);
  run.parallel_for(outer * axis.length, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, inner)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const auto place = static_cast<size_t>(row % axis.length);
                       blend_rows(x + (row / axis.length * length + axis.first[place]) * inner,
                                  inner, weights + place * static_cast<size_t>(axis.taps),
                                  axis.taps, inner, y + row * inner);
                     }
                   });
}

/// Memory that begins with a line of the cache.
float* room_for(int64_t count, std::vector<float>& memory) {
  memory.resize(static_cast<size_t>(count) + 16);
  return memory.data() +
         (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / sizeof(float);
}
/// Such axes, one row of the result after the other.
void do_plane(const KernelRun& run, const ResizeState& s, const float* x, const Dims& dims,
              float* y) {
  const bool down_first = s.axes[0].axis < s.axes[1].axis;
  const Axis &down = s.axes[down_first ? 0 : 1], &across = s.axes[down_first ? 1 : 0];
  const int64_t height = dims[down.axis], width = dims[across.axis];
  int64_t outer = 1, inner = 1;
  for (size_t j = 0; j < down.axis; ++j) outer *= dims[j];
  for (size_t j = across.axis + 1; j < dims.size(); ++j) inner *= dims[j];
  const int64_t in_row = width * inner, out_row = across.length * inner;
  const auto resample = [&](const float* from, int64_t rows, float* to) {
    if (across.axis + 1 == dims.size()) return resample_rows(across, from, width, rows, to);
    for (; rows > 0; --rows, from += in_row, to += out_row)
      blend_places(from, across.first.data(), across.weights.data(), across.taps, across.length,
                   inner, to);
  };
  const auto blend = [&](const float* from, int64_t place, int64_t row, float* to) {
    blend_rows(from, row, down.weights.data() + place * down.taps, down.taps, row, to);
  };
  run.parallel_for(
      outer * down.length, std::max<int64_t>(4 * down.taps, 8192 / out_row),
      [&](int64_t begin, int64_t end) {
        std::vector<float> memory;
        if (down_first) {
          // Some rows at a time: what was just written cannot be read at other bounds at once.
          constexpr int64_t kRows = 8;
          float* room = room_for(kRows * in_row, memory);
          for (int64_t from = begin; from < end; from += kRows) {
            const int64_t rows = std::min(kRows, end - from);
            for (int64_t i = 0; i < rows; ++i) {
              const int64_t place = (from + i) % down.length;
              const int64_t plane = (from + i) / down.length * height;
              blend(x + (plane + down.first[size_t(place)]) * in_row, place, in_row,
                    room + i * in_row);
            }
            resample(room, rows, y + from * out_row);
          }
          return;
        }
        // Rows of the image [low, high) are resampled already; some more than one place needs.
        const int64_t most = down.taps + std::max<int64_t>(4, (1 << 12) / out_row);
        float* room = room_for(most * out_row, memory);
        int64_t low = 0, high = 0;
        int64_t place = begin % down.length, plane = begin / down.length * height;
        for (int64_t row = begin; row < end; ++row, ++place) {
          if (place == down.length) {
            place = 0;
            plane += height;
          }
          const int64_t first = plane + down.first[size_t(place)], last = first + down.taps;
          if (first < low || first >= high) {
            low = high = first;
          } else if (last > low + most) {
            std::copy(room + (first - low) * out_row, room + (high - low) * out_row, room);
            low = first;
          }
          if (high < last) {
            // As many as there is room for, of those that the rest of the plane reads.
            const int64_t left = std::min(end - row, down.length - place) - 1;
            const int64_t reads = plane + down.first[size_t(place + left)] + down.taps;
            const int64_t until = std::max(last, std::min(low + most, reads));
            resample(x + high * in_row, until - high, room + (high - low) * out_row);
            high = until;
          }
          blend(room + (first - low) * out_row, place, out_row, y + row * out_row);
        }
      });
}

/// What lies beyond the image gets the value for that.
void fill_outside(const ResizeState& state, float* y) {
  const size_t rank = state.output.size();
  const int64_t width = state.output[rank - 1], rows = element_count(state.output) / width;
  const auto& last = state.outside[rank - 1];
  for (int64_t row = 0; row < rows; ++row, y += width) {
    bool whole = false;
    int64_t rest = row;
    for (size_t j = rank - 1; j-- > 0; rest /= state.output[j])
      whole |= !state.outside[j].empty() &&
               state.outside[j][static_cast<size_t>(rest % state.output[j])] != 0;
    if (whole)
      std::fill_n(y, width, state.extrapolation);
    else
      for (size_t i = 0; i < last.size(); ++i)
        if (last[i] != 0) y[i] = state.extrapolation;
  }
}

template <typename T>
Status resize_bytes(KernelRun& run) {
  const auto& state = run.state<ResizeState>();
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), state.output));
  const Tensor& image = run.input(0);
  auto* x = reinterpret_cast<double*>(run.scratch());
  double* to = x + state.room;
  constexpr int64_t kGrain = 1 << 14;
  run.parallel_for(image.size(), kGrain, [&](int64_t begin, int64_t end) {
    bytes_to_doubles(image.data<T>() + begin, end - begin, x + begin);
  });
  Dims dims = image.dims();
  for (const Axis& axis : state.axes) {
    do_axis(run, axis, x, dims, to);
    dims[axis.axis] = axis.length;
    std::swap(x, to);
  }
  run.parallel_for(y->size(), kGrain, [&](int64_t begin, int64_t end) {
    doubles_to_bytes(x + begin, end - begin, y->template data<T>() + begin);
  });
  return ok();
}

Status run_resize(KernelRun& run) {
  if (run.input(0).dtype() == DType::kUInt8) return resize_bytes<uint8_t>(run);
  if (run.input(0).dtype() == DType::kInt8) return resize_bytes<int8_t>(run);
  const auto& state = run.state<ResizeState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  if (y->size() == 0) return ok();
  const Tensor& image = run.input(0);
  const float* x = image.data<float>();
  Dims dims = image.dims();
  if (state.axes.empty()) {
    std::copy_n(x, image.size(), y->data<float>());
  } else if (is_plane(state)) {
    do_plane(run, state, x, dims, y->data<float>());
  } else {
    auto* scratch = reinterpret_cast<float*>(run.scratch());
    for (size_t i = 0; i < state.axes.size(); ++i) {
      const bool last = i + 1 == state.axes.size();
      float* to = last ? y->data<float>() : scratch + (i % 2) * state.room;
      do_axis(run, state.axes[i], x, dims, to);
      dims[state.axes[i].axis] = state.axes[i].length;
      x = to;
    }
  }
  if (!state.outside.empty()) fill_outside(state, y->data<float>());
  return ok();
}

}  // namespace

KERNEL(resize_f32) = {
    .name = "resize",
    .op = "Resize",
    .supports = supports_resize,
    .prepare = prepare_resize,
    .run = run_resize,
    .values = 0b1110,
};

}  // namespace tombolo
