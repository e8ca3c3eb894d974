#include <algorithm>

#include "ops/expansions.h"
#include "ops/infer_generic.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_trilu(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  if (data->rank() < 2) return context.error("matrices are needed, not " + to_string(*data));
  int64_t k = 0;
  if (context.has_input(1)) {
    TRY(k, scalar_int(context, 1, "k"));
  }
  const bool upper = context.attributes.get_int("upper", 1) != 0;
  const int64_t rows = data->dim(data->rank() - 2), columns = data->dim(data->rank() - 1);
  k = std::clamp(k, -rows, columns);
  TRY(Tensor * out, context.output(0, data->dtype(), data->dims()));
  fill_zero(*out);
  if (out->size() == 0) return ok();
  for (int64_t row = 0; row < data->size() / columns; ++row) {
    // Of row i the upper triangle keeps columns from i + k on, the lower those up to it.
    const int64_t edge = std::clamp<int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
    const int64_t begin = upper ? edge : 0, end = upper ? columns : edge;
    copy_elements(*data, row * columns + begin, *out, row * columns + begin, end - begin);
  }
  return ok();
}

}  // namespace

OPERATOR(Trilu) = {
    .name = "Trilu",
    .doc = "the upper or lower triangle, zeros elsewhere",
    .versions = {14},
    .inputs =
        {
            {"input", "T"},
            {"k", "tensor(int64)", kOptional},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"upper", 1}},
    .types = {{"T", {{14, kAll | kBf16}}}},
    .infer = infer_unary,
    .reference = run_trilu,
    .down = {{14, 0, expand_trilu}},
};

}  // namespace tombolo::ops
