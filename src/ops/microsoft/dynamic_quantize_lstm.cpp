// LSTM whose weights are 8-bit integers; inputs and states are quantised on the fly.

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

/// Weights [directions, rows, 4 * hidden] as numbers; scales and zero points one a direction, or
/// one for each column of it.
Result<Tensor> unpack(const KernelContext& context, size_t weights, size_t scales, size_t zeros) {
  TRY(const Tensor* codes, context.input(weights));
  TRY(const Tensor* scale, context.input(scales));
  TRY(const Tensor* zero, context.input(zeros));
  if (codes->rank() != 3)
    return context.error("W and R must have rank 3, one is " + to_string(*codes));
  const int64_t directions = codes->dim(0), rows = codes->dim(1), columns = codes->dim(2);
  for (const Tensor* x : {scale, zero})
    if (x->size() != directions && x->size() != directions * columns)
      return context.error("scales and zero points must be one a direction or a column, one is " +
                           to_string(*x));
  // Transposed on the way, to what LSTM takes: [directions, 4 * hidden, rows].
  TRY(Tensor out, context.allocate(DType::kFloat32, {{directions, columns, rows}}));
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const auto at = [&](const Tensor& x) {
          return x.size() == directions ? d : d * columns + j;
        };
        const int64_t code =
            codes->get_int64((d * rows + i) * columns + j) - zero->get_int64(at(*zero));
        out.data<float>()[(d * columns + j) * rows + i] =
            static_cast<float>(code) * static_cast<float>(scale->get_double(at(*scale)));
      }
  return out;
}

/// x as 8-bit integers with a scale of their own, and back.
Result<Tensor> coarse(const KernelContext& context, Official& official, const Tensor& x) {
  const Tensor inputs[] = {x};
  TRY(const std::vector<RunValue> parts,
      official.run(official.node("DynamicQuantizeLinear", 3), inputs));
  const double scale = parts[1].tensor().get_double(0);
  const int64_t zero = parts[2].tensor().get_int64(0);
  TRY(Tensor y, context.allocate(DType::kFloat32, x.dims()));
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] =
        static_cast<float>(static_cast<double>(parts[0].tensor().get_int64(i) - zero) * scale);
  return y;
}

/// One step of all sequences at a time, so that the state can be quantised between steps.
Status run_dynamic_quantize_lstm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor w, unpack(context, 1, 8, 9));
  TRY(const Tensor r, unpack(context, 2, 10, 11));
  TRY(const Tensor bias, optional_as<float>(context, 3));
  TRY(const Tensor* lengths, context.optional_input(4));
  TRY(const Tensor h0, optional_as<float>(context, 5));
  TRY(const Tensor c0, optional_as<float>(context, 6));
  TRY(const Tensor peepholes, tensor_or_absent(context, 7));
  if (x->rank() != 3) return context.error("X must have rank 3, is " + to_string(*x));
  const int64_t steps = x->dim(0), batch = x->dim(1), directions = w.dim(0);
  const int64_t hidden = r.dim(2), input = x->dim(2);
  const Text direction = context.attributes.get_string("direction", "forward");
  const bool both = direction == "bidirectional";
  if ((!both && direction != "forward" && direction != "reverse") || directions != (both ? 2 : 1))
    return context.error("direction is \"" + std::string(direction) + "\" with W of " +
                         std::to_string(directions) + " directions");
  CHECK_OK(check_dims(context, "W", w, {{directions, 4 * hidden, input}}));
  CHECK_OK(check_dims(context, "R", r, {{directions, 4 * hidden, hidden}}));
  if (!absent(bias)) CHECK_OK(check_dims(context, "B", bias, {{directions, 8 * hidden}}));
  for (const Tensor* state : {&h0, &c0})
    if (!absent(*state))
      CHECK_OK(check_dims(context, "an initial state", *state, {{directions, batch, hidden}}));
  if (!absent(peepholes)) CHECK_OK(check_dims(context, "P", peepholes, {{directions, 3 * hidden}}));
  if (lengths != nullptr) CHECK_OK(check_dims(context, "sequence_lens", *lengths, {{batch}}));
  const auto activations = context.attributes.get_strings("activations");
  Official official(context);
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor coarse_in, coarse(context, official, in));
  TRY(Tensor y, context.allocate(DType::kFloat32, {{steps, directions, batch, hidden}}));
  TRY(Tensor y_h, context.allocate(DType::kFloat32, {{directions, batch, hidden}}));
  TRY(Tensor y_c, context.allocate(DType::kFloat32, y_h.dims()));
  for (Tensor* state : {&y, &y_h, &y_c}) std::fill_n(state->data<float>(), state->size(), 0.0f);
  std::vector<int64_t> length_of(static_cast<size_t>(batch), steps);
  for (int64_t b = 0; lengths != nullptr && b < batch; ++b) {
    const int64_t length = lengths->get_int64(b);
    if (length < 0 || length > steps)
      return context.error("sequence_lens has the value " + std::to_string(length) + ", X has " +
                           std::to_string(steps) + " steps");
    length_of[static_cast<size_t>(b)] = length;
  }
  const auto slice = [&](const Tensor& tensor, int64_t d) -> Result<Tensor> {
    if (absent(tensor)) return Tensor();
    Dims dims = tensor.dims();
    dims[0] = 1;
    TRY(Tensor part, context.allocate(tensor.dtype(), dims));
    std::copy_n(tensor.data<float>() + d * part.size(), part.size(), part.data<float>());
    return part;
  };
  for (int64_t d = 0; d < directions; ++d) {
    const bool reversed = d == 1 || direction == "reverse";
    Node& node = official.node_with(
        "LSTM", {"activation_alpha", "activation_beta", "clip", "input_forget"}, 3);
    node.set_int("hidden_size", hidden);
    if (!activations.empty()) {
      const size_t each = activations.size() / static_cast<size_t>(directions);
      if (each != 3) return context.error("activations must name three for each direction");
      const auto own = activations.subspan(static_cast<size_t>(d) * 3, 3);
      Attribute names;
      names.name = "activations";
      names.type = AttrType::kStrings;
      names.value = std::vector<Text>(own.begin(), own.end());
      node.set_attribute(std::move(names));
    }
    TRY(const Tensor own_w, slice(w, d));
    TRY(const Tensor own_r, slice(r, d));
    TRY(const Tensor own_bias, slice(bias, d));
    TRY(const Tensor own_p, slice(peepholes, d));
    TRY(Tensor h, context.allocate(DType::kFloat32, {{1, batch, hidden}}));
    TRY(Tensor c, context.allocate(DType::kFloat32, {{1, batch, hidden}}));
    const int64_t count = batch * hidden;
    for (int64_t i = 0; i < count; ++i) {
      h.data<float>()[i] = absent(h0) ? 0 : h0.data<float>()[d * count + i];
      c.data<float>()[i] = absent(c0) ? 0 : c0.data<float>()[d * count + i];
    }
    for (int64_t step = 0; step < steps; ++step) {
      TRY(Tensor now, context.allocate(DType::kFloat32, {{1, batch, input}}));
      const auto time_of = [&](int64_t b) {
        const int64_t length = length_of[static_cast<size_t>(b)];
        return step >= length ? -1 : reversed ? length - 1 - step : step;
      };
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t t = std::max<int64_t>(0, time_of(b));
        std::copy_n(coarse_in.data<float>() + (t * batch + b) * input, input,
                    now.data<float>() + b * input);
      }
      TRY(const Tensor state, coarse(context, official, h));
      const Tensor inputs[] = {now, own_w, own_r, own_bias, {}, state, c, own_p};
      TRY(std::vector<RunValue> parts, official.run(node, inputs, 14));
      const Tensor &new_h = parts[1].tensor(), &new_c = parts[2].tensor();
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t t = time_of(b);
        if (t < 0) continue;
        std::copy_n(new_h.data<float>() + b * hidden, hidden, h.data<float>() + b * hidden);
        std::copy_n(new_c.data<float>() + b * hidden, hidden, c.data<float>() + b * hidden);
        std::copy_n(h.data<float>() + b * hidden, hidden,
                    y.data<float>() + ((t * directions + d) * batch + b) * hidden);
      }
    }
    std::copy_n(h.data<float>(), count, y_h.data<float>() + d * count);
    std::copy_n(c.data<float>(), count, y_c.data<float>() + d * count);
  }
  CHECK_OK(give(context, 0, x->dtype(), std::move(y)));
  CHECK_OK(give(context, 1, x->dtype(), std::move(y_h)));
  return give(context, 2, x->dtype(), std::move(y_c));
}

Status infer_dynamic_quantize_lstm(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* r = context.shape(2);
  if (x == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  const int64_t directions =
      context.attributes.get_string("direction", "forward") == "bidirectional" ? 2 : 1;
  const SymDim hidden = r != nullptr && r->size() == 3 ? (*r)[1] : SymDim();
  set_shape(context, 0, {(*x)[0], SymDim(directions), (*x)[1], hidden});
  for (size_t i = 1; i <= 2; ++i)
    context.set_tensor(i, context.elem(0), {SymDim(directions), (*x)[1], hidden});
  return ok();
}

}  // namespace

OPERATOR(microsoft_DynamicQuantizeLSTM) = {
    .name = "DynamicQuantizeLSTM",
    .domain = "com.microsoft",
    .doc = "LSTM with 8-bit weights, inputs quantised on the fly",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T2"},
            {"R", "T2"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
            {"initial_c", "T", kOptional},
            {"P", "T", kOptional},
            {"W_scale", "T"},
            {"W_zero_point", "T2"},
            {"R_scale", "T"},
            {"R_zero_point", "T2"},
        },
    .outputs =
        {
            {"Y", "T", kOptional},
            {"Y_h", "T", kOptional},
            {"Y_c", "T", kOptional},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", Attr::kStrings},
            {"clip", Attr::kFloat},
            {"direction", "forward"},
            {"hidden_size", Attr::kInt},
            {"input_forget", 0},
        },
    .types =
        {
            {"T", {{1, kF32}}},
            {"T1", {{1, kI32}}},
            {"T2", {{1, kInt8s}}},
        },
    .infer = infer_dynamic_quantize_lstm,
    .reference = run_dynamic_quantize_lstm,
};

}  // namespace tombolo::ops
