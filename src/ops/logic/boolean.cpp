#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_and(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) { return a * b; });
  return ok();
}
Status infer_or(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) {
    return a.constant() == 1 || b.constant() == 1 ? SymDim(1) : a + b;
  });
  return ok();
}
Status infer_not(InferContext& context) {
  CHECK_OK(infer_unary(context));
  map_elements(context, [](const SymDim& a) { return SymDim(1) - a; });
  return ok();
}
}  // namespace

namespace {

Status run_and(KernelContext& context) {
  return zip_to_bool<kFamilyUnsigned>(
      context, [](auto a, auto b) { return (a & b) != 0; }, Bools::kOnly);
}

}  // namespace

OPERATOR(And) = {
    .name = "And",
    .doc = "a and b with broadcasting",
    .versions = {1, 7},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_and,
    .reference = run_and,
    .up = {{1, 7, step_numpy_broadcast}},
};

namespace {

Status run_or(KernelContext& context) {
  return zip_to_bool<kFamilyUnsigned>(
      context, [](auto a, auto b) { return (a | b) != 0; }, Bools::kOnly);
}

}  // namespace

OPERATOR(Or) = {
    .name = "Or",
    .doc = "a or b with broadcasting",
    .versions = {1, 7},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_or,
    .reference = run_or,
    .up = {{1, 7, step_numpy_broadcast}},
};

namespace {

Status run_xor(KernelContext& context) {
  return zip_to_bool<kFamilyUnsigned>(
      context, [](auto a, auto b) { return a != b; }, Bools::kOnly);
}

}  // namespace

OPERATOR(Xor) = {
    .name = "Xor",
    .doc = "exactly one of a and b, with broadcasting",
    .versions = {1, 7},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_broadcast,
    .reference = run_xor,
    .up = {{1, 7, step_numpy_broadcast}},
};

namespace {

Status run_not(KernelContext& context) {
  return map_to_bool<kFamilyUnsigned>(
      context, [](auto x) { return x == 0; }, Bools::kOnly);
}

}  // namespace

OPERATOR(Not) = {
    .name = "Not",
    .doc = "negation",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kBool}}}},
    .infer = infer_not,
    .reference = run_not,
};

}  // namespace tombolo::ops
