"""From a configuration to its error: train on every hold-out of a data set, score what was held out, average.

Balanced error is the mean over classes of the share of its rows that are given another class. 1 - AUC is the mean over
classes of one minus the area under the receiver operating curve of that class against the rest; for two classes, the
usual one. Both are 0 for a perfect model; guessing has 1 - 1/c and 0.5.

A training that fails (weights that overflow, for example) has the error of guessing, and says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recollect.bench.suite.datasets import Split, splits
from recollect.bench.suite.learners import fit, scores, staged_scores
from recollect.bench.suite.spaces import SuiteSpace, suite_space
from recollect.errors import InputError, RecollectError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.threads import single_threaded

DECIMALS = 5

Status = Literal["ok", "failed", "late"]


@dataclass(frozen=True, slots=True)
class Measured:
    """The error of one configuration on one data set, how it came about, and the processor time it took."""

    error: float
    status: Status
    seconds: float


def measure(space: str, dataset: str, configs: Sequence[Mapping[str, Any]]) -> list[Measured]:
    """Return what is measured for each configuration; those that differ in the shared hyperparameter only share fits.

    Deterministic: neither the other configurations nor the number of processes change a result.
    """
    about = suite_space(space)
    if about.shared is not None and len({_apart(config, about.shared) for config in configs}) > 1:
        raise InputError(f"{space}: configurations measured together may differ in {about.shared!r} only")
    begun = time.process_time()
    held = splits(dataset)
    chance = 0.5 if about.measure == "1 - AUC" else 1.0 - 1.0 / held[0].classes
    with single_threaded():
        tables = [_errors(about, configs, split) for split in held]
    seconds = (time.process_time() - begun) / max(len(configs), 1)
    found = []
    for row in np.array(tables).T:
        failed = bool(np.isnan(row).any())
        error = chance if failed else float(row.mean())
        found.append(Measured(round(error, DECIMALS), "failed" if failed else "ok", seconds))
    return found


def guessing(space: str, dataset: str) -> float:
    """Return the error of a model that knows nothing."""
    if suite_space(space).measure == "1 - AUC":
        return 0.5
    return round(1.0 - 1.0 / splits(dataset)[0].classes, DECIMALS)


def _errors(about: SuiteSpace, configs: Sequence[Mapping[str, Any]], split: Split) -> list[float]:
    """Errors of all configurations on one hold-out; nan where training failed."""
    score = one_minus_auc if about.measure == "1 - AUC" else balanced_error
    if about.shared is None:
        tables = (_tables(about, config, split) for config in configs)
        return [score(found[0], split.y_held) if found else math.nan for found in tables]
    counts = [int(config[about.shared]) for config in configs]
    staged = _tables(about, {**configs[0], about.shared: max(counts)}, split)
    errors = [score(table, split.y_held) for table in staged] or [math.nan]
    return [errors[min(count, len(errors)) - 1] for count in counts]  # boosting ends early once nothing is wrong


def _tables(about: SuiteSpace, config: Mapping[str, Any], split: Split) -> list[FloatArray]:
    """Scores of the held-out rows, for each stage where trainings are shared; none if training failed."""
    try:
        model = fit(about.name, config, split)
    except RecollectError:
        raise
    except (ValueError, ArithmeticError):  # how the libraries say that weights are not finite, or nothing is learned
        return []
    return [scores(about.name, model, split.X_held)] if about.shared is None else [*staged_scores(model, split.X_held)]


def balanced_error(table: FloatArray, y: IntArray) -> float:
    """Return the balanced error of scores (n, c); of equal scores, the first class is taken. nan if one is not finite.

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


def _apart(config: Mapping[str, Any], shared: str) -> str:
    return repr(sorted((key, value) for key, value in config.items() if key != shared))
