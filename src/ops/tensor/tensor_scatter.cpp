#include "ops/expansions.h"
#include "ops/infer_generic.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_tensor_scatter(KernelContext& context) {
  TRY(const Tensor* cache, context.input(0));
  TRY(const Tensor* update, context.input(1));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -2), static_cast<int64_t>(cache->rank())));
  const auto at = static_cast<size_t>(axis);
  if (axis == 0) return context.error("axis 0 is the batch and cannot be written along");
  bool fits = update->dtype() == cache->dtype() && update->rank() == cache->rank();
  for (size_t j = 0; fits && j < cache->rank(); ++j)
    fits = j == at ? update->dim(j) <= cache->dim(j) : update->dim(j) == cache->dim(j);
  if (!fits)
    return context.error("update " + to_string(*update) + " does not fit the cache " +
                         to_string(*cache));
  const Text mode = context.attributes.get_string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return context.error("mode must be linear or circular, is \"" + std::string(mode) + "\"");
  const int64_t batch = cache->dim(0), length = cache->dim(at), steps = update->dim(at);
  TRY(const Tensor* given, context.optional_input(2));
  std::vector<int64_t> starts(static_cast<size_t>(given != nullptr ? batch : 0));
  if (given != nullptr) {
    CHECK_OK(check_index_type(*given));
    if (given->size() != batch)
      return context.error("write_indices must have one element for each of " +
                           std::to_string(batch) + " samples, is " + to_string(*given));
    for (size_t b = 0; b < starts.size(); ++b) {
      starts[b] = given->get_int64(static_cast<int64_t>(b));
      if (starts[b] < 0 || (mode == "linear" && starts[b] > length - steps))
        return context.error("write index " + std::to_string(starts[b]) + " of sample " +
                             std::to_string(b) + " is out of range for a cache of length " +
                             std::to_string(length));
    }
  }
  TRY(Tensor * out, context.output(0, cache->dtype(), cache->dims()));
  copy_elements(*cache, 0, *out, 0, cache->size());
  if (update->size() == 0) return ok();
  const int64_t inner = product(cache->dims(), at + 1, cache->rank());
  const int64_t middle = product(cache->dims(), 1, at);
  for (int64_t row = 0; row < batch * middle; ++row) {
    const int64_t start = given != nullptr ? starts[static_cast<size_t>(row / middle)] : 0;
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t place = (start % length + s) % length;
      copy_elements(*update, (row * steps + s) * inner, *out, (row * length + place) * inner,
                    inner);
    }
  }
  return ok();
}

}  // namespace

OPERATOR(TensorScatter) = {
    .name = "TensorScatter",
    .doc = "writes an update into a cache tensor at a position per batch",
    .versions = {24},
    .inputs =
        {
            {"past_cache", "T"},
            {"update", "T"},
            {"write_indices", "tensor(int64)", kOptional},
        },
    .outputs = {{"present_cache", "T"}},
    .attributes =
        {
            {"axis", -2},
            {"mode", "linear"},
        },
    .types = {{"T", {{24, kAll | kFp8 | kInt4 | kBf16 | kFp4 | kE8m0}}}},
    .infer = infer_unary,
    .reference = run_tensor_scatter,
    .down = {{24, 0, expand_tensor_scatter}},
};

}  // namespace tombolo::ops
