#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"

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
    context.parallel_for(
        out->size(), std::max<int64_t>(1, (1 << 15) / length), [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const T* data = numbers.data<T>() + line / inner * length * inner + line % inner;
            int64_t best = 0;
            for (int64_t i = 1; i < length; ++i) {
              const T value = data[i * inner], champion = data[best * inner];
              const bool both_nan = value != value && champion != champion;
              const bool better = champion == champion &&
                                  (value != value || (max ? value > champion : value < champion));
              if (better || (last && (value == champion || both_nan))) best = i;
            }
            out->data<int64_t>()[line] = best;
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
};

}  // namespace tombolo::ops
