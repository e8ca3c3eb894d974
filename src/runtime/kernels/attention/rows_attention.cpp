// Attention (ai.onnx) of floats.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct AttentionState final : KernelState {
  AttentionShape shape;
  int64_t past = 0, steps = 0;  ///< keys of the cache, keys that come in
  int64_t queries = 1;
  bool up_to_query = false;  ///< causal queries that became rows of one place
  bool joined = false;       ///< keys and values are the outputs present_key, present_value
  HeadLayout k_in, v_in;
  Dims output, present_key, present_value;
};

bool read_layout(std::span<const int64_t> dims, int64_t given, int64_t& heads, int64_t& steps,
                 int64_t& size, HeadLayout& layout) {
  if (dims.size() == 4) {
    heads = dims[1];
    steps = dims[2];
    size = dims[3];
    layout = {heads * steps * size, steps * size, size};
    return true;
  }
  if (dims.size() != 3 || given < 1 || dims[2] % given != 0) return false;
  heads = given;
  steps = dims[1];
  size = dims[2] / given;
  layout = {steps * dims[2], size, dims[2]};
  return true;
}

bool plan_shapes(const KernelQuery& q, AttentionState& state) {
  AttentionShape& s = state.shape;
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || q.wants_output(3)) return false;
  for (size_t i = 0; i < 3; ++i)
    if (q.dtype(i) != DType::kFloat32 || element_count(q.dims(i)) < 1 ||
        q.dims(i).size() != q.dims(0).size())
      return false;
  const auto& attributes = q.attributes;
  int64_t v_heads, v_steps;
  s.batch = q.dims(0)[0];
  if (!read_layout(q.dims(0), attributes.get_int("q_num_heads", 0), s.q_heads, s.rows, s.size,
                   s.q) ||
      !read_layout(q.dims(1), attributes.get_int("kv_num_heads", 0), s.kv_heads, state.steps,
                   v_steps, state.k_in) ||
      v_steps != s.size ||
      !read_layout(q.dims(2), attributes.get_int("kv_num_heads", 0), v_heads, v_steps, s.value_size,
                   state.v_in))
    return false;
  if (q.dims(1)[0] != s.batch || q.dims(2)[0] != s.batch || v_heads != s.kv_heads ||
      v_steps != state.steps || s.kv_heads < 1 || s.q_heads % s.kv_heads != 0)
    return false;
  if (q.has_input(4) != q.has_input(5)) return false;
  if (q.has_input(4)) {
    if (q.has_input(6) || q.dtype(4) != DType::kFloat32 || q.dtype(5) != DType::kFloat32 ||
        q.dims(4).size() != 4)
      return false;
    state.past = q.dims(4)[2];
    if (Dims(q.dims(4)) != Dims{s.batch, s.kv_heads, state.past, s.size} ||
        Dims(q.dims(5)) != Dims{s.batch, s.kv_heads, state.past, s.value_size})
      return false;
  }
  s.columns = state.past + state.steps;
  state.joined = q.has_input(4) || q.wants_output(1) || q.wants_output(2);
  if (state.joined && (!q.wants_output(1) || !q.wants_output(2))) return false;
  state.present_key = {s.batch, s.kv_heads, s.columns, s.size};
  state.present_value = {s.batch, s.kv_heads, s.columns, s.value_size};
  s.k = state.joined ? HeadLayout{s.kv_heads * s.columns * s.size, s.columns * s.size, s.size}
                     : state.k_in;
  s.v = state.joined ? HeadLayout{s.kv_heads * s.columns * s.value_size, s.columns * s.value_size,
                                  s.value_size}
                     : state.v_in;
  const bool packed = q.dims(0).size() == 3;
  if (packed) {
    state.output = {s.batch, s.rows, s.q_heads * s.value_size};
    s.y = {s.rows * s.q_heads * s.value_size, s.value_size, s.q_heads * s.value_size};
  } else {
    state.output = {s.batch, s.q_heads, s.rows, s.value_size};
    s.y = {s.q_heads * s.rows * s.value_size, s.rows * s.value_size, s.value_size};
  }
  s.scale = attributes.has("scale")
                ? attributes.get_float("scale", 1)
                : static_cast<float>(1 / std::sqrt(static_cast<double>(s.size)));
  s.softcap = attributes.get_float("softcap", 0);
  s.causal = attributes.get_int("is_causal", 0) != 0;
  s.left = attributes.get_int("left_window_size", -1);
  s.right = attributes.get_int("right_window_size", -1);
  if (s.left < -1 || s.right < -1) return false;
  if (s.left > s.columns + s.rows) s.left = -1;
  if (s.right > s.columns + s.rows) s.right = -1;
  if (q.has_input(6) && (q.dtype(6) != DType::kInt64 || Dims(q.dims(6)) != Dims{s.batch}))
    return false;
  if (!q.has_input(3)) return true;
  if (q.dtype(3) != DType::kFloat32 && q.dtype(3) != DType::kBool) return false;
  const auto mask = q.dims(3);
  const auto rank = static_cast<int64_t>(mask.size());
  if (rank < 1 || rank > 4 || element_count(mask) < 1) return false;
  const int64_t full[] = {s.batch, s.q_heads, s.rows};
  int64_t stride = s.mask_columns = mask.back();
  if (s.mask_columns > s.columns) return false;
  for (int64_t axis = 2; axis > 2 - (rank - 1); --axis) {
    const int64_t dim = mask[static_cast<size_t>(axis + rank - 4)];
    if (dim != 1 && dim != full[axis]) return false;
    s.mask_stride[axis] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  return true;
}

bool plan_attention(const KernelQuery& q, AttentionState& state) {
  if (!plan_shapes(q, state)) return false;
  AttentionShape& s = state.shape;
  state.queries = s.rows;
  const int64_t group = s.q_heads / s.kv_heads;
  if (s.rows != 1 || group == 1 || s.left >= 0 || s.right >= 0) return true;
  // One query: the heads that share keys are rows of one product, which reads them once.
  s.q_heads = s.kv_heads;
  s.rows = group;
  for (HeadLayout* layout : {&s.q, &s.y}) {
    layout->step_stride = layout->head_stride;
    layout->head_stride *= group;
  }
  s.mask_stride[2] = s.mask_stride[1];
  s.mask_stride[1] *= group;
  state.up_to_query = s.causal;
  s.causal = false;
  return true;
}

bool supports_attention(const KernelQuery& query) {
  AttentionState state;
  return plan_attention(query, state);
}

bool supports_attention_bf16(const KernelQuery& query) {
  AttentionState state;
  return query.options.fast_math && plan_attention(query, state) &&
         attention_bf16_fits(state.shape);
}

template <bool kRounds>
Result<std::unique_ptr<KernelState>> prepare_attention(const PrepareContext& context) {
  auto state = std::make_unique<AttentionState>();
  plan_attention(context, *state);
  state->shape.products = attention_products(state->shape, kRounds);
  state->scratch_bytes = attention_scratch_floats(state->shape) * sizeof(float);
  return state;
}

/// What makes present_key and present_value: the cache, and what comes in.
struct Joined {
  struct Side {
    const float *past, *now;
    HeadLayout layout;  ///< of what comes in
    int64_t size;
    float* out;  ///< [batch, heads, past + steps, size]
  };
  const AttentionState& state;
  Side sides[2];  ///< keys, values

  static const float* make(const void* argument, int64_t line, bool values, int64_t from,
                           int64_t to, bool) {
    const auto& self = *static_cast<const Joined*>(argument);
    const AttentionState& state = self.state;
    const AttentionShape& s = state.shape;
    const Side& side = self.sides[values];
    float* const out = side.out + (line * s.columns + from) * side.size;
    const int64_t old = std::clamp(state.past, from, to);
    if (from < old)
      std::memcpy(out, side.past + (line * state.past + from) * side.size,
                  static_cast<size_t>((old - from) * side.size) * sizeof(float));
    const float* now = side.now + side.layout.at(line / s.kv_heads, line % s.kv_heads);
    for (int64_t t = old; t < to; ++t)
      std::memcpy(out + (t - from) * side.size, now + (t - state.past) * side.layout.step_stride,
                  static_cast<size_t>(side.size) * sizeof(float));
    return out;
  }
};

Status run_attention_node(KernelRun& run) {
  const auto& state = run.state<AttentionState>();
  const AttentionShape& s = state.shape;
  AttentionData data{run.data<float>(0), run.data<float>(1), run.data<float>(2), nullptr};
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  data.y = y->data<float>();
  std::vector<int64_t> offsets(static_cast<size_t>(s.batch), state.past);
  std::vector<int64_t> valid(static_cast<size_t>(s.batch), s.columns);
  if (run.has_input(6))
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t length = run.data<int64_t>(6)[b];
      if (length < 0 || length > s.columns)
        return runtime_error("nonpad_kv_seqlen has the value " + std::to_string(length) +
                             ", there are " + std::to_string(s.columns) + " keys");
      valid[static_cast<size_t>(b)] = length;
      offsets[static_cast<size_t>(b)] = length - state.queries;
    }
  if (state.up_to_query)
    for (size_t b = 0; b < valid.size(); ++b)
      valid[b] = std::min(valid[b], std::max<int64_t>(offsets[b] + 1, 0));
  Joined joined{state, {}};
  if (state.joined) {
    TRY(Tensor * keys, run.output(1, DType::kFloat32, state.present_key));
    TRY(Tensor * values, run.output(2, DType::kFloat32, state.present_value));
    const bool past = run.has_input(4);
    joined.sides[0] = {past ? run.data<float>(4) : nullptr, data.k, state.k_in, s.size,
                       keys->data<float>()};
    joined.sides[1] = {past ? run.data<float>(5) : nullptr, data.v, state.v_in, s.value_size,
                       values->data<float>()};
    data.make = &Joined::make;
    data.argument = &joined;
    data.k = keys->data<float>();
    data.v = values->data<float>();
  }
  if (run.has_input(3)) {
    if (run.input(3).dtype() == DType::kBool)
      data.bool_mask = run.data<uint8_t>(3);
    else
      data.mask = run.data<float>(3);
  }
  data.offsets = offsets.data();
  data.valid = valid.data();
  run_attention(s, data, reinterpret_cast<float*>(run.scratch()));
  return ok();
}

}  // namespace

KERNEL(attention_f32) = {
    .name = "attention_f32",
    .op = "Attention",
    .supports = supports_attention,
    .prepare = prepare_attention<false>,
    .run = products<run_attention_node>,
};
KERNEL(attention_bf16) = {
    .name = "attention_bf16",
    .op = "Attention",
    .supports = supports_attention_bf16,
    .prepare = prepare_attention<true>,
    .run = products<run_attention_node>,
    .priority = 1,
};

}  // namespace tombolo
