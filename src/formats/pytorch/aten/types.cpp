// Result types as torch.result_type finds them, and operands brought to a type.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

int integer_rank(DType type) {
  switch (type) {
    case DType::kBool:
      return 0;
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kUInt16:
    case DType::kInt16:
      return 2;
    case DType::kUInt32:
    case DType::kInt32:
      return 3;
    default:
      return 4;
  }
}

DType signed_of_rank(int rank) {
  constexpr DType kTypes[] = {DType::kInt8, DType::kInt8, DType::kInt16, DType::kInt32,
                              DType::kInt64};
  return kTypes[std::min(rank, 4)];
}

DType promote_pair(DType a, DType b) {
  if (a == DType::kUndefined) return b;
  if (b == DType::kUndefined || a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == DType::kComplex128 || b == DType::kComplex128 || a == DType::kFloat64 ||
                      b == DType::kFloat64;
    return wide ? DType::kComplex128 : DType::kComplex64;
  }
  if (is_float(a) && is_float(b)) {
    if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
    return DType::kFloat32;  // two different ones below double
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  const int rank_a = integer_rank(a), rank_b = integer_rank(b);
  const bool signed_a = is_signed_integer(a), signed_b = is_signed_integer(b);
  if (signed_a == signed_b) return rank_a > rank_b ? a : b;
  const int of_unsigned = signed_a ? rank_b : rank_a, of_signed = signed_a ? rank_a : rank_b;
  return signed_of_rank(of_signed > of_unsigned ? of_signed : of_unsigned + 1);
}

DType combine(DType higher, DType lower) {
  if (is_complex(higher)) return higher;
  if (is_float(higher)) return is_complex(lower) ? AtenContext::complex_of(higher) : higher;
  if (higher == DType::kBool || is_float(lower) || is_complex(lower))
    return promote_pair(higher, lower);
  return higher != DType::kUndefined ? higher : lower;
}

}  // namespace

DType AtenContext::real_of(DType type) {
  if (type == DType::kComplex64) return DType::kFloat32;
  return type == DType::kComplex128 ? DType::kFloat64 : type;
}

DType AtenContext::complex_of(DType type) {
  return type == DType::kFloat64 || type == DType::kComplex128 ? DType::kComplex128
                                                               : DType::kComplex64;
}

DType AtenContext::promote(std::span<const Arg> args, Promotion rule) {
  DType dimensioned = DType::kUndefined, scalar_type = DType::kUndefined,
        number = DType::kUndefined;
  const auto visit = [&](const Arg& arg, const auto& self) -> void {
    switch (arg.kind) {
      case Arg::Kind::kTensor: {
        const DType type = arg.tensor->dtype;
        const int64_t pair_axis = tombolo::is_complex(type) ? 1 : 0;
        if (arg.tensor->number) {
          number = promote_pair(number, pair_axis != 0   ? complex_of(default_float)
                                        : is_float(type) ? default_float
                                                         : type);
          break;
        }
        Value* value = read(arg.tensor);
        DType& kind = b.has_shape(value) && b.rank(value) <= pair_axis ? scalar_type : dimensioned;
        kind = promote_pair(kind, type);
        break;
      }
      case Arg::Kind::kInt:
        number = promote_pair(number, DType::kInt64);
        break;
      case Arg::Kind::kBool:
        number = promote_pair(number, DType::kBool);
        break;
      case Arg::Kind::kFloat:
        number = promote_pair(number, default_float);
        break;
      case Arg::Kind::kComplex:
        number = promote_pair(number, complex_of(default_float));
        break;
      case Arg::Kind::kList:
        for (const Arg& item : arg.list) self(item, self);
        break;
      default:
        break;
    }
  };
  for (const Arg& arg : args) visit(arg, visit);
  DType result = combine(combine(dimensioned, scalar_type), number);
  switch (rule) {
    case Promotion::kDefault:
      break;
    case Promotion::kIntToFloat:
      if (is_integer(result) || result == DType::kBool) result = default_float;
      break;
    case Promotion::kComplexToFloat:
      result = real_of(result);
      break;
    case Promotion::kBoolToInt:
      if (is_integer(result) || result == DType::kBool) result = DType::kInt64;
      break;
  }
  return result;
}

DType AtenContext::promote(std::initializer_list<std::string_view> names, Promotion rule) {
  Args args;
  for (const std::string_view name : names) args.push_back(arg(name));
  return promote(args, rule);
}

Value* AtenContext::cast(Value* value, DType type) {
  return type == DType::kUndefined || b.dtype(value) == type ? value : b.cast(value, type);
}

Value* AtenContext::to_complex(Value* real_value, DType type) {
  Value* re_part = cast(real_value, real_of(type));
  // Not 0 times the real part: that of an infinite one is no number.
  if (has_rank(re_part)) return pair(re_part, full(sizes(re_part), 0, real_of(type)));
  return pair(re_part, mul(re_part, scalar(0, real_of(type))));
}

Value* AtenContext::operand(std::string_view name, DType type) {
  return operand_of(arg(name), type);
}

Value* AtenContext::operand_of(const Arg& arg, DType type) {
  const bool complex = tombolo::is_complex(type);
  switch (arg.kind) {
    case Arg::Kind::kTensor: {
      Value* value = read(arg.tensor);
      if (complex && !tombolo::is_complex(arg.tensor->dtype)) return to_complex(value, type);
      if (!complex && tombolo::is_complex(arg.tensor->dtype)) value = re(value);
      return cast(value, real_of(type));
    }
    case Arg::Kind::kInt: {
      if (arg.integer.is_number()) {
        const int64_t number = arg.integer.dim.value();
        if (complex) break;
        if (is_integer(type)) {
          auto tensor = Tensor::allocate(type, {});
          if (!tensor) break;
          tensor->set_int64(0, number);
          return b.constant(*tensor, "scalar");
        }
        return scalar(static_cast<double>(number), type);
      }
      Value* value = cast(int_value(arg.integer), real_of(type));
      return complex ? to_complex(value, type) : value;
    }
    case Arg::Kind::kFloat:
    case Arg::Kind::kBool: {
      if (arg.computed) {
        Value* value = cast(arg.computed, real_of(type));
        return complex ? to_complex(value, type) : value;
      }
      if (complex) break;
      const double number = arg.kind == Arg::Kind::kBool
                                ? static_cast<double>(arg.integer.dim.constant().value_or(0))
                                : arg.real;
      if (type == DType::kBool) return scalar(number != 0, type);
      return scalar(number, type);
    }
    case Arg::Kind::kComplex:
      break;
    default:
      refuse(std::string(kind_name(arg)) + " stands where a tensor or number must");
      return placeholder();
  }
  const double re_part = arg.kind == Arg::Kind::kInt || arg.kind == Arg::Kind::kBool
                             ? static_cast<double>(arg.integer.dim.constant().value_or(0))
                             : arg.real;
  if (!complex) return scalar(re_part, type);
  return pair(scalar(re_part, real_of(type)), scalar(arg.imaginary, real_of(type)));
}

Value* AtenContext::re(Value* complex) {
  return op("Gather", {complex, b.int_scalar(0)}, {{"axis", int64_t{-1}}});
}
Value* AtenContext::im(Value* complex) {
  return op("Gather", {complex, b.int_scalar(1)}, {{"axis", int64_t{-1}}});
}
Value* AtenContext::pair(Value* re_part, Value* im_part) {
  const int64_t last = std::max(b.rank(re_part), b.rank(im_part));
  if (b.rank(re_part) != b.rank(im_part)) {
    // Broadcast the smaller one first: Concat does not.
    Value* zero = mul(b.rank(re_part) < b.rank(im_part) ? im_part : re_part, like(0, re_part));
    (b.rank(re_part) < b.rank(im_part) ? re_part : im_part) =
        add(b.rank(re_part) < b.rank(im_part) ? re_part : im_part, zero);
  }
  return concat({b.unsqueeze(re_part, {last}), b.unsqueeze(im_part, {last})}, last);
}

}  // namespace tombolo::pytorch
