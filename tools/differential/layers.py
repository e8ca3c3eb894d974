"""Generators: layers, pictures, attention, losses, classical models, optimisers."""

import numpy as np

from .core import WORDS, Case, Skip
from .elementwise import generator

REAL = ("float", "double", "float16")


def small(g, shape, var="T", only=REAL):
    return g.arr(shape, g.dtype(var, only), special=0, scale=1.0)


def spatial(g, rank, kernel, low=0, ceil=False):
    """Attributes of a window over `rank` axes."""
    attributes = {"strides": [g.int(1, 3) for _ in range(rank)]} if g.chance(0.7) else {}
    if g.chance(0.2):
        attributes["auto_pad"] = g.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    elif g.chance(0.7):
        attributes["pads"] = [g.int(0, max(0, k - 1)) for k in kernel * 2]
    return attributes


@generator("Conv")
def conv(g):
    rank, group = g.pick(1, 2, 2, 2, 3), g.pick(1, 1, 2, 3)
    kernel = [g.int(1, 3) for _ in range(rank)]
    cin, cout = g.int(1, 2) * group, g.int(1, 2) * group
    attributes = spatial(g, rank, kernel) | {"group": group}
    if g.chance(0.4) and "auto_pad" not in attributes:
        attributes["dilations"] = [g.int(1, 2) for _ in range(rank)]
    if g.chance(0.5):
        attributes["kernel_shape"] = kernel
    inputs = [small(g, (g.int(1, 2), cin, *(g.int(5, 8) for _ in range(rank)))), small(g, (cout, cin // group, *kernel))]
    return Case(g, inputs + ([small(g, (cout,))] if g.chance(0.6) else []), attributes)


@generator("ConvTranspose")
def conv_transpose(g):
    rank, group = g.pick(1, 2, 2, 3), g.pick(1, 1, 2)
    kernel = [g.int(1, 3) for _ in range(rank)]
    cin, cout = g.int(1, 2) * group, g.int(1, 2)
    strides = [g.int(1, 3) for _ in range(rank)]
    attributes = {"group": group, "strides": strides}
    if g.chance(0.5):
        attributes["pads"] = [g.int(0, (k - 1) // 2) for k in kernel * 2]
    if g.chance(0.4):
        attributes["output_padding"] = [g.int(0, s - 1) for s in strides]
    if g.chance(0.4):
        attributes["dilations"] = [g.int(1, 2) for _ in range(rank)]
    inputs = [small(g, (g.int(1, 2), cin, *(g.int(2, 5) for _ in range(rank)))), small(g, (cin, cout, *kernel))]
    return Case(g, inputs + ([small(g, (cout * group,))] if g.chance(0.6) else []), attributes)


@generator("DeformConv")
def deform_conv(g):
    kernel, stride = [g.int(1, 3), g.int(1, 3)], [g.int(1, 2), g.int(1, 2)]
    size, group, og = [g.int(4, 7), g.int(4, 7)], g.pick(1, 2), g.pick(1, 2)
    out = [(size[k] - kernel[k]) // stride[k] + 1 for k in range(2)]
    n, cin, cout = g.int(1, 2), 2, 2
    inputs = [small(g, (n, cin, *size)), small(g, (cout, cin // group, *kernel)),
              small(g, (n, og * 2 * kernel[0] * kernel[1], *out)),
              small(g, (cout,)) if g.chance(0.6) else None,
              small(g, (n, og * kernel[0] * kernel[1], *out)) if g.chance(0.5) else None]
    return Case(g, inputs, {"kernel_shape": kernel, "strides": stride, "group": group, "offset_group": og})


@generator("AveragePool", "MaxPool", "LpPool")
def pool(g):
    rank = g.pick(1, 2, 2, 3)
    kernel = [g.int(1, 3) for _ in range(rank)]
    attributes = spatial(g, rank, kernel) | {"kernel_shape": kernel}
    if g.chance(0.4) and "auto_pad" not in attributes:
        attributes["dilations"] = [g.int(1, 2) for _ in range(rank)]
    if g.chance(0.4) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if g.op == "AveragePool" and g.chance(0.5):
        attributes["count_include_pad"] = 1
    if g.op == "LpPool" and g.chance(0.6):
        attributes["p"] = g.int(1, 3)
    x = small(g, (g.int(1, 2), g.int(1, 3), *(g.int(5, 8) for _ in range(rank))))
    outputs = 2 if g.op == "MaxPool" and g.chance(0.6) else 1
    if outputs == 2 and g.chance(0.3):
        attributes["storage_order"] = 1
    return Case(g, [x], attributes, outputs=outputs)


@generator("MaxUnpool")
def max_unpool(g):
    h, w = g.int(1, 3), g.int(1, 3)
    x = small(g, (1, 2, h, w), "T1")
    places = np.stack([g.rng.permutation(4 * h * w)[:h * w].reshape(h, w) + c * 4 * h * w for c in range(2)])
    inputs = [x, places[None].astype(np.int64)]
    return Case(g, inputs, {"kernel_shape": [2, 2], "strides": [2, 2]})


@generator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g):
    attributes = {"p": g.int(1, 3)} if g.op == "GlobalLpPool" and g.chance(0.6) else {}
    return Case(g, [small(g, (g.int(1, 2), g.int(1, 3), *g.shape(1, 3, empty=0)))], attributes)


def rois(g, count, size):
    a, b = g.rng.random((count, 2)) * size / 2, g.rng.random((count, 2)) * size / 2 + size / 2
    return np.concatenate([a, b], 1)


@generator("RoiAlign")
def roi_align(g):
    count, n = g.int(1, 3), g.int(1, 2)
    kind = g.dtype("T1", ("float", "double"))
    x = g.arr((n, 2, 8, 8), kind, special=0)
    attributes = {"output_height": g.int(1, 3), "output_width": g.int(1, 3), "sampling_ratio": g.int(0, 3),
                  "spatial_scale": g.pick(1.0, 0.5), "coordinate_transformation_mode": g.pick("half_pixel", "output_half_pixel"),
                  "mode": g.pick("avg", "max")}
    return Case(g, [x, rois(g, count, 7).astype(x.dtype), g.rng.integers(0, n, count).astype(np.int64)], attributes)


@generator("MaxRoiPool")
def max_roi_pool(g):
    count, n = g.int(1, 3), g.int(1, 2)
    boxes = np.concatenate([g.rng.integers(0, n, (count, 1)), np.round(rois(g, count, 7))], 1)
    return Case(g, [g.arr((n, 2, 8, 8), "float", special=0), boxes.astype(np.float32)],
                {"pooled_shape": [g.int(1, 3), g.int(1, 3)], "spatial_scale": g.pick(1.0, 0.5)})


@generator("NonMaxSuppression")
def nms(g):
    n, c, count = g.int(1, 2), g.int(1, 2), g.int(1, 6)
    corners = np.stack([rois(g, count, 10) for _ in range(n)]).astype(np.float32)
    inputs = [corners, g.rng.random((n, c, count)).astype(np.float32)]
    if g.chance(0.9):
        inputs.append(g.i64(g.int(0, 4)))
        if g.chance(0.8):
            inputs.append(np.array([g.rng.random()], np.float32))
            if g.chance(0.7):
                inputs.append(np.array([g.rng.random()], np.float32))
    return Case(g, inputs, {"center_point_box": g.int(0, 1)} if g.chance(0.5) else {})


@generator("BatchNormalization")
def batch_norm(g):
    c = g.int(1, 4)
    x = small(g, (g.int(1, 3), c, *g.shape(0, 3, empty=0)))
    same = lambda: g.arr((c,), g.chosen["T"], low=0.25, high=2)
    training = g.chance(0.3)
    attributes = {"epsilon": 1e-3, "training_mode": int(training)}
    if training:
        attributes["momentum"] = 0.75
    return Case(g, [x, same(), same(), same(), same()], attributes, outputs=3 if training else 1)


@generator("InstanceNormalization")
def instance_norm(g):
    c = g.int(1, 4)
    return Case(g, [small(g, (g.int(1, 3), c, *g.shape(1, 3, empty=0))), small(g, (c,)), small(g, (c,))], {"epsilon": 1e-3})


@generator("GroupNormalization")
def group_norm(g):
    groups = g.int(1, 3)
    c = groups * g.int(1, 3)
    return Case(g, [small(g, (g.int(1, 3), c, *g.shape(1, 3, empty=0))), small(g, (c,)), small(g, (c,))],
                {"num_groups": groups, "epsilon": 1e-3})


@generator("LayerNormalization")
def layer_norm(g):
    shape = g.shape(1, 4, empty=0)
    axis = g.axis(len(shape))
    tail = shape[axis % len(shape):]
    outputs = g.pick(1, 1, 3) if g.dtype("T", ("float",)) == "float" else 1
    return Case(g, [small(g, shape), small(g, tail)] + ([small(g, tail)] if g.chance(0.6) else []),
                {"axis": axis, "epsilon": 1e-3}, outputs=outputs)


@generator("RMSNormalization")
def rms_norm(g):
    shape = g.shape(1, 4, empty=0)
    axis = g.axis(len(shape))
    return Case(g, [small(g, shape), g.arr(shape[axis % len(shape):], g.chosen["T"], special=0)], {"axis": axis, "epsilon": 1e-3})


@generator("MeanVarianceNormalization")
def mvn(g):
    return Case(g, [small(g, (2, 3, g.int(2, 4), g.int(2, 4)))], {"axes": g.pick([0, 2, 3], [2, 3], [1, 2])} if g.chance(0.6) else {})


@generator("LRN")
def lrn(g):
    return Case(g, [small(g, (g.int(1, 2), g.int(1, 6), g.int(1, 3), g.int(1, 3)))],
                {"size": g.pick(1, 3, 5), "alpha": 0.01, "beta": 0.5, "bias": 1.5})


@generator("Dropout")
def dropout(g):
    x = small(g, g.shape(1, 3))
    training = g.chance(0.4)
    ratio = np.array(g.pick(0.0, 0.25, 0.5), np.float32)
    return Case(g, [x, ratio, np.array(training)], {"seed": g.int(0, 10**6)}, outputs=2, random=training)


ACTIVATIONS = ("Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "Softplus")


@generator("RNN", "GRU", "LSTM")
def recurrent(g):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[g.op]
    steps, batch, width, hidden = g.int(1, 4), g.int(1, 3), g.int(1, 3), g.int(1, 3)
    direction = g.pick("forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    kind = g.dtype("T", ("float",))
    a = lambda *s: g.arr(s, kind, special=0, scale=0.6)
    inputs = [a(steps, batch, width), a(d, gates * hidden, width), a(d, gates * hidden, hidden),
              a(d, 2 * gates * hidden) if g.chance(0.7) else None,
              g.rng.integers(1, steps + 1, batch).astype(np.int32) if g.chance(0.4) else None,
              a(d, batch, hidden) if g.chance(0.5) else None]
    if g.op == "LSTM":
        inputs += [a(d, batch, hidden) if g.chance(0.5) else None, a(d, 3 * hidden) if g.chance(0.4) else None]
    attributes = {"hidden_size": hidden, "direction": direction}
    if g.op == "GRU":
        attributes["linear_before_reset"] = g.int(0, 1)
    if g.op == "LSTM" and g.chance(0.3):
        attributes["input_forget"] = 1
    if g.chance(0.3):
        attributes["clip"] = 0.5
    if g.chance(0.3):
        attributes["activations"] = [g.pick(*ACTIVATIONS) for _ in range({"RNN": 1, "GRU": 2, "LSTM": 3}[g.op] * d)]
    return Case(g, inputs, attributes, outputs=3 if g.op == "LSTM" else 2)


@generator("Attention")
def attention(g):
    batch, kv_heads, group = g.int(1, 2), g.int(1, 2), g.int(1, 2)
    heads, q_len, kv_len, size, v_size = kv_heads * group, g.int(1, 4), g.int(1, 4), g.int(1, 4), g.int(1, 4)
    kind = g.dtype("T1", ("float",))
    g.chosen["T2"] = kind
    a = lambda *s: g.arr(s, kind, special=0, scale=1.0)
    attributes = {"is_causal": g.int(0, 1)}
    past = g.int(1, 3) if g.chance(0.4) else 0
    if g.chance(0.5):
        inputs = [a(batch, heads, q_len, size), a(batch, kv_heads, kv_len, size), a(batch, kv_heads, kv_len, v_size)]
    else:
        inputs = [a(batch, q_len, heads * size), a(batch, kv_len, kv_heads * size), a(batch, kv_len, kv_heads * v_size)]
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    mask = None
    if g.chance(0.5) and not attributes["is_causal"]:
        shape = g.pick((q_len, kv_len + past), (1, 1, q_len, kv_len + past), (batch, heads, q_len, kv_len + past))
        mask = a(*shape) if g.chance(0.5) else np.concatenate([np.ones((*shape[:-1], 1), bool), g.arr((*shape[:-1], shape[-1] - 1), "bool")], -1)
    inputs.append(mask)
    if past:
        inputs += [a(batch, kv_heads, past, size), a(batch, kv_heads, past, v_size)]
    if g.chance(0.4):
        attributes["scale"] = 0.3
    if g.chance(0.4):
        attributes["softcap"] = 2.0
    if past:
        return Case(g, inputs, attributes, outputs=3)
    return Case(g, inputs, attributes)


@generator("RotaryEmbedding")
def rotary(g):
    batch, heads, length, size = g.int(1, 2), g.int(1, 3), g.int(1, 4), 2 * g.int(1, 4)
    x = small(g, (batch, heads, length, size), "T", ("float",))
    angle = g.rng.normal(size=(8, size // 2))
    positions = g.rng.integers(0, 8, (batch, length)).astype(np.int64)
    return Case(g, [x, np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype), positions], {"interleaved": g.int(0, 1)})


@generator("CausalConvWithState")
def causal_conv(g):
    batch, channels, length, kernel = g.int(1, 2), g.int(1, 3), g.int(1, 5), g.int(1, 4)
    a = lambda *s: small(g, s, "T", ("float",))
    return Case(g, [a(batch, channels, length), a(channels, 1, kernel), a(channels) if g.chance(0.6) else None,
                    a(batch, channels, kernel - 1) if g.chance(0.5) and kernel > 1 else None],
                {"activation": g.pick("none", "silu", "swish")}, outputs=2)


@generator("LinearAttention")
def linear_attention(g):
    batch, length, kv, group, size, v_size = g.int(1, 2), g.int(1, 4), g.int(1, 2), 1, g.int(1, 3), g.int(1, 3)
    q = kv * group
    rule = g.pick("linear", "gated", "delta", "gated_delta")
    a = lambda *s: small(g, s, "T", ("float",))
    inputs = [a(batch, length, q * size), a(batch, length, kv * size), a(batch, length, kv * v_size),
              a(batch, kv, size, v_size) if g.chance(0.5) else None,
              -np.abs(a(batch, length, kv)) if "gated" in rule else None,
              g.arr((batch, length, kv), "float", low=0.1, high=0.9) if "delta" in rule else None]
    return Case(g, inputs, {"q_num_heads": q, "kv_num_heads": kv, "update_rule": rule}, outputs=2)


@generator("FlexAttention")
def flex_attention(g):
    batch, heads, q_len, kv_len, size = (g.int(1, 3) for _ in range(5))
    a = lambda *s: g.arr(s, "float", special=0, scale=1.0)
    return Case(g, [a(batch, heads, q_len, size), a(batch, heads, kv_len, size), a(batch, heads, kv_len, size)],
                {"scale": 0.4} if g.chance(0.5) else {})


@generator("Resize")
def resize(g):
    rank = g.pick(1, 2, 4)
    shape = [g.int(2, 6) for _ in range(rank)] if rank < 4 else [1, g.int(1, 2), g.int(2, 6), g.int(2, 6)]
    mode = g.pick("nearest", "linear", "cubic")
    if mode == "cubic" and rank != 4:
        mode = "linear"
    kind = g.dtype("T1", ("float", "uint8", "int8") if mode == "nearest" else ("float",))
    fixed = 2 if rank == 4 else 0
    attributes = {"mode": mode, "coordinate_transformation_mode": g.pick(
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")}
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic" and g.chance(0.5):
        attributes |= {"cubic_coeff_a": -0.5, "exclude_outside": g.int(0, 1)}
    if mode != "nearest" and g.chance(0.3):
        attributes["antialias"] = 1
    if g.chance(0.5):
        scales = np.array([1.0] * fixed + [g.pick(0.5, 0.75, 1.5, 2.0, 2.5, 0.6) for _ in range(rank - fixed)], np.float32)
        return Case(g, [g.arr(shape, kind, special=0), None, scales], attributes)
    sizes = np.array(shape[:fixed] + [g.int(1, 9) for _ in range(rank - fixed)], np.int64)
    return Case(g, [g.arr(shape, kind, special=0), None, None, sizes], attributes)


@generator("GridSample")
def grid_sample(g):
    rank = g.pick(2, 2, 3)
    n, c = g.int(1, 2), g.int(1, 2)
    x = g.arr((n, c, *(g.int(2, 5) for _ in range(rank))), g.dtype("T1", ("float",)), special=0)
    grid = (g.rng.random((n, *(g.int(1, 4) for _ in range(rank)), rank)) * 3 - 1.5).astype(np.float32)
    return Case(g, [x, grid], {"mode": g.pick("linear", "nearest", *(["cubic"] if rank == 2 else [])),
                               "padding_mode": g.pick("zeros", "border", "reflection"), "align_corners": g.int(0, 1)})


@generator("AffineGrid")
def affine_grid(g):
    n, rank = g.int(1, 2), g.int(2, 3)
    theta = small(g, (n, rank, rank + 1), "T1", ("float", "double"))
    return Case(g, [theta, np.array([n, 1] + [g.int(2, 5) for _ in range(rank)], np.int64)], {"align_corners": g.int(0, 1)})


@generator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(g):
    n, c, extra = g.int(1, 4), g.int(2, 5), g.shape(0, 2, 3, empty=0)
    x = small(g, (n, c, *extra), "T", ("float", "double"))
    target = g.rng.integers(0, c, (n, *extra)).astype(g.pick(np.int32, np.int64) if g.op[0] == "S" else np.int64)
    attributes = {"reduction": g.pick("none", "sum", "mean")}
    if g.chance(0.4):
        attributes["ignore_index"] = g.int(0, c - 1) if (target != target.flat[0]).any() else -1
        if (target == attributes["ignore_index"]).all():
            raise Skip
    weight = g.arr((c,), g.chosen["T"], low=0.25, high=2) if g.chance(0.5) else None
    return Case(g, [x, target, weight], attributes)


@generator("ConvInteger")
def conv_integer(g):
    x, w = "uint8", g.pick("uint8", "int8")
    kernel = [g.int(1, 3), g.int(1, 3)]
    return Case(g, [g.arr((1, 2, 5, 6), x), g.arr((2, 2, *kernel), w), g.arr((), x, special=0) if g.chance(0.6) else None,
                    g.arr((), w, special=0) if g.chance(0.6) else None], spatial(g, 2, kernel))


@generator("QLinearConv")
def qlinear_conv(g):
    x = g.pick("uint8", "int8")
    w = x if x == "int8" else g.pick("uint8", "int8")
    kernel, per = [g.int(1, 3), g.int(1, 3)], g.pick((), (2,))
    scale = lambda s=(): g.arr(s, "float", low=0.02, high=0.3)
    w_zero = np.zeros(per, w) if w == "int8" or per else g.arr((), w, special=0)
    inputs = [g.arr((1, 2, 5, 6), x), scale(), g.arr((), x, special=0), g.arr((2, 2, *kernel), w), scale(per),
              w_zero, scale(), g.arr((), x, special=0)]
    if g.chance(0.5):
        inputs.append(g.arr((2,), "int32", special=0))
    return Case(g, inputs, spatial(g, 2, kernel), step=True)


# ---- ai.onnx.ml

def rows(g, columns, var="X", only=("float", "double", "int64", "int32")):
    return g.arr((g.int(1, 5), columns), g.dtype(var, only), special=0)


POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


@generator("LinearRegressor")
def linear_regressor(g):
    c, targets = g.int(1, 4), g.int(1, 3)
    f = lambda n: [float(v) for v in g.rng.normal(size=n)]
    return Case(g, [rows(g, c, "T", ("float",))], {"coefficients": f(c * targets), "intercepts": f(targets), "targets": targets})


@generator("LinearClassifier")
def linear_classifier(g):
    c, classes = g.int(1, 4), g.int(2, 4)
    f = lambda n: [float(v) for v in g.rng.normal(size=n)]
    labels = {"classlabels_ints": list(range(classes))} if g.chance(0.5) else {"classlabels_strings": list("abcd"[:classes])}
    return Case(g, [rows(g, c, "T1", ("float",))], {"coefficients": f(c * classes), "intercepts": f(classes),
                "post_transform": g.pick("NONE", "SOFTMAX", "LOGISTIC")} | labels, outputs=2)


@generator("Normalizer")
def normalizer(g):
    return Case(g, [rows(g, g.int(1, 4), "T", ("float", "double"))], {"norm": g.pick("MAX", "L1", "L2")})


@generator("Scaler")
def scaler(g):
    c = g.int(1, 4)
    n = g.pick(1, c)
    return Case(g, [rows(g, c, "T")], {"offset": [0.5] * n, "scale": [1.5] * n})


@generator("Binarizer")
def binarizer(g):
    return Case(g, [rows(g, 3, "T", ("float",))], {"threshold": 0.5})


@generator("Imputer")
def imputer(g):
    x = rows(g, 3, "T", ("float", "int64"))
    if x.dtype == np.int64:
        return Case(g, [x], {"imputed_value_int64s": [7], "replaced_value_int64": 1})
    x.flat[0] = np.nan
    return Case(g, [x], {"imputed_value_floats": g.pick([7.0], [1.0, 2.0, 3.0]), "replaced_value_float": float("nan")})


@generator("ArrayFeatureExtractor")
def array_feature(g):
    c = g.int(1, 5)
    return Case(g, [rows(g, c, "T"), g.rng.integers(0, c, g.int(1, 4)).astype(np.int64)])


@generator("OneHotEncoder")
def one_hot_encoder(g):
    x = g.rng.integers(0, 4, g.shape(1, 2, empty=0)).astype(np.int64)
    return Case(g, [x], {"cats_int64s": [0, 1, 2, 3], "zeros": 1})


@generator("LabelEncoder")
def label_encoder(g):
    kinds = {"int64s": [1, 2, 3], "strings": ["a", "b", "c"], "floats": [1.0, 2.0, 3.0]}
    key, value = g.pick(("int64s", "strings"), ("strings", "int64s"), ("int64s", "floats"), ("strings", "floats"), ("floats", "strings"))
    pick = {"int64s": np.int64, "strings": np.object_, "floats": np.float32}[key]
    x = np.array([g.pick(*kinds[key], {"int64s": 9, "strings": "z", "floats": 9.0}[key]) for _ in range(g.int(1, 5))], pick)
    return Case(g, [x], {f"keys_{key}": kinds[key], f"values_{value}": kinds[value]})


@generator("CategoryMapper")
def category_mapper(g):
    attributes = {"cats_int64s": [1, 2], "cats_strings": ["a", "b"], "default_int64": 9, "default_string": "none"}
    x = np.array([g.pick("a", "b", "c") for _ in range(3)], np.object_) if g.chance(0.5) else g.rng.integers(0, 4, 3).astype(np.int64)
    return Case(g, [x], attributes)


@generator("FeatureVectorizer")
def feature_vectorizer(g):
    n, widths = g.int(1, 3), [g.int(1, 3) for _ in range(g.int(1, 3))]
    kind = g.dtype("T1", ("float", "double", "int64", "int32"))
    return Case(g, [g.arr((n, w), kind, special=0) for w in widths], {"inputdimensions": widths})


@generator("SVMRegressor")
def svm_regressor(g):
    c, n = g.int(1, 3), g.int(1, 4)
    f = lambda k: [float(v) for v in g.rng.normal(size=k)]
    return Case(g, [rows(g, c, "T", ("float",))], {"kernel_type": g.pick("LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": [0.5, 0.25, 2.0],
                "coefficients": f(n), "support_vectors": f(n * c), "n_supports": n, "rho": f(1)})


@generator("SVMClassifier")
def svm_classifier(g):
    c, classes = g.int(1, 3), g.int(2, 3)
    counts = [g.int(1, 2) for _ in range(classes)]
    n, pairs = sum(counts), classes * (classes - 1) // 2
    f = lambda k: [float(v) for v in g.rng.normal(size=k)]
    attributes = {"kernel_type": g.pick("LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": [0.5, 0.25, 2.0],
                  "coefficients": f(n * (classes - 1)), "support_vectors": f(n * c), "vectors_per_class": counts,
                  "rho": f(pairs), "classlabels_ints": list(range(classes))}
    if g.chance(0.4):
        attributes |= {"prob_a": [-abs(v) for v in f(pairs)], "prob_b": f(pairs)}
    return Case(g, [rows(g, c, "T1", ("float",))], attributes, outputs=2)


@generator("TreeEnsemble")
def tree_ensemble(g):
    from onnx import numpy_helper
    c, targets, depth = g.int(1, 3), g.int(1, 2), g.int(1, 3)
    kind = g.pick(np.float32, np.float64)
    inner, leaves = 2**depth - 1, 2**depth
    last = 2**(depth - 1) - 1  # the first inner node whose children are leaves
    child = lambda i, side: 2 * (i - last) + side if i >= last else 2 * i + 1 + side
    tensor = lambda v: numpy_helper.from_array(np.asarray(v))
    attributes = {"n_targets": targets, "tree_roots": [0], "aggregate_function": g.int(0, 3), "post_transform": 0,
                  "nodes_featureids": [g.int(0, c - 1) for _ in range(inner)],
                  "nodes_modes": tensor(g.rng.integers(0, 4, inner).astype(np.uint8)),
                  "nodes_splits": tensor(np.round(g.rng.normal(size=inner), 2).astype(kind)),
                  "nodes_truenodeids": [child(i, 0) for i in range(inner)], "nodes_falsenodeids": [child(i, 1) for i in range(inner)],
                  "nodes_trueleafs": [int(i >= last) for i in range(inner)], "nodes_falseleafs": [int(i >= last) for i in range(inner)],
                  "leaf_targetids": [g.int(0, targets - 1) for _ in range(leaves)],
                  "leaf_weights": tensor(g.rng.normal(size=leaves).astype(kind))}
    return Case(g, [g.arr((g.int(1, 5), c), "float" if kind == np.float32 else "double", special=0)], attributes)


def tree(g, features, targets, depth):
    """A complete tree as lists: (featureids, values, trues, falses, modes, leaves)."""
    inner, leaves = 2**depth - 1, 2**depth
    return {"nodes_treeids": [0] * (inner + leaves), "nodes_nodeids": list(range(inner + leaves)),
            "nodes_featureids": [g.int(0, features - 1) for _ in range(inner)] + [0] * leaves,
            "nodes_values": [float(np.round(g.rng.normal(), 2)) for _ in range(inner)] + [0.0] * leaves,
            "nodes_truenodeids": [2 * i + 1 for i in range(inner)] + [0] * leaves,
            "nodes_falsenodeids": [2 * i + 2 for i in range(inner)] + [0] * leaves,
            "nodes_modes": [g.pick("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE")] * inner + ["LEAF"] * leaves}, range(inner, inner + leaves)


@generator("TreeEnsembleRegressor")
def tree_regressor(g):
    c, targets = g.int(1, 3), g.int(1, 2)
    attributes, leaves = tree(g, c, targets, g.int(1, 3))
    attributes |= {"n_targets": targets, "target_treeids": [0] * len(leaves), "target_nodeids": list(leaves),
                   "target_ids": [g.int(0, targets - 1) for _ in leaves], "target_weights": [float(v) for v in g.rng.normal(size=len(leaves))],
                   "aggregate_function": g.pick("SUM", "AVERAGE", "MIN", "MAX"), "post_transform": g.pick("NONE", "LOGISTIC")}
    return Case(g, [rows(g, c, "T", ("float",))], attributes, opset=3)


@generator("TreeEnsembleClassifier")
def tree_classifier(g):
    c, classes = g.int(1, 3), g.int(2, 4)
    attributes, leaves = tree(g, c, classes, g.int(1, 3))
    attributes |= {"classlabels_int64s": list(range(classes)), "class_treeids": [0] * len(leaves), "class_nodeids": list(leaves),
                   "class_ids": [g.int(0, classes - 1) for _ in leaves], "class_weights": [float(v) for v in g.rng.random(len(leaves))],
                   "post_transform": g.pick("NONE", "SOFTMAX", "LOGISTIC") if classes > 2 else "NONE"}
    return Case(g, [rows(g, c, "T1", ("float",))], attributes, outputs=2, opset=3)


# ---- maps

def named_numbers(g, kinds):
    """A map: keys that need not be in order, values of one type."""
    key, value = g.pick(*kinds)
    keys = [WORDS[i] for i in g.rng.permutation(len(WORDS))] if key is str else [int(k) for k in g.rng.permutation(12)]
    make = {str: lambda: g.pick("1.5", "2", "-3", "0"), float: lambda: float(np.float32(g.rng.normal())),
            int: lambda: g.int(-9, 9)}[value]
    return {k: make() for k in keys[: g.int(1, 6)]}


@generator("CastMap")
def cast_map(g):
    value = named_numbers(g, [(int, float), (int, str)])
    sparse = g.chance(0.5)
    whole = all(isinstance(v, str) and "." not in v for v in value.values())
    to = g.pick("TO_FLOAT", "TO_STRING", "TO_INT64") if whole or not isinstance(next(iter(value.values())), str) else "TO_FLOAT"
    if to == "TO_STRING" and not isinstance(next(iter(value.values())), str):
        to = "TO_FLOAT"  # text of floats: a difference that is known (Cast)
    typed = {k: v if isinstance(v, str) else np.float32(v) for k, v in value.items()}
    return Case(g, [typed], {"cast_to": to, "map_form": "SPARSE" if sparse else "DENSE", "max_map": 12 if sparse else 1})


@generator("DictVectorizer")
def dict_vectorizer(g):
    value = named_numbers(g, [(str, float), (int, float)])  # the runtime cannot be given other maps
    key = type(next(iter(value)))
    words = [WORDS[i] for i in g.rng.permutation(len(WORDS))] if key is str else [int(k) for k in g.rng.permutation(14)]
    typed = {k: v if isinstance(v, int) else np.float32(v) for k, v in value.items()}
    # Every key stands in the vocabulary, as upstream demands.
    kept = [w for w in words if w in typed or g.chance(0.5)]
    return Case(g, [typed], {"string_vocabulary" if key is str else "int64_vocabulary": kept})


@generator("ZipMap")
def zip_map(g):
    columns = g.int(1, 5)
    labels = {"classlabels_int64s": [int(v) for v in g.rng.permutation(9)[:columns]]} if g.chance(0.5) else \
        {"classlabels_strings": [WORDS[i] for i in g.rng.permutation(len(WORDS))[:columns]]}
    shape = (columns,) if g.chance(0.3) else (g.int(1, 4), columns)
    return Case(g, [g.arr(shape, "float", special=0)], labels)


# ---- training

@generator("Adagrad", "Adam", "Momentum")
def optimiser(g):
    shape = g.shape(1, 2, empty=0)
    count = {"Adagrad": 3, "Adam": 4, "Momentum": 3}[g.op]
    a = lambda: g.arr(shape, "float", special=0)
    state = [a() for _ in range(count)]
    state[-1] = np.abs(state[-1])
    attributes = {"norm_coefficient": 0.1}
    if g.op == "Momentum":
        attributes |= {"alpha": 0.9, "beta": g.pick(0.5, 1.0), "mode": g.pick("standard", "nesterov")}
    return Case(g, [np.array(0.1, np.float32), np.array(g.int(0, 3), np.int64), *state], attributes, outputs=count - 1)
