#pragma once

// What RNN, GRU and LSTM share: shapes, activations, directions, the walk over time.

#include <cstdint>
#include <vector>

#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"

namespace tombolo::ops {

/// An activation of the recurrent operators, with its parameters.
struct Activation {
  double (*function)(double x, double alpha, double beta);
  double alpha, beta;
  double operator()(double x) const { return function(x, alpha, beta); }
};

/// Sizes and attributes, all checked against each other.
struct RecurrentShape {
  int64_t steps, batch, input, hidden, directions, gates;
  bool batch_major;                     ///< layout = 1: [batch, steps, ...]
  bool reversed[2];                     ///< per direction
  double clip;                          ///< infinity when there is none
  std::vector<Activation> activations;  ///< those of the first direction, then of the second
  std::vector<int64_t> lengths;         ///< per sequence of the batch

  int64_t width() const { return gates * hidden; }
  /// Row of X (taken as [rows, input]) that sequence `b` reads at step `s` of its direction.
  int64_t row(int64_t direction, int64_t b, int64_t s) const {
    const int64_t t = reversed[direction] ? lengths[static_cast<size_t>(b)] - 1 - s : s;
    return batch_major ? b * steps + t : t * batch + b;
  }
  double clipped(double x) const { return x > clip ? clip : x < -clip ? -clip : x; }
  const Activation& activation(int64_t direction, size_t index) const {
    return activations[activations.size() / static_cast<size_t>(directions) *
                           static_cast<size_t>(direction) +
                       index];
  }
};

/// Reads X, W, R, B, sequence_lens and the attributes. `defaults` names the activations of one
/// direction.
Result<RecurrentShape> read_recurrent(const KernelContext& context, int64_t gates,
                                      std::initializer_list<const char*> defaults);

/// A state given as input `index` in the node's layout, or zeros, as [directions, batch, hidden].
template <typename T>
Result<Tensor> read_state(const KernelContext& context, const RecurrentShape& shape, size_t index,
                          const char* name) {
  const int64_t d = shape.directions, b = shape.batch, h = shape.hidden;
  TRY(Tensor state, context.allocate(dtype_of<T>(), {{d, b, h}}));
  TRY(Tensor given, optional_as<T>(context, index));
  if (!absent(given)) {
    if (shape.batch_major)
      CHECK_OK(check_dims(context, name, given, {{b, d, h}}));
    else
      CHECK_OK(check_dims(context, name, given, {{d, b, h}}));
  }
  for (int64_t i = 0; i < state.size(); ++i) {
    const int64_t direction = i / h / b, sequence = i / h % b;
    const int64_t from = shape.batch_major ? (sequence * d + direction) * h + i % h : i;
    state.data<T>()[i] = absent(given) ? T{} : given.data<T>()[from];
  }
  return state;
}

/// Gives a state [directions, batch, hidden] as output `index` in the node's layout.
template <typename T>
Status give_state(KernelContext& context, const RecurrentShape& shape, size_t index, DType dtype,
                  Tensor state) {
  if (!shape.batch_major || !context.wants_output(index))
    return give(context, index, dtype, std::move(state));
  const int64_t d = shape.directions, b = shape.batch, h = shape.hidden;
  TRY(Tensor turned, context.allocate(dtype_of<T>(), {{b, d, h}}));
  for (int64_t i = 0; i < state.size(); ++i)
    turned.data<T>()[(i / h % b * d + i / h / b) * h + i % h] = state.data<T>()[i];
  return give(context, index, dtype, std::move(turned));
}

/// The walk over time. Inputs are multiplied by W for all steps at once; the operator supplies
/// the cell.
template <typename T>
struct Recurrence {
  KernelContext& context;
  RecurrentShape shape;
  Tensor x, w, r, bias;  ///< bias: undefined when absent
  Tensor h;              ///< [directions, batch, hidden]
  Tensor y;              ///< in the node's layout
  Tensor from_input;     ///< [rows of X, gates * hidden]: X W^T + Wb of the direction at hand

  static Result<Recurrence> read(KernelContext& context, RecurrentShape shape) {
    Recurrence self{context, std::move(shape), {}, {}, {}, {}, {}, {}, {}};
    const RecurrentShape& s = self.shape;
    TRY(self.x, as<T>(context, context.value(0).tensor()));
    TRY(self.w, as<T>(context, context.value(1).tensor()));
    TRY(self.r, as<T>(context, context.value(2).tensor()));
    TRY(self.bias, optional_as<T>(context, 3));
    TRY(self.h, read_state<T>(context, s, 5, "initial_h"));
    if (s.batch_major) {
      TRY(self.y, context.allocate(dtype_of<T>(), {{s.batch, s.steps, s.directions, s.hidden}}));
    } else {
      TRY(self.y, context.allocate(dtype_of<T>(), {{s.steps, s.directions, s.batch, s.hidden}}));
    }
    std::fill_n(self.y.template data<T>(), self.y.size(), T{});
    TRY(self.from_input, context.allocate(dtype_of<T>(), {{s.steps * s.batch, s.width()}}));
    return self;
  }

  T bias_at(int64_t direction, int64_t index) const {
    return absent(bias) ? T{} : bias.data<T>()[direction * 2 * shape.width() + index];
  }
  T* state(int64_t direction) { return h.data<T>() + direction * shape.batch * shape.hidden; }

  /// to[batch, count * hidden] = from[batch, hidden] R^T + Rb, for gates [first, first + count).
  void recur(int64_t direction, const T* from, int64_t first, int64_t count, T* to) const {
    const int64_t hidden = shape.hidden, columns = count * hidden;
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t j = 0; j < columns; ++j)
        to[b * columns + j] = bias_at(direction, shape.width() + first * hidden + j);
    const T* weights = r.data<T>() + (direction * shape.gates + first) * hidden * hidden;
    parallel_gemm<T>(context, shape.batch, columns, hidden, {from, hidden, 1}, {weights, 1, hidden},
                     to, columns, true);
  }

  /// Calls cell(direction, step, active) for each step: active(b) is the row of from_input of
  /// sequence b, or null when that sequence has ended; the cell writes the new state of the
  /// active ones into state(direction).
  template <typename Cell>
  void run(Cell&& cell) {
    const RecurrentShape& s = shape;
    const int64_t rows = s.steps * s.batch, width = s.width();
    for (int64_t d = 0; d < s.directions; ++d) {
      T* gates = from_input.data<T>();
      for (int64_t i = 0; i < rows * width; ++i) gates[i] = bias_at(d, i % width);
      parallel_gemm<T>(context, rows, width, s.input, {x.data<T>(), s.input, 1},
                       {w.data<T>() + d * width * s.input, 1, s.input}, gates, width, true);
      for (int64_t step = 0; step < s.steps; ++step) {
        const auto active = [&](int64_t b) -> const T* {
          if (step >= s.lengths[static_cast<size_t>(b)]) return nullptr;
          return gates + s.row(d, b, step) * width;
        };
        cell(d, active);
        for (int64_t b = 0; b < s.batch; ++b) {
          if (active(b) == nullptr) continue;
          const int64_t row = s.row(d, b, step);
          const int64_t at = s.batch_major ? row * s.directions + d
                                           : (row / s.batch * s.directions + d) * s.batch + b;
          std::copy_n(state(d) + b * s.hidden, s.hidden, y.data<T>() + at * s.hidden);
        }
      }
    }
  }

  /// Outputs 0 and 1.
  Status finish(DType dtype) {
    CHECK_OK(give(context, 0, dtype, std::move(y)));
    return give_state<T>(context, shape, 1, dtype, std::move(h));
  }
};

}  // namespace tombolo::ops
