"""Measures Tombolo beside ONNX Runtime on operators, short chains and small networks of random shapes, most of which nobody tuned for.

    python bench/shapes.py make FOLDER [--only REGEX] [--seed 1] [--count 20]
    python bench/shapes.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--runs 3] [--seconds 0.15] [--out FILE] [--onnxruntime LIB]

`make` writes --count models of each family of shapes_operators.py and shapes_models.py, named FAMILY_SEED_NUMBER; --only picks families there.
Sort the table by its ratio to see where to look: of one seed the lowest are shapes to look at, another seed says whether they are alone.
"""
import os
import random
import re

import numpy as np
import onnx
from onnx import helper as h

import beside
import shapes_models
import shapes_operators
from net import Net

FAMILIES = shapes_operators.FAMILIES | shapes_models.FAMILIES



class Pick(random.Random):
    """Picks one of some."""

    def __call__(self, some):
        return self.choice(list(some))


def values(rng, dtype, shape):
    if dtype.kind == "f":
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
    return rng.integers(0, 2, shape).astype(bool) if dtype.kind == "b" else rng.integers(1, 100, shape).astype(dtype)


def make(folder, only, seed, count):
    for name, family in FAMILIES.items():
        made = 0
        for number in range(10 * count if re.search(only, name) else 0):
            n = Net(name, seed=seed * 1000 + number, opset=18)
            y = family(n, Pick(f"{name} {seed} {number}"))
            if y is None:
                continue
            graph = h.make_graph(n.nodes, name, n.inputs, [h.make_empty_tensor_value_info(y)], n.constants)
            domains = [h.make_opsetid("", n.opset)] + [h.make_opsetid(domain, version) for domain, version in n.domains.items()]
            model = onnx.shape_inference.infer_shapes(h.make_model(graph, opset_imports=domains, ir_version=10))
            result = model.graph.output[0].type.tensor_type
            if result.elem_type == 0:  # of a domain that inference does not know
                result.elem_type = n.inputs[0].type.tensor_type.elem_type if n.nodes[-1].op_type.startswith("QLinear") else onnx.TensorProto.FLOAT
            path = os.path.join(folder, f"{name}_{seed}_{number}")
            os.makedirs(path, exist_ok=True)
            onnx.save(model, os.path.join(path, "model.onnx"))
            feed = {i.name: values(n.rng, h.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type), [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in n.inputs}
            np.savez(os.path.join(path, "inputs.npz"), **feed)
            made += 1
            if made == count:
                break


def shapes(path):
    """What a row says of a model: its operators and the shapes of its inputs and constants."""
    graph = onnx.load(path).graph
    sizes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input] + [list(c.dims) for c in graph.initializer if len(c.dims) > 1]
    return f"{' '.join(node.op_type for node in graph.node)} {' '.join(str(s) for s in sizes)}"


if __name__ == "__main__":
    parser, verbs, making, measuring = beside.parsers(__doc__)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    if args.does == "make":
        make(args.folder, args.only, args.seed, args.count)
    else:
        beside.measure(args, ["model", "shapes"], (((name, shapes(path)), path, beside.inputs_of(path)) for name, path in beside.models(args.folder, args.only)))
