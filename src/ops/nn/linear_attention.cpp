#include <cmath>
#include <vector>

#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_linear_attention(InferContext& context) {
  const int64_t q_heads = context.attributes.get_int("q_num_heads", 0);
  const int64_t kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (q_heads <= 0 || kv_heads <= 0)
    return context.error("q_num_heads and kv_num_heads must be positive");
  for (size_t i = 0; i < 3; ++i) CHECK_OK(expect_rank(context, i, 3));
  const SymShape* q = context.shape(0);
  const SymShape* k = context.shape(1);
  const SymShape* v = context.shape(2);
  const SymShape* known = q != nullptr ? q : k != nullptr ? k : v;
  if (known == nullptr) return ok();
  const SymDim key_size = k != nullptr ? floor_div((*k)[2], SymDim(kv_heads)) : SymDim();
  const SymDim value_size = v != nullptr ? floor_div((*v)[2], SymDim(kv_heads)) : SymDim();
  set_shape(context, 0, {(*known)[0], (*known)[1], value_size * q_heads});
  // The state has the type of past_state where there is one, else that of the query.
  InferType state = InferType::tensor(context.has_input(3) ? context.elem(3) : context.elem(0),
                                      {(*known)[0], SymDim(kv_heads), key_size, value_size});
  context.set_output(1, std::move(state));
  return ok();
}
}  // namespace

namespace {

struct LinearAttentionShape {
  int64_t batch, steps, heads, kv_heads, key_size, value_size;
};

Result<LinearAttentionShape> read_shape(const KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  TRY(const Tensor* key, context.input(1));
  TRY(const Tensor* value, context.input(2));
  LinearAttentionShape shape;
  shape.heads = context.attributes.get_int("q_num_heads", 0);
  shape.kv_heads = context.attributes.get_int("kv_num_heads", 0);
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0)
    return context.error("q_num_heads is " + std::to_string(shape.heads) +
                         ", must be a positive multiple of kv_num_heads, " +
                         std::to_string(shape.kv_heads));
  if (query->rank() != 3 || key->rank() != 3 || value->rank() != 3 ||
      query->dim(2) % shape.heads != 0 || value->dim(2) % shape.kv_heads != 0)
    return context.error("query, key and value must be [batch, steps, heads * size], are " +
                         to_string(*query) + ", " + to_string(*key) + " and " + to_string(*value));
  shape.batch = query->dim(0);
  shape.steps = query->dim(1);
  shape.key_size = query->dim(2) / shape.heads;
  shape.value_size = value->dim(2) / shape.kv_heads;
  CHECK_OK(check_dims(context, "key", *key,
                      {{shape.batch, shape.steps, shape.key_size * shape.kv_heads}}));
  CHECK_OK(check_dims(context, "value", *value, {{shape.batch, shape.steps, value->dim(2)}}));
  return shape;
}

/// decay or beta: [batch, steps, width] with one of two widths; must be there exactly if `needed`.
Result<Tensor> read_gate(const KernelContext& context, size_t index, const char* name, bool needed,
                         const LinearAttentionShape& shape, int64_t width, int64_t other) {
  TRY(Tensor gate, optional_as<double>(context, index));
  if (absent(gate) == needed)
    return context.error(std::string(name) + (needed ? " is missing, update_rule needs it"
                                                     : " is given, update_rule does not take it"));
  if (!absent(gate) && !(gate.rank() == 3 && gate.dim(2) == other))
    CHECK_OK(check_dims(context, name, gate, {{shape.batch, shape.steps, width}}));
  if (!absent(gate) && (gate.dim(0) != shape.batch || gate.dim(1) != shape.steps))
    return context.error(std::string(name) + " does not fit query, is " + to_string(gate));
  return gate;
}

// Computed in double: the state is summed over all steps.
Status run_linear_attention(KernelContext& context) {
  TRY(const LinearAttentionShape shape, read_shape(context));
  const Text rule = context.attributes.get_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return context.error("update_rule \"" + std::string(rule) + "\" is not known");
  const int64_t kd = shape.key_size, vd = shape.value_size, kv = shape.kv_heads;
  TRY(Tensor query, as<double>(context, context.value(0).tensor()));
  TRY(Tensor key, as<double>(context, context.value(1).tensor()));
  TRY(Tensor value, as<double>(context, context.value(2).tensor()));
  TRY(Tensor decay, read_gate(context, 4, "decay", gated, shape, kv * kd, kv));
  TRY(Tensor beta, read_gate(context, 5, "beta", delta, shape, kv, 1));
  const int64_t state_dims[] = {shape.batch, kv, kd, vd};
  TRY(Tensor past, optional_as<double>(context, 3));
  if (!absent(past)) CHECK_OK(check_dims(context, "past_state", past, state_dims));
  TRY(Tensor state, context.allocate(DType::kFloat64, state_dims));
  for (int64_t i = 0; i < state.size(); ++i)
    state.data<double>()[i] = absent(past) ? 0 : past.data<double>()[i];
  const int64_t out_dims[] = {shape.batch, shape.steps, shape.heads * vd};
  TRY(Tensor output, context.allocate(DType::kFloat64, out_dims));
  double scale = static_cast<double>(context.attributes.get_float("scale", 0));
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(kd));
  const bool decay_per_head = !absent(decay) && decay.dim(2) == kv;
  const int64_t group = shape.heads / kv;

  context.parallel_for(shape.batch * kv, 1, [&](int64_t first, int64_t last) {
    std::vector<double> written(static_cast<size_t>(vd));
    for (int64_t task = first; task < last; ++task) {
      const int64_t b = task / kv, head = task % kv;
      double* s = state.data<double>() + task * kd * vd;
      for (int64_t t = b * shape.steps; t < (b + 1) * shape.steps; ++t) {
        const double* k = key.data<double>() + (t * kv + head) * kd;
        const double* v = value.data<double>() + (t * kv + head) * vd;
        if (gated)
          for (int64_t i = 0; i < kd; ++i) {
            const double g =
                decay.data<double>()[decay_per_head ? t * kv + head : (t * kv + head) * kd + i];
            for (int64_t j = 0; j < vd; ++j) s[i * vd + j] *= std::exp(g);
          }
        for (int64_t j = 0; j < vd; ++j) {
          double& out = written[static_cast<size_t>(j)];
          out = v[j];
          if (!delta) continue;
          for (int64_t i = 0; i < kd; ++i) out -= s[i * vd + j] * k[i];
          out *= beta.data<double>()[beta.dim(2) == 1 ? t : t * kv + head];
        }
        for (int64_t i = 0; i < kd; ++i)
          for (int64_t j = 0; j < vd; ++j) s[i * vd + j] += k[i] * written[static_cast<size_t>(j)];
        for (int64_t h = head * group; h < (head + 1) * group; ++h) {
          const double* q = query.data<double>() + (t * shape.heads + h) * kd;
          double* o = output.data<double>() + (t * shape.heads + h) * vd;
          for (int64_t j = 0; j < vd; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < kd; ++i) sum += q[i] * s[i * vd + j];
            o[j] = scale * sum;
          }
        }
      }
    }
  });
  const DType dtype = context.value(0).tensor().dtype();
  const DType state_type = absent(past) ? dtype : context.value(3).tensor().dtype();
  CHECK_OK(give(context, 1, state_type, std::move(state)));
  return give(context, 0, dtype, std::move(output));
}

/// A Scan over the steps, whose state is the matrix.
Status body_of_linear_attention(FunctionContext& context) {
  const DType type = context.input_type(0);
  if (type == DType::kUndefined) return runtime_error("the element type of query is not known");
  const std::string number = std::to_string(static_cast<int64_t>(type));
  const std::string element = std::string(name_of(type)) + "[]";
  const AttributeReader& attributes = context.attributes;
  const int64_t heads = attributes.get_int("q_num_heads", 1);
  const int64_t kv_heads = attributes.get_int("kv_num_heads", 1);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    return runtime_error("q_num_heads must be a positive multiple of kv_num_heads");
  const Text rule = attributes.get_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  const auto split = [&](const std::string& name, const std::string& from,
                         const std::string& dims) {
    context.line(name + "_dims = Constant <value_ints = [0, 0, " + dims + ", -1]> ()");
    context.line(name + " = Reshape (" + from + ", " + name + "_dims)");
  };
  const std::string kv = std::to_string(kv_heads);
  split("q", "query", kv + ", " + std::to_string(heads / kv_heads));
  split("k", "key", kv);
  split("v", "value", kv);
  context.line("last = Constant <value_ints = [-1]> ()");
  context.line("two = Constant <value_ints = [2]> ()");
  context.line("k_column = Unsqueeze (k, last)");
  std::string scanned = "q, k_column, v",
              inputs = element + " q_t, " + element + " k_t, " + element + " v_t";
  if (gated) {
    split("d", "decay", kv);
    context.line("d_exp = Exp (d)");
    context.line("gate = Unsqueeze (d_exp, last)");
    scanned += ", gate";
    inputs += ", " + element + " g_t";
  }
  if (delta) {
    context.line("rate = Unsqueeze (beta, last)");
    scanned += ", rate";
    inputs += ", " + element + " b_t";
  }
  const double scale = static_cast<double>(attributes.get_float("scale", 0));
  if (scale != 0) {
    context.line("scale_float = Constant <value_float: float = @scale> ()");
    context.line("factor = Cast <to = " + number + "> (scale_float)");
  } else {
    context.line("size = Shape <start = 3, end = 4> (k)");
    context.line("size_typed = Cast <to = " + number + "> (size)");
    context.line("size_root = Sqrt (size_typed)");
    context.line("factor = Reciprocal (size_root)");
  }
  if (context.has_input(3)) {
    context.line("state = Cast <to = " + number + "> (past_state)");
  } else {
    context.line("batch = Shape <start = 0, end = 1> (k)");
    context.line("sizes = Shape <start = 2> (k)");
    context.line("v_size = Shape <start = 3> (v)");
    context.line("state_dims = Concat <axis = 0> (batch, sizes, v_size)");
    context.line("nothing = Constant <value_float = 0.0> ()");
    context.line("zero = Cast <to = " + number + "> (nothing)");
    context.line("state = Expand (zero, state_dims)");
  }
  const int64_t scans = 3 + (gated ? 1 : 0) + (delta ? 1 : 0);
  std::string axes;
  for (int64_t i = 0; i < scans; ++i) axes += i == 0 ? "1" : ", 1";
  std::string step = gated ? " s1 = Mul (s, g_t)" : " s1 = Identity (s)";
  if (delta)
    step +=
        "  known = Mul (s1, k_t)  said = ReduceSum <keepdims = 0> (known, two)  apart = Sub (v_t, "
        "said)"
        "  write = Mul (apart, b_t)";
  else
    step += "  write = Identity (v_t)";
  step +=
      "  row = Unsqueeze (write, two)  added = Mul (k_t, row)  s2 = Add (s1, added)"
      "  read = MatMul (q_t, s2)  o = Mul (read, factor)";
  context.line("final, steps = Scan <num_scan_inputs = " + std::to_string(scans) +
               ", scan_input_axes = [" + axes + "], scan_output_axes = [1], body = step (" +
               element + " s, " + inputs + ") => (" + element + " s2, " + element + " o) {" + step +
               " }> (state, " + scanned + ")");
  const DType state_type = context.has_input(3) ? context.input_type(3) : type;
  context.line("present_state = Cast <to = " + std::to_string(static_cast<int64_t>(state_type)) +
               "> (final)");
  context.line("packed = Constant <value_ints = [0, 0, -1]> ()");
  context.line("output = Reshape (steps, packed)");
  return ok();
}

}  // namespace

OPERATOR(LinearAttention) = {
    .name = "LinearAttention",
    .doc = "attention without softmax as a recurrence over a state matrix",
    .versions = {27},
    .inputs =
        {
            {"query", "T"},
            {"key", "T"},
            {"value", "T"},
            {"past_state", "S", kOptional},
            {"decay", "T", kOptional},
            {"beta", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "S"},
        },
    .attributes =
        {
            {"chunk_size", 64},
            {"kv_num_heads", required(Attr::kInt)},
            {"q_num_heads", required(Attr::kInt)},
            {"scale", 0.0f},
            {"update_rule", "gated_delta"},
        },
    .types =
        {
            {"T", {{27, kF32 | kF16 | kBf16}}},
            {"S", {{27, kF32 | kF16 | kBf16}}},
        },
    .functions = {{.opset = 27, .builder = body_of_linear_attention}},
    .infer = infer_linear_attention,
    .reference = run_linear_attention,
};

}  // namespace tombolo::ops
