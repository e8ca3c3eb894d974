#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Optional) = {
    .name = "Optional",
    .doc = "an optional value that holds the input, or nothing of a type",
    .versions = {15, 28},
    .inputs = {{"input", "V", kOptional}},
    .outputs = {{"output", "O"}},
    .attributes = {{"type", Attr::kType}},
    .types =
        {
            {"V", {{15, kAll | seq_of(kAll)}, {28, kSmall | kBf16 | seq_of(kSmall | kBf16)}}},
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {28, optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
        },
};

OPERATOR(OptionalGetElement) = {
    .name = "OptionalGetElement",
    .doc = "what an optional value holds",
    .versions = {15, 18, 28},
    .inputs = {{"input", "O"}},
    .outputs = {{"output", "V"}},
    .types =
        {
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {18, kAll | seq_of(kAll)},
              {28, kSmall | kBf16 | seq_of(kSmall | kBf16) |
                       optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
            {"V", {{15, kAll | seq_of(kAll)}, {28, kSmall | kBf16 | seq_of(kSmall | kBf16)}}},
        },
};

OPERATOR(OptionalHasElement) = {
    .name = "OptionalHasElement",
    .doc = "whether an optional value holds something",
    .versions = {15, 18, 28},
    .inputs =
        {
            {"input", "O", kSingle, {.until = 17}},
            {"input", "O", kOptional, {.since = 18}},
        },
    .outputs = {{"output", "B"}},
    .types =
        {
            {"O",
             {{15, optional_of(kAll | seq_of(kAll))},
              {18, kAll | seq_of(kAll)},
              {28, kSmall | kBf16 | seq_of(kSmall | kBf16) |
                       optional_of(kSmall | kBf16 | seq_of(kSmall | kBf16))}}},
            {"B", {{15, kBool}}},
        },
};

}  // namespace tombolo::ops
