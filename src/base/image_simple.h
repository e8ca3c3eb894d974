#pragma once

// Decoding of the picture formats that need no library: BMP and the portable formats.

#include <string_view>

#include "base/image.h"

namespace tombolo {

/// BMP: 1, 4, 8, 16, 24 and 32 bits a pixel, palettes and bit masks; no run-length encoding.
/// Always three channels. Errors: parse, unsupported; resource beyond 2^28 pixels.
Result<Image> decode_bmp(std::string_view bytes);

/// PBM, PGM and PPM, as text (P1 to P3) and binary (P4 to P6); 16-bit samples are scaled to 8.
/// One channel for PBM and PGM, three for PPM. Errors as above.
Result<Image> decode_pnm(std::string_view bytes);

/// Whether the bytes start like such a file.
bool looks_like_bmp(std::string_view bytes);
bool looks_like_pnm(std::string_view bytes);

}  // namespace tombolo
