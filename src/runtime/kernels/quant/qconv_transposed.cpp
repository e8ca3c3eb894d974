#include "runtime/kernels/quant/qconv_transposed.h"

#include <algorithm>
#include <utility>

#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// Calls take(z, y, x) for each phase.
template <typename Take>
void each_phase(const TransposedPhases& all, Take&& take) {
  for (const AxisPhase& z : all.of_axis[0])
    for (const AxisPhase& y : all.of_axis[1])
      for (const AxisPhase& x : all.of_axis[2]) take(z, y, x);
}

std::vector<int64_t> taps_of(const ConvGeometry& s, const AxisPhase& z, const AxisPhase& y,
                             const AxisPhase& x) {
  std::vector<int64_t> taps;
  for (const int64_t d : z.taps)
    for (const int64_t i : y.taps)
      for (const int64_t j : x.taps) taps.push_back((d * s.kernel[1] + i) * s.kernel[2] + j);
  return taps;
}

/// Positions of a row that lie side by side are one stretch.
bool whole_rows(const ConvGeometry& s, const AxisPhase& x) {
  return s.groups == 1 && (x.back.size() < 2 || x.back[0] - x.back[1] == 1);
}

/// The rows that a phase makes, and where they go.
void add_phase_rows(const QTransposedPlan& plan, const AxisPhase& z, const AxisPhase& y,
                    const AxisPhase& x, QProduct& p) {
  const ConvGeometry& s = plan.shape;
  const QImage& image = plan.image;
  const auto first_seen = [&](const AxisPhase& phase, int axis) {
    return phase.input - (phase.back.empty() ? 0 : phase.back[0]) + image.before[axis];
  };
  const int64_t period = image.size[2], pixel = image.channels * image.element;
  const int64_t to_row = s.stride[1] * s.out[2] / plan.step, stride = s.stride[2] / plan.step;
  const bool apart = stride != 1 || q_rows_apart(p, y.count, x.count, period);
  for (int64_t d = 0; d < z.count; ++d) {
    const int64_t to = d * (s.stride[0] * s.out[1] * s.out[2] / plan.step);
    const int64_t first =
        ((first_seen(z, 0) + d) * image.size[1] + first_seen(y, 1)) * period + first_seen(x, 2);
    if (!apart)
      q_add_lines(p, first * pixel, (y.count - 1) * period + x.count, period, x.count, to, to_row);
    // Results that are no neighbours are rows of one.
    const int64_t neighbours = stride == 1 ? x.count : 1;
    for (int64_t r = 0; apart && r < y.count; ++r)
      q_add_lines(p, (first + r * period) * pixel, x.count, neighbours, neighbours, to + r * to_row,
                  stride);
  }
}

/// sums[r] of what result r of the phase sees, from the sums of each pixel.
void sum_phase(const QTransposedPlan& plan, const QProduct& p, const int32_t* of_pixels,
               int32_t* sums) {
  std::vector<int64_t> taps;
  for (const int64_t offset : p.offsets)
    for (int64_t j = 0; j < p.run / plan.shape.in_channels; ++j) taps.push_back(offset / p.lda + j);
  for (const QTileRows& tile : p.tiles)
    for (int32_t r = tile.first_run; r < tile.last_run; ++r) {
      const QRun& run = p.runs[static_cast<size_t>(r)];
      q_sum_taps(of_pixels + tile.offset / p.lda + run.from, taps, run.count, 1, sums + run.to);
    }
}

/// What nothing is added to.
void finish_nothing(const QProduct& p, const QFinish& finish) {
  const std::vector<int32_t> nothing(static_cast<size_t>(p.n + kMaxQPanel));  // read by vectors
  for (const QRun& run : p.runs) q_finish(finish, nothing.data(), 0, run.to, run.count, 0, p.n);
}

/// Weights, of bytes [C, M / group, ...], in the order of the phases: for each [group][M / group]
/// [position][C / group]. `flip` makes signed ones of those without sign.
std::vector<uint8_t> weights_by_phase(const QTransposedPlan& plan, const uint8_t* w, bool flip) {
  const ConvGeometry& s = plan.shape;
  const int64_t taps = s.taps(), inputs = s.in_channels;
  std::vector<uint8_t> turned;
  turned.reserve(static_cast<size_t>(taps * inputs * plan.outputs()));
  for (const QTransposedPlan::Phase& phase : plan.phases)
    for (int64_t m = 0; m < plan.outputs(); ++m) {
      const int64_t group = m / s.out_channels, column = m % s.out_channels;
      for (const int64_t tap : phase.taps)
        for (int64_t i = group * inputs; i < (group + 1) * inputs; ++i)
          turned.push_back(static_cast<uint8_t>(w[(i * s.out_channels + column) * taps + tap] ^
                                                (flip ? 0x80 : 0)));
    }
  return turned;
}

}  // namespace

size_t QTransposedPlan::sum_bytes() const {
  if (!zeros) return 0;
  int64_t most = 0;
  for (const Phase& phase : phases) most = std::max(most, phase.results);
  return static_cast<size_t>(most + pixels()) * 4;
}

bool q_transposed_takes(const ConvGeometry& shape) {
  constexpr int64_t kMostPhases = 256, kFewOutputs = 8;
  double phases = 1;
  for (int axis = 0; axis < 3; ++axis)
    phases *= static_cast<double>(std::min(shape.stride[axis], shape.out[axis]));
  if (phases > kMostPhases || shape.out_channels < kFewOutputs || shape.depth() > 1 << 16)
    return false;
  double pixels = 1;
  for (const int64_t size : phases_of(shape).size) pixels *= static_cast<double>(size);
  constexpr double kMostPadding = 16, kFewPixels = 1 << 16;
  return pixels <=
         kFewPixels + kMostPadding * static_cast<double>(shape.in_plane() + shape.out_plane());
}

QTransposedPlan plan_qconv_transposed(const ConvGeometry& s, bool x_signed, bool zeros,
                                      const QTiles& tiles) {
  QTransposedPlan plan;
  plan.shape = s;
  plan.zeros = zeros;
  const TransposedPhases all = phases_of(s);
  const int64_t inputs = s.in_channels;
  bool several = false;
  each_phase(all, [&](const AxisPhase& z, const AxisPhase& y, const AxisPhase& x) {
    several |= z.taps.size() * y.taps.size() * x.taps.size() > 1;
  });
  const bool amx = q_use_amx(s.in_plane());
  plan.flip = x_signed && !amx;
  // VNNI reads whole groups, which must not be beyond the end of what is no copy.
  plan.copy = all.padded(s) || several || plan.flip || tiles.element != 1 || s.groups > 1 ||
              (inputs % 4 != 0 && !amx);
  QImage& image = plan.image;
  for (int axis = 0; axis < 3; ++axis) {
    image.in[axis] = s.in[axis];
    image.before[axis] = all.before[axis];
    image.size[axis] = all.size[axis];
  }
  image.channels = s.groups * inputs;
  image.element = tiles.element;
  image.flip = plan.flip;
  const int64_t pixel = image.channels * image.element;
  if (plan.copy)
    plan.image_bytes = static_cast<size_t>((plan.pixels() + 32) * pixel + kQImageSlack);
  const bool even = (s.out[1] == 1 || s.stride[1] * s.out[2] % s.stride[2] == 0) &&
                    (s.out[0] == 1 || s.stride[0] * s.out[1] * s.out[2] % s.stride[2] == 0);
  plan.step = even ? s.stride[2] : 1;
  each_phase(all, [&](const AxisPhase& z, const AxisPhase& y, const AxisPhase& x) {
    QTransposedPlan::Phase phase;
    phase.taps = taps_of(s, z, y, x);
    phase.out = (z.output * s.out[1] + y.output) * s.out[2] + x.output;
    phase.weights = plan.weight_bytes;
    QProduct& p = phase.product;
    p.inner = &tiles;
    p.amx = amx;
    p.a_signed = x_signed && amx;
    p.n = s.out_channels;
    p.lda = pixel;
    p.offsets.clear();
    const bool whole = whole_rows(s, x);
    p.run = inputs * (whole ? static_cast<int64_t>(x.taps.size()) : 1);
    for (const int64_t d : z.back)
      for (const int64_t i : y.back)
        for (const int64_t j : x.back) {
          p.offsets.push_back(
              (((z.back[0] - d) * image.size[1] + y.back[0] - i) * image.size[2] + x.back[0] - j) *
              pixel);
          if (whole) break;
        }
    add_phase_rows(plan, z, y, x, p);
    for (const QRun& run : p.runs) phase.results = std::max(phase.results, run.to + run.count);
    if (!phase.taps.empty())
      phase.group_bytes =
          q_stretch_bytes(static_cast<int64_t>(p.offsets.size()), p.run, s.out_channels, tiles);
    plan.weight_bytes += static_cast<size_t>(s.groups) * phase.group_bytes;
    plan.phases.push_back(std::move(phase));
  });
  return plan;
}

void pack_qconv_transposed(const QTransposedPlan& plan, const uint8_t* w, bool flip,
                           const int32_t* zeros, std::byte* packed, int32_t* sums) {
  const ConvGeometry& s = plan.shape;
  const std::vector<uint8_t> turned = weights_by_phase(plan, w, flip);
  const int64_t outputs = plan.outputs();
  std::vector<int32_t> panel_sums(static_cast<size_t>(s.out_channels + 64));
  const uint8_t* from = turned.data();
  for (const QTransposedPlan::Phase& phase : plan.phases) {
    const int64_t filter = static_cast<int64_t>(phase.taps.size()) * s.in_channels;
    for (int64_t group = 0; group < s.groups; ++group, from += s.out_channels * filter) {
      int32_t* to = sums + group * s.out_channels;
      if (filter == 0) {
        std::fill_n(to, s.out_channels, 0);
        continue;
      }
      q_pack_stretches(from, 1, filter, static_cast<int64_t>(phase.product.offsets.size()),
                       phase.product.run, s.out_channels, false,
                       packed + phase.weights + static_cast<size_t>(group) * phase.group_bytes,
                       panel_sums.data(), *phase.product.inner);
      std::copy_n(panel_sums.data(), s.out_channels, to);
    }
    for (int64_t m = 0; zeros != nullptr && m < outputs; ++m)
      sums[m] -= static_cast<int32_t>(filter) * zeros[m];
    sums += outputs;
  }
}

void run_qconv_transposed(const QTransposedPlan& plan, const uint8_t* x, uint8_t zero,
                          const std::byte* packed, const QFinish& finish, int64_t add_step,
                          std::byte* scratch) {
  const ConvGeometry& s = plan.shape;
  auto* const of_pixels =
      reinterpret_cast<int32_t*>(scratch + plan.scratch_bytes() - plan.sum_bytes());
  int32_t* const row_sums = of_pixels + plan.pixels();
  const int64_t in_bytes = s.in_plane() * plan.image.channels;
  const auto phases = static_cast<int64_t>(plan.phases.size());
  const int64_t readable = plan.copy ? static_cast<int64_t>(plan.image_bytes) : in_bytes;
  for (int64_t n = 0; n < s.batch; ++n) {
    const auto* image = reinterpret_cast<const std::byte*>(x + n * in_bytes);
    if (plan.copy) {
      q_copy_image(plan.image, x + n * in_bytes, zero, scratch);
      image = scratch;
    }
    for (int64_t group = 0; group < s.groups; ++group) {
      const int64_t first = group * s.out_channels;
      const int64_t skip = group * s.in_channels * plan.image.element;
      const std::byte* of_group = image + skip;
      if (plan.zeros)
        q_sum_pixels(of_group, plan.pixels(), plan.image.channels, s.in_channels,
                     plan.image.element, plan.phases[0].product.a_signed, of_pixels);
      const auto run_phase = [&](int64_t at) {
        const QTransposedPlan::Phase& phase = plan.phases[static_cast<size_t>(at)];
        QFinish own = finish;
        own.out = static_cast<std::byte*>(finish.out) +
                  (n * s.out_plane() + phase.out) * plan.outputs() + first;
        own.ldo = plan.step * plan.outputs();
        own.column_add += at * add_step + first;
        own.column_scale += first;
        if (phase.taps.empty()) return finish_nothing(phase.product, own);
        if (plan.zeros) {
          sum_phase(plan, phase.product, of_pixels, row_sums);
          own.row_sum = row_sums;
          own.zero += first;
        }
        q_product(phase.product, of_group, readable - skip,
                  packed + phase.weights + static_cast<size_t>(group) * phase.group_bytes, own);
      };
      // Products of small phases are too short to be shared out one by one.
      constexpr int64_t kShort = 2'000'000;
      if (!plan.zeros && phases > 1 && s.in_plane() * s.depth() * s.out_channels < phases * kShort)
        parallel(phases, 1, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) run_phase(at);
        });
      else
        for (int64_t at = 0; at < phases; ++at) run_phase(at);
    }
  }
}

}  // namespace tombolo
