// QLinearConv with channels last: of com.microsoft, and of ai.tombolo with limits and a residual;
// ConvIntegerToFloat of ai.tombolo, whose result has channels first.

#include <cmath>
#include <string>

#include "runtime/kernels/conv/geometry.h"
#include "runtime/kernels/image/channels_last.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/quant/qconv_last.h"
#include "runtime/kernels/quant/weight_zeros.h"

namespace tombolo {
namespace {

constexpr size_t kX = 0, kXScale = 1, kXZero = 2, kW = 3, kWScale = 4, kWZero = 5, kYScale = 6,
                 kYZero = 7, kBias = 8;
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

struct LastState final : SumState {
  bool has_rest = false;
  int32_t low = 0, high = 255;  ///< limits of what is written last
  DType out_type = DType::kUInt8;
  /// Of each output, where all that they depend on is constant: what its sum is multiplied by, and
  /// what is added to it first.
  std::vector<float> scales;
  std::vector<int32_t> adds;
};

int32_t byte_at(const Tensor& tensor) {
  return tensor.dtype() == DType::kInt8 ? tensor.data<int8_t>()[0] : tensor.data<uint8_t>()[0];
}

/// input(i) of the node, null for a bias that is not there.
template <typename Input>
void column_terms(const LastState& s, Input&& input, float* scales, int32_t* adds) {
  const int64_t outputs = s.plan.outputs();
  const int32_t zero = byte_at(*input(kXZero));
  const Tensor &w_scale = *input(kWScale), *bias = input(kBias);
  const double factor = static_cast<double>(input(kXScale)->template data<float>()[0]) /
                        static_cast<double>(input(kYScale)->template data<float>()[0]);
  for (int64_t i = 0; i < outputs; ++i) {
    const float scale = w_scale.data<float>()[w_scale.size() == 1 ? 0 : i];
    const int64_t at = s.plan.depthwise ? q_depthwise_place(i, outputs, s.plan.zeros) : i;
    scales[at] = static_cast<float>(factor * static_cast<double>(scale));
    // Sums wrap, as the reference's do.
    adds[at] =
        static_cast<int32_t>(static_cast<uint32_t>(bias != nullptr ? bias->data<int32_t>()[i] : 0) +
                             s.zero_term(zero, i));
  }
}

bool one_scale(const KernelQuery& q, size_t scale, size_t zero) {
  return q.has_input(scale) && q.has_input(zero) && q.dtype(scale) == DType::kFloat32 &&
         is_byte(q.dtype(zero)) && element_count(q.dims(scale)) == 1 &&
         element_count(q.dims(zero)) == 1;
}

std::optional<ConvGeometry> geometry(const KernelQuery& q, size_t w_at, LiveTaps& live) {
  const auto x = q.dims(kX), w = q.dims(w_at);
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size()) return std::nullopt;
  Dims first = {x[0], x.back()};
  for (size_t i = 1; i + 1 < x.size(); ++i) first.push_back(x[i]);
  return read_conv_geometry(q.attributes, {first.begin(), first.size()}, w, &live);
}

/// Constant weights of bytes with constant zero points, scales of one number or one an output.
bool supports_sums(const KernelQuery& q, size_t w_at, size_t scale_at, size_t zero_at) {
  if (!is_byte(q.dtype(kX)) || !is_byte(q.dtype(w_at)) || q.dtype(zero_at) != q.dtype(w_at) ||
      q.dtype(scale_at) != DType::kFloat32 || q.constant(w_at) == nullptr ||
      q.constant(zero_at) == nullptr || element_count(q.dims(kX)) < 1)
    return false;
  LiveTaps live;
  const auto shape = geometry(q, w_at, live);
  if (!shape || shape->depth() > 1 << 16) return false;
  // Channels one by one have a loop of their own, for images.
  if (q.dims(kX).size() == 5 && shape->groups > 1 && shape->in_channels == 1) return false;
  const int64_t outputs = shape->groups * shape->out_channels;
  for (const size_t i : {scale_at, zero_at}) {
    const int64_t size = element_count(q.dims(i));
    if (q.dims(i).size() > 1 || (size != 1 && size != outputs)) return false;
  }
  return true;
}

bool supports_last(const KernelQuery& q) {
  const bool own = q.node.domain() == "ai.tombolo";
  if (active_isa() == Isa::kScalar || q.inputs.size() < 8 ||
      (!own && q.attributes.get_int("channels_last", 0) == 0))
    return false;
  if (!one_scale(q, kXScale, kXZero) || !one_scale(q, kYScale, kYZero) ||
      q.dtype(kXZero) != q.dtype(kX) || !supports_sums(q, kW, kWScale, kWZero))
    return false;
  if (q.has_input(kBias) && (q.dtype(kBias) != DType::kInt32 || q.dims(kBias).size() != 1 ||
                             q.dims(kBias)[0] != q.dims(kW)[0]))
    return false;
  if (!q.has_input(kZ)) return true;
  return own && is_byte(q.dtype(kZ)) && one_scale(q, kZScale, kZZero) &&
         one_scale(q, kSumScale, kSumZero) && q.dtype(kZZero) == q.dtype(kZ);
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
  // Of several groups the first one stands for all.
  const int64_t depth = shape.taps() * shape.in_channels;
  const QTiles& tiles = q_constant_tiles(w, 1, depth, depth, shape.out_channels, w_unsigned);
  s.zeros = weight_zeros(context.constant(zero_at), !w_unsigned, shape.groups * shape.out_channels);
  s.plan = plan_qconv_last(shape, context.dtype(kX) == DType::kInt8, rest, tiles, w, w_unsigned,
                           !s.zeros.empty());
  const size_t weights = (s.plan.weight_bytes + 63) / 64 * 64;
  const std::string key = std::string("qconv_last/") + tiles.name + "/" +
                          std::to_string(shape.groups) +
                          (s.plan.run != shape.in_channels ? "/rows" : "/taps") +
                          (s.plan.depthwise  ? "/depthwise/" + std::string(name_of(active_isa()))
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
  s.out_type = context.dtype(s.has_rest ? kSumZero : kYZero);
  const bool is_signed = s.out_type == DType::kInt8;
  s.low = static_cast<int32_t>(context.attributes.get_int("low", is_signed ? -128 : 0));
  s.high = static_cast<int32_t>(context.attributes.get_int("high", is_signed ? 127 : 255));
  s.output = {shape.batch};
  const size_t rank = context.dims(kX).size();
  for (int axis = 5 - static_cast<int>(rank); axis < 3; ++axis)
    s.output.push_back(shape.out_size(axis));
  s.output.push_back(outputs);
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
  TRY(Tensor * y, run.output(0, s.out_type, s.output));
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
  finish.zero_point = byte_at(run.input(kYZero));
  range(run.input(kYZero).dtype(), finish.least, finish.greatest);
  if (s.has_rest) {
    const Tensor& rest = run.input(kZ);
    const auto sum_scale = static_cast<double>(run.data<float>(kSumScale)[0]);
    finish.rest = rest.data<std::byte>();
    finish.rest_signed = rest.dtype() == DType::kInt8;
    finish.rest_zero = byte_at(run.input(kZZero));
    finish.zero_point2 = byte_at(run.input(kSumZero));
    finish.least2 = s.low;
    finish.greatest2 = s.high;
    finish.own = static_cast<float>(static_cast<double>(run.data<float>(kYScale)[0]) / sum_scale);
    finish.other = static_cast<float>(static_cast<double>(run.data<float>(kZScale)[0]) / sum_scale);
  } else {
    finish.least = s.low;
    finish.greatest = s.high;
  }
  if (!s.zeros.empty()) finish.zero = s.zeros.data();
  finish.out = y->data<std::byte>();
  finish.ldo = outputs;
  run_qconv_last(s.plan, run.data<uint8_t>(kX), static_cast<uint8_t>(byte_at(run.input(kXZero))),
                 s.packed, finish, image);
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
  const int32_t x_zero = byte_at(run.input(kIntegerXZero));
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
KERNEL(conv_integer_to_float) = {
    .name = "conv_integer_to_float",
    .op = "ConvIntegerToFloat",
    .domain = "ai.tombolo",
    .supports = supports_to_float,
    .prepare = prepare_to_float,
    .run = run_to_float,
};

}  // namespace tombolo
