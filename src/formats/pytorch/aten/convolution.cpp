// Convolutions.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

Attrs window(const Ints& stride, const Ints& pads, const Ints& dilation, int64_t groups) {
  Attrs attrs;
  const auto all = [](const Ints& list, int64_t value) {
    for (const int64_t one : list)
      if (one != value) return false;
    return true;
  };
  if (!all(stride, 1)) attrs.emplace_back("strides", stride);
  if (!all(pads, 0)) attrs.emplace_back("pads", pads);
  if (!all(dilation, 1)) attrs.emplace_back("dilations", dilation);
  if (groups != 1) attrs.emplace_back("group", groups);
  return attrs;
}

void convolve(C& c, Value* x, Value* weight, Value* bias, bool transposed) {
  if (is_complex(c.type("input")) || !is_float(c.dtype(x)))
    return c.refuse("a convolution of " + torch_name(c.type("input")));
  const bool batched = c.rank(x) == c.rank(weight);
  if (c.rank(weight) < 3 || (!batched && c.rank(x) != c.rank(weight) - 1))
    return c.refuse("a convolution of " + std::to_string(c.rank(x)) +
                    " dimensions with weights of " + std::to_string(c.rank(weight)));
  const auto spatial = static_cast<size_t>(c.rank(weight) - 2);
  if (!batched) x = c.unsqueeze(x, {0});
  const Ints stride = c.ints("stride", spatial), dilation = c.ints("dilation", spatial);
  const int64_t groups = c.integer("groups");
  if (stride.size() != spatial || dilation.size() != spatial)
    return c.refuse("strides or dilations for other dimensions");
  Value* y = nullptr;
  if (transposed) {
    const Ints padding = c.ints("padding", spatial), extra = c.ints("output_padding", spatial);
    Ints pads = padding;
    pads.insert(pads.end(), padding.begin(), padding.end());
    Attrs attrs = window(stride, pads, dilation, groups);
    for (const int64_t one : extra)
      if (one != 0) {
        attrs.emplace_back("output_padding", extra);
        break;
      }
    y = c.op("ConvTranspose", {x, weight, bias}, attrs);
  } else {
    Ints pads(2 * spatial, 0);
    const Arg& padding = c.arg("padding");
    if (padding.kind == Arg::Kind::kString) {
      if (padding.text == "same") {
        for (size_t i = 0; i < spatial; ++i) {
          const auto kernel = c.known(weight, static_cast<int64_t>(i) + 2);
          if (!kernel) return c.refuse("a kernel of unknown size");
          const int64_t total = dilation[i] * (*kernel - 1);
          pads[i] = total / 2;
          pads[i + spatial] = total - total / 2;
        }
      }
    } else {
      const Ints both = c.ints("padding", spatial);
      if (both.size() != spatial) return c.refuse("padding for other dimensions");
      for (size_t i = 0; i < spatial; ++i) pads[i] = pads[i + spatial] = both[i];
    }
    y = c.op("Conv", {x, weight, bias}, window(stride, pads, dilation, groups));
  }
  c.out(batched ? y : c.squeeze(y, {0}));
}

void conv(C& c) { convolve(c, c.x("input"), c.x("weight"), c.opt("bias"), false); }
void conv_transpose(C& c) { convolve(c, c.x("input"), c.x("weight"), c.opt("bias"), true); }
void convolution(C& c) {
  convolve(c, c.x("input"), c.x("weight"), c.opt("bias"), c.flag("transposed"));
}

void conv_self(C& c) {
  // slow_conv3d and friends name their arguments differently.
  c.out(
      c.lower("convolution", {c.arg("self"), c.arg("weight"), c.arg("bias"), c.arg("stride"),
                              c.arg("padding"), c.has_arg("dilation") ? c.arg("dilation") : Arg(1),
                              Arg(false), Arg(0), c.has_arg("groups") ? c.arg("groups") : Arg(1)}));
}

/// [time, batch, in] with a [width, in, out] kernel.
void conv_tbc(C& c) {
  Value* x = c.transpose(c.x("self"), {1, 2, 0});
  Value* w = c.transpose(c.x("weight"), {2, 1, 0});
  const int64_t pad = c.integer("pad");
  Value* y = c.op("Conv", {x, w, c.x("bias")}, {{"pads", Ints{pad, pad}}});
  c.out(c.transpose(y, {2, 0, 1}));
}

#define CONV(n)                                                                                   \
  {"conv" n "d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" n "] stride=1, SymInt[" n \
   "] padding=0, SymInt[" n "] dilation=1, SymInt groups=1) -> Tensor",                           \
   conv},                                                                                         \
  {                                                                                               \
    "conv" n "d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" n                \
    "] stride=1, str padding='valid', SymInt[" n "] dilation=1, SymInt groups=1) -> Tensor",      \
        conv                                                                                      \
  }

constexpr Row kConvolutionRows[] = {
    CONV("1"),
    CONV("2"),
    CONV("3"),
    {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, "
     "SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> "
     "Tensor",
     conv_transpose},
    {"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, "
     "SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] dilation=1) -> "
     "Tensor",
     conv_transpose},
    {"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, "
     "SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] dilation=1) -> "
     "Tensor",
     conv_transpose},
    {"convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
     "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
     convolution},
    {"_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
     "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, "
     "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
     convolution},
    {"_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
     "padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool "
     "benchmark, bool deterministic, bool cudnn_enabled) -> Tensor",
     convolution},
    {"_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, "
     "SymInt[] dilation, SymInt groups) -> Tensor",
     conv},
    {"slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] "
     "stride=1, SymInt[3] padding=0) -> Tensor",
     conv_self},
    {"thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] "
     "stride=1, SymInt[2] padding=0) -> Tensor",
     conv_self},
    {"_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] "
     "stride, SymInt[2] padding, SymInt[2] dilation) -> Tensor",
     conv_self},
    {"mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] "
     "stride, SymInt[] dilation, SymInt groups) -> Tensor",
     conv_self},
    {"conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", conv_tbc},
};

}  // namespace

std::span<const Row> convolution_rows() { return kConvolutionRows; }

}  // namespace tombolo::pytorch
