#include "runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

namespace tombolo {

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
      return {1e-3, 1e-7};
    case DType::kFloat16:  // 11 bits of significand: one rounding is 5e-4, a handful add up
      return {4e-3, 1e-3};
    case DType::kBFloat16:  // 8 bits: one rounding is 4e-3
      return {3e-2, 1e-3};
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return {1e-3, 1e-7};  // results of casts: exact
    default:
      return {0, 0};
  }
}

namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

Comparison differ(std::string reason) { return {false, 0, std::move(reason)}; }

/// Element `index` as one or two real numbers.
void components(const Tensor& tensor, int64_t index, double out[2]) {
  out[1] = 0;
  if (tensor.dtype() == DType::kComplex64) {
    out[0] = static_cast<double>(tensor.data<float>()[2 * index]);
    out[1] = static_cast<double>(tensor.data<float>()[2 * index + 1]);
  } else if (tensor.dtype() == DType::kComplex128) {
    out[0] = tensor.data<double>()[2 * index];
    out[1] = tensor.data<double>()[2 * index + 1];
  } else {
    out[0] = tensor.get_double(index);
  }
}

Comparison compare_tensors(const Tensor& given_actual, const Tensor& given_expected,
                           const Tolerance* override_floats) {
  if (given_actual.dtype() != given_expected.dtype() ||
      !(given_actual.dims() == given_expected.dims()))
    return differ("got " + to_string(given_actual) + ", expected " + to_string(given_expected));
  if (given_actual.is_string()) {
    for (int64_t i = 0; i < given_actual.size(); ++i)
      if (given_actual.strings()[static_cast<size_t>(i)] !=
          given_expected.strings()[static_cast<size_t>(i)])
        return differ("element " + std::to_string(i) + " is \"" +
                      given_actual.strings()[static_cast<size_t>(i)] + "\", expected \"" +
                      given_expected.strings()[static_cast<size_t>(i)] + "\"");
    return {};
  }
  Tensor actual = given_actual, expected = given_expected;
  for (Tensor* tensor : {&actual, &expected})
    if (!tensor->aligned())
      if (auto copy = tensor->clone()) *tensor = *std::move(copy);
  const DType dtype = actual.dtype();
  const bool real = is_float(dtype) || is_complex(dtype);
  Tolerance tolerance = default_tolerance(dtype);
  if (real && override_floats != nullptr) tolerance = *override_floats;
  Comparison result;
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (!real) {
      if (actual.get_int64(i) != expected.get_int64(i)) {
        if (wrong++ == 0) first = i;
        result.max_abs =
            std::max(result.max_abs, std::fabs(actual.get_double(i) - expected.get_double(i)));
      }
      continue;
    }
    double a[2], e[2];
    components(actual, i, a);
    components(expected, i, e);
    for (int k = 0; k < 2; ++k) {
      if (std::isnan(a[k]) && std::isnan(e[k])) continue;
      if (a[k] == e[k]) continue;
      const double error = std::fabs(a[k] - e[k]);
      if (std::isfinite(error)) result.max_abs = std::max(result.max_abs, error);
      if (!(error <= tolerance.atol + tolerance.rtol * std::fabs(e[k])) || std::isinf(e[k])) {
        if (wrong++ == 0) first = i;
        break;
      }
    }
  }
  if (wrong != 0) {
    result.equal = false;
    result.reason = std::to_string(wrong) + " of " + std::to_string(actual.size()) +
                    " elements differ, the first at " + std::to_string(first) + ": " +
                    number(actual.get_double(first)) + ", expected " +
                    number(expected.get_double(first)) + "; largest difference " +
                    number(result.max_abs);
  }
  return result;
}

const char* kind_text(RunValue::Kind kind) {
  constexpr const char* names[] = {"nothing",     "a tensor", "a sequence",
                                   "an optional", "a map",    "a sparse tensor"};
  return names[static_cast<size_t>(kind)];
}

}  // namespace

namespace {

/// Where the entries of a map stand, by rising keys.
std::vector<size_t> order_of_keys(const MapValue& map) {
  std::vector<size_t> order(map.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Tensor& keys = map.keys;
  if (keys.size() != static_cast<int64_t>(order.size())) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto i = static_cast<int64_t>(a), j = static_cast<int64_t>(b);
    return keys.is_string() ? keys.strings()[a] < keys.strings()[b]
                            : keys.get_int64(i) < keys.get_int64(j);
  });
  return order;
}

Tensor keys_in(const MapValue& map, const std::vector<size_t>& order) {
  const int64_t count = map.keys.size();
  if (count != static_cast<int64_t>(order.size())) return map.keys;
  if (map.keys.is_string()) {
    std::vector<std::string> sorted;
    for (const size_t i : order) sorted.emplace_back(map.keys.strings()[i]);
    return Tensor::of_strings(std::span(&count, 1), std::move(sorted));
  }
  std::vector<int64_t> sorted;
  for (const size_t i : order) sorted.push_back(map.keys.get_int64(static_cast<int64_t>(i)));
  Tensor wide = Tensor::int64s(sorted);
  auto same = Tensor::allocate(map.keys.dtype(), std::span(&count, 1));
  if (!same) return wide;
  for (int64_t i = 0; i < count; ++i) same->set_int64(i, wide.get_int64(i));
  return *std::move(same);
}

}  // namespace

Comparison compare(const RunValue& actual, const RunValue& expected,
                   const Tolerance* override_floats) {
  if (actual.kind() != expected.kind())
    return differ(std::string("got ") + kind_text(actual.kind()) + ", expected " +
                  kind_text(expected.kind()));
  auto merge = [](Comparison& into, Comparison part, const std::string& place) {
    into.max_abs = std::max(into.max_abs, part.max_abs);
    if (!part.equal && into.equal) {
      into.equal = false;
      into.reason = place + ": " + part.reason;
    }
  };
  Comparison result;
  switch (actual.kind()) {
    case RunValue::Kind::kNone:
      return {};
    case RunValue::Kind::kTensor:
      return compare_tensors(actual.tensor(), expected.tensor(), override_floats);
    case RunValue::Kind::kSequence: {
      const SequenceValue &a = actual.sequence(), &e = expected.sequence();
      if (a.size() != e.size())
        return differ("got a sequence of " + std::to_string(a.size()) + ", expected " +
                      std::to_string(e.size()));
      for (size_t i = 0; i < a.size(); ++i)
        merge(result, compare(a.item(i), e.item(i), override_floats), "item " + std::to_string(i));
      return result;
    }
    case RunValue::Kind::kOptional: {
      const RunValue* a = actual.optional_content();
      const RunValue* e = expected.optional_content();
      if ((a == nullptr) != (e == nullptr))
        return differ(a == nullptr ? "got an empty optional, expected a full one"
                                   : "got a full optional, expected an empty one");
      return a == nullptr ? result : compare(*a, *e, override_floats);
    }
    case RunValue::Kind::kMap: {
      if (actual.map().size() != expected.map().size()) return differ("maps differ in size");
      // The order of a map's entries says nothing.
      const std::vector<size_t> own = order_of_keys(actual.map()),
                                other = order_of_keys(expected.map());
      merge(result,
            compare_tensors(keys_in(actual.map(), own), keys_in(expected.map(), other),
                            override_floats),
            "keys");
      for (size_t i = 0; i < own.size(); ++i)
        merge(result,
              compare(actual.map().value(own[i]), expected.map().value(other[i]), override_floats),
              "value " + std::to_string(other[i]));
      return result;
    }
    case RunValue::Kind::kSparse:
      if (!(actual.sparse().dims == expected.sparse().dims)) return differ("sparse shapes differ");
      merge(result,
            compare_tensors(actual.sparse().values, expected.sparse().values, override_floats),
            "values");
      merge(result,
            compare_tensors(actual.sparse().indices, expected.sparse().indices, override_floats),
            "indices");
      return result;
  }
  return result;
}

}  // namespace tombolo
