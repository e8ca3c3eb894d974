#include <webp/decode.h>

#include "base/image_codecs.h"

namespace tombolo {

bool looks_like_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}

Result<Image> decode_webp(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK)
    return parse_error("WebP: the header is damaged");
  if (features.has_animation != 0) return unsupported("animated WebP pictures are not decoded");
  // The format itself ends at 16383 x 16383 pixels, which is 2^28.
  Image image;
  image.width = features.width;
  image.height = features.height;
  image.channels = 3;
  image.pixels.resize(size_t{3} * static_cast<size_t>(image.width) *
                      static_cast<size_t>(image.height));
  if (WebPDecodeRGBInto(data, bytes.size(), image.pixels.data(), image.pixels.size(),
                        3 * image.width) == nullptr)
    return parse_error("WebP: the pixels are damaged or cut off");
  return image;
}

}  // namespace tombolo
