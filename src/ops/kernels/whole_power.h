#pragma once

// Powers whose exponent an attribute gives: nearly always a small whole number.

#include <cmath>

namespace tombolo::ops {

/// x^exponent; a product for small whole exponents, for which std::pow takes many times as long.
class Powers {
 public:
  explicit Powers(double exponent)
      : exponent_(exponent),
        factors_(exponent >= 1 && exponent <= 8 && exponent == std::floor(exponent)
                     ? static_cast<int>(exponent)
                     : 0) {}
  double operator()(double x) const {
    if (factors_ == 0) return std::pow(x, exponent_);
    double product = x;
    for (int i = 1; i < factors_; ++i) product *= x;
    return product;
  }

 private:
  double exponent_;
  int factors_;
};

}  // namespace tombolo::ops
