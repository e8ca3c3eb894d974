"""Random valid cases of com.microsoft operators, for oracle_microsoft.py."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays, None where absent
    attrs: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    skip_outputs: tuple = ()
    domain: str = "com.microsoft"
    reference: object = None  # numpy formula, where the runtime has no kernel
    rtol: float = 1e-4
    atol: float = 1e-5
    quantum: int = 0  # how far integers may lie apart
    ignore: tuple = ()  # outputs that are not compared
    types: dict = dataclasses.field(default_factory=dict)  # input: TensorProto type
    constants: tuple = ()  # inputs that must be initialisers
    opset: int = 21


GENERATORS = {}


def generator(function):
    GENERATORS[function.__name__] = function
    return function


def f32(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def some(rng, value, chance=0.5):
    return value if rng.random() < chance else None


def pick(rng, *values):
    return values[rng.integers(len(values))]


def dims(rng, low=1, high=3, most=6):
    return tuple(int(v) for v in rng.integers(1, most + 1, rng.integers(low, high + 1)))


def drop(attrs):
    return {k: v for k, v in attrs.items() if v is not None}


def erf(x):
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def gelu(x):
    x = np.asarray(x, np.float64)
    return x / 2 * (1 + erf(x / np.sqrt(2)))


# ---- activations ----


@generator
def Gelu(rng):
    return Case("Gelu", [f32(rng, *dims(rng, 0), scale=3)])


@generator
def QuickGelu(rng):
    return Case("QuickGelu", [f32(rng, *dims(rng), scale=3)], drop({"alpha": some(rng, float(rng.uniform(-2, 2)))}))


@generator
def BiasGelu(rng):
    shape = dims(rng)
    return Case("BiasGelu", [f32(rng, *shape, scale=2), f32(rng, shape[-1])])


@generator
def FastGelu(rng):
    shape = dims(rng)
    return Case("FastGelu", [f32(rng, *shape, scale=2), some(rng, f32(rng, shape[-1]))], atol=1e-4)


@generator
def BiasSplitGelu(rng):
    n, s, c = dims(rng, 3, 3)

    def reference(x, bias):
        y = x.astype(np.float64) + bias
        return (y[..., :c] * gelu(y[..., c:])).astype(np.float32)

    return Case("BiasSplitGelu", [f32(rng, n, s, 2 * c), f32(rng, 2 * c)], reference=reference)


@generator
def BiasAdd(rng):
    n, s, c = dims(rng, 3, 3)
    return Case("BiasAdd", [f32(rng, n, s, c), f32(rng, c), f32(rng, n, s, c)],
                reference=lambda x, b, s: x + b + s)


# ---- normalisations ----


@generator
def SkipLayerNormalization(rng):
    b, s, h = dims(rng, 3, 3, 9)
    h += 1
    flat = rng.random() < 0.2
    shape = (b, h) if flat else (b, s, h)
    skip = f32(rng, *shape) if flat else f32(rng, *pick(rng, (b, s, h), (1, s, h), (s, h)))
    attrs = drop({"epsilon": some(rng, 1e-5)})
    inputs = [f32(rng, *shape), skip, f32(rng, h), some(rng, f32(rng, h)), some(rng, f32(rng, h))]
    if rng.random() < 0.3:
        inputs = [None if a is None else a.astype(np.float16) for a in inputs]
    return Case("SkipLayerNormalization", inputs, attrs, outputs=4, skip_outputs=(1, 2), rtol=1e-3, atol=1e-4)


@generator
def SkipSimplifiedLayerNormalization(rng):
    b, s, h = dims(rng, 3, 3, 9)
    h += 1
    inputs = [f32(rng, b, s, h), f32(rng, *pick(rng, (b, s, h), (1, s, h), (s, h))), f32(rng, h), some(rng, f32(rng, h))]
    if rng.random() < 0.3:
        inputs = [None if a is None else a.astype(np.float16) for a in inputs]
    return Case("SkipSimplifiedLayerNormalization", inputs, drop({"epsilon": some(rng, 1e-5)}), outputs=4,
                skip_outputs=(1, 2), rtol=1e-3, atol=1e-4)


@generator
def SimplifiedLayerNormalization(rng):
    shape = dims(rng, 1, 4)
    axis = int(rng.integers(-len(shape), len(shape)))
    kind = pick(rng, np.float32, np.float64, np.float32)
    return Case("SimplifiedLayerNormalization", [f32(rng, *shape).astype(kind), f32(rng, *shape[axis:]).astype(kind)],
                drop({"axis": axis, "epsilon": some(rng, 1e-3), "stash_type": 1}), domain="", rtol=1e-3)


@generator
def GroupNorm(rng):
    return group_norm(rng, False)


@generator
def SkipGroupNorm(rng):
    return group_norm(rng, True)


def group_norm(rng, skips):
    n, groups, width, h, w = dims(rng, 5, 5, 3)
    c = groups * width
    last = int(rng.integers(2))
    shape = (n, h, w, c) if last else (n, c, h, w)
    attrs = {"groups": groups, "channels_last": last, "activation": int(rng.integers(2)), "epsilon": 1e-3}
    inputs = [f32(rng, *shape), f32(rng, c), f32(rng, c)]
    if skips:
        inputs += [f32(rng, *shape), some(rng, f32(rng, c))]

    def reference(x, gamma, beta, skip=None, bias=None, **_):
        x = x.astype(np.float64)
        if last:
            x = np.moveaxis(x, -1, 1)
        if skip is not None:
            x = x + (np.moveaxis(skip, -1, 1) if last else skip)
        if bias is not None:
            x = x + bias[:, None, None]
        y = x.reshape(n, groups, -1)
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-3)
        y = y.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
        if attrs["activation"]:
            y = y / (1 + np.exp(-y))
        outs = [y] + ([x] if skips else [])
        return [(np.moveaxis(o, 1, -1) if last else o).astype(np.float32) for o in outs]

    return Case("SkipGroupNorm" if skips else "GroupNorm", inputs, attrs, outputs=2 if skips else 1,
                reference=reference, rtol=1e-3, atol=1e-4)


@generator
def EmbedLayerNormalization(rng):
    b, s, h, v = dims(rng, 4, 4, 6)
    h += 1
    segments = rng.random() < 0.7
    ids = rng.integers(0, v, (b, s)).astype(np.int32)
    inputs = [ids, rng.integers(0, 2, (b, s)).astype(np.int32) if segments else None, f32(rng, v, h), f32(rng, s + 2, h),
              f32(rng, 2, h) if segments else None, f32(rng, h), f32(rng, h),
              some(rng, rng.integers(0, 2, (b, s)).astype(np.int32)),
              some(rng, rng.integers(0, s + 2, pick(rng, (b, s), (1, s))).astype(np.int32))]
    return Case("EmbedLayerNormalization", inputs, {"epsilon": 1e-5}, outputs=3, rtol=1e-3, atol=1e-4)


@generator
def QEmbedLayerNormalization(rng):
    b, s, h, v = dims(rng, 4, 4, 6)
    h += 1
    kind = pick(rng, np.uint8, np.int8)

    def table(*shape):
        return rng.integers(0, 100, shape).astype(kind)

    def scale():
        return np.float32(rng.uniform(0.01, 0.1)).reshape(())

    def zero():
        return np.array(rng.integers(0, 100), kind)

    inputs = [rng.integers(0, v, (b, s)).astype(np.int32), rng.integers(0, 2, (b, s)).astype(np.int32), table(v, h),
              table(s, h), table(2, h), table(h), table(h), some(rng, rng.integers(0, 2, (b, s)).astype(np.int32)),
              *[scale() for _ in range(5)], *[zero() for _ in range(5)]]
    return Case("QEmbedLayerNormalization", inputs, {"epsilon": 1e-5}, outputs=2, rtol=1e-3, atol=1e-4)


# ---- matrix products ----


@generator
def FusedMatMul(rng):
    rank = int(rng.integers(2, 5))
    batch = dims(rng, rank - 2, rank - 2, 3) if rank > 2 else ()
    m, k, n = dims(rng, 3, 3)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    tba = int(rng.integers(2)) if rank > 2 else 0
    tbb = int(rng.integers(2)) if rank > 2 else 0

    def operand(rows, columns, trans, trans_batch):
        # trans swaps the last two axes of what trans_batch (which moves axis 0 behind the batch) gives.
        if trans:
            rows, columns = columns, rows
        return f32(rng, *((rows, *batch, columns) if trans_batch else (*batch, rows, columns)))

    kind = pick(rng, np.float32, np.float32, np.float64)
    return Case("FusedMatMul", [operand(m, k, ta, tba).astype(kind), operand(k, n, tb, tbb).astype(kind)],
                {"transA": ta, "transB": tb, "transBatchA": tba, "transBatchB": tbb, "alpha": float(rng.uniform(-2, 2))})


@generator
def TransposeMatMul(rng):
    batch = dims(rng, 0, 2, 3)
    m, k, n = dims(rng, 3, 3)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    a = f32(rng, *batch, *((k, m) if ta else (m, k)))
    b = f32(rng, *batch, *((n, k) if tb else (k, n)))
    return Case("TransposeMatMul", [a, b], {"transA": ta, "transB": tb, "alpha": 0.5})


def activation_of(name, x, alpha=None, beta=None, gamma=None):
    return {
        "Relu": lambda: np.maximum(x, 0), "Tanh": lambda: np.tanh(x), "Sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "LeakyRelu": lambda: np.where(x < 0, alpha * x, x), "Clip": lambda: np.clip(x, alpha, beta),
        "HardSigmoid": lambda: np.clip(alpha * x + beta, 0, 1),
    }[name]()


@generator
def FusedMatMulActivation(rng):
    m, k, n = dims(rng, 3, 3)
    name = pick(rng, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid")
    alpha, beta = float(rng.uniform(0.1, 0.5)), 0.4

    def reference(a, b, **_):
        return activation_of(name, 2.0 * (a.astype(np.float64) @ b), alpha, beta).astype(np.float32)

    return Case("FusedMatMulActivation", [f32(rng, m, k), f32(rng, k, n)],
                {"activation": name, "activation_alpha": alpha, "activation_beta": beta, "alpha": 2.0},
                reference=reference)


@generator
def FusedGemm(rng):
    m, k, n = dims(rng, 3, 3)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    name = pick(rng, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign", "ThresholdedRelu",
                "Selu", "ParametricSoftplus")
    attrs = {"activation": name, "transA": ta, "transB": tb, "alpha": 0.7, "beta": 1.3}
    if name in ("LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu", "Selu", "ParametricSoftplus"):
        attrs["activation_alpha"] = 0.3
    if name in ("HardSigmoid", "ParametricSoftplus"):
        attrs["activation_beta"] = 0.4
    if name == "Selu":
        attrs["activation_gamma"] = 1.1
    c = pick(rng, None, f32(rng, n), f32(rng, m, 1), f32(rng, m, n), f32(rng, 1))
    return Case("FusedGemm", [f32(rng, *((k, m) if ta else (m, k))), f32(rng, *((n, k) if tb else (k, n))), c], attrs)


@generator
def GemmFastGelu(rng):
    b, m, k, n = dims(rng, 4, 4)

    def reference(x, w, bias=None):
        y = x.astype(np.float64) @ w + (0 if bias is None else bias)
        return (y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))).astype(np.float32)

    return Case("GemmFastGelu", [f32(rng, b, m, k), f32(rng, k, n), some(rng, f32(rng, n))], reference=reference)


def nbits(rng, bits):
    block = int(pick(rng, 16, 32, 64))
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 4)) * block - int(pick(rng, 0, 0, 3))
    blocks = -(-k // block)
    return block, n, k, blocks


@generator
def MatMulNBits(rng):
    bits = int(pick(rng, 4, 4, 8, 2))
    block, n, k, blocks = nbits(rng, bits)
    if rng.random() < 0.5:
        k = blocks * block
    b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
    zeros = None
    if rng.random() < 0.5:
        zeros = rng.integers(0, 256, (n, (blocks * bits + 7) // 8)).astype(np.uint8)
        if bits == 4 and blocks % 2:
            zeros[:, -1] &= 15
    elif rng.random() < 0.3 and bits == 4:
        zeros = rng.uniform(0, 15, (n, blocks)).astype(np.float32)
    g_idx = None
    if rng.random() < 0.2 and bits == 4 and k == blocks * block:
        g_idx = rng.integers(0, blocks, k).astype(np.int32)
    a = f32(rng, *dims(rng, 1, 2, 4), k)
    constants = (1, 2, 3, 4, 5) if rng.random() < 0.5 else ()
    return Case("MatMulNBits", [a, b, scales, zeros, g_idx, some(rng, f32(rng, n), 0.3)],
                {"K": k, "N": n, "bits": bits, "block_size": block}, constants=constants, rtol=1e-3, atol=1e-3)


@generator
def MatMulIntegerToFloat(rng):
    m, k, n = dims(rng, 3, 3, 8)
    a_kind, b_kind = pick(rng, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))

    def codes(kind, *shape):
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)

    each = rng.random() < 0.5
    batch = dims(rng, 0, 1, 3)
    inputs = [codes(a_kind, *batch, m, k), codes(b_kind, k, n), np.float32(rng.uniform(0.001, 0.1)).reshape(()),
              rng.uniform(0.001, 0.1, (n,) if each else ()).astype(np.float32), some(rng, codes(a_kind)),
              some(rng, codes(b_kind, *((n,) if each else ()))), some(rng, f32(rng, n))]
    return Case("MatMulIntegerToFloat", inputs, rtol=1e-4, atol=1e-3)


@generator
def DynamicQuantizeMatMul(rng):
    m, k, n = dims(rng, 3, 3, 8)
    kind = pick(rng, np.uint8, np.int8)
    each = rng.random() < 0.5
    b = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (k, n)).astype(kind)
    zero = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (n,) if each else (1,)).astype(kind)
    return Case("DynamicQuantizeMatMul",
                [f32(rng, *dims(rng, 0, 1, 3), m, k), b, rng.uniform(0.001, 0.1, (n,) if each else (1,)).astype(np.float32),
                 some(rng, zero), some(rng, f32(rng, n))], rtol=1e-3, atol=1e-3)


@generator
def MatMulInteger16(rng):
    m, k, n = dims(rng, 3, 3)
    return Case("MatMulInteger16", [rng.integers(-9999, 9999, (*dims(rng, 0, 1, 3), m, k)).astype(np.int16),
                                    rng.integers(-999, 999, (k, n)).astype(np.int16)])


@generator
def QGemm(rng):
    m, k, n = dims(rng, 3, 3, 8)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    a_kind, b_kind = pick(rng, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    each = rng.random() < 0.5

    def codes(kind, *shape):
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)

    quantised = rng.random() < 0.5
    inputs = [codes(a_kind, *((k, m) if ta else (m, k))), np.float32(0.03).reshape(()), codes(a_kind),
              codes(b_kind, *((n, k) if tb else (k, n))), rng.uniform(0.01, 0.05, (n,) if each else ()).astype(np.float32),
              codes(b_kind, *((n,) if each else ())),
              pick(rng, None, rng.integers(-5000, 5000, (n,)).astype(np.int32), rng.integers(-5000, 5000, (m, n)).astype(np.int32)),
              np.float32(0.4).reshape(()) if quantised else None, codes(a_kind) if quantised else None]
    return Case("QGemm", inputs, {"alpha": float(pick(rng, 1.0, 0.5)), "transA": ta, "transB": tb}, quantum=1, atol=1e-3)


@generator
def MulInteger(rng):
    shape = dims(rng)
    kind = pick(rng, np.uint8, np.int8)
    a, b = (rng.integers(0, 100, shape).astype(kind) for _ in range(2))
    z = [some(rng, np.array(rng.integers(0, 50), kind)) for _ in range(2)]

    def reference(a, az, b, bz):
        zero = [0 if z is None else int(z) for z in (az, bz)]
        return ((a.astype(np.int32) - zero[0]) * (b.astype(np.int32) - zero[1])).astype(np.int32)

    return Case("MulInteger", [a, z[0], b, z[1]], reference=reference) if z[1] is not None else Case(
        "MulInteger", [a, z[0], b], reference=lambda a, az, b: reference(a, az, b, None))


@generator
def ReduceSumInteger(rng):
    shape = dims(rng, 2, 4)
    kind, wide = pick(rng, (np.uint8, np.uint32), (np.int8, np.int32))
    axes = sorted(int(a) for a in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
    keep = int(rng.integers(2))
    return Case("ReduceSumInteger", [rng.integers(0, 100, shape).astype(kind)], {"axes": axes, "keepdims": keep},
                reference=lambda x, **_: x.sum(tuple(axes), keepdims=bool(keep)).astype(wide))
