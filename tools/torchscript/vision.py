"""Every builder of torchvision: classification, segmentation, detection, video, optical flow, quantised; scripted, random weights."""
import torch
import torchvision
from torch import nn
from torchvision.models import detection, get_model, list_models

from torchscript.cases import CASES, Case, by_size, stir

SIZED = ("vit", "swin", "maxvit")  # networks for one size


def add(name, make, kind, more, rtol, atol):
    make.__name__ = name
    CASES.append(Case(make, kind, more, rtol, atol, False, "forward", "vision"))


def options_of(name):
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    if name in list_models(detection) or name in list_models(torchvision.models.segmentation):
        options["weights_backbone"] = None
    return options


def lively(module):
    """Untrained networks say the same everywhere: the statistics of their normalisations are made those of what they are given, and
    the weights of the heads such that scores lie apart. (Where scores are equal the order of detections is open, and a difference
    says nothing.)"""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    for m in norms:
        m.train()
        m.reset_running_stats()
        m.momentum = None
    for key, p in module.named_parameters():
        head = any(part in key for part in ("cls_logits", "cls_score", "classification_head", "bbox_pred", "kps_score"))
        if head and p.dim() > 1:
            p.data.normal_(0, 1.0 / p[0].numel() ** 0.5)
    with torch.no_grad():
        for _ in range(2):
            features = module.backbone(torch.randn(2, 3, 300, 320))
            features = list(features.values()) if isinstance(features, dict) else [features]
            if hasattr(module, "head"):
                module.head(features)
    for m in norms:
        m.eval()
        m.running_mean += 0.1 * torch.randn_like(m.running_mean)
        m.running_var *= 0.8 + 0.4 * torch.rand_like(m.running_var)
        m.weight.data.uniform_(0.8, 1.2)
        m.bias.data.uniform_(-0.2, 0.2)
    return module


def classifier(name):
    def make():
        torch.manual_seed(1)
        return stir(get_model(name, **options_of(name))), (torch.rand(2, 3, *size(name)),)
    fixed = name.startswith(SIZED)
    add("tv_" + name, make, "script", [lambda: (torch.rand(1 if fixed else 3, 3, *(size(name) if fixed else [s + 32 for s in size(name)])),)], 1e-3, 1e-3)


def size(name):
    if name.startswith("vit_h"):
        return [224, 224]
    if name.startswith(SIZED):
        return [224, 224]
    side = {"inception_v3": 299, "alexnet": 128, "googlenet": 128}.get(name, 64)
    return [side, side]


def segmenter(name):
    def make():
        torch.manual_seed(1)
        return stir(get_model(name, **options_of(name))), (torch.rand(2, 3, 64, 96),)
    add("tv_" + name, make, "script", [lambda: (torch.rand(1, 3, 96, 64),)], 1e-3, 1e-3)


def detector(name):
    def make():
        torch.manual_seed(1)
        options = dict(options_of(name))
        if "ssd" not in name:
            options.update(min_size=96, max_size=160)
        if "rcnn" in name:
            options.update(box_score_thresh=0.001, box_detections_per_img=20)
        module = get_model(name, **options).eval()
        # Sigmoids of one-stage heads would saturate: equal scores have no order.
        return (stir(module) if "retinanet" in name else lively(module)), ([torch.rand(3, 96, 128)],)
    add("tv_" + name, make, "script", [lambda: ([torch.rand(3, 112, 96)],)], 1e-3, 1e-2)


def video(name):
    def make():
        torch.manual_seed(1)
        frames, side = (16, 224) if name == "s3d" or name.startswith("mvit") else (8, 64)  # some have but one size
        return stir(get_model(name, **options_of(name))), (torch.rand(1, 3, frames, side, side),)
    more = [] if name.startswith("mvit") or name == "s3d" else [lambda: (torch.rand(2, 3, 12, 80, 64),)]
    add("tv_" + name, make, "script", more, 1e-3, 1e-3)


class Flow(nn.Module):
    """Optical flow with two steps of refinement; the last one is the result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, first, second):
        return self.model(first, second, 2)[-1]


def flow(name):
    def make():
        torch.manual_seed(1)
        return Flow(stir(get_model(name, weights=None))), (torch.rand(1, 3, 128, 136), torch.rand(1, 3, 128, 136))
    add("tv_" + name, make, "script", [lambda: (torch.rand(2, 3, 136, 128), torch.rand(2, 3, 136, 128))], 1e-3, 1e-3)


def quantised(name):
    """Static quantisation of the whole network, by tensor and by channel, calibrated on what it is given."""
    def make(backend):
        torch.manual_seed(1)
        torch.backends.quantized.engine = backend
        module = stir(get_model(name, quantize=False, **options_of(name[len("quantized_"):]))).eval()
        module.fuse_model()
        module.qconfig = torch.ao.quantization.get_default_qconfig(backend)
        torch.ao.quantization.prepare(module, inplace=True)
        with torch.no_grad():
            for _ in range(2):
                module(torch.rand(2, 3, *size(name[len("quantized_"):])))
        return torch.ao.quantization.convert(module), (torch.rand(1, 3, *size(name[len("quantized_"):])),)
    for backend, suffix in (("qnnpack", ""), ("fbgemm", "_channels")):
        def made(backend=backend):
            return make(backend)
        add("tv_" + name + suffix, made, "script", [], 0, 0.05)


for one in by_size(torchvision.models):
    classifier(one)
for one in by_size(torchvision.models.segmentation):
    segmenter(one)
for one in by_size(detection):
    detector(one)
for one in by_size(torchvision.models.video):
    video(one)
for one in by_size(torchvision.models.optical_flow):
    flow(one)
for one in by_size(torchvision.models.quantization):
    quantised(one)
