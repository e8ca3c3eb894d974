#!/usr/bin/env python3
"""Compares our rows of com.microsoft with the schemas inside the onnxruntime package.

    python3 tools/compare_microsoft.py build/release/tombolo

Needs `pip install onnx==1.23.2 onnxruntime==1.31.1`. Inputs, outputs, attributes (type, required, default),
allowed types, fewest inputs and outputs of every operator that we have are compared; operators that we lack
are listed. Exits with 1 if anything differs.
"""

import json
import subprocess
import sys

from compare_registry import normal, ours


def theirs():
    import onnx
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    records = {}
    for schema in state.get_all_operator_schema():
        if schema.domain != "com.microsoft":
            continue
        attributes = {}
        for a in schema.attributes.values():
            proto = onnx.AttributeProto()
            proto.ParseFromString(a._default_value)
            value = onnx.helper.get_attribute_value(proto) if a._default_value else None
            value = value.decode() if isinstance(value, bytes) else value
            kind = str(a.type).split(".")[-1]
            attributes[a.name] = (kind, a.required, normal(kind, value))
        records[schema.name] = {
            "inputs": [param(p) for p in schema.inputs],
            "outputs": [param(p) for p in schema.outputs],
            "attributes": attributes,
            "types": {t.type_param_str: sorted(t.allowed_type_strs) for t in schema.type_constraints},
            "min_inputs": schema.min_input,
            "min_outputs": schema.min_output,
        }
    return records


def param(p):
    return (p.name, p.typeStr, str(p.option).split(".")[-1].lower(), p.isHomogeneous)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, text=True, check=True).stdout
    document = json.loads(text)
    document["operators"] = [o for o in document["operators"] if o["domain"] == "com.microsoft"]
    mine = {key[1]: record for key, record in ours(json.dumps(document), skip=()).items()}
    package = theirs()
    differences = 0
    for name, record in sorted(mine.items()):
        if name not in package:
            print(f"{name}: not in the package")
            differences += 1
            continue
        for ports in ("inputs", "outputs"):
            record[ports] = [(n, t, o, h) for n, t, o, _least, h in record[ports]]
        for field, expected in package[name].items():
            if record[field] != expected:
                print(f"{name}.{field}: {record[field]}, the package has {expected}")
                differences += 1
    print("not here:", ", ".join(sorted(package.keys() - mine.keys())))
    print(f"{len(mine)} operators compared with onnxruntime: {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
