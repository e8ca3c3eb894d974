#include "ops/expansions.h"
#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_bitwise_and(KernelContext& context) {
  return zip<kFamilyInts>(context, [](auto a, auto b) { return a & b; });
}

}  // namespace

OPERATOR(BitwiseAnd) = {
    .name = "BitwiseAnd",
    .doc = "bits set in both",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
    .infer = infer_broadcast,
    .reference = run_bitwise_and,
    .down = {{18, 0, expand_bitwise}},
};

namespace {

Status run_bitwise_or(KernelContext& context) {
  return zip<kFamilyInts>(context, [](auto a, auto b) { return a | b; });
}

}  // namespace

OPERATOR(BitwiseOr) = {
    .name = "BitwiseOr",
    .doc = "bits set in either",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
    .infer = infer_broadcast,
    .reference = run_bitwise_or,
    .down = {{18, 0, expand_bitwise}},
};

namespace {

Status run_bitwise_xor(KernelContext& context) {
  return zip<kFamilyInts>(context, [](auto a, auto b) { return a ^ b; });
}

}  // namespace

OPERATOR(BitwiseXor) = {
    .name = "BitwiseXor",
    .doc = "bits set in exactly one",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
    .infer = infer_broadcast,
    .reference = run_bitwise_xor,
    .down = {{18, 0, expand_bitwise}},
};

namespace {

Status run_bitwise_not(KernelContext& context) {
  return map<kFamilyInts>(context, [](auto x) { return ~x; });
}

}  // namespace

OPERATOR(BitwiseNot) = {
    .name = "BitwiseNot",
    .doc = "every bit inverted",
    .versions = {18},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{18, kInts}}}},
    .infer = infer_unary,
    .reference = run_bitwise_not,
    .down = {{18, 0, expand_bitwise_not}},
};

}  // namespace tombolo::ops
