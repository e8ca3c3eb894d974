#!/ usr / bin / env python3
"""Writes the expected values of float_formats_test.cpp. Needs numpy, ml_dtypes and onnx >= 1.23.

    python3 tests/unit/base/make_float_tables.py

Decoding: ml_dtypes / numpy. Encoding: an exact search for the nearest value here, asserted equal
to ml_dtypes (saturate=0) and to onnx.numpy_helper.saturate_cast (saturate=1) wherever these
round once. Where upstream and the Cast specification disagree the specification is followed;
each such place carries a comment.

Files, in float_tables/:
  decode.txt    format, then the float32 bits of every code (formats of <= 8 bits)
  encode.txt    format, f (float32) or d (float64), input bits, code with saturate 0, with 1
  e8m0.txt      round mode, saturate, f or d, input bits, code
  blocks16.txt  f16 and bf16, per 256 codes: FNV-1a of the decoded bits, and of the codes that
                the four inputs around each code's upper midpoint give, from float32 and float64
"""

import bisect
import math
import pathlib
import struct

import ml_dtypes
import numpy as np
import onnx.numpy_helper

OUT = pathlib.Path(__file__).parent / "float_tables"
SMALL = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
WIDE = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
CODES = {"float6e2m3": 64, "float6e3m2": 64, "float4e2m1": 16}


def f32_bits(values):
    """Bits of a float32 array, every NaN made the quiet NaN of its sign."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    return np.where(np.isnan(values), bits & 0x80000000 | 0x7FC00000, bits)


def decode(dtype, count):
    codes = np.arange(count, dtype=np.uint8 if count <= 256 else np.uint16)
    return codes.view(dtype).astype(np.float32)


def fnv(values, width):
    digest = 0xCBF29CE484222325
    for byte in np.asarray(values).astype(f"<u{width}").tobytes():
        digest = (digest ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return digest


class Nearest:
    """Exact encoding: all finite magnitudes in order, and what lies beyond the last."""

    def __init__(self, name, dtype, count):
        values = decode(dtype, count).astype(np.float64)
        self.fnuz = name.endswith("fnuz")
        self.sign = count // 2
        self.magnitudes = [v for v in values[: self.sign] if math.isfinite(v)]
        self.top = len(self.magnitudes) - 1
        last, before = self.magnitudes[-1], self.magnitudes[-2]
        self.limit = last + (last - before) / 2  # midpoint to the value that would come next
        self.has_inf = any(math.isinf(v) for v in values)
        self.has_nan = any(math.isnan(v) for v in values)
        quiet = np.array([np.nan, -np.nan], np.float32).astype(dtype)
        self.nan = [int(c) for c in quiet.view(np.uint8 if count <= 256 else np.uint16)]

    def __call__(self, x, saturate):
        negative = math.copysign(1, x) < 0
        if math.isnan(x):
            return self.nan[negative]
        sign = self.sign if negative else 0
        x = abs(x)
#A tie at the limit goes up : the largest code is odd, or its overflow neighbour is even.
        over = x > self.limit or x == self.limit and self.top % 2 == 1
        if over:
            if saturate or not self.has_nan:
                return sign + self.top
            return sign + self.top + 1 if self.has_inf else self.nan[negative]
        high = min(bisect.bisect_left(self.magnitudes, x), self.top)
        low = max(high - 1, 0)
        below, above = x - self.magnitudes[low], self.magnitudes[high] - x  # exact: neighbours
        if self.magnitudes[high] <= x:
            code = high
        elif below != above:
            code = low if below < above else high
        else:
            code = low if low % 2 == 0 else high
        return 0 if code == 0 and self.fnuz else sign + code


def neighbourhood(values, kind):
    """Every value, every midpoint, and one ulp of `kind` to each side; edges; both signs."""
    finite = sorted({abs(float(v)) for v in values if math.isfinite(v)})
    points = set(finite)
    limit = finite[-1] + (finite[-1] - finite[-2]) / 2
    for middle in [(a + b) / 2 for a, b in zip(finite, finite[1:])] + [limit]:
        if kind(middle) != middle:
            continue  # below the smallest float32
        points |= {middle, float(np.nextafter(kind(middle), kind(0)))}
        points.add(float(np.nextafter(kind(middle), kind(np.inf))))
    points |= {float(np.finfo(kind).max), float(np.finfo(kind).tiny), math.inf, 1e6, 0.1}
    points.add(float(np.finfo(kind).smallest_subnormal))
    result = np.array(sorted(points) + [np.nan], kind)
    return np.concatenate([result, -result])


def bits_of(x, kind):
    width = 8 if kind is np.float32 else 16
    return format(int(np.array(x, kind).view(f"u{width // 2}")), f"0{width}x")


def encode_rows(name, dtype):
    count = CODES.get(name, 256)
    nearest = Nearest(name, dtype, count)
    for kind, letter in ((np.float32, "f"), (np.float64, "d")):
        inputs = neighbourhood(decode(dtype, count), kind)
        plain = [nearest(float(x), False) for x in inputs]
        clipped = [nearest(float(x), True) for x in inputs]
        cast = inputs.astype(dtype).view(np.uint8)
        clip = onnx.numpy_helper.saturate_cast(inputs, np.dtype(dtype)).view(np.uint8)
        for x, a, b, their_a, their_b in zip(inputs, plain, clipped, cast, clip):
#ml_dtypes rounds float64 to float32 first : its answers count where that is exact.
            if np.isnan(x) or np.float32(x) == x:
                assert (a, b) == (their_a, their_b), (name, letter, x, a, b, their_a, their_b)
        for x, a, b in zip(inputs, plain, clipped):
            yield f"{name} {letter} {bits_of(x, kind)} {a:02x} {b:02x}\n"


def e8m0(x, saturate, mode):
    """The table of Cast-24: exact rounding to a power of two, then the range [-127, 127]."""
    if math.isnan(x) or x < 0:  # below zero: unspecified, NaN here
        return 255
    if x == 0:
        exponent = -(10**6)
    elif math.isinf(x):
        exponent = 10**6
    else:
        mantissa, exponent = math.frexp(x)  # x = mantissa * 2^exponent, 0.5 <= mantissa < 1
        exponent -= 1
        up = {"up": mantissa > 0.5, "down": False, "nearest": mantissa >= 0.75}[mode]
        exponent += up
    if exponent > 127:
        return 254 if saturate else 255
    if exponent < -127:
        return 0 if saturate else 255
    return exponent + 127


def e8m0_rows():
    for kind, letter in ((np.float32, "f"), (np.float64, "d")):
        points = {0.0, math.inf, 0.1, 3.4e38, -1.0, -math.inf, float(np.finfo(kind).max)}
        for exponent in [-149, -140, -129, -128, -127, -126, -125, -1, 0, 1, 126, 127]:
            for step in (1.0, 1.25, 1.5, 1.75):
                x = kind(math.ldexp(step, exponent))
                points |= {float(x), float(np.nextafter(x, kind(0)))}
                points.add(float(np.nextafter(x, kind(np.inf))))
        inputs = np.array(sorted(points) + [np.nan], kind)
        for mode in ("up", "down", "nearest"):
            for saturate in (0, 1):
                codes = [e8m0(float(x), saturate, mode) for x in inputs]
                upstream = onnx.numpy_helper.to_float8e8m0(inputs, bool(saturate), mode)
                for x, ours, theirs in zip(inputs, codes, upstream.view(np.uint8)):
#Upstream departs from the specification's table outside the normal floats
#(infinity, zero, subnormals, negatives) and rounds float64 to float32 first.
                    usual = 2.0**-126 <= x < math.inf and letter == "f"
                    assert not usual or ours == theirs, (mode, saturate, x, ours, theirs)
                    yield f"{mode} {saturate} {letter} {bits_of(x, kind)} {ours:02x}\n"


def block_rows(name, dtype):
    nearest = Nearest(name, dtype, 65536)
    values = decode(dtype, 65536)
    bits = f32_bits(values)
    wide = values.astype(np.float64)
    for block in range(256):
        row = [f"{name} {block:02x} {fnv(bits[block * 256 : block * 256 + 256], 4):016x}"]
        for kind in (np.float32, np.float64):
            inputs = []
            for code in range(block * 256, block * 256 + 256):
                a, b = wide[code], wide[code + 1] if code + 1 < 65536 else math.nan
                if not math.isfinite(a) or not math.isfinite(b) or a == b == 0:
                    continue
                middle = kind((a + b) / 2)
                inputs += [kind(a), np.nextafter(middle, kind(a)), middle]
                inputs.append(np.nextafter(middle, kind(b)))
            codes = [nearest(float(x), False) for x in inputs]
            if kind is np.float32 or name == "float16":  # numpy's own f64 -> f16 rounds once
                assert list(np.array(inputs, kind).astype(dtype).view(np.uint16)) == codes
            row.append(f"{fnv(codes, 2):016x}")
        yield " ".join(row) + "\n"


def main():
    OUT.mkdir(exist_ok=True)
    np.seterr(all="ignore")
    (OUT / "decode.txt").write_text(
        "".join(
            name + "".join(f" {b:08x}" for b in f32_bits(decode(t, CODES.get(name, 256)))) + "\n"
            for name, t in SMALL.items()
        )
    )
    small = [(n, t) for n, t in SMALL.items() if n != "float8e8m0"]
    rows = [row for name, dtype in small for row in encode_rows(name, dtype)]
    (OUT / "encode.txt").write_text("".join(rows))
    (OUT / "e8m0.txt").write_text("".join(e8m0_rows()))
    rows = [row for name, dtype in WIDE.items() for row in block_rows(name, dtype)]
    (OUT / "blocks16.txt").write_text("".join(rows))


if __name__ == "__main__":
    main()
