#pragma once

// What a product or a convolution applies to its result before it is written.

#include <cstdint>

namespace tombolo {

struct Activation {
  enum class Kind : uint8_t {
    kNone,
    kClamp,      ///< min(max(x, alpha), beta): Relu, Clip
    kLeakyRelu,  ///< x < 0 ? alpha x : x
    kSigmoid,
    kTanh,
    kHardSigmoid,  ///< clamp(alpha x + beta, 0, 1)
    kHardSwish,    ///< x clamp(x / 6 + 0.5, 0, 1)
    kSwish,        ///< x sigmoid(alpha x)
    kGelu,         ///< with erf
    kGeluTanh,
    kElu,
    kSoftplus,
    kMish,
  };
  Kind kind = Kind::kNone;
  float alpha = 0, beta = 0;

  bool tiled() const { return kind == Kind::kNone || kind == Kind::kClamp; }
};

/// x[i] = activation(x[i]).
void apply_activation(const Activation& activation, float* x, int64_t n);
/// The same for n columns of rows that are `step` floats apart.
void apply_activation(const Activation& activation, float* x, int64_t step, int64_t rows,
                      int64_t n);

}  // namespace tombolo
