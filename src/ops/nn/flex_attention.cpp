#include <algorithm>
#include <cmath>

#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_flex_attention(InferContext& context) {
  const SymShape* q = context.shape(0);
  const SymShape* v = context.shape(2);
  if (q == nullptr || q->size() != 4) return ok();
  set_shape(context, 0,
            {(*q)[0], (*q)[1], (*q)[2], v != nullptr && v->size() == 4 ? (*v)[3] : SymDim()});
  return ok();
}
}  // namespace

namespace {

/// Runs a modifier on a tensor of `dtype`; `scores` comes and goes as T.
template <typename T>
Status modify(KernelContext& context, const char* name, DType dtype, Tensor& scores) {
  const Graph* graph = context.attributes.get_graph(name);
  if (graph == nullptr) return ok();
  TRY(Tensor input, converted(context, scores, dtype));
  TRY(std::vector<RunValue> outputs, context.host.run_graph(*graph, {RunValue(std::move(input))}));
  if (outputs.size() != 1 || !outputs[0].is_tensor())
    return context.error(std::string(name) + " must give one tensor");
  CHECK_OK(check_dims(context, name, outputs[0].tensor(), scores.dims()));
  TRY(scores, as<T>(context, outputs[0].tensor()));
  return ok();
}

template <typename T>
Status flex_attention(KernelContext& context, DType precision) {
  TRY(const Tensor* query, context.input(0));
  TRY(const Tensor* key, context.input(1));
  TRY(const Tensor* value, context.input(2));
  if (query->rank() != 4 || key->rank() != 4 || value->rank() != 4)
    return context.error("Q, K and V must have rank 4, are " + to_string(*query) + ", " +
                         to_string(*key) + " and " + to_string(*value));
  const int64_t batch = query->dim(0), heads = query->dim(1), rows = query->dim(2),
                size = query->dim(3), kv_heads = key->dim(1), columns = key->dim(2),
                value_size = value->dim(3);
  CHECK_OK(check_dims(context, "K", *key, {{batch, kv_heads, columns, size}}));
  CHECK_OK(check_dims(context, "V", *value, {{batch, kv_heads, columns, value_size}}));
  if (kv_heads < 1 || heads % kv_heads != 0)
    return context.error("Q has " + std::to_string(heads) + " heads, K and V have " +
                         std::to_string(kv_heads));
  const double scale = context.attributes.has("scale")
                           ? static_cast<double>(context.attributes.get_float("scale", 1))
                           : 1 / std::sqrt(static_cast<double>(size));
  const int64_t group = heads / kv_heads;
  TRY(Tensor q, as<T>(context, *query));
  TRY(Tensor k, as<T>(context, *key));
  TRY(Tensor v, as<T>(context, *value));
  TRY(Tensor scores, context.allocate(dtype_of<T>(), {{batch, heads, rows, columns}}));
  const auto kv_index = [&](int64_t i) { return i / heads * kv_heads + i % heads / group; };
  context.parallel_for(batch * heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      T* s = scores.data<T>() + i * rows * columns;
      gemm<T>(rows, columns, size, {q.data<T>() + i * rows * size, size, 1},
              {k.data<T>() + kv_index(i) * columns * size, 1, size}, s, columns);
      for (int64_t j = 0; j < rows * columns; ++j) s[j] *= static_cast<T>(scale);
    }
  });
  CHECK_OK(modify<T>(context, "score_mod", precision, scores));
  TRY(Tensor probabilities, context.allocate(dtype_of<T>(), scores.dims()));
  for (int64_t row = 0; row < (columns == 0 ? 0 : batch * heads * rows); ++row) {
    const T* from = scores.data<T>() + row * columns;
    T* to = probabilities.data<T>() + row * columns;
    const double most = static_cast<double>(*std::max_element(from, from + columns));
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += std::exp(static_cast<double>(from[j]) - most);
    for (int64_t j = 0; j < columns; ++j)
      to[j] = static_cast<T>(std::exp(static_cast<double>(from[j]) - most) / sum);
  }
  CHECK_OK(modify<T>(context, "prob_mod", precision, probabilities));
  TRY(Tensor y, context.allocate(dtype_of<T>(), {{batch, heads, rows, value_size}}));
  context.parallel_for(batch * heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      gemm<T>(rows, value_size, columns, {probabilities.data<T>() + i * rows * columns, columns, 1},
              {v.data<T>() + kv_index(i) * columns * value_size, value_size, 1},
              y.data<T>() + i * rows * value_size, value_size);
  });
  return give(context, 0, query->dtype(), std::move(y));
}

Status run_flex_attention(KernelContext& context) {
  TRY(const Tensor* query, context.input(0));
  if (!is_float(query->dtype()))
    return context.error("Q must be a tensor of floats, is " + to_string(*query));
  const bool wide = query->dtype() == DType::kFloat64;
  const int64_t given = context.attributes.get_int(
      "softmax_precision", static_cast<int64_t>(wide ? DType::kFloat64 : DType::kFloat32));
  const auto precision = dtype_from_number(given);
  if (!precision || !is_float(*precision))
    return context.error("softmax_precision is " + std::to_string(given) +
                         ", not a type of floats");
  if (wide || precision == DType::kFloat64) return flex_attention<double>(context, *precision);
  return flex_attention<float>(context, *precision);
}

/// Scores, modifier, softmax, modifier, product; shared heads of K and V are repeated.
Status body_of_flex_attention(FunctionContext& context) {
  const DType type = context.input_type(0);
  if (type == DType::kUndefined) return unsupported("the type of Q is not known");
  context.opset = latest_opset("");
  const int64_t fallback =
      static_cast<int64_t>(type == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  const std::string precision =
      std::to_string(context.attributes.get_int("softmax_precision", fallback));
  const std::string own = std::to_string(static_cast<int64_t>(type));
  for (const char* name : {"Q", "K", "V"})
    context.line("wide_" + std::string(name) + " = Cast <to = " + precision + "> (" + name + ")");
  context.body += R"(heads = Shape <start = 1, end = 2> (Q)
kv_heads = Shape <start = 1, end = 2> (K)
group = Div (heads, kv_heads)
zero = Constant <value_int = 0> ()
unit = Constant <value_int = 1> ()
heads_number = Squeeze (heads)
head = Range (zero, heads_number, unit)
shared = Div (head, group)
key = Gather <axis = 1> (wide_K, shared)
value = Gather <axis = 1> (wide_V, shared)
turned = Transpose <perm = [0, 1, 3, 2]> (key)
product = MatMul (wide_Q, turned)
)";
  if (context.attributes.has("scale")) {
    context.line("factor = Constant <value_float: float = @scale> ()");
    context.line("scale_wide = Cast <to = " + precision + "> (factor)");
  } else {
    context.body += "size = Shape <start = 3> (Q)\nsize_wide = Cast <to = " + precision +
                    "> (size)\nroot = Sqrt (size_wide)\nscale_wide = Reciprocal (root)\n";
  }
  context.line("scores = Mul (product, scale_wide)");
  std::string scores = "scores", shares = "shares";
  for (const auto& [name, at] : {std::pair{"score_mod", &scores}, std::pair{"prob_mod", &shares}}) {
    if (at == &shares) context.line("shares = Softmax <axis = -1> (" + scores + ")");
    const Graph* graph = context.attributes.get_graph(name);
    if (graph == nullptr) continue;
    TRY(const std::vector<std::string> outputs,
        context.inline_graph(*graph, name + std::string("_"), std::span(at, 1)));
    if (outputs.size() != 1) return runtime_error(std::string(name) + " must give one tensor");
    *at = outputs[0];
  }
  context.line("mixed = MatMul (" + shares + ", value)");
  context.line("Y = Cast <to = " + own + "> (mixed)");
  return ok();
}

}  // namespace

OPERATOR(FlexAttention) = {
    .name = "FlexAttention",
    .domain = "ai.onnx.preview",
    .doc = "attention whose scores a subgraph may change",
    .versions = {1},
    .inputs =
        {
            {"Q", "T1"},
            {"K", "T1"},
            {"V", "T1"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"prob_mod", Attr::kGraph},
            {"scale", Attr::kFloat},
            {"score_mod", Attr::kGraph},
            {"softmax_precision", Attr::kInt},
        },
    .types = {{"T1", {{1, kFloats | kBf16}}}},
    .functions = {{.opset = 1, .builder = body_of_flex_attention}},
    .determinism = Determinism::kBySubgraph,
    .infer = infer_flex_attention,
    .reference = run_flex_attention,
};

}  // namespace tombolo::ops
