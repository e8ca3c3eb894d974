#include <algorithm>
#include <numeric>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/step_context.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_gather(InferContext& context) {
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data == nullptr) return ok();
  if (data->empty()) return context.error("data is a scalar: there is no axis to gather from");
  TRY(const size_t axis,
      checked_axis(context, context.attributes.get_int("axis", 0), data->size()));
  // Constant indices must lie inside.
  if (const SymShape* picked = context.ints(1); picked != nullptr && (*data)[axis].is_value()) {
    const int64_t size = (*data)[axis].value();
    for (const SymDim& index : *picked)
      if (index.is_value() && (index.value() >= size || index.value() < -size))
        return context.error("index " + index.to_string() + " is out of range for axis " +
                             std::to_string(axis) + " of size " + std::to_string(size));
  }
  if (const SymShape* elements = context.ints(0);
      elements != nullptr && data->size() == 1 && indices != nullptr && indices->size() <= 1) {
    if (const auto picked = context.constant_ints(1)) {
      SymShape out;
      const auto size = static_cast<int64_t>(elements->size());
      bool inside = true;
      for (int64_t index : *picked) {
        if (index < 0) index += size;
        inside &= index >= 0 && index < size;
        if (inside) out.push_back((*elements)[static_cast<size_t>(index)]);
      }
      if (inside) context.set_value(0, std::move(out));
    }
  }
  if (indices == nullptr) return ok();
  SymShape out(data->begin(), data->begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + static_cast<std::ptrdiff_t>(axis) + 1, data->end());
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_gather(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  CHECK_OK(check_index_type(*indices));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  const int64_t length = data->dim(at);
  std::vector<int64_t> places(static_cast<size_t>(indices->size()));
  for (size_t k = 0; k < places.size(); ++k) {
    TRY(places[k], checked_index(indices->get_int64(static_cast<int64_t>(k)), length, axis));
  }
  Dims dims;
  for (size_t j = 0; j < at; ++j) dims.push_back(data->dim(j));
  for (const int64_t dim : indices->dims()) dims.push_back(dim);
  for (size_t j = at + 1; j < data->rank(); ++j) dims.push_back(data->dim(j));
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  if (out->size() == 0) return ok();
  const int64_t shape[] = {product(data->dims(), 0, at), length,
                           product(data->dims(), at + 1, data->rank())};
  std::vector<int64_t> tables[3] = {{}, std::move(places), {}};
  for (size_t j = 0; j < 3; j += 2) {
    tables[j].resize(static_cast<size_t>(shape[j]));
    std::iota(tables[j].begin(), tables[j].end(), 0);
  }
  copy_by_tables(*data, shape, tables, nullptr, *out);
  return ok();
}

}  // namespace

namespace {

/// Indices count from the front: where they may be negative the length is added.
Status step_indices_from_front(StepContext& step) {
  CHECK_OK(step_axis_from_front(step));
  Node& node = step.node;
  if (const auto known = step.constant_ints(1)) {
    const auto length = step.dim(0, static_cast<size_t>(step.get_int("axis", 0)));
    if (std::all_of(known->begin(), known->end(), [](int64_t i) { return i >= 0; })) return ok();
    const auto indices = step.constant_value(1);
    if (!length || !indices) return step.cannot("an index is negative");
    TRY(Tensor moved, indices->clone());
    for (int64_t i = 0; i < moved.size(); ++i)
      if (moved.get_int64(i) < 0) moved.set_int64(i, moved.get_int64(i) + *length);
    node.set_input(1, step.constant(moved, "indices"));
    return ok();
  }
  const DType dtype = step.dtype(1);
  if (step.target < 9 || dtype == DType::kUndefined)
    return step.cannot("the indices may be negative, which they might not be there");
  Node& shape = step.before("Shape", {node.input(0)}, "shape");
  Node& length = step.before(
      "Gather", {shape.output(0), step.scalar(step.get_int("axis", 0), "axis")}, "length");
  Node& cast = step.before("Cast", {length.output(0)}, "length");
  cast.set_int("to", static_cast<int64_t>(dtype));
  TRY(Value * zero, step.scalar(dtype, 0, "zero"));
  Node& moved = step.before("Add", {node.input(1), cast.output(0)}, "moved");
  Node& negative = step.before("Less", {node.input(1), zero}, "negative");
  Node& both =
      step.before("Where", {negative.output(0), moved.output(0), node.input(1)}, "indices");
  node.set_input(1, both.output(0));
  return ok();
}

}  // namespace

OPERATOR(Gather) = {
    .name = "Gather",
    .doc = "slices along an axis picked by an index tensor",
    .versions = {1, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{1, kAll}, {13, kBf16}}},
            {"Tind", {{1, kIndices}}},
        },
    .infer = infer_gather,
    .reference = run_gather,
    .down = {{11, 1, step_indices_from_front}},
};

}  // namespace tombolo::ops
