// External data: written in every layout, read back equal, refused when wrong.

#include "onnx/external.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "onnx/json.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace tombolo {
namespace {

namespace fs = std::filesystem;

class OnnxExternal : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tombolo_external_" + std::to_string(getpid()));
    fs::create_directories(folder_ / "other");
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Initialisers, a tensor attribute in a subgraph, a sparse one, strings, a small one.
  static Model sample() {
    Model model = Model::create(20);
    Graph& graph = *model.graph;
    std::vector<float> numbers(5000);
    std::iota(numbers.begin(), numbers.end(), 0.5f);
    const int64_t dims[] = {50, 100};
    const Tensor weights = Tensor::of<float>(DType::kFloat32, dims, numbers);
    graph.add_initializer("w", weights);
    graph.add_initializer("v", weights);
    graph.add_initializer("small", Tensor::scalar_float(1));
    const int64_t many = 300;
    graph.add_initializer(
        "names", Tensor::of_strings(std::span(&many, 1), std::vector<std::string>(300, "text")));
    Node* node = graph.add_node("If");
    node->add_output("y");
    Graph& branch = node->set_graph("then_branch");
    branch.add_node("Constant")->set_tensor("value", weights);
    SparseConstant sparse;
    const int64_t count = 5000;
    sparse.values =
        Constant::from_tensor(weights.reshaped(std::span(&count, 1)), "s", model.storage());
    std::vector<int64_t> places(5000);
    std::iota(places.begin(), places.end(), 0);
    sparse.indices = Constant::from_tensor(Tensor::int64s(places), {}, model.storage());
    sparse.has_values = sparse.has_indices = true;
    sparse.dims = {10000};
    graph.add_sparse_initializer(std::move(sparse));
    return model;
  }

  /// Values equal, whatever their place.
  static void expect_equal(const Model& a, const Model& b) {
    std::string difference;
    EXPECT_TRUE(equal(a, b, &difference)) << difference;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})) - 1;
  }

  fs::path folder_;
};

TEST_F(OnnxExternal, EveryLayoutReadsBackEqual) {
  const Model model = sample();
  struct Case {
    SaveOptions::Data data;
    size_t files;
  };
  using Data = SaveOptions::Data;
  for (const Case& layout : {Case{Data::kAuto, 1}, Case{Data::kEmbed, 1}, Case{Data::kOneFile, 2},
                             Case{Data::kPerTensor, 6}, Case{Data::kSharded, 5}}) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "other");
    SaveOptions options;
    options.data = layout.data;
    options.shard_bytes = 50000;
    options.checksum = true;
    ASSERT_TRUE(save_onnx(model, path("m.onnx"), options).ok());
    EXPECT_EQ(files(), layout.files);
    auto again = load_onnx(path("m.onnx"));
    ASSERT_TRUE(again.ok()) << again.error().message;
    expect_equal(model, **again);
    Diagnostics diagnostics;
    verify_external(**again, diagnostics, true);
    EXPECT_EQ(diagnostics.errors(), 0u) << diagnostics.list()[0].message;
    for (const Value* value : (*again)->graph->initializers()) {
      if (!value->initializer()->is_external()) continue;
      EXPECT_EQ(external_data(*value->initializer())->offset % kExternalAlignment, 0u);
    }
    // Written elsewhere, the copy stands alone.
    ASSERT_TRUE(save_onnx(**again, path("other/m.onnx")).ok());
    auto copy = load_onnx(path("other/m.onnx"));
    ASSERT_TRUE(copy.ok());
    expect_equal(model, **copy);
    EXPECT_FALSE((*copy)->graph->initializers()[0]->initializer()->is_external());
    ASSERT_TRUE(save_json(**again, path("other/m.json")).ok());
    auto json = load_json(path("other/m.json"));
    ASSERT_TRUE(json.ok()) << json.error().message;
    expect_equal(model, **json);
    // And over itself, while it is mapped.
    ASSERT_TRUE(save_onnx(**again, path("m.onnx"), options).ok());
    auto replaced = load_onnx(path("m.onnx"));
    ASSERT_TRUE(replaced.ok());
    expect_equal(model, **replaced);
  }
}

TEST_F(OnnxExternal, ReportsWhatIsWrong) {
  SaveOptions options;
  options.data = SaveOptions::Data::kOneFile;
  options.checksum = true;
  ASSERT_TRUE(save_onnx(sample(), path("m.onnx"), options).ok());
  const auto verify = [&](bool checksum) {
    auto model = load_onnx(path("m.onnx"));
    EXPECT_TRUE(model.ok());
    Diagnostics diagnostics;
    verify_external(**model, diagnostics, checksum);
    return diagnostics;
  };
  {
    std::fstream data(path("m.onnx.data"), std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(100);
    data.put('x');
  }
  EXPECT_EQ(verify(false).errors(), 0u);
  EXPECT_EQ(verify(true).errors(), 5u);
  EXPECT_EQ(verify(true).list()[0].code, "external-checksum");
  fs::resize_file(path("m.onnx.data"), 30000);
  EXPECT_EQ(verify(false).errors(), 4u);
  fs::remove(path("m.onnx.data"));
  EXPECT_EQ(verify(false).errors(), 5u);
  // A model that cannot be carried over whole is not written at all.
  auto model = load_onnx(path("m.onnx"));
  EXPECT_FALSE(save_onnx(**model, path("other/m.onnx")).ok());
  EXPECT_FALSE(fs::exists(path("other/m.onnx")));
}

TEST_F(OnnxExternal, StaysInsideTheModelsFolder) {
  std::ofstream(path("secret")) << std::string(4, 's');
  fs::create_symlink(path("secret"), path("other/link"));
  fs::create_hard_link(path("secret"), path("other/hard"));
  for (const std::string& location :
       {std::string("../secret"), path("secret"), std::string("link"), std::string("hard"),
        std::string("none"), std::string("."), std::string("")}) {
    Model model = Model::create(20);
    Constant constant;
    constant.name = "w";
    constant.data_type = 1;
    constant.has_data_type = true;
    Constant::Extra& extra = constant.ensure_extra();
    extra.external.push_back({"location", location});
    extra.location = 1;
    extra.has_location = true;
    model.graph->add_initializer(std::move(constant));
    std::ofstream(path("other/m.onnx"), std::ios::binary) << *write_onnx(model);
    auto again = load_onnx(path("other/m.onnx"));
    ASSERT_TRUE(again.ok());
    Diagnostics diagnostics;
    verify_external(**again, diagnostics, false);
    EXPECT_EQ(diagnostics.errors(), 1u) << location;
  }
}

}  // namespace
}  // namespace tombolo
