"""Random cases of the newer com.microsoft operators, and of those that only GPUs have (by formulas in numpy)."""

import math

import numpy as np
from onnx import TensorProto

from oracle_microsoft_cases import Case, codes_of, dims, generator, pick, section, some
import oracle_microsoft_cases as cases

section("recent")


def short(x):
    """Two digits, so that cases become tests as they are: formulas hold the arrays, not the inputs."""
    return np.array([float(f"{v:.2g}") for v in np.reshape(x, -1)], np.float32).reshape(np.shape(x))


def f32(rng, *shape, scale=1.0):
    return short(cases.f32(rng, *shape, scale=scale))


def streams(rng):
    lead, c, h = tuple(int(v) for v in rng.integers(1, 4, rng.integers(0, 3))), int(rng.integers(1, 5)), int(rng.integers(1, 7))
    flat = rng.random() < 0.4
    x = f32(rng, *lead, c * h) if flat else f32(rng, *lead, c, h)
    return lead, c, h, flat, x, ({"num_branches": c} if flat else {})


@generator
def BranchwiseRMSNorm(rng):
    _, c, h, _, x, attrs = streams(rng)
    shape = pick(rng, (h,), (c, h), (c * h,))
    return Case("BranchwiseRMSNorm", [x, some(rng, f32(rng, *shape), 0.7)], attrs | {"epsilon": 1e-4})


@generator
def HyperConnectionPreMix(rng):
    lead, c, h, flat, x, attrs = streams(rng)
    shape = pick(rng, (c,), (c, 1), (c, h), *([(c * h,)] if flat else []))
    return Case("HyperConnectionPreMix", [x, f32(rng, *lead, *shape)], attrs | {"reduction_scale": float(rng.uniform(0.2, 2))})


@generator
def HyperConnectionPostMix(rng):
    lead, c, h, _, x, attrs = streams(rng)
    shape = pick(rng, (c,), (c, 1), (c, h))
    return Case("HyperConnectionPostMix",
                [x, f32(rng, *lead, h), f32(rng, *lead, *shape), some(rng, f32(rng, *lead, c, c))], attrs)


@generator
def ScaledSiLU(rng):
    kind = pick(rng, np.float32, np.float16)
    scale = some(rng, np.array(rng.uniform(-2, 2), pick(rng, np.float32, np.float16)))
    return Case("ScaledSiLU", [f32(rng, *dims(rng), scale=3).astype(kind), scale], {"alpha": float(rng.uniform(-2, 2))})


@generator
def LinearAttentionGate(rng):
    b, t, h = (int(v) for v in rng.integers(1, 5, 3))
    two = rng.random() < 0.5
    return Case("LinearAttentionGate", [f32(rng, b, t, h, scale=4), f32(rng, h), f32(rng, h), f32(rng, b, t, h) if two else None],
                outputs=2 if two else 1)


@generator
def EngramGate(rng):
    b, t, m, h = (int(v) for v in rng.integers(1, 5, 4))
    two = rng.random() < 0.5
    return Case("EngramGate", [f32(rng, b, t, m, h), f32(rng, b, t, m, h), f32(rng, b, t, h), f32(rng, m, h), f32(rng, m, h),
                               f32(rng, m, h) if two else None], {"epsilon": 1e-4}, outputs=2 if two else 1)


def hashing(rng, kind):
    n, heads = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    width = (n - 1) * heads
    top = 2**31 - 1 if kind == np.int32 else 2**63 - 1
    pad = int(rng.integers(0, 9))
    eos = some(rng, np.array(int(rng.integers(0, 6)), kind), 0.6)
    return n, heads, width, {"max_ngram_size": n, "n_head_per_ngram": heads, "pad_id": pad, "reset_on_eos": int(pick(rng, 0, 1))}, [
        rng.integers(-top, top, n + int(rng.integers(0, 2)), dtype=np.int64).astype(kind),
        rng.integers(1, 1000, width).astype(kind)], eos


@generator
def NGramHashMapping(rng):
    kind = pick(rng, np.int32, np.int64)
    n, heads, width, attrs, tables, eos = hashing(rng, kind)
    b, t = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    return Case("NGramHashMapping", [
        rng.integers(0, 6, (b, t)).astype(kind), *tables, some(rng, rng.integers(0, 6, (b, n - 1)).astype(kind)),
        some(rng, rng.integers(0, 99, width).astype(kind)), eos,
        some(rng, np.sort(rng.integers(0, 3, (b, t)), 1).astype(np.int32))], attrs, outputs=2)


@generator
def VarlenNGramHashMapping(rng):
    kind = pick(rng, np.int32, np.int64)
    n, heads, width, attrs, tables, eos = hashing(rng, kind)
    lengths = rng.integers(1, 6, int(rng.integers(1, 4)))
    b, t = len(lengths), int(lengths.sum())
    past = some(rng, rng.integers(0, 6, (b, n - 1)).astype(kind))
    segments = some(rng, rng.integers(0, 3, t).astype(np.int32))
    before = None if segments is None or past is None else some(rng, rng.integers(0, 3, (b, n - 1)).astype(np.int32))
    capacity = int(pick(rng, 0, 0, 2))
    if capacity:
        attrs["state_update_capacity"] = capacity
    count = rng.integers(0, 4, b).astype(np.int32) if capacity else None
    return Case("VarlenNGramHashMapping", [
        rng.integers(0, 6, t).astype(kind), *tables, np.cumsum([0, *lengths]).astype(np.int32), past,
        some(rng, rng.integers(0, 99, width).astype(kind)), eos, segments, before, count], attrs,
        outputs=4 if capacity else 3, skip_outputs=() if segments is not None else (2,))


@generator
def MRotaryEmbedding(rng):
    b, s, heads = (int(v) for v in rng.integers(1, 5, 3))
    half = int(rng.integers(2, 6))
    partial = rng.random() < 0.3
    size = 2 * half + (int(rng.integers(1, 3)) * 2 if partial else 0)
    x = f32(rng, b, heads, s, size) if rng.random() < 0.5 else f32(rng, b, s, heads * size)
    first = int(rng.integers(0, half + 1))
    second = int(rng.integers(0, half - first + 1))
    layout = int(pick(rng, 0, 1))
    if layout:
        second = third = half // 3
        first = half - second - third
        section_ = [first, second, third]
    else:
        section_ = [first, second, half - first - second]
    attrs = {"mrope_section": section_, "mrope_layout": layout, "interleaved": int(pick(rng, 0, 1))}
    if partial or x.ndim == 3:
        attrs |= {"num_heads": heads} | ({"rotary_embedding_dim": 2 * half} if partial else {})
    angles = rng.uniform(0, 6, (9, half))
    return Case("MRotaryEmbedding", [x, rng.integers(0, 9, (3, b, s)), np.cos(angles).astype(np.float32),
                                     np.sin(angles).astype(np.float32)], attrs)


@generator
def MatMulFpQ4(rng):
    kind = int(rng.integers(0, 2))  # the runtime refuses the third
    block = 32
    k, n = int(rng.integers(1, 5)) * pick(rng, block, block // 2), int(rng.integers(1, 9))
    blocks = -(-k // block)
    out = bytearray()
    for _ in range(n * blocks):
        out += np.float32(rng.uniform(0.01, 0.2) * pick(rng, -1, 1)).tobytes()
        if kind == 1:
            out.append(int(rng.integers(0, 16)))
        out += rng.integers(0, 256, block // 2, dtype=np.uint8).tobytes()
    return Case("MatMulFpQ4", [f32(rng, *dims(rng, 1, 2), k), np.frombuffer(bytes(out), np.uint8).copy(), np.array([k, n])],
                {"blk_quant_type": kind}, constants=(1, 2), rtol=1e-3, atol=1e-3)


E4M3 = np.array([math.nan if v & 127 == 127 else (-1) ** (v >> 7) * ((v & 7) / 8 * 2.0**-6 if v >> 3 & 15 == 0 else
                 (1 + (v & 7) / 8) * 2.0 ** ((v >> 3 & 15) - 7)) for v in range(256)], np.float32)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@generator
def MatMulBlockQuantizedFp4Weight(rng):
    n, k, block = int(rng.integers(1, 6)), 2 * int(rng.integers(1, 20)), int(pick(rng, 4, 16))
    blocks = -(-k // block)

    def formula(a, b, s, whole, _, bias=None, block_size=16):
        codes = np.stack([b & 15, b >> 4], -1).reshape(n, k)
        w = E2M1[codes] * whole * np.repeat(E4M3[s], block_size, 1)[:, :k]
        y = a.astype(np.float32) @ w.T
        return (y if bias is None else y + bias).astype(np.float16)

    return Case("MatMulBlockQuantizedFp4Weight", [
        f32(rng, *dims(rng, 1, 2), k).astype(np.float16), rng.integers(0, 256, (n, k // 2)).astype(np.uint8),
        rng.integers(30, 70, (n, blocks)).astype(np.uint8), np.array(rng.uniform(0.2, 1), np.float32), None,
        some(rng, f32(rng, n).astype(np.float16))], {"block_size": block}, reference=formula, rtol=1e-2, atol=1e-2)


ORDERS = range(5)


def place(order, r, c, rows, columns):
    band, x = c // 32 * 32 * rows, c % 32
    return [c * rows + r, r * columns + c, band + r * 32 + x,
            band + (r // 8 * 8 + r % 2 * 4 + x // 8) * 32 + ((x % 8 >= 4) * 4 + r % 8 // 2) * 4 + x % 4,
            band + r // 32 * 1024 + ((r % 8 // 2 * 4 + r % 32 // 8) * 2 + r % 2) * 32 + x][order]


def to_order(x, order):
    flat = x.reshape(-1, *x.shape[-2:])
    out = np.empty_like(flat).reshape(len(flat), -1)
    for r in range(x.shape[-2]):
        for c in range(x.shape[-1]):
            out[:, place(order, r, c, *x.shape[-2:])] = flat[:, r, c]
    return out.reshape(x.shape)


def from_order(x, order):
    flat = x.reshape(-1, x.shape[-2] * x.shape[-1])
    out = np.empty((len(flat), *x.shape[-2:]), x.dtype)
    for r in range(x.shape[-2]):
        for c in range(x.shape[-1]):
            out[:, r, c] = flat[:, place(order, r, c, *x.shape[-2:])]
    return out.reshape(x.shape)


def coded(x):
    return np.clip(np.rint(x), -128, 127).astype(np.int8)


def tiles(rng, order):
    if order < 2:
        return int(rng.integers(1, 9)), int(rng.integers(1, 9))
    return int(rng.integers(1, 3)) * (32 if order == 4 else 8), 32 * int(rng.integers(1, 3))


@generator
def QuantizeWithOrder(rng):
    a, b = int(pick(rng, 0, 1)), int(rng.integers(0, 5))
    shape = (*([2] if rng.random() < 0.5 else []), *tiles(rng, b))
    def formula(x, s, order_input, order_output):
        return to_order(coded(from_order(x, order_input).astype(np.float64) / np.float64(s)), order_output)
    return Case("QuantizeWithOrder", [f32(rng, *shape, scale=3), np.array(rng.uniform(0.01, 0.1), np.float32)],
                {"order_input": a, "order_output": b}, reference=formula)


@generator
def DequantizeWithOrder(rng):
    a, b = int(pick(rng, 0, 1)), int(rng.integers(0, 5))
    shape = tiles(rng, b)
    def formula(x, s, order_input, order_output, to):
        return to_order(from_order(x, order_input).astype(np.float32) * s, order_output)
    return Case("DequantizeWithOrder", [codes_of(rng, np.int8, *shape), np.array(0.05, np.float32)],
                {"order_input": b, "order_output": a, "to": 1}, reference=formula)


@generator
def QOrderedMatMul(rng):
    tiled = rng.random() < 0.5
    order_a, order_b = (2, int(pick(rng, 3, 4))) if tiled else (1, 0)
    batch = int(rng.integers(1, 3))
    m, k, n = ((int(rng.integers(1, 9)), 32, 32) if tiled else (int(v) for v in rng.integers(1, 9, 3)))
    a, b, c = codes_of(rng, np.int8, batch, m, k), codes_of(rng, np.int8, k, n), some(rng, codes_of(rng, np.int8, 1, m, n), 0.4)
    sa, sb, sy, sc = (np.array(v, np.float32) for v in (0.02, 0.03, 0.1, 0.05))
    if rng.random() < 0.4:
        sb = short(rng.uniform(0.01, 0.05, n))
    bias = None if tiled else some(rng, f32(rng, n))
    stored = to_order(b.T.copy(), order_b).reshape(k, n) if tiled else to_order(b, order_b)

    def formula(a_, sa_, b_, sb_, sy_, bias_, c_, sc_, order_A, order_B, order_Y):
        y = a.astype(np.float64) @ b.astype(np.float64) * np.float64(sa) * sb.astype(np.float64)
        if bias is not None:
            y = y + bias.astype(np.float64)
        if c is not None:
            y = y + np.float64(sc) * c.astype(np.float64)
        return to_order(coded(y / np.float64(sy)), order_a)

    return Case("QOrderedMatMul", [to_order(a, order_a), sa, stored, sb, sy, bias, None if c is None else to_order(c, order_a),
                                   None if c is None else sc],
                {"order_A": order_a, "order_B": order_b, "order_Y": order_a}, reference=formula)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def longformer(x, w, b, mask, gw, gb, flags, heads, window, rounds=lambda v, k: v):
    batch, steps, width = x.shape
    own, far = rounds(x @ w + b, 0), rounds(x @ gw + gb, 1)
    y = np.empty_like(x)
    near = np.abs(np.arange(steps)[:, None] - np.arange(steps)) <= window
    out = []
    for part, seen in ((own, near[None] | (flags[:, None, :] != 0)), (far, np.ones((batch, steps, steps), bool))):
        q, k, v = (heads_of(p, heads) for p in np.split(part, 3, -1))
        s = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // heads) + mask[:, None, None, :]
        s = np.where(seen[:, None], s, -np.inf)
        out.append((softmax(s) @ v).transpose(0, 2, 1, 3).reshape(x.shape))
    return np.where(flags[..., None] != 0, out[1], out[0])


def longformer_inputs(rng):
    heads, window = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    batch, steps, width = int(rng.integers(1, 3)), 2 * window * int(rng.integers(1, 4)), heads * int(rng.integers(1, 5))
    mask = np.where(rng.random((batch, steps)) < 0.2, -10000, 0).astype(np.float32)
    mask[:, 0] = 0
    return heads, window, batch, steps, width, mask, (rng.random((batch, steps)) < 0.3).astype(np.int32)


@generator
def LongformerAttention(rng):
    heads, window, batch, steps, width, mask, flags = longformer_inputs(rng)

    def formula(*inputs, num_heads, window):
        return longformer(*(v.astype(np.float64) if v.dtype.kind == "f" else v for v in inputs), num_heads, window).astype(np.float32)

    return Case("LongformerAttention", [
        f32(rng, batch, steps, width), f32(rng, width, 3 * width), f32(rng, 3 * width), mask, f32(rng, width, 3 * width),
        f32(rng, 3 * width), flags], {"num_heads": heads, "window": window}, reference=formula, rtol=1e-3, atol=1e-4)


def steps_of(x, scale):
    return np.clip(np.rint(x / np.float64(scale)), -128, 127) * np.float64(scale)


@generator
def QOrderedLongformerAttention(rng):
    heads, window, batch, steps, width, mask, flags = longformer_inputs(rng)
    w, gw = codes_of(rng, np.int8, width, 3 * width), codes_of(rng, np.int8, width, 3 * width)
    s = [np.array(v, np.float32) for v in (0.02, 0.01, 0.04, 0.012, 0.05, 0.03)]
    x, b, gb = codes_of(rng, np.int8, batch, steps, width), f32(rng, 3 * width), f32(rng, 3 * width)

    def formula(*_, **__):
        return coded(longformer(x * np.float64(s[0]), w * np.float64(s[1]), b.astype(np.float64), mask.astype(np.float64),
                                gw * np.float64(s[3]), gb.astype(np.float64), flags, heads, window,
                                lambda v, k: steps_of(v, s[4] if k else s[2])) / np.float64(s[5]))

    return Case("QOrderedLongformerAttention", [
        x, s[0], to_order(w, 0), s[1], b, np.array(1, np.float32), s[2], mask.astype(np.float16), to_order(gw, 0), s[3], gb, s[4],
        flags, s[5]], {"num_heads": heads, "window": window, "order_input": 1, "order_weight": 0, "order_global_weight": 0,
                       "order_output": 1}, reference=formula, quantum=4)  # a step of one product shifts what follows


@generator
def QOrderedAttention(rng):
    heads, batch, steps = (int(v) for v in rng.integers(1, 4, 3))
    width, size = int(rng.integers(1, 6)), heads * int(rng.integers(1, 5))
    x = codes_of(rng, np.int8, batch, steps, width)
    w = [codes_of(rng, np.int8, width, size) for _ in range(3)]
    bias = [f32(rng, size) for _ in range(3)]
    s = {k: np.array(v, np.float32) for k, v in
         dict(x=0.02, q=0.02, k=0.03, v=0.025, w=0.01, score=0.03, share=0.008, y=0.03).items()}
    mask = some(rng, (rng.random((batch, steps)) < 0.8).astype(np.int32))
    if mask is not None:
        mask[:, 0] = 1

    def formula(*_, **__):
        parts = [steps_of((x * np.float64(s["x"])) @ (wi * np.float64(s["w"])) + bi, s[n]) for wi, bi, n in zip(w, bias, "qkv")]
        q, k, v = (heads_of(p, heads) for p in parts)
        score = steps_of(q @ k.transpose(0, 1, 3, 2) / math.sqrt(size // heads), s["score"])
        if mask is not None:
            score = score + np.where(mask[:, None, None, :] > 0, 0, -10000)
        y = steps_of(softmax(score), s["share"]) @ v
        return coded(y.transpose(0, 2, 1, 3).reshape(batch, steps, size) / np.float64(s["y"]))

    return Case("QOrderedAttention", [
        x, s["x"], s["q"], s["k"], s["v"], *(to_order(wi, 0) for wi in w), s["w"], s["w"], s["w"], *bias, s["score"], s["share"], s["y"],
        mask], {"num_heads": heads, "order_input": 1, "order_weight": 0, "order_output": 1}, reference=formula, quantum=2)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@generator
def GatedDeltaNet(rng):
    hq = int(rng.integers(1, 3))
    hv, dk, dv = hq * int(rng.integers(1, 3)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    ragged = rng.random() < 0.5
    lengths = rng.integers(1, 5, int(rng.integers(1, 4))) if ragged else np.full(int(rng.integers(1, 4)), int(rng.integers(1, 5)))
    batch, tokens = len(lengths), int(lengths.sum())
    rule = pick(rng, "linear", "gated", "delta", "gated_delta")
    each = rng.random() < 0.3
    qwen, sig, l2 = rng.random() < 0.4, rng.random() < 0.5, rng.random() < 0.5
    q, k, v = f32(rng, tokens, hq, dk), f32(rng, tokens, hq, dk), f32(rng, tokens, hv, dv)
    g = f32(rng, tokens, hv, dk) if each else f32(rng, tokens, hv)
    g = g if qwen else -np.abs(g)
    beta, state = short(rng.random((tokens, hv))), some(rng, f32(rng, batch, hv, dv, dk))
    if not ragged and state is None:
        state = f32(rng, batch, hv, dv, dk)
    a_log, dt = f32(rng, hv), f32(rng, hv)
    packed = state is not None and rng.random() < 0.3
    capacity = 0 if each else int(pick(rng, 0, 2))
    count = rng.integers(0, 4, batch).astype(np.int32) if capacity else None
    scale = float(pick(rng, 0.0, 0.5))

    def formula(*_, **__):
        n = lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) if l2 else x
        Q, K, V, G = n(q.astype(np.float64)), n(k.astype(np.float64)), v.astype(np.float64), g.astype(np.float64)
        if qwen:
            extra = (lambda x: x[:, None]) if each else (lambda x: x)
            G = -np.exp(extra(a_log.astype(np.float64))) * np.logaddexp(0, G + extra(dt.astype(np.float64)))
        B = sigmoid(beta.astype(np.float64)) if sig else beta.astype(np.float64)
        y, final = np.zeros((tokens, hv, dv)), np.zeros((batch, hv, dv, dk))
        notes = np.zeros((batch, capacity * (hv + hq * dk + hv * dv)))
        first = 0
        for b, length in enumerate(lengths):
            decays, keys, deltas = np.zeros((capacity, hv)), np.zeros((capacity, hq, dk)), np.zeros((capacity, hv, dv))
            kept = 0 if count is None else min(int(count[b]), capacity, int(length))
            for h in range(hv):
                S = np.zeros((dk, dv)) if state is None else state[b, h].astype(np.float64).T.copy()
                for t in range(length):
                    kt, qt = K[first + t, h * hq // hv], Q[first + t, h * hq // hv]
                    f = np.exp(G[first + t, h]) if rule.startswith("gated") else 1.0
                    S = S * (f[:, None] if each and rule.startswith("gated") else f)
                    d = V[first + t, h] - (S.T @ kt if rule.endswith("delta") else 0)
                    d = B[first + t, h] * d
                    S = S + np.outer(kt, d)
                    y[first + t, h] = (scale or 1 / math.sqrt(dk)) * (S.T @ qt)
                    if t < kept:
                        decays[t, h], keys[t, h * hq // hv], deltas[t, h] = f, kt, d
                final[b, h] = S.T
            if capacity:
                notes[b] = np.concatenate([decays.ravel(), keys.ravel(), deltas.ravel()])
            first += length
        out = [y.astype(np.float32), final.astype(np.float32)]
        return out + ([notes.astype(np.float32)] if capacity else [])

    inputs = [np.concatenate([z.reshape(tokens, -1) for z in (q, k, v)], 1), None, None] if packed else [q, k, v]
    return Case("GatedDeltaNet", [
        *inputs, np.cumsum([0, *lengths]).astype(np.int32) if ragged else None, g, beta, state, a_log if qwen else None,
        dt if qwen else None, count], {
            "update_rule": rule, "gate_activation": "qwen" if qwen else "none", "beta_activation": "sigmoid" if sig else "none",
            "qk_l2_norm": int(l2), "scale": scale, "state_update_capacity": capacity},
        outputs=3 if capacity else 2, reference=formula, rtol=1e-3, atol=1e-4)


@generator
def VarlenCausalConvWithState(rng):
    lengths = rng.integers(1, 6, int(rng.integers(1, 4)))
    batch, tokens, channels = len(lengths), int(lengths.sum()), int(rng.integers(1, 5))
    taps, dilation, capacity = int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(pick(rng, 0, 3))
    lead = (taps - 1) * dilation
    x, w, b, state = f32(rng, tokens, channels), f32(rng, channels, 1, taps), some(rng, f32(rng, channels)), f32(rng, batch, channels, lead)
    act = pick(rng, "none", "silu", "swish")
    count = rng.integers(0, 5, batch).astype(np.int32) if capacity else None

    def formula(*_, **__):
        y, final, notes = np.zeros((tokens, channels)), np.zeros_like(state), np.zeros((batch, capacity, channels), np.float32)
        first = 0
        for i, length in enumerate(lengths):
            own = x[first:first + length]
            line = np.concatenate([state[i].T, own]).astype(np.float64)
            for t in range(length):
                taken = line[t + lead - np.arange(taps)[::-1] * dilation]
                y[first + t] = (taken * w[:, 0].T).sum(0) + (0 if b is None else b)
            final[i] = line[len(line) - lead:].T
            if capacity:
                n = min(int(count[i]), capacity, int(length))
                notes[i, :n] = own[:n]
            first += length
        y = (y if act == "none" else y * sigmoid(y)).astype(np.float32)
        return [y, final] + ([notes] if capacity else [])

    return Case("VarlenCausalConvWithState", [x, w, np.cumsum([0, *lengths]).astype(np.int32), b, state, count],
                {"dilation": dilation, "activation": act, "state_update_capacity": capacity},
                outputs=3 if capacity else 2, reference=formula)


@generator
def QOrderedGelu(rng):
    def formula(x, s, y, **_):
        v = x.astype(np.float64) * np.float64(s)
        return coded(v * 0.5 * (1 + np.vectorize(math.erf)(v / math.sqrt(2))) / np.float64(y))
    return Case("QOrderedGelu", [codes_of(rng, np.int8, *dims(rng)), np.array(0.03, np.float32), np.array(0.025, np.float32)],
                reference=formula)


@generator
def QOrderedLayerNormalization(rng):
    order = int(pick(rng, 1, 1, 2))
    shape = (2, *((int(rng.integers(1, 6)), 32) if order == 2 else dims(rng, 2, 2)))
    def formula(x, s, g, b, y, epsilon, order_X, order_Y):
        v = from_order(x, order).astype(np.float64) * np.float64(s)
        z = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + np.float64(np.float32(epsilon)))
        z = z * g.astype(np.float64) + (0 if b is None else b.astype(np.float64))
        return to_order(coded(z / np.float64(y)), order)
    return Case("QOrderedLayerNormalization", [
        codes_of(rng, np.int8, *shape), np.array(0.03, np.float32), f32(rng, shape[-1]), some(rng, f32(rng, shape[-1])),
        np.array(0.02, np.float32)], {"epsilon": 1e-3, "order_X": order, "order_Y": order}, reference=formula)


@generator
def AttnLSTM(rng):
    steps, batch, width, hidden, memory, depth, size = (int(v) for v in rng.integers(1, 4, 7))
    direction = pick(rng, "forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    layer = int(rng.integers(1, 4)) if rng.random() < 0.5 else 0
    attrs = {"hidden_size": hidden, "direction": direction, "input_forget": int(pick(rng, 0, 0, 1))}
    # No clip: as in LSTM, the runtime does not bound what enters every activation.
    return Case("AttnLSTM", [
        f32(rng, steps, batch, width), f32(rng, n, 4 * hidden, width + (layer or depth)), f32(rng, n, 4 * hidden, hidden),
        some(rng, f32(rng, n, 8 * hidden)), some(rng, rng.integers(1, steps + 1, batch).astype(np.int32)),
        some(rng, f32(rng, n, batch, hidden)), some(rng, f32(rng, n, batch, hidden)), some(rng, f32(rng, n, 3 * hidden)),
        f32(rng, n, hidden, size), f32(rng, n, depth, size), f32(rng, n, size), f32(rng, batch, memory, depth),
        some(rng, rng.integers(1, memory + 1, batch).astype(np.int32)), f32(rng, n, depth + hidden, layer) if layer else None],
        attrs, outputs=3, rtol=1e-3, atol=1e-4)


@generator
def CausalConvWithState_window(rng):
    b, c, t, k, w = (int(v) for v in rng.integers(1, 5, 5))
    x, weight, past = f32(rng, b, c, t), f32(rng, c, 1, k), f32(rng, w, b, c, k - 1)

    def formula(*_, **__):
        line = np.concatenate([past[-1], x], 2)
        y = sum(line[:, :, i:i + t] * weight[:, 0, i][:, None] for i in range(k))
        state = np.zeros_like(past)
        for slot in range(w):
            seen = t - w + slot + 1
            if seen >= 1:
                state[slot] = line[:, :, seen:seen + k - 1]
        return [y.astype(np.float32), state]

    return Case("CausalConvWithState", [x, weight, None, past if k > 1 else None], {"state_window": w}, outputs=2, reference=formula)


@generator
def LinearAttention_window(rng):
    b, t, h, dk, dv, w = (int(v) for v in rng.integers(1, 4, 6))
    q, k, v, past, beta = f32(rng, b, t, h * dk), f32(rng, b, t, h * dk, scale=0.5), f32(rng, b, t, h * dv), f32(rng, w, b, h, dk, dv), short(rng.random((b, t, h)))

    def formula(*_, **__):
        s, y, states = past[-1].astype(np.float64), np.zeros((b, t, h, dv)), np.zeros_like(past)
        for i in range(t):
            Q, K, V = q[:, i].reshape(b, h, dk), k[:, i].reshape(b, h, dk), v[:, i].reshape(b, h, dv)
            s = s + beta[:, i, :, None, None] * K[..., None] * (V - np.einsum("bhij,bhi->bhj", s, K))[:, :, None]
            y[:, i] = np.einsum("bhij,bhi->bhj", s, Q) / math.sqrt(dk)
            if i - (t - w) >= 0:
                states[i - (t - w)] = s
        return [y.reshape(b, t, -1).astype(np.float32), states]

    return Case("LinearAttention", [q, k, v, past, None, beta], {"q_num_heads": h, "kv_num_heads": h, "update_rule": "delta", "state_window": w},
                outputs=2, reference=formula, rtol=1e-3, atol=1e-4)


@generator
def DynamicSparseAttention(rng):
    kv, group, size, batch, steps = (int(v) for v in rng.integers(1, 4, 5))
    size *= 2
    heads = kv * group
    local = rng.random() < 0.5
    totals = steps + rng.integers(0, 4, batch)
    past_length = int((totals - steps).max())
    total, capacity = int(totals.max()), past_length + int(rng.integers(0, 3))
    room = max(total, capacity)
    q, k, v = f32(rng, batch, steps, heads * size), f32(rng, batch, steps, kv * size), f32(rng, batch, steps, kv * size)
    pk, pv = f32(rng, batch, kv, capacity, size), f32(rng, batch, kv, capacity, size)
    more = int(rng.integers(1, 5))
    ak, av = f32(rng, batch, kv, more, size), f32(rng, batch, kv, more, size)
    width = int(rng.integers(1, 5))
    indices, counts = np.full((batch * steps, width), -1, np.int32), np.zeros(batch * steps, np.int32)
    for t in range(batch * steps):
        now = totals[t // steps] - steps + t % steps
        top = more if local else now + 1
        counts[t] = int(rng.integers(0, min(width, top) + 1))
        indices[t, :counts[t]] = rng.permutation(top)[:counts[t]]
    sink, smooth, packed, rotary, norm = some(rng, f32(rng, heads)), int(pick(rng, 0, 1)), rng.random() < 0.4, rng.random() < 0.5, rng.random() < 0.4
    angles = rng.uniform(0, 6, (total, size // 2))
    cos, sin = short(np.cos(angles)), short(np.sin(angles))
    qn, kn = f32(rng, size), f32(rng, size)
    window = int(rng.integers(1, 4))

    def formula(*_, **__):
        Q, K, V = (z.reshape(batch, steps, -1, size).transpose(0, 2, 1, 3).astype(np.float64) for z in (q, k, v))
        if norm:
            Q = Q / np.sqrt((Q * Q).mean(-1, keepdims=True) + 1e-6) * qn
            K = K / np.sqrt((K * K).mean(-1, keepdims=True) + 1e-6) * kn
        if rotary:
            at = (totals - steps)[:, None] + np.arange(steps)
            c, s = cos[at][:, None], sin[at][:, None]
            turn = lambda x: np.concatenate([x[..., :size // 2] * c - x[..., size // 2:] * s, x[..., :size // 2] * s + x[..., size // 2:] * c], -1)
            Q, K = turn(Q), turn(K)
        ck, cv = np.zeros((batch, kv, room, size)), np.zeros((batch, kv, room, size))
        ck[:, :, :capacity], cv[:, :, :capacity] = pk, pv
        for b in range(batch):
            ck[b, :, totals[b] - steps:totals[b]], cv[b, :, totals[b] - steps:totals[b]] = K[b], V[b]
        y = np.zeros((batch, steps, heads, size))
        for t in range(batch * steps):
            b, i = divmod(t, steps)
            now = totals[b] - steps + i
            own = indices[t, :counts[t]]
            for h in range(heads):
                g = h // group
                near = np.arange(max(0, now - window + 1), now + 1) if local else own
                keys, values = ck[b, g, near], cv[b, g, near]
                if local:
                    keys, values = np.concatenate([keys, ak[b, g, own]]), np.concatenate([values, av[b, g, own]])
                e = np.exp(keys @ Q[b, h, i] / math.sqrt(size))
                extra = np.exp(np.float64(sink[h])) if sink is not None else 1.0 if smooth else 0.0
                if e.sum() + extra > 0:
                    y[b, i, h] = (e / (e.sum() + extra)) @ values
        return [z.astype(np.float32) for z in (y.reshape(batch, steps, -1), ck, cv)]

    inputs = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    attrs = {"num_heads": heads, "kv_num_heads": kv, "smooth_softmax": smooth, "do_rotary": int(rotary)}
    if local:
        attrs |= {"attention_mode": "local_plus_selected", "selected_kv_source": "auxiliary", "local_window_size": window}
    return Case("DynamicSparseAttention", [
        *inputs, pk, pv, ak if local else None, av if local else None, indices, counts, (totals - 1).astype(np.int32),
        np.array([total], np.int32), cos if rotary else None, sin if rotary else None, None, qn if norm else None, kn if norm else None,
        sink], attrs, outputs=3, reference=formula, rtol=1e-3, atol=1e-4)
