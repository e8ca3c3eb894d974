#include "ops/kernels/arguments.h"

#include <algorithm>

namespace tombolo::ops {

Result<std::optional<std::vector<int64_t>>> optional_ints(const KernelContext& context,
                                                          size_t index, const char* attribute) {
  using Ints = std::optional<std::vector<int64_t>>;
  if (context.has_input(index)) {
    TRY(std::vector<int64_t> values, context.input_ints(index));
    return Ints(std::move(values));
  }
  const auto values = context.attributes.get_ints(attribute);
  if (values.empty()) return Ints();
  return Ints(std::vector<int64_t>(values.begin(), values.end()));
}

Result<std::vector<int64_t>> required_ints(const KernelContext& context, size_t index,
                                           const char* attribute) {
  TRY(auto values, optional_ints(context, index, attribute));
  if (values) return std::move(*values);
  // What has no default may be an empty list: the shape of a scalar.
  if (!context.attributes.has(attribute))
    return context.error(std::string(attribute) + " is missing");
  return std::vector<int64_t>();
}

Result<int64_t> scalar_int(const KernelContext& context, size_t index, const char* what) {
  TRY(const std::vector<int64_t> values, context.input_ints(index));
  if (values.size() != 1)
    return context.error(std::string(what) + " must be one integer, has " +
                         std::to_string(values.size()));
  return values[0];
}

Result<DType> dtype_attribute(const KernelContext& context, const char* name, DType fallback) {
  const std::optional<int64_t> number = context.attributes.get_int(name);
  if (!number) return fallback;
  const std::optional<DType> dtype = dtype_from_number(*number);
  if (!dtype)
    return context.error("attribute " + std::string(name) + "=" + std::to_string(*number) +
                         " is not an element type");
  return *dtype;
}

Result<std::vector<int64_t>> normalize_axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    TRY(const int64_t normal, normalize_axis(axis, rank));
    if (std::find(result.begin(), result.end(), normal) != result.end())
      return runtime_error("axis " + std::to_string(axis) + " is given twice");
    result.push_back(normal);
  }
  return result;
}

Result<int64_t> checked_index(int64_t index, int64_t length, int64_t axis) {
  if (index < -length || index >= length)
    return runtime_error("index " + std::to_string(index) + " is out of range for axis " +
                         std::to_string(axis) + " of length " + std::to_string(length));
  return index < 0 ? index + length : index;
}

Status check_index_type(const Tensor& indices) {
  if (indices.dtype() != DType::kInt64 && indices.dtype() != DType::kInt32)
    return runtime_error("indices must be int32 or int64, are " + to_string(indices));
  return ok();
}

Result<std::optional<Tensor>> tensor_attribute(const KernelContext& context, const char* name) {
  const Constant* constant = context.attributes.get_tensor(name);
  if (constant == nullptr) return std::optional<Tensor>();
  TRY(Tensor tensor, constant->value(context.node.graph().storage_ptr()));
  if (tensor.aligned()) return std::optional<Tensor>(std::move(tensor));
  TRY(Tensor aligned, tensor.clone());
  return std::optional<Tensor>(std::move(aligned));
}

Odometer::Odometer(std::span<const int64_t> shape) : dims(shape) { index.resize(dims.size(), 0); }

bool Odometer::next() {
  for (uint32_t j = dims.size(); j-- > 0;) {
    if (++index[j] < dims[j]) return true;
    index[j] = 0;
  }
  return false;
}

int64_t Odometer::dot(std::span<const int64_t> strides) const {
  int64_t sum = 0;
  for (uint32_t j = 0; j < index.size(); ++j) sum += index[j] * strides[j];
  return sum;
}

}  // namespace tombolo::ops
