"""Times one model in OpenVINO, MNN or LiteRT, in float32, and prints the median of its runs in milliseconds.

    python bench/peers.py openvino|mnn|litert MODEL.onnx [--threads N] [--runs N] [--seconds S] [--size NAME=N]... [--inputs FILE.npz]

Inputs that FILE does not give are random floats, or zeros where they are integers. MNN and LiteRT read their own
formats: what MNN's converter or onnx2tf makes is kept beside the model. LiteRT needs ai-edge-litert, onnx2tf, tensorflow, tf_keras,
onnx_graphsurgeon, sng4onnx and psutil, and runs XNNPACK. Exit code 1, with the reason, where the peer does not take the model, or where
its first output is not ONNX Runtime's (a tenth of its root mean square apart).
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime


def inputs_of(path, sizes, given):
    model = onnx.load(path, load_external_data=False)
    constants = {t.name for t in model.graph.initializer}
    values = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 1) for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if value.name in given:
            values[value.name] = np.ascontiguousarray(given[value.name].astype(dtype))
        elif np.issubdtype(dtype, np.floating):
            values[value.name] = np.random.default_rng(1).standard_normal(shape).astype(dtype)
        else:
            values[value.name] = np.zeros(shape, dtype)
    return values


def openvino(path, values, threads):
    import openvino as ov
    core = ov.Core()
    # Its own choice would be bf16 on processors that have it.
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(path)
    model.reshape({name: list(value.shape) for name, value in values.items()})
    compiled = core.compile_model(model, "CPU")
    request = compiled.create_infer_request()
    return lambda: request.infer(values), lambda: request.get_output_tensor(0).data


def mnn(path, values, threads):
    path = os.path.abspath(path)
    made = path[:-len(".onnx")] + ".mnn"
    if not os.path.exists(made):
        converter = os.path.join(os.path.dirname(sys.executable), "mnnconvert")
        # It leaves a file where it is started.
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([converter, "-f", "ONNX", "--modelFile", path, "--MNNModel", made, "--bizCode", "bench"], capture_output=True, text=True, cwd=folder)
        if not os.path.exists(made):
            sys.exit("mnnconvert: " + (done.stdout + done.stderr).strip().splitlines()[-1])
    import MNN
    interpreter = MNN.Interpreter(made)
    session = interpreter.createSession({"backend": "CPU", "numThread": threads, "precision": "high"})
    for name, tensor in interpreter.getSessionInputAll(session).items():
        interpreter.resizeTensor(tensor, tuple(values[name].shape))
    interpreter.resizeSession(session)
    kinds = {np.dtype(np.float32): MNN.Halide_Type_Float, np.dtype(np.int64): MNN.Halide_Type_Int, np.dtype(np.int32): MNN.Halide_Type_Int}
    for name, tensor in interpreter.getSessionInputAll(session).items():
        value = values[name].astype(np.int32) if values[name].dtype == np.int64 else values[name]
        tensor.copyFrom(MNN.Tensor(value.shape, kinds[value.dtype], value, MNN.Tensor_DimensionType_Caffe))

    def output():
        tensor = interpreter.getSessionOutput(session, onnx.load(path, load_external_data=False).graph.output[0].name)
        host = MNN.Tensor(tensor.getShape(), MNN.Halide_Type_Float, np.zeros(tensor.getShape(), np.float32), MNN.Tensor_DimensionType_Caffe)
        tensor.copyToHostTensor(host)
        return np.array(host.getNumpyData())
    return lambda: interpreter.runSession(session), output


def litert(path, values, threads):
    path = os.path.abspath(path)
    made = path[:-len(".onnx")] + ".tflite"
    if not os.path.exists(made):
        with tempfile.TemporaryDirectory() as folder:
            # It would fetch pictures to calibrate with, which float32 does not need.
            np.save(os.path.join(folder, "calibration_image_sample_data_20x128x128x3_float32.npy"), np.zeros((20, 128, 128, 3), np.float32))
            command = [os.path.join(os.path.dirname(sys.executable), "onnx2tf"), "-i", path, "-o", "made", "-n"]
            shapes = [f"{name}:{','.join(str(n) for n in value.shape)}" for name, value in values.items()]
            done = subprocess.run(command + ["-ois", *shapes], capture_output=True, text=True, cwd=folder)
            found = [f for f in (os.listdir(os.path.join(folder, "made")) if os.path.isdir(os.path.join(folder, "made")) else []) if f.endswith("_float32.tflite")]
            if not found:
                sys.exit("onnx2tf: " + (done.stdout + done.stderr).strip().splitlines()[-1])
            shutil.copy(os.path.join(folder, "made", found[0]), made)
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(made, num_threads=threads)
    interpreter.allocate_tensors()
    for place in interpreter.get_input_details():
        name = place["name"].removeprefix("serving_default_").split(":")[0]
        value = values[name] if name in values else next(iter(values.values()))
        # Channels are last there.
        if tuple(place["shape"]) != value.shape:
            value = np.moveaxis(value, 1, -1)
        interpreter.set_tensor(place["index"], np.ascontiguousarray(value.astype(place["dtype"])))

    def output():
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return interpreter.invoke, output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=["openvino", "mnn", "litert"])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--size", action="append", default=[])
    parser.add_argument("--inputs")
    args = parser.parse_args()
    sizes = {key: int(number) for key, number in (one.split("=") for one in args.size)}
    values = inputs_of(args.model, sizes, np.load(args.inputs) if args.inputs else {})
    run, output = {"openvino": openvino, "mnn": mnn, "litert": litert}[args.peer](args.model, values, args.threads)
    run()
    wanted = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"]).run(None, values)[0].astype(np.float64)
    got = output().astype(np.float64)
    if args.peer == "litert" and got.shape != wanted.shape and got.ndim > 2:
        got = np.moveaxis(got, -1, 1)
    if got.size != wanted.size or not np.sqrt(np.mean((got.ravel() - wanted.ravel()) ** 2)) <= 0.1 * np.sqrt(np.mean(wanted ** 2)):
        sys.exit(f"{args.peer} computes something else than ONNX Runtime")
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 2 or (len(times) < args.runs and time.perf_counter() - begin < args.seconds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(f"{np.median(times) * 1e3:.4f}")


if __name__ == "__main__":
    main()
