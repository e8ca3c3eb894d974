#include "runtime/plan.h"

#include <algorithm>
#include <map>

#include "ops/registry.h"
#include "runtime/kernels/kernel.h"
#include "runtime/specialise.h"

namespace tombolo {

std::string describe(const Node& node) {
  size_t index = 0;
  for (const Node* before = node.previous(); before != nullptr; before = before->previous())
    ++index;
  std::string text = "node ";
  if (!node.name().empty()) text += "\"" + std::string(node.name()) + "\" ";
  return text + "(" + std::string(node.op_type()) + ", #" + std::to_string(index) + ")";
}

namespace {

/// Above this, values share slots, and runs are not specialised: a graph of a million nodes would
/// otherwise ask for hundreds of megabytes of slots.
constexpr int kMaxOwnSlots = 100000;

/// Whether an attribute is taken from the function that holds the node: it differs by call.
bool has_references(const Node& node) {
  return std::any_of(node.attributes().begin(), node.attributes().end(),
                     [](const Attribute& attribute) { return attribute.is_reference(); });
}

/// Visits every reference, in `plan` and the plans inside it, to a slot of the frame `depth` out.
template <typename Visit>
void own_uses(GraphPlan& plan, int depth, Visit&& visit) {
  auto offer = [&](ValueRef& ref) {
    if (ref.constant == nullptr && ref.slot >= 0 && ref.depth == depth) visit(ref.slot);
  };
  for (ValueRef& ref : plan.refs) offer(ref);
  for (ValueRef& ref : plan.outputs) offer(ref);
  for (auto& [graph, inner] : plan.subgraphs) own_uses(*inner, depth + 1, visit);
}

/// Gives values that are never alive together the same slot: a chain of a million nodes needs
/// two.
void reuse_slots(GraphPlan& plan) {
  std::vector<int> place(static_cast<size_t>(plan.slot_count), -1), free;
  int used = 0;
  auto take = [&](int slot) {
    int& at = place[static_cast<size_t>(slot)];
    if (free.empty()) {
      at = used++;
    } else {
      at = free.back();
      free.pop_back();
    }
  };
  for (int slot : plan.inputs) take(slot);
  for (const NodePlan& node : plan.nodes) {
    // Outputs first: they are stored before what dies here is released.
    for (int slot : plan.outputs_of(node))
      if (slot >= 0) take(slot);
    for (int slot : plan.dead_after(node)) free.push_back(place[static_cast<size_t>(slot)]);
  }
  auto rename = [&](int& slot) {
    if (slot >= 0) slot = place[static_cast<size_t>(slot)];
  };
  for (int& slot : plan.inputs) rename(slot);
  for (int& slot : plan.slots) rename(slot);
  for (int& slot : plan.dead) rename(slot);
  own_uses(plan, 0, rename);
  plan.slot_count = used;
}

void find_last_uses(GraphPlan& plan) {
  constexpr int kNever = -1, kAlways = INT32_MAX;
  std::vector<int> last(static_cast<size_t>(plan.slot_count), kNever);
  std::unordered_map<const Node*, std::vector<GraphPlan*>> inner_of;
  for (const auto& [graph, inner] : plan.subgraphs)
    inner_of[graph->parent_node()].push_back(inner.get());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const int at = static_cast<int>(i);
    for (const ValueRef& ref : plan.inputs_of(plan.nodes[i]))
      if (ref.constant == nullptr && ref.slot >= 0 && ref.depth == 0)
        last[static_cast<size_t>(ref.slot)] = at;
    if (auto found = inner_of.find(plan.nodes[i].node); found != inner_of.end())
      for (GraphPlan* inner : found->second)
        own_uses(*inner, 1, [&](int& slot) { last[static_cast<size_t>(slot)] = at; });
    for (int slot : plan.outputs_of(plan.nodes[i]))
      if (slot >= 0) last[static_cast<size_t>(slot)] = at;
  }
  for (const ValueRef& ref : plan.outputs)
    if (ref.constant == nullptr && ref.depth == 0 && ref.slot >= 0)
      last[static_cast<size_t>(ref.slot)] = kAlways;
  // Slots by the node after which they die, as one flat list.
  std::vector<uint32_t> count(plan.nodes.size() + 1);
  for (int at : last)
    if (at >= 0 && at != kAlways) ++count[static_cast<size_t>(at)];
  uint32_t begin = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].dead = {begin, 0};
    begin += count[i];
  }
  plan.dead.resize(begin);
  for (size_t slot = 0; slot < last.size(); ++slot)
    if (last[slot] >= 0 && last[slot] != kAlways) {
      Span& span = plan.nodes[static_cast<size_t>(last[slot])].dead;
      plan.dead[span.begin + span.count++] = static_cast<int>(slot);
    }
  plan.own_slots = plan.slot_count <= kMaxOwnSlots;
  if (!plan.own_slots) reuse_slots(plan);
}

class Planner {
 public:
  Planner(Model& model, PlanOptions options) : model_(model), options_(options) {}

  Result<ModelPlan> run() {
    if (!model_.graph) return parse_error("the model has no graph");
    places_.resize(model_.storage().id_count());
    TRY(plan_.main, graph(*model_.graph, nullptr, nullptr));
    if (!missing_.empty()) {
      std::string list;
      for (const auto& [name, count] : missing_)
        list += (list.empty() ? "" : ", ") + name + " (" + std::to_string(count) +
                (count == 1 ? " node)" : " nodes)");
      Error error = unsupported("no kernel for " + list);
      if (list.find("com.microsoft.nchwc.") != std::string::npos)
        error.help =
            "ONNX Runtime wrote this for the blocks of channels of one machine: take the model it "
            "was made of, or save it again with ORT_ENABLE_EXTENDED";
      return error;
    }
    find_outer(*plan_.main);
    for (auto& [function, body] : plan_.functions) find_outer(*body);
    return std::move(plan_);
  }

 private:
  int64_t opset_of(Text domain, const Function* function) const {
    if (function == nullptr) return model_.opset(domain);
    for (const OpsetImport& import : function->opset_imports)
      if (canonical_domain(import.domain) == canonical_domain(domain)) return import.version;
    return model_.opset(domain);
  }

  Result<RunValue> constant_of(const Value& value) {
    if (value.initializer() != nullptr) {
      TRY(Tensor tensor, value.initializer()->lazy_value(model_.storage_ptr()));
      if (tensor.aligned() || may_lie_unaligned(value, tensor)) return RunValue(std::move(tensor));
      TRY(Tensor copy, tensor.clone());
      const auto bytes = tensor.source();
      model_.storage_ptr()->release({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      return RunValue(std::move(copy));
    }
    const SparseConstant& sparse = *value.sparse_initializer();
    TRY(Tensor values, sparse.values.value(model_.storage_ptr()));
    TRY(Tensor indices, sparse.indices.value(model_.storage_ptr()));
    return densify(values, indices, sparse.dims);
  }

  /// A large weight of nodes whose kernels pack it, or read it where it lies, is not copied
  /// because the file has it at an odd address, or it is yet to be made (see
  /// KernelRow::unaligned).
  bool may_lie_unaligned(const Value& value, const Tensor& tensor) const {
    constexpr size_t kSmall = size_t{64} << 10;
    const bool small = tensor.deferred() == nullptr && tensor.bytes().size() < kSmall;
    if (!options_.fast_kernels || small || value.is_input() || value.output_uses() != 0)
      return false;
    struct Reader {
      Text op;
      uint32_t input;
    };
    constexpr Reader kReaders[] = {{"MatMul", 1},    {"Gemm", 1},
                                   {"Conv", 1},      {"ConvTranspose", 1},
                                   {"BlockConv", 1}, {"BlockConvTranspose", 1},
                                   {"Gather", 0}};
    return std::all_of(value.uses().begin(), value.uses().end(), [&](const Use& use) {
      const Node& node = *use.node;
      const Text domain = canonical_domain(node.domain());
      return (domain.empty() || domain == "ai.tombolo") &&
             std::any_of(std::begin(kReaders), std::end(kReaders),
                         [&](const Reader& reader) {
                           return reader.op == node.op_type() && reader.input == use.index;
                         }) &&
             model_.find_function(node.domain(), node.op_type(), node.overload()) == nullptr &&
             !has_references(node) && &node.graph() == &value.graph();
    });
  }

  /// A sparse initialiser stands where a dense tensor is expected.
  static Result<RunValue> densify(const Tensor& values, const Tensor& indices,
                                  std::span<const int64_t> dims) {
    TRY(Tensor dense, Tensor::allocate(values.dtype(), dims));
    if (values.is_string() || bytes_of(values.dtype()) == 0)
      return unsupported("sparse initialisers of type " + std::string(name_of(values.dtype())));
    auto bytes = dense.mutable_bytes();
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    const size_t width = bytes_of(values.dtype());
    const bool linear = indices.rank() == 1;
    const auto rank = static_cast<int64_t>(dims.size());
    if (indices.size() != values.size() * (linear ? 1 : rank))
      return parse_error("a sparse initialiser's indices do not match its values");
    for (int64_t i = 0; i < values.size(); ++i) {
      int64_t at = linear ? indices.get_int64(i) : 0;
      if (!linear)
        for (int64_t axis = 0; axis < rank; ++axis) {
          const int64_t index = indices.get_int64(i * rank + axis);
          if (index < 0 || index >= dims[static_cast<size_t>(axis)])
            return parse_error("a sparse initialiser's index is out of range");
          at = at * dims[static_cast<size_t>(axis)] + index;
        }
      if (at < 0 || at >= dense.size())
        return parse_error("a sparse initialiser's index is out of range");
      std::copy_n(values.bytes().begin() +
                      static_cast<std::ptrdiff_t>(i) * static_cast<std::ptrdiff_t>(width),
                  width, bytes.begin() + at * static_cast<int64_t>(width));
    }
    return RunValue(std::move(dense));
  }

  Result<std::unique_ptr<GraphPlan>> graph(Graph& source, const GraphPlan* parent,
                                           const Function* function) {
    auto plan = std::make_unique<GraphPlan>();
    plan->graph = &source;
    plan->parent = parent;
    auto new_slot = [&](const Value* value) {
      place(value, *plan, nullptr, plan->slot_count);
      return plan->slot_count++;
    };
    for (const auto* list : {&source.initializers(), &source.sparse_initializers()})
      for (const Value* value : *list) {
        auto constant = constant_of(*value);
        if (!constant)
          return std::move(constant).error().at("initializer \"" + std::string(value->name()) +
                                                "\"");
        plan->constants.push_back(std::make_unique<RunValue>(*std::move(constant)));
        if (!value->is_input() || constant_default(*plan))
          place(value, *plan, plan->constants.back().get(), -1);
      }
    for (const Value* input : source.inputs()) {
      const RunValue* fallback = nullptr;
      if (input->is_initializer() && constant_default(*plan))
        plan->inputs.push_back(plan->slot_count++);  // stays empty
      else
        plan->inputs.push_back(new_slot(input));
      if (input->is_initializer() && !constant_default(*plan)) {
        const auto& list = source.initializers();
        const auto at = std::find(list.begin(), list.end(), input);
        if (at != list.end())
          fallback = plan->constants[static_cast<size_t>(at - list.begin())].get();
      }
      plan->defaults.push_back(fallback);
    }
    if (!source.sort())
      return parse_error("graph \"" + std::string(source.name) + "\" has a cycle");
    plan->nodes.reserve(source.node_count());
    plan->refs.reserve(source.node_count());
    for (Node* node : source.nodes()) {
      auto planned = this->node(*node, *plan, function);
      if (!planned) return std::move(planned).error().at(describe(*node));
    }
    for (const GraphOutput& output : source.outputs()) {
      const auto seen = find(*plan, output.value);
      if (!seen)
        return parse_error("graph output \"" + std::string(output.value->name()) +
                           "\" is not defined");
      plan->outputs.push_back(*seen);
    }
    find_chosen_by(*plan);
    finish_plan(*plan);
    return plan;
  }

  static void find_chosen_by(GraphPlan& plan) {
    std::vector<bool> slots(static_cast<size_t>(plan.slot_count));
    for (const NodePlan& node : plan.nodes) {
      const std::span<const ValueRef> refs = plan.inputs_of(node);
      for (size_t i = 0; i < refs.size() && node.values >> i != 0; ++i)
        if ((node.values >> i & 1) != 0 && refs[i].slot >= 0 && refs[i].depth == 0)
          slots[static_cast<size_t>(refs[i].slot)] = true;
    }
    for (const int slot : plan.inputs) plan.chosen_by.push_back(slots[static_cast<size_t>(slot)]);
  }

  bool constant_default(const GraphPlan& plan) const {
    return options_.defaults_are_constant && plan.graph == model_.graph.get();
  }

  /// Where each value lies, by its id, while planning.
  struct Place {
    const GraphPlan* plan = nullptr;
    const RunValue* constant = nullptr;
    int slot = -1;
  };
  void place(const Value* value, const GraphPlan& plan, const RunValue* constant, int slot) {
    places_[value->id()] = {&plan, constant, slot};
  }

  /// What `value` is seen from `plan`; nothing when it is not defined there or around.
  std::optional<ValueRef> find(const GraphPlan& plan, const Value* value) const {
    const Place& at = places_[value->id()];
    int depth = 0;
    for (const GraphPlan* around = &plan; around != nullptr; around = around->parent, ++depth)
      if (at.plan == around) return ValueRef{at.constant, at.constant ? 0 : depth, at.slot};
    return std::nullopt;
  }

  Status node(Node& source, GraphPlan& plan, const Function* function) {
    NodePlan node;
    node.node = &source;
    node.function = model_.find_function(source.domain(), source.op_type(), source.overload());
    node.opset = source.opset_override() != 0
                     ? source.opset_override()
                     : static_cast<int>(
                           std::clamp<int64_t>(opset_of(source.domain(), function), 0, 1 << 20));
    if (node.function != nullptr) {
      const size_t given = node.function->body.outputs().size();
      for (size_t i = given; i < source.outputs().size(); ++i)
        if (source.output(i) != nullptr && source.output(i)->has_uses())
          return parse_error("output \"" + std::string(source.output(i)->name()) +
                             "\" is more than the function \"" + std::string(node.function->name) +
                             "\" gives: it has " + std::to_string(given) + " outputs");
      CHECK_OK(plan_body(*node.function));
    } else {
      const OpDecl* decl = find_operator(source.domain(), source.op_type());
      if (decl != nullptr) node.kernel = decl->reference;
      node.bound = has_references(source);
      if (options_.fast_kernels && !node.bound)
        node.rows = kernels_of(source.domain(), source.op_type());
      for (const KernelRow* row : node.rows) node.values |= row->values;
      if (node.kernel == nullptr && node.rows.empty()) {
        const Text domain = canonical_domain(source.domain());
        ++missing_[(domain.empty() ? "" : std::string(domain) + ".") +
                   std::string(source.op_type())];
      }
    }
    node.index = static_cast<uint32_t>(plan.nodes.size());
    node.inputs = {static_cast<uint32_t>(plan.refs.size()),
                   static_cast<uint32_t>(source.inputs().size())};
    for (const Value* input : source.inputs()) {
      if (input == nullptr) {
        plan.refs.emplace_back();
        continue;
      }
      const auto seen = find(plan, input);
      if (!seen) return parse_error("input \"" + std::string(input->name()) + "\" is not defined");
      plan.refs.push_back(*seen);
    }
    // Subgraphs see what is defined so far, not the node's own outputs.
    for (Attribute& attribute : source.attributes()) {
      if (Graph* inner = attribute.graph()) {
        node.subgraphs = true;
        TRY(plan.subgraphs[inner], graph(*inner, &plan, function));
      } else if (auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value)) {
        node.subgraphs = true;
        for (auto& graph_in_list : *list) {
          TRY(plan.subgraphs[graph_in_list.get()], graph(*graph_in_list, &plan, function));
        }
      }
    }
    node.outputs = {static_cast<uint32_t>(plan.slots.size()),
                    static_cast<uint32_t>(source.outputs().size())};
    for (const Value* output : source.outputs()) {
      if (output == nullptr) {
        plan.slots.push_back(-1);
        continue;
      }
      place(output, plan, nullptr, plan.slot_count);
      plan.slots.push_back(plan.slot_count++);
    }
    plan.nodes.push_back(node);
    return ok();
  }

  Status plan_body(const Function& function) {
    auto [entry, inserted] = plan_.functions.try_emplace(&function, nullptr);
    if (!inserted) {
      if (entry->second == nullptr)
        return parse_error("function \"" + std::string(function.name) + "\" calls itself");
      return ok();
    }
    if (++depth_ > kMaxCallDepth) return parse_error("functions call each other too deeply");
    auto planned = graph(const_cast<Graph&>(function.body), nullptr, &function);
    --depth_;
    if (!planned)
      return std::move(planned).error().at("function \"" + std::string(function.name) + "\"");
    plan_.functions[&function] = *std::move(planned);
    return ok();
  }

  /// What `plan` reads of the frames around it, and what the graphs inside it read through it.
  static void find_outer(GraphPlan& plan) {
    auto offer = [&](ValueRef ref, int out) {
      if (ref.constant != nullptr || ref.slot < 0 || ref.depth < out) return;
      ref.depth -= out - 1;
      for (const ValueRef& known : plan.outer)
        if (known.depth == ref.depth && known.slot == ref.slot) return;
      plan.outer.push_back(ref);
    };
    for (auto& [graph, inner] : plan.subgraphs) {
      find_outer(*inner);
      for (const ValueRef& ref : inner->outer) offer(ref, 2);
    }
    for (const ValueRef& ref : plan.refs) offer(ref, 1);
    for (const ValueRef& ref : plan.outputs) offer(ref, 1);
  }

  Model& model_;
  const PlanOptions options_;
  ModelPlan plan_;
  std::vector<Place> places_;
  std::map<std::string, size_t> missing_;
  int depth_ = 0;
};

}  // namespace

GraphPlan::GraphPlan() = default;
GraphPlan::~GraphPlan() = default;

void finish_plan(GraphPlan& plan) {
  find_last_uses(plan);
  plan.cache = std::make_unique<SpecialisationCache>(plan.nodes.size());
}

Result<ModelPlan> plan_model(Model& model, PlanOptions options) {
  return Planner(model, options).run();
}

}  // namespace tombolo
