#include "base/bit_packing.h"

#include <cstring>

namespace tombolo {
namespace {

// Four elements of any width fill `kBits` / 2 whole bytes.
template <unsigned kBits>
void unpack_groups(const uint8_t* packed, size_t groups, uint8_t* codes) {
  constexpr unsigned mask = (1u << kBits) - 1;
  constexpr size_t bytes = kBits / 2;
  for (size_t g = 0; g < groups; ++g) {
    uint32_t word = 0;
    for (size_t b = 0; b < bytes; ++b) word |= uint32_t{packed[g * bytes + b]} << (8 * b);
    for (size_t i = 0; i < 4; ++i) {
      codes[g * 4 + i] = static_cast<uint8_t>(word >> (kBits * i) & mask);
    }
  }
}

template <unsigned kBits>
void pack_groups(const uint8_t* codes, size_t groups, uint8_t* packed) {
  constexpr unsigned mask = (1u << kBits) - 1;
  constexpr size_t bytes = kBits / 2;
  for (size_t g = 0; g < groups; ++g) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word |= (codes[g * 4 + i] & mask) << (kBits * i);
    for (size_t b = 0; b < bytes; ++b)
      packed[g * bytes + b] = static_cast<uint8_t>(word >> (8 * b));
  }
}

}  // namespace

void unpack_codes(const uint8_t* packed, unsigned bits, size_t count, uint8_t* codes) {
  const size_t groups = count / 4;
  switch (bits) {
    case 2:
      unpack_groups<2>(packed, groups, codes);
      break;
    case 4:
      unpack_groups<4>(packed, groups, codes);
      break;
    case 6:
      unpack_groups<6>(packed, groups, codes);
      break;
    default:
      if (count != 0) std::memcpy(codes, packed, count);
      return;
  }
  for (size_t i = groups * 4; i < count; ++i) codes[i] = packed_code(packed, bits, i);
}

void unpack_signed(const uint8_t* packed, unsigned bits, size_t count, int8_t* values) {
  auto* codes = reinterpret_cast<uint8_t*>(values);
  unpack_codes(packed, bits, count, codes);
  for (size_t i = 0; i < count; ++i) values[i] = sign_extend(codes[i], bits);
}

void pack_codes(const uint8_t* codes, unsigned bits, size_t count, uint8_t* packed) {
  const size_t groups = count / 4;
  switch (bits) {
    case 2:
      pack_groups<2>(codes, groups, packed);
      break;
    case 4:
      pack_groups<4>(codes, groups, packed);
      break;
    case 6:
      pack_groups<6>(codes, groups, packed);
      break;
    default:
      if (count != 0) std::memcpy(packed, codes, count);
      return;
  }
  const size_t tail = count % 4;
  if (tail == 0) return;
  std::memset(packed + groups * (bits / 2), 0, (tail * bits + 7) / 8);
  for (size_t i = groups * 4; i < count; ++i) set_packed_code(packed, bits, i, codes[i]);
}

}  // namespace tombolo
