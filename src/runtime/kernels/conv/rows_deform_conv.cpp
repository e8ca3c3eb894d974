// DeformConv of two axes, of floats and doubles: the image is turned to channels last, where each
// tap of the kernel reads is found once for all channels that share offsets, and windows become
// rows of a product of matrices.

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/conv/deform.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/gemm_wide.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

constexpr size_t kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;

struct DeformState final : KernelState {
  ConvGeometry shape;
  int64_t sharing = 1;  ///< groups of channels that share offsets
  Dims output;
  std::vector<DeformPiece> pieces;
  std::vector<int64_t> first;         ///< piece of each group
  int64_t block = 1;                  ///< output pixels at a time
  const std::byte* packed = nullptr;  ///< null: in every run
  // Of a group's packed weights, and where in scratch: elements.
  int64_t packed_step = 0, ordered_at = 0, image_at = 0;

  int64_t channels() const { return shape.groups * shape.in_channels; }
  int64_t outputs() const { return shape.groups * shape.out_channels; }
};

bool plan_deform(const KernelQuery& q, DType dtype, DeformState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 3 || q.dims(kX).size() != 4) return false;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if ((q.has_input(i) || i < 3) && q.dtype(i) != dtype) return false;
  const auto shape = read_conv_geometry(q.attributes, q.dims(kX), q.dims(kW));
  if (!shape || element_count(q.dims(kX)) < 1 || shape->in_plane() >= INT32_MAX) return false;
  s.shape = *shape;
  s.sharing = q.attributes.get_int("offset_group", 1);
  if (s.sharing < 1 || s.channels() % s.sharing != 0) return false;
  const int64_t taps = shape->taps();
  s.output = output_dims(*shape, s.outputs(), 2);
  const auto fits = [&](size_t i, int64_t channels) {
    Dims wanted = s.output;
    wanted[1] = channels;
    return !q.has_input(i) || Dims(q.dims(i)) == wanted;
  };
  if (!fits(kOffset, s.sharing * taps * 2) || !fits(kMask, s.sharing * taps)) return false;
  return !q.has_input(kBias) || Dims(q.dims(kBias)) == Dims{s.outputs()};
}

template <DType kType>
bool supports_deform(const KernelQuery& query) {
  DeformState state;
  return plan_deform(query, kType, state);
}

// What differs between floats and doubles.

int64_t deform_packed(const ConvGeometry& g, const float*) {
  return packed_b_floats(g.depth(), g.out_channels);
}
int64_t deform_packed(const ConvGeometry& g, const double*) {
  return round_up(g.out_channels, wide_panel<double>()) * g.depth();
}
void deform_pack(const ConvGeometry& g, const float* w, float* out) {
  pack_b(w, 1, g.depth(), g.depth(), g.out_channels, 1, out);
}
void deform_pack(const ConvGeometry& g, const double* w, double* out) {
  pack_wide(w, 1, g.depth(), g.depth(), g.out_channels, 0,
            (g.out_channels + wide_panel<double>() - 1) / wide_panel<double>(), out);
}
void deform_multiply(const DeformState& s, int64_t rows, const float* a, const float* packed,
                     const float* bias, float* c) {
  const ConvGeometry& g = s.shape;
  gemm(rows, g.out_channels, g.depth(), a, g.groups * g.depth(), packed, c, s.outputs(),
       {.col_bias = bias});
}
void deform_multiply(const DeformState& s, int64_t rows, const double* a, const double* packed,
                     const double* bias, double* c) {
  const ConvGeometry& g = s.shape;
  const int64_t panels = (g.out_channels + wide_panel<double>() - 1) / wide_panel<double>();
  multiply_wide<double>(
      {a, g.groups * g.depth(), packed, c, s.outputs(), g.out_channels, g.depth()}, 0, rows, 0,
      panels);
  for (int64_t row = 0; bias != nullptr && row < rows; ++row)
    for (int64_t m = 0; m < g.out_channels; ++m) c[row * s.outputs() + m] += bias[m];
}

/// Weights with the channels of a tap side by side, then as the right side of a product; `ordered`
/// is room for them.
template <typename T>
void pack_deform_weights(const DeformState& s, const T* w, T* ordered, T* packed) {
  const ConvGeometry& g = s.shape;
  for (int64_t m = 0; m < s.outputs(); ++m)
    transpose_tile(reinterpret_cast<const std::byte*>(w + m * g.depth()), g.taps(),
                   reinterpret_cast<std::byte*>(ordered + m * g.depth()), g.in_channels,
                   g.in_channels, g.taps(), sizeof(T));
  for (int64_t group = 0; group < g.groups; ++group)
    deform_pack(g, ordered + group * g.out_channels * g.depth(), packed + group * s.packed_step);
}

template <typename T, DType kType>
Result<std::unique_ptr<KernelState>> prepare_deform(const PrepareContext& context) {
  auto state = std::make_unique<DeformState>();
  DeformState& s = *state;
  plan_deform(context, kType, s);
  const ConvGeometry& g = s.shape;
  const int64_t shared = s.channels() / s.sharing;
  for (int64_t c = 0, n = 0; c < s.channels(); c += n) {
    if (c % g.in_channels == 0) s.first.push_back(static_cast<int64_t>(s.pieces.size()));
    n = std::min(shared - c % shared, g.in_channels - c % g.in_channels);
    s.pieces.push_back(
        {c, n, c / shared, c / g.in_channels * g.depth() + c % g.in_channels, g.in_channels});
  }
  s.first.push_back(static_cast<int64_t>(s.pieces.size()));
  // Windows of a block stay in the second cache, if they are enough for weights to be used again.
  constexpr int64_t kFewest = 96;
  const int64_t row = g.groups * g.depth() * static_cast<int64_t>(sizeof(T));
  const int64_t pixels =
      std::min(g.out_plane(), std::clamp(near_bytes() / row, kFewest, kDeformPixels));
  const int64_t blocks = (g.out_plane() + pixels - 1) / pixels;
  s.block = (g.out_plane() + blocks - 1) / blocks;
  s.packed_step = deform_packed(g, static_cast<const T*>(nullptr));
  const int64_t packed = round_up(g.groups * s.packed_step, 16);
  const int64_t ordered = round_up(s.outputs() * g.depth(), 16);
  const bool constant = context.constant(kW) != nullptr;
  s.ordered_at = constant ? 0 : packed;
  s.image_at = constant ? 0 : packed + ordered;
  s.scratch_bytes =
      static_cast<size_t>(s.image_at + (g.in_plane() + 1) * s.channels() + 64) * sizeof(T);
  if (!constant) return state;
  const std::string key =
      "deform_conv/" + std::string(name_of(active_isa())) + "/" + std::to_string(g.groups);
  TRY(s.packed,
      context.packed(kW, key, static_cast<size_t>(packed) * sizeof(T), [&](std::byte* target) {
        std::vector<T> room(static_cast<size_t>(ordered));
        pack_deform_weights(s, context.constant(kW)->data<T>(), room.data(),
                            reinterpret_cast<T*>(target));
      }));
  return state;
}

/// Room of the calling thread (thread_floats) for elements of another size.
template <typename T>
T* deform_room(int slot, int64_t count) {
  return reinterpret_cast<T*>(
      thread_floats(slot, static_cast<size_t>(count) * sizeof(T) / sizeof(float)));
}

template <typename T>
struct DeformInputs {
  const T *image, *packed, *offset, *mask, *bias;  ///< of one image, which is turned
};

/// Output pixels [first, first + count) of one image.
template <typename T>
void run_deform_block(const DeformState& s, const DeformInputs<T>& from, int64_t first,
                      int64_t count, T* y) {
  const ConvGeometry& g = s.shape;
  const int64_t taps = g.taps(), pixels = g.out_plane(), outputs = s.outputs();
  const int64_t row = g.groups * g.depth(), corners = s.sharing * taps * 4 * kDeformPixels;
  const DeformBlock block = deform_block(g, first, count);
  // Corners are written in whole vectors.
  T* const weights = deform_room<T>(1, corners + 64 + count * outputs);
  T* const product = weights + corners + 64;
  auto* const places =
      reinterpret_cast<int32_t*>(thread_floats(2, static_cast<size_t>(corners) + 64));
  T* const windows = deform_room<T>(3, count * row + 64);
  for (int64_t i = 0; i < s.sharing * taps; ++i) {
    const T* offset = from.offset + i * 2 * pixels + first;
    deform_corners(g, block, i % taps, offset, offset + pixels,
                   from.mask != nullptr ? from.mask + i * pixels + first : nullptr,
                   places + i * 4 * kDeformPixels, weights + i * 4 * kDeformPixels);
  }
  deform_gather<T>({from.image, s.channels(), taps, count, s.pieces.data(), s.first.data(),
                    g.groups, places, weights, windows, row});
  for (int64_t group = 0; group < g.groups; ++group)
    deform_multiply(s, count, windows + group * g.depth(), from.packed + group * s.packed_step,
                    from.bias != nullptr ? from.bias + group * g.out_channels : nullptr,
                    product + group * g.out_channels);
  transpose_tile(reinterpret_cast<const std::byte*>(product), outputs,
                 reinterpret_cast<std::byte*>(y + first), pixels, count, outputs, sizeof(T));
}

template <typename T, DType kType>
Status run_deform(KernelRun& run) {
  const auto& s = run.state<DeformState>();
  const ConvGeometry& g = s.shape;
  TRY(Tensor * y, run.output(0, kType, s.output));
  const int64_t pixels = g.out_plane(), plane = g.in_plane(), channels = s.channels();
  auto* const scratch = reinterpret_cast<T*>(run.scratch());
  DeformInputs<T> from{};
  from.packed = reinterpret_cast<const T*>(s.packed);
  if (s.packed == nullptr) {
    pack_deform_weights(s, run.data<T>(kW), scratch + s.ordered_at, scratch);
    from.packed = scratch;
  }
  T* const image = scratch + s.image_at;
  from.image = image;
  if (run.has_input(kBias)) from.bias = run.data<T>(kBias);
  std::fill_n(image + plane * channels, channels, T{0});
  for (int64_t n = 0; n < g.batch; ++n) {
    constexpr int64_t kStrip = 64;
    const T* x = run.data<T>(kX) + n * channels * plane;
    run.parallel_for((plane + kStrip - 1) / kStrip, grain_of(kStrip * channels),
                     [&](int64_t begin, int64_t end) {
                       const int64_t at = begin * kStrip;
                       transpose_tile(reinterpret_cast<const std::byte*>(x + at), plane,
                                      reinterpret_cast<std::byte*>(image + at * channels), channels,
                                      channels, std::min(plane, end * kStrip) - at, sizeof(T));
                     });
    from.offset = run.data<T>(kOffset) + n * s.sharing * g.taps() * 2 * pixels;
    if (run.has_input(kMask)) from.mask = run.data<T>(kMask) + n * s.sharing * g.taps() * pixels;
    T* to = y->data<T>() + n * s.outputs() * pixels;
    run.parallel_for((pixels + s.block - 1) / s.block, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        run_deform_block(s, from, i * s.block, std::min(s.block, pixels - i * s.block), to);
    });
  }
  return ok();
}

}  // namespace

KERNEL(deform_conv_f32) = {
    .name = "deform_conv_f32",
    .op = "DeformConv",
    .supports = supports_deform<DType::kFloat32>,
    .prepare = prepare_deform<float, DType::kFloat32>,
    .run = products<run_deform<float, DType::kFloat32>>,
};
KERNEL(deform_conv_f64) = {
    .name = "deform_conv_f64",
    .op = "DeformConv",
    .supports = supports_deform<DType::kFloat64>,
    .prepare = prepare_deform<double, DType::kFloat64>,
    .run = products<run_deform<double, DType::kFloat64>>,
};

}  // namespace tombolo
