// QuantizeLinear with a scale for each block or for each element of the last axis, to what has
// fewer than 8 bits or is a float, and of floats of 16 bits.

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/float_formats.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/quant/quantize.h"
#include "runtime/kernels/quant/scale_rows.h"

namespace tombolo {

std::optional<ScaleRows> read_scale_rows(const KernelQuery& q) {
  ScaleRows s;
  const auto dims = q.dims(0), scale = q.dims(1);
  s.all = element_count(dims);
  if (s.all < 1) return std::nullopt;
  const int64_t count = element_count(scale), given = q.attributes.get_int("block_size", 0);
  if (given == 0 && (scale.empty() || (scale.size() == 1 && count == 1))) {
    // In rows of some length.
    s.n = s.block = std::min<int64_t>(s.all, 4096);
    s.rows = (s.all + s.n - 1) / s.n;
    s.step = 0;
    return s;
  }
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = q.attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const int64_t length = dims[static_cast<size_t>(axis)];
  const int64_t outer = element_count(dims.first(static_cast<size_t>(axis)));
  const int64_t inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  if (given == 0) {
    if (scale.size() != 1 || count != length) return std::nullopt;
    if (inner == 1) {
      s.rows = outer;
      s.n = length;
      s.block = s.step = 0;
    } else {
      s.rows = outer * length;
      s.n = s.block = inner;
      s.length = length;
      s.blocks = 0;
    }
    return s;
  }
  Dims expected(dims);
  if (given < 1) return std::nullopt;
  const int64_t size = std::min(given, length);  // which may be any number
  expected[static_cast<uint32_t>(axis)] = (length + size - 1) / size;
  if (Dims(scale) != expected) return std::nullopt;
  s.blocks = expected[static_cast<uint32_t>(axis)];
  if (inner == 1) {
    s.rows = outer;
    s.n = length;
    s.block = size;
    s.step = 1;
    return s;
  }
  s.rows = outer * length;
  s.n = s.step = inner;
  s.block = 0;
  s.length = length;
  s.share = size;
  return s;
}

std::optional<DType> read_quantised_type(const KernelQuery& q) {
  const int64_t precision = q.attributes.get_int("precision", 0);
  if (precision != 0 && precision != static_cast<int64_t>(DType::kFloat32)) return std::nullopt;
  const int64_t given = q.attributes.get_int("output_dtype", 0);
  if (given == 0) return q.has_input(2) ? q.dtype(2) : DType::kUInt8;
  const auto type = dtype_from_number(given);
  return type && (!q.has_input(2) || *type == q.dtype(2)) ? type : std::nullopt;
}

namespace {

struct QuantizeState final : KernelState {
  ScaleRows rows;
  DType type = DType::kUInt8;
  bool saturate = true;
  int64_t repeats = 1;  ///< of all scales and zero points, in a row of several
};

bool is_whole(DType type) {
  switch (type) {
    case DType::kInt2:
    case DType::kUInt2:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
      return true;
    default:
      return false;
  }
}
bool is_signed(DType type) {
  return type == DType::kInt2 || type == DType::kInt4 || type == DType::kInt8 ||
         type == DType::kInt16;
}

bool plan_quantize_blocks(const KernelQuery& q, QuantizeState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || !is_f32_or_short(q.dtype(0)) ||
      q.dtype(1) != q.dtype(0) || (q.has_input(2) && Dims(q.dims(2)) != Dims(q.dims(1))))
    return false;
  // Quotients of 16 bits are rounded to these, unless floats are asked for.
  const bool narrow = is_short_float(q.dtype(0));
  if (narrow && q.attributes.get_int("precision", 0) != 0) return false;
  const auto type = read_quantised_type(q);
  if (!type) return false;
  s.type = *type;
  const auto rows = read_scale_rows(q);
  if (!rows) return false;
  s.rows = *rows;
  s.saturate = q.attributes.get_int("saturate", 1) != 0;
  // Whole rows of floats to 8 and 16 bits: quantize_linear.
  if (is_whole(s.type)) {
    s.repeats = s.rows.join_short();
    return narrow || bits_of(s.type) < 8 || s.rows.block != s.rows.n;
  }
  if (narrow) return false;
  if (!is_float(s.type) || bits_of(s.type) > 8 || s.type == DType::kFloat8E8M0) return false;
  // Their zero point is zero; another one is the reference's.
  if (!q.has_input(2)) return true;
  const Tensor* zero = q.constant(2);
  for (int64_t i = 0; zero != nullptr && i < zero->size(); ++i)
    if (zero->get_double(i) != 0) return false;
  return zero != nullptr;
}

bool supports_quantize_blocks(const KernelQuery& query) {
  QuantizeState state;
  return plan_quantize_blocks(query, state);
}

Result<std::unique_ptr<KernelState>> prepare_quantize_blocks(const PrepareContext& context) {
  auto state = std::make_unique<QuantizeState>();
  plan_quantize_blocks(context, *state);
  return state;
}

/// Each element with a scale and a zero point of its own.
template <typename T>
void quantize_each(const float* x, int64_t n, const float* scale, const int32_t* zero,
                   int32_t least, int32_t greatest, T* y) {
  for (int64_t i = 0; i < n; ++i) {
    const float exact = x[i] / scale[i];
    const float number = exact == exact ? exact : 0.0f;
    const float inside = std::min(std::max(number, static_cast<float>(least - zero[i])),
                                  static_cast<float>(greatest - zero[i]));
    // To the nearest whole number, of two the even one: what is less than 2^22 lies between 2^23
    // and 2^24 then, where floats are whole.
    constexpr float kWhole = 12582912.0f;
    const float near = (inside + kWhole) - kWhole;
    y[i] = static_cast<T>(static_cast<int32_t>(near) + zero[i]);
  }
}

class Quantizer {
 public:
  Quantizer(const KernelRun& run, const QuantizeState& state, Tensor& y)
      : state_(state), x_(run.input(0)), y_(y) {
    bits_ = static_cast<int>(bits_of(state.type));
    const int64_t range = int64_t{1} << bits_;
    least_ = is_signed(state.type) ? static_cast<int32_t>(-range / 2) : 0;
    greatest_ = static_cast<int32_t>(least_ + range - 1);
    const Tensor& scale = run.input(1);
    const auto count = static_cast<size_t>(scale.size()),
               all = count * static_cast<size_t>(state.repeats);
    scales_.resize(all);
    const float* const floats = load_floats(scale, 0, scale.size(), scales_.data());
    if (floats != scales_.data()) std::copy_n(floats, count, scales_.data());
    zeros_.assign(all, 0);
    if (is_whole(state.type) && run.has_input(2)) {
      const Tensor& zero = run.input(2);
      for (int64_t i = 0; i < zero.size(); ++i)
        zeros_[static_cast<size_t>(i)] = static_cast<int32_t>(zero.get_int64(i));
    }
    for (size_t i = count; i < all; ++i) {
      scales_[i] = scales_[i - count];
      zeros_[i] = zeros_[i - count];
    }
    scale_ = scales_.data();
    if (is_short_float(x_.dtype())) ones_.assign(all, 1.0f);
  }

  void row(int64_t r) {
    const ScaleRows& s = state_.rows;
    const int64_t first = r * s.n, n = s.elements_of(r), at = s.scales_of(r);
    std::vector<float> room(is_short_float(x_.dtype()) ? static_cast<size_t>(n) : 0);
    const float* const x = load_floats(x_, first, n, room.data());
    if (!room.empty()) divide(room.data(), n, at);
    auto* const bytes = reinterpret_cast<uint8_t*>(y_.mutable_bytes().data());
    if (!is_whole(state_.type)) {
      std::vector<float> quotients(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        quotients[static_cast<size_t>(i)] = x[i] / scale_[at + (s.block == 0 ? i : i / s.block)];
      encode_floats(state_.type, quotients.data(), static_cast<size_t>(n),
                    bytes + first * bits_ / 8, {.saturate = state_.saturate});
      return;
    }
    if (bits_ >= 8) return whole(x, n, at, bytes + first * bits_ / 8);
    std::vector<uint8_t> codes(static_cast<size_t>(n));
    whole(x, n, at, codes.data());
    pack(codes.data(), first, n, bytes);
  }
  /// Rows end between bytes, or one follows the other.
  bool apart() const { return state_.rows.n * bits_ % 8 == 0; }

 private:
  /// Floats that were 16 bits by their scales, as 16 bits hold the quotients.
  void divide(float* x, int64_t n, int64_t at) const {
    const int64_t block = state_.rows.block;
    if (block == 0)
      for (int64_t i = 0; i < n; ++i) x[i] /= scale_[at + i];
    else
      for (int64_t b = 0; b < n; b += block, ++at)
        for (int64_t i = b; i < std::min(n, b + block); ++i) x[i] /= scale_[at];
    std::vector<uint16_t> narrow(static_cast<size_t>(n));
    if (x_.dtype() == DType::kFloat16) {
      f32_to_f16(x, narrow.data(), n);
      f16_to_f32(narrow.data(), x, n);
    } else {
      f32_to_bf16(x, narrow.data(), n);
      bf16_to_f32(narrow.data(), x, n);
    }
  }

  /// To 8 or 16 bits each.
  void whole(const float* x, int64_t n, int64_t at, uint8_t* y) const {
    const float* const scale = ones_.empty() ? scale_ : ones_.data();
    const int64_t block = state_.rows.block;
    const bool wide = bits_ == 16, negative = least_ < 0;
    if (block == 0) {
      const int32_t* const zero = zeros_.data() + at;
      if (wide && negative)
        quantize_each(x, n, scale + at, zero, least_, greatest_, reinterpret_cast<int16_t*>(y));
      else if (wide)
        quantize_each(x, n, scale + at, zero, least_, greatest_, reinterpret_cast<uint16_t*>(y));
      else
        quantize_each(x, n, scale + at, zero, least_, greatest_, y);
      return;
    }
    for (int64_t i = 0; i < n; i += block, ++at) {
      const int64_t count = std::min(block, n - i);
      const int32_t zero = zeros_[static_cast<size_t>(at)];
      if (wide)
        quantize_row16(x + i, count, scale[at], zero, negative, reinterpret_cast<uint16_t*>(y) + i);
      else
        quantize_row(x + i, count, scale[at], zero, negative, y + i);
    }
  }

  /// Codes of 2 or 4 bits from bytes on: those of whole rows are beyond the range still.
  void pack(const uint8_t* codes, int64_t first, int64_t n, uint8_t* bytes) const {
    const bool negative = least_ < 0;
    const auto mask = static_cast<uint8_t>((1 << bits_) - 1);
    const auto inside = [&](uint8_t code) {
      const int value = negative ? static_cast<int8_t>(code) : code;
      return static_cast<uint8_t>(std::clamp<int>(value, least_, greatest_) & mask);
    };
    int64_t i = 0;
    if (bits_ == 4 && first % 2 == 0)
      for (uint8_t* to = bytes + first / 2; i + 2 <= n; i += 2)
        *to++ = static_cast<uint8_t>(inside(codes[i]) | inside(codes[i + 1]) << 4);
    for (; i < n; ++i) {
      const int64_t bit = (first + i) * bits_;
      uint8_t& byte = bytes[bit / 8];
      if (bit % 8 == 0) byte = 0;
      byte = static_cast<uint8_t>(byte | inside(codes[i]) << bit % 8);
    }
  }

  const QuantizeState& state_;
  const Tensor& x_;
  const float* scale_;
  Tensor& y_;
  int bits_;
  int32_t least_, greatest_;
  std::vector<int32_t> zeros_;
  std::vector<float> scales_, ones_;  ///< the latter where quotients are there already
};

Status run_quantize_blocks(KernelRun& run) {
  const auto& s = run.state<QuantizeState>();
  TRY(Tensor * y, run.output(0, s.type, run.input(0).dims()));
  Quantizer quantizer(run, s, *y);
  auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) quantizer.row(r);
  };
  if (quantizer.apart())
    run.parallel_for(s.rows.rows, std::max<int64_t>(1, (1 << 14) / s.rows.n), rows);
  else
    rows(0, s.rows.rows);
  return ok();
}

}  // namespace

KERNEL(quantize_blocks) = {
    .name = "quantize_blocks",
    .op = "QuantizeLinear",
    .supports = supports_quantize_blocks,
    .prepare = prepare_quantize_blocks,
    .run = run_quantize_blocks,
    .priority = 1,
};

}  // namespace tombolo
