"""More networks for images, in the forms that exporters write."""
import numpy as np

from net import Net, model


@model
def inception_v3(name):
    n = Net(name)
    c = lambda y, w, k=1, s=1, p=None: n.activate(n.conv(y, w, k, s, p), "relu")
    average = lambda y: n.like("AveragePool", y, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    x = n.max_pool(c(c(c(n.input("x", [1, 3, 299, 299]), 32, 3, 2, 0), 32, 3, 1, 0), 64, 3), 3, 2, 0)
    x = n.max_pool(c(c(x, 80), 192, 3, 1, 0), 3, 2, 0)
    for width in (32, 64, 64):
        x = n.concat(c(x, 64), c(c(x, 48), 64, 5), c(c(c(x, 64), 96, 3), 96, 3), c(average(x), width))
    x = n.concat(c(x, 384, 3, 2, 0), c(c(c(x, 64), 96, 3), 96, 3, 2, 0), n.max_pool(x, 3, 2, 0))
    for w in (128, 160, 160, 192):
        a = c(c(c(x, w), w, (1, 7)), 192, (7, 1))
        b = c(c(c(c(c(x, w), w, (7, 1)), w, (1, 7)), w, (7, 1)), 192, (1, 7))
        x = n.concat(c(x, 192), a, b, c(average(x), 192))
    a = c(c(c(c(x, 192), 192, (1, 7)), 192, (7, 1)), 192, 3, 2, 0)
    x = n.concat(c(c(x, 192), 320, 3, 2, 0), a, n.max_pool(x, 3, 2, 0))
    for _ in range(2):
        a, b = c(x, 384), c(c(x, 448), 384, 3)
        x = n.concat(c(x, 320), n.concat(c(a, 384, (1, 3)), c(a, 384, (3, 1))), n.concat(c(b, 384, (1, 3)), c(b, 384, (3, 1))), c(average(x), 192))
    return n, n.head(x)


@model
def googlenet(name):
    """Batch normalisation folded, no LRN: what torchvision gives."""
    n = Net(name)
    c = lambda y, w, k=1, s=1: n.conv(y, w, k, s, act="relu")
    pool = lambda y, k, s, p: n.like("MaxPool", y, kernel_shape=[k, k], strides=[s, s], pads=[p] * 4, ceil_mode=1)
    x = pool(c(n.input("x", [1, 3, 224, 224]), 64, 7, 2), 3, 2, 0)
    x = pool(c(c(x, 64), 192, 3), 3, 2, 0)
    rows = ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), 3, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
            (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), 2,
            (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))
    for row in rows:
        if isinstance(row, int):
            x = pool(x, row, 2, 0)
            continue
        a, b1, b3, c1, c3, d = row
        x = n.concat(c(x, a), c(c(x, b1), b3, 3), c(c(x, c1), c3, 3), c(pool(x, 3, 1, 1), d))
    return n, n.head(x)


def shuffle(n, x, groups, size):
    """Channel shuffle as PyTorch's exporter writes it."""
    c = n.channels[x]
    y = n.op("Reshape", x, n.ints(1, groups, c // groups, size, size))
    y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3, 4]), n.ints(1, c, size, size))
    n.channels[y] = c
    return y


@model
def shufflenet_v2(name):
    n = Net(name)
    x = n.max_pool(n.conv(n.input("x", [1, 3, 224, 224]), 24, 3, 2, act="relu"))
    size = 56

    def branch(y, w, s):
        y = n.conv(n.conv(y, w, 1, act="relu"), w, 3, s, groups=w)
        return n.conv(y, w, 1, act="relu")

    for out, times in ((116, 4), (232, 8), (464, 4)):
        for i in range(times):
            half = out // 2
            if i == 0:
                a = n.conv(n.conv(x, n.channels[x], 3, 2, groups=n.channels[x]), half, 1, act="relu")
                b = branch(x, half, 2)
                size //= 2
            else:
                a, y = n.op("Split", x, n.ints(half, half), outputs=2, axis=1)
                n.channels[a] = n.channels[y] = half
                b = branch(y, half, 1)
            x = shuffle(n, n.concat(a, b), 2, size)
    x = n.conv(x, 1024, 1, act="relu")
    y = n.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    return n, n.dense(y, 1000, 1024)


@model
def yolo_v8(name):
    """A detector of YOLOv8's shape (n): split bottlenecks, pyramid pooling, decoded boxes."""
    n = Net(name)
    c = lambda y, w, k=1, s=1: n.conv(y, w, k, s, act="swish")

    def split_block(x, w, times, add):
        y = c(x, w)
        a, b = n.op("Split", y, n.ints(w // 2, w // 2), outputs=2, axis=1)
        n.channels[a] = n.channels[b] = w // 2
        parts = [a, b]
        for _ in range(times):
            y = c(c(parts[-1], w // 2, 3), w // 2, 3)
            parts.append(n.like("Add", parts[-1], y) if add else y)
        return c(n.concat(*parts), w)

    up = lambda y: n.like("Resize", y, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                          coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = c(c(n.input("images", [1, 3, 640, 640]), 16, 3, 2), 32, 3, 2)
    x = split_block(x, 32, 1, True)
    p3 = split_block(c(x, 64, 3, 2), 64, 2, True)
    p4 = split_block(c(p3, 128, 3, 2), 128, 2, True)
    x = split_block(c(p4, 256, 3, 2), 256, 1, True)
    y = [c(x, 128)]
    for _ in range(3):
        y.append(n.max_pool(y[-1], 5, 1, 2))
    p5 = c(n.concat(*y), 256)
    n4 = split_block(n.concat(up(p5), p4), 128, 1, False)
    n3 = split_block(n.concat(up(n4), p3), 64, 1, False)
    n4 = split_block(n.concat(c(n3, 64, 3, 2), n4), 128, 1, False)
    n5 = split_block(n.concat(c(n4, 128, 3, 2), p5), 256, 1, False)
    outs, anchors, strides = [], [], []
    for feature, size in ((n3, 80), (n4, 40), (n5, 20)):
        box = n.conv(c(c(feature, 64, 3), 64, 3), 64, 1)
        score = n.conv(c(c(feature, 80, 3), 80, 3), 80, 1)
        outs.append(n.op("Reshape", n.concat(box, score), n.ints(1, 144, -1)))
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), 0).reshape(2, -1) + 0.5
        anchors.append(grid)
        strides.append(np.full((1, size * size), 640 / size))
    x = n.op("Concat", *outs, axis=2)
    box, score = n.op("Split", x, n.ints(64, 80), outputs=2, axis=1)
    box = n.op("Transpose", n.op("Reshape", box, n.ints(1, 4, 16, 8400)), perm=[0, 2, 1, 3])
    box = n.op("Softmax", box, axis=1)
    n.channels[box] = 16
    w = n.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    box = n.op("Reshape", n.op("Conv", box, w), n.ints(1, 4, 8400))
    lt, rb = n.op("Split", box, n.ints(2, 2), outputs=2, axis=1)
    where = n.constant(np.concatenate(anchors, 1)[None].astype(np.float32))
    a, b = n.op("Sub", where, lt), n.op("Add", where, rb)
    boxes = n.op("Concat", n.op("Div", n.op("Add", a, b), n.scalar(2)), n.op("Sub", b, a), axis=1)
    boxes = n.op("Mul", boxes, n.constant(np.concatenate(strides, 1)[None].astype(np.float32)))
    return n, n.op("Concat", boxes, n.op("Sigmoid", score), axis=1)


def group_norm(n, x, groups=32):
    """As PyTorch's exporter wrote it before the operator existed."""
    c = n.channels[x]
    y = n.op("Reshape", x, n.ints(0, groups, -1))
    y = n.op("InstanceNormalization", y, n.constant(np.ones(groups, np.float32)), n.constant(np.zeros(groups, np.float32)), epsilon=1e-5)
    y = n.op("Reshape", y, n.op("Shape", x))
    y = n.op("Add", n.op("Mul", y, n.constant(n.rng.uniform(0.8, 1.2, (c, 1, 1)).astype(np.float32))), n.constant(np.zeros((c, 1, 1), np.float32)))
    n.channels[y] = c
    return y


@model
def diffusion_unet(name):
    """Two levels of the network of latent diffusion (Rombach et al. 2022): norms over groups, time steps, attention over pixels and over text."""
    n = Net(name)
    x, text = n.input("latent", [1, 4, 32, 32]), n.input("text", [1, 77, 768])
    time = n.input("time", [1, 1280])

    def residual(x, out):
        y = n.conv(n.activate(group_norm(n, x), "swish"), out)
        shift = n.op("Unsqueeze", n.dense(n.activate(time, "swish"), out, 1280), n.ints(2, 3))
        y = n.like("Add", y, shift)
        y = n.conv(n.activate(group_norm(n, y), "swish"), out)
        return n.like("Add", y, x if n.channels[x] == out else n.conv(x, out, 1))

    def attend(q_from, k_from, width, k_width):
        heads, depth = 8, width // 8
        q = n.heads(n.op("MatMul", q_from, n.weight(width, width, fan=width)), heads, depth)
        k = n.heads(n.op("MatMul", k_from, n.weight(k_width, width, fan=k_width)), heads, depth, key=True)
        v = n.heads(n.op("MatMul", k_from, n.weight(k_width, width, fan=k_width)), heads, depth)
        scores = n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), n.scalar(depth**-0.5)), axis=-1)
        y = n.op("Transpose", n.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        return n.linear(n.op("Reshape", y, n.ints(0, -1, width)), width, width)

    def transformer(x, size):
        width = n.channels[x]
        y = n.conv(group_norm(n, x), width, 1)
        y = n.op("Transpose", n.op("Reshape", y, n.ints(0, width, -1)), perm=[0, 2, 1])
        a = n.layer_norm(y, width)
        y = n.op("Add", y, attend(a, a, width, width))
        y = n.op("Add", y, attend(n.layer_norm(y, width), text, width, 768))
        gate = n.linear(n.layer_norm(y, width), width, 8 * width)
        value, gate = n.op("Split", gate, n.ints(4 * width, 4 * width), axis=-1, outputs=2)
        y = n.op("Add", y, n.linear(n.op("Mul", value, n.gelu(gate)), 4 * width, width))
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1]), n.ints(0, width, size, size))
        n.channels[y] = width
        return n.like("Add", n.conv(y, width, 1), x)

    first = n.conv(x, 320)
    a = transformer(residual(first, 320), 32)
    b = transformer(residual(n.conv(a, 320, 3, 2), 640), 16)
    b = transformer(residual(n.concat(b, n.conv(a, 320, 3, 2)), 640), 16)
    up = n.like("Resize", b, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    c = transformer(residual(n.concat(n.conv(up, 640), a), 320), 32)
    return n, n.conv(n.activate(group_norm(n, c), "swish"), 4)


@model
def esrgan(name):
    """Super-resolution by dense blocks (Wang et al. 2018), 3 of its 23, four times an image of 64 x 64."""
    n = Net(name)
    leaky = lambda y: n.like("LeakyRelu", y, alpha=0.2)
    first = x = n.conv(n.input("x", [1, 3, 64, 64]), 64)
    for _ in range(3):
        outer = x
        for _ in range(3):
            parts = [x]
            for _ in range(4):
                parts.append(leaky(n.conv(n.concat(*parts) if len(parts) > 1 else x, 32)))
            y = n.conv(n.concat(*parts), 64)
            x = n.like("Add", n.like("Mul", y, n.scalar(0.2)), x)
        x = n.like("Add", n.like("Mul", x, n.scalar(0.2)), outer)
    x = n.like("Add", n.conv(x, 64), first)
    for _ in range(2):
        x = n.like("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        x = leaky(n.conv(x, 64))
    return n, n.conv(leaky(n.conv(x, 64)), 3)


@model
def convnext_tiny(name):
    """Convolutions of 7 x 7 of each channel, then channels last (Liu et al. 2022)."""
    n = Net(name)

    def turned(x, perm):
        y = n.op("Transpose", x, perm=perm)
        n.channels[y] = n.channels[x]
        return y

    def norm(x):
        y = n.layer_norm(turned(x, [0, 2, 3, 1]), n.channels[x])
        n.channels[y] = n.channels[x]
        return y

    x = turned(norm(n.conv(n.input("x", [1, 3, 224, 224]), 96, 4, 4, p=0)), [0, 3, 1, 2])
    for width, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width > 96:
            x = n.conv(turned(norm(x), [0, 3, 1, 2]), width, 2, 2, p=0)
        for _ in range(count):
            y = norm(n.conv(x, width, 7, groups=width))
            y = n.linear(n.gelu(n.linear(y, width, 4 * width)), 4 * width, width)
            y = n.op("Mul", y, n.constant(n.rng.uniform(0.5, 1, width).astype(np.float32)))
            n.channels[y] = width
            x = n.like("Add", x, turned(y, [0, 3, 1, 2]))
    y = n.layer_norm(n.op("Flatten", n.op("GlobalAveragePool", x)), 768)
    return n, n.dense(y, 1000, 768)


@model
def unet_3d(name):
    """A network of volumes (Isensee et al. 2021): convolutions along three axes, norms of instances, 32 x 64 x 64."""
    n = Net(name)

    def conv(x, cin, out, s=1):
        b = n.constant(np.zeros(out, np.float32))
        y = n.op("Conv", x, n.weight(out, cin, 3, 3, 3), b, kernel_shape=[3] * 3, strides=[s] * 3, pads=[1] * 6)
        y = n.op("InstanceNormalization", y, n.constant(n.rng.uniform(0.8, 1.2, out).astype(np.float32)), b, epsilon=1e-5)
        return n.op("LeakyRelu", y, alpha=0.01)

    x, cin, kept = n.input("x", [1, 1, 32, 64, 64]), 1, []
    for level, out in enumerate((32, 64, 128)):
        x = conv(conv(x, cin, out, 2 if level else 1), out, out)
        kept.append(x)
        cin = out
    for out, skip in ((64, kept[1]), (32, kept[0])):
        x = n.op("ConvTranspose", x, n.weight(cin, out, 2, 2, 2, fan=cin), kernel_shape=[2] * 3, strides=[2] * 3)
        x = conv(conv(n.op("Concat", x, skip, axis=1), 2 * out, out), out, out)
        cin = out
    return n, n.op("Conv", x, n.weight(3, cin, 1, 1, 1), kernel_shape=[1] * 3)


@model
def resnext50(name):
    """Groups of 4 to 32 channels (Xie et al. 2017, 32 x 4d)."""
    n = Net(name)
    c = lambda y, w, k=1, s=1, g=1: n.conv(y, w, k, s, groups=g)
    x = n.max_pool(n.activate(c(n.input("x", [1, 3, 224, 224]), 64, 7, 2), "relu"))
    for stage, count in enumerate((3, 4, 6, 3)):
        width, out = 128 << stage, 256 << stage
        for i in range(count):
            s = 2 if stage and i == 0 else 1
            y = n.activate(c(x, width), "relu")
            y = n.activate(c(y, width, 3, s, 32), "relu")
            y = c(y, out)
            x = n.activate(n.like("Add", y, c(x, out, 1, s) if i == 0 else x), "relu")
    return n, n.head(x)


@model
def regnet_y(name):
    """Groups of 48 and gates (Radosavovic et al. 2020, 1.6 GF)."""
    n = Net(name)
    x = n.conv(n.input("x", [1, 3, 224, 224]), 32, 3, 2, act="relu")
    for width, count in ((48, 2), (120, 6), (336, 17), (888, 2)):
        for i in range(count):
            s = 2 if i == 0 else 1
            y = n.conv(n.conv(x, width, 1, act="relu"), width, 3, s, groups=width // 24, act="relu")
            y = n.squeeze_excite(y, max(8, n.channels[x] // 4))
            x = n.activate(n.like("Add", n.conv(y, width, 1), n.conv(x, width, 1, s) if i == 0 else x), "relu")
    return n, n.head(x)


@model
def deeplab_v3(name):
    """Dilated convolutions and images made larger (Chen et al. 2017) behind a small backbone, 256 x 256."""
    n = Net(name)
    x = n.conv(n.conv(n.input("x", [1, 3, 256, 256]), 32, 3, 2, act="relu"), 64, 3, 2, act="relu")
    for width, s, d in ((128, 2, 1), (128, 1, 1), (256, 2, 1), (256, 1, 2), (512, 1, 2), (512, 1, 4)):
        y = n.conv(x, width, 3, s, dilation=d, act="relu")
        x = n.activate(n.like("Add", n.conv(y, width), n.conv(x, width, 1, s)), "relu")
    parts = [n.conv(x, 256, 1, act="relu")] + [n.conv(x, 256, 3, dilation=d, act="relu") for d in (6, 12, 18)]
    pooled = n.conv(n.like("GlobalAveragePool", x), 256, 1, act="relu")
    parts.append(n.like("Resize", pooled, "", "", n.ints(1, 256, 16, 16), mode="linear", coordinate_transformation_mode="half_pixel"))
    x = n.conv(n.conv(n.concat(*parts), 256, 1, act="relu"), 256, 3, act="relu")
    x = n.conv(x, 21, 1)
    return n, n.op("Resize", x, "", "", n.ints(1, 21, 256, 256), mode="linear", coordinate_transformation_mode="half_pixel")


@model
def crnn(name):
    """Reads a line of text (Shi et al. 2017): convolutions, then LSTMs along the width, 32 x 256."""
    n = Net(name)
    c = lambda y, w, k=3, p=None: n.conv(y, w, k, 1, p, act="relu")
    pool = lambda y, k, s, p: n.like("MaxPool", y, kernel_shape=k, strides=s, pads=p)
    x = pool(c(n.input("x", [1, 1, 32, 256]), 64), [2, 2], [2, 2], [0] * 4)
    x = c(c(pool(c(x, 128), [2, 2], [2, 2], [0] * 4), 256), 256)
    x = c(c(pool(x, [2, 2], [2, 1], [0, 1, 0, 1]), 512), 512)
    x = c(pool(x, [2, 2], [2, 1], [0, 1, 0, 1]), 512, 2, 0)
    x = n.op("Transpose", n.op("Squeeze", x, n.ints(2)), perm=[2, 0, 1])
    for width in (512, 512):
        w, r = n.weight(2, 1024, width), n.weight(2, 1024, 256, fan=512)
        y = n.op("LSTM", x, w, r, n.constant(np.zeros((2, 2048), np.float32)), outputs=3, hidden_size=256, direction="bidirectional")[0]
        x = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(0, 0, -1))
    return n, n.op("LogSoftmax", n.linear(x, 512, 37), axis=2)


@model
def dcgan(name):
    """An image of 64 x 64 from noise (Radford et al. 2016)."""
    n = Net(name)
    x, cin = n.input("z", [1, 100, 1, 1]), 100
    for out, s, p in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1), (3, 2, 1)):
        x = n.op("ConvTranspose", x, n.weight(cin, out, 4, 4, fan=cin * 4), kernel_shape=[4, 4], strides=[s, s], pads=[p] * 4)
        n.channels[x], cin = out, out
        x = n.batch_norm(x, "relu") if out > 3 else n.op("Tanh", x)
    return n, x


@model
def hrnet(name):
    """Three resolutions side by side, each made of all (Sun et al. 2019), 256 x 192."""
    n = Net(name)
    x = n.conv(n.conv(n.input("x", [1, 3, 256, 192]), 64, 3, 2, act="relu"), 64, 3, 2, act="relu")

    def block(y, width):
        z = n.conv(n.conv(y, width, act="relu"), width)
        return n.activate(n.like("Add", z, y), "relu")

    def larger(y, times):
        return n.like("Resize", y, "", n.constant(np.array([1, 1, times, times], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    levels = [n.conv(x, 32, act="relu"), n.conv(x, 64, 3, 2, act="relu")]
    levels.append(n.conv(levels[1], 128, 3, 2, act="relu"))
    for _ in range(3):
        levels = [block(block(y, 32 << i), 32 << i) for i, y in enumerate(levels)]
        mixed = []
        for i in range(3):
            total = None
            for j, y in enumerate(levels):
                if j > i:
                    y = larger(n.conv(y, 32 << i, 1), 2 ** (j - i))
                for step in range(i - j):
                    y = n.conv(y, 32 << (i if step == i - j - 1 else j), 3, 2, act=None if step == i - j - 1 else "relu")
                total = y if total is None else n.like("Add", total, y)
            mixed.append(n.activate(total, "relu"))
        levels = mixed
    return n, n.conv(levels[0], 17, 1)


@model
def mobilevit(name):
    """Convolutions around attention over patches of 2 x 2 (Mehta and Rastegari 2022)."""
    n = Net(name)

    def inverted(x, out, s):
        c = n.channels[x]
        y = n.conv(n.conv(n.conv(x, 4 * c, 1, act="swish"), 4 * c, 3, s, groups=4 * c, act="swish"), out, 1)
        return n.like("Add", x, y) if s == 1 and c == out else y

    def vit(x, size, width, layers):
        c = n.channels[x]
        y = n.conv(n.conv(x, c, act="swish"), width, 1)
        half = size // 2
        y = n.op("Reshape", y, n.ints(width * half, 2, half, 2))
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(1, width, half * half, 4))
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 3, 2, 1]), n.ints(4, half * half, width))
        for _ in range(layers):
            a = n.layer_norm(y, width)
            q, v = (n.heads(n.linear(a, width, width), 4, width // 4) for _ in range(2))
            k = n.heads(n.linear(a, width, width), 4, width // 4, key=True)
            s = n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), n.scalar((width // 4) ** -0.5)), axis=-1)
            z = n.op("Reshape", n.op("Transpose", n.op("MatMul", s, v), perm=[0, 2, 1, 3]), n.ints(0, 0, width))
            y = n.op("Add", y, n.linear(z, width, width))
            z = n.linear(n.layer_norm(y, width), width, 2 * width)
            y = n.op("Add", y, n.linear(n.activate(z, "swish"), 2 * width, width))
        y = n.op("Transpose", n.op("Reshape", n.layer_norm(y, width), n.ints(1, 4, half * half, width)), perm=[0, 3, 2, 1])
        y = n.op("Transpose", n.op("Reshape", y, n.ints(width * half, half, 2, 2)), perm=[0, 2, 1, 3])
        y = n.op("Reshape", y, n.ints(1, width, size, size))
        n.channels[y] = width
        return n.conv(n.concat(x, n.conv(y, c, 1, act="swish")), c, act="swish")

    x = inverted(n.conv(n.input("x", [1, 3, 256, 256]), 16, 3, 2, act="swish"), 32, 1)
    x = inverted(inverted(x, 64, 2), 64, 1)
    x = vit(inverted(x, 96, 2), 32, 144, 2)
    x = vit(inverted(x, 128, 2), 16, 192, 4)
    x = vit(inverted(x, 160, 2), 8, 240, 3)
    return n, n.head(n.conv(x, 640, 1, act="swish"))


@model
def pointnet(name):
    """2,048 points, each through the same layers, and their largest (Qi et al. 2017)."""
    n = Net(name)
    x, cin = n.input("points", [1, 3, 2048]), 3
    for out in (64, 128, 1024):
        w = n.weight(out, cin, 1)
        y = n.op("Conv", x, w, n.constant(np.zeros(out, np.float32)), kernel_shape=[1])
        x, cin = n.op("Relu", y), out
    y = n.op("Reshape", n.op("ReduceMax", x, axes=[2], keepdims=1), n.ints(-1, 1024))
    return n, n.dense(n.dense(n.dense(y, 512, 1024, "relu"), 256, 512, "relu"), 40, 256)


@model
def keyword_columns(name):
    """A keyword spotter's separable convolutions along time (Banbury et al. 2021, streaming), as Keras writes them: images of one column."""
    n = Net(name)
    x, cin = n.op("Transpose", n.input("x", [1, 98, 1, 40]), perm=[0, 3, 1, 2]), 40
    for out, taps in ((128, 3), (128, 5), (128, 10), (128, 15), (64, 9)):
        x = n.op("Conv", x, n.weight(cin, 1, taps, 1), group=cin, kernel_shape=[taps, 1])
        x = n.op("Conv", x, n.weight(out, cin, 1, 1), n.constant(np.zeros(out, np.float32)), kernel_shape=[1, 1])
        x, cin = n.op("Relu", x), out
    y = n.op("Reshape", n.op("GlobalAveragePool", x), n.ints(-1, 64))
    return n, n.op("Softmax", n.dense(y, 12, 64), axis=-1)


@model
def u2net(name):
    """Dilated blocks of one width, made smaller and larger (Qin et al. 2020, its small form), 160 x 160."""
    n = Net(name)
    c = lambda y, w, d=1: n.conv(y, w, dilation=d, act="relu")
    down = lambda y: n.like("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)

    def up(y, like):
        shape = n.op("Concat", n.op("Slice", n.op("Shape", y), n.ints(0), n.ints(2)), n.op("Slice", n.op("Shape", like), n.ints(2), n.ints(4)), axis=0)
        return n.like("Resize", y, "", "", shape, mode="linear", coordinate_transformation_mode="half_pixel")

    def block(x, mid, out, depth):
        first = c(x, out)
        levels = [c(first, mid)]
        for _ in range(depth - 2):
            levels.append(c(down(levels[-1]), mid))
        y = c(levels[-1], mid, 2)
        for i in reversed(range(len(levels))):
            y = c(n.concat(y, levels[i]), mid if i else out)
            if i:
                y = up(y, levels[i - 1])
        return n.like("Add", y, first)

    x, kept = n.input("x", [1, 3, 160, 160]), []
    for depth in (6, 5, 4):
        x = block(x, 16, 64, depth)
        kept.append(x)
        x = down(x)
    x = block(x, 16, 64, 3)
    for depth, skip in zip((4, 5, 6), reversed(kept)):
        x = block(n.concat(up(x, skip), skip), 16, 64, depth)
    return n, n.op("Sigmoid", n.conv(x, 1))


@model
def style_blocks(name):
    """Convolutions whose weights are scaled by a style in each run (Karras et al. 2020), 4 x 4 to 64 x 64."""
    n = Net(name)
    style = n.input("style", [1, 512])
    x = n.constant(n.rng.standard_normal((1, 512, 4, 4)).astype(np.float32))
    cin = 512
    for size, out in ((8, 512), (16, 256), (32, 128), (64, 64)):
        x = n.op("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear", coordinate_transformation_mode="half_pixel")
        for _ in range(2):
            s = n.op("Reshape", n.dense(style, cin, 512), n.ints(1, 1, cin, 1, 1))
            w = n.op("Mul", n.op("Unsqueeze", n.weight(out, cin, 3, 3), n.ints(0)), s)
            norm = n.op("Sqrt", n.op("Add", n.op("ReduceSum", n.op("Mul", w, w), n.ints(2, 3, 4)), n.scalar(1e-8)))
            w = n.op("Reshape", n.op("Div", w, norm), n.ints(out, cin, 3, 3))
            x = n.op("LeakyRelu", n.op("Conv", x, w, pads=[1] * 4), alpha=0.2)
            cin = out
    return n, n.op("Conv", x, n.weight(3, cin, 1, 1))


@model
def anchors(name):
    """A small backbone, three levels of a pyramid, heads and NonMaxSuppression, as detectors are exported (Liu et al. 2016; Lin et al. 2017)."""
    n = Net(name)
    c = lambda y, w, k=3, s=1, act="relu": n.conv(y, w, k, s, act=act)
    x = c(c(n.input("x", [1, 3, 256, 256]), 32, 3, 2), 64, 3, 2)
    levels = []
    for width in (128, 256, 512):
        x = c(c(x, width, 3, 2), width)
        levels.append(x)
    top = n.conv(levels[2], 128, 1)
    pyramid = [top]
    for y in (levels[1], levels[0]):
        top = n.like("Resize", top, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        top = n.like("Add", n.conv(y, 128, 1), top)
        pyramid.insert(0, top)
    boxes, scores = [], []
    for y in pyramid:
        for out, into in ((12, boxes), (24, scores)):
            z = c(c(c(y, 128), 128), out, act=None)
            z = n.op("Reshape", n.op("Transpose", z, perm=[0, 2, 3, 1]), n.ints(1, -1, out // 3))
            into.append(z)
    boxes = n.op("Concat", *boxes, axis=1)
    scores = n.op("Sigmoid", n.op("Concat", *scores, axis=1))
    center, size = n.op("Split", boxes, n.ints(2, 2), axis=2, outputs=2)
    half = n.op("Mul", n.op("Exp", n.op("Clip", size, n.scalar(-4), n.scalar(4))), n.scalar(0.5))
    boxes = n.op("Concat", n.op("Sub", center, half), n.op("Add", center, half), axis=2)
    picked = n.op("NonMaxSuppression", boxes, n.op("Transpose", scores, perm=[0, 2, 1]), n.constant(np.array(20, np.int64)), n.scalar(0.5), n.scalar(0.6))
    n.output(picked, dtype=np.int64)
    return n, boxes
