// DequantizeLinear, an operator, QuantizeLinear: the operator on the integers themselves, where
// there is one (QLinearConv, QLinearMatMul, and those of com.microsoft). Sums are then exact, and
// each result is at most one step from what the graph as written gives.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "passes/attributes.h"
#include "passes/by_channel.h"
#include "passes/codes.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

/// A tensor of bytes and what they mean: (code - zero) * scale, one scale for all of it.
struct Codes {
  Value* codes = nullptr;
  Value* scale = nullptr;
  Value* zero = nullptr;
  double step = 0;
  int64_t origin = 0;
};

class Sandwich {
 public:
  Sandwich(Rewriter& rewriter, Node& quantize) : r_(rewriter), q_(quantize) {}

  size_t rewrite() {
    Node* node = quantised();
    if (node == nullptr) return 0;
    return conv(*node) || gemm(*node) || biased_matmul(*node) || matmul(*node) || binary(*node) ||
           pool(*node) || max_pool(*node) || concat(*node) || unary(*node);
  }

  /// ConvTranspose of codes, for which there is an operator of the runtime alone.
  size_t conv_transpose() {
    Node* node = quantised();
    if (!r_.is(node, "ConvTranspose")) return 0;
    const auto x = codes_of(node->input(0));
    const auto dims = r_.dims(node->input(1));
    const int64_t groups = AttributeReader(*node).get_int("group", 1);
    if (!x || !dims || !transposes_bytes(*dims, *node)) return 0;
    const int64_t of_group = (*dims)[1], count = of_group * groups;
    auto w = weights_of(node->input(1), 1, of_group);
    if (!w) return 0;
    if (groups > 1 && w->steps.size() > 1) {
      // Each group's outputs have the same scales and zero points.
      const Value* zero = w->zero;
      w->scale = repeated(w->scale, count);
      if (w->zero != nullptr) w->zero = repeated(w->zero, count);
      if (w->scale == nullptr || (w->zero == nullptr) != (zero == nullptr)) return 0;
      const std::vector<double> steps = w->steps;
      for (int64_t i = of_group; i < count; ++i)
        w->steps.push_back(steps[static_cast<size_t>(i % of_group)]);
    }
    const auto bias = bias_of(node->input(2), *x, *w, count);
    if (!bias) return 0;
    std::vector<Value*> inputs = {x->codes, x->scale,    zero_of(*x), w->codes,
                                  w->scale, zero_of(*w), out_.scale,  zero_of(out_)};
    if (*bias != nullptr) inputs.push_back(*bias);
    Node& made = r_.add(q_, "QLinearConvTranspose", inputs, q_.output(0)->name(), 1, kOwn);
    copy_attributes(*node, made);
    return finish(made);
  }

  /// Factors and shifts of each channel between codes, for which there is one of the runtime, too.
  size_t affine(bool images_alone = false) {
    Node* node = quantised();
    if (node == nullptr) return 0;
    const auto rank = r_.rank(q_.input(0));
    if (!rank || *rank < (images_alone ? 3 : 2) || *rank > 5) return 0;
    for (const size_t axis : {size_t(1), images_alone ? 1 : *rank - 1}) {
      const auto channels = r_.dim(q_.input(0), static_cast<int64_t>(axis));
      if (channels && *channels > 1 && affine(*node, {*rank, axis, *channels})) return 1;
    }
    return 0;
  }

  /// The same of each image.
  size_t instance_norm() {
    Node* node = quantised();
    if (!r_.is(node, "InstanceNormalization")) return 0;
    const auto x = codes_of(node->input(0));
    const auto rank = r_.rank(node->input(0));
    const auto channels = r_.dim(node->input(0), 1);
    if (!x || !rank || *rank < 3 || *rank > 5 || !channels || r_.rank(x->codes) != rank) return 0;
    std::vector<Value*> inputs = {x->codes};
    for (const size_t i : {size_t(1), size_t(2)}) {
      const auto numbers = by_channel(r_, node->input(i), {1, 0, *channels});
      if (!numbers || r_.dim(node->input(i), 0) != *channels) return 0;
      inputs.push_back(each_channel(*numbers, node->input(i)->name()));
    }
    inputs.push_back(zero_of(out_));
    Node& made = r_.add(q_, "QLinearInstanceNormalization", inputs, q_.output(0)->name(), 1, kOwn);
    made.set_float("epsilon", AttributeReader(*node).get_float("epsilon", 1e-5f));
    made.set_float("x_scale", static_cast<float>(x->step));
    made.set_float("y_scale", static_cast<float>(out_.step));
    return take(made);
  }

  /// A product of codes whose result stays a float: the anchor is the MatMul or Gemm itself.
  size_t multiply() {
    const bool gemm = r_.is(&q_, "Gemm");
    const AttributeReader attributes(q_);
    if (attributes.get_int("transA", 0) != 0 || attributes.get_float("alpha", 1) != 1 ||
        attributes.get_float("beta", 1) != 1)
      return 0;
    const bool turned = attributes.get_int("transB", 0) != 0;
    const auto x = codes_of(q_.input(0));
    const auto dims = r_.dims(q_.input(1));
    constexpr int64_t kLongest = 1 << 16;  // sums stay in 32 bits
    if (!x || r_.rank(x->codes).value_or(0) < 2 || !dims || dims->size() != 2 ||
        (*dims)[turned ? 1 : 0] > kLongest)
      return 0;
    const int64_t axis = turned ? 0 : 1, count = (*dims)[static_cast<size_t>(axis)];
    const auto w = weights_of(q_.input(1), axis, count);
    if (!w) return 0;
    Value* bias = gemm ? q_.input(2) : nullptr;
    if (bias != nullptr) {
      const auto size = r_.dims(bias);
      if (!size || size->size() != 1 || (*size)[0] != count) return 0;
    }
    Value* codes = w->codes;
    if (turned) {  // here, as the runtime folds nothing after this
      const Tensor* given = r_.constant(codes);
      if (given == nullptr) return 0;
      constexpr int64_t kTurned[] = {1, 0};
      auto made = transposed(*given, kTurned);
      if (!made) return 0;
      codes = r_.initializer(q_.graph(), *std::move(made), codes->name());
    }
    std::vector<Value*> inputs = {x->codes,    codes,       x->scale, w->scale,
                                  zero_of(*x), zero_of(*w), bias};
    if (bias == nullptr) inputs.pop_back();
    Node& product = r_.add(q_, "MatMulIntegerToFloat", inputs, q_.output(0)->name(), 1, kMicrosoft);
    r_.touch(product);
    r_.supersede(*q_.output(0), *product.output(0));
    return 1;
  }

  /// The same of a convolution, as ConvInteger, whose sums are scaled: integer_layout() joins
  /// these.
  size_t convolve() {
    const auto x = codes_of(q_.input(0));
    const auto dims = r_.dims(q_.input(1));
    if (!x || !dims || !convolves_integers(*dims, AttributeReader(q_).get_int("group", 1)) ||
        r_.rank(x->codes) != dims->size())
      return 0;
    const int64_t count = (*dims)[0];
    const auto w = weights_of(q_.input(1), 0, count);
    if (!w) return 0;
    std::vector<double> bias;
    if (q_.input(2) != nullptr) {
      const auto given = read_bias(q_.input(2), count);
      if (!given) return 0;
      for (int64_t i = 0; i < count; ++i)
        bias.push_back(given->numbers->get_double(i) * given->step(i));
    }
    std::vector<double> scales;
    for (int64_t i = 0; i < count; ++i)
      scales.push_back(x->step * w->steps[w->steps.size() == 1 ? 0 : static_cast<size_t>(i)]);
    const Text name = q_.output(0)->name();
    const auto each = [&](const std::vector<double>& values) {
      std::vector<int64_t> shape(dims->size() - 1, 1);
      shape[0] = count;
      return r_.float_initializer(q_.graph(), shape, values, name);
    };
    Node& sums = r_.add(q_, "ConvInteger", {x->codes, w->codes, zero_of(*x), zero_of(*w)}, name);
    copy_attributes(q_, sums);
    r_.touch(sums);
    Node& cast = r_.add(q_, "Cast", {sums.output(0)}, name);
    cast.set_int("to", static_cast<int64_t>(DType::kFloat32));
    r_.touch(cast);
    Node* last = &r_.add(q_, "Mul", {cast.output(0), each(scales)}, name);
    r_.touch(*last);
    if (!bias.empty()) {
      last = &r_.add(q_, "Add", {last->output(0), each(bias)}, name);
      r_.touch(*last);
    }
    r_.supersede(*q_.output(0), *last->output(0));
    return 1;
  }

 private:
  /// Whether the runtime transposes convolutions of such weights, [inputs, outputs of a group,
  /// ...], as bytes (q_transposed_takes): few outputs leave most of what it multiplies at once
  /// empty, many steps are as many products, and what reaches far beyond the image is mostly
  /// padding.
  static bool transposes_bytes(const std::vector<int64_t>& w, const Node& node) {
    constexpr int64_t kFewOutputs = 8, kMostPhases = 256, kMostInputs = 1 << 16, kFar = 16;
    const AttributeReader attributes(node);
    const int64_t groups = attributes.get_int("group", 1);
    if (w.size() < 3 || w.size() > 5 || groups < 1 || w[0] < 1 || w[1] < kFewOutputs) return false;
    const auto strides = attributes.get_ints("strides");
    const auto dilations = attributes.get_ints("dilations");
    int64_t phases = 1, inputs = w[0] / groups;
    for (size_t i = 2; i < w.size(); ++i) {
      const int64_t stride = i - 2 < strides.size() ? strides[i - 2] : 1;
      const int64_t dilation = i - 2 < dilations.size() ? dilations[i - 2] : 1;
      if (stride < 1 || stride > kMostPhases || dilation < 1 || dilation > kMostInputs ||
          w[i] < 1 || w[i] > kMostInputs || (w[i] - 1) * dilation > kFar * stride)
        return false;
      phases *= stride;
      inputs *= w[i];
      if (phases > kMostPhases || inputs > kMostInputs) return false;
    }
    return true;
  }

  /// What is behind the QuantizeLinear that is the anchor, and what bounds there are on it.
  Node* quantised() {
    if (!is_byte(r_.dtype(q_.output(0))) || r_.dtype(q_.input(0)) != DType::kFloat32)
      return nullptr;
    out_.codes = q_.output(0);
    if (!meaning(q_, r_.dtype(q_.output(0)), out_)) return nullptr;
    const bool is_signed = r_.dtype(q_.output(0)) == DType::kInt8;
    low_ = least_ = is_signed ? -128 : 0;
    high_ = greatest_ = is_signed ? 127 : 255;
    Node* node = inner(q_.input(0));
    // What only bounds its input bounds the codes.
    while (node != nullptr && bound(*node)) node = inner(node->input(0));
    return node == nullptr || node->outputs().size() != 1 ? nullptr : node;
  }

  /// `node` and what comes before it, as far as those are factors and shifts.
  bool affine(const Node& last, const Channels& channels) {
    std::vector<double> factor(static_cast<size_t>(channels.count), 1.0);
    std::vector<double> shift(factor.size());
    const Node* node = &last;
    const Value* value = q_.input(0);
    bool normalises = false;
    while (true) {
      Affine one;
      const auto normal = channels.axis == 1 ? batch_norm_affine(r_, *node, channels.count)
                                             : std::optional<Affine>();
      size_t side = 0;
      if (normal) {
        one = *normal;
        normalises = true;
      } else if (const bool product = r_.is(node, "Mul"); product || r_.is(node, "Add")) {
        auto numbers = by_channel(r_, node->input(1), channels);
        if (!numbers) {
          side = 1;
          numbers = by_channel(r_, node->input(0), channels);
        }
        if (!numbers) return false;
        normalises |= std::adjacent_find(numbers->begin(), numbers->end(), std::not_equal_to<>()) !=
                      numbers->end();
        one.factor = product ? *numbers : std::vector<double>(factor.size(), 1.0);
        one.shift = product ? std::vector<double>(factor.size()) : *numbers;
      } else {
        return false;
      }
      for (size_t c = 0; c < factor.size(); ++c) {
        shift[c] += factor[c] * one.shift[c];
        factor[c] *= one.factor[c];
      }
      value = node->input(side);
      if (codes_of(value)) break;
      node = inner(value);
      if (node == nullptr || node->outputs().empty()) return false;
    }
    const auto x = codes_of(value);
    // What is the same for all channels is a function of bytes.
    if (!normalises || r_.rank(x->codes) != channels.rank) return false;
    for (size_t c = 0; c < factor.size(); ++c) {
      factor[c] *= x->step;
      shift[c] = (shift[c] - factor[c] * static_cast<double>(x->origin)) / out_.step;
      factor[c] /= out_.step;
      // A float holds their sum to a tenth of a step where a code moves it by so many at most.
      constexpr double kMost = 4096;
      if (!(std::fabs(factor[c]) <= kMost) || !(std::fabs(shift[c]) <= 512 * kMost)) return false;
    }
    Node& made = r_.add(
        q_, "QLinearAffine",
        {x->codes, each_channel(factor, "factor"), each_channel(shift, "shift"), zero_of(out_)},
        q_.output(0)->name(), 1, kOwn);
    if (channels.axis != 1) made.set_int("channels_last", 1);
    return take(made);
  }

  /// Floats, one for each channel.
  Value* each_channel(const std::vector<double>& numbers, Text name) {
    const int64_t all[] = {static_cast<int64_t>(numbers.size())};
    return r_.float_initializer(q_.graph(), all, numbers, name);
  }

  /// `made` has limits of its own, and gives what the anchor gave.
  bool take(Node& made) {
    if (low_ > least_) made.set_int("low", low_);
    if (high_ < greatest_) made.set_int("high", high_);
    r_.touch(made);
    r_.supersede(*q_.output(0), *made.output(0));
    return true;
  }

  /// The producer of a value that nothing else reads, in this graph.
  Node* inner(const Value* value) const {
    Node* node = value != nullptr ? value->producer() : nullptr;
    return node != nullptr && Rewriter::single_use(value) && &node->graph() == &q_.graph()
               ? node
               : nullptr;
  }

  /// Scale and zero point of one number each, both constant.
  bool meaning(const Node& node, DType dtype, Codes& to) {
    const auto scale = one_scale(r_, node);
    if (!scale) return false;
    to.scale = node.input(1);
    to.step = *scale;
    to.zero = node.input(2);
    to.origin = 0;
    if (to.zero == nullptr) return true;
    const auto zero = r_.scalar(to.zero);
    if (!zero || r_.dtype(to.zero) != dtype || r_.rank(to.zero).value_or(9) > 1) return false;
    to.origin = static_cast<int64_t>(*zero);
    return true;
  }

  /// The codes that `value` is dequantised from; activations.
  std::optional<Codes> codes_of(const Value* value) {
    Node* node = r_.producer(value, "DequantizeLinear");
    if (node == nullptr || &node->graph() != &q_.graph() || r_.dtype(value) != DType::kFloat32)
      return std::nullopt;
    Codes codes;
    codes.codes = node->input(0);
    if (!is_byte(r_.dtype(codes.codes)) || !meaning(*node, r_.dtype(codes.codes), codes))
      return std::nullopt;
    return codes;
  }

  /// The zero point as an input: one is made where none was given.
  Value* zero_of(const Codes& codes) {
    if (codes.zero != nullptr) return codes.zero;
    return r_.byte_initializer(q_.graph(), r_.dtype(codes.codes), 0, "zero_point");
  }

  /// A constant over and over, `count` elements in all; null where there is no room.
  Value* repeated(const Value* given, int64_t count) {
    const Tensor& one = *r_.constant(given);
    auto all = Tensor::allocate(one.dtype(), {{count}});
    if (!all) return nullptr;
    for (int64_t i = 0; i < count; ++i) all->set_double(i, one.get_double(i % one.size()));
    return r_.initializer(q_.graph(), *std::move(all), given->name());
  }

  int64_t code(double number) const {
    const double q = std::nearbyint(static_cast<double>(static_cast<float>(number) /
                                                        static_cast<float>(out_.step))) +
                     static_cast<double>(out_.origin);
    return static_cast<int64_t>(
        std::clamp(q, static_cast<double>(least_), static_cast<double>(greatest_)));
  }
  bool bound(const Node& node) {
    if (r_.is(&node, "Relu")) {
      limit(code(0), greatest_);
      return true;
    }
    if (!r_.is(&node, "Clip")) return false;
    int64_t limits[2] = {least_, greatest_};
    for (const size_t i : {size_t(0), size_t(1)}) {
      if (node.input(i + 1) == nullptr) continue;
      const auto number = r_.scalar(node.input(i + 1));
      if (!number || std::isnan(*number)) return false;
      limits[i] = code(*number);
    }
    if (limits[0] > limits[1]) return false;
    limit(limits[0], limits[1]);
    return true;
  }
  /// Outer bounds were seen first: these hold before them.
  void limit(int64_t low, int64_t high) {
    low_ = std::clamp(low, low_, high_);
    high_ = std::clamp(high, low_, high_);
  }

  /// Weights: constant bytes, one scale or one each along `axis`.
  struct Weights {
    Value* codes = nullptr;
    Value* scale = nullptr;
    Value* zero = nullptr;
    std::vector<double> steps;
  };
  std::optional<Weights> weights_of(const Value* value, int64_t axis, int64_t count) {
    Node* node = r_.producer(value, "DequantizeLinear");
    if (node == nullptr || !is_plain_scale(*node) || r_.dtype(value) != DType::kFloat32)
      return std::nullopt;
    Weights w{node->input(0), node->input(1), node->input(2), {}};
    const DType dtype = r_.dtype(w.codes);
    const auto rank = r_.rank(w.codes), scale_rank = r_.rank(w.scale);
    if (!r_.is_constant(w.codes) || !is_byte(dtype) || !rank || !scale_rank || *scale_rank > 1 ||
        r_.dtype(w.scale) != DType::kFloat32)
      return std::nullopt;
    const Tensor* scale = r_.constant(w.scale);
    if (scale == nullptr || (scale->size() != 1 && scale->size() != count)) return std::nullopt;
    if (scale->size() != 1 || (count == 1 && *scale_rank == 1)) {
      int64_t along = AttributeReader(*node).get_int("axis", 1);
      if (along < 0) along += static_cast<int64_t>(*rank);
      if (scale->size() != 1 && along != axis) return std::nullopt;
    }
    for (int64_t i = 0; i < scale->size(); ++i) {
      w.steps.push_back(scale->get_double(i));
      if (!(w.steps.back() > 0) || !std::isfinite(w.steps.back())) return std::nullopt;
    }
    if (w.zero != nullptr) {
      const Tensor* zero = r_.constant(w.zero);
      if (zero == nullptr || zero->dtype() != dtype || zero->size() != scale->size())
        return std::nullopt;
    }
    return w;
  }
  Value* zero_of(const Weights& w) {
    return w.zero != nullptr ? w.zero : zero_of(Codes{w.codes, w.scale, nullptr, 0, 0});
  }

  /// A constant bias of `count` floats, or of integers behind a DequantizeLinear.
  struct Bias {
    Node* dequantize;
    const Tensor* numbers;
    const Tensor* scale;  ///< null: they are floats

    double step(int64_t i) const {
      return scale == nullptr ? 1 : scale->get_double(scale->size() == 1 ? 0 : i);
    }
  };
  std::optional<Bias> read_bias(Value* bias, int64_t count) const {
    Node* node = r_.producer(bias, "DequantizeLinear");
    const Tensor* given = r_.constant(node != nullptr ? node->input(0) : bias);
    if (given == nullptr || given->size() != count ||
        (given->rank() != 1 && !(given->rank() == 2 && given->dim(0) == 1)))
      return std::nullopt;
    if (node == nullptr)
      return given->dtype() == DType::kFloat32 ? std::optional(Bias{nullptr, given, nullptr})
                                               : std::nullopt;
    const Tensor* scale = r_.constant(node->input(1));
    const auto zero = node->input(2) == nullptr ? 0.0 : one_value(node->input(2));
    if (given->dtype() != DType::kInt32 || scale == nullptr || zero != 0.0 ||
        !is_plain_scale(*node) || (scale->size() != 1 && scale->size() != count))
      return std::nullopt;
    return Bias{node, given, scale};
  }

  /// The bias in steps of the sums. One of other steps may be rounded where that is little.
  std::optional<Value*> bias_of(Value* bias, const Codes& x, const Weights& w, int64_t count) {
    if (bias == nullptr) return nullptr;
    const auto read = read_bias(bias, count);
    if (!read) return std::nullopt;
    const auto [node, given, scale] = *read;
    std::vector<int32_t> sums(static_cast<size_t>(count));
    bool same = node != nullptr && given->rank() == 1;
    for (int64_t i = 0; i < count; ++i) {
      const double step = x.step * w.steps[w.steps.size() == 1 ? 0 : static_cast<size_t>(i)];
      double number = given->get_double(i);
      if (scale != nullptr) {
        const double own = read->step(i);
        if (std::fabs(own - step) <= 1e-5 * step) {
          sums[static_cast<size_t>(i)] = static_cast<int32_t>(number);
          continue;
        }
        number *= own;
      }
      same = false;
      const double rounded = std::nearbyint(number / step);
      if (!(std::fabs(rounded) < 2e9) || step > out_.step / 8) return std::nullopt;
      sums[static_cast<size_t>(i)] = static_cast<int32_t>(rounded);
    }
    if (same) return node->input(0);
    const int64_t dims[] = {count};
    return r_.initializer(q_.graph(), Tensor::of<int32_t>(DType::kInt32, dims, sums), bias->name());
  }
  /// The value that all elements of a constant have, or NaN.
  double one_value(const Value* value) const {
    const Tensor* tensor = r_.constant(value);
    if (tensor == nullptr || tensor->size() < 1) return std::nan("");
    for (int64_t i = 1; i < tensor->size(); ++i)
      if (tensor->get_double(i) != tensor->get_double(0)) return std::nan("");
    return tensor->get_double(0);
  }

  bool finish(Node& made) {
    r_.touch(made);
    Value* result = made.output(0);
    if (low_ > least_ || high_ < greatest_) {
      const DType dtype = r_.dtype(q_.output(0));
      const auto limit = [&](int64_t number) {
        return r_.byte_initializer(q_.graph(), dtype, number, "limit");
      };
      Node& clip = r_.add(q_, "Clip", {result, limit(low_), limit(high_)}, q_.output(0)->name());
      result = clip.output(0);
    }
    r_.supersede(*q_.output(0), *result);
    return true;
  }

  bool conv(Node& node) {
    if (!r_.is(&node, "Conv")) return false;
    const auto x = codes_of(node.input(0));
    const auto dims = r_.dims(node.input(1));
    if (!x || !dims || dims->size() < 3 || (*dims)[0] < 1) return false;
    const auto w = weights_of(node.input(1), 0, (*dims)[0]);
    if (!w) return false;
    const auto bias = bias_of(node.input(2), *x, *w, (*dims)[0]);
    if (!bias) return false;
    std::vector<Value*> inputs = {x->codes, x->scale,    zero_of(*x), w->codes,
                                  w->scale, zero_of(*w), out_.scale,  zero_of(out_)};
    if (*bias != nullptr) inputs.push_back(*bias);
    Node& made = r_.add(q_, "QLinearConv", inputs, q_.output(0)->name());
    copy_attributes(node, made);
    return finish(made);
  }

  bool gemm(Node& node) {
    if (!r_.is(&node, "Gemm")) return false;
    const AttributeReader attributes(node);
    return attributes.get_int("transA", 0) == 0 && attributes.get_float("alpha", 1) == 1 &&
           (node.input(2) == nullptr || attributes.get_float("beta", 1) == 1) &&
           gemm(node.input(0), node.input(1), attributes.get_int("transB", 0) != 0, node.input(2));
  }
  /// A MatMul of two matrices and what is added to its columns.
  bool biased_matmul(Node& add) {
    if (!r_.is(&add, "Add")) return false;
    for (const size_t side : {size_t(0), size_t(1)}) {
      const Node* const node = inner(add.input(side));
      if (r_.is(node, "MatMul") && r_.rank(node->input(0)) == size_t(2) &&
          gemm(node->input(0), node->input(1), false, add.input(1 - side)))
        return true;
    }
    return false;
  }
  bool gemm(Value* a, Value* b, bool turned, Value* c) {
    const auto x = codes_of(a);
    const auto dims = r_.dims(b);
    if (!x || !dims || dims->size() != 2) return false;
    const int64_t axis = turned ? 0 : 1, count = (*dims)[static_cast<size_t>(axis)];
    const auto w = weights_of(b, axis, count);
    if (!w) return false;
    const auto bias = bias_of(c, *x, *w, count);
    if (!bias) return false;
    Node& made = r_.add(q_, "QGemm",
                        {x->codes, x->scale, zero_of(*x), w->codes, w->scale, zero_of(*w), *bias,
                         out_.scale, zero_of(out_)},
                        q_.output(0)->name(), 1, kMicrosoft);
    if (turned) made.set_int("transB", 1);
    return finish(made);
  }

  bool matmul(Node& node) {
    if (!r_.is(&node, "MatMul")) return false;
    const auto x = codes_of(node.input(0));
    const auto y = codes_of(node.input(1));
    const auto rank = r_.rank(node.input(1));
    if (!x || !rank || *rank < 2 || r_.rank(node.input(0)).value_or(0) < 2) return false;
    std::vector<Value*> inputs = {x->codes, x->scale, zero_of(*x)};
    if (y && !r_.is_constant(y->codes)) {
      inputs.insert(inputs.end(), {y->codes, y->scale, zero_of(*y)});
    } else {
      const auto columns = r_.dim(node.input(1), -1);
      const auto w = columns && *rank == 2 ? weights_of(node.input(1), 1, *columns) : std::nullopt;
      if (!w) return false;
      inputs.insert(inputs.end(), {w->codes, w->scale, zero_of(*w)});
    }
    inputs.insert(inputs.end(), {out_.scale, zero_of(out_)});
    return finish(r_.add(q_, "QLinearMatMul", inputs, q_.output(0)->name()));
  }

  bool binary(Node& node) {
    const bool add = r_.is(&node, "Add");
    if (!add && !r_.is(&node, "Mul")) return false;
    const auto a = codes_of(node.input(0)), b = codes_of(node.input(1));
    const DType dtype = r_.dtype(q_.output(0));
    if (!a || !b || r_.dtype(a->codes) != dtype || r_.dtype(b->codes) != dtype) return false;
    Node& made = r_.add(q_, add ? "QLinearAdd" : "QLinearMul",
                        {a->codes, a->scale, zero_of(*a), b->codes, b->scale, zero_of(*b),
                         out_.scale, zero_of(out_)},
                        q_.output(0)->name(), 1, kMicrosoft);
    return finish(made);
  }

  bool pool(Node& node) {
    const bool global = r_.is(&node, "GlobalAveragePool");
    if (!global && !r_.is(&node, "AveragePool")) return false;
    const auto x = codes_of(node.input(0));
    if (!x || r_.dtype(x->codes) != r_.dtype(q_.output(0)) ||
        r_.rank(node.input(0)).value_or(0) != 4)
      return false;
    const AttributeReader attributes(node);
    for (const int64_t one : attributes.get_ints("dilations"))
      if (one != 1) return false;
    Node& made = r_.add(q_, global ? "QLinearGlobalAveragePool" : "QLinearAveragePool",
                        {x->codes, x->scale, zero_of(*x), out_.scale, zero_of(out_)},
                        q_.output(0)->name(), 1, kMicrosoft);
    copy_attributes(node, made, {"dilations"});
    return finish(made);
  }

  /// The greatest number has the greatest code.
  bool max_pool(Node& node) {
    if (!r_.is(&node, "MaxPool")) return false;
    const auto x = codes_of(node.input(0));
    if (!x || !same_meaning(*x)) return false;
    Node& made = r_.add(q_, "MaxPool", {x->codes}, q_.output(0)->name());
    copy_attributes(node, made);
    return finish(made);
  }

  bool same_meaning(const Codes& x) const {
    return r_.dtype(x.codes) == r_.dtype(q_.output(0)) && x.step == out_.step &&
           x.origin == out_.origin;
  }

  bool concat(Node& node) {
    if (!r_.is(&node, "Concat")) return false;
    std::vector<Value*> inputs = {out_.scale, nullptr};
    std::vector<Codes> all;
    for (const Value* input : node.inputs()) {
      const auto x = codes_of(input);
      if (!x || r_.dtype(x->codes) != r_.dtype(q_.output(0))) return false;
      all.push_back(*x);
    }
    inputs[1] = zero_of(out_);
    for (const Codes& x : all) {
      inputs.push_back(x.codes);
      inputs.push_back(x.scale);
      inputs.push_back(zero_of(x));
    }
    Node& made = r_.add(q_, "QLinearConcat", inputs, q_.output(0)->name(), 1, kMicrosoft);
    copy_attributes(node, made);
    return finish(made);
  }

  bool unary(Node& node) {
    Text op;
    if (r_.is(&node, "Sigmoid")) op = "QLinearSigmoid";
    if (r_.is(&node, "LeakyRelu")) op = "QLinearLeakyRelu";
    if (op.empty()) return false;
    const auto x = codes_of(node.input(0));
    if (!x || r_.dtype(x->codes) != r_.dtype(q_.output(0))) return false;
    Node& made = r_.add(q_, op, {x->codes, x->scale, zero_of(*x), out_.scale, zero_of(out_)},
                        q_.output(0)->name(), 1, kMicrosoft);
    copy_attributes(node, made);
    return finish(made);
  }

  Rewriter& r_;
  Node& q_;
  Codes out_;
  int64_t least_ = 0, greatest_ = 255, low_ = 0, high_ = 255;
};

}  // namespace

Result<size_t> integer_operators(Rewriter& rewriter) {
  return change_each_quantise(rewriter,
                              [&](Node& node) { return Sandwich(rewriter, node).rewrite(); });
}

/// Sums and products of codes with constant ones of each channel of an image: as an operator of two
/// tensors of codes they would have their channels in front, between convolutions that have not.
Result<size_t> integer_affines(Rewriter& rewriter) {
  return change_each_quantise(rewriter,
                              [&](Node& node) { return Sandwich(rewriter, node).affine(true); });
}

Result<size_t> integer_products(Rewriter& rewriter) {
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (node->outputs().empty() || node->output(0) == nullptr)
        continue;
      else if (rewriter.is(node, "MatMul") || rewriter.is(node, "Gemm"))
        count += Sandwich(rewriter, *node).multiply();
      else if (rewriter.is(node, "Conv"))
        count += Sandwich(rewriter, *node).convolve();
      else if (rewriter.is(node, "QuantizeLinear"))
        count += Sandwich(rewriter, *node).conv_transpose() || Sandwich(rewriter, *node).affine() ||
                 Sandwich(rewriter, *node).instance_norm();
  });
  return count;
}

}  // namespace tombolo::passes
