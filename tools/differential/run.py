#!/usr/bin/env python3
"""Random cases of each operator against ONNX Runtime and, where it refuses, the official reference evaluator.

    python3 tools/differential/run.py build/release/tombolo [--cases 200] [--op NAME]... [--seed 1] [--keep DIR]

Needs `pip install onnx==1.23.2 onnxruntime==1.31.1 numpy ml_dtypes pillow`. Every operator runs in a process of its own. A
difference is unexplained unless a row of known.py says who is right and why (docs/differences.md has the
words). Exits with 1 if one is left, or if an operator with a generator gives fewer cases than asked for.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import numpy as np
import onnx
from onnx import numpy_helper

from differential import elementwise, layers, movement  # noqa: F401 (they register generators)
from differential.core import DTYPES, NAMES, NEWEST, Case, Gen, Skip, build_model, elem_type, type_name
from differential.known import explained

ORT_TYPES = {"float", "double", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
             "uint64", "bool", "string"}
# rtol and atol of floats, by the narrowest type that takes part.
TOLERANCE = {"double": (1e-6, 1e-7), "float": (1e-4, 2e-5), "float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        elif isinstance(value, dict):
            yield from flat([*value.keys(), *value.values()])
        elif value is not None:
            yield np.asarray(value)


def by_onnxruntime(model, feeds):
    import onnxruntime as ort

    if any(type_name(x) not in ORT_TYPES for x in flat(feeds.values())):
        raise TypeError("types that numpy has no word for")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def by_reference(model, feeds):
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return with_declared_types(model, ReferenceEvaluator(model).run(None, feeds))


def with_declared_types(model, outputs):
    """The reference evaluator often widens; shape inference knows the types that outputs must have."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
    except Exception:
        return outputs
    fixed = []
    for info, value in zip(inferred, outputs):
        kind = info.type.tensor_type.elem_type if info.type.HasField("tensor_type") else 0
        if isinstance(value, (np.ndarray, np.generic)) and kind and value.dtype.kind not in "OUS":
            name = onnx.TensorProto.DataType.Name(kind).lower()
            if name in DTYPES and name != "string" and np.dtype(DTYPES[name]) != value.dtype:
                value = np.asarray(value).astype(DTYPES[name])
        fixed.append(value)
    return fixed


def usable(outputs):
    for value in flat(outputs):
        if value.dtype.kind not in "OUS" and value.dtype not in NAMES:
            return False
    return all(v is not None for v in outputs)


def map_of(value):
    proto = onnx.MapProto()
    for key, item in value.items():
        if isinstance(key, str):
            proto.key_type = onnx.TensorProto.STRING
            proto.string_keys.append(key.encode())
        else:
            proto.key_type = onnx.TensorProto.INT64
            proto.keys.append(key)
        item = np.asarray(item, np.object_ if isinstance(item, str) else np.float32 if isinstance(item, float) else None)
        proto.values.tensor_values.append(numpy_helper.from_array(item))
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    return proto


def write_case(folder, case, model, feeds, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(build_model(case, outputs)[0].SerializeToString())
    for stem, values in (("input", list(feeds.values())), ("output", outputs)):
        for k, value in enumerate(values):
            if isinstance(value, dict):
                proto = map_of(value)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP, map_values=[map_of(v) for v in value])
            elif isinstance(value, list):
                proto = numpy_helper.from_list([np.asarray(v) for v in value])
            else:
                value = np.asarray(value)
                if value.dtype.kind in "US":
                    value = value.astype(np.object_)
                proto = numpy_helper.from_array(value)
            (data / f"{stem}_{k}.pb").write_bytes(proto.SerializeToString())
    names = {type_name(v) for v in flat(list(feeds.values()) + list(outputs))}
    rtol, atol = next((TOLERANCE[n] for n in ("bfloat16", "float16", "float", "double") if n in names), (1e-4, 2e-5))
    if names & {"float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1", "float8e8m0"}:
        rtol, atol = 0.26, 0.05
    floats = [np.abs(v.astype(np.float64)) for v in flat(outputs) if v.dtype.kind == "f" and v.size]
    size = max((float(np.max(v[np.isfinite(v)], initial=0)) for v in floats), default=0)
    (folder / "case.json").write_text(json.dumps({"rtol": rtol, "atol": atol * min(max(1.0, size), 1e3)}))


def run_operator(op, domain, opset, arguments):
    rng = np.random.default_rng([arguments.seed, *op.encode()])
    work = pathlib.Path(tempfile.mkdtemp(prefix="tombolo-differential-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    peers, refused, cases = {}, {}, {}
    tries = 0
    while len(cases) < arguments.cases and tries < arguments.cases * 4:
        tries += 1
        try:
            # Version 22 mostly added bfloat16; ONNX Runtime has many operators only before it.
            older = opset >= 22 and domain == "" and rng.random() < 0.7 and version_at(op, opset) == 22
            case = elementwise.GENERATORS[op](Gen(op, domain, 21 if older else opset, rng))
            case.opset = case.extra.get("opset", case.opset)
            model, feeds = build_model(case)
        except Skip:
            continue
        outputs = peer = None
        for name, run in (("ONNX Runtime", by_onnxruntime), ("reference", by_reference)):
            if name == "ONNX Runtime" and case.extra.get("random"):
                continue  # its streams are its own
            try:
                outputs = run(model, feeds)
                peer = name
                if usable(outputs):
                    break
            except Exception as error:  # whatever a peer raises is a refusal
                refused[name] = f"{type(error).__name__}: {str(error)[:150]}"
            outputs = None
        if outputs is None:
            continue
        name = f"c{len(cases):04d}"
        try:
            write_case(work / op / name, case, model, feeds, list(outputs))
        except Exception as error:
            shutil.rmtree(work / op / name, ignore_errors=True)
            refused["writing"] = f"{type(error).__name__}: {str(error)[:150]}"
            continue
        cases[name] = (case, peer, feeds, list(outputs))
        peers[peer] = peers.get(peer, 0) + 1
    failed, known = [], {}
    if cases:
        report = subprocess.run([arguments.tombolo, "conformance", str(work / op), "--json", "--jobs", "1", "--no-progress"],
                                capture_output=True, text=True)
        try:
            results = json.loads(report.stdout)["cases"]
        except ValueError:
            results = []
            failed.append((op, "", f"no report, exit {report.returncode}: {report.stderr[-300:]}"))
        for result in results:
            if result["status"] == "passed":
                continue
            case, peer, feeds, outputs = cases[pathlib.Path(result["name"]).name]
            peer += f" ({second_opinion(case, peer, feeds, outputs, arguments, work)})"
            row = explained(case, peer, result["reason"], feeds, outputs)
            if row:
                known[row] = known.get(row, 0) + 1
            else:
                failed.append((peer, case.describe(), result["reason"], str(work / op / pathlib.Path(result["name"]).name)))
    if arguments.keep and failed:
        shutil.copytree(work / op, pathlib.Path(arguments.keep) / op, dirs_exist_ok=True)
    shutil.rmtree(work)
    return {"op": op, "cases": len(cases), "peers": peers, "known": known, "failed": failed, "refused": refused}


def second_opinion(case, peer, feeds, outputs, arguments, work):
    """Whom the other peer agrees with: the reference on the same inputs, or ONNX Runtime on them as float32."""
    other, run = ("the reference", by_reference) if peer == "ONNX Runtime" else ("ONNX Runtime", by_onnxruntime)
    try:
        twin = Case.__new__(Case)
        twin.__dict__ |= case.__dict__
        if run is by_onnxruntime:  # which knows few types: as float32, that is
            asked = {"double", "float16", "uint8", "int8", "uint16", "int16", "uint32", "uint64"}
            exotic = lambda x: isinstance(x, np.ndarray) and (type_name(x) not in ORT_TYPES or type_name(x) in asked)
            twin.inputs = [x.astype(np.float32) if exotic(x) and x.dtype.kind != "c" else x for x in case.inputs]
            twin.opset = min(case.opset, 21) if not case.domain else case.opset
        model, twin_feeds = build_model(twin)
        found = list(run(model, twin_feeds))
        if run is by_reference and same(found, outputs):
            return f"{other} agrees"
        shutil.rmtree(work / "twin", ignore_errors=True)
        write_case(work / "twin" / "case", twin, model, twin_feeds, found)
        ours = subprocess.run([arguments.tombolo, "conformance", str(work / "twin"), "--no-progress"], capture_output=True)
        return f"{other} {'agrees with Tombolo' if ours.returncode == 0 else 'differs from both'}"
    except Exception as error:
        return f"{other} refuses: {type(error).__name__}"


def same(a, b):
    for x, y in zip(flat(a), flat(b)):
        if x.shape != y.shape:
            return False
        if x.dtype.kind in "OUS":
            if (x.astype(str) != y.astype(str)).any():
                return False
        elif x.dtype.kind in "iub":
            if not np.array_equal(x, y):
                return False
        elif not np.allclose(x.astype(np.float64), y.astype(np.float64), 1e-3, 1e-4, equal_nan=True):
            return False
    return True


def version_at(op, opset):
    return onnx.defs.get_schema(op, opset, "").since_version


def all_operators():
    """name -> (domain, operator set): the newest set that ONNX Runtime reads, where the operator is in it."""
    versions = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated and schema.domain != "ai.onnx.training":
            versions.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    return {name: (domain, max(since) if domain else NEWEST if min(since) <= NEWEST else 28)
            for (domain, name), since in versions.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tombolo")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--op", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for the cases of operators that differ")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    operators = all_operators()
    if arguments.child:
        op = arguments.op[0]
        print(json.dumps(run_operator(op, *operators[op], arguments)))
        return 0
    total = bad = short = 0
    missing = sorted(set(operators) - set(elementwise.GENERATORS))
    for op in arguments.op or sorted(set(operators) & set(elementwise.GENERATORS)):
        command = [sys.executable, "-W", "ignore", __file__, arguments.tombolo, "--child", "--op", op, "--cases",
                   str(arguments.cases), "--seed", str(arguments.seed)]
        command += ["--keep", arguments.keep] if arguments.keep else []
        try:
            child = subprocess.run(command, capture_output=True, text=True, timeout=600)
            result = json.loads(child.stdout.splitlines()[-1])
        except (IndexError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"{op}: no result: {error} {child.stderr[-800:] if 'child' in dir() else ''}")
            bad += 1
            continue
        total += result["cases"]
        bad += len(result["failed"])
        short += result["cases"] < arguments.cases
        peers = ", ".join(f"{n} by {p}" for p, n in result["peers"].items())
        note = "".join(f"; {n} x {row}" for row, n in result["known"].items())
        print(f"{op}: {result['cases']} cases ({peers}){note}" + (f", {len(result['failed'])} DIFFER" if result["failed"] else ""), flush=True)
        if result["cases"] < arguments.cases:
            print(f"    short; refusals: {result['refused']}")
        for failure in result["failed"][:6]:
            print("    " + " | ".join(failure))
    print(f"{total} cases; {bad} unexplained; {short} operators short; without a generator: {', '.join(missing)}")
    return 1 if bad or short else 0


if __name__ == "__main__":
    sys.exit(main())
