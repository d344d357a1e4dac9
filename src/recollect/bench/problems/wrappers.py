"""Benchmarks derived from others: with noise, upside down, or normalized.

All functions take a benchmark and return one; they can be nested. Tasks are wrapped when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recollect.bench.benchmark import Benchmark, Task
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray


def noisy(benchmark: Benchmark, deviation: float, *, rng: np.random.Generator) -> Benchmark:
    """Add normal noise to every evaluation, ``deviation`` times the task's range from best to worst.

    A repeated evaluation has another error. Every task has its own random stream, so that tasks do not depend on each
    other. Best and worst stay those without noise.
    """
    if not (np.isfinite(deviation) and deviation >= 0):
        raise InputError(f"expected a finite deviation >= 0 of the noise, got {deviation!r}")
    streams = dict(zip(benchmark.tasks, rng.spawn(len(benchmark.tasks)), strict=True))

    def wrap(task: Task) -> Task:
        scale, stream = deviation * (task.worst - task.best), streams[task.name]
        return _mapped(task, lambda y: y + scale * stream.standard_normal(y.shape), task.best, task.worst)

    return _wrapped(benchmark, "noisy", wrap)


def negated(benchmark: Benchmark) -> Benchmark:
    """Turn every task upside down within its range: the best becomes the worst.

    Past runs on it are misleading for the original: the extreme case of negative transfer.
    """

    def wrap(task: Task) -> Task:
        return _mapped(task, lambda y: task.best + (task.worst - y), task.best, task.worst)

    return _wrapped(benchmark, "negated", wrap)


def normalised(benchmark: Benchmark) -> Benchmark:
    """Map every task's best to 0 and its worst to 1; a task whose best is its worst is 0 everywhere."""

    def wrap(task: Task) -> Task:
        width = task.worst - task.best
        if width == 0:
            return _mapped(task, lambda y: 0.0 * y, 0.0, 0.0)
        return _mapped(task, lambda y: (y - task.best) / width, 0.0, 1.0)

    return _wrapped(benchmark, "normalised", wrap)


def _wrapped(benchmark: Benchmark, suffix: str, wrap: Callable[[Task], Task]) -> Benchmark:
    about = replace(benchmark.about, title=f"{benchmark.about.title}, {suffix}")
    return replace(
        benchmark, name=f"{benchmark.name}+{suffix}", about=about, create_task=lambda name: wrap(benchmark.task(name))
    )


def _mapped(task: Task, change: Callable[[FloatArray], FloatArray], best: float, worst: float) -> Task:
    def evaluate(config: Mapping[str, Any]) -> float:
        return float(change(np.array([task.evaluate(config)]))[0])

    def evaluate_many(X: FloatArray) -> FloatArray:
        return change(task.evaluate_many(X))

    return replace(task, evaluate=evaluate, evaluate_many=evaluate_many, best=best, worst=worst)
