"""Finished runs, aggregated by benchmark and method (paper section 6.1).

Notation: h evaluations, the horizon of a benchmark. Regrets are normalised and lower is better. ADTM is the mean over
tasks of each task's mean over repetitions. The horizon is the length of the longest run of any method except random
search. Runs of random search are longer; where they are long enough, Random (2x), (4x) and (10x) are computed from them
and named `random-2x` and so on.

Errors are rounded to the digits of packed results, so that packed and unpacked results can be compared.

After a run ends, its regret is unknown (nan), unless it has found the best configuration. While all trials of a run
have failed, its regret is the worst: 1.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from recollect._text import plural
from recollect.bench.analysis.statistics import Repetition, common_repetitions, random_multiple, task_means
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.bench.experiment.results import round_run
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, best_so_far
from recollect.optimizer.catalog import methods as catalog_methods

REFERENCE = "gp"  # plain Bayesian optimization
RANDOM_MULTIPLES = (2, 4, 10)
RANDOM_MULTIPLE_NAME = r"random-\d+x"
RANDOM_ONLY_HORIZON = 50  # of a benchmark with runs of random search only

Curves: TypeAlias = Mapping[Repetition, FloatArray]
"""Regret (h,) of every run."""


@dataclass(frozen=True, slots=True, eq=False)
class MethodResult:
    """What one method achieved on one benchmark."""

    benchmark: str
    method: str
    tasks: tuple[str, ...]  # names, sorted
    regrets: FloatArray  # mean over the repetitions of each task (tasks, h)
    curves: Curves
    seconds: float  # mean time per suggestion; nan if unknown
    remark: str  # how the result was computed, if the method itself was not run; otherwise empty

    @property
    def adtm(self) -> FloatArray:
        """ADTM (h,) after each evaluation."""
        return np.asarray(self.regrets.mean(axis=0))

    @property
    def area(self) -> float:
        """Area under the ADTM curve divided by h: its mean over evaluations 1..h."""
        return float(self.adtm.mean())

    @property
    def is_variant(self) -> bool:
        """Whether the name has a suffix such as ``+copula``."""
        return "+" in self.method

    @property
    def repetition_range(self) -> tuple[int, int]:
        """Fewest and most repetitions of a task."""
        counts = Counter(task for task, _ in self.curves).values()
        return min(counts), max(counts)

    @property
    def repetitions_text(self) -> str:
        """How many repetitions there are, in words."""
        fewest, most = self.repetition_range
        return plural(most, "repetition") if fewest == most else f"{fewest} to {most} repetitions"

    def task_regrets(self, evaluations: int) -> dict[str, float]:
        """Return each task's mean regret after this many evaluations, without tasks where it is unknown."""
        if not 1 <= evaluations <= self.regrets.shape[1]:
            return {}
        column = zip(self.tasks, self.regrets[:, evaluations - 1].tolist(), strict=True)
        return {task: regret for task, regret in column if not math.isnan(regret)}

    def run_regrets(self, evaluations: int) -> dict[Repetition, float]:
        """Return each run's regret after this many evaluations, without runs where it is unknown."""
        if not 1 <= evaluations <= self.regrets.shape[1]:
            return {}
        regrets = {run: float(curve[evaluations - 1]) for run, curve in self.curves.items()}
        return {run: regret for run, regret in regrets.items() if not math.isnan(regret)}


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkResults:
    """What all methods, sorted by name, achieved on one benchmark up to a number of evaluations."""

    benchmark: str
    methods: Mapping[str, MethodResult]
    horizon: int

    @property
    def ordered(self) -> tuple[MethodResult, ...]:
        """Results in the order of the method catalog, variants after the method that they vary."""
        names = catalog_methods()

        def position(result: MethodResult) -> tuple[int, int, str]:
            base = re.sub(RANDOM_MULTIPLE_NAME, "random", result.method.partition("+")[0])
            return names.index(base) if base in names else len(names), len(result.method), result.method

        return tuple(sorted(self.methods.values(), key=position))

    @property
    def tasks(self) -> int:
        """The largest number of tasks of any method."""
        return max(len(result.tasks) for result in self.methods.values())

    @property
    def complete(self) -> tuple[MethodResult, ...]:
        """Results on all tasks and repetitions up to the last evaluation, in the order of the catalog."""
        return tuple(complete_results(self.ordered, self.horizon))

    @property
    def same_budget(self) -> tuple[MethodResult, ...]:
        """Complete results of methods that were run, not computed from longer runs of random search."""
        return tuple(result for result in self.complete if not result.remark)

    @property
    def reference(self) -> MethodResult | None:
        """The result of plain Bayesian optimization, if it was run."""
        return self.methods.get(REFERENCE)

    def missing_text(self, result: MethodResult) -> str:
        """Return how many tasks or repetitions a method has if others have more; empty if none has more."""
        if len(result.tasks) < self.tasks:
            return plural(len(result.tasks), "task")
        most = max(len(other.curves) for other in self.methods.values())
        return "" if len(result.curves) == most else result.repetitions_text


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentResults:
    """Results of all benchmarks, sorted by name."""

    benchmarks: Mapping[str, BenchmarkResults]

    def find(self, benchmark: str, method: str) -> MethodResult | None:
        """Return a method's result on a benchmark, None without such a run."""
        return self.benchmarks[benchmark].methods.get(method) if benchmark in self.benchmarks else None

    def with_methods(self, added: Iterable[MethodResult]) -> ExperimentResults:
        """Return the results with more methods on the same benchmarks."""
        methods = {name: dict(results.methods) for name, results in self.benchmarks.items()}
        for result in added:
            methods[result.benchmark][result.method] = result
        ordered = {name: dict(sorted(own.items())) for name, own in methods.items()}
        return ExperimentResults({name: replace(old, methods=ordered[name]) for name, old in self.benchmarks.items()})


@dataclass(frozen=True, slots=True, eq=False)
class AverageRanks:
    """Mean ranks (methods, h), 1 is best, over the runs that all methods have in common: this many, on these tasks."""

    methods: tuple[str, ...]
    ranks: FloatArray
    tasks: int
    runs: int


def is_from_outside(method: str) -> bool:
    """Return whether a method is none of recollect's: neither in the catalog nor computed from random search."""
    return method.partition("+")[0] not in catalog_methods() and not re.fullmatch(RANDOM_MULTIPLE_NAME, method)


def common_runs(runs: Iterable[CompletedRun]) -> list[CompletedRun]:
    """Return the runs on those tasks and repetitions that all methods of their benchmark have."""
    runs = list(runs)
    repetitions: dict[str, dict[str, set[Repetition]]] = {}
    for run in runs:
        repetitions.setdefault(run.key.benchmark, {}).setdefault(run.key.method, set()).add(run.key[2:])
    common = {benchmark: set.intersection(*methods.values()) for benchmark, methods in repetitions.items()}
    for benchmark in (benchmark for benchmark, shared in common.items() if not shared):
        raise InputError(
            f"{benchmark}: expected a task and repetition that all methods have, but there is none; leave out the "
            "results of methods that were run elsewhere"
        )
    return [run for run in runs if run.key[2:] in common[run.key.benchmark]]


def aggregate_runs(runs: Iterable[CompletedRun]) -> ExperimentResults:
    """Group runs by benchmark and method; their order does not matter."""
    groups: dict[str, dict[str, list[CompletedRun]]] = {}
    for run in _checked(runs):
        groups.setdefault(run.key.benchmark, {}).setdefault(run.key.method, []).append(run)
    if not groups:
        raise InputError("results: expected at least one finished run, got none")
    empty = {benchmark: BenchmarkResults(benchmark, {}, _horizon(methods)) for benchmark, methods in groups.items()}
    results = [result for name, methods in groups.items() for result in _method_results(methods, empty[name].horizon)]
    return ExperimentResults(empty).with_methods(results)


def aggregate_curves(benchmark: str, method: str, *, curves: Curves, seconds: float, remark: str = "") -> MethodResult:
    """Return a method's result from the regrets of its runs."""
    by_task: dict[str, list[FloatArray]] = {}
    for task, repetition in sorted(curves):
        by_task.setdefault(task, []).append(curves[task, repetition])
    regrets = np.array([np.mean(task_curves, axis=0) for task_curves in by_task.values()])
    return MethodResult(benchmark, method, tuple(by_task), regrets, curves, seconds, remark)


def complete_results(results: Sequence[MethodResult], horizon: int) -> list[MethodResult]:
    """Return the methods that reach the horizon in as many runs as any of these methods has."""
    most = max((len(result.curves) for result in results), default=0)
    return [result for result in results if len(result.run_regrets(horizon)) == most]


def task_differences(result: MethodResult, other: MethodResult, evaluations: int) -> dict[str, float]:
    """Return a method's regret minus another's on each task, over the runs that both have."""
    regrets = result.run_regrets(evaluations), other.run_regrets(evaluations)
    own, others = (task_means(regret, common_repetitions(regrets)) for regret in regrets)
    return {task: own[task] - others[task] for task in own}


def average_ranks(results: Sequence[MethodResult]) -> AverageRanks:
    """Rank methods by regret on every task and repetition that all have, and average; ties share a rank."""
    from scipy.stats import rankdata

    names = tuple(result.method for result in results)
    if len(results) < 2:
        raise InputError(f"ranks: expected two or more methods, got {list(names)}")
    common = common_repetitions([result.curves for result in results])
    if not common:
        raise InputError(f"ranks: expected a run that all methods have in common, but {', '.join(names)} have none")
    curves = np.array([[result.curves[run] for run in common] for result in results])  # (methods, runs, h)
    ranks = rankdata(curves, axis=0).mean(axis=1)
    return AverageRanks(names, np.asarray(ranks), len({task for task, _ in common}), len(common))


def plain_method_ranks(results: BenchmarkResults) -> AverageRanks | None:
    """Rank the methods without a suffix that were run on all tasks and repetitions; None with fewer than two."""
    plain = [result for result in results.ordered if not result.is_variant and not result.remark]
    complete = complete_results(plain, results.horizon)
    if len(complete) < 2 or not common_repetitions([result.curves for result in complete]):
        return None
    return average_ranks(complete)


def _checked(runs: Iterable[CompletedRun]) -> list[CompletedRun]:
    """Return the runs rounded and sorted by key; refuse runs that cannot be compared."""
    ordered = sorted(map(round_run, runs), key=lambda run: run.key)
    first_on_task: dict[tuple[str, str], CompletedRun] = {}
    for before, run in pairwise(ordered):
        if before.key == run.key:
            raise InputError(f"results: expected each run once, but the run {run.key} occurs twice")
    for run in ordered:
        if len(run.values) == 0:
            raise InputError(f"results: the run {run.key} has no evaluation; expected at least one")
        first = first_on_task.setdefault((run.key.benchmark, run.key.task), run)
        if not (math.isclose(first.best, run.best) and math.isclose(first.worst, run.worst)):
            raise InputError(
                f"results: expected the same best and worst error in all runs on a task, but the run {run.key} has "
                f"{run.best:g} and {run.worst:g}, and the run {first.key} has {first.best:g} and {first.worst:g}"
            )
    return ordered


def _horizon(methods: Mapping[str, list[CompletedRun]]) -> int:
    lengths = {name: max(len(run.values) for run in runs) for name, runs in methods.items()}
    others = [length for name, length in lengths.items() if name != "random"]
    return max(others) if others else min(RANDOM_ONLY_HORIZON, lengths["random"])


def _method_results(methods: Mapping[str, list[CompletedRun]], horizon: int) -> Iterator[MethodResult]:
    for name, runs in methods.items():
        benchmark = runs[0].key.benchmark
        seconds = float(np.mean([run.seconds for run in runs]))
        curves = {run.key[2:]: _curve(run, run.regret, horizon) for run in runs}
        yield aggregate_curves(benchmark, name, curves=curves, seconds=seconds)
        # As in the paper, no multiples where a table is so small that random search exhausts it.
        long = [run for run in runs if name == "random" and len(run.values) >= max(RANDOM_MULTIPLES) * horizon]
        for factor in RANDOM_MULTIPLES if long else ():
            curves = {run.key[2:]: _curve(run, random_multiple(run.regret, factor), horizon) for run in long}
            remark = f"computed from {factor} times as many evaluations of random"
            yield aggregate_curves(benchmark, f"random-{factor}x", curves=curves, seconds=math.nan, remark=remark)


def _curve(run: CompletedRun, regret: FloatArray, horizon: int) -> FloatArray:
    """Return a regret (h,): cut at the horizon, or extended as the module docstring says."""
    start = np.where(np.isinf(regret), 1.0, regret)[:horizon]
    after_end = start[-1] if best_so_far(run.values)[-1] <= run.best else np.nan
    return np.concatenate([start, np.full(horizon - len(start), after_end)])
