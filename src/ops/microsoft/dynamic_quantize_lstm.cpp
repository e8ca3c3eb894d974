// LSTM whose weights are 8-bit integers; inputs and states are quantised on the fly.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/official.h"
#include "ops/microsoft/stepped_lstm.h"
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

/// The state is quantised between steps.
Status run_dynamic_quantize_lstm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() != 3) return context.error("X must have rank 3, is " + to_string(*x));
  LstmParts parts;
  parts.steps = x->dim(0), parts.batch = x->dim(1), parts.width = x->dim(2);
  TRY(parts.w, unpack(context, 1, 8, 9));
  TRY(parts.r, unpack(context, 2, 10, 11));
  TRY(parts.bias, optional_as<float>(context, 3));
  TRY(parts.h0, optional_as<float>(context, 5));
  TRY(parts.c0, optional_as<float>(context, 6));
  TRY(parts.peepholes, optional_as<float>(context, 7));
  Official official(context);
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor coarse_in, coarse(context, official, in));
  const int64_t batch = parts.batch, width = parts.width;
  return run_stepped_lstm<float>(
      context, parts, x->dtype(), [](int64_t) { return ok(); },
      [&](const LstmStep& step, const Tensor& h, Tensor& state) -> Result<Tensor> {
        TRY(Tensor now, context.allocate(DType::kFloat32, {{1, batch, width}}));
        for (int64_t b = 0; b < batch; ++b) {
          const int64_t t = std::max<int64_t>(0, step.times[static_cast<size_t>(b)]);
          std::copy_n(coarse_in.data<float>() + (t * batch + b) * width, width,
                      now.data<float>() + b * width);
        }
        TRY(state, coarse(context, official, h));
        return now;
      },
      [](const LstmStep&, const Tensor&) { return ok(); });
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
