#!/usr/bin/env python3
"""Compares our ONNX text with upstream's, on every model below a folder.

For each model.onnx: does the official onnx.parser read what `tombolo print` writes, and is that
the same model; does `tombolo parse` read what the official onnx.printer writes, and is that what
the official parser makes of it.

    oracle_text.py [--tombolo build/release/tombolo] [--limit N] FOLDER
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnx.parser
import onnx.printer

DATA = ["float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"]


def normalise(message):
    """Drops what says nothing: fields set to their default, storage encodings of tensors."""
    if isinstance(message, onnx.TensorProto) and message.data_location != onnx.TensorProto.EXTERNAL:
        if message.data_type not in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED):
            raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(message)).raw_data
            for field in DATA:
                message.ClearField(field)
            message.raw_data = raw
    for field, value in message.ListFields():
        repeated = getattr(field, "is_repeated", None)
        if repeated is None:
            repeated = field.label == field.LABEL_REPEATED
        if field.type == field.TYPE_MESSAGE:
            for item in value if repeated else [value]:
                normalise(item)
        elif not repeated and value == field.default_value and field.name not in ("f", "i", "s", "raw_data"):
            message.ClearField(field.name)
    return message


def same(a, b):
    a, b = (normalise(onnx.ModelProto.FromString(m.SerializeToString())) for m in (a, b))
    return a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--tombolo", default="build/release/tombolo")
    arguments.add_argument("--limit", type=int, default=0, help="stop after this many models")
    options = arguments.parse_args()
    counts = collections.Counter()
    reasons = collections.defaultdict(list)

    def note(reason, path):
        reasons[reason].append(str(path.relative_to(options.folder)))

    def reason_of(error):
        lines = [line for line in str(error).splitlines() if line and not line.startswith("Error context")]
        return (lines[-1] if lines else "unknown")[:100]

    paths = sorted(options.folder.rglob("model.onnx"))
    if not paths:
        sys.exit(f"no model.onnx below {options.folder}")
    with tempfile.TemporaryDirectory() as folder:
        text_path = pathlib.Path(folder) / "model.txt"
        onnx_path = pathlib.Path(folder) / "model.onnx"
        for path in paths[: options.limit or None]:
            counts["models"] += 1
            model = onnx.load(path, load_external_data=False)

            ours = subprocess.run([options.tombolo, "print", path], capture_output=True, check=True).stdout
            try:
                parsed = onnx.parser.parse_model(ours.decode())
                counts["upstream reads ours"] += 1
                if same(model, parsed):
                    counts["upstream reads ours: the same model"] += 1
                else:
                    note("upstream reads ours, but to another model", path)
            except (onnx.parser.ParseError, UnicodeDecodeError, ValueError) as error:
                note("upstream does not read ours: " + reason_of(error), path)

            theirs = onnx.printer.to_text(model)
            text_path.write_text(theirs)
            done = subprocess.run([options.tombolo, "parse", text_path, onnx_path], capture_output=True)
            try:
                reference = onnx.parser.parse_model(theirs)
                counts["upstream reads its own"] += 1
            except onnx.parser.ParseError:
                reference = None
            if done.returncode != 0:
                kind = "upstream reads it" if reference is not None else "neither does upstream"
                message = done.stderr.decode().strip().splitlines()
                note(f"we do not read upstream's ({kind}): {(message or ['?'])[0][:100]}", path)
                continue
            counts["we read upstream's"] += 1
            if reference is not None:
                if same(reference, onnx.load(onnx_path, load_external_data=False)):
                    counts["we read upstream's: as upstream does"] += 1
                else:
                    note("we read upstream's otherwise than upstream", path)

    for name, count in counts.items():
        print(f"{count:6} {name}")
    for reason, where in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(where):6} {reason}")
        for path in where[:3]:
            print(f"         {path}")


if __name__ == "__main__":
    main()
