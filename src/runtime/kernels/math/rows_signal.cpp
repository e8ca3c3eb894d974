// DFT and STFT, Rfft and Irfft of com.microsoft, of float32 and float64, computed in double as the
// reference does: eight lines at a time, so that vectors run across them.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/fft.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr int64_t kLongest = int64_t{1} << 20;  ///< longer ones count their memory: the reference
constexpr int64_t kSignals = 8;

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

/// Elements [0, out_length) of line `line` of `signals`, from the transform in re and im.
template <typename Put>
void take_apart(const SignalState& s, const double* re, const double* im, int64_t signals,
                int64_t line, int64_t count, Put&& put) {
  if (!s.pairs) {
    for (int64_t i = 0; i < count; ++i) put(i, re[i * signals + line], im[i * signals + line]);
    return;
  }
  const int64_t half = s.length / 2;
  const auto at = [&](const double* x, int64_t k) { return x[k % half * signals + line]; };
  for (int64_t i = 0; i < count; ++i) {
    // The spectrum of a real line: its second half is the conjugate of the first.
    const int64_t k = i <= half ? i : s.length - i;
    const double zr = at(re, k), zi = at(im, k), cr = at(re, half - k), ci = -at(im, half - k);
    const double er = (zr + cr) / 2, ei = (zi + ci) / 2;        // of the even elements
    const double odd_r = (zi - ci) / 2, odd_i = (cr - zr) / 2;  // of the odd ones
    const auto p = static_cast<size_t>(k);
    const double x = er + odd_r * s.cosine[p] + odd_i * s.sine[p];
    const double y = ei + odd_i * s.cosine[p] - odd_r * s.sine[p];
    put(i, x, i <= half ? y : -y);
  }
}

/// Transforms all lines: fill(line, re, im, signals, j) puts line `line` at place j, give() takes
/// it from there.
template <typename Fill, typename Give>
void transform(const KernelRun& run, const SignalState& s, Fill&& fill, Give&& give) {
  const int64_t n = s.plan.length();
  const int64_t signals = n * kSignals <= int64_t{1} << 20 ? std::min(kSignals, s.lines) : 1;
  const int64_t blocks = (s.lines + signals - 1) / signals;
  const size_t numbers = static_cast<size_t>(2 * n * signals) + s.plan.work_doubles(signals);
  run.parallel_for(
      blocks, std::max<int64_t>(1, (1 << 12) / (n * signals)), [&](int64_t begin, int64_t end) {
        auto* re = reinterpret_cast<double*>(thread_floats(1, 2 * numbers));
        double *im = re + n * signals, *work = im + n * signals;
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * signals, count = std::min(signals, s.lines - first);
          for (int64_t j = 0; j < count; ++j) fill(first + j, re, im, signals, j);
          for (int64_t j = count; j < signals; ++j)
            for (int64_t i = 0; i < n; ++i) re[i * signals + j] = im[i * signals + j] = 0;
          if (s.inverse)
            s.plan.run(im, re, work, signals);
          else
            s.plan.run(re, im, work, signals);
          for (int64_t j = 0; j < count; ++j) give(first + j, re, im, signals, j);
        }
      });
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
  const auto fill = [&](int64_t line, double* re, double* im, int64_t signals, int64_t j) {
    const T* x = from + (line / s.inner * s.given * s.inner + line % s.inner) * s.parts;
    const int64_t step = s.inner * s.parts, present = std::min(s.given, s.length);
    const auto put = [&](int64_t i, double real, double imaginary) {
      re[i * signals + j] = real;
      im[i * signals + j] = imaginary;
    };
    if (s.pairs) {
      const auto at = [&](int64_t i) {
        return i < present ? static_cast<double>(x[i * step]) : 0.0;
      };
      for (int64_t i = 0; i < s.length / 2; ++i) put(i, at(2 * i), at(2 * i + 1));
      return;
    }
    const auto number = [&](int64_t i, double sign) {
      const bool inside = i < s.given;
      return std::pair(inside ? static_cast<double>(x[i * step]) : 0.0,
                       inside && s.parts == 2 ? sign * static_cast<double>(x[i * step + 1]) : 0.0);
    };
    if (s.half) {
      // The inverse of a one-sided spectrum: its other half is the conjugate of the first.
      for (int64_t i = 0; i < s.length; ++i) {
        const auto [real, imaginary] = i <= s.length / 2 ? number(i, 1) : number(s.length - i, -1);
        put(i, real, i == 0 || 2 * i == s.length ? 0 : imaginary);
      }
      return;
    }
    for (int64_t i = 0; i < present; ++i) {
      const auto [real, imaginary] = number(i, 1);
      put(i, real, imaginary);
    }
    for (int64_t i = present; i < s.length; ++i) put(i, 0, 0);
  };
  const auto give = [&](int64_t line, const double* re, const double* im, int64_t signals,
                        int64_t j) {
    T* out = to + (line / s.inner * s.out_length * s.inner + line % s.inner) * s.out_parts;
    take_apart(s, re, im, signals, j, s.out_length, [&](int64_t i, double real, double imaginary) {
      T* part = out + i * s.inner * s.out_parts;
      part[0] = static_cast<T>(real * scale);
      if (s.out_parts == 2) part[1] = static_cast<T>(imaginary * scale);
    });
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
  if (dims.size() != 3 || dims[0] < 1 || (dims[2] != 1 && dims[2] != 2)) return 0;
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
  auto state = std::make_unique<SignalState>(length, dims[2] == 1 && length % 2 == 0);
  state->given = dims[1];
  state->parts = dims[2];
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
  const auto fill = [&](int64_t line, double* re, double* im, int64_t signals, int64_t j) {
    const T* x = from + (line / s.frames * s.given + line % s.frames * s.hop) * s.parts;
    const auto weight = [&](int64_t i) {
      return window == nullptr ? 1.0 : static_cast<double>(window[i]);
    };
    if (s.pairs) {
      for (int64_t i = 0; i < s.length / 2; ++i) {
        re[i * signals + j] = static_cast<double>(x[2 * i]) * weight(2 * i);
        im[i * signals + j] = static_cast<double>(x[2 * i + 1]) * weight(2 * i + 1);
      }
      return;
    }
    for (int64_t i = 0; i < s.length; ++i) {
      re[i * signals + j] = static_cast<double>(x[i * s.parts]) * weight(i);
      im[i * signals + j] = s.parts == 2 ? static_cast<double>(x[i * 2 + 1]) * weight(i) : 0.0;
    }
  };
  const auto give = [&](int64_t line, const double* re, const double* im, int64_t signals,
                        int64_t j) {
    T* out = to + line * s.out_length * 2;
    take_apart(s, re, im, signals, j, s.out_length, [&](int64_t i, double real, double imaginary) {
      out[2 * i] = static_cast<T>(real);
      out[2 * i + 1] = static_cast<T>(imaginary);
    });
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
