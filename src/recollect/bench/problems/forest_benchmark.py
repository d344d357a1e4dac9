"""Benchmarks whose tasks are random forests: fitted to measurements at scattered points, evaluated anywhere.

Forests are built in parallel and stored as npz files in the folder ``forests`` of the user's cache, named by a hash of
everything they depend on except the version of scikit-learn: a forest once built stays the same benchmark. A forest
that cannot be written stays in memory, and a damaged file is built again; both with a ``RecollectWarning``. Errors are
rounded to 6 decimals. Best and worst are bounds that need not be attained: the mean over the trees of the smallest and
largest leaf.

A forest takes features of the encoded configuration and predicts the error on a scale: ln(error + 1e-10), as in the
paper, or the error's rank among the measured ones, from 0 to 1, which interpolation turns back into an error. Ranks
suit any table; on a log scale, trees would only separate errors of exactly 0 from the rest. Random search chooses the
settings of the trees by the mean Spearman correlation between held-out and predicted errors in a cross-validation. The
result is a pure function of the data, their order, and the settings.

Notation: X (n, d) encoded points, nan = inactive; y (n,) errors of one task, >= 0 for logarithms; features (n, p).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect._files import make_folder
from recollect._system import available_cores
from recollect.bench.benchmark import About, Benchmark, CountProgress, Task
from recollect.bench.problems.forest_model import Forest, flatten, load_forest, save_forest
from recollect.disk_cache import cache_folder
from recollect.errors import InputError, MissingExtraError, RecollectWarning, StorageError
from recollect.numerics.arrays import FloatArray, rank_correlations
from recollect.processes import is_worker, run_in_processes
from recollect.space.space import Space

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

VERSION = 1  # part of the hash: raise it when the same data should give another forest
INACTIVE_FEATURE = -1.0
ERROR_DECIMALS = 6  # the resolution of the published tables
LOG_SHIFT = 1e-10  # keeps the logarithm of a perfect error finite
SPLIT_RANGE, LEAF_RANGE, SHARE_RANGE = (2, 20), (1, 20), (0.5, 1.0)
ErrorScale = Literal["log", "rank"]
SLACK, SLACK_DECREASE = 0.01, 0.001  # by how much a candidate may be behind the best; less after every fold
Measurements = Mapping[str, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """Settings of the trees, by scikit-learn's names; the default is the middle of the search range."""

    min_samples_split: int = 6
    min_samples_leaf: int = 4
    max_features: float = 0.75
    bootstrap: bool = True
    random_splits: bool = False  # extremely randomized trees


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """The effort of tuning; the defaults are the paper's.

    The class name and the fields are part of the hash that names stored forests.
    """

    candidates: int = 30  # tree settings to try; on the scale of ranks, half of them split at random thresholds
    folds: int = 10  # of the cross-validation
    trees: int = 100  # of its forests
    final_trees: int = 500  # of the resulting forest
    seed: int = 1  # of the search and the forests
    scale: ErrorScale = "log"  # what the forest predicts

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.scale not in ("log", "rank"):
            raise InputError(f"expected the scale 'log' or 'rank', got {self.scale!r}")
        if self.candidates < 0 or self.folds < 2 or self.trees < 1 or self.final_trees < 1 or self.seed < 0:
            limits = "candidates >= 0, folds >= 2, trees >= 1, final_trees >= 1, seed >= 0"
            raise InputError(f"expected {limits}; got {self}")


PAPER_SETTINGS = TuneSettings()
CSV_SETTINGS = TuneSettings(candidates=10, scale="rank")


@dataclass(frozen=True, slots=True, eq=False)
class TunedForest:
    """A forest, its cross-validated rank correlation, and the settings of its trees.

    spearman is nan if it cannot be computed: for constant errors, fewer than four points or no candidates.
    """

    forest: Forest
    spearman: float
    settings: TreeSettings


@dataclass(frozen=True, slots=True)
class ForestBuild:
    """How forests are built."""

    settings: TuneSettings = PAPER_SETTINGS  # how they are tuned
    progress: CountProgress | None = None  # called with (done, total); counts forests that were not stored yet
    folder: Path | None = None  # where they are stored; None: in the user's cache folder

    def storage_folder(self) -> Path:
        """Return the folder of stored forests."""
        return cache_folder() / "forests" if self.folder is None else self.folder


PAPER_BUILD = ForestBuild()


@dataclass(frozen=True, slots=True, eq=False)
class _ForestJob:
    """One forest to build: everything it depends on, and the path to store it at."""

    task: str
    space: Space
    X: FloatArray
    y: FloatArray
    settings: TuneSettings
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class Forests:
    """The forests of all tasks: stored, or in memory if that failed."""

    jobs: Mapping[str, _ForestJob]
    unstored: dict[Path, TunedForest] = field(default_factory=dict)

    def tuned(self, task: str) -> tuple[Forest, float]:
        """Return a task's forest, and its cross-validated rank correlation."""
        job = self.jobs[task]
        self.prepare([task], 1)
        if job.path not in self.unstored:
            try:
                return _loaded(job.path)
            except InputError as error:
                _warn(f"{error}; the forest of task {task!r} is built again")
            if (unstored := _build(job)) is None:
                return _loaded(job.path)
            self.unstored[job.path] = unstored[0]
        tuned = self.unstored[job.path]
        return tuned.forest, tuned.spearman

    def prepare(self, tasks: Sequence[str], jobs: int | None, progress: CountProgress | None = None) -> None:
        """Build the missing forests of these tasks in ``jobs`` processes (None: one per core)."""
        planned = {self.jobs[task].path: self.jobs[task] for task in tasks}  # tasks with the same data share a forest
        missing = [job for path, job in planned.items() if path not in self.unstored and not path.exists()]
        missing.sort(key=lambda job: -job.y.size)  # the longest are started first
        processes = 1 if is_worker() else max(1, min(available_cores() if jobs is None else jobs, len(missing)))
        if missing and progress is not None:
            progress(0, len(missing))
        for done, (job, future) in enumerate(run_in_processes(_build, missing, processes=processes), start=1):
            if (unstored := future.result()) is not None:
                if not self.unstored:
                    _warn(f"{unstored[1]}; forests stay in memory only")
                self.unstored[job.path] = unstored[0]
            if progress is not None:
                progress(done, len(missing))

    def task(self, name: str) -> Task:
        """Return the task that a forest represents."""
        forest, job, space = self.tuned(name)[0], self.jobs[name], self.jobs[name].space
        errors = partial(to_error, y=job.y, scale=job.settings.scale)

        def evaluate_many(X: FloatArray) -> FloatArray:
            points = only_active(space, np.asarray(X, dtype=np.float64))
            return errors(forest.predict(forest_features(space, points)))

        def evaluate(config: Mapping[str, Any]) -> float:
            return float(errors(forest.predict(forest_features(space, space.encode([config]))))[0])

        best, worst = errors(np.array(forest.bounds()))
        return Task(name, evaluate, evaluate_many, float(best), float(worst))


def forest_benchmark(
    name: str, space: Space, data: Measurements, about: About, *, jobs: int | None = 1, build: ForestBuild = PAPER_BUILD
) -> Benchmark:
    """Return a benchmark whose tasks are forests, fitted to encoded points and errors.

    ``jobs`` processes (None: one per core) build all forests now; 0: each is built when its task is first used, or by
    `Benchmark.prepare`.
    """
    if not data:
        raise InputError(f"benchmark {name!r} needs at least one task, got none")
    forests = build_forests(space, data, jobs=jobs, build=build)
    about = replace(about, kind="forest", exact=False)
    return Benchmark(name, space, tuple(data), None, about, forests.task, forests.prepare)


def build_forests(
    space: Space, data: Measurements, *, jobs: int | None = 1, build: ForestBuild = PAPER_BUILD
) -> Forests:
    """Return the forests of all tasks; stored ones are not built again. jobs: None: one per core; 0: build later."""
    if jobs is not None and jobs < 0:
        raise InputError(f"build_forests: expected jobs >= 0, got {jobs}")
    forests = Forests({task: _job(task, space, points, build) for task, points in data.items()})
    if jobs != 0:
        forests.prepare(tuple(data), jobs, build.progress)
    return forests


def _job(task: str, space: Space, points: tuple[FloatArray, FloatArray], build: ForestBuild) -> _ForestJob:
    settings = build.settings
    X, y = (np.asarray(values, dtype=np.float64) for values in points)
    choices = np.where(space.categorical, space.sizes, 0)  # with the kind of each column, what the features depend on
    head = (VERSION, settings, X.shape, y.shape, choices.tolist(), space.varying.tolist(), space.condition_texts)
    digest = hashlib.sha256(repr(head).encode())
    digest.update((np.where(np.isnan(X), np.nan, X) + 0.0).astype("<f8").tobytes())
    digest.update((y + 0.0).astype("<f8").tobytes())
    return _ForestJob(task, space, X, y, settings, build.storage_folder() / f"{digest.hexdigest()[:40]}.npz")


def _build(job: _ForestJob) -> tuple[TunedForest, str] | None:
    """Tune, fit and store a forest; return it, with the reason, only if it could not be stored."""
    try:
        tuned = tune_forest(job.space, job.X, job.y, settings=job.settings)
    except InputError as error:
        raise InputError(f"task {job.task!r}: {error}") from error
    try:
        make_folder(job.path.parent)
        save_forest(tuned.forest, job.path, numbers={"spearman": tuned.spearman})
    except StorageError as error:
        return tuned, str(error)
    return None


def _loaded(path: Path) -> tuple[Forest, float]:
    forest, numbers = load_forest(path)
    if "spearman" not in numbers:
        raise InputError(f"{path}: expected a forest with its rank correlation, which is missing")
    return forest, numbers["spearman"]


def _warn(reason: str) -> None:
    warnings.warn(f"stored forests: {reason}", RecollectWarning, stacklevel=3)


def forest_features(space: Space, X: FloatArray) -> FloatArray:
    """Return the features (n, p) of encoded points.

    Numerical columns, inactive -1; then a one-hot block for every categorical column, all 0 where it is inactive; then
    the products of any two of these. Columns with a single value are left out.
    """
    numerical = space.varying & ~space.categorical
    blocks = [np.where(np.isnan(X), INACTIVE_FEATURE, X)[:, numerical]]
    for position in np.flatnonzero(space.varying & space.categorical):
        blocks.append((X[:, position, None] == np.arange(space.sizes[position])).astype(np.float64))
    columns = np.hstack(blocks)
    one, other = np.triu_indices(columns.shape[1], k=1)
    return np.hstack([columns, columns[:, one] * columns[:, other]])


def tune_forest(space: Space, X: FloatArray, y: FloatArray, *, settings: TuneSettings = PAPER_SETTINGS) -> TunedForest:
    """Tune and fit the forest of a task that was measured at encoded points."""
    features = forest_features(space, _checked_points(space, X, y, settings.scale))
    targets = to_target(y, settings.scale)
    if features.shape[1] == 0:
        raise InputError("tune_forest: the space has no hyperparameter with more than one value")
    trees, spearman = _search(features, targets, settings)
    model = _model(trees, settings.final_trees, settings.seed).fit(features, targets)
    return TunedForest(flatten(model), spearman, trees)


def to_target(y: FloatArray, scale: ErrorScale) -> FloatArray:
    """Return errors (n,) on the scale that a forest predicts."""
    if scale == "log":
        return np.asarray(np.log(y + LOG_SHIFT), dtype=np.float64)
    from scipy.stats import rankdata

    return np.asarray((rankdata(y) - 0.5) / len(y), dtype=np.float64)


def to_error(prediction: FloatArray, y: FloatArray, scale: ErrorScale) -> FloatArray:
    """Return the errors behind predictions, rounded as in the published tables; ``y`` are the measured errors."""
    if scale == "log":
        errors = np.exp(prediction) - LOG_SHIFT
    else:
        measured, first = np.unique(y, return_index=True)
        errors = np.interp(prediction, to_target(y, scale)[first], measured)
    return np.asarray(np.round(errors, ERROR_DECIMALS) + 0.0)


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Return the rank correlation, average ranks for ties; nan where one side is constant."""
    return float(rank_correlations(np.stack([a, b]))[0, 1])


def _search(features: FloatArray, targets: FloatArray, settings: TuneSettings) -> tuple[TreeSettings, float]:
    """Return the best tree settings and their mean correlation; the default and nan if no candidate has one."""
    from sklearn.model_selection import KFold

    best, best_scores = TreeSettings(), np.empty(0)
    count = min(settings.folds, len(targets) // 2)  # so that each fold holds two points
    if count < 2:
        return best, float("nan")
    folds = list(KFold(count, shuffle=True, random_state=settings.seed).split(features))
    for trees in _candidates(settings):
        scores: list[float] = []
        for train, test in folds:
            model = _model(trees, settings.trees, settings.seed).fit(features[train], targets[train])
            scores.append(spearman(targets[test], model.predict(features[test])))
            if np.isnan(scores[-1]) or _hopeless(scores, best_scores):
                break
        else:
            if best_scores.size == 0 or np.mean(scores) > best_scores.mean():
                best, best_scores = trees, np.array(scores)
    return best, float(best_scores.mean()) if best_scores.size else float("nan")


def _hopeless(scores: list[float], best: FloatArray) -> bool:
    """Whether a candidate falls behind the best: behind its mean over all folds and over the same folds."""
    if best.size == 0:
        return False
    mean, whole, same = float(np.mean(scores)), float(best.mean()), float(best[: len(scores)].mean())
    slack = SLACK - SLACK_DECREASE * (len(scores) - 1)
    return mean < whole - SLACK * abs(whole) and mean < same - slack * abs(same)


def _candidates(settings: TuneSettings) -> Iterator[TreeSettings]:
    """Draw the candidates, whole numbers on a log scale."""
    rng = np.random.default_rng(settings.seed)

    def whole(low: int, high: int) -> int:
        return int(np.clip(np.rint(np.exp(rng.uniform(np.log(low - 0.5), np.log(high + 0.5)))), low, high))

    for _ in range(settings.candidates):
        sizes, share = (whole(*SPLIT_RANGE), whole(*LEAF_RANGE)), float(rng.uniform(*SHARE_RANGE))
        bootstrap = bool(rng.random() < 0.5)
        yield TreeSettings(*sizes, share, bootstrap, settings.scale == "rank" and bool(rng.random() < 0.5))


def _model(trees: TreeSettings, count: int, seed: int) -> RandomForestRegressor | ExtraTreesRegressor:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    settings = asdict(trees)
    kind = ExtraTreesRegressor if settings.pop("random_splits") else RandomForestRegressor
    return kind(count, random_state=seed, n_jobs=1, **settings)


def _checked_points(space: Space, X: Any, y: Any, scale: ErrorScale) -> FloatArray:
    """Return X with inactive cells nan; InputError if the data are unsuitable."""
    if find_spec("sklearn") is None:
        raise MissingExtraError("fitting a forest needs scikit-learn: pip install 'recollect[bench]'")
    if X.ndim != 2 or X.shape[1] != len(space.names) or y.shape != (len(X),) or len(X) == 0:
        points = f"points (n, {len(space.names)})"
        raise InputError(f"expected {points} and errors (n,) with n >= 1, got shapes {X.shape} and {y.shape}")
    expected = "a finite error" if scale == "rank" else "a finite error >= 0, since the forest predicts logarithms"
    bad = np.flatnonzero(~(np.isfinite(y) & ((scale == "rank") | (y >= 0.0))))
    if bad.size:
        raise InputError(f"row {bad[0]}: expected {expected}; got {y[bad[0]]}")
    return only_active(space, X)


def only_active(space: Space, X: FloatArray) -> FloatArray:
    """Return encoded points (n, d) with inactive cells nan; InputError for an active cell without a number."""
    active = space.activity(X)
    missing = np.argwhere(active & ~np.isfinite(X))
    if len(missing):
        row, column = missing[0]
        raise InputError(f"row {row}: {space.names[column]!r} is active, but its cell is {X[row, column]}")
    return np.where(active, X, np.nan)
