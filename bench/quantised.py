"""Networks of bench/models.py quantised in ways that the tables do not have, beside ONNX Runtime.

    python bench/quantised.py TOMBOLO MODEL_DIR FOLDER [--onnxruntime LIB] [--threads N] [--only RE] [--way NAME] [--openvino]

Each network gets three of the nine ways in turn (onnxruntime's quantiser, random inputs), or the one that is named (float16, say);
FOLDER keeps them. Every line has
the times of both in milliseconds, their ratio and how far apart the outputs are; then the median, and what is slower. With
--openvino the ratio to OpenVINO's time in a process of its own, too, where it takes the model and gives what ONNX Runtime gives.
"""
import argparse
import glob
import logging
import os
import re
import statistics
import warnings

import numpy as np
import onnx

import hold
import models
import run

NETWORKS = """alexnet_lrn anchors conformer convnext_tiny crnn dcgan deberta deeplab_v3 densenet121 dlrm efficientnet_b0 googlenet graph_sage gru hifi_gan hrnet
    inception_v3 keyword_columns lstm minilm6 mlp mobilenet_v2 mobilenet_v3 mobilevit pointnet regnet_y resnet50 resnext50 shufflenet_v2 squeezenet style_blocks
    swin_t t5_encoder tcn u2net unet_3d wavenet yolo_v8""".split()
# Format, activations, weights, and more.
STATIC = {"qdq_u8s8": ("QDQ", "QUInt8", "QInt8", {}), "qdq_s8s8_channels": ("QDQ", "QInt8", "QInt8", {"per_channel": True}),
          "operators_u8u8": ("QOperator", "QUInt8", "QUInt8", {}), "operators_s8s8": ("QOperator", "QInt8", "QInt8", {}),
          "qdq_u16s8": ("QDQ", "QUInt16", "QInt8", {}), "qdq_u8s7_channels": ("QDQ", "QUInt8", "QInt8", {"per_channel": True, "reduce_range": True}),
          "qdq_symmetric": ("QDQ", "QInt8", "QInt8", {"extra_options": {"ActivationSymmetric": True}})}
DYNAMIC = {"dynamic_u8": "QUInt8", "dynamic_s8": "QInt8"}
WAYS = [*STATIC, *DYNAMIC]
# Ways for networks that exporters wrote (bench/exported.py): weights alone in blocks (bits, block, symmetric, format), and 16-bit floats.
BLOCKS = {"blocks_4": (4, 32, False, "QOperator"), "blocks_4_symmetric": (4, 128, True, "QOperator"), "blocks_4_qdq": (4, 32, True, "QDQ"), "blocks_8": (8, 32, False, "QOperator")}
MORE_DYNAMIC = {"dynamic_s8_channels": {"per_channel": True, "reduce_range": True}}
FLOAT16 = "float16"
EXPORTED_WAYS = [*STATIC, *DYNAMIC, *MORE_DYNAMIC, *BLOCKS, FLOAT16]
SIZES = {"batch": 1, "sequence": 64}


def random_inputs(model, rng):
    given = {t.name for t in model.graph.initializer}
    feed = {}
    for i in model.graph.input:
        if i.name in given:
            continue
        shape = [d.dim_value or SIZES.get(d.dim_param, 1) for d in i.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        feed[i.name] = rng.standard_normal(shape).astype(dtype) if dtype == np.float32 else rng.integers(0, 2, shape).astype(dtype)
    return feed


def quantise(source, target, way, feed=None):
    """The network of file `source` to file `target`; a static way calibrates on `feed`, by default random inputs."""
    from onnxruntime import quantization as q
    if way in DYNAMIC or way in MORE_DYNAMIC:
        q.quantize_dynamic(source, target, weight_type=q.QuantType[DYNAMIC.get(way, "QInt8")], **MORE_DYNAMIC.get(way, {}))
        return
    if way in BLOCKS:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        bits, block, symmetric, form = BLOCKS[way]
        quantiser = MatMulNBitsQuantizer(onnx.load(source), bits=bits, block_size=block, is_symmetric=symmetric, accuracy_level=4, quant_format=q.QuantFormat[form])
        quantiser.process()
        onnx.save(quantiser.model.model, target)
        return
    if way == FLOAT16:
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)
        return
    form, activations, weights, more = STATIC[way]
    folded = target + ".folded.onnx"
    try:
        q.shape_inference.quant_pre_process(source, folded, skip_symbolic_shape=True)
        feeds = [feed or random_inputs(onnx.load(folded, load_external_data=False), np.random.default_rng(1))]
        reader = type("Reader", (q.CalibrationDataReader,), {"get_next": lambda self: feeds.pop() if feeds else None})()
        q.quantize_static(folded, target, reader, quant_format=q.QuantFormat[form], activation_type=q.QuantType[activations], weight_type=q.QuantType[weights], **more)
    finally:
        for path in glob.glob(folded + "*"):
            os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tombolo")
    parser.add_argument("models")
    parser.add_argument("folder")
    parser.add_argument("--onnxruntime")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default=".")
    parser.add_argument("--way", choices=EXPORTED_WAYS)
    parser.add_argument("--openvino", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    library = hold.onnxruntime_library(args.onnxruntime)
    os.makedirs(args.folder, exist_ok=True)
    ratios, openvino = {}, {}
    for index, network in enumerate(NETWORKS):
        for way in [args.way] if args.way else [WAYS[(index * 3 + k) % len(WAYS)] for k in range(3)]:
            name = f"{network}_{way}"
            if not re.search(args.only, name):
                continue
            path = os.path.join(args.folder, name + ".onnx")
            if not os.path.exists(path):
                try:
                    quantise(models.make(args.models, [network])[network], path, way)
                except Exception as error:  # onnxruntime's converters do not take all networks
                    print(f"{name:40} {str(error).splitlines()[0][:90]}", flush=True)
                    continue
            sizes = SIZES if network == "minilm6" else {}
            result, why = run.measure(args.tombolo, library, path, name, sizes, args.threads, 3, 0.12)
            if result is None:
                print(f"{name:40} {why}", flush=True)
                continue
            ours, *theirs = result["sides"]
            times = [s["median_ms"] for s in theirs if not s["failure"]]
            if not times:
                print(f"{name:40} {ours['median_ms']:9.3f} ms; ONNX Runtime: {theirs[0]['failure'][:90]}", flush=True)
                continue
            ratios[name] = min(times) / ours["median_ms"]
            rms = max(o["relative_rms"] or 0 for o in result["outputs"])
            peer = run.peer_median("openvino", path, name, sizes, args.threads, 50, 0.4) if args.openvino else None
            if peer is not None:
                openvino[name] = peer / ours["median_ms"]
            print(f"{name:40} {ours['median_ms']:9.3f} {min(times):9.3f} {ratios[name]:7.2f}   apart {rms:.1e}"
                  + (f"   OpenVINO {openvino[name]:.2f}" if name in openvino else ""), flush=True)
    for peer, all_ratios in (("ONNX Runtime", ratios), ("OpenVINO", openvino)):
        if all_ratios:
            print(f"{len(all_ratios)} networks beside {peer}, median ratio {statistics.median(all_ratios.values()):.2f}; slower:",
                  ", ".join(f"{n} {r:.2f}" for n, r in sorted(all_ratios.items(), key=lambda x: x[1]) if r < 1) or "none")


if __name__ == "__main__":
    main()
