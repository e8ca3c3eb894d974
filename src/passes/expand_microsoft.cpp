// For the runtime: operators of com.microsoft in those of the standard, and of ai.tombolo, that
// have fast kernels. Only of float32, where all that they say can be said.

#include <limits>

#include "passes/attributes.h"
#include "passes/expand_attention.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

/// ONNX Runtime's own, though exporters write it in ai.onnx.
constexpr Text kSimplified = "SimplifiedLayerNormalization";

class Expander {
 public:
  explicit Expander(Rewriter& rewriter) : rewriter_(rewriter) {}

  size_t expand(Node& node) {
    if (const size_t done = twin(node); done != 0) return done;
    if (rewriter_.is(&node, "Unique", kMicrosoft)) return unique(node);
    if (rewriter_.is(&node, "ConvTransposeWithDynamicPads", kMicrosoft)) return transposed(node);
    if (node.outputs().empty() || node.output(0) == nullptr || node.input(0) == nullptr) return 0;
    if (rewriter_.is(&node, "EmbedLayerNormalization", kMicrosoft)) return embed_norm(node, false);
    const DType dtype = rewriter_.dtype(node.output(0));
    if (dtype == DType::kFloat64 && rewriter_.is(&node, "FusedMatMul", kMicrosoft))
      return fused_matmul(node);
    if (rewriter_.is(&node, "MatMulInteger16", kMicrosoft)) return matmul_16(node);
    if (dtype != DType::kFloat32) return 0;
    if (rewriter_.is(&node, kSimplified)) return simplified_norm(node);
    const auto is = [&](Text op) { return rewriter_.is(&node, op, kMicrosoft); };
    if (is("BiasGelu") || is("FastGelu") || is("Gelu")) return gelu(node, is("FastGelu"));
    if (is("QuickGelu")) return quick_gelu(node);
    if (is("FusedMatMul") || is("TransposeMatMul")) return fused_matmul(node);
    if (is("FusedGemm")) return fused_gemm(node);
    if (is("FusedConv")) return fused_conv(node);
    if (is("SkipLayerNormalization")) return skip_norm(node, "LayerNormalization");
    if (is("SkipSimplifiedLayerNormalization")) return skip_norm(node, "RMSNormalization");
    if (is("MaxpoolWithMask")) return masked_pool(node);
    if (is("GatedAdd")) return gated_add(node);
    if (is("DynamicQuantizeMatMul")) return quantise_matmul(node);
    if (is("QEmbedLayerNormalization")) return embed_norm(node, true);
    if (is("BiasAdd")) return bias_add(node);
    if (is("BiasSplitGelu")) return bias_split_gelu(node);
    return expand_microsoft_attention(rewriter_, node);
  }

 private:
  size_t become(Node& node, Node& made) {
    rewriter_.touch(made);
    rewriter_.supersede(*node.output(0), *made.output(0));
    return 1;
  }
  Value* add(Node& before, Value* a, Value* b, Text name) {
    Node& sum = rewriter_.add(before, "Add", {a, b}, name);
    rewriter_.touch(sum);
    return sum.output(0);
  }

  Value* cast(Node& before, Value* x, DType to) {
    Node& made = rewriter_.add(before, "Cast", {x}, x->name());
    made.set_int("to", static_cast<int64_t>(to));
    rewriter_.touch(made);
    return made.output(0);
  }

  /// Integers wrap, so that products of 32 bits are what 16 bits give.
  size_t matmul_16(Node& node) {
    const DType dtype = rewriter_.dtype(node.output(0));
    if (node.input(1) == nullptr || (dtype != DType::kInt32 && dtype != DType::kUInt32)) return 0;
    Value *a = cast(node, node.input(0), dtype), *b = cast(node, node.input(1), dtype);
    return become(node, rewriter_.add(node, "MatMul", {a, b}, node.output(0)->name()));
  }

  size_t unique(Node& node) {
    if (node.input(0) == nullptr || rewriter_.rank(node.input(0)) != 1) return 0;
    Node& made = rewriter_.add(node, "Unique", {node.input(0)}, node.output(0)->name(), 4);
    made.set_int("sorted", 0);
    rewriter_.touch(made);
    for (const size_t i : {size_t(2), size_t(1)})
      if (Rewriter::is_read(node.output(i)))
        rewriter_.replace(*node.output(i), *made.output(i + 1));
    rewriter_.supersede(*node.output(0), *made.output(0));
    return 1;
  }

  /// X + gate Y
  size_t gated_add(Node& node) {
    Value *x = node.input(0), *y = node.input(1), *gate = node.input(2);
    if (y == nullptr || gate == nullptr || !rewriter_.same_shape(x, y) ||
        rewriter_.rank(gate) != rewriter_.rank(x))
      return 0;
    const Text name = node.output(0)->name();
    Node& product = rewriter_.add(node, "Mul", {gate, y}, name);
    rewriter_.touch(product);
    return become(node, rewriter_.add(node, "Add", {x, product.output(0)}, name));
  }

  size_t masked_pool(Node& node) {
    const auto x = rewriter_.dims(node.input(0)), mask = rewriter_.dims(node.input(1));
    if (!x || !mask || x->size() < 3 || mask->size() != x->size()) return 0;
    for (size_t i = 2; i < x->size(); ++i)
      if ((*mask)[i] != (*x)[i]) return 0;
    const bool whole = (*mask)[0] == (*x)[0] && (*mask)[1] == (*x)[1];
    if (!whole && ((*mask)[0] != 1 || ((*mask)[1] != 1 && (*mask)[1] != (*x)[1]))) return 0;
    const auto number = [&](float value) {
      return rewriter_.float_initializer(node.graph(), {}, std::vector<double>{value}, "least");
    };
    const Text name = node.output(0)->name();
    Node& masked = rewriter_.add(node, "Where",
                                 {cast(node, node.input(1), DType::kBool), node.input(0),
                                  number(-std::numeric_limits<float>::infinity())},
                                 name);
    rewriter_.touch(masked);
    Node& pool = rewriter_.add(node, "MaxPool", {masked.output(0)}, name);
    copy_attributes(node, pool);
    rewriter_.touch(pool);
    return become(
        node, rewriter_.add(node, "Max",
                            {pool.output(0), number(std::numeric_limits<float>::lowest())}, name));
  }

  size_t transposed(Node& node) {
    const auto pads = rewriter_.ints(node.input(2));
    const auto rank = rewriter_.rank(node.input(0));
    const bool later = node.input(2) != nullptr && !pads;
    const Text automatic = AttributeReader(node).get_string("auto_pad", "NOTSET");
    if (node.input(1) == nullptr || (later && (!rank || *rank < 3 || automatic != "NOTSET")))
      return 0;
    std::vector<Value*> inputs = {node.input(0), node.input(1), node.input(3)};
    if (inputs.back() == nullptr) inputs.pop_back();
    Node& made = rewriter_.add(node, "ConvTranspose", inputs, node.output(0)->name());
    copy_attributes(node, made);
    if (pads) made.set_ints("pads", *pads);
    if (!later) return become(node, made);
    // What pads leave out is cut off.
    rewriter_.touch(made);
    const auto axes = static_cast<int64_t>(*rank) - 2;
    const auto part = [&](Value* list, int64_t from, int64_t to) {
      const int64_t bounds[] = {from, to};
      Value* ends[2];
      for (int i = 0; i < 2; ++i)
        ends[i] = rewriter_.ints_initializer(node.graph(), std::span(bounds + i, 1), "bound");
      Node& slice = rewriter_.add(node, "Slice", {list, ends[0], ends[1]}, list->name());
      rewriter_.touch(slice);
      return slice.output(0);
    };
    Node& shape = rewriter_.add(node, "Shape", {made.output(0)}, node.output(0)->name());
    shape.set_int("start", 2);
    rewriter_.touch(shape);
    Node& ends =
        rewriter_.add(node, "Sub", {shape.output(0), part(node.input(2), axes, 2 * axes)}, "ends");
    rewriter_.touch(ends);
    std::vector<int64_t> spatial;
    for (int64_t i = 0; i < axes; ++i) spatial.push_back(i + 2);
    Node& cut = rewriter_.add(node, "Slice",
                              {made.output(0), part(node.input(2), 0, axes), ends.output(0),
                               rewriter_.ints_initializer(node.graph(), spatial, "axes")},
                              node.output(0)->name());
    return become(node, cut);
  }

  /// Rows of a table, of codes as numbers when it has a scale: those that `index` names.
  Value* rows_of(Node& node, Value* table, Value* index, Value* scale, Value* zero) {
    Node& rows = rewriter_.add(node, "Gather", {table, index}, table->name());
    rewriter_.touch(rows);
    return numbers_of(node, rows.output(0), scale, zero);
  }
  /// The same, the first ones.
  Value* first_rows(Node& node, Value* table, Value* count, Value* scale, Value* zero) {
    const int64_t none[] = {0};
    Value* start = rewriter_.ints_initializer(node.graph(), none, "start");
    Node& rows = rewriter_.add(node, "Slice", {table, start, count, start}, table->name());
    rewriter_.touch(rows);
    return numbers_of(node, rows.output(0), scale, zero);
  }
  Value* numbers_of(Node& node, Value* codes, Value* scale, Value* zero) {
    if (scale == nullptr) return as_floats(node, codes);
    Node& numbers = rewriter_.add(node, "DequantizeLinear", {codes, scale, zero}, codes->name());
    rewriter_.touch(numbers);
    return numbers.output(0);
  }
  /// Rows of tables of 16 bits are added and normalised as floats.
  Value* as_floats(Node& before, Value* x) {
    return rewriter_.dtype(x) == DType::kFloat32 ? x : cast(before, x, DType::kFloat32);
  }

  /// Rows of three tables, added and normalised. The second output says how many of a mask are one.
  size_t embed_norm(Node& node, bool quantised) {
    constexpr size_t kMask = 7, kPositions = 8, kSum = 2;
    Value *ids = node.input(0), *segments = node.input(1);
    for (size_t i = 2; i < 7; ++i)
      if (node.input(i) == nullptr && i != 4) return 0;
    for (size_t i = 8; quantised && i < 18; ++i)
      if (node.input(i) != nullptr && rewriter_.rank(node.input(i)) != 0) return 0;
    const DType type = rewriter_.dtype(node.output(0));
    if (type != DType::kFloat32 && type != DType::kFloat16 && type != DType::kBFloat16) return 0;
    if (rewriter_.rank(ids) != 2 || (segments == nullptr) != (node.input(4) == nullptr)) return 0;
    const Text name = node.output(0)->name();
    const auto scale = [&](size_t i) { return quantised ? node.input(6 + i) : nullptr; };
    const auto zero = [&](size_t i) { return quantised ? node.input(11 + i) : nullptr; };
    Value* positions = quantised ? nullptr : node.input(kPositions);
    Value* sum = rows_of(node, node.input(2), ids, scale(2), zero(2));
    sum = add(node, sum,
              positions != nullptr
                  ? rows_of(node, node.input(3), positions, nullptr, nullptr)
                  : first_rows(node, node.input(3),
                               rewriter_.axis_length(node, ids, 1, ids->name()), scale(3), zero(3)),
              name);
    if (segments != nullptr)
      sum = add(node, sum, rows_of(node, node.input(4), segments, scale(4), zero(4)), name);
    Value* gamma = numbers_of(node, node.input(5), scale(5), zero(5));
    Value* beta = numbers_of(node, node.input(6), scale(6), zero(6));
    Node& norm = rewriter_.add(node, "LayerNormalization", {sum, gamma, beta}, name);
    norm.set_int("axis", -1);
    norm.set_float("epsilon", AttributeReader(node).get_float("epsilon", 1e-12f));
    rewriter_.touch(norm);
    const auto given = [&](Value* x) { return type == DType::kFloat32 ? x : cast(node, x, type); };
    if (Rewriter::is_read(node.output(kSum))) rewriter_.replace(*node.output(kSum), *given(sum));
    if (Rewriter::is_read(node.output(1)))
      rewriter_.replace(*node.output(1), *count_of_ones(node, node.input(kMask)));
    rewriter_.supersede(*node.output(0), *given(norm.output(0)));
    return 1;
  }
  size_t bias_add(Node& node) {
    if (node.input(1) == nullptr || node.input(2) == nullptr) return 0;
    const Text name = node.output(0)->name();
    Value* biased = add(node, node.input(0), node.input(1), name);
    Node& sum = rewriter_.add(node, "Add", {biased, node.input(2)}, name);
    return become(node, sum);
  }
  size_t bias_split_gelu(Node& node) {
    if (node.input(1) == nullptr) return 0;
    const Text name = node.output(0)->name();
    Value* biased = add(node, node.input(0), node.input(1), name);
    Node& halves = rewriter_.add(node, "Split", {biased}, name, 2);
    halves.set_int("axis", -1);
    halves.set_int("num_outputs", 2);
    rewriter_.touch(halves);
    Node& gelu = rewriter_.add(node, "Gelu", {halves.output(1)}, name);
    rewriter_.touch(gelu);
    return become(node, rewriter_.add(node, "Mul", {halves.output(0), gelu.output(0)}, name));
  }
  Value* count_of_ones(Node& node, Value* mask) {
    if (mask == nullptr) {
      Node& none =
          rewriter_.add(node, "ConstantOfShape",
                        {rewriter_.axis_length(node, node.input(0), 0, node.input(0)->name())});
      const int64_t one[] = {1};
      none.set_tensor("value", Tensor::of<int32_t>(DType::kInt32, one, std::vector<int32_t>{0}));
      rewriter_.touch(none);
      return none.output(0);
    }
    const int64_t last[] = {1};
    Value* one = rewriter_.initializer(
        node.graph(), Tensor::of<int32_t>(DType::kInt32, {}, std::vector<int32_t>{1}), "one");
    Node& equal = rewriter_.add(node, "Equal", {mask, one}, mask->name());
    rewriter_.touch(equal);
    Value* axes = rewriter_.ints_initializer(node.graph(), last, "axes");
    Node& count = rewriter_.add(node, "ReduceSum",
                                {cast(node, equal.output(0), DType::kInt32), axes}, mask->name());
    count.set_int("keepdims", 0);
    rewriter_.touch(count);
    return count.output(0);
  }

  /// Operators that the standard took over, of any type.
  size_t twin(Node& node) {
    Text op;
    for (const Text known : {Text("Trilu"), Text("GridSample"), Text("GatherND"), Text("Pad")})
      if (rewriter_.is(&node, known, kMicrosoft)) op = known;
    if (op.empty() || node.input(0) == nullptr || node.output(0) == nullptr) return 0;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    while (inputs.back() == nullptr) inputs.pop_back();
    if (op != "Trilu" && (inputs.size() < 2 || inputs[1] == nullptr)) return 0;
    if (op == "GatherND" && rewriter_.dtype(inputs[1]) == DType::kInt32)
      inputs[1] = cast(node, inputs[1], DType::kInt64);
    if (op == "GatherND" && rewriter_.dtype(inputs[1]) != DType::kInt64) return 0;
    if (op == "Pad" && rewriter_.rank(inputs[1]) != 1) return 0;
    Node& made = rewriter_.add(node, op, inputs, node.output(0)->name());
    copy_attributes(node, made);
    if (op == "GridSample") {
      const Text mode = AttributeReader(node).get_string("mode", "bilinear");
      made.set_string("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
    }
    return become(node, made);
  }

  size_t gelu(Node& node, bool tanh_form) {
    const Text name = node.output(0)->name();
    Value* x = node.input(0);
    if (node.input(1) != nullptr) x = add(node, x, node.input(1), name);
    Node& made = rewriter_.add(node, "Gelu", {x}, name);
    if (tanh_form) made.set_string("approximate", "tanh");
    return become(node, made);
  }

  size_t quick_gelu(Node& node) {
    Node& made = rewriter_.add(node, "Swish", {node.input(0)}, node.output(0)->name());
    made.set_float("alpha", AttributeReader(node).get_float("alpha", 1.702f));
    return become(node, made);
  }

  /// The first axis goes behind the others but the last.
  Value* batch_first(Node& node, Value* x) {
    const auto rank = static_cast<int64_t>(*rewriter_.rank(x));
    std::vector<int64_t> perm;
    for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
    perm.push_back(0);
    perm.push_back(rank - 1);
    Node& turned = rewriter_.add(node, "Transpose", {x}, x->name());
    turned.set_ints("perm", perm);
    rewriter_.touch(turned);
    return turned.output(0);
  }

  size_t fused_matmul(Node& node) {
    const AttributeReader attributes(node);
    for (const size_t i : {size_t(0), size_t(1)})
      if (node.input(i) == nullptr || rewriter_.rank(node.input(i)).value_or(0) < 2 ||
          rewriter_.dtype(node.input(i)) != rewriter_.dtype(node.output(0)))
        return 0;
    Value* sides[2] = {node.input(0), node.input(1)};
    for (const size_t i : {size_t(0), size_t(1)})
      if (attributes.get_int(i == 0 ? "transBatchA" : "transBatchB", 0) != 0)
        sides[i] = batch_first(node, sides[i]);
    Node& made =
        rewriter_.add(node, "MatMul", {sides[0], sides[1]}, node.output(0)->name(), 1, kOwn);
    for (const Text name : {Text("transA"), Text("transB")})
      if (attributes.get_int(name, 0) != 0) made.set_int(name, 1);
    if (attributes.get_float("alpha", 1) != 1)
      made.set_float("alpha", attributes.get_float("alpha", 1));
    return become(node, made);
  }

  size_t fused_gemm(Node& node) {
    const AttributeReader attributes(node);
    const Text activation = attributes.get_string("activation", "");
    const bool bent = activation == "LeakyRelu" || activation == "Elu";
    bool known = bent || activation.empty();
    for (const char* plain : {"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign"})
      known = known || activation == plain;
    if (!known || node.input(1) == nullptr) return 0;
    const Text name = node.output(0)->name();
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& product = rewriter_.add(node, "Gemm", inputs, name);
    for (const Text factor : {Text("alpha"), Text("beta")})
      product.set_float(factor, attributes.get_float(factor, 1));
    for (const Text side : {Text("transA"), Text("transB")})
      product.set_int(side, attributes.get_int(side, 0));
    if (activation.empty()) return become(node, product);
    rewriter_.touch(product);
    Node& made = rewriter_.add(node, activation, {product.output(0)}, name);
    if (bent)
      made.set_float("alpha", attributes.get_float("activation_alpha",
                                                   activation == "LeakyRelu" ? 0.01f : 1.0f));
    return become(node, made);
  }

  size_t fused_conv(Node& node) {
    const AttributeReader attributes(node);
    const std::string activation(attributes.get_string("activation", ""));
    const auto params = attributes.get_floats("activation_params");
    // Their parameters are all there or stand for the operator's own defaults, which differ.
    const size_t needed = activation == "LeakyRelu"                             ? 1
                          : activation == "Clip" || activation == "HardSigmoid" ? 2
                                                                                : 0;
    const bool known = activation.empty() || activation == "Relu" || activation == "Sigmoid" ||
                       activation == "Tanh" || needed != 0;
    if (!known || (needed != 0 && params.size() != needed)) return 0;
    Value* z = node.input(3);
    if (z != nullptr && !rewriter_.same_shape(z, node.output(0))) return 0;
    std::vector<Value*> inputs = {node.input(0), node.input(1), node.input(2), z};
    while (inputs.back() == nullptr) inputs.pop_back();
    Node& made = rewriter_.add(node, "Conv", inputs, node.output(0)->name(), 1, kOwn);
    for (const Attribute& attribute : node.attributes()) {
      if (attribute.name == "activation" || attribute.name == "activation_params") continue;
      if (attribute.i() != nullptr) made.set_int(attribute.name, *attribute.i());
      if (attribute.s() != nullptr) made.set_string(attribute.name, *attribute.s());
      if (attribute.type == AttrType::kInts) made.set_ints(attribute.name, attribute.ints());
    }
    if (!activation.empty()) made.set_string("activation", activation);
    if (needed != 0) made.set_floats("activation_params", params);
    return become(node, made);
  }

  size_t simplified_norm(Node& node) {
    const bool deviation = node.outputs().size() > 1 && Rewriter::is_read(node.output(1));
    if (deviation || node.input(1) == nullptr || rewriter_.dtype(node.input(0)) != DType::kFloat32)
      return 0;
    Node& norm = rewriter_.add(node, "RMSNormalization", {node.input(0), node.input(1)},
                               node.output(0)->name());
    const AttributeReader attributes(node);
    norm.set_int("axis", attributes.get_int("axis", -1));
    norm.set_float("epsilon", attributes.get_float("epsilon", 1e-5f));
    return become(node, norm);
  }

  /// DynamicQuantizeLinear and MatMulIntegerToFloat.
  size_t quantise_matmul(Node& node) {
    if (node.input(1) == nullptr || node.input(2) == nullptr) return 0;
    const Text name = node.output(0)->name();
    Node& codes = rewriter_.add(node, "DynamicQuantizeLinear", {node.input(0)}, name, 3);
    rewriter_.touch(codes);
    std::vector<Value*> inputs = {codes.output(0), node.input(1), codes.output(1), node.input(2),
                                  codes.output(2), node.input(3), node.input(4)};
    while (inputs.back() == nullptr) inputs.pop_back();
    return become(node, rewriter_.add(node, "MatMulIntegerToFloat", inputs, name, 1, kMicrosoft));
  }

  /// Y = norm(X + skip + bias); outputs 1 and 2 are its moments, output 3 is the sum.
  size_t skip_norm(Node& node, Text op) {
    const bool simplified = op == "RMSNormalization";
    const size_t bias = simplified ? 3 : 4;
    Value *const mean = node.output(1), *const inverse = node.output(2);
    const bool moments = Rewriter::is_read(mean) || Rewriter::is_read(inverse);
    if ((simplified && Rewriter::is_read(mean)) || node.input(1) == nullptr ||
        node.input(2) == nullptr)
      return 0;
    if (simplified && moments) op = kSimplified;
    const Text name = node.output(0)->name();
    Value* sum = add(node, node.input(0), node.input(1), name);
    if (node.input(bias) != nullptr) sum = add(node, sum, node.input(bias), name);
    std::vector<Value*> inputs = {sum, node.input(2)};
    if (!simplified && node.input(3) != nullptr) inputs.push_back(node.input(3));
    Node& norm = rewriter_.add(node, op, inputs, name, !moments ? 1 : simplified ? 2 : 3);
    norm.set_int("axis", -1);
    norm.set_float("epsilon", AttributeReader(node).get_float("epsilon", 1e-12f));
    rewriter_.touch(norm);
    if (Rewriter::is_read(mean)) rewriter_.replace(*mean, *norm.output(1));
    if (Rewriter::is_read(inverse)) rewriter_.replace(*inverse, *norm.output(simplified ? 1 : 2));
    Value* const fourth = node.output(3);
    if (Rewriter::is_read(fourth)) rewriter_.replace(*fourth, *sum);
    rewriter_.supersede(*node.output(0), *norm.output(0));
    return 1;
  }

  Rewriter& rewriter_;
};

}  // namespace

/// They say the same, and exporters wrote them before the standard had 16 bits.
Result<size_t> standard_quantise(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    std::vector<Node*> nodes;
    for (Node* node : graph.nodes())
      for (const Text op : {Text("QuantizeLinear"), Text("DequantizeLinear")})
        if (rewriter.is(node, op, kMicrosoft) && node->input(0) != nullptr &&
            node->input(1) != nullptr && node->output(0) != nullptr)
          nodes.push_back(node);
    for (Node* node : nodes) {
      std::vector<Value*> inputs(node->inputs().begin(), node->inputs().end());
      while (inputs.back() == nullptr) inputs.pop_back();
      Node& made = rewriter.add(*node, node->op_type(), inputs, node->output(0)->name());
      const AttributeReader attributes(*node);
      if (attributes.has("axis")) made.set_int("axis", attributes.get_int("axis", 1));
      rewriter.touch(made);
      rewriter.supersede(*node->output(0), *made.output(0));
      ++count;
    }
  });
  return count;
}

Result<size_t> expand_microsoft(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    std::vector<Node*> nodes;
    for (Node* node : graph.nodes())
      if (canonical_domain(node->domain()) == kMicrosoft || rewriter.is(node, kSimplified))
        nodes.push_back(node);
    Expander expander(rewriter);
    for (Node* node : nodes) count += expander.expand(*node);
  });
  return count;
}

}  // namespace tombolo::passes
