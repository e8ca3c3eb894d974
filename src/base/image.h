#pragma once

// Decoding of pictures into pixels, by the well-kept libraries.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tombolo {

struct Image {
  int width = 0, height = 0;
  int channels = 0;             ///< 1 grey or 3 RGB
  std::vector<uint8_t> pixels;  ///< [height, width, channels], row-major
};

/// Decodes PNG (any depth, palette and alpha resolved; alpha is dropped) or JPEG, told apart by
/// content. `channels` 1 or 3 converts; 0 keeps grey grey and colour RGB. Errors: parse; resource
/// when the header asks for more than 2^28 pixels.
Result<Image> decode_image(std::string_view bytes, int channels = 0);

/// The largest picture that any of the decoders makes.
inline constexpr uint64_t kMaxPixels = uint64_t{1} << 28;

/// Refuses a picture without pixels (parse) or with more than kMaxPixels (resource).
Status check_picture_size(uint64_t width, uint64_t height);

}  // namespace tombolo
