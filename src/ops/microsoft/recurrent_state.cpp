// Convolution and attention that hand on a state, as ai.onnx took them up later.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

constexpr int kOpset = 27;

/// Slots of a window of states: [window, state...]; the state alone without a window.
struct StateWindow {
  int64_t slots = 0;
  Dims with(std::span<const int64_t> state) const {
    Dims dims;
    if (slots > 0) dims.push_back(slots);
    for (const int64_t dim : state) dims.push_back(dim);
    return dims;
  }
};

Result<StateWindow> read_state_window(const KernelContext& context) {
  const int64_t slots = context.attributes.get_int("state_window", 0);
  if (slots < 0 || slots > 8)
    return context.error("state_window is " + std::to_string(slots) + ", must be 0 to 8");
  return StateWindow{slots};
}

template <typename T>
Status causal_conv(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* w, context.input(1));
  TRY(const StateWindow window, read_state_window(context));
  const AttributeReader& attributes = context.attributes;
  const bool last = attributes.get_int("channels_last", 0) != 0;
  const int64_t dilation = attributes.get_int("dilation", 1);
  if (attributes.get_int("ndim", 1) != 1) return unsupported("ndim above 1");
  if (x.rank() < 3 || (!last && x.rank() != 3) || w->rank() != 3 || w->dim(1) != 1 ||
      w->dim(2) < 1 || dilation < 1 || dilation > 65536)
    return context.error("input, weight or dilation is wrong: " + to_string(x) + ", " +
                         to_string(*w) + ", " + std::to_string(dilation));
  const int64_t batch = x.dim(0), length = x.dim(last ? 1 : 2), taps = w->dim(2);
  const int64_t channels = last ? product(x.dims(), 2, x.rank()) : x.dim(1);
  const int64_t lead = (taps - 1) * dilation;
  CHECK_OK(check_dims(context, "weight", *w, {{channels, 1, taps}}));
  Dims state{batch};
  if (last) {
    state.push_back(lead);
    for (size_t axis = 2; axis < x.rank(); ++axis) state.push_back(x.dim(axis));
  } else {
    state.push_back(channels);
    state.push_back(lead);
  }
  const Text activation = attributes.get_string("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none")
    return context.error("activation \"" + std::string(activation) + "\" is not known");
  TRY(const Tensor in, as<T>(context, x));
  TRY(const Tensor weight, as<T>(context, *w));
  TRY(const Tensor bias, optional_as<T>(context, 2));
  TRY(const Tensor past, optional_as<T>(context, 3));
  if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{channels}}));
  if (!absent(past)) CHECK_OK(check_dims(context, "past_state", past, window.with(state).span()));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  TRY(Tensor present, context.allocate(dtype_of<T>(), window.with(state)));
  std::fill_n(present.data<T>(), present.size(), T{});
  const int64_t block = batch * channels * lead;
  const T* before =
      absent(past) ? nullptr : past.data<T>() + std::max<int64_t>(window.slots - 1, 0) * block;
  context.parallel_for(batch * channels, 1, [&](int64_t first, int64_t end) {
    for (int64_t line = first; line < end; ++line) {
      const int64_t b = line / channels, c = line % channels;
      // Where sample t of `count` of this channel lies.
      const auto place = [&](int64_t t, int64_t count) {
        return last ? (b * count + t) * channels + c : line * count + t;
      };
      // Sample `i`; what came before the input counts backwards from -1.
      const auto at = [&](int64_t i) {
        if (i >= 0) return in.data<T>()[place(i, length)];
        return before == nullptr ? T{} : before[place(lead + i, lead)];
      };
      for (int64_t t = 0; t < length; ++t) {
        double sum = absent(bias) ? 0 : static_cast<double>(bias.data<T>()[c]);
        for (int64_t k = 0; k < taps; ++k)
          sum += static_cast<double>(weight.data<T>()[c * taps + k]) *
                 static_cast<double>(at(t - (taps - 1 - k) * dilation));
        if (silu) sum /= 1 + std::exp(-sum);
        y.data<T>()[place(t, length)] = static_cast<T>(sum);
      }
      const int64_t slots = std::max<int64_t>(window.slots, 1);
      for (int64_t slot = 0; slot < slots; ++slot) {
        const int64_t after = length - slots + slot + 1;  // samples that this state has seen
        if (window.slots > 0 && after < 1) continue;
        for (int64_t i = 0; i < lead; ++i)
          present.data<T>()[slot * block + place(i, lead)] = at(after - lead + i);
      }
    }
  });
  CHECK_OK(give(context, 0, x.dtype(), std::move(y)));
  return give(context, 1, x.dtype(), std::move(present));
}

Status run_ms_causal_conv(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return causal_conv<T>(context, *x); });
}

Status infer_ms_causal_conv(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(1);
  const SymShape* past = context.shape(3);
  if (context.elem(0) != DType::kUndefined) {
    context.set_tensor(0, context.elem(0));
    context.set_tensor(1, context.elem(0));
  }
  if (x == nullptr) return ok();
  set_shape(context, 0, *x);
  if (past != nullptr) {
    set_shape(context, 1, *past);
    return ok();
  }
  if (w == nullptr || w->size() != 3 || x->size() < 3) return ok();
  const int64_t slots = context.attributes.get_int("state_window", 0);
  const SymDim lead = ((*w)[2] - SymDim(1)) * SymDim(context.attributes.get_int("dilation", 1));
  SymShape state;
  if (slots > 0) state.push_back(SymDim(slots));
  state.push_back((*x)[0]);
  if (context.attributes.get_int("channels_last", 0) == 0) {
    state.push_back((*x)[1]);
    state.push_back(lead);
  } else {
    state.push_back(lead);
    state.insert(state.end(), x->begin() + 2, x->end());
  }
  set_shape(context, 1, std::move(state));
  return ok();
}

/// [batch, steps, ...] cut to the first `steps`.
Result<Tensor> first_steps(Official& official, const Tensor& x, int64_t steps) {
  if (absent(x)) return x;
  const int64_t zero = 0, one = 1;
  return official.call(
      "Slice", {x, Tensor::int64s(std::span(&zero, 1)), Tensor::int64s(std::span(&steps, 1)),
                Tensor::int64s(std::span(&one, 1))});
}

/// With a window the states after the last steps are those of shorter inputs.
Status run_ms_linear_attention(KernelContext& context) {
  TRY(const StateWindow window, read_state_window(context));
  const int64_t heads = context.attributes.get_int("q_num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  const bool repeats = heads > 0 && kv_heads > heads && kv_heads % heads == 0;
  if (window.slots == 0 && !repeats) return run_as(context, "LinearAttention", kOpset);
  Tensor inputs[6];
  for (size_t i = 0; i < 6; ++i) {
    TRY(inputs[i], tensor_or_absent(context, i));
  }
  Tensor& query = inputs[0];
  if (query.rank() != 3 || (repeats && query.dim(2) % heads != 0))
    return context.error("query must be [batch, steps, heads * size], is " + to_string(query));
  if (repeats) {  // more keys and values than queries: each query is asked of several
    const int64_t lines = query.dim(0) * query.dim(1) * heads, times = kv_heads / heads;
    const size_t bytes = lines == 0 ? 0 : query.bytes().size() / static_cast<size_t>(lines);
    TRY(Tensor wide,
        context.allocate(query.dtype(), {{query.dim(0), query.dim(1), query.dim(2) * times}}));
    for (int64_t i = 0; i < lines * times; ++i)
      std::copy_n(query.bytes().data() + static_cast<size_t>(i / times) * bytes, bytes,
                  wide.mutable_bytes().data() + static_cast<size_t>(i) * bytes);
    query = std::move(wide);
  }
  Official official(context);
  if (Tensor& past = inputs[3]; window.slots > 0 && !absent(past)) {
    if (past.rank() != 5 || past.dim(0) != window.slots)
      return context.error("past_state must hold " + std::to_string(window.slots) + " states, is " +
                           to_string(past));
    const Dims state(past.dims().span().subspan(1));
    TRY(past, official.call("Gather", {past, Tensor::scalar_int64(window.slots - 1)}));
    past = past.reshaped(state);
  }
  Node& node = official.node_with("LinearAttention",
                                  {"kv_num_heads", "scale", "update_rule", "chunk_size"}, 2);
  node.set_int("q_num_heads", repeats ? kv_heads : heads);
  TRY(std::vector<RunValue> whole, official.run(node, inputs, kOpset));
  if (window.slots == 0) {
    context.set_output(0, std::move(whole[0]));
    context.set_output(1, std::move(whole[1]));
    return ok();
  }
  const Tensor& state = whole[1].tensor();
  TRY(Tensor present, context.allocate(state.dtype(), window.with(state.dims())));
  std::fill_n(present.mutable_bytes().data(), present.bytes().size(), std::byte{0});
  const size_t block = state.bytes().size();
  for (int64_t slot = 0; slot < window.slots; ++slot) {
    const int64_t steps = query.dim(1) - window.slots + slot + 1;
    if (steps < 1) continue;
    Tensor of_slot = state;
    if (steps < query.dim(1)) {
      Tensor shorter[6];
      for (size_t i = 0; i < 6; ++i) {
        TRY(shorter[i],
            i == 3 ? Result<Tensor>(inputs[3]) : first_steps(official, inputs[i], steps));
      }
      TRY(const std::vector<RunValue> made, official.run(node, shorter, kOpset));
      of_slot = made[1].tensor();
    }
    std::copy_n(of_slot.bytes().data(), block,
                present.mutable_bytes().data() + static_cast<size_t>(slot) * block);
  }
  context.set_output(0, std::move(whole[0]));
  context.set_output(1, std::move(present));
  return ok();
}
Status infer_ms_linear_attention(InferContext& context) {
  const int64_t slots = context.attributes.get_int("state_window", 0);
  const int64_t heads = context.attributes.get_int("q_num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (slots == 0 && heads >= kv_heads) return infer_as(context, "LinearAttention", kOpset);
  if (slots < 0 || slots > 8) return context.error("state_window must be 0 to 8");
  if (heads < 1 || kv_heads < 1) return context.error("the numbers of heads must be positive");
  const SymShape* q = context.shape(0);
  const SymShape* v = context.shape(2);
  const SymShape* past = context.shape(3);
  // No input says the type of the state where there is none before.
  const DType state_type = context.elem(context.has_input(3) ? 3 : 0);
  if (state_type != DType::kUndefined) context.set_tensor(1, state_type);
  if (past != nullptr) context.set_tensor(1, state_type, *past);
  if (q == nullptr || v == nullptr || q->size() != 3 || v->size() != 3) return ok();
  const SymDim size = floor_div((*v)[2], SymDim(kv_heads));
  set_shape(context, 0, {(*q)[0], (*q)[1], SymDim(std::max(heads, kv_heads)) * size});
  if (past != nullptr) return ok();
  SymShape state;
  if (slots > 0) state.push_back(SymDim(slots));
  for (const SymDim& dim : {(*q)[0], SymDim(kv_heads), floor_div((*q)[2], SymDim(heads)), size})
    state.push_back(dim);
  context.set_tensor(1, state_type, std::move(state));
  return ok();
}

}  // namespace

OPERATOR(microsoft_CausalConvWithState) = {
    .name = "CausalConvWithState",
    .domain = "com.microsoft",
    .doc = "depthwise causal convolution that hands on its last samples",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"bias", "T", kOptional},
            {"past_state", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "T"},
        },
    .attributes =
        {
            {"activation", "none"},
            {"channels_last", 0},
            {"dilation", 1},
            {"ndim", 1},
            {"state_window", 0},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_ms_causal_conv,
    .reference = run_ms_causal_conv,
};

OPERATOR(microsoft_LinearAttention) = {
    .name = "LinearAttention",
    .domain = "com.microsoft",
    .doc = "attention without softmax as a recurrence over a state matrix",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T"},
            {"value", "T"},
            {"past_state", "S", kOptional},
            {"decay", "T", kOptional},
            {"beta", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "S"},
        },
    .attributes =
        {
            {"chunk_size", 64},
            {"kv_num_heads", required(Attr::kInt)},
            {"q_num_heads", required(Attr::kInt)},
            {"scale", 0.0f},
            {"state_window", 0},
            {"update_rule", "gated_delta"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"S", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_ms_linear_attention,
    .reference = run_ms_linear_attention,
};

}  // namespace tombolo::ops
