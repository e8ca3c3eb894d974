#!/usr/bin/env python3
"""Compares our copies of models with the originals, by the official onnx package.

usage: oracle_roundtrip.py TOMBOLO ORIGINALS [SCRATCH]

Converts every .onnx file under ORIGINALS with the TOMBOLO executable (`convert IN OUT`) to .onnx and
to .json, and checks that

  - the copy equals the original as a protobuf message, and byte for byte (counted);
  - google.protobuf.json_format reads our JSON as the same message, and its own JSON, converted by
    us, gives the same message;
  - onnx.checker accepts what it accepted before.

Needs the packages onnx and protobuf. Exit code 1 when anything differs.
"""
import pathlib
import subprocess
import sys
import tempfile

import onnx
from google.protobuf import json_format


def accepted(path):
    try:
        onnx.checker.check_model(str(path))
        return True
    except Exception:
        return False


def main():
    tombolo, originals = sys.argv[1], pathlib.Path(sys.argv[2])
    scratch = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    scratch.mkdir(parents=True, exist_ok=True)
    copy, text, theirs, back = (scratch / n for n in
                                ("copy.onnx", "copy.json", "theirs.json", "back.onnx"))
    convert = lambda a, b: subprocess.run([tombolo, "convert", a, b], check=True,
                                          stdout=subprocess.DEVNULL)
    count = identical = failures = 0
    for path in sorted(p for p in originals.rglob("*.onnx") if p.is_file()):
        count += 1
        try:
            want = onnx.load(path)
            convert(path, copy)
            convert(path, text)
            theirs.write_text(json_format.MessageToJson(want))
            convert(theirs, back)
            wrong = []
            if onnx.load(copy) != want:
                wrong.append("the copy")
            if json_format.Parse(text.read_text(), onnx.ModelProto()) != want:
                wrong.append("our JSON")
            if onnx.load(back) != want:
                wrong.append("their JSON read by us")
            if accepted(path) and not accepted(copy):
                wrong.append("the checker's opinion of the copy")
            identical += copy.read_bytes() == path.read_bytes()
        except Exception as error:  # a report, not a stop
            wrong = [repr(error)]
        if wrong:
            failures += 1
            print(f"{path}: differs: {', '.join(wrong)}")
    print(f"{count} models, {identical} byte for byte, {failures} with differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
