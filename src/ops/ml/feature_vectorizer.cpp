#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// [N, ...] gives N rows, of what lies behind the first axis; [F] gives one.
int64_t rows_of(const Tensor& x) { return x.rank() == 1 ? 1 : x.dim(0); }
int64_t features_of(const Tensor& x) { return product(x.dims(), x.rank() == 1 ? 0 : 1, x.rank()); }

/// Rows [row, row + count) of x to `width` floats each, `step` apart. Features beyond these are
/// cut off, missing ones are zero.
void put_features(const Tensor& x, int64_t row, int64_t count, int64_t width, float* to,
                  int64_t step) {
  const int64_t features = features_of(x), have = std::min(width, features);
  const auto put = [&](auto&& number) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = (row + r) * features;
      for (int64_t i = 0; i < have; ++i) to[r * step + i] = number(at + i);
      std::fill_n(to + r * step + have, width - have, 0.0f);
    }
  };
  if (x.dtype() == DType::kFloat32) {
    put([from = x.data<float>()](int64_t i) { return from[i]; });
  } else if (x.dtype() == DType::kInt64) {
    put([from = x.data<int64_t>()](int64_t i) {
      return static_cast<float>(static_cast<double>(from[i]));
    });
  } else if (x.dtype() == DType::kFloat64) {
    put([from = x.data<double>()](int64_t i) { return static_cast<float>(from[i]); });
  } else {
    put([&x](int64_t i) { return static_cast<float>(x.get_double(i)); });
  }
}

Status run_feature_vectorizer(KernelContext& context) {
  const auto sizes = context.attributes.get_ints("inputdimensions");
  if (!sizes.empty() && sizes.size() != context.input_count())
    return context.error("inputdimensions has " + std::to_string(sizes.size()) + " values for " +
                         std::to_string(context.input_count()) + " inputs");
  std::vector<const Tensor*> inputs;
  std::vector<int64_t> widths;
  int64_t total = 0, rows = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TRY(const Tensor* input, context.input(i));
    if (input->rank() == 0 || is_string(input->dtype()) || is_complex(input->dtype()))
      return context.error("the features must be numbers, [N, ...] or [F], are " +
                           to_string(*input));
    const int64_t own_rows = rows_of(*input);
    if (inputs.empty()) rows = own_rows;
    if (own_rows != rows)
      return context.error("input " + std::to_string(i) + " has " + std::to_string(own_rows) +
                           " rows, the first has " + std::to_string(rows));
    const int64_t width = sizes.empty() ? features_of(*input) : sizes[i];
    if (width < 0 || width >= int64_t{1} << 40)
      return context.error("inputdimensions has the value " + std::to_string(width));
    widths.push_back(width);
    total += width;
    inputs.push_back(input);
  }
  if (inputs.empty()) return context.error("there are no inputs");
  TRY(Tensor * y, context.output(0, DType::kFloat32, {{rows, total}}));
  if (y->size() == 0) return ok();
  // A few rows at a time: their pieces of the output stay in the cache for all inputs.
  constexpr int64_t kBlock = 64;
  context.parallel_for((rows + kBlock - 1) / kBlock, std::max<int64_t>(1, 16384 / (kBlock * total)),
                       [&](int64_t first, int64_t last) {
                         for (int64_t row = first * kBlock; row < std::min(rows, last * kBlock);
                              row += kBlock) {
                           float* to = y->data<float>() + row * total;
                           const int64_t count = std::min(kBlock, rows - row);
                           for (size_t i = 0; i < inputs.size(); ++i) {
                             put_features(*inputs[i], row, count, widths[i], to, total);
                             to += widths[i];
                           }
                         }
                       });
  return ok();
}

}  // namespace

namespace {
/// As features_of a tensor; unknown where the shape is.
SymDim features_of(const SymShape* shape) {
  if (shape == nullptr || shape->empty()) return {};
  SymDim features = 1;
  for (size_t k = shape->size() == 1 ? 0 : 1; k < shape->size(); ++k)
    features = features * (*shape)[k];
  return features;
}

Status infer_feature_vectorizer(InferContext& context) {
  const SymShape* first = context.shape(0);
  SymDim columns = 0;
  const auto widths = context.attributes.get_ints("inputdimensions");
  for (size_t i = 0; i < context.input_count(); ++i)
    columns = columns + (i < widths.size() ? SymDim(widths[i]) : features_of(context.shape(i)));
  if (first != nullptr && !first->empty())
    context.set_tensor(0, DType::kFloat32, {first->size() == 1 ? SymDim(1) : (*first)[0], columns});
  return ok();
}
}  // namespace

OPERATOR(FeatureVectorizer) = {
    .name = "FeatureVectorizer",
    .domain = "ai.onnx.ml",
    .doc = "joins feature tensors into one float vector a row",
    .versions = {1},
    .inputs = {{"X", "T1", kVariadic}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes = {{"inputdimensions", Attr::kInts}},
    .types = {{"T1", {{1, kFloats32 | kIndices}}}},
    .infer = infer_feature_vectorizer,
    .reference = run_feature_vectorizer,
};

}  // namespace tombolo::ops
