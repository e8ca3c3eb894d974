// Odd but legal encodings, made by hand, and malformed ones.

#include "onnx/reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "onnx/writer.h"

namespace tombolo {
namespace {

// A tiny wire encoder: V(field, value), L(field, content).
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string V(uint64_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string L(uint64_t field, const std::string& content) {
  return varint(field << 3 | 2) + varint(content.size()) + content;
}
std::string F(uint64_t field, uint32_t bits) {
  return varint(field << 3 | 5) + std::string(reinterpret_cast<const char*>(&bits), 4);
}
std::string node(const std::string& op, const std::string& in, const std::string& out,
                 const std::string& more = "") {
  return L(1, L(1, in) + L(2, out) + L(4, op) + more);
}
std::string graph_model(const std::string& graph) { return V(1, 14) + L(7, graph); }

/// Reads bytes that the model keeps.
Result<std::unique_ptr<Model>> read(std::string bytes) {
  auto storage = std::make_shared<Storage>();
  auto owner = std::make_shared<std::string>(std::move(bytes));
  storage->keep(owner);
  return read_onnx(*owner, storage);
}
/// Reads, writes, and expects the bytes `expected` (those read, when not given).
std::unique_ptr<Model> round_trip(const std::string& bytes, std::string expected = "") {
  if (expected.empty()) expected = bytes;
  auto model = read(bytes);
  EXPECT_TRUE(model.ok()) << model.error().where << ": " << model.error().message;
  if (!model.ok()) return nullptr;
  auto out = write_onnx(**model);
  EXPECT_TRUE(out.ok());
  EXPECT_EQ(*out, expected);
  EXPECT_EQ(onnx_size(**model), out->size());
  auto again = read(*out);
  EXPECT_TRUE(again.ok());
  std::string difference;
  EXPECT_TRUE(equal(**model, **again, &difference)) << difference;
  return std::move(*model);
}

TEST(OnnxReader, KeepsAbsentApartFromEmpty) {
  auto model = round_trip(V(1, 8) + L(2, "") + L(7, L(2, "") + L(10, "")));
  EXPECT_TRUE(present(model->producer_name));
  EXPECT_FALSE(present(model->producer_version));
  EXPECT_FALSE(model->has_model_version);
  round_trip(V(1, 8) + L(7, L(1, L(2, "b") + L(3, "") + L(4, "") + L(6, "") + L(7, ""))));
}

TEST(OnnxReader, LastScalarWinsAndMessagesMerge) {
  auto model = round_trip(V(1, 3) + L(7, L(2, "one")) + V(1, 14) + L(7, node("Relu", "x", "y")),
                          V(1, 14) + L(7, node("Relu", "x", "y") + L(2, "one")));
  EXPECT_EQ(model->ir_version, 14);
  EXPECT_EQ(model->graph->node_count(), 1u);
}

TEST(OnnxReader, ReadsListsPackedOrNotAndInPieces) {
  const auto attribute = [](const std::string& members) {
    return graph_model(L(1, L(2, "y") + L(4, "Op") + L(5, L(1, "a") + members)));
  };
  const std::string canonical = attribute(V(8, 1) + V(8, 300) + V(8, 3) + V(20, 7));
  auto model = round_trip(attribute(L(8, varint(1) + varint(300)) + V(8, 3) + V(20, 7)), canonical);
  EXPECT_EQ(model->graph->first_node()->attribute("a")->ints().size(), 3u);
  round_trip(attribute(L(7, std::string(8, '\1')) + F(7, 0x7FC00001) + V(20, 6)),
             attribute(F(7, 0x01010101) + F(7, 0x01010101) + F(7, 0x7FC00001) + V(20, 6)));
}

TEST(OnnxReader, ReadsTensorDataPackedOrNotAndInPieces) {
  const auto tensor = [](const std::string& data) {
    return graph_model(L(5, V(1, 3) + V(2, 1) + data + L(8, "w")));
  };
  const std::string one("\0\0\x80\x3f", 4);
  auto model = round_trip(tensor(L(4, one) + F(4, 0x40000000) + L(4, "") + L(4, one)),
                          tensor(L(4, one + std::string("\0\0\0\x40", 4) + one)));
  auto value = model->graph->initializers()[0]->initializer()->value(model->storage_ptr());
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value->get_double(1), 2.0);
  const auto ints = [](const std::string& data) {
    return graph_model(L(5, V(1, 2) + V(2, 7) + data + L(8, "w")));
  };
  round_trip(ints(V(7, 5) + V(7, ~uint64_t{0})), ints(L(7, varint(5) + varint(~uint64_t{0}))));
}

TEST(OnnxReader, KeepsUnknownFieldsEverywhere) {
  const std::string odd = V(1000, 5) + L(1001, "x");
  const std::string group = varint(999 << 3 | 3) + V(1, 1) + varint(999 << 3 | 4);
  round_trip(
      V(1, 14) +
      L(7, node("Relu", "x", "y", L(5, L(1, "a") + V(3, 1) + V(20, 2) + odd) + odd) +
               L(5, V(2, 1) + L(8, "w") + odd) +
               L(11, L(1, "x") + L(2, L(1, V(1, 1) + L(2, L(1, V(1, 2) + odd) + odd) + odd) + odd) +
                         odd) +
               L(14, L(1, "x") + L(2, L(1, "k") + L(2, "v") + odd) + odd) + odd) +
      L(8, V(2, 20) + odd) + odd + group);
}

TEST(OnnxReader, TakesAWrongWireTypeForAnUnknownField) {
  // ir_version as text, a node's name as a number.
  round_trip(L(7, node("Relu", "x", "y", V(3, 7))) + L(1, "14"));
}

TEST(OnnxReader, KeepsMembersBesideTheAttributesType) {
  round_trip(graph_model(L(1, L(4, "Op") + L(5, L(1, "a") + V(3, 1) + V(20, 2) + F(2, 0)))));
  // An enumeration value from the future is an unknown field.
  auto model = round_trip(graph_model(L(1, L(4, "Op") + L(5, L(1, "a") + V(3, 1) + V(20, 77)))));
  EXPECT_FALSE(model->graph->first_node()->attribute("a")->has_type);
}

TEST(OnnxReader, ResolvesNamesLateAndOutward) {
  // then_branch uses x (outer input, defined later in the file), z (defined later inside) and
  // nothing (undefined everywhere); its output names an outer value.
  const std::string inner =
      node("Neg", "z", "u") + node("Abs", "x", "z") + node("Exp", "no", "v") + L(12, L(1, "w"));
  const std::string bytes = graph_model(
      node("If", "c", "r", L(5, L(1, "then_branch") + L(6, inner) + V(20, 5))) +
      node("Relu", "late", "w") + node("Relu", "x", "late") + L(11, L(1, "x")) + L(12, L(1, "r")));
  auto model = round_trip(bytes);
  Graph& graph = *model->graph;
  const Graph& branch = *graph.first_node()->attribute("then_branch")->graph();
  const Node* neg = branch.first_node();
  EXPECT_EQ(&neg->input(0)->graph(), &branch);
  EXPECT_EQ(neg->input(0)->producer(), neg->next());
  EXPECT_EQ(neg->next()->input(0), graph.inputs()[0]);
  EXPECT_TRUE(neg->next()->next()->input(0)->is_undefined());
  EXPECT_EQ(branch.outputs()[0].value, graph.first_node()->next()->output(0));
  EXPECT_EQ(graph.first_node()->next()->input(0)->producer(), graph.last_node());
}

TEST(OnnxReader, KeepsDuplicatesAndConflicts) {
  const auto info = [](uint64_t field, const std::string& name, uint64_t type) {
    return L(field, L(1, name) + L(2, L(1, V(1, type))));
  };
  round_trip(graph_model(node("A", "x", "x") + node("B", "x", "x") + L(5, V(2, 1) + L(8, "x")) +
                         L(5, V(2, 1) + L(8, "x")) + info(11, "x", 1) + info(11, "x", 2) +
                         info(12, "x", 3) + info(12, "x", 1) + info(13, "x", 9) +
                         info(13, "stale", 1) + info(13, "x", 1)));
}

TEST(OnnxReader, KeepsAbsentInputsAndOutputs) {
  round_trip(graph_model(L(1, L(1, "") + L(1, "x") + L(1, "") + L(2, "") + L(2, "y") + L(2, ""))));
}

TEST(OnnxReader, RefusesMalformedBytesWithPlaceAndOffset) {
  const std::string broken = graph_model(L(1, L(1, "x") + std::string("\x22\x7F", 2) + "Relu"));
  auto model = read(broken);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message, "field 4 at byte 9 runs past the end");
  EXPECT_EQ(model.error().where, "graph > node 0 \"\" ()");
}

TEST(OnnxReader, RefusesDeepNesting) {
  std::string graph;
  for (int i = 0; i < 200; ++i) graph = L(1, L(4, "If") + L(5, L(1, "g") + L(6, graph) + V(20, 5)));
  auto model = read(graph_model(graph));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message, "graphs nest deeper than 100 levels");
  std::string type = L(1, V(1, 1));
  for (int i = 0; i < 200; ++i) type = L(4, L(1, type));
  EXPECT_FALSE(read(graph_model(L(11, L(1, "x") + L(2, type)))).ok());
  std::string groups;
  for (int i = 0; i < 100000; ++i) groups += varint(900 << 3 | 3);
  EXPECT_FALSE(read(groups).ok());
}

TEST(OnnxReader, RefusesFilesThatExplodeInMemory) {
  std::string nodes;
  for (int i = 0; i < 4'000'000; ++i) nodes += std::string("\x0A\x00", 2);
  auto model = read(graph_model(nodes));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().kind, ErrorKind::kResource);
}

TEST(OnnxReader, TruncationAtEveryByteIsAnErrorOrAModel) {
  const std::string bytes =
      V(1, 14) + L(2, "p") +
      L(7, node("Relu", "x", "y", L(5, L(1, "a") + L(8, varint(1)) + V(20, 7))) +
               L(5, V(1, 1) + V(2, 1) + L(4, "1234") + L(8, "w")) +
               L(11, L(1, "x") + L(2, L(1, V(1, 1) + L(2, L(1, V(1, 2))))))) +
      L(8, V(2, 20));
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto model = read(bytes.substr(0, size));
    if (!model.ok()) continue;
    EXPECT_TRUE(write_onnx(**model).ok());
  }
}

TEST(OnnxReader, TellsWhatAFileIs) {
  EXPECT_TRUE(looks_like_onnx(graph_model("")).ok());
  const auto message = [](std::string_view bytes) {
    return looks_like_onnx(bytes).error().message;
  };
  EXPECT_EQ(message(""), "the file is empty");
  EXPECT_NE(message("PK\x03\x04rest").find("zip"), std::string::npos);
  EXPECT_NE(message("<!DOCTYPE html>").find("web page"), std::string::npos);
  EXPECT_NE(message("any text at all").find("not an ONNX model"), std::string::npos);
  // A SavedModel: the version of its schema and a graph of TensorFlow, fields that ONNX has as
  // well.
  EXPECT_NE(message(V(1, 1) + L(2, "graph")).find("neither a graph"), std::string::npos);
}

TEST(OnnxReader, TenThousandNodesTakeMilliseconds) {
  std::string nodes;
  for (int i = 0; i < 10000; ++i)
    nodes += node("Relu", "value_" + std::to_string(i), "value_" + std::to_string(i + 1));
  const std::string bytes = graph_model(nodes);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    auto model = read_onnx(bytes, std::make_shared<Storage>());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(model.ok());
    EXPECT_EQ((*model)->graph->node_count(), 10000u);
    best = std::min(best, took.count());
  }
  RecordProperty("milliseconds", std::to_string(best * 1e3));
  std::printf("10,000 nodes: %.2f ms\n", best * 1e3);
  EXPECT_LT(best, 0.1);  // bench/load holds the real bar; this catches quadratic mistakes
}

}  // namespace
}  // namespace tombolo
