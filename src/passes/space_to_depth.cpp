// Pixels of a block that become channels, by SpaceToDepth or as YOLO's Focus spells it (a Concat of
// every second pixel of every second row, from each of the four beginnings): Conv reads the image
// itself by a kernel as much larger, which computes the same sums and moves nothing before.

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "passes/attributes.h"
#include "passes/each_node.h"
#include "passes/passes.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

constexpr int64_t kMostChannels = 4;  ///< of the image: more are better off as they are
constexpr int64_t kMostSize = 4;      ///< of a block

/// Channels [q C, (q + 1) C) hold the pixels of an image that lie at place[q] of their blocks.
struct PixelBlocks {
  Value* image = nullptr;
  int64_t size = 0;
  std::vector<std::array<int64_t, 2>> place;
};

/// Every second pixel of every second row: of the Slices behind a value.
std::optional<std::array<int64_t, 2>> every_second(const Rewriter& rewriter, Value*& value) {
  std::array<int64_t, 2> place{-1, -1};
  for (int slices = 0; slices < 2 && (place[0] < 0 || place[1] < 0); ++slices) {
    Node* slice = rewriter.producer(value, "Slice");
    const auto bounds = slice == nullptr ? std::nullopt : slice_bounds(rewriter, *slice, 4);
    const auto ends = slice == nullptr ? std::nullopt : rewriter.ints(slice->input(2));
    if (!bounds || !ends || ends->size() != bounds->axes.size()) return std::nullopt;
    for (size_t i = 0; i < ends->size(); ++i) {
      const int64_t axis = bounds->axes[i], start = bounds->starts[i];
      if (axis != 2 && axis != 3) return std::nullopt;
      const auto length = rewriter.dim(slice->input(0), axis);
      const bool whole = (*ends)[i] >= length.value_or(std::numeric_limits<int32_t>::max());
      if (bounds->steps[i] != 2 || (start != 0 && start != 1) || !whole ||
          place[static_cast<size_t>(axis - 2)] >= 0)
        return std::nullopt;
      place[static_cast<size_t>(axis - 2)] = start;
    }
    value = slice->input(0);
  }
  if (place[0] < 0 || place[1] < 0) return std::nullopt;
  return place;
}

std::optional<PixelBlocks> blocks_behind(const Rewriter& rewriter, Value* value) {
  PixelBlocks blocks;
  if (const Node* node = rewriter.producer(value, "SpaceToDepth")) {
    blocks.image = node->input(0);
    blocks.size = AttributeReader(*node).get_int("blocksize", 0);
    if (blocks.size < 1 || blocks.size > kMostSize) return std::nullopt;
    for (int64_t q = 0; q < blocks.size * blocks.size; ++q)
      blocks.place.push_back({q / blocks.size, q % blocks.size});
    return blocks;
  }
  const Node* concat = rewriter.producer(value, "Concat");
  constexpr size_t kParts = 4;
  if (concat == nullptr || concat->inputs().size() != kParts || rewriter.rank(value) != 4)
    return std::nullopt;
  if (const int64_t axis = AttributeReader(*concat).get_int("axis", 0); axis != 1 && axis != -3)
    return std::nullopt;
  blocks.size = 2;
  bool seen[kParts] = {};
  for (Value* part : concat->inputs()) {
    const auto place = part == nullptr ? std::nullopt : every_second(rewriter, part);
    if (!place || (blocks.image != nullptr && part != blocks.image)) return std::nullopt;
    blocks.image = part;
    blocks.place.push_back(*place);
    seen[2 * (*place)[0] + (*place)[1]] = true;
  }
  for (const bool one : seen)
    if (!one) return std::nullopt;
  return blocks;
}

/// w[output][q C + c][y][x], as a kernel over the image: [output][c][size y + dy][size x + dx].
Result<Tensor> spread_kernel(const Tensor& w, const PixelBlocks& blocks, int64_t channels) {
  const int64_t outputs = w.dim(0), height = w.dim(2), width = w.dim(3), size = blocks.size;
  const int64_t dims[] = {outputs, channels, height * size, width * size};
  TRY(Tensor result, Tensor::allocate(w.dtype(), dims));
  std::vector<std::byte> own(w.bytes().size());
  w.write_to(own.data());
  const size_t bytes = own.size() / static_cast<size_t>(w.size());
  std::byte* const to = result.mutable_bytes().data();
  const std::byte* from = own.data();
  for (int64_t o = 0; o < outputs; ++o)
    for (const auto& [dy, dx] : blocks.place)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < width; ++x, from += bytes) {
            const int64_t row = (o * channels + c) * height * size + y * size + dy;
            std::memcpy(to + static_cast<size_t>(row * width * size + x * size + dx) * bytes, from,
                        bytes);
          }
  return result;
}

Result<bool> read_image(Rewriter& rewriter, Node& conv) {
  if (!rewriter.is(&conv, "Conv") || conv.input(0) == nullptr ||
      !Rewriter::single_use(conv.input(0)))
    return false;
  const auto blocks = blocks_behind(rewriter, conv.input(0));
  if (!blocks || &conv.input(0)->producer()->graph() != &conv.graph()) return false;
  const auto channels = rewriter.dim(blocks->image, 1);
  const auto dims = rewriter.dims(conv.input(1));
  const int64_t size = blocks->size, places = size * size;
  if (!channels || *channels < 1 || *channels > kMostChannels || !dims || dims->size() != 4 ||
      (*dims)[1] != *channels * places || !rewriter.is_constant(conv.input(1)))
    return false;
  for (const int64_t axis : {2, 3})  // blocks that the image ends within are for others to refuse
    if (rewriter.dim(blocks->image, axis).value_or(0) % size != 0) return false;
  const AttributeReader attributes(conv);
  const Text automatic = attributes.get_string("auto_pad", "NOTSET");
  for (const int64_t step : attributes.get_ints("dilations"))
    if (step != 1) return false;
  const auto list_of = [&](Text name) {
    const auto list = attributes.get_ints(name);
    return std::vector<int64_t>(list.begin(), list.end());
  };
  auto strides = list_of("strides"), pads = list_of("pads");
  if (automatic == "VALID") pads.clear();
  constexpr int64_t kMost = int64_t{1} << 30;
  if (attributes.get_int("group", 1) != 1 || (automatic != "NOTSET" && automatic != "VALID") ||
      (!pads.empty() && pads.size() != 4) || (!strides.empty() && strides.size() != 2))
    return false;
  if (strides.empty()) strides = {1, 1};
  for (auto* list : {&strides, &pads})
    for (int64_t& value : *list) {
      if (value < 0 || value > kMost) return false;
      value *= size;
    }
  const Tensor* w = rewriter.constant(conv.input(1));
  if (w == nullptr || w->size() == 0) return false;
  TRY(const Tensor spread, spread_kernel(*w, *blocks, *channels));
  Node* const before = conv.input(0)->producer();
  conv.set_input(0, blocks->image);
  conv.set_input(1, rewriter.initializer(conv.graph(), spread, conv.input(1)->name()));
  conv.remove_attribute("auto_pad");
  conv.set_ints("kernel_shape", std::vector<int64_t>{spread.dim(2), spread.dim(3)});
  conv.set_ints("strides", strides);
  if (pads.empty())
    conv.remove_attribute("pads");
  else
    conv.set_ints("pads", pads);
  rewriter.erase(*before);
  rewriter.touch(conv);
  return true;
}

}  // namespace

Result<size_t> space_to_depth_into_conv(Rewriter& rewriter) {
  return change_each_node(rewriter, read_image);
}

}  // namespace tombolo::passes
