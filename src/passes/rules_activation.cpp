// Activations that exporters spell out.

#include <cmath>

#include "passes/passes.h"
#include "passes/rule.h"

namespace tombolo::passes {
namespace {

bool is_real(Match& match) {
  const DType dtype = match.dtype("x");
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

/// w is a constant that leaves x its shape.
bool is_scaled(Match& match) {
  return is_real(match) && match.rewriter.is_constant(match.value("w")) &&
         match.rewriter.same_shape(match.value("x"), match.output());
}

/// Scalars: gelu's exact and tanh forms, in the orders in which torch, TensorFlow, Keras, Paddle
/// and Flax write them. r = sqrt(2), q = 1 / r; k = sqrt(2 / pi).
#define R "float r = {1.4142135623730951}"
#define Q "float q = {0.7071067811865476}"
#define ONE "float one = {1.0}"
#define HALF "float half = {0.5}"
#define K "float k = {0.7978845608028654}"
#define C "float c = {0.044715}"
#define CUBE "float three = {3.0}"

constexpr RewriteRule kActivationRules[] = {
    {.name = "gelu",
     .patterns =
         {// (x * (erf(x / r) + 1)) * half, and the product in its other orders
          "p (x) => (y) <" R ", " ONE ", " HALF "> { d = Div (x, r) e = Erf (d) a = Add (e, one)"
          " m = Mul (x, a) y = Mul (m, half) }",
          "p (x) => (y) <" Q ", " ONE ", " HALF "> { d = Mul (x, q) e = Erf (d) a = Add (e, one)"
          " m = Mul (x, a) y = Mul (m, half) }",
          "p (x) => (y) <" R ", " ONE ", " HALF "> { d = Div (x, r) e = Erf (d) a = Add (e, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" Q ", " ONE ", " HALF "> { d = Mul (x, q) e = Erf (d) a = Add (e, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" R ", " ONE ", " HALF "> { d = Div (x, r) e = Erf (d) a = Add (e, one)"
          " m = Mul (a, half) y = Mul (x, m) }",
          "p (x) => (y) <" Q ", " ONE ", " HALF "> { d = Mul (x, q) e = Erf (d) a = Add (e, one)"
          " m = Mul (a, half) y = Mul (x, m) }",
          // x * (half + half * erf(x / r))
          "p (x) => (y) <" R ", " HALF "> { d = Div (x, r) e = Erf (d) m = Mul (e, half)"
          " a = Add (m, half) y = Mul (x, a) }",
          "p (x) => (y) <" Q ", " HALF "> { d = Mul (x, q) e = Erf (d) m = Mul (e, half)"
          " a = Add (m, half) y = Mul (x, a) }"},
     .replacement = "r (x) => (y) { y = Gelu (x) }",
     .condition = is_real},
    {.name = "gelu-tanh",
     .patterns =
         {// half * x * (1 + tanh(k * (x + c * x^3)))
          "p (x) => (y) <" K ", " C ", " CUBE ", " ONE ", " HALF "> { p3 = Pow (x, three)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" K ", " C ", " CUBE ", " ONE ", " HALF "> { p3 = Pow (x, three)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (a, half) y = Mul (x, m) }",
          "p (x) => (y) <" K ", " C ", " CUBE ", " ONE ", " HALF "> { p3 = Pow (x, three)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, a) y = Mul (m, half) }",
          // x^3 as products
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { p2 = Mul (x, x) p3 = Mul (p2, x)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { p2 = Mul (x, x) p3 = Mul (p2, x)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (a, half) y = Mul (x, m) }",
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { p2 = Mul (x, x) p3 = Mul (p2, x)"
          " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, a) y = Mul (m, half) }",
          // k * x * (1 + c * x * x)
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { cx = Mul (x, c) c2 = Mul (cx, x)"
          " i = Add (c2, one) kx = Mul (x, k) u = Mul (kx, i) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { p2 = Mul (x, x) c2 = Mul (p2, c)"
          " i = Add (c2, one) kx = Mul (x, k) u = Mul (kx, i) v = Tanh (u) a = Add (v, one)"
          " m = Mul (x, half) y = Mul (m, a) }",
          "p (x) => (y) <" K ", " C ", " ONE ", " HALF "> { cx = Mul (x, c) c2 = Mul (cx, x)"
          " i = Add (c2, one) kx = Mul (x, k) u = Mul (kx, i) v = Tanh (u) a = Add (v, one)"
          " m = Mul (a, half) y = Mul (x, m) }"},
     .replacement = "r (x) => (y) { y = Gelu <approximate = \"tanh\"> (x) }",
     .condition = is_real},
    // TensorFlow multiplies the constant of a normalisation behind it into one of the factors.
    {.name = "gelu-tanh-scaled",
     .patterns = {"p (x, w) => (y) <" K ", " C ", " CUBE ", " ONE ", " HALF
                  "> { p3 = Pow (x, three)"
                  " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
                  " m = Mul (x, half) n = Mul (a, w) y = Mul (m, n) }"},
     .replacement = "r (x, w) => (y) { g = Gelu <approximate = \"tanh\"> (x) y = Mul (g, w) }",
     .condition = is_scaled},
    // ONNX Runtime's optimiser puts the half into the product behind it, and powers into products.
    {.name = "gelu-tanh-halved-later",
     .patterns = {"p (x, w) => (y) <" K ", " C ", " ONE "> { p2 = Mul (x, x) p3 = Mul (p2, x)"
                  " s = Mul (p3, c) t = Add (x, s) u = Mul (t, k) v = Tanh (u) a = Add (v, one)"
                  " m = Mul (x, a) y = com.microsoft.FusedMatMul <alpha = 0.5> (m, w) }"},
     .replacement = "r (x, w) => (y) { g = Gelu <approximate = \"tanh\"> (x) y = MatMul (g, w) }",
     .condition = is_real},
    {.name = "sigmoid",
     .patterns = {"p (x) => (y) <" ONE "> { n = Neg (x) e = Exp (n) a = Add (e, one)"
                  " y = Div (one, a) }",
                  "p (x) => (y) <" ONE "> { n = Neg (x) e = Exp (n) a = Add (e, one)"
                  " y = Reciprocal (a) }"},
     .replacement = "r (x) => (y) { y = Sigmoid (x) }",
     .condition = is_real},
    {.name = "hard-sigmoid",
     .patterns = {"p (x) => (y) <float three = {3.0}, float zero = {0.0}, float six = {6.0}>"
                  " { a = Add (x, three) c = Clip (a, zero, six) y = Div (c, six) }",
                  "p (x) => (y) <float three = {3.0}, float zero = {0.0}, float six = {6.0},"
                  " float sixth = {0.16666666666666667}>"
                  " { a = Add (x, three) c = Clip (a, zero, six) y = Mul (c, sixth) }"},
     .replacement = "r (x) => (y) { y = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) }",
     .condition = is_real},
    {.name = "hard-swish",
     .patterns =
         {"p (x) => (y) { h = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, h) }",
          "p (x) => (y) <float three = {3.0}, float zero = {0.0}, float six = {6.0}>"
          " { a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, c) y = Div (m, six) }",
          "p (x) => (y) <float three = {3.0}, float zero = {0.0}, float six = {6.0},"
          " float sixth = {0.16666666666666667}>"
          " { a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, c) y = Mul (m, sixth) }",
          "p (x) => (y) <float three = {3.0}, float zero = {0.0}, float six = {6.0},"
          " float sixth = {0.16666666666666667}>"
          " { a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, sixth) y = Mul (m, c) }"},
     .replacement = "r (x) => (y) { y = HardSwish (x) }",
     .condition = is_real},
    {.name = "mish",
     .patterns = {"p (x) => (y) { s = Softplus (x) t = Tanh (s) y = Mul (x, t) }"},
     .replacement = "r (x) => (y) { y = Mish (x) }",
     .condition = is_real},
};

/// alpha is a constant of one element; Swish takes it as an attribute.
bool swish_alpha(Match& match) {
  if (!is_real(match)) return false;
  const auto alpha = match.rewriter.scalar(match.value("a"));
  const auto rank = match.rewriter.rank(match.value("a"));
  const auto other = match.rewriter.rank(match.value("x"));
  if (!alpha || !std::isfinite(*alpha) || !rank || (*rank > 0 && (!other || *other < *rank)))
    return false;
  match.set("alpha", static_cast<float>(*alpha));
  return true;
}

constexpr RewriteRule kSwishRules[] = {
    {.name = "swish",
     .patterns = {"p (x) => (y) { s = Sigmoid (x) y = Mul (x, s) }"},
     .replacement = "r (x) => (y) { y = Swish (x) }",
     .condition = is_real},
    {.name = "swish-alpha",
     .patterns = {"p (x, a) => (y) { m = Mul (x, a) s = Sigmoid (m) y = Mul (x, s) }"},
     .replacement = "r (x) => (y) { y = Swish <alpha = @alpha> (x) }",
     .condition = swish_alpha},
};

/// Softmax spelled out with the largest value taken away, along one axis.
bool one_axis(Match& match) {
  if (!is_real(match)) return false;
  const auto axes = match.rewriter.ints(match.value("axes"));
  const auto rank = match.rewriter.rank(match.value("x"));
  const auto again = match.rewriter.ints(match.value("axes2"));
  if (!axes || !again || !rank || axes->size() != 1 || again->size() != 1) return false;
  const auto positive = [&](int64_t axis) {
    return axis < 0 ? axis + static_cast<int64_t>(*rank) : axis;
  };
  if (positive((*axes)[0]) != positive((*again)[0])) return false;
  match.set("axis", (*axes)[0]);
  return true;
}

constexpr RewriteRule kSoftmaxRules[] = {
    {.name = "softmax",
     .patterns = {"p (x, axes, axes2) => (y) { m = ReduceMax (x, axes) d = Sub (x, m) e = Exp (d)"
                  " s = ReduceSum (e, axes2) y = Div (e, s) }"},
     .replacement = "r (x) => (y) { y = Softmax <axis = @axis> (x) }",
     .condition = one_axis},
    {.name = "log-softmax",
     .patterns = {"p (x, axes, axes2) => (y) { m = ReduceMax (x, axes) d = Sub (x, m) e = Exp (d)"
                  " s = ReduceSum (e, axes2) l = Log (s) y = Sub (d, l) }"},
     .replacement = "r (x) => (y) { y = LogSoftmax <axis = @axis> (x) }",
     .condition = one_axis},
};

}  // namespace

Result<size_t> recognise_activations(Rewriter& rewriter) {
  TRY(size_t count, apply_rules(rewriter, kActivationRules));
  TRY(const size_t swish, apply_rules(rewriter, kSwishRules));
  TRY(const size_t softmax, apply_rules(rewriter, kSoftmaxRules));
  return count + swish + softmax;
}

}  // namespace tombolo::passes
