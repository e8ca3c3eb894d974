"""More random cases of com.microsoft operators: quantised, convolutions, tensors, recurrent."""

import numpy as np

from oracle_microsoft_cases import (
    Case, codes_of, dims, drop, f32, generator, int32, pick, plain_attention, section, some)

section("quantized")


def quantised_parameters(rng, kind, low=0.005, high=0.1):
    return [np.array(rng.uniform(low, high), np.float32), codes_of(rng, kind)]


def qlinear_binary(rng, op):
    shape = dims(rng, 1, 4)
    other = tuple(pick(rng, d, 1) for d in shape)[int(rng.integers(len(shape))):] if rng.random() < 0.5 else shape
    a, b = (shape, other) if rng.random() < 0.5 else (other, shape)
    kind = pick(rng, np.uint8, np.int8)
    # One step apart: the runtime multiplies by ratios of scales in float.
    return Case(op, [codes_of(rng, kind, *a), *quantised_parameters(rng, kind), codes_of(rng, kind, *b),
                     *quantised_parameters(rng, kind), *quantised_parameters(rng, kind, 0.05, 0.2)], quantum=1)


@generator
def QLinearAdd(rng):
    return qlinear_binary(rng, "QLinearAdd")


@generator
def QLinearMul(rng):
    return qlinear_binary(rng, "QLinearMul")


@generator
def QLinearSigmoid(rng):
    kind = pick(rng, np.uint8, np.int8)
    return Case("QLinearSigmoid", [codes_of(rng, kind, *dims(rng)), *quantised_parameters(rng, kind),
                                   *quantised_parameters(rng, kind)], quantum=0)


@generator
def QLinearLeakyRelu(rng):
    kind = pick(rng, np.uint8, np.int8)
    return Case("QLinearLeakyRelu", [codes_of(rng, kind, *dims(rng)), *quantised_parameters(rng, kind),
                                     *quantised_parameters(rng, kind)], {"alpha": float(rng.uniform(0, 1))}, quantum=0)


@generator
def QLinearSoftmax(rng):
    kind = pick(rng, np.uint8, np.int8)
    shape = tuple(d + 1 for d in dims(rng, 1, 4))  # along a single element the runtime gives 0, not 1
    zero = np.array(0 if kind == np.uint8 else -128, kind)
    return Case("QLinearSoftmax", [codes_of(rng, kind, *shape), *quantised_parameters(rng, kind),
                                   np.array(1 / 256, np.float32), zero],
                {"axis": int(rng.integers(-len(shape), len(shape))), "opset": int(pick(rng, 11, 13))}, quantum=1)


@generator
def QLinearWhere(rng):
    kind = pick(rng, np.uint8, np.int8)
    shape = dims(rng, 1, 3)
    inputs = [rng.random(shape) < 0.5]
    for _ in range(2):
        inputs += [codes_of(rng, kind, *pick(rng, shape, shape[-1:])), *quantised_parameters(rng, kind)]
    return Case("QLinearWhere", inputs + quantised_parameters(rng, kind), quantum=0)


@generator
def QLinearConcat(rng):
    kind = pick(rng, np.uint8, np.int8)
    shape = list(dims(rng, 1, 4))
    axis = int(rng.integers(-len(shape), len(shape)))
    inputs = quantised_parameters(rng, kind)
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(1, 5))
        inputs += [codes_of(rng, kind, *shape), *(quantised_parameters(rng, kind) if rng.random() < 0.7 else inputs[:2])]
    return Case("QLinearConcat", inputs, {"axis": axis}, quantum=0)


@generator
def QLinearAveragePool(rng):
    kind = pick(rng, np.uint8, np.int8)
    rank = int(pick(rng, 1, 2, 2, 3))
    n, c = dims(rng, 2, 2, 4)
    space = [int(v) for v in rng.integers(4, 9, rank)]
    kernel = [int(v) for v in rng.integers(1, 4, rank)]
    last = int(rng.integers(2))
    attrs = {"kernel_shape": kernel, "strides": [int(v) for v in rng.integers(1, 3, rank)], "channels_last": last,
             "count_include_pad": int(rng.integers(2))}
    if rng.random() < 0.5:
        attrs["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
    shape = (n, *space, c) if last else (n, c, *space)
    return Case("QLinearAveragePool", [codes_of(rng, kind, *shape), *quantised_parameters(rng, kind),
                                       *quantised_parameters(rng, kind)], attrs, quantum=1)


@generator
def QLinearGlobalAveragePool(rng):
    kind = pick(rng, np.uint8, np.int8)
    n, c, h, w = dims(rng, 4, 4)
    last = int(rng.integers(2))
    return Case("QLinearGlobalAveragePool", [codes_of(rng, kind, *((n, h, w, c) if last else (n, c, h, w))),
                                             *quantised_parameters(rng, kind), *quantised_parameters(rng, kind)],
                {"channels_last": last}, quantum=1)


@generator
def QLinearReduceMean(rng):
    kind = pick(rng, np.uint8, np.int8)
    shape = dims(rng, 2, 4)
    axes = sorted(int(a) for a in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
    keep = int(rng.integers(2))
    x, (xs, xz), (ys, yz) = codes_of(rng, kind, *shape), quantised_parameters(rng, kind), quantised_parameters(rng, kind)

    def reference(x, xs, xz, ys, yz, **_):
        y = ((x.astype(np.float64) - int(xz)) * float(xs)).mean(tuple(axes), keepdims=bool(keep)) / float(ys)
        return np.clip(np.round(y) + int(yz), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)

    return Case("QLinearReduceMean", [x, xs, xz, ys, yz], {"axes": axes, "keepdims": keep}, reference=reference, quantum=1)


@generator
def QLinearConv(rng):
    x_kind, w_kind = pick(rng, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    group = int(pick(rng, 1, 1, 2))
    n, c, m = (int(v) for v in rng.integers(1, 4, 3))
    c, m = c * group, m * group
    h, w = (int(v) for v in rng.integers(4, 8, 2))
    kernel = [int(v) for v in rng.integers(1, 4, 2)]
    last = int(rng.integers(2))
    each = rng.random() < 0.5
    attrs = {"channels_last": last, "group": group, "strides": [int(v) for v in rng.integers(1, 3, 2)],
             "pads": [int(v) for v in rng.integers(0, 2, 4)], "kernel_shape": kernel}
    weights = codes_of(rng, w_kind, m, c // group, *kernel)
    zero = np.array(0 if w_kind == np.int8 else 128, w_kind)
    inputs = [codes_of(rng, x_kind, *((n, h, w, c) if last else (n, c, h, w))), *quantised_parameters(rng, x_kind),
              weights, rng.uniform(0.005, 0.05, (m,) if each else ()).astype(np.float32), zero,
              *quantised_parameters(rng, x_kind, 0.1, 0.4), some(rng, int32(rng, -1000, 1000, m))]
    return Case("QLinearConv", inputs, attrs, quantum=1)


@generator
def QuantizeLinear(rng):
    kind = pick(rng, np.uint8, np.int8, np.uint16, np.int16)
    shape = dims(rng, 1, 4)
    axis = some(rng, int(rng.integers(-len(shape), len(shape))))
    many = () if axis is None else (shape[axis],)
    return Case("QuantizeLinear", [f32(rng, *shape, scale=5), rng.uniform(0.01, 0.1, many).astype(np.float32),
                                   codes_of(rng, kind, *many)], drop({"axis": axis}))


@generator
def DequantizeLinear(rng):
    kind = pick(rng, np.uint8, np.int8, np.uint16, np.int16, np.int32)
    shape = dims(rng, 1, 4)
    axis = some(rng, int(rng.integers(-len(shape), len(shape))))
    many = () if axis is None else (shape[axis],)
    zero = np.zeros(many, np.int32) if kind == np.int32 else codes_of(rng, kind, *many)
    return Case("DequantizeLinear", [codes_of(rng, kind, *shape), rng.uniform(0.01, 0.1, many).astype(np.float32), zero],
                drop({"axis": axis}))


@generator
def GatherBlockQuantized(rng):
    bits = int(pick(rng, 4, 8))
    block = 16
    rows, blocks = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    width = blocks * block
    kind = pick(rng, "uint8", "uint4", "int4")
    count = int(rng.integers(1, 4))
    if kind == "uint8":
        data = rng.integers(0, 256, (rows, width * bits // 8)).astype(np.uint8)
        zeros = some(rng, rng.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8))
        types, constants, attrs = {}, (), {"bits": bits}
    else:
        data = rng.integers(0, 16, (rows, width)).astype(np.uint8)
        zeros = some(rng, rng.integers(0, 16, (rows, blocks)).astype(np.uint8))
        number = {"uint4": 21, "int4": 22}[kind]
        types, constants, attrs = {0: number, 3: number}, (0, 3), {}
    indices = rng.integers(0, rows, dims(rng, 0, 2)).astype(pick(rng, np.int32, np.int64))
    scales = rng.uniform(0.01, 0.1, (rows, blocks)).astype(pick(rng, np.float32, np.float16))
    return Case("GatherBlockQuantized", [data, indices, scales, zeros],
                {"block_size": block, "gather_axis": 0, "quantize_axis": 1, **attrs}, types=types, constants=constants)


@generator
def MatMulBnb4(rng):
    m, n = dims(rng, 2, 2)
    block = int(pick(rng, 16, 32))
    k = block * int(rng.integers(1, 4))
    count = n * k
    return Case("MatMulBnb4", [f32(rng, m, k), rng.integers(0, 256, (count + 1) // 2).astype(np.uint8),
                               rng.uniform(0.1, 2, -(-count // block)).astype(np.float32)],
                {"K": k, "N": n, "block_size": block, "quant_type": int(rng.integers(2))}, rtol=1e-3, atol=1e-4)


section("convolution")


def conv_parts(rng, last=False):
    group = int(pick(rng, 1, 1, 2))
    n, c, m = (int(v) for v in rng.integers(1, 4, 3))
    c, m = c * group, m * group
    h, w = (int(v) for v in rng.integers(4, 8, 2))
    kernel = [int(v) for v in rng.integers(1, 4, 2)]
    attrs = {"group": group, "strides": [int(v) for v in rng.integers(1, 3, 2)], "pads": [int(v) for v in rng.integers(0, 2, 4)],
             "kernel_shape": kernel, "dilations": [1, 1]}
    x = f32(rng, *((n, h, w, c) if last else (n, c, h, w)))
    return x, f32(rng, m, c // group, *kernel), some(rng, f32(rng, m)), attrs


@generator
def FusedConv(rng):
    x, w, b, attrs = conv_parts(rng)
    name = pick(rng, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid")
    attrs["activation"] = name
    if name == "LeakyRelu":
        attrs["activation_params"] = [0.2]
    if name in ("Clip", "HardSigmoid"):
        attrs["activation_params"] = [-0.5, 0.7] if name == "Clip" else [0.3, 0.4]
    return Case("FusedConv", [x, w, b], attrs, rtol=1e-3, atol=1e-4)


def nhwc_reference(attrs):
    def reference(x, w, b=None, **_):
        import onnx
        from onnx.reference import ReferenceEvaluator

        names = ["x", "w"] + (["b"] if b is not None else [])
        node = onnx.helper.make_node("Conv", names, ["y"], **attrs)
        info = [onnx.helper.make_tensor_value_info(v, 1, None) for v in names]
        graph = onnx.helper.make_graph([node], "g", info, [onnx.helper.make_tensor_value_info("y", 1, None)])
        run = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)]))
        feed = {"x": np.moveaxis(x, -1, 1), "w": w, **({} if b is None else {"b": b})}
        return np.moveaxis(run.run(None, feed)[0], 1, -1).astype(np.float32)

    return reference


@generator
def NhwcConv(rng):
    x, w, b, attrs = conv_parts(rng, True)
    return Case("NhwcConv", [x, w] + ([b] if b is not None else []), attrs, reference=nhwc_reference(dict(attrs)), rtol=1e-3,
                atol=1e-4)


@generator
def NhwcMaxPool(rng):
    kind = pick(rng, np.uint8, np.int8)
    n, c, h, w = (int(v) for v in rng.integers(1, 8, 4))
    kernel = [int(v) for v in rng.integers(1, min(h, w, 3) + 1, 2)]
    return Case("NhwcMaxPool", [codes_of(rng, kind, n, h, w, c)],
                {"kernel_shape": kernel, "strides": [int(v) for v in rng.integers(1, 3, 2)],
                 "pads": [int(rng.integers(0, k)) for k in kernel * 2], "ceil_mode": int(rng.integers(2))})


@generator
def MaxpoolWithMask(rng):
    # The runtime stops at the first masked element of a row, never masks the first of all, and looks up masks
    # of further planes elsewhere: rows that end masked, on one plane.
    h, w = (int(v) for v in rng.integers(3, 8, 2))
    kernel = [int(v) for v in rng.integers(1, 4, 2)]
    mask = (np.arange(w) < rng.integers(1, w + 1, (1, 1, h, 1))).astype(np.int32)
    return Case("MaxpoolWithMask", [f32(rng, 1, 1, h, w), mask],
                {"kernel_shape": kernel, "strides": [int(v) for v in rng.integers(1, 3, 2)],
                 "pads": [int(rng.integers(0, k)) for k in kernel * 2]})


@generator
def ConvTransposeWithDynamicPads(rng):
    n, c, m = (int(v) for v in rng.integers(1, 4, 3))
    h, w = (int(v) for v in rng.integers(3, 6, 2))
    kernel = [int(v) for v in rng.integers(2, 4, 2)]
    return Case("ConvTransposeWithDynamicPads",
                [f32(rng, n, c, h, w), f32(rng, c, m, *kernel), rng.integers(0, 2, 4).astype(np.int64), some(rng, f32(rng, m))],
                {"strides": [int(v) for v in rng.integers(1, 3, 2)], "kernel_shape": kernel}, rtol=1e-3, atol=1e-4)


@generator
def CausalConvWithState(rng):
    b, c, t, k = dims(rng, 4, 4)
    last, dilation = rng.random() < 0.3, int(pick(rng, 1, 1, 2, 3))
    lead = (k - 1) * dilation
    own = (2, c) if last and rng.random() < 0.3 else (c,)
    if len(own) == 2:
        c *= 2
    x, state = ((b, t, *own), (b, lead, *own)) if last else ((b, c, t), (b, c, lead))
    return Case("CausalConvWithState", [f32(rng, *x), f32(rng, c, 1, k), some(rng, f32(rng, c)),
                                        some(rng, f32(rng, *state)) if lead else None],
                {"activation": pick(rng, "none", "silu", "swish"), "dilation": dilation, "channels_last": int(last)},
                outputs=2, rtol=1e-3, atol=1e-4)


@generator
def LinearAttention(rng):
    b, t, kv, group, dk, dv = dims(rng, 6, 6, 4)
    heads = kv * group
    if rng.random() < 0.2:
        heads, kv = kv, heads  # more keys and values than queries
    rule = pick(rng, "linear", "gated", "delta", "gated_delta")
    inputs = [f32(rng, b, t, heads * dk), f32(rng, b, t, kv * dk, scale=0.5), f32(rng, b, t, kv * dv),
              some(rng, f32(rng, b, kv, dk, dv)),
              -np.abs(f32(rng, b, t, pick(rng, kv, kv * dk))) if "gated" in rule else None,
              rng.uniform(0, 1, (b, t, pick(rng, kv, kv, 1))).astype(np.float32) if "delta" in rule else None]
    return Case("LinearAttention", inputs, {"q_num_heads": heads, "kv_num_heads": kv, "update_rule": rule}, outputs=2, rtol=1e-3,
                atol=1e-4)


section("tensor")


@generator
def CDist(rng):
    m, n, k = dims(rng, 3, 3)
    kind = pick(rng, np.float32, np.float64)
    return Case("CDist", [f32(rng, m, k).astype(kind), f32(rng, n, k).astype(kind)],
                {"metric": pick(rng, "euclidean", "sqeuclidean")}, rtol=1e-3, atol=1e-3)


@generator
def Inverse(rng):
    batch = dims(rng, 0, 2, 3)
    n = int(rng.integers(1, 5))
    x = f32(rng, *batch, n, n) + 3 * np.eye(n, dtype=np.float32)
    return Case("Inverse", [x.astype(pick(rng, np.float32, np.float64))], rtol=1e-3, atol=1e-3)


@generator
def ComplexMul(rng):
    shape = dims(rng, 1, 3)
    other = tuple(pick(rng, d, 1) for d in shape)

    def reference(a, b):
        y = (a[..., 0] + 1j * a[..., 1]) * (b[..., 0] + 1j * b[..., 1])
        return np.stack([y.real, y.imag], -1).astype(np.float32)

    return Case("ComplexMul", [f32(rng, *shape, 2), f32(rng, *other, 2)], reference=reference)


@generator
def ComplexMulConj(rng):
    shape = dims(rng, 1, 3)

    def reference(a, b):
        y = (a[..., 0] + 1j * a[..., 1]) * np.conj(b[..., 0] + 1j * b[..., 1])
        return np.stack([y.real, y.imag], -1).astype(np.float32)

    return Case("ComplexMulConj", [f32(rng, *shape, 2), f32(rng, *shape, 2)], reference=reference)


@generator
def Rfft(rng):
    shape = dims(rng, 1, 3, 9)

    def reference(x, **_):
        y = np.fft.rfft(x)
        return np.stack([y.real, y.imag], -1).astype(np.float32)

    return Case("Rfft", [f32(rng, *shape)], {"signal_ndim": 1, "normalized": 0, "onesided": 1}, reference=reference, atol=1e-4)


@generator
def Irfft(rng):
    y = np.fft.rfft(f32(rng, *dims(rng, 0, 2), 2 * int(rng.integers(1, 6))))

    def reference(z, **_):
        return np.fft.irfft(z[..., 0] + 1j * z[..., 1]).astype(np.float32)

    return Case("Irfft", [np.stack([y.real, y.imag], -1).astype(np.float32)], {"signal_ndim": 1, "normalized": 0, "onesided": 1},
                reference=reference, atol=1e-4)


@generator
def IsAllFinite(rng):
    parts = [f32(rng, *dims(rng)) for _ in range(int(rng.integers(1, 4)))]
    for part in parts:
        if rng.random() < 0.3:
            part.reshape(-1)[0] = pick(rng, np.nan, np.inf, -np.inf)
    attrs = pick(rng, {}, {"isinf_only": 1}, {"isnan_only": 1})

    def reference(*parts, isinf_only=0, isnan_only=0):
        bad = np.isinf if isinf_only else np.isnan if isnan_only else lambda x: ~np.isfinite(x)
        return np.array(not any(bad(p).any() for p in parts))

    return Case("IsAllFinite", parts, attrs, reference=reference)


@generator
def ExpandDims(rng):
    shape = dims(rng, 0)
    axis = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    return Case("ExpandDims", [f32(rng, *shape), np.array(axis, np.int32)])


@generator
def GatherND(rng):
    shape = dims(rng, 1, 4)
    depth = int(rng.integers(1, len(shape) + 1))
    where = dims(rng, 0, 2, 4)
    indices = np.stack([rng.integers(-d, d, where) for d in shape[:depth]], -1).astype(pick(rng, np.int32, np.int64))
    return Case("GatherND", [f32(rng, *shape), indices])


@generator
def GridSample(rng):
    n, c, h, w, i, j = dims(rng, 6, 6)
    mode = pick(rng, "bilinear", "nearest", "bicubic")
    # With bicubic and border the runtime clamps the point, not its neighbours as PyTorch does.
    padding = pick(rng, "zeros", "border", "reflection") if mode != "bicubic" else pick(rng, "zeros", "reflection")
    return Case("GridSample", [f32(rng, n, c, h, w), f32(rng, n, i, j, 2)],
                {"mode": mode, "padding_mode": padding, "align_corners": int(rng.integers(2))}, rtol=1e-3, atol=1e-3)


@generator
def Trilu(rng):
    shape = dims(rng, 2, 4)
    return Case("Trilu", [f32(rng, *shape).astype(pick(rng, np.float32, np.float64, np.int64)),
                          some(rng, np.array(rng.integers(-4, 5), np.int64))], {"upper": int(rng.integers(2))})


@generator
def Pad(rng):
    shape = tuple(d + 2 for d in dims(rng, 1, 3))
    mode = pick(rng, "constant", "reflect", "edge")
    low = -1 if mode == "constant" else 0
    pads = rng.integers(low, 3, 2 * len(shape)).astype(np.int64)
    if rng.random() < 0.3:
        pads = pads[None]
    return Case("Pad", [f32(rng, *shape), pads, some(rng, np.array([0.5], np.float32)) if mode == "constant" else None], {"mode": mode})


@generator
def Range(rng):
    kind = pick(rng, np.float32, np.float64, np.int16, np.int32, np.int64)
    start, count, step = int(rng.integers(-5, 5)), int(rng.integers(-2, 9)), int(pick(rng, -2, -1, 1, 2, 3))
    shape = pick(rng, (), (1,))
    values = [np.full(shape, v, kind) for v in (start, start + count * step, step)]
    return Case("Range", values[:2] if step == 1 and rng.random() < 0.5 else values)


@generator
def Unique(rng):
    return Case("Unique", [rng.integers(0, 5, int(rng.integers(1, 12))).astype(np.float32)], outputs=3)


@generator
def TorchEmbedding(rng):
    v, h = dims(rng, 2, 2)
    return Case("TorchEmbedding", [f32(rng, v, h), rng.integers(0, v, dims(rng)).astype(np.int64)],
                reference=lambda w, i: w[i])


@generator
def UnfoldTensor(rng):
    shape = dims(rng, 1, 4)
    dim = int(rng.integers(-len(shape), len(shape)))
    return Case("UnfoldTensor", [f32(rng, *shape)],
                {"dim": dim, "size": int(rng.integers(1, shape[dim] + 1)), "step": int(rng.integers(1, 4))})


@generator
def NGramRepeatBlock(rng):
    b, length, vocab = (int(v) for v in rng.integers(2, 8, 3))
    return Case("NGramRepeatBlock", [rng.integers(0, vocab, (b, length)).astype(np.int64), f32(rng, b, vocab)],
                {"ngram_size": int(rng.integers(1, 4))})


@generator
def DynamicTimeWarping(rng):
    m, n = dims(rng, 2, 2, 8)
    return Case("DynamicTimeWarping", [f32(rng, *pick(rng, (m, n), (1, m, n)))])


@generator
def BifurcationDetector(rng):
    n = int(rng.integers(1, 9))
    src = rng.integers(0, 4, n).astype(np.int64)
    prev = int(rng.integers(0, n))
    pred = np.concatenate([src[prev:], [int(rng.integers(0, 4))]]).astype(np.int64)
    if rng.random() < 0.7:
        pred[rng.integers(len(pred))] = 9
    cur = rng.integers(0, 4, int(rng.integers(1, 6))).astype(np.int64)
    return Case("BifurcationDetector", [src, cur, np.array([prev], np.int64), some(rng, pred, 0.8)], outputs=2)


@generator
def CropAndResize(rng):
    n, c, h, w = (int(v) for v in rng.integers(2, 8, 4))
    count = int(rng.integers(1, 5))
    rois = np.sort(rng.uniform(-0.2, 1.2, (count, 2, 2)), 1).transpose(0, 1, 2).reshape(count, 4).astype(np.float32)
    return Case("CropAndResize", [f32(rng, n, c, h, w), rois, int32(rng, 0, n, count), int32(rng, 1, 6, 2)],
                {"mode": pick(rng, "bilinear", "nearest"), "extrapolation_value": 0.25}, rtol=1e-3, atol=1e-3)


@generator
def MurmurHash3(rng):
    kind = pick(rng, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64, str)
    shape = dims(rng)
    if kind is str:
        x = np.array(["".join(chr(97 + int(v)) for v in rng.integers(0, 26, int(rng.integers(0, 9)))) for _ in range(int(np.prod(shape)))],
                     object).reshape(shape)
    else:
        x = (rng.standard_normal(shape) * 1000).astype(kind)
    return Case("MurmurHash3", [x], {"seed": int(rng.integers(0, 100)), "positive": int(rng.integers(2))})


@generator
def BiasDropout(rng):
    shape = dims(rng)
    inputs = [f32(rng, *shape), f32(rng, shape[-1]), some(rng, f32(rng, *shape))]

    def reference(x, b, r, *_):
        return [x + b + (0 if r is None else r), np.ones(shape, bool)]

    return Case("BiasDropout", [*inputs, np.array(0.5, np.float32), np.array(False)], outputs=2, reference=reference)


@generator
def BitmaskDropout(rng):
    x = f32(rng, *dims(rng, 1, 3, 9))
    full = x.size // 32
    bits = [0xFFFFFFFF] * full + ([(1 << x.size % 32) - 1] if x.size % 32 else [])
    return Case("BitmaskDropout", [x], outputs=2, reference=lambda x: [x, np.array(bits, np.uint32)])


@generator
def BiasSoftmax(rng):
    shape = dims(rng, 3, 4)
    axis = len(shape) - 1

    def reference(x, b, **_):
        y = np.exp((x + b).astype(np.float64))
        return (y / y.sum(-1, keepdims=True)).astype(np.float32)

    return Case("BiasSoftmax", [f32(rng, *shape), f32(rng, shape[0], *([1] * (len(shape) - 2)), shape[-1])],
                {"axis": axis, "is_inner_broadcast": 1}, reference=reference)


section("experimental")


def guest(op, *inputs, **attrs):
    return Case(op, list(inputs), attrs, domain="", opset=7)


@generator
def Affine(rng):
    return guest("Affine", f32(rng, *dims(rng)), alpha=0.5, beta=2.0)


@generator
def ParametricSoftplus(rng):
    return guest("ParametricSoftplus", f32(rng, *dims(rng)), alpha=0.5, beta=2.0)


@generator
def ScaledTanh(rng):
    return guest("ScaledTanh", f32(rng, *dims(rng)), alpha=0.5, beta=2.0)


@generator
def Scale(rng):
    return guest("Scale", f32(rng, *dims(rng)), scale=0.5)


@generator
def ImageScaler(rng):
    n, c, h, w = dims(rng, 4, 4)
    return guest("ImageScaler", f32(rng, n, c, h, w), scale=0.5, bias=[float(i) for i in range(c)])


@generator
def Crop(rng):
    n, c = dims(rng, 2, 2)
    border = [int(v) for v in rng.integers(0, 3, 4)]
    return guest("Crop", f32(rng, n, c, 8, 9), border=border, **({"scale": [3, 4]} if rng.random() < 0.5 else {}))


@generator
def DynamicSlice(rng):
    shape = dims(rng, 1, 3, 7)
    axes = rng.permutation(len(shape))[: int(rng.integers(1, len(shape) + 1))].astype(np.int64)
    starts = np.array([rng.integers(0, shape[a]) for a in axes], np.int64)
    return guest("DynamicSlice", f32(rng, *shape), starts, starts + 2, axes)


section("recurrent")


@generator
def DynamicQuantizeLSTM(rng):
    t, b, i, h = dims(rng, 4, 4)
    b = 1
    direction = pick(rng, "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    kind = pick(rng, np.uint8, np.int8)
    zero = 128 if kind == np.uint8 else 0
    inputs = [f32(rng, t, b, i), codes_of(rng, kind, d, i, 4 * h), codes_of(rng, kind, d, h, 4 * h), some(rng, f32(rng, d, 8 * h)),
              None, some(rng, f32(rng, d, b, h, scale=0.3)), some(rng, f32(rng, d, b, h, scale=0.3)), None,
              rng.uniform(0.001, 0.01, d).astype(np.float32), np.full(d, zero, kind),
              rng.uniform(0.001, 0.01, d).astype(np.float32), np.full(d, zero, kind)]
    return Case("DynamicQuantizeLSTM", inputs, {"hidden_size": h, "direction": direction}, outputs=3, constants=(1, 2, 8, 9, 10, 11),
                rtol=1e-2, atol=1e-2)


@generator
def WordConvEmbedding(rng):
    n, longest, filters, window, size, chars = (int(v) for v in rng.integers(2, 7, 6))
    longest += window
    words = rng.integers(1, chars, (n, longest)).astype(np.int32)
    for row in words:
        row[int(rng.integers(window, longest + 1)):] = 0
    return Case("WordConvEmbedding", [words, f32(rng, filters, 1, window, size), f32(rng, filters), f32(rng, chars, size)], rtol=1e-3,
                atol=1e-3)


@generator
def GatedAdd(rng):
    shape = dims(rng, 2, 3)
    return Case("GatedAdd", [f32(rng, *shape), f32(rng, *shape), f32(rng, *pick(rng, shape, (*shape[:-1], 1)))])


@generator
def GatedRMSNorm(rng):
    shape = dims(rng, 2, 3)
    return Case("GatedRMSNorm", [f32(rng, *shape), f32(rng, shape[-1]), f32(rng, *shape)], {"activation": pick(rng, "silu", "sigmoid")},
                rtol=1e-3)


section("other")


@generator
def Tokenizer(rng):
    words = ["ab cd", "a,b;c", "", "Hello  World", "x", ",,", "äöü ß,y", "one two,three"]
    shape = dims(rng, 1, 2, 3)
    x = np.array([pick(rng, *words) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    form = pick(rng, "separators", "characters", "expression")
    attrs = {"mark": int(rng.integers(2)), "pad_value": "#", "mincharnum": 1}
    if form == "characters":
        attrs["separators"] = [""]
    elif form == "separators":
        attrs["separators"] = pick(rng, [" "], [",", " "], [",", ";", " "], ["[,;]"])
        attrs["mincharnum"] = int(rng.integers(1, 4))
    else:
        attrs["tokenexp"] = pick(rng, "[a-z]+", "[A-Za-z]", "[^ ,]+")
        attrs["mincharnum"] = int(rng.integers(1, 4))
    return Case("Tokenizer", [x], attrs)


@generator
def SampleOp(rng):
    return Case("SampleOp", [f32(rng, *dims(rng))])


@generator
def GemmFloat8(rng):
    m, k, n = dims(rng, 3, 3)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    act = pick(rng, None, "RELU", "NONE")
    c = some(rng, f32(rng, m, n))

    def reference(a, b, c=None, **_):
        y = 0.5 * ((a.T if ta else a).astype(np.float64) @ (b.T if tb else b)) + (0 if c is None else 1.5 * c)
        return (np.maximum(y, 0) if act == "RELU" else y).astype(np.float32)

    inputs = [f32(rng, *((k, m) if ta else (m, k))), f32(rng, *((n, k) if tb else (k, n)))] + ([c] if c is not None else [])
    return Case("GemmFloat8", inputs, drop({"transA": ta, "transB": tb, "alpha": 0.5, "beta": 1.5, "dtype": 1, "activation": act}),
                reference=reference)


@generator
def PagedAttention(rng):
    batch, kv, group, size, block = (int(v) for v in rng.integers(1, 4, 5))
    heads, size = kv * group, 2 * size
    past = rng.integers(0, 5, batch)
    steps = rng.integers(1, 4, batch)
    most = int((past + steps).max() - 1) // block + 1
    blocks = batch * most + 2
    table = rng.permutation(blocks)[: batch * most].reshape(batch, most).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(steps)]).astype(np.int32)
    tokens = int(ends[-1])
    half = np.float16
    caches = [f32(rng, blocks, block, kv, size).astype(half) for _ in range(2)]
    q, k, v = (f32(rng, tokens, h * size).astype(half) for h in (heads, kv, kv))

    def reference(q, k, v, kc, vc, ends, past, table, **_):
        kc, vc, out = kc.copy(), vc.copy(), np.zeros(q.shape, np.float64)
        for b in range(batch):
            slots = [(table[b, t // block], t % block) for t in range(past[b] + steps[b])]
            for s in range(steps[b]):
                kc[slots[past[b] + s]] = k[ends[b] + s].reshape(kv, size)
                vc[slots[past[b] + s]] = v[ends[b] + s].reshape(kv, size)
            keys, values = (np.stack([c[slot] for slot in slots]).astype(np.float64) for c in (kc, vc))
            for s in range(steps[b]):
                for h in range(heads):
                    n = past[b] + s + 1
                    row = keys[:n, h // group] @ q[ends[b] + s].reshape(heads, size)[h].astype(np.float64) / np.sqrt(size)
                    w = np.exp(row - row.max())
                    out[ends[b] + s].reshape(heads, size)[h] = w / w.sum() @ values[:n, h // group]
        return [out.astype(half), kc, vc]

    return Case("PagedAttention", [q, k, v, *caches, ends, past.astype(np.int32), table], {"num_heads": heads, "kv_num_heads": kv},
                outputs=3, reference=reference)


@generator
def DecoderAttention(rng):
    steps, batch, heads, size, length = (int(v) for v in rng.integers(1, 5, 5))
    hidden = heads * size
    static, past = rng.random() < 0.5, rng.random() < 0.5
    caches = [f32(rng, batch, heads, length, size) for _ in range(2)]
    query, key = f32(rng, steps, batch, hidden), f32(rng, length, batch, hidden)
    total = length if static else steps + (length if past else 0)
    mask = rng.random((batch, total)) < 0.3
    mask[:, 0] = False
    masked = rng.random() < 0.5

    def reference(q, k, wq, wkv, bias, mask, kc, vc, *_, **__):
        def split(x):
            return x.reshape(x.shape[0], batch, heads, size).transpose(1, 2, 0, 3)

        queries = split(q @ wq + bias[:hidden])
        if static and past:
            keys, values = kc, vc
        else:
            both = (k if static else q) @ wkv + bias[hidden:]
            keys, values = split(both[..., :hidden]), split(both[..., hidden:])
            if past:
                keys, values = np.concatenate([kc, keys], 2), np.concatenate([vc, values], 2)
        extra = np.where(mask, -np.inf, 0)[:, None, None] if masked else None
        y = plain_attention(queries, keys, values, 1 / np.sqrt(size), [total] * batch, extra)
        return [v.astype(np.float32) for v in (y.transpose(2, 0, 1, 3).reshape(steps, batch, hidden), keys, values)]

    flags = [np.array([v]) for v in (static, past, past, masked)]
    return Case("DecoderAttention", [query, key, f32(rng, hidden, hidden), f32(rng, hidden, 2 * hidden), f32(rng, 3 * hidden), mask,
                                     *caches, *flags], {"num_heads": heads}, outputs=3, reference=reference, rtol=1e-3, atol=1e-4)
