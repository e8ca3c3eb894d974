#include "formats/keras/keras.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/mapped_file.h"
#include "formats/load.h"

namespace tombolo {
namespace {

const std::string kSource = TOMBOLO_SOURCE_DIR;

size_t count(const Graph& graph, Text op) {
  size_t result = 0;
  for (const Node* node : graph.nodes()) result += node->op_type() == op;
  return result;
}

TEST(Keras, ConvertsEveryCase) {
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/tests/keras/cases")) {
    const std::string folder = entry.path().string();
    const std::string path = find_model_file(folder);
    ASSERT_FALSE(path.empty()) << folder;
    auto model = load_model(path);
    ++cases;
    if (folder.ends_with("/refuse_lambda")) {
      ASSERT_FALSE(model.ok());
      EXPECT_EQ(model.error().kind, ErrorKind::kUnsupported);
      EXPECT_NE(model.error().message.find("\"lambda\""), std::string::npos);
      EXPECT_FALSE(model.error().help.empty());
      continue;
    }
    ASSERT_TRUE(model.ok()) << path << ": " << model.error().message;
    for (const Node* node : (*model)->graph->nodes()) {
      for (const Value* input : node->inputs()) {
        EXPECT_FALSE(input && input->is_undefined()) << path << ": " << node->name();
      }
    }
  }
  EXPECT_GT(cases, 60u);
}

TEST(Keras, LeavesOneTransposeInAPictureNetwork) {
  for (const char* name : {"digits.h5", "digits.keras"}) {
    auto model = load_model(kSource + "/examples/digits/" + name);
    ASSERT_TRUE(model.ok()) << name << ": " << model.error().message;
    const Graph& graph = *(*model)->graph;
    EXPECT_EQ(count(graph, "Transpose"), 1u) << name;
    ASSERT_EQ(graph.inputs().size(), 1u);
    EXPECT_EQ(graph.inputs()[0]->type()->dims[0].param, "batch");
  }
}

/// A Sequential model of these layers as JSON, with weights that do not matter.
Result<std::unique_ptr<Model>> import_layers(const std::string& layers) {
  static const auto weights = MappedFile::open(kSource + "/examples/digits/digits.h5");
  const std::string json =
      R"({"class_name":"Sequential","config":{"name":"m","layers":[
          {"class_name":"InputLayer","config":{"batch_shape":[null,4],"name":"x"}})" +
      layers + "]}}";
  keras::Source source;
  source.model.bytes = std::as_bytes(std::span<const char>(json));
  source.weights = {weights->bytes(), weights->owner()};
  return keras::import_model(source);
}

TEST(Keras, ListsAllThatItRefuses) {
  auto model = import_layers(R"(,{"class_name":"MyLayer","config":{"name":"a"}}
      ,{"class_name":"MyLayer","config":{"name":"b"}}
      ,{"class_name":"Activation","config":{"name":"c","activation":"mine"}}
      ,{"class_name":"Other","config":{"name":"d"}})");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().kind, ErrorKind::kUnsupported);
  const std::string& message = model.error().message;
  EXPECT_NE(message.find("layer MyLayer (2): \"a\", \"b\""), std::string::npos) << message;
  EXPECT_NE(message.find("layer Other (1): \"d\""), std::string::npos) << message;
}

TEST(Keras, ReportsContradictions) {
  for (const char* layer : {
           R"(,{"class_name":"Reshape","config":{"name":"r","target_shape":[3]}})",
           R"(,{"class_name":"Flatten","config":{"name":"r","data_format":"sideways"}})",
           R"(,{"class_name":"Conv2D","config":{"name":"r","kernel_size":[3,3]}})",
           R"(,{"class_name":"Dense","config":{"name":"r","units":3}})",
           R"(,{"class_name":"Permute","config":{"name":"r","dims":[7]}})",
       }) {
    auto model = import_layers(layer);
    ASSERT_FALSE(model.ok()) << layer;
    EXPECT_FALSE(model.error().message.empty()) << layer;
    EXPECT_NE((model.error().where + model.error().message).find("\"r\""), std::string::npos)
        << layer << model.error().where;
  }
}

TEST(Keras, SurvivesDamage) {
  std::mt19937 random(3);
  for (const std::string& path :
       {kSource + "/examples/digits/digits.keras", kSource + "/tests/keras/cases/lstm/model.keras",
        kSource + "/examples/digits/digits.h5"}) {
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file.ok()) << path;
    const std::string whole(file->text());
    for (int i = 0; i < 120; ++i) {
      std::string damaged = whole;
      if (i % 3 == 0) damaged.resize(random() % whole.size());
      for (int k = 0; k < 4 && !damaged.empty(); ++k) {
        damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
      }
      auto owner = std::make_shared<std::string>(std::move(damaged));
      keras::Source source;
      source.model = {std::as_bytes(std::span<const char>(*owner)), owner};
      auto model = keras::import_model(source);
      EXPECT_TRUE(model.ok() || !model.error().message.empty()) << path;
    }
  }
}

}  // namespace
}  // namespace tombolo
