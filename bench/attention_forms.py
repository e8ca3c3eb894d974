"""Attention as well-known implementations spell it, small and with random weights, for bench/exported.py.

Each class says whose form it is; what differs is where batch and heads go, what hides keys and with which number, and the order of axes.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, WORDS = 256, 4, 3, 1000
LOWEST = torch.finfo(torch.float32).min


def projections(count):
    return nn.ModuleList(nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(count)) for _ in range(LAYERS))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(WORDS, WIDTH), projections(4)

    def heads(self, x):
        return x.view(x.size(0), -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def joined(self, y):
        return y.transpose(1, 2).contiguous().view(y.size(0), -1, WIDTH)


class MinGpt(Network):
    """minGPT and nanoGPT: a triangle as a buffer, masked_fill with -infinity."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(512, 512)).view(1, 1, 512, 512))

    def forward(self, ids):
        x = self.embedding(ids)
        length = x.size(1)
        for query, key, value, out in self.layers:
            q, k, v = self.heads(query(x)), self.heads(key(x)), self.heads(value(x))
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
            x = x + out(self.joined(F.softmax(scores, dim=-1) @ v))
        return x


class Annotated(Network):
    """The Annotated Transformer and many after it: masked_fill(mask == 0, -1e9)."""

    low = -1e9

    def forward(self, ids, mask):
        x, mask = self.embedding(ids), mask.unsqueeze(1)
        for query, key, value, out in self.layers:
            q, k, v = self.heads(query(x)), self.heads(key(x)), self.heads(value(x))
            scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
            x = x + out(self.joined(torch.matmul(scores.masked_fill(mask == 0, self.low).softmax(-1), v)))
        return x


class AnnotatedLowest(Annotated):
    low = LOWEST


class Bart(Network):
    """BART, Marian, OPT and Whisper of transformers before 4.40: batch and heads joined for bmm, apart for the mask."""

    masked = True

    def forward(self, ids, attention_mask=None):
        x = self.embedding(ids)
        batch, length, _ = x.size()
        apart = lambda t: t.view(batch, -1, HEADS, WIDTH // HEADS).transpose(1, 2).contiguous().view(batch * HEADS, -1, WIDTH // HEADS)
        if self.masked:
            mask = 1.0 - attention_mask[:, None, None, :].expand(batch, 1, length, length).to(x.dtype)
            mask = mask.masked_fill(mask.to(torch.bool), LOWEST)
        for query, key, value, out in self.layers:
            q, k, v = apart(query(x) * (WIDTH // HEADS) ** -0.5), apart(key(x)), apart(value(x))
            scores = torch.bmm(q, k.transpose(1, 2))
            if self.masked:
                scores = (scores.view(batch, HEADS, length, k.size(1)) + mask).view(batch * HEADS, length, k.size(1))
            y = torch.bmm(F.softmax(scores, dim=-1), v).view(batch, HEADS, length, WIDTH // HEADS)
            x = x + out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x


class ClipVision(Bart):
    """CLIP and ViT-like encoders of the same time: no mask between."""

    masked = False

    def forward(self, ids):
        return super().forward(ids)


class Gpt2(Network):
    """GPT-2 of transformers before 4.46: where with the lowest number, then a mask of paddings is added."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones((512, 512), dtype=torch.bool)).view(1, 1, 512, 512))

    def forward(self, ids, attention_mask):
        x = self.embedding(ids)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * LOWEST
        for query, key, value, out in self.layers:
            q, k, v = self.heads(query(x)), self.heads(key(x)), self.heads(value(x))
            scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], v.size(-1) ** 0.5)
            queries, keys = q.size(-2), k.size(-2)
            scores = torch.where(self.bias[:, :, keys - queries:keys, :keys], scores, torch.full([], LOWEST))
            x = x + out(self.joined(torch.matmul(F.softmax(scores + mask, dim=-1), v)))
        return x


class EinsumHeadsLast(Network):
    """Einsum over [batch, length, heads, width], as in JAX."""

    def forward(self, ids):
        x = self.embedding(ids)
        shape = lambda t: t.view(t.size(0), -1, HEADS, WIDTH // HEADS)
        for query, key, value, out in self.layers:
            scores = torch.einsum("bqhd,bkhd->bhqk", shape(query(x)), shape(key(x))) / math.sqrt(WIDTH // HEADS)
            x = x + out(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), shape(value(x))).flatten(2))
        return x


class Encoder(nn.Module):
    """torch.nn.TransformerEncoder."""

    causal = False

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 512, batch_first=True), LAYERS, enable_nested_tensor=False)

    def forward(self, ids, attention_mask=None):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1)) if self.causal else None
        return self.encoder(self.embedding(ids), mask=mask, src_key_padding_mask=None if attention_mask is None else attention_mask == 0)


class CausalEncoder(Encoder):
    causal = True

    def forward(self, ids):
        return super().forward(ids)


class Detr(nn.Module):
    """torch.nn.MultiheadAttention as DETR calls it: the sequence first, weights asked for, paddings hidden by -infinity."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.MultiheadAttention(WIDTH, HEADS) for _ in range(LAYERS))

    def forward(self, pixels, positions, padding):
        for attention in self.layers:
            pixels = pixels + attention(pixels + positions, pixels + positions, value=pixels, key_padding_mask=padding != 0)[0]
        return pixels


class Swin(nn.Module):
    """Swin Transformer as published: shifted windows, a bias for relative positions, a mask for each window."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.table = nn.Linear(96, 288), nn.Linear(96, 96), nn.Parameter(torch.randn(169, 3))
        places = torch.stack(torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij")).flatten(1)
        relative = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + 6
        self.register_buffer("index", relative[:, :, 0] * 13 + relative[:, :, 1])
        regions = torch.zeros(1, 28, 28, 1)
        parts = (slice(0, -7), slice(-7, -3), slice(-3, None))
        for i, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
            regions[:, rows, columns, :] = i
        windows = self.windows(regions).view(-1, 49)
        apart = windows.unsqueeze(1) - windows.unsqueeze(2)
        self.register_buffer("mask", apart.masked_fill(apart != 0, -100.0))

    @staticmethod
    def windows(x):
        batch, height, width, channels = x.shape
        return x.view(batch, height // 7, 7, width // 7, 7, channels).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 7, 7, channels)

    def forward(self, pixels):
        batch, count, channels = pixels.shape
        windows = self.windows(torch.roll(pixels.view(batch, 28, 28, channels), (-3, -3), (1, 2))).view(-1, 49, channels)
        q, k, v = self.qkv(windows).reshape(-1, 49, 3, 3, channels // 3).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (channels // 3) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(49, 49, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        scores = scores.view(-1, self.mask.shape[0], 3, 49, 49) + self.mask.unsqueeze(1).unsqueeze(0)
        y = self.out((scores.view(-1, 3, 49, 49).softmax(-1) @ v).transpose(1, 2).reshape(-1, 49, channels))
        y = y.view(batch, 4, 4, 7, 7, channels).permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, 28, 28, channels)
        return pixels + torch.roll(y, (3, 3), (1, 2)).view(batch, count, channels)


class RelativePositions(nn.Module):
    """Conformer and Transformer-XL: scores of positions, shifted, are added to those of contents."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.position, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(5))
        self.u, self.v = nn.Parameter(torch.randn(HEADS, WIDTH // HEADS)), nn.Parameter(torch.randn(HEADS, WIDTH // HEADS))

    def forward(self, x, positions):
        batch, length, _ = x.size()
        apart = lambda t: t.view(t.size(0), -1, HEADS, WIDTH // HEADS)
        q = apart(self.query(x))
        contents = torch.matmul((q + self.u).transpose(1, 2), apart(self.key(x)).permute(0, 2, 3, 1))
        places = torch.matmul((q + self.v).transpose(1, 2), apart(self.position(positions)).permute(0, 2, 3, 1))
        shifted = torch.cat([places.new_zeros(batch, HEADS, length, 1), places], -1).view(batch, HEADS, -1, length)[:, :, 1:].view_as(places)
        scores = ((contents + shifted[:, :, :, :length]) / math.sqrt(WIDTH // HEADS)).softmax(-1)
        return self.out(torch.matmul(scores, apart(self.value(x)).transpose(1, 2)).transpose(1, 2).contiguous().view(batch, length, WIDTH))


def made(name):
    """The network, its inputs and its axes of any length."""
    ids, mask = torch.randint(0, WORDS, (1, 256)), torch.ones(1, 256, dtype=torch.int64)
    text = {0: "batch", 1: "length"}
    network = FORMS[name]()
    padded = {"ids": ids, "attention_mask": mask}, {"ids": text, "attention_mask": text}
    alone = {"ids": ids}, {"ids": text}
    # torch.onnx keeps the length of keys of torch.nn's layers as it is.
    batch = {0: "batch"}
    inputs, axes = {
        "Annotated": ({"ids": ids, "mask": mask[:, None]}, {"ids": text, "mask": {0: "batch", 2: "length"}}), "AnnotatedLowest": ({"ids": ids, "mask": mask[:, None]}, {"ids": text, "mask": {0: "batch", 2: "length"}}), "Bart": padded, "Gpt2": padded,
        "Encoder": (padded[0], {"ids": batch, "attention_mask": batch}), "CausalEncoder": (alone[0], {"ids": batch}), "Detr": ({"pixels": torch.randn(400, 1, WIDTH), "positions": torch.randn(400, 1, WIDTH), "padding": 1 - torch.ones(1, 400, dtype=torch.int64)}, {"pixels": {1: "batch"}, "positions": {1: "batch"}, "padding": {0: "batch"}}),
        "Swin": ({"pixels": torch.randn(1, 784, 96)}, {}), "RelativePositions": ({"x": torch.randn(1, 200, WIDTH), "positions": torch.randn(1, 399, WIDTH)}, {"x": {0: "batch"}}),
    }.get(name, alone)
    return network, inputs, axes


FORMS = {f.__name__: f for f in (MinGpt, Annotated, AnnotatedLowest, Bart, ClipVision, Gpt2, EinsumHeadsLast, Encoder, CausalEncoder, Detr, Swin, RelativePositions)}
