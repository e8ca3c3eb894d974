"""Families of bench/shapes.py beside single operators: small networks, weights of few bits, what com.microsoft and ai.onnx.ml add, images, signals, control flow, and float16."""
import numpy as np
from onnx import TensorProto
from onnx import helper as h

from net import Net
from shapes_operators import CHANNELS, FAMILIES as OPERATORS, MOST_PRODUCTS, PLANES

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"


def half(n, pick):
    """Another family in float16."""
    n.dtype = np.float16
    return OPERATORS[pick(("conv", "transposed", "matmul", "attention", "elementwise", "reduce", "norm", "pool"))](n, pick)


def activated(n, x, kind):
    if kind == "Swish":
        return n.op("Mul", x, n.op("Sigmoid", x))
    if kind == "Relu6":
        return n.op("Clip", x, n.scalar(0), n.scalar(6))
    return n.gelu(x) if kind == "Gelu" else n.op(kind, x)


def network(n, pick):
    """A convolutional network of one kind of block, with a head or an upsampled map."""
    side, width, has_norms = pick((32, 48, 64, 96, 112, 128)), pick((8, 12, 16, 20, 24, 32, 40, 48, 64)), pick((0, 1))
    activation = pick(("Relu", "Relu", "Swish", "Relu6", "HardSwish", "LeakyRelu", "Sigmoid", "Gelu", "Elu", "Tanh"))

    def act(x):
        y = activated(n, x, activation)
        n.channels[y] = n.channels[x]
        return y

    def conv(x, out, k, s=1, groups=1, activate=True):
        y = n.conv(x, out, k, s, groups=groups, bias=not has_norms)
        y = n.batch_norm(y) if has_norms else y
        return act(y) if activate else y

    def block(x, out, s):
        """What is added to x where that has its shape, or what follows it."""
        c = n.channels[x]
        if kind == "basic":
            return conv(conv(x, out, 3, s), out, 3, activate=False)
        if kind in ("bottleneck", "resnext"):
            groups = pick((2, 4)) if kind == "resnext" else 1
            middle = max(4, out // 2) // groups * groups
            return conv(conv(conv(x, middle, 1), middle, 3, s, groups=groups), out, 1, activate=False)
        if kind in ("inverted", "squeezed"):
            e = c * pick((2, 3, 4, 6))
            y = conv(conv(x, e, 1), e, pick((3, 3, 5)), s, groups=e)
            return conv(n.squeeze_excite(y, max(4, e // 8)) if kind == "squeezed" else y, out, 1, activate=False)
        if kind == "dense":
            y = conv(x, pick((8, 12, 16, 32)), 3, s)
            return n.concat(x, y) if s == 1 else y
        if kind == "inception":
            pooled = n.like("MaxPool", x, kernel_shape=[3, 3], strides=[s, s], pads=[1] * 4)
            return n.concat(conv(x, out // 4, 1, s), conv(conv(x, out // 4, 1), out // 2, 3, s), conv(pooled, out // 4, 1))
        if kind == "separable":
            return conv(conv(x, c, pick((3, 5)), s, groups=c), out, 1)
        y = n.op("Transpose", n.conv(x, c, 7, s, groups=c), perm=[0, 2, 3, 1])
        y = n.linear(n.gelu(n.linear(n.layer_norm(y, c), c, 4 * c)), 4 * c, c)
        y = n.op("Transpose", y, perm=[0, 3, 1, 2])
        n.channels[y] = c
        return y

    x = conv(n.input("x", [1, pick((1, 3, 3, 4)), side, side]), width, pick((3, 3, 5, 7)), 2)
    kind = pick(("basic", "bottleneck", "resnext", "inverted", "squeezed", "dense", "inception", "separable", "convnext"))
    for stage in range(pick((2, 3, 4))):
        for position in range(pick((1, 2, 3))):
            s = 2 if position == 0 and stage else 1
            out = width * 2 ** stage if pick((0, 1)) else n.channels[x]
            y = block(x, out, s)
            if s == 1 and n.channels[y] == n.channels[x] and kind not in ("dense", "inception", "separable"):
                x = n.like("Add", x, y)
                x = act(x) if kind in ("basic", "bottleneck", "resnext") else x
            else:
                x = y
    if pick((0, 1)):
        return n.head(x, pick((10, 100, 1000)))
    x = n.like("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode=pick(("nearest", "linear")))
    return n.conv(conv(x, max(8, n.channels[x] // 2), 3), pick((1, 2, 21)), 1)


def transformer(n, pick):
    """Two layers, norms and activations in one of the forms that exporters write."""
    heads, depth = pick((1, 2, 3, 4, 6, 8, 12)), pick((8, 16, 24, 32, 40, 48, 64, 80, 96, 128))
    width, length, batch = heads * depth, pick((1, 7, 16, 32, 50, 64, 100, 128, 197, 256, 300)), pick((1, 1, 1, 2, 4))
    hidden, kind = width * pick((1, 2, 4, 4)), pick(("Gelu", "Relu", "Swish", "Tanh", "gated"))
    if width > 1024 or batch * length * width * (4 * width + 2 * hidden) > 1.5 * MOST_PRODUCTS:
        return None
    x, first, how = n.input("x", [batch, length, width]), pick((0, 1)), pick(("operator", "spelled", "root of squares"))
    mask = n.input("mask", [batch, 1, 1, length]) if pick((0, 0, 1)) else None
    ones = n.constant(np.ones(width, n.dtype))

    def norm(x):
        if how == "operator":
            return n.layer_norm(x, width)
        d = n.op("Sub", x, n.op("ReduceMean", x, n.ints(-1))) if how == "spelled" else x
        root = n.op("Sqrt", n.op("Add", n.op("ReduceMean", n.op("Pow", d, n.scalar(2)), n.ints(-1)), n.scalar(1e-5)))
        return n.op("Mul", n.op("Div", d, root), ones)

    def feed_forward(x):
        y = n.linear(x, width, hidden)
        y = n.op("Mul", activated(n, y, "Swish"), n.linear(x, width, hidden)) if kind == "gated" else activated(n, y, kind)
        return n.linear(y, hidden, width)

    for _ in range(2):
        for layer in (lambda x: n.attention(x, width, heads, mask=mask)[0], feed_forward):
            x = n.op("Add", x, layer(norm(x))) if first else norm(n.op("Add", x, layer(x)))
    return x


def nbits(n, pick):
    """MatMulNBits."""
    bits, block, rows, depth, columns = pick((4, 4, 8, 2)), pick((16, 32, 64, 128)), pick((1, 1, 2, 3, 5, 8, 33, 100)), pick((64, 128, 256, 300, 512, 768, 1024, 2048, 4096)), pick((8, 64, 100, 256, 768, 1000, 3072, 4096))
    if rows * depth * columns > MOST_PRODUCTS:
        return None
    blocks = -(-depth // block)
    codes = n.constant(n.rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8))
    scales = n.constant(n.rng.uniform(0.005, 0.02, (columns, blocks)).astype(np.float32))
    zeros = [n.constant(n.rng.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8))] if pick((0, 1)) else []
    return n.op("MatMulNBits", n.input("x", [1, rows, depth]), codes, scales, *zeros, domain=MICROSOFT, K=depth, N=columns, bits=bits, block_size=block, accuracy_level=pick((0, 0, 1, 4, 4)))


def microsoft(n, pick):
    """What ONNX Runtime's optimiser writes, and models of its own."""
    kind = pick(("MultiHeadAttention", "MultiHeadAttention", "GroupQueryAttention", "GroupQueryAttention", "Attention", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "RotaryEmbedding", "FusedMatMul", "BiasGelu", "FastGelu", "QuickGelu", "QLinearAdd", "QLinearMul", "QAttention", "DynamicQuantizeMatMul", "EmbedLayerNormalization"))
    batch, length, heads, depth = pick((1, 1, 2)), pick((1, 1, 7, 16, 50, 128, 300)), pick((1, 2, 4, 8, 12)), pick((16, 32, 40, 64, 80, 96, 128))
    width, op = heads * depth, lambda *inputs, **attributes: n.op(kind, *inputs, domain=MICROSOFT, **attributes)
    rows = lambda name, size=width, steps=length, dtype=None: n.input(name, [batch, steps, size], dtype)
    weights = lambda *sizes: n.constant(np.clip(n.rng.standard_normal(sizes) * 30, -127, 127).astype(np.int8))
    if kind == "MultiHeadAttention":
        keys = pick((length, 77, 300))
        return op(rows("q"), rows("k", steps=keys), rows("v", steps=keys), pick(("", n.weight(3 * width))), num_heads=heads)
    if kind == "GroupQueryAttention":
        shared, past, rotary = pick([d for d in (1, 2, 4, 8, 12) if heads % d == 0]), pick((0, 10, 100, 500, 2000)) if length == 1 else 0, pick((0, 1))
        kept = [n.input(name, [batch, shared, past, depth]) for name in ("pk", "pv")]
        lengths = n.constant(np.full(batch, past + length - 1, np.int32)), n.constant(np.array(past + length, np.int32))
        angles = [n.weight(4096, depth // 2, fan=1) for _ in range(2 * rotary)]
        return op(rows("q"), rows("k", shared * depth), rows("v", shared * depth), *kept, *lengths, *angles, num_heads=heads, kv_num_heads=shared, do_rotary=rotary, rotary_interleaved=rotary and pick((0, 1)), local_window_size=pick((-1, -1, 64)), outputs=3)[0]
    if kind == "Attention":
        return op(rows("x"), n.weight(width, 3 * width, fan=width), n.weight(3 * width), num_heads=heads, unidirectional=pick((0, 1)))
    if kind in ("QAttention", "DynamicQuantizeMatMul"):
        scale = n.constant(np.array(0.01, np.float32))
        if kind == "DynamicQuantizeMatMul":
            return op(rows("x"), weights(width, pick((64, 100, 768))), scale)
        x, s, z = n.op("DynamicQuantizeLinear", rows("x"), outputs=3)
        return op(x, weights(width, 3 * width), n.weight(3 * width), s, scale, "", z, n.constant(np.array(0, np.int8)), num_heads=heads)
    if kind == "SkipLayerNormalization":
        return op(rows("x"), rows("s"), n.weight(width), n.weight(width))
    if kind == "SkipSimplifiedLayerNormalization":
        return op(rows("x"), rows("s"), n.weight(width))
    if kind == "RotaryEmbedding":
        places = n.constant(np.tile(np.arange(length, dtype=np.int64), (batch, 1)))
        return op(n.input("x", [batch, heads, length, depth]), places, n.weight(4096, depth // 2, fan=1), n.weight(4096, depth // 2, fan=1), interleaved=pick((0, 1)))
    if kind == "FusedMatMul":
        return op(n.input("a", [batch, heads, length, depth]), n.input("b", [batch, heads, pick((50, 128)), depth]), transB=1, alpha=0.125)
    if kind.startswith("QLinear"):
        s, z = n.constant(np.array(0.02, np.float32)), n.constant(np.array(120, np.uint8))
        return op(rows("a", dtype=np.uint8), s, z, rows("b", dtype=np.uint8), s, z, s, z)
    if kind == "EmbedLayerNormalization":
        return op(n.input("ids", [batch, length], np.int32), "", n.weight(1000, width, fan=1), n.weight(512, width, fan=1), "", n.weight(width), n.weight(width), outputs=2)[0]
    return op(rows("x"), n.weight(width)) if kind == "BiasGelu" else op(rows("x"))


def image(n, pick):
    kind = pick(("Resize", "Resize", "Resize", "LRN", "GridSample", "RoiAlign", "MaxUnpool", "AffineGrid", "Col2Im", "CenterCropPad", "DeformConv", "AveragePool", "MaxPool", "LpPool", "groups", "PRelu", "MeanVarianceNormalization", "shuffle"))
    batch, c, plane, twice = pick((1, 1, 2)), pick(CHANNELS), pick(PLANES[2]), pick((0, 1))
    if kind == "Resize":
        dtype, last = pick((np.float32, np.float32, np.uint8, np.float16)), pick((0, 0, 1))
        mode, scales = pick(("nearest", "linear", "linear", "cubic")), [pick((0.3, 0.5, 0.75, 1.3, 2, 2, 3, 4)) for _ in plane]
        sizes = [max(1, int(side * s)) for side, s in zip(plane, scales)]
        more = {"nearest_mode": pick(("round_prefer_floor", "floor", "ceil"))} if mode == "nearest" else {"antialias": int(min(scales) < 1 and dtype != np.float16 and pick((0, 1)))}
        shape = lambda plane: [batch, *plane, c] if last else [batch, c, *plane]
        return n.op(kind, n.input("x", shape(plane), dtype), "", "", n.ints(*shape(sizes)), mode=mode, coordinate_transformation_mode=pick(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")), **more)
    if kind == "AffineGrid":
        n.opset = 20
        return n.op(kind, n.input("t", [batch, 2, 3]), n.ints(batch, c, *plane), align_corners=twice)
    if kind == "GridSample":
        n.opset, volume = 20, pick(PLANES[3])
        grid = n.constant(n.rng.uniform(-1.1, 1.1, [batch, *[side // 2 for side in volume], 3]).astype(np.float32))
        return n.op(kind, n.input("x", [batch, pick((1, 3, 8, 16)), *volume]), grid, mode=pick(("linear", "nearest")), padding_mode=pick(("zeros", "border", "reflection")), align_corners=twice)
    if kind == "Col2Im":
        k = pick((2, 3))
        s = pick((1, k))
        if min(plane) < k:
            return None
        places = np.prod([(side - k) // s + 1 for side in plane])
        return n.op(kind, n.input("x", [batch, c * k * k, int(places)]), n.ints(*plane), n.ints(k, k), strides=[s, s])
    x = n.input("x", [batch, c * 4 if kind == "shuffle" else c, *plane])
    if kind == "LRN":
        return n.op(kind, x, size=pick((3, 5, 7, 9)))
    if kind == "RoiAlign":
        count = pick((1, 10, 100, 300))
        corner = n.rng.uniform(0, 0.6, (count, 2)) * plane[::-1]
        boxes = np.concatenate([corner, corner + n.rng.uniform(0.1, 0.4, (count, 2)) * plane[::-1]], 1).astype(np.float32)
        return n.op(kind, x, n.constant(boxes), n.constant(n.rng.integers(0, batch, count)), output_height=pick((1, 3, 7, 14)), output_width=pick((3, 7, 14)), sampling_ratio=pick((0, 1, 2, 3)))
    if kind == "MaxUnpool":
        if any(side % 2 for side in plane):  # the last would lie outside
            return None
        return n.op(kind, *n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], outputs=2), kernel_shape=[2, 2], strides=[2, 2])
    if kind == "CenterCropPad":
        return n.op(kind, x, n.ints(*[max(1, int(side * pick((0.5, 1.2)))) for side in plane]), axes=[2, 3])
    if kind == "DeformConv":
        n.opset = 19
        if min(plane) < 3 or batch * c * c * 9 * np.prod(plane) > MOST_PRODUCTS / 3:
            return None
        return n.op(kind, x, n.weight(c, c, 3, 3), n.input("off", [batch, 18, *plane]), kernel_shape=[3, 3], pads=[1] * 4)
    if kind in ("AveragePool", "MaxPool", "LpPool"):
        k = [min(pick((2, 3, 5, 7)), side) for side in plane]
        more = {"count_include_pad": twice} if kind == "AveragePool" else {"p": pick((1, 2, 3))} if kind == "LpPool" else {}
        y = n.op(kind, x, kernel_shape=k, strides=[pick((1, 2, 3))] * 2, auto_pad=pick(("SAME_UPPER", "VALID")), outputs=2 if kind == "MaxPool" else 1, **more)
        return n.op("Add", y[0], n.op("Cast", y[1], to=TensorProto.FLOAT)) if kind == "MaxPool" else y
    if kind == "groups":
        groups = pick([d for d in (1, 2, 4, 8, 32) if c % d == 0])
        y = n.op("InstanceNormalization", n.op("Reshape", x, n.ints(0, groups, -1)), n.constant(np.ones(groups, np.float32)), n.constant(np.zeros(groups, np.float32)))
        return n.op("Add", n.op("Mul", n.op("Reshape", y, n.ints(batch, c, *plane)), n.weight(c, 1, 1)), n.weight(c, 1, 1))
    if kind == "shuffle":
        y = n.op("Transpose", n.op("Reshape", x, n.ints(batch, c, 2, 2, *plane)), perm=[0, 1, 4, 2, 5, 3])
        return n.op("Reshape", y, n.ints(batch, c, 2 * plane[0], 2 * plane[1]))
    return n.op(kind, x, n.weight(c, 1, 1)) if kind == "PRelu" else n.op(kind, x)


def signal(n, pick):
    kind, batch = pick(("DFT", "DFT", "STFT", "STFT", "mel", "power", "frames")), pick((1, 2, 4))
    if kind == "DFT":
        n.opset, length, parts, inverse = 20, pick((16, 60, 100, 128, 256, 400, 512, 997, 1000, 1024, 4096)), pick((1, 2)), pick((0, 1))
        return n.op(kind, n.input("x", [batch, pick((1, 8, 64)), length, parts]), "", n.constant(np.array(2)), inverse=inverse, onesided=0 if inverse or parts == 2 else pick((0, 1)))
    if kind == "STFT":
        frame = pick((128, 256, 400, 512, 1024))
        return n.op(kind, n.input("x", [batch, pick((4000, 16000)), 1]), n.constant(np.array(pick((frame // 4, frame // 2, 160)))), n.constant(np.hanning(frame).astype(np.float32)), onesided=pick((0, 1, 1)))
    steps, bins = pick((50, 100, 300)), pick((129, 201, 257, 513))
    if kind == "mel":
        return n.op("Log", n.op("Max", n.op("MatMul", n.input("x", [batch, steps, bins]), n.weight(bins, pick((40, 64, 80, 128)))), n.scalar(1e-5)))
    if kind == "power":
        x = n.input("x", [batch, steps, bins, 2])
        return n.op("ReduceSum", n.op("Mul", x, x), n.ints(-1), keepdims=0)
    frame, step = pick(((10, 5), (160, 80), (400, 160), (512, 160)))
    return n.op("Conv", n.input("x", [1, 1, pick((8000, 16000))]), n.weight(pick((32, 128, 258, 402)), 1, frame), kernel_shape=[frame], strides=[step])


def ml(n, kind, *inputs, outputs=1, **attributes):
    n.domains[ML] = 3
    names = [n.fresh(kind) for _ in range(outputs)]
    n.nodes.append(h.make_node(kind, inputs, names, names[0], domain=ML, **attributes))
    return names[-1]


def trees(n, pick):
    """Ensembles as boosting (one vote a leaf) and forests (one for each class) have them."""
    rows, count, depth, features, classes = pick((1, 1, 10, 100, 1000, 10000)), pick((1, 10, 50, 100, 300)), pick((2, 3, 5, 6, 8, 10)), pick((4, 10, 30, 100, 500)), pick((1, 1, 1, 2, 3, 10))
    if rows * count * depth > 3e6 or count << depth > 60000:
        return None
    every, is_classifier, r = pick((0, 0, 1)) and classes > 1, pick((0, 1)), n.rng
    nodes, votes = [], []  # tree, node, feature, value, mode, true, false; tree, node, class, weight

    def grow(tree, first, left):
        at = len(nodes)
        if left == 0 or (left < depth and r.random() < 0.1):
            nodes.append((tree, at - first, 0, 0.0, "LEAF", 0, 0))
            votes.extend((tree, at - first, c, float(r.standard_normal())) for c in (range(classes) if every else (tree % classes,)))
        else:
            nodes.append(None)
            below = [grow(tree, first, left - 1) for _ in range(2)]
            nodes[at] = (tree, at - first, int(r.integers(features)), float(np.float32(r.standard_normal())), "BRANCH_LEQ", *below)
        return at - first

    for tree in range(count):
        grow(tree, len(nodes), depth)
    attributes = dict(zip(("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids"), zip(*nodes)))
    prefix = "class" if is_classifier else "target"
    attributes |= dict(zip([f"{prefix}_{what}" for what in ("treeids", "nodeids", "ids", "weights")], zip(*votes)))
    x = n.input("x", [rows, features])
    if is_classifier:
        return ml(n, "TreeEnsembleClassifier", x, outputs=2, classlabels_int64s=range(max(2, classes)), post_transform=pick(("NONE", "SOFTMAX", "LOGISTIC")), **attributes)
    return ml(n, "TreeEnsembleRegressor", x, n_targets=classes, aggregate_function=pick(("SUM", "SUM", "AVERAGE")), **attributes)


def classic(n, pick):
    """What else ai.onnx.ml has for rows of features."""
    kind = pick(("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor", "Scaler", "Normalizer", "Imputer", "OneHotEncoder", "Binarizer", "LabelEncoder"))
    rows, features, classes, supports = pick((1, 10, 100, 1000, 10000)), pick((4, 10, 30, 100, 300)), pick((2, 3, 10)), pick((10, 100, 500))
    if rows * features > 1e6 or (kind.startswith("SVM") and rows * supports * features > 3e7):
        return None
    floats = lambda *sizes: n.rng.standard_normal(sizes).astype(np.float32).ravel().tolist()
    if kind in ("OneHotEncoder", "LabelEncoder"):
        x = n.input("x", [rows, pick((1, 5))], np.int64)
        return ml(n, kind, x, cats_int64s=range(pick((5, 60)))) if kind == "OneHotEncoder" else ml(n, kind, x, keys_int64s=range(100), values_floats=floats(100))
    x = n.input("x", [rows, features])
    if kind == "LinearClassifier":
        return ml(n, kind, x, outputs=2, coefficients=floats(classes, features), intercepts=floats(classes), classlabels_ints=range(classes), post_transform=pick(("NONE", "SOFTMAX", "LOGISTIC")))
    if kind == "LinearRegressor":
        return ml(n, kind, x, coefficients=floats(classes, features), intercepts=floats(classes), targets=classes)
    if kind.startswith("SVM"):
        kernel = {"kernel_type": pick(("RBF", "LINEAR", "POLY", "SIGMOID")), "kernel_params": [0.1, 0.0, 3.0], "support_vectors": floats(supports, features)}
        if kind == "SVMRegressor":
            return ml(n, kind, x, coefficients=floats(supports), n_supports=supports, rho=floats(1), **kernel)
        each = supports // classes
        return ml(n, kind, x, outputs=2, classlabels_ints=range(classes), coefficients=floats(classes - 1, supports), vectors_per_class=[each] * (classes - 1) + [supports - each * (classes - 1)], rho=floats(classes * (classes - 1) // 2), **kernel)
    more = {"Scaler": lambda: dict(offset=floats(features), scale=floats(features)), "Normalizer": lambda: dict(norm=pick(("L1", "L2", "MAX"))), "Imputer": lambda: dict(imputed_value_floats=floats(features), replaced_value_float=float("nan")), "Binarizer": lambda: dict(threshold=0.1)}
    return ml(n, kind, x, **more[kind]())


def control(n, pick):
    """A loop, a scan or a branch around a few small operators."""
    kind, size, steps, operators = pick(("Loop", "Scan", "If")), pick((1, 16, 64, 300, 1000)), pick((1, 5, 20, 100)), pick((1, 3, 8))
    multiplies = size <= 300 and pick((0, 0, 1))
    value = lambda name, shape=(1, size), kind=TensorProto.FLOAT: h.make_tensor_value_info(name, kind, shape)

    def body(name, x):
        net = Net(name, seed=3, opset=n.opset)
        for _ in range(operators):
            x = net.op(pick(("Tanh", "Relu", "Sigmoid", "Neg")), net.op(pick(("Add", "Mul")), x, net.scalar(0.9)))
        return net, net.op("MatMul", x, net.weight(size, size)) if multiplies else x

    def graph(net, inputs, outputs):
        return h.make_graph(net.nodes, net.name, inputs, outputs, net.constants)

    if kind == "Scan":
        net, y = body("step", "both")
        net.nodes.insert(0, h.make_node("Add", ["v", "e"], ["both"]))
        inner = graph(net, [value("v"), value("e")], [value(y), value(net.op("Identity", y))])
        return n.op(kind, n.input("s", [1, size]), n.input("x", [steps, 1, size]), body=inner, num_scan_inputs=1, outputs=2)[1]
    x = n.input("x", [1, size])
    if kind == "Loop":
        net, y = body("step", "v")
        inner = graph(net, [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("v")], [value(net.op("Identity", "c"), (), TensorProto.BOOL), value(y)])
        return n.op(kind, n.constant(np.array(steps)), n.constant(np.array(True)), x, body=inner)
    branches = {}
    for name in ("then_branch", "else_branch"):
        net, y = body(name, x)
        branches[name] = graph(net, [], [value(net.op("Identity", y))])
    return n.op(kind, n.op("Greater", n.op("ReduceSum", x, keepdims=0), n.scalar(0)), **branches)


FAMILIES = {f.__name__: f for f in (half, network, transformer, nbits, microsoft, image, signal, trees, classic, control)}
