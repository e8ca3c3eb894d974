#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(StringNormalizer) = {
    .name = "StringNormalizer",
    .doc = "drops stop words and changes case",
    .versions = {10},
    .inputs = {{"X", "tensor(string)"}},
    .outputs = {{"Y", "tensor(string)"}},
    .attributes =
        {
            {"case_change_action", "NONE"},
            {"is_case_sensitive", 0},
            {"locale", Attr::kString},
            {"stopwords", Attr::kStrings},
        },
};

}  // namespace tombolo::ops
