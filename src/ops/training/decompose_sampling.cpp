#include "ops/training/decompose_sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "ops/kernels/arguments.h"
#include "ops/kernels/window.h"

namespace tombolo::ops {

namespace {

using D = Differentiation;

std::vector<Var> failed(D& d, Error error) {
  d.calculus.fail(std::move(error));
  return std::vector<Var>(d.node.outputs().size());
}

Var part(D& d, const Var& x, int64_t axis, int64_t from, int64_t to) {
  return d.calculus.call("Slice", {x, d.calculus.constant({{from}}), d.calculus.constant({{to}}),
                                   d.calculus.constant({{axis}})});
}

/// A constant of the shape and type of `like`, from its values.
template <typename Make>
Var constant_from(D& d, const Var& like, Make&& make) {
  auto tensor = Tensor::allocate(like.dtype(), like.dims());
  if (!tensor) {
    d.calculus.fail(std::move(tensor).error());
    return {};
  }
  for (int64_t i = 0; i < like.size(); ++i) tensor->set_double(i, make(like.value.get_double(i)));
  return d.calculus.constant(*tensor);
}

/// Elements that one axis contributes to each sample: a place (-1: zero) and a weight.
struct Tap {
  std::vector<int64_t> index;
  Var weight;
};

/// Sums, over all choices of a tap of each axis, of weights times elements. x is [N, G, C, S] with
/// S the elements of a plane of `sizes`; taps hold [N, G, P] each; the result is [N, G, C, P].
Var sum_of_taps(D& d, const Var& x, std::span<const int64_t> sizes,
                const std::vector<std::vector<Tap>>& taps, int64_t points) {
  Tape& tape = d.calculus;
  const int64_t batch = x.dim(0), groups = x.dim(1), depth = x.dim(2), plane = x.dim(3);
  // One more element, zero, for what lies outside.
  const Var padded =
      tape.call("Concat", {x, tape.filled(x, {{batch, groups, depth, 1}}, 0)}, {{"axis", 3}});
  Var sum;
  std::vector<size_t> choice(taps.size(), 0);
  while (true) {
    auto places = Tensor::allocate(DType::kInt64, {{batch, groups, depth, points}});
    if (!places) {
      tape.fail(std::move(places).error());
      return {};
    }
    for (int64_t i = 0; i < batch * groups * points; ++i) {
      int64_t at = 0;
      for (size_t axis = 0; axis < taps.size() && at >= 0; ++axis) {
        const int64_t index = taps[axis][choice[axis]].index[static_cast<size_t>(i)];
        at = index < 0 ? -1 : at * sizes[axis] + index;
      }
      for (int64_t c = 0; c < depth; ++c)
        places->data<int64_t>()[(i / points * depth + c) * points + i % points] =
            at < 0 ? plane : at;
    }
    Var weight;
    for (size_t axis = 0; axis < taps.size(); ++axis) {
      const Var& own = taps[axis][choice[axis]].weight;
      if (absent(own)) continue;  // 1
      weight = absent(weight) ? own : tape.mul(weight, own);
    }
    Var term = tape.call("GatherElements", {padded, tape.constant(*places)}, {{"axis", 3}});
    if (!absent(weight))
      term = tape.mul(term,
                      tape.reshape(tape.to_type(weight, x.dtype()), {{batch, groups, 1, points}}));
    sum = absent(sum) ? term : tape.add(sum, term);
    size_t axis = 0;
    while (axis < taps.size() && ++choice[axis] == taps[axis].size()) choice[axis++] = 0;
    if (axis == taps.size()) return sum;
  }
}

/// Reflects x into [low, high]; `slope` is the derivative.
double reflected(double x, double low, double high, double& slope) {
  const double range = high - low;
  slope = 0;
  if (!(range > 0)) return low;
  double away = std::fabs(x - low);
  const double turns = std::floor(away / range);
  away -= turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  slope = (x < low ? -1.0 : 1.0) * (even ? 1.0 : -1.0);
  return even ? low + away : high - away;
}

struct Sampling {
  std::string_view mode, padding;
  bool aligned = false;
};

/// The taps of one axis for positions `grid` in [-1, 1]; as the kernel of GridSample has them.
std::vector<Tap> axis_taps(D& d, const Var& grid, int64_t length, const Sampling& how) {
  Tape& tape = d.calculus;
  const auto last = static_cast<double>(length - 1);
  const double low = how.aligned ? 0 : -0.5, high = how.aligned ? last : last + 0.5;
  const auto count = static_cast<size_t>(grid.size());
  const bool nearest = how.mode == "nearest";
  // The position is slope * grid + offset, by where it lies.
  auto slopes = Tensor::allocate(grid.dtype(), grid.dims());
  auto offsets = Tensor::allocate(grid.dtype(), grid.dims());
  if (!slopes || !offsets) {
    tape.fail(resource_error("no memory for positions"));
    return {};
  }
  std::vector<int64_t> base(count);
  for (size_t i = 0; i < count; ++i) {
    const double g = grid.value.get_double(static_cast<int64_t>(i));
    double slope = how.aligned ? last / 2 : static_cast<double>(length) / 2;
    double x = how.aligned ? (g + 1) / 2 * last : ((g + 1) * static_cast<double>(length) - 1) / 2;
    if (nearest) x = std::nearbyint(x);
    if (how.padding == "border" && !(x >= low && x <= high)) {
      x = x != x ? 0 : std::clamp(x, 0.0, last);
      slope = 0;
    }
    if (how.padding == "reflection" && !(x >= low && x <= high)) {
      double turn = 0;
      x = reflected(x, low, high, turn);
      slope *= turn;
    }
    if (!(std::fabs(x) < 1e15)) {
      x = -8;
      slope = 0;
    }
    base[i] = static_cast<int64_t>(std::floor(x));
    slopes->set_double(static_cast<int64_t>(i), slope);
    // What is left is the place between two elements: x - base.
    offsets->set_double(static_cast<int64_t>(i), x - std::floor(x) - (slope == 0 ? 0 : slope * g));
  }
  const auto tap = [&](int64_t shift, Var weight) {
    Tap made{std::vector<int64_t>(count), std::move(weight)};
    for (size_t i = 0; i < count; ++i) {
      int64_t index = base[i] + shift;
      if (index < 0 || index >= length) {
        double ignored = 0;
        if (how.padding == "reflection")
          index = static_cast<int64_t>(reflected(static_cast<double>(index), low, high, ignored));
        index = how.padding == "zeros" ? -1 : std::clamp<int64_t>(index, 0, length - 1);
      }
      made.index[i] = index;
    }
    return made;
  };
  if (nearest) return {tap(0, {})};
  // An infinite grid times a slope of 0 is no number: such positions are constants.
  const Var finite = constant_from(d, grid, [](double g) { return std::isfinite(g) ? 1 : 0; });
  const Var safe =
      tape.call("Where", {tape.to_type(finite, DType::kBool), grid, tape.scalar(grid, 0)});
  const Var t = tape.add(tape.mul(safe, tape.constant(*slopes)), tape.constant(*offsets));
  const Var one = tape.scalar(t, 1);
  if (how.mode == "linear" || how.mode == "bilinear") return {tap(0, tape.sub(one, t)), tap(1, t)};
  constexpr double a = -0.75;
  const auto number = [&](double value) { return tape.scalar(t, value); };
  const auto near = [&](const Var& x) {  // ((a + 2) x - (a + 3)) x^2 + 1
    const Var inner = tape.sub(tape.mul(x, number(a + 2)), number(a + 3));
    return tape.add(tape.mul(tape.mul(inner, x), x), one);
  };
  const auto far = [&](const Var& x) {  // ((a x - 5 a) x + 8 a) x - 4 a
    Var inner = tape.sub(tape.mul(x, number(a)), number(5 * a));
    inner = tape.add(tape.mul(inner, x), number(8 * a));
    return tape.sub(tape.mul(inner, x), number(4 * a));
  };
  return {tap(-1, far(tape.add(t, one))), tap(0, near(t)), tap(1, near(tape.sub(one, t))),
          tap(2, far(tape.sub(number(2), t)))};
}

}  // namespace

std::vector<Var> decompose_grid_sample(D& d) {
  Tape& tape = d.calculus;
  const Var &x = d.x(0), &grid = d.x(1);
  const size_t axes = x.rank() < 3 ? 0 : x.rank() - 2;
  if (axes == 0 || grid.rank() != x.rank() ||
      grid.dim(grid.rank() - 1) != static_cast<int64_t>(axes) || grid.dim(0) != x.dim(0))
    return failed(d, runtime_error("grid does not fit X"));
  const AttributeReader attributes = d.attributes();
  const Sampling how{attributes.get_string("mode", "linear"),
                     attributes.get_string("padding_mode", "zeros"),
                     attributes.get_int("align_corners", 0) != 0};
  Dims out = {x.dim(0), x.dim(1)};
  for (size_t axis = 0; axis < axes; ++axis) out.push_back(grid.dim(1 + axis));
  const int64_t batch = x.dim(0), points = product(out.span(), 2, out.size());
  const Var flat = tape.reshape(grid, {{batch, points, static_cast<int64_t>(axes)}});
  std::vector<std::vector<Tap>> taps;
  Dims sizes;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto place = static_cast<int64_t>(axes - 1 - axis);  // the last axis comes first
    const Var own = tape.reshape(part(d, flat, 2, place, place + 1), {{batch, 1, points}});
    sizes.push_back(x.dim(2 + axis));
    taps.push_back(axis_taps(d, own, x.dim(2 + axis), how));
  }
  if (!tape.status().ok()) return std::vector<Var>(1);
  const Var planes =
      tape.reshape(x, {{batch, 1, x.dim(1), product(sizes.span(), 0, sizes.size())}});
  return {tape.reshape(sum_of_taps(d, planes, sizes.span(), taps, points), out)};
}

std::vector<Var> decompose_deform_conv(D& d) {
  Tape& tape = d.calculus;
  const Var &x = d.x(0), &w = d.x(1), &offset = d.x(2);
  const KernelContext context = tape.context_of(d.node, d.opset, d.binding);
  if (x.rank() < 3 || w.rank() != x.rank()) return failed(d, context.error("X and W do not fit"));
  const auto spatial = [](const Var& v) { return v.dims().span().subspan(2); };
  auto window = read_sliding_window(context, spatial(x), spatial(w), false);
  if (!window) return failed(d, std::move(window).error());
  const int64_t groups = d.attributes().get_int("group", 1);
  const int64_t shifts = d.attributes().get_int("offset_group", 1);
  const int64_t batch = x.dim(0), channels = x.dim(1), outs = w.dim(0);
  const int64_t taps = window->kernel_size(), pixels = window->output_size();
  const auto axes = static_cast<int64_t>(window->rank());
  if (groups < 1 || channels != w.dim(1) * groups || outs % groups != 0 || shifts < 1 ||
      channels % shifts != 0 || offset.size() != batch * shifts * taps * axes * pixels)
    return failed(d, context.error("channels, groups and offset do not fit"));
  const int64_t points = taps * pixels;
  const Var moved = tape.reshape(offset, {{batch, shifts, taps, axes, pixels}});
  std::vector<std::vector<Tap>> choices;
  const auto count = static_cast<size_t>(batch * shifts * points);
  std::vector<bool> inside(count, true);
  std::vector<std::vector<double>> low(static_cast<size_t>(axes), std::vector<double>(count));
  std::vector<Var> parts;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const Var own = tape.reshape(part(d, moved, 3, axis, axis + 1), {{batch, shifts, points}});
    if (absent(own)) return std::vector<Var>(1);
    auto fixed = Tensor::allocate(own.dtype(), own.dims());
    if (!fixed) return failed(d, std::move(fixed).error());
    for (size_t i = 0; i < count; ++i) {
      const int64_t point = static_cast<int64_t>(i) % points;
      const BoxIndex kernel(window->kernel, point / pixels), pixel(window->output, point % pixels);
      const auto place =
          static_cast<double>(pixel[at] * window->strides[at] - window->pads_begin[at] +
                              kernel[at] * window->dilations[at]);
      const double position = place + own.value.get_double(static_cast<int64_t>(i));
      if (!(position > -1 && position < static_cast<double>(window->input[at]))) inside[i] = false;
      low[at][i] = inside[i] ? std::floor(position) : 0;
      fixed->set_double(static_cast<int64_t>(i), place - low[at][i]);
    }
    parts.push_back(tape.add(own, tape.constant(*fixed)));
  }
  for (size_t axis = 0; axis < static_cast<size_t>(axes); ++axis) {
    const auto tap = [&](int64_t shift, Var weight) {
      Tap made{std::vector<int64_t>(count), std::move(weight)};
      for (size_t i = 0; i < count; ++i) {
        const int64_t index = static_cast<int64_t>(low[axis][i]) + shift;
        made.index[i] = inside[i] && index >= 0 && index < window->input[axis] ? index : -1;
      }
      return made;
    };
    choices.push_back(
        {tap(0, tape.sub(tape.scalar(parts[axis], 1), parts[axis])), tap(1, parts[axis])});
  }
  const Var planes = tape.reshape(x, {{batch, shifts, channels / shifts, window->input_size()}});
  Var columns = sum_of_taps(d, planes, window->input.span(), choices, points);
  if (d.has(4)) columns = tape.mul(columns, tape.reshape(d.x(4), {{batch, shifts, 1, points}}));
  const int64_t depth = w.dim(1) * taps;
  const Var lines = tape.reshape(columns, {{batch, groups, depth, pixels}});
  const Var weights = tape.reshape(w, {{1, groups, outs / groups, depth}});
  Dims dims{batch, outs};
  for (const int64_t size : window->output) dims.push_back(size);
  Var y = tape.reshape(tape.call("MatMul", {weights, lines}), dims);
  if (d.has(3)) {
    Dims bias(std::vector<int64_t>(dims.size(), 1));
    bias[1] = outs;
    y = tape.add(y, tape.reshape(d.x(3), bias));
  }
  return {y};
}

/// Products of all that came before, by doubling: log2(length) products, right for zeros.
std::vector<Var> decompose_cum_prod(D& d) {
  Tape& tape = d.calculus;
  Var x = d.x(0);
  const auto rank = static_cast<int64_t>(x.rank());
  if (!d.has(1) || d.x(1).size() != 1) return failed(d, runtime_error("axis must be one integer"));
  int64_t axis = d.x(1).value.get_int64(0);
  if (axis < -rank || axis >= rank)
    return failed(d, runtime_error("axis " + std::to_string(axis) + " is out of range"));
  if (axis < 0) axis += rank;
  const int64_t length = x.dim(static_cast<size_t>(axis));
  const bool reverse = d.attributes().get_int("reverse", 0) != 0;
  const auto turned = [&](const Var& v) {
    std::vector<int64_t> order;
    for (int64_t i = length; i-- > 0;) order.push_back(i);
    return tape.call("Gather", {v, tape.constant(order)}, {{"axis", axis}});
  };
  /// The elements `by` places later, ones in front.
  const auto shifted = [&](const Var& v, int64_t by) {
    Dims dims = v.dims();
    dims[static_cast<size_t>(axis)] = by;
    return tape.call("Concat", {tape.filled(v, dims, 1), part(d, v, axis, 0, length - by)},
                     {{"axis", axis}});
  };
  if (length == 0) return {tape.call("Identity", {x})};
  if (reverse) x = turned(x);
  if (d.attributes().get_int("exclusive", 0) != 0) x = shifted(x, 1);
  for (int64_t by = 1; by < length; by *= 2) x = tape.mul(x, shifted(x, by));
  return {reverse ? turned(x) : tape.call("Identity", {x})};
}

/// A tree of products: right where factors are zero.
std::vector<Var> decompose_reduce_prod(D& d) {
  Tape& tape = d.calculus;
  const Var& x = d.x(0);
  const auto rank = static_cast<int64_t>(x.rank());
  const AttributeReader attributes = d.attributes();
  std::vector<bool> reduced(x.rank(), false);
  std::vector<int64_t> axes(attributes.get_ints("axes").begin(), attributes.get_ints("axes").end());
  if (d.has(1))
    for (int64_t i = 0; i < d.x(1).size(); ++i) axes.push_back(d.x(1).value.get_int64(i));
  if (axes.empty() && attributes.get_int("noop_with_empty_axes", 0) != 0)
    return {tape.call("Identity", {x})};
  if (axes.empty()) reduced.assign(x.rank(), true);
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank)
      return failed(d, runtime_error("axis " + std::to_string(axis) + " is out of range"));
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  const bool keeps = attributes.get_int("keepdims", 1) != 0;
  std::vector<int64_t> order, behind;
  Dims out;
  int64_t kept = 1, many = 1;
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    (reduced[axis] ? behind : order).push_back(static_cast<int64_t>(axis));
    (reduced[axis] ? many : kept) *= x.dim(axis);
    if (!reduced[axis])
      out.push_back(x.dim(axis));
    else if (keeps)
      out.push_back(1);
  }
  order.insert(order.end(), behind.begin(), behind.end());
  if (many == 0) return {tape.filled(x, out, 1)};
  Var rows = tape.reshape(x.rank() == 0 ? x : tape.transpose(x, order), {{kept, many}});
  while (many > 1) {
    if (many % 2 != 0)
      rows = tape.call("Concat", {rows, tape.filled(rows, {{kept, 1}}, 1)}, {{"axis", 1}});
    many = (many + 1) / 2;
    rows = tape.mul(part(d, rows, 1, 0, many), part(d, rows, 1, many, 2 * many));
  }
  return {tape.reshape(rows, out)};
}

/// Small matrices: by the characteristic polynomial (Faddeev and LeVerrier), in double, also where
/// they are singular. Larger ones: by elimination.
std::vector<Var> decompose_det(D& d) {
  Tape& tape = d.calculus;
  const Var& x = d.x(0);
  const size_t rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    return failed(d, runtime_error("X must hold square matrices"));
  constexpr int64_t kSmall = 8;
  const int64_t n = x.dim(rank - 1);
  const Dims out(x.dims().span().first(rank - 2));
  const int64_t count = element_count(out);
  if (n == 0 || count == 0) return {tape.filled(x, out, 1)};
  const Var a = tape.reshape(tape.to_type(x, DType::kFloat64), {{count, n, n}});
  Var det;
  if (n <= kSmall) {
    auto eye = Tensor::allocate(DType::kFloat64, {{1, n, n}});
    if (!eye) return failed(d, std::move(eye).error());
    for (int64_t i = 0; i < n * n; ++i) eye->set_double(i, i / n == i % n ? 1 : 0);
    const Var unit = tape.constant(*eye);
    Var m = tape.filled(a, {{count, n, n}}, 0), c = tape.filled(a, {{count, 1, 1}}, 1);
    for (int64_t k = 1; k <= n; ++k) {
      m = tape.add(tape.call("MatMul", {a, m}), tape.mul(c, unit));
      const Var trace = tape.call("ReduceSum", {tape.mul(tape.call("MatMul", {a, m}), unit),
                                                tape.constant({{int64_t{1}, int64_t{2}}})});
      c = tape.mul(trace, tape.scalar(trace, -1.0 / static_cast<double>(k)));
    }
    det = n % 2 == 0 ? c : tape.neg(c);
  } else {
    std::vector<Var> all;
    for (int64_t b = 0; b < count; ++b) {
      Var left = tape.reshape(part(d, a, 0, b, b + 1), {{n, n}}), result;
      double sign = 1;
      for (int64_t size = n; size > 0; --size) {
        if (absent(left)) return std::vector<Var>(1);
        int64_t best = 0;
        for (int64_t i = 1; i < size; ++i)
          if (std::fabs(left.value.get_double(i * size)) >
              std::fabs(left.value.get_double(best * size)))
            best = i;
        if (left.value.get_double(best * size) == 0)
          return failed(d, unsupported("Gradient of Det of a singular matrix of more than " +
                                       std::to_string(kSmall) + " rows"));
        if (best != 0) {
          sign = -sign;
          std::vector<int64_t> rows;
          for (int64_t i = 0; i < size; ++i) rows.push_back(i == 0 ? best : i == best ? 0 : i);
          left = tape.call("Gather", {left, tape.constant(rows)}, {{"axis", 0}});
        }
        const Var top = part(d, left, 0, 0, 1), pivot = part(d, top, 1, 0, 1);
        result = absent(result) ? pivot : tape.mul(result, pivot);
        if (size == 1) break;
        const Var below = part(d, left, 0, 1, size);
        const Var factors = tape.div(part(d, below, 1, 0, 1), pivot);
        left = tape.sub(part(d, below, 1, 1, size),
                        tape.call("MatMul", {factors, part(d, top, 1, 1, size)}));
      }
      all.push_back(tape.mul(result, tape.scalar(result, sign)));
    }
    det = tape.call_all(
        "Concat", all, 1, [](Node& node, const void*) { node.set_int("axis", 0); }, nullptr)[0];
  }
  return {tape.to_type(tape.reshape(det, out), x.dtype())};
}

}  // namespace tombolo::ops
