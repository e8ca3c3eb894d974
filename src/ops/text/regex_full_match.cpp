#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(RegexFullMatch) = {
    .name = "RegexFullMatch",
    .doc = "whether each whole string matches a pattern",
    .versions = {20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes = {{"pattern", Attr::kString}},
    .types =
        {
            {"T1", {{20, kStr}}},
            {"T2", {{20, kBool}}},
        },
    .infer = infer_unary,
};

}  // namespace tombolo::ops
