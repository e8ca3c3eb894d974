#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
    .reference = run_and,
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
    .reference = run_or,
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
    .reference = run_xor,
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
    .reference = run_not,
};

}  // namespace tombolo::ops
