"""Measures Tombolo beside LiteRT and ONNX Runtime on networks of Keras as TensorFlow Lite files, in float32 and in bytes, which tf2onnx reads.

    python bench/exported_tflite.py make FOLDER [--only REGEX]
    python bench/exported_tflite.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--seconds 0.4] [--out FILE]

Needs tensorflow-cpu, tf2onnx, ai-edge-litert and onnxruntime. Weights are random with a seed; what is quantised to int8 saw random inputs, and
takes and gives int8. LiteRT (XNNPACK) runs the file itself, the others what tf2onnx makes of it. Each takes two turns, of which the better
median counts; Tombolo has a process of its own.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

import beside

APPLICATIONS = {"mobilenet_v1": "MobileNet", "mobilenet_v2": "MobileNetV2", "mobilenet_v3_small": "MobileNetV3Small", "efficientnet_b0": "EfficientNetB0",
                "resnet50": "ResNet50", "densenet121": "DenseNet121", "inception_v3": "InceptionV3", "nasnet_mobile": "NASNetMobile"}


# ---- the four of MLPerf Tiny

def conv(L, x, width, kernel, stride=1, relu=True):
    x = L.BatchNormalization()(L.Conv2D(width, kernel, strides=stride, padding="same")(x))
    return L.ReLU()(x) if relu else x


def ds_cnn(keras, L):
    given = x = keras.Input((49, 10, 1), batch_size=1)
    x = conv(L, x, 64, (10, 4), 2)
    for _ in range(4):
        x = L.ReLU()(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same")(x)))
        x = conv(L, x, 64, 1)
    return keras.Model(given, L.Dense(12, activation="softmax")(L.Flatten()(L.AveragePooling2D((25, 5))(x))))


def resnet8(keras, L):
    given = keras.Input((32, 32, 3), batch_size=1)
    x = conv(L, given, 16, 3)
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        y = conv(L, conv(L, x, width, 3, stride), width, 3, relu=False)
        x = L.ReLU()(L.Add()([x if stride == 1 else L.Conv2D(width, 1, strides=stride, padding="same")(x), y]))
    return keras.Model(given, L.Dense(10, activation="softmax")(L.Flatten()(L.AveragePooling2D(8)(x))))


def autoencoder(keras, L):
    given = x = keras.Input((640,), batch_size=1)
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = L.ReLU()(L.BatchNormalization()(L.Dense(width)(x)))
    return keras.Model(given, L.Dense(640)(x))


def mobilenet_v1_quarter(keras, L):
    return keras.applications.MobileNet(weights=None, input_shape=(96, 96, 3), alpha=0.25, classes=2)


TINY = {f.__name__: f for f in (ds_cnn, resnet8, autoencoder, mobilenet_v1_quarter)}


def make(folder, only):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import tensorflow as tf
    for name in (*TINY, *APPLICATIONS):
        if not re.search(only, name):
            continue
        keras.utils.set_random_seed(0)
        size = 299 if name == "inception_v3" else 224
        model = TINY[name](keras, keras.layers) if name in TINY else getattr(keras.applications, APPLICATIONS[name])(weights=None, input_shape=(size, size, 3))
        for layer in model.layers:  # shifts that are not all nothing
            if isinstance(layer, keras.layers.BatchNormalization):
                *scale, shift, mean, variance = layer.get_weights()
                layer.set_weights([*scale, np.random.normal(0, 0.3, shift.shape), mean, variance])
        shape = (1, *model.inputs[0].shape[1:])
        network = tf.function(lambda x, model=model: model(x, training=False)).get_concrete_function(tf.TensorSpec(shape, tf.float32))
        for way in ("f32", "int8"):
            converter = tf.lite.TFLiteConverter.from_concrete_functions([network])
            if way == "int8":
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
                converter.representative_dataset = lambda shape=shape: ([np.random.randn(*shape).astype(np.float32)] for _ in range(4))
                converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
                converter.inference_input_type = converter.inference_output_type = tf.int8
            there = os.path.join(folder, f"{name}_{way}")
            os.makedirs(there, exist_ok=True)
            with open(os.path.join(there, "model.tflite"), "wb") as file:
                file.write(converter.convert())
            subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--tflite", "model.tflite", "--output", "model.onnx", "--opset", "17"],
                           cwd=there, check=True, capture_output=True)
            print(f"{name}_{way}", flush=True)


def median_ms(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def measure(args):
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter
    onnxruntime.set_default_logger_severity(3)
    lines = ["| model | Tombolo, ms | LiteRT, ms | ONNX Runtime, ms | LiteRT to Tombolo | ONNX Runtime to Tombolo |", "| --- " * 6 + "|"]
    for name, path in beside.models(args.folder, args.only):
        lite = Interpreter(path[:-len(".onnx")] + ".tflite", num_threads=args.threads)
        lite.allocate_tensors()
        place = lite.get_input_details()[0]
        x = (np.random.default_rng(0).standard_normal(place["shape"]) * (1 if place["dtype"] == np.float32 else 30)).astype(place["dtype"])
        lite.set_tensor(place["index"], x)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: x}
        command = [args.tombolo, "bench", path, "--json", "--no-roofline", "--no-progress", "--runs", "1000000", "--max-time", str(args.seconds), "--threads", str(args.threads)]
        turns = [(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["median_ms"],
                  median_ms(lite.invoke, args.seconds), median_ms(lambda: session.run(None, feed), args.seconds)) for _ in range(2)]
        ours, litert, theirs = (min(times) for times in zip(*turns))
        lines.append(f"| {name} | {ours:.4f} | {litert:.4f} | {theirs:.4f} | {litert / ours:.2f} | {theirs / ours:.2f} |")
        print(lines[-1], flush=True)
    if args.out:
        with open(args.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser, _, _, measuring = beside.parsers(__doc__)
    measuring.set_defaults(seconds=0.4)
    args = parser.parse_args()
    make(args.folder, args.only) if args.does == "make" else measure(args)
