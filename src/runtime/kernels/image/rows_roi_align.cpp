// RoiAlign of floats. A sample's weights are products of one along each axis, and so are sums of
// them: for a row of cells rows of pixels are first blended to one, and that along. Many regions
// have the picture turned once to channels last; few read it as it lies, channel by channel.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/kernels/image/channels_last.h"
#include "runtime/kernels/image/roi.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct RoiState final : KernelState {
  int64_t cells[2] = {1, 1};  ///< down and along
  int64_t ratio = 0;
  double scale = 1;
  bool maximum = false, half_pixel = false;
  Dims output;
};

bool plan_roi(const KernelQuery& q, RoiState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3 || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32 || q.dtype(2) != DType::kInt64)
    return false;
  const auto x = q.dims(0), rois = q.dims(1), batches = q.dims(2);
  if (x.size() != 4 || element_count(x) < 1 || batches.size() != 1 || rois.size() != 2 ||
      rois[1] != 4 || rois[0] != batches[0] || rois[0] < 1 || x[2] * x[3] > 1 << 24)
    return false;
  s.cells[0] = q.attributes.get_int("output_height", 1);
  s.cells[1] = q.attributes.get_int("output_width", 1);
  s.ratio = q.attributes.get_int("sampling_ratio", 0);
  if (s.cells[0] < 1 || s.cells[1] < 1 || s.cells[0] > 256 || s.cells[1] > 256 || s.ratio < 0 ||
      s.ratio > 4096)
    return false;
  const Text mode = q.attributes.get_string("mode", "avg");
  if (mode != "avg" && mode != "max") return false;
  s.maximum = mode == "max";
  s.scale = static_cast<double>(q.attributes.get_float("spatial_scale", 1));
  s.half_pixel = q.opset >= 16 && q.attributes.get_string("coordinate_transformation_mode",
                                                          "half_pixel") == "half_pixel";
  s.output = {rois[0], x[1], s.cells[0], s.cells[1]};
  return true;
}
bool supports_roi(const KernelQuery& q) {
  RoiState state;
  return plan_roi(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_roi(const PrepareContext& q) {
  auto state = std::make_unique<RoiState>();
  plan_roi(q, *state);
  state->scratch_bytes = static_cast<size_t>(element_count(q.dims(0))) * sizeof(float);
  return state;
}

/// A region along one axis.
struct RoiSpan {
  double start, cell;  ///< of the first cell, and the size of each
  int64_t points;      ///< samples in a cell

  RoiSpan(const RoiState& s, const float* roi, size_t axis) {
    const double shift = s.half_pixel ? 0.5 : 0;
    const auto at = [&](size_t i) { return static_cast<double>(roi[i]) * s.scale - shift; };
    start = at(1 - axis);
    double size = at(3 - axis) - start;
    if (!s.half_pixel) size = std::max(size, 1.0);
    cell = size / static_cast<double>(s.cells[axis]);
    points = s.ratio > 0               ? s.ratio
             : std::fabs(cell) <= 4096 ? std::max<int64_t>(0, static_cast<int64_t>(std::ceil(cell)))
                                       : 0;
  }
};

/// The places that each cell of an axis reads, and how much of them: for a maximum the most and the
/// least of their weights.
struct RoiAxis {
  std::vector<int32_t> at;
  std::vector<float> most, least;
  std::vector<int64_t> first;   ///< of each cell, and the end
  std::vector<uint8_t> beyond;  ///< of each cell: whether it has samples outside
  bool zeros = false;           ///< some weight is none

  int64_t count(int64_t cell) const {
    return first[static_cast<size_t>(cell) + 1] - first[static_cast<size_t>(cell)];
  }

  void look_up(const RoiSpan& span, int64_t cells, int64_t length, bool maximum) {
    at.clear();
    most.clear();
    least.clear();
    first.assign(1, 0);
    zeros = false;
    beyond.assign(static_cast<size_t>(cells), 0);
    const auto points = static_cast<double>(span.points);
    for (int64_t cell = 0; cell < cells; ++cell) {
      for (int64_t i = 0; i < span.points; ++i) {
        double position = span.start + span.cell * (static_cast<double>(cell) +
                                                    (static_cast<double>(i) + 0.5) / points);
        if (!(position >= -1 && position <= static_cast<double>(length))) {
          beyond[static_cast<size_t>(cell)] = 1;
          continue;
        }
        position = std::max(position, 0.0);
        const int64_t low = std::min(static_cast<int64_t>(position), length - 1);
        const int64_t high = std::min(low + 1, length - 1);
        const double part = low == high ? 0 : position - static_cast<double>(low);
        add(low, 1 - part, maximum);
        add(high, part, maximum);
      }
      // The average of all.
      for (auto j = static_cast<size_t>(first.back()); !maximum && j < at.size(); ++j)
        most[j] = static_cast<float>(static_cast<double>(most[j]) / points);
      first.push_back(static_cast<int64_t>(at.size()));
    }
  }

 private:
  /// Samples follow each other: a place that was read already is one of the last two. In a sum one
  /// that counts nothing stays apart: what is infinite makes that no number.
  void add(int64_t place, double weight, bool maximum) {
    const auto own = static_cast<float>(weight);
    zeros |= own == 0;
    const auto begin = static_cast<size_t>(first.back());
    for (size_t j = at.size(); j-- > begin && j + 2 >= at.size();) {
      if (at[j] != place || (!maximum && (own == 0) != (most[j] == 0))) continue;
      most[j] = maximum ? std::max(most[j], own) : most[j] + own;
      least[j] = std::min(least[j], own);
      return;
    }
    at.push_back(static_cast<int32_t>(place));
    most.push_back(own);
    least.push_back(own);
  }
};

/// A maximum by two steps loses what is finite beside what is infinite where the second counts
/// nothing.
bool loses_numbers(const RoiState& s, const RoiAxis& along, const std::vector<float>* lines) {
  if (!s.maximum || !along.zeros) return false;
  const auto infinite = [](float x) { return x == std::numeric_limits<float>::infinity(); };
  return std::any_of(lines[0].begin(), lines[0].end(), infinite) ||
         std::any_of(lines[1].begin(), lines[1].end(), infinite);
}

/// Room of one thread for region after region.
struct RoiRoom {
  RoiAxis axes[2];
  std::vector<int32_t> columns, along, taps;  ///< distinct columns; those of cells among them
  std::vector<float> most, first, lines[2], cells, shares[2];
};

/// Cells of one region, [cell][channel], of a picture whose channels lie last.
void run_region(const RoiState& s, const float* pixels, int64_t width, int64_t channels,
                RoiRoom& room) {
  const RoiAxis &down = room.axes[0], &along = room.axes[1];
  room.columns = along.at;
  std::sort(room.columns.begin(), room.columns.end());
  room.columns.erase(std::unique(room.columns.begin(), room.columns.end()), room.columns.end());
  const auto columns = static_cast<int64_t>(room.columns.size());
  room.along.clear();
  for (const int32_t column : along.at)
    room.along.push_back(static_cast<int32_t>(
        std::lower_bound(room.columns.begin(), room.columns.end(), column) - room.columns.begin()));
  const int kinds = s.maximum ? 2 : 1;
  for (int kind = 0; kind < kinds; ++kind)
    room.lines[kind].resize(static_cast<size_t>(columns * channels));
  room.cells.resize(static_cast<size_t>(s.cells[0] * s.cells[1] * channels));
  const auto all = static_cast<int64_t>(along.at.size());
  const int32_t none = 0;
  float* out = room.cells.data();
  for (int64_t row = 0; row < s.cells[0]; ++row) {
    const auto begin = static_cast<size_t>(down.first[static_cast<size_t>(row)]);
    const int64_t rows = down.count(row);
    // Two steps, unless samples are so far apart that nothing is read twice.
    bool twice = rows * columns + all < rows * all;
    room.taps.clear();
    for (int64_t i = 0; i < rows; ++i)
      room.taps.push_back(down.at[begin + static_cast<size_t>(i)] * static_cast<int32_t>(width));
    const float* weights[] = {down.most.data() + begin, down.least.data() + begin};
    for (int kind = 0; twice && kind < kinds; ++kind)
      roi_blend({pixels, channels, room.taps.data(), weights[kind], rows, room.columns.data(),
                 columns, room.lines[kind].data(), s.maximum, false});
    twice = twice && !loses_numbers(s, along, room.lines);
    for (int64_t cell = 0; cell < s.cells[1]; ++cell, out += channels) {
      const auto at = static_cast<size_t>(along.first[static_cast<size_t>(cell)]);
      const int64_t count = along.count(cell);
      const float* own[] = {along.most.data() + at, along.least.data() + at};
      for (int kind = 0; kind < kinds; ++kind) {
        const bool more = kind > 0;
        if (twice) {
          roi_blend({room.lines[kind].data(), channels, room.along.data() + at, own[kind], count,
                     &none, 1, out, s.maximum, more});
          continue;
        }
        std::vector<int32_t>& places = room.taps;
        places.resize(static_cast<size_t>(rows + rows * count));
        room.most.resize(static_cast<size_t>(rows * count));
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < count; ++j) {
            const auto to = static_cast<size_t>(i * count + j);
            places[static_cast<size_t>(rows) + to] =
                places[static_cast<size_t>(i)] +
                room.columns[static_cast<size_t>(room.along[at + static_cast<size_t>(j)])];
            room.most[to] = weights[kind][i] * own[kind][j];
          }
        roi_blend({pixels, channels, places.data() + rows, room.most.data(), rows * count, &none, 1,
                   out, s.maximum, more});
      }
      // Samples outside are the first pixel by a weight of zero: greater than what is negative.
      const float zero = 0;
      if (down.beyond[static_cast<size_t>(row)] != 0 ||
          along.beyond[static_cast<size_t>(cell)] != 0)
        roi_blend({room.first.data(), channels, &none, &zero, 1, &none, 1, out, s.maximum, true});
    }
  }
}

/// The greatest of one cell of one channel, sample by sample.
float greatest_of(const RoiAxis& down, const RoiAxis& along, const float* plane, int64_t row,
                  int64_t column, int64_t width) {
  float most = -std::numeric_limits<float>::infinity();
  for (auto i = static_cast<size_t>(down.first[static_cast<size_t>(row)]);
       i < static_cast<size_t>(down.first[static_cast<size_t>(row) + 1]); ++i)
    for (auto j = static_cast<size_t>(along.first[static_cast<size_t>(column)]);
         j < static_cast<size_t>(along.first[static_cast<size_t>(column) + 1]); ++j) {
      const float x = plane[down.at[i] * width + along.at[j]];
      most = std::max(most, down.most[i] * along.most[j] * x);  // one that is no number stays out
      most = std::max(most, down.least[i] * along.least[j] * x);
    }
  return most;
}

/// The same as it lies, channel by channel: [channel][cell].
void run_region_planes(const RoiState& s, const float* picture, int64_t plane, int64_t width,
                       int64_t channels, RoiRoom& room, float* to) {
  const RoiAxis &down = room.axes[0], &along = room.axes[1];
  const auto range = std::minmax_element(along.at.begin(), along.at.end());
  const int64_t left = along.at.empty() ? 0 : *range.first;
  const int64_t span = along.at.empty() ? 0 : *range.second - left + 1;
  const int64_t step = round_up(span, kRoiVector), cells = s.cells[0] * s.cells[1];
  const int64_t padded = round_up(cells, kRoiVector);
  int64_t taps = 0;
  for (int64_t cell = 0; cell < s.cells[1]; ++cell) taps = std::max(taps, along.count(cell));
  const int kinds = s.maximum ? 2 : 1;
  // What a cell has less than the others is zero times zero, or its first once more: both change
  // nothing.
  room.columns.assign(static_cast<size_t>(taps * padded), 0);
  for (int kind = 0; kind < kinds; ++kind) {
    room.lines[kind].assign(static_cast<size_t>(kRoiVector + s.cells[0] * step), 0.0f);
    room.shares[kind].assign(room.columns.size(), 0.0f);
    const std::vector<float>& weights = kind == 0 ? along.most : along.least;
    for (int64_t cell = 0; cell < cells; ++cell) {
      const int64_t column = cell % s.cells[1], count = along.count(column);
      for (int64_t t = 0; t < (s.maximum && count > 0 ? taps : count); ++t) {
        const auto from =
            static_cast<size_t>(along.first[static_cast<size_t>(column)] + (t < count ? t : 0));
        const auto at = static_cast<size_t>(t * padded + cell);
        room.columns[at] =
            static_cast<int32_t>(kRoiVector + cell / s.cells[1] * step + along.at[from] - left);
        room.shares[kind][at] = weights[from];
      }
    }
  }
  room.taps.clear();
  for (const int32_t row : down.at) room.taps.push_back(row * static_cast<int32_t>(width));
  room.cells.resize(static_cast<size_t>(padded));
  for (int64_t c = 0; c < channels; ++c, picture += plane, to += cells) {
    roi_plane({picture + left,
               span,
               room.taps.data(),
               down.first.data(),
               {down.most.data(), down.least.data()},
               s.cells[0],
               {room.lines[0].data(), room.lines[1].data()},
               step,
               room.columns.data(),
               {room.shares[0].data(), room.shares[1].data()},
               taps,
               cells,
               room.cells.data(),
               s.maximum});
    const bool anew = loses_numbers(s, along, room.lines);
    const float outside = 0 * picture[0];
    for (int64_t cell = 0; cell < cells; ++cell) {
      float value =
          anew ? greatest_of(down, along, picture, cell / s.cells[1], cell % s.cells[1], width)
               : room.cells[static_cast<size_t>(cell)];
      if (down.beyond[static_cast<size_t>(cell / s.cells[1])] != 0 ||
          along.beyond[static_cast<size_t>(cell % s.cells[1])] != 0) {
        if (s.maximum && along.count(cell % s.cells[1]) == 0)
          value = -std::numeric_limits<float>::infinity();
        if (!s.maximum)
          value += outside;
        else if (!(value >= outside) && outside == outside)
          value = outside;
      }
      to[cell] = value;
    }
  }
}

Status check_regions(const KernelRun& run, const RoiState& s) {
  const Tensor& x = run.input(0);
  const float* rois = run.data<float>(1);
  const int64_t* batches = run.data<int64_t>(2);
  // More samples take minutes; without a ratio they are as many as pixels.
  constexpr double kMost = 4096, kMostSamples = int64_t{1} << 30;
  const double cells = static_cast<double>(x.dim(1) * s.cells[0] * s.cells[1]);
  for (int64_t n = 0; n < s.output[0]; ++n) {
    if (batches[n] < 0 || batches[n] >= x.dim(0))
      return runtime_error("batch_indices has the value " + std::to_string(batches[n]) +
                           ", X has " + std::to_string(x.dim(0)) + " pictures");
    const RoiSpan down(s, rois + n * 4, 0), along(s, rois + n * 4, 1);
    if (!(std::fabs(down.cell) <= kMost && std::fabs(along.cell) <= kMost) ||
        cells * static_cast<double>(down.points * along.points) > kMostSamples)
      return runtime_error("region " + std::to_string(n) + " is too large: its cells have " +
                           std::to_string(down.cell) + " by " + std::to_string(along.cell) +
                           " pixels");
  }
  return ok();
}

/// Whether it takes less to read the picture as it lies than to turn it, in cycles as measured.
bool reads_planes(const KernelRun& run, const RoiState& s) {
  const Tensor& x = run.input(0);
  const float* rois = run.data<float>(1);
  const auto down = static_cast<double>(s.cells[0]), along = static_cast<double>(s.cells[1]);
  // For each channel; a number that is turned, one that is gathered.
  constexpr double kTurned = 2.2, kGathered = 1.3, kBlended = 1.5;
  double turned = kTurned * static_cast<double>(x.dim(0) * x.dim(2) * x.dim(3)), planes = 0;
  for (int64_t n = 0; n < s.output[0]; ++n) {
    double reads[2], spans[2];
    for (size_t axis = 0; axis < 2; ++axis) {
      const RoiSpan span(s, rois + n * 4, axis);
      reads[axis] = std::min(2 * static_cast<double>(span.points), std::fabs(span.cell) + 2);
      const auto last = static_cast<double>(x.dim(static_cast<int64_t>(axis) + 2));
      spans[axis] = std::min(std::fabs(span.cell) * static_cast<double>(s.cells[axis]) + 2, last);
    }
    planes += down * reads[0] * std::ceil(spans[1] / kRoiVector) * kBlended +
              down * along * reads[1] * kGathered;
    turned += kBlended / kRoiVector * down *
              (reads[0] * std::min(spans[1], along * reads[1]) + along * reads[1]);
  }
  return planes < turned;
}

Status run_roi(KernelRun& run) {
  const auto& s = run.state<RoiState>();
  const Tensor& x = run.input(0);
  const float* rois = run.data<float>(1);
  const int64_t* batches = run.data<int64_t>(2);
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3), plane = height * width;
  CHECK_OK(check_regions(run, s));
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  auto* turned = reinterpret_cast<float*>(run.scratch());
  const bool planes = reads_planes(run, s);
  if (!planes) turn_channels_last(run, x, plane, turned);
  const int64_t cells = s.cells[0] * s.cells[1];
  float* to = y->data<float>();
  run.parallel_for(s.output[0], 1, [&](int64_t begin, int64_t end) {
    RoiRoom room;
    for (int64_t n = begin; n < end; ++n) {
      const RoiSpan down(s, rois + n * 4, 0), along(s, rois + n * 4, 1);
      float* const region = to + n * channels * cells;
      if (down.points * along.points == 0) {
        std::fill_n(region, channels * cells, 0.0f);
        continue;
      }
      room.axes[0].look_up(down, s.cells[0], height, s.maximum);
      room.axes[1].look_up(along, s.cells[1], width, s.maximum);
      const float* picture = x.data<float>() + batches[n] * channels * plane;
      if (planes) {
        run_region_planes(s, picture, plane, width, channels, room, region);
        continue;
      }
      room.first.resize(static_cast<size_t>(channels));
      for (int64_t c = 0; c < channels; ++c)
        room.first[static_cast<size_t>(c)] = picture[c * plane];
      run_region(s, turned + batches[n] * plane * channels, width, channels, room);
      transpose_tile(reinterpret_cast<const std::byte*>(room.cells.data()), channels,
                     reinterpret_cast<std::byte*>(region), cells, cells, channels, sizeof(float));
    }
  });
  return ok();
}

}  // namespace

KERNEL(roi_align) = {
    .name = "roi_align",
    .op = "RoiAlign",
    .supports = supports_roi,
    .prepare = prepare_roi,
    .run = run_roi,
};

}  // namespace tombolo
