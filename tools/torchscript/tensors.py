"""Writes in place, views, indexing, shapes that depend on inputs."""
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchscript.cases import I, T, case


@case(more=lambda: (T(4, 6),))
def writes_through_views():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            v = y.view(-1, 2)
            v[0] = 7
            t = y.t()
            t[1].mul_(2)
            s = y[:, 1::2]
            s += 100
            d = y.diagonal()
            d.zero_()
            return y, v, t, s
    return M(), (T(4, 4),)


@case(more=lambda: (T(5, 3),))
def slice_assignments():
    class M(nn.Module):
        def forward(self, x):
            y = torch.zeros(x.size(0) + 2, x.size(1) + 2)
            y[1:-1, 1:-1] = x
            y[0] = 1
            y[-1, :] = y[1, :]
            y[..., 0] -= 5
            z = torch.arange(12).reshape(3, 4)
            z[1:, [0, 2]] = 0
            z[:, -1] = torch.tensor([7, 8, 9])
            return y, z
    return M(), (T(2, 4),)


@case(more=lambda: (T(6, 4),))
def mask_assignments():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[y < 0] = 0
            y[x > 1] *= 2
            z = x.clone()
            z[z.sum(1) > 0] = -1.0
            w = x.masked_fill(x > 0, float("-inf")).softmax(-1)
            k = x[x > 0]
            return y, z, torch.nan_to_num(w), k, k.sum()
    return M(), (T(3, 4),)


@case(more=lambda: (T(6, 4), I(0, 5)))
def index_assignments():
    class M(nn.Module):
        def forward(self, x, i):
            y = x.clone()
            y[i] = 0.5
            y[:, i % 4] += 1
            y[i, 1] = torch.tensor([10.0, 20.0])
            y.index_add_(0, i, torch.ones(2, 4))
            y.index_fill_(1, I2(), 3.0)
            z = torch.zeros(4).scatter_(0, i % 4, torch.ones(2))
            return y, z, x[i, i % 4], x[:, i % 4], x[i][:, None]

    @torch.jit.script
    def I2() -> Tensor:
        return torch.tensor([2])
    return M(), (T(3, 4), I(2, 1))


@case(more=lambda: (T(2, 3, 5, 7),))
def shape_arithmetic():
    class M(nn.Module):
        def forward(self, x):
            b, c, h, w = x.shape
            y = x.view(b, c, -1).transpose(1, 2).reshape(b, h, w, c)
            z = x.reshape(b * c, h, w)[:, : h // 2, w // 2:]
            p = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
            q = x.flatten(2).mean(-1, keepdim=True).expand(-1, -1, h * w)
            r = x.unsqueeze(2).expand(b, c, 2, h, w).reshape(b, c * 2, h, w)
            return y, z, p, q, r, torch.tensor(x.numel()), x.size()[2]
    return M(), (T(1, 2, 6, 8),)


@case(more=lambda: (T(1, 4, 8, 12),))
def pixel_shuffles():
    class M(nn.Module):
        def shuffle(self, x, g: int):
            n, c, h, w = x.size()
            return x.view(n, g, c // g, h, w).transpose(1, 2).contiguous().view(n, c, h, w)

        def forward(self, x):
            return self.shuffle(x, 2), F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2)
    return M(), (T(2, 4, 4, 6),)


@case(more=lambda: (T(1, 2, 9, 7),))
def dynamic_resizing():
    class M(nn.Module):
        def forward(self, x):
            a = F.interpolate(x, size=[x.shape[2] * 2, x.shape[3] + 1], mode="bilinear", align_corners=False)
            b = F.interpolate(x, scale_factor=0.5, mode="nearest")
            c = F.adaptive_avg_pool2d(x, [3, 2])
            d = F.adaptive_max_pool2d(x, (2, 3))
            e = F.interpolate(c, size=x.shape[-2:], mode="bilinear", align_corners=True)
            f = F.interpolate(x, scale_factor=[1.5, 2.0], mode="bicubic", align_corners=False, recompute_scale_factor=True)
            return a, b, c, d, e, f
    return M(), (T(2, 2, 6, 8),)


@case(more=lambda: (T(3, 9), torch.tensor(9), torch.tensor(2)))
def computed_slices():
    class M(nn.Module):
        def forward(self, x, n: Tensor, m: Tensor):
            k, j = int(n), int(m)
            a = x[:, j:k]
            b = x[:, :-j]
            c = x.narrow(1, j, k - j)
            d = x[:, k - 1]
            e = torch.arange(j, k, 2)
            f = torch.zeros(k, j + 1)
            g = x[:, -j:]
            h = x.select(1, j)
            return a, b, c, d, e, f, g, h, a.size(1) * 2
    return M(), (T(2, 7), torch.tensor(6), torch.tensor(1))


@case(more=lambda: (T(2, 9), I(9, 1)))
def padding_masks():
    class M(nn.Module):
        def forward(self, x, lengths):
            b, t = x.shape
            mask = torch.arange(t)[None, :] < lengths[:, None]
            y = x.masked_fill(~mask, 0.0)
            mean = y.sum(1) / lengths
            causal = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
            scores = (x.unsqueeze(2) * x.unsqueeze(1)).masked_fill(causal, float("-inf")).softmax(-1)
            last = x.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
            return y, mean, scores, last, int(lengths.max())
    return M(), (T(3, 5), I(5, 2, 3))


@case(more=lambda: (T(5, 3), T(4, 3)))
def distances():
    class M(nn.Module):
        def forward(self, a, b):
            d = torch.cdist(a, b)
            near = d.argmin(1)
            onehot = F.one_hot(near, b.size(0)).float()
            sums = onehot.t() @ a
            counts = onehot.sum(0).clamp(min=1.0)
            return d, near, sums / counts[:, None]
    return M(), (T(4, 3), T(2, 3))


@case(more=lambda: (T(12, 4).abs(), T(12)))
def box_operations():
    class M(nn.Module):
        def area(self, b):
            return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])

        def forward(self, boxes, scores):
            boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 0.1], 1)
            lt = torch.max(boxes[:, None, :2], boxes[:, :2])
            rb = torch.min(boxes[:, None, 2:], boxes[:, 2:])
            wh = (rb - lt).clamp(min=0)
            inter = wh[..., 0] * wh[..., 1]
            iou = inter / (self.area(boxes)[:, None] + self.area(boxes) - inter)
            keep = torch.where(scores > 0)[0]
            order = scores.argsort(descending=True)
            return iou, boxes[keep], boxes[order[:2]], keep.numel(), torch.nonzero(scores > 0.5).shape[1]
    return M(), (T(6, 4).abs(), T(6))


@case(more=lambda: (T(7, 3),))
def greedy_suppression():
    class M(nn.Module):
        def forward(self, x):
            order = torch.argsort(x[:, 0], descending=True)
            keep: List[int] = []
            alive = torch.ones(x.size(0), dtype=torch.bool)
            for k in range(x.size(0)):
                i = int(order[k])
                if bool(alive[i]):
                    keep.append(i)
                    near = (x - x[i]).pow(2).sum(1).sqrt() < 1.5
                    alive = alive & ~near
            return torch.tensor(keep), x[torch.tensor(keep)]
    return M(), (T(5, 3),)


@case(more=lambda: (T(3, 6), I(2, 0, 1)))
def scatter_gather():
    class M(nn.Module):
        def forward(self, x, i):
            a = torch.zeros(4, x.size(1)).index_add(0, i, x)
            b = torch.zeros(4, x.size(1)).scatter_add(0, i[:, None].expand_as(x), x)
            c = x.gather(1, i[:, None].repeat(1, 2))
            d = torch.take_along_dim(x, i[:, None], 1)
            e = x.index_select(0, i)
            f = torch.bincount(i, minlength=5)
            g = x.scatter(1, i[:, None], 9.0)
            return a, b, c, d, e, g
    return M(), (T(3, 5), I(1, 1, 2))


@case(more=lambda: (T(2, 5, 6),))
def einsums():
    class M(nn.Module):
        def forward(self, x):
            a = torch.einsum("bij,bkj->bik", x, x)
            b = torch.einsum("bij->bji", x)
            c = torch.einsum("...ij->...", x)
            d = torch.tensordot(x, x, dims=([2], [2]))
            return a, b, c, d, torch.bmm(x, x.transpose(1, 2)), x.matmul(x[0].t())
    return M(), (T(3, 4, 6),)


@case(more=lambda: (T(4, 5),))
def in_place_family():
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            y.add_(1).mul_(2).sub_(0.5).div_(3).clamp_(-1, 1).neg_().abs_().sqrt_()
            y += x
            y -= 1
            y *= 2
            y /= 4
            z = torch.empty_like(x)
            z.copy_(y)
            z.fill_(2.5)
            w = y.detach().clone()
            w.squeeze_()
            w.unsqueeze_(0)
            w.t_() if w.dim() == 2 else w.transpose_(0, 1)
            u = torch.zeros(3)
            u[0], u[1] = 1.0, 2.0
            torch.relu_(y)
            F.relu(z, inplace=True)
            n = x.new_empty(2).zero_()
            k = I3(x)
            k ^= True
            return y, z, w, u, n, k

    @torch.jit.script
    def I3(x: Tensor) -> Tensor:
        return x > 0
    return M(), (T(3, 4),)


@case(more=lambda: (T(4, 3), torch.tensor(3)))
def in_place_in_loop():
    class M(nn.Module):
        def forward(self, x, n: Tensor):
            y = torch.zeros(x.size(0), 3)
            h = x[0].clone()
            for i in range(int(n)):
                h.mul_(0.5).add_(x[i])
                y[i] = h
                if bool(h.sum() > 0):
                    y[i].neg_()
            return y, h
    return M(), (T(5, 3), torch.tensor(4))


@case(more=lambda: (T(3, 5),))
def type_conversions():
    class M(nn.Module):
        def forward(self, x):
            a = x > 0
            b = a.float() + a.int() + a
            c = x.long() // 2 + x.int() % 3
            d = (x * 10).round().to(torch.uint8)
            e = x.double() * 2
            f = torch.tensor([1, 2, 3]) / 2 + torch.tensor([1, 2, 3]) // 2
            g = 1 - a.int()
            h = 5 / (x.abs() + 1)
            i = 2 ** x
            j = 7 * (x.int().abs() + 1)
            k = a.sum() + True
            return b, c, e, f, g, h, i, j, k, a.any(), a.all(1), (x == 0).logical_not(), x.sign().to(torch.int16)
    return M(), (T(2, 5),)


@case(more=lambda: (T(5, 2),))
def multiple_results():
    class M(nn.Module):
        def forward(self, x):
            v, i = torch.max(x, 0)
            s, o = x.sort(dim=0, descending=True)
            q, r = torch.topk(x.flatten(), 3)
            u, inv, cnt = torch.unique(x.int().flatten(), return_inverse=True, return_counts=True) if x.dim() == 2 else (x, x, x)
            m = x.median(0)
            mode = x.kthvalue(1, 0)
            var, mean = torch.var_mean(x, 0)
            return v, i, s, o, q, u, inv, cnt, m.values, mode[0], var, mean, torch.aminmax(x)
    return M(), (T(4, 2),)


@case(more=lambda: (T(3, 8),))
def stft_like():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(4))

        def forward(self, x):
            frames = x.unfold(1, 4, 2) * self.window
            spec = torch.fft.rfft(frames)
            power = spec.abs() ** 2
            z = torch.view_as_real(spec)
            return power, z, torch.fft.irfft(spec, n=4), torch.stft(x, 4, 2, window=self.window, return_complex=True).abs()
    return M(), (T(2, 12),)


@case(more=lambda: (T(5, 4),))
def cumulative():
    class M(nn.Module):
        def forward(self, x):
            return (x.cumsum(0), x.cumprod(1), x.cummax(0)[0], torch.diff(x, dim=0), x.roll(1, 0), x.flip(0), torch.rot90(x),
                    x.repeat(2, 1), x.repeat_interleave(2, 0), x.tile(2), torch.logcumsumexp(x, 0))
    return M(), (T(3, 4),)


@case(more=lambda: (T(2, 3, 6, 5),))
def windows_and_folds():
    class M(nn.Module):
        def forward(self, x):
            n, c, h, w = x.shape
            cols = F.unfold(x, [2, 2])
            back = F.fold(cols, [h, w], [2, 2])
            p = F.avg_pool2d(x, 2, ceil_mode=True), F.max_pool2d(x, [2, 3], 1, padding=1)
            grid = F.affine_grid(torch.eye(2, 3).unsqueeze(0).expand(n, 2, 3), [n, c, h, w], align_corners=False)
            return cols, back, p[0], p[1], F.grid_sample(x, grid, align_corners=False)
    return M(), (T(1, 3, 4, 6),)


@case(more=lambda: (T(0, 3),))
def empty_tensors():
    class M(nn.Module):
        def forward(self, x):
            if x.size(0) == 0:
                return torch.zeros(1, 3)
            return x.mean(0, keepdim=True)
    return M(), (T(4, 3),)


@case(more=lambda: (T(4, 3),))
def item_and_numbers():
    class M(nn.Module):
        def forward(self, x):
            s = x.sum().item()
            k = x.argmax().item()
            n = int(k) + 1
            m = x.max()
            y = x * s + k
            z = torch.full((n,), s)
            w = torch.full_like(x, float(m))
            v = x.clamp(max=float(x.mean()))
            u = torch.tensor([float(s), 1.0]) + torch.tensor(n)
            return y, z.sum(), w, v, u, torch.zeros(n).shape[0]
    return M(), (T(2, 3),)


@case()
def clones_of_views():
    class M(nn.Module):
        def forward(self, x):
            a = x[0]
            y = x * 1
            b = y[1]
            y[1] = 0
            c = b.clone()
            y[1] = 5
            d = y.view(-1)[: 3]
            e = y.reshape(-1)
            e[0] = 42
            f = y.contiguous()
            f[0, 1] = 43
            g = y.expand_as(y)
            h = y.t().contiguous()
            h[0, 0] = -1
            return a, b, c, d, y, g, h
    return M(), (T(3, 4),)


@case("trace", more=lambda: (T(5, 6, 4),))
def traced_shapes():
    class M(nn.Module):
        def forward(self, x):
            b, t, d = x.shape
            q = x.reshape(b, t, 2, d // 2).transpose(1, 2)
            y = (q @ q.transpose(-1, -2)).softmax(-1) @ q
            y = y.transpose(1, 2).reshape(b, t, d)
            pos = torch.arange(t).unsqueeze(0).expand(b, t)
            y = y + pos.unsqueeze(-1) / t
            y[:, 0] = 0
            return y, x.new_zeros(b, 2), torch.cat([x, x[:, :1]], 1), y.view(-1, d), y[:, -1], x[:, : t // 2]
    return M(), (T(2, 3, 4),)


@case("trace", more=lambda: (T(6, 3),))
def traced_writes():
    class M(nn.Module):
        def forward(self, x):
            y = torch.zeros(x.shape[0], x.shape[1] + 1)
            y[:, 1:] = x
            y[0, 0] = 9
            z = x.clone()
            z[z > 0] = 1
            z[:, 1] += 2
            return y, z
    return M(), (T(4, 3),)


@case(more=lambda: (-T(3, 2, 4).abs() - 1,))
def flatten_of_no_rows():
    class M(nn.Module):
        def forward(self, x):
            kept = x[x[:, 0, 0] > 0]
            y = torch.flatten(kept, 1)
            return y, y.sum(1), F.linear(kept.flatten(1), torch.ones(3, 8))
    return M(), (T(4, 2, 4),)


@case(kind="trace", rtol=2e-3)
def numbers_of_a_trace():
    """A trace holds numbers as tensors of 64 bits; they are promoted as numbers."""
    class M(nn.Module):
        def forward(self, x, n, h):
            return n + 1.5, n.abs() * 2, torch.fmod(x, n.abs() + 1.5), h * 0.3, n.int() + 2, torch.true_divide(n, 4), (n > 0) * 2.5
    return M(), (T(2, 3), torch.tensor([[1, -2, 3], [4, 5, -6]]), T(2, 3).half())


@case(more=lambda: (T(3, 70),))
def spectrum_and_back():
    class M(nn.Module):
        def __init__(self):
            super(M, self).__init__()
            self.register_buffer("window", torch.hann_window(16))
            self.register_buffer("short", torch.hann_window(12))

        def forward(self, x):
            z = torch.stft(x, 16, 4, window=self.window, return_complex=True)
            y = torch.istft(z * 0.5, 16, 4, window=self.window)
            w = torch.istft(z, 16, 4, 12, self.short, True, False, True, x.size(1))
            whole = torch.fft.fft(torch.complex(x, -x))
            pairs = torch.stft(torch.complex(x, x * 2), 8, 2, center=False, return_complex=True, window=self.window[::2])
            return y, w, torch.view_as_real(pairs), torch.view_as_real(torch.istft(pairs, 8, 2, window=torch.ones(8), center=False, return_complex=True)), whole.abs()
    return M(), (T(2, 60),)
