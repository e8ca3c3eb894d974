// Functions of one variable over integers and doubles, and tests of floats.

#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct TypedState final : KernelState {
  UnaryTypedFn* fn = nullptr;
  DType output = DType::kUndefined;
  int flags = 0;
};

template <UnaryTyped kOp>
bool supports_typed(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && q.inputs.size() == 1 &&
         unary_typed_fn(kOp, q.dtype(0)) != nullptr;
}
template <UnaryTyped kOp>
Result<std::unique_ptr<KernelState>> prepare_typed(const PrepareContext& q) {
  auto state = std::make_unique<TypedState>();
  state->fn = unary_typed_fn(kOp, q.dtype(0));
  state->output =
      kOp == UnaryTyped::kIsNan || kOp == UnaryTyped::kIsInf ? DType::kBool : q.dtype(0);
  if (kOp == UnaryTyped::kIsInf)
    state->flags = (q.attributes.get_int("detect_negative", 1) != 0 ? 1 : 0) |
                   (q.attributes.get_int("detect_positive", 1) != 0 ? 2 : 0);
  return state;
}
Status run_typed(KernelRun& run) {
  const auto& s = run.state<TypedState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, s.output, x.dims()));
  const auto in = static_cast<int64_t>(bytes_of(x.dtype())),
             out = static_cast<int64_t>(bytes_of(s.output));
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    s.fn(from + begin * in, to + begin * out, end - begin, s.flags);
  });
  return ok();
}

bool supports_clip(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 11 || q.inputs.empty() ||
      clip_fn(q.dtype(0)) == nullptr)
    return false;
  for (size_t i = 1; i < 3; ++i)
    if (q.has_input(i) && (q.dtype(i) != q.dtype(0) || element_count(q.dims(i)) != 1)) return false;
  return true;
}
Status run_clip(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const auto limit = [&](size_t i) {
    return run.has_input(i) ? run.input(i).data<std::byte>() : nullptr;
  };
  const auto size = static_cast<int64_t>(bytes_of(x.dtype()));
  const std::byte *from = x.data<std::byte>(), *low = limit(1), *high = limit(2);
  std::byte* to = y->data<std::byte>();
  ClipFn* const clip = clip_fn(x.dtype());
  run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    clip(from + begin * size, to + begin * size, end - begin, low, high);
  });
  return ok();
}

}  // namespace

KERNEL(clip_typed) = {
    .name = "clip",
    .op = "Clip",
    .supports = supports_clip,
    .run = run_clip,
    .in_place = 1,
};
KERNEL(sqrt_typed) = {
    .name = "sqrt",
    .op = "Sqrt",
    .supports = supports_typed<UnaryTyped::kSqrt>,
    .prepare = prepare_typed<UnaryTyped::kSqrt>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(floor_typed) = {
    .name = "floor",
    .op = "Floor",
    .supports = supports_typed<UnaryTyped::kFloor>,
    .prepare = prepare_typed<UnaryTyped::kFloor>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(ceil_typed) = {
    .name = "ceil",
    .op = "Ceil",
    .supports = supports_typed<UnaryTyped::kCeil>,
    .prepare = prepare_typed<UnaryTyped::kCeil>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(round_typed) = {
    .name = "round",
    .op = "Round",
    .supports = supports_typed<UnaryTyped::kRound>,
    .prepare = prepare_typed<UnaryTyped::kRound>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(not_bool) = {
    .name = "not_bool",
    .op = "Not",
    .supports = supports_typed<UnaryTyped::kLogicalNot>,
    .prepare = prepare_typed<UnaryTyped::kLogicalNot>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(abs_typed) = {
    .name = "abs",
    .op = "Abs",
    .supports = supports_typed<UnaryTyped::kAbs>,
    .prepare = prepare_typed<UnaryTyped::kAbs>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(neg_typed) = {
    .name = "neg",
    .op = "Neg",
    .supports = supports_typed<UnaryTyped::kNeg>,
    .prepare = prepare_typed<UnaryTyped::kNeg>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(sign_typed) = {
    .name = "sign",
    .op = "Sign",
    .supports = supports_typed<UnaryTyped::kSign>,
    .prepare = prepare_typed<UnaryTyped::kSign>,
    .run = run_typed,
    .in_place = 1,
    .priority = 1,  // of 16-bit floats there is one through blocks of floats
};
KERNEL(relu_typed) = {
    .name = "relu",
    .op = "Relu",
    .supports = supports_typed<UnaryTyped::kRelu>,
    .prepare = prepare_typed<UnaryTyped::kRelu>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(bitwise_not_typed) = {
    .name = "bitwise_not",
    .op = "BitwiseNot",
    .supports = supports_typed<UnaryTyped::kNot>,
    .prepare = prepare_typed<UnaryTyped::kNot>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(exp_typed) = {
    .name = "exp",
    .op = "Exp",
    .supports = supports_typed<UnaryTyped::kExp>,
    .prepare = prepare_typed<UnaryTyped::kExp>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(log_typed) = {
    .name = "log",
    .op = "Log",
    .supports = supports_typed<UnaryTyped::kLog>,
    .prepare = prepare_typed<UnaryTyped::kLog>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(tanh_typed) = {
    .name = "tanh",
    .op = "Tanh",
    .supports = supports_typed<UnaryTyped::kTanh>,
    .prepare = prepare_typed<UnaryTyped::kTanh>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(sigmoid_typed) = {
    .name = "sigmoid",
    .op = "Sigmoid",
    .supports = supports_typed<UnaryTyped::kSigmoid>,
    .prepare = prepare_typed<UnaryTyped::kSigmoid>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(sin_typed) = {
    .name = "sin",
    .op = "Sin",
    .supports = supports_typed<UnaryTyped::kSin>,
    .prepare = prepare_typed<UnaryTyped::kSin>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(cos_typed) = {
    .name = "cos",
    .op = "Cos",
    .supports = supports_typed<UnaryTyped::kCos>,
    .prepare = prepare_typed<UnaryTyped::kCos>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(reciprocal_typed) = {
    .name = "reciprocal",
    .op = "Reciprocal",
    .supports = supports_typed<UnaryTyped::kReciprocal>,
    .prepare = prepare_typed<UnaryTyped::kReciprocal>,
    .run = run_typed,
    .in_place = 1,
};
KERNEL(is_na_n_typed) = {
    .name = "is_na_n",
    .op = "IsNaN",
    .supports = supports_typed<UnaryTyped::kIsNan>,
    .prepare = prepare_typed<UnaryTyped::kIsNan>,
    .run = run_typed,
};
KERNEL(is_inf_typed) = {
    .name = "is_inf",
    .op = "IsInf",
    .supports = supports_typed<UnaryTyped::kIsInf>,
    .prepare = prepare_typed<UnaryTyped::kIsInf>,
    .run = run_typed,
};

}  // namespace tombolo
