#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/parts.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gather_nd(InferContext& context) {
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data == nullptr || indices == nullptr) return ok();
  const int64_t batch = context.attributes.get_int("batch_dims", 0);
  if (indices->empty() || data->empty())
    return context.error("data and indices must not be scalars");
  if (!indices->back().is_value()) return ok();
  const int64_t depth = indices->back().value();
  const auto rank = static_cast<int64_t>(data->size());
  if (batch < 0 || depth < 0 || batch > rank || depth > rank - batch ||
      batch >= static_cast<int64_t>(indices->size()))
    return context.error("the last axis of indices is " + std::to_string(depth) +
                         " with batch_dims " + std::to_string(batch) + ", but data has rank " +
                         std::to_string(data->size()));
  SymShape out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), data->begin() + batch + depth, data->end());
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_gather_nd(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  CHECK_OK(check_index_type(*indices));
  const int64_t batch_dims = context.attributes.get_int("batch_dims", 0);
  if (indices->rank() == 0 || data->rank() == 0)
    return context.error("data " + to_string(*data) + " and indices " + to_string(*indices) +
                         " must have at least one axis");
  const auto tuple = static_cast<size_t>(indices->dim(indices->rank() - 1));
  const auto batch = static_cast<size_t>(batch_dims);
  bool fits = batch_dims >= 0 && batch < std::min(indices->rank(), data->rank()) &&
              tuple <= data->rank() - batch;
  for (size_t j = 0; fits && j < batch; ++j) fits = indices->dim(j) == data->dim(j);
  if (!fits)
    return context.error("indices " + to_string(*indices) + " with batch_dims=" +
                         std::to_string(batch_dims) + " do not fit data " + to_string(*data));
  Dims dims;
  for (size_t j = 0; j + 1 < indices->rank(); ++j) dims.push_back(indices->dim(j));
  for (size_t j = batch + tuple; j < data->rank(); ++j) dims.push_back(data->dim(j));
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  if (out->size() == 0) return ok();

  const Dims strides = contiguous_strides(data->dims());
  const int64_t run = product(data->dims(), batch + tuple, data->rank());
  const int64_t batch_stride = batch == 0 ? 0 : strides[batch - 1];
  const int64_t tuples = product(indices->dims(), 0, indices->rank() - 1);
  const int64_t batches = product(indices->dims(), 0, batch);
  constexpr int64_t kAtOnce = 4096;
  int64_t places[kAtOnce];
  for (int64_t first = 0; first < tuples; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, tuples - first);
    for (int64_t k = 0; k < count; ++k) {
      places[k] = (first + k) / (tuples / batches) * batch_stride;
      for (size_t j = 0; j < tuple; ++j) {
        const int64_t given =
            indices->get_int64((first + k) * static_cast<int64_t>(tuple) + static_cast<int64_t>(j));
        TRY(const int64_t place,
            checked_index(given, data->dim(batch + j), static_cast<int64_t>(batch + j)));
        places[k] += place * strides[batch + j];
      }
    }
    parallel_parts(count,
                   parallel_safe(data->dtype()) ? std::max<int64_t>(1, (1 << 15) / run) : count,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t k = begin; k < end; ++k)
                       copy_elements(*data, places[k], *out, (first + k) * run, run);
                   });
  }
  return ok();
}

}  // namespace

OPERATOR(GatherND) = {
    .name = "GatherND",
    .doc = "elements or slices picked by tuples of indices",
    .versions = {11, 12, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"batch_dims", 0, {.since = 12}}},
    .types = {{"T", {{11, kAll}, {13, kBf16}}}},
    .infer = infer_gather_nd,
    .reference = run_gather_nd,
};

}  // namespace tombolo::ops
