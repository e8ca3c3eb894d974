#!/usr/bin/env python3
"""Writes tests/run/classical.test: the operators of ai.onnx.ml, and what scikit-learn computes for them.

    python3 tools/oracle_ml.py > tests/run/classical.test

Needs `pip install scikit-learn numpy` (written with 1.9.1).
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import Binarizer, LabelEncoder, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

RNG = np.random.default_rng(11)
PARTS = []
X = np.round(RNG.normal(size=(40, 3)), 2).astype(np.float32)
NEW = np.round(RNG.normal(size=(4, 3)), 2).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5] + np.sin(X[:, 0])).astype(np.float64)
TWO = (Y > 0).astype(np.int64)
THREE = np.digitize(Y, [-1, 1]).astype(np.int64)


def literal(x):
    x = np.asarray(x)
    if x.dtype.kind in "OU":
        return f"string[{','.join(map(str, x.shape))}]", "{" + ", ".join(f'"{v}"' for v in x.ravel()) + "}"
    kind = {"float32": "float", "float64": "double", "int64": "int64"}[str(x.dtype)]
    dims = f"[{','.join(map(str, x.shape))}]" if x.ndim else ""
    return f"{kind}{dims}", "{" + ", ".join(repr(v) for v in x.ravel().tolist()) + "}"


def value(v):
    if isinstance(v, str):
        return f'"{v}"'
    if isinstance(v, (list, tuple, np.ndarray)):
        return "[" + ", ".join(value(e) for e in np.asarray(v).ravel().tolist()) + "]"
    return repr(float(v)) if isinstance(v, (float, np.floating)) else str(int(v))


def part(name, op, x, attributes, expected, version=5):
    kind, data = literal(x)
    attrs = ", ".join(f"{k} = {value(v)}" for k, v in attributes.items())
    outs = [f"y{i}" for i in range(len(expected))]
    lines = [f"NAME: {name}", "RUN: run", f"INPUT: {kind} x = {data}",
             f'<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : {version}]>',
             f"g ({kind} x) => ({', '.join(f'{literal(e)[0]} {o}' for e, o in zip(expected, outs))}) {{",
             f"  {', '.join(outs)} = ai.onnx.ml.{op} <{attrs}> (x)", "}", "EXPECT:",
             ",\n".join(f"{literal(e)[0]} {o} = {literal(e)[1]}" for e, o in zip(expected, outs))]
    PARTS.append("\n".join(lines))


def f32(x):
    return np.asarray(x, np.float32)


def forest(models, classes=None):
    """The trees of scikit-learn as lists of attributes."""
    a = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    kind = "class" if classes else "target"
    leaves = {f"{kind}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t, model in enumerate(models):
        tree = model.tree_
        for i in range(tree.node_count):
            leaf = tree.children_left[i] == -1
            a["nodes_treeids"].append(t)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(0 if leaf else tree.feature[i])
            # Doubles in scikit-learn; the next float below keeps every float on its side.
            threshold = np.float32(tree.threshold[i])
            if float(threshold) > tree.threshold[i]:
                threshold = np.nextafter(threshold, np.float32(-np.inf))
            a["nodes_values"].append(0.0 if leaf else float(threshold))
            a["nodes_modes"].append("LEAF" if leaf else "BRANCH_LEQ")
            a["nodes_truenodeids"].append(0 if leaf else tree.children_left[i])
            a["nodes_falsenodeids"].append(0 if leaf else tree.children_right[i])
            if leaf:
                for c, v in enumerate(np.atleast_1d(tree.value[i].ravel())):
                    leaves[f"{kind}_treeids"].append(t)
                    leaves[f"{kind}_nodeids"].append(i)
                    leaves[f"{kind}_ids"].append(c)
                    leaves[f"{kind}_weights"].append(float(v) / len(models))
    return a | leaves


def main():
    linear = LinearRegression().fit(X, np.stack([Y, -Y + 1], 1))
    part("LinearRegressor", "LinearRegressor", NEW, {"coefficients": linear.coef_, "intercepts": linear.intercept_, "targets": 2},
         [f32(linear.predict(NEW))])
    for labels, target in (("three classes", THREE), ("text", np.array(["low", "mid", "top"])[THREE])):
        model = LogisticRegression().fit(X, target)
        names = {"classlabels_strings": list(model.classes_)} if labels == "text" else {"classlabels_ints": model.classes_}
        part(f"LinearClassifier, {labels}", "LinearClassifier", NEW,
             {"coefficients": model.coef_, "intercepts": model.intercept_, "post_transform": "SOFTMAX", "multi_class": 1} | names,
             [model.predict(NEW), f32(model.predict_proba(NEW))])
    scaler = StandardScaler().fit(X)
    part("Scaler", "Scaler", NEW, {"offset": scaler.mean_, "scale": 1 / scaler.scale_}, [f32(scaler.transform(NEW))])
    ranges = MinMaxScaler().fit(X)
    part("Scaler, by range", "Scaler", NEW, {"offset": ranges.data_min_, "scale": ranges.scale_}, [f32(ranges.transform(NEW))])
    for norm in ("l1", "l2"):
        part(f"Normalizer, {norm}", "Normalizer", NEW, {"norm": norm.upper()}, [f32(Normalizer(norm).transform(NEW))])
    part("Binarizer", "Binarizer", NEW, {"threshold": 0.25}, [f32(Binarizer(threshold=0.25).transform(NEW))])
    hole = NEW.copy()
    hole[1, 2] = -999
    mean = SimpleImputer(missing_values=-999).fit(np.where(RNG.random(X.shape) < 0.1, -999, X))
    part("Imputer", "Imputer", hole, {"imputed_value_floats": mean.statistics_, "replaced_value_float": -999.0}, [f32(mean.transform(hole))])
    words = np.array(["b", "c", "a", "zz"])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit([["a"], ["b"], ["c"]])
    part("OneHotEncoder", "OneHotEncoder", words, {"cats_strings": ["a", "b", "c"], "zeros": 1}, [f32(encoder.transform(words[:, None]))])
    label = LabelEncoder().fit(["a", "b", "c"])
    part("LabelEncoder", "LabelEncoder", words[:3], {"keys_strings": ["a", "b", "c"], "values_int64s": [0, 1, 2]}, [label.transform(words[:3]).astype(np.int64)])
    for kernel in ("linear", "rbf", "poly", "sigmoid"):
        svr = SVR(kernel=kernel, gamma=0.3, coef0=0.5, degree=2).fit(X, Y)
        part(f"SVMRegressor, {kernel}", "SVMRegressor", NEW,
             {"kernel_type": kernel.upper(), "kernel_params": [0.3, 0.5, 2.0], "coefficients": svr.dual_coef_, "support_vectors": svr.support_vectors_,
              "n_supports": len(svr.support_), "rho": svr.intercept_}, [f32(svr.predict(NEW))[:, None]])
    svc = SVC(kernel="rbf", gamma=0.3, decision_function_shape="ovo").fit(X, THREE)
    part("SVMClassifier: the labels of one vote a pair", "SVMClassifier", NEW,
         {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 0.0], "coefficients": svc.dual_coef_, "support_vectors": svc.support_vectors_,
          "vectors_per_class": svc.n_support_, "rho": svc.intercept_, "classlabels_ints": svc.classes_},
         [svc.predict(NEW), f32(svc.decision_function(NEW))])
    regressor = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y)
    part("TreeEnsembleRegressor", "TreeEnsembleRegressor", NEW, forest(regressor.estimators_) | {"n_targets": 1}, [f32(regressor.predict(NEW))[:, None]], 3)
    for name, target in (("three classes", THREE), ("two classes", TWO)):
        classifier = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, target)
        part(f"TreeEnsembleClassifier, {name}", "TreeEnsembleClassifier", NEW,
             forest(classifier.estimators_, True) | {"classlabels_int64s": classifier.classes_, "post_transform": "NONE"},
             [classifier.predict(NEW), f32(classifier.predict_proba(NEW))], 3)
    print("\n---\n".join(PARTS))


if __name__ == "__main__":
    main()
