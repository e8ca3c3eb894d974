#include "formats/common/shape_rules.h"

#include <algorithm>

#include "formats/common/graph_builder.h"
#include "ops/infer_context.h"

namespace tombolo {
namespace {

/// One node while its outputs' types are found.
struct Rule {
  GraphBuilder& b;
  const Node& node;

  Value* in(size_t i) const { return node.input(i); }
  const SymShape& shape(size_t i) const { return b.shape(in(i)); }
  DType dtype(size_t i) const { return b.dtype(in(i)); }
  int64_t rank(size_t i) const { return b.rank(in(i)); }
  int64_t get(Text name, int64_t fallback) const {
    const Attribute* attribute = node.attribute(name);
    return attribute && attribute->i() ? *attribute->i() : fallback;
  }
  std::vector<int64_t> list(Text name, size_t count, int64_t fallback) const {
    const Attribute* attribute = node.attribute(name);
    if (!attribute) return std::vector<int64_t>(count, fallback);
    return {attribute->ints().begin(), attribute->ints().end()};
  }
  std::optional<std::vector<int64_t>> constant(size_t i) const {
    const Tensor* tensor = in(i) ? b.constant_value(in(i)) : nullptr;
    if (!tensor) return std::nullopt;
    std::vector<int64_t> values;
    for (int64_t k = 0; k < tensor->size(); ++k) values.push_back(tensor->get_int64(k));
    return values;
  }
  Result<size_t> axis(int64_t value, int64_t rank) const {
    if (value < 0) value += rank;
    if (value < 0 || value >= rank) return parse_error("axis out of range");
    return static_cast<size_t>(value);
  }
  void out(DType type, SymShape shape, size_t i = 0) const {
    if (node.output(i)) b.set_type(node.output(i), type, shape);
  }
};

using RuleFn = Status (*)(const Rule&);

Status same(const Rule& r) {
  r.out(r.dtype(0), r.shape(0));
  return ok();
}
Status same_bool(const Rule& r) {
  r.out(DType::kBool, r.shape(0));
  return ok();
}
Result<SymShape> broadcast_all(const Rule& r, size_t from = 0) {
  SymShape shape = r.shape(from);
  for (size_t i = from + 1; i < r.node.inputs().size(); ++i) {
    TRY(shape, broadcast(shape, r.shape(i)));
  }
  return shape;
}
Status broadcasting(const Rule& r) {
  TRY(SymShape shape, broadcast_all(r));
  r.out(r.dtype(0), shape);
  return ok();
}
Status comparing(const Rule& r) {
  TRY(SymShape shape, broadcast_all(r));
  r.out(DType::kBool, shape);
  return ok();
}
Status where(const Rule& r) {
  TRY(SymShape shape, broadcast_all(r));
  r.out(r.dtype(1), shape);
  return ok();
}
Status cast(const Rule& r) {
  r.out(static_cast<DType>(r.get("to", 1)), r.shape(0));
  return ok();
}

Status matmul(const Rule& r) {
  SymShape a = r.shape(0), b = r.shape(1);
  if (a.size() < 2 || b.size() < 2) return parse_error("MatMul of a vector");
  if (a.back().differs(b[b.size() - 2])) {
    return parse_error("inner sizes differ: " + a.back().to_string() + " and " +
                       b[b.size() - 2].to_string());
  }
  const SymDim rows = a[a.size() - 2], columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  TRY(SymShape shape, broadcast(a, b));
  shape.push_back(rows);
  shape.push_back(columns);
  r.out(r.dtype(0), shape);
  return ok();
}

Status gemm(const Rule& r) {
  const bool ta = r.get("transA", 0) != 0, tb = r.get("transB", 0) != 0;
  if (r.rank(0) != 2 || r.rank(1) != 2) return parse_error("Gemm of other than matrices");
  if (r.shape(0)[ta ? 0 : 1].differs(r.shape(1)[tb ? 1 : 0])) {
    return parse_error("inner sizes differ");
  }
  r.out(r.dtype(0), {r.shape(0)[ta ? 1 : 0], r.shape(1)[tb ? 0 : 1]});
  return ok();
}

/// The length of one spatial axis after a window has moved over it.
SymDim window_length(const SymDim& in, int64_t kernel, int64_t stride, int64_t dilation,
                     int64_t pads, bool same_upper, bool ceil) {
  if (same_upper) return ceil_div(in, SymDim(stride));
  const SymDim room = in + SymDim(pads - (kernel - 1) * dilation - 1);
  return (ceil ? ceil_div(room, SymDim(stride)) : floor_div(room, SymDim(stride))) + SymDim(1);
}

Status windowed(const Rule& r) {
  const bool conv = r.node.op_type() == "Conv";
  const int64_t rank = r.rank(0);
  if (rank < 3 || (conv && r.rank(1) != rank)) return parse_error("wrong rank of the input");
  const size_t spatial = static_cast<size_t>(rank - 2);
  std::vector<int64_t> kernel;
  for (size_t i = 0; conv && i < spatial; ++i) {
    kernel.push_back(r.shape(1)[i + 2].constant().value_or(1));
  }
  if (!conv) kernel = r.list("kernel_shape", spatial, 1);
  const auto strides = r.list("strides", spatial, 1), dilations = r.list("dilations", spatial, 1),
             pads = r.list("pads", 2 * spatial, 0);
  if (strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial ||
      kernel.size() != spatial) {
    return parse_error("wrong number of spatial axes");
  }
  const Attribute* auto_pad = r.node.attribute("auto_pad");
  const bool same_upper = auto_pad && auto_pad->s() && *auto_pad->s() == "SAME_UPPER";
  SymShape shape{r.shape(0)[0], conv ? r.shape(1)[0] : r.shape(0)[1]};
  if (conv && r.shape(0)[1].differs(r.shape(1)[1] * SymDim(r.get("group", 1)))) {
    return parse_error("the input has " + r.shape(0)[1].to_string() + " channels, the kernel " +
                       r.shape(1)[1].to_string());
  }
  for (size_t i = 0; i < spatial; ++i) {
    if (strides[i] < 1 || dilations[i] < 1 || kernel[i] < 1 || kernel[i] > INT32_MAX ||
        dilations[i] > INT32_MAX) {
      return parse_error("stride, dilation or kernel below 1");
    }
    shape.push_back(window_length(r.shape(0)[i + 2], kernel[i], strides[i], dilations[i],
                                  pads[i] + pads[i + spatial], same_upper,
                                  r.get("ceil_mode", 0) != 0));
    if (shape.back().is_value() && shape.back().value() < 1) {
      return parse_error("the window is larger than the input");
    }
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status conv_transpose(const Rule& r) {
  const int64_t rank = r.rank(0);
  if (rank < 3 || r.rank(1) != rank) return parse_error("wrong rank of the input");
  const size_t spatial = static_cast<size_t>(rank - 2);
  const auto strides = r.list("strides", spatial, 1), dilations = r.list("dilations", spatial, 1),
             pads = r.list("pads", 2 * spatial, 0), extra = r.list("output_padding", spatial, 0);
  SymShape shape{r.shape(0)[0], r.shape(1)[1] * SymDim(r.get("group", 1))};
  if (r.shape(0)[1].differs(r.shape(1)[0])) return parse_error("channels do not fit the kernel");
  for (size_t i = 0; i < spatial; ++i) {
    const SymDim kernel = (r.shape(1)[i + 2] - SymDim(1)) * SymDim(dilations[i]) + SymDim(1);
    shape.push_back((r.shape(0)[i + 2] - SymDim(1)) * SymDim(strides[i]) + kernel +
                    SymDim(extra[i] - pads[i] - pads[i + spatial]));
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status reduce(const Rule& r) {
  const bool keep = r.get("keepdims", 1) != 0;
  auto axes = r.constant(1);
  SymShape shape = r.shape(0);
  std::vector<bool> gone(shape.size(), !axes.has_value());
  if (axes) {
    for (const int64_t axis : *axes) {
      TRY(const size_t index, r.axis(axis, r.rank(0)));
      gone[index] = true;
    }
  }
  SymShape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!gone[i]) result.push_back(shape[i]);
    if (gone[i] && keep) result.emplace_back(1);
  }
  r.out(r.dtype(0), result);
  return ok();
}

Status arg_reduce(const Rule& r) {
  TRY(const size_t axis, r.axis(r.get("axis", 0), r.rank(0)));
  SymShape shape = r.shape(0);
  shape[axis] = SymDim(1);
  if (r.get("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  r.out(DType::kInt64, shape);
  return ok();
}

Status transpose(const Rule& r) {
  const auto perm = r.list("perm", 0, 0);
  if (perm.size() != r.shape(0).size()) return parse_error("wrong rank of the input");
  SymShape shape;
  for (const int64_t axis : perm) {
    TRY(const size_t index, r.axis(axis, r.rank(0)));
    shape.push_back(r.shape(0)[index]);
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status reshape(const Rule& r) {
  const auto target = r.constant(1);
  if (!target) return unsupported("a computed shape");
  SymShape shape;
  // Sizes that are copied cancel out of the quotient, so that [batch, 4, 6] to [0, -1] is 24.
  SymDim total(1), known(1);
  std::optional<size_t> open;
  for (size_t i = 0; i < r.shape(0).size(); ++i) {
    const bool copied = i < target->size() && (*target)[i] == 0;
    if (!copied) total = total * r.shape(0)[i];
  }
  for (size_t i = 0; i < target->size(); ++i) {
    const int64_t size = (*target)[i];
    if (size == 0) {
      if (i >= r.shape(0).size()) return parse_error("Reshape copies a missing axis");
      shape.push_back(r.shape(0)[i]);
    } else {
      if (size == -1) open = i;
      if (size > 0) known = known * SymDim(size);
      shape.push_back(size > 0 ? SymDim(size) : SymDim());
    }
  }
  if (open) shape[*open] = floor_div(total, known);
  if (open && total.is_value() && known.is_value() && known.value() != 0 &&
      total.value() % known.value() != 0) {
    return parse_error("the elements do not fill the new shape");
  }
  if (!open && total.differs(known)) return parse_error("the elements do not fill the new shape");
  r.out(r.dtype(0), shape);
  return ok();
}

Status flatten(const Rule& r) {
  SymDim head(1), tail(1);
  const int64_t axis = r.get("axis", 1);
  for (int64_t i = 0; i < r.rank(0); ++i) {
    (i < axis ? head : tail) = (i < axis ? head : tail) * r.shape(0)[static_cast<size_t>(i)];
  }
  r.out(r.dtype(0), {head, tail});
  return ok();
}

Status squeeze(const Rule& r) {
  const auto axes = r.constant(1);
  if (!axes) return unsupported("computed axes");
  std::vector<bool> gone(r.shape(0).size());
  for (const int64_t axis : *axes) {
    TRY(const size_t index, r.axis(axis, r.rank(0)));
    gone[index] = true;
  }
  SymShape shape;
  for (size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) shape.push_back(r.shape(0)[i]);
  r.out(r.dtype(0), shape);
  return ok();
}

Status unsqueeze(const Rule& r) {
  const auto axes = r.constant(1);
  if (!axes) return unsupported("computed axes");
  const size_t rank = r.shape(0).size() + axes->size();
  std::vector<bool> added(rank);
  for (const int64_t axis : *axes) {
    TRY(const size_t index, r.axis(axis, static_cast<int64_t>(rank)));
    added[index] = true;
  }
  SymShape shape;
  size_t from = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (!added[i] && from >= r.shape(0).size()) return parse_error("axes repeat");
    shape.push_back(added[i] ? SymDim(1) : r.shape(0)[from++]);
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status concat(const Rule& r) {
  TRY(const size_t axis, r.axis(r.get("axis", 0), r.rank(0)));
  SymShape shape = r.shape(0);
  for (size_t i = 1; i < r.node.inputs().size(); ++i) {
    if (r.shape(i).size() != shape.size()) return parse_error("ranks differ");
    for (size_t k = 0; k < shape.size(); ++k) {
      if (k == axis)
        shape[k] = shape[k] + r.shape(i)[k];
      else if (shape[k].differs(r.shape(i)[k]))
        return parse_error("sizes differ");
    }
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status slice(const Rule& r) {
  const auto starts = r.constant(1), ends = r.constant(2), axes = r.constant(3),
             steps = r.constant(4);
  if (!starts || !ends || !axes || !steps) return unsupported("computed slice");
  SymShape shape = r.shape(0);
  for (size_t i = 0; i < axes->size(); ++i) {
    TRY(const size_t axis, r.axis((*axes)[i], r.rank(0)));
    const int64_t step = (*steps)[i];
    int64_t start = (*starts)[i], end = (*ends)[i];
    SymDim& dim = shape[axis];
    if (step == 0) return parse_error("a step of zero");
    if (dim.is_value()) {
      const int64_t size = dim.value(), low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
      if (start < 0) start += size;
      if (end < 0 && end >= -size) end += size;
      start = std::clamp(start, low, high);
      end = std::clamp(end, low, high);
      const int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
      dim = SymDim(span <= 0 ? 0 : (span + by - 1) / by);
    } else if (step == 1 && start >= 0 && end < 0 && end > INT32_MIN) {
      dim = dim - SymDim(start - end);
    } else if (step == 1 && start >= 0 && end >= INT32_MAX) {
      dim = dim - SymDim(start);
    } else if (!(step == -1 && start == -1 && end <= INT32_MIN)) {
      dim = SymDim();
    }
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status pad(const Rule& r) {
  const auto pads = r.constant(1);
  SymShape shape = r.shape(0);
  if (!pads || pads->size() != 2 * shape.size()) return parse_error("wrong number of pads");
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = shape[i] + SymDim((*pads)[i] + (*pads)[i + shape.size()]);
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status gather(const Rule& r) {
  TRY(const size_t axis, r.axis(r.get("axis", 0), r.rank(0)));
  SymShape shape(r.shape(0).begin(), r.shape(0).begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.end(), r.shape(1).begin(), r.shape(1).end());
  shape.insert(shape.end(), r.shape(0).begin() + static_cast<ptrdiff_t>(axis) + 1,
               r.shape(0).end());
  r.out(r.dtype(0), shape);
  return ok();
}

Status gather_elements(const Rule& r) {
  r.out(r.dtype(0), r.shape(1));
  return ok();
}

Status expand(const Rule& r) {
  const auto target = r.constant(1);
  if (!target) return unsupported("a computed shape");
  SymShape wanted;
  for (const int64_t size : *target) wanted.emplace_back(size);
  TRY(SymShape shape, broadcast(r.shape(0), wanted));
  r.out(r.dtype(0), shape);
  return ok();
}

Status tile(const Rule& r) {
  const auto repeats = r.constant(1);
  SymShape shape = r.shape(0);
  if (!repeats || repeats->size() != shape.size()) return parse_error("wrong number of repeats");
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] * SymDim((*repeats)[i]);
  r.out(r.dtype(0), shape);
  return ok();
}

Status resize(const Rule& r) {
  SymShape shape = r.shape(0);
  if (const auto sizes = r.constant(3)) {
    const auto axes = r.list("axes", 0, 0);
    for (size_t i = 0; i < sizes->size(); ++i) {
      TRY(const size_t axis, r.axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], r.rank(0)));
      shape[axis] = SymDim((*sizes)[i]);
    }
  } else {
    const Tensor* scales = r.in(2) ? r.b.constant_value(r.in(2)) : nullptr;
    if (!scales || scales->size() != r.rank(0)) return parse_error("wrong number of scales");
    for (size_t i = 0; i < shape.size(); ++i) {
      shape[i] =
          shape[i] * SymDim(static_cast<int64_t>(scales->get_double(static_cast<int64_t>(i))));
    }
  }
  r.out(r.dtype(0), shape);
  return ok();
}

Status recurrent(const Rule& r) {
  if (r.rank(0) != 3 || r.rank(2) != 3) return parse_error("wrong rank of the input");
  const SymDim steps = r.shape(0)[0], batch = r.shape(0)[1], directions = r.shape(2)[0],
               hidden = r.shape(2)[2];
  r.out(r.dtype(0), {steps, directions, batch, hidden});
  r.out(r.dtype(0), {directions, batch, hidden}, 1);
  r.out(r.dtype(0), {directions, batch, hidden}, 2);
  return ok();
}

Status top_k(const Rule& r) {
  TRY(const size_t axis, r.axis(r.get("axis", -1), r.rank(0)));
  SymShape shape = r.shape(0);
  const auto k = r.constant(1);
  shape[axis] = k && k->size() == 1 ? SymDim((*k)[0]) : SymDim();
  r.out(r.dtype(0), shape);
  r.out(DType::kInt64, shape, 1);
  return ok();
}

Status split(const Rule& r) {
  const auto sizes = r.constant(1);
  TRY(const size_t axis, r.axis(r.get("axis", 0), r.rank(0)));
  for (size_t i = 0; i < r.node.outputs().size(); ++i) {
    SymShape shape = r.shape(0);
    shape[axis] =
        sizes && i < sizes->size()
            ? SymDim((*sizes)[i])
            : floor_div(shape[axis], SymDim(static_cast<int64_t>(r.node.outputs().size())));
    r.out(r.dtype(0), shape, i);
  }
  return ok();
}

Status shape_of(const Rule& r) {
  r.out(DType::kInt64, {SymDim(r.rank(0))});
  return ok();
}

struct Row {
  std::string_view op;
  RuleFn rule;
};

constexpr Row kRules[] = {
    {"Abs", same},
    {"Add", broadcasting},
    {"And", comparing},
    {"ArgMax", arg_reduce},
    {"ArgMin", arg_reduce},
    {"AveragePool", windowed},
    {"BatchNormalization", same},
    {"Cast", cast},
    {"Ceil", same},
    {"Celu", same},
    {"Clip", same},
    {"Concat", concat},
    {"Conv", windowed},
    {"ConvTranspose", conv_transpose},
    {"Cos", same},
    {"CumSum", same},
    {"Div", broadcasting},
    {"Elu", same},
    {"Equal", comparing},
    {"Erf", same},
    {"Exp", same},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Floor", same},
    {"GRU", recurrent},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"Gelu", same},
    {"Gemm", gemm},
    {"Greater", comparing},
    {"GreaterOrEqual", comparing},
    {"GroupNormalization", same},
    {"HardSigmoid", same},
    {"HardSwish", same},
    {"Identity", same},
    {"LSTM", recurrent},
    {"LayerNormalization", same},
    {"LeakyRelu", same},
    {"Less", comparing},
    {"LessOrEqual", comparing},
    {"Log", same},
    {"LogSoftmax", same},
    {"LpNormalization", same},
    {"MatMul", matmul},
    {"Max", broadcasting},
    {"MaxPool", windowed},
    {"Mean", broadcasting},
    {"Min", broadcasting},
    {"Mish", same},
    {"Mod", broadcasting},
    {"Mul", broadcasting},
    {"Neg", same},
    {"Not", same_bool},
    {"Or", comparing},
    {"PRelu", same},
    {"Pad", pad},
    {"Pow", broadcasting},
    {"RMSNormalization", same},
    {"RNN", recurrent},
    {"Reciprocal", same},
    {"ReduceL2", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Relu", same},
    {"Reshape", reshape},
    {"Resize", resize},
    {"ReverseSequence", same},
    {"Round", same},
    {"Selu", same},
    {"Shape", shape_of},
    {"Shrink", same},
    {"Sigmoid", same},
    {"Sign", same},
    {"Sin", same},
    {"Slice", slice},
    {"Softmax", same},
    {"Softplus", same},
    {"Softsign", same},
    {"Split", split},
    {"Sqrt", same},
    {"Squeeze", squeeze},
    {"Sub", broadcasting},
    {"Sum", broadcasting},
    {"Swish", same},
    {"Tanh", same},
    {"ThresholdedRelu", same},
    {"Tile", tile},
    {"TopK", top_k},
    {"Transpose", transpose},
    {"Trilu", same},
    {"Unsqueeze", unsqueeze},
    {"Where", where},
    {"Xor", comparing},
};

}  // namespace

Status infer_builder_node(GraphBuilder& builder, const Node& node) {
  for (const Value* value : node.inputs()) {
    // An input that failed has been reported already.
    if (value && !builder.has_shape(value)) return parse_error("an input has no shape");
  }
  const auto row = std::lower_bound(std::begin(kRules), std::end(kRules), node.op_type(),
                                    [](const Row& entry, Text name) { return entry.op < name; });
  if (row == std::end(kRules) || row->op != node.op_type()) return ok();  // the caller sets it
  return row->rule({builder, node});
}

}  // namespace tombolo
