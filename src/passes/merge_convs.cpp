// Convolutions of one input that are added are one, whose kernel is their sum, and so is one beside
// a normalisation of its input: networks that are trained with parallel branches (RepVGG,
// MobileOne) compute like those that are not.

#include <algorithm>

#include "passes/attributes.h"
#include "passes/by_channel.h"
#include "passes/each_node.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// A convolution with constant weights whose result is read once.
struct Branch {
  Node* node = nullptr;
  std::vector<int64_t> dims;  ///< of the weights
  std::vector<int64_t> begins, strides, dilations;
  int64_t groups = 1;
};

std::vector<int64_t> or_ones(std::span<const int64_t> list, size_t count) {
  return list.empty() ? std::vector<int64_t>(count, 1)
                      : std::vector<int64_t>(list.begin(), list.end());
}

std::optional<Branch> branch(const Rewriter& rewriter, const Value* value, const Node& reader) {
  Branch found;
  found.node = rewriter.producer(value, "Conv");
  if (found.node == nullptr || &found.node->graph() != &reader.graph() ||
      !Rewriter::single_use(value) || found.node->input(0) == nullptr ||
      !rewriter.is_constant(found.node->input(1)) ||
      (found.node->input(2) != nullptr && !rewriter.is_constant(found.node->input(2))))
    return std::nullopt;
  const auto dims = rewriter.dims(found.node->input(1));
  const AttributeReader attributes(*found.node);
  if (!dims || dims->size() < 3 || rewriter.dtype(found.node->input(1)) != rewriter.dtype(value) ||
      attributes.get_string("auto_pad", "NOTSET") != "NOTSET")
    return std::nullopt;
  const size_t spatial = dims->size() - 2;
  found.dims = *dims;
  found.strides = or_ones(attributes.get_ints("strides"), spatial);
  found.dilations = or_ones(attributes.get_ints("dilations"), spatial);
  found.groups = attributes.get_int("group", 1);
  const auto pads = attributes.get_ints("pads");
  if (!pads.empty() && pads.size() != 2 * spatial) return std::nullopt;
  // Whatever a file says.
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto beyond = [](int64_t low) {
    return [low](int64_t number) { return number < low || number > kMost; };
  };
  if (std::any_of(found.dims.begin(), found.dims.end(), beyond(1)) ||
      std::any_of(found.dilations.begin(), found.dilations.end(), beyond(1)) ||
      std::any_of(pads.begin(), pads.end(), beyond(0)) || found.dilations.size() != spatial ||
      found.strides.size() != spatial)
    return std::nullopt;
  for (size_t i = 0; i < spatial; ++i) found.begins.push_back(pads.empty() ? 0 : pads[i]);
  return found;
}

/// Where in the kernel of `wide` a window of lengths `window` begins that has `begins` of padding.
std::optional<std::vector<int64_t>> place(const Branch& wide, std::span<const int64_t> window,
                                          std::span<const int64_t> begins,
                                          std::span<const int64_t> dilations) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < wide.begins.size(); ++i) {
    const int64_t apart = wide.begins[i] - begins[i], step = wide.dilations[i];
    if (apart < 0 || apart % step != 0 || (window[i] != 1 && dilations[i] != step) ||
        apart / step + window[i] > wide.dims[i + 2])
      return std::nullopt;
    result.push_back(apart / step);
  }
  return result;
}

/// The place of element `i` of a window in the kernel that it is put into at `at`.
int64_t within(const Branch& wide, std::span<const int64_t> window, std::span<const int64_t> at,
               int64_t i) {
  int64_t result = 0, step = 1;
  for (size_t axis = window.size(); axis-- > 0;) {
    result += (i % window[axis] + at[axis]) * step;
    i /= window[axis];
    step *= wide.dims[axis + 2];
  }
  return result;
}

/// Weights and bias of a convolution, for others to be added.
struct Sum {
  Tensor weight, bias;
};

Result<std::optional<Sum>> parameters(const Rewriter& rewriter, const Branch& of) {
  const Tensor* weight = rewriter.constant(of.node->input(1));
  const Value* given = of.node->input(2);
  const Tensor* own = given != nullptr ? rewriter.constant(given) : nullptr;
  const int64_t outputs[] = {of.dims[0]};
  if (weight == nullptr || (given != nullptr && (own == nullptr || own->size() != outputs[0])))
    return std::nullopt;
  TRY(Tensor kernel, weight->clone());
  TRY(Tensor bias, Tensor::allocate(kernel.dtype(), outputs));
  for (int64_t c = 0; c < outputs[0]; ++c)
    bias.set_double(c, own != nullptr ? own->get_double(c) : 0);
  return Sum{std::move(kernel), std::move(bias)};
}

void add_to(Tensor& tensor, int64_t at, double value) {
  tensor.set_double(at, tensor.get_double(at) + value);
}

/// `wide` and `other` in one; nothing where other windows slide.
Result<std::optional<Sum>> with_convolution(const Rewriter& rewriter, const Branch& wide,
                                            const Branch& other) {
  const std::span<const int64_t> window(other.dims.begin() + 2, other.dims.end());
  const auto at = place(wide, window, other.begins, other.dilations);
  if (!at || other.groups != wide.groups || other.strides != wide.strides ||
      other.dims[0] != wide.dims[0] || other.dims[1] != wide.dims[1])
    return std::nullopt;
  TRY(auto sum, parameters(rewriter, wide));
  TRY(const auto more, parameters(rewriter, other));
  if (!sum || !more) return std::nullopt;
  const int64_t from = element_count(window), matrices = wide.dims[0] * wide.dims[1];
  const int64_t to = sum->weight.size() / matrices;
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t i = 0; i < from; ++i)
      add_to(sum->weight, m * to + within(wide, window, *at, i),
             more->weight.get_double(m * from + i));
  for (int64_t c = 0; c < wide.dims[0]; ++c) add_to(sum->bias, c, more->bias.get_double(c));
  return sum;
}

/// `wide` and a BatchNormalization of its input in one.
Result<std::optional<Sum>> with_normalisation(Rewriter& rewriter, const Branch& wide,
                                              const Node& norm) {
  const std::vector<int64_t> ones(wide.begins.size(), 1), none(wide.begins.size(), 0);
  const auto at = place(wide, ones, none, ones);
  const int64_t channels = wide.dims[0];
  if (!at || wide.strides != ones || channels != wide.dims[1] * wide.groups) return std::nullopt;
  const auto affine = batch_norm_affine(rewriter, norm, channels);
  if (!affine) return std::nullopt;
  TRY(auto sum, parameters(rewriter, wide));
  if (!sum) return std::nullopt;
  const int64_t places = sum->weight.size() / (channels * wide.dims[1]);
  const int64_t centre = within(wide, ones, *at, 0);
  for (int64_t c = 0; c < channels; ++c) {
    add_to(sum->weight, (c * wide.dims[1] + c % wide.dims[1]) * places + centre,
           affine->factor[static_cast<size_t>(c)]);
    add_to(sum->bias, c, affine->shift[static_cast<size_t>(c)]);
  }
  return sum;
}

Result<bool> merge(Rewriter& rewriter, Node& add) {
  if (!rewriter.is(&add, "Add") || add.inputs().size() != 2 || add.output(0) == nullptr)
    return false;
  for (const size_t side : {size_t(0), size_t(1)}) {
    const Value* beside = add.input(1 - side);
    const auto wide = branch(rewriter, add.input(side), add);
    if (!wide || beside == nullptr || !rewriter.same_shape(add.input(side), beside)) continue;
    const DType dtype = rewriter.dtype(beside);
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) continue;
    const auto other = branch(rewriter, beside, add);
    Node* norm = rewriter.producer(beside, "BatchNormalization");
    if (other ? other->node->input(0) != wide->node->input(0)
              : norm == nullptr || norm->input(0) != wide->node->input(0) ||
                    !Rewriter::single_use(beside) || &norm->graph() != &add.graph())
      continue;
    TRY(const auto sum, other ? with_convolution(rewriter, *wide, *other)
                              : with_normalisation(rewriter, *wide, *norm));
    if (!sum) continue;
    const Node& was = *wide->node;
    Graph& graph = add.graph();
    Value* kernel = rewriter.initializer(graph, sum->weight, was.input(1)->name());
    Value* bias = rewriter.initializer(
        graph, sum->bias, was.input(2) != nullptr ? was.input(2)->name() : Text("bias"));
    Node& made = rewriter.add(add, "Conv", {was.input(0), kernel, bias}, add.output(0)->name());
    copy_attributes(was, made);
    rewriter.touch(made);
    rewriter.supersede(*add.output(0), *made.output(0));
    return true;
  }
  return false;
}

}  // namespace

Result<size_t> merge_convolutions(Rewriter& rewriter) { return change_each_node(rewriter, merge); }

}  // namespace tombolo::passes
