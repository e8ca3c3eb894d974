#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kRange = R"(
distance = Sub (limit, start)
distance_f = Cast <to = 11> (distance)
delta_f = Cast <to = 11> (delta)
steps_f = Div (distance_f, delta_f)
steps_up = Ceil (steps_f)
none = Constant <value = double {0}> ()
steps_kept = Max (steps_up, none)
steps = Cast <to = 7> (steps_kept)
always = Constant <value = bool {1}> ()
last, output = Loop (steps, always, start) <body = step (int64 i, bool go_on, at) => (again, next, here) {
  again = Identity (go_on)
  here = Identity (at)
  next = Add (at, delta)
}>
)";

OPERATOR(Range) = {
    .name = "Range",
    .doc = "start, start + delta, ... up to but without limit",
    .versions = {11, 27},
    .inputs =
        {
            {"start", "T"},
            {"limit", "T"},
            {"delta", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"stash_type", 1, {.since = 27}}},
    .types = {{"T", {{11, kFloats32 | kIndices | kI16}, {27, kF16 | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 26}, .opset = 11, .text = kRange},
            {.versions = {.since = 27}, .opset = 27, .text = kRange},
        },
};

}  // namespace tombolo::ops
