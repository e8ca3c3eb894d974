#!/usr/bin/env python3
"""Optimises models and compares them with what they were: outputs in ONNX Runtime (and in the
reference runtime, with --reference), validity by the official checker, and the number of nodes
beside onnxsim and onnxslim where these are installed.

    python tools/oracle_optimise.py build/release/tombolo MODEL_OR_FOLDER... [--level O2] [--sim]

Needs onnx, numpy and onnxruntime; --sim also onnxsim and onnxslim. Exit code 1 when a result is
wrong, or larger than the smaller one of the two."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

SIZES = {"batch": 2, "batch_size": 2, "N": 2}


def count(graph):
    """Nodes that compute, those of subgraphs included; Constant and ConstantOfShape are weights."""
    total = 0
    for node in graph.node:
        total += node.op_type not in ("Constant", "ConstantOfShape")
        for attribute in node.attribute:
            total += count(attribute.g) if attribute.HasField("g") else 0
    return total


def inputs_of(session, seed, sizes):
    rng = np.random.default_rng(seed)
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
             "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
             "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
    feeds = {}
    for one in session.get_inputs():
        if one.type not in kinds:
            raise ValueError(f"input {one.name} is {one.type}")
        kind = kinds[one.type]
        shape = [d if isinstance(d, int) else sizes.get(d, SIZES.get(d, 4 if d else 2)) for d in one.shape]
        if kind is np.bool_:
            feeds[one.name] = rng.integers(0, 2, shape).astype(kind)
        elif np.issubdtype(kind, np.integer):
            high = 2 if "mask" in one.name or "type" in one.name else 9
            feeds[one.name] = rng.integers(0, high, shape).astype(kind)
            if "mask" in one.name:
                feeds[one.name][..., :1] = 1
        else:
            feeds[one.name] = rng.standard_normal(shape).astype(kind)
    return feeds


def session_of(path, plain):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def differs(before, after):
    """The largest difference, relative to the largest value of its output; inf: another kind."""
    worst = 0.0
    for a, b in zip(before, after):
        if isinstance(a, list):
            worst = max(worst, differs(a, b) if len(a) == len(b) else np.inf)
            continue
        if not isinstance(a, np.ndarray):
            worst = max(worst, 0.0 if a == b else np.inf)
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return np.inf
        if a.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                # Integers out of floats (arg max, counts): a tie may fall the other way.
                worst = max(worst, 1e-6 if np.mean(a != b) < 1e-3 else np.inf)
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return np.inf
        finite = np.isfinite(x)
        if not np.array_equal(x[~finite & ~np.isnan(x)], y[~finite & ~np.isnan(x)]):
            return np.inf
        if finite.any():
            scale = max(np.abs(x[finite]).max(), 1e-30)
            limit = 30 if a.dtype == np.float16 else 1
            worst = max(worst, float(np.abs(x - y)[finite].max() / scale) / limit)
    return worst


def simplified(path, folder):
    """Nodes after onnxsim and onnxslim; None where they fail."""
    results = []
    try:
        import onnxsim
        model, _ = onnxsim.simplify(str(path))
        results.append(count(model.graph))
    except Exception:  # whatever they raise, it is theirs
        results.append(None)
    try:
        import onnxslim
        model = onnxslim.slim(str(path))
        results.append(count(model.graph))
    except Exception:
        results.append(None)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tombolo")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--level", default="O2")
    parser.add_argument("--sim", action="store_true", help="count nodes of onnxsim and onnxslim too")
    parser.add_argument("--reference", action="store_true", help="verify in the reference runtime too")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--tolerance", type=float, default=2e-4)
    parser.add_argument("--passes", default=None)
    args = parser.parse_args()
    sizes = {text.split("=")[0]: int(text.split("=")[1]) for text in args.size}
    paths = []
    for text in args.models:
        path = pathlib.Path(text)
        paths += sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
    bad, larger, skipped = [], [], 0
    print(f"{'model':44} {'nodes':>6} {'here':>6} {'sim':>6} {'slim':>6} {'opset':>8} {'ms':>7} {'diff':>9}")
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.onnx"
            name = "/".join(path.parts[-2:]) if path.name == "model.onnx" else path.name
            command = [args.tombolo, "optimise", str(path), str(out), "--level", args.level, "--json"]
            command += ["--passes", args.passes] if args.passes else []
            command += ["--verify", "1"] if args.reference else []
            begin = time.time()
            done = subprocess.run(command, capture_output=True, text=True)
            took = (time.time() - begin) * 1000
            if done.returncode:
                bad.append(name)
                print(f"{name[-44:]:44} FAILED {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}")
                continue
            report = json.loads(done.stdout)
            before, after = onnx.load(str(path), load_external_data=False), onnx.load(str(out))
            note, diff = "", None
            try:
                onnx.checker.check_model(str(out))
            except Exception as error:
                note = "INVALID " + str(error).strip().splitlines()[0][:100]
                bad.append(name)
            try:
                original = session_of(path, True)
                feeds = inputs_of(original, 1, sizes)
                expected = original.run(None, feeds)
            except Exception as error:
                skipped += 1
                note = note or "not compared: " + str(error).strip().splitlines()[0][-80:]
            else:
                try:
                    result = session_of(out, True)
                    if [o.name for o in result.get_outputs()] != [o.name for o in original.get_outputs()]:
                        raise ValueError("other outputs")
                    known = {i.name for i in result.get_inputs()}
                    diff = differs(expected, result.run(None, {k: v for k, v in feeds.items() if k in known}))
                    if not diff <= args.tolerance:
                        note = "DIFFERS"
                        bad.append(name)
                except Exception as error:
                    note = "FAILS " + str(error).strip().splitlines()[0][:160]
                    bad.append(name)
            here = count(after.graph)
            sim, slim = simplified(path, folder) if args.sim else (None, None)
            best = min((n for n in (sim, slim) if n is not None), default=here)
            if here > best:
                larger.append(name)
                note = (note + " larger").strip()
            print(f"{name[-44:]:44} {count(before.graph):6} {here:6} {sim if sim is not None else '-':>6} "
                  f"{slim if slim is not None else '-':>6} {report['opset_before']:>3} ->{report['opset_after']:>3} {took:7.0f} "
                  f"{diff if diff is None else format(diff, '.1e')!s:>9} {note}", flush=True)
    print(f"{len(paths)} models, {len(bad)} wrong, {len(larger)} larger than the best, {skipped} not compared")
    for name in bad:
        print("wrong:", name)
    for name in larger:
        print("larger:", name)
    return 1 if bad or larger else 0


if __name__ == "__main__":
    sys.exit(main())
