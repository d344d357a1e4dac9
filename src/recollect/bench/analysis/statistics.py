"""Statistics of finished runs and of benchmarks, and significance tests (paper section 6.1; Demsar, JMLR 2006).

Notation: ``values (t,)`` of one run in the order of its trials; ``regrets[method][task, repetition]`` of runs; lower is
better. Methods are compared by task, averaged over repetitions, on the runs that they have in common. A regret is
mostly 0 and rarely large, so the mean of one repetition is 0 on more tasks than the mean of five: otherwise a method
would look better for having fewer repetitions. Differences below 1e-12 are rounding errors and count as ties.

The convention of the tables: the best method of a column has the lowest mean over tasks. Every other method is compared
with it by a two-sided Wilcoxon signed-rank test over tasks, without the tasks where both are equal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.bench.benchmark import Benchmark
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, best_so_far, rank_correlations
from recollect.space.sampling import uniform

ALPHA = 0.05
DECIMALS = 12  # of differences that are not rounding errors

Mark: TypeAlias = Literal["best", "even", ""]
"""The lowest value of a column; one that is not significantly different from it; any other."""

Repetition: TypeAlias = tuple[str, int]
"""A task, and the number of a repetition on it: what identifies a run of a method on a benchmark."""

Regrets: TypeAlias = Mapping[str, Mapping[Repetition, float]]


class ComparisonWithBest(NamedTuple):
    """How a method compares with the best: its mark, the p-value, and the number of tasks that both have."""

    mark: Mark
    p: float
    tasks: int


@dataclass(frozen=True, slots=True, eq=False)
class RankTest:
    """Average ranks of methods over tasks, and which of them differ."""

    methods: tuple[str, ...]  # from the best to the worst average rank
    ranks: FloatArray  # of each method
    tasks: int
    p: float  # of Friedman's test of the hypothesis that all methods are equal
    critical_difference: float  # average ranks that differ by at least this much differ significantly (Nemenyi)
    groups: tuple[tuple[str, ...], ...]  # the largest ones of neighbours of which no two differ significantly


def common_repetitions(methods: Collection[Iterable[Repetition]]) -> list[Repetition]:
    """Return the repetitions that all methods have, sorted."""
    return sorted(set.intersection(*map(set, methods))) if methods else []


def task_means(regrets: Mapping[Repetition, float], repetitions: Iterable[Repetition]) -> dict[str, float]:
    """Return each task's mean over these repetitions."""
    by_task: dict[str, list[float]] = {}
    for run in sorted(repetitions):
        by_task.setdefault(run[0], []).append(regrets[run])
    return {task: float(np.mean(task_regrets)) for task, task_regrets in by_task.items()}


def random_multiple(values: npt.ArrayLike, factor: int) -> FloatArray:
    """Return the lowest value up to each of t / factor steps of a search that runs ``factor`` trials per step.

    This is the paper's Random (2x), (4x) and (10x), computed from one run of random search (section 5.3): after s steps
    they know the best of its first ``factor * s`` trials. All factors share the run, so (2x) after 10 steps equals
    random search after 20 trials exactly.
    """
    best = best_so_far(values)
    if factor < 1 or len(best) < factor:
        raise InputError(f"random_multiple: expected a factor from 1 to the run's {len(best)} trials, got {factor}")
    return best[factor - 1 :: factor]


def task_agreement(benchmark: Benchmark, *, points: int = 500, seed: int = 0) -> FloatArray:
    """Return how similarly tasks order configurations (t, t): Spearman's correlation of their errors on common points.

    If the tasks share a list of configurations, these are the points. If they can be evaluated everywhere, ``points``
    are drawn at random. Ties get average ranks; a task with the same error everywhere gets nan.
    """
    space = benchmark.space
    if benchmark.candidates is not None:
        X = space.encode(benchmark.candidates)
    elif any(benchmark.task(name).candidates is not None for name in benchmark.tasks):
        raise InputError(
            f"task_agreement: expected tasks with common configurations, but those of {benchmark.name!r} were measured "
            "at different configurations; load the benchmark with mode='forest' to evaluate them anywhere"
        )
    else:
        X = uniform(space, points, np.random.default_rng(seed))
    return rank_correlations(np.stack([benchmark.task(name).evaluate_many(X) for name in benchmark.tasks]))


def signed_rank(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the p-value of Wilcoxon's paired two-sided signed-rank test, without zeros; 1 if nothing else is left.

    It is exact even with ties: each of the n differences is equally likely to have either sign. So p is at least
    2 / 2^n, and fewer than six differences are never significant.
    """
    from scipy.stats import rankdata

    differences = np.round(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64), DECIMALS)
    if differences.ndim != 1 or not np.isfinite(differences).all():
        raise InputError(f"signed_rank: expected pairs of finite numbers, got differences {differences}")
    different = differences[differences != 0]
    doubled = np.rint(2 * rankdata(np.abs(different))).astype(np.int64)  # integers: ties share half ranks
    probabilities = np.zeros(int(doubled.sum()) + 1)  # of every sum of the positive ranks
    probabilities[0] = 1.0
    for rank in doubled:
        probabilities[rank:] = probabilities[rank:] + probabilities[:-rank]
        probabilities /= 2
    positive = int(doubled[different > 0].sum())
    smaller = min(positive, len(probabilities) - 1 - positive)  # the distribution is symmetric
    return min(1.0, 2 * float(probabilities[: smaller + 1].sum()))


def compare_with_best(regrets: Regrets, alpha: float = ALPHA) -> dict[str, ComparisonWithBest]:
    """Compare every method with the best.

    The best is determined among the methods with the most runs, by their mean over the runs that they share: a low mean
    on a few easy runs says nothing. All methods with the same lowest mean are best.
    """
    if not regrets or not all(regrets.values()):
        raise InputError(f"compare_with_best: expected one or more methods with a run each, got {dict(regrets)}")
    most = max(len(runs) for runs in regrets.values())
    full = [method for method, runs in regrets.items() if len(runs) == most]
    shared = common_repetitions([regrets[method] for method in full])
    task_regrets = {method: list(task_means(regrets[method], shared or regrets[method]).values()) for method in full}
    means = {method: round(float(np.mean(own)), DECIMALS) for method, own in task_regrets.items()}
    best = min(full, key=lambda method: means[method])
    tied = {method for method, mean in means.items() if mean == means[best]}
    return {name: _comparison(regrets, (name, best), tied=name in tied, alpha=alpha) for name in regrets}


def rank_test(regrets: Regrets) -> RankTest:
    """Rank methods on every task, over the runs that all have (ties share a rank), and test which ranks differ."""
    from scipy.stats import chi2, rankdata

    runs = common_repetitions(list(regrets.values()))
    if len(regrets) < 2 or not runs:
        raise InputError(f"rank_test: expected two or more methods and a run that all have, got {list(regrets)}")
    names = sorted(regrets)
    table = np.array([list(task_means(regrets[method], runs).values()) for method in names])
    ranks = rankdata(np.round(table, DECIMALS), axis=0).T
    cases, count = ranks.shape
    tied = sum(float(np.sum(sizes**3 - sizes)) for sizes in (np.unique(row, return_counts=True)[1] for row in ranks))
    untied = 1 - tied / (cases * count * (count**2 - 1))
    average = ranks.mean(axis=0)
    spread = 12 * cases / (count * (count + 1)) * float(np.square(average - (count + 1) / 2).sum())
    p = float(chi2.sf(spread / untied, count - 1)) if untied > 0 else 1.0
    order = np.argsort(average, kind="stable")
    methods, average = tuple(names[i] for i in order), average[order]
    difference = critical_difference(count, cases)
    return RankTest(methods, average, cases, p, difference, indistinguishable_groups(methods, average, difference))


def critical_difference(methods: int, tasks: int, alpha: float = ALPHA) -> float:
    """Return Nemenyi's q sqrt(k (k + 1) / 6 N), q: the studentized range for infinite degrees of freedom, / sqrt 2."""
    from scipy.stats import studentized_range

    if methods < 2 or tasks < 1 or not 0 < alpha < 1:
        expected = "at least 2 methods, at least 1 task, and alpha between 0 and 1"
        raise InputError(f"critical_difference: expected {expected}, got {methods}, {tasks} and {alpha}")
    q = float(studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * tasks))


def indistinguishable_groups(
    methods: Sequence[str], ranks: npt.ArrayLike, difference: float
) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups of two or more neighbours, in order of rank, whose ranks differ by less than this."""
    values = np.asarray(ranks, dtype=np.float64)
    ends = [int(np.searchsorted(values, value + difference, side="left")) for value in values]
    spans = enumerate(pairwise([0, *ends]))
    return tuple(tuple(methods[start:end]) for start, (before, end) in spans if end - start > 1 and end > before)


def _comparison(regrets: Regrets, pair: tuple[str, str], *, tied: bool, alpha: float) -> ComparisonWithBest:
    runs = common_repetitions([regrets[name] for name in pair])
    if not runs:
        return ComparisonWithBest("", float("nan"), 0)
    own, best = (list(task_means(regrets[name], runs).values()) for name in pair)
    p = signed_rank(own, best)
    return ComparisonWithBest("best" if tied else "even" if p >= alpha else "", p, len(own))
