#include <algorithm>
#include <string>

#include "ops/kernels/derivatives.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

namespace {

using D = Differentiation;

/// The values of a node's inputs, to run it again on others.
std::vector<RunValue> values_of(const D& d) {
  std::vector<RunValue> values;
  for (const Var& input : d.inputs)
    values.push_back(absent(input) ? RunValue() : RunValue(input.value));
  return values;
}

Var flat(D& d, const Var& x) { return d.calculus.reshape(x, {{x.size()}}); }

/// Adds to the gradient of input `index`.
void add_to(D& d, size_t index, const Var& gradient) {
  Var& result = d.result[index];
  result = absent(result) ? gradient : d.calculus.add(result, gradient);
}

/// The gradient of input 0 from places in it that the outputs' elements came from.
void scatter_back(D& d, size_t input, const Tensor& places, const Var& dy) {
  const Var sum = d.calculus.scatter_sum(flat(d, dy), places, d.x(input).size());
  add_to(d, input, d.calculus.reshape(sum, d.x(input).dims()));
}

}  // namespace

void derive_movement(D& d) {
  // Elements are numbered from 1 on through all inputs that move; 0 is what the operator makes
  // itself.
  std::vector<RunValue> values = values_of(d);
  std::vector<int64_t> base(d.inputs.size(), -1);
  int64_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (absent(d.x(i)) || d.x(i).dtype() != d.dy().dtype()) continue;
    auto numbers = Tensor::allocate(DType::kInt64, d.x(i).dims());
    if (!numbers) return d.calculus.fail(std::move(numbers).error());
    base[i] = next;
    for (int64_t k = 0; k < numbers->size(); ++k) numbers->data<int64_t>()[k] = ++next;
    values[i] = RunValue(*std::move(numbers));
  }
  auto moved = d.calculus.run_aside(d.node, d.opset, d.binding, values, d.outputs.size());
  if (!moved) return d.calculus.fail(std::move(moved).error());
  for (size_t k = 0; k < d.outputs.size(); ++k) {
    if (absent(d.gradients[k])) continue;
    const Tensor& numbers = (*moved)[k].tensor();
    for (size_t i = 0; i < values.size(); ++i) {
      if (base[i] < 0 || !d.calculus.active(d.x(i).id) || d.x(i).size() == 0) continue;
      const int64_t count = d.x(i).size();
      auto places = Tensor::allocate(DType::kInt64, {{numbers.size()}});
      if (!places) return d.calculus.fail(std::move(places).error());
      for (int64_t e = 0; e < numbers.size(); ++e) {
        const int64_t place = numbers.data<int64_t>()[e] - base[i] - 1;
        places->data<int64_t>()[e] = place >= 0 && place < count ? place : count;
      }
      scatter_back(d, i, *places, d.gradients[k]);
    }
  }
}

void derive_linear(D& d) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const int64_t inputs = d.x(0).size(), outputs = d.y().size();
  for (size_t i = 1; i < d.inputs.size(); ++i)
    if (d.has(i) && d.calculus.active(d.x(i).id) && is_float(d.x(i).dtype()))
      return d.calculus.fail(unsupported("Gradient cannot differentiate " +
                                         std::string(d.node.op_type()) + " by its input " +
                                         std::to_string(i)));
  if (inputs != 0 && outputs > kMost / inputs)
    return d.calculus.fail(resource_error("Gradient of " + std::string(d.node.op_type()) +
                                          " with " + std::to_string(inputs) +
                                          " elements is too large for its matrix"));
  auto matrix = Tensor::allocate(d.dy().dtype(), {{outputs, inputs}});
  if (!matrix) return d.calculus.fail(std::move(matrix).error());
  std::vector<RunValue> values = values_of(d);
  const auto run = [&](int64_t one) -> Result<Tensor> {
    TRY(Tensor unit, Tensor::allocate(d.x(0).dtype(), d.x(0).dims()));
    for (int64_t k = 0; k < inputs; ++k) unit.set_double(k, k == one ? 1 : 0);
    values[0] = RunValue(std::move(unit));
    TRY(auto results, d.calculus.run_aside(d.node, d.opset, d.binding, values, d.outputs.size()));
    return results[0].tensor();
  };
  auto zero = run(-1);  // what does not depend on the input: an affine operator is taken too
  if (!zero) return d.calculus.fail(std::move(zero).error());
  for (int64_t column = 0; column < inputs; ++column) {
    auto image = run(column);
    if (!image) return d.calculus.fail(std::move(image).error());
    for (int64_t row = 0; row < outputs; ++row)
      matrix->set_double(row * inputs + column, image->get_double(row) - zero->get_double(row));
  }
  const Var back = d.calculus.call(
      "MatMul", {d.calculus.reshape(d.dy(), {{1, outputs}}), d.calculus.constant(*matrix)});
  d.result[0] = d.calculus.reshape(back, d.x(0).dims());
}

namespace {

/// The operators that write to places and read them again, with the node's indices and axis.
struct Places {
  D& d;
  bool by_element;

  Var write(const Var& into, const Var& updates, const char* reduction) {
    struct Settings {
      const char* reduction;
      int64_t axis;
      bool by_element;
    } settings{reduction, d.attributes().get_int("axis", 0), by_element};
    const Var inputs[] = {into, d.x(1), updates};
    return d.calculus.call_all(
        by_element ? "ScatterElements" : "ScatterND", inputs, 1,
        [](Node& node, const void* argument) {
          const auto& own = *static_cast<const Settings*>(argument);
          node.set_string("reduction", own.reduction);
          if (own.by_element) node.set_int("axis", own.axis);
        },
        &settings)[0];
  }
  Var read(const Var& from) {
    if (!by_element) return d.calculus.call("GatherND", {from, d.x(1)});
    return d.calculus.call("GatherElements", {from, d.x(1)},
                           {{"axis", d.attributes().get_int("axis", 0)}});
  }
};

/// Products: each factor's gradient is the product of the others, also where factors are zero.
void derive_scatter_product(D& d, Places at) {
  Tape& c = d.calculus;
  const Var &x = d.x(0), &u = d.x(2);
  const Var zero = c.scalar(u, 0), one = c.scalar(u, 1);
  const Var is_zero = c.call("Equal", {u, zero});
  const Var others = at.write(c.filled(x, 1), u, "mul");
  d.result[0] = c.mul(d.dy(), others);
  const Var nonzero = c.call("Where", {is_zero, one, u});
  const Var product = at.read(at.write(c.filled(x, 1), nonzero, "mul"));
  const Var zeros = at.read(at.write(c.filled(x, 0), c.to_type(is_zero, u.dtype()), "add"));
  const Var alone = c.call("Where", {c.call("Equal", {zeros, one}), product, zero});
  const Var rest = c.call("Where", {c.call("Equal", {zeros, zero}), c.div(product, nonzero), zero});
  const Var factor = c.call("Where", {is_zero, alone, rest});
  d.result[2] = c.mul(at.read(c.mul(d.dy(), x)), factor);
}

/// Greatest and least: equal winners share.
void derive_scatter_extremum(D& d, Places at) {
  Tape& c = d.calculus;
  const DType type = d.dy().dtype();
  const Var own = c.to_type(c.call("Equal", {d.x(0), d.y()}), type);
  const Var given = c.to_type(c.call("Equal", {d.x(2), at.read(d.y())}), type);
  const Var winners = at.write(own, given, "add");
  const Var share = c.div(d.dy(), c.call("Max", {winners, c.scalar(d.dy(), 1)}));
  d.result[0] = c.mul(share, own);
  d.result[2] = c.mul(at.read(share), given);
}

void derive_scatter(D& d, bool by_element) {
  const Text reduction = d.attributes().get_string("reduction", "none");
  Places at{d, by_element};
  if (reduction == "none") return derive_movement(d);
  if (reduction == "mul") return derive_scatter_product(d, at);
  if (reduction == "max" || reduction == "min") return derive_scatter_extremum(d, at);
  d.result[0] = d.dy();
  d.result[2] = at.read(d.dy());
}

}  // namespace

void derive_scatter_elements(D& d) { derive_scatter(d, true); }
void derive_scatter_nd(D& d) { derive_scatter(d, false); }

/// Operators that pick elements by their order: where each came from is found by their ranks.
void derive_selection(D& d) {
  const Var& x = d.x(0);
  std::vector<int64_t> order(static_cast<size_t>(x.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return x.value.get_double(a) < x.value.get_double(b);
  });
  auto ranks = Tensor::allocate(DType::kFloat64, x.dims());
  if (!ranks) return d.calculus.fail(std::move(ranks).error());
  for (size_t i = 0; i < order.size(); ++i) ranks->set_double(order[i], static_cast<double>(i + 1));
  std::vector<RunValue> values = values_of(d);
  values[0] = RunValue(*ranks);
  for (size_t i = 1; i < values.size(); ++i)  // boxes have the type of the elements
    if (d.has(i) && is_float(d.x(i).dtype())) {
      auto wide = converted(d.calculus.context(), d.x(i).value, DType::kFloat64);
      if (!wide) return d.calculus.fail(std::move(wide).error());
      values[i] = RunValue(*std::move(wide));
    }
  auto picked = d.calculus.run_aside(d.node, d.opset, d.binding, values, d.outputs.size());
  if (!picked) return d.calculus.fail(std::move(picked).error());
  const Tensor& chosen = (*picked)[0].tensor();
  auto places = Tensor::allocate(DType::kInt64, {{chosen.size()}});
  if (!places) return d.calculus.fail(std::move(places).error());
  for (int64_t i = 0; i < chosen.size(); ++i) {
    const auto rank = static_cast<int64_t>(chosen.get_double(i));
    places->data<int64_t>()[i] =
        rank >= 1 && rank <= x.size() ? order[static_cast<size_t>(rank - 1)] : x.size();
  }
  scatter_back(d, 0, *places, d.dy());
}

void derive_max_pool(D& d) {
  // The same pool, with its indices in row-major order.
  const AttributeReader attributes = d.attributes();
  const std::vector<Var> outputs = d.calculus.call_all(
      "MaxPool", {&d.inputs[0], 1}, 2,
      [](Node& node, const void* argument) {
        const auto& from = *static_cast<const AttributeReader*>(argument);
        for (const char* name : {"kernel_shape", "strides", "pads", "dilations"})
          if (from.has(name)) node.set_ints(name, from.get_ints(name));
        node.set_int("ceil_mode", from.get_int("ceil_mode", 0));
        node.set_string("auto_pad", from.get_string("auto_pad", "NOTSET"));
      },
      &attributes);
  if (absent(outputs[1])) return;
  const Tensor& indices = outputs[1].value;
  auto places = Tensor::allocate(DType::kInt64, {{indices.size()}});
  if (!places) return d.calculus.fail(std::move(places).error());
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t place = indices.get_int64(i);
    places->data<int64_t>()[i] = place < 0 ? d.x(0).size() : place;
  }
  scatter_back(d, 0, *places, d.dy());
}

void derive_top_k(D& d) {
  const int64_t axis = d.attributes().get_int("axis", -1);
  const Var zeros = d.calculus.filled(d.x(0), 0);
  d.result[0] = d.calculus.call("ScatterElements", {zeros, d.outputs[1], d.dy()}, {{"axis", axis}});
}

namespace {

/// An equation without spaces and ellipses: terms, and the result.
struct Equation {
  std::vector<std::string> terms = {""};
  std::string out;
};

/// Letters in place of the dims that "..." stands for, aligned at their ends.
Equation read_equation(const D& d) {
  std::string text;
  for (const char c : d.attributes().get_string("equation", ""))
    if (c != ' ') text += c;
  Equation e;
  const size_t arrow = text.find("->");
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      e.terms.emplace_back();
    else
      e.terms.back() += c;
  }
  std::string free, dots;
  for (char c = 'A'; c <= 'z'; ++c)
    if ((c <= 'Z' || c >= 'a') && text.find(c) == std::string::npos) free += c;
  size_t most = 0;
  std::vector<size_t> counts;
  for (size_t k = 0; k < e.terms.size(); ++k) {
    const bool has = e.terms[k].find('.') != std::string::npos;
    const size_t rank = k < d.inputs.size() ? d.x(k).rank() : 0;
    counts.push_back(has && rank + 3 >= e.terms[k].size() ? rank + 3 - e.terms[k].size() : 0);
    most = std::max(most, counts.back());
  }
  dots = free.substr(0, most);
  const auto replace = [&](std::string& term, size_t count) {
    if (const size_t at = term.find("..."); at != std::string::npos)
      term.replace(at, 3, dots.substr(dots.size() - std::min(count, dots.size())));
  };
  for (size_t k = 0; k < e.terms.size(); ++k) replace(e.terms[k], counts[k]);
  if (arrow != std::string::npos) {
    e.out = text.substr(arrow + 2);
    replace(e.out, most);
    return e;
  }
  // Implicit: the ellipsis, then the letters that stand once, in order.
  e.out = dots;
  for (char c = 'A'; c <= 'z'; ++c)
    if (dots.find(c) == std::string::npos && std::count(text.begin(), text.end(), c) == 1 &&
        c != '.')
      e.out += c;
  return e;
}

Var identity(D& d, const Var& like, int64_t size) {
  auto eye = Tensor::allocate(like.dtype(), {{size, size}});
  if (!eye) {
    d.calculus.fail(std::move(eye).error());
    return {};
  }
  for (int64_t i = 0; i < size * size; ++i) eye->set_double(i, i / size == i % size ? 1 : 0);
  return d.calculus.constant(*eye);
}

}  // namespace

void derive_einsum(D& d) {
  const Equation e = read_equation(d);
  std::string all = e.out;
  for (const std::string& term : e.terms) all += term;
  for (size_t k = 0; k < e.terms.size() && k < d.inputs.size(); ++k) {
    if (!d.calculus.active(d.x(k).id)) continue;
    std::string made = e.out, seen = e.out, used = all;
    std::vector<Var> operands = {d.dy()};
    for (size_t i = 0; i < e.terms.size(); ++i) {
      if (i == k) continue;
      made += "," + e.terms[i];
      seen += e.terms[i];
      operands.push_back(d.x(i));
    }
    // A letter that comes again means a diagonal: a letter of its own, and an identity matrix.
    // Letters that only this term has were summed alone: its gradient is repeated along them.
    std::string term, alone;
    Dims alone_dims, dims;
    for (size_t axis = 0; axis < e.terms[k].size() && axis < d.x(k).rank(); ++axis) {
      char c = e.terms[k][axis];
      const int64_t size = d.x(k).dim(axis);
      dims.push_back(size);
      if (term.find(c) != std::string::npos) {
        char other = 'A';
        while (other <= 'z' &&
               (used.find(other) != std::string::npos || (other > 'Z' && other < 'a')))
          ++other;
        if (other > 'z') return d.calculus.fail(unsupported("Einsum with more than 52 letters"));
        used += other;
        made += std::string(",") + c + other;
        operands.push_back(identity(d, d.dy(), size));
        c = other;
      } else if (seen.find(c) == std::string::npos) {
        alone += c;
        alone_dims.push_back(size);
      }
      term += c;
    }
    if (!alone.empty()) {
      made += "," + alone;
      operands.push_back(d.calculus.filled(d.dy(), alone_dims, 1));
    }
    made += "->" + term;
    const Var whole = d.calculus.call_all(
        "Einsum", operands, 1,
        [](Node& node, const void* argument) {
          node.set_string("equation", *static_cast<const std::string*>(argument));
        },
        &made)[0];
    if (absent(whole)) return;
    // Where this operand was repeated by broadcasting, its gradient is summed.
    d.result[k] = d.calculus.reduce_to(whole, dims.span());
  }
}

}  // namespace tombolo::ops
