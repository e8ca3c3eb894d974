// AttnLSTM: an LSTM whose input also holds what an additive attention (Bahdanau) found in a memory
// at the step before.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct AttentionLstm {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  int64_t memory_steps = 0, memory_depth = 0, size = 0;  ///< of the attention
  int64_t layer = 0;                                     ///< of the layer behind it, 0: none
  int64_t attention() const { return layer > 0 ? layer : memory_depth; }
};

/// Row `direction` of a tensor as a tensor of its own, with or without the axis.
Tensor direction_of(const Tensor& x, int64_t direction, bool keep_axis) {
  Dims dims(x.dims().span().subspan(1));
  const int64_t count = element_count(dims);
  auto out = Tensor::allocate(x.dtype(), dims);
  if (!out) return {};
  const auto bytes = static_cast<size_t>(count) * bytes_of(x.dtype());
  std::copy_n(x.bytes().data() + static_cast<size_t>(direction) * bytes, bytes,
              out->mutable_bytes().data());
  if (!keep_axis) return *std::move(out);
  Dims whole{1};
  for (const int64_t dim : dims) whole.push_back(dim);
  return out->reshaped(whole);
}

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

template <typename T>
Status attention_lstm(KernelContext& context, const AttentionLstm& s) {
  TRY(const Tensor x, optional_as<T>(context, 0));
  Tensor given[14];
  for (size_t i = 1; i < 14; ++i) {
    if (i == 4 || i == 12) continue;
    TRY(given[i], optional_as<T>(context, i));
  }
  TRY(const Tensor* lengths, context.optional_input(4));
  TRY(const Tensor* memory_lengths, context.optional_input(12));
  const auto length_of = [](const Tensor* list, int64_t b, int64_t most) {
    return list == nullptr ? most : std::clamp<int64_t>(list->get_int64(b), 0, most);
  };
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{s.steps, s.directions, s.batch, s.hidden}}));
  TRY(Tensor y_h, context.allocate(dtype_of<T>(), {{s.directions, s.batch, s.hidden}}));
  TRY(Tensor y_c, context.allocate(dtype_of<T>(), {{s.directions, s.batch, s.hidden}}));
  std::fill_n(y.data<T>(), y.size(), T{});
  const Text direction = context.attributes.get_string("direction", "forward");
  const int64_t depth = s.memory_depth, width = s.input + s.attention();
  for (int64_t d = 0; d < s.directions; ++d) {
    const bool back = d == 1 || direction == "reverse";
    Official official(context);
    Node& cell = official.node_with(
        "LSTM", {"clip", "input_forget", "activation_alpha", "activation_beta"}, 3);
    cell.set_int("hidden_size", s.hidden);
    if (const auto names = context.attributes.get_strings("activations"); names.size() >= 3) {
      Attribute own;
      own.name = "activations";
      own.type = AttrType::kStrings;
      const auto first = names.begin() + (names.size() >= 6 ? 3 * d : 0);
      own.value = std::vector<Text>(first, first + 3);
      cell.set_attribute(std::move(own));
    }
    const Tensor w = direction_of(given[1], d, true), r = direction_of(given[2], d, true);
    const Tensor b = absent(given[3]) ? Tensor() : direction_of(given[3], d, true);
    const Tensor p = absent(given[7]) ? Tensor() : direction_of(given[7], d, true);
    const Tensor qw = direction_of(given[8], d, false), mw = direction_of(given[9], d, false);
    const Tensor v = direction_of(given[10], d, false);
    const Tensor aw = s.layer > 0 ? direction_of(given[13], d, false) : Tensor();
    TRY(Tensor h, context.allocate(dtype_of<T>(), {{1, s.batch, s.hidden}}));
    TRY(Tensor c, context.allocate(dtype_of<T>(), {{1, s.batch, s.hidden}}));
    std::fill_n(h.data<T>(), h.size(), T{});
    std::fill_n(c.data<T>(), c.size(), T{});
    if (!absent(given[5])) h = direction_of(given[5], d, true);
    if (!absent(given[6])) c = direction_of(given[6], d, true);
    const T* memory = given[11].data<T>();
    const std::vector<double> wide(memory, memory + given[11].size());
    const std::vector<double> keys =
        times(wide, mw.data<T>(), s.batch * s.memory_steps, depth, s.size);
    std::vector<double> state(static_cast<size_t>(s.batch * s.attention()), 0);
    for (int64_t step = 0; step < s.steps; ++step) {
      const int64_t t = back ? s.steps - 1 - step : step;
      TRY(Tensor in, context.allocate(dtype_of<T>(), {{1, s.batch, width}}));
      for (int64_t n = 0; n < s.batch; ++n) {
        T* to = std::copy_n(x.data<T>() + (t * s.batch + n) * s.input, s.input,
                            in.data<T>() + n * width);
        for (int64_t i = 0; i < s.attention(); ++i)
          to[i] = static_cast<T>(state[static_cast<size_t>(n * s.attention() + i)]);
      }
      const Tensor inputs[] = {in, w, r, b, Tensor(), h, c, p};
      TRY(const std::vector<RunValue> made, official.run(cell, inputs));
      TRY(Tensor next_h, as<T>(context, made[1].tensor()));
      TRY(Tensor next_c, as<T>(context, made[2].tensor()));
      TRY(h, h.clone());
      TRY(c, c.clone());
      std::vector<double> query(static_cast<size_t>(s.batch * s.hidden));
      for (int64_t n = 0; n < s.batch; ++n) {
        const bool here = t < length_of(lengths, n, s.steps);
        const int64_t at = n * s.hidden;
        for (int64_t i = 0; i < s.hidden; ++i) {
          query[static_cast<size_t>(at + i)] = static_cast<double>(next_h.data<T>()[at + i]);
          if (!here) continue;
          h.data<T>()[at + i] = next_h.data<T>()[at + i];
          c.data<T>()[at + i] = next_c.data<T>()[at + i];
          y.data<T>()[((t * s.directions + d) * s.batch) * s.hidden + at + i] =
              next_h.data<T>()[at + i];
        }
      }
      const std::vector<double> asked = times(query, qw.data<T>(), s.batch, s.hidden, s.size);
      std::vector<double> found(static_cast<size_t>(s.batch * depth), 0);
      for (int64_t n = 0; n < s.batch; ++n) {
        const int64_t count = length_of(memory_lengths, n, s.memory_steps);
        std::vector<double> shares(static_cast<size_t>(count));
        double most = -INFINITY, sum = 0;
        for (int64_t m = 0; m < count; ++m) {
          double score = 0;
          for (int64_t i = 0; i < s.size; ++i)
            score += static_cast<double>(v.data<T>()[i]) *
                     std::tanh(keys[static_cast<size_t>((n * s.memory_steps + m) * s.size + i)] +
                               asked[static_cast<size_t>(n * s.size + i)]);
          shares[static_cast<size_t>(m)] = score;
          most = std::max(most, score);
        }
        for (double& share : shares) sum += share = std::exp(share - most);
        for (int64_t m = 0; m < count; ++m)
          for (int64_t i = 0; i < depth; ++i)
            found[static_cast<size_t>(n * depth + i)] +=
                shares[static_cast<size_t>(m)] / sum *
                wide[static_cast<size_t>((n * s.memory_steps + m) * depth + i)];
      }
      std::vector<double> next = found;
      if (s.layer > 0) {
        next = times(query, aw.data<T>(), s.batch, s.hidden, s.layer);
        const std::vector<double> rest =
            times(found, aw.data<T>() + s.hidden * s.layer, s.batch, depth, s.layer);
        for (size_t i = 0; i < next.size(); ++i) next[i] += rest[i];
      }
      for (int64_t n = 0; n < s.batch; ++n)
        if (t < length_of(lengths, n, s.steps))
          std::copy_n(next.begin() + n * s.attention(), s.attention(),
                      state.begin() + n * s.attention());
    }
    std::copy_n(h.data<T>(), h.size(), y_h.data<T>() + d * h.size());
    std::copy_n(c.data<T>(), c.size(), y_c.data<T>() + d * c.size());
  }
  const DType type = context.value(0).tensor().dtype();
  CHECK_OK(give(context, 0, type, std::move(y)));
  CHECK_OK(give(context, 1, type, std::move(y_h)));
  return give(context, 2, type, std::move(y_c));
}

Status run_attention_lstm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  TRY(const Tensor* r, context.input(2));
  TRY(const Tensor* qw, context.input(8));
  TRY(const Tensor* mw, context.input(9));
  TRY(const Tensor* v, context.input(10));
  TRY(const Tensor* memory, context.input(11));
  TRY(const Tensor* aw, context.optional_input(13));
  for (const Tensor* each : {x, w, r, qw, mw, memory})
    if (each->rank() != 3) return context.error("an input must have rank 3: " + to_string(*each));
  AttentionLstm s;
  s.steps = x->dim(0), s.batch = x->dim(1), s.input = x->dim(2), s.hidden = r->dim(2);
  const Text direction = context.attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return context.error("direction \"" + std::string(direction) + "\" is not known");
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.memory_steps = memory->dim(1), s.memory_depth = memory->dim(2), s.size = mw->dim(2);
  if (aw != nullptr) s.layer = aw->rank() == 3 ? aw->dim(2) : 0;
  const int64_t h = s.hidden, n = s.directions;
  if (s.directions == 2 && !context.attributes.get_floats("activation_alpha").empty())
    return unsupported("activation_alpha in two directions");
  CHECK_OK(check_dims(context, "W", *w, {{n, 4 * h, s.input + s.attention()}}));
  CHECK_OK(check_dims(context, "R", *r, {{n, 4 * h, h}}));
  CHECK_OK(check_dims(context, "QW", *qw, {{n, h, s.size}}));
  CHECK_OK(check_dims(context, "MW", *mw, {{n, s.memory_depth, s.size}}));
  CHECK_OK(check_dims(context, "V", *v, {{n, s.size}}));
  CHECK_OK(check_dims(context, "M", *memory, {{s.batch, s.memory_steps, s.memory_depth}}));
  if (aw != nullptr) CHECK_OK(check_dims(context, "AW", *aw, {{n, s.memory_depth + h, s.layer}}));
  const struct {
    size_t index;
    const char* name;
    Dims dims;
  } others[] = {{3, "B", {n, 8 * h}},
                {4, "sequence_lens", {s.batch}},
                {5, "initial_h", {n, s.batch, h}},
                {6, "initial_c", {n, s.batch, h}},
                {7, "P", {n, 3 * h}},
                {12, "memory_seq_lens", {s.batch}}};
  for (const auto& [index, name, dims] : others) {
    TRY(const Tensor* given, context.optional_input(index));
    if (given != nullptr) CHECK_OK(check_dims(context, name, *given, dims.span()));
  }
  return with_float(context, *x, [&]<typename T>() { return attention_lstm<T>(context, s); });
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
