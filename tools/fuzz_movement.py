"""Random one-node models that move elements, for fuzz_kernels.py."""
import numpy as np
from onnx import helper as h

from fuzz_case import Case, floats, numbers, shape


def movement(r):
    """What moves elements of any type, and DequantizeLinear by blocks."""
    c = Case()
    rng = np.random.default_rng(r.getrandbits(32))
    op = r.choice(["GatherElements", "Expand", "Pad", "Cast", "DequantizeLinear", "short rows", "Gemm"])
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
