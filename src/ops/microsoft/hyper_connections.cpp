// Streams side by side that layers mix (hyper-connections), and the gates and norms of such
// networks. All compute in float and round once.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/rms.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// [..., C, H], or [..., C * H] with the number of branches C as an attribute.
struct Streams {
  int64_t rows = 0, branches = 0, width = 0;
  bool flat = false;
  Dims lead;  ///< the axes in front
};

Result<Streams> read_streams(const KernelContext& context, const Tensor& x) {
  Streams s;
  s.branches = context.attributes.get_int("num_branches", 0);
  s.flat = s.branches > 0;
  const size_t rank = x.rank(), own = s.flat ? 1 : 2;
  if (s.branches < 0 || rank < own || !is_float(x.dtype()))
    return context.error(
        "the streams must be floats [..., C, H], or [..., C * H] with "
        "num_branches, are " +
        to_string(x));
  if (s.flat) {
    if (x.dim(rank - 1) % s.branches != 0)
      return context.error("num_branches is " + std::to_string(s.branches) + ", the streams are " +
                           to_string(x));
    s.width = x.dim(rank - 1) / s.branches;
  } else {
    s.branches = x.dim(rank - 2);
    s.width = x.dim(rank - 1);
  }
  s.lead.assign(x.dims().span().first(rank - own));
  s.rows = element_count(s.lead);
  return s;
}

Dims with_axes(const Streams& s, std::initializer_list<int64_t> more) {
  Dims dims = s.lead;
  for (const int64_t dim : more) dims.push_back(dim);
  return dims;
}

/// Gates: one a branch, or one a feature of a branch. Gives the step between features.
Result<int64_t> gate_step(const KernelContext& context, const char* name, const Tensor& gate,
                          const Streams& s) {
  const int64_t c = s.branches, h = s.width;
  if (gate.dims() == with_axes(s, {c, h}) || (s.flat && gate.dims() == with_axes(s, {c * h})))
    return 1;
  if (gate.dims() == with_axes(s, {c}) || gate.dims() == with_axes(s, {c, 1})) return 0;
  return context.error(std::string(name) + " must be [..., " + std::to_string(c) + "], [..., " +
                       std::to_string(c) + ", 1] or [..., " + std::to_string(c) + ", " +
                       std::to_string(h) + "], is " + to_string(gate));
}

/// In float, as everything here.
float root_of(const float* x, int64_t width, float epsilon) {
  return static_cast<float>(root_mean_square(x, width, static_cast<double>(epsilon)));
}

Status run_branchwise_rms_norm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Streams s, read_streams(context, *x));
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor scale, optional_as<float>(context, 1));
  const bool shared = !absent(scale) && scale.dims() == Dims({s.width});
  if (!absent(scale) && !shared && scale.dims() != Dims({s.branches * s.width}) &&
      scale.dims() != Dims({s.branches, s.width}))
    return context.error("scale does not fit the branches: " + to_string(scale));
  const float epsilon = context.attributes.get_float("epsilon", 1e-5f);
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t row = 0; row < s.rows * s.branches; ++row) {
    const float* from = in.data<float>() + row * s.width;
    const float root = root_of(from, s.width, epsilon);
    const int64_t first = shared ? 0 : row % s.branches * s.width;
    for (int64_t j = 0; j < s.width; ++j)
      y.data<float>()[row * s.width + j] =
          from[j] / root * (absent(scale) ? 1.0f : scale.data<float>()[first + j]);
  }
  return give(context, 0, x->dtype(), std::move(y));
}

Status run_pre_mix(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* gate, context.input(1));
  TRY(const Streams s, read_streams(context, *x));
  TRY(const int64_t step, gate_step(context, "pre_mix", *gate, s));
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor mix, as<float>(context, *gate));
  const float factor = context.attributes.get_float("reduction_scale", 1);
  TRY(Tensor y, context.allocate(DType::kFloat32, with_axes(s, {s.width})));
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t j = 0; j < s.width; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < s.branches; ++c) {
        const int64_t branch = row * s.branches + c;
        sum += static_cast<double>(in.data<float>()[branch * s.width + j]) *
               static_cast<double>(mix.data<float>()[step == 0 ? branch : branch * s.width + j]);
      }
      y.data<float>()[row * s.width + j] = factor * static_cast<float>(sum);
    }
  return give(context, 0, x->dtype(), std::move(y));
}

Status run_post_mix(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* block, context.input(1));
  TRY(const Tensor* gate, context.input(2));
  TRY(const Streams s, read_streams(context, *x));
  TRY(const int64_t step, gate_step(context, "post_mix", *gate, s));
  CHECK_OK(check_dims(context, "block_output", *block, with_axes(s, {s.width}).span()));
  TRY(const Tensor in, as<float>(context, *x));
  TRY(const Tensor added, as<float>(context, *block));
  TRY(const Tensor post, as<float>(context, *gate));
  TRY(const Tensor mix, optional_as<float>(context, 3));
  if (!absent(mix))
    CHECK_OK(check_dims(context, "stream_mix", mix, with_axes(s, {s.branches, s.branches}).span()));
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t k = 0; k < s.branches; ++k)
      for (int64_t j = 0; j < s.width; ++j) {
        const int64_t branch = row * s.branches + k;
        double sum = absent(mix) ? static_cast<double>(in.data<float>()[branch * s.width + j]) : 0;
        for (int64_t c = 0; !absent(mix) && c < s.branches; ++c)
          sum += static_cast<double>(mix.data<float>()[(row * s.branches + c) * s.branches + k]) *
                 static_cast<double>(in.data<float>()[(row * s.branches + c) * s.width + j]);
        sum += static_cast<double>(post.data<float>()[step == 0 ? branch : branch * s.width + j]) *
               static_cast<double>(added.data<float>()[row * s.width + j]);
        y.data<float>()[branch * s.width + j] = static_cast<float>(sum);
      }
  return give(context, 0, x->dtype(), std::move(y));
}

Status infer_pre_mix(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const int64_t branches = context.attributes.get_int("num_branches", 0);
  if (x->size() < (branches > 0 ? 1u : 2u))
    return context.error("streams has the shape " + shape_to_string(*x));
  SymShape out = *x;
  if (branches > 0) {
    out.back() = floor_div(out.back(), SymDim(branches));
  } else {
    out.erase(out.end() - 2);
  }
  set_shape(context, 0, std::move(out));
  return ok();
}

float sigmoid(float x) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))); }

/// Every step rounds to the element type.
Status run_scaled_silu(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* given, context.optional_input(1));
  if (!is_float(x->dtype())) return context.error("X must hold floats, is " + to_string(*x));
  if (given != nullptr && given->size() != 1)
    return context.error("scale must be one number, is " + to_string(*given));
  const float factor = given != nullptr ? static_cast<float>(given->get_double(0))
                                        : context.attributes.get_float("alpha", 1);
  TRY(const Tensor in, as<float>(context, *x));
  // Rounds to the type of X, back in float.
  const auto round_all = [&](Tensor& values) -> Status {
    TRY(const Tensor narrow, converted(context, values, x->dtype()));
    TRY(values, as<float>(context, narrow));
    return ok();
  };
  TRY(Tensor z, context.allocate(DType::kFloat32, x->dims()));
  TRY(Tensor s, context.allocate(DType::kFloat32, x->dims()));
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i) z.data<float>()[i] = factor * in.data<float>()[i];
  CHECK_OK(round_all(z));
  for (int64_t i = 0; i < x->size(); ++i) s.data<float>()[i] = sigmoid(z.data<float>()[i]);
  CHECK_OK(round_all(s));
  for (int64_t i = 0; i < x->size(); ++i)
    y.data<float>()[i] = z.data<float>()[i] * s.data<float>()[i];
  return give(context, 0, x->dtype(), std::move(y));
}

Status run_linear_attention_gate(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  if (a->rank() < 1 || !is_float(a->dtype()))
    return context.error("a must be floats [batch, steps, heads], is " + to_string(*a));
  const int64_t heads = a->dim(a->rank() - 1);
  TRY(const Tensor in, as<float>(context, *a));
  TRY(const Tensor* bias, context.input(1));
  TRY(const Tensor* scale, context.input(2));
  CHECK_OK(check_dims(context, "dt_bias", *bias, {{heads}}));
  CHECK_OK(check_dims(context, "decay_scale", *scale, {{heads}}));
  TRY(Tensor decay, context.allocate(DType::kFloat32, a->dims()));
  for (int64_t i = 0; i < a->size(); ++i) {
    const double sum = static_cast<double>(in.data<float>()[i]) + bias->get_double(i % heads);
    const double softplus = std::max(sum, 0.0) + std::log1p(std::exp(-std::fabs(sum)));
    decay.data<float>()[i] = static_cast<float>(scale->get_double(i % heads) * softplus);
  }
  CHECK_OK(give(context, 0, a->dtype(), std::move(decay)));
  if (!context.wants_output(1)) return ok();
  TRY(const Tensor* b, context.input(3));
  CHECK_OK(check_dims(context, "b", *b, a->dims().span()));
  TRY(const Tensor rates, as<float>(context, *b));
  TRY(Tensor beta, context.allocate(DType::kFloat32, b->dims()));
  for (int64_t i = 0; i < b->size(); ++i) beta.data<float>()[i] = sigmoid(rates.data<float>()[i]);
  return give(context, 1, b->dtype(), std::move(beta));
}

Status infer_linear_attention_gate(InferContext& context) {
  context.same_as_input(0, 0);
  if (context.wants_output(1)) context.same_as_input(1, 0);
  return ok();
}

Status run_engram_gate(KernelContext& context) {
  TRY(const Tensor* key, context.input(0));
  TRY(const Tensor* query, context.input(1));
  TRY(const Tensor* value, context.input(2));
  if (key->rank() != 4)
    return context.error("key must be [batch, steps, streams, size], is " + to_string(*key));
  const int64_t rows = key->dim(0) * key->dim(1), streams = key->dim(2), width = key->dim(3);
  CHECK_OK(check_dims(context, "query", *query, key->dims().span()));
  CHECK_OK(check_dims(context, "value", *value, {{key->dim(0), key->dim(1), width}}));
  TRY(const Tensor k, as<float>(context, *key));
  TRY(const Tensor q, as<float>(context, *query));
  TRY(const Tensor v, as<float>(context, *value));
  TRY(const Tensor k_scale, optional_as<float>(context, 3));
  TRY(const Tensor q_scale, optional_as<float>(context, 4));
  TRY(const Tensor v_scale, optional_as<float>(context, 5));
  const bool normed = context.wants_output(1);
  for (const auto& [name, scale, needed] : {std::tuple{"key_norm_scale", &k_scale, true},
                                            std::tuple{"query_norm_scale", &q_scale, true},
                                            std::tuple{"conv_norm_scale", &v_scale, normed}}) {
    if (absent(*scale) && needed) return context.error(std::string(name) + " is missing");
    if (!absent(*scale)) CHECK_OK(check_dims(context, name, *scale, {{streams, width}}));
  }
  const float epsilon = context.attributes.get_float("epsilon", 1e-5f);
  TRY(Tensor y, context.allocate(DType::kFloat32, key->dims()));
  TRY(Tensor z, context.allocate(DType::kFloat32, normed ? key->dims() : Dims({0})));
  for (int64_t row = 0; row < rows * streams; ++row) {
    const int64_t stream = row % streams * width;
    const float *kr = k.data<float>() + row * width, *qr = q.data<float>() + row * width;
    const float k_root = root_of(kr, width, epsilon);
    const float q_root = root_of(qr, width, epsilon);
    double dot = 0;
    for (int64_t j = 0; j < width; ++j)
      dot += static_cast<double>(kr[j] / k_root * k_scale.data<float>()[stream + j]) *
             static_cast<double>(qr[j] / q_root * q_scale.data<float>()[stream + j]);
    dot /= std::sqrt(static_cast<double>(width));
    const double root = std::sqrt(std::max(std::fabs(dot), 1e-6));
    const float gate = sigmoid(static_cast<float>(dot > 0 ? root : dot < 0 ? -root : 0.0));
    float* to = y.data<float>() + row * width;
    for (int64_t j = 0; j < width; ++j) to[j] = gate * v.data<float>()[row / streams * width + j];
    if (!normed) continue;
    const float root_v = root_of(to, width, epsilon);
    for (int64_t j = 0; j < width; ++j)
      z.data<float>()[row * width + j] = to[j] / root_v * v_scale.data<float>()[stream + j];
  }
  CHECK_OK(give(context, 0, value->dtype(), std::move(y)));
  return normed ? give(context, 1, value->dtype(), std::move(z)) : ok();
}

constexpr TypeSet kHalfs = kF32 | kF16 | kBf16;

}  // namespace

OPERATOR(microsoft_BranchwiseRMSNorm) = {
    .name = "BranchwiseRMSNorm",
    .domain = "com.microsoft",
    .doc = "RMS normalisation of each branch of a stream",
    .versions = {1},
    .inputs = {{"X", "T"}, {"scale", "M", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"epsilon", 1e-5f}, {"num_branches", 0}},
    .types = {{"T", {{1, kHalfs}}}, {"M", {{1, kHalfs}}}},
    .infer = infer_unary,
    .reference = run_branchwise_rms_norm,
};

OPERATOR(microsoft_HyperConnectionPreMix) = {
    .name = "HyperConnectionPreMix",
    .domain = "com.microsoft",
    .doc = "the weighted sum of several streams",
    .versions = {1},
    .inputs = {{"streams", "T"}, {"pre_mix", "M"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"num_branches", 0}, {"reduction_scale", 1.0f}},
    .types = {{"T", {{1, kHalfs}}}, {"M", {{1, kHalfs}}}},
    .infer = infer_pre_mix,
    .reference = run_pre_mix,
};

OPERATOR(microsoft_HyperConnectionPostMix) = {
    .name = "HyperConnectionPostMix",
    .domain = "com.microsoft",
    .doc = "mixes several streams and adds a layer's output to each",
    .versions = {1},
    .inputs =
        {
            {"streams", "T"},
            {"block_output", "T"},
            {"post_mix", "M"},
            {"stream_mix", "M", kOptional},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"num_branches", 0}},
    .types = {{"T", {{1, kHalfs}}}, {"M", {{1, kHalfs}}}},
    .infer = infer_unary,
    .reference = run_post_mix,
};

OPERATOR(microsoft_ScaledSiLU) = {
    .name = "ScaledSiLU",
    .domain = "com.microsoft",
    .doc = "SiLU of scaled numbers, every step rounded",
    .versions = {1},
    .inputs = {{"X", "T"}, {"scale", "M", kOptional}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{1, kHalfs}}}, {"M", {{1, kHalfs}}}},
    .infer = infer_unary,
    .reference = run_scaled_silu,
};

OPERATOR(microsoft_LinearAttentionGate) = {
    .name = "LinearAttentionGate",
    .domain = "com.microsoft",
    .doc = "decay and update rate of a gated linear attention",
    .versions = {1},
    .inputs =
        {
            {"a", "T"},
            {"dt_bias", "TF"},
            {"decay_scale", "TF"},
            {"b", "T", kOptional},
        },
    .outputs = {{"decay", "T"}, {"beta", "T", kOptional}},
    .types = {{"T", {{1, kHalfs}}}, {"TF", {{1, kF32}}}},
    .infer = infer_linear_attention_gate,
    .reference = run_linear_attention_gate,
};

OPERATOR(microsoft_EngramGate) = {
    .name = "EngramGate",
    .domain = "com.microsoft",
    .doc = "a value gated by the likeness of key and query",
    .versions = {1},
    .inputs =
        {
            {"key", "T"},
            {"query", "T"},
            {"value", "T"},
            {"key_norm_scale", "T"},
            {"query_norm_scale", "T"},
            {"conv_norm_scale", "T", kOptional},
        },
    .outputs = {{"output", "T"}, {"gated_value_normed", "T", kOptional}},
    .attributes = {{"epsilon", 1e-5f}},
    .types = {{"T", {{1, kHalfs}}}},
    .infer = infer_linear_attention_gate,
    .reference = run_engram_gate,
};

}  // namespace tombolo::ops
