// GatherMatMul of ai.tombolo: products with matrices that are picked from a list, as those of
// experts are. Here it is run as the operators of the standard that it stands for.

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/compute.h"
#include "ops/registry.h"
#include "ops/schema.h"
#include "ops/tombolo/loose.h"

namespace tombolo::ops {
namespace {

Status infer_gather_matmul(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  const SymShape* picks = context.shape(2);
  if (a == nullptr || b == nullptr || picks == nullptr) return ok();
  if (a->size() != 3 || b->size() != 3 || picks->size() != 1)
    return context.error("A and B must have a rank of 3, I of 1");
  auto out = broadcast(SymShape{(*a)[0]}, *picks);
  if (!out) return std::move(out).error();
  out->push_back((*a)[1]);
  out->push_back((*b)[context.attributes.get_int("transB", 0) != 0 ? 1 : 2]);
  context.set_tensor(0, context.elem(0), std::move(*out));
  return ok();
}

Status run_gather_matmul(KernelContext& context) {
  const Loose gather("Gather", 2), product("MatMul", 2);
  const RunValue* const picks[] = {&context.value(1), &context.value(2)};
  TRY(RunValue b, run_as(context, gather.node, picks));
  TRY(const Tensor* a, context.input(0));
  if (b.tensor().dtype() != a->dtype()) {
    TRY(Tensor wide, converted(context, b.tensor(), a->dtype()));
    b = RunValue(std::move(wide));
  }
  if (context.attributes.get_int("transB", 0) != 0) {
    Loose turn("Transpose", 1);
    turn.node.set_ints("perm", std::vector<int64_t>{0, 2, 1});
    const RunValue* const matrices[] = {&b};
    TRY(b, run_as(context, turn.node, matrices));
  }
  const RunValue* const sides[] = {&context.value(0), &b};
  TRY(RunValue y, run_as(context, product.node, sides));
  context.set_output(0, std::move(y));
  return ok();
}

}  // namespace

OPERATOR(TomboloGatherMatMul) = {
    .name = "GatherMatMul",
    .domain = "ai.tombolo",
    .doc = "A[t] times the matrix of B that I[t] names, in the type of A, for each t",
    .versions = {1},
    .inputs = {{"A", "T"}, {"B", "TB"}, {"I", "TI"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"transB", 0}},
    .types = {{"T", {{1, kFloats}}}, {"TB", {{1, kFloats | kBf16}}}, {"TI", {{1, kIndices}}}},
    .infer = infer_gather_matmul,
    .reference = run_gather_matmul,
};

}  // namespace tombolo::ops
