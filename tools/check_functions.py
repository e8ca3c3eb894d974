#!/usr/bin/env python3
"""Runs the function bodies of our operators against the operators themselves.

    python3 tools/check_functions.py build/release/tombolo
    python3 tools/check_functions.py --json operators.json

Needs `pip install onnx==1.23.2 onnxruntime`. Each body with a fixed text is parsed by the official text parser
and run, on several inputs and attributes, by the official reference evaluator; so is the plain
operator, and both must agree. Exits with 1 if a body fails, differs, or has no case here.
"""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # ONNX Runtime, for opset 27
RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32) * 2
Y = RNG.normal(size=(2, 3, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.25)
I32 = RNG.integers(-5, 6, (2, 3, 4)).astype(np.int32)
I64 = I32.astype(np.int64)
AXES = np.array([0, 2], np.int64)
ALPHA = [{}, {"alpha": 0.375}]

# operator, or operator-version where versions differ -> list of (inputs, attributes).
FLOAT = [X, X.astype(np.float64), X.astype(np.float16)]


def each(inputs, attributes=({},)):
    return [([x], a) for x in inputs for a in attributes]


REDUCE = [
    ([POSITIVE, AXES], {}),
    ([POSITIVE, AXES], {"keepdims": 0}),
    ([POSITIVE], {"keepdims": 0}),
    ([POSITIVE.astype(np.float64), AXES[:1]], {}),
]
WINDOW = [
    ([np.array(n, kind)], a)
    for n, kind in ((10, np.int64), (7, np.int32))
    for a in ({}, {"periodic": 0}, {"output_datatype": TensorProto.DOUBLE})
]
THETA2 = RNG.normal(size=(2, 2, 3)).astype(np.float32)
THETA3 = RNG.normal(size=(2, 3, 4)).astype(np.float32)
CASES = {
    "AffineGrid": [
        ([t, np.array(s, np.int64)], {"align_corners": a})
        for t, s in ((THETA2, [2, 3, 5, 6]), (THETA3, [2, 3, 4, 5, 6]))
        for a in (0, 1)
    ],
    "BlackmanWindow": WINDOW,
    "HannWindow": WINDOW,
    "HammingWindow": WINDOW,
    "Celu": each([X], ALPHA),
    "DynamicQuantizeLinear": each([X, POSITIVE, -POSITIVE]),
    "Elu": each(FLOAT, ALPHA),
    "GreaterOrEqual": [([X, Y], {}), ([I32, np.array(2, np.int32)], {})],
    "LessOrEqual": [([X, Y], {}), ([I32, np.array(2, np.int32)], {})],
    "HardSigmoid": each(FLOAT, [{}, {"alpha": 0.5, "beta": 0.25}]),
    "HardSwish": each([X, X * 4]),
    "LeakyRelu": each(FLOAT, ALPHA),
    "Mish": each([X]),
    "PRelu": [([X, np.array([0.5, 0.25, 2, -1], np.float32)], {})],
    "Range": [
        ([np.array(a, k) for a in r], {})
        for r, k in (((1, 10, 2), np.int64), ((10, 1, -3), np.int32), ((0, 0, 1), np.int64),
                     ((1, 3, 0.5), np.float32), ((5, 1, 2), np.float64))
    ],
    "ReduceL1": REDUCE,
    "ReduceL2": REDUCE,
    "ReduceLogSum": REDUCE,
    "ReduceLogSumExp": REDUCE,
    "ReduceSumSquare": REDUCE + [([I64, AXES], {})],
    "Relu": each(FLOAT),
    "Selu": each(FLOAT, [{}, {"alpha": 1.5, "gamma": 2.0}]),
    "Shrink": each([X, X.astype(np.float64), I32], [{}, {"lambd": 1.5, "bias": 1.0}]),
    "Softplus": each([X, X * 100]),
    "Softsign": each([X]),
    "SwiGLU": [([X, Y], a) for a in ALPHA],
    "Swish": each([X], ALPHA),
    "ThresholdedRelu": each([X], ALPHA),
}
# (operator, opset) of bodies that the evaluator cannot run: its Loop stacks scalars with an axis
# too many and fails when it stacks none; its GatherElements takes no negative axis,
# its Flatten no axis from a reference.
BY_ONNXRUNTIME = {
    ("Range", 11), ("Range", 27), ("Softmax", 13), ("LogSoftmax", 13), ("RMSNormalization", 23),
}
C = RNG.normal(size=(2, 4, 3, 2)).astype(np.float32)
SOFTMAX = each(FLOAT, [{}, {"axis": 0}, {"axis": 1}])
LABELS = RNG.integers(0, 4, (2, 3, 2))
CASES |= {
    "SoftmaxCrossEntropyLoss": [
        ([C, LABELS, *weights], {"reduction": reduction, "ignore_index": ignored})
        for weights in ([], [np.array([0.5, 1, 2, 3], np.float32)])
        for reduction in ("none", "sum", "mean")
        for ignored in (-7, int(LABELS[0, 0, 0]))
    ],
    "Softmax": SOFTMAX,
    "LogSoftmax": SOFTMAX,
    "MeanVarianceNormalization": each([C, C.astype(np.float64)], [{}, {"axes": [1, 2]}]),
    "RMSNormalization": [
        ([x, np.ones(x.shape[a:], x.dtype) * x.dtype.type(1.5)], {"axis": a, "epsilon": 1e-3})
        for x in FLOAT
        for a in (-1, 1, 0)
    ],
} | {
    # Version 18 scales by group, later ones by channel.
    f"GroupNormalization-{version}": [
        ([C, RNG.normal(size=n).astype(np.float32), RNG.normal(size=n).astype(np.float32)],
         {"num_groups": 2, "epsilon": 1e-3})
    ]
    for version, n in ((18, 2), (21, 4))
}
# Where the reference evaluator has no kernel of its own, or a poorer formula: the definition.
SIGMOID = lambda x: 1 / (1 + np.exp(-x))
def group_norm(x, scale, bias, num_groups, epsilon):
    groups = x.reshape(x.shape[0], num_groups, -1)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(
        groups.var(2, keepdims=True) + epsilon)
    parts = normal.reshape(x.shape[0], len(scale), -1)
    return [(parts * scale[:, None] + bias[:, None]).reshape(x.shape)]


def rms_norm(x, scale, axis, epsilon):
    wide = x.astype(np.float32)
    axes = tuple(range(axis % x.ndim, x.ndim))
    return [wide / np.sqrt((wide**2).mean(axes, keepdims=True) + epsilon) * scale]


def mvn(x, axes=(0, 2, 3)):
    axes = tuple(axes)
    return [(x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)]


DEFINITIONS = {
    "GroupNormalization": group_norm,
    "RMSNormalization": rms_norm,
    "MeanVarianceNormalization": mvn,
    "SwiGLU": lambda a, b, alpha=1.0: [a * SIGMOID(alpha * a) * b],
    "Swish": lambda x, alpha=1.0: [x * SIGMOID(alpha * x)],
    "Softplus": lambda x: [np.logaddexp(np.float32(0), x)],
    "Celu": lambda x, alpha=1.0: [
        np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))
    ],
}


def model(op, opset, inputs, attributes, outputs, function=None):
    names = [f"in{k}" for k in range(len(inputs))]
    domain = "body" if function is not None else ""
    # The evaluator wants every input of a function named, if only by nothing.
    absent = [""] * (len(function.input) - len(names)) if function is not None else []
    node = helper.make_node(op, names + absent, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), None)
         for n, v in zip(names, inputs)],
        [onnx.ValueInfoProto(name=n) for n in outputs],
    )
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("body", 1)] if domain else [])
    made = helper.make_model(graph, opset_imports=imports,
                             functions=[function] if function is not None else [])
    return made, dict(zip(names, inputs))


def run(*arguments):
    made, feeds = model(*arguments)
    if arguments[:2] in BY_ONNXRUNTIME:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        made.ir_version = 8
        session = onnxruntime.InferenceSession(made.SerializeToString())
        return session.run(None, feeds)
    return ReferenceEvaluator(made).run(None, feeds)


def cases_of(record):
    name = record["name"]
    return CASES.get(f"{name}-{record['since_version']}", CASES.get(name, []))


def check(record, body):
    op, version = record["name"], record["since_version"]
    function = parser.parse_function(body["text"])
    function.domain = "body"
    outputs = [p["name"] for p in record["outputs"]]
    problems = []
    for inputs, attributes in cases_of(record):
        what = f"{op}-{version} {[str(x.dtype) for x in inputs]} {attributes}"
        try:
            got = run(op, body["opset"], inputs, attributes, outputs, function)
            if op in DEFINITIONS:
                want = DEFINITIONS[op](*inputs, **attributes)
            else:
                want = run(op, max(version, body["opset"]), inputs, attributes, outputs)
        except Exception as error:  # whatever the evaluator raises is a failed case
            problems.append(f"{what}: {type(error).__name__}: {error}")
            continue
        for g, w in zip(got, want):
            g, w = np.asarray(g), np.asarray(w)
            if op not in DEFINITIONS and g.dtype != w.dtype:
                problems.append(f"{what}: dtype {g.dtype}, expected {w.dtype}")
            tolerance = 2e-3 if g.dtype == np.float16 else 2e-6
            scale = 1 if g.dtype != np.uint8 else 0
            if g.shape != w.shape or not np.allclose(
                g.astype(np.float64), w.astype(np.float64), tolerance * 2, tolerance * scale,
                equal_nan=True,
            ):
                problems.append(f"{what}: got {g.ravel()[:6]}, expected {w.ravel()[:6]}")
    return problems


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--json":
        with open(sys.argv[2], encoding="utf-8") as file:
            text = file.read()
    elif len(sys.argv) == 2:
        text = subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, text=True,
                              check=True).stdout
    else:
        sys.exit(__doc__)
    np.seterr(all="ignore")
    bodies = problems = 0
    for record in json.loads(text)["operators"]:
        for body in record["functions"]:
            if body["text"] is None:
                continue
            bodies += 1
            found = check(record, body) if cases_of(record) else [f"{record['name']}: no case"]
            for problem in found:
                print(problem)
            problems += len(found)
    print(f"{bodies} function bodies run: {problems} problems")
    sys.exit(1 if problems or not bodies else 0)


if __name__ == "__main__":
    main()
