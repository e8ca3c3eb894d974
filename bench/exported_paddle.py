"""Exports networks of PaddlePaddle by paddle2onnx, for `bench/exported.py measure`.

    python bench/exported_paddle.py FOLDER [--only REGEX] [--jobs 2]

Needs paddlepaddle, paddle2onnx, onnx and onnxruntime; paddleclas and paddleseg, without what they ask for, where their networks are wanted. One
network of each family of paddle.vision, of each module of PaddleClas and each model of PaddleSeg, and layers of paddle.nn; the batch has any size.
Weights are random with a seed, statistics of normalisations too. What cannot be exported, or not run by ONNX Runtime, is listed and left out.
"""
import importlib
import importlib.util
import os
import pkgutil

import numpy as np

import exported

VISION = "LeNet alexnet densenet121 googlenet inception_v3 mobilenet_v1 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 shufflenet_v2_swish squeezenet1_1 vgg11 wide_resnet50_2".split()
LAYERS = "encoder decoder lstm gru captions".split()
# Models of PaddleSeg with the backbone that their published configurations take; none where they have their own.
SEGMENTATION = {
    "PPLiteSeg": "STDC1", "PPMobileSeg": "MobileSeg_Tiny", "BiSeNetV2": None, "BiseNetV1": "ResNet18_vd", "DeepLabV3": "ResNet50_vd", "DeepLabV3P": "ResNet50_vd", "FCN": "HRNet_W18", "PSPNet": "ResNet50_vd", "SegFormer": "MixVisionTransformer_B0", "UNet": None, "UNetPlusPlus": None, "UNet3Plus": None, "U2Netp": None, "FastSCNN": None, "ENet": None,
    "ESPNetV1": None, "ESPNetV2": None, "HarDNet": None, "SegNet": None, "SINet": None, "LRASPP": "MobileNetV3_large_x1_0", "OCRNet": "HRNet_W18", "ANN": "ResNet50_vd", "CCNet": "ResNet50_vd", "DANet": "ResNet50_vd", "DNLNet": "ResNet50_vd", "EMANet": "ResNet50_vd", "GCNet": "ResNet50_vd", "ISANet": "ResNet50_vd", "PFPNNet": "ResNet50_vd",
    "DDRNet_23": None, "PortraitNet": "MobileNetV2_x1_0", "PPHumanSegLite": None, "STDCSeg": "STDC1", "SFNet": "ResNet18_vd", "RTFormer": None, "TopFormer": "TopTransformer_Tiny", "UPerNet": "ResNet50_vd", "AttentionUNet": None, "DecoupledSegNet": "ResNet50_vd", "MobileSeg": "MobileNetV3_large_x1_0",
}
# What they need beside it.
SETTINGS = {"OCRNet": {"backbone_indices": (0,)}, "FCN": {"backbone_indices": (0,)}, "DANet": {"backbone_indices": (2, 3)}, "SFNet": {"backbone_indices": (0, 1, 2, 3)}, "UPerNet": {"backbone_indices": (0, 1, 2, 3)}, "PFPNNet": {"backbone_indices": (0, 1, 2, 3), "channels": 256}, "SegFormer": {"embedding_dim": 256}}


def classification_modules():
    """PaddleClas' modules of networks, by name; its packages import themselves as ppcls."""
    import sys
    found = importlib.util.find_spec("paddleclas")
    if found is None:
        return {}
    root = found.submodule_search_locations[0]
    if root not in sys.path:
        sys.path.insert(0, root)
    modules = {}
    for part in ("legendary_models", "model_zoo"):
        package = os.path.join(root, "ppcls", "arch", "backbone", part)
        modules |= {m.name: f"ppcls.arch.backbone.{part}.{m.name}" for m in pkgutil.iter_modules([package])}
    return modules


def names():
    return [f"vision.{n}" for n in VISION] + [f"nn.{n}" for n in LAYERS] + [f"seg.{n}" for n in SEGMENTATION] + [f"clas.{n}" for n in classification_modules()]


# ---- layers of paddle.nn

def layers(name):
    import paddle
    from paddle import nn

    class Encoder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(8000, 256)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, activation="gelu", normalize_before=True), 4)

        def forward(self, ids):
            return self.encoder(self.embedding(ids), ((ids == 0).astype("float32") * -1e9).unsqueeze([1, 2]))

    class Decoder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(8000, 256)
            self.transformer = nn.Transformer(256, 4, 2, 2, 1024)

        def forward(self, source, target):
            return self.transformer(self.embedding(source), self.embedding(target), tgt_mask=paddle.tensor.triu(paddle.full([32, 32], float("-inf")), 1))

    class Reader(nn.Layer):
        """Text lines as PaddleOCR reads them: convolutions, then a recurrent layer both ways."""

        def __init__(self, kind):
            super().__init__()
            self.convolutions = nn.Sequential(*[nn.Sequential(nn.Conv2D(i, o, 3, padding=1, bias_attr=False), nn.BatchNorm2D(o), nn.Hardswish(), nn.MaxPool2D(2, (2, w))) for i, o, w in ((3, 32, 2), (32, 64, 2), (64, 128, 1), (128, 256, 1), (256, 256, 1))])
            self.recurrent = kind(256, 96, 2, direction="bidirect")
            self.out = nn.Linear(192, 6625)

        def forward(self, image):
            x = self.convolutions(image).squeeze(2).transpose([0, 2, 1])
            return nn.functional.softmax(self.out(self.recurrent(x)[0]), axis=2)

    class Captions(nn.Layer):
        def __init__(self):
            super().__init__()
            self.image, self.attention = nn.Conv2D(3, 256, 16, 16), nn.MultiHeadAttention(256, 8)
            self.embedding, self.norm, self.out = nn.Embedding(2000, 256), nn.LayerNorm(256), nn.Linear(256, 2000)

        def forward(self, image, ids):
            pixels = self.image(image).flatten(2).transpose([0, 2, 1])
            x = self.embedding(ids)
            return self.out(self.norm(x + self.attention(x, pixels, pixels)))

    made = {"encoder": Encoder, "decoder": Decoder, "lstm": lambda: Reader(nn.LSTM), "gru": lambda: Reader(nn.GRU), "captions": Captions}[name]()
    ids = lambda n: np.random.default_rng(0).integers(1, 2000, (1, n)).astype(np.int64)
    image = lambda *size: np.random.default_rng(0).random((1, 3, *size), np.float32)
    return made, {"encoder": {"ids": ids(128)}, "decoder": {"source": ids(64), "target": ids(32)}, "captions": {"image": image(224, 224), "ids": ids(20)}}.get(name, {"image": image(32, 320)})


def network(name):
    import paddle
    library, rest = name.split(".", 1)
    if library == "nn":
        return layers(rest)
    channels, side = 3, 224
    if library == "vision":
        made = getattr(paddle.vision.models, rest)()
        channels, side = (1, 28) if rest == "LeNet" else (3, 299 if rest == "inception_v3" else 224)
    elif library == "clas":
        module = importlib.import_module(classification_modules()[rest])
        importlib.import_module("ppcls.utils.logger").init_logger()
        builders = [n for n in getattr(module, "MODEL_URLS", {}) if hasattr(module, n)] or [n for n in getattr(module, "__all__", []) if callable(getattr(module, n, None))]
        made = getattr(module, builders[0])()
        side = {"inception_v3": 299, "inception_v4": 299, "xception": 299, "adaface_ir_net": 112, "mobilefacenet": 112}.get(rest, 384 if "384" in builders[0] else 256 if "256" in builders[0] or "mobilevit" in rest else 224)
        if rest == "svtrnet":
            side = (48, 320)
    else:
        import paddleseg.models
        backbone = SEGMENTATION[rest]
        settings = {"backbone": getattr(paddleseg.models, backbone)()} if backbone else {}
        settings |= SETTINGS.get(rest, {})
        made = getattr(paddleseg.models, rest)(num_classes=19, **settings)
        side = 256
    size = side if isinstance(side, tuple) else (side, side)
    return made, {"image": np.random.default_rng(0).random((1, channels, *size), np.float32)}


def export(name, folder):
    import onnxruntime
    import paddle
    import paddle2onnx
    paddle.seed(0)
    made, feed = network(name)
    for part in made.sublayers():
        if isinstance(part, paddle.nn.layer.norm._BatchNormBase):
            part._mean.set_value(paddle.randn(part._mean.shape) * 0.1)
            part._variance.set_value(paddle.rand(part._variance.shape) + 0.5)
    made.eval()
    lengths = lambda x: [None, None] if x.dtype == np.int64 else [None, *x.shape[1:]]
    specification = [paddle.static.InputSpec(lengths(x), str(x.dtype), n) for n, x in feed.items()]
    paddle.jit.save(paddle.jit.to_static(made, input_spec=specification), os.path.join(folder, "network"))
    path = os.path.join(folder, "model.onnx")
    paddle2onnx.export(os.path.join(folder, "network.json"), os.path.join(folder, "network.pdiparams"), path, opset_version=17)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {i.name: x for i, x in zip(session.get_inputs(), feed.values())}
    session.run(None, feed)
    for rest in ("network.json", "network.pdiparams"):
        os.remove(os.path.join(folder, rest))
    np.savez(os.path.join(folder, "inputs.npz"), **feed)


def main():
    parser = exported.exporter_parser(__doc__)
    parser.add_argument("--one", metavar="NETWORK", help="exports one network here")
    args = parser.parse_args()
    if args.one:
        export(args.one, args.folder)
        return
    exported.make_each(args.folder, {f"paddle.{n}": [os.path.abspath(__file__), "--one", n] for n in names()}, args.only, args.jobs)


if __name__ == "__main__":
    main()
