// For the runtime: convolutions, pools and what lies between them on channels in blocks of 16
// (ops/tombolo/block.cpp). Values change layout where a region begins and ends:
//   Conv(Unblock(x), W) = Unblock(BlockConv(x, W)), and the like for each operator below.
// What has one spatial axis, a line, is an image of one row inside of a region.

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/tombolo/block.h"
#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

constexpr Text kBlockDomain = "ai.tombolo";
constexpr int64_t kBlock = kChannelBlock;
constexpr int64_t kFewChannels = 8;  ///< a convolution of so many reads them as they lie
/// So many too, such as three taken apart into every second pixel, where sums are short and few.
constexpr int64_t kMoreChannels = 12, kShortWindow = 9, kFewOutputs = 32;
bool reads_as_they_lie(int64_t group, int64_t inputs, int64_t outputs, int64_t window) {
  return group == 1 &&
         (inputs <= kFewChannels ||
          (inputs <= kMoreChannels && window <= kShortWindow && outputs <= kFewOutputs));
}

int64_t blocks_of(int64_t channels) { return (channels + kBlock - 1) / kBlock; }

/// Operators of one input that work element by element.
constexpr Text kBlockUnary[] = {
    "Abs",      "Ceil",     "Celu",        "Elu",       "Erf",       "Exp",
    "Floor",    "Gelu",     "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",
    "Neg",      "Relu",     "Round",       "Selu",      "Sigmoid",   "Sign",
    "Softplus", "Softsign", "Sqrt",        "Swish",     "Tanh",      "ThresholdedRelu"};
constexpr Text kBlockBinary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"};

class BlockLayout {
 public:
  BlockLayout(Rewriter& rewriter, Graph& graph) : rewriter_(rewriter), graph_(graph) {}

  size_t run() {
    size_t count = 0;
    for (Node* node : graph_.nodes()) {
      if (node->outputs().empty() || node->output(0) == nullptr ||
          rewriter_.dtype(node->output(0)) != DType::kFloat32)
        continue;
      if (split(*node)) {
        ++count;
        continue;
      }
      for (size_t i = 1; i < node->outputs().size(); ++i)
        if (node->output(i) != nullptr) goto next;
      count += conv(*node) || transposed(*node) || pool(*node) || lrn(*node) || concat(*node) ||
               unary(*node) || binary(*node) || batch_norm(*node) || resize(*node) || pad(*node) ||
               slice(*node);
    next:;
    }
    for (auto node = made_.rbegin(); node != made_.rend(); ++node)  // readers first
      if (!(*node)->output(0)->has_uses()) rewriter_.erase(**node);
    return count;
  }

 private:
  struct Blocked {
    Value* value;
    int64_t channels;
    bool line;  ///< channels first it has one spatial axis

    size_t rank() const { return line ? 3 : 4; }  ///< channels first
    /// Of an axis of the value channels first, perhaps negative: where it stands in an image.
    int64_t axis(int64_t given) const {
      const int64_t positive = given < 0 ? given + static_cast<int64_t>(rank()) : given;
      return line && positive == 2 ? 3 : positive;
    }
  };

  const Blocked* find(const Value* value) const {
    const auto found = blocked_.find(value);
    return found == blocked_.end() ? nullptr : &found->second;
  }
  bool in_blocks(const Node& node, size_t input) const {
    return input < node.inputs().size() && node.input(input) != nullptr &&
           find(node.input(input)) != nullptr;
  }
  /// The value in blocks, by a node before `before` if it is not so already.
  Value* to_blocks(Value* value, int64_t channels, Node& before) {
    if (const Blocked* found = find(value)) return found->value;
    const bool line = is_line(value);
    Node& node = rewriter_.add(before, "BlockChannels", {line ? in_row(value, before) : value},
                               value->name(), 1, kBlockDomain);
    rewriter_.touch(node);
    blocked_[value] = {node.output(0), channels, line};
    return node.output(0);
  }
  Value* row_axis() {
    if (row_axis_ == nullptr) row_axis_ = ints({2}, "row");
    return row_axis_;
  }
  /// A line as an image of one row.
  Value* in_row(Value* value, Node& before) {
    Node& node = rewriter_.add(before, "Unsqueeze", {value, row_axis()}, value->name());
    rewriter_.touch(node);
    return node.output(0);
  }
  /// What read `old` reads the blocks of `made`, turned back.
  bool replace(Node& old, Node& made, int64_t channels, bool line, size_t output = 0) {
    Value* const was = old.output(output);
    Value* const back = unblock(old, made, channels, line ? row_axis() : nullptr, was->name());
    rewriter_.supersede(*was, *back);
    blocked_[back] = {made.output(0), channels, line};
    return true;
  }
  /// What `made` gives, channels first and without the axes of one element that `squeezed` names.
  Value* unblock(Node& before, Node& made, int64_t channels, Value* squeezed, Text hint) {
    rewriter_.touch(made);
    Node* back = &rewriter_.add(before, "UnblockChannels", {made.output(0)}, hint, 1, kBlockDomain);
    back->set_int("channels", channels);
    rewriter_.touch(*back);
    made_.push_back(back);
    if (squeezed != nullptr) {
      back = &rewriter_.add(before, "Squeeze", {back->output(0), squeezed}, hint);
      rewriter_.touch(*back);
      made_.push_back(back);
    }
    return back->output(0);
  }
  // Of a new node the rewriter does not always know the type.
  bool has_rank(const Value* value, size_t rank) const {
    if (const Blocked* found = find(value)) return found->rank() == rank;
    return rewriter_.dtype(value) == DType::kFloat32 && rewriter_.rank(value) == rank;
  }
  bool is_line(const Value* value) const { return has_rank(value, 3); }
  bool is_image(const Value* value) const { return has_rank(value, 4) || is_line(value); }
  /// Attributes of a window, which on a line has one row.
  static void copy_window(const Node& from, Node& to, bool line) {
    copy_attributes(from, to);
    if (!line) return;
    for (const Text name :
         {Text("dilations"), Text("kernel_shape"), Text("output_shape"), Text("strides")})
      widen(to, name, 1);
    for (const Text name : {Text("output_padding"), Text("pads")}) widen(to, name, 0);
  }
  /// Puts `value` before each end's one number.
  static void widen(Node& node, Text name, int64_t value) {
    std::vector<int64_t> wide;
    for (const int64_t number : AttributeReader(node).get_ints(name)) {
      wide.push_back(value);
      wide.push_back(number);
    }
    if (!wide.empty()) node.set_ints(name, wide);
  }

  bool conv(Node& node) {
    if (!rewriter_.is(&node, "Conv") && !rewriter_.is(&node, "Conv", kBlockDomain)) return false;
    if (!is_image(node.input(0)) || !rewriter_.is_constant(node.input(1))) return false;
    const auto w = window_dims(node);
    const int64_t group = AttributeReader(node).get_int("group", 1);
    if (!w || group < 1) return false;
    const bool line = is_line(node.input(0));
    const int64_t outputs = (*w)[0], inputs = (*w)[1];
    if (outputs < 1 || inputs < 1 || outputs % group != 0) return false;
    // Groups that bridge blocks are in no hurry to be in some: a lone one had better stay.
    if (!takes_groups(group, inputs, outputs / group) &&
        (!bridges_blocks(group, inputs, outputs / group) || alone(node)))
      return false;
    const bool point = (*w)[2] == 1 && (*w)[3] == 1 && !pads(node);
    const bool narrow = is_narrow(group, inputs, outputs, (*w)[2] * (*w)[3]);
    if ((point || (line && !narrow)) && alone(node) && turns_cost_more(node, *w, group))
      return false;
    if (!point && inputs == 1 && group == outputs && alone(node) && takes_long_rows(node, *w))
      return false;
    if (group == 1 && alone(node) && sums_are_short(node, *w)) return false;
    if (stays_as_it_lies(node, *w, group)) return false;
    const bool plain = reads_as_they_lie(group, inputs, outputs, (*w)[2] * (*w)[3]) &&
                       find(node.input(0)) == nullptr;
    Value* bias = node.inputs().size() > 2 ? node.input(2) : nullptr;
    Value* residual = node.inputs().size() > 3 ? node.input(3) : nullptr;
    Value* x = node.input(0);
    if (!plain)
      x = to_blocks(x, inputs * group, node);
    else if (line)
      x = in_row(x, node);
    // Few channels would mostly be lanes that hold nothing: what comes behind takes less as they
    // lie.
    const bool plain_output = !plain && narrow &&
                              (residual == nullptr || find(residual) == nullptr) &&
                              !joins_blocks(node);
    if (residual != nullptr && !plain_output)
      residual = to_blocks(residual, outputs, node);
    else if (residual != nullptr && line)
      residual = in_row(residual, node);
    std::vector<Value*> list = {x, window_weights(node, *w), bias, residual};
    while (list.back() == nullptr) list.pop_back();
    Node& made = rewriter_.add(node, "BlockConv", list, node.output(0)->name(), 1, kBlockDomain);
    copy_window(node, made, line);
    if (plain) made.set_int("plain", 1);
    if (!plain_output) return replace(node, made, outputs, line);
    made.set_int("plain_output", 1);
    rewriter_.touch(made);
    Value* y = made.output(0);
    if (line) {
      Node& squeezed = rewriter_.add(node, "Squeeze", {y, row_axis()}, node.output(0)->name());
      rewriter_.touch(squeezed);
      y = squeezed.output(0);
    }
    rewriter_.supersede(*node.output(0), *y);
    return true;
  }
  /// Whether what the node makes is read by a Concat, perhaps behind others.
  bool joins_concat(const Node& node, int depth = 4) const {
    for (const Use& use : node.output(0)->uses()) {
      if (rewriter_.is(use.node, "Concat")) return true;
      if (depth > 0 && (is_any(use.node, kBlockUnary) || is_any(use.node, kBlockBinary)) &&
          joins_concat(*use.node, depth - 1))
        return true;
    }
    return false;
  }
  /// Whether what the node makes is read, perhaps behind others, together with blocks or by one
  /// that computes on them.
  bool joins_blocks(const Node& node, int depth = 4) const {
    const Value* made = node.output(0);
    for (const Use& use : made->uses()) {
      if (convolves(*use.node) || rewriter_.is(use.node, "Concat")) return true;
      if (is_any(use.node, kBlockBinary))
        for (const Value* input : use.node->inputs())
          if (input != made && find(input) != nullptr) return true;
      if (depth > 0 && is_any(use.node, kBlockUnary) && joins_blocks(*use.node, depth - 1))
        return true;
    }
    return false;
  }
  static const Deferred* deferred(const Value* weights) {
    return weights->initializer() != nullptr ? weights->initializer()->deferred() : nullptr;
  }
  /// Dimensions of constant weights as those of an image; nothing where they are none of a window.
  std::optional<std::vector<int64_t>> window_dims(const Node& node) const {
    const Value* weights = node.input(1);
    auto w = rewriter_.dims(weights);
    if (!w || w->size() != (is_line(node.input(0)) ? 3u : 4u)) return std::nullopt;
    if (w->size() == 4) return w;
    if (deferred(weights) == nullptr && rewriter_.constant(weights) == nullptr) return std::nullopt;
    w->insert(w->begin() + 2, 1);
    return w;
  }
  /// The weights themselves, of the dimensions that window_dims gives.
  Value* window_weights(const Node& node, const std::vector<int64_t>& dims) {
    Value* weights = node.input(1);
    if (!is_line(node.input(0))) return weights;
    if (deferred(weights) != nullptr)
      return rewriter_.initializer(graph_, weights->initializer()->dtype(), dims,
                                   weights->initializer()->extra->deferred, weights->name());
    return rewriter_.initializer(graph_, rewriter_.constant(weights)->reshaped(dims),
                                 weights->name());
  }

  static bool pads(const Node& node) {
    const auto pads = AttributeReader(node).get_ints("pads");
    return std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
  }
  /// Whether nothing before or behind this convolution computes on blocks, and products may not be
  /// rounded, which repays to turn it alone.
  bool alone(const Node& node) const {
    if (rewriter_.fast_math) return false;
    if (in_blocks(node, 0) || in_blocks(node, 3)) return false;
    // Several that read one image turn it once, or read it as it lies all.
    if (rewriter_.dim(node.input(0), 1).value_or(0) > kFewChannels)
      for (const Use& use : node.input(0)->uses())
        if (use.node != &node && convolves(*use.node)) return false;
    return !read_in_blocks(node, is_line(node.input(0)));
  }
  /// Whether to turn channels and back takes longer than what is saved. A number that is turned
  /// takes as long as some ten products. One position is a product of matrices on the pixels as
  /// they lie, at the cost of columns that are gathered, and come in whole vectors; on a line
  /// blocks save about a seventh.
  bool turns_cost_more(const Node& node, const std::vector<int64_t>& w, int64_t group) const {
    constexpr double kTurned = 10, kGathered = 0.03, kLineSaves = 0.15;
    const int64_t given = reads_as_they_lie(group, w[1], w[0], w[2] * w[3]) ? 0 : w[1] * group;
    const double turned = kTurned * static_cast<double>(given + w[0]) /
                          static_cast<double>(w[0] * w[1] * w[2] * w[3]);
    if (w[2] * w[3] > 1) return turned > kLineSaves;
    const auto height = is_line(node.input(0)) ? 1 : rewriter_.dim(node.output(0), 2);
    const auto width = rewriter_.dim(node.output(0), -1);
    if (!height || !width || *height < 1 || *width < 1) return turned > kGathered;
    const int64_t pixels = *height * *width;
    const auto idle = static_cast<double>(blocks_of(pixels) * kBlock - pixels);
    return turned > kGathered + idle / static_cast<double>(pixels);
  }
  /// Whether a lone convolution sums up so little that to turn its result takes longer than to
  /// gather windows for lanes that are pixels: few inputs, which come in long rows. Registers hold
  /// all of a very short sum. More outputs gather for more.
  bool sums_are_short(const Node& node, const std::vector<int64_t>& w) const {
    constexpr int64_t kVeryShort = 12;  // as in conv_direct.cpp
    constexpr int64_t kShort = 32, kShortForMany = 72, kMany = 64, kRow = 24, kLongRow = 48;
    const int64_t inputs = w[1] * w[2] * w[3];
    const int64_t row = rewriter_.dim(node.output(0), -1).value_or(INT64_MAX);
    if (inputs <= kVeryShort) return w[0] > kBlock || row >= kRow;
    const auto strides = AttributeReader(node).get_ints("strides");
    const bool steps =
        std::any_of(strides.begin(), strides.end(), [](int64_t step) { return step != 1; });
    return !steps && row >= kLongRow && inputs <= (w[0] >= kMany ? kShortForMany : kShort);
  }
  /// Few outputs would mostly be lanes that hold nothing: where nothing is in blocks before them,
  /// lanes had better be pixels, and what reads few channels reads them as they lie. Large kernels
  /// over many inputs are the ones to turn for, whose lanes are inputs then, and rows shorter than
  /// a vector.
  bool stays_as_it_lies(const Node& node, const std::vector<int64_t>& w, int64_t group) const {
    constexpr int64_t kMostInputs = 32, kShortRow = 14, kLongRow = 20, kLeastTaps = 3;
    const int64_t outputs = w[0], inputs = w[1], taps = w[2] * w[3];
    if (rewriter_.fast_math || outputs > kFewChannels) return false;
    // Few channels are turned back for windows that save more than that takes.
    if (in_blocks(node, 0) || in_blocks(node, 3))
      return group == 1 && inputs <= kFewChannels && taps >= kLeastTaps &&
             rewriter_.dim(node.output(0), -1).value_or(0) >= kLongRow && !joins_concat(node);
    if (group > 1) return inputs == 1 && group == outputs && takes_long_rows(node, w);
    if (inputs <= kFewChannels || taps == 1) return true;
    const int64_t width = rewriter_.dim(node.output(0), -1).value_or(kLongRow);
    if (!is_narrow(group, inputs, outputs, taps)) return width >= kShortRow;
    return is_line(node.input(0)) || (inputs <= kMostInputs && width >= kLongRow);
  }
  /// A convolution of each channel by itself computes as little as it moves, and rows that fill
  /// vectors are as good as blocks; the more so the fewer the products, and the more of what would
  /// be turned the strides leave out.
  bool takes_long_rows(const Node& node, const std::vector<int64_t>& w) const {
    const auto strides = AttributeReader(node).get_ints("strides");
    const bool steps =
        std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; });
    const int64_t taps = w[2] * w[3], width = rewriter_.dim(node.output(0), -1).value_or(0);
    if (steps) return taps <= 49 && width >= (taps <= 9 ? 20 : 28);
    const int64_t idle = blocks_of(width) * kBlock - width;
    if (taps <= 25 && width >= 12 && idle * 6 <= width) return true;
    return taps <= 49 && width >= (taps <= 9 ? 12 : taps <= 25 ? 40 : 100);
  }
  bool is_any(const Node* node, std::span<const Text> names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](Text name) { return rewriter_.is(node, name); });
  }
  bool convolves(const Node& node) const {
    return rewriter_.is(&node, "Conv") || rewriter_.is(&node, "Conv", kBlockDomain) ||
           rewriter_.is(&node, "ConvTranspose");
  }

  /// Whether lanes without an output take longer than to spread the product of all positions, as in
  /// add_windows_pays(); rows of a few vectors take longer to spread. Fitted to 37 of 60 shapes,
  /// with AVX-512 and AVX2.
  bool idle_lanes_cost(const Node& node, int64_t inputs, int64_t outputs) const {
    constexpr double kProduct = 0.5, kSpreadProduct = 0.54, kSpread = 4, kShortSpread = 8;
    const auto strides = AttributeReader(node).get_ints("strides");
    const int64_t step = strides.empty() ? 1 : strides.back();
    const bool is_short = rewriter_.dim(node.output(0), -1).value_or(0) <= kBlock * step;
    const auto lanes = static_cast<double>(blocks_of(outputs) * kBlock);
    const auto depth = static_cast<double>(inputs);
    return kSpreadProduct * depth + (is_short ? kShortSpread : kSpread) <
           0.95 * kProduct * depth * lanes / static_cast<double>(outputs);
  }

  /// ConvTranspose of enough channels, or of values that are in blocks. Few outputs of large
  /// kernels would mostly be lanes that hold nothing.
  bool transposed(Node& node) {
    if (!rewriter_.is(&node, "ConvTranspose") || node.inputs().size() < 2 ||
        !is_image(node.input(0)) || !rewriter_.is_constant(node.input(1)))
      return false;
    const auto w = window_dims(node);
    const int64_t group = AttributeReader(node).get_int("group", 1);
    if (!w || group < 1 || (*w)[0] % group != 0 || !takes_groups(group, (*w)[0] / group, (*w)[1]))
      return false;
    const int64_t inputs = (*w)[0], outputs = (*w)[1] * group;
    const Blocked* x = find(node.input(0));
    if (x != nullptr ? x->channels != inputs : inputs < kBlock || outputs < kBlock) return false;
    const bool line = is_line(node.input(0));
    const auto strides = AttributeReader(node).get_ints("strides");
    const size_t axes = line ? 1 : 2;
    bool apart = strides.size() == axes;
    for (size_t i = 0; apart && i < axes; ++i) apart = strides[i] >= (*w)[4 - axes + i];
    // Those of a known size that step by 1 are convolutions (transposed-to-conv), but where sums of
    // windows take less.
    const bool known = rewriter_.dim(node.input(0), 2) && rewriter_.dim(node.input(0), -1);
    if (known &&
        std::all_of(strides.begin(), strides.end(), [](int64_t step) { return step == 1; }))
      return false;
    // Windows that do not meet give each input a few results: with few channels, mostly such lanes.
    constexpr int64_t kFewTaps = 8;
    if (outputs < kBlock / 2 && (apart || (*w)[2] * (*w)[3] > kFewTaps)) return false;
    // What begins with one pixel is a product with the weights as they lie. Windows that do not
    // meet take less than to turn their pixels in groups, and all a tenth less where nothing else
    // does.
    const bool one_pixel =
        rewriter_.dim(node.input(0), 2) == 1 && rewriter_.dim(node.input(0), -1) == 1;
    if (x == nullptr && (one_pixel || (apart && (group > 1 || alone(node))))) return false;
    if (x == nullptr && group == 1 && alone(node) && idle_lanes_cost(node, inputs, outputs))
      return false;
    std::vector<Value*> list = {to_blocks(node.input(0), inputs, node), window_weights(node, *w)};
    if (node.inputs().size() > 2 && node.input(2) != nullptr) list.push_back(node.input(2));
    Node& made =
        rewriter_.add(node, "BlockConvTranspose", list, node.output(0)->name(), 1, kBlockDomain);
    copy_window(node, made, line);
    return replace(node, made, outputs, line);
  }

  bool pool(Node& node) {
    const Blocked* x = node.inputs().empty() ? nullptr : find(node.input(0));
    if (x == nullptr || !is_image(node.input(0))) return false;
    Text op;
    for (const Text name :
         {Text("MaxPool"), Text("AveragePool"), Text("GlobalMaxPool"), Text("GlobalAveragePool")})
      if (rewriter_.is(&node, name)) op = name;
    const Blocked from = *x;
    const bool reduces = op.empty() && over_pixels(node, from.line);
    if (reduces && rewriter_.is(&node, "ReduceMean")) op = "GlobalAveragePool";
    if (reduces && rewriter_.is(&node, "ReduceMax")) op = "GlobalMaxPool";
    if (op.empty() || AttributeReader(node).get_int("storage_order", 0) != 0) return false;
    Node& made =
        rewriter_.add(node, "BlockPool", {from.value}, node.output(0)->name(), 1, kBlockDomain);
    if (!reduces) copy_window(node, made, from.line);
    made.set_string("pool", op);
    if (!reduces || AttributeReader(node).get_int("keepdims", 1) != 0)
      return replace(node, made, from.channels, from.line);
    Value* const was = node.output(0);
    rewriter_.supersede(*was,
                        *unblock(node, made, from.channels, ints({2, 3}, "axes"), was->name()));
    return true;
  }
  /// Whether the constant axes of a reduction are all spatial ones.
  bool over_pixels(const Node& node, bool line) const {
    if (node.inputs().size() < 2 || node.input(1) == nullptr) return false;
    const Blocked x{nullptr, 0, line};
    const auto axes = rewriter_.ints(node.input(1));
    if (!axes || axes->size() != x.rank() - 2) return false;
    int64_t sum = 0;
    for (const int64_t axis : *axes) sum += x.axis(axis);
    return sum == (line ? 3 : 5) && x.axis(axes->front()) >= 2;  // 2 and 3, in any order
  }

  bool lrn(Node& node) {
    if (!rewriter_.is(&node, "LRN")) return false;
    const Blocked* x = find(node.input(0));
    if (x == nullptr || !is_image(node.input(0))) return false;
    const Blocked from = *x;
    Node& made =
        rewriter_.add(node, "BlockLRN", {from.value}, node.output(0)->name(), 1, kBlockDomain);
    copy_attributes(node, made);
    made.set_int("channels", from.channels);
    return replace(node, made, from.channels, from.line);
  }

  bool concat(Node& node) {
    if (!rewriter_.is(&node, "Concat")) return false;
    const int64_t axis = AttributeReader(node).get_int("axis", 0);
    if (!is_image(node.output(0))) return false;
    std::vector<Value*> list;
    std::vector<int64_t> parts;
    int64_t channels = 0;
    bool whole = true, line = false;
    for (Value* input : node.inputs()) {
      const Blocked* found = input == nullptr ? nullptr : find(input);
      if (found == nullptr || found->axis(axis) != 1) return false;
      line = found->line;
      whole &= channels % kBlock == 0;
      list.push_back(found->value);
      parts.push_back(found->channels);
      channels += found->channels;
    }
    // Channels that begin inside of a block are moved, for those who read blocks.
    if (!whole && !read_in_blocks(node, line)) return false;
    Node& made = rewriter_.add(node, whole ? "Concat" : "BlockConcat", list, node.output(0)->name(),
                               1, whole ? Text() : kBlockDomain);
    if (whole)
      made.set_int("axis", 1);
    else
      made.set_ints("channels", parts);
    return replace(node, made, channels, line);
  }

  bool unary(Node& node) {
    if (node.inputs().empty() || node.input(0) == nullptr) return false;
    const Blocked* x = find(node.input(0));
    if (x == nullptr) return false;
    Text op;
    for (const Text name : kBlockUnary)
      if (node.inputs().size() == 1 && rewriter_.is(&node, name)) op = name;
    std::vector<Value*> list = {x->value};
    if (rewriter_.is(&node, "Clip")) {
      op = "Clip";
      for (size_t i = 1; i < node.inputs().size(); ++i) {
        if (node.input(i) != nullptr && rewriter_.rank(node.input(i)) != 0u) return false;
        list.push_back(node.input(i));
      }
    }
    if (op.empty()) return false;
    const Blocked from = *x;
    Node& made = rewriter_.add(node, op, list, node.output(0)->name());
    copy_attributes(node, made);
    return replace(node, made, from.channels, from.line);
  }

  /// One that no weights before it take: x * a + b, of constants.
  bool batch_norm(Node& node) {
    if (!rewriter_.is(&node, "BatchNormalization") || node.inputs().size() != 5 ||
        AttributeReader(node).get_int("training_mode", 0) != 0)
      return false;
    const Blocked* x = find(node.input(0));
    const Tensor* given[5] = {};
    if (x == nullptr || !is_image(node.input(0))) return false;
    for (size_t i = 1; i < 5; ++i) {
      given[i] = rewriter_.constant(node.input(i));
      if (given[i] == nullptr || given[i]->dtype() != DType::kFloat32 ||
          given[i]->size() != x->channels)
        return false;
    }
    const Blocked from = *x;
    const double epsilon = static_cast<double>(AttributeReader(node).get_float("epsilon", 1e-5f));
    const auto padded = static_cast<size_t>(blocks_of(from.channels) * kBlock);
    std::vector<float> factor(padded, 1.0f), offset(padded, 0.0f);
    for (int64_t c = 0; c < from.channels; ++c) {
      const auto value = [&](size_t i) { return given[i]->get_double(c); };
      const double a = value(1) / std::sqrt(value(4) + epsilon);
      factor[static_cast<size_t>(c)] = static_cast<float>(a);
      offset[static_cast<size_t>(c)] = static_cast<float>(value(2) - value(3) * a);
    }
    const int64_t shape[] = {1, blocks_of(from.channels), 1, 1, kBlock};
    const auto constant = [&](const std::vector<float>& values, Text hint) {
      return rewriter_.initializer(graph_, Tensor::of<float>(DType::kFloat32, shape, values), hint);
    };
    Node& scaled = rewriter_.add(node, "Mul", {from.value, constant(factor, "factor")},
                                 node.output(0)->name());
    rewriter_.touch(scaled);
    Node& made = rewriter_.add(node, "Add", {scaled.output(0), constant(offset, "offset")},
                               node.output(0)->name());
    return replace(node, made, from.channels, from.line);
  }

  /// A constant of one element, or of one for each channel, as it broadcasts over blocks.
  Value* constant_in_blocks(Value* value, int64_t channels, bool line) {
    const Tensor* tensor = rewriter_.constant(value);
    if (tensor == nullptr || tensor->dtype() != DType::kFloat32) return nullptr;
    const Dims dims = tensor->dims();
    const size_t rank = dims.size(), whole = line ? 3 : 4;
    if (tensor->size() == 1 && rank <= whole) return value;
    if (tensor->size() != channels || (rank != whole - 1 && rank != whole) ||
        dims[rank - whole + 1] != channels)
      return nullptr;
    const int64_t shape[] = {1, blocks_of(channels), 1, 1, kBlock};
    std::vector<float> values(static_cast<size_t>(blocks_of(channels) * kBlock), 1.0f);
    for (int64_t c = 0; c < channels; ++c)
      values[static_cast<size_t>(c)] = tensor->data<float>()[c];
    return rewriter_.initializer(graph_, Tensor::of<float>(DType::kFloat32, shape, values),
                                 value->name());
  }

  bool binary(Node& node) {
    if (node.inputs().size() != 2 || node.input(0) == nullptr || node.input(1) == nullptr)
      return false;
    Text op;
    for (const Text name : kBlockBinary)
      if (rewriter_.is(&node, name)) op = name;
    const Blocked* x[2] = {find(node.input(0)), find(node.input(1))};
    if (op.empty() || (x[0] == nullptr && x[1] == nullptr) || !is_image(node.output(0)))
      return false;
    const int64_t channels = (x[0] != nullptr ? x[0] : x[1])->channels;
    const bool line = (x[0] != nullptr ? x[0] : x[1])->line;
    Value* list[2];
    for (int i = 0; i < 2; ++i) {
      Value* input = node.input(static_cast<size_t>(i));
      if (x[i] != nullptr) {
        if (x[i]->channels != channels || x[i]->line != line) return false;
        list[i] = x[i]->value;
      } else if (rewriter_.is_constant(input)) {
        list[i] = constant_in_blocks(input, channels, line);
        if (list[i] == nullptr) return false;
      } else if (is_image(input) && is_line(input) == line && rewriter_.dim(input, 1) == channels &&
                 rewriter_.dim(input, 2) == 1 && rewriter_.dim(input, -1) == 1) {
        list[i] = nullptr;  // made below, when all fits
      } else {
        return false;
      }
    }
    for (int i = 0; i < 2; ++i)
      if (list[i] == nullptr)
        list[i] = to_blocks(node.input(static_cast<size_t>(i)), channels, node);
    Node& made = rewriter_.add(node, op, {list[0], list[1]}, node.output(0)->name());
    return replace(node, made, channels, line);
  }

  /// Whether blocks of what the node makes are read, perhaps behind others, by one that computes
  /// on them: what is only made larger and given away had better be turned while it is small.
  bool read_in_blocks(const Node& node, bool line, int depth = 4) const {
    static constexpr Text kPassedOn[] = {"Pad",         "Slice", "Split",
                                         "Resize",      "Clip",  "MaxPool",
                                         "AveragePool", "LRN",   "BatchNormalization"};
    static constexpr Text kGlobal[] = {"GlobalAveragePool", "GlobalMaxPool"};
    static constexpr Text kReduced[] = {"ReduceMean", "ReduceMax"};
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      for (const Use& use : output->uses()) {
        if (convolves(*use.node) || rewriter_.is(use.node, "Concat") ||
            is_any(use.node, kBlockBinary) || is_any(use.node, kGlobal) ||
            (is_any(use.node, kReduced) && over_pixels(*use.node, line)))
          return true;
        if (depth > 0 && (is_any(use.node, kPassedOn) || is_any(use.node, kBlockUnary)) &&
            read_in_blocks(*use.node, line, depth - 1))
          return true;
      }
    }
    return false;
  }
  Value* ints(const std::vector<int64_t>& values, Text hint) {
    return rewriter_.ints_initializer(graph_, values, hint);
  }

  /// Of height and width alone, to constant sizes or by constant scales.
  bool resize(Node& node) {
    if (!rewriter_.is(&node, "Resize") || node.input(0) == nullptr) return false;
    const Blocked* x = find(node.input(0));
    if (x == nullptr || !is_image(node.input(0)) || !read_in_blocks(node, x->line)) return false;
    const AttributeReader attributes(node);
    if (attributes.get_string("coordinate_transformation_mode", "half_pixel") ==
            "tf_crop_and_resize" ||
        attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
      return false;
    const auto given = [&](size_t i) {
      return i < node.inputs().size() && node.input(i) != nullptr &&
                     rewriter_.dim(node.input(i), 0) != 0
                 ? node.input(i)
                 : nullptr;
    };
    const bool by_size = given(3) != nullptr;
    const Tensor* amounts = by_size || given(2) != nullptr
                                ? rewriter_.constant(by_size ? given(3) : given(2))
                                : nullptr;
    if (amounts == nullptr || (by_size && given(2) != nullptr)) return false;
    std::vector<int64_t> axes;
    for (const int64_t axis : attributes.get_ints("axes")) axes.push_back(axis);
    if (axes.empty())
      for (size_t axis = 0; axis < x->rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
    if (amounts->size() != static_cast<int64_t>(axes.size())) return false;
    std::vector<int64_t> kept;
    std::vector<double> wanted;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = x->axis(axes[i]);
      const double amount = amounts->get_double(static_cast<int64_t>(i));
      if (axis >= 2 && axis < 4) {
        kept.push_back(axis);
        wanted.push_back(amount);
      } else if (amount !=
                 (by_size
                      ? static_cast<double>(
                            rewriter_.dim(node.input(0), static_cast<size_t>(axis)).value_or(-1))
                      : 1.0)) {
        return false;
      }
    }
    if (kept.empty()) return false;
    Value* amount = nullptr;
    if (by_size) {
      amount = ints({wanted.begin(), wanted.end()}, "sizes");
    } else {
      const int64_t shape[] = {static_cast<int64_t>(wanted.size())};
      amount =
          rewriter_.initializer(graph_,
                                Tensor::of<float>(DType::kFloat32, shape,
                                                  std::vector<float>(wanted.begin(), wanted.end())),
                                "scales");
    }
    const Blocked from = *x;
    std::vector<Value*> list = {from.value, nullptr, by_size ? nullptr : amount};
    if (by_size) list.push_back(amount);
    Node& made = rewriter_.add(node, "Resize", list, node.output(0)->name());
    copy_attributes(node, made);
    made.set_ints("axes", kept);
    return replace(node, made, from.channels, from.line);
  }

  /// Of height and width alone, by constant amounts.
  bool pad(Node& node) {
    if (!rewriter_.is(&node, "Pad") || node.inputs().size() < 2 || node.input(1) == nullptr)
      return false;
    const Blocked* x = find(node.input(0));
    if (x == nullptr || !is_image(node.input(0))) return false;
    const auto pads = rewriter_.ints(node.input(1));
    std::vector<int64_t> axes;
    if (node.inputs().size() > 3 && node.input(3) != nullptr) {
      const auto given = rewriter_.ints(node.input(3));
      if (!given) return false;
      axes = *given;
    } else {
      for (size_t axis = 0; axis < x->rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
    }
    if (!pads || pads->size() != 2 * axes.size()) return false;
    std::vector<int64_t> amounts, after, kept;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = x->axis(axes[i]);
      const int64_t begin = (*pads)[i], end = (*pads)[axes.size() + i];
      if (axis >= 2 && axis < 4) {
        amounts.push_back(begin);
        after.push_back(end);
        kept.push_back(axis);
      } else if (begin != 0 || end != 0) {
        return false;
      }
    }
    if (kept.empty()) return false;
    for (const int64_t amount : after) amounts.push_back(amount);
    const Blocked from = *x;
    Value* fill = node.inputs().size() > 2 ? node.input(2) : nullptr;
    Node& made =
        rewriter_.add(node, "Pad", {from.value, ints(amounts, "pads"), fill, ints(kept, "axes")},
                      node.output(0)->name());
    copy_attributes(node, made);
    return replace(node, made, from.channels, from.line);
  }

  /// Of height and width, or of whole blocks of channels.
  bool slice(Node& node) {
    if (!rewriter_.is(&node, "Slice") || node.inputs().size() < 3) return false;
    const Blocked* x = find(node.input(0));
    if (x == nullptr || !is_image(node.input(0)) || node.input(1) == nullptr ||
        node.input(2) == nullptr)
      return false;
    auto bounds = slice_bounds(rewriter_, node, x->rank());
    auto ends = rewriter_.ints(node.input(2));
    if (!bounds || !ends || bounds->starts.size() != ends->size() || ends->size() > 4) return false;
    int64_t channels = x->channels;
    for (size_t i = 0; i < ends->size(); ++i) {
      int64_t& axis = bounds->axes[i];
      axis = x->axis(axis);
      if (axis < 1 || axis > 3) return false;
      if (axis != 1) continue;
      int64_t &start = bounds->starts[i], &end = (*ends)[i];
      const int64_t total = x->channels;
      if (start < 0) start = std::max<int64_t>(0, start + total);
      end = end < 0 ? end + total : std::min(end, total);
      if (bounds->steps[i] != 1 || start % kBlock != 0 || (end % kBlock != 0 && end != total) ||
          start >= end)
        return false;
      channels = end - start;
      start /= kBlock;
      end = blocks_of(end);
    }
    const Blocked from = *x;
    Node& made = rewriter_.add(node, "Slice",
                               {from.value, ints(bounds->starts, "starts"), ints(*ends, "ends"),
                                ints(bounds->axes, "axes"), ints(bounds->steps, "steps")},
                               node.output(0)->name());
    return replace(node, made, channels, from.line);
  }

  /// Along channels where whole blocks part, as slices.
  bool split(Node& node) {
    if (!rewriter_.is(&node, "Split") || node.input(0) == nullptr) return false;
    const Blocked* x = find(node.input(0));
    const int64_t axis = AttributeReader(node).get_int("axis", 0);
    if (x == nullptr || !is_image(node.input(0)) || x->axis(axis) != 1) return false;
    std::vector<int64_t> sizes;
    int64_t total = 0;
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.output(i) == nullptr) return false;
      const auto size = rewriter_.dim(node.output(i), 1);
      if (!size || *size < 1 || total % kBlock != 0) return false;
      sizes.push_back(*size);
      total += *size;
    }
    if (total != x->channels) return false;
    const Blocked from = *x;
    int64_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      Node& made = rewriter_.add(node, "Slice",
                                 {from.value, ints({at / kBlock}, "starts"),
                                  ints({blocks_of(at + sizes[i])}, "ends"), ints({1}, "axes")},
                                 node.output(i)->name());
      replace(node, made, sizes[i], from.line, i);
      at += sizes[i];
    }
    return true;
  }

  Rewriter& rewriter_;
  Graph& graph_;
  std::map<const Value*, Blocked> blocked_;
  Value* row_axis_ = nullptr;  ///< of Unsqueeze and Squeeze
  std::vector<Node*> made_;    ///< UnblockChannels, and Squeeze behind it
};

}  // namespace

Result<size_t> block_layout(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += BlockLayout(rewriter, graph).run(); });
  return count;
}

}  // namespace tombolo::passes
