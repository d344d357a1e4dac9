"""One run of an experiment: a contestant tunes a task, with past runs on other tasks.

A run is one of these, in this order:

    RunSpec       everything the run depends on, as plain data: any process on any host gives the same result
    CompletedRun  its result, one line of ``runs.csv``
    SourceRun     the same run with its configurations, one line of ``past-NAME.jsonl``: what others learn from
    FailedRun     why it could not be completed

`RunKey` identifies all of them.

Notation: t evaluations of a run.
"""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from recollect import __version__
from recollect.bench.experiment.contestants import AskTell, ContestantSpec, RunSetting, close
from recollect.numerics.arrays import FloatArray, best_so_far
from recollect.runs.run import Config, Run

if TYPE_CHECKING:
    from recollect.bench.benchmark import Benchmark
    from recollect.bench.experiment.plan import BenchmarkSpec
    from recollect.optimizer.optimizer import Optimizer

WEIGHT_COLUMNS = 5  # see CompletedRun.weights


class RunKey(NamedTuple):
    """What identifies a run."""

    benchmark: str
    method: str
    task: str
    repetition: int

    def __str__(self) -> str:
        """Return the key as words, for messages."""
        return " ".join(map(str, self))


@dataclass(frozen=True, slots=True, eq=False)
class SourceRun:
    """A run with everything it evaluated, for runs on other tasks to learn from."""

    task: str
    repetition: int
    seed: int  # of the optimizer
    picks: tuple[int, ...] | None  # positions of the configurations among the task's candidates; None if it has none
    configs: tuple[Config, ...] | None  # the configurations themselves; None if ``picks`` says which they are
    values: tuple[float, ...]  # their errors, in the order of evaluation
    seconds: float  # mean time per suggestion
    version: str  # of recollect that made the run

    def as_run(self, benchmark: Benchmark) -> Run:
        """Return it in the form that an optimizer takes."""
        if self.picks is None:
            return Run(self.task, self.configs or (), self.values)
        candidates = benchmark.task(self.task).candidates or ()
        return Run(self.task, [candidates[pick] for pick in self.picks], self.values)

    def completed(self, benchmark: Benchmark, method: str) -> CompletedRun:
        """Return it as a result of this method."""
        task = benchmark.task(self.task)
        key = RunKey(benchmark.name, method, self.task, self.repetition)
        values = np.array(self.values)
        return CompletedRun(key, self.seed, task.best, task.worst, values, None, self.seconds, self.version, self)

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        entries = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps({name: value for name, value in entries.items() if value is not None}) + "\n"

    @classmethod
    def from_json(cls, line: str) -> SourceRun:
        """Return what `to_json` wrote; ValueError for anything else."""
        try:
            entries: dict[str, Any] = json.loads(line)
            if not isinstance(entries, dict):
                raise TypeError("not an object")
            for name in ("picks", "configs", "values"):
                entries[name] = None if entries.get(name) is None else tuple(entries[name])
            return cls(**entries)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected a past run, got {line[:60]!r}: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class CompletedRun:
    """The result of a run.

    ``weights`` (t, 5) are the weight of the target's model, the two largest weights of past runs, the sum of the
    others, and how many are not zero; nan where no model was used. None if they were not recorded.
    """

    key: RunKey
    seed: int  # of the optimizer
    best: float  # the error at which regret is 0
    worst: float  # the error at which regret is 1
    values: FloatArray  # errors (t,) in the order of evaluation, nan for a failed evaluation
    weights: FloatArray | None
    seconds: float  # mean time per suggestion
    version: str  # of recollect that made the run
    source: SourceRun | None = field(default=None, repr=False)  # for others to learn from; None if read from a file

    @property
    def regret(self) -> FloatArray:
        """Normalized regret (t,) after each evaluation; 0 on a task where all errors are the same."""
        span = self.worst - self.best
        best = best_so_far(self.values)
        return np.asarray((best - self.best) / span) if span > 0 else np.zeros(len(best))


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that could not be completed, and the reason: the text of the traceback, or how its process died."""

    key: RunKey
    reason: str
    process_died: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RunSpec:
    """A run to execute."""

    key: RunKey
    benchmark: BenchmarkSpec
    seed: int  # of the optimizer
    horizon: int  # the number of evaluations that the optimizer plans for
    trials: int  # the number of evaluations to make; fewer if the task has fewer candidates
    sources: tuple[SourceRun, ...] = ()  # the past runs to learn from
    record_weights: bool = False
    contestant: ContestantSpec | None = None  # what is run; None: the method of recollect that the key names


def try_run(spec: RunSpec) -> CompletedRun | FailedRun:
    """Execute a run; an exception becomes a `FailedRun`."""
    try:
        return execute_run(spec)
    except Exception:  # noqa: BLE001  (the caller reports the traceback)
        return FailedRun(spec.key, traceback.format_exc())


def execute_run(spec: RunSpec) -> CompletedRun:
    """Execute a run."""
    benchmark = open_benchmark(spec.benchmark)
    task = benchmark.task(spec.key.task)
    past = tuple(source.as_run(benchmark) for source in spec.sources)
    contestant = _start(spec, RunSetting(benchmark.space, past, spec.horizon, spec.seed, task.candidates))
    count = spec.trials if task.candidates is None else min(spec.trials, len(task.candidates))
    weights = np.full((count, WEIGHT_COLUMNS), np.nan) if spec.record_weights else None
    configs: list[Config] = []
    values: list[float] = []
    seconds = 0.0
    try:
        for number in range(count):
            begin = time.perf_counter()
            config = dict(contestant.ask())
            seconds += time.perf_counter() - begin
            if weights is not None:
                weights[number] = current_weights(cast("Optimizer", contestant))
            configs.append(config)
            values.append(task.evaluate(config))
            begin = time.perf_counter()
            contestant.tell(config, values[-1])
            seconds += time.perf_counter() - begin
    finally:
        close(contestant)
    picks = None
    if task.candidates is not None:
        positions = {_config_text(config): number for number, config in enumerate(task.candidates)}
        picks = tuple(positions[_config_text(config)] for config in configs)
    stored, mean_seconds = tuple(configs) if picks is None else None, float(f"{seconds / count:.3g}")
    result = picks, stored, tuple(values), mean_seconds, __version__
    source = SourceRun(task.name, spec.key.repetition, spec.seed, *result)
    return replace(source.completed(benchmark, spec.key.method), weights=weights)


def _start(spec: RunSpec, setting: RunSetting) -> AskTell:
    """Return what is asked and told: the same optimizer that users have, or a contestant from outside."""
    from recollect.optimizer.optimizer import Optimizer

    contestant = spec.contestant or ContestantSpec(spec.key.method)
    method = contestant.method()
    if method is None:
        return contestant.create(setting)
    limits: dict[str, Any] = {"horizon": setting.horizon, "seed": setting.seed, "candidates": setting.candidates}
    return Optimizer(setting.space, setting.past, method, **limits)


def current_weights(optimizer: Optimizer) -> FloatArray:
    """Return the weights of the last suggestion as `CompletedRun.weights` has them; nan if there are none."""
    explanation = optimizer.explain()
    sources = np.sort([entry.weight for entry in explanation.past if entry.weight is not None])[::-1]
    target = explanation.target.weight
    if target is None or len(sources) == 0:
        return np.full(WEIGHT_COLUMNS, np.nan)
    largest = np.append(sources, [0.0, 0.0])[:2]
    count = int(np.count_nonzero(sources)) + int(target != 0.0)
    return np.array([target, *largest, float(sources[2:].sum()), count])


@lru_cache(maxsize=2)
def open_benchmark(spec: BenchmarkSpec) -> Benchmark:
    """Return the benchmark of a plan, loaded once per process."""
    return spec.open()


def _config_text(config: Config) -> str:
    return repr(sorted(config.items()))
