#!/usr/bin/env python3
"""Compares Tombolo's com.microsoft operators with ONNX Runtime, on random models of one node.

    python3 tools/oracle_microsoft.py build/release/tombolo [--cases 200] [--seed 1] [NAME...]

Needs `pip install onnx==1.23.2 onnxruntime==1.31.1 numpy`. Each operator has a generator of valid cases
(oracle_microsoft_cases.py, oracle_microsoft_more.py); where ONNX Runtime has no kernel for the CPU, the generator brings a formula in
numpy. A case that the runtime refuses is made anew; one operator's differences are printed and counted.
Exits with 1 if any case differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper

import oracle_microsoft_cases as cases
import oracle_microsoft_generation  # noqa: F401  (these add their generators to cases)
import oracle_microsoft_more  # noqa: F401
import oracle_microsoft_recent  # noqa: F401

DTYPES = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16, "int32": TensorProto.INT32, "uint32": TensorProto.UINT32,
    "int64": TensorProto.INT64, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL,
}


def elem(case, i, array):
    if i in case.types:
        return case.types[i]
    return TensorProto.STRING if array.dtype.kind in "UO" else DTYPES[str(array.dtype)]


def build(case, constant=()):
    """The model; inputs in `constant` become initialisers (some kernels want that)."""
    names = ["" if a is None else f"in_{i}" for i, a in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    outputs = ["" if i in case.skip_outputs else f"out_{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attrs)
    given = [(i, a) for i, a in enumerate(case.inputs) if a is not None]
    graph_inputs, initializers = [], []
    for i, array in given:
        kind = elem(case, i, array)
        if i in constant or i in case.constants:
            initializers.append(constant_of(kind, array, f"in_{i}"))
        else:
            graph_inputs.append(helper.make_tensor_value_info(f"in_{i}", kind, logical(kind, array)))
    graph_outputs = [
        helper.make_tensor_value_info(name, case.output_types[i], None) if i in case.output_types
        else onnx.ValueInfoProto(name=name) for i, name in enumerate(outputs) if name]
    graph = helper.make_graph([node], "g", graph_inputs, graph_outputs, initializers)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    return model


PACKED = {TensorProto.INT4, TensorProto.UINT4}


def logical(kind, array):
    return list(array.shape)


def constant_of(kind, array, name):
    if kind in PACKED:  # one element to a byte here, two in the file
        flat = array.reshape(-1).astype(np.uint8) & 15
        if flat.size % 2:
            flat = np.append(flat, 0)
        raw = (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
        return TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=raw)
    if kind == TensorProto.STRING:
        return helper.make_tensor(name, kind, array.shape, [s.encode() for s in array.reshape(-1)])
    return TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=np.ascontiguousarray(array).tobytes())


def said(case, outputs):
    """The outputs without what may be anything."""
    return outputs if case.adjust is None or isinstance(outputs, str) else case.adjust(outputs)


def run_peer(case, model):
    if case.reference is not None:
        outputs = case.reference(*case.inputs, **case.attrs)
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {f"in_{i}": a for i, a in enumerate(case.inputs) if a is not None and i not in case.constants}
    if not case.shared:
        return said(case, session.run(None, feed))
    # Caches that are updated in place: the output lies where the input does.
    binding = session.io_binding()
    values = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feed.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for k, output in enumerate(session.get_outputs()):
        if k in case.shared:
            binding.bind_ortvalue_output(output.name, values[f"in_{case.shared[k]}"])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def run_ours(binary, case, model, folder):
    path, inputs, outputs = (os.path.join(folder, n) for n in ("m.onnx", "in.npz", "out.npz"))
    onnx.save(model, path)
    feed = {f"in_{i}": a if a.dtype.kind not in "O" else a.astype(str)
            for i, a in enumerate(case.inputs) if a is not None and i not in case.constants}
    np.savez(inputs, **feed)
    run = subprocess.run([binary, "run", path, "--inputs", inputs, "--outputs", outputs, "-q"],
                         capture_output=True, text=True, timeout=120)
    if run.returncode:
        return run.stderr.strip()
    with np.load(outputs, allow_pickle=False) as loaded:
        return [loaded[k] for k in loaded.files if not k.startswith("__")]


def wrong_inference(binary, case, model, ours, folder):
    """Where inferred types or shapes contradict what came out, or an empty string."""
    bare, full = (os.path.join(folder, n) for n in ("bare.onnx", "full.onnx"))
    onnx.save(model, bare)
    run = subprocess.run([binary, "infer", bare, full, "-q"], capture_output=True, text=True, timeout=60)
    if run.returncode:
        return "infer: " + (run.stderr.strip().splitlines() or ["failed"])[0]
    for value, array in zip(onnx.load(full).graph.output, ours):
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            return f"infer: nothing known of {value.name}"
        dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        if len(dims) != array.ndim or any(d not in (None, n) for d, n in zip(dims, array.shape)):
            return f"infer: {value.name} is {dims}, came out as {array.shape}"
        if array.dtype.kind not in "OU" and kind.elem_type != DTYPES[str(array.dtype)]:
            return f"infer: {value.name} has type {kind.elem_type}, came out as {array.dtype}"
    return ""


NAMES = {"float32": "float", "float64": "double"}


def text_of(array):
    kind = NAMES.get(str(array.dtype), str(array.dtype)) if array.dtype.kind not in "OU" else "string"
    if array.dtype.kind in "OU":
        values = [f'"{v}"' for v in array.reshape(-1)]
    elif array.dtype.kind == "f":
        values = [np.format_float_positional(v, unique=True, trim="0") for v in array.reshape(-1)]
    else:
        values = [str(int(v)) for v in array.reshape(-1)]
    shape = "[" + ",".join(map(str, array.shape)) + "]" if array.ndim else ""
    return kind + shape, ", ".join(values)


def attribute_text(value):
    if isinstance(value, list):
        return "[" + ", ".join(attribute_text(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def test_part(case, outputs):
    """A part of a .test file that runs this case."""
    given = [(i, a) for i, a in enumerate(case.inputs) if a is not None]
    inputs = ", ".join("{} in_{} = {{{}}}".format(text_of(a)[0], i, text_of(a)[1]) for i, a in given)
    names = ", ".join("" if a is None else f"in_{i}" for i, a in enumerate(case.inputs))
    shown = [k for k in range(case.outputs) if k not in case.skip_outputs]
    results = ", ".join(f"{text_of(np.asarray(o))[0]} out_{k}" for k, o in zip(shown, outputs))
    node = ", ".join("" if k in case.skip_outputs else f"out_{k}" for k in range(case.outputs))
    attrs = ", ".join(f"{k} = {attribute_text(v)}" for k, v in case.attrs.items())
    op = (case.domain + "." if case.domain else "") + case.op
    expect = ",\n".join("{} out_{} = {{{}}}".format(*(t := text_of(np.asarray(o)))[:1], k, t[1]) for k, o in zip(shown, outputs))
    return (f'NAME: {case.op}\nRUN: run\n<ir_version: 10, opset_import: ["" : {case.opset}, "com.microsoft" : 1]>\n'
            f"g ({inputs}) => ({results}) {{\n  {node} = {op}{f' <{attrs}>' if attrs else ''} ({names.rstrip(', ')})\n}}\n"
            f"EXPECT:\n{expect}\n")


def fit_for_test(case, outputs):
    arrays = [a for a in case.inputs if a is not None] + [np.asarray(o) for o in outputs]
    plain = all(a.dtype.kind not in "f" or np.isfinite(a).all() for a in arrays)
    graphs = any(isinstance(v, onnx.GraphProto) for v in case.attrs.values())
    return plain and not graphs and not case.types and sum(a.size for a in arrays) <= 160


def rounded(case):
    for i, a in enumerate(case.inputs):
        if a is not None and a.dtype.kind == "f":
            case.inputs[i] = np.array([float(f"{v:.2g}") for v in a.reshape(-1)], a.dtype).reshape(a.shape)
    return case


def exactly_ours(binary, case, outputs):
    """Whether integers that may lie a step apart do not."""
    if not case.quantum:
        return True
    with tempfile.TemporaryDirectory() as folder:
        ours = run_ours(binary, case, build(case), folder)
    return not isinstance(ours, str) and all(np.array_equal(a, b) for a, b in zip(ours, outputs))


def emit(binary, folder, sections):
    """Writes tests/microsoft/*.test: the peer's results on small cases, one or two an operator."""
    parts = {}
    for name, generator in cases.GENERATORS.items():
        if sections and cases.SECTIONS[name] not in sections:
            continue
        rng = np.random.default_rng([7, *name.encode()])
        found = []
        for _ in range(400):
            case = rounded(generator(rng))
            if case.adjust is not None:
                continue
            try:
                outputs = run_peer(case, build(case))
            except Exception:
                continue
            size = sum(a.size for a in case.inputs if a is not None)
            if fit_for_test(case, outputs) and exactly_ours(binary, case, outputs):
                found.append((size, len(found), test_part(case, outputs)))
            if len(found) >= 12:
                break
        found.sort()
        # Not the very smallest: lengths of 1 hide mistakes.
        parts.setdefault(cases.SECTIONS[name], []).extend(p for _, _, p in found[-3:-1] or found)
        if not found:
            print(f"no small case of {name}")
    for section, texts in parts.items():
        with open(os.path.join(folder, section + ".test"), "w", encoding="utf-8") as file:
            file.write(f"# Made by tools/oracle_microsoft.py --emit.\n" + "---\n".join(texts))


def difference(case, ours, theirs):
    """What differs, or an empty string."""
    if isinstance(ours, str):
        return "error: " + ours.splitlines()[0] if ours else "error"
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs, not {len(theirs)}"
    for k, (a, b) in enumerate(zip(ours, theirs)):
        b = np.asarray(b)
        if k in case.ignore:
            continue
        if k == 0 and case.unfilled is not None and a.shape == b.shape:
            while a.shape[-1] and (a[..., -1] == case.unfilled).all():
                a, b = a[..., :-1], b[..., :-1]
        if a.shape != b.shape:
            return f"output {k}: shape {a.shape}, not {b.shape}"
        if b.dtype.kind in "OU":
            if (a.astype(str) != b.astype(str)).any():
                return f"output {k}: strings differ"
            continue
        if str(a.dtype) != str(b.dtype):
            return f"output {k}: type {a.dtype}, not {b.dtype}"
        if b.dtype.kind in "iub":
            gap = np.abs(a.astype(np.int64) - b.astype(np.int64))
            if gap.size and gap.max() > case.quantum:
                return f"output {k}: off by {gap.max()}, {np.mean(gap > case.quantum):.1%} of the elements"
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        rtol, atol = case.rtol, case.atol
        if b.dtype == np.float16:
            rtol, atol = max(rtol, 4e-3), max(atol, 4e-3)
        with np.errstate(invalid="ignore"):
            close = (np.abs(x - y) <= atol + rtol * np.abs(y)) | (x == y) | (np.isnan(x) & np.isnan(y))
        if not close.all():
            worst = np.nanmax(np.where(close, 0, np.abs(x - y)))
            return f"output {k}: off by {worst:.3g}, {np.mean(~close):.1%} of the elements"
    return ""


def describe(case):
    shapes = ["-" if a is None else f"{a.dtype}{list(a.shape)}" for a in case.inputs]
    return f"{', '.join(shapes)} {({k: v for k, v in case.attrs.items() if not isinstance(v, onnx.GraphProto)})}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--emit", help="write small cases as tests into this folder (NAME: a section), and nothing else")
    parser.add_argument("--keep", help="write differing models into this folder")
    args = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    if args.emit:
        return emit(args.binary, args.emit, args.names)
    failed = 0
    for name, generator in cases.GENERATORS.items():
        if args.names and name not in args.names:
            continue
        rng = np.random.default_rng([args.seed, len(name), *name.encode()])
        same = different = refused = 0
        shown = []
        with tempfile.TemporaryDirectory() as folder:
            while same + different < args.cases and refused < 3 * args.cases + 20:
                case = generator(rng)
                model = build(case)
                try:
                    theirs = run_peer(case, model)
                except Exception as why:  # the peer refuses: another case
                    refused += 1
                    if args.show > 3 and refused < 4:
                        print(f"  refused: {str(why)[:300]}\n    {describe(case)}")
                    continue
                ours = said(case, run_ours(args.binary, case, model, folder))
                what = difference(case, ours, theirs)
                if not what and same < 12:
                    what = wrong_inference(args.binary, case, model, ours, folder)
                if not what:
                    same += 1
                    continue
                different += 1
                if len(shown) < args.show:
                    shown.append(f"  {what}\n    {describe(case)}")
                if args.keep:
                    at = os.path.join(args.keep, f"{name}_{different}")
                    os.makedirs(at, exist_ok=True)
                    onnx.save(model, os.path.join(at, "model.onnx"))
        peer = "formula" if case.reference is not None else "runtime"
        print(f"{name}: {same} same, {different} different ({peer}{f', {refused} refused' if refused else ''})",
              flush=True)
        for line in shown:
            print(line, flush=True)
        failed += different or not same
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
