#!/usr/bin/env python3
"""Writes a copy of ONNX Runtime's library that takes the processor for one without AVX-512.

    python bench/hold_avx2.py build/onnxruntime_avx2.so
    TOMBOLO_ISA=avx2 python bench/run.py build/release/tombolo build/bench --onnxruntime build/onnxruntime_avx2.so

It has no option for that. Before it picks kernels of AVX-512 its product library asks whether the system saves the
upper registers (bits 5 to 7 of XCR0), in four places; what it knows of the processor elsewhere it asks in one. Written for
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


def hold(library):
    """The library's bytes with the five places changed; ValueError where they are others."""
    gates = [m.end() for m in GATE.finditer(library) if STATE.search(library[m.end():m.end() + 16])]
    masks = [m.start() for m in re.finditer(re.escape(MASK), library)]
    if len(gates) != 4 or len(masks) != 1:
        raise ValueError(f"{len(gates)} and {len(masks)} places where 4 and 1 were expected: another version than 1.31.1?")
    held = bytearray(library)
    for end in gates:
        held[end - 2] = 0xEB  # je becomes jmp
    held[masks[0] + 3] = 0x06
    return bytes(held)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--onnxruntime", help="the library; else that of the installed Python package")
    args = parser.parse_args()
    library = args.onnxruntime
    if library is None:
        import onnxruntime
        library = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))[0]
    with open(library, "rb") as file:
        data = file.read()
    try:
        held = hold(data)
    except ValueError as error:
        sys.exit(f"{library}: {error}")
    with open(args.out + ".part", "wb") as file:
        file.write(held)
    os.replace(args.out + ".part", args.out)


if __name__ == "__main__":
    main()
