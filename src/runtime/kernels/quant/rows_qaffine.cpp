// QLinearAffine and QLinearInstanceNormalization of ai.tombolo: factors and shifts of channels
// between codes, which are constant, or follow from what each image's channels sum to.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/codes.h"
#include "runtime/kernels/quant/quantize.h"

namespace tombolo {
namespace {

constexpr size_t kFactor = 1, kShift = 2, kCodeZero = 3;

/// Codes as rows: of a channel's plane, or of all channels over and over.
struct ChannelRows {
  bool last = false;
  int64_t channels = 1, repeats = 1;
  int64_t n = 1;  ///< of a row
  int64_t elements = 0;

  int64_t rows() const { return n == 0 ? 0 : (elements + n - 1) / n; }
  /// Numbers of channels as rows read them.
  int64_t numbers() const { return channels * repeats; }
};

ChannelRows channel_rows(std::span<const int64_t> dims, bool last) {
  constexpr int64_t kLong = 1024;  // shorter rows of channels are joined
  ChannelRows rows;
  rows.last = last;
  rows.channels = last ? dims.back() : dims[1];
  rows.elements = element_count(dims);
  if (last) rows.repeats = std::max<int64_t>(1, kLong / std::max<int64_t>(1, rows.channels));
  rows.n = last ? rows.numbers() : element_count(dims.subspan(2));
  return rows;
}

struct ChannelState final : KernelState {
  ChannelRows rows;
  int64_t images = 1;
  std::vector<float> factor, shift;  ///< ChannelRows::numbers() of them, where they are constant
  double x_step = 1, y_step = 1, epsilon = 0;
  CodeLimits limits;
};

bool supports_channels(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 4 || q.dims(0).size() < 2 ||
      q.constant(kFactor) == nullptr || q.constant(kShift) == nullptr || !is_byte(q.dtype(0)) ||
      !is_byte(q.dtype(kCodeZero)) || element_count(q.dims(kCodeZero)) != 1)
    return false;
  const bool last = q.attributes.get_int("channels_last", 0) != 0;
  const int64_t channels = last ? q.dims(0).back() : q.dims(0)[1];
  return element_count(q.dims(kFactor)) == channels && element_count(q.dims(kShift)) == channels;
}

Result<std::unique_ptr<KernelState>> prepare_channels(const PrepareContext& context) {
  auto state = std::make_unique<ChannelState>();
  ChannelState& s = *state;
  s.rows = channel_rows(context.dims(0), context.attributes.get_int("channels_last", 0) != 0);
  s.limits = read_limits(context, context.dtype(kCodeZero));
  Tensor copy;
  for (const auto& [input, to] : {std::pair{kFactor, &s.factor}, {kShift, &s.shift}}) {
    const float* numbers = context.aligned_constant(input, copy).data<float>();
    for (int64_t i = 0; i < s.rows.repeats; ++i)
      to->insert(to->end(), numbers, numbers + s.rows.channels);
  }
  return state;
}

/// What y has of its own.
CodeAffine affine_of(const KernelRun& run, const ChannelState& s) {
  CodeAffine affine = {};
  affine.x_signed = run.input(0).dtype() == DType::kInt8;
  affine.y_signed = s.limits.type == DType::kInt8;
  affine.zero = first_code(run.input(kCodeZero));
  affine.low = s.limits.low;
  affine.high = s.limits.high;
  return affine;
}

void run_rows(const KernelRun& run, const ChannelRows& rows, const CodeAffine& affine,
              const uint8_t* x, uint8_t* y) {
  run.parallel_for(rows.rows(), std::max<int64_t>(1, 32768 / std::max<int64_t>(1, rows.n)),
                   [&](int64_t begin, int64_t end) {
                     CodeAffine own = affine;
                     for (int64_t r = begin; r < end; ++r) {
                       const int64_t first = rows.last ? 0 : r % rows.channels, at = r * rows.n;
                       own.factor = affine.factor + first;
                       own.shift = affine.shift + first;
                       affine_row(own, rows.last, x + at, std::min(rows.n, rows.elements - at),
                                  y + at);
                     }
                   });
}

Status run_affine(KernelRun& run) {
  const auto& s = run.state<ChannelState>();
  TRY(Tensor * y, run.output(0, s.limits.type, run.input(0).dims()));
  CodeAffine affine = affine_of(run, s);
  affine.factor = s.factor.data();
  affine.shift = s.shift.data();
  run_rows(run, s.rows, affine, run.data<uint8_t>(0), y->data<uint8_t>());
  return ok();
}

/// Channels of an image that a code moves by so many steps that floats do not hold their sums:
/// those of hardly any variance. `factor` and `shift` are as many as there are channels.
void run_steep(const ChannelState& s, const CodeAffine& affine, const std::vector<double>& factor,
               const std::vector<double>& shift, const uint8_t* x, uint8_t* y) {
  constexpr double kSteep = 4096;
  const int64_t channels = s.rows.channels, pixels = s.rows.elements / channels;
  for (int64_t c = 0; c < channels; ++c) {
    const double k = factor[static_cast<size_t>(c)], b = shift[static_cast<size_t>(c)];
    if (!(std::fabs(k) > kSteep)) continue;
    uint8_t table[256];
    for (int code = 0; code < 256; ++code) {
      const int number = affine.x_signed ? static_cast<int8_t>(code) : code;
      const double least = affine.low - affine.zero, greatest = affine.high - affine.zero;
      const double result = std::nearbyint(std::clamp(number * k + b, least, greatest));
      table[code] = static_cast<uint8_t>(static_cast<int32_t>(result) + affine.zero);
    }
    const int64_t step = s.rows.last ? channels : 1, first = s.rows.last ? c : c * pixels;
    for (int64_t i = 0; i < pixels; ++i) y[first + i * step] = table[x[first + i * step]];
  }
}

/// Pixels of one image whose sums a thread makes at a time.
constexpr int64_t kSummedPixels = 4096;
static_assert(kSummedPixels <= kMostSummed);

Result<std::unique_ptr<KernelState>> prepare_instance_norm(const PrepareContext& context) {
  TRY(std::unique_ptr<KernelState> state, prepare_channels(context));
  auto& s = static_cast<ChannelState&>(*state);
  const auto dims = context.dims(0);
  s.images = dims[0];
  s.rows.elements /= std::max<int64_t>(1, s.images);
  s.x_step = static_cast<double>(context.attributes.get_float("x_scale", 1));
  s.y_step = static_cast<double>(context.attributes.get_float("y_scale", 1));
  s.epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  const int64_t pixels = s.rows.elements / std::max<int64_t>(1, s.rows.channels);
  const int64_t parts = s.rows.last ? (pixels + kSummedPixels - 1) / kSummedPixels : 1;
  s.scratch_bytes = static_cast<size_t>(2 * s.rows.numbers() * 4 + 64 +
                                        2 * std::max<int64_t>(1, parts) * s.rows.channels * 8);
  return state;
}

/// The sums of an image's codes and of their squares: of each part of its pixels for each channel.
void sum_image(const KernelRun& run, const ChannelState& s, const uint8_t* x, int64_t parts,
               int64_t* sums) {
  const int64_t channels = s.rows.channels, pixels = s.rows.elements / channels;
  const bool is_signed = run.input(0).dtype() == DType::kInt8;
  std::fill_n(sums, 2 * parts * channels, int64_t{0});
  int64_t* const squares = sums + parts * channels;
  if (s.rows.last) {
    run.parallel_for(parts, std::max<int64_t>(1, 65536 / (kSummedPixels * channels)),
                     [&](int64_t begin, int64_t end) {
                       constexpr int64_t kNear =
                           16384;  // bytes that pass several times, column by column
                       const int64_t rows = std::clamp<int64_t>(kNear / channels, 1, kSummedPixels);
                       for (int64_t part = begin; part < end; ++part) {
                         const int64_t last = std::min(pixels, (part + 1) * kSummedPixels);
                         for (int64_t at = part * kSummedPixels; at < last; at += rows)
                           sum_codes(x + at * channels, is_signed, std::min(rows, last - at),
                                     channels, sums + part * channels, squares + part * channels);
                       }
                     });
    return;
  }
  run.parallel_for(channels, std::max<int64_t>(1, 65536 / pixels), [&](int64_t begin, int64_t end) {
    constexpr int64_t kColumns = 64;
    for (int64_t c = begin; c < end; ++c) {
      const uint8_t* plane = x + c * pixels;
      const int64_t whole = pixels / kColumns;
      int64_t some[kColumns] = {}, of_squares[kColumns] = {};
      for (int64_t r = 0; r < whole; r += kMostSummed)
        sum_codes(plane + r * kColumns, is_signed, std::min(kMostSummed, whole - r), kColumns, some,
                  of_squares);
      sum_codes(plane + whole * kColumns, is_signed, 1, pixels % kColumns, some, of_squares);
      for (int64_t i = 0; i < kColumns; ++i) {
        sums[c] += some[i];
        squares[c] += of_squares[i];
      }
    }
  });
}

Status run_instance_norm(KernelRun& run) {
  const auto& s = run.state<ChannelState>();
  TRY(Tensor * y, run.output(0, s.limits.type, run.input(0).dims()));
  if (s.rows.elements == 0) return ok();
  const int64_t channels = s.rows.channels, pixels = s.rows.elements / channels;
  const int64_t parts = s.rows.last ? (pixels + kSummedPixels - 1) / kSummedPixels : 1;
  auto* const factor = reinterpret_cast<float*>(run.scratch());
  auto* const shift = factor + s.rows.numbers();
  auto* const sums =
      reinterpret_cast<int64_t*>(run.scratch() + (2 * s.rows.numbers() * 4 + 63) / 64 * 64);
  CodeAffine affine = affine_of(run, s);
  affine.factor = factor;
  affine.shift = shift;
  std::vector<double> factors(static_cast<size_t>(channels)), shifts(factors.size());
  for (int64_t image = 0; image < s.images; ++image) {
    const int64_t at = image * s.rows.elements;
    sum_image(run, s, run.data<uint8_t>(0) + at, parts, sums);
    for (int64_t c = 0; c < channels; ++c) {
      int64_t sum = 0, squares = 0;
      for (int64_t part = 0; part < parts; ++part) {
        sum += sums[part * channels + c];
        squares += sums[(parts + part) * channels + c];
      }
      const auto count = static_cast<double>(pixels);
      const double mean = static_cast<double>(sum) / count;
      const double variance =
          std::max(0.0, static_cast<double>(squares) / count - mean * mean) * s.x_step * s.x_step;
      const auto i = static_cast<size_t>(c);
      factors[i] =
          static_cast<double>(s.factor[i]) * s.x_step / std::sqrt(variance + s.epsilon) / s.y_step;
      shifts[i] = static_cast<double>(s.shift[i]) / s.y_step - mean * factors[i];
      factor[c] = static_cast<float>(factors[i]);
      shift[c] = static_cast<float>(shifts[i]);
    }
    for (int64_t i = channels; i < s.rows.numbers(); ++i) {
      factor[i] = factor[i - channels];
      shift[i] = shift[i - channels];
    }
    run_rows(run, s.rows, affine, run.data<uint8_t>(0) + at, y->data<uint8_t>() + at);
    run_steep(s, affine, factors, shifts, run.data<uint8_t>(0) + at, y->data<uint8_t>() + at);
  }
  return ok();
}

}  // namespace

KERNEL(tombolo_qlinear_affine) = {
    .name = "tombolo_qlinear_affine",
    .op = "QLinearAffine",
    .domain = "ai.tombolo",
    .supports = supports_channels,
    .prepare = prepare_channels,
    .run = run_affine,
};
KERNEL(tombolo_qlinear_instance_norm) = {
    .name = "tombolo_qlinear_instance_norm",
    .op = "QLinearInstanceNormalization",
    .domain = "ai.tombolo",
    .supports = supports_channels,
    .prepare = prepare_instance_norm,
    .run = run_instance_norm,
};

}  // namespace tombolo
