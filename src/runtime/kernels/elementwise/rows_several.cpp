// Max, Min and Sum of three or more inputs of integers or doubles: two at first, then each other
// one, a block at a time that stays in the first cache.

#include <algorithm>
#include <vector>

#include "runtime/kernels/broadcast.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct SeveralState final : KernelState {
  BroadcastLoops<3> first;                ///< inputs 0 and 1, and the output
  std::vector<BroadcastLoops<2>> others;  ///< the output, and each of the others
  BinaryFn* fn = nullptr;
};

bool plan_several(const KernelQuery& q, Binary op, SeveralState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || q.opset < 8) return false;
  const DType dtype = q.dtype(0);
  if (dtype != DType::kFloat64 && !is_integer(dtype)) return false;
  s.fn = binary_fn(op, dtype);
  if (s.fn == nullptr) return false;
  Dims output;
  for (size_t i = 0; i < q.inputs.size(); ++i) {
    if (q.dtype(i) != dtype) return false;
    const auto both = BroadcastLoops<2>::of({output, q.dims(i)});
    if (!both) return false;
    output = both->output;
  }
  const auto first = BroadcastLoops<3>::of({q.dims(0), q.dims(1), output});
  if (!first) return false;
  s.first = *first;
  for (size_t i = 2; i < q.inputs.size(); ++i) {
    const auto next = BroadcastLoops<2>::of({output, q.dims(i)});
    if (!next) return false;
    s.others.push_back(*next);
  }
  return true;
}
template <Binary kOp>
bool supports_several(const KernelQuery& q) {
  SeveralState state;
  return plan_several(q, kOp, state);
}
template <Binary kOp>
Result<std::unique_ptr<KernelState>> prepare_several(const PrepareContext& q) {
  auto state = std::make_unique<SeveralState>();
  plan_several(q, kOp, *state);
  return state;
}

Status run_several(KernelRun& run) {
  const auto& s = run.state<SeveralState>();
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, s.first.output));
  const auto size = static_cast<int64_t>(bytes_of(dtype));
  std::byte* to = y->data<std::byte>();
  const auto input = [&](size_t i) { return run.data<std::byte>(i); };
  constexpr int64_t kBlock = 2048;
  run.parallel_for(s.first.count, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t until = std::min(end, from + kBlock);
      s.first.for_runs(from, until, [&](int64_t at, const int64_t* offset, int64_t n) {
        const int64_t* step = s.first.step[0];
        s.fn(input(0) + offset[0] * size, step[0] == 0, input(1) + offset[1] * size, step[1] == 0,
             to + at * size, n);
      });
      for (size_t i = 0; i < s.others.size(); ++i) {
        const BroadcastLoops<2>& loops = s.others[i];
        loops.for_runs(from, until, [&](int64_t at, const int64_t* offset, int64_t n) {
          s.fn(to + at * size, false, input(i + 2) + offset[1] * size, loops.step[0][1] == 0,
               to + at * size, n);
        });
      }
    }
  });
  return ok();
}

}  // namespace

KERNEL(max_several) = {
    .name = "max",
    .op = "Max",
    .supports = supports_several<Binary::kMax>,
    .prepare = prepare_several<Binary::kMax>,
    .run = run_several,
};
KERNEL(min_several) = {
    .name = "min",
    .op = "Min",
    .supports = supports_several<Binary::kMin>,
    .prepare = prepare_several<Binary::kMin>,
    .run = run_several,
};
KERNEL(sum_several) = {
    .name = "sum",
    .op = "Sum",
    .supports = supports_several<Binary::kAdd>,
    .prepare = prepare_several<Binary::kAdd>,
    .run = run_several,
};

}  // namespace tombolo
