#pragma once

// Reductions along axes. A reducer is a small struct: what an accumulator starts as, how it takes
// a number in, and what it gives in the end. Floats are accumulated in double and rounded once.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/kernel_context.h"
#include "ops/kernels/elementwise.h"

namespace tombolo::ops {

/// A tensor as alternating groups of kept and reduced axes.
struct ReducePlan {
  Dims output;                    ///< with kept axes of length 1 if the node asks for them
  Dims kept, kept_strides;        ///< without the inner run
  Dims reduced, reduced_strides;  ///< without the inner run
  int64_t inner = 1;              ///< elements side by side in memory
  bool inner_reduced = true;      ///< whether these go into one accumulator or into one each
  int64_t count = 1;              ///< elements that go into one accumulator
};

/// From the node's axes (input 1 or attribute), keepdims and noop_with_empty_axes.
Result<ReducePlan> plan_reduction(const KernelContext& context, const Tensor& data);
Result<ReducePlan> plan_reduction(const Tensor& data, const std::vector<int64_t>& axes,
                                  bool keep_dims);

/// Elements [begin, begin + count) as numbers of type T: double, int64_t or uint64_t.
template <typename T>
void load_numbers(const Tensor& tensor, int64_t begin, int64_t count, T* out) {
  if (std::is_same_v<T, double> && tensor.dtype() != DType::kFloat64)
    load_doubles(tensor, begin, count, reinterpret_cast<double*>(out));
  else
    widen(tensor, begin, count, out);
}
template <typename T>
void store_numbers(const T* in, int64_t count, Tensor& tensor, int64_t begin) {
  if (std::is_same_v<T, double>)
    store_doubles(reinterpret_cast<const double*>(in), count, tensor, begin);
  else
    narrow(in, count, tensor, begin);
}

/// Reduces `data` into `out`. R::start(), R::add(State&, T) and R::finish(State, count) -> T.
template <typename T, typename R>
void reduce_as(const KernelContext& context, const ReducePlan& plan, const Tensor& data,
               Tensor& out, const R& reducer) {
  using State = decltype(reducer.template start<T>());
  constexpr int64_t kBlock = 512;
  // A task is one accumulator, or one block of neighbouring ones.
  const int64_t width = plan.inner_reduced ? 1 : plan.inner;
  const int64_t blocks = (width + kBlock - 1) / kBlock;
  const int64_t outer = element_count(plan.kept);
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, plan.count));
  context.parallel_for(outer * blocks, grain, [&](int64_t first, int64_t last) {
    std::vector<State> states(static_cast<size_t>(std::min(width, kBlock)));
    std::vector<T> numbers(static_cast<size_t>(kBlock));
    Dims index;
    for (int64_t task = first; task < last; ++task) {
      const int64_t column = task % blocks * kBlock;
      const int64_t columns = std::min(kBlock, width - column);
      int64_t base = column;
      for (int64_t rest = task / blocks, j = plan.kept.size(); j-- > 0;) {
        const auto axis = static_cast<size_t>(j);
        base += rest % plan.kept[axis] * plan.kept_strides[axis];
        rest /= plan.kept[axis];
      }
      std::fill_n(states.begin(), columns, reducer.template start<T>());
      index.clear();
      index.resize(plan.reduced.size(), 0);
      for (bool more = plan.count > 0; more;) {
        int64_t at = base;
        for (uint32_t j = 0; j < index.size(); ++j) at += index[j] * plan.reduced_strides[j];
        const int64_t run = plan.inner_reduced ? plan.inner : columns;
        for (int64_t i = 0; i < run; i += kBlock) {
          const int64_t count = std::min(kBlock, run - i);
          load_numbers(data, at + i, count, numbers.data());
          if (plan.inner_reduced)
            for (int64_t q = 0; q < count; ++q)
              reducer.add(states[0], numbers[static_cast<size_t>(q)]);
          else
            for (int64_t q = 0; q < count; ++q)
              reducer.add(states[static_cast<size_t>(q)], numbers[static_cast<size_t>(q)]);
        }
        more = false;
        for (uint32_t j = index.size(); j-- > 0 && !more;) {
          more = ++index[j] < plan.reduced[j];
          if (!more) index[j] = 0;
        }
      }
      for (int64_t q = 0; q < columns; ++q) {
        const auto result = reducer.finish(states[static_cast<size_t>(q)], plan.count);
        if constexpr (std::is_same_v<decltype(result), const T>)
          numbers[static_cast<size_t>(q)] = result;
        else
          numbers[static_cast<size_t>(q)] = to_integer<T>(result);
      }
      store_numbers(numbers.data(), columns, out, task / blocks * width + column);
    }
  });
}

/// Runs a reduction operator: input 0, axes from input 1 or the attribute, into output 0.
template <typename R>
Status run_reduce(KernelContext& context, const R& reducer, Bools bools = Bools::kRefuse) {
  TRY(const Tensor* data, context.input(0));
  TRY(const ReducePlan plan, plan_reduction(context, *data));
  const Compute compute = compute_type(data->dtype());
  if (compute == Compute::kNone || (data->dtype() == DType::kBool && bools == Bools::kRefuse))
    return unsupported("a reduction of " + to_string(*data));
  TRY(Tensor * out, context.output(0, data->dtype(), plan.output));
  if (out->size() == 0) return ok();
  if (compute == Compute::kInt64)
    reduce_as<int64_t>(context, plan, *data, *out, reducer);
  else if (compute == Compute::kUInt64)
    reduce_as<uint64_t>(context, plan, *data, *out, reducer);
  else
    reduce_as<double>(context, plan, *data, *out, reducer);
  return ok();
}

}  // namespace tombolo::ops
