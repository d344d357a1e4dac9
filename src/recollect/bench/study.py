"""Finished runs, grouped: what every method did on every benchmark (paper section 6.1).

Notation: h evaluations, the horizon of a benchmark; regrets are normalised, lower is better. ADTM is the mean over
tasks of a task's mean over repetitions. The horizon is the length of the longest run, but for random search: its runs
are longer, and where they are long enough, Random (2x), (4x), (10x) are computed from them: `random-2x` and so on.

Errors count with the digits that packed results have, so that these can be compared with others.

After its end a run's regret is unknown, nan, unless it has found the best there is. A run that has only failed so far
counts as the worst: 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from recollect.bench.results import Finished, Key, rounded
from recollect.bench.statistics import Place, best_so_far, common_places, random_multiple, task_means
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

MULTIPLES = (2, 4, 10)
DEFAULT_HORIZON = 50  # where there are only runs of random search

Curves: TypeAlias = Mapping[Place, FloatArray]
"""Regret (h,) of every run, by task and repetition."""


class Gap(NamedTuple):
    """The task on which a method is worst compared with another: how much, where, of how many tasks."""

    regret: float
    task: str
    tasks: int


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a method did on a benchmark. regrets: (tasks, h), mean over the repetitions of each task, tasks sorted.

    seconds: per suggestion, nan where it is not known; remark: how it was computed, if it was not run.
    """

    benchmark: str
    method: str
    tasks: tuple[str, ...]
    regrets: FloatArray
    curves: Curves
    seconds: float
    remark: str

    @property
    def adtm(self) -> FloatArray:
        """ADTM (h,) after each evaluation."""
        return np.asarray(self.regrets.mean(axis=0))

    @property
    def area(self) -> float:
        """Area under the curve of the ADTM, over h: its mean over evaluations 1..h."""
        return float(self.adtm.mean())

    @property
    def repetitions(self) -> tuple[int, int]:
        """Fewest and most repetitions of a task."""
        counts = Counter(task for task, _ in self.curves).values()
        return min(counts), max(counts)

    def at(self, evaluations: int) -> dict[str, float]:
        """Return every task's mean regret after so many evaluations; without tasks where it is not known."""
        if not 1 <= evaluations <= self.regrets.shape[1]:
            return {}
        column = self.regrets[:, evaluations - 1].tolist()
        return {task: regret for task, regret in zip(self.tasks, column, strict=True) if not math.isnan(regret)}

    def runs_at(self, evaluations: int) -> dict[Place, float]:
        """Return every run's regret after so many evaluations; without runs where it is not known."""
        if not 1 <= evaluations <= self.regrets.shape[1]:
            return {}
        found = {place: float(curve[evaluations - 1]) for place, curve in self.curves.items()}
        return {place: regret for place, regret in found.items() if not math.isnan(regret)}


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """All outcomes by benchmark and method, both sorted, and the horizon of every benchmark."""

    outcomes: Mapping[str, Mapping[str, Outcome]]
    horizons: Mapping[str, int]

    def find(self, benchmark: str, method: str) -> Outcome | None:
        """Return an outcome, None if there is no such run."""
        return self.outcomes.get(benchmark, {}).get(method)

    def with_outcomes(self, more: Iterable[Outcome]) -> Study:
        """Return the study with more outcomes on its benchmarks."""
        joined = {benchmark: dict(found) for benchmark, found in self.outcomes.items()}
        for outcome in more:
            joined[outcome.benchmark][outcome.method] = outcome
        return Study({name: dict(sorted(found.items())) for name, found in joined.items()}, self.horizons)


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Mean rank (methods, h) of each method after each evaluation, over the runs that all of them have in common."""

    methods: tuple[str, ...]
    ranks: FloatArray
    tasks: int
    runs: int


def common_runs(runs: Iterable[Finished]) -> list[Finished]:
    """Return the runs of those tasks and repetitions that all methods of their benchmark have."""
    given = list(runs)
    cells: dict[str, dict[str, set[tuple[str, int]]]] = {}
    for run in given:
        cells.setdefault(run.key.benchmark, {}).setdefault(run.key.method, set()).add(run.key[2:])
    common = {benchmark: set.intersection(*methods.values()) for benchmark, methods in cells.items()}
    for benchmark, shared in common.items():
        if not shared:
            raise InputError(f"{benchmark}: expected a task and repetition that all its methods have, there is none")
    return [run for run in given if run.key[2:] in common[run.key.benchmark]]


def make_study(runs: Iterable[Finished]) -> Study:
    """Group runs; the same study whatever their order."""
    groups: dict[str, dict[str, list[Finished]]] = {}
    for run in _checked(runs):
        groups.setdefault(run.key.benchmark, {}).setdefault(run.key.method, []).append(run)
    if not groups:
        raise InputError("results: expected at least one finished run, got none")
    horizons = {benchmark: _horizon(methods) for benchmark, methods in groups.items()}
    found = [outcome for name, methods in groups.items() for outcome in _outcomes(methods, horizons[name])]
    return Study({benchmark: {} for benchmark in groups}, horizons).with_outcomes(found)


def make_outcome(benchmark: str, method: str, *, curves: Curves, seconds: float, remark: str = "") -> Outcome:
    """Return an outcome from the regrets of single runs."""
    by_task: dict[str, list[FloatArray]] = {}
    for task, repetition in sorted(curves):
        by_task.setdefault(task, []).append(curves[task, repetition])
    regrets = np.array([np.mean(found, axis=0) for found in by_task.values()])
    return Outcome(benchmark, method, tuple(by_task), regrets, curves, seconds, remark)


def task_gaps(outcome: Outcome, other: Outcome, evaluations: int) -> dict[str, float]:
    """Return by how much a method is behind another on each task after so many evaluations, on the runs of both."""
    found = outcome.runs_at(evaluations), other.runs_at(evaluations)
    own, others = (task_means(regrets, common_places(found)) for regrets in found)
    return {task: own[task] - others[task] for task in own}


def short_of(outcome: Outcome, outcomes: Iterable[Outcome]) -> str:
    """Return what a method has if others have more: so many tasks, or repetitions; empty if it has as much as any."""
    others = list(outcomes)
    if len(outcome.tasks) < max(len(other.tasks) for other in others):
        return f"{len(outcome.tasks)} task{'s' * (len(outcome.tasks) > 1)}"
    if len(outcome.curves) == max(len(other.curves) for other in others):
        return ""
    fewest, most = outcome.repetitions
    times = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"{times} repetition{'s' * (most > 1)}"


def worst_gap(outcome: Outcome, other: Outcome, evaluations: int) -> Gap | None:
    """Return where a method is worst compared with another after so many evaluations; None without a common run."""
    gaps = task_gaps(outcome, other, evaluations)
    if not gaps:
        return None
    task = max(gaps, key=lambda name: gaps[name])
    return Gap(gaps[task], task, len(gaps))


def run_ranks(outcomes: Sequence[Outcome]) -> Ranks:
    """Rank methods by regret on every task and repetition that all have, and average; ties share a rank."""
    from scipy.stats import rankdata

    names = tuple(outcome.method for outcome in outcomes)
    if len(outcomes) < 2:
        raise InputError(f"ranks: expected two or more methods, got {list(names)}")
    common = common_places([outcome.curves for outcome in outcomes])
    if not common:
        raise InputError(f"ranks: expected a run that all methods have in common, but {', '.join(names)} have none")
    curves = np.array([[outcome.curves[run] for run in common] for outcome in outcomes])  # (methods, runs, h)
    ranks = rankdata(curves, axis=0).mean(axis=1)
    return Ranks(names, np.asarray(ranks), len({task for task, _ in common}), len(common))


def _named(key: Key) -> str:
    return f"of {key.method} on {key.benchmark}, task {key.task}, repetition {key.repetition},"


def _checked(runs: Iterable[Finished]) -> list[Finished]:
    """The runs by key, rounded; refuse what cannot be compared."""
    ordered = sorted(map(rounded, runs), key=lambda run: run.key)
    ends: dict[tuple[str, str], Finished] = {}
    for before, run in zip([None, *ordered], ordered, strict=False):
        if before is not None and before.key == run.key:
            raise InputError(f"results: the run {_named(run.key)} comes twice")
        if len(run.values) == 0:
            raise InputError(f"results: the run {_named(run.key)} has no evaluation")
        first = ends.setdefault((run.key.benchmark, run.key.task), run)
        if not (math.isclose(first.best, run.best) and math.isclose(first.worst, run.worst)):
            raise InputError(
                f"results: expected the same best and worst error in all runs on a task, but the run {_named(run.key)} "
                f"has {run.best:g} and {run.worst:g}, that of {first.key.method} {first.best:g} and {first.worst:g}"
            )
    return ordered


def _horizon(methods: Mapping[str, list[Finished]]) -> int:
    lengths = {name: max(len(run.values) for run in runs) for name, runs in methods.items()}
    others = [length for name, length in lengths.items() if name != "random"]
    return max(others) if others else min(DEFAULT_HORIZON, lengths["random"])


def _outcomes(methods: Mapping[str, list[Finished]], horizon: int) -> Iterator[Outcome]:
    for name, runs in methods.items():
        benchmark = runs[0].key.benchmark
        seconds = float(np.mean([run.seconds for run in runs]))
        curves = {_place(run): _curve(run, run.regret, horizon) for run in runs}
        yield make_outcome(benchmark, name, curves=curves, seconds=seconds)
        # As in the paper, not where a table is so small that random search comes to its end.
        long = [run for run in runs if name == "random" and len(run.values) >= max(MULTIPLES) * horizon]
        for factor in MULTIPLES if long else ():
            multiples = {_place(run): _curve(run, random_multiple(run.regret, factor), horizon) for run in long}
            remark = f"computed from {factor} times as many evaluations of random"
            yield make_outcome(benchmark, f"random-{factor}x", curves=multiples, seconds=float("nan"), remark=remark)


def _place(run: Finished) -> tuple[str, int]:
    return run.key.task, run.key.repetition


def _curve(run: Finished, regret: FloatArray, horizon: int) -> FloatArray:
    """Regret (h,): cut, or continued as the head of the module says."""
    known = np.where(np.isinf(regret), 1.0, regret)[:horizon]
    after = known[-1] if best_so_far(run.values)[-1] <= run.best else np.nan
    return np.concatenate([known, np.full(horizon - len(known), after)])
