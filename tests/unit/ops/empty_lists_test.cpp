// A list attribute that is given but empty: inference and kernel must read it alike, and as if it
// were absent, except where an empty list is a value of its own.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analysis/infer.h"
#include "ir/text/parser.h"
#include "ops/infer_helpers.h"
#include "ops/registry.h"
#include "runtime/compare.h"
#include "runtime/recipes/recipe.h"

namespace tombolo {
namespace {

struct Outcome {
  std::string error;  ///< of the run; empty when it succeeded
  std::vector<NamedValue> outputs;
  std::string inferred_error;
  std::string contradiction;
};

enum class Change { kEmpty, kRemove };

void apply(Model& model, Text op_type, const AttrDecl& row, Change change) {
  const std::string_view name = row.name;
  for (Node* node : model.graph->nodes()) {
    if (node->op_type() != op_type) continue;
    node->remove_attribute(name);
    if (change == Change::kRemove) continue;
    if (row.spec.type == AttrType::kInts) {
      node->set_ints(name, {});
    } else if (row.spec.type == AttrType::kFloats) {
      node->set_floats(name, {});
    } else {
      Attribute attribute;
      attribute.name = name;
      attribute.type = AttrType::kStrings;
      attribute.value = std::vector<Text>();
      node->set_attribute(std::move(attribute));
    }
  }
}

Outcome outcome_of(const std::string& text, const std::vector<NamedValue>& inputs, Text op_type,
                   const AttrDecl& row, Change change) {
  Outcome outcome;
  auto model = parse_text(text);
  if (!model) return outcome;
  apply(**model, op_type, row, change);
  for (const auto& output : (*model)->graph->outputs()) output.value->set_type(nullptr);
  Diagnostics diagnostics;
  Inference inference(**model);
  inference.run(diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    if (diagnostic.severity == Severity::kError) outcome.inferred_error = diagnostic.message;
  std::vector<std::optional<InferType>> types;
  for (const auto& output : (*model)->graph->outputs()) {
    const InferType* type = inference.type(*output.value);
    types.push_back(type == nullptr ? std::nullopt : std::optional(*type));
  }
  auto session = Session::create(*std::move(model));
  if (!session) {
    outcome.error = session.error().message;
    return outcome;
  }
  auto outputs = (*session)->run(inputs);
  if (!outputs) {
    outcome.error = outputs.error().message;
    return outcome;
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (!types[i] || !types[i]->is_tensor() || !types[i]->shape) continue;
    const RunValue& value = (*outputs)[i];
    if (!value.is_tensor()) continue;
    const Tensor& tensor = value.tensor();
    bool fits = types[i]->shape->size() == tensor.rank();
    for (size_t d = 0; fits && d < tensor.rank(); ++d) {
      const auto known = (*types[i]->shape)[d].constant();
      fits = !known || *known == tensor.dim(d);
    }
    if (!fits)
      outcome.contradiction =
          "inferred " + ops::shape_to_string(*types[i]->shape) + ", ran " + to_string(tensor);
  }
  for (RunValue& value : *outputs) outcome.outputs.push_back({"", std::move(value)});
  return outcome;
}

/// Lists without a default that may be empty.
const std::set<std::string> kMeaningful = {"Unsqueeze.axes"};

TEST(EmptyLists, ReadAlikeByInferenceAndKernel) {
  size_t tried = 0;
  for (const OpVersion& version : all_versions()) {
    const Recipe* recipe = find_recipe(version);
    // Passes alone write operators of ai.tombolo, with every list.
    if (recipe == nullptr || std::string_view(version.decl->domain) == "ai.tombolo") continue;
    TypeAssignment types;
    if (!version.types.empty()) {
      const std::vector<ValueType> members = members_of(version.types[0].allowed);
      if (members.empty()) continue;
      types = assign_types(version, *recipe, 0, members[0]);
    }
    auto run = open_recipe(version, *recipe, types);
    if (!run) continue;
    const std::string text = recipe_text(version, *recipe, types);
    for (const AttrDecl& row : version.decl->attributes) {
      const bool list = row.spec.type == AttrType::kInts || row.spec.type == AttrType::kFloats ||
                        row.spec.type == AttrType::kStrings;
      if (!list || !row.versions.holds(version.since)) continue;
      ++tried;
      const std::string_view op_type = version.decl->name;
      const Outcome empty = outcome_of(text, run->inputs, op_type, row, Change::kEmpty);
      const Outcome absent = outcome_of(text, run->inputs, op_type, row, Change::kRemove);
      const std::string where = std::string(op_type) + "-" + std::to_string(version.since) + "." +
                                std::string(std::string_view(row.name)) + ": ";
      EXPECT_EQ(empty.contradiction, "") << where;
      EXPECT_FALSE(empty.error.empty() && !empty.inferred_error.empty())
          << where << "runs, but inference says: " << empty.inferred_error;
      // What must be given has no default to stand for an empty list.
      if (!absent.error.empty() && empty.error.empty()) {
        EXPECT_TRUE(kMeaningful.contains(std::string(op_type) + "." +
                                         std::string(std::string_view(row.name))))
            << where;
        continue;
      }
      const bool alike = empty.error.empty() == absent.error.empty();
      EXPECT_TRUE(alike) << where << "empty: " << empty.error << "; absent: " << absent.error;
      for (size_t i = 0; alike && i < empty.outputs.size(); ++i)
        EXPECT_TRUE(compare(empty.outputs[i].value, absent.outputs[i].value).equal)
            << where << "output " << i << " is another than without the attribute";
    }
  }
  EXPECT_GT(tried, 100u);
}

}  // namespace
}  // namespace tombolo
