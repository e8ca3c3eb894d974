"""Random arrays and the machinery of tools/differential/run.py: one Case is one node with its inputs."""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

DTYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "bool": np.bool_, "string": np.str_, "complex64": np.complex64, "complex128": np.complex128,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
    "float4e2m1": ml_dtypes.float4_e2m1fn, "float8e8m0": ml_dtypes.float8_e8m0fnu,
}
NAMES = {np.dtype(v): k for k, v in DTYPES.items() if k != "string"}
FLOATS = ("float", "double", "float16", "bfloat16")
WORDS = ["", "a", "B", "hello", "Straße", "ñandú", "12", "x y z", "ΣΑΣ", "a-b"]
NEWEST = 26  # the newest operator set that ONNX Runtime takes


class Skip(Exception):
    """This draw gives no valid case."""


class Gen:
    """Draws for one case of one operator."""

    def __init__(self, op, domain, opset, rng):
        self.op, self.domain, self.opset, self.rng = op, domain, opset, rng
        self.schema = onnx.defs.get_schema(op, opset, domain)
        self.chosen = {}

    def allowed(self, var):
        for c in self.schema.type_constraints:
            if c.type_param_str == var:
                return [t[7:-1] for t in c.allowed_type_strs if t.startswith("tensor(")]
        raise KeyError(var)

    def dtype(self, var="T", only=None):
        """The element type of a type variable; float32 a third of the time, as models have it."""
        if var not in self.chosen:
            names = [n for n in self.allowed(var) if n in DTYPES and (only is None or n in only)]
            if not names:
                raise Skip
            common = "float" in names and self.rng.random() < 0.34
            self.chosen[var] = "float" if common else names[self.rng.integers(len(names))]
        return self.chosen[var]

    def int(self, low, high):
        """In [low, high], both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def chance(self, p):
        return self.rng.random() < p

    def shape(self, low=0, high=4, most=5, empty=0.04):
        dims = [self.int(1, most) for _ in range(self.int(low, high))]
        if dims and self.chance(empty):
            dims[self.int(0, len(dims) - 1)] = 0
        return tuple(dims)

    def broadcastable(self, shape):
        """A shape that broadcasts with `shape` in both directions."""
        other = [1 if self.chance(0.3) else d for d in shape]
        return tuple(other[self.int(0, len(other)):] if self.chance(0.4) else other)

    def axis(self, rank):
        axis = self.int(0, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    def axes(self, rank):
        count = self.int(0, rank)
        return [int(a) - (rank if self.chance(0.3) else 0)
                for a in self.rng.permutation(rank)[:count]]

    def arr(self, shape, name, special=0.15, low=None, high=None, scale=2.0):
        """Elements of a type by name, with NaN, infinities and extremes in some of the draws."""
        rng, shape = self.rng, tuple(shape)
        count = int(np.prod(shape, dtype=np.int64))
        if name == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if name == "string":
            return np.array([self.pick(*WORDS) for _ in range(count)], np.object_).reshape(shape)
        kind = np.dtype(DTYPES[name])
        if name.startswith("complex"):
            return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind)
        if name in FLOATS or name.startswith("float"):
            if low is not None:
                return np.asarray(rng.random(shape) * (high - low) + low).astype(kind)
            values = rng.normal(size=shape) * scale
            if self.chance(0.2):
                values = np.round(values)
            if count and self.chance(special):
                flat = values.reshape(-1)
                for _ in range(self.int(1, 3)):
                    flat[self.int(0, count - 1)] = self.pick(
                        np.nan, np.inf, -np.inf, 0.0, -0.0, 1e4, -1e4, 1e-6)
            with np.errstate(all="ignore"):
                return np.asarray(values).astype(kind)
        info = ml_dtypes.iinfo(kind) if name in ("int4", "uint4", "int2", "uint2") else np.iinfo(kind)
        least, most = int(info.min), int(info.max)
        a = max(least, -10 if low is None else low)
        b = min(most, 10 if high is None else high)
        values = rng.integers(a, b + 1, size=shape)
        if count and low is None and self.chance(special):
            values = values.astype(object)
            flat = values.reshape(-1)
            for _ in range(self.int(1, 3)):
                flat[self.int(0, count - 1)] = self.pick(least, most, most // 2)
        return np.asarray(values).astype(kind)

    def i64(self, *values):
        return np.array(values, np.int64)


class Case:
    """Inputs may be arrays, None for an absent one, or lists of arrays for sequences."""

    def __init__(self, gen, inputs, attributes=None, outputs=1, **extra):
        self.op, self.domain, self.opset = gen.op, gen.domain, gen.opset
        self.inputs, self.attributes = inputs, attributes or {}
        self.inputs = [[np.asarray(y) for y in x] if isinstance(x, list) else x for x in self.inputs]
        self.outputs, self.extra = outputs, extra

    def describe(self):
        text = [("none" if x is None else f"[{len(x)} items]" if isinstance(x, (list, dict))
                 else f"{type_name(x)}{list(x.shape)}") for x in self.inputs]
        plain = {k: v for k, v in self.attributes.items() if not hasattr(v, "SerializeToString")}
        return f"{self.op}-{self.opset} ({', '.join(text)}) {plain}"


def type_name(array):
    array = np.asarray(array)
    return "string" if array.dtype.kind in "OUS" else NAMES[array.dtype]


def elem_type(array):
    name = type_name(array)
    return getattr(TensorProto, {"float4e2m1": "FLOAT4E2M1"}.get(name, name.upper()))


def type_of(value):
    if isinstance(value, dict):
        key, item = next(iter(value.items()), (0, np.float32(0)))
        return helper.make_map_type_proto(TensorProto.STRING if isinstance(key, str) else TensorProto.INT64,
                                          helper.make_tensor_type_proto(elem_type(np.asarray(item, np.float32 if isinstance(item, float) else None)), []))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return helper.make_sequence_type_proto(type_of(value[0]))
    if isinstance(value, list):
        first = value[0] if value else np.zeros(0, np.float32)
        return helper.make_sequence_type_proto(
            helper.make_tensor_type_proto(elem_type(first), None))
    return helper.make_tensor_type_proto(elem_type(value), list(np.asarray(value).shape))


def build_model(case, expected=None):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(case.inputs)]
    outputs = [f"o{k}" for k in range(case.outputs)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(case.op, case.extra.get("node_inputs", names), outputs, domain=case.domain, **case.attributes)
    infos = []
    for k, name in enumerate(outputs):
        info = onnx.ValueInfoProto(name=name)
        if expected is not None:
            kind = type_of(expected[k])
            if kind.HasField("tensor_type"):
                kind.tensor_type.ClearField("shape")
            info.type.CopyFrom(kind)
        infos.append(info)
    graph = helper.make_graph(
        case.extra.get("before", []) + [node], "g",
        [helper.make_value_info(n, type_of(x)) for n, x in zip(names, case.inputs) if n], infos)
    imports = [helper.make_opsetid("", case.opset if not case.domain else NEWEST)]
    if case.domain:
        imports.append(helper.make_opsetid(case.domain, case.opset))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10 if case.opset <= 23 else 12)
    feeds = {n: x if isinstance(x, (list, dict)) else np.asarray(x) for n, x in zip(names, case.inputs) if n}
    return model, feeds
