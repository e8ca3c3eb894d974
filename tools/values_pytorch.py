#!/usr/bin/env python3
"""Functions of one and two numbers at unusual values (tiny, huge, infinite, NaN, the ends of integers), of every element type.

    values_pytorch.py DIR [--filter RE] [--groups] [--tombolo PATH]

Every such operator of PyTorch's own database is exported and compared with what PyTorch computes; --groups makes the few
programs that are committed as tests/pytorch/programs/export/values_*. What differs is listed with its inputs.
Needs torch, expecttest and scipy.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle_pytorch as oracle

INF, NAN = float("inf"), float("nan")
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 12, 31, 32, 63, 64, 100, -100, 127, -128]


def reals():
    import numpy as np
    found = list(np.logspace(-3, 4, 57)) + [
        0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 50.0, 100.0, 101.0, 150.0, 200.0, 1000.5, 1e-10, 1e-20, 1e-38, 1e10, 1e30, 3e38, INF]
    return np.array(found + [-x for x in found] + [NAN], dtype="f")


def pairs():
    import numpy as np
    few = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -7.25, 10.0, 100.0, -100.0, 1e-30, 1e30, -1e30,
                    INF, -INF, NAN], dtype="f")
    return np.meshgrid(few, few)


def groups():
    """(name, function, inputs): what PyTorch itself computes well at these places."""
    import numpy as np
    import torch
    s = torch.special
    wide = torch.tensor(np.concatenate([np.linspace(-40, 40, 81), np.logspace(-30, 4, 40), -np.logspace(-30, 4, 40)]))
    yield "bessel", lambda x: (s.bessel_j0(x), s.bessel_j1(x), s.bessel_y0(x), s.bessel_y1(x), s.i0e(x), s.i1e(x), s.i0(x), s.i1(x),
                               s.modified_bessel_k0(x), s.modified_bessel_k1(x), s.scaled_modified_bessel_k0(x),
                               s.scaled_modified_bessel_k1(x), s.spherical_bessel_j0(x)), [wide]
    yield "airy", lambda x: s.airy_ai(x), [wide]
    apart = wide[(wide != wide.round()) | (wide > 0)]
    yield "gamma", lambda x: (s.gammaln(x), s.digamma(x), s.polygamma(1, x), s.polygamma(2, x), s.polygamma(4, x)), [apart]
    a, r = np.meshgrid([0.001, 0.5, 1, 5, 15, 20, 20.5, 40, 300, 3000, 1e5, 1e6], [0.001, 0.5, 0.9, 0.99, 1, 1.01, 1.1, 1.5, 3, 10])
    yield "igamma", lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), [torch.tensor(a), torch.tensor(a * r)]
    p = np.concatenate([np.logspace(-300, -0.01, 60), 1 - np.logspace(-15, -2, 30), [0, 1, -0.5, 1.5, NAN]])
    yield "ndtri", s.ndtri, [torch.tensor(p)]
    plain = torch.tensor(reals())
    yield "exponential", lambda x: (torch.expm1(x), torch.log1p(x), s.xlog1py(x.flip(0), x), torch.expm1(x.double())), [plain]
    some = plain[(plain.abs() < 1000) & (plain.abs() > 1e-6)]
    yield "halves", lambda x, y: (torch.sinc(x), torch.log1p(x.abs()), torch.expm1(y), torch.sinc(y)), [some.half(), some.bfloat16()]
    yield "nan", lambda x: (torch.nn.functional.threshold(x, 0.5, 2.0), torch.nn.functional.hardtanh(x)), [plain]
    yield "unsigned", lambda x: (torch.relu(x), torch.nn.functional.hardtanh(x)), [torch.tensor([0, 1, 7, 200], dtype=torch.uint8)]
    a, b = np.meshgrid(INTEGERS, INTEGERS)
    yield "shifts", lambda *xs: tuple(f(x, y) for x, y in zip(xs[::2], xs[1::2]) for f in (torch.bitwise_left_shift, torch.bitwise_right_shift)), \
        [torch.tensor(v).to(t) for t in (torch.int8, torch.int32, torch.int64) for v in (a, b)]
    a, b = np.meshgrid([0, 0.5, -1, 2, INF, NAN], [0, 1, 2, 3, 5, 2.5, -3, 1e30, INF, NAN])
    yield "degrees", lambda x, n: (s.chebyshev_polynomial_t(x, n), s.hermite_polynomial_h(x, n), s.laguerre_polynomial_l(x, n),
                                   s.legendre_polynomial_p(x, n)), [torch.tensor(a), torch.tensor(b)]


def make(root, name, function, inputs, rtol, atol):
    import torch

    class Called(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors)
    try:
        results = Called()(*[x.clone() for x in inputs])
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        program = torch.export.export(Called(), tuple(inputs))
        folder = os.path.join(root, "export", re.sub(r"[^A-Za-z0-9_.]", "_", name))
        oracle.save_case(folder, program, [(inputs, results)], rtol=rtol, atol=atol)
    except Exception as error:
        print("cannot make %s: %s" % (name, str(error)[:100].replace("\n", " ")), flush=True)


def make_database(root, pattern):
    import numpy as np
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
    one, (first, second) = torch.tensor(reals()), pairs()
    first, second = torch.tensor(first), torch.tensor(second)
    a, b = (torch.tensor(x) for x in np.meshgrid(INTEGERS, INTEGERS))
    for info in op_db:
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        if "jiterator" in name or oracle.FREE.search(info.name) or (pattern and not pattern.search(name)):
            continue

        def case(kind, inputs, function=info.op, rtol=1e-4, atol=1e-6):
            if inputs[0].dtype in info.dtypes:
                make(root, name + "_" + kind, function, inputs, rtol, atol)
        if isinstance(info, UnaryUfuncInfo):
            options = info.sample_kwargs("cpu", torch.float32, one)[0]
            function = lambda x, op=info.op, options=options: op(x, **options)
            few = one[one.abs() < 1000]
            case("f32", [one], function)
            case("f64", [one.double()], function)
            case("f16", [few.half()], function, 2e-3, 1e-4)
            case("bf16", [few.bfloat16()], function, 1e-2, 1e-3)
            case("i32", [torch.tensor(INTEGERS, dtype=torch.int32)], function)
            case("u8", [torch.tensor([0, 1, 2, 3, 7, 100, 127, 128, 200, 255], dtype=torch.uint8)], function)
            case("bool", [torch.tensor([True, False])], function)
        elif isinstance(info, BinaryUfuncInfo):
            case("f32", [first, second])
            case("f64", [first.double(), second.double()])
            for kind, dtype in (("i32", torch.int32), ("i64", torch.int64), ("i8", torch.int8)):
                case(kind, [a.to(dtype), b.to(dtype)])
                case(kind + "_no_zero", [a.to(dtype), torch.where(b == 0, 3, b).to(dtype)])
            case("mixed", [a.int(), torch.where(b == 0, 1, b).float() / 4])


def show(folder, tombolo, count=6):
    """Some elements that differ, with the inputs they come from."""
    import numpy as np
    arrays = np.load(os.path.join(folder, "io.npz"))
    inputs = [arrays[k] for k in sorted(k for k in arrays if k.startswith("in_"))]
    given, made = os.path.join(folder, "given.npz"), os.path.join(folder, "made.npz")
    np.savez(given, **{"arr_%d" % i: x for i, x in enumerate(inputs)})
    done = subprocess.run([tombolo, "run", os.path.join(folder, "model.pt2"), "--inputs", given, "--outputs", made, "--quiet"],
                          capture_output=True, text=True)
    print("  " + os.path.basename(folder))
    if done.returncode:
        return print("    " + done.stderr.strip().replace("\n", " ")[:300])
    with open(os.path.join(folder, "case.json")) as file:
        case = json.load(file)
    for i, ours in enumerate(array for name, array in np.load(made).items() if not name.endswith(".json")):
        wanted = arrays["out_%d" % i]
        with np.errstate(all="ignore"):
            bad = np.argwhere(~np.isclose(ours, wanted, rtol=case["rtol"], atol=case["atol"], equal_nan=True))
        for at in bad[::max(1, len(bad) // count)]:
            at = tuple(at)
            print("    output %d of %s: %s, expected %s" % (
                i, ", ".join(str(x[at]) for x in inputs if x.shape == ours.shape), ours[at], wanted[at]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--filter")
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--tombolo", default="build/release/tombolo")
    args = parser.parse_args()
    import torch
    torch.set_num_threads(1)
    if args.groups:
        for name, function, inputs in groups():
            loose = name in ("bessel", "airy")  # PyTorch's own polynomials are good to 1e-6
            make(args.folder, "values_" + name, function, inputs, 1e-5 if loose else 2e-3 if name == "halves" else 1e-6, 4e-6 if loose else 1e-12)
    else:
        make_database(args.folder, re.compile(args.filter) if args.filter else None)
    done = subprocess.run([args.tombolo, "conformance", args.folder, "--json", "--jobs", "1"], capture_output=True, text=True)
    cases = json.loads(done.stdout)["cases"]
    failed = [c for c in cases if c["status"] != "passed"]
    for case in failed:
        show(os.path.join(args.folder, "export", case["name"].split("/")[-1]), args.tombolo)
    print("%d of %d agree" % (len(cases) - len(failed), len(cases)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
