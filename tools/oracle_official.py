#!/usr/bin/env python3
"""Independent check of what Tombolo converts: the official checker, and ONNX Runtime at an older operator set.

    oracle_official.py TOMBOLO DIR [--opset 21] [--filter RE] [--list]

DIR holds cases NAME/{model.*, io.npz, case.json} somewhere below (as `tombolo conformance` takes them). Each model is
converted as it is, which onnx.checker must accept, and with --opset, which onnx.checker must accept too and ONNX
Runtime must run to the outputs of io.npz. Needs onnx and onnxruntime.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort

RAW = {onnx.TensorProto.BFLOAT16: ml_dtypes.bfloat16, onnx.TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
       onnx.TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2}


def source_of(folder):
    found = [p for p in sorted(folder.glob("model.*")) if p.suffix != ".json" or p.name == "model.json"]
    return found[0] if found else None


def numbers(array, type_proto):
    """Values of a type that numpy lacks travel as unsigned integers."""
    raw = RAW.get(type_proto.tensor_type.elem_type)
    return array.view(raw).astype(np.float32) if raw is not None and array.dtype.kind == "u" else array


def check(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return None
    except Exception as error:
        return str(error).strip().splitlines()[0][:200]


def run(path, folder, rtol, atol):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = onnx.load(path, load_external_data=False)
    given = {i.name: i.type for i in model.graph.input}
    weights = {t.name for t in model.graph.initializer}
    io = np.load(folder / "io.npz", allow_pickle=False)
    for prefix in ("in", "in2"):
        if f"{prefix}_0" not in io and f"out{prefix[2:]}_0" not in io:
            continue
        feeds = {}
        names = [i.name for i in model.graph.input if i.name not in weights]
        for k, name in enumerate(names):
            if f"{prefix}_{k}" in io:
                value = io[f"{prefix}_{k}"]
                raw = RAW.get(given[name].tensor_type.elem_type)
                if raw is not None:
                    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
                        value, given[name].tensor_type.elem_type)
                feeds[name] = value
        names_out = [o.name for o in model.graph.output]
        if any(isinstance(v, ort.OrtValue) for v in feeds.values()):
            return "cannot feed"
        outputs = session.run(names_out, feeds)
        for k, (got, port) in enumerate(zip(outputs, model.graph.output)):
            key = f"out{prefix[2:]}_{k}"
            if key not in io:
                continue
            want = numbers(io[key], port.type)
            got = np.asarray(got)
            if got.shape != want.shape:
                return f"output {k}: shape {got.shape}, expected {want.shape}"
            if not np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol,
                               atol=max(atol, rtol * float(np.abs(want.astype(np.float64)).max(initial=0))),
                               equal_nan=True):
                worst = np.nanmax(np.abs(got.astype(np.float64) - want.astype(np.float64)))
                return f"output {k}: differs by {worst:.3g}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--opset", type=int, default=21)
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true", help="name every case")
    args = parser.parse_args()
    counts = collections.Counter()
    reasons = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="tombolo-official-") as scratch:
        newest, older = pathlib.Path(scratch) / "newest.onnx", pathlib.Path(scratch) / "older.onnx"
        for io in sorted(args.cases.rglob("io.npz")):
            folder = io.parent
            name = str(folder.relative_to(args.cases))
            source = source_of(folder)
            if source is None or not re.search(args.filter, name):
                continue
            case = json.loads((folder / "case.json").read_text()) if (folder / "case.json").exists() else {}
            done = subprocess.run([args.tombolo, "convert", str(source), str(newest)], capture_output=True, text=True)
            if done.returncode != 0:
                counts["not converted"] += 1
                continue
            counts["converted"] += 1
            why = check(newest)
            counts["accepted by onnx.checker" if why is None else "NOT accepted"] += 1
            if why:
                print(f"CHECKER {name}: {why}")
            done = subprocess.run([args.tombolo, "convert", str(source), str(older), "--opset", str(args.opset)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                counts[f"not said at {args.opset}"] += 1
                reasons[re.sub(r'node "[^"]*" ', "", done.stderr.strip().splitlines()[0])[:200]] += 1
                if args.list:
                    print(f"REFUSED {name}: {done.stderr.strip()[:300]}")
                continue
            why = check(older)
            counts[f"accepted at {args.opset}" if why is None else f"NOT accepted at {args.opset}"] += 1
            if why:
                print(f"CHECKER {name} at {args.opset}: {why}")
            try:
                why = run(older, folder, case.get("rtol", 1e-4), case.get("atol", 1e-5))
            except Exception as error:
                why = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
            kind = ("equal in ONNX Runtime" if why is None else
                    "ONNX Runtime lacks a kernel" if "NOT_IMPLEMENTED" in why or "NotImplemented" in why else
                    "ONNX Runtime DIFFERS")
            counts[kind] += 1
            if why:
                print(f"RUNTIME {name}: {why}")
    for reason, count in reasons.most_common(30):
        print(f"{count:5} refused: {reason}")
    print(", ".join(f"{v} {k}" for k, v in sorted(counts.items())))
    return 1 if any(k.isupper() or "NOT " in k or "DIFFERS" in k for k in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
