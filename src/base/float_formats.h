#pragma once

// Exact conversions between float, double, integers and the small floats of ONNX. One
// implementation serves all formats: a format is a row (exponent bits, mantissa bits, bias,
// special values). Every conversion rounds once, to nearest, ties to even; NaN keeps its sign and
// becomes the format's quiet NaN, its payload is dropped.
//
// Source: the Cast operator's specification (versions 19 to 28); OCP MX 1.0 for the 4- and 6-bit
// floats and float8e8m0; for the FNUZ formats https://arxiv.org/abs/2206.02915.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"

namespace tombolo {

/// Which codes are not finite numbers.
enum class Specials : uint8_t {
  kInfNan,          ///< all-ones exponent: infinity (zero mantissa) or NaN, as in IEEE 754
  kNan,             ///< only the all-ones magnitude is NaN; no infinity ("FN")
  kNanAtMinusZero,  ///< only the code of -0 is NaN; no infinity, no -0 ("FNUZ")
  kNone,            ///< every code is finite
};

/// A binary float of one sign bit, then exponent, then mantissa.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr uint32_t sign_mask() const { return 1u << (bits() - 1); }
  constexpr uint32_t magnitude_mask() const { return sign_mask() - 1; }
  /// The exponent of the smallest normal number.
  constexpr int min_exponent() const { return 1 - bias; }
  /// The code of the largest finite number.
  constexpr uint32_t max_code() const {
    switch (specials) {
      case Specials::kInfNan:
        return infinity_code() - 1;
      case Specials::kNan:
        return magnitude_mask() - 1;
      default:
        return magnitude_mask();
    }
  }
  /// Meaningful for kInfNan only.
  constexpr uint32_t infinity_code() const {
    return magnitude_mask() >> mantissa_bits << mantissa_bits;
  }
  /// The code of a NaN with that sign. A format without NaN gives a zero of the *other* sign:
  /// the specification is silent, upstream's test data for Cast to float4e2m1 and ml_dtypes say
  /// so (upstream's prose pages on float4 and float6 say the maximum instead).
  constexpr uint32_t nan_code(bool negative) const {
    switch (specials) {
      case Specials::kInfNan:
        return (negative ? sign_mask() : 0) | infinity_code() | 1u << (mantissa_bits - 1);
      case Specials::kNan:
        return (negative ? sign_mask() : 0) | magnitude_mask();
      case Specials::kNanAtMinusZero:
        return sign_mask();
      case Specials::kNone:
        return negative ? 0 : sign_mask();
    }
    return 0;
  }
  /// Whether the code (sign included) is a NaN.
  constexpr bool is_nan(uint32_t code) const {
    switch (specials) {
      case Specials::kInfNan:
        return (code & magnitude_mask()) > infinity_code();
      case Specials::kNan:
        return (code & magnitude_mask()) == magnitude_mask();
      case Specials::kNanAtMinusZero:
        return code == sign_mask();
      case Specials::kNone:
        return false;
    }
    return false;
  }
};

inline constexpr FloatFormat kF16{5, 10, 15, Specials::kInfNan};
inline constexpr FloatFormat kBF16{8, 7, 127, Specials::kInfNan};
inline constexpr FloatFormat kE4M3FN{4, 3, 7, Specials::kNan};
inline constexpr FloatFormat kE4M3FNUZ{4, 3, 8, Specials::kNanAtMinusZero};
inline constexpr FloatFormat kE5M2{5, 2, 15, Specials::kInfNan};
inline constexpr FloatFormat kE5M2FNUZ{5, 2, 16, Specials::kNanAtMinusZero};
inline constexpr FloatFormat kE2M1{2, 1, 1, Specials::kNone};
inline constexpr FloatFormat kE2M3{2, 3, 1, Specials::kNone};
inline constexpr FloatFormat kE3M2{3, 2, 3, Specials::kNone};

/// A number taken apart: (-1)^negative * significand * 2^exponent, unless infinite or NaN.
struct UnpackedNumber {
  enum class Kind : uint8_t { kFinite, kInfinite, kNan };
  Kind kind;
  bool negative;
  uint64_t significand;
  int exponent;
};

template <typename T>
requires std::is_arithmetic_v<T>
constexpr UnpackedNumber unpack_number(T x) {
  using Kind = UnpackedNumber::Kind;
  if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
    constexpr int exponent_mask = 2 * std::numeric_limits<T>::max_exponent - 1;
    const auto bits = std::bit_cast<Bits>(x);
    const bool negative = bits >> (sizeof(T) * 8 - 1);
    const int exponent = static_cast<int>(bits >> mantissa_bits) & exponent_mask;
    uint64_t mantissa = bits & ((Bits{1} << mantissa_bits) - 1);
    if (exponent == exponent_mask) {
      return {mantissa ? Kind::kNan : Kind::kInfinite, negative, 0, 0};
    }
    if (exponent != 0) mantissa |= Bits{1} << mantissa_bits;
    const int bias = exponent_mask / 2;
    return {Kind::kFinite, negative, mantissa, std::max(exponent, 1) - bias - mantissa_bits};
  } else {
    const bool negative = x < T{0};
    const auto magnitude = static_cast<uint64_t>(x);
    return {Kind::kFinite, negative, negative ? 0 - magnitude : magnitude, 0};
  }
}

/// value / 2^shift, rounded to nearest, ties to even. 0 <= shift.
constexpr uint64_t shift_right_to_nearest_even(uint64_t value, int shift) {
  if (shift == 0) return value;
  if (shift > 63) return 0;  // callers' significands stay below 2^63 then: less than a half
  const uint64_t floor = value >> shift;
  const uint64_t rest = value & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return floor + (rest > half || (rest == half && (floor & 1)));
}

/// The code nearest to a number. What rounds beyond the largest finite value becomes that value
/// if `saturate` (or if the format has neither infinity nor NaN), else infinity, else NaN.
template <FloatFormat F>
constexpr uint32_t encode_float(UnpackedNumber x, bool saturate) {
  using Kind = UnpackedNumber::Kind;
  if (x.kind == Kind::kNan) return F.nan_code(x.negative);
  const uint32_t sign = x.negative ? F.sign_mask() : 0;
  uint64_t code = F.max_code() + 1;
  if (x.kind == Kind::kFinite) {
    if (x.significand == 0) return F.specials == Specials::kNanAtMinusZero ? 0 : sign;
    const int top = x.exponent + static_cast<int>(std::bit_width(x.significand)) - 1;
    const int shift = std::max(top, F.min_exponent()) - F.mantissa_bits - x.exponent;
    const uint64_t rounded =
        shift < 0 ? x.significand << -shift : shift_right_to_nearest_even(x.significand, shift);
    // A normal number's `rounded` holds the implicit bit, which adds the missing one to the
    // exponent field; so does a carry out of the mantissa.
    code =
        (static_cast<uint64_t>(std::max(top - F.min_exponent(), 0)) << F.mantissa_bits) + rounded;
    if (code == 0 && F.specials == Specials::kNanAtMinusZero) return 0;
  }
  if (code > F.max_code()) {
    if (saturate || F.specials == Specials::kNone) return sign | F.max_code();
    if (F.specials == Specials::kInfNan) return sign | F.infinity_code();
    return F.nan_code(x.negative);
  }
  return sign | static_cast<uint32_t>(code);
}

/// The value of a code: exact, every format is a subset of float.
template <FloatFormat F>
constexpr float decode_float(uint32_t code) {
  constexpr int to_float = 23 - F.mantissa_bits;
  const uint32_t sign = (code & F.sign_mask()) << (32 - F.bits());
  const uint32_t magnitude = code & F.magnitude_mask();
  if (F.bias == 127) return std::bit_cast<float>(sign | magnitude << to_float);
  if (F.is_nan(code)) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (F.specials == Specials::kInfNan && magnitude == F.infinity_code()) {
    return std::bit_cast<float>(sign | 0x7F800000u);
  }
  if (magnitude >> F.mantissa_bits == 0) {
    if (magnitude == 0) return std::bit_cast<float>(sign);
    // A subnormal here is a normal float: move its leading one to the implicit place.
    const int lead = F.mantissa_bits + 1 - static_cast<int>(std::bit_width(magnitude));
    const auto exponent = static_cast<uint32_t>(127 + F.min_exponent() - lead - 1);
    return std::bit_cast<float>(sign | ((exponent << 23) + (magnitude << (lead + to_float))));
  }
  const uint32_t rebias = static_cast<uint32_t>(127 - F.bias) << 23;
  return std::bit_cast<float>(sign | ((magnitude << to_float) + rebias));
}

/// A small float as a value type: `bits` in the low bits, arithmetic happens in float.
template <FloatFormat F>
struct MiniFloat {
  using Bits = std::conditional_t<(F.bits() > 8), uint16_t, uint8_t>;
  static constexpr FloatFormat kFormat = F;

  Bits bits;

  MiniFloat() = default;
  /// Rounds once from any arithmetic type. What is out of range saturates in the formats of 8
  /// bits and fewer and becomes infinite in the 16-bit ones: the defaults of Cast.
  template <typename T>
  requires std::is_arithmetic_v<T>
  explicit constexpr MiniFloat(T x) : MiniFloat(from(x, F.bits() <= 8)) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  static constexpr MiniFloat from(T x, bool saturate) {
    return from_bits(static_cast<Bits>(encode_float<F>(unpack_number(x), saturate)));
  }
  static constexpr MiniFloat from_bits(Bits code) {
    MiniFloat result;
    result.bits = code;
    return result;
  }
  constexpr operator float() const { return decode_float<F>(bits); }

  static constexpr MiniFloat max() { return from_bits(static_cast<Bits>(F.max_code())); }
  static constexpr MiniFloat lowest() {
    return from_bits(static_cast<Bits>(F.sign_mask() | F.max_code()));
  }
};

using Float16 = MiniFloat<kF16>;
using BFloat16 = MiniFloat<kBF16>;
using Float8E4M3FN = MiniFloat<kE4M3FN>;
using Float8E4M3FNUZ = MiniFloat<kE4M3FNUZ>;
using Float8E5M2 = MiniFloat<kE5M2>;
using Float8E5M2FNUZ = MiniFloat<kE5M2FNUZ>;
using Float4E2M1 = MiniFloat<kE2M1>;
using Float6E2M3 = MiniFloat<kE2M3>;
using Float6E3M2 = MiniFloat<kE3M2>;

/// Cast's `round_mode` attribute, for float8e8m0 only. Nearest: ties go up.
enum class RoundMode : uint8_t { kUp, kDown, kNearest };

/// A power of two: 2^(bits - 127), NaN at 255. No sign, no zero, no infinity.
struct Float8E8M0 {
  uint8_t bits;

  Float8E8M0() = default;
  /// Cast's defaults: up, saturating.
  template <typename T>
  requires std::is_arithmetic_v<T>
  explicit constexpr Float8E8M0(T x) : Float8E8M0(from(x, true, RoundMode::kUp)) {}

  /// The specification's table (Cast-24 on), read for all modes alike: the value is rounded to a
  /// power of two of unbounded exponent; what is then out of range goes to the nearest end of
  /// the range if `saturate`, else to NaN. Zero lies below the range, infinity above it. A number
  /// below zero is left open by the specification: NaN.
  /// onnx.numpy_helper.to_float8e8m0 differs: infinity to NaN when saturating, zero to 2^-127
  /// when not, up to 2^-126 from values that 2^-127 would hold, and drops the sign.
  template <typename T>
  requires std::is_arithmetic_v<T>
  static constexpr Float8E8M0 from(T value, bool saturate, RoundMode mode) {
    using Kind = UnpackedNumber::Kind;
    const UnpackedNumber x = unpack_number(value);
    const bool zero = x.kind == Kind::kFinite && x.significand == 0;
    if (x.kind == Kind::kNan || (x.negative && !zero)) return from_bits(0xFF);
    int exponent = x.kind == Kind::kInfinite ? 1024 : -1024;
    if (x.kind == Kind::kFinite && !zero) {
      const int width = static_cast<int>(std::bit_width(x.significand));
      exponent = x.exponent + width - 1;
      const uint64_t lead = uint64_t{1} << (width - 1);
      const uint64_t rest = x.significand - lead;
      if (mode == RoundMode::kUp) exponent += rest != 0;
      if (mode == RoundMode::kNearest) exponent += rest != 0 && rest >= lead - rest;
    }
    if (exponent > 127) return from_bits(saturate ? 0xFE : 0xFF);
    if (exponent < -127) return from_bits(saturate ? 0x00 : 0xFF);
    return from_bits(static_cast<uint8_t>(exponent + 127));
  }
  static constexpr Float8E8M0 from_bits(uint8_t code) {
    Float8E8M0 result;
    result.bits = code;
    return result;
  }
  constexpr operator float() const {
    if (bits == 0xFF) return std::bit_cast<float>(0x7FC00000u);
    return std::bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t{bits} << 23);
  }
};

/// Reads `count` elements of `type` at `packed` (any alignment, sub-byte types packed as in
/// raw_data, packed_bytes(type, count) bytes) as floats. Exact. False, and nothing written, if
/// the type is not a float of at most 32 bits.
bool decode_floats(DType type, const void* packed, size_t count, float* out);

struct CastOptions {
  bool saturate = true;                   ///< float8 types only, as in Cast
  RoundMode round_mode = RoundMode::kUp;  ///< float8e8m0 only, as in Cast
};

/// Writes `count` floats or doubles as elements of `type` at `packed` (any alignment), rounding
/// each once. False, and nothing written, if `type` is not a float of at most 32 bits.
bool encode_floats(DType type, const float* in, size_t count, void* packed,
                   CastOptions options = {});
bool encode_floats(DType type, const double* in, size_t count, void* packed,
                   CastOptions options = {});

}  // namespace tombolo
