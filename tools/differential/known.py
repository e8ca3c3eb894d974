"""Differences with a known cause: rows of docs/differences.md, by operator.

`alone` rows hold where both others agree against one peer: the evaluator alone, or ONNX Runtime alone, where the
other one, asked for a second opinion on the same numbers, agrees with Tombolo."""

import numpy as np

ALONE = {
    "ONNX Runtime": {
        "Attention", "Cast", "CastLike", "Clip", "Gather", "GridSample", "Hardmax", "LogSoftmax",
        "MeanVarianceNormalization", "Mod",
        "QuantizeLinear", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        "Resize", "Shrink", "Sign", "StringSplit", "TreeEnsembleClassifier",
    },
    "reference": {
        "AveragePool", "ConvTranspose", "GlobalMaxPool", "LRN", "LogSoftmax", "LpNormalization", "LpPool", "MaxPool",
        "PRelu", "Pad", "ReduceL2", "ReduceMean", "Shape", "Slice", "Unique",
    },
}
ROWS = {}


def row(name, *operators):
    def register(test):
        for op in operators:
            ROWS.setdefault(op, []).append((name, test))
        return test
    return register


def is_integer(feeds):
    return any(x.dtype.kind in "iu" for x in list(feeds.values())[:1])


@row("the length of an inverse transform is 2 (n - 1)", "DFT")
def _(case, peer, reason, feeds, outputs):
    return "the length of the transform is 0" in reason


@row("integers in ReduceLogSum and ReduceLogSumExp", "ReduceLogSum", "ReduceLogSumExp")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("ONNX Runtime") and is_integer(feeds)


@row("sums of integers that overflow", "ReduceL2", "ReduceMean", "ReduceLogSum", "ReduceLogSumExp")
def _(case, peer, reason, feeds, outputs):
    return is_integer(feeds)


@row("OneHot by arithmetic", "OneHot")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("reference")


@row("out of range", "Shrink")
def _(case, peer, reason, feeds, outputs):
    return is_integer(feeds)


@row("one element by pytorch_half_pixel", "Resize")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("reference") and case.attributes.get("coordinate_transformation_mode") == "pytorch_half_pixel" \
        and 1 in np.asarray(outputs[0]).shape


@row("statistics in single precision", "GroupNormalization", "LayerNormalization", "RMSNormalization", "InstanceNormalization")
def _(case, peer, reason, feeds, outputs):
    return any(x.dtype.name == "float64" for x in feeds.values()) and "largest difference" in reason and float(
        reason.rsplit(" ", 1)[1]) < 2e-4


@row("Softplus beyond 88 in recurrent layers", "GRU", "LSTM", "RNN")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("ONNX Runtime") and "expected inf" in reason and any(
        name.lower() == "softplus" for name in case.attributes.get("activations", []))


@row("clip of LSTM", "LSTM")
def _(case, peer, reason, feeds, outputs):
    return "clip" in case.attributes


@row("auto_pad SAME with a kernel smaller than the stride", "MaxPool", "AveragePool", "LpPool")
def _(case, peer, reason, feeds, outputs):
    return str(case.attributes.get("auto_pad", "")).startswith("SAME")


@row("post_transform of TreeEnsembleRegressor", "TreeEnsembleRegressor")
def _(case, peer, reason, feeds, outputs):
    return case.attributes.get("post_transform", "NONE") != "NONE"


@row("unaccented letters", "StringNormalizer")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("reference")


@row("unsorted values along an axis", "Unique")
def _(case, peer, reason, feeds, outputs):
    return peer.startswith("reference") and case.attributes.get("sorted") == 0 and "axis" in case.attributes


def explained(case, peer, reason, feeds, outputs):
    who = "ONNX Runtime" if peer.startswith("ONNX Runtime") else "reference"
    if "agrees with Tombolo" in peer and case.op in ALONE[who]:
        return f"{who} alone"
    for name, test in ROWS.get(case.op, []):
        if test(case, peer, reason, feeds, outputs):
            return name
    return None


@row("an end before the first axis", "Shape")
def _(case, peer, reason, feeds, outputs):
    # As the row of the evaluator alone, for types that ONNX Runtime cannot take.
    return peer.startswith("reference") and case.attributes.get("end", 0) < -next(iter(feeds.values())).ndim
