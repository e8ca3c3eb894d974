#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_relu(KernelContext& context) {
  return map<kFamilyFloats | kFamilySigned>(context, [](auto x) {
    using T = decltype(x);
    return x < T{0} ? T{0} : x;  // NaN passes
  });
}

}  // namespace

OPERATOR(Relu) = {
    .name = "Relu",
    .doc = "max(x, 0)",
    .versions = {1, 6, 13, 14},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}, {14, kSigned}}}},
    .functions = {{.versions = {.since = 14}, .opset = 18, .text = R"(
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
Y = Max (X, zero)
)"}},

    .infer = infer_unary,
    .reference = run_relu,
};

}  // namespace tombolo::ops
