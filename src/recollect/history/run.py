"""Trials and runs: what has been tried, and what came of it.

A `Trial` is one evaluated configuration; a `Run` is all trials of one task. Both are immutable values: adding a trial
gives a new run. Values are kept in the user's own units and direction; ``Run.y`` is the only place where
``direction="maximize"`` turns into the internal convention that lower is better.

Notation: ``n`` trials of which ``m`` succeeded; ``X (m, d)`` their encodings, ``y (m,)`` their values, lower is better.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

import numpy as np

from recollect.errors import InputError, InputTypeError
from recollect.numerics.arrays import FloatArray
from recollect.space.space import Space, SpaceLike, compile_space

Direction = Literal["minimize", "maximize"]
Config = dict[str, Any]


class State(Enum):
    """How a trial ended."""

    OK = "ok"
    FAILED = "failed"

    def __repr__(self) -> str:
        """Print as users write it."""
        return self.name


FAILED: Final = State.FAILED


def sign_of(direction: str) -> float:
    """Return +1 for "minimize" and -1 for "maximize"; anything else is an error."""
    if direction == "minimize":
        return 1.0
    if direction == "maximize":
        return -1.0
    raise InputError(f"direction must be 'minimize' or 'maximize', got {direction!r}")


def as_number(value: object, where: str) -> float:
    """Turn what a user gave as a value into a float (nan and inf pass); anything but a number is an error."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{where}: expected a number or recollect.FAILED, got {value!r} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluated configuration; ``value`` is None exactly when the trial failed."""

    config: Config
    value: float | None
    state: State = State.OK
    seconds: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that state and value agree."""
        if self.state is State.FAILED:
            if self.value is not None:
                raise InputError(f"a failed trial has no value, got {self.value!r}")
        elif self.value is None or not math.isfinite(self.value):
            raise InputError(f"a trial that did not fail needs a finite value, got {self.value!r}")

    @classmethod
    def of(cls, config: Mapping[str, Any], value: object, *, where: str = "value") -> Trial:
        """Make a trial from a configuration and a number, FAILED or None; a value that is not finite is a failure."""
        if value is FAILED or value is None:
            return cls(dict(config), None, State.FAILED)
        number = as_number(value, where)
        if not math.isfinite(number):
            return cls(dict(config), None, State.FAILED, notes=(f"the objective returned {number}",))
        return cls(dict(config), number)

    @property
    def ok(self) -> bool:
        """Whether the trial gave a value."""
        return self.state is State.OK


@dataclass(frozen=True, slots=True, init=False)
class Run:
    """All trials of one task, in the order in which they were told."""

    task: str
    trials: tuple[Trial, ...]
    space: Space | None
    direction: Direction

    def __init__(
        self,
        task: str = "",
        configs: Sequence[Mapping[str, Any]] | None = None,
        values: Iterable[object] | None = None,
        *,
        trials: Iterable[Trial] = (),
        space: SpaceLike | None = None,
        direction: Direction = "minimize",
    ) -> None:
        """Make a run from ``configs`` and ``values`` (numbers, FAILED or None), or from ready ``trials``."""
        if not isinstance(task, str):
            raise InputTypeError(f"Run: task must be a string, got {task!r} ({type(task).__name__})")
        sign_of(direction)
        given = tuple(trials)
        if configs is not None or values is not None:
            if given:
                raise InputError("Run: give either configs and values, or trials, not both")
            given = _pair(task, configs, values)
        compiled = None if space is None else compile_space(space)
        if compiled is not None:
            compiled.encode([trial.config for trial in given])
        for name, value in (("task", task), ("trials", given), ("space", compiled), ("direction", direction)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Count all trials, failed ones included."""
        return len(self.trials)

    @property
    def configs(self) -> list[Config]:
        """Return the configurations of all trials."""
        return [trial.config for trial in self.trials]

    @property
    def values(self) -> list[float | None]:
        """Return the values of all trials in the user's units; None where a trial failed."""
        return [trial.value for trial in self.trials]

    @property
    def succeeded(self) -> tuple[Trial, ...]:
        """Return the trials that gave a value."""
        return tuple([trial for trial in self.trials if trial.value is not None])

    def foreign_to(self, names: Set[str]) -> bool:
        """Whether it has trials, but none with any of these hyperparameters."""
        return bool(self.trials) and not any(names & trial.config.keys() for trial in self.trials)

    @property
    def X(self) -> FloatArray:
        """Return the encodings (m, d) of the trials that succeeded, in the run's own space."""
        if self.space is None:
            raise InputError(f"run {self.task!r} has no space of its own: give Run(..., space=...)")
        return self.space.encode([trial.config for trial in self.succeeded])

    @property
    def y(self) -> FloatArray:
        """Return the values (m,) of the trials that succeeded; lower is better whatever the direction."""
        return sign_of(self.direction) * np.array([trial.value for trial in self.succeeded], dtype=float)

    @property
    def best(self) -> Trial | None:
        """Return the best trial (the first of equals), or None while none has succeeded."""
        done = self.succeeded
        return done[int(np.argmin(self.y))] if done else None

    def with_trial(self, trial: Trial) -> Run:
        """Return a new run with one more trial."""
        grown = object.__new__(Run)
        trials = (*self.trials, trial)
        for name, value in (
            ("task", self.task),
            ("trials", trials),
            ("space", self.space),
            ("direction", self.direction),
        ):
            object.__setattr__(grown, name, value)
        return grown


def _pair(
    task: str, configs: Sequence[Mapping[str, Any]] | None, values: Iterable[object] | None
) -> tuple[Trial, ...]:
    if configs is None or values is None:
        raise InputError(f"run {task!r}: configs and values go together, got only one of them")
    results = list(values)
    if len(configs) != len(results):
        raise InputError(f"run {task!r}: {len(configs)} configs but {len(results)} values")
    for index, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InputTypeError(f"run {task!r}: configs[{index}] must be a dict, got {type(config).__name__}")
    return tuple(
        Trial.of(config, value, where=f"run {task!r}, values[{index}]")
        for index, (config, value) in enumerate(zip(configs, results, strict=True))
    )
