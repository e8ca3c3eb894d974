"""Ordinary networks, scripted, traced and frozen."""
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case, stir


def cnn():
    return stir(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Conv2d(8, 6, 3, stride=2, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(24, 5)))


@case(more=lambda: (T(3, 3, 22, 18),))
def cnn_scripted():
    return cnn(), (T(2, 3, 16, 20),)


@case("trace", more=lambda: (T(3, 3, 22, 18),))
def cnn_traced():
    return cnn(), (T(2, 3, 16, 20),)


@case("freeze", more=lambda: (T(3, 3, 22, 18),))
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


@case(more=lambda: (T(8, 3, 5),))
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


@case(more=lambda: (T(3, 7, 8),))
def encoder_layers():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return stir(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)), (T(2, 5, 8),)


@case(more=lambda: (T(3, 7, 8), T(3, 4, 8)))
def decoder_scripted():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, norm_first=True), 2, nn.LayerNorm(8))

        def forward(self, memory, x):
            mask = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)
            return self.t(x, memory, tgt_mask=mask)
    return stir(M()), (T(2, 5, 8), T(2, 3, 8))


@case(more=lambda: (T(9, 2, 6),))
def rnns():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.RNN(6, 5, 2, nonlinearity="relu")
            self.b = nn.GRU(5, 4, bidirectional=True)
            self.c = nn.LSTM(8, 4, 2, proj_size=3)

        def forward(self, x):
            y, h = self.a(x)
            y, k = self.b(y)
            z, (hn, cn) = self.c(y)
            return z, h, k, hn, cn
    return M(), (T(7, 3, 6),)


@case(more=lambda: (T(3, 9, 5), T(2, 3, 4), T(2, 3, 4)))
def lstm_with_state():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.LSTM(5, 4, 2, batch_first=True)

        def forward(self, x, h: Optional[Tensor] = None, c: Optional[Tensor] = None):
            if h is not None and c is not None:
                y, s = self.r(x, (h, c))
            else:
                y, s = self.r(x)
            return y, s
    return M(), (T(2, 6, 5), T(2, 2, 4), T(2, 2, 4))


@case(more=lambda: (T(2, 6, 8), T(2, 9, 8)))
def multihead_masked():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, q, kv):
            pad = torch.zeros(kv.size(0), kv.size(1), dtype=torch.bool)
            pad[:, -1] = True
            y, w = self.a(q, kv, kv, key_padding_mask=pad)
            z, _ = self.a(q, kv, kv, need_weights=False)
            return y, w, z
    return M(), (T(3, 4, 8), T(3, 5, 8))


@case(more=lambda: (T(1, 3, 20, 28),))
def feature_pyramid():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Conv2d(3 if i == 0 else 4, 4, 3, 2, 1) for i in range(3)])
            self.side = nn.ModuleList([nn.Conv2d(4, 4, 1) for _ in range(3)])

        def forward(self, x):
            feats: List[Tensor] = []
            for d in self.down:
                x = F.relu(d(x))
                feats.append(x)
            out: List[Tensor] = []
            top: Optional[Tensor] = None
            for i in range(len(feats) - 1, -1, -1):
                for j, s in enumerate(self.side):
                    if i == j:
                        y = s(feats[i])
                        if top is not None:
                            y = y + F.interpolate(top, size=y.shape[-2:], mode="nearest")
                        top = y
                        out.insert(0, y)
            return {"p%d" % i: t for i, t in enumerate(out)} if hasattr(self, "z") else out
    return M(), (T(2, 3, 16, 24),)


@case("freeze", more=lambda: (T(3, 4, 10),))
def conv1d_frozen():
    class Glu(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Conv1d(4, 8, 3, padding="same")
            self.t = nn.ConvTranspose1d(4, 4, 4, stride=2, padding=1)

        def forward(self, x):
            return self.t(F.glu(self.c(x), 1)) + 0
    return nn.Sequential(Glu(), nn.BatchNorm1d(4), nn.ELU(), nn.Hardswish(), nn.Dropout(0.5)), (T(2, 4, 8),)


@case("optimize")
def optimized_mlp():
    return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)), (T(2, 10),)


@case(more=lambda: (T(1, 3, 12, 12),))
def module_containers():
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.layers = nn.ModuleDict({"conv": nn.Conv2d(c, c, 3, padding=1), "act": nn.SiLU()})
            self.gain = nn.ParameterList([nn.Parameter(T(1)) for _ in range(2)])

        def forward(self, x):
            y = x
            for layer in self.layers.values():
                y = layer(y)
            for g in self.gain:
                y = y * g
            return x + y

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(*[Block(3) for _ in range(3)])
            self.heads = nn.ModuleList([nn.Linear(3, n) for n in (2, 5)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            x = x.mean([2, 3])
            outs: List[Tensor] = []
            for head in self.heads:
                outs.append(head(x))
            return outs[0], outs[1], len(self.blocks)
    return M(), (T(2, 3, 8, 8),)


@case(more=lambda: (T(4, 6), I(1, 0, 2, 2)))
def losses():
    class M(nn.Module):
        def forward(self, x, t):
            onehot = F.one_hot(t, 6).to(x.dtype)
            return (F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, reduction="none"), F.nll_loss(x.log_softmax(1), t),
                    F.mse_loss(x, onehot), F.l1_loss(x, onehot, reduction="sum"), F.smooth_l1_loss(x, onehot), F.huber_loss(x, onehot),
                    F.binary_cross_entropy_with_logits(x, onehot), F.kl_div(x.log_softmax(1), onehot), F.cosine_similarity(x, onehot))
    return M(), (T(3, 6), I(1, 5, 3))


@case(more=lambda: (T(3, 5),))
def activations():
    class M(nn.Module):
        def forward(self, x):
            return (F.relu6(x), F.elu(x, 0.5), F.selu(x), F.celu(x), F.leaky_relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x),
                    F.mish(x), F.softplus(x), F.softsign(x), F.hardtanh(x), F.hardsigmoid(x), F.hardswish(x), F.logsigmoid(x),
                    F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.threshold(x, 0.1, 20.0), F.softmin(x, 1), F.log_softmax(x, -1),
                    F.normalize(x, dim=1), F.dropout(x, 0.5, False), F.prelu(x, torch.tensor([0.3])), F.glu(x[:, :4]), F.rrelu(x))
    return M(), (T(2, 5),)


@case(more=lambda: (T(3, 4, 9),))
def tacotron_like():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.prenet = nn.Linear(4, 6)
            self.cell = nn.LSTMCell(6 + 4, 5)
            self.query = nn.Linear(5, 4)
            self.out = nn.Linear(9, 4)
            self.stop = nn.Linear(9, 1)

        def forward(self, memory):
            memory = memory.transpose(1, 2)
            b = memory.size(0)
            frame = memory.new_zeros(b, 4)
            h, c = memory.new_zeros(b, 5), memory.new_zeros(b, 5)
            context = memory.new_zeros(b, 4)
            frames: List[Tensor] = []
            aligned: List[Tensor] = []
            while len(frames) < 6:
                x = torch.cat([F.relu(self.prenet(frame)), context], -1)
                h, c = self.cell(x, (h, c))
                score = torch.bmm(memory, self.query(h).unsqueeze(2)).squeeze(2).softmax(1)
                context = torch.bmm(score.unsqueeze(1), memory).squeeze(1)
                both = torch.cat([h, context], 1)
                frame = self.out(both)
                frames.append(frame)
                aligned.append(score)
                if bool((self.stop(both).sigmoid() > 0.9).all()):
                    break
            return torch.stack(frames, 1), torch.stack(aligned, 1)
    return M(), (T(2, 4, 7),)


@case(more=lambda: (T(4, 3, 6), I(2, 3, 3, 1)))
def crf_viterbi():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.transitions = nn.Parameter(T(6, 6))

        def forward(self, emissions, lengths):
            batch, steps, tags = emissions.shape
            score = emissions[:, 0]
            history: List[Tensor] = []
            for t in range(1, steps):
                total = score.unsqueeze(2) + self.transitions + emissions[:, t].unsqueeze(1)
                best, at = total.max(1)
                score = torch.where((t < lengths).unsqueeze(1), best, score)
                history.append(at)
            best_score, tag = score.max(1)
            path = [tag]
            for i in range(len(history) - 1, -1, -1):
                tag = history[i].gather(1, tag.unsqueeze(1)).squeeze(1)
                path.append(tag)
            path.reverse()
            return best_score, torch.stack(path, 1)
    return M(), (T(3, 5, 6), I(5, 5, 4))
