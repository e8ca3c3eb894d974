// For the runtime: arithmetic of the first releases (ai.onnx.experimental, which models still hold
// in ai.onnx) in operators of the standard, that have fast kernels. Only of float32.

#include <array>
#include <string>
#include <vector>

#include "passes/attributes.h"
#include "passes/each_node.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

constexpr Text kExperimental = "ai.onnx.experimental";

class Arithmetic {
 public:
  Arithmetic(Rewriter& rewriter, Node& node)
      : rewriter_(rewriter), node_(node), attributes_(node) {}

  bool expand() {
    if (node_.input(0) == nullptr || node_.outputs().empty() || node_.output(0) == nullptr ||
        rewriter_.dtype(node_.input(0)) != DType::kFloat32)
      return false;
    if (is("Scale")) return become(times(node_.input(0), attribute("scale", 1)));
    if (is("Affine"))
      return become(plus(times(node_.input(0), attribute("alpha", 1)), {}, {attribute("beta", 0)}));
    if (is("ScaledTanh") || is("ParametricSoftplus")) {
      Value* x = times(node_.input(0), attribute("beta", 0));
      x = made(is("ScaledTanh") ? "Tanh" : "Softplus", {x});
      return become(times(x, attribute("alpha", 0)));
    }
    if (is("ImageScaler")) return image_scaler();
    return false;
  }

 private:
  bool is(Text op) const {
    return rewriter_.is(&node_, op) || rewriter_.is(&node_, op, kExperimental);
  }
  double attribute(Text name, float otherwise) const {
    return static_cast<double>(attributes_.get_float(name, otherwise));
  }
  Value* made(Text op, std::vector<Value*> inputs) {
    Node& node = rewriter_.add(node_, op, inputs, node_.output(0)->name());
    rewriter_.touch(node);
    return node.output(0);
  }
  Value* times(Value* x, double factor) {
    const std::array values{factor};
    return made("Mul", {x, rewriter_.float_initializer(node_.graph(), {}, values, "scale")});
  }
  Value* plus(Value* x, const std::vector<int64_t>& dims, const std::vector<double>& more) {
    return made("Add", {x, rewriter_.float_initializer(node_.graph(), dims, more, "bias")});
  }
  bool become(Value* value) {
    rewriter_.supersede(*node_.output(0), *value);
    return true;
  }

  /// scale * x + bias, one bias a channel of [N, C, ...].
  bool image_scaler() {
    const auto bias = attributes_.get_floats("bias");
    const auto rank = rewriter_.rank(node_.input(0));
    const auto channels = static_cast<int64_t>(bias.size());
    if (!rank || *rank < 2 || rewriter_.dim(node_.input(0), 1) != channels) return false;
    std::vector<int64_t> dims(*rank - 1, 1);
    dims[0] = channels;
    return become(
        plus(times(node_.input(0), attribute("scale", 1)), dims, {bias.begin(), bias.end()}));
  }

  Rewriter& rewriter_;
  Node& node_;
  AttributeReader attributes_;
};

}  // namespace

Result<size_t> expand_experimental(Rewriter& rewriter) {
  return change_each_node(rewriter, [](Rewriter& in, Node& node) -> Result<bool> {
    return Arithmetic(in, node).expand();
  });
}

}  // namespace tombolo::passes
