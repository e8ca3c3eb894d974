#include "onnx/tensor_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "onnx/reader.h"

namespace tombolo {
namespace {

bool same(const RunValue& a, const RunValue& b) {
  if (a.kind() != b.kind()) return false;
  const auto all = [](const std::vector<RunValue>& x, const std::vector<RunValue>& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!same(x[i], y[i])) return false;
    return true;
  };
  switch (a.kind()) {
    case RunValue::Kind::kTensor:
      return a.tensor() == b.tensor();
    case RunValue::Kind::kSequence:
      return all(a.sequence().items, b.sequence().items);
    case RunValue::Kind::kOptional: {
      const RunValue *x = a.optional_content(), *y = b.optional_content();
      return (x == nullptr) == (y == nullptr) && (x == nullptr || same(*x, *y));
    }
    case RunValue::Kind::kMap:
      return a.map().keys == b.map().keys && all(a.map().values, b.map().values);
    case RunValue::Kind::kSparse:
      return a.sparse().values == b.sparse().values && a.sparse().indices == b.sparse().indices &&
             a.sparse().dims == b.sparse().dims;
    default:
      return true;
  }
}

void round_trip(const RunValue& value, const Type* type) {
  auto bytes = write_tensor_file(value, "v");
  ASSERT_TRUE(bytes.ok());
  auto again = read_tensor_file(*bytes, type, std::make_shared<Storage>());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(same(value, *again));
}

TEST(TensorFile, RoundTripsEveryKind) {
  const Type floats = Type::tensor(DType::kFloat32);
  const Type texts = Type::tensor(DType::kString);
  const Type sequence = Type::sequence(&floats);
  const Type optional = Type::optional(&sequence);
  const Type map = Type::map(DType::kInt64, &floats);
  const Type named = Type::map(DType::kString, &texts);
  const RunValue one = Tensor::scalar_float(1.5f), two = Tensor::scalar_float(-2);
  const int64_t n = 2;
  const RunValue words = Tensor::of_strings(std::span(&n, 1), {"a", ""});
  round_trip(one, &floats);
  round_trip(words, &texts);
  round_trip(SequenceValue{{one, two}, DType::kFloat32}, &sequence);
  round_trip(SequenceValue{{}, DType::kFloat32}, &sequence);
  round_trip(RunValue::optional_of(SequenceValue{{one}, DType::kFloat32}), &optional);
  round_trip(RunValue::empty_optional(), &optional);
  const int64_t keys[] = {7, -1};
  round_trip(MapValue{Tensor::int64s(keys), {one, two}}, &map);
  round_trip(MapValue{Tensor::of_strings(std::span(&n, 1), {"k", "l"}), {words, words}}, &named);
  const Type sparse = Type::sparse_tensor(DType::kFloat32, {});
  round_trip(
      SparseValue{Tensor::of<float>(DType::kFloat32, std::span(&n, 1), std::vector<float>{1, 2}),
                  Tensor::int64s(keys), Dims({3, 3})},
      &sparse);
}

TEST(TensorFile, AnEmptyFileIsAnEmptySequenceOrOptional) {
  const Type floats = Type::tensor(DType::kFloat32);
  const Type sequence = Type::sequence(&floats), optional = Type::optional(&floats);
  auto storage = std::make_shared<Storage>();
  auto list = read_tensor_file("", &sequence, storage);
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list->sequence().items.empty());
  EXPECT_EQ(list->sequence().elem, DType::kFloat32);
  auto none = read_tensor_file("", &optional, storage);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->optional_content(), nullptr);
  EXPECT_FALSE(read_tensor_file("", &floats, storage).ok());
}

TEST(TensorFile, RefusesMalformedFiles) {
  const Type floats = Type::tensor(DType::kFloat32);
  auto storage = std::make_shared<Storage>();
  EXPECT_FALSE(read_tensor_file("\x08", &floats, storage).ok());
  const Type map = Type::map(DType::kInt64, &floats);
  EXPECT_FALSE(read_tensor_file("\x18\x01", &map, storage).ok());  // a key without a value
}

TEST(TensorFile, ReadsAllOfTheConformanceSuite) {
  const char* folder = std::getenv("TOMBOLO_CONFORMANCE");
  if (folder == nullptr)
    GTEST_SKIP() << "set TOMBOLO_CONFORMANCE to the unpacked conformance suite";
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".pb") continue;
    const auto case_folder = entry.path().parent_path().parent_path();
    auto model = load_onnx((case_folder / "model.onnx").string());
    if (!model.ok()) continue;
    const bool input = name.starts_with("input_");
    const size_t index = std::stoul(name.substr(name.find('_') + 1));
    const Graph& graph = *(*model)->graph;
    const size_t count = input ? graph.inputs().size() : graph.outputs().size();
    if (index >= count) continue;
    const Type* type = input ? graph.inputs()[index]->type() : graph.outputs()[index].value->type();
    auto value = load_tensor_file(entry.path().string(), type);
    EXPECT_TRUE(value.ok()) << value.error().where << ": " << value.error().message << " as "
                            << to_string(*type);
    if (!value.ok()) continue;
    round_trip(*value, type);
    ++files;
  }
  std::printf("%zu files read\n", files);
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace tombolo
