#pragma once

// Rows of floats through a function of one variable. Names are those of the ONNX operators.

#include <cstdint>
#include <string_view>

namespace tombolo {

/// y[i] = f(x[i]) with parameters a and b (alpha, beta, ...); y may be x.
using UnaryFn = void(const float* x, float* y, int64_t n, float a, float b);

enum class Unary : uint8_t {
  // unary_simple.cpp
  kAbs,
  kNeg,
  kRelu,
  kClip,
  kFloor,
  kCeil,
  kRound,
  kSqrt,
  kReciprocal,
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
  kThresholdedRelu,
  kSoftsign,
  kShrink,
  kSquare,
  kAffine,
  kIdentity,
  kSign,
  // unary_exp.cpp
  kExp,
  kSigmoid,
  kTanh,
  kErf,
  kGelu,
  kGeluTanh,
  kSwish,
  kSoftplus,
  kMish,
  kElu,
  kSelu,
  kCelu,
  // unary_log.cpp
  kLog,
  kSin,
  kCos,
  kAtan,
  kAsinh,
  kAcosh,
  kAtanh,
  kAsin,
  kAcos,
  kSinh,
  kCosh,
  kTan,
  kCount,
};

/// For the active instruction set.
UnaryFn* unary_fn(Unary op);

// The parts.
UnaryFn* simple_fn(Unary op);
UnaryFn* exp_fn(Unary op);
UnaryFn* log_fn(Unary op);

}  // namespace tombolo
