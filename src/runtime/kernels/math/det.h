#pragma once

#include <cstdint>

namespace tombolo {

/// The determinant of a square matrix [n][n], which is destroyed: elimination with the greatest
/// pivot of each column.
double determinant_f64(double* a, int64_t n);

}  // namespace tombolo
