#include "version/upgrade.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/sanitizer.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ops/registry.h"

namespace tombolo {
namespace {

std::unique_ptr<Model> parse(std::string_view text) {
  auto model = parse_text(text);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? *std::move(model) : nullptr;
}

/// "Op Op Op" of a graph, kept nodes as Op-version.
std::string operators(const Graph& graph) {
  std::string text;
  for (const Node* node : graph.nodes()) {
    text += (text.empty() ? "" : " ") + std::string(node->op_type());
    if (node->opset_override() != 0) text += "-" + std::to_string(node->opset_override());
  }
  return text;
}

/// Operators after the upgrade of one graph of the given opset.
std::string upgraded(int opset, std::string_view graph) {
  auto model = parse("<ir_version: 3, opset_import: [\"\" : " + std::to_string(opset) +
                     ", \"ai.onnx.ml\" : 1]> " + std::string(graph));
  if (!model) return "does not parse";
  Diagnostics notes;
  const Status status = upgrade(*model, notes);
  if (!status) return status.error().message;
  EXPECT_EQ(model->opset(), latest_opset(""));
  EXPECT_EQ(model->opset("ai.onnx.ml"), latest_opset("ai.onnx.ml"));
  return operators(*model->graph);
}

TEST(Upgrade, AlignsTheAxisOfOldBroadcasting) {
  EXPECT_EQ(upgraded(6,
                     "g (float[2,3,4,5] a, float[3,4] b) => (float[2,3,4,5] c) "
                     "{ c = Add <broadcast: int = 1, axis: int = 1> (a, b) }"),
            "Unsqueeze Add");
  EXPECT_EQ(upgraded(6,
                     "g (float[2,3,4,5] a, float[4,5] b) => (float[2,3,4,5] c) "
                     "{ c = Add <broadcast: int = 1, axis: int = 2> (a, b) }"),
            "Add");
  EXPECT_EQ(upgraded(6,
                     "g (float[2,3,4,5] a, float[4,5] b) => (float[2,3,4,5] c) "
                     "{ c = Add <broadcast: int = 1> (a, b) }"),
            "Add");
  // The rank comes through a node without declared type.
  EXPECT_EQ(upgraded(1,
                     "g (float[2,3,4,5] a, float[3] b) => (bool[2,3,4,5] c) "
                     "{ r = Relu (a) c = Less <broadcast: int = 1, axis: int = 1> (r, b) }"),
            "Relu Unsqueeze Less");
  // Nothing is guessed.
  EXPECT_EQ(upgraded(1,
                     "g (float a, float[3] b) => (float c) "
                     "{ r = Unknown (a) c = Add <broadcast: int = 1, axis: int = 1> (r, b) }"),
            "Unknown Add-6");
}

TEST(Upgrade, FlattensAroundOldSoftmax) {
  EXPECT_EQ(upgraded(11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax (x) }"),
            "Shape Flatten Hardmax Reshape");
  EXPECT_EQ(upgraded(11, "g (float[2,3] x) => (float[2,3] y) { y = Softmax (x) }"), "Softmax");
  EXPECT_EQ(upgraded(12,
                     "g (float[2,3,4] x) => (float[2,3,4] y) "
                     "{ y = LogSoftmax <axis: int = -1> (x) }"),
            "LogSoftmax");
}

TEST(Upgrade, KeepsTheInterface) {
  auto model = parse(
      "<ir_version: 3, opset_import: [\"\" : 11]> g (float[N,3,4] x) => (float[N,3,4] y) "
      "{ y = Softmax (x) }");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  ASSERT_EQ(model->graph->inputs().size(), 1u);
  ASSERT_EQ(model->graph->outputs().size(), 1u);
  const Value& y = *model->graph->outputs()[0].value;
  EXPECT_EQ(y.name(), "y");
  EXPECT_EQ(y.producer()->op_type(), "Reshape");
  ASSERT_NE(y.type(), nullptr);
  EXPECT_EQ(to_string(*y.type()), "float[N,3,4]");
  EXPECT_EQ(model->ir_version, 14);
}

TEST(Upgrade, ResizeRoundsAsBefore) {
  auto attributes = [](std::string_view scales) {
    auto model = parse(
        "<ir_version: 5, opset_import: [\"\" : 10]> g (float[1,1,2,4] x) => "
        "(float[a,b,c,d] y) <float[4] s = {" +
        std::string(scales) + "}> { y = Resize <mode: string = \"nearest\"> (x, s) }");
    if (!model) return std::string();
    Diagnostics notes;
    EXPECT_TRUE(upgrade(*model, notes).ok());
    std::string text;
    for (const Node* node : model->graph->nodes()) {
      if (node->op_type() != "Resize") continue;
      EXPECT_EQ(*node->attribute("coordinate_transformation_mode")->s(), "asymmetric");
      text += std::string(*node->attribute("nearest_mode")->s()) + " ";
    }
    return text;
  };
  EXPECT_EQ(attributes("1, 1, 2, 2"), "floor ");
  EXPECT_EQ(attributes("1, 1, 0.6, 0.6"), "ceil ");
  EXPECT_EQ(attributes("1, 1, 2, 0.6"), "floor ceil ");
}

TEST(Upgrade, RenamedAndReplacedOperators) {
  EXPECT_EQ(upgraded(1,
                     "g (float[1,1,2,2] x) => (float[1,1,4,4] y) { y = Upsample "
                     "<height_scale: float = 2.0, width_scale: float = 2.0> (x) }"),
            "Resize");
  EXPECT_EQ(upgraded(9,
                     "g (float[2,2] x, int64[1,2] i, float[1,2] u) => (float[2,2] y) "
                     "{ y = Scatter (x, i, u) }"),
            "ScatterElements");
  EXPECT_EQ(upgraded(4,
                     "g (float[2,2] x) => (float[4] y) "
                     "{ y = Reshape <shape: ints = [4]> (x) }"),
            "Reshape");
  EXPECT_EQ(upgraded(1,
                     "g (float[2,2] x) => (float[2,6] y) <float t = {3}, float a = {1}> "
                     "{ y = Tile (x, t, a) }"),
            "Tile");
}

TEST(Upgrade, BatchNormalization) {
  EXPECT_EQ(upgraded(6,
                     "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => "
                     "(float[2,3,4] y) { y = BatchNormalization <is_test: int = 1> "
                     "(x, s, b, m, v) }"),
            "BatchNormalization");
  EXPECT_EQ(upgraded(7,
                     "g (float[2,3,4] x, float[3,4] s, float[3,4] b, float[3,4] m, "
                     "float[3,4] v) => (float[2,3,4] y) { y = BatchNormalization "
                     "<spatial: int = 0> (x, s, b, m, v) }"),
            "Shape Flatten Reshape Reshape Reshape Reshape BatchNormalization Reshape");
  auto model = parse(
      "<ir_version: 3, opset_import: [\"\" : 9]> g (float[2,3] x, float[3] s, float[3] b, "
      "float[3] m, float[3] v) => (float[2,3] y, float[3] rm, float[3] rv) "
      "{ y, rm, rv, sm, sv = BatchNormalization (x, s, b, m, v) }");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  const Node& node = *model->graph->first_node();
  EXPECT_EQ(node.outputs().size(), 3u);
  ASSERT_NE(node.attribute("training_mode"), nullptr);
  EXPECT_EQ(*node.attribute("training_mode")->i(), 1);
}

TEST(Upgrade, WhatHasNoEqualKeepsItsVersion) {
  EXPECT_EQ(upgraded(6, "g (float[2] x) => (float[2] y) { y = Dropout (x) }"), "Dropout-6");
  EXPECT_EQ(upgraded(6, "g (float[2] x) => (float[2] y) { y = Dropout <is_test: int = 1> (x) }"),
            "Dropout");
  EXPECT_EQ(upgraded(9, "g (int32[2] x) => (int32[2] y) { y = Erf (x) }"), "Erf-12");
  EXPECT_EQ(upgraded(9, "g (float[2] x) => (float[2] y) { y = Erf (x) }"), "Erf");
  EXPECT_EQ(upgraded(11,
                     "g (float[2,4] x) => (float[2] y) { y = ai.onnx.ml.TreeEnsembleRegressor "
                     "(x) }"),
            "TreeEnsembleRegressor-4");
}

TEST(Upgrade, IsIdempotent) {
  const char* text =
      "<ir_version: 3, opset_import: [\"\" : 6]> g (float[2,3,4] x) => (float[2,3,4] z) "
      "{ y = Dropout (x) z = Softmax (y) }";
  auto model = parse(text);
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  const std::string once = operators(*model->graph);
  ASSERT_TRUE(upgrade(*model, notes).ok());
  EXPECT_EQ(operators(*model->graph), once);
}

TEST(Upgrade, ScanOverABatchNests) {
  EXPECT_EQ(
      upgraded(8, R"(g (float[2,1] init, float[2,3,1] xs) => (float[2,1] last, float[2,3,1] ys)
    { last, ys = Scan <num_scan_inputs: int = 1, directions: ints = [1], body: graph =
        step (float[1] s, float[1] x) => (float[1] t, float[1] y) { t = Add (s, x) y = Identity (t) }>
      ("", init, xs) })"),
      "Scan");
}

TEST(Upgrade, SubgraphsAndFunctions) {
  auto model = parse(R"(
<ir_version: 8, opset_import: ["" : 12, "local" : 1]>
g (bool c, float[2,3] x) => (float[2] y) {
  z = local.sums (x)
  y = If <then_branch: graph = t () => (float[2] a) { a = Squeeze <axes: ints = [1]> (z) },
          else_branch: graph = e () => (float[2] b) { b = ReduceSum <axes: ints = [1], keepdims: int = 0> (x) }> (c)
}
<domain: "local", opset_import: ["" : 11]>
sums (v) => (w) { w = ReduceSum <axes: ints = [1]> (v) }
)");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  EXPECT_EQ(notes.list().size(), 0u);
  const Node& branch = *model->graph->last_node();
  for (const char* name : {"then_branch", "else_branch"})
    EXPECT_EQ(branch.attribute(name)->graph()->first_node()->inputs().size(), 2u) << name;
  // A function has no initialisers.
  EXPECT_EQ(operators(model->functions[0]->body), "Constant ReduceSum");
  EXPECT_EQ(model->functions[0]->opset_imports[0].version, latest_opset(""));
  EXPECT_EQ(model->opset("local"), 1);
}

TEST(Upgrade, ReferencesInFunctionsKeepTheVersion) {
  auto model = parse(R"(
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2,3] x) => (float[2,1] y) { y = local.mean <axes: ints = [1]> (x) }
<domain: "local", opset_import: ["" : 17]>
mean <axes> (v) => (w) { w = ReduceMean <axes: ints = @axes> (v) }
)");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  EXPECT_EQ(operators(model->functions[0]->body), "ReduceMean-17");
  ASSERT_EQ(notes.list().size(), 1u);
  EXPECT_EQ(notes.list()[0].code, "kept-version");
}

TEST(Upgrade, NewNamesAreUnique) {
  auto model = parse(
      "<ir_version: 3, opset_import: [\"\" : 12]> g (float[2,1] axes, float[2,1] axes_1) => "
      "(float[2] y, float[2] z) { y = Squeeze <axes: ints = [1]> (axes) "
      "z = Squeeze <axes: ints = [1]> (axes_1) }");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  ASSERT_EQ(model->graph->initializers().size(), 2u);
  EXPECT_EQ(model->graph->initializers()[0]->name(), "axes_2");
  EXPECT_EQ(model->graph->initializers()[1]->name(), "axes_3");
}

TEST(Upgrade, Targets) {
  auto model = parse(
      "<ir_version: 7, opset_import: [\"\" : 12]> g (float[2,1] x) => (float[2] y) "
      "{ y = Squeeze <axes: ints = [1]> (x) }");
  ASSERT_TRUE(model);
  Diagnostics notes;
  const OpsetTarget thirteen[] = {{"", 13}};
  ASSERT_TRUE(convert(*model, thirteen, notes).ok());
  EXPECT_EQ(model->opset(), 13);
  EXPECT_EQ(model->ir_version, 7);
  const OpsetTarget down[] = {{"", 9}}, unknown[] = {{"", 9000}};
  ASSERT_TRUE(convert(*model, down, notes).ok());
  EXPECT_EQ(model->opset(), 9);
  EXPECT_EQ(model->ir_version, 4);
  ASSERT_NE(model->graph->first_node()->attribute("axes"), nullptr);
  EXPECT_FALSE(convert(*model, unknown, notes).ok());
}

TEST(Upgrade, LabelEncoderByInputType) {
  auto model = parse(
      "<ir_version: 3, opset_import: [\"\" : 9, \"ai.onnx.ml\" : 1]> g (string[2] x) => "
      "(int64[2] y) { y = ai.onnx.ml.LabelEncoder <classes_strings: strings = [\"a\", \"b\"]> (x) "
      "}");
  ASSERT_TRUE(model);
  Diagnostics notes;
  ASSERT_TRUE(upgrade(*model, notes).ok());
  const Node& node = *model->graph->first_node();
  ASSERT_NE(node.attribute("keys_strings"), nullptr);
  ASSERT_NE(node.attribute("values_int64s"), nullptr);
  EXPECT_EQ(node.attribute("values_int64s")->ints()[1], 1);
}

// Every step of every operator goes from one of its versions to the next one.
TEST(Upgrade, StepsJoinNeighbours) {
  for (const OpDecl* op : all_operators())
    for (const VersionStep& row : op->up) {
      const OpVersion* from = resolve(*op, row.from);
      ASSERT_NE(from, nullptr) << std::string_view(op->name);
      EXPECT_EQ(from->since, row.from) << std::string_view(op->name);
      EXPECT_EQ(from->until + 1, row.to) << std::string_view(op->name);
    }
}

// So does every step down, or it replaces an operator that is new. From opset 8 on, what has a step
// up has one down, or a body that takes the node's place.
TEST(Downgrade, StepsJoinNeighbours) {
  for (const OpDecl* op : all_operators()) {
    const std::string name(std::string_view(op->name));
    for (const VersionStep& row : op->down) {
      const OpVersion* from = resolve(*op, row.from);
      ASSERT_NE(from, nullptr) << name;
      EXPECT_EQ(from->since, row.from) << name;
      const bool first = from == versions_of(*op).data();
      EXPECT_EQ(row.to, first ? 0 : (from - 1)->since) << name << " " << row.from;
    }
    if (!std::string_view(op->domain).empty()) continue;
    for (const VersionStep& up : op->up) {
      if (up.to < 8) continue;
      bool has_way = !resolve(*op, up.to)->functions.empty();
      for (const VersionStep& down : op->down)
        has_way = has_way || (down.from == up.to && down.to == up.from);
      EXPECT_TRUE(has_way || name == "Scan" || name == "OneHot" || name == "Upsample" ||
                  name == "Scatter")
          << name << " " << up.to;
    }
  }
}

/// Every boundary at which attributes or inputs go away, or a default changes, has a step: nothing
/// that a node may hold is left behind without a reader.
TEST(Upgrade, EveryLossHasAStep) {
  auto has_step = [](const OpDecl& op, int from, int to) {
    for (const VersionStep& row : op.up)
      if (row.from == from && row.to == to) return true;
    return false;
  };
  for (const OpDecl* op : all_operators()) {
    const auto versions = versions_of(*op);
    for (size_t i = 0; i + 1 < versions.size(); ++i) {
      const OpVersion &a = versions[i], &b = versions[i + 1];
      if (has_step(*op, a.since, b.since)) continue;
      const std::string where = std::string(std::string_view(op->name)) + " " +
                                std::to_string(a.since) + " -> " + std::to_string(b.since);
      for (const AttrDecl* attribute : a.attributes) {
        if (attribute->name == "consumed_inputs") continue;
        const AttrDecl* after = b.attribute(attribute->name);
        ASSERT_NE(after, nullptr) << where << " loses " << std::string_view(attribute->name);
        EXPECT_EQ(after->spec.type, attribute->spec.type) << where;
        if (!attribute->spec.has_default) continue;
        EXPECT_TRUE(after->spec.has_default) << where;
        EXPECT_EQ(after->spec.i, attribute->spec.i) << where;
        EXPECT_EQ(after->spec.f, attribute->spec.f) << where;
        EXPECT_EQ(std::string_view(after->spec.s), std::string_view(attribute->spec.s)) << where;
      }
      EXPECT_LE(a.inputs.size(), b.inputs.size()) << where;
      EXPECT_LE(a.outputs.size(), b.outputs.size()) << where;
      EXPECT_LE(b.min_inputs, a.min_inputs) << where;
      EXPECT_FALSE(b.deprecated && !a.deprecated) << where;
      for (size_t p = 0; p < a.inputs.size(); ++p)
        EXPECT_TRUE(b.inputs[p].allowed.covers(a.inputs[p].allowed)) << where << " input " << p;
      for (size_t p = 0; p < a.outputs.size(); ++p)
        EXPECT_TRUE(b.outputs[p].allowed.covers(a.outputs[p].allowed)) << where << " output " << p;
    }
  }
}

TEST(Upgrade, TenThousandNodes) {
  std::string text =
      "<ir_version: 3, opset_import: [\"\" : 6]> g (float[2,3] x0) => (float[2,3] x10000) {";
  for (int i = 0; i < 10000; ++i)
    text += " x" + std::to_string(i + 1) +
            (i % 2 != 0 ? " = Relu (x" : " = Clip <max: float = 6.0> (x") + std::to_string(i) + ")";
  auto model = parse(text + "}");
  ASSERT_TRUE(model);
  Diagnostics notes;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(upgrade(*model, notes).ok());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(model->graph->initializers().size(), 5000u);
  EXPECT_EQ(notes.list().size(), 0u);
  // Tools that watch memory or threads take ten times as long.
  const double most = kThreadSanitizer || kAddressSanitizer ? 5000 : 500;
  EXPECT_LT(time.count(), most) << "linear time; a few milliseconds on an idle machine";
  RecordProperty("milliseconds", std::to_string(time.count()));
}

}  // namespace
}  // namespace tombolo
