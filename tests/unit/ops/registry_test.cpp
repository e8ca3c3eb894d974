#include "ops/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ops/operators_json.h"

namespace tombolo {
namespace {

std::string label(const OpVersion& version) {
  return std::string(std::string_view(version.decl->name)) + "-" + std::to_string(version.since);
}

TEST(Registry, DeclaresEveryOperatorAndVersion) {
  // Counted in the onnx package 1.23.2.
  std::map<std::string, int> operators, versions;
  for (const OpDecl* op : all_operators())
    if (latest_opset(op->domain) != 0) ++operators[std::string(std::string_view(op->domain))];
  for (const OpVersion& v : all_versions())
    if (latest_opset(v.decl->domain) != 0)
      ++versions[std::string(std::string_view(v.decl->domain))];
  EXPECT_EQ(
      operators,
      (std::map<std::string, int>{
          {"", 203}, {"ai.onnx.ml", 19}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 4}}));
  EXPECT_EQ(
      versions,
      (std::map<std::string, int>{
          {"", 629}, {"ai.onnx.ml", 25}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 4}}));
  size_t functions = 0, deprecated = 0;
  for (const OpVersion& v : all_versions()) {
    functions += v.has_function();
    deprecated += v.deprecated;
  }
  EXPECT_EQ(functions, 76u);
  EXPECT_EQ(deprecated, 5u);
}

TEST(Registry, FindsByDomainNameAndOpset) {
  const OpDecl* reshape = find_operator("", "Reshape");
  ASSERT_NE(reshape, nullptr);
  EXPECT_EQ(find_operator("ai.onnx", "Reshape"), reshape);
  EXPECT_EQ(find_operator("ai.onnx.ml", "Reshape"), nullptr);
  EXPECT_EQ(find_operator("com.example", "Reshape"), nullptr);
  EXPECT_EQ(find_operator("", "reshape"), nullptr);
  EXPECT_EQ(find_operator("", ""), nullptr);
  ASSERT_NE(find_operator("ai.onnx.ml", "Scaler"), nullptr);

  EXPECT_EQ(find_version("", "Reshape", 1)->since, 1);
  EXPECT_EQ(find_version("", "Reshape", 4)->since, 1);
  EXPECT_EQ(find_version("", "Reshape", 4)->until, 4);
  EXPECT_EQ(find_version("", "Reshape", 5)->since, 5);
  EXPECT_EQ(find_version("", "Reshape", 28)->since, 25);
  EXPECT_EQ(find_version("", "Reshape", 9000)->since, 25);
  EXPECT_EQ(find_version("", "Reshape", 0), nullptr);
  EXPECT_EQ(find_version("", "Swish", 23), nullptr);
  EXPECT_EQ(find_version("", "Swish", 24)->since, 24);
  EXPECT_EQ(resolve(*reshape, 13)->since, 13);
  for (const OpDecl* op : all_operators()) {
    EXPECT_EQ(find_operator(op->domain, op->name), op);
    EXPECT_EQ(versions_of(*op).size(), op->versions.size());
  }
}

TEST(Registry, FindsGuestsOfOnnx) {
  const OpDecl* guest = find_operator("", "SimplifiedLayerNormalization");
  ASSERT_NE(guest, nullptr);
  EXPECT_EQ(guest->domain, kGuestDomain);
  EXPECT_EQ(find_version("", "SimplifiedLayerNormalization", 21)->since, 1);
  EXPECT_EQ(find_operator("com.microsoft", "SimplifiedLayerNormalization"), nullptr);
  ASSERT_NE(find_operator("com.microsoft", "FusedMatMul"), nullptr);
  EXPECT_EQ(find_operator("", "FusedMatMul"), nullptr);
  EXPECT_EQ(latest_opset("com.microsoft"), 0);
}

TEST(Registry, ResolvesIntervals) {
  const OpVersion& reshape1 = *find_version("", "Reshape", 1);
  EXPECT_EQ(reshape1.inputs.size(), 1u);
  ASSERT_NE(reshape1.attribute("shape"), nullptr);
  EXPECT_EQ(reshape1.attribute("allowzero"), nullptr);
  const OpVersion& reshape14 = *find_version("", "Reshape", 14);
  ASSERT_EQ(reshape14.inputs.size(), 2u);
  EXPECT_EQ(reshape14.inputs[1].type, "tensor(int64)");
  EXPECT_EQ(reshape14.inputs[1].type_var, -1);
  EXPECT_EQ(reshape14.inputs[1].allowed, ops::kI64);
  EXPECT_EQ(reshape14.attribute("shape"), nullptr);
  ASSERT_NE(reshape14.attribute("allowzero"), nullptr);
  EXPECT_EQ(reshape14.attribute("allowzero")->spec.i, 0);

  // Types add up; a version that takes some away starts anew.
  EXPECT_EQ(find_version("", "Abs", 6)->inputs[0].allowed, ops::kNumbers);
  EXPECT_EQ(find_version("", "Abs", 13)->inputs[0].allowed, ops::kNumbers | ops::kBf16);
  EXPECT_EQ(find_version("", "Erf", 9)->inputs[0].allowed, ops::kNumbers);
  EXPECT_EQ(find_version("", "Erf", 13)->inputs[0].allowed, ops::kFloats | ops::kBf16);

  // A changed default is two rows.
  EXPECT_EQ(find_version("", "Softmax", 12)->attribute("axis")->spec.i, 1);
  EXPECT_EQ(find_version("", "Softmax", 13)->attribute("axis")->spec.i, -1);
}

TEST(Registry, CountsInputs) {
  const OpVersion& conv = *find_version("", "Conv", 11);
  EXPECT_EQ(conv.min_inputs, 2u);
  EXPECT_EQ(conv.max_inputs, 3u);
  const OpVersion& concat = *find_version("", "Concat", 13);
  EXPECT_EQ(concat.min_inputs, 1u);
  EXPECT_EQ(concat.max_inputs, SIZE_MAX);
  // M and cond can be empty but not left out.
  EXPECT_EQ(find_version("", "Loop", 13)->min_inputs, 2u);
  EXPECT_EQ(find_version("", "Constant", 13)->max_inputs, 0u);
}

TEST(Registry, KnowsReleases) {
  EXPECT_EQ(latest_opset(""), 28);
  EXPECT_EQ(latest_opset("ai.onnx"), 28);
  EXPECT_EQ(latest_opset("ai.onnx.ml"), 5);
  EXPECT_EQ(latest_opset("ai.onnx.preview.training"), 1);
  EXPECT_EQ(latest_opset("com.example"), 0);
  EXPECT_EQ(ir_version_for_opset(9), 4);
  EXPECT_EQ(ir_version_for_opset(20), 9);
  EXPECT_EQ(ir_version_for_opset(28), 14);
  EXPECT_EQ(opset_for_ir_version(8), 18);
  EXPECT_EQ(opset_for_ir_version(14), 28);
  EXPECT_EQ(opset_for_ir_version(99), 0);
}

TEST(Registry, RowsAreConsistent) {
  for (const OpDecl* op : all_operators()) {
    SCOPED_TRACE(std::string(std::string_view(op->name)));
    EXPECT_FALSE(op->doc.empty());
    ASSERT_GT(op->versions.size(), 0u);
    const std::set<int> versions(op->versions.begin(), op->versions.end());
    EXPECT_TRUE(std::is_sorted(op->versions.begin(), op->versions.end()));
    EXPECT_EQ(versions.size(), op->versions.size());
    // Contributed domains have one version, and grow within it.
    EXPECT_LE(*versions.rbegin(), std::max(1, latest_opset(op->domain)));
    for (int v : op->deprecated) EXPECT_TRUE(versions.count(v));
    // An interval starts at a version and ends just before one: else it says nothing.
    const auto check = [&](Since since) {
      EXPECT_LE(since.since, since.until);
      EXPECT_TRUE(since.since == 1 || versions.count(since.since)) << since.since;
      EXPECT_TRUE(since.until == 9999 || versions.count(since.until + 1)) << since.until;
    };
    for (const Param& row : op->inputs) check(row.versions);
    for (const Param& row : op->outputs) check(row.versions);
    for (const AttrDecl& row : op->attributes) check(row.versions);
    for (const FunctionBody& row : op->functions) check(row.versions);
    for (const TypeVar& row : op->types) {
      check(row.versions);
      TypeSet known;
      int last = 0;
      for (const TypeStep& step : row.steps) {
        EXPECT_TRUE(versions.count(step.since)) << step.since;
        EXPECT_TRUE(row.versions.holds(step.since));
        EXPECT_GT(step.since, last);
        EXPECT_FALSE(step.types.empty());
        EXPECT_FALSE(known.covers(step.types)) << "step " << step.since << " adds nothing";
        known = known | step.types;
        last = step.since;
      }
    }
  }
  for (const OpVersion& v : all_versions()) {
    SCOPED_TRACE(label(v));
    std::set<std::string_view> used, names;
    for (auto params : {v.inputs, v.outputs}) {
      for (size_t k = 0; k < params.size(); ++k) {
        const ResolvedParam& p = params[k];
        EXPECT_FALSE(p.allowed.empty()) << p.name << " has type " << p.type;
        used.insert(p.type);
        EXPECT_TRUE(p.option != Option::kVariadic || k + 1 == params.size());
        EXPECT_TRUE(p.homogeneous || p.option == Option::kVariadic);
      }
    }
    for (const ResolvedType& t : v.types) {
      // Tile-1 is specified with a T1 that nothing has.
      EXPECT_TRUE(used.count(t.name) || label(v) == "Tile-1") << t.name << " is used by nothing";
      EXPECT_TRUE(names.insert(t.name).second) << t.name << " is declared twice";
    }
    names.clear();
    for (const AttrDecl* a : v.attributes) {
      EXPECT_TRUE(names.insert(a->name).second) << std::string_view(a->name) << " twice";
      EXPECT_FALSE(a->spec.required && a->spec.has_default);
    }
  }
}

TEST(TypeStrings, AreInverse) {
  for (const OpVersion& v : all_versions())
    for (const ResolvedType& t : v.types) {
      TypeSet sum;
      for (const std::string& text : type_strings(t.allowed)) {
        const auto one = type_set_of(text);
        ASSERT_TRUE(one) << text;
        sum = sum | *one;
      }
      EXPECT_EQ(sum, t.allowed) << label(v);
    }
  for (const char* bad : {"", "tensor(", "tensor()", "tensor(undefined)", "seq(tensor(float)",
                          "optional(seq(tensor(nope)))", "float"})
    EXPECT_FALSE(type_set_of(bad)) << bad;
}

TEST(OperatorsJson, HasARecordForEachVersion) {
  const std::string json = operators_json();
  size_t records = 0;
  for (size_t at = 0; (at = json.find("\"since_version\":", at)) != std::string::npos; ++at)
    ++records;
  EXPECT_EQ(records, all_versions().size());
  EXPECT_NE(json.find("{\"name\":\"axis\",\"type\":\"INT\",\"required\":false,\"default\":-1}"),
            std::string::npos);
}

}  // namespace
}  // namespace tombolo
