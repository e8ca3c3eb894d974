// Pooling.

#include <algorithm>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

struct Window {
  Ints kernel, stride, padding, dilation;
  size_t spatial = 2;
  bool ceil = false;
};

Window read_window(C& c, size_t spatial) {
  Window w;
  w.spatial = spatial;
  w.kernel = c.ints("kernel_size", spatial);
  w.stride = c.given("stride") ? c.ints("stride", spatial) : Ints{};
  if (w.stride.empty()) w.stride = w.kernel;
  w.padding = c.ints("padding", spatial);
  if (w.padding.empty()) w.padding.assign(spatial, 0);
  w.dilation = c.has_arg("dilation") ? c.ints("dilation", spatial) : Ints(spatial, 1);
  w.ceil = c.has_arg("ceil_mode") && c.flag("ceil_mode");
  for (Ints* list : {&w.kernel, &w.stride, &w.padding, &w.dilation}) {
    if (list->size() != spatial) c.refuse("a window of other dimensions");
    list->resize(spatial, 1);
  }
  return w;
}

Ints both(const Ints& pads) {
  Ints result = pads;
  result.insert(result.end(), pads.begin(), pads.end());
  return result;
}

Attrs attrs_of(const Window& w) {
  Attrs attrs = {{"kernel_shape", w.kernel}, {"strides", w.stride}};
  if (std::any_of(w.padding.begin(), w.padding.end(), [](int64_t p) { return p != 0; }))
    attrs.emplace_back("pads", both(w.padding));
  if (std::any_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d != 1; }))
    attrs.emplace_back("dilations", w.dilation);
  if (w.ceil) attrs.emplace_back("ceil_mode", 1);
  return attrs;
}

/// How many axes windows move along; one or two others stand before them.
size_t spatial_of(C& c, Value* x) {
  const int64_t spatial = c.detail()[0] - '0', lead = c.rank(x) - spatial;
  if (lead != 1 && lead != 2)
    c.refuse("windows of " + std::to_string(spatial) + " dimensions over a tensor of " +
             std::to_string(c.rank(x)));
  return static_cast<size_t>(spatial);
}

/// Calls body with a batch axis in front, and takes it away again.
template <typename Body>
Values batched(C& c, Value* x, size_t spatial, Body&& body) {
  const bool add = c.rank(x) == static_cast<int64_t>(spatial) + 1;
  Values results = body(add ? c.unsqueeze(x, {0}) : x);
  if (add)
    for (Value*& one : results) one = c.squeeze(one, {0});
  return results;
}

void max_pool(C& c) {
  Value* x = c.x("self");
  const size_t spatial = spatial_of(c, x);
  if (c.failed()) return;
  const Window w = read_window(c, spatial);
  if (c.failed()) return;
  const bool with_indices = c.schema().results.size() > 1;
  const DType type = c.dtype(x);
  const bool direct = is_float(type) || type == DType::kInt8 || type == DType::kUInt8;
  if (!direct) x = c.cast(x, DType::kFloat64);
  Values results = batched(c, x, spatial, [&](Value* v) {
    if (!with_indices) return Values{c.op("MaxPool", {v}, attrs_of(w))};
    Values pair = c.b.op_many("MaxPool", {v}, 2, attrs_of(w));
    c.b.set_type(pair[1], DType::kInt64, SymShape(c.b.shape(pair[0])));
    // ONNX counts through the whole tensor, torch inside one channel's plane.
    SymInt plane(1);
    for (size_t i = 0; i < spatial; ++i)
      plane = c.mul(plane, c.size(v, static_cast<int64_t>(i) + 2));
    pair[1] = c.op("Mod", {pair[1], c.int_value(plane)});
    return pair;
  });
  c.out(c.cast(results[0], type));
  if (with_indices) c.out(results[1]);
}

void avg_pool(C& c) {
  Value* x = c.x("self");
  const size_t spatial = spatial_of(c, x);
  if (c.failed()) return;
  const Window w = read_window(c, spatial);
  if (c.failed()) return;
  const bool count_pads = !c.has_arg("count_include_pad") || c.flag("count_include_pad");
  const bool own_divisor = c.has_arg("divisor_override") && c.given("divisor_override");
  const DType type = c.dtype(x);
  if (!is_float(type)) x = c.cast(x, DType::kFloat64);
  Values results = batched(c, x, spatial, [&](Value* v) {
    Attrs attrs = attrs_of(w);
    if (count_pads || own_divisor) attrs.emplace_back("count_include_pad", 1);
    if (!own_divisor) return Values{c.op("AveragePool", {v}, attrs)};
    // A sum over the window: the mean times its full size, windows past the end padded with zeros.
    int64_t size = 1;
    for (const int64_t k : w.kernel) size *= k;
    Ints pads(2 * (spatial + 2), 0);
    for (size_t i = 0; i < spatial; ++i) {
      pads[i + 2] = w.padding[i];
      pads[i + spatial + 4] = w.padding[i] + (w.ceil ? w.stride[i] - 1 : 0);
    }
    Window bare = w;
    bare.padding.assign(spatial, 0);
    bare.ceil = false;
    Value* padded = c.op("Pad", {v, c.b.ints(pads)});
    Value* mean = c.op("AveragePool", {padded}, attrs_of(bare));
    const double by = static_cast<double>(size) / c.real("divisor_override");
    return Values{c.mul(mean, c.like(by, mean))};
  });
  c.out(c.cast(results[0], type));
}

/// Windows of different lengths: start floor(i*in/out), end ceil((i+1)*in/out).
Value* adaptive_axis(C& c, Value* x, int64_t axis, int64_t in, int64_t out, bool average) {
  int64_t longest = 0;
  Ints start, length;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t from = i * in / out, to = ((i + 1) * in + out - 1) / out;
    start.push_back(from);
    length.push_back(to - from);
    longest = std::max(longest, to - from);
  }
  // Gather every window, the short ones filled up by repeating their last element.
  Ints places;
  auto weights = Tensor::allocate(DType::kFloat64, Ints{out, longest});
  if (!weights) return x;
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < longest; ++k) {
      const size_t row = static_cast<size_t>(i);
      places.push_back(start[row] + std::min(k, length[row] - 1));
      weights->set_double(i * longest + k,
                          k < length[row] ? 1.0 / static_cast<double>(length[row]) : 0);
    }
  const int64_t dims[] = {out, longest};
  Value* index = c.b.constant(Tensor::of<int64_t>(DType::kInt64, dims, places), "windows");
  Value* windows = c.op("Gather", {x, index}, {{"axis", axis}});
  if (average) {
    Ints after;
    for (int64_t i = axis + 2; i < c.rank(windows); ++i) after.push_back(i - axis);
    Value* weight = c.cast(c.b.constant(*weights, "weights"), c.dtype(x));
    return c.reduce("ReduceSum", c.mul(windows, c.unsqueeze(weight, after)), {axis + 1}, false);
  }
  return c.reduce("ReduceMax", windows, {axis + 1}, false);
}

/// The same where sizes are only known when the model runs: [out, longest] places of the windows'
/// elements, and how much each counts.
struct Windows {
  Value* places = nullptr;
  Value* weights = nullptr;  ///< float; 0 for what fills up
};
Windows adaptive_windows(C& c, const SymInt& in, const SymInt& out) {
  Value *length = c.int_value(in), *count = c.int_value(out), *one = c.b.int_scalar(1);
  Value* row = c.range(out);
  Value* from = c.op("Div", {c.mul(row, length), count});
  Value* past = c.op("Sub", {c.op("Add", {c.mul(c.op("Add", {row, one}), length), count}), one});
  Value* to = c.op("Div", {past, count});
  Value* lengths = c.op("Sub", {to, from});
  Value* longest = c.op("ReduceMax", {lengths}, {{"keepdims", 0}});
  Value* step = c.unsqueeze(c.range(SymInt(SymDim(), longest)), {0});
  const auto column = [&](Value* v) { return c.unsqueeze(v, {1}); };
  Value* last = column(c.op("Sub", {to, one}));
  Windows result;
  result.places = c.op("Min", {c.op("Add", {column(from), step}), last});
  Value* counts = c.cast(c.op("Less", {step, column(lengths)}), DType::kFloat64);
  result.weights = c.op("Div", {counts, column(c.cast(lengths, DType::kFloat64))});
  return result;
}

void adaptive_dynamic(C& c, Value* x, const SymInts& outs, bool average, bool with_indices) {
  const auto spatial = static_cast<int64_t>(outs.size());
  const int64_t first = c.rank(x) - spatial;
  Value* numbers = nullptr;
  if (with_indices) {
    SymInts plane;
    for (int64_t i = 0; i < spatial; ++i) plane.push_back(c.size(x, first + i));
    SymInt count(1);
    for (const SymInt& one : plane) count = c.mul(count, one);
    numbers = c.expand(c.reshape(c.range(count), plane), c.sizes(x));
  }
  // From the last axis, so that of equal maxima the first in memory wins.
  for (int64_t i = spatial; i-- > 0;) {
    const int64_t axis = first + i;
    const SymInt in = c.size(x, axis);
    const SymInt& wanted = outs[static_cast<size_t>(i)];
    const SymInt& out = wanted.is(-1) ? in : wanted;
    if (out.dim.equals(in.dim)) continue;
    const Windows windows = adaptive_windows(c, in, out);
    Value* taken = c.op("Gather", {x, windows.places}, {{"axis", axis}});
    if (average) {
      Ints after;
      for (int64_t k = axis + 2; k < c.rank(taken); ++k) after.push_back(k - axis);
      Value* weight = c.cast(c.unsqueeze(windows.weights, after), c.dtype(x));
      x = c.reduce("ReduceSum", c.mul(taken, weight), {axis + 1}, false);
    } else if (!with_indices) {
      x = c.reduce("ReduceMax", taken, {axis + 1}, false);
    } else {
      Value* best = c.op("ArgMax", {taken}, {{"axis", axis + 1}, {"keepdims", 1}});
      const auto pick = [&](Value* all) {
        return c.squeeze(c.op("GatherElements", {all, best}, {{"axis", axis + 1}}), {axis + 1});
      };
      numbers = pick(c.op("Gather", {numbers, windows.places}, {{"axis", axis}}));
      x = pick(taken);
    }
    if (c.b.has_shape(x)) {
      Shape shape = c.b.shape(x);
      shape[static_cast<size_t>(axis)] = out.dim;
      c.b.set_type(x, c.dtype(x), shape);
      if (numbers) c.b.set_type(numbers, DType::kInt64, shape);
    }
  }
  c.out(x);
  if (with_indices) c.out(numbers);
}

void adaptive_pool(C& c) {
  Value* x = c.x("self");
  const size_t spatial = spatial_of(c, x);
  if (c.failed()) return;
  const bool average = c.name().find("avg") != std::string_view::npos;
  const bool with_indices = c.schema().results.size() > 1;
  const SymInts wanted_sizes = c.syms("output_size", spatial);
  const int64_t first = c.rank(x) - static_cast<int64_t>(spatial);
  bool all_one = true, same = true, divides = true;
  Ints kernel;
  for (size_t i = 0; i < spatial; ++i) {
    const SymInt in = c.size(x, first + static_cast<int64_t>(i));
    const SymInt& out = wanted_sizes[i];
    all_one = all_one && out.is(1);
    same = same && (out.dim.equals(in.dim) || out.is(-1));
    const bool numbers = in.is_number() && out.is_number() && out.dim.value() > 0;
    divides = divides && numbers && in.dim.value() % out.dim.value() == 0;
    kernel.push_back(divides ? in.dim.value() / out.dim.value() : 0);
  }
  if (same && !with_indices) return c.out(x);
  if (all_one && !with_indices) {
    const auto results = batched(c, x, spatial, [&](Value* v) {
      return Values{c.op(average ? "GlobalAveragePool" : "GlobalMaxPool", {v})};
    });
    return c.out(results[0]);
  }
  if (divides) {
    const Attrs attrs = {{"kernel_shape", kernel}, {"strides", kernel}};
    const auto results = batched(c, x, spatial, [&](Value* v) {
      if (average) return Values{c.op("AveragePool", {v}, attrs)};
      if (!with_indices) return Values{c.op("MaxPool", {v}, attrs)};
      Values pair = c.b.op_many("MaxPool", {v}, 2, attrs);
      c.b.set_type(pair[1], DType::kInt64, SymShape(c.b.shape(pair[0])));
      SymInt plane(1);
      for (size_t i = 0; i < spatial; ++i)
        plane = c.mul(plane, c.size(v, static_cast<int64_t>(i) + 2));
      pair[1] = c.op("Mod", {pair[1], c.int_value(plane)});
      return pair;
    });
    c.out(results[0]);
    if (with_indices) c.out(results[1]);
    return;
  }
  Ints ins, outs;
  for (size_t i = 0; i < spatial; ++i) {
    const auto in = c.known(x, first + static_cast<int64_t>(i));
    if (!in || !wanted_sizes[i].is_number())
      return adaptive_dynamic(c, x, wanted_sizes, average, with_indices);
    ins.push_back(*in);
    outs.push_back(wanted_sizes[i].dim.value());
    // As many places are written out for each axis.
    constexpr int64_t kMost = 1 << 20;
    if (*in < 1 || outs[i] < 1 || outs[i] > kMost || *in > kMost)
      return c.refuse("adaptive pooling from or to no or very many elements");
  }
  if (!with_indices) {
    for (size_t i = 0; i < spatial; ++i)
      x = adaptive_axis(c, x, first + static_cast<int64_t>(i), ins[i], outs[i], average);
    return c.out(x);
  }
  // With indices: windows of the whole plane as one axis.
  int64_t plane = 1, cells = 1, longest = 1;
  double listed = 1;
  for (size_t i = 0; i < spatial; ++i) {
    plane *= ins[i];
    cells *= outs[i];
    int64_t most = 0;
    for (int64_t k = 0; k < outs[i]; ++k)
      most = std::max(most, ((k + 1) * ins[i] + outs[i] - 1) / outs[i] - k * ins[i] / outs[i]);
    longest *= most;
    listed *= static_cast<double>(outs[i]) * static_cast<double>(most);
    if (listed > 1 << 20) break;
  }
  if (listed > 1 << 20) return c.refuse("adaptive pooling of a large plane with indices");
  Ints table;
  for (int64_t cell = 0; cell < cells; ++cell) {
    Ints from(spatial), to(spatial), at;
    int64_t rest = cell;
    for (size_t i = spatial; i-- > 0;) {
      const int64_t k = rest % outs[i];
      rest /= outs[i];
      from[i] = k * ins[i] / outs[i];
      to[i] = ((k + 1) * ins[i] + outs[i] - 1) / outs[i];
    }
    at = from;
    size_t count = 0;
    for (bool more = true; more;) {
      int64_t flat = 0;
      for (size_t i = 0; i < spatial; ++i) flat = flat * ins[i] + at[i];
      table.push_back(flat);
      ++count;
      more = false;
      for (size_t i = spatial; i-- > 0;) {
        if (++at[i] < to[i]) {
          more = true;
          break;
        }
        at[i] = from[i];
      }
    }
    for (; count < static_cast<size_t>(longest); ++count) table.push_back(table.back());
  }
  const int64_t dims[] = {cells, longest};
  Value* index = c.b.constant(Tensor::of<int64_t>(DType::kInt64, dims, table), "windows");
  SymInts flat_shape, out_shape;
  for (int64_t i = 0; i < first; ++i) flat_shape.push_back(c.size(x, i));
  out_shape = flat_shape;
  flat_shape.emplace_back(plane);
  for (const int64_t out : outs) out_shape.emplace_back(out);
  Value* windows = c.op("Gather", {c.reshape(x, flat_shape), index}, {{"axis", first}});
  Value* best = c.op("ArgMax", {windows}, {{"axis", first + 1}, {"keepdims", 1}});
  Value* values = c.op("GatherElements", {windows, best}, {{"axis", first + 1}});
  SymInts all = out_shape;
  Value* spread = c.expand(index, c.sizes(windows));
  Value* places = c.op("GatherElements", {spread, best}, {{"axis", first + 1}});
  c.out(c.reshape(c.squeeze(values, {first + 1}), out_shape));
  c.out(c.reshape(c.squeeze(places, {first + 1}), all));
}

void max_unpool(C& c) {
  Value *x = c.x("self"), *indices = c.x("indices");
  const size_t spatial = spatial_of(c, x);
  if (c.failed()) return;
  const SymInts sizes = c.syms("output_size", spatial);
  const int64_t first = c.rank(x) - static_cast<int64_t>(spatial);
  SymInts lead, flat_out, out;
  for (int64_t i = 0; i < first; ++i) lead.push_back(c.size(x, i));
  SymInt plane(1);
  for (const SymInt& one : sizes) plane = c.mul(plane, one);
  SymInts flat = lead;
  flat.emplace_back(-1);
  flat_out = lead;
  flat_out.push_back(plane);
  out = lead;
  out.insert(out.end(), sizes.begin(), sizes.end());
  Value* y = c.op("ScatterElements",
                  {c.full(flat_out, 0, c.dtype(x)), c.reshape(indices, flat), c.reshape(x, flat)},
                  {{"axis", first}});
  c.out(c.reshape(y, out));
}

constexpr Row kPoolingRows[] = {
    {"max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
     "dilation=1, bool ceil_mode=False) -> Tensor",
     max_pool, "1"},
    {"max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
     "dilation=1, bool ceil_mode=False) -> Tensor",
     max_pool, "2"},
    {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
     "dilation=1, bool ceil_mode=False) -> Tensor",
     max_pool, "3"},
    {"max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
     "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     max_pool, "1"},
    {"max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
     "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     max_pool, "2"},
    {"max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
     "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     max_pool, "3"},
    {"avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True) -> Tensor",
     avg_pool, "1"},
    {"avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     avg_pool, "2"},
    {"avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     avg_pool, "3"},
    {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", adaptive_pool, "1"},
    {"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_pool, "2"},
    {"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_pool, "3"},
    {"_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_pool, "2"},
    {"_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_pool, "3"},
    {"adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", adaptive_pool,
     "1"},
    {"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", adaptive_pool,
     "2"},
    {"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", adaptive_pool,
     "3"},
    {"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", max_unpool, "2"},
    {"max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] "
     "padding) -> Tensor",
     max_unpool, "3"},
};

}  // namespace

std::span<const Row> pooling_rows() { return kPoolingRows; }

}  // namespace tombolo::pytorch
