// Cast between the types that networks use.

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/kernels/convert.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

using CastFn = void(const void* x, void* y, int64_t n);

/// Truncated towards zero; out of range to the nearest end, NaN to zero.
template <typename To, typename From>
To to_integer_of(From x) {
  constexpr To kLow = std::numeric_limits<To>::lowest(), kHigh = std::numeric_limits<To>::max();
  if constexpr (sizeof(To) <= 2) {  // in steps that a vector unit has
    x = x != x ? From{0} : x;
    x = x < static_cast<From>(kLow) ? static_cast<From>(kLow) : x;
    x = x > static_cast<From>(kHigh) ? static_cast<From>(kHigh) : x;
    return static_cast<To>(static_cast<int32_t>(x));
  } else {
    if (!(x > static_cast<From>(kLow))) return x != x ? To{0} : kLow;
    if (x >= static_cast<From>(kHigh)) return kHigh;
    return static_cast<To>(x);
  }
}

struct Boolean {};

template <typename To, typename From>
void convert_all(const void* from, void* to, int64_t n) {
  using In = std::conditional_t<std::is_same_v<From, Boolean>, uint8_t, From>;
  using Out = std::conditional_t<std::is_same_v<To, Boolean>, uint8_t, To>;
  const In* x = static_cast<const In*>(from);
  Out* y = static_cast<Out*>(to);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, Boolean>)
      y[i] = x[i] != In{0};
    else if constexpr (std::is_same_v<From, Boolean>)
      y[i] = static_cast<Out>(x[i] != 0);
    else if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out>)
      y[i] = to_integer_of<Out>(x[i]);
    else
      y[i] = static_cast<Out>(x[i]);
  }
}

template <typename From>
CastFn* cast_from(DType to) {
  switch (to) {
    case DType::kFloat32:
      return convert_all<float, From>;
    case DType::kFloat64:
      return convert_all<double, From>;
    case DType::kInt64:
      return convert_all<int64_t, From>;
    case DType::kInt32:
      return convert_all<int32_t, From>;
    case DType::kInt8:
      return convert_all<int8_t, From>;
    case DType::kUInt8:
      return convert_all<uint8_t, From>;
    case DType::kBool:
      return convert_all<Boolean, From>;
    default:
      return nullptr;
  }
}

CastFn* cast_of(DType from, DType to) {
  if (from == DType::kFloat32 && to == DType::kFloat16)
    return [](const void* x, void* y, int64_t n) {
      f32_to_f16(static_cast<const float*>(x), static_cast<uint16_t*>(y), n);
    };
  if (from == DType::kFloat32 && to == DType::kBFloat16)
    return [](const void* x, void* y, int64_t n) {
      f32_to_bf16(static_cast<const float*>(x), static_cast<uint16_t*>(y), n);
    };
  if (from == DType::kFloat32 && to == DType::kUInt8)
    return [](const void* x, void* y, int64_t n) {
      f32_to_u8(static_cast<const float*>(x), static_cast<uint8_t*>(y), n);
    };
  if (from == DType::kFloat32 && to == DType::kInt8)
    return [](const void* x, void* y, int64_t n) {
      f32_to_i8(static_cast<const float*>(x), static_cast<int8_t*>(y), n);
    };
  if (from == DType::kFloat16 && to == DType::kFloat32)
    return [](const void* x, void* y, int64_t n) {
      f16_to_f32(static_cast<const uint16_t*>(x), static_cast<float*>(y), n);
    };
  if (from == DType::kBFloat16 && to == DType::kFloat32)
    return [](const void* x, void* y, int64_t n) {
      bf16_to_f32(static_cast<const uint16_t*>(x), static_cast<float*>(y), n);
    };
  switch (from) {
    case DType::kFloat32:
      return cast_from<float>(to);
    case DType::kFloat64:
      return cast_from<double>(to);
    case DType::kInt64:
      return cast_from<int64_t>(to);
    case DType::kInt32:
      return cast_from<int32_t>(to);
    case DType::kInt8:
      return cast_from<int8_t>(to);
    case DType::kUInt8:
      return cast_from<uint8_t>(to);
    case DType::kBool:
      return cast_from<Boolean>(to);
    default:
      return nullptr;
  }
}

struct CastState final : KernelState {
  CastFn* fn = nullptr;
  DType to = DType::kUndefined;
};

DType target_of(const KernelQuery& q) {
  return q.node.op_type() == "CastLike" ? q.dtype(1)
                                        : static_cast<DType>(q.attributes.get_int("to", 0));
}

/// Newest version only: old ones may treat what is out of range otherwise.
bool supports_cast(const KernelQuery& q) {
  const DType to = target_of(q);
  return active_isa() != Isa::kScalar && q.opset >= 13 && q.dtype(0) != to &&
         cast_of(q.dtype(0), to) != nullptr;
}

Result<std::unique_ptr<KernelState>> prepare_cast(const PrepareContext& q) {
  auto state = std::make_unique<CastState>();
  state->to = target_of(q);
  state->fn = cast_of(q.dtype(0), state->to);
  return state;
}

Status run_cast(KernelRun& run) {
  const auto& state = run.state<CastState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, state.to, x.dims()));
  const auto from_size = static_cast<int64_t>(bytes_of(x.dtype()));
  const auto to_size = static_cast<int64_t>(bytes_of(state.to));
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->data<std::byte>();
  run.parallel_for(x.size(), 1 << 15, [&](int64_t begin, int64_t end) {
    state.fn(from + begin * from_size, to + begin * to_size, end - begin);
  });
  return ok();
}

}  // namespace

KERNEL(cast) = {
    .name = "cast",
    .op = "Cast",
    .supports = supports_cast,
    .prepare = prepare_cast,
    .run = run_cast,
};
KERNEL(cast_like) = {
    .name = "cast",
    .op = "CastLike",
    .supports = supports_cast,
    .prepare = prepare_cast,
    .run = run_cast,
};

}  // namespace tombolo
