"""Oboe's error matrix: 219 settings of 12 learners of scikit-learn measured on each of 418 OpenML datasets.

Published in the Python package ``oboe`` 0.2.0 as ``oboe/defaults/Oboe/error_matrix.csv``: a line for every dataset and
a column for every setting, whose name is ``{'algorithm': 'KNN', 'hyperparameters': {'n_neighbors': 1, 'p': 1}}``. Read
from the package's wheel, or from the CSV file; a file with another checksum is refused.

`oboe` has all learners in one conditional space: ``learner``, and the hyperparameters of each as ``LEARNER.NAME``.
``oboe-LEARNER`` is one learner alone. The data are as published, with two changes of form: ``min_samples_split`` is a
number of rows or a fraction of them, so it is split in two, of which ``split_unit`` chooses one; ``max_features`` is
``"all"`` for None. The setting ``learning_rate`` of the network, which is always the same, is left out.
"""

from __future__ import annotations

import ast
import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from recollect._files import read_text
from recollect.bench.benchmark import About, Benchmark, conditional_space, did_you_mean
from recollect.bench.problems.tabular import shared_table
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Config
from recollect.space.space import Space
from recollect.storage.formats.csv_columns import csv_rows

SOURCE = "the Python package oboe 0.2.0"
OBTAINED = "`pip download --no-deps oboe==0.2.0` brings the wheel that holds it"
CITATION = (
    "C. Yang, Y. Akimoto, D. W. Kim, M. Udell: OBOE - Collaborative Filtering for AutoML Model Selection. KDD 2019"
)
MEMBER = "oboe/defaults/Oboe/error_matrix.csv"
WHEEL = "oboe-0.2.0-py3-none-any.whl"
SHA256 = "d8c67fa3f8a01aa10cbe6711bed31f85653262e081eebe53f9e259f6a88c3f2e"  # of the matrix
DATA_SETS = 418

_COST = (0.125, 16.0, "log")
_SPLIT = {
    "split_unit": ["rows", "fraction"],
    "min_samples_rows": (2, 1024, "log"),
    "min_samples_fraction": (1e-5, 0.1, "log"),
}
_SPLIT_CONDITIONS = {"min_samples_rows": ("split_unit", "rows"), "min_samples_fraction": ("split_unit", "fraction")}
LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "AB": {"n_estimators": (50, 100), "learning_rate": (1.0, 3.0)},
    "DT": {**_SPLIT, "min_samples_fraction": (1e-5, 0.01, "log")},
    "ExtraTrees": {**_SPLIT, "criterion": ["gini", "entropy"]},
    "GBT": {"learning_rate": (0.001, 0.5, "log"), "max_depth": (3, 6), "max_features": ["all", "log2"]},
    "GNB": {},
    "KNN": {"n_neighbors": (1, 15), "p": (1, 2)},
    "Logit": {"C": (0.25, 4.0, "log"), "penalty": ["l1", "l2"], "solver": ["liblinear", "saga"]},
    "MLP": {
        "alpha": (1e-4, 1e-2, "log"),
        "learning_rate_init": (1e-4, 1e-2, "log"),
        "solver": ["adam", "sgd"],
    },
    "Perceptron": {},
    "RF": {**_SPLIT, "criterion": ["gini", "entropy"]},
    "kSVM": {"C": _COST, "coef0": (0, 10), "kernel": ["poly", "rbf"]},
    "lSVM": {"C": _COST},
}
TITLES: Mapping[str, str] = {
    **{"AB": "AdaBoost", "DT": "decision tree", "ExtraTrees": "extremely randomized trees"},
    **{"GBT": "gradient boosting", "KNN": "nearest neighbours", "Logit": "logistic regression"},
    **{"MLP": "neural network", "RF": "random forest", "kSVM": "SVM with a kernel", "lSVM": "linear SVM"},
}
"""The learners that have hyperparameters."""
OBOE: Mapping[str, str | None] = {"oboe": None, **{f"oboe-{learner.lower()}": learner for learner in TITLES}}
"""The benchmarks, each with its learner; None: all of them."""


def load_oboe(name: str, path: Path, *, whole: bool = True) -> Benchmark:
    """Return one of the benchmarks from the wheel or the CSV file.

    whole: refuse a file with any other content than the published one.
    """
    if name not in OBOE:
        raise InputError(f"Oboe's error matrix has no benchmark {name!r}{did_you_mean(name, tuple(OBOE))}")
    learner = OBOE[name]
    configs, errors = _read_matrix(path, whole)
    space = oboe_space(name)
    chosen = [i for i, (own, _) in enumerate(configs) if learner in (None, own)]
    named = [_named(*configs[i]) if learner is None else configs[i][1] for i in chosen]
    title = "twelve learners" if learner is None else TITLES[learner]
    measured = "balanced error rate of trained models, mean over the folds of a cross-validation"
    about = About(f"{title}, measured", CITATION, "BSD-3-Clause", SOURCE, "table", measured=measured)
    own_errors = {task: row[chosen] for task, row in errors.items()}
    return shared_table(name, space, configs=named, errors=own_errors, about=about)


def oboe_space(name: str) -> Space:
    """Return the search space of one of the benchmarks."""
    return conditional_space(*oboe_notation(name))


def oboe_notation(name: str) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """Return the space of one of the benchmarks in dict notation, and its conditions."""
    learner = OBOE[name]
    if learner is not None:
        hyperparameters = LEARNERS[learner]
        own = {parameter: parent for parameter, parent in _SPLIT_CONDITIONS.items() if parameter in hyperparameters}
        return dict(hyperparameters), own
    notation: dict[str, Any] = {"learner": list(LEARNERS)}
    conditions: dict[str, tuple[str, str]] = {}
    for owner, hyperparameters in LEARNERS.items():
        for parameter, form in hyperparameters.items():
            notation[f"{owner}.{parameter}"] = form
            parent, choice = _SPLIT_CONDITIONS.get(parameter, ("", ""))
            conditions[f"{owner}.{parameter}"] = (f"{owner}.{parent}", choice) if parent else ("learner", owner)
    return notation, conditions


@cache
def _read_matrix(path: Path, whole: bool) -> tuple[Sequence[tuple[str, Config]], Mapping[str, FloatArray]]:
    """Return the settings (learner and configuration), and the errors (219,) of every dataset."""
    text = _matrix_text(path)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    if whole and digest != SHA256:
        raise InputError(f"{path}: expected {MEMBER} of oboe 0.2.0, with the SHA-256 checksum {SHA256}, got {digest}")
    rows = csv_rows(str(path), text)
    _, header = next(rows, (1, []))
    configs = [_setting(cell, f"{path}, column {number}") for number, cell in enumerate(header[1:], start=2)]
    errors = {}
    for number, row in rows:
        try:
            errors[row[0]] = np.array([float(cell) for cell in row[1:]])
        except ValueError as error:
            raise InputError(f"{path}, line {number}: expected errors of dataset {row[0]!r}: {error}") from error
    return configs, errors


def _matrix_text(path: Path) -> str:
    """Return the matrix in a wheel, or in a CSV file."""
    if not zipfile.is_zipfile(path):
        return read_text(path)
    try:
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(MEMBER).decode("utf-8")
    except (KeyError, OSError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a wheel of oboe with {MEMBER}: {error}") from error


def _setting(cell: str, where: str) -> tuple[str, Config]:
    """Return the learner and the configuration that the name of a column means."""
    try:
        setting = ast.literal_eval(cell)
        learner, config = setting["algorithm"], dict(setting["hyperparameters"])
        space = LEARNERS[learner]
    except (SyntaxError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{where}: expected an algorithm and its hyperparameters, got {cell[:80]!r}") from error
    if "min_samples_split" in config:
        value = config.pop("min_samples_split")
        unit = "rows" if isinstance(value, int) else "fraction"
        config |= {"split_unit": unit, f"min_samples_{unit}": value}
    if learner == "GBT":
        config["max_features"] = config["max_features"] or "all"
    return learner, {name: config[name] for name in space if name in config}


def _named(learner: str, config: Config) -> Config:
    """Return the configuration of a learner as one of all learners."""
    return {"learner": learner, **{f"{learner}.{name}": value for name, value in config.items()}}
