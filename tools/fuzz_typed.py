"""Makers of fuzz_kernels.py: pools, and operators over types and axes that networks use now and then."""
import numpy as np

from fuzz_case import Case, floats, numbers, shape


def pool(r):
    c = Case()
    spatial = r.choice([1, 2, 2, 3])
    kernel = [r.randint(1, 4) for _ in range(spatial)]
    image = [r.randint(1, 25 if spatial < 3 else 7) + k for k in kernel]
    c.add("x", floats(r, [r.randint(1, 2), r.randint(1, 5)] + image))
    op = r.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if op[0] == "G":
        return op, c
    c.attributes = dict(kernel_shape=kernel, strides=[r.choice([1, 2, 3])] * spatial, ceil_mode=r.randint(0, 1))
    if r.random() < 0.3:
        c.attributes["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER"])
        c.attributes["ceil_mode"] = 0
    else:
        c.attributes["pads"] = [r.randint(0, max(0, k - 1)) for k in kernel + kernel]
    if op == "AveragePool":
        c.attributes["count_include_pad"] = r.randint(0, 1)
    return op, c


def pool_places(r):
    """MaxPool with places, of all types, and in either order."""
    op, c = pool(r)
    if op != "MaxPool":
        return op, c
    c.outputs = 2
    c.attributes["storage_order"] = r.randint(0, 1)
    if r.random() < 0.4:
        c.attributes["dilations"] = [r.choice([1, 2])] * len(c.attributes["kernel_shape"])
        c.attributes.pop("auto_pad", None)
    x = c.inputs["x"]
    dtype = r.choice([np.float32, np.float32, np.float64, np.uint8, np.int8])
    x = np.round(x * 3) if r.random() < 0.6 else x
    c.inputs["x"] = x.astype(np.int64).astype(dtype) if np.dtype(dtype).kind in "iu" else x.astype(dtype)
    if np.dtype(dtype).kind == "f" and x.size > 9 and r.random() < 0.3:
        c.inputs["x"].flat[:5] = [np.nan, np.inf, -np.inf, -0.0, -np.inf]
    return op, c


def max_unpool(r):
    """To the size that the attributes give, or to a larger one."""
    c = Case()
    axes = r.choice([1, 2, 3])
    dims = [r.randint(1, 2), r.randint(1, 4)] + [r.randint(1, 12 if axes < 3 else 5) for _ in range(axes)]
    rng = np.random.default_rng(r.getrandbits(32))
    out = dims[:2] + [2 * d for d in dims[2:]]
    c.add("x", floats(r, dims).astype(r.choice([np.float32, np.float32, np.float64])))
    plane = int(np.prod(out[2:]))
    if r.random() < 0.2:
        places = rng.integers(0, int(np.prod(out)), dims)
    else:
        places = rng.integers(0, plane, dims) + np.arange(dims[0] * dims[1]).reshape(dims[:2] + [1] * axes) * plane
    c.add("i", places.astype(np.int64))
    if r.random() < 0.6:
        c.add("s", np.array(out[:2] + [d + r.choice([0, 0, 1]) for d in out[2:]]), r.random() < 0.8)
    c.attributes = dict(kernel_shape=[2] * axes, strides=[2] * axes)
    return "MaxUnpool", c


def short_floats(r):
    """Floats of 16 bits by operators that pick or quantise."""
    c = Case()
    dims = shape(r, r.randint(1, 3), 70)
    axis = r.randrange(len(dims))
    x = floats(r, dims, 3).astype(np.float16)
    if x.size > 5 and r.random() < 0.3:
        x.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    op = r.choice(["ArgMax", "ArgMin", "TopK", "QuantizeLinear", "QuantizeLinear", "DequantizeLinear"])
    if op == "TopK":
        c.add("x", x)
        c.add("k", np.array([r.randint(1, dims[axis])]), True)
        c.attributes = dict(axis=axis, largest=r.randint(0, 1))
        c.outputs = 2
        return op, c
    if op.startswith("Arg"):
        c.add("x", x)
        c.attributes = dict(axis=axis, select_last_index=r.randint(0, 1))
        return op, c
    dtype = r.choice([np.int8, np.uint8, np.int16, np.uint16])
    scale = [] if r.random() < 0.3 else [dims[axis]]
    if r.random() < 0.4:
        size = r.choice([2, 4, 16])
        scale = dims[:axis] + [-(-dims[axis] // size)] + dims[axis + 1:]
        c.attributes["block_size"] = size
    kind = r.choice([np.float16, np.float16, np.float32])
    c.add("x", x.astype(kind) if op[0] == "Q" else numbers(r, dims, dtype))
    c.add("s", (np.abs(floats(r, scale)) * 0.1 + 0.01).astype(kind))
    c.add("z", numbers(r, scale, dtype))
    c.attributes["axis"] = axis
    return op, c


def norms_f64(r):
    """Softmax of doubles along any axis, functions of doubles."""
    c = Case()
    dims = shape(r, r.randint(1, 4), 40)
    x = floats(r, dims, r.choice([1, 5, 300])).astype(np.float64)
    op = r.choice(["Softmax", "LogSoftmax", "Tanh", "Sigmoid", "Sin", "Cos", "Reciprocal", "Sign", "Hardmax", "LayerNormalization", "RMSNormalization", "LpNormalization"])
    if x.size > 6 and op in ("Tanh", "Sigmoid", "Sin", "Cos", "Sign"):
        x.flat[:6] = [np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324]
    if op.endswith("max"):
        c.attributes = dict(axis=r.randrange(-len(dims), len(dims)))
    c.add("x", x)
    if op == "LpNormalization":
        c.attributes = dict(axis=r.randrange(-len(dims), len(dims)), p=r.choice([1, 2]))
    elif op.endswith("Normalization"):
        for name in ["scale", "bias"][:1 if op[0] == "R" else r.randint(1, 2)]:
            c.add(name, floats(r, dims[-1:]).astype(np.float64))
    return op, c


def moments(r):
    """Norms that give their moments too."""
    c = Case()
    op = r.choice(["LayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization"])
    dims = [r.randint(1, 3), r.randint(1, 9), r.choice([8, 33, 100])]
    dtype = r.choice([np.float32, np.float32, np.float16])
    skips = op.startswith("Skip")
    for name in ["x", "skip"][:2 if skips else 1]:
        c.add(name, (floats(r, dims) + 0.5).astype(dtype))
    for i, name in enumerate(["scale", "bias"][:1 if "Simplified" in op else 2]):
        c.add(name, floats(r, dims[-1:]).astype(dtype), r.random() < 0.7)
    if skips:
        c.domain = "com.microsoft"
    c.attributes = dict(epsilon=1e-5)
    c.outputs = 2 if op.startswith("Simplified") else 3
    return op, c
