#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Einsum) = {
    .name = "Einsum",
    .doc = "products and sums over named axes, as an equation says",
    .versions = {12, 28},
    .inputs = {{"Inputs", "T", kVariadic}},
    .outputs = {{"Output", "T"}},
    .attributes = {{"equation", required(Attr::kString)}},
    .types = {{"T", {{12, kNumbers}, {28, kBf16}}}},
};

}  // namespace tombolo::ops
