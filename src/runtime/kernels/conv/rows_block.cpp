// The operators Block... of ai.tombolo, floats.

#include <algorithm>
#include <string>

#include "runtime/kernels/conv/bf16_winograd.h"
#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/conv/block_bands.h"
#include "runtime/kernels/conv/conv_weights.h"
#include "runtime/kernels/conv/digits_conv.h"
#include "runtime/kernels/conv/digits_winograd.h"
#include "runtime/kernels/conv/f16_winograd.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/conv/halves_conv.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/bf16.h"

namespace tombolo {
namespace {

bool floats(const KernelQuery& query, size_t rank) {
  return active_isa() != Isa::kScalar && query.dtype(0) == DType::kFloat32 &&
         query.dims(0).size() >= rank && element_count(query.dims(0)) > 0;
}

bool supports_block(const KernelQuery& query) { return floats(query, 2); }

Status run_block(KernelRun& run) {
  const Tensor& x = run.input(0);
  Dims dims = {x.dim(0), blocks_of(x.dim(1))};
  for (size_t i = 2; i < x.rank(); ++i) dims.push_back(x.dim(i));
  dims.push_back(kBlock);
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  const int64_t plane = x.size() / (x.dim(0) * x.dim(1));
  block_channels(x.data<float>(), x.dim(0), x.dim(1), plane, y->data<float>());
  return ok();
}

struct UnblockState final : KernelState {
  int64_t channels = 0, plane = 1;
  Dims output;
};

bool supports_unblock(const KernelQuery& query) {
  if (!floats(query, 3) || query.dims(0).back() != kBlock) return false;
  const int64_t channels = query.attributes.get_int("channels", 0);
  return channels > 0 && blocks_of(channels) == query.dims(0)[1];
}

Result<std::unique_ptr<KernelState>> prepare_unblock(const PrepareContext& context) {
  auto state = std::make_unique<UnblockState>();
  const auto dims = context.dims(0);
  state->channels = context.attributes.get_int("channels", 0);
  state->output = {dims[0], state->channels};
  for (size_t i = 2; i + 1 < dims.size(); ++i) {
    state->output.push_back(dims[i]);
    state->plane *= dims[i];
  }
  return state;
}

Status run_unblock(KernelRun& run) {
  const auto& state = run.state<UnblockState>();
  const Tensor& x = run.input(0);
  // One pixel of whole blocks lies as it is.
  if (state.plane == 1 && state.channels % kBlock == 0)
    return run.view(0, 0, 0, DType::kFloat32, state.output);
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  unblock_channels(x.data<float>(), x.dim(0), state.channels, state.plane, y->data<float>());
  return ok();
}

struct BlockConvState final : BlockStageState {
  BlockConvPlan plan;
  std::optional<DigitsConv> digits;  ///< in its place, or
  std::optional<HalvesConv> halves;
  Dims output;
};

bool plain_output(const KernelQuery& query) {
  return query.attributes.get_int("plain_output", 0) != 0;
}

std::optional<ConvGeometry> block_conv_geometry(const KernelQuery& q, LiveTaps& live) {
  const bool plain = q.attributes.get_int("plain", 0) != 0;
  if (!floats(q, 4) || q.inputs.size() < 2 || q.constant(1) == nullptr) return std::nullopt;
  if (!takes_floats_and_weight(q)) return std::nullopt;
  const auto x = q.dims(0), w = q.dims(1);
  if (x.size() != (plain ? 4u : 5u) || w.size() != 4 || !read_activation(q.attributes))
    return std::nullopt;
  const int64_t channels = w[1] * q.attributes.get_int("group", 1);
  if (!plain && (x[4] != kBlock || x[1] != blocks_of(channels))) return std::nullopt;
  const int64_t dims[4] = {x[0], plain ? x[1] : channels, x[2], x[3]};
  const auto s = read_conv_geometry(q.attributes, dims, w, &live);
  if (!s) return std::nullopt;
  if (plain && s->groups > 1) return std::nullopt;
  if (plain_output(q) &&
      (plain || !is_narrow(s->groups, s->in_channels, s->out_channels, s->taps())))
    return std::nullopt;
  if (!takes_groups(s->groups, s->in_channels, s->out_channels) &&
      !bridges_blocks(s->groups, s->in_channels, s->out_channels))
    return std::nullopt;
  if (q.has_input(2) && (q.dims(2).size() != 1 || q.dims(2)[0] != w[0])) return std::nullopt;
  return s;
}

Dims block_dims(const ConvGeometry& s, int64_t channels) {
  return {s.batch, blocks_of(channels), s.out_size(1), s.out_size(2), kBlock};
}
Dims output_dims(const ConvGeometry& s, bool plain) {
  const int64_t channels = s.groups * s.out_channels;
  return plain ? Dims{s.batch, channels, s.out_size(1), s.out_size(2)} : block_dims(s, channels);
}

/// Of scratch, for a bias that fills up the last block.
size_t bias_bytes(const ConvGeometry& s) {
  return static_cast<size_t>(blocks_of(s.out_channels) * kBlock) * sizeof(float);
}

/// To those bytes.
void fill_bias(ConvEpilogue& e, const ConvGeometry& s, std::byte* room) {
  if (e.bias != nullptr)
    e.bias = whole_blocks(e.bias, s.out_channels, reinterpret_cast<float*>(room));
}

bool supports_block_conv(const KernelQuery& query) {
  LiveTaps live;
  const auto s = block_conv_geometry(query, live);
  return s && (!query.has_input(3) || Dims(query.dims(3)) == output_dims(*s, plain_output(query)));
}

/// Winograd by 3 x 3 reads four times the weights, which few tiles do not repay; others save less,
/// which floats do not make up for: by 5 x 5 where there are many, along one axis never.
bool leaves_to_digits(const BlockConvPlan& plan) {
  using Algorithm = BlockConvPlan::Algorithm;
  constexpr int64_t kFewTiles = 16, kManyTiles = 256;
  if (plan.algorithm != Algorithm::kWinograd)
    return plan.algorithm == Algorithm::kDirect || plan.algorithm == Algorithm::kProduct;
  if (winograd_line(plan.shape)) return true;
  const int64_t tiles = plan.tiles_y * plan.tiles_x;
  return plan.shape.kernel[1] == 3 ? tiles <= kFewTiles
                                   : tiles > kManyTiles && !digits_winograd_fits(plan);
}

Result<std::unique_ptr<KernelState>> prepare_block_conv(const PrepareContext& context) {
  auto state = std::make_unique<BlockConvState>();
  LiveTaps live;
  const ConvGeometry shape = *block_conv_geometry(context, live);
  const bool plain = context.attributes.get_int("plain", 0) != 0;
  state->plan = plan_block_conv(shape, plain, true, plain_output(context));
  const BlockConvPlan& plan = state->plan;
  state->activation = *read_activation(context.attributes);
  state->output = output_dims(shape, plan.plain_output);
  if (!plain && leaves_to_digits(plan) && digits_conv_fits(shape)) {
    const DigitsConv digits = plan_digits_conv(shape);
    TRY(const std::byte* packed, context.packed(1, "block_conv_digits" + live.key(),
                                                digits.weight_bytes, [&](std::byte* target) {
                                                  ConvWeights w(context, live);
                                                  pack_digits_conv(digits, w.data, target);
                                                }));
    if (digits_conv_packed(packed)) {
      state->packed = reinterpret_cast<const float*>(packed);
      state->scratch_bytes = digits.scratch_bytes;
      state->digits = digits;
      return state;
    }
  }
  state->scratch_bytes = (plan.scratch_floats + 64) * sizeof(float);
  if (!plain && is_of_halves(*context.constant(1)) && halves_conv_fits(shape)) {
    const HalvesConv halves = plan_halves_conv(shape);
    TRY(const std::byte* packed,
        context.packed(1, "block_conv_pairs", halves.weight_bytes, [&](std::byte* target) {
          ConvWeights w(context, live);
          pack_halves_conv(halves, w.data, target);
        }));
    if (halves_conv_packed(packed)) {
      state->packed = reinterpret_cast<const float*>(packed);
      state->scratch_bytes = bias_bytes(shape);
      state->halves = halves;
      return state;
    }
  }
  if (!plain && plan.algorithm == BlockConvPlan::Algorithm::kWinograd &&
      digits_winograd_fits(plan)) {
    // Behind a line that says whether they are there.
    constexpr size_t kLine = 64;
    TRY(const std::byte* packed,
        context.packed(1, "block_conv_winograd_digits" + live.key(),
                       kLine + digits_winograd_bytes(plan), [&](std::byte* target) {
                         ConvWeights w(context, live);
                         target[0] = static_cast<std::byte>(
                             pack_digits_winograd(plan, w.data, target + kLine));
                       }));
    if (packed[0] != std::byte{0}) {
      state->packed = reinterpret_cast<const float*>(packed + kLine);
      state->plan.products = BlockConvPlan::Products::kDigits;
      return state;
    }
  }
  const std::string key = "block_conv_f32/" + std::string(name_of(active_isa())) + "/" +
                          name_of(plan.algorithm) + "/" + std::to_string(shape.groups) +
                          (plain ? "/plain" : "") + (plan.on_the_way ? "/taps" : "") + live.key();
  TRY(const std::byte* packed,
      context.packed(1, key, (plan.weight_floats + 64) * sizeof(float), [&](std::byte* target) {
        ConvWeights w(context, live);
        pack_block_conv(plan, w.data, reinterpret_cast<float*>(target));
      }));
  state->packed = reinterpret_cast<const float*>(packed);
  state->conv = &state->plan;
  return state;
}

Status run_block_convolution(KernelRun& run) {
  const auto& state = run.state<BlockConvState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  ConvEpilogue epilogue = read_epilogue(run, state.activation);
  const auto* const bytes = reinterpret_cast<const std::byte*>(state.packed);
  if (state.digits) {
    run_digits_conv(*state.digits, run.data<float>(0), bytes, y->data<float>(), epilogue,
                    run.scratch());
    return ok();
  }
  if (state.halves) {
    fill_bias(epilogue, state.halves->shape, run.scratch());
    run_halves_conv(*state.halves, run.data<float>(0), bytes, y->data<float>(), epilogue);
    return ok();
  }
  run_block_conv(state.plan, run.data<float>(0), state.packed, y->data<float>(), epilogue,
                 reinterpret_cast<float*>(run.scratch()));
  return ok();
}

struct Bf16ConvState final : KernelState {
  Bf16Conv plan;
  std::optional<BlockConvPlan> winograd;  ///< in its place, or
  std::optional<Bf16Winograd> small;      ///< tiles of 2 x 2
  const std::byte* packed = nullptr;
  Activation activation;
  Dims output;
};

bool supports_bf16_conv(const KernelQuery& query) {
  if (!query.options.fast_math || !has_bf16_dot() || plain_output(query) ||
      !supports_block_conv(query))
    return false;
  const bool plain = query.attributes.get_int("plain", 0) != 0;
  LiveTaps live;
  const ConvGeometry shape = *block_conv_geometry(query, live);
  if (!bf16_conv_fits(shape, plain)) return false;
  if ((has_amx_bf16() || bf16_winograd_pays(shape)) && !plain) return true;
  // Winograd saves more than dot products of bf16 do, which are twice those of floats, and needs
  // more digits than bf16 has. On images of few rows, whose tiles are partly outside and whose
  // plain sums leave out the padding, it saves less.
  const bool few_rows =
      (shape.kernel[1] > 1 && shape.out[1] < 6) || (shape.kernel[2] > 1 && shape.out[2] < 6);
  if (!plain && !few_rows &&
      plan_block_conv(shape, false).algorithm == BlockConvPlan::Algorithm::kWinograd)
    return f16_winograd_fits(shape);
  return bf16_conv_pays(shape, plain);
}

/// Convolutions of models in halves, as sums of bf16: tiles of AMX leave Winograd behind, too, and
/// take half of its memory.
bool supports_halves_conv(const KernelQuery& query) {
  if (query.options.fast_math || !has_amx_bf16() || query.inputs.size() < 2 ||
      query.constant(1) == nullptr || !is_of_halves(*query.constant(1)) ||
      query.attributes.get_int("plain", 0) != 0 || plain_output(query) ||
      !supports_block_conv(query))
    return false;
  LiveTaps live;
  const ConvGeometry shape = *block_conv_geometry(query, live);
  return bf16_conv_fits(shape, false) && bf16_use_amx(shape.out_plane());
}

template <bool kHalves>
Result<std::unique_ptr<KernelState>> prepare_bf16_conv(const PrepareContext& context) {
  auto state = std::make_unique<Bf16ConvState>();
  LiveTaps live;
  const ConvGeometry shape = *block_conv_geometry(context, live);
  const Bf16Parts parts = !kHalves                               ? Bf16Parts::kRounded
                          : context.dtype(1) == DType::kBFloat16 ? Bf16Parts::kBfloat16
                                                                 : Bf16Parts::kFloat16;
  state->activation = *read_activation(context.attributes);
  state->output = block_dims(shape, shape.out_channels);
  const bool plain = context.attributes.get_int("plain", 0) != 0;
  if (!kHalves && !plain && f16_winograd_fits(shape)) {
    const BlockConvPlan winograd =
        plan_block_conv(shape, false, true, false, BlockConvPlan::Products::kFloat16);
    if (winograd.algorithm == BlockConvPlan::Algorithm::kWinograd) {
      state->scratch_bytes = (winograd.scratch_floats + 64) * sizeof(float);
      TRY(state->packed, context.packed(1, "block_conv_winograd_f16" + live.key(),
                                        f16_winograd_bytes(winograd), [&](std::byte* target) {
                                          ConvWeights w(context, live);
                                          pack_f16_winograd(winograd, w.data, target);
                                        }));
      state->winograd = winograd;
      return state;
    }
  }
  if (!kHalves && !plain && bf16_winograd_pays(shape)) {
    const Bf16Winograd& small = state->small.emplace(plan_bf16_winograd(shape));
    state->scratch_bytes = bias_bytes(shape) + small.scratch_bytes;
    TRY(state->packed, context.packed(1, "block_conv_winograd_bf16" + live.key(),
                                      small.weight_bytes, [&](std::byte* target) {
                                        ConvWeights w(context, live);
                                        pack_bf16_winograd(small, w.data, target);
                                      }));
    return state;
  }
  state->plan = plan_bf16_conv(shape, parts, plain);
  const Bf16Conv& plan = state->plan;
  state->scratch_bytes = bias_bytes(shape) + plan.image_bytes;
  // Strides decide which taps lie side by side.
  const std::string key = (kHalves              ? "block_conv_halves/"
                           : has_f16_products() ? "block_conv_f16_scaled/"
                                                : "block_conv_bf16_line/") +
                          std::to_string(plan.product.run) + "/" +
                          std::to_string(plan.product.offsets.size()) + (plain ? "/plain" : "") +
                          live.key();
  TRY(state->packed, context.packed(1, key, plan.weight_bytes, [&](std::byte* target) {
    ConvWeights w(context, live);
    pack_bf16_conv(plan, w.data, target);
  }));
  return state;
}

Status run_bf16_convolution(KernelRun& run) {
  const auto& state = run.state<Bf16ConvState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  ConvEpilogue epilogue = read_epilogue(run, state.activation);
  if (state.winograd) {
    run_block_conv(*state.winograd, run.data<float>(0),
                   reinterpret_cast<const float*>(state.packed), y->data<float>(), epilogue,
                   reinterpret_cast<float*>(run.scratch()));
    return ok();
  }
  const ConvGeometry& shape = state.small ? state.small->shape : state.plan.shape;
  fill_bias(epilogue, shape, run.scratch());
  std::byte* const rest = run.scratch() + bias_bytes(shape);
  if (state.small)
    run_bf16_winograd(*state.small, run.data<float>(0), state.packed, y->data<float>(), epilogue,
                      rest);
  else
    run_bf16_conv(state.plan, run.data<float>(0), state.packed, y->data<float>(), epilogue, rest);
  return ok();
}

struct BlockTransposedState final : KernelState {
  BlockTransposedPlan plan;
  const float* packed = nullptr;
  Dims output;
};

std::optional<ConvGeometry> block_transposed_geometry(const KernelQuery& q) {
  if (!floats(q, 5) || q.inputs.size() < 2 || q.constant(1) == nullptr ||
      q.dtype(1) != DType::kFloat32 || (q.has_input(2) && q.dtype(2) != DType::kFloat32))
    return std::nullopt;
  const auto x = q.dims(0), w = q.dims(1);
  if (x.size() != 5 || w.size() != 4 || x[4] != kBlock || x[1] != blocks_of(w[0]))
    return std::nullopt;
  const int64_t dims[4] = {x[0], w[0], x[2], x[3]};
  const auto s = read_transposed_geometry(q.attributes, dims, w);
  if (!s || !takes_groups(s->groups, s->in_channels, s->out_channels)) return std::nullopt;
  if (q.has_input(2) && (q.dims(2).size() != 1 || q.dims(2)[0] != s->groups * s->out_channels))
    return std::nullopt;
  return s;
}

bool supports_block_transposed(const KernelQuery& query) {
  const auto s = block_transposed_geometry(query);
  if (!s) return false;
  // An output far larger than what the kernel reaches is odd enough for the reference.
  const BlockTransposedPlan plan = plan_block_transposed(*s);
  return plan.rows * plan.columns <= 16 * s->in_plane() + 4096;
}

Result<std::unique_ptr<KernelState>> prepare_block_transposed(const PrepareContext& context) {
  auto state = std::make_unique<BlockTransposedState>();
  const ConvGeometry s = *block_transposed_geometry(context);
  state->plan = plan_block_transposed(s);
  state->output = block_dims(s, s.groups * s.out_channels);
  state->scratch_bytes = (static_cast<size_t>(blocks_of(s.groups * s.out_channels) * kBlock + 16) +
                          state->plan.scratch_floats) *
                         sizeof(float);
  // Positions of the kernel are in the order of the phases they are seen by.
  std::string key = "block_conv_transpose_f32/" + std::string(name_of(active_isa())) + "/" +
                    std::to_string(s.groups);
  for (const int axis : {1, 2})
    for (const int64_t number : {s.stride[axis], s.dilation[axis], s.pad[axis] % s.stride[axis],
                                 std::min(s.out[axis], s.stride[axis])})
      key += "/" + std::to_string(number);
  if (s.joined()) key += "/joined";
  TRY(const std::byte* packed,
      context.packed(
          1, key, (state->plan.weight_floats + 64) * sizeof(float), [&](std::byte* target) {
            Tensor copy;
            pack_block_transposed(state->plan, context.aligned_constant(1, copy).data<float>(),
                                  reinterpret_cast<float*>(target));
          }));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

Status run_block_transposed_conv(KernelRun& run) {
  const auto& state = run.state<BlockTransposedState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  const float* bias = run.has_input(2) ? run.data<float>(2) : nullptr;
  auto* padded = reinterpret_cast<float*>(run.scratch());
  const int64_t channels = state.plan.shape.groups * state.plan.shape.out_channels;
  if (bias != nullptr) {
    std::copy_n(bias, channels, padded);
    std::fill(padded + channels, padded + blocks_of(channels) * kBlock, 0.0f);
    bias = padded;
  }
  run_block_transposed(state.plan, run.data<float>(0), state.packed, bias, y->data<float>(),
                       padded + blocks_of(channels) * kBlock);
  return ok();
}

struct BlockPoolState final : BlockStageState {
  BlockPool plan;
  bool global = false;
  Dims output;
};

std::optional<SlidingWindow> block_window(const KernelQuery& q) {
  const Text op = q.attributes.get_string("pool", "");
  if (!floats(q, 5) || q.dims(0).size() != 5 || q.dims(0)[4] != kBlock) return std::nullopt;
  if (op == "GlobalMaxPool" || op == "GlobalAveragePool") return SlidingWindow{};
  if (op != "MaxPool" && op != "AveragePool") return std::nullopt;
  auto window = read_sliding_window(q.attributes, q.dims(0).subspan(2, 2), {},
                                    q.attributes.get_int("ceil_mode", 0) != 0);
  if (window) join_column(*window);
  return window;
}

bool supports_block_pool(const KernelQuery& query) { return block_window(query).has_value(); }

Result<std::unique_ptr<KernelState>> prepare_block_pool(const PrepareContext& context) {
  auto state = std::make_unique<BlockPoolState>();
  const Text op = context.attributes.get_string("pool", "");
  const auto x = context.dims(0);
  const SlidingWindow window = *block_window(context);
  BlockPool& pool = state->plan;
  ConvGeometry& s = pool.shape = window.shape;
  s.batch = x[0];
  s.groups = x[1] * kBlock;
  pool.average = op == "AveragePool" || op == "GlobalAveragePool";
  state->global = op == "GlobalMaxPool" || op == "GlobalAveragePool";
  state->output = {x[0], x[1], state->global ? 1 : s.out_size(1), state->global ? 1 : s.out_size(2),
                   kBlock};
  if (state->global) return state;
  state->pool = &pool;
  if (!pool.average) return state;
  // Positions of a window along an axis that count: those inside the input, or inside the padding
  // too; never what lies beyond because the output's size was rounded up.
  const bool pads = context.attributes.get_int("count_include_pad", 0) != 0;
  for (int axis = 1; axis < 3; ++axis)
    for (int64_t o = 0; o < s.out[axis]; ++o) {
      int64_t count = 0;
      for (int64_t k = 0; k < s.kernel[axis]; ++k) {
        const int64_t at = o * s.stride[axis] - s.pad[axis] + k * s.dilation[axis];
        count += pads ? at < s.in[axis] + window.pad_end[axis] : at >= 0 && at < s.in[axis];
      }
      (axis == 1 ? pool.row_counts : pool.column_counts).push_back(static_cast<float>(count));
    }
  return state;
}

Status run_block_pools(KernelRun& run) {
  const auto& state = run.state<BlockPoolState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  if (state.global)
    run_block_global_pool(x.data<float>(), x.dim(0) * x.dim(1), x.dim(2) * x.dim(3),
                          state.plan.average, y->data<float>());
  else
    run_block_pool(state.plan, x.data<float>(), y->data<float>());
  return ok();
}

}  // namespace

KERNEL(block_channels_f32) = {
    .name = "block_channels_f32",
    .op = "BlockChannels",
    .domain = "ai.tombolo",
    .supports = supports_block,
    .run = run_block,
};
KERNEL(unblock_channels_f32) = {
    .name = "unblock_channels_f32",
    .op = "UnblockChannels",
    .domain = "ai.tombolo",
    .supports = supports_unblock,
    .prepare = prepare_unblock,
    .run = run_unblock,
};
// In place of the residual: a tile reads what it then writes.
KERNEL(block_conv_f32) = {
    .name = "block_conv_f32",
    .op = "BlockConv",
    .domain = "ai.tombolo",
    .supports = supports_block_conv,
    .prepare = prepare_block_conv,
    .run = products<run_block_convolution>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
    .joined = &kBlockBands,
};
KERNEL(block_conv_bf16) = {
    .name = "block_conv_bf16",
    .op = "BlockConv",
    .domain = "ai.tombolo",
    .supports = supports_bf16_conv,
    .prepare = prepare_bf16_conv<false>,
    .run = products<run_bf16_convolution>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
    .priority = 1,
};
KERNEL(block_conv_halves) = {
    .name = "block_conv_halves",
    .op = "BlockConv",
    .domain = "ai.tombolo",
    .supports = supports_halves_conv,
    .prepare = prepare_bf16_conv<true>,
    .run = products<run_bf16_convolution>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
    .priority = 1,
};
KERNEL(block_conv_transpose_f32) = {
    .name = "block_conv_transpose_f32",
    .op = "BlockConvTranspose",
    .domain = "ai.tombolo",
    .supports = supports_block_transposed,
    .prepare = prepare_block_transposed,
    .run = products<run_block_transposed_conv>,
    .unaligned = 1u << 1,
};
KERNEL(block_pool_f32) = {
    .name = "block_pool_f32",
    .op = "BlockPool",
    .domain = "ai.tombolo",
    .supports = supports_block_pool,
    .prepare = prepare_block_pool,
    .run = run_block_pools,
    .joined = &kBlockBands,
};

}  // namespace tombolo
