#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/numbers.h"
#include "ops/kernels/order_key.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_top_k(InferContext& context) {
  const SymShape* x = context.shape(0);
  SymDim k;
  if (context.opset < 10) {
    k = context.attributes.get_int("k", 1);
  } else if (const auto given = scalar_of(context, 1)) {
    k = *given;
  }
  if (k.is_value() && k.value() < 0) return context.error("k is " + k.to_string());
  if (x == nullptr) return ok();
  if (x->empty()) return context.error("X is a scalar: there is no axis to sort");
  TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", -1), x->size()));
  if (k.is_value() && (*x)[axis].is_value() && k.value() > (*x)[axis].value())
    return context.error("k is " + k.to_string() + ", but axis " + std::to_string(axis) +
                         " has only " + (*x)[axis].to_string());
  SymShape out = *x;
  out[axis] = k;
  set_shape(context, 1, out);
  set_shape(context, 0, std::move(out));
  return ok();
}
/// The best k of `length` elements by key and then by index, in `found` as (key, index) in one
/// number each, the best first or by index. The greater number is the better one.
void select_best(const float* data, int64_t step, int64_t length, int64_t k, bool largest,
                 bool sorted, std::vector<uint64_t>& found) {
  found.clear();
  const auto packed = [&](int64_t i) {
    const uint32_t key = order_key(data[i * step]);
    return uint64_t{largest ? key : ~key} << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
  };
  // Candidates gather until there are many; then only the best k stay, and the last of them is
  // what others must beat.
  const auto keep = static_cast<size_t>(k), room = std::max<size_t>(2 * keep, keep + 32);
  uint64_t least = 0;
  float limit = std::numeric_limits<float>::quiet_NaN();  ///< what is beyond it is not looked at
  const auto cut = [&] {
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(keep) - 1,
                     found.end(), std::greater<>());
    found.resize(keep);
    least = found.back();
    limit = data[static_cast<int64_t>(UINT32_MAX - static_cast<uint32_t>(least)) * step];
  };
  for (int64_t i = 0; i < length; ++i) {
    const float x = data[i * step];
    if (largest ? x < limit : x > limit) continue;
    const uint64_t number = packed(i);
    if (number <= least) continue;
    found.push_back(number);
    if (found.size() == room) cut();
  }
  if (found.size() > keep) cut();
  if (sorted)
    std::sort(found.begin(), found.end(), std::greater<>());
  else
    std::sort(found.begin(), found.end(), [](uint64_t a, uint64_t b) {
      return static_cast<uint32_t>(a) > static_cast<uint32_t>(b);
    });
}

Status run_top_k(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -1), static_cast<int64_t>(x->rank())));
  const auto at = static_cast<size_t>(axis);
  int64_t k = context.attributes.get_int("k", 0);
  if (context.opset >= 10) {
    TRY(k, scalar_int(context, 1, "K"));
  }
  const int64_t length = x->dim(at);
  if (k < 0 || k > length)
    return context.error("K is " + std::to_string(k) + ", but axis " + std::to_string(axis) +
                         " has " + std::to_string(length) + " elements");
  const bool largest = context.attributes.get_int("largest", 1) != 0;
  // What is not sorted may come in any order: here in that of the indices, which costs least.
  const bool sorted = context.attributes.get_int("sorted", 1) != 0;
  if (context.output_count() < 2) return context.error("two outputs are needed");
  Dims dims = x->dims();
  dims[at] = k;
  TRY(Tensor * values, context.output(0, x->dtype(), dims));
  TRY(Tensor * places, context.output(1, DType::kInt64, dims));
  const int64_t outer = product(dims, 0, at), inner = product(dims, at + 1, dims.size());
  if (x->dtype() == DType::kFloat32 && length < INT32_MAX) {
    if (k == 0) return ok();
    context.parallel_for(
        outer * inner, std::max<int64_t>(1, (1 << 14) / length), [&](int64_t begin, int64_t end) {
          std::vector<uint64_t> found;
          for (int64_t line = begin; line < end; ++line) {
            const float* data = x->data<float>() + line / inner * length * inner + line % inner;
            select_best(data, inner, length, k, largest, sorted, found);
            for (int64_t i = 0; i < k; ++i) {
              const int64_t to = (line / inner * k + i) * inner + line % inner;
              const auto place = static_cast<int64_t>(
                  UINT32_MAX - static_cast<uint32_t>(found[static_cast<size_t>(i)]));
              values->data<float>()[to] = data[place * inner];
              places->data<int64_t>()[to] = place;
            }
          }
        });
    return ok();
  }
  return with_numbers(context, *x, [&]<typename T>(const Tensor& numbers) -> Status {
    std::vector<int64_t> order(static_cast<size_t>(length));
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t from = line / inner * length * inner + line % inner;
      const T* data = numbers.data<T>() + from;
      // Of equal elements the one with the lower index comes first, whichever end is wanted.
      auto before = [&](int64_t a, int64_t b) {
        const T p = data[a * inner], q = data[b * inner];
        if (total_less(p, q)) return !largest;
        if (total_less(q, p)) return largest;
        return a < b;
      };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      if (!sorted) std::sort(order.begin(), order.begin() + k);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (line / inner * k + i) * inner + line % inner;
        const int64_t place = order[static_cast<size_t>(i)];
        copy_elements(*x, from + place * inner, *values, to, 1);
        places->data<int64_t>()[to] = place;
      }
    }
    return ok();
  });
}

}  // namespace

namespace {

Status step_k_to_input(StepContext& step) {
  if (!step.has("k")) return step.cannot("there is no k");
  Value* const k = step.ints({step.get_int("k", 1)}, "k");
  step.node.remove_attribute("k");
  step.node.set_input(1, k);
  return ok();
}

}  // namespace

namespace {

Status step_largest_only(StepContext& step) {
  if (step.get_int("largest", 1) == 0) return step.cannot("it gave the largest only");
  step.node.remove_attribute("largest");
  step.node.remove_attribute("sorted");  // the order was the one of size
  return ok();
}

Status step_k_to_attribute(StepContext& step) {
  const auto k = step.constant_ints(1);
  if (!k || k->size() != 1) return step.cannot("K must be constant there");
  step.node.set_int("k", (*k)[0]);
  step.node.remove_input(1);
  return ok();
}

}  // namespace

OPERATOR(TopK) = {
    .name = "TopK",
    .doc = "the k largest or smallest elements along an axis, and their indices",
    .versions = {1, 10, 11, 24},
    .inputs =
        {
            {"X", "T"},
            {"K", "tensor(int64)", kSingle, {.since = 10}},
        },
    .outputs =
        {
            {"Values", "T"},
            {"Indices", "I"},
        },
    .attributes =
        {
            {"axis", -1},
            {"k", required(Attr::kInt), {.until = 9}},
            {"largest", 1, {.since = 11}},
            {"sorted", 1, {.since = 11}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {11, kInts}, {24, kBf16}}},
            {"I", {{1, kI64}}},
        },
    .infer = infer_top_k,
    .reference = run_top_k,
    .up = {{1, 10, step_k_to_input}},
    .down = {{11, 10, step_largest_only}, {10, 1, step_k_to_attribute}},
};

}  // namespace tombolo::ops
