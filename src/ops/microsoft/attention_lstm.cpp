// AttnLSTM: an LSTM whose input also holds what an additive attention (Bahdanau) found in a memory
// at the step before.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/stepped_lstm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// [rows, inner] by [inner, columns].
template <typename T>
std::vector<double> times(const std::vector<double>& a, const T* b, int64_t rows, int64_t inner,
                          int64_t columns) {
  std::vector<double> out(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j)
        out[static_cast<size_t>(i * columns + j)] +=
            a[static_cast<size_t>(i * inner + k)] * static_cast<double>(b[k * columns + j]);
  return out;
}

/// The attention of one direction: it looks into the memory with each output of the cell.
template <typename T>
struct Attention {
  Tensor query_weight, memory_weight, v, memory, layer_weight;  ///< of all directions but `memory`
  std::vector<int64_t> lengths;                                 ///< of the memory, per sequence
  int64_t batch, hidden, memory_steps, depth, size;
  int64_t layer = 0;  ///< width of the layer behind it, 0: none

  std::vector<double> wide, keys, state;
  const T *qw = nullptr, *score = nullptr, *aw = nullptr;

  int64_t width() const { return layer > 0 ? layer : depth; }

  void begin(int64_t d) {
    qw = query_weight.data<T>() + d * hidden * size;
    score = v.data<T>() + d * size;
    if (layer > 0) aw = layer_weight.data<T>() + d * (hidden + depth) * layer;
    wide.assign(memory.data<T>(), memory.data<T>() + memory.size());
    keys =
        times(wide, memory_weight.data<T>() + d * depth * size, batch * memory_steps, depth, size);
    state.assign(static_cast<size_t>(batch * width()), 0);
  }

  void look(const LstmStep& step, const Tensor& h) {
    const std::vector<double> query(h.data<T>(), h.data<T>() + h.size());
    const std::vector<double> asked = times(query, qw, batch, hidden, size);
    std::vector<double> found(static_cast<size_t>(batch * depth), 0);
    for (int64_t n = 0; n < batch; ++n) {
      std::vector<double> shares(static_cast<size_t>(lengths[static_cast<size_t>(n)]));
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (size_t m = 0; m < shares.size(); ++m) {
        const auto row = static_cast<size_t>(n * memory_steps) + m;
        for (int64_t i = 0; i < size; ++i)
          shares[m] += static_cast<double>(score[i]) *
                       std::tanh(keys[row * static_cast<size_t>(size) + static_cast<size_t>(i)] +
                                 asked[static_cast<size_t>(n * size + i)]);
        most = std::max(most, shares[m]);
      }
      for (double& share : shares) sum += share = std::exp(share - most);
      for (size_t m = 0; m < shares.size(); ++m)
        for (int64_t i = 0; i < depth; ++i)
          found[static_cast<size_t>(n * depth + i)] +=
              shares[m] / sum *
              wide[(static_cast<size_t>(n * memory_steps) + m) * static_cast<size_t>(depth) +
                   static_cast<size_t>(i)];
    }
    std::vector<double> next = found;
    if (layer > 0) {
      next = times(query, aw, batch, hidden, layer);
      const std::vector<double> rest = times(found, aw + hidden * layer, batch, depth, layer);
      for (size_t i = 0; i < next.size(); ++i) next[i] += rest[i];
    }
    for (int64_t n = 0; n < batch; ++n)
      if (step.times[static_cast<size_t>(n)] >= 0)
        std::copy_n(next.begin() + n * width(), width(), state.begin() + n * width());
  }
};

template <typename T>
Status attention_lstm(KernelContext& context, const Tensor& given_x) {
  Tensor given[14];
  for (const size_t i : {1u, 2u, 3u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 13u}) {
    TRY(given[i], optional_as<T>(context, i));
  }
  TRY(const Tensor x, as<T>(context, given_x));
  for (const size_t i : {1u, 2u, 8u, 9u, 11u})
    if (absent(given[i]) || given[i].rank() != 3 || x.rank() != 3)
      return context.error("X, W, R, QW, MW and M must have rank 3");
  const int64_t directions = given[1].dim(0), input = x.dim(2);
  Attention<T> a{given[8], given[9],        given[10],        given[11],        given[13],      {},
                 x.dim(1), given[2].dim(2), given[11].dim(1), given[11].dim(2), given[9].dim(2)};
  if (!absent(given[13])) a.layer = given[13].rank() == 3 ? given[13].dim(2) : -1;
  if (absent(a.v) || a.layer < 0) return context.error("V is missing, or AW has not rank 3");
  CHECK_OK(check_dims(context, "QW", given[8], {{directions, a.hidden, a.size}}));
  CHECK_OK(check_dims(context, "MW", given[9], {{directions, a.depth, a.size}}));
  CHECK_OK(check_dims(context, "V", given[10], {{directions, a.size}}));
  CHECK_OK(check_dims(context, "M", given[11], {{a.batch, a.memory_steps, a.depth}}));
  if (a.layer > 0)
    CHECK_OK(check_dims(context, "AW", given[13], {{directions, a.depth + a.hidden, a.layer}}));
  a.lengths.assign(static_cast<size_t>(a.batch), a.memory_steps);
  TRY(const Tensor* lengths, context.optional_input(12));
  if (lengths != nullptr) CHECK_OK(check_dims(context, "memory_seq_lens", *lengths, {{a.batch}}));
  for (int64_t n = 0; lengths != nullptr && n < a.batch; ++n) {
    const int64_t length = lengths->get_int64(n);
    if (length < 1 || length > a.memory_steps)
      return context.error("memory_seq_lens has the value " + std::to_string(length));
    a.lengths[static_cast<size_t>(n)] = length;
  }
  const LstmParts parts{given[1], given[2], given[3], given[7],         given[5],
                        given[6], x.dim(0), a.batch,  input + a.width()};
  return run_stepped_lstm<T>(
      context, parts, given_x.dtype(),
      [&](int64_t d) {
        a.begin(d);
        return ok();
      },
      [&](const LstmStep& step, const Tensor&, Tensor&) -> Result<Tensor> {
        TRY(Tensor in, context.allocate(dtype_of<T>(), {{1, a.batch, parts.width}}));
        for (int64_t n = 0; n < a.batch; ++n) {
          const int64_t t = std::max<int64_t>(0, step.times[static_cast<size_t>(n)]);
          T* to = std::copy_n(x.data<T>() + (t * a.batch + n) * input, input,
                              in.data<T>() + n * parts.width);
          for (int64_t i = 0; i < a.width(); ++i)
            to[i] = static_cast<T>(a.state[static_cast<size_t>(n * a.width() + i)]);
        }
        return in;
      },
      [&](const LstmStep& step, const Tensor& h) {
        a.look(step, h);
        return ok();
      });
}

Status run_attention_lstm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return attention_lstm<T>(context, *x); });
}

Status infer_attention_lstm(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* r = context.shape(2);
  if (x == nullptr || r == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  CHECK_OK(expect_rank(context, 2, 3));
  const SymDim directions(
      context.attributes.get_string("direction", "forward") == "bidirectional" ? 2 : 1);
  set_shape(context, 0, {(*x)[0], directions, (*x)[1], (*r)[2]});
  set_shape(context, 1, {directions, (*x)[1], (*r)[2]});
  set_shape(context, 2, {directions, (*x)[1], (*r)[2]});
  return ok();
}

}  // namespace

OPERATOR(microsoft_AttnLSTM) = {
    .name = "AttnLSTM",
    .domain = "com.microsoft",
    .doc = "LSTM with an additive attention to a memory",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"R", "T"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
            {"initial_c", "T", kOptional},
            {"P", "T", kOptional},
            {"QW", "T", kOptional},
            {"MW", "T", kOptional},
            {"V", "T", kOptional},
            {"M", "T", kOptional},
            {"memory_seq_lens", "T1", kOptional},
            {"AW", "T", kOptional},
        },
    .outputs = {{"Y", "T", kOptional}, {"Y_h", "T", kOptional}, {"Y_c", "T", kOptional}},
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", Attr::kStrings},
            {"clip", Attr::kFloat},
            {"direction", "forward"},
            {"hidden_size", Attr::kInt},
            {"input_forget", 0},
        },
    .types = {{"T", {{1, kFloats32}}}, {"T1", {{1, kI32}}}},
    .infer = infer_attention_lstm,
    .reference = run_attention_lstm,
};

}  // namespace tombolo::ops
