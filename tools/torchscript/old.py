"""Cases that PyTorch 1.4 can write too."""
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from torchscript.cases import T, case, stir


def cnn():
    return stir(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((2, 2)),
                              nn.Flatten(), nn.Linear(32, 5)))


@case(more=lambda: (T(3, 3, 10, 14),))
def old_cnn():
    return cnn(), (T(2, 3, 8, 10),)


@case("trace")
def old_cnn_traced():
    return cnn(), (T(2, 3, 8, 10),)


class Recurrent(nn.Module):
    def __init__(self):
        super(Recurrent, self).__init__()
        self.r = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True)
        self.g = nn.GRU(12, 4)
        self.h = nn.Linear(4, 3)

    def forward(self, x):
        y, (h, c) = self.r(x)
        z, k = self.g(y)
        return self.h(z), h, c, k


@case()
def old_recurrent():
    return Recurrent(), (T(2, 7, 5),)


@case("trace")
def old_recurrent_traced():
    return Recurrent(), (T(2, 7, 5),)


@case(more=lambda: (T(5, 4),))
def old_control():
    class M(nn.Module):
        def forward(self, x):
            t = torch.jit.annotate(List[Tensor], [])
            for i in range(x.size(0)):
                if i % 2 == 0:
                    t.append(x[i] * i)
                else:
                    t.append(x[i] - i)
            return torch.stack(t)
    return M(), (T(3, 4),)


@case(more=lambda: (T(5, 4) * 4,))
def old_while():
    class M(nn.Module):
        def forward(self, x):
            n = 0
            while bool(x.norm() > 1.0) and n < 10:
                x = x * 0.7
                n += 1
            return x, torch.full([2], n)
    return M(), (T(3, 4),)


@case()
def old_integer_division():
    class M(nn.Module):
        def forward(self, a, b):
            return a / b, torch.full([2, 2], 3), torch.arange(3) / 2, a.float() / 2
    return M(), (torch.tensor([7, 7, 9]), torch.tensor([2, 2, 4]))


@case()
def old_resizing():
    class M(nn.Module):
        def forward(self, x):
            return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False), F.interpolate(x, size=[5, 7], mode="nearest")
    return M(), (T(1, 2, 4, 4),)


@case("trace")
def old_resizing_traced():
    class M(nn.Module):
        def forward(self, x):
            return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True), F.interpolate(x, size=[5, 7], mode="nearest")
    return M(), (T(1, 2, 4, 4),)


@case(more=lambda: (T(3, 6, 8),))
def old_attention():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.q = nn.Linear(8, 24)
            self.n = nn.LayerNorm(8)

        def forward(self, x):
            q, k, v = self.q(self.n(x)).chunk(3, -1)
            return (q @ k.transpose(1, 2) / 8.0 ** 0.5).softmax(-1) @ v
    return M(), (T(2, 5, 8),)


@case()
def old_multihead():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.a = nn.MultiheadAttention(8, 2)

        def forward(self, x):
            y, w = self.a(x, x, x)
            return y, w
    return M(), (T(5, 2, 8),)


@case()
def old_encoder_traced():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0)
    return torch.jit.trace(nn.TransformerEncoder(layer, 2).eval(), T(5, 2, 8)), (T(5, 2, 8),)


@case()
def old_early_return():
    class M(nn.Module):
        def forward(self, x, z):
            d = {"a": x * 3, "b": z}
            if bool(x.sum() > 0):
                return x * 2
            y = d["a"] + 1
            for k, v in d.items():
                y = y + v
            return y
    return M(), (T(3, 4), T(3, 4))


@case()
def old_optional():
    class M(nn.Module):
        def forward(self, x, m=None):
            # type: (Tensor, Optional[Tensor]) -> Tuple[Tensor, Tensor]
            if m is not None:
                x = x + m
            y = x.masked_fill(x > 0, 0.5)
            y[0] = 1.0
            return y, x.argmax(1).to(torch.float32)
    return M(), (T(3, 4), T(4))


@case(atol=0.02)
def old_quantised_dynamic():
    return torch.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), {nn.Linear}), (T(3, 8),)


@case(atol=0.05)
def old_quantised():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.quant = torch.quantization.QuantStub()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.relu = nn.ReLU()
            self.fc = nn.Linear(8 * 16, 5)
            self.dequant = torch.quantization.DeQuantStub()

        def forward(self, x):
            x = F.max_pool2d(self.relu(self.conv(self.quant(x))), 2)
            return self.dequant(self.fc(x.reshape(x.size(0), -1)))
    torch.backends.quantized.engine = "qnnpack" if "qnnpack" in torch.backends.quantized.supported_engines else "fbgemm"
    model = M().eval()
    model.qconfig = torch.quantization.get_default_qconfig(torch.backends.quantized.engine)
    torch.quantization.prepare(model, inplace=True)
    for _ in range(3):
        model(T(2, 3, 8, 8))
    torch.quantization.convert(model, inplace=True)
    return model, (T(2, 3, 8, 8),)
