#pragma once

// The sliding window of Conv and pools, read from a node, for the fast kernels: one to three
// spatial axes, nothing empty. What does not fit, or is wrong, stays with the reference kernel,
// which says what is wrong.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/attributes.h"
#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {

struct SlidingWindow {
  ConvGeometry shape;  ///< in, kernel, stride, dilation, pad, out
  int64_t pad_end[3] = {0, 0, 0};
};

/// `kernel` are the spatial axes of the weights; empty: the attribute kernel_shape.
std::optional<SlidingWindow> read_sliding_window(const AttributeReader& attributes,
                                                 std::span<const int64_t> input,
                                                 std::span<const int64_t> kernel, bool ceil_mode);

/// Makes one row of one column: see ConvGeometry::given_out.
void join_column(SlidingWindow& window);

/// Positions of a kernel, along each axis, that meet the input at all. A dilation as large as the
/// input leaves but the middle one: what the others are multiplied with is padding.
struct LiveTaps {
  int64_t all[3] = {1, 1, 1}, first[3] = {0, 0, 0}, count[3] = {1, 1, 1};
  /// The kernel where axes are joined, else zeros; the others are by the operator's axes.
  int64_t joined[3] = {0, 0, 0};

  bool whole() const { return count[0] == all[0] && count[1] == all[1] && count[2] == all[2]; }
  /// What is left of w, `rows` kernels: of float or uint8_t.
  template <typename T>
  std::vector<T> weights(const T* w, int64_t rows) const;
  std::string key() const;  ///< tells packed weights apart; empty when nothing is
};

/// Conv: x [N, C, ...] and w [M, C / group, ...]. With `live`, the shape is that of a kernel which
/// has lost all other positions, and axes may be joined (ConvGeometry::given_out).
std::optional<ConvGeometry> read_conv_geometry(const AttributeReader& attributes,
                                               std::span<const int64_t> x,
                                               std::span<const int64_t> w,
                                               LiveTaps* live = nullptr);

/// ConvTranspose: x [N, C, ...] and w [C, M / group, ...]; `in` is that of x, and one column is a
/// row. What sizes the output in another way than by pads and output_padding stays with the
/// reference.
std::optional<ConvGeometry> read_transposed_geometry(const AttributeReader& attributes,
                                                     std::span<const int64_t> x,
                                                     std::span<const int64_t> w);

/// The output's shape [batch, channels, spatial...].
Dims output_dims(const ConvGeometry& shape, int64_t channels, size_t spatial);

/// Whether threads take whole groups: there are enough of them.
bool groups_apart(const ConvGeometry& shape);

/// Activation of a node of ai.tombolo: attributes `activation` and `activation_params`. Nothing
/// when the name is not known.
std::optional<Activation> read_activation(const AttributeReader& attributes);

}  // namespace tombolo
