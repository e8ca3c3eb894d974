// Reductions of floats, and of doubles, integers and bytes where these only fold, along any axes:
// axes are joined into alternating groups, the reduced groups are folded one after the other from
// the innermost.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/elementwise/unary_typed.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

enum class Reduce : uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSum,
  kLogSumExp
};

struct Step {
  int64_t outer, length, inner;
  Fold fold;
};

struct ReduceState final : KernelState {
  std::vector<Step> steps;  ///< none: a copy
  Dims output;
  Reduce op = Reduce::kSum;
  int64_t count = 1;  ///< numbers that go into one
  DType dtype = DType::kFloat32;

  /// The type of what is folded: sums of int32 numbers of which the mean is taken must not wrap,
  /// and what has a root or logarithm is computed in doubles.
  DType wide() const {
    if (dtype != DType::kInt32 && dtype != DType::kInt64) return dtype;
    if (op == Reduce::kL2 || op == Reduce::kLogSum || op == Reduce::kLogSumExp)
      return DType::kFloat64;
    return op == Reduce::kMean ? DType::kInt64 : dtype;
  }
  bool widens() const { return wide() != dtype; }
};

/// Bytes for n numbers of any type, and what keeps the next ones aligned.
size_t scratch_of(int64_t n) { return static_cast<size_t>(n + 15) / 16 * 16 * sizeof(double); }

Fold fold_of(Reduce op) {
  switch (op) {
    case Reduce::kMax:
    case Reduce::kLogSumExp:
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

/// Into how many equal parts few long columns are cut first, so that every thread has some: the
/// same whatever threads there are. What parts give is written and read again.
int64_t parts_of(int64_t outer, int64_t length, int64_t inner) {
  constexpr int64_t kPart = 1 << 15, kMost = 64, kRows = 32;
  for (int64_t parts = std::min({kMost / outer, length / kRows, length * inner / kPart}); parts > 1;
       --parts)
    if (length % parts == 0) return parts;
  return 1;
}

bool plan_reduce(const KernelQuery& query, Reduce op, ReduceState& state) {
  if (active_isa() == Isa::kScalar) return false;
  state.dtype = query.dtype(0);
  switch (state.dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
      break;
    case DType::kInt32:
    case DType::kInt64:
      break;
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kBool:
      if (op != Reduce::kMax && op != Reduce::kMin) return false;
      break;
    default:
      return false;
  }
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
    const int64_t length = groups[i].length, outer = total / length / inner;
    const int64_t parts = op == Reduce::kLogSumExp ? 1 : parts_of(outer, length, inner);
    for (const auto& [rows, part] :
         {std::pair{outer * parts, length / parts}, std::pair{outer, parts}}) {
      if (part == 1) continue;
      state.steps.push_back({rows, part, inner, fold});
      if (fold == Fold::kSumSquare || fold == Fold::kSumAbs) fold = Fold::kSum;
    }
    total /= length;
  }
  // Of one number each what squares, magnitudes or powers are taken of passes through a fold, too.
  if (state.steps.empty() && op != Reduce::kSum && op != Reduce::kMean && op != Reduce::kMax &&
      op != Reduce::kMin && op != Reduce::kProd)
    state.steps.push_back({1, 1, total, fold});
  for (size_t i = 0; i + 1 < state.steps.size(); ++i)
    state.scratch_bytes += scratch_of(state.steps[i].outer * state.steps[i].inner);
  if (state.widens())  // all that comes in and what it is folded to
    state.scratch_bytes +=
        scratch_of(element_count(dims)) + scratch_of(element_count(state.output));
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

/// Columns at a time. Their results stay in the second cache: memory is read ahead along rows, and
/// parts of them that are shorter take up to twice as long. But each thread has some.
int64_t columns_together(const Step& step) {
  constexpr int64_t kMost = 1 << 16, kLeast = 2048;
  const int64_t parts = (thread_count() + step.outer - 1) / step.outer;
  return std::clamp((step.inner + parts - 1) / parts, kLeast, kMost);
}

/// Rows that leave most of a vector empty are turned into columns, so many at a time.
constexpr int64_t kShortRow = 33, kShortRows = 64;
bool short_rows(const Step& step) {
  return step.inner == 1 && step.length > 1 && step.length < kShortRow && step.outer >= 32;
}
/// body(first, rows, columns) for blocks of short rows; the columns are kShortRows apart.
template <typename T, typename Body>
void for_short_rows(const KernelRun& run, const Step& step, const T* x, Body&& body) {
  const int64_t blocks = (step.outer + kShortRows - 1) / kShortRows;
  run.parallel_for(blocks, std::max<int64_t>(1, 16384 / (step.length * kShortRows)),
                   [&](int64_t begin, int64_t end) {
                     T columns[kShortRow * kShortRows];
                     for (int64_t block = begin; block < end; ++block) {
                       const int64_t first = block * kShortRows;
                       const int64_t rows = std::min(kShortRows, step.outer - first);
                       transpose_tile(reinterpret_cast<const std::byte*>(x + first * step.length),
                                      step.length, reinterpret_cast<std::byte*>(columns),
                                      kShortRows, rows, step.length, sizeof(T));
                       body(first, rows, static_cast<const T*>(columns));
                     }
                   });
}

template <typename T>
void fold_step(const KernelRun& run, const Step& step, const T* x, T* y) {
  if (short_rows(step))
    return for_short_rows(run, step, x, [&](int64_t first, int64_t rows, const T* columns) {
      fold_columns(step.fold, columns, step.length, kShortRows, rows, y + first);
    });
  if (step.inner == 1) {
    run.parallel_for(
        step.outer, std::max<int64_t>(1, 16384 / step.length), [&](int64_t begin, int64_t end) {
          fold_rows(step.fold, x + begin * step.length, step.length, end - begin, y + begin);
        });
    return;
  }
  const int64_t width = columns_together(step), columns = (step.inner + width - 1) / width;
  run.parallel_for(step.outer * columns,
                   std::max<int64_t>(1, 16384 / (step.length * std::min(width, step.inner))),
                   [&](int64_t begin, int64_t end) {
                     if (columns == 1)
                       return fold_columns(step.fold, x + begin * step.length * step.inner,
                                           step.length, step.inner, step.inner,
                                           y + begin * step.inner, end - begin);
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % columns * width, i = task / columns;
                       fold_columns(step.fold, x + i * step.length * step.inner + column,
                                    step.length, step.inner, std::min(width, step.inner - column),
                                    y + i * step.inner + column);
                     }
                   });
}

template <typename T>
void log_sum_exp(const KernelRun& run, const Step& step, const T* x, T* y) {
  // An infinity or NaN as the greatest is the result.
  const auto finish = [](T most, T sum) {
    return std::isfinite(most) ? most + std::log(sum) : most;
  };
  if (short_rows(step))
    return for_short_rows(run, step, x, [&](int64_t first, int64_t rows, const T* columns) {
      T most[kShortRows], sums[kShortRows];
      fold_columns(Fold::kMax, columns, step.length, kShortRows, rows, most);
      exp_sum_columns(columns, step.length, kShortRows, rows, most, sums);
      for (int64_t r = 0; r < rows; ++r) y[first + r] = finish(most[r], sums[r]);
    });
  if (step.inner == 1) {
    run.parallel_for(step.outer, std::max<int64_t>(1, 8192 / step.length),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         const T* row = x + i * step.length;
                         const T most = fold_row(Fold::kMax, row, step.length);
                         y[i] = finish(most, exp_sum_row(row, step.length, most));
                       }
                     });
    return;
  }
  constexpr int64_t kFew = 64;
  const int64_t columns = (step.inner + kFew - 1) / kFew;
  run.parallel_for(step.outer * columns,
                   std::max<int64_t>(1, 8192 / (step.length * std::min(kFew, step.inner))),
                   [&](int64_t begin, int64_t end) {
                     T most[kFew], sums[kFew];
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % columns * kFew, i = task / columns;
                       const int64_t width = std::min(kFew, step.inner - column);
                       const T* from = x + i * step.length * step.inner + column;
                       fold_columns(Fold::kMax, from, step.length, step.inner, width, most);
                       exp_sum_columns(from, step.length, step.inner, width, most, sums);
                       for (int64_t j = 0; j < width; ++j)
                         y[i * step.inner + column + j] = finish(most[j], sums[j]);
                     }
                   });
}

template <typename T>
void take_step(const KernelRun& run, const ReduceState& state, const Step& step, const T* from,
               T* to) {
  if constexpr (std::is_floating_point_v<T>)
    if (state.op == Reduce::kLogSumExp) return log_sum_exp(run, step, from, to);
  fold_step(run, step, from, to);
}

/// All steps, from x to `out`, which is y or has its number of elements. What several axes give by
/// LogSumExp one gives of what another gives.
template <typename T>
void fold_steps(const KernelRun& run, const ReduceState& state, const T* from, T* out,
                std::byte* scratch, int64_t count) {
  for (size_t i = 0; i < state.steps.size(); ++i) {
    const Step& step = state.steps[i];
    const bool last = i + 1 == state.steps.size();
    T* to = last ? out : reinterpret_cast<T*>(scratch);
    take_step(run, state, step, from, to);
    from = to;
    if (!last) scratch += scratch_of(step.outer * step.inner);
  }
  if (state.steps.empty()) std::copy_n(from, count, out);
}

/// Everything but the widths: from x, with `scratch` for what is between the steps, to `out`.
template <typename T>
void reduce(const KernelRun& run, const ReduceState& state, const T* from, T* out,
            std::byte* scratch, int64_t count) {
  fold_steps(run, state, from, out, scratch, count);
  if constexpr (std::is_same_v<T, int64_t>)
    if (state.op == Reduce::kMean)
      binary_fn(Binary::kDiv, DType::kInt64)(out, false, &state.count, true, out, count);
  if constexpr (std::is_floating_point_v<T>) {
    switch (state.op) {
      case Reduce::kMean:
        for (int64_t i = 0; i < count; ++i) out[i] /= static_cast<T>(state.count);
        break;
      case Reduce::kL2:
        for (int64_t i = 0; i < count; ++i) out[i] = std::sqrt(out[i]);
        break;
      case Reduce::kLogSum:
        for (int64_t i = 0; i < count; ++i) out[i] = std::log(out[i]);
        break;
      default:
        break;
    }
  }
}

/// Integers by numbers of another type.
template <typename Wide>
void reduce_widened(const KernelRun& run, const ReduceState& state, Tensor& y) {
  const Tensor& x = run.input(0);
  std::byte* scratch = run.scratch();
  auto* wide = reinterpret_cast<Wide*>(scratch);
  auto* results = reinterpret_cast<Wide*>(scratch += scratch_of(x.size()));
  const auto bytes = static_cast<int64_t>(bytes_of(x.dtype()));
  ConvertFn* const widen = convert_fn(x.dtype(), state.wide());
  run.parallel_for(x.size(), 1 << 15, [&](int64_t begin, int64_t end) {
    widen(x.data<std::byte>() + begin * bytes, wide + begin, end - begin);
  });
  reduce(run, state, wide, results, scratch + scratch_of(y.size()), y.size());
  // By way of int64, as the reference: what does not fit int32 wraps.
  if (x.dtype() == DType::kInt64)
    return convert_fn(state.wide(), DType::kInt64)(results, y.data<int64_t>(), y.size());
  if constexpr (std::is_same_v<Wide, double>)
    convert_fn(DType::kFloat64, DType::kInt64)(results, results, y.size());
  convert_fn(DType::kInt64, DType::kInt32)(results, y.data<int32_t>(), y.size());
}

template <typename T>
void reduce_plain(const KernelRun& run, const ReduceState& state, Tensor& y) {
  reduce(run, state, run.data<T>(0), y.data<T>(), run.scratch(), y.size());
}

Status run_reduce(KernelRun& run) {
  const auto& state = run.state<ReduceState>();
  TRY(Tensor * y, run.output(0, state.dtype, state.output));
  switch (state.wide()) {
    case DType::kFloat32:
      reduce_plain<float>(run, state, *y);
      break;
    case DType::kFloat64:
      state.widens() ? reduce_widened<double>(run, state, *y)
                     : reduce_plain<double>(run, state, *y);
      break;
    case DType::kInt32:
      reduce_plain<int32_t>(run, state, *y);
      break;
    case DType::kInt64:
      state.widens() ? reduce_widened<int64_t>(run, state, *y)
                     : reduce_plain<int64_t>(run, state, *y);
      break;
    case DType::kInt8:
      reduce_plain<int8_t>(run, state, *y);
      break;
    default:
      reduce_plain<uint8_t>(run, state, *y);
  }
  return ok();
}

}  // namespace

KERNEL(reduce_sum) = {
    .name = "reduce_sum",
    .op = "ReduceSum",
    .supports = supports_reduce<Reduce::kSum>,
    .prepare = prepare_reduce<Reduce::kSum>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_mean) = {
    .name = "reduce_mean",
    .op = "ReduceMean",
    .supports = supports_reduce<Reduce::kMean>,
    .prepare = prepare_reduce<Reduce::kMean>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_max) = {
    .name = "reduce_max",
    .op = "ReduceMax",
    .supports = supports_reduce<Reduce::kMax>,
    .prepare = prepare_reduce<Reduce::kMax>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_min) = {
    .name = "reduce_min",
    .op = "ReduceMin",
    .supports = supports_reduce<Reduce::kMin>,
    .prepare = prepare_reduce<Reduce::kMin>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_prod) = {
    .name = "reduce_prod",
    .op = "ReduceProd",
    .supports = supports_reduce<Reduce::kProd>,
    .prepare = prepare_reduce<Reduce::kProd>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_l1) = {
    .name = "reduce_l1",
    .op = "ReduceL1",
    .supports = supports_reduce<Reduce::kL1>,
    .prepare = prepare_reduce<Reduce::kL1>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_l2) = {
    .name = "reduce_l2",
    .op = "ReduceL2",
    .supports = supports_reduce<Reduce::kL2>,
    .prepare = prepare_reduce<Reduce::kL2>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_sum_square) = {
    .name = "reduce_sum_square",
    .op = "ReduceSumSquare",
    .supports = supports_reduce<Reduce::kSumSquare>,
    .prepare = prepare_reduce<Reduce::kSumSquare>,
    .run = run_reduce,
    .values = 1 << 1,
};
KERNEL(reduce_log_sum) = {
    .name = "reduce_log_sum",
    .op = "ReduceLogSum",
    .supports = supports_reduce<Reduce::kLogSum>,
    .prepare = prepare_reduce<Reduce::kLogSum>,
    .run = run_reduce,
    .values = 1 << 1,
};

KERNEL(reduce_log_sum_exp) = {
    .name = "reduce_log_sum_exp",
    .op = "ReduceLogSumExp",
    .supports = supports_reduce<Reduce::kLogSumExp>,
    .prepare = prepare_reduce<Reduce::kLogSumExp>,
    .run = run_reduce,
    .values = 1 << 1,
};

}  // namespace tombolo
