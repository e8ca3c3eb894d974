#!/usr/bin/env python3
"""Compares our operator registry with the one of the official onnx package.

    python3 tools/compare_registry.py build/release/tombolo
    python3 tools/compare_registry.py --json operators.json

Needs `pip install onnx==1.23.2`. Every (operator, version) pair is compared: inputs and outputs
(name, type, option, least arity, homogeneity, order), the fewest values of each, attributes (type,
required, default), allowed types as sets, deprecation, whether there is a function body.
Exits with 1 if anything differs that EXPLAINED does not name.
"""

import json
import struct
import subprocess
import sys

PACKAGE = "1.23.2"

# (domain, operator, version, field) -> why the official package is wrong, with evidence.
EXPLAINED = {}

# Domains that the package does not define: compare_microsoft.py holds the first against its source.
FOREIGN = {"com.microsoft", "ai.onnx.experimental", "ai.tombolo"}


def canonical_float(value):
    """The float32 that a default is stored as, so that 0.01 equals 0.009999999776."""
    return struct.unpack("f", struct.pack("f", value))[0]


def default_of(attribute):
    from onnx.helper import get_attribute_value

    if not attribute.default_value.name:
        return None
    value = get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value


def official():
    import onnx
    import onnx.defs

    if onnx.__version__ != PACKAGE:
        sys.exit(f"compare_registry: needs onnx {PACKAGE}, found {onnx.__version__}")
    records = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        records[schema.domain, schema.name, schema.since_version] = {
            "deprecated": schema.deprecated,
            "inputs": [param(p) for p in schema.inputs],
            "outputs": [param(p) for p in schema.outputs],
            "attributes": {
                a.name: (a.type.name, a.required, normal(a.type.name, default_of(a)))
                for a in schema.attributes.values()
            },
            "types": {
                t.type_param_str: sorted(t.allowed_type_strs) for t in schema.type_constraints
            },
            "min_inputs": schema.min_input,
            "min_outputs": schema.min_output,
            "function": schema.has_function or schema.has_context_dependent_function,
        }
    return records


def param(p):
    return (p.name, p.type_str, p.option.name.lower(), p.min_arity, p.is_homogeneous)


def normal(kind, value):
    return canonical_float(value) if kind == "FLOAT" and value is not None else value


def ours(text, skip=None):
    records = {}
    for r in json.loads(text)["operators"]:
        if r["domain"] in (FOREIGN if skip is None else skip):
            continue
        key = (r["domain"], r["name"], r["since_version"])
        if key in records:
            sys.exit(f"compare_registry: {key} is listed twice")
        records[key] = {
            "deprecated": r["deprecated"],
            "inputs": [tuple(p.values()) for p in r["inputs"]],
            "outputs": [tuple(p.values()) for p in r["outputs"]],
            "attributes": {
                a["name"]: (a["type"], a["required"], normal(a["type"], a["default"]))
                for a in r["attributes"]
            },
            "types": {name: sorted(types) for name, types in r["types"].items()},
            "min_inputs": r["min_inputs"],
            "min_outputs": r["min_outputs"],
            "function": r["function"],
        }
    return records


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--json":
        with open(sys.argv[2], encoding="utf-8") as file:
            text = file.read()
    elif len(sys.argv) == 2:
        run = subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"compare_registry: {sys.argv[1]} ops --json failed: {run.stderr.strip()}")
        text = run.stdout
    else:
        sys.exit(__doc__)

    theirs, mine = official(), ours(text)
    differences, explained = 0, 0
    for key in sorted(theirs.keys() | mine.keys()):
        name = f"{key[0] or 'ai.onnx'} {key[1]}-{key[2]}"
        if key not in mine or key not in theirs:
            print(f"{name}: only in {'the package' if key in theirs else 'our registry'}")
            differences += 1
            continue
        for field, expected in theirs[key].items():
            found = mine[key][field]
            if found == expected:
                continue
            if (*key, field) in EXPLAINED:
                explained += 1
                continue
            differences += 1
            print(f"{name}: {field}\n  package  {expected}\n  registry {found}")
    operators = len({key[:2] for key in mine})
    print(
        f"{operators} operators, {len(mine)} versions compared with onnx {PACKAGE}: "
        f"{differences} differences, {explained} explained"
    )
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
