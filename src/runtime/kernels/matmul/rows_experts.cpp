// MoE and QMoE of com.microsoft: the rows of each expert go together through its layers, whose
// weights are packed as those of MatMul and MatMulNBits, or read as they come.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/microsoft/sparse_mixer.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_small.h"
#include "runtime/kernels/matmul/grouped.h"
#include "runtime/kernels/matmul/nbits.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

/// One of the layers inside the experts: y = x W^T + b.
struct ExpertLayer {
  int64_t out = 0, in = 0;
  bool given = false;
  size_t weights = 0, bias = 0;  ///< inputs
  // Of codes.
  size_t scales = 0, zeros = 0;
  int bits = 4;
  int64_t row_bytes = 0;
  NbitsShape shape = {};

  const std::byte* packed = nullptr;  ///< expert after expert; null: weights come with the run
  size_t packed_bytes = 0;            ///< of one
};

struct ExpertsState final : KernelState {
  int64_t rows = 1, count = 1, hidden = 1, inner = 1, k = 1;
  bool codes = false, bytes = false;  ///< bytes: what meets codes may be rounded to bytes
  bool gated = false, interleaved = false, swiglu = false, mixes = false, normalize = false;
  Unary activation = Unary::kRelu;
  float alpha = 1, beta = 0, limit = 0;
  ExpertLayer layers[3];
};

constexpr size_t kScores = 1, kRouterWeights = 14;
constexpr int64_t kMostRows = 512;  ///< of an expert at a time, so that little memory does

bool read_activation(const KernelQuery& q, ExpertsState& s) {
  const auto& attributes = q.attributes;
  const Text kind = attributes.get_string("activation_type", "relu");
  s.alpha = 1;
  if (kind == "relu")
    s.activation = Unary::kRelu;
  else if (kind == "gelu")
    s.activation = Unary::kGelu;
  else if (kind == "silu" || kind == "swiglu")
    s.activation = Unary::kSwish;
  else if (kind == "identity")
    s.activation = Unary::kIdentity;
  else
    return false;
  s.swiglu = kind == "swiglu";
  const int64_t fusion = attributes.get_int("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2) return false;
  s.gated = s.swiglu && fusion != 0;
  s.interleaved = fusion == 1;
  if (!s.swiglu) return true;
  s.alpha = attributes.get_float("activation_alpha", 1);
  s.beta = attributes.get_float("activation_beta", 0);
  s.limit = attributes.get_float("swiglu_limit", 0);
  return true;
}

bool fits(const KernelQuery& q, size_t index, std::initializer_list<int64_t> dims) {
  return Dims(q.dims(index)) == Dims(std::span(dims.begin(), dims.size()));
}

bool plan_layer(const KernelQuery& q, const ExpertsState& s, size_t number, ExpertLayer& layer) {
  const size_t step = s.codes ? 3 : 2;
  layer.weights = 2 + step * number;
  layer.bias = layer.weights + step - 1;
  layer.given = q.has_input(layer.weights);
  if (!layer.given) return number == 2;
  if ((s.codes && q.constant(layer.weights) == nullptr) || layer.out < 1 || layer.in < 1)
    return false;
  if (q.has_input(layer.bias) &&
      (!is_f32_or_short(q.dtype(layer.bias)) || !fits(q, layer.bias, {s.count, layer.out})))
    return false;
  if (!s.codes) {
    layer.packed_bytes = static_cast<size_t>(packed_b_floats(layer.in, layer.out)) * sizeof(float);
    return is_f32_or_short(q.dtype(layer.weights)) &&
           fits(q, layer.weights, {s.count, layer.out, layer.in});
  }
  layer.scales = layer.weights + 1;
  layer.zeros = 11 + number;
  const Text names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                        "fc3_expert_weight_bits"};
  const int64_t own = q.attributes.get_int(names[number], 0);
  const int64_t bits = own > 0 ? own : q.attributes.get_int("expert_weight_bits", 4);
  const int64_t given = q.attributes.get_int("block_size", 0);
  if ((bits != 2 && bits != 4 && bits != 8) || layer.in * bits % 8 != 0 || given > 1 << 28 ||
      given % 8 != 0)
    return false;
  layer.bits = static_cast<int>(bits);
  layer.row_bytes = layer.in * bits / 8;
  const int64_t block = given > 0 ? given : (layer.in + 15) / 16 * 16;
  const NbitsKind kind = nbits_kind(bits, block);
  layer.shape = {.n = layer.out,
                 .k = layer.in,
                 .block = block,
                 .has_zeros = q.has_input(layer.zeros) || nbits_of(kind) != bits,
                 .kind = kind};
  const int64_t blocks = layer.shape.blocks();
  layer.packed_bytes = (nbits_packed_bytes(layer.shape) + 63) / 64 * 64;
  if (q.dtype(layer.weights) != DType::kUInt8 ||
      !fits(q, layer.weights, {s.count, layer.out, layer.row_bytes}) ||
      q.constant(layer.scales) == nullptr || !is_f32_or_short(q.dtype(layer.scales)) ||
      q.inputs[layer.scales].size() != s.count * layer.out * blocks)
    return false;
  if (!q.has_input(layer.zeros)) return true;
  const int64_t zero_bytes =
      given > 0 ? layer.out * ((blocks * bits + 7) / 8) : (layer.out * bits + 7) / 8;
  return q.constant(layer.zeros) != nullptr && q.dtype(layer.zeros) == DType::kUInt8 &&
         q.inputs[layer.zeros].size() == s.count * zero_bytes;
}

bool plan_experts(const KernelQuery& q, ExpertsState& s) {
  s.codes = q.node.op_type() == "QMoE";
  const auto& attributes = q.attributes;
  if (active_isa() == Isa::kScalar || q.inputs.size() < 5 || !is_f32_or_short(q.dtype(0)) ||
      !is_f32_or_short(q.dtype(kScores)) || !read_activation(q, s))
    return false;
  const auto x = q.dims(0), first = q.dims(2);
  if ((x.size() != 2 && x.size() != 3) || first.size() != 3 || element_count(x) < 1 ||
      first[0] < 1 || first[0] > 1 << 16 || first[1] > 1 << 28 || x.back() > 1 << 28)
    return false;
  s.count = first[0];
  s.hidden = x.back();
  s.rows = element_count(x) / s.hidden;
  s.inner = s.gated ? first[1] / 2 : first[1];
  s.k = attributes.get_int("k", 1);
  s.mixes = attributes.get_int("use_sparse_mixer", 0) != 0;
  s.normalize = attributes.get_int("normalize_routing_weights", 0) != 0;
  if ((s.gated && first[1] % 2 != 0) || s.k < 1 || s.k > s.count ||
      (s.mixes && s.k != kMixedExperts) || !fits(q, kScores, {s.rows, s.count}))
    return false;
  if (s.codes) {
    if (attributes.get_string("quant_type", "int") != "int" ||
        attributes.get_int("weights_prepacked", -1) == 1)
      return false;
    for (size_t i = kRouterWeights + 1; i < q.inputs.size(); ++i)
      if (q.has_input(i)) return false;
    if (q.has_input(kRouterWeights) &&
        (!is_f32_or_short(q.dtype(kRouterWeights)) || !fits(q, kRouterWeights, {s.rows, s.count})))
      return false;
    s.bytes = true;
  }
  const int64_t outs[] = {first[1], s.hidden, s.inner}, ins[] = {s.hidden, s.inner, s.hidden};
  for (size_t i = 0; i < 3; ++i) {
    s.layers[i].out = outs[i];
    s.layers[i].in = ins[i];
    if (!plan_layer(q, s, i, s.layers[i])) return false;
    if (s.codes && s.layers[i].given)
      s.bytes =
          s.bytes && nbits_may_round(s.layers[i].shape, attributes.get_int("accuracy_level", 0),
                                     q.options.fast_math);
  }
  // Without anything to multiply there is no gate.
  if (s.swiglu && !s.gated && !s.layers[2].given) return false;
  return true;
}
bool supports_experts(const KernelQuery& query) {
  ExpertsState state;
  return plan_experts(query, state);
}

void pack_codes(const PrepareContext& q, const ExpertsState& s, const ExpertLayer& layer,
                std::byte* target) {
  const Tensor &codes = *q.constant(layer.weights), &scales = *q.constant(layer.scales);
  const Tensor* zeros = q.constant(layer.zeros);
  const int64_t blocks = layer.shape.blocks(), all = s.count * layer.out * blocks;
  std::vector<float> wide(static_cast<size_t>(all));
  const float* factors = load_floats(scales, 0, all, wide.data());
  std::vector<uint8_t> each;
  if (layer.shape.has_zeros) each.assign(static_cast<size_t>(all), 2);
  // Without blocks the zero points of neighbouring rows share bytes.
  const int64_t line = q.attributes.get_int("block_size", 0) > 0 ? blocks : layer.out;
  for (int64_t i = 0; zeros != nullptr && i < all; ++i) {
    const int64_t bit = i % line * layer.bits;
    const uint8_t byte = zeros->data<uint8_t>()[i / line * ((line * layer.bits + 7) / 8) + bit / 8];
    each[static_cast<size_t>(i)] = static_cast<uint8_t>(byte >> bit % 8 & ((1 << layer.bits) - 1));
  }
  for (int64_t e = 0; e < s.count; ++e, target += layer.packed_bytes)
    nbits_pack(layer.shape,
               {.codes = codes.data<uint8_t>() + e * layer.out * layer.row_bytes,
                .row_bytes = layer.row_bytes,
                .bits = layer.bits,
                .scales = factors + e * layer.out * blocks,
                .zeros = each.empty() ? nullptr : each.data() + e * layer.out * blocks},
               target);
}

void pack_floats(const PrepareContext& q, const ExpertsState& s, const ExpertLayer& layer,
                 std::byte* target) {
  const Tensor& weights = *q.constant(layer.weights);
  const int64_t size = layer.out * layer.in;
  std::vector<float> wide(static_cast<size_t>(weights.dtype() == DType::kFloat32 ? 0 : size));
  for (int64_t e = 0; e < s.count; ++e, target += layer.packed_bytes)
    pack_b(load_floats(weights, e * size, size, wide.data()), 1, layer.in, layer.in, layer.out, 1,
           reinterpret_cast<float*>(target));
}

Result<std::unique_ptr<KernelState>> prepare_experts(const PrepareContext& q) {
  auto state = std::make_unique<ExpertsState>();
  plan_experts(q, *state);
  int64_t floats = 0;
  for (ExpertLayer& layer : state->layers) {
    if (!layer.given) continue;
    floats += layer.out;
    if (q.constant(layer.weights) == nullptr) continue;
    const std::string key = "experts/" + std::string(name_of(active_isa())) + "/" +
                            std::to_string(layer.bits) + "/" + std::to_string(layer.shape.block);
    auto fill = [&](std::byte* target) {
      (state->codes ? pack_codes : pack_floats)(q, *state, layer, target);
    };
    const std::array sources = {q.constant(layer.weights),
                                state->codes ? q.constant(layer.scales) : nullptr,
                                state->codes ? q.constant(layer.zeros) : nullptr};
    TRY(layer.packed,
        q.packed(sources, key, layer.packed_bytes * static_cast<size_t>(state->count), fill));
  }
  // Rows of one expert: what goes in, and what each layer gives.
  state->scratch_bytes = static_cast<size_t>(std::min(state->rows, kMostRows) *
                                             (floats + state->hidden + state->inner)) *
                         sizeof(float);
  return state;
}

/// A row that goes to an expert, and what the result counts.
struct Routed {
  int64_t row;
  float weight;
};

/// What each row chose, k experts a row. Equal scores: the lower expert.
struct Choices {
  std::vector<int64_t> experts;
  std::vector<float> weights;

  Choices(const ExpertsState& s, const float* scores, const float* given)
      : experts(static_cast<size_t>(s.rows * s.k)), weights(experts.size()) {
    std::vector<int64_t> order(static_cast<size_t>(s.count));
    std::vector<double> own(static_cast<size_t>(s.k));
    for (int64_t row = 0; row < s.rows; ++row, scores += s.count) {
      if (s.mixes)
        mix(s, scores, order, own);
      else
        take_best(s, scores, order, own);
      double sum = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        if (given != nullptr) own[i] = static_cast<double>(given[row * s.count + order[i]]);
        sum += own[i];
      }
      const auto at = static_cast<size_t>(row * s.k);
      for (size_t i = 0; i < own.size(); ++i) {
        experts[at + i] = order[i];
        weights[at + i] = static_cast<float>(s.normalize && sum > 0 ? own[i] / sum : own[i]);
      }
    }
  }

 private:
  static void mix(const ExpertsState& s, const float* scores, std::vector<int64_t>& order,
                  std::vector<double>& own) {
    const auto mixed = sparse_mixer(scores, s.count);
    for (size_t i = 0; i < mixed.size(); ++i) {
      order[i] = mixed[i].expert;
      own[i] = mixed[i].weight;
    }
  }
  static void take_best(const ExpertsState& s, const float* scores, std::vector<int64_t>& order,
                        std::vector<double>& own) {
    for (int64_t e = 0; e < s.count; ++e) order[static_cast<size_t>(e)] = e;
    std::partial_sort(order.begin(), order.begin() + s.k, order.end(), [&](int64_t a, int64_t b) {
      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    const auto peak = static_cast<double>(scores[order[0]]);
    double total = 0;
    for (int64_t e = 0; e < s.count; ++e) total += std::exp(static_cast<double>(scores[e]) - peak);
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = std::exp(static_cast<double>(scores[order[i]]) - peak) / total;
  }
};

/// The rows of each expert, [first[e], first[e + 1]) of the list.
struct Routes {
  std::vector<int64_t> first;
  std::vector<Routed> rows;

  Routes(const ExpertsState& s, const Choices& choices) {
    Grouped grouped(choices.experts, s.count);
    for (const int64_t choice : grouped.members)
      rows.push_back({choice / s.k, choices.weights[static_cast<size_t>(choice)]});
    first = std::move(grouped.first);
  }
};

/// Weights that come with the run: few rows read them where they lie; for more each panel is packed
/// where it is used.
void run_layer_as_it_lies(const ExpertLayer& layer, const Tensor& weights, int64_t expert,
                          int64_t rows, const float* x, const float* bias, float* y) {
  const int64_t first = expert * layer.out * layer.in;
  const bool floats = weights.dtype() == DType::kFloat32;
  constexpr int64_t kRowsAtOnce = 4, kFewRows = 8;
  if (floats && rows <= kFewRows && gemm_dots_fits(kRowsAtOnce, {.col_bias = bias})) {
    for (int64_t r = 0; r < rows; r += kRowsAtOnce)
      gemm_dots(std::min(kRowsAtOnce, rows - r), layer.out, layer.in, x + r * layer.in, layer.in,
                weights.data<float>() + first, layer.in, 1, y + r * layer.out, layer.out,
                {.col_bias = bias});
    return;
  }
  const int64_t width = gemm_tiles().panel(), panels = (layer.out + width - 1) / width;
  parallel(
      panels, std::max<int64_t>(1, 16384 / (width * layer.in)), [&](int64_t begin, int64_t end) {
        const auto size = static_cast<size_t>(width * layer.in);
        float* const panel = thread_floats(1, size);
        float* const wide = floats ? nullptr : thread_floats(2, size);
        for (int64_t p = begin; p < end; ++p) {
          const int64_t column = p * width, columns = std::min(width, layer.out - column);
          pack_b_panel(load_floats(weights, first + column * layer.in, columns * layer.in, wide), 1,
                       layer.in, layer.in, columns, 1, panel);
          gemm(rows, columns, layer.in, x, layer.in, panel, y + column, layer.out,
               {.col_bias = bias != nullptr ? bias + column : nullptr});
        }
      });
}

void run_layer(const KernelRun& run, const ExpertsState& s, const ExpertLayer& layer,
               int64_t expert, int64_t rows, const float* x, const float* biases, float* y) {
  const float* bias = biases != nullptr ? biases + expert * layer.out : nullptr;
  if (layer.packed == nullptr)
    return run_layer_as_it_lies(layer, run.input(layer.weights), expert, rows, x, bias, y);
  const std::byte* packed = layer.packed + static_cast<size_t>(expert) * layer.packed_bytes;
  if (s.codes)
    (s.bytes ? nbits_gemm_bytes : nbits_gemm)(layer.shape, rows, x, packed, bias, y);
  else
    gemm(rows, layer.out, layer.in, x, layer.in, reinterpret_cast<const float*>(packed), y,
         layer.out, {.col_bias = bias});
}

/// What the first layer (and the third) gave, in place of y: [rows, inner].
void activate(const KernelRun& run, const ExpertsState& s, int64_t rows, const float* first,
              const float* third, float* y) {
  UnaryFn* const fn = unary_fn(s.activation);
  run.parallel_for(rows, std::max<int64_t>(1, 4096 / s.inner), [&](int64_t begin, int64_t end) {
    std::vector<float> parted(static_cast<size_t>(s.gated ? 2 * s.inner : 0));
    for (int64_t r = begin; r < end; ++r) {
      const float *gate = first + r * s.layers[0].out, *factor = nullptr;
      float* to = y + r * s.inner;
      if (s.gated) {
        float *a = parted.data(), *b = a + s.inner;
        for (int64_t i = 0; i < s.inner; ++i) {
          a[i] = gate[s.interleaved ? 2 * i : i];
          b[i] = gate[s.interleaved ? 2 * i + 1 : s.inner + i];
        }
        gate = a;
        factor = b;
      } else if (third != nullptr) {
        factor = third + r * s.inner;
      }
      const bool limited = s.swiglu && factor != nullptr && s.limit > 0;
      if (limited)
        for (int64_t i = 0; i < s.inner; ++i) to[i] = std::min(gate[i], s.limit);
      fn(limited ? to : gate, to, s.inner, s.alpha, 0);
      if (factor == nullptr) continue;
      if (limited)
        for (int64_t i = 0; i < s.inner; ++i)
          to[i] *= std::clamp(factor[i], -s.limit, s.limit) + s.beta;
      else
        for (int64_t i = 0; i < s.inner; ++i) to[i] *= factor[i] + (s.swiglu ? s.beta : 0);
    }
  });
}

Status run_experts(KernelRun& run) {
  const auto& s = run.state<ExpertsState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const auto floats_of = [&](size_t index, std::vector<float>& room) -> const float* {
    if (index == 0 || !run.has_input(index)) return nullptr;
    const Tensor& tensor = run.input(index);
    if (tensor.dtype() != DType::kFloat32) room.resize(static_cast<size_t>(tensor.size()));
    return load_floats(tensor, 0, tensor.size(), room.data());
  };
  std::vector<float> rooms[5], wide, sums;
  const float* biases[3];
  for (size_t i = 0; i < 3; ++i) biases[i] = floats_of(s.layers[i].bias, rooms[i]);
  const Routes routes(s, Choices(s, floats_of(kScores, rooms[3]),
                                 s.codes ? floats_of(kRouterWeights, rooms[4]) : nullptr));
  const bool narrow = x.dtype() != DType::kFloat32;
  if (narrow) {
    wide.resize(static_cast<size_t>(x.size()));
    sums.resize(wide.size());
  }
  const float* from = load_floats(x, 0, x.size(), wide.data());
  float* to = floats_to_fill(*y, 0, sums.data());
  std::fill_n(to, x.size(), 0.0f);
  auto* const given = reinterpret_cast<float*>(run.scratch());
  const int64_t most = std::min(s.rows, kMostRows);
  float* const first = given + most * s.hidden;
  float* const inner = first + most * s.layers[0].out;
  float* const result = inner + most * s.inner;
  float* const third = s.layers[2].given ? result + most * s.hidden : nullptr;
  for (int64_t e = 0; e < s.count; ++e) {
    const auto at = static_cast<size_t>(e);
    for (int64_t i = routes.first[at]; i < routes.first[at + 1]; i += most) {
      const Routed* own = routes.rows.data() + i;
      const int64_t rows = std::min(most, routes.first[at + 1] - i);
      const float* in = from + own[0].row * s.hidden;
      if (rows > 1) {
        for (int64_t r = 0; r < rows; ++r)
          std::copy_n(from + own[r].row * s.hidden, s.hidden, given + r * s.hidden);
        in = given;
      }
      run_layer(run, s, s.layers[0], e, rows, in, biases[0], first);
      if (third != nullptr) run_layer(run, s, s.layers[2], e, rows, in, biases[2], third);
      activate(run, s, rows, first, third, inner);
      run_layer(run, s, s.layers[1], e, rows, inner, biases[1], result);
      for (int64_t r = 0; r < rows; ++r) {
        float* line = to + own[r].row * s.hidden;
        const float* more = result + r * s.hidden;
        for (int64_t j = 0; j < s.hidden; ++j) line[j] += own[r].weight * more[j];
      }
    }
  }
  store_floats(to, x.size(), *y, 0);
  return ok();
}

}  // namespace

KERNEL(moe) = {
    .name = "moe",
    .op = "MoE",
    .domain = "com.microsoft",
    .supports = supports_experts,
    .prepare = prepare_experts,
    .run = products<run_experts>,
};
KERNEL(qmoe) = {
    .name = "qmoe",
    .op = "QMoE",
    .domain = "com.microsoft",
    .supports = supports_experts,
    .prepare = prepare_experts,
    .run = products<run_experts>,
};

}  // namespace tombolo
