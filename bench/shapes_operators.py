"""Families of bench/shapes.py: operators and short chains of random shapes. Each takes a net and what picks one of some, and gives the name of its result, or None where the shapes do not fit."""
import numpy as np

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


def moved(n, pick, kind, x, shape, axis, dtype=np.float32):
    """One of the operators that move numbers of any type."""
    rank = len(shape)
    if kind == "Transpose":
        return n.op(kind, x, perm=pick.sample(range(rank), rank))
    if kind == "Slice":
        return n.op(kind, x, n.ints(pick((0, 1, shape[axis] // 3))), n.ints(shape[axis] - pick((0, 0, 1))), n.ints(axis), n.ints(pick((1, 1, 2, 3))))
    if kind == "Concat":
        return n.op(kind, x, n.input("y", [pick((1, 2, side)) if i == axis else side for i, side in enumerate(shape)], dtype), axis=axis)
    if kind == "Tile":
        return n.op(kind, x, n.ints(*[pick((1, 1, 2, 3)) for _ in shape]))
    if kind == "Expand":
        n.inputs.pop()
        return n.op(kind, n.input("x", [pick((1, side)) for side in shape], dtype), n.ints(*shape))
    return n.op("Gather", x, n.constant(n.rng.integers(0, shape[axis], pick((1, 5, shape[axis]))).astype(np.int64)), axis=axis)


def move(n, pick):
    shape = dims(pick, pick((2, 3, 4, 5)))
    axis, rank = pick(range(len(shape))), len(shape)
    x = n.input("x", shape)
    kind = pick(("Transpose", "Slice", "Concat", "Pad", "Tile", "Expand", "Gather", "GatherElements", "Where"))
    if kind == "Pad":
        return n.op(kind, x, n.ints(*[min(pick((0, 0, 1, 2)), shape[i % rank] - 1) for i in range(2 * rank)]), mode=pick(("constant", "edge", "reflect")))
    if kind == "GatherElements":
        return n.op(kind, x, n.constant(n.rng.integers(0, shape[axis], shape).astype(np.int64)), axis=axis)
    if kind == "Where":
        return n.op(kind, n.op("Greater", x, n.scalar(0)), x, n.input("y", [pick((1, side)) for side in shape]))
    return moved(n, pick, kind, x, shape, axis)


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


TYPES = (np.int64, np.int64, np.int32, np.uint8, np.int8, np.float64, np.float16)


def typed(n, pick):
    """Numbers that are no 32-bit floats."""
    kind, dtype = pick(("arithmetic", "compared", "cast", "reduce", "chosen", "moved", "logic", "clip")), pick(TYPES)
    shape = dims(pick, pick((1, 2, 3, 4)))
    axis, rank = pick(range(len(shape))), len(shape)
    if kind == "logic":
        y = n.op(pick(("And", "Or", "Xor")), n.input("x", shape, bool), n.input("y", [pick((side, side, 1)) for side in shape], bool))
        return n.op("Not", y) if pick((0, 1)) else y
    x = n.input("x", shape, dtype)
    if kind == "arithmetic":
        return n.op(pick(("Add", "Sub", "Mul", "Div", "Max", "Min")), x, n.input("y", [pick((side, side, 1)) for side in shape], dtype))
    if kind == "compared":
        y = n.op(pick(("Equal", "Less", "GreaterOrEqual")), x, n.input("y", pick((shape, [1], shape[-1:])), dtype))
        return n.op("Cast", y, to=pick((1, 7, 6, 10))) if pick((0, 1)) else y
    if kind == "cast":
        return n.op("Cast", x, to=pick((1, 7, 6, 10, 11, 3, 2, 9)))
    if kind == "reduce":
        axes = sorted(pick.sample(range(rank), pick(range(1, rank + 1))))
        if dtype in (np.uint8, np.int8):
            return n.op(pick(("ReduceMax", "ReduceMin")), x, n.ints(*axes), keepdims=pick((0, 1)))
        return n.op(pick(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd")), x, n.ints(*axes), keepdims=pick((0, 1)))
    if kind == "chosen":
        return n.op("Where", n.input("c", [pick((side, side, 1)) for side in shape], bool), x, n.input("y", [pick((side, side, 1)) for side in shape], dtype))
    if kind == "clip":
        return n.op("Clip", x, n.constant(np.array(0, dtype)), n.constant(np.array(50, dtype)))
    kind = pick(("Transpose", "Concat", "Slice", "Tile", "Gather", "Expand", "Split"))
    if kind != "Split":
        return moved(n, pick, kind, x, shape, axis, dtype)
    if shape[axis] < 2:
        return None
    first = pick((1, shape[axis] // 2))
    y = n.op(kind, x, n.ints(first, shape[axis] - first), axis=axis, outputs=2)
    return n.op("Concat", *y[::-1], axis=axis)


def search(n, pick):
    """Indices, orders and sampling."""
    kind = pick(("TopK", "ArgMax", "ArgMin", "CumSum", "NonZero", "ScatterND", "ScatterElements", "GatherND", "OneHot", "Compress", "Trilu", "DepthToSpace", "SpaceToDepth", "Einsum", "GridSample", "RoiAlign", "NonMaxSuppression", "Unique", "Mod", "ReverseSequence", "Split"))
    shape = dims(pick, pick((2, 3, 4)), most=1_000_000)
    axis, rank = pick(range(len(shape))), len(shape)
    if kind in ("DepthToSpace", "SpaceToDepth", "GridSample", "RoiAlign"):
        c, plane, block = pick(CHANNELS), pick(PLANES[2]), pick((2, 3, 4))
        if kind == "DepthToSpace":
            return n.op(kind, n.input("x", [1, c * block * block, *plane]), blocksize=block, mode=pick(("DCR", "CRD")))
        if kind == "SpaceToDepth":
            return n.op(kind, n.input("x", [1, c, *[side * block for side in plane]]), blocksize=block)
        x = n.input("x", [pick((1, 2)) if kind == "GridSample" else 1, c, *plane])
        if kind == "GridSample":
            grid = n.constant(n.rng.uniform(-1.1, 1.1, [n.inputs[0].type.tensor_type.shape.dim[0].dim_value, *pick(PLANES[2]), 2]).astype(np.float32))
            return n.op(kind, x, grid, mode=pick(("bilinear", "bilinear", "nearest", "bicubic")), padding_mode=pick(("zeros", "border", "reflection")), align_corners=pick((0, 1)))
        count = pick((1, 10, 100, 300))
        corner = n.rng.uniform(0, 0.6, (count, 2)) * plane[::-1]
        boxes = np.concatenate([corner, corner + n.rng.uniform(0.1, 0.4, (count, 2)) * plane[::-1]], 1).astype(np.float32)
        return n.op(kind, x, n.constant(boxes), n.constant(np.zeros(count, np.int64)), output_height=7, output_width=7, sampling_ratio=pick((0, 2)), spatial_scale=1.0, mode=pick(("avg", "avg", "max")))
    if kind == "NonMaxSuppression":
        count, classes = pick((20, 100, 1000, 5000)), pick((1, 3, 20))
        corner = n.rng.uniform(0, 1, (1, count, 2))
        boxes = np.concatenate([corner, corner + n.rng.uniform(0.02, 0.2, (1, count, 2))], 2).astype(np.float32)
        return n.op(kind, n.constant(boxes), n.input("scores", [1, classes, count]), n.ints(pick((10, 200))), n.scalar(0.5), n.scalar(pick((0.0, 1.0))))
    if kind == "Einsum":
        equation, *sizes = pick((("bij,bjk->bik", 4, 64, 100), ("bhid,bhjd->bhij", 2, 4, 50, 64), ("bij,bkj->bik", 4, 64, 100), ("ij,j->i", 500, 300), ("bhwc,hkc->bhwk", 8, 14, 14, 32), ("ijk->kji", 50, 60, 70), ("bci,bi->bc", 4, 100, 300), ("i,j->ij", 500, 600), ("nctv,vw->nctw", 2, 32, 50, 25)))
        left, right = equation.split("->")
        letters = {}
        for part in left.split(","):
            for letter in part:
                letters.setdefault(letter, sizes[len(letters)] if len(letters) < len(sizes) else pick((8, 30, 64)))
        return n.op(kind, *[n.input(f"x{i}", [letters[c] for c in part]) for i, part in enumerate(left.split(","))], equation=equation)
    x = n.input("x", shape)
    if kind == "TopK":
        return n.op(kind, x, n.ints(min(shape[axis], pick((1, 5, 50, 300)))), axis=axis, largest=pick((1, 1, 0)), outputs=2)[0]
    if kind in ("ArgMax", "ArgMin"):
        return n.op(kind, x, axis=axis, keepdims=pick((0, 1)), select_last_index=pick((0, 0, 1)))
    if kind == "CumSum":
        return n.op(kind, x, n.ints(axis), exclusive=pick((0, 0, 1)), reverse=pick((0, 0, 1)))
    if kind == "NonZero":
        return n.op(kind, n.op("Greater", x, n.scalar(pick((-1.0, 0.0, 2.0)))))
    if kind == "Unique":
        return n.op(kind, n.op("Round", n.op("Mul", x, n.scalar(pick((1.0, 10.0, 1000.0))))), outputs=1)
    if kind == "Compress":
        return n.op(kind, x, n.constant(n.rng.integers(0, 2, shape[axis]).astype(bool)), axis=axis)
    if kind == "Trilu":
        return n.op(kind, x, n.constant(np.array(pick((0, 1, -2)), np.int64)), upper=pick((0, 1)))
    if kind == "Mod":
        return n.op(kind, x, n.scalar(1.5), fmod=1)
    if kind == "OneHot":
        n.inputs.pop()
        return n.op(kind, n.op("Cast", n.op("Abs", n.input("x", dims(pick, pick((1, 2)), 50, 5000))), to=7), n.ints(pick((5, 80, 300))), n.constant(np.array([0, 1], np.float32)), axis=pick((-1, 0)))
    if kind == "ReverseSequence":
        return n.op(kind, x, n.constant(n.rng.integers(1, shape[0] + 1, shape[1]).astype(np.int64)), time_axis=0, batch_axis=1)
    if kind == "Split":
        parts = pick([p for p in (2, 3, 4, 8) if shape[axis] >= p] or [1])
        y = n.op(kind, x, axis=axis, num_outputs=parts, outputs=parts)
        return n.op("Concat", *(y[::-1] if parts > 1 else [y]), axis=axis)
    if kind == "ScatterElements":
        part = [max(1, side // pick((1, 2, 4))) for side in shape]
        return n.op(kind, x, n.constant(n.rng.integers(0, shape[axis], part).astype(np.int64)), n.input("u", part), axis=axis, reduction=pick(("none", "add", "max")))
    depth, count = pick(range(1, rank)), pick((1, 10, 300, 3000))
    indices = n.constant(np.stack([n.rng.integers(0, side, count) for side in shape[:depth]], 1).astype(np.int64))
    if count * np.prod(shape[depth:]) > 2_000_000:
        return None
    return n.op(kind, x, indices, n.input("u", [count, *shape[depth:]]), reduction=pick(("none", "add"))) if kind == "ScatterND" else n.op(kind, x, indices)


def quantised(n, pick):
    """Operators on 8-bit integers, as they are written in models."""
    kind = pick(("conv", "conv", "conv", "matmul", "matmul", "integers", "dynamic", "quantize", "dequantize", "add", "pool"))
    signed = pick((np.uint8, np.int8))
    zero = lambda dtype: n.constant(np.array(0 if dtype == np.int8 else int(n.rng.integers(100, 150)), dtype))
    scale = lambda size=0.02: n.constant(np.array(size, np.float32))
    weight = lambda *sizes: n.constant(np.clip(np.rint(n.rng.standard_normal(sizes) * 35), -127, 127).astype(np.int8))
    quantise = lambda x: n.op("QuantizeLinear", x, scale(), zero(signed))
    if kind == "conv":
        rank = pick((1, 2, 2, 2, 3))
        k, stride, plane, inputs, outputs = pick((1, 1, 3, 3, 5)), pick((1, 1, 2)), pick(PLANES[rank]), pick(CHANNELS), pick(CHANNELS)
        groups = pick((1, 1, 1, inputs))
        outputs = inputs if groups > 1 else outputs
        kernel = [k if side > 1 else 1 for side in plane]
        if np.prod(plane) * outputs * inputs // groups * np.prod(kernel) > MOST_PRODUCTS:
            return None
        scales = n.constant(n.rng.uniform(0.001, 0.01, outputs if pick((0, 1)) else ()).astype(np.float32))
        return n.op("QLinearConv", n.input("x", [1, inputs, *plane], signed), scale(), zero(signed), weight(outputs, inputs // groups, *kernel), scales, n.constant(np.zeros(outputs if n.constants[-1].dims else (), np.int8)), scale(0.1), zero(signed), n.constant(n.rng.integers(-1000, 1000, outputs).astype(np.int32)), kernel_shape=kernel, strides=[stride] * rank, pads=[side // 2 for side in kernel] * 2, group=groups)
    rows, depth, columns = pick((1, 2, 5, 8, 33, 100, 128, 512)), pick((8, 16, 40, 64, 100, 256, 300, 768, 2048)), pick((1, 8, 10, 50, 64, 100, 256, 768, 3000))
    batch = pick(([], [], [4], [2, 6]))
    if kind in ("matmul", "integers", "dynamic"):
        if np.prod(batch) * rows * depth * columns > MOST_PRODUCTS:
            return None
        constant = pick((True, True, False))
        if kind == "dynamic":
            x, s, z = n.op("DynamicQuantizeLinear", n.input("x", [*batch, rows, depth]), outputs=3)
            y = n.op("MatMulInteger", x, weight(depth, columns), z)
            return n.op("Add", n.op("Mul", n.op("Cast", y, to=1), n.op("Mul", s, scale())), n.weight(columns))
        x, y = n.input("x", [*batch, rows, depth], signed), weight(depth, columns) if constant else n.input("y", [*batch, depth, columns], np.int8)
        if kind == "integers":
            return n.op("MatMulInteger", x, y, zero(signed))
        return n.op("QLinearMatMul", x, scale(), zero(signed), y, scale(0.005), zero(np.int8), scale(0.1), zero(signed))
    shape = dims(pick, pick((2, 3, 4)))
    if kind == "quantize":
        if pick((0, 1)):
            return n.op("QuantizeLinear", n.input("x", shape), scale(), zero(signed))
        return n.op("QuantizeLinear", n.input("x", shape), n.constant(n.rng.uniform(0.01, 0.02, shape[1]).astype(np.float32)), n.constant(np.zeros(shape[1], signed)), axis=1)
    if kind == "dequantize":
        return n.op("DequantizeLinear", n.input("x", shape, signed), scale(), zero(signed))
    if kind == "add":
        a, b = (n.op("DequantizeLinear", n.input(name, shape, signed), scale(), zero(signed)) for name in "ab")
        return quantise(n.op(pick(("Add", "Mul")), a, b))
    a = n.op("DequantizeLinear", n.input("x", [1, pick(CHANNELS), *pick(PLANES[2])], signed), scale(), zero(signed))
    return quantise(n.op("GlobalAveragePool", a) if pick((0, 1)) else n.op("Sigmoid", a))


def narrow(n, pick):
    """Lines with few numbers behind them, and products of few columns: what leaves most of a vector's lanes idle."""
    kind = pick(("MatMul",) * 6 + ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "ArgMax", "TopK", "CumSum", "GatherElements", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "Transpose", "Gather", "Slice", "Concat", "PRelu"))
    rows, length, inner = pick((30, 64, 100, 300, 512, 700, 2000, 5000)), pick((2, 3, 5, 7, 12, 17, 20, 33, 49, 64, 100, 256)), pick((1, 2, 3, 4, 5, 7, 8, 13))
    if kind == "MatMul":
        few = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17, 20, 24, 31, 33)
        depth, columns, batch = pick(few), pick(few), pick((1, 1, 8, 50))
        if not 1000 <= rows * batch * columns <= 1_000_000:
            return None
        b = n.weight(depth, columns) if batch == 1 or pick((0, 1)) else n.input("b", [batch, depth, columns])
        y = n.op(kind, n.input("a", [batch, rows, depth]), b)
        return activated(n, pick, n.op("Add", y, n.weight(columns)) if pick((0, 1)) else y)
    shape = [rows, length, inner]
    if not 2000 <= np.prod(shape) <= 500_000:
        return None
    x = n.input("x", shape)
    if kind.startswith("Reduce"):
        return n.op(kind, x, n.ints(1))
    if kind in ("Transpose", "Gather", "Slice", "Concat"):
        return moved(n, pick, kind, x, shape, 1)
    if kind == "GatherElements":
        return n.op(kind, x, n.constant(n.rng.integers(0, length, [rows, pick((1, length)), inner])), axis=1)
    if kind == "CumSum":
        return n.op(kind, x, n.constant(np.array(1, np.int64)))
    if kind == "TopK":
        return n.op(kind, x, n.ints(pick((1, 2, min(3, length)))), axis=1, outputs=2)[0]
    return n.op(kind, x, n.weight(length, 1)) if kind == "PRelu" else n.op(kind, x, axis=1)


FAMILIES = {f.__name__: f for f in (conv, transposed, matmul, attention, elementwise, reduce, move, norm, pool, recurrent, typed, search, quantised, narrow)}
