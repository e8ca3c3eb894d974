#include "runtime/equivalence.h"

#include <algorithm>
#include <cmath>

#include "ops/kernel_context.h"
#include "runtime/compare.h"

namespace tombolo {
namespace {

Result<RunValue> random_value(const Type* type, std::span<const int64_t> dims,
                              RandomStream& stream) {
  if (type == nullptr) return unsupported("no random value for an input without a type");
  if (type->kind == Type::Kind::kOptional) return RunValue::empty_optional();
  if (type->kind == Type::Kind::kSequence && type->element != nullptr &&
      type->element->is_tensor()) {
    SequenceValue sequence;
    sequence.elem = type->element->dtype();
    const int64_t item[] = {2};
    const bool open = !type->element->has_shape;
    std::vector<int64_t> lengths;
    for (const Dim& dim : type->element->dims)
      lengths.push_back(dim.kind == Dim::Kind::kValue ? dim.value : 2);
    for (int i = 0; i < 2; ++i) {
      TRY(RunValue value,
          random_value(type->element, open ? std::span<const int64_t>(item) : lengths, stream));
      sequence.items.push_back(std::move(value));
    }
    return RunValue(std::move(sequence));
  }
  if (!type->is_tensor()) return unsupported("no random value of type " + to_string(*type));
  const DType dtype = type->dtype();
  if (dtype == DType::kString) {
    const int64_t count = element_count(dims);
    if (count < 0) return usage_error("negative size");
    std::vector<std::string> strings;
    for (int64_t i = 0; i < count; ++i)
      strings.emplace_back(1, static_cast<char>('a' + stream.next() % 10));
    return RunValue(Tensor::of_strings(dims, std::move(strings)));
  }
  if (dtype == DType::kUndefined || is_complex(dtype))
    return unsupported("no random value of type " + to_string(*type));
  TRY(Tensor tensor, Tensor::allocate(dtype, dims));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (is_float(dtype))
      tensor.set_double(i, stream.next_normal());
    else if (dtype == DType::kBool)
      tensor.set_int64(i, static_cast<int64_t>(stream.next() & 1));
    else
      tensor.set_int64(i, static_cast<int64_t>(stream.next() % 10));
  }
  return RunValue(std::move(tensor));
}

Tolerance tolerance_for(const RunValue& expected, double& largest) {
  largest = 0;
  if (!expected.is_tensor() || !is_float(expected.tensor().dtype())) return {};
  const Tensor& tensor = expected.tensor();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = std::abs(tensor.get_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  Tolerance tolerance = default_tolerance(tensor.dtype());
  tolerance.rtol = std::max(tolerance.rtol, 1e-3);
  tolerance.atol = std::max(tolerance.atol, std::max(1e-5, tolerance.rtol / 100) * largest);
  return tolerance;
}

}  // namespace

Result<std::vector<NamedValue>> random_inputs(const Session& session,
                                              const RandomInputOptions& options) {
  RandomStream stream = RandomStream::seeded(options.seed * 1000003 + 17);
  std::map<std::string, int64_t, std::less<>> symbols;
  const auto size = [&]() -> int64_t {
    return options.vary ? static_cast<int64_t>(2 + stream.next() % 4) : 1;
  };
  // Sizes that the caller gives settle names for the other inputs too.
  for (const SessionPort& port : session.inputs()) {
    const auto own = options.dims.find(port.name);
    if (own == options.dims.end() || port.type == nullptr) continue;
    for (size_t i = 0; i < port.type->dims.size() && i < own->second.size(); ++i)
      if (port.type->dims[i].kind == Dim::Kind::kParam)
        symbols.emplace(std::string(port.type->dims[i].param), own->second[i]);
  }
  std::vector<NamedValue> values;
  for (const SessionPort& port : session.inputs()) {
    if (port.has_default) continue;
    std::vector<int64_t> dims;
    if (const auto own = options.dims.find(port.name); own != options.dims.end()) {
      dims = own->second;
    } else if (port.type != nullptr && port.type->is_tensor()) {
      for (const Dim& dim : port.type->dims)
        dims.push_back(dim.kind == Dim::Kind::kValue ? dim.value
                       : dim.kind == Dim::Kind::kParam && !dim.param.empty()
                           ? symbols.try_emplace(std::string(dim.param), size()).first->second
                           : size());
    }
    auto value = random_value(port.type, dims, stream);
    if (!value) return std::move(value).error().at("input \"" + port.name + "\"");
    values.push_back({port.name, *std::move(value)});
  }
  return values;
}

Result<Equivalence> compare_models(const Session& before, const Session& after, int runs,
                                   RandomInputOptions options,
                                   const std::vector<NamedValue>& given) {
  Equivalence result;
  const uint64_t seed = options.seed;
  for (int run = 0; run < runs && result.equal; ++run) {
    options.seed = seed + static_cast<uint64_t>(run);
    for (const NamedValue& one : given)
      if (one.value.is_tensor())
        options.dims[one.name].assign(one.value.tensor().dims().begin(),
                                      one.value.tensor().dims().end());
    TRY(std::vector<NamedValue> inputs, random_inputs(before, options));
    std::erase_if(inputs, [&](const NamedValue& value) {
      return std::any_of(given.begin(), given.end(),
                         [&](const NamedValue& own) { return own.name == value.name; });
    });
    inputs.insert(inputs.end(), given.begin(), given.end());
    auto expected = before.run(inputs);
    auto actual = after.run(inputs);
    const std::string place = "run " + std::to_string(run + 1);
    if (!expected && !actual) continue;
    if (!expected) {
      // The original fails where the result does not: nothing to compare with.
      return std::move(expected).error().at("the model before");
    }
    if (!actual) return std::move(actual).error().at("the model after");
    ++result.runs;
    if (expected->size() != actual->size()) {
      result = {false, place + ": another number of outputs", 0, result.runs};
      break;
    }
    for (size_t i = 0; i < expected->size(); ++i) {
      const std::string& name = before.outputs()[i].name;
      double largest = 0;
      const Tolerance tolerance = tolerance_for((*expected)[i], largest);
      const Comparison compared = compare((*actual)[i], (*expected)[i], &tolerance);
      if (largest > 0)
        result.max_relative = std::max(result.max_relative, compared.max_abs / largest);
      if (name != after.outputs()[i].name) {
        result.equal = false;
        result.difference = "output " + std::to_string(i) + " is named " + after.outputs()[i].name +
                            ", not " + name;
      } else if (!compared.equal) {
        result.equal = false;
        result.difference = place + ": output " + name + ": " + compared.reason;
      }
      if (!result.equal) break;
    }
  }
  return result;
}

}  // namespace tombolo
