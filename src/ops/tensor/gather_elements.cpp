#include <atomic>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/parts.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gather_elements(InferContext& context) {
  const SymShape* data = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr && data->size() != indices->size())
    return context.error("data of shape " + shape_to_string(*data) + " and indices of shape " +
                         shape_to_string(*indices) + " must have one rank");
  if (indices != nullptr)
    set_shape(context, 0, *indices);
  else if (data != nullptr)
    set_rank(context, 0, data->size());
  return ok();
}
Status run_gather_elements(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* indices, context.input(1));
  CHECK_OK(check_index_type(*indices));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", 0), static_cast<int64_t>(data->rank())));
  const auto at = static_cast<size_t>(axis);
  bool fits = indices->rank() == data->rank();
  for (size_t j = 0; fits && j < data->rank(); ++j)
    fits = j == at || indices->dim(j) <= data->dim(j);
  if (!fits)
    return context.error("indices " + to_string(*indices) + " do not fit data " + to_string(*data));
  TRY(Tensor * out, context.output(0, data->dtype(), indices->dims()));
  if (out->size() == 0) return ok();
  const Dims strides = contiguous_strides(data->dims());
  if (bits_of(data->dtype()) == 32 && indices->dtype() == DType::kInt64) {
    const size_t last_axis = data->rank() - 1;
    const int64_t row_length = indices->dim(last_axis), length = data->dim(at);
    const uint32_t* from = data->data<uint32_t>();
    uint32_t* to = out->data<uint32_t>();
    std::atomic<bool> outside = false;
    parallel_parts(indices->size() / row_length, std::max<int64_t>(1, (1 << 14) / row_length),
                   [&](int64_t begin, int64_t end) {
                     bool wrong = false;
                     for (int64_t row = begin; row < end; ++row) {
                       int64_t rest = row, base = 0;
                       for (size_t j = last_axis; j-- > 0; rest /= indices->dim(j))
                         if (j != at) base += rest % indices->dim(j) * strides[j];
                       const int64_t* index = indices->data<int64_t>() + row * row_length;
                       const int64_t step = at == last_axis ? 0 : 1;
                       for (int64_t i = 0; i < row_length; ++i) {
                         int64_t place = index[i] + (index[i] < 0 ? length : 0);
                         if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(length)) {
                           wrong = true;
                           place = 0;
                         }
                         to[row * row_length + i] =
                             length == 0 ? 0 : from[base + i * step + place * strides[at]];
                       }
                     }
                     if (wrong) outside = true;
                   });
    if (!outside) return ok();  // else the loop below says which
  }
  // Row by row along the last axis; what lies on the other axes is one offset for a row.
  std::vector<int64_t> places(static_cast<size_t>(indices->size()));
  for (int64_t i = 0; i < indices->size(); ++i) {
    const int64_t index =
        indices->dtype() == DType::kInt64 ? indices->data<int64_t>()[i] : indices->get_int64(i);
    if (index >= 0 && index < data->dim(at)) [[likely]] {
      places[static_cast<size_t>(i)] = index;
      continue;
    }
    TRY(places[static_cast<size_t>(i)], checked_index(index, data->dim(at), axis));
  }
  const size_t last = data->rank() - 1;
  const int64_t width = indices->dim(last), rows = indices->size() / width;
  parallel_parts(rows, std::max<int64_t>(1, (1 << 14) / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, base = 0;
      for (size_t j = last; j-- > 0; rest /= indices->dim(j))
        if (j != at) base += rest % indices->dim(j) * strides[j];
      int64_t* place = places.data() + row * width;
      for (int64_t i = 0; i < width; ++i)
        place[i] = base + (at == last ? place[i] : i + place[i] * strides[at]);
    }
  });
  const int64_t whole[] = {data->size()};
  copy_by_tables(*data, whole, std::span(&places, 1), nullptr, *out);
  return ok();
}

}  // namespace

OPERATOR(GatherElements) = {
    .name = "GatherElements",
    .doc = "elements picked along an axis, one index an element",
    .versions = {11, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{11, kAll}, {13, kBf16}}},
            {"Tind", {{11, kIndices}}},
        },
    .infer = infer_gather_elements,
    .reference = run_gather_elements,
};

}  // namespace tombolo::ops
