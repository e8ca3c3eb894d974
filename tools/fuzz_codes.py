#!/usr/bin/env python3
"""Compares random quantised networks (QuantizeLinear and DequantizeLinear around each operator), run by the fast kernels, with the reference kernels.

    tools/fuzz_codes.py build/release/tombolo [--count 100] [--seed 0] [--isa avx2]

Networks of images or of sequences, with signed and unsigned codes, tables of words, constants behind DequantizeLinear, channels first and last, codes
that the graph takes and gives. Each result may be a step off, which later operators may make more of: what is printed, and kept, is off by more than
a tenth (root mean square). Needs the packages onnx and numpy.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto
from onnx import helper as h
from onnx import numpy_helper as nh


class Network:
    def __init__(self, seed):
        self.r, self.g = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.outputs = [], [], []
        self.type = self.r.choice([np.int8, np.int8, np.int8, np.uint8])
        r = self.r
        self.image = r.random() < 0.7
        self.shape = [1, r.choice([3, 8, 16, 24, 40]), r.choice([6, 9, 12]), r.choice([5, 8, 13])] if self.image else [2, r.choice([5, 9]), r.choice([16, 32])]
        if r.random() < 0.25:
            self.feed, self.input = self.g.integers(-128, 128, self.shape).astype(np.int8), h.make_tensor_value_info("x", TensorProto.INT8, self.shape)
            self.value = self.add("DequantizeLinear", "x", self.constant(np.float32(0.05)), self.constant(np.int8(-3)))
        else:
            self.feed, self.input = self.g.standard_normal(self.shape).astype(np.float32), h.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
            self.value = self.quantised("x")
        self.before = [(self.value, list(self.shape))]
        steps = self.IMAGES if self.image else self.SEQUENCES
        for _ in range(r.randint(3, 9)):
            step = r.choice(steps)
            step(self)
            self.value = self.quantised(self.value, 1 / 256 if step is Network.softmax else None)
            self.before.append((self.value, list(self.shape)))
            if r.random() < 0.07:
                self.outputs.append(self.nodes[-1].input[0])  # codes
        self.outputs.append(self.value if r.random() < 0.7 else self.nodes[-1].input[0])

    def constant(self, value):
        self.constants.append(nh.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def list(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(h.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def quantised(self, value, step=None):
        kind = self.type if self.r.random() < 0.9 else self.r.choice([np.int8, np.uint8])
        zero = self.constant(kind(self.r.choice([0, 3, -7, -128] if kind == np.int8 else [0, 120, 128])))
        scale = self.constant(np.float32(step or self.r.choice([0.02, 0.05, 0.1])))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, scale, zero), scale, zero)

    def weights(self, dims, axis=None):
        codes = self.constant(self.g.integers(-127, 128, dims).astype(np.int8))
        if axis is None or self.r.random() < 0.5:
            return self.add("DequantizeLinear", codes, self.constant(np.float32(0.01)), self.constant(np.int8(0)))
        scales = self.constant((self.g.random(dims[axis]) * 0.01 + 0.002).astype(np.float32))
        return self.add("DequantizeLinear", codes, scales, self.constant(np.zeros(dims[axis], np.int8)), axis=axis)

    # ---- steps

    def conv(self):
        r, (_, c, rows, columns) = self.r, self.shape
        k, stride, deep = r.choice([1, 3]), r.choice([1, 1, 2]), r.random() < 0.3
        out = c if deep else r.choice([8, 16, 20, 32])
        inputs = [self.value, self.weights([out, 1 if deep else c, k, k], 0)]
        if r.random() < 0.5:
            inputs.append(self.constant((self.g.standard_normal(out) * 0.3).astype(np.float32)))
        self.value = self.add("Conv", *inputs, pads=[k // 2] * 4, strides=[stride] * 2, group=c if deep else 1)
        self.shape = [1, out, (rows - 1) // stride + 1, (columns - 1) // stride + 1]
        if r.random() < 0.5:
            self.value = self.add("Relu", self.value)

    def pool(self):
        if min(self.shape[2:]) >= 3:
            self.value = self.add(self.r.choice(["MaxPool", "AveragePool"]), self.value, kernel_shape=[3, 3], pads=[1] * 4)

    def gate(self):
        gate = self.quantised(self.add("GlobalAveragePool", self.value))
        self.value = self.add("Mul", self.value, self.quantised(self.add("Sigmoid", gate), 1 / 256))

    def channels(self):
        dims = [1, self.shape[1], 1, 1] if self.image else self.r.choice([self.shape[2:], [1, *self.shape[1:]]])
        other = self.weights(dims) if self.r.random() < 0.7 else self.constant(self.g.random(dims).astype(np.float32))
        self.value = self.add(self.r.choice(["Mul", "Add"]), self.value, other)

    def number(self):
        other = self.constant(np.float32(0.7)) if self.r.random() < 0.5 else self.weights([])
        self.value = self.add(self.r.choice(["Mul", "Add"]), self.value, other)

    def pad(self):
        inputs = [self.value, self.list(0, 0, 1, 2, 0, 0, 1, 0)]
        if self.r.random() < 0.5:
            inputs.append(self.constant(np.float32(self.r.choice([0, 0.5]))))
        self.value = self.add("Pad", *inputs, mode=self.r.choice(["constant", "constant", "edge"]))
        self.shape = [1, self.shape[1], self.shape[2] + 2, self.shape[3] + 2]

    def turned(self):
        forth, back = ([0, 2, 3, 1], [0, 3, 1, 2]) if self.image else ([0, 2, 1], [0, 2, 1])
        x = self.quantised(self.add("Transpose", self.value, perm=forth))
        if self.r.random() < 0.5:
            x = self.quantised(self.add("Mul", x, self.weights([self.shape[1]])))
        if self.r.random() < 0.3:
            x = self.quantised(self.add("HardSigmoid", x))
        self.value = self.add("Transpose", x, perm=back)

    def concat(self):
        other, dims = self.value, self.shape
        if not self.image:
            dims = [self.shape[0], 1, self.shape[2]]
            other = self.weights(dims)
        self.value = self.add("Concat", self.value, other, axis=1)
        self.shape = [self.shape[0], self.shape[1] + dims[1], *self.shape[2:]]

    def halves(self):
        if self.shape[1] % 2 == 0:
            first, second = self.add("Split", self.value, outputs=2, axis=1, num_outputs=2)
            self.value = self.add("Concat", self.quantised(second), first, axis=1)

    def residual(self):
        other = self.r.choice([value for value, shape in self.before if shape == self.shape] or [self.value])
        self.value = self.add(self.r.choice(["Add", "Add", "Mul"]), self.value, other)
        if self.r.random() < 0.5:
            self.value = self.add("Relu", self.value)

    def activation(self):
        self.value = self.add(self.r.choice(["Sigmoid", "HardSwish", "Tanh", "LeakyRelu", "Relu"]), self.value)

    def clip(self):
        self.value = self.add("Clip", self.value, self.constant(np.float32(0)), self.constant(np.float32(6)))

    def cut(self):
        axis = 2 if self.image else 1
        if self.shape[axis] > 2:
            self.value = self.add("Slice", self.value, self.list(1), self.list(1 << 40), self.list(axis))
            self.shape[axis] -= 1

    def resize(self):
        self.value = self.add("Resize", self.value, "", self.constant(np.array([1, 1, 2, 2], np.float32)), mode=self.r.choice(["nearest", "linear"]))
        self.shape = [1, self.shape[1], 2 * self.shape[2], 2 * self.shape[3]]

    def matmul(self):
        out = self.r.choice([16, 24, 32])
        self.value = self.add("MatMul", self.value, self.weights([self.shape[2], out], 1))
        self.shape[2] = out
        if self.r.random() < 0.5:
            bias = self.weights([out]) if self.r.random() < 0.5 else self.constant(self.g.standard_normal(out).astype(np.float32))
            self.value = self.add("Add", self.value, bias)

    def words(self):
        table, at = self.constant(self.g.integers(-128, 128, [20, self.shape[2]]).astype(np.int8)), self.list(*self.g.integers(0, 20, self.shape[1]))
        scale, zero = self.constant(np.float32(0.02)), self.constant(np.int8(self.r.choice([0, 5])))
        if self.r.random() < 0.5:
            words = self.add("DequantizeLinear", self.add("Gather", table, at), scale, zero)
        else:
            words = self.add("Gather", self.add("DequantizeLinear", table, scale, zero), at)
        self.value = self.add("Add", self.value, words)

    def softmax(self):
        self.value = self.add("Softmax", self.value, axis=-1)

    def norm(self):
        self.value = self.add("LayerNormalization", self.value, self.constant(np.ones(self.shape[2], np.float32)))

    IMAGES = [conv, conv, pool, gate, channels, number, pad, turned, concat, halves, residual, activation, clip, cut, resize]
    SEQUENCES = [matmul, matmul, channels, number, turned, concat, residual, activation, words, softmax, cut, norm]

    def save(self, path):
        outputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(self.outputs)]
        model = h.make_model(h.make_graph(self.nodes, "codes", [self.input], outputs, self.constants), opset_imports=[h.make_opsetid("", 21)], ir_version=10)
        known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
        for output in model.graph.output:
            output.CopyFrom(known.get(output.name, output))
        onnx.save(model, path)


def run(tombolo, folder, *more, isa=None):
    command = [tombolo, "run", os.path.join(folder, "model.onnx"), "--inputs", os.path.join(folder, "inputs.npz"), "--outputs", os.path.join(folder, "out.npz"), "--quiet", *more]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **({"TOMBOLO_ISA": isa} if isa else {})}, timeout=120)
    return done.stderr.strip() or f"exit {done.returncode}" if done.returncode else list(np.load(os.path.join(folder, "out.npz")).values())


def difference(want, got):
    """What is wrong with results, or nothing."""
    if isinstance(got, str):
        return got
    for a, b in zip(want, got):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{b.dtype}{list(b.shape)} is not {a.dtype}{list(a.shape)}"
        x, y = a.astype(np.float64), b.astype(np.float64)
        off = np.sqrt(np.mean((x - y) ** 2)) / (np.sqrt(np.mean((x - x.mean()) ** 2)) + 1e-9)
        if not off < 0.1 and np.abs(x - y).max() > (1.01 if a.dtype.kind in "iu" else 0.11):
            return f"{off:.2f} off, at most {np.abs(x - y).max():.3f}"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tombolo")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--isa")
    args = parser.parse_args()
    folder, differ = tempfile.mkdtemp(prefix="fuzz_codes_"), 0
    for seed in range(args.seed, args.seed + args.count):
        network = Network(seed)
        network.save(os.path.join(folder, "model.onnx"))
        np.savez(os.path.join(folder, "inputs.npz"), x=network.feed)
        want = run(args.tombolo, folder, "--reference")
        why = f"reference: {want}" if isinstance(want, str) else difference(want, run(args.tombolo, folder, isa=args.isa))
        if why:
            differ += 1
            kept = os.path.join(folder, f"{seed}.onnx")
            network.save(kept)
            print(f"{kept}: {why}")
    print(f"{args.count} networks, {differ} differ")
    sys.exit(1 if differ else 0)
