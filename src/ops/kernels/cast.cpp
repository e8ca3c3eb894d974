#include "ops/kernels/cast.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/kernels/elementwise.h"

namespace tombolo::ops {

namespace {

constexpr int64_t kCastBlock = 1024;

/// The range of an integer type of up to 64 bits, as the 64-bit type of its signedness holds it.
int64_t least(DType dtype) {
  return is_signed_integer(dtype) ? INT64_MIN >> (64 - bits_of(dtype)) : 0;
}
uint64_t most(DType dtype) {
  const uint64_t all = UINT64_MAX >> (64 - bits_of(dtype));
  return is_signed_integer(dtype) ? all >> 1 : all;
}

/// A float as an integer of `dtype`: truncated towards zero, out of range to the nearest end, NaN
/// to zero. The bits of the result, whatever the signedness.
template <typename F>
uint64_t float_to_bits(F value, int64_t low, uint64_t high) {
  if (value != value) return 0;
  if (value <= static_cast<F>(low)) return static_cast<uint64_t>(low);
  if (value >= static_cast<F>(high)) return high;
  return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

/// From numbers of one compute type to elements of `out`.
template <typename From>
void store_block(const From* in, int64_t count, Tensor& out, int64_t begin, CastOptions options) {
  const DType to = out.dtype();
  alignas(64) std::array<uint64_t, kCastBlock> block;
  if (to == DType::kBool) {
    for (int64_t i = 0; i < count; ++i) out.data<uint8_t>()[begin + i] = in[i] != From{0};
  } else if (is_integer(to)) {
    if constexpr (std::is_floating_point_v<From>) {
      // 4- and 2-bit integers wrap as an integer of more bits does: upstream's cases say so.
      const int64_t low = least(is_sub_byte(to) ? DType::kInt64 : to);
      const uint64_t high = most(is_sub_byte(to) ? DType::kInt64 : to);
      for (int64_t i = 0; i < count; ++i)
        block[static_cast<size_t>(i)] = float_to_bits(in[i], low, high);
    } else {
      for (int64_t i = 0; i < count; ++i)
        block[static_cast<size_t>(i)] = static_cast<uint64_t>(in[i]);
    }
    narrow(block.data(), count, out, begin);
  } else if (to == DType::kFloat64) {
    for (int64_t i = 0; i < count; ++i) out.data<double>()[begin + i] = static_cast<double>(in[i]);
  } else if (to == DType::kFloat32) {
    for (int64_t i = 0; i < count; ++i) out.data<float>()[begin + i] = static_cast<float>(in[i]);
  } else if (std::is_integral_v<From> && to == DType::kBFloat16) {
    // Through double a 64-bit integer would be rounded twice.
    for (int64_t i = 0; i < count; ++i) out.data<BFloat16>()[begin + i] = BFloat16(in[i]);
  } else {
    // The blocks begin at multiples of eight elements: whole bytes in every packing.
    std::byte* at = out.mutable_bytes().data() + begin / 8 * bits_of(to);
    if constexpr (std::is_same_v<From, float>) {
      encode_floats(to, in, static_cast<size_t>(count), at, options);
    } else {
      std::array<double, kCastBlock> doubles;
      for (int64_t i = 0; i < count; ++i)
        doubles[static_cast<size_t>(i)] = static_cast<double>(in[i]);
      encode_floats(to, doubles.data(), static_cast<size_t>(count), at, options);
    }
  }
}

/// The shortest text that reads back as the same number, in numpy's spelling.
template <typename F>
std::string float_text(F value) {
  if (value != value) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const F size = std::fabs(value);
  const bool plain = size == 0 || (size >= static_cast<F>(1e-4) && size < static_cast<F>(1e16));
  const auto end =
      plain ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
            : std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

Tensor to_strings(const Tensor& in) {
  std::vector<std::string> texts(static_cast<size_t>(in.size()));
  const DType from = in.dtype();
  for (int64_t i = 0; i < in.size(); ++i) {
    std::string& text = texts[static_cast<size_t>(i)];
    if (from == DType::kBool)
      text = in.data<bool>()[i] ? "True" : "False";
    else if (from == DType::kFloat64)
      text = float_text(in.get_double(i));
    else if (is_float(from))
      text = float_text(static_cast<float>(in.get_double(i)));
    else if (from == DType::kUInt64)
      text = std::to_string(in.data<uint64_t>()[i]);
    else
      text = std::to_string(in.get_int64(i));
  }
  return Tensor::of_strings(in.dims(), std::move(texts));
}

bool same_letters(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

/// A whole decimal number, or one of the names of the specification.
template <typename F>
bool parse_float(std::string_view text, F& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view name = text.substr(negative ? 1 : 0);
  if (same_letters(name, "inf") || same_letters(name, "infinity")) {
    value = negative ? -std::numeric_limits<F>::infinity() : std::numeric_limits<F>::infinity();
    return true;
  }
  if (same_letters(name, "nan")) {
    value = std::numeric_limits<F>::quiet_NaN();
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return false;
  if (error == std::errc::result_out_of_range) {
    // Too large or too small for F: from_chars does not say which, the exponent's sign does.
    const size_t e = text.find_first_of("eE");
    const bool tiny = e != std::string_view::npos && e + 1 < text.size() && text[e + 1] == '-';
    value = tiny ? F{0} : std::numeric_limits<F>::infinity();
    if (negative) value = -value;
    return true;
  }
  return error == std::errc();
}

template <typename I>
bool parse_integer(std::string_view text, I& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status from_strings(const KernelContext& context, const Tensor& in, Tensor& out,
                    CastOptions options) {
  const DType to = out.dtype();
  for (int64_t i = 0; i < in.size(); ++i) {
    const std::string& text = in.strings()[static_cast<size_t>(i)];
    bool good = false;
    if (to == DType::kUInt64) {
      uint64_t value = 0;
      if ((good = parse_integer(text, value))) out.data<uint64_t>()[i] = value;
    } else if (is_integer(to)) {
      int64_t value = 0;
      if ((good = parse_integer(text, value))) out.set_int64(i, value);
    } else if (to == DType::kFloat32) {
      good = parse_float(text, out.data<float>()[i]);
    }
    if (!good && to != DType::kFloat32) {
      double value = 0;
      good = parse_float(text, value);
      if (!good && to == DType::kBool) {
        good = same_letters(text, "true") || same_letters(text, "false");
        value = same_letters(text, "true");
      }
      if (good && is_integer(to))
        out.set_int64(i, static_cast<int64_t>(float_to_bits(value, least(to), most(to))));
      else if (good && to == DType::kBool)
        out.data<bool>()[i] = value != 0;
      else if (good && is_float8(to))
        encode_floats(to, &value, 1, out.mutable_bytes().data() + i, options);
      else if (good)
        out.set_double(i, value);
    }
    if (!good)
      return context.error("element " + std::to_string(i) + ", \"" + text.substr(0, 40) +
                           "\", is not a number");
  }
  return ok();
}

}  // namespace

Result<Tensor> cast_tensor(const KernelContext& context, const Tensor& in, DType to,
                           CastOptions options) {
  const DType from = in.dtype();
  if (from == to) return in;
  if (is_complex(from) || is_complex(to))
    return unsupported("a cast from " + std::string(name_of(from)) + " to " +
                       std::string(name_of(to)) + " is not defined");
  if (to == DType::kString) return to_strings(in);
  TRY(Tensor out, context.allocate(to, in.dims()));
  if (from == DType::kString) {
    CHECK_OK(from_strings(context, in, out, options));
    return out;
  }
  auto convert = [&](int64_t begin, int64_t end) {
    alignas(64) std::array<uint64_t, kCastBlock> block;
    for (int64_t at = begin; at < end; at += kCastBlock) {
      const int64_t count = std::min(kCastBlock, end - at);
      widen(in, at, count, block.data());
      switch (compute_type(from)) {
        case Compute::kFloat:
          store_block(reinterpret_cast<const float*>(block.data()), count, out, at, options);
          break;
        case Compute::kDouble:
          store_block(reinterpret_cast<const double*>(block.data()), count, out, at, options);
          break;
        case Compute::kInt64:
          store_block(reinterpret_cast<const int64_t*>(block.data()), count, out, at, options);
          break;
        default:
          store_block(block.data(), count, out, at, options);
      }
    }
  };
  if (is_sub_byte(to))
    convert(0, in.size());  // threads would share bytes
  else
    context.parallel_for(in.size(), 1 << 16, convert);
  return out;
}

Result<CastOptions> cast_options(const KernelContext& context) {
  CastOptions options;
  options.saturate = context.attributes.get_int("saturate", 1) != 0;
  const Text mode = context.attributes.get_string("round_mode", "up");
  if (mode == "down")
    options.round_mode = RoundMode::kDown;
  else if (mode == "nearest")
    options.round_mode = RoundMode::kNearest;
  else if (mode != "up")
    return context.error("round_mode must be up, down or nearest, is \"" + std::string(mode) +
                         "\"");
  return options;
}

}  // namespace tombolo::ops
