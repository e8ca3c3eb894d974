// QLinearConv and ConvInteger of bytes: weights are broadcast, windows are gathered into panels as
// in conv_direct.cpp. With one input channel a group the sums are exact in floats, which the float
// kernel then makes.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/codes.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/quant/weight_zeros.h"

namespace tombolo {
namespace {

// ConvInteger.
constexpr size_t kSumsW = 1, kSumsXZero = 2, kSumsWZero = 3;

struct QConvState final : KernelState {
  ConvGeometry shape;
  LiveTaps live;
  ConvImage image;
  std::vector<int64_t> offsets;
  /// Rows (or floats), then the sums of the weights. Null: the weights or their zero points change,
  /// and each run packs them behind the rest of its scratch.
  const std::byte* packed = nullptr;
  size_t row_bytes = 0, packed_at = 0;
  size_t w_at = 0, zero_at = 0;
  bool depthwise = false, x_signed = false, w_signed = false;
  DType out_type = DType::kUInt8;
  Dims output;
  std::vector<int32_t> zeros;  ///< of each output's weights, see weight_zeros()

  int64_t outputs() const { return shape.groups * shape.out_channels; }
  /// Bytes of the output of one image.
  int64_t image_bytes() const {
    return outputs() * shape.out_plane() * static_cast<int64_t>(bytes_of(out_type));
  }
};

/// What both operators ask of the image, of the weights, and of their zero points.
bool plan_sums(const KernelQuery& q, size_t w_at, size_t zero_at, QConvState& s) {
  if (!is_byte(q.dtype(kX)) || !is_byte(q.dtype(w_at))) return false;
  const auto shape = read_conv_geometry(q.attributes, q.dims(kX), q.dims(w_at), &s.live);
  if (!shape || shape->depth() > 1 << 16) return false;
  s.shape = *shape;
  s.x_signed = q.dtype(kX) == DType::kInt8;
  s.w_signed = q.dtype(w_at) == DType::kInt8;
  s.depthwise = shape->in_channels == 1 && shape->taps() <= 256;
  s.output = output_dims(*shape, s.outputs(), q.dims(kX).size() - 2);
  s.w_at = w_at;
  s.zero_at = zero_at;
  if (!q.has_input(zero_at)) return true;
  const int64_t zeros = element_count(q.dims(zero_at));
  return q.dtype(zero_at) == q.dtype(w_at) && q.dims(zero_at).size() <= 1 &&
         (zeros == 1 || zeros == s.outputs());
}

bool plan_qconv(const KernelQuery& q, QConvState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 8) return false;
  for (size_t i : {kXZero, kWZero, kYZero})
    if (!q.has_input(i) || !is_byte(q.dtype(i))) return false;
  for (size_t i : {kXScale, kWScale, kYScale})
    if (q.dtype(i) != DType::kFloat32) return false;
  for (size_t i : {kXScale, kXZero, kYScale, kYZero})
    if (element_count(q.dims(i)) != 1) return false;
  if (q.dtype(kXZero) != q.dtype(kX) || !plan_sums(q, kW, kWZero, s)) return false;
  const int64_t scales = element_count(q.dims(kWScale));
  if (q.dims(kWScale).size() > 1 || (scales != 1 && scales != s.outputs())) return false;
  if (q.has_input(kBias) && (q.dtype(kBias) != DType::kInt32 || q.dims(kBias).size() != 1 ||
                             q.dims(kBias)[0] != s.outputs()))
    return false;
  s.out_type = q.dtype(kYZero);
  return true;
}

bool plan_conv_integer(const KernelQuery& q, QConvState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2) return false;
  if (q.has_input(kSumsXZero) &&
      (q.dtype(kSumsXZero) != q.dtype(kX) || element_count(q.dims(kSumsXZero)) != 1))
    return false;
  s.out_type = DType::kInt32;
  return plan_sums(q, kSumsW, kSumsWZero, s);
}

bool supports_qconv(const KernelQuery& query) {
  QConvState state;
  return plan_qconv(query, state);
}

bool supports_conv_integer(const KernelQuery& query) {
  QConvState state;
  return plan_conv_integer(query, state);
}

void pack(const QConvState& s, const uint8_t* w, const std::vector<int32_t>& zeros,
          std::byte* target) {
  const ConvGeometry& g = s.shape;
  const int64_t outputs = g.groups * g.out_channels, depth = g.depth();
  const bool flip = !s.w_signed;
  std::vector<uint8_t> live;
  if (!s.live.whole()) {
    live = s.live.weights(w, outputs * g.in_channels);
    w = live.data();
  }
  if (s.depthwise) {
    auto* floats = reinterpret_cast<float*>(target);
    for (int64_t i = 0; i < outputs * depth; ++i)
      floats[i] = static_cast<float>(static_cast<int8_t>(flip ? w[i] ^ 0x80 : w[i]) -
                                     (zeros.empty() ? 0 : zeros[static_cast<size_t>(i / depth)]));
  } else {
    q_pack_rows(w, depth, outputs, depth, flip, true, target);
  }
  auto* sums = reinterpret_cast<int32_t*>(target + s.row_bytes);
  q_row_sums(w, depth, outputs, depth, flip, true, sums);
  for (size_t i = 0; i < zeros.size(); ++i) sums[i] -= static_cast<int32_t>(depth) * zeros[i];
}

Result<std::unique_ptr<KernelState>> prepare(const PrepareContext& context,
                                             std::unique_ptr<QConvState> state) {
  QConvState& s = *state;
  const ConvGeometry& g = s.shape;
  s.image = plan_image(g);
  for (int64_t c = 0; c < g.in_channels; ++c)
    for (int64_t tap : s.image.taps) s.offsets.push_back(c * s.image.plane + tap);
  const int64_t outputs = g.groups * g.out_channels;
  const int64_t row = s.depthwise ? g.depth() * 4 : q_row_bytes(g.depth());
  s.row_bytes = static_cast<size_t>((outputs * row + 63) / 64 * 64);
  s.scratch_bytes = static_cast<size_t>(outputs) * 2 * sizeof(float) + 256;
  if (!s.depthwise && (s.image.copy || s.x_signed))
    s.scratch_bytes += static_cast<size_t>(g.groups * g.in_channels * s.image.plane) + 128;
  const size_t packed = s.row_bytes + static_cast<size_t>(outputs) * sizeof(int32_t);
  const Tensor* w = context.constant(s.w_at);
  const bool has_zero = context.has_input(s.zero_at);
  const Tensor* zero = has_zero ? context.constant(s.zero_at) : nullptr;
  if (w == nullptr || (has_zero && zero == nullptr)) {
    s.packed_at = (s.scratch_bytes + 63) / 64 * 64;
    s.scratch_bytes = s.packed_at + packed;
    return state;
  }
  s.zeros = weight_zeros(zero, s.w_signed, outputs);
  TRY(s.packed, context.packed(s.w_at,
                               std::string("qconv/") + (s.depthwise ? "floats" : q_tiles().name) +
                                   s.live.key() + weight_zeros_key(s.zeros),
                               packed, [&](std::byte* target) {
                                 pack(s, w->data<uint8_t>(), s.zeros, target);
                               }));
  return state;
}

Result<std::unique_ptr<KernelState>> prepare_qconv(const PrepareContext& context) {
  auto state = std::make_unique<QConvState>();
  plan_qconv(context, *state);
  return prepare(context, std::move(state));
}

Result<std::unique_ptr<KernelState>> prepare_conv_integer(const PrepareContext& context) {
  auto state = std::make_unique<QConvState>();
  plan_conv_integer(context, *state);
  return prepare(context, std::move(state));
}

/// split_image for bytes (see conv_image.cpp): simple loops, there is little of it.
void split_bytes(const ConvGeometry& s, const ConvImage& image, const uint8_t* x, uint8_t flip,
                 uint8_t fill, uint8_t* out) {
  const int64_t sy = s.stride[1], sx = s.stride[2];
  const int64_t depth = image.plane / std::max<int64_t>(1, image.slice);
  if (!image.copy) {
    q_turn_bytes(x, s.in_plane(), flip, out);
    return;
  }
  std::memset(out, fill, static_cast<size_t>(image.plane));
  const int64_t width = std::min(s.in[2], image.columns * sx - s.pad[2]);
  for (int64_t d = 0; d < std::min(s.in[0], depth - s.pad[0]); ++d)
    for (int64_t r = 0; r < std::min(s.in[1], image.rows * sy - s.pad[1]); ++r) {
      const int64_t row = r + s.pad[1];
      const uint8_t* from = x + (d * s.in[1] + r) * s.in[2];
      uint8_t* to = out + (d + s.pad[0]) * image.slice + row % sy * sx * image.phase +
                    row / sy * image.columns;
      if (sx == 1) {
        q_turn_bytes(from, width, flip, to + s.pad[2]);
        continue;
      }
      int64_t phase = s.pad[2] % sx, column = s.pad[2] / sx;
      for (int64_t c = 0; c < width; ++c) {
        to[phase * image.phase + column] = from[c] ^ flip;
        if (++phase == sx) {
          phase = 0;
          ++column;
        }
      }
    }
}

struct Job {
  const QConvState& s;
  int32_t x_zero;  ///< of bytes that are stored unsigned
  const std::byte* packed = nullptr;
  std::span<const int32_t> zeros = {};
  QFinish finish = {};

  /// What is added to each output's sum for the zero point of x, which the depthwise kernel takes
  /// away itself.
  int32_t zero_term(int64_t output) const {
    if (s.depthwise) return 0;
    const auto* sums = reinterpret_cast<const int32_t*>(packed + s.row_bytes);
    return static_cast<int32_t>(-static_cast<uint32_t>(x_zero) *
                                static_cast<uint32_t>(sums[output]));
  }
};

/// The weights as they were packed, or as this run has them; `room` keeps their zero points.
Job job_of(KernelRun& run, int32_t x_zero, std::vector<int32_t>& room) {
  const auto& s = run.state<QConvState>();
  if (s.packed != nullptr) return {s, x_zero, s.packed, s.zeros};
  room = weight_zeros(run.has_input(s.zero_at) ? &run.input(s.zero_at) : nullptr, s.w_signed,
                      s.outputs());
  std::byte* packed = run.scratch() + s.packed_at;
  pack(s, run.data<uint8_t>(s.w_at), room, packed);
  return {s, x_zero, packed, room};
}

void run_depthwise_bytes(const Job& job, const uint8_t* x) {
  const QConvState& s = job.s;
  const ConvGeometry& g = s.shape;
  const int64_t pixels = g.out_plane(), flat = (g.out[1] - 1) * s.image.columns + g.out[2];
  const auto* weights = reinterpret_cast<const float*>(job.packed);
  constexpr int64_t kSlack = 256;
  parallel(g.batch * g.groups, std::max<int64_t>(1, 16384 / (pixels * g.taps())),
           [&](int64_t begin, int64_t end) {
             const int64_t plane = std::max(s.image.plane, g.in_plane());
             float* image = thread_floats(1, static_cast<size_t>(plane + kSlack));
             float* sums = thread_floats(2, static_cast<size_t>(flat + kSlack));
             float* input = thread_floats(3, static_cast<size_t>(g.in_plane()));
             std::fill_n(image + plane, kSlack, 0.0f);
             std::vector<int32_t> row(static_cast<size_t>(g.out[2]));
             const uint8_t flip = s.x_signed ? 0x80 : 0;
             for (int64_t task = begin; task < end; ++task) {
               const uint8_t* from = x + task * g.in_plane();
               for (int64_t i = 0; i < g.in_plane(); ++i)
                 input[i] = static_cast<float>((from[i] ^ flip) - job.x_zero);
               if (s.image.copy)
                 split_image(g, s.image, input, 0, image);
               else
                 std::copy_n(input, g.in_plane(), image);
               for (int64_t m = 0; m < g.out_channels; ++m) {
                 const int64_t channel = task % g.groups * g.out_channels + m;
                 for (int64_t d = 0; d < g.out[0]; ++d) {
                   correlate_flat(image + d * g.stride[0] * s.image.slice, s.image.taps.data(),
                                  weights + channel * g.taps(), g.taps(), flat, sums);
                   for (int64_t r = 0; r < g.out[1]; ++r) {
                     for (int64_t c = 0; c < g.out[2]; ++c)
                       row[static_cast<size_t>(c)] =
                           static_cast<int32_t>(sums[r * s.image.columns + c]);
                     QFinish finish = job.finish;
                     auto* out = static_cast<std::byte*>(finish.out);
                     finish.out = out + task / g.groups * s.image_bytes();
                     q_finish(finish, row.data(), g.out[2], channel, 1,
                              (d * g.out[1] + r) * g.out[2], g.out[2]);
                   }
                 }
               }
             }
           });
}

void run_panels(const Job& job, const uint8_t* x, int64_t n, uint8_t* images) {
  const QConvState& s = job.s;
  const ConvGeometry& g = s.shape;
  const QTiles& tiles = q_tiles();
  const int64_t channels = g.groups * g.in_channels, pixels = g.out_plane(), depth = g.depth();
  const uint8_t* image = x + n * channels * g.in_plane();
  const bool copied = s.image.copy || s.x_signed;
  if (copied) {
    parallel(channels, std::max<int64_t>(1, 16384 / g.in_plane()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        split_bytes(g, s.image, image + c * g.in_plane(), s.x_signed ? 0x80 : 0,
                    static_cast<uint8_t>(job.x_zero), images + c * s.image.plane);
    });
    image = images;
  }
  const int64_t plane = copied ? s.image.plane : g.in_plane();
  const int64_t width = tiles.panel, groups = tiles.groups_of(depth);
  const int64_t panels = (pixels + width - 1) / width, lda = q_row_bytes(depth);
  const int tile_rows = tiles.tile_rows(g.out_channels);
  const int64_t work = width * depth * g.out_channels;
  parallel(
      g.groups * panels, std::max<int64_t>(1, 400'000 / work), [&](int64_t begin, int64_t end) {
        auto* panel =
            reinterpret_cast<std::byte*>(thread_floats(1, static_cast<size_t>(groups * width)));
        auto* rows = reinterpret_cast<uint8_t*>(
            thread_floats(2, static_cast<size_t>(depth * width / 4 + 16)));
        alignas(64) int32_t sums[kMaxQRows * 32];
        int32_t seen[kMaxQPanel];  // sums of what each pixel sees
        PixelRun runs[64];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t group = task / panels, first = task % panels * width;
          const uint8_t* source = image + group * g.in_channels * plane;
          const int64_t count = find_runs(g, s.image, first, std::min(pixels, first + width), runs);
          const bool whole = count == 1 && runs[0].count == width && g.taps() == 1;
          if (whole) {
            q_interleave(source + runs[0].from, plane, depth, false, panel);
          } else {
            uint8_t* to = rows;
            for (int64_t k = 0; k < depth; ++k, to += width)
              for (int64_t r = 0; r < count; ++r)
                std::memcpy(to + runs[r].to,
                            source + s.offsets[static_cast<size_t>(k)] + runs[r].from,
                            static_cast<size_t>(runs[r].count));
            q_interleave(rows, width, depth, false, panel);
          }
          QFinish finish = job.finish;
          finish.out = static_cast<std::byte*>(finish.out) + n * s.image_bytes() +
                       first * static_cast<int64_t>(bytes_of(s.out_type));
          if (!job.zeros.empty()) {
            std::fill_n(seen, width, 0);
            const uint8_t* from = whole ? source + runs[0].from : rows;
            for (int64_t k = 0; k < depth; ++k, from += whole ? plane : width)
              for (int64_t c = 0; c < width; ++c) seen[c] += from[c];
            finish.row_sum = job.zeros.data();
            finish.zero = seen;
          }
          for (int64_t r = 0; r < g.out_channels; r += tile_rows) {
            const int64_t height = std::min<int64_t>(tile_rows, g.out_channels - r);
            const int64_t row = group * g.out_channels + r;
            tiles.signed_rows[height]({job.packed + row * lda, lda, panel, groups, sums, width});
            q_finish(finish, sums, width, row, height, 0, std::min(width, pixels - first));
          }
        }
      });
}

Status run_sums(KernelRun& run, Job& job, Tensor& y, uint8_t* images) {
  const QConvState& s = job.s;
  job.finish.out = y.data<std::byte>();
  job.finish.ldo = s.shape.out_plane();
  const uint8_t* x = run.data<uint8_t>(kX);
  if (s.depthwise) {
    run_depthwise_bytes(job, x);
    return ok();
  }
  for (int64_t n = 0; n < s.shape.batch; ++n) run_panels(job, x, n, images);
  return ok();
}

Status run_qconv(KernelRun& run) {
  const auto& s = run.state<QConvState>();
  TRY(Tensor * y, run.output(0, s.out_type, s.output));
  const int64_t outputs = s.outputs();
  auto* scales = reinterpret_cast<float*>(run.scratch());
  auto* add = reinterpret_cast<int32_t*>(scales + outputs);
  auto* images = reinterpret_cast<uint8_t*>(add + outputs + 16);
  const int32_t x_zero = first_code(run.input(kXZero)) + (s.x_signed ? 128 : 0);
  std::vector<int32_t> zeros;
  Job job = job_of(run, x_zero, zeros);
  const Tensor& w_scale = run.input(kWScale);
  const double factor = static_cast<double>(run.data<float>(kXScale)[0]) /
                        static_cast<double>(run.data<float>(kYScale)[0]);
  for (int64_t i = 0; i < outputs; ++i) {
    const float scale = w_scale.data<float>()[w_scale.size() == 1 ? 0 : i];
    scales[i] = static_cast<float>(factor * static_cast<double>(scale));
    const int32_t bias = run.has_input(kBias) ? run.data<int32_t>(kBias)[i] : 0;
    // Sums wrap, as the reference's do.
    add[i] =
        static_cast<int32_t>(static_cast<uint32_t>(bias) + static_cast<uint32_t>(job.zero_term(i)));
  }
  job.finish.row_add = add;
  job.finish.row_scale = scales;
  job.finish.kind = QFinish::Kind::kByte;
  job.finish.zero_point = first_code(run.input(kYZero));
  job.finish.least = s.out_type == DType::kInt8 ? -128 : 0;
  job.finish.greatest = s.out_type == DType::kInt8 ? 127 : 255;
  return run_sums(run, job, *y, images);
}

Status run_conv_integer(KernelRun& run) {
  const auto& s = run.state<QConvState>();
  TRY(Tensor * y, run.output(0, s.out_type, s.output));
  auto* add = reinterpret_cast<int32_t*>(run.scratch());
  const int32_t x_zero =
      (run.has_input(kSumsXZero) ? first_code(run.input(kSumsXZero)) : 0) + (s.x_signed ? 128 : 0);
  std::vector<int32_t> zeros;
  Job job = job_of(run, x_zero, zeros);
  for (int64_t i = 0; i < s.outputs(); ++i) add[i] = job.zero_term(i);
  job.finish.row_add = add;
  job.finish.kind = QFinish::Kind::kInt32;
  return run_sums(run, job, *y, reinterpret_cast<uint8_t*>(add + s.outputs() + 16));
}

}  // namespace

KERNEL(qlinear_conv) = {
    .name = "qlinear_conv",
    .op = "QLinearConv",
    .supports = supports_qconv,
    .prepare = prepare_qconv,
    .run = run_qconv,
};
KERNEL(conv_integer) = {
    .name = "conv_integer",
    .op = "ConvInteger",
    .supports = supports_conv_integer,
    .prepare = prepare_conv_integer,
    .run = run_conv_integer,
};

}  // namespace tombolo
