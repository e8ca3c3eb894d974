#pragma once

// The functions behind the rows of passes.cpp.

#include "passes/pass.h"
#include "passes/rewriter.h"

namespace tombolo::passes {

#define TOMBOLO_PASS(name) Result<size_t> name(Rewriter& rewriter)
TOMBOLO_PASS(inline_functions);
TOMBOLO_PASS(lift_constants);
TOMBOLO_PASS(fold_constants);
TOMBOLO_PASS(remove_dead_code);
TOMBOLO_PASS(remove_unused_outputs);
TOMBOLO_PASS(remove_default_inputs);
TOMBOLO_PASS(merge_equal_constants);
TOMBOLO_PASS(merge_equal_nodes);
TOMBOLO_PASS(remove_identities);
TOMBOLO_PASS(sequence_convolutions);
TOMBOLO_PASS(simplify_shapes);
TOMBOLO_PASS(merge_chains);
TOMBOLO_PASS(merge_split_concat);
TOMBOLO_PASS(gather_to_slice);
TOMBOLO_PASS(dequantise_weights);
TOMBOLO_PASS(weight_codes);
TOMBOLO_PASS(scatter_to_slices);
TOMBOLO_PASS(decide_branches);
TOMBOLO_PASS(simplify_loops);
TOMBOLO_PASS(loop_to_rnn);
TOMBOLO_PASS(unroll_loops);
TOMBOLO_PASS(merge_transposes);
TOMBOLO_PASS(move_transposes);
TOMBOLO_PASS(transposed_to_conv);
TOMBOLO_PASS(fold_batch_norm);
TOMBOLO_PASS(fold_scale_and_bias);
TOMBOLO_PASS(merge_convolutions);
TOMBOLO_PASS(fold_pad);
TOMBOLO_PASS(global_pools);
TOMBOLO_PASS(matmul_to_gemm);
TOMBOLO_PASS(merge_clips);
TOMBOLO_PASS(recognise_activations);
TOMBOLO_PASS(space_to_depth_into_conv);
TOMBOLO_PASS(recognise_repeats);
TOMBOLO_PASS(recognise_selects);
TOMBOLO_PASS(recognise_norms);
TOMBOLO_PASS(unflatten_matmul);
TOMBOLO_PASS(recognise_rotary);
TOMBOLO_PASS(einsum_to_matmul);
TOMBOLO_PASS(recognise_attention);
TOMBOLO_PASS(shrink_quantised);
TOMBOLO_PASS(integer_operators);
TOMBOLO_PASS(fuse_microsoft);
TOMBOLO_PASS(unsigned_codes);
TOMBOLO_PASS(integer_regions);
TOMBOLO_PASS(byte_tables);
TOMBOLO_PASS(integer_layout);
TOMBOLO_PASS(wide_codes);
TOMBOLO_PASS(widen_halves);
TOMBOLO_PASS(expand_microsoft);
TOMBOLO_PASS(expand_experimental);
TOMBOLO_PASS(standard_quantise);
TOMBOLO_PASS(expand_einsum);
TOMBOLO_PASS(whole_rows);
TOMBOLO_PASS(gather_matmul);
TOMBOLO_PASS(fuse_epilogues);
TOMBOLO_PASS(block_layout);
TOMBOLO_PASS(fuse_elementwise);
#undef TOMBOLO_PASS

// Parts of integer_regions.

/// What is dequantised and then moved to a product of two such tensors is moved first.
Result<size_t> lower_dequantised(Rewriter& rewriter);
/// Sums and products of codes with numbers of each channel of an image.
Result<size_t> integer_affines(Rewriter& rewriter);
/// MatMul and Gemm of dequantised tensors whose results stay floats.
Result<size_t> integer_products(Rewriter& rewriter);

}  // namespace tombolo::passes
