// What follows a convolution or a matrix product channel by channel goes into its weights:
//   BN(conv(x, W) + b) = conv(x, k W) + (k (b - mean) + beta),  k = scale / sqrt(variance +
//   epsilon)
// and the same for Mul, Div, Add and Sub with a constant. Everything is computed in double and
// rounded once.

#include <cmath>
#include <cstring>

#include "base/float_formats.h"
#include "ir/borrowed.h"
#include "passes/by_channel.h"
#include "passes/each_node.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

enum class Kind { kConv, kConvTranspose, kGemm, kMatMul };

bool is_convolution(Kind kind) { return kind == Kind::kConv || kind == Kind::kConvTranspose; }

/// A node y = W(x) + b with constant W and b, whose channels can be scaled and shifted.
struct Linear {
  Node* node = nullptr;
  Kind kind = Kind::kConv;
  int64_t channels = 0;
  size_t rank = 0;          ///< of the output
  size_t channel_axis = 1;  ///< of the output

  Channels output() const { return {rank, channel_axis, channels}; }
};

/// `value` is the output of such a node, read by nobody else.
std::optional<Linear> linear(const Rewriter& rewriter, const Value* value, const Node& reader) {
  if (!Rewriter::single_use(value)) return std::nullopt;
  Node* node = value->producer();
  if (node == nullptr || &node->graph() != &reader.graph()) return std::nullopt;
  Linear found;
  found.node = node;
  if (rewriter.is(node, "Conv"))
    found.kind = Kind::kConv;
  else if (rewriter.is(node, "ConvTranspose"))
    found.kind = Kind::kConvTranspose;
  else if (rewriter.is(node, "Gemm"))
    found.kind = Kind::kGemm;
  else if (rewriter.is(node, "MatMul"))
    found.kind = Kind::kMatMul;
  else
    return std::nullopt;
  const Value* weight = node->input(1);
  if (weight == nullptr || !rewriter.is_constant(weight)) return std::nullopt;
  const DType dtype = rewriter.dtype(weight);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kFloat16 &&
      dtype != DType::kBFloat16)
    return std::nullopt;
  const auto dims = rewriter.dims(weight);
  if (!dims) return std::nullopt;
  const AttributeReader attributes(*node);
  switch (found.kind) {
    case Kind::kConv:
      if (dims->size() < 3) return std::nullopt;
      found.channels = (*dims)[0];
      found.rank = dims->size();
      break;
    case Kind::kConvTranspose:
      if (dims->size() < 3) return std::nullopt;
      found.channels = (*dims)[1] * attributes.get_int("group", 1);
      found.rank = dims->size();
      break;
    case Kind::kGemm:
      if (dims->size() != 2) return std::nullopt;
      found.channels = (*dims)[attributes.get_int("transB", 0) != 0 ? 0 : 1];
      found.rank = 2;
      break;
    case Kind::kMatMul: {
      const auto rank = rewriter.rank(value);
      if (dims->size() != 2 || !rank || *rank < 2) return std::nullopt;
      found.channels = (*dims)[1];
      found.rank = *rank;
      found.channel_axis = *rank - 1;
      break;
    }
  }
  if (node->input(2) != nullptr && !rewriter.is_constant(node->input(2))) return std::nullopt;
  if (found.channels <= 0) return std::nullopt;
  return found;
}

/// The node's bias as doubles (its factor beta included), zeros where it has none.
std::optional<std::vector<double>> bias_of(Rewriter& rewriter, const Linear& linear) {
  std::vector<double> out(static_cast<size_t>(linear.channels), 0.0);
  const Value* bias = linear.node->input(2);
  if (bias == nullptr || linear.kind == Kind::kMatMul) return out;
  const auto found = by_channel(rewriter, bias, linear.output());
  const auto dims = rewriter.dims(bias);
  // A convolution's bias stands along the channels, whatever axis broadcasting would give it.
  if (linear.kind != Kind::kGemm) {
    const Tensor* tensor = rewriter.constant(bias);
    if (tensor == nullptr || tensor->size() != linear.channels) return std::nullopt;
    for (size_t c = 0; c < out.size(); ++c) out[c] = tensor->get_double(static_cast<int64_t>(c));
    return out;
  }
  if (!found || !dims) return std::nullopt;
  const double beta = AttributeReader(*linear.node).get_float("beta", 1);
  for (size_t c = 0; c < out.size(); ++c) out[c] = (*found)[c] * beta;
  return out;
}

bool only_ones(const std::vector<double>& values) {
  for (const double value : values)
    if (value != 1) return false;
  return true;
}

/// Whether `after` is what a weight times `factor` becomes without leaving its type's range.
bool fits(double before, double factor, double after) {
  return (std::isfinite(after) || !std::isfinite(before)) &&
         (after != 0 || before == 0 || factor == 0);
}

/// Elements [at, at + n) of `from`, times `factor`. False where one leaves the type's range.
bool scale_run(const Tensor& from, int64_t at, int64_t n, double factor, Tensor& to) {
  // Below the smallest normal number a float16 loses what it says.
  const double least = to.dtype() == DType::kFloat16 ? 6.2e-5 : 0;
  for (int64_t i = at; i < at + n; ++i) {
    const double before = from.get_double(i);
    to.set_double(i, before * factor);
    const double after = to.get_double(i);
    if (!fits(before, factor, after)) return false;
    if (after != 0 && std::abs(after) < least && std::abs(before) >= least) return false;
  }
  return true;
}

/// The same of floats at any address, without asking for the type of each.
bool scale_floats(const std::byte* from, int64_t n, double factor, float* to) {
  bool all = true;
  for (int64_t i = 0; i < n; ++i) {
    float before;
    std::memcpy(&before, from + i * 4, sizeof before);
    to[i] = static_cast<float>(before * factor);
    all &= fits(before, factor, to[i]);
  }
  return all;
}

/// Which elements of a weight belong to which channel: runs of `inner` elements share one.
struct ChannelRuns {
  int64_t inner = 1, runs = 0;
  int64_t count = 1;         ///< channels that runs go through before the first comes again
  int64_t rows_a_group = 0;  ///< of ConvTranspose: each group has `count` channels of its own

  int64_t channel(int64_t run) const {
    return run % count + (rows_a_group > 0 ? run / count / rows_a_group * count : 0);
  }
  friend bool operator==(const ChannelRuns&, const ChannelRuns&) = default;
};

ChannelRuns channel_runs(const Linear& linear, std::span<const int64_t> dims) {
  const AttributeReader attributes(*linear.node);
  ChannelRuns out{.count = linear.channels};
  if (is_convolution(linear.kind)) {
    for (size_t i = linear.kind == Kind::kConv ? 1 : 2; i < dims.size(); ++i) out.inner *= dims[i];
  } else if (linear.kind == Kind::kGemm && attributes.get_int("transB", 0) != 0) {
    out.inner = dims[1];
  }
  if (linear.kind == Kind::kConvTranspose) {
    const int64_t group = attributes.get_int("group", 1);
    out.count = dims[1];
    out.rows_a_group = group > 0 ? dims[0] / group : 1;
  }
  out.runs = out.inner == 0 ? 0 : element_count(dims) / out.inner;
  return out;
}

bool is_scaled_as_floats(DType from, DType to) {
  return to == DType::kFloat32 &&
         (from == DType::kFloat32 || from == DType::kFloat16 || from == DType::kBFloat16);
}

/// `n` floats of `from`, elements at any address, as floats: in `to` unless they are floats.
const std::byte* as_floats(DType dtype, const std::byte* from, int64_t n, float* to) {
  if (dtype == DType::kFloat32) return from;
  decode_floats(dtype, from, static_cast<size_t>(n), to);
  return reinterpret_cast<const std::byte*>(to);
}

/// A weight whose channels are scaled when it is packed: written down it would take as much memory
/// as the file's, and a page that is new to the process costs more than computing what stands
/// there.
class ScaledWeight final : public Deferred {
 public:
  /// `weight` may lie anywhere.
  ScaledWeight(Tensor weight, ChannelRuns runs, std::vector<double> factor)
      : weight_(std::move(weight)), runs_(runs), factor_(std::move(factor)) {}

  void write(std::byte* to) const override {
    auto* out = reinterpret_cast<float*>(to);
    const auto width = static_cast<int64_t>(bits_of(weight_.dtype()) / 8);
    // Where neighbours are channels, a row of all channels is worked on at a time.
    const bool beside = runs_.inner == 1 && runs_.rows_a_group == 0;
    const int64_t length = beside ? runs_.count : runs_.inner;
    const int64_t lines = beside ? runs_.runs / runs_.count : runs_.runs;
    for (int64_t line = 0; line < lines; ++line, out += length) {
      const std::byte* from = as_floats(
          weight_.dtype(), weight_.data<std::byte>() + line * length * width, length, out);
      const double* factor = factor_.data() + (beside ? 0 : runs_.channel(line));
      for (int64_t i = 0; i < length; ++i) {
        float before;
        std::memcpy(&before, from + i * 4, sizeof before);
        out[i] = static_cast<float>(before * factor[beside ? i : 0]);
      }
    }
  }
  std::span<const std::byte> source() const override { return weight_.bytes(); }
  DType source_dtype() const override { return weight_.dtype(); }

  const Tensor& weight() const { return weight_; }
  const ChannelRuns& runs() const { return runs_; }
  const std::vector<double>& factor() const { return factor_; }

 private:
  Tensor weight_;
  ChannelRuns runs_;
  std::vector<double> factor_;
};

/// The same as scaled_weight() gives, computed when it is asked for. Null where that is not worth
/// it, or where a product might leave the range of floats: nobody looks at the weights for that,
/// so factors must be such that only a number beyond 1e31 could, or one below 1e-31 be lost.
std::shared_ptr<const Deferred> deferred_weight(const Rewriter& rewriter, const Linear& linear,
                                                DType dtype, std::vector<double> factor) {
  // Kernels tell by what is deferred that a model is one in halves: these from smaller ones on.
  constexpr size_t kWorthIt = size_t{64} << 10, kHalvesWorthIt = size_t{8} << 10;
  constexpr double kMost = 1 << 24;
  const Constant* constant = linear.node->input(1)->initializer();
  if (!rewriter.defers || constant == nullptr) return nullptr;
  // Products of halves keep their weights as they are, at half the memory.
  if (!is_convolution(linear.kind) && constant->dtype() != DType::kFloat32) return nullptr;
  const ChannelRuns runs = channel_runs(linear, constant->dims.span());
  Tensor weight;
  if (constant->deferred() != nullptr) {
    const auto* before = dynamic_cast<const ScaledWeight*>(constant->deferred());
    if (before == nullptr || !(before->runs() == runs)) return nullptr;
    weight = before->weight();
    for (size_t c = 0; c < factor.size(); ++c) factor[c] *= before->factor()[c];
  } else {
    // What is decoded for this call would have to be kept.
    if (constant->encoding != Constant::Encoding::kRaw &&
        constant->encoding != Constant::Encoding::kFloat && !constant->is_external())
      return nullptr;
    auto found = constant->value(borrowed(linear.node->graph().storage_ptr()));
    const size_t least = constant->dtype() == DType::kFloat32 ? kWorthIt : kHalvesWorthIt;
    if (!found || found->bytes().size() < least) return nullptr;
    weight = *std::move(found);
  }
  if (!is_scaled_as_floats(weight.dtype(), dtype)) return nullptr;
  for (const double k : factor)
    if (k != 0 && (std::abs(k) > kMost || std::abs(k) < 1 / kMost)) return nullptr;
  return std::make_shared<ScaledWeight>(std::move(weight), runs, std::move(factor));
}

/// W with channel c multiplied by factor[c], in the type that the node computes in: wider than W in
/// networks whose halves were widened. Fails where a product leaves the type's range.
std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Linear& linear, DType dtype,
                                    const std::vector<double>& factor) {
  const Tensor* weight = rewriter.constant(linear.node->input(1));
  if (weight == nullptr) return std::nullopt;
  auto out = Tensor::allocate(dtype, weight->dims());
  if (!out) return std::nullopt;
  const ChannelRuns runs = channel_runs(linear, weight->dims());
  const DType from = weight->dtype();
  const auto width = static_cast<int64_t>(bits_of(from) / 8);
  for (int64_t run = 0; run < runs.runs; ++run) {
    const double k = factor[static_cast<size_t>(runs.channel(run))];
    const int64_t at = run * runs.inner;
    bool within = false;
    if (is_scaled_as_floats(from, dtype)) {
      float* to = out->data<float>() + at;
      within = scale_floats(as_floats(from, weight->data<std::byte>() + at * width, runs.inner, to),
                            runs.inner, k, to);
    } else {
      within = scale_run(*weight, at, runs.inner, k, *out);
    }
    if (!within) return std::nullopt;
  }
  return *std::move(out);
}

/// y = factor (W x + b) + shift. The node gets new weights and takes the place of `user`.
Result<bool> absorb(Rewriter& rewriter, Linear& linear, const std::vector<double>& factor,
                    const std::vector<double>& shift, bool shifts, Node& user) {
  Node& node = *linear.node;
  if (!rewriter.replaceable(*user.output(0), *node.output(0))) return false;
  DType dtype = rewriter.dtype(node.output(0));
  if (dtype == DType::kUndefined) dtype = rewriter.dtype(node.input(1));
  const bool scales = !only_ones(factor);
  // The runtime widens convolutions of halves, and then nothing of the product is lost.
  if (scales && rewriter.defers && is_convolution(linear.kind) &&
      (dtype == DType::kFloat16 || dtype == DType::kBFloat16))
    return false;
  const bool has_bias = node.input(2) != nullptr;
  if (linear.kind == Kind::kMatMul && shifts) return false;
  std::optional<Tensor> weight;
  std::shared_ptr<const Deferred> deferred;
  uint64_t growth = 0;
  if (scales) deferred = deferred_weight(rewriter, linear, dtype, factor);
  if (scales && deferred == nullptr) {
    // A weight that others read too is there twice afterwards.
    if (!Rewriter::single_use(node.input(1))) {
      growth = rewriter.constant(node.input(1))->bytes().size();
      if (rewriter.grown() + growth > rewriter.limits.total_growth) return false;
    }
    weight = scaled_weight(rewriter, linear, dtype, factor);
    if (!weight) return false;
  }
  std::optional<Tensor> bias;
  if (shifts || (has_bias && scales)) {
    auto values = bias_of(rewriter, linear);
    if (!values) return false;
    const int64_t dims[] = {linear.channels};
    TRY(Tensor made, Tensor::allocate(dtype, dims));
    for (size_t c = 0; c < values->size(); ++c) {
      const double number = (*values)[c] * factor[c] + shift[c];
      made.set_double(static_cast<int64_t>(c), number);
      if (std::isfinite(number) && !std::isfinite(made.get_double(static_cast<int64_t>(c))))
        return false;
    }
    bias = std::move(made);
  }
  rewriter.grown() += growth;
  Graph& graph = node.graph();
  const Text name = node.input(1)->name();
  if (deferred != nullptr) {
    const auto dims = *rewriter.dims(node.input(1));
    node.set_input(1, rewriter.initializer(graph, dtype, dims, std::move(deferred), name));
  } else if (weight) {
    node.set_input(1, rewriter.initializer(graph, *weight, name));
  }
  if (bias) {
    const Text hint = has_bias ? node.input(2)->name() : Text("bias");
    node.set_input(2, rewriter.initializer(graph, *bias, hint));
    if (linear.kind == Kind::kGemm) node.remove_attribute("beta");
  }
  rewriter.touch(node);
  rewriter.replace(*user.output(0), *node.output(0));
  rewriter.erase(user);
  return true;
}

Result<bool> absorb_batch_norm(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "BatchNormalization")) return false;
  auto found = linear(rewriter, node.input(0), node);
  if (!found || found->channel_axis != 1 || (found->kind == Kind::kMatMul)) return false;
  const auto affine = batch_norm_affine(rewriter, node, found->channels);
  if (!affine) return false;
  return absorb(rewriter, *found, affine->factor, affine->shift, true, node);
}

/// BN(Reshape(x W)) = Reshape(k (x W) + shift): PyTorch's BatchNorm1d wants rows, so that products
/// of more axes are flattened for it. The last axis stays as it is, and the factor goes into W.
Result<bool> batch_norm_before_reshape(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "BatchNormalization")) return false;
  Node* reshape = rewriter.producer(node.input(0), "Reshape");
  if (reshape == nullptr) reshape = rewriter.producer(node.input(0), "Flatten");
  if (reshape == nullptr || !Rewriter::single_use(reshape->output(0)) ||
      &reshape->graph() != &node.graph() || rewriter.rank(node.input(0)) != 2)
    return false;
  const auto found = linear(rewriter, reshape->input(0), *reshape);
  if (!found || found->kind != Kind::kMatMul || rewriter.dim(node.input(0), 1) != found->channels)
    return false;
  const auto affine = batch_norm_affine(rewriter, node, found->channels);
  if (!affine) return false;
  const int64_t dims[] = {found->channels};
  Value* numbers[2];
  for (const size_t i : {size_t(0), size_t(1)}) {
    const auto& from = i == 0 ? affine->factor : affine->shift;
    TRY(Tensor made, Tensor::allocate(rewriter.dtype(reshape->input(0)), dims));
    for (size_t c = 0; c < from.size(); ++c) made.set_double(static_cast<int64_t>(c), from[c]);
    numbers[i] = rewriter.initializer(node.graph(), made, node.input(i + 1)->name());
  }
  const Text hint = node.output(0)->name();
  Node& scaled = rewriter.add(*reshape, "Mul", {reshape->input(0), numbers[0]}, hint);
  Node& shifted = rewriter.add(*reshape, "Add", {scaled.output(0), numbers[1]}, hint);
  reshape->set_input(0, shifted.output(0));
  rewriter.touch(*reshape);
  rewriter.supersede(*node.output(0), *reshape->output(0));
  return true;
}

/// Mul, Div, Add, Sub of a linear node's output and a constant.
Result<bool> absorb_arithmetic(Rewriter& rewriter, Node& node) {
  const bool mul = rewriter.is(&node, "Mul"), div = rewriter.is(&node, "Div"),
             add = rewriter.is(&node, "Add"), sub = rewriter.is(&node, "Sub");
  if (!mul && !div && !add && !sub) return false;
  for (const size_t side : {size_t(0), size_t(1)}) {
    if (side == 1 && div) break;
    if (node.input(side) == nullptr || node.input(1 - side) == nullptr) continue;
    auto found = linear(rewriter, node.input(side), node);
    if (!found) continue;
    const auto numbers = by_channel(rewriter, node.input(1 - side), found->output());
    if (!numbers) continue;
    std::vector<double> factor(numbers->size(), 1.0), shift(numbers->size(), 0.0);
    for (size_t c = 0; c < numbers->size(); ++c) {
      if (mul) factor[c] = (*numbers)[c];
      if (div) factor[c] = 1 / (*numbers)[c];
      if (add) shift[c] = (*numbers)[c];
      if (sub) shift[c] = side == 0 ? -(*numbers)[c] : (*numbers)[c];
      if (sub && side == 1) factor[c] = -1;
      if (!std::isfinite(factor[c])) return false;
    }
    // 0 * inf is NaN: a channel that is switched off stays as the graph says it.
    for (const double k : factor)
      if (k == 0) return false;
    TRY(const bool done, absorb(rewriter, *found, factor, shift, add || sub, node));
    if (done) return true;
  }
  return false;
}

/// x W + b over rows is what Gemm says: rank 2, a bias of one number a column.
Result<bool> to_gemm(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Add")) return false;
  for (const size_t side : {size_t(0), size_t(1)}) {
    Node* product = rewriter.producer(node.input(side), "MatMul");
    Value* bias = node.input(1 - side);
    if (product == nullptr || bias == nullptr || &product->graph() != &node.graph() ||
        !Rewriter::single_use(product->output(0)) || !rewriter.is_constant(bias) ||
        !rewriter.is_constant(product->input(1)))
      continue;
    const DType dtype = rewriter.dtype(product->output(0));
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kFloat16 &&
        dtype != DType::kBFloat16)
      continue;
    const auto a = rewriter.rank(product->input(0)), b = rewriter.rank(product->input(1));
    const auto dims = rewriter.dims(bias);
    const auto columns = rewriter.dim(product->input(1), 1);
    if (!a || !b || *a != 2 || *b != 2 || !dims || !columns || dims->size() > 2) continue;
    if (!dims->empty() && dims->back() != 1 && dims->back() != *columns) continue;
    if (dims->size() == 2 && (*dims)[0] != 1) continue;
    Node& gemm = rewriter.add(node, "Gemm", {product->input(0), product->input(1), bias},
                              node.output(0)->name());
    rewriter.supersede(*node.output(0), *gemm.output(0));
    rewriter.erase(*product);
    return true;
  }
  return false;
}

/// A Transpose of a matrix before Gemm is an attribute of Gemm.
Result<bool> transpose_into_gemm(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Gemm")) return false;
  for (const uint32_t side : {0u, 1u}) {
    Node* transpose = rewriter.producer(node.input(side), "Transpose");
    if (transpose == nullptr || !Rewriter::single_use(transpose->output(0)) ||
        &transpose->graph() != &node.graph() || rewriter.rank(transpose->output(0)) != 2)
      continue;
    const AttributeReader attributes(*transpose);
    const auto perm = attributes.get_ints("perm");
    if (!perm.empty() && (perm.size() != 2 || perm[0] != 1)) continue;
    const Text name = side == 0 ? "transA" : "transB";
    const bool now = AttributeReader(node).get_int(name, 0) != 0;
    node.set_int(name, now ? 0 : 1);
    node.set_input(side, transpose->input(0));
    rewriter.erase(*transpose);
    rewriter.touch(node);
    return true;
  }
  return false;
}

/// Whether nothing but convolutions reads a value, which take zeros around it as their own.
bool convolutions_alone(const Rewriter& rewriter, const Value& value) {
  return value.output_uses() == 0 &&
         std::all_of(value.uses().begin(), value.uses().end(), [&](const Use& use) {
           if (use.index != 0 || !rewriter.is(use.node, "Conv")) return false;
           const Text automatic = AttributeReader(*use.node).get_string("auto_pad", "NOTSET");
           return automatic == "NOTSET" || automatic == "VALID";
         });
}

/// Zeros around a convolution's input are its pads, also where the axes are moved between the two,
/// as models of images with channels last have it.
Result<bool> pad_into_conv(Rewriter& rewriter, Node& node) {
  const bool conv = rewriter.is(&node, "Conv");
  if (!conv && !rewriter.is(&node, "AveragePool")) return false;
  const AttributeReader attributes(node);
  if (!conv && attributes.get_int("ceil_mode", 0) != 0) return false;
  const Text automatic = attributes.get_string("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return false;
  Node* const turn = rewriter.producer(node.input(0), "Transpose");
  if (turn != nullptr && (&turn->graph() != &node.graph() || turn->input(0) == nullptr ||
                          !Rewriter::single_use(turn->output(0))))
    return false;
  Node& reader = turn != nullptr ? *turn : node;  // of the Pad
  Node* pad = rewriter.producer(reader.input(0), "Pad");
  if (pad == nullptr || &pad->graph() != &node.graph() ||
      !(Rewriter::single_use(pad->output(0)) ||
        (turn == nullptr && convolutions_alone(rewriter, *pad->output(0)))) ||
      AttributeReader(*pad).get_string("mode", "constant") != "constant")
    return false;
  if (pad->input(2) != nullptr) {
    const auto value = rewriter.scalar(pad->input(2));
    if (!value || *value != 0) return false;
  }
  const auto rank = rewriter.rank(node.output(0));
  const auto amounts = rewriter.ints(pad->input(1));
  if (!rank || *rank < 3 || !amounts) return false;
  std::vector<int64_t> full(2 * *rank, 0);
  std::vector<int64_t> axes;
  if (pad->input(3) != nullptr) {
    const auto given = rewriter.ints(pad->input(3));
    if (!given) return false;
    axes = *given;
  } else {
    for (size_t i = 0; i < *rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (amounts->size() != 2 * axes.size()) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(*rank) : axes[i];
    if (axis < 0 || axis >= static_cast<int64_t>(*rank)) return false;
    full[static_cast<size_t>(axis)] = (*amounts)[i];
    full[static_cast<size_t>(axis) + *rank] = (*amounts)[i + axes.size()];
  }
  if (turn != nullptr) {
    const auto perm = AttributeReader(*turn).get_ints("perm");
    if (perm.size() != *rank) return false;
    const std::vector<int64_t> before = full;
    for (size_t i = 0; i < *rank; ++i) {
      if (perm[i] < 0 || perm[i] >= static_cast<int64_t>(*rank)) return false;
      const auto from = static_cast<size_t>(perm[i]);
      full[i] = before[from];
      full[i + *rank] = before[from + *rank];
    }
  }
  const size_t spatial = *rank - 2;
  std::vector<int64_t> pads(2 * spatial, 0);
  const auto own = attributes.get_ints("pads");
  if (!own.empty() && own.size() != pads.size()) return false;
  for (size_t i = 0; i < *rank; ++i)
    for (const size_t end : {size_t(0), size_t(1)}) {
      const int64_t amount = full[i + end * *rank];
      if (amount < 0 || (i < 2 && amount != 0)) return false;
      if (i < 2) continue;
      const size_t at = i - 2 + end * spatial;
      pads[at] = amount + (own.empty() || automatic == "VALID" ? 0 : own[at]);
    }
  if (!conv) {
    // A window that lies in the padding whole divides by its size either way, but pads may not
    // reach the kernel's length.
    const auto kernel = attributes.get_ints("kernel_shape");
    if (kernel.size() != spatial) return false;
    for (size_t i = 0; i < spatial; ++i)
      if (pads[i] >= kernel[i] || pads[i + spatial] >= kernel[i]) return false;
    // The zeros of the Pad count, those of the node's own pads only where it says so.
    const bool own_pads =
        automatic != "VALID" &&
        std::any_of(own.begin(), own.end(), [](int64_t amount) { return amount != 0; });
    if (own_pads && attributes.get_int("count_include_pad", 0) == 0) return false;
    node.set_int("count_include_pad", 1);
  }
  node.remove_attribute("auto_pad");
  node.set_ints("pads", pads);
  reader.set_input(0, pad->input(0));
  if (!pad->output(0)->has_uses()) rewriter.erase(*pad);
  if (turn != nullptr) rewriter.touch(*turn);
  rewriter.touch(node);
  return true;
}

/// What a Slice cuts off the ends of a convolution's output is not computed: Conv takes it from its
/// padding, as causal ones pad both ends and drop one; ConvTranspose crops by its pads anyway.
Result<bool> slice_into_conv(Rewriter& rewriter, Node& slice) {
  if (!rewriter.is(&slice, "Slice")) return false;
  Node* node = rewriter.producer(slice.input(0), "Conv");
  const bool transposed = node == nullptr;
  if (transposed) node = rewriter.producer(slice.input(0), "ConvTranspose");
  if (node == nullptr || &node->graph() != &slice.graph() || !Rewriter::single_use(node->output(0)))
    return false;
  const AttributeReader attributes(*node);
  const auto weight = rewriter.dims(node->input(1));
  const SymShape* whole = rewriter.shape(node->output(0));
  const SymShape* part = rewriter.shape(slice.output(0));
  if (attributes.get_string("auto_pad", "NOTSET") != "NOTSET" ||
      !attributes.get_ints("output_shape").empty() || !weight || weight->size() < 3 ||
      whole == nullptr || part == nullptr || whole->size() != weight->size() ||
      part->size() != weight->size())
    return false;
  const size_t rank = weight->size(), spatial = rank - 2;
  const auto bounds = slice_bounds(rewriter, slice, rank);
  if (!bounds) return false;
  std::vector<int64_t> first(rank, 0);
  std::vector<bool> sliced(rank, false);
  for (size_t i = 0; i < bounds->axes.size(); ++i) {
    const int64_t axis = bounds->axes[i];
    if (axis < 2 || axis >= static_cast<int64_t>(rank) || bounds->steps[i] != 1) return false;
    first[static_cast<size_t>(axis)] = bounds->starts[i];
    sliced[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> pads(2 * spatial, 0);
  if (const auto own = attributes.get_ints("pads"); own.size() == pads.size())
    std::copy(own.begin(), own.end(), pads.begin());
  else if (!own.empty())
    return false;
  const auto strides = attributes.get_ints("strides"), dilations = attributes.get_ints("dilations");
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = i + 2;
    if (!sliced[axis]) continue;
    const auto cut = ((*whole)[axis] - (*part)[axis]).constant();
    const int64_t begin = first[axis];
    // The output without the cuts must have a length, whatever that of the input.
    if (!cut || begin < 0 || begin > *cut) return false;
    const int64_t end = *cut - begin;
    const int64_t extent = ((*weight)[axis] - 1) * (i < dilations.size() ? dilations[i] : 1) + 1;
    if (transposed) {
      pads[i] += begin;
      pads[i + spatial] += end;
      if ((*part)[axis].lower_bound().value_or(0) < 1 && pads[i] + pads[i + spatial] > extent)
        return false;
      continue;
    }
    if (i < strides.size() && strides[i] != 1) return false;
    pads[i] -= begin;
    pads[i + spatial] -= end;
    if (pads[i] < 0 || pads[i + spatial] < 0) return false;
    if ((*part)[axis].lower_bound().value_or(0) < 1 && pads[i] + pads[i + spatial] < extent - 1)
      return false;
  }
  node->set_ints("pads", pads);
  node->output(0)->set_type(slice.output(0)->type());  // what is declared is no longer its shape
  rewriter.touch(*node);
  rewriter.supersede(*slice.output(0), *node->output(0));
  return true;
}

}  // namespace

Result<size_t> fold_batch_norm(Rewriter& rewriter) {
  TRY(size_t count, change_each_node(rewriter, absorb_batch_norm));
  TRY(const size_t moved, change_each_node(rewriter, batch_norm_before_reshape));
  return count + moved;
}
Result<size_t> fold_scale_and_bias(Rewriter& rewriter) {
  return change_each_node(rewriter, absorb_arithmetic);
}
Result<size_t> fold_pad(Rewriter& rewriter) {
  TRY(size_t count, change_each_node(rewriter, pad_into_conv));
  TRY(const size_t cut, change_each_node(rewriter, slice_into_conv));
  return count + cut;
}
Result<size_t> matmul_to_gemm(Rewriter& rewriter) {
  TRY(size_t count, change_each_node(rewriter, to_gemm));
  TRY(const size_t transposes, change_each_node(rewriter, transpose_into_gemm));
  return count + transposes;
}

}  // namespace tombolo::passes
