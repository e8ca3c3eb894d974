#include "passes/rule.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "ir/clone.h"
#include "ir/text/parser.h"
#include "ops/registry.h"
#include "passes/evaluate.h"

namespace tombolo {

Value* Match::value(std::string_view name) const {
  const auto found = values.find(name);
  return found != values.end() ? found->second : nullptr;
}
int64_t Match::get_int(std::string_view key, int64_t fallback) const {
  const auto found = attributes.find(key);
  return found != attributes.end() && found->second.i() != nullptr ? *found->second.i() : fallback;
}
void Match::set(std::string_view key, int64_t value) {
  attributes.insert_or_assign(std::string(key), Attribute("", AttrType::kInt, value));
}
void Match::set(std::string_view key, float value) {
  attributes.insert_or_assign(std::string(key), Attribute("", AttrType::kFloat, value));
}
void Match::set(std::string_view key, std::vector<int64_t> values) {
  attributes.insert_or_assign(std::string(key), Attribute("", AttrType::kInts, std::move(values)));
}
void Match::bind(std::string_view name, Value* value) {
  values.insert_or_assign(std::string(name), value);
}

namespace {

struct Pattern {
  std::unique_ptr<Graph> graph;
  const Node* root = nullptr;
  std::string_view op;
};
struct CompiledRule {
  const RewriteRule* rule = nullptr;
  std::vector<Pattern> patterns;
  std::unique_ptr<Graph> replacement;
};

Result<std::unique_ptr<Graph>> parse(std::string_view text) {
  return parse_graph(text, std::make_shared<Storage>());
}

Result<CompiledRule> compile(const RewriteRule& rule) {
  CompiledRule compiled;
  compiled.rule = &rule;
  for (const Literal& text : rule.patterns) {
    auto graph = parse(text);
    if (!graph) return std::move(graph).error().at("pattern of " + std::string(rule.name.data));
    Pattern pattern;
    pattern.graph = *std::move(graph);
    pattern.root = pattern.graph->outputs().at(0).value->producer();
    if (pattern.root == nullptr) return parse_error("the pattern has no root");
    pattern.op = pattern.root->op_type();
    compiled.patterns.push_back(std::move(pattern));
  }
  auto graph = parse(rule.replacement);
  if (!graph) return std::move(graph).error().at("replacement of " + std::string(rule.name.data));
  compiled.replacement = *std::move(graph);
  return compiled;
}

/// Parsed once a process, by the address of the table.
Result<const std::vector<CompiledRule>*> compiled(std::span<const RewriteRule> rules) {
  static std::mutex mutex;
  static std::map<const RewriteRule*, std::vector<CompiledRule>> known;
  std::lock_guard lock(mutex);
  auto [entry, fresh] = known.try_emplace(rules.data());
  if (fresh)
    for (const RewriteRule& rule : rules) {
      auto one = compile(rule);
      if (!one) {
        known.erase(entry);
        return std::move(one).error();
      }
      entry->second.push_back(*std::move(one));
    }
  return &entry->second;
}

bool is_commutative(Text op) {
  constexpr std::string_view kOps[] = {"Add", "Mul", "And",   "Or", "Xor",
                                       "Max", "Min", "Equal", "Sum"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

class Matcher {
 public:
  Matcher(Rewriter& rewriter, Node& root) : match_{rewriter, root}, rewriter_(rewriter) {}

  bool run(const Pattern& pattern) {
    goals_ = {{pattern.graph->outputs()[0].value, match_.root.output(0)}};
    if (!solve(0)) return false;
    for (const auto& [p, node] : nodes_)
      if (node != &match_.root) match_.nodes.push_back(node);
    match_.nodes.insert(match_.nodes.begin(), &match_.root);
    if (!is_private()) return false;
    for (const auto& [p, value] : bound_) match_.values[std::string(p->name())] = value;
    for (const auto& [p, node] : nodes_) capture(*p, *node);
    return true;
  }

  Match take() { return std::move(match_); }

 private:
  struct Goal {
    const Value* pattern;
    Value* value;
  };

  /// All goals from `at` on; goals are added at the end while nodes are taken apart.
  bool solve(size_t at) {
    if (at == goals_.size()) return true;
    const Goal goal = goals_[at];
    if (const auto known = bound_.find(goal.pattern); known != bound_.end())
      return known->second == goal.value && solve(at + 1);
    if (goal.value == nullptr) return false;
    if (goal.pattern->is_initializer()) {
      if (!constant_fits(*goal.pattern, *goal.value)) return false;
      return with(goal, [&] { return solve(at + 1); });
    }
    const Node* wanted = goal.pattern->producer();
    if (wanted == nullptr) return with(goal, [&] { return solve(at + 1); });
    Node* node = goal.value->producer();
    if (!node_fits(*wanted, node) || goal.value->producer_index() != goal.pattern->producer_index())
      return false;
    if (const auto known = nodes_.find(wanted); known != nodes_.end()) {
      if (known->second != node) return false;
      return with(goal, [&] { return solve(at + 1); });
    }
    for (const auto& [p, other] : nodes_)
      if (other == node) return false;
    nodes_.emplace(wanted, node);
    const size_t size = goals_.size();
    const auto attempt = [&](bool swapped) {
      if (!operands_keep_shape(*wanted, *node, swapped)) return false;
      for (size_t i = 0; i < wanted->inputs().size(); ++i) {
        const size_t k = swapped ? 1 - i : i;
        if (wanted->inputs()[i] == nullptr) {
          if (node->input(k) != nullptr) return false;
          continue;
        }
        goals_.push_back({wanted->inputs()[i], node->input(k)});
      }
      return with(goal, [&] { return solve(at + 1); });
    };
    bool found = attempt(false);
    if (!found) goals_.resize(size);
    if (!found && is_commutative(wanted->op_type()) && wanted->inputs().size() == 2) {
      found = attempt(true);
      if (!found) goals_.resize(size);
    }
    if (!found) nodes_.erase(wanted);
    return found;
  }

  template <typename Next>
  bool with(const Goal& goal, Next next) {
    bound_[goal.pattern] = goal.value;
    if (next()) return true;
    bound_.erase(goal.pattern);
    return false;
  }

  bool node_fits(const Node& wanted, Node* node) const {
    if (node == nullptr || &node->graph() != &match_.root.graph() ||
        !rewriter_.is(node, wanted.op_type(), canonical_domain(wanted.domain())))
      return false;
    size_t inputs = node->inputs().size();
    while (inputs > 0 && node->inputs()[inputs - 1] == nullptr) --inputs;
    if (inputs > wanted.inputs().size()) return false;
    for (size_t i = wanted.outputs().size(); i < node->outputs().size(); ++i)
      if (node->outputs()[i] != nullptr && node->outputs()[i]->has_uses()) return false;
    // Attributes.
    const OpDecl* decl = rewriter_.declaration(*node);
    const OpVersion* version =
        decl != nullptr ? resolve(*decl, static_cast<int>(std::min<int64_t>(
                                             rewriter_.model().opset(node->domain()), 9999)))
                        : nullptr;
    const auto says = [&](Text name, const Attribute* attribute, const Attribute* other) {
      const AttrDecl* spec = version != nullptr ? version->attribute(name) : nullptr;
      if (attribute != nullptr && other != nullptr) return equal_values(*attribute, *other);
      const Attribute* one = attribute != nullptr ? attribute : other;
      return spec != nullptr && spec->spec.has_default && equals_default(*one, spec->spec);
    };
    for (const Attribute& attribute : wanted.attributes())
      if (!attribute.is_reference() &&
          !says(attribute.name, &attribute, node->attribute(attribute.name)))
        return false;
    for (const Attribute& attribute : node->attributes())
      if (wanted.attribute(attribute.name) == nullptr && !says(attribute.name, nullptr, &attribute))
        return false;
    return true;
  }

  static bool close(float a, float b) { return std::abs(a - b) <= 1e-6f * std::abs(b); }

  static bool equal_values(const Attribute& a, const Attribute& b) {
    if (a.i() != nullptr && b.i() != nullptr) return *a.i() == *b.i();
    if (a.f() != nullptr && b.f() != nullptr) return close(*a.f(), *b.f());
    if (a.s() != nullptr && b.s() != nullptr) return *a.s() == *b.s();
    if (a.type == AttrType::kInts && b.type == AttrType::kInts)
      return std::equal(a.ints().begin(), a.ints().end(), b.ints().begin(), b.ints().end());
    return false;
  }
  static bool equals_default(const Attribute& a, const AttrSpec& spec) {
    if (a.i() != nullptr) return spec.type == AttrType::kInt && *a.i() == spec.i;
    if (a.f() != nullptr) return spec.type == AttrType::kFloat && close(*a.f(), spec.f);
    if (a.s() != nullptr)
      return spec.type == AttrType::kString && *a.s() == std::string_view(spec.s);
    return false;
  }

  /// A constant of one element that stands as an operand must not add axes to the other one.
  bool operands_keep_shape(const Node& wanted, const Node& node, bool swapped) const {
    if (wanted.inputs().size() != 2 || node.inputs().size() != 2) return true;
    for (size_t i = 0; i < 2; ++i) {
      const Value* constant = wanted.inputs()[i];
      if (constant == nullptr || !constant->is_initializer() ||
          constant->initializer()->dims.size() != 0)
        continue;
      const Value* value = node.input(swapped ? 1 - i : i);
      const auto rank = rewriter_.rank(value);
      if (!rank) return false;
      if (*rank == 0) continue;
      const auto other = rewriter_.rank(node.input(swapped ? i : 1 - i));
      if (!other || *other < *rank) return false;
    }
    return true;
  }

  bool constant_fits(const Value& pattern, const Value& value) const {
    auto wanted = pattern.initializer()->value(pattern.graph().storage_ptr());
    if (!wanted) return false;
    if (wanted->rank() == 1) {
      const auto list = rewriter_.ints(&value);
      if (!list || list->size() != static_cast<size_t>(wanted->size())) return false;
      for (size_t i = 0; i < list->size(); ++i)
        if ((*list)[i] != wanted->get_int64(static_cast<int64_t>(i))) return false;
      return true;
    }
    const auto number = rewriter_.scalar(&value);
    if (!number) return false;
    const double expected = wanted->get_double(0);
    const DType dtype = rewriter_.dtype(&value);
    if (is_float(wanted->dtype()) != is_float(dtype)) return false;
    // Exporters write constants rounded to the type, and some to six digits.
    const double tolerance = dtype == DType::kFloat16    ? 1e-3
                             : dtype == DType::kBFloat16 ? 8e-3
                                                         : 2e-6;
    return std::abs(*number - expected) <= tolerance * std::abs(expected);
  }

  bool is_private() const {
    const std::set<const Node*> inside(match_.nodes.begin(), match_.nodes.end());
    for (const Node* node : match_.nodes) {
      if (node == &match_.root) continue;
      for (const Value* output : node->outputs()) {
        if (output == nullptr) continue;
        if (output->output_uses() != 0) return false;
        for (const Use& use : output->uses())
          if (!inside.contains(use.node)) return false;
      }
    }
    return true;
  }

  void capture(const Node& wanted, const Node& node) {
    Cloner cloner(rewriter_.model().storage_ptr(), rewriter_.model().storage_ptr());
    const OpDecl* decl = rewriter_.declaration(node);
    const OpVersion* version =
        decl != nullptr ? resolve(*decl, latest_opset(canonical_domain(node.domain()))) : nullptr;
    for (const Attribute& attribute : wanted.attributes()) {
      if (!attribute.is_reference()) continue;
      const std::string key(attribute.ref_attr_name());
      if (const Attribute* given = node.attribute(attribute.name)) {
        match_.attributes.insert_or_assign(key, cloner.attribute(*given, nullptr, nullptr));
        continue;
      }
      const AttrDecl* spec = version != nullptr ? version->attribute(attribute.name) : nullptr;
      if (spec == nullptr || !spec->spec.has_default) continue;
      if (spec->spec.type == AttrType::kInt) match_.set(key, spec->spec.i);
      if (spec->spec.type == AttrType::kFloat) match_.set(key, spec->spec.f);
    }
  }

  Match match_;
  Rewriter& rewriter_;
  std::vector<Goal> goals_;
  std::map<const Value*, Value*> bound_;
  std::map<const Node*, Node*> nodes_;
};

/// Builds the replacement before the root. Null when it cannot be built.
Result<Value*> build(const Graph& replacement, Match& match) {
  Rewriter& rewriter = match.rewriter;
  std::map<const Value*, Value*> made;
  for (const Value* input : replacement.inputs()) {
    Value* given = match.value(input->name());
    if (given == nullptr)
      return runtime_error("the rule binds nothing to " + std::string(input->name()));
    made[input] = given;
  }
  const DType dtype = rewriter.dtype(match.output());
  for (const Value* value : replacement.initializers()) {
    TRY(Tensor tensor, value->initializer()->value(replacement.storage_ptr()));
    if (is_float(tensor.dtype()) && is_float(dtype)) {
      TRY(tensor, passes::cast_to(tensor, dtype));
    } else {
      TRY(tensor, tensor.clone());
    }
    made[value] = rewriter.initializer(match.graph(), tensor, value->name());
  }
  Cloner cloner(replacement.storage_ptr(), rewriter.model().storage_ptr());
  for (const Node* node : replacement.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? made.at(input) : nullptr);
    Node& copy = rewriter.add(match.root, node->op_type(), inputs, match.output()->name(),
                              node->outputs().size(), canonical_domain(node->domain()));
    for (const Attribute& attribute : node->attributes()) {
      const Attribute* from = &attribute;
      if (attribute.is_reference()) {
        const auto found = match.attributes.find(attribute.ref_attr_name());
        if (found == match.attributes.end()) continue;
        from = &found->second;
      }
      Attribute own = cloner.attribute(*from, &match.graph(), &copy);
      own.name = attribute.name;
      own.extra.reset();
      copy.set_attribute(std::move(own));
    }
    rewriter.touch(copy);
    for (size_t i = 0; i < node->outputs().size(); ++i)
      if (node->outputs()[i] != nullptr) made[node->outputs()[i]] = copy.output(i);
  }
  return made.at(replacement.outputs().at(0).value);
}

/// The first operator sets of the replacement's operators are within the ceiling.
bool allowed(const Rewriter& rewriter, const Graph& replacement) {
  for (const Node* node : replacement.nodes()) {
    const OpDecl* decl = find_operator(node->domain(), node->op_type());
    if (decl == nullptr) continue;
    if (canonical_domain(node->domain()).empty() &&
        *decl->versions.begin() > rewriter.limits.opset_ceiling)
      return false;
  }
  return true;
}

}  // namespace

Result<size_t> apply_rules(Rewriter& rewriter, std::span<const RewriteRule> rules) {
  rewriter.refresh();
  TRY(const std::vector<CompiledRule>* table, compiled(rules));
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!status || node->outputs().empty() || node->output(0) == nullptr) continue;
      for (const CompiledRule& rule : *table) {
        if (!allowed(rewriter, *rule.replacement)) continue;
        bool done = false;
        for (const Pattern& pattern : rule.patterns) {
          if (pattern.op != node->op_type()) continue;
          Matcher matcher(rewriter, *node);
          if (!matcher.run(pattern)) continue;
          Match match = matcher.take();
          if (rule.rule->condition != nullptr && !rule.rule->condition(match)) continue;
          auto result = build(*rule.replacement, match);
          if (!result) {
            status = std::move(result).error().at("rule " + std::string(rule.rule->name.data));
            break;
          }
          const std::vector<Node*> old = match.nodes;
          rewriter.supersede(*node->output(0), **result);
          // Readers first: the matched nodes read each other.
          for (bool again = true; again;) {
            again = false;
            for (Node* one : old) {
              if (one->outputs().empty() || &one->graph() != &graph) continue;
              bool used = one->output(0) == nullptr || one->output(0)->producer() != one;
              for (const Value* output : one->outputs())
                used |= output != nullptr && output->has_uses();
              if (used) continue;
              rewriter.erase(*one);
              again = true;
            }
          }
          ++count;
          done = true;
          break;
        }
        if (done || !status) break;
      }
    }
  });
  CHECK_OK(status);
  return count;
}

}  // namespace tombolo
