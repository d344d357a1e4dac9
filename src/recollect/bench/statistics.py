"""Numbers about finished runs, and about benchmarks.

Notation: ``values (t,)`` of one run in the order of its trials, lower is better. Methods are compared on what they have
in common: a regret is mostly 0 and seldom large, so that the mean of one repetition is 0 on more tasks than the mean of
five, and a method would look better for having fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.bench.problem import Benchmark
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.space.sampling import uniform

Place: TypeAlias = tuple[str, int]
"""Where a run was made: its task and repetition."""


def common_places(found: Collection[Iterable[Place]]) -> list[Place]:
    """Return the places that all have, sorted."""
    return sorted(set.intersection(*map(set, found))) if found else []


def task_means(regrets: Mapping[Place, float], places: Iterable[Place]) -> dict[str, float]:
    """Return for each task the mean over its repetitions among these places."""
    by_task: dict[str, list[float]] = {}
    for place in sorted(places):
        by_task.setdefault(place[0], []).append(regrets[place])
    return {task: float(np.mean(found)) for task, found in by_task.items()}


def best_so_far(values: npt.ArrayLike) -> FloatArray:
    """Return the lowest value up to each trial (t,); nan, a failed trial, never is the lowest; inf while all failed."""
    run = np.asarray(values, dtype=np.float64)
    if run.ndim != 1:
        raise InputError(f"best_so_far: expected the values (t,) of one run, got shape {run.shape}")
    return np.asarray(np.minimum.accumulate(np.where(np.isnan(run), np.inf, run)))


def random_multiple(values: npt.ArrayLike, factor: int) -> FloatArray:
    """Return the lowest value up to each of t / factor trials of a search that makes ``factor`` trials at a time.

    The paper's Random (2x), (4x), (10x) are this, computed from one run of random search (section 5.3): after
    s trials they know the best of the first ``factor * s`` of it. All factors share the run, so that (2x) after 10
    trials equals random search after 20 exactly.
    """
    best = best_so_far(values)
    if factor < 1 or len(best) < factor:
        raise InputError(f"random_multiple: expected a factor from 1 to the run's {len(best)} trials, got {factor}")
    return best[factor - 1 :: factor]


def rank_correlations(rows: FloatArray) -> FloatArray:
    """Return Spearman's correlations (t, t) of rows (t, m): average ranks for ties, nan for a constant row."""
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.square(ranks).sum(axis=1, keepdims=True))
    directions = np.divide(ranks, norms, out=np.full_like(ranks, np.nan), where=norms > 0)
    return np.asarray(np.clip(directions @ directions.T, -1.0, 1.0), dtype=np.float64)


def task_agreement(benchmark: Benchmark, *, points: int = 500, seed: int = 0) -> FloatArray:
    """Return how alike the tasks (t, t) order configurations: Spearman's correlation of their errors on common points.

    Where tasks share a list of configurations, those are the points; where they can be evaluated everywhere, so many
    are drawn at random. Average ranks for ties; nan for a task that has the same error everywhere.
    """
    space = benchmark.space
    if benchmark.candidates is not None:
        X = space.encode(benchmark.candidates)
    elif any(benchmark.task(name).candidates is not None for name in benchmark.tasks):
        raise InputError(
            f"task_agreement: the tasks of {benchmark.name!r} were measured at different configurations; forests "
            "fitted to them (mode='forest') have common ones"
        )
    else:
        X = uniform(space, points, np.random.default_rng(seed))
    return rank_correlations(np.stack([benchmark.task(name).evaluate_many(X) for name in benchmark.tasks]))
