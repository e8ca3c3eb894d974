#include "ops/kernels/broadcast.h"

#include <algorithm>

namespace tombolo::ops {

Result<Dims> broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      return runtime_error("shapes " + dims_to_string(a) + " and " + dims_to_string(b) +
                           " do not broadcast: " + std::to_string(x) + " against " +
                           std::to_string(y));
    result.push_back(x == 1 ? y : x);
  }
  return result;
}

Result<Broadcast> Broadcast::of(std::span<const Tensor* const> inputs) {
  Dims output;
  for (const Tensor* input : inputs) {
    TRY(output, broadcast_dims(output, input->dims()));
  }
  return to(output, inputs);
}

Result<Broadcast> Broadcast::to(std::span<const int64_t> output,
                                std::span<const Tensor* const> inputs) {
  Broadcast result;
  result.output.assign(output);
  result.count = element_count(output);
  if (result.count < 0)
    return resource_error("a tensor of shape " + dims_to_string(output) + " is impossible");

  const size_t rank = output.size();
  std::vector<Dims> strides(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Dims& dims = inputs[k]->dims();
    strides[k].resize(static_cast<uint32_t>(rank), 0);
    if (dims.size() > rank)
      return runtime_error("shape " + dims_to_string(dims) + " does not broadcast to " +
                           dims_to_string(output));
    int64_t stride = 1;
    for (size_t j = dims.size(); j-- > 0;) {
      const size_t axis = j + rank - dims.size();
      if (dims[j] != 1 && dims[j] != output[axis])
        return runtime_error("shape " + dims_to_string(dims) + " does not broadcast to " +
                             dims_to_string(output));
      strides[k][axis] = dims[j] == 1 ? 0 : stride;
      stride *= dims[j];
    }
  }

  // Merge axis j into the axis before it where all inputs run on; axes of length 1 vanish.
  Dims merged;
  result.strides.resize(inputs.size());
  for (size_t j = 0; j < rank; ++j) {
    if (output[j] == 1) continue;
    bool joins = !merged.empty();
    for (size_t k = 0; joins && k < inputs.size(); ++k)
      joins = result.strides[k].back() == strides[k][j] * output[j];
    if (joins) merged.back() *= output[j];
    if (!joins) merged.push_back(output[j]);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (joins) result.strides[k].pop_back();
      result.strides[k].push_back(strides[k][j]);
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    result.steps.push_back(merged.empty() ? 0 : static_cast<uint8_t>(result.strides[k].back()));
    if (!merged.empty()) result.strides[k].pop_back();
  }
  if (!merged.empty()) {
    result.inner = merged.back();
    merged.pop_back();
  }
  result.outer = std::move(merged);
  return result;
}

BroadcastCursor::BroadcastCursor(const Broadcast& broadcast, int64_t begin, int64_t end)
    : broadcast_(&broadcast),
      at_(begin),
      end_(std::min(end, broadcast.count)),
      column_(0),
      offsets_(broadcast.steps.size(), 0) {
  const Dims& outer = broadcast.outer;
  index_.resize(outer.size(), 0);
  if (done()) return;
  column_ = begin % broadcast.inner;
  int64_t row = begin / broadcast.inner;
  for (uint32_t j = outer.size(); j-- > 0;) {
    index_[j] = row % outer[j];
    row /= outer[j];
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += index_[j] * broadcast.strides[k][j];
  }
}

int64_t BroadcastCursor::run(int64_t limit) const {
  return std::min({limit, broadcast_->inner - column_, end_ - at_});
}

void BroadcastCursor::advance(int64_t count) {
  at_ += count;
  column_ += count;
  if (column_ < broadcast_->inner) return;
  column_ = 0;
  const Dims& outer = broadcast_->outer;
  for (uint32_t j = outer.size(); j-- > 0;) {
    const bool carry = ++index_[j] == outer[j];
    for (size_t k = 0; k < offsets_.size(); ++k)
      offsets_[k] += broadcast_->strides[k][j] * (carry ? 1 - outer[j] : 1);
    if (!carry) return;
    index_[j] = 0;
  }
}

}  // namespace tombolo::ops
