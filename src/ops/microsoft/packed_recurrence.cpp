// Recurrences over sequences that lie one behind the other: gated delta networks, and depthwise
// convolutions with a state.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Where each sequence begins, and the end, out of cumulative lengths.
Result<std::vector<int64_t>> read_bounds(const KernelContext& context, const Tensor& bounds,
                                         int64_t tokens) {
  if (bounds.rank() != 1 || bounds.size() < 1)
    return context.error("the bounds of sequences must be a list, are " + to_string(bounds));
  std::vector<int64_t> out;
  for (int64_t i = 0; i < bounds.size(); ++i) {
    out.push_back(bounds.get_int64(i));
    const int64_t least = i == 0 ? 0 : out[out.size() - 2];
    if (out.back() < least || out.back() > tokens || (i == 0 && out[0] != 0))
      return context.error("sequence bounds do not rise from 0 to " + std::to_string(tokens));
  }
  if (out.back() != tokens)
    return context.error("sequences end at " + std::to_string(out.back()) + ", there are " +
                         std::to_string(tokens) + " tokens");
  return out;
}

/// How many transitions of each sequence are noted: input `count`, when the capacity is not 0.
Result<std::vector<int64_t>> read_captures(const KernelContext& context, size_t count,
                                           int64_t capacity, const std::vector<int64_t>& bounds) {
  TRY(const Tensor* given, context.optional_input(count));
  if (capacity < 0 || capacity > 8 || (capacity > 0) != (given != nullptr))
    return context.error("capture_count goes with a state_update_capacity of 1 to 8");
  std::vector<int64_t> out(bounds.size() - 1, 0);
  if (given == nullptr) return out;
  CHECK_OK(check_dims(context, "capture_count", *given, {{static_cast<int64_t>(out.size())}}));
  for (size_t b = 0; b < out.size(); ++b)
    out[b] = std::clamp<int64_t>(given->get_int64(static_cast<int64_t>(b)), 0,
                                 std::min(capacity, bounds[b + 1] - bounds[b]));
  return out;
}

struct DeltaNet {
  int64_t tokens = 0, heads = 0, value_heads = 0, size = 0, value_size = 0, batch = 0;
  Tensor q, k, v;  ///< float [tokens, heads, size]
};

void normalise(float* x, int64_t size) {
  constexpr double kEpsilon = 1e-6;
  double sum = kEpsilon;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int64_t i = 0; i < size; ++i)
    x[i] = static_cast<float>(static_cast<double>(x[i]) / std::sqrt(sum));
}

/// [a, b, rest...] as [a * b, rest...] where a batch and its steps are spelled apart.
Tensor by_token(const Tensor& x, size_t rank) {
  if (x.rank() != rank + 1) return x;
  Dims dims{x.dim(0) * x.dim(1)};
  for (size_t i = 2; i < x.rank(); ++i) dims.push_back(x.dim(i));
  return x.reshaped(dims);
}

Result<DeltaNet> read_delta_net(const KernelContext& context, const Tensor& query,
                                const Tensor* state) {
  DeltaNet d;
  TRY(const Tensor* key, context.optional_input(1));
  TRY(const Tensor* value, context.optional_input(2));
  if (key != nullptr && value != nullptr) {
    TRY(const Tensor q, as<float>(context, query));
    TRY(const Tensor k, as<float>(context, *key));
    TRY(const Tensor v, as<float>(context, *value));
    d.q = by_token(q, 3), d.k = by_token(k, 3), d.v = by_token(v, 3);
    if (d.q.rank() != 3 || d.v.rank() != 3 || d.k.dims() != d.q.dims() || d.v.dim(0) != d.q.dim(0))
      return context.error("query, key and value do not fit each other: " + to_string(query) +
                           ", " + to_string(*key) + ", " + to_string(*value));
  } else {
    TRY(const Tensor packed, as<float>(context, query));
    const Tensor rows = by_token(packed, 2);
    if (state == nullptr || key != nullptr || value != nullptr || rows.rank() != 2)
      return context.error("packed queries need initial_state, and neither key nor value");
    const int64_t v_width = state->dim(1) * state->dim(2), size = state->dim(3);
    const int64_t rest = rows.dim(1) - v_width;
    if (size < 1 || rest <= 0 || rest % (2 * size) != 0)
      return context.error("query " + to_string(query) + " does not fit initial_state " +
                           to_string(*state));
    const int64_t tokens = rows.dim(0), heads = rest / (2 * size), width = heads * size;
    TRY(d.q, context.allocate(DType::kFloat32, {{tokens, heads, size}}));
    TRY(d.k, context.allocate(DType::kFloat32, {{tokens, heads, size}}));
    TRY(d.v, context.allocate(DType::kFloat32, {{tokens, state->dim(1), state->dim(2)}}));
    for (int64_t t = 0; t < tokens; ++t) {
      const float* from = rows.data<float>() + t * rows.dim(1);
      std::copy_n(from, width, d.q.data<float>() + t * width);
      std::copy_n(from + width, width, d.k.data<float>() + t * width);
      std::copy_n(from + 2 * width, v_width, d.v.data<float>() + t * v_width);
    }
  }
  d.tokens = d.q.dim(0), d.heads = d.q.dim(1), d.size = d.q.dim(2);
  d.value_heads = d.v.dim(1), d.value_size = d.v.dim(2);
  if (d.heads < 1 || d.value_heads < 1 || d.value_heads % d.heads != 0)
    return context.error(std::to_string(d.value_heads) + " value heads do not share " +
                         std::to_string(d.heads) + " query heads");
  if (context.attributes.get_int("qk_l2_norm", 0) != 0)
    for (Tensor* x : {&d.q, &d.k}) {
      TRY(*x, x->clone());
      for (int64_t row = 0; row < d.tokens * d.heads; ++row)
        normalise(x->data<float>() + row * d.size, d.size);
    }
  return d;
}

Status run_gated_delta_net(KernelContext& context) {
  const AttributeReader& attributes = context.attributes;
  TRY(const Tensor* query, context.input(0));
  TRY(const Tensor* given, context.optional_input(6));
  if (given != nullptr && (given->rank() != 4 || given->dtype() != DType::kFloat32))
    return context.error("initial_state must be float [batch, heads, value size, key size], is " +
                         to_string(*given));
  TRY(const DeltaNet d, read_delta_net(context, *query, given));
  TRY(const Tensor* cumulative, context.optional_input(3));
  std::vector<int64_t> bounds;
  if (cumulative != nullptr) {
    TRY(bounds, read_bounds(context, *cumulative, d.tokens));
  } else {
    const int64_t batch = given != nullptr ? given->dim(0) : 0;
    if (batch < 1 || d.tokens % batch != 0)
      return context.error(
          "without cu_seqlens initial_state must say how many sequences of one "
          "length there are");
    for (int64_t b = 0; b <= batch; ++b) bounds.push_back(b * (d.tokens / batch));
  }
  const auto batch = static_cast<int64_t>(bounds.size()) - 1;
  const Text rule = attributes.get_string("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    return context.error("update_rule is \"" + std::string(rule) + "\"");
  const bool qwen = attributes.get_string("gate_activation", "none") == "qwen";
  const bool sigmoid = attributes.get_string("beta_activation", "none") == "sigmoid";
  TRY(Tensor decay, optional_as<float>(context, 4));
  TRY(Tensor beta, optional_as<float>(context, 5));
  TRY(const Tensor a_log, optional_as<float>(context, 7));
  TRY(const Tensor dt_bias, optional_as<float>(context, 8));
  bool each = false;  // a decay for each feature of the key
  if (!absent(decay)) {
    if (decay.rank() >= 2 && decay.dim(decay.rank() - 1) == d.size &&
        decay.size() == d.tokens * d.value_heads * d.size && decay.rank() >= 3 &&
        decay.dim(decay.rank() - 2) == d.value_heads)
      each = true;
    else if (decay.size() != d.tokens * d.value_heads)
      return context.error("decay does not fit: " + to_string(decay));
  }
  if (decays && absent(decay)) return context.error("decay is missing");
  if (!absent(beta) && beta.size() != d.tokens * d.value_heads)
    return context.error("beta does not fit: " + to_string(beta));
  if (qwen) {
    if (absent(a_log) || absent(dt_bias))
      return context.error("gate_activation qwen needs a_log and dt_bias");
    CHECK_OK(check_dims(context, "a_log", a_log, {{d.value_heads}}));
    CHECK_OK(check_dims(context, "dt_bias", dt_bias, {{d.value_heads}}));
  }
  const int64_t capacity = attributes.get_int("state_update_capacity", 0);
  TRY(std::vector<int64_t> captures, read_captures(context, 9, capacity, bounds));
  if (capacity > 0 && each) return unsupported("state updates with a decay for each feature");
  TRY(const Tensor* active, context.optional_input(10));
  if (active != nullptr && active->size() == 1 && active->get_int64(0) == 0)
    std::fill(captures.begin(), captures.end(), 0);
  if (given != nullptr)
    CHECK_OK(check_dims(context, "initial_state", *given,
                        {{batch, d.value_heads, d.value_size, d.size}}));
  const auto asked = static_cast<double>(attributes.get_float("scale", 0));
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(d.size));

  Dims dims = query->dims();
  const bool packed = !context.has_input(1);
  const size_t lead = query->rank() - (packed ? 1 : 2);
  Dims out(dims.span().first(lead));
  out.push_back(d.value_heads);
  out.push_back(d.value_size);
  TRY(Tensor y, context.allocate(DType::kFloat32, out));
  TRY(Tensor state,
      context.allocate(DType::kFloat32, {{batch, d.value_heads, d.value_size, d.size}}));
  std::fill_n(state.data<float>(), state.size(), 0.0f);
  if (given != nullptr) std::copy_n(given->data<float>(), given->size(), state.data<float>());
  const int64_t width = d.value_heads + d.heads * d.size + d.value_heads * d.value_size;
  TRY(Tensor update, context.allocate(DType::kFloat32, {{batch, capacity * width}}));
  std::fill_n(update.data<float>(), update.size(), 0.0f);

  std::vector<double> s(static_cast<size_t>(d.value_size * d.size));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < d.value_heads; ++h) {
      float* stored = state.data<float>() + (b * d.value_heads + h) * d.value_size * d.size;
      for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<double>(stored[i]);
      const int64_t shared = h / (d.value_heads / d.heads);
      for (int64_t t = bounds[static_cast<size_t>(b)]; t < bounds[static_cast<size_t>(b) + 1];
           ++t) {
        const float* q = d.q.data<float>() + (t * d.heads + shared) * d.size;
        const float* k = d.k.data<float>() + (t * d.heads + shared) * d.size;
        const float* v = d.v.data<float>() + (t * d.value_heads + h) * d.value_size;
        const int64_t at = t * d.value_heads + h, step = t - bounds[static_cast<size_t>(b)];
        double factor = 1;
        const auto decay_of = [&](int64_t i) {
          double g = static_cast<double>(decay.data<float>()[each ? at * d.size + i : at]);
          if (qwen) {
            const double x = g + static_cast<double>(dt_bias.data<float>()[h]);
            g = -std::exp(static_cast<double>(a_log.data<float>()[h])) *
                (std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
          }
          return std::exp(g);
        };
        if (decays && !each) factor = decay_of(0);
        for (int64_t i = 0; decays && i < d.size; ++i) {
          const double f = each ? decay_of(i) : factor;
          for (int64_t j = 0; j < d.value_size; ++j) s[static_cast<size_t>(j * d.size + i)] *= f;
        }
        double rate = 1;
        if (!absent(beta)) {
          rate = static_cast<double>(beta.data<float>()[at]);
          if (sigmoid) rate = 1 / (1 + std::exp(-rate));
        }
        const bool noted = step < captures[static_cast<size_t>(b)];
        float* notes = update.data<float>() + b * capacity * width;
        if (noted) notes[step * d.value_heads + h] = static_cast<float>(factor);
        float* keys = notes + capacity * d.value_heads + step * d.heads * d.size;
        if (noted) std::copy_n(k, d.size, keys + shared * d.size);
        float* deltas = notes + capacity * (d.value_heads + d.heads * d.size) +
                        (step * d.value_heads + h) * d.value_size;
        for (int64_t j = 0; j < d.value_size; ++j) {
          double* row = s.data() + j * d.size;
          double delta = static_cast<double>(v[j]);
          for (int64_t i = 0; corrects && i < d.size; ++i)
            delta -= row[i] * static_cast<double>(k[i]);
          delta *= rate;
          if (noted) deltas[j] = static_cast<float>(delta);
          double sum = 0;
          for (int64_t i = 0; i < d.size; ++i) {
            row[i] += static_cast<double>(k[i]) * delta;
            sum += row[i] * static_cast<double>(q[i]);
          }
          y.data<float>()[at * d.value_size + j] = static_cast<float>(scale * sum);
        }
      }
      for (size_t i = 0; i < s.size(); ++i) stored[i] = static_cast<float>(s[i]);
    }
  CHECK_OK(give(context, 0, query->dtype(), std::move(y)));
  CHECK_OK(give(context, 1, DType::kFloat32, std::move(state)));
  return give(context, 2, DType::kFloat32, std::move(update));
}

Status infer_gated_delta_net(InferContext& context) {
  const SymShape* q = context.shape(0);
  const SymShape* v = context.shape(2);
  const SymShape* state = context.shape(6);
  const SymShape* bounds = context.shape(3);
  if (q == nullptr || q->size() < 2) return ok();
  const bool packed = !context.has_input(1);
  SymShape out(q->begin(), q->end() - (packed ? 1 : 2));
  SymDim heads, size;
  if (!packed && v != nullptr && v->size() == q->size()) {
    heads = (*v)[v->size() - 2];
    size = v->back();
  } else if (state != nullptr && state->size() == 4) {
    heads = (*state)[1];
    size = (*state)[2];
  }
  out.push_back(heads);
  out.push_back(size);
  set_shape(context, 0, std::move(out));
  if (state != nullptr) {
    set_shape(context, 1, *state);
  } else if (!packed && bounds != nullptr && bounds->size() == 1) {
    set_shape(context, 1, {(*bounds)[0] - SymDim(1), heads, size, q->back()});
  }
  if (context.wants_output(2)) set_rank(context, 2, 2);
  return ok();
}

Status run_varlen_causal_conv(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  TRY(const Tensor* cumulative, context.input(2));
  TRY(const Tensor* state, context.input(4));
  if (x->rank() != 2 || w->rank() != 3 || w->dim(0) != x->dim(1) || w->dim(1) != 1 || w->dim(2) < 1)
    return context.error("input must be [tokens, channels], weight [channels, 1, taps], are " +
                         to_string(*x) + " and " + to_string(*w));
  const int64_t channels = x->dim(1), taps = w->dim(2);
  const int64_t dilation = context.attributes.get_int("dilation", 1);
  if (dilation < 1 || dilation > 65536)
    return context.error("dilation is " + std::to_string(dilation));
  const int64_t lead = (taps - 1) * dilation;
  TRY(const std::vector<int64_t> bounds, read_bounds(context, *cumulative, x->dim(0)));
  const auto batch = static_cast<int64_t>(bounds.size()) - 1;
  const int64_t capacity = context.attributes.get_int("state_update_capacity", 0);
  TRY(const std::vector<int64_t> captures, read_captures(context, 5, capacity, bounds));
  CHECK_OK(check_dims(context, "initial_state", *state, {{batch, channels, lead}}));
  const Text activation = context.attributes.get_string("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none")
    return context.error("activation \"" + std::string(activation) + "\" is not known");
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor weight, as<float>(context, *w));
  TRY(const Tensor past, as<float>(context, *state));
  TRY(const Tensor bias, optional_as<float>(context, 3));
  if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{channels}}));
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  TRY(Tensor after, context.allocate(DType::kFloat32, {{batch, channels, lead}}));
  TRY(Tensor update, context.allocate(DType::kFloat32, {{batch, capacity, channels}}));
  std::fill_n(update.data<float>(), update.size(), 0.0f);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = bounds[static_cast<size_t>(b)];
    const int64_t length = bounds[static_cast<size_t>(b) + 1] - first;
    for (int64_t c = 0; c < channels; ++c) {
      const float* before = past.data<float>() + (b * channels + c) * lead;
      // Sample `i` of the sequence; what came before it counts backwards from -1.
      const auto at = [&](int64_t i) {
        return i < 0 ? before[lead + i] : in.data<float>()[(first + i) * channels + c];
      };
      for (int64_t t = 0; t < length; ++t) {
        double sum = absent(bias) ? 0 : static_cast<double>(bias.data<float>()[c]);
        for (int64_t k = 0; k < taps; ++k)
          sum += static_cast<double>(weight.data<float>()[c * taps + k]) *
                 static_cast<double>(at(t - (taps - 1 - k) * dilation));
        if (silu) sum /= 1 + std::exp(-sum);
        y.data<float>()[(first + t) * channels + c] = static_cast<float>(sum);
      }
      for (int64_t i = 0; i < lead; ++i)
        after.data<float>()[(b * channels + c) * lead + i] = at(length - lead + i);
      for (int64_t k = 0; k < captures[static_cast<size_t>(b)]; ++k)
        update.data<float>()[(b * capacity + k) * channels + c] = at(k);
    }
  }
  CHECK_OK(give(context, 0, x->dtype(), std::move(y)));
  CHECK_OK(give(context, 1, x->dtype(), std::move(after)));
  return give(context, 2, x->dtype(), std::move(update));
}

Status infer_varlen_causal_conv(InferContext& context) {
  context.same_as_input(0, 0);
  context.same_as_input(1, 4);
  const SymShape* x = context.shape(0);
  const SymShape* state = context.shape(4);
  if (context.wants_output(2) && x != nullptr && state != nullptr && x->size() == 2 &&
      state->size() == 3)
    context.set_tensor(
        2, context.elem(0),
        {(*state)[0], SymDim(context.attributes.get_int("state_update_capacity", 0)), (*x)[1]});
  return ok();
}

}  // namespace

OPERATOR(microsoft_GatedDeltaNet) = {
    .name = "GatedDeltaNet",
    .domain = "com.microsoft",
    .doc = "gated delta network over sequences one behind the other",
    .versions = {1},
    .inputs =
        {
            {"query", "T"},
            {"key", "T", kOptional},
            {"value", "T", kOptional},
            {"cu_seqlens", "TI", kOptional},
            {"decay", "TS", kOptional},
            {"beta", "TS", kOptional},
            {"initial_state", "TS", kOptional},
            {"a_log", "TS", kOptional},
            {"dt_bias", "TS", kOptional},
            {"capture_count", "TI", kOptional},
            {"state_update_active", "TI", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"final_state", "TS", kOptional},
            {"state_update", "TS", kOptional},
        },
    .attributes =
        {
            {"beta_activation", "none"},
            {"chunk_size", 64},
            {"gate_activation", "none"},
            {"qk_l2_norm", 0},
            {"scale", 0.0f},
            {"state_update_capacity", 0},
            {"update_rule", "gated_delta"},
        },
    .types = {{"T", {{1, kF32 | kF16 | kBf16}}}, {"TS", {{1, kF32}}}, {"TI", {{1, kI32}}}},
    .infer = infer_gated_delta_net,
    .reference = run_gated_delta_net,
};

OPERATOR(microsoft_VarlenCausalConvWithState) = {
    .name = "VarlenCausalConvWithState",
    .domain = "com.microsoft",
    .doc = "depthwise causal convolution over sequences one behind the other",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"cumulative_sequence_length", "M"},
            {"bias", "T", kOptional},
            {"initial_state", "T"},
            {"capture_count", "M", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"final_state", "T"},
            {"state_update", "T", kOptional},
        },
    .attributes =
        {
            {"activation", "none"},
            {"dilation", 1},
            {"state_update_capacity", 0},
        },
    .types = {{"T", {{1, kF32 | kF16 | kBf16}}}, {"M", {{1, kI32}}}},
    .infer = infer_varlen_causal_conv,
    .reference = run_varlen_causal_conv,
};

}  // namespace tombolo::ops
