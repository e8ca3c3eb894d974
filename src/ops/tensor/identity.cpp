#include "ops/infer_generic.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_identity(KernelContext& context) {
  if (!context.has_input(0)) return context.error("input 0 is missing");
  context.set_output(0, context.value(0));
  return ok();
}

}  // namespace

OPERATOR(Identity) = {
    .name = "Identity",
    .doc = "its input",
    .versions = {1, 13, 14, 16, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"input", "T", kSingle, {.until = 13}},
            {"input", "V", kSingle, {.since = 14}},
        },
    .outputs =
        {
            {"output", "T", kSingle, {.until = 13}},
            {"output", "V", kSingle, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kAll}, {13, kBf16}}, {.until = 13}},
            {"V",
             {{14, kAll | kBf16 | seq_of(kAll)},
              {16, optional_of(kAll | seq_of(kAll))},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}},
             {.since = 14}},
        },
    .infer = infer_identity,
    .reference = run_identity,
};

}  // namespace tombolo::ops
