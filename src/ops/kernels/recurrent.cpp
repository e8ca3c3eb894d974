#include "ops/kernels/recurrent.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace tombolo::ops {

namespace {

/// Defaults of alpha and beta are those of the operators of the same name.
struct ActivationRow {
  std::string_view name;
  double (*function)(double x, double alpha, double beta);
  int parameters;
  double alpha = 0, beta = 0;
};
constexpr ActivationRow kActivations[] = {
    {"relu", [](double x, double, double) { return x > 0    ? x
                                                   : x != x ? x
                                                            : 0; }, 0},
    {"tanh", [](double x, double, double) { return std::tanh(x); }, 0},
    {"sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }, 0},
    {"affine", [](double x, double a, double b) { return a * x + b; }, 2, 1, 0},
    {"leakyrelu", [](double x, double a, double) { return x >= 0 ? x : a * x; }, 1, 0.01},
    {"thresholdedrelu", [](double x, double a, double) { return x >= a ? x : 0; }, 1, 1},
    {"scaledtanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, 2, 1, 1},
    {"hardsigmoid",
     [](double x, double a, double b) { return std::fmin(std::fmax(a * x + b, 0), 1); }, 2, 0.2,
     0.5},
    {"elu", [](double x, double a, double) { return x >= 0 ? x : a * std::expm1(x); }, 1, 1},
    {"softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }, 0},
    {"softplus",
     [](double x, double, double) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); },
     0},
};

const ActivationRow* find_activation(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const ActivationRow& row : kActivations)
    if (row.name == lower) return &row;
  return nullptr;
}

/// alpha and beta are lists from which each activation that has such a parameter takes the next.
Status read_activations(const KernelContext& context, RecurrentShape& shape,
                        std::initializer_list<const char*> defaults) {
  const auto given = context.attributes.get_strings("activations");
  const size_t count = defaults.size() * static_cast<size_t>(shape.directions);
  if (!given.empty() && given.size() != count)
    return context.error("activations has " + std::to_string(given.size()) + " names, needs " +
                         std::to_string(count));
  const auto alphas = context.attributes.get_floats("activation_alpha");
  const auto betas = context.attributes.get_floats("activation_beta");
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = given.empty() ? defaults.begin()[i % defaults.size()] : given[i];
    const ActivationRow* row = find_activation(name);
    if (row == nullptr)
      return context.error("activation \"" + std::string(name) + "\" is not known");
    Activation activation{row->function, row->alpha, row->beta};
    if (row->parameters >= 1 && alpha < alphas.size())
      activation.alpha = static_cast<double>(alphas[alpha++]);
    if (row->parameters >= 2 && beta < betas.size())
      activation.beta = static_cast<double>(betas[beta++]);
    shape.activations.push_back(activation);
  }
  return ok();
}

}  // namespace

Result<RecurrentShape> read_recurrent(const KernelContext& context, int64_t gates,
                                      std::initializer_list<const char*> defaults) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  TRY(const Tensor* r, context.input(2));
  RecurrentShape shape = {};
  shape.gates = gates;
  shape.batch_major = context.attributes.get_int("layout", 0) != 0;
  const Text direction = context.attributes.get_string("direction", "forward");
  // "foward" is how version 1 of GRU spells its default.
  if (direction != "forward" && direction != "foward" && direction != "reverse" &&
      direction != "bidirectional")
    return context.error("direction \"" + std::string(direction) + "\" is not known");
  shape.directions = direction == "bidirectional" ? 2 : 1;
  shape.reversed[0] = direction == "reverse";
  shape.reversed[1] = true;
  if (x->rank() != 3 || w->rank() != 3 || r->rank() != 3)
    return context.error("X, W and R must have rank 3, are " + to_string(*x) + ", " +
                         to_string(*w) + " and " + to_string(*r));
  shape.steps = x->dim(shape.batch_major ? 1 : 0);
  shape.batch = x->dim(shape.batch_major ? 0 : 1);
  shape.input = x->dim(2);
  shape.hidden = r->dim(2);
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (shape.steps >= kLimit || shape.batch >= kLimit || shape.input >= kLimit ||
      shape.hidden >= kLimit / 8)
    return context.error("X or R is too large: " + to_string(*x) + ", " + to_string(*r));
  CHECK_OK(check_dims(context, "W", *w, {{shape.directions, shape.width(), shape.input}}));
  CHECK_OK(check_dims(context, "R", *r, {{shape.directions, shape.width(), shape.hidden}}));
  const int64_t hidden = context.attributes.get_int("hidden_size", shape.hidden);
  if (hidden != shape.hidden)
    return context.error("hidden_size is " + std::to_string(hidden) + ", R is " + to_string(*r));
  TRY(const Tensor* bias, context.optional_input(3));
  if (bias != nullptr)
    CHECK_OK(check_dims(context, "B", *bias, {{shape.directions, 2 * shape.width()}}));
  shape.clip = context.attributes.has("clip")
                   ? static_cast<double>(context.attributes.get_float("clip", 0))
                   : std::numeric_limits<double>::infinity();
  if (!(shape.clip >= 0))
    return context.error("clip is " + std::to_string(shape.clip) + ", must not be negative");
  shape.lengths.assign(static_cast<size_t>(shape.batch), shape.steps);
  TRY(const Tensor* lengths, context.optional_input(4));
  if (lengths != nullptr) {
    CHECK_OK(check_dims(context, "sequence_lens", *lengths, {{shape.batch}}));
    for (int64_t b = 0; b < shape.batch; ++b) {
      const int64_t length = lengths->get_int64(b);
      if (length < 0 || length > shape.steps)
        return context.error("sequence_lens has the value " + std::to_string(length) + ", X has " +
                             std::to_string(shape.steps) + " steps");
      shape.lengths[static_cast<size_t>(b)] = length;
    }
  }
  CHECK_OK(read_activations(context, shape, defaults));
  return shape;
}

}  // namespace tombolo::ops
