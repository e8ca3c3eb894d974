"""How exact results are: the rms error of Tombolo's and of ONNX Runtime's outputs against the same model in double.

    python bench/exactness.py TOMBOLO MODEL_DIR [--only NAME,...] [--samples 3] [--threads 1] [--out FILE]

A copy of each model with every float32 and float16 made float64 is run by Tombolo; it and the two runs of the model itself get the same random
inputs. Models with operators that have no double form (com.microsoft, quantisation) are left out, and said so. The ratio is our error to ONNX
Runtime's: 1.5 is the most that the project allows itself.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper

import peers
import run

WIDE = {TensorProto.FLOAT: TensorProto.DOUBLE, TensorProto.FLOAT16: TensorProto.DOUBLE}
NARROW = (np.float32, np.float16)


def widen_type(type_proto):
    tensor = type_proto.tensor_type
    tensor.elem_type = WIDE.get(tensor.elem_type, tensor.elem_type)


def widen_tensor(tensor):
    if tensor.data_type in WIDE:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def widen_graph(graph):
    for value in [*graph.input, *graph.output, *graph.value_info]:
        widen_type(value.type)
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for node in graph.node:
        if node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
            raise ValueError(f"{node.domain}.{node.op_type} has no double form")
        if "Quantize" in node.op_type or "Integer" in node.op_type or node.op_type.startswith("QLinear"):
            raise ValueError(f"{node.op_type} has no double form")
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widen_tensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                widen_graph(attribute.g)
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                numbers = np.array(attribute.f if attribute.name == "value_float" else list(attribute.floats), np.float64)
                attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(numbers)))
            elif attribute.name in ("to", "dtype") and attribute.i in WIDE:
                attribute.i = WIDE[attribute.i]


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def tombolo_outputs(tombolo, path, values, threads, folder):
    given, made = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    np.savez(given, **values)
    subprocess.run([tombolo, "run", path, "--inputs", given, "--outputs", made, "--threads", str(threads), "--quiet"], check=True, capture_output=True)
    with np.load(made) as file:
        return {name: file[name] for name in file.files}


def errors(tombolo, path, name, sizes, samples, threads):
    """Relative rms errors (ours, ONNX Runtime's) over all samples, of the output where ours is worst beside theirs."""
    model = onnx.load(path)
    widen_graph(model.graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    squares = {}
    with tempfile.TemporaryDirectory() as folder:
        double = os.path.join(folder, "double.onnx")
        onnx.save(model, double)
        del model
        arguments = run.arguments_of(name, sizes, folder)
        given = dict(np.load(arguments[arguments.index("--inputs") + 1])) if "--inputs" in arguments else {}
        values = {key: np.asarray(value) for key, value in peers.inputs_of(path, sizes, given).items()}
        for sample in range(samples):
            draw = np.random.default_rng(sample)
            values = {key: draw.standard_normal(value.shape).astype(value.dtype) if value.dtype in NARROW and key not in given else value
                      for key, value in values.items()}
            wide = {key: value.astype(np.float64) if value.dtype in NARROW else value for key, value in values.items()}
            exact = tombolo_outputs(tombolo, double, wide, threads, folder)
            ours = tombolo_outputs(tombolo, path, values, threads, folder)
            theirs = dict(zip([output.name for output in session.get_outputs()], session.run(None, values)))
            for key, right in exact.items():
                if right.dtype == np.float64:
                    scale = rms(right) or 1.0
                    row = squares.setdefault(key, np.zeros(2))
                    row += [(rms(ours[key] - right) / scale) ** 2, (rms(theirs[key] - right) / scale) ** 2]
    rows = [np.sqrt(row / samples) for row in squares.values()]
    return max(rows, key=lambda row: row[0] / max(row[1], 1e-12))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("folder")
    parser.add_argument("--only")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else sorted(os.path.basename(file)[:-5] for file in glob.glob(os.path.join(args.folder, "*.onnx")))
    lines = ["| model | Tombolo's relative rms error | ONNX Runtime's | ratio |", "| --- | --- | --- | --- |"]
    worst = 0.0
    for name in names:
        for label, sizes in run.SIZES.get(name, [("", {})]):
            title = name + (f" ({label})" if label else "")
            try:
                ours, theirs = errors(args.tombolo, os.path.join(args.folder, name + ".onnx"), name, sizes, args.samples, args.threads)
            except Exception as error:  # said in the table; the others are measured all the same
                lines.append(f"| {title} | {str(error).splitlines()[0][:90]} | | |")
            else:
                ratio = ours / theirs if theirs > 0 else (1.0 if ours == 0 else float("inf"))
                worst = max(worst, ratio)
                lines.append(f"| {title} | {ours:.2e} | {theirs:.2e} | {ratio:.2f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + f"\n\nLargest ratio: {worst:.2f}\n"
    print(text)
    if args.out:
        with open(args.out, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
