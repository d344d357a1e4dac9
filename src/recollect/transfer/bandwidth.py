"""Choosing the bandwidth rho of the two-stage weights (paper appendix on TST-R).

Three strategies, all from results that exist already. ``scores[rho][benchmark][task]`` is the mean normalised regret of
a method with that rho after the last trial, averaged over repetitions; lower is better. Every rho must have been run on
the same tasks. Of equally good values the smallest is taken: it trusts past runs least.

    TST-R(.)               best on the other benchmarks       `rho_from_other_benchmarks`
    TST-R(., HPO)          best on the benchmark's other tasks    `rho_from_other_tasks`
    TST-R(., HPO, B)       best on benchmark B, used everywhere   `rho_from_benchmark`

The last is optimistic on B itself: it has seen the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from recollect.errors import InputError

RHO_GRID = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The values tried in the paper."""

TaskScores: TypeAlias = Mapping[str, float]
Scores: TypeAlias = Mapping[float, Mapping[str, TaskScores]]


def rho_from_other_benchmarks(scores: Scores, benchmark: str) -> float:
    """Return the rho with the best average over all benchmarks but one, each benchmark counting the same."""
    known = _checked(scores)
    others = [name for name in known if name != benchmark]
    if not others:
        raise InputError(f"rho: expected results on benchmarks other than {benchmark!r}, got {_listed(known)}")
    return _best(scores, lambda results: float(np.mean([_mean(results[name]) for name in others])))


def rho_from_other_tasks(scores: Scores, benchmark: str, task: str) -> float:
    """Return the rho with the best average over the other tasks of the benchmark."""
    tasks = _tasks(scores, benchmark)
    if task not in tasks:
        raise InputError(f"rho: benchmark {benchmark!r} has no task {task!r}; it has {_listed(tasks)}")
    others = [name for name in tasks if name != task]
    if not others:
        raise InputError(f"rho: expected results on tasks of {benchmark!r} other than {task!r}, got none")
    return _best(scores, lambda results: float(np.mean([results[benchmark][name] for name in others])))


def rho_from_benchmark(scores: Scores, benchmark: str) -> float:
    """Return the rho with the best average over all tasks of the benchmark."""
    _tasks(scores, benchmark)
    return _best(scores, lambda results: _mean(results[benchmark]))


def _best(scores: Scores, cost: Callable[[Mapping[str, TaskScores]], float]) -> float:
    return min(sorted(scores), key=lambda rho: cost(scores[rho]))


def _mean(tasks: TaskScores) -> float:
    return float(np.mean(list(tasks.values())))


def _tasks(scores: Scores, benchmark: str) -> list[str]:
    known = _checked(scores)
    if benchmark not in known:
        raise InputError(f"rho: no results on benchmark {benchmark!r}; there are {_listed(known)}")
    return known[benchmark]


def _checked(scores: Scores) -> dict[str, list[str]]:
    """Return the tasks of each benchmark; refuse results that do not let the values of rho be compared."""
    if not scores:
        raise InputError("rho: expected results for at least one value of rho, got none")
    first, *others = scores
    known = {name: list(tasks) for name, tasks in scores[first].items()}
    for rho in others:
        if {name: set(tasks) for name, tasks in scores[rho].items()} != {n: set(t) for n, t in known.items()}:
            raise InputError(f"rho: expected results on the same tasks for every value, but {rho} and {first} differ")
    for rho, results in scores.items():
        for name, tasks in results.items():
            wrong = [task for task, value in tasks.items() if not math.isfinite(value)]
            if not tasks or wrong:
                what = f"{tasks[wrong[0]]} for task {wrong[0]!r}" if wrong else "no task"
                raise InputError(f"rho: expected finite regrets, got {what} of {name!r} with rho = {rho}")
    return known


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
