"""Generators: elementwise, comparisons, reductions, products, windows, quantisation."""

import numpy as np

from .core import Case, Skip

GENERATORS = {}


def generator(*names):
    def register(function):
        for name in names:
            GENERATORS[name] = function
        return function
    return register


@generator("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp",
           "Floor", "HardSwish", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid",
           "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "BitwiseNot")
def unary(g):
    return Case(g, [g.arr(g.shape(), g.dtype("T"))])


ALPHA = {"Celu": ("alpha",), "Elu": ("alpha",), "LeakyRelu": ("alpha",), "Selu": ("alpha", "gamma"),
         "ThresholdedRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Shrink": ("lambd", "bias"),
         "Swish": ("alpha",)}


@generator(*ALPHA)
def unary_with_parameters(g):
    names = [n for n in ALPHA[g.op] if g.chance(0.7)]
    return Case(g, [g.arr(g.shape(), g.dtype("T"))],
                {n: round(float(g.rng.random() * 2 + 0.25), 2) for n in names})


@generator("Gelu")
def gelu(g):
    return Case(g, [g.arr(g.shape(), g.dtype("T"))], {"approximate": g.pick("none", "tanh")})


@generator("IsNaN", "IsInf")
def classify(g):
    attributes = {}
    if g.op == "IsInf" and g.chance(0.6):
        attributes = {"detect_negative": g.int(0, 1), "detect_positive": g.int(0, 1)}
    return Case(g, [g.arr(g.shape(), g.dtype("T1"), special=0.9)], attributes)


@generator("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
           "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu")
def binary(g):
    shape, kind = g.shape(), g.dtype("T")
    a, b = g.arr(shape, kind), g.arr(g.broadcastable(shape), kind)
    if g.op != "PRelu" and g.chance(0.3):
        a, b = b, a
    return Case(g, [a, b])


@generator("Div", "Mod")
def division(g):
    shape, kind = g.shape(), g.dtype("T")
    a, b = g.arr(shape, kind), g.arr(g.broadcastable(shape), kind)
    if np.issubdtype(b.dtype, np.integer):
        b = np.where(b == 0, np.asarray(3, b.dtype), b)
        if np.issubdtype(b.dtype, np.signedinteger):  # least / -1 overflows
            a = np.where(a == np.iinfo(a.dtype).min, np.asarray(7, a.dtype), a)
    attributes = {}
    if g.op == "Mod":
        real = not np.issubdtype(a.dtype, np.integer)
        attributes = {"fmod": 1} if real or g.chance(0.5) else {}
    return Case(g, [a, b], attributes)


@generator("Pow")
def power(g):
    shape = g.shape()
    a = g.arr(shape, g.dtype("T"), special=0.1)
    b = g.arr(g.broadcastable(shape), g.dtype("T1"), special=0.05)
    if np.issubdtype(a.dtype, np.integer):
        b = np.round(np.clip(np.nan_to_num(np.abs(b.astype(np.float64))), 0, 4)).astype(b.dtype)
        a = np.clip(a, -9, 9)
    elif np.issubdtype(b.dtype, np.integer):
        b = np.clip(b.astype(np.int64), -4 if np.issubdtype(b.dtype, np.signedinteger) else 0, 6).astype(b.dtype)
    return Case(g, [a, b])


@generator("SwiGLU")
def two_equal(g):
    shape, kind = g.shape(), g.dtype("T")
    return Case(g, [g.arr(shape, kind), g.arr(shape, kind)], {"alpha": 1.5} if g.chance(0.5) else {})


@generator("BitShift")
def shift(g):
    shape, kind = g.shape(), g.dtype("T")
    b = g.arr(g.broadcastable(shape), kind, low=0, high=7)
    return Case(g, [g.arr(shape, kind, low=0, high=100), b], {"direction": g.pick("LEFT", "RIGHT")})


@generator("Max", "Min", "Sum", "Mean")
def variadic(g):
    shape, kind = g.shape(), g.dtype("T")
    return Case(g, [g.arr(shape if k == 0 else g.broadcastable(shape), kind)
                    for k in range(g.int(1, 4))])


@generator("Clip")
def clip(g):
    kind = g.dtype("T")
    low, high = g.arr((), kind, special=0), g.arr((), kind, special=0)
    if low > high:
        low, high = high, low
    return Case(g, [g.arr(g.shape(), kind), low if g.chance(0.7) else None,
                    high if g.chance(0.7) else None])


@generator("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
           "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceSum")
def reduce(g):
    shape = g.shape(0, 4)
    kind = g.dtype("T")
    data = g.arr(shape, kind, special=0.08)
    if g.op == "ReduceLogSum":
        data = np.abs(data)
    inputs = [data]
    if g.chance(0.75):
        inputs.append(np.array(g.axes(len(shape)), np.int64))
    attributes = {}
    if g.chance(0.5):
        attributes["keepdims"] = g.int(0, 1)
    if g.chance(0.3):
        attributes["noop_with_empty_axes"] = g.int(0, 1)
    return Case(g, inputs, attributes)


@generator("ArgMax", "ArgMin")
def arg(g):
    shape = g.shape(1, 4, empty=0)
    attributes = {"axis": g.axis(len(shape))}
    if g.chance(0.5):
        attributes["keepdims"] = g.int(0, 1)
    if g.chance(0.3):
        attributes["select_last_index"] = g.int(0, 1)
    return Case(g, [g.arr(shape, g.dtype("T"), special=0.03)], attributes)


@generator("CumSum", "CumProd")
def cumulative(g):
    if g.op == "CumProd":
        kind = g.dtype("T")
    else:
        kind = g.dtype("T")
    shape = g.shape(1, 4)
    axis = np.array(g.axis(len(shape)), g.pick(np.int32, np.int64))
    return Case(g, [g.arr(shape, kind, special=0.05), axis],
                {"exclusive": g.int(0, 1), "reverse": g.int(0, 1)})


@generator("Softmax", "LogSoftmax", "Hardmax")
def along_axis(g):
    shape = g.shape(1, 4, empty=0)
    return Case(g, [g.arr(shape, g.dtype("T"), special=0.04)],
                {"axis": g.axis(len(shape))} if g.chance(0.8) else {})


@generator("LpNormalization")
def lp_normalization(g):
    shape = g.shape(1, 4, empty=0)
    return Case(g, [g.arr(shape, g.dtype("T"), special=0)],
                {"axis": g.axis(len(shape)), "p": g.int(1, 2)})


@generator("MatMul")
def matmul(g):
    kind = g.dtype("T")
    n, k, m = (g.int(0 if g.chance(0.05) else 1, 5) for _ in range(3))
    batch = g.shape(0, 2, 3, empty=0)
    a = g.pick((k,), (n, k), (*batch, n, k), (*g.broadcastable(batch), n, k))
    b = g.pick((k,), (k, m), (*batch, k, m))
    return Case(g, [g.arr(a, kind, special=0), g.arr(b, kind, special=0)])


@generator("Gemm")
def gemm(g):
    kind = g.dtype("T")
    n, k, m = (g.int(1, 6) for _ in range(3))
    ta, tb = g.int(0, 1), g.int(0, 1)
    inputs = [g.arr((k, n) if ta else (n, k), kind, special=0),
              g.arr((m, k) if tb else (k, m), kind, special=0)]
    if g.chance(0.7):
        inputs.append(g.arr(g.pick((n, m), (m,), (1, m), (n, 1), (), (1,)), kind, special=0))
    attributes = {"transA": ta, "transB": tb}
    if inputs[0].dtype.kind == "f" and g.chance(0.5):
        attributes |= {"alpha": 0.5, "beta": 1.25}
    return Case(g, inputs, attributes)


@generator("Einsum")
def einsum(g):
    kind = g.dtype("T")
    size = {c: g.int(1, 4) for c in "ijklb"}
    equation = g.pick("ij,jk->ik", "ij->ji", "ii->i", "ii", "ij,ij->", "bij,bjk->bik", "i,j->ij", "ij->",
                      "...ij,...jk->...ik", "ij,jk,kl->il", "ij,ik->jk", "bii->bi", "i,i", "ij,j",
                      "...i->...", "ijk->kj", "ij , jk -> ik", "i,->i")
    terms = equation.replace(" ", "").split("->")[0].split(",")
    shape = lambda t: tuple(size[c] for c in t.replace("...", "b"))
    return Case(g, [g.arr(shape(t), kind, special=0) for t in terms], {"equation": equation})


@generator("Det")
def det(g):
    n = g.int(1, 4)
    return Case(g, [g.arr((*g.shape(0, 2, 3, empty=0), n, n), g.dtype("T"), special=0)])


@generator("Range")
def range_(g):
    kind = g.dtype("T")
    delta = g.pick(1, 2, 3, -1, -2) if not kind.startswith("uint") else g.int(1, 3)
    start, limit = g.int(-8, 8), g.int(-8, 8)
    values = [start, limit, delta]
    if kind in ("float", "double") and g.chance(0.5):
        values = [v + 0.25 for v in values]
    from .core import DTYPES
    return Case(g, [np.array(v, DTYPES[kind]) for v in values])


@generator("BlackmanWindow", "HammingWindow", "HannWindow")
def window(g):
    attributes = {"periodic": g.int(0, 1)} if g.chance(0.6) else {}
    if g.chance(0.6):
        attributes["output_datatype"] = g.pick(1, 11, 10, 6, 7)
    return Case(g, [np.array(g.int(2, 30), g.pick(np.int32, np.int64))], attributes)


@generator("MelWeightMatrix")
def mel(g):
    n = g.pick(8, 16, 32, 64, 20)
    high = g.int(300, 4000)
    return Case(g, [np.array(v, np.int64) for v in (g.int(1, 8), n, 8192)] +
                [np.array(v, np.float32) for v in (g.int(0, 200), high)])


@generator("DFT")
def dft(g):
    kind = g.dtype("T1", ("float", "double", "float16"))
    inverse, onesided = g.int(0, 1), g.int(0, 1)
    shape = list(g.shape(2, 4, 9, empty=0))
    axis = g.int(0, len(shape) - 1)
    real = bool(onesided and not inverse) or (not inverse and g.chance(0.4))
    shape = shape + [1 if real else 2]
    length = g.pick(None, shape[axis], g.int(1, 9))
    if onesided and inverse:
        length = 2 * (shape[axis] - 1) or None
    inputs = [g.arr(shape, kind, special=0), None if length is None else np.array(length, np.int64),
              np.array(axis - (len(shape) if g.chance(0.4) else 0), np.int64)]
    return Case(g, inputs, {"inverse": inverse, "onesided": onesided}, scale=True)


@generator("STFT")
def stft(g):
    kind = g.dtype("T1", ("float", "double"))
    signal, frame, step = g.int(8, 30), g.int(2, 8), g.int(1, 5)
    window_ = g.arr((frame,), kind, special=0) if g.chance(0.6) else None
    with_length = window_ is None or g.chance(0.5)
    return Case(g, [g.arr((g.int(1, 2), signal, 1), kind, special=0), np.array(step, np.int64), window_,
                    np.array(frame, np.int64) if with_length else None],
                {"onesided": g.int(0, 1)}, scale=True)


@generator("RandomNormal", "RandomUniform")
def random(g):
    attributes = {"shape": list(g.shape(1, 3)), "seed": float(g.int(0, 10**6)), "dtype": g.pick(1, 11, 10)}
    names = ("mean", "scale") if "Normal" in g.op else ("low", "high")
    if g.chance(0.6):
        attributes |= dict(zip(names, (0.5, 2.0)))
    return Case(g, [], attributes, random=True)


@generator("RandomNormalLike", "RandomUniformLike")
def random_like(g):
    attributes = {"seed": float(g.int(0, 10**6)), "dtype": g.pick(1, 11, 10)}
    return Case(g, [g.arr(g.shape(1, 3), g.dtype("T1", ("float", "int32", "double", "int64")))], attributes, random=True)


def quantised(g):
    return g.pick("uint8", "int8", "uint16", "int16") if g.opset >= 21 else g.pick("uint8", "int8")


@generator("QuantizeLinear")
def quantize(g):
    shape = g.shape(1, 4, empty=0)
    axis, kind = g.axis(len(shape)), g.dtype("T1", ("float", "float16", "int32"))
    mode = g.pick("tensor", "axis", "block")
    scale_shape, attributes = (), {}
    if mode == "axis":
        scale_shape, attributes = (shape[axis],), {"axis": axis}
    elif mode == "block":
        block = g.int(1, 3)
        blocks = list(shape)
        blocks[axis] = -(-shape[axis] // block)
        scale_shape, attributes = tuple(blocks), {"axis": axis, "block_size": block}
    to = g.pick("uint8", "int8", "uint16", "int16", "uint4", "int4")
    scale_kind = "float" if kind == "int32" else kind
    scale = g.arr(scale_shape, scale_kind, low=0.05, high=1.5)
    zero = g.arr(scale_shape, to, special=0, low=0, high=7) if g.chance(0.8) else None
    if zero is None:
        attributes["output_dtype"] = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint4": 21, "int4": 22}[to]
    return Case(g, [g.arr(shape, kind, special=0, scale=20), scale, zero], attributes)


@generator("DequantizeLinear")
def dequantize(g):
    shape = g.shape(1, 4, empty=0)
    axis, kind = g.axis(len(shape)), g.dtype("T1", ("uint8", "int8", "uint16", "int16", "int32", "uint4", "int4"))
    mode = g.pick("tensor", "axis", "block")
    scale_shape, attributes = (), {}
    if mode == "axis":
        scale_shape, attributes = (shape[axis],), {"axis": axis}
    elif mode == "block":
        block = g.int(1, 3)
        blocks = list(shape)
        blocks[axis] = -(-shape[axis] // block)
        scale_shape, attributes = tuple(blocks), {"axis": axis, "block_size": block}
    scale = g.arr(scale_shape, g.dtype("T2", ("float", "float16")), low=0.05, high=1.5)
    zero = g.arr(scale_shape, kind, special=0, low=0, high=7) if kind != "int32" and g.chance(0.7) else None
    return Case(g, [g.arr(shape, kind, special=0), scale, zero], attributes)


@generator("DynamicQuantizeLinear")
def dynamic_quantize(g):
    x = g.arr(g.shape(1, 4, empty=0), "float", special=0)
    return Case(g, [np.abs(x) if g.chance(0.3) else x], outputs=3)


@generator("MatMulInteger")
def matmul_integer(g):
    n, k, m = (g.int(1, 5) for _ in range(3))
    a, b = g.pick("uint8", "int8"), g.pick("uint8", "int8")
    az = g.arr((), a, special=0) if g.chance(0.6) else None
    bz = g.arr(g.pick((), (m,)), b, special=0) if g.chance(0.6) else None
    return Case(g, [g.arr((n, k), a), g.arr((k, m), b), az, bz])


@generator("QLinearMatMul")
def qlinear_matmul(g):
    n, k, m = (g.int(1, 5) for _ in range(3))
    a = g.pick("uint8", "int8")
    b, y = a if a == "int8" else g.pick("uint8", "int8"), a
    scale = lambda: g.arr((), "float", low=0.02, high=0.3)
    return Case(g, [g.arr((n, k), a), scale(), g.arr((), a, special=0), g.arr((k, m), b), scale(),
                    g.arr((), b, special=0), scale(), g.arr((), y, special=0)], step=True)
