#!/usr/bin/env python3
"""Writes the node cases that the installed `onnx` package holds and runs them.

    python3 tools/oracle_onnx_cases.py build/release/tombolo [FOLDER]

Needs `pip install onnx==1.23.2`: its 1,884 cases (opset 28) are computed when they are loaded, so there is
nothing to download. A folder that is complete is not written again. Exits as `tombolo conformance` does.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import warnings

DEFAULT = {"rtol": 1e-3, "atol": 1e-7}


def encode(value, kind, name):
    from onnx import TensorProto, numpy_helper

    if kind.HasField("map_type"):
        return numpy_helper.from_dict(value, name)
    if kind.HasField("sequence_type"):
        return numpy_helper.from_list(value, name)
    if kind.HasField("optional_type"):
        return numpy_helper.from_optional(value, name)
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(value, name)


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    tolerance = {"rtol": case.rtol, "atol": case.atol}
    if tolerance != DEFAULT:
        (folder / "case.json").write_text(json.dumps(tolerance))
    for number, values in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        ports = case.model.graph.input, case.model.graph.output
        for stem, port_list, given in zip(("input", "output"), ports, values):
            for k, value in enumerate(given):
                proto = encode(value, port_list[k].type, port_list[k].name)
                (data / f"{stem}_{k}.pb").write_bytes(proto.SerializeToString())


def write_all(root):
    import onnx
    from onnx.backend.test.loader import load_model_tests

    stamp = root / ".complete"
    if stamp.exists() and stamp.read_text() == onnx.__version__:
        return
    shutil.rmtree(root, ignore_errors=True)
    warnings.simplefilter("ignore")
    cases = load_model_tests(kind="node")
    for case in cases:
        write_case(case, root / "node" / case.name)
    stamp.write_text(onnx.__version__)
    print(f"onnx {onnx.__version__}: {len(cases)} node cases written")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else "build/onnx-cases")
    write_all(root)
    run = subprocess.run([sys.argv[1], "conformance", str(root / "node"), "--no-progress"])
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
