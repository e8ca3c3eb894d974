#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_transpose(InferContext& context) {
  const SymShape* x = context.shape(0);
  const auto perm = context.attributes.get_ints("perm");
  const size_t rank = x != nullptr ? x->size() : perm.size();
  if (x == nullptr && perm.empty()) return ok();
  SymShape out(rank);
  if (perm.empty()) {
    for (size_t i = 0; i < rank && x != nullptr; ++i) out[i] = (*x)[rank - 1 - i];
  } else {
    if (perm.size() != rank)
      return context.error("perm has " + std::to_string(perm.size()) +
                           " values, but the input has rank " + std::to_string(rank));
    std::vector<bool> seen(rank);
    for (size_t i = 0; i < rank; ++i) {
      if (perm[i] < 0 || perm[i] >= static_cast<int64_t>(rank) ||
          seen[static_cast<size_t>(perm[i])])
        return context.error("perm is no permutation of 0.." + std::to_string(rank - 1));
      seen[static_cast<size_t>(perm[i])] = true;
      if (x != nullptr) out[i] = (*x)[static_cast<size_t>(perm[i])];
    }
  }
  if (const SymShape* elements = context.ints(0); elements != nullptr && rank <= 1)
    context.set_value(0, *elements);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_transpose(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  const size_t rank = data->rank();
  std::vector<int64_t> perm(rank);
  for (size_t j = 0; j < rank; ++j) perm[j] = static_cast<int64_t>(rank - 1 - j);
  if (const auto given = context.attributes.get_ints("perm"); !given.empty()) {
    TRY(perm, normalize_axes({given.begin(), given.end()}, static_cast<int64_t>(rank)));
    if (perm.size() != rank)
      return context.error("perm " + dims_to_string(given) + " does not fit " + to_string(*data));
  }
  const Dims strides = contiguous_strides(data->dims());
  Dims dims, from;
  for (const int64_t axis : perm) {
    dims.push_back(data->dim(static_cast<size_t>(axis)));
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  copy_box(*data, 0, from, *out, 0, contiguous_strides(dims), dims);
  return ok();
}

}  // namespace

OPERATOR(Transpose) = {
    .name = "Transpose",
    .doc = "permutes the axes; reverses them by default",
    .versions = {1, 13, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"transposed", "T"}},
    .attributes = {{"perm", Attr::kInts}},
    .types = {{"T",
               {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}, {23, kFp4}, {24, kE8m0}, {25, kInt2}}}},
    .infer = infer_transpose,
    .reference = run_transpose,
};

}  // namespace tombolo::ops
