// Tensor's element access by index, any numeric type.

#include <cstring>

#include "base/bit_packing.h"
#include "base/float_formats.h"
#include "ir/tensor.h"

namespace tombolo {

namespace {

template <typename T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(std::byte* data, int64_t index, T value) {
  std::memcpy(data + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

uint8_t code_at(const std::byte* data, DType dtype, int64_t index) {
  return packed_code(reinterpret_cast<const uint8_t*>(data), bits_of(dtype),
                     static_cast<size_t>(index));
}

/// Calls visit(T{}) with the C++ type that holds one element of a whole-byte type. False for the
/// sub-byte types, complex and strings.
template <typename Visit>
bool with_element_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kFloat32:
      visit(float{});
      return true;
    case DType::kFloat64:
      visit(double{});
      return true;
    case DType::kInt8:
      visit(int8_t{});
      return true;
    case DType::kInt16:
      visit(int16_t{});
      return true;
    case DType::kInt32:
      visit(int32_t{});
      return true;
    case DType::kInt64:
      visit(int64_t{});
      return true;
    case DType::kBool:
    case DType::kUInt8:
      visit(uint8_t{});
      return true;
    case DType::kUInt16:
      visit(uint16_t{});
      return true;
    case DType::kUInt32:
      visit(uint32_t{});
      return true;
    case DType::kUInt64:
      visit(uint64_t{});
      return true;
    case DType::kFloat16:
      visit(Float16{});
      return true;
    case DType::kBFloat16:
      visit(BFloat16{});
      return true;
    case DType::kFloat8E4M3FN:
      visit(Float8E4M3FN{});
      return true;
    case DType::kFloat8E4M3FNUZ:
      visit(Float8E4M3FNUZ{});
      return true;
    case DType::kFloat8E5M2:
      visit(Float8E5M2{});
      return true;
    case DType::kFloat8E5M2FNUZ:
      visit(Float8E5M2FNUZ{});
      return true;
    case DType::kFloat8E8M0:
      visit(Float8E8M0{});
      return true;
    default:
      return false;
  }
}

/// A double as an integer: truncated, out of range saturates, NaN is 0 (docs/numerics.md).
int64_t to_int64(double value) {
  if (!(value > -9223372036854775808.0)) return value != value ? 0 : INT64_MIN;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  return static_cast<int64_t>(value);
}

}  // namespace

double Tensor::get_double(int64_t index) const {
  double result = 0;
  if (with_element_type(dtype_, [&]<typename T>(T) {
        if constexpr (std::is_arithmetic_v<T>)
          result = static_cast<double>(load<T>(data_, index));
        else
          result = static_cast<float>(load<T>(data_, index));
      }))
    return result;
  switch (dtype_) {
    case DType::kUInt4:
    case DType::kUInt2:
      return code_at(data_, dtype_, index);
    case DType::kInt4:
    case DType::kInt2:
      return sign_extend(code_at(data_, dtype_, index), bits_of(dtype_));
    case DType::kFloat4E2M1:
      return decode_float<kE2M1>(code_at(data_, dtype_, index));
    case DType::kFloat6E2M3:
      return decode_float<kE2M3>(code_at(data_, dtype_, index));
    case DType::kFloat6E3M2:
      return decode_float<kE3M2>(code_at(data_, dtype_, index));
    default:
      return 0;  // complex and strings have no real value: callers check the type first
  }
}

int64_t Tensor::get_int64(int64_t index) const {
  int64_t result = 0;
  if (with_element_type(dtype_, [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T>)
          result = static_cast<int64_t>(load<T>(data_, index));
        else if constexpr (std::is_arithmetic_v<T>)
          result = to_int64(static_cast<double>(load<T>(data_, index)));
        else
          result = to_int64(static_cast<float>(load<T>(data_, index)));
      }))
    return result;
  return to_int64(get_double(index));
}

void Tensor::set_double(int64_t index, double value) {
  if (with_element_type(dtype_, [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T>) {
          if (dtype_ == DType::kBool)
            store<uint8_t>(data_, index, value != 0);
          else if (std::is_same_v<T, uint64_t> && value >= 9223372036854775808.0)
            store<uint64_t>(
                data_, index,
                value >= 18446744073709551616.0 ? UINT64_MAX : static_cast<uint64_t>(value));
          else
            store<T>(data_, index, static_cast<T>(to_int64(value)));
        } else if constexpr (std::is_arithmetic_v<T>) {
          store<T>(data_, index, static_cast<T>(value));
        } else {
          store<T>(data_, index, T(value));
        }
      }))
    return;
  auto* packed = reinterpret_cast<uint8_t*>(data_);
  const auto at = static_cast<size_t>(index);
  switch (dtype_) {
    case DType::kFloat4E2M1:
      return set_packed_code(packed, 4, at, Float4E2M1(value).bits);
    case DType::kFloat6E2M3:
      return set_packed_code(packed, 6, at, Float6E2M3(value).bits);
    case DType::kFloat6E3M2:
      return set_packed_code(packed, 6, at, Float6E3M2(value).bits);
    case DType::kUInt4:
    case DType::kInt4:
    case DType::kUInt2:
    case DType::kInt2:
      return set_packed_code(packed, bits_of(dtype_), at, static_cast<uint8_t>(to_int64(value)));
    case DType::kComplex64:
      store<float>(data_, 2 * index, static_cast<float>(value));
      return store<float>(data_, 2 * index + 1, 0);
    case DType::kComplex128:
      store<double>(data_, 2 * index, value);
      return store<double>(data_, 2 * index + 1, 0);
    default:
      return;
  }
}

void Tensor::set_int64(int64_t index, int64_t value) {
  if (with_element_type(dtype_, [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T>)
          store<T>(data_, index, dtype_ == DType::kBool ? T(value != 0) : static_cast<T>(value));
        else if constexpr (std::is_arithmetic_v<T>)
          store<T>(data_, index, static_cast<T>(value));
        else
          store<T>(data_, index, T(value));
      }))
    return;
  if (is_integer(dtype_))
    return set_packed_code(reinterpret_cast<uint8_t*>(data_), bits_of(dtype_),
                           static_cast<size_t>(index), static_cast<uint8_t>(value));
  set_double(index, static_cast<double>(value));
}

}  // namespace tombolo
