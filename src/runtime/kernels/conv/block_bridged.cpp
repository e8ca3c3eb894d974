// Convolutions over blocked channels whose groups are half blocks, three of which are 24 channels
// (RegNet): a vector of outputs sums up the inputs of the groups that it has channels of. Where it
// has some of two groups, half of its weights are zeros, which costs a vector of 16 a quarter of
// its speed with groups of 24, and gives NaN for what is infinite in the other group.

#include <algorithm>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {
namespace {

constexpr int64_t kHalf = kBlock / 2;

/// The groups of a vector's channels.
struct Groups {
  int64_t first, last;
  Groups(const ConvGeometry& s, int64_t vector, int64_t lanes)
      : first(vector * lanes / s.out_channels),
        last(std::min(s.groups, ((vector + 1) * lanes - 1) / s.out_channels + 1)) {}
};

}  // namespace

void plan_block_bridged(BlockConvPlan& plan) {
  const ConvGeometry& s = plan.shape;
  plan.algorithm = BlockConvPlan::Algorithm::kBridged;
  plan.step = s.stride[2] * kBlock;
  plan.length = kHalf;
  plan_block_pieces(plan, false, true);
  const int64_t plane = plan.rows * plan.columns * kBlock, lanes = block_tiles().lanes;
  const int64_t vectors = (s.groups * s.out_channels + lanes - 1) / lanes;
  int64_t most = 0, weights = 0;
  for (int64_t v = 0; v < vectors; ++v) {
    const Groups groups(s, v, lanes);
    const auto first = static_cast<int64_t>(plan.offsets.size());
    for (int64_t c = groups.first * s.in_channels; c < groups.last * s.in_channels; c += kHalf)
      for (int64_t r = 0; r < s.kernel[1]; ++r)
        for (int64_t k = 0; k < s.kernel[2]; ++k)
          plan.offsets.push_back(c / kBlock * plane + c % kBlock +
                                 (r * s.dilation[1] * plan.columns + k * s.dilation[2]) * kBlock);
    const int64_t entries = static_cast<int64_t>(plan.offsets.size()) - first;
    plan.vectors.push_back({first, entries, weights});
    most = std::max(most, entries);
    weights += entries * kHalf * lanes;
  }
  plan.chunk = block_chunk(most, kHalf);
  plan_block_band(plan);
  plan.weight_floats = static_cast<size_t>(weights);
}

void pack_block_bridged(const BlockConvPlan& plan, const float* w, float* packed) {
  const ConvGeometry& s = plan.shape;
  const int64_t lanes = block_tiles().lanes, taps = s.taps(), channels = s.groups * s.out_channels;
  for (size_t v = 0; v < plan.vectors.size(); ++v) {
    const auto vector = static_cast<int64_t>(v);
    const Groups groups(s, vector, lanes);
    float* out = packed + plan.vectors[v].weights;
    for (int64_t c = groups.first * s.in_channels; c < groups.last * s.in_channels; c += kHalf)
      for (int64_t t = 0; t < taps; ++t)
        for (int64_t i = c; i < c + kHalf; ++i)
          for (int64_t o = vector * lanes; o < (vector + 1) * lanes; ++o) {
            const int64_t within = i - o / s.out_channels * s.in_channels;
            const bool sums = o < channels && within >= 0 && within < s.in_channels;
            *out++ = sums ? w[(o * s.in_channels + within) * taps + t] : 0.0f;
          }
  }
}

void run_block_bridged(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                       const ConvEpilogue& epilogue, float* scratch) {
  const ConvGeometry& s = plan.shape;
  const int64_t in_image = blocks_of(s.groups * s.in_channels) * s.in_plane() * kBlock;
  const int64_t out_plane = s.out_plane() * kBlock, lanes = block_tiles().lanes;
  const int64_t out_image = blocks_of(s.groups * s.out_channels) * out_plane;
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  const auto vectors = static_cast<int64_t>(plan.vectors.size());
  const int64_t parts = std::min(
      pieces, std::max((pieces + plan.band - 1) / plan.band, 4 * thread_count() / vectors));
  const int64_t cost =
      std::max<int64_t>(1, s.out_plane() * plan.vectors[0].entries * kHalf * lanes / parts);
  for (int64_t n = 0; n < s.batch; ++n) {
    const float* const image = with_border(plan, x + n * in_image, scratch);
    parallel(vectors * parts, std::max<int64_t>(1, 100'000 / cost),
             [&](int64_t begin, int64_t end) {
               for (int64_t task = begin; task < end; ++task) {
                 const int64_t vector = task / parts, part = task % parts;
                 const int64_t channel = vector * lanes;
                 const BlockConvPlan::Vector& sums = plan.vectors[static_cast<size_t>(vector)];
                 const int64_t at = n * out_image + channel / kBlock * out_plane + channel % kBlock;
                 const BlockTile t{.offsets = plan.offsets.data() + sums.first,
                                   .entries = sums.entries,
                                   .step = plan.step,
                                   .b = packed + sums.weights,
                                   .c_block = out_plane};
                 run_block_panel(plan, t, lanes, image, y + at, epilogue,
                                 epilogue.bias != nullptr ? epilogue.bias + channel : nullptr,
                                 epilogue.residual != nullptr ? epilogue.residual + at : nullptr,
                                 plan.pieces_of(part, parts));
               }
             });
  }
}

}  // namespace tombolo
