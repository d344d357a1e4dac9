"""Which differences between methods are more than chance (paper section 6.1; Demsar, JMLR 2006).

``regrets[method][task, repetition]`` is a run's regret; lower is better. Methods are compared by task, mean over
repetitions, on the runs that they have in common (`recollect.bench.statistics` says why). Differences below 1e-12 are
rounding, and count as none.

The tables' convention: the best method of a column is the one with the lowest mean over tasks. Every other one is
compared with it by a two-sided Wilcoxon signed-rank test over tasks, without those where both are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.bench.layout import Mark
from recollect.bench.statistics import Place, common_places, task_means
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

ALPHA = 0.05
DECIMALS = 12

Regrets: TypeAlias = Mapping[str, Mapping[Place, float]]


class Verdict(NamedTuple):
    """How a method compares with the best: its mark, the p-value, and the number of tasks that both have."""

    mark: Mark
    p: float
    tasks: int


@dataclass(frozen=True, slots=True, eq=False)
class RankTest:
    """Methods from the best to the worst average rank over tasks, and what differs.

    p: of Friedman's test that all are the same; difference: Nemenyi's critical one, from which on two average ranks
    differ; alike: the largest groups of neighbours in which no two differ.
    """

    methods: tuple[str, ...]
    ranks: FloatArray
    tasks: int
    p: float
    difference: float
    alike: tuple[tuple[str, ...], ...]


def signed_rank(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the p-value of Wilcoxon's paired two-sided test, zeros dropped; 1 if nothing is left.

    Exact, with ties as well: each of the n differences has either sign with the same chance. So it is at least 2 / 2^n,
    and with fewer than six differences nothing is significant.
    """
    from scipy.stats import rankdata

    differences = np.round(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64), DECIMALS)
    if differences.ndim != 1 or not np.isfinite(differences).all():
        raise InputError(f"signed_rank: expected pairs of finite numbers, got differences {differences}")
    different = differences[differences != 0]
    doubled = np.rint(2 * rankdata(np.abs(different))).astype(np.int64)  # whole numbers: ties share half ranks
    chances = np.zeros(int(doubled.sum()) + 1)  # of every sum of the positive ranks
    chances[0] = 1.0
    for rank in doubled:
        chances[rank:] = chances[rank:] + chances[:-rank]
        chances /= 2
    positive = int(doubled[different > 0].sum())
    smaller = min(positive, len(chances) - 1 - positive)  # the distribution is symmetric
    return min(1.0, 2 * float(chances[: smaller + 1].sum()))


def verdicts(regrets: Regrets, alpha: float = ALPHA) -> dict[str, Verdict]:
    """Compare every method with the best.

    The best is sought among the methods that have most runs, by their mean over those that they share: a low mean on a
    few easy ones says nothing. Methods with the same lowest mean are all best.
    """
    if not regrets or not all(regrets.values()):
        raise InputError(f"verdicts: expected methods with a run each, got {dict(regrets)}")
    most = max(len(runs) for runs in regrets.values())
    full = [method for method, runs in regrets.items() if len(runs) == most]
    shared = common_places([regrets[method] for method in full])
    means = {method: _mean(regrets[method], shared) for method in full}
    best = min(full, key=lambda method: means[method])
    return {
        method: _verdict(regrets, (method, best), tied=means.get(method) == means[best], alpha=alpha)
        for method in regrets
    }


def rank_test(regrets: Regrets, alpha: float = ALPHA) -> RankTest:
    """Rank methods on every task, over the runs that all have, ties sharing a rank; say which average ranks differ."""
    from scipy.stats import chi2, rankdata

    runs = common_places(list(regrets.values()))
    if len(regrets) < 2 or not runs:
        raise InputError(f"rank_test: expected two methods or more and a run that all have, got {list(regrets)}")
    names = sorted(regrets)
    table = np.array([list(task_means(regrets[method], runs).values()) for method in names])
    ranks = rankdata(np.round(table, DECIMALS), axis=0).T
    cases, count = ranks.shape
    tied = sum(float(np.sum(sizes**3 - sizes)) for sizes in (np.unique(row, return_counts=True)[1] for row in ranks))
    untied = 1 - tied / (cases * count * (count**2 - 1))
    spread = 12 * cases / (count * (count + 1)) * float(np.square(ranks.mean(axis=0) - (count + 1) / 2).sum())
    p = float(chi2.sf(spread / untied, count - 1)) if untied > 0 else 1.0
    average = ranks.mean(axis=0)
    order = np.argsort(average, kind="stable")
    methods, average = tuple(names[i] for i in order), average[order]
    difference = critical_difference(count, cases, alpha)
    return RankTest(methods, average, cases, p, difference, alike(methods, average, difference))


def critical_difference(methods: int, tasks: int, alpha: float = ALPHA) -> float:
    """Return Nemenyi's: q sqrt(k (k + 1) / 6 N), q the studentized range for infinitely many degrees, over sqrt 2."""
    from scipy.stats import studentized_range

    if methods < 2 or tasks < 1 or not 0 < alpha < 1:
        raise InputError(
            "critical_difference: expected 2 methods and 1 task or more, and alpha between 0 and 1, "
            f"got {methods}, {tasks} and {alpha}"
        )
    q = float(studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * tasks))


def alike(methods: Sequence[str], ranks: npt.ArrayLike, difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups, of two or more neighbours in order of rank, whose ranks differ by less than that."""
    values = np.asarray(ranks, dtype=np.float64)
    ends = [int(np.searchsorted(values, value + difference, side="left")) for value in values]
    groups = []
    for start, end in enumerate(ends):
        if end - start > 1 and (start == 0 or end > ends[start - 1]):
            groups.append(tuple(methods[start:end]))
    return tuple(groups)


def _verdict(regrets: Regrets, pair: tuple[str, str], *, tied: bool, alpha: float) -> Verdict:
    runs = common_places([regrets[name] for name in pair])
    if not runs:
        return Verdict("", float("nan"), 0)
    own, best = (list(task_means(regrets[name], runs).values()) for name in pair)
    p = signed_rank(own, best)
    return Verdict("best" if tied else "even" if p >= alpha else "", p, len(own))


def _mean(regrets: Mapping[Place, float], shared: Sequence[Place]) -> float:
    return round(float(np.mean(list(task_means(regrets, shared or regrets).values()))), DECIMALS)
