#!/usr/bin/env python3
"""Says of TorchScript cases that differ whether the network itself is ill-conditioned: how far PyTorch's own outputs move when
its inputs move by one part in ten million, and how far ours are from PyTorch's when both compute in double.

    conditioning_pytorch.py CASE... [--tombolo PATH]

CASE is a folder as tools/oracle_torchscript.py makes it (model.pt, io.npz). A network whose outputs jump (a box that falls under a
threshold, two equal scores that change places) at such a step cannot be compared in single precision; that its import is right is
seen in double, where the same boxes come in the same order (scales of ONNX's Resize are single still: 1e-3 of each output's largest
value is enough). Needs torch and what the network needs (torchvision).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

try:
    import torchvision  # noqa: F401  its operators
except ImportError:
    pass
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from oracle_torchscript import flatten  # noqa: E402

warnings.filterwarnings("ignore")


def inputs_of(io, which):
    keys = sorted((k for k in io.files if k.startswith("in%s_" % which)), key=lambda k: int(k.split("_")[1]))
    return [torch.from_numpy(io[k]) for k in keys]


def outputs_of(path, inputs, listed, double):
    program = torch.jit.load(path).eval()
    change = (lambda x: x.double() if x.is_floating_point() else x) if double else (lambda x: x)
    if double:
        program = program.double()
    given = [change(x) for x in inputs]
    out = []
    with torch.no_grad(), torch.jit.optimized_execution(False):
        flatten(program(given) if listed else program(*given), out, False)
    return program, given, out


def distance(a, b):
    """(elements that differ by more than 1e-4 of the largest value, the largest difference relative to it)"""
    count, worst = 0, 0.0
    for x, y in zip(a, b):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if x.shape != y.shape:
            return "another shape", np.inf
        if x.size:
            scale = max(np.abs(x).max(), 1e-30)
            far = np.abs(x - y) / scale
            count, worst = count + int((far > 1e-4).sum()), max(worst, float(far.max()))
    return "%d elements, at most %.1e" % (count, worst), worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--tombolo", default="build/release/tombolo")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    for folder in args.cases:
        path, io = os.path.join(folder, "model.pt"), np.load(os.path.join(folder, "io.npz"))
        schema = torch.jit.load(path).forward.schema
        listed = "List[Tensor]" in str(schema.arguments[1].type)
        with tempfile.TemporaryDirectory() as place:
            arrays = {}
            for which in ("", "2"):
                inputs = inputs_of(io, which)
                if not inputs:
                    continue
                base = outputs_of(path, inputs, listed, False)[2]
                moved = ("", 0.0)
                for seed in range(4):
                    torch.manual_seed(seed)
                    near = [x * (1 + 1e-7 * torch.randn_like(x)) if x.is_floating_point() else x for x in inputs]
                    moved = max(moved, distance(base, outputs_of(path, near, listed, False)[2]), key=lambda d: d[1])
                print("%s%s: PyTorch moves: %s" % (os.path.basename(folder), " second size" if which else "", moved[0]), flush=True)
                program, given, out = outputs_of(path, inputs, listed, True)
                arrays.update({"in%s_%d" % (which, i): x.numpy() for i, x in enumerate(given)})
                arrays.update({"out%s_%d" % (which, i): x for i, x in enumerate(out)})
            program.save(os.path.join(place, "model.pt"))
            np.savez(os.path.join(place, "io.npz"), **arrays)
            with open(os.path.join(place, "case.json"), "w") as file:
                largest = [float(np.abs(a).max()) for k, a in arrays.items() if k.startswith("out") and a.size and a.dtype.kind == "f"]
                json.dump({"rtol": 1e-3, "atol": 1e-3 * min((x for x in largest if x > 0), default=1)}, file)
            result = subprocess.run([args.tombolo, "conformance", place, "--json", "--jobs", "1"], capture_output=True, text=True)
            for case in json.loads(result.stdout)["cases"]:
                bad += case["status"] != "passed"
                print("%s: in double ours: %s" % (os.path.basename(folder), case["reason"] or case["status"]), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
