#include "ops/kernels/derivatives.h"

#include <algorithm>

#include "ops/attributes.h"
#include "ops/registry.h"

namespace tombolo::ops {

namespace {

using D = Differentiation;

/// dx[index] = gradient, summed to the input's shape.
void set(D& d, size_t index, const Var& gradient) {
  if (index < d.result.size() && !absent(d.x(index)))
    d.result[index] = d.calculus.reduce_to(gradient, d.x(index).dims());
}
Var one(D& d) { return d.calculus.scalar(d.dy(), 1); }
Var call(D& d, const char* op, std::initializer_list<Var> inputs) {
  return d.calculus.call(op, inputs);
}
Var mul(D& d, const Var& a, const Var& b) { return d.calculus.mul(a, b); }
/// dy * f, dy / f.
void times(D& d, const Var& factor) { set(d, 0, mul(d, d.dy(), factor)); }
void over(D& d, const Var& divisor) { set(d, 0, d.calculus.div(d.dy(), divisor)); }
Var square(D& d, const Var& x) { return mul(d, x, x); }

void nothing(D&) {}
/// dy * c.
Var scaled(D& d, const Var& x, double factor) { return mul(d, x, d.calculus.scalar(x, factor)); }
void reshaped(D& d) { d.result[0] = d.calculus.reshape(d.dy(), d.x(0).dims()); }

void power(D& d) {
  const Var &x = d.x(0), exponent = d.calculus.to_type(d.x(1), x.dtype());
  const Var less = d.calculus.sub(exponent, one(d));
  set(d, 0, mul(d, d.dy(), mul(d, exponent, call(d, "Pow", {x, less}))));
  if (d.x(1).dtype() == x.dtype()) set(d, 1, mul(d, d.dy(), mul(d, d.y(), call(d, "Log", {x}))));
}

/// Max, Min, Clip: the gradient goes to the inputs that equal the output, shared among them.
void extremum(D& d) {
  std::vector<Var> masks;
  Var count;
  for (const Var& x : d.inputs) {
    masks.push_back(d.calculus.to_type(call(d, "Equal", {x, d.y()}), d.dy().dtype()));
    count = absent(count) ? masks.back() : d.calculus.add(count, masks.back());
  }
  for (size_t i = 0; i < masks.size(); ++i)
    set(d, i, d.calculus.div(mul(d, d.dy(), masks[i]), count));
}
void clip(D& d) {
  set(d, 0, mul(d, d.dy(), d.calculus.to_type(call(d, "Equal", {d.x(0), d.y()}), d.dy().dtype())));
}

void leaky_relu(D& d) {
  const double alpha = static_cast<double>(d.attributes().get_float("alpha", 0.01f));
  const Var scaled = mul(d, d.dy(), d.calculus.scalar(d.dy(), alpha));
  const Var positive = call(d, "Greater", {d.x(0), d.calculus.scalar(d.dy(), 0)});
  set(d, 0, call(d, "Where", {positive, d.dy(), scaled}));
}

void where(D& d) {
  const Var zero = d.calculus.scalar(d.dy(), 0);
  set(d, 1, call(d, "Where", {d.x(0), d.dy(), zero}));
  set(d, 2, call(d, "Where", {d.x(0), zero, d.dy()}));
}

void matmul(D& d) {
  Tape& c = d.calculus;
  // A vector is a matrix of one row or one column.
  const Var a = d.x(0).rank() == 1 ? c.reshape(d.x(0), {{1, d.x(0).dim(0)}}) : d.x(0);
  const Var b = d.x(1).rank() == 1 ? c.reshape(d.x(1), {{d.x(1).dim(0), 1}}) : d.x(1);
  Dims dims = d.dy().dims();
  if (d.x(1).rank() == 1) dims.push_back(1);
  if (d.x(0).rank() == 1) dims.insert(dims.size() - 1, 1);
  const Var dy = c.reshape(d.dy(), dims);
  const Var da = c.reduce_to(c.call("MatMul", {dy, c.swap_last(b)}), a.dims());
  const Var db = c.reduce_to(c.call("MatMul", {c.swap_last(a), dy}), b.dims());
  d.result[0] = c.reshape(da, d.x(0).dims());
  d.result[1] = c.reshape(db, d.x(1).dims());
}

void gemm(D& d) {
  Tape& c = d.calculus;
  const AttributeReader attributes = d.attributes();
  const bool turn_a = attributes.get_int("transA", 0) != 0;
  const bool turn_b = attributes.get_int("transB", 0) != 0;
  const double alpha = static_cast<double>(attributes.get_float("alpha", 1));
  const double beta = static_cast<double>(attributes.get_float("beta", 1));
  const Var a = turn_a ? c.swap_last(d.x(0)) : d.x(0);
  const Var b = turn_b ? c.swap_last(d.x(1)) : d.x(1);
  const Var dy = c.mul(d.dy(), c.scalar(d.dy(), alpha));
  const Var da = c.call("MatMul", {dy, c.swap_last(b)});
  const Var db = c.call("MatMul", {c.swap_last(a), dy});
  set(d, 0, turn_a ? c.swap_last(da) : da);
  set(d, 1, turn_b ? c.swap_last(db) : db);
  if (d.inputs.size() > 2) set(d, 2, c.mul(d.dy(), c.scalar(d.dy(), beta)));
}

void transpose(D& d) {
  const auto given = d.attributes().get_ints("perm");
  const size_t rank = d.x(0).rank();
  std::vector<int64_t> inverse(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (given.empty())
      inverse[i] = static_cast<int64_t>(rank - 1 - i);
    else  // the kernel has checked the permutation
      inverse[static_cast<size_t>(given[i] < 0 ? given[i] + static_cast<int64_t>(rank)
                                               : given[i])] = static_cast<int64_t>(i);
  }
  d.result[0] = d.calculus.call(
      "Transpose", {d.dy()},
      [](Node& node, const void* argument) {
        node.set_ints("perm", *static_cast<const std::vector<int64_t>*>(argument));
      },
      &inverse);
}

/// The gradient of a reduction's output with the reduced axes back, repeated to the input's shape.
Var restored(D& d, const Var& gradient) {
  const AttributeReader attributes = d.attributes();
  std::vector<int64_t> axes(attributes.get_ints("axes").begin(), attributes.get_ints("axes").end());
  if (d.inputs.size() > 1 && !absent(d.x(1)))
    for (int64_t i = 0; i < d.x(1).size(); ++i) axes.push_back(d.x(1).value.get_int64(i));
  Dims kept = d.x(0).dims();
  const bool none = axes.empty();
  if (none && attributes.get_int("noop_with_empty_axes", 0) != 0) return gradient;
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    const auto is = [&](int64_t given) {
      return (given < 0 ? given + static_cast<int64_t>(kept.size()) : given) ==
             static_cast<int64_t>(axis);
    };
    if (none || std::any_of(axes.begin(), axes.end(), is)) kept[axis] = 1;
  }
  return d.calculus.expand(d.calculus.reshape(gradient, kept), d.x(0).dims());
}
void reduce_mean(D& d) {
  const double share = static_cast<double>(d.y().size()) / static_cast<double>(d.x(0).size());
  set(d, 0, mul(d, restored(d, d.dy()), d.calculus.scalar(d.dy(), share)));
}

/// The sum over the axis of a softmax, kept as an axis of length 1.
Var axis_sum(D& d, const Var& x) {
  int64_t axis = d.attributes().get_int("axis", -1);
  return d.calculus.call("ReduceSum", {x, d.calculus.constant({{axis}})});
}
void softmax(D& d) {
  const Var weighted = mul(d, d.dy(), d.y());
  set(d, 0, d.calculus.sub(weighted, mul(d, d.y(), axis_sum(d, weighted))));
}
void log_softmax(D& d) {
  set(d, 0, d.calculus.sub(d.dy(), mul(d, call(d, "Exp", {d.y()}), axis_sum(d, d.dy()))));
}

void concat(D& d) {
  const int64_t given = d.attributes().get_int("axis", 0);
  const int64_t axis = given < 0 ? given + static_cast<int64_t>(d.dy().rank()) : given;
  int64_t at = 0;
  for (size_t i = 0; i < d.inputs.size(); ++i) {
    const int64_t end = at + d.x(i).dim(static_cast<size_t>(axis));
    d.result[i] =
        d.calculus.call("Slice", {d.dy(), d.calculus.constant({{at}}), d.calculus.constant({{end}}),
                                  d.calculus.constant({{axis}})});
    at = end;
  }
}

void same_to_all(D& d, double factor) {
  for (size_t i = 0; i < d.inputs.size(); ++i)
    set(d, i, mul(d, d.dy(), d.calculus.scalar(d.dy(), factor)));
}

/// ReduceMax, ReduceMin: shared among the elements that equal the extremum.
void reduce_extremum(D& d) {
  const Var y = restored(d, d.y());
  const Var mask = d.calculus.to_type(call(d, "Equal", {d.x(0), y}), d.dy().dtype());
  const AttributeReader attributes = d.attributes();
  std::vector<int64_t> axes(attributes.get_ints("axes").begin(), attributes.get_ints("axes").end());
  if (d.has(1))
    for (int64_t i = 0; i < d.x(1).size(); ++i) axes.push_back(d.x(1).value.get_int64(i));
  const bool whole = axes.empty() && attributes.get_int("noop_with_empty_axes", 0) == 0;
  const Var count = whole ? d.calculus.call("ReduceSum", {mask})
                    : axes.empty()
                        ? mask
                        : d.calculus.call("ReduceSum", {mask, d.calculus.constant(axes)});
  set(d, 0, d.calculus.div(mul(d, restored(d, d.dy()), mask), count));
}

void modulo(D& d) {
  set(d, 0, d.dy());
  const Var quotient = d.calculus.div(d.x(0), d.x(1));
  Var whole = call(d, "Floor", {quotient});
  if (d.attributes().get_int("fmod", 0) != 0)  // towards zero
    whole = mul(d, call(d, "Sign", {quotient}), call(d, "Floor", {call(d, "Abs", {quotient})}));
  set(d, 1, d.calculus.neg(mul(d, d.dy(), whole)));
}

void p_relu(D& d) {
  const Var zero = d.calculus.scalar(d.dy(), 0);
  const Var positive = call(d, "Greater", {d.x(0), zero});
  set(d, 0, call(d, "Where", {positive, d.dy(), mul(d, d.dy(), d.x(1))}));
  set(d, 1, call(d, "Where", {positive, zero, mul(d, d.dy(), d.x(0))}));
}

void hard_sigmoid(D& d) {
  const double alpha = static_cast<double>(d.attributes().get_float("alpha", 0.2f));
  const Var zero = d.calculus.scalar(d.dy(), 0);
  const Var inside =
      call(d, "And", {call(d, "Greater", {d.y(), zero}), call(d, "Less", {d.y(), one(d)})});
  set(d, 0, call(d, "Where", {inside, scaled(d, d.dy(), alpha), zero}));
}

void thresholded_relu(D& d) {
  const double alpha = static_cast<double>(d.attributes().get_float("alpha", 1));
  const Var above = call(d, "Greater", {d.x(0), d.calculus.scalar(d.dy(), alpha)});
  set(d, 0, call(d, "Where", {above, d.dy(), d.calculus.scalar(d.dy(), 0)}));
}

struct Rule {
  std::string_view op;
  DerivativeFn derivative;
};
constexpr Rule kRules[] = {
    {"Abs", [](D& d) { times(d, call(d, "Sign", {d.x(0)})); }},
    {"Acos",
     [](D& d) {
       const Var root = call(d, "Sqrt", {d.calculus.sub(one(d), square(d, d.x(0)))});
       over(d, d.calculus.neg(root));
     }},
    {"Add",
     [](D& d) {
       set(d, 0, d.dy());
       set(d, 1, d.dy());
     }},
    {"And", nothing},
    {"Asin", [](D& d) { over(d, call(d, "Sqrt", {d.calculus.sub(one(d), square(d, d.x(0)))})); }},
    {"Atan", [](D& d) { over(d, d.calculus.add(one(d), square(d, d.x(0)))); }},
    {"Cast", [](D& d) { d.result[0] = d.calculus.to_type(d.dy(), d.x(0).dtype()); }},
    {"Ceil", nothing},
    {"Clip", clip},
    {"Concat", concat},
    {"Constant", nothing},
    {"ConstantOfShape", nothing},
    {"Cos", [](D& d) { times(d, d.calculus.neg(call(d, "Sin", {d.x(0)}))); }},
    {"Cosh", [](D& d) { times(d, call(d, "Sinh", {d.x(0)})); }},
    {"Div",
     [](D& d) {
       const Var dx = d.calculus.div(d.dy(), d.x(1));
       set(d, 0, dx);
       set(d, 1, d.calculus.neg(mul(d, dx, d.y())));
     }},
    {"Equal", nothing},
    {"Erf",
     [](D& d) {
       const Var bell = call(d, "Exp", {d.calculus.neg(square(d, d.x(0)))});
       times(d, mul(d, bell, d.calculus.scalar(d.dy(), 1.1283791670955126)));  // 2 / sqrt(pi)
     }},
    {"Exp", [](D& d) { times(d, d.y()); }},
    {"Expand", [](D& d) { set(d, 0, d.dy()); }},
    {"Flatten", reshaped},
    {"Floor", nothing},
    {"Gemm", gemm},
    {"Greater", nothing},
    {"GreaterOrEqual", nothing},
    {"Identity", reshaped},
    {"LeakyRelu", leaky_relu},
    {"Less", nothing},
    {"LessOrEqual", nothing},
    {"Log", [](D& d) { over(d, d.x(0)); }},
    {"LogSoftmax", log_softmax},
    {"MatMul", matmul},
    {"Max", extremum},
    {"Mean", [](D& d) { same_to_all(d, 1 / static_cast<double>(d.inputs.size())); }},
    {"Min", extremum},
    {"Mul",
     [](D& d) {
       set(d, 0, mul(d, d.dy(), d.x(1)));
       set(d, 1, mul(d, d.dy(), d.x(0)));
     }},
    {"Neg", [](D& d) { set(d, 0, d.calculus.neg(d.dy())); }},
    {"Not", nothing},
    {"Or", nothing},
    {"Pow", power},
    {"Reciprocal", [](D& d) { times(d, d.calculus.neg(square(d, d.y()))); }},
    {"ReduceMean", reduce_mean},
    {"ReduceSum", [](D& d) { set(d, 0, restored(d, d.dy())); }},
    {"ReduceSumSquare",
     [](D& d) {
       set(d, 0, mul(d, mul(d, restored(d, d.dy()), d.x(0)), d.calculus.scalar(d.dy(), 2)));
     }},
    {"Relu", [](D& d) { times(d, call(d, "Sign", {d.y()})); }},
    {"Reshape", reshaped},
    {"Round", nothing},
    {"Shape", nothing},
    {"Sigmoid", [](D& d) { times(d, mul(d, d.y(), d.calculus.sub(one(d), d.y()))); }},
    {"Sign", nothing},
    {"Sin", [](D& d) { times(d, call(d, "Cos", {d.x(0)})); }},
    {"Sinh", [](D& d) { times(d, call(d, "Cosh", {d.x(0)})); }},
    {"Size", nothing},
    {"Softmax", softmax},
    {"Softplus", [](D& d) { times(d, call(d, "Sigmoid", {d.x(0)})); }},
    {"Sqrt", [](D& d) { over(d, d.calculus.add(d.y(), d.y())); }},
    {"Squeeze", reshaped},
    {"Sub",
     [](D& d) {
       set(d, 0, d.dy());
       set(d, 1, d.calculus.neg(d.dy()));
     }},
    {"Sum", [](D& d) { same_to_all(d, 1); }},
    {"Tan", [](D& d) { times(d, d.calculus.add(one(d), square(d, d.y()))); }},
    {"Tanh", [](D& d) { times(d, d.calculus.sub(one(d), square(d, d.y()))); }},
    {"Transpose", transpose},
    {"Unsqueeze", reshaped},
    {"Where", where},
    {"Acosh", [](D& d) { over(d, call(d, "Sqrt", {d.calculus.sub(square(d, d.x(0)), one(d))})); }},
    {"AffineGrid", derive_linear},
    {"ArgMax", nothing},
    {"ArgMin", nothing},
    {"Asinh", [](D& d) { over(d, call(d, "Sqrt", {d.calculus.add(square(d, d.x(0)), one(d))})); }},
    {"Atanh", [](D& d) { over(d, d.calculus.sub(one(d), square(d, d.x(0)))); }},
    {"Bernoulli", nothing},
    {"BitShift", nothing},
    {"CastLike", [](D& d) { d.result[0] = d.calculus.to_type(d.dy(), d.x(0).dtype()); }},
    {"CenterCropPad", derive_movement},
    {"Col2Im", derive_linear},
    {"Compress", derive_movement},
    {"CumSum", derive_linear},
    {"DFT", derive_linear},
    {"DepthToSpace", derive_movement},
    {"Dropout", derive_linear},
    {"Einsum", derive_einsum},
    {"EyeLike", nothing},
    {"Gather", derive_movement},
    {"GatherElements", derive_movement},
    {"GatherND", derive_movement},
    {"HardSigmoid", hard_sigmoid},
    {"Hardmax", nothing},
    {"IsInf", nothing},
    {"IsNaN", nothing},
    {"MaxPool", derive_max_pool},
    {"MaxRoiPool", derive_selection},
    {"MaxUnpool", derive_linear},
    {"Mod", modulo},
    {"Multinomial", nothing},
    {"NonMaxSuppression", nothing},
    {"NonZero", nothing},
    {"OneHot", derive_movement},
    {"PRelu", p_relu},
    {"Pad", derive_movement},
    {"RandomNormal", nothing},
    {"RandomNormalLike", nothing},
    {"RandomUniform", nothing},
    {"RandomUniformLike", nothing},
    {"Range", nothing},
    {"ReduceMax", reduce_extremum},
    {"ReduceMin", reduce_extremum},
    {"Resize", derive_linear},
    {"ReverseSequence", derive_movement},
    {"RoiAlign", derive_linear},
    {"STFT", derive_linear},
    {"Scatter", derive_movement},
    {"ScatterElements", derive_scatter_elements},
    {"ScatterND", derive_scatter_nd},
    {"Slice", derive_movement},
    {"SpaceToDepth", derive_movement},
    {"Split", derive_movement},
    {"TensorScatter", derive_movement},
    {"ThresholdedRelu", thresholded_relu},
    {"Tile", derive_movement},
    {"TopK", derive_top_k},
    {"Trilu", derive_movement},
    {"Unique", derive_movement},
    {"Upsample", derive_linear},
    {"Xor", nothing},
};

}  // namespace

DerivativeFn derivative_of(std::string_view op) {
  for (const Rule& rule : kRules)
    if (rule.op == op) return rule.derivative;
  return nullptr;
}

}  // namespace tombolo::ops
