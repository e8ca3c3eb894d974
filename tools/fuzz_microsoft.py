"""Random one-node models of com.microsoft, for fuzz_kernels.py."""
import numpy as np

from fuzz_case import Case, floats, numbers, shape


def matmul_nbits(r):
    c = Case()
    c.domain = "com.microsoft"
    m, n, k, block = r.choice([1, 2, 5, 9, 30]), r.choice([1, 7, 16, 40, 70]), r.choice([8, 32, 50, 128, 300]), r.choice([16, 32, 64])
    if r.random() < 0.2:
        m, n, k = r.randint(50, 200), r.randint(100, 300), r.randint(100, 700)
    blocks = (k + block - 1) // block
    rng = np.random.default_rng(r.getrandbits(32))
    bits = r.choice([2, 4, 4, 8])
    c.add("a", floats(r, [2, m, k]))
    if r.random() < 0.3:
        k = r.randint(1, 5) * block
        c.inputs["a"] = floats(r, [2, m, k])
        c.add("b", rng.integers(0, 256, [n * k // 2], dtype=np.uint8), True)
        c.add("s", floats(r, [n * k // block], 0.1), True)
        c.attributes = dict(N=n, K=k, block_size=block, quant_type=r.choice([0, 1]))
        return "MatMulBnb4", c
    c.add("b", rng.integers(0, 256, [n, blocks, block * bits // 8], dtype=np.uint8), True)
    c.add("s", floats(r, [n * blocks], 0.1), True)
    if r.random() < 0.5:
        c.add("z", rng.integers(0, 256, [n * -(-blocks * bits // 8)], dtype=np.uint8), True)
        if r.random() < 0.5:
            c.skip()
            c.add("bias", floats(r, [n]))
    elif r.random() < 0.3:
        c.skip()
        order = np.arange(k) // block
        rng.shuffle(order)
        c.add("g", order.astype(np.int32), True)
    c.attributes = dict(N=n, K=k, block_size=block, bits=bits)
    return "MatMulNBits", c


def qlinear_where(r):
    c = Case()
    c.domain = "com.microsoft"
    full = shape(r, r.choice([1, 2, 3, 4]), 40)
    dims = [[d if r.random() < 0.8 else 1 for d in full][r.choice([0, 0, 0, len(full) - 1]):] for _ in range(3)]
    rng, dtype = np.random.default_rng(r.getrandbits(32)), r.choice([np.uint8, np.int8])
    own = r.random() < 0.3

    def linear(name):
        c.add(name + "s", np.float32(0.02 if own else r.uniform(0.01, 0.05)))
        c.add(name + "z", np.array(7 if own else r.randint(0, 100), dtype))

    c.add("c", rng.random(dims[0]) < 0.5)
    for i, name in ((1, "x"), (2, "y")):
        c.add(name, numbers(r, dims[i], dtype))
        linear(name)
    linear("z")
    return "QLinearWhere", c


def gather_block_quantized(r):
    c = Case()
    c.domain = "com.microsoft"
    bits, block = r.choice([2, 4, 4, 8]), r.choice([16, 32, 64, 20])
    dims = shape(r, r.choice([2, 2, 3]), 12)
    dims[-1] = 8 * r.randint(1, 20)
    gather, quantize = r.randrange(len(dims)), r.choice([len(dims) - 1, len(dims) - 1, r.randrange(len(dims))])
    rng = np.random.default_rng(r.getrandbits(32))
    scales = list(dims)
    scales[quantize] = -(-dims[quantize] // block)
    c.add("w", rng.integers(0, 255, dims[:-1] + [dims[-1] * bits // 8], endpoint=True).astype(np.uint8), r.random() < 0.5)
    c.add("i", rng.integers(-dims[gather], dims[gather], shape(r, r.choice([0, 1, 2]), 7)).astype(r.choice([np.int32, np.int64])))
    c.add("s", floats(r, scales).astype(r.choice([np.float32, np.float32, np.float16])))
    if r.random() < 0.5:
        each = 8 // bits
        c.add("z", rng.integers(0, 255, scales[:-1] + [-(-scales[-1] // each)], endpoint=True).astype(np.uint8))
    c.attributes = dict(bits=bits, block_size=block, gather_axis=gather, quantize_axis=quantize)
    return "GatherBlockQuantized", c


def matrices(r):
    """Inverse, Rfft and Irfft of com.microsoft."""
    c = Case()
    c.domain = "com.microsoft"
    dtype, op = r.choice([np.float32, np.float32, np.float64]), r.choice(["Inverse", "Rfft", "Irfft"])
    dims = shape(r, r.choice([0, 1, 2]), 5)
    n = r.choice([1, 2, 3, 4, 7, 8, 16, 33, r.randint(1, 200)])
    if op == "Inverse":
        n = min(n, 40)
        c.add("x", (floats(r, dims + [n, n]) + 3 * np.eye(n, dtype=np.float32)[::-1]).astype(dtype))
    else:
        c.add("x", floats(r, dims + ([n] if op == "Rfft" else [n + 1, 2])).astype(dtype))
        c.attributes = dict(signal_ndim=1, onesided=1, normalized=0)
    return op, c


def group_norm(r):
    """GroupNorm and SkipGroupNorm of com.microsoft."""
    c = Case()
    c.domain = "com.microsoft"
    groups, last = r.choice([1, 2, 4]), r.choice([1, 1, 0])
    channels, image = groups * r.randint(1, 20), shape(r, r.choice([1, 2, 2]), 24)
    dims = [r.randint(1, 3)] + (image + [channels] if last else [channels] + image)
    dtype = r.choice([np.float32, np.float32, np.float16])
    c.add("x", (floats(r, dims) + 2).astype(dtype))
    c.add("g", floats(r, [channels]))
    c.add("b", floats(r, [channels]))
    c.attributes = dict(groups=groups, channels_last=last, activation=r.choice([0, 1]), epsilon=1e-3)
    if r.random() < 0.5:
        return "GroupNorm", c
    c.add("s", floats(r, dims if r.random() < 0.5 else [dims[0], channels]).astype(dtype))
    if r.random() < 0.5:
        c.add("a", floats(r, [channels]).astype(dtype))
    c.outputs = r.choice([1, 2])
    return "SkipGroupNorm", c


def experts(r):
    c = Case()
    c.domain = "com.microsoft"
    rows, count, hidden, inner = r.choice([1, 1, 3, 20]), r.randint(1, 6), 8 * r.randint(1, 12), 8 * r.randint(1, 12)
    rng = np.random.default_rng(r.getrandbits(32))
    act = r.choice(["relu", "gelu", "silu", "identity", "swiglu", "swiglu"])
    c.attributes = dict(k=r.randint(1, count), activation_type=act, normalize_routing_weights=r.choice([0, 1]))
    if act == "swiglu":
        c.attributes.update(swiglu_fusion=r.choice([0, 1, 2]), activation_alpha=1.702, activation_beta=1.0, swiglu_limit=r.choice([0.0, 0.5]))
    high = 2 * inner if c.attributes.get("swiglu_fusion", 0) else inner
    bits, block = r.choice([2, 4, 4, 8, 8, 32]), r.choice([0, 16, 32, 64])
    narrow = np.float16 if bits == 32 and r.random() < 0.3 else None
    c.add("x", floats(r, [rows, hidden]).astype(narrow or np.float32))
    c.add("r", floats(r, [rows, count]).astype(narrow or np.float32))
    layers = [(high, hidden), (hidden, inner)] + ([(inner, hidden)] if high == inner and r.random() < 0.3 else [])
    for i, (out, into) in enumerate(layers):
        if bits == 32:
            c.add(f"w{i}", floats(r, [count, out, into], 0.1).astype(np.float32 if narrow is None else narrow), r.random() < 0.5)
        else:
            c.add(f"w{i}", rng.integers(0, 256, [count, out, into * bits // 8]).astype(np.uint8), True)
            c.add(f"s{i}", floats(r, [count, out, -(-into // block)] if block else [count, out], 0.01), True)
        c.add(f"b{i}", floats(r, [count, out]).astype(narrow or np.float32)) if r.random() < 0.6 else c.skip()
    if bits == 32:
        return "MoE", c
    c.attributes.update(expert_weight_bits=bits, **(dict(block_size=block) if block else {}))
    zeros = [r.random() < 0.4 for _ in layers]
    if any(zeros):
        for _ in range(3 * (3 - len(layers))):
            c.skip()
        for i, (out, into) in enumerate(layers):
            blocks = -(-into // block) if block else 1
            if zeros[i]:
                c.add(f"z{i}", rng.integers(0, 256, [count, out, -(-blocks * bits // 8)] if block else [count, -(-out * bits // 8)]).astype(np.uint8), True)
            else:
                c.skip()
    while c.names[-1] == "":
        c.names.pop()
    return "QMoE", c


def decoding(r):
    """GroupQueryAttention and DecoderMaskedMultiHeadAttention with their caches."""
    c = Case()
    c.domain = "com.microsoft"
    batch, size, total = r.randint(1, 3), 8 * r.randint(1, 9), r.randint(1, 40)
    rng = np.random.default_rng(r.getrandbits(32))
    if r.random() < 0.4:
        heads, beams, room, before = r.randint(1, 4), r.randint(1, 3), total + r.randint(1, 9), r.randint(0, total)
        batch *= beams
        for name in "qkv":
            c.add(name, floats(r, [batch, 1, heads * size]))
        c.add("m", rng.integers(0, 2, [batch, before + 1]).astype(np.int32)) if r.random() < 0.4 else c.skip()
        c.add("x", floats(r, [r.choice([1, batch]), r.choice([1, heads]), 1, before + 1])) if r.random() < 0.4 else c.skip()
        for name in "ab":
            c.add(name, floats(r, [batch, heads, room, size]))
        c.add("p", np.array([before], np.int32))
        if r.random() < 0.6:
            c.add("w", np.array([beams], np.int32))
            c.add("s", rng.integers(0, beams, [batch // beams, beams, room]).astype(np.int32))
        c.attributes, c.outputs = dict(num_heads=heads, past_present_share_buffer=1), 3
        return "DecoderMaskedMultiHeadAttention", c
    kv_heads, steps = r.randint(1, 3), r.choice([1, 1, r.randint(1, 30)])
    heads = kv_heads * r.randint(1, 4)
    windowed = r.random() < 0.3
    past = windowed or steps == 1 and r.random() < 0.7
    total = steps + r.randint(0, 40) if windowed else total if past else steps
    window = r.randint(1, 12) if windowed else r.choice([-1, -1, r.randint(1, 20)])
    room = window + r.randint(0, 9) if windowed else total + 3
    if r.random() < 0.5:
        c.add("q", floats(r, [batch, steps, (heads + 2 * kv_heads) * size]))
        c.names += ["", ""]
    else:
        c.add("q", floats(r, [batch, steps, heads * size]))
        c.add("k", floats(r, [batch, steps, kv_heads * size]))
        c.add("v", floats(r, [batch, steps, kv_heads * size]))
    coded = r.random() < 0.3
    for name in "ab":
        cache = [batch, kv_heads, room, size]
        c.add(name, numbers(r, cache, np.int8) if coded else floats(r, cache)) if past else c.skip()
    lengths = rng.integers(max(1, steps), total + 1, batch) - 1
    c.add("l", lengths.astype(np.int32))
    c.add("t", np.array(total, np.int32))
    half = r.randint(1, size // 2)
    rotary = r.random() < 0.5
    for name in ("cos", "sin"):
        c.add(name, floats(r, [80, half])) if rotary else c.skip()
    c.add("p", rng.integers(0, 64, [batch, steps])) if rotary and r.random() < 0.4 else c.skip()
    c.add("x", floats(r, [r.choice([1, batch]), r.choice([1, heads]), steps, total])) if r.random() < 0.3 else c.skip()
    c.add("h", floats(r, [heads])) if r.random() < 0.3 else c.skip()
    channel = r.random() < 0.5
    for name in ("ks", "vs"):
        c.add(name, np.abs(floats(r, [kv_heads * size if channel else 1])) * 0.03 + np.float32(0.005)) if coded else c.skip()
    while c.names[-1] == "":
        c.names.pop()
    c.attributes = dict(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(rotary), rotary_interleaved=r.randint(0, 1), local_window_size=window, sliding_window_cache=int(windowed),
                        smooth_softmax=r.choice([0, 0, 1]), softcap=r.choice([0.0, 0.0, 3.0]))
    if coded:
        kind = "PER_CHANNEL" if channel else "PER_TENSOR"
        c.attributes |= dict(k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=8)
    # Behind the steps that stay a cache of a window may hold anything.
    c.outputs = 1 if windowed else r.choice([1, 3, 3])
    return "GroupQueryAttention", c


def codes_of_microsoft(r):
    """Sums, products, pools and softmax of codes; words from characters."""
    c = Case()
    c.domain = "com.microsoft"
    rng, dtype = np.random.default_rng(r.getrandbits(32)), r.choice([np.uint8, np.int8])
    op = r.choice(["QLinearAdd", "QLinearMul", "NhwcMaxPool", "QLinearGlobalAveragePool", "QLinearConcat", "QLinearSoftmax", "WordConvEmbedding"])

    def linear(name):
        c.add(name + "s", np.float32(r.uniform(0.01, 0.05)))
        c.add(name + "z", np.array(r.randint(0, 100), dtype))

    if op in ("QLinearAdd", "QLinearMul"):
        full = shape(r, r.choice([1, 2, 3, 4]), 70)
        for name in "xy":
            c.add(name, numbers(r, [d if r.random() < 0.7 else 1 for d in full], dtype))
            linear(name)
        linear("o")
    elif op == "NhwcMaxPool":
        c.add("x", numbers(r, [r.randint(1, 2), r.randint(3, 12), r.randint(3, 12), r.choice([1, 5, 64, 130])], dtype))
        c.attributes = dict(kernel_shape=[r.randint(1, 3), r.randint(1, 3)], strides=[r.randint(1, 3), r.randint(1, 3)], dilations=[1, 1])
    elif op == "QLinearGlobalAveragePool":
        c.add("x", numbers(r, [r.randint(1, 2), r.choice([1, 5, 40, 90]), r.randint(1, 30), r.choice([1, 5, 33, 80])], dtype))
        linear("x")
        linear("o")
        c.attributes = dict(channels_last=r.randint(0, 1))
    elif op == "QLinearConcat":
        dims, axis = shape(r, 3, 90), r.randint(0, 2)
        linear("o")
        for name in "xyz":
            c.add(name, numbers(r, [r.randint(1, 60) if i == axis else d for i, d in enumerate(dims)], dtype))
            linear(name)
        c.attributes = dict(axis=axis)
    elif op == "QLinearSoftmax":
        c.add("x", numbers(r, shape(r, 3, 90), dtype))
        linear("x")
        c.add("os", np.float32(1 / 256))
        c.add("oz", np.array(0 if dtype == np.uint8 else -128, dtype))
        c.attributes = dict(axis=r.randint(-3, 2), opset=r.choice([9, 13]))
    else:
        words, longest, filters, size = r.randint(1, 20), r.randint(1, 12), r.choice([1, 7, 40]), r.randint(1, 20)
        text = rng.integers(1, 30, [words, longest]).astype(np.int32)
        for row in text:
            row[r.randint(0, longest):] = 0
        c.add("i", text)
        c.add("w", floats(r, [filters, 1, r.randint(1, longest), size]), True)
        c.add("b", floats(r, [filters]))
        c.add("c", floats(r, [30, size]))
    return op, c


def small_microsoft(r):
    """CDist, FusedGemm, CausalConvWithState and LinearAttention."""
    c = Case()
    c.domain = "com.microsoft"
    op = r.choice(["CDist", "FusedGemm", "CausalConvWithState", "LinearAttention"])
    if op == "CDist":
        width, dtype = r.choice([r.randint(1, 70), r.randint(48, 300)]), r.choice([np.float32, np.float64])
        a, b = floats(r, [r.randint(1, 80), width]).astype(dtype), floats(r, [r.randint(1, 80), width]).astype(dtype)
        some = r.randint(0, min(len(a), len(b)))  # neighbours
        b[:some] = a[:some] * dtype(1 + r.choice([0, 1e-3]))
        c.add("a", a)
        c.add("b", b, r.random() < 0.5)
        c.attributes = dict(metric=r.choice(["euclidean", "sqeuclidean"]))
    elif op == "FusedGemm":
        m, n, k = (r.randint(1, 40) for _ in range(3))
        c.add("a", floats(r, [m, k]))
        c.add("b", floats(r, [n, k]), r.random() < 0.5)
        c.add("c", floats(r, r.choice([[n], [m, n], [1, n]])))
        c.attributes = dict(transB=1, alpha=0.5, activation=r.choice(["Relu", "Tanh", "Elu", "LeakyRelu", "Sigmoid"]), activation_alpha=0.3)
    elif op == "CausalConvWithState":
        n, channels, length, taps = r.randint(1, 2), r.randint(1, 30), r.choice([1, 2, r.randint(1, 90)]), r.randint(1, 5)
        c.add("x", floats(r, [n, channels, length]))
        c.add("w", floats(r, [channels, 1, taps]))
        c.add("b", floats(r, [channels])) if r.random() < 0.5 else c.skip()
        if r.random() < 0.6 and taps > 1:
            c.add("s", floats(r, [n, channels, taps - 1]))
        c.attributes, c.outputs = dict(activation=r.choice(["none", "silu"])), 2
    else:
        n, steps, states, keys, values = r.randint(1, 2), r.choice([1, 2, r.randint(1, 80)]), r.randint(1, 3), r.randint(1, 20), r.randint(1, 70)
        heads, rule = r.choice([states, 2 * states, 1]), r.choice(["linear", "gated", "delta", "gated_delta"])
        c.add("q", floats(r, [n, steps, heads * keys], 0.3))
        c.add("k", floats(r, [n, steps, states * keys], 0.3))
        c.add("v", floats(r, [n, steps, states * values]))
        c.add("s", floats(r, [n, states, keys, values])) if r.random() < 0.6 else c.skip()
        c.add("g", -np.abs(floats(r, [n, steps, r.choice([1, keys]) * states]))) if "gated" in rule else c.skip()
        c.add("b", np.abs(floats(r, [n, steps, r.choice([1, states])], 0.3))) if "delta" in rule else c.skip()
        c.attributes, c.outputs = dict(q_num_heads=heads, kv_num_heads=states, update_rule=rule), 2
    while c.names[-1] == "":
        c.names.pop()
    return op, c
