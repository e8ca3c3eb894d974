#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceL1) = {
    .name = "ReduceL1",
    .doc = "sum of absolute values over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
size = Abs (data)
reduced = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (size, axes)
)"}},
    .infer = infer_reduce,
};

OPERATOR(ReduceL2) = {
    .name = "ReduceL2",
    .doc = "square root of the sum of squares over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
wide = Cast <to = 11> (data)
square = Mul (wide, wide)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (square, axes)
root = Sqrt (sum)
reduced = CastLike (root, data)
)"}},
    .infer = infer_reduce,
};

OPERATOR(ReduceSumSquare) = {
    .name = "ReduceSumSquare",
    .doc = "sum of squares over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
square = Mul (data, data)
reduced = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (square, axes)
)"}},
    .infer = infer_reduce,
};

}  // namespace tombolo::ops
