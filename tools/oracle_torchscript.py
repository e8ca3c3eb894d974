#!/usr/bin/env python3
"""Makes TorchScript files with PyTorch (traced, scripted, frozen, quantised), with inputs and PyTorch's own outputs.

  tools/oracle_torchscript.py OUT [--only REGEX] [--large]     writes OUT/NAME/{model.pt,io.npz,case.json}

Then `tombolo conformance OUT` converts, runs and compares. Needs torch; --large needs torchvision.
"""
import argparse
import io
import json
import pathlib
import re
import warnings
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

warnings.filterwarnings("ignore")
CASES = []


def case(kind="script", second=None, rtol=1e-4, atol=1e-5, large=False):
    """Registers a function that gives (module, inputs)."""
    def register(make):
        CASES.append((make.__name__, kind, make, second, rtol, atol, large))
        return make
    return register


def T(*shape):
    return torch.randn(*shape)


def stir(module):
    """Random statistics and gains, so that nothing hides behind zeros and ones."""
    for m in module.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            m.running_mean.uniform_(-1, 1)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm)) and m.weight is not None:
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.uniform_(-1, 1)
    return module


# ---- control flow ----

@case(second=lambda: (T(5, 4),))
def if_on_data():
    class M(nn.Module):
        def forward(self, x):
            if bool(x.sum() > 0):
                y = x * 2
            else:
                y = x - 1
            return y
    return M(), (T(3, 4),)


@case()
def if_early_return():
    class M(nn.Module):
        def forward(self, x):
            if bool(x.mean() > 10):
                return x + 1
            if bool(x.mean() < -10):
                return x - 1
            return x * 3
    return M(), (T(3, 4),)


@case(second=lambda: (T(2, 4), torch.tensor(5)))
def while_on_data():
    class M(nn.Module):
        def forward(self, x, n: Tensor):
            i = torch.zeros((), dtype=torch.int64)
            while bool(i < n):
                x = x * 1.5 + 1
                i = i + 1
            return x, i
    return M(), (T(2, 4), torch.tensor(3))


@case(second=lambda: (T(7, 3),))
def for_over_rows():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(x.size(1))
            for i in range(x.size(0)):
                total = torch.tanh(total + x[i])
            return total
    return M(), (T(4, 3),)


@case(second=lambda: (T(6, 3),))
def list_building():
    class M(nn.Module):
        def forward(self, x):
            out: List[Tensor] = []
            h = torch.zeros(3)
            for i in range(x.size(0)):
                h = h * 0.5 + x[i]
                out.append(h)
            return torch.stack(out)
    return M(), (T(4, 3),)


@case()
def list_fixed():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x):
            parts: List[Tensor] = []
            for layer in self.layers:
                x = F.relu(layer(x))
                parts.append(x)
            parts.reverse()
            return torch.cat(parts[1:], 1), len(parts)
    return M(), (T(2, 4),)


@case()
def dict_result():
    class M(nn.Module):
        def forward(self, x):
            d: Dict[str, Tensor] = {}
            d["a"] = x + 1
            d["b"] = d["a"] * 2
            if "a" in d:
                d["c"] = d["a"] + d["b"]
            return d
    return M(), (T(2, 3),)


@case()
def dict_input_loop():
    class M(nn.Module):
        def forward(self, x, y):
            d = {"x": x, "y": y}
            total = torch.zeros_like(x)
            for k, v in d.items():
                if k == "x":
                    total = total + v
                else:
                    total = total - v
            return total
    return M(), (T(2, 3), T(2, 3))


@case()
def optional_argument():
    class M(nn.Module):
        def forward(self, x, mask: Optional[Tensor] = None):
            if mask is not None:
                x = x.masked_fill(mask, 0.0)
            return x + 1
    return M(), (T(2, 3), torch.tensor([[True, False, True], [False, False, True]]))


@case()
def optional_absent():
    class M(nn.Module):
        def forward(self, x, mask: Optional[Tensor] = None):
            if mask is not None:
                x = x.masked_fill(mask, 0.0)
            return x + 1
    return M(), (T(2, 3),)


@case()
def optional_state():
    class M(nn.Module):
        def forward(self, x):
            best: Optional[Tensor] = None
            for i in range(3):
                y = x * float(i) + i
                if best is None:
                    best = y
                else:
                    best = torch.maximum(best, y)
            assert best is not None
            return best
    return M(), (T(2, 3),)


@case()
def optional_on_data():
    class M(nn.Module):
        def forward(self, x):
            y: Optional[Tensor] = None
            if bool(x.sum() > 0):
                y = x * 2
            if y is None:
                z = x - 5
            else:
                z = y + 1
            return z
    return M(), (T(2, 3),)


@case()
def tuples():
    class M(nn.Module):
        def helper(self, x) -> Tuple[Tensor, Tuple[Tensor, int]]:
            return x + 1, (x * 2, 3)

        def forward(self, x):
            a, (b, n) = self.helper(x)
            return a, (b * n, a - b)
    return M(), (T(2, 3),)


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


@case()
def named_tuple():
    class M(nn.Module):
        def forward(self, x):
            p = Pair(x + 1, x * 2)
            return Pair(p.second, p.first + p[1])
    return M(), (T(2, 3),)


@case()
def tuple_input():
    class M(nn.Module):
        def forward(self, x: Tuple[Tensor, Tensor], y):
            a, b = x
            return a @ b + y
    return M(), ((T(2, 3), T(3, 4)), T(4))


@case()
def list_input():
    class M(nn.Module):
        def forward(self, xs: List[Tensor]):
            total = xs[0]
            for x in xs[1:]:
                total = total * 0.5 + x
            return total, torch.cat(xs, 0)
    return M(), ([T(2, 3), T(2, 3), T(2, 3)],)


@case()
def number_arguments():
    class M(nn.Module):
        def forward(self, x, n: int, f: float, flag: bool):
            y = x * f + n
            if flag:
                y = -y
            return y
    return M(), (T(2, 3), 3, 0.5, True)


@case()
def strings():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.mode = "tanh"

        def act(self, x, mode: str):
            if mode == "relu":
                return F.relu(x)
            elif mode == "tanh":
                return torch.tanh(x)
            else:
                raise RuntimeError("no " + mode)

        def forward(self, x):
            return self.act(x, self.mode) + self.act(x, "re" + "lu")
    return M(), (T(2, 3),)


@case()
def asserts():
    class M(nn.Module):
        def forward(self, x):
            if x.dim() != 2:
                raise ValueError("two axes")
            if x.size(1) != 3:
                raise ValueError("three columns")
            assert bool(x.abs().max() < 1e6)
            return x.t()
    return M(), (T(2, 3),)


@case(second=lambda: (T(3, 9),))
def break_and_continue():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(3)
            for i in range(6):
                if i == 1:
                    continue
                if i == 4:
                    break
                total = total + x[:, i]
            return total
    return M(), (T(3, 7),)


@case()
def break_on_data():
    class M(nn.Module):
        def forward(self, x):
            n = 0
            for i in range(5):
                if bool(x[i].sum() > 1.0):
                    break
                n += 1
            return x[0] + n
    return M(), (T(5, 3),)


@case()
def nested_loops():
    class M(nn.Module):
        def forward(self, x):
            y = torch.zeros_like(x)
            for i in range(x.size(0)):
                for j in range(x.size(1)):
                    y[i, j] = x[i, j] * (i + 1) - j
            return y
    return M(), (T(3, 4),)


@case()
def in_place_slices():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:, 1:3] += 10
            y[0] = y[0] * 2
            y[:, -1].mul_(3)
            return y
    return M(), (T(3, 4),)


@case()
def in_place_in_branch():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            if bool(x.sum() > 0):
                y[0].add_(1)
            else:
                y[1].sub_(1)
            return y
    return M(), (T(3, 4),)


@case(second=lambda: (T(5, 4),))
def while_norm():
    class M(nn.Module):
        def forward(self, x):
            steps = 0
            while bool(x.norm() > 1.0) and steps < 20:
                x = x * 0.7
                steps += 1
            return x, torch.tensor(steps)
    return M(), (T(3, 4),)


@case()
def integer_arithmetic():
    class M(nn.Module):
        def forward(self, x):
            n = x.size(0) * 2 + 1
            m = n // 3 + n % 4
            k = int(float(n) / 2.0) + min(n, m) + max(2, m) + abs(-3)
            return x.repeat(1, m).narrow(1, 0, 3) + k, x.reshape(-1, x.numel() // x.size(-1))
    return M(), (T(2, 6),)


@case()
def comprehension():
    class M(nn.Module):
        def forward(self, x):
            rows = [x[i] * i for i in range(3)]
            sizes = [r.size(0) for r in rows]
            return torch.stack(rows), torch.tensor(sizes)
    return M(), (T(3, 4),)


@case()
def enumerate_zip():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.b = nn.ModuleDict({"one": nn.Linear(4, 4), "two": nn.Tanh()})

        def forward(self, x):
            for i, layer in enumerate(self.a):
                x = layer(x) + i
            for name, layer in self.b.items():
                x = layer(x)
            return x
    return M(), (T(2, 4),)


@case()
def free_functions():
    def inner(x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale

    def outer(x: Tensor) -> Tensor:
        return inner(x) + inner(x, 0.5)
    inner = torch.jit.script(inner)

    class M(nn.Module):
        def forward(self, x):
            return inner(x) + inner(x, 0.5)
    return M(), (T(2, 3),)


@torch.jit.script
class Accumulator:
    def __init__(self, start: Tensor):
        self.total = start
        self.count = 0

    def add(self, x: Tensor):
        self.total = self.total + x
        self.count += 1


@case()
def script_class():
    class M(nn.Module):
        def forward(self, x):
            acc = Accumulator(torch.zeros(3))
            for i in range(4):
                acc.add(x[i])
            return acc.total / acc.count
    return M(), (T(4, 3),)


@case(second=lambda: (T(6, 3),))
def script_class_dynamic():
    class M(nn.Module):
        def forward(self, x):
            total = torch.zeros(3)
            count = 0
            for i in range(x.size(0)):
                if bool(x[i].sum() > 0):
                    total = total + x[i]
                    count += 1
            return total / max(count, 1)
    return M(), (T(4, 3),)


@case()
def greedy_decode():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(11, 8)
            self.cell = nn.GRUCell(8, 8)
            self.out = nn.Linear(8, 11)

        def forward(self, h, start):
            tokens: List[Tensor] = []
            token = start
            for i in range(6):
                h = self.cell(self.emb(token), h)
                token = self.out(h).argmax(-1)
                tokens.append(token)
            return torch.stack(tokens, 1), h
    return M(), (T(2, 8), torch.tensor([1, 2]))


@case()
def switch_layers():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

        def forward(self, x, which: Tensor):
            if bool(which == 1):
                return self.a(x)
            else:
                return self.b(x)
    return M(), (T(2, 4), torch.tensor(1))


@case()
def buffer_mutation():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.count += 1
            self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
            return x - self.mean + self.count
    return M(), (T(3, 4),)


# ---- ordinary networks, scripted and traced ----

def cnn():
    return stir(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Conv2d(8, 6, 3, stride=2, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(24, 5)))


@case(second=lambda: (T(3, 3, 22, 18),))
def cnn_scripted():
    return cnn(), (T(2, 3, 16, 20),)


@case("trace", second=lambda: (T(3, 3, 22, 18),))
def cnn_traced():
    return cnn(), (T(2, 3, 16, 20),)


@case("freeze", second=lambda: (T(3, 3, 22, 18),))
def cnn_frozen():
    return cnn(), (T(2, 3, 16, 20),)


@case()
def residual():
    class Block(nn.Module):
        def __init__(self, c, down):
            super().__init__()
            self.conv = nn.Conv2d(c, c, 3, padding=1)
            self.norm = nn.BatchNorm2d(c)
            self.down: Optional[nn.Module] = nn.Conv2d(c, c, 1) if down else None

        def forward(self, x):
            y = F.relu(self.norm(self.conv(x)))
            if self.down is not None:
                x = self.down(x)
            return F.relu(x + y)

    return stir(nn.Sequential(Block(4, True), Block(4, False), nn.Upsample(scale_factor=2.0))), (T(2, 4, 7, 9),)


@case()
def lstm_scripted():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(12, 3)

        def forward(self, x):
            y, (h, c) = self.rnn(x)
            return self.head(y), h, c
    return M(), (T(2, 7, 5),)


@case("trace")
def gru_traced():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(5, 6)

        def forward(self, x, h):
            return self.rnn(x, h)
    return M(), (T(7, 2, 5), T(1, 2, 6))


@case(second=lambda: (T(8, 3, 5),))
def lstm_cell_loop():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(5, 6)

        def forward(self, x):
            h = torch.zeros(x.size(1), 6)
            c = torch.zeros(x.size(1), 6)
            out: List[Tensor] = []
            for t in range(x.size(0)):
                h, c = self.cell(x[t], (h, c))
                out.append(h)
            return torch.stack(out), c
    return M(), (T(5, 2, 5),)


@case()
def attention_scripted():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            return self.attn(x, x, x, need_weights=False)[0]
    return M(), (T(2, 5, 8),)


@case("trace")
def transformer_traced():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
    return stir(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)), (T(2, 6, 16),)


@case()
def transformer_scripted():
    return stir(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0, norm_first=True)), (T(2, 6, 16),)


@case()
def own_attention():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(12, 36)
            self.proj = nn.Linear(12, 12)

        def forward(self, x):
            B, N, C = x.shape
            qkv = self.qkv(x).reshape(B, N, 3, 3, C // 3).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            a = (q @ k.transpose(-2, -1)) * ((C // 3) ** -0.5)
            return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(B, N, C))
    return M(), (T(2, 5, 12),)


@case()
def unet():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1 = nn.Conv2d(3, 4, 3, padding=1)
            self.d2 = nn.Conv2d(4, 6, 3, padding=1, stride=2)
            self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
            self.out = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = F.relu(self.d1(x))
            b = F.relu(self.d2(a))
            u = self.up(b)
            if u.shape[-2:] != a.shape[-2:]:
                u = F.interpolate(u, size=a.shape[-2:], mode="bilinear", align_corners=False)
            return self.out(torch.cat([u, a], 1))
    return M(), (T(2, 3, 8, 12),)


@case()
def norms():
    return stir(nn.Sequential(nn.Conv1d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.InstanceNorm1d(8, affine=True),
                              nn.LeakyReLU(0.2), nn.Conv1d(8, 4, 3, dilation=2), nn.LayerNorm([6]), nn.PReLU(), nn.Softmax(1))), (T(2, 4, 12),)


@case("trace")
def indexing_traced():
    class M(nn.Module):
        def forward(self, x):
            i = torch.tensor([2, 0])
            return x[:, i], x[x > 0.5], x[..., ::2], x[:, None, 1]
    return M(), (T(3, 4),)


@case()
def reductions():
    class M(nn.Module):
        def forward(self, x):
            v, i = x.max(1)
            top, where = x.topk(2, dim=-1)
            return v, i, top, where, x.sum(0, keepdim=True), x.std(1), torch.var(x), x.argsort(1), x.cumsum(0), x.logsumexp(1)
    return M(), (T(3, 5),)


@case()
def embedding_bag():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 6, padding_idx=0)
            self.fc = nn.Linear(6, 2)

        def forward(self, tokens):
            mask = (tokens != 0).unsqueeze(-1).float()
            e = (self.emb(tokens) * mask).sum(1) / mask.sum(1).clamp(min=1.0)
            return self.fc(e)
    return M(), (torch.tensor([[1, 2, 0, 0], [3, 4, 5, 0]]),)


@case()
def einsum_and_pad():
    class M(nn.Module):
        def forward(self, x, y):
            z = torch.einsum("bij,bjk->bik", [x, y])
            return F.pad(z, [1, 2], value=0.5), F.one_hot(z.argmax(-1), 4), torch.where(z > 0, z, -z)
    return M(), (T(2, 3, 4), T(2, 4, 4))


@case()
def dropout_and_eval():
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ELU(), nn.Linear(4, 2), nn.LogSoftmax(-1)), (T(3, 4),)


@case("freeze")
def frozen_control():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.depth = 3

        def forward(self, x):
            for i in range(self.depth):
                x = torch.tanh(self.fc(x)) + i
            return x
    return M(), (T(2, 4),)


# ---- quantised ----

def quantised(model, inputs, per_channel=False):
    torch.backends.quantized.engine = "fbgemm" if per_channel else "qnnpack"
    model.eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm" if per_channel else "qnnpack")
    prepared = torch.ao.quantization.prepare(model)
    for _ in range(3):
        prepared(*[torch.randn_like(x) for x in inputs])
    return torch.ao.quantization.convert(prepared)


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.add = nn.quantized.FloatFunctional()
        self.fc = nn.Linear(8, 5)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        x = self.pool(self.relu(self.conv(self.quant(x))))
        x = self.add.add(x, self.conv2(x))
        return self.dequant(self.fc(x.mean([2, 3])))


@case("quantised-script", atol=0.05)
def quantised_scripted():
    x = (T(2, 3, 8, 8),)
    return quantised(QNet(), x, True), x


@case("quantised-trace", atol=0.05)
def quantised_traced():
    x = (T(2, 3, 8, 8),)
    return quantised(QNet(), x), x


@case("quantised-script", atol=0.02)
def quantised_dynamic():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}), (T(3, 8),)


# ---- torchvision ----

def vision(name, kind="script", size=(2, 3, 64, 64), **options):
    def make():
        import torchvision
        torch.manual_seed(1)
        module = torchvision.models.get_model(name, weights=None, **options)
        if "weights_backbone" in options:
            pass
        return stir(module), (torch.rand(*size),)
    make.__name__ = f"tv_{name}_{kind}"
    case(kind, large=True, rtol=1e-3, atol=1e-3)(make)


for tv in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "efficientnet_b0",
           "regnet_y_400mf", "densenet121", "convnext_tiny", "googlenet", "vit_b_32", "swin_t"):
    vision(tv, size=(1, 3, 224, 224) if "vit" in tv or "swin" in tv else (2, 3, 64, 64), **({"init_weights": False} if tv == "googlenet" else {}))
vision("resnet18", "trace")
vision("mobilenet_v2", "trace")
vision("lraspp_mobilenet_v3_large", weights_backbone=None)
vision("deeplabv3_mobilenet_v3_large", weights_backbone=None)


def detector(name, **options):
    def make():
        import torchvision
        torch.manual_seed(1)
        return torchvision.models.get_model(name, weights=None, weights_backbone=None, **options), ([torch.rand(3, 96, 128)],)
    make.__name__ = f"tv_{name}"
    case("detect", large=True, rtol=1e-3, atol=1e-2)(make)


for tv in ("ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn"):
    detector(tv)


# ---- writing ----

def flatten(value, out):
    if isinstance(value, Tensor):
        out.append(value.detach().numpy().copy())
    elif isinstance(value, dict):
        for v in value.values():
            flatten(v, out)
    elif isinstance(value, (list, tuple)):
        for v in value:
            flatten(v, out)


def flatten_inputs(value, out):
    if isinstance(value, Tensor):
        out.append(value.numpy().copy())
    elif isinstance(value, bool):
        out.append(np.array(value))
    elif isinstance(value, int):
        out.append(np.array(value, dtype=np.int64))
    elif isinstance(value, float):
        out.append(np.array(value, dtype=np.float64))
    elif isinstance(value, (list, tuple)):
        for v in value:
            flatten_inputs(v, out)


def write(folder, name, kind, make, second, rtol, atol):
    torch.manual_seed(0)
    module, inputs = make()
    module.eval()
    with torch.no_grad():
        if kind in ("trace", "quantised-trace"):
            program = torch.jit.trace(module, inputs, check_trace=False)
        else:
            program = torch.jit.script(module)
            if kind == "freeze":
                program = torch.jit.freeze(program)
    path = folder / name / "model.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    program.save(str(path))
    arrays = {}
    for prefix, given in (("", inputs), ("2", second() if second else None)):
        if given is None:
            continue
        fresh = torch.jit.load(str(path))  # state is the file's
        ins, outs = [], []
        flatten_inputs(given, ins)
        with torch.no_grad():
            flatten(fresh(*given), outs)
            if kind == "detect":
                pass
        state = [v for k, v in fresh.state_dict().items()]
        before = torch.jit.load(str(path)).state_dict()
        for k, v in fresh.state_dict().items():
            if not torch.equal(v, before[k]):
                outs.append(v.numpy().copy())
        arrays.update({f"in{prefix}_{i}": v for i, v in enumerate(ins)})
        arrays.update({f"out{prefix}_{i}": v for i, v in enumerate(outs)})
    with zipfile.ZipFile(path.parent / "io.npz", "w", zipfile.ZIP_DEFLATED) as z:
        for key, value in arrays.items():
            data = io.BytesIO()
            np.save(data, value)
            z.writestr(zipfile.ZipInfo(key + ".npy"), data.getvalue(), zipfile.ZIP_DEFLATED)
    (path.parent / "case.json").write_text(json.dumps(
        {"source": "tools/oracle_torchscript.py", "framework": f"torch {torch.__version__}", "kind": kind, "rtol": rtol, "atol": atol}) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true", help="torchvision's networks too")
    args = parser.parse_args()
    made = 0
    for name, kind, make, second, rtol, atol, large in CASES:
        if large and not args.large or not re.search(args.only, name):
            continue
        try:
            write(args.out, name, kind, make, second, rtol, atol)
            made += 1
        except Exception as error:  # a case that this PyTorch cannot write
            print(f"not made: {name}: {str(error).strip().splitlines()[-1][:150]}")
    print(f"{made} cases")


if __name__ == "__main__":
    main()
