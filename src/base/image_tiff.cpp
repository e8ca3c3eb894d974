#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/image_codecs.h"

// Two codecs of libtiff stay out of the product: JBIG (fax; its library is under the GPL) and LERC
// (elevation data). Defining their entry points here keeps the linker from pulling them in; a file
// that uses one of them is refused like any other with an unknown compression.
extern "C" {
int TIFFInitJBIG(TIFF*, int);
int TIFFInitLERC(TIFF*, int);
int TIFFInitJBIG(TIFF*, int) { return 0; }
int TIFFInitLERC(TIFF*, int) { return 0; }
}

namespace tombolo {

namespace {

/// The file in memory, as libtiff's callbacks see it.
struct Source {
  std::string_view bytes;
  uint64_t at = 0;
};

tmsize_t read_source(thandle_t handle, void* to, tmsize_t size) {
  auto* source = static_cast<Source*>(handle);
  if (size < 0 || source->at >= source->bytes.size()) return 0;
  const uint64_t count =
      std::min<uint64_t>(static_cast<uint64_t>(size), source->bytes.size() - source->at);
  std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
  return static_cast<tmsize_t>(count);
}

toff_t seek_source(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  const uint64_t base = whence == SEEK_CUR   ? source->at
                        : whence == SEEK_END ? source->bytes.size()
                                             : 0;
  source->at = base + offset;
  return source->at;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

}  // namespace

bool looks_like_tiff(std::string_view bytes) {
  return bytes.size() >= 8 && (bytes.starts_with(std::string_view("II*\0", 4)) ||
                               bytes.starts_with(std::string_view("MM\0*", 4)) ||
                               bytes.starts_with(std::string_view("II+\0", 4)) ||
                               bytes.starts_with(std::string_view("MM\0+", 4)));
}

Result<Image> decode_tiff(std::string_view bytes) {
  // The library never prints. These are process-wide; nothing else here uses libtiff.
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
  Source source{bytes};
  // "m" keeps libtiff from mapping, of which a callback has no notion.
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFClientOpen(
      "picture", "rm", &source, read_source, [](thandle_t, void*, tmsize_t) { return tmsize_t{0}; },
      seek_source, [](thandle_t) { return 0; },
      [](thandle_t handle) {
        return static_cast<toff_t>(static_cast<Source*>(handle)->bytes.size());
      },
      nullptr, nullptr));
  if (tiff == nullptr) return parse_error("TIFF: the header or the first directory is damaged");
  uint32_t width = 0, height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0 || width == 0 || height == 0)
    return parse_error("TIFF: the picture has no size");
  CHECK_OK(check_picture_size(width, height));
  // A strip or tile that claims to be larger than the picture asks for memory, not for pixels.
  const uint64_t unit =
      TIFFIsTiled(tiff.get()) != 0 ? TIFFTileSize64(tiff.get()) : TIFFStripSize64(tiff.get());
  if (unit > (uint64_t{1} << 32)) return resource_error("TIFF: a strip or tile is too large");
  // Colour must not be multiplied by alpha: said to be of unknown meaning, alpha is left alone.
  uint16_t extra_count = 0;
  uint16_t* extra = nullptr;
  if (TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &extra_count, &extra) != 0 &&
      extra_count > 0) {
    std::vector<uint16_t> unknown(extra_count, EXTRASAMPLE_UNSPECIFIED);
    TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, extra_count, unknown.data());
  }
  char message[1024] = "";
  if (TIFFRGBAImageOK(tiff.get(), message) == 0)
    return unsupported(std::string("TIFF: ") + message);
  std::vector<uint32_t> raster(size_t{width} * height);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) ==
      0)
    return parse_error("TIFF: the pixels are damaged or cut off");
  Image image;
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
  image.channels = 3;
  image.pixels.resize(raster.size() * 3);
  for (size_t i = 0; i < raster.size(); ++i) {
    image.pixels[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    image.pixels[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    image.pixels[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return image;
}

}  // namespace tombolo
