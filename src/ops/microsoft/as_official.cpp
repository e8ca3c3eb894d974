// Operators that became, or always were, one of ai.onnx.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_ms_gather_nd(KernelContext& context) {
  TRY(const Tensor data, tensor_at(context, 0));
  TRY(const Tensor indices, tensor_at(context, 1));
  Official official(context);
  Node& cast = official.node("Cast");
  cast.set_int("to", static_cast<int64_t>(DType::kInt64));
  TRY(const Tensor wide, official.call(cast, {indices}));
  TRY(Tensor y, official.call("GatherND", {data, wide}, 12));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_ms_gather_nd(InferContext& context) { return infer_as(context, "GatherND", 12); }

Status run_ms_grid_sample(KernelContext& context) { return run_as(context, "GridSample", 16); }
Status infer_ms_grid_sample(InferContext& context) {
  CHECK_OK(infer_as(context, "GridSample", 16));
  if (context.outputs.empty() || !is_float(context.elem(0))) return ok();
  context.outputs[0].kind = Type::Kind::kTensor;
  context.outputs[0].elem = context.elem(0);
  return ok();
}

Status run_ms_trilu(KernelContext& context) { return run_as(context, "Trilu", 14); }

/// The pads may also come as [1, 2 * rank].
Status run_ms_pad(KernelContext& context) {
  TRY(const Tensor data, tensor_at(context, 0));
  TRY(Tensor pads, tensor_at(context, 1));
  TRY(const Tensor value, tensor_or_absent(context, 2));
  if (pads.rank() == 2 && pads.dim(0) == 1) pads = pads.reshaped({{pads.dim(1)}});
  Official official(context);
  TRY(Tensor y, official.call(official.node_with("Pad", {"mode"}), {data, pads, value}, 13));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_ms_pad(InferContext& context) {
  const SymShape* data = context.shape(0);
  if (data == nullptr) return ok();
  SymShape out = *data;
  const Tensor* pads = context.constant(1);
  for (size_t i = 0; i < out.size(); ++i) {
    const bool known = pads != nullptr && pads->size() == static_cast<int64_t>(2 * out.size());
    out[i] = known ? out[i] + SymDim(pads->get_int64(static_cast<int64_t>(i)) +
                                     pads->get_int64(static_cast<int64_t>(i + out.size())))
                   : SymDim();
  }
  set_shape(context, 0, std::move(out));
  return ok();
}

/// start, limit and delta as scalars or vectors of one; delta is 1 when absent.
Status run_ms_range(KernelContext& context) {
  Tensor arguments[3];
  for (size_t i = 0; i < 3; ++i) {
    TRY(Tensor given, tensor_or_absent(context, i));
    if (given.dtype() == DType::kUndefined && i == 2) {
      TRY(given, context.allocate(arguments[0].dtype(), {}));
      given.set_double(0, 1);
    }
    if (given.size() != 1 || given.rank() > 1)
      return context.error("start, limit and delta must be scalars, one is " + to_string(given));
    arguments[i] = given.reshaped({});
  }
  Official official(context);
  TRY(Tensor y, official.call("Range", {arguments[0], arguments[1], arguments[2]}, 11));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_ms_range(InferContext& context) {
  set_rank(context, 0, 1);
  return ok();
}

/// `axis` counts in the result.
Status run_expand_dims(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* axis, context.input(1));
  if (axis->size() != 1) return context.error("axis must be a scalar, is " + to_string(*axis));
  TRY(const int64_t at, normalize_axis(axis->get_int64(0), static_cast<int64_t>(x->rank()) + 1));
  Dims dims;
  for (size_t i = 0; i <= x->rank(); ++i) {
    if (static_cast<int64_t>(i) == at) dims.push_back(1);
    if (i < x->rank()) dims.push_back(x->dim(i));
  }
  context.set_output(0, x->reshaped(dims));
  return ok();
}
Status infer_expand_dims(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const std::optional<std::vector<int64_t>> axis = context.constant_ints(1);
  if (!axis || axis->size() != 1) {
    set_rank(context, 0, x->size() + 1);
    return ok();
  }
  TRY(const size_t at, checked_axis(context, axis->front(), x->size() + 1));
  SymShape out = *x;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), SymDim(1));
  set_shape(context, 0, std::move(out));
  return ok();
}

/// Different elements in the order in which they come first, where each element's is, how many.
Status run_ms_unique(KernelContext& context) {
  TRY(const Tensor x, tensor_at(context, 0));
  if (x.rank() != 1) return context.error("x must have rank 1, is " + to_string(x));
  Official official(context);
  Node& node = official.node("Unique", 4);
  node.set_int("sorted", 0);
  const Tensor inputs[] = {x};
  TRY(std::vector<RunValue> parts, official.run(node, inputs));
  context.set_output(0, std::move(parts[0]));
  context.set_output(1, std::move(parts[2]));
  context.set_output(2, std::move(parts[3]));
  return ok();
}
Status infer_ms_unique(InferContext& context) {
  const SymDim count = context.host.fresh_symbol("unique");
  set_shape(context, 0, {count});
  context.set_tensor(1, DType::kInt64);
  if (const SymShape* x = context.shape(0)) context.set_tensor(1, DType::kInt64, *x);
  context.set_tensor(2, DType::kInt64, {count});
  return ok();
}

/// Rows of `weight`. Gradients alone know padding and frequencies.
Status run_torch_embedding(KernelContext& context) {
  TRY(const Tensor weight, tensor_at(context, 0));
  TRY(const Tensor indices, tensor_at(context, 1));
  Official official(context);
  TRY(Tensor y, official.call("Gather", {weight, indices}));
  context.set_output(0, std::move(y));
  return ok();
}
Status infer_torch_embedding(InferContext& context) {
  const SymShape* weight = context.shape(0);
  const SymShape* indices = context.shape(1);
  if (weight == nullptr || indices == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 2));
  SymShape out = *indices;
  out.push_back((*weight)[1]);
  set_shape(context, 0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(microsoft_GatherND) = {
    .name = "GatherND",
    .domain = "com.microsoft",
    .doc = "slices at index tuples, as ai.onnx has it",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .types =
        {
            {"T", {{1, kAll}}},
            {"Tind", {{1, kIndices}}},
        },
    .infer = infer_ms_gather_nd,
    .reference = run_ms_gather_nd,
};

OPERATOR(microsoft_GridSample) = {
    .name = "GridSample",
    .domain = "com.microsoft",
    .doc = "samples an image at places that a grid gives, as ai.onnx-16 has it",
    .versions = {1},
    .inputs =
        {
            {"X", "T1"},
            {"Grid", "T1"},
        },
    .outputs =
        {
            {"Y", "T2"},
        },
    .attributes =
        {
            {"align_corners", 0},
            {"mode", "bilinear"},
            {"padding_mode", "zeros"},
        },
    .types =
        {
            {"T1", {{1, kAll}}},
            {"T2", {{1, kFloats}}},
        },
    .infer = infer_ms_grid_sample,
    .reference = run_ms_grid_sample,
};

OPERATOR(microsoft_Trilu) = {
    .name = "Trilu",
    .domain = "com.microsoft",
    .doc = "the triangle of matrices, as ai.onnx has it",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"k", "tensor(int64)", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"upper", 1},
        },
    .types =
        {
            {"T", {{1, kNumbers | kBf16 | kBool}}},
        },
    .infer = infer_unary,
    .reference = run_ms_trilu,
};

OPERATOR(microsoft_Pad) = {
    .name = "Pad",
    .domain = "com.microsoft",
    .doc = "pads by amounts that are an input, as ai.onnx-11 has it",
    .versions = {1},
    .inputs =
        {
            {"data", "T"},
            {"pads", "tensor(int64)"},
            {"value", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .attributes =
        {
            {"mode", "constant"},
        },
    .types =
        {
            {"T", {{1, kFloats}}},
        },
    .infer = infer_ms_pad,
    .reference = run_ms_pad,
};

OPERATOR(microsoft_Range) = {
    .name = "Range",
    .domain = "com.microsoft",
    .doc = "numbers from start to limit",
    .versions = {1},
    .inputs =
        {
            {"start", "T"},
            {"limit", "T"},
            {"delta", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats32 | kIndices | kI16}}},
        },
    .infer = infer_ms_range,
    .reference = run_ms_range,
};

OPERATOR(microsoft_ExpandDims) = {
    .name = "ExpandDims",
    .domain = "com.microsoft",
    .doc = "puts in an axis of length 1",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"axis", "tensor(int32)"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kAll}}},
        },
    .infer = infer_expand_dims,
    .reference = run_expand_dims,
};

OPERATOR(microsoft_Unique) = {
    .name = "Unique",
    .domain = "com.microsoft",
    .doc = "different elements in order, with indices and counts",
    .versions = {1},
    .inputs =
        {
            {"x", "T"},
        },
    .outputs =
        {
            {"y", "T"},
            {"idx", "tensor(int64)"},
            {"counts", "tensor(int64)"},
        },
    .types =
        {
            {"T", {{1, kAll}}},
        },
    .infer = infer_ms_unique,
    .reference = run_ms_unique,
};

OPERATOR(microsoft_TorchEmbedding) = {
    .name = "TorchEmbedding",
    .domain = "com.microsoft",
    .doc = "rows of a table",
    .versions = {1},
    .inputs =
        {
            {"weight", "T"},
            {"indices", "tensor(int64)"},
            {"padding_idx", "tensor(int64)", kOptional},
            {"scale_grad_by_freq", "tensor(bool)", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kNumbers | kBf16}}},
        },
    .infer = infer_torch_embedding,
    .reference = run_torch_embedding,
};

}  // namespace tombolo::ops
