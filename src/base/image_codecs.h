#pragma once

// Decoding of the picture formats beside PNG and JPEG, by their own libraries. Alpha is dropped.
// Errors of all: parse; unsupported for a kind of picture that the library cannot turn into pixels;
// resource beyond 2^28 pixels.

#include <string_view>

#include "base/image.h"

namespace tombolo {

/// WebP, lossy or lossless; the first frame is an error for animations. Three channels.
Result<Image> decode_webp(std::string_view bytes);

/// The first picture of a TIFF file: strips or tiles, any compression but JBIG and LERC. Three
/// channels.
Result<Image> decode_tiff(std::string_view bytes);

/// JPEG 2000, as a file (JP2) or a bare codestream. One channel or three.
Result<Image> decode_jpeg2000(std::string_view bytes);

/// Whether the bytes start like such a file.
bool looks_like_webp(std::string_view bytes);
bool looks_like_tiff(std::string_view bytes);
bool looks_like_jpeg2000(std::string_view bytes);

}  // namespace tombolo
