#!/usr/bin/env python3
"""Upgrades official test cases with `tombolo opset` and runs them in onnx's reference evaluator.

    tools/oracle_upgrade.py build/release/tombolo CASES [--target N] [--only NAME] [--list]

CASES is a folder with test cases (model.onnx, test_data_set_*/{input,output}_*.pb) somewhere below.
Needs the Python packages onnx and numpy. Counts the cases whose outputs are equal, those that
`tombolo opset` refuses because a node keeps its own version, and those that are wrong. A wrong case
is also run as it was written, by the evaluator and by onnx's own converter, to tell whose fault it
is: "evaluator" when the evaluator fails in the same way on the official newest form.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


def load(path, type_proto):
    data = path.read_bytes()
    kind = type_proto.WhichOneof("value") if type_proto is not None else "tensor_type"
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def same(got, want):
    if want is None or got is None:
        return want is None and got is None
    if isinstance(want, list):
        return len(got) == len(want) and all(same(g, w) for g, w in zip(got, want))
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or (got.dtype != want.dtype and want.dtype.kind not in "OUS"):
        return False
    if want.dtype.kind in "OUS":
        return [str(x) for x in got.ravel()] == [str(x) for x in want.ravel()]
    if want.dtype.kind in "biu":
        return bool((got == want).all())
    if want.dtype.kind == "c":
        return np.allclose(got, want, rtol=1e-3, atol=1e-5, equal_nan=True)
    wide = np.float64
    return np.allclose(got.astype(wide), want.astype(wide), rtol=1e-3, atol=1e-5, equal_nan=True)


def run(model, case):
    """None when all data sets agree, else the reason."""
    evaluator = ReferenceEvaluator(model)
    weights = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights] or list(model.graph.input)
    for folder in sorted(case.glob("test_data_set_*")):
        files = sorted(folder.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        ports = inputs if len(files) <= len(inputs) else list(model.graph.input)
        feeds = {p.name: load(f, p.type) for p, f in zip(ports, files)}
        outputs = evaluator.run(None, feeds)
        wanted = sorted(folder.glob("output_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        for i, file in enumerate(wanted):
            if not same(outputs[i], load(file, model.graph.output[i].type)):
                return f"output {i} differs"
    return None


def attempt(model, case):
    try:
        return run(model, case)
    except Exception as error:  # the evaluator raises whatever it likes
        return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--target", type=int, default=onnx.defs.onnx_opset_version())
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="name every case that is not equal")
    parser.add_argument("--check", action="store_true", help="run onnx.checker on the results")
    args = parser.parse_args()

    counts = collections.Counter()
    out = pathlib.Path(tempfile.mkdtemp()) / "out.onnx"
    for path in sorted(args.cases.rglob("model.onnx")):
        case = path.parent
        name = f"{case.parent.name}/{case.name}"
        if args.only not in name:
            continue
        done = subprocess.run([args.tombolo, "opset", str(path), str(args.target), str(out)],
                              capture_output=True, text=True, timeout=60)
        verdict, reason = "equal", ""
        if done.returncode == 4:
            verdict, reason = "kept", done.stderr.strip().splitlines()[0]
        elif done.returncode != 0:
            verdict, reason = "failed", done.stderr.strip()
        else:
            model = onnx.load(out)
            if args.check:
                try:
                    onnx.checker.check_model(model)
                except Exception as error:
                    verdict, reason = "invalid", str(error).splitlines()[0]
            reason = reason or attempt(model, case) or ""
            if reason and verdict == "equal":
                original = attempt(onnx.load(path), case)
                try:
                    theirs = attempt(
                        onnx.version_converter.convert_version(onnx.load(path), args.target), case)
                except Exception as error:
                    theirs = f"no conversion: {error}".splitlines()[0][:80]
                # The same fault on the untouched model or on upstream's conversion.
                both = original is not None or theirs is not None
                verdict = "wrong-everywhere" if both else "wrong"
                reason += f" | as written: {original} | upstream's: {theirs}"
        counts[verdict] += 1
        if verdict != "equal" and (args.list or verdict not in ("kept",)):
            print(f"{verdict:17} {name}: {reason}", flush=True)
    print(" ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    return 1 if counts["wrong"] or counts["failed"] or counts["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
