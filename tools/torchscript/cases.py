"""The register of TorchScript cases: each is a function that gives (module, inputs)."""
import torch
from torch import nn

CASES = []


class Case(object):
    def __init__(self, make, kind, more, rtol, atol, numbers, method, group):
        self.name = make.__name__
        self.make = make
        self.kind = kind  # script, trace, freeze, optimize
        self.more = more  # functions that give further inputs
        self.rtol, self.atol = rtol, atol
        self.numbers = numbers  # numbers among the results count as outputs
        self.method = method
        self.group = group


def case(kind="script", more=(), rtol=1e-4, atol=1e-5, numbers=False, method="forward"):
    def register(make):
        group = make.__module__.split(".")[-1]
        CASES.append(Case(make, kind, more if isinstance(more, (list, tuple)) else [more], rtol, atol, numbers, method, group))
        return make
    return register


def T(*shape):
    return torch.randn(*shape)


def I(*values):
    return torch.tensor(values)


def stir(module):
    """Random statistics and gains, so that nothing hides behind zeros and ones."""
    for m in module.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and m.running_mean is not None:
            m.running_mean.uniform_(-1, 1)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm)) and m.weight is not None:
            m.weight.data.uniform_(0.5, 1.5)
            if m.bias is not None:
                m.bias.data.uniform_(-1, 1)
    return module


def by_size(module):
    """The builders of a module of torchvision, the smallest network first: a sweep that is ended early has tried most of them."""
    from torchvision.models import get_model_weights, list_models
    return sorted(list_models(module=module), key=lambda name: max((w.meta["num_params"] for w in get_model_weights(name)), default=0))
