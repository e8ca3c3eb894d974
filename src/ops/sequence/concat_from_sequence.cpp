#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ConcatFromSequence) = {
    .name = "ConcatFromSequence",
    .doc = "joins the tensors of a sequence along an old or a new axis",
    .versions = {11},
    .inputs = {{"input_sequence", "S"}},
    .outputs = {{"concat_result", "T"}},
    .attributes =
        {
            {"axis", required(Attr::kInt)},
            {"new_axis", 0},
        },
    .types =
        {
            {"S", {{11, seq_of(kAll)}}},
            {"T", {{11, kAll}}},
        },
};

}  // namespace tombolo::ops
