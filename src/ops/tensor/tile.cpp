#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_tile(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  if (context.opset < 6) {  // tiles and axis: scalars
    SymShape out = *data;
    const auto tiles = scalar_of(context, 1), axis = scalar_of(context, 2);
    if (!axis || !axis->is_value()) {
      set_rank(context, 0, data->size());
      return ok();
    }
    TRY(const size_t index, checked_axis(context, axis->value(), data->size()));
    out[index] = tiles ? out[index] * *tiles : SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  const auto repeats = elements_or_unknown(context, 1);
  if (!repeats) {
    set_rank(context, 0, data->size());
    return ok();
  }
  if (repeats->size() != data->size())
    return context.error("repeats holds " + std::to_string(repeats->size()) +
                         " numbers for an input of rank " + std::to_string(data->size()));
  SymShape out;
  for (size_t i = 0; i < data->size(); ++i) out.push_back((*data)[i] * (*repeats)[i]);
  const SymShape* elements = context.ints(0);
  if (elements != nullptr && out.size() == 1 && out[0].is_value() && out[0].value() >= 0 &&
      out[0].value() <= kMaxElements && !elements->empty()) {
    SymShape tiled;
    for (size_t i = 0; i < static_cast<size_t>(out[0].value()); ++i)
      tiled.push_back((*elements)[i % elements->size()]);
    context.set_value(0, std::move(tiled));
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
/// How often each axis is repeated. Before operator set 6: one axis, by a number.
Result<std::vector<int64_t>> tile_repeats(const KernelContext& context, const Tensor& data) {
  if (context.opset >= 6) return context.input_ints(1);
  TRY(const Tensor* tiles, context.input(1));
  TRY(const Tensor* axis, context.input(2));
  if (tiles->size() != 1 || axis->size() != 1)
    return context.error("tiles and axis must be one number each");
  TRY(const int64_t at, normalize_axis(axis->get_int64(0), static_cast<int64_t>(data.rank())));
  std::vector<int64_t> repeats(data.rank(), 1);
  repeats[static_cast<size_t>(at)] = tiles->get_int64(0);
  return repeats;
}

Status run_tile(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> repeats, tile_repeats(context, *data));
  if (repeats.size() != data->rank())
    return context.error(std::to_string(repeats.size()) + " repeats do not fit " +
                         to_string(*data));
  // Each axis becomes two: the repetition, which stands still in the input, and the axis.
  const Dims strides = contiguous_strides(data->dims());
  Dims dims, box, from;
  for (size_t j = 0; j < repeats.size(); ++j) {
    int64_t length = 0;
    if (repeats[j] < 0)
      return context.error("repeats " + dims_to_string(repeats) + " are negative");
    if (__builtin_mul_overflow(repeats[j], data->dim(j), &length))
      return resource_error("repeats " + dims_to_string(repeats) + " are too large");
    dims.push_back(length);
    box.push_back(repeats[j]);
    box.push_back(data->dim(j));
    from.push_back(0);
    from.push_back(strides[j]);
  }
  TRY(Tensor * out, context.output(0, data->dtype(), dims));
  if (out->size() == 0) return ok();
  copy_box(*data, 0, from, *out, 0, contiguous_strides(box), box);
  return ok();
}

}  // namespace

namespace {

/// `tiles` along `axis` become a count for each axis.
Status step_repeats(StepContext& step) {
  Node& node = step.node;
  const std::optional<size_t> rank = step.rank(0);
  const std::optional<std::vector<int64_t>> axes = step.constant_ints(2);
  if (!rank || !axes || axes->size() != 1) return step.cannot("axis or rank is not known");
  const int64_t axis = (*axes)[0];
  if (axis < 0 || axis >= static_cast<int64_t>(*rank)) return step.cannot("axis is out of range");
  std::vector<int64_t> ones(*rank, 1);
  if (const auto tiles = step.constant_ints(1); tiles && tiles->size() == 1) {
    ones[static_cast<size_t>(axis)] = (*tiles)[0];
    node.remove_input(2);
    node.set_input(1, step.ints(ones, "repeats"));
    return ok();
  }
  if (!step.has_input(1)) return step.cannot("there are no tiles");
  const std::span<const int64_t> one(ones);
  Value* const head = step.ints(one.first(static_cast<size_t>(axis)), "ones");
  Value* const tail = step.ints(one.subspan(static_cast<size_t>(axis) + 1), "ones");
  Node& cast = step.before("Cast", {node.input(1)}, "tiles");
  cast.set_int("to", static_cast<int64_t>(DType::kInt64));
  Node& count = step.before("Reshape", {cast.output(0), step.ints({1}, "one")}, "tiles");
  Node& repeats = step.before("Concat", {head, count.output(0), tail}, "repeats");
  repeats.set_int("axis", 0);
  node.remove_input(2);
  node.set_input(1, repeats.output(0));
  return ok();
}

}  // namespace

OPERATOR(Tile) = {
    .name = "Tile",
    .doc = "repeats along each axis",
    .versions = {1, 6, 13},
    .inputs =
        {
            {"input", "T"},
            {"tiles", "T", kSingle, {.until = 5}},
            {"axis", "T", kSingle, {.until = 5}},
            {"repeats", "T1", kSingle, {.since = 6}},
        },
    .outputs = {{"output", "T"}},
    .types =
        {
            {"T", {{1, kFloats}, {6, kInts | kComplex | kStr | kBool}, {13, kBf16}}},
            {"T1", {{1, kI64}}},
        },
    .infer = infer_tile,
    .reference = run_tile,
    .up = {{1, 6, step_repeats}},
};

}  // namespace tombolo::ops
