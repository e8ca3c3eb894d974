#include <algorithm>

#include "base/image.h"
#include "base/image_codecs.h"
#include "base/image_simple.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Result<Image> decode(std::string_view bytes) {
  if (looks_like_bmp(bytes)) return decode_bmp(bytes);
  if (looks_like_pnm(bytes)) return decode_pnm(bytes);
  if (looks_like_webp(bytes)) return decode_webp(bytes);
  if (looks_like_tiff(bytes)) return decode_tiff(bytes);
  if (looks_like_jpeg2000(bytes)) return decode_jpeg2000(bytes);
  return decode_image(bytes, 3);
}

Status run_image_decoder(KernelContext& context) {
  TRY(const Tensor* stream, context.input(0));
  if (stream->dtype() != DType::kUInt8 || stream->rank() != 1)
    return context.error("encoded_stream must be a vector of uint8, is " + to_string(*stream));
  const Text format = context.attributes.get_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return context.error("pixel_format \"" + std::string(format) + "\" is not known");
  const int64_t channels = format == "Grayscale" ? 1 : 3;
  auto decoded = decode(
      {reinterpret_cast<const char*>(stream->bytes().data()), static_cast<size_t>(stream->size())});
  if (!decoded) {
    if (decoded.error().kind != ErrorKind::kParse) return std::move(decoded).error();
    // A stream that is no picture gives an empty one: so the specification has it.
    return context.output(0, DType::kUInt8, {{0, 0, channels}}).ok()
               ? ok()
               : Status(resource_error("no memory for an empty picture"));
  }
  const Image& image = *decoded;
  TRY(Tensor * y, context.output(0, DType::kUInt8, {{image.height, image.width, channels}}));
  for (int64_t i = 0; i < int64_t{image.height} * image.width; ++i) {
    const uint8_t* pixel = image.pixels.data() + i * image.channels;
    const uint8_t rgb[] = {pixel[0], pixel[image.channels == 3 ? 1 : 0],
                           pixel[image.channels == 3 ? 2 : 0]};
    uint8_t* to = y->data<uint8_t>() + i * channels;
    if (channels == 1)  // ITU-R 601 luma in 16-bit fixed point
      to[0] = static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
    else if (format == "BGR")
      std::reverse_copy(rgb, rgb + 3, to);
    else
      std::copy_n(rgb, 3, to);
  }
  return ok();
}

}  // namespace

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
    .reference = run_image_decoder,
};

}  // namespace tombolo::ops
