// GroupNorm and SkipGroupNorm of com.microsoft: moments of channels that lie last are sums down
// columns; a scale and a shift a channel, and SiLU, row by row.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/reduce/rows.h"

namespace tombolo {
namespace {

struct ImageNormState final : KernelState {
  int64_t batch = 1, channels = 1, pixels = 1, groups = 1;
  bool last = true, silu = false, skips = false, skips_whole = false, widens = false;
  double epsilon = 1e-5;
};

bool plan_image_norm(const KernelQuery& q, ImageNormState& s) {
  const auto& attributes = q.attributes;
  s.skips = q.node.op_type() == "SkipGroupNorm";
  if (active_isa() == Isa::kScalar || q.inputs.size() < (s.skips ? 4u : 3u) ||
      q.dims(0).size() < 3 || element_count(q.dims(0)) < 1)
    return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (q.has_input(i) && !is_f32_or_short(q.dtype(i))) return false;
  const auto x = q.dims(0);
  s.last = attributes.get_int("channels_last", 1) != 0;
  s.channels = s.last ? x.back() : x[1];
  s.batch = x[0];
  s.pixels = element_count(x) / s.batch / s.channels;
  s.groups = attributes.get_int("groups", 0);
  const int64_t activation = attributes.get_int("activation", 0);
  if (s.groups < 1 || s.channels % s.groups != 0 || activation < 0 || activation > 1) return false;
  s.silu = activation == 1;
  s.epsilon = static_cast<double>(attributes.get_float("epsilon", 1e-5f));
  for (const size_t i : {size_t(1), size_t(2), size_t(4)})
    if ((i < 4 || q.has_input(i)) && Dims(q.dims(i)) != Dims{s.channels}) return false;
  s.widens = q.dtype(0) != DType::kFloat32;
  if (!s.skips) return true;
  s.skips_whole = Dims(q.dims(3)) == Dims(x);
  return q.has_input(3) && (s.skips_whole || (q.inputs[3].size() == s.batch * s.channels &&
                                              !q.dims(3).empty() && q.dims(3)[0] == s.batch));
}
bool supports_image_norm(const KernelQuery& q) {
  ImageNormState state;
  return plan_image_norm(q, state);
}

Result<std::unique_ptr<KernelState>> prepare_image_norm(const PrepareContext& q) {
  auto state = std::make_unique<ImageNormState>();
  plan_image_norm(q, *state);
  // The sum, where it is no output or not of floats, and what is made of it.
  if (state->skips || state->widens)
    state->scratch_bytes = 2 * sizeof(float) * static_cast<size_t>(element_count(q.dims(0)));
  return state;
}

constexpr int64_t kStretch = 1 << 14;  ///< elements that a thread takes at a time

/// x + skip + bias, in floats.
void add_up(const KernelRun& run, const ImageNormState& s, float* sum) {
  const Tensor& x = run.input(0);
  std::vector<float> rooms[2];
  const auto few = [&](size_t index, std::vector<float>& room) -> const float* {
    const Tensor& tensor = run.input(index);
    if (tensor.dtype() != DType::kFloat32) room.resize(static_cast<size_t>(tensor.size()));
    return load_floats(tensor, 0, tensor.size(), room.data());
  };
  const float* skip = s.skips && !s.skips_whole ? few(3, rooms[0]) : nullptr;
  const float* bias = s.skips && run.has_input(4) ? few(4, rooms[1]) : nullptr;
  // Rows of channels, or of pixels of one channel.
  const int64_t width = s.last ? s.channels : s.pixels, rows = x.size() / width;
  run.parallel_for(rows, std::max<int64_t>(1, kStretch / width), [&](int64_t begin, int64_t end) {
    float* room = thread_floats(1, static_cast<size_t>(width));
    for (int64_t r = begin; r < end; ++r) {
      float* to = sum + r * width;
      const float* from = load_floats(x, r * width, width, to);
      if (from != to) std::copy_n(from, width, to);
      if (!s.skips) continue;
      const int64_t image = s.last ? r / s.pixels : r / s.channels;
      const int64_t channel = s.last ? 0 : r % s.channels;
      if (s.skips_whole) {
        const float* more = load_floats(run.input(3), r * width, width, room);
        for (int64_t i = 0; i < width; ++i) to[i] += more[i];
      } else if (s.last) {
        const float* more = skip + image * s.channels;
        for (int64_t i = 0; i < width; ++i) to[i] += more[i];
      } else {
        const float more = skip[image * s.channels + channel];
        for (int64_t i = 0; i < width; ++i) to[i] += more;
      }
      if (bias == nullptr) continue;
      if (s.last)
        for (int64_t i = 0; i < width; ++i) to[i] += bias[i];
      else
        for (int64_t i = 0; i < width; ++i) to[i] += bias[channel];
    }
  });
}

/// Sums of each image's groups, of numbers less `shifts`, for channels that lie last. Stretches of
/// pixels are always the same ones, and so are the sums, whatever the threads.
std::vector<double> group_sums(const KernelRun& run, const ImageNormState& s, const float* x,
                               Power power, const std::vector<double>* shifts) {
  const int64_t stretch = std::max<int64_t>(1, kStretch / s.channels);
  const int64_t parts = (s.pixels + stretch - 1) / stretch;
  std::vector<double> sums(static_cast<size_t>(s.batch * parts * s.channels), 0.0);
  run.parallel_for(s.batch * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / parts, pixel = task % parts * stretch;
      column_sums_f64(power, x + (image * s.pixels + pixel) * s.channels,
                      std::min(stretch, s.pixels - pixel), s.channels, s.channels,
                      shifts == nullptr ? nullptr : shifts->data() + image * s.channels,
                      sums.data() + task * s.channels);
    }
  });
  std::vector<double> result(static_cast<size_t>(s.batch * s.groups), 0.0);
  const int64_t width = s.channels / s.groups;
  for (int64_t task = 0; task < s.batch * parts; ++task)
    for (int64_t c = 0; c < s.channels; ++c)
      result[static_cast<size_t>(task / parts * s.groups + c / width)] +=
          sums[static_cast<size_t>(task * s.channels + c)];
  return result;
}

void normalize_last(const KernelRun& run, const ImageNormState& s, const float* x,
                    const float* gamma, const float* beta, float* y) {
  const int64_t width = s.channels / s.groups;
  const auto count = static_cast<double>(width * s.pixels);
  std::vector<double> sums = group_sums(run, s, x, Power::kValue, nullptr);
  std::vector<double> means(static_cast<size_t>(s.batch * s.channels));
  const auto group_of = [&](size_t i) { return i / static_cast<size_t>(width); };
  for (size_t i = 0; i < means.size(); ++i) means[i] = sums[group_of(i)] / count;
  sums = group_sums(run, s, x, Power::kSquare, &means);
  std::vector<float> scales(means.size()), shifts(means.size());
  for (size_t i = 0; i < means.size(); ++i) {
    const size_t c = i % static_cast<size_t>(s.channels);
    const double factor =
        static_cast<double>(gamma[c]) / std::sqrt(sums[group_of(i)] / count + s.epsilon);
    scales[i] = static_cast<float>(factor);
    shifts[i] = static_cast<float>(static_cast<double>(beta[c]) - means[i] * factor);
  }
  UnaryFn* const silu = unary_fn(Unary::kSwish);
  run.parallel_for(s.batch * s.pixels, std::max<int64_t>(1, kStretch / s.channels),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t p = begin; p < end; ++p) {
                       const int64_t at = p / s.pixels * s.channels;
                       float* to = y + p * s.channels;
                       normalize_row(x + p * s.channels, to, s.channels, {0, 1}, scales.data() + at,
                                     shifts.data() + at);
                       if (s.silu) silu(to, to, s.channels, 1, 0);
                     }
                   });
}

void normalize_first(const KernelRun& run, const ImageNormState& s, const float* x,
                     const float* gamma, const float* beta, float* y) {
  const int64_t width = s.channels / s.groups, size = width * s.pixels;
  UnaryFn* const silu = unary_fn(Unary::kSwish);
  run.parallel_for(
      s.batch * s.groups, std::max<int64_t>(1, kStretch / size), [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const RowMoments moments = row_moments(x + g * size, size, static_cast<float>(s.epsilon));
          for (int64_t i = 0; i < width; ++i) {
            const int64_t c = g % s.groups * width + i;
            const int64_t at = g * size + i * s.pixels;
            normalize_plane(x + at, y + at, s.pixels, moments, gamma[c], beta[c]);
            if (s.silu) silu(y + at, y + at, s.pixels, 1, 0);
          }
        }
      });
}

Status run_image_norm(KernelRun& run) {
  const auto& s = run.state<ImageNormState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  Tensor* given = nullptr;
  if (s.skips && run.wants_output(1)) {
    TRY(given, run.output(1, x.dtype(), x.dims()));
  }
  std::vector<float> rooms[2];
  const float* factors[2];
  for (size_t i = 0; i < 2; ++i) {
    rooms[i].resize(static_cast<size_t>(s.channels));
    factors[i] = load_floats(run.input(i + 1), 0, s.channels, rooms[i].data());
  }
  auto* const scratch = reinterpret_cast<float*>(run.scratch());
  const float* from = s.skips || s.widens ? nullptr : x.data<float>();
  if (from == nullptr) {
    float* sum = given != nullptr ? floats_to_fill(*given, 0, scratch) : scratch;
    add_up(run, s, sum);
    from = sum;
  }
  float* to = s.widens ? scratch + x.size() : y->data<float>();
  (s.last ? normalize_last : normalize_first)(run, s, from, factors[0], factors[1], to);
  const auto store = [&](const float* values, Tensor& tensor) {
    run.parallel_for(x.size(), kStretch, [&](int64_t begin, int64_t end) {
      store_floats(values + begin, end - begin, tensor, begin);
    });
  };
  if (s.widens) store(to, *y);
  if (s.widens && given != nullptr) store(from, *given);
  return ok();
}

}  // namespace

KERNEL(group_norm) = {
    .name = "group_norm",
    .op = "GroupNorm",
    .domain = "com.microsoft",
    .supports = supports_image_norm,
    .prepare = prepare_image_norm,
    .run = run_image_norm,
};
KERNEL(skip_group_norm) = {
    .name = "skip_group_norm",
    .op = "SkipGroupNorm",
    .domain = "com.microsoft",
    .supports = supports_image_norm,
    .prepare = prepare_image_norm,
    .run = run_image_norm,
};

}  // namespace tombolo
