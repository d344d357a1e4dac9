"""One run of an experiment: a method on a task, with past runs on other tasks.

A `Job` is everything that a run depends on, as plain data, so that any process on any host gives the same answer. Where
a benchmark has a list of configurations, a run's are kept as positions in it.

Notation: t evaluations of a run.
"""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect import __version__
from recollect.bench.plan import Spec
from recollect.bench.problem import Benchmark
from recollect.bench.results import WEIGHTS, Finished, Key
from recollect.history.run import Config, Run
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from recollect.optimizer.optimizer import Optimizer


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A run with all it evaluated, in order: positions in the task's list (picks), or configurations."""

    task: str
    repetition: int
    seed: int
    picks: tuple[int, ...] | None
    configs: tuple[Config, ...] | None
    values: tuple[float, ...]
    seconds: float
    version: str

    def run(self, benchmark: Benchmark) -> Run:
        """Return it as a past run."""
        if self.picks is None:
            return Run(self.task, self.configs or (), self.values)
        candidates = benchmark.task(self.task).candidates or ()
        return Run(self.task, [candidates[pick] for pick in self.picks], self.values)

    def finished(self, benchmark: Benchmark, method: str) -> Finished:
        """Return it as a result."""
        task = benchmark.task(self.task)
        key = Key(benchmark.name, method, self.task, self.repetition)
        values = np.array(self.values)
        return Finished(key, self.seed, task.best, task.worst, values, None, self.seconds, self.version)

    def line(self) -> str:
        """Return it as a line of JSON."""
        entries = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps({name: value for name, value in entries.items() if value is not None}) + "\n"


def kept_from(line: str) -> Kept:
    """Return what `Kept.line` wrote; ValueError for anything else."""
    try:
        entries: dict[str, Any] = json.loads(line)
        if not isinstance(entries, dict):
            raise TypeError("not an object")
        for name in ("picks", "configs", "values"):
            entries[name] = None if entries.get(name) is None else tuple(entries[name])
        return Kept(**entries)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a past run, got {line[:60]!r}: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A run to be made, of ``trials`` evaluations, or all that there are. keep_weights: with the models' weights."""

    key: Key
    spec: Spec
    seed: int
    horizon: int
    trials: int
    past: tuple[Kept, ...] = ()
    keep_weights: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A run that was made, as a result and with all it evaluated."""

    finished: Finished
    kept: Kept

    @property
    def key(self) -> Key:
        """Which run it is."""
        return self.finished.key


@dataclass(frozen=True, slots=True)
class Crashed:
    """A run that could not be made, and why: the text of the traceback."""

    key: Key
    reason: str


def run_job(job: Job) -> Made | Crashed:
    """Make a run; whatever goes wrong is an answer, too."""
    try:
        return make_run(job)
    except Exception:  # noqa: BLE001  (reported with its traceback by who asked for the run)
        return Crashed(job.key, traceback.format_exc())


def make_run(job: Job) -> Made:
    """Make a run."""
    from recollect.optimizer.optimizer import Optimizer

    benchmark = opened(job.spec)
    task = benchmark.task(job.key.task)
    past = [kept.run(benchmark) for kept in job.past]
    optimizer = Optimizer(
        benchmark.space, past, job.key.method, horizon=job.horizon, seed=job.seed, candidates=task.candidates
    )
    count = job.trials if task.candidates is None else min(job.trials, len(task.candidates))
    weights = np.full((count, WEIGHTS), np.nan) if job.keep_weights else None
    seconds = 0.0
    for number in range(count):
        begun = time.perf_counter()
        config = optimizer.ask()
        seconds += time.perf_counter() - begun
        if weights is not None:
            weights[number] = weights_now(optimizer)
        value = task.evaluate(config)
        begun = time.perf_counter()
        optimizer.tell(config, value)
        seconds += time.perf_counter() - begun
    run, mean = optimizer.run, float(f"{seconds / count:.3g}")
    where = None if task.candidates is None else {_text(config): at for at, config in enumerate(task.candidates)}
    kept = Kept(
        task=task.name,
        repetition=job.key.repetition,
        seed=job.seed,
        picks=None if where is None else tuple(where[_text(config)] for config in run.configs),
        configs=tuple(run.configs) if where is None else None,
        values=tuple(run.y.tolist()),
        seconds=mean,
        version=__version__,
    )
    return Made(replace(kept.finished(benchmark, job.key.method), weights=weights), kept)


def weights_now(optimizer: Optimizer) -> FloatArray:
    """Return the target's weight, the two largest of past runs, the rest, and how many are not 0; nan without any."""
    shown = optimizer.explain()
    past = np.sort([entry.weight for entry in shown.past if entry.weight is not None])[::-1]
    if shown.target.weight is None or len(past) == 0:
        return np.full(WEIGHTS, np.nan)
    largest = np.append(past, [0.0, 0.0])[:2]
    count = int(np.count_nonzero(past)) + int(shown.target.weight != 0.0)
    return np.array([shown.target.weight, *largest, float(past[2:].sum()), count])


@lru_cache(maxsize=2)
def opened(spec: Spec) -> Benchmark:
    """Return the benchmark of a plan; loaded once in a process."""
    return spec.open()


def _text(config: Config) -> str:
    return repr(sorted(config.items()))
