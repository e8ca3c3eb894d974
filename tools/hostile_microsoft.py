#!/usr/bin/env python3
"""Damaged cases of com.microsoft operators: odd attributes, shapes, indices, absent inputs. Nothing may crash or hang.

    python3 tools/hostile_microsoft.py build/release/tombolo [--cases 50] [--seed 1] [NAME...]

Cases come from the generators of oracle_microsoft.py (needs `pip install onnx==1.23.2 numpy`). Run it on a build with
sanitizers (`cmake --preset debug`) to see reads out of bounds. Exits with 1 if a run ends by a signal or takes too long.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import oracle_microsoft as oracle
import oracle_microsoft_cases as cases

ODD = [0, 1, -1, 2, 3, 7, -2, 100, 65536, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def other_shape(rng, array):
    kind = rng.integers(6)
    if kind == 0 and array.ndim:
        return array[:0] if array.shape[0] else array
    if kind == 1:
        return array.reshape(1, *array.shape)
    if kind == 2:
        return array.reshape(-1)
    if kind == 3 and array.size:
        return array.reshape(-1)[:1].reshape(())
    if kind == 4 and array.ndim:
        return np.concatenate([array, array], int(rng.integers(array.ndim)))
    return np.zeros([int(v) for v in rng.integers(0, 4, rng.integers(0, 5))]).astype(array.dtype)


def odd_values(rng, array):
    out = array.copy().reshape(-1)
    for i in range(out.size):
        if rng.random() < 0.4:
            if out.dtype.kind in "iu":
                info = np.iinfo(out.dtype)
                out[i] = np.clip(ODD[rng.integers(len(ODD))], info.min, info.max)
            elif out.dtype.kind == "f":
                out[i] = [np.nan, np.inf, -np.inf, 0, 1e30, -1e30][rng.integers(6)]
    return out.reshape(array.shape)


def damage(rng, case):
    for i, array in enumerate(case.inputs):
        if array is None or array.dtype.kind in "OU":
            continue
        chance = rng.random()
        if chance < 0.15:
            case.inputs[i] = other_shape(rng, array)
        elif chance < 0.35:
            case.inputs[i] = odd_values(rng, array)
        elif chance < 0.4 and i > 0:
            case.inputs[i] = None
    for name, value in list(case.attrs.items()):
        if rng.random() > 0.3 or isinstance(value, onnx.GraphProto):
            continue
        if isinstance(value, (int, np.integer)):
            case.attrs[name] = ODD[rng.integers(len(ODD))]
        elif isinstance(value, float):
            case.attrs[name] = float([np.nan, np.inf, -1, 0, 1e30][rng.integers(5)])
        elif isinstance(value, list) and value and isinstance(value[0], int):
            case.attrs[name] = [ODD[rng.integers(len(ODD))] for _ in range(int(rng.integers(1, 5)))]
        elif rng.random() < 0.5:
            del case.attrs[name]
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="hostile", help="folder for what crashed")
    args = parser.parse_intermixed_args()
    bad = 0
    for name, generator in cases.GENERATORS.items():
        if args.names and name not in args.names:
            continue
        rng = np.random.default_rng([args.seed, *name.encode()])
        ends = {}
        with tempfile.TemporaryDirectory() as folder:
            for k in range(args.cases):
                try:
                    case = damage(rng, generator(rng))
                    model = oracle.build(case)
                    path, inputs = os.path.join(folder, "m.onnx"), os.path.join(folder, "in.npz")
                    onnx.save(model, path)
                    np.savez(inputs, **{f"in_{i}": a if a.dtype.kind != "O" else a.astype(str)
                                        for i, a in enumerate(case.inputs) if a is not None and i not in case.constants})
                except Exception:  # no model can be made of it
                    continue
                for command in (["run", path, "--inputs", inputs, "--memory-limit", "512", "--time-limit", "10", "-q"],
                                ["infer", path, os.path.join(folder, "out.onnx"), "-q"]):
                    try:
                        code = subprocess.run([args.binary, *command], capture_output=True, timeout=60).returncode
                    except subprocess.TimeoutExpired:
                        code = "hang"
                    ends[code] = ends.get(code, 0) + 1
                    if code == "hang" or code not in range(7):
                        bad += 1
                        at = os.path.join(args.keep, f"{name}_{k}_{command[0]}")
                        os.makedirs(at, exist_ok=True)
                        shutil.copy(path, at)
                        shutil.copy(inputs, at)
        print(f"{name}: {', '.join(f'{n} x exit {c}' for c, n in sorted(ends.items(), key=str))}", flush=True)
    print(f"{bad} crashes")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
