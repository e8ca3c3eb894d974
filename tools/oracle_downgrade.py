#!/usr/bin/env python3
"""Takes test cases down to older operator sets with `tombolo opset` and runs what comes out.

    tools/oracle_downgrade.py build/release/tombolo CASES [--lowest N] [--only NAME] [--ort] [--list]

CASES holds test cases (model.onnx, test_data_set_*) somewhere below. Each is written in every operator
set below its own down to N, or to where it is refused. What comes out must be accepted by onnx.checker and give
the outputs of the case: in Tombolo (`tombolo conformance`) and, with --ort, in ONNX Runtime. Where ONNX Runtime
does not run or disagrees on the model as it was written (from opset 26 on: at 26, where it can be said), nothing is
asked of it. Needs the packages onnx, numpy and, for --ort, onnxruntime.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import onnx

from oracle_upgrade import load, same

NEWEST_OF_RUNTIME = 26


def run_in_runtime(path, case):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = onnx.load(path)
    weights = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights] or list(model.graph.input)
    for folder in sorted(case.glob("test_data_set_*")):
        files = sorted(folder.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        ports = inputs if len(files) <= len(inputs) else list(model.graph.input)
        feeds = {p.name: load(f, p.type) for p, f in zip(ports, files)}
        outputs = session.run(None, {k: v for k, v in feeds.items() if v is not None})
        wanted = sorted(folder.glob("output_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        for i, file in enumerate(wanted):
            if not same(outputs[i], load(file, model.graph.output[i].type)):
                return f"output {i} differs"
    return None


def attempt(path, case):
    try:
        return run_in_runtime(path, case)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--lowest", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--ort", action="store_true")
    parser.add_argument("--list", action="store_true", help="name every refusal")
    args = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="tombolo-down-"))
    counts, refusals, origin = collections.Counter(), collections.Counter(), {}
    reached = collections.Counter()
    for path in sorted(args.cases.rglob("model.onnx")):
        case = path.parent
        if args.only not in str(case):
            continue
        model = onnx.load(path, load_external_data=False)
        own = max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=0)
        baseline = scratch / f"{case.parent.name}.{case.name}.as-written"
        baseline.mkdir()  # what does not pass untouched, under another name, proves nothing
        for file in case.iterdir():
            os.symlink(file.resolve(), baseline / file.name)
        for version in range(own - 1, args.lowest - 1, -1):
            folder = scratch / f"{case.parent.name}.{case.name}.{version}"
            folder.mkdir()
            out = folder / "model.onnx"
            done = subprocess.run([args.tombolo, "opset", str(path), str(version), str(out)],
                                  capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                shutil.rmtree(folder)
                if done.returncode == 4:
                    counts["refused"] += 1
                    reason = done.stderr.strip().splitlines()[0]
                    refusals[reason.split(": ", 2)[-1][:150]] += 1
                    if args.list:
                        print(f"refused  {case.name} at {version}: {reason}")
                else:
                    counts["failed"] += 1
                    print(f"FAILED   {case.name} at {version}: {done.stderr.strip()[:300]}")
                break
            counts["written"] += 1
            reached[version] += 1
            for data in case.glob("test_data_set_*"):
                os.symlink(data.resolve(), folder / data.name)
            origin[folder.name] = (case, path, version)
            try:
                onnx.checker.check_model(str(out), full_check=False)
                counts["accepted by onnx.checker"] += 1
            except Exception as error:
                counts["NOT accepted"] += 1
                print(f"CHECKER  {case.name} at {version}: {str(error).splitlines()[0][:250]}")
    done = subprocess.run([args.tombolo, "conformance", str(scratch), "--json"],
                          capture_output=True, text=True)
    results = json.loads(done.stdout)["cases"]
    sound = {one["name"].rsplit("/", 1)[-1].rsplit(".", 1)[0] for one in results
             if one["name"].endswith(".as-written") and one["status"] == "passed"}
    for one in results:
        name = one["name"].rsplit("/", 1)[-1]
        if name.endswith(".as-written") or name.rsplit(".", 1)[0] not in sound:
            continue
        counts["tombolo " + one["status"]] += 1
        if one["status"] not in ("passed", "skipped", "excluded"):
            print(f"TOMBOLO  {one['name']}: {one['reason'][:250]}")
    if args.ort:
        trusted = {}
        for name, (case, path, version) in sorted(origin.items(), key=lambda x: (x[1][1], -x[1][2])):
            if version > NEWEST_OF_RUNTIME:
                continue
            if path not in trusted:  # as written, or as far down as the runtime reads
                model = onnx.load(path, load_external_data=False)
                own = max((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), default=0)
                first = path if own <= NEWEST_OF_RUNTIME else scratch / name / "model.onnx"
                trusted[path] = attempt(first, case) is None
                counts["runtime: cases that it runs"] += trusted[path]
            if not trusted[path]:
                continue
            why = attempt(scratch / name / "model.onnx", case)
            counts["runtime equal" if why is None else "runtime DIFFERS"] += 1
            if why is not None:
                print(f"RUNTIME  {case.name} at {version}: {why}")
    shutil.rmtree(scratch)
    for reason, count in refusals.most_common(40):
        print(f"{count:5} refused: {reason}")
    print(", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    bad = ("failed", "NOT accepted", "tombolo failed", "runtime DIFFERS")
    return 1 if any(counts[k] for k in bad) else 0


if __name__ == "__main__":
    sys.exit(main())
