"""Measures shape inference on the official node cases: how many outputs get a full shape, and how
many are wrong (must be 0).

    python tools/infer_scoreboard.py build/release/tombolo DIR [--constants]

Needs numpy and onnx. Types of outputs and value_info are stripped; with --constants small and
integer inputs become initialisers.
"""
import argparse, concurrent.futures, json, pathlib, subprocess, sys, tempfile
import onnx
from onnx import numpy_helper


def load_value(path, type_proto):
    data = path.read_bytes()
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return onnx.TensorProto.FromString(data)
    return None


def one(case, tool, constants, folder):
    model = onnx.load(case / "model.onnx")
    graph = model.graph
    data = case / "test_data_set_0"
    truth = []
    for i, output in enumerate(graph.output):
        path = data / f"output_{i}.pb"
        tensor = load_value(path, output.type) if path.exists() else None
        truth.append((output.name, tensor, output.type.WhichOneof("value")))
        output.ClearField("type")
    del graph.value_info[:]
    if constants:
        kept = []
        for i, value in enumerate(graph.input):
            path = data / f"input_{i}.pb"
            tensor = load_value(path, value.type) if path.exists() else None
            size = 1
            for d in tensor.dims if tensor is not None else []:
                size *= d
            integer = tensor is not None and tensor.data_type in (6, 7)
            if tensor is not None and (size <= 8 or (integer and size <= 64)):
                tensor.name = value.name
                graph.initializer.append(tensor)
            else:
                kept.append(value)
        del graph.input[:]
        graph.input.extend(kept)
        if model.ir_version < 4:
            model.ir_version = 4
    source = pathlib.Path(folder) / f"{case.name}.onnx"
    result = pathlib.Path(folder) / f"{case.name}.out.onnx"
    onnx.save(model, source)
    run = subprocess.run([tool, "infer", source, "-o", result], capture_output=True, text=True, timeout=60)
    rows = []
    if not result.exists():
        return [(case.name, name, "crash", run.stderr[:200]) for name, _, _ in truth]
    inferred = {o.name: o.type for o in onnx.load(result).graph.output}
    if run.returncode != 0:
        rows.append((case.name, "", "error", run.stderr.strip()[:300]))
    for name, tensor, kind in truth:
        got = inferred[name]
        if kind != "tensor_type":
            state = "other" if got.WhichOneof("value") == kind else "norank"
            rows.append((case.name, name, state, ""))
            continue
        if tensor is None:
            continue
        t = got.tensor_type
        if got.WhichOneof("value") not in (None, "tensor_type") or (
            t.elem_type not in (0, tensor.data_type)
        ):
            rows.append((case.name, name, "wrong", f"{t.elem_type} is {tensor.data_type}"))
            continue
        if t.elem_type == 0:
            rows.append((case.name, name, "notype", ""))
            continue
        if not t.HasField("shape"):
            rows.append((case.name, name, "norank", ""))
            continue
        dims = [d.dim_value if d.HasField("dim_value") else None for d in t.shape.dim]
        bad = len(dims) != len(tensor.dims) or any(
            a is not None and a != b for a, b in zip(dims, tensor.dims)
        )
        state = "wrong" if bad else "partial" if None in dims else "full"
        rows.append((case.name, name, state, f"{dims} is {list(tensor.dims)}"))
    source.unlink()
    result.unlink()
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("dir")
    parser.add_argument("--constants", action="store_true")
    parser.add_argument("--list", default="wrong,error,crash,norank,notype")
    args = parser.parse_args()
    cases = sorted(p.parent for p in pathlib.Path(args.dir).rglob("model.onnx"))
    cases = [c for c in cases if (c / "test_data_set_0").exists()]
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if "_expanded" in case.name:
                continue
            for row in one(case, args.tool, args.constants, folder):
                counts[row[2]] = counts.get(row[2], 0) + 1
                if row[2] in args.list.split(","):
                    print(*row)
    print(json.dumps(counts))
    return 1 if counts.get("wrong") or counts.get("crash") else 0


if __name__ == "__main__":
    sys.exit(main())
