#include "formats/common/layout.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <vector>

#include "formats/common/graph_builder.h"

namespace tombolo {
namespace {

using Perm = std::vector<int64_t>;

bool is_identity(const Perm& perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

Perm inverse(const Perm& perm) {
  Perm result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return result;
}

/// The permutation of a Transpose node of the main domain; nullopt for any other node.
std::optional<Perm> perm_of(const Node* node) {
  if (!node || node->op_type() != "Transpose" || !node->domain().empty()) return std::nullopt;
  const Attribute* attribute = node->attribute("perm");
  if (!attribute) return std::nullopt;
  Perm perm(attribute->ints().begin(), attribute->ints().end());
  Perm sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  return is_identity(sorted) ? std::optional(perm) : std::nullopt;
}

const std::vector<Dim>* dims_of(const Value* value) {
  const Type* type = value ? value->type() : nullptr;
  return type && type->is_tensor() && type->has_shape ? &type->dims : nullptr;
}

/// How an operator takes a permutation of its input's axes.
enum class Rule {
  kUnary,      // the first input only; the others have no axes
  kBroadcast,  // all inputs, broadcast against each other
  kAxis,       // as kUnary, and an attribute `axis`
  kConcat,     // all inputs, and an attribute `axis`
  kReduce,     // axes as second input, keepdims
  kPad,
  kSlice,
};
struct Row {
  std::string_view op;
  Rule rule;
};
constexpr Row kRules[] = {
    {"Abs", Rule::kUnary},
    {"Add", Rule::kBroadcast},
    {"And", Rule::kBroadcast},
    {"Cast", Rule::kUnary},
    {"Ceil", Rule::kUnary},
    {"Celu", Rule::kUnary},
    {"Clip", Rule::kUnary},
    {"Concat", Rule::kConcat},
    {"Div", Rule::kBroadcast},
    {"Elu", Rule::kUnary},
    {"Equal", Rule::kBroadcast},
    {"Erf", Rule::kUnary},
    {"Exp", Rule::kUnary},
    {"Floor", Rule::kUnary},
    {"Gelu", Rule::kUnary},
    {"Greater", Rule::kBroadcast},
    {"HardSigmoid", Rule::kUnary},
    {"HardSwish", Rule::kUnary},
    {"LeakyRelu", Rule::kUnary},
    {"Less", Rule::kBroadcast},
    {"Log", Rule::kUnary},
    {"LogSoftmax", Rule::kAxis},
    {"Max", Rule::kBroadcast},
    {"Mean", Rule::kBroadcast},
    {"Min", Rule::kBroadcast},
    {"Mish", Rule::kUnary},
    {"Mul", Rule::kBroadcast},
    {"Neg", Rule::kUnary},
    {"Not", Rule::kUnary},
    {"Or", Rule::kBroadcast},
    {"PRelu", Rule::kBroadcast},
    {"Pad", Rule::kPad},
    {"Pow", Rule::kBroadcast},
    {"Reciprocal", Rule::kUnary},
    {"ReduceL2", Rule::kReduce},
    {"ReduceMax", Rule::kReduce},
    {"ReduceMean", Rule::kReduce},
    {"ReduceMin", Rule::kReduce},
    {"ReduceProd", Rule::kReduce},
    {"ReduceSum", Rule::kReduce},
    {"ReduceSumSquare", Rule::kReduce},
    {"Relu", Rule::kUnary},
    {"Round", Rule::kUnary},
    {"Selu", Rule::kUnary},
    {"Shrink", Rule::kUnary},
    {"Sigmoid", Rule::kUnary},
    {"Sign", Rule::kUnary},
    {"Slice", Rule::kSlice},
    {"Softmax", Rule::kAxis},
    {"Softplus", Rule::kUnary},
    {"Softsign", Rule::kUnary},
    {"Sqrt", Rule::kUnary},
    {"Sub", Rule::kBroadcast},
    {"Sum", Rule::kBroadcast},
    {"Swish", Rule::kUnary},
    {"Tanh", Rule::kUnary},
    {"ThresholdedRelu", Rule::kUnary},
    {"Where", Rule::kBroadcast},
};

class LayoutPass {
 public:
  explicit LayoutPass(Graph& graph) : graph_(graph) {
    for (const Value* value : graph.inputs()) names_.emplace(value->name());
    for (const Value* value : graph.initializers()) names_.emplace(value->name());
    for (const Node* node : graph.nodes()) {
      for (const Value* value : node->outputs())
        if (value) names_.emplace(value->name());
    }
  }

  Status run() {
    merge_equal();
    for (Node* node : graph_.nodes()) {
      if (node->inputs().empty() || node->outputs().empty() || !node->domain().empty()) continue;
      if (perm_of(node)) {
        compose(*node);
        continue;
      }
      CHECK_OK(sink(*node));
      CHECK_OK(through_reshape(*node));
    }
    merge_equal();
    remove_unused();
    restore_names();
    return ok();
  }

 private:
  /// The value that `value` is a transposition by `perm` of; null when it is none.
  static Value* source(const Value* value, const Perm& perm) {
    const auto its = perm_of(value->producer());
    return its && *its == perm ? value->producer()->input(0) : nullptr;
  }

  std::string fresh(std::string_view hint) {
    std::string name(hint);
    for (size_t i = 1; !names_.insert(name).second; ++i) {
      name = std::string(hint) + "_" + std::to_string(i);
    }
    return name;
  }

  Result<Tensor> constant(const Value* value) const {
    return value->initializer()->value(graph_.storage_ptr());
  }

  Value* add_constant(const Tensor& tensor, const Value& like) {
    return graph_.add_initializer(graph_.storage().copy(fresh(like.name())), tensor);
  }

  static void permute_type(Value& value, const Type* like, const Perm& perm) {
    if (!like || !like->has_shape || like->dims.size() != perm.size()) return;
    Type type = *like;
    for (size_t i = 0; i < perm.size(); ++i) {
      type.dims[i] = like->dims[static_cast<size_t>(perm[i])];
    }
    value.set_type(std::move(type));
  }

  /// A new Transpose of `value` before `before`.
  Value* add_transpose(Value& value, const Perm& perm, Node* before) {
    for (const Use& use : value.uses()) {
      const auto its = perm_of(use.node);
      if (its && *its == perm && precedes(use.node, before)) return use.node->output(0);
    }
    Node* node = graph_.add_node("Transpose", {}, before);
    node->add_input(&value);
    node->set_ints("perm", perm);
    const std::string name = fresh(std::string(value.name()) + "/Transpose");
    node->set_name(name);
    Value* result = node->add_output(name);
    permute_type(*result, value.type(), perm);
    return result;
  }

  static bool precedes(const Node* a, const Node* b) {
    if (!b) return true;
    // Values are made in order, so a short look ahead settles nearly all cases.
    for (const Node* at = b->previous(); at; at = at->previous())
      if (at == a) return true;
    return false;
  }

  /// Every use of `from` becomes one of `to`. Graph outputs take the new value's name and type:
  /// unlike Value::replace_all_uses_with, which pins the old ones.
  void replace(Value& from, Value& to) {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i].value != &from) continue;
      graph_.set_output(i, &to);
      graph_.outputs()[i].declared.reset();
    }
    from.replace_all_uses_with(to);
  }

  /// Two Transposes in a row are one, or none.
  void compose(Node& node) {
    const Perm outer = *perm_of(&node);
    const auto inner = perm_of(node.input(0)->producer());
    if (inner && inner->size() == outer.size()) {
      Perm both(outer.size());
      for (size_t i = 0; i < outer.size(); ++i) both[i] = (*inner)[static_cast<size_t>(outer[i])];
      node.set_input(0, node.input(0)->producer()->input(0));
      node.set_ints("perm", both);
    }
    if (!is_identity(*perm_of(&node))) return;
    Value* from = node.input(0);
    Value* to = node.output(0);
    if (to->output_uses() != 0) {
      // A graph output keeps its name: its producer takes it, where it is free to.
      if (!from->producer() || from->output_uses() != 0) {
        node.set_op_type("Identity");
        node.remove_attribute("perm");
        return;
      }
      const std::string name(to->name());
      to->set_name(fresh(name));
      from->set_name(name);
    }
    replace(*to, *from);
  }

  /// The permutation that an input of `node` brings; nullopt when none does.
  static std::optional<Perm> incoming(const Node& node, bool all) {
    for (size_t i = 0; i < (all ? node.inputs().size() : 1); ++i) {
      const Value* input = node.input(i);
      if (!input) continue;
      if (auto perm = perm_of(input->producer())) return perm;
    }
    return std::nullopt;
  }

  /// Number of elements without axis 0, when known.
  static std::optional<int64_t> size_of(const Value* value) {
    const auto* dims = dims_of(value);
    if (!dims) return std::nullopt;
    int64_t size = 1;
    for (size_t i = 1; i < dims->size(); ++i) {
      if ((*dims)[i].kind != Dim::Kind::kValue || (*dims)[i].value > INT32_MAX) return std::nullopt;
      size *= std::max<int64_t>((*dims)[i].value, 1);
      if (size > INT32_MAX) return std::nullopt;
    }
    return size;
  }

  /// What stands for `input` when the node works on untransposed axes; null when it would cost
  /// more than it saves.
  Result<Value*> untransposed(Value* input, const Perm& perm, Node& node) {
    if (Value* direct = source(input, perm)) return direct;
    const auto* dims = dims_of(input);
    if (input->initializer() && !input->is_input()) {
      TRY(const Tensor tensor, constant(input));
      if (tensor.size() == 1 && tensor.rank() <= 1) return input;
      if (tensor.rank() > perm.size() || bytes_of(tensor.dtype()) == 0) return nullptr;
      Dims full;
      for (size_t i = tensor.rank(); i < perm.size(); ++i) full.push_back(1);
      for (const int64_t dim : tensor.dims().span()) full.push_back(dim);
      TRY(const Tensor turned, transposed(tensor.reshaped(full.span()), inverse(perm)));
      // Leading ones say nothing in a broadcast.
      size_t drop = 0;
      while (drop < perm.size() && turned.dim(drop) == 1) ++drop;
      return add_constant(turned.reshaped(turned.dims().span().subspan(drop)), *input);
    }
    if (!dims || dims->size() != perm.size()) return nullptr;
    const Perm back = inverse(perm);
    for (const Use& use : input->uses()) {
      const auto its = perm_of(use.node);
      if (its && *its == back && precedes(use.node, &node)) return use.node->output(0);
    }
    const auto size = size_of(input), result = size_of(node.output(0));
    if (size && result && *size < *result) return add_transpose(*input, back, &node);
    return nullptr;
  }

  /// Moves the Transpose in front of `node` behind it.
  Status sink(Node& node) {
    const auto row = std::lower_bound(std::begin(kRules), std::end(kRules), node.op_type(),
                                      [](const Row& entry, Text op) { return entry.op < op; });
    if (row == std::end(kRules) || row->op != node.op_type()) return ok();
    if (node.outputs().size() != 1 || !node.output(0)) return ok();
    const bool all = row->rule == Rule::kBroadcast || row->rule == Rule::kConcat;
    const auto found = incoming(node, all);
    if (!found) return ok();
    Perm perm = *found;
    const auto* out_dims = dims_of(node.output(0));
    if (!out_dims) return ok();
    const bool keeps_rank = row->rule != Rule::kReduce;
    if (keeps_rank && out_dims->size() != perm.size()) return ok();

    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    for (size_t i = 0; i < (all ? inputs.size() : 1); ++i) {
      if (!inputs[i]) return ok();
      if (row->rule == Rule::kConcat && inputs[i]->initializer()) return ok();
      TRY(inputs[i], untransposed(inputs[i], perm, node));
      if (!inputs[i]) return ok();
    }
    const auto rank = static_cast<int64_t>(perm.size());
    const auto axis = [&](int64_t a) -> int64_t {
      if (a < 0) a += rank;
      return a >= 0 && a < rank ? perm[static_cast<size_t>(a)] : -1;
    };
    Perm after = perm;
    switch (row->rule) {
      case Rule::kUnary:
      case Rule::kBroadcast:
        break;
      case Rule::kAxis:
      case Rule::kConcat: {
        const Attribute* attribute = node.attribute("axis");
        const int64_t to = axis(attribute && attribute->i() ? *attribute->i() : -1);
        if (to < 0) return ok();
        node.set_int("axis", to);
        break;
      }
      case Rule::kReduce: {
        if (inputs.size() < 2 || !inputs[1] || !inputs[1]->initializer()) return ok();
        TRY(const Tensor axes, constant(inputs[1]));
        std::vector<int64_t> moved;
        std::vector<bool> gone(perm.size());  // of the transposed axes
        for (int64_t i = 0; i < axes.size(); ++i) {
          int64_t a = axes.get_int64(i);
          if (axis(a) < 0) return ok();
          gone[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
          moved.push_back(axis(a));
        }
        std::sort(moved.begin(), moved.end());
        const Attribute* keep = node.attribute("keepdims");
        if (keep && keep->i() && *keep->i() == 0) {
          // Number the axes that are left anew.
          after.clear();
          for (size_t i = 0; i < perm.size(); ++i) {
            if (gone[i]) continue;
            int64_t at = perm[i];
            for (const int64_t other : moved) at -= other < perm[i];
            after.push_back(at);
          }
        }
        inputs[1] = add_constant(Tensor::int64s(moved), *inputs[1]);
        break;
      }
      case Rule::kPad: {
        if (inputs.size() < 2 || !inputs[1] || !inputs[1]->initializer() || inputs.size() > 3) {
          return ok();
        }
        TRY(const Tensor pads, constant(inputs[1]));
        if (pads.size() != 2 * rank) return ok();
        std::vector<int64_t> moved(static_cast<size_t>(2 * rank));
        for (int64_t i = 0; i < rank; ++i) {
          moved[static_cast<size_t>(axis(i))] = pads.get_int64(i);
          moved[static_cast<size_t>(axis(i) + rank)] = pads.get_int64(i + rank);
        }
        inputs[1] = add_constant(Tensor::int64s(moved), *inputs[1]);
        break;
      }
      case Rule::kSlice: {
        if (inputs.size() < 4 || !inputs[3] || !inputs[3]->initializer()) return ok();
        TRY(const Tensor axes, constant(inputs[3]));
        std::vector<int64_t> moved;
        for (int64_t i = 0; i < axes.size(); ++i) {
          moved.push_back(axis(axes.get_int64(i)));
          if (moved.back() < 0) return ok();
        }
        inputs[3] = add_constant(Tensor::int64s(moved), *inputs[3]);
        break;
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) node.set_input(static_cast<uint32_t>(i), inputs[i]);
    if (is_identity(after)) return ok();

    // The old name goes to the value with the old meaning.
    Value* inner = node.output(0);
    const Type* old_type = inner->type();
    const std::string name(inner->name());
    inner->set_name(fresh(name + "/inner"));
    renamed_.push_back({inner, name});
    Node* turn = graph_.add_node("Transpose", {}, node.next());
    turn->set_ints("perm", after);
    turn->set_name(fresh(name + "/Transpose"));
    Value* outer = turn->add_output(graph_.storage().copy(name));
    outer->set_type(old_type);
    replace(*inner, *outer);
    turn->add_input(inner);
    permute_type(*inner, old_type, inverse(after));
    return ok();
  }

  /// Flatten and Reshape keep the order of elements: a Transpose before them that moves only axes
  /// of length 1 does nothing, and one before Flatten and Gemm can be put into the weights.
  Status through_reshape(Node& node) {
    const bool flatten = node.op_type() == "Flatten";
    if (!flatten && node.op_type() != "Reshape") return ok();
    const auto perm = perm_of(node.input(0)->producer());
    if (!perm || perm->empty() || (*perm)[0] != 0) return ok();
    Value* from = node.input(0)->producer()->input(0);
    const auto* dims = dims_of(from);
    if (!dims || dims->size() != perm->size()) return ok();
    if (flatten) {
      const Attribute* axis = node.attribute("axis");
      if (axis && axis->i() && *axis->i() != 1) return ok();
    } else if (!copies_only_batch(node)) {
      return ok();
    }
    Perm moved;  // the axes longer than 1, in their new order
    for (const int64_t axis : *perm) {
      const Dim& dim = (*dims)[static_cast<size_t>(axis)];
      if (dim.kind != Dim::Kind::kValue || dim.value != 1) moved.push_back(axis);
    }
    if (std::is_sorted(moved.begin(), moved.end())) {
      node.set_input(0, from);
      return ok();
    }
    if (!flatten || node.output(0)->output_uses() != 0) return ok();
    for (const Use& use : node.output(0)->uses()) {
      const auto on = [&](Text name) {
        const Attribute* attribute = use.node->attribute(name);
        return attribute && attribute->i() && *attribute->i() != 0;
      };
      const Value* weight = use.node->input(1);
      if (use.node->op_type() != "Gemm" || use.index != 0 || on("transA") || on("transB") ||
          !weight || !weight->initializer() || weight->is_input()) {
        return ok();
      }
    }
    // Rows of the weight follow the flattened axes: [H W C] of the transposed, [C H W] of `from`.
    Dims split;
    Perm back;
    const Perm inverted = inverse(*perm);
    for (size_t i = 1; i < perm->size(); ++i) {
      const Dim& dim = (*dims)[static_cast<size_t>((*perm)[i])];
      if (dim.kind != Dim::Kind::kValue) return ok();
      split.push_back(dim.value);
      back.push_back(inverted[i] - 1);
    }
    back.push_back(static_cast<int64_t>(split.size()));
    std::vector<std::pair<Use, Value*>> changes;
    for (const Use& use : node.output(0)->uses()) {
      Value* weight = use.node->input(1);
      TRY(const Tensor tensor, constant(weight));
      Dims shape = split;
      if (tensor.rank() != 2 || element_count(split.span()) != tensor.dim(0)) return ok();
      shape.push_back(tensor.dim(1));
      TRY(const Tensor turned, transposed(tensor.reshaped(shape.span()), back));
      changes.emplace_back(use, add_constant(turned.reshaped(tensor.dims().span()), *weight));
    }
    for (const auto& [use, weight] : changes) use.node->set_input(1, weight);
    node.set_input(0, from);
    return ok();
  }

  bool copies_only_batch(const Node& node) const {
    const Value* shape = node.input(1);
    if (!shape || !shape->initializer()) return false;
    const auto tensor = constant(shape);
    if (!tensor) return false;
    for (int64_t i = 1; i < tensor->size(); ++i)
      if (tensor->get_int64(i) == 0) return false;
    return true;
  }

  /// Transposes of one value by one permutation are made once.
  void merge_equal() {
    for (Node* node : graph_.nodes()) {
      const auto perm = perm_of(node);
      if (!perm || node->output(0)->output_uses() != 0) continue;
      for (const Use& use : node->input(0)->uses()) {
        if (use.node == node) break;  // uses stand in the order in which they were made
        const auto other = perm_of(use.node);
        if (other && *other == *perm && precedes(use.node, node)) {
          replace(*node->output(0), *use.node->output(0));
          break;
        }
      }
    }
  }

  void remove_unused() {
    for (Node* node = graph_.last_node(); node;) {
      Node* previous = node->previous();
      bool used = false;
      for (const Value* value : node->outputs()) used = used || (value && value->has_uses());
      if (!used) graph_.erase(node);
      node = previous;
    }
    const std::vector<Value*> initializers = graph_.initializers();
    for (Value* value : initializers) {
      if (!value->has_uses() && !value->is_input()) graph_.remove_initializer(value);
    }
  }

  /// Where nothing is left that has the old meaning, the old name is free again.
  void restore_names() {
    std::unordered_set<std::string_view> taken;
    for (const Value* value : graph_.inputs()) taken.insert(value->name());
    for (const Value* value : graph_.initializers()) taken.insert(value->name());
    for (const Node* node : graph_.nodes()) {
      for (const Value* value : node->outputs())
        if (value) taken.insert(value->name());
    }
    for (const Renamed& entry : renamed_) {
      if (!entry.value->producer() || taken.count(entry.name)) continue;
      taken.erase(entry.value->name());
      entry.value->set_name(entry.name);
      taken.insert(entry.value->name());
    }
  }

  struct Renamed {
    Value* value;
    std::string name;
  };
  Graph& graph_;
  std::unordered_set<std::string> names_;
  std::vector<Renamed> renamed_;
};

}  // namespace

Status resolve_layout(Graph& graph) { return LayoutPass(graph).run(); }

}  // namespace tombolo
