#include "formats/pytorch/aten/table.h"
namespace tombolo::pytorch {
std::span<const Row> comparison_rows() { return {}; }
std::span<const Row> activation_rows() { return {}; }
std::span<const Row> reduction_rows() { return {}; }
std::span<const Row> shape_rows() { return {}; }
std::span<const Row> view_rows() { return {}; }
std::span<const Row> indexing_rows() { return {}; }
std::span<const Row> creation_rows() { return {}; }
std::span<const Row> linear_rows() { return {}; }
std::span<const Row> convolution_rows() { return {}; }
std::span<const Row> pooling_rows() { return {}; }
std::span<const Row> normalization_rows() { return {}; }
std::span<const Row> attention_rows() { return {}; }
std::span<const Row> resize_rows() { return {}; }
std::span<const Row> recurrent_rows() { return {}; }
std::span<const Row> loss_rows() { return {}; }
std::span<const Row> symbolic_rows() { return {}; }
}  // namespace tombolo::pytorch
