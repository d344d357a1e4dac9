"""A random forest tuned and fitted on one task's measurements, to stand for the task everywhere.

The forest sees features of the encoded configuration and predicts the error on a scale: ln(error + 1e-10), as in the
paper, or the error's rank among the measured ones, from 0 to 1, which is turned back by interpolation between them.
Ranks serve any table: where the best errors are 0 the logarithm of those is all that a tree looks at. How trees grow is
chosen by random search: the mean Spearman correlation between held-out and predicted errors over the folds of a
cross-validation. The result is a pure function of the data, their order, and the settings.

Notation: X (n, d) encoded points, nan = inactive; y (n,) errors, >= 0 for logarithms; features (n, p).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.bench.forest import Forest, flatten
from recollect.bench.statistics import rank_correlations
from recollect.errors import InputError, MissingExtraError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.space.space import Space

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

INACTIVE = -1.0
DECIMALS = 6  # the resolution of the published tables
SHIFT = 1e-10  # keeps the logarithm of a perfect error finite
SPLIT_RANGE, LEAF_RANGE, SHARE_RANGE = (2, 20), (1, 20), (0.5, 1.0)
Scale = Literal["log", "rank"]
SLACK, TIGHTER = 0.01, 0.001  # by how much a candidate may be behind the best; less after every fold


@dataclass(frozen=True, slots=True)
class Growth:
    """How trees grow, by scikit-learn's names; the default is the middle of what is searched."""

    min_samples_split: int = 6
    min_samples_leaf: int = 4
    max_features: float = 0.75
    bootstrap: bool = True
    random_cuts: bool = False  # extremely randomised trees


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """How much work tuning is: ``candidates`` ways to grow, ``folds`` of the cross-validation with ``trees`` each.

    The forest of the answer has ``final_trees``. The defaults are the paper's. On the scale of ranks, half of the
    candidates cut at random places.
    """

    candidates: int = 30
    folds: int = 10
    trees: int = 100
    final_trees: int = 500
    seed: int = 1
    scale: Scale = "log"

    def __post_init__(self) -> None:
        """Refuse numbers that make no forest."""
        if self.scale not in ("log", "rank"):
            raise InputError(f"expected the scale 'log' or 'rank', got {self.scale!r}")
        if self.candidates < 0 or self.folds < 2 or self.trees < 1 or self.final_trees < 1 or self.seed < 0:
            raise InputError(
                f"expected candidates >= 0, folds >= 2, trees >= 1, final_trees >= 1, seed >= 0; got {self}"
            )


PAPER = TuneSettings()
TABLE = TuneSettings(candidates=10, scale="rank")


@dataclass(frozen=True, slots=True, eq=False)
class TunedForest:
    """A forest for errors on a scale, its cross-validated rank correlation, and how its trees grew.

    spearman is nan where it cannot be computed: for constant errors, fewer than four points or no candidates.
    """

    forest: Forest
    spearman: float
    growth: Growth


def forest_features(space: Space, X: FloatArray) -> FloatArray:
    """Return the features (n, p) of encoded points.

    Numerical columns, inactive -1; then a one-hot block for every categorical column, all 0 where it is inactive; then
    the products of any two of these. Columns with a single value are left out.
    """
    numerical = space.varying & ~space.categorical
    blocks = [np.where(np.isnan(X), INACTIVE, X)[:, numerical]]
    for position in np.flatnonzero(space.varying & space.categorical):
        blocks.append((X[:, position, None] == np.arange(space.sizes[position])).astype(np.float64))
    columns = np.hstack(blocks)
    one, other = np.triu_indices(columns.shape[1], k=1)
    return np.hstack([columns, columns[:, one] * columns[:, other]])


def tune_forest(space: Space, X: FloatArray, y: FloatArray, *, settings: TuneSettings = PAPER) -> TunedForest:
    """Return the forest of a task measured at encoded points."""
    features, targets = forest_features(space, _checked(space, X, y, settings.scale)), to_target(y, settings.scale)
    if features.shape[1] == 0:
        raise InputError("tune_forest: the space has no hyperparameter with more than one value")
    growth, spearman = _search(features, targets, settings)
    model = _model(growth, settings.final_trees, settings.seed).fit(features, targets)
    return TunedForest(flatten(model), spearman, growth)


def to_target(y: FloatArray, scale: Scale) -> FloatArray:
    """Return errors (n,) on the scale that a forest predicts."""
    if scale == "log":
        return np.asarray(np.log(y + SHIFT), dtype=np.float64)
    from scipy.stats import rankdata

    return np.asarray((rankdata(y) - 0.5) / len(y), dtype=np.float64)


def to_error(prediction: FloatArray, y: FloatArray, scale: Scale) -> FloatArray:
    """Turn what a forest predicts into errors, as the published tables print them; ``y`` are the measured ones."""
    if scale == "log":
        errors = np.exp(prediction) - SHIFT
    else:
        known, first = np.unique(y, return_index=True)
        errors = np.interp(prediction, to_target(y, scale)[first], known)
    return np.asarray(np.round(errors, DECIMALS) + 0.0)


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Return the rank correlation, average ranks for ties; nan where one side is constant."""
    return float(rank_correlations(np.stack([a, b]))[0, 1])


def _search(features: FloatArray, targets: FloatArray, settings: TuneSettings) -> tuple[Growth, float]:
    """Return the best way to grow, and its mean correlation; the default and nan if no candidate has one."""
    best, best_scores = Growth(), np.empty(0)
    folds = _folds(len(targets), settings)
    if not folds:
        return best, float("nan")
    for growth in _candidates(settings):
        scores: list[float] = []
        for train, test in folds:
            model = _model(growth, settings.trees, settings.seed).fit(features[train], targets[train])
            scores.append(spearman(targets[test], model.predict(features[test])))
            if np.isnan(scores[-1]) or _hopeless(scores, best_scores):
                break
        else:
            if best_scores.size == 0 or np.mean(scores) > best_scores.mean():
                best, best_scores = growth, np.array(scores)
    return best, float(best_scores.mean()) if best_scores.size else float("nan")


def _hopeless(scores: list[float], best: FloatArray) -> bool:
    """Whether a candidate falls behind the best: behind its mean, and behind its mean on the folds seen so far."""
    if best.size == 0:
        return False
    mean, whole, same = float(np.mean(scores)), float(best.mean()), float(best[: len(scores)].mean())
    slack = SLACK - TIGHTER * (len(scores) - 1)
    return mean < whole - SLACK * abs(whole) and mean < same - slack * abs(same)


def _candidates(settings: TuneSettings) -> Iterator[Growth]:
    """Draw the candidates, whole numbers on a log scale."""
    rng = np.random.default_rng(settings.seed)

    def whole(low: int, high: int) -> int:
        return int(np.clip(np.rint(np.exp(rng.uniform(np.log(low - 0.5), np.log(high + 0.5)))), low, high))

    for _ in range(settings.candidates):
        sizes, share = (whole(*SPLIT_RANGE), whole(*LEAF_RANGE)), float(rng.uniform(*SHARE_RANGE))
        yield Growth(*sizes, share, bool(rng.random() < 0.5), settings.scale == "rank" and bool(rng.random() < 0.5))


def _folds(n: int, settings: TuneSettings) -> list[tuple[IntArray, IntArray]]:
    """Return (train, test) rows; fewer folds for few points, so that each holds two; none for fewer than four."""
    from sklearn.model_selection import KFold

    count = min(settings.folds, n // 2)
    if count < 2:
        return []
    return list(KFold(count, shuffle=True, random_state=settings.seed).split(np.empty((n, 0))))


def _model(growth: Growth, trees: int, seed: int) -> RandomForestRegressor | ExtraTreesRegressor:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    kind = ExtraTreesRegressor if growth.random_cuts else RandomForestRegressor
    return kind(
        trees,
        min_samples_split=growth.min_samples_split,
        min_samples_leaf=growth.min_samples_leaf,
        max_features=growth.max_features,
        bootstrap=growth.bootstrap,
        random_state=seed,
        n_jobs=1,
    )


def _checked(space: Space, X: Any, y: Any, scale: Scale) -> FloatArray:
    """Return X, or say what is wrong with the data."""
    need_sklearn()
    if X.ndim != 2 or X.shape[1] != len(space.names) or y.shape != (len(X),) or len(X) == 0:
        raise InputError(
            f"expected points (n, {len(space.names)}) and errors (n,) with n >= 1, got shapes {X.shape} and {y.shape}"
        )
    wanted = "a finite error" if scale == "rank" else "a finite error >= 0, since the forest predicts logarithms"
    bad = np.flatnonzero(~(np.isfinite(y) & ((scale == "rank") | (y >= 0.0))))
    if bad.size:
        raise InputError(f"row {bad[0]}: expected {wanted}; got {y[bad[0]]}")
    return only_active(space, X)


def only_active(space: Space, X: FloatArray) -> FloatArray:
    """Return encoded points (n, d) with inactive cells nan; InputError for an active cell without a number."""
    active = space.activity(X)
    missing = np.argwhere(active & ~np.isfinite(X))
    if len(missing):
        row, column = missing[0]
        raise InputError(f"row {row}: {space.names[column]!r} is active, but its cell is {X[row, column]}")
    return np.where(active, X, np.nan)


def need_sklearn() -> None:
    """Say how to get scikit-learn where it is missing."""
    from importlib.util import find_spec

    if find_spec("sklearn") is None:
        raise MissingExtraError("fitting a forest needs scikit-learn: pip install 'recollect[bench]'")
