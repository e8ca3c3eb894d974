// Max, Min, Sum and Mean of three and more tensors of one shape, a block at a time; integers to a
// whole power.

#include <algorithm>

#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

constexpr int64_t kFoldBlock = 2048;

struct FoldState final : KernelState {
  BinaryFn* fn = nullptr;
  bool mean = false;
};

Binary op_of(const KernelQuery& q) {
  const std::string_view op = q.node.op_type();
  return op == "Max" ? Binary::kMax : op == "Min" ? Binary::kMin : Binary::kAdd;
}

bool supports_fold(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 8 || q.inputs.size() < 2) return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (!q.has_input(i) || q.dtype(i) != DType::kFloat32 || Dims(q.dims(i)) != Dims(q.dims(0)))
      return false;
  return true;
}
Result<std::unique_ptr<KernelState>> prepare_fold(const PrepareContext& q) {
  auto state = std::make_unique<FoldState>();
  state->fn = binary_fn(op_of(q), DType::kFloat32);
  state->mean = q.node.op_type() == "Mean";
  return state;
}
Status run_fold(KernelRun& run) {
  const auto& s = run.state<FoldState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const auto count = run.input_count();
  float* to = y->data<float>();
  run.parallel_for(x.size(), 1 << 14, [&](int64_t begin, int64_t end) {
    UnaryFn* affine = unary_fn(Unary::kAffine);
    alignas(64) float sum[kFoldBlock];
    for (int64_t at = begin; at < end; at += kFoldBlock) {
      const int64_t n = std::min(kFoldBlock, end - at);
      // The output is written last: it may lie where an input does.
      const float* so_far = run.data<float>(0) + at;
      for (size_t i = 1; i < count; ++i) {
        const bool last = i + 1 == count && !s.mean;
        float* into = last ? to + at : sum;
        s.fn(so_far, false, run.data<float>(i) + at, false, into, n);
        so_far = into;
      }
      if (s.mean) affine(sum, to + at, n, 1 / static_cast<float>(count), 0);
    }
  });
  return ok();
}

// Pow of integers to one whole power that is not negative.

struct PowState final : KernelState {
  int64_t exponent = 0;
};
bool supports_pow(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 7 || q.inputs.size() != 2 ||
      (q.dtype(0) != DType::kInt32 && q.dtype(0) != DType::kInt64) || q.constant(1) == nullptr ||
      q.constant(1)->size() != 1 || q.dims(1).size() > q.dims(0).size() ||
      (q.dtype(1) != DType::kInt32 && q.dtype(1) != DType::kInt64))
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

}  // namespace

KERNEL(max_all) = {
    .name = "max",
    .op = "Max",
    .supports = supports_fold,
    .prepare = prepare_fold,
    .run = run_fold,
    .in_place = 1,
    .priority = -1,
};
KERNEL(min_all) = {
    .name = "min",
    .op = "Min",
    .supports = supports_fold,
    .prepare = prepare_fold,
    .run = run_fold,
    .in_place = 1,
    .priority = -1,
};
KERNEL(sum_all) = {
    .name = "sum",
    .op = "Sum",
    .supports = supports_fold,
    .prepare = prepare_fold,
    .run = run_fold,
    .in_place = 1,
    .priority = -1,
};
KERNEL(mean_all) = {
    .name = "mean",
    .op = "Mean",
    .supports = supports_fold,
    .prepare = prepare_fold,
    .run = run_fold,
    .in_place = 1,
};
KERNEL(pow_whole) = {
    .name = "pow",
    .op = "Pow",
    .supports = supports_pow,
    .prepare = prepare_pow,
    .run = run_pow,
    .in_place = 1,
    .values = 1 << 1,
};

}  // namespace tombolo
