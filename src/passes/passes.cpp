#include "passes/passes.h"

namespace tombolo {
namespace {

using namespace passes;

constexpr Pass kPasses[] = {
    {"inline-functions", "calls of the model's own functions become their bodies", 1,
     inline_functions},
    {"lift-constants", "Constant nodes become initialisers", 1, lift_constants},
    {"remove-dead-code", "nodes, initialisers, functions and imports that nothing reads go", 1,
     remove_dead_code},
    {"remove-unused-outputs", "optional outputs at the end that nothing reads are not asked for", 1,
     remove_unused_outputs},
    {"remove-default-inputs",
     "optional inputs that say what their absence says go: zero states of LSTM, steps of 1", 1,
     remove_default_inputs},
    {"decide-branches", "If with a known condition becomes its branch", 1, decide_branches},
    {"simplify-loops",
     "Loop carries only what changes, counts and asks nothing that its own counter says, and gives "
     "nothing that is there already",
     1, simplify_loops},
    {"fold-constants",
     "nodes on constants are computed; so are shapes and their arithmetic where inference knows "
     "them",
     1, fold_constants},
    {"remove-identities",
     "nodes that give what they are given go: Identity, Cast to the same type, Reshape to the same "
     "shape, full Slice, Add 0, Mul 1, Dropout, Expand of what broadcasts anyhow, ...",
     1, remove_identities},
    {"merge-equal-constants", "equal initialisers become one", 1, merge_equal_constants},
    {"merge-equal-nodes", "nodes that compute the same become one", 1, merge_equal_nodes},
    {"simplify-shapes",
     "chains of Reshape, Flatten, Squeeze, Unsqueeze become one Reshape or none, also around what "
     "is done element by element, which behind a Conv or MatMul goes before them, or row by row; "
     "computed targets become constants; Shape reads where the dimensions come from",
     1, simplify_shapes},
    {"merge-chains",
     "Cast of Cast, Concat of Concat, Slice of Slice, Not of Not, Relu of Relu, ... become one; a "
     "whole exponent of Pow gets the type of its base; NonZero of ones in a row becomes Range",
     1, merge_chains},
    {"merge-clips", "Relu and Clip after one another become one", 1, merge_clips},
    {"merge-split-concat",
     "Split and Concat that undo each other go; what a Slice takes out of one part of a Concat it "
     "takes from there",
     1, merge_split_concat},
    {"gather-to-slice", "Gather of neighbouring indices becomes Slice", 1, gather_to_slice},
    {"scatter-to-slices", "ScatterND of a box becomes Slices and Concat around it", 1,
     scatter_to_slices},
    {"shrink-quantised",
     "Dequantize and Quantize with one scale go, also around data movement and Pad: the integers "
     "move; a Transpose of dequantised constants turns the integers",
     1, shrink_quantised},
    {"recognise-repeats",
     "elements repeated along an axis by Tile and Reshape become Resize, neighbouring ones one", 1,
     recognise_repeats},
    {"recognise-norms", "LayerNormalization, RMSNormalization, GroupNormalization spelled out", 2,
     recognise_norms},
    {"merge-transposes",
     "Transpose of Transpose becomes one; one that moves only axes of length 1 becomes a Reshape, "
     "and between Reshapes such axes go",
     1, merge_transposes},
    {"move-transposes",
     "Transposes around a region that does not care about the order of axes cancel through it; "
     "reductions that leave the order of the other axes go before them",
     1, move_transposes},
    {"transposed-to-conv",
     "ConvTranspose that steps by 1 becomes Conv, its kernel turned around, where that takes less",
     2, transposed_to_conv},
    {"space-to-depth-into-conv",
     "SpaceToDepth of an image, also spelled as strided Slices and Concat (Focus), goes into the "
     "kernel of the Conv behind it",
     2, space_to_depth_into_conv},
    {"fold-batch-norm",
     "BatchNormalization goes into the weights of the Conv, ConvTranspose or Gemm before it", 2,
     fold_batch_norm},
    {"fold-scale-and-bias",
     "Mul, Div, Add, Sub by constants go into the weights of the Conv, ConvTranspose, Gemm or "
     "MatMul before them",
     2, fold_scale_and_bias},
    {"merge-convolutions",
     "Convs of one input that are added become one, and so does a Conv beside a "
     "BatchNormalization of its input",
     2, merge_convolutions},
    {"fold-pad",
     "Pad with zeros goes into Conv and AveragePool, also past a Transpose; what a Slice cuts off "
     "the ends of Conv or ConvTranspose is not computed",
     1, fold_pad},
    {"global-pools", "a pool whose one window is the whole image becomes a global one", 1,
     global_pools},
    {"matmul-to-gemm",
     "MatMul and Add of matrices become Gemm; a Transpose before Gemm becomes its attribute", 2,
     matmul_to_gemm},
    {"einsum-to-matmul",
     "Einsum that multiplies matrices becomes MatMul, as it is or with a Transpose; in attention "
     "of "
     "any order of axes",
     2, einsum_to_matmul},
    {"recognise-activations",
     "Gelu, Sigmoid, HardSigmoid, HardSwish, Swish, Mish, Softmax, LogSoftmax spelled out", 2,
     recognise_activations},
    {"recognise-selects", "sums of products with a condition and with its opposite become Where", 2,
     recognise_selects},
    {"loop-to-rnn",
     "Loop that steps an LSTM, a GRU or a recurrent layer through a sequence becomes the operator",
     2, loop_to_rnn},
    {"unroll-loops", "Loop with a small known number of iterations becomes them", 2, unroll_loops},
    {"unflatten-matmul",
     "batches and heads that were joined around MatMul, and attention of it, stay apart", 1,
     unflatten_matmul},
    {"recognise-rotary", "x cos + rotate(x) sin becomes RotaryEmbedding", 2, recognise_rotary},
    {"recognise-attention",
     "softmax(q k' + mask) v becomes Attention, also where a mask replaces scores, with grouped "
     "heads and packed inputs where the graph has them, of one head, over pixels and in windows",
     2, recognise_attention},
    {"integer-operators",
     "an operator between DequantizeLinear and QuantizeLinear works on the integers: QLinearConv, "
     "QLinearMatMul, and those of com.microsoft",
     3, integer_operators},
    {"fuse-microsoft", "BiasGelu, FusedMatMul, FusedConv and MatMulIntegerToFloat of com.microsoft",
     3, fuse_microsoft},
    {"sequence-convolutions",
     "convolutions of sequences that are written as those of images of one row work on the "
     "sequences",
     kRuntimeLevel, sequence_convolutions, true},
    {"standard-quantise",
     "QuantizeLinear and DequantizeLinear of com.microsoft become those of the standard",
     kRuntimeLevel, standard_quantise},
    {"unsigned-codes",
     "signed codes of activations become unsigned ones, which is what products of bytes want",
     kRuntimeLevel, unsigned_codes},
    {"integer-regions",
     "integer-operators, products and convolutions of quantised tensors whose results stay floats, "
     "for the runtime",
     kRuntimeLevel, integer_regions},
    {"byte-tables",
     "functions of single elements between DequantizeLinear and QuantizeLinear of bytes become "
     "tables of 256, in an operator of ai.tombolo",
     kRuntimeLevel, byte_tables},
    {"integer-layout",
     "quantised convolutions and what lies between them have their channels last; limits, "
     "residuals "
     "and what makes floats of their sums join them, in operators of ai.tombolo",
     kRuntimeLevel, integer_layout},
    {"weight-codes",
     "MatMul and Gemm whose constant weights alone are quantised become MatMulNBits, which keeps "
     "the codes; rows of quantised tables are picked before they are dequantised",
     kRuntimeLevel, weight_codes},
    {"dequantise-weights",
     "quantised weights that no operator of integers takes become floats, where kernels pack them",
     kRuntimeLevel, dequantise_weights},
    {"wide-codes",
     "what is quantised to 16 bits and dequantised at once becomes a float that is rounded",
     kRuntimeLevel, wide_codes},
    {"widen-halves",
     "networks of float16 and bfloat16 are computed in float32; their weights stay at 16 bits",
     kRuntimeLevel, widen_halves, true},
    {"expand-microsoft",
     "operators of com.microsoft become those of the standard that have fast kernels",
     kRuntimeLevel, expand_microsoft},
    {"expand-experimental",
     "arithmetic of the first releases (ImageScaler, Affine, ...) becomes that of the standard",
     kRuntimeLevel, expand_experimental},
    {"expand-einsum", "Einsum becomes MatMul between Transposes", kRuntimeLevel, expand_einsum},
    {"whole-rows",
     "GatherElements and ScatterElements whose indices are one for each row become Gather, "
     "ScatterND and ScatterRows",
     kRuntimeLevel, whole_rows},
    {"gather-matmul",
     "products with matrices that are picked from constant ones, as those of experts are, read "
     "them "
     "where they lie, in an operator of ai.tombolo",
     kRuntimeLevel, gather_matmul},
    {"fuse-epilogues",
     "what follows Conv, MatMul and Gemm element by element joins them, and Transposes around "
     "MatMul, "
     "in operators of ai.tombolo",
     kRuntimeLevel, fuse_epilogues},
    {"block-layout",
     "convolutions, pools and what lies between them work on channels in blocks of 16, in "
     "operators "
     "of ai.tombolo",
     kRuntimeLevel, block_layout},
    {"fuse-elementwise",
     "chains of operators of single elements become one, in an operator of ai.tombolo",
     kRuntimeLevel, fuse_elementwise},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

}  // namespace tombolo
