#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/roi_cells.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status max_roi_pool(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* rois_input, context.input(1));
  if (x.rank() != 4 || rois_input->rank() != 2 || rois_input->dim(1) != 5)
    return context.error("X must have rank 4 and rois be [regions, 5], are " + to_string(x) +
                         " and " + to_string(*rois_input));
  const auto shape = context.attributes.get_ints("pooled_shape");
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1)
    return context.error("pooled_shape must be two positive numbers");
  const int64_t rows = shape[0], columns = shape[1], channels = x.dim(1),
                count = rois_input->dim(0);
  const double scale = static_cast<double>(context.attributes.get_float("spatial_scale", 1));
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor rois, as<double>(context, *rois_input));
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{count, channels, rows, columns}}));
  if (y.size() == 0) return give(context, 0, x.dtype(), std::move(y));
  const int64_t width = x.dim(3), plane = x.dim(2) * width, cells = rows * columns;
  std::vector<CellSpan> down(static_cast<size_t>(count * rows)),
      across(static_cast<size_t>(count * columns));
  for (int64_t n = 0; n < count; ++n) {
    const double* roi = rois.data<double>() + n * 5;
    if (!(roi[0] >= 0 && roi[0] < static_cast<double>(x.dim(0))))
      return context.error("region " + std::to_string(n) + " is in picture " +
                           std::to_string(roi[0]) + ", X has " + std::to_string(x.dim(0)));
    double edges[4];
    for (size_t i = 0; i < 4; ++i) {
      edges[i] = std::round(roi[i + 1] * scale);
      if (!std::isfinite(edges[i]))
        return context.error("region " + std::to_string(n) + " is not finite");
    }
    for (int64_t i = 0; i < rows; ++i)
      down[static_cast<size_t>(n * rows + i)] = cell_span(i, rows, edges[1], edges[3], x.dim(2));
    for (int64_t i = 0; i < columns; ++i)
      across[static_cast<size_t>(n * columns + i)] =
          cell_span(i, columns, edges[0], edges[2], width);
  }
  context.parallel_for(count * channels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / channels;
      const auto image = static_cast<int64_t>(rois.data<double>()[n * 5]);
      const T* from = in.data<T>() + (image * channels + task % channels) * plane;
      T* to = y.data<T>() + task * cells;
      const CellSpan* spans = across.data() + n * columns;
      for (int64_t row = 0; row < rows; ++row) {
        const CellSpan high = down[static_cast<size_t>(n * rows + row)];
        for (int64_t column = 0; column < columns; ++column, ++to) {
          const CellSpan wide = spans[column];
          if (high.first >= high.last || wide.first >= wide.last) {
            *to = T{};
            continue;
          }
          const T* line = from + high.first * width;
          T most = line[wide.first];
          for (int64_t i = high.first; i < high.last; ++i, line += width)
            for (int64_t j = wide.first; j < wide.last; ++j) most = line[j] > most ? line[j] : most;
          *to = most;
        }
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_max_roi_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return max_roi_pool<T>(context, *x); });
}

}  // namespace

namespace {
Status infer_max_roi_pool(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* rois = context.shape(1);
  const auto pooled = context.attributes.get_ints("pooled_shape");
  if (pooled.size() != 2)
    return context.error("pooled_shape must hold 2 numbers, not " + std::to_string(pooled.size()));
  CHECK_OK(expect_rank(context, 0, 4));
  CHECK_OK(expect_rank(context, 1, 2));
  set_shape(context, 0,
            {rois != nullptr ? (*rois)[0] : SymDim(), x != nullptr ? (*x)[1] : SymDim(),
             SymDim(pooled[0]), SymDim(pooled[1])});
  return ok();
}
}  // namespace

OPERATOR(MaxRoiPool) = {
    .name = "MaxRoiPool",
    .doc = "maximum over each cell of a grid laid on regions",
    .versions = {1, 22},
    .inputs =
        {
            {"X", "T"},
            {"rois", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"pooled_shape", required(Attr::kInts)},
            {"spatial_scale", 1.0f},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_max_roi_pool,
    .reference = run_max_roi_pool,
};

}  // namespace tombolo::ops
