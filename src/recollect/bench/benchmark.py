"""What every benchmark is: a search space and named tasks, whether tables, forests or formulas answer evaluations.

Notation: X (m, d) encoded points of the benchmark's space, y (m,) their errors; lower is better.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recollect._text import name_list
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Config
from recollect.space.space import Space, compile_space

BenchmarkKind = Literal["table", "forest", "function"]
CountProgress = Callable[[int, int], None]
"""Called with how much is done and how much there is to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One function to tune.

    Attributes:
        name: Name of the task.
        evaluate: Takes a configuration and returns its error; raises InputError where the task has no value.
        evaluate_many: Takes encoded points (m, d) and returns the same errors (m,).
        best: Error at which normalized regret is 0; `About.exact` says whether a configuration attains it.
        worst: Error at which normalized regret is 1.
        candidates: The only configurations that the task can evaluate; None if it can evaluate its whole space.
    """

    name: str
    evaluate: Callable[[Mapping[str, Any]], float]
    evaluate_many: Callable[[FloatArray], FloatArray]
    best: float
    worst: float
    candidates: tuple[Config, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class About:
    """Where a benchmark comes from, and what its numbers mean.

    Attributes:
        title: One line that describes it.
        citation: The publication to cite.
        licence: Licence of the data.
        source: Where the data are published.
        kind: What answers an evaluation: a ``"table"``, a ``"forest"`` fitted to measurements, or a ``"function"``.
        exact: Whether every task's best and worst are errors that a configuration has, up to rounding; otherwise they
            are bounds.
        measured: What an error is, in words.
    """

    title: str
    citation: str
    licence: str
    source: str
    kind: BenchmarkKind
    exact: bool = True
    measured: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """Tasks on one search space.

    Examples:
        >>> benchmark = recollect.bench.load("own-svm")
        >>> task = benchmark.task("iris")
        >>> optimizer = recollect.Optimizer(benchmark.space, candidates=task.candidates)
        >>> config = optimizer.ask()
        >>> optimizer.tell(config, task.evaluate(config))

    Attributes:
        name: Name of the benchmark.
        space: The search space of all tasks.
        tasks: Names of the tasks.
        candidates: The only configurations that can be evaluated, if all tasks share them; otherwise None, and
            `Task.candidates` says it for each task.
        about: Where the benchmark comes from.
        create_task: Creates the task with a name; called once per task, when it is first used.
        prepare_tasks: Does the slow part of that for many tasks, see `prepare`.
    """

    name: str
    space: Space
    tasks: tuple[str, ...]
    candidates: tuple[Config, ...] | None = field(repr=False)
    about: About
    create_task: Callable[[str], Task] = field(repr=False)
    prepare_tasks: Callable[[Sequence[str], int | None, CountProgress | None], None] | None = field(
        repr=False, default=None
    )
    _created: dict[str, Task] = field(init=False, repr=False, default_factory=dict)

    def task(self, name: str) -> Task:
        """Return a task.

        Args:
            name: One of ``tasks``.

        Returns:
            The task, the same object every time.

        Raises:
            InputError: There is no task with this name.
        """
        if name not in self._created:
            if name not in self.tasks:
                raise InputError(f"benchmark {self.name!r} has no task {name!r}{did_you_mean(name, self.tasks)}")
            task = self.create_task(name)
            self._created[name] = task if task.candidates is not None else replace(task, candidates=self.candidates)
        return self._created[name]

    def prepare(self, tasks: Sequence[str], *, jobs: int | None = None, progress: CountProgress | None = None) -> None:
        """Build in parallel what each of these tasks would otherwise build when it is first used.

        Args:
            tasks: Names of the tasks.
            jobs: Number of processes; None: one per core.
            progress: Called as ``progress(done, total)``.
        """
        if self.prepare_tasks is not None:
            self.prepare_tasks(tasks, jobs, progress)


def conditional_space(
    notation: Mapping[str, Any], conditions: Mapping[str, tuple[str, Any]], defaults: Mapping[str, Any] | None = None
) -> Space:
    """Return a space in dict notation, with conditions (parent and its choice) and defaults (otherwise the first)."""
    from ConfigSpace import Categorical, EqualsCondition

    from recollect.space.notations.entries import space_from_dict

    chosen = {name: Categorical(name, notation[name], default=value) for name, value in (defaults or {}).items()}
    source = space_from_dict({**notation, **chosen})
    for child, (parent, choice) in conditions.items():
        source.add(EqualsCondition(source[child], source[parent], choice))
    return compile_space(source)


def did_you_mean(name: object, choices: Sequence[str]) -> str:
    """Return the end of a message: the choices that resemble a name; if none does, the first choices."""
    close = difflib.get_close_matches(str(name), choices, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; there are {len(choices)}: {name_list(choices, 8)}"
