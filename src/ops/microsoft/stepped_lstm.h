#pragma once

// LSTMs that do something of their own between steps: the layer of ai.onnx, run one step of all
// sequences at a time.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/kernels/compute.h"
#include "ops/microsoft/official.h"

namespace tombolo::ops {

/// All of type T, with the axis of directions in front, as LSTM takes them; absent where optional.
struct LstmParts {
  Tensor w, r, bias, peepholes, h0, c0;
  int64_t steps = 0, batch = 0;
  int64_t width = 0;  ///< of what enters a step
  int64_t hidden() const { return r.dim(2); }
};

/// What a step sees: the direction, and the time of each sequence, -1 for one that has ended.
struct LstmStep {
  int64_t direction;
  std::vector<int64_t> times;
};

/// Part `direction` of a tensor, under an axis of length 1.
template <typename T>
Result<Tensor> direction_part(const KernelContext& context, const Tensor& tensor,
                              int64_t direction) {
  if (absent(tensor)) return Tensor();
  Dims dims = tensor.dims();
  dims[0] = 1;
  TRY(Tensor part, context.allocate(tensor.dtype(), dims));
  std::copy_n(tensor.data<T>() + direction * part.size(), part.size(), part.data<T>());
  return part;
}

/// Checks the parts and runs the layer. `begin(direction)` comes before each direction.
/// `before(step, h, state)` gives the input [1, batch, width] of a step; `state`, which enters the
/// recurrence, is h unless it is replaced. `after(step, h)` sees what came out, [1, batch, hidden].
/// Outputs 0 to 2 are set; sequence_lens is input 4.
template <typename T, typename Begin, typename Before, typename After>
Status run_stepped_lstm(KernelContext& context, const LstmParts& parts, DType type, Begin&& begin,
                        Before&& before, After&& after) {
  const int64_t steps = parts.steps, batch = parts.batch, hidden = parts.hidden();
  const int64_t directions = parts.w.dim(0);
  const Text direction = context.attributes.get_string("direction", "forward");
  const bool both = direction == "bidirectional";
  if ((!both && direction != "forward" && direction != "reverse") || directions != (both ? 2 : 1))
    return context.error("direction is \"" + std::string(direction) + "\" with W of " +
                         std::to_string(directions) + " directions");
  CHECK_OK(check_dims(context, "W", parts.w, {{directions, 4 * hidden, parts.width}}));
  CHECK_OK(check_dims(context, "R", parts.r, {{directions, 4 * hidden, hidden}}));
  if (!absent(parts.bias))
    CHECK_OK(check_dims(context, "B", parts.bias, {{directions, 8 * hidden}}));
  if (!absent(parts.peepholes))
    CHECK_OK(check_dims(context, "P", parts.peepholes, {{directions, 3 * hidden}}));
  for (const Tensor* state : {&parts.h0, &parts.c0})
    if (!absent(*state))
      CHECK_OK(check_dims(context, "an initial state", *state, {{directions, batch, hidden}}));
  const auto activations = context.attributes.get_strings("activations");
  if (!activations.empty() && activations.size() != 3 * static_cast<size_t>(directions))
    return context.error("activations must name three for each direction");
  if (both && !context.attributes.get_floats("activation_alpha").empty())
    return unsupported("activation_alpha in two directions");
  std::vector<int64_t> lengths(static_cast<size_t>(batch), steps);
  TRY(const Tensor* given, context.optional_input(4));
  if (given != nullptr) CHECK_OK(check_dims(context, "sequence_lens", *given, {{batch}}));
  for (int64_t b = 0; given != nullptr && b < batch; ++b) {
    lengths[static_cast<size_t>(b)] = given->get_int64(b);
    if (lengths[static_cast<size_t>(b)] < 0 || lengths[static_cast<size_t>(b)] > steps)
      return context.error("sequence_lens has the value " + std::to_string(given->get_int64(b)) +
                           ", X has " + std::to_string(steps) + " steps");
  }
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{steps, directions, batch, hidden}}));
  TRY(Tensor y_h, context.allocate(dtype_of<T>(), {{directions, batch, hidden}}));
  TRY(Tensor y_c, context.allocate(dtype_of<T>(), y_h.dims()));
  for (Tensor* out : {&y, &y_h, &y_c}) std::fill_n(out->data<T>(), out->size(), T{});
  const int64_t count = batch * hidden;
  Official official(context);
  for (int64_t d = 0; d < directions; ++d) {
    const bool reversed = d == 1 || direction == "reverse";
    Node& node = official.node_with(
        "LSTM", {"activation_alpha", "activation_beta", "clip", "input_forget"}, 3);
    node.set_int("hidden_size", hidden);
    if (!activations.empty()) {
      const auto own = activations.subspan(static_cast<size_t>(d) * 3, 3);
      node.set_attribute(
          Attribute("activations", AttrType::kStrings, std::vector<Text>(own.begin(), own.end())));
    }
    TRY(const Tensor w, direction_part<T>(context, parts.w, d));
    TRY(const Tensor r, direction_part<T>(context, parts.r, d));
    TRY(const Tensor bias, direction_part<T>(context, parts.bias, d));
    TRY(const Tensor peepholes, direction_part<T>(context, parts.peepholes, d));
    TRY(Tensor h, context.allocate(dtype_of<T>(), {{1, batch, hidden}}));
    TRY(Tensor c, context.allocate(dtype_of<T>(), {{1, batch, hidden}}));
    for (int64_t i = 0; i < count; ++i) {
      h.data<T>()[i] = absent(parts.h0) ? T{} : parts.h0.template data<T>()[d * count + i];
      c.data<T>()[i] = absent(parts.c0) ? T{} : parts.c0.template data<T>()[d * count + i];
    }
    CHECK_OK(begin(d));
    LstmStep now{d, std::vector<int64_t>(static_cast<size_t>(batch))};
    for (int64_t step = 0; step < steps; ++step) {
      for (size_t b = 0; b < now.times.size(); ++b)
        now.times[b] = step >= lengths[b] ? -1 : reversed ? lengths[b] - 1 - step : step;
      Tensor state = h;
      TRY(const Tensor in, before(now, h, state));
      const Tensor inputs[] = {in, w, r, bias, {}, state, c, peepholes};
      TRY(const std::vector<RunValue> made, official.run(node, inputs, 14));
      const Tensor &new_h = made[1].tensor(), &new_c = made[2].tensor();
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t t = now.times[static_cast<size_t>(b)];
        if (t < 0) continue;
        std::copy_n(new_h.data<T>() + b * hidden, hidden, h.data<T>() + b * hidden);
        std::copy_n(new_c.data<T>() + b * hidden, hidden, c.data<T>() + b * hidden);
        std::copy_n(h.data<T>() + b * hidden, hidden,
                    y.data<T>() + ((t * directions + d) * batch + b) * hidden);
      }
      CHECK_OK(after(now, new_h));
    }
    std::copy_n(h.data<T>(), count, y_h.data<T>() + d * count);
    std::copy_n(c.data<T>(), count, y_c.data<T>() + d * count);
  }
  CHECK_OK(give(context, 0, type, std::move(y)));
  CHECK_OK(give(context, 1, type, std::move(y_h)));
  return give(context, 2, type, std::move(y_c));
}

}  // namespace tombolo::ops
