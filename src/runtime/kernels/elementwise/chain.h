#pragma once

// Chains of elementwise operators on tiles of floats that stay in registers: each step takes eight
// vectors and calls the next one at its end, so that between steps nothing is stored or decided.

#include <cstdint>
#include <span>
#include <vector>

#include "ops/tombolo/elementwise.h"

namespace tombolo {

/// What the steps of a program read and write; one a thread.
struct ChainFrame {
  const float* const* inputs;  ///< null for those that are constants
  float* temps;                ///< of kChainTile floats each
  float* out;
  int64_t at = 0;  ///< where the tile begins in each input and in the output
};

struct ChainStep;
/// The real type of a step function takes eight vectors too, which differ in size from one
/// instruction set to the other.
using ChainFn = void();

struct ChainStep {
  ChainFn* fn = nullptr;
  int32_t operand = 0;  ///< an input or a temporary
  float a = 0, b = 0, c = 0;
  void (*row)() = nullptr;  ///< a function of rows, for steps that call one
};

inline constexpr int64_t kChainTile = 128;  ///< floats of a tile, at most

struct ChainProgram {
  std::vector<ChainStep> steps;
  int temps = 0;
  int64_t tile = 0;  ///< floats a tile
};

/// An input that is one number known beforehand.
struct ChainConstant {
  bool known = false;
  float value = 0;
};

/// Steps in the order of accumulator and temporaries. `inputs` says which inputs are constants.
ChainProgram compile_chain(std::span<const ops::ElementwiseStep> steps,
                           std::span<const ChainConstant> inputs);

/// Runs the program on elements [0, n) of each input and of the output; n is a multiple of `tile`.
void run_chain(const ChainProgram& program, ChainFrame& frame, int64_t n);
/// to[i] = value, for i < n; what a vector reaches beyond may be written, too.
void fill_block(float* to, int64_t n, float value);

}  // namespace tombolo
