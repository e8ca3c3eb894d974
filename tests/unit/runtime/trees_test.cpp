// Random forests on the fast kernel and on the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "each_isa.h"
#include "ir/text/parser.h"
#include "runtime/session.h"

namespace tombolo {
namespace {

class Trees : public EachIsa {};

/// One tree after another, as the attributes of TreeEnsembleRegressor.
struct Forest {
  std::string trees, ids, features, modes, splits, yes, no, missing;
  std::string leaf_trees, leaf_ids, leaf_targets, leaf_weights;
  std::mt19937 random;

  static void put(std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  }
  int number(int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); }

  /// Heap order: node i leads to 2i + 1 and 2i + 2.
  void add_tree(int tree, int depth, int features_count, int targets, bool every_mode) {
    static constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                             "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    const int inner = (1 << depth) - 1;
    for (int i = 0; i < 2 * inner + 1; ++i) {
      const bool leaf = i >= inner;
      put(trees, std::to_string(tree));
      put(ids, std::to_string(i));
      put(features, std::to_string(leaf ? 0 : number(features_count)));
      put(modes, leaf ? "\"LEAF\"" : "\"" + std::string(kModes[number(every_mode ? 6 : 1)]) + "\"");
      put(splits, std::to_string(0.25 * (number(9) - 4)));
      put(yes, std::to_string(leaf ? 0 : 2 * i + 1));
      put(no, std::to_string(leaf ? 0 : 2 * i + 2));
      put(missing, std::to_string(number(2)));
      if (!leaf) continue;
      put(leaf_trees, std::to_string(tree));
      put(leaf_ids, std::to_string(i));
      put(leaf_targets, std::to_string(number(targets)));
      put(leaf_weights, std::to_string(0.125 * (number(33) - 16)));
    }
  }
  /// The nodes, as attributes, and the leaves' votes as those of `prefix`.
  std::string attributes(const std::string& prefix) const {
    return "nodes_treeids = [" + trees + "], nodes_nodeids = [" + ids + "], nodes_featureids = [" +
           features + "], nodes_modes = [" + modes + "], nodes_values = [" + splits +
           "], nodes_truenodeids = [" + yes + "], nodes_falsenodeids = [" + no + "], " +
           (missing.empty() ? "" : "nodes_missing_value_tracks_true = [" + missing + "], ") +
           prefix + "_treeids = [" + leaf_trees + "], " + prefix + "_nodeids = [" + leaf_ids +
           "], " + prefix + "_ids = [" + leaf_targets + "], " + prefix + "_weights = [" +
           leaf_weights + "]";
  }
  std::string model(int targets, const char* aggregate) const {
    return "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : 3]>\n"
           "g (float[N, F] x) => (float[N, T] y) {\n  y = ai.onnx.ml.TreeEnsembleRegressor "
           "<" +
           attributes("target") + ", n_targets = " + std::to_string(targets) +
           ", aggregate_function = \"" + aggregate + "\"> (x)\n}\n";
  }
};

/// The outputs of a model on the fast kernel, then on the reference; fewer than two where it
/// failed.
std::vector<std::vector<RunValue>> on_both(const std::string& text, std::vector<float> x,
                                           int64_t features) {
  const int64_t dims[] = {static_cast<int64_t>(x.size()) / features, features};
  const RunValue input = Tensor::of<float>(DType::kFloat32, dims, x);
  std::vector<std::vector<RunValue>> results;
  for (const bool reference : {false, true}) {
    auto model = parse_text(text);
    if (!model) {
      ADD_FAILURE() << model.error().message;
      break;
    }
    SessionOptions options;
    options.reference = reference;
    auto session = Session::create(*std::move(model), options);
    if (!session) {
      ADD_FAILURE() << session.error().message;
      break;
    }
    auto outputs = (*session)->run({{"x", input}});
    if (!outputs) {
      ADD_FAILURE() << outputs.error().message;
      break;
    }
    results.push_back(*std::move(outputs));
  }
  return results;
}

TEST_P(Trees, AgreeWithTheReference) {
  int round = 0;
  for (const char* aggregate : {"SUM", "AVERAGE", "MIN", "MAX"})
    for (const bool every_mode : {false, true})
      for (const int targets : {1, 3}) {
        // One with more leaves than tests side by side are made for.
        const int deepest = round % 3 == 0 ? 10 : 7;
        Forest forest;
        forest.random.seed(static_cast<unsigned>(++round));
        constexpr int kFeatures = 5;
        for (int tree = 0; tree < 11; ++tree)
          forest.add_tree(tree, tree == 7 ? deepest : tree % 6, kFeatures, targets, every_mode);
        const std::string text = forest.model(targets, aggregate);
        for (const int64_t rows : {1, 7, 13, 33, 200}) {
          std::vector<float> x(static_cast<size_t>(rows * kFeatures));
          for (float& value : x) {
            value = 0.25f * static_cast<float>(forest.number(11) - 5);
            if (forest.number(8) == 0) value = std::nanf("");
          }
          const auto results = on_both(text, x, kFeatures);
          ASSERT_EQ(results.size(), 2u);
          EXPECT_EQ(results[0][0].tensor(), results[1][0].tensor()) << aggregate << " " << rows;
        }
      }
}

/// Threads share trees where there are too few rows to share.
TEST_P(Trees, FewRowsOfManyTrees) {
  Forest forest;
  forest.random.seed(4);
  for (int tree = 0; tree < 1500; ++tree) forest.add_tree(tree, 5, 5, 1, false);
  std::vector<float> x(50);
  for (float& value : x) value = 0.25f * static_cast<float>(forest.number(11) - 5);
  const auto results = on_both(forest.model(1, "SUM"), x, 5);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0][0].tensor(), results[1][0].tensor());
}

/// What is prepared once serves any number of rows, and other features are prepared anew.
TEST_P(Trees, OneSessionTakesAnyNumberOfRows) {
  Forest forest;
  forest.random.seed(3);
  for (int tree = 0; tree < 9; ++tree) forest.add_tree(tree, tree % 6, 5, 2, true);
  std::unique_ptr<Session> sessions[2];
  for (const bool reference : {false, true}) {
    auto model = parse_text(forest.model(2, "SUM"));
    ASSERT_TRUE(model) << model.error().message;
    SessionOptions options;
    options.reference = reference;
    auto session = Session::create(*std::move(model), options);
    ASSERT_TRUE(session) << session.error().message;
    sessions[reference ? 1 : 0] = *std::move(session);
  }
  for (int64_t rows = 1; rows < 40; ++rows) {
    const int64_t dims[] = {rows, rows % 5 == 4 ? 6 : 5};
    std::vector<float> x(static_cast<size_t>(dims[0] * dims[1]));
    for (float& value : x) value = 0.25f * static_cast<float>(forest.number(11) - 5);
    const std::vector<NamedValue> inputs = {{"x", Tensor::of<float>(DType::kFloat32, dims, x)}};
    auto got = sessions[0]->run(inputs), want = sessions[1]->run(inputs);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_TRUE(want) << want.error().message;
    EXPECT_EQ((*got)[0].tensor(), (*want)[0].tensor()) << rows;
  }
}

TEST_P(Trees, ClassesHaveNames) {
  for (const char* type : {"1", "11", "7", "6"})
    for (const char* labels : {"classlabels_int64s = [3, 5, 9]",
                               "classlabels_strings = [\"low\", \"middle\", \"top\"]"}) {
      Forest forest;
      forest.random.seed(5);
      constexpr int kFeatures = 5;
      for (int tree = 0; tree < 7; ++tree) forest.add_tree(tree, 1 + tree % 5, kFeatures, 3, false);
      const std::string text =
          "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : 3]>\n"
          "g (float[N, F] x) => (l, p) {\n  f = Cast <to = " +
          std::string(type) + "> (x)\n  l, p = ai.onnx.ml.TreeEnsembleClassifier <" +
          forest.attributes("class") + ", " + labels + "> (f)\n}\n";
      for (const int64_t rows : {1, 9, 30, 130}) {
        std::vector<float> x(static_cast<size_t>(rows * kFeatures));
        for (float& value : x) value = 0.25f * static_cast<float>(forest.number(11) - 5);
        const auto results = on_both(text, x, kFeatures);
        ASSERT_EQ(results.size(), 2u);
        for (size_t i = 0; i < 2; ++i)
          EXPECT_EQ(results[0][i].tensor(), results[1][i].tensor()) << type << " " << rows;
      }
    }
}

TEST_P(Trees, WhatClassifiersMakeOfSums) {
  struct Case {
    int classes, voted, first;  ///< `voted` classes get votes, from `first` on
    bool negative;
    const char* base;
  };
  for (const Case& c :
       {Case{3, 3, 0, true, ""}, Case{3, 3, 0, true, "base_values = [0.5, -1.0, 0.25], "},
        Case{2, 2, 0, true, ""}, Case{2, 1, 0, true, "base_values = [0.25], "},
        Case{2, 1, 0, false, ""}, Case{2, 1, 1, true, ""}, Case{2, 1, 1, false, ""}})
    for (const char* transform : {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}) {
      Forest forest;
      forest.random.seed(9);
      constexpr int kFeatures = 5;
      for (int tree = 0; tree < 7; ++tree)
        forest.add_tree(tree, 1 + tree % 5, kFeatures, c.voted, false);
      std::string labels = "0";
      forest.missing.clear();
      if (c.first == 1)
        std::replace(forest.leaf_targets.begin(), forest.leaf_targets.end(), '0', '1');
      if (!c.negative) std::erase(forest.leaf_weights, '-');
      for (int i = 1; i < c.classes; ++i) labels += ", " + std::to_string(i);
      const std::string text =
          "<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.ml\" : 3]>\n"
          "g (float[N, F] x) => (l, p) {\n  l, p = ai.onnx.ml.TreeEnsembleClassifier "
          "<" +
          forest.attributes("class") + ", " + c.base + "post_transform = \"" + transform +
          "\", classlabels_int64s = [" + labels + "]> (x)\n}\n";
      for (const int64_t rows : {1, 12, 75}) {
        std::vector<float> x(static_cast<size_t>(rows * kFeatures));
        for (float& value : x) value = 0.25f * static_cast<float>(forest.number(11) - 5);
        const auto results = on_both(text, x, kFeatures);
        ASSERT_EQ(results.size(), 2u);
        EXPECT_EQ(results[0][0].tensor(), results[1][0].tensor()) << transform << " " << rows;
        const Tensor &got = results[0][1].tensor(), &want = results[1][1].tensor();
        ASSERT_EQ(Dims(got.dims()), Dims(want.dims()));
        for (int64_t i = 0; i < got.size(); ++i) {
          const float a = got.data<float>()[i], b = want.data<float>()[i];
          EXPECT_TRUE(a == b || (a != a && b != b) || std::fabs(a - b) <= 1e-6f * std::fabs(b))
              << transform << " " << c.classes << " " << c.voted << " " << a << " " << b;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, Trees,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
