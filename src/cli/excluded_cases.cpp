#include "cli/excluded_cases.h"

namespace tombolo::cli {

namespace {

constexpr std::string_view kDraws = "the recorded output is one draw of an unseeded generator";
constexpr std::string_view kDrawsEvidence =
    "upstream's generator (onnx/backend/test/case/node/bernoulli.py) draws from numpy's global "
    "state and says that other implementations may differ even with a seed; its own evaluator and "
    "ONNX Runtime leave the case out";
constexpr std::string_view kNoise = "the recorded output holds noise where the exact value is 0";
constexpr std::string_view kNoiseEvidence =
    "elements [0, 5, i, 1] are 1.9e-7, from a transform in single precision of numbers up to 99; "
    "in double precision they are 7e-16; the tolerance is 1e-7";
constexpr std::string_view kShape = "the recorded input has not the shape that the model declares";
constexpr std::string_view kShapeEvidence =
    "input_1.pb is [1], the model's input \"like\" is [3,4]";

constexpr ExcludedCase kExcluded[] = {
    {"node/test_bernoulli", kDraws, kDrawsEvidence},
    {"node/test_bernoulli_expanded", kDraws, kDrawsEvidence},
    {"node/test_bernoulli_double", kDraws, kDrawsEvidence},
    {"node/test_bernoulli_double_expanded", kDraws, kDrawsEvidence},
    {"node/test_bernoulli_seed", kDraws, kDrawsEvidence},
    {"node/test_bernoulli_seed_expanded", kDraws, kDrawsEvidence},
    {"Bernoulli-15/test_bernoulli", kDraws, kDrawsEvidence},
    {"Bernoulli-15/test_bernoulli_double", kDraws, kDrawsEvidence},
    {"Bernoulli-15/test_bernoulli_seed", kDraws, kDrawsEvidence},
    {"node/test_dft_inverse", kNoise, kNoiseEvidence},
    {"node/test_dft_inverse_opset19", kNoise, kNoiseEvidence},
    {"AveragePool-19/"
     "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
     "counts places beyond the padding as padding",
     "the same case of version 22, whose text is the same, has other values: there, and in the "
     "frameworks that export it, a window counts only what lies within the padding"},
    {"CastLike-15/test_castlike_BFLOAT16_to_FLOAT", kShape, kShapeEvidence, false},
    {"CastLike-15/test_castlike_FLOAT_to_BFLOAT16", kShape, kShapeEvidence, false},
};

}  // namespace

const ExcludedCase* find_excluded_case(std::string_view folder) {
  for (const ExcludedCase& row : kExcluded) {
    if (!folder.ends_with(row.path)) continue;
    const size_t before = folder.size() - row.path.size();
    if (before == 0 || folder[before - 1] == '/') return &row;
  }
  return nullptr;
}

}  // namespace tombolo::cli
