// Reductions of floats along any axes: axes are joined into alternating groups, the reduced groups
// are folded one after the other from the innermost.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/rows.h"

namespace tombolo {
namespace {

enum class Reduce : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum };

struct Step {
  int64_t outer, length, inner;
  Fold fold;
};

struct ReduceState final : KernelState {
  std::vector<Step> steps;  ///< none: a copy
  Dims output;
  Reduce op = Reduce::kSum;
  int64_t count = 1;  ///< numbers that go into one
};

Fold fold_of(Reduce op) {
  switch (op) {
    case Reduce::kMax:
      return Fold::kMax;
    case Reduce::kMin:
      return Fold::kMin;
    case Reduce::kProd:
      return Fold::kProd;
    case Reduce::kL1:
      return Fold::kSumAbs;
    case Reduce::kL2:
    case Reduce::kSumSquare:
      return Fold::kSumSquare;
    default:
      return Fold::kSum;
  }
}

bool plan_reduce(const KernelQuery& query, Reduce op, ReduceState& state) {
  if (active_isa() == Isa::kScalar || query.dtype(0) != DType::kFloat32) return false;
  const auto dims = query.dims(0);
  if (element_count(dims) < 1) return false;
  std::vector<int64_t> axes;
  if (query.has_input(1)) {
    const Tensor* tensor = query.constant(1);
    if (tensor == nullptr || tensor->dtype() != DType::kInt64) return false;
    axes.assign(tensor->data<int64_t>(), tensor->data<int64_t>() + tensor->size());
  } else {
    const auto given = query.attributes.get_ints("axes");
    axes.assign(given.begin(), given.end());
  }
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<bool> reduced(dims.size(), false);
  if (axes.empty()) {
    if (query.attributes.get_int("noop_with_empty_axes", 0) != 0) return false;
    reduced.assign(dims.size(), true);
  }
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return false;
    const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (reduced[at]) return false;  // given twice: the reference kernel says so
    reduced[at] = true;
  }
  const bool keep = query.attributes.get_int("keepdims", 1) != 0;
  // Groups of axes from the outermost; axes of length 1 join either kind.
  struct Group {
    int64_t length;
    bool reduced;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i])
      state.output.push_back(dims[i]);
    else if (keep)
      state.output.push_back(1);
    if (reduced[i]) state.count *= dims[i];
    if (dims[i] == 1) continue;
    if (!groups.empty() && groups.back().reduced == reduced[i])
      groups.back().length *= dims[i];
    else
      groups.push_back({dims[i], reduced[i]});
  }
  state.op = op;
  Fold fold = fold_of(op);
  int64_t inner = 1, total = element_count(dims);
  for (size_t i = groups.size(); i-- > 0;) {
    if (!groups[i].reduced) {
      inner *= groups[i].length;
      continue;
    }
    total /= groups[i].length;
    state.steps.push_back({total / inner, groups[i].length, inner, fold});
    if (fold == Fold::kSumSquare || fold == Fold::kSumAbs) fold = Fold::kSum;
  }
  // What squares or magnitudes are taken of must pass through a fold.
  if (state.steps.empty() && op != Reduce::kSum && op != Reduce::kMean && op != Reduce::kMax &&
      op != Reduce::kMin && op != Reduce::kProd)
    return false;
  for (size_t i = 0; i + 1 < state.steps.size(); ++i)
    state.scratch_bytes +=
        static_cast<size_t>(state.steps[i].outer * state.steps[i].inner + 16) * sizeof(float);
  return true;
}

template <Reduce kOp>
bool supports_reduce(const KernelQuery& query) {
  ReduceState state;
  return plan_reduce(query, kOp, state);
}

template <Reduce kOp>
Result<std::unique_ptr<KernelState>> prepare_reduce(const PrepareContext& context) {
  auto state = std::make_unique<ReduceState>();
  plan_reduce(context, kOp, *state);
  return state;
}

void fold_step(const KernelRun& run, const Step& step, const float* x, float* y) {
  if (step.inner == 1) {
    run.parallel_for(step.outer, std::max<int64_t>(1, 16384 / step.length),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         y[i] = fold_row(step.fold, x + i * step.length, step.length);
                     });
    return;
  }
  constexpr int64_t kWidth = 256;
  const int64_t columns = (step.inner + kWidth - 1) / kWidth;
  run.parallel_for(step.outer * columns,
                   std::max<int64_t>(1, 16384 / (step.length * std::min(kWidth, step.inner))),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % columns * kWidth, i = task / columns;
                       fold_columns(step.fold, x + i * step.length * step.inner + column,
                                    step.length, step.inner, std::min(kWidth, step.inner - column),
                                    y + i * step.inner + column);
                     }
                   });
}

Status run_reduce(KernelRun& run) {
  const auto& state = run.state<ReduceState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  const float* from = run.data<float>(0);
  float* out = y->data<float>();
  auto* scratch = reinterpret_cast<float*>(run.scratch());
  for (size_t i = 0; i < state.steps.size(); ++i) {
    const Step& step = state.steps[i];
    float* to = i + 1 == state.steps.size() ? out : scratch;
    fold_step(run, step, from, to);
    from = to;
    scratch += (step.outer * step.inner + 15) / 16 * 16;
  }
  if (state.steps.empty()) std::copy_n(from, y->size(), out);
  switch (state.op) {
    case Reduce::kMean:
      for (int64_t i = 0; i < y->size(); ++i) out[i] /= static_cast<float>(state.count);
      break;
    case Reduce::kL2:
      for (int64_t i = 0; i < y->size(); ++i) out[i] = std::sqrt(out[i]);
      break;
    case Reduce::kLogSum:
      for (int64_t i = 0; i < y->size(); ++i) out[i] = std::log(out[i]);
      break;
    default:
      break;
  }
  return ok();
}

}  // namespace

KERNEL(reduce_sum_f32) = {
    .name = "reduce_sum_f32",
    .op = "ReduceSum",
    .supports = supports_reduce<Reduce::kSum>,
    .prepare = prepare_reduce<Reduce::kSum>,
    .run = run_reduce,
};
KERNEL(reduce_mean_f32) = {
    .name = "reduce_mean_f32",
    .op = "ReduceMean",
    .supports = supports_reduce<Reduce::kMean>,
    .prepare = prepare_reduce<Reduce::kMean>,
    .run = run_reduce,
};
KERNEL(reduce_max_f32) = {
    .name = "reduce_max_f32",
    .op = "ReduceMax",
    .supports = supports_reduce<Reduce::kMax>,
    .prepare = prepare_reduce<Reduce::kMax>,
    .run = run_reduce,
};
KERNEL(reduce_min_f32) = {
    .name = "reduce_min_f32",
    .op = "ReduceMin",
    .supports = supports_reduce<Reduce::kMin>,
    .prepare = prepare_reduce<Reduce::kMin>,
    .run = run_reduce,
};
KERNEL(reduce_prod_f32) = {
    .name = "reduce_prod_f32",
    .op = "ReduceProd",
    .supports = supports_reduce<Reduce::kProd>,
    .prepare = prepare_reduce<Reduce::kProd>,
    .run = run_reduce,
};
KERNEL(reduce_l1_f32) = {
    .name = "reduce_l1_f32",
    .op = "ReduceL1",
    .supports = supports_reduce<Reduce::kL1>,
    .prepare = prepare_reduce<Reduce::kL1>,
    .run = run_reduce,
};
KERNEL(reduce_l2_f32) = {
    .name = "reduce_l2_f32",
    .op = "ReduceL2",
    .supports = supports_reduce<Reduce::kL2>,
    .prepare = prepare_reduce<Reduce::kL2>,
    .run = run_reduce,
};
KERNEL(reduce_sum_square_f32) = {
    .name = "reduce_sum_square_f32",
    .op = "ReduceSumSquare",
    .supports = supports_reduce<Reduce::kSumSquare>,
    .prepare = prepare_reduce<Reduce::kSumSquare>,
    .run = run_reduce,
};
KERNEL(reduce_log_sum_f32) = {
    .name = "reduce_log_sum_f32",
    .op = "ReduceLogSum",
    .supports = supports_reduce<Reduce::kLogSum>,
    .prepare = prepare_reduce<Reduce::kLogSum>,
    .run = run_reduce,
};

}  // namespace tombolo
