// Softmax and the normalisations, over floats of 16 and 32 bits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/norm/layer_rows.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/tensor/turned_blocks.h"

namespace tombolo {
namespace {

bool read_axis(const KernelQuery& query, int64_t fallback, int64_t& axis) {
  axis = query.attributes.get_int("axis", fallback);
  const auto rank = static_cast<int64_t>(query.dims(0).size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank;
}

// Softmax, LogSoftmax.

struct SoftmaxState final : KernelState {
  int64_t outer = 1, length = 1, inner = 1;
  bool logarithm = false;
};

bool supports_softmax(const KernelQuery& query) {
  int64_t axis;
  return active_isa() != Isa::kScalar && query.opset >= 13 && is_f32_or_short(query.dtype(0)) &&
         element_count(query.dims(0)) >= 1 && read_axis(query, -1, axis);
}

template <bool kLogarithm>
Result<std::unique_ptr<KernelState>> prepare_softmax(const PrepareContext& context) {
  auto state = std::make_unique<SoftmaxState>();
  int64_t axis = 0;
  read_axis(context, -1, axis);
  const auto at = static_cast<size_t>(axis);
  state->outer = element_count(context.dims(0).first(at));
  state->length = context.dims(0)[at];
  state->inner = element_count(context.dims(0).subspan(at + 1));
  state->logarithm = kLogarithm;
  return state;
}

/// Fewer columns than these would leave most of a vector empty: they are turned into rows.
constexpr int64_t kFewColumns = 12;

/// [rows, columns] to [columns, rows].
void transpose_floats(const float* x, float* y, int64_t rows, int64_t columns) {
  transpose_tile(reinterpret_cast<const std::byte*>(x), columns, reinterpret_cast<std::byte*>(y),
                 rows, rows, columns, sizeof(float));
}

/// How many blocks of short lines, or of few columns, are worked on as columns: many have their
/// sums in vectors at once, where one has what lanes hold added up. 0: that takes no less time with
/// what there is to turn.
int64_t blocks_as_columns(const SoftmaxState& s) {
  if (s.inner == 1 && s.length >= (vector_floats() >= 16 ? 40 : 12)) return 0;
  const int64_t together = blocks_to_turn(s.outer, s.length, s.inner, sizeof(float));
  return together >= 16 ? together : 0;
}

/// Blocks of [length, inner] one behind the other, of few columns.
void softmax_blocks(const float* x, float* y, int64_t blocks, const SoftmaxState& s) {
  if (const int64_t together = blocks_as_columns(s); together != 0)
    return work_on_turned(x, y, blocks, s.length * s.inner, s.inner, together,
                          [&](float* lines, int64_t width) {
                            softmax_columns(lines, lines, s.length, width, width, s.logarithm);
                          });
  if (s.inner == 1) return softmax_rows(x, y, blocks, s.length, s.logarithm);
  const int64_t size = s.length * s.inner;
  float* const rows = thread_floats(1, static_cast<size_t>(size));
  for (int64_t i = 0; i < blocks; ++i, x += size, y += size) {
    transpose_floats(x, rows, s.length, s.inner);
    softmax_rows(rows, rows, s.inner, s.length, s.logarithm);
    transpose_floats(rows, y, s.inner, s.length);
  }
}

/// Columns [column, column + width) of one block, which begins at element `at`.
void softmax_strip(const Tensor& x, Tensor& y, int64_t at, int64_t width, const SoftmaxState& s) {
  if (x.dtype() == DType::kFloat32)
    return softmax_columns(x.data<float>() + at, y.data<float>() + at, s.length, s.inner, width,
                           s.logarithm);
  float* const room = thread_floats(2, static_cast<size_t>(s.length * width));
  for (int64_t i = 0; i < s.length; ++i) load_floats(x, at + i * s.inner, width, room + i * width);
  softmax_columns(room, room, s.length, width, width, s.logarithm);
  for (int64_t i = 0; i < s.length; ++i) store_floats(room + i * width, width, y, at + i * s.inner);
}

Status run_softmax(KernelRun& run) {
  const auto& s = run.state<SoftmaxState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  if (s.inner < kFewColumns) {
    const int64_t size = s.length * s.inner;
    run.parallel_for(s.outer, grain_of(size), [&](int64_t begin, int64_t end) {
      // Floats of 16 bits are widened as many at a time as stay near.
      constexpr int64_t kNear = 4096;
      const bool is_short = x.dtype() != DType::kFloat32;
      const int64_t group = is_short ? std::max<int64_t>(1, kNear / size) : end - begin;
      float* const room = is_short ? thread_floats(2, static_cast<size_t>(group * size)) : nullptr;
      for (int64_t i = begin; i < end; i += group) {
        const int64_t count = std::min(group, end - i), n = count * size, at = i * size;
        float* const to = floats_to_fill(*y, at, room);
        softmax_blocks(load_floats(x, at, n, room), to, count, s);
        store_floats(to, n, *y, at);
      }
    });
    return ok();
  }
  // Wide strips read long pieces of each row; narrow ones where threads would find too few.
  constexpr int64_t kNarrow = 64, kMany = 16;
  const int64_t kept = std::max(kNarrow, (int64_t{1} << 16) / s.length / kNarrow * kNarrow);
  const int64_t width =
      s.outer * s.inner < kMany * kSoftmaxColumns ? kNarrow : std::min(kept, kSoftmaxColumns);
  const int64_t columns = (s.inner + width - 1) / width;
  run.parallel_for(s.outer * columns, grain_of(s.length * std::min(width, s.inner)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % columns * width;
                       softmax_strip(x, *y, task / columns * s.length * s.inner + column,
                                     std::min(width, s.inner - column), s);
                     }
                   });
  return ok();
}

// LayerNormalization, RMSNormalization and, as ONNX Runtime names it, SimplifiedLayerNormalization.

struct NormState final : KernelState {
  int64_t rows = 1, length = 1;
  float epsilon = 1e-5f;
  bool rms = false;
  Dims kept;  ///< of the moments that are given out
};

template <bool kRms>
bool supports_norm(const KernelQuery& query) {
  int64_t axis;
  if (active_isa() == Isa::kScalar || !is_f32_or_short(query.dtype(0)) || !query.has_input(1) ||
      !read_axis(query, -1, axis) || element_count(query.dims(0)) < 1)
    return false;
  const Dims normalized(query.dims(0).subspan(static_cast<size_t>(axis)));
  for (size_t i = 1; i < query.inputs.size(); ++i)
    if (query.has_input(i) &&
        (Dims(query.dims(i)) != normalized || query.dtype(i) != query.dtype(0)))
      return false;
  return query.attributes.get_int("stash_type", 1) == 1;
}

template <bool kRms>
Result<std::unique_ptr<KernelState>> prepare_norm(const PrepareContext& context) {
  auto state = std::make_unique<NormState>();
  int64_t axis = 0;
  read_axis(context, -1, axis);
  state->rows = element_count(context.dims(0).first(static_cast<size_t>(axis)));
  state->length = element_count(context.dims(0).subspan(static_cast<size_t>(axis)));
  state->epsilon = context.attributes.get_float("epsilon", 1e-5f);
  state->rms = kRms;
  state->kept = Dims(context.dims(0).first(static_cast<size_t>(axis)));
  state->kept.resize(static_cast<uint32_t>(context.dims(0).size()), 1);
  return state;
}

Status run_norm(KernelRun& run) {
  const auto& s = run.state<NormState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  // Without a mean the inverse deviation is the only moment.
  float *means = nullptr, *inverses = nullptr;
  if (!s.rms && run.wants_output(1)) {
    TRY(Tensor * mean, run.output(1, DType::kFloat32, s.kept));
    means = mean->data<float>();
  }
  if (const size_t at = s.rms ? 1 : 2; run.wants_output(at)) {
    TRY(Tensor * inverse, run.output(at, DType::kFloat32, s.kept));
    inverses = inverse->data<float>();
  }
  // Scale and bias as floats once, whatever their type.
  std::vector<float> wide[2];
  const float* factors[2] = {nullptr, nullptr};
  for (size_t i = 0; i < 2; ++i) {
    if (!run.has_input(i + 1)) continue;
    if (x.dtype() != DType::kFloat32) wide[i].resize(static_cast<size_t>(s.length));
    factors[i] = load_floats(run.input(i + 1), 0, s.length, wide[i].data());
  }
  constexpr int64_t kConverted = 1 << 12;  // floats that elements of 16 bits become at a time
  const int64_t together =
      x.dtype() == DType::kFloat32 ? s.rows : std::max<int64_t>(1, kConverted / s.length);
  run.parallel_for(s.rows, grain_of(s.length), [&](int64_t begin, int64_t end) {
    float* room = x.dtype() == DType::kFloat32
                      ? nullptr
                      : thread_floats(1, static_cast<size_t>(together * s.length));
    for (int64_t i = begin; i < end; i += together) {
      const int64_t rows = std::min(together, end - i), at = i * s.length;
      float* to = floats_to_fill(*y, at, room);
      normalize_rows(s.rms, load_floats(x, at, rows * s.length, room), rows, s.length, s.epsilon,
                     factors[0], factors[1], to, means != nullptr ? means + i : nullptr,
                     inverses != nullptr ? inverses + i : nullptr);
      store_floats(to, rows * s.length, *y, at);
    }
  });
  return ok();
}

// InstanceNormalization, GroupNormalization: a scale and a bias a channel.

struct GroupState final : KernelState {
  int64_t planes = 1, plane = 1, group = 1, channels = 1;  ///< group: channels of one
  float epsilon = 1e-5f;
};

bool supports_group_norm(const KernelQuery& query, int64_t groups) {
  if (active_isa() == Isa::kScalar || query.inputs.size() != 3 || query.dims(0).size() < 3 ||
      element_count(query.dims(0)) < 1 || groups < 1)
    return false;
  const int64_t channels = query.dims(0)[1];
  if (channels % groups != 0) return false;
  for (size_t i = 0; i < 3; ++i)
    if (query.dtype(i) != DType::kFloat32) return false;
  for (size_t i = 1; i < 3; ++i)
    if (query.dims(i).size() != 1 || query.dims(i)[0] != channels) return false;
  return true;
}
bool supports_instance_norm(const KernelQuery& query) {
  return query.opset >= 6 && query.dims(0).size() >= 3 &&
         supports_group_norm(query, query.dims(0)[1]);
}
bool supports_groups(const KernelQuery& query) {
  return query.opset >= 21 && query.attributes.get_int("stash_type", 1) == 1 &&
         supports_group_norm(query, query.attributes.get_int("num_groups", 0));
}

Result<std::unique_ptr<KernelState>> prepare_group_norm(const PrepareContext& context) {
  auto state = std::make_unique<GroupState>();
  const auto dims = context.dims(0);
  state->channels = dims[1];
  state->planes = dims[0] * dims[1];
  state->plane = element_count(dims.subspan(2));
  state->group = dims[1] / context.attributes.get_int("num_groups", dims[1]);
  state->epsilon = context.attributes.get_float("epsilon", 1e-5f);
  return state;
}

Status run_group_norm(KernelRun& run) {
  const auto& s = run.state<GroupState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const float *from = x.data<float>(), *scale = run.data<float>(1), *bias = run.data<float>(2);
  float* to = y->data<float>();
  const int64_t size = s.group * s.plane;
  constexpr int64_t kShortPlane = 128;
  if (s.group == 1 && s.plane <= kShortPlane) {
    run.parallel_for(s.planes, grain_of(size), [&](int64_t begin, int64_t end) {
      normalize_planes(from + begin * size, begin, end, s.plane, s.epsilon, scale, bias, s.channels,
                       to + begin * size);
    });
    return ok();
  }
  run.parallel_for(s.planes / s.group, grain_of(size), [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const RowMoments moments = row_moments(from + g * size, size, s.epsilon);
      for (int64_t c = 0; c < s.group; ++c) {
        const int64_t channel = (g * s.group + c) % s.channels, at = g * size + c * s.plane;
        normalize_plane(from + at, to + at, s.plane, moments, scale[channel], bias[channel]);
      }
    }
  });
  return ok();
}

// BatchNormalization with given statistics: one multiplication and addition a channel.

bool supports_batch_norm(const KernelQuery& query) {
  if (active_isa() == Isa::kScalar || query.opset < 14 || query.inputs.size() != 5 ||
      query.dims(0).size() < 2 || query.attributes.get_int("training_mode", 0) != 0)
    return false;
  for (size_t i = 0; i < 5; ++i)
    if (query.dtype(i) != DType::kFloat32) return false;
  for (size_t i = 1; i < 5; ++i)
    if (query.dims(i).size() != 1 || query.dims(i)[0] != query.dims(0)[1]) return false;
  return !query.wants_output(1) && !query.wants_output(2);
}

struct BatchState final : KernelState {
  float epsilon = 1e-5f;
};
Result<std::unique_ptr<KernelState>> prepare_batch_norm(const PrepareContext& context) {
  auto state = std::make_unique<BatchState>();
  state->epsilon = context.attributes.get_float("epsilon", 1e-5f);
  return state;
}

Status run_batch_norm(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  if (x.size() == 0) return ok();
  const int64_t channels = x.dim(1), planes = x.dim(0) * channels, plane = x.size() / planes;
  const double epsilon = static_cast<double>(run.state<BatchState>().epsilon);
  const float* parameters[4];
  for (size_t i = 0; i < 4; ++i) parameters[i] = run.data<float>(i + 1);
  std::vector<float> scale(static_cast<size_t>(channels)), bias(scale.size());
  for (size_t c = 0; c < scale.size(); ++c) {
    const double factor = static_cast<double>(parameters[0][c]) /
                          std::sqrt(static_cast<double>(parameters[3][c]) + epsilon);
    scale[c] = static_cast<float>(factor);
    bias[c] = static_cast<float>(static_cast<double>(parameters[1][c]) -
                                 static_cast<double>(parameters[2][c]) * factor);
  }
  // Short planes: whole images at a time, and several small ones, by a scale and a bias for each
  // element.
  constexpr int64_t kShortPlane = 32, kFew = 4, kNear = 1 << 14, kLong = 512;
  const int64_t image = channels * plane;
  if (plane == 1 || (plane < kShortPlane && x.dim(0) >= kFew && image <= kNear)) {
    const int64_t together = std::clamp<int64_t>(kLong / image, 1, x.dim(0)),
                  row = together * image;
    for (std::vector<float>* const numbers : {&scale, &bias}) {
      std::vector<float> each(static_cast<size_t>(row));
      float* to = each.data();
      for (const float number : *numbers) to = std::fill_n(to, plane, number);
      for (; to < each.data() + row; to += image) std::copy_n(each.data(), image, to);
      *numbers = std::move(each);
    }
    run.parallel_for(
        (x.dim(0) + together - 1) / together, grain_of(row), [&](int64_t begin, int64_t end) {
          for (int64_t at = begin * row; at < std::min(end * row, x.size()); at += row)
            normalize_row(x.data<float>() + at, y->data<float>() + at, std::min(row, x.size() - at),
                          {0, 1}, scale.data(), bias.data());
        });
    return ok();
  }
  run.parallel_for(planes, grain_of(plane), [&](int64_t begin, int64_t end) {
    UnaryFn* affine = unary_fn(Unary::kAffine);
    for (int64_t p = begin; p < end; ++p) {
      const auto c = static_cast<size_t>(p % channels);
      affine(x.data<float>() + p * plane, y->data<float>() + p * plane, plane, scale[c], bias[c]);
    }
  });
  return ok();
}

}  // namespace

KERNEL(softmax) = {
    .name = "softmax",
    .op = "Softmax",
    .supports = supports_softmax,
    .prepare = prepare_softmax<false>,
    .run = run_softmax,
    .in_place = 1,
};
KERNEL(log_softmax) = {
    .name = "log_softmax",
    .op = "LogSoftmax",
    .supports = supports_softmax,
    .prepare = prepare_softmax<true>,
    .run = run_softmax,
    .in_place = 1,
};
KERNEL(layer_normalization) = {
    .name = "layer_normalization",
    .op = "LayerNormalization",
    .supports = supports_norm<false>,
    .prepare = prepare_norm<false>,
    .run = run_norm,
    .in_place = 1,
};
KERNEL(rms_normalization) = {
    .name = "rms_normalization",
    .op = "RMSNormalization",
    .supports = supports_norm<true>,
    .prepare = prepare_norm<true>,
    .run = run_norm,
    .in_place = 1,
};
KERNEL(simplified_layer_normalization) = {
    .name = "rms_normalization",
    .op = "SimplifiedLayerNormalization",
    .supports = supports_norm<true>,
    .prepare = prepare_norm<true>,
    .run = run_norm,
    .in_place = 1,
};
KERNEL(instance_normalization) = {
    .name = "instance_normalization",
    .op = "InstanceNormalization",
    .supports = supports_instance_norm,
    .prepare = prepare_group_norm,
    .run = run_group_norm,
    .in_place = 1,
};
KERNEL(group_normalization) = {
    .name = "group_normalization",
    .op = "GroupNormalization",
    .supports = supports_groups,
    .prepare = prepare_group_norm,
    .run = run_group_norm,
    .in_place = 1,
};
KERNEL(batch_normalization) = {
    .name = "batch_normalization",
    .op = "BatchNormalization",
    .supports = supports_batch_norm,
    .prepare = prepare_batch_norm,
    .run = run_batch_norm,
    .in_place = 1,
};

}  // namespace tombolo
