#include "ops/infer_helpers.h"

#include <algorithm>

namespace tombolo::ops {

void set_shape(InferContext& context, size_t output, SymShape shape) {
  context.set_output(output, InferType::tensor(DType::kUndefined, std::move(shape)));
}

void set_rank(InferContext& context, size_t output, size_t rank) {
  set_shape(context, output, SymShape(rank));
}

std::string shape_to_string(const SymShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ',';
    const std::string dim = shape[i].to_string();
    text += dim.find('\x01') == std::string::npos ? dim : "?";
  }
  return text + "]";
}

Result<size_t> checked_axis(const InferContext& context, int64_t axis, size_t rank,
                            const char* what) {
  const auto bound = static_cast<int64_t>(rank);
  if (axis < -bound || axis >= bound)
    return context.error(std::string(what) + " " + std::to_string(axis) +
                         " is out of range for rank " + std::to_string(rank));
  return static_cast<size_t>(axis < 0 ? axis + bound : axis);
}

Result<std::vector<size_t>> checked_axes(const InferContext& context, std::span<const int64_t> axes,
                                         size_t rank) {
  std::vector<size_t> out;
  std::vector<bool> seen(rank);
  for (const int64_t axis : axes) {
    TRY(const size_t index, checked_axis(context, axis, rank));
    if (seen[index])
      return context.error("axis " + std::to_string(axis) + " is given twice in axes");
    seen[index] = true;
    out.push_back(index);
  }
  return out;
}

std::optional<std::vector<int64_t>> ints_from(const InferContext& context, Text name,
                                              size_t index) {
  if (context.has_input(index)) {
    // An input that is there may still be empty.
    if (const SymShape* shape = context.shape(index))
      if (shape->size() == 1 && (*shape)[0].is_value() && (*shape)[0].value() == 0)
        return std::vector<int64_t>();
    return context.constant_ints(index);
  }
  const auto list = context.attributes.get_ints(name);
  return std::vector<int64_t>(list.begin(), list.end());
}

std::optional<SymDim> scalar_of(const InferContext& context, size_t index) {
  const SymShape* elements = context.ints(index);
  if (elements == nullptr || elements->size() != 1 || (*elements)[0].is_unknown())
    return std::nullopt;
  return (*elements)[0];
}

SymDim product_of(std::span<const SymDim> dims) {
  SymDim product = 1;
  for (const SymDim& dim : dims) product = product * dim;
  return product;
}

Result<SymDim> unify_dims(const InferContext& context, const SymDim& a, const SymDim& b,
                          const char* what) {
  if (a.is_value() && b.is_value() && a.value() != b.value())
    return context.error(std::string(what) + ": " + a.to_string() + " against " + b.to_string());
  return b.size() < a.size() ? b : a;
}

Status expect_rank(const InferContext& context, size_t input, size_t rank) {
  const SymShape* shape = context.shape(input);
  if (shape != nullptr && shape->size() != rank)
    return context.error("input " + std::to_string(input) + " must have rank " +
                         std::to_string(rank) + ", but its shape is " + shape_to_string(*shape));
  return ok();
}

// ---- elements ----

std::optional<SymShape> elements_or_unknown(const InferContext& context, size_t input) {
  if (const SymShape* known = context.ints(input)) return *known;
  const SymShape* shape = context.shape(input);
  if (shape == nullptr || shape->size() > 1) return std::nullopt;
  if (shape->empty()) return SymShape(1);
  const SymDim& size = (*shape)[0];
  if (!size.is_value() || size.value() < 0 || size.value() > kMaxElements) return std::nullopt;
  return SymShape(static_cast<size_t>(size.value()));
}

void map_elements(InferContext& context, ElementUnary function) {
  const SymShape* elements = context.ints(0);
  if (elements == nullptr) return;
  SymShape out;
  for (const SymDim& element : *elements) out.push_back(function(element));
  context.set_value(0, std::move(out));
}

namespace {
bool combine(SymShape& into, const SymShape& other, ElementBinary function) {
  if (into.size() == 1 && other.size() != 1) into.resize(other.size(), SymDim(into[0]));
  if (other.size() != into.size() && other.size() != 1) return false;
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = function(into[i], other[other.size() == 1 ? 0 : i]);
  return true;
}
}  // namespace

void map_elements(InferContext& context, ElementBinary function) {
  if (context.input_count() == 2) fold_elements(context, function);
}

void fold_elements(InferContext& context, ElementBinary function) {
  if (context.input_count() == 0 || context.ints(0) == nullptr) return;
  // More than rank 1 cannot be: every input has rank 0 or 1.
  SymShape out = *context.ints(0);
  for (size_t i = 1; i < context.input_count(); ++i) {
    const SymShape* other = context.ints(i);
    if (other == nullptr || !combine(out, *other, function)) return;
  }
  context.set_value(0, std::move(out));
}

SymDim element_equal(const SymDim& a, const SymDim& b) {
  if (a.equals(b)) return 1;
  return a.differs(b) ? SymDim(0) : SymDim();
}

SymDim element_less(const SymDim& a, const SymDim& b) {
  const SymDim difference = b - a;
  if (const auto low = difference.lower_bound(); low && *low > 0) return 1;
  if (const auto high = difference.upper_bound(); high && *high <= 0) return 0;
  return {};
}

bool non_negative(const SymDim& dim) {
  const auto low = dim.lower_bound();
  return low && *low >= 0;
}

// ---- shapes ----

Result<SymShape> reshaped(const InferContext& context, const SymShape* data, const SymShape& target,
                          bool allow_zero) {
  SymShape out;
  std::optional<size_t> rest;
  bool has_zero = false;
  for (size_t i = 0; i < target.size(); ++i) {
    const SymDim& dim = target[i];
    if (dim.is_value() && dim.value() == 0 && !allow_zero) {
      if (data != nullptr && i >= data->size())
        return context.error("the target shape " + shape_to_string(target) + " copies axis " +
                             std::to_string(i) + " of data of rank " +
                             std::to_string(data->size()));
      out.push_back(data != nullptr ? (*data)[i] : SymDim());
    } else if (dim.is_value() && dim.value() == -1) {
      if (rest)
        return context.error("the target shape " + shape_to_string(target) + " holds -1 twice");
      rest = i;
      out.push_back(SymDim(1));  // replaced below
    } else if (dim.is_value() && dim.value() < -1) {
      return context.error("the target shape " + shape_to_string(target) + " holds " +
                           std::to_string(dim.value()));
    } else {
      // An element that may be 0 or -1 says nothing of the output.
      const bool may_be_special = !dim.is_value() && !non_negative(dim);
      has_zero |= dim.is_value() && dim.value() == 0;
      out.push_back(may_be_special ? SymDim() : dim);
    }
  }
  if (rest && has_zero)
    return context.error("the target shape " + shape_to_string(target) +
                         " holds both 0 and -1, with allowzero");
  if (data == nullptr) {
    if (rest) out[*rest] = SymDim();
    return out;
  }
  // Equal factors on both sides cancel, unknown ones too where a 0 copied them.
  SymDim count = 1, known = 1;
  std::vector<bool> used(data->size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (rest == i) continue;
    const bool copied =
        target[i].is_value() && target[i].value() == 0 && !allow_zero && i < data->size();
    if (copied && !((*data)[i].is_value() && (*data)[i].value() == 0)) {
      used[i] = true;
      continue;
    }
    known = known * out[i];
  }
  for (size_t i = 0; i < data->size(); ++i)
    if (!used[i]) count = count * (*data)[i];
  if (rest) {
    if (count.is_value() && known.is_value() && known.value() == 0 && count.value() != 0)
      return context.error("data of shape " + shape_to_string(*data) + " cannot take the shape " +
                           shape_to_string(target));
    if (count.is_value() && known.is_value() && known.value() != 0 &&
        count.value() % known.value() != 0)
      return context.error("data of shape " + shape_to_string(*data) + " has " + count.to_string() +
                           " elements to share out, which " + known.to_string() +
                           " does not divide: the shape " + shape_to_string(target) +
                           " is impossible");
    if (known.is_value() && known.value() == 0)
      out[*rest] = SymDim();
    else
      out[*rest] = floor_div(count, known);
  } else {
    if (count.is_value() && known.is_value() && count.value() != known.value())
      return context.error("data of shape " + shape_to_string(*data) + " cannot take the shape " +
                           shape_to_string(target) + ": " + count.to_string() +
                           " elements against " + known.to_string());
    // One unknown dimension follows from the count.
    size_t unknown = 0, where = 0;
    SymDim others = 1;
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i].is_unknown()) {
        ++unknown;
        where = i;
      } else {
        others = others * out[i];
      }
    }
    const SymDim total = product_of(*data);
    if (unknown == 1 && total.is_value() && others.is_value() && others.value() > 0 &&
        total.value() % others.value() == 0)
      out[where] = total.value() / others.value();
  }
  return out;
}

SymDim slice_length(const SymDim& size, const SymDim& start, const SymDim& end, int64_t step) {
  if (step == 0 || size.is_unknown()) return {};
  // The specification's clamping, as slice_range does it. A negative number counts from the end; a
  // symbol is never negative here unless its bounds allow it, and then nothing is known.
  const auto absolute = [&size](const SymDim& index) -> SymDim {
    if (index.is_value()) return index.value() < 0 ? index + size : index;
    if (non_negative(index)) return index;
    if (min(size, SymDim(0) - index).equals(size)) return 0;  // counts from the end, all of it
    const auto high = index.upper_bound();
    return high && *high < 0 ? index + size : SymDim();
  };
  constexpr int64_t kFar = INT32_MAX;  // exporters write INT32_MAX and INT64_MAX for "to the end"
  SymDim first, last;
  if (step > 0) {
    const bool to_end = end.is_value() && end.value() >= kFar;
    if (start.is_value() && start.value() >= kFar) return 0;
    if (to_end && step == 1 && start.is_value() && start.value() < 0 && start.value() > -kFar)
      return min(SymDim(-start.value()), size);
    // A start beyond the size gives a negative length, hence 0: it needs no clamping there.
    first =
        start.is_value() && start.value() <= -kFar ? SymDim(0) : max(absolute(start), SymDim(0));
    if (to_end)
      last = size;
    else if (end.is_value() && end.value() <= -kFar)
      last = 0;
    else
      last = min(max(absolute(end), SymDim(0)), size);
    return max(ceil_div(last - first, SymDim(step)), SymDim(0));
  }
  if (step == INT64_MIN) return {};
  // Unlike Python's, a walk backwards from before the first element begins at it.
  first = start.is_value() && start.value() >= kFar
              ? size - 1
              : min(max(absolute(start), SymDim(0)), size - 1);
  if (end.is_value() && end.value() <= -kFar)
    last = -1;
  else
    last = max(absolute(end), SymDim(-1));
  return max(ceil_div(first - last, SymDim(-step)), SymDim(0));
}

}  // namespace tombolo::ops
