#pragma once

// The table of operator overloads: one row each, in the file of its family.

#include <span>
#include <string_view>
#include <vector>

#include "formats/pytorch/aten/schema.h"

namespace tombolo::pytorch {

class AtenContext;

/// Writes the ONNX of one call. Problems go to AtenContext::refuse; results to out().
using Handler = void (*)(AtenContext& c);

enum class RowKind : uint8_t {
  kValue,  ///< a new tensor
  kView,   ///< the result shows the memory of the first argument, when the same strides can say it
  kMaybeView,  ///< as kView where the argument is contiguous, else a new tensor (reshape)
};

struct Row {
  /// As PyTorch writes it; without a namespace it is aten's.
  const char* schema;
  Handler handler;
  /// What tells rows of one handler apart: the name of an ONNX operator, as a rule.
  const char* detail = "";
  RowKind kind = RowKind::kValue;
};

std::span<const Row> elementwise_rows();
std::span<const Row> comparison_rows();
std::span<const Row> activation_rows();
std::span<const Row> reduction_rows();
std::span<const Row> shape_rows();
std::span<const Row> view_rows();
std::span<const Row> indexing_rows();
std::span<const Row> creation_rows();
std::span<const Row> linear_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pooling_rows();
std::span<const Row> normalization_rows();
std::span<const Row> attention_rows();
std::span<const Row> resize_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> loss_rows();
std::span<const Row> symbolic_rows();
std::span<const Row> fourier_rows();
std::span<const Row> decomposition_rows();
std::span<const Row> special_rows();
std::span<const Row> quantization_rows();
std::span<const Row> misc_rows();
std::span<const Row> binning_rows();
std::span<const Row> spectrum_rows();

/// A row with its schema parsed.
struct Operator {
  const Row* row = nullptr;
  Schema schema;
};

/// The operator "add.Tensor" (or "torchvision::nms"), null when there is none. "aten::" and
/// ".default" may be there.
const Operator* find_operator_row(std::string_view name);
/// Every overload of "add" or "torchvision::nms", in the order of the table.
std::vector<const Operator*> overloads_of(std::string_view base);
/// All rows, sorted by name: what `tombolo ops --from pytorch` lists.
std::vector<const Row*> all_rows();
/// "add_.Tensor" -> "add.Tensor"; empty when the name is not that of an in-place operator.
std::string functional_name(std::string_view name);

}  // namespace tombolo::pytorch
