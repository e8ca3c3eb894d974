// Conv of floats, alone and with what follows it (ai.tombolo Conv: X, W, B, Z; activation).

#include <string>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/conv/conv_weights.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct ConvState final : KernelState {
  ConvPlan plan;
  const float* packed = nullptr;  ///< null: packed in every run, or taken as given
  Activation activation;
  Dims output;
};

/// A kernel that comes with the run is taken whole.
std::optional<ConvGeometry> conv_geometry(const KernelQuery& query, LiveTaps& live) {
  return read_conv_geometry(query.attributes, query.dims(0), query.dims(1),
                            query.constant(1) == nullptr ? nullptr : &live);
}

bool supports_conv(const KernelQuery& query) {
  if (active_isa() == Isa::kScalar || query.inputs.size() < 2) return false;
  if (!takes_floats_and_weight(query)) return false;
  if (!read_activation(query.attributes)) return false;
  LiveTaps live;
  const auto shape = conv_geometry(query, live);
  if (!shape) return false;
  const int64_t channels = shape->groups * shape->out_channels;
  if (query.has_input(2) && (query.dims(2).size() != 1 || query.dims(2)[0] != channels))
    return false;
  if (query.has_input(3)) {
    const Dims wanted = output_dims(*shape, channels, query.dims(0).size() - 2);
    if (Dims(query.dims(3)) != wanted) return false;
  }
  return true;
}

Result<std::unique_ptr<KernelState>> prepare_conv(const PrepareContext& context) {
  auto state = std::make_unique<ConvState>();
  LiveTaps live;
  const ConvGeometry shape = *conv_geometry(context, live);
  const bool constant = context.constant(1) != nullptr;
  state->plan = constant ? plan_convolution(shape) : plan_convolution_of_run(shape);
  const ConvPlan& plan = state->plan;
  state->activation = *read_activation(context.attributes);
  state->output = output_dims(shape, shape.groups * shape.out_channels, context.dims(0).size() - 2);
  state->scratch_bytes = (plan.scratch_floats + 64) * sizeof(float);
  if (!constant) {
    if (!plan.as_given) state->scratch_bytes += (plan.weight_floats + 64) * sizeof(float);
    return state;
  }
  const std::string key = "conv_f32/" + std::string(name_of(active_isa())) + "/" +
                          name_of(plan.algorithm) + "/" + std::to_string(shape.groups) + live.key();
  TRY(const std::byte* packed,
      context.packed(1, key, (plan.weight_floats + 64) * sizeof(float), [&](std::byte* target) {
        ConvWeights w(context, live);
        pack_convolution(plan, w.data, reinterpret_cast<float*>(target));
      }));
  state->packed = reinterpret_cast<const float*>(packed);
  return state;
}

Status run_conv(KernelRun& run) {
  const auto& state = run.state<ConvState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  const float* packed = state.packed;
  if (state.plan.as_given) {
    packed = run.data<float>(1);
  } else if (packed == nullptr) {
    float* target = scratch + (state.plan.scratch_floats + 63) / 16 * 16;
    pack_convolution(state.plan, run.data<float>(1), target);
    packed = target;
  }
  const ConvEpilogue epilogue = read_epilogue(run, state.activation);
  run_convolution(state.plan, run.data<float>(0), packed, y->data<float>(), epilogue, scratch);
  return ok();
}

}  // namespace

KERNEL(conv_f32) = {
    .name = "conv_f32",
    .op = "Conv",
    .supports = supports_conv,
    .prepare = prepare_conv,
    .run = products<run_conv>,
    .unaligned = 1u << 1,
};

// In place of the residual: a tile reads what it then writes.
KERNEL(fused_conv_f32) = {
    .name = "fused_conv_f32",
    .op = "Conv",
    .domain = "ai.tombolo",
    .supports = supports_conv,
    .prepare = prepare_conv,
    .run = products<run_conv>,
    .in_place = 1u << 3,
    .unaligned = 1u << 1,
};

}  // namespace tombolo
