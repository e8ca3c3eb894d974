#!/usr/bin/env python3
"""Makes whole networks with PyTorch one after another, compares each with what Tombolo computes and with ONNX Runtime on what
Tombolo writes at opset 21, and deletes it again: so that every builder of torchvision has its turn on a small machine.

    sweep_pytorch.py DIR [--source networks|timm|architectures|scripts] [--groups vision] [--only RE] [--table FILE] [--tombolo PATH] [--keep]

A row of the table: name and form, seconds to make, size of the file in MB, what our runtime says (1e-4 relative to the
largest value of each output, at every size of input), what onnx.checker says, and the largest difference of ONNX Runtime's outputs,
relative to the largest value. Rows that are there already are kept: a sweep goes on where it was ended.
Needs torch, torchvision, timm, transformers, onnx and onnxruntime.
"""
import argparse
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def in_child(function, seconds):
    """Runs function in a process of its own; gives its result, a string, or why there is none."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        import signal
        signal.alarm(seconds)
        try:
            text = function() or ""
        except BaseException as error:
            lines = [line for line in str(error).strip().splitlines() if line.strip()] or [repr(error)]
            text = "!%s: %s" % (type(error).__name__, " | ".join(lines[:2] + lines[-1:])[:400])
            if os.environ.get("SWEEP_TRACE"):
                traceback.print_exc()
        os.write(write, text.encode()[:4000])
        os._exit(0)
    os.close(write)
    chunks = []
    while True:
        chunk = os.read(read, 65536)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    return b"".join(chunks).decode() if status == 0 else "!ended by signal %d" % (status & 127)


def tighten(folder):
    """1e-4 of the largest value of the output with the smallest values. Quantised networks keep their own: a number that lies
    on the edge between two steps takes the other one by the last bit of a sum."""
    import numpy as np
    with open(os.path.join(folder, "case.json")) as file:
        case = json.load(file)
    if "quantized" in folder:
        return
    arrays = np.load(os.path.join(folder, "io.npz"))
    largest = [float(np.abs(a[np.isfinite(a)]).max()) if a.size and np.isfinite(a).any() else 0
               for k, a in arrays.items() if k.startswith("out") and a.dtype.kind == "f" and a.size]
    case["rtol"], case["atol"] = 1e-4, 1e-4 * min([x for x in largest if x > 0], default=0.1)
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump(case, file)


def other_runtime(path, folder):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    arrays = np.load(os.path.join(folder, "io.npz"))
    worst = 0.0
    for set_ in ("", "2"):
        given = [arrays[k] for k in sorted((k for k in arrays if k.startswith("in" + set_ + "_")), key=lambda k: int(k.split("_")[1]))]
        wanted = [arrays[k] for k in sorted((k for k in arrays if k.startswith("out" + set_ + "_")), key=lambda k: int(k.split("_")[1]))]
        if not wanted:
            continue
        outputs = session.run(None, {port.name: value for port, value in zip(session.get_inputs(), given)})
        for got, want in zip(outputs, wanted):
            got = np.asarray(got)
            if got.shape != want.shape:
                return "!shape %s, not %s" % (got.shape, want.shape)
            if want.size == 0:
                continue
            got, want = got.astype(np.float64), want.astype(np.float64)
            scale = max(np.abs(want[np.isfinite(want)]).max() if np.isfinite(want).any() else 0, 1e-6)
            with np.errstate(invalid="ignore"):
                difference = np.where(got == want, 0, np.abs(got - want))
            difference[np.isnan(want) & np.isnan(got)] = 0
            worst = max(worst, float(np.nan_to_num(difference, nan=np.inf).max() / scale))
    return "%.1e" % worst


def judge(folder, tombolo, limit):
    """(our verdict, checker, ONNX Runtime) of one case."""
    model = next(os.path.join(folder, f) for f in os.listdir(folder) if f.startswith("model."))
    tighten(folder)
    result = subprocess.run([tombolo, "conformance", os.path.dirname(folder), "--json", "--jobs", "1", "--filter", os.path.basename(folder) + "$"],
                            capture_output=True, text=True, timeout=limit)
    try:
        cases = json.loads(result.stdout)["cases"]
        ours = "; ".join("passed" if c["status"] == "passed" else c["reason"] for c in cases) or "no case"
    except ValueError:
        ours = "died: " + result.stderr[-200:]
    out = os.path.join(folder, "out.onnx")
    sample = ["--sample", os.path.join(folder, "io.npz")] if model.endswith(".pt") else []
    done = subprocess.run([tombolo, "convert", model, out, "--opset", "21", *sample], capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        return ours, "-", "not at opset 21: " + done.stderr.strip().replace("\n", " | ")[:300]
    def check():
        import onnx
        onnx.checker.check_model(out)
        return "ok"
    checked = in_child(check, limit)
    return ours, checked, in_child(lambda: other_runtime(out, folder), limit)


def network_cases(root, source):
    import torch
    import oracle_pytorch
    import oracle_pytorch_networks as networks
    torch.backends.mha.set_fastpath_enabled(False)

    def maker(name, build):
        def make():
            torch.manual_seed(3)
            oracle_pytorch.export_network(root, name, **build())
        return make
    import oracle_pytorch_architectures
    sources = {"networks": networks.all_networks, "timm": networks.timm_families, "architectures": oracle_pytorch_architectures.architectures}
    for name, build in sources[source]():
        yield name, maker(name, build)


def script_cases(root, groups):
    import importlib
    import oracle_torchscript
    for group in groups:
        importlib.import_module("torchscript." + group)
    for case in oracle_torchscript.CASES:
        yield case.name, lambda case=case: oracle_torchscript.write(root, case, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--source", default="networks", choices=["networks", "timm", "architectures", "scripts"])
    parser.add_argument("--groups", default="vision")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--tombolo", default="build/release/tombolo")
    parser.add_argument("--keep", action="store_true", help="keep the cases that fail")
    parser.add_argument("--limit", type=int, default=900, help="seconds for each step of a case")
    parser.add_argument("--memory", type=float, default=10, help="GB of address space for each step")
    args = parser.parse_args()
    table = args.table or os.path.join(args.dir, args.source + ".tsv")
    os.makedirs(args.dir, exist_ok=True)
    import numpy  # noqa: F401  before the limit and the forks
    import torch
    torch.set_num_threads(1)
    done = set()
    if os.path.exists(table):
        with open(table) as file:
            done = {line.split("\t")[0] for line in file}
    cases = network_cases(args.dir, args.source) if args.source != "scripts" else script_cases(args.dir, args.groups.split(","))
    for name, make in cases:
        if not re.search(args.only, name) or name in done:
            continue
        begin = time.time()
        before = set(os.listdir(args.dir))
        def limited():
            amount = int((args.memory + 20) * 2**30)
            resource.setrlimit(resource.RLIMIT_AS, (amount, amount))
            output = io.StringIO()
            import contextlib
            with contextlib.redirect_stdout(output):
                make()
            return output.getvalue()
        said = in_child(limited, args.limit)
        spent = time.time() - begin
        folders = []
        for top, _, files in os.walk(args.dir):
            if "case.json" in files and (os.path.basename(top) == name or re.fullmatch(re.escape(name) + r"-\d+", os.path.basename(top))):
                folders.append(top)
        if not folders:
            said = re.sub(r"\s+", " ", said)
            with open(table, "a") as file:
                file.write("%s\tnot made\t%.0f\t-\t%s\n" % (name, spent, said[:300]))
        for folder in sorted(folders):
            form = os.path.basename(os.path.dirname(folder)) if args.source != "scripts" else "script"
            size = max(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
            try:
                ours, checked, other = judge(folder, args.tombolo, args.limit)
            except subprocess.TimeoutExpired:
                ours, checked, other = "more than %d s" % args.limit, "-", "-"
            with open(table, "a") as file:
                file.write("\t".join([name, form, "%.0f" % spent, "%.1f" % (size / 1e6), ours.replace("\n", " ").replace("\t", " "), checked, other]) + "\n")
            if not (args.keep and ours != "passed"):
                shutil.rmtree(folder, ignore_errors=True)
            elif os.path.exists(os.path.join(folder, "out.onnx")):
                os.remove(os.path.join(folder, "out.onnx"))
        for left in set(os.listdir(args.dir)) - before - {"export", "core", os.path.basename(table)}:
            if not args.keep:
                shutil.rmtree(os.path.join(args.dir, left), ignore_errors=True)
    good = total = 0
    with open(table) as file:
        for line in file:
            total += 1
            good += line.split("\t")[4:5] == ["passed"]
    print("%d of %d agree" % (good, total))
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
