"""Fit past runs once: content hash, cache, parallel fits, and the observations that represent a long run.

A fit is a pure function of its content. The hash of the content names the fit in the cache and seeds its random
restarts, so the result depends neither on the order of the runs, nor on the number of processes, nor on earlier fits.
The targets are standardized and rounded: a run in raw units and the same run standardized by the caller are one fit.

Notation: ``theta (d + 2,)`` logarithms of hyperparameters as of ``Hyperparameters.log``.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from recollect._system import available_cores
from recollect.errors import InputError
from recollect.numerics.arrays import INACTIVE, BoolArray, FloatArray, IntArray, KernelShape, is_inactive
from recollect.numerics.linalg import single_threaded
from recollect.processes import ProcessDiedError, ProcessPool, ProcessStartError, is_worker
from recollect.surrogate.fit import SOURCE_BFGS, FitProblem, FitSettings, map_estimates
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.prior import Prior
from recollect.surrogate.scaling import standardize
from recollect.transfer.sources import SourceData, SourceFit, Sources, check_columns

Progress = Callable[[int, int], None]

FIT_VERSION = 3  # part of the hash: raise it when the same content is to be fitted in another way
DECIMALS = 10  # of standardized targets: far below any noise, far above the differences between ways to standardize
DEFAULT_FIT = SourceFit()
MIN_PARALLEL_SECONDS = 2.0  # of fitting in all: below, starting other processes takes longer than it saves
WRITE_INTERVAL = 0.5  # seconds between writes to the cache
MAX_BATCH = 16  # fits in one call
BATCHES_AHEAD = 2  # batches queued for each other process, so that it never waits


@dataclass(frozen=True, slots=True, eq=False)
class FitTask:
    """Everything that a fit depends on."""

    X: FloatArray
    z: FloatArray
    shape: KernelShape
    prior: Prior
    restarts: int

    def key(self) -> bytes:
        """Return the hash of the content, 32 bytes; signs of zeros and marks of inactive entries do not count."""
        inputs = np.where(is_inactive(self.X), np.nan, self.X) + 0.0
        head = (FIT_VERSION, self.X.shape, bool(self.shape.conditional), self.prior, self.restarts)
        digest = hashlib.sha256(repr(head).encode())
        for values in (self.shape.categorical, inputs.astype("<f8"), self.z.astype("<f8")):
            digest.update(values.tobytes())
        return digest.digest()

    def problem(self) -> FitProblem:
        """Return the optimization problem, with random starts that depend on the content alone."""
        rng = np.random.default_rng(int.from_bytes(self.key()[:16], "little"))
        return FitProblem(self.X, self.z, self.shape, Hyperparameters.default(self.shape.d).log(), rng)

    def seconds(self) -> float:
        """Estimate how long the fit takes."""
        return fit_seconds(self.z.size)


class KnownFits(Protocol):
    """Where fits are looked up and kept, such as a `FitCache`."""

    def get(self, keys: Iterable[bytes]) -> Fits:
        """Return the fits that are known."""

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        """Keep fits."""


def fit_seconds(observations: int) -> float:
    """Estimate how long the fit of a past run takes."""
    return 0.005 + 0.015 * (observations / 50.0) ** 2


Batch: TypeAlias = dict[bytes, FitTask]
Fits: TypeAlias = dict[bytes, FloatArray]


def fit_sources(
    data: Sequence[SourceData],
    *,
    shape: KernelShape,
    settings: SourceFit = DEFAULT_FIT,
    cache: KnownFits | None,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> Sources:
    """Return the past runs as fitted Gaussian processes.

    Fits that are in the cache are not repeated. New ones are written as they finish, so that an interrupted start can
    continue. ``progress`` is called with the numbers of finished and of necessary fits. ``jobs`` is the number of
    processes; None uses all available cores if that saves time. A worker process of recollect starts no others.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"fit_sources: expected jobs >= 1 or None, got {jobs}")
    check_columns(data, shape)
    used, tasks = _tasks(data, shape, settings)
    fits, missing = _known(tasks, shape, settings, cache)
    fits |= _fit_all(missing, cache=cache, progress=progress, workers=_workers(missing, jobs))
    theta = np.empty((len(used), shape.d + 2))
    for row, run, (key, task) in zip(theta, used, tasks, strict=True):
        row[:] = fits[key] if task.z.size == run.y.size else _rescaled(fits[key], run, shape, settings)
    return Sources(used, shape=shape, theta=theta)


def fit_behind(
    data: Sequence[SourceData], *, shape: KernelShape, settings: SourceFit, cache: KnownFits, progress: Progress
) -> None:
    """Fit the past runs that the cache lacks, while this process has other things to do.

    Where that is worthwhile, other processes do all of it, and the caller's thread only waits for them.
    """
    missing = _known(_tasks(data, shape, settings)[1], shape, settings, cache)[1]
    _fit_all(missing, cache=cache, progress=progress, workers=_workers(missing, None), behind=True)


def _tasks(
    data: Sequence[SourceData], shape: KernelShape, settings: SourceFit
) -> tuple[list[SourceData], list[tuple[bytes, FitTask]]]:
    """Return each run as it is modelled, and what is fitted of it, with its key."""
    used = [reduced(run, settings.max_observations, shape) for run in data]
    tasks = [_task(reduced(run, settings.max_fit_observations, shape), shape, settings) for run in used]
    return used, [(task.key(), task) for task in tasks]


def _known(
    tasks: list[tuple[bytes, FitTask]], shape: KernelShape, settings: SourceFit, cache: KnownFits | None
) -> tuple[Fits, Batch]:
    """Return the fits that are in the cache, and what is missing."""
    unique = dict(tasks)  # copies of one run are one fit
    cached = {} if cache is None else cache.get(unique)
    bounds = settings.prior.log_bounds(shape.d)
    fits = {key: theta for key, theta in cached.items() if _plausible(theta, bounds)}
    return fits, {key: task for key, task in unique.items() if key not in fits}


def representative_rows(run: SourceData, count: int, shape: KernelShape) -> IntArray:
    """Return the rows of at most ``count`` observations that represent a run, in ascending order.

    One third are the best (the earlier of those tied), one third the last. The last third is chosen one by one, each as
    far as possible from all chosen before in the encoded space: numerical columns by their difference, categorical and
    inactive ones by being different. If best and last overlap, the next best fill up. The choice is deterministic.
    """
    n = run.y.size
    if n <= count:
        return np.arange(n)
    third = count // 3
    order = np.argsort(run.y, kind="stable")
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[order[: count - 2 * third]] = True
    chosen[n - third :] = True
    _spread(run.X, chosen, third, shape)
    rest = order[~chosen[order]]
    chosen[rest[: count - int(chosen.sum())]] = True
    return np.flatnonzero(chosen)


def _spread(X: FloatArray, chosen: BoolArray, count: int, shape: KernelShape) -> None:
    """Choose ``count`` more rows, each the one whose nearest chosen row is farthest away."""
    missing = is_inactive(X)
    numerical = np.where(missing, 0.0, X)[:, ~shape.categorical]
    labels = np.column_stack((missing, np.where(missing, INACTIVE, X)[:, shape.categorical]))

    def distances(row: int) -> FloatArray:
        squared = np.square(numerical - numerical[row]).sum(axis=1)
        return np.asarray(squared + (labels != labels[row]).sum(axis=1), dtype=np.float64)

    nearest = np.full(len(X), np.inf)
    for row in np.flatnonzero(chosen):
        np.minimum(nearest, distances(int(row)), out=nearest)
    for _ in range(count):
        nearest[chosen] = -1.0
        farthest = int(nearest.argmax())
        chosen[farthest] = True
        np.minimum(nearest, distances(farthest), out=nearest)


def reduced(run: SourceData, count: int, shape: KernelShape) -> SourceData:
    """Return a run, represented by at most ``count`` observations."""
    return run if run.y.size <= count else run.at(representative_rows(run, count, shape))


def _task(run: SourceData, shape: KernelShape, settings: SourceFit) -> FitTask:
    z = np.round(standardize(run.y)[0], DECIMALS) + 0.0
    return FitTask(run.X, z, shape, settings.prior, settings.restarts)


def _rescaled(theta: FloatArray, run: SourceData, shape: KernelShape, settings: SourceFit) -> FloatArray:
    """Convert amplitude and noise, found on a part of a run, to units of the variance of all of it, within bounds."""
    part = run.at(representative_rows(run, settings.max_fit_observations, shape))
    z, _, scale = standardize(part.y)
    out = theta.copy()
    if z.any():
        out[[0, -1]] += 2.0 * (np.log(scale) - np.log(standardize(run.y)[2]))
    bounds = settings.prior.log_bounds(shape.d)
    return np.clip(out, bounds[:, 0], bounds[:, 1])


def _plausible(theta: FloatArray, bounds: FloatArray) -> bool:
    """Whether a row of the cache can be the result of a fit within the bounds; nan cannot."""
    low, high = bounds[:, 0] - 1e-9, bounds[:, 1] + 1e-9
    return theta.size == len(bounds) and bool(((theta >= low) & (theta <= high)).all())


def _fit_all(
    missing: Batch, *, cache: KnownFits | None, progress: Progress | None, workers: int, behind: bool = False
) -> Fits:
    """Fit what is missing; finished fits are cached even if the process is interrupted."""
    finished, unwritten, written = Fits(), Fits(), time.monotonic()
    try:
        for fits in _results(missing, workers, behind=behind):
            finished |= fits
            unwritten |= fits
            if cache is not None and time.monotonic() - written > WRITE_INTERVAL:
                cache.put(unwritten)
                unwritten, written = {}, time.monotonic()
            if progress is not None:
                progress(len(finished), len(missing))
    finally:
        if cache is not None:
            cache.put(unwritten)
    return finished


def _workers(missing: Batch, jobs: int | None) -> int:
    """Return how many processes fit."""
    short = sum(task.seconds() for task in missing.values()) < MIN_PARALLEL_SECONDS
    wanted = jobs or (1 if short else available_cores())
    return 1 if is_worker() else max(1, min(wanted, len(missing)))


def _results(missing: Batch, workers: int, *, behind: bool) -> Iterator[Fits]:
    """Yield fits as they finish, by this process and by others; the longest start first.

    The others take a while to start; this process begins at once, unless ``behind``. It also fits what they leave when
    they die, and everything if they do not start.
    """
    batches = _batches(missing, workers)
    if workers == 1:
        yield from map(_fits, batches)
        return
    max_queued = BATCHES_AHEAD * (workers - 1)
    running: dict[Future[Fits], Batch] = {}
    with ProcessPool(_fits, workers - 1) as others:
        while batches or running:
            while batches and len(running) < max_queued:
                batch = batches.popleft()
                running[others.submit(batch)] = batch
            here = bool(batches) and (max_queued == 0 or not behind)
            if here:
                yield _fits(batches.popleft())
            for future in wait(running, timeout=0 if here else None, return_when=FIRST_COMPLETED).done:
                batch = running.pop(future)
                try:
                    fits = future.result()
                except (ProcessDiedError, ProcessStartError):
                    max_queued, fits = 0, _fits(batch)
                yield fits


def _batches(missing: Batch, workers: int) -> deque[Batch]:
    """Group fits into batches; for several processes they get smaller, so that all finish at about the same time."""
    ordered = sorted(missing.items(), key=lambda item: -item[1].z.size)
    batches: deque[Batch] = deque()
    while ordered:
        fair = len(ordered) if workers == 1 else len(ordered) // (2 * BATCHES_AHEAD * (workers - 1))
        size = max(1, min(MAX_BATCH, fair))
        batches.append(dict(ordered[:size]))
        del ordered[:size]
    return batches


def _fits(tasks: Batch) -> Fits:
    """Return ``theta`` of each task."""
    prior, restarts = next((task.prior, task.restarts) for task in tasks.values())
    settings = FitSettings(prior, restarts, bfgs=SOURCE_BFGS)
    with single_threaded():
        estimates = map_estimates([task.problem() for task in tasks.values()], settings)
    return dict(zip(tasks, estimates, strict=True))
