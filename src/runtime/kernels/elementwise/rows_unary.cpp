// Elementwise functions of one variable, over floats of 16 and 32 bits.

#include <limits>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct UnaryState final : KernelState {
  Unary op = Unary::kIdentity;
  UnaryFn* fn = nullptr;
  float a = 0, b = 0;
};

bool supports_unary(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && is_f32_or_short(query.dtype(0));
}

bool supports_clip(const KernelQuery& query) {
  if (!supports_unary(query) || query.opset < 11) return false;
  for (size_t i = 1; i < 3; ++i)
    if (query.has_input(i) &&
        (query.dtype(i) != query.dtype(0) || element_count(query.dims(i)) != 1))
      return false;
  return true;
}

bool supports_gelu(const KernelQuery& query) {
  const Text form = query.attributes.get_string("approximate", "none");
  return supports_unary(query) && (form == "none" || form == "tanh");
}

void read_parameters(const AttributeReader& attributes, UnaryState& state) {
  const auto value = [&](Text name, float fallback) {
    return attributes.get_float(name, fallback);
  };
  switch (state.op) {
    case Unary::kLeakyRelu:
      state.a = value("alpha", 0.01f);
      break;
    case Unary::kHardSigmoid:
      state.a = value("alpha", 0.2f);
      state.b = value("beta", 0.5f);
      break;
    case Unary::kThresholdedRelu:
    case Unary::kElu:
    case Unary::kCelu:
    case Unary::kSwish:
      state.a = value("alpha", 1.0f);
      break;
    case Unary::kSelu:
      state.a = value("alpha", 1.67326319217681884765625f);
      state.b = value("gamma", 1.05070102214813232421875f);
      break;
    case Unary::kShrink:
      state.a = value("lambd", 0.5f);
      state.b = value("bias", 0.0f);
      break;
    case Unary::kGelu:
      if (attributes.get_string("approximate", "none") == "tanh") state.op = Unary::kGeluTanh;
      break;
    default:
      break;
  }
}

template <Unary kOp>
Result<std::unique_ptr<KernelState>> prepare_unary(const PrepareContext& context) {
  auto state = std::make_unique<UnaryState>();
  state->op = kOp;
  read_parameters(context.attributes, *state);
  state->fn = unary_fn(state->op);
  return state;
}

float scalar_or(const KernelRun& run, size_t index, float fallback) {
  if (!run.has_input(index)) return fallback;
  float room;
  return *load_floats(run.input(index), 0, 1, &room);
}

Status run_unary(KernelRun& run) {
  const auto& state = run.state<UnaryState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  float a = state.a, b = state.b;
  if (state.op == Unary::kClip) {
    a = scalar_or(run, 1, -std::numeric_limits<float>::infinity());
    b = scalar_or(run, 2, std::numeric_limits<float>::infinity());
  }
  if (x.dtype() == DType::kFloat32) {
    const float* from = x.data<float>();
    float* to = y->data<float>();
    run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
      state.fn(from + begin, to + begin, end - begin, a, b);
    });
    return ok();
  }
  run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    alignas(64) float room[kBlockFloats];
    for (int64_t at = begin; at < end; at += kBlockFloats) {
      const int64_t n = std::min(kBlockFloats, end - at);
      state.fn(load_floats(x, at, n, room), room, n, a, b);
      store_floats(room, n, *y, at);
    }
  });
  return ok();
}

}  // namespace

KERNEL(abs) = {
    .name = "abs",
    .op = "Abs",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAbs>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(neg) = {
    .name = "neg",
    .op = "Neg",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kNeg>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(sign) = {
    .name = "sign",
    .op = "Sign",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSign>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(relu) = {
    .name = "relu",
    .op = "Relu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kRelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(clip) = {
    .name = "clip",
    .op = "Clip",
    .supports = supports_clip,
    .prepare = prepare_unary<Unary::kClip>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(floor) = {
    .name = "floor",
    .op = "Floor",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kFloor>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(ceil) = {
    .name = "ceil",
    .op = "Ceil",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kCeil>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(round) = {
    .name = "round",
    .op = "Round",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kRound>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(sqrt) = {
    .name = "sqrt",
    .op = "Sqrt",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSqrt>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(reciprocal) = {
    .name = "reciprocal",
    .op = "Reciprocal",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kReciprocal>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(leaky_relu) = {
    .name = "leaky_relu",
    .op = "LeakyRelu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kLeakyRelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(hard_sigmoid) = {
    .name = "hard_sigmoid",
    .op = "HardSigmoid",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kHardSigmoid>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(hard_swish) = {
    .name = "hard_swish",
    .op = "HardSwish",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kHardSwish>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(thresholded_relu) = {
    .name = "thresholded_relu",
    .op = "ThresholdedRelu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kThresholdedRelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(softsign) = {
    .name = "softsign",
    .op = "Softsign",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSoftsign>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(shrink) = {
    .name = "shrink",
    .op = "Shrink",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kShrink>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(exp) = {
    .name = "exp",
    .op = "Exp",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kExp>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(sigmoid) = {
    .name = "sigmoid",
    .op = "Sigmoid",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSigmoid>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(tanh) = {
    .name = "tanh",
    .op = "Tanh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kTanh>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(erf) = {
    .name = "erf",
    .op = "Erf",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kErf>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(gelu) = {
    .name = "gelu",
    .op = "Gelu",
    .supports = supports_gelu,
    .prepare = prepare_unary<Unary::kGelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(swish) = {
    .name = "swish",
    .op = "Swish",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSwish>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(softplus) = {
    .name = "softplus",
    .op = "Softplus",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSoftplus>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(mish) = {
    .name = "mish",
    .op = "Mish",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kMish>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(elu) = {
    .name = "elu",
    .op = "Elu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kElu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(selu) = {
    .name = "selu",
    .op = "Selu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(celu) = {
    .name = "celu",
    .op = "Celu",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kCelu>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(log) = {
    .name = "log",
    .op = "Log",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kLog>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(sin) = {
    .name = "sin",
    .op = "Sin",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSin>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(cos) = {
    .name = "cos",
    .op = "Cos",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kCos>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(atan) = {
    .name = "atan",
    .op = "Atan",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAtan>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(asinh) = {
    .name = "asinh",
    .op = "Asinh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAsinh>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(acosh) = {
    .name = "acosh",
    .op = "Acosh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAcosh>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(atanh) = {
    .name = "atanh",
    .op = "Atanh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAtanh>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(asin) = {
    .name = "asin",
    .op = "Asin",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAsin>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(acos) = {
    .name = "acos",
    .op = "Acos",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kAcos>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(sinh) = {
    .name = "sinh",
    .op = "Sinh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kSinh>,
    .run = run_unary,
    .in_place = 1,
};
KERNEL(cosh) = {
    .name = "cosh",
    .op = "Cosh",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kCosh>,
    .run = run_unary,
    .in_place = 1,
};

KERNEL(tan) = {
    .name = "tan",
    .op = "Tan",
    .supports = supports_unary,
    .prepare = prepare_unary<Unary::kTan>,
    .run = run_unary,
    .in_place = 1,
};

}  // namespace tombolo
