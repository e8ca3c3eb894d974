// Mixtures of experts: a router sends each row to the k experts that it likes best.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/gemm.h"
#include "ops/microsoft/block_weights.h"
#include "ops/microsoft/sparse_mixer.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// One of the layers inside the experts: weights [experts, out, in], bias [experts, out].
struct Layer {
  int64_t out = 0, in = 0;
  Tensor weights, bias;  ///< float; bias undefined when absent; weights when the layer is

  bool given() const { return !absent(weights); }
  /// y [rows, out] = x [rows, in] W^T + b of one expert.
  void run(int64_t expert, int64_t rows, const float* x, float* y) const {
    for (int64_t i = 0; i < rows * out; ++i)
      y[i] = absent(bias) ? 0 : bias.data<float>()[expert * out + i % out];
    gemm<float>(rows, out, in, {x, in, 1}, {weights.data<float>() + expert * out * in, 1, in}, y,
                out, true);
  }
};

struct Experts {
  int64_t count = 0, hidden = 0, inner = 0;
  bool gated = false;        ///< the first layer gives values and gates
  bool interleaved = false;  ///< gates and values alternate, else the gates come first
  Layer first, second, third;
};

struct Activation {
  Text kind;
  double alpha, beta, limit;

  double operator()(double x) const {
    if (kind == "relu") return x < 0 ? 0 : x;
    if (kind == "gelu") return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    if (kind == "silu") return x / (1 + std::exp(-x));
    return x;
  }
  double gate(double g, double linear) const {
    if (limit > 0) {
      g = std::min(g, limit);
      linear = std::clamp(linear, -limit, limit);
    }
    return g / (1 + std::exp(-alpha * g)) * (linear + beta);
  }
};

Result<Activation> read_activation_kind(const KernelContext& context) {
  const auto& attributes = context.attributes;
  Activation result{attributes.get_string("activation_type", "relu"),
                    static_cast<double>(attributes.get_float("activation_alpha", 1)),
                    static_cast<double>(attributes.get_float("activation_beta", 0)),
                    static_cast<double>(attributes.get_float("swiglu_limit", 0))};
  for (const char* known : {"relu", "gelu", "silu", "identity", "swiglu"})
    if (result.kind == known) return result;
  return context.error("activation_type is \"" + std::string(result.kind) + "\"");
}

/// The k experts of a row: the best k by a softmax over all, equal scores the lower one, or the two
/// of the sparse mixer; the sum of what counts of them made 1 on request.
struct Router {
  int64_t experts, k;
  bool mixes, normalize;

  std::vector<MixedExpert> operator()(const float* scores, const float* weights) const {
    std::vector<MixedExpert> result;
    if (mixes) {
      const auto mixed = sparse_mixer(scores, experts);
      result.assign(mixed.begin(), mixed.end());
    } else {
      result = best(scores);
    }
    double chosen = 0;
    for (MixedExpert& each : result) {
      if (weights != nullptr) each.weight = static_cast<double>(weights[each.expert]);
      chosen += each.weight;
    }
    if (normalize && chosen > 0)
      for (MixedExpert& each : result) each.weight /= chosen;
    return result;
  }

 private:
  std::vector<MixedExpert> best(const float* scores) const {
    std::vector<int64_t> order(static_cast<size_t>(experts));
    for (int64_t e = 0; e < experts; ++e) order[static_cast<size_t>(e)] = e;
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
    const auto peak = static_cast<double>(scores[order[0]]);
    double total = 0;
    for (int64_t e = 0; e < experts; ++e) total += std::exp(static_cast<double>(scores[e]) - peak);
    std::vector<MixedExpert> result;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t expert = order[static_cast<size_t>(i)];
      result.push_back({expert, std::exp(static_cast<double>(scores[expert]) - peak) / total});
    }
    return result;
  }
};

Status run_experts(KernelContext& context, const Tensor& input, const Experts& experts,
                   const Tensor* router_weights) {
  TRY(const Tensor* probs, context.input(1));
  const auto& attributes = context.attributes;
  TRY(const Activation activation, read_activation_kind(context));
  const int64_t rows = experts.hidden == 0 ? 0 : input.size() / experts.hidden;
  const int64_t k = attributes.get_int("k", 1);
  CHECK_OK(check_dims(context, "router_probs", *probs, {{rows, experts.count}}));
  if (router_weights != nullptr)
    CHECK_OK(check_dims(context, "router_weights", *router_weights, {{rows, experts.count}}));
  if (k < 1 || k > experts.count)
    return context.error("k is " + std::to_string(k) + ", there are " +
                         std::to_string(experts.count) + " experts");
  TRY(const Tensor x, as<float>(context, input));
  TRY(const Tensor scores, as<float>(context, *probs));
  TRY(const Tensor given,
      router_weights == nullptr ? Result<Tensor>(Tensor()) : as<float>(context, *router_weights));
  TRY(Tensor y, context.allocate(DType::kFloat32, input.dims()));
  std::fill_n(y.data<float>(), y.size(), 0.0f);
  const Router router{experts.count, k, attributes.get_int("use_sparse_mixer", 0) != 0,
                      attributes.get_int("normalize_routing_weights", 0) != 0};
  if (router.mixes && (k != kMixedExperts || experts.count < kMixedExperts))
    return context.error("use_sparse_mixer takes two experts of two or more: k is " +
                         std::to_string(k) + ", there are " + std::to_string(experts.count) +
                         " experts");
  const int64_t wide = experts.first.out, inner = experts.inner;
  const int64_t sizes[] = {wide + inner + inner + experts.hidden};
  CHECK_OK(context.allocate(DType::kFloat32, sizes));  // counts what a thread needs
  context.parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> buffer(static_cast<size_t>(sizes[0]));
    float *a = buffer.data(), *b = a + wide, *c = b + inner, *d = c + inner;
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x.data<float>() + row * experts.hidden;
      const std::vector<MixedExpert> routes =
          router(scores.data<float>() + row * experts.count,
                 absent(given) ? nullptr : given.data<float>() + row * experts.count);
      for (const MixedExpert& each : routes) {
        experts.first.run(each.expert, 1, from, a);
        if (experts.third.given()) experts.third.run(each.expert, 1, from, c);
        for (int64_t i = 0; i < inner; ++i) {
          if (experts.gated) {
            const float gate = experts.interleaved ? a[2 * i] : a[i];
            const float linear = experts.interleaved ? a[2 * i + 1] : a[inner + i];
            b[i] = static_cast<float>(
                activation.gate(static_cast<double>(gate), static_cast<double>(linear)));
          } else if (experts.third.given() && activation.kind == "swiglu") {
            b[i] = static_cast<float>(
                activation.gate(static_cast<double>(a[i]), static_cast<double>(c[i])));
          } else {
            b[i] = static_cast<float>(activation(static_cast<double>(a[i])) *
                                      (experts.third.given() ? static_cast<double>(c[i]) : 1));
          }
        }
        experts.second.run(each.expert, 1, b, d);
        for (int64_t i = 0; i < experts.hidden; ++i)
          y.data<float>()[row * experts.hidden + i] +=
              static_cast<float>(each.weight * static_cast<double>(d[i]));
      }
    }
  });
  return give(context, 0, input.dtype(), std::move(y));
}

/// Sizes that the layers must agree on. `first_out` is the height of the first weights.
Result<Experts> read_sizes(const KernelContext& context, const Tensor& input,
                           const Tensor& first_weights) {
  Experts experts;
  if ((input.rank() != 2 && input.rank() != 3) || first_weights.rank() != 3)
    return context.error("input must have rank 2 or 3 and fc1_experts_weights 3, are " +
                         to_string(input) + " and " + to_string(first_weights));
  constexpr int64_t kMost = 1 << 30;
  if (first_weights.dim(0) > 1 << 20 || first_weights.dim(1) > kMost ||
      input.dim(input.rank() - 1) > kMost)
    return context.error("too many experts, or too wide: " + to_string(first_weights));
  experts.count = first_weights.dim(0);
  experts.hidden = input.dim(input.rank() - 1);
  const int64_t height = first_weights.dim(1);
  const int64_t fusion = context.attributes.get_int("swiglu_fusion", 0);
  experts.gated =
      context.attributes.get_string("activation_type", "relu") == "swiglu" && fusion != 0;
  experts.interleaved = fusion == 1;
  if (fusion < 0 || fusion > 2 || (experts.gated && height % 2 != 0))
    return context.error("swiglu_fusion is " + std::to_string(fusion) + " with " +
                         std::to_string(height) + " rows of fc1_experts_weights");
  experts.inner = experts.gated ? height / 2 : height;
  experts.first.out = height;
  experts.first.in = experts.hidden;
  experts.second.out = experts.hidden;
  experts.second.in = experts.inner;
  experts.third.out = experts.inner;
  experts.third.in = experts.hidden;
  return experts;
}

Status read_bias(const KernelContext& context, const Experts& experts, size_t index,
                 const char* name, Layer& layer) {
  TRY(layer.bias, optional_as<float>(context, index));
  if (!absent(layer.bias))
    CHECK_OK(check_dims(context, name, layer.bias, {{experts.count, layer.out}}));
  return ok();
}

Status run_moe(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  TRY(const Tensor* first, context.input(2));
  TRY(Experts experts, read_sizes(context, *input, *first));
  Layer* const layers[] = {&experts.first, &experts.second, &experts.third};
  const char* const names[] = {"fc1_experts_weights", "fc2_experts_weights", "fc3_experts_weights"};
  for (size_t i = 0; i < 3; ++i) {
    Layer& layer = *layers[i];
    TRY(layer.weights, optional_as<float>(context, 2 + 2 * i));
    if (absent(layer.weights) && i < 2) return context.error(std::string(names[i]) + " is needed");
    if (!absent(layer.weights))
      CHECK_OK(
          check_dims(context, names[i], layer.weights, {{experts.count, layer.out, layer.in}}));
    CHECK_OK(read_bias(context, experts, 3 + 2 * i, "an experts' bias", layer));
  }
  return run_experts(context, *input, experts, nullptr);
}

/// The weights of one layer from codes of `bits`, scales and zero points.
Status unpack(const KernelContext& context, const Experts& experts, size_t weights, size_t scales,
              size_t zeros, int64_t bits, Layer& layer) {
  TRY(const Tensor* codes, context.optional_input(weights));
  if (codes == nullptr) return ok();
  TRY(const Tensor* factor, context.input(scales));
  TRY(const Tensor* zero, context.optional_input(zeros));
  const int64_t given = context.attributes.get_int("block_size", 0);
  if ((bits != 2 && bits != 4 && bits != 8) || layer.in * bits % 8 != 0 || given > 1 << 30)
    return context.error("expert_weight_bits is " + std::to_string(bits) + ", block_size is " +
                         std::to_string(given) + " with rows of " + std::to_string(layer.in));
  const int64_t block = given > 0 ? given : std::max<int64_t>(8, (layer.in + 7) / 8 * 8);
  const int64_t blocks = (layer.in + block - 1) / block;
  if (codes->dtype() != DType::kUInt8)
    return unsupported("experts' weights of " + std::string(name_of(codes->dtype())));
  CHECK_OK(check_dims(context, "experts' weights", *codes,
                      {{experts.count, layer.out, layer.in * bits / 8}}));
  if (factor->size() != experts.count * layer.out * blocks)
    return context.error("experts' scales must be " +
                         dims_to_string({{experts.count, layer.out, blocks}}) + ", is " +
                         to_string(*factor));
  const int64_t zero_bytes = (blocks * bits + 7) / 8;
  // Without blocks the zero points of neighbouring rows share bytes.
  const bool by_rows = given > 0;
  const int64_t zero_count = by_rows ? experts.count * layer.out * zero_bytes
                                     : experts.count * ((layer.out * bits + 7) / 8);
  if (zero != nullptr && zero->size() != zero_count)
    return context.error("experts' zero points must be " + std::to_string(zero_count) +
                         " bytes, is " + to_string(*zero));
  TRY(const Tensor wide, as<float>(context, *factor));
  TRY(layer.weights, context.allocate(DType::kFloat32, {{experts.count, layer.out, layer.in}}));
  const int64_t row_bytes = layer.in * bits / 8;
  const int width = static_cast<int>(bits);
  for (int64_t row = 0; row < experts.count * layer.out; ++row)
    for (int64_t i = 0; i < layer.in; ++i) {
      const int64_t at = i / block;
      auto offset = static_cast<float>(1 << (bits - 1));
      if (zero != nullptr && by_rows)
        offset =
            static_cast<float>(packed_code(zero->data<uint8_t>() + row * zero_bytes, at, width));
      else if (zero != nullptr)
        offset = static_cast<float>(
            packed_code(zero->data<uint8_t>() + row / layer.out * ((layer.out * bits + 7) / 8),
                        row % layer.out, width));
      const auto code =
          static_cast<float>(packed_code(codes->data<uint8_t>() + row * row_bytes, i, width));
      layer.weights.data<float>()[row * layer.in + i] =
          (code - offset) * wide.data<float>()[row * blocks + at];
    }
  return ok();
}

Status run_qmoe(KernelContext& context) {
  TRY(const Tensor* input, context.input(0));
  TRY(const Tensor* first, context.input(2));
  TRY(const Tensor* router_weights, context.optional_input(14));
  const Text kind = context.attributes.get_string("quant_type", "int");
  if (kind != "int") return unsupported("quant_type \"" + std::string(kind) + "\" of QMoE");
  if (context.attributes.get_int("weights_prepacked", -1) == 1)
    return unsupported("experts' weights prepacked for a kind of machine");
  TRY(Experts experts, read_sizes(context, *input, *first));
  const int64_t all_bits = context.attributes.get_int("expert_weight_bits", 4);
  Layer* const layers[] = {&experts.first, &experts.second, &experts.third};
  const char* const own_bits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                  "fc3_expert_weight_bits"};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t own = context.attributes.get_int(own_bits[i], 0);
    CHECK_OK(unpack(context, experts, 2 + 3 * i, 3 + 3 * i, 11 + i, own > 0 ? own : all_bits,
                    *layers[i]));
    CHECK_OK(read_bias(context, experts, 4 + 3 * i, "an experts' bias", *layers[i]));
  }
  if (!experts.second.given()) return context.error("fc2_experts_weights is needed");
  return run_experts(context, *input, experts, router_weights);
}

}  // namespace

OPERATOR(microsoft_MoE) = {
    .name = "MoE",
    .domain = "com.microsoft",
    .doc = "a mixture of experts",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"router_probs", "T"},
            {"fc1_experts_weights", "T"},
            {"fc1_experts_bias", "T", kOptional},
            {"fc2_experts_weights", "T"},
            {"fc2_experts_bias", "T", kOptional},
            {"fc3_experts_weights", "T", kOptional},
            {"fc3_experts_bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"activation_alpha", 1.0f},
            {"activation_beta", 0.0f},
            {"activation_type", "relu"},
            {"k", 1},
            {"normalize_routing_weights", 0},
            {"swiglu_fusion", 0},
            {"swiglu_limit", Attr::kFloat},
            {"use_sparse_mixer", 0},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_unary,
    .reference = run_moe,
};

OPERATOR(microsoft_QMoE) = {
    .name = "QMoE",
    .domain = "com.microsoft",
    .doc = "a mixture of experts with weights of a few bits",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"router_probs", "T"},
            {"fc1_experts_weights", "T1"},
            {"fc1_scales", "T2", kOptional},
            {"fc1_experts_bias", "T", kOptional},
            {"fc2_experts_weights", "T1"},
            {"fc2_scales", "T2", kOptional},
            {"fc2_experts_bias", "T", kOptional},
            {"fc3_experts_weights", "T1", kOptional},
            {"fc3_scales", "T2", kOptional},
            {"fc3_experts_bias", "T", kOptional},
            {"fc1_zero_points", "T1", kOptional},
            {"fc2_zero_points", "T1", kOptional},
            {"fc3_zero_points", "T1", kOptional},
            {"router_weights", "T", kOptional},
            {"fc1_global_scale", "T4", kOptional},
            {"fc2_global_scale", "T4", kOptional},
            {"fc1_act_scale", "T4", kOptional},
            {"fc2_act_scale", "T4", kOptional},
            {"fc1_act_block_scale", "T2", kOptional},
            {"fc2_act_block_scale", "T2", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"accuracy_level", 0},
            {"activation_alpha", 1.0f},
            {"activation_beta", 0.0f},
            {"activation_type", "relu"},
            {"block_size", Attr::kInt},
            {"expert_weight_bits", 4},
            {"fc1_expert_weight_bits", Attr::kInt},
            {"fc2_expert_weight_bits", Attr::kInt},
            {"fc3_expert_weight_bits", Attr::kInt},
            {"k", 1},
            {"normalize_routing_weights", 0},
            {"quant_type", "int"},
            {"swiglu_fusion", 0},
            {"swiglu_limit", Attr::kFloat},
            {"use_sparse_mixer", 0},
            {"weights_prepacked", -1},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"T1", {{1, kU8 | tensor_of(DType::kFloat8E4M3FN)}}},
            {"T2", {{1, kBf16 | kE8m0 | kF16 | kF32 | tensor_of(DType::kFloat8E4M3FN)}}},
            {"T4", {{1, kF32}}},
        },
    .infer = infer_unary,
    .reference = run_qmoe,
};

}  // namespace tombolo::ops
