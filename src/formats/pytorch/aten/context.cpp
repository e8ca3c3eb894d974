#include "formats/pytorch/aten/context.h"

#include "formats/pytorch/aten/complex.h"

namespace tombolo::pytorch {

namespace {

constexpr size_t kMaxCalls = 64;  ///< decompositions within each other

}  // namespace

std::string_view kind_name(const Arg& arg) {
  switch (arg.kind) {
    case Arg::Kind::kNone:
      return "None";
    case Arg::Kind::kTensor:
      return "a tensor";
    case Arg::Kind::kInt:
      return "an integer";
    case Arg::Kind::kFloat:
      return "a float";
    case Arg::Kind::kBool:
      return "a bool";
    case Arg::Kind::kComplex:
      return "a complex number";
    case Arg::Kind::kString:
      return "a string";
    case Arg::Kind::kDType:
      return "a dtype";
    case Arg::Kind::kList:
      return "a list";
    case Arg::Kind::kGraph:
      return "a graph";
    case Arg::Kind::kOther:
      break;
  }
  return "an object";
}

// ---- calls ----

bool AtenContext::knows(std::string_view overload) {
  if (find_operator_row(overload)) return true;
  const std::string functional = functional_name(overload);
  return !functional.empty() && find_operator_row(functional);
}

Status AtenContext::bind(Frame& frame, std::vector<Arg> args,
                         std::vector<std::pair<std::string, Arg>> named) {
  const Schema& schema = frame.op->schema;
  if (args.size() > schema.args.size())
    return parse_error("more arguments than the operator's signature has");
  std::vector<bool> filled(schema.args.size());
  frame.args = std::move(args);
  for (size_t i = 0; i < frame.args.size(); ++i) filled[i] = true;
  frame.args.resize(schema.args.size());
  for (auto& [name, value] : named) {
    const int index = schema.find(name);
    if (index < 0) {
      // Later versions of PyTorch add arguments; at None they say nothing.
      if (value.is_none() || value.kind == Arg::Kind::kOther) continue;
      return unsupported("the argument \"" + name + "\" is not known");
    }
    frame.args[static_cast<size_t>(index)] = std::move(value);
    filled[static_cast<size_t>(index)] = true;
  }
  for (size_t i = 0; i < filled.size(); ++i) {
    if (filled[i]) continue;
    if (schema.args[i].required)
      return parse_error("the argument \"" + std::string(schema.args[i].name) + "\" is missing");
    frame.args[i] = schema.args[i].fallback;
  }
  return ok();
}

Result<std::vector<Arg>> AtenContext::run(const Operator& op, std::vector<Arg> args,
                                          std::vector<std::pair<std::string, Arg>> named) {
  if (frames_.size() >= kMaxCalls) return parse_error("operators nested too deeply");
  frames_.emplace_back();
  frame().op = &op;
  Status bound = bind(frame(), std::move(args), std::move(named));
  if (bound.ok()) {
    if (auto complex = lower_complex(*this, op, frame().args)) {
      frame().results = *std::move(complex);
    } else {
      op.row->handler(*this);
      if (!failed() && !read_beyond_end()) mark_views(frame());
    }
  }
  check_lists();
  std::vector<Arg> results = std::move(frame().results);
  frames_.pop_back();
  if (!bound.ok()) return bound.error();
  return results;
}

Result<std::vector<Arg>> AtenContext::call(std::string_view overload, std::vector<Arg> args,
                                           std::vector<std::pair<std::string, Arg>> named) {
  if (const Operator* op = find_operator_row(overload)) {
    TRY(std::vector<Arg> results, run(*op, std::move(args), std::move(named)));
    if (frames_.empty()) CHECK_OK(take_status());
    return results;
  }
  const std::string functional = functional_name(overload);
  const Operator* op = functional.empty() ? nullptr : find_operator_row(functional);
  if (op == nullptr) return unsupported("there is no handler for " + std::string(overload));
  Ref self = args.empty() ? nullptr : args.front().tensor;
  for (auto& [name, value] : named) {
    // In-place operators call it self, whatever the functional ones say (dropout: input).
    if (op->schema.args.empty() || (name != "self" && name != op->schema.args.front().name))
      continue;
    name = std::string(op->schema.args.front().name);
    self = value.tensor;
  }
  if (!self) return parse_error("an in-place operator without a tensor to write to");
  TRY(std::vector<Arg> results, run(*op, std::move(args), std::move(named)));
  if (!failed()) {
    if (results.empty() || !results.front().is_tensor())
      return parse_error("an in-place operator without a result");
    if (op->row->kind == RowKind::kView && results.front().tensor->view) {
      // transpose_ and its like: the tensor itself is seen otherwise from now on.
      // Axes of one element leave the order of its elements as it was.
      const bool keeps_order =
          op->schema.name.starts_with("squeeze") || op->schema.name.starts_with("unsqueeze");
      Value *shown = read(results.front().tensor), *before = read(self);
      bool same =
          keeps_order && has_rank(shown) && has_rank(before) && b.rank(shown) == b.rank(before);
      for (int64_t i = 0; same && i < b.rank(shown); ++i)
        same = b.dim(shown, i).equals(b.dim(before, i));
      // In a branch a tensor that nobody shares can be written anew; how it lies in memory is open
      // from then on, behind the branch too.
      const bool anew = journal && is_alone(*self, results.front().tensor->view.get());
      if (same || anew) {
        if (!same) {
          if (!keeps_order) self->layout = CellLayout::kUnknown;
          write(self, shown);
        }
        results.assign(1, Arg(self));
        if (frames_.empty()) CHECK_OK(take_status());
        return results;
      }
      if (journal)
        return unsupported(
                   "a new shape in place of a tensor that others share, inside of a branch or loop "
                   "that depends on data")
            .with_help("assign the result of the functional form to a new variable");
      const Ref old = std::make_shared<Cell>(*self);
      // Views of it show the old shape on.
      for (const auto& one : self->views)
        if (const auto view = one.lock()) view->base = old;
      for (const uint64_t memory : old->memories) holders_[memory].push_back(old);
      Cell changed = *results.front().tensor;
      changed.view->base = old;
      // A view does not depend on itself (x.expand_as_(x)).
      for (Arg& arg : changed.view->args) {
        if (arg.tensor == self) arg.tensor = old;
        for (Arg& part : arg.list)
          if (part.tensor == self) part.tensor = old;
      }
      changed.views.clear();
      *self = std::move(changed);
      self->seen = root(old)->version;
      results.assign(1, Arg(self));
      if (frames_.empty()) CHECK_OK(take_status());
      return results;
    }
    Value* value = read(results.front().tensor);
    const DType made = results.front().tensor->dtype;
    if (tombolo::is_complex(made) != tombolo::is_complex(self->dtype)) {
      if (tombolo::is_complex(made)) return unsupported("a complex value written to a real tensor");
      value = to_complex(value, self->dtype);
    }
    value = cast(value, real_of(self->dtype));
    Value* old = read(self);
    if (has_rank(old) && has_rank(value) && b.rank(old) != b.rank(value))
      value = expand(value, sizes(old));
    write(self, value);
    results.assign(1, Arg(self));
  }
  if (frames_.empty()) CHECK_OK(take_status());
  return results;
}

Args AtenContext::lower_all(std::string_view overload, std::vector<Arg> args,
                            std::vector<std::pair<std::string, Arg>> named) {
  auto results = call(overload, std::move(args), std::move(named));
  if (results) return *std::move(results);
  if (status_.ok()) {
    Error error = results.error();
    status_ = std::move(error).at(std::string(overload));
  }
  return {};
}

Value* AtenContext::lower(std::string_view overload, std::vector<Arg> args,
                          std::vector<std::pair<std::string, Arg>> named) {
  const std::vector<Arg> results = lower_all(overload, std::move(args), std::move(named));
  if (results.empty() || !results.front().is_tensor()) {
    if (!failed()) refuse("a decomposition has no result");
    return placeholder();
  }
  return read(results.front().tensor);
}

// ---- arguments ----

const Arg& AtenContext::arg(std::string_view name) const {
  static const Arg kNothing;
  const int index = frame().op->schema.find(name);
  return index < 0 ? kNothing : frame().args[static_cast<size_t>(index)];
}

Value* AtenContext::placeholder() { return b.scalar(0, DType::kFloat32); }

Value* AtenContext::x(std::string_view name) {
  const Arg& given_arg = arg(name);
  if (given_arg.is_tensor()) return read(given_arg.tensor);
  if (given_arg.is_number()) return operand_of(given_arg, promote({&given_arg, 1}));
  if (given_arg.kind == Arg::Kind::kOther && !given_arg.text.empty())
    refuse(given_arg.text);  // a result that could not be made, and now somebody asks for it
  else
    refuse_kind(name);
  return placeholder();
}

Ref AtenContext::ref(std::string_view name) {
  if (arg(name).is_tensor()) return arg(name).tensor;
  refuse_kind(name);
  return cell(placeholder());
}

void AtenContext::refuse_kind(std::string_view name) {
  refuse("the argument \"" + std::string(name) + "\" is " + std::string(kind_name(arg(name))) +
         ", not a tensor");
}

Value* AtenContext::opt(std::string_view name) { return given(name) ? x(name) : nullptr; }

DType AtenContext::type(std::string_view name) const {
  const Arg& given_arg = arg(name);
  return given_arg.is_tensor() ? given_arg.tensor->dtype : DType::kUndefined;
}

SymInt AtenContext::sym(std::string_view name) {
  const Arg& number = arg(name);
  if (number.kind == Arg::Kind::kInt || (number.kind == Arg::Kind::kBool && !number.computed))
    return number.integer;
  if (number.kind == Arg::Kind::kFloat && !number.computed)
    if (const auto whole = to_int64(number.real);
        whole && static_cast<double>(*whole) == number.real)
      return SymInt(*whole);
  if (number.is_tensor() && rank(read(number.tensor)) == 0)
    return SymInt(SymDim(), cast(read(number.tensor), DType::kInt64));
  refuse("the argument \"" + std::string(name) + "\" is " + std::string(kind_name(number)) +
         ", not an integer");
  return SymInt(0);
}

int64_t AtenContext::integer(std::string_view name) {
  const int64_t number = any_integer(name);
  if (number >= -kMaxNumber && number <= kMaxNumber) return number;
  refuse("the argument \"" + std::string(name) + "\" is out of range");
  return 0;
}

int64_t AtenContext::any_integer(std::string_view name) {
  const SymInt number = sym(name);
  if (number.is_number()) return number.dim.value();
  refuse("the argument \"" + std::string(name) + "\" is computed while the model runs");
  return 0;
}

double AtenContext::real(std::string_view name) {
  const Arg& number = arg(name);
  if (number.kind == Arg::Kind::kFloat && !number.computed) return number.real;
  if ((number.kind == Arg::Kind::kInt || number.kind == Arg::Kind::kBool) &&
      number.integer.is_number() && !number.computed)
    return static_cast<double>(number.integer.dim.value());
  if (number.is_tensor())
    if (const Tensor* constant = b.constant_value(read(number.tensor));
        constant && constant->size() == 1)
      return constant->get_double(0);
  refuse("the argument \"" + std::string(name) + "\" is " + std::string(kind_name(number)) +
         " that is not known before the model runs");
  return 0;
}

bool AtenContext::flag(std::string_view name) {
  const Arg& value = arg(name);
  if ((value.kind == Arg::Kind::kBool || value.kind == Arg::Kind::kInt) && !value.computed &&
      value.integer.is_number())
    return value.integer.dim.value() != 0;
  if (value.is_none()) return false;
  refuse("the argument \"" + std::string(name) + "\" is computed while the model runs");
  return false;
}

std::optional<DType> AtenContext::dtype(std::string_view name) const {
  const Arg& value = arg(name);
  if (value.kind == Arg::Kind::kDType) return value.dtype;
  if (value.kind == Arg::Kind::kInt && value.integer.is_number())
    return dtype_from_c10(value.integer.dim.value());
  return std::nullopt;
}

SymInts AtenContext::syms(std::string_view name, size_t count) {
  const Arg& value = arg(name);
  const int index = frame().op->schema.find(name);
  if (count == 0 && index >= 0)
    count = static_cast<size_t>(frame().op->schema.args[static_cast<size_t>(index)].list_length);
  SymInts result;
  if (value.kind == Arg::Kind::kList) {
    for (const Arg& item : value.list) {
      if (item.kind == Arg::Kind::kInt || item.kind == Arg::Kind::kBool) {
        result.push_back(item.integer);
      } else if (item.is_tensor() && rank(read(item.tensor)) == 0) {
        result.emplace_back(SymDim(), cast(read(item.tensor), DType::kInt64));
      } else {
        refuse("the list \"" + std::string(name) + "\" holds " + std::string(kind_name(item)));
      }
    }
  } else if (!value.is_none()) {
    result.push_back(sym(name));
  }
  if (count > 1 && result.size() > 1 && result.size() != count)
    refuse("the list \"" + std::string(name) + "\" has " + std::to_string(result.size()) +
           " numbers, not " + std::to_string(count));
  if (count > SymInts::kMaxRank) {
    refuse("a tensor of too few or too many dimensions");  // their number comes from a rank
    return {};
  }
  // What is refused has as many as the caller will read all the same.
  const SymInt first = result.empty() ? SymInt() : result.front();
  while (!result.empty() && result.size() < count) result.push_back(first);
  if (count > 1 && result.size() > count) result.resize(count);
  return result;
}

Ints AtenContext::ints(std::string_view name, size_t count) {
  Ints result;
  for (const SymInt& number : syms(name, count)) {
    const auto known = number.dim.constant();
    if (!known) refuse("the list \"" + std::string(name) + "\" is computed while the model runs");
    if (known && (*known < -kMaxNumber || *known > kMaxNumber))
      refuse("the list \"" + std::string(name) + "\" holds a number out of range");
    result.push_back(failed() ? 0 : *known);
  }
  return result;
}

Reals AtenContext::reals(std::string_view name) {
  Reals result;
  const Arg& value = arg(name);
  if (value.is_number()) return {real(name)};
  for (const Arg& item : value.list) {
    if (item.kind == Arg::Kind::kFloat && !item.computed) {
      result.push_back(item.real);
    } else if (item.kind == Arg::Kind::kInt && item.integer.is_number()) {
      result.push_back(static_cast<double>(item.integer.dim.value()));
    } else {
      refuse("the list \"" + std::string(name) + "\" is computed while the model runs");
    }
  }
  return result;
}

Refs AtenContext::tensors(std::string_view name) {
  const int index = frame().op->schema.find(name);
  const bool optional =
      index >= 0 && frame().op->schema.args[static_cast<size_t>(index)].type == "Tensor?[]";
  const Arg& value = arg(name);
  if (value.is_tensor()) return {value.tensor};
  Refs result;
  for (const Arg& item : value.list) {
    const bool none = item.is_none() && optional;
    if (!none && !item.is_tensor())
      refuse("the list \"" + std::string(name) + "\" holds " + std::string(kind_name(item)));
    result.push_back(none || item.is_tensor() ? item.tensor : cell(placeholder()));
  }
  return result;
}

Values AtenContext::values(std::string_view name) {
  Values result;
  for (const Ref& tensor : tensors(name)) result.push_back(tensor ? read(tensor) : nullptr);
  return result;
}

// ---- results ----

Ref AtenContext::cell(Value* value, DType dtype) {
  auto made = std::make_shared<Cell>();
  made->value = value;
  made->dtype = dtype == DType::kUndefined ? b.dtype(value) : dtype;
  return made;
}

void AtenContext::out(Value* value) { frame().results.emplace_back(cell(value)); }
void AtenContext::out(Value* value, DType dtype) {
  frame().results.emplace_back(cell(value, dtype));
}

void AtenContext::out_list(std::span<Value* const> values) {
  std::vector<Arg> items;
  const DType complex = is_complex("self") ? type("self") : DType::kUndefined;
  for (Value* value : values) items.emplace_back(cell(value, complex));
  frame().results.emplace_back(std::move(items));
}

void AtenContext::refuse(std::string reason, std::string help) {
  if (!status_.ok()) return;
  status_ = unsupported(std::move(reason)).with_help(std::move(help));
}

void AtenContext::check_lists() {
  if (std::exchange(read_beyond_end(), false))
    refuse("a list or a shape has fewer elements than the operator reads");
}

Status AtenContext::take_status() {
  check_lists();
  Status result = std::move(status_);
  status_ = ok();
  if (result.ok() && !b.status().ok()) result = b.status();
  b.clear_status();
  return result;
}

void AtenContext::leave() {
  // Symbols that a value in here gave a number to have none outside.
  const Graph& inner = b.graph();
  std::erase_if(symbols_,
                [&](const auto& symbol) { return &symbol.second.value->graph() == &inner; });
  b.leave();
  for (auto at = expressions_.begin(); at != expressions_.end();)
    at = at->second.depth > b.depth() ? expressions_.erase(at) : std::next(at);
}

}  // namespace tombolo::pytorch
