#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

// A shift by the width or more (or, as an unsigned number, by a negative amount) leaves zeros, or
// the sign when a signed number goes right.
Status run_bit_shift(KernelContext& context) {
  const Text direction = context.attributes.get_string("direction", "");
  if (direction == "LEFT")
    return zip<kFamilyInts>(context, [](auto x, auto y) {
      const auto amount = static_cast<uint64_t>(y);
      return static_cast<decltype(x)>(amount < 64 ? static_cast<uint64_t>(x) << amount : 0);
    });
  if (direction == "RIGHT")
    return zip<kFamilyInts>(context, [](auto x, auto y) {
      const auto amount = static_cast<uint64_t>(y);
      return static_cast<decltype(x)>(amount < 64 ? x >> amount : x < 0 ? -1 : 0);
    });
  return context.error("direction must be LEFT or RIGHT, is \"" + std::string(direction) + "\"");
}

}  // namespace

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
    .infer = infer_broadcast,
    .reference = run_bit_shift,
};

}  // namespace tombolo::ops
