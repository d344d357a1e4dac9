"""What came of evaluating one configuration: a finite number, or a reason why there is none."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from recollect.errors import InputTypeError
from recollect.history.run import FAILED, Config, as_number

Objective: TypeAlias = Callable[[Config], Any]
"""Takes a configuration, returns a number, or recollect.FAILED."""

FRAMES = 8
"""How many of the innermost frames of a traceback are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of a trial, or None and notes that say why; seconds it took."""

    value: float | None
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


def evaluate(objective: Objective, config: Config) -> Outcome:
    """Evaluate a configuration; whatever the objective raises becomes a reason, an exit too. Only Ctrl-C passes."""
    start = time.perf_counter()
    try:
        returned = objective(dict(config))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a trial that fails must not end the run; its reason is kept
        last = "".join(traceback.format_exception(error, limit=-FRAMES))
        return Outcome(None, time.perf_counter() - start, (reason_of(error), last))
    return judge(returned, time.perf_counter() - start)


def judge(returned: Any, seconds: float) -> Outcome:
    """Turn what an objective returned into an outcome."""
    if returned is FAILED:
        return Outcome(None, seconds, ("the objective reported a failure",))
    try:
        value = as_number(returned, "the objective")
    except InputTypeError:
        shown = repr(returned)
        return Outcome(None, seconds, (f"the objective returned {shown[:80]} ({type(returned).__name__}), no number",))
    if not math.isfinite(value):
        return Outcome(None, seconds, (f"the objective returned {value}",))
    return Outcome(value, seconds)


def reason_of(error: BaseException) -> str:
    """Return an exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
