// What asks a tensor for its properties, moves between tensors and numbers, or means something of
// its own in TorchScript.

#include <algorithm>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

bool first_tensor(const Items& args) { return !args.empty() && args[0].is_tensor(); }

Item device() {
  Arg arg;
  arg.kind = AKind::kOther;
  return Item(std::move(arg));
}

/// Sizes of a tensor as the program sees them: a complex one without the axis of its pairs.
Result<std::vector<SymInt>> sizes_of(Interpreter& in, const Item& tensor) {
  AtenContext& c = in.context();
  Value* value = c.read(tensor.arg.tensor);
  if (!c.has_rank(value)) return unsupported("the rank of a tensor is not known here");
  std::vector<SymInt> sizes = c.sizes(value);
  if (is_complex(tensor.arg.tensor->dtype) && !sizes.empty()) sizes.pop_back();
  return sizes;
}

Answer size(Interpreter& in, Items& args, NamedItems& named) {
  if (!first_tensor(args)) return not_mine();
  TRY(auto sizes, sizes_of(in, args[0]));
  const Item* axis = args.size() > 1 ? &args[1] : nullptr;
  for (const auto& [name, item] : named)
    if (name == "dim") axis = &item;
  if (axis == nullptr || axis->is_none()) {
    Items items;
    for (SymInt& one : sizes) items.emplace_back(Arg(std::move(one)));
    return answer(Item::list(std::move(items)));
  }
  if (!axis->is_arg(AKind::kInt) || !axis->arg.integer.is_number())
    return unsupported("the size of an axis that depends on data");
  const auto rank = static_cast<int64_t>(sizes.size());
  int64_t at = axis->arg.integer.dim.value();
  if (at < 0) at += rank;
  if (at < 0 || at >= rank)
    return unsupported("axis " + std::to_string(axis->arg.integer.dim.value()) +
                       " of a tensor of rank " + std::to_string(rank));
  return answer(Item(Arg(sizes[static_cast<size_t>(at)])));
}

Answer rank(Interpreter& in, Items& args, NamedItems&) {
  if (!first_tensor(args)) return not_mine();
  TRY(auto sizes, sizes_of(in, args[0]));
  return answer(Item(Arg(static_cast<int64_t>(sizes.size()))));
}

Answer numel(Interpreter& in, Items& args, NamedItems&) {
  if (!first_tensor(args)) return not_mine();
  TRY(auto sizes, sizes_of(in, args[0]));
  SymInt product(1);
  for (const SymInt& one : sizes) product = in.context().mul(product, one);
  return answer(Item(Arg(product)));
}

Answer dtype(Interpreter&, Items& args, NamedItems&) {
  if (!first_tensor(args)) return not_mine();
  // Types are numbers in TorchScript.
  const Ref& tensor = args[0].arg.tensor;
  for (int64_t number = 0; number < 48; ++number) {
    if (tensor->quantization) {
      const torch::ElementType* type = torch::element_type_of_number(number);
      if (type && type->quantised && type->dtype == tensor->dtype) return answer(Item(Arg(number)));
    } else if (pytorch::dtype_from_c10(number) == tensor->dtype) {
      return answer(Item(Arg(number)));
    }
  }
  return answer(Item(Arg(tensor->dtype)));
}

template <bool (*Test)(DType)>
Answer type_test(Interpreter&, Items& args, NamedItems&) {
  if (!first_tensor(args)) return not_mine();
  return answer(Item(Arg(Test(args[0].arg.tensor->dtype))));
}

Answer is_contiguous(Interpreter&, Items& args, NamedItems& named) {
  if (!first_tensor(args) || args.size() > 1 || !named.empty()) return answer(Item(Arg(true)));
  return answer(Item(Arg(args[0].arg.tensor->layout != pytorch::CellLayout::kStrided)));
}

Answer say_true(Interpreter&, Items&, NamedItems&) { return answer(Item(Arg(true))); }
Answer say_false(Interpreter&, Items&, NamedItems&) { return answer(Item(Arg(false))); }
Answer say_none(Interpreter&, Items&, NamedItems&) { return answer(Item()); }
Answer say_zero(Interpreter&, Items&, NamedItems&) { return answer(Item(Arg(0))); }
Answer say_device(Interpreter&, Items&, NamedItems&) { return answer(device()); }
Answer device_kind(Interpreter&, Items&, NamedItems&) {
  return answer(Item(Arg(std::string("cpu"))));
}

/// Functions that give back the tensor itself.
Answer itself(Interpreter&, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  if (args[0].kind == Item::Kind::kMaybe) return answer(args[0].box->items[0]);
  return answer(args[0]);
}

Answer number_to_tensor(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  if (args[0].is_tensor()) return answer(args[0]);
  if (!args[0].is_number()) return not_mine();
  AtenContext& c = in.context();
  // A number that a tensor held is a tensor of that number: no type is lost.
  const DType type = args[0].arg.kind == AKind::kFloat  ? DType::kFloat64
                     : args[0].arg.kind == AKind::kBool ? DType::kBool
                                                        : DType::kInt64;
  return answer(Item(Arg(c.cell(c.operand_of(args[0].arg, type)))));
}

/// Flattens nested lists of numbers (or 0-d tensors) and finds their shape.
Status flatten(const Item& item, size_t depth, std::vector<int64_t>& dims,
               std::vector<Item>& leaves) {
  if (!item.is_sequence()) {
    leaves.push_back(item);
    return ok();
  }
  if (item.box->sequence) return unsupported("a tensor of lists whose length depends on data");
  const auto length = static_cast<int64_t>(item.box->items.size());
  if (dims.size() <= depth) dims.push_back(length);
  if (dims[depth] != length || depth > 16)
    return unsupported("a tensor of lists of unequal length");
  for (const Item& part : item.box->items) CHECK_OK(flatten(part, depth + 1, dims, leaves));
  return ok();
}

Answer tensor_of(Interpreter& in, Items& args, NamedItems& named) {
  if (args.empty()) return not_mine();
  AtenContext& c = in.context();
  std::optional<DType> wanted;
  const auto type_of = [](const Item& item) -> std::optional<DType> {
    if (item.is_arg(AKind::kDType)) return item.arg.dtype;
    if (item.is_arg(AKind::kInt) && item.arg.integer.is_number())
      return pytorch::dtype_from_c10(item.arg.integer.dim.value());
    return std::nullopt;
  };
  for (const auto& [name, item] : named)
    if (name == "dtype") wanted = type_of(item);
  if (args.size() > 1) wanted = type_of(args[1]);
  if (args[0].is_tensor()) {
    Value* value = c.read(args[0].arg.tensor);
    return answer(Item(
        Arg(wanted ? c.cell(c.cast(value, *wanted)) : c.cell(value, args[0].arg.tensor->dtype))));
  }
  if (args[0].is_sequence() && args[0].box->sequence) {
    // An element more, because an empty sequence cannot be joined; it is cut off again.
    const Item like = args[0].box->keys.empty() ? Item() : args[0].box->keys[0];
    if (!like.is_number()) return unsupported("a tensor of a list of " + kind_of(like));
    const DType own = like.is_arg(AKind::kInt)    ? DType::kInt64
                      : like.is_arg(AKind::kBool) ? DType::kBool
                                                  : DType::kFloat64;
    Value* longer = c.op("SequenceInsert", {args[0].box->sequence, c.b.scalar(0, own)});
    Value* joined = c.op("ConcatFromSequence", {longer}, {{"axis", 0}, {"new_axis", 1}});
    c.b.set_type(joined, own, SymShape(1));
    Value* made = c.slice(joined, 0, SymInt(int64_t{0}), SymInt(int64_t{-1}));
    return answer(Item(Arg(
        c.cell(c.cast(made, wanted.value_or(own == DType::kFloat64 ? DType::kFloat32 : own))))));
  }
  std::vector<int64_t> dims;
  std::vector<Item> leaves;
  CHECK_OK(flatten(args[0], 0, dims, leaves));
  DType type = DType::kFloat32;
  bool known = true, any_float = leaves.empty(), any_int = false;
  for (const Item& leaf : leaves) {
    if (leaf.is_tensor()) {
      known = false;
      const DType own = leaf.arg.tensor->dtype;
      any_float = any_float || is_float(own);
      any_int = any_int || is_integer(own);
      continue;
    }
    if (!leaf.is_number()) return unsupported("a tensor of " + kind_of(leaf));
    if (leaf.arg.kind == AKind::kComplex) return not_mine();
    any_float = any_float || leaf.arg.kind == AKind::kFloat;
    any_int = any_int || leaf.arg.kind == AKind::kInt;
    known = known && !leaf.arg.computed &&
            (leaf.arg.kind == AKind::kFloat || leaf.arg.integer.is_number());
  }
  if (!any_float) type = any_int ? DType::kInt64 : DType::kBool;
  if (wanted) type = *wanted;
  if (is_complex(type)) return not_mine();
  if (known) {
    TRY(Tensor made, Tensor::allocate(type, dims));
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Arg& number = leaves[i].arg;
      if (number.kind == AKind::kFloat) {
        if (is_float(type)) {
          made.set_double(static_cast<int64_t>(i), number.real);
        } else {
          const auto whole = pytorch::to_int64(number.real);
          if (!whole) return unsupported("an integer beyond 64 bits");
          made.set_int64(static_cast<int64_t>(i), *whole);
        }
      } else if (is_float(type)) {
        made.set_double(static_cast<int64_t>(i), static_cast<double>(number.integer.dim.value()));
      } else {
        made.set_int64(static_cast<int64_t>(i), number.integer.dim.value());
      }
    }
    return answer(Item(Arg(c.cell(c.b.constant(made, "tensor")))));
  }
  if (dims.empty())
    return answer(Item(Arg(c.cell(leaves[0].is_tensor() ? c.cast(c.read(leaves[0].arg.tensor), type)
                                                        : c.operand_of(leaves[0].arg, type)))));
  std::vector<Value*> parts;
  for (const Item& leaf : leaves) {
    Value* value =
        leaf.is_tensor() ? c.cast(c.read(leaf.arg.tensor), type) : c.operand_of(leaf.arg, type);
    parts.push_back(c.reshape(value, {SymInt(1)}));
  }
  std::vector<SymInt> shape(dims.begin(), dims.end());
  return answer(Item(Arg(c.cell(c.reshape(c.concat(parts, 0), shape)))));
}

/// A tensor stays the one that it is.
Answer as_tensor(Interpreter& in, Items& args, NamedItems& named) {
  if (!first_tensor(args)) return tensor_of(in, args, named);
  const Ref before = args[0].arg.tensor;
  TRY(std::optional<Item> made, tensor_of(in, args, named));
  if (made && made->is_tensor() && made->arg.tensor->dtype == before->dtype) return answer(args[0]);
  return made;
}

/// torch.equal of a tensor and itself; others are compared by the operator.
Answer equal_tensors(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2 || !args[0].is_tensor() || !args[1].is_tensor()) return not_mine();
  AtenContext& c = in.context();
  const Ref &a = args[0].arg.tensor, &b = args[1].arg.tensor;
  if (!a->quantization && is_integer(a->dtype) && c.read(a) == c.read(b))
    return answer(Item(Arg(true)));
  // NaN differs from itself, but such a tensor is not asked for.
  if (a == b) return answer(Item(Arg(true)));
  return not_mine();
}

/// x.copy_(number), as PyTorch 1.4 writes x[0] = 1.
Answer copy_number(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 2 || !args[0].is_tensor() || !args[1].is_number()) return not_mine();
  TRY(Item item, in.aten("fill_.Scalar", {args[0], args[1]}));
  return answer(item);
}

/// Parts of a tensor of which only the model knows how many there are.
Answer parts(Interpreter& in, Items& args, NamedItems& named, bool keep, int64_t size) {
  AtenContext& c = in.context();
  Item axis_item = args.size() > (keep ? 2u : 1u) ? args[keep ? 2 : 1] : Item(Arg(0));
  for (const auto& [name, item] : named)
    if (name == "dim") axis_item = item;
  if (!axis_item.is_arg(AKind::kInt) || !axis_item.arg.integer.is_number()) return not_mine();
  if (is_complex(args[0].arg.tensor->dtype) || args[0].arg.tensor->quantization) return not_mine();
  Value* x = c.read(args[0].arg.tensor);
  if (!c.has_rank(x) || c.rank(x) == 0) return not_mine();
  const int64_t axis = c.axis(axis_item.arg.integer.dim.value(), c.rank(x));
  if (c.known(x, axis)) return not_mine();
  auto box = std::make_shared<Box>();
  SymShape shape = c.b.shape(x);
  Attrs attrs = {{"axis", axis}};
  std::vector<Value*> inputs = {x};
  if (keep) {
    shape[static_cast<size_t>(axis)] = size == 1 ? SymDim(1) : SymDim();
    inputs.push_back(c.b.int_scalar(size));
  } else {
    shape.erase(shape.begin() + axis);
    attrs.emplace_back("keepdims", int64_t{0});
  }
  box->sequence = c.op("SplitToSequence", inputs, attrs);
  c.b.set_sequence_type(box->sequence, c.b.dtype(x), &shape);
  std::vector<int64_t> dims;
  for (const SymDim& dim : shape) dims.push_back(dim.is_value() ? dim.value() : 1);
  TRY(Tensor zeros, Tensor::allocate(c.b.dtype(x), dims));
  std::fill(zeros.mutable_bytes().begin(), zeros.mutable_bytes().end(), std::byte{0});
  // What its items are like; of sizes only those that are numbers hold.
  Value* like = c.b.constant(zeros, "like");
  box->keys.push_back(Item(Arg(c.cell(like))));
  return answer(Item::of(Item::Kind::kList, std::move(box)));
}
Answer unbind(Interpreter& in, Items& args, NamedItems& named) {
  if (!first_tensor(args)) return not_mine();
  return parts(in, args, named, false, 1);
}
Answer split(Interpreter& in, Items& args, NamedItems& named) {
  if (!first_tensor(args) || args.size() < 2 || !args[1].is_arg(AKind::kInt) ||
      !args[1].arg.integer.is_number() || args[1].arg.integer.dim.value() < 1)
    return not_mine();
  return parts(in, args, named, true, args[1].arg.integer.dim.value());
}

/// x.to(...) in all its forms: what matters is the type.
Answer to(Interpreter& in, Items& args, NamedItems& named) {
  if (!first_tensor(args)) return not_mine();
  std::optional<DType> wanted;
  const auto look = [&](const Item& item, bool number_counts) {
    if (item.is_arg(AKind::kDType)) wanted = item.arg.dtype;
    if (item.is_tensor()) wanted = item.arg.tensor->dtype;
    if (number_counts && item.is_arg(AKind::kInt) && item.arg.integer.is_number())
      wanted = pytorch::dtype_from_c10(item.arg.integer.dim.value());
  };
  // (dtype, ...), (device, dtype, ...), (other, ...): a type is the first or second.
  for (size_t i = 1; i < args.size() && i < 3; ++i)
    if (!wanted) look(args[i], true);
  for (const auto& [name, item] : named)
    if (name == "dtype") look(item, true);
  if (!wanted || *wanted == args[0].arg.tensor->dtype) return answer(args[0]);
  TRY(Item item, in.aten("to.dtype", {args[0], Item(Arg(*wanted))}));
  return answer(item);
}

Answer type_as(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2 || !args[0].is_tensor() || !args[1].is_tensor()) return not_mine();
  if (args[0].arg.tensor->dtype == args[1].arg.tensor->dtype) return answer(args[0]);
  TRY(Item item, in.aten("to.dtype", {args[0], Item(Arg(args[1].arg.tensor->dtype))}));
  return answer(item);
}

/// torch.stack and torch.cat of a list whose length only the model knows.
Answer join_sequence(Interpreter& in, Items& args, NamedItems& named, bool stack) {
  if (args.empty() || !args[0].is_sequence() || !args[0].box->sequence) return not_mine();
  AtenContext& c = in.context();
  int64_t axis = 0;
  const Item* given = args.size() > 1 ? &args[1] : nullptr;
  for (const auto& [name, item] : named)
    if (name == "dim") given = &item;
  if (given) {
    if (!given->is_arg(AKind::kInt) || !given->arg.integer.is_number())
      return unsupported("an axis that depends on data");
    axis = given->arg.integer.dim.value();
  }
  Value* value = c.op("ConcatFromSequence", {args[0].box->sequence},
                      {{"axis", axis}, {"new_axis", int64_t{stack}}});
  DType type = DType::kUndefined;
  if (!args[0].box->keys.empty() && args[0].box->keys[0].is_tensor()) {
    const Ref& like = args[0].box->keys[0].arg.tensor;
    type = like->dtype;
    Value* known = c.read(like);
    if (c.b.has_shape(known) && !c.b.has_shape(value)) {
      const auto rank = static_cast<size_t>(c.b.rank(known)) + (stack ? 1 : 0);
      c.b.set_type(value, c.b.dtype(known), SymShape(rank));
    }
  }
  return answer(Item(Arg(c.cell(value, type))));
}
Answer stack(Interpreter& in, Items& args, NamedItems& named) {
  return join_sequence(in, args, named, true);
}
Answer cat(Interpreter& in, Items& args, NamedItems& named) {
  return join_sequence(in, args, named, false);
}

Answer raise_exception(Interpreter&, Items& args, NamedItems&) {
  return unsupported("the program always raises an exception here" +
                     (!args.empty() && args[0].is_text() ? ": " + args[0].arg.text.substr(0, 200)
                                                         : std::string()));
}

/// Reading a tensor into nested lists.
Answer tolist(Interpreter& in, Items& args, NamedItems&) {
  if (!first_tensor(args)) return not_mine();
  AtenContext& c = in.context();
  TRY(auto sizes, sizes_of(in, args[0]));
  if (sizes.size() != 1 || !sizes[0].is_number() || sizes[0].dim.value() > 4096)
    return unsupported("a tensor turned into a list whose length depends on data");
  Items items;
  Value* value = c.read(args[0].arg.tensor);
  for (int64_t i = 0; i < sizes[0].dim.value(); ++i) {
    TRY(Item one, in.invoke("torch.item", {Item(Arg(c.cell(c.select(value, 0, SymInt(i)))))}));
    items.push_back(std::move(one));
  }
  return answer(Item::list(std::move(items)));
}

/// aten::__interpolate of the first versions: one operator for every mode.
Answer interpolate(Interpreter& in, Items& args, NamedItems& named) {
  static constexpr const char* kNames[] = {"input",    "size",          "scale_factor",
                                           "mode",     "align_corners", "recompute_scale_factor",
                                           "antialias"};
  std::map<std::string, Item, std::less<>> given;
  for (size_t i = 0; i < args.size() && i < 7; ++i) given[kNames[i]] = args[i];
  for (const auto& [name, item] : named) given[name] = item;
  if (!given["input"].is_tensor()) return not_mine();
  TRY(auto sizes, sizes_of(in, given["input"]));
  const size_t spatial = sizes.size() < 3 ? 0 : sizes.size() - 2;
  const std::string mode = given["mode"].is_text() ? given["mode"].arg.text : "nearest";
  const auto many = [&](const Item& item) {
    if (item.is_none() || item.is_sequence()) return item;
    return Item::list(Items(spatial, item));
  };
  const Item size = many(given["size"]), scale = many(given["scale_factor"]);
  const std::string suffix = std::to_string(spatial) + "d.vec";
  const Item align = given["align_corners"].is_none() ? Item(Arg(false)) : given["align_corners"];
  if (mode == "nearest" || mode == "nearest-exact") {
    TRY(Item item,
        in.aten((mode == "nearest" ? "upsample_nearest" : "_upsample_nearest_exact") + suffix,
                {given["input"], size, scale}));
    return answer(item);
  }
  const std::string kind =
      mode == "linear" || mode == "bilinear" || mode == "trilinear" || mode == "bicubic" ? mode
                                                                                         : "";
  if (kind.empty()) return unsupported("interpolation of mode \"" + mode + "\"");
  TRY(Item item, in.aten("upsample_" + kind + suffix, {given["input"], size, align, scale}));
  return answer(item);
}

constexpr bool is_signed_type(DType type) { return is_signed_integer(type) || is_float(type); }

constexpr BuiltinRow kTensorRows[] = {
    {"size", size},
    {"shape", size},
    {"dim", rank},
    {"ndim", rank},
    {"numel", numel},
    {"dtype", dtype},
    {"is_floating_point", type_test<tombolo::is_float>},
    {"is_complex", type_test<tombolo::is_complex>},
    {"is_signed", type_test<is_signed_type>},
    {"is_cuda", say_false},
    {"is_mps", say_false},
    {"is_xla", say_false},
    {"is_sparse", say_false},
    {"is_mkldnn", say_false},
    {"is_meta", say_false},
    {"is_nested", say_false},
    // As in training: what is written for inference alone (fused kernels) is left aside.
    {"is_grad_enabled", say_true},
    {"is_autocast_enabled", say_false},
    {"is_autocast_cpu_enabled", say_false},
    {"is_scripting", say_true},
    {"is_tracing", say_false},
    {"is_contiguous", is_contiguous},
    {"requires_grad", say_true},
    {"has_torch_function", say_false},
    {"layout", say_zero},
    {"get_device", say_zero},
    {"device", say_device},
    {"type", device_kind},
    {"grad", say_none},
    {"warn", say_none},
    {"Print", say_none},
    {"set_grad_enabled", say_none},
    {"manual_seed", say_none},
    {"data", itself},
    {"detach", itself},
    {"detach_", itself},
    {"requires_grad_", itself},
    {"cpu", itself},
    {"cuda", itself},
    {"unchecked_unwrap_optional", itself},
    {"_unwrap_optional", itself},
    {"wait", itself},
    {"NumToTensor", number_to_tensor},
    {"tensor", tensor_of},
    {"as_tensor", as_tensor},
    {"to", to},
    {"copy_", copy_number},
    {"equal", equal_tensors},
    {"unbind", unbind},
    {"split", split},
    {"type_as", type_as},
    {"tolist", tolist},
    {"stack", stack},
    {"cat", cat},
    {"concat", cat},
    {"RaiseException", raise_exception},
    {"__interpolate", interpolate},
};

}  // namespace

std::span<const BuiltinRow> tensor_builtins() { return kTensorRows; }

}  // namespace tombolo::script
