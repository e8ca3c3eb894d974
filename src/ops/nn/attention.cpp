#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "ops/expansions.h"
#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_attention(InferContext& context) {
  const SymShape* q = context.shape(0);
  const SymShape* k = context.shape(1);
  const SymShape* v = context.shape(2);
  const SymShape* past = context.shape(4);
  const SymShape* past_value = context.shape(5);
  if (q == nullptr) return ok();
  if (q->size() != 3 && q->size() != 4)
    return context.error("Q must have rank 3 or 4, but its shape is " + shape_to_string(*q));
  const bool heads_apart = q->size() == 4;
  const int64_t q_heads = context.attributes.get_int("q_num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (!heads_apart && (q_heads <= 0 || kv_heads <= 0))
    return context.error("q_num_heads and kv_num_heads are needed when Q has rank 3");
  const SymDim q_head_count = heads_apart ? (*q)[1] : SymDim(q_heads);
  SymDim kv_head_count, kv_length, head_size, value_size;
  if (k != nullptr && k->size() == q->size()) {
    kv_head_count = heads_apart ? (*k)[1] : SymDim(kv_heads);
    kv_length = (*k)[heads_apart ? 2 : 1];
    head_size = heads_apart ? (*k)[3] : floor_div((*k)[2], SymDim(kv_heads));
  }
  if (v != nullptr && v->size() == q->size())
    value_size = heads_apart ? (*v)[3] : floor_div((*v)[2], SymDim(kv_heads));
  if (heads_apart)
    set_shape(context, 0, {(*q)[0], (*q)[1], (*q)[2], value_size});
  else
    set_shape(context, 0, {(*q)[0], (*q)[1], value_size * q_heads});
  SymDim total = kv_length;
  if (context.has_input(4))
    total = past != nullptr && past->size() == 4 ? (*past)[2] + kv_length : SymDim();
  SymDim total_value = kv_length;
  if (context.has_input(5))
    total_value =
        past_value != nullptr && past_value->size() == 4 ? (*past_value)[2] + kv_length : SymDim();
  set_shape(context, 1, {(*q)[0], kv_head_count, total, head_size});
  set_shape(context, 2, {(*q)[0], kv_head_count, total_value, value_size});
  set_shape(context, 3, {(*q)[0], q_head_count, (*q)[heads_apart ? 2 : 1], total});
  return ok();
}
}  // namespace

namespace {

/// Q, K or V as rows of heads, from [batch, heads, steps, size] or [batch, steps, heads * size].
struct Heads {
  int64_t batch, heads, steps, size;
  int64_t batch_stride, head_stride, step_stride;
  int64_t at(int64_t b, int64_t h) const { return b * batch_stride + h * head_stride; }
};

Result<Heads> read_heads(const KernelContext& context, const char* name, const Tensor& x,
                         const char* heads_name) {
  if (x.rank() == 4) {
    const int64_t size = x.dim(3), line = x.dim(2) * size;
    return Heads{x.dim(0), x.dim(1), x.dim(2), size, x.dim(1) * line, line, size};
  }
  const int64_t heads = context.attributes.get_int(heads_name, 0);
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0)
    return context.error(std::string(name) + " is " + to_string(x) + ", " + heads_name + " is " +
                         std::to_string(heads));
  const int64_t size = x.dim(2) / heads;
  return Heads{x.dim(0), heads, x.dim(1), size, x.dim(1) * x.dim(2), size, x.dim(2)};
}

/// [batch, heads, past + steps, size]: the cache, then what came in.
template <typename T>
Result<Tensor> join_cache(const KernelContext& context, const char* name, const Tensor& past,
                          const Tensor& now, const Heads& heads) {
  const int64_t before = absent(past) ? 0 : past.rank() == 4 ? past.dim(2) : -1;
  if (before < 0) return context.error(std::string(name) + " must have rank 4");
  if (!absent(past))
    CHECK_OK(check_dims(context, name, past, {{heads.batch, heads.heads, before, heads.size}}));
  TRY(Tensor joined, context.allocate(dtype_of<T>(), {{heads.batch, heads.heads,
                                                       before + heads.steps, heads.size}}));
  T* to = joined.data<T>();
  for (int64_t b = 0; b < heads.batch; ++b)
    for (int64_t h = 0; h < heads.heads; ++h) {
      if (before != 0)
        to = std::copy_n(past.data<T>() + (b * heads.heads + h) * before * heads.size,
                         before * heads.size, to);
      for (int64_t t = 0; t < heads.steps; ++t)
        to = std::copy_n(now.data<T>() + heads.at(b, h) + t * heads.step_stride, heads.size, to);
    }
  return joined;
}

/// What is added to the scores: attn_mask, causality, the window and padding.
template <typename T>
struct Bias {
  Tensor mask;  ///< as T, -infinity for false; undefined when absent
  int64_t strides[3] = {}, mask_columns = 0;
  std::vector<int64_t> offsets, valid;  ///< per batch: keys before the first query; keys that count
  bool causal = false;
  int64_t left = -1, right = -1;

  T at(int64_t b, int64_t h, int64_t row, int64_t column) const {
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    const int64_t position = offsets[static_cast<size_t>(b)] + row;
    if (column >= valid[static_cast<size_t>(b)]) return kNever;
    if (causal && column > position) return kNever;
    if (left >= 0 && column < position - left) return kNever;
    if (right >= 0 && column - right > position) return kNever;
    if (absent(mask)) return T{};
    if (column >= mask_columns) return kNever;
    return mask.data<T>()[b * strides[0] + h * strides[1] + row * strides[2] + column];
  }
};

template <typename T>
Result<Bias<T>> read_bias(const KernelContext& context, int64_t batch, int64_t heads, int64_t rows,
                          int64_t columns, int64_t past) {
  Bias<T> bias;
  bias.causal = context.attributes.get_int("is_causal", 0) != 0;
  bias.left = context.attributes.get_int("left_window_size", -1);
  bias.right = context.attributes.get_int("right_window_size", -1);
  if (bias.left < -1 || bias.right < -1)
    return context.error("left_window_size is " + std::to_string(bias.left) +
                         ", right_window_size is " + std::to_string(bias.right) +
                         ": must be at least -1");
  // Windows wider than all keys are no windows; this keeps sums small.
  if (bias.left > columns + rows) bias.left = -1;
  if (bias.right > columns + rows) bias.right = -1;
  bias.offsets.assign(static_cast<size_t>(batch), past);
  bias.valid.assign(static_cast<size_t>(batch), columns);
  TRY(const Tensor* lengths, context.optional_input(6));
  if (lengths != nullptr) {
    CHECK_OK(check_dims(context, "nonpad_kv_seqlen", *lengths, {{batch}}));
    if (context.has_input(4))
      return context.error("nonpad_kv_seqlen and past_key cannot be given together");
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths->get_int64(b);
      if (length < 0 || length > columns)
        return context.error("nonpad_kv_seqlen has the value " + std::to_string(length) +
                             ", there are " + std::to_string(columns) + " keys");
      bias.valid[static_cast<size_t>(b)] = length;
      bias.offsets[static_cast<size_t>(b)] = length - rows;
    }
  }
  TRY(const Tensor* mask, context.optional_input(3));
  if (mask == nullptr) return bias;
  const int64_t rank = static_cast<int64_t>(mask->rank());
  bool fits = rank >= 1 && rank <= 4;
  const int64_t full[] = {batch, heads, rows};
  int64_t stride = fits ? mask->dim(mask->rank() - 1) : 0;
  bias.mask_columns = stride;
  for (int64_t axis = 2; fits && axis > 2 - (rank - 1); --axis) {
    const int64_t dim = mask->dim(static_cast<size_t>(axis + rank - 4));
    fits = dim == 1 || dim == full[axis];
    bias.strides[axis] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  if (!fits || bias.mask_columns > columns)
    return context.error("attn_mask does not broadcast to " +
                         dims_to_string({{batch, heads, rows, columns}}) + ", is " +
                         to_string(*mask));
  TRY(bias.mask, as<T>(context, *mask));
  if (mask->dtype() == DType::kBool)
    for (int64_t i = 0; i < bias.mask.size(); ++i)
      bias.mask.template data<T>()[i] =
          mask->get_int64(i) != 0 ? T{} : -std::numeric_limits<T>::infinity();
  return bias;
}

/// Softmax in place. A row in which no key counts gives zeros; one with a NaN is NaN throughout.
template <typename T>
void softmax_row(int64_t count, T* row) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  if (std::all_of(row, row + count, [](T x) { return x == kNever; })) {
    std::fill_n(row, count, T{});
    return;
  }
  T most = kNever;
  for (int64_t j = 0; j < count; ++j) most = row[j] > most ? row[j] : most;
  double sum = 0;
  for (int64_t j = 0; j < count; ++j)
    sum += std::exp(static_cast<double>(row[j]) - static_cast<double>(most));
  for (int64_t j = 0; j < count; ++j)
    row[j] =
        static_cast<T>(std::exp(static_cast<double>(row[j]) - static_cast<double>(most)) / sum);
}

template <typename T>
Status attention(KernelContext& context, const Tensor& query) {
  TRY(const Tensor* key, context.input(1));
  TRY(const Tensor* value, context.input(2));
  TRY(const Heads q, read_heads(context, "Q", query, "q_num_heads"));
  TRY(const Heads k, read_heads(context, "K", *key, "kv_num_heads"));
  TRY(const Heads v, read_heads(context, "V", *value, "kv_num_heads"));
  if (k.batch != q.batch || v.batch != q.batch || k.size != q.size || v.heads != k.heads ||
      v.steps != k.steps || k.heads < 1 || q.heads % k.heads != 0)
    return context.error("Q, K and V do not fit each other: " + to_string(query) + ", " +
                         to_string(*key) + ", " + to_string(*value));
  TRY(Tensor past_key, optional_as<T>(context, 4));
  TRY(Tensor past_value, optional_as<T>(context, 5));
  if (absent(past_key) != absent(past_value))
    return context.error("past_key and past_value must be given together");
  TRY(Tensor qs, as<T>(context, query));
  TRY(Tensor k_now, as<T>(context, *key));
  TRY(Tensor v_now, as<T>(context, *value));
  TRY(Tensor ks, join_cache<T>(context, "past_key", past_key, k_now, k));
  TRY(Tensor vs, join_cache<T>(context, "past_value", past_value, v_now, v));
  const int64_t rows = q.steps, columns = ks.dim(2), size = q.size, value_size = v.size;
  if (vs.dim(2) != columns) return context.error("past_key and past_value have different lengths");
  TRY(const Bias<T> bias,
      read_bias<T>(context, q.batch, q.heads, rows, columns, columns - k.steps));
  double scale = context.attributes.has("scale")
                     ? static_cast<double>(context.attributes.get_float("scale", 1))
                     : 1 / std::sqrt(static_cast<double>(size));
  const T softcap = static_cast<T>(context.attributes.get_float("softcap", 0));
  const int64_t mode = context.attributes.get_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return context.error("qk_matmul_output_mode is " + std::to_string(mode) + ", must be 0 to 3");

  const int64_t scores_dims[] = {q.batch, q.heads, rows, columns};
  TRY(Tensor scores, context.allocate(dtype_of<T>(), scores_dims));
  const bool wants_scores = context.wants_output(3);
  TRY(Tensor kept, context.allocate(dtype_of<T>(), wants_scores ? Dims(scores_dims) : Dims{0}));
  const bool packed = query.rank() == 3;
  Dims y_dims =
      packed ? Dims{q.batch, rows, q.heads * value_size} : Dims{q.batch, q.heads, rows, value_size};
  TRY(Tensor y, context.allocate(dtype_of<T>(), y_dims));
  // The specification multiplies both factors by the root of the scale, against overflow.
  const T root = static_cast<T>(std::sqrt(std::fabs(scale)));
  const T sign = scale < 0 ? T{-1} : T{1};
  TRY(Tensor scaled_q, context.allocate(dtype_of<T>(), {{q.batch, q.heads, rows, size}}));
  TRY(Tensor scaled_k, context.allocate(dtype_of<T>(), ks.dims()));
  for (int64_t i = 0; i < ks.size(); ++i) scaled_k.data<T>()[i] = ks.data<T>()[i] * root;

  context.parallel_for(q.batch * q.heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / q.heads, h = task % q.heads;
      const int64_t kv = b * k.heads + h / (q.heads / k.heads);
      T* factors = scaled_q.data<T>() + task * rows * size;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < size; ++j)
          factors[i * size + j] = qs.data<T>()[q.at(b, h) + i * q.step_stride + j] * (sign * root);
      T* s = scores.data<T>() + task * rows * columns;
      gemm<T>(rows, columns, size, {factors, size, 1},
              {scaled_k.data<T>() + kv * columns * size, 1, size}, s, columns);
      const auto keep = [&](int64_t i) {
        std::copy_n(s + i * columns, columns, kept.data<T>() + (task * rows + i) * columns);
      };
      for (int64_t i = 0; i < rows; ++i) {
        T* row = s + i * columns;
        if (wants_scores && mode == 0) keep(i);
        if (softcap > 0)
          for (int64_t j = 0; j < columns; ++j) row[j] = softcap * std::tanh(row[j] / softcap);
        if (wants_scores && mode == 1) keep(i);
        for (int64_t j = 0; j < columns; ++j) row[j] += bias.at(b, h, i, j);
        if (wants_scores && mode == 2) keep(i);
        softmax_row(columns, row);
        if (wants_scores && mode == 3) keep(i);
      }
      T* to =
          y.data<T>() + (packed ? (b * rows * q.heads + h) * value_size : task * rows * value_size);
      gemm<T>(rows, value_size, columns, {s, columns, 1},
              {vs.data<T>() + kv * columns * value_size, value_size, 1}, to,
              packed ? q.heads * value_size : value_size);
    }
  });
  CHECK_OK(give(context, 1, key->dtype(), std::move(ks)));
  CHECK_OK(give(context, 2, value->dtype(), std::move(vs)));
  CHECK_OK(give(context, 3, query.dtype(), std::move(kept)));
  return give(context, 0, query.dtype(), std::move(y));
}

Status run_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  return with_float(context, *query, [&]<typename T>() { return attention<T>(context, *query); });
}

/// Scores, softmax and weighted sum in plain operators. Three dimensions are known by q_num_heads.
Status body_of_attention(FunctionContext& context) {
  const DType type = context.input_type(0);
  if (type == DType::kUndefined) return runtime_error("the element type of Q is not known");
  const std::string to_type = "<to = " + std::to_string(static_cast<int64_t>(type)) + ">";
  const AttributeReader& attributes = context.attributes;
  const int64_t q_heads = attributes.get_int("q_num_heads", 0);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  const bool packed = q_heads > 0 && kv_heads > 0;
  const auto number = [&](const std::string& name, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    std::string digits = text;
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    context.line(name + "_float = Constant <value_float = " + digits + "> ()");
    context.line(name + " = Cast " + to_type + " (" + name + "_float)");
  };
  const auto integers = [&](const std::string& name, const std::string& values) {
    context.line(name + " = Constant <value_ints = [" + values + "]> ()");
  };
  const auto apart = [&](const std::string& name, const std::string& from, int64_t heads) {
    if (!packed) return context.line(name + " = Identity (" + from + ")");
    integers(name + "_split", "0, 0, " + std::to_string(heads) + ", -1");
    context.line(name + "_steps = Reshape (" + from + ", " + name + "_split)");
    context.line(name + " = Transpose <perm = [0, 2, 1, 3]> (" + name + "_steps)");
  };
  apart("q", "Q", q_heads);
  apart("k_new", "K", kv_heads);
  apart("v_new", "V", kv_heads);
  const bool past = context.has_input(4) && context.has_input(5);
  context.line(past ? "k = Concat <axis = 2> (past_key, k_new)" : "k = Identity (k_new)");
  context.line(past ? "v = Concat <axis = 2> (past_value, v_new)" : "v = Identity (v_new)");
  if (context.wants_output(1)) context.line("present_key = Identity (k)");
  if (context.wants_output(2)) context.line("present_value = Identity (v)");
  // Grouped heads: each head of K and V stands for several of Q.
  context.line("batch = Shape <start = 0, end = 1> (q)");
  context.line("heads = Shape <start = 1, end = 2> (q)");
  context.line("rows = Shape <start = 2, end = 3> (q)");
  context.line("columns = Shape <start = 2, end = 3> (k)");
  context.line("kv_heads = Shape <start = 1, end = 2> (k)");
  context.line("group = Div (heads, kv_heads)");
  integers("two", "2");
  for (const std::string name : {"k", "v"}) {
    context.line(name + "_size = Shape <start = 3, end = 4> (" + name + ")");
    context.line(name + "_each = Unsqueeze (" + name + ", two)");
    context.line(name + "_wide = Concat <axis = 0> (batch, kv_heads, group, columns, " + name +
                 "_size)");
    context.line(name + "_many = Expand (" + name + "_each, " + name + "_wide)");
    context.line(name + "_flat = Concat <axis = 0> (batch, heads, columns, " + name + "_size)");
    context.line(name + "_all = Reshape (" + name + "_many, " + name + "_flat)");
  }
  // Both factors by the root of the scale, against overflow.
  if (attributes.has("scale")) {
    const double scale = static_cast<double>(attributes.get_float("scale", 1));
    number("root", std::sqrt(std::fabs(scale)));
    number("q_factor", (scale < 0 ? -1 : 1) * std::sqrt(std::fabs(scale)));
  } else {
    context.line("size = Cast " + to_type + " (k_size)");
    context.line("size_root = Sqrt (size)");
    context.line("size_scale = Reciprocal (size_root)");
    context.line("root = Sqrt (size_scale)");
    context.line("q_factor = Identity (root)");
  }
  context.line("q_scaled = Mul (q, q_factor)");
  context.line("k_scaled = Mul (k_all, root)");
  context.line("k_turned = Transpose <perm = [0, 1, 3, 2]> (k_scaled)");
  context.line("scores = MatMul (q_scaled, k_turned)");
  const double softcap = static_cast<double>(attributes.get_float("softcap", 0));
  if (softcap > 0) {
    number("cap", softcap);
    context.line("scores_share = Div (scores, cap)");
    context.line("scores_tanh = Tanh (scores_share)");
    context.line("capped = Mul (scores_tanh, cap)");
  } else {
    context.line("capped = Identity (scores)");
  }
  number("zero", 0);
  context.line("never = Log (zero)");
  // What may be seen: bool [batch or 1, 1, rows, columns].
  context.line("no_axes = Constant <value_ints = [0]> ()");
  context.line("start = Constant <value_int = 0> ()");
  context.line("step = Constant <value_int = 1> ()");
  context.line("row_count = Squeeze (rows, no_axes)");
  context.line("column_count = Squeeze (columns, no_axes)");
  context.line("row_line = Range (start, row_count, step)");
  context.line("column = Range (start, column_count, step)");
  integers("one_axis", "1");
  context.line("row = Unsqueeze (row_line, one_axis)");
  const bool lengths = context.has_input(6);
  if (lengths) {
    integers("spread", "1, 2, 3");
    context.line("valid = Unsqueeze (nonpad_kv_seqlen, spread)");
    context.line("offset = Sub (valid, rows)");
    context.line("seen_0 = Less (column, valid)");
  } else {
    context.line("k_new_count = Shape <start = 2, end = 3> (k_new)");
    context.line("offset = Sub (columns, k_new_count)");
    context.line("seen_0 = GreaterOrEqual (column, start)");
  }
  context.line("position = Add (row, offset)");
  int conditions = 0;
  const auto also = [&](const std::string& condition) {
    const std::string now = std::to_string(conditions), next = std::to_string(++conditions);
    context.line("limit_" + next + " = " + condition);
    context.line("seen_" + next + " = And (seen_" + now + ", limit_" + next + ")");
  };
  if (attributes.get_int("is_causal", 0) != 0) also("LessOrEqual (column, position)");
  const int64_t left = attributes.get_int("left_window_size", -1);
  const int64_t right = attributes.get_int("right_window_size", -1);
  if (left >= 0) {
    integers("left", std::to_string(left));
    context.line("first = Sub (position, left)");
    also("GreaterOrEqual (column, first)");
  }
  if (right >= 0) {
    integers("right", std::to_string(right));
    context.line("last = Add (position, right)");
    also("LessOrEqual (column, last)");
  }
  const std::string seen = "seen_" + std::to_string(conditions);
  if (context.has_input(3)) {
    if (context.input_type(3) == DType::kBool)
      context.line("mask_short = Where (attn_mask, zero, never)");
    else
      context.line("mask_short = Cast " + to_type + " (attn_mask)");
    // Keys beyond a short mask do not count.
    context.line("mask_columns = Shape <start = -1> (mask_short)");
    context.line("mask_lack = Sub (columns, mask_columns)");
    context.line("mask_pads = Concat <axis = 0> (no_axes, mask_lack)");
    integers("last_axis", "-1");
    context.line("mask = Pad (mask_short, mask_pads, never, last_axis)");
    context.line("bias = Where (" + seen + ", mask, never)");
  } else {
    context.line("bias = Where (" + seen + ", zero, never)");
  }
  context.line("biased = Add (capped, bias)");
  const int64_t precision = attributes.get_int("softmax_precision", 0);
  const std::string logits = precision != 0 ? "precise" : "biased";
  if (precision != 0)
    context.line("precise = Cast <to = " + std::to_string(precision) + "> (biased)");
  context.line("shares = Softmax <axis = -1> (" + logits + ")");
  context.line("shares_typed = Cast " + to_type + " (shares)");
  // A row in which no key counts gives zeros.
  integers("keys", "-1");
  context.line("most = ReduceMax <keepdims = 1> (biased, keys)");
  context.line("nothing = Equal (most, never)");
  context.line("weights = Where (nothing, zero, shares_typed)");
  if (context.wants_output(3)) {
    constexpr const char* kStages[] = {"scores", "capped", "biased", "weights"};
    const int64_t mode = attributes.get_int("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) return runtime_error("qk_matmul_output_mode must be 0 to 3");
    context.line(std::string("qk_matmul_output = Identity (") + kStages[mode] + ")");
  }
  if (!packed) {
    context.line("Y = MatMul (weights, v_all)");
    return ok();
  }
  context.line("y_heads = MatMul (weights, v_all)");
  context.line("y_steps = Transpose <perm = [0, 2, 1, 3]> (y_heads)");
  integers("together", "0, 0, -1");
  context.line("Y = Reshape (y_steps, together)");
  return ok();
}

}  // namespace

OPERATOR(Attention) = {
    .name = "Attention",
    .doc = "scaled dot-product attention with mask, cache and grouped heads",
    .versions = {23, 24, 25},
    .inputs =
        {
            {"Q", "T1"},
            {"K", "T1"},
            {"V", "T2"},
            {"attn_mask", "U", kOptional},
            {"past_key", "T1", kOptional},
            {"past_value", "T2", kOptional},
            {"nonpad_kv_seqlen", "tensor(int64)", kOptional, {.since = 24}},
        },
    .outputs =
        {
            {"Y", "T1"},
            {"present_key", "T1", kOptional},
            {"present_value", "T2", kOptional},
            {"qk_matmul_output", "T1", kOptional},
        },
    .attributes =
        {
            {"is_causal", 0},
            {"kv_num_heads", Attr::kInt},
            {"q_num_heads", Attr::kInt},
            {"qk_matmul_output_mode", 0},
            {"scale", Attr::kFloat},
            {"softcap", 0.0f},
            {"softmax_precision", Attr::kInt},
            {"left_window_size", -1, {.since = 25}},
            {"right_window_size", -1, {.since = 25}},
        },
    .types =
        {
            {"T1", {{23, kFloats | kBf16}}},
            {"T2", {{23, kFloats | kBf16}}},
            {"U", {{23, kNumbers | kBool | kBf16}}},
        },
    .functions =
        {
            {.versions = {.until = 23}, .opset = 23, .builder = body_of_attention},
            {.versions = {.since = 24, .until = 24}, .opset = 24, .builder = body_of_attention},
            {.versions = {.since = 25}, .opset = 25, .builder = body_of_attention},
        },
    .infer = infer_attention,
    .reference = run_attention,
    .down = {{23, 0, expand_attention}},
};

}  // namespace tombolo::ops
