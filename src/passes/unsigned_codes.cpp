// For the runtime: products of bytes want unsigned ones beside signed weights, so that signed codes
// of activations are turned by every operator that reads them. Codes and zero points that are 128
// more mean the same numbers:
//   (code - zero) * scale = ((code + 128) - (zero + 128)) * scale
// Codes from their QuantizeLinear to every DequantizeLinear, with what moves them between.
// Operators of codes but for products want one type: all that such could join stays signed where
// something of it does, as the graph's inputs and outputs.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/codes.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// Gives elements of its first input, or, Concat, of all, and a Pad the one that it fills with.
bool moves_codes(const Rewriter& rewriter, const Node& node) {
  if (rewriter.is(&node, "Pad"))
    return node.input(2) == nullptr || (rewriter.constant(node.input(2)) != nullptr &&
                                        rewriter.dtype(node.input(2)) == DType::kInt8);
  return moves_data(rewriter, node) || rewriter.is(&node, "Concat") || rewriter.is(&node, "Split");
}

bool is_product(const Rewriter& rewriter, const Node& node) {
  for (const Text op : {Text("Conv"), Text("ConvTranspose"), Text("Gemm"), Text("MatMul")})
    if (rewriter.is(&node, op)) return true;
  return false;
}

/// Codes that become unsigned together: those of one QuantizeLinear, and all that floats between
/// products come from and go to.
class Region {
 public:
  Region(Rewriter& rewriter, std::unordered_set<const Value*>& seen) : r_(rewriter), seen_(seen) {}

  /// Whether all of it can be turned.
  bool spread(Node& quantize) {
    graph_ = &quantize.graph();
    take(quantize.output(0));
    // To the end, also beyond what cannot be turned: all that belongs to it has been seen then.
    bool turns = true;
    for (size_t i = 0; i < values_.size(); ++i)
      turns &= r_.dtype(values_[i]) == DType::kInt8 ? codes(*values_[i]) : floats(*values_[i]);
    return turns;
  }

  void turn(std::unordered_map<const Value*, Value*>& constants) {
    const auto turn_input = [&](Node& node, uint32_t index) {
      Value*& made = constants[node.input(index)];
      if (made == nullptr) made = turned(*node.input(index));
      node.set_input(index, made);
    };
    for (Node* node : graph_->nodes()) {
      if (!nodes_.contains(node)) continue;
      const bool pad = r_.is(node, "Pad"), quantises = !moves_codes(r_, *node);
      // Zero points, and what a Pad fills with; where there is none it is 0.
      if ((pad || quantises) && node->input(2) != nullptr)
        turn_input(*node, 2);
      else if (pad || quantises)
        node->set_input(2, r_.byte_initializer(*graph_, DType::kUInt8, 128, "zero_point"));
      for (size_t i = 0; i < sources_of(*node); ++i)
        if (r_.is_constant(node->input(i))) turn_input(*node, static_cast<uint32_t>(i));
      if (r_.is(node, "QuantizeLinear")) node->remove_attribute("output_dtype");
      r_.touch(*node);
    }
  }

 private:
  void take(Value* value) {
    const DType dtype = r_.dtype(value);
    if (value != nullptr && (dtype == DType::kInt8 || dtype == DType::kFloat32) &&
        !r_.is_constant(value) && seen_.insert(value).second)
      values_.push_back(value);
  }
  void take_all(const Node& node) {
    for (Value* value : node.inputs()) take(value);
    for (Value* value : node.outputs()) take(value);
  }

  bool codes(const Value& value) {
    bool turns = value.output_uses() == 0 && value.producer() != nullptr;
    const auto meet = [&](Node* node, bool given) {
      if (node == nullptr || &node->graph() != graph_)
        turns = false;
      else
        turns &= belongs(*node) && given;
    };
    meet(value.producer(), true);
    for (const auto& use : value.uses())
      meet(use.node, use.index == 0 || r_.is(use.node, "Concat"));
    return turns;
  }
  /// Through all but products.
  bool floats(const Value& value) {
    bool turns = true;
    const auto meet = [&](Node* node) {
      if (node == nullptr || &node->graph() != graph_ || is_product(r_, *node)) return;
      if (!r_.is(node, "QuantizeLinear") && !r_.is(node, "DequantizeLinear"))
        take_all(*node);
      else if (r_.dtype(node->input(0)) == DType::kInt8 ||
               r_.dtype(node->output(0)) == DType::kInt8)
        turns &= belongs(*node);
    };
    meet(value.producer());
    for (const auto& use : value.uses()) meet(use.node);
    return turns;
  }

  bool belongs(Node& node) {
    nodes_.insert(&node);
    take_all(node);
    return turns(node);
  }
  bool turns(const Node& node) const {
    if (!moves_codes(r_, node)) {
      const bool quantize = r_.is(&node, "QuantizeLinear");
      if (!quantize && !r_.is(&node, "DequantizeLinear")) return false;
      // What weights are quantised to stays signed.
      if (quantize && r_.is_constant(node.input(0))) return false;
      const Tensor* const zero = r_.constant(node.input(2));
      // A vector of scales would want as many zero points.
      if (node.input(2) == nullptr ? !r_.scalar(node.input(1))
                                   : zero == nullptr || zero->dtype() != DType::kInt8)
        return false;
    }
    for (size_t i = 0; i < sources_of(node); ++i)
      if (r_.is_constant(node.input(i)) && !turns_constant(*node.input(i))) return false;
    return true;
  }

  /// So many of its first inputs are codes that a node gives, or gives the meaning of.
  size_t sources_of(const Node& node) const {
    if (r_.is(&node, "QuantizeLinear")) return 0;
    return r_.is(&node, "Concat") ? node.inputs().size() : 1;
  }
  /// Tables of words, say, of which this makes a copy.
  bool turns_constant(const Value& value) const {
    constexpr int64_t kMost = int64_t{64} << 20;
    const Tensor* const given = r_.constant(&value);
    return given != nullptr && given->size() <= kMost;
  }

  Value* turned(const Value& constant) {
    const Tensor& given = *r_.constant(&constant);
    std::vector<uint8_t> codes(static_cast<size_t>(given.size()));
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<uint8_t>(given.data<int8_t>()[i] + 128);
    return r_.initializer(*graph_, Tensor::of<uint8_t>(DType::kUInt8, given.dims(), codes),
                          constant.name());
  }

  Rewriter& r_;
  std::unordered_set<const Value*>& seen_;
  Graph* graph_ = nullptr;
  std::vector<Value*> values_;
  std::unordered_set<const Node*> nodes_;
};

}  // namespace

Result<size_t> unsigned_codes(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    std::unordered_set<const Value*> seen;
    std::unordered_map<const Value*, Value*> constants;
    for (Node* node : graph.nodes()) {
      if (!rewriter.is(node, "QuantizeLinear") || node->outputs().size() != 1 ||
          node->output(0) == nullptr || seen.contains(node->output(0)) ||
          rewriter.dtype(node->output(0)) != DType::kInt8)
        continue;
      Region region(rewriter, seen);
      if (!region.spread(*node)) continue;
      region.turn(constants);
      ++count;
    }
  });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
