#include "ops/infer_generic.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/scatter.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

Status run_scatter_nd(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  TRY(const Tensor* updates, context.input(2));
  CHECK_OK(check_index_type(*indices));
  TRY(const Reduction reduction, scatter_reduction(context, *data, *updates));
  if (indices->rank() == 0) return context.error("indices must have at least one axis");
  const auto tuple = static_cast<size_t>(indices->dim(indices->rank() - 1));
  Dims expected;
  for (size_t j = 0; j + 1 < indices->rank(); ++j) expected.push_back(indices->dim(j));
  for (size_t j = tuple; j < data->rank(); ++j) expected.push_back(data->dim(j));
  if (tuple > data->rank() || updates->dims() != expected)
    return context.error("indices " + to_string(*indices) + " and updates " + to_string(*updates) +
                         " do not fit data " + to_string(*data));
  TRY(Tensor * out, context.output(0, data->dtype(), data->dims()));
  copy_elements(*data, 0, *out, 0, data->size());
  const Dims strides = contiguous_strides(data->dims());
  const int64_t run = product(data->dims(), tuple, data->rank());
  const int64_t tuples = product(indices->dims(), 0, indices->rank() - 1);
  for (int64_t k = 0; k < tuples; ++k) {
    int64_t to = 0;
    for (size_t j = 0; j < tuple; ++j) {
      const int64_t given =
          indices->get_int64(k * static_cast<int64_t>(tuple) + static_cast<int64_t>(j));
      TRY(const int64_t place, checked_index(given, data->dim(j), static_cast<int64_t>(j)));
      to += place * strides[j];
    }
    combine_run(reduction, *updates, k * run, *out, to, run);
  }
  return ok();
}

}  // namespace

namespace {

Status step_no_extremum_of_slices(StepContext& step) {
  const Text reduction = step.get_string("reduction", "none");
  if (reduction == "max" || reduction == "min")
    return step.cannot("it had no reduction by " + std::string(reduction));
  return ok();
}

}  // namespace

OPERATOR(ScatterND) = {
    .name = "ScatterND",
    .doc = "a copy with elements or slices replaced or combined, placed by tuples of indices",
    .versions = {11, 13, 16, 18},
    .inputs =
        {
            {"data", "T"},
            {"indices", "tensor(int64)"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"reduction", "none", {.since = 16}}},
    .types = {{"T", {{11, kAll}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_scatter_nd,
    .down = {{18, 16, step_no_extremum_of_slices}},
};

}  // namespace tombolo::ops
