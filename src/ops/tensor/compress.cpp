#include <numeric>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_compress(InferContext& context) {
  CHECK_OK(expect_rank(context, 1, 1));
  // How many are picked: known when the condition is.
  SymDim picked;
  const SymShape* condition = context.ints(1);
  if (condition != nullptr) {
    picked = 0;
    for (const SymDim& flag : *condition) picked = picked + flag;
  }
  if (picked.is_unknown()) picked = context.host.fresh_symbol("compressed");
  const auto axis = context.attributes.get_int("axis");
  const SymShape* data = context.shape(0);
  if (!axis) {
    set_shape(context, 0, {picked});
    return ok();
  }
  if (data == nullptr) return ok();
  TRY(const size_t index, checked_axis(context, *axis, data->size()));
  SymShape out = *data;
  out[index] = picked;
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_compress(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const Tensor* condition, context.input(1));
  if (condition->dtype() != DType::kBool || condition->rank() != 1)
    return context.error("the condition must be a list of bools, is " + to_string(*condition));
  const std::optional<int64_t> given = context.attributes.get_int("axis");
  size_t axis = 0;
  const Tensor source =
      given
          ? *data
          : data->reshaped(std::span<const int64_t>(std::initializer_list<int64_t>{data->size()}));
  if (given) {
    TRY(const int64_t normal, normalize_axis(*given, static_cast<int64_t>(data->rank())));
    axis = static_cast<size_t>(normal);
  }
  const int64_t length = source.dim(axis);
  // Without a branch: a random condition is guessed wrong every other time.
  const int64_t flags = std::min(condition->size(), length);
  std::vector<int64_t> kept(static_cast<size_t>(flags) + 1);
  size_t count = 0;
  for (int64_t i = 0; i < flags; ++i) {
    kept[count] = i;
    count += condition->data<uint8_t>()[i] != 0;
  }
  kept.resize(count);
  for (int64_t i = length; i < condition->size(); ++i)
    if (condition->data<bool>()[i])
      return context.error("the condition keeps index " + std::to_string(i) +
                           " of an axis of length " + std::to_string(length));
  Dims dims = source.dims();
  dims[axis] = static_cast<int64_t>(kept.size());
  TRY(Tensor * out, context.output(0, source.dtype(), dims));
  if (out->size() == 0) return ok();
  const int64_t shape[] = {product(dims, 0, axis), length, product(dims, axis + 1, dims.size())};
  const auto single = [&]<typename T>(T) {
    const T* from = source.data<T>();
    T* to = out->data<T>();
    for (int64_t o = 0; o < shape[0]; ++o, from += length)
      for (const int64_t place : kept) *to++ = from[place];
  };
  if (shape[2] == 1 && bits_of(source.dtype()) == 32) {
    single(uint32_t{});
    return ok();
  }
  if (shape[2] == 1 && bits_of(source.dtype()) == 64 && !is_complex(source.dtype())) {
    single(uint64_t{});
    return ok();
  }
  std::vector<int64_t> tables[3] = {{}, std::move(kept), {}};
  for (size_t j = 0; j < 3; j += 2) {
    tables[j].resize(static_cast<size_t>(shape[j]));
    std::iota(tables[j].begin(), tables[j].end(), 0);
  }
  copy_by_tables(source, shape, tables, nullptr, *out);
  return ok();
}

}  // namespace

OPERATOR(Compress) = {
    .name = "Compress",
    .doc = "keeps the slices whose flag is set",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"input", "T"},
            {"condition", "T1"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", Attr::kInt}},
    .types =
        {
            {"T", {{9, kAll}, {28, kBf16}}},
            {"T1", {{9, kBool}}},
        },
    .infer = infer_compress,
    .reference = run_compress,
    .down = {{11, 9, step_axis_from_front}},
};

}  // namespace tombolo::ops
