"""Measures Tombolo beside ONNX Runtime on networks that PyTorch's own exporters wrote: torchvision, timm, transformers and others.

    python bench/exported.py make FOLDER [--only REGEX] [--jobs 2] [--exporters dynamo,dynamic,script]
    python bench/exported.py quantise FOLDER QUANTISED [--only REGEX] [--each 2]
    python bench/exported.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--out FILE] [--onnxruntime LIB]

Needs torch, torchvision, timm, transformers, scipy, onnx, onnxscript and onnxruntime, and the libraries of bench/pytorch_libraries.py that are
wanted. Weights are random with a seed; statistics of batch
normalisation, too, which by default would hide mistakes. Each network is exported by both exporters of torch.onnx: by the
one that builds on torch.export with the sizes as they are (dynamo) and with a batch of any size and a text of any length
(dynamic), by the one that builds on TorchScript with such, too (script); by that one in older operator sets where `--exporters` says so
(opset9 ... opset16), which PyTorch 1.13 and 2.0 with timm and transformers of their time do as well. What one cannot export is listed and left out.
`quantise` writes each export in some of the ways of bench/quantised.py (8 bits, weights of 4 bits in blocks, 16-bit floats), by
turns; `measure` takes that folder, too.
"""
import argparse
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import beside
import pytorch_libraries

EXPORTERS = ("dynamo", "dynamic", "script")
OLDER = tuple(f"opset{n}" for n in range(9, 17))

# The smallest builder of each family, as the library names it.
TORCHVISION = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet1_0 mobilenet_v2
mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t
swin_v2_t vgg11_bn vit_b_32 wide_resnet50_2 deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large deeplabv3_resnet50
fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_resnet50_fpn fcos_resnet50_fpn keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn retinanet_resnet50_fpn
ssd300_vgg16 ssdlite320_mobilenet_v3_large raft_small r3d_18 mc3_18 s3d mvit_v1_b swin3d_t""".split()

WIDE = {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536}
DECODER = {**WIDE, "num_key_value_heads": 2, "vocab_size": 8000, "head_dim": 64, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
GPT = {"n_embd": 384, "n_layer": 4, "n_head": 6, "vocab_size": 8000}
SEQ2SEQ = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6, "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
IMAGE = {**WIDE, "image_size": 224}
# Name of the class: what its configuration says beside the defaults, and what it takes.
TRANSFORMERS = {
    "text": {
        "BertModel": WIDE, "RobertaModel": WIDE, "XLMRobertaModel": WIDE, "CamembertModel": WIDE, "ElectraModel": WIDE, "MPNetModel": WIDE, "DistilBertModel": {"dim": 384, "n_layers": 4, "n_heads": 6, "hidden_dim": 1536},
        "AlbertModel": {**WIDE, "embedding_size": 128}, "DebertaModel": WIDE, "DebertaV2Model": {**WIDE, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "SqueezeBertModel": {**WIDE, "embedding_size": 384}, "MobileBertModel": {"num_hidden_layers": 6},
        "ConvBertModel": WIDE, "FunnelModel": {}, "FNetModel": WIDE, "RoFormerModel": WIDE, "NystromformerModel": WIDE, "YosoModel": WIDE, "IBertModel": WIDE, "LayoutLMModel": WIDE, "CanineModel": WIDE, "ErnieModel": WIDE,
        "MegatronBertModel": WIDE, "XLNetModel": {"d_model": 384, "n_layer": 4, "n_head": 6, "d_inner": 1536}, "LongformerModel": {**WIDE, "attention_window": 64}, "BigBirdModel": WIDE, "ModernBertModel": {**WIDE, "vocab_size": 8000, "pad_token_id": 0}, "EsmModel": {**WIDE, "vocab_size": 33, "mask_token_id": 32, "pad_token_id": 1},
        "NomicBertModel": WIDE, "XmodModel": WIDE, "LukeModel": WIDE, "FlaubertModel": {"emb_dim": 384, "n_layers": 4, "n_heads": 6}, "XLMModel": {"emb_dim": 384, "n_layers": 4, "n_heads": 6},
        "GPT2Model": GPT, "GPTNeoModel": {"hidden_size": 384, "num_layers": 4, "num_heads": 6, "attention_types": [[["global", "local"], 2]], "vocab_size": 8000}, "GPTJModel": {**GPT, "rotary_dim": 32}, "GPTNeoXModel": {**WIDE, "vocab_size": 8000}, "CodeGenModel": {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 32, "vocab_size": 8000}, "OPTModel": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "ffn_dim": 1536, "word_embed_proj_dim": 384, "vocab_size": 8000},
        "BloomModel": {"hidden_size": 384, "n_layer": 4, "n_head": 6, "vocab_size": 8000}, "FalconModel": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "vocab_size": 8000}, "MptModel": {"d_model": 384, "n_layers": 4, "n_heads": 6, "vocab_size": 8000}, "GPTBigCodeModel": GPT, "CTRLModel": {"n_embd": 384, "n_layer": 4, "n_head": 6, "dff": 1536, "vocab_size": 8000},
        "LlamaModel": DECODER, "MistralModel": DECODER, "Qwen2Model": DECODER, "Qwen3Model": DECODER, "PhiModel": {**DECODER, "num_key_value_heads": 6}, "Phi3Model": DECODER, "GemmaModel": DECODER, "Gemma2Model": DECODER, "Gemma3TextModel": DECODER, "StableLmModel": DECODER, "Starcoder2Model": DECODER, "CohereModel": DECODER, "OlmoModel": DECODER, "Olmo2Model": DECODER, "GraniteModel": DECODER, "HeliumModel": DECODER,
        "SmolLM3Model": DECODER, "Glm4Model": DECODER, "PersimmonModel": DECODER, "BioGptModel": {**WIDE, "vocab_size": 8000}, "XGLMModel": {"d_model": 384, "num_layers": 4, "attention_heads": 6, "ffn_dim": 1536, "vocab_size": 8000},
        "MixtralModel": {**DECODER, "num_local_experts": 4}, "Qwen2MoeModel": {**DECODER, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}, "OlmoeModel": {**DECODER, "num_experts": 4, "num_experts_per_tok": 2},
        "MambaModel": {"hidden_size": 384, "num_hidden_layers": 4, "vocab_size": 8000}, "Mamba2Model": {"hidden_size": 384, "num_hidden_layers": 4, "vocab_size": 8000, "num_heads": 12, "n_groups": 1, "head_dim": 64, "expand": 2}, "RwkvModel": {"hidden_size": 384, "num_hidden_layers": 4, "vocab_size": 8000}, "RecurrentGemmaModel": {**DECODER, "lru_width": 384}, "Lfm2Model": DECODER,
        "T5EncoderModel": {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_ff": 1536}, "UMT5EncoderModel": {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_ff": 1536, "vocab_size": 8000},
    },
    "seq2seq": {
        "T5Model": {"d_model": 384, "num_layers": 4, "num_heads": 6, "d_ff": 1536}, "BartModel": SEQ2SEQ, "MBartModel": {**SEQ2SEQ, "vocab_size": 8000}, "MarianModel": {**SEQ2SEQ, "vocab_size": 8000, "pad_token_id": 0}, "PegasusModel": {**SEQ2SEQ, "vocab_size": 8000}, "M2M100Model": {**SEQ2SEQ, "vocab_size": 8000}, "BlenderbotSmallModel": {**SEQ2SEQ, "vocab_size": 8000}, "LEDModel": {**SEQ2SEQ, "vocab_size": 8000, "attention_window": 64}, "ProphetNetModel": {"hidden_size": 384, "num_encoder_layers": 3, "num_decoder_layers": 3, "vocab_size": 8000, "num_encoder_attention_heads": 6, "num_decoder_attention_heads": 6},
    },
    "image": {
        "ViTModel": IMAGE, "DeiTModel": IMAGE, "BeitModel": IMAGE, "Dinov2Model": WIDE, "Dinov2WithRegistersModel": WIDE, "DINOv3ViTModel": IMAGE, "DPTForDepthEstimation": {**IMAGE, "neck_hidden_sizes": [96, 192, 384, 384], "backbone_out_indices": [0, 1, 2, 3]}, "YolosForObjectDetection": {**WIDE, "image_size": [224, 224], "num_detection_tokens": 20},
        "SwinModel": {}, "Swinv2Model": {}, "ConvNextModel": {}, "ConvNextV2Model": {}, "ResNetModel": {}, "RegNetModel": {}, "SegformerForSemanticSegmentation": {}, "MobileViTModel": {}, "MobileViTV2Model": {}, "MobileNetV1Model": {}, "MobileNetV2Model": {}, "LevitModel": {}, "PoolFormerModel": {}, "PvtModel": {}, "PvtV2Model": {}, "CvtModel": {}, "FocalNetModel": {}, "BitModel": {}, "EfficientNetModel": {},
        "GLPNForDepthEstimation": {}, "UperNetForSemanticSegmentation": {}, "DetrForObjectDetection": {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone_config": None, "encoder_layers": 3, "decoder_layers": 3}, "ConditionalDetrForObjectDetection": {"use_timm_backbone": False, "use_pretrained_backbone": False}, "RTDetrForObjectDetection": {}, "Mask2FormerForUniversalSegmentation": {}, "MaskFormerForInstanceSegmentation": {}, "DeformableDetrForObjectDetection": {"use_timm_backbone": False, "use_pretrained_backbone": False},
        "Swin2SRForImageSuperResolution": {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]}, "DepthAnythingForDepthEstimation": {}, "SuperPointForKeypointDetection": {}, "SiglipVisionModel": {**WIDE, "image_size": 224}, "CLIPVisionModel": {**WIDE, "image_size": 224}, "DonutSwinModel": {}, "HieraModel": {}, "VitDetModel": WIDE, "ViTMAEModel": WIDE, "IJepaModel": IMAGE, "TextNetModel": {}, "SamVisionModel": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "image_size": 256},
    },
    "audio": {
        "Wav2Vec2Model": WIDE, "HubertModel": WIDE, "WavLMModel": WIDE, "UniSpeechModel": WIDE, "UniSpeechSatModel": WIDE, "Data2VecAudioModel": WIDE, "SEWModel": WIDE, "SEWDModel": WIDE, "Wav2Vec2ConformerModel": WIDE, "Wav2Vec2BertModel": WIDE, "EncodecModel": {}, "DacModel": {}, "MimiModel": {},
    },
    "special": {
        "ASTModel": WIDE, "WhisperModel": {**SEQ2SEQ, "vocab_size": 8000, "pad_token_id": 0}, "Speech2TextModel": {**SEQ2SEQ, "vocab_size": 8000}, "CLIPModel": {}, "SiglipModel": {}, "ChineseCLIPModel": {}, "VitsModel": {"hidden_size": 96, "num_hidden_layers": 3, "ffn_dim": 256}, "PatchTSTModel": {}, "PatchTSMixerModel": {}, "TableTransformerForObjectDetection": {"use_timm_backbone": False, "use_pretrained_backbone": False}, "DecisionTransformerModel": {"state_dim": 17, "act_dim": 4, "hidden_size": 128},
        "ViltModel": WIDE, "LayoutLMv3Model": {**WIDE, "coordinate_size": 64, "shape_size": 64}, "SpeechT5HifiGan": {}, "FastSpeech2ConformerModel": {}, "UnivNetModel": {},
    },
}


def timm_names():
    """The networks of each module of timm."""
    import timm
    listed = {module: [n for n in timm.list_models(module=module) if not n.startswith("test_")] for module in timm.list_modules()}
    return {module: networks for module, networks in listed.items() if networks}


def smallest(listed):
    import timm
    import torch
    best = None
    for name in listed:
        try:
            with torch.device("meta"):
                made = timm.create_model(name)
        except Exception:
            continue
        size = sum(p.numel() for p in made.parameters())
        if best is None or size < best[0]:
            best = (size, name)
    # Networks of older versions that compute with what they are made of cannot be made without it.
    return best[1] if best else min(listed, key=lambda name: ("tiny" not in name, "small" not in name, name))


def names():
    found = [f"torchvision.{n}" for n in TORCHVISION]
    found += [f"transformers.{n}" for group in TRANSFORMERS.values() for n in group]
    try:
        import timm
        found += [f"timm.{module}" for module in timm_names()]
    except ImportError:
        pass
    return found + pytorch_libraries.names()


# ---- one network, in a process of its own

def randomise(network):
    import torch
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)


def torchvision_network(name):
    import torch
    import torchvision
    listed = torchvision.models.list_models
    detects = name in listed(torchvision.models.detection)
    has_backbone = detects or name in listed(torchvision.models.segmentation)
    network = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if has_backbone else {}))
    if detects:
        side = 320 if "320" in name or name.startswith("ssd") else 416
        return network, {"image": torch.rand(3, side, side)}, True
    if name in listed(torchvision.models.video):
        side, frames = (224, 16) if name in ("mvit_v1_b", "s3d") else (112, 8)
        return network, {"video": torch.rand(1, 3, frames, side, side)}, False
    if name.startswith("raft"):
        return network, {"first": torch.rand(1, 3, 128, 160), "second": torch.rand(1, 3, 128, 160)}, False
    side = 299 if name == "inception_v3" else 224
    return network, {"image": torch.rand(1, 3, side, side)}, False


def timm_network(module):
    import timm
    import torch
    name = smallest(timm_names()[module])
    network = timm.create_model(name, pretrained=False, exportable=True)
    size = network.default_cfg["input_size"]
    return network, {"image": torch.rand(1, *size)}, False


def transformers_network(name):
    import torch
    import transformers
    kind = next(group for group, listed in TRANSFORMERS.items() if name in listed)
    made = getattr(transformers, name)
    config = made.config_class(**TRANSFORMERS[kind][name])
    config.use_cache = False
    # The default groups tokens by expert with operators that no exporter knows.
    config._experts_implementation = "batched_mm"
    network = made(config)
    if name == "XmodModel":
        network.set_default_language("en_XX")
    ids = lambda n: torch.randint(3, min(getattr(config, "vocab_size", None) or 1000, 1000), (1, n))
    if kind == "text":
        length = 128
        if name == "EsmModel":
            ids = lambda n: torch.randint(4, 24, (1, n))
        inputs = {"input_ids": ids(length)}
        if name not in ("RwkvModel", "MambaModel", "Mamba2Model", "FNetModel"):
            inputs["attention_mask"] = torch.ones(1, length, dtype=torch.int64)
        return network, inputs, False
    if kind == "seq2seq":
        return network, {"input_ids": ids(64), "decoder_input_ids": ids(32)}, False
    if kind == "image":
        side = getattr(config, "image_size", 224)
        side = side if isinstance(side, int) else side[0]
        if "Detr" in name or "Mask" in name and "MAE" not in name:
            side = 384
        if name == "Swin2SRForImageSuperResolution":
            side = 64
        channels = 1 if name == "SuperPointForKeypointDetection" else 3
        return network, {"pixel_values": torch.rand(1, channels, side, side)}, False
    if kind == "audio":
        if name == "Wav2Vec2BertModel":
            return network, {"input_features": torch.randn(1, 200, 160)}, False
        if name in ("EncodecModel", "DacModel", "MimiModel"):
            return network, {"input_values": torch.randn(1, 1, 24000)}, False
        return network, {"input_values": torch.randn(1, 16000)}, False
    inputs = {
        "ASTModel": lambda: {"input_values": torch.randn(1, 1024, 128)},
        "WhisperModel": lambda: {"input_features": torch.randn(1, 80, 3000), "decoder_input_ids": ids(8)},
        "Speech2TextModel": lambda: {"input_features": torch.randn(1, 300, 80), "decoder_input_ids": ids(16)},
        "CLIPModel": lambda: {"input_ids": torch.randint(3, 900, (1, 77)), "pixel_values": torch.rand(1, 3, 224, 224)},
        "SiglipModel": lambda: {"input_ids": torch.randint(3, 900, (1, 64)), "pixel_values": torch.rand(1, 3, 224, 224)},
        "ChineseCLIPModel": lambda: {"input_ids": torch.randint(3, 900, (1, 52)), "pixel_values": torch.rand(1, 3, 224, 224)},
        "VitsModel": lambda: {"input_ids": torch.randint(1, 30, (1, 50))},
        "PatchTSTModel": lambda: {"past_values": torch.randn(1, 32, 1)},
        "PatchTSMixerModel": lambda: {"past_values": torch.randn(1, 32, 1)},
        "TableTransformerForObjectDetection": lambda: {"pixel_values": torch.rand(1, 3, 384, 384)},
        "DecisionTransformerModel": lambda: {"states": torch.randn(1, 20, 17), "actions": torch.randn(1, 20, 4), "rewards": torch.randn(1, 20, 1), "returns_to_go": torch.randn(1, 20, 1), "timesteps": torch.arange(20)[None], "attention_mask": torch.ones(1, 20)},
        "ViltModel": lambda: {"input_ids": torch.randint(3, 900, (1, 32)), "pixel_values": torch.rand(1, 3, 384, 384)},
        "LayoutLMv3Model": lambda: {"input_ids": torch.randint(3, 900, (1, 64)), "bbox": torch.randint(0, 500, (1, 64, 4)), "pixel_values": torch.rand(1, 3, 224, 224)},
        "SpeechT5HifiGan": lambda: {"spectrogram": torch.randn(60, 80)},
        "FastSpeech2ConformerModel": lambda: {"input_ids": torch.randint(1, 70, (1, 40))},
        "UnivNetModel": lambda: {"input_features": torch.randn(1, 40, 100)},
    }[name]()
    return network, inputs, False


def export(name, exporter, folder):
    import logging
    import warnings

    import torch
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if hasattr(torch.backends, "mha"):
        torch.backends.mha.set_fastpath_enabled(False)
    library, rest = name.split(".", 1)
    made = {"torchvision": torchvision_network, "timm": timm_network, "transformers": transformers_network}.get(library)
    any_length = None
    if made:
        network, inputs, in_list = made(rest)
    else:
        (network, inputs, any_length), in_list = pytorch_libraries.network(library, rest), False
    network = network.eval()
    randomise(network)

    class Flat(torch.nn.Module):
        """Tensors in, the tensors of the first result out."""

        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, *values):
            if library == "transformers":
                out = self.network(**dict(zip(inputs, values)))
            else:
                out = self.network([values[0]] if in_list else values[0]) if len(values) == 1 else self.network(*values)
            flat = []
            def gather(o):
                if isinstance(o, torch.Tensor):
                    flat.append(o)
                elif isinstance(o, dict):
                    for v in o.values():
                        gather(v)
                elif isinstance(o, (list, tuple)):
                    for v in o:
                        gather(v)
            gather(out)
            return tuple(f for f in flat if f.is_floating_point() or f.dtype == torch.int64)[:4]

    flat = Flat().eval()
    values = tuple(inputs.values())
    path = os.path.join(folder, "model.onnx")
    with torch.no_grad():
        flat(*values)
        axes = any_length or ({k: {0: "batch"} for k in inputs} if not in_list and name != "transformers.SpeechT5HifiGan" else {})
        for key in ("input_ids", "attention_mask", "decoder_input_ids"):
            if key in inputs and library == "transformers" and len(inputs) <= 2:
                axes[key] = {0: "batch", 1: "decoder_length" if key.startswith("decoder") else "length"}
        if exporter == "dynamo":
            torch.onnx.export(flat, values, path, dynamo=True, input_names=list(inputs), external_data=False, verbose=False)
        elif exporter == "dynamic":
            # One example of a batch of one would be taken for a batch that is always one.
            several = tuple(torch.cat([v, v]) if 0 in axes.get(k, {}) else v for k, v in inputs.items())
            shapes = tuple(dict(axes[k]) if k in axes else None for k in inputs)
            torch.onnx.export(flat, several, path, dynamo=True, input_names=list(inputs), dynamic_shapes=(shapes,), external_data=False, verbose=False)
        else:
            builder = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
            opset = int(exporter.removeprefix("opset")) if exporter in OLDER else 17
            torch.onnx.export(flat, values, path, input_names=list(inputs), dynamic_axes=axes, opset_version=opset, do_constant_folding=True, **builder)
    import onnx
    # What the trace did not use is no input of the model.
    used = {i.name for i in onnx.load(path, load_external_data=False).graph.input}
    np.savez(os.path.join(folder, "inputs.npz"), **{k: v.numpy() for k, v in inputs.items() if k in used})


def write_apart(target, command, kept=()):
    """Runs `command` and a folder for its files in a process of its own; they and copies of `kept` become `target`, or why not `target`.failed."""
    if os.path.exists(target) or os.path.exists(target + ".failed"):
        return
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as temporary:
        try:
            done = subprocess.run([sys.executable, *command, temporary], cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True, timeout=400)
            why = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[-1]
        except subprocess.TimeoutExpired:
            why = "over 400 s"
        if why:
            with open(target + ".failed", "w") as file:
                file.write(why + "\n")
        else:
            os.mkdir(target)
            for file in os.listdir(temporary):
                os.rename(os.path.join(temporary, file), os.path.join(target, file))
            for file in kept:
                shutil.copy(file, target)
    print(os.path.basename(target), why[:150], flush=True)


def make_each(folder, commands, only, jobs):
    """Those of `commands`, arguments of Python by the name of what they write, whose names fit `only`."""
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda name: write_apart(os.path.join(os.path.abspath(folder), name), commands[name]), [n for n in commands if re.search(only, n)]))


def exporter_parser(doc):
    """What the exporters of single frameworks take."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default=".")
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def make(folder, only, jobs, exporters):
    make_each(folder, {f"{n}.{e}": [os.path.abspath(__file__), "one", n, e] for n in names() for e in exporters}, only, jobs)


def quantise(folder, target, only, each):
    """`each` ways for each export of `folder`, each in a process of its own: quantisers leave much memory taken."""
    import quantised
    code = ("import sys, beside, quantised; source, way, target = sys.argv[1:]; "
            "quantised.quantise(source, target + '/model.onnx', way, beside.inputs_of(source))")
    for index, (name, path) in enumerate(beside.models(folder, ".")):
        for k in range(each):
            way = quantised.EXPORTED_WAYS[(index * each + k) % len(quantised.EXPORTED_WAYS)]
            if re.search(only, f"{name}.{way}"):
                write_apart(os.path.join(target, f"{name}.{way}"), ["-c", code, path, way], [os.path.join(os.path.dirname(path), "inputs.npz")])


def cases(folder, only):
    for name, path in beside.models(folder, only):
        yield (name,), path, beside.inputs_of(path)


def main():
    parser, does, making, _ = beside.parsers(__doc__)
    making.add_argument("--jobs", type=int, default=2)
    making.add_argument("--exporters", type=lambda text: text.split(","), default=EXPORTERS, metavar="NAMES")
    quantising = does.add_parser("quantise")
    quantising.add_argument("folder")
    quantising.add_argument("quantised")
    quantising.add_argument("--only", default=".")
    quantising.add_argument("--each", type=int, default=2)
    one = does.add_parser("one", help="of make: exports one network here")
    one.add_argument("name")
    one.add_argument("exporter", choices=EXPORTERS + OLDER)
    one.add_argument("folder")
    args = parser.parse_args()
    if args.does == "one":
        export(args.name, args.exporter, args.folder)
    elif args.does == "make":
        make(args.folder, args.only, args.jobs, args.exporters)
    elif args.does == "quantise":
        quantise(os.path.abspath(args.folder), os.path.abspath(args.quantised), args.only, args.each)
    else:
        beside.measure(args, ("network",), cases(args.folder, args.only))


if __name__ == "__main__":
    main()
