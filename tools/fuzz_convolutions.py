"""Makers of random models of one convolution of floats (fuzz_kernels.py)."""
import numpy as np

from fuzz_case import Case, floats


def conv(r):
    c = Case()
    spatial = r.choice([1, 2, 2, 2, 3])
    kernel = [r.choice([1, 1, 2, 3, 3, 5, 7]) for _ in range(spatial)]
    if r.random() < 0.5:
        kernel = [kernel[0]] * spatial
    group = r.choice([1, 1, 1, 2, 3])
    ic, oc = r.choice([1, 3, 4, 16, 20, 33, 70]), r.choice([1, 2, 7, 16, 32, 65, 130])
    if r.random() < 0.25:
        group, ic, oc = r.choice([1, 6, 20]), 1, r.choice([1, 1, 2])
    image = [r.randint(1, 30 if spatial < 3 else 7) + k for k in kernel]
    c.add("x", floats(r, [r.choice([1, 1, 2, 5, 9]), ic * group] + image))
    c.add("w", floats(r, [oc * group, ic] + kernel, 1 / np.sqrt(ic * np.prod(kernel))), r.random() < 0.6)
    if r.random() < 0.6:
        c.add("b", floats(r, [oc * group]), True)
    stride = r.choice([1, 1, 2, 3])
    c.attributes = dict(group=group, strides=[stride] * spatial)
    if r.random() < 0.2:
        c.attributes["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        c.attributes["pads"] = [r.randint(0, k) for k in kernel + kernel]
        c.attributes["dilations"] = [r.choice([1, 1, 2]) for _ in kernel]
        if any((k - 1) * d + 1 > i for k, d, i in zip(kernel, c.attributes["dilations"], image)):
            c.attributes["dilations"] = [1] * spatial
    return "Conv", c


def conv_clipped(r):
    """Kernels that reach far beyond the image; images with depth."""
    c = Case()
    inputs, outputs, group = r.choice([64, 72, 100]), r.choice([16, 20, 40]), r.choice([1, 1, 2])
    if r.random() < 0.5:
        kernel, image = [r.choice([3, 3, 5]), 3], [r.randint(2, 24), r.randint(2, 24)]
        dilations = [r.randint(1, 12), r.randint(1, 12)]
    else:
        inputs, outputs = r.choice([16, 17, 32]), r.choice([16, 18, 33])
        kernel, image = [r.choice([1, 2, 3]), 3, 3], [r.randint(3, 6), r.randint(5, 20), r.randint(5, 20)]
        dilations = [1, 1, 1]
    pads = [(k - 1) * d // 2 + r.choice([0, 0, 1]) for k, d in zip(kernel, dilations)]
    strides = [r.choice([1, 1, 2]) if len(kernel) == 2 or kernel[0] == 1 and i == 0 else 1 for i in range(len(kernel))]
    c.add("x", floats(r, [r.choice([1, 2]), inputs * group] + image))
    c.add("w", floats(r, [outputs * group, inputs] + kernel, 0.05), True)
    if r.random() < 0.6:
        c.add("b", floats(r, [outputs * group]), True)
    c.attributes = dict(group=group, strides=strides, dilations=dilations, pads=pads + pads)
    return "Conv", c


def conv_transpose(r):
    c = Case()
    spatial = r.choice([1, 2, 2, 2, 2, 3])
    group = r.choice([1, 1, 1, 1, 2])
    inputs, outputs = r.choice([3, 16, 20, 64, 130]), r.choice([1, 5, 8, 16, 24, 33, 64])
    kernel = [r.randint(1, 5) for _ in range(spatial)]
    image = [r.choice([1, 1, r.randint(1, 5), r.randint(1, 20 if spatial < 3 else 6)]) for _ in range(spatial)]
    strides, dilations = [r.randint(1, 4) for _ in kernel], [r.choice([1, 1, 1, 2, 3]) for _ in kernel]
    full = [(i - 1) * s + (k - 1) * d + 1 for i, s, k, d in zip(image, strides, kernel, dilations)]
    c.add("x", floats(r, [r.choice([1, 1, 2]), inputs * group] + image))
    c.add("w", floats(r, [inputs * group, outputs] + kernel, 0.1), r.random() < 0.7)
    if r.random() < 0.6:
        c.add("b", floats(r, [outputs * group]), r.random() < 0.8)
    c.attributes = dict(group=group, strides=strides, dilations=dilations)
    way = r.random()
    if way < 0.6:
        c.attributes["output_padding"] = [r.randint(0, max(s, d) - 1) for s, d in zip(strides, dilations)]
        pads = [[r.randint(0, min(4, (f - 1) // 2)) for f in full] for _ in range(2)]
        c.attributes["pads"] = pads[0] + pads[1]
    elif way < 0.8:
        c.attributes["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        c.attributes["output_shape"] = [max(1, f + r.randint(-4, 3)) for f in full]
    return "ConvTranspose", c


def deform_conv(r):
    c = Case()
    group, share, part = r.choice([1, 2, 3]), r.choice([1, 2, 3]), r.choice([1, 2, 4, 9, 16, 20])
    if group * part % share != 0:
        share = 1
    outputs, dtype = group * r.choice([1, 3, 17, 40]), r.choice([np.float32, np.float32, np.float64])
    kernel, image = [r.choice([1, 2, 3]), r.choice([1, 3])], [r.randint(3, 24), r.randint(3, 24)]
    pads, stride = [r.randint(0, 2) for _ in range(4)], [r.choice([1, 2]) for _ in range(2)]
    out = [(i + pads[a] + pads[a + 2] - k) // s + 1 for a, (i, k, s) in enumerate(zip(image, kernel, stride))]
    n, taps = r.choice([1, 2]), kernel[0] * kernel[1]
    c.add("x", floats(r, [n, group * part] + image).astype(dtype))
    c.add("w", floats(r, [outputs, part] + kernel).astype(dtype), r.random() < 0.7)
    c.add("o", floats(r, [n, share * taps * 2] + out, r.choice([0.3, 3, 30])).astype(dtype))
    if r.random() < 0.5:
        c.add("b", floats(r, [outputs]).astype(dtype))
    else:
        c.skip()
    if r.random() < 0.5:
        c.add("m", floats(r, [n, share * taps] + out).astype(dtype))
    c.attributes = dict(group=group, offset_group=share, pads=pads, strides=stride, kernel_shape=kernel)
    return "DeformConv", c
