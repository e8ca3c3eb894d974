#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_stft(InferContext& context) {
  const SymShape* signal = context.shape(0);
  const bool onesided = context.attributes.get_int("onesided", 1) != 0;
  SymDim length;
  if (context.has_input(3)) {
    if (const auto given = scalar_of(context, 3)) length = *given;
  } else if (const SymShape* window = context.shape(2)) {
    if (window->size() == 1) length = (*window)[0];
  }
  SymShape out(4);
  out[3] = 2;
  out[2] = onesided ? floor_div(length, SymDim(2)) + 1 : length;
  const auto step = scalar_of(context, 1);
  if (signal != nullptr && signal->size() >= 2) {
    out[0] = (*signal)[0];
    if (step && step->constant() != 0) out[1] = floor_div((*signal)[1] - length, *step) + 1;
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(STFT) = {
    .name = "STFT",
    .doc = "Fourier transform of overlapping windowed frames",
    .versions = {17},
    .inputs =
        {
            {"signal", "T1"},
            {"frame_step", "T2"},
            {"window", "T1", kOptional},
            {"frame_length", "T2", kOptional},
        },
    .outputs = {{"output", "T1"}},
    .attributes = {{"onesided", 1}},
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
    .infer = infer_stft,
};

}  // namespace tombolo::ops
