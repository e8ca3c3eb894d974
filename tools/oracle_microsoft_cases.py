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
    output_types: dict = dataclasses.field(default_factory=dict)  # where inference leaves them open
    shared: dict = dataclasses.field(default_factory=dict)  # output: input whose buffer it takes
    opset: int = 21
    adjust: object = None  # clears what may be anything from outputs
    unfilled: object = None  # what fills the end of rows of output 0, where the peer leaves memory as it was

    def __post_init__(self):
        self.inputs = [None if a is None else np.asarray(a) for a in self.inputs]


GENERATORS = {}
SECTIONS = {}  # generator: file of tests
_section = ""


def section(name):
    global _section
    _section = name


def generator(function):
    GENERATORS[function.__name__] = function
    SECTIONS[function.__name__] = _section
    return function


def f32(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def some(rng, value, chance=0.5):
    return value if rng.random() < chance else None


def pick(rng, *values):
    return values[rng.integers(len(values))]


def dims(rng, low=1, high=3, most=6):
    return tuple(int(v) for v in rng.integers(1, most + 1, rng.integers(low, high + 1)))


def codes_of(rng, kind, *shape):
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)


def drop(attrs):
    return {k: v for k, v in attrs.items() if v is not None}


def erf(x):
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def gelu(x):
    x = np.asarray(x, np.float64)
    return x / 2 * (1 + erf(x / np.sqrt(2)))


section("activation")


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


section("normalization")


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


section("matmul")


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
    # With g_idx the runtime leaves packed zero points out.
    if rng.random() < 0.2 and bits == 4 and k == blocks * block and (zeros is None or zeros.dtype != np.uint8):
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


section("attention")


def int32(rng, low, high, *shape):
    return rng.integers(low, high, shape).astype(np.int32)


def raw_mask(rng, batch, rows, columns, forms=("none", "keys", "rows", "ends", "both")):
    form = pick(rng, *forms)
    if form == "keys":
        return int32(rng, 0, 2, batch, columns)
    if form == "rows":
        return int32(rng, 0, 2, batch, rows, columns)
    if form == "ends":
        return int32(rng, 1, columns + 1, batch)
    if form == "both":
        ends = int32(rng, 1, columns + 1, batch)
        return np.concatenate([ends, (ends * rng.uniform(0, 1, batch)).astype(np.int32)])
    return None


def show_first(mask, bias):
    """Next to a mask of -10000 alone, the last digits of a bias depend on the order of sums: shows one key."""
    if mask is not None and mask.ndim > 1 and bias is not None:
        mask[..., 0] = 1
    return mask, bias


def score_bias(rng, batch, heads, rows, columns, chance=0.3):
    return some(rng, f32(rng, pick(rng, 1, batch), pick(rng, 1, heads), rows, columns), chance)


@generator
def Attention(rng):
    b, s, heads, size, past = (int(v) for v in rng.integers(1, 5, 5))
    size *= pick(rng, 2, 4)
    hidden = int(rng.integers(1, 9))
    width = heads * size
    v_size = size
    attrs = {"num_heads": heads, "unidirectional": int(rng.integers(2))}
    with_past = rng.random() < 0.4
    wants_present = with_past or rng.random() < 0.3
    if not wants_present and rng.random() < 0.4:
        v_size = int(rng.integers(1, 5))
        attrs["qkv_hidden_sizes"] = [width, width, heads * v_size]
    if rng.random() < 0.3:
        attrs["scale"] = 0.3
    if rng.random() < 0.3:
        attrs["mask_filter_value"] = -1000.0
    before = past if with_past else 0
    total = s + before
    mask, bias = show_first(raw_mask(rng, b, s, total), score_bias(rng, b, heads, s, total))
    inputs = [f32(rng, b, s, hidden), f32(rng, hidden, 2 * width + heads * v_size),
              f32(rng, 2 * width + heads * v_size), mask, f32(rng, 2, b, heads, past, size) if with_past else None, bias]
    return Case("Attention", inputs, attrs, outputs=2 if wants_present else 1, rtol=1e-3, atol=1e-4)


@generator
def MultiHeadAttention(rng):
    b, s, length, heads, size, past = (int(v) for v in rng.integers(1, 6, 6))
    size *= 2
    width = heads * size
    v_size = pick(rng, size, int(rng.integers(1, 6)))
    attrs = {"num_heads": heads}
    form = pick(rng, "plain", "plain", "past", "cross")
    if form == "past":
        v_size, length = size, s
        attrs["unidirectional"] = int(rng.integers(2))
    total = length + (past if form == "past" else 0)
    inputs = [f32(rng, b, s, width)]
    if form == "cross":
        inputs += [f32(rng, b, heads, length, size), f32(rng, b, heads, length, size), None]
    else:
        inputs += [f32(rng, b, length, width), f32(rng, b, length, heads * v_size),
                   some(rng, f32(rng, 2 * width + heads * v_size))]
    inputs += show_first(raw_mask(rng, b, s, total, ("none", "keys", "rows", "ends")), score_bias(rng, b, heads, s, total))
    inputs += [f32(rng, b, heads, past, size), f32(rng, b, heads, past, size)] if form == "past" else [None, None]
    # With a past the runtime reads freed memory unless the present is asked for.
    outputs = 1 if form == "cross" else pick(rng, 3, 4) if form == "past" else pick(rng, 1, 3, 4)
    return Case("MultiHeadAttention", inputs, attrs, outputs=outputs, output_types={3: 1}, rtol=1e-3, atol=1e-4)


@generator
def DecoderMaskedMultiHeadAttention(rng):
    b, beams, heads, size, past, room = (int(v) for v in rng.integers(1, 5, 6))
    size *= 2
    total = past + 1
    room = total + room
    batch = b * beams
    width = heads * size
    attrs = {"num_heads": heads, "past_present_share_buffer": 1}
    mask = some(rng, int32(rng, 0, 2, batch, total))
    if mask is not None:
        mask[:, -1] = 1  # next to -10000 alone, the last digits depend on the order of sums
    inputs = [f32(rng, batch, 1, width), f32(rng, batch, 1, width), f32(rng, batch, 1, width),
              mask, score_bias(rng, 1, heads, 1, total),
              f32(rng, batch, heads, room, size), f32(rng, batch, heads, room, size), np.array([past], np.int32),
              np.array([beams], np.int32), int32(rng, 0, beams, b, beams, room), some(rng, f32(rng, 3 * width))]
    if rng.random() < 0.3:
        inputs[8] = inputs[9] = None
    return Case("DecoderMaskedMultiHeadAttention", inputs, attrs, outputs=3, rtol=1e-3, atol=1e-4,
                shared={1: 5, 2: 6})


def rope(rng, rows, half):
    angles = np.arange(rows)[:, None] / 100.0 ** (np.arange(half) / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@generator
def GroupQueryAttention(rng):
    b, kv_heads, group, s, past = (int(v) for v in rng.integers(1, 4, 5))
    heads, size = kv_heads * group, int(pick(rng, 16, 32))
    form = pick(rng, "prompt", "decode", "chunk", "shared")
    first = form == "prompt"
    if form in ("decode", "shared"):
        s = 1
    if form == "chunk":
        b, s = 1, s + 1
    past = 0 if first else past + 1
    total = s + past
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads}
    packed = rng.random() < 0.3
    rotary = rng.random() < 0.5
    width, kv_width = heads * size, kv_heads * size
    if packed:
        inputs = [f32(rng, b, s, width + 2 * kv_width), None, None]
    else:
        inputs = [f32(rng, b, s, width), f32(rng, b, s, kv_width), f32(rng, b, s, kv_width)]
    room = past + 5 if form == "shared" else past
    quantised = pick(rng, None, None, None, "PER_TENSOR", "PER_CHANNEL") if not first else None
    bits = int(pick(rng, 8, 4))
    if first:
        inputs += [None, None]
    elif quantised:
        stored = size // 2 if bits == 4 else size
        kind = np.uint8 if bits == 4 else np.int8
        inputs += [rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (b, kv_heads, room, stored)).astype(kind)
                   for _ in range(2)]
        attrs.update(k_quant_type=quantised, v_quant_type=quantised, kv_cache_bit_width=bits)
    else:
        inputs += [f32(rng, b, kv_heads, room, size), f32(rng, b, kv_heads, room, size)]
    lengths = np.full(b, total - 1, np.int32)
    if form == "decode" and b > 1:
        lengths[0] = rng.integers(0, total)
    inputs += [lengths, np.array(total, np.int32)]
    if rotary:
        attrs.update(do_rotary=1, rotary_interleaved=int(rng.integers(2)))
        inputs += list(rope(rng, total + 3, pick(rng, size // 2, 8)))
    else:
        inputs += [None, None]
    inputs.append(None)
    inputs.append(score_bias(rng, b, heads, s, total, 0.25))
    inputs.append(some(rng, f32(rng, heads), 0.2))
    if quantised:
        shape = (1,) if quantised == "PER_TENSOR" else (1, kv_heads, 1, size)
        inputs += [rng.uniform(0.01, 0.1, shape).astype(np.float32) for _ in range(2)]
    if rng.random() < 0.3:
        attrs["softcap"] = 2.0
    if rng.random() < 0.3:
        attrs["local_window_size"] = int(rng.integers(1, 5))
    if rng.random() < 0.2:
        attrs["smooth_softmax"] = 1
    if rng.random() < 0.2:
        attrs["scale"] = 0.2
    outputs = 3
    if rng.random() < 0.3 and not quantised:
        attrs["qk_output"] = int(rng.integers(1, 3))
        outputs = 4
        lengths[:] = total - 1  # behind the end of a shorter sequence the runtime leaves what was there
    if rng.random() < 0.2 and not quantised:
        inputs = [a.astype(np.float16) if a is not None and a.dtype == np.float32 else a for a in inputs]
    return Case("GroupQueryAttention", inputs, attrs, outputs=outputs, rtol=2e-3, atol=1e-3)


@generator
def GroupQueryAttentionWindowed(rng):
    """A cache that holds little more than a window. What lies behind the steps that stay is not said: it is not looked at."""
    b, kv_heads, group = (int(v) for v in rng.integers(1, 4, 3))
    heads, size = kv_heads * group, int(pick(rng, 8, 8, 16, 32))
    window = int(pick(rng, 2, rng.integers(1, 12)))
    capacity = window + int(pick(rng, 0, 0, 1, 4, 9))
    rows = int(pick(rng, 1, 1, rng.integers(2, 20)))
    past = int(pick(rng, 0, 5, rng.integers(1, 40)))
    if past and rows > 1:
        b = 1
    totals = np.full(b, past + rows)
    if past:
        totals[1:] -= rng.integers(0, past, b - 1)
    total = past + rows
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads, "local_window_size": window, "sliding_window_cache": 1}
    inputs = [f32(rng, b, rows, n * size) for n in (heads, kv_heads, kv_heads)]
    quantised = pick(rng, None, None, "PER_TENSOR", "PER_CHANNEL") if size == 32 else None
    bits = int(pick(rng, 8, 4))
    if quantised:
        attrs.update(k_quant_type=quantised, v_quant_type=quantised, kv_cache_bit_width=bits)
        stored, kind = (size // 2, np.uint8) if bits == 4 else (size, np.int8)
        inputs += [rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (b, kv_heads, capacity, stored)).astype(kind) for _ in range(2)]
    else:
        inputs += [f32(rng, b, kv_heads, capacity, size) for _ in range(2)]
    inputs += [(totals - 1).astype(np.int32), np.array(total, np.int32)]
    if rng.random() < 0.5 and size > 8:
        attrs.update(do_rotary=1, rotary_interleaved=int(rng.integers(2)))
        inputs += list(rope(rng, total + 3, size // 2))
    else:
        inputs += [None, None]
    inputs += [None, score_bias(rng, b, heads, rows, total, 0.25), some(rng, f32(rng, heads), 0.2)]
    if quantised:
        shape = (1,) if quantised == "PER_TENSOR" else (1, kv_heads, 1, size)
        inputs += [rng.uniform(0.01, 0.1, shape).astype(np.float32) for _ in range(2)]
    at_once = capacity - window + 1
    stays = [t if t <= capacity else t - at_once * -(-(t - capacity) // at_once) for t in totals]

    def said(outputs):
        for b, count in enumerate(stays):
            for cache in outputs[1:]:
                cache[b, :, count:] = 0
        return outputs

    full = min(stays) == capacity
    return Case("GroupQueryAttention", inputs, attrs, outputs=3, rtol=2e-3, atol=1e-3, adjust=None if full else said)


@generator
def SparseAttention(rng):
    b, kv_heads, group, blocks = (int(v) for v in rng.integers(1, 4, 4))
    heads, size, block = kv_heads * group, 16, 16
    blocks += 1
    room = blocks * block
    first = rng.random() < 0.5
    total = int(rng.integers(2, room + 1))
    s = total if first else 1
    layouts = int(pick(rng, 1, heads))
    mask = np.tril(rng.random((layouts, blocks, blocks)) < 0.5) | np.eye(blocks, dtype=bool)
    rows = np.concatenate([np.zeros((layouts, 1), int), mask.sum(2).cumsum(1)], 1).astype(np.int32)
    most = int(rows[:, -1].max())
    columns = np.zeros((layouts, most), np.int32)
    for i in range(layouts):
        found = np.nonzero(mask[i])[1]
        columns[i, :len(found)] = found
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads, "sparse_block_size": block}
    inputs = [f32(rng, b, s, heads * size), f32(rng, b, s, kv_heads * size), f32(rng, b, s, kv_heads * size),
              f32(rng, b, kv_heads, room, size), f32(rng, b, kv_heads, room, size), rows, columns,
              np.array([total], np.int32), np.full(b, total, np.int32)]
    if rng.random() < 0.4:
        attrs.update(do_rotary=1, rotary_interleaved=int(rng.integers(2)))
        inputs += list(rope(rng, room, size // 2))
    return Case("SparseAttention", inputs, attrs, outputs=3, rtol=1e-3, atol=1e-4, shared={1: 3, 2: 4})


@generator
def RotaryEmbedding(rng):
    b, s, heads = (int(v) for v in rng.integers(1, 5, 3))
    size = int(pick(rng, 4, 8, 16))
    partial = rng.random() < 0.3
    half = size // 4 if partial else size // 2
    cos, sin = rope(rng, s + 5, half)
    flat = rng.random() < 0.5
    attrs = {"interleaved": int(rng.integers(2))}
    if partial or (flat and rng.random() < 0.5):
        attrs["num_heads"] = heads
    if partial:
        attrs["rotary_embedding_dim"] = 2 * half
    x = f32(rng, *((b, s, heads * size) if flat else (b, heads, s, size)))
    positions = pick(rng, np.array([3], np.int64), rng.integers(0, s + 5, (b, s)).astype(np.int64))
    inputs = [x, positions, cos, sin]
    if rng.random() < 0.3:
        inputs = [a.astype(np.float16) if a.dtype == np.float32 else a for a in inputs]
    return Case("RotaryEmbedding", inputs, attrs)


@generator
def GemmaRotaryEmbedding(rng):
    b, n, s, d = dims(rng, 4, 4)
    q, qr, k, kr = (f32(rng, b, n, s, d).astype(np.float16) for _ in range(4))

    def reference(emb, q, qr, k, kr):
        cos, sin = (f(emb).astype(np.float16)[:, None].astype(np.float64) for f in (np.cos, np.sin))
        return [(a * cos + r * sin).astype(np.float16) for a, r in ((q, qr), (k, kr))]

    return Case("GemmaRotaryEmbedding", [f32(rng, b, s, d), q, qr, k, kr], outputs=2, reference=reference)


@generator
def QAttention(rng):
    b, s, heads, size, past = (int(v) for v in rng.integers(1, 5, 5))
    hidden, width = int(rng.integers(1, 9)), heads * size
    kind = pick(rng, np.uint8, np.int8)
    with_past = rng.random() < 0.3
    total = s + (past if with_past else 0)
    each = rng.random() < 0.3
    inputs = [rng.integers(0, 256, (b, s, hidden)).astype(np.uint8),
              rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (hidden, 3 * width)).astype(kind), f32(rng, 3 * width),
              np.array(0.01, np.float32), rng.uniform(0.001, 0.02, (3 * width,) if each else ()).astype(np.float32),
              raw_mask(rng, b, s, total), some(rng, np.array(rng.integers(0, 256), np.uint8)),
              some(rng, np.array(rng.integers(0, 100), kind)), f32(rng, 2, b, heads, past, size) if with_past else None]
    return Case("QAttention", inputs, {"num_heads": heads, "unidirectional": int(rng.integers(2))},
                outputs=2 if with_past else 1, rtol=1e-3, atol=1e-3)


def plain_attention(q, k, v, scale, lengths, bias=None):
    """[B, N, S, H] in double; the first lengths[b] keys of each sequence count."""
    scores = np.einsum("bnsh,bnth->bnst", q.astype(np.float64), k) * scale
    if bias is not None:
        scores = scores + bias
    for b, length in enumerate(lengths):
        scores[b, :, :, length:] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnst,bnth->bnsh", weights, v)


def packed_batch(rng):
    b, s, heads, size = (int(v) for v in rng.integers(1, 5, 4))
    lengths = rng.integers(1, s + 1, b)
    lengths[rng.integers(b)] = s
    inside = [i * s + j for i in range(b) for j in range(lengths[i])]
    outside = [i * s + j for i in range(b) for j in range(lengths[i], s)]
    offsets = np.array(inside + outside, np.int32).reshape(b, s)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return b, s, heads, size, lengths, inside, offsets, ends


def attend_packed(parts, b, s, heads, lengths, inside, bias):
    full = []
    for x in parts:
        size = x.shape[1] // heads
        y = np.zeros((b * s, heads * size))
        y[inside] = x
        full.append(y.reshape(b, s, heads, size).transpose(0, 2, 1, 3))
    y = plain_attention(*full, 1 / np.sqrt(full[0].shape[-1]), lengths, bias)
    return y.transpose(0, 2, 1, 3).reshape(b * s, -1)[inside].astype(np.float32)


@generator
def PackedAttention(rng):
    b, s, heads, size, lengths, inside, offsets, ends = packed_batch(rng)
    hidden, width = int(rng.integers(1, 9)), heads * size
    bias = score_bias(rng, b, heads, s, s)

    def reference(x, w, wb, _o, _e, bias=None, **_):
        all_parts = x.astype(np.float64) @ w + wb
        return attend_packed(np.split(all_parts, 3, 1), b, s, heads, lengths, inside, bias)

    return Case("PackedAttention", [f32(rng, len(inside), hidden), f32(rng, hidden, 3 * width), f32(rng, 3 * width), offsets,
                                    ends] + ([bias] if bias is not None else []), {"num_heads": heads}, reference=reference)


@generator
def PackedMultiHeadAttention(rng):
    b, s, heads, size, lengths, inside, offsets, ends = packed_batch(rng)
    width, count = heads * size, len(inside)
    packed = rng.random() < 0.5
    wb = some(rng, f32(rng, 3 * width))

    def reference(q, k, v, wb, _o, _e, **_):
        if packed:
            q, k, v = (q[:, :, i].reshape(count, width) for i in range(3))
        if wb is not None:
            q, k, v = q + wb[:width], k + wb[width:2 * width], v + wb[2 * width:]
        return attend_packed([q, k, v], b, s, heads, lengths, inside, None)

    parts = [f32(rng, count, heads, 3, size), None, None] if packed else [f32(rng, count, width) for _ in range(3)]
    return Case("PackedMultiHeadAttention", [*parts, wb, offsets, ends], {"num_heads": heads}, reference=reference)


@generator
def RemovePadding(rng):
    b, s, _h, _n, lengths, inside, offsets, ends = packed_batch(rng)
    x = f32(rng, b, s, 3)
    return Case("RemovePadding", [x, lengths.astype(np.int32)], outputs=4, reference=lambda x, _l: [
        x.reshape(b * s, -1)[inside], offsets, ends, np.array([lengths.max()], np.int32)])


@generator
def RestorePadding(rng):
    b, s, _h, _n, _l, inside, offsets, _e = packed_batch(rng)

    def reference(x, _o):
        y = np.zeros((b * s, x.shape[1]), np.float32)
        y[inside] = x
        return y.reshape(b, s, -1)

    return Case("RestorePadding", [f32(rng, len(inside), 3), offsets], reference=reference)


@generator
def RelativePositionBias(rng):
    buckets, heads, q, k = int(pick(rng, 8, 16, 32)), *(int(v) for v in rng.integers(1, 30, 3))
    both, most = int(rng.integers(2)), int(pick(rng, 20, 128))

    def reference(table, *_, **__):
        distance = np.arange(k)[None, :] - np.arange(q)[:, None]
        n = buckets // 2 if both else buckets
        base = (distance > 0) * n if both else 0
        distance = np.abs(distance) if both else np.maximum(-distance, 0)
        exact = n // 2
        with np.errstate(divide="ignore"):
            far = exact + (np.log(distance.astype(np.float32) / np.float32(exact)) / np.log(np.float32(most) / np.float32(exact))
                           * np.float32(n - exact)).astype(np.float32)
        far = np.minimum(np.where(np.isfinite(far), far, 0).astype(np.int64), n - 1)
        return table[base + np.where(distance < exact, distance, far)].transpose(2, 0, 1)[None]

    return Case("RelativePositionBias", [f32(rng, buckets, heads), np.array([q], np.int64), np.array([k], np.int64)],
                {"max_distance": most, "is_bidirectional": both}, reference=reference)


@generator
def GatedRelativePositionBias(rng):
    b, s, n, h = dims(rng, 4, 4)

    def reference(q, qb, pos, w, wb, eco, **_):
        x = (q + qb).astype(np.float64).reshape(b, s, n, h).transpose(0, 2, 1, 3) @ w + wb
        gates = 1 / (1 + np.exp(-x.reshape(b, n, s, 2, 4).sum(-1)))
        u = gates[..., :1] * (gates[..., 1:] * eco - 1) + 2
        return (u * pos).astype(np.float32)

    return Case("GatedRelativePositionBias", [f32(rng, b, s, n * h), f32(rng, n * h), f32(rng, 1, n, s, s), f32(rng, h, 8),
                                              f32(rng, 8), f32(rng, 1, n, 1, 1)], {"num_heads": n}, reference=reference)


section("experts")


@generator
def MoE(rng):
    rows, hidden, inner, experts = (int(v) for v in rng.integers(2, 7, 4))
    k = int(rng.integers(1, experts + 1))
    act = pick(rng, "relu", "gelu", "silu", "identity", "swiglu")
    attrs = {"k": k, "activation_type": act, "normalize_routing_weights": int(rng.integers(2))}
    fusion = 1
    if act == "swiglu":
        fusion = 2
        attrs.update(swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    inputs = [f32(rng, rows, hidden), f32(rng, rows, experts), f32(rng, experts, fusion * inner, hidden),
              some(rng, f32(rng, experts, fusion * inner)), f32(rng, experts, hidden, inner), some(rng, f32(rng, experts, hidden))]
    return Case("MoE", inputs, attrs, rtol=1e-3, atol=1e-3)


@generator
def MoESparseMixer(rng):
    rows, hidden, inner, experts = (int(v) for v in rng.integers(2, 7, 4))
    # Near ones, so that some count beside the best.
    scores = (f32(rng, rows, experts) * pick(rng, 1, 0.02) + rng.integers(-2, 3)).astype(np.float32)

    def reference(x, scores, first, absent, second, **_):
        # The runtime's kernel for the CPU takes no notice of the attribute: PhiMoE's formula, in evaluation.
        y = np.zeros_like(x, np.float64)
        for row in range(rows):
            left = scores[row].astype(np.float64)
            for _ in range(2):
                best = int(left.argmax())
                near = (left[best] - left) / np.maximum(np.abs(scores[row]), left[best]) <= 0.02
                weight = 1 / np.exp(left[near] - left[best]).sum()
                y[row] += weight * (second[best].astype(np.float64) @ np.maximum(first[best].astype(np.float64) @ x[row], 0))
                left[best] = -np.inf
        return y.astype(np.float32)
    return Case("MoE", [f32(rng, rows, hidden), scores, f32(rng, experts, inner, hidden), None, f32(rng, experts, hidden, inner)],
                {"k": 2, "use_sparse_mixer": 1}, reference=reference, rtol=1e-3, atol=1e-3)


@generator
def QMoE(rng):
    rows, hidden, inner, experts = int(rng.integers(1, 7)), 32, 32, int(rng.integers(2, 5))
    bits = int(pick(rng, 4, 8))
    block = int(pick(rng, 0, 16, 32))
    k = int(rng.integers(1, experts + 1))
    act = pick(rng, "relu", "gelu", "silu", "identity", "swiglu", "swiglu")
    # The runtime's kernel for the CPU normalises always.
    attrs = {"k": k, "activation_type": act, "normalize_routing_weights": 1, "expert_weight_bits": bits}
    if block:
        attrs["block_size"] = block
    fusion = 2 if act == "swiglu" else 1
    if act == "swiglu":
        attrs.update(swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)

    def codes(out, width):
        return rng.integers(0, 256, (experts, out, width * bits // 8)).astype(np.uint8)

    def scales(out, width):
        return rng.uniform(0.01, 0.03, (experts, out, width // block) if block else (experts, out)).astype(np.float32)

    inputs = [f32(rng, rows, hidden), f32(rng, rows, experts), codes(fusion * inner, hidden), scales(fusion * inner, hidden),
              some(rng, f32(rng, experts, fusion * inner)), codes(hidden, inner), scales(hidden, inner),
              some(rng, f32(rng, experts, hidden))]
    return Case("QMoE", inputs, attrs, rtol=2e-3, atol=2e-3)
