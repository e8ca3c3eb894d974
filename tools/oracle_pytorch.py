#!/usr/bin/env python3
"""Makes .pt2 cases with real PyTorch and compares what Tombolo computes with what PyTorch did.

    oracle_pytorch.py make DIR [--what opdb|complex|networks] [--shard I/N] [--filter RE]
    oracle_pytorch.py run DIR [--tombolo PATH] [--filter RE] [--list]
    oracle_pytorch.py pack DIR [--out FOLDER]     what is committed under tests/pytorch

A case is a folder NAME/{model.pt2, io.npz, case.json}, as `tombolo conformance` takes it. Cases that
are there already are kept. Needs torch, and for all cases torchvision, timm, transformers,
expecttest and scipy.
"""
import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Results that are not determined: uninitialised memory, and factors whose signs are free.
FREE = re.compile(
    r"^(empty|new_empty|empty_like|empty_strided|new_empty_strided|empty_permuted|resize_|"
    r"svd|linalg\.svd|linalg\.eig|linalg\.eigh|eig|svd_lowrank|pca_lowrank|geqrf|ormqr|"
    r"rand|randn|randint|rand_like|randn_like|randint_like|randperm|bernoulli|multinomial|normal|uniform|cauchy|"
    r"exponential|geometric|log_normal|nn\.functional\.(rrelu|fractional_max_pool[23]d|.*dropout.*)|"
    r"linalg\.householder_product|linalg\.qr|qr|linalg\.lstsq\.grad_oriented)$")


class Timeout(Exception):
    pass


def limited(seconds, function):
    def stop(*_):
        raise Timeout()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return function()
    finally:
        signal.alarm(0)


def to_numpy(tensor, carriers):
    import torch
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    raw = {torch.bfloat16: ("bfloat16", torch.uint16), torch.float8_e4m3fn: ("float8e4m3fn", torch.uint8),
           torch.float8_e5m2: ("float8e5m2", torch.uint8)}
    if tensor.dtype in raw:
        carriers.append(raw[tensor.dtype][0])
        tensor = tensor.contiguous().view(raw[tensor.dtype][1])
    return tensor.contiguous().numpy()


def save_case(folder, program, pairs, extra=None, rtol=1e-4, atol=1e-5):
    """pairs: one or two (inputs, outputs), lists of tensors."""
    import numpy as np
    import torch
    os.makedirs(folder, exist_ok=True)
    arrays = {}
    for k, (inputs, outputs) in enumerate(pairs):
        for prefix, tensors in (("in", inputs), ("out", outputs)):
            for i, tensor in enumerate(tensors):
                arrays["%s%s_%d" % (prefix, "" if k == 0 else k + 1, i)] = to_numpy(tensor, [])
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    np.savez(os.path.join(folder, "io.npz"), **arrays)
    ops = sorted({str(n.target) for m in program.graph_module.modules() if hasattr(m, "graph")
                  for n in m.graph.nodes if n.op == "call_function"})
    with open(os.path.join(folder, "case.json"), "w") as out:
        json.dump({"rtol": rtol, "atol": atol, "ops": ops, **(extra or {})}, out)


KINDS = {"export": lambda p: p, "core": lambda p: p.run_decompositions(),
         "inference": lambda p: p.run_decompositions({})}


def same(a, b):
    import torch
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(x, y, equal_nan=True)
        if x.is_floating_point() or x.is_complex() else torch.equal(x, y) for x, y in zip(a, b))


def make_opdb(root, shard, pattern, complex_numbers):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils import _pytree as pytree

    class Sample(torch.nn.Module):
        def __init__(self, op, leaves, spec):
            super().__init__()
            self.op, self.leaves, self.spec = op, leaves, spec

        def forward(self, *tensors):
            tensors = iter(tensors)
            leaves = [next(tensors) if isinstance(x, torch.Tensor) else x for x in self.leaves]
            first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
            return self.op(first, *args, **kwargs)

    def tensors_of(tree):
        return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]

    failures = collections.Counter()
    for index, info in enumerate(op_db):
        if index % shard[1] != shard[0]:
            continue
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        if pattern and not pattern.search(name) or FREE.search(info.name):
            continue
        dtype = torch.complex64 if complex_numbers else torch.float32
        allowed = info.dtypes
        if dtype not in allowed:
            if complex_numbers:
                continue
            dtype = next((d for d in (torch.float64, torch.int64, torch.bool, torch.int32, torch.uint8, torch.bfloat16)
                          if d in allowed), None)
            if dtype is None:
                continue
        safe = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        marker = os.path.join(root, "." + safe + ".done")
        if os.path.exists(marker):
            continue
        try:
            torch.manual_seed(7)
            samples = list(limited(60, lambda: info.sample_inputs("cpu", dtype, requires_grad=False)))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failures["samples"] += 1
            continue
        count = len(samples)
        chosen = sorted({0, count // 2, count - 1}) if count else []
        for number in chosen:
            sample = samples[number]
            try:
                leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
                inputs = [x.detach().clone() for x in leaves if isinstance(x, torch.Tensor)]
                if any(x.layout != torch.strided for x in inputs):
                    continue
                model = Sample(info.op, leaves, spec).eval()
                run = lambda: tensors_of(model(*[x.clone() for x in inputs]))
                torch.manual_seed(1)
                first = limited(30, run)
                torch.manual_seed(2)
                if not first or not same(first, limited(30, run)):
                    failures["random"] += 1
                    break
                program = limited(60, lambda: torch.export.export(model, tuple(x.clone() for x in inputs)))
                for kind, change in KINDS.items():
                    folder = os.path.join(root, kind, "%s_%d" % (safe, number))
                    changed = limited(60, lambda: change(program))
                    save_case(folder, changed, [(inputs, first)], {"op": name}, rtol=1e-3, atol=1e-4)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failures[type(error).__name__] += 1
                with open(os.path.join(root, "failures-%d.txt" % shard[0]), "a") as log:
                    log.write("%s %d: %s: %s\n" % (name, number, type(error).__name__, str(error)[:200].replace("\n", " ")))
        open(marker, "w").close()
    print(dict(failures))


def export_network(root, name, model, args, kwargs=None, dynamic=None, second=None, kinds=("export", "core"), **tolerance):
    import torch
    from torch.utils import _pytree as pytree
    folders = [os.path.join(root, kind, name) for kind in kinds]
    if all(os.path.exists(os.path.join(f, "case.json")) for f in folders):
        return
    kwargs = kwargs or {}
    model = model.eval()

    def run(a, k):
        import copy
        with torch.no_grad():
            result = copy.deepcopy(model)(*pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, a),
                                          **pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, k))
        return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]

    def tensors(a, k):
        return [x for x in pytree.tree_leaves((a, k)) if isinstance(x, torch.Tensor)]
    try:
        pairs = [(tensors(args, kwargs), limited(120, lambda: run(args, kwargs)))]
        if second:
            pairs.append((tensors(second, {}), run(second, {})))
        with torch.no_grad():
            program = limited(300, lambda: torch.export.export(model, args, kwargs, dynamic_shapes=dynamic))
        for kind, folder in zip(kinds, folders):
            save_case(folder, limited(200, lambda: KINDS[kind](program)), pairs, {"network": name}, **tolerance)
        print("made", name, flush=True)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print("cannot make %s: %s: %s" % (name, type(error).__name__, str(error)[:300].replace("\n", " ")), flush=True)


def make_networks(root, shard, pattern):
    import torch
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import oracle_pytorch_networks as networks
    torch.backends.mha.set_fastpath_enabled(False)
    for index, (name, build) in enumerate(networks.all_networks()):
        if index % shard[1] != shard[0] or (pattern and not pattern.search(name)):
            continue
        torch.manual_seed(3)
        try:
            case = limited(120, build)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            print("cannot build %s: %s" % (name, str(error)[:200].replace("\n", " ")), flush=True)
            continue
        export_network(root, name, **case)


def reason_key(reason):
    reason = re.sub(r'"[^"]*"', '""', reason)
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "N", reason)[:150]


def run_cases(root, tombolo, pattern, listing):
    command = [tombolo, "conformance", root, "--json", "--jobs", "1"]
    if pattern:
        command += ["--filter", pattern.pattern]
    result = subprocess.run(command, capture_output=True, text=True)
    report = json.loads(result.stdout)
    groups = collections.defaultdict(list)
    totals = collections.Counter()
    for case in report["cases"]:
        kind = case["name"].split("/")[-2] if "/" in case["name"] else ""
        totals[kind, case["status"] == "passed"] += 1
        if case["status"] != "passed":
            groups[reason_key(case["reason"])].append(case)
    for reason, cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        names = sorted({c["name"].split("/")[-1] for c in cases})
        print("%4d  %s\n        %s" % (len(cases), cases[0]["reason"][:300] if listing else reason, " ".join(names[:40 if listing else 8])))
    for kind in sorted({k for k, _ in totals}):
        good, bad = totals[kind, True], totals[kind, False]
        print("%-10s %d of %d pass (%.1f %%)" % (kind, good, good + bad, 100.0 * good / max(good + bad, 1)))
    return 0 if not groups else 1


def repack(source, target):
    """Writes the archive again, compressed and without the paths of the machine that made it."""
    import zipfile
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for item in old.infolist():
            data = old.read(item.filename)
            if item.filename.endswith(".json"):
                text = data.decode()
                text = re.sub(r'File \\"[^"]*?/(site-packages/[^"]*?|[^/"]*?)\\"', r'File \\"\1\\"', text)
                data = text.encode()
            if "sample_inputs" in item.filename or ".data/" in item.filename:
                continue
            entry = zipfile.ZipInfo(item.filename, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, data)


def pack_cases(root, out, tombolo, budget):
    """A small choice of cases that pass: the first that shows an overload, and all small networks."""
    import shutil
    import numpy as np
    result = subprocess.run([tombolo, "conformance", root, "--json", "--jobs", "1"], capture_output=True, text=True)
    passed = [c["name"] for c in json.loads(result.stdout)["cases"] if c["status"] == "passed"]
    base, seen, size, count = os.path.dirname(os.path.abspath(root)), set(), 0, 0
    for name in passed:
        folder = os.path.join(base, name)
        with open(os.path.join(folder, "case.json")) as file:
            case = json.load(file)
        new = set(case["ops"]) - seen
        weight = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
        chosen = new or case.get("network", "").startswith("nn_") or os.path.basename(folder).startswith("values_")
        if not chosen or weight > 300000:
            continue
        kind, title = folder.split("/")[-2:]
        target = os.path.join(out, kind, title)
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        repack(os.path.join(folder, "model.pt2"), os.path.join(target, "model.pt2"))
        np.savez_compressed(os.path.join(target, "io.npz"), **dict(np.load(os.path.join(folder, "io.npz"))))
        with open(os.path.join(target, "case.json"), "w") as file:
            json.dump(case, file)
        size += sum(os.path.getsize(os.path.join(target, f)) for f in os.listdir(target))
        seen |= new
        count += 1
        if size > budget:
            break
    print("%d cases, %d overloads, %.2f MB" % (count, len(seen), size / 1e6))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "run", "pack"])
    parser.add_argument("folder")
    parser.add_argument("--what", default="opdb", choices=["opdb", "complex", "networks"])
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--filter")
    parser.add_argument("--tombolo", default="build/release/tombolo")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", default="tests/pytorch/programs")
    args = parser.parse_args()
    pattern = re.compile(args.filter) if args.filter else None
    if args.action == "run":
        return run_cases(args.folder, args.tombolo, pattern, args.list)
    if args.action == "pack":
        pack_cases(args.folder, args.out, args.tombolo, 4.0e6)
        return 0
    os.makedirs(args.folder, exist_ok=True)
    shard = tuple(int(x) for x in args.shard.split("/"))
    import torch
    torch.set_num_threads(1)
    if args.what == "networks":
        make_networks(args.folder, shard, pattern)
    else:
        make_opdb(args.folder, shard, pattern, args.what == "complex")
    return 0


if __name__ == "__main__":
    sys.exit(main())
