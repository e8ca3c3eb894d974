#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_dft(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const size_t rank = x->size();
  if (rank < 2)
    return context.error(
        "the input needs a signal axis and a last axis of 1 or 2, but its shape is " +
        shape_to_string(*x));
  int64_t axis = 1;
  bool axis_known = true;
  if (context.opset < 20) {
    axis = context.attributes.get_int("axis", 1);
  } else {
    axis = -2;
    if (context.has_input(2)) {
      const auto given = scalar_of(context, 2);
      axis_known = given && given->is_value();
      if (axis_known) axis = given->value();
    }
  }
  SymShape out = *x;
  const bool onesided = context.attributes.get_int("onesided", 0) != 0;
  const bool inverse = context.attributes.get_int("inverse", 0) != 0;
  out.back() = onesided && inverse ? 1 : 2;
  if (!axis_known) {
    for (size_t i = 0; i + 1 < rank; ++i) out[i] = SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  TRY(const size_t index, checked_axis(context, axis, rank));
  if (index + 1 == rank) return context.error("the axis is that of the complex parts");
  SymDim length = (*x)[index];
  if (context.has_input(1)) {
    const auto given = scalar_of(context, 1);
    length = given ? *given : SymDim();
  } else if (onesided && inverse) {
    length = ((*x)[index] - 1) * 2;
  }
  out[index] = onesided && !inverse ? floor_div(length, SymDim(2)) + 1 : length;
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(DFT) = {
    .name = "DFT",
    .doc = "discrete Fourier transform along one axis, or its inverse",
    .versions = {17, 20},
    .inputs =
        {
            {"input", "T1"},
            {"dft_length", "T2", kOptional},
            {"axis", "tensor(int64)", kOptional, {.since = 20}},
        },
    .outputs = {{"output", "T1"}},
    .attributes =
        {
            {"axis", 1, {.until = 19}},
            {"inverse", 0},
            {"onesided", 0},
        },
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
    .infer = infer_dft,
};

}  // namespace tombolo::ops
