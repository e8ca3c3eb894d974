// LinearAttention, of the standard and of com.microsoft: a head's state is worked on in strips of
// columns, each through many steps.

#include <algorithm>
#include <cmath>

#include "runtime/kernels/attention/linear_state.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

constexpr size_t kPast = 3, kDecay = 4, kBeta = 5;

struct LinearAttentionState final : KernelState {
  int64_t batch = 1, steps = 1, heads = 1, states = 1;  ///< states: heads of keys and values
  int64_t keys = 1, values = 1;                         ///< sizes of a state
  bool gated = false, delta = false, gate_per_key = false, beta_per_head = false;
  float scale = 1;

  int64_t all() const { return std::max(heads, states); }
};

bool plan_linear_attention(const KernelQuery& q, LinearAttentionState& s) {
  const auto& attributes = q.attributes;
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 ||
      attributes.get_int("state_window", 0) != 0)
    return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (q.has_input(i) && (i > kBeta || q.dtype(i) != DType::kFloat32)) return false;
  for (size_t i = 0; i < 3; ++i)
    if (!q.has_input(i) || q.dims(i).size() != 3 || element_count(q.dims(i)) < 1) return false;
  const Text rule = attributes.get_string("update_rule", "gated_delta");
  s.gated = rule == "gated" || rule == "gated_delta";
  s.delta = rule == "delta" || rule == "gated_delta";
  s.heads = attributes.get_int("q_num_heads", 0);
  s.states = attributes.get_int("kv_num_heads", 0);
  if ((!s.gated && !s.delta && rule != "linear") || s.heads < 1 || s.states < 1) return false;
  // Only com.microsoft asks a query of several states.
  const bool shared = s.heads % s.states == 0;
  if (!shared && (q.node.domain() != "com.microsoft" || s.states % s.heads != 0)) return false;
  s.batch = q.dims(0)[0];
  s.steps = q.dims(0)[1];
  s.keys = q.dims(0)[2] / s.heads;
  s.values = q.dims(2)[2] / s.states;
  if (q.dims(0)[2] != s.keys * s.heads || q.dims(2)[2] != s.values * s.states ||
      Dims(q.dims(1)) != Dims{s.batch, s.steps, s.keys * s.states} ||
      Dims(q.dims(2)) != Dims{s.batch, s.steps, s.values * s.states})
    return false;
  if (q.has_input(kPast) && Dims(q.dims(kPast)) != Dims{s.batch, s.states, s.keys, s.values})
    return false;
  if (q.has_input(kDecay) != s.gated || q.has_input(kBeta) != s.delta) return false;
  if (s.gated) {
    s.gate_per_key = Dims(q.dims(kDecay)) != Dims{s.batch, s.steps, s.states};
    if (s.gate_per_key && Dims(q.dims(kDecay)) != Dims{s.batch, s.steps, s.states * s.keys})
      return false;
  }
  if (s.delta) {
    s.beta_per_head = Dims(q.dims(kBeta)) != Dims{s.batch, s.steps, 1};
    if (s.beta_per_head && Dims(q.dims(kBeta)) != Dims{s.batch, s.steps, s.states}) return false;
  }
  const float scale = attributes.get_float("scale", 0);
  s.scale = scale != 0 ? scale : static_cast<float>(1 / std::sqrt(static_cast<double>(s.keys)));
  return true;
}
bool supports_linear_attention(const KernelQuery& q) {
  LinearAttentionState state;
  return plan_linear_attention(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_linear_attention(const PrepareContext& q) {
  auto state = std::make_unique<LinearAttentionState>();
  plan_linear_attention(q, *state);
  return state;
}

constexpr int64_t kSteps = 64;  ///< that a strip takes at a time

/// All steps of one head's state, which begins as `past` (null: zeros) and ends in `state`.
void run_head(const KernelRun& run, const LinearAttentionState& s, int64_t batch, int64_t head,
              const float* past, float* state, float* y) {
  const int64_t width = linear_columns(s.keys, s.values), key_line = s.states * s.keys;
  const int64_t shared = std::max<int64_t>(1, s.heads / s.states);
  const int64_t query = s.heads >= s.states ? head * shared : head / (s.states / s.heads);
  float* const strip =
      thread_floats(1, static_cast<size_t>(s.keys * (width + 2 * std::min(kSteps, s.steps))));
  float* const gates = strip + s.keys * width;
  for (int64_t t = 0; t < s.steps; t += kSteps, past = state) {
    const int64_t steps = std::min(kSteps, s.steps - t), at = batch * s.steps + t;
    float* gk = gates + steps * s.keys;
    const float* k = run.data<float>(1) + at * key_line + head * s.keys;
    for (int64_t i = 0; i < steps; ++i) {
      float* gate = gates + i * s.keys;
      if (s.gate_per_key) {
        const float* decay = run.data<float>(kDecay) + (at + i) * key_line + head * s.keys;
        for (int64_t j = 0; j < s.keys; ++j) gate[j] = std::exp(decay[j]);
      } else {
        const float one =
            s.gated ? std::exp(run.data<float>(kDecay)[(at + i) * s.states + head]) : 1;
        std::fill_n(gate, s.keys, one);
      }
      for (int64_t j = 0; j < s.keys; ++j) gk[i * s.keys + j] = gate[j] * k[i * key_line + j];
    }
    const int64_t betas = s.beta_per_head ? s.states : 1;
    for (int64_t c = 0; c < s.values; c += width) {
      const int64_t cols = std::min(width, s.values - c);
      // The first step reads and the last one writes the state where it lies.
      const bool whole = cols == width, there = whole && past != nullptr;
      if (!there) std::fill_n(strip, s.keys * width, 0.0f);
      for (int64_t i = 0; i < s.keys && past != nullptr && !there; ++i)
        std::copy_n(past + i * s.values + c, cols, strip + i * width);
      linear_steps({.steps = steps,
                    .keys = s.keys,
                    .gates = gates,
                    .gk = gk,
                    .k = k,
                    .v = run.data<float>(2) + (at * s.states + head) * s.values + c,
                    .q = run.data<float>(0) + (at * s.heads + query) * s.keys,
                    .ldk = key_line,
                    .ldv = s.states * s.values,
                    .ldq = s.heads * s.keys,
                    .beta = s.delta
                                ? run.data<float>(kBeta) + at * betas + (s.beta_per_head ? head : 0)
                                : nullptr,
                    .ldbeta = betas,
                    .queries = shared,
                    .query_step = s.keys,
                    .y_step = s.values,
                    .scale = s.scale,
                    .y = y + (at * s.all() + head * shared) * s.values + c,
                    .ldy = s.all() * s.values,
                    .from = there ? past + c : strip,
                    .ldfrom = there ? s.values : width,
                    .state = strip,
                    .ldstate = width,
                    .to = whole ? state + c : strip,
                    .ldto = whole ? s.values : width,
                    .width = width,
                    .cols = cols});
      for (int64_t i = 0; i < s.keys && !whole; ++i)
        std::copy_n(strip + i * width, cols, state + i * s.values + c);
    }
  }
}

Status run_linear_attention(KernelRun& run) {
  const auto& s = run.state<LinearAttentionState>();
  const int64_t dims[] = {s.batch, s.steps, s.all() * s.values};
  const int64_t state_dims[] = {s.batch, s.states, s.keys, s.values};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  Tensor own;
  Tensor* state = &own;
  if (run.wants_output(1)) {
    TRY(state, run.output(1, DType::kFloat32, state_dims));
  } else {
    TRY(own, Tensor::allocate(DType::kFloat32, state_dims));
  }
  const int64_t size = s.keys * s.values;
  run.parallel_for(s.batch * s.states, std::max<int64_t>(1, (1 << 15) / (size * s.steps)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const float* past =
                           run.has_input(kPast) ? run.data<float>(kPast) + i * size : nullptr;
                       run_head(run, s, i / s.states, i % s.states, past,
                                state->data<float>() + i * size, y->data<float>());
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(linear_attention) = {
    .name = "linear_attention",
    .op = "LinearAttention",
    .supports = supports_linear_attention,
    .prepare = prepare_linear_attention,
    .run = products<run_linear_attention>,
};
KERNEL(linear_attention_ms) = {
    .name = "linear_attention_ms",
    .op = "LinearAttention",
    .domain = "com.microsoft",
    .supports = supports_linear_attention,
    .prepare = prepare_linear_attention,
    .run = products<run_linear_attention>,
};

}  // namespace tombolo
