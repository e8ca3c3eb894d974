"""Compares Tombolo with Keras on the float .h5 networks of MLPerf Tiny, on random inputs.

Set-up (Python 3.11, a throw-away environment of about 1.8 GB; tf_keras is Keras 2, the writer of these files):

    python3 -m venv /tmp/tombolo-keras
    /tmp/tombolo-keras/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 tf_keras==2.21.0 numpy==2.4.6 h5py==3.14.0

    TOMBOLO_SHARED=../shared /tmp/tombolo-keras/bin/python tools/oracle_mlperf.py build/release/tombolo
    TOMBOLO_SHARED=../shared /tmp/tombolo-keras/bin/python tools/oracle_mlperf.py --self-test

Each .h5 is converted to ONNX, checked, and run on 100 random inputs, one batch. The expected outputs come from the
first of these that works: Keras 3, Keras 2 (tf_keras), the float .tflite beside the .h5 in TFLite's own interpreter.
--self-test needs no binary: it compares those runtimes with each other.

A softmax hides errors where one class wins by far, as these do on noise, so each network is also compared without its last
softmax; there the tolerance is relative to the largest logit.

Exit code: 0 all within the tolerance, 1 not, 2 usage, 3 nothing to compare. A network that no runtime can load, or that
the binary cannot convert, counts as a failure.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy as np

warnings.simplefilter("ignore")  # deprecations inside the frameworks

TOLERANCE = 1e-5
SAMPLES = 100
SEED = 7


def input_shape(path):
    """The shape of one sample, read from the file itself, so that no runtime has to load it first."""
    with h5py.File(path) as file:
        layers = json.loads(file.attrs["model_config"])["config"]["layers"]
    first = next(layer["config"] for layer in layers if layer["class_name"] == "InputLayer")
    return first["batch_input_shape"][1:]


def samples(shape):
    """Named batches (SAMPLES, *shape) float32: noise around zero, each sample of another strength, and the 0..1 and
    0..255 that pictures have."""
    random = np.random.default_rng(SEED)
    shape = [SAMPLES, *shape]
    strength = 10 ** random.uniform(-2, 2, [SAMPLES] + [1] * (len(shape) - 1))
    return {
        "normal": (random.standard_normal(shape) * strength).astype(np.float32),
        "0..1": random.random(shape, np.float32),
        "0..255": random.integers(0, 256, shape).astype(np.float32),
    }


def without_softmax(path, folder):
    """A copy of the .h5 whose last layer gives logits, else None."""
    with h5py.File(path) as file:
        config = json.loads(file.attrs["model_config"])
    last = config["config"]["layers"][-1]["config"]
    if last.get("activation") != "softmax":
        return None
    last["activation"] = "linear"
    copy = pathlib.Path(folder) / f"{path.stem}_logits.h5"
    shutil.copyfile(path, copy)
    with h5py.File(copy, "r+") as file:
        file.attrs["model_config"] = json.dumps(config)
    return copy


def run_keras3(path, batch):
    import keras

    class DepthwiseConv2D(keras.layers.DepthwiseConv2D):
        """Keras 2 wrote an argument `groups` that Keras 3 refuses; one per channel is what depthwise means."""

        def __init__(self, groups=1, **options):
            assert groups == 1
            super().__init__(**options)

    model = keras.models.load_model(path, compile=False, custom_objects={"DepthwiseConv2D": DepthwiseConv2D})
    return np.asarray(model([batch], training=False))


def run_keras2(path, batch):
    import tf_keras

    return np.asarray(tf_keras.models.load_model(path, compile=False)(batch, training=False))


def run_tflite(path, batch):
    """The .tflite of the same name beside it, if that is the same network in floats."""
    import tensorflow as tf

    if not path.with_suffix(".tflite").exists():
        raise FileNotFoundError("no .tflite beside it")
    interpreter = tf.lite.Interpreter(str(path.with_suffix(".tflite")))
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    if source["dtype"] != np.float32 or result["dtype"] != np.float32:
        raise ValueError("the .tflite is quantised")
    interpreter.resize_tensor_input(source["index"], batch.shape)
    interpreter.allocate_tensors()
    types = {str(np.dtype(detail["dtype"])) for detail in interpreter.get_tensor_details()}
    if "int8" in types:
        raise ValueError("the .tflite has int8 tensors inside")
    interpreter.set_tensor(source["index"], batch)
    interpreter.invoke()
    return interpreter.get_tensor(result["index"])


RUNTIMES = {"Keras 3": run_keras3, "Keras 2": run_keras2, "TFLite": run_tflite}


def answers(path, batch, first_only):
    """{runtime: output} of the runtimes that can load the file; says which cannot, and why."""
    found = {}
    for name, runtime in RUNTIMES.items():
        try:
            found[name] = runtime(path, batch)
        except Exception as error:  # the frameworks raise every kind
            print(f"    {name} cannot: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        if found and first_only:
            break
    return found


def run_tombolo(binary, path, batch):
    """Converts and runs as a user would: convert, check, run --inputs --outputs. The only output (SAMPLES, ...)."""

    def call(*arguments):
        done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(f"tombolo {arguments[0]} gave exit code {done.returncode}: {done.stderr.strip()[:500]}")

    with tempfile.TemporaryDirectory() as folder:
        model, inputs, outputs = (pathlib.Path(folder) / name for name in ("model.onnx", "x.npz", "y.npz"))
        np.savez(inputs, batch)
        call("convert", path, model)
        call("check", model)
        call("run", model, "--inputs", inputs, "--outputs", outputs)
        result = np.load(outputs)
        (name,) = result.files
        return result[name]


def report(label, got, expected, tolerance):
    """Prints one line and says whether it is within the tolerance. NaN or another shape or type is not."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        print(f"    {label:28} shape {got.shape} {got.dtype}, expected {expected.shape} {expected.dtype}   FAILED")
        return False
    difference = float(np.abs(got.astype(np.float64) - expected).max())
    good = difference <= tolerance
    verdict = "" if good else f" (allowed {tolerance:.3g})   FAILED"
    largest = float(np.abs(expected).max())
    print(f"    {label:28} max abs difference {difference:.3g} in values up to {largest:.3g}{verdict}")
    return good


def compare(path, binary):
    """Compares all that can run the file, on every kind of input."""
    good = True
    for kind, batch in samples(input_shape(path)).items():
        print(f"{path.name}, {len(batch)} inputs {kind}")
        expected = answers(path, batch, first_only=bool(binary))
        if len(expected) < (1 if binary else 2):
            print("    nothing to compare with   FAILED")
            good = False
            continue
        (name, reference), *others = expected.items()
        tolerance = TOLERANCE * max(1.0, float(np.abs(reference).max()))  # probabilities are never above 1
        for other, output in others:
            good &= report(f"{other} against {name}", output, reference, tolerance)
        if binary:
            try:
                good &= report(f"tombolo against {name}", run_tombolo(binary, path, batch), reference, tolerance)
            except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                print(f"    {error}   FAILED")
                good = False
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", help="the tombolo to test")
    parser.add_argument("--self-test", action="store_true", help="compare the frameworks' runtimes with each other")
    options = parser.parse_args()
    if bool(options.binary) == options.self_test:
        parser.error("give either a binary or --self-test")
    binary = options.binary and str(pathlib.Path(options.binary).resolve())

    shared = pathlib.Path(os.environ.get("TOMBOLO_SHARED", "../shared"))
    paths = sorted((shared / "fixtures/mlperf_tiny").rglob("*.h5"))
    if not paths:
        print(f"no .h5 below {shared / 'fixtures/mlperf_tiny'}; set TOMBOLO_SHARED", file=sys.stderr)
        return 3
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            good &= compare(path, binary)
            if logits := without_softmax(path, folder):
                good &= compare(logits, binary)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
