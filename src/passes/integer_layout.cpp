// For the runtime: quantised convolutions, and what lies between them, with channels last, where a
// window is a few stretches of bytes (runtime/kernels/quant/qconv_last.h). Limits and a residual
// that follow a convolution join it, in QLinearConvLast of ai.tombolo:
//   Transpose(conv(x)) = conv_last(Transpose(x)), and the like for each operator below.
// Of convolutions whose results become floats (DynamicQuantizeLinear gives their inputs) x alone is
// turned; scales, biases and normalisation of each output join them in ConvIntegerToFloat.

#include <algorithm>
#include <map>
#include <vector>

#include "passes/attributes.h"
#include "passes/by_channel.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

class ChannelsLast {
 public:
  ChannelsLast(Rewriter& rewriter, Graph& graph) : r_(rewriter), graph_(graph) {}

  size_t run() {
    size_t count = 0;
    for (Node* node : graph_.nodes()) {
      if (node->outputs().empty() || node->output(0) == nullptr) continue;
      if (r_.is(node, "ConvInteger")) count += conv_integer(*node);
      if (!is_byte(r_.dtype(node->output(0)))) continue;
      bool single = true;
      for (size_t i = 1; i < node->outputs().size(); ++i) single &= node->output(i) == nullptr;
      if (!single) continue;
      count += transpose(*node) || conv(*node) || pool(*node) || concat(*node) || pad(*node) ||
               unary(*node) || binary(*node);
    }
    for (Node* node : made_)
      if (!node->output(0)->has_uses()) r_.erase(*node);
    return count;
  }

 private:
  Value* find(const Value* value) const {
    const auto found = last_.find(value);
    return found == last_.end() ? nullptr : found->second.value;
  }
  /// Of a value that find() knows.
  size_t rank_of(const Value* value) const { return last_.at(value).rank; }
  /// The value with channels last, by a node before `before` if it is not so already.
  Value* to_last(Value* value, Node& before, size_t rank) {
    if (Value* found = find(value)) return found;
    Node& node = r_.add(before, "Transpose", {value}, value->name());
    std::vector<int64_t> perm = {0};
    for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
    perm.push_back(1);
    node.set_ints("perm", perm);
    r_.touch(node);
    last_[value] = {node.output(0), rank};
    return node.output(0);
  }
  /// What read `old` reads the result of `made`, turned back.
  bool replace(Node& old, Node& made, size_t rank) {
    r_.touch(made);
    Node& back = r_.add(old, "Transpose", {made.output(0)}, old.output(0)->name());
    std::vector<int64_t> perm = {0, static_cast<int64_t>(rank) - 1};
    for (size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
    back.set_ints("perm", perm);
    r_.touch(back);
    r_.supersede(*old.output(0), *back.output(0));
    last_[back.output(0)] = {made.output(0), rank};
    made_.push_back(&back);
    return true;
  }
  bool is(const Node& node, Text op) const { return r_.is(&node, op, kMicrosoft); }

  /// What a graph with channels last turns itself, as those of TensorFlow Lite do.
  bool transpose(Node& node) {
    if (!r_.is(&node, "Transpose")) return false;
    const auto perm = AttributeReader(node).get_ints("perm");
    const size_t rank = perm.size();
    if (rank < 3 || rank > 5 || perm[0] != 0) return false;
    bool first = perm[1] == static_cast<int64_t>(rank) - 1, last = perm[rank - 1] == 1;
    for (size_t i = 2; i < rank; ++i) {
      first &= perm[i] == static_cast<int64_t>(i) - 1;
      last &= perm[i - 1] == static_cast<int64_t>(i);
    }
    Value* const found = last ? find(node.input(0)) : nullptr;
    if (found != nullptr && r_.replaceable(*node.output(0), *found)) {
      r_.supersede(*node.output(0), *found);
      return true;
    }
    if (first) last_[node.output(0)] = {node.input(0), rank};
    return false;
  }
  static bool plain_layout(const Node& node) {
    return AttributeReader(node).get_int("channels_last", 0) == 0;
  }

  bool conv(Node& node) {
    const bool transposed = r_.is(&node, "QLinearConvTranspose", kOwn);
    if (!r_.is(&node, "QLinearConv") &&
        !((transposed || is(node, "QLinearConv")) && plain_layout(node)))
      return false;
    // What the kernels take: constant weights and zero points.
    const Tensor* zero = r_.constant(node.input(5));
    const auto w = r_.dims(node.input(3));
    if (zero == nullptr || !w || w->size() < 3 || w->size() > 5 || !r_.is_constant(node.input(3)))
      return false;
    const size_t rank = w->size();
    // Channels one by one have a loop of their own, for images.
    if (!transposed && rank == 5 && (*w)[1] == 1 && AttributeReader(node).get_int("group", 1) != 1)
      return false;
    if (r_.rank(node.input(0)).value_or(rank) != rank) return false;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = to_last(inputs[0], node, rank);
    Node& made = r_.add(node, transposed ? Text("QLinearConvTranspose") : Text("QLinearConvLast"),
                        inputs, node.output(0)->name(), 1, kOwn);
    copy_attributes(node, made);
    if (transposed) made.set_int("channels_last", 1);
    return replace(node, made, rank);
  }

  /// What each output's sum is multiplied by, and what is added then.
  struct Ends {
    std::vector<double> scale, bias;
    Value* factor = nullptr;  ///< one number of the run, which comes before the bias
    bool biased = false;
  };

  /// Lets a node that follows join; `value` is what it reads.
  bool joins(const Node& node, const Value* value, size_t rank, Ends& ends) {
    const auto count = static_cast<int64_t>(ends.scale.size());
    if (const bool product = r_.is(&node, "Mul"); product || r_.is(&node, "Add")) {
      Value* other = node.input(node.input(0) == value ? 1 : 0);
      if (const auto numbers = by_channel(r_, other, {rank, 1, count})) {
        for (size_t i = 0; i < numbers->size(); ++i) {
          if (product) ends.scale[i] *= (*numbers)[i];
          ends.bias[i] = product ? ends.bias[i] * (*numbers)[i] : ends.bias[i] + (*numbers)[i];
        }
        ends.biased |= !product;
        return true;
      }
      const auto dims = r_.dims(other);
      if (!product || ends.factor != nullptr || ends.biased || !dims || dims->size() > rank ||
          r_.dtype(other) != DType::kFloat32 ||
          !std::all_of(dims->begin(), dims->end(), [](int64_t d) { return d == 1; }))
        return false;
      ends.factor = other;
      return true;
    }
    if (node.input(0) != value) return false;
    const auto affine = batch_norm_affine(r_, node, count);
    if (!affine) return false;
    for (size_t i = 0; i < ends.scale.size(); ++i) {
      ends.scale[i] *= affine->factor[i];
      ends.bias[i] = ends.bias[i] * affine->factor[i] + affine->shift[i];
    }
    ends.biased = true;
    return true;
  }

  bool conv_integer(Node& node) {
    const auto w = r_.dims(node.input(1));
    if (!w || !convolves_integers(*w, AttributeReader(node).get_int("group", 1)) ||
        !r_.is_constant(node.input(1)) || r_.rank(node.input(0)) != w->size())
      return false;
    const size_t rank = w->size();
    const int64_t outputs = (*w)[0];
    Value* zeros[2] = {};  // of x, and of w
    for (const size_t i : {size_t(0), size_t(1)}) {
      const DType type = r_.dtype(node.input(i));
      zeros[i] = node.input(i + 2);
      if (zeros[i] == nullptr) zeros[i] = r_.byte_initializer(graph_, type, 0, "zero_point");
      const auto dims = r_.dims(zeros[i]);
      if (!dims || dims->size() > 1 || r_.dtype(zeros[i]) != type) return false;
      const int64_t size = dims->empty() ? 1 : (*dims)[0];
      if (size != 1 && (i == 0 || size != outputs)) return false;
    }
    if (r_.constant(zeros[1]) == nullptr) return false;
    Node* cast = Rewriter::only_reader(node.output(0), graph_);
    if (!r_.is(cast, "Cast") || r_.dtype(cast->output(0)) != DType::kFloat32) return false;
    Ends ends;
    ends.scale.assign(static_cast<size_t>(outputs), 1.0);
    ends.bias.assign(static_cast<size_t>(outputs), 0.0);
    Node* last = cast;
    while (Node* next = Rewriter::only_reader(last->output(0), graph_)) {
      if (!joins(*next, last->output(0), rank, ends)) break;
      last = next;
    }
    if (ends.factor == nullptr)
      ends.factor = r_.float_initializer(graph_, {}, std::vector<double>{1}, "scale");
    const int64_t each[] = {outputs};
    std::vector<Value*> inputs = {to_last(node.input(0), node, rank),
                                  node.input(1),
                                  ends.factor,
                                  r_.float_initializer(graph_, each, ends.scale, "scale"),
                                  zeros[0],
                                  zeros[1]};
    if (ends.biased) inputs.push_back(r_.float_initializer(graph_, each, ends.bias, "bias"));
    Node& made = r_.add(*last, "ConvIntegerToFloat", inputs, last->output(0)->name(), 1, kOwn);
    copy_attributes(node, made);
    r_.touch(made);
    r_.supersede(*last->output(0), *made.output(0));
    return true;
  }

  bool pool(Node& node) {
    Text op;
    for (const Text name : {Text("QLinearGlobalAveragePool"), Text("QLinearAveragePool")})
      if (is(node, name) && plain_layout(node)) op = name;
    const bool greatest = r_.is(&node, "MaxPool");
    if (greatest) op = "NhwcMaxPool";
    if (op.empty()) return false;
    // Averages of windows have no kernel for channels first.
    Value* x = find(node.input(0));
    if (x == nullptr && op == "QLinearAveragePool" && r_.rank(node.input(0)).value_or(0) == 4)
      x = to_last(node.input(0), node, 4);
    if (x == nullptr || rank_of(node.input(0)) != 4 ||
        AttributeReader(node).get_int("storage_order", 0) != 0)
      return false;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = x;
    Node& made = r_.add(node, op, inputs, node.output(0)->name(), 1, kMicrosoft);
    copy_attributes(node, made);
    if (!greatest) made.set_int("channels_last", 1);
    return replace(node, made, 4);
  }

  bool concat(Node& node) {
    const bool linear = is(node, "QLinearConcat");
    if (!linear && !r_.is(&node, "Concat")) return false;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    const size_t first = linear ? 2 : 0;
    if (inputs.size() <= first || find(inputs[first]) == nullptr) return false;
    const size_t rank = rank_of(inputs[first]);
    const int64_t axis = AttributeReader(node).get_int("axis", 0);
    if (axis != 1 && axis != 1 - static_cast<int64_t>(rank)) return false;
    for (size_t i = first; i < inputs.size(); i += linear ? 3 : 1) {
      inputs[i] = find(inputs[i]);
      if (inputs[i] == nullptr) return false;
    }
    Node& made = r_.add(node, node.op_type(), inputs, node.output(0)->name(), 1,
                        linear ? kMicrosoft : Text());
    made.set_int("axis", static_cast<int64_t>(rank) - 1);
    return replace(node, made, rank);
  }

  bool pad(Node& node) {
    if (!r_.is(&node, "Pad") || node.input(3) != nullptr) return false;
    Value* x = find(node.input(0));
    const auto pads = r_.ints(node.input(1));
    if (x == nullptr || !pads || pads->size() != 2 * rank_of(node.input(0))) return false;
    // The channels' come last of those before, and of those behind.
    std::vector<int64_t> turned = *pads;
    const auto half = turned.begin() + static_cast<std::ptrdiff_t>(rank_of(node.input(0)));
    std::rotate(turned.begin() + 1, turned.begin() + 2, half);
    std::rotate(half + 1, half + 2, turned.end());
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = x;
    inputs[1] = r_.ints_initializer(graph_, turned, node.input(1)->name());
    Node& made = r_.add(node, "Pad", inputs, node.output(0)->name());
    copy_attributes(node, made);
    return replace(node, made, rank_of(node.input(0)));
  }

  bool unary(Node& node) {
    const bool clip = r_.is(&node, "Clip"), table = r_.is(&node, "ByteTable", kOwn);
    const bool affine = (r_.is(&node, "QLinearAffine", kOwn) ||
                         r_.is(&node, "QLinearInstanceNormalization", kOwn)) &&
                        plain_layout(node);
    if (!clip && !table && !affine && !is(node, "QLinearSigmoid") && !is(node, "QLinearLeakyRelu"))
      return false;
    Value* x = find(node.input(0));
    if (x == nullptr) return false;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = x;
    if (clip && join_limits(node, *x)) return true;
    Node& made = r_.add(node, node.op_type(), inputs, node.output(0)->name(), 1, node.domain());
    copy_attributes(node, made);
    if (affine) made.set_int("channels_last", 1);
    return replace(node, made, rank_of(node.input(0)));
  }

  /// What gives x, if only `node` reads what it was turned back to.
  static Node* own_producer(const Value& x, const Value& first) {
    return Rewriter::single_use(&x) && Rewriter::single_use(&first) ? x.producer() : nullptr;
  }
  bool join_limits(Node& node, Value& x) {
    Node* made = own_producer(x, *node.input(0));
    if (!r_.is(made, "QLinearConvLast", kOwn) && !r_.is(made, "QLinearConvTranspose", kOwn))
      return false;
    const AttributeReader attributes(*made);
    int64_t limits[2] = {attributes.get_int("low", -128), attributes.get_int("high", 255)};
    for (const size_t i : {size_t(0), size_t(1)}) {
      if (node.input(i + 1) == nullptr) continue;
      const auto number = r_.scalar(node.input(i + 1));
      if (!number) return false;
      const auto limit = static_cast<int64_t>(*number);
      limits[i] = i == 0 ? std::max(limits[0], limit) : std::min(limits[1], limit);
    }
    if (limits[0] > limits[1]) return false;
    if (!is_byte(r_.dtype(&x))) return false;
    const bool is_signed = r_.dtype(&x) == DType::kInt8;
    made->set_int("low", std::max<int64_t>(limits[0], is_signed ? -128 : 0));
    made->set_int("high", std::min<int64_t>(limits[1], is_signed ? 127 : 255));
    Value* back = node.input(0);
    r_.replace(*node.output(0), *back);
    r_.erase(node);
    return true;
  }

  bool binary(Node& node) {
    const bool add = is(node, "QLinearAdd");
    if ((!add && !is(node, "QLinearMul")) || node.inputs().size() < 8) return false;
    Value *a = find(node.input(0)), *b = find(node.input(3));
    if (a == nullptr || b == nullptr || !r_.same_shape(node.input(0), node.input(3))) return false;
    if (add && a != b && (join_residual(node, *a, *b, 0) || join_residual(node, *b, *a, 3)))
      return true;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = a;
    inputs[3] = b;
    Node& made = r_.add(node, node.op_type(), inputs, node.output(0)->name(), 1, kMicrosoft);
    return replace(node, made, rank_of(node.input(0)));
  }

  /// `node` adds the convolution's result at `side` and `rest`.
  bool join_residual(Node& node, Value& x, Value& rest, size_t side) {
    Node* conv = own_producer(x, *node.input(side));
    if (!r_.is(conv, "QLinearConvLast", kOwn) || conv->inputs().size() > 9 ||
        AttributeReader(*conv).get_int("group", 1) != 1)
      return false;
    if (!is_byte(r_.dtype(&x))) return false;
    const AttributeReader attributes(*conv);
    const bool is_signed = r_.dtype(&x) == DType::kInt8;
    if (attributes.get_int("low", -128) > (is_signed ? -128 : 0) ||
        attributes.get_int("high", 255) < (is_signed ? 127 : 255))
      return false;
    // The same steps must be meant by both.
    for (const size_t i : {size_t(1), size_t(2)}) {
      const auto one = r_.scalar(node.input(side + i)), other = r_.scalar(conv->input(5 + i));
      if (!one || !other || *one != *other) return false;
    }
    std::vector<Value*> inputs(conv->inputs().begin(), conv->inputs().end());
    inputs.resize(9, nullptr);
    const size_t far = 3 - side;
    for (Value* value :
         {&rest, node.input(far + 1), node.input(far + 2), node.input(6), node.input(7)}) {
      if (value == nullptr) return false;
      inputs.push_back(value);
    }
    Node& made = r_.add(node, "QLinearConvLast", inputs, node.output(0)->name(), 1, kOwn);
    copy_attributes(*conv, made, {"low", "high"});
    return replace(node, made, rank_of(node.input(side)));
  }

  Rewriter& r_;
  Graph& graph_;
  struct Last {
    Value* value;
    size_t rank;
  };
  std::map<const Value*, Last> last_;
  std::vector<Node*> made_;  ///< Transposes back
};

}  // namespace

Result<size_t> integer_layout(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += ChannelsLast(rewriter, graph).run(); });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
