#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/image_codecs.h"

namespace tombolo {

namespace {

struct Source {
  std::string_view bytes;
  size_t at = 0;
};

OPJ_SIZE_T read_source(void* to, OPJ_SIZE_T size, void* user) {
  auto* source = static_cast<Source*>(user);
  const size_t count = std::min<size_t>(size, source->bytes.size() - source->at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
  return count;
}

OPJ_OFF_T skip_source(OPJ_OFF_T count, void* user) {
  auto* source = static_cast<Source*>(user);
  const auto left = static_cast<OPJ_OFF_T>(source->bytes.size() - source->at);
  const OPJ_OFF_T step = std::clamp<OPJ_OFF_T>(count, -static_cast<OPJ_OFF_T>(source->at), left);
  source->at = static_cast<size_t>(static_cast<OPJ_OFF_T>(source->at) + step);
  return step == 0 && count != 0 ? -1 : step;
}

OPJ_BOOL seek_source(OPJ_OFF_T at, void* user) {
  auto* source = static_cast<Source*>(user);
  if (at < 0 || static_cast<uint64_t>(at) > source->bytes.size()) return OPJ_FALSE;
  source->at = static_cast<size_t>(at);
  return OPJ_TRUE;
}

// The library's handles of streams and codecs are both void*.
struct CloseStream {
  void operator()(opj_stream_t* stream) const { opj_stream_destroy(stream); }
};
struct CloseCodec {
  void operator()(opj_codec_t* codec) const { opj_destroy_codec(codec); }
};
struct FreeImage {
  void operator()(opj_image_t* image) const { opj_image_destroy(image); }
};

/// Sample (x, y) of a component that may be coarser than the picture, as 8 bits.
int sample(const opj_image_comp_t& part, uint32_t x, uint32_t y) {
  const uint32_t column = std::min(x / part.dx, part.w - 1),
                 row = std::min(y / part.dy, part.h - 1);
  int64_t value = part.data[static_cast<size_t>(row) * part.w + column];
  if (part.sgnd != 0) value += int64_t{1} << (part.prec - 1);
  if (part.prec > 8) value >>= part.prec - 8;
  if (part.prec < 8) value = value * 255 / ((int64_t{1} << part.prec) - 1);
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
}

Result<Image> to_pixels(const opj_image_t& source) {
  const uint32_t width = source.x1 - source.x0, height = source.y1 - source.y0;
  const uint32_t used = source.numcomps >= 3 ? 3 : 1;
  for (uint32_t c = 0; c < used; ++c) {
    const opj_image_comp_t& part = source.comps[c];
    if (part.data == nullptr || part.w == 0 || part.h == 0 || part.prec == 0 || part.prec > 31 ||
        part.dx == 0 || part.dy == 0)
      return parse_error("JPEG 2000: component " + std::to_string(c) + " has no samples");
  }
  // Chroma coarser than luma without a word about colour is YCC too.
  const bool ycc =
      used == 3 && (source.color_space == OPJ_CLRSPC_SYCC ||
                    (source.color_space != OPJ_CLRSPC_SRGB &&
                     source.comps[0].dx == source.comps[0].dy && source.comps[1].dx != 1));
  Image image;
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
  image.channels = static_cast<int>(used);
  image.pixels.resize(size_t{width} * height * used);
  uint8_t* to = image.pixels.data();
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x, to += used) {
      int value[3] = {0, 0, 0};
      for (uint32_t c = 0; c < used; ++c) value[c] = sample(source.comps[c], x, y);
      if (ycc) {  // ITU-R BT.601, full range
        const double cb = value[1] - 128, cr = value[2] - 128;
        to[0] = to_byte(value[0] + 1.402 * cr);
        to[1] = to_byte(value[0] - 0.344136 * cb - 0.714136 * cr);
        to[2] = to_byte(value[0] + 1.772 * cb);
      } else {
        for (uint32_t c = 0; c < used; ++c) to[c] = static_cast<uint8_t>(value[c]);
      }
    }
  return image;
}

}  // namespace

bool looks_like_jpeg2000(std::string_view bytes) {
  return bytes.starts_with("\xFF\x4F\xFF\x51") || bytes.substr(0, 8).ends_with("jP  ");
}

Result<Image> decode_jpeg2000(std::string_view bytes) {
  Source source{bytes};
  const std::unique_ptr<opj_stream_t, CloseStream> stream(opj_stream_default_create(OPJ_TRUE));
  const std::unique_ptr<opj_codec_t, CloseCodec> codec(
      opj_create_decompress(bytes.starts_with("\xFF\x4F") ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  if (stream == nullptr || codec == nullptr) return resource_error("no memory to decode JPEG 2000");
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read_source);
  opj_stream_set_skip_function(stream.get(), skip_source);
  opj_stream_set_seek_function(stream.get(), seek_source);
  std::string message;
  opj_set_error_handler(
      codec.get(),
      [](const char* text, void* to) {
        auto& first = *static_cast<std::string*>(to);
        if (first.empty()) first = std::string(text).substr(0, std::strcspn(text, "\n"));
      },
      &message);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* read = nullptr;
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE ||
      opj_read_header(stream.get(), codec.get(), &read) == OPJ_FALSE)
    return parse_error("JPEG 2000: " + (message.empty() ? "the header is damaged" : message));
  const std::unique_ptr<opj_image_t, FreeImage> image(read);
  if (image->x1 <= image->x0 || image->y1 <= image->y0 || image->numcomps == 0)
    return parse_error("JPEG 2000: the picture is empty");
  const uint64_t width = image->x1 - image->x0, height = image->y1 - image->y0;
  if (width > kMaxPixels / height / image->numcomps)
    return resource_error("a picture of " + std::to_string(width) + "x" + std::to_string(height) +
                          " pixels is too large");
  if (opj_decode(codec.get(), stream.get(), image.get()) == OPJ_FALSE ||
      opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE)
    return parse_error("JPEG 2000: " +
                       (message.empty() ? "the pixels are damaged or cut off" : message));
  return to_pixels(*image);
}

}  // namespace tombolo
