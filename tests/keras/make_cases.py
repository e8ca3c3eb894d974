"""Makes tests/keras/cases with the real frameworks. The cases need no framework to be tested.

Set-up (Python 3.11, a throw-away environment of about 1.8 GB; tf_keras is Keras 2):

    python3 -m venv /tmp/tombolo-keras
    /tmp/tombolo-keras/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 tf_keras==2.21.0 numpy==2.4.6 h5py==3.14.0

    /tmp/tombolo-keras/bin/python tests/keras/make_cases.py                # write all (some minutes), then check them
    /tmp/tombolo-keras/bin/python tests/keras/make_cases.py conv2d_same    # only these
    /tmp/tombolo-keras/bin/python tests/keras/make_cases.py --check        # only check what is committed
    /tmp/tombolo-keras/bin/python tests/keras/make_cases.py --extra DIR    # larger and rarer cases, not committed, into DIR

A case is a folder NAME with the model, `io.npz` and `case.json`:
- the model is model.keras, model.h5, or model.json with its weights; case.json says under "files" which, the model first;
- io.npz holds in_0.., out_0.. for one batch size and in2_0.., out2_0.. for another (and for other lengths or picture
  sizes where the network leaves them free), in the order of model.inputs and model.outputs;
- case.json names the framework, the inputs and outputs, the tolerances and the layer classes. "expect": "refused" marks
  what no tool without Python can convert.

Weights are random, those of normalisations too: the usual 0 and 1 would hide a mix-up. The check runs in a fresh process,
sees only the files, reproduces the outputs, and compares them with a second implementation, XLA, where that can run it.
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
import warnings
import zlib

import numpy as np

from networks import CASES

warnings.simplefilter("ignore")  # deprecations inside the frameworks
COMMITTED = pathlib.Path(__file__).resolve().parent / "cases"
LARGEST = 36_000  # bytes of one committed case
FREE_SIZES = ([7, 9], [10, 6])  # what stands for None beyond the batch: first run, second run
BATCHES = (2, 1)

# form -> (framework, files: the model first)
FORMS = {
    "keras": ("keras", ["model.keras"]),
    "h5": ("keras", ["model.h5"]),
    "json": ("keras", ["model.json", "model.weights.h5"]),
    "keras2": ("tf_keras", ["model.keras"]),
    "h5_2": ("tf_keras", ["model.h5"]),
    "json_2": ("tf_keras", ["model.json", "model_weights.h5"]),
    "json_2_tutorial": ("tf_keras", ["model.json", "model.h5"]),
}


def framework(form):
    if FORMS[form][0] == "keras":
        import keras

        return keras
    import tf_keras

    return tf_keras


def numpy_type(tensor):
    """The numpy type of a tensor or weight: Keras 3 names it, TensorFlow has an object."""
    return np.dtype(getattr(tensor.dtype, "name", tensor.dtype))


def random_weights(model, random):
    """Replaces every weight but the state of random generators and the counters of Normalization."""
    for weight in model.weights:
        name = getattr(weight, "path", weight.name).split("/")[-1].split(":")[0]
        shape = tuple(weight.shape)
        if "seed" in name or "count" in name or not np.issubdtype(numpy_type(weight), np.floating):
            continue
        if "variance" in name:
            value = random.uniform(0.3, 2.0, shape)
        elif "gamma" in name or "scale" in name:
            value = random.normal(1.0, 0.4, shape)
        elif len(shape) > 1 and "embeddings" not in name and "alpha" not in name:
            value = random.normal(0.0, 1.2 / np.sqrt(np.prod(shape[:-1])), shape)
        else:
            value = random.normal(0.0, 0.5, shape)
        weight.assign(value.astype(np.float64))


def random_inputs(model, run, high, random):
    """One array per input of the model: batch and free sizes of run 0 or 1."""
    free = iter(FREE_SIZES[run] * 4)
    arrays = []
    for tensor in model.inputs:
        shape = [BATCHES[run]] + [next(free) if size is None else size for size in tuple(tensor.shape)[1:]]
        dtype = numpy_type(tensor)
        if high:
            arrays.append(random.integers(0, high, shape).astype(dtype))
        else:
            arrays.append(random.normal(0.0, 1.0, shape).astype(dtype))
    return arrays


def compute(model, arrays, jit):
    """The outputs in the order of model.outputs, in inference mode."""
    import tensorflow as tf

    # Keras itself maps a flat list to inputs given as a dictionary by name only.
    names = [tensor.name for tensor in model.inputs]
    structured = isinstance(getattr(model, "_inputs_struct", None), dict)
    call = lambda *tensors: model(
        dict(zip(names, tensors)) if structured else list(tensors) if len(tensors) > 1 else tensors[0], training=False
    )
    result = (tf.function(call, jit_compile=True) if jit else call)(*[tf.constant(array) for array in arrays])
    return [np.asarray(tensor) for tensor in tf.nest.flatten(result)]


def layer_classes(config, found):
    """Every class name below "layers" in a model's configuration, nested ones too."""
    if isinstance(config, dict):
        if "class_name" in config and ("inbound_nodes" in config or str(config.get("module", "")).startswith("keras.")):
            if not any(part in str(config.get("module")) for part in ("initializers", "saving", "regularizers", "keras.dtype")):
                found.add(config["class_name"])
        for value in config.values():
            layer_classes(value, found)
    elif isinstance(config, list):
        for value in config:
            layer_classes(value, found)
    return found


def save(model, form, folder):
    _, files = FORMS[form]
    if files[0] == "model.json":
        (folder / files[0]).write_text(model.to_json())
        model.save_weights(folder / files[1])
    else:
        model.save(folder / files[0])


def load(form, folder):
    K = framework(form)
    _, files = FORMS[form]
    if files[0] == "model.json":
        model = K.models.model_from_json((folder / files[0]).read_text())
        model.load_weights(folder / files[1])
        return model
    return K.models.load_model(folder / files[0], compile=False)


def output_names(model):
    """Layer names, once each: tensor names are not in the files."""
    names = []
    for tensor in model.outputs:
        history = getattr(tensor, "_keras_history")
        layer = getattr(history, "operation", None) or history.layer
        names.append(layer.name)
    return names


def make(name, folder):
    """Writes one case; complains when its outputs would not tell a right answer from a wrong one."""
    import tensorflow as tf

    form, build, options = CASES[name]
    K = framework(form)
    K.backend.clear_session()
    seed = zlib.crc32(name.encode())
    random = np.random.default_rng(seed)
    K.utils.set_random_seed(seed % 2**31)
    model = build(K, K.layers)
    random_weights(model, random)

    arrays = {}
    for run, (in_, out_) in enumerate((("in_", "out_"), ("in2_", "out2_"))):
        inputs = random_inputs(model, run, options.get("high"), random)
        outputs = compute(model, inputs, options.get("jit", False))
        for i, output in enumerate(outputs):
            flat = output.reshape(len(output), -1).astype(np.float64)
            assert np.isfinite(flat).all(), f"{name}: output {i} is not finite"
            if run == 0:  # the second batch may be a single number, or all below a relu's threshold
                assert flat.std() > 1e-2 and np.ptp(flat, axis=0).max() > 1e-3, f"{name}: output {i} says nothing"
        arrays.update({f"{in_}{i}": array for i, array in enumerate(inputs)})
        arrays.update({f"{out_}{i}": array for i, array in enumerate(outputs)})

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    save(model, form, folder)
    np.savez_compressed(folder / "io.npz", **arrays)
    package, files = FORMS[form]
    document = {
        "source": "tests/keras/make_cases.py",
        "framework": f"{package} {K.__version__} (tensorflow {tf.__version__})",
        "files": files,
        "input_names": [tensor.name for tensor in model.inputs],
        "output_names": output_names(model),
        "rtol": options.get("rtol", 1e-4),
        "atol": options.get("atol", 1e-5),
        "ops": sorted(layer_classes(json.loads(model.to_json()), set()) - {"InputLayer"}),
    }
    document |= {key: options[key] for key in ("note", "expect") if key in options}
    (folder / "case.json").write_text(json.dumps(document, indent=1) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert size < LARGEST or options.get("extra"), f"{name}: {size} bytes"


def largest_difference(got, expected, rtol, atol):
    """The largest |got - expected| / (atol + rtol |expected|): above 1 is outside the tolerance."""
    worst = 0.0
    for left, right in zip(got, expected, strict=True):
        assert left.shape == right.shape and left.dtype == right.dtype, (left.shape, right.shape, left.dtype, right.dtype)
        left, right = left.astype(np.float64), right.astype(np.float64)
        worst = max(worst, float((np.abs(left - right) / (atol + rtol * np.abs(right))).max()))
    return worst


def check(name, folder):
    """Loads the case from its files and reproduces the outputs, also with XLA. True when both agree."""
    form, _, options = CASES[name]
    document = json.loads((folder / "case.json").read_text())
    if document.get("expect") == "refused":
        return True
    framework(form).backend.clear_session()
    model = load(form, folder)
    data = np.load(folder / "io.npz")
    good = True
    for in_, out_ in (("in_", "out_"), ("in2_", "out2_")):
        inputs = [data[f"{in_}{i}"] for i in range(len(model.inputs))]
        expected = [data[f"{out_}{i}"] for i in range(len(model.outputs))]
        assert len(data.files) == 2 * (len(inputs) + len(expected))
        again = largest_difference(compute(model, inputs, options.get("jit", False)), expected, 1e-6, 1e-6)
        if again > 1:
            print(f"{name}: the reloaded model gives other outputs ({again:.3g} x 1e-6)")
            good = False
        if options.get("jit"):
            continue
        try:
            second = compute(model, inputs, jit=True)
        except Exception as error:  # XLA lacks some operators
            print(f"{name}: no second opinion from XLA: {' '.join(str(error).split())[:120]}")
            continue
        apart = largest_difference(second, expected, document["rtol"], document["atol"])
        if apart > 1:
            print(f"{name}: XLA gives other outputs ({apart:.3g} times the tolerance)")
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases; all without")
    parser.add_argument("--check", action="store_true", help="reload and compare; write nothing")
    parser.add_argument("--extra", metavar="DIR", type=pathlib.Path, help="the cases that are not committed; they live in DIR")
    options = parser.parse_args()
    top = options.extra or COMMITTED
    names = options.names or [name for name, case in CASES.items() if bool(case[2].get("extra")) == bool(options.extra)]
    if unknown := set(names) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")

    if options.check:
        bad = [name for name in names if not check(name, top / name)]
        total = sum(path.stat().st_size for path in top.rglob("*") if path.is_file())
        print(f"{len(names) - len(bad)} of {len(names)} cases reproduced; {total} bytes in all")
        return 1 if bad else 0

    failed = 0
    for name in names:
        try:
            make(name, top / name)
        except Exception as error:  # go on: show every case that needs work
            failed += 1
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            shutil.rmtree(top / name, ignore_errors=True)
    if failed:
        return 1
    where = ["--extra", str(top)] if options.extra else []
    return subprocess.run([sys.executable, __file__, "--check", *where, *names]).returncode


if __name__ == "__main__":
    sys.exit(main())
