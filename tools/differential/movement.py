"""Generators: data movement, types, sequences, optionals, control flow, text."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .core import DTYPES, FLOATS, Case, Skip, elem_type
from .elementwise import generator


@generator("Identity")
def identity(g):
    return Case(g, [g.arr(g.shape(), g.dtype("V"))])


@generator("Shape")
def shape(g):
    x = g.arr(g.shape(), g.dtype("T"))
    attributes = {}
    if g.chance(0.6):
        attributes["start"] = g.int(-5, 5)
    if g.chance(0.6):
        attributes["end"] = g.int(-5, 5)
    return Case(g, [x], attributes)


@generator("Size", "NonZero")
def plain(g):
    return Case(g, [g.arr(g.shape(1 if g.op == "NonZero" else 0, 4), g.dtype("T"), special=0)])


CASTS = ("float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool", "string")


@generator("Cast", "CastLike")
def cast(g):
    source, to = g.dtype("T1", CASTS), g.dtype("T2", CASTS)
    if source == "string":
        if to in ("bool", "string"):
            to = "float"
        values = ["1", "-2.5", "1e3", "NaN", "-INF", "+inf", "0", "7.25"] if to in FLOATS else ["1", "-2", "77", "0"]
        if to.startswith("uint"):
            values = ["1", "2", "0"]
        x = np.array([g.pick(*values) for _ in range(g.int(1, 5))], np.object_)
    else:
        x = g.arr(g.shape(), source, special=0.5 if to in FLOATS else 0)
        if source in FLOATS and to.startswith("uint"):
            x = np.abs(x)
        if to == "string":
            x = g.arr(g.shape(), source, special=0, low=0 if source.startswith("u") else -9, high=9)
            if source in FLOATS:
                x = np.round(x)
    if g.op == "CastLike":
        return Case(g, [x, g.arr((1,), to)])
    return Case(g, [x], {"to": elem_type(g.arr((1,), to))})


@generator("BitCast")
def bit_cast(g):
    same = {1: ("int8", "uint8"), 2: ("int16", "uint16", "float16", "bfloat16"),
            4: ("int32", "uint32", "float"), 8: ("int64", "uint64", "double")}
    family = same[g.pick(1, 2, 4, 8)]
    return Case(g, [g.arr(g.shape(), g.pick(*family))], {"to": elem_type(g.arr((1,), g.pick(*family)))})


@generator("Reshape")
def reshape(g):
    x = g.arr(g.shape(), g.dtype("T"))
    sizes, rest = [], x.size
    while rest > 1 and g.chance(0.7):
        divisor = g.pick(*[d for d in range(1, rest + 1) if rest % d == 0])
        sizes.append(divisor)
        rest //= divisor
    sizes.append(rest)
    attributes = {}
    if x.size and g.chance(0.5):
        sizes[g.int(0, len(sizes) - 1)] = -1
    elif x.size == 0:
        attributes = {"allowzero": 1}
        sizes = list(x.shape)
    elif x.ndim and g.chance(0.3):
        sizes = [0, -1] if x.ndim > 1 else [0]
    return Case(g, [x, np.array(sizes, np.int64)], attributes)


@generator("Flatten")
def flatten(g):
    shape = g.shape(0, 4)
    return Case(g, [g.arr(shape, g.dtype("T"))], {"axis": g.int(-len(shape), len(shape))})


@generator("Transpose")
def transpose(g):
    shape = g.shape(0, 5)
    attributes = {"perm": [int(a) for a in g.rng.permutation(len(shape))]} if g.chance(0.8) and shape else {}
    return Case(g, [g.arr(shape, g.dtype("T"))], attributes)


@generator("Squeeze")
def squeeze(g):
    shape = [g.pick(1, d) for d in g.shape(0, 4)]
    ones = [i for i, d in enumerate(shape) if d == 1]
    axes = [i - (len(shape) if g.chance(0.3) else 0) for i in ones if g.chance(0.6)]
    return Case(g, [g.arr(shape, g.dtype("T"))] + ([np.array(axes, np.int64)] if axes else []))


@generator("Unsqueeze")
def unsqueeze(g):
    shape = g.shape(0, 3)
    rank = len(shape) + g.int(1, 3)
    axes = [int(a) for a in g.rng.permutation(rank)[:rank - len(shape)]]
    return Case(g, [g.arr(shape, g.dtype("T")), np.array([a - (rank if g.chance(0.3) else 0) for a in axes], np.int64)])


@generator("Concat")
def concat(g):
    shape, kind = list(g.shape(1, 4)), g.dtype("T")
    axis = g.axis(len(shape))
    parts = []
    for _ in range(g.int(1, 4)):
        shape[axis] = g.int(0, 3)
        parts.append(g.arr(shape, kind))
    return Case(g, parts, {"axis": axis})


@generator("Split")
def split(g):
    shape = list(g.shape(1, 4, empty=0))
    axis = g.axis(len(shape))
    kind = g.dtype("T")
    if g.chance(0.5):
        sizes = [g.int(0, 3) for _ in range(g.int(1, 4))]
        shape[axis] = sum(sizes)
        return Case(g, [g.arr(shape, kind), np.array(sizes, np.int64)], {"axis": axis}, outputs=len(sizes))
    count = g.int(1, 4)
    shape[axis] = g.int(count, 9)
    if -(-shape[axis] // count) * (count - 1) >= shape[axis]:
        shape[axis] = count
    return Case(g, [g.arr(shape, kind)], {"axis": axis, "num_outputs": count}, outputs=count)


@generator("Slice")
def slice_(g):
    shape = g.shape(1, 4)
    axes = [a for a in range(len(shape)) if g.chance(0.6)] or [0]
    kind = g.pick(np.int32, np.int64)
    bound = lambda: [g.pick(g.int(-6, 6), g.int(-6, 6), 10**6, -10**6) for _ in axes]
    inputs = [g.arr(shape, g.dtype("T")), np.array(bound(), kind), np.array(bound(), kind)]
    signed = [a - (len(shape) if g.chance(0.3) else 0) for a in axes]
    inputs.append(np.array(signed, kind))
    if g.chance(0.6):
        inputs.append(np.array([g.pick(1, 2, 3, -1, -2) for _ in axes], kind))
    return Case(g, inputs)


@generator("Gather")
def gather(g):
    shape = g.shape(1, 4, empty=0)
    axis = g.axis(len(shape))
    n = shape[axis]
    return Case(g, [g.arr(shape, g.dtype("T")),
                    g.rng.integers(-n, n, size=g.shape(0, 3)).astype(g.pick(np.int32, np.int64))], {"axis": axis})


@generator("GatherElements")
def gather_elements(g):
    shape = g.shape(1, 4, empty=0)
    axis = g.axis(len(shape))
    n = shape[axis]
    other = [g.int(1, d) for d in shape]
    other[axis] = g.int(1, 5)
    return Case(g, [g.arr(shape, g.dtype("T")),
                    g.rng.integers(-n, n, size=other).astype(g.pick(np.int32, np.int64))], {"axis": axis})


@generator("GatherND")
def gather_nd(g):
    shape = g.shape(1, 4, empty=0)
    batch = g.int(0, min(2, len(shape) - 1))
    last = g.int(1, len(shape) - batch)
    lead = shape[:batch] + g.shape(0 if batch else 1, 2, 3, empty=0)
    parts = [g.rng.integers(-shape[batch + k], shape[batch + k], size=lead) for k in range(last)]
    return Case(g, [g.arr(shape, g.dtype("T")), np.stack(parts, -1).astype(np.int64)],
                {"batch_dims": batch} if batch else {})


def reduction(g, kind):
    if kind in ("string", "bool") or kind.startswith("complex"):
        return None
    return g.pick(None, "none", "add", "mul", "min", "max")


@generator("ScatterElements")
def scatter_elements(g):
    shape, kind = g.shape(1, 4, empty=0), g.dtype("T")
    axis = g.axis(len(shape))
    n = shape[axis]
    other = [g.int(1, d) for d in shape]
    how = reduction(g, kind)
    if how in (None, "none"):  # without duplicates, whose order is open
        order = np.argsort(g.rng.random([n if a == axis % len(shape) else d for a, d in enumerate(other)]), axis=axis)
        index = np.take(order, range(other[axis]), axis=axis)
    else:
        index = g.rng.integers(-n, n, size=other)
    attributes = {"axis": axis} | ({"reduction": how} if how else {})
    return Case(g, [g.arr(shape, kind, special=0), index.astype(g.pick(np.int32, np.int64)),
                    g.arr(index.shape, kind, special=0)], attributes)


@generator("ScatterND")
def scatter_nd(g):
    shape, kind = g.shape(1, 4, empty=0), g.dtype("T")
    last = g.int(1, len(shape))
    how = reduction(g, kind)
    total = int(np.prod(shape[:last]))
    count = g.int(1, min(total, 6))
    places = g.rng.permutation(total)[:count] if how in (None, "none") else g.rng.integers(0, total, count)
    index = np.stack(np.unravel_index(places, shape[:last]), -1).astype(np.int64)
    return Case(g, [g.arr(shape, kind, special=0), index, g.arr((count, *shape[last:]), kind, special=0)],
                {"reduction": how} if how else {})


@generator("TensorScatter")
def tensor_scatter(g):
    batch, length, size = g.int(1, 3), g.int(2, 6), g.int(1, 3)
    update = g.int(1, length)
    mode = g.pick("linear", "circular")
    start = [g.int(0, length - update if mode == "linear" else length - 1) for _ in range(batch)]
    kind = g.dtype("T")
    return Case(g, [g.arr((batch, length, size), kind), g.arr((batch, update, size), kind), np.array(start, np.int64)],
                {"mode": mode, "axis": g.pick(1, -2)})


@generator("Expand")
def expand(g):
    shape = [g.pick(1, d) for d in g.shape(0, 4)]
    target = [d if g.chance(0.4) else (g.int(1, 4) if d == 1 else g.pick(1, d)) for d in shape]
    target = [g.int(1, 3) for _ in range(g.int(0, 2))] + target
    if g.chance(0.2):
        target = target[g.int(0, len(target)):]
    return Case(g, [g.arr(shape, g.dtype("T")), np.array(target, np.int64)])


@generator("Tile")
def tile(g):
    shape = g.shape(1, 4)
    return Case(g, [g.arr(shape, g.dtype("T")), np.array([g.int(0 if g.chance(0.1) else 1, 3) for _ in shape], np.int64)])


@generator("Pad")
def pad(g):
    shape, kind = g.shape(1, 4, empty=0), g.dtype("T")
    mode = g.pick("constant", "reflect", "edge", "wrap")
    axes = list(range(len(shape)))
    explicit = g.chance(0.4)
    if explicit:
        axes = [a for a in axes if g.chance(0.6)] or [0]
    most = lambda a: {"constant": 3, "edge": 3, "reflect": shape[a] - 1, "wrap": shape[a]}[mode]
    pads = [g.int(-1 if mode == "constant" and shape[a] > 2 and g.chance(0.3) else 0, most(a)) for _ in range(2) for a in axes]
    value = g.arr((), kind, special=0) if mode == "constant" and g.chance(0.6) else None
    return Case(g, [g.arr(shape, kind), np.array(pads, np.int64), value, np.array(axes, np.int64) if explicit else None],
                {"mode": mode})


@generator("Where")
def where(g):
    shape, kind = g.shape(), g.dtype("T")
    return Case(g, [g.arr(g.broadcastable(shape), "bool"), g.arr(shape, kind), g.arr(g.broadcastable(shape), kind)])


@generator("Compress")
def compress(g):
    shape = g.shape(1, 4, empty=0)
    x = g.arr(shape, g.dtype("T"))
    if g.chance(0.4):
        return Case(g, [x, g.arr((g.int(1, x.size),), "bool")])
    axis = g.axis(len(shape))
    return Case(g, [x, g.arr((g.int(1, shape[axis]),), "bool")], {"axis": axis})


@generator("OneHot")
def one_hot(g):
    depth, kind = g.int(1, 6), g.dtype("T3")
    shape = g.shape(0, 3)
    index = g.arr(shape, g.pick("int64", "int32", "float"), special=0, low=-depth, high=depth - 1)
    if index.dtype.kind == "f":
        index = np.round(index)
    return Case(g, [index, np.array(depth, np.int64) if g.chance(0.5) else np.array([depth], np.int64), g.arr((2,), kind)],
                {"axis": g.int(-len(shape) - 1, len(shape))} if g.chance(0.7) else {})


@generator("EyeLike")
def eye_like(g):
    attributes = {"k": g.int(-3, 3)} if g.chance(0.6) else {}
    if g.chance(0.5):
        attributes["dtype"] = g.pick(1, 11, 6, 7, 9)
    return Case(g, [g.arr((g.int(1, 5), g.int(1, 5)), g.dtype("T1", ("float", "double", "int32", "int64", "uint64")))], attributes)


@generator("Constant")
def constant(g):
    kind = g.pick("value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings")
    values = {"value_float": 1.5, "value_floats": [1.5, -2.0], "value_int": 7, "value_ints": [1, -2, 3],
              "value_string": "text", "value_strings": ["a", "b"]}
    if kind != "value":
        return Case(g, [], {kind: values[kind]})
    x = g.arr(g.shape(), g.dtype("T", ("float", "double", "int32", "int64", "bool", "float16", "uint8")))
    return Case(g, [], {"value": numpy_helper.from_array(x)})


@generator("ConstantOfShape")
def constant_of_shape(g):
    x = g.arr((1,), g.dtype("T2", ("float", "double", "int32", "int64", "bool", "float16", "uint8")))
    return Case(g, [np.array(g.shape(), np.int64)], {"value": numpy_helper.from_array(x)} if g.chance(0.8) else {})


@generator("DepthToSpace", "SpaceToDepth")
def blocks(g):
    b = g.int(1, 3)
    n, c, h, w = (g.int(1, 3) for _ in range(4))
    if g.op == "DepthToSpace":
        return Case(g, [g.arr((n, c * b * b, h, w), g.dtype("T"))], {"blocksize": b, "mode": g.pick("DCR", "CRD")})
    return Case(g, [g.arr((n, c, h * b, w * b), g.dtype("T"))], {"blocksize": b})


@generator("CenterCropPad")
def center_crop_pad(g):
    shape = g.shape(1, 4, empty=0)
    axes = [a for a in range(len(shape)) if g.chance(0.6)] or [0]
    attributes = {"axes": [a - (len(shape) if g.chance(0.3) else 0) for a in axes]}
    if len(axes) == len(shape) and g.chance(0.5):
        attributes = {}
    return Case(g, [g.arr(shape, g.dtype("T")), np.array([g.int(1, 8) for _ in axes], g.pick(np.int32, np.int64))], attributes)


@generator("Trilu")
def trilu(g):
    shape = g.shape(2, 4, empty=0.1)
    k = np.array(g.int(-6, 6), np.int64) if g.chance(0.7) else None
    return Case(g, [g.arr(shape, g.dtype("T")), k], {"upper": g.int(0, 1)} if g.chance(0.8) else {})


@generator("ReverseSequence")
def reverse_sequence(g):
    shape = g.shape(2, 4, empty=0)
    time = g.int(0, 1)
    return Case(g, [g.arr(shape, g.dtype("T")), g.rng.integers(1, shape[time] + 1, shape[1 - time]).astype(np.int64)],
                {"time_axis": time, "batch_axis": 1 - time})


@generator("Unique")
def unique(g):
    shape = g.shape(1, 3, empty=0)
    x = g.arr(shape, g.dtype("T"), special=0)
    if x.dtype.kind == "f":
        x = np.round(x)
    return Case(g, [x], ({"axis": g.axis(len(shape))} if g.chance(0.5) else {}) | {"sorted": g.int(0, 1)}, outputs=4)


@generator("TopK")
def topk(g):
    shape = g.shape(1, 4, empty=0)
    axis = g.axis(len(shape))
    return Case(g, [g.arr(shape, g.dtype("T"), special=0), g.i64(g.int(0 if g.chance(0.1) else 1, shape[axis]))],
                {"axis": axis, "largest": g.int(0, 1), "sorted": 1}, outputs=2)


@generator("Col2Im")
def col2im(g):
    size = [g.int(3, 6), g.int(3, 6)]
    block = [g.int(1, 3), g.int(1, 3)]
    strides, pads = [g.int(1, 2), g.int(1, 2)], [g.int(0, 1) for _ in range(4)]
    dilations = [g.int(1, 2) if block[k] > 1 and size[k] > 4 else 1 for k in range(2)]
    count = int(np.prod([(size[k] + pads[k] + pads[k + 2] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1 for k in range(2)]))
    return Case(g, [g.arr((g.int(1, 2), g.int(1, 2) * block[0] * block[1], count), g.dtype("T", ("float", "double", "int32")), special=0),
                    np.array(size, np.int64), np.array(block, np.int64)],
                {"strides": strides, "pads": pads, "dilations": dilations})


def items(g, kind, count=None):
    return [g.arr(g.shape(0, 3), kind) for _ in range(count or g.int(1, 4))]


SEQUENCE_TYPES = ("float", "double", "int32", "int64", "string", "bool")


@generator("SequenceConstruct")
def sequence_construct(g):
    return Case(g, items(g, g.dtype("T", SEQUENCE_TYPES)))


@generator("SequenceAt", "SequenceErase", "SequenceLength", "SequenceInsert")
def sequence(g):
    kind = g.pick(*SEQUENCE_TYPES)
    values = items(g, kind)
    place = np.array(g.int(-len(values), len(values) - 1), g.pick(np.int32, np.int64))
    if g.op == "SequenceLength":
        return Case(g, [values])
    if g.op == "SequenceInsert":
        place = np.array(g.int(-len(values), len(values)), np.int64) if g.chance(0.7) else None
        return Case(g, [values, g.arr(g.shape(0, 2), kind), place])
    if g.op == "SequenceErase" and g.chance(0.3):
        place = None
    return Case(g, [values, place])


@generator("SequenceEmpty")
def sequence_empty(g):
    return Case(g, [], {"dtype": g.pick(1, 7, 11)})


@generator("SplitToSequence")
def split_to_sequence(g):
    shape = list(g.shape(1, 3, empty=0))
    axis = g.axis(len(shape))
    kind = g.dtype("T", SEQUENCE_TYPES)
    how = g.pick("each", "size", "list")
    if how == "list":
        sizes = [g.int(1, 3) for _ in range(g.int(1, 3))]
        shape[axis] = sum(sizes)
        return Case(g, [g.arr(shape, kind), np.array(sizes, np.int64)], {"axis": axis})
    size = np.array(g.int(1, 3), np.int64) if how == "size" else None
    return Case(g, [g.arr(shape, kind), size], {"axis": axis} | ({"keepdims": g.int(0, 1)} if how == "each" else {}))


@generator("ConcatFromSequence")
def concat_from_sequence(g):
    shape, kind = list(g.shape(1, 3, empty=0)), g.dtype("T", SEQUENCE_TYPES)
    new = g.int(0, 1)
    axis = g.axis(len(shape) + new)
    values = []
    for _ in range(g.int(1, 3)):
        if not new:
            shape[axis] = g.int(1, 3)
        values.append(g.arr(shape, kind))
    return Case(g, [values], {"axis": axis, "new_axis": new})


def value_infos(names, kinds):
    return [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds)]


@generator("If")
def if_(g):
    make = lambda op, name: helper.make_graph(
        [helper.make_node("Constant", [], ["c" + name], value=numpy_helper.from_array(np.float32([1.5]))),
         helper.make_node(op, ["c" + name, "c" + name], [name])], name, [], value_infos([name], [1]))
    return Case(g, [np.array(g.chance(0.5))], {"then_branch": make("Add", "t"), "else_branch": make("Mul", "e")})


@generator("Loop")
def loop(g):
    stop = g.int(0, 6)
    body = helper.make_graph(
        [helper.make_node("Constant", [], ["limit"], value=numpy_helper.from_array(np.array(stop, np.int64))),
         helper.make_node("Less", ["i", "limit"], ["k2"]),
         helper.make_node("Cast", ["i"], ["f"], to=1),
         helper.make_node("Add", ["a", "f"], ["a2"]),
         helper.make_node("Mul", ["a2", "a2"], ["s"])], "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("k", 9, []),
         helper.make_tensor_value_info("a", 1, [None])],
        [helper.make_tensor_value_info("k2", 9, []), helper.make_tensor_value_info("a2", 1, [None]),
         helper.make_tensor_value_info("s", 1, [None])])
    trip = np.array(g.int(1, 6), np.int64) if g.chance(0.8) else None
    cond = np.array(True) if g.chance(0.7) or trip is None else None
    return Case(g, [trip, cond, g.arr((g.int(1, 3),), "float", special=0)], {"body": body}, outputs=2)


@generator("Scan")
def scan(g):
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "e"], ["a2"]), helper.make_node("Mul", ["a2", "e"], ["o"])], "body",
        [helper.make_tensor_value_info(n, 1, [None]) for n in "ae"],
        [helper.make_tensor_value_info(n, 1, [None]) for n in ("a2", "o")])
    size, steps, axis = g.int(1, 3), g.int(1, 4), g.int(0, 1)
    shape = (steps, size) if axis == 0 else (size, steps)
    attributes = {"body": body, "num_scan_inputs": 1, "scan_input_axes": [axis]}
    if g.chance(0.5):
        attributes |= {"scan_input_directions": [g.int(0, 1)], "scan_output_directions": [g.int(0, 1)]}
    if g.chance(0.4):
        attributes["scan_output_axes"] = [g.pick(0, 1, -1)]
    return Case(g, [g.arr((size,), "float", special=0), g.arr(shape, "float", special=0)], attributes, outputs=2)


@generator("StringConcat")
def string_concat(g):
    shape = g.shape(0, 3)
    return Case(g, [g.arr(shape, "string"), g.arr(g.broadcastable(shape), "string")])


@generator("StringSplit")
def string_split(g):
    words = np.array([g.pick("a b c", "  x  y ", "", "one", "a,b,,c", ",") for _ in range(g.int(1, 4))], np.object_)
    attributes = {"delimiter": g.pick(" ", ",", "", "b")} if g.chance(0.7) else {}
    if g.chance(0.5):
        attributes["maxsplit"] = g.int(0, 3)
    return Case(g, [words], attributes, outputs=2)


@generator("StringNormalizer")
def string_normalizer(g):
    words = np.array([g.pick("Monday", "tuesday", "WEDNESDAY", "été", "ÀB", "x") for _ in range(g.int(1, 5))], np.object_)
    attributes = {"case_change_action": g.pick("NONE", "LOWER", "UPPER"), "is_case_sensitive": g.int(0, 1)}
    if g.chance(0.6):
        attributes["stopwords"] = ["monday", "x"]
    return Case(g, [words if g.chance(0.6) else words[None]], attributes)


@generator("RegexFullMatch")
def regex(g):
    return Case(g, [g.arr(g.shape(0, 3), "string")], {"pattern": g.pick("[a-z]+", ".*", r"\d+", "x y.*", "(a|B)?")})


@generator("TfIdfVectorizer")
def tfidf(g):
    low = g.int(1, 2)
    high = g.int(low, 2)
    x = g.rng.integers(0, 6, size=g.pick((8,), (2, 6))).astype(g.pick(np.int32, np.int64))
    return Case(g, [x], {"mode": g.pick("TF", "IDF", "TFIDF"), "min_gram_length": low, "max_gram_length": high,
                         "max_skip_count": g.int(0, 2), "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4],
                         "pool_int64s": [2, 3, 5, 5, 4, 1, 2], "weights": [1.0, 0.5, 2.0, 1.5, 1.0]})


@generator("OptionalHasElement", "OptionalGetElement")
def optional(g):
    return Case(g, [g.arr(g.shape(), g.pick(*SEQUENCE_TYPES))])


@generator("Optional")
def make_optional(g):
    value = g.arr(g.shape(), g.pick(*SEQUENCE_TYPES)) if g.chance(0.7) else items(g, "float")
    case = Case(g, [value], before=[helper.make_node("Optional", ["i0"], ["held"])], node_inputs=["held"])
    case.op = "OptionalGetElement"
    return case


@generator("Scatter")
def scatter(g):
    case = scatter_elements(g)
    case.attributes.pop("reduction", None)
    n = case.inputs[0].shape[case.attributes["axis"]]
    count = case.inputs[1].shape[case.attributes["axis"]]
    order = np.argsort(g.rng.random([n if a == case.attributes["axis"] % case.inputs[0].ndim else d for a, d in enumerate(
        case.inputs[1].shape)]), axis=case.attributes["axis"])
    case.inputs[1] = np.take(order, range(count), axis=case.attributes["axis"]).astype(np.int64)
    case.opset = case.extra["opset"] = 10
    return case


@generator("Upsample")
def upsample(g):
    rank = g.pick(2, 4)
    shape = [g.int(1, 5) for _ in range(rank)] if rank == 2 else [1, g.int(1, 2), g.int(1, 5), g.int(1, 5)]
    scales = [1.0] * (rank - 2) + [g.pick(1.0, 2.0, 3.0, 1.5) for _ in range(2)]
    mode = g.pick("nearest", "linear")
    return Case(g, [g.arr(shape, "float" if mode == "linear" else g.pick("float", "uint8", "int32"), special=0),
                    np.array(scales, np.float32)], {"mode": mode}, opset=9)


@generator("Bernoulli")
def bernoulli(g):
    """Certain draws: the rest is tests/run/distribution.test."""
    x = g.arr(g.shape(), "bool").astype(g.pick(np.float32, np.float64, np.float16))
    return Case(g, [x], {"dtype": g.pick(1, 6, 7, 9, 11)} if g.chance(0.7) else {}, random=True)


@generator("Multinomial")
def multinomial(g):
    rows, classes = g.int(1, 4), g.int(1, 6)
    x = np.full((rows, classes), -1e4, np.float32)
    x[np.arange(rows), g.rng.integers(0, classes, rows)] = 0
    return Case(g, [x], {"sample_size": g.int(1, 5), "dtype": g.pick(6, 7)}, opset=21)


@generator("ImageDecoder")
def image_decoder(g):
    import io

    import PIL.Image

    h, w = g.int(1, 20), g.int(1, 20)
    pixels = g.rng.integers(0, 256, (h, w, 3)).astype(np.uint8)
    if g.chance(0.5):  # smooth, so that lossy formats keep something
        pixels = np.linspace(0, 255, h * w * 3).reshape(h, w, 3).astype(np.uint8)
    kind, options = g.pick(("PNG", {}), ("BMP", {}), ("PPM", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}),
                           ("TIFF", {"compression": "tiff_adobe_deflate"}), ("TIFF", {"compression": "packbits"}),
                           ("WEBP", {"lossless": True}), ("WEBP", {}), ("JPEG2000", {"irreversible": False}), ("JPEG", {"quality": 95, "subsampling": 0}))
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, format=kind, **options)
    return Case(g, [np.frombuffer(file.getvalue(), np.uint8)], {"pixel_format": g.pick("RGB", "BGR", "Grayscale")}, random=True, kind=kind)


@generator("SequenceMap")
def sequence_map(g):
    body = helper.make_graph([helper.make_node("Mul", ["e", "w"], ["o"])], "body", value_infos(["e", "w"], [1, 1]), value_infos(["o"], [1]))
    shape = g.shape(1, 2, empty=0)
    values = [g.arr(shape, "float", special=0) for _ in range(g.int(1, 3))]
    other = g.arr(shape, "float", special=0) if g.chance(0.5) else [g.arr(shape, "float", special=0) for _ in values]
    return Case(g, [values, other], {"body": body})
