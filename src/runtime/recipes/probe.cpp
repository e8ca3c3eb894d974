#include <cmath>

#include "runtime/recipes/numbers.h"
#include "runtime/recipes/recipe.h"

namespace tombolo {

namespace {

/// How far a result may lie from the one in double, for its own rounding and that of what it is
/// made of: relative, and absolute for numbers of the size that recipes use.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-6;
    case DType::kFloat32:
    case DType::kComplex64:
    case DType::kComplex128:
      return 1e-4;
    case DType::kFloat16:
      return 1e-2;
    case DType::kBFloat16:
      return 6e-2;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
      return 0.2;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat6E2M3:
    case DType::kFloat6E3M2:
      return 0.3;
    case DType::kFloat4E2M1:
    case DType::kFloat8E8M0:
      return 0.5;
    default:
      return 0;
  }
}

DType dtype_in(const RunValue& value) {
  switch (value.kind()) {
    case RunValue::Kind::kTensor:
      return value.tensor().dtype();
    case RunValue::Kind::kSequence:
      return value.sequence().elem != DType::kUndefined || value.sequence().size() == 0
                 ? value.sequence().elem
                 : dtype_in(value.sequence().item(0));
    case RunValue::Kind::kOptional:
      return value.optional_content() != nullptr ? dtype_in(*value.optional_content())
                                                 : DType::kUndefined;
    case RunValue::Kind::kMap:
      return value.map().size() == 0 ? DType::kUndefined : dtype_in(value.map().value(0));
    default:
      return DType::kUndefined;
  }
}

/// Whether a value has the kind and element type that is declared.
bool has_type(const RunValue& value, const Type& type) {
  switch (type.kind) {
    case Type::Kind::kTensor:
      return value.is_tensor() && value.tensor().dtype() == type.dtype();
    case Type::Kind::kSequence:
      if (value.kind() != RunValue::Kind::kSequence) return false;
      for (const RunValue& item : value.sequence().items)
        if (type.element != nullptr && !has_type(item, *type.element)) return false;
      return true;
    case Type::Kind::kOptional:
      return value.kind() == RunValue::Kind::kOptional &&
             (value.optional_content() == nullptr || type.element == nullptr ||
              has_type(*value.optional_content(), *type.element));
    case Type::Kind::kMap:
      return value.kind() == RunValue::Kind::kMap;
    default:
      return true;
  }
}

/// The type in which the same recipe is computed for comparison: integers by int64, the rest by
/// double, as far as the operator takes them.
std::optional<ValueType> wide_type(TypeSet allowed, ValueType type) {
  constexpr DType kForIntegers[] = {DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat32};
  constexpr DType kForOthers[] = {DType::kFloat64, DType::kFloat32, DType::kInt64};
  const std::vector<ValueType> all = members_of(allowed);
  const auto find = [&](DType dtype) -> std::optional<ValueType> {
    for (const ValueType& candidate : all)
      if (candidate.kind == type.kind && candidate.dtype == dtype && dtype != type.dtype)
        return candidate;
    return std::nullopt;
  };
  if (type.kind == ValueType::Kind::kMap) return std::nullopt;
  if (is_integer(type.dtype)) {
    for (const DType dtype : kForIntegers)
      if (const auto wide = find(dtype)) return wide;
  } else {
    for (const DType dtype : kForOthers)
      if (const auto wide = find(dtype)) return wide;
  }
  return std::nullopt;
}

/// `wide` as the type `dtype` holds it.
double rounded(double wide, DType dtype) {
  if (is_string(dtype) || is_complex(dtype)) return wide;
  if (dtype == DType::kBool) return wide != 0 ? 1 : 0;
  auto one = Tensor::allocate(dtype, {});
  if (!one) return wide;
  if (is_float(dtype)) {
    one->set_double(0, wide);
    return one->get_double(0);
  }
  one->set_int64(0, std::isfinite(wide) ? static_cast<int64_t>(wide) : 0);
  return static_cast<double>(one->get_int64(0));
}

/// What differs, or nothing.
std::string difference(const RunValue& actual, const RunValue& wide, double tolerance) {
  Numbers a, w;
  collect_numbers(actual, a);
  collect_numbers(wide, w);
  if (a.values.size() != w.values.size() || a.shapes.size() != w.shapes.size())
    return "has " + std::to_string(a.values.size()) + " elements, " +
           std::to_string(w.values.size()) + " in the wide type";
  for (size_t i = 0; i < a.shapes.size(); ++i)
    if (!(a.shapes[i] == w.shapes[i])) return "has another shape than in the wide type";
  const DType dtype = dtype_in(actual);
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double expected = rounded(w.values[i], dtype), got = a.values[i];
    if (got == expected || (std::isnan(got) && std::isnan(expected))) continue;
    const double error = std::fabs(got - expected);
    const double allowed = tolerance * std::max(1.0, std::fabs(expected));
    if (error <= allowed) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got) + ", in the wide type " +
           std::to_string(w.values[i]);
  }
  return {};
}

}  // namespace

ProbeResult probe(const OpVersion& version, size_t variable, ValueType type) {
  ProbeResult result;
  const Recipe* recipe = find_recipe(version);
  if (recipe == nullptr) {
    result.reason = "no recipe";
    return result;
  }
  if (!recipe_uses(version, *recipe, variable)) {
    result.reason = "the recipe does not use this type variable";
    return result;
  }
  const auto describe = [](const Error& error) {
    return error.where.empty() ? error.message : error.where + ": " + error.message;
  };
  const TypeAssignment types = assign_types(version, *recipe, variable, type);
  auto run = open_recipe(version, *recipe, types);
  if (!run) {
    result.reason = describe(run.error());
    return result;
  }
  auto outputs = run->session->run(run->inputs);
  if (!outputs) {
    result.reason = describe(outputs.error());
    return result;
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    const SessionPort& port = run->session->outputs()[i];
    if (port.type != nullptr && !has_type((*outputs)[i], *port.type)) {
      result.reason = "output " + port.name + " has another type than declared";
      return result;
    }
  }
  result.runs = true;
  const auto wide = wide_type(version.types[variable].allowed, type);
  if (!wide || recipe_flag(*recipe, "unchecked") ||
      recipe_flag(*recipe, "unchecked " + std::string(name_of(type.dtype))))
    return result;
  const TypeAssignment wide_types = assign_types(version, *recipe, variable, *wide);
  auto wide_run = open_recipe(version, *recipe, wide_types, &run->inputs);
  if (!wide_run) return result;
  auto wide_outputs = wide_run->session->run(wide_run->inputs);
  if (!wide_outputs) return result;
  double tolerance = 0;
  for (const ValueType& each : types) tolerance = std::max(tolerance, tolerance_of(each.dtype));
  for (const RunValue& output : *outputs)
    tolerance = std::max(tolerance, tolerance_of(dtype_in(output)));
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (is_string(dtype_in((*outputs)[i])) != is_string(dtype_in((*wide_outputs)[i])) &&
        recipe_flag(*recipe, "text"))
      continue;  // the text of a number, not the number
    const double allowed = is_integer(dtype_in((*outputs)[i])) ? 0 : tolerance;
    if (std::string reason = difference((*outputs)[i], (*wide_outputs)[i], allowed);
        !reason.empty()) {
      result.runs = false;
      result.reason = "output " + run->session->outputs()[i].name + ": " + reason;
      return result;
    }
  }
  result.checked = true;
  return result;
}

}  // namespace tombolo
