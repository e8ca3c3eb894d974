#include "base/float_formats.h"

#include <array>
#include <cstring>

#include "base/bit_packing.h"

namespace tombolo {
namespace {

// Bulk work goes through blocks of fixed size: a loop with a constant trip count and local
// buffers is one that compilers vectorise even at -O2, and memcpy makes any alignment legal.
constexpr size_t kBlock = 64;

// A choice that stays straight-line code: gcc turns ?: around a floating addition into a branch,
// and then cannot vectorise the loop.
inline uint32_t select(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

// Decoding f16 without a branch. The subtraction turns a subnormal's mantissa into a float
// without ever holding a subnormal float, so that flush-to-zero modes cannot hurt.
inline uint32_t f16_to_f32_bits(uint32_t h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t shifted = (h & 0x7FFFu) << 13;
  const uint32_t normal = shifted + (112u << 23);
  const uint32_t special = select((shifted & 0x007FFFFFu) != 0, 0x7FC00000u, 0x7F800000u);
  constexpr uint32_t smallest_normal = 113u << 23;  // 2^-14
  const float difference =
      std::bit_cast<float>(shifted + smallest_normal) - std::bit_cast<float>(smallest_normal);
  const uint32_t exponent = shifted & 0x0F800000u;
  const uint32_t finite = select(exponent == 0, std::bit_cast<uint32_t>(difference), normal);
  return sign | select(exponent == 0x0F800000u, special, finite);
}

// Encoding f16: adding 0.5 makes the addition itself round a subnormal result at bit 2^-24,
// ties to even (the default rounding mode, which the library never changes).
inline uint16_t f32_to_f16_bits(uint32_t f) {
  const uint32_t sign = f >> 16 & 0x8000u;
  const uint32_t magnitude = f & 0x7FFFFFFFu;
  const uint32_t odd = magnitude >> 13 & 1u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + odd) >> 13;
  constexpr uint32_t half = 126u << 23;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(half)) - half;
  const uint32_t finite = select(magnitude < (113u << 23), subnormal, normal);
  const uint32_t special = select(magnitude > 0x7F800000u, 0x7E00u, 0x7C00u);
  return static_cast<uint16_t>(sign | select(magnitude >= (143u << 23), special, finite));
}

inline uint16_t f32_to_bf16_bits(uint32_t f) {
  const uint32_t rounded = (f + 0x7FFFu + (f >> 16 & 1u)) >> 16;
  const uint32_t nan = (f >> 16 & 0x8000u) | 0x7FC0u;
  return static_cast<uint16_t>((f & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

// Runs `convert` over blocks of In at `from` giving blocks of Out at `to`.
template <typename In, typename Out, typename Convert>
void convert_blocks(const void* from, void* to, size_t count, Convert convert) {
  const auto* in = static_cast<const unsigned char*>(from);
  auto* out = static_cast<unsigned char*>(to);
  In source[kBlock] = {};
  Out target[kBlock];
  for (; count >= kBlock; count -= kBlock) {
    std::memcpy(source, in, sizeof(source));
    for (size_t i = 0; i < kBlock; ++i) target[i] = convert(source[i]);
    std::memcpy(out, target, sizeof(target));
    in += sizeof(source);
    out += sizeof(target);
  }
  if (count == 0) return;
  std::memcpy(source, in, count * sizeof(In));
  for (size_t i = 0; i < count; ++i) target[i] = convert(source[i]);
  std::memcpy(out, target, count * sizeof(Out));
}

using FloatBits = uint32_t;

template <typename Mini>
constexpr auto make_decode_table() {
  std::array<FloatBits, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    table[i] = std::bit_cast<FloatBits>(float{Mini::from_bits(static_cast<uint8_t>(i))});
  }
  return table;
}

// The value of a code of up to 8 bits is a look-up.
template <typename Mini>
void decode_codes(unsigned bits, const void* packed, size_t count, float* out) {
  static constexpr auto table = make_decode_table<Mini>();
  const auto* in = static_cast<const uint8_t*>(packed);
  uint8_t codes[kBlock];
  while (count != 0) {
    const size_t n = std::min(count, kBlock);
    unpack_codes(in, bits, n, codes);
    for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(table[codes[i]]);
    in += kBlock * bits / 8;
    out += n;
    count -= n;
  }
}

template <typename T, typename Encode>
void encode_codes(unsigned bits, const T* in, size_t count, void* packed, Encode encode) {
  auto* out = static_cast<uint8_t*>(packed);
  uint8_t codes[kBlock];
  while (count != 0) {
    const size_t n = std::min(count, kBlock);
    for (size_t i = 0; i < n; ++i) codes[i] = encode(in[i]);
    pack_codes(codes, bits, n, out);
    out += kBlock * bits / 8;
    in += n;
    count -= n;
  }
}

template <typename T>
bool encode_any(DType type, const T* in, size_t count, void* packed, CastOptions options) {
  const unsigned bits = bits_of(type);
  const auto mini = [&]<typename Mini>(Mini) {
    encode_codes(bits, in, count, packed,
                 [&](T x) { return static_cast<uint8_t>(Mini::from(x, options.saturate).bits); });
    return true;
  };
  switch (type) {
    case DType::kFloat8E4M3FN:
      return mini(Float8E4M3FN{});
    case DType::kFloat8E4M3FNUZ:
      return mini(Float8E4M3FNUZ{});
    case DType::kFloat8E5M2:
      return mini(Float8E5M2{});
    case DType::kFloat8E5M2FNUZ:
      return mini(Float8E5M2FNUZ{});
    case DType::kFloat4E2M1:
      return mini(Float4E2M1{});
    case DType::kFloat6E2M3:
      return mini(Float6E2M3{});
    case DType::kFloat6E3M2:
      return mini(Float6E3M2{});
    case DType::kFloat8E8M0:
      encode_codes(bits, in, count, packed, [&](T x) {
        return Float8E8M0::from(x, options.saturate, options.round_mode).bits;
      });
      return true;
    default:
      return false;
  }
}

}  // namespace

bool decode_floats(DType type, const void* packed, size_t count, float* out) {
  if (!is_float(type) || bits_of(type) > 32) return false;
  if (count == 0) return true;
  const unsigned bits = bits_of(type);
  switch (type) {
    case DType::kFloat32:
      std::memcpy(out, packed, count * sizeof(float));
      return true;
    case DType::kFloat16:
      convert_blocks<uint16_t, uint32_t>(packed, out, count,
                                         [](uint16_t h) { return f16_to_f32_bits(h); });
      return true;
    case DType::kBFloat16:
      convert_blocks<uint16_t, uint32_t>(packed, out, count,
                                         [](uint16_t h) { return uint32_t{h} << 16; });
      return true;
    case DType::kFloat8E4M3FN:
      decode_codes<Float8E4M3FN>(bits, packed, count, out);
      return true;
    case DType::kFloat8E4M3FNUZ:
      decode_codes<Float8E4M3FNUZ>(bits, packed, count, out);
      return true;
    case DType::kFloat8E5M2:
      decode_codes<Float8E5M2>(bits, packed, count, out);
      return true;
    case DType::kFloat8E5M2FNUZ:
      decode_codes<Float8E5M2FNUZ>(bits, packed, count, out);
      return true;
    case DType::kFloat4E2M1:
      decode_codes<Float4E2M1>(bits, packed, count, out);
      return true;
    case DType::kFloat6E2M3:
      decode_codes<Float6E2M3>(bits, packed, count, out);
      return true;
    case DType::kFloat6E3M2:
      decode_codes<Float6E3M2>(bits, packed, count, out);
      return true;
    case DType::kFloat8E8M0:
      decode_codes<Float8E8M0>(bits, packed, count, out);
      return true;
    default:
      return false;
  }
}

bool encode_floats(DType type, const float* in, size_t count, void* packed, CastOptions options) {
  switch (type) {
    case DType::kFloat32:
      if (count != 0) std::memcpy(packed, in, count * sizeof(float));
      return true;
    case DType::kFloat16:
      convert_blocks<uint32_t, uint16_t>(in, packed, count,
                                         [](uint32_t f) { return f32_to_f16_bits(f); });
      return true;
    case DType::kBFloat16:
      convert_blocks<uint32_t, uint16_t>(in, packed, count,
                                         [](uint32_t f) { return f32_to_bf16_bits(f); });
      return true;
    default:
      return encode_any(type, in, count, packed, options);
  }
}

bool encode_floats(DType type, const double* in, size_t count, void* packed, CastOptions options) {
  switch (type) {
    case DType::kFloat32:
      convert_blocks<double, float>(in, packed, count,
                                    [](double x) { return static_cast<float>(x); });
      return true;
    case DType::kFloat16:
      convert_blocks<double, uint16_t>(in, packed, count, [](double x) { return Float16(x).bits; });
      return true;
    case DType::kBFloat16:
      convert_blocks<double, uint16_t>(in, packed, count,
                                       [](double x) { return BFloat16(x).bits; });
      return true;
    default:
      return encode_any(type, in, count, packed, options);
  }
}

}  // namespace tombolo
