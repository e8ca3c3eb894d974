#!/usr/bin/env python3
"""Compares the fast kernels with the reference kernels on random one-node models.

    tools/fuzz_kernels.py build/release/tombolo [--count 200] [--seed 0] [--isa avx2]

Needs the packages onnx and numpy. Prints every model whose results differ and keeps it.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T

from fuzz_case import Case, add_to_result, build, floats, numbers, shape, undone
from fuzz_convolutions import conv, conv_clipped, conv_transpose, deform_conv
from fuzz_microsoft import codes_of_microsoft, decoding, experts, gather_block_quantized, group_norm, matmul_nbits, matrices, qlinear_where, small_microsoft
from fuzz_movement import broadcast_several, integer_powers, lp_rows, movement, stepped_slice, topk_many
from fuzz_typed import max_unpool, moments, norms_f64, pool, pool_places, short_floats


def trilu(r):
    c = Case()
    dims = shape(r, r.choice([2, 3]), 40)
    c.add("x", numbers(r, dims, r.choice([np.int32, np.int64, np.uint8])) if r.random() < 0.5 else floats(r, dims))
    if r.random() < 0.7:
        c.add("k", np.array(r.randint(-50, 50)))
    c.attributes = dict(upper=r.choice([0, 1]))
    return "Trilu", c


def pool_long(r):
    c = Case()
    length = r.randint(40, 400)
    c.add("x", floats(r, [2, 3, length]))
    kernel = r.randint(20, length)
    c.attributes = dict(kernel_shape=[kernel], strides=[r.choice([1, 2, 3, kernel])])
    return r.choice(["MaxPool", "AveragePool"]), c


def matmul_integer_batches(r):
    c = Case()
    m, n, k = (r.choice([1, 2, 3, 7, 16, 33, 100]) for _ in range(3))
    ta, tb = r.choice([np.uint8, np.int8]), r.choice([np.uint8, np.int8])
    rng = np.random.default_rng(r.getrandbits(32))
    batch = r.choice([([2, 3], [2, 3]), ([2, 1], [3]), ([1], [4]), ([], [2, 2]), ([5], [1, 5])])
    c.add("a", rng.integers(np.iinfo(ta).min, np.iinfo(ta).max, batch[0] + [m, k], endpoint=True).astype(ta))
    c.add("b", rng.integers(np.iinfo(tb).min, np.iinfo(tb).max, batch[1] + [k, n], endpoint=True).astype(tb), r.random() < 0.4)
    if r.random() < 0.7:
        c.add("az", np.array(5, ta))
        c.add("bz", np.array(3, tb) if r.random() < 0.5 else np.full([n], 7, tb))
    return "MatMulInteger", c


def codes_16(r):
    c = Case()
    dtype = r.choice([np.int16, np.uint16])
    dims = shape(r, r.choice([1, 2, 3]), 60)
    each = r.random() < 0.4
    n = dims[-1] if each else 1
    scale = np.abs(floats(r, [n])) * r.choice([1e-3, 1e-2]) + 1e-5
    zero = numbers(r, [n], dtype)
    if each:
        c.attributes = dict(axis=-1)
    else:
        scale, zero = scale[0], zero[0]
    if r.random() < 0.5:
        c.add("x", floats(r, dims, 3))
        op = "QuantizeLinear"
    else:
        c.add("x", numbers(r, dims, dtype))
        op = "DequantizeLinear"
    c.add("s", scale.astype(np.float32), True)
    c.add("z", zero, True)
    return op, c


def qlinear_conv(r):
    _, f = conv(r)
    f.attributes.pop("auto_pad", None)
    return quantised_conv(r, f.inputs["x"].shape, f.inputs.get("w", f.constants.get("w")).shape, f.attributes)


def qlinear_conv_large(r):
    """As networks have them: many channels, 3x3, 1x1 and depthwise; weights of all sizes."""
    inputs, kernel = r.choice([16, 24, 33, 64, r.randint(16, 130)]), r.choice([1, 3, 3])
    depthwise = kernel == 3 and r.random() < 0.2
    image = [r.choice([1, 3, 7, 14, r.randint(1, 25)]) for _ in range(2)]
    pads = [r.randint(0, 2) if kernel == 3 else 0 for _ in range(4)]
    image = [max(i, kernel) for i in image]
    group = inputs if depthwise else 1
    outputs = inputs if depthwise else r.choice([16, 17, 32, 40])
    return quantised_conv(r, [r.choice([1, 1, 2]), inputs] + image, [outputs, inputs // group, kernel, kernel],
                          dict(group=group, strides=[r.choice([1, 1, 1, 2])] * 2, pads=pads))


def quantised_conv(r, x, w, attributes):
    c = Case()
    c.attributes = attributes
    tx, tw, ty = (r.choice([np.uint8, np.int8]) for _ in range(3))
    info = np.iinfo(tx)
    c.add("x", np.clip(numbers(r, x, tx), info.min, info.max))
    c.add("xs", np.float32(0.02), True)
    c.add("xz", np.array(r.randint(info.min, info.max), tx), True)
    wi = np.iinfo(tw)
    middle = 0 if tw == np.int8 else 128
    rng = np.random.default_rng(r.getrandbits(32))
    if r.random() < 0.5:
        weights = rng.integers(wi.min, wi.max, w, endpoint=True)
    else:
        weights = np.clip(rng.standard_normal(w) * r.choice([1, 20, 50, 500]) + middle, wi.min, wi.max)
    c.add("w", weights.astype(tw), True)
    each = r.random() < 0.5
    n = w[0]
    c.add("ws", np.linspace(0.001, 0.02, n).astype(np.float32) if each else np.float32(0.01), True)
    zeros = rng.integers(wi.min, wi.max, n, endpoint=True).astype(tw) if r.random() < 0.5 else np.full([n], middle, tw)
    c.add("wz", zeros if each else zeros[0], True)
    c.add("ys", np.float32(0.5), True)
    c.add("yz", np.array(3, ty), True)
    if r.random() < 0.5:
        c.add("b", numbers(r, [n], np.int32), True)
    return "QLinearConv", c


def matrix_sizes(r):
    """m, n, k: now and then large enough for products of digits."""
    sizes = [96, 130, 200, 300] if r.random() < 0.2 else [1, 2, 3, 7, 16, 33, 100]
    return [r.choice(sizes) for _ in range(3)]


def matmul(r):
    c = Case()
    batch = shape(r, r.choice([0, 0, 1, 2]), 4)
    m, n, k = matrix_sizes(r)
    constant = r.random() < 0.6
    c.add("a", floats(r, batch + [m, k]))
    c.add("b", floats(r, (batch if r.random() < 0.5 else []) + [k, n]), constant)
    return "MatMul", c


def matmul_turned(r):
    """Many small products, whose right side is turned as a rule."""
    c = Case()
    c.domain = "com.microsoft"
    batch = [r.choice([1, 3, 8, 40])] if r.random() < 0.8 else []
    m, n, k = r.choice([1, 2, 4, 5, 20]), r.choice([1, 4, 17, 64, 65, 300]), r.choice([1, 3, 16, 40, 130])
    turned = r.random() < 0.6
    c.add("a", floats(r, batch + [m, k]))
    c.add("b", floats(r, batch + ([n, k] if turned else [k, n])))
    c.attributes = dict(transB=int(turned), alpha=r.choice([1.0, 0.125]))
    return "FusedMatMul", c


def gemm(r):
    c = Case()
    m, n, k = matrix_sizes(r)
    ta, tb = r.randint(0, 1), r.randint(0, 1)
    c.add("a", floats(r, [k, m] if ta else [m, k]))
    c.add("b", floats(r, [n, k] if tb else [k, n]), r.random() < 0.6)
    if r.random() < 0.7:
        c.add("c", floats(r, r.choice([[n], [1, n], [m, 1], [m, n], [1], []])), r.random() < 0.5)
    c.attributes = dict(transA=ta, transB=tb, alpha=r.choice([1.0, 0.5]), beta=r.choice([1.0, 1.0, 2.0]))
    return "Gemm", c


def matmul_integer(r):
    c = Case()
    m, n, k = matrix_sizes(r)
    if r.random() < 0.1:
        k = r.choice([700, 3000])
    ta, tb = r.choice([np.uint8, np.int8]), r.choice([np.uint8, np.int8])
    c.add("a", np.random.default_rng(r.getrandbits(32)).integers(np.iinfo(ta).min, np.iinfo(ta).max, [2, m, k], endpoint=True).astype(ta))
    c.add("b", np.random.default_rng(r.getrandbits(32)).integers(np.iinfo(tb).min, np.iinfo(tb).max, [k, n], endpoint=True).astype(tb), r.random() < 0.7)
    if r.random() < 0.6:
        c.add("az", np.array(5, ta))
        if r.random() < 0.6:
            c.add("bz", np.array(3, tb) if r.random() < 0.5 else np.full([n], 7, tb))
    return "MatMulInteger", c


def qlinear_matmul(r):
    c = Case()
    m, n, k = matrix_sizes(r)
    if r.random() < 0.1:
        k = r.choice([700, 3000])
    ta, tb, ty = (r.choice([np.uint8, np.int8]) for _ in range(3))
    c.add("a", np.random.default_rng(r.getrandbits(32)).integers(np.iinfo(ta).min, np.iinfo(ta).max, [m, k], endpoint=True).astype(ta))
    c.add("as", np.float32(0.02), True)
    c.add("az", np.array(3, ta), True)
    c.add("b", np.random.default_rng(r.getrandbits(32)).integers(np.iinfo(tb).min, np.iinfo(tb).max, [k, n], endpoint=True).astype(tb), r.random() < 0.7)
    each = r.random() < 0.5
    c.add("bs", np.linspace(0.001, 0.02, n).astype(np.float32) if each else np.float32(0.01), True)
    c.add("bz", np.full([n], 9, tb) if each else np.array(9, tb), True)
    c.add("ys", np.float32(0.5), True)
    c.add("yz", np.array(3, ty), True)
    return "QLinearMatMul", c


UNARY = ["Abs", "Neg", "Relu", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "LeakyRelu", "HardSigmoid", "HardSwish",
         "ThresholdedRelu", "Softsign", "Shrink", "Exp", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Mish", "Elu",
         "Selu", "Celu", "Log", "Sin", "Cos", "Atan", "Asinh", "Acosh", "Atanh", "Asin", "Acos", "Sinh", "Cosh"]


def unary(r):
    c = Case()
    x = floats(r, shape(r, r.randint(0, 4), 40), r.choice([1, 1, 10]))
    if x.size > 4 and r.random() < 0.4:
        x.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    op = r.choice(UNARY)
    if r.random() < 0.3 and op not in ("Round",):
        x = x.astype(np.float16)
    c.add("x", x)
    return op, c


def clip(r):
    c = Case()
    c.add("x", floats(r, shape(r, r.randint(0, 4), 40), 3))
    c.add("lo", np.float32(-1)) if r.random() < 0.7 else c.skip()
    c.add("hi", np.float32(2)) if r.random() < 0.7 else c.skip()
    return "Clip", c


def binary(r):
    c = Case()
    dims = shape(r, r.randint(0, 4), 40)
    other = [d if r.random() < 0.6 else 1 for d in dims][r.randint(0, len(dims)):]
    pair = [dims, other]
    op = r.choice(["Add", "Sum", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Pow", "Equal", "Less", "LessOrEqual", "Greater",
                   "GreaterOrEqual", "And", "Or", "Xor", "Where"])
    if op != "PRelu" and r.random() < 0.5:
        pair.reverse()
    if op in ("And", "Or", "Xor"):
        values = [numbers(r, d, np.int32) > 0 for d in pair]
    elif r.random() < 0.3 and op not in ("PRelu", "Pow", "Div", "Sum"):
        dtype = r.choice([np.int32, np.int64])
        values = [numbers(r, d, dtype) // 100 for d in pair]
    else:
        values = [floats(r, d, 3) for d in pair]
        if values[0].size > 4 and r.random() < 0.3:
            values[0].flat[:3] = [np.nan, np.inf, -np.inf]
        if op == "Pow" and r.random() < 0.5:
            values[0] = np.abs(values[0])
        if r.random() < 0.2 and op != "Pow":
            values = [v.astype(np.float16) for v in values]
    if op == "Where":
        c.add("c", numbers(r, r.choice([dims, other]), np.int32) > 0)
    for name, value in zip("ab", values):
        c.add(name, value)
    return op, c


def lines(r):
    c = Case()
    op = r.choice(["Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"])
    dims = shape(r, r.randint(1, 4), 40)
    x = floats(r, dims, 3)
    half = r.random() < 0.2
    axis = r.randint(-len(dims), len(dims) - 1)
    c.attributes = dict(axis=axis)
    wide = "Softmax" in op and r.random() < 0.3
    c.add("x", x.astype(np.float64) if wide else x.astype(np.float16) if half else x)
    if "Norm" in op:
        scale = floats(r, dims[axis:])
        c.add("s", scale.astype(np.float16) if half else scale)
        if op[0] == "L" and r.random() < 0.7:
            bias = floats(r, dims[axis:])
            c.add("b", bias.astype(np.float16) if half else bias)
    return op, c


def channels(r):
    c = Case()
    op = r.choice(["InstanceNormalization", "GroupNormalization", "BatchNormalization", "LRN"])
    n = r.choice([2, 4, 6, 12])
    dims = [r.randint(1, 2), n] + shape(r, r.randint(1, 3), 12)
    c.add("x", floats(r, dims))
    if op == "LRN":
        c.attributes = dict(size=r.choice([1, 3, 4, 5]), beta=r.choice([0.75, 0.5, 1.0, 0.6]), alpha=0.5, bias=r.choice([1.0, 2.0]))
        return op, c
    c.add("s", floats(r, [n]))
    c.add("b", floats(r, [n]))
    if op == "GroupNormalization":
        c.attributes = dict(num_groups=r.choice([1, 2, n]))
    if op == "BatchNormalization":
        c.add("m", floats(r, [n]))
        c.add("v", np.abs(floats(r, [n])) + np.float32(0.1))
    return op, c


def reduce(r):
    c = Case()
    dims = shape(r, r.randint(1, 5), 40 if r.random() < 0.5 else 7)
    if r.random() < 0.1:
        dims = [r.choice([1, 2, 5]), r.choice([4096, 4098, 30000]), r.choice([1, 3, 20])]
    op = r.choice(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum"])
    x = floats(r, dims)
    c.add("x", np.abs(x) if op == "LogSum" else x)
    axes = r.sample(range(len(dims)), r.randint(1, len(dims)))
    if r.random() < 0.8:
        c.add("axes", np.array(axes, np.int64), True)
    c.attributes = dict(keepdims=r.randint(0, 1))
    return "Reduce" + op, c


def transpose(r):
    c = Case()
    dims = shape(r, r.randint(1, 5), 40 if r.random() < 0.4 else 9)
    dtype = r.choice([np.float32, np.float32, np.int64, np.uint8, np.float16])
    c.add("x", (np.arange(np.prod(dims)) % 251).reshape(dims).astype(dtype))
    perm = list(range(len(dims)))
    r.shuffle(perm)
    c.attributes = dict(perm=perm)
    return "Transpose", c


def quantize(r):
    c = Case()
    dims = shape(r, r.randint(1, 4), 40)
    dtype = r.choice([np.uint8, np.int8])
    axis = r.randrange(len(dims))
    each = r.random() < 0.4
    scale = np.linspace(0.05, 0.2, dims[axis]).astype(np.float32) if each else np.float32(0.1)
    zero = np.full([dims[axis]], 3, dtype) if each else np.array(3, dtype)
    op = r.choice(["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"])
    if op[0] == "D" and op[1] == "y":
        c.add("x", floats(r, dims, 3))
        c.outputs = 3
        return op, c
    half = op[0] == "Q" and r.random() < 0.3
    c.add("x", floats(r, dims, 10).astype(np.float16 if half else np.float32) if op[0] == "Q" else numbers(r, dims, dtype))
    c.add("s", scale.astype(np.float16) if half else scale)
    if r.random() < 0.8 or (op[0] == "Q" and dtype == np.int8):
        c.add("z", zero)
    c.attributes = dict(axis=axis)
    return op, c


def attention(r):
    c = Case()
    batch, kv, group = r.randint(1, 2), r.choice([1, 2, 3]), r.choice([1, 1, 2, 4])
    rows, columns, size, value = r.choice([1, 2, 5, 33]), r.choice([1, 3, 17, 40]), r.choice([4, 16, 20, 64]), r.choice([4, 16, 20, 64])
    if r.random() < 0.2:  # large enough for products of digits
        rows, columns, size, value = r.choice([40, 130, 290]), r.choice([192, 257, 400]), r.choice([48, 64, 100]), r.choice([48, 64, 80])
    heads = kv * group
    packed = r.random() < 0.4
    past = r.choice([0, 0, 7]) if r.random() < 0.5 else None
    shape4 = lambda h, t, d: [batch, t, h * d] if packed else [batch, h, t, d]
    c.add("q", floats(r, shape4(heads, rows, size)))
    c.add("k", floats(r, shape4(kv, columns, size)))
    c.add("v", floats(r, shape4(kv, columns, value)))
    total = columns + (past or 0)
    if r.random() < 0.5:
        dims = r.choice([[rows, total], [batch, 1, rows, total], [batch, heads, rows, total], [1, 1, 1, total]])
        c.add("m", floats(r, dims) if r.random() < 0.5 else floats(r, dims) > -0.5)
    else:
        c.skip()
    if past is not None:
        c.add("pk", floats(r, [batch, kv, past, size]))
        c.add("pv", floats(r, [batch, kv, past, value]))
        c.outputs = 3
    c.attributes = dict(is_causal=r.randint(0, 1), softcap=r.choice([0.0, 0.0, 5.0]))
    if packed:
        c.attributes.update(q_num_heads=heads, kv_num_heads=kv)
    return "Attention", c


def recurrent(r):
    c = Case()
    op, gates = r.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    steps, batch, width, hidden = r.choice([1, 2, 3, 5, 7, 20]), r.choice([1, 2, 5, 17, 40]), r.choice([1, 5, 20]), r.choice([1, 3, 16, 40, 130])
    direction = r.choice(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    major, constant = r.random() < 0.3, r.random() < 0.8
    c.add("x", floats(r, [batch, steps, width] if major else [steps, batch, width]))
    c.add("w", floats(r, [d, gates * hidden, width], 0.5), constant)
    c.add("r", floats(r, [d, gates * hidden, hidden], min(0.3, 0.9 / hidden ** 0.5)), constant or r.random() < 0.5)
    c.add("b", floats(r, [d, 2 * gates * hidden]), True) if r.random() < 0.7 else c.skip()
    c.add("l", np.random.default_rng(r.getrandbits(32)).integers(0, steps + 1, batch).astype(np.int32)) if r.random() < 0.3 else c.skip()
    state = [batch, d, hidden] if major else [d, batch, hidden]
    peepholes = op == "LSTM" and r.random() < 0.4
    if r.random() < 0.5:
        c.add("h", floats(r, state))
        if op == "LSTM":
            c.add("c", floats(r, state))
    elif peepholes:
        c.skip()
        c.skip()
    if peepholes:
        c.add("p", floats(r, [d, 3 * hidden]), True)
    c.attributes = dict(hidden_size=hidden, direction=direction, layout=int(major))
    if op == "GRU":
        c.attributes["linear_before_reset"] = r.randint(0, 1)
    if op == "LSTM" and r.random() < 0.2:
        c.attributes["input_forget"] = 1
    if r.random() < 0.3:
        c.attributes["clip"] = 0.7
    if r.random() < 0.5:
        names = ["Elu", "Sigmoid", "HardSigmoid", "Tanh", "Relu", "Softsign", "ScaledTanh", "LeakyRelu"]
        c.attributes["activations"] = [r.choice(names[3:8] if i or gates == 1 else names[1:3]) for _ in range(d) for i in range({4: 3, 3: 2, 1: 1}[gates])]
        if r.random() < 0.5:
            c.attributes.update(activation_alpha=[0.3, 0.4], activation_beta=[0.2, 0.6])
    c.outputs = 3 if op == "LSTM" else 2
    return op, c


def einsum(r):
    c = Case()
    dtype = r.choice([np.float32, np.float32, np.float64, np.int32, np.int64])
    size = {letter: r.choice([1, 2, 3, 5, 8, 17]) for letter in "abcdijkZ"}
    front = [r.choice([2, 3]) for _ in range(r.randint(0, 2))]
    terms, spread = [], r.random() < 0.4
    for i in range(r.choice([1, 2, 2, 2, 3, 3, 4])):
        letters = "".join(r.sample("abcdijkZ"[: r.choice([3, 5, 8])], r.randint(1, 3)))
        dims = [1 if r.random() < 0.08 else size[x] for x in letters]
        while r.random() < 0.2 and len(letters) < 5:  # a diagonal
            again, at = r.randrange(len(letters)), r.randint(0, len(letters))
            letters, dims = letters[:at] + letters[again] + letters[at:], dims[:at] + [dims[again]] + dims[at:]
        if spread and r.random() < 0.7:
            own = front[r.randint(0, len(front)):] if r.random() < 0.3 else front
            at = r.choice([0, len(letters)])
            letters, dims = letters[:at] + "..." + letters[at:], dims[:at] + own + dims[at:]
        terms.append(letters)
        values = numbers(r, dims, dtype) % 50 if dtype in (np.int32, np.int64) else floats(r, dims).astype(dtype)
        c.add(f"x{i}", values)
    equation = ",".join(terms)
    if r.random() < 0.8:
        used = sorted(set(equation) - set(",."))
        out = "".join(r.sample(used, r.randint(0, min(4, len(used)))))
        equation += "->" + ("..." if "." in equation else "") + out
    c.attributes = dict(equation=equation)
    return "Einsum", c


def typed_binary(r):
    """Integers, doubles and bools: arithmetic, comparison, bits, remainders."""
    c = Case()
    dims = shape(r, r.randint(0, 3), 40)
    other = [d if r.random() < 0.6 else 1 for d in dims][r.randint(0, len(dims)):]
    op = r.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Equal", "Less", "GreaterOrEqual", "Pow"])
    dtype = r.choice([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
    if op in ("Max", "Min", "Equal", "Less", "Add", "Mul") and r.random() < 0.2:
        dtype = np.float64
    rng = np.random.default_rng(r.getrandbits(32))

    def values(d):
        if dtype == np.float64:
            return rng.standard_normal(d)
        info = np.iinfo(dtype)
        top = r.choice([10, 1000, info.max])
        return rng.integers(max(info.min, -top - 1), min(info.max, top), d, endpoint=True, dtype=dtype)

    a, b = values(dims), values(other)
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.array(3, dtype), b).astype(dtype)
        if op == "Mod" and r.random() < 0.5:
            c.attributes = dict(fmod=1)
            if r.random() < 0.4:
                a, b = (v.astype(np.float32) * np.float32(0.7) for v in (a, b))
                if b.size > 3:
                    b.flat[:2] = [0, np.inf]
    if op == "BitShift":
        c.attributes = dict(direction=r.choice(["LEFT", "RIGHT"]))
        b = (rng.integers(0, 70, other) % 127).astype(dtype)
    if op == "Pow":
        a = a.astype(r.choice([np.int32, np.int64]))
        b = np.array(r.choice([0, 1, 2, 3, 7]), np.int64)
    c.add("a", np.asarray(a))
    c.add("b", np.asarray(b), op == "Pow")
    return op, c


def typed_unary(r):
    c = Case()
    op = r.choice(["Abs", "Neg", "Sign", "Relu", "BitwiseNot", "Exp", "Log", "IsNaN", "IsInf", "Cast", "Cast", "Tan"])
    dims = shape(r, r.randint(0, 3), 40)
    dtype = r.choice([np.int8, np.int16, np.int32, np.int64])
    if op in ("Exp", "Log"):
        dtype = np.float64
    if op in ("IsNaN", "IsInf", "Tan"):
        dtype = np.float32
    if op == "Cast":
        dtype = r.choice([np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float32, np.float64, np.bool_])
        c.attributes = dict(to=int(r.choice([T.FLOAT, T.DOUBLE, T.FLOAT16, T.UINT16, T.UINT32, T.UINT64, T.INT8, T.UINT8, T.INT16, T.INT32, T.INT64, T.BOOL])))
    x = floats(r, dims, r.choice([1, 100, 1e10]))
    if x.size > 6 and np.dtype(dtype).kind == "f":
        x.flat[:6] = [np.nan, np.inf, -np.inf, -0.0, 2.0**31, -(2.0**63)]
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = np.random.default_rng(r.getrandbits(32)).integers(info.min, info.max, dims, endpoint=True, dtype=dtype)
    if op == "IsInf":
        c.attributes = dict(detect_negative=r.randint(0, 1), detect_positive=r.randint(0, 1))
    c.add("x", np.asarray(x).astype(dtype))
    return op, c


def several(r):
    c = Case()
    dims = shape(r, r.randint(0, 3), 40)
    for i in range(r.choice([2, 3, 5])):
        c.add(f"x{i}", floats(r, dims))
    return r.choice(["Max", "Min", "Sum", "Mean"]), c


def typed_reduce(r):
    c = Case()
    dims = shape(r, r.randint(1, 4), 40 if r.random() < 0.5 else 7)
    if r.random() < 0.2:
        dims = [r.randint(2, 9), r.choice([300, 513])]
    op = r.choice(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"])
    dtype = r.choice([np.float32, np.float64, np.int32, np.int64])
    if op in ("LogSumExp", "LogSum"):
        dtype = r.choice([np.float32, np.float64])
    if op in ("Max", "Min") and r.random() < 0.5:
        dtype = r.choice([np.uint8, np.int8, np.bool_])
    x = floats(r, dims, 3)
    x = numbers(r, dims, dtype) if np.dtype(dtype).kind in "iu" and r.random() < 0.7 else (np.abs(x) if dtype == np.uint8 else x).astype(dtype)
    if op == "LogSum":
        x = np.abs(x)
    if op == "LogSumExp" and x.size > 3 and r.random() < 0.3:
        x.flat[:2] = [np.inf, -np.inf]
    c.add("x", x)
    axes = r.sample(range(len(dims)), r.randint(1, len(dims)))
    if r.random() < 0.8:
        c.add("axes", np.array(axes, np.int64), True)
    c.attributes = dict(keepdims=r.randint(0, 1))
    return "Reduce" + op, c


def wide_matmul(r):
    c = Case()
    dtype = r.choice([np.float64, np.int32, np.uint32, np.int64, np.uint64])
    rng = np.random.default_rng(r.getrandbits(32))
    make = lambda d: rng.standard_normal(d) if dtype == np.float64 else rng.integers(0, 1 << r.choice([4, 31]), d).astype(dtype)
    m, n, k = (r.choice([1, 2, 3, 7, 16, 33, 100, 300]) for _ in range(3))
    if dtype == np.float64 and r.random() < 0.4:
        ta, tb = r.randint(0, 1), r.randint(0, 1)
        c.add("a", make([k, m] if ta else [m, k]))
        c.add("b", make([n, k] if tb else [k, n]))
        if r.random() < 0.7:
            c.add("c", make(r.choice([[n], [1, n], [m, 1], [m, n], [1], []])))
        c.attributes = dict(transA=ta, transB=tb, alpha=r.choice([1.0, 0.5]), beta=r.choice([1.0, 2.0]))
        return "Gemm", c
    batch = shape(r, r.choice([0, 0, 1, 2]), 4)
    a, b = batch + [m, k], ([d if r.random() < 0.7 else 1 for d in batch] if r.random() < 0.5 else []) + [k, n]
    if r.random() < 0.2:
        a = [k]
    c.add("a", make(a))
    c.add("b", make(b))
    return "MatMul", c


def signal(r):
    c = Case()
    dtype = r.choice([np.float32, np.float32, np.float64])
    if r.random() < 0.15:
        n = r.choice([2, 7, 8, 9, 16, 21, 40])
        c.add("x", floats(r, shape(r, r.choice([0, 1, 2]), 3) + [n, n], 0.7).astype(dtype))
        return "Det", c
    if r.random() < 0.4:
        length, step = r.choice([1, 2, 8, 15, 31, 64, 100]), r.choice([1, 3, 10])
        c.add("x", floats(r, [r.randint(1, 3), length + r.randint(0, 90), r.choice([1, 2])]).astype(dtype))
        c.add("step", np.array(step), True)
        if r.random() < 0.6:
            c.add("window", floats(r, [length]).astype(dtype), r.random() < 0.5)
        else:
            c.skip()
        c.add("length", np.array(length), True)
        c.attributes = dict(onesided=r.randint(0, 1))
        if c.inputs["x"].shape[2] == 2:
            c.attributes = dict(onesided=0)
        return "STFT", c
    inverse, onesided = r.randint(0, 1), r.randint(0, 1)
    parts = 2 if inverse and onesided else 1 if onesided else r.choice([1, 2])
    dims = shape(r, r.randint(1, 3), 9)
    axis = r.randrange(len(dims))
    dims[axis] = r.choice([2, 3, 4, 5, 7, 8, 11, 13, 17, 30, 64, 97, 100, 121])
    c.add("x", floats(r, dims + [parts]).astype(dtype))
    c.add("n", np.array(r.choice([dims[axis], dims[axis] + 3, max(2, dims[axis] - 2)])), True) if r.random() < 0.5 else c.skip()
    c.add("axis", np.array(axis), True)
    c.attributes = dict(inverse=inverse, onesided=onesided)
    return "DFT", c


def norms(r):
    c = Case()
    dims = shape(r, r.randint(1, 4), 70)
    c.add("x", floats(r, dims, 3))
    if r.random() < 0.5:
        c.attributes = dict(axis=r.randint(-len(dims), len(dims) - 1), p=r.choice([1, 2]))
        return "LpNormalization", c
    c.attributes = dict(axes=r.sample(range(len(dims)), r.randint(1, len(dims))))
    return "MeanVarianceNormalization", c


def selection(r):
    c = Case()
    rng = np.random.default_rng(r.getrandbits(32))
    op = r.choice(["Hardmax", "TopK", "TopK", "Unique", "GatherElements", "Gather", "NonZero", "Compress", "ScatterElements", "ScatterND", "CumSum", "OneHot", "ArgMax", "ArgMin"])
    dims = shape(r, r.randint(1, 3), 300 if r.random() < 0.3 else 40)
    axis = r.randrange(len(dims))
    dtype = r.choice([np.float32, np.float32, np.float64, np.int32, np.int64, np.uint8])
    x = (floats(r, dims, 3) if r.random() < 0.6 else np.round(floats(r, dims, 2)) + np.float32(0)).astype(np.float32)
    if x.size > 5 and r.random() < 0.3:
        x.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    elif op != "Hardmax":
        x = np.abs(x).astype(dtype) if dtype == np.uint8 else x.astype(dtype)
    if op == "Hardmax":
        c.add("x", x)
        c.attributes = dict(axis=-1 if r.random() < 0.7 else axis)
    elif op == "TopK":
        c.add("x", x)
        c.add("k", np.array([r.randint(1, dims[axis])]), r.random() < 0.8)
        c.attributes = dict(axis=axis, largest=r.randint(0, 1))
        c.outputs = 2
    elif op.startswith("Arg"):
        types = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
        c.add("x", numbers(r, dims, r.choice(types)) if r.random() < 0.6 else x)
        c.attributes = dict(axis=axis, keepdims=r.randint(0, 1), select_last_index=r.randint(0, 1))
    elif op == "Unique":
        c.add("x", x)
        c.attributes = dict(sorted=r.randint(0, 1))
        c.outputs = 4
    elif op == "GatherElements":
        c.add("x", x)
        other = list(dims)
        other[axis] = r.randint(1, 20)
        c.add("i", rng.integers(-dims[axis], dims[axis], other))
        c.attributes = dict(axis=axis)
    elif op == "Gather":
        c.add("x", x)
        c.add("i", rng.integers(-dims[axis], dims[axis], shape(r, r.randint(0, 2), 9)).astype(r.choice([np.int32, np.int64])))
        c.attributes = dict(axis=axis)
    elif op == "NonZero":
        c.add("x", x if r.random() < 0.5 else x > 0)
    elif op == "Compress":
        c.add("x", x)
        c.add("c", rng.random(dims[axis]) > 0.5)
        c.attributes = dict(axis=axis)
    elif op == "ScatterElements":
        x = np.abs(np.nan_to_num(x)) if x.dtype.kind == "f" else x
        c.add("x", x)
        c.add("i", rng.integers(-dims[axis], dims[axis], dims))
        c.add("u", np.asarray(rng.integers(0, 9, dims)).astype(x.dtype))
        c.attributes = dict(axis=axis, reduction=r.choice(["none", "add", "mul", "max", "min"]))
    elif op == "ScatterND":
        x = np.nan_to_num(x) if x.dtype.kind == "f" else x
        c.add("x", x)
        c.add("i", rng.integers(0, dims[0], [5, 1]))
        c.add("u", np.asarray(rng.integers(0, 9, [5] + dims[1:])).astype(x.dtype))
        c.attributes = dict(reduction=r.choice(["none", "add", "mul", "max", "min"]))
    elif op == "CumSum":
        x = np.nan_to_num(x, posinf=1, neginf=-1).astype(r.choice([np.float32, np.float64, np.int32, np.int64]))
        c.add("x", x)
        c.add("axis", np.array(axis), r.random() < 0.8)
        c.attributes = dict(reverse=r.randint(0, 1), exclusive=r.randint(0, 1))
    else:
        c.add("i", rng.integers(-6, 6, dims))
        c.add("depth", np.array(6))
        c.add("v", np.array([0, 1], r.choice([np.float32, np.int64])))
        c.attributes = dict(axis=r.randint(-1, len(dims)))
    return op, c


def images(r):
    c = Case()
    op = r.choice(["GridSample", "GridSample", "Col2Im", "MaxUnpool", "Resize", "Resize", "SpaceToDepth", "DepthToSpace", "AffineGrid"])
    if op == "GridSample":
        axes = r.choice([1, 2, 2, 3])
        image, points = shape(r, axes, 9), shape(r, axes, 12)
        n = r.randint(1, 2)
        c.add("x", floats(r, [n, r.randint(1, 4)] + image))
        grid = floats(r, [n] + points + [axes], 0.8)
        if r.random() < 0.4:
            grid = np.round(grid * 2) / 2
        c.add("grid", grid.astype(np.float32))
        c.attributes = dict(mode=r.choice(["linear", "nearest", "cubic"]), padding_mode=r.choice(["zeros", "border", "reflection"]), align_corners=r.randint(0, 1))
    elif op == "Col2Im":
        axes = r.choice([1, 2, 2, 3])
        image, block = [r.randint(4, 12) for _ in range(axes)], [r.randint(1, 3) for _ in range(axes)]
        strides, dilations, pads = ([r.randint(low, high) for _ in range(n)] for low, high, n in ((1, 3, axes), (1, 2, axes), (0, 2, 2 * axes)))
        if any(d * (b - 1) + 1 > i for d, b, i in zip(dilations, block, image)):
            dilations = [1] * axes
        blocks = [(i + pads[j] + pads[axes + j] - d * (b - 1) - 1) // s + 1 for j, (i, b, d, s) in enumerate(zip(image, block, dilations, strides))]
        c.add("x", floats(r, [r.randint(1, 2), r.randint(1, 3) * int(np.prod(block)), int(np.prod(blocks))]).astype(r.choice([np.float32, np.float64])))
        c.add("i", np.array(image), True)
        c.add("b", np.array(block), True)
        c.attributes = dict(strides=strides, dilations=dilations, pads=pads)
    elif op == "MaxUnpool":
        dims = [r.randint(1, 2), r.randint(1, 3), r.randint(1, 6), r.randint(1, 6)]
        size = int(np.prod(dims)) * 4
        c.add("x", floats(r, dims))
        c.add("i", np.random.default_rng(r.getrandbits(32)).permutation(size)[: size // 4].reshape(dims))
        c.attributes = dict(kernel_shape=[2, 2], strides=[2, 2])
    elif op == "Resize":
        dims = [1, r.randint(1, 3), r.randint(1, 12), r.randint(1, 12)]
        dtype = r.choice([np.float32, np.float32, np.uint8, np.int32, np.float64])
        x = np.abs(floats(r, dims, 50)).astype(dtype)
        c.add("x", x)
        crop = r.random() < 0.25
        c.add("roi", np.array([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1], np.float32), True) if crop else c.skip()
        if r.random() < 0.5:
            c.add("s", np.array([1, 1, r.choice([0.6, 1, 2, 3]), r.choice([0.5, 1.7, 2, 3])], np.float32), True)
        else:
            c.skip()
            c.add("n", np.array(dims[:2] + [r.randint(1, 25), r.randint(1, 25)]), True)
        c.attributes = dict(mode=r.choice(["nearest", "linear", "cubic"]))
        if crop:
            c.attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
        elif r.random() < 0.5:
            c.attributes["coordinate_transformation_mode"] = r.choice(["asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])
        if c.attributes["mode"] != "nearest" and r.random() < 0.3:
            c.attributes["antialias"] = 1
    elif op == "AffineGrid":
        axes, dtype = r.choice([2, 3]), r.choice([np.float32, np.float64])
        c.add("t", floats(r, [2, axes, axes + 1]).astype(dtype))
        c.add("n", np.array([2, 1] + [r.choice([1, 2, 5, 9, 16, 33]) for _ in range(axes)]), r.random() < 0.5)
        c.attributes = dict(align_corners=r.randint(0, 1))
    else:
        b = r.choice([2, 2, 3, 4])
        dims = [r.randint(1, 2), r.randint(1, 3), r.randint(1, 5), r.randint(1, 9)]
        dims = dims[:2] + [d * b for d in dims[2:]] if op[0] == "S" else [dims[0], dims[1] * b * b] + dims[2:]
        c.add("x", (np.arange(np.prod(dims)) % 251).reshape(dims).astype(r.choice([np.float32, np.uint8, np.int64])))
        c.attributes = dict(blocksize=b)
    return op, c


def pool_more(r):
    op, c = pool(r)
    x = c.inputs["x"]
    kind = r.choice(["u8", "i8", "lp", "nan", "dilate"])
    if op == "MaxPool" and kind in ("u8", "i8"):
        c.inputs["x"] = np.clip(x * 60, 0, 250).astype(np.uint8) if kind == "u8" else np.clip(x * 60, -120, 120).astype(np.int8)
    elif kind == "lp" and op in ("MaxPool", "AveragePool"):
        c.attributes.pop("count_include_pad", None)
        c.attributes["p"] = r.choice([1, 2, 3])
        return "LpPool", c
    elif kind == "nan":
        x.flat[0] = np.nan
    elif kind == "dilate" and op == "MaxPool" and "auto_pad" not in c.attributes:
        c.attributes["dilations"] = [2 if (k - 1) * 2 + 1 <= d else 1 for k, d in zip(c.attributes["kernel_shape"], x.shape[2:])]
    return op, c


def rotary(r):
    c = Case()
    c.domain = r.choice(["", "com.microsoft"])
    batch, heads, steps, half = r.randint(1, 2), r.randint(1, 3), r.randint(1, 5), r.choice([1, 4, 8, 17, 32])
    size = 2 * half + (r.choice([0, 0, 6]) if c.domain == "" else 0)
    packed = r.random() < 0.4
    c.add("x", floats(r, [batch, steps, heads * size] if packed else [batch, heads, steps, size]))
    positions = np.random.default_rng(r.getrandbits(32)).integers(0, 9, [batch, steps])
    if c.domain:
        c.add("p", positions)
    by_position = c.domain != "" or r.random() < 0.5
    for name in "cs":
        c.add(name, floats(r, [9, half] if by_position else [batch, steps, half]))
    if c.domain == "" and by_position:
        c.add("p", positions)
    c.attributes = dict(interleaved=r.randint(0, 1))
    if packed:
        c.attributes["num_heads"] = heads
    if size != 2 * half or (packed and c.domain):
        c.attributes["rotary_embedding_dim"] = 2 * half
    return "RotaryEmbedding", c


def regions(r):
    c = Case()
    if r.random() < 0.5:
        n, count = r.randint(1, 2), r.randint(1, 4)
        side = r.choice([9, 9, 60])
        c.add("x", floats(r, [n, r.choice([1, 5, 16, 40, 70]), r.randint(1, side), r.randint(1, side)]))
        if r.random() < 0.2:  # also where samples lie outside
            c.inputs["x"].flat[0] = r.choice([np.nan, np.inf])
        rois = np.sort(np.random.default_rng(r.getrandbits(32)).random([count, 2, 2]) * r.choice([11, side + 2]) - 1, axis=1).reshape(count, 4)
        if r.random() < 0.15:
            rois = rois[:, ::-1]
        c.add("rois", rois.astype(np.float32))
        c.add("b", np.random.default_rng(r.getrandbits(32)).integers(0, n, count))
        c.attributes = dict(output_height=r.randint(1, 8), output_width=r.randint(1, 8), sampling_ratio=r.choice([0, 1, 2, 3]), mode=r.choice(["avg", "max"]),
                            spatial_scale=r.choice([1.0, 0.5]), coordinate_transformation_mode=r.choice(["half_pixel", "output_half_pixel"]))
        return "RoiAlign", c
    rng = np.random.default_rng(r.getrandbits(32))
    count = r.choice([1, 7, 60, 400])
    c.add("boxes", rng.random([1, count, 4]).astype(np.float32))
    c.add("scores", np.round(rng.random([1, r.randint(1, 3), count]), 2).astype(np.float32))
    c.add("most", np.array(r.choice([1, 5, 100])))
    c.add("iou", np.float32(r.choice([0.1, 0.5])))
    if r.random() < 0.5:
        c.add("least", np.float32(0.3))
    return "NonMaxSuppression", c


def models(r):
    """Classical models of ai.onnx.ml."""
    c = Case()
    c.domain = "ai.onnx.ml"
    rows, features = r.choice([1, 3, 9, 50]), r.choice([1, 4, 17, 30])
    x = floats(r, [rows, features])
    rng = np.random.default_rng(r.getrandbits(32))
    op = r.choice(["LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier", "Scaler", "Normalizer", "Imputer", "Binarizer", "LabelEncoder", "OneHotEncoder"])
    transform = r.choice(["NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
    some = lambda n: [float(v) for v in rng.standard_normal(n).astype(np.float32)]
    if op == "LinearRegressor":
        targets = r.choice([1, 2, 5])
        c.attributes = dict(coefficients=some(targets * features), targets=targets, post_transform=transform)
        if r.random() < 0.7:
            c.attributes["intercepts"] = some(targets)
    elif op == "LinearClassifier":
        classes = r.choice([2, 3, 5])
        c.attributes = dict(coefficients=some(classes * features), intercepts=some(classes), classlabels_ints=[7 * i for i in range(classes)], post_transform=transform)
        c.outputs = 2
    elif op == "SVMRegressor":
        n = r.choice([1, 5, 40])
        c.attributes = dict(coefficients=some(n), support_vectors=some(n * features), n_supports=n, rho=some(1), kernel_type=r.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]), kernel_params=[0.1, 0.5, 2.0], one_class=r.choice([0, 0, 1]))
    elif op == "SVMClassifier":
        classes = r.choice([2, 3, 4])
        sizes, pairs = [r.choice([1, 3, 30]) for _ in range(classes)], classes * (classes - 1) // 2
        n = sum(sizes)
        c.attributes = dict(coefficients=some(n * (classes - 1)), support_vectors=some(n * features), vectors_per_class=sizes, rho=some(pairs), kernel_type=r.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]),
                            kernel_params=[0.05, 0.5, r.choice([2.0, 3.0])], classlabels_ints=[7 * i for i in range(classes)], post_transform=transform)
        c.attributes.update(dict(prob_a=some(pairs), prob_b=some(pairs)) if r.random() < 0.5 else {})
        c.outputs = 2
    elif op == "Scaler":
        c.attributes = dict(offset=some(r.choice([1, features])), scale=some(r.choice([1, features])))
    elif op == "Normalizer":
        c.attributes = dict(norm=r.choice(["MAX", "L1", "L2"]))
        x[0] *= r.random() < 0.7
    elif op == "Imputer":
        x = np.round(x).astype(r.choice([np.float32, np.float64, np.int64]))
        c.attributes = dict(imputed_value_floats=some(r.choice([1, features])), replaced_value_float=r.choice([0.0, 1.0, float("nan")]))
        if x.dtype == np.int64:
            c.attributes = dict(imputed_value_int64s=[5 * i for i in range(r.choice([1, features]))], replaced_value_int64=1)
        else:
            x[0, 0] = np.nan
    elif op == "Binarizer":
        c.attributes = dict(threshold=0.2)
    else:
        x = rng.integers(-3, 12, [rows, features])
        keys = sorted(set(int(v) for v in rng.integers(-5, 12, 6))) if r.random() < 0.7 else [1, 5, 1 << 40, -7]
        if op == "LabelEncoder":
            c.attributes = dict(keys_int64s=keys, values_floats=some(len(keys)), default_float=0.5)
            if r.random() < 0.5:
                step = r.choice([1.0, 0.5])
                x = (x * step).astype(np.float32)
                c.attributes = dict(keys_floats=[step * k for k in keys], values_floats=some(len(keys)), default_float=0.5)
        else:
            c.attributes = dict(cats_int64s=keys)
    if op in ("LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier", "Scaler", "Normalizer"):
        x = x.astype(r.choice([np.float32, np.float32, np.float64, np.int64, np.int32]))
    c.add("x", x)
    return op, c


def distances(r):
    c = Case()
    c.domain = "com.microsoft"
    width = r.choice([1, 3, 20, 70])
    c.attributes = dict(metric=r.choice(["euclidean", "sqeuclidean"]))
    dtype = r.choice([np.float32, np.float64, np.float64])
    c.add("a", floats(r, [r.choice([1, 3, 9, 40]), width]).astype(dtype))
    c.add("b", floats(r, [r.choice([1, 30, 64, 100]), width]).astype(dtype))
    return "CDist", c


def loss(r):
    c = Case()
    op = r.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    dims = [r.choice([1, 4, 33]), r.choice([1, 2, 17, 300])] + [r.choice([1, 3, 20]) for _ in range(r.choice([0, 0, 1, 2]))]
    c.attributes = dict(reduction=r.choice(["none", "sum", "mean"]))
    targets = np.random.default_rng(r.getrandbits(32)).integers(0, dims[1], dims[:1] + dims[2:])
    if r.random() < 0.5:
        c.attributes["ignore_index"] = r.choice([-1, 0])
        targets.flat[0], targets.flat[-1] = c.attributes["ignore_index"], dims[1] - 1
    c.add("x", floats(r, dims, r.choice([1.0, 20.0])))
    c.add("t", targets.astype(r.choice([np.int64, np.int32])))
    c.add("w", np.abs(floats(r, [dims[1]])) + np.float32(0.1)) if r.random() < 0.5 else c.skip()
    c.outputs = 2 if op == "SoftmaxCrossEntropyLoss" and r.random() < 0.5 else 1
    return op, c


MAKERS = [recurrent, einsum, matmul_nbits, attention, conv, conv, qlinear_conv, qlinear_conv_large, matmul, gemm, matmul_integer, qlinear_matmul, unary, clip, binary, binary, lines,
          channels, pool, reduce, transpose, quantize, typed_binary, typed_unary, several, typed_reduce, wide_matmul, signal, norms, selection,
          selection, images, images, pool_more, models, rotary, regions, conv_clipped, conv_transpose, matmul_turned, deform_conv, trilu, pool_long, matmul_integer_batches, codes_16, loss, qlinear_where, gather_block_quantized, matrices, experts,
          group_norm, small_microsoft, decoding, codes_of_microsoft, movement, distances, pool_places, max_unpool, short_floats, norms_f64, moments,
          broadcast_several, topk_many, stepped_slice, integer_powers, lp_rows]


def run(tombolo, model, inputs, outputs, isa, threads):
    # First runs go node by node; the third follows a memory plan.
    done = subprocess.run([tombolo, "run", model, "--inputs", inputs, "--outputs", outputs, "-q", "--threads", str(threads), "--runs", "1" if isa == "reference" else "3"],
                          env={**os.environ, "TOMBOLO_ISA": isa}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.strip()


def close(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} against {b.dtype}{b.shape}"
    if a.dtype.kind in "iub" and a.dtype.itemsize == 1 and a.dtype != np.bool_:
        step = np.abs(a.astype(int) - b.astype(int))
        return None if step.size == 0 or (step.max() <= 1 and (step > 0).mean() <= 0.02 + 1 / step.size) else f"{step.max()} steps"
    if a.dtype.kind != "f":
        return None if np.array_equal(a, b) else "not equal"
    eps = 2e-3 if a.dtype == np.float16 else 2e-5
    scale = max(1e-3, float(np.sqrt(np.mean(np.square(b[np.isfinite(b)].astype(np.float64)))))) if np.isfinite(b).any() else 1
    with np.errstate(invalid="ignore"):
        good = np.isclose(a.astype(np.float64), b.astype(np.float64), rtol=eps, atol=eps * min(scale, 1e3), equal_nan=True)
    if good.all():
        return None
    at = np.unravel_index(np.argmin(good), good.shape) if good.shape else ()
    return f"{(~good).sum()} differ, first {at}: {a[at]} expected {b[at]}"


def differences(tombolo, model, inputs, folder, isas, r):
    """What the fast kernels of each instruction set give otherwise than the reference; a text instead where that refuses."""
    code, text = run(tombolo, model, inputs, f"{folder}/reference.npz", "reference", 2)
    if code != 0:
        return f"the reference refuses: {text[:200]}"
    expected = dict(np.load(f"{folder}/reference.npz"))
    said = []
    for isa in isas:
        code, text = run(tombolo, model, inputs, f"{folder}/fast.npz", isa, r.choice([1, 2]))
        if code != 0:
            said.append(f"{isa}: exit {code}: {text[:200]}")
            continue
        actual = dict(np.load(f"{folder}/fast.npz"))
        said += [f"{isa} {name}: {why}" for name in expected if (why := close(actual[name], expected[name]))]
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--isa", action="append")
    parser.add_argument("--only")
    options = parser.parse_args()
    isas = options.isa or ["sse4", "avx2", "avx512"]
    folder = tempfile.mkdtemp(prefix="fuzz_kernels_")
    bad = ran = 0
    for i in range(options.count):
        r = random.Random(options.seed * 1000003 + i)
        makers = [m for m in MAKERS if not options.only or m.__name__ in options.only.split(",")]
        op, case = r.choice(makers)(r)
        model, inputs = f"{folder}/{i}.onnx", f"{folder}/{i}.npz"
        dying = [n for n, v in case.inputs.items() if undone(np.asarray(v)) and r.random() < 0.5]
        network = build(op, case, dying)
        onnx.save(network, model)
        np.savez(inputs, **case.inputs)
        said = differences(options.tombolo, model, inputs, folder, isas, r)
        if said == []:
            result = np.load(f"{folder}/reference.npz")["y0"]
            if result.dtype == np.float32 and result.size > 0:
                add_to_result(network, case, result.shape, r)
                onnx.save(network, model)
                np.savez(inputs, **case.inputs)
                said = differences(options.tombolo, model, inputs, folder, isas, r)
        if isinstance(said, str):
            print(f"{i} {op}: {said}")
            continue
        ran += 1
        for line in said:
            print(f"{i} {op} {line}   {case.attributes} { {n: np.asarray(v).shape for n, v in {**case.inputs, **case.constants}.items()} }")
        bad += bool(said)
        if not said:
            os.remove(model)
            os.remove(inputs)
    print(f"{ran} models, {bad} differ" + (f", kept in {folder}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
