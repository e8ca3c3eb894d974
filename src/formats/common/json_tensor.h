#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/tensor.h"

namespace tombolo {

/// A tensor from nested JSON arrays of numbers, booleans or strings, as `dtype` (kUndefined: float
/// for numbers with a fraction, int64 for integers, bool, string). Numbers that `dtype` cannot hold
/// exactly are an error, but for floats rounded to a narrower float type. "NaN", "Infinity" and
/// "-Infinity" may stand for floats.
Result<Tensor> tensor_from_json(std::string_view text, DType dtype);

/// Nested arrays; whole numbers for integers, "NaN" and such as strings.
std::string tensor_to_json(const Tensor& tensor);

}  // namespace tombolo
