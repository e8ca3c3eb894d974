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

void derive_scatter_elements(D& d) {
  const Text reduction = d.attributes().get_string("reduction", "none");
  if (reduction == "none") return derive_movement(d);
  if (reduction != "add")
    return d.calculus.fail(unsupported("Gradient of ScatterElements with reduction \"" +
                                       std::string(reduction) + "\""));
  d.result[0] = d.dy();
  d.result[2] = d.calculus.call("GatherElements", {d.dy(), d.x(1)},
                                {{"axis", d.attributes().get_int("axis", 0)}});
}

void derive_scatter_nd(D& d) {
  const Text reduction = d.attributes().get_string("reduction", "none");
  if (reduction == "none") return derive_movement(d);
  if (reduction != "add")
    return d.calculus.fail(
        unsupported("Gradient of ScatterND with reduction \"" + std::string(reduction) + "\""));
  d.result[0] = d.dy();
  d.result[2] = d.calculus.call("GatherND", {d.dy(), d.x(1)});
}

void derive_max_pool(D& d) {
  if (d.attributes().get_int("storage_order", 0) != 0)
    return d.calculus.fail(unsupported("Gradient of MaxPool with storage_order 1"));
  // The same pool, with its indices.
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

void derive_einsum(D& d) {
  std::string equation;
  for (const char c : d.attributes().get_string("equation", ""))
    if (c != ' ') equation += c;
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::string out;
  if (arrow != std::string::npos) {
    out = equation.substr(arrow + 2);
  } else {  // implicit: the letters that stand once, in order
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::count(equation.begin(), equation.end(), c) == 1) out += c;
  }
  if (equation.find('.') != std::string::npos)
    return d.calculus.fail(unsupported("Gradient of Einsum with an ellipsis"));
  for (size_t k = 0; k < terms.size() && k < d.inputs.size(); ++k) {
    if (!d.calculus.active(d.x(k).id)) continue;
    std::string made = out;
    std::vector<Var> operands = {d.dy()};
    std::string seen = out;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (i == k) continue;
      made += "," + terms[i];
      seen += terms[i];
      operands.push_back(d.x(i));
    }
    // Letters that only this term has were summed alone: its gradient is repeated along them.
    std::string alone;
    Dims alone_dims;
    for (size_t axis = 0; axis < terms[k].size(); ++axis) {
      const char c = terms[k][axis];
      if (std::count(terms[k].begin(), terms[k].end(), c) > 1)
        return d.calculus.fail(unsupported("Gradient of Einsum with a diagonal"));
      if (seen.find(c) == std::string::npos) {
        alone += c;
        alone_dims.push_back(d.x(k).dim(axis));
      }
    }
    if (!alone.empty()) {
      made += "," + alone;
      operands.push_back(d.calculus.filled(d.dy(), alone_dims, 1));
    }
    made += "->" + terms[k];
    d.result[k] = d.calculus.call_all(
        "Einsum", operands, 1,
        [](Node& node, const void* argument) {
          node.set_string("equation", *static_cast<const std::string*>(argument));
        },
        &made)[0];
  }
}

}  // namespace tombolo::ops
