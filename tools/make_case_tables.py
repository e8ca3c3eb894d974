#!/usr/bin/env python3
"""Writes src/ops/text/case_tables.inc: how letters change case, from Python's own Unicode tables.

    python3.13 tools/make_case_tables.py > src/ops/text/case_tables.inc

Run it with the newest Python at hand; the Unicode version stands in the file.
"""

import sys
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def runs(pairs):
    """(code, distance) -> rows {first, last, step, distance}, step 1 or 2."""
    rows = []
    for code, distance in pairs:
        if rows and rows[-1][3] == distance:
            first, last, step, _ = rows[-1]
            gap = code - last
            if gap in (1, 2) and (first == last or gap == step):
                rows[-1] = (first, code, gap, distance)
                continue
        rows.append((code, code, 1, distance))
    return rows


def simple(change):
    return runs((c, ord(change(chr(c))) - c) for c in ALL
                if len(change(chr(c))) == 1 and change(chr(c)) != chr(c))


def long(change):
    return [(c, change(chr(c))) for c in ALL if len(change(chr(c))) > 1]


def ranges(codes):
    rows = []
    for code in codes:
        if rows and rows[-1][1] == code - 1:
            rows[-1] = (rows[-1][0], code)
        else:
            rows.append((code, code))
    return rows


def print_rows(name, kind, rows):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(row) + "},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


def utf8(text):
    return '"' + "".join(f"\\x{b:02X}" for b in text.encode()) + '"'


def main():
    final = lambda text: text.lower().endswith("\u03c2")
    cased = [c for c in ALL if final(chr(c) + "\u03a3")]
    ignorable = [c for c in ALL if final("A" + chr(c) + "\u03a3") and not final(chr(c) + "\u03a3")]
    print(f"// Made by tools/make_case_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    print("// clang-format off")
    for name, change in (("Upper", str.upper), ("Lower", str.lower)):
        print_rows(f"k{name}Runs", "CaseRun",
                   [(f"{a:#x}", f"{b:#x}", str(s), str(d)) for a, b, s, d in simple(change)])
        print_rows(f"k{name}Long", "LongCase",
                   [(f"{c:#x}", utf8(text)) for c, text in long(change)])
    for name, codes in (("kCased", cased), ("kCaseIgnorable", ignorable)):
        print_rows(name, "CodeRange", [(f"{a:#x}", f"{b:#x}") for a, b in ranges(codes)])
    print("// clang-format on")


if __name__ == "__main__":
    sys.exit(main())
