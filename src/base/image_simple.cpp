#include "base/image_simple.h"

#include <bit>
#include <string>

namespace tombolo {

namespace {

Result<Image> make_image(uint64_t width, uint64_t height, int channels) {
  CHECK_OK(check_picture_size(width, height));
  Image image;
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
  image.channels = channels;
  image.pixels.resize(width * height * static_cast<uint64_t>(channels));
  return image;
}

uint32_t little(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

/// The bits of `mask` in `pixel`, as a number of 8 bits.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const uint64_t most = mask >> std::countr_zero(mask);
  const uint64_t value = (pixel & mask) >> std::countr_zero(mask);
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

}  // namespace

bool looks_like_bmp(std::string_view bytes) { return bytes.substr(0, 2) == "BM"; }
bool looks_like_pnm(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6';
}

// Layout: file header (14 bytes), information header, palette, rows padded to four bytes, the
// last row first unless the height is negative.
Result<Image> decode_bmp(std::string_view bytes) {
  if (!looks_like_bmp(bytes) || bytes.size() < 26) return parse_error("BMP: no header");
  const uint64_t start = little(bytes, 10, 4), header = little(bytes, 14, 4);
  const bool old = header == 12;
  if (!old && (header < 40 || bytes.size() < 14 + 40)) return parse_error("BMP: unknown header");
  const auto signed_height = static_cast<int32_t>(little(bytes, 22, 4));
  const uint64_t width = old ? little(bytes, 18, 2) : little(bytes, 18, 4);
  const uint64_t height =
      old ? little(bytes, 20, 2)
          : static_cast<uint64_t>(signed_height < 0 ? -int64_t{signed_height} : signed_height);
  const bool top_down = !old && signed_height < 0;
  const uint32_t depth = old ? little(bytes, 24, 2) : little(bytes, 28, 2);
  const uint32_t compression = old ? 0 : little(bytes, 30, 4);
  if (compression != 0 && compression != 3)
    return unsupported("BMP: compression " + std::to_string(compression));
  if (depth != 1 && depth != 4 && depth != 8 && depth != 16 && depth != 24 && depth != 32)
    return parse_error("BMP: " + std::to_string(depth) + " bits a pixel");
  uint32_t red = 0xFF0000, green = 0xFF00, blue = 0xFF;
  if (depth == 16) red = 0x7C00, green = 0x3E0, blue = 0x1F;
  if (compression == 3) {
    red = little(bytes, 54, 4);
    green = little(bytes, 58, 4);
    blue = little(bytes, 62, 4);
  }
  const uint64_t entry = old ? 3 : 4, palette = 14 + header;
  if (width > kMaxPixels) return resource_error("BMP: too wide");
  const uint64_t stride = (width * depth + 31) / 32 * 4;
  if (start > bytes.size() || height > (bytes.size() - start) / (stride == 0 ? 1 : stride))
    return parse_error("BMP: the file ends before its last row");
  TRY(Image image, make_image(width, height, 3));
  uint8_t* to = image.pixels.data();
  for (uint64_t y = 0; y < height; ++y) {
    const uint64_t row = start + (top_down ? y : height - 1 - y) * stride;
    for (uint64_t x = 0; x < width; ++x, to += 3) {
      if (depth <= 8) {
        const uint32_t byte = little(bytes, row + x * depth / 8, 1);
        const uint32_t index = byte >> (8 - depth - x * depth % 8) & ((1u << depth) - 1);
        const uint64_t at = palette + index * entry;
        if (at + 3 > start) return parse_error("BMP: a colour outside the palette");
        for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(bytes[at + 2 - c]);
      } else {
        const uint32_t pixel = little(bytes, row + x * (depth / 8), depth / 8);
        to[0] = masked(pixel, red);
        to[1] = masked(pixel, green);
        to[2] = masked(pixel, blue);
      }
    }
  }
  return image;
}

Result<Image> decode_pnm(std::string_view bytes) {
  if (!looks_like_pnm(bytes)) return parse_error("PNM: no header");
  const int kind = bytes[1] - '0';
  const bool text = kind <= 3, bits = kind == 1 || kind == 4;
  size_t at = 2;
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const auto skip = [&] {
    while (at < bytes.size() && (is_space(bytes[at]) || bytes[at] == '#')) {
      if (bytes[at] == '#')
        while (at < bytes.size() && bytes[at] != '\n') ++at;
      else
        ++at;
    }
  };
  const auto number = [&](uint64_t& value) {
    skip();
    const size_t first = at;
    for (value = 0; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; ++at)
      if (value <= kMaxPixels) value = value * 10 + static_cast<uint64_t>(bytes[at] - '0');
    return at > first;
  };
  uint64_t width = 0, height = 0, most = 1;
  if (!number(width) || !number(height) || (!bits && !number(most)))
    return parse_error("PNM: the header is incomplete");
  if (most == 0 || most > 65535) return parse_error("PNM: a sample can be " + std::to_string(most));
  const int channels = kind == 3 || kind == 6 ? 3 : 1;
  if (!text) ++at;  // one white-space character ends the header
  const uint64_t sample = bits ? 0 : most > 255 ? 2 : 1;
  if (width > kMaxPixels || height > kMaxPixels) return resource_error("PNM: too large");
  const uint64_t row = bits ? (width + 7) / 8 : width * static_cast<uint64_t>(channels) * sample;
  const uint64_t least = text ? width * static_cast<uint64_t>(channels) : row;
  if (at > bytes.size() || (least != 0 && height > (bytes.size() - at) / least))
    return parse_error("PNM: the file ends before its last row");
  TRY(Image image, make_image(width, height, channels));
  for (uint64_t i = 0; i < image.pixels.size(); ++i) {
    uint64_t value = 0;
    if (kind == 1) {  // digits need no space between them
      skip();
      if (at >= bytes.size() || (bytes[at] != '0' && bytes[at] != '1'))
        return parse_error("PNM: a bit is missing");
      value = static_cast<uint64_t>(bytes[at++] - '0');
    } else if (text) {
      if (!number(value)) return parse_error("PNM: a sample is missing");
    } else if (bits) {
      const uint64_t x = i % width;
      value = static_cast<uint8_t>(bytes[at + i / width * row + x / 8]) >> (7 - x % 8) & 1;
    } else {
      for (uint64_t b = 0; b < sample; ++b)
        value = value << 8 | static_cast<uint8_t>(bytes[at + i * sample + b]);
    }
    if (value > most) value = most;
    if (bits) value = 1 - value;  // a set bit is black
    image.pixels[i] = static_cast<uint8_t>((value * 255 + most / 2) / most);
  }
  return image;
}

}  // namespace tombolo
