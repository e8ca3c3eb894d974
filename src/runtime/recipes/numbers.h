#pragma once

// Values as plain numbers: what recipes fill inputs with and compare outputs by.

#include <vector>

#include "ir/run_value.h"

namespace tombolo {

struct Numbers {
  std::vector<double> values;  ///< text "s3" is 3; complex numbers by their real part
  std::vector<Dims> shapes;    ///< of each tensor
};
/// The elements of a value, tensor by tensor.
void collect_numbers(const RunValue& value, Numbers& numbers);

/// Element `index` becomes `value`, in whatever type: "s3" in strings, or "3" where `text`.
void put_number(Tensor& tensor, int64_t index, double value, bool text);

/// Elements that tell places apart, and that the type holds exactly.
std::vector<double> usual_numbers(DType dtype, bool positive);

}  // namespace tombolo
