#!/usr/bin/env python3
"""Writes checkpoints of every kind with PyTorch, and what they hold as io.npz. Needs torch, safetensors, huggingface_hub, joblib.

  tools/make_checkpoints.py OUT          the small set that is committed under tests/pytorch/checkpoints
  tools/make_checkpoints.py OUT --check TOMBOLO   converts each with TOMBOLO and compares bit for bit
"""
import io
import json
import pathlib
import pickle
import struct
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import torch
from torch import nn


# What numpy lacks travels as unsigned integers; __dtypes__.json of the .npz says so.
ONNX = {"bfloat16": "bfloat16", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2", "float8_e4m3fnuz": "float8e4m3fnuz",
        "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0"}


def dense(t):
    """The tensor as numpy, in the form that conversion promises."""
    t = t.detach()
    if t.is_quantized:
        t = t.int_repr()
    if t.layout != torch.strided:
        t = t.to_dense()
    t = t.resolve_conj().resolve_neg().contiguous()
    if t.dtype == torch.complex32:
        return torch.view_as_real(t).numpy()
    raw = {torch.bfloat16: np.uint16, torch.float8_e4m3fn: np.uint8, torch.float8_e5m2: np.uint8,
           torch.float8_e4m3fnuz: np.uint8, torch.float8_e5m2fnuz: np.uint8}
    for name in ("float8_e8m0fnu",):
        if hasattr(torch, name):
            raw[getattr(torch, name)] = np.uint8
    if t.dtype in raw:
        return t.view({2: torch.int16, 1: torch.uint8}[t.element_size()]).numpy().view(raw[t.dtype])
    return t.numpy().copy()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.list = nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 3, bias=False)])
        self.register_buffer("hidden", torch.rand(2), persistent=False)
        self.extra = "text"


class Unknown:
    def __init__(self):
        self.weight = torch.rand(3)
        self.nested = {"a": [torch.rand(2), None, 3]}


def cases():
    torch.manual_seed(0)
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    yield "strided", {
        "contiguous": base, "transposed": base.transpose(0, 2), "view": base[:, 1:, ::2], "row": base[1, 2],
        "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 3), "expanded": torch.tensor([1., 2.])[:, None].expand(2, 3),
        "shared": base.view(6, 4), "last": base.permute(2, 0, 1)[1:]}
    dtypes = {}
    for name in ("uint8 int8 int16 int32 int64 float16 float32 float64 bool bfloat16 complex64 complex128 "
                 "complex32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu uint16 uint32 uint64").split():
        if not hasattr(torch, name):
            continue
        dtype = getattr(torch, name)
        if name == "bool":
            dtypes[name] = torch.tensor([[True, False, True]])
        elif name.startswith("float8"):
            dtypes[name] = torch.randint(1, 100, (3, 4), dtype=torch.uint8).view(dtype)
        elif dtype.is_complex:
            dtypes[name] = torch.randn(3, 4, dtype=torch.complex64).to(dtype)
        elif dtype.is_floating_point:
            dtypes[name] = torch.randn(3, 4).to(dtype)
        else:
            dtypes[name] = torch.randint(0, 100, (3, 4)).to(dtype)
    yield "dtypes", dtypes
    z = torch.randn(3, 2, dtype=torch.complex64)
    yield "bits", {"conj": z.conj(), "conj_transposed": z.conj().T, "neg": torch._neg_view(torch.randn(4))}
    yield "quantised", {
        "tensor": torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.quint8),
        "channel": torch.quantize_per_channel(torch.randn(3, 4), torch.tensor([.1, .2, .3]), torch.tensor([0, 1, 2]), 0, torch.qint8),
        "wide": torch.quantize_per_tensor(torch.randn(5), 0.01, 0, torch.qint32)}
    s = torch.tensor([[0., 2, 0], [3, 0, 4]])
    yield "sparse", {"coo": s.to_sparse(), "csr": s.to_sparse_csr(), "csc": s.to_sparse_csc(),
                     "bsr": torch.eye(4).to_sparse_bsr((2, 2)), "bsc": torch.arange(16.).reshape(4, 4).to_sparse_bsc((2, 2)),
                     "twice": torch.sparse_coo_tensor([[0, 0], [1, 1]], [2., 3.], (2, 3)),
                     "hybrid": torch.sparse_coo_tensor([[0, 2]], [[1., 2.], [3., 4.]], (3, 2))}
    yield "bare", torch.rand(2, 3)
    yield "nested", {"model": {"w": torch.rand(2)}, "list": [torch.rand(1), (torch.rand(2), {"k": torch.rand(3)})],
                     "epoch": 3, "name": "x", 7: torch.rand(1), "none": None}
    block = Block()
    block.norm.running_mean.uniform_()
    yield "state_dict", block.state_dict()
    optimiser = torch.optim.Adam(block.parameters())
    for p in block.parameters():
        p.grad = torch.rand_like(p)
    optimiser.step()
    yield "training", {"state_dict": block.state_dict(), "optimizer": optimiser.state_dict(), "step": 10}
    yield "parameters", {"p": nn.Parameter(torch.rand(2)), "b": nn.Buffer(torch.rand(2)), "numpy": np.arange(6, dtype=np.int16).reshape(2, 3)}
    tied = nn.Linear(3, 3)
    yield "tied", {"a": tied.weight, "b": tied.weight, "t": tied.weight.data.T}
    yield "module", block
    yield "unknown", Unknown()


def walk(value, path, out):
    join = lambda name: name if path == "" else f"{path}.{name}"
    if isinstance(value, torch.Tensor):
        out.append((path, dense(value)))
    elif isinstance(value, np.ndarray):
        out.append((path, value))
    elif isinstance(value, nn.Module):
        for k, v in value.state_dict().items():
            walk(v, join(k), out)
    elif isinstance(value, dict):
        for k, v in value.items():
            walk(v, join(str(k)), out)
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            walk(v, join(str(i)), out)
    elif isinstance(value, Unknown):
        walk(vars(value), path, out)


def write_tar(path, state):
    """As PyTorch 0.1 wrote it: storages, tensors and the object in a tar archive. No PyTorch that can be had writes this; that
    torch.load reads it back is asserted."""
    roots, tensors = {}, {}
    for t in state.values():
        storage = t.untyped_storage()
        roots.setdefault(storage.data_ptr(), (100 + len(roots), t, storage))
        tensors[id(t)] = (500 + len(tensors), roots[storage.data_ptr()][0], t)

    def dump(value, out):
        pickle.dump(value, out, protocol=2)
    storages, records, objects = io.BytesIO(), io.BytesIO(), io.BytesIO()
    dump(len(roots), storages)
    for key, t, storage in roots.values():
        dump((key, "cpu", LEGACY[t.dtype]), storages)
        storages.write(struct.pack("<q", storage.nbytes() // t.element_size()) + bytes(storage))
    dump([], storages)  # views of storages
    dump(len(tensors), records)
    for key, root, t in tensors.values():
        dump((key, root, getattr(torch, LEGACY[t.dtype].__name__.replace("Storage", "Tensor"))), records)
        records.write(struct.pack("<i4x%dq%dqq" % (t.dim(), t.dim()), t.dim(), *t.shape, *t.stride(), t.storage_offset()))

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return str(tensors[id(value)][0]) if isinstance(value, torch.Tensor) else None
    Pickler(objects, protocol=2).dump(state)
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (("storages", storages), ("tensors", records), ("pickle", objects)):
            info = tarfile.TarInfo(name)
            info.size = len(data.getvalue())
            tar.addfile(info, io.BytesIO(data.getvalue()))
    back = torch.load(path, weights_only=False)
    assert list(back) == list(state) and all(torch.equal(back[k], state[k]) for k in state)


LEGACY = {torch.float32: torch.FloatStorage, torch.float64: torch.DoubleStorage, torch.int64: torch.LongStorage, torch.uint8: torch.ByteStorage,
          torch.float16: torch.HalfStorage}


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    unsafe_legacy = {"uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                     "float8_e5m2fnuz", "float8_e8m0fnu"}
    for name, value in cases():
        for form in ("zip", "legacy"):
            held = value
            if form == "legacy" and name == "dtypes":
                held = {k: v for k, v in value.items() if k not in unsafe_legacy}
            if form == "legacy" and name == "bits":  # it cannot hold two views of different types
                continue
            path = folder / f"{name}_{form}" / "model.pt"
            path.parent.mkdir(exist_ok=True)
            torch.save(held, path, _use_new_zipfile_serialization=form == "zip")
            expected = []
            walk(held, "", expected)
            made.append((path, expected))
    # Shards with an index, distributed checkpoints, plain safetensors.
    shards = folder / "sharded_bin" / "model.shards"
    shards.mkdir(exist_ok=True, parents=True)
    parts = {"a.w": torch.rand(2, 3), "b.w": torch.rand(4)}
    torch.save({"a.w": parts["a.w"]}, shards / "pytorch_model-00001-of-00002.bin")
    torch.save({"b.w": parts["b.w"]}, shards / "pytorch_model-00002-of-00002.bin")
    (shards / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {"total_size": 40}, "weight_map": {
        "a.w": "pytorch_model-00001-of-00002.bin", "b.w": "pytorch_model-00002-of-00002.bin"}}))
    made.append((shards, [(k, v.numpy()) for k, v in parts.items()]))
    from huggingface_hub import save_torch_state_dict
    shards = folder / "sharded_safetensors" / "model.shards"
    shards.mkdir(exist_ok=True, parents=True)
    state = {"layer.%d.w" % i: torch.randn(4, 5).to(t) for i, t in enumerate((torch.float32, torch.bfloat16, torch.float16, torch.float32))}
    save_torch_state_dict(state, str(shards), max_shard_size=120)
    made.append((shards, [(k, dense(v)) for k, v in state.items()]))
    tarred = folder / "tar_legacy" / "model.pt"
    tarred.parent.mkdir(exist_ok=True)
    base = torch.randn(3, 4)
    state = {"w": base, "row": base[1], "t": base.t(), "n": torch.arange(5), "h": torch.rand(2).half(), "scalar": torch.tensor(2.5, dtype=torch.float64)}
    write_tar(str(tarred), state)
    made.append((tarred, [(k, dense(v)) for k, v in state.items()]))
    import joblib
    numbers = {"w": np.float32([[1, 2], [3, 4]]), "f": np.asfortranarray(np.random.RandomState(0).rand(2, 5)), "i": np.arange(7, dtype=np.int16)[::2],
               "nested": [np.ones(2, bool), {"k": np.zeros((0, 3))}], "epoch": 3}
    for name, compress in (("joblib", 0), ("joblib_zlib", ("zlib", 3)), ("joblib_gzip", ("gzip", 3))):
        path = folder / name / "model.joblib"
        path.parent.mkdir(exist_ok=True)
        joblib.dump(numbers, path, compress=compress)
        expected = []
        walk(numbers, "", expected)
        made.append((path, expected))
    import torch.distributed.checkpoint as dcp
    state = {"model": {"w": torch.rand(3, 4), "h": torch.rand(5).half()}, "step": torch.tensor(7), "text": "x"}
    dcp.save(state, checkpoint_id=folder / "distributed" / "model.dcp")
    made.append((folder / "distributed" / "model.dcp", [("model.w", state["model"]["w"].numpy()), ("model.h", state["model"]["h"].numpy()),
                                          ("step", state["step"].numpy())]))
    for path, expected in made:
        types = {f"out_{i}": ONNX[k] for i, (k, _) in enumerate(expected) if k in ONNX}
        with zipfile.ZipFile(path.parent / "io.npz", "w", zipfile.ZIP_DEFLATED) as z:
            for i, (_, v) in enumerate(expected):
                data = io.BytesIO()
                np.save(data, v)
                z.writestr(zipfile.ZipInfo(f"out_{i}.npy"), data.getvalue())
            if types:
                z.writestr(zipfile.ZipInfo("__dtypes__.json"), json.dumps(types))
        (path.parent / "case.json").write_text(json.dumps({"source": "tools/make_checkpoints.py", "framework": f"torch {torch.__version__}",
                                                           "output_names": [k for k, _ in expected], "rtol": 0, "atol": 0}) + "\n")
    return made


def check(made, tombolo, scratch):
    bad = 0
    scratch.mkdir(exist_ok=True)
    for path, expected in made:
        out = scratch / (path.parent.name + ".npz")
        done = subprocess.run([tombolo, "convert", str(path), str(out)], capture_output=True, text=True)
        if done.returncode != 0:
            print("FAIL", path.parent.name, done.stderr.strip())
            bad += 1
            continue
        got = {k: v for k, v in np.load(out).items() if k != "__dtypes__.json"}
        names = [k for k in got if not k.startswith("__")]
        want = [k for k, _ in expected]
        problem = ""
        if names != want:
            problem = f"names {names} != {want}"
        for k, v in expected:
            if not problem and (got[k].dtype != v.dtype or got[k].shape != v.shape or got[k].tobytes() != np.ascontiguousarray(v).tobytes()):
                problem = f"{k}: {got[k].dtype}{got[k].shape} {got[k]} != {v.dtype}{v.shape} {v}"
        print("FAIL" if problem else "ok  ", path.parent.name, problem[:300])
        bad += bool(problem)
        for ext in (".safetensors", ".onnx"):
            done = subprocess.run([tombolo, "convert", str(path), str(out.with_suffix(ext))], capture_output=True, text=True)
            if done.returncode != 0:
                print("    ", ext, done.stderr.strip()[:200])
                continue
            if ext == ".safetensors":
                from safetensors import safe_open
                with safe_open(out.with_suffix(ext), "pt") as f:
                    for k, v in expected:
                        t = f.get_tensor(k)
                        if dense(t).tobytes() != np.ascontiguousarray(v).tobytes():
                            print("    differs in safetensors:", k)
                            bad += 1
    return bad


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    made = write(folder)
    if "--check" in sys.argv:
        sys.exit(1 if check(made, sys.argv[sys.argv.index("--check") + 1], folder / "scratch") else 0)
