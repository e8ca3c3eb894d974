// From a call by its base name to what computes it: a function of the language, or the overload of
// an ATen operator that fits the arguments.

#include <unordered_map>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;
using pytorch::Operator;
using pytorch::SchemaArg;

using Index = std::unordered_map<std::string_view, std::vector<Builtin>>;

const Index& builtin_index() {
  static const Index* made = [] {
    auto* index = new Index;
    for (const auto& rows :
         {text_builtins(), container_builtins(), number_builtins(), math_builtins(),
          tensor_builtins(), quantized_builtins(), quantized_rnn_builtins()})
      for (const BuiltinRow& row : rows) (*index)[row.name].push_back(row.run);
    return index;
  }();
  return *made;
}

bool is_int(const Arg& arg) { return arg.kind == AKind::kInt || arg.kind == AKind::kBool; }

/// Whether an argument is of a type of a signature. `exact`: without conversions.
bool fits(const Arg& arg, std::string_view type, int length, bool exact) {
  if (type.ends_with('?')) {
    if (arg.is_none()) return true;
    type.remove_suffix(1);
  }
  if (arg.is_none()) return false;
  if (type.ends_with("[]")) {
    const std::string_view inner = type.substr(0, type.size() - 2);
    if (arg.kind != AKind::kList)
      return length > 0 && fits(arg, inner, 0, exact);  // one number for all
    for (const Arg& item : arg.list)
      if (!fits(item, inner, 0, exact)) return false;
    return true;
  }
  if (type == "Tensor") return arg.is_tensor();
  if (type == "Scalar" || type == "number") return arg.is_number() || (!exact && arg.is_tensor());
  if (type == "int" || type == "SymInt")
    return arg.kind == AKind::kInt || (!exact && (is_int(arg) || arg.is_tensor()));
  if (type == "float")
    return arg.kind == AKind::kFloat || (!exact && (is_int(arg) || arg.is_tensor()));
  if (type == "bool") return arg.kind == AKind::kBool || (!exact && arg.kind == AKind::kInt);
  if (type == "complex") return arg.kind == AKind::kComplex;
  if (type == "str") return arg.kind == AKind::kString;
  if (type == "ScalarType")
    return arg.kind == AKind::kDType || (arg.kind == AKind::kInt && arg.integer.is_number());
  if (type == "Device" || type == "Generator" || type == "Storage" || type == "Stream")
    return arg.kind == AKind::kOther;
  if (type == "Layout" || type == "MemoryFormat")
    return arg.kind == AKind::kInt || arg.kind == AKind::kOther;
  return !exact;
}

bool matches(const Operator& op, const std::vector<Arg>& args,
             const std::vector<std::pair<std::string, Arg>>& named, bool exact) {
  const auto& parameters = op.schema.args;
  if (args.size() > parameters.size()) return false;
  std::vector<bool> filled(parameters.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (parameters[i].keyword && exact) return false;
    if (!fits(args[i], parameters[i].type, parameters[i].list_length, exact)) return false;
    filled[i] = true;
  }
  for (const auto& [name, value] : named) {
    const int at = op.schema.find(name);
    if (at < 0) {
      if (value.is_none() || value.kind == AKind::kOther) continue;
      return false;
    }
    const SchemaArg& parameter = parameters[static_cast<size_t>(at)];
    if (!fits(value, parameter.type, parameter.list_length, exact)) return false;
    filled[static_cast<size_t>(at)] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!filled[i] && parameters[i].required) return false;
  return true;
}

}  // namespace

Result<Arg> Interpreter::to_arg(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kArg:
      return item.arg;
    case Item::Kind::kMaybe:
      return to_arg(item.box->items[0]);
    case Item::Kind::kList:
    case Item::Kind::kTuple: {
      if (item.box->sequence) return unsupported("a list whose length depends on data");
      std::vector<Arg> list;
      for (const Item& part : item.box->items) {
        if (part.is(Item::Kind::kMaybe))
          return unsupported("a list with an Optional that is only known when the model runs");
        TRY(Arg arg, to_arg(part));
        list.push_back(std::move(arg));
      }
      return Arg(std::move(list));
    }
    default:
      return unsupported(kind_of(item) + " as the argument of an operator");
  }
}

Item Interpreter::from_arg(const Arg& arg) {
  if (arg.kind != AKind::kList) return Item(arg);
  Items items;
  for (const Arg& part : arg.list) items.push_back(from_arg(part));
  return Item::list(std::move(items));
}

Result<const Operator*> Interpreter::overload(
    std::string_view base, const std::vector<Arg>& args,
    const std::vector<std::pair<std::string, Arg>>& named) {
  std::vector<const Operator*> candidates = pytorch::overloads_of(base);
  if (candidates.empty()) {
    const std::string functional = pytorch::functional_name(base);
    if (!functional.empty()) candidates = pytorch::overloads_of(functional);
  }
  if (candidates.empty()) return unsupported("operator " + std::string(base));
  for (const bool exact : {true, false})
    for (const Operator* op : candidates)
      if (matches(*op, args, named, exact)) return op;
  std::string kinds;
  for (const Arg& arg : args)
    kinds += (kinds.empty() ? "" : ", ") + std::string(pytorch::kind_name(arg));
  return unsupported("operator " + std::string(base) + " with the arguments (" + kinds + ")");
}

/// Functions with a fixed range have a scale and zero point of their own.
std::shared_ptr<const pytorch::Quantization> Interpreter::own_quantization(
    const std::string& overload, std::shared_ptr<const pytorch::Quantization> given) {
  const std::string base = overload.substr(0, overload.find('.'));
  const bool unit = base == "sigmoid" || base == "hardsigmoid";
  if ((!unit && base != "tanh") || given->axis >= 0) return given;
  const DType type = c.b.dtype(given->zero_point);
  if (type != DType::kUInt8 && type != DType::kInt8) return given;
  auto made = std::make_shared<pytorch::Quantization>();
  made->scale = c.b.scalar(unit ? 1.0 / 256 : 2.0 / 256, DType::kFloat32);
  const double lowest = type == DType::kUInt8 ? 0 : -128;
  made->zero_point = c.b.scalar(unit ? lowest : lowest + 128, type);
  return made;
}

namespace {

/// Averages of quantised tensors are those of their integers, rounded once: a scale would move the
/// halves, of which there are many.
bool averages_integers(std::string_view overload) {
  const std::string_view base = overload.substr(0, overload.find('.'));
  return base.starts_with("avg_pool") || base.starts_with("adaptive_avg_pool") ||
         base == "upsample_bilinear2d" || base == "upsample_linear1d";
}

}  // namespace

/// An operator that takes None for an argument that may be None: it is called in two ways.
Result<std::optional<Item>> Interpreter::split_optionals(std::string_view name, const Items& args,
                                                         const NamedItems& named) {
  const auto maybe = [](const Item& item) { return item.is(Item::Kind::kMaybe); };
  struct Call : Choice {
    Interpreter& in;
    std::string name;
    Items args;
    NamedItems named;
    Item* place = nullptr;
    Call(Interpreter& owner, std::string_view what, const Items& list, const NamedItems& by_name)
        : in(owner), name(what), args(list), named(by_name) {}
    Result<Item> run(const Item& item) override {
      *place = item;
      return in.aten(name, args, named);
    }
  } call(*this, name, args, named);
  for (Item& item : call.args)
    if (maybe(item) && call.place == nullptr) call.place = &item;
  for (auto& [key, item] : call.named)
    if (maybe(item) && call.place == nullptr) call.place = &item;
  if (call.place == nullptr) return std::optional<Item>();
  // Where None is no argument the value must be there.
  const Item given = *call.place;
  std::vector<Arg> plain;
  std::vector<std::pair<std::string, Arg>> by_name;
  for (const Item& item : call.args) {
    if (&item == call.place) {
      plain.emplace_back();
      continue;
    }
    TRY(Arg arg, to_arg(item));
    plain.push_back(std::move(arg));
  }
  for (const auto& [key, item] : call.named) {
    Arg arg;
    if (&item != call.place) {
      TRY(arg, to_arg(item));
    }
    by_name.emplace_back(key, std::move(arg));
  }
  const std::string base(name.substr(0, name.find('.')));
  if (frames_.empty() || !overload(base, plain, by_name).ok()) {
    TRY(Item item, call.run(given.box->items[0]));
    return std::optional<Item>(std::move(item));
  }
  TRY(Item item, choose(given, call));
  return std::optional<Item>(std::move(item));
}

Result<Item> Interpreter::aten(std::string_view name, Items args, NamedItems named) {
  TRY(std::optional<Item> split, split_optionals(name, args, named));
  if (split) return *std::move(split);
  std::vector<Arg> plain;
  std::vector<std::pair<std::string, Arg>> by_name;
  // Quantised tensors: computed in real numbers and quantised again.
  std::shared_ptr<const pytorch::Quantization> quantization, kept;
  if (averages_integers(name) && !args.empty() && args[0].is_tensor() &&
      args[0].arg.tensor->quantization && args[0].arg.tensor->quantization->axis < 0) {
    kept = args[0].arg.tensor->quantization;
    auto unit = std::make_shared<pytorch::Quantization>(*kept);
    unit->scale = c.b.scalar(1, DType::kFloat32);
    const Ref& given = args[0].arg.tensor;
    Ref steps = c.cell(c.read(given), given->dtype);
    steps->quantization = std::move(unit);
    args[0] = Item(Arg(std::move(steps)));
  }
  for (Item& item : args) {
    if (item.is_tensor() && item.arg.tensor->quantization) {
      if (!quantization) quantization = item.arg.tensor->quantization;
      TRY(item, dequantized(item));
    }
    if (item.is_sequence() && !item.box->sequence) {
      for (Item& part : item.box->items)
        if (part.is_tensor() && part.arg.tensor->quantization) {
          if (!quantization) quantization = part.arg.tensor->quantization;
          Items copies = item.box->items;
          for (Item& copy : copies) {
            TRY(copy, dequantized(copy));
          }
          item = Item::list(std::move(copies));
          break;
        }
    }
    TRY(Arg arg, to_arg(item));
    plain.push_back(std::move(arg));
  }
  for (auto& [key, item] : named) {
    TRY(Arg arg, to_arg(item));
    by_name.emplace_back(key, std::move(arg));
  }
  std::string full(name);
  if (name.find('.') == std::string_view::npos || !AtenContext::knows(name)) {
    std::string base = full.substr(0, full.find('.'));
    static const std::unordered_map<std::string_view, std::string_view> kAliases = {
        {"__and__", "bitwise_and"},           {"__or__", "bitwise_or"},
        {"__xor__", "bitwise_xor"},           {"__iand__", "bitwise_and_"},
        {"__ior__", "bitwise_or_"},           {"__ixor__", "bitwise_xor_"},
        {"__lshift__", "bitwise_left_shift"}, {"__rshift__", "bitwise_right_shift"},
    };
    const auto alias = kAliases.find(base);
    if (alias != kAliases.end() && pytorch::overloads_of(base).empty()) base = alias->second;
    TRY(const Operator* op, overload(base, plain, by_name));
    full = std::string(op->schema.name);
    const std::string plain_base = full.substr(0, full.find('.'));
    if (plain_base != base) full = base + full.substr(plain_base.size());
  }
  // Tensors that stand for numbers.
  if (const Operator* op = pytorch::find_operator_row(full)) {
    const auto to_number = [&](Arg& arg, const SchemaArg& parameter) -> Status {
      if (!arg.is_tensor() || is_complex(arg.tensor->dtype)) return ok();
      std::string_view type = parameter.type;
      if (type.ends_with('?')) type.remove_suffix(1);
      const char* function = type == "Scalar" || type == "number" ? "torch.item"
                             : type == "float"                    ? "torch.Float"
                             : type == "int" || type == "SymInt"  ? "torch.Int"
                                                                  : nullptr;
      if (function == nullptr) return ok();
      TRY(Item number, invoke(function, {Item(arg)}));
      arg = number.arg;
      return ok();
    };
    for (size_t i = 0; i < plain.size() && i < op->schema.args.size(); ++i)
      CHECK_OK(to_number(plain[i], op->schema.args[i]));
    for (auto& [key, arg] : by_name)
      if (const int at = op->schema.find(key); at >= 0)
        CHECK_OK(to_number(arg, op->schema.args[static_cast<size_t>(at)]));
  }
  auto results = c.call(full, std::move(plain), std::move(by_name));
  if (!results.ok()) return std::move(results).error().at("operator " + full);
  if (quantization) {
    quantization = own_quantization(full, quantization);
    // Integers and bools that come out (indices, comparisons) stay as they are.
    for (Arg& result : *results)
      if (result.is_tensor() && is_float(result.tensor->dtype)) {
        TRY(Item again, requantized(Item(result), quantization));
        if (kept) again.arg.tensor->quantization = kept;
        result = again.arg;
      }
  }
  if (results->empty()) return Item();
  if (results->size() == 1) return from_arg(results->front());
  Items items;
  for (const Arg& result : *results) items.push_back(from_arg(result));
  return Item::tuple(std::move(items));
}

Result<Item> Interpreter::invoke(const std::string& name, Items args, NamedItems named) {
  std::string base = name;
  for (const std::string_view prefix :
       {"torch._C._nn.", "torch._C._special.", "torch._C._fft.", "torch._C._linalg.", "torch.",
        "ops.prim.", "prim.", "ops.aten."})
    if (base.starts_with(prefix)) {
      base = base.substr(prefix.size());
      break;
    }
  if (base.starts_with("ops.")) {
    // ops.torchvision.nms
    base = base.substr(4);
    const size_t dot = base.find('.');
    if (dot != std::string::npos) base.replace(dot, 1, "::");
  }
  const auto found = builtin_index().find(base);
  if (found != builtin_index().end()) {
    // What asks whether there is a value, or puts it somewhere, takes an optional as it is; for
    // others an optional that is used has a value.
    const bool keeps = base == "__is__" || base == "__isnot__" || base == "append" ||
                       base == "_set_item" || base == "insert" || base == "setdefault";
    Items values = args;
    for (Item& item : values)
      if (item.is(Item::Kind::kMaybe) && !keeps) item = item.box->items[0];
    for (const Builtin builtin : found->second) {
      TRY(std::optional<Item> result, builtin(*this, values, named));
      if (result) return *std::move(result);
    }
  }
  TRY(std::optional<Item> old, upgraded(base, args, named));
  if (old) return *std::move(old);
  return aten(base, std::move(args), std::move(named));
}

Result<Item> Interpreter::call_builtin(const std::string& name, const Expr&, Items& args,
                                       NamedItems& named) {
  return invoke(name, std::move(args), std::move(named));
}

/// What operators meant in the version of PyTorch that wrote the archive.
Result<std::optional<Item>> Interpreter::upgraded(const std::string& base, Items& args,
                                                  NamedItems& named) {
  const int version = archive_.version();
  const auto integral = [](const Item& item) {
    if (item.is_tensor())
      return is_integer(item.arg.tensor->dtype) || item.arg.tensor->dtype == DType::kBool;
    return item.is_arg(AKind::kInt) || item.is_arg(AKind::kBool);
  };
  // Before 4, dividing integers truncated.
  if (version < 4 &&
      (base == "div" || base == "div_" || base == "divide" || base == "true_divide") &&
      base != "true_divide" && args.size() == 2 && named.empty() && integral(args[0]) &&
      integral(args[1])) {
    TRY(Item item, aten(base, args, {{"rounding_mode", Item(Arg("trunc"))}}));
    return std::optional<Item>(std::move(item));
  }
  // Before 5, full of an integer made floats unless told otherwise.
  if (version < 5 && base == "full" && args.size() >= 2 && integral(args[1])) {
    bool typed = args.size() > 2 && !args[2].is_none();
    for (const auto& [name, item] : named)
      if (name == "dtype") typed = !item.is_none();
    if (!typed) {
      NamedItems more = named;
      std::erase_if(more, [](const auto& pair) { return pair.first == "dtype"; });
      Items two(args.begin(), args.begin() + 2);
      more.emplace_back("dtype", Item(Arg(DType::kFloat32)));
      TRY(Item item, aten(base, std::move(two), std::move(more)));
      return std::optional<Item>(std::move(item));
    }
  }
  // Before 8, the number of steps could be left out.
  if (version < 8 && (base == "linspace" || base == "logspace") && args.size() >= 3 &&
      args[2].is_none())
    args[2] = Item(Arg(100));
  return std::optional<Item>();
}

}  // namespace tombolo::script
