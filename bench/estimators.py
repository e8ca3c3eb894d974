"""Measures Tombolo beside ONNX Runtime on models of scikit-learn, LightGBM, XGBoost and CatBoost, as their exporters write them.

    python bench/estimators.py make FOLDER [--only REGEX]
    python bench/estimators.py measure TOMBOLO FOLDER [--only REGEX] [--threads 1] [--rows 1,1000] [--out FILE] [--onnxruntime LIB]

Needs scikit-learn, skl2onnx, lightgbm, xgboost, catboost, onnxmltools and onnxruntime. Every classifier, regressor,
transformer, clusterer and outlier detector of scikit-learn that skl2onnx knows is trained on synthetic data with a seed; what is not exported is listed.
"""
import os
import re
import signal
import tempfile
import warnings

import numpy as np

import beside

FEATURES = 20
ROWS = 2000
LIMIT_S = 60  # to train and export one

# What an estimator takes beside its defaults.
ARGUMENTS = {
    "RandomForestClassifier": {"n_estimators": 100}, "SVC": {"probability": False}, "LinearDiscriminantAnalysis": {}, "VotingClassifier": "estimators", "VotingRegressor": "estimators",
    "StackingClassifier": "estimators", "StackingRegressor": "estimators", "MLPClassifier": {"max_iter": 20}, "MLPRegressor": {"max_iter": 20},
    "GaussianProcessClassifier": {"copy_X_train": True}, "KMeans": {"n_clusters": 20}, "MiniBatchKMeans": {"n_clusters": 20}, "PCA": {"n_components": 8}, "IncrementalPCA": {"n_components": 8}, "TruncatedSVD": {"n_components": 8},
    "KBinsDiscretizer": {"encode": "onehot-dense"}, "PolynomialFeatures": {}, "SplineTransformer": {}, "GaussianMixture": {"n_components": 5}, "BayesianGaussianMixture": {"n_components": 5}, "OneClassSVM": {}, "IsolationForest": {"n_estimators": 100}, "KNNImputer": {},
}
WRAPPERS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier", "CalibratedClassifierCV", "BaggingClassifier", "AdaBoostClassifier", "RFE", "SelectFromModel", "MultiOutputClassifier", "MultiOutputRegressor", "ClassifierChain", "RegressorChain", "TransformedTargetRegressor", "RANSACRegressor", "GridSearchCV")


def data(kind, classes=3):
    from sklearn.datasets import make_classification, make_regression
    if kind == "regressor":
        x, y = make_regression(ROWS, FEATURES, noise=0.1, random_state=0)
        return x.astype(np.float32), (y / np.abs(y).max()).astype(np.float32)
    x, y = make_classification(ROWS, FEATURES, n_informative=8, n_classes=classes, random_state=0)
    return x.astype(np.float32), y


def sklearn_estimators():
    """(name, estimator, kind) of all that skl2onnx knows."""
    from skl2onnx import supported_converters
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    from sklearn.utils import all_estimators
    known = {n.removeprefix("Sklearn") for n in supported_converters()}
    for name, made in all_estimators():
        if name not in known and f"{name}s" not in known and name not in WRAPPERS:
            continue
        kind = "classifier" if hasattr(made, "predict_proba") or "Classifier" in name or name in ("SVC", "NuSVC", "LinearSVC", "Perceptron") else "regressor"
        if name.endswith("Regressor") or name in ("SVR", "NuSVR", "LinearSVR"):
            kind = "regressor"
        arguments = ARGUMENTS.get(name, {})
        if arguments == "estimators":
            arguments = {"estimators": [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=5))] if kind == "classifier" else [("a", Ridge()), ("b", DecisionTreeRegressor(max_depth=5))]}
        try:
            estimator = made(**arguments)
        except TypeError:
            inner = Ridge() if "Regress" in name else LogisticRegression()
            try:
                estimator = made(inner, param_grid={"C": [0.5, 1.0]}) if name == "GridSearchCV" else made(inner)
            except Exception as why:
                print(f"{name}: {why}")
                continue
        yield name, estimator, kind


def boosted():
    import catboost
    import lightgbm
    import xgboost
    for size, (trees, depth) in {"small": (20, 4), "large": (500, 8)}.items():
        yield f"LightGBM_classifier_{size}", lightgbm.LGBMClassifier(n_estimators=trees, max_depth=depth, num_leaves=2**depth - 1, verbose=-1), "classifier"
        yield f"LightGBM_regressor_{size}", lightgbm.LGBMRegressor(n_estimators=trees, max_depth=depth, num_leaves=2**depth - 1, verbose=-1), "regressor"
        yield f"XGBoost_classifier_{size}", xgboost.XGBClassifier(n_estimators=trees, max_depth=depth), "classifier"
        yield f"XGBoost_regressor_{size}", xgboost.XGBRegressor(n_estimators=trees, max_depth=depth), "regressor"
        yield f"CatBoost_classifier_{size}", catboost.CatBoostClassifier(n_estimators=trees, max_depth=depth, verbose=False, allow_writing_files=False), "classifier"
        yield f"CatBoost_regressor_{size}", catboost.CatBoostRegressor(n_estimators=trees, max_depth=depth, verbose=False, allow_writing_files=False), "regressor"
    yield "LightGBM_random_forest", lightgbm.LGBMClassifier(boosting_type="rf", n_estimators=100, bagging_freq=1, bagging_fraction=0.7, verbose=-1), "classifier"
    yield "XGBoost_random_forest", xgboost.XGBRFClassifier(n_estimators=100, max_depth=8), "classifier"


def forests():
    from sklearn import ensemble, tree
    yield "RandomForest_deep", ensemble.RandomForestClassifier(200, random_state=0), "classifier"
    yield "RandomForest_regressor_shallow", ensemble.RandomForestRegressor(50, max_depth=5, random_state=0), "regressor"
    yield "GradientBoosting_binary", ensemble.GradientBoostingClassifier(n_estimators=200, random_state=0), "binary"
    yield "HistGradientBoosting_binary", ensemble.HistGradientBoostingClassifier(max_iter=200, random_state=0), "binary"
    yield "DecisionTree_deep", tree.DecisionTreeClassifier(random_state=0), "classifier"


def to_onnx(name, estimator, x):
    from onnxmltools.convert.common.data_types import FloatTensorType
    types = [("x", FloatTensorType([None, x.shape[1]]))]
    if name.startswith("LightGBM"):
        from onnxmltools import convert_lightgbm
        return convert_lightgbm(estimator, initial_types=types, zipmap=False)
    if name.startswith("XGBoost"):
        from onnxmltools import convert_xgboost
        return convert_xgboost(estimator, initial_types=types)
    if name.startswith("CatBoost"):
        import onnx
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            estimator.save_model(file.name, format="onnx")
            return onnx.load(file.name)
    from skl2onnx import to_onnx as convert
    options = {}
    if hasattr(estimator, "classes_"):
        options = {id(estimator): {"zipmap": False}}
    try:
        return convert(estimator, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    except NameError:
        return convert(estimator, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})


def texts():
    """Pipelines that begin with strings or with columns of several kinds."""
    from skl2onnx import to_onnx as convert
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnop"), rng.integers(3, 8))) for _ in range(500)]
    lines = np.array([" ".join(rng.choice(words, 20)) for _ in range(500)], dtype=object)
    labels = rng.integers(0, 2, 500)
    for name, vectors in {"TfidfVectorizer": TfidfVectorizer(), "CountVectorizer_bigrams": CountVectorizer(ngram_range=(1, 2))}.items():
        fitted = make_pipeline(vectors, LogisticRegression()).fit(lines, labels)
        yield name, convert(fitted, initial_types=[("x", StringTensorType([None, 1]))], options={id(fitted): {"zipmap": False}}, target_opset=18), {"x": lines[:, None]}
    cities = np.array(rng.choice(words[:50], (500, 2)), dtype=object)
    for name, encoder in {"OneHotEncoder": OneHotEncoder(handle_unknown="ignore", sparse_output=False), "OrdinalEncoder": OrdinalEncoder()}.items():
        fitted = make_pipeline(encoder, LogisticRegression()).fit(cities, labels)
        yield f"{name}_strings", convert(fitted, initial_types=[("x", StringTensorType([None, 2]))], options={id(fitted): {"zipmap": False}}, target_opset=18), {"x": cities}
    import pandas
    frame = pandas.DataFrame({"age": rng.normal(size=500).astype(np.float32), "sum": rng.normal(size=500).astype(np.float32), "count": rng.integers(0, 9, 500), "city": cities[:, 0]})
    columns = ColumnTransformer([("n", StandardScaler(), ["age", "sum"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["city"]), ("k", "passthrough", ["count"])])
    fitted = make_pipeline(columns, LogisticRegression()).fit(frame, labels)
    types = [("age", FloatTensorType([None, 1])), ("sum", FloatTensorType([None, 1])), ("count", Int64TensorType([None, 1])), ("city", StringTensorType([None, 1]))]
    feeds = {"age": frame["age"].to_numpy()[:, None], "sum": frame["sum"].to_numpy()[:, None], "count": frame["count"].to_numpy()[:, None], "city": cities[:, :1]}
    yield "ColumnTransformer", convert(fitted, initial_types=types, options={id(fitted): {"zipmap": False}}, target_opset=18), feeds


def make(folder, only):
    import onnx
    warnings.filterwarnings("ignore")
    os.makedirs(folder, exist_ok=True)

    def late(*_):
        raise TimeoutError(f"over {LIMIT_S} s")

    signal.signal(signal.SIGALRM, late)

    def keep(name, model, feeds):
        target = os.path.join(folder, name)
        os.makedirs(target, exist_ok=True)
        np.savez(os.path.join(target, "inputs.npz"), **{k: v.astype(str) if v.dtype == object else v for k, v in feeds.items()})
        onnx.save(model, os.path.join(target, "model.onnx"))

    for source in (forests, boosted, sklearn_estimators):
        for name, estimator, kind in source():
            if not re.search(only, name) or os.path.exists(os.path.join(folder, name)):
                continue
            x, y = data("regressor" if kind == "regressor" else "classifier", 2 if kind == "binary" else 3)
            if "NB" in name or "LDA" in name or "LatentDirichlet" in name or name == "NMF" or "Chi2" in name:
                x = np.abs(x)
            if "Multi" in name and name != "MultinomialNB" or "Chain" in name:
                y = np.stack([y, y[::-1]], 1)
            if "GaussianProcess" in name:
                x, y = x[:300], y[:300]
            signal.alarm(LIMIT_S)
            try:
                try:
                    fitted = estimator.fit(x, y)
                except Exception:
                    x, y = data("regressor")
                    fitted = estimator.fit(x, y)
                keep(name, to_onnx(name, fitted, x), {"x": x})
                print(name, flush=True)
            except Exception as why:
                print(f"{name}: {type(why).__name__} {str(why).strip().splitlines()[0][:150] if str(why).strip() else ''}", flush=True)
            signal.alarm(0)
    for name, model, feeds in texts():
        if re.search(only, name):
            keep(name, model, feeds)
            print(name, flush=True)


def cases(folder, only, rows):
    import onnx
    for name, path in beside.models(folder, only):
        feeds = beside.inputs_of(path)
        names = [i.name for i in onnx.load(path).graph.input]
        for count in rows:
            yield (name, count), path, {(k if k in names else names[0]): v[:count] for k, v in feeds.items()}


def main():
    parser, _, _, measuring = beside.parsers(__doc__)
    measuring.add_argument("--rows", default="1,1000")
    args = parser.parse_args()
    if args.does == "make":
        make(args.folder, args.only)
    else:
        beside.measure(args, ("model", "rows"), cases(args.folder, args.only, [int(r) for r in args.rows.split(",")]))


if __name__ == "__main__":
    main()
