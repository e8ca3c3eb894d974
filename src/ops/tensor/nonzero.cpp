#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_nonzero(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) {
    set_rank(context, 0, 2);
    return ok();
  }
  // How many are not 0 follows where every element is known to be 0 or not.
  SymDim count;
  if (const SymShape* elements = context.ints(0); elements != nullptr && x->size() == 1) {
    count = 0;
    for (const SymDim& element : *elements) {
      const SymDim zero = element.equals(SymDim(0))    ? SymDim(1)
                          : element.differs(SymDim(0)) ? SymDim(0)
                                                       : SymDim();
      count = count + (SymDim(1) - zero);
    }
  }
  if (count.is_unknown()) count = context.host.fresh_symbol("nonzero");
  set_shape(context, 0, {SymDim(static_cast<int64_t>(x->size())), count});
  return ok();
}
bool is_zero(const Tensor& x, int64_t i) {
  const DType dtype = x.dtype();
  if (dtype == DType::kString) return x.strings()[static_cast<size_t>(i)].empty();
  if (dtype == DType::kComplex64)
    return x.data<float>()[2 * i] == 0 && x.data<float>()[2 * i + 1] == 0;
  if (dtype == DType::kComplex128)
    return x.data<double>()[2 * i] == 0 && x.data<double>()[2 * i + 1] == 0;
  return is_float(dtype) ? x.get_double(i) == 0 : x.get_int64(i) == 0;
}

Status run_nonzero(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  int64_t count = 0;
  for (int64_t i = 0; i < x->size(); ++i) count += !is_zero(*x, i);
  const int64_t dims[] = {static_cast<int64_t>(x->rank()), count};
  TRY(Tensor * out, context.output(0, DType::kInt64, dims));
  int64_t column = 0;
  for (int64_t i = 0; i < x->size(); ++i) {
    if (is_zero(*x, i)) continue;
    int64_t rest = i;
    for (size_t j = x->rank(); j-- > 0; rest /= x->dim(j))
      out->data<int64_t>()[static_cast<int64_t>(j) * count + column] = rest % x->dim(j);
    ++column;
  }
  return ok();
}

}  // namespace

OPERATOR(NonZero) = {
    .name = "NonZero",
    .doc = "coordinates of the elements that are not zero, in row-major order",
    .versions = {9, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(int64)"}},
    .types = {{"T", {{9, kAll}, {13, kBf16}}}},
    .infer = infer_nonzero,
    .reference = run_nonzero,
};

}  // namespace tombolo::ops
