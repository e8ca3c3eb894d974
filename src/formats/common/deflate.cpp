#include "formats/common/deflate.h"

#include <zlib.h>

#include <algorithm>

namespace tombolo {
namespace {

constexpr size_t kStep = size_t{1} << 20;

int window_of(Deflate form) { return form == Deflate::kRaw ? -MAX_WBITS : MAX_WBITS + 32; }

/// Inflates until `most` bytes are there or nothing more comes; gives zlib's last answer.
int inflate_into(std::string& out, std::span<const std::byte> stored, Deflate form, uint64_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, window_of(form)) != Z_OK) return Z_MEM_ERROR;
  size_t fed = 0;
  int code = Z_OK;
  while (code == Z_OK && out.size() < most) {
    if (stream.avail_in == 0) {
      const size_t part = std::min(stored.size() - fed, kStep);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + fed));
      stream.avail_in = static_cast<uInt>(part);
      fed += part;
    }
    const size_t had = out.size();
    out.resize(had + std::min<uint64_t>(kStep, most - had));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (code == Z_BUF_ERROR && stream.avail_in == 0 && fed < stored.size()) code = Z_OK;
  }
  inflateEnd(&stream);
  return code;
}

}  // namespace

Result<Blob> inflated(std::span<const std::byte> stored, Deflate form, uint64_t most) {
  auto out = std::make_shared<std::string>();
  // One byte more, so that the end is seen where there are as many as expected.
  const int code = inflate_into(*out, stored, form, most + 1);
  if (code == Z_MEM_ERROR) return resource_error("zlib cannot start");
  if (out->size() > most)
    return resource_error("it expands to more than " + std::to_string(most) + " bytes");
  if (code != Z_STREAM_END) return parse_error("the compressed data are damaged or cut off");
  return Blob{std::as_bytes(std::span<const char>(*out)), out};
}

std::string inflated_head(std::span<const std::byte> stored, size_t count) {
  std::string out;
  if (is_deflated(stored))
    (void)inflate_into(out, stored.first(std::min(stored.size(), kStep)), Deflate::kZlibGzip,
                       count);
  return out;
}

bool is_deflated(std::span<const std::byte> bytes) {
  if (bytes.size() < 8) return false;
  const auto first = static_cast<unsigned>(bytes[0]), second = static_cast<unsigned>(bytes[1]);
  if (first == 0x1f) return second == 0x8b;
  return first == 0x78 && (first * 256 + second) % 31 == 0;
}

}  // namespace tombolo
