// Elementwise operators of two or three inputs, with numpy broadcasting.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/spread_rows.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

constexpr int64_t kGrain = 1 << 14;

struct BinaryState final : KernelState {
  BroadcastLoops<2> loops;
  BinaryFn* fn = nullptr;
  DType output = DType::kFloat32;
  bool divides = false;  ///< integers, by what must not be zero
  bool dense[2] = {};    ///< of the output's shape
};

bool supports_op(const KernelQuery& query, Binary op) {
  if (active_isa() == Isa::kScalar || query.inputs.size() != 2 || query.opset < 7) return false;
  const DType dtype = query.dtype(0);
  if (query.dtype(1) != dtype) return false;
  if (binary_fn(op, is_short_float(dtype) ? DType::kFloat32 : dtype) == nullptr) return false;
  if (op == Binary::kPRelu) {  // the slope may not enlarge X
    const auto loops = BroadcastLoops<2>::of({query.dims(0), query.dims(1)});
    return loops && loops->output == Dims(query.dims(0));
  }
  return BroadcastLoops<2>::of({query.dims(0), query.dims(1)}).has_value();
}

/// An error that says where, if a divisor holds a zero.
Status refuse_zero(const Tensor& divisor) {
  const auto look = [&]<typename T>(T) -> Status {
    const T* x = divisor.data<T>();
    const T* end = x + divisor.size();
    const T* zero = std::find(x, end, T{0});
    if (zero == end) return ok();
    return runtime_error("integer division by zero: element " + std::to_string(zero - x) +
                         " of input 1 is 0");
  };
  switch (bytes_of(divisor.dtype())) {
    case 1:
      return look(uint8_t{});
    case 2:
      return look(uint16_t{});
    case 4:
      return look(uint32_t{});
    default:
      return look(uint64_t{});
  }
}

Result<std::unique_ptr<KernelState>> prepare_op(const PrepareContext& context, Binary op) {
  auto state = std::make_unique<BinaryState>();
  state->loops = *BroadcastLoops<2>::of({context.dims(0), context.dims(1)});
  const DType dtype = context.dtype(0);
  state->fn = binary_fn(op, is_short_float(dtype) ? DType::kFloat32 : dtype);
  for (const size_t k : {0, 1}) state->dense[k] = context.inputs[k].size() == state->loops.count;
  state->output = is_comparison(op) ? DType::kBool : dtype;
  state->divides =
      (op == Binary::kDiv || op == Binary::kMod || op == Binary::kFmod) && !is_float(dtype);
  if (state->divides && context.constant(1) != nullptr) {  // looked at once
    CHECK_OK(refuse_zero(*context.constant(1)));
    state->divides = false;
  }
  return state;
}

template <Binary kOp>
bool supports_binary(const KernelQuery& query) {
  return supports_op(query, kOp);
}
template <Binary kOp>
Result<std::unique_ptr<KernelState>> prepare_binary(const PrepareContext& context) {
  return prepare_op(context, kOp);
}

// Operators whose attributes say which function it is.

Binary mod_op(const KernelQuery& query) {
  return query.attributes.get_int("fmod", 0) != 0 ? Binary::kFmod : Binary::kMod;
}
bool supports_mod(const KernelQuery& query) { return supports_op(query, mod_op(query)); }
Result<std::unique_ptr<KernelState>> prepare_mod(const PrepareContext& context) {
  return prepare_op(context, mod_op(context));
}
Binary shift_op(const KernelQuery& query) {
  return query.attributes.get_string("direction", "") == "LEFT" ? Binary::kShiftLeft
                                                                : Binary::kShiftRight;
}
bool supports_shift(const KernelQuery& query) {
  const Text direction = query.attributes.get_string("direction", "");
  return (direction == "LEFT" || direction == "RIGHT") && supports_op(query, shift_op(query));
}
Result<std::unique_ptr<KernelState>> prepare_shift(const PrepareContext& context) {
  return prepare_op(context, shift_op(context));
}

/// 16-bit floats: through blocks of floats.
void run_short(const BinaryState& state, const Tensor& a, const Tensor& b, Tensor& y, int64_t begin,
               int64_t end) {
  alignas(64) float rooms[3][kBlockFloats];
  const auto& loops = state.loops;
  loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
    for (int64_t i = 0; i < n; i += kBlockFloats) {
      const int64_t count = std::min(kBlockFloats, n - i);
      const float* rows[2];
      for (int k = 0; k < 2; ++k) {
        const int64_t step = loops.step[0][k];
        rows[k] =
            load_floats(k == 0 ? a : b, offset[k] + i * step, step == 0 ? 1 : count, rooms[k]);
      }
      const bool a_repeats = loops.step[0][0] == 0, b_repeats = loops.step[0][1] == 0;
      if (state.output == DType::kBool) {
        state.fn(rows[0], a_repeats, rows[1], b_repeats, y.data<uint8_t>() + at + i, count);
        continue;
      }
      state.fn(rows[0], a_repeats, rows[1], b_repeats, rooms[2], count);
      store_floats(rooms[2], count, y, at + i);
    }
  });
}

/// Whether rows are better written out for a block: some tens of elements pay for a call, unless
/// what meets them is written once for all blocks.
template <int kInputs>
bool has_short_rows(const BroadcastLoops<kInputs>& loops) {
  bool repeats = false;
  for (int k = 0; k < kInputs; ++k) repeats |= loops.step[0][k] == 1 && loops.step[1][k] == 0;
  return loops.axes > 1 &&
         (loops.length[0] <= kShortRow / 2 || (loops.length[0] <= kShortRow && repeats));
}

constexpr int64_t kFew = 1 << 16;  ///< numbers of 16 bits that are converted once

/// 16-bit floats of which one repeats along rows: few are converted once, the others and the
/// results by blocks of rows.
void run_short_broadcast(const BinaryState& state, const Tensor& a, const Tensor& b, Tensor& y,
                         int64_t begin, int64_t end) {
  alignas(64) float rooms[2][kSpreadBefore + kBlockFloats + kSpreadBehind], results[kBlockFloats];
  const auto& loops = state.loops;
  std::vector<float> few[2];
  for (int k = 0; k < 2; ++k) {
    const Tensor& x = k == 0 ? a : b;
    if (state.dense[k] || x.size() > kFew) continue;
    few[k].resize(static_cast<size_t>(x.size()));
    load_floats(x, 0, x.size(), few[k].data());
  }
  const bool short_rows = has_short_rows(loops), compares = state.output == DType::kBool;
  const int64_t many = short_rows ? kBlockFloats / loops.length[0] * loops.length[0] : kBlockFloats;
  int64_t held[2] = {-1, -1};
  const auto spread_halves = [&](int k, const Tensor& x, int64_t at, int64_t n, float* room) {
    uint16_t halves[kSpreadBefore + kBlockFloats + kSpreadBehind];
    int64_t none = -1;
    const uint16_t* const from =
        spread_rows(loops, k, x.data<uint16_t>(), at, n, halves + kSpreadBefore, none);
    widen_short(x.dtype(), from, room, n);
    return room;
  };
  for (int64_t at = begin; at < end; at += many) {
    const int64_t n = std::min(many, end - at);
    const float* rows[2];
    for (int k = 0; k < 2; ++k) {
      const Tensor& x = k == 0 ? a : b;
      float* room = rooms[k] + kSpreadBefore;
      rows[k] = state.dense[k]   ? load_floats(x, at, n, room)
                : few[k].empty() ? spread_halves(k, x, at, n, room)
                : short_rows     ? spread_rows(loops, k, few[k].data(), at, n, room, held[k])
                                 : few[k].data();
    }
    const auto to = [&](int64_t i) -> void* {
      if (compares) return y.data<uint8_t>() + at + i;
      return results + i;
    };
    if (short_rows)
      state.fn(rows[0], false, rows[1], false, to(0), n);
    else
      loops.for_runs(at, at + n, [&](int64_t from, const int64_t* offset, int64_t count) {
        const float* run[2];
        for (int k = 0; k < 2; ++k) run[k] = rows[k] + (state.dense[k] ? from - at : offset[k]);
        state.fn(run[0], loops.step[0][0] == 0, run[1], loops.step[0][1] == 0, to(from - at),
                 count);
      });
    if (!compares) store_floats(results, n, y, at);
  }
}

/// Elements [begin, end) along short rows: what is broadcast is written out for a block of them.
template <typename T>
void run_short_rows(const BinaryState& state, const std::byte* const (&x)[2], std::byte* y,
                    int64_t out_size, int64_t begin, int64_t end) {
  constexpr int64_t kMany = 1024;
  alignas(64) T rooms[2][kSpreadBefore + kMany + kSpreadBehind];
  const BroadcastLoops<2>& loops = state.loops;
  // Every block begins at the same place of a row, so that what repeats is written once.
  const int64_t many = kMany / loops.length[0] * loops.length[0];
  int64_t held[2] = {-1, -1};
  for (int64_t at = begin; at < end; at += many) {
    const int64_t n = std::min(many, end - at);
    const T* rows[2];
    for (int k = 0; k < 2; ++k) {
      const T* from = reinterpret_cast<const T*>(x[k]);
      rows[k] = state.dense[k]
                    ? from + at
                    : spread_rows(loops, k, from, at, n, rooms[k] + kSpreadBefore, held[k]);
    }
    state.fn(rows[0], false, rows[1], false, y + at * out_size, n);
  }
}

Status run_binary(KernelRun& run) {
  const auto& state = run.state<BinaryState>();
  const BroadcastLoops<2>& loops = state.loops;
  const Tensor &a = run.input(0), &b = run.input(1);
  if (state.divides) CHECK_OK(refuse_zero(b));
  TRY(Tensor * y, run.output(0, state.output, loops.output));
  if (is_short_float(a.dtype())) {
    const auto is_few = [&](int k) { return state.dense[k] || (k == 0 ? a : b).size() <= kFew; };
    const bool by_blocks = loops.axes > 1 && (has_short_rows(loops) || (is_few(0) && is_few(1)));
    const auto run_rows = by_blocks ? run_short_broadcast : run_short;
    run.parallel_for(loops.count, kGrain,
                     [&](int64_t begin, int64_t end) { run_rows(state, a, b, *y, begin, end); });
    return ok();
  }
  const auto size = static_cast<int64_t>(bytes_of(a.dtype()));
  const auto out_size = static_cast<int64_t>(bytes_of(state.output));
  const std::byte *pa = a.data<std::byte>(), *pb = b.data<std::byte>();
  std::byte* py = y->data<std::byte>();
  const bool short_rows = size <= 8 && has_short_rows(loops);
  const auto run_rows = size == 1   ? run_short_rows<uint8_t>
                        : size == 2 ? run_short_rows<uint16_t>
                        : size == 4 ? run_short_rows<uint32_t>
                                    : run_short_rows<uint64_t>;
  run.parallel_for(loops.count, kGrain, [&](int64_t begin, int64_t end) {
    if (short_rows) return run_rows(state, {pa, pb}, py, out_size, begin, end);
    loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
      state.fn(pa + offset[0] * size, loops.step[0][0] == 0, pb + offset[1] * size,
               loops.step[0][1] == 0, py + at * out_size, n);
    });
  });
  return ok();
}

struct WhereState final : KernelState {
  BroadcastLoops<3> loops;
  WhereFn* fn = nullptr;
  bool dense[3] = {};  ///< of the output's shape
};

bool supports_where(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && query.inputs.size() == 3 &&
         query.dtype(0) == DType::kBool && query.dtype(1) == query.dtype(2) &&
         where_fn(bytes_of(query.dtype(1))) != nullptr &&
         BroadcastLoops<3>::of({query.dims(0), query.dims(1), query.dims(2)});
}

Result<std::unique_ptr<KernelState>> prepare_where(const PrepareContext& context) {
  auto state = std::make_unique<WhereState>();
  state->loops = *BroadcastLoops<3>::of({context.dims(0), context.dims(1), context.dims(2)});
  state->fn = where_fn(bytes_of(context.dtype(1)));
  for (const size_t k : {0, 1, 2}) state->dense[k] = context.inputs[k].size() == state->loops.count;
  return state;
}

/// As run_short_rows of two inputs.
template <typename T>
void choose_short_rows(const WhereState& state, const uint8_t* c, const std::byte* const (&x)[2],
                       std::byte* y, int64_t begin, int64_t end) {
  constexpr int64_t kMany = 1024, kRoom = kSpreadBefore + kMany + kSpreadBehind;
  alignas(64) T rooms[2][kRoom];
  alignas(64) uint8_t choices[kRoom];
  const BroadcastLoops<3>& loops = state.loops;
  const int64_t many = kMany / loops.length[0] * loops.length[0];
  int64_t held[3] = {-1, -1, -1};
  for (int64_t at = begin; at < end; at += many) {
    const int64_t n = std::min(many, end - at);
    const auto block = [&]<typename U>(int k, const U* from, U* room) {
      return state.dense[k] ? from + at
                            : spread_rows(loops, k, from, at, n, room + kSpreadBefore, held[k]);
    };
    const uint8_t* const chosen = block(0, c, choices);
    const T* const a = block(1, reinterpret_cast<const T*>(x[0]), rooms[0]);
    const T* const b = block(2, reinterpret_cast<const T*>(x[1]), rooms[1]);
    state.fn(chosen, false, a, false, b, false, y + at * int64_t{sizeof(T)}, n);
  }
}

Status run_where(KernelRun& run) {
  const auto& state = run.state<WhereState>();
  const BroadcastLoops<3>& loops = state.loops;
  const DType dtype = run.input(1).dtype();
  TRY(Tensor * y, run.output(0, dtype, loops.output));
  const auto size = static_cast<int64_t>(bytes_of(dtype));
  const uint8_t* c = run.data<uint8_t>(0);
  const std::byte *a = run.data<std::byte>(1), *b = run.data<std::byte>(2);
  std::byte* out = y->data<std::byte>();
  const bool short_rows = has_short_rows(loops);
  const auto run_rows = size == 1   ? choose_short_rows<uint8_t>
                        : size == 2 ? choose_short_rows<uint16_t>
                        : size == 4 ? choose_short_rows<uint32_t>
                                    : choose_short_rows<uint64_t>;
  run.parallel_for(loops.count, kGrain, [&](int64_t begin, int64_t end) {
    if (short_rows) return run_rows(state, c, {a, b}, out, begin, end);
    loops.for_runs(begin, end, [&](int64_t at, const int64_t* offset, int64_t n) {
      const int64_t* step = loops.step[0];
      state.fn(c + offset[0], step[0] == 0, a + offset[1] * size, step[1] == 0,
               b + offset[2] * size, step[2] == 0, out + at * size, n);
    });
  });
  return ok();
}

}  // namespace

KERNEL(add) = {
    .name = "add",
    .op = "Add",
    .supports = supports_binary<Binary::kAdd>,
    .prepare = prepare_binary<Binary::kAdd>,
    .run = run_binary,
    .in_place = 3,
};
// Of two addends; more are left to the reference.
KERNEL(sum) = {
    .name = "sum",
    .op = "Sum",
    .supports = supports_binary<Binary::kAdd>,
    .prepare = prepare_binary<Binary::kAdd>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(sub) = {
    .name = "sub",
    .op = "Sub",
    .supports = supports_binary<Binary::kSub>,
    .prepare = prepare_binary<Binary::kSub>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(mul) = {
    .name = "mul",
    .op = "Mul",
    .supports = supports_binary<Binary::kMul>,
    .prepare = prepare_binary<Binary::kMul>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(div) = {
    .name = "div",
    .op = "Div",
    .supports = supports_binary<Binary::kDiv>,
    .prepare = prepare_binary<Binary::kDiv>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(max) = {
    .name = "max",
    .op = "Max",
    .supports = supports_binary<Binary::kMax>,
    .prepare = prepare_binary<Binary::kMax>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(min) = {
    .name = "min",
    .op = "Min",
    .supports = supports_binary<Binary::kMin>,
    .prepare = prepare_binary<Binary::kMin>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(prelu) = {
    .name = "prelu",
    .op = "PRelu",
    .supports = supports_binary<Binary::kPRelu>,
    .prepare = prepare_binary<Binary::kPRelu>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(pow) = {
    .name = "pow",
    .op = "Pow",
    .supports = supports_binary<Binary::kPow>,
    .prepare = prepare_binary<Binary::kPow>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(equal) = {
    .name = "equal",
    .op = "Equal",
    .supports = supports_binary<Binary::kEqual>,
    .prepare = prepare_binary<Binary::kEqual>,
    .run = run_binary,
};
KERNEL(less) = {
    .name = "less",
    .op = "Less",
    .supports = supports_binary<Binary::kLess>,
    .prepare = prepare_binary<Binary::kLess>,
    .run = run_binary,
};
KERNEL(less_or_equal) = {
    .name = "less_or_equal",
    .op = "LessOrEqual",
    .supports = supports_binary<Binary::kLessOrEqual>,
    .prepare = prepare_binary<Binary::kLessOrEqual>,
    .run = run_binary,
};
KERNEL(greater) = {
    .name = "greater",
    .op = "Greater",
    .supports = supports_binary<Binary::kGreater>,
    .prepare = prepare_binary<Binary::kGreater>,
    .run = run_binary,
};
KERNEL(greater_or_equal) = {
    .name = "greater_or_equal",
    .op = "GreaterOrEqual",
    .supports = supports_binary<Binary::kGreaterOrEqual>,
    .prepare = prepare_binary<Binary::kGreaterOrEqual>,
    .run = run_binary,
};
KERNEL(and_bool) = {
    .name = "and_bool",
    .op = "And",
    .supports = supports_binary<Binary::kAnd>,
    .prepare = prepare_binary<Binary::kAnd>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(or_bool) = {
    .name = "or_bool",
    .op = "Or",
    .supports = supports_binary<Binary::kOr>,
    .prepare = prepare_binary<Binary::kOr>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(xor_bool) = {
    .name = "xor_bool",
    .op = "Xor",
    .supports = supports_binary<Binary::kXor>,
    .prepare = prepare_binary<Binary::kXor>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(mod) = {
    .name = "mod",
    .op = "Mod",
    .supports = supports_mod,
    .prepare = prepare_mod,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(bit_shift) = {
    .name = "bit_shift",
    .op = "BitShift",
    .supports = supports_shift,
    .prepare = prepare_shift,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(bitwise_and) = {
    .name = "bitwise_and",
    .op = "BitwiseAnd",
    .supports = supports_binary<Binary::kBitAnd>,
    .prepare = prepare_binary<Binary::kBitAnd>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(bitwise_or) = {
    .name = "bitwise_or",
    .op = "BitwiseOr",
    .supports = supports_binary<Binary::kBitOr>,
    .prepare = prepare_binary<Binary::kBitOr>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(bitwise_xor) = {
    .name = "bitwise_xor",
    .op = "BitwiseXor",
    .supports = supports_binary<Binary::kBitXor>,
    .prepare = prepare_binary<Binary::kBitXor>,
    .run = run_binary,
    .in_place = 3,
};
KERNEL(where) = {
    .name = "where",
    .op = "Where",
    .supports = supports_where,
    .prepare = prepare_where,
    .run = run_where,
};

}  // namespace tombolo
