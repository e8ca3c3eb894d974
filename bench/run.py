"""Measures Tombolo beside ONNX Runtime, in turns, on the models of bench/models.py, and writes a table.

    python bench/run.py TOMBOLO MODEL_DIR [--onnxruntime LIB] [--out docs/performance.md] [--only NAME,...] [--threads 1,2] [--fast-math NAME,...]
        [--peers openvino,mnn,litert]

Every line comes from `tombolo compare`, which lets all runtimes take turns in one process and compares
their outputs. ONNX Runtime runs twice: as it is, and without the fusion that makes its LayerNormalization
slower (SkipLayerNormFusion); the ratio is taken against the faster of the two. OpenVINO and MNN, in float32, take turns
with Tombolo in processes of their own (bench/peers.py).
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

import numpy as np

import hold
import models

PEERS = {"openvino": "OpenVINO", "mnn": "MNN", "litert": "LiteRT"}

SIZES = {
    "bert_base": [("s128", {"batch": 1, "sequence": 128}), ("s16", {"batch": 1, "sequence": 16})],
    "bert_base_f16": [("s128", {"batch": 1, "sequence": 128})],
    "bert_base_int8": [(f"s{n}", {"batch": 1, "sequence": n}) for n in (128, 16, 1)],
    "minilm6": [("s64", {"batch": 1, "sequence": 64})],
    "gpt2_decode": [("past 128", {"new": 1, "past": 128})],
    "gpt2_decode_f16": [("past 128", {"new": 1, "past": 128})],
    "llm_4bit": [("decode, past 512", {"new": 1, "past": 512}), ("prefill 128", {"new": 128, "past": 0})],
    "llama_decode": [("past 512", {"new": 1, "past": 512, "all": 513}), ("prefill 128", {"new": 128, "past": 0, "all": 128})],
    "llm_4bit_128_zeros": [("decode, past 512", {"new": 1, "past": 512}), ("prefill 128", {"new": 128, "past": 0})],
    "llm_4bit_exact": [("decode, past 512", {"new": 1, "past": 512}), ("prefill 128", {"new": 128, "past": 0})],
    "llm_f32": [("decode, past 512", {"new": 1, "past": 512}), ("prefill 128", {"new": 128, "past": 0})],
}


def arguments_of(name, sizes, folder):
    """Sizes, and inputs whose values matter (lengths, masks, ids): the rest is random."""
    arguments = [word for key, value in sizes.items() for word in ("--size", f"{key}={value}")]
    given = {}
    if name.startswith("llm"):
        given["seqlens_k"] = np.array([sizes["past"] + sizes["new"] - 1], np.int32)
        given["total_sequence_length"] = np.array(sizes["past"] + sizes["new"], np.int32)
    if name == "llama_decode":
        past, new = sizes["past"], sizes["new"]
        given["position_ids"] = past + np.arange(new)[None]
        given["mask"] = np.triu(np.full((1, 1, new, past + new), -3e38, np.float32), past + 1)
    if "sequence" in sizes:
        given["attention_mask"] = np.ones((1, sizes["sequence"]), np.int64)
    if not given:
        return arguments
    file = os.path.join(folder, "inputs.npz")
    np.savez(file, **given)
    return [*arguments, "--inputs", file]


def measure(tombolo, library, path, name, sizes, threads, runs, seconds, more=()):
    with tempfile.TemporaryDirectory() as folder:
        command = [tombolo, "compare", path, "--json", "--no-reference", "--no-progress", "--runs", str(runs), "--max-time", str(seconds),
                   "--threads", str(threads), "--onnxruntime", library, "--ort-without", "SkipLayerNormFusion", *more]
        done = subprocess.run(command + arguments_of(name, sizes, folder), capture_output=True, text=True, timeout=600)
    if done.returncode > 1 or not done.stdout:
        return None, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}"
    return json.loads(done.stdout), ""


LOADED = ("vgg19", "resnet50", "mobilenet_v2", "bert_base", "vit_b16", "resnet50_f16", "resnet50_qdq", "bert_base_int8")


def load(tombolo, path):
    """Load alone, load and first run: of ours and of ONNX Runtime, each in a process of its own. The file is in memory for both."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass
    def our_turn():
        done = subprocess.run([tombolo, "bench", path, "--json", "--runs", "1", "--warmup", "0", "--no-roofline", "--no-progress"], capture_output=True, text=True)
        return json.loads(done.stdout)

    # Memory is what the session adds to a process of Python: of ours all counts.
    code = ("import sys,time,json,numpy as np\nimport onnxruntime as o\n"
            "def kib(what):\n  return int(next(l for l in open('/proc/self/status') if l.startswith(what)).split()[1])\nbase=kib('VmRSS')\nt=time.perf_counter()\n"
            "s=o.InferenceSession(sys.argv[1],providers=['CPUExecutionProvider'])\na=time.perf_counter()-t\nm=kib('VmHWM')-base\n"
            "kinds={'tensor(float)':np.float32,'tensor(int64)':np.int64,'tensor(int32)':np.int32,'tensor(float16)':np.float16}\n"
            "x={i.name:np.zeros([d if isinstance(d,int) else 1 for d in i.shape],kinds[i.type]) for i in s.get_inputs()}\n"
            "t=time.perf_counter()\ns.run(None,x)\nb=time.perf_counter()-t\nprint(json.dumps([a*1e3,b*1e3,m*1024,(kib('VmHWM')-base)*1024]))")
    def their_turn():
        return json.loads(subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True).stdout)

    # In turns, the best of each: whoever comes first pays for pages that the machine gives for the first time.
    turns = [(our_turn(), their_turn()) for _ in range(3)]
    ours = min((turn[0] for turn in turns), key=lambda o: o["load_ms"] + o["first_ms"])
    theirs = min((turn[1] for turn in turns), key=lambda t: t[0] + t[1])
    return ours, theirs


def bench(tombolo, path, name, sizes, threads, runs, more, seconds=4):
    with tempfile.TemporaryDirectory() as folder:
        command = [tombolo, "bench", path, "--json", "--no-roofline", "--no-progress", "--runs", str(runs), "--max-time", str(seconds), "--threads", str(threads), *more]
        done = subprocess.run(command + arguments_of(name, sizes, folder), capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)["median_ms"]


def fast_math(tombolo, library, paths, threads, runs):
    """Our own float32 and --fast-math, turn by turn in processes of their own, the best median of three each; and how far outputs are from ONNX Runtime's."""
    lines = ["", "## --fast-math against our own float32", "",
             "| model | " + " | ".join(f"float32, {t}t ms | fast, {t}t ms | ratio {t}t" for t in threads) + " | outputs' relative rms from ONNX Runtime's |",
             "|" + " --- |" * (2 + 3 * len(threads))]
    for name, path in paths.items():
        label, sizes = SIZES.get(name, [("", {})])[0]
        cells = [name + (f" ({label})" if label else "")]
        for t in threads:
            turns = [[bench(tombolo, path, name, sizes, t, runs, more) for more in ([], ["--fast-math"])] for _ in range(3)]
            own, fast = min(turn[0] for turn in turns), min(turn[1] for turn in turns)
            cells += [f"{own:.3f}", f"{fast:.3f}", f"{own / fast:.2f}"]
            print(name, t, "fast-math", f"{own / fast:.2f}", file=sys.stderr, flush=True)
        result, why = measure(tombolo, library, path, name, sizes, threads[-1], 1, 1, ["--fast-math"])
        cells.append(why[:60] if result is None else f"{max([o['relative_rms'] or 0 for o in result['outputs']] or [0]):.1e}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def peer_median(peer, path, name, sizes, threads, runs, seconds):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers.py"), peer, path, "--threads", str(threads), "--runs", str(runs), "--seconds", str(seconds)]
        try:
            done = subprocess.run(command + arguments_of(name, sizes, folder), capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return None
    return float(done.stdout.split()[-1]) if done.returncode == 0 and done.stdout.split() else None


def peers(tombolo, names, paths, threads, runs, seconds):
    """Tombolo and each peer, turn by turn in processes of their own, the best median of two each."""
    lines = ["", "## Beside " + " and ".join(PEERS[name] for name in names), "", "In float32, each in a process of its own, the better median of two turns; ratio: its time to ours.", "",
             "| model | " + " | ".join(f"Tombolo, {t}t ms | " + " | ".join(f"{PEERS[n]}, {t}t ms | ratio" for n in names) for t in threads) + " |",
             "|" + " --- |" * (1 + len(threads) * (1 + 2 * len(names)))]
    for name, path in paths.items():
        for label, sizes in SIZES.get(name, [("", {})]):
            cells = [name + (f" ({label})" if label else "")]
            for t in threads:
                turns = [[bench(tombolo, path, name, sizes, t, runs, [], seconds)] + [peer_median(n, path, name, sizes, t, runs, seconds) for n in names] for _ in range(2)]
                own = min(turn[0] for turn in turns)
                cells.append(f"{own:.3f}")
                for i in range(len(names)):
                    times = [turn[i + 1] for turn in turns if turn[i + 1] is not None]
                    cells += [f"{min(times):.3f}", f"{min(times) / own:.2f}"] if times else ["-", "-"]
                print(cells[0], t, "peers", *cells[1:], file=sys.stderr, flush=True)
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def cpu_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tombolo")
    parser.add_argument("folder")
    parser.add_argument("--onnxruntime")
    parser.add_argument("--out")
    parser.add_argument("--only")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--fast-math", default="bert_base,vit_b16,resnet50", help="models of the table of --fast-math, of those that are measured; empty: none")
    parser.add_argument("--fast-math-alone", action="store_true", help="that table and no other")
    parser.add_argument("--peers", default="openvino,mnn", help="further peers, for what is no operator probe; empty: none")
    parser.add_argument("--peers-alone", action="store_true", help="that table and no other")
    parser.add_argument("--loading-alone", action="store_true", help="that table and no other")
    args = parser.parse_args()
    library = hold.onnxruntime_library(args.onnxruntime)
    names = args.only.split(",") if args.only else None
    paths = models.make(args.folder, names)
    threads = [int(t) for t in args.threads.split(",")]
    tiny = os.path.join(args.folder, "mlp.onnx")
    models.make(args.folder, ["mlp"])
    machine = {}
    for t in threads:
        done = subprocess.run([args.tombolo, "profile", tiny, "--json", "--threads", str(t), "--runs", "1"], capture_output=True, text=True)
        found = json.loads(done.stdout)
        machine[t] = f"{found['peak_flops'] * 1e-9:.0f} Gop/s, {found['bandwidth'] * 1e-9:.0f} GB/s"
    version = ""
    rows = []
    alone = args.fast_math_alone or args.peers_alone or args.loading_alone
    for name, path in [] if alone else paths.items():
        for label, sizes in SIZES.get(name, [("", {})]):
            title = name + (f" ({label})" if label else "")
            cells = [title]
            for t in threads:
                result, why = measure(args.tombolo, library, path, name, sizes, t, args.runs, args.seconds)
                print(title, t, why or "", file=sys.stderr, flush=True)
                if result is None:
                    cells += ["-", "-", why[:60]]
                    continue
                sides = {s["name"]: s for s in result["sides"]}
                ours = sides["tombolo"]["median_ms"]
                theirs = [s for n, s in sides.items() if n.startswith("onnxruntime") and not s["failure"] and s["median_ms"]]
                if not theirs:
                    cells += [f"{ours:.3f}", "-", "does not run: " + sides["onnxruntime"]["failure"][:50]]
                    continue
                best = min(s["median_ms"] for s in theirs)
                rms = max([o["relative_rms"] or 0 for o in result["outputs"]] or [0])
                cells += [f"{ours:.3f}", f"{best:.3f}", f"{best / ours:.2f}"]
                if t == threads[-1]:
                    cells.append(f"{rms:.1e}")
            rows.append(cells)
    lines = ["# Performance", "", "Written by `make bench` (bench/run.py): medians of runs that take turns in one process. The ratio is the time of the faster of",
             "ONNX Runtime's two variants (default, SkipLayerNormFusion off) to ours: above 1 Tombolo is faster. Models are the shapes of",
             "the networks named, with random weights (bench/models.py).", "", f"Machine: {cpu_name()}, {os.cpu_count()} cores. " + "; ".join(f"{t} thread{'s' if t > 1 else ''}: {m}" for t, m in machine.items()) + "."]
    if rows:
        head = ["model"] + [c for t in threads for c in (f"Tombolo, {t}t ms", f"ONNX Runtime, {t}t ms", f"ratio {t}t")] + ["outputs' relative rms apart"]
        lines += ["", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        lines += ["| " + " | ".join(cells + [""] * (len(head) - len(cells))) + " |" for cells in rows]
    rounded = {} if args.peers_alone or args.loading_alone else {name: path for name, path in paths.items() if name in args.fast_math.split(",")}
    if rounded:
        lines += fast_math(args.tombolo, library, rounded, threads, args.runs)
    if args.peers and not args.fast_math_alone and not args.loading_alone:
        lines += peers(args.tombolo, args.peers.split(","), {n: p for n, p in paths.items() if not n.startswith("op_")}, threads, args.runs, args.seconds)
    loaded = [] if alone and not args.loading_alone else [name for name in LOADED if name in paths]
    if loaded:
        lines += ["", "## Loading", "", "Load alone and the first run, in a process of its own, the file in memory; memory is what the process held at most, of ONNX Runtime what it added to one of Python.", "",
                  "| model | Tombolo, load ms | first run ms | MB after load | MB after the first run | ONNX Runtime, load ms | first run ms | MB after load | MB after the first run | ratio of times |",
                  "|" + " --- |" * 10]
    for name in loaded:
        ours, theirs = load(args.tombolo, paths[name])
        times = [ours["load_ms"], ours["first_ms"], theirs[0], theirs[1]]
        memory = [x / 1e6 for x in (ours["rss_after_load_bytes"], ours["peak_rss_bytes"], theirs[2], theirs[3])]
        lines.append(f"| {name} | {times[0]:.0f} | {times[1]:.0f} | {memory[0]:.0f} | {memory[1]:.0f} | {times[2]:.0f} | {times[3]:.0f} | {memory[2]:.0f} | {memory[3]:.0f} | "
                     f"{(times[2] + times[3]) / (times[0] + times[1]):.1f} |")
    text = "\n".join(lines) + "\n"
    if args.out:
        with open(args.out, "w") as file:
            file.write(text)
    print(text)


if __name__ == "__main__":
    main()
