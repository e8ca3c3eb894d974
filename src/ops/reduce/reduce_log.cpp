#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kReduceLogSum = R"(
wide = Cast <to = 11> (data)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (wide, axes)
logarithm = Log (sum)
reduced = CastLike (logarithm, data)
)";

OPERATOR(ReduceLogSum) = {
    .name = "ReduceLogSum",
    .doc = "logarithm of the sum over axes",
    .versions = {1, 11, 13, 18, 28},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18, .text = kReduceLogSum},
            {.versions = {.since = 28}, .opset = 28, .text = kReduceLogSum},
        },
    .infer = infer_reduce,
};

constexpr Literal kReduceLogSumExp = R"(
wide = Cast <to = 11> (data)
exponential = Exp (wide)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (exponential, axes)
logarithm = Log (sum)
reduced = CastLike (logarithm, data)
)";

OPERATOR(ReduceLogSumExp) = {
    .name = "ReduceLogSumExp",
    .doc = "logarithm of the sum of exponentials over axes",
    .versions = {1, 11, 13, 18, 28},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18, .text = kReduceLogSumExp},
            {.versions = {.since = 28}, .opset = 28, .text = kReduceLogSumExp},
        },
    .infer = infer_reduce,
};

}  // namespace tombolo::ops
