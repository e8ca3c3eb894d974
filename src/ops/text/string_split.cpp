#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_string_split(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  SymShape parts = *x;
  parts.push_back(context.host.fresh_symbol("parts"));
  set_shape(context, 1, *x);
  set_shape(context, 0, std::move(parts));
  return ok();
}
}  // namespace

OPERATOR(StringSplit) = {
    .name = "StringSplit",
    .doc = "splits each string, with the number of parts",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "T3"},
        },
    .attributes =
        {
            {"delimiter", Attr::kString},
            {"maxsplit", Attr::kInt},
        },
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kStr}}},
            {"T3", {{20, kI64}}},
        },
    .infer = infer_string_split,
};

}  // namespace tombolo::ops
