#include "passes/expand_attention.h"

#include <array>
#include <numeric>
#include <vector>

#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

class AttentionExpander {
 public:
  AttentionExpander(Rewriter& rewriter, Node& node)
      : r_(rewriter), node_(node), attributes_(node), name_(node.output(0)->name()) {}

  size_t expand() {
    const auto is = [&](Text op) { return r_.is(&node_, op, kMicrosoft); };
    if (is("MultiHeadAttention")) return multi_head();
    if (is("Attention")) return projected();
    if (is("QAttention")) return quantised();
    return 0;
  }

 private:
  using Values = std::vector<Value*>;

  Value* input(size_t i) const { return node_.input(i); }
  bool is_read(size_t output) const { return Rewriter::is_read(node_.output(output)); }
  bool any(std::initializer_list<size_t> inputs) const {
    for (const size_t i : inputs)
      if (input(i) != nullptr) return true;
    return false;
  }
  Value* one(Text op, const Values& inputs, Text domain = {}) {
    Node& made = r_.add(node_, op, inputs, name_, 1, domain);
    r_.touch(made);
    return made.output(0);
  }
  template <typename T>
  Value* tensor(DType dtype, const std::vector<int64_t>& dims, const std::vector<T>& values) {
    return r_.initializer(node_.graph(), Tensor::of<T>(dtype, dims, values), name_);
  }
  Value* number(float value) { return tensor<float>(DType::kFloat32, {}, {value}); }
  Value* numbers(std::vector<int64_t> values) {
    return r_.ints_initializer(node_.graph(), values, name_);
  }

  /// Queries, keys and values, which lie side by side along the axis.
  Values parts_of(Value* all, std::array<int64_t, 3> sizes, int64_t axis) {
    Node& split = r_.add(node_, "Split", {all, numbers({sizes[0], sizes[1], sizes[2]})}, name_, 3);
    split.set_int("axis", axis);
    r_.touch(split);
    return {split.output(0), split.output(1), split.output(2)};
  }

  /// Whether mask_of() takes it: [batch, keys], [batch, queries, keys], or so many keys of each of
  /// [batch].
  bool plain_mask(const Value* mask, const Value* keys) const {
    if (mask == nullptr || r_.rank(mask) == 2 || r_.rank(mask) == 3) return true;
    const SymShape *ends = r_.shape(mask), *all = r_.shape(keys);
    return ends != nullptr && all != nullptr && ends->size() == 1 && all->size() == 3 &&
           (*ends)[0].equals((*all)[0]);
  }
  /// 0, 1, ... as int32, one for each key: [1, keys].
  Value* places_of(Value* keys) {
    if (const auto length = r_.dim(keys, 1)) {
      std::vector<int32_t> steps(static_cast<size_t>(*length));
      std::iota(steps.begin(), steps.end(), 0);
      return tensor<int32_t>(DType::kInt32, {1, *length}, steps);
    }
    Value* counted = r_.axis_length(node_, keys, 1, name_);
    Node& length = r_.add(node_, "Cast", {one("Squeeze", {counted})}, name_);
    length.set_int("to", static_cast<int64_t>(DType::kInt32));
    r_.touch(length);
    const auto scalar = [&](int32_t value) { return tensor<int32_t>(DType::kInt32, {}, {value}); };
    return one("Unsqueeze", {one("Range", {scalar(0), length.output(0), scalar(1)}), numbers({0})});
  }
  /// What the mask of int32 adds to scores: [batch, 1, 1 or queries, keys].
  Value* mask_of(Value* mask, Value* keys) {
    Value* counts = nullptr;
    if (r_.rank(mask) != 1) {
      counts = one("Greater", {mask, tensor<int32_t>(DType::kInt32, {}, {0})});
    } else {
      counts = one("Less", {places_of(keys), one("Unsqueeze", {mask, numbers({1})})});
    }
    Value* terms = one("Where", {counts, number(0),
                                 number(attributes_.get_float("mask_filter_value", -10000.0f))});
    return one("Unsqueeze", {terms, r_.rank(mask) == 3 ? numbers({1}) : numbers({1, 2})});
  }

  bool causal() const { return attributes_.get_int("unidirectional", 0) != 0; }
  /// What all attention has to say in ways that attend() can: nodes are made only then.
  bool fits(const Value* mask, const Value* bias, const Value* keys) const {
    return attributes_.get_int("num_heads", 0) >= 1 && plain_mask(mask, keys) &&
           (bias == nullptr || r_.rank(bias) == 4);
  }
  /// Attention of ai.onnx; its cache is that of the inputs and outputs given. The mask fits `keys`.
  Node& attention_of(const Values& qkv, Value* keys, Value* mask, Value* bias, Value* past_key,
                     Value* past_value, bool presents) {
    Value* terms = bias;
    if (mask != nullptr) {
      terms = mask_of(mask, keys);
      if (bias != nullptr) terms = one("Add", {terms, bias});
    }
    Values inputs = {qkv[0], qkv[1], qkv[2], terms, past_key, past_value};
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& made = r_.add(node_, "Attention", inputs, name_, presents ? 3 : 1);
    if (r_.rank(qkv[1]) != 4) {
      const int64_t heads = attributes_.get_int("num_heads", 0);
      made.set_int("q_num_heads", heads);
      made.set_int("kv_num_heads", heads);
    }
    if (causal()) made.set_int("is_causal", 1);
    const float scale = attributes_.get_float("scale", 0);
    if (scale != 0) made.set_float("scale", scale);
    r_.touch(made);
    return made;
  }

  /// Axes 1 and 2 exchanged: heads and steps.
  Value* turned(Value* x) {
    Node& made = r_.add(node_, "Transpose", {x}, name_);
    made.set_ints("perm", std::array<int64_t, 4>{0, 2, 1, 3});
    r_.touch(made);
    return made.output(0);
  }

  /// Keys and values that lie as heads, which were made once for all steps. They need no bias.
  size_t crossed(Values qkv, Value* mask) {
    if (any({6, 7}) || r_.rank(qkv[2]) != 4 || causal()) return 0;
    if (Value* const bias = input(3); bias != nullptr) {
      const auto width = r_.dim(qkv[0], 2);
      if (!width) return 0;
      qkv[0] = one("Add", {qkv[0], one("Slice", {bias, numbers({0}), numbers({*width})})});
    }
    const int64_t heads = attributes_.get_int("num_heads", 0);
    qkv[0] = turned(one("Reshape", {qkv[0], numbers({0, 0, heads, -1})}));
    Node& made = attention_of(qkv, qkv[1], mask, input(5), nullptr, nullptr, false);
    for (size_t i = 1; i < 3; ++i)
      if (is_read(i)) r_.replace(*node_.output(i), *input(i));
    Node& flat = r_.add(node_, "Reshape", {turned(made.output(0)), numbers({0, 0, -1})}, name_);
    r_.touch(flat);
    r_.supersede(*node_.output(0), *flat.output(0));
    return 1;
  }

  size_t multi_head() {
    // Lengths of buffers, beams; scores that are read.
    if (any({8, 9}) || is_read(3)) return 0;
    Values qkv = {input(0), input(1), input(2)};
    for (Value* value : qkv)
      if (value == nullptr || r_.dtype(value) != DType::kFloat32) return 0;
    Value* const mask = input(4);
    const bool ends = mask != nullptr && r_.rank(mask) == 1;
    if (!fits(mask, input(5), qkv[1]) || (ends && any({6, 7})) || r_.rank(qkv[0]) != 3) return 0;
    if (r_.rank(qkv[1]) == 4) return crossed(qkv, mask);
    if (r_.rank(qkv[1]) != 3 || r_.rank(qkv[2]) != 3) return 0;
    if ((input(6) == nullptr) != (input(7) == nullptr)) return 0;
    if (causal() && !r_.same_shape(qkv[0], qkv[1])) return 0;
    if (input(3) != nullptr) {
      std::array<int64_t, 3> sizes;
      for (size_t i = 0; i < 3; ++i) {
        const auto size = r_.dim(qkv[i], 2);
        if (!size) return 0;
        sizes[i] = *size;
      }
      const Values biases = parts_of(input(3), sizes, 0);
      for (size_t i = 0; i < 3; ++i) qkv[i] = one("Add", {qkv[i], biases[i]});
    }
    const bool presents = input(6) != nullptr || is_read(1) || is_read(2);
    Node& made = attention_of(qkv, input(1), mask, input(5), input(6), input(7), presents);
    for (size_t i = 1; i < 3 && presents; ++i)
      if (is_read(i)) r_.replace(*node_.output(i), *made.output(i));
    r_.supersede(*node_.output(0), *made.output(0));
    return 1;
  }

  /// Sizes of queries, keys and values in `width` columns.
  std::optional<std::array<int64_t, 3>> sizes_of(const Value* weights) const {
    const auto width = r_.dim(weights, 1);
    if (!width) return std::nullopt;
    const auto given = attributes_.get_ints("qkv_hidden_sizes");
    if (given.empty()) {
      if (*width % 3 != 0) return std::nullopt;
      return std::array<int64_t, 3>{*width / 3, *width / 3, *width / 3};
    }
    if (given.size() != 3 || given[0] + given[1] + given[2] != *width || given[0] != given[1])
      return std::nullopt;
    return std::array<int64_t, 3>{given[0], given[1], given[2]};
  }
  /// What Attention and QAttention have in common: queries, keys and values of one input.
  bool projects(const Value* mask, const Value* bias, const Value* past) const {
    if (past != nullptr && (r_.rank(past) != 5 || r_.dtype(past) != DType::kFloat32 ||
                            (mask != nullptr && r_.rank(mask) == 1)))
      return false;
    return attributes_.get_int("do_rotary", 0) == 0 && r_.rank(input(0)) == 3 &&
           fits(mask, bias, input(0));
  }
  /// Keys and values of the cache lie one behind the other: [2, batch, heads, steps, size].
  size_t attend(Value* all, std::array<int64_t, 3> sizes, Value* mask, Value* bias, Value* past) {
    const bool presents = past != nullptr || is_read(1);
    Value *past_key = nullptr, *past_value = nullptr;
    if (past != nullptr) {
      Node& split = r_.add(node_, "Split", {past, numbers({1, 1})}, name_, 2);
      split.set_int("axis", 0);
      r_.touch(split);
      past_key = one("Squeeze", {split.output(0), numbers({0})});
      past_value = one("Squeeze", {split.output(1), numbers({0})});
    }
    Node& made =
        attention_of(parts_of(all, sizes, 2), input(0), mask, bias, past_key, past_value, presents);
    if (is_read(1)) {
      Node& joined = r_.add(node_, "Concat",
                            {one("Unsqueeze", {made.output(1), numbers({0})}),
                             one("Unsqueeze", {made.output(2), numbers({0})})},
                            name_);
      joined.set_int("axis", 0);
      r_.touch(joined);
      r_.replace(*node_.output(1), *joined.output(0));
    }
    r_.supersede(*node_.output(0), *made.output(0));
    return 1;
  }

  size_t projected() {
    if (any({6}) || !projects(input(3), input(5), input(4)) || input(1) == nullptr ||
        r_.dtype(input(0)) != DType::kFloat32)
      return 0;
    const auto sizes = sizes_of(input(1));
    if (!sizes || (is_read(1) && (*sizes)[0] != (*sizes)[2])) return 0;
    Value* all = one("MatMul", {input(0), input(1)});
    if (input(2) != nullptr) all = one("Add", {all, input(2)});
    return attend(all, *sizes, input(3), input(5), input(4));
  }

  size_t quantised() {
    if (!projects(input(5), nullptr, input(8))) return 0;
    for (size_t i = 1; i < 5; ++i)
      if (input(i) == nullptr) return 0;
    const auto sizes = sizes_of(input(1));
    if (!sizes || (is_read(1) && (*sizes)[0] != (*sizes)[2])) return 0;
    Value* all =
        one("MatMulIntegerToFloat",
            {input(0), input(1), input(3), input(4), input(6), input(7), input(2)}, kMicrosoft);
    return attend(all, *sizes, input(5), nullptr, input(8));
  }

  Rewriter& r_;
  Node& node_;
  const AttributeReader attributes_;
  const Text name_;
};

}  // namespace

size_t expand_microsoft_attention(Rewriter& rewriter, Node& node) {
  return AttentionExpander(rewriter, node).expand();
}

}  // namespace tombolo::passes
