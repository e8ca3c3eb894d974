#!/usr/bin/env python3
"""TorchScript files that PyTorch makes (traced, scripted, frozen, quantised), with inputs and PyTorch's own outputs.

  oracle_torchscript.py make DIR [--only REGEX] [--groups control,vision]    writes DIR/NAME/{model.pt,io.npz,case.json}
  oracle_torchscript.py pack DIR DEST [--names FILE]                         copies the small ones that are committed

`tombolo conformance DIR` converts, runs and compares. Needs torch from 1.4 on (cases of torchscript/old.py alone before 2.0);
the groups vision and timm need these packages. Archives hold the paths of the source files: run a copy in a neutral folder
for what is committed.
"""
from __future__ import print_function
import argparse
import importlib
import io
import json
import os
import re
import shutil
import sys
import warnings
import zipfile

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torchscript.cases import CASES  # noqa: E402

warnings.filterwarnings("ignore")
NEW = int(torch.__version__.split(".")[0]) >= 2
GROUPS = ["control", "aliasing", "language", "containers", "tensors", "networks", "quantised"]
LARGE = ["vision", "timm_models"]
EPOCH = (1980, 1, 1, 0, 0, 0)


def flatten(value, out, numbers):
    if isinstance(value, torch.Tensor):
        out.append((value.dequantize() if value.is_quantized else value).detach().numpy().copy())
    elif isinstance(value, dict):
        for v in value.values():
            flatten(v, out, numbers)
    elif isinstance(value, (list, tuple)):
        for v in value:
            flatten(v, out, numbers)
    elif isinstance(value, (bool, int, float)) and numbers:
        out.append(np.array(value))


def state_of(program):
    return list(program.named_buffers())


def save_npz(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for key in sorted(arrays):
            data = io.BytesIO()
            np.save(data, arrays[key])
            z.writestr(zipfile.ZipInfo(key + ".npy", EPOCH), data.getvalue(), zipfile.ZIP_DEFLATED)


def compute(path, case, inputs, prefix, arrays):
    # A file does not say for which engine it is meant. qnnpack takes 8 bits where the file says 7 (reduce_range), and rounds halves
    # otherwise: whatever engine a case before this one chose, outputs are those of the default one on x86.
    if "fbgemm" in torch.backends.quantized.supported_engines:
        torch.backends.quantized.engine = "fbgemm"
    program = torch.jit.load(path)  # state is the file's
    before = dict(state_of(torch.jit.load(path)))
    ins, outs = [], []
    flatten(inputs, ins, True)
    with torch.no_grad():
        flatten(getattr(program, case.method)(*inputs), outs, case.numbers)
    for key, value in state_of(program):
        if not torch.equal(value, before[key]):
            flatten(value, outs, False)
    arrays.update({"in%s_%d" % (prefix, i): v for i, v in enumerate(ins)})
    arrays.update({"out%s_%d" % (prefix, i): v for i, v in enumerate(outs)})


def write(folder, case, suffix):
    torch.manual_seed(0)
    module, inputs = case.make()
    module.eval()
    if case.kind == "trace":
        with torch.no_grad():
            program = torch.jit.trace(module, inputs, **({"check_trace": False} if NEW else {}))
    elif case.kind == "traced-method":
        program = module
    else:
        program = torch.jit.script(module)
        if case.kind in ("freeze", "optimize"):
            program = torch.jit.freeze(program)
        if case.kind == "optimize":
            program = torch.jit.optimize_for_inference(program)
    given = [inputs] + [make() for make in case.more]
    for at in range(0, 1 if len(given) < 3 else len(given) - 1):
        place = os.path.join(folder, case.name + suffix + ("" if at == 0 else "-%d" % (at + 1)))
        if not os.path.isdir(place):
            os.makedirs(place)
        path = os.path.join(place, "model.pt")
        program.save(path) if at == 0 else shutil.copy(os.path.join(folder, case.name + suffix, "model.pt"), path)
        arrays = {}
        compute(path, case, given[0 if at == 0 else at], "", arrays)
        if at + 1 < len(given):
            compute(path, case, given[at + 1], "2", arrays)
        save_npz(os.path.join(place, "io.npz"), arrays)
        with open(os.path.join(place, "case.json"), "w") as f:
            f.write(json.dumps({"source": "tools/oracle_torchscript.py", "framework": "torch " + torch.__version__,
                                "kind": case.kind, "group": case.group, "rtol": case.rtol, "atol": case.atol}) + "\n")


def make(args):
    suffix = "" if NEW else "_v" + ".".join(torch.__version__.split(".")[:2]).replace(".", "")
    groups = args.groups.split(",") if args.groups else GROUPS
    for group in groups if NEW else []:
        importlib.import_module("torchscript." + group)
    importlib.import_module("torchscript.old")
    made = 0
    for case in CASES:
        if not re.search(args.only, case.name) or (NEW and args.groups and case.group not in groups):
            continue
        try:
            write(args.dir, case, suffix)
            made += 1
        except Exception as error:  # a case that this PyTorch cannot write
            shutil.rmtree(os.path.join(args.dir, case.name + suffix), ignore_errors=True)
            lines = [l for l in str(error).strip().splitlines() if l.strip()] or [repr(error)]
            print("not made: %s: %s" % (case.name, " | ".join(lines[:3] + lines[-1:])[:300]))
    print("%d cases" % made)


def pack(args):
    names = sorted(os.listdir(args.dir))
    if args.names:
        with open(args.names) as f:
            names = [line.strip() for line in f if line.strip()]
    size = 0
    for name in names:
        source, dest = os.path.join(args.dir, name), os.path.join(args.dest, name)
        content = open(os.path.join(source, "model.pt"), "rb").read()
        if os.path.expanduser("~").encode() in content or os.getcwd().encode() in content:
            sys.exit("%s holds the path of this folder: make it in a neutral one" % name)
        shutil.rmtree(dest, ignore_errors=True)
        shutil.copytree(source, dest)
        size += sum(os.path.getsize(os.path.join(dest, f)) for f in os.listdir(dest))
    print("%d cases, %.1f MB" % (len(names), size / 1e6))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "pack"])
    parser.add_argument("dir")
    parser.add_argument("dest", nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--groups", default="", help="of %s; %s hold whole networks" % (", ".join(GROUPS), ", ".join(LARGE)))
    parser.add_argument("--names", help="pack: a file that lists the cases")
    args = parser.parse_args()
    make(args) if args.verb == "make" else pack(args)


if __name__ == "__main__":
    main()
