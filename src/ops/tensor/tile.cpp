#include <algorithm>
#include <cstring>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/parts.h"
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

/// Axes of whole bytes and how often each is repeated; only the first may be repeated once.
struct Tiles {
  Dims dims, repeats;
  Dims in, out;  ///< bytes of one step along each axis

  Tiles(std::span<const int64_t> shape, std::span<const int64_t> times, int64_t width) {
    for (size_t j = 0; j < shape.size(); ++j) {
      // What is not repeated continues the axis before it.
      if (times[j] == 1 && !dims.empty()) {
        dims.back() *= shape[j];
      } else if (times[j] != 1 || shape[j] != 1) {
        dims.push_back(shape[j]);
        repeats.push_back(times[j]);
      }
    }
    if (dims.empty()) dims = repeats = {1};
    in.resize(dims.size(), width);
    out.resize(dims.size(), width);
    for (size_t j = dims.size(); j-- > 1;) {
      in[j - 1] = in[j] * dims[j];
      out[j - 1] = out[j] * dims[j] * repeats[j];
    }
  }

  /// The first `count` bytes of `to` fill up to `total`, over and over.
  static void repeat(std::byte* to, int64_t count, int64_t total) {
    for (int64_t filled = count; filled < total; filled += std::min(filled, total - filled))
      std::memcpy(to + filled, to, static_cast<size_t>(std::min(filled, total - filled)));
  }
  /// Rows of one element: each as often as the last axis is repeated.
  template <size_t kBytes>
  void fill_rows(size_t axis, int64_t rows, const std::byte* from, std::byte* to) const {
    const int64_t times = repeats[axis + 1], step = out[axis];
    for (int64_t i = 0; i < rows; ++i, from += kBytes, to += step) {
      uint64_t value = 0;
      std::memcpy(&value, from, kBytes);
      for (int64_t k = 0; k < times; ++k)
        std::memcpy(to + static_cast<size_t>(k) * kBytes, &value, kBytes);
    }
  }
  /// What lies behind some steps along an axis, which is not the last one.
  void steps(size_t axis, int64_t count, const std::byte* from, std::byte* to) const {
    const bool one = axis + 2 == dims.size() && dims[axis + 1] == 1;
    if (one && in[axis] == 4) return fill_rows<4>(axis, count, from, to);
    if (one && in[axis] == 8) return fill_rows<8>(axis, count, from, to);
    for (int64_t i = 0; i < count; ++i) block(axis + 1, from + i * in[axis], to + i * out[axis]);
  }
  void block(size_t axis, const std::byte* from, std::byte* to) const {
    if (axis + 1 == dims.size())
      std::memcpy(to, from, static_cast<size_t>(dims[axis] * in[axis]));
    else
      steps(axis, dims[axis], from, to);
    repeat(to, dims[axis] * out[axis], dims[axis] * out[axis] * repeats[axis]);
  }
  /// All, by several threads.
  void run(const std::byte* from, std::byte* to) const {
    constexpr int64_t kPart = int64_t{1} << 16;
    const int64_t count = dims[0] * out[0], total = count * repeats[0];
    if (total <= kPart) return block(0, from, to);
    parallel_parts(dims[0], std::max<int64_t>(1, kPart / out[0]), [&](int64_t begin, int64_t end) {
      if (dims.size() == 1)
        std::memcpy(to + begin * out[0], from + begin * in[0],
                    static_cast<size_t>((end - begin) * in[0]));
      else
        steps(0, end - begin, from + begin * in[0], to + begin * out[0]);
    });
    // A period long enough that its copies are, and short enough for the first cache.
    constexpr int64_t kPeriod = int64_t{1} << 13;
    const int64_t period = std::min(total, (kPeriod + count - 1) / count * count);
    repeat(to, count, period);
    parallel_parts(total - period, kPart, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        const int64_t source = at % period, n = std::min(period - source, end - at);
        std::memcpy(to + period + at, to + source, static_cast<size_t>(n));
        at += n;
      }
    });
  }
};

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
  const auto width = static_cast<int64_t>(bytes_of(data->dtype()));
  if (width != 0 && !data->is_string()) {
    Tiles(data->dims(), repeats, width).run(data->data<std::byte>(), out->data<std::byte>());
    return ok();
  }
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
