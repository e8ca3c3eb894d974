#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_mel_weight_matrix(InferContext& context) {
  const auto dtype = dtype_from_number(context.attributes.get_int("output_datatype", 1));
  if (!dtype) return context.error("output_datatype is no type");
  const auto bins = scalar_of(context, 0), length = scalar_of(context, 1);
  context.set_tensor(
      0, *dtype, {length ? floor_div(*length, SymDim(2)) + 1 : SymDim(), bins ? *bins : SymDim()});
  return ok();
}
}  // namespace

OPERATOR(MelWeightMatrix) = {
    .name = "MelWeightMatrix",
    .doc = "matrix that maps spectrogram bins to mel bins",
    .versions = {17},
    .inputs =
        {
            {"num_mel_bins", "T1"},
            {"dft_length", "T1"},
            {"sample_rate", "T1"},
            {"lower_edge_hertz", "T2"},
            {"upper_edge_hertz", "T2"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"output_datatype", 1}},
    .types =
        {
            {"T1", {{17, kIndices}}},
            {"T2", {{17, kFloats | kBf16}}},
            {"T3", {{17, kNumbers | kBf16}}},
        },
    .infer = infer_mel_weight_matrix,
};

}  // namespace tombolo::ops
