#include "base/image.h"

#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>
#include <png.h>
#include <setjmp.h>

#include <cstring>

namespace tombolo {

Status check_picture_size(uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return parse_error("the picture is empty");
  if (width > kMaxPixels / height)
    return resource_error("a picture of " + std::to_string(width) + "x" + std::to_string(height) +
                          " pixels is too large");
  return ok();
}

namespace {

Result<Image> decode_png(std::string_view bytes, int channels) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0)
    return parse_error(std::string("PNG: ") + png.message);
  if (Status status = check_picture_size(png.width, png.height); !status) {
    png_image_free(&png);
    return std::move(status).error();
  }
  const bool colour = (png.format & PNG_FORMAT_FLAG_COLOR) != 0;
  Image image;
  image.width = static_cast<int>(png.width);
  image.height = static_cast<int>(png.height);
  image.channels = channels != 0 ? channels : colour ? 3 : 1;
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  png_color black = {0, 0, 0};  // what transparent pixels are composed onto
  if (png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr) == 0) {
    std::string message = png.message;
    png_image_free(&png);
    return parse_error("PNG: " + message);
  }
  return image;
}

struct JpegError {
  jpeg_error_mgr base;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

/// The part that libjpeg may leave by longjmp: only trivially destructible locals live in it.
bool decode_jpeg_into(jpeg_decompress_struct& jpeg, JpegError& error, std::string_view bytes,
                      int channels, Image& image, bool& too_large) {
  if (setjmp(error.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.image_width == 0 || jpeg.image_width > kMaxPixels / (jpeg.image_height + 1)) {
    too_large = true;
    return false;
  }
  const bool grey = channels == 1 || (channels == 0 && jpeg.num_components == 1);
  jpeg.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  image.width = static_cast<int>(jpeg.output_width);
  image.height = static_cast<int>(jpeg.output_height);
  image.channels = jpeg.output_components;
  const size_t stride = static_cast<size_t>(jpeg.output_width) * jpeg.output_components;
  image.pixels.resize(stride * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = image.pixels.data() + stride * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

Result<Image> decode_jpeg(std::string_view bytes, int channels) {
  Image image;
  jpeg_decompress_struct jpeg;
  std::memset(&jpeg, 0, sizeof jpeg);
  JpegError error;
  error.message[0] = '\0';
  jpeg.err = jpeg_std_error(&error.base);
  error.base.error_exit = [](j_common_ptr info) {
    auto* own = reinterpret_cast<JpegError*>(info->err);
    info->err->format_message(info, own->message);
    longjmp(own->jump, 1);
  };
  error.base.output_message = [](j_common_ptr) {};  // the library never prints
  bool too_large = false;
  const bool done = decode_jpeg_into(jpeg, error, bytes, channels, image, too_large);
  jpeg_destroy_decompress(&jpeg);
  if (too_large) return resource_error("the JPEG picture is empty or too large");
  if (!done) return parse_error(std::string("JPEG: ") + error.message);
  return image;
}

}  // namespace

Result<Image> decode_image(std::string_view bytes, int channels) {
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes, channels);
  if (bytes.starts_with("\xFF\xD8")) return decode_jpeg(bytes, channels);
  return parse_error("not a picture that can be decoded: neither PNG nor JPEG");
}

}  // namespace tombolo
