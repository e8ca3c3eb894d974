#include "ops/infer_context.h"

namespace tombolo {

const InferType& InferContext::input(size_t index) const {
  static const InferType kNothing;
  return has_input(index) ? *inputs[index] : kNothing;
}

const SymShape* InferContext::shape(size_t index) const {
  if (!has_input(index)) return nullptr;
  const InferType& type = *inputs[index];
  const bool dense = type.kind == Type::Kind::kTensor || type.kind == Type::Kind::kSparseTensor;
  return dense && type.shape ? &*type.shape : nullptr;
}

std::optional<std::vector<int64_t>> InferContext::constant_ints(size_t index) const {
  const SymShape* elements = ints(index);
  if (elements == nullptr) return std::nullopt;
  std::vector<int64_t> values;
  values.reserve(elements->size());
  for (const SymDim& element : *elements) {
    if (!element.is_value()) return std::nullopt;
    values.push_back(element.value());
  }
  return values;
}

void InferContext::same_as_input(size_t index, size_t from) {
  if (has_input(from)) set_output(index, *inputs[from]);
}

namespace {
std::string shape_text(const SymShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ',';
    text += shape[i].to_string();
  }
  return text + "]";
}

/// b = min(a, number): where they broadcast at all, b is a, or 1 where it is not (a slice of
/// learned positions added to a sequence).
bool is_clipped(const SymDim& b, const SymDim& a) {
  const auto most = b.upper_bound();
  return most && *most >= 1 && b.equals(min(SymDim(*most), a));
}

/// One dimension of a broadcast; false when two numbers disagree.
bool broadcast_dim(const SymDim& a, const SymDim& b, SymDim& out) {
  if (a.is_value() && a.value() == 1) {
    out = b;
  } else if (b.is_value() && b.value() == 1) {
    out = a;
  } else if (a.is_value() && b.is_value()) {
    if (a.value() != b.value()) return false;
    out = a;
  } else if (a.is_value()) {  // the other is 1 or the same number
    out = a;
  } else if (b.is_value()) {
    out = b;
  } else if (a.equals(b) || is_clipped(b, a)) {
    out = a;
  } else if (is_clipped(a, b)) {
    out = b;
  } else {
    out = SymDim();
  }
  return true;
}
}  // namespace

Result<SymShape> broadcast(const SymShape& a, const SymShape& b) {
  const SymShape& longer = a.size() >= b.size() ? a : b;
  const SymShape& shorter = a.size() >= b.size() ? b : a;
  SymShape out = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    if (!broadcast_dim(longer[offset + i], shorter[i], out[offset + i]))
      return parse_error("shapes " + shape_text(a) + " and " + shape_text(b) +
                         " do not broadcast: " + longer[offset + i].to_string() + " against " +
                         shorter[i].to_string());
  return out;
}

}  // namespace tombolo
