"""Where an objective is evaluated: in this process, one configuration at a time, or in processes of their own.

An evaluator has a number of places. `begin` starts an evaluation in a free one; `wait` returns those that have ended.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeAlias

from recollect.history.run import Config
from recollect.tuning.outcome import Objective, Outcome, evaluate

Ended: TypeAlias = list[tuple[Hashable, Outcome]]
"""Evaluations that ended, by the name under which they were begun."""


class Evaluator(Protocol):
    """Evaluates configurations."""

    @property
    def places(self) -> int:
        """How many configurations can be evaluated at the same time."""

    def begin(self, name: Hashable, config: Config) -> None:
        """Start an evaluation; there must be a free place."""

    def wait(self, seconds: float) -> Ended:
        """Wait until an evaluation ends, but no longer than this; return all that have ended."""

    def close(self) -> None:
        """Stop whatever runs."""


class InThisProcess:
    """Evaluates here and now: `wait` does the work."""

    places = 1

    def __init__(self, objective: Objective) -> None:
        """Evaluate this objective."""
        self._objective = objective
        self._begun: tuple[Hashable, Config] | None = None

    def begin(self, name: Hashable, config: Config) -> None:
        """Take a configuration."""
        self._begun = (name, config)

    def wait(self, seconds: float) -> Ended:  # noqa: ARG002 - the work takes the time it takes
        """Evaluate it."""
        if self._begun is None:
            return []
        (name, config), self._begun = self._begun, None
        return [(name, evaluate(self._objective, config))]

    def close(self) -> None:
        """Nothing runs outside `wait`."""
