#include "ops/function_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/model.h"
#include "ir/text/parser.h"

namespace tombolo {
namespace {

/// A node of an operator, with what a builder may ask about it.
struct Call {
  explicit Call(Text op) : graph(storage), node(graph.add_node(op)) {}

  Result<std::string> text(int opset, std::vector<DType> types, int body_opset = 0) {
    const OpVersion* version = find_version("", node->op_type(), opset);
    for (const FunctionBody* row : version->functions) {
      if (body_opset != 0 && row->opset != body_opset) continue;
      FunctionContext context{*version, row->opset, AttributeReader(*node), types, {}, {}};
      return function_text(*row, context);
    }
    return unsupported("no body");
  }

  StoragePtr storage = std::make_shared<Storage>();
  Graph graph;
  Node* node;
};

/// The text, or the error in its place.
std::string shown(Result<std::string> text) {
  return text ? *text : "error: " + text.error().message;
}

constexpr DType kF = DType::kFloat32, kNone = DType::kUndefined;

TEST(FunctionText, SaysSignatureAndBody) {
  EXPECT_EQ(shown(Call("Mish").text(22, {kF})),
            "<domain: \"\", opset_import: [\"\" : 22]>\n"
            "Mish (X) => (Y) {\n"
            "\nsoft = Softplus (X)\ngate = Tanh (soft)\nY = Mul (X, gate)\n"
            "}\n");
  const OpVersion& swish = *find_version("", "Swish", 24);
  EXPECT_EQ(function_text(swish, 24, "Y = Neg (X)\n"),
            "<domain: \"\", opset_import: [\"\" : 24]>\n"
            "Swish <alpha: float = 1.0> (X) => (Y) {\n"
            "Y = Neg (X)\n"
            "}\n");
}

TEST(FunctionText, PicksTheNewestBodyThatTheModelCanSay) {
  const OpVersion& softmax = *find_version("", "Softmax", 13);
  EXPECT_EQ(function_body(softmax, 12), nullptr);
  EXPECT_EQ(function_body(softmax, 17)->opset, 13);
  EXPECT_EQ(function_body(softmax, 18)->opset, 18);
  EXPECT_EQ(function_body(*find_version("", "Conv", 22), 28), nullptr);
}

TEST(FunctionText, BuildersSeeInputsTypesAndAttributes) {
  const auto has = [](Result<std::string> text, std::string_view line) {
    return shown(std::move(text)).find(line) != std::string::npos;
  };
  EXPECT_TRUE(has(Call("Clip").text(13, {kF, kNone, kF}), "output = Min (input, max)"));
  EXPECT_TRUE(has(Call("Clip").text(13, {kF}), "output = Identity (input)"));
  EXPECT_TRUE(has(Call("CastLike").text(15, {kF, DType::kInt64}), "Cast <to = 7> (input)"));
  EXPECT_TRUE(has(Call("CastLike").text(15, {kF, kNone}), "error: "));
  Call gelu("Gelu");
  gelu.node->set_string("approximate", "tanh");
  EXPECT_TRUE(has(gelu.text(20, {kF}), "Tanh"));
  gelu.node->set_string("approximate", "cosh");
  EXPECT_TRUE(has(gelu.text(20, {kF}), "error: "));
}

/// Every node of a body, subgraphs included, is legal in the operator set that the body imports.
void check_nodes(const Graph& graph, int opset) {
  for (const Node* node : graph.nodes()) {
    SCOPED_TRACE(std::string(node->op_type()));
    const OpVersion* version = find_version(node->domain(), node->op_type(), opset);
    ASSERT_NE(version, nullptr);
    EXPECT_FALSE(version->deprecated);
    EXPECT_GE(node->inputs().size(), version->min_inputs);
    EXPECT_LE(node->inputs().size(), version->max_inputs);
    EXPECT_GE(node->outputs().size(), version->min_outputs);
    EXPECT_LE(node->outputs().size(), version->max_outputs);
    for (const Value* input : node->inputs())
      EXPECT_FALSE(input && input->is_undefined()) << "nothing defines " << input->name();
    for (const Attribute& attribute : node->attributes()) {
      const AttrDecl* row = version->attribute(attribute.name);
      ASSERT_NE(row, nullptr) << attribute.name;
      EXPECT_EQ(row->spec.type, attribute.type) << attribute.name;
      if (const Graph* inner = attribute.graph()) check_nodes(*inner, opset);
    }
    for (const AttrDecl* row : version->attributes)
      EXPECT_TRUE(!row->spec.required || node->attribute(row->name)) << std::string_view(row->name);
  }
}

TEST(FunctionText, EveryBodyParsesAndIsLegal) {
  // Written for a subgraph of the node: function_bodies_test.cpp has it.
  const std::set<std::string_view> needs_graph = {"SequenceMap"};
  size_t bodies = 0;
  for (const OpVersion& version : all_versions())
    for (const FunctionBody* row : version.functions) {
      const std::string_view name = version.decl->name;
      SCOPED_TRACE(std::string(name) + "-" + std::to_string(version.since) + " in opset " +
                   std::to_string(row->opset));
      EXPECT_TRUE(!row->text.empty() || row->builder);
      if (needs_graph.count(name)) continue;
      // Float where it may be, else an index.
      std::vector<DType> types;
      for (const ResolvedParam& input : version.inputs)
        types.push_back(input.allowed.has_tensor(kF) ? kF : DType::kInt64);
      Call call{Text(name)};
      FunctionContext context{version, row->opset, AttributeReader(*call.node), types, {}, {}};
      const Result<std::string> text = function_text(*row, context);
      ASSERT_TRUE(text) << text.error().message;
      const auto function = parse_function(*text, call.storage);
      ASSERT_TRUE(function) << function.error().where << function.error().message << "\n" << *text;
      check_nodes((*function)->body, context.opset);
      EXPECT_EQ((*function)->body.inputs().size(), version.inputs.size());
      EXPECT_EQ((*function)->body.outputs().size(), version.outputs.size());
      ++bodies;
    }
  EXPECT_GE(bodies, 70u);
}

}  // namespace
}  // namespace tombolo
