// QLinearAffine of ai.tombolo: a normalisation, or factors and addends, of each channel between
// codes.

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/quantize.h"

namespace tombolo {
namespace {

constexpr size_t kFactor = 1, kShift = 2, kCodeZero = 3;

struct AffineState final : KernelState {
  bool last = false;
  int64_t rows = 1, n = 1;  ///< of neighbours: a channel's plane, or channels over and over
  int64_t elements = 0, channels = 1;
  std::vector<float> factor, shift;
  int32_t low = 0, high = 255;
};

bool supports_affine(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 4 || q.dims(0).size() < 2 ||
      q.constant(kFactor) == nullptr || q.constant(kShift) == nullptr || !is_byte(q.dtype(0)) ||
      !is_byte(q.dtype(kCodeZero)) || element_count(q.dims(kCodeZero)) != 1)
    return false;
  const bool last = q.attributes.get_int("channels_last", 0) != 0;
  const int64_t channels = last ? q.dims(0).back() : q.dims(0)[1];
  return element_count(q.dims(kFactor)) == channels && element_count(q.dims(kShift)) == channels;
}

Result<std::unique_ptr<KernelState>> prepare_affine(const PrepareContext& context) {
  auto state = std::make_unique<AffineState>();
  AffineState& s = *state;
  const auto dims = context.dims(0);
  s.last = context.attributes.get_int("channels_last", 0) != 0;
  s.channels = s.last ? dims.back() : dims[1];
  s.elements = element_count(dims);
  // Short rows of channels are joined.
  constexpr int64_t kLong = 1024;
  const int64_t repeats =
      s.last ? std::max<int64_t>(1, kLong / std::max<int64_t>(1, s.channels)) : 1;
  s.n = s.last ? repeats * s.channels : element_count(dims.subspan(2));
  s.rows = s.n == 0 ? 0 : (s.elements + s.n - 1) / s.n;
  const bool y_signed = context.dtype(kCodeZero) == DType::kInt8;
  s.low = static_cast<int32_t>(context.attributes.get_int("low", y_signed ? -128 : 0));
  s.high = static_cast<int32_t>(context.attributes.get_int("high", y_signed ? 127 : 255));
  Tensor copy;
  for (const auto& [input, to] : {std::pair{kFactor, &s.factor}, {kShift, &s.shift}}) {
    const float* numbers = context.aligned_constant(input, copy).data<float>();
    for (int64_t i = 0; i < repeats; ++i) to->insert(to->end(), numbers, numbers + s.channels);
  }
  return state;
}

Status run_affine(KernelRun& run) {
  const auto& s = run.state<AffineState>();
  const Tensor& zero = run.input(kCodeZero);
  TRY(Tensor * y, run.output(0, zero.dtype(), run.input(0).dims()));
  CodeAffine affine;
  affine.x_signed = run.input(0).dtype() == DType::kInt8;
  affine.y_signed = zero.dtype() == DType::kInt8;
  affine.zero = static_cast<int32_t>(zero.get_int64(0));
  affine.low = s.low;
  affine.high = s.high;
  const auto* x = run.data<uint8_t>(0);
  auto* out = y->data<uint8_t>();
  run.parallel_for(s.rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.n)),
                   [&](int64_t begin, int64_t end) {
                     CodeAffine own = affine;
                     for (int64_t r = begin; r < end; ++r) {
                       const int64_t first = s.last ? 0 : r % s.channels, at = r * s.n;
                       own.factor = s.factor.data() + first;
                       own.shift = s.shift.data() + first;
                       affine_row(own, s.last, x + at, std::min(s.n, s.elements - at), out + at);
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(tombolo_qlinear_affine) = {
    .name = "tombolo_qlinear_affine",
    .op = "QLinearAffine",
    .domain = "ai.tombolo",
    .supports = supports_affine,
    .prepare = prepare_affine,
    .run = run_affine,
};

}  // namespace tombolo
