"""Measurements at scattered points turned into tasks that can be evaluated anywhere: one forest a task.

Forests are built in parallel and kept as npz files in the folder ``forests`` of the user's caches, named by a hash of
everything they depend on but the version of scikit-learn: a forest once built stays the same benchmark. What cannot be
written is kept in memory, and a damaged file is built again; both with a ``RecollectWarning``. Errors are rounded to 6
decimals. Best and worst are bounds that need not be attained: the mean over the trees of the smallest and largest leaf.

Notation: X (n, d) encoded points, y (n,) errors of one task.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from recollect.bench.forest import Forest, load_forest, save_forest
from recollect.bench.problem import About, Benchmark, Progress, Task
from recollect.bench.tune_forest import PAPER, TuneSettings, forest_features, only_active, to_error, tune_forest
from recollect.errors import InputError, RecollectWarning, StorageError
from recollect.files import make_folder
from recollect.numerics.arrays import FloatArray
from recollect.space.space import Space
from recollect.system import cores
from recollect.transfer.cache import cache_folder

VERSION = 1  # part of the hash: to be raised when the same data are to give another forest

Data = Mapping[str, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Build:
    """How forests are made: ``progress(done, total)`` counts those that were not stored; ``folder`` keeps them."""

    settings: TuneSettings = PAPER
    progress: Progress | None = None
    folder: Path | None = None

    def place(self) -> Path:
        """Return the folder of stored forests; the user's unless another was named."""
        return cache_folder() / "forests" if self.folder is None else self.folder


USUAL = Build()


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """One forest to build: everything it depends on, and where it shall go."""

    task: str
    space: Space
    X: FloatArray
    y: FloatArray
    settings: TuneSettings
    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class _Unstored:
    """A forest that could not be written, and why."""

    forest: Forest
    spearman: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Forests:
    """The forests of all tasks, stored or, where that failed, in memory."""

    space: Space
    jobs: Mapping[str, _Job]
    unstored: dict[Path, _Unstored]

    def tuned(self, task: str) -> tuple[Forest, float]:
        """Return a task's forest, and its cross-validated rank correlation."""
        job = self.jobs[task]
        self.prepare([task], 1)
        if job.path not in self.unstored:
            try:
                return _loaded(job.path)
            except InputError as error:
                _warn(f"{error}; the forest of task {task!r} is built again")
            built = _build(job)
            if built is None:
                return _loaded(job.path)
            self.unstored[job.path] = built
        kept = self.unstored[job.path]
        return kept.forest, kept.spearman

    def prepare(self, tasks: Sequence[str], jobs: int | None, progress: Progress | None = None) -> None:
        """Build the forests of these tasks that are not there yet. jobs: processes, None = one a core."""
        wanted = [self.jobs[task] for task in tasks]
        missing = {  # copies of one table are one forest
            job.path: job for job in wanted if job.path not in self.unstored and not job.path.exists()
        }
        if missing and progress is not None:
            progress(0, len(missing))
        for done, (path, built) in enumerate(_results(missing, cores() if jobs is None else jobs), start=1):
            if built is not None:
                if not self.unstored:
                    _warn(f"{built.reason}; forests are kept in memory only")
                self.unstored[path] = built
            if progress is not None:
                progress(done, len(missing))

    def task(self, name: str) -> Task:
        """Return the task that a forest stands for."""
        forest, job, space = self.tuned(name)[0], self.jobs[name], self.space

        def errors(predictions: FloatArray) -> FloatArray:
            return to_error(predictions, job.y, job.settings.scale)

        def evaluate_many(X: FloatArray) -> FloatArray:
            points = only_active(space, np.asarray(X, dtype=np.float64))
            return errors(forest.predict(forest_features(space, points)))

        def evaluate(config: Mapping[str, Any]) -> float:
            return float(errors(forest.predict(forest_features(space, space.encode([config]))))[0])

        best, worst = errors(np.array(forest.bounds()))
        return Task(name, evaluate, evaluate_many, float(best), float(worst))


def forest_benchmark(
    name: str, space: Space, data: Data, about: About, *, jobs: int | None = 1, build: Build = USUAL
) -> Benchmark:
    """Return a benchmark whose tasks are forests, fitted on encoded points and errors; ``jobs`` processes build them.

    jobs: None = one a core, and all forests are built before it returns; 0 = none now, but each when its task is first
    asked for, or when `Benchmark.prepare` is told of it.
    """
    if not data:
        raise InputError(f"benchmark {name!r} needs at least one task, got none")
    forests = build_forests(space, data, jobs=jobs, build=build)
    about = replace(about, kind="forest", exact=False)
    return Benchmark(name, space, tuple(data), None, about, forests.task, forests.prepare)


def build_forests(space: Space, data: Data, *, jobs: int | None = 1, build: Build = USUAL) -> Forests:
    """Return the forests of all tasks; what is stored is not built again. jobs: None = one a core, 0 = later."""
    if jobs is not None and jobs < 0:
        raise InputError(f"build_forests: expected jobs >= 0, got {jobs}")
    folder = build.place()
    made = {task: _job(task, space, points, build.settings, folder) for task, points in data.items()}
    forests = Forests(space, made, {})
    if jobs != 0:
        forests.prepare(tuple(data), jobs, build.progress)
    return forests


def _job(task: str, space: Space, points: tuple[FloatArray, FloatArray], settings: TuneSettings, folder: Path) -> _Job:
    X, y = (np.asarray(values, dtype=np.float64) for values in points)
    choices = np.where(space.categorical, space.sizes, 0)  # with the kind of each column, what the features depend on
    head = (VERSION, settings, X.shape, y.shape, choices.tolist(), space.varying.tolist(), space.condition_texts)
    digest = hashlib.sha256(repr(head).encode())
    digest.update((np.where(np.isnan(X), np.nan, X) + 0.0).astype("<f8").tobytes())
    digest.update((y + 0.0).astype("<f8").tobytes())
    return _Job(task, space, X, y, settings, folder / f"{digest.hexdigest()[:40]}.npz")


def _results(missing: Mapping[Path, _Job], jobs: int) -> Iterator[tuple[Path, _Unstored | None]]:
    """Build what is missing, as it is finished; the longest are begun first."""
    ordered = sorted(missing.values(), key=lambda job: -job.y.size)
    workers = 1 if multiprocessing.parent_process() is not None else min(jobs, len(ordered))
    if workers <= 1:
        yield from ((job.path, _build(job)) for job in ordered)
        return
    joblib = import_module("joblib")
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
    yield from parallel(joblib.delayed(_named_build)(job) for job in ordered)


def _named_build(job: _Job) -> tuple[Path, _Unstored | None]:
    return job.path, _build(job)


def _build(job: _Job) -> _Unstored | None:
    """Tune and fit a forest and store it; return it only if it could not be stored."""
    try:
        tuned = tune_forest(job.space, job.X, job.y, settings=job.settings)
    except InputError as error:
        raise InputError(f"task {job.task!r}: {error}") from error
    try:
        make_folder(job.path.parent)
        save_forest(tuned.forest, job.path, numbers={"spearman": tuned.spearman})
    except StorageError as error:
        return _Unstored(tuned.forest, tuned.spearman, str(error))
    return None


def _loaded(path: Path) -> tuple[Forest, float]:
    forest, numbers = load_forest(path)
    if "spearman" not in numbers:
        raise InputError(f"{path}: expected a forest with its rank correlation, which is missing")
    return forest, numbers["spearman"]


def _warn(reason: str) -> None:
    warnings.warn(f"stored forests: {reason}", RecollectWarning, stacklevel=3)
