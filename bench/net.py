"""The graph under construction of which bench/models.py and its like make their models."""
import os

import numpy as np
import onnx
from onnx import helper as h
from onnx import numpy_helper as nh


class Net:
    """A graph under construction."""

    def __init__(self, name, seed=7, dtype=np.float32, opset=17):
        self.name, self.dtype, self.opset = name, dtype, opset
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.domains = {}
        self.count = 0
        self.channels = {}

    def fresh(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def input(self, name, shape, dtype=None):
        kind = h.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype))
        self.inputs.append(h.make_tensor_value_info(name, kind, shape))
        if len(shape) > 1 and not isinstance(shape[1], str):
            self.channels[name] = shape[1]
        return name

    def output(self, name, shape=None, dtype=None):
        kind = h.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype))
        self.outputs.append(h.make_tensor_value_info(name, kind, shape))

    def constant(self, array, hint="w"):
        name = self.fresh(hint)
        self.constants.append(nh.from_array(np.array(array, order="C"), name))
        return name

    def weight(self, *shape, fan=None, dtype=None):
        fan = fan or int(np.prod(shape[1:])) or 1
        values = self.rng.standard_normal(shape, dtype=np.float32) * np.sqrt(2.0 / fan)
        return self.constant(values.astype(dtype or self.dtype))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64), "shape")

    def scalar(self, value):
        return self.constant(np.array(value, self.dtype), "c")

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [self.fresh(kind) for _ in range(outputs)]
        if domain:
            self.domains[domain] = 1
        self.nodes.append(h.make_node(kind, list(inputs), names, names[0], domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    # ---- layers of CNNs
    def conv(self, x, out, k=3, s=1, p=None, groups=1, bias=True, act=None, dilation=1):
        cin = self.channels[x]
        k = k if isinstance(k, tuple) else (k, k)
        p = [(k[0] - 1) * dilation // 2, (k[1] - 1) * dilation // 2] if p is None else [p, p]
        w = self.weight(out, cin // groups, *k)
        b = [self.constant((self.rng.standard_normal(out) * 0.1).astype(self.dtype))] if bias else []
        y = self.op("Conv", x, w, *b, kernel_shape=list(k), strides=[s, s], pads=p + p, group=groups,
                    dilations=[dilation, dilation])
        self.channels[y] = out
        return self.activate(y, act)

    def activate(self, y, act):
        c = self.channels.get(y)
        if act == "relu":
            y = self.op("Relu", y)
        elif act == "relu6":
            y = self.op("Clip", y, self.scalar(0), self.scalar(6))
        elif act == "hswish":
            y = self.op("HardSwish", y)
        elif act == "swish":
            y = self.op("Mul", y, self.op("Sigmoid", y))
        self.channels[y] = c
        return y

    def batch_norm(self, x, act=None):
        c = self.channels[x]
        r = self.rng
        parts = [r.uniform(0.8, 1.2, c), r.standard_normal(c) * 0.1, r.standard_normal(c) * 0.1, r.uniform(0.8, 1.2, c)]
        y = self.op("BatchNormalization", x, *[self.constant(p.astype(self.dtype)) for p in parts])
        self.channels[y] = c
        return self.activate(y, act)

    def like(self, kind, x, *more, **attributes):
        y = self.op(kind, x, *more, **attributes)
        self.channels[y] = self.channels[x]
        return y

    def max_pool(self, x, k=3, s=2, p=1):
        return self.like("MaxPool", x, kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)

    def concat(self, *xs):
        y = self.op("Concat", *xs, axis=1)
        self.channels[y] = sum(self.channels[x] for x in xs)
        return y

    def squeeze_excite(self, x, mid):
        c = self.channels[x]
        y = self.like("GlobalAveragePool", x)
        y = self.conv(y, mid, 1, act="relu")
        y = self.conv(y, c, 1)
        return self.like("Mul", x, self.like("HardSigmoid", y))

    def dense(self, x, out, width, act=None):
        w = self.weight(width, out, fan=width)
        y = self.op("Gemm", x, w, self.constant(np.zeros(out, self.dtype)))
        return self.activate(y, act)

    def head(self, x, classes=1000):
        c = self.channels[x]
        y = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.dense(y, classes, c)

    # ---- layers of transformers
    def linear(self, x, width, out):
        return self.op("Add", self.op("MatMul", x, self.weight(width, out, fan=width)),
                       self.constant((self.rng.standard_normal(out) * 0.02).astype(self.dtype)))

    def layer_norm(self, x, width):
        return self.op("LayerNormalization", x, self.constant(np.ones(width, self.dtype)),
                       self.constant(np.zeros(width, self.dtype)), axis=-1, epsilon=1e-5)

    def gelu(self, x):
        """As exporters wrote it before the operator existed."""
        e = self.op("Erf", self.op("Div", x, self.scalar(np.sqrt(2.0))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", e, self.scalar(1))), self.scalar(0.5))

    def heads(self, x, heads, depth, key=False):
        y = self.op("Reshape", x, self.ints(0, -1, heads, depth))
        return self.op("Transpose", y, perm=[0, 2, 3, 1] if key else [0, 2, 1, 3])

    def attention(self, x, width, heads, past=None, mask=None):
        depth = width // heads
        q = self.heads(self.linear(x, width, width), heads, depth)
        k = self.heads(self.linear(x, width, width), heads, depth)
        v = self.heads(self.linear(x, width, width), heads, depth)
        if past:
            k = self.op("Concat", past[0], k, axis=2)
            v = self.op("Concat", past[1], v, axis=2)
        present = (k, v)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.scalar(np.sqrt(depth)))
        if mask:
            scores = self.op("Add", scores, mask)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, -1, width))
        return self.linear(y, width, width), present

    def save(self, folder, result=None):
        if result is not None:
            self.outputs.append(h.make_tensor_value_info(result, h.np_dtype_to_tensor_dtype(np.dtype(self.dtype)), None))
        graph = h.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        opsets = [h.make_opsetid("", self.opset)] + [h.make_opsetid(d, v) for d, v in self.domains.items()]
        model = h.make_model(graph, opset_imports=opsets, ir_version=9)
        model = onnx.shape_inference.infer_shapes(model)  # gives outputs their shapes
        onnx.save(model, os.path.join(folder, self.name + ".onnx"))


MAKERS = {}


def model(function):
    MAKERS[function.__name__] = function
    return function
