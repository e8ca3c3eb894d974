#!/usr/bin/env python3
"""Writes a copy of ONNX Runtime's library that takes the processor for one without AMX (avx512), AVX-512 (avx2) or
AVX-VNNI besides (avx2-base).

    python bench/hold.py avx2 build/onnxruntime_avx2.so
    TOMBOLO_ISA=avx2 python bench/run.py build/release/tombolo build/bench --onnxruntime build/onnxruntime_avx2.so
    python bench/hold.py avx512 build/onnxruntime_avx512.so
    TOMBOLO_ISA=avx512-dot python bench/run.py build/release/tombolo build/bench --onnxruntime build/onnxruntime_avx512.so

It has no option for that. Before it picks kernels of AVX-512 its product library asks whether the system saves the
upper registers (bits 5 to 7 of XCR0), in four places; what it knows of the processor elsewhere it asks in one. Whether there are
tiles of bytes (bits 24 and 25 of CPUID 7) it asks in three, and AVX-VNNI (bit 4 of EAX of CPUID 7.1) in four. Written for
version 1.31.1 on x86-64 Linux; of a library with other places nothing is written.
"""
import argparse
import glob
import os
import re
import sys

# test reg, 0x10000 (the AVX-512F bit of CPUID 7); je short: followed closely by test al, 0xe0.
GATE = re.compile(rb"(?:\xf7[\xc0-\xc7]|\x41\xf7[\xc0-\xc7])\x00\x00\x01\x00\x74.", re.S)
STATE = re.compile(rb"\xa8\xe0|\xf6\xc0\xe0")
# and r9d, 0xe6: XCR0 with those bits; 0x06 leaves AVX alone.
MASK = b"\x41\x81\xe1\xe6\x00\x00\x00"
# not reg; and reg, 0x3000000; jne far: what follows is for tiles.
TILES = re.compile(rb"(?:\xf7[\xd0-\xd7]\x81[\xe0-\xe7]|\x41\xf7[\xd0-\xd7]\x41\x81[\xe0-\xe7])\x00\x00\x00\x03\x0f\x85", re.S)
# cpuid; test al, 0x10; je short: what follows is for AVX-VNNI.
DOTS = re.compile(rb"\x0f\xa2\xa8\x10\x74.", re.S)


def onnxruntime_library(given=None):
    """The library that was given, or the installed package's."""
    if given:
        return given
    import onnxruntime
    return glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))[0]


def hold(library, isa):
    """The library's bytes with those places changed; ValueError where they are others."""
    tiles = [m.end() for m in TILES.finditer(library)]
    gates = [m.end() for m in GATE.finditer(library) if STATE.search(library[m.end():m.end() + 16])]
    masks = [m.start() for m in re.finditer(re.escape(MASK), library)]
    dots = [m.end() for m in DOTS.finditer(library)]
    found = len(gates), len(masks), len(tiles), len(dots)
    if found != (4, 1, 3, 4):
        raise ValueError(f"{found} places where (4, 1, 3, 4) were expected: another version than 1.31.1?")
    held = bytearray(library)
    for end in tiles:
        held[end - 2:end] = b"\x90\xe9"  # jne becomes jmp
    if isa == "avx512":
        return bytes(held)
    for end in gates:
        held[end - 2] = 0xEB  # je becomes jmp
    held[masks[0] + 3] = 0x06
    for end in dots if isa == "avx2-base" else []:
        held[end - 2] = 0xEB
    return bytes(held)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("isa", choices=["avx2", "avx2-base", "avx512"])
    parser.add_argument("out")
    parser.add_argument("--onnxruntime", help="the library; else that of the installed Python package")
    args = parser.parse_args()
    library = onnxruntime_library(args.onnxruntime)
    with open(library, "rb") as file:
        data = file.read()
    try:
        held = hold(data, args.isa)
    except ValueError as error:
        sys.exit(f"{library}: {error}")
    with open(args.out + ".part", "wb") as file:
        file.write(held)
    os.replace(args.out + ".part", args.out)


if __name__ == "__main__":
    main()
