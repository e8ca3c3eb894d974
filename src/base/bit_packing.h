#pragma once

// Elements of 2, 4 and 6 bits in ONNX's raw_data layout: one stream of bits, least significant
// bit of the lowest byte first. So the first of two 4-bit values is the low nibble, and four
// 6-bit values fill three bytes (onnx.proto, TensorProto.raw_data).

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// The code of element `index`. `bits` is 2, 4, 6 or 8.
constexpr uint8_t packed_code(const uint8_t* packed, unsigned bits, size_t index) {
  // index / 4 groups of `bits` / 2 bytes: no overflow for any index of an array that exists.
  const size_t bit = (index % 4) * bits;
  const uint8_t* at = packed + index / 4 * bits / 2 + bit / 8;
  const unsigned offset = bit % 8;
  unsigned value = at[0] >> offset;
  if (offset + bits > 8) value |= static_cast<unsigned>(at[1]) << (8 - offset);
  return static_cast<uint8_t>(value & ((1u << bits) - 1));
}

/// Sets element `index`; bits of `code` beyond `bits` are ignored, neighbours stay.
constexpr void set_packed_code(uint8_t* packed, unsigned bits, size_t index, uint8_t code) {
  const size_t bit = (index % 4) * bits;
  uint8_t* at = packed + index / 4 * bits / 2 + bit / 8;
  const unsigned offset = bit % 8;
  const unsigned mask = ((1u << bits) - 1) << offset;
  const unsigned value = static_cast<unsigned>(code) << offset & mask;
  at[0] = static_cast<uint8_t>((at[0] & ~mask) | value);
  if (offset + bits > 8) at[1] = static_cast<uint8_t>((at[1] & ~(mask >> 8)) | value >> 8);
}

/// A code of `bits` bits as a two's-complement number.
constexpr int8_t sign_extend(uint8_t code, unsigned bits) {
  const unsigned sign = 1u << (bits - 1);
  return static_cast<int8_t>(static_cast<int>((code & (2 * sign - 1)) ^ sign) -
                             static_cast<int>(sign));
}

/// Unpacks elements 0 to count - 1, one byte each.
void unpack_codes(const uint8_t* packed, unsigned bits, size_t count, uint8_t* codes);
/// The same, as signed numbers (int4, int2).
void unpack_signed(const uint8_t* packed, unsigned bits, size_t count, int8_t* values);
/// Packs; unused bits of the last byte are zero. Bits of a code beyond `bits` are ignored, so
/// signed values pack as they are.
void pack_codes(const uint8_t* codes, unsigned bits, size_t count, uint8_t* packed);

}  // namespace tombolo
