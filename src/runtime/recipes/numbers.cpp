#include "runtime/recipes/numbers.h"

#include <charconv>

namespace tombolo {

namespace {

double number_at(const Tensor& tensor, int64_t index) {
  if (tensor.is_string()) {
    std::string_view text = tensor.strings()[static_cast<size_t>(index)];
    if (text.starts_with('s')) text.remove_prefix(1);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  if (tensor.dtype() == DType::kComplex64)
    return static_cast<double>(tensor.data<float>()[2 * index]);
  if (tensor.dtype() == DType::kComplex128) return tensor.data<double>()[2 * index];
  return is_float(tensor.dtype()) ? tensor.get_double(index)
                                  : static_cast<double>(tensor.get_int64(index));
}

}  // namespace

std::vector<double> usual_numbers(DType dtype, bool positive) {
  if (dtype == DType::kInt2)
    return positive ? std::vector<double>{1} : std::vector<double>{1, -2, 0, -1};
  if (dtype == DType::kFloat8E8M0) return {1, 2, 0.5, 4, 2};
  if (dtype == DType::kBool) return {1, 0, 0, 1, 1};
  if (positive) return {1, 2, 1, 3, 2};
  if (is_float(dtype) || is_complex(dtype)) return {0.5, -1, 2, 0, 1.5, -0.5, 3};
  if (is_signed_integer(dtype)) return {1, -2, 3, 0, -1, 2};
  return {1, 0, 3, 2, 1};
}

void put_number(Tensor& tensor, int64_t index, double value, bool text) {
  const DType dtype = tensor.dtype();
  if (is_string(dtype)) {
    const std::string digits = std::to_string(static_cast<int64_t>(value));
    tensor.strings()[static_cast<size_t>(index)] = text ? digits : "s" + digits;
  } else if (dtype == DType::kComplex64) {
    tensor.data<float>()[2 * index] = static_cast<float>(value);
    tensor.data<float>()[2 * index + 1] = 0;
  } else if (dtype == DType::kComplex128) {
    tensor.data<double>()[2 * index] = value;
    tensor.data<double>()[2 * index + 1] = 0;
  } else if (is_float(dtype)) {
    tensor.set_double(index, value);
  } else {
    tensor.set_int64(index, static_cast<int64_t>(value));
  }
}

void collect_numbers(const RunValue& value, Numbers& numbers) {
  switch (value.kind()) {
    case RunValue::Kind::kTensor:
      numbers.shapes.push_back(value.tensor().dims());
      for (int64_t i = 0; i < value.tensor().size(); ++i)
        numbers.values.push_back(number_at(value.tensor(), i));
      return;
    case RunValue::Kind::kSequence:
      for (size_t i = 0; i < value.sequence().size(); ++i)
        collect_numbers(value.sequence().item(i), numbers);
      return;
    case RunValue::Kind::kOptional:
      if (value.optional_content() != nullptr) collect_numbers(*value.optional_content(), numbers);
      return;
    case RunValue::Kind::kMap:
      for (size_t i = 0; i < value.map().size(); ++i)
        collect_numbers(value.map().value(i), numbers);
      return;
    default:
      return;
  }
}

}  // namespace tombolo
