#include "runtime/kernels/conv/halves_conv.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/elementwise/convert.h"
#include "runtime/kernels/matmul/bf16.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_halves.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

int64_t halves_panels(const ConvGeometry& s) {
  return (s.out_channels + kHalvesWidth - 1) / kHalvesWidth;
}
/// Before the weights: whether they are there, then of each panel whether it has floats: 32 powers
/// of two, and k rows of float16 that these bring to what they stand for.
int64_t halves_header(const ConvGeometry& s) { return round_up(1 + halves_panels(s), 64); }

/// One of so many panels may have them: small tiles take them twice as long as others do.
constexpr int64_t kMostKept = 8;

/// A panel [k][32] that is not for bytes. False where numbers are not finite.
bool keep_panel(std::vector<float>& rows, int64_t k, std::byte* out) {
  auto* const powers = reinterpret_cast<float*>(out);
  for (int64_t c = 0; c < kHalvesWidth; ++c) {
    float largest = 0;
    bool finite = true;
    for (auto i = static_cast<size_t>(c); i < rows.size(); i += kHalvesWidth) {
      finite = finite && std::isfinite(rows[i]);
      largest = std::max(largest, std::fabs(rows[i]));
    }
    if (!finite) return false;
    // As large as float16 can be, for the digits of the small ones; the power is a normal number.
    const int exponent = largest > 0 ? std::max(std::ilogb(largest), -100) - 14 : 0;
    powers[c] = std::ldexp(1.0f, exponent);
    for (auto i = static_cast<size_t>(c); i < rows.size(); i += kHalvesWidth)
      rows[i] = std::ldexp(rows[i], -exponent);
  }
  f32_to_f16(rows.data(), reinterpret_cast<uint16_t*>(powers + kHalvesWidth), k * kHalvesWidth);
  return true;
}
void floats_of_kept(const std::byte* panel, int64_t k, float* out) {
  const auto* const powers = reinterpret_cast<const float*>(panel);
  f16_to_f32(reinterpret_cast<const uint16_t*>(powers + kHalvesWidth), out, k * kHalvesWidth);
  for (int64_t i = 0; i < k; ++i, out += kHalvesWidth)
    for (int64_t c = 0; c < kHalvesWidth; ++c) out[c] *= powers[c];
}

/// Neighbouring output pixels of one image that are multiplied together, as bytes or floats.
struct PixelTiles {
  const ConvGeometry& shape;
  int64_t of_image, count, bytes;
  static constexpr int64_t kFlag = 64;  ///< bytes before a tile: whether it has floats

  explicit PixelTiles(const ConvGeometry& s)
      : shape(s),
        of_image((s.out_plane() + kHalvesRows - 1) / kHalvesRows),
        count(of_image * s.batch),
        bytes(kFlag + round_up(std::max(halves_tile_bytes(kHalvesRows, s.in_channels),
                                        kHalvesRows * lda() * 4),
                               64)) {}
  int64_t lda() const { return round_up(shape.in_channels, 16); }  ///< of floats
  int64_t image(int64_t tile) const { return tile / of_image; }
  int64_t begin(int64_t tile) const { return shape.out_plane() * (tile % of_image) / of_image; }
  int64_t pixels(int64_t tile) const {
    return shape.out_plane() * (tile % of_image + 1) / of_image - begin(tile);
  }
};

class Product {
 public:
  Product(const HalvesConv& plan, const float* x, const std::byte* packed, float* y,
          const ConvEpilogue& epilogue)
      : s_(plan.shape),
        tiles_(plan.shape),
        x_(x),
        kept_(packed + 1),
        weights_(packed + halves_header(s_)),
        y_(y),
        e_(epilogue) {}

  void run() const {
    constexpr int64_t kBytes = 256 << 10;  ///< of tiles that stay in the second cache
    const int64_t threads = thread_count(), panels = halves_panels(s_);
    int64_t together = std::clamp<int64_t>(kBytes / tiles_.bytes, 1, tiles_.count);
    // Weights that stay near, too, are used for one part of the pixels after the other; of little
    // work each thread has one.
    constexpr int64_t kSmall = 4'000'000;  // products
    const bool near = panels * panel_bytes() <= near_bytes();
    const int64_t products = tiles_.count * kHalvesRows * s_.in_channels * s_.out_channels;
    const int64_t pieces = products <= kSmall ? threads : 4 * threads;
    if (threads > 1 && near)
      together = std::clamp<int64_t>((tiles_.count + pieces - 1) / pieces, 1, together);
    const int64_t parts = (tiles_.count + together - 1) / together;
    if (threads == 1 || (near && parts >= threads)) {
      parallel(parts, 1, [&](int64_t begin, int64_t end) {
        std::byte* const room = room_of(0, together);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i * together, last = std::min(tiles_.count, first + together);
          for (int64_t tile = first; tile < last; ++tile)
            split(tile, room + (tile - first) * tiles_.bytes);
          multiply(room, first, last, 0, panels);
        }
      });
      return;
    }
    // Few pixels: threads share the panels.
    together = std::min(tiles_.count, std::max(together, 4 * kBytes / tiles_.bytes));
    std::byte* const room = room_of(1, together);
    const int64_t groups = panel_groups(1, panels);
    for (int64_t first = 0; first < tiles_.count; first += together) {
      const int64_t last = std::min(tiles_.count, first + together);
      parallel(last - first, std::max<int64_t>(1, 4096 / s_.in_channels),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) split(first + i, room + i * tiles_.bytes);
               });
      parallel(groups, 1, [&](int64_t begin, int64_t end) {
        multiply(room, first, last, panels * begin / groups, panels * end / groups);
      });
    }
  }

 private:
  int64_t panel_bytes() const { return halves_panel_bytes(s_.in_channels); }
  std::byte* room_of(int slot, int64_t tiles) const {
    return reinterpret_cast<std::byte*>(
        thread_floats(slot, static_cast<size_t>(tiles * tiles_.bytes / 4)));
  }
  /// The first channels of what an output pixel is made of.
  const float* pixel_at(int64_t image, int64_t pixel) const {
    const int64_t row = pixel / s_.out[2] * s_.stride[1], column = pixel % s_.out[2] * s_.stride[2];
    return x_ +
           (image * blocks_of(s_.in_channels) * s_.in_plane() + row * s_.in[2] + column) * kBlock;
  }

  /// The inputs of a tile, as bytes where they are for that.
  void split(int64_t tile, std::byte* to) const {
    const int64_t first = tiles_.begin(tile), pixels = tiles_.pixels(tile);
    const int64_t plane = s_.in_plane() * kBlock, image = tiles_.image(tile);
    bool held = true;
    for (int64_t i = 0; i < pixels && held; ++i)
      held = halves_of_row(pixel_at(image, first + i), plane, s_.in_channels, i, pixels,
                           to + PixelTiles::kFlag);
    to[0] = static_cast<std::byte>(!held);
    if (held) return;
    copy_floats(tile, reinterpret_cast<float*>(to + PixelTiles::kFlag));
  }
  void copy_floats(int64_t tile, float* to) const {
    const int64_t plane = s_.in_plane() * kBlock, image = tiles_.image(tile);
    for (int64_t i = 0; i < tiles_.pixels(tile); ++i, to += tiles_.lda()) {
      const float* const from = pixel_at(image, tiles_.begin(tile) + i);
      for (int64_t c = 0; c < s_.in_channels; c += kBlock)
        std::copy_n(from + c / kBlock * plane, kBlock, to + c);
    }
  }

  /// PixelTiles [first, last), which lie at `room`, by panels [from, to).
  void multiply(const std::byte* room, int64_t first, int64_t last, int64_t from,
                int64_t to) const {
    const int64_t k = s_.in_channels, all = halves_panels(s_);
    const int64_t plane = s_.out_plane() * kBlock;
    alignas(64) float sums[kHalvesRows * kHalvesWidth];
    for (int64_t panel = from; panel < to; ++panel) {
      const std::byte* const b = weights_ + panel * panel_bytes();
      const bool kept = kept_[panel] != std::byte{0};
      const float* widened = nullptr;
      // Each tile asks for a part of the next panel.
      const int64_t part = panel_bytes() / (last - first);
      const std::byte* next = weights_ + std::min(panel + 1, all - 1) * panel_bytes();
      const int64_t column = panel * kHalvesWidth;
      const int64_t columns = std::min(kHalvesWidth, blocks_of(s_.out_channels) * kBlock - column);
      const std::byte* own = room;
      for (int64_t tile = first; tile < last; ++tile, next += part, own += tiles_.bytes) {
        const int64_t pixels = tiles_.pixels(tile);
        const bool floats = own[0] != std::byte{0};
        if (!floats && !kept) {
          halves_product(own + PixelTiles::kFlag, pixels, b, k, next, sums);
        } else {
          if (widened == nullptr) widened = widen(b, kept);
          auto* a = reinterpret_cast<const float*>(own + PixelTiles::kFlag);
          if (!floats) {
            float* const copy = thread_floats(3, static_cast<size_t>(kHalvesRows * tiles_.lda()));
            copy_floats(tile, copy);
            a = copy;
          }
          const GemmTile t{.a = a,
                           .lda = tiles_.lda(),
                           .b = widened,
                           .ldb = kHalvesWidth,
                           .k = k,
                           .c = sums,
                           .ldc = kHalvesWidth,
                           .cols = kHalvesWidth};
          gemm_tiles().row_major_tile(static_cast<int>(pixels), kHalvesWidth)(t);
        }
        const int64_t image = tiles_.image(tile) * blocks_of(s_.out_channels) * plane;
        const Bf16Blocks result{y_ + image, plane, e_,
                                e_.residual != nullptr ? e_.residual + image : nullptr};
        Bf16Blocks::finish(&result, sums, tiles_.begin(tile), pixels, column, columns);
      }
    }
  }
  const float* widen(const std::byte* panel, bool kept) const {
    float* const floats = thread_floats(2, static_cast<size_t>(s_.in_channels * kHalvesWidth));
    (kept ? floats_of_kept : floats_of_panel)(panel, s_.in_channels, floats);
    return floats;
  }

  const ConvGeometry& s_;
  const PixelTiles tiles_;
  const float* const x_;
  const std::byte* const kept_;
  const std::byte* const weights_;
  float* const y_;
  const ConvEpilogue& e_;
};

}  // namespace

bool halves_conv_fits(const ConvGeometry& s) {
  // Tiles are of one image: those of one to three pixels wait for their own sums.
  const bool fills = s.out_plane() >= 4 * PixelTiles(s).of_image;
  // To make the bytes of a number takes as long as a third of what 128 products save, to finish a
  // tile as long as half of what sums of 64 do.
  return is_pointwise(s) && s.groups == 1 && s.in[0] == 1 && fills && s.out_channels >= 128 &&
         s.in_channels * s.out_channels >= 128 * 128 &&
         halves_pay(s.batch * s.out_plane(), s.out_channels, s.in_channels);
}

HalvesConv plan_halves_conv(const ConvGeometry& shape) {
  const int64_t panels = halves_panels(shape) * halves_panel_bytes(shape.in_channels);
  return {shape, static_cast<size_t>(halves_header(shape) + panels)};
}

void pack_halves_conv(const HalvesConv& plan, const float* w, std::byte* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t k = s.in_channels;
  std::atomic<int64_t> kept{0};
  std::atomic<bool> finite{true};
  std::memset(packed, 0, static_cast<size_t>(halves_header(s)));
  parallel(halves_panels(s), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> rows(static_cast<size_t>(k * kHalvesWidth));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kHalvesWidth;
      pack_panel(
          k, kHalvesWidth, s.out_channels - first,
          [&](int64_t o, int64_t i) { return w[(first + o) * k + i]; }, rows.data());
      std::byte* const to = packed + halves_header(s) + panel * halves_panel_bytes(k);
      if (halves_of_panel(PanelFormat::kFloat32, rows.data(), k, to)) continue;
      packed[1 + panel] = std::byte{1};
      kept.fetch_add(1, std::memory_order_relaxed);
      if (!keep_panel(rows, k, to)) finite.store(false, std::memory_order_relaxed);
    }
  });
  packed[0] = static_cast<std::byte>(finite.load() && kept.load() * kMostKept <= halves_panels(s));
}

bool halves_conv_packed(const std::byte* packed) { return packed[0] != std::byte{0}; }

void run_halves_conv(const HalvesConv& plan, const float* x, const std::byte* packed, float* y,
                     const ConvEpilogue& epilogue) {
  Product(plan, x, packed, y, epilogue).run();
}

}  // namespace tombolo
