// DFT and STFT, Rfft and Irfft of com.microsoft, of float32 and float64, computed in double as the
// reference does: eight lines at a time, so that vectors run across them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/fft.h"
#include "runtime/kernels/math/fft_lines.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr int64_t kLongest = int64_t{1} << 20;  ///< longer ones count their memory: the reference

struct SignalState final : KernelState {
  SignalState(int64_t size, bool real_pairs)
      : plan(real_pairs ? size / 2 : size), length(size), pairs(real_pairs) {
    if (!pairs) return;
    // What takes the transform of even + i odd elements apart.
    for (int64_t k = 0; k <= size / 2; ++k) {
      const double angle = 6.28318530717958647692528676655900577 * static_cast<double>(k) /
                           static_cast<double>(size);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  }
  FftPlan plan;
  int64_t length;
  bool pairs;  ///< real lines of even length: half as many complex numbers
  std::vector<double> cosine, sine;
  // How lines lie: element i of line n at ((n / inner * given + i) * inner + n % inner) * parts.
  int64_t lines = 0, inner = 1, given = 0, parts = 1, out_length = 0, out_parts = 2;
  bool inverse = false, half = false;  ///< half: the input of an inverse is one-sided
  Dims output;
  // STFT: frames of a signal of `given` samples.
  int64_t frames = 0, hop = 0;
};

/// Lines that are transformed together: `signals` of them, of which `count` are asked for.
struct SignalBlock {
  int64_t first, count, signals;
  FftRows rows;
};

/// Fewer lines go one by one: vectors across them would hold little.
constexpr int64_t kFewSignals = 4;

/// Transforms all lines: fill(block) puts lines into rows, give(block) takes them from there.
template <typename Fill, typename Give>
void transform(const KernelRun& run, const SignalState& s, Fill&& fill, Give&& give) {
  const int64_t n = s.plan.length();
  // Eight long lines leave the near caches, and a line alone has vectors along it: by steps of 4
  // and 8 soon no slower. Lines whose elements lie apart share what they read.
  const bool power = std::has_single_bit(static_cast<uint64_t>(n));
  const int64_t longest = s.inner > 1 ? int64_t{1} << 17 : power ? 256 : int64_t{1} << 13;
  const int64_t most = s.lines >= kFewSignals && s.plan.stepped() <= longest ? kFftSignals : 1;
  const int64_t blocks = (s.lines + most - 1) / most;
  const size_t numbers = static_cast<size_t>(2 * n * most) + s.plan.work_doubles(most);
  run.parallel_for(blocks, std::max<int64_t>(1, (1 << 12) / (n * most)),
                   [&](int64_t begin, int64_t end) {
                     auto* room = reinterpret_cast<double*>(thread_floats(1, 2 * numbers));
                     const auto some = [&](int64_t first, int64_t count, int64_t signals) {
                       double *re = room, *im = re + n * signals, *work = im + n * signals;
                       SignalBlock block = {first, count, signals, FftRows{re, im}};
                       fill(block);
                       if (s.inverse)
                         s.plan.run(im, re, work, signals);
                       else
                         s.plan.run(re, im, work, signals);
                       block.rows = FftRows{re, im};
                       give(block);
                     };
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t first = i * most, count = std::min(most, s.lines - first);
                       if (most > 1 && count >= kFewSignals)
                         some(first, count, most);
                       else
                         for (int64_t j = 0; j < count; ++j) some(first + j, 1, 1);
                     }
                   });
}

/// Rows of lines whose elements lie `step` apart, number by number.
template <typename T>
void fill_apart(const SignalState& s, const T* const* lines, int64_t step, int64_t elements,
                const SignalBlock& block) {
  const auto [re, im] = block.rows;
  for (int64_t i = 0; i < elements; ++i)
    for (int64_t j = 0; j < block.signals; ++j) {
      const T* x = lines[j] + i * step;
      if (s.pairs) {
        (i % 2 == 0 ? re : im)[i / 2 * block.signals + j] = static_cast<double>(x[0]);
        continue;
      }
      re[i * block.signals + j] = static_cast<double>(x[0]);
      if (s.parts == 2) im[i * block.signals + j] = static_cast<double>(x[1]);
    }
}

/// What the numbers of a block leave of its rows: zeros and mirrored halves.
void fill_rest(const SignalState& s, int64_t elements, const SignalBlock& block) {
  const auto [re, im] = block.rows;
  const int64_t n = s.plan.length(), row = block.signals;
  const auto clear = [&](double* part, int64_t from) {
    if (from < n) std::fill_n(part + from * row, (n - from) * row, 0.0);
  };
  if (s.pairs) {
    clear(re, (elements + 1) / 2);
    clear(im, elements / 2);
    return;
  }
  clear(re, elements);
  clear(im, s.parts == 2 ? elements : 0);
  if (!s.half) return;
  // The inverse of a one-sided spectrum: its other half is the conjugate of the first.
  std::fill_n(im, row, 0.0);
  if (n % 2 == 0) std::fill_n(im + n / 2 * row, row, 0.0);
  for (int64_t i = n / 2 + 1; i < n; ++i)
    for (int64_t j = 0; j < row; ++j) {
      re[i * row + j] = re[(n - i) * row + j];
      im[i * row + j] = -im[(n - i) * row + j];
    }
}

/// Elements [0, out_length) of lines whose elements lie `step` apart, number by number.
template <typename T>
void give_apart(const SignalState& s, double scale, T* const* lines, int64_t step,
                const SignalBlock& block) {
  const int64_t half = s.length / 2, row = block.signals;
  for (int64_t j = 0; j < block.count; ++j) {
    const double *re = block.rows.re + j, *im = block.rows.im + j;
    for (int64_t i = 0; i < s.out_length; ++i) {
      T* const to = lines[j] + i * step;
      if (!s.pairs) {
        to[0] = static_cast<T>(re[i * row] * scale);
        if (s.out_parts == 2) to[1] = static_cast<T>(im[i * row] * scale);
        continue;
      }
      // The spectrum of a real line: its second half is the conjugate of the first.
      const int64_t k = i <= half ? i : s.length - i;
      const int64_t at = k % half * row, other = (half - k) % half * row;
      const double er = (re[at] + re[other]) / 2, ei = (im[at] - im[other]) / 2;  // even elements
      const double odd_r = (im[at] + im[other]) / 2, odd_i = (re[other] - re[at]) / 2;  // odd ones
      const auto p = static_cast<size_t>(k);
      const double y = ei + odd_i * s.cosine[p] - odd_r * s.sine[p];
      to[0] = static_cast<T>(er + odd_r * s.cosine[p] + odd_i * s.sine[p]);
      to[1] = static_cast<T>(i <= half ? y : -y);
    }
  }
}

template <typename T>
void give_lines(const SignalState& s, double scale, T* const* lines, const SignalBlock& block) {
  const FftPairs pairs = {s.length, s.cosine.data(), s.sine.data()};
  if (block.signals == kFftSignals)
    return write_fft_lines(block.rows, s.pairs ? &pairs : nullptr, s.out_length, s.out_parts == 2,
                           scale, block.count, lines);
  write_fft_line(block.rows, s.pairs ? &pairs : nullptr, s.out_length, s.out_parts == 2, scale,
                 lines[0]);
}

/// Rows of lines whose numbers lie side by side.
template <typename T>
void fill_lines(const SignalState& s, const T* const* lines, int64_t elements, const T* window,
                const SignalBlock& block) {
  const bool apart = s.pairs || s.parts == 2;
  if (block.signals == kFftSignals)
    read_fft_lines(lines, elements * s.parts, apart, window, block.rows);
  else
    read_fft_line(lines[0], elements * s.parts, apart, window, block.rows);
}

bool constant_scalar(const KernelQuery& q, size_t index, int64_t& value) {
  const Tensor* tensor = q.constant(index);
  if (tensor == nullptr || tensor->size() != 1 || !is_integer(tensor->dtype())) return false;
  value = tensor->get_int64(0);
  return true;
}

bool is_wide_float(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

/// What the shapes say, in a state without a plan; length 0 where the reference must answer.
struct DftShape {
  int64_t length = 0, given = 0, axis = 0;
  bool inverse = false, half = false, pairs = false;
};
DftShape dft_shape(const KernelQuery& q) {
  DftShape none, shape;
  if (active_isa() == Isa::kScalar || q.inputs.empty() || !is_wide_float(q.dtype(0))) return none;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  if (rank < 2 || q.dims(0).back() < 1 || q.dims(0).back() > 2) return none;
  if (element_count(q.dims(0)) < 1) return none;
  shape.axis = q.opset < 20 ? q.attributes.get_int("axis", 1) : -2;
  if (q.opset >= 20 && q.has_input(2) && !constant_scalar(q, 2, shape.axis)) return none;
  if (shape.axis < 0) shape.axis += rank;
  if (shape.axis < 0 || shape.axis >= rank - 1) return none;
  shape.inverse = q.attributes.get_int("inverse", 0) != 0;
  const bool onesided = q.attributes.get_int("onesided", 0) != 0;
  shape.half = onesided && shape.inverse;
  shape.given = q.dims(0)[static_cast<size_t>(shape.axis)];
  shape.length = shape.half ? 2 * (shape.given - 1) : shape.given;
  if (q.has_input(1) && !constant_scalar(q, 1, shape.length)) return none;
  if (shape.length < 1 || shape.length > kLongest) return none;
  shape.pairs = !shape.inverse && q.dims(0).back() == 1 && shape.length % 2 == 0;
  return shape;
}

bool supports_dft(const KernelQuery& q) { return dft_shape(q).length > 0; }

Result<std::unique_ptr<KernelState>> prepare_dft(const PrepareContext& q) {
  const DftShape shape = dft_shape(q);
  auto state = std::make_unique<SignalState>(shape.length, shape.pairs);
  const auto at = static_cast<size_t>(shape.axis);
  state->given = shape.given;
  state->inverse = shape.inverse;
  state->half = shape.half;
  state->parts = q.dims(0).back();
  const bool onesided = q.attributes.get_int("onesided", 0) != 0;
  state->out_length = onesided && !shape.inverse ? shape.length / 2 + 1 : shape.length;
  state->out_parts = shape.half ? 1 : 2;
  state->output = Dims(q.dims(0));
  state->output[at] = state->out_length;
  state->output.back() = state->out_parts;
  state->inner = element_count(q.dims(0).subspan(at + 1, q.dims(0).size() - at - 2));
  state->lines = element_count(q.dims(0).first(at)) * state->inner;
  return state;
}

/// Rfft and Irfft of com.microsoft: lines along the last axis of numbers, one-sided spectra, whose
/// parts are an axis of the complex side alone.
DftShape rfft_shape(const KernelQuery& q) {
  DftShape none, shape;
  if (active_isa() == Isa::kScalar || q.inputs.empty() || !is_wide_float(q.dtype(0)) ||
      q.attributes.get_int("signal_ndim", 1) != 1 || q.dims(0).empty() ||
      element_count(q.dims(0)) < 1)
    return none;
  shape.inverse = shape.half = q.node.op_type() == "Irfft";
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  shape.axis = shape.inverse ? rank - 2 : rank - 1;
  if (shape.axis < 0 || (shape.inverse && q.dims(0).back() != 2)) return none;
  shape.given = q.dims(0)[static_cast<size_t>(shape.axis)];
  shape.length = shape.inverse ? 2 * (shape.given - 1) : shape.given;
  if (shape.length < 1 || shape.length > kLongest) return none;
  shape.pairs = !shape.inverse && shape.length % 2 == 0;
  return shape;
}

bool supports_rfft(const KernelQuery& q) { return rfft_shape(q).length > 0; }

Result<std::unique_ptr<KernelState>> prepare_rfft(const PrepareContext& q) {
  const DftShape shape = rfft_shape(q);
  auto state = std::make_unique<SignalState>(shape.length, shape.pairs);
  state->given = shape.given;
  state->inverse = state->half = shape.inverse;
  state->parts = shape.inverse ? 2 : 1;
  state->out_length = shape.inverse ? shape.length : shape.length / 2 + 1;
  state->out_parts = shape.inverse ? 1 : 2;
  state->output = Dims(q.dims(0).first(static_cast<size_t>(shape.axis)));
  state->lines = element_count(state->output);
  state->output.push_back(state->out_length);
  if (!shape.inverse) state->output.push_back(2);
  return state;
}

template <typename T>
Status do_dft(KernelRun& run, Tensor& y) {
  const auto& s = run.state<SignalState>();
  const T* from = run.data<T>(0);
  T* to = y.data<T>();
  const double scale = s.inverse ? 1 / static_cast<double>(s.length) : 1;
  const auto at = [&](int64_t line, int64_t elements) {
    return line / s.inner * elements * s.inner + line % s.inner;
  };
  // Whether the lines of a block are neighbours, so that a row of them lies in one piece.
  const auto together = [&](const SignalBlock& block) {
    return block.signals == kFftSignals &&
           block.first / s.inner == (block.first + block.count - 1) / s.inner;
  };
  const int64_t present = std::min(s.given, s.half ? s.length / 2 + 1 : s.length);
  const auto fill = [&](const SignalBlock& block) {
    const T* lines[kFftSignals];
    for (int64_t j = 0; j < block.signals; ++j)
      lines[j] = from + at(block.first + std::min(j, block.count - 1), s.given) * s.parts;
    if (s.inner == 1)
      fill_lines<T>(s, lines, present, nullptr, block);
    else if (together(block))
      read_fft_neighbours(lines[0], s.inner * s.parts, present, s.parts == 2, s.pairs, block.count,
                          block.rows);
    else
      fill_apart(s, lines, s.inner * s.parts, present, block);
    fill_rest(s, present, block);
  };
  const auto give = [&](const SignalBlock& block) {
    T* lines[kFftSignals];
    for (int64_t j = 0; j < block.count; ++j)
      lines[j] = to + at(block.first + j, s.out_length) * s.out_parts;
    if (s.inner == 1) return give_lines(s, scale, lines, block);
    if (!together(block)) return give_apart(s, scale, lines, s.inner * s.out_parts, block);
    const FftPairs pairs = {s.length, s.cosine.data(), s.sine.data()};
    write_fft_neighbours(block.rows, s.pairs ? &pairs : nullptr, s.out_length, s.out_parts == 2,
                         scale, block.count, lines[0], s.inner * s.out_parts);
  };
  transform(run, s, fill, give);
  return ok();
}

Status run_dft(KernelRun& run) {
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, run.state<SignalState>().output));
  return dtype == DType::kFloat32 ? do_dft<float>(run, *y) : do_dft<double>(run, *y);
}

/// The frame's length; 0 where the reference must answer.
int64_t frame_length(const KernelQuery& q, int64_t& hop) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || !is_wide_float(q.dtype(0))) return 0;
  const auto dims = q.dims(0);
  if (dims.size() < 2 || dims.size() > 3 || dims[0] < 1) return 0;
  if (dims.size() == 3 && dims[2] != 1 && dims[2] != 2) return 0;
  if (!constant_scalar(q, 1, hop) || hop < 1) return 0;
  int64_t length = dims[1];
  if (q.has_input(2)) {
    if (q.dtype(2) != q.dtype(0) || q.dims(2).size() != 1) return 0;
    length = q.dims(2)[0];
  }
  if (q.has_input(3)) {
    if (!constant_scalar(q, 3, length)) return 0;
    if (q.has_input(2) && q.dims(2)[0] != length) return 0;
  }
  return length < 1 || length > dims[1] || length > kLongest ? 0 : length;
}

bool supports_stft(const KernelQuery& q) {
  int64_t hop;
  return frame_length(q, hop) > 0;
}

Result<std::unique_ptr<KernelState>> prepare_stft(const PrepareContext& q) {
  int64_t hop = 1;
  const int64_t length = frame_length(q, hop);
  const auto dims = q.dims(0);
  const int64_t parts = dims.size() == 2 ? 1 : dims[2];
  auto state = std::make_unique<SignalState>(length, parts == 1 && length % 2 == 0);
  state->given = dims[1];
  state->parts = parts;
  state->hop = hop;
  state->frames = (dims[1] - length) / hop + 1;
  state->lines = dims[0] * state->frames;
  const bool onesided = q.attributes.get_int("onesided", 1) != 0;
  state->out_length = onesided ? length / 2 + 1 : length;
  state->output = {dims[0], state->frames, state->out_length, 2};
  return state;
}

template <typename T>
Status do_stft(KernelRun& run, Tensor& y) {
  const auto& s = run.state<SignalState>();
  const T* from = run.data<T>(0);
  const T* window = run.has_input(2) ? run.data<T>(2) : nullptr;
  T* to = y.data<T>();
  // A weight for each number.
  std::vector<T> weights;
  if (window != nullptr && s.parts == 2) {
    for (int64_t i = 0; i < s.length; ++i) weights.insert(weights.end(), 2, window[i]);
    window = weights.data();
  }
  const auto fill = [&](const SignalBlock& block) {
    const T* lines[kFftSignals];
    for (int64_t j = 0; j < block.signals; ++j) {
      const int64_t line = block.first + std::min(j, block.count - 1);
      lines[j] = from + (line / s.frames * s.given + line % s.frames * s.hop) * s.parts;
    }
    fill_lines(s, lines, s.length, window, block);
    fill_rest(s, s.length, block);
  };
  const auto give = [&](const SignalBlock& block) {
    T* lines[kFftSignals];
    for (int64_t j = 0; j < block.count; ++j) lines[j] = to + (block.first + j) * s.out_length * 2;
    give_lines<T>(s, 1, lines, block);
  };
  transform(run, s, fill, give);
  return ok();
}

Status run_stft(KernelRun& run) {
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, run.state<SignalState>().output));
  return dtype == DType::kFloat32 ? do_stft<float>(run, *y) : do_stft<double>(run, *y);
}

}  // namespace

KERNEL(dft) = {
    .name = "dft",
    .op = "DFT",
    .supports = supports_dft,
    .prepare = prepare_dft,
    .run = run_dft,
    .values = 0b110,
};
KERNEL(rfft) = {
    .name = "rfft",
    .op = "Rfft",
    .domain = "com.microsoft",
    .supports = supports_rfft,
    .prepare = prepare_rfft,
    .run = run_dft,
};
KERNEL(irfft) = {
    .name = "irfft",
    .op = "Irfft",
    .domain = "com.microsoft",
    .supports = supports_rfft,
    .prepare = prepare_rfft,
    .run = run_dft,
};
KERNEL(stft) = {
    .name = "stft",
    .op = "STFT",
    .supports = supports_stft,
    .prepare = prepare_stft,
    .run = run_stft,
    .values = 0b1010,
};

}  // namespace tombolo
