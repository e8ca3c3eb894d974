// Layers said in simpler operators, for Gradient: windows become a gather and a product, norms
// their definition, so that everything can be differentiated as often as one likes.

#include <algorithm>
#include <cmath>

#include "ops/kernels/derivatives.h"
#include "ops/kernels/window.h"
#include "ops/training/decompose_recurrent.h"
#include "ops/training/decompose_sampling.h"

namespace tombolo::ops {

namespace {

using D = Differentiation;

std::span<const int64_t> spatial_dims(const Var& x) {
  return std::span(x.dims().begin(), x.rank()).subspan(2);
}

/// For each kernel position and output position the input position, or `size` where it is padding.
Result<Tensor> window_places(const Window& window) {
  const int64_t taps = window.kernel_size(), positions = window.output_size();
  TRY(Tensor places, Tensor::allocate(DType::kInt64, {{taps * positions}}));
  for (int64_t i = 0; i < places.size(); ++i) places.data<int64_t>()[i] = window.input_size();
  if (places.size() == 0) return places;
  BoxIndex at(window.output);
  for (int64_t p = 0; p < positions; ++p, at.next())
    for_each_inside(window, at, [&](int64_t input, int64_t kernel) {
      places.data<int64_t>()[kernel * positions + p] = input;
    });
  return places;
}

/// x [.., S] with one more element `fill` in the last axis, gathered at `places`.
Var gather_padded(D& d, const Var& x, const Tensor& places, double fill) {
  Dims one = x.dims();
  one[one.size() - 1] = 1;
  const auto last = static_cast<int64_t>(x.rank()) - 1;
  const Var padded =
      d.calculus.call("Concat", {x, d.calculus.filled(x, one, fill)}, {{"axis", last}});
  return d.calculus.call("Gather", {padded, d.calculus.constant(places)}, {{"axis", last}});
}

std::vector<Var> failed(D& d, Error error) {
  d.calculus.fail(std::move(error));
  return std::vector<Var>(d.node.outputs().size());
}

std::vector<Var> conv(D& d) {
  const Var &x = d.x(0), &w = d.x(1);
  const KernelContext context = d.calculus.context_of(d.node, d.opset, d.binding);
  if (x.rank() < 3 || w.rank() != x.rank()) return failed(d, context.error("X and W do not fit"));
  auto window = read_sliding_window(context, spatial_dims(x), spatial_dims(w), false);
  if (!window) return failed(d, std::move(window).error());
  const int64_t groups = d.attributes().get_int("group", 1);
  const int64_t batch = x.dim(0), outs = w.dim(0), taps = window->kernel_size();
  if (groups < 1 || x.dim(1) != w.dim(1) * groups || outs % groups != 0)
    return failed(d, context.error("channels and groups do not fit"));
  auto places = window_places(*window);
  if (!places) return failed(d, std::move(places).error());
  const int64_t positions = window->output_size(), depth = w.dim(1);
  const Var planes = d.calculus.reshape(x, {{batch, groups, depth, window->input_size()}});
  const Var columns = d.calculus.reshape(gather_padded(d, planes, *places, 0),
                                         {{batch, groups, depth * taps, positions}});
  const Var weights = d.calculus.reshape(w, {{1, groups, outs / groups, depth * taps}});
  Dims dims{batch, outs};
  for (const int64_t size : window->output) dims.push_back(size);
  Var y = d.calculus.reshape(d.calculus.call("MatMul", {weights, columns}), dims);
  if (d.has(2)) {
    Dims bias(std::vector<int64_t>(dims.size(), 1));
    bias[1] = outs;
    y = d.calculus.add(y, d.calculus.reshape(d.x(2), bias));
  }
  return {y};
}

std::vector<Var> conv_transpose(D& d) {
  const Var &x = d.x(0), &w = d.x(1);
  std::vector<RunValue> values;
  for (const Var& input : d.inputs)
    values.push_back(absent(input) ? RunValue() : RunValue(input.value));
  auto run = d.calculus.run_aside(d.node, d.opset, d.binding, values, 1);
  if (!run) return failed(d, std::move(run).error());  // checks everything, gives the shape
  const Dims out = (*run)[0].tensor().dims();
  const size_t rank = x.rank() - 2;
  const AttributeReader attributes = d.attributes();
  const auto number = [&](const char* name, size_t axis, int64_t fallback) {
    const auto list = attributes.get_ints(name);
    return axis < list.size() ? list[axis] : fallback;
  };
  const Text auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool computed = attributes.has("output_shape") || auto_pad.starts_with("SAME");
  Dims begins, strides, dilations, inner, kernel, sizes;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t stride = number("strides", axis, 1), dilation = number("dilations", axis, 1);
    int64_t begin = auto_pad == "VALID" ? 0 : number("pads", axis, 0);
    if (computed) {
      const int64_t total = stride * (x.dim(2 + axis) - 1) + number("output_padding", axis, 0) +
                            (w.dim(2 + axis) - 1) * dilation + 1 - out[2 + axis];
      const int64_t some = std::max<int64_t>(total, 0);
      begin = auto_pad == "SAME_UPPER" ? some / 2 : some - some / 2;
    }
    begins.push_back(begin), strides.push_back(stride), dilations.push_back(dilation);
    inner.push_back(x.dim(2 + axis)), kernel.push_back(w.dim(2 + axis)),
        sizes.push_back(out[2 + axis]);
  }
  const int64_t groups = attributes.get_int("group", 1), batch = x.dim(0);
  const int64_t depth = x.dim(1) / groups, outs = w.dim(1), taps = element_count(kernel);
  const int64_t steps = element_count(inner), plane = element_count(sizes);
  // Where each product of a kernel position and an input position lands.
  auto places = Tensor::allocate(DType::kInt64, {{batch * groups * outs, taps * steps}});
  if (!places) return failed(d, std::move(places).error());
  for (int64_t i = 0; i < places->size(); ++i) {
    const int64_t tap = i % (taps * steps) / steps, step = i % steps;
    const BoxIndex k(kernel, tap), s(inner, step);
    int64_t place = 0;
    for (size_t axis = 0; axis < rank && place >= 0; ++axis) {
      const int64_t at = s[axis] * strides[axis] + k[axis] * dilations[axis] - begins[axis];
      place = at < 0 || at >= sizes[axis] ? -1 : place * sizes[axis] + at;
    }
    places->data<int64_t>()[i] = place < 0 ? plane : place;
  }
  const Var weights =
      d.calculus.swap_last(d.calculus.reshape(w, {{1, groups, depth, outs * taps}}));
  const Var columns =
      d.calculus.call("MatMul", {weights, d.calculus.reshape(x, {{batch, groups, depth, steps}})});
  const Var flat = d.calculus.reshape(columns, {{batch * groups * outs, taps * steps}});
  const Var zeros = d.calculus.filled(flat, {{batch * groups * outs, plane + 1}}, 0);
  const Var sums = d.calculus.call("ScatterElements", {zeros, d.calculus.constant(*places), flat},
                                   [](Node& node, const void*) {
                                     node.set_string("reduction", "add");
                                     node.set_int("axis", 1);
                                   });
  Var y = d.calculus.call(
      "Slice", {sums, d.calculus.constant({{int64_t{0}}}), d.calculus.constant({{plane}}),
                d.calculus.constant({{int64_t{1}}})});
  y = d.calculus.reshape(y, out);
  if (d.has(2)) {
    Dims bias(std::vector<int64_t>(out.size(), 1));
    bias[1] = out[1];
    y = d.calculus.add(y, d.calculus.reshape(d.x(2), bias));
  }
  return {y};
}

/// The windows of a pool: [N, C, taps, positions], padding filled.
struct Pool {
  Window window;
  Tensor places;
  Var columns;
  Dims dims;
};
Result<Pool> pool_of(D& d, const Var& x, double fill) {
  const KernelContext context = d.calculus.context_of(d.node, d.opset, d.binding);
  if (x.rank() < 3) return context.error("X must have spatial axes");
  Pool pool;
  const bool ceil = d.attributes().get_int("ceil_mode", 0) != 0;
  TRY(pool.window, read_sliding_window(context, spatial_dims(x), {}, ceil));
  TRY(pool.places, window_places(pool.window));
  pool.dims = {x.dim(0), x.dim(1)};
  for (const int64_t size : pool.window.output) pool.dims.push_back(size);
  const Var flat = d.calculus.reshape(x, {{x.dim(0), x.dim(1), pool.window.input_size()}});
  pool.columns = d.calculus.reshape(
      gather_padded(d, flat, pool.places, fill),
      {{x.dim(0), x.dim(1), pool.window.kernel_size(), pool.window.output_size()}});
  return pool;
}

Var sum_over(D& d, const Var& x, std::vector<int64_t> axes, bool keep) {
  return d.calculus.call("ReduceSum", {x, d.calculus.constant(axes)}, {{"keepdims", keep ? 1 : 0}});
}
Var mean_over(D& d, const Var& x, std::vector<int64_t> axes) {
  return d.calculus.call("ReduceMean", {x, d.calculus.constant(axes)}, {{"keepdims", 1}});
}

std::vector<Var> average_pool(D& d) {
  auto pool = pool_of(d, d.x(0), 0);
  if (!pool) return failed(d, std::move(pool).error());
  // The operator on ones tells by what each window is divided.
  auto ones = Tensor::allocate(d.x(0).dtype(), d.x(0).dims());
  if (!ones) return failed(d, std::move(ones).error());
  for (int64_t i = 0; i < ones->size(); ++i) ones->set_double(i, 1);
  const RunValue inputs[] = {RunValue(*ones)};
  auto shares = d.calculus.run_aside(d.node, d.opset, d.binding, inputs, 1);
  if (!shares) return failed(d, std::move(shares).error());
  const int64_t positions = pool->window.output_size(), taps = pool->window.kernel_size();
  auto divisors = Tensor::allocate(d.x(0).dtype(), {{1, 1, positions}});
  if (!divisors) return failed(d, std::move(divisors).error());
  for (int64_t p = 0; p < positions; ++p) {
    int64_t inside = 0;
    for (int64_t k = 0; k < taps; ++k)
      inside += pool->places.data<int64_t>()[k * positions + p] < pool->window.input_size();
    const double share = (*shares)[0].tensor().get_double(p);
    divisors->set_double(p, inside == 0 ? 1 : static_cast<double>(inside) / share);
  }
  const Var sums = sum_over(d, pool->columns, {2}, false);
  return {d.calculus.reshape(d.calculus.div(sums, d.calculus.constant(*divisors)), pool->dims)};
}

Var power_sum_root(D& d, const Var& x, std::vector<int64_t> axes, double p, bool keep) {
  const Var size =
      p == 2 ? d.calculus.mul(x, x)
             : d.calculus.call("Pow", {d.calculus.call("Abs", {x}), d.calculus.scalar(x, p)});
  const Var sum = sum_over(d, size, std::move(axes), keep);
  if (p == 1) return sum;
  return d.calculus.call("Pow", {sum, d.calculus.scalar(x, 1 / p)});
}

std::vector<Var> lp_pool(D& d) {
  auto pool = pool_of(d, d.x(0), 0);
  if (!pool) return failed(d, std::move(pool).error());
  const auto p = static_cast<double>(d.attributes().get_int("p", 2));
  return {d.calculus.reshape(power_sum_root(d, pool->columns, {2}, p, false), pool->dims)};
}

std::vector<int64_t> spatial_axes(const Var& x) {
  std::vector<int64_t> axes;
  for (size_t axis = 2; axis < x.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

std::vector<Var> global_average_pool(D& d) { return {mean_over(d, d.x(0), spatial_axes(d.x(0)))}; }
std::vector<Var> global_max_pool(D& d) {
  return {d.calculus.call("ReduceMax", {d.x(0), d.calculus.constant(spatial_axes(d.x(0)))})};
}
std::vector<Var> global_lp_pool(D& d) {
  const auto p = static_cast<double>(d.attributes().get_int("p", 2));
  return {power_sum_root(d, d.x(0), spatial_axes(d.x(0)), p, true)};
}

std::vector<Var> lp_normalization(D& d) {
  const auto p = static_cast<double>(d.attributes().get_int("p", 2));
  const Var norm = power_sum_root(d, d.x(0), {d.attributes().get_int("axis", -1)}, p, true);
  return {d.calculus.div(d.x(0), norm)};
}

/// [C] as [1, C, 1, ...].
Var by_channel(D& d, const Var& x, const Var& like) {
  Dims dims(std::vector<int64_t>(like.rank(), 1));
  if (like.rank() > 1) dims[1] = x.size();
  return d.calculus.reshape(d.calculus.to_type(x, like.dtype()), dims);
}

Var normalized(D& d, const Var& x, const Var& mean, const Var& variance, double fallback) {
  const Var epsilon = d.calculus.scalar(
      x, static_cast<double>(d.attributes().get_float("epsilon", static_cast<float>(fallback))));
  const Var deviation = d.calculus.call("Sqrt", {d.calculus.add(variance, epsilon)});
  return d.calculus.div(d.calculus.sub(x, mean), deviation);
}

Var variance_over(D& d, const Var& x, const Var& mean, const std::vector<int64_t>& axes) {
  const Var apart = d.calculus.sub(x, mean);
  return mean_over(d, d.calculus.mul(apart, apart), axes);
}

std::vector<Var> instance_normalization(D& d) {
  const Var& x = d.x(0);
  const std::vector<int64_t> axes = spatial_axes(x);
  const Var mean = mean_over(d, x, axes);
  const Var normal = normalized(d, x, mean, variance_over(d, x, mean, axes), 1e-5);
  return {
      d.calculus.add(d.calculus.mul(normal, by_channel(d, d.x(1), x)), by_channel(d, d.x(2), x))};
}

std::vector<Var> batch_normalization(D& d) {
  const Var& x = d.x(0);
  const bool training = d.attributes().get_int("training_mode", 0) != 0;
  std::vector<Var> outputs(d.node.outputs().size());
  Var mean = by_channel(d, d.x(3), x), variance = by_channel(d, d.x(4), x);
  if (training) {
    std::vector<int64_t> axes = spatial_axes(x);
    axes.insert(axes.begin(), 0);
    const Var old_mean = mean, old_variance = variance;
    mean = mean_over(d, x, axes);
    variance = variance_over(d, x, mean, axes);
    const auto momentum = static_cast<double>(d.attributes().get_float("momentum", 0.9f));
    const auto running = [&](const Var& old, const Var& now) {
      return d.calculus.add(d.calculus.mul(old, d.calculus.scalar(x, momentum)),
                            d.calculus.mul(now, d.calculus.scalar(x, 1 - momentum)));
    };
    if (outputs.size() > 1) outputs[1] = d.calculus.reshape(running(old_mean, mean), d.x(3).dims());
    if (outputs.size() > 2)
      outputs[2] = d.calculus.reshape(running(old_variance, variance), d.x(4).dims());
  }
  const Var normal = normalized(d, x, mean, variance, 1e-5);
  outputs[0] =
      d.calculus.add(d.calculus.mul(normal, by_channel(d, d.x(1), x)), by_channel(d, d.x(2), x));
  return outputs;
}

std::vector<Var> lrn(D& d) {
  const Var& x = d.x(0);
  const AttributeReader attributes = d.attributes();
  const int64_t size = attributes.get_int("size", 1), channels = x.rank() > 1 ? x.dim(1) : 0;
  const Var square = d.calculus.mul(x, x);
  Var sum;
  for (int64_t shift = -((size - 1) / 2); shift <= size / 2; ++shift) {
    auto places = Tensor::allocate(DType::kInt64, {{channels}});
    if (!places) return failed(d, std::move(places).error());
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = c + shift;
      places->data<int64_t>()[c] = at < 0 || at >= channels ? channels : at;
    }
    Dims one = x.dims();
    one[1] = 1;
    const Var padded =
        d.calculus.call("Concat", {square, d.calculus.filled(x, one, 0)}, {{"axis", int64_t{1}}});
    const Var part =
        d.calculus.call("Gather", {padded, d.calculus.constant(*places)}, {{"axis", int64_t{1}}});
    sum = absent(sum) ? part : d.calculus.add(sum, part);
  }
  const double alpha =
      static_cast<double>(attributes.get_float("alpha", 1e-4f)) / static_cast<double>(size);
  const Var inner =
      d.calculus.add(d.calculus.mul(sum, d.calculus.scalar(x, alpha)),
                     d.calculus.scalar(x, static_cast<double>(attributes.get_float("bias", 1))));
  const double beta = static_cast<double>(attributes.get_float("beta", 0.75f));
  return {d.calculus.div(x, d.calculus.call("Pow", {inner, d.calculus.scalar(x, beta)}))};
}

struct Row {
  std::string_view op;
  DecompositionFn decomposition;
};
constexpr Row kRows[] = {
    {"AveragePool", average_pool},
    {"BatchNormalization", batch_normalization},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"CumProd", decompose_cum_prod},
    {"DeformConv", decompose_deform_conv},
    {"Det", decompose_det},
    {"GRU", decompose_recurrent},
    {"GlobalAveragePool", global_average_pool},
    {"GlobalLpPool", global_lp_pool},
    {"GlobalMaxPool", global_max_pool},
    {"GridSample", decompose_grid_sample},
    {"InstanceNormalization", instance_normalization},
    {"LRN", lrn},
    {"LSTM", decompose_recurrent},
    {"LpNormalization", lp_normalization},
    {"LpPool", lp_pool},
    {"RNN", decompose_recurrent},
    {"ReduceProd", decompose_reduce_prod},
};

}  // namespace

DecompositionFn decomposition_of(std::string_view op) {
  for (const Row& row : kRows)
    if (row.op == op) return row.decomposition;
  return nullptr;
}

}  // namespace tombolo::ops
