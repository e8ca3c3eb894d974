"""More transformers, with everything spelled out as exporters write it."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

from net import Net, model


def split_heads_attention(n, x, width, heads, scale_first=False):
    """The packed projection of timm: one product for q, k, v, taken apart by Gather or Split."""
    depth = width // heads
    tokens = n.op("Reshape", n.linear(x, width, 3 * width), n.ints(0, -1, 3, heads, depth))
    qkv = n.op("Transpose", tokens, perm=[2, 0, 3, 1, 4])
    return [n.op("Gather", qkv, n.constant(np.array(i, np.int64)), axis=0) for i in range(3)]


@model
def swin_t(name):
    """Windows by Reshape and Transpose, shifted ones by Slice and Concat (roll), biases of relative positions."""
    n = Net(name)
    x = n.conv(n.input("x", [1, 3, 224, 224]), 96, 4, 4, p=0)
    x = n.op("Transpose", x, perm=[0, 2, 3, 1])
    width, size, window = 96, 56, 7
    x = n.layer_norm(x, width)
    position = np.stack(np.meshgrid(np.arange(7), np.arange(7), indexing="ij")).reshape(2, -1)
    relative = position[:, :, None] - position[:, None, :] + 6
    index = relative[0] * 13 + relative[1]

    def roll(y, by):
        size_of = {-3: (3, 1 << 60), 3: (-3, 1 << 60)}[by]
        for axis in (1, 2):
            first = n.op("Slice", y, n.ints(size_of[0]), n.ints(size_of[1]), n.ints(axis))
            second = n.op("Slice", y, n.ints(0), n.ints(size_of[0]), n.ints(axis))
            y = n.op("Concat", first, second, axis=axis)
        return y

    def block(x, width, size, shift):
        heads, windows = width // 32, size // window
        y = n.layer_norm(x, width)
        if shift:
            y = roll(y, -3)
        y = n.op("Reshape", y, n.ints(1, windows, window, windows, window, width))
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), n.ints(windows * windows, 49, width))
        q, k, v = split_heads_attention(n, y, width, heads)
        q = n.op("Mul", q, n.scalar(32 ** -0.5))
        scores = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
        table = n.rng.standard_normal((169, heads)).astype(np.float32) * 0.02
        scores = n.op("Add", scores, n.constant(table[index].transpose(2, 0, 1)[None].copy()))
        if shift:
            region = np.zeros((size, size), np.int64)
            for i, a in enumerate((slice(0, -7), slice(-7, -3), slice(-3, None))):
                for j, b in enumerate((slice(0, -7), slice(-7, -3), slice(-3, None))):
                    region[a, b] = 3 * i + j
            region = region.reshape(windows, 7, windows, 7).transpose(0, 2, 1, 3).reshape(-1, 49)
            mask = np.where(region[:, None, :] != region[:, :, None], -100.0, 0.0).astype(np.float32)
            scores = n.op("Reshape", scores, n.ints(1, windows * windows, heads, 49, 49))
            scores = n.op("Add", scores, n.constant(mask[None, :, None]))
            scores = n.op("Reshape", scores, n.ints(-1, heads, 49, 49))
        y = n.op("MatMul", n.op("Softmax", scores, axis=-1), v)
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(windows * windows, 49, width))
        y = n.linear(y, width, width)
        y = n.op("Reshape", y, n.ints(1, windows, windows, window, window, width))
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), n.ints(1, size, size, width))
        if shift:
            y = roll(y, 3)
        x = n.op("Add", x, y)
        y = n.linear(n.gelu(n.linear(n.layer_norm(x, width), width, 4 * width)), 4 * width, width)
        return n.op("Add", x, y)

    for stage, times in enumerate((2, 2, 6, 2)):
        if stage:
            parts = []
            for column, row in ((0, 0), (0, 1), (1, 0), (1, 1)):
                parts.append(n.op("Slice", x, n.ints(row, column), n.ints(1 << 60, 1 << 60), n.ints(1, 2), n.ints(2, 2)))
            x = n.layer_norm(n.op("Concat", *parts, axis=-1), 4 * width)
            x = n.op("MatMul", x, n.weight(4 * width, 2 * width, fan=4 * width))
            width, size = 2 * width, size // 2
        for i in range(times):
            x = block(x, width, size, i % 2 == 1 and size > window)
    x = n.op("ReduceMean", n.layer_norm(x, width), axes=[1, 2], keepdims=0)
    return n, n.dense(x, 1000, width)


@model
def whisper_encoder(name):
    """The encoder of the tiny size: one-dimensional convolutions, 1,500 steps."""
    n = Net(name)
    width = 384

    def conv1d(y, cin, s):
        w = n.weight(width, cin, 3)
        return n.gelu(n.op("Conv", y, w, n.constant(np.zeros(width, np.float32)), kernel_shape=[3], strides=[s], pads=[1, 1]))

    x = conv1d(conv1d(n.input("x", [1, 80, 3000]), 80, 1), width, 2)
    x = n.op("Add", n.op("Transpose", x, perm=[0, 2, 1]), n.weight(1500, width, fan=4 * width))
    for _ in range(4):
        y = n.layer_norm(x, width)
        q = n.heads(n.op("Mul", n.linear(y, width, width), n.scalar(0.125)), 6, 64)
        k = n.heads(n.op("MatMul", y, n.weight(width, width)), 6, 64)
        v = n.heads(n.linear(y, width, width), 6, 64)
        y = n.op("Softmax", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", y, v), perm=[0, 2, 1, 3]), n.ints(0, -1, width))
        x = n.op("Add", x, n.linear(y, width, width))
        y = n.linear(n.gelu(n.linear(n.layer_norm(x, width), width, 4 * width)), 4 * width, width)
        x = n.op("Add", x, y)
    return n, n.layer_norm(x, width)


@model
def llama_decode(name):
    """Four layers of a small Llama with all spelled out as PyTorch's exporter writes it: RMSNorm, rotation,
    grouped heads by Expand, a mask, SiLU; the cache grows by Concat."""
    n = Net(name)
    width, heads, kv, hidden, vocabulary, depth = 2048, 32, 4, 5632, 32000, 64
    matmul = lambda x, k, m: n.op("MatMul", x, n.weight(k, m, fan=k))

    def norm(x):
        mean = n.op("ReduceMean", n.op("Pow", x, n.scalar(2)), axes=[-1], keepdims=1)
        y = n.op("Mul", x, n.op("Div", n.scalar(1), n.op("Sqrt", n.op("Add", mean, n.scalar(1e-5)))))
        return n.op("Mul", n.constant(np.ones(width, np.float32)), y)

    def rotate(x, cos, sin):
        first = n.op("Slice", x, n.ints(0), n.ints(depth // 2), n.ints(3))
        second = n.op("Slice", x, n.ints(depth // 2), n.ints(1 << 60), n.ints(3))
        turned = n.op("Concat", n.op("Neg", second), first, axis=-1)
        return n.op("Add", n.op("Mul", x, cos), n.op("Mul", turned, sin))

    ids = n.input("input_ids", [1, "new"], np.int64)
    positions = n.input("position_ids", [1, "new"], np.int64)
    mask = n.input("mask", [1, 1, "new", "all"])
    frequencies = n.constant((10000.0 ** (-np.arange(32) / 32.0)).astype(np.float32).reshape(1, 32, 1))
    p = n.op("Cast", n.op("Unsqueeze", positions, n.ints(1)), to=T.FLOAT)
    angles = n.op("Transpose", n.op("MatMul", frequencies, p), perm=[0, 2, 1])
    angles = n.op("Concat", angles, angles, axis=-1)
    cos, sin = (n.op("Unsqueeze", n.op(kind, angles), n.ints(1)) for kind in ("Cos", "Sin"))
    x = n.op("Gather", n.weight(vocabulary, width, fan=2 * width), ids)

    def expand(y):
        """Each head of keys for eight of queries."""
        shape = n.op("Shape", y)
        part = lambda i: n.op("Unsqueeze", n.op("Gather", shape, n.constant(np.array(i, np.int64))), n.ints(0))
        wide = n.op("Concat", part(0), part(1), n.ints(heads // kv), part(2), part(3), axis=0)
        y = n.op("Expand", n.op("Unsqueeze", y, n.ints(2)), wide)
        return n.op("Reshape", y, n.op("Concat", part(0), n.ints(heads), part(2), part(3), axis=0))

    for layer in range(4):
        a = norm(x)
        q = rotate(n.heads(matmul(a, width, width), heads, depth), cos, sin)
        k = rotate(n.heads(matmul(a, width, kv * depth), kv, depth), cos, sin)
        v = n.heads(matmul(a, width, kv * depth), kv, depth)
        joined = []
        for kind, now in (("key", k), ("value", v)):
            past = n.input(f"past_{layer}_{kind}", [1, kv, "past", depth])
            now = n.op("Concat", past, now, axis=2)
            out = f"present_{layer}_{kind}"
            n.nodes.append(h.make_node("Identity", [now], [out], out))
            n.output(out)
            joined.append(expand(now))
        scores = n.op("MatMul", q, n.op("Transpose", joined[0], perm=[0, 1, 3, 2]))
        scores = n.op("Add", n.op("Div", scores, n.scalar(8)), mask)
        y = n.op("MatMul", n.op("Softmax", scores, axis=-1), joined[1])
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(0, -1, width))
        x = n.op("Add", x, matmul(y, width, width))
        a = norm(x)
        gate = matmul(a, width, hidden)
        gate = n.op("Mul", gate, n.op("Sigmoid", gate))
        x = n.op("Add", x, matmul(n.op("Mul", gate, matmul(a, width, hidden)), hidden, width))
    return n, matmul(norm(x), width, vocabulary)


def conv_line(n, x, cin, out, k, s=1, dilation=1, pads=None, bias=True):
    pads = [(k - 1) * dilation // 2] * 2 if pads is None else pads
    b = [n.constant((n.rng.standard_normal(out) * 0.1).astype(np.float32))] if bias else []
    return n.op("Conv", x, n.weight(out, cin, k, fan=2 * cin * k), *b, kernel_shape=[k], strides=[s], dilations=[dilation], pads=pads)


@model
def hifi_gan(name):
    """A vocoder (Kong et al. 2020, its smaller second version, of text-to-speech voices): 96 frames of 80 mel bands to 24,576 samples."""
    n = Net(name)
    width = 128
    x = conv_line(n, n.input("mel", [1, 80, 96]), 80, width, 7)
    for rate, k in ((8, 16), (8, 16), (2, 4), (2, 4)):
        x = n.op("LeakyRelu", x, alpha=0.1)
        w = n.weight(width, width // 2, k, fan=2 * width * k // rate)
        x = n.op("ConvTranspose", x, w, n.constant(np.zeros(width // 2, np.float32)), kernel_shape=[k], strides=[rate], pads=[(k - rate) // 2] * 2)
        width //= 2
        blocks = []
        for kernel in (3, 7, 11):
            y = x
            for dilation in (1, 3, 5):
                z = conv_line(n, n.op("LeakyRelu", y, alpha=0.1), width, width, kernel, dilation=dilation)
                z = conv_line(n, n.op("LeakyRelu", z, alpha=0.1), width, width, kernel)
                y = n.op("Add", z, y)
            blocks.append(y)
        x = n.op("Div", n.op("Add", n.op("Add", blocks[0], blocks[1]), blocks[2]), n.scalar(3))
    return n, n.op("Tanh", conv_line(n, n.op("LeakyRelu", x), width, 1, 7))


@model
def wav2vec2_features(name):
    """The convolutions of wav2vec 2.0 (Baevski et al. 2020) on a second of sound."""
    n = Net(name)
    x = conv_line(n, n.input("sound", [1, 1, 16000]), 1, 512, 10, 5, pads=[0, 0], bias=False)
    y = n.op("Reshape", x, n.ints(0, 512, -1))
    y = n.op("InstanceNormalization", y, n.constant(np.ones(512, np.float32)), n.constant(np.zeros(512, np.float32)))
    x = n.gelu(n.op("Reshape", y, n.op("Shape", x)))
    for k in (3, 3, 3, 3, 2, 2):
        x = n.gelu(conv_line(n, x, 512, 512, k, 2, pads=[0, 0], bias=False))
    return n, n.op("Transpose", x, perm=[0, 2, 1])


@model
def tcn(name):
    """Dilated convolutions along time with what they are added to (Bai et al. 2018), 400 steps of 64."""
    n = Net(name)
    x, width = n.input("x", [1, 64, 400]), 64
    for level in range(6):
        out, dilation = 150, 2**level
        y = x
        for cin in (width, out):
            y = conv_line(n, y, cin, out, 7, dilation=dilation, pads=[6 * dilation, 6 * dilation])
            y = n.op("Relu", n.op("Slice", y, n.ints(0), n.ints(-6 * dilation), n.ints(2), n.ints(1)))
        rest = x if width == out else conv_line(n, x, width, out, 1)
        x, width = n.op("Relu", n.op("Add", y, rest)), out
    last = n.op("Gather", x, n.constant(np.array(-1, np.int64)), axis=2)
    return n, n.dense(last, 10, width)


@model
def conformer(name):
    """Four blocks of a recogniser of speech (Gulati et al. 2020): feed forward, attention, convolutions of each channel along 200 frames."""
    n = Net(name)
    width, heads, frames = 256, 4, 200
    x = n.input("frames", [1, frames, width])

    def forward(x):
        y = n.linear(n.layer_norm(x, width), width, 4 * width)
        y = n.linear(n.activate(y, "swish"), 4 * width, width)
        return n.op("Add", x, n.op("Mul", y, n.scalar(0.5)))

    for _ in range(4):
        x = forward(x)
        x = n.op("Add", x, n.attention(n.layer_norm(x, width), width, heads)[0])
        y = n.op("Transpose", n.layer_norm(x, width), perm=[0, 2, 1])
        a, gate = n.op("Split", conv_line(n, y, width, 2 * width, 1), n.ints(width, width), axis=1, outputs=2)
        y = n.op("Mul", a, n.op("Sigmoid", gate))
        w = n.weight(width, 1, 31)
        y = n.op("Conv", y, w, n.constant(np.zeros(width, np.float32)), kernel_shape=[31], pads=[15, 15], group=width)
        y = n.op("BatchNormalization", y, *[n.constant(n.rng.uniform(0.8, 1.2, width).astype(np.float32)) for _ in range(4)])
        y = conv_line(n, n.activate(y, "swish"), width, width, 1)
        x = n.layer_norm(forward(n.op("Add", x, n.op("Transpose", y, perm=[0, 2, 1]))), width)
    return n, x


@model
def t5_encoder(name):
    """Six layers of T5 (Raffel et al. 2020, base), 128 tokens: norms without means, biases of relative positions."""
    n = Net(name)
    width, heads = 768, 12
    x = n.op("Gather", n.weight(8000, width, fan=width), n.input("ids", [1, 128], np.int64))

    def norm(x):
        y = n.op("ReduceMean", n.op("Pow", x, n.scalar(2)), axes=[-1])
        y = n.op("Div", x, n.op("Sqrt", n.op("Add", y, n.scalar(1e-6))))
        return n.op("Mul", y, n.constant(n.rng.uniform(0.5, 1.5, width).astype(np.float32)))

    matmul = lambda y, a, b: n.op("MatMul", y, n.weight(a, b, fan=a))
    distance = np.clip(np.arange(128)[None] - np.arange(128)[:, None], -15, 15) + 15
    bias = n.op("Gather", n.weight(31, heads, fan=heads), n.constant(distance.astype(np.int64)))
    bias = n.op("Unsqueeze", n.op("Transpose", bias, perm=[2, 0, 1]), n.ints(0))
    for _ in range(6):
        a = norm(x)
        q, v = (n.heads(matmul(a, width, width), heads, 64) for _ in range(2))
        k = n.heads(matmul(a, width, width), heads, 64, key=True)
        scores = n.op("Softmax", n.op("Add", n.op("MatMul", q, k), bias), axis=-1)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", scores, v), perm=[0, 2, 1, 3]), n.ints(0, -1, width))
        x = n.op("Add", x, matmul(y, width, width))
        x = n.op("Add", x, matmul(n.op("Relu", matmul(norm(x), width, 3072)), 3072, width))
    return n, norm(x)


@model
def deberta(name):
    """Four layers with attention to content and to positions apart (He et al. 2021), 96 tokens."""
    n = Net(name)
    width, heads, length = 768, 12, 96
    x = n.op("Gather", n.weight(8000, width, fan=width), n.input("ids", [1, length], np.int64))
    table = n.weight(2 * length, width, fan=width)
    distance = np.arange(length)[:, None] - np.arange(length)[None] + length
    index = n.constant(np.broadcast_to(distance, (1, heads, length, length)).astype(np.int64))
    for _ in range(4):
        q, v = (n.heads(n.linear(x, width, width), heads, 64) for _ in range(2))
        k = n.heads(n.linear(x, width, width), heads, 64)
        places = n.op("Unsqueeze", table, n.ints(0))
        pk, pq = (n.heads(n.linear(places, width, width), heads, 64, key=True) for _ in range(2))
        scale = n.scalar((3 * 64) ** 0.5)
        scores = n.op("MatMul", q, n.op("Div", n.op("Transpose", k, perm=[0, 1, 3, 2]), scale))
        c2p = n.op("GatherElements", n.op("MatMul", q, n.op("Div", pk, scale)), index, axis=3)
        p2c = n.op("GatherElements", n.op("MatMul", k, n.op("Div", pq, scale)), index, axis=3)
        scores = n.op("Add", n.op("Add", scores, c2p), n.op("Transpose", p2c, perm=[0, 1, 3, 2]))
        y = n.op("Transpose", n.op("MatMul", n.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = n.linear(n.op("Reshape", y, n.ints(0, -1, width)), width, width)
        x = n.layer_norm(n.op("Add", x, y), width)
        y = n.linear(n.gelu(n.linear(x, width, 3072)), 3072, width)
        x = n.layer_norm(n.op("Add", x, y), width)
    return n, x


@model
def dlrm(name):
    """Recommends (Naumov et al. 2019): 26 tables, products of all pairs, 128 rows at a time."""
    n = Net(name)
    dense, ids = n.input("dense", [128, 13]), n.input("ids", [128, 26], np.int64)
    x = n.dense(n.dense(n.dense(dense, 512, 13, "relu"), 256, 512, "relu"), 64, 256, "relu")
    rows = [n.op("Unsqueeze", x, n.ints(1))]
    for i in range(26):
        column = n.op("Gather", ids, n.constant(np.array(i, np.int64)), axis=1)
        rows.append(n.op("Unsqueeze", n.op("Gather", n.weight(2000, 64, fan=64), column), n.ints(1)))
    t = n.op("Concat", *rows, axis=1)
    z = n.op("MatMul", t, n.op("Transpose", t, perm=[0, 2, 1]))
    i, j = np.tril_indices(27, -1)
    z = n.op("Gather", n.op("Reshape", z, n.ints(0, 729)), n.constant((i * 27 + j).astype(np.int64)), axis=1)
    y = n.op("Concat", x, z, axis=1)
    y = n.dense(n.dense(n.dense(y, 512, 64 + 351, "relu"), 256, 512, "relu"), 1, 256)
    return n, n.op("Sigmoid", y)


@model
def wavenet(name):
    """Gated dilated convolutions with what they leave for the end (van den Oord et al. 2016), 2,000 samples."""
    n = Net(name)
    x, total = conv_line(n, n.input("x", [1, 1, 2000]), 1, 64, 1), None
    for layer in range(10):
        d = 2**layer
        y = n.op("Pad", x, n.ints(0, 0, d, 0, 0, 0))
        y = conv_line(n, y, 64, 128, 2, dilation=d, pads=[0, 0])
        a, b = n.op("Split", y, n.ints(64, 64), axis=1, outputs=2)
        y = n.op("Mul", n.op("Tanh", a), n.op("Sigmoid", b))
        skip = conv_line(n, y, 64, 128, 1)
        total = skip if total is None else n.op("Add", total, skip)
        x = n.op("Add", x, conv_line(n, y, 64, 64, 1))
    y = conv_line(n, n.op("Relu", total), 128, 128, 1)
    return n, conv_line(n, n.op("Relu", y), 128, 256, 1)


@model
def graph_sage(name):
    """Two layers of means of neighbours by ScatterElements (Hamilton et al. 2017): 2,000 nodes, 12,000 edges."""
    n = Net(name)
    x, source, target = n.input("x", [2000, 128]), n.input("source", [12000], np.int64), n.input("target", [12000], np.int64)
    for width, out in ((128, 128), (128, 64)):
        rows = n.op("Gather", x, source, axis=0)
        index = n.op("Expand", n.op("Unsqueeze", target, n.ints(1)), n.ints(12000, width))
        total = n.op("ScatterElements", n.constant(np.zeros((2000, width), np.float32)), index, rows, axis=0, reduction="add")
        x = n.op("Relu", n.op("Add", n.linear(n.op("Mul", total, n.scalar(1 / 6)), width, out), n.op("MatMul", x, n.weight(width, out, fan=width))))
    return n, n.op("LogSoftmax", n.linear(x, 64, 7), axis=1)


@model
def decoder_cross(name):
    """One step of a translator's decoder (Vaswani et al. 2017, base): 40 tokens before, 30 of the source."""
    n = Net(name)
    width, heads = 512, 8
    x, source = n.input("x", [1, 1, width]), [(n.input(f"k{i}", [1, heads, 64, 30]), n.input(f"v{i}", [1, heads, 30, 64])) for i in range(6)]
    past = [(n.input(f"pk{i}", [1, heads, 40, 64]), n.input(f"pv{i}", [1, heads, 40, 64])) for i in range(6)]
    head = lambda y: n.heads(n.linear(y, width, width), heads, 64)
    for i in range(6):
        k, v = n.op("Concat", past[i][0], head(x), axis=2), n.op("Concat", past[i][1], head(x), axis=2)
        for keys, values in ((n.op("Transpose", k, perm=[0, 1, 3, 2]), v), source[i]):
            s = n.op("Softmax", n.op("Div", n.op("MatMul", head(x), keys), n.scalar(8)), axis=-1)
            y = n.op("Reshape", n.op("Transpose", n.op("MatMul", s, values), perm=[0, 2, 1, 3]), n.ints(0, -1, width))
            x = n.layer_norm(n.op("Add", x, n.linear(y, width, width)), width)
        x = n.layer_norm(n.op("Add", x, n.linear(n.op("Relu", n.linear(x, width, 2048)), 2048, width)), width)
    return n, n.op("MatMul", x, n.weight(width, 8000, fan=width))
