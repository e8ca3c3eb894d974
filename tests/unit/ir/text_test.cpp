// ONNX text: what is read is what was written, and what was written is what is read.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "ir/text/parser.h"
#include "ir/text/printer.h"

namespace tombolo {
namespace {

std::string describe(const Error& error) {
  return error.where + ": " + error.message + "\n" + error.help;
}

std::unique_ptr<Model> parse(std::string_view text) {
  auto model = parse_text(text);
  if (!model) {
    ADD_FAILURE() << describe(model.error()) << "\nin:\n" << text;
    return nullptr;
  }
  return *std::move(model);
}

/// Parses, prints, parses, prints: both texts and both models are equal. Returns the text.
std::string round_trip(std::string_view text) {
  auto first = parse(text);
  if (!first) return {};
  const std::string printed = print_text(*first);
  auto second = parse(printed);
  if (!second) return {};
  EXPECT_EQ(print_text(*second), printed);
  std::string difference;
  EXPECT_TRUE(equal(*first, *second, &difference)) << difference << "\n" << printed;
  return printed;
}

Error error_of(std::string_view text) {
  auto model = parse_text(text);
  EXPECT_FALSE(model.ok()) << text;
  return model.ok() ? Error{} : model.error();
}

std::string with_initializer(std::string_view initializer) {
  return "g () => () <" + std::string(initializer) + "> {}";
}

TEST(Text, PrintsWhatItReads) {
  const std::string text = R"(<
  ir_version: 10,
  opset_import: ["" : 21, "ai.onnx.ml" : 3],
  producer_name: "me"
>
main (float[N,3] x, seq(float[]) s) => (float[N,3] y)
<
  float[3] w = {1, 0.5, -2e-30},
  float[N,3] t
>
{
  [first] t = Add (x, w)
  y = Relu (t)
  = ai.onnx.ml.Sink <axis: int = -1, scale: float = 1, names: strings = ["a", "b"]> (t, "", y)
}
)";
  auto model = parse(text);
  ASSERT_TRUE(model);
  EXPECT_EQ(print_text(*model), text);
  EXPECT_EQ(model->ir_version, 10);
  EXPECT_EQ(model->opset("ai.onnx.ml"), 3);
  const Graph& graph = *model->graph;
  ASSERT_EQ(graph.node_count(), 3u);
  const Node* add = graph.first_node();
  EXPECT_EQ(add->name(), "first");
  EXPECT_EQ(add->input(0), graph.inputs()[0]);
  EXPECT_EQ(add->input(1), graph.initializers()[0]);
  EXPECT_EQ(add->output(0)->type(), graph.inputs()[0]->type());
  const Node* sink = graph.last_node();
  EXPECT_EQ(sink->domain(), "ai.onnx.ml");
  EXPECT_EQ(sink->inputs().size(), 3u);
  EXPECT_EQ(sink->input(1), nullptr);
  EXPECT_EQ(*sink->attribute("axis")->i(), -1);
  EXPECT_EQ(*sink->attribute("scale")->f(), 1.0f);
  EXPECT_EQ(graph.outputs()[0].value->producer(), add->next());
}

TEST(Text, ReadsUpstreamsFreedoms) {
  auto model = parse(R"(
    < ir_version: 8, opset_import: [ "" : 17 ] >  # a comment
    agraph (float[N, 128] X, float[128,10] W = {}, B) => (float[N] C)
    <float[2] i = {1.0, 2}, int64 j>
    {
      T = MatMul(X, W)
      S, = Split <axis = 1, num_outputs=2> (T)
      U = Op(, T)
      , V = Two(T,)
      C = If (c) <then_branch = g1 () => (float[N] y) { y = Id(T) }, else_branch = g2 () => (z) {z = Id(X)}>
    }
    <domain: "d", opset_import: ["" : 17]>
    f <a, b: float = 1.0> (float[2] x, y) => (z) { z = Foo <alpha: float = @a, beta = @b> (x, y) }
  )");
  ASSERT_TRUE(model);
  Node* node = model->graph->first_node()->next();
  EXPECT_EQ(node->outputs().size(), 1u);
  node = node->next();
  EXPECT_EQ(node->inputs().size(), 2u);
  EXPECT_EQ(node->input(0), nullptr);
  node = node->next();
  EXPECT_EQ(node->outputs().size(), 2u);
  EXPECT_EQ(node->output(0), nullptr);
  EXPECT_EQ(node->inputs().size(), 1u);
  node = node->next();
  const Graph* then_branch = node->attribute("then_branch")->graph();
  ASSERT_NE(then_branch, nullptr);
  EXPECT_EQ(then_branch->first_node()->input(0)->producer()->op_type(), "MatMul");
  ASSERT_EQ(model->functions.size(), 1u);
  EXPECT_EQ(model->functions[0]->attributes.size(), 1u);
  EXPECT_EQ(model->functions[0]->attribute_protos.size(), 1u);
  EXPECT_EQ(model->functions[0]->body.value_infos().size(), 1u);
}

TEST(Text, EveryElementTypeKeepsItsBits) {
  for (size_t number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype == DType::kString) continue;
    // All patterns of one and two bytes; more would only repeat them.
    std::string bytes;
    const size_t width = std::max<size_t>(bytes_of(dtype), 1) * (bits_of(dtype) == 6 ? 3 : 1);
    for (size_t i = 0; i < 256 * width; ++i)
      bytes += static_cast<char>((i * 37 + i / 7) ^ (i >> 8));
    Model model;
    model.graph = std::make_unique<Graph>(model.storage_ptr());
    const int64_t dims[] = {static_cast<int64_t>(bytes.size() * 8 / bits_of(dtype))};
    const Tensor tensor =
        Tensor::view(dtype, dims, std::as_bytes(std::span<const char>(bytes)), nullptr);
    model.graph->add_initializer("w", tensor);
    auto again = parse(print_text(model));
    ASSERT_TRUE(again);
    auto value = again->graph->initializers()[0]->initializer()->value(again->storage_ptr());
    ASSERT_TRUE(value) << name_of(dtype);
    EXPECT_TRUE(*value == tensor) << name_of(dtype);
    // The same as hex digits.
    auto hex = parse(print_text(model, {.hex_above = 0}));
    ASSERT_TRUE(hex);
    std::string difference;
    EXPECT_TRUE(equal(model, *hex, &difference)) << name_of(dtype) << " " << difference;
  }
}

TEST(Text, SmallFloatsAreBitsOrNumbers) {
  auto model = parse(with_initializer(
      "float16[5] w = {15360, 1.0, -0.5, inf, 65504.0}, float8e4m3fn[3] f = {56, 1.0, 448.0}, "
      "float4e2m1[3] q = {2, 1.0, -6.0}, int4[3] i = {-8, 7, 1}, bfloat16[1] b = {1e0}"));
  ASSERT_TRUE(model);
  const std::string printed = print_text(*model);
  EXPECT_NE(printed.find("w = {15360, 15360, 47104, 31744, 31743}"), printed.npos) << printed;
  EXPECT_NE(printed.find("f = {56, 56, 126}"), printed.npos) << printed;
  EXPECT_NE(printed.find("q = {2, 2, 15}"), printed.npos) << printed;
  EXPECT_NE(printed.find("i = {-8, 7, 1}"), printed.npos) << printed;
  EXPECT_NE(printed.find("b = {16256}"), printed.npos) << printed;
}

TEST(Text, FloatsAreShortestAndExact) {
  auto model = parse(
      with_initializer("float[9] w = {0.1, -0, 1e-45, 3.4028235e38, inf, -inf, nan, -nan, "
                       "nan(0x7f800001)}, double[3] d = {1e-400, 0.1, nan(0xfff0000000000001)}"));
  ASSERT_TRUE(model);
  const std::string printed = print_text(*model);
  EXPECT_NE(printed.find("{0.1, -0, 1e-45, 3.4028235e+38, inf, -inf, nan, -nan, nan(0x7f800001)}"),
            printed.npos)
      << printed;
  EXPECT_NE(printed.find("{0, 0.1, nan(0xfff0000000000001)}"), printed.npos) << printed;
  auto value = model->graph->initializers()[0]->initializer()->value(model->storage_ptr());
  ASSERT_TRUE(value);
  EXPECT_TRUE(std::signbit(value->span<float>()[1]));
  EXPECT_EQ(std::bit_cast<uint32_t>(value->span<float>()[2]), 1u);
}

TEST(Text, KeepsWhatUpstreamDrops) {
  const std::string text = R"(<
  ir_version: 14,
  opset_import: ["" : 21, "x y" : ?, "u" : 1 @{unknown: "1801"}],
  domain: "a \"quoted\" \\ name",
  metadata_props: ["k": "v" @{unknown: "18ff01"}],
  training_info: [{initialization: init () => (float x) {
  }, update_binding: ["a": "b"], unknown: "aa0100"}],
  configuration: [{name: "pair", num_devices: 2, device: ["cuda:0", "cuda:1"]}],
  unknown: "f80601"
>
"odd-name" @{doc_string: "two
lines", quantization_annotation: [{tensor_name: "x", quant_parameter_tensor_names: ["SCALE_TENSOR": "s"]}]} (float[N @{denotation: "BATCH"},?,"a b"] @{denotation: "IMAGE"} x @{doc_string: "d", metadata_props: ["a": "b"]}, ? o, opaque("my-dom",?) p, ?@{denotation: "n"} n) => (float[2] y, "float")
<
  int4[3] "w-1" = @{doc_string: "q", segment: [0, ?], metadata_props: ["a": "b"]} {-8, 7, 0},
  float[2] e = ["location": "w.bin", "offset": "16", "length": "8", "checksum": "ab"],
  undefined[2] @{elem_type: 99} u = @{raw_data: "0001"},
  float[2] bad = @{float_data: "0000803f"},
  sparse_tensor(float[3,4]) s = @{unknown: "2001"} {float[2] {1, 2}, int64[2] idx {0, 5}},
  sparse_tensor(undefined[3]) s2 = {?, ?},
  seq(map(string, optional(sparse_tensor(int8[N])))) dangling
>
{
  ["a b"] y = "com.my-domain"."odd.op":v2 <t @{doc_string: "x"} = 1, "odd attr": tensors = [float[1] n {1}, int2[5] {-2, -1, 0, 1, 1}], g: graphs = [a () => () {
    }, "b c" () => () {
    }], s: sparse_tensor = sparse_tensor(float[3]) k = {float[1] {1}, int64[1] {2}}, ss: sparse_tensors = [sparse_tensor(float[3]) = {float[1] {1}, int64[1] {2}}], tp: type_proto = float[N], tps: type_protos = [float[], float[-1], seq(float)], c: tensor = complex64[1] {1, -2}, nothing: tensor = ?, odd: undefined @{type: 77} = ?, ref: int = @alpha, both: int @{ref_attr_name: "beta"} = 7, unt: int @{untyped} = 1, un: int @{unknown: "c80101"} = 1> (x, undefined_name) @{opset: 13, doc_string: "n", metadata_props: ["a": "b"], device_configurations: [{configuration_id: "pair", sharding_spec: [{tensor_name: "x", device: [0, -1], index_to_device_group_map: [{key: -1, value: [0, 1]}], sharded_dim: [{axis: 0, simple_sharding: [{dim: N, num_shards: 2}, {dim: ?}, {dim: -1}]}]}], pipeline_stage: 1}]}
  y = Twice ()
}
<
  domain: "d",
  overload: "o",
  opset_import: ["" : 21],
  doc_string: "f",
  metadata_props: ["a": "b"]
>
"f-1" <alpha, beta: int = 2, "odd-one": floats = []> (x, "float") => (x)
<
  float[2] x @{doc_string: "in"}
>
{
}
)";
  const std::string printed = round_trip(text);
  // All but the parts whose spelling is normalised stands as it was written.
  EXPECT_NE(printed.find("int2[5] {-2, -1, 0, 1, 1}"), printed.npos);
  auto model = parse(text);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->graph->extra->doc, "two\nlines");
  EXPECT_EQ(model->graph->first_node()->opset_override(), 13);
  EXPECT_EQ(model->graph->first_node()->extra()->devices[0].sharding[0].groups[0].key, -1);
  EXPECT_EQ(model->graph->inputs()[0]->type()->dims[0].denotation, "BATCH");
  EXPECT_EQ(model->graph->outputs()[1].value->name(), "float");
  EXPECT_EQ(model->functions[0]->attribute_protos.size(), 2u);
  EXPECT_EQ(printed.substr(0, 120), text.substr(0, 120));
}

TEST(Text, InvalidGraphsStayAsTheyAre) {
  for (const char* text : {
           "g (float x, int64 x) => (y, y, float y) {\n  y = A (x)\n  y = B (y)\n}",
           "g () => (float[1] z) <float[2] z, float[3] z, float[2] q> {\n  z = A (later)\n  later "
           "= B (z)\n}",
           "g (float x) => (int64 x, float x, x) <double x, float x> {}",
           "g (float x) => (\"\") <float x = {1}, float x = {2}, float[1] y = {1}> {\n  y = A (x, "
           "nobody)\n}",
           "g (bool c) => (y) {\n  y = If (c) <then_branch: graph = t () => (float v, v, x) "
           "<float w> {\n  }, else_branch: graph = e () => (k) {\n    k = A (late, w, inner)\n  "
           "  inner = B (k)\n  }>\n  late = C (c)\n  v = D (late)\n}",
           "? <domain: \"\", opset_import: []> f () => (q) <float[2] p> {}",
       })
    round_trip(text);
}

TEST(Text, NamesMeanTheNearestDefinition) {
  auto model = parse(
      "g (bool c, float x) => (y) { y = If (c) <then_branch = t () => (late) {}, else_branch = e "
      "() => (r) { r = A (late, x, nowhere) }> late = C (x) z = D (nowhere)}");
  ASSERT_TRUE(model);
  Node* branch = model->graph->first_node();
  Node* late = branch->next();
  EXPECT_EQ(branch->attribute("then_branch")->graph()->outputs()[0].value, late->output(0));
  const Node* inner = branch->attribute("else_branch")->graph()->first_node();
  EXPECT_EQ(inner->input(0), late->output(0));
  EXPECT_EQ(inner->input(1), model->graph->inputs()[1]);
  EXPECT_EQ(inner->input(2), late->next()->input(0));
  EXPECT_EQ(&inner->input(2)->graph(), model->graph.get());
  EXPECT_EQ(late->output(0)->output_uses(), 1u);
  EXPECT_TRUE(model->graph->sort());
  EXPECT_EQ(model->graph->first_node(), late);
}

TEST(Text, ErrorsSayWhereAndWhatElse) {
  Error error = error_of("g (flaot[2] x) => () {}");
  EXPECT_EQ(error.kind, ErrorKind::kParse);
  error = error_of("g () => (y)\n{\n  y = A (x\n}\n");
  EXPECT_EQ(error.where, "line 4, column 1");
  EXPECT_NE(error.message.find("expected ')' after the inputs of the node"), std::string::npos);
  error = error_of("<ir_verson: 7> g () => () {}");
  EXPECT_EQ(error.where, "line 1, column 2");
  EXPECT_NE(error.help.find("did you mean \"ir_version\"?"), std::string::npos) << error.help;
  EXPECT_NE(error.help.find("\n  <ir_verson: 7> g () => () {}\n   ^"), std::string::npos)
      << error.help;
  EXPECT_NE(error_of("g (seq(flaot) x) => () {}").help.find("\"float\""), std::string::npos);
  EXPECT_NE(error_of("g () => () {= A <a: itn = 1> ()}").help.find("\"int\""), std::string::npos);
  EXPECT_EQ(error_of(with_initializer("float[2] w = {1}")).message,
            "float[2] has 2 elements, 1 given");
  EXPECT_EQ(error_of(with_initializer("int8[1] w = {128}")).message, "128 does not fit int8");
  EXPECT_EQ(error_of(with_initializer("float[1] w = {1e40}")).message,
            "the number 1e40 is too large");
}

TEST(Text, IsRecognised) {
  for (const char* text :
       {"<ir_version: 8> g", " # c\n <opset_import:", "g (float x)", "\"a b\"(", "g @{doc_string"})
    EXPECT_TRUE(looks_like_text(text)) << text;
  for (const char* text :
       {"", "<", "<html>", "<html:", "{\"a\": 1}", "g", "\x08\x07\x12", "\"open"})
    EXPECT_FALSE(looks_like_text(text)) << text;
}

TEST(Text, HostileTextIsRefused) {
  for (const char* text : {"",
                           "<",
                           "g",
                           "g (",
                           "g () =>",
                           "g () => () {",
                           "g () => () { y",
                           "g () => () { y = ",
                           "g () => () { y = A <a = ",
                           "g () => () { y = A <a = \"",
                           "g () => () { y = A <a = [",
                           "g () => () <float[1000000000000] w = {1}> {}",
                           "g () => () <float[4611686018427387904,4]",
                           "g () => () <float[4611686018427387904,4] w = {1}> {}",
                           "g () => () <float[N] w = {1}> {}",
                           "g () => () <float[] w = {1}> {}",
                           "g () => () <uint8[1] w = {-1}> {}",
                           "g () => () <uint64[1] w = {-1}> {}",
                           "g () => () <uint64[1] w = {18446744073709551616}>",
                           "g () => () <int64[1] w = {9223372036854775808}>",
                           "g () => () <float[1] w = {-}> {}",
                           "g () => () <float[1] w = {nan(0x0)}> {}",
                           "g () => () <float[1] w = {nan(} > {}",
                           "<ir_version: 1.5> g () => () {}",
                           "<unknown: \"abc\"> g () => () {}",
                           "<unknown: \"zz\"> g () => () {}",
                           "g () => () {} x",
                           "g () => () {\\",
                           "g \"\\",
                           "<metadata_props: [\"a\"]> g () => () {}",
                           "g () => () {= A <a = [1, \"s\"]> ()}",
                           "g () => () {= A <a: ints = 1> ()}",
                           "g () => () {= A <a = []> ()}",
                           "g () => () {= A <a: int = 1.5> ()}",
                           "g () => () {= A <a: string = 1> ()}"})
    EXPECT_FALSE(parse_text(text).ok()) << text;

  std::string deep = "g () => () <";
  for (int i = 0; i < 100000; ++i) deep += "seq(";
  EXPECT_NE(error_of(deep).message.find("levels deep"), std::string::npos);
  deep.clear();
  for (int i = 0; i < 10000; ++i) deep += "g () => () { = A <a = ";
  EXPECT_NE(error_of(deep).message.find("levels deep"), std::string::npos);

  std::string many = "g () => () {";
  for (int i = 0; i < 100000; ++i) many += "a=A()";
  auto refused = parse_text(many, {.memory_limit = 1 << 20});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
}

TEST(Text, EveryTruncationAndByteChangeEnds) {
  const std::string text =
      "<ir_version: 7, opset_import: [\"\" : 9]> g (float[N] x @{doc_string: \"d\"}) => (y) "
      "<int4[2] w = {1, -2}, sparse_tensor(float[3]) s = {float[1] {1}, int64[1] {2}}> "
      "{[n] y = a.B:o <f = 1.5e3, g = h () => () {}> (x, \"\") @{unknown: \"00\"}}";
  ASSERT_TRUE(parse_text(text).ok());
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(parse_text(std::string_view(text).substr(0, i)).ok()) << i;
    for (char c : std::string_view("\0\"\\@{}[]()<>=,:?#-.09aZ\xFF", 25)) {
      std::string changed = text;
      changed[i] = c;
      auto model = parse_text(changed);
      if (model.ok()) round_trip(changed);
    }
  }
}

TEST(Text, GraphsFunctionsAndNodesStandAlone) {
  Model model;
  auto graph = parse_graph("g (float x) => (y) { y = A (x) }", model.storage_ptr());
  ASSERT_TRUE(graph.ok());
  auto node = parse_node("z = B <a = 1> (y, x)", **graph);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ((*node)->input(0)->producer()->op_type(), "A");
  EXPECT_EQ((*node)->input(1), (*graph)->inputs()[0]);
  EXPECT_EQ(print_node(**node), "z = B <a: int = 1> (y, x)");
  ASSERT_TRUE(parse_nodes("p = C (z)  q = D (p, later) later = E ()", **graph).ok());
  EXPECT_EQ((*graph)->node_count(), 5u);
  EXPECT_EQ((*graph)->last_node()->previous()->input(1), (*graph)->last_node()->output(0));
  EXPECT_FALSE(parse_node("z = B (", **graph).ok());

  auto function = parse_function(
      "<domain: \"d\", opset_import: [\"\" : 1]> f <a> (x) => (y) { y = A <b = @a> (x) }",
      model.storage_ptr());
  ASSERT_TRUE(function.ok());
  EXPECT_TRUE((*function)->body.first_node()->attribute("b")->is_reference());
}

}  // namespace
}  // namespace tombolo
