// Pow of integers: to one whole power, or to powers that differ.

#include <algorithm>
#include <string>

#include "ops/kernels/elementwise.h"
#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/integer_pow.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

constexpr int64_t kPowBlock = 512;

bool is_pow_integer(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

struct PowState final : KernelState {
  int64_t exponent = 0;
};
bool supports_pow(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 7 || q.inputs.size() != 2 ||
      !is_pow_integer(q.dtype(0)) || q.constant(1) == nullptr || q.constant(1)->size() != 1 ||
      q.dims(1).size() > q.dims(0).size() || !is_pow_integer(q.dtype(1)))
    return false;
  return q.constant(1)->get_int64(0) >= 0;
}
Result<std::unique_ptr<KernelState>> prepare_pow(const PrepareContext& q) {
  auto state = std::make_unique<PowState>();
  state->exponent = q.constant(1)->get_int64(0);
  return state;
}
Status run_pow(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const int64_t exponent = run.state<PowState>().exponent;
  run.parallel_for(x.size(), 1 << 13, [&](int64_t begin, int64_t end) {
    if (x.dtype() == DType::kInt32)
      power_u32(x.data<uint32_t>() + begin, y->data<uint32_t>() + begin, end - begin, exponent);
    else
      power_u64(x.data<uint64_t>() + begin, y->data<uint64_t>() + begin, end - begin, exponent);
  });
  return ok();
}

struct PowsState final : KernelState {
  BroadcastLoops<2> loops;
};
bool supports_pows(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 7 || q.inputs.size() != 2 ||
      !is_pow_integer(q.dtype(0)))
    return false;
  if (!is_pow_integer(q.dtype(1)) && q.dtype(1) != DType::kFloat32 && q.dtype(1) != DType::kFloat64)
    return false;
  return BroadcastLoops<2>::of({q.dims(0), q.dims(1)}).has_value();
}
Result<std::unique_ptr<KernelState>> prepare_pows(const PrepareContext& q) {
  auto state = std::make_unique<PowsState>();
  state->loops = *BroadcastLoops<2>::of({q.dims(0), q.dims(1)});
  return state;
}

/// n elements of which each is made of one of the input, or of one for all.
template <typename From, typename To, typename Make>
void fill_from(const From* x, int64_t step, int64_t n, To* to, Make&& make) {
  if (step == 0)
    std::fill_n(to, n, make(*x));
  else
    for (int64_t i = 0; i < n; ++i) to[i] = make(x[i]);
}

/// An exponent in the width of the base: powers of odd numbers come round after 2^(width - 2),
/// those of even ones are zero from the width on.
template <typename U, typename E>
U exponent_as(E exponent) {
  constexpr uint64_t kRound = uint64_t{1} << (8 * sizeof(U) - 2);
  const auto given = static_cast<uint64_t>(exponent);
  return static_cast<U>(given < kRound ? given : given % kRound + kRound);
}

/// A negative power, truncated.
template <typename T>
T negative_power(T base, int64_t exponent) {
  return base == 1 || (base == -1 && exponent % 2 == 0) ? T{1} : base == -1 ? T{-1} : T{0};
}

template <typename T, typename E>
void pows_of(const KernelRun& run, const BroadcastLoops<2>& loops, T* y) {
  using U = std::make_unsigned_t<T>;
  const T* x = run.data<T>(0);
  const E* exponents = run.data<E>(1);
  run.parallel_for(loops.count, 1 << 13, [&](int64_t begin, int64_t end) {
    U bases[kPowBlock], bits[kPowBlock], results[kPowBlock];
    for (int64_t block = begin; block < end; block += kPowBlock) {
      const int64_t n = std::min(kPowBlock, end - block);
      E lowest = 0;
      loops.for_runs(block, block + n, [&](int64_t at, const int64_t* offset, int64_t count) {
        fill_from(x + offset[0], loops.step[0][0], count, bases + (at - block),
                  [](T v) { return static_cast<U>(v); });
        fill_from(exponents + offset[1], loops.step[0][1], count, bits + (at - block), [&](E v) {
          lowest = std::min(lowest, v);
          return exponent_as<U>(v);
        });
      });
      powers(bases, bits, results, n);
      if (lowest < 0)
        loops.for_runs(block, block + n, [&](int64_t at, const int64_t* offset, int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            const E e = exponents[offset[1] + i * loops.step[0][1]];
            const int64_t to = at - block + i;
            if (e < 0)
              results[to] = static_cast<U>(negative_power(static_cast<T>(bases[to]), int64_t{e}));
          }
        });
      std::copy_n(results, n, reinterpret_cast<U*>(y) + block);
    }
  });
}

/// By exponents that are floats: as doubles.
template <typename T, typename E>
void pows_by_floats(const KernelRun& run, const BroadcastLoops<2>& loops, T* y) {
  const T* x = run.data<T>(0);
  const E* exponents = run.data<E>(1);
  run.parallel_for(loops.count, 1 << 12, [&](int64_t begin, int64_t end) {
    double bases[kPowBlock], powers[kPowBlock];
    for (int64_t block = begin; block < end; block += kPowBlock) {
      const int64_t n = std::min(kPowBlock, end - block);
      loops.for_runs(block, block + n, [&](int64_t at, const int64_t* offset, int64_t count) {
        fill_from(x + offset[0], loops.step[0][0], count, bases + (at - block),
                  [](T v) { return static_cast<double>(v); });
        fill_from(exponents + offset[1], loops.step[0][1], count, powers + (at - block),
                  [](E v) { return static_cast<double>(v); });
      });
      powers_of_whole(bases, powers, bases, n);
      for (int64_t i = 0; i < n; ++i)
        y[block + i] = static_cast<T>(ops::to_integer<int64_t>(bases[i]));
    }
  });
}

/// An error that says where, if zero has a negative exponent.
template <typename T, typename E>
Status refuse_zero_bases(const KernelRun& run, const BroadcastLoops<2>& loops) {
  const E* exponents = run.data<E>(1);
  const int64_t count = run.input(1).size();
  if (std::none_of(exponents, exponents + count, [](E e) { return e < 0; })) return ok();
  const T* x = run.data<T>(0);
  int64_t bad = 0;
  loops.for_runs(0, loops.count, [&](int64_t, const int64_t* offset, int64_t n) {
    for (int64_t i = 0; i < n && bad == 0; ++i) {
      const E e = exponents[offset[1] + i * loops.step[0][1]];
      if (e < 0 && x[offset[0] + i * loops.step[0][0]] == 0) bad = int64_t{e};
    }
  });
  if (bad == 0) return ok();
  return runtime_error("0 to the power of " + std::to_string(bad) + " divides by zero");
}

template <typename T>
Status pows(KernelRun& run, const BroadcastLoops<2>& loops) {
  const DType by = run.input(1).dtype();
  if (by == DType::kInt32) CHECK_OK((refuse_zero_bases<T, int32_t>(run, loops)));
  if (by == DType::kInt64) CHECK_OK((refuse_zero_bases<T, int64_t>(run, loops)));
  TRY(Tensor * y, run.output(0, run.input(0).dtype(), loops.output));
  T* to = y->data<T>();
  switch (by) {
    case DType::kInt32:
      pows_of<T, int32_t>(run, loops, to);
      break;
    case DType::kInt64:
      pows_of<T, int64_t>(run, loops, to);
      break;
    case DType::kFloat32:
      pows_by_floats<T, float>(run, loops, to);
      break;
    default:
      pows_by_floats<T, double>(run, loops, to);
  }
  return ok();
}
Status run_pows(KernelRun& run) {
  const auto& loops = run.state<PowsState>().loops;
  return run.input(0).dtype() == DType::kInt32 ? pows<int32_t>(run, loops)
                                               : pows<int64_t>(run, loops);
}

}  // namespace

KERNEL(pow_whole) = {
    .name = "pow",
    .op = "Pow",
    .supports = supports_pow,
    .prepare = prepare_pow,
    .run = run_pow,
    .in_place = 1,
    .values = 1 << 1,
};
KERNEL(pow_integers) = {
    .name = "pow",
    .op = "Pow",
    .supports = supports_pows,
    .prepare = prepare_pows,
    .run = run_pows,
    .priority = -1,
};

}  // namespace tombolo
