"""Fit past runs once: content hash, cache, parallel fits, and the observations that represent a long run.

A fit is a pure function of its content.  The content is hashed, the hash names the fit in the cache, and the random
starting points of the fit are seeded with it; so the result depends neither on the order of the runs, nor on how many
processes work, nor on what was fitted before.  The targets enter standardised and rounded: a run in raw units and the
same run standardised by the caller are one fit.

Notation: ``theta (d + 2,)`` logarithms of hyperparameters as of ``Hyperparameters.log``.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.numerics.threads import single_threaded
from recollect.surrogate.fit import PAST_RULES, FitSettings, Search, most_probable
from recollect.surrogate.kernels import INACTIVE, Hyperparameters, KernelShape, inactive
from recollect.surrogate.prior import Prior
from recollect.surrogate.scaling import standardize
from recollect.system import cores
from recollect.transfer.cache import FitCache
from recollect.transfer.sources import SourceData, SourceFit, Sources, check_columns

Progress = Callable[[int, int], None]

FIT_VERSION = 3  # part of the hash: to be raised when the same content is to be fitted in another way
DECIMALS = 10  # of standardised targets: far below any noise, far above what two ways of standardising differ by
USUAL_FIT = SourceFit()
WORTH_WORKERS = 2.0  # seconds of fitting, below which starting other processes takes longer than it saves
BETWEEN_WRITES = 0.5  # seconds
TOGETHER = 16  # fits that are made at once: none depends on the others
AHEAD = 2  # batches that another process has at hand, so that it never waits


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Everything that a fit depends on."""

    X: FloatArray
    z: FloatArray
    shape: KernelShape
    prior: Prior
    restarts: int

    def key(self) -> bytes:
        """Hash of the content, 32 bytes."""
        # -0 is 0, and inactive is inactive, however it was marked
        inputs = np.where(inactive(self.X), np.nan, self.X) + 0.0
        head = (FIT_VERSION, self.X.shape, bool(self.shape.conditional), self.prior, self.restarts)
        digest = hashlib.sha256(repr(head).encode())
        for values in (self.shape.categorical, inputs.astype("<f8"), self.z.astype("<f8")):
            digest.update(values.tobytes())
        return digest.digest()

    def search(self) -> Search:
        """What is sought, from where, with random starts that depend on the content alone."""
        rng = np.random.default_rng(int.from_bytes(self.key()[:16], "little"))
        return Search(self.X, self.z, self.shape, Hyperparameters.default(self.shape.d).log(), rng)

    def seconds(self) -> float:
        """About how long the fit takes."""
        return 0.005 + 0.015 * (self.z.size / 50.0) ** 2


def fit_sources(
    data: Sequence[SourceData],
    *,
    shape: KernelShape,
    settings: SourceFit = USUAL_FIT,
    cache: FitCache | None,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> Sources:
    """The past runs as fitted Gaussian processes.

    Fits that the cache knows are taken from there, and new ones are put there as they arrive, so that an interrupted
    start continues where it was.  ``progress(done, total)`` counts the fits that have to be made.  ``jobs`` is the
    number of processes that fit; None takes all cores that this process may use, when that is worth it and joblib is
    there.  A process that was started by another one fits alone.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"fit_sources: expected jobs >= 1 or None, got {jobs}")
    check_columns(data, shape)
    used = [_reduced(run, settings.most, shape) for run in data]
    tasks = [_task(_reduced(run, settings.most_for_fit, shape), shape, settings) for run in used]
    keys = [task.key() for task in tasks]
    wanted = dict(zip(keys, tasks, strict=True))  # copies of one run are one fit
    known = {} if cache is None else cache.get(wanted)
    bounds = settings.prior.log_bounds(shape.d)
    known = {key: theta for key, theta in known.items() if _plausible(theta, bounds)}
    missing = {key: task for key, task in wanted.items() if key not in known}
    known |= _fit_all(missing, cache=cache, progress=progress, jobs=jobs)
    theta = np.empty((len(used), shape.d + 2))
    for row, run, task, key in zip(theta, used, tasks, keys, strict=True):
        row[:] = known[key] if task.z.size == run.y.size else _rescaled(known[key], run, shape, settings)
    return Sources(used, shape=shape, theta=theta)


def representative_rows(run: SourceData, count: int, shape: KernelShape) -> IntArray:
    """Rows of at most ``count`` observations that represent a run, in their order.

    One third are the best (of equals, the earlier), one third the last, and one third lies as far as possible from all
    that were chosen before, one after the other, in the encoded space: numerical columns by their difference,
    categorical and inactive ones by being different.  Where best and last are the same observation, the next best fill
    up.  The choice is deterministic.
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
    missing = inactive(X)
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


def _reduced(run: SourceData, count: int, shape: KernelShape) -> SourceData:
    return run if run.y.size <= count else run.at(representative_rows(run, count, shape))


def _task(run: SourceData, shape: KernelShape, settings: SourceFit) -> Task:
    z = np.round(standardize(run.y)[0], DECIMALS) + 0.0
    return Task(run.X, z, shape, settings.prior, settings.restarts)


def _rescaled(theta: FloatArray, run: SourceData, shape: KernelShape, settings: SourceFit) -> FloatArray:
    """Hyperparameters found on a part of a run, for targets standardised with all of it.

    Amplitude and noise are variances in units of the part's variance; within the bounds of the prior, they are
    brought to the units of the whole.
    """
    part = run.at(representative_rows(run, settings.most_for_fit, shape))
    z, _, scale = standardize(part.y)
    out = theta.copy()
    if z.any():
        out[[0, -1]] += 2.0 * (np.log(scale) - np.log(standardize(run.y)[2]))
    bounds = settings.prior.log_bounds(shape.d)
    return np.clip(out, bounds[:, 0], bounds[:, 1])


def _plausible(theta: FloatArray, bounds: FloatArray) -> bool:
    """Whether a row of the cache can be the result of a fit within the bounds; nan cannot."""
    if theta.size != len(bounds):
        return False
    return bool(((theta >= bounds[:, 0] - 1e-9) & (theta <= bounds[:, 1] + 1e-9)).all())


def _fit_all(
    missing: dict[bytes, Task], *, cache: FitCache | None, progress: Progress | None, jobs: int | None
) -> dict[bytes, FloatArray]:
    """Fit what is missing, and keep what was fitted even if interrupted."""
    found: dict[bytes, FloatArray] = {}
    unwritten: dict[bytes, FloatArray] = {}
    written = time.monotonic()
    try:
        for fits in _results(missing, _workers(missing, jobs)):
            found |= fits
            unwritten |= fits
            if cache is not None and time.monotonic() - written > BETWEEN_WRITES:
                cache.put(unwritten)
                unwritten, written = {}, time.monotonic()
            if progress is not None:
                progress(len(found), len(missing))
    finally:
        if cache is not None:
            cache.put(unwritten)
    return found


def _workers(missing: dict[bytes, Task], jobs: int | None) -> int:
    """How many processes shall fit."""
    if multiprocessing.parent_process() is not None or find_spec("joblib") is None:
        return 1
    if jobs is None:
        if sum(task.seconds() for task in missing.values()) < WORTH_WORKERS:
            return 1
        jobs = cores()
    return max(1, min(jobs, len(missing)))


def _results(missing: dict[bytes, Task], workers: int) -> Iterator[dict[bytes, FloatArray]]:
    """Fits as they are finished; the longest are begun first."""
    batches = _batches(missing, workers)
    if workers == 1:
        yield from map(_fits, batches)
        return
    others = _executor(workers - 1)
    try:
        yield from _shared(batches, others, most=AHEAD * (workers - 1))
    finally:
        others.shutdown(wait=False, kill_workers=True)


def _shared(batches: deque[dict[bytes, Task]], others: Any, *, most: int) -> Iterator[dict[bytes, FloatArray]]:
    """Fits as they are finished, by this process and others that have at ``most`` so many batches at hand.

    The others take a while to start, this process begins at once. What they cannot finish is fitted here.
    """
    running: dict[Future[dict[bytes, FloatArray]], dict[bytes, Task]] = {}
    while batches or running:
        while batches and len(running) < most:
            try:
                future = others.submit(_fits, batches[0])
            except BrokenProcessPool:
                most = 0
            else:
                running[future] = batches.popleft()
        if batches:
            yield _fits(batches.popleft())
        for future in wait(running, timeout=0 if batches else None, return_when=FIRST_COMPLETED).done:
            batch = running.pop(future)
            try:
                fits = future.result()
            except BrokenProcessPool:
                most, fits = 0, _fits(batch)
            yield fits


def _batches(missing: dict[bytes, Task], workers: int) -> deque[dict[bytes, Task]]:
    """What to fit at once; where several work, less and less, so that all finish at about the same time."""
    ordered = sorted(missing.items(), key=lambda item: -item[1].z.size)
    batches: deque[dict[bytes, Task]] = deque()
    while ordered:
        fair = len(ordered) if workers == 1 else len(ordered) // (2 * AHEAD * (workers - 1))
        size = max(1, min(TOGETHER, fair))
        batches.append(dict(ordered[:size]))
        del ordered[:size]
    return batches


def _executor(count: int) -> Any:
    """So many processes of this computer; not those that joblib keeps, which others in this process may be using."""
    return import_module("joblib.externals.loky").ProcessPoolExecutor(count)


def _fits(tasks: dict[bytes, Task]) -> dict[bytes, FloatArray]:
    """``theta`` of each fitted process."""
    prior, restarts = next((task.prior, task.restarts) for task in tasks.values())
    settings = FitSettings(prior, restarts, rules=PAST_RULES)
    with single_threaded():
        found = most_probable([task.search() for task in tasks.values()], settings)
    return dict(zip(tasks, found, strict=True))
