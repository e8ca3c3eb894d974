#!/usr/bin/env python3
"""Writes tests/run/gradient.test: graphs with Gradient, and what the autodiff of PyTorch gives for them.

    python3 tools/oracle_gradient.py > tests/run/gradient.test

Needs torch (the CPU build is enough; written with 2.15.0) and numpy.
"""

import numpy as np
import torch
import torch.nn.functional as F

RNG = np.random.default_rng(7)


def text(x):
    x = np.asarray(x)
    kind = {"float32": "float", "float64": "double", "int64": "int64", "int32": "int32", "bool": "bool"}[str(x.dtype)]
    dims = f"[{','.join(map(str, x.shape))}]" if x.ndim else ""
    values = (repr(int(v)) if kind == "bool" else repr(v) for v in x.ravel().tolist())
    return f"{kind}{dims}", "{" + ", ".join(values) + "}"


def arr(*shape, low=None):
    x = RNG.normal(size=shape) if low is None else RNG.random(shape) + low
    return np.round(x, 3).astype(np.float64)


PARTS = []


def part(name, nodes, inputs, forward, xs, initializers=None, order=1):
    """nodes: ONNX text that makes y; forward: the same in torch, from tensors by name."""
    tensors = {n: torch.tensor(v, requires_grad=n in xs) if v.dtype.kind == "f" else torch.tensor(v)
               for n, v in inputs.items()}
    made = {n: torch.tensor(v) for n, v in (initializers or {}).items()}
    y = forward(**tensors, **made).sum()
    grads = torch.autograd.grad(y, [tensors[x] for x in xs], create_graph=order == 2)
    if order == 2:  # the gradient of the sum of the first gradients by the first x
        grads = torch.autograd.grad(sum((g * g).sum() for g in grads), [tensors[x] for x in xs])
    zs = [n for n in inputs if n not in xs]
    quoted = lambda names: "[" + ", ".join(f'"{n}"' for n in names) + "]"
    lines = [f"NAME: {name}", "RUN: run"]
    for n, v in inputs.items():
        kind, values = text(v)
        lines.append(f"INPUT: {kind} {n} = {values}")
    lines.append('<ir_version: 14, opset_import: ["" : 28, "ai.onnx.preview" : 1, "ai.onnx.preview.training" : 1]>')
    params = ", ".join(f"{text(v)[0]} {n}" for n, v in inputs.items())
    outs = [f"d_{x}" for x in xs]
    held = ""
    if initializers:
        held = " <" + ", ".join(f"{text(v)[0]} {n} = {text(v)[1]}" for n, v in initializers.items()) + ">"
    results = ", ".join(f"{text(inputs[x])[0]} d_{x}" for x in xs)
    lines.append(f"g ({params}) => ({results}){held} {{")
    lines += ["  " + line for line in nodes]
    order_of = list(xs) + zs
    zs_text = f", zs = {quoted(zs)}" if zs else ""
    if order == 1:
        lines.append(f'  {", ".join(outs)} = ai.onnx.preview.training.Gradient <xs = {quoted(xs)}{zs_text}, y = "y"> ({", ".join(order_of)})')
    else:
        firsts = [f"g_{x}" for x in xs]
        lines.append(f'  {", ".join(firsts)} = ai.onnx.preview.training.Gradient <xs = {quoted(xs)}{zs_text}, y = "y"> ({", ".join(order_of)})')
        for f in firsts:
            lines.append(f"  s_{f} = ReduceSumSquare <keepdims = 0> ({f})")
        lines.append(f'  y2 = Sum ({", ".join("s_" + f for f in firsts)})')
        lines.append(f'  {", ".join(outs)} = ai.onnx.preview.training.Gradient <xs = {quoted(xs)}{zs_text}, y = "y2"> ({", ".join(order_of)})')
    lines += ["}", "EXPECT:"]
    expected = []
    for x, g in zip(xs, grads):
        kind, values = text(g.detach().numpy())
        expected.append(f"{kind} d_{x} = {values}")
    lines.append(",\n".join(expected))
    PARTS.append("\n".join(lines))


def unary(op, f, low=None, attributes="", order=1):
    part(f"{op}{' twice' if order == 2 else ''}", [f"h = {op} {attributes} (x)", "y = Mul (h, w)"],
         {"x": arr(2, 3, low=low), "w": arr(2, 3)}, lambda x, w: f(x) * w, ["x"], order=order)


def main():
    for op, f in (("Abs", torch.abs), ("Atan", torch.atan), ("Asinh", torch.asinh), ("Celu", F.celu), ("Cos", torch.cos),
                  ("Cosh", torch.cosh), ("Elu", F.elu), ("Erf", torch.erf), ("Exp", torch.exp), ("Gelu", F.gelu),
                  ("HardSwish", F.hardswish), ("LeakyRelu", F.leaky_relu), ("Mish", F.mish), ("Relu", F.relu), ("Selu", F.selu),
                  ("Sigmoid", torch.sigmoid), ("Sin", torch.sin), ("Sinh", torch.sinh), ("Softplus", F.softplus),
                  ("Softsign", F.softsign), ("Swish", F.silu), ("Tan", torch.tan), ("Tanh", torch.tanh)):
        unary(op, f)
    for op, f in (("Log", torch.log), ("Sqrt", torch.sqrt), ("Reciprocal", torch.reciprocal)):
        unary(op, f, low=0.5)
    unary("Acosh", torch.acosh, low=1.5)
    unary("Atanh", torch.atanh, low=-0.5)
    unary("Acos", torch.acos, low=-0.5)
    unary("Asin", torch.asin, low=-0.5)
    unary("Softmax", lambda x: F.softmax(x, 1), attributes="<axis = 1>")
    unary("LogSoftmax", lambda x: F.log_softmax(x, 1), attributes="<axis = 1>")
    for op, f in (("Tanh", torch.tanh), ("Sigmoid", torch.sigmoid), ("Sin", torch.sin), ("Gelu", F.gelu)):
        unary(op, f, order=2)
    unary("Softmax", lambda x: F.softmax(x, 1), attributes="<axis = 1>", order=2)

    a, b = arr(2, 3, low=0.5), arr(3, low=0.5)
    for op, f in (("Add", torch.add), ("Sub", torch.sub), ("Mul", torch.mul), ("Div", torch.div), ("Pow", torch.pow),
                  ("Max", torch.maximum), ("Min", torch.minimum)):
        part(f"{op}, broadcast", [f"h = {op} (x, v)", "y = Mul (h, h)"], {"x": a, "v": b}, lambda x, v, f=f: f(x, v)**2, ["x", "v"])
    part("Div twice", ["h = Div (x, v)", "y = Mul (h, h)"], {"x": a, "v": b}, lambda x, v: (x / v)**2, ["x", "v"], order=2)
    part("MatMul and Gemm twice", ["h = MatMul (x, v)", "t = Tanh (h)", "y = Gemm <alpha = 0.5, transB = 1> (t, t)"],
         {"x": arr(2, 3), "v": arr(3, 2)}, lambda x, v: 0.5 * torch.tanh(x @ v) @ torch.tanh(x @ v).T, ["x", "v"], order=2)
    part("Einsum", ['h = Einsum <equation = "bij,bjk->bki"> (x, v)', "y = Mul (h, h)"], {"x": arr(2, 2, 3), "v": arr(2, 3, 2)},
         lambda x, v: torch.einsum("bij,bjk->bki", x, v)**2, ["x", "v"])

    for name, attributes, kwargs in (("Conv", "<strides = [2, 1], pads = [1, 0, 0, 1], group = 2, dilations = [1, 2]>", None),):
        part(name, [f"h = Conv {attributes} (x, v, b)", "y = Mul (h, h)"], {"x": arr(1, 4, 4, 5), "v": arr(2, 2, 2, 2), "b": arr(2)},
             lambda x, v, b: F.conv2d(F.pad(x, (0, 1, 1, 0)), v, b, stride=(2, 1), dilation=(1, 2), groups=2)**2, ["x", "v", "b"])
    part("Conv twice", ["h = Conv (x, v)", "y = Tanh (h)"], {"x": arr(1, 1, 3, 4), "v": arr(2, 1, 2, 2)},
         lambda x, v: torch.tanh(F.conv2d(x, v)), ["x", "v"], order=2)
    part("ConvTranspose", ["h = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 0], group = 2, output_padding = [1, 0]> (x, v, b)", "y = Mul (h, h)"],
         {"x": arr(1, 2, 2, 3), "v": arr(2, 1, 3, 2), "b": arr(2)},
         lambda x, v, b: F.conv_transpose2d(x, v, b, stride=2, padding=(1, 0), output_padding=(1, 0), groups=2)**2, ["x", "v", "b"])
    part("MaxPool", ["h = MaxPool <kernel_shape = [2, 2], strides = [1, 2]> (x)", "y = Mul (h, h)"], {"x": arr(1, 2, 3, 4)},
         lambda x: F.max_pool2d(x, 2, (1, 2))**2, ["x"])
    part("AveragePool", ["h = AveragePool <kernel_shape = [2, 2], pads = [1, 1, 0, 0]> (x)", "y = Mul (h, h)"], {"x": arr(1, 2, 3, 4)},
         lambda x: (F.avg_pool2d(F.pad(x, (1, 0, 1, 0)), 2, 1) / F.avg_pool2d(F.pad(torch.ones_like(x), (1, 0, 1, 0)), 2, 1))**2, ["x"])
    part("GlobalAveragePool", ["h = GlobalAveragePool (x)", "y = Mul (h, h)"], {"x": arr(1, 2, 3, 2)}, lambda x: x.mean((2, 3))**2, ["x"])
    for training in (0, 1):
        part(f"BatchNormalization, training_mode {training}",
             [f"h{', m2, v2' if training else ''} = BatchNormalization <training_mode = {training}, epsilon = 0.001> (x, s, b, m, v)", "t = Sin (h)", "y = Mul (t, t)"],
             {"x": arr(3, 2, 2), "s": arr(2), "b": arr(2), "m": arr(2), "v": arr(2, low=0.5)},
             lambda x, s, b, m, v, t=training: torch.sin(F.batch_norm(x, m.clone(), v.clone(), s, b, bool(t), 0.1, 1e-3))**2, ["x", "s", "b"])
    part("LayerNormalization twice", ["h = LayerNormalization <epsilon = 0.001> (x, s, b)", "y = Sin (h)"],
         {"x": arr(2, 4), "s": arr(4), "b": arr(4)}, lambda x, s, b: torch.sin(F.layer_norm(x, (4,), s, b, 1e-3)), ["x", "s", "b"], order=2)
    part("InstanceNormalization", ["h = InstanceNormalization <epsilon = 0.001> (x, s, b)", "y = Sin (h)"],
         {"x": arr(2, 2, 4), "s": arr(2), "b": arr(2)}, lambda x, s, b: torch.sin(F.instance_norm(x, weight=s, bias=b, eps=1e-3)), ["x", "s", "b"])
    part("GroupNormalization", ["h = GroupNormalization <num_groups = 2, epsilon = 0.001> (x, s, b)", "y = Sin (h)"],
         {"x": arr(2, 4, 3), "s": arr(4), "b": arr(4)}, lambda x, s, b: torch.sin(F.group_norm(x, 2, s, b, 1e-3)), ["x", "s", "b"])
    part("LRN", ["y = LRN <size = 3, alpha = 0.5, beta = 0.75, bias = 2.0> (x)"], {"x": arr(1, 4, 2, 2)},
         lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 2.0), ["x"])
    part("RMSNormalization", ["h = RMSNormalization <epsilon = 0.001> (x, s)", "y = Sin (h)"], {"x": arr(2, 4), "s": arr(4)},
         lambda x, s: torch.sin(F.rms_norm(x, (4,), s, 1e-3)), ["x", "s"])

    i = np.array([2, 0], np.int64)
    part("Gather", ["h = Gather <axis = 0> (x, i)", "y = Mul (h, h)"], {"x": arr(3, 2)}, lambda x, i: x[i]**2, ["x"], {"i": i})
    part("GatherElements twice", ["h = GatherElements <axis = 1> (x, i)", "e = Exp (h)", "y = Mul (e, h)"], {"x": arr(2, 3)},
         lambda x, i: torch.exp(torch.gather(x, 1, i)) * torch.gather(x, 1, i), ["x"], {"i": np.array([[2, 2], [0, 1]], np.int64)}, order=2)
    part("ScatterElements, add", ['h = ScatterElements <axis = 0, reduction = "add"> (x, i, u)', "y = Mul (h, h)"], {"x": arr(3, 2), "u": arr(2, 2)},
         lambda x, u, i: torch.scatter_add(x, 0, i, u)**2, ["x", "u"], {"i": np.array([[2, 0], [2, 1]], np.int64)})
    part("ScatterND", ["h = ScatterND (x, i, u)", "y = Mul (h, h)"], {"x": arr(3, 2), "u": arr(2, 2)},
         lambda x, u, i: x.index_put((i[:, 0],), u)**2, ["x", "u"], {"i": np.array([[2], [0]], np.int64)})
    part("Slice, Pad, Concat", ["a = Slice (x, s, e)", "b = Pad (a, p)", "c = Concat <axis = 1> (b, x)", "y = Mul (c, c)"], {"x": arr(2, 3)},
         lambda x, s, e, p: torch.cat([F.pad(x[:, 1:3], (0, 1)), x], 1)**2, ["x"],
         {"s": np.array([0, 1], np.int64), "e": np.array([2, 3], np.int64), "p": np.array([0, 0, 0, 1], np.int64)})
    part("Split, Tile, Expand, Transpose", ["a, b = Split <axis = 1, num_outputs = 2> (x)", "t = Transpose <perm = [1, 0]> (a)", "m = MatMul (b, t)",
         "e = Tile (m, r)", "y = Mul (e, e)"], {"x": arr(2, 4)}, lambda x, r: ((x[:, 2:] @ x[:, :2].T).tile(2, 3))**2, ["x"], {"r": np.array([2, 3], np.int64)})
    part("TopK", ["v, k = TopK (x, n)", "y = Mul (v, v)"], {"x": arr(2, 4)}, lambda x, n: torch.topk(x, 2)[0]**2, ["x"], {"n": np.array([2], np.int64)})
    part("Where and Clip", ["c = Greater (x, z)", "w = Where (c, x, z)", "k = Clip (w, z, o)", "y = Mul (k, w)"], {"x": arr(2, 4)},
         lambda x, z, o: torch.where(x > z, x, z).clip(0, 0.5) * torch.where(x > z, x, z), ["x"], {"z": np.array(0.0), "o": np.array(0.5)})
    for op, f in (("ReduceSum", lambda x: x.sum(1)), ("ReduceMean", lambda x: x.mean(1)), ("ReduceMax", lambda x: x.amax(1)),
                  ("ReduceMin", lambda x: x.amin(1)), ("ReduceProd", lambda x: x.prod(1)), ("ReduceL1", lambda x: x.abs().sum(1)),
                  ("ReduceL2", lambda x: (x * x).sum(1).sqrt()), ("ReduceLogSumExp", lambda x: x.logsumexp(1)),
                  ("ReduceLogSum", lambda x: x.sum(1).log()), ("ReduceSumSquare", lambda x: (x * x).sum(1))):
        part(op, [f"h = {op} <keepdims = 0> (x, a)", "y = Mul (h, h)"], {"x": arr(2, 3, low=0.5)}, lambda x, a, f=f: f(x)**2, ["x"], {"a": np.array([1], np.int64)})
    part("CumSum", ["h = CumSum (x, a)", "y = Mul (h, h)"], {"x": arr(2, 3)}, lambda x, a: torch.cumsum(x, 1)**2, ["x"], {"a": np.array(1, np.int64)})
    part("Resize, linear", ['h = Resize <mode = "linear"> (x, "", s)', "y = Mul (h, h)"], {"x": arr(1, 1, 2, 3)},
         lambda x, s: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)**2, ["x"], {"s": np.array([1, 1, 2, 2], np.float32)})
    part("SoftmaxCrossEntropyLoss", ["y = SoftmaxCrossEntropyLoss (x, t, w)"], {"x": arr(3, 4)},
         lambda x, t, w: F.cross_entropy(x, t, w), ["x"], {"t": np.array([1, 3, 0], np.int64), "w": np.array([0.5, 1, 2, 1.5])})
    part("If", ["c = Greater (p, z)", "y = If (c) <then_branch = t () => (double[2] u) { u = Mul (x, x) }, else_branch = e () => (double[2] v) { v = Exp (x) }>"],
         {"x": arr(2), "p": np.array(1.0)}, lambda x, p, z: x * x, ["x"], {"z": np.array(0.0)})
    part("Loop, with a scan output and a captured value",
         ["f, s = Loop (n, yes, x) <body = b (int64 i, bool k, double[2] a) => (bool k2, double[2] a2, double[2] o) { k2 = Identity (k)  a2 = Mul (a, w)  o = Sin (a2) }>",
          "t = ReduceSum <keepdims = 0> (s)", "y = Add (f, t)"],
         {"x": arr(2), "w": arr(2)}, lambda x, w, n, yes: x * w**3 + torch.stack([torch.sin(x * w), torch.sin(x * w**2), torch.sin(x * w**3)]).sum(),
         ["x", "w"], {"n": np.array(3, np.int64), "yes": np.array(True)})
    part("Scan, twice",
         ["f, s = Scan (h, x) <num_scan_inputs = 1, body = b (double[2] a, double[2] e) => (double[2] a2, double[2] o) { p = Add (a, e)  a2 = Tanh (p)  o = Mul (a2, e) }>",
          "t = ReduceSum <keepdims = 0> (s)", "y = Add (f, t)"],
         {"h": arr(2), "x": arr(3, 2)}, scan_forward, ["h", "x"], order=2)
    q, k, v = arr(1, 2, 3, 4), arr(1, 2, 4, 4), arr(1, 2, 4, 2)
    part("Attention, by its function body", ["h = Attention <scale = 0.3, softcap = 2.0> (q, k, v, m)", "y = Mul (h, h)"], {"q": q, "k": k, "v": v, "m": arr(3, 4)},
         lambda q, k, v, m: (F.softmax(2 * torch.tanh(0.3 * q @ k.transpose(-1, -2) / 2) + m, -1) @ v)**2, ["q", "k", "v", "m"])
    part("Attention, causal, grouped heads, with a cache and packed heads",
         ["h, pk, pv = Attention <is_causal = 1, q_num_heads = 4, kv_num_heads = 2> (q, k, v, \"\", a, b)", "y = Sin (h)"],
         {"q": arr(1, 2, 12), "k": arr(1, 2, 6), "v": arr(1, 2, 4), "a": arr(1, 2, 1, 3), "b": arr(1, 2, 1, 2)}, packed_attention, ["q", "k", "v", "a", "b"])
    part("Attention, a window and a mask of booleans, twice", ["h = Attention <left_window_size = 1, right_window_size = 0> (q, k, v, m)", "y = Sin (h)"],
         {"q": q, "k": arr(1, 2, 3, 4), "v": arr(1, 2, 3, 2)}, window_attention, ["q", "k", "v"], {"m": np.array([[True, True, True], [True, True, True], [True, False, True]])}, order=2)
    recurrent = {n: v.astype(np.float32) for n, v in {"x": arr(3, 2, 2), "w": arr(2, 12, 2), "r": arr(2, 12, 3), "b": arr(2, 24), "h": arr(2, 2, 3), "c": arr(2, 2, 3)}.items()}
    part("LSTM, both directions", ['a, e, f = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, b, "", h, c)', "s = Sin (a)", "t = ReduceSumSquare <keepdims = 0> (e)",
         "u = ReduceSum <keepdims = 0> (f)", "v = Add (s, t)", "y = Add (v, u)"], recurrent, lstm, list(recurrent))
    for linear in (0, 1):
        gru_inputs = {n: v.astype(np.float32) for n, v in {"x": arr(3, 2, 2), "w": arr(1, 9, 2), "r": arr(1, 9, 3), "b": arr(1, 18)}.items()}
        part(f"GRU, linear_before_reset {linear}", [f"a, e = GRU <hidden_size = 3, linear_before_reset = {linear}> (x, w, r, b)", "y = Sin (a)"],
             gru_inputs, lambda x, w, r, b, linear=linear: gru(x, w, r, b, linear), list(gru_inputs))
    rnn_inputs = {n: v.astype(np.float32) for n, v in {"x": arr(3, 2, 2), "w": arr(1, 3, 2), "r": arr(1, 3, 3)}.items()}
    part("RNN, backwards, by its last state", ['a, e = RNN <hidden_size = 3, direction = "reverse"> (x, w, r)', "y = Sin (e)"], rnn_inputs, rnn, list(rnn_inputs), order=2)
    for rule in ("linear", "gated_delta"):
        inputs = {"q": arr(1, 3, 8), "k": arr(1, 3, 4), "v": arr(1, 3, 6), "s": arr(1, 2, 2, 3)}
        if rule != "linear":
            inputs |= {"d": -arr(1, 3, 4, low=0.1), "b": arr(1, 3, 2, low=0.1)}
        part(f"LinearAttention, {rule}", [f'h, t = LinearAttention <q_num_heads = 4, kv_num_heads = 2, update_rule = "{rule}"> ({", ".join(inputs)})',
             "a = Sin (h)", "e = ReduceSum <keepdims = 0> (t)", "y = Add (a, e)"], {n: v.astype(np.float32) for n, v in inputs.items()}, linear_attention, list(inputs))
    part("CausalConvWithState", ['h, t = CausalConvWithState <activation = "silu"> (x, w, b, p)', "e = ReduceSumSquare <keepdims = 0> (t)", "a = Sin (h)", "y = Add (a, e)"],
         {n: v.astype(np.float32) for n, v in {"x": arr(1, 2, 4), "w": arr(2, 1, 3), "b": arr(2), "p": arr(1, 2, 2)}.items()}, causal_conv, ["x", "w", "b", "p"])
    more()
    print("\n---\n".join(PARTS))


def deform_conv(x, w, o, m, b):
    """3x4 pictures, kernel 2x2, pads 1 at the top and left, two offset groups, two groups."""
    n, c, h, wide = x.shape
    columns = []
    for k in range(4):
        own = []
        for g in range(2):
            i, j = torch.meshgrid(torch.arange(3.0, dtype=x.dtype), torch.arange(4.0, dtype=x.dtype), indexing="ij")
            y_at = i - 1 + k // 2 + o[:, (g * 4 + k) * 2]
            x_at = j - 1 + k % 2 + o[:, (g * 4 + k) * 2 + 1]
            grid = torch.stack([x_at / (wide - 1) * 2 - 1, y_at / (h - 1) * 2 - 1], -1)
            part = F.grid_sample(x[:, g * c // 2:(g + 1) * c // 2], grid, align_corners=True)
            own.append(part * m[:, g * 4 + k][:, None])
        columns.append(torch.cat(own, 1))
    columns = torch.stack(columns, 2).reshape(n, 2, c // 2 * 4, 12)
    y = torch.einsum("ngkp,gok->ngop", columns, w.reshape(2, w.shape[0] // 2, -1))
    return torch.sin(y.reshape(n, -1, 3, 4) + b[:, None, None])


def ragged_lstm(x, w, r, h):
    """Batch first, clip 0.6, lengths 3 and 2, other activations, backwards."""
    s, c, rows = h[:, 0], torch.zeros(2, 2), [None] * 3
    for t in (2, 1, 0):
        here = torch.tensor([[1.0], [1.0 if t < 2 else 0.0]])
        i, o, f, g = (x[:, t] @ w[0].T + s @ r[0].T).clamp(-0.6, 0.6).chunk(4, 1)
        gate = lambda v: (0.3 * v + 0.4).clamp(0, 1)
        m = gate(f) * c + gate(i) * F.leaky_relu(g, 0.1)
        n = gate(o) * torch.tanh(m.clamp(-0.6, 0.6))
        s, c = here * n + (1 - here) * s, here * m + (1 - here) * c
        rows[t] = here * n
    return torch.sin(torch.stack(rows, 1)).sum() + 12 * s.sum()


def roi_pool(x, rois):
    return torch.stack([x[int(b), :, int(y):int(y2) + 1, int(a):int(a2) + 1].amax((1, 2))
                        for b, a, y, a2, y2 in rois])[:, :, None, None]**2


def more():
    part("Det twice", ["h = Det (x)", "y = Sin (h)"], {"x": arr(2, 3, 3)}, lambda x: torch.sin(torch.linalg.det(x)), ["x"], order=2)
    singular = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, -1.0, 2.0]])
    part("Det of a singular matrix", ["y = Det (x)"], {"x": singular},
         lambda x: x[0, 0] * (x[1, 1] * x[2, 2] - x[1, 2] * x[2, 1]) - x[0, 1] * (x[1, 0] * x[2, 2] - x[1, 2] * x[2, 0])
         + x[0, 2] * (x[1, 0] * x[2, 1] - x[1, 1] * x[2, 0]), ["x"])
    part("Det, large", ["h = Det (x)", "y = Mul (h, h)"], {"x": arr(1, 9, 9)}, lambda x: torch.linalg.det(x)**2, ["x"])
    zeros = arr(2, 4)
    zeros[0, 1] = zeros[1, 2] = zeros[1, 3] = 0
    part("CumProd through zeros, twice", ["h = CumProd (x, a)", "t = Add (h, x)", "y = Mul (t, t)"], {"x": zeros},
         lambda x, a: (torch.cumprod(x, 1) + x)**2, ["x"], {"a": np.array(1, np.int64)}, order=2)
    part("CumProd, exclusive and reverse", ["h = CumProd <exclusive = 1, reverse = 1> (x, a)", "y = Sin (h)"], {"x": arr(3, 2)},
         lambda x, a: torch.sin(torch.stack([x[1] * x[2], x[2], torch.ones(2, dtype=x.dtype)])), ["x"], {"a": np.array(0, np.int64)})
    part("ReduceProd with zeros", ["h = ReduceProd <keepdims = 0> (x, a)", "t = Unsqueeze (h, a)", "s = Add (t, x)", "y = Mul (s, s)"], {"x": zeros},
         lambda x, a: (x.prod(1, keepdim=True) + x)**2, ["x"], {"a": np.array([1], np.int64)})
    grid = arr(1, 2, 3, 2)
    for mode, padding, aligned in (("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0), ("cubic", "zeros", 1),
                                   ("cubic", "reflection", 0)):
        part(f"GridSample, {mode}, {padding}", [f'h = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {aligned}> (x, g)', "y = Sin (h)"],
             {"x": arr(1, 2, 3, 4), "g": grid * 0.9},
             lambda x, g, m=mode, p=padding, a=aligned: torch.sin(F.grid_sample(x, g, "bilinear" if m == "linear" else "bicubic", p, bool(a))), ["x", "g"],
             order=1)
    part("GridSample of a volume", ["h = GridSample (x, g)", "y = Mul (h, h)"], {"x": arr(1, 1, 2, 3, 2), "g": arr(1, 1, 2, 2, 3) * 0.5},
         lambda x, g: F.grid_sample(x, g, align_corners=False)**2, ["x", "g"])
    part("DeformConv", ["h = DeformConv <kernel_shape = [2, 2], pads = [1, 1, 0, 0], group = 2, offset_group = 2> (x, w, o, b, m)", "y = Sin (h)"],
         {"x": arr(1, 4, 3, 4), "w": arr(2, 2, 2, 2), "o": arr(1, 16, 3, 4) * 0.7, "m": arr(1, 8, 3, 4), "b": arr(2)}, deform_conv, ["x", "w", "o", "m", "b"])
    inputs = {n: v.astype(np.float32) for n, v in {"x": arr(2, 3, 2), "w": arr(1, 8, 2), "r": arr(1, 8, 2), "h": arr(2, 1, 2)}.items()}
    part("LSTM, batch first, clipped, ragged, other activations",
         ['a, e = LSTM <hidden_size = 2, layout = 1, clip = 0.6, direction = "reverse", activations = ["HardSigmoid", "LeakyRelu", "Tanh"], '
          'activation_alpha = [0.3, 0.1], activation_beta = [0.4]> (x, w, r, "", n, h)', "s = Sin (a)", "u = ReduceSum <keepdims = 0> (e)", "y = Add (s, u)"],
         inputs, lambda x, w, r, h, n: ragged_lstm(x, w, r, h), ["x", "w", "r", "h"], {"n": np.array([3, 2], np.int32)})
    part("MaxPool, column-major indices", ["h, k = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x)", "y = Mul (h, h)"], {"x": arr(1, 2, 3, 4)},
         lambda x: F.max_pool2d(x, 2, 1)**2, ["x"])
    i = np.array([[2, 0], [2, 1]], np.int64)
    u = arr(2, 2)
    u[0, 1] = 0
    for reduction, name in (("mul", "prod"), ("max", "amax"), ("min", "amin")):
        part(f"ScatterElements, {reduction}", [f'h = ScatterElements <axis = 0, reduction = "{reduction}"> (x, i, u)', "y = Sin (h)"], {"x": arr(3, 2), "u": u},
             lambda x, u, i, name=name: torch.sin(torch.scatter_reduce(x, 0, i, u, name)), ["x", "u"], {"i": i})
    part("ScatterND, mul", ['h = ScatterND <reduction = "mul"> (x, i, u)', "y = Sin (h)"], {"x": arr(3, 2), "u": arr(3, 2)},
         lambda x, u, i: torch.sin(torch.stack([x[0], x[1] * u[0] * u[2], x[2] * u[1]])), ["x", "u"], {"i": np.array([[1], [2], [1]], np.int64)})
    part("Einsum with an ellipsis", ['h = Einsum <equation = "...ij,...jk"> (x, v)', "y = Sin (h)"], {"x": arr(2, 1, 2, 3), "v": arr(3, 3, 2)},
         lambda x, v: torch.sin(torch.einsum("...ij,...jk", x, v)), ["x", "v"])
    part("Einsum with diagonals", ['h = Einsum <equation = "bii,bj->bij"> (x, v)', "y = Sin (h)"], {"x": arr(2, 3, 3), "v": arr(2, 2)},
         lambda x, v: torch.sin(torch.einsum("bii,bj->bij", x, v)), ["x", "v"], order=2)
    part("MaxRoiPool", ["h = MaxRoiPool <pooled_shape = [1, 1]> (x, r)", "y = Mul (h, h)"], {"x": arr(2, 2, 4, 5)}, lambda x, r: roi_pool(x, r.tolist()), ["x"],
         {"r": np.array([[0.0, 0, 1, 2, 3], [1.0, 2, 0, 4, 2]])})
    part("FlexAttention with a captured value",
         ["h = ai.onnx.preview.FlexAttention <scale = 0.4, score_mod = m (double[1,4,3,4] s) => (double[1,4,3,4] t) { t = Mul (s, w) }> (q, k, v)", "y = Sin (h)"],
         {"q": arr(1, 4, 3, 2), "k": arr(1, 2, 4, 2), "v": arr(1, 2, 4, 3), "w": arr(3, 4)},
         lambda q, k, v, w: torch.sin(F.softmax(0.4 * q @ k.repeat_interleave(2, 1).transpose(-1, -2) * w, -1) @ v.repeat_interleave(2, 1)),
         ["q", "k", "v", "w"])


def lstm(x, w, r, b, h, c):
    ys, hs, cs = [], [], []
    for d in range(2):
        s, m, rows = h[d], c[d], [None] * 3
        for t in (range(3) if d == 0 else range(2, -1, -1)):
            i, o, f, g = (x[t] @ w[d].T + s @ r[d].T + b[d, :12] + b[d, 12:]).chunk(4, 1)
            m = torch.sigmoid(f) * m + torch.sigmoid(i) * torch.tanh(g)
            s = torch.sigmoid(o) * torch.tanh(m)
            rows[t] = s
        ys.append(torch.stack(rows)), hs.append(s), cs.append(m)
    y, e, f = torch.stack(ys, 1), torch.stack(hs), torch.stack(cs)
    return torch.sin(y).sum() + y.numel() * ((e * e).sum() + f.sum())


def gru(x, w, r, b, linear):
    h, rows = torch.zeros(2, 3), []
    for t in range(3):
        xz, xr, xh = (x[t] @ w[0].T + b[0, :9]).chunk(3, 1)
        rz, rr, rh = r[0].chunk(3, 0)
        bz, br, bh = b[0, 9:].chunk(3)
        z, q = torch.sigmoid(xz + h @ rz.T + bz), torch.sigmoid(xr + h @ rr.T + br)
        n = torch.tanh(xh + (q * (h @ rh.T + bh) if linear else (q * h) @ rh.T + bh))
        h = (1 - z) * n + z * h
        rows.append(h)
    return torch.sin(torch.stack(rows))


def rnn(x, w, r):
    h = torch.zeros(2, 3)
    for t in (2, 1, 0):
        h = torch.tanh(x[t] @ w[0].T + h @ r[0].T)
    return torch.sin(h)


def causal_conv(x, w, b, p):
    padded = torch.cat([p, x], 2)
    h = F.silu(F.conv1d(padded, w, b, groups=2))
    return torch.sin(h).sum() + h.numel() * (padded[:, :, -2:]**2).sum()


def linear_attention(q, k, v, s, d=None, b=None):
    q, k, v = q.reshape(1, 3, 2, 2, 2), k.reshape(1, 3, 2, 2), v.reshape(1, 3, 2, 3)
    outs = []
    for t in range(3):
        w = v[:, t]
        if d is not None:
            s = s * torch.exp(d.reshape(1, 3, 2, 2)[:, t, :, :, None])
            w = b[:, t, :, None] * (w - (s * k[:, t, :, :, None]).sum(2))
        s = s + k[:, t, :, :, None] * w[:, :, None, :]
        outs.append(q[:, t] @ s / 2**0.5)
    h = torch.stack(outs, 1)
    return torch.sin(h).sum() + h.numel() * s.sum()


def packed_attention(q, k, v, a, b):
    q = q.reshape(1, 2, 4, 3).transpose(1, 2)
    k = torch.cat([a, k.reshape(1, 2, 2, 3).transpose(1, 2)], 2).repeat_interleave(2, 1)
    v = torch.cat([b, v.reshape(1, 2, 2, 2).transpose(1, 2)], 2).repeat_interleave(2, 1)
    mask = torch.arange(3)[None, :] <= torch.arange(2)[:, None] + 1
    return torch.sin((F.softmax((q @ k.transpose(-1, -2) / 3**0.5).masked_fill(~mask, -torch.inf), -1) @ v).transpose(1, 2).reshape(1, 2, 8))


def window_attention(q, k, v, m):
    i, j = torch.arange(3)[:, None], torch.arange(3)[None, :]
    seen = (j >= i - 1) & (j <= i) & m
    return torch.sin(F.softmax((q @ k.transpose(-1, -2) / 2).masked_fill(~seen, -torch.inf), -1) @ v)


def scan_forward(h, x):
    total = 0
    for e in x:
        h = torch.tanh(h + e)
        total = total + (h * e).sum()
    return h + total


if __name__ == "__main__":
    main()
