// MurmurHash3 of numbers and strings, 32 bits.

#include <cstring>
#include <string_view>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

uint32_t rotl(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

/// The x86 32-bit variant of MurmurHash3, which is in the public domain.
uint32_t murmur3(std::string_view bytes, uint32_t seed) {
  const auto mix = [](uint32_t block) { return rotl(block * 0xcc9e2d51u, 15) * 0x1b873593u; };
  uint32_t hash = seed;
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t block;
    std::memcpy(&block, bytes.data() + at, 4);
    hash = rotl(hash ^ mix(block), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t i = bytes.size(); i > at; --i)
    rest = rest << 8 | static_cast<unsigned char>(bytes[i - 1]);
  if (at != bytes.size()) hash ^= mix(rest);
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

DType result_type(const AttributeReader& attributes) {
  return attributes.get_int("positive", 1) != 0 ? DType::kUInt32 : DType::kInt32;
}

Status run_murmur_hash(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto seed = static_cast<uint32_t>(context.attributes.get_int("seed", 0));
  TRY(Tensor * y, context.output(0, result_type(context.attributes), x->dims()));
  const size_t width = x->is_string() ? 0 : static_cast<size_t>(bits_of(x->dtype())) / 8;
  if (!x->is_string() && width != 4 && width != 8)
    return context.error("X must hold strings or numbers of 32 or 64 bits, is " + to_string(*x));
  for (int64_t i = 0; i < x->size(); ++i) {
    const std::string_view bytes =
        x->is_string() ? std::string_view(x->strings()[static_cast<size_t>(i)])
                       : std::string_view(reinterpret_cast<const char*>(x->bytes().data()) +
                                              static_cast<size_t>(i) * width,
                                          width);
    const uint32_t hash = murmur3(bytes, seed);
    std::memcpy(y->mutable_bytes().data() + static_cast<size_t>(i) * 4, &hash, 4);
  }
  return ok();
}

Status infer_murmur_hash(InferContext& context) {
  InferType type = InferType::tensor(result_type(context.attributes));
  if (const SymShape* x = context.shape(0)) type.shape = *x;
  context.set_output(0, std::move(type));
  return ok();
}

}  // namespace

OPERATOR(microsoft_MurmurHash3) = {
    .name = "MurmurHash3",
    .domain = "com.microsoft",
    .doc = "a hash of 32 bits for each element",
    .versions = {1},
    .inputs =
        {
            {"X", "T1"},
        },
    .outputs =
        {
            {"Y", "T2"},
        },
    .attributes =
        {
            {"positive", 1},
            {"seed", 0},
        },
    .types =
        {
            {"T1", {{1, kInt32s | kFloats32 | kStr}}},
            {"T2", {{1, kI32 | kU32}}},
        },
    .infer = infer_murmur_hash,
    .reference = run_murmur_hash,
};

}  // namespace tombolo::ops
