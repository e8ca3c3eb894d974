// Cast between the types that networks use.

#include <algorithm>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

using CastFn = ConvertFn;

CastFn* cast_of(DType from, DType to) {
  if (from == DType::kFloat32 && to == DType::kFloat16)
    return [](const void* x, void* y, int64_t n) {
      f32_to_f16(static_cast<const float*>(x), static_cast<uint16_t*>(y), n);
    };
  if (from == DType::kFloat32 && to == DType::kBFloat16)
    return [](const void* x, void* y, int64_t n) {
      f32_to_bf16(static_cast<const float*>(x), static_cast<uint16_t*>(y), n);
    };
  if (from == DType::kFloat16 && to == DType::kFloat32)
    return [](const void* x, void* y, int64_t n) {
      f16_to_f32(static_cast<const uint16_t*>(x), static_cast<float*>(y), n);
    };
  if (from == DType::kBFloat16 && to == DType::kFloat32)
    return [](const void* x, void* y, int64_t n) {
      bf16_to_f32(static_cast<const uint16_t*>(x), static_cast<float*>(y), n);
    };
  return convert_fn(from, to);
}

constexpr int64_t kCastBlock = 1024;  ///< elements that a pair of casts takes at a time

/// Integers of which a float of kDigits digits does not hold all: where digits are lost, the last
/// one that is kept stands for them.
template <int kDigits, typename T>
void mark_lost(const void* x, T* y, int64_t n) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  constexpr T kWhole = T{1} << kDigits, kLost = (T{1} << (kBits - kDigits)) - 1;
  const auto* from = static_cast<const T*>(x);
  for (int64_t i = 0; i < n; ++i) {
    const T v = from[i], odd = (v & ~kLost) | ((v & kLost) != 0 ? (kLost + 1) / 2 : 0);
    y[i] = v + kWhole > 2 * kWhole ? odd : v;
  }
}
/// To floats that are odd where digits were lost.
void i32_to_odd(const void* x, void* y, int64_t n) {
  alignas(64) uint32_t marked[kCastBlock];
  mark_lost<24>(x, marked, n);
  convert_fn(DType::kInt32, DType::kFloat32)(marked, y, n);
}
void i64_to_odd(const void* x, void* y, int64_t n) {
  alignas(64) uint64_t marked[kCastBlock];
  alignas(64) double wide[kCastBlock];
  mark_lost<53>(x, marked, n);
  convert_fn(DType::kInt64, DType::kFloat64)(marked, wide, n);
  f64_to_odd(wide, static_cast<float*>(y), n);
}

/// 16-bit floats have no direct way to integers and doubles, and back: a block of floats at a time.
/// Nothing is rounded twice: what float32 does not hold exactly is beyond all float16, and for
/// bfloat16 it is made odd.
struct CastPair {
  CastFn *first = nullptr, *second = nullptr;
};
CastPair by_floats(DType from, DType to) {
  if (to == DType::kBFloat16 && from == DType::kInt32)
    return {i32_to_odd, cast_of(DType::kFloat32, to)};
  if (to == DType::kBFloat16 && from == DType::kInt64)
    return {i64_to_odd, cast_of(DType::kFloat32, to)};
  if (to == DType::kBFloat16 && (from == DType::kUInt32 || from == DType::kUInt64)) return {};
  if (from == DType::kFloat64 && is_short_float(to))
    return {[](const void* x, void* y, int64_t n) {
              f64_to_odd(static_cast<const double*>(x), static_cast<float*>(y), n);
            },
            cast_of(DType::kFloat32, to)};
  if (!is_short_float(from) && !is_short_float(to)) return {};
  return {cast_of(from, DType::kFloat32), cast_of(DType::kFloat32, to)};
}

struct CastState final : KernelState {
  CastFn* fn = nullptr;
  CastPair pair;  ///< where there is no `fn`
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
         (cast_of(q.dtype(0), to) != nullptr || by_floats(q.dtype(0), to).second != nullptr) &&
         (cast_of(q.dtype(0), to) != nullptr || by_floats(q.dtype(0), to).first != nullptr);
}

Result<std::unique_ptr<KernelState>> prepare_cast(const PrepareContext& q) {
  auto state = std::make_unique<CastState>();
  state->to = target_of(q);
  state->fn = cast_of(q.dtype(0), state->to);
  if (state->fn == nullptr) state->pair = by_floats(q.dtype(0), state->to);
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
    if (state.fn != nullptr) {
      state.fn(from + begin * from_size, to + begin * to_size, end - begin);
      return;
    }
    alignas(64) float block[kCastBlock];
    for (int64_t i = begin; i < end; i += kCastBlock) {
      const int64_t n = std::min(kCastBlock, end - i);
      state.pair.first(from + i * from_size, block, n);
      state.pair.second(block, to + i * to_size, n);
    }
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
