// Every function body, fixed or written for a node, against the operator's own kernel: the recipe's
// model is run as it is, and with its operator replaced by a call of the body.

#include <gtest/gtest.h>

#include <string>

#include "ir/clone.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ops/function_text.h"
#include "ops/registry.h"
#include "runtime/compare.h"
#include "runtime/recipes/recipe.h"

namespace tombolo {
namespace {

DType element_of(const Type* type) {
  while (type != nullptr && !type->is_tensor()) type = type->element;
  return type == nullptr ? DType::kUndefined : type->dtype();
}

/// Replaces the operator by a call of its function. Gives the function's text.
Result<std::string> call_body(Model& model, const OpVersion& version, const FunctionBody& row) {
  Node* node = nullptr;
  for (Node* each : model.graph->nodes())
    if (each->op_type() == std::string_view(version.decl->name)) node = each;
  if (node == nullptr) return unsupported("no such node");
  std::vector<DType> types;
  const std::unique_ptr<bool[]> sequences(new bool[node->inputs().size() + 1]());
  for (const Value* input : node->inputs()) {
    if (input != nullptr && input->type() != nullptr)
      sequences[types.size()] = input->type()->kind == Type::Kind::kSequence;
    types.push_back(input == nullptr ? DType::kUndefined : element_of(input->type()));
  }
  const std::unique_ptr<bool[]> wanted(new bool[node->outputs().size() + 1]());
  for (size_t i = 0; i < node->outputs().size(); ++i) wanted[i] = node->output(i) != nullptr;
  FunctionContext context{version, row.opset, AttributeReader(*node), types,
                          std::span<const bool>(wanted.get(), node->outputs().size())};
  context.sequence_inputs = std::span<const bool>(sequences.get(), node->inputs().size());
  TRY(const std::string text, function_text(row, context));
  if (!context.captured.empty()) return unsupported("reads values around the node");
  TRY(std::unique_ptr<Function> function, parse_function(text, model.storage_ptr()));
  function->domain = "body";
  model.functions.push_back(std::move(function));
  model.set_opset("body", 1);
  node->set_domain("body");
  std::vector<std::string> graphs;
  for (const Attribute& attribute : node->attributes())
    if (attribute.graph() != nullptr) graphs.emplace_back(attribute.name);
  for (const std::string& name : graphs) node->remove_attribute(model.storage().copy(name));
  return text;
}

void expect_agreement(const std::string& label, const std::string& model_text,
                      const OpVersion& version, const FunctionBody& row,
                      const std::vector<NamedValue>& inputs) {
  auto plain = parse_text(model_text), called = parse_text(model_text);
  ASSERT_TRUE(plain && called) << label;
  auto text = call_body(**called, version, row);
  ASSERT_TRUE(text) << label << ": " << text.error().message;
  SessionOptions options;
  options.reference = true;
  auto by_kernel = Session::create(*std::move(plain), options);
  auto by_body = Session::create(*std::move(called), options);
  ASSERT_TRUE(by_kernel) << label << ": " << by_kernel.error().message;
  ASSERT_TRUE(by_body) << label << ": " << by_body.error().message << "\n" << *text;
  auto expected = (*by_kernel)->run(inputs), actual = (*by_body)->run(inputs);
  ASSERT_TRUE(expected) << label << ": " << expected.error().message;
  ASSERT_TRUE(actual) << label << ": " << actual.error().message << "\n" << *text;
  const Tolerance tolerance{1e-5, 1e-6};
  for (size_t i = 0; i < expected->size(); ++i) {
    const Comparison same = compare((*actual)[i], (*expected)[i], &tolerance);
    EXPECT_TRUE(same.equal) << label << " output " << i << ": " << same.reason << "\n" << *text;
  }
}

TEST(FunctionBodies, AgreeWithTheKernels) {
  size_t bodies = 0;
  for (const OpVersion& version : all_versions())
    for (const FunctionBody* row : version.functions) {
      const Recipe* recipe = find_recipe(version);
      if (recipe == nullptr || recipe->options.find('@') != std::string_view::npos) continue;
      const std::string label = std::string(std::string_view(version.decl->name)) + "-" +
                                std::to_string(version.since) + " body of " +
                                std::to_string(row->opset);
      TypeAssignment types;
      if (!version.types.empty()) {
        const std::vector<ValueType> members = members_of(version.types[0].allowed);
        if (!members.empty()) types = assign_types(version, *recipe, 0, members[0]);
      }
      auto run = open_recipe(version, *recipe, types);
      if (!run) continue;
      ++bodies;
      expect_agreement(label, recipe_text(version, *recipe, types), version, *row, run->inputs);
    }
  EXPECT_GT(bodies, 60u);
  std::printf("%zu function bodies\n", bodies);
}

/// A model whose only node is that operator, with these float inputs.
void expect_text_agreement(const std::string& text, const char* domain, const char* op,
                           const std::vector<NamedValue>& inputs) {
  const OpVersion* version = find_version(domain, op, 9000);
  ASSERT_NE(version, nullptr);
  for (const FunctionBody* row : version->functions)
    expect_agreement(op, text, *version, *row, inputs);
}

RunValue numbers(std::vector<int64_t> dims, uint32_t seed) {
  auto tensor = Tensor::allocate(DType::kFloat32, dims);
  for (int64_t i = 0; i < tensor->size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    tensor->set_double(i, static_cast<double>(seed >> 16) / 32768.0 - 1);
  }
  return *std::move(tensor);
}

TEST(FunctionBodies, ModifiersAreInlined) {
  // Grouped heads, a scale, both modifiers; one has an initialiser, one a value named as the
  // body's.
  const std::vector<NamedValue> inputs = {{"q", numbers({2, 4, 3, 5}, 1)},
                                          {"k", numbers({2, 2, 6, 5}, 2)},
                                          {"v", numbers({2, 2, 6, 4}, 3)}};
  expect_text_agreement(R"(
<ir_version: 10, opset_import: ["" : 26, "ai.onnx.preview" : 1]>
g (float[2,4,3,5] q, float[2,2,6,5] k, float[2,2,6,4] v) => (float[2,4,3,4] y) {
  y = ai.onnx.preview.FlexAttention <scale: float = 0.3,
    score_mod: graph = soft (float[2,4,3,6] s) => (float[2,4,3,6] capped) <float cap = {2}> {
      product = Div (s, cap)
      bent = Tanh (product)
      capped = Mul (bent, cap)
    },
    prob_mod: graph = twice (float[2,4,3,6] p) => (float[2,4,3,6] scores) { scores = Add (p, p) }> (q, k, v)
})",
                        "ai.onnx.preview", "FlexAttention", inputs);
}

TEST(FunctionBodies, SequencesAreMappedByALoop) {
  SequenceValue xs, zs;
  xs.elem = zs.elem = DType::kFloat32;
  for (uint32_t i = 0; i < 3; ++i) {
    xs.items.push_back(numbers({2, 2}, i));
    zs.items.push_back(numbers({2, 2}, i + 10));
  }
  expect_text_agreement(
      R"(
<ir_version: 10, opset_import: ["" : 26]>
g (seq(float[2,2]) s, float[2,2] t, seq(float[2,2]) z) => (seq(float[2,2]) a, seq(float[2]) b) {
  a, b = SequenceMap <body: graph = each (float[2,2] e, float[2,2] f, float[2,2] h) => (float[2,2] step, float[2] count) {
      step = Add (e, f)
      last = Constant <value_ints = [1]> ()
      count = ReduceSum <keepdims = 0> (h, last)
  }> (s, t, z)
})",
      "", "SequenceMap",
      {{"s", RunValue(std::move(xs))}, {"t", numbers({2, 2}, 7)}, {"z", RunValue(std::move(zs))}});
}

}  // namespace
}  // namespace tombolo
