// QLinearConv with channels last: of com.microsoft, and of ai.tombolo with limits and a residual;
// QLinearConvTranspose of ai.tombolo; ConvIntegerToFloat of ai.tombolo, whose result has channels
// first.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/image/channels_last.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/codes.h"
#include "runtime/kernels/quant/qconv_last.h"
#include "runtime/kernels/quant/qconv_transposed.h"
#include "runtime/kernels/quant/weight_zeros.h"

namespace tombolo {
namespace {

// ai.tombolo: what is added to y, its scale and zero point, and those of the sum.
constexpr size_t kZ = 9, kZScale = 10, kZZero = 11, kSumScale = 12, kSumZero = 13;

// ConvIntegerToFloat.
constexpr size_t kIntegerW = 1, kIntegerXScale = 2, kIntegerWScale = 3, kIntegerXZero = 4,
                 kIntegerWZero = 5, kIntegerBias = 6;

/// What both operators know of their sums.
struct SumState : KernelState {
  QConvPlan plan;
  const std::byte* packed = nullptr;  ///< weights, then their sums
  std::vector<int32_t> zeros;         ///< of each output's weights, see weight_zeros()
  Dims output;

  /// Room for a number of each output, whole panels of it.
  int64_t columns() const { return (plan.outputs() + 63) / 32 * 32; }
  /// Bytes for `columns()` scales and addends, and for the plan behind them.
  size_t scratch_of_sums() const {
    return static_cast<size_t>(plan.outputs() + 64) * 8 + 128 + plan.scratch_bytes();
  }
  /// What is added to an output's sum for the zero point of x, modulo 2^32.
  uint32_t zero_term(int32_t x_zero, int64_t output) const {
    const auto* sums =
        reinterpret_cast<const int32_t*>(packed + (plan.weight_bytes + 63) / 64 * 64);
    return -static_cast<uint32_t>(product_zero(plan, x_zero)) * static_cast<uint32_t>(sums[output]);
  }
};

Dims dims_channels_last(const KernelQuery& q, const ConvGeometry& shape, int64_t outputs) {
  Dims dims = {shape.batch};
  for (int axis = 5 - static_cast<int>(q.dims(kX).size()); axis < 3; ++axis)
    dims.push_back(shape.out_size(axis));
  dims.push_back(outputs);
  return dims;
}

struct LastState final : SumState {
  bool has_rest = false;
  CodeLimits limits;  ///< of what is written last
  /// Of each output, where all that they depend on is constant: what its sum is multiplied by, and
  /// what is added to it first.
  std::vector<float> scales;
  std::vector<int32_t> adds;
};

/// What an output's sum is multiplied by. input(i) of the node, null for a bias that is not there.
template <typename Input>
float scale_of(Input&& input, int64_t output) {
  const Tensor& w_scale = *input(kWScale);
  const double factor = static_cast<double>(input(kXScale)->template data<float>()[0]) /
                        static_cast<double>(input(kYScale)->template data<float>()[0]);
  const float scale = w_scale.data<float>()[w_scale.size() == 1 ? 0 : output];
  return static_cast<float>(factor * static_cast<double>(scale));
}
/// What is added to it first: sums wrap, as the reference's do.
template <typename Input>
int32_t addend_of(Input&& input, uint32_t zero_term, int64_t output) {
  const Tensor* bias = input(kBias);
  return static_cast<int32_t>(
      static_cast<uint32_t>(bias != nullptr ? bias->template data<int32_t>()[output] : 0) +
      zero_term);
}

template <typename Input>
void column_terms(const LastState& s, Input&& input, float* scales, int32_t* adds) {
  const int64_t outputs = s.plan.outputs();
  const int32_t zero = first_code(*input(kXZero));
  for (int64_t i = 0; i < outputs; ++i) {
    const float scale = scale_of(input, i);
    const int32_t add = addend_of(input, s.zero_term(zero, i), i);
    for (int64_t place = i; place < s.plan.places(); place += outputs) {
      const int64_t at =
          s.plan.depthwise ? q_depthwise_place(place, s.plan.places(), s.plan.zeros) : place;
      scales[at] = scale;
      adds[at] = add;
    }
  }
}

bool one_scale(const KernelQuery& q, size_t scale, size_t zero) {
  return q.has_input(scale) && q.has_input(zero) && q.dtype(scale) == DType::kFloat32 &&
         is_byte(q.dtype(zero)) && element_count(q.dims(scale)) == 1 &&
         element_count(q.dims(zero)) == 1;
}

/// The shape of x as if it had its channels first; nothing but for images, lines and volumes.
std::optional<Dims> dims_channels_first(const KernelQuery& q) {
  const auto x = q.dims(kX);
  if (x.size() < 3 || x.size() > 5) return std::nullopt;
  Dims first = {x[0], x.back()};
  for (size_t i = 1; i + 1 < x.size(); ++i) first.push_back(x[i]);
  return first;
}

std::optional<ConvGeometry> geometry(const KernelQuery& q, size_t w_at, LiveTaps& live) {
  const auto first = dims_channels_first(q);
  const auto w = q.dims(w_at);
  if (!first || w.size() != first->size()) return std::nullopt;
  return read_conv_geometry(q.attributes, {first->begin(), first->size()}, w, &live);
}

/// Constant weights of bytes with constant zero points.
bool constant_weights(const KernelQuery& q, size_t w_at, size_t scale_at, size_t zero_at) {
  return is_byte(q.dtype(kX)) && is_byte(q.dtype(w_at)) && q.dtype(zero_at) == q.dtype(w_at) &&
         q.dtype(scale_at) == DType::kFloat32 && q.constant(w_at) != nullptr &&
         q.constant(zero_at) != nullptr && element_count(q.dims(kX)) >= 1;
}
/// Scales and zero points of one number or one an output.
bool fit_outputs(const KernelQuery& q, size_t scale_at, size_t zero_at, int64_t outputs) {
  for (const size_t i : {scale_at, zero_at}) {
    const int64_t size = element_count(q.dims(i));
    if (q.dims(i).size() > 1 || (size != 1 && size != outputs)) return false;
  }
  return true;
}

bool supports_sums(const KernelQuery& q, size_t w_at, size_t scale_at, size_t zero_at) {
  if (!constant_weights(q, w_at, scale_at, zero_at)) return false;
  LiveTaps live;
  const auto shape = geometry(q, w_at, live);
  if (!shape || shape->depth() > 1 << 16) return false;
  // Channels one by one have a loop of their own, for images.
  if (q.dims(kX).size() == 5 && shape->groups > 1 && shape->in_channels == 1) return false;
  return fit_outputs(q, scale_at, zero_at, shape->groups * shape->out_channels);
}

/// Scales and zero points of x and y are one number each, a bias has one for each output.
bool supports_codes(const KernelQuery& q, int64_t outputs) {
  return one_scale(q, kXScale, kXZero) && one_scale(q, kYScale, kYZero) &&
         q.dtype(kXZero) == q.dtype(kX) &&
         (!q.has_input(kBias) || (q.dtype(kBias) == DType::kInt32 && q.dims(kBias).size() == 1 &&
                                  q.dims(kBias)[0] == outputs));
}

bool supports_last(const KernelQuery& q) {
  const bool own = q.node.domain() == "ai.tombolo";
  if (active_isa() == Isa::kScalar || q.inputs.size() < 8 ||
      (!own && q.attributes.get_int("channels_last", 0) == 0))
    return false;
  if (!supports_sums(q, kW, kWScale, kWZero) || !supports_codes(q, q.dims(kW)[0])) return false;
  if (!q.has_input(kZ)) return true;
  return own && is_byte(q.dtype(kZ)) && one_scale(q, kZScale, kZZero) &&
         one_scale(q, kSumScale, kSumZero) && q.dtype(kZZero) == q.dtype(kZ);
}

/// Groups of fewer outputs than a panel has columns: as many as fill one are one group, whose
/// weights are 0 where a group does not see the inputs of another. The instructions are the same,
/// and rows of inputs are longer.
int64_t joined_groups(const ConvGeometry& shape, const QTiles& tiles) {
  if (shape.groups == 1 || (shape.in_channels == 1 && shape.out_channels == 1)) return 1;
  for (int64_t count = std::min(shape.groups, tiles.panel / shape.out_channels); count > 1; --count)
    if (shape.groups % count == 0) return count;
  return 1;
}

/// Weights [M, C / group, taps] of `shape` for `joined` groups at a time: what is new has the code
/// of the output's zero point, which `zeros` has as weight_zeros() gives it.
std::vector<uint8_t> join_group_weights(const ConvGeometry& shape, int64_t joined, const uint8_t* w,
                                        const std::vector<int32_t>& zeros, bool w_unsigned) {
  const int64_t filter = shape.in_channels * shape.taps();
  const int64_t outputs = shape.groups * shape.out_channels;
  std::vector<uint8_t> all(static_cast<size_t>(outputs * joined * filter));
  for (int64_t m = 0; m < outputs; ++m) {
    uint8_t* to = all.data() + m * joined * filter;
    const int32_t zero = zeros.empty() ? 0 : zeros[static_cast<size_t>(m)];
    std::memset(to, static_cast<uint8_t>(zero) ^ (w_unsigned ? 0x80 : 0),
                static_cast<size_t>(joined * filter));
    std::memcpy(to + m / shape.out_channels % joined * filter, w + m * filter,
                static_cast<size_t>(filter));
  }
  return all;
}

/// Plans the sums and packs the weights; gives the geometry of the operator. `images`: whether the
/// plan is for one image after the other.
Result<ConvGeometry> prepare_sums(const PrepareContext& context, size_t w_at, size_t zero_at,
                                  bool rest, bool images, SumState& s) {
  LiveTaps live;
  const ConvGeometry given = *geometry(context, w_at, live);
  ConvGeometry shape = given;
  if (images) shape.batch = 1;
  const uint8_t* w = context.constant(w_at)->data<uint8_t>();
  std::vector<uint8_t> room;
  if (!live.whole()) {
    room = live.weights(w, shape.groups * shape.out_channels * shape.in_channels);
    w = room.data();
  }
  const bool w_unsigned = context.dtype(w_at) == DType::kUInt8;
  s.zeros = weight_zeros(context.constant(zero_at), !w_unsigned, shape.groups * shape.out_channels);
  if (const int64_t joined = joined_groups(shape, q_tiles()); joined > 1) {
    room = join_group_weights(shape, joined, w, s.zeros, w_unsigned);
    w = room.data();
    shape.groups /= joined;
    shape.in_channels *= joined;
    shape.out_channels *= joined;
  }
  // Of several groups the first one stands for all.
  const int64_t depth = shape.taps() * shape.in_channels;
  const QTiles& tiles = q_constant_tiles(w, 1, depth, depth, shape.out_channels, w_unsigned,
                                         shape.batch * shape.out_plane());
  s.plan = plan_qconv_last(shape, context.dtype(kX) == DType::kInt8, rest, tiles, w, w_unsigned,
                           !s.zeros.empty());
  q_plan_bands(s.plan, context.options.threads);
  const size_t weights = (s.plan.weight_bytes + 63) / 64 * 64;
  const std::string key =
      std::string("qconv_last/") + tiles.name + "/" + std::to_string(shape.groups) +
      (s.plan.run != shape.in_channels ? "/rows" : "/taps") +
      (s.plan.depthwise
           ? "/depthwise/" + std::string(name_of(active_isa())) + "/" + std::to_string(s.plan.fold)
       : s.plan.winograd ? "/winograd/" + std::string(name_of(active_isa()))
                         : std::string()) +
      live.key() + weight_zeros_key(s.zeros);
  TRY(s.packed, context.packed(w_at, key, weights + static_cast<size_t>(s.plan.outputs() + 64) * 4,
                               [&](std::byte* target) {
                                 std::memset(target, 0, weights);
                                 pack_qconv_last(s.plan, w, w_unsigned,
                                                 s.zeros.empty() ? nullptr : s.zeros.data(), target,
                                                 reinterpret_cast<int32_t*>(target + weights));
                               }));
  return given;
}

Result<std::unique_ptr<KernelState>> prepare_last(const PrepareContext& context) {
  auto state = std::make_unique<LastState>();
  LastState& s = *state;
  s.has_rest = context.has_input(kZ);
  TRY(const ConvGeometry shape, prepare_sums(context, kW, kWZero, s.has_rest, false, s));
  const int64_t outputs = s.plan.outputs();
  s.limits = read_limits(context, context.dtype(s.has_rest ? kSumZero : kYZero));
  s.output = dims_channels_last(context, shape, outputs);
  s.scratch_bytes = s.scratch_of_sums();
  for (const size_t i : {kXScale, kXZero, kWScale, kYScale, kBias})
    if (context.has_input(i) && context.constant(i) == nullptr) return state;
  s.scales.resize(static_cast<size_t>(outputs + 64));
  s.adds.resize(s.scales.size());
  Tensor copies[kBias + 1];
  column_terms(
      s,
      [&](size_t i) {
        return context.has_input(i) ? &context.aligned_constant(i, copies[i]) : nullptr;
      },
      s.scales.data(), s.adds.data());
  return state;
}

Status run_last(KernelRun& run) {
  const auto& s = run.state<LastState>();
  TRY(Tensor * y, run.output(0, s.limits.type, s.output));
  const int64_t outputs = s.plan.outputs();
  auto* scales = reinterpret_cast<float*>(run.scratch());
  auto* adds = reinterpret_cast<int32_t*>(scales + s.columns());
  auto* image = reinterpret_cast<std::byte*>(adds + s.columns());
  const bool known = !s.scales.empty();
  if (!known)
    column_terms(
        s, [&](size_t at) { return run.has_input(at) ? &run.input(at) : nullptr; }, scales, adds);
  QFinish finish;
  finish.kind = QFinish::Kind::kByte;
  finish.column_add = known ? s.adds.data() : adds;
  finish.column_scale = known ? s.scales.data() : scales;
  const auto range = [](DType type, int32_t& least, int32_t& greatest) {
    least = type == DType::kInt8 ? -128 : 0;
    greatest = type == DType::kInt8 ? 127 : 255;
  };
  finish.zero_point = first_code(run.input(kYZero));
  range(run.input(kYZero).dtype(), finish.least, finish.greatest);
  if (s.has_rest) {
    const Tensor& rest = run.input(kZ);
    const auto sum_scale = static_cast<double>(run.data<float>(kSumScale)[0]);
    finish.rest = rest.data<std::byte>();
    finish.rest_signed = rest.dtype() == DType::kInt8;
    finish.rest_zero = first_code(run.input(kZZero));
    finish.zero_point2 = first_code(run.input(kSumZero));
    finish.least2 = s.limits.low;
    finish.greatest2 = s.limits.high;
    finish.own = static_cast<float>(static_cast<double>(run.data<float>(kYScale)[0]) / sum_scale);
    finish.other = static_cast<float>(static_cast<double>(run.data<float>(kZScale)[0]) / sum_scale);
  } else {
    finish.least = s.limits.low;
    finish.greatest = s.limits.high;
  }
  if (!s.zeros.empty()) finish.zero = s.zeros.data();
  finish.out = y->data<std::byte>();
  finish.ldo = outputs;
  run_qconv_last(s.plan, run.data<uint8_t>(kX), static_cast<uint8_t>(first_code(run.input(kXZero))),
                 s.packed, finish, image);
  return ok();
}

/// QLinearConvTranspose with channels last.
struct TransposedBytes final : KernelState {
  QTransposedPlan plan;
  const std::byte* packed = nullptr;  ///< weights, then their sums, [phase][output]
  std::vector<int32_t> zeros;         ///< of each output's weights, see weight_zeros()
  Dims output;
  CodeLimits limits;

  int64_t columns() const { return (plan.outputs() + 63) / 32 * 32; }
  size_t weights() const { return (plan.weight_bytes + 63) / 64 * 64; }
};

std::optional<ConvGeometry> transposed_geometry(const KernelQuery& q) {
  const auto first = dims_channels_first(q);
  if (!first) return std::nullopt;
  return read_transposed_geometry(q.attributes, {first->begin(), first->size()}, q.dims(kW));
}

bool supports_transposed_bytes(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 8 ||
      q.attributes.get_int("channels_last", 0) == 0 || !constant_weights(q, kW, kWScale, kWZero))
    return false;
  const auto shape = transposed_geometry(q);
  if (!shape || !q_transposed_takes(*shape)) return false;
  const int64_t outputs = shape->groups * shape->out_channels;
  return fit_outputs(q, kWScale, kWZero, outputs) && supports_codes(q, outputs);
}

Result<std::unique_ptr<KernelState>> prepare_transposed_bytes(const PrepareContext& context) {
  auto state = std::make_unique<TransposedBytes>();
  TransposedBytes& s = *state;
  const ConvGeometry shape = *transposed_geometry(context);
  const bool w_unsigned = context.dtype(kW) == DType::kUInt8;
  const auto* w = context.constant(kW)->data<uint8_t>();
  // Of several groups and positions the first ones stand for all.
  const QTiles& tiles =
      q_constant_tiles(w, shape.out_channels * shape.taps(), shape.taps(), shape.in_channels,
                       shape.out_channels, w_unsigned, shape.batch * shape.out_plane());
  s.zeros = weight_zeros(context.constant(kWZero), !w_unsigned, shape.groups * shape.out_channels);
  s.plan = plan_qconv_transposed(shape, context.dtype(kX) == DType::kInt8, !s.zeros.empty(), tiles);
  s.limits = read_limits(context, context.dtype(kYZero));
  s.output = dims_channels_last(context, shape, s.plan.outputs());
  const auto phases = static_cast<int64_t>(s.plan.phases.size());
  s.scratch_bytes =
      static_cast<size_t>(s.columns() * (1 + phases)) * 4 + 128 + s.plan.scratch_bytes();
  std::string key =
      std::string("qconv_transposed/") + tiles.name + "/" + std::to_string(shape.groups);
  // What a phase is depends on these alone.
  for (int axis = 0; axis < 3; ++axis)
    for (const int64_t size : {shape.stride[axis], shape.dilation[axis], shape.pad[axis],
                               std::min(shape.stride[axis], shape.out[axis])})
      key += "/" + std::to_string(size);
  TRY(s.packed,
      context.packed(kW, key + weight_zeros_key(s.zeros),
                     s.weights() + static_cast<size_t>(phases * s.plan.outputs() + 64) * 4,
                     [&](std::byte* target) {
                       std::memset(target, 0, s.weights());
                       pack_qconv_transposed(s.plan, w, w_unsigned,
                                             s.zeros.empty() ? nullptr : s.zeros.data(), target,
                                             reinterpret_cast<int32_t*>(target + s.weights()));
                     }));
  return state;
}

Status run_transposed_bytes(KernelRun& run) {
  const auto& s = run.state<TransposedBytes>();
  TRY(Tensor * y, run.output(0, s.limits.type, s.output));
  const int64_t outputs = s.plan.outputs(), columns = s.columns();
  const auto phases = static_cast<int64_t>(s.plan.phases.size());
  auto* const scales = reinterpret_cast<float*>(run.scratch());
  auto* const adds = reinterpret_cast<int32_t*>(scales + columns);
  const auto input = [&](size_t at) { return run.has_input(at) ? &run.input(at) : nullptr; };
  const int32_t x_zero = first_code(run.input(kXZero));
  const auto product_zero = static_cast<uint32_t>(x_zero + (s.plan.flip ? 128 : 0));
  const auto* sums = reinterpret_cast<const int32_t*>(s.packed + s.weights());
  for (int64_t i = 0; i < outputs; ++i) {
    scales[i] = scale_of(input, i);
    for (int64_t phase = 0; phase < phases; ++phase)
      adds[phase * columns + i] =
          addend_of(input, -product_zero * static_cast<uint32_t>(sums[phase * outputs + i]), i);
  }
  QFinish finish;
  finish.kind = QFinish::Kind::kByte;
  finish.column_add = adds;
  finish.column_scale = scales;
  finish.zero_point = first_code(run.input(kYZero));
  finish.least = s.limits.low;
  finish.greatest = s.limits.high;
  if (!s.zeros.empty()) finish.zero = s.zeros.data();
  finish.out = y->data<std::byte>();
  run_qconv_transposed(s.plan, run.data<uint8_t>(kX), static_cast<uint8_t>(x_zero), s.packed,
                       finish, columns, reinterpret_cast<std::byte*>(adds + phases * columns));
  return ok();
}

/// ConvIntegerToFloat: sums become floats with channels last, which are turned.
struct FloatState final : SumState {
  int64_t images = 1, pixels = 1;  ///< of the output, and of one of its images
  size_t floats_bytes = 0;         ///< of one image, with channels last
};

bool supports_to_float(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 6 ||
      !one_scale(q, kIntegerXScale, kIntegerXZero) || q.dtype(kIntegerXZero) != q.dtype(kX) ||
      !supports_sums(q, kIntegerW, kIntegerWScale, kIntegerWZero))
    return false;
  return !q.has_input(kIntegerBias) ||
         (q.dtype(kIntegerBias) == DType::kFloat32 && q.dims(kIntegerBias).size() == 1 &&
          q.dims(kIntegerBias)[0] == q.dims(kIntegerW)[0]);
}

Result<std::unique_ptr<KernelState>> prepare_to_float(const PrepareContext& context) {
  auto state = std::make_unique<FloatState>();
  FloatState& s = *state;
  // The loop for channels one by one makes bytes; as groups of one they are products.
  TRY(const ConvGeometry shape, prepare_sums(context, kIntegerW, kIntegerWZero, true, true, s));
  const int64_t outputs = s.plan.outputs();
  s.output = output_dims(shape, outputs, context.dims(kX).size() - 2);
  s.images = shape.batch;
  s.pixels = shape.out_plane();
  s.floats_bytes = static_cast<size_t>((s.pixels * outputs * 4 + 63) / 64 * 64);
  s.scratch_bytes = s.floats_bytes + s.scratch_of_sums();
  return state;
}

Status run_to_float(KernelRun& run) {
  const auto& s = run.state<FloatState>();
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const int64_t outputs = s.plan.outputs(), pixels = s.pixels;
  auto* floats = reinterpret_cast<float*>(run.scratch());
  auto* scales = reinterpret_cast<float*>(run.scratch() + s.floats_bytes);
  auto* adds = reinterpret_cast<int32_t*>(scales + s.columns());
  auto* image = reinterpret_cast<std::byte*>(adds + s.columns());
  const int32_t x_zero = first_code(run.input(kIntegerXZero));
  const auto x_scale = static_cast<double>(run.data<float>(kIntegerXScale)[0]);
  const Tensor& w_scale = run.input(kIntegerWScale);
  for (int64_t i = 0; i < outputs; ++i) {
    const float scale = w_scale.data<float>()[w_scale.size() == 1 ? 0 : i];
    scales[i] = static_cast<float>(x_scale * static_cast<double>(scale));
    adds[i] = static_cast<int32_t>(s.zero_term(x_zero, i));
  }
  QFinish finish;
  finish.kind = QFinish::Kind::kFloat;
  finish.column_add = adds;
  finish.column_scale = scales;
  if (run.has_input(kIntegerBias)) finish.column_bias = run.data<float>(kIntegerBias);
  if (!s.zeros.empty()) finish.zero = s.zeros.data();
  finish.out = floats;
  finish.ldo = outputs;
  const int64_t in_bytes = run.input(kX).size() / s.images;
  for (int64_t n = 0; n < s.images; ++n) {
    run_qconv_last(s.plan, run.data<uint8_t>(kX) + n * in_bytes, static_cast<uint8_t>(x_zero),
                   s.packed, finish, image);
    turn_channels_first(run, floats, pixels, outputs, y->data<float>() + n * outputs * pixels);
  }
  return ok();
}

}  // namespace

KERNEL(qlinear_conv_channels_last) = {
    .name = "qlinear_conv_channels_last",
    .op = "QLinearConv",
    .domain = "com.microsoft",
    .supports = supports_last,
    .prepare = prepare_last,
    .run = run_last,
};
KERNEL(tombolo_qlinear_conv) = {
    .name = "tombolo_qlinear_conv",
    .op = "QLinearConvLast",
    .domain = "ai.tombolo",
    .supports = supports_last,
    .prepare = prepare_last,
    .run = run_last,
};
KERNEL(tombolo_qlinear_conv_transpose) = {
    .name = "tombolo_qlinear_conv_transpose",
    .op = "QLinearConvTranspose",
    .domain = "ai.tombolo",
    .supports = supports_transposed_bytes,
    .prepare = prepare_transposed_bytes,
    .run = run_transposed_bytes,
};
KERNEL(conv_integer_to_float) = {
    .name = "conv_integer_to_float",
    .op = "ConvIntegerToFloat",
    .domain = "ai.tombolo",
    .supports = supports_to_float,
    .prepare = prepare_to_float,
    .run = run_to_float,
};

}  // namespace tombolo
