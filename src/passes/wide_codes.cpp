// For the runtime: no operator computes with codes of 16 bits, so a tensor that is quantised to
// them and dequantised at once is a float that is rounded:
//   DequantizeLinear(QuantizeLinear(x)) = round(x / scale), between the least and the greatest
//   code less the zero point, times scale
// Four operators of single elements in place of two that turn types: chains, and regions of blocked
// channels, take them in. The numbers are the same to the bit; a NaN stays one.

#include "passes/codes.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

class Rounding {
 public:
  Rounding(Rewriter& rewriter, Node& quantize) : r_(rewriter), q_(quantize) {}

  size_t rewrite() {
    const DType dtype = r_.dtype(q_.output(0));
    if ((dtype != DType::kUInt16 && dtype != DType::kInt16) ||
        r_.dtype(q_.input(0)) != DType::kFloat32 || q_.output(0)->output_uses() != 0)
      return 0;
    const auto scale = one_scale(r_, q_);
    const auto zero = zero_of(q_);
    if (!scale || !zero) return 0;
    std::vector<Node*> readers;
    for (const auto& use : q_.output(0)->uses()) {
      Node* node = use.node;
      if (!r_.is(node, "DequantizeLinear") || use.index != 0 || &node->graph() != &q_.graph() ||
          r_.dtype(node->output(0)) != DType::kFloat32 || !one_scale(r_, *node) ||
          zero_of(*node) != zero)
        return 0;
      readers.push_back(node);
    }
    const bool is_signed = dtype == DType::kInt16;
    const double least = is_signed ? -32768 : 0, greatest = is_signed ? 32767 : 65535;
    const Text name = q_.output(0)->name();
    const auto made = [&](Text op, std::initializer_list<Value*> inputs) {
      Node& node = r_.add(q_, op, inputs, name);
      r_.touch(node);
      return node.output(0);
    };
    Value* codes = made("Div", {q_.input(0), number(*scale)});
    codes = made("Round", {codes});
    codes = made("Clip", {codes, number(least - *zero), number(greatest - *zero)});
    for (Node* reader : readers)
      r_.supersede(*reader->output(0), *made("Mul", {codes, number(*one_scale(r_, *reader))}));
    return 1;
  }

 private:
  std::optional<double> zero_of(const Node& node) const {
    return node.input(2) == nullptr ? 0.0 : r_.scalar(node.input(2));
  }
  Value* number(double value) {
    return r_.float_initializer(q_.graph(), {}, std::vector<double>{value}, "number");
  }

  Rewriter& r_;
  Node& q_;
};

}  // namespace

Result<size_t> wide_codes(Rewriter& rewriter) {
  const size_t count = change_each_quantise(rewriter, [&](Node& node) {
    return node.output(0)->has_uses() ? Rounding(rewriter, node).rewrite() : size_t{0};
  });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
