// Convolution to few channels. Lanes are neighbouring pixels of a row, which are read where they
// lie: to gather windows for a product of matrices would take as long as to multiply them, and
// channels as lanes would mostly be empty.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/conv_pixels.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_CONV_PIXELS_ONCE  // included once for each target
#define TOMBOLO_CONV_PIXELS_ONCE
namespace tombolo {

/// Some vectors of pixels of all outputs, and some of what they sum up.
struct PixelSums {
  const float* image;
  const int64_t* offsets;  ///< of what an output pixel sees, from its first
  int64_t depth;           ///< of them
  const float* w;          ///< [offset][output]
  // The pixels: vectors [begin, end) of those that rows of n pixels have.
  int64_t begin, end;
  int64_t n, rows;           ///< rows of a slice
  int64_t in_row, in_slice;  ///< floats of the image from one to the next
  int64_t last;              ///< floats of the image, from the first pixel a vector sees
  const float *bias, *init;  ///< or null; init lies as y
  float* y;                  ///< [output][slice][row][pixel]
  int64_t plane;             ///< floats of an output
  bool clamp;
  float lo, hi;
};
inline constexpr int64_t kMostOutputsAtOnce = 8;

struct PixelKernels {
  int64_t lanes;
  int64_t outputs;                                    ///< at once, at most
  void (*sum[kMostOutputsAtOnce])(const PixelSums&);  ///< [outputs - 1]
};

}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using PixelLanes = hn::ScalableTag<float>;

/// A vector of pixels.
struct PixelPlace {
  int64_t in, out, count;
};

/// Results of the sums [output][vector]. Not inlined: what it needs would take the registers of
/// sums.
template <int kO, int kV>
HWY_NOINLINE void finish_places(const PixelSums& t, const PixelPlace* places,
                                const float* HWY_RESTRICT sums) {
  const PixelLanes f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto lo = hn::Set(f, t.lo), hi = hn::Set(f, t.hi);
  // Read once: a store of a vector may change what `t` holds, as far as a compiler knows.
  const float *const biases = t.bias, *init = t.init;
  const int64_t plane = t.plane;
  const bool clamp = t.clamp;
  bool whole = true;
  for (int v = 0; v < kV; ++v) whole = whole && places[v].count == lanes;
  float* y = t.y;
  for (int o = 0; o < kO; ++o, y += plane, sums += kV * lanes) {
    const auto bias = biases != nullptr ? hn::Set(f, biases[o]) : hn::Zero(f);
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) {
      auto s = hn::Add(hn::Load(f, sums + v * lanes), bias);
      const int64_t at = places[v].out, count = places[v].count;
      if (init != nullptr) s = hn::Add(s, load_n(f, init + o * plane + at, count));
      if (clamp) s = min_of(hi, max_of(lo, s));
      if (whole)
        hn::StoreU(s, f, y + at);
      else
        store_n(s, f, y + at, count);
    }
  }
}

/// What lies beyond `last` floats of the image is not read.
template <int kO, int kV, bool kAtEnd>
HWY_INLINE void sum_places(const PixelSums& t, const PixelPlace* places) {
  const PixelLanes f;
  hn::Vec<PixelLanes> sum[kO][kV];
#pragma GCC unroll 8
  for (int o = 0; o < kO; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) sum[o][v] = hn::Zero(f);
  const float* from[kV];
#pragma GCC unroll 8
  for (int v = 0; v < kV; ++v) from[v] = t.image + places[v].in;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr int kLines =
      HWY_LANES(float) < 16 && kO >= 3 && !kAtEnd ? (kV * HWY_LANES(float) + 15) / 16 : 0;
  const float* w = t.w;
  for (int64_t k = 0; k < t.depth; ++k, w += kO) {
    const int64_t offset = t.offsets[k];
    hn::Vec<PixelLanes> x[kV];
    // The next pixels, meanwhile: each input is a stream of its own, and few of each are read.
    // Fewer outputs read more pixels at a time, and have no time to ask.
    if constexpr (kLines > 0)
      for (int line = 0; line < kLines; ++line)
        __builtin_prefetch(from[0] + offset + kV * lanes + 16 * line);
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) {
      auto loaded = kAtEnd ? load_n(f, from[v] + offset, t.last - places[v].in - offset)
                           : hn::LoadU(f, from[v] + offset);
      if (kO > 1) keep_in_register(loaded);
      x[v] = loaded;
    }
#pragma GCC unroll 8
    for (int o = 0; o < kO; ++o) {
      const auto weight = hn::Set(f, w[o]);
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) sum[o][v] = hn::MulAdd(weight, x[v], sum[o][v]);
    }
  }
  HWY_ALIGN float sums[kO * kV * HWY_LANES(float)];
#pragma GCC unroll 8
  for (int o = 0; o < kO; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) hn::Store(sum[o][v], f, sums + (o * kV + v) * lanes);
  finish_places<kO, kV>(t, places, sums);
}

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM  // 32 registers
inline constexpr int kOutputsAtOnce = 8;
/// As many vectors as there are registers for their sums.
inline constexpr int kVectorsOf[] = {0, 8, 8, 7, 5, 4, 4, 3, 3};
#else
inline constexpr int kOutputsAtOnce = 4;
inline constexpr int kVectorsOf[] = {0, 8, 5, 3, 3};
#endif

template <int kO>
void sum_pixels(const PixelSums& task) {
  const PixelSums t = task;
  constexpr int kV = kVectorsOf[kO], kHalf = (kV + 1) / 2;
  const auto lanes = static_cast<int64_t>(hn::Lanes(PixelLanes()));
  const int64_t of_row = (t.n + lanes - 1) / lanes;
  int64_t furthest = 0;
  for (int64_t k = 0; k < t.depth; ++k) furthest = std::max(furthest, t.offsets[k]);
  int64_t row = t.begin / of_row, j = t.begin % of_row * lanes, slice = row / t.rows;
  row %= t.rows;
  PixelPlace places[kV];
  int held = 0;
  for (int64_t i = t.begin; i < t.end; ++i) {
    PixelPlace& place = places[held++];
    place = {slice * t.in_slice + row * t.in_row + j, (slice * t.rows + row) * t.n + j,
             std::min(lanes, t.n - j)};
    j += lanes;
    if (j >= t.n) {
      j = 0;
      if (++row == t.rows) {
        row = 0;
        ++slice;
      }
    }
    const bool at_end = place.in + furthest + lanes > t.last;
    if (held == kV && !at_end) {
      sum_places<kO, kV, false>(t, places);
      held = 0;
    } else if (at_end || i + 1 == t.end) {
      int done = 0;
      if (kHalf > 1 && held - at_end >= kHalf) {
        sum_places<kO, kHalf, false>(t, places);
        done = kHalf;
      }
      for (; done < held; ++done) sum_places<kO, 1, true>(t, places + done);
      held = 0;
    }
  }
}

template <int... kO>
PixelKernels make_kernels(std::integer_sequence<int, kO...>) {
  return {static_cast<int64_t>(hn::Lanes(PixelLanes())), kOutputsAtOnce, {&sum_pixels<kO + 1>...}};
}
PixelKernels pixel_kernels() {
  return make_kernels(std::make_integer_sequence<int, kOutputsAtOnce>());
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

namespace {

const PixelKernels& kernels_of_pixels() {
  static IsaTables<PixelKernels> tables;
  return tables.get(TOMBOLO_TARGET(PixelKernels(), pixel_kernels));
}

/// Calls part(first, count) for the outputs that are summed up at once.
template <typename Part>
void for_parts(int64_t outputs, const Part& part) {
  const int64_t most = kernels_of_pixels().outputs, parts = (outputs + most - 1) / most;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t first = outputs * p / parts;
    part(first, outputs * (p + 1) / parts - first);
  }
}

/// Pixels that lie side by side, in the image and in the output: a row, or, where nothing is
/// between rows, all of a slice.
int64_t row_of_pixels(const ConvGeometry& s, const ConvImage& image) {
  return image.columns == s.out[2] ? s.out[1] * s.out[2] : s.out[2];
}

}  // namespace

bool conv_pixels_pays(const ConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  // Few outputs do not repay gathering; of more each takes as long as a vector is filled, and
  // gathering is as much as some of them. One position is read where it lies by products, too.
  constexpr int64_t kFew = 8, kGathered = 6, kMost = 32, kFewOfSeveral = 11;
  const int64_t lanes = kernels_of_pixels().lanes, n = row_of_pixels(s, plan.image);
  const int64_t filled = (n + lanes - 1) / lanes * lanes;
  if (s.out_channels <= kFew) return 3 * n >= filled;
  // Registers hold the windows of short sums, for any number of outputs; they come from one channel
  // sooner.
  if (sums_are_short(s) && s.out_channels > (s.in_channels == 1 ? kFew : kFewOfSeveral))
    return false;
  return s.taps() > 1 && s.out_channels <= kMost &&
         s.out_channels * filled < (s.out_channels + kGathered) * n;
}

void pack_conv_pixels(const ConvPlan& plan, const float* w, WeightSteps steps, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t depth = s.depth();
  for (int64_t g = 0; g < s.groups; ++g, w += s.out_channels * depth)
    for_parts(s.out_channels, [&](int64_t first, int64_t count) {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t o = first; o < first + count; ++o)
          *packed++ = w[o * steps.output + k * steps.input];
    });
}

void run_conv_pixels(const ConvPlan& plan, const float* x, const float* packed, float* y,
                     const ConvEpilogue& epilogue, float* scratch) {
  constexpr int64_t kSome = 256;    ///< of what is summed up at a time: see block_chunk()
  constexpr int64_t kVectors = 60;  ///< whose results stay near until they are activated
  const ConvGeometry& s = plan.shape;
  const ConvImage& image = plan.image;
  const PixelKernels& kernels = kernels_of_pixels();
  const auto depth = static_cast<int64_t>(plan.offsets.size());
  const int64_t pixels = s.out_plane(), channels = s.groups * s.in_channels;
  const int64_t plane = image.copy ? image.plane : s.in_plane();
  const int64_t n = row_of_pixels(s, image), rows = s.out[1] * s.out[2] / std::max<int64_t>(n, 1);
  const int64_t of_row = (n + kernels.lanes - 1) / kernels.lanes;
  const int64_t vectors = s.out[0] * rows * of_row;
  const int64_t pieces = (vectors + kVectors - 1) / kVectors;
  const Activation& act = epilogue.activation;
  if (vectors == 0 || s.out_channels == 0) return;
  // Vectors [begin, end) of the pixels of one group.
  const auto run_piece = [&](const float* from, int64_t n_image, int64_t group, int64_t begin,
                             int64_t end) {
    const int64_t channel = group * s.out_channels;
    const int64_t at = (n_image * s.groups * s.out_channels + channel) * pixels;
    PixelSums t{.image = from + group * s.in_channels * plane,
                .begin = begin,
                .end = end,
                .n = n,
                .rows = rows,
                .in_row = image.columns,
                .in_slice = s.stride[0] * image.slice,
                .last = s.in_channels * plane,
                .plane = pixels,
                .lo = act.alpha,
                .hi = act.beta};
    for_parts(s.out_channels, [&](int64_t first, int64_t count) {
      const int64_t out = at + first * pixels;
      t.y = y + out;
      for (int64_t k = 0; k == 0 || k < depth; k += kSome) {
        t.offsets = plan.offsets.data() + k;
        t.depth = std::min(kSome, depth - k);
        t.w = packed + (channel + first) * depth + k * count;
        t.bias = k == 0 && epilogue.bias != nullptr ? epilogue.bias + channel + first : nullptr;
        t.init = k != 0 ? t.y : epilogue.residual != nullptr ? epilogue.residual + out : nullptr;
        t.clamp = k + kSome >= depth && act.kind == Activation::Kind::kClamp;
        kernels.sum[count - 1](t);
      }
    });
    if (act.tiled()) return;
    const auto pixel = [&](int64_t vector) {
      return vector / of_row * n + vector % of_row * kernels.lanes;
    };
    const int64_t first = pixel(begin), last = pixel(end);
    for (int64_t o = 0; o < s.out_channels; ++o)
      apply_activation(act, y + at + o * pixels + first, last - first);
  };
  const auto run_image = [&](int64_t n_image, float* room) {
    const float* from = copy_image(plan, x + n_image * channels * s.in_plane(), channels, room);
    const int64_t work = kernels.lanes * depth * s.out_channels * std::min(vectors, kVectors);
    parallel(s.groups * pieces, std::max<int64_t>(1, 200'000 / std::max<int64_t>(1, work)),
             [&](int64_t begin, int64_t end) {
               for (int64_t task = begin; task < end; ++task) {
                 const int64_t piece = task % pieces;
                 run_piece(from, n_image, task / pieces, vectors * piece / pieces,
                           vectors * (piece + 1) / pieces);
               }
             });
  };
  if (!images_apart(s.batch, static_cast<int64_t>(plan.weight_floats), s.groups * pieces)) {
    for (int64_t n_image = 0; n_image < s.batch; ++n_image) run_image(n_image, scratch);
    return;
  }
  parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    float* room =
        image.copy ? thread_floats(2, static_cast<size_t>(channels * plane + 128)) : nullptr;
    for (int64_t n_image = begin; n_image < end; ++n_image) run_image(n_image, room);
  });
}

}  // namespace tombolo
#endif
