#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/fourier.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

/// Walks the lines along `axis` of a tensor whose last axis holds one or two parts.
struct Lines {
  int64_t inner, length, parts;
  /// Offset of element `i` of line `line` (lines count over all axes but this one and the last).
  int64_t at(int64_t line, int64_t i) const {
    return ((line / inner * length + i) * inner + line % inner) * parts;
  }
};

Status run_dft(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const auto rank = static_cast<int64_t>(x->rank());
  if (rank < 2 || (x->dim(x->rank() - 1) != 1 && x->dim(x->rank() - 1) != 2))
    return context.error("the input must end in an axis of 1 (real) or 2 (complex), is " +
                         to_string(*x));
  int64_t axis = context.opset < 20 ? context.attributes.get_int("axis", 1) : -2;
  if (context.opset >= 20 && context.has_input(2)) {
    TRY(const std::vector<int64_t> given, context.input_ints(2));
    if (given.size() != 1) return context.error("axis must be a scalar");
    axis = given[0];
  }
  TRY(axis, normalize_axis(axis, rank));
  if (axis == rank - 1)
    return context.error("axis " + std::to_string(axis) + " holds the parts of complex numbers");
  const bool inverse = context.attributes.get_int("inverse", 0) != 0;
  const bool onesided = context.attributes.get_int("onesided", 0) != 0;
  const int64_t given = x->dim(static_cast<size_t>(axis));
  int64_t length = inverse && onesided ? 2 * (given - 1) : given;
  if (context.has_input(1)) {
    TRY(const std::vector<int64_t> values, context.input_ints(1));
    if (values.size() != 1) return context.error("dft_length must be a scalar");
    length = values[0];
  }
  if (length < 1 || length > int64_t{1} << 40)
    return context.error("the length of the transform is " + std::to_string(length));
  const int64_t out_length = onesided && !inverse ? length / 2 + 1 : length;
  Dims dims = x->dims();
  dims[static_cast<size_t>(axis)] = out_length;
  dims.back() = inverse && onesided ? 1 : 2;
  TRY(Tensor in, as<double>(context, *x));
  TRY(Tensor y, context.allocate(DType::kFloat64, dims));
  if (y.size() != 0) {
    CHECK_OK(context.host.reserve(Fourier::memory(length)));
    Fourier transform(length, inverse);
    std::vector<std::complex<double>> line(static_cast<size_t>(length));
    const int64_t inner = product(x->dims(), static_cast<size_t>(axis) + 1, x->rank() - 1);
    const Lines from{inner, given, x->dims().back()}, to{inner, out_length, dims.back()};
    const int64_t lines = y.size() / out_length / dims.back();
    const double scale = inverse ? 1 / static_cast<double>(length) : 1;
    const auto number = [&](int64_t n, int64_t i) -> std::complex<double> {
      if (i >= given) return 0;
      const double* part = in.data<double>() + from.at(n, i);
      return {part[0], from.parts == 2 ? part[1] : 0};
    };
    for (int64_t n = 0; n < lines; ++n) {
      for (int64_t i = 0; i < length; ++i) {
        std::complex<double>& value = line[static_cast<size_t>(i)];
        // The inverse of a one-sided spectrum: its other half is the conjugate of the first.
        if (inverse && onesided) {
          value = i <= length / 2 ? number(n, i) : std::conj(number(n, length - i));
          if (i == 0 || 2 * i == length) value = value.real();
        } else {
          value = number(n, i);
        }
      }
      transform.run(line.data());
      for (int64_t i = 0; i < out_length; ++i) {
        double* part = y.data<double>() + to.at(n, i);
        part[0] = line[static_cast<size_t>(i)].real() * scale;
        if (to.parts == 2) part[1] = line[static_cast<size_t>(i)].imag() * scale;
      }
    }
  }
  return give(context, 0, x->dtype(), std::move(y));
}

}  // namespace

namespace {
Status infer_dft(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const size_t rank = x->size();
  if (rank < 2)
    return context.error(
        "the input needs a signal axis and a last axis of 1 or 2, but its shape is " +
        shape_to_string(*x));
  int64_t axis = 1;
  bool axis_known = true;
  if (context.opset < 20) {
    axis = context.attributes.get_int("axis", 1);
  } else {
    axis = -2;
    if (context.has_input(2)) {
      const auto given = scalar_of(context, 2);
      axis_known = given && given->is_value();
      if (axis_known) axis = given->value();
    }
  }
  SymShape out = *x;
  const bool onesided = context.attributes.get_int("onesided", 0) != 0;
  const bool inverse = context.attributes.get_int("inverse", 0) != 0;
  out.back() = onesided && inverse ? 1 : 2;
  if (!axis_known) {
    for (size_t i = 0; i + 1 < rank; ++i) out[i] = SymDim();
    set_shape(context, 0, std::move(out));
    return ok();
  }
  TRY(const size_t index, checked_axis(context, axis, rank));
  if (index + 1 == rank) return context.error("the axis is that of the complex parts");
  SymDim length = (*x)[index];
  if (context.has_input(1)) {
    const auto given = scalar_of(context, 1);
    length = given ? *given : SymDim();
  } else if (onesided && inverse) {
    length = ((*x)[index] - 1) * 2;
  }
  out[index] = onesided && !inverse ? floor_div(length, SymDim(2)) + 1 : length;
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

namespace {

/// The default was axis 1; now it is the last signal axis.
Status step_axis_to_input(StepContext& step) {
  step.node.set_input(2, step.scalar(step.get_int("axis", 1), "axis"));
  step.node.remove_attribute("axis");
  return ok();
}

}  // namespace

namespace {

Status step_axis_to_attribute(StepContext& step) {
  const std::optional<size_t> rank = step.rank(0);
  int64_t axis = -2;
  if (step.has_input(2)) {
    const auto given = step.constant_ints(2);
    if (!given || given->size() != 1) return step.cannot("the axis must be constant there");
    axis = (*given)[0];
  }
  if (axis < 0) {
    if (!rank) return step.cannot("the rank of the input is not known");
    axis += static_cast<int64_t>(*rank);
  }
  step.node.set_int("axis", axis);
  if (step.node.inputs().size() > 2) step.node.remove_input(2);
  return ok();
}

}  // namespace

namespace {

/// What part `r` of result `k` takes of part `p` of element `i`: of the numbers exp(+-2 pi i k / n)
/// alone, or where one half of the spectrum stands for the whole.
double coefficient(int64_t i, int64_t k, int64_t p, int64_t r, int64_t n, bool inverse,
                   bool onesided) {
  if (i >= n) return 0;
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  const double angle =
      (inverse ? 2 : -2) * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
  const double c = std::cos(angle), s = std::sin(angle);
  if (inverse && onesided) {
    if (2 * i > n) return 0;
    if (i == 0 || 2 * i == n) return p == 0 ? c * scale : 0;
    return (p == 0 ? 2 * c : -2 * s) * scale;
  }
  if (p == r) return c * scale;
  return (p == 0 ? s : -s) * scale;
}

/// A product with a table, where the length is known.
Status expand_dft(StepContext& step) {
  constexpr int64_t kMostLength = 1 << 13;
  const DType dtype = step.dtype(0);
  const auto rank = step.rank(0);
  if (!rank || *rank < 2 || !is_float(dtype))
    return step.cannot("the type and rank of the input are not known");
  const auto count = static_cast<int64_t>(*rank);
  int64_t axis = step.get_int("axis", 1);
  if (axis < 0) axis += count;
  if (axis < 0 || axis >= count - 1) return step.cannot("the axis holds no signal");
  const auto given = step.dim(0, static_cast<size_t>(axis)), parts = step.dim(0, *rank - 1);
  const bool inverse = step.get_int("inverse", 0) != 0, onesided = step.get_int("onesided", 0) != 0;
  if (!given || !parts || (*parts != 1 && *parts != 2))
    return step.cannot("the length of the axis is not known");
  int64_t length = inverse && onesided ? 2 * (*given - 1) : *given;
  if (step.has_input(1)) {
    const auto wanted = step.constant_ints(1);
    if (!wanted || wanted->size() != 1) return step.cannot("the length must be constant there");
    length = (*wanted)[0];
  }
  if (length < 1 || length > kMostLength || *given > 2 * kMostLength)
    return step.cannot("its table would be too large");
  const int64_t out_length = onesided && !inverse ? length / 2 + 1 : length;
  const int64_t out_parts = inverse && onesided ? 1 : 2;
  const int64_t dims[] = {*given * *parts, out_length * out_parts};
  TRY(Tensor table, Tensor::allocate(dtype, dims));
  int64_t at = 0;
  for (int64_t i = 0; i < *given; ++i)
    for (int64_t p = 0; p < *parts; ++p)
      for (int64_t k = 0; k < out_length; ++k)
        for (int64_t r = 0; r < out_parts; ++r)
          table.set_double(at++, coefficient(i, k, p, r, length, inverse, onesided));
  // The axis goes beside the parts, and both are one axis of the product.
  Node& node = step.node;
  std::vector<int64_t> perm, back, flat(*rank - 2, 0), wide(*rank - 2, 0);
  for (int64_t j = 0; j < count - 1; ++j)
    if (j != axis) perm.push_back(j);
  perm.insert(perm.end(), {axis, count - 1});
  for (int64_t j = 0; j < count; ++j)
    back.push_back(std::find(perm.begin(), perm.end(), j) - perm.begin());
  flat.push_back(dims[0]);
  wide.insert(wide.end(), {out_length, out_parts});
  Value* x = node.input(0);
  const bool moves = axis != count - 2;
  if (moves) {
    Node& moved = step.before("Transpose", {x}, "signal_last");
    moved.set_ints("perm", perm);
    x = moved.output(0);
  }
  x = step.before("Reshape", {x, step.ints(flat, "signal_shape")}, "signal").output(0);
  x = step.before("MatMul", {x, step.constant(table, "table")}, "spectrum").output(0);
  while (!node.inputs().empty()) node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  node.attributes().clear();
  node.set_op_type("Reshape");
  node.add_input(x);
  node.add_input(step.ints(wide, "spectrum_shape"));
  if (moves) step.after("Transpose").set_ints("perm", back);
  return ok();
}

}  // namespace

OPERATOR(DFT) = {
    .name = "DFT",
    .doc = "discrete Fourier transform along one axis, or its inverse",
    .versions = {17, 20},
    .inputs =
        {
            {"input", "T1"},
            {"dft_length", "T2", kOptional},
            {"axis", "tensor(int64)", kOptional, {.since = 20}},
        },
    .outputs = {{"output", "T1"}},
    .attributes =
        {
            {"axis", 1, {.until = 19}},
            {"inverse", 0},
            {"onesided", 0},
        },
    .types =
        {
            {"T1", {{17, kFloats | kBf16}}},
            {"T2", {{17, kIndices}}},
        },
    .infer = infer_dft,
    .reference = run_dft,
    .up = {{17, 20, step_axis_to_input}},
    .down = {{20, 17, step_axis_to_attribute}, {17, 0, expand_dft}},
};

}  // namespace tombolo::ops
