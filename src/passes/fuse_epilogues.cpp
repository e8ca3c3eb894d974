// For the runtime: what follows a convolution or a product element by element is done before its
// result is stored (runtime_operators.h). A product reads its sides and writes its result where
// Transposes around it would have taken them from and put it.

#include <cmath>
#include <limits>

#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

constexpr std::string_view kDomain = "ai.tombolo";

struct Activation {
  std::string name;
  std::vector<float> params;
};

/// The activation that the node is, of its input 0.
std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node) {
  const AttributeReader attributes(node);
  const auto plain = [&](Text op) { return rewriter.is(&node, op); };
  for (const Text op : {Text("Relu"), Text("Sigmoid"), Text("Tanh"), Text("HardSwish"),
                        Text("Softplus"), Text("Mish")})
    if (plain(op)) return Activation{std::string(op), {}};
  if (plain("Gelu"))
    return Activation{attributes.get_string("approximate", "none") == "tanh" ? "GeluTanh" : "Gelu",
                      {}};
  if (plain("LeakyRelu")) return Activation{"LeakyRelu", {attributes.get_float("alpha", 0.01f)}};
  if (plain("Elu")) return Activation{"Elu", {attributes.get_float("alpha", 1)}};
  if (plain("Swish")) return Activation{"Swish", {attributes.get_float("alpha", 1)}};
  if (plain("HardSigmoid"))
    return Activation{"HardSigmoid",
                      {attributes.get_float("alpha", 0.2f), attributes.get_float("beta", 0.5f)}};
  if (plain("Clip")) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float bounds[2] = {-kInfinity, kInfinity};
    for (const size_t i : {size_t(0), size_t(1)}) {
      if (node.input(i + 1) == nullptr) continue;
      const auto bound = rewriter.scalar(node.input(i + 1));
      if (!bound || std::isnan(*bound)) return std::nullopt;
      bounds[i] = static_cast<float>(*bound);
    }
    if (bounds[0] > bounds[1]) return std::nullopt;
    return Activation{"Clip", {bounds[0], bounds[1]}};
  }
  return std::nullopt;
}

/// A node, and what behind it can join it.
class Chain {
 public:
  Chain(Rewriter& rewriter, Node& node) : rewriter_(rewriter), node_(node), last_(&node) {}

  size_t fuse() {
    const bool conv = rewriter_.is(&node_, "Conv"), matmul = rewriter_.is(&node_, "MatMul"),
               gemm = rewriter_.is(&node_, "Gemm");
    const DType dtype = rewriter_.dtype(node_.output(0));
    const bool doubles = matmul && dtype == DType::kFloat64;
    if ((!conv && !matmul && !gemm) || (dtype != DType::kFloat32 && !doubles)) return 0;
    if (conv) bias_ = node_.input(2);
    if (gemm && !take_gemm()) return 0;
    if (matmul && (rewriter_.rank(node_.input(0)).value_or(0) < 2 ||
                   rewriter_.rank(node_.input(1)).value_or(0) < 2))
      return 0;
    if (matmul) take_transpose();
    if (matmul) take_orders();
    if (doubles) {
      take_order_of_result();
    } else {
      if (matmul) take_scale();
      if (!conv && bias_ == nullptr) take_bias();
      if (matmul) take_order_of_result();
      if (matmul && bias_ == nullptr) take_bias();
      take_residual();
      take_activation();
    }
    // Only operators of ai.tombolo take weights of another type (widen_halves.cpp).
    const bool narrow = bits_of(rewriter_.dtype(node_.input(1))) == 16;
    if (taken_.empty() && !narrow && turned_ == nullptr && ordered_[0] == nullptr &&
        ordered_[1] == nullptr)
      return 0;
    write(conv ? "Conv" : "MatMul");
    return 1;
  }

 private:
  Node* reader() const { return Rewriter::only_reader(last_->output(0), node_.graph()); }
  void take(Node& node) {
    taken_.push_back(&node);
    last_ = &node;
  }

  bool take_gemm() {
    const AttributeReader attributes(node_);
    alpha_ = attributes.get_float("alpha", 1);
    if (node_.input(2) == nullptr) return true;
    const auto rank = rewriter_.rank(node_.input(2));
    if (!rank || *rank > 1 || attributes.get_float("beta", 1) != 1) return false;
    bias_ = node_.input(2);
    return true;
  }

  /// The right side is read as it lies before its last two axes are exchanged.
  void take_transpose() {
    Node* transpose = rewriter_.producer(node_.input(1), "Transpose");
    if (transpose == nullptr || &transpose->graph() != &node_.graph()) return;
    if (turns_matrices(AttributeReader(*transpose).get_ints("perm"))) turned_ = transpose;
  }

  /// A Transpose's order of axes, empty where it does not name them all.
  static std::span<const int64_t> perm_of(const Node& transpose, std::optional<size_t> rank) {
    const auto perm = AttributeReader(transpose).get_ints("perm");
    return rank && perm.size() == *rank && *rank >= 2 ? perm : std::span<const int64_t>();
  }

  /// A side is read as it lies before its axes are put in another order, where its rows stay in one
  /// piece or become columns. A constant is packed as the file has it.
  void take_orders() {
    for (const size_t side : {size_t(0), size_t(1)}) {
      Node* transpose = rewriter_.producer(node_.input(side), "Transpose");
      if (transpose == nullptr || transpose == turned_ || &transpose->graph() != &node_.graph() ||
          !Rewriter::single_use(transpose->output(0)) || rewriter_.is_constant(transpose->input(0)))
        continue;
      const auto rank = rewriter_.rank(node_.input(side));
      const auto perm = perm_of(*transpose, rank);
      if (perm.empty()) continue;
      const auto last = static_cast<int64_t>(*rank) - 1;
      // Rows of A that become columns are turned a matrix at a time, which many products of one B
      // would rather have as more rows.
      const bool turns = perm[perm.size() - 2] == last &&
                         (side == 1 || (*rank > 2 && rewriter_.rank(node_.input(1)) == rank));
      if (perm.back() == last || turns) ordered_[side] = transpose;
    }
  }

  /// The result is written in the order that it is read in, if its rows stay in one piece.
  void take_order_of_result() {
    Node* transpose = reader();
    if (!rewriter_.is(transpose, "Transpose")) return;
    const auto perm = perm_of(*transpose, rewriter_.rank(last_->output(0)));
    if (perm.empty() || perm.back() != static_cast<int64_t>(perm.size()) - 1) return;
    result_order_.assign(perm.begin(), perm.end());
    take(*transpose);
  }

  void take_scale() {
    Node* mul = reader();
    if (!rewriter_.is(mul, "Mul") && !rewriter_.is(mul, "Div")) return;
    const bool divide = rewriter_.is(mul, "Div");
    for (const size_t side : {size_t(1), size_t(0)}) {
      if (divide && side == 0) break;
      if (mul->input(1 - side) != last_->output(0)) continue;
      const auto factor = rewriter_.scalar(mul->input(side));
      const auto rank = rewriter_.rank(mul->input(side));
      const auto own = rewriter_.rank(last_->output(0));
      if (!factor || !rank || !own || *rank > *own || !std::isfinite(*factor) || *factor == 0)
        continue;
      alpha_ *= static_cast<float>(divide ? 1 / *factor : *factor);
      take(*mul);
      return;
    }
  }

  void take_bias() {
    Node* add = reader();
    if (!rewriter_.is(add, "Add")) return;
    for (const size_t side : {size_t(0), size_t(1)}) {
      Value* other = add->input(1 - side);
      if (add->input(side) != last_->output(0) || !rewriter_.is_constant(other)) continue;
      const auto dims = rewriter_.dims(other);
      const auto columns = rewriter_.dim(last_->output(0), -1);
      if (!dims || dims->size() > 1 || !columns ||
          (dims->size() == 1 && (*dims)[0] != 1 && (*dims)[0] != *columns))
        continue;
      bias_ = other;
      take(*add);
      return;
    }
  }

  void take_residual() {
    Node* add = reader();
    if (!rewriter_.is(add, "Add")) return;
    for (const size_t side : {size_t(0), size_t(1)}) {
      Value* other = add->input(1 - side);
      if (add->input(side) != last_->output(0) || other == last_->output(0) ||
          !rewriter_.same_shape(other, last_->output(0)) ||
          !rewriter_.same_dtype(other, last_->output(0)))
        continue;
      residual_ = other;
      take(*add);
      return;
    }
  }

  void take_activation() {
    Node* node = reader();
    if (node == nullptr || node->input(0) != last_->output(0)) return;
    activation_ = activation_of(rewriter_, *node);
    if (activation_) take(*node);
  }

  void write(Text op) {
    std::vector<Value*> inputs = {node_.input(0), node_.input(1), bias_, residual_};
    if (turned_ != nullptr) inputs[1] = turned_->input(0);
    for (const size_t side : {size_t(0), size_t(1)})
      if (ordered_[side] != nullptr) inputs[side] = ordered_[side]->input(0);
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& fused = rewriter_.add(*last_, op, inputs, last_->output(0)->name(), 1, kDomain);
    if (op == "Conv") {
      for (const Attribute& attribute : node_.attributes()) {
        if (attribute.i() != nullptr) fused.set_int(attribute.name, *attribute.i());
        if (attribute.s() != nullptr) fused.set_string(attribute.name, *attribute.s());
        if (attribute.type == AttrType::kInts) fused.set_ints(attribute.name, attribute.ints());
      }
    } else {
      for (const Text name : {Text("transA"), Text("transB")})
        if (AttributeReader(node_).get_int(name, 0) != 0) fused.set_int(name, 1);
      if (turned_ != nullptr) fused.set_int("transB", 1);
      if (alpha_ != 1) fused.set_float("alpha", alpha_);
      for (const size_t side : {size_t(0), size_t(1)})
        if (ordered_[side] != nullptr)
          fused.set_ints(side == 0 ? "perm_a" : "perm_b",
                         AttributeReader(*ordered_[side]).get_ints("perm"));
      if (!result_order_.empty()) fused.set_ints("perm_y", result_order_);
    }
    if (activation_) {
      fused.set_string("activation", activation_->name);
      if (!activation_->params.empty()) fused.set_floats("activation_params", activation_->params);
    }
    rewriter_.touch(fused);
    rewriter_.supersede(*last_->output(0), *fused.output(0));
    for (size_t i = taken_.size(); i-- > 0;)
      if (taken_[i] != last_) rewriter_.erase(*taken_[i]);
    if (last_ != &node_) rewriter_.erase(node_);
    for (Node* before : {turned_, ordered_[0], ordered_[1]})
      if (before != nullptr && !before->output(0)->has_uses()) rewriter_.erase(*before);
  }

  Rewriter& rewriter_;
  Node& node_;
  Node* last_;
  std::vector<Node*> taken_;
  Node* turned_ = nullptr;  ///< Transpose of the last two axes before the right side
  Node* ordered_[2] = {};   ///< any other before a side
  std::vector<int64_t> result_order_;
  Value *bias_ = nullptr, *residual_ = nullptr;
  float alpha_ = 1;
  std::optional<Activation> activation_;
};

}  // namespace

Result<size_t> fuse_epilogues(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (node->outputs().size() == 1 && node->output(0) != nullptr)
        count += Chain(rewriter, *node).fuse();
  });
  return count;
}

}  // namespace tombolo::passes
