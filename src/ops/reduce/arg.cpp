#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_arg(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  if (data->empty()) return ok();
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
  SymShape out = *data;
  if (context.attributes.get_int("keepdims", 1) != 0)
    out[axis] = 1;
  else
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  context.set_tensor(0, DType::kInt64, std::move(out));
  return ok();
}
/// The place of the extremum of each line; NaN counts as one, as in numpy.
Status run_arg(KernelContext& context, bool max) {
  TRY(const Tensor* x, context.input(0));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(x->rank())));
  const auto at = static_cast<size_t>(axis);
  const bool last = context.attributes.get_int("select_last_index", 0) != 0;
  const int64_t length = x->dim(at), inner = product(x->dims(), at + 1, x->rank());
  Dims dims = x->dims();
  if (context.attributes.get_int("keepdims", 1) != 0)
    dims[at] = 1;
  else
    dims.erase(static_cast<uint32_t>(at));
  TRY(Tensor * out, context.output(0, DType::kInt64, dims));
  if (out->size() == 0) return ok();
  if (length == 0)
    return context.error("axis " + std::to_string(axis) + " of " + to_string(*x) + " is empty");
  return with_numbers(context, *x, [&]<typename T>(const Tensor& numbers) -> Status {
    // Lines that lie side by side go on together: memory is read in order.
    constexpr int64_t kLines = 128;
    const int64_t strips = (inner + kLines - 1) / kLines, outer = out->size() / inner;
    const auto is_better = [&](T value, T champion) {
      const bool both_nan = value != value && champion != champion;
      const bool better =
          champion == champion && (value != value || (max ? value > champion : value < champion));
      return better || (last && (value == champion || both_nan));
    };
    context.parallel_for(
        outer * strips, std::max<int64_t>(1, (1 << 15) / (length * std::min(inner, kLines))),
        [&](int64_t begin, int64_t end) {
          T champions[kLines];
          int64_t places[kLines];
          for (int64_t task = begin; task < end; ++task) {
            const int64_t line = task % strips * kLines, n = std::min(kLines, inner - line);
            const T* data = numbers.data<T>() + task / strips * length * inner + line;
            std::copy_n(data, n, champions);
            std::fill_n(places, n, int64_t{0});
            for (int64_t i = 1; i < length; ++i)
              for (int64_t k = 0; k < n; ++k) {
                const T value = data[i * inner + k];
                if (!is_better(value, champions[k])) continue;
                champions[k] = value;
                places[k] = i;
              }
            std::copy_n(places, n, out->data<int64_t>() + task / strips * inner + line);
          }
        });
    return ok();
  });
}

Status run_arg_max(KernelContext& context) { return run_arg(context, true); }

}  // namespace

OPERATOR(ArgMax) = {
    .name = "ArgMax",
    .doc = "index of the maximum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
    .infer = infer_arg,
    .reference = run_arg_max,
    .down = {{11, 1, step_axis_from_front}},
};

namespace {

Status run_arg_min(KernelContext& context) { return run_arg(context, false); }

}  // namespace

OPERATOR(ArgMin) = {
    .name = "ArgMin",
    .doc = "index of the minimum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
    .infer = infer_arg,
    .reference = run_arg_min,
    .down = {{11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
