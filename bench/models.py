"""Makes the models that bench/run.py measures: the shapes of well-known networks, random weights with
a seed. numpy and onnx alone, but for the quantised ones, which onnxruntime's quantiser writes.

    python bench/models.py OUT_DIR [NAME...]
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from net import MAKERS, Net, model


# ---- convolutional networks

@model
def vgg19(name, dtype=np.float32):
    n = Net(name, dtype=dtype)
    x = n.input("x", [1, 3, 224, 224])
    for width, times in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(times):
            x = n.conv(x, width, act="relu")
        x = n.max_pool(x, 2, 2, 0)
    x = n.op("Flatten", x)
    for width, out, act in ((25088, 4096, "relu"), (4096, 4096, "relu"), (4096, 1000, None)):
        x = n.dense(x, out, width, act)
    return n, n.op("Softmax", x, axis=-1)


@model
def resnet50(name, dtype=np.float32):
    n = Net(name, dtype=dtype)
    x = n.batch_norm(n.conv(n.input("x", [1, 3, 224, 224]), 64, 7, 2, bias=False), "relu")
    x = n.max_pool(x)
    for width, times, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(times):
            s = stride if i == 0 else 1
            y = n.batch_norm(n.conv(x, width, 1, bias=False), "relu")
            y = n.batch_norm(n.conv(y, width, 3, s, bias=False), "relu")
            y = n.batch_norm(n.conv(y, width * 4, 1, bias=False))
            skip = n.batch_norm(n.conv(x, width * 4, 1, s, bias=False)) if i == 0 else x
            x = n.activate(n.like("Add", y, skip), "relu")
    return n, n.head(x)


@model
def resnet20(name):
    """For images of 32 x 32 pixels (He et al. 2015, section 4.2): every layer takes some microseconds."""
    n = Net(name)
    x = n.conv(n.input("x", [1, 3, 32, 32]), 16, act="relu")
    for width in (16, 32, 64):
        for i in range(3):
            s = 2 if width != 16 and i == 0 else 1
            y = n.conv(n.conv(x, width, 3, s, act="relu"), width)
            x = n.activate(n.like("Add", y, n.conv(x, width, 1, s) if s == 2 else x), "relu")
    return n, n.head(x, 10)


@model
def resnet50_f16(name):
    return resnet50(name, np.float16)


@model
def mobilenet_v2_f16(name):
    return mobilenet_v2(name, np.float16)


@model
def mobilenet_v2_batch(name):
    return mobilenet_v2(name, batch=16)


@model
def unet(name):
    n = Net(name)
    x = n.input("x", [1, 3, 256, 256])
    skips = []
    for width in (32, 64, 128, 256):
        x = n.conv(n.conv(x, width, act="relu"), width, act="relu")
        skips.append(x)
        x = n.max_pool(x, 2, 2, 0)
    x = n.conv(n.conv(x, 512, act="relu"), 512, act="relu")
    for width, skip in zip((256, 128, 64, 32), reversed(skips)):
        w = n.weight(n.channels[x], width, 2, 2, fan=n.channels[x])
        y = n.op("ConvTranspose", x, w, kernel_shape=[2, 2], strides=[2, 2])
        n.channels[y] = width
        x = n.concat(skip, y)
        x = n.conv(n.conv(x, width, act="relu"), width, act="relu")
    return n, n.op("Sigmoid", n.conv(x, 1, 1))


def inverted(n, x, out, k, s, expand, act, se=False):
    c = n.channels[x]
    y = n.batch_norm(n.conv(x, expand, 1, bias=False), act) if expand != c else x
    y = n.batch_norm(n.conv(y, expand, k, s, groups=expand, bias=False), act)
    if se:
        y = n.squeeze_excite(y, max(8, expand // 4))
    y = n.batch_norm(n.conv(y, out, 1, bias=False))
    return n.like("Add", y, x) if s == 1 and out == c else y


@model
def mobilenet_v2(name, dtype=np.float32, batch=1):
    n = Net(name, dtype=dtype)
    x = n.batch_norm(n.conv(n.input("x", [batch, 3, 224, 224]), 32, 3, 2, bias=False), "relu6")
    for t, c, times, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(times):
            x = inverted(n, x, c, 3, s if i == 0 else 1, n.channels[x] * t, "relu6")
    x = n.batch_norm(n.conv(x, 1280, 1, bias=False), "relu6")
    return n, n.head(x)


def separable(n, x, out, s=1):
    """Depthwise, then pointwise (Howard et al. 2017, figure 3)."""
    y = n.batch_norm(n.conv(x, n.channels[x], 3, s, groups=n.channels[x], bias=False), "relu")
    return n.batch_norm(n.conv(y, out, 1, bias=False), "relu")


@model
def mobilenet_v1_quarter(name):
    """A quarter of the channels, for images of 96 x 96 pixels, as MLPerf Tiny has it: layers of few microseconds."""
    n = Net(name)
    x = n.batch_norm(n.conv(n.input("x", [1, 3, 96, 96]), 8, 3, 2, bias=False), "relu")
    for out, s in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1)):
        x = separable(n, x, out, s)
    return n, n.head(x, 2)


@model
def ds_cnn(name):
    """Words in 49 x 10 coefficients of a sound (Zhang et al. 2017; MLPerf Tiny)."""
    n = Net(name)
    x = n.batch_norm(n.conv(n.input("x", [1, 1, 49, 10]), 64, (10, 4), 2, bias=False), "relu")
    for _ in range(4):
        x = separable(n, x, 64)
    return n, n.head(x, 12)


@model
def mobilenet_v3(name):
    n = Net(name)
    x = n.batch_norm(n.conv(n.input("x", [1, 3, 224, 224]), 16, 3, 2, bias=False), "hswish")
    rows = ((3, 16, 16, 0, "relu", 1), (3, 64, 24, 0, "relu", 2), (3, 72, 24, 0, "relu", 1), (5, 72, 40, 1, "relu", 2),
            (5, 120, 40, 1, "relu", 1), (5, 120, 40, 1, "relu", 1), (3, 240, 80, 0, "hswish", 2), (3, 200, 80, 0, "hswish", 1),
            (3, 184, 80, 0, "hswish", 1), (3, 184, 80, 0, "hswish", 1), (3, 480, 112, 1, "hswish", 1), (3, 672, 112, 1, "hswish", 1),
            (5, 672, 160, 1, "hswish", 2), (5, 960, 160, 1, "hswish", 1), (5, 960, 160, 1, "hswish", 1))
    for k, expand, out, se, act, s in rows:
        x = inverted(n, x, out, k, s, expand, act, se)
    x = n.batch_norm(n.conv(x, 960, 1, bias=False), "hswish")
    return n, n.head(x)


@model
def efficientnet_b0(name):
    n = Net(name)
    x = n.batch_norm(n.conv(n.input("x", [1, 3, 224, 224]), 32, 3, 2, bias=False), "swish")
    for t, c, times, s, k in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(times):
            x = inverted(n, x, c, k, s if i == 0 else 1, n.channels[x] * t, "swish", True)
    x = n.batch_norm(n.conv(x, 1280, 1, bias=False), "swish")
    return n, n.head(x)


@model
def densenet121(name):
    n = Net(name)
    x = n.max_pool(n.batch_norm(n.conv(n.input("x", [1, 3, 224, 224]), 64, 7, 2, bias=False), "relu"))
    for i, times in enumerate((6, 12, 24, 16)):
        for _ in range(times):
            y = n.conv(n.batch_norm(x, "relu"), 128, 1, bias=False)
            x = n.concat(x, n.conv(n.batch_norm(y, "relu"), 32, 3, bias=False))
        if i < 3:
            x = n.conv(n.batch_norm(x, "relu"), n.channels[x] // 2, 1, bias=False)
            x = n.like("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    return n, n.head(n.batch_norm(x, "relu"))


@model
def squeezenet(name):
    n = Net(name)
    x = n.max_pool(n.conv(n.input("x", [1, 3, 224, 224]), 64, 3, 2, act="relu"), 3, 2, 0)
    for i, (squeeze, out) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))):
        y = n.conv(x, squeeze, 1, act="relu")
        x = n.concat(n.conv(y, out, 1, act="relu"), n.conv(y, out, 3, act="relu"))
        if i in (1, 3):
            x = n.max_pool(x, 3, 2, 0)
    x = n.conv(x, 1000, 1, act="relu")
    return n, n.op("Flatten", n.op("GlobalAveragePool", x))


@model
def inception_v1_lrn(name):
    n = Net(name)
    lrn = lambda y: n.like("LRN", y, size=5, alpha=1e-4, beta=0.75)
    x = lrn(n.max_pool(n.conv(n.input("x", [1, 3, 224, 224]), 64, 7, 2, act="relu")))
    x = n.conv(n.conv(x, 64, 1, act="relu"), 192, 3, act="relu")
    x = n.max_pool(lrn(x))
    rows = ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
            (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
            (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))
    for row in rows:
        if row is None:
            x = n.max_pool(x)
            continue
        a, b1, b3, c1, c5, d = row
        pool = n.max_pool(x, 3, 1, 1)
        x = n.concat(n.conv(x, a, 1, act="relu"), n.conv(n.conv(x, b1, 1, act="relu"), b3, 3, act="relu"),
                     n.conv(n.conv(x, c1, 1, act="relu"), c5, 5, act="relu"), n.conv(pool, d, 1, act="relu"))
    return n, n.head(x)


@model
def alexnet_lrn(name):
    n = Net(name)
    lrn = lambda y: n.like("LRN", y, size=5, alpha=1e-4, beta=0.75)
    x = n.max_pool(lrn(n.conv(n.input("x", [1, 3, 224, 224]), 96, 11, 4, p=2, act="relu")), 3, 2, 0)
    x = n.max_pool(lrn(n.conv(x, 256, 5, groups=2, act="relu")), 3, 2, 0)
    x = n.conv(n.conv(n.conv(x, 384, act="relu"), 384, groups=2, act="relu"), 256, groups=2, act="relu")
    x = n.op("Flatten", n.max_pool(x, 3, 2, 0))
    for width, out, act in ((9216, 4096, "relu"), (4096, 4096, "relu"), (4096, 1000, None)):
        x = n.dense(x, out, width, act)
    return n, x


@model
def shufflenet(name):
    n = Net(name)
    x = n.max_pool(n.batch_norm(n.conv(n.input("x", [1, 3, 224, 224]), 24, 3, 2, bias=False), "relu"))
    size = 56
    for out, times in ((272, 4), (544, 8), (1088, 4)):
        for i in range(times):
            c, s = n.channels[x], 2 if i == 0 else 1
            width = out - c if i == 0 else out
            mid = out // 4
            groups = 1 if c == 24 else 4
            y = n.batch_norm(n.conv(x, mid, 1, groups=groups, bias=False), "relu")
            y = n.op("Reshape", y, n.ints(1, 4, mid // 4, size, size))
            y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3, 4]), n.ints(1, mid, size, size))
            n.channels[y] = mid
            size //= s
            y = n.batch_norm(n.conv(y, mid, 3, s, groups=mid, bias=False))
            y = n.batch_norm(n.conv(y, width, 1, groups=4, bias=False))
            if i == 0:
                skip = n.like("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
                x = n.activate(n.concat(skip, y), "relu")
            else:
                x = n.activate(n.like("Add", y, x), "relu")
    return n, n.head(x)


@model
def yolo_like(name):
    n = Net(name)
    block = lambda y, w, k=3, s=1: n.activate(n.conv(y, w, k, s), "swish")
    x = block(n.input("x", [1, 3, 416, 416]), 16, 3, 2)
    feats = []
    for width, times in ((32, 1), (64, 2), (128, 2), (256, 1)):
        x = block(x, width, 3, 2)
        for _ in range(times):
            x = n.like("Add", x, block(block(x, width // 2), width))
        feats.append(x)
    for low in (feats[2], feats[1]):
        y = n.like("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
        x = block(block(n.concat(y, low), n.channels[low], 1), n.channels[low])
    return n, n.conv(x, 255, 1)


# ---- transformers

def encoder(n, x, layers, width, heads, mask=None):
    for _ in range(layers):
        y, _ = n.attention(x, width, heads, mask=mask)
        x = n.layer_norm(n.op("Add", x, y), width)
        y = n.linear(n.gelu(n.linear(x, width, 4 * width)), 4 * width, width)
        x = n.layer_norm(n.op("Add", x, y), width)
    return x


def bert(name, layers=12, width=768, heads=12, vocabulary=30522, dtype=np.float32):
    n = Net(name, dtype=dtype)
    ids = n.input("input_ids", ["batch", "sequence"], np.int64)
    given = n.input("attention_mask", ["batch", "sequence"], np.int64)
    mask = n.op("Cast", n.op("Unsqueeze", given, n.ints(1, 2)), to=h.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    mask = n.op("Mul", n.op("Sub", n.scalar(1), mask), n.scalar(-10000))
    x = n.op("Gather", n.weight(vocabulary, width, fan=2 * width), ids)
    length = n.op("Gather", n.op("Shape", ids), n.constant(np.array(1, np.int64)))
    where = n.op("Slice", n.weight(512, width, fan=2 * width), n.ints(0), n.op("Unsqueeze", length, n.ints(0)), n.ints(0))
    x = n.layer_norm(n.op("Add", x, where), width)
    return n, encoder(n, x, layers, width, heads, mask)


@model
def bert_base(name):
    return bert(name)


@model
def bert_base_f16(name):
    return bert(name, dtype=np.float16)


@model
def minilm6(name):
    return bert(name, 6, 384, 12)


@model
def vit_b16(name):
    n = Net(name)
    x = n.conv(n.input("x", [1, 3, 224, 224]), 768, 16, 16, p=0)
    x = n.op("Transpose", n.op("Reshape", x, n.ints(1, 768, 196)), perm=[0, 2, 1])
    x = n.op("Concat", n.weight(1, 1, 768, fan=768), x, axis=1)
    x = n.op("Add", x, n.weight(1, 197, 768, fan=768))
    for _ in range(12):
        y, _ = n.attention(n.layer_norm(x, 768), 768, 12)
        x = n.op("Add", x, y)
        y = n.linear(n.gelu(n.linear(n.layer_norm(x, 768), 768, 3072)), 3072, 768)
        x = n.op("Add", x, y)
    first = n.op("Gather", n.layer_norm(x, 768), n.constant(np.array(0, np.int64)), axis=1)
    return n, n.dense(first, 1000, 768)


@model
def gpt2_decode(name, dtype=np.float32):
    n = Net(name, dtype=dtype)
    width, heads = 768, 12
    ids = n.input("input_ids", [1, "new"], np.int64)
    x = n.op("Gather", n.weight(50257, width, fan=2 * width), ids)
    for layer in range(12):
        past = [n.input(f"past_{layer}_{kind}", [1, heads, "past", 64]) for kind in ("key", "value")]
        y, present = n.attention(n.layer_norm(x, width), width, heads, past)
        for kind, value in zip(("key", "value"), present):
            name_out = f"present_{layer}_{kind}"
            n.nodes.append(h.make_node("Identity", [value], [name_out], name_out))
            n.output(name_out)
        x = n.op("Add", x, y)
        y = n.linear(n.layer_norm(x, width), width, 4 * width)
        y = n.op("Mul", y, n.op("Sigmoid", n.op("Mul", y, n.scalar(1.702))))
        x = n.op("Add", x, n.linear(y, 4 * width, width))
    return n, n.op("MatMul", n.layer_norm(x, width), n.weight(width, 50257, fan=width))


@model
def gpt2_decode_f16(name):
    return gpt2_decode(name, np.float16)


def llm(name, bits, block=32, zeros=False, level=4):
    """Four layers of a small Llama's size; attention by the fused operator that exporters write."""
    n = Net(name)
    width, heads, kv, hidden, vocabulary, depth = 2048, 32, 4, 5632, 32000, 64
    ms = "com.microsoft"

    def matmul(x, k, m):
        if bits == 32:
            return n.op("MatMul", x, n.weight(k, m, fan=k))
        blocks = k // block
        packed = n.constant(n.rng.integers(0, 256, (m, blocks, block // 2), dtype=np.uint8))
        scales = n.constant((n.rng.uniform(0.5, 1.5, m * blocks) / np.sqrt(k) / 4).astype(np.float32))
        more = [n.constant(n.rng.integers(0, 256, m * ((blocks + 1) // 2), dtype=np.uint8))] if zeros else []
        return n.op("MatMulNBits", x, packed, scales, *more, domain=ms, K=k, N=m, bits=4, block_size=block, accuracy_level=level)

    def norm(x, skip=None):
        scale = n.constant(np.ones(width, np.float32))
        if skip is None:
            return n.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-5), x
        y = [n.fresh("norm"), "", "", n.fresh("sum")]
        n.domains[ms] = 1
        n.nodes.append(h.make_node("SkipSimplifiedLayerNormalization", [x, skip, scale], y, y[0], domain=ms, epsilon=1e-5))
        return y[0], y[3]

    ids = n.input("input_ids", [1, "new"], np.int64)
    lengths = n.input("seqlens_k", [1], np.int32)
    total = n.input("total_sequence_length", [], np.int32)
    angles = np.outer(np.arange(2048), 10000.0 ** (-np.arange(32) / 32.0))
    cos, sin = n.constant(np.cos(angles).astype(np.float32)), n.constant(np.sin(angles).astype(np.float32))
    x = n.op("Gather", n.weight(vocabulary, width, fan=2 * width), ids)
    y = None
    for layer in range(4):
        a, x = norm(x, y)
        q, k, v = matmul(a, width, width), matmul(a, width, kv * depth), matmul(a, width, kv * depth)
        past = [n.input(f"past_{layer}_{kind}", [1, kv, "past", depth]) for kind in ("key", "value")]
        outs = [n.fresh("attention"), f"present_{layer}_key", f"present_{layer}_value"]
        n.domains[ms] = 1
        n.nodes.append(h.make_node("GroupQueryAttention", [q, k, v, *past, lengths, total, cos, sin], outs, outs[0], domain=ms,
                                   num_heads=heads, kv_num_heads=kv, do_rotary=1))
        n.output(outs[1])
        n.output(outs[2])
        a, x = norm(x, matmul(outs[0], width, width))
        gate = matmul(a, width, hidden)
        y = matmul(n.op("Mul", n.op("Mul", gate, n.op("Sigmoid", gate)), matmul(a, width, hidden)), hidden, width)
    a, _ = norm(x, y)
    return n, matmul(a, width, vocabulary)


@model
def llm_4bit(name):
    return llm(name, 4)


@model
def llm_4bit_128_zeros(name):
    return llm(name, 4, 128, True)


@model
def llm_4bit_exact(name):
    return llm(name, 4, level=0)


@model
def llm_f32(name):
    return llm(name, 32)


# ---- recurrent, trees, control flow, small things

@model
def lstm(name):
    n = Net(name)
    x = n.input("x", [100, 1, 256])
    w, r = n.weight(2, 1024, 256), n.weight(2, 1024, 256, fan=512)
    return n, n.op("LSTM", x, w, r, n.constant(np.zeros((2, 2048), np.float32)), outputs=3, hidden_size=256, direction="bidirectional")[0]


@model
def gru(name):
    n = Net(name)
    x = n.input("x", [100, 1, 256])
    return n, n.op("GRU", x, n.weight(1, 768, 256), n.weight(1, 768, 256, fan=512), n.constant(np.zeros((1, 1536), np.float32)),
                   outputs=2, hidden_size=256, linear_before_reset=1)[0]


@model
def mlp(name):
    n = Net(name)
    x = n.input("x", [1, 784])
    for width, out, act in ((784, 512, "relu"), (512, 512, "relu"), (512, 10, None)):
        x = n.dense(x, out, width, act)
    return n, x


@model
def trees(name, rows=1, count=100, depth=7, features=30):
    n = Net(name)
    x = n.input("x", [rows, features])
    ids, nodes, feature, values, modes, yes, no, leaf_tree, leaf_node, leaf_value = ([] for _ in range(10))
    for tree in range(count):
        inner = 2 ** depth - 1
        for i in range(2 * inner + 1):
            ids.append(tree)
            nodes.append(i)
            is_leaf = i >= inner
            feature.append(0 if is_leaf else int(n.rng.integers(features)))
            values.append(0.0 if is_leaf else float(n.rng.standard_normal()))
            modes.append("LEAF" if is_leaf else "BRANCH_LEQ")
            yes.append(0 if is_leaf else 2 * i + 1)
            no.append(0 if is_leaf else 2 * i + 2)
            if is_leaf:
                leaf_tree.append(tree)
                leaf_node.append(i)
                leaf_value.append(float(n.rng.standard_normal()))
    n.domains["ai.onnx.ml"] = 3
    y = n.fresh("trees")
    n.nodes.append(h.make_node("TreeEnsembleRegressor", [x], [y], y, domain="ai.onnx.ml", n_targets=1, nodes_treeids=ids, nodes_nodeids=nodes,
                               nodes_featureids=feature, nodes_values=values, nodes_modes=modes, nodes_truenodeids=yes, nodes_falsenodeids=no,
                               target_treeids=leaf_tree, target_nodeids=leaf_node, target_ids=[0] * len(leaf_node), target_weights=leaf_value))
    return n, y


@model
def trees_batch(name):
    return trees(name, 1000)


@model
def elementwise_chain(name):
    n = Net(name)
    x = n.input("x", [2, 2, 1024, 1024])
    y = x
    for i in range(5):
        y = n.op("Mul", n.op("Add", y, n.scalar(0.1 + i)), n.scalar(0.7))
        y = n.op("Relu", n.op("Sub", y, n.scalar(0.2)))
    return n, y


@model
def tiny_nodes(name):
    n = Net(name)
    x = n.input("x", [4])
    y = x
    for i in range(300):
        y = n.op("Add", n.op("Neg", y), x)
    return n, y


@model
def loop(name):
    n = Net(name)
    x = n.input("x", [8])
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), h.make_node("Add", ["s", "one"], ["t"]), h.make_node("Mul", ["t", "half"], ["t2"])],
        "body", [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_value_info("s", T.FLOAT, [8])],
        [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("t2", T.FLOAT, [8])],
        [nh.from_array(np.array([1], np.float32), "one"), nh.from_array(np.array([0.5], np.float32), "half")])
    return n, n.op("Loop", n.constant(np.array(1000, np.int64)), n.constant(np.array(True)), x, body=body)


# ---- one operator each

def probe(name, kind, shape, *more, opset=18, out_type=None, x_type=np.float32, domain="", first=None, outputs=1, **attributes):
    """`first`: a constant before the input; None among `more`: an input that is not given."""
    def make(_):
        n = Net("op_" + name, opset=opset)
        x = n.input("x", list(shape), dtype=x_type)
        before = [] if first is None else [n.constant(first)]
        y = n.op(kind, *before, x, *["" if m is None else n.constant(m) for m in more], domain=domain, outputs={"TopK": 2, "LinearClassifier": 2, "SVMClassifier": 2, "DynamicQuantizeLinear": 3}.get(kind, outputs), **attributes)
        if not isinstance(y, str):
            y = y[0]
        if domain == "ai.onnx.ml":
            n.domains[domain] = 3
        n.output(y, dtype=out_type or np.float32)
        return n, None
    MAKERS["op_" + name] = make


BIG = (1, 32, 256, 256)
for kind in ("Relu", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softplus", "Mish", "Sin", "Cos", "Atan", "Asinh", "Sqrt", "Elu", "Selu", "Sign", "Round", "HardSwish"):
    probe(kind.lower(), kind, BIG)
probe("gelu", "Gelu", BIG, opset=20)
probe("pow", "Pow", BIG, np.float32(3.5).reshape(1))
probe("add", "Add", BIG, np.ones(BIG, np.float32))
probe("mod", "Mod", BIG, np.float32(1.5).reshape(1), fmod=1)
probe("prelu", "PRelu", (1, 64, 112, 112), np.full((64, 1, 1), 0.1, np.float32))
probe("softmax_last", "Softmax", (64, 32, 1024), axis=-1)
probe("softmax_mid", "Softmax", (64, 32, 1024), axis=1)
probe("layer_norm", "LayerNormalization", (1024, 1024), np.ones(1024, np.float32), np.zeros(1024, np.float32))
probe("instance_norm", "InstanceNormalization", BIG, np.ones(32, np.float32), np.zeros(32, np.float32))
probe("lrn", "LRN", (1, 64, 112, 112), size=5)
probe("reduce_sum_first", "ReduceSum", (512, 64, 64), np.array([0]))
probe("reduce_max_mid", "ReduceMax", (64, 512, 64), np.array([1]))
probe("reduce_mean_last", "ReduceMean", (2048, 1024), np.array([-1]))
probe("reduce_logsumexp", "ReduceLogSumExp", (2048, 1024), np.array([-1]))
probe("argmax_last", "ArgMax", (2048, 1024), axis=-1, out_type=np.int64)
probe("cumsum_last", "CumSum", (2048, 1024), np.array(1))
probe("transpose_210", "Transpose", (128, 128, 128), perm=[2, 1, 0])
probe("transpose_0321", "Transpose", (2, 64, 128, 128), perm=[0, 3, 2, 1])
probe("transpose_0213", "Transpose", (2, 64, 128, 128), perm=[0, 2, 1, 3])
probe("gather_last", "Gather", (2048, 1024), np.arange(0, 1024, 2), axis=1)
probe("slice_step", "Slice", (2048, 1024), np.array([0]), np.array([1024]), np.array([1]), np.array([2]))
probe("depth_to_space", "DepthToSpace", (1, 128, 128, 128), blocksize=2)
probe("pad", "Pad", (1, 32, 256, 256), np.array([0, 0, 3, 3, 0, 0, 3, 3]))
probe("cast_i64", "Cast", BIG, to=T.INT64, out_type=np.int64)
probe("resize_linear", "Resize", (1, 3, 224, 224), np.array([], np.float32), np.array([1, 1, 2, 2], np.float32), mode="linear")
probe("resize_cubic", "Resize", (1, 3, 224, 224), np.array([], np.float32), np.array([1, 1, 2, 2], np.float32), mode="cubic")
probe("topk", "TopK", (1, 100000), np.array([100]))
probe("max_pool", "MaxPool", (1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2])
probe("conv_3x3", "Conv", (1, 64, 56, 56), np.random.default_rng(1).standard_normal((64, 64, 3, 3)).astype(np.float32) * 0.05, pads=[1] * 4)
probe("conv_5x5", "Conv", (1, 128, 28, 28), np.random.default_rng(1).standard_normal((128, 128, 5, 5)).astype(np.float32) * 0.02, pads=[2] * 4)
probe("conv_1x7", "Conv", (1, 192, 17, 17), np.random.default_rng(1).standard_normal((192, 192, 1, 7)).astype(np.float32) * 0.03, pads=[0, 3, 0, 3])
probe("conv_1x3", "Conv", (1, 384, 16, 16), np.random.default_rng(1).standard_normal((384, 384, 1, 3)).astype(np.float32) * 0.03, pads=[0, 1, 0, 1])

# Operators that stand in networks as they are deployed, in sizes that those have.
_rng = np.random.default_rng(5)
IMAGE = (1, 64, 56, 56)
probe("argmax_mid", "ArgMax", (8, 21, 128, 128), axis=1, out_type=np.int64)
probe("topk_all", "TopK", (1, 100000), np.array([100000]))
probe("topk_rows", "TopK", (1000, 256), np.array([5]))
probe("cumsum_mid", "CumSum", (64, 512, 64), np.array(1))
probe("gather_rows", "Gather", (30000, 768), _rng.integers(0, 30000, (8, 128)), axis=0)
probe("gather_elements", "GatherElements", (512, 1024), _rng.integers(0, 1024, (512, 1024)), axis=1)
probe("gather_nd", "GatherND", (64, 64, 256), _rng.integers(0, 64, (4096, 2)))
probe("scatter_elements", "ScatterElements", (512, 1024), _rng.integers(0, 1024, (512, 1024)), np.ones((512, 1024), np.float32), axis=1)
probe("scatter_nd", "ScatterND", (4096, 256), _rng.permutation(4096)[:2048, None], np.ones((2048, 256), np.float32))
probe("slice_reverse", "Slice", (2048, 1024), np.array([-1]), np.array([-2**31]), np.array([1]), np.array([-1]))
probe("slice_crop", "Slice", (1, 64, 224, 224), np.array([12, 12]), np.array([212, 212]), np.array([2, 3]))
probe("expand", "Expand", (1, 64, 1, 1), np.array([8, 64, 56, 56]))
probe("tile", "Tile", (1, 64, 56, 56), np.array([1, 2, 2, 2]))
probe("where", "Where", (2048, 1024), np.zeros((2048, 1), np.float32), np.ones((2048, 1024), np.float32), x_type=np.bool_)
probe("pad_reflect", "Pad", (1, 32, 256, 256), np.array([0, 0, 3, 3, 0, 0, 3, 3]), mode="reflect")
probe("pad_edge", "Pad", (1, 32, 256, 256), np.array([0, 0, 3, 3, 0, 0, 3, 3]), mode="edge")
probe("one_hot", "OneHot", (4096,), np.array(256), np.array([0, 1], np.float32), x_type=np.int64)
probe("space_to_depth", "SpaceToDepth", (1, 32, 256, 256), blocksize=2)
probe("resize_nearest", "Resize", IMAGE, np.array([], np.float32), np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
probe("resize_linear_features", "Resize", IMAGE, np.array([], np.float32), np.array([1, 1, 2, 2], np.float32), mode="linear", coordinate_transformation_mode="align_corners")
probe("resize_down", "Resize", (1, 3, 480, 640), np.array([], np.float32), np.array([], np.float32), np.array([1, 3, 224, 224]), mode="linear")
probe("grid_sample", "GridSample", (1, 64, 56, 56), (_rng.random((1, 56, 56, 2)) * 2 - 1).astype(np.float32), opset=16)
probe("roi_align", "RoiAlign", (1, 256, 50, 50), (_rng.random((100, 4)) * 25 + np.array([0, 0, 25, 25])).astype(np.float32), np.zeros(100, np.int64), output_height=7, output_width=7, sampling_ratio=2, opset=16)
probe("nms", "NonMaxSuppression", (1, 4000, 4), _rng.random((1, 10, 4000)).astype(np.float32), np.array([100]), np.array([0.5], np.float32), np.array([0.3], np.float32), out_type=np.int64)
probe("group_norm", "GroupNormalization", IMAGE, np.ones(64, np.float32), np.zeros(64, np.float32), num_groups=32, opset=21)
probe("rms_norm", "RMSNormalization", (1024, 1024), np.ones(1024, np.float32), opset=23)
probe("lp_norm", "LpNormalization", (2048, 512), axis=-1)
probe("batch_norm", "BatchNormalization", IMAGE, *[np.ones(64, np.float32)] * 4, opset=15)
probe("mvn", "MeanVarianceNormalization", IMAGE)
probe("reduce_l2_mid", "ReduceL2", (64, 512, 64), np.array([1]))
probe("reduce_prod_last", "ReduceProd", (2048, 1024), np.array([-1]))
probe("log_softmax", "LogSoftmax", (2048, 1000), axis=-1)
probe("softmax_short", "Softmax", (10000, 3), axis=-1)
probe("softmax_f64", "Softmax", (10000, 10), axis=-1, x_type=np.float64, out_type=np.float64)
probe("average_pool", "AveragePool", (1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2])
probe("global_average_pool", "GlobalAveragePool", (1, 1280, 7, 7))
probe("conv_transpose", "ConvTranspose", (1, 64, 56, 56), (_rng.standard_normal((64, 32, 2, 2)) * 0.05).astype(np.float32), kernel_shape=[2, 2], strides=[2, 2])
probe("einsum_attention", "Einsum", (8, 128, 12, 64), _rng.standard_normal((8, 128, 12, 64)).astype(np.float32), equation="bqhd,bkhd->bhqk")
probe("matmul_i32", "MatMul", (256, 256), np.ones((256, 256), np.int32), x_type=np.int32, out_type=np.int32)
probe("matmul_f64", "MatMul", (256, 256), np.ones((256, 256), np.float64), x_type=np.float64, out_type=np.float64)
probe("dft", "DFT", (16, 1000, 1), np.array(1000), np.array(1), opset=20)
probe("dft_2", "DFT", (16, 1024, 1), np.array(1024), np.array(1), opset=20)
probe("stft", "STFT", (1, 16000, 1), np.array(160), np.hanning(400).astype(np.float32), np.array(400))
probe("cast_f16", "Cast", BIG, to=T.FLOAT16, out_type=np.float16)
probe("cast_bf16", "Cast", BIG, to=T.BFLOAT16, out_type=None)
probe("cast_u8", "Cast", BIG, to=T.UINT8, out_type=np.uint8)
probe("cast_bool", "Cast", BIG, to=T.BOOL, out_type=np.bool_)
probe("cast_from_i64", "Cast", BIG, x_type=np.int64, to=T.FLOAT)
probe("dequantize", "DequantizeLinear", BIG, np.array(0.1, np.float32), np.array(3, np.uint8), x_type=np.uint8)
probe("quantize", "QuantizeLinear", BIG, np.array(0.1, np.float32), np.array(3, np.uint8), out_type=np.uint8)
probe("non_zero", "NonZero", (512, 512), x_type=np.bool_, out_type=np.int64)
probe("trilu", "Trilu", (8, 512, 512))
probe("concat_last", "Concat", (65536, 4), np.ones((65536, 4), np.float32), axis=1)
probe("split_last", "Split", (2048, 1024), outputs=2, num_outputs=2, axis=1)
probe("equal", "Equal", BIG, np.float32(0).reshape(1), out_type=np.bool_)
probe("not", "Not", BIG, x_type=np.bool_, out_type=np.bool_)
probe("is_nan", "IsNaN", BIG, out_type=np.bool_)
probe("range_add", "Add", (1024,), np.arange(1024, dtype=np.int64), x_type=np.int64, out_type=np.int64)
probe("mul_i64", "Mul", (1024, 1024), np.full((1024, 1024), 3, np.int64), x_type=np.int64, out_type=np.int64)
probe("div_i64", "Div", (1024, 1024), np.full((1024, 1024), 3, np.int64), x_type=np.int64, out_type=np.int64)
probe("tan", "Tan", BIG)
probe("ceil", "Ceil", BIG)
probe("max_3", "Max", BIG, np.zeros(BIG, np.float32), np.ones(BIG, np.float32))
probe("hardmax", "Hardmax", (2048, 1000), axis=-1)
probe("unique", "Unique", (20000,), x_type=np.int64, out_type=np.int64)
probe("bitshift", "BitShift", (1024, 1024), np.full((1024, 1024), 2, np.uint32), direction="LEFT", x_type=np.uint32, out_type=np.uint32)
probe("clip_i64", "Clip", (1024, 1024), np.array(0, np.int64), np.array(5, np.int64), x_type=np.int64, out_type=np.int64)
probe("reduce_sum_i64", "ReduceSum", (1024, 1024), np.array([-1]), x_type=np.int64, out_type=np.int64)
probe("max_unpool", "MaxUnpool", (1, 64, 56, 56), (np.arange(64 * 56 * 56) * 4).reshape(1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2])
probe("lp_pool", "LpPool", (1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2])
probe("col2im", "Col2Im", (1, 64 * 9, 2916), np.array([56, 56]), np.array([3, 3]))
probe("layer_norm_small", "LayerNormalization", (128, 768), np.ones(768, np.float32), np.zeros(768, np.float32))
probe("skip_layer_norm", "SkipLayerNormalization", (1, 128, 768), np.ones((1, 128, 768), np.float32), np.ones(768, np.float32), np.zeros(768, np.float32), domain="com.microsoft")
probe("fast_gelu", "FastGelu", (128, 3072), np.ones(3072, np.float32), domain="com.microsoft")
probe("bias_gelu", "BiasGelu", (128, 3072), np.ones(3072, np.float32), domain="com.microsoft")
probe("fused_matmul", "FusedMatMul", (12, 128, 64), np.ones((12, 128, 64), np.float32), transB=1, alpha=0.125, domain="com.microsoft")
probe("quick_gelu", "QuickGelu", (128, 3072), domain="com.microsoft")
probe("qlinear_add", "QLinearAdd", IMAGE, np.array(0.1, np.float32), np.array(3, np.uint8), np.ones(IMAGE, np.uint8), np.array(0.1, np.float32), np.array(3, np.uint8), np.array(0.2, np.float32), np.array(3, np.uint8), x_type=np.uint8, out_type=np.uint8, domain="com.microsoft")
probe("fused_conv", "FusedConv", IMAGE, (_rng.standard_normal((64, 64, 1, 1)) * 0.05).astype(np.float32), activation="Relu", domain="com.microsoft")
for _kind, _attributes in (("LinearRegressor", dict(coefficients=[0.5] * 30, intercepts=[1.0])), ("Scaler", dict(offset=[0.5] * 30, scale=[2.0] * 30)), ("Normalizer", dict(norm="L2")), ("Imputer", dict(imputed_value_floats=[0.5] * 30, replaced_value_float=float("nan"))),
                           ("LinearClassifier", dict(coefficients=[0.5] * 90, intercepts=[1.0] * 3, classlabels_ints=[0, 1, 2])),
                           ("SVMRegressor", dict(coefficients=[0.25] * 100, support_vectors=[float(v) for v in np.round(_rng.standard_normal(3000), 3)], kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0], n_supports=100, rho=[0.5])),
                           ("SVMClassifier", dict(coefficients=[0.25] * 100, support_vectors=[float(v) for v in np.round(_rng.standard_normal(3000), 3)], kernel_type="SIGMOID", kernel_params=[0.1, 0.0, 3.0], vectors_per_class=[60, 40], rho=[0.5], classlabels_ints=[0, 1]))):
    probe("ml_" + _kind.lower(), _kind, (1000, 30), domain="ai.onnx.ml", out_type=np.int64 if _kind.endswith("Classifier") else np.float32, **_attributes)
probe("cross_entropy_loss", "SoftmaxCrossEntropyLoss", (256, 1000), _rng.integers(0, 1000, 256))
probe("likelihood_loss", "NegativeLogLikelihoodLoss", (2, 21, 128, 128), _rng.integers(0, 21, (2, 128, 128)))
probe("det", "Det", (64, 64, 64))
# The rest of the operator set that ONNX Runtime runs: other types, other axes, other modes.
_i64 = dict(x_type=np.int64, out_type=np.int64)
_i32 = dict(x_type=np.int32, out_type=np.int32)
_f64 = dict(x_type=np.float64, out_type=np.float64)
_f16 = dict(x_type=np.float16, out_type=np.float16)
_u8 = dict(x_type=np.uint8, out_type=np.uint8)
_bool = dict(x_type=np.bool_, out_type=np.bool_)
SHEET = (1024, 1024)
VOLUME = (1, 16, 16, 56, 56)
LINE = (1, 64, 8192)
for _kind in ("Abs", "Neg", "Floor", "Reciprocal", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "Softsign", "Celu", "Sinh", "Cosh", "Asin", "Acos", "Acosh", "Atanh", "Shrink"):
    probe(_kind.lower(), _kind, BIG)
probe("swish", "Swish", BIG, opset=24)
probe("clip", "Clip", BIG, np.float32(-1).reshape(()), np.float32(1).reshape(()))
probe("is_inf", "IsInf", BIG, out_type=np.bool_)
probe("dropout", "Dropout", BIG)
probe("abs_i64", "Abs", SHEET, **_i64)
probe("neg_i32", "Neg", SHEET, **_i32)
probe("sign_i64", "Sign", SHEET, **_i64)
probe("sqrt_f64", "Sqrt", SHEET, **_f64)
probe("exp_f64", "Exp", SHEET, **_f64)
probe("relu_i32", "Relu", SHEET, **_i32)
probe("relu_f64", "Relu", SHEET, **_f64)
probe("add_i32", "Add", SHEET, np.ones(SHEET, np.int32), **_i32)
probe("add_f64", "Add", SHEET, np.ones(SHEET, np.float64), **_f64)
probe("add_row", "Add", (2048, 1024), np.ones(1024, np.float32))
probe("add_column", "Add", (2048, 1024), np.ones((2048, 1), np.float32))
probe("add_channel", "Add", BIG, np.ones((32, 1, 1), np.float32))
probe("mul_outer", "Mul", (2048, 1), np.ones((1, 1024), np.float32))
probe("sub", "Sub", BIG, np.ones(BIG, np.float32))
probe("div", "Div", BIG, np.full(BIG, 3, np.float32))
probe("mod_i64", "Mod", SHEET, np.full(SHEET, 7, np.int64), **_i64)
probe("pow_2", "Pow", BIG, np.float32(2).reshape(1))
probe("pow_tensor", "Pow", SHEET, (_rng.random(SHEET) * 3).astype(np.float32))
probe("pow_i64", "Pow", SHEET, np.array([3], np.int64), **_i64)
probe("max_i64", "Max", SHEET, np.zeros(SHEET, np.int64), **_i64)
probe("min_u8", "Min", SHEET, np.full(SHEET, 7, np.uint8), **_u8)
probe("mean_3", "Mean", SHEET, np.zeros(SHEET, np.float32), np.ones(SHEET, np.float32))
probe("sum_3", "Sum", SHEET, np.zeros(SHEET, np.float32), np.ones(SHEET, np.float32))
probe("and", "And", SHEET, np.ones(SHEET, np.bool_), **_bool)
probe("xor", "Xor", SHEET, np.ones((1024, 1), np.bool_), **_bool)
probe("less", "Less", BIG, np.zeros(BIG, np.float32), out_type=np.bool_)
probe("greater_equal_i64", "GreaterOrEqual", SHEET, np.zeros(SHEET, np.int64), x_type=np.int64, out_type=np.bool_)
probe("equal_i32", "Equal", SHEET, np.zeros((1, 1024), np.int32), x_type=np.int32, out_type=np.bool_)
probe("equal_bool", "Equal", SHEET, np.ones(SHEET, np.bool_), **_bool)
probe("bitwise_and", "BitwiseAnd", SHEET, np.full(SHEET, 7, np.int32), **_i32)
probe("bitwise_not", "BitwiseNot", SHEET, **_i32)
probe("where_i64", "Where", SHEET, np.zeros(SHEET, np.int64), np.ones(SHEET, np.int64), x_type=np.bool_, out_type=np.int64)
probe("where_scalar", "Where", SHEET, np.zeros((), np.float32), np.ones(SHEET, np.float32), x_type=np.bool_)
for _name, _from, _to in (("i32_to_f32", np.int32, T.FLOAT), ("u8_to_f32", np.uint8, T.FLOAT), ("bool_to_f32", np.bool_, T.FLOAT), ("f16_to_f32", np.float16, T.FLOAT), ("f64_to_f32", np.float64, T.FLOAT)):
    probe("cast_" + _name, "Cast", BIG, x_type=_from, to=_to)
for _name, _from, _to, _out in (("f32_to_f64", np.float32, T.DOUBLE, np.float64), ("f32_to_i32", np.float32, T.INT32, np.int32), ("i64_to_i32", np.int64, T.INT32, np.int32), ("i32_to_i64", np.int32, T.INT64, np.int64), ("i64_to_bool", np.int64, T.BOOL, np.bool_), ("bool_to_i64", np.bool_, T.INT64, np.int64), ("f32_to_i8", np.float32, T.INT8, np.int8), ("f64_to_i32", np.float64, T.INT32, np.int32), ("f64_to_f16", np.float64, T.FLOAT16, np.float16), ("f32_to_u32", np.float32, T.UINT32, np.uint32)):
    probe("cast_" + _name, "Cast", SHEET, x_type=_from, to=_to, out_type=_out)
for _kind in ("Sum", "Mean", "Max", "L1", "SumSquare", "LogSum"):
    probe("reduce_" + _kind.lower() + "_all", "Reduce" + _kind, (2048, 1024), keepdims=0)
probe("reduce_mean_image", "ReduceMean", (8, 256, 28, 28), np.array([2, 3]))
probe("reduce_mean_mid", "ReduceMean", (64, 512, 64), np.array([1]))
probe("reduce_sum_outer", "ReduceSum", (64, 128, 128), np.array([0, 2]))
probe("reduce_max_last", "ReduceMax", (2048, 1024), np.array([-1]))
probe("reduce_max_i64", "ReduceMax", SHEET, np.array([-1]), **_i64)
probe("reduce_sum_f64", "ReduceSum", SHEET, np.array([0]), **_f64)
probe("reduce_sum_i32", "ReduceSum", SHEET, np.array([0]), **_i32)
probe("reduce_logsumexp_mid", "ReduceLogSumExp", (64, 256, 64), np.array([1]))
probe("argmin_last", "ArgMin", (2048, 1024), axis=-1, out_type=np.int64)
probe("argmax_first", "ArgMax", (512, 4096), axis=0, out_type=np.int64)
probe("argmax_i32", "ArgMax", SHEET, axis=-1, x_type=np.int32, out_type=np.int64)
probe("softmax_small", "Softmax", (12, 128, 128), axis=-1)
probe("softmax_first", "Softmax", (21, 65536), axis=0)
probe("log_softmax_mid", "LogSoftmax", (8, 21, 4096), axis=1)
probe("cumsum_reverse", "CumSum", (2048, 1024), np.array(1), reverse=1, exclusive=1)
probe("cumsum_i64", "CumSum", SHEET, np.array(1), **_i64)
probe("lp_norm_mid", "LpNormalization", (64, 256, 64), axis=1, p=1)
probe("max_pool_1d", "MaxPool", LINE, kernel_shape=[3], strides=[2])
probe("max_pool_3d", "MaxPool", VOLUME, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
probe("max_pool_5x5", "MaxPool", IMAGE, kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
probe("max_pool_u8", "MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], **_u8)
probe("average_pool_1d", "AveragePool", LINE, kernel_shape=[3], strides=[2])
probe("average_pool_3d", "AveragePool", VOLUME, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
probe("average_pool_pad", "AveragePool", IMAGE, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4, count_include_pad=1)
probe("global_max_pool", "GlobalMaxPool", (8, 256, 28, 28))
probe("lp_pool_p3", "LpPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], p=3)
for _name, _perm, _shape in (("021", [0, 2, 1], (64, 256, 256)), ("1023", [1, 0, 2, 3], (64, 32, 32, 32)), ("0231", [0, 2, 3, 1], (8, 64, 56, 56)), ("0312", [0, 3, 1, 2], (8, 56, 56, 64)), ("102", [1, 0, 2], (128, 128, 128)), ("3210", [3, 2, 1, 0], (32, 32, 32, 64))):
    probe("transpose_" + _name, "Transpose", _shape, perm=_perm)
probe("transpose_i64", "Transpose", SHEET, perm=[1, 0], **_i64)
probe("transpose_u8", "Transpose", (8, 224, 224, 3), perm=[0, 3, 1, 2], **_u8)
probe("concat_first", "Concat", (64, 32, 512), np.ones((64, 32, 512), np.float32), axis=0)
probe("concat_channels", "Concat", IMAGE, np.ones(IMAGE, np.float32), axis=1)
probe("concat_i64", "Concat", SHEET, np.ones(SHEET, np.int64), axis=1, **_i64)
probe("slice_last_half", "Slice", (2048, 1024), np.array([0]), np.array([512]), np.array([1]))
probe("slice_i64", "Slice", SHEET, np.array([0]), np.array([1024]), np.array([1]), np.array([2]), **_i64)
probe("pad_wrap", "Pad", (1, 32, 128, 128), np.array([0, 0, 3, 3, 0, 0, 3, 3]), mode="wrap", opset=19)
probe("pad_i64", "Pad", SHEET, np.array([1, 1, 1, 1]), **_i64)
probe("gather_first", "Gather", (4096, 64), _rng.integers(0, 4096, 20000), axis=0)
probe("gather_mid", "Gather", (64, 512, 64), _rng.integers(0, 512, 256), axis=1)
probe("gather_i64", "Gather", (4096, 64), _rng.integers(0, 4096, 8192), axis=0, **_i64)
probe("gather_elements_mid", "GatherElements", (64, 256, 64), _rng.integers(0, 256, (64, 128, 64)), axis=1)
probe("gather_nd_rows", "GatherND", (4096, 256), _rng.integers(0, 4096, (4096, 1)))
probe("scatter_elements_first", "ScatterElements", (1024, 512), _rng.integers(0, 1024, (512, 512)), np.ones((512, 512), np.float32), axis=0)
probe("scatter_elements_add", "ScatterElements", (512, 1024), _rng.integers(0, 1024, (512, 1024)), np.ones((512, 1024), np.float32), axis=1, reduction="add")
probe("scatter_nd_add", "ScatterND", (4096, 256), _rng.integers(0, 4096, (2048, 1)), np.ones((2048, 256), np.float32), reduction="add")
probe("compress", "Compress", (4096, 256), _rng.random(4096) > 0.5, axis=0)
probe("compress_flat", "Compress", SHEET, _rng.random(1 << 20) > 0.5)
probe("non_zero_f32", "NonZero", SHEET, out_type=np.int64)
probe("non_zero_3d", "NonZero", (64, 64, 64), x_type=np.bool_, out_type=np.int64)
probe("one_hot_axis0", "OneHot", (4096,), np.array(256), np.array([0, 1], np.float32), x_type=np.int64, axis=0)
probe("trilu_lower", "Trilu", SHEET, np.array(0), upper=0)
probe("eye_like", "EyeLike", SHEET)
probe("reverse_sequence", "ReverseSequence", (512, 64, 64), np.full(64, 512), batch_axis=1, time_axis=0)
probe("expand_column", "Expand", (2048, 1), np.array([2048, 1024]))
probe("expand_row", "Expand", (1, 1024), np.array([2048, 1024]))
probe("tile_row", "Tile", (1, 1024), np.array([2048, 1]))
probe("depth_to_space_crd", "DepthToSpace", (1, 128, 128, 128), blocksize=2, mode="CRD")
for _name, _type, _more in (("nearest_3x", np.float32, dict(mode="nearest")), ("linear_u8", np.uint8, dict(mode="linear")), ("nearest_u8", np.uint8, dict(mode="nearest")), ("cubic_i32", np.int32, dict(mode="cubic"))):
    probe("resize_" + _name, "Resize", (1, 3, 224, 224), np.array([], np.float32), np.array([1, 1, 3, 3] if "3x" in _name else [1, 1, 2, 2], np.float32), x_type=_type, out_type=_type, **_more)
probe("resize_antialias", "Resize", (1, 3, 480, 640), np.array([], np.float32), np.array([], np.float32), np.array([1, 3, 224, 224]), mode="linear", antialias=1)
probe("resize_antialias_cubic", "Resize", (1, 3, 480, 640), np.array([], np.float32), np.array([], np.float32), np.array([1, 3, 224, 224]), mode="cubic", antialias=1)
probe("resize_crop", "Resize", (1, 3, 224, 224), np.array([0, 0, 0.1, 0.1, 1, 1, 0.9, 0.9], np.float32), np.array([], np.float32), np.array([1, 3, 300, 300]), mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
probe("resize_nhwc", "Resize", (1, 224, 224, 3), np.array([], np.float32), np.array([1, 2, 2, 1], np.float32), mode="linear")
probe("resize_1d", "Resize", (1, 64, 4096), np.array([], np.float32), np.array([1, 1, 2], np.float32), mode="linear")
probe("resize_3d", "Resize", (1, 8, 16, 32, 32), np.array([], np.float32), np.array([1, 1, 2, 2, 2], np.float32), mode="linear")
probe("grid_sample_nearest", "GridSample", (1, 64, 56, 56), (_rng.random((1, 56, 56, 2)) * 2 - 1).astype(np.float32), opset=16, mode="nearest")
probe("grid_sample_cubic", "GridSample", (1, 16, 56, 56), (_rng.random((1, 56, 56, 2)) * 2 - 1).astype(np.float32), opset=16, mode="bicubic", padding_mode="border")
probe("affine_grid", "AffineGrid", (4, 2, 3), np.array([4, 3, 128, 128]), opset=20)
probe("roi_align_max", "RoiAlign", (1, 64, 50, 50), (_rng.random((100, 4)) * 25 + np.array([0, 0, 25, 25])).astype(np.float32), np.zeros(100, np.int64), output_height=7, output_width=7, sampling_ratio=2, mode="max", opset=16)
probe("nms_classes", "NonMaxSuppression", (1, 1000, 4), _rng.random((1, 80, 1000)).astype(np.float32), np.array([20]), np.array([0.5], np.float32), np.array([0.3], np.float32), out_type=np.int64)
probe("einsum_outer", "Einsum", (8, 56, 56, 64), _rng.standard_normal((56, 32, 64)).astype(np.float32), equation="bhwc,hkc->bhwk")
probe("einsum_ellipsis", "Einsum", (8, 12, 128, 64), _rng.standard_normal((8, 12, 64, 128)).astype(np.float32), equation="...ij,...jk->...ik")
probe("einsum_bilinear", "Einsum", (64, 64), _rng.standard_normal((64, 64, 64)).astype(np.float32), _rng.standard_normal((64, 64)).astype(np.float32), equation="bi,ijk,bk->bj")
probe("einsum_trace", "Einsum", (64, 128, 128), equation="bij->bji")
probe("det", "Det", (256, 16, 16))
probe("matmul_i64", "MatMul", (256, 256), np.ones((256, 256), np.int64), **_i64)
probe("gemm_f64", "Gemm", (256, 256), np.ones((256, 256), np.float64), np.ones(256, np.float64), transB=1, **_f64)
probe("matmul_integer", "MatMulInteger", (256, 512), _rng.integers(0, 255, (512, 512)).astype(np.uint8), x_type=np.uint8, out_type=np.int32)
probe("dft_inverse", "DFT", (16, 1000, 2), np.array(1000), np.array(1), opset=20, inverse=1)
probe("dft_prime", "DFT", (16, 997, 2), np.array(997), np.array(1), opset=20)
probe("dft_2d", "DFT", (4, 256, 256, 2), np.array(256), np.array(1), opset=20)
probe("dft_onesided", "DFT", (16, 1024, 1), np.array(1024), np.array(1), opset=20, onesided=1)
probe("stft_1024", "STFT", (1, 65536, 1), np.array(256), np.hanning(1024).astype(np.float32), np.array(1024))
probe("mel_window", "HannWindow", (), x_type=np.int64)
probe("topk_short_rows", "TopK", (20000, 32), np.array([4]))
probe("topk_f16", "TopK", (256, 1000), np.array([5]), x_type=np.float16, out_type=np.float16)
probe("argmax_f16", "ArgMax", (256, 1000), axis=-1, x_type=np.float16, out_type=np.int64)
probe("argmax_short_rows", "ArgMax", (20000, 16), axis=-1, out_type=np.int64)
probe("hardmax_mid", "Hardmax", (64, 128, 64), axis=1)
probe("max_pool_places", "MaxPool", (1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], outputs=2)
probe("layer_norm_moments", "LayerNormalization", (128, 768), np.ones(768, np.float32), np.zeros(768, np.float32), outputs=3)
_codes = _rng.integers(-99, 99, (1, 4, 601, 64)).astype(np.int8)
_step = _rng.standard_normal((1, 1, 256)).astype(np.float32)
probe("group_query_codes", "GroupQueryAttention", (1, 1, 768), _step, _step, _codes, _codes, np.array([600], np.int32), np.array(601, np.int32), None, None, None, None, None, np.full(1, 0.02, np.float32), np.full(1, 0.02, np.float32), domain="com.microsoft", outputs=3, num_heads=12, kv_num_heads=4, k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=8)
probe("inverse_large", "Inverse", (2, 384, 384), domain="com.microsoft")
probe("matmul_integer16", "MatMulInteger16", (64, 256), _rng.integers(-99, 99, (256, 256)).astype(np.int16), domain="com.microsoft", x_type=np.int16, out_type=np.int32)
probe("layer_norm_f64", "LayerNormalization", (128, 768), np.ones(768), np.zeros(768), **_f64)
probe("lp_norm_f64", "LpNormalization", (4, 64, 28, 28), axis=1, **_f64)
probe("max_pool_f64", "MaxPool", (1, 64, 56, 56), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], **_f64)
probe("max_unpool_larger", "MaxUnpool", (1, 64, 56, 56), (np.arange(64 * 56 * 56) * 4).reshape(1, 64, 56, 56), np.array([1, 64, 113, 112]), kernel_shape=[2, 2], strides=[2, 2])
probe("reduce_max_u8", "ReduceMax", SHEET, np.array([-1]), x_type=np.uint8, out_type=np.uint8)
probe("reduce_mean_i32", "ReduceMean", SHEET, np.array([0]), **_i32)
probe("max_3_i64", "Max", SHEET, np.zeros(SHEET, np.int64), np.ones(SHEET, np.int64), **_i64)
probe("tanh_f64", "Tanh", SHEET, **_f64)
probe("sin_f64", "Sin", SHEET, **_f64)
probe("softmax_f64_mid", "Softmax", (8, 64, 512), axis=1, **_f64)
probe("einsum_f64", "Einsum", (8, 64, 64), _rng.standard_normal((8, 64, 64)), equation="bid,bjd->bij", **_f64)
probe("quantize_f16", "QuantizeLinear", BIG, np.array(0.1, np.float16), np.array(3, np.uint8), opset=19, x_type=np.float16, out_type=np.uint8)
probe("topk_smallest", "TopK", (1000, 256), np.array([5]), largest=0)
probe("topk_i64", "TopK", (100, 4096), np.array([10]), x_type=np.int64, out_type=np.int64)
probe("topk_first_axis", "TopK", (256, 1000), np.array([5]), axis=0)
probe("unique_f32", "Unique", (20000,))
probe("lstm_step", "LSTM", (1, 1, 256), (_rng.standard_normal((1, 1024, 256)) * 0.05).astype(np.float32), (_rng.standard_normal((1, 1024, 256)) * 0.05).astype(np.float32), hidden_size=256)
probe("gru_seq", "GRU", (50, 4, 128), (_rng.standard_normal((1, 384, 128)) * 0.05).astype(np.float32), (_rng.standard_normal((1, 384, 128)) * 0.05).astype(np.float32), hidden_size=128)
probe("rnn_seq", "RNN", (50, 4, 128), (_rng.standard_normal((1, 128, 128)) * 0.05).astype(np.float32), (_rng.standard_normal((1, 128, 128)) * 0.05).astype(np.float32), hidden_size=128)
probe("quantize_dynamic", "DynamicQuantizeLinear", (2048, 1024), out_type=np.uint8)
probe("quantize_axis", "QuantizeLinear", IMAGE, np.full(64, 0.1, np.float32), np.full(64, 3, np.uint8), axis=1, out_type=np.uint8)
probe("add_f16", "Add", SHEET, np.ones(SHEET, np.float16), **_f16)
probe("sigmoid_f16", "Sigmoid", SHEET, **_f16)
probe("skip_rms_norm", "SkipSimplifiedLayerNormalization", (1, 128, 768), np.ones((1, 128, 768), np.float32), np.ones(768, np.float32), domain="com.microsoft")
probe("rotary", "RotaryEmbedding", (1, 12, 128, 64), np.arange(128)[None], np.ones((128, 32), np.float32), np.zeros((128, 32), np.float32), domain="com.microsoft")
probe("rotary_23", "RotaryEmbedding", (1, 12, 128, 64), np.ones((1, 128, 32), np.float32), np.zeros((1, 128, 32), np.float32), opset=23)
probe("attention_23", "Attention", (1, 12, 256, 64), _rng.standard_normal((1, 12, 256, 64)).astype(np.float32), _rng.standard_normal((1, 12, 256, 64)).astype(np.float32), opset=23)
for _kind, _type, _out, _attributes in (
        ("Binarizer", np.float32, np.float32, dict(threshold=0.5)), ("Imputer", np.float32, np.float32, dict(imputed_value_floats=[0.5], replaced_value_float=0.0)), ("OneHotEncoder", np.int64, np.float32, dict(cats_int64s=list(range(10)))),
        ("LabelEncoder", np.int64, np.float32, dict(keys_int64s=list(range(100)), values_floats=[float(i) for i in range(100)]))):
    probe("ml_" + _kind.lower(), _kind, (1000, 30), domain="ai.onnx.ml", x_type=_type, out_type=_out, **_attributes)
probe("conv_depthwise", "Conv", (1, 128, 56, 56), np.random.default_rng(1).standard_normal((128, 1, 3, 3)).astype(np.float32), pads=[1] * 4, group=128)
probe("conv_grouped", "Conv", (1, 256, 28, 28), np.random.default_rng(1).standard_normal((256, 8, 3, 3)).astype(np.float32) * 0.1, pads=[1] * 4, group=32)
_more = np.random.default_rng(14)


def _small(*shape):
    return (_more.standard_normal(shape) * 0.05).astype(np.float32)


def _codes(*shape):
    return _more.integers(0, 255, shape).astype(np.uint8)


def _steps(scale, zero):
    return np.array(scale, np.float32), np.array(zero, np.uint8)


_bytes = dict(x_type=np.uint8, out_type=np.uint8)
probe("conv_dilated", "Conv", (1, 128, 33, 33), _small(128, 128, 3, 3), dilations=[18, 18], pads=[18] * 4)
probe("conv_3x3x3", "Conv", (1, 32, 8, 56, 56), _small(32, 32, 3, 3, 3), pads=[1] * 6)
probe("conv_3x1x1", "Conv", (1, 64, 8, 28, 28), _small(64, 64, 3, 1, 1), pads=[1, 0, 0, 1, 0, 0])
probe("conv_whole_rows", "Conv", (1, 64, 100, 4), _small(64, 1, 31, 4), group=64, pads=[15, 0, 15, 0])
probe("conv_transpose_column", "ConvTranspose", (1, 64, 1000, 1), _small(64, 32, 4, 1), strides=[4, 1])
probe("conv_1x3x3", "Conv", (1, 64, 8, 28, 28), _small(64, 64, 1, 3, 3), pads=[0, 1, 1, 0, 1, 1])
probe("max_pool_whole", "MaxPool", (1, 1024, 2048), kernel_shape=[2048])
probe("deform_conv", "DeformConv", (1, 64, 28, 28), _small(64, 64, 3, 3), _small(1, 18, 28, 28) * 20, opset=19, pads=[1] * 4)
probe("trilu", "Trilu", (8, 512, 512))
probe("qlinear_conv_zeros", "QLinearConv", (1, 64, 28, 28), *_steps(0.02, 3), _codes(128, 64, 3, 3), *_steps(0.01, 120), *_steps(0.5, 100), pads=[1] * 4, **_bytes)
probe("qlinear_conv_1d", "QLinearConv", (1, 64, 4096), *_steps(0.02, 3), _codes(64, 64, 9), *_steps(0.01, 128), *_steps(0.5, 100), pads=[4, 4], **_bytes)
probe("qlinear_matmul_batches", "QLinearMatMul", (12, 128, 64), *_steps(0.02, 3), _codes(12, 64, 128), *_steps(0.01, 120), *_steps(0.5, 100), **_bytes)
probe("ms_attention", "Attention", (1, 128, 768), _small(768, 2304), _small(2304), num_heads=12, domain="com.microsoft")
probe("ms_multi_head_attention", "MultiHeadAttention", (1, 128, 768), _small(1, 128, 768), _small(1, 128, 768), num_heads=12, domain="com.microsoft")
probe("qattention", "QAttention", (1, 128, 768), _codes(768, 2304), _small(2304), np.array(0.02, np.float32), np.array(0.001, np.float32), num_heads=12, domain="com.microsoft", x_type=np.uint8)
probe("dynamic_quantize_matmul", "DynamicQuantizeMatMul", (128, 768), _codes(768, 768), np.array([0.01], np.float32), np.array([120], np.uint8), domain="com.microsoft")
probe("quantize_u16", "QuantizeLinear", SHEET, np.array(0.001, np.float32), np.array(30000, np.uint16), opset=21, out_type=np.uint16)
probe("dequantize_u16", "DequantizeLinear", SHEET, np.array(0.001, np.float32), np.array(30000, np.uint16), opset=21, x_type=np.uint16)
probe("conv_1d", "Conv", (1, 64, 4096), np.random.default_rng(1).standard_normal((64, 64, 9)).astype(np.float32) * 0.05, pads=[4, 4])
probe("matmul_1024", "MatMul", (1024, 1024), np.random.default_rng(1).standard_normal((1024, 1024)).astype(np.float32))
probe("matmul_m1", "MatMul", (1, 4096), np.random.default_rng(1).standard_normal((4096, 4096)).astype(np.float32))
probe("matmul_m16", "MatMul", (16, 4096), np.random.default_rng(1).standard_normal((4096, 4096)).astype(np.float32))

_ms = dict(domain="com.microsoft")
_boxes = np.sort(_more.random((50, 2, 2)), axis=1).reshape(50, 4).astype(np.float32)
probe("qlinear_where", "QLinearWhere", (1, 256, 28, 28), *_steps(0.02, 3), _codes(1, 256, 28, 28), *_steps(0.03, 3), *_steps(0.02, 3), x_type=np.uint8, out_type=np.uint8, first=_codes(1, 256, 28, 28) > 127, **_ms)
probe("gather_block_quantized", "GatherBlockQuantized", (1, 64), _small(32000, 64), first=_codes(32000, 1024), x_type=np.int64, block_size=32, **_ms)
probe("matmul_8bits", "MatMulNBits", (1, 2048), _codes(2048, 64, 32), _small(2048 * 64), K=2048, N=2048, bits=8, block_size=32, **_ms)
probe("matmul_8bits_bytes", "MatMulNBits", (1, 2048), _codes(2048, 64, 32), _small(2048 * 64), K=2048, N=2048, bits=8, block_size=32, accuracy_level=4, **_ms)
probe("matmul_nf4", "MatMulBnb4", (1, 2048), _codes(2048 * 1024), np.abs(_small(2048 * 32)), K=2048, N=2048, block_size=64, quant_type=1, **_ms)
probe("moe", "MoE", (16, 512), _small(16, 8), _small(8, 2048, 512), _small(8, 2048), _small(8, 512, 1024), k=2, normalize_routing_weights=1, activation_type="swiglu", swiglu_fusion=1, **_ms)
probe("qmoe", "QMoE", (1, 1024), _small(1, 16), _codes(16, 2048, 512), np.abs(_small(16, 2048, 32)), _small(16, 2048), _codes(16, 1024, 512), np.abs(_small(16, 1024, 32)), k=4, block_size=32, normalize_routing_weights=1, activation_type="swiglu", swiglu_fusion=1, **_ms)
probe("ms_group_norm", "GroupNorm", (1, 32, 32, 320), _small(320), _small(320), groups=32, activation=1, **_ms)
probe("ms_attention_past", "Attention", (1, 1, 768), _small(768, 2304), _small(2304), None, _small(2, 1, 12, 128, 64), num_heads=12, unidirectional=1, outputs=2, **_ms)
probe("fused_gemm", "FusedGemm", (64, 512), _small(512, 512), _small(512), transB=1, activation="Relu", **_ms)
probe("ms_cross_attention", "MultiHeadAttention", (1, 1, 768), _small(1, 12, 1500, 64), _small(1, 12, 1500, 64), num_heads=12, **_ms)
probe("linear_attention", "LinearAttention", (1, 64, 2048), _small(1, 64, 2048), _small(1, 64, 2048), _small(1, 16, 128, 128), -np.abs(_small(1, 64, 16)), np.abs(_small(1, 64, 16)), q_num_heads=16, kv_num_heads=16, outputs=2, **_ms)
probe("causal_conv", "CausalConvWithState", (1, 2048, 256), _small(2048, 1, 4), _small(2048), _small(1, 2048, 3), activation="silu", outputs=2, **_ms)
probe("sparse_attention", "SparseAttention", (1, 1, 2048), _small(1, 1, 512), _small(1, 1, 512), _small(1, 8, 1024, 64), _small(1, 8, 1024, 64), np.arange(17, dtype=np.int32)[None], np.arange(16, dtype=np.int32)[None], np.array([600], np.int32), np.array([600], np.int32), num_heads=32, kv_num_heads=8, sparse_block_size=64, outputs=3, **_ms)
probe("cdist", "CDist", (64, 30), _small(2000, 30), metric="euclidean", **_ms)
probe("cdist_f64", "CDist", (64, 30), _small(2000, 30).astype(np.float64), metric="euclidean", x_type=np.float64, out_type=np.float64, **_ms)
probe("inverse", "Inverse", (256, 16, 16), **_ms)
probe("rfft", "Rfft", (64, 1024), signal_ndim=1, **_ms)
probe("irfft", "Irfft", (64, 513, 2), signal_ndim=1, **_ms)
probe("crop_and_resize", "CropAndResize", (1, 64, 32, 32), _boxes, np.zeros(50, np.int32), np.array([14, 14], np.int32), **_ms)
probe("max_roi_pool", "MaxRoiPool", (1, 256, 32, 32), np.concatenate([np.zeros((50, 1), np.float32), _boxes * 500], 1), pooled_shape=[7, 7], spatial_scale=0.0625)
_cache = [_small(1, 8, 1024, 64), _small(1, 8, 1024, 64), np.array([600], np.int32), np.array(601, np.int32)]
_turns = [_small(2048, 32), _small(2048, 32)]
_gqa = dict(num_heads=32, kv_num_heads=8, do_rotary=1, outputs=3, **_ms)
probe("group_query_packed", "GroupQueryAttention", (1, 1, 3072), None, None, *_cache, *_turns, **_gqa)
probe("group_query_window", "GroupQueryAttention", (1, 1, 3072), None, None, *_cache, *_turns, local_window_size=256, **_gqa)
probe("group_query_sinks", "GroupQueryAttention", (1, 1, 3072), None, None, *_cache, *_turns, None, None, _small(32), **_gqa)
probe("decoder_masked_attention", "DecoderMaskedMultiHeadAttention", (4, 1, 768), _small(4, 1, 768), _small(4, 1, 768), None, None, _small(4, 12, 256, 64), _small(4, 12, 256, 64),
      np.array([128], np.int32), np.array([4], np.int32), _codes(1, 4, 256).astype(np.int32) % 4, num_heads=12, past_present_share_buffer=1, outputs=3, **_ms)
probe("matmul_4bits_any_order", "MatMulNBits", (64, 1024), _codes(1024, 32, 16), _small(1024 * 32), None, _more.permutation(np.repeat(np.arange(32), 32)).astype(np.int32), K=1024, N=1024, bits=4, block_size=32, **_ms)
probe("embed_layer_norm", "EmbedLayerNormalization", (1, 128), np.zeros((1, 128), np.int32), _small(1000, 768), _small(512, 768), _small(2, 768), _small(768), _small(768), x_type=np.int32, outputs=2, **_ms)
probe("word_conv_embedding", "WordConvEmbedding", (32, 20), _small(100, 1, 3, 50), _small(100), _small(200, 50), x_type=np.int32, **_ms)
probe("qlinear_add_channels", "QLinearAdd", (1, 64, 56, 56), *_steps(0.02, 3), _codes(1, 64, 1, 1), *_steps(0.03, 5), *_steps(0.04, 7), **_bytes, **_ms)
probe("lstm_hard_sigmoid", "LSTM", (20, 1, 64), _small(1, 1024, 64), _small(1, 1024, 256), hidden_size=256, activations=["HardSigmoid", "Tanh", "Tanh"], outputs=2)
probe("lstm_peepholes", "LSTM", (20, 1, 64), _small(1, 1024, 64), _small(1, 1024, 256), None, None, None, None, _small(1, 768), hidden_size=256, outputs=2)
probe("lstm_lengths", "LSTM", (30, 4, 64), _small(1, 256, 64), _small(1, 256, 64), _small(1, 512), np.array([30, 20, 10, 5], np.int32), hidden_size=64, outputs=2)
probe("dequantize_blocks", "DequantizeLinear", (512, 1024), np.abs(_small(512, 32)), _codes(512, 32), opset=21, x_type=np.uint8, axis=1, block_size=32)
probe("gather_elements_i64", "GatherElements", (512, 512), _codes(512, 256).astype(np.int64), x_type=np.int64, out_type=np.int64, axis=1)
probe("resize_nearest_any", "Resize", (1, 32, 100, 100), None, np.array([1, 1, 1.37, 1.37], np.float32), mode="nearest")
probe("reduce_max_short", "ReduceMax", (30000, 3), np.array([1]), keepdims=0)
probe("mean_broadcast", "Mean", SHEET, _small(SHEET[1]), _small(SHEET[0], 1))
probe("topk_unsorted", "TopK", (1, 100000), np.array([10000]), sorted=0)
probe("topk_many_i64", "TopK", (1, 100000), np.array([10000]), x_type=np.int64, out_type=np.int64)
probe("lp_norm_short", "LpNormalization", (60000, 3), axis=-1)
probe("mod_f64", "Mod", SHEET, np.full(SHEET, 1.5), fmod=1, **_f64)
probe("pow_i64_each", "Pow", (512, 512), _codes(512, 512).astype(np.int64) % 9, **_i64)
probe("sign_f16", "Sign", SHEET, **_f16)
probe("slice_step_bytes", "Slice", (2048, 1024), np.array([-1]), np.array([-2**31]), np.array([1]), np.array([-3]), x_type=np.uint8, out_type=np.uint8)
probe("cross_entropy_f64", "SoftmaxCrossEntropyLoss", (256, 100), _more.integers(0, 100, 256), **_f64)
probe("cumsum_reverse", "CumSum", (512, 64, 64), np.array(1), reverse=1)
probe("multinomial", "Multinomial", (64, 1000), out_type=np.int32)
probe("scatter_nd_max", "ScatterND", (65536,), _more.permutation(65536)[:32768, None], _small(32768), reduction="max")
probe("max_pool_40", "MaxPool", (1, 64, 40, 40), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
probe("pad_reflect_long", "Pad", (1, 1, 160000), np.array([0, 0, 200, 0, 0, 200]), mode="reflect")


# ---- quantised by onnxruntime's own tools, from the float models beside them

# The float model, and the type of activations.
QUANTISED = {"resnet50_qdq": ("resnet50", "QUInt8"), "resnet50_qdq_s8": ("resnet50", "QInt8"), "mobilenet_v2_qdq": ("mobilenet_v2", "QUInt8"),
             "mobilenet_v2_qdq_s8": ("mobilenet_v2", "QInt8"), "bert_base_int8": ("bert_base", None),
             "efficientnet_b0_qdq": ("efficientnet_b0", "QUInt8"), "yolo_v8_qdq": ("yolo_v8", "QUInt8"), "unet_qdq": ("unet", "QUInt8"),
             "wav2vec2_features_qdq": ("wav2vec2_features", "QUInt8"), "vit_b16_qdq": ("vit_b16", "QInt8"), "crnn_int8": ("crnn", None),
             "conformer_int8": ("conformer", None), "t5_encoder_int8": ("t5_encoder", None), "resnet50_int8": ("resnet50", None),
             "hifi_gan_int8": ("hifi_gan", None), "unet_3d_qdq": ("unet_3d", "QUInt8")}


def quantised(name, folder):
    from onnxruntime import quantization as q
    source = os.path.join(folder, QUANTISED[name][0] + ".onnx")
    target = os.path.join(folder, name + ".onnx")
    if QUANTISED[name][1] is None:
        q.quantize_dynamic(source, target)
        return

    inputs = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(source, load_external_data=False).graph.input}

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            rng = np.random.default_rng(3)
            self.left = [{name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()} for _ in range(2)]

        def get_next(self):
            return self.left.pop() if self.left else None

    folded = os.path.join(folder, name + ".folded.onnx")
    q.shape_inference.quant_pre_process(source, folded, skip_symbolic_shape=True)
    q.quantize_static(folded, target, Reader(), quant_format=q.QuantFormat.QDQ, per_channel=True, activation_type=q.QuantType[QUANTISED[name][1]], weight_type=q.QuantType.QInt8)
    os.remove(folded)


def make(folder, names=None):
    """Makes what is not there yet; gives the paths by name."""
    os.makedirs(folder, exist_ok=True)
    wanted = names or [*MAKERS, *QUANTISED]
    for name in [QUANTISED[n][0] for n in wanted if n in QUANTISED] + [n for n in wanted]:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        if name in QUANTISED:
            quantised(name, folder)
        else:
            net, result = MAKERS[name](name)
            net.save(folder, result)
    return {n: os.path.join(folder, n + ".onnx") for n in wanted}


# More of them register themselves.
import sequence_models  # noqa: E402,F401
import vision_models  # noqa: E402,F401

if __name__ == "__main__":
    for name, path in make(sys.argv[1], sys.argv[2:]).items():
        print(name, os.path.getsize(path))
