#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_image_decoder(InferContext& context) {
  const Text format = context.attributes.get_string("pixel_format", "RGB");
  set_shape(context, 0,
            {context.host.fresh_symbol("height"), context.host.fresh_symbol("width"),
             SymDim(format == "Grayscale" ? 1 : 3)});
  return ok();
}
}  // namespace

OPERATOR(ImageDecoder) = {
    .name = "ImageDecoder",
    .doc = "decodes an image file held in a byte tensor",
    .versions = {20},
    .inputs = {{"encoded_stream", "T1"}},
    .outputs = {{"image", "T2"}},
    .attributes = {{"pixel_format", "RGB"}},
    .types =
        {
            {"T1", {{20, kU8}}},
            {"T2", {{20, kU8}}},
        },
    .infer = infer_image_decoder,
};

}  // namespace tombolo::ops
