#pragma once

// What inference functions are made of.

#include "ops/infer_context.h"
#include "ops/infer_generic.h"

namespace tombolo::ops {

/// Elements of shape-like tensors that are followed, at most.
inline constexpr int64_t kMaxElements = 1024;

/// Sets the shape of a tensor output; its element type comes from the schema.
void set_shape(InferContext& context, size_t output, SymShape shape);
/// Only the rank is known.
void set_rank(InferContext& context, size_t output, size_t rank);

std::string shape_to_string(const SymShape& shape);

/// `axis` in [-rank, rank) made non-negative, or an error.
Result<size_t> checked_axis(const InferContext& context, int64_t axis, size_t rank,
                            const char* what = "axis");
/// The same for a list; duplicates are an error.
Result<std::vector<size_t>> checked_axes(const InferContext& context, std::span<const int64_t> axes,
                                         size_t rank);
/// The list `name` as attribute, or as input `index` when that is given and constant. nullopt: an
/// input that is not constant. Empty: absent.
std::optional<std::vector<int64_t>> ints_from(const InferContext& context, Text name, size_t index);
/// The single integer of input `index`, symbolic; nullopt when unknown.
std::optional<SymDim> scalar_of(const InferContext& context, size_t index);

SymDim product_of(std::span<const SymDim> dims);
/// The more precise of two descriptions of one dimension; an error when they differ.
Result<SymDim> unify_dims(const InferContext& context, const SymDim& a, const SymDim& b,
                          const char* what);
/// Error unless the input, if its rank is known, has this rank.
Status expect_rank(const InferContext& context, size_t input, size_t rank);

// ---- elements of small integer tensors ----

/// Known elements; or as many unknown ones as the shape says; nullopt when even that is unknown.
std::optional<SymShape> elements_or_unknown(const InferContext& context, size_t input);
using ElementUnary = SymDim (*)(const SymDim&);
using ElementBinary = SymDim (*)(const SymDim&, const SymDim&);
/// Sets the elements of output 0 where those of the inputs are known.
void map_elements(InferContext& context, ElementUnary function);
void map_elements(InferContext& context, ElementBinary function);
void fold_elements(InferContext& context, ElementBinary function);
/// 1, 0 or unknown.
SymDim element_equal(const SymDim& a, const SymDim& b);
SymDim element_less(const SymDim& a, const SymDim& b);
/// True when provably at least 0.
bool non_negative(const SymDim& dim);

/// The shape that Reshape gives: `target` may hold 0 (copy, unless allow_zero) and one -1.
Result<SymShape> reshaped(const InferContext& context, const SymShape* data, const SymShape& target,
                          bool allow_zero);
/// Length of a Python slice of `size` elements.
SymDim slice_length(const SymDim& size, const SymDim& start, const SymDim& end, int64_t step);

}  // namespace tombolo::ops
