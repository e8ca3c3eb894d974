// Nodes whose inputs are all constants are run now, with the reference kernels; small integer
// tensors that inference knows (Shape, Size and arithmetic on them) become constants.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "ir/clone.h"
#include "passes/evaluate.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// Multiplications that folding one node may cost: some seconds. The first of the reference
/// kernels, the second of the runtime's.
constexpr double kMaxWork = 4e9, kMaxFastWork = 1e11;
constexpr double kManyProducts = 1e7;  ///< more than this the runtime's kernels do

uint64_t bytes_of_value(const Rewriter& rewriter, const Value* value) {
  if (const Constant* constant = value->initializer()) {
    const int64_t count = element_count(constant->dims.span());
    return count < 0 ? 0
                     : packed_bytes(constant->dtype(), static_cast<uint64_t>(count)).value_or(0);
  }
  const Tensor* tensor = rewriter.constant(value);
  return tensor != nullptr ? tensor->bytes().size() : 0;
}

double elements_of(const Rewriter& rewriter, const Value* value) {
  const auto dims = value != nullptr ? rewriter.dims(value) : std::nullopt;
  return dims ? static_cast<double>(std::max<int64_t>(0, element_count(*dims))) : 0;
}

/// The product of the lengths of all labels.
double work_of_einsum(const Rewriter& rewriter, const Node& node) {
  const Text equation = AttributeReader(node).get_string("equation", "");
  std::map<char, double> lengths;
  double rest = 1;  // behind an ellipsis
  size_t at = 0;
  for (const Value* input : node.inputs()) {
    const auto dims = rewriter.dims(input);
    if (!dims) return INFINITY;
    size_t axis = 0, labels = 0;
    const size_t end = std::min(equation.find_first_of(",-", at), equation.size());
    for (size_t i = at; i < end; ++i)
      labels += std::isalpha(static_cast<unsigned char>(equation[i])) != 0;
    for (size_t i = at; i < end; ++i) {
      if (equation[i] == '.' && axis + labels < dims->size()) {
        double part = 1;
        for (; axis + labels < dims->size(); ++axis) part *= static_cast<double>((*dims)[axis]);
        rest = std::max(rest, part);
      } else if (std::isalpha(static_cast<unsigned char>(equation[i])) != 0 &&
                 axis < dims->size()) {
        double& length = lengths[equation[i]];
        length = std::max(length, static_cast<double>((*dims)[axis++]));
        --labels;
      }
    }
    at = end + 1;
  }
  for (const auto& [label, length] : lengths) rest *= length;
  return rest;
}

/// Multiplications of operators that cost far more than the size of what they give.
double work_of(const Rewriter& rewriter, const Node& node) {
  const Text op = node.op_type();
  const AttributeReader attributes(node);
  if (op == "MatMul" || op == "Gemm") {
    const auto dims = rewriter.dims(node.input(0));
    if (!dims || dims->empty()) return 0;
    const int64_t depth = attributes.get_int("transA", 0) != 0 ? dims->front() : dims->back();
    return elements_of(rewriter, node.output(0)) * static_cast<double>(depth);
  }
  if (op == "Conv" || op == "ConvTranspose") {
    const auto dims = rewriter.dims(node.input(1));
    if (!dims || dims->empty() || dims->front() <= 0) return 0;
    return elements_of(rewriter, op == "Conv" ? node.output(0) : node.input(0)) *
           elements_of(rewriter, node.input(1)) / static_cast<double>(dims->front());
  }
  if (op == "Einsum") return work_of_einsum(rewriter, node);
  if (op != "LSTM" && op != "GRU" && op != "RNN" && op != "Attention") return 0;
  double work = 1;  // at most
  for (const Value* input : node.inputs())
    if (input != nullptr && bytes_of_value(rewriter, input) > 0)
      work *= static_cast<double>(bytes_of_value(rewriter, input));
  return work / 64;
}

/// Kept although constant: what the graph says about quantisation is read by who runs it.
bool is_kept(const Node& node) {
  const Text op = node.op_type();
  return op == "DequantizeLinear" || op == "Constant";
}

class Folder {
 public:
  explicit Folder(Rewriter& rewriter) : rewriter_(rewriter) {}

  Result<size_t> run() {
    rewriter_.refresh();
    rewriter_.for_each([&](Graph& graph) { fold(graph); });
    // Only what is read by a node that stays becomes an initialiser: of a chain, its end.
    for (Node* node : order_)
      for (Value* output : node->outputs())
        if (output != nullptr) settle(*node, *output);
    for (size_t i = order_.size(); i-- > 0;) rewriter_.erase(*order_[i]);
    return order_.size();
  }

 private:
  void fold(Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (is_kept(*node) || node->outputs().empty()) continue;
      if (fold_known(*node)) continue;
      if (can_evaluate(rewriter_, *node)) fold_node(*node);
    }
  }

  /// A node all of whose wanted outputs inference knows.
  bool fold_known(Node& node) {
    std::vector<std::pair<const Value*, Tensor>> found;
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      const SymShape* elements = rewriter_.elements(output);
      const DType dtype = rewriter_.dtype(output);
      const auto dims = rewriter_.dims(output);
      if (elements == nullptr || !dims || dims->size() > 1 ||
          (dtype != DType::kInt64 && dtype != DType::kInt32) ||
          element_count(*dims) != static_cast<int64_t>(elements->size()))
        return false;
      auto tensor = Tensor::allocate(dtype, *dims);
      if (!tensor) return false;
      for (size_t i = 0; i < elements->size(); ++i) {
        if (!(*elements)[i].is_value()) return false;
        tensor->set_int64(static_cast<int64_t>(i), (*elements)[i].value());
        if (tensor->get_int64(static_cast<int64_t>(i)) != (*elements)[i].value()) return false;
      }
      found.emplace_back(output, *std::move(tensor));
    }
    if (found.empty()) return false;
    for (auto& [output, tensor] : found) folded_.emplace(output, std::move(tensor));
    note(node);
    return true;
  }

  void fold_node(Node& node) {
    std::vector<RunValue> held(node.inputs().size());
    std::vector<const RunValue*> inputs(node.inputs().size());
    uint64_t dying = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* input = node.inputs()[i];
      if (input == nullptr) continue;
      if (const auto at = folded_.find(input); at != folded_.end()) {
        held[i] = at->second;
      } else if (rewriter_.is_constant(input)) {
        held[i] = RunValue();  // read below, once all inputs are known to be constant
      } else {
        return;
      }
      inputs[i] = &held[i];
      if (dies(*input, node)) dying += bytes_of(*input);
    }
    const double work = work_of(rewriter_, node);
    const bool fast = rewriter_.run_node != nullptr && work > kManyProducts;
    if (work > (fast ? kMaxFastWork : kMaxWork)) return;
    uint64_t expected = 0;
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      const auto dims = rewriter_.dims(output);
      if (!dims) continue;
      const int64_t count = element_count(*dims);
      expected +=
          count < 0
              ? UINT64_MAX / 2
              : packed_bytes(rewriter_.dtype(output), static_cast<uint64_t>(count)).value_or(0);
    }
    if (!affordable(expected, dying)) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || !held[i].is_none()) continue;
      const Tensor* tensor = rewriter_.constant(node.inputs()[i]);
      if (tensor == nullptr) return;
      held[i] = *tensor;
    }
    const uint64_t room = std::max<uint64_t>(dying, rewriter_.limits.fold_growth);
    auto outputs = fast ? rewriter_.run_node(node, rewriter_.model().opset(node.domain()), inputs)
                        : evaluate(rewriter_, node, inputs, room * 4 + (1 << 20));
    if (!outputs) return;  // what fails here fails when the model runs, with a place
    uint64_t bytes = 0;
    for (size_t i = 0; i < outputs->size(); ++i) {
      if (node.outputs()[i] == nullptr) continue;
      if (!(*outputs)[i].is_tensor()) return;
      bytes += (*outputs)[i].tensor().bytes().size();
    }
    if (!affordable(bytes, dying)) return;
    if (bytes > dying) rewriter_.grown() += bytes - dying;
    const bool has_bodies = std::any_of(node.attributes().begin(), node.attributes().end(),
                                        [](const Attribute& a) { return a.graph() != nullptr; });
    for (size_t i = 0; i < outputs->size(); ++i) {
      if (node.outputs()[i] == nullptr) continue;
      Tensor tensor = std::move((*outputs)[i]).tensor();
      // A constant of a body is a view that holds the storage it is about to lie in.
      if (has_bodies && !tensor.unique()) {
        auto copy = tensor.clone();
        if (!copy) return;
        tensor = *std::move(copy);
      }
      folded_.emplace(node.outputs()[i], std::move(tensor));
    }
    note(node);
  }

  bool affordable(uint64_t bytes, uint64_t dying) const {
    return bytes <= dying || (bytes - dying <= rewriter_.limits.fold_growth &&
                              rewriter_.grown() + (bytes - dying) <= rewriter_.limits.total_growth);
  }

  /// Nothing reads `value` but `node` and nodes that are folded already.
  bool dies(const Value& value, const Node& node) const {
    if (value.output_uses() != 0 || value.is_input()) return false;
    for (const Use& use : value.uses())
      if (use.node != &node && !gone_.contains(use.node)) return false;
    return true;
  }

  uint64_t bytes_of(const Value& value) const {
    if (const auto at = folded_.find(&value); at != folded_.end()) return at->second.bytes().size();
    return bytes_of_value(rewriter_, &value);
  }

  void note(Node& node) {
    order_.push_back(&node);
    gone_.insert(&node);
  }

  void settle(Node& node, Value& output) {
    bool needed = output.output_uses() != 0;
    for (const Use& use : output.uses()) needed |= !gone_.contains(use.node);
    if (!needed) return;
    const Tensor& tensor = folded_.at(&output);
    if (output.output_uses() != 0) {
      // A graph's output needs a node: a Constant.
      Node& constant = *node.graph().add_node("Constant", {}, &node);
      constant.set_tensor("value", tensor);
      Value* value = constant.add_output(rewriter_.unique_name(output.name()));
      rewriter_.replace(output, *value);
    } else {
      // Uses by nodes that are folded too stay with the old value: they are erased with it.
      rewriter_.replace(output, *rewriter_.initializer(node.graph(), tensor, output.name()));
    }
  }

  Rewriter& rewriter_;
  std::unordered_map<const Value*, Tensor> folded_;
  std::unordered_set<const Node*> gone_;
  std::vector<Node*> order_;
};

}  // namespace

Result<size_t> fold_constants(Rewriter& rewriter) { return Folder(rewriter).run(); }

/// Constant nodes become initialisers, which every reader of the file knows as weights.
Result<size_t> lift_constants(Rewriter& rewriter) {
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!rewriter.is(node, "Constant") || node->outputs().size() != 1) continue;
      Value* output = node->output(0);
      if (output == nullptr || output->output_uses() != 0) continue;
      const Tensor* tensor = rewriter.constant(output);
      if (tensor == nullptr) continue;
      Value* value = nullptr;
      if (const Constant* held = AttributeReader(*node).get_tensor("value")) {
        Constant constant = copy(*held);
        const Text name = rewriter.unique_name(output->name());
        constant.name = name;
        value = graph.new_value_view(name);
        graph.define_initializer(value, std::make_unique<Constant>(std::move(constant)));
        rewriter.changed();
      } else {
        value = rewriter.initializer(graph, *tensor, output->name());
      }
      rewriter.replace(*output, *value);
      rewriter.erase(*node);
      ++count;
    }
  });
  return count;
}

}  // namespace tombolo::passes
