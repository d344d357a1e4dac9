"""One learner for each search space: a configuration and a hold-out in, a fitted model out.

Work is limited by counts, never by the clock (iterations of the solvers, rounds, epochs), so that the same training
gives the same model on a slow machine; a solver that stops at its limit is scored as it is. All learners of one
hold-out take the same seed: differences between configurations are not differences between seeds.

A model answers `scores(space, model, X)`: (n, c), one column a class, higher is more likely.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from recollect.bench.suite.datasets import Split
from recollect.bench.suite.spaces import GAMMAS
from recollect.errors import InputError, MissingExtraError
from recollect.numerics.arrays import FloatArray

LEARNERS_VERSION = 1  # to be raised when the same configuration is to be trained in another way
SVM_ITERATIONS = 20_000
GLMNET_ITERATIONS = 100
MLP_EPOCHS = 20

Settings = Mapping[str, Any]


def fit(space: str, config: Settings, split: Split) -> Any:
    """Return the model that a configuration of this space gives on the training rows; what it raises is a failure."""
    learner = _LEARNERS.get(space)
    if learner is None:
        raise InputError(f"expected one of {', '.join(_LEARNERS)}, got {space!r}")
    with _quiet():
        return learner(config, split)


def scores(space: str, model: Any, X: FloatArray) -> FloatArray:
    """Return (n, c) scores; a model with one column of scores for two classes gets its mirror image beside it."""
    return _columns(model.predict_proba(X) if space in _PROBABILISTIC else model.decision_function(X))


def staged_scores(model: Any, X: FloatArray) -> Iterator[FloatArray]:
    """Yield the scores after each boosting iteration of an AdaBoost model, as if it had ended there."""
    for answer in model.staged_decision_function(X):
        yield _columns(answer)


def _columns(answer: Any) -> FloatArray:
    table: FloatArray = np.asarray(answer, dtype=np.float64)
    return np.column_stack([-table, table]) if table.ndim == 1 else table


def _adaboost(config: Settings, split: Split) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=config["depth"])
    model = AdaBoostClassifier(tree, n_estimators=config["iterations"], random_state=split.seed)
    return model.fit(split.X, split.y)


def _svm_grid(config: Settings, split: Split) -> Any:
    # The columns hold rounded logarithms; the values behind them are those of the grid.
    gamma = min(GAMMAS, key=lambda value: abs(np.log10(value) - config["log10_gamma"]))
    kernel = max(("rbf", "polynomial", "linear"), key=lambda name: float(config[name]))
    degree = round(10.0 ** config["log10_degree"])
    return _svc(kernel, 2.0 ** config["log2_cost"], gamma=gamma, degree=degree, split=split)


def _svm(config: Settings, split: Split) -> Any:
    kernel = "rbf" if config["kernel"] == "radial" else str(config["kernel"])
    gamma, degree = config.get("gamma", 1.0), config.get("degree", 2)
    return _svc(kernel, config["cost"], gamma=gamma, degree=degree, split=split)


def _svc(kernel: str, cost: float, *, gamma: float, degree: int, split: Split) -> Any:
    from sklearn.svm import SVC

    # The polynomial kernel is (<x, z> / p + 1) ** degree: with p features, standardised, of the size of 1.
    if kernel == "polynomial":
        kernel, gamma = "poly", 1.0 / split.X.shape[1]
    model = SVC(kernel=kernel, C=cost, gamma=gamma, degree=degree, coef0=1.0, max_iter=SVM_ITERATIONS)
    return model.fit(split.X, split.y)


def _glmnet(config: Settings, split: Split) -> Any:
    import sklearn
    from sklearn.linear_model import LogisticRegression

    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):  # l1_ratio alone was ignored before
        raise MissingExtraError(f"own-glmnet needs scikit-learn >= 1.8 to train, got {sklearn.__version__}")
    # glmnet's lambda weighs the penalty against the mean loss, C the sum of losses against the penalty.
    model = LogisticRegression(
        C=1.0 / (split.y.size * config["lambda"]),
        l1_ratio=config["alpha"],
        solver="saga",
        max_iter=GLMNET_ITERATIONS,
        random_state=split.seed,
    )
    return model.fit(split.X, split.y)


def _xgboost(config: Settings, split: Split) -> Any:
    try:
        xgboost = import_module("xgboost")
    except ImportError as error:
        raise MissingExtraError("own-xgboost needs xgboost to train: pip install 'recollect[train]'") from error
    linear = config["booster"] == "gblinear"
    names = {"reg_lambda": "lambda", "reg_alpha": "alpha", "n_estimators": "nrounds", "learning_rate": "eta"}
    settings = {theirs: config[ours] for theirs, ours in names.items()}
    if linear:
        # Coordinates one after the other: the default updates them in parallel and is not deterministic.
        settings |= {"updater": "coord_descent", "feature_selector": "cyclic"}
    else:
        own = ("subsample", "max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel")
        settings |= {name: config[name] for name in own} | {"tree_method": "hist"}
    model = xgboost.XGBClassifier(booster=config["booster"], n_jobs=1, random_state=split.seed, verbosity=0, **settings)
    return model.fit(split.X, split.y)


def _mlp(config: Settings, split: Split) -> Any:
    from sklearn.neural_network import MLPClassifier

    batch = min(int(config["batch_size"]), split.y.size)
    # A funnel: widths fall evenly from the first layer towards the number of classes.
    ends = config["max_units"], max(split.classes, 2)
    widths = np.linspace(*ends, config["num_layers"] + 1)[:-1].round().astype(int)
    model = MLPClassifier(
        hidden_layer_sizes=tuple(int(width) for width in widths),
        solver="sgd",
        batch_size=batch,
        learning_rate="invscaling",
        learning_rate_init=config["learning_rate"],
        power_t=config["decay"],
        momentum=config["momentum"],
        alpha=config["weight_decay"] * batch,  # scikit-learn divides it by the size of the batch
        max_iter=MLP_EPOCHS,
        n_iter_no_change=MLP_EPOCHS,
        random_state=split.seed,
    )
    return model.fit(split.X, split.y)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of solvers that stop at their limit, and of numbers that overflow on the way to failure."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


_PROBABILISTIC = ("own-xgboost", "own-mlp")
_LEARNERS: dict[str, Callable[[Settings, Split], Any]] = {
    "own-adaboost": _adaboost,
    "own-svm-grid": _svm_grid,
    "own-glmnet": _glmnet,
    "own-svm": _svm,
    "own-xgboost": _xgboost,
    "own-mlp": _mlp,
}
