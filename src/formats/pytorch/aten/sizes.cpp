// Symbolic sizes: kept as expressions, and computed in the graph only where ONNX needs the number.

#include <cctype>
#include <charconv>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

// Found by argument only: members of the same names hide them elsewhere.
SymDim quotient(const SymDim& a, const SymDim& b) { return floor_div(a, b); }
SymDim remainder(const SymDim& a, const SymDim& b) { return modulo(a, b); }

}  // namespace

int64_t AtenContext::rank(const Value* value) {
  if (b.has_shape(value)) return b.rank(value);
  refuse("the rank of a tensor is not known",
         "reshape it before the branch or loop that leaves it open");
  return 0;
}

int64_t AtenContext::axis(int64_t axis, int64_t rank) {
  const int64_t room = std::max<int64_t>(rank, 1);
  if (axis < 0) axis += room;
  if (axis >= 0 && axis < room) return axis;
  refuse("the axis is out of range");
  return 0;
}

std::optional<int64_t> AtenContext::known(Value* x, int64_t axis) {
  const auto size = b.dim(x, axis).constant();
  return size && *size >= 0 && *size <= kMaxNumber ? size : std::nullopt;
}

int64_t AtenContext::count(int64_t things, int64_t most) {
  if (things >= 0 && things <= most) return things;
  refuse(std::to_string(things) + " parts where at most " + std::to_string(most) +
         " are written out");
  return 0;
}

SymInt AtenContext::size(Value* x, int64_t at) {
  const int64_t r = rank(x), position = axis(at, r);
  if (r == 0) return SymInt(1);
  const SymDim dim = b.dim(x, position);
  if (dim.is_value()) return SymInt(dim);
  if (dim.is_expression() && expression(dim.to_string())) return SymInt(dim);
  Value* length = op("Shape", {x}, {{"start", position}, {"end", position + 1}});
  Value* number = squeeze(length, {0});
  if (dim.is_expression()) {
    const std::string text = dim.to_string();
    if (SymDim::symbol(text).equals(dim)) bind_symbol(text, x, position);
  }
  return SymInt(dim, number);
}

SymInts AtenContext::sizes(Value* x) {
  SymInts result;
  for (int64_t i = 0; i < rank(x); ++i) result.push_back(size(x, i));
  return result;
}

SymInt AtenContext::numel(Value* x) {
  SymInt count(1);
  for (const SymInt& one : sizes(x)) count = mul(count, one);
  return count;
}

void AtenContext::bind_symbol(std::string_view name, Value* x, int64_t axis) {
  symbols_.try_emplace(std::string(name), Symbol{x, axis});
}
void AtenContext::bind_symbol(std::string_view name, Value* scalar) {
  symbols_.try_emplace(std::string(name), Symbol{scalar, -1});
}

SymInt AtenContext::arithmetic(const char* kind, const SymInt& a, const SymInt& y) {
  const std::string_view what = kind;
  SymDim dim;
  if (!a.dim.is_unknown() && !y.dim.is_unknown()) {
    if (what == "Add") dim = a.dim + y.dim;
    if (what == "Sub") dim = a.dim - y.dim;
    if (what == "Mul") dim = a.dim * y.dim;
    if (what == "FloorDiv") dim = quotient(a.dim, y.dim);
    if (what == "Mod") dim = remainder(a.dim, y.dim);
    if (what == "Min") dim = min(a.dim, y.dim);
    if (what == "Max") dim = max(a.dim, y.dim);
  }
  if (dim.is_value() || (dim.is_expression() && !a.value && !y.value)) return SymInt(dim);
  Value *left = int_value(a), *right = int_value(y), *value = nullptr;
  if (what == "FloorDiv") {
    // Div truncates: the rest, which has the divisor's sign, is taken off where the dividend may be
    // negative.
    const auto low = a.dim.is_unknown() ? std::nullopt : a.dim.lower_bound();
    const auto by = y.dim.is_unknown() ? std::nullopt : y.dim.lower_bound();
    if (!low || *low < 0 || !by || *by < 0) left = op("Sub", {left, op("Mod", {left, right})});
    value = op("Div", {left, right});
  } else {
    value = op(Text(kind), {left, right});
  }
  return SymInt(dim, value);
}

Value* AtenContext::int_value(const SymInt& number) {
  if (number.is_number()) return b.int_scalar(number.dim.value());
  if (number.value) return number.value;
  return squeeze(int_vector(number), {0});
}

Value* AtenContext::int_vector(const SymInt& number) {
  if (number.is_number()) return b.ints({number.dim.value()});
  if (number.value) return unsqueeze(number.value, {0});
  Value* value = expression(number.dim.to_string());
  if (value) return value;
  refuse("the size " + number.dim.to_string() + " is not known from the inputs");
  return b.ints({1});
}

Value* AtenContext::shape_value(std::span<const SymInt> sizes) {
  Values parts;
  Ints run;
  const auto flush = [&] {
    if (!run.empty()) parts.push_back(b.ints(run));
    run.clear();
  };
  for (const SymInt& one : sizes) {
    if (one.is_number()) {
      run.push_back(one.dim.value());
    } else {
      flush();
      parts.push_back(int_vector(one));
    }
  }
  if (parts.empty()) return b.ints(run);
  flush();
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

namespace {

/// The grammar of SymDim's text.
class ExpressionReader {
 public:
  ExpressionReader(AtenContext& c, std::string_view text, Value* (*symbol)(void*, std::string_view),
                   void* owner)
      : c_(c), text_(text), symbol_(symbol), owner_(owner) {}

  Value* read() {
    Value* value = sum();
    skip();
    return at_ == text_.size() ? value : nullptr;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Value* node(const char* type, Value* a, Value* b) {
    return a && b ? c_.op(type, {a, b}) : nullptr;
  }
  Value* sum() {
    Value* left = product();
    for (;;) {
      if (take("+")) {
        left = node("Add", left, product());
      } else if (take("-")) {
        left = node("Sub", left, product());
      } else {
        return left;
      }
    }
  }
  Value* product() {
    const size_t begin = at_;
    Value* left = unary();
    for (;;) {
      if (take("//")) {
        const bool signs = text_.substr(begin, at_ - begin).find('-') != std::string_view::npos;
        Value* right = unary();
        if (left && right && signs) left = node("Sub", left, node("Mod", left, right));
        left = node("Div", left, right);
      } else if (take("*")) {
        left = node("Mul", left, unary());
      } else if (take("%")) {
        left = node("Mod", left, unary());
      } else {
        return left;
      }
    }
  }
  Value* unary() {
    if (take("-")) {
      Value* operand = unary();
      return operand ? c_.op("Neg", {operand}) : nullptr;
    }
    if (take("(")) {
      if (++depth_ > 64) return nullptr;
      Value* inner = sum();
      --depth_;
      return take(")") ? inner : nullptr;
    }
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word.empty()) return nullptr;
    if (std::isdigit(static_cast<unsigned char>(word.front()))) {
      int64_t number = 0;
      std::from_chars(word.data(), word.data() + word.size(), number);
      return c_.b.ints({number});
    }
    if ((word == "min" || word == "max") && take("(")) {
      if (++depth_ > 64) return nullptr;
      Value* left = sum();
      while (take(",")) left = node(word == "min" ? "Min" : "Max", left, sum());
      --depth_;
      return take(")") ? left : nullptr;
    }
    return symbol_(owner_, word);
  }

  AtenContext& c_;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Value* (*symbol_)(void*, std::string_view);
  void* owner_;
};

}  // namespace

Value* AtenContext::expression(std::string_view text) {
  const auto found = expressions_.find(text);
  if (found != expressions_.end()) return found->second.value;
  Value* value = nullptr;
  const auto symbol = symbols_.find(text);
  if (symbol != symbols_.end()) {
    const auto& [source, axis] = symbol->second;
    value = axis < 0 ? unsqueeze(source, {0})
                     : op("Shape", {source}, {{"start", axis}, {"end", axis + 1}});
  } else if (text.find_first_of(" +-*/%(") == text.npos) {
    return nullptr;  // a symbol that is not bound
  } else {
    ExpressionReader reader(
        *this, text,
        [](void* owner, std::string_view name) {
          return static_cast<AtenContext*>(owner)->expression(name);
        },
        this);
    value = reader.read();
  }
  if (value) expressions_[std::string(text)] = {value, b.depth()};
  return value;
}

// ---- what many handlers share ----

Value* AtenContext::squeeze(Value* x, std::vector<int64_t> axes) {
  return axes.empty() ? x : b.squeeze(x, std::move(axes));
}

Value* AtenContext::unsqueeze(Value* x, std::vector<int64_t> axes) {
  return axes.empty() ? x : b.unsqueeze(x, std::move(axes));
}

Value* AtenContext::swap(Value* x, int64_t first, int64_t second) {
  const int64_t r = rank(x);
  if (r == 0) return x;
  Ints perm(static_cast<size_t>(r));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[static_cast<size_t>(axis(first, r))], perm[static_cast<size_t>(axis(second, r))]);
  return transpose(x, std::move(perm));
}

Value* AtenContext::concat(std::span<Value* const> parts, int64_t axis) {
  if (parts.size() == 1) return parts.front();
  return op("Concat", parts, {{"axis", axis}});
}

Value* AtenContext::reshape(Value* x, const SymInts& wanted) {
  SymInts target = wanted;
  const bool shaped = b.has_shape(x);
  // What -1 stands for.
  size_t open = SIZE_MAX;  // none
  bool zero = false;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].is(-1)) open = i;
    if (target[i].is_number() && target[i].dim.value() < -1) refuse("a negative size");
    zero = zero || target[i].is(0);
  }
  if (open != SIZE_MAX && shaped) {
    SymDim total(1), rest(1);
    for (const SymDim& dim : b.shape(x)) total = total * dim;
    for (size_t i = 0; i < target.size(); ++i)
      if (i != open) rest = rest * target[i].dim;
    SymDim size;
    if (rest.is_value() && rest.value() == 0) {
      size = SymDim(0);
    } else {
      size = quotient(total, rest);
    }
    if (size.is_value()) {
      target[open] = SymInt(size);
      zero = zero || size.value() == 0;
      open = SIZE_MAX;
    } else {
      target[open] = SymInt(size);
    }
  }
  Shape shape;
  for (const SymInt& one : target) shape.push_back(one.dim);
  if (shaped && b.shape(x).size() == shape.size()) {
    bool same = true;
    for (size_t i = 0; i < shape.size(); ++i) same = same && shape[i].equals(b.shape(x)[i]);
    if (same) return x;
  }
  // Inserting or removing ones is said by Unsqueeze and Squeeze only where sizes are symbolic and
  // would have to be computed.
  std::vector<std::optional<int64_t>> numbers(target.size());
  size_t unsaid = 0, last = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].is_number() && open != i) {
      numbers[i] = target[i].dim.value();
    } else if (!zero && shaped && i < b.shape(x).size() && target[i].dim.equals(b.shape(x)[i])) {
      numbers[i] = 0;  // copied
    } else {
      ++unsaid;
      last = i;
    }
  }
  Value* result = nullptr;
  if (unsaid == 1 && !zero) {
    numbers[last] = -1;
    unsaid = 0;
  }
  if (shaped && numbers.size() == 2 && numbers[0] == 0 && numbers[1] == -1 && !zero) {
    // Where the first axis may be empty (a detector that finds nothing), -1 would be any number.
    result = op("Flatten", {x}, {{"axis", int64_t{1}}});
  } else if (unsaid == 0) {
    Ints plain;
    for (const auto& number : numbers) plain.push_back(number.value_or(0));
    result = zero ? op("Reshape", {x, b.ints(plain)}, {{"allowzero", int64_t{1}}})
                  : op("Reshape", {x, b.ints(plain)});
  } else {
    // The rest is computed; one of them may be left to -1, unless another one depends on data:
    // where that is 0, -1 would be any number.
    bool may_be_empty = false;
    for (size_t i = 0; i < target.size(); ++i)
      may_be_empty = may_be_empty || (i != last && target[i].dim.is_unknown());
    Values parts;
    for (size_t i = 0; i < target.size(); ++i) {
      if (open == i) {
        parts.push_back(b.ints({-1}));
      } else if (numbers[i]) {
        parts.push_back(b.ints({*numbers[i]}));
      } else if (open == SIZE_MAX && i == last && !zero && !may_be_empty) {
        parts.push_back(b.ints({-1}));
      } else {
        parts.push_back(int_vector(target[i]));
      }
    }
    result = zero ? op("Reshape", {x, concat(parts, 0)}, {{"allowzero", int64_t{1}}})
                  : op("Reshape", {x, concat(parts, 0)});
  }
  b.set_type(result, b.dtype(x), shape);
  return result;
}

Value* AtenContext::expand(Value* x, const SymInts& sizes) {
  const int64_t r = rank(x), wanted = static_cast<int64_t>(sizes.size());
  if (wanted < r) {
    refuse("a tensor is expanded to fewer axes");
    return x;
  }
  Shape shape;
  SymInts target;
  bool same = wanted == r;
  for (int64_t i = 0; i < wanted; ++i) {
    const SymInt& size = sizes[static_cast<size_t>(i)];
    const int64_t from = i - (wanted - r);
    const SymDim old = from >= 0 ? b.dim(x, from) : SymDim(1);
    if (size.is_number() && size.dim.value() < -1) {
      refuse("a negative size");
      return x;
    }
    if (size.is(-1) || size.dim.equals(old)) {
      shape.push_back(old);
      target.emplace_back(1);
    } else {
      shape.push_back(size.dim);
      target.push_back(size);
      same = false;
    }
  }
  if (same) return x;
  Value* result = op("Expand", {x, shape_value(target)});
  b.set_type(result, b.dtype(x), shape);
  return result;
}

Value* AtenContext::slice(Value* x, int64_t at, const SymInt& start, const SymInt& end,
                          int64_t step) {
  const int64_t position = axis(at, rank(x));
  const SymDim dim = b.dim(x, position);
  if (step == 1 && start.is(0) &&
      (end.is(INT64_MAX) || end.dim.equals(dim) ||
       (end.is_number() && dim.is_value() && end.dim.value() >= dim.value())))
    return x;
  Value* result =
      op("Slice", {x, int_vector(start), int_vector(end), b.ints({position}), b.ints({step})});
  if (b.has_shape(x) && (!start.is_number() || !end.is_number() || !dim.is_value()) && step == 1) {
    // Inference cannot know that the bounds lie inside; a program that runs says so.
    Shape shape = b.shape(x);
    const SymDim low = start.is_number() && start.dim.value() < 0 ? dim + start.dim : start.dim;
    SymDim high = end.is_number() && end.dim.value() < 0 ? dim + end.dim : end.dim;
    if (end.is_number() && end.dim.value() > INT32_MAX) high = dim;
    const SymDim length = high - low;
    const SymDim& inferred = b.dim(result, position);
    if (!inferred.is_value() && !length.is_unknown() && !end.is_number()) {
      shape[static_cast<size_t>(position)] = length;
      b.set_type(result, b.dtype(x), shape);
    }
  }
  return result;
}

Value* AtenContext::select(Value* x, int64_t at, const SymInt& index) {
  return op("Gather", {x, int_value(index)}, {{"axis", axis(at, rank(x))}});
}

Value* AtenContext::full(const SymInts& sizes, Value* scalar_value) {
  return expand(scalar_value, sizes);
}

Value* AtenContext::full(const SymInts& sizes, double value, DType type) {
  return expand(scalar(value, type), sizes);
}

Value* AtenContext::range(const SymInt& count) {
  if (count.is_number() && count.dim.value() < 0) {
    refuse("a negative number of elements");
    return b.ints({});
  }
  Value* result = op("Range", {b.int_scalar(0), int_value(count), b.int_scalar(1)});
  b.set_type(result, DType::kInt64, {count.dim});
  return result;
}

Value* AtenContext::reduce(Text type, Value* x, std::vector<int64_t> axes, bool keepdims) {
  if (rank(x) == 0) return x;
  return axes.empty() ? op(type, {x}, {{"keepdims", keepdims}})
                      : op(type, {x, b.ints(axes)}, {{"keepdims", keepdims}});
}

}  // namespace tombolo::pytorch
