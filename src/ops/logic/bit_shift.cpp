#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(BitShift) = {
    .name = "BitShift",
    .doc = "x shifted left or right by y bits",
    .versions = {11, 28},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T"},
        },
    .outputs = {{"Z", "T"}},
    .attributes = {{"direction", required(Attr::kString)}},
    .types = {{"T", {{11, kUnsigned}, {28, kSigned}}}},
};

}  // namespace tombolo::ops
