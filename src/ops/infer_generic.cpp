#include "ops/infer_generic.h"

#include "ops/infer_helpers.h"

namespace tombolo::ops {

Status infer_unary(InferContext& context) {
  if (const SymShape* shape = context.shape(0)) set_shape(context, 0, *shape);
  return ok();
}

Status infer_identity(InferContext& context) {
  context.same_as_input(0, 0);
  if (const SymShape* elements = context.ints(0)) context.set_value(0, *elements);
  return ok();
}

Status infer_broadcast(InferContext& context) {
  if (context.opset < 7) {
    // B is unidirectional into A, and only with `broadcast`; before opset 8 the variadic ones
    // (Max, Sum ...) have inputs of one shape. Either way the first input's shape is the result.
    const SymShape* first = context.shape(0);
    const bool along_axis =
        context.attributes.has("axis") && context.attributes.get_int("broadcast", 0) != 0;
    const int64_t axis = context.attributes.get_int("axis", 0);
    for (size_t i = 1; first != nullptr && i < context.input_count(); ++i) {
      const SymShape* other = context.shape(i);
      if (other == nullptr) continue;
      bool fits = other->size() <= first->size();
      const auto behind = static_cast<int64_t>(first->size()) - static_cast<int64_t>(other->size());
      // Where the axis itself does not fit, the step to newer sets says so.
      if (along_axis && (axis < 0 || axis > behind)) continue;
      const auto from = static_cast<size_t>(fits ? (along_axis ? axis : behind) : 0);
      for (size_t k = 0; fits && k < other->size(); ++k) {
        const auto own = (*other)[k].constant(), room = (*first)[from + k].constant();
        fits = !own || !room || *own == *room || *own == 1;
      }
      if (!fits)
        return context.error("input " + std::to_string(i) + ", " + shape_to_string(*other) +
                             ", does not broadcast into input 0, " + shape_to_string(*first));
    }
    return infer_unary(context);
  }
  std::optional<SymShape> out = SymShape();
  for (size_t i = 0; i < context.input_count(); ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr) return ok();
    TRY(out, broadcast(*out, *shape));
  }
  set_shape(context, 0, *std::move(out));
  return ok();
}

namespace {
struct Windows {
  std::span<const int64_t> strides, dilations, pads;
  Text auto_pad;
  bool ceil_mode = false;
};

/// The output's spatial dims of windows of `kernel` sliding over the axes from 2 on.
Result<std::vector<SymDim>> slide(const InferContext& context, std::span<const SymDim> input,
                                  std::span<const SymDim> kernel, const Windows& windows) {
  const size_t rank = input.size();
  const auto check = [&](std::span<const int64_t> list, const char* name,
                         size_t expected) -> Status {
    if (!list.empty() && list.size() != expected)
      return context.error(std::string(name) + " has " + std::to_string(list.size()) +
                           " values, but there are " + std::to_string(rank) +
                           " spatial axes, which need " + std::to_string(expected));
    return ok();
  };
  CHECK_OK(check(windows.strides, "strides", rank));
  CHECK_OK(check(windows.dilations, "dilations", rank));
  CHECK_OK(check(windows.pads, "pads", 2 * rank));
  if (kernel.size() != rank)
    return context.error("the kernel has " + std::to_string(kernel.size()) +
                         " spatial axes, but the input has " + std::to_string(rank));
  const bool same = windows.auto_pad == "SAME_UPPER" || windows.auto_pad == "SAME_LOWER";
  const bool valid = windows.auto_pad == "VALID";
  if (!same && !valid && windows.auto_pad != "NOTSET" && !windows.auto_pad.empty())
    return context.error("auto_pad is \"" + std::string(windows.auto_pad.substr(0, 40)) +
                         "\", which is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
  std::vector<SymDim> out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = windows.strides.empty() ? 1 : windows.strides[i];
    const int64_t dilation = windows.dilations.empty() ? 1 : windows.dilations[i];
    if (stride <= 0)
      return context.error("strides must be positive, but one is " + std::to_string(stride));
    if (dilation <= 0)
      return context.error("dilations must be positive, but one is " + std::to_string(dilation));
    if (kernel[i].is_value() && kernel[i].value() <= 0)
      return context.error("the kernel's size must be positive, but one is " +
                           kernel[i].to_string());
    if (same) {
      out[i] = ceil_div(input[i], SymDim(stride));
      continue;
    }
    int64_t begin = 0, end = 0;
    if (!valid && !windows.pads.empty()) {
      begin = windows.pads[i];
      end = windows.pads[i + rank];
    }
    const SymDim extent = (kernel[i] - 1) * dilation + 1;
    const SymDim room = input[i] + begin + end - extent;
    if (room.is_value() && room.value() < 0 && !windows.ceil_mode &&
        !(input[i].is_value() && input[i].value() == 0))
      return context.error("the kernel (" + extent.to_string() +
                           " with dilation) is larger than the "
                           "padded input (" +
                           (input[i] + begin + end).to_string() + ") on spatial axis " +
                           std::to_string(i));
    if (!windows.ceil_mode) {
      out[i] = floor_div(room, SymDim(stride)) + 1;
    } else {
      // A last window that would start in the padding behind the input is left out.
      out[i] = min(ceil_div(room, SymDim(stride)) + 1, ceil_div(input[i] + begin, SymDim(stride)));
    }
    // No window fits an empty axis.
    if (out[i].is_value() && out[i].value() < 0) out[i] = SymDim(0);
  }
  return out;
}

Windows windows_of(const InferContext& context) {
  Windows windows;
  windows.strides = context.attributes.get_ints("strides");
  windows.dilations = context.attributes.get_ints("dilations");
  windows.pads = context.attributes.get_ints("pads");
  windows.auto_pad = context.attributes.get_string("auto_pad", "NOTSET");
  windows.ceil_mode = context.attributes.get_int("ceil_mode", 0) != 0;
  return windows;
}

SymShape kernel_shape_of(const InferContext& context) {
  SymShape kernel;
  for (const int64_t size : context.attributes.get_ints("kernel_shape")) kernel.push_back(size);
  return kernel;
}
}  // namespace

Status infer_pool(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (context.wants_output(1)) context.set_tensor(1, DType::kInt64);
  if (x == nullptr) return ok();
  if (x->size() < 2)
    return context.error("X must have a batch and a channel axis, but its shape is " +
                         shape_to_string(*x));
  SymShape kernel = kernel_shape_of(context);
  // LpPool-1 may leave the kernel out.
  if (kernel.empty() && x->size() > 2) {
    set_rank(context, 0, x->size());
    return ok();
  }
  TRY(const std::vector<SymDim> spatial,
      slide(context, std::span(*x).subspan(2), kernel, windows_of(context)));
  SymShape out = {(*x)[0], (*x)[1]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  if (context.wants_output(1)) context.set_tensor(1, DType::kInt64, out);
  set_shape(context, 0, std::move(out));
  return ok();
}

Status infer_global_pool(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  if (x->size() < 2)
    return context.error("X must have a batch and a channel axis, but its shape is " +
                         shape_to_string(*x));
  SymShape out = *x;
  for (size_t i = 2; i < out.size(); ++i) out[i] = 1;
  set_shape(context, 0, std::move(out));
  return ok();
}

Status infer_convolution(InferContext& context, size_t weight_input) {
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(weight_input);
  if (x != nullptr && x->size() < 3)
    return context.error("X must have a batch, a channel and spatial axes, but its shape is " +
                         shape_to_string(*x));
  if (w != nullptr && x != nullptr && w->size() != x->size())
    return context.error("W has rank " + std::to_string(w->size()) + ", but X has rank " +
                         std::to_string(x->size()));
  const int64_t group = context.attributes.get_int("group", 1);
  if (group <= 0)
    return context.error("group must be positive, but it is " + std::to_string(group));
  if (x != nullptr && w != nullptr) {
    const SymDim channels = (*w)[1] * group;
    if (channels.is_value() && (*x)[1].is_value() && channels.value() != (*x)[1].value())
      return context.error("X has " + (*x)[1].to_string() + " channels (shape " +
                           shape_to_string(*x) + "), but W of shape " + shape_to_string(*w) +
                           " with group " + std::to_string(group) + " takes " +
                           channels.to_string());
  }
  if (w != nullptr && !w->empty() && (*w)[0].is_value() && (*w)[0].value() % group != 0)
    return context.error("W makes " + (*w)[0].to_string() + " channels, which do not divide into " +
                         std::to_string(group) + " groups");
  const size_t rank = x != nullptr ? x->size() : w != nullptr ? w->size() : 0;
  if (rank < 3) return ok();
  SymShape kernel = kernel_shape_of(context);
  if (w != nullptr) {
    if (!kernel.empty() && kernel.size() != rank - 2)
      return context.error("kernel_shape has " + std::to_string(kernel.size()) +
                           " values, but W has shape " + shape_to_string(*w));
    SymShape from_weight(w->begin() + 2, w->end());
    for (size_t i = 0; i < kernel.size(); ++i) {
      if (from_weight[i].is_value() && kernel[i].value() != from_weight[i].value())
        return context.error("kernel_shape says " + shape_to_string(kernel) + ", but W has shape " +
                             shape_to_string(*w));
      from_weight[i] = kernel[i];
    }
    kernel = std::move(from_weight);
  }
  if (kernel.empty()) kernel.resize(rank - 2);
  SymShape out(rank);
  if (w != nullptr) out[1] = (*w)[0];
  if (x != nullptr) {
    out[0] = (*x)[0];
    TRY(const std::vector<SymDim> spatial,
        slide(context, std::span(*x).subspan(2), kernel, windows_of(context)));
    for (size_t i = 2; i < rank; ++i) out[i] = spatial[i - 2];
  }
  set_shape(context, 0, std::move(out));
  return ok();
}

Status infer_reduce(InferContext& context) {
  const bool keep = context.attributes.get_int("keepdims", 1) != 0;
  const bool noop_if_empty = context.attributes.get_int("noop_with_empty_axes", 0) != 0;
  const SymShape* data = context.shape(0);
  const auto axes = ints_from(context, "axes", 1);
  if (data == nullptr) {
    // All axes, none kept: a scalar whatever the rank.
    if (axes && axes->empty() && !noop_if_empty && !keep) set_shape(context, 0, {});
    return ok();
  }
  if (!axes) {
    if (keep) {
      set_rank(context, 0, data->size());
    } else if (const SymShape* count = context.shape(1);
               count != nullptr && count->size() == 1 && (*count)[0].is_value() &&
               (*count)[0].value() <= static_cast<int64_t>(data->size())) {
      set_rank(context, 0, data->size() - static_cast<size_t>((*count)[0].value()));
    }
    return ok();
  }
  std::vector<bool> reduced(data->size(), axes->empty() && !noop_if_empty);
  TRY(const std::vector<size_t> indices, checked_axes(context, *axes, data->size()));
  for (const size_t axis : indices) reduced[axis] = true;
  SymShape out;
  for (size_t i = 0; i < data->size(); ++i) {
    if (!reduced[i])
      out.push_back((*data)[i]);
    else if (keep)
      out.push_back(1);
  }
  set_shape(context, 0, std::move(out));

  // The element that a reduction of a shape gives.
  const SymShape* elements = context.ints(0);
  if (elements == nullptr || elements->empty()) return ok();
  if (data->empty() || !reduced[0]) {
    if (context.node.op_type() != "ReduceProd" && context.node.op_type() != "ReduceSum" &&
        context.node.op_type() != "ReduceMax" && context.node.op_type() != "ReduceMin")
      return ok();
    context.set_value(0, *elements);
    return ok();
  }
  const Text op = context.node.op_type();
  SymDim value = (*elements)[0];
  for (size_t i = 1; i < elements->size(); ++i) {
    const SymDim& element = (*elements)[i];
    if (op == "ReduceProd")
      value = value * element;
    else if (op == "ReduceSum")
      value = value + element;
    else if (op == "ReduceMax")
      value = max(value, element);
    else if (op == "ReduceMin")
      value = min(value, element);
  }
  if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin")
    context.set_value(0, {value});
  return ok();
}

Status infer_recurrent(InferContext& context) {
  const int64_t layout = context.attributes.get_int("layout", 0);
  const Text direction = context.attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return context.error("direction is \"" + std::string(direction.substr(0, 40)) +
                         "\", which is none of forward, reverse, bidirectional");
  const SymDim directions = direction == "bidirectional" ? 2 : 1;
  CHECK_OK(expect_rank(context, 0, 3));
  CHECK_OK(expect_rank(context, 1, 3));
  CHECK_OK(expect_rank(context, 2, 3));
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(1);
  const SymShape* r = context.shape(2);
  SymDim hidden;
  if (const auto size = context.attributes.get_int("hidden_size")) hidden = *size;
  if (r != nullptr) {
    TRY(hidden, unify_dims(context, hidden, (*r)[2], "hidden_size against the last axis of R"));
    CHECK_OK(unify_dims(context, directions, (*r)[0], "directions against the first axis of R"));
  }
  if (w != nullptr) {
    CHECK_OK(unify_dims(context, directions, (*w)[0], "directions against the first axis of W"));
    if (x != nullptr)
      CHECK_OK(unify_dims(context, (*x)[2], (*w)[2], "input size of X against the last axis of W"));
  }
  SymDim length, batch;
  if (x != nullptr) {
    length = (*x)[layout == 0 ? 0 : 1];
    batch = (*x)[layout == 0 ? 1 : 0];
  }
  if (layout == 0)
    set_shape(context, 0, {length, directions, batch, hidden});
  else
    set_shape(context, 0, {batch, length, directions, hidden});
  for (size_t i = 1; i < context.outputs.size(); ++i)
    set_shape(
        context, i,
        layout == 0 ? SymShape{directions, batch, hidden} : SymShape{batch, directions, hidden});
  return ok();
}

Status infer_matmul(InferContext& context, size_t a_index, size_t b_index) {
  const SymShape* a = context.shape(a_index);
  const SymShape* b = context.shape(b_index);
  if (a == nullptr || b == nullptr) return ok();
  if (a->empty() || b->empty())
    return context.error("the operands must have at least one axis, but their shapes are " +
                         shape_to_string(*a) + " and " + shape_to_string(*b));
  const SymDim inner_a = a->back();
  const SymDim inner_b = b->size() == 1 ? b->front() : (*b)[b->size() - 2];
  if (inner_a.is_value() && inner_b.is_value() && inner_a.value() != inner_b.value())
    return context.error("shapes " + shape_to_string(*a) + " and " + shape_to_string(*b) +
                         " do not multiply: " + inner_a.to_string() + " columns against " +
                         inner_b.to_string() + " rows");
  const SymShape outer_a(a->begin(), a->end() - (a->size() == 1 ? 1 : 2));
  const SymShape outer_b(b->begin(), b->end() - (b->size() == 1 ? 1 : 2));
  TRY(SymShape out, broadcast(outer_a, outer_b));
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back(b->back());
  set_shape(context, 0, std::move(out));
  return ok();
}

Status infer_rows(InferContext& context, size_t output, int64_t columns) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
  set_shape(context, output, {rows, columns < 0 ? SymDim() : SymDim(columns)});
  return ok();
}

namespace {
Result<DType> dtype_attribute(const InferContext& context, DType fallback) {
  const auto number = context.attributes.get_int("dtype");
  if (!number) return fallback;
  const auto dtype = dtype_from_number(*number);
  if (!dtype) return context.error("dtype is " + std::to_string(*number) + ", which is no type");
  return *dtype;
}
}  // namespace

Status infer_random(InferContext& context) {
  TRY(const DType dtype, dtype_attribute(context, DType::kFloat32));
  SymShape shape;
  for (const int64_t dim : context.attributes.get_ints("shape")) {
    if (dim < 0) return context.error("shape holds " + std::to_string(dim));
    shape.push_back(dim);
  }
  context.set_tensor(0, dtype, std::move(shape));
  return ok();
}

Status infer_random_like(InferContext& context) {
  TRY(const DType dtype, dtype_attribute(context, context.elem(0)));
  InferType type = InferType::tensor(dtype);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  context.set_output(0, std::move(type));
  return ok();
}

}  // namespace tombolo::ops
