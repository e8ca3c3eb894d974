"""timm's test models as traces."""
import timm
import torch

from torchscript.cases import CASES, Case, stir


def add(name):
    def make():
        torch.manual_seed(1)
        model = timm.create_model(name, pretrained=False, exportable=True)
        return stir(model), (torch.rand(2, *model.default_cfg["input_size"]),)
    make.__name__ = "timm_" + name.replace(".", "_")
    shape = timm.create_model(name).default_cfg["input_size"]
    CASES.append(Case(make, "trace", [lambda: (torch.rand(3, *shape),)], 1e-3, 1e-3, False, "forward", "timm_models"))


for one in timm.list_models("test_*"):
    add(one)
