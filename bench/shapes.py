"""Measures Tombolo beside ONNX Runtime on operators and short chains of random shapes, most of which nobody tuned for.

    python bench/shapes.py make FOLDER [--only REGEX] [--seed 1] [--count 20]
    python bench/shapes.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--runs 3] [--seconds 0.15] [--out FILE] [--onnxruntime LIB]

`make` writes --count models of each family (conv, transposed, matmul, attention, elementwise, reduce, move, norm, pool, recurrent), named FAMILY_SEED_NUMBER; --only picks families there.
Sort the table by its ratio to see where to look: of one seed the lowest are shapes to look at, another seed says whether they are alone.
"""
import os
import random
import re

import numpy as np
import onnx
from onnx import helper as h

import beside
from net import Net

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33, 49, 64, 77, 100, 128, 197, 256, 300, 512, 768, 1000, 1024, 2048, 4096)
CHANNELS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 100, 128)
PLANES = {1: ([50], [128], [500], [4000], [16000]), 2: ([7, 7], [14, 14], [28, 28], [56, 56], [20, 50], [100, 100], [128, 128], [16, 200], [1, 300]), 3: ([4, 16, 16], [8, 28, 28], [16, 16, 16])}
MOST_PRODUCTS = 3e8


def dims(pick, rank, least=2000, most=2_000_000):
    while True:
        found = [pick(SIZES) for _ in range(rank)]
        if least <= np.prod(found) <= most:
            return found


def activated(n, pick, y):
    kind = pick(("", "Relu", "LeakyRelu", "Sigmoid", "Gelu", "Elu"))
    if kind == "Gelu":
        return n.op("Mul", n.op("Mul", y, n.op("Add", n.op("Erf", n.op("Div", y, n.scalar(2 ** 0.5))), n.scalar(1))), n.scalar(0.5))
    return n.op(kind, y) if kind else y


def conv(n, pick):
    """Three layers one behind the other."""
    rank = pick((1, 2, 2, 2, 3))
    k, stride, plane = pick((1, 2, 3, 3, 3, 4, 5, 7)), pick((1, 1, 1, 2)), pick(PLANES[rank])
    dilation = pick((1, 1, 1, 2)) if stride == 1 else 1
    inputs, size, products = pick(CHANNELS), list(plane), 0
    x = n.input("x", [1, inputs, *plane])
    for layer in range(3):
        outputs = pick((inputs, pick(CHANNELS)))
        groups = inputs if outputs == inputs and inputs > 1 and pick(range(7)) == 0 else 1
        kernel = [k if side > 1 else 1 for side in plane]
        pads = [(side - 1) * dilation // 2 for side in kernel]
        strides = [stride if layer == 1 else 1] * rank
        size = [(s + 2 * p - dilation * (c - 1) - 1) // t + 1 for s, p, c, t in zip(size, pads, kernel, strides)]
        products += np.prod(size) * outputs * inputs // groups * np.prod(kernel)
        if min(size) < 1 or products > MOST_PRODUCTS:
            return None
        w = n.weight(outputs, inputs // groups, *kernel)
        x = activated(n, pick, n.op("Conv", x, w, n.weight(outputs), kernel_shape=kernel, pads=pads * 2, strides=strides, dilations=[dilation] * rank, group=groups))
        inputs = outputs
    return x


def transposed(n, pick):
    rank = pick((1, 2, 2, 3))
    inputs, outputs, plane, k, stride, pad = pick(CHANNELS), pick(CHANNELS), pick(PLANES[rank]), pick((2, 3, 4, 5)), pick((1, 2, 2, 3)), pick((0, 1))
    if inputs * outputs * k ** rank * np.prod(plane) > MOST_PRODUCTS or (min(plane) - 1) * stride + k - 2 * pad < 1:
        return None
    y = n.op("ConvTranspose", n.input("x", [1, inputs, *plane]), n.weight(inputs, outputs, *[k] * rank), n.weight(outputs), kernel_shape=[k] * rank, strides=[stride] * rank, pads=[pad] * (2 * rank))
    return activated(n, pick, y)


def matmul(n, pick):
    rows, depth, columns = pick((1, 2, 3, 5, 8, 16, 33, 64, 100, 128, 300, 512, 20000)), pick((1, 3, 8, 16, 40, 64, 100, 256, 300, 768, 1000, 2048)), pick((1, 2, 3, 8, 10, 16, 50, 64, 100, 256, 300, 768, 1000, 3000))
    batch = [pick((1, 2, 4, 8, 12)) for _ in range(pick((0, 0, 1, 2)))]
    if np.prod(batch) * rows * depth * columns > MOST_PRODUCTS:
        return None
    kind = pick(("constant", "batched", "gemm"))
    if kind == "gemm":
        turned, shape = [pick((0, 1)), pick((0, 1))], [columns, depth]
        b = shape if turned[1] else shape[::-1]
        y = n.op("Gemm", n.input("a", [depth, rows] if turned[0] else [rows, depth]), pick((lambda: n.weight(*b), lambda: n.input("b", b)))(), n.weight(columns), transA=turned[0], transB=turned[1])
    else:
        y = n.op("MatMul", n.input("a", [*batch, rows, depth]), n.weight(depth, columns) if kind == "constant" else n.input("b", [*batch, depth, columns]))
    return activated(n, pick, y)


def attention(n, pick):
    batch, heads, queries, size = pick((1, 1, 4)), pick((1, 2, 4, 8, 12)), pick((1, 16, 50, 128, 197, 300)), pick((8, 16, 32, 40, 64, 72, 80, 128))
    keys = pick((queries, 77, 300, 512))
    q, k, v = (n.input(name, [batch, heads, length, size]) for name, length in (("q", queries), ("k", keys), ("v", keys)))
    scores = n.op("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), n.scalar(size ** -0.5))
    if pick((0, 1)):
        scores = n.op("Add", scores, n.input("mask", pick(([1, 1, queries, keys], [batch, 1, 1, keys], [1, heads, queries, keys]))))
    return n.op("MatMul", n.op("Softmax", scores, axis=-1), v)


def elementwise(n, pick):
    shape = dims(pick, pick((1, 2, 3, 4, 5)))
    x = n.input("x", shape)
    for step in range(pick((1, 1, 2, 3))):
        if pick((0, 1)):
            x = n.op(pick(("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Erf", "Softplus", "HardSwish", "Elu", "Sin", "Floor", "Round", "Sign")), x)
        else:
            other = [pick((side, side, 1)) for side in shape]
            x = n.op(pick(("Add", "Mul", "Sub", "Max", "Min")), x, n.input(f"y{step}", other))
    return x


def reduce(n, pick):
    shape = dims(pick, pick((2, 3, 4)))
    axes = sorted(pick.sample(range(len(shape)), pick(range(1, len(shape) + 1))))
    kind = pick(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"))
    return n.op(kind, n.input("x", shape), n.ints(*axes), keepdims=pick((0, 1)))


def move(n, pick):
    shape = dims(pick, pick((2, 3, 4, 5)))
    axis, rank = pick(range(len(shape))), len(shape)
    x = n.input("x", shape)
    kind = pick(("Transpose", "Slice", "Concat", "Pad", "Tile", "Expand", "Gather", "GatherElements", "Where"))
    if kind == "Transpose":
        return n.op(kind, x, perm=pick.sample(range(rank), rank))
    if kind == "Slice":
        return n.op(kind, x, n.ints(pick((0, 1, shape[axis] // 3))), n.ints(shape[axis] - pick((0, 0, 1))), n.ints(axis), n.ints(pick((1, 1, 2, 3))))
    if kind == "Concat":
        return n.op(kind, x, n.input("y", [pick((1, 2, side)) if i == axis else side for i, side in enumerate(shape)]), axis=axis)
    if kind == "Pad":
        return n.op(kind, x, n.ints(*[min(pick((0, 0, 1, 2)), shape[i % rank] - 1) for i in range(2 * rank)]), mode=pick(("constant", "edge", "reflect")))
    if kind == "Tile":
        return n.op(kind, x, n.ints(*[pick((1, 1, 2, 3)) for _ in shape]))
    if kind == "Expand":
        n.inputs.pop()
        return n.op(kind, n.input("x", [pick((1, side)) for side in shape]), n.ints(*shape))
    if kind == "Gather":
        return n.op(kind, x, n.constant(n.rng.integers(0, shape[axis], pick((1, 5, shape[axis]))).astype(np.int64)), axis=axis)
    if kind == "GatherElements":
        return n.op(kind, x, n.constant(n.rng.integers(0, shape[axis], shape).astype(np.int64)), axis=axis)
    return n.op(kind, n.op("Greater", x, n.scalar(0)), x, n.input("y", [pick((1, side)) for side in shape]))


def norm(n, pick):
    kind = pick(("Softmax", "Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "BatchNormalization", "LpNormalization", "mean and variance"))
    shape = dims(pick, pick((3, 4, 5)) if kind in ("InstanceNormalization", "BatchNormalization") else pick((2, 3, 4)))
    x = n.input("x", shape)
    if kind in ("Softmax", "LogSoftmax", "LpNormalization"):
        return n.op(kind, x, axis=pick(range(len(shape))))
    if kind == "LayerNormalization":
        return n.op(kind, x, n.weight(shape[-1]), n.weight(shape[-1]))
    if kind == "mean and variance":
        d = n.op("Sub", x, n.op("ReduceMean", x, n.ints(-1)))
        return n.op("Div", d, n.op("Sqrt", n.op("Add", n.op("ReduceMean", n.op("Mul", d, d), n.ints(-1)), n.scalar(1e-5))))
    numbers = [n.constant(np.abs(n.rng.standard_normal(shape[1])).astype(np.float32) + 0.1) for _ in range(2 if kind.startswith("I") else 4)]
    return n.op(kind, x, *numbers)


def pool(n, pick):
    rank = pick((1, 2, 2, 3))
    plane, k = pick(PLANES[rank]), pick((2, 3, 5))
    x = n.input("x", [pick((1, 1, 4)), pick(CHANNELS), *plane])
    kind = pick(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Resize", "LRN" if rank == 2 else "MaxPool"))
    if kind.startswith("Global"):
        return n.op(kind, x)
    if kind == "LRN":
        return n.op(kind, x, size=5)
    if kind == "Resize":
        return n.op(kind, x, "", n.constant(np.array([1, 1] + [pick((2, 0.5, 1.5, 3)) for _ in plane], np.float32)), mode=pick(("nearest", "linear", "cubic" if rank == 2 else "linear")), coordinate_transformation_mode=pick(("half_pixel", "asymmetric", "align_corners")))
    kernel = [min(k, side) for side in plane]
    return n.op(kind, x, kernel_shape=kernel, strides=[pick((1, 2))] * rank, pads=[(side - 1) // 2 for side in kernel] * 2)


def recurrent(n, pick):
    kind = pick(("LSTM", "GRU", "RNN"))
    gates, steps, batch, inputs, hidden, directions = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], pick((1, 5, 20, 50, 100)), pick((1, 1, 2, 8, 32)), pick((8, 16, 40, 64, 128, 300)), pick((8, 16, 30, 64, 100, 128, 256, 512)), pick((1, 2))
    if steps * batch * hidden * (inputs + hidden) * gates * directions > MOST_PRODUCTS:
        return None
    rows = gates * hidden
    return n.op(kind, n.input("x", [steps, batch, inputs]), n.weight(directions, rows, inputs, fan=100 * inputs), n.weight(directions, rows, hidden, fan=100 * hidden), n.weight(directions, 2 * rows, fan=100), hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")


FAMILIES = {f.__name__: f for f in (conv, transposed, matmul, attention, elementwise, reduce, move, norm, pool, recurrent)}


class Pick(random.Random):
    """Picks one of some."""

    def __call__(self, some):
        return self.choice(list(some))


def make(folder, only, seed, count):
    for name, family in FAMILIES.items():
        made = 0
        for number in range(10 * count if re.search(only, name) else 0):
            n = Net(name, seed=seed * 1000 + number, opset=18)
            y = family(n, Pick(f"{name} {seed} {number}"))
            if y is None:
                continue
            graph = h.make_graph(n.nodes, name, n.inputs, [h.make_tensor_value_info(y, onnx.TensorProto.FLOAT, None)], n.constants)
            model = onnx.shape_inference.infer_shapes(h.make_model(graph, opset_imports=[h.make_opsetid("", n.opset)], ir_version=10))
            path = os.path.join(folder, f"{name}_{seed}_{number}")
            os.makedirs(path, exist_ok=True)
            onnx.save(model, os.path.join(path, "model.onnx"))
            feed = {i.name: n.rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim], dtype=np.float32) for i in n.inputs}
            np.savez(os.path.join(path, "inputs.npz"), **feed)
            made += 1
            if made == count:
                break


def shapes(path):
    """What a row says of a model: its operators and the shapes of its inputs and constants."""
    graph = onnx.load(path).graph
    sizes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input] + [list(c.dims) for c in graph.initializer if len(c.dims) > 1]
    return f"{' '.join(node.op_type for node in graph.node)} {' '.join(str(s) for s in sizes)}"


if __name__ == "__main__":
    parser, verbs, making, measuring = beside.parsers(__doc__)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    if args.does == "make":
        make(args.folder, args.only, args.seed, args.count)
    else:
        beside.measure(args, ["model", "shapes"], (((name, shapes(path)), path, beside.inputs_of(path)) for name, path in beside.models(args.folder, args.only)))
