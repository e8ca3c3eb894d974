"""Random one-node models that move elements, for fuzz_kernels.py."""
import numpy as np
from onnx import helper as h

from fuzz_case import Case, floats, numbers, shape


def movement(r):
    """What moves elements of any type, and DequantizeLinear by blocks."""
    c = Case()
    rng = np.random.default_rng(r.getrandbits(32))
    op = r.choice(["GatherElements", "Expand", "Pad", "Cast", "DequantizeLinear", "short rows", "Gemm", "Tile", "Trilu", "Where"])
    dtype = r.choice([np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
    dims = shape(r, r.randint(1, 4), 40)
    x = (rng.integers(-100, 100, dims) if dtype != np.uint8 else rng.integers(0, 200, dims)).astype(dtype)
    if op == "GatherElements":
        axis = r.randrange(len(dims))
        other = [d if r.random() < 0.6 else r.randint(1, d) for d in dims]
        other[axis] = r.randint(1, 40)
        c.add("x", x)
        c.add("i", rng.integers(-dims[axis], dims[axis], other).astype(r.choice([np.int64, np.int32])))
        c.attributes = dict(axis=axis)
    elif op == "Expand":
        c.add("x", np.ascontiguousarray(x[tuple(slice(0, 1) if r.random() < 0.5 else slice(None) for _ in dims)]))
        c.add("s", np.array([r.randint(1, 5)] * r.randint(0, 2) + dims), True)
    elif op == "Tile":
        c.add("x", x)
        c.add("t", np.array([r.choice([1, 1, 2, 3, r.randint(0, 40)]) if i == 0 or r.random() < 0.5 else 1 for i in range(len(dims))]), True)
    elif op == "Trilu":
        dims = [r.randint(1, 60)] * r.randint(0, 1) + shape(r, 2, r.choice([9, 90]))
        c.add("x", (rng.integers(-100, 100, dims)).astype(dtype))
        c.add("k", np.array(r.randint(-100, 100) if r.random() < 0.2 else r.randint(-9, 9)))
        c.attributes = dict(upper=r.randint(0, 1))
    elif op == "Where":
        some = lambda: [1 if r.random() < 0.4 else d for d in dims[r.randint(0, len(dims) - 1) if r.random() < 0.3 else 0:]]
        c.add("c", rng.integers(0, 2, some()).astype(bool))
        for name in "ab":
            c.add(name, rng.integers(-100, 100, some()).astype(dtype))
    elif op == "Pad":
        mode = r.choice(["constant", "reflect", "edge", "wrap"])
        pads = [r.choice([0, 0, r.randint(0, d - 1), r.randint(0, 3 * d)]) if mode != "constant" else r.randint(-(d // 2), 9) for d in dims * 2]
        c.add("x", x)
        c.add("p", np.array(pads), True)
        if mode == "constant" and r.random() < 0.5:
            c.add("v", np.array(1, dtype))
        c.attributes = dict(mode=mode)
    elif op == "Cast":
        c.add("x", x)
        c.attributes = dict(to=h.np_dtype_to_tensor_dtype(np.dtype(r.choice([np.float32, np.float16, np.int64, np.int32, np.int8, np.bool_]))))
    elif op == "DequantizeLinear":
        kind, axis = r.choice([np.uint8, np.int8]), r.randrange(len(dims))
        size = r.choice([0, 0, r.randint(1, 40)])
        count = [-(-d // size) if i == axis else d for i, d in enumerate(dims)] if size else r.choice([[], [dims[axis]]])
        real = r.choice([np.float32, np.float16])
        c.add("x", numbers(r, dims, kind))
        c.add("s", (np.abs(rng.standard_normal(count)) + 0.01).astype(real))
        if r.random() < 0.6:
            c.add("z", numbers(r, count, kind))
        c.attributes = dict(axis=axis, block_size=size)
    elif op == "Gemm":
        m, n, k, turned = r.randint(1, 20), r.randint(1, 70), r.randint(1, 90), r.randint(0, 1)
        c.add("a", floats(r, [m, k]))
        c.add("b", floats(r, [n, k] if turned else [k, n]))
        c.add("c", floats(r, r.choice([[n], [m, n], [m, 1], []])))
        c.attributes = dict(transB=turned, alpha=r.choice([1.0, 0.5]), beta=r.choice([1.0, 2.0]))
    else:
        op = r.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare", "ReduceMean"])
        dims[-1] = r.randint(1, 8)
        x = rng.integers(-9, 9, dims).astype(np.float32 if op == "ReduceMean" else r.choice([np.float32, np.float64, np.int32, np.int64]))
        if x.dtype.kind == "f" and r.random() < 0.3:
            x.flat[0] = np.nan
        c.add("x", x)
        c.add("axes", np.array([-1]), True)
    return op, c


def broadcast_several(r):
    """Max, Min, Sum and Mean of inputs that are repeated along any of their axes."""
    c = Case()
    op = r.choice(["Max", "Min", "Sum", "Mean"])
    full = shape(r, r.randint(1, 4), r.choice([20, 90]))
    dtype = r.choice([np.float32, np.float32, np.float64, np.float16] + ([np.int32, np.int64, np.uint8] if op[0] == "M" and op != "Mean" else []))
    for i in range(r.choice([2, 3, 4])):
        dims = [1 if r.random() < 0.4 else d for d in full[r.randint(0, len(full) - 1) if r.random() < 0.4 else 0:]]
        c.add(f"x{i}", numbers(r, dims, dtype) if np.dtype(dtype).kind != "f" else floats(r, dims).astype(dtype))
    return op, c


def topk_many(r):
    """TopK of many, of few that differ, sorted or not."""
    c = Case()
    dims = [r.randint(1, 3), r.choice([r.randint(25, 400), r.randint(2000, 9000), r.randint(9000, 30000)])]
    x = floats(r, dims, r.choice([0.01, 1, 1e6]))
    x = np.sort(x) * r.choice([-1, 1]) if r.random() < 0.2 else np.round(x) if r.random() < 0.4 else x
    with np.errstate(over="ignore"):  # infinities are welcome
        x = x.astype(r.choice([np.float32, np.float64, np.int32, np.int64, np.float16]))
    if x.dtype.kind == "f" and r.random() < 0.3:
        x.flat[:5] = [np.nan, np.inf, -np.inf, -0.0, 0]
    axis = 1
    if r.random() < 0.2:
        x, axis = np.ascontiguousarray(x.T), 0
    c.add("x", x)
    c.add("k", np.array([r.choice([r.randint(1, dims[1]), r.randint(1, 24), dims[1]])]), True)
    c.attributes = dict(axis=axis, largest=r.randint(0, 1), sorted=r.randint(0, 1))
    c.outputs = 2
    return "TopK", c


def stepped_slice(r):
    c = Case()
    dims = shape(r, r.randint(1, 4), 90)
    dtype = r.choice([np.float32, np.float64, np.uint8, np.int16, np.int64])
    c.add("x", floats(r, dims).astype(dtype) if np.dtype(dtype).kind == "f" else numbers(r, dims, dtype))
    axes = r.sample(range(len(dims)), r.randint(1, len(dims)))
    c.add("s", np.array([r.randint(-dims[a] - 2, dims[a] + 2) for a in axes]), True)
    c.add("e", np.array([r.choice([r.randint(-dims[a] - 2, dims[a] + 2), 2**40, -2**40]) for a in axes]), True)
    c.add("a", np.array([a - r.choice([0, len(dims)]) for a in axes]), True)
    c.add("p", np.array([r.choice([1, 2, 3, 4, 7, -1, -2, -3, -4, -9]) for _ in axes]), True)
    return "Slice", c


def integer_powers(r):
    c = Case()
    full = shape(r, r.randint(0, 3), 60)
    for name, types in (("x", [np.int32, np.int64]), ("y", [np.int32, np.int64, np.float32, np.float64])):
        dims = [1 if r.random() < 0.2 else d for d in full[r.randint(0, len(full)) if r.random() < 0.2 else 0:]]
        values = np.round(np.abs(floats(r, dims, r.choice([2, 9]))) if name == "y" else floats(r, dims, 9) * 2)
        if name == "x":
            values = np.where(values == 0, 1, values)
        elif r.random() < 0.4:
            values = values - 3 if r.random() < 0.5 else values * 0.5
        c.add(name, np.asarray(values).astype(r.choice(types)))
    return "Pow", c


def lp_rows(r):
    c = Case()
    dims = shape(r, r.randint(1, 4), r.choice([9, 70]))
    c.add("x", floats(r, dims, r.choice([0, 1, 1, 1e3])).astype(r.choice([np.float32, np.float64])))
    c.attributes = dict(axis=r.randrange(-len(dims), len(dims)), p=r.choice([1, 2]))
    return "LpNormalization", c
