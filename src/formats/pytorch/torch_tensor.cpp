#include "formats/pytorch/torch_tensor.h"

#include <algorithm>
#include <cstring>

namespace tombolo::torch {

namespace {

// By ScalarType number.
constexpr ElementType kTypes[] = {
    {"uint8", "ByteStorage", DType::kUInt8, 8, 1, false},
    {"int8", "CharStorage", DType::kInt8, 8, 1, false},
    {"int16", "ShortStorage", DType::kInt16, 16, 1, false},
    {"int32", "IntStorage", DType::kInt32, 32, 1, false},
    {"int64", "LongStorage", DType::kInt64, 64, 1, false},
    {"float16", "HalfStorage", DType::kFloat16, 16, 1, false},
    {"float32", "FloatStorage", DType::kFloat32, 32, 1, false},
    {"float64", "DoubleStorage", DType::kFloat64, 64, 1, false},
    {"complex32", "ComplexHalfStorage", DType::kFloat16, 32, 2, false},
    {"complex64", "ComplexFloatStorage", DType::kComplex64, 64, 1, false},
    {"complex128", "ComplexDoubleStorage", DType::kComplex128, 128, 1, false},
    {"bool", "BoolStorage", DType::kBool, 8, 1, false},
    {"qint8", "QInt8Storage", DType::kInt8, 8, 1, true},
    {"quint8", "QUInt8Storage", DType::kUInt8, 8, 1, true},
    {"qint32", "QInt32Storage", DType::kInt32, 32, 1, true},
    {"bfloat16", "BFloat16Storage", DType::kBFloat16, 16, 1, false},
    {"quint4x2", "QUInt4x2Storage", DType::kUInt4, 4, 1, true},
    {"quint2x4", "QUInt2x4Storage", DType::kUInt2, 2, 1, true},
    {"bits1x8", "", DType::kUInt8, 8, 1, false},
    {"bits2x4", "", DType::kUInt8, 8, 1, false},
    {"bits4x2", "", DType::kUInt8, 8, 1, false},
    {"bits8", "", DType::kUInt8, 8, 1, false},
    {"bits16", "", DType::kUInt16, 16, 1, false},
    {"float8_e5m2", "Float8_e5m2Storage", DType::kFloat8E5M2, 8, 1, false},
    {"float8_e4m3fn", "Float8_e4m3fnStorage", DType::kFloat8E4M3FN, 8, 1, false},
    {"float8_e5m2fnuz", "Float8_e5m2fnuzStorage", DType::kFloat8E5M2FNUZ, 8, 1, false},
    {"float8_e4m3fnuz", "Float8_e4m3fnuzStorage", DType::kFloat8E4M3FNUZ, 8, 1, false},
    {"uint16", "UInt16Storage", DType::kUInt16, 16, 1, false},
    {"uint32", "UInt32Storage", DType::kUInt32, 32, 1, false},
    {"uint64", "UInt64Storage", DType::kUInt64, 64, 1, false},
};
// Numbers 30 and later; those between are the sub-byte shells that PyTorch keeps in bytes.
constexpr ElementType kLaterTypes[] = {
    {"float8_e8m0fnu", "", DType::kFloat8E8M0, 8, 1, false},
    {"float4_e2m1fn_x2", "", DType::kFloat4E2M1, 8, 2, false},
    {"uint1", "", DType::kUInt8, 8, 1, false},
    {"uint2", "", DType::kUInt8, 8, 1, false},
    {"uint3", "", DType::kUInt8, 8, 1, false},
    {"uint4", "", DType::kUInt8, 8, 1, false},
    {"uint5", "", DType::kUInt8, 8, 1, false},
    {"uint6", "", DType::kUInt8, 8, 1, false},
    {"uint7", "", DType::kUInt8, 8, 1, false},
    {"int1", "", DType::kInt8, 8, 1, false},
    {"int2", "", DType::kInt8, 8, 1, false},
    {"int3", "", DType::kInt8, 8, 1, false},
    {"int4", "", DType::kInt8, 8, 1, false},
    {"int5", "", DType::kInt8, 8, 1, false},
    {"int6", "", DType::kInt8, 8, 1, false},
    {"int7", "", DType::kInt8, 8, 1, false},
};
struct Alias {
  std::string_view alias, name;
};
constexpr Alias kAliases[] = {
    {"half", "float16"},    {"float", "float32"},    {"double", "float64"},
    {"short", "int16"},     {"int", "int32"},        {"long", "int64"},
    {"chalf", "complex32"}, {"cfloat", "complex64"}, {"cdouble", "complex128"}};

}  // namespace

const ElementType* element_type_of_dtype(std::string_view name) {
  for (const Alias& row : kAliases)
    if (row.alias == name) name = row.name;
  for (const ElementType& row : kTypes)
    if (row.name == name) return &row;
  for (const ElementType& row : kLaterTypes)
    if (row.name == name) return &row;
  return nullptr;
}

const ElementType* element_type_of_storage(std::string_view name) {
  for (const ElementType& row : kTypes)
    if (!row.storage.empty() && row.storage == name) return &row;
  return nullptr;
}

const ElementType* element_type_of_number(int64_t number) {
  constexpr int64_t kCount = sizeof kTypes / sizeof kTypes[0];
  if (number >= 0 && number < kCount) return &kTypes[number];
  if (number == 44) return &kLaterTypes[0];
  if (number == 45) return &kLaterTypes[1];
  return nullptr;
}

bool TorchTensor::is_contiguous() const {
  int64_t step = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    if (sizes[axis] == 0) return true;
    if (sizes[axis] != 1 && strides[axis] != step) return false;
    step *= sizes[axis];
  }
  return true;
}

namespace {

/// Flips the bytes of each real number.
void swap_bytes(std::span<std::byte> bytes, size_t width) {
  for (size_t at = 0; width > 1 && at + width <= bytes.size(); at += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
}

/// Flips the sign of every `step`th real number of `width` bytes (or integer), from `first` on.
void negate(std::span<std::byte> bytes, size_t width, size_t first, size_t step, bool is_real) {
  for (size_t at = first * width; at + width <= bytes.size(); at += step * width) {
    if (is_real) {
      bytes[at + width - 1] ^= std::byte{0x80};
      continue;
    }
    unsigned carry = 1;
    for (size_t i = 0; i < width; ++i) {
      const unsigned sum = (static_cast<unsigned>(bytes[at + i]) ^ 0xFF) + carry;
      bytes[at + i] = static_cast<std::byte>(sum & 0xFF);
      carry = sum >> 8;
    }
  }
}

/// Copies elements of `width` bytes out of strided storage.
void gather(const TorchTensor& from, const std::byte* base, size_t width, std::byte* to,
            int64_t count) {
  const size_t rank = from.sizes.size();
  std::vector<int64_t> index(rank, 0);
  // The innermost axis in one go.
  const int64_t inner = rank == 0 ? 1 : from.sizes[rank - 1];
  const int64_t step = rank == 0 ? 1 : from.strides[rank - 1];
  int64_t at = from.offset;
  for (int64_t done = 0; done < count; done += inner) {
    if (step == 1) {
      std::memcpy(to, base + static_cast<size_t>(at) * width, static_cast<size_t>(inner) * width);
    } else {
      for (int64_t i = 0; i < inner; ++i)
        std::memcpy(to + static_cast<size_t>(i) * width,
                    base + static_cast<size_t>(at + i * step) * width, width);
    }
    to += static_cast<size_t>(inner) * width;
    for (size_t axis = rank == 0 ? 0 : rank - 1; axis-- > 0;) {
      at += from.strides[axis];
      if (++index[axis] < from.sizes[axis]) break;
      at -= from.strides[axis] * from.sizes[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

Result<Weight> to_weight(const TorchTensor& tensor, std::string name, bool data, uint64_t& budget) {
  const ElementType& type = *tensor.type;
  Weight weight;
  weight.name = std::move(name);
  weight.dtype = type.dtype;
  weight.dims = tensor.sizes;
  if (type.lanes == 2 && type.dtype == DType::kFloat16) weight.dims.push_back(2);
  if (type.lanes == 2 && type.dtype == DType::kFloat4E2M1) {
    if (weight.dims.empty()) return unsupported("a float4 pair without a dimension");
    weight.dims.back() *= 2;
  }
  const int64_t count = element_count(tensor.sizes);
  if (count < 0 || element_count(weight.dims) < 0 || tensor.sizes.size() > 64 ||
      tensor.strides.size() != tensor.sizes.size() || tensor.offset < 0)
    return parse_error("a tensor with impossible sizes");
  if (tensor.meta) {
    return unsupported("a tensor on the meta device has no data");
  }
  // The last element must lie in the storage.
  const auto bytes = tensor.storage.blob.bytes;
  const uint64_t capacity = bytes.size() * 8 / type.bits;
  uint64_t last = static_cast<uint64_t>(tensor.offset);
  for (size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
    if (tensor.strides[axis] < 0) return parse_error("a tensor with a negative stride");
    uint64_t reach = 0;
    if (tensor.sizes[axis] > 1 &&
        __builtin_mul_overflow(static_cast<uint64_t>(tensor.sizes[axis] - 1),
                               static_cast<uint64_t>(tensor.strides[axis]), &reach))
      return parse_error("a tensor with impossible strides");
    if (__builtin_add_overflow(last, reach, &last))
      return parse_error("a tensor with impossible strides");
  }
  if (count > 0 && last >= capacity)
    return parse_error("a tensor reaches beyond its storage; the file may be truncated");
  if (!data) return weight;

  const bool is_complex_type = is_complex(type.dtype) || type.name == "complex32";
  const bool change =
      tensor.negative || (tensor.conjugate && is_complex_type) || tensor.storage.big_endian;
  const size_t width = type.bits / 8;
  if (tensor.is_contiguous() && !change && (width != 0 || tensor.offset % (8 / type.bits) == 0)) {
    const uint64_t start = static_cast<uint64_t>(tensor.offset) * type.bits / 8;
    const uint64_t size = (static_cast<uint64_t>(count) * type.bits + 7) / 8;
    weight.tensor = Tensor::view(weight.dtype, weight.dims,
                                 count == 0 ? bytes.first(0) : bytes.subspan(start, size),
                                 tensor.storage.blob.owner);
    return weight;
  }
  const uint64_t size = (static_cast<uint64_t>(count) * type.bits + 7) / 8;
  if (size > bytes.size()) {
    if (size - bytes.size() > budget)
      return resource_error("a tensor of " + std::to_string(size) + " bytes is expanded from " +
                            std::to_string(bytes.size()) + " bytes");
    budget -= size - bytes.size();
  }
  TRY(weight.tensor, Tensor::allocate(weight.dtype, weight.dims));
  const auto out = weight.tensor.mutable_bytes();
  if (count == 0) return weight;
  if (width == 0) {
    // Sub-byte elements one by one, low bits first.
    std::fill(out.begin(), out.end(), std::byte{0});
    const unsigned bits = type.bits, mask = (1u << bits) - 1, per_byte = 8 / bits;
    std::vector<int64_t> index(tensor.sizes.size(), 0);
    int64_t at = tensor.offset;
    for (int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<size_t>(at);
      const unsigned value =
          static_cast<unsigned>(bytes[from / per_byte]) >> (from % per_byte * bits) & mask;
      out[static_cast<size_t>(i) / per_byte] |=
          static_cast<std::byte>(value << (static_cast<size_t>(i) % per_byte * bits));
      for (size_t axis = tensor.sizes.size(); axis-- > 0;) {
        at += tensor.strides[axis];
        if (++index[axis] < tensor.sizes[axis]) break;
        at -= tensor.strides[axis] * tensor.sizes[axis];
        index[axis] = 0;
      }
    }
    return weight;
  }
  gather(tensor, bytes.data(), width, out.data(), count);
  const size_t real = is_complex_type ? width / 2 : width;
  const bool is_real = is_float(type.dtype) || is_complex(type.dtype);
  if (tensor.storage.big_endian) swap_bytes(out, real);
  if (tensor.conjugate && is_complex_type) negate(out, real, 1, 2, true);
  if (tensor.negative) negate(out, real, 0, 1, is_real);
  return weight;
}

}  // namespace tombolo::torch
