#include <algorithm>
#include <atomic>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/window.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_conv_transpose(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(1);
  if (x == nullptr) return ok();
  const size_t rank = x->size();
  if (rank < 3)
    return context.error("X must have a batch, a channel and spatial axes, but its shape is " +
                         shape_to_string(*x));
  if (w != nullptr && w->size() != rank)
    return context.error("W has rank " + std::to_string(w->size()) + ", but X has rank " +
                         std::to_string(rank));
  const int64_t group = context.attributes.get_int("group", 1);
  if (group <= 0)
    return context.error("group must be positive, but it is " + std::to_string(group));
  const size_t spatial = rank - 2;
  const auto kernel = context.attributes.get_ints("kernel_shape");
  const auto strides = context.attributes.get_ints("strides");
  const auto dilations = context.attributes.get_ints("dilations");
  const auto pads = context.attributes.get_ints("pads");
  const auto extra = context.attributes.get_ints("output_padding");
  const auto output_shape = context.attributes.get_ints("output_shape");
  const Text auto_pad = context.attributes.get_string("auto_pad", "NOTSET");
  const auto fits = [](std::span<const int64_t> list, size_t size) {
    return list.empty() || list.size() == size;
  };
  if (!fits(kernel, spatial) || !fits(strides, spatial) || !fits(dilations, spatial) ||
      !fits(pads, 2 * spatial) || !fits(extra, spatial))
    return context.error("kernel_shape, strides, dilations, pads or output_padding does not fit " +
                         std::to_string(spatial) + " spatial axes");
  SymShape out(rank);
  out[0] = (*x)[0];
  if (w != nullptr) {
    CHECK_OK(unify_dims(context, (*x)[1], (*w)[0], "channels of X against the first axis of W"));
    out[1] = (*w)[1] * group;
  }
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    const int64_t dilation = dilations.empty() ? 1 : dilations[i];
    if (stride <= 0 || dilation <= 0)
      return context.error("strides and dilations must be positive");
    const SymDim size = !kernel.empty() ? SymDim(kernel[i]) : w != nullptr ? (*w)[i + 2] : SymDim();
    if (!output_shape.empty()) {
      // Spatial axes only, or (as some files have it) all of them.
      if (output_shape.size() == spatial)
        out[i + 2] = output_shape[i];
      else if (output_shape.size() == rank)
        out[i + 2] = output_shape[i + 2];
      else
        return context.error("output_shape must hold " + std::to_string(spatial) +
                             " numbers, not " + std::to_string(output_shape.size()));
      continue;
    }
    const SymDim added = extra.empty() ? SymDim(0) : SymDim(extra[i]);
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      out[i + 2] = (*x)[i + 2] * stride;
      continue;
    }
    const SymDim padding = pads.empty() || auto_pad == "VALID"
                               ? SymDim(0)
                               : SymDim(pads[i]) + SymDim(pads[i + spatial]);
    out[i + 2] = ((*x)[i + 2] - 1) * stride + added + ((size - 1) * dilation + 1) - padding;
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

namespace {

/// Sets output and pads: what ConvTranspose's text says of output_shape, output_padding, auto_pad.
Status set_transposed_output(const KernelContext& context, Window& window) {
  const size_t rank = window.rank();
  auto wanted = context.attributes.get_ints("output_shape");
  if (wanted.size() == rank + 2) wanted = wanted.subspan(2);  // version 1 let batch and channels in
  if (!wanted.empty() && wanted.size() != rank)
    return context.error("output_shape has " + std::to_string(wanted.size()) + " values, needs " +
                         std::to_string(rank));
  const auto extra = context.attributes.get_ints("output_padding");
  if (!extra.empty() && extra.size() != rank)
    return context.error("output_padding has " + std::to_string(extra.size()) + " values, needs " +
                         std::to_string(rank));
  const Text auto_pad = context.attributes.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return context.error("auto_pad \"" + std::string(auto_pad) + "\" is not known");
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t more = extra.empty() ? 0 : extra[axis];
    if (more < 0 || more >= int64_t{1} << 31)
      return context.error("output_padding has the value " + std::to_string(more) +
                           ", which is not in [0, 2^31)");
    if (window.input[axis] >= int64_t{1} << 31)
      return context.error("a spatial axis of length " + std::to_string(window.input[axis]) +
                           " is too long");
    int64_t &begin = window.pads_begin[axis], &end = window.pads_end[axis];
    if (auto_pad == "VALID") begin = end = 0;
    const int64_t full =
        window.strides[axis] * (window.input[axis] - 1) + more + window.extent(axis);
    const bool given = !wanted.empty() || same;
    const int64_t out = !wanted.empty() ? wanted[axis]
                        : same          ? window.input[axis] * window.strides[axis]
                                        : full - begin - end;
    if (out < 0)
      return context.error("spatial axis " + std::to_string(axis) + " of the output would have " +
                           std::to_string(out) + " elements");
    if (given) {
      const int64_t total = std::max<int64_t>(0, full - out);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    window.output.push_back(out);
  }
  return ok();
}

/// Adds what each input element spreads over the output: columns [kernel, input] to y [output].
template <typename T>
void scatter_windows(const Window& window, const T* columns, T* y) {
  BoxIndex kernel(window.kernel);
  for (int64_t k = window.kernel_size(); k > 0; --k, kernel.next()) {
    BoxIndex at(window.input);
    for (int64_t i = window.input_size(); i > 0; --i, at.next(), ++columns) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t axis = 0; axis < window.rank(); ++axis) {
        const int64_t position = at[axis] * window.strides[axis] - window.pads_begin[axis] +
                                 kernel[axis] * window.dilations[axis];
        inside = inside && position >= 0 && position < window.output[axis];
        offset = offset * window.output[axis] + position;
      }
      if (inside) y[offset] += *columns;
    }
  }
}

template <typename T>
Status conv_transpose(KernelContext& context, const Tensor& x, const Tensor& w) {
  if (x.rank() < 3 || w.rank() != x.rank())
    return context.error("X and W must have the same rank of at least 3, are " + to_string(x) +
                         " and " + to_string(w));
  const int64_t groups = context.attributes.get_int("group", 1);
  const int64_t batch = x.dim(0), channels = x.dim(1), group_outputs = w.dim(1);
  if (groups < 1 || channels % groups != 0 || w.dim(0) != channels ||
      group_outputs > INT64_MAX / groups)
    return context.error("group is " + std::to_string(groups) + ", X has " +
                         std::to_string(channels) + " channels, W is " + to_string(w));
  TRY(Window window, read_window(context, x.dims().span().subspan(2), w.dims().span().subspan(2)));
  CHECK_OK(set_transposed_output(context, window));
  const int64_t outputs = group_outputs * groups, depth = channels / groups;
  Dims dims = {batch, outputs};
  for (int64_t dim : window.output) dims.push_back(dim);

  TRY(Tensor image, as<T>(context, x));
  TRY(Tensor weights, as<T>(context, w));
  TRY(Tensor bias, optional_as<T>(context, 2));
  if (!absent(bias)) CHECK_OK(check_dims(context, "B", bias, {{outputs}}));
  TRY(Tensor y, context.allocate(dtype_of<T>(), dims));
  const int64_t pixels = window.input_size(), kernel = window.kernel_size();
  std::atomic<bool> failed = false;
  if (y.size() != 0)
    context.parallel_for(batch * outputs, 1, [&](int64_t first, int64_t last) {
      const int64_t size[] = {kernel, pixels};
      auto columns = context.allocate(dtype_of<T>(), size);
      if (!columns) {
        failed = true;
        return;
      }
      const int64_t plane = y.size() / (batch * outputs);
      for (int64_t task = first; task < last; ++task) {
        const int64_t n = task / outputs, m = task % outputs, group = m / group_outputs;
        T* to = y.data<T>() + task * plane;
        std::fill_n(to, plane, absent(bias) ? T{} : bias.data<T>()[m]);
        const T* from = image.data<T>() + (n * channels + group * depth) * pixels;
        const T* factors =
            weights.data<T>() + (group * depth * group_outputs + m % group_outputs) * kernel;
        gemm<T>(kernel, pixels, depth, {factors, 1, group_outputs * kernel}, {from, pixels, 1},
                columns->template data<T>(), pixels);
        scatter_windows(window, columns->template data<T>(), to);
      }
    });
  if (failed) return resource_error("no memory for the windows of a transposed convolution");
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_conv_transpose(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  return with_float(context, *x, [&]<typename T>() { return conv_transpose<T>(context, *x, *w); });
}

}  // namespace

OPERATOR(ConvTranspose) = {
    .name = "ConvTranspose",
    .doc = "transposed convolution",
    .versions = {1, 11, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"output_padding", Attr::kInts},
            {"output_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_conv_transpose,
    .reference = run_conv_transpose,
};

}  // namespace tombolo::ops
