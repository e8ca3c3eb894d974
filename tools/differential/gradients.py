#!/usr/bin/env python3
"""Gradient of every operator against central differences of the peers' forward pass, in double precision.

    python3 tools/differential/gradients.py build/release/tombolo [--cases 20] [--op NAME]... [--seed 1]

Needs what run.py needs. The inputs are those that the operator's schema calls differentiable; the loss is the sum of
its floating-point outputs under random weights. A draw is left out where the function has a kink within the
step (the two one-sided differences disagree), and where the peer's forward pass is another (run.py's subject).
Exits with 1 if a gradient differs.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import onnx
from onnx import helper

from differential import elementwise, layers, movement  # noqa: F401 (they register generators)
from differential.core import Gen, Skip, build_model, type_of
from differential.run import all_operators, numpy_helper

STEP = 1e-5
MOST = 40  # elements that are differentiated in one case
TRAINING = "ai.onnx.preview.training"
# What the comparison cannot be made with.
LEFT_OUT = {
    "Erf": "the evaluator's erf is in single precision",
    "Gelu": "its erf is in single precision",
    "Dropout": "its schema calls the ratio differentiable, which means nothing; its data pass through",
}
DIFFERENTIABLE = onnx.defs.OpSchema.DifferentiationCategory.Differentiable


class Smooth(Gen):
    """Draws double precision wherever the type may be one, and neither NaN nor infinities."""

    def dtype(self, var="T", only=None):
        if var not in self.chosen and "double" in self.allowed(var) and (only is None or "double" in only):
            self.chosen[var] = "double"
        return super().dtype(var, only)

    def arr(self, shape, name, special=0.15, low=None, high=None, scale=2.0):
        return super().arr(shape, name, 0.0, low, high, scale)


def forward(model):
    """The forward pass as a function of feeds: ONNX Runtime's, else the reference evaluator's."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda feeds: session.run(None, feeds)
    except Exception:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(model)
        return lambda feeds: evaluator.run(None, feeds)


def differences(loss, feeds, xs):
    """Central differences of `loss` by the tensors `xs`."""
    base, gradients = loss(feeds), []
    for x in xs:
        gradient = np.zeros_like(feeds[x])
        for i in np.ndindex(feeds[x].shape):
            moved = dict(feeds)
            sides = []
            for step in (STEP, -STEP, STEP / 8, -STEP / 8):
                moved[x] = feeds[x].copy()
                moved[x][i] += step
                sides.append((loss(moved) - base) / step)
            size = 1 + max(map(abs, sides))
            if not np.isfinite(sides).all() or max(sides) - min(sides) > 2e-3 * size:
                raise Skip  # a kink or a jump within the step
            gradient[i] = (sides[0] + sides[1]) / 2
        gradients.append(gradient)
    return gradients


def with_gradient(model, feeds, xs, weights):
    """The model of one node with the loss behind it; its outputs are what the loss is made of and the gradients of `xs`."""
    graph, nodes, terms = model.graph, [], []
    for name, weight in weights.items():
        nodes.append(helper.make_node("Mul", [name, f"w_{name}"], [f"m_{name}"]))
        nodes.append(helper.make_node("ReduceSum", [f"m_{name}"], [f"s_{name}"], keepdims=0))
        terms.append(f"s_{name}")
    nodes.append(helper.make_node("Sum", terms, ["loss"]))
    zs = [n for n in [*feeds, *(f"w_{n}" for n in weights)] if n not in xs]
    nodes.append(helper.make_node("Gradient", [*xs, *zs], [f"d_{x}" for x in xs], domain=TRAINING, xs=xs, zs=zs, y="loss"))
    graph.node.extend(nodes)
    graph.input.extend(helper.make_value_info(f"w_{n}", type_of(w)) for n, w in weights.items())
    del graph.output[:]
    graph.output.extend(helper.make_value_info(n, type_of(w)) for n, w in weights.items())
    graph.output.extend(helper.make_value_info(f"d_{x}", type_of(feeds[x])) for x in xs)
    if not any(o.domain == TRAINING for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid(TRAINING, 1))
    return model


def draw(op, domain, opset, rng):
    """A model with Gradient, its inputs, and its outputs: the peer's, then the gradients that central differences give."""
    case = elementwise.GENERATORS[op](Smooth(op, domain, opset, rng))
    model, feeds = build_model(case)
    params = case_params(case)
    xs = [n for n, x in feeds.items() if isinstance(x, np.ndarray) and x.dtype == np.float64
          and params.get(n) == DIFFERENTIABLE]
    if not xs or not 0 < sum(feeds[x].size for x in xs) <= MOST or any(isinstance(x, (list, dict)) for x in feeds.values()):
        raise Skip
    run = forward(model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = run(feeds)
        weights = {f"o{k}": rng.normal(size=np.shape(o)) for k, o in enumerate(found)
                   if getattr(o, "dtype", None) == np.float64 and np.size(o)}
        if not weights:
            raise Skip

        def loss(values):
            outputs = run(values)
            return float(sum((outputs[int(n[1:])] * w).sum() for n, w in weights.items()))

        gradients = differences(loss, feeds, xs)
    expected = [found[int(n[1:])] for n in weights] + gradients
    return case, with_gradient(model, feeds, xs, weights), {**feeds, **{f"w_{n}": w for n, w in weights.items()}}, expected


def case_params(case):
    """Differentiation category of each named input."""
    schema = onnx.defs.get_schema(case.op, case.opset, case.domain)
    names = case.extra.get("node_inputs", [f"i{k}" for k in range(len(case.inputs))])
    return {n: schema.inputs[min(k, len(schema.inputs) - 1)].differentiation_category for k, n in enumerate(names) if n}


def run_operator(op, domain, opset, arguments):
    rng = np.random.default_rng([arguments.seed, *op.encode()])
    work = pathlib.Path(tempfile.mkdtemp(prefix="tombolo-gradients-"))
    cases = {}
    for _ in range(arguments.cases * 6):
        if len(cases) == arguments.cases:
            break
        try:
            case, model, feeds, expected = draw(op, domain, opset, rng)
        except Exception:  # Skip, or whatever a peer raises
            continue
        name = f"c{len(cases):04d}"
        data = work / name / "test_data_set_0"
        data.mkdir(parents=True)
        (work / name / "model.onnx").write_bytes(model.SerializeToString())
        for stem, values in (("input", feeds.values()), ("output", expected)):
            for k, value in enumerate(values):
                (data / f"{stem}_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(value)).SerializeToString())
        size = max(1.0, *(float(np.abs(g).max(initial=0)) for g in expected))
        (work / name / "case.json").write_text(json.dumps({"rtol": 1e-3, "atol": 1e-4 * size}))
        cases[name] = case
    failed, other = [], 0
    if cases:
        report = subprocess.run([arguments.tombolo, "conformance", str(work), "--json", "--jobs", "1", "--no-progress"],
                                capture_output=True, text=True)
        for result in json.loads(report.stdout)["cases"]:
            if result["status"] != "passed" and re.match('output "o|node .*(Mul, )', result["reason"]):
                other += 1
            elif result["status"] != "passed":
                name = pathlib.Path(result["name"]).name
                failed.append(f"{cases[name].describe()} | {result['reason']}")
                if arguments.keep:
                    shutil.copytree(work / name, pathlib.Path(arguments.keep) / f"{op}-{name}", dirs_exist_ok=True)
    shutil.rmtree(work)
    return len(cases), failed, other


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tombolo")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--op", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for the cases that differ")
    arguments = parser.parse_args()
    total, bad, without = 0, 0, []
    operators = all_operators()
    for op in arguments.op or sorted(set(operators) & set(elementwise.GENERATORS) - set(LEFT_OUT)):
        count, failed, other = run_operator(op, *operators[op], arguments)
        total, bad = total + count, bad + len(failed)
        if count == 0:
            without.append(op)
            continue
        print(f"{op}: {count} cases" + (f", {other} with another forward pass" if other else "")
              + (f", {len(failed)} DIFFER" if failed else ""), flush=True)
        for failure in failed[:4]:
            print("    " + failure)
    print(f"{total} cases, {bad} differ; no differentiable draw: {', '.join(without)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
