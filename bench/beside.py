"""Tombolo beside ONNX Runtime on many model files, a row of a table for each: what exported.py, decoders.py and estimators.py share."""
import argparse
import glob
import os
import re
import statistics
import subprocess
import tempfile

import numpy as np

import hold
import run


def parsers(description):
    """A parser, its verbs (`does`), and those of `make` and `measure`: the binary, the folder of models and how long to look at each."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="does", required=True)
    making, measuring = verbs.add_parser("make"), verbs.add_parser("measure")
    measuring.add_argument("tombolo")
    for verb in (making, measuring):
        verb.add_argument("folder")
        verb.add_argument("--only", default=".")
    measuring.add_argument("--threads", type=int, default=1)
    measuring.add_argument("--runs", type=int, default=3)
    measuring.add_argument("--seconds", type=float, default=0.15)
    measuring.add_argument("--onnxruntime")
    measuring.add_argument("--out")
    return parser, verbs, making, measuring


def main(description, head, make, cases):
    """A script of those two verbs: make(folder, only), and the rows of cases(folder, only) under `head`."""
    parser, *_ = parsers(description)
    args = parser.parse_args()
    if args.does == "make":
        make(args.folder, args.only)
    else:
        measure(args, head, cases(args.folder, args.only))


def models(folder, only, pattern="model.onnx"):
    """(name, path) of the models one folder down whose names fit `only`: that of the folder, and of the file where it is another."""
    for path in sorted(glob.glob(os.path.join(folder, "*", pattern))):
        name, file = os.path.basename(os.path.dirname(path)), os.path.basename(path)
        name += "" if file == "model.onnx" else f"/{file[:-5]}"
        if re.search(only, name):
            yield name, path


def inputs_of(path):
    """What inputs.npz beside a model holds."""
    with np.load(os.path.join(os.path.dirname(path), "inputs.npz")) as inputs:
        return dict(inputs)


def measure(args, head, cases):
    """Prints a row for each of `cases`: (the cells under `head`, the model's path, its inputs by name)."""
    library = hold.onnxruntime_library(args.onnxruntime)
    lines = [f"| {' | '.join(head)} | Tombolo, ms | ONNX Runtime, ms | ratio | outputs' relative rms apart |", "| --- " * (len(head) + 4) + "|"]
    ratios = []
    for cells, path, feed in cases:
        with tempfile.TemporaryDirectory() as folder:
            inputs = os.path.join(folder, "inputs.npz")
            np.savez(inputs, **feed)
            try:
                found, why = run.measure(args.tombolo, library, path, cells[0], {}, args.threads, args.runs, args.seconds, ["--inputs", inputs])
            except subprocess.TimeoutExpired as late:
                found, why = None, f"over {late.timeout:.0f} s"
        row = f"| {' | '.join(str(c) for c in cells)} |"
        if found is None:
            lines.append(f"{row} - | - | - | {why[:150]} |")
        else:
            ours, *theirs = found["sides"]
            ours, times = ours["median_ms"], [s["median_ms"] for s in theirs if not s["failure"] and s["median_ms"]]
            if times:
                ratios.append(min(times) / ours)
                apart = max([o["relative_rms"] or 0 for o in found["outputs"]] or [0])
                lines.append(f"{row} {ours:.4f} | {min(times):.4f} | {min(times) / ours:.2f} | {apart:.1e} |")
            else:
                lines.append(f"{row} {ours:.4f} | - | - | ONNX Runtime does not run it |")
        print(lines[-1], flush=True)
    if ratios:
        lines += ["", f"{len(ratios)} rows on {args.threads} threads: median {statistics.median(ratios):.2f}, lowest {min(ratios):.2f}, below 1: {sum(r < 1 for r in ratios)}."]
        print(lines[-1])
    if args.out:
        with open(args.out, "w") as file:
            file.write("\n".join(lines) + "\n")
