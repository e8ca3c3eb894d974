#include "ops/kernels/join.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

Result<Tensor> concatenate(const KernelContext& context, std::span<const Tensor* const> inputs,
                           int64_t axis) {
  if (inputs.empty()) return context.error("nothing to join");
  const Tensor& first = *inputs[0];
  TRY(axis, normalize_axis(axis, static_cast<int64_t>(first.rank())));
  const auto at = static_cast<size_t>(axis);
  Dims dims = first.dims();
  dims[at] = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& input = *inputs[k];
    bool fits = input.dtype() == first.dtype() && input.rank() == first.rank();
    for (size_t j = 0; fits && j < dims.size(); ++j) fits = j == at || input.dim(j) == first.dim(j);
    if (!fits)
      return context.error("part " + std::to_string(k) + ", " + to_string(input) +
                           ", does not continue part 0, " + to_string(first) + ", along axis " +
                           std::to_string(axis));
    if (__builtin_add_overflow(dims[at], input.dim(at), &dims[at]))
      return resource_error("the joined axis is too long");
  }
  TRY(Tensor out, context.allocate(first.dtype(), dims));
  if (out.size() == 0) return out;
  const int64_t outer = product(dims, 0, at), inner = product(dims, at + 1, dims.size());
  int64_t offset = 0;
  for (const Tensor* input : inputs) {
    const int64_t run = input->dim(at) * inner;
    const int64_t box[] = {outer, run};
    const int64_t from[] = {run, 1}, to[] = {dims[at] * inner, 1};
    copy_box(*input, 0, from, out, offset, to, box);
    offset += run;
  }
  return out;
}

Result<Tensor> stack(const KernelContext& context, std::span<const Tensor> inputs, int64_t axis,
                     bool reversed) {
  if (inputs.empty()) return context.error("nothing to stack");
  TRY(axis, normalize_axis(axis, static_cast<int64_t>(inputs[0].rank()) + 1));
  std::vector<Tensor> parts;
  std::vector<const Tensor*> pointers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& input = inputs[reversed ? inputs.size() - 1 - k : k];
    if (input.dims() != inputs[0].dims())
      return context.error("element " + std::to_string(k) + ", " + to_string(input) +
                           ", has another shape than the first, " + to_string(inputs[0]));
    Dims dims = input.dims();
    dims.insert(static_cast<uint32_t>(axis), 1);
    parts.push_back(input.reshaped(dims));
  }
  for (const Tensor& part : parts) pointers.push_back(&part);
  return concatenate(context, pointers, axis);
}

Result<Tensor> slice_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                           int64_t begin, int64_t length) {
  Dims dims = tensor.dims();
  dims[axis] = length;
  TRY(Tensor out, context.allocate(tensor.dtype(), dims));
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  const int64_t box[] = {outer, length * inner};
  const int64_t from[] = {tensor.dim(axis) * inner, 1}, to[] = {length * inner, 1};
  copy_box(tensor, begin * inner, from, out, 0, to, box);
  return out;
}

Result<Tensor> element_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                             int64_t index) {
  Dims dims = tensor.dims();
  dims.erase(static_cast<uint32_t>(axis));
  if (product(tensor.dims(), 0, axis) == 1 && !tensor.is_string() && bits_of(tensor.dtype()) >= 8)
    return tensor.part(index * element_count(dims), dims);
  TRY(const Tensor part, slice_along(context, tensor, axis, index, 1));
  return part.reshaped(dims);
}

Status Stack::add(const KernelContext& context, const Tensor& item) {
  if (count_ == 0) {
    dims_ = item.dims();
    TRY(axis_, normalize_axis(axis_, static_cast<int64_t>(item.rank()) + 1));
  }
  if (count_ != 0) {
    const Tensor& first = items_.empty() ? joined_ : items_[0];
    if (item.dims() != dims_ || item.dtype() != first.dtype())
      return context.error("element " + std::to_string(count_) + ", " + to_string(item) +
                           ", has another " + (item.dims() != dims_ ? "shape" : "type") +
                           " than the first, " +
                           to_string(items_.empty() ? joined_.part(0, dims_) : first));
  }
  const bool whole = axis_ == 0 && !reversed_ && !item.is_string() && bits_of(item.dtype()) >= 8;
  if (!whole) {
    items_.push_back(item);
    ++count_;
    return ok();
  }
  if (count_ == 0 || count_ == joined_.dim(0)) {
    constexpr int64_t kFirst = 64;  // of an unknown number
    Dims dims = dims_;
    int64_t room = expected_ < 0 ? kFirst : std::min(expected_, kFirst);
    if (count_ != 0) room = expected_ > count_ ? std::min(2 * count_, expected_) : 2 * count_;
    dims.insert(0, room);
    TRY(Tensor larger, context.allocate(item.dtype(), dims));
    const auto bytes = static_cast<size_t>(count_) * item.bytes().size();
    if (bytes != 0) std::memcpy(larger.data<std::byte>(), joined_.data<std::byte>(), bytes);
    joined_ = std::move(larger);
  }
  const auto bytes = item.bytes();
  if (!bytes.empty())
    std::memcpy(joined_.data<std::byte>() + static_cast<size_t>(count_) * bytes.size(),
                bytes.data(), bytes.size());
  ++count_;
  return ok();
}

Result<Tensor> Stack::take(const KernelContext& context) {
  if (!items_.empty()) return stack(context, items_, axis_, reversed_);
  if (count_ == 0) return context.error("nothing to stack");
  if (count_ == joined_.dim(0)) return std::move(joined_);
  return slice_along(context, joined_, 0, 0, count_);
}

}  // namespace tombolo::ops
