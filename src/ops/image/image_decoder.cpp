#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
