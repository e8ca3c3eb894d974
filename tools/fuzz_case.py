"""What makers of random one-node models share (fuzz_kernels.py), and the models."""
import numpy as np
from onnx import helper as h
from onnx import numpy_helper as nh


def shape(r, rank, top=9):
    return [r.choice([1, 2, 3, 5, r.randint(1, top)]) for _ in range(rank)]


def floats(r, dims, scale=1.0):
    return (np.random.default_rng(r.getrandbits(32)).standard_normal(dims) * scale).astype(np.float32)


def numbers(r, dims, dtype):
    info = np.iinfo(dtype)
    low, high = max(info.min, -1000), min(info.max, 1000)
    return np.random.default_rng(r.getrandbits(32)).integers(low, high, dims, endpoint=True).astype(dtype)


class Case:
    def __init__(self):
        self.inputs, self.constants, self.attributes, self.outputs = {}, {}, {}, 1
        self.domain, self.names = "", []

    def add(self, name, value, constant=False):
        (self.constants if constant else self.inputs)[name] = value
        self.names.append(name)

    def skip(self):
        self.names.append("")


def undone(value):
    """An operator that undoes itself on such values, so that a node reads what dies there, which its result may be written over."""
    kind = np.asarray(value).dtype.kind
    return {"f": "Neg", "i": "Neg", "u": "BitwiseNot", "b": "Not"}.get(kind)


def build(op, case, dying=()):
    outputs = [f"y{i}" for i in range(case.outputs)]
    before = []
    for name in dying:
        value = np.asarray(case.inputs[name])
        before.append(h.make_node(undone(value), [name], [name + "_dies"]))
        case.inputs[name] = {"Neg": np.negative, "BitwiseNot": np.invert, "Not": np.logical_not}[undone(value)](value)
    node = h.make_node(op, [n + "_dies" if n in dying else n for n in case.names], outputs, domain=case.domain, **case.attributes)
    graph = h.make_graph(
        [*before, node], "fuzz",
        [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(np.asarray(v).dtype), np.asarray(v).shape) for n, v in case.inputs.items()],
        [h.make_empty_tensor_value_info(n) for n in outputs],
        [nh.from_array(np.asarray(v), n) for n, v in case.constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 24), h.make_opsetid("com.microsoft", 1), h.make_opsetid("ai.onnx.ml", 4)], ir_version=10)


def add_to_result(model, case, shape, r):
    """Adds what dies there to the first result, as residuals are, and now and then something behind it."""
    graph = model.graph
    case.inputs["residual"] = floats(r, list(shape))
    graph.input.append(h.make_tensor_value_info("residual", 1, shape))
    last = r.choice([None, None, "Relu", "Gelu", "Sigmoid"])
    both = ["y0", "residual_dies"]
    r.shuffle(both)
    graph.node.extend([h.make_node("Neg", ["residual"], ["residual_dies"]), h.make_node("Add", both, ["sum"])] + ([h.make_node(last, ["sum"], ["result"])] if last else []))
    graph.output[0].name = "result" if last else "sum"
