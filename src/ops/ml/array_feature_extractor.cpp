#include <algorithm>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
void pick_columns(const T* __restrict from, int64_t rows, int64_t features,
                  const std::vector<int64_t>& columns, T* __restrict to) {
  const int64_t* __restrict column = columns.data();
  const auto count = static_cast<int64_t>(columns.size());
  if (rows == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[column[i]];
    return;
  }
  if (count == 1) {
    for (int64_t row = 0; row < rows; ++row) to[row] = from[row * features + column[0]];
    return;
  }
  for (int64_t row = 0; row < rows; ++row, from += features, to += count) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      to[i] = from[column[i]];
      to[i + 1] = from[column[i + 1]];
      to[i + 2] = from[column[i + 2]];
      to[i + 3] = from[column[i + 3]];
    }
    for (; i < count; ++i) to[i] = from[column[i]];
  }
}

Status run_array_feature_extractor(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  if (x->rank() == 0 || !is_integer(indices->dtype()))
    return context.error("X must have an axis and Y be of integers, are " + to_string(*x) +
                         " and " + to_string(*indices));
  const int64_t features = x->dim(x->rank() - 1);
  Dims dims = x->dims();
  dims.back() = indices->size();
  if (dims.size() == 1) dims.insert(0, 1);  // a vector gives a matrix of one row
  std::vector<int64_t> columns(static_cast<size_t>(indices->size()));
  if (indices->dtype() == DType::kInt64)
    std::copy_n(indices->data<int64_t>(), columns.size(), columns.begin());
  else
    for (size_t i = 0; i < columns.size(); ++i)
      columns[i] = indices->get_int64(static_cast<int64_t>(i));
  // Models of neighbours within a radius have -1 where there is none, and leave out what they get.
  for (int64_t& column : columns) {
    if (column < -features || column >= features)
      return context.error("Y has the index " + std::to_string(column) +
                           ", the last axis of X has " + std::to_string(features));
    if (column < 0) column += features;
  }
  TRY(Tensor * y, context.output(0, x->dtype(), dims));
  if (y->size() == 0) return ok();
  const int64_t rows = x->size() / features;
  const auto pick = [&]<typename T>(const T* from, T* to) {
    context.parallel_for(rows, std::max<int64_t>(1, 16384 / indices->size()),
                         [&](int64_t begin, int64_t end) {
                           pick_columns(from + begin * features, end - begin, features, columns,
                                        to + begin * indices->size());
                         });
    return ok();
  };
  if (x->is_string()) return pick(x->strings().data(), y->strings().data());
  if (bits_of(x->dtype()) == 32) return pick(x->data<uint32_t>(), y->data<uint32_t>());
  if (bits_of(x->dtype()) == 64) return pick(x->data<uint64_t>(), y->data<uint64_t>());
  for (int64_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < columns.size(); ++i)
      copy_elements(*x, row * features + columns[i], *y,
                    row * indices->size() + static_cast<int64_t>(i), 1);
  return ok();
}

}  // namespace

namespace {
Status infer_array_feature_extractor(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* y = context.shape(1);
  if (x == nullptr || y == nullptr || x->empty()) return ok();
  SymShape out(x->begin(), x->end() - 1);
  if (x->size() == 1) out.push_back(1);
  out.push_back(product_of(*y));
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(ArrayFeatureExtractor) = {
    .name = "ArrayFeatureExtractor",
    .domain = "ai.onnx.ml",
    .doc = "columns of the last axis picked by index",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"Y", "tensor(int64)"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
    .infer = infer_array_feature_extractor,
    .reference = run_array_feature_extractor,
};

}  // namespace tombolo::ops
