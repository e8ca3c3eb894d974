// CausalConvWithState, of the standard and of com.microsoft: lines of one channel each, with what
// came before in front.

#include <algorithm>
#include <vector>

#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct CausalConvState final : KernelState {
  int64_t lines = 1, channels = 1, length = 1, taps = 1;
  bool silu = false;
};

bool plan_causal_conv(const KernelQuery& q, CausalConvState& s) {
  const auto& attributes = q.attributes;
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.inputs.size() > 4 ||
      q.dims(0).size() != 3 || q.dims(1).size() != 3 || element_count(q.dims(0)) < 1 ||
      attributes.get_int("channels_last", 0) != 0 || attributes.get_int("dilation", 1) != 1 ||
      attributes.get_int("ndim", 1) != 1 || attributes.get_int("state_window", 0) != 0)
    return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (q.has_input(i) && q.dtype(i) != DType::kFloat32) return false;
  const auto x = q.dims(0);
  s.channels = x[1];
  s.lines = x[0] * x[1];
  s.length = x[2];
  s.taps = q.dims(1)[2];
  const Text activation = attributes.get_string("activation", "none");
  s.silu = activation == "silu" || activation == "swish";
  return (s.silu || activation == "none") && s.taps >= 1 && s.taps <= 64 &&
         Dims(q.dims(1)) == Dims{s.channels, 1, s.taps} &&
         (!q.has_input(2) || Dims(q.dims(2)) == Dims{s.channels}) &&
         (!q.has_input(3) || Dims(q.dims(3)) == Dims{x[0], x[1], s.taps - 1});
}
bool supports_causal_conv(const KernelQuery& q) {
  CausalConvState state;
  return plan_causal_conv(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_causal_conv(const PrepareContext& q) {
  auto state = std::make_unique<CausalConvState>();
  plan_causal_conv(q, *state);
  return state;
}

Status run_causal_conv(KernelRun& run) {
  const auto& s = run.state<CausalConvState>();
  const Tensor& x = run.input(0);
  const int64_t lead = s.taps - 1;
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  float* present = nullptr;
  if (run.wants_output(1)) {
    const int64_t dims[] = {x.dim(0), x.dim(1), lead};
    TRY(Tensor * state, run.output(1, DType::kFloat32, dims));
    present = state->data<float>();
  }
  const float *from = x.data<float>(), *weights = run.data<float>(1);
  const float* bias = run.has_input(2) ? run.data<float>(2) : nullptr;
  const float* past = run.has_input(3) ? run.data<float>(3) : nullptr;
  float* to = y->data<float>();
  UnaryFn* const silu = unary_fn(Unary::kSwish);
  run.parallel_for(
      s.lines, std::max<int64_t>(1, 8192 / (s.length * s.taps)), [&](int64_t begin, int64_t end) {
        std::vector<float> line(static_cast<size_t>(lead + s.length));
        for (int64_t i = begin; i < end; ++i) {
          const float* w = weights + i % s.channels * s.taps;
          if (s.length == 1 && past != nullptr && present != nullptr) {  // a step of a decoder
            const float* old = past + i * lead;
            float* next = present + i * lead;
            float sum = bias != nullptr ? bias[i % s.channels] : 0;
            for (int64_t j = 0; j < lead; ++j) {
              sum += w[j] * old[j];
              next[j] = j + 1 < lead ? old[j + 1] : from[i];
            }
            to[i] = sum + w[lead] * from[i];
            continue;
          }
          if (past != nullptr) std::copy_n(past + i * lead, lead, line.data());
          std::copy_n(from + i * s.length, s.length, line.data() + lead);
          float* out = to + i * s.length;
          std::fill_n(out, s.length, bias != nullptr ? bias[i % s.channels] : 0);
          for (int64_t j = 0; j < s.taps; ++j) {
            const float weight = w[j];
            const float* taken = line.data() + j;
            for (int64_t t = 0; t < s.length; ++t) out[t] += weight * taken[t];
          }
          if (present != nullptr) std::copy_n(line.data() + s.length, lead, present + i * lead);
        }
        float* all = to + begin * s.length;
        if (s.silu) silu(all, all, (end - begin) * s.length, 1, 0);
      });
  return ok();
}

}  // namespace

KERNEL(causal_conv) = {
    .name = "causal_conv",
    .op = "CausalConvWithState",
    .supports = supports_causal_conv,
    .prepare = prepare_causal_conv,
    .run = products<run_causal_conv>,
};
KERNEL(causal_conv_ms) = {
    .name = "causal_conv_ms",
    .op = "CausalConvWithState",
    .domain = "com.microsoft",
    .supports = supports_causal_conv,
    .prepare = prepare_causal_conv,
    .run = products<run_causal_conv>,
};

}  // namespace tombolo
