#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/fourier.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Result<int64_t> scalar_input(const KernelContext& context, size_t index, const char* name) {
  TRY(const std::vector<int64_t> values, context.input_ints(index));
  if (values.size() != 1) return context.error(std::string(name) + " must be a scalar");
  if (values[0] < 1)
    return context.error(std::string(name) + " is " + std::to_string(values[0]) +
                         ", must be at least 1");
  return values[0];
}

Status run_stft(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  // Two axes are a real signal as well: PyTorch's exporter writes them, and others run them.
  if (x->rank() != 2 && (x->rank() != 3 || (x->dim(2) != 1 && x->dim(2) != 2)))
    return context.error("signal must be [batch, length] or [batch, length, 1 or 2], is " +
                         to_string(*x));
  TRY(const int64_t step, scalar_input(context, 1, "frame_step"));
  TRY(Tensor window, optional_as<double>(context, 2));
  if (!absent(window) && window.rank() != 1)
    return context.error("window must have rank 1, is " + to_string(window));
  int64_t length = absent(window) ? x->dim(1) : window.dim(0);
  if (context.has_input(3)) {
    TRY(length, scalar_input(context, 3, "frame_length"));
    if (!absent(window)) CHECK_OK(check_dims(context, "window", window, {{length}}));
  }
  const int64_t signal = x->dim(1), parts = x->rank() == 2 ? 1 : x->dim(2);
  if (length < 1 || length > signal)
    return context.error("frame_length is " + std::to_string(length) + ", the signal has " +
                         std::to_string(signal) + " samples");
  const int64_t frames = (signal - length) / step + 1;
  const bool onesided = context.attributes.get_int("onesided", 1) != 0;
  const int64_t bins = onesided ? length / 2 + 1 : length;
  TRY(Tensor in, as<double>(context, *x));
  TRY(Tensor y, context.allocate(DType::kFloat64, {{x->dim(0), frames, bins, 2}}));
  if (y.size() != 0) {
    CHECK_OK(context.host.reserve(Fourier::memory(length)));
    Fourier transform(length, false);
    std::vector<std::complex<double>> frame(static_cast<size_t>(length));
    double* to = y.data<double>();
    for (int64_t n = 0; n < x->dim(0) * frames; ++n) {
      const double* from = in.data<double>() + (n / frames * signal + n % frames * step) * parts;
      for (int64_t i = 0; i < length; ++i) {
        const double weight = absent(window) ? 1 : window.data<double>()[i];
        frame[static_cast<size_t>(i)] = {from[i * parts] * weight,
                                         parts == 2 ? from[i * parts + 1] * weight : 0};
      }
      transform.run(frame.data());
      for (int64_t i = 0; i < bins; ++i, to += 2) {
        to[0] = frame[static_cast<size_t>(i)].real();
        to[1] = frame[static_cast<size_t>(i)].imag();
      }
    }
  }
  return give(context, 0, x->dtype(), std::move(y));
}

}  // namespace

namespace {
Status infer_stft(InferContext& context) {
  const SymShape* signal = context.shape(0);
  const bool onesided = context.attributes.get_int("onesided", 1) != 0;
  SymDim length;
  if (context.has_input(3)) {
    if (const auto given = scalar_of(context, 3)) length = *given;
  } else if (const SymShape* window = context.shape(2)) {
    if (window->size() == 1) length = (*window)[0];
  }
  SymShape out(4);
  out[3] = 2;
  out[2] = onesided ? floor_div(length, SymDim(2)) + 1 : length;
  const auto step = scalar_of(context, 1);
  if (signal != nullptr && signal->size() >= 2) {
    out[0] = (*signal)[0];
    if (step && step->constant() != 0) out[1] = floor_div((*signal)[1] - length, *step) + 1;
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(STFT) = {
    .name = "STFT",
    .doc = "Fourier transform of overlapping windowed frames",
    .versions = {17},
    .inputs =
        {
            {"signal", "T1"},
            {"frame_step", "T2"},
            {"window", "T1", kOptional},
            {"frame_length", "T2", kOptional},
        },
    .outputs = {{"output", "T1"}},
    .attributes = {{"onesided", 1}},
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
    .infer = infer_stft,
    .reference = run_stft,
};

}  // namespace tombolo::ops
