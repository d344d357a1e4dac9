"""Objectives and where they are evaluated: in this process, one at a time, or in worker processes.

An evaluation ends with a finite number, or with the reason why there is none.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from recollect.errors import InputError, InputTypeError
from recollect.processes import ProcessDiedError, ProcessPool, TimeLimitError
from recollect.runs.run import FAILED, Config
from recollect.validation import as_number

Objective: TypeAlias = Callable[[Config], Any]
"""Takes a configuration and returns a number, or recollect.FAILED."""

GATHER_SECONDS = 0.005  # less than it takes to store a result
KEPT_FRAMES = 8  # innermost frames of a traceback that are stored with a failed trial


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating one configuration."""

    value: float | None  # None if the trial failed
    seconds: float
    notes: tuple[str, ...] = ()  # to be stored with the trial; for a failed one, the reason comes first

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


def evaluate(objective: Objective, config: Config) -> Evaluation:
    """Evaluate a configuration; everything the objective raises but Ctrl-C, even an exit, becomes the reason."""
    start = time.perf_counter()
    try:
        returned = objective(dict(config))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a failed trial must not end the run; its reason is kept
        frames = "".join(traceback.format_exception(error, limit=-KEPT_FRAMES))
        return Evaluation(None, time.perf_counter() - start, (reason_of(error), frames))
    return judge(returned, time.perf_counter() - start)


def judge(returned: Any, seconds: float) -> Evaluation:
    """Return the evaluation whose objective returned this."""
    if returned is FAILED:
        return Evaluation(None, seconds, ("the objective reported a failure",))
    try:
        value = as_number(returned, "the objective")
    except InputTypeError:
        reason = f"expected a number from the objective, got {repr(returned)[:80]} ({type(returned).__name__})"
        return Evaluation(None, seconds, (reason,))
    if not math.isfinite(value):
        return Evaluation(None, seconds, (f"expected a finite number from the objective, got {value}",))
    return Evaluation(value, seconds)


def as_time_limit(seconds: object) -> float | None:
    """Return the argument ``trial_seconds`` as a number of seconds; None for no limit."""
    if seconds is None:
        return None
    limit = as_number(seconds, "trial_seconds", "a positive number or None")
    if not limit > 0:
        raise InputError(f"trial_seconds: expected a positive number or None, got {seconds!r}")
    return None if math.isinf(limit) else limit


def reason_of(error: BaseException) -> str:
    """Return an exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - whatever the exception's own code raises
        text = ""
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


Finished: TypeAlias = list[tuple[int, Evaluation]]
"""Evaluations that have ended, each with the number of its trial."""


class Evaluator(Protocol):
    """Evaluates configurations, ``capacity`` of them at the same time."""

    @property
    def capacity(self) -> int:
        """How many configurations can be evaluated at the same time."""

    def start(self, number: int, config: Config) -> None:
        """Start the evaluation of a trial; fewer than ``capacity`` may be running."""

    def wait(self, seconds: float) -> Finished:
        """Wait at most this long until an evaluation ends; return all that have ended."""

    def close(self) -> None:
        """Stop whatever runs."""


def wait_for_any(running: Collection[Future[Evaluation]], seconds: float) -> Collection[Future[Evaluation]]:
    """Wait at most this long until an evaluation ends, and a moment for others: results are stored in one step."""
    ended = wait(running, timeout=seconds, return_when=FIRST_COMPLETED).done
    return wait(running, timeout=GATHER_SECONDS).done if ended else ended


class InProcessEvaluator:
    """Evaluates in this process, one configuration at a time: `wait` does the work."""

    capacity = 1

    def __init__(self, objective: Objective) -> None:
        """Evaluate this objective."""
        self._objective = objective
        self._next: tuple[int, Config] | None = None

    def start(self, number: int, config: Config) -> None:
        """Accept a configuration."""
        self._next = (number, config)

    def wait(self, seconds: float) -> Finished:  # noqa: ARG002 - an evaluation here cannot be interrupted
        """Evaluate it."""
        if self._next is None:
            return []
        (number, config), self._next = self._next, None
        return [(number, evaluate(self._objective, config))]

    def close(self) -> None:
        """Do nothing: nothing runs outside `wait`."""


class PoolEvaluator:
    """Evaluates in worker processes. A process that dies or exceeds the time limit costs its own trial only."""

    def __init__(self, objective: Objective, capacity: int, *, time_limit: float | None = None) -> None:
        """Use up to ``capacity`` processes; each evaluation may take ``time_limit`` seconds."""
        try:
            # The user's training decides how many threads it uses.
            self._pool = ProcessPool(partial(evaluate, objective), capacity, time_limit=time_limit, one_thread=False)
        except Exception as error:
            raise InputTypeError(
                f"the objective cannot be sent to another process ({reason_of(error)}): with several workers or a time "
                "limit it must not hold open files, locks or connections"
            ) from error
        self.capacity = capacity
        self._running: dict[Future[Evaluation], tuple[int, float]] = {}

    def start(self, number: int, config: Config) -> None:
        """Send a configuration to a free process, or to a new one."""
        self._running[self._pool.submit(config)] = number, time.monotonic()

    def wait(self, seconds: float) -> Finished:
        """Wait until a process answers, dies or exceeds its time limit."""
        return [self._finished(future) for future in wait_for_any(self._running, seconds)]

    def close(self) -> None:
        """Kill all processes."""
        self._pool.close()

    def _finished(self, future: Future[Evaluation]) -> tuple[int, Evaluation]:
        number, start = self._running.pop(future)
        try:
            return number, future.result()
        except (TimeLimitError, ProcessDiedError) as error:
            return number, Evaluation(None, time.monotonic() - start, (str(error),))
