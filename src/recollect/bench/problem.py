"""What every benchmark is: a search space and named tasks, whatever stands behind them.

A `Benchmark` is tables of measurements, fitted forests or formulas; whoever tunes on it sees the same three values.

Notation: X (m, d) encoded points of the benchmark's space, y (m,) their errors; lower is better.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recollect.errors import InputError
from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray
from recollect.space.space import Space

Kind = Literal["table", "forest", "function"]
Progress = Callable[[int, int], None]
"""Told how much is done, and how much there is to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One function to tune.

    ``evaluate`` takes a configuration and returns its error; ``evaluate_many`` takes encoded points (m, d) and returns
    (m,) errors, equal to those of ``evaluate``; both raise InputError where the task has no value. ``best`` and
    ``worst`` are the ends that regret is normalised with; whether they are attained, `About.exact` says. candidates:
    the only configurations that this task can evaluate; None where it can evaluate all of its space.
    """

    name: str
    evaluate: Callable[[Mapping[str, Any]], float]
    evaluate_many: Callable[[FloatArray], FloatArray]
    best: float
    worst: float
    candidates: tuple[Config, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class About:
    """Where a benchmark comes from, and what its numbers are.

    source: where the data are published. kind: what answers an evaluation. exact: every task's best and worst are
    values that a configuration has (up to rounding); if not, they are bounds. measured: what an error is, in words.
    """

    title: str
    citation: str
    licence: str
    source: str
    kind: Kind
    exact: bool = True
    measured: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """Tasks on one search space.

    candidates: the only configurations that can be evaluated, where all tasks share them; else None, and each task says
    for itself. make: makes the task of a name; called once a task, when it is first asked for. ready: does what is slow
    in that for many tasks, see `prepare`.
    """

    name: str
    space: Space
    tasks: tuple[str, ...]
    candidates: tuple[Config, ...] | None = field(repr=False)
    about: About
    make: Callable[[str], Task] = field(repr=False)
    ready: Callable[[Sequence[str], int | None, Progress | None], None] | None = field(repr=False, default=None)
    _made: dict[str, Task] = field(init=False, repr=False, default_factory=dict)

    def task(self, name: str) -> Task:
        """Return the task of this name, the same object every time."""
        if name not in self._made:
            if name not in self.tasks:
                raise InputError(f"benchmark {self.name!r} has no task {name!r}{hint(name, self.tasks)}")
            made = self.make(name)
            self._made[name] = made if made.candidates is not None else replace(made, candidates=self.candidates)
        return self._made[name]

    def prepare(self, tasks: Sequence[str], *, jobs: int | None = None, progress: Progress | None = None) -> None:
        """Build in ``jobs`` processes (None: one a core) what these tasks would each build when first asked for."""
        if self.ready is not None:
            self.ready(tasks, jobs, progress)


def hint(name: object, known: tuple[str, ...]) -> str:
    """Say which known names resemble the one given; if none does, which there are."""
    close = difflib.get_close_matches(str(name), known, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    shown = ", ".join(known[:8])
    return f"; there are {shown}" if len(known) <= 8 else f"; there are {len(known)}: {shown}, ..."
