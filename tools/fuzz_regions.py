#!/usr/bin/env python3
"""Compares random convolutional networks, run by the fast kernels, with the reference kernels.

    tools/fuzz_regions.py build/release/tombolo [--count 100] [--seed 0] [--isa avx2]

Networks of some operators, on images or on lines (one spatial axis), that stay in blocks of channels, or leave them: convolutions, pools,
LRN, Resize, Pad, Slice, Split, Concat, gates, views. Needs the packages onnx and numpy. Prints every network whose results differ and keeps it.
"""
import argparse
import os
import random
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper as h
from onnx import numpy_helper as nh

from fuzz_case import floats
from fuzz_kernels import differences

CHANNELS = [1, 2, 3, 4, 5, 6, 8, 10, 16, 16, 20, 32, 33, 48, 64, 72, 96, 120, 130]


class Network:
    def __init__(self, r):
        self.r, self.nodes, self.constants = r, [], []
        self.shapes = {}  # of the values that may be read
        self.bent = set()  # of whose shapes nothing is known

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(nh.from_array(np.asarray(value), name))
        return name

    def add(self, op, inputs, *shapes, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(h.make_node(op, inputs, names, **attributes))
        self.shapes.update(zip(names, shapes))
        return names[0]

    def conv(self, x):
        r, (n, c, *plane) = self.r, self.shapes[x]
        k, deep = r.choice([1, 1, 3, 3, 5, 7]), r.random() < 0.2
        axes = len(plane)
        out = c if deep else r.choice(CHANNELS)
        groups = c if deep else r.choice([g for g in (1, 1, 1, 2, 3, 4, 8) if c % g == 0 and out % g == 0])
        stride = r.choice([1, 1, 1, 2]) if min(plane) > 8 else 1
        inputs = [x, self.constant(floats(r, [out, c // groups] + [k] * axes, 1 / np.sqrt(k**axes * c // groups)))]
        if r.random() < 0.5:
            inputs.append(self.constant(floats(r, [out])))
        apart = r.choice([1, 1, 1, 2, 3])
        pads = [r.randint(0, (k - 1) * apart) for _ in range(2 * axes)] if r.random() < 0.3 else [k // 2 * apart] * 2 * axes
        to = [(size + pads[i] + pads[i + axes] - (k - 1) * apart - 1) // stride + 1 for i, size in enumerate(plane)]
        if min(to) < 1:
            return
        self.add("Conv", inputs, [n, out] + to, pads=pads, strides=[stride] * axes, dilations=[apart] * axes, group=groups)

    def conv_transpose(self, x):
        r, (n, c, *plane) = self.r, self.shapes[x]
        axes, deep = len(plane), r.random() < 0.2
        out, k, stride = c if deep else r.choice(CHANNELS), r.randint(1, 5), r.randint(1, 3)
        pads = [r.randint(0, (k - 1) // 2) for _ in range(2 * axes)]
        to = [(size - 1) * stride + k - pads[i] - pads[i + axes] for i, size in enumerate(plane)]
        if min(to) < 1 or n * out * np.prod(to) > 200_000:
            return
        w = self.constant(floats(r, [c, 1 if deep else out] + [k] * axes, 1 / np.sqrt(c)))
        more = dict(output_shape=to) if r.random() < 0.2 else dict(pads=pads)
        self.add("ConvTranspose", [x, w], [n, out] + to, strides=[stride] * axes, group=c if deep else 1, **more)

    def activation(self, x):
        op = self.r.choice(["Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh", "Elu", "Abs", "Neg"])
        self.add(op, [x], self.shapes[x])

    def scale(self, x):
        n, c, *plane = self.shapes[x]
        ones = [1] * len(plane)
        self.add(self.r.choice(["Mul", "Add", "Sub"]), [x, self.constant(floats(self.r, self.r.choice([[1, c] + ones, [c] + ones, [], [1]])))], self.shapes[x])

    def norm(self, x):
        c = self.shapes[x][1]
        self.add("BatchNormalization", [x] + [self.constant(floats(self.r, [c])) for _ in range(3)] + [self.constant(np.abs(floats(self.r, [c])) + np.float32(0.5))], self.shapes[x])

    def lrn(self, x):
        self.add("LRN", [x], self.shapes[x], size=self.r.choice([1, 2, 3, 5, 5, 8, 100]), alpha=self.r.choice([1e-4, 0.5]), beta=self.r.choice([0.5, 0.75, 0.75, 1.0, 0.6]))

    def pool(self, x):
        n, c, *plane = self.shapes[x]
        r, axes = self.r, len(plane)
        k, stride = r.choice([2, 3, 3, 5, 9]), r.choice([1, 2, 2])
        pads = [r.randint(0, k // 2) for _ in range(2 * axes)]
        to = [(size + pads[i] + pads[i + axes] - k) // stride + 1 for i, size in enumerate(plane)]
        if min(plane) > k // 2 and min(to) >= 1:
            self.add(r.choice(["MaxPool", "AveragePool"]), [x], [n, c] + to, kernel_shape=[k] * axes, strides=[stride] * axes, pads=pads)

    def gate(self, x):
        n, c, *plane = self.shapes[x]
        one = [n, c] + [1] * len(plane)
        kind = self.r.choice(["GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"])
        axes = [self.constant(np.arange(2, len(one)))] if kind.startswith("Reduce") else []
        if axes and self.r.random() < 0.3:
            self.bent.add(self.add(kind, [x] + axes, [n, c], keepdims=0))
        mean = self.add(kind, [x] + axes, one)
        gate = self.add("Sigmoid", [mean], one)
        self.add("Mul", [x, gate], self.shapes[x])

    def resize(self, x):
        r, (n, c, *plane) = self.r, self.shapes[x]
        to = [r.choice([size, 2 * size, max(1, size // 2), r.randint(1, 24)]) for size in plane]
        if n * c * np.prod(to) > 200_000:
            return
        mode = r.choice(["nearest", "linear", "linear", "cubic"])
        attributes = dict(mode=mode, coordinate_transformation_mode=r.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]))
        if mode == "nearest":
            attributes["nearest_mode"] = r.choice(["floor", "round_prefer_floor"])
        elif r.random() < 0.2:
            attributes["antialias"] = 1
        if r.random() < 0.5:
            attributes["axes"], sizes = [2, -1][-len(plane) :], to
        else:
            sizes = [n, c] + to
        self.add("Resize", [x, "", "", self.constant(np.array(sizes))], [n, c] + to, **attributes)

    def pad(self, x):
        r, (n, c, *plane) = self.r, self.shapes[x]
        mode, axes = r.choice(["constant", "reflect", "edge"]), len(plane)
        most = min(3, *(size - 1 for size in plane))
        p = [r.randint(0, max(0, most)) for _ in range(2 * axes)]
        every = r.random() < 0.5
        inputs = [x, self.constant(np.array([0, 0] + p[:axes] + [0, 0] + p[axes:] if every else p))]
        if not every:
            inputs += ["", self.constant(np.arange(2, 2 + axes) - r.choice([0, 2 + axes]))]
        self.add("Pad", inputs, [n, c] + [size + p[i] + p[i + axes] for i, size in enumerate(plane)], mode=mode)

    def slice(self, x):
        r, shape = self.r, list(self.shapes[x])
        axis = r.randrange(1, len(shape))
        first = r.choice([0, 16, r.randint(0, shape[axis] - 1)]) % shape[axis]
        last = r.choice([shape[axis], r.randint(first + 1, shape[axis])])
        step = 1 if axis == 1 else r.choice([1, 2])
        shape[axis] = (last - first + step - 1) // step
        self.add("Slice", [x] + [self.constant(np.array([v])) for v in (first, last, axis - r.choice([0, len(shape)]), step)], shape)

    def split(self, x):
        n, c, *plane = self.shapes[x]
        if c < 2:
            return
        at = self.r.choice([16, c // 2, self.r.randint(1, c - 1)]) % c or 1
        self.add("Split", [x, self.constant(np.array([at, c - at]))], [n, at] + plane, [n, c - at] + plane, axis=1)

    def join(self, x):
        same = [v for v, s in self.shapes.items() if len(s) == len(self.shapes[x]) and s[0] == self.shapes[x][0] and s[2:] == self.shapes[x][2:]]
        parts = [x] + [self.r.choice(same) for _ in range(self.r.randint(1, 3))]
        channels = sum(self.shapes[v][1] for v in parts)
        if channels <= 200:
            self.add("Concat", parts, [self.shapes[x][0], channels] + self.shapes[x][2:], axis=self.r.choice([1, 1 - len(self.shapes[x])]))

    def residual(self, x):
        """x and a convolution of what has x's plane: the sum may lie where x does."""
        r, (n, c, *plane) = self.r, self.shapes[x]
        axes, k = len(plane), r.choice([1, 3, 5])
        z = r.choice([v for v, s in self.shapes.items() if s[:1] + s[2:] == [n] + plane and v not in self.bent])
        w = self.constant(floats(r, [c, self.shapes[z][1]] + [k] * axes, 1 / np.sqrt(k**axes * self.shapes[z][1])))
        y = self.add("Conv", [z, w], self.shapes[x], pads=[k // 2] * 2 * axes)
        self.add("Add", [x, y], self.shapes[x])

    def sum(self, x):
        same = [v for v, s in self.shapes.items() if s == self.shapes[x]]
        self.add(self.r.choice(["Add", "Mul", "Max"]), [x, self.r.choice(same)], self.shapes[x])

    def views(self, x):
        n, c, *plane = self.shapes[x]
        shape = [n * c] + plane if self.r.random() < 0.5 else [n, c, int(np.prod(plane))]
        flat = self.add("Reshape", [x, self.constant(np.array(shape))], shape)
        bent = self.add("Relu", [flat], shape)
        self.bent |= {flat, bent}
        self.add("Reshape", [bent, self.constant(np.array(self.shapes[x]))], self.shapes[x])


STEPS = ["conv"] * 5 + ["conv_transpose"] * 2 + ["activation"] * 3 + ["scale", "norm", "lrn", "pool", "gate", "resize", "resize", "pad", "slice", "split", "join", "join", "sum", "residual", "residual", "views"]


def build(r):
    network = Network(r)
    network.shapes["x"] = [r.choice([1, 1, 2, 5]), r.choice([1, 3, 4, 7, 20])] + ([r.randint(6, 20), r.randint(6, 20)] if r.random() < 0.7 else [r.randint(6, 300)])
    image = list(network.shapes["x"])
    network.conv("x")
    for _ in range(r.randint(3, 12)):
        images = [v for v, s in network.shapes.items() if len(s) == len(image) and v not in network.bent]
        getattr(network, r.choice(STEPS))(r.choice(images[-3:]))
    read = {name for node in network.nodes for name in node.input}
    outputs = [v for v in network.shapes if v not in read] + [v for v in network.shapes if v in read and v != "x" and r.random() < 0.1]
    graph = h.make_graph(network.nodes, "fuzz", [h.make_tensor_value_info("x", 1, image)], [h.make_empty_tensor_value_info(v) for v in outputs], network.constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), floats(r, image)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--isa", action="append")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="fuzz_regions_")
    bad = 0
    for i in range(options.count):
        r = random.Random(options.seed * 1000003 + i)
        model, x = build(r)
        path, inputs = f"{folder}/{i}.onnx", f"{folder}/{i}.npz"
        onnx.save(model, path)
        np.savez(inputs, x=x)
        said = differences(options.tombolo, path, inputs, folder, options.isa or ["sse4", "avx2", "avx512"], r)
        if isinstance(said, str):
            said = [said]
        for line in said:
            print(f"{i} {' '.join(node.op_type for node in model.graph.node)}: {line}")
        bad += bool(said)
        if not said:
            os.remove(path)
            os.remove(inputs)
    print(f"{options.count} networks, {bad} differ" + (f", kept in {folder}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
