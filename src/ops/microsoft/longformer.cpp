// Attention to a window of neighbours and to chosen tokens, which attend to all (Longformer); in
// floats, and on 8-bit integers.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/quantize.h"
#include "ops/microsoft/heads.h"
#include "ops/microsoft/linear.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Shape {
  int64_t batch = 0, steps = 0, width = 0, heads = 0, window = 0;
};

Result<Shape> read_shape(const KernelContext& context, const Tensor& x, const Tensor& mask,
                         const Tensor& global) {
  Shape s;
  s.heads = context.attributes.get_int("num_heads", 0);
  s.window = context.attributes.get_int("window", 0);
  if (x.rank() != 3 || s.heads < 1 || x.dim(2) % s.heads != 0)
    return context.error("input must be [batch, steps, num_heads * size], is " + to_string(x));
  if (s.window < 1) return context.error("window is " + std::to_string(s.window));
  s.batch = x.dim(0), s.steps = x.dim(1), s.width = x.dim(2);
  CHECK_OK(check_dims(context, "mask", mask, {{s.batch, s.steps}}));
  CHECK_OK(check_dims(context, "global", global, {{s.batch, s.steps}}));
  return s;
}

/// [batch * steps, width] by [width, 3 * width], plus a bias.
Result<Tensor> project(const KernelContext& context, const Shape& s, const Tensor& x,
                       const Tensor& weight, const Tensor& bias) {
  CHECK_OK(check_dims(context, "a weight", weight, {{s.width, 3 * s.width}}));
  CHECK_OK(check_dims(context, "a bias", bias, {{3 * s.width}}));
  TRY(Tensor y, context.allocate(DType::kFloat32, {{s.batch, s.steps, 3 * s.width}}));
  gemm<float>(s.batch * s.steps, 3 * s.width, s.width, {x.data<float>(), s.width, 1},
              {weight.data<float>(), 3 * s.width, 1}, y.data<float>(), 3 * s.width);
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] += bias.data<float>()[i % (3 * s.width)];
  return y;
}

/// `own` and `all` hold query, key and value side by side: for the window, and for chosen tokens.
Result<Tensor> attend_window(const KernelContext& context, const Shape& s, const Tensor& own,
                             const Tensor& all, const Tensor& mask, const Tensor& global) {
  TRY(Tensor y, context.allocate(DType::kFloat32, {{s.batch, s.steps, s.width}}));
  const int64_t size = s.width / s.heads, row_width = 3 * s.width;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  context.parallel_for(s.batch * s.heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(s.steps));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / s.heads, head = task % s.heads * size;
      for (int64_t t = 0; t < s.steps; ++t) {
        const bool everywhere = global.get_int64(b * s.steps + t) != 0;
        const float* of = (everywhere ? all : own).data<float>() + b * s.steps * row_width;
        const float* q = of + t * row_width + head;
        for (int64_t j = 0; j < s.steps; ++j) {
          const bool seen = everywhere || (j >= t - s.window && j <= t + s.window) ||
                            global.get_int64(b * s.steps + j) != 0;
          if (!seen) {
            row[static_cast<size_t>(j)] = -std::numeric_limits<float>::infinity();
            continue;
          }
          const float* k = of + j * row_width + s.width + head;
          double sum = 0;
          for (int64_t i = 0; i < size; ++i)
            sum += static_cast<double>(q[i]) * static_cast<double>(k[i]);
          row[static_cast<size_t>(j)] =
              static_cast<float>(sum * scale + mask.get_double(b * s.steps + j));
        }
        attention_softmax<float>(row.data(), s.steps, nullptr);
        float* to = y.data<float>() + (b * s.steps + t) * s.width + head;
        for (int64_t i = 0; i < size; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < s.steps; ++j)
            sum += static_cast<double>(row[static_cast<size_t>(j)]) *
                   static_cast<double>(of[j * row_width + 2 * s.width + head + i]);
          to[i] = static_cast<float>(sum);
        }
      }
    }
  });
  return y;
}

Status run_longformer_attention(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* mask, context.input(3));
  TRY(const Tensor* global, context.input(6));
  TRY(const Shape s, read_shape(context, *x, *mask, *global));
  TRY(const Tensor in, as<float>(context, *x));
  Tensor parts[2];
  for (size_t k = 0; k < 2; ++k) {
    TRY(const Tensor* weight, context.input(k == 0 ? 1 : 4));
    TRY(const Tensor* bias, context.input(k == 0 ? 2 : 5));
    TRY(const Tensor w, as<float>(context, *weight));
    TRY(const Tensor b, as<float>(context, *bias));
    TRY(parts[k], project(context, s, in, w, b));
  }
  TRY(Tensor y, attend_window(context, s, parts[0], parts[1], *mask, *global));
  return give(context, 0, x->dtype(), std::move(y));
}

/// Values rounded to multiples of a scale, within 8 bits.
void round_to(Tensor& values, float scale) {
  for (int64_t i = 0; i < values.size(); ++i) {
    float& v = values.data<float>()[i];
    v = scale * static_cast<float>(quantized(static_cast<double>(v) / static_cast<double>(scale), 0,
                                             range_of(DType::kInt8)));
  }
}

/// 8-bit numbers times their scale.
Result<Tensor> scaled_codes(const KernelContext& context, size_t index, size_t scale_index) {
  TRY(const Tensor* x, context.input(index));
  TRY(const Tensor* scale, context.input(scale_index));
  const int64_t columns = x->rank() == 0 ? 1 : x->dim(x->rank() - 1);
  if (x->dtype() != DType::kInt8 || (scale->size() != 1 && scale->size() != columns))
    return context.error("input " + std::to_string(index) +
                         " must be int8 with one scale or one a column, is " + to_string(*x) +
                         " with " + to_string(*scale));
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] =
        static_cast<float>(x->data<int8_t>()[i]) *
        static_cast<float>(scale->get_double(scale->size() == 1 ? 0 : i % columns));
  return y;
}

Status expect_orders(const KernelContext& context,
                     std::initializer_list<std::pair<const char*, int64_t>> orders) {
  for (const auto& [name, order] : orders)
    if (const int64_t given = context.attributes.get_int(name, order); given != order)
      return unsupported(std::string(name) + " of " + std::to_string(given) + ", only " +
                         std::to_string(order));
  return ok();
}

Status give_codes(KernelContext& context, const Tensor& values, float scale) {
  TRY(Tensor * y, context.output(0, DType::kInt8, values.dims()));
  for (int64_t i = 0; i < values.size(); ++i)
    y->data<int8_t>()[i] = static_cast<int8_t>(
        quantized(static_cast<double>(values.data<float>()[i]) / static_cast<double>(scale), 0,
                  range_of(DType::kInt8)));
  return ok();
}

/// Weights by columns are the plain matrix turned over.
Result<Tensor> by_rows(const KernelContext& context, const Tensor& weight) {
  if (weight.rank() != 2) return context.error("a weight is " + to_string(weight));
  const int64_t rows = weight.dim(0), columns = weight.dim(1);
  TRY(Tensor out, context.allocate(DType::kFloat32, {{rows, columns}}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out.data<float>()[i * columns + j] = weight.data<float>()[j * rows + i];
  return out;
}

Status run_qordered_longformer(KernelContext& context) {
  CHECK_OK(expect_orders(
      context,
      {{"order_input", 1}, {"order_weight", 0}, {"order_global_weight", 0}, {"order_output", 1}}));
  TRY(const Tensor* mask, context.input(7));
  TRY(const Tensor* global, context.input(12));
  TRY(const Tensor x, scaled_codes(context, 0, 1));
  TRY(const Shape s, read_shape(context, x, *mask, *global));
  Tensor parts[2];
  for (size_t k = 0; k < 2; ++k) {
    TRY(const Tensor raw, k == 0 ? scaled_codes(context, 2, 3) : scaled_codes(context, 8, 9));
    TRY(const Tensor weight, by_rows(context, raw));
    TRY(const Tensor* bias, context.input(k == 0 ? 4 : 10));
    TRY(const Tensor b, as<float>(context, *bias));
    TRY(parts[k], project(context, s, x, weight, b));
    TRY(const float scale, scalar_scale(context, k == 0 ? 6 : 11, "the scale of a product"));
    round_to(parts[k], scale);
  }
  TRY(const float scale, scalar_scale(context, 13, "scale_output"));
  TRY(const Tensor y, attend_window(context, s, parts[0], parts[1], *mask, *global));
  return give_codes(context, y, scale);
}

/// Every product and the softmax are rounded to 8 bits.
Status run_qordered_attention(KernelContext& context) {
  CHECK_OK(expect_orders(context, {{"order_input", 1}, {"order_weight", 0}, {"order_output", 1}}));
  if (context.has_input(18) || context.has_input(19) ||
      !context.attributes.get_ints("qkv_hidden_sizes").empty())
    return unsupported("past, attention_bias or qkv_hidden_sizes");
  const int64_t heads = context.attributes.get_int("num_heads", 0);
  TRY(const Tensor x, scaled_codes(context, 0, 1));
  if (x.rank() != 3 || heads < 1)
    return context.error("input must be [batch, steps, size], is " + to_string(x));
  const int64_t batch = x.dim(0), steps = x.dim(1), width = x.dim(2);
  Tensor parts[3];
  for (size_t k = 0; k < 3; ++k) {
    TRY(const Tensor raw, scaled_codes(context, 5 + k, 8 + k));
    TRY(const Tensor* bias, context.input(11 + k));
    TRY(const float scale, scalar_scale(context, 2 + k, "the scale of a product"));
    if (raw.rank() != 2 || raw.dim(0) != width || raw.dim(1) % heads != 0)
      return context.error("a weight does not fit: " + to_string(raw));
    TRY(const Tensor weight, by_rows(context, raw));
    const int64_t size = raw.dim(1);
    TRY(Tensor y, context.allocate(DType::kFloat32, {{batch, steps, size}}));
    gemm<float>(batch * steps, size, width, {x.data<float>(), width, 1},
                {weight.data<float>(), size, 1}, y.data<float>(), size);
    CHECK_OK(check_dims(context, "a bias", *bias, {{size}}));
    for (int64_t i = 0; i < y.size(); ++i)
      y.data<float>()[i] += static_cast<float>(bias->get_double(i % size));
    round_to(y, scale);
    TRY(parts[k], split_heads<float>(context, "a projection", y, heads));
  }
  TRY(const float score_scale, scalar_scale(context, 14, "scale_QKT_gemm"));
  TRY(const float share_scale, scalar_scale(context, 15, "scale_QKT_softmax"));
  TRY(const float out_scale, scalar_scale(context, 16, "scale_values_gemm"));
  TRY(const Tensor* given, context.optional_input(17));
  const bool causal = context.attributes.get_int("unidirectional", 0) != 0;
  TRY(const Tensor mask,
      padding_mask<float>(context, given, causal, -10000.0, batch, steps, steps, 0));
  const int64_t size = parts[0].dim(3), value_size = parts[2].dim(3);
  if (parts[1].dims() != parts[0].dims())
    return context.error("query and key have different sizes");
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  TRY(Tensor y, context.allocate(DType::kFloat32, {{batch, steps, heads * value_size}}));
  TRY(Tensor row, context.allocate(DType::kFloat32, {{steps}}));
  for (int64_t task = 0; task < batch * heads; ++task)
    for (int64_t t = 0; t < steps; ++t) {
      float* s = row.data<float>();
      const float* q = parts[0].data<float>() + (task * steps + t) * size;
      for (int64_t j = 0; j < steps; ++j) {
        const float* k = parts[1].data<float>() + (task * steps + j) * size;
        double sum = 0;
        for (int64_t i = 0; i < size; ++i)
          sum += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        s[j] = static_cast<float>(sum * scale);
      }
      round_to(row, score_scale);
      for (int64_t j = 0; !absent(mask) && j < steps; ++j)
        s[j] += mask.data<float>()[(task / heads * steps + t) * steps + j];
      attention_softmax<float>(s, steps, nullptr);
      round_to(row, share_scale);
      for (int64_t i = 0; i < value_size; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < steps; ++j)
          sum += static_cast<double>(s[j]) *
                 static_cast<double>(parts[2].data<float>()[(task * steps + j) * value_size + i]);
        y.data<float>()[(task / heads * steps + t) * heads * value_size +
                        task % heads * value_size + i] = static_cast<float>(sum);
      }
    }
  return give_codes(context, y, out_scale);
}

Status infer_qordered_attention(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* v = context.shape(7);
  if (x == nullptr || v == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  CHECK_OK(expect_rank(context, 7, 2));
  set_shape(context, 0, {(*x)[0], (*x)[1], (*v)[1]});
  return ok();
}

}  // namespace

OPERATOR(microsoft_LongformerAttention) = {
    .name = "LongformerAttention",
    .domain = "com.microsoft",
    .doc = "attention to a window of neighbours and to chosen tokens",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"bias", "T"},
            {"mask", "T"},
            {"global_weight", "T"},
            {"global_bias", "T"},
            {"global", "G"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"num_heads", required(Attr::kInt)},
            {"window", required(Attr::kInt)},
        },
    .types = {{"T", {{1, kF32 | kF16}}}, {"G", {{1, kI32}}}},
    .infer = infer_unary,
    .reference = run_longformer_attention,
};

OPERATOR(microsoft_QOrderedLongformerAttention) = {
    .name = "QOrderedLongformerAttention",
    .domain = "com.microsoft",
    .doc = "LongformerAttention on 8-bit integers",
    .versions = {1},
    .inputs =
        {
            {"input", "Q"},
            {"scale_input", "S"},
            {"weight", "Q"},
            {"scale_weight", "S"},
            {"bias", "S"},
            {"scale_bias", "S"},
            {"scale_qkv_gemm", "S"},
            {"mask", "F"},
            {"global_weight", "Q"},
            {"scale_global_weight", "S"},
            {"global_bias", "S"},
            {"scale_global_gemm", "S"},
            {"global", "G"},
            {"scale_output", "S"},
        },
    .outputs = {{"output", "Q"}},
    .attributes =
        {
            {"num_heads", required(Attr::kInt)},
            {"order_global_weight", required(Attr::kInt)},
            {"order_input", required(Attr::kInt)},
            {"order_output", required(Attr::kInt)},
            {"order_weight", required(Attr::kInt)},
            {"window", required(Attr::kInt)},
        },
    .types = {{"Q", {{1, kI8}}}, {"S", {{1, kF32}}}, {"G", {{1, kI32}}}, {"F", {{1, kF16}}}},
    .infer = infer_unary,
    .reference = run_qordered_longformer,
};

OPERATOR(microsoft_QOrderedAttention) = {
    .name = "QOrderedAttention",
    .domain = "com.microsoft",
    .doc = "attention on 8-bit integers, every product rounded",
    .versions = {1},
    .inputs =
        {
            {"input", "Q"},
            {"scale_input", "S"},
            {"scale_Q_gemm", "S"},
            {"scale_K_gemm", "S"},
            {"scale_V_gemm", "S"},
            {"Q_weight", "Q"},
            {"K_weight", "Q"},
            {"V_weight", "Q"},
            {"scale_Q_weight", "S"},
            {"scale_K_weight", "S"},
            {"scale_V_weight", "S"},
            {"Q_bias", "S"},
            {"K_bias", "S"},
            {"V_bias", "S"},
            {"scale_QKT_gemm", "S", kOptional},
            {"scale_QKT_softmax", "S", kOptional},
            {"scale_values_gemm", "S"},
            {"mask_index", "G", kOptional},
            {"past", "Q", kOptional},
            {"attention_bias", "S", kOptional},
        },
    .outputs = {{"output", "Q"}},
    .attributes =
        {
            {"num_heads", required(Attr::kInt)},
            {"order_input", required(Attr::kInt)},
            {"order_output", required(Attr::kInt)},
            {"order_weight", required(Attr::kInt)},
            {"qkv_hidden_sizes", Attr::kInts},
            {"unidirectional", 0},
        },
    .types = {{"Q", {{1, kI8}}}, {"S", {{1, kF32}}}, {"G", {{1, kI32}}}},
    .infer = infer_qordered_attention,
    .reference = run_qordered_attention,
};

}  // namespace tombolo::ops
