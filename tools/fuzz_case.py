"""What makers of random one-node models share (fuzz_kernels.py)."""
import numpy as np


def shape(r, rank, top=9):
    return [r.choice([1, 2, 3, 5, r.randint(1, top)]) for _ in range(rank)]


def floats(r, dims, scale=1.0):
    return (np.random.default_rng(r.getrandbits(32)).standard_normal(dims) * scale).astype(np.float32)


def numbers(r, dims, dtype):
    info = np.iinfo(dtype)
    low, high = max(info.min, -1000), min(info.max, 1000)
    return np.random.default_rng(r.getrandbits(32)).integers(low, high, dims, endpoint=True).astype(dtype)


class Case:
    def __init__(self):
        self.inputs, self.constants, self.attributes, self.outputs = {}, {}, {}, 1
        self.domain, self.names = "", []

    def add(self, name, value, constant=False):
        (self.constants if constant else self.inputs)[name] = value
        self.names.append(name)

    def skip(self):
        self.names.append("")
