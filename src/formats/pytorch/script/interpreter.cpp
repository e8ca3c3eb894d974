#include "formats/pytorch/script/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

constexpr size_t kMaxFrames = 100, kMaxSteps = 2'000'000, kMaxCallDepth = 600;
constexpr int64_t kMaxUnrolled = 2048;
/// The class of an object that stands for a function; its path is the function's name.
constexpr std::string_view kFunctionValue = "a function";
/// The class of an object that is a function within a function.
constexpr std::string_view kClosure = "a closure";

std::string unquoted_type(const Expr& type) {
  if (type.kind == Expr::Kind::kIndex) return type.items[0]->dotted();
  if (type.kind == Expr::Kind::kNone) return "NoneType";
  return type.dotted();
}

}  // namespace

std::string kind_of(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kArg:
      return std::string(pytorch::kind_name(item.arg));
    case Item::Kind::kList:
      return "a list";
    case Item::Kind::kTuple:
      return "a tuple";
    case Item::Kind::kDict:
      return "a dict";
    case Item::Kind::kObject:
      return "an object of class " + item.box->type_name;
    case Item::Kind::kMaybe:
      return "an Optional that is only known when the model runs";
    case Item::Kind::kUninitialized:
      return "a variable without a value";
    case Item::Kind::kLazy:
      break;
  }
  return "an attribute";
}

// ---- the archive's objects ----

Result<Item> Interpreter::root() { return lazy(archive_.root(), ""); }

Result<Item> Interpreter::lazy(const PickleValue& value, const std::string& path) {
  using Kind = PickleValue::Kind;
  const auto known = loaded_.find(&value);
  if (known != loaded_.end()) return known->second;
  const auto put_off = [&](const PickleValue* inner) {
    Item item;
    item.kind = Item::Kind::kLazy;
    item.lazy = inner;
    return item;
  };
  Item item;
  switch (value.kind) {
    case Kind::kNone:
      return item;
    case Kind::kBool:
      return Item(Arg(value.integer != 0));
    case Kind::kInt:
      return Item(Arg(value.integer));
    case Kind::kFloat:
      return Item(Arg(value.real));
    case Kind::kString:
    case Kind::kBytes:
      return Item(Arg(std::string(value.text)));
    case Kind::kGlobal:
      if (value.module == "torch")
        if (const torch::ElementType* type = torch::element_type_of_dtype(value.text))
          return Item(Arg(type->dtype));
      return unsupported("a value of " + value.qualified_name());
    case Kind::kList:
    case Kind::kTuple: {
      item = Item::of(value.is(Kind::kList) ? Item::Kind::kList : Item::Kind::kTuple,
                      std::make_shared<Box>());
      loaded_[&value] = item;
      for (size_t i = 0; i < value.items.size(); ++i) {
        TRY(Item part, lazy(*value.items[i], path + (path.empty() ? "" : ".") + std::to_string(i)));
        item.box->items.push_back(std::move(part));
      }
      return item;
    }
    case Kind::kDict: {
      item = Item::of(Item::Kind::kDict, std::make_shared<Box>());
      loaded_[&value] = item;
      for (size_t i = 0; i + 1 < value.entries.size(); i += 2) {
        TRY(Item key, lazy(*value.entries[i], path));
        TRY(Item part, lazy(*value.entries[i + 1],
                            path + (path.empty() ? "" : ".") +
                                (key.is_text() ? key.arg.text : std::to_string(i / 2))));
        item.box->keys.push_back(std::move(key));
        item.box->items.push_back(std::move(part));
      }
      return item;
    }
    case Kind::kObject: {
      const std::string name = value.qualified_name();
      if (name == "torch.jit._pickle.build_intlist" ||
          name == "torch.jit._pickle.build_doublelist" ||
          name == "torch.jit._pickle.build_boollist" ||
          name == "torch.jit._pickle.build_tensorlist" ||
          name == "torch.jit._pickle.restore_type_tag") {
        if (value.items.empty()) return parse_error("a damaged list");
        TRY(item, lazy(*value.items[0], path));
        loaded_[&value] = item;
        return item;
      }
      if (name.starts_with("torch._utils.") || name.starts_with("torch._tensor.") ||
          name == "torch.jit._pickle.build_tensor_from_id") {
        TRY(torch::TorchTensor tensor, archive_.tensor(value, "data/"));
        uint64_t budget = uint64_t{1} << 28;
        const bool quantised = tensor.type->quantised;
        TRY(Weight weight, torch::to_weight(tensor, path, true, budget));
        Tensor dense = weight.tensor;
        DType dtype = dense.dtype();
        if (is_complex(dtype)) {
          // Pairs of reals along a new last axis.
          std::vector<int64_t> dims = weight.dims;
          dims.push_back(2);
          dense = Tensor::view(AtenContext::real_of(dtype), dims, dense.bytes(),
                               std::make_shared<Tensor>(dense));
        }
        Value* made = c.b.weight(dense, path.empty() ? "weight" : path);
        Ref cell = c.cell(made, dtype);
        if (quantised) {
          auto quantization = std::make_shared<pytorch::Quantization>();
          std::vector<float> scales(tensor.scales.begin(), tensor.scales.end());
          if (scales.empty()) return parse_error("a quantised tensor without a scale");
          // Zero points are real numbers where one is (embeddings), else of the integers' type.
          const bool whole = std::all_of(tensor.zero_points.begin(), tensor.zero_points.end(),
                                         [](double point) { return point == std::floor(point); });
          TRY(Tensor points,
              Tensor::allocate(whole ? dtype : DType::kFloat32,
                               tensor.axis < 0
                                   ? std::vector<int64_t>{}
                                   : std::vector<int64_t>{static_cast<int64_t>(scales.size())}));
          for (int64_t i = 0; i < points.size(); ++i)
            points.set_double(i, static_cast<size_t>(i) < tensor.zero_points.size()
                                     ? tensor.zero_points[static_cast<size_t>(i)]
                                     : 0);
          const std::vector<int64_t> dims(points.dims().span().begin(), points.dims().span().end());
          quantization->scale =
              c.b.weight(Tensor::of<float>(DType::kFloat32, dims, scales), path + ".scale");
          quantization->zero_point = c.b.weight(points, path + ".zero_point");
          quantization->axis = tensor.axis;
          cell->quantization = std::move(quantization);
        }
        states_.push_back({path, cell, made});
        item = Item(Arg(cell));
        loaded_[&value] = item;
        return item;
      }
      item = Item::of(Item::Kind::kObject, std::make_shared<Box>());
      item.box->type_name = name;
      item.box->path = path;
      TRY(item.box->type, archive_.type(name));
      if (item.box->type && item.box->type->base == "Enum" && value.at(0)) {
        TRY(Item content, lazy(*value.at(0), path));
        return enum_member(*item.box->type, name, "", &content);
      }
      loaded_[&value] = item;
      if (item.box->type && item.box->type->methods.contains("__setstate__") && value.state) {
        TRY(Item state, lazy(*value.state, path));
        TRY(Item done, call_method(item, "__setstate__", {state}));
        return item;
      }
      if (value.state && value.state->is(Kind::kDict)) {
        for (size_t i = 0; i + 1 < value.state->entries.size(); i += 2)
          item.box->attributes[std::string(value.state->entries[i]->text)] =
              put_off(value.state->entries[i + 1]);
      } else if (value.state) {
        // Classes of C++ (packed weights): their state is one value.
        item.box->attributes["__state__"] = put_off(value.state);
      }
      if (value.items.size() == 1 && name == "torch.device")
        return Item([&] {
          Arg device;
          device.kind = Arg::Kind::kOther;
          return device;
        }());
      return item;
    }
    default:
      return unsupported("a value of an unknown kind in the archive");
  }
}

Result<Item> Interpreter::attribute(const Item& base, std::string_view name) {
  if (base.kind == Item::Kind::kTuple) {
    for (size_t i = 0; i < base.box->names.size(); ++i)
      if (base.box->names[i] == name) return base.box->items[i];
    return unsupported("a tuple has no field \"" + std::string(name) + "\"");
  }
  if (base.kind == Item::Kind::kMaybe) return attribute(base.box->items[0], name);
  if (base.kind != Item::Kind::kObject)
    return unsupported("attribute \"" + std::string(name) + "\" of " + kind_of(base));
  const auto found = base.box->attributes.find(name);
  if (found == base.box->attributes.end()) {
    // Values that the class itself holds: enumerations.
    if (base.box->type)
      for (const auto& [key, value] : base.box->type->values)
        if (key == name) return evaluate(*value);
    return parse_error("class " + base.box->type_name + " has no attribute \"" + std::string(name) +
                       "\"");
  }
  if (found->second.kind == Item::Kind::kLazy) {
    const std::string path =
        base.box->path.empty() ? std::string(name) : base.box->path + "." + std::string(name);
    TRY(found->second, lazy(*found->second.lazy, path));
  }
  return found->second;
}

Result<Item> Interpreter::enum_member(const Class& type, const std::string& qualified,
                                      std::string_view name, const Item* value) {
  for (const auto& [member, content] : type.values) {
    TRY(Item held, evaluate(*content));
    if (value ? known_equal(held, *value) != true : member != name) continue;
    Item& item = enums_[qualified + "." + std::string(member)];
    if (!item.box) {
      item = Item::of(Item::Kind::kObject, std::make_shared<Box>());
      item.box->type = &type;
      item.box->type_name = qualified;
      item.box->attributes["name"] = Item(Arg(std::string(member)));
      item.box->attributes["value"] = held;
    }
    return item;
  }
  return parse_error("the enumeration " + qualified + " has no such member");
}

// ---- calls ----

Result<Item> Interpreter::call_method(const Item& object, std::string_view name, Items args,
                                      NamedItems named) {
  if (object.kind != Item::Kind::kObject)
    return unsupported("method \"" + std::string(name) + "\" of " + kind_of(object));
  const Class* type = object.box->type;
  const auto method = type ? type->methods.find(name) : decltype(type->methods.find(name)){};
  if (type == nullptr || method == type->methods.end())
    return unsupported("method \"" + std::string(name) + "\" of class " + object.box->type_name);
  args.insert(args.begin(), object);
  return call_function(*method->second, std::move(args), std::move(named), object.box->path);
}

Result<Item> Interpreter::call_function(const Function& function, Items args, NamedItems named,
                                        const std::string& scope) {
  if (frames_.size() >= kMaxFrames) return unsupported("functions that call themselves");
  if (args.size() > function.parameters.size())
    return parse_error("too many arguments for " + std::string(function.name));
  auto frame = std::make_unique<Frame>();
  frame->function = &function;
  frame->scope = scope;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    if (i < args.size()) {
      frame->locals[std::string(parameter.name)] = std::move(args[i]);
      continue;
    }
    bool found = false;
    for (auto& [name, value] : named)
      if (name == parameter.name) {
        frame->locals[std::string(parameter.name)] = value;
        found = true;
      }
    if (found) continue;
    if (!parameter.fallback)
      return parse_error("argument \"" + std::string(parameter.name) + "\" of " +
                         std::string(function.name) + " is missing");
    TRY(frame->locals[std::string(parameter.name)], evaluate(*parameter.fallback));
  }
  const std::string outer_scope = c.b.scope();
  std::string readable = scope;
  for (char& letter : readable)
    if (letter == '.') letter = '/';
  c.b.set_scope(readable);
  frames_.push_back(std::move(frame));
  auto flow = execute(function.body);
  Item result = std::move(frames_.back()->result);
  frames_.pop_back();
  c.b.set_scope(outer_scope);
  if (frames_.empty()) {
    c.b.set_metadata({});
  } else if (!frames_.back()->source.empty()) {
    // The rest of the statement that called.
    const Frame& caller = *frames_.back();
    std::vector<StringEntry> entries;
    if (!caller.module.empty()) entries.push_back({"module", caller.module});
    entries.push_back({"source", caller.source});
    c.b.set_metadata(std::move(entries));
  }
  if (!flow.ok()) return std::move(flow).error();
  return result;
}

Result<Item> Interpreter::call_closure(const Item& closure) {
  if (!closure.is(Item::Kind::kObject) || closure.box->type_name != kClosure)
    return unsupported("a fork of " + kind_of(closure));
  if (frames_.size() >= kMaxFrames) return unsupported("functions that call themselves");
  auto frame = std::make_unique<Frame>();
  frame->function = closure.box->function;
  frame->scope = frames_.back()->scope;
  frame->locals = frames_.back()->locals;
  frames_.push_back(std::move(frame));
  auto flow = execute(closure.box->function->body);
  Item result = std::move(frames_.back()->result);
  frames_.pop_back();
  if (!flow.ok()) return std::move(flow).error();
  return result;
}

Status Interpreter::arguments(const Expr& call, Items& args, NamedItems& named) {
  for (size_t i = 1; i < call.items.size(); ++i) {
    TRY(Item value, evaluate(*call.items[i]));
    args.push_back(std::move(value));
  }
  for (const auto& [name, expr] : call.named) {
    TRY(Item value, evaluate(*expr));
    named.emplace_back(std::string(name), std::move(value));
  }
  return ok();
}

Result<Item> Interpreter::call(const Expr& expr) {
  const Expr& callee = *expr.items[0];
  const std::string dotted = callee.dotted();
  const auto local = [&](std::string_view name) {
    return !frames_.empty() && frames_.back()->locals.find(name) != frames_.back()->locals.end();
  };
  const std::string root = dotted.substr(0, dotted.find('.'));
  // Forms whose arguments are types.
  if (callee.kind == Expr::Kind::kName && !local(dotted)) {
    if (dotted == "annotate" || dotted == "unchecked_cast") {
      if (expr.items.size() != 3) return parse_error(dotted + " without a type and a value");
      TRY(Item value, evaluate(*expr.items[2]));
      return annotated(*expr.items[1], std::move(value));
    }
    if (dotted == "uninitialized") {
      Item nothing;
      nothing.kind = Item::Kind::kUninitialized;
      return nothing;
    }
    if (dotted == "isinstance" && expr.items.size() == 3) {
      TRY(Item value, evaluate(*expr.items[1]));
      if (value.kind == Item::Kind::kMaybe) {
        TRY(bool with, is_instance(value.box->items[0], *expr.items[2]));
        TRY(bool without, is_instance(Item(), *expr.items[2]));
        if (with == without) return Item(Arg(with));
        Arg is(false);
        is.computed = with ? value.box->present : c.op("Not", {value.box->present});
        return Item(std::move(is));
      }
      TRY(bool is, is_instance(value, *expr.items[2]));
      return Item(Arg(is));
    }
    if (dotted == "getattr" && expr.items.size() >= 3) {
      TRY(Item base, evaluate(*expr.items[1]));
      return attribute(base, expr.items[2]->text);
    }
    if (dotted == "hasattr" && expr.items.size() == 3) {
      TRY(Item base, evaluate(*expr.items[1]));
      return Item(Arg(base.kind == Item::Kind::kObject &&
                      base.box->attributes.contains(std::string(expr.items[2]->text))));
    }
    if (dotted == "print") return Item();
    if (dotted == "fork" || dotted == "awaitable") {
      // What runs beside is run at once: a future is its result.
      if (expr.items.size() < 2) return parse_error(dotted + " of nothing");
      TRY(Item closure, evaluate(*expr.items[1]));
      return call_closure(closure);
    }
    if (dotted == "awaitable_wait") return evaluate(*expr.items[1]);
  }
  if ((root == "torch" || root == "ops" || root == "__torch__") && !local(root)) {
    if (root == "__torch__") {
      TRY(const Function* function, archive_.function(dotted));
      Items args;
      NamedItems named;
      CHECK_OK(arguments(expr, args, named));
      if (function)
        return call_function(*function, std::move(args), std::move(named),
                             frames_.empty() ? "" : frames_.back()->scope);
      return construct(dotted, std::move(args), std::move(named));
    }
    Items args;
    NamedItems named;
    CHECK_OK(arguments(expr, args, named));
    return call_builtin(dotted, expr, args, named);
  }
  if (callee.kind == Expr::Kind::kName && !local(dotted)) {
    Items args;
    NamedItems named;
    CHECK_OK(arguments(expr, args, named));
    return call_builtin(dotted, expr, args, named);
  }
  if (callee.kind == Expr::Kind::kAttribute) {
    TRY(Item base, evaluate(*callee.items[0]));
    Items args;
    NamedItems named;
    CHECK_OK(arguments(expr, args, named));
    return call_method(base, callee.text, std::move(args), std::move(named));
  }
  TRY(Item value, evaluate(callee));
  if (value.kind == Item::Kind::kObject && value.box->type_name == kFunctionValue) {
    Items args;
    NamedItems named;
    CHECK_OK(arguments(expr, args, named));
    TRY(const Function* function, archive_.function(value.box->path));
    if (function)
      return call_function(*function, std::move(args), std::move(named), frames_.back()->scope);
    return construct(value.box->path, std::move(args), std::move(named));
  }
  return unsupported("a call of a value that is computed");
}

Result<Item> Interpreter::construct(const std::string& qualified, Items args, NamedItems named) {
  // Class.__new__(Class), which __init__ follows.
  constexpr std::string_view kNew = ".__new__";
  if (qualified.ends_with(kNew)) {
    Item object = Item::of(Item::Kind::kObject, std::make_shared<Box>());
    object.box->type_name = qualified.substr(0, qualified.size() - kNew.size());
    TRY(object.box->type, archive_.type(object.box->type_name));
    return object;
  }
  TRY(const Class* type, archive_.type(qualified));
  if (type == nullptr) return unsupported("there is no function or class " + qualified);
  if (type->base == "NamedTuple") {
    Item tuple = Item::tuple(std::move(args));
    for (const auto& [name, declared] : type->attributes) {
      tuple.box->names.emplace_back(name);
      for (auto& [given, value] : named)
        if (given == name && tuple.box->items.size() < tuple.box->names.size())
          tuple.box->items.push_back(value);
    }
    return tuple;
  }
  Item object = Item::of(Item::Kind::kObject, std::make_shared<Box>());
  object.box->type_name = qualified;
  object.box->type = type;
  if (type->methods.contains("__init__")) {
    TRY(Item done, call_method(object, "__init__", std::move(args), std::move(named)));
  }
  return object;
}

Result<Item> Interpreter::annotated(const Expr& type, Item value) {
  const std::string name = unquoted_type(type);
  if (value.kind == Item::Kind::kMaybe && name != "Optional") return value.box->items[0];
  // A tensor where a number is wanted: tracing leaves the conversion to the reader.
  if (value.is_tensor() && (name == "number" || name == "Scalar"))
    return invoke("torch.item", {value});
  if (value.is_tensor() && name == "int") return invoke("torch.Int", {value});
  if (value.is_tensor() && name == "float") return invoke("torch.Float", {value});
  return value;
}

Result<bool> Interpreter::is_instance(const Item& item, const Expr& type) {
  if (type.kind == Expr::Kind::kTuple || type.kind == Expr::Kind::kList) {
    for (const Expr* one : type.items) {
      TRY(bool is, is_instance(item, *one));
      if (is) return true;
    }
    return false;
  }
  const std::string name = unquoted_type(type);
  if (name == "Any") return true;
  if (name == "Optional") {
    if (item.is_none()) return true;
    return is_instance(item, *type.items[1]);
  }
  if (name == "NoneType" || name == "None") return item.is_none();
  if (name == "Tensor") return item.is_tensor();
  if (name == "int") return item.is_arg(Arg::Kind::kInt);
  if (name == "float") return item.is_arg(Arg::Kind::kFloat);
  if (name == "bool") return item.is_arg(Arg::Kind::kBool);
  if (name == "complex") return item.is_arg(Arg::Kind::kComplex);
  if (name == "str") return item.is_text();
  if (name == "number" || name == "Scalar") return item.is_number();
  if (name == "Dict" || name == "dict") return item.is(Item::Kind::kDict);
  if (name == "List" || name == "list" || name == "Tuple" || name == "tuple") {
    const bool list = name == "List" || name == "list";
    if (!item.is(list ? Item::Kind::kList : Item::Kind::kTuple)) return false;
    if (type.kind != Expr::Kind::kIndex || item.box->items.empty()) return true;
    if (list) return is_instance(item.box->items[0], *type.items[1]);
    return true;
  }
  if (item.is(Item::Kind::kObject)) return item.box->type_name == name;
  return false;
}

// ---- expressions ----

Result<Item> Interpreter::evaluate(const Expr& expr) {
  using Kind = Expr::Kind;
  if (++steps_ > kMaxSteps) return resource_error("the program runs for too long to be unrolled");
  struct Deeper {
    explicit Deeper(size_t& depth) : depth_(depth) { ++depth_; }
    ~Deeper() { --depth_; }
    size_t& depth_;
  } const deeper(depth_);
  if (depth_ > kMaxCallDepth) return unsupported("calls nested too deeply");
  switch (expr.kind) {
    case Kind::kName: {
      if (!frames_.empty()) {
        const auto found = frames_.back()->locals.find(expr.text);
        if (found != frames_.back()->locals.end()) return found->second;
      }
      if (expr.text == "inf") return Item(Arg(std::numeric_limits<double>::infinity()));
      if (expr.text == "nan") return Item(Arg(std::numeric_limits<double>::quiet_NaN()));
      return parse_error("the name \"" + std::string(expr.text) + "\" is not defined");
    }
    case Kind::kAttribute: {
      if (expr.items[0]->kind == Kind::kName && expr.items[0]->text == "CONSTANTS") {
        std::string_view digits = expr.text;
        if (digits.starts_with("c")) digits.remove_prefix(1);
        const size_t number =
            static_cast<size_t>(std::strtoull(std::string(digits).c_str(), nullptr, 10));
        const PickleValue* value = archive_.constant(number);
        if (value == nullptr) return parse_error("there is no constant " + std::string(expr.text));
        return constant_tensor(*value, number);
      }
      const std::string dotted = expr.dotted();
      if (dotted == "torch.inf" || dotted == "math.inf")
        return Item(Arg(std::numeric_limits<double>::infinity()));
      if (dotted.starts_with("__torch__.")) {
        // A member of an enumeration.
        const size_t dot = dotted.rfind('.');
        TRY(const Class* type, archive_.type(dotted.substr(0, dot)));
        if (type && type->base == "Enum")
          return enum_member(*type, dotted.substr(0, dot), expr.text, nullptr);
        if (type)
          for (const auto& [name, value] : type->values)
            if (name == expr.text) return evaluate(*value);
        // A function or class under a name of its own.
        Item named = Item::of(Item::Kind::kObject, std::make_shared<Box>());
        named.box->type_name = kFunctionValue;
        named.box->path = dotted;
        return named;
      }
      TRY(Item base, evaluate(*expr.items[0]));
      return attribute(base, expr.text);
    }
    case Kind::kCall:
      return call(expr);
    case Kind::kIndex: {
      TRY(Item base, evaluate(*expr.items[0]));
      const Expr& inside = *expr.items[1];
      if (inside.kind == Kind::kSlice) {
        Items args = {base};
        for (const Expr* part : inside.items) {
          Item bound;
          if (part) {
            TRY(bound, evaluate(*part));
          }
          args.push_back(std::move(bound));
        }
        if (args[3].is_none()) args[3] = Item(Arg(1));
        NamedItems none;
        return call_builtin("torch.slice", expr, args, none);
      }
      TRY(Item key, evaluate(inside));
      return index(base, key);
    }
    case Kind::kList:
    case Kind::kTuple: {
      Items items;
      for (const Expr* part : expr.items) {
        TRY(Item item, evaluate(*part));
        items.push_back(std::move(item));
      }
      return expr.kind == Kind::kList ? Item::list(std::move(items))
                                      : Item::tuple(std::move(items));
    }
    case Kind::kDict: {
      Item dict = Item::of(Item::Kind::kDict, std::make_shared<Box>());
      for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
        TRY(Item key, evaluate(*expr.items[i]));
        TRY(Item value, evaluate(*expr.items[i + 1]));
        dict.box->keys.push_back(std::move(key));
        dict.box->items.push_back(std::move(value));
      }
      return dict;
    }
    case Kind::kInt:
      return Item(Arg(expr.integer));
    case Kind::kFloat:
      return Item(Arg(expr.real));
    case Kind::kImaginary:
      return Item(Arg::complex(0, expr.real));
    case Kind::kString:
      return Item(Arg(std::string(expr.text)));
    case Kind::kTrue:
      return Item(Arg(true));
    case Kind::kFalse:
      return Item(Arg(false));
    case Kind::kNone:
      return Item();
    case Kind::kUnary: {
      TRY(Item operand, evaluate(*expr.items[0]));
      Items args = {std::move(operand)};
      NamedItems none;
      return call_builtin(expr.text == "not" ? "torch.__not__"
                          : expr.text == "~" ? "torch.bitwise_not"
                                             : "torch.neg",
                          expr, args, none);
    }
    case Kind::kBinary: {
      static const std::map<std::string_view, const char*> kNames = {
          {"+", "torch.add"},
          {"-", "torch.sub"},
          {"*", "torch.mul"},
          {"/", "torch.div"},
          {"//", "torch.floordiv"},
          {"%", "torch.remainder"},
          {"**", "torch.pow"},
          {"==", "torch.eq"},
          {"!=", "torch.ne"},
          {"<", "torch.lt"},
          {">", "torch.gt"},
          {"<=", "torch.le"},
          {">=", "torch.ge"},
          {"is", "torch.__is__"},
          {"is not", "torch.__isnot__"},
          {"&", "torch.__and__"},
          {"|", "torch.__or__"},
          {"^", "torch.__xor__"},
          {"@", "torch.matmul"},
          {"in", "torch.__contains__"},
      };
      TRY(Item left, evaluate(*expr.items[0]));
      if (expr.text == "and" || expr.text == "or") {
        TRY(Arg known, truth(left));
        if (!known.computed) {
          const bool value = known.integer.dim.value() != 0;
          if (value == (expr.text == "or")) return Item(Arg(value));
          return evaluate(*expr.items[1]);
        }
      }
      TRY(Item right, evaluate(*expr.items[1]));
      Items args = {std::move(left), std::move(right)};
      NamedItems none;
      if (expr.text == "in") std::swap(args[0], args[1]);
      if (expr.text == "and") return call_builtin("torch.__and__", expr, args, none);
      if (expr.text == "or") return call_builtin("torch.__or__", expr, args, none);
      const auto name = kNames.find(expr.text);
      if (name == kNames.end())
        return unsupported("the operator \"" + std::string(expr.text) + "\"");
      return call_builtin(name->second, expr, args, none);
    }
    case Kind::kSlice:
      break;
  }
  return parse_error("an expression that means nothing here");
}

Result<Item> Interpreter::constant_tensor(const PickleValue& value, size_t number) {
  const auto known = loaded_.find(&value);
  if (known != loaded_.end()) return known->second;
  if (!value.is(PickleValue::Kind::kObject))
    return lazy(value, "CONSTANTS.c" + std::to_string(number));
  TRY(torch::TorchTensor tensor, archive_.tensor(value, "constants/"));
  uint64_t budget = uint64_t{1} << 28;
  TRY(Weight weight, torch::to_weight(tensor, "", true, budget));
  Tensor dense = weight.tensor;
  const DType dtype = dense.dtype();
  if (is_complex(dtype)) {
    std::vector<int64_t> dims = weight.dims;
    dims.push_back(2);
    dense = Tensor::view(AtenContext::real_of(dtype), dims, dense.bytes(),
                         std::make_shared<Tensor>(dense));
  }
  const std::string name = "CONSTANTS.c" + std::to_string(number);
  Item item(
      Arg(c.cell(dense.size() <= 64 ? c.b.constant(dense, name) : c.b.weight(dense, name), dtype)));
  // A number of the traced program: PyTorch has one type for each kind of them.
  item.arg.tensor->number =
      weight.dims.empty() && (dtype == DType::kFloat64 || dtype == DType::kInt64 ||
                              dtype == DType::kBool || dtype == DType::kComplex128);
  loaded_[&value] = item;
  return item;
}

Result<Item> Interpreter::index(const Item& base, const Item& key) {
  return get_item(*this, base, key);
}

// ---- statements ----

Error Interpreter::located(Error error, const Stmt& stmt) {
  if (error.where.find("line ") != std::string::npos) return error;
  const Function* function = frames_.empty() ? nullptr : frames_.back()->function;
  if (function == nullptr) return error;
  const std::string origin = archive_.origin(function->file, stmt.line);
  std::string place = std::string(function->file) + " line " + std::to_string(stmt.line);
  if (!origin.empty()) place = origin + " (" + place + ")";
  return std::move(error).at(place);
}

/// Nodes say which module and which line of the user's source they come from: the innermost one
/// that is not PyTorch's own.
void Interpreter::set_metadata(const Stmt& stmt) {
  Frame& frame = *frames_.back();
  const auto kept = [&](const std::string& text) {
    const auto found = texts_.find(text);
    if (found != texts_.end()) return found->second;
    return texts_[text] = c.b.model().storage().copy(text);
  };
  const Frame* outer = frames_.size() > 1 ? frames_[frames_.size() - 2].get() : nullptr;
  const std::string& origin = archive_.origin(frame.function->file, stmt.line);
  const bool own = origin.find("/torch/") == std::string::npos;
  frame.source = !origin.empty() && (own || !outer || outer->source.empty()) ? kept(origin)
                 : outer                                                     ? outer->source
                                                                             : Text();
  frame.module = kept(frame.scope);
  std::vector<StringEntry> entries;
  if (!frame.module.empty()) entries.push_back({"module", frame.module});
  if (!frame.source.empty()) entries.push_back({"source", frame.source});
  c.b.set_metadata(std::move(entries));
}

Result<Flow> Interpreter::execute(const std::vector<const Stmt*>& body) {
  for (const Stmt* stmt : body) {
    set_metadata(*stmt);
    auto flow = statement(*stmt);
    if (!flow.ok()) return located(std::move(flow).error(), *stmt);
    if (*flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Result<Flow> Interpreter::statement(const Stmt& stmt) {
  using Kind = Stmt::Kind;
  switch (stmt.kind) {
    case Kind::kExpr: {
      TRY(Item ignored, evaluate(*stmt.value));
      return Flow::kNormal;
    }
    case Kind::kAssign: {
      if (stmt.value == nullptr) return Flow::kNormal;
      TRY(Item value, evaluate(*stmt.value));
      if (!stmt.unpack) {
        CHECK_OK(assign(*stmt.targets[0], std::move(value)));
        return Flow::kNormal;
      }
      if (value.kind == Item::Kind::kMaybe) value = value.box->items[0];
      if (!value.is_sequence()) return unsupported("unpacking of " + kind_of(value));
      if (value.box->sequence) {
        // A list whose length is not known has as many items as are asked for.
        Items items;
        for (size_t i = 0; i < stmt.targets.size(); ++i) {
          TRY(Item item, index(value, Item(Arg(static_cast<int64_t>(i)))));
          items.push_back(std::move(item));
        }
        value = Item::list(std::move(items));
      }
      if (value.box->items.size() != stmt.targets.size())
        return unsupported("unpacking of " + std::to_string(value.box->items.size()) +
                           " values into " + std::to_string(stmt.targets.size()));
      const Items parts = value.box->items;
      for (size_t i = 0; i < parts.size(); ++i) CHECK_OK(assign(*stmt.targets[i], parts[i]));
      return Flow::kNormal;
    }
    case Kind::kIf:
      return execute_if(stmt);
    case Kind::kFor:
      return execute_for(stmt);
    case Kind::kWhile:
      return execute_while(stmt);
    case Kind::kReturn:
      frames_.back()->result = Item();
      if (stmt.value) {
        TRY(frames_.back()->result, evaluate(*stmt.value));
      }
      return Flow::kReturn;
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
    case Kind::kWith:
      return execute_with(stmt);
    case Kind::kDefine: {
      // A function within a function, which a fork or a closure runs with these variables.
      Item closure = Item::of(Item::Kind::kObject, std::make_shared<Box>());
      closure.box->type_name = kClosure;
      closure.box->function = stmt.function;
      frames_.back()->locals[std::string(stmt.function->name)] = std::move(closure);
      return Flow::kNormal;
    }
    case Kind::kAssert:
    case Kind::kPass:
      return Flow::kNormal;
    case Kind::kDelete:
      break;
  }
  return unsupported("a statement of an unknown kind");
}

Status Interpreter::assign(const Expr& target, Item value) {
  if (target.kind == Expr::Kind::kName) {
    frames_.back()->locals[std::string(target.text)] = std::move(value);
    return ok();
  }
  if (target.kind == Expr::Kind::kAttribute) {
    TRY(Item base, evaluate(*target.items[0]));
    if (base.kind != Item::Kind::kObject)
      return unsupported("assignment to an attribute of " + kind_of(base));
    touch(base.box);
    // A buffer that gets another tensor: state that the model hands out.
    const auto old = base.box->attributes.find(target.text);
    if (old != base.box->attributes.end()) {
      TRY(Item before, attribute(base, target.text));
      if (before.is_tensor())
        for (State& state : states_)
          if (state.cell == before.arg.tensor ||
              (state.reassigned && state.reassigned->is_tensor() &&
               state.reassigned->arg.tensor == before.arg.tensor))
            state.reassigned = std::make_shared<Item>(value);
    }
    base.box->attributes[std::string(target.text)] = std::move(value);
    return ok();
  }
  if (target.kind == Expr::Kind::kIndex) {
    TRY(Item base, evaluate(*target.items[0]));
    TRY(Item key, evaluate(*target.items[1]));
    TRY(Item done, set_item(*this, base, key, std::move(value)));
    return ok();
  }
  return unsupported("an assignment to an expression");
}

namespace {

/// A block that ends in an exception whatever happens.
bool raises(const std::vector<const Stmt*>& body) {
  for (const Stmt* stmt : body)
    if (stmt->kind == Stmt::Kind::kExpr && stmt->value->kind == Expr::Kind::kCall &&
        stmt->value->items[0]->dotted() == "ops.prim.RaiseException")
      return true;
  return false;
}

}  // namespace

Result<Flow> Interpreter::execute_if(const Stmt& stmt) {
  TRY(Item condition, evaluate(*stmt.value));
  TRY(Arg known, truth(condition));
  if (!known.computed) return execute(known.integer.dim.value() != 0 ? stmt.body : stmt.otherwise);
  // What raises is not converted: a model has no exceptions. Its condition is taken not to hold.
  if (raises(stmt.body)) return execute(stmt.otherwise);
  if (raises(stmt.otherwise)) return execute(stmt.body);
  return dynamic_if(stmt, known.computed);
}

/// with object [as name]: its methods __enter__ and __exit__ run around the body. Those of PyTorch
/// (no_grad, profiling) do nothing that a model could hold.
Result<Flow> Interpreter::execute_with(const Stmt& stmt) {
  TRY(Item object, evaluate(*stmt.value));
  const bool own = object.is(Item::Kind::kObject) && object.box->type &&
                   !object.box->type_name.starts_with("__torch__.torch.");
  Item entered;
  if (own && object.box->type->methods.contains("__enter__")) {
    TRY(entered, call_method(object, "__enter__", {}));
  }
  if (!stmt.targets.empty()) CHECK_OK(assign(*stmt.targets[0], entered));
  TRY(Flow flow, execute(stmt.body));
  if (own && object.box->type->methods.contains("__exit__")) {
    TRY(Item done, call_method(object, "__exit__", {Item(), Item(), Item()}));
  }
  return flow;
}

Result<Flow> Interpreter::execute_for(const Stmt& stmt) {
  // for i in range(n): the only form that is written
  const Expr& range = *stmt.value;
  if (range.kind != Expr::Kind::kCall || range.items[0]->dotted() != "range" ||
      range.items.size() != 2) {
    TRY(Item list, evaluate(range));
    if (!list.is_sequence() || list.box->sequence)
      return unsupported("a loop over " + kind_of(list));
    const Items items = list.box->items;
    for (const Item& item : items) {
      CHECK_OK(assign(*stmt.targets[0], item));
      TRY(Flow flow, execute(stmt.body));
      if (flow == Flow::kReturn) return flow;
      if (flow == Flow::kBreak) break;
    }
    return Flow::kNormal;
  }
  TRY(Item trips, evaluate(*range.items[1]));
  if (!trips.is_arg(Arg::Kind::kInt)) return unsupported("a loop over " + kind_of(trips));
  if (!trips.arg.integer.is_number()) return dynamic_loop(stmt, &trips);
  const int64_t count = trips.arg.integer.dim.value();
  if (count > kMaxUnrolled) return dynamic_loop(stmt, &trips);
  for (int64_t i = 0; i < count; ++i) {
    CHECK_OK(assign(*stmt.targets[0], Item(Arg(i))));
    TRY(Flow flow, execute(stmt.body));
    if (flow == Flow::kReturn) return flow;
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute_while(const Stmt& stmt) {
  for (int64_t i = 0;; ++i) {
    TRY(Item condition, evaluate(*stmt.value));
    TRY(Arg known, truth(condition));
    if (known.computed || i > kMaxUnrolled) return dynamic_loop(stmt, nullptr);
    if (known.integer.dim.value() == 0) return Flow::kNormal;
    TRY(Flow flow, execute(stmt.body));
    if (flow == Flow::kReturn) return flow;
    if (flow == Flow::kBreak) return Flow::kNormal;
  }
}

}  // namespace tombolo::script
