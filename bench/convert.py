#!/usr/bin/env python3
"""Conversion of exported programs, beside torch.onnx on the same file.

    bench/convert.py build/release/tombolo [--model resnet50] [--runs 5] [--no-peer]

Makes the .pt2 (random weights), converts it RUNS times in fresh processes and prints wall time, CPU time, and peak
memory with and without the mapped file; then what the kernel needs to write as many bytes; then, in a fresh process,
torch.export.load + torch.onnx.export. Then `info` of a checkpoint of 2 GB. Needs torch, torchvision, onnxscript.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

MAKE = """
import sys, torch, torchvision
model = torchvision.models.get_model(sys.argv[1], weights=None).eval()
torch.export.save(torch.export.export(model, (torch.randn(1, 3, 224, 224),)), sys.argv[2])
"""
BIG = """
import sys, torch
torch.save({f"layer.{i}.weight": torch.zeros(1024, 4096) for i in range(128)}, sys.argv[1])
"""
PEER = """
import sys, time, torch
begin = time.time()
program = torch.export.load(sys.argv[1])
loaded = time.time()
torch.onnx.export(program, dynamo=True).save(sys.argv[2])
print(f"torch.onnx: {loaded - begin:.2f} s to load, {time.time() - loaded:.2f} s to convert and write")
"""


def measure(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def report(name, command, runs, mapped=0):
    results = sorted(measure(command) for _ in range(runs))
    wall, cpu, memory = results[len(results) // 2]
    beyond = f", {max(0, memory - mapped) / 1e6:.0f} MB beyond the mapped file" if mapped else ""
    print(f"{name}: {wall * 1000:.0f} ms (fastest {results[0][0] * 1000:.0f}), {cpu * 1000:.0f} ms CPU, "
          f"peak {memory / 1e6:.0f} MB{beyond}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tombolo-convert-") as folder:
        source, out = pathlib.Path(folder) / "model.pt2", pathlib.Path(folder) / "model.onnx"
        subprocess.run([sys.executable, "-c", MAKE, args.model, str(source)], check=True, capture_output=True)
        size = source.stat().st_size
        print(f"{args.model}.pt2: {size / 1e6:.1f} MB")
        report("convert", [args.tombolo, "convert", str(source), str(out), "-q"], args.runs, size)
        report("only the bytes (cp)", ["cp", str(out), str(out) + ".copy"], args.runs)
        report("info", [args.tombolo, "info", str(source)], args.runs)
        if not args.no_peer:
            done = subprocess.run([sys.executable, "-c", PEER, str(source), str(out)], capture_output=True, text=True)
            print((done.stdout.strip() or done.stderr.strip()).splitlines()[-1],
                  f"(peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3:.0f} MB)")
        big = pathlib.Path(folder) / "big.pth"
        subprocess.run([sys.executable, "-c", BIG, str(big)], check=True)
        print(f"checkpoint: {big.stat().st_size / 1e9:.2f} GB")
        report("info of the checkpoint", [args.tombolo, "info", str(big)], args.runs)


if __name__ == "__main__":
    main()
