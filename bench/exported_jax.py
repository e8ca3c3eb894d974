"""Exports networks of JAX (Flax's nnx) by jax2onnx, for `bench/exported.py measure`.

    python bench/exported_jax.py FOLDER [--only REGEX] [--jobs 2]

Needs jax, flax, jax2onnx, onnx and onnxruntime. The networks are of the kinds that Flax's own examples show, written as its users write them:
channels last, attention of the library and by einsum, norms of the library. Each twice: with a batch of one and of any size. Weights are random
with a seed. What cannot be exported, or not run by ONNX Runtime, is listed and left out; recurrences (nnx.RNN) the exporter does not take,
and of residual networks whose shortcuts have a step it writes additions that do not fit.
"""
import os
import sys

import numpy as np

import exported

FLAX = {}


def flax(*shape, dtype="float32"):
    """A network of nnx by its function (nnx, jax, rngs) -> x -> y; what it takes, without the batch."""
    def add(make):
        FLAX[make.__name__] = (make, [shape] if not shape or isinstance(shape[0], int) else list(shape), dtype)
        return make
    return add


def conv(nnx, rngs, cin, out, k=3, s=1, groups=1, padding="SAME", bias=False):
    return nnx.Conv(cin, out, (k, k), strides=(s, s), padding=padding, feature_group_count=groups, use_bias=bias, rngs=rngs)


@flax(784)
def mnist_mlp(nnx, jax, rngs):
    return nnx.Sequential(*[nnx.Linear(784, 512, rngs=rngs), nnx.relu, nnx.Dropout(0.2, deterministic=True, rngs=rngs), nnx.Linear(512, 512, rngs=rngs), nnx.relu, nnx.Linear(512, 10, rngs=rngs), nnx.log_softmax])


@flax(28, 28, 1)
def mnist_cnn(nnx, jax, rngs):
    return nnx.Sequential(*[conv(nnx, rngs, 1, 32, bias=True), nnx.relu, lambda x: nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2)), conv(nnx, rngs, 32, 64, bias=True), nnx.relu,
                          lambda x: nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2)), lambda x: x.reshape(x.shape[0], -1), nnx.Linear(3136, 256, rngs=rngs), nnx.relu, nnx.Linear(256, 10, rngs=rngs)])


def norm(nnx, rngs, width):
    return nnx.BatchNorm(width, use_running_average=True, rngs=rngs)


@flax(224, 224, 3)
def vgg11(nnx, jax, rngs):
    layers, cin = [], 3
    for width in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        if width == 0:
            layers.append(lambda x: nnx.max_pool(x, window_shape=(2, 2), strides=(2, 2)))
        else:
            layers += [conv(nnx, rngs, cin, width, bias=True), nnx.relu]
            cin = width
    return nnx.Sequential(*layers, *[lambda x: x.reshape(x.shape[0], -1), nnx.Linear(25088, 1024, rngs=rngs), nnx.relu, nnx.Linear(1024, 1000, rngs=rngs)])


@flax(224, 224, 3)
def mobile_net(nnx, jax, rngs):
    """Inverted residuals with squeeze-and-excitation and swish, as EfficientNet's."""
    def block(cin, out, s, grow):
        wide = cin * grow
        a, an, d, dn = conv(nnx, rngs, cin, wide, 1), norm(nnx, rngs, wide), conv(nnx, rngs, wide, wide, 3, s, wide), norm(nnx, rngs, wide)
        p, pn, q, e = conv(nnx, rngs, wide, out, 1), norm(nnx, rngs, out), nnx.Linear(wide, wide // 4, rngs=rngs), nnx.Linear(wide // 4, wide, rngs=rngs)

        def run(x):
            y = nnx.swish(dn(d(nnx.swish(an(a(x))))))
            y = y * nnx.sigmoid(e(nnx.swish(q(y.mean(axis=(1, 2), keepdims=True)))))
            y = pn(p(y))
            return x + y if s == 1 and cin == out else y
        return run
    layers, cin = [conv(nnx, rngs, 3, 32, 3, 2), norm(nnx, rngs, 32), nnx.swish], 32
    for out, s, grow in ((16, 1, 1), (24, 2, 6), (24, 1, 6), (40, 2, 6), (40, 1, 6), (80, 2, 6), (80, 1, 6), (112, 1, 6), (192, 2, 6), (192, 1, 6), (320, 1, 6)):
        layers.append(block(cin, out, s, grow))
        cin = out
    return nnx.Sequential(*layers, *[conv(nnx, rngs, 320, 1280, 1), norm(nnx, rngs, 1280), nnx.swish, lambda x: x.mean(axis=(1, 2)), nnx.Linear(1280, 1000, rngs=rngs)])


@flax(224, 224, 3)
def convnext(nnx, jax, rngs):
    def block(width):
        d, n, a, b = conv(nnx, rngs, width, width, 7, 1, width, bias=True), nnx.LayerNorm(width, epsilon=1e-6, rngs=rngs), nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)
        scale = nnx.Param(jax.numpy.full((width,), 0.1))
        return lambda x: x + scale[...] * b(nnx.gelu(a(n(d(x)))))
    layers, cin = [], 3
    for width, count, s in ((96, 2, 4), (192, 2, 2), (384, 3, 2), (768, 2, 2)):
        layers += ([nnx.LayerNorm(cin, rngs=rngs)] if cin != 3 else []) + [conv(nnx, rngs, cin, width, s, s, padding="VALID", bias=True)] + [block(width) for _ in range(count)]
        cin = width
    return nnx.Sequential(*layers, *[lambda x: x.mean(axis=(1, 2)), nnx.LayerNorm(768, rngs=rngs), nnx.Linear(768, 1000, rngs=rngs)])


@flax(128, 128, 3)
def unet(nnx, jax, rngs):
    def double(cin, out):
        a, b, n, m = conv(nnx, rngs, cin, out), conv(nnx, rngs, out, out), nnx.GroupNorm(out, num_groups=8, rngs=rngs), nnx.GroupNorm(out, num_groups=8, rngs=rngs)
        return lambda x: nnx.swish(m(b(nnx.swish(n(a(x))))))
    down = [double(3, 32), double(32, 64), double(64, 128), double(128, 256)]
    up = [(nnx.ConvTranspose(2 * w, w, (2, 2), strides=(2, 2), rngs=rngs), double(2 * w, w)) for w in (128, 64, 32)]
    last = conv(nnx, rngs, 32, 3, 1, bias=True)

    def run(x):
        kept = []
        for block in down[:-1]:
            x = block(x)
            kept.append(x)
            x = nnx.max_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = down[-1](x)
        for (t, block), k in zip(up, reversed(kept)):
            x = block(jax.numpy.concatenate([k, t(x)], axis=-1))
        return last(x)
    return run


@flax(100)
def dcgan_generator(nnx, jax, rngs):
    first = nnx.Linear(100, 4 * 4 * 256, rngs=rngs)
    ts = [nnx.ConvTranspose(a, b, (4, 4), strides=(2, 2), padding="SAME", use_bias=False, rngs=rngs) for a, b in ((256, 128), (128, 64), (64, 32), (32, 3))]
    ns = [norm(nnx, rngs, w) for w in (128, 64, 32)]

    def run(x):
        x = first(x).reshape(-1, 4, 4, 256)
        for t, n in zip(ts, ns):
            x = nnx.leaky_relu(n(t(x)), 0.2)
        return jax.numpy.tanh(ts[-1](x))
    return run


def block_of(nnx, rngs, width, heads, act, causal=False):
    n, m = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
    attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
    a, b = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

    def run(x):
        y = n(x)
        x = x + attention(y, mask=nnx.make_causal_mask(x[..., 0]) if causal else None)
        return x + b(act(a(m(x))))
    return run


@flax(224, 224, 3)
def vision_transformer(nnx, jax, rngs):
    patches = conv(nnx, rngs, 3, 384, 16, 16, padding="VALID", bias=True)
    place, token = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, 197, 384))), nnx.Param(jax.numpy.zeros((1, 1, 384)))
    blocks, n, head = [block_of(nnx, rngs, 384, 6, nnx.gelu) for _ in range(6)], nnx.LayerNorm(384, rngs=rngs), nnx.Linear(384, 1000, rngs=rngs)

    def run(x):
        x = patches(x)
        x = x.reshape(x.shape[0], -1, 384)
        x = jax.numpy.concatenate([jax.numpy.broadcast_to(token[...], (x.shape[0], 1, 384)), x], axis=1) + place[...]
        for block in blocks:
            x = block(x)
        return head(n(x)[:, 0])
    return run


@flax(224, 224, 3)
def mlp_mixer(nnx, jax, rngs):
    patches = conv(nnx, rngs, 3, 256, 16, 16, padding="VALID", bias=True)
    blocks = [[nnx.LayerNorm(256, rngs=rngs), nnx.Linear(196, 384, rngs=rngs), nnx.Linear(384, 196, rngs=rngs), nnx.LayerNorm(256, rngs=rngs), nnx.Linear(256, 1024, rngs=rngs), nnx.Linear(1024, 256, rngs=rngs)] for _ in range(6)]
    head = nnx.Linear(256, 1000, rngs=rngs)

    def run(x):
        x = patches(x)
        x = x.reshape(x.shape[0], 196, 256)
        for n, a, b, m, c, d in blocks:
            x = x + b(nnx.gelu(a(n(x).swapaxes(1, 2)))).swapaxes(1, 2)
            x = x + d(nnx.gelu(c(m(x))))
        return head(x.mean(axis=1))
    return run


@flax(128, dtype="int32")
def text_encoder(nnx, jax, rngs):
    words, places = nnx.Embed(8000, 256, rngs=rngs), nnx.Embed(128, 256, rngs=rngs)
    blocks = [block_of(nnx, rngs, 256, 8, nnx.gelu) for _ in range(4)]

    def run(x):
        y = words(x) + places(jax.numpy.arange(128))
        for block in blocks:
            y = block(y)
        return y
    return run


@flax(64, dtype="int32")
def small_gpt(nnx, jax, rngs):
    words, places = nnx.Embed(4000, 256, rngs=rngs), nnx.Embed(64, 256, rngs=rngs)
    blocks, n, head = [block_of(nnx, rngs, 256, 8, nnx.gelu, causal=True) for _ in range(4)], nnx.LayerNorm(256, rngs=rngs), nnx.Linear(256, 4000, use_bias=False, rngs=rngs)

    def run(x):
        y = words(x) + places(jax.numpy.arange(64))[None]
        for block in blocks:
            y = block(y)
        return head(n(y))
    return run


@flax(64, dtype="int32")
def small_llama(nnx, jax, rngs):
    """RMSNorm, rotation, four heads for two of keys, SwiGLU; attention by einsum."""
    jnp = jax.numpy
    words, head = nnx.Embed(4000, 256, rngs=rngs), nnx.Linear(256, 4000, use_bias=False, rngs=rngs)
    angles = jnp.arange(64)[:, None] / 10000 ** (jnp.arange(0, 64, 2) / 64)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    def linear(a, b):
        return nnx.Linear(a, b, use_bias=False, rngs=rngs)
    blocks = [(nnx.RMSNorm(256, rngs=rngs), linear(256, 256), linear(256, 128), linear(256, 128), linear(256, 256), nnx.RMSNorm(256, rngs=rngs), linear(256, 688), linear(256, 688), linear(688, 256)) for _ in range(4)]

    def turn(x):
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def run(x):
        y = words(x)
        for n, q, k, v, o, m, gate, up, down in blocks:
            z = n(y)
            qs, ks, vs = turn(q(z).reshape(-1, 64, 4, 64)), turn(k(z).reshape(-1, 64, 2, 64)), v(z).reshape(-1, 64, 2, 64)
            ks, vs = jnp.repeat(ks, 2, axis=2), jnp.repeat(vs, 2, axis=2)
            scores = jnp.einsum("bqhd,bkhd->bhqk", qs, ks) / 8
            scores = jnp.where(jnp.tril(jnp.ones((64, 64), bool)), scores, jnp.finfo(jnp.float32).min)
            y = y + o(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), vs).reshape(-1, 64, 256))
            z = m(y)
            y = y + down(nnx.silu(gate(z)) * up(z))
        return head(y)
    return run


@flax((48, 256), (77, 256))
def cross_attention(nnx, jax, rngs):
    attention, n, m = nnx.MultiHeadAttention(8, 256, decode=False, rngs=rngs), nnx.LayerNorm(256, rngs=rngs), nnx.LayerNorm(256, rngs=rngs)
    a, b = nnx.Linear(256, 1024, rngs=rngs), nnx.Linear(1024, 256, rngs=rngs)

    def run(x, other):
        x = x + attention(n(x), other, other)
        return x + b(nnx.gelu(a(m(x)), approximate=False))
    return run


@flax(2000, 1)
def wave_net(nnx, jax, rngs):
    first = nnx.Conv(1, 32, (2,), padding="CAUSAL", rngs=rngs)
    blocks = [(nnx.Conv(32, 64, (2,), kernel_dilation=(1 << i,), padding="CAUSAL", rngs=rngs), nnx.Conv(32, 32, (1,), rngs=rngs), nnx.Conv(32, 64, (1,), rngs=rngs)) for i in range(6)]
    last = nnx.Conv(64, 256, (1,), rngs=rngs)

    def run(x):
        x, left = first(x), 0
        for d, r, s in blocks:
            a, b = jax.numpy.split(d(x), 2, axis=-1)
            z = jax.numpy.tanh(a) * nnx.sigmoid(b)
            x, left = x + r(z), left + s(z)
        return last(nnx.relu(left))
    return run


@flax(784)
def variational_autoencoder(nnx, jax, rngs):
    a, mean, spread, b, c = nnx.Linear(784, 400, rngs=rngs), nnx.Linear(400, 20, rngs=rngs), nnx.Linear(400, 20, rngs=rngs), nnx.Linear(20, 400, rngs=rngs), nnx.Linear(400, 784, rngs=rngs)

    def run(x):
        h = nnx.relu(a(x))
        z = mean(h) + jax.numpy.exp(0.5 * spread(h)) * 0.5
        return nnx.sigmoid(c(nnx.relu(b(z))))
    return run


@flax(64, 64, 3)
def diffusion_block(nnx, jax, rngs):
    """Norms of groups, attention over pixels, a nearest neighbour twice as large."""
    a, n, b, m = conv(nnx, rngs, 3, 64, bias=True), nnx.GroupNorm(64, num_groups=16, rngs=rngs), conv(nnx, rngs, 64, 128, 3, 2, bias=True), nnx.GroupNorm(128, num_groups=16, rngs=rngs)
    attention, c, d = nnx.MultiHeadAttention(4, 128, decode=False, rngs=rngs), conv(nnx, rngs, 128, 64, bias=True), conv(nnx, rngs, 64, 3, bias=True)

    def run(x):
        y = b(nnx.swish(n(a(x))))
        z = m(y).reshape(y.shape[0], -1, 128)
        y = y + attention(z).reshape(y.shape)
        y = jax.image.resize(y, (y.shape[0], 64, 64, 128), "nearest")
        return x + d(nnx.swish(c(y)))
    return run


def export(name, batch, folder):
    import jax
    import jax2onnx
    import onnxruntime
    from flax import nnx
    make, shapes, dtype = FLAX[name]
    rngs = nnx.Rngs(0)
    run = make(nnx, jax, rngs)
    kind = getattr(jax.numpy, dtype)
    path = os.path.join(folder, "model.onnx")
    if batch == "one":
        takes = [jax.ShapeDtypeStruct((1, *s), kind) for s in shapes]
    elif dtype == "float32":
        takes = [("B", *s) for s in shapes]
    else:
        takes = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(", ".join(["B", *map(str, s)])), kind) for s in shapes]
    jax2onnx.to_onnx(run, takes, model_name=name, return_mode="file", output_path=path)
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {i.name: rng.integers(0, 100, (1, *s)).astype(np.int32) if dtype == "int32" else rng.random((1, *s), np.float32) for i, s in zip(session.get_inputs(), shapes)}
    session.run(None, feed)
    np.savez(os.path.join(folder, "inputs.npz"), **feed)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "one":
        return export(*sys.argv[2:5])
    args = exported.exporter_parser(__doc__).parse_args()
    exported.make_each(args.folder, {f"flax.{n}.{b}": [os.path.abspath(__file__), "one", n, b] for n in FLAX for b in ("one", "any")}, args.only, args.jobs)


if __name__ == "__main__":
    main()
