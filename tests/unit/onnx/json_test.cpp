#include "onnx/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "onnx/reader.h"
#include "onnx/writer.h"

namespace tombolo {
namespace {

std::string wire_of(std::string_view json) {
  auto model = read_json(json);
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *write_onnx(**model) : "";
}
std::string error_of(std::string_view json) {
  auto model = read_json(json);
  EXPECT_FALSE(model.ok()) << json;
  return model.ok() ? "" : model.error().message;
}
/// JSON of the model, read again, gives the same wire bytes.
std::string round_trip(const Model& model) {
  auto json = write_json(model);
  EXPECT_TRUE(json.ok());
  EXPECT_EQ(wire_of(*json), *write_onnx(model)) << *json;
  return *json;
}

TEST(OnnxJson, WritesProtobufsMapping) {
  Model model = Model::create(20, "g");
  model.ir_version = 8;
  model.producer_name = "tab\there \"quoted\" \\ \xC3\xA9 \x01";
  Node* node = model.graph->add_node("Op", "d");
  node->add_input(model.graph->add_input("x"));
  node->add_output("y");
  node->set_float("alpha", 0.1f);
  node->set_ints("axes", std::vector<int64_t>{-1, 2});
  node->set_floats("scales", std::vector<float>{std::numeric_limits<float>::infinity(), -0.0f,
                                                std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(round_trip(model), R"({
  "irVersion": "8",
  "producerName": "tab\u0009here \"quoted\" \\ )"
                               "\xC3\xA9"
                               R"( \u0001",
  "graph": {
    "node": [{
      "input": ["x"],
      "output": ["y"],
      "opType": "Op",
      "attribute": [{
        "name": "alpha",
        "f": 0.1,
        "type": "FLOAT"
      },{
        "name": "axes",
        "ints": ["-1","2"],
        "type": "INTS"
      },{
        "name": "scales",
        "floats": ["Infinity",-0.0,"NaN"],
        "type": "FLOATS"
      }],
      "domain": "d"
    }],
    "name": "g",
    "input": [{
      "name": "x"
    }]
  },
  "opsetImport": [{
    "domain": "",
    "version": "20"
  }]
}
)");
}

TEST(OnnxJson, ReadsEverySpelling) {
  EXPECT_EQ(wire_of(R"({"ir_version": 8, "modelVersion": "3", "docString": null})"),
            wire_of(R"( { "irVersion" : "8" , "model_version" : 3.0 } )"));
  EXPECT_EQ(wire_of(R"({"producerName": "\u00e9\ud83d\ude00\/"})"),
            wire_of("{\"producerName\": \"\xC3\xA9\xF0\x9F\x98\x80/\"}"));
  EXPECT_EQ(wire_of(R"({"graph": {"node": [{"attribute": [{"type": 2, "i": 1e3}]}]}})"),
            wire_of(R"({"graph": {"node": [{"attribute": [{"type": "INT", "i": "1000"}]}]}})"));
  EXPECT_EQ(wire_of(R"({"graph": {"initializer": [{"rawData": "-_-_"}]}})"),
            wire_of(R"({"graph": {"initializer": [{"rawData": "+/+/"}]}})"));
}

TEST(OnnxJson, KeepsWhatTheMappingCannotSay) {
  // Unknown fields, an enumeration number without a name, bytes that are not UTF-8, odd NaNs.
  Model model = Model::create(20, "g\xFF\xC3");
  model.unknown = std::string_view("\xC0\x3E\x05", 3);
  Node* node = model.graph->add_node("Op");
  node->set_float("nan", std::bit_cast<float>(0xFFC12345u));
  node->attributes().back().ensure_extra().unknown = std::string_view("\xA0\x01\x4D", 3);
  node->attributes().back().has_type = false;
  const float values[] = {1, std::bit_cast<float>(0x7F800001u)};
  Constant constant;
  constant.name = "w";
  constant.data_type = 1;
  constant.has_data_type = true;
  constant.dims = {2};
  constant.encoding = Constant::Encoding::kFloat;
  constant.bytes = {reinterpret_cast<const char*>(values), sizeof values};
  model.graph->add_initializer(std::move(constant));
  auto json = write_json(model);
  ASSERT_TRUE(json.ok());
  auto again = read_json(*json);
  ASSERT_TRUE(again.ok()) << again.error().message;
  std::string difference;
  EXPECT_TRUE(equal(model, **again, &difference)) << difference;
  EXPECT_EQ((*again)->graph->initializers()[0]->initializer()->encoding, Constant::Encoding::kRaw);
}

TEST(OnnxJson, KeepsEveryTensorEncoding) {
  const std::string json =
      R"({"graph": {"initializer": [)"
      R"({"dims": ["2"], "dataType": 1, "floatData": [1.5, "-Infinity"], "name": "a"},)"
      R"({"dims": ["2"], "dataType": 6, "int32Data": [-1, 2147483647], "name": "b"},)"
      R"({"dims": ["2"], "dataType": 7, "int64Data": ["-9223372036854775808", 7], "name": "c"},)"
      R"({"dims": ["1"], "dataType": 13, "uint64Data": ["18446744073709551615"], "name": "d"},)"
      R"({"dims": ["1"], "dataType": 11, "doubleData": [1e-300], "name": "e"},)"
      R"({"dims": ["2"], "dataType": 8, "stringData": ["", "AP8="], "name": "f"}]}})";
  auto model = read_json(json);
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (const Value* value : (*model)->graph->initializers())
    EXPECT_TRUE(value->initializer()->value((*model)->storage_ptr()).ok());
  round_trip(**model);
}

TEST(OnnxJson, RefusesWithLineAndColumn) {
  EXPECT_EQ(error_of(""), "line 1, column 1: expected '{'");
  EXPECT_EQ(error_of("{\n  \"graf\": {}}"), "line 2, column 3: ModelProto has no field \"graf\"");
  EXPECT_EQ(error_of(R"({"irVersion": "x"})"), "line 1, column 15: expected an integer of 64 bits");
  EXPECT_EQ(error_of(R"({"irVersion": 1.5})"), "line 1, column 15: expected an integer of 64 bits");
  EXPECT_EQ(error_of(R"({"irVersion": 9223372036854775808})"),
            "line 1, column 15: expected an integer of 64 bits");
  EXPECT_EQ(error_of(R"({"domain": "a", "domain": "b"})"),
            "line 1, column 17: \"domain\" stands here twice");
  for (const char* bad :
       {"{", "{}x", "[]", R"({"domain": 1})", R"({"domain": "a)", R"({"domain": "\x"})",
        R"({"domain": "\ud800"})", R"({"graph": {"node": {}}})", R"({"graph": {"node": [null]}})",
        R"({"graph": {"node": [{}},]}})", R"({"graph": {"initializer": [{"rawData": "a"}]}})",
        R"({"graph": {"initializer": [{"floatData": [1e39]}]}})",
        R"({"graph": {"node": [{"attribute": [{"type": "NOPE"}]}]}})", "{\"domain\": \"\n\"}"})
    error_of(bad);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"graph":{"node":[{"attribute":[{"g":)";
  error_of(deep);
}

}  // namespace
}  // namespace tombolo
