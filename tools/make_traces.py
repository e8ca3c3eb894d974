#!/usr/bin/env python3
"""Traces small functions with python/tombolo_trace.py: the cases under tests/pytorch/traces.

    tools/make_traces.py OUT torch        needs torch
    tools/make_traces.py OUT jax          needs jax
"""
import copy
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import numpy as np
import tombolo_trace


def save(folder, inputs, outputs, note):
    np.savez(folder / "io.npz", **{f"in_{i}": x for i, x in enumerate(inputs)}, **{f"out_{i}": x for i, x in enumerate(outputs)})
    (folder / "case.json").write_text(json.dumps(note))


def with_torch(root):
    import torch
    from torch import nn
    torch.manual_seed(1)

    class Small(nn.Module):
        """A branch on values, a buffer that is written, attention."""

        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.norm = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.LayerNorm(6)
            self.att, self.head = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 5)
            self.bn.running_mean.normal_()
            self.bn.running_var.uniform_(0.5, 2)
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x, k=2):
            y = torch.relu(self.bn(self.conv(x)))
            if y.sum() > 0:
                y = y * 2
            tokens = self.norm(y.flatten(2).transpose(1, 2))
            attended, _ = self.att(tokens, tokens, tokens, need_weights=False)
            self.steps.add_(1)
            p, q = (tokens + attended).chunk(2, 1)
            return self.head((p + q).mean(1)).softmax(-1), nn.functional.max_pool2d(y, k), torch.topk(p, 2)[1]

    class Half(nn.Module):
        """bfloat16, infinities, several types."""

        def __init__(self):
            super().__init__()
            self.l, self.e = nn.Linear(4, 3).to(torch.bfloat16), nn.Embedding(7, 4)

        def forward(self, i, m):
            x = self.e(i).masked_fill(m.unsqueeze(-1), float("-inf")).exp()
            return self.l(x.to(torch.bfloat16)).float(), {"n": i.shape[1] * torch.ones(2), "sum": x.double().sum(0)}

    class Views(nn.Module):
        """Writes through views; new tensors of computed sizes."""

        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

        def forward(self, x):
            b, t, _ = x.shape
            y = self.norm(torch.tanh(self.linear(x)))
            y = torch.cat([y, y.new_zeros(b, 1, 4)], 1)
            y[:, 0].mul_(2)
            y.view(-1)[::5] = 0.5
            return y.reshape(b * (t + 1), 4).view(b, -1, 2).sum(2), nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    for name, model, args in (("torch_small", Small(), (torch.randn(2, 3, 8, 8),)),
                              ("torch_half", Half(), (torch.randint(0, 7, (2, 5)), torch.rand(2, 5) > 0.7)),
                              ("torch_views", Views(), (torch.randn(2, 5, 4),))):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        model.eval()
        tombolo_trace.torch_module(copy.deepcopy(model), args, str(folder / "model"))
        with torch.no_grad():
            out = torch.utils._pytree.tree_leaves(model(*args))
        save(folder, [x.numpy() for x in args], [x.numpy() for x in out], {"source": "tombolo_trace", "torch": torch.__version__})


def with_jax(root):
    import jax
    import jax.numpy as jnp
    random = np.random.default_rng(3)

    def attention(p, x, m):
        h = jax.nn.gelu(x @ p["w"] + p["b"])
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        s = jnp.einsum("bte,bse->bts", jnp.einsum("btd,de->bte", h, p["q"]), h) / 2.0
        a = jax.nn.softmax(jnp.where(m[:, None, :], s, -jnp.inf), -1)
        y = jnp.concatenate([jnp.einsum("bts,bse->bte", a, h), x[:, :, :2]], -1)[:, ::-1]
        return {"y": y**3, "n": (x > 0).astype(jnp.int32).sum((0, 1)) // 2, "c": jnp.cumsum(jnp.transpose(x, (2, 0, 1)), 1)}

    def convolution(p, x):
        y = jax.lax.conv_general_dilated(x, p["k"], (2, 1), [(1, 1), (1, 1)], dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(y).max((1, 2)), jax.nn.sigmoid(y[:, 1:3, :, 0])

    def normal(*shape):
        return jnp.asarray(random.normal(size=shape), jnp.float32)
    for name, function, params, args in (
            ("jax_attention", attention, {"w": normal(6, 4), "b": normal(4), "q": normal(4, 4)},
             (normal(2, 5, 6), jnp.asarray(random.random((2, 5)) > 0.3))),
            ("jax_convolution", convolution, {"k": normal(3, 3, 2, 4)}, (normal(2, 7, 6, 2),))):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        tombolo_trace.jax_function(function, args, str(folder / "model"), params=params)
        save(folder, [np.asarray(x) for x in args], [np.asarray(x) for x in jax.tree_util.tree_leaves(function(params, *args))],
             {"source": "tombolo_trace", "jax": jax.__version__})


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    {"torch": with_torch, "jax": with_jax}[sys.argv[2]](pathlib.Path(sys.argv[1]))
