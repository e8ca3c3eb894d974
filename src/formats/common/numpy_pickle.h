#pragma once

// NumPy arrays, scalars and element types as pickles describe them.

#include <cstdint>
#include <memory>
#include <string_view>

#include "formats/common/npy.h"
#include "formats/common/pickle.h"
#include "ir/tensor.h"

namespace tombolo {

/// An array that a pickle describes, and the size of its data.
struct PickledArray {
  NumpyArray array;
  uint64_t bytes = 0;
  bool is_object = false;  ///< of Python objects
};

/// What the state of joblib's NumpyArrayWrapper says of the array that follows it.
Result<PickledArray> joblib_array(const PickleValue& state);

/// True when the value is a NumPy array or scalar.
bool is_numpy_array(const PickleValue& value);
/// The array or scalar: elements in C order are views of the pickle's bytes, or of text that it
/// decoded; `owner` keeps both alive (Pickle::owner()).
Result<Tensor> numpy_tensor(const PickleValue& value, const std::shared_ptr<const void>& owner);

}  // namespace tombolo
