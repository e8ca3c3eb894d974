"""Quantised modules: static and dynamic."""
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case, stir


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


@case("script", atol=0.05)
def quantised_scripted():
    x = (T(2, 3, 8, 8),)
    return quantised(QNet(), x, True), x


@case("trace", atol=0.05)
def quantised_traced():
    x = (T(2, 3, 8, 8),)
    return quantised(QNet(), x), x


@case("script", atol=0.02)
def quantised_dynamic():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}), (T(3, 8),)


class QMobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), nn.ReLU6())
        self.c = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))
        self.f = nn.quantized.FloatFunctional()
        self.h = nn.Hardswish()
        self.fc = nn.Linear(16, 4)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        x = self.a(self.quant(x))
        y = self.c(self.b(x))
        x = self.f.add_relu(x, y)
        x = self.h(x)
        x = self.f.cat([x, y], 1)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.dequant(torch.sigmoid(self.fc(x)))


def fused(model, inputs, engine):
    torch.backends.quantized.engine = engine
    model.eval()
    torch.ao.quantization.fuse_modules(model, [["a.0", "a.1", "a.2"], ["b.0", "b.1"], ["c.0", "c.1"]], inplace=True)
    model.qconfig = torch.ao.quantization.get_default_qconfig(engine)
    prepared = torch.ao.quantization.prepare(stir(model))
    for _ in range(3):
        prepared(*[torch.randn_like(x) for x in inputs])
    return torch.ao.quantization.convert(prepared)


@case(atol=0.02, more=lambda: (T(1, 3, 12, 8),))
def quantised_mobile():
    x = (T(2, 3, 8, 8),)
    return fused(stir(QMobile().eval()), x, "fbgemm"), x


@case("trace", atol=0.02)
def quantised_mobile_traced():
    x = (T(2, 3, 8, 8),)
    return fused(stir(QMobile().eval()), x, "qnnpack"), x


@case(atol=0.02)
def quantised_dynamic_lstm():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.LSTM(8, 6)
            self.fc = nn.Linear(6, 3)

        def forward(self, x):
            y, (h, c) = self.r(x)
            return self.fc(y), h
    return torch.ao.quantization.quantize_dynamic(M(), {nn.LSTM, nn.Linear}), (T(5, 2, 8),)


@case(atol=0.02)
def quantised_dynamic_gru():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.GRU(8, 6)
            self.c = nn.GRUCell(6, 6)

        def forward(self, x):
            y, h = self.r(x)
            return self.c(y[-1], h[0])
    return torch.ao.quantization.quantize_dynamic(M(), {nn.GRU, nn.GRUCell}), (T(5, 2, 8),)


@case(atol=1e-4)
def quantised_dynamic_cells():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.r, self.t, self.g = nn.LSTMCell(8, 6), nn.RNNCell(8, 6, nonlinearity="relu"), nn.RNNCell(8, 6), nn.GRUCell(8, 6)

        def forward(self, x, h, c):
            first, second = self.l(x, (h, c))
            return first, second, self.r(x, h), self.t(x, second), self.g(x, first)
    return torch.ao.quantization.quantize_dynamic(M(), {nn.LSTMCell, nn.RNNCell, nn.GRUCell}), (T(3, 8), T(3, 6), T(3, 6))


@case(atol=0.02)
def quantised_embedding():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.EmbeddingBag(10, 8, mode="sum")
            self.e.qconfig = torch.ao.quantization.float_qparams_weight_only_qconfig

        def forward(self, i, o):
            return self.e(i, o)
    m = M().eval()
    m = torch.ao.quantization.prepare(m)
    return torch.ao.quantization.convert(m), (I(1, 2, 4, 5, 4, 3), I(0, 2, 4))


@case(atol=1e-5)
def quantised_embedding_plain():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(10, 8)
            self.e.qconfig = torch.ao.quantization.float_qparams_weight_only_qconfig

        def forward(self, i):
            return self.e(i)
    m = torch.ao.quantization.prepare(M().eval())
    return torch.ao.quantization.convert(m), (torch.tensor([[1, 2, 4], [9, 0, 4]]),)


@case(atol=1e-5)
def quantised_averages():
    class M(nn.Module):
        def forward(self, x):
            q = torch.quantize_per_tensor(x, 0.037, 120, torch.quint8)
            return (F.avg_pool2d(q, 2).dequantize(), F.adaptive_avg_pool2d(q, (2, 5)).dequantize(), F.avg_pool2d(q, 3, 2, 1).dequantize(),
                    F.interpolate(q, scale_factor=2.0, mode="bilinear", align_corners=False).dequantize())
    return M(), (T(2, 4, 8, 10) * 2,)


@case(atol=0.02)
def quantised_graph_mode():
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = "fbgemm"
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.ConvTranspose2d(6, 4, 2, 2), nn.ELU(), nn.Flatten(), nn.Linear(4 * 12 * 12, 3)).eval()
    x = (T(2, 3, 8, 8),)
    config = torch.ao.quantization.get_default_qconfig_mapping("qnnpack")
    torch.backends.quantized.engine = "qnnpack"
    prepared = prepare_fx(model, config, x)
    for _ in range(3):
        prepared(T(2, 3, 8, 8))
    return convert_fx(prepared), x


@case(atol=1e-5)
def quantise_by_hand():
    class M(nn.Module):
        def forward(self, x):
            q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
            p = torch.quantize_per_channel(x, torch.tensor([0.1, 0.05, 0.2]), torch.tensor([0, 1, 2]), 0, torch.qint8)
            return q.dequantize(), q.int_repr(), q.q_scale(), p.dequantize(), torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255), q.reshape(-1).dequantize(), q.max_pool(x) if hasattr(self, "q") else q[0].dequantize()
    return M(), (T(3, 4),)
