#include "runtime/cost.h"

#include <algorithm>

#include "ops/attributes.h"

namespace tombolo {

namespace {

using Values = std::span<const RunValue* const>;

const Tensor* tensor(Values values, size_t index) {
  if (index >= values.size() || values[index] == nullptr || !values[index]->is_tensor())
    return nullptr;
  return &values[index]->tensor();
}

uint64_t count(const Tensor* tensor) {
  return tensor != nullptr ? static_cast<uint64_t>(tensor->size()) : 0;
}

uint64_t dim(const Tensor& tensor, size_t from_end) {
  return tensor.rank() >= from_end ? static_cast<uint64_t>(tensor.dim(tensor.rank() - from_end))
                                   : 1;
}

bool contains(Text text, Text part) { return text.find(part) != Text::npos; }

/// Every output element takes a product with each element of a filter.
uint64_t convolution(const Tensor* weights, uint64_t results) {
  if (weights == nullptr || weights->rank() < 2 || weights->dim(0) == 0) return 0;
  return 2 * results * (count(weights) / static_cast<uint64_t>(weights->dim(0)));
}

constexpr Text kMovers[] = {"Reshape",      "Identity",
                            "Squeeze",      "Unsqueeze",
                            "Flatten",      "Dropout",
                            "Transpose",    "Concat",
                            "Split",        "Slice",
                            "Gather",       "GatherND",
                            "Expand",       "Tile",
                            "Pad",          "Shape",
                            "Size",         "Constant",
                            "ScatterND",    "DepthToSpace",
                            "Cast",         "ConstantOfShape",
                            "Where",        "GatherElements",
                            "SpaceToDepth", "If",
                            "Loop",         "Scan",
                            "SequenceAt",   "Range"};

}  // namespace

uint64_t operation_count(const Node& node, Values inputs, Values outputs) {
  const Text op = node.op_type();
  const AttributeReader attributes(node);
  const Tensor* a = tensor(inputs, 0);
  const Tensor* b = tensor(inputs, 1);
  const Tensor* y = tensor(outputs, 0);
  if (op == "QLinearConvTranspose") return convolution(tensor(inputs, 3), count(a));
  if (op.starts_with("QLinearConv")) return convolution(tensor(inputs, 3), count(y));
  if (contains(op, "ConvTranspose")) return convolution(b, count(a));
  if (contains(op, "Conv") && !contains(op, "State")) return convolution(b, count(y));
  if (op == "Elementwise") return count(y) * attributes.get_floats("params").size() / 2;
  if (op == "MatMulNBits" && a != nullptr) return 2 * count(y) * dim(*a, 1);
  if (op == "QLinearMatMul" && a != nullptr) return 2 * count(y) * dim(*a, 1);
  if (contains(op, "Gemm") && a != nullptr)
    return 2 * count(y) * (attributes.get_int("transA", 0) != 0 ? dim(*a, 2) : dim(*a, 1));
  if (contains(op, "MatMul") && a != nullptr) {
    uint64_t from_end = attributes.get_int("transA", 0) != 0 ? 2 : 1;
    if (const auto perm = attributes.get_ints("perm_a"); perm.size() >= from_end)
      from_end = perm.size() - static_cast<uint64_t>(perm[perm.size() - from_end]);
    return 2 * count(y) * dim(*a, from_end);
  }
  if (op == "LSTM" || op == "GRU" || op == "RNN") {
    const Tensor* recurrent = tensor(inputs, 2);
    if (a == nullptr || b == nullptr || recurrent == nullptr || a->rank() != 3) return 0;
    return 2 * static_cast<uint64_t>(a->dim(0) * a->dim(1)) * (count(b) + count(recurrent));
  }
  if (contains(op, "Attention") && a != nullptr && y != nullptr) {
    // Two products of every query with every key: keys from the second input, or the first.
    const Tensor& keys = b != nullptr && b->rank() >= 3 ? *b : *a;
    const uint64_t length = dim(keys, 2);
    return 4 * count(y) * length;
  }
  if (contains(op, "Pool") && y != nullptr) {
    uint64_t window = 1;
    for (int64_t length : attributes.get_ints("kernel_shape"))
      window *= static_cast<uint64_t>(std::max<int64_t>(length, 1));
    if (op.starts_with("Global")) return count(a);
    return count(y) * window;
  }
  if (op.starts_with("Reduce") || op.starts_with("Arg")) return count(a);
  if (contains(op, "Softmax") || contains(op, "Normalization") || contains(op, "LRN"))
    return 5 * count(y);
  if (std::find(std::begin(kMovers), std::end(kMovers), op) != std::end(kMovers)) return 0;
  return count(y);
}

}  // namespace tombolo
