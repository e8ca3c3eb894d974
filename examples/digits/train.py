"""Trains the example network on scikit-learn's 8x8 digits and writes everything in this folder that is not text.

Set-up (Python 3.11, a throw-away environment of about 1.8 GB):

    python3 -m venv /tmp/tombolo-keras
    /tmp/tombolo-keras/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 scikit-learn==1.9.1 pillow==13.0.0 numpy==2.4.6

    /tmp/tombolo-keras/bin/python examples/digits/train.py            # train, write, check (about a minute)
    /tmp/tombolo-keras/bin/python examples/digits/train.py --check    # only reload the committed files and compare

Nothing here is needed to use Tombolo: the files are committed.
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
import subprocess
import sys

import keras
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20
TOLERANCE = 1e-6  # between one process and the next on the same machine


def to_input(pixels):
    """uint8 pixels (N, 8, 8) -> float32 network input (N, 8, 8, 1), in 0..1. The whole of the preprocessing."""
    return (pixels.astype(np.float32) / np.float32(255))[..., None]


def load_data():
    """The digits as uint8 pixels, split by a fixed seed into training and test parts.

    The data set has grey levels 0..16. They become 0..255 *before* anything is trained, so that an 8-bit picture
    holds exactly what the network sees.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    pixels = np.round(digits.images * (255 / 16)).astype(np.uint8)
    return train_test_split(pixels, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target)


def build():
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            layers.Conv2D(16, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.2),
            layers.Conv2D(24, 3, padding="valid"),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax", name="digit"),
        ],
        name="digits",
    )


def train():
    keras.utils.set_random_seed(SEED)
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    train_pixels, test_pixels, train_labels, test_labels = load_data()
    model = build()
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(to_input(train_pixels), train_labels, epochs=60, batch_size=64, verbose=0)

    guesses = model.predict(to_input(test_pixels), verbose=0).argmax(1)
    right = guesses == test_labels
    accuracy = float(right.mean())
    print(f"test accuracy {accuracy:.4f} ({right.sum()} of {len(right)})")
    if accuracy < 0.97:
        sys.exit("the network has not learnt enough")

    pixels = np.stack([test_pixels[np.flatnonzero(right & (test_labels == digit))[0]] for digit in range(10)])
    for digit in range(10):
        Image.fromarray(pixels[digit]).save(HERE / f"{digit}.png")
    probabilities = run(model, pixels)

    model.save(HERE / "digits.keras")
    model.save(HERE / "digits.h5")
    np.savez(HERE / "inputs.npz", image=to_input(pixels))
    np.savez(HERE / "expected.npz", digit=probabilities)
    document = {
        "framework": f"keras {keras.__version__} (tensorflow {tf.__version__})",
        "source": "examples/digits/train.py",
        "test_accuracy": round(accuracy, 6),
        "input": {
            "name": "image",
            "shape": [None, 8, 8, 1],
            "layout": "NHWC",
            "type": "float32",
            "mapping": "input = pixel / 255, where pixel is the 8-bit grey value 0..255 in the PNG; no mean, no resizing",
        },
        "output": {"name": "digit", "shape": [None, 10], "type": "float32", "meaning": "probability of class 0..9"},
        "tolerance": 1e-5,
        "pictures": [
            {"file": f"{digit}.png", "class": digit, "probabilities": [float(p) for p in probabilities[digit]]}
            for digit in range(10)
        ],
    }
    (HERE / "expected.json").write_text(json.dumps(document, indent=1) + "\n")


def run(model, pixels):
    """The network's own answer in inference mode: float32 (N, 10)."""
    return np.asarray(model(to_input(pixels), training=False))


def check():
    """Loads both model files, reads the PNGs back and compares with expected.npz and expected.json."""
    expected = np.load(HERE / "expected.npz")
    document = json.loads((HERE / "expected.json").read_text())
    pixels = np.stack([np.asarray(Image.open(HERE / picture["file"])) for picture in document["pictures"]])
    assert pixels.dtype == np.uint8 and np.array_equal(to_input(pixels), np.load(HERE / "inputs.npz")["image"])
    written = np.array([picture["probabilities"] for picture in document["pictures"]], np.float32)
    assert np.array_equal(written, expected["digit"]), "expected.json differs from expected.npz"

    _, test_pixels, _, test_labels = load_data()
    for name in ("digits.keras", "digits.h5"):
        model = keras.models.load_model(HERE / name)
        answer = run(model, pixels)
        difference = float(np.abs(answer - expected["digit"]).max())
        accuracy = float((run(model, test_pixels).argmax(1) == test_labels).mean())
        print(f"{name}: largest difference {difference:.2g}, test accuracy {accuracy:.4f}, "
              f"{(HERE / name).stat().st_size} bytes, {model.count_params()} parameters")
        assert difference <= TOLERANCE, name
        assert answer.argmax(1).tolist() == list(range(10)), name
        assert accuracy > 0.97, name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="reload the committed files and compare; write nothing")
    if parser.parse_args().check:
        check()
    else:
        train()
        subprocess.run([sys.executable, __file__, "--check"], check=True)  # a fresh process: only the files count
