"""When to stop: the budget of a run, and the rules that end it before the budget is spent.

A rule is a function of the trials so far, in the order in which they finished. It returns the reason in words, or "" to
continue. Trials of earlier calls count, except as failures: what failed then may have been repaired.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from recollect._text import plural
from recollect.errors import InputError
from recollect.runs.run import Run, Trial, sign_of
from recollect.validation import as_count, as_number

UNLIKELY = "unlikely"
"""Of ``stop_when``: end when a worthwhile improvement is unlikely (`improvement_forecast`)."""
NUMBERS = re.compile(r"\d+")  # that may differ between two failures of the same kind: values, addresses, process ids


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop; `minimize` explains each field."""

    trials: int
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None
    max_failures: int | None = 5
    stop_when: str | None = None
    min_improvement: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that make no sense; turn numbers of NumPy into Python's own."""
        object.__setattr__(self, "trials", as_count("trials", self.trials, minimum=1))
        for name in ("seconds", "target", "min_improvement"):
            if (value := getattr(self, name)) is not None:
                number = as_number(value, name, "a number or None")
                if math.isnan(number):
                    raise InputError(f"{name}: expected a number or None, got {value!r}")
                object.__setattr__(self, name, number)
        if self.seconds is not None and self.seconds <= 0:
            raise InputError(f"seconds: expected a positive number or None, got {self.seconds!r}")
        for name, count in (("patience", self.patience), ("max_failures", self.max_failures)):
            if count is not None:
                as_count(name, count, minimum=1)
        if self.min_improvement is not None and not 0 <= self.min_improvement < math.inf:
            raise InputError(f"min_improvement: expected a number from 0 on, or None, got {self.min_improvement!r}")
        if self.stop_when not in (None, UNLIKELY):
            raise InputError(f"stop_when: expected {UNLIKELY!r} or None, got {self.stop_when!r}")


def stop_reason(budget: Budget, run: Run, *, earlier: int) -> str:
    """Return why the results so far end the run, "" if they do not; ``earlier`` trials were there at the start."""
    return target_reached(budget, run) or no_improvement(budget, run) or same_failures(budget, run, earlier=earlier)


def target_reached(budget: Budget, run: Run) -> str:
    """Return the reason if a value is at least as good as the target."""
    if budget.target is None or (best := run.best) is None or best.value is None:
        return ""
    sign = sign_of(run.direction)
    if sign * best.value > sign * budget.target:
        return ""
    return f"target {budget.target:g} reached"


def no_improvement(budget: Budget, run: Run) -> str:
    """Return the reason if the last ``patience`` trials are not better by ``min_improvement`` than those before."""
    if budget.patience is None or run.best is None:
        return ""
    sign, margin, reference, last = sign_of(run.direction), budget.min_improvement or 0.0, math.inf, 0
    for index, trial in enumerate(run.trials):
        value = math.inf if trial.value is None else sign * trial.value
        if value < reference and (reference == math.inf or value <= reference - margin):
            reference, last = value, index
    since = len(run) - 1 - last
    return f"no improvement in {plural(since, 'trial')}" if since >= budget.patience else ""


def same_failures(budget: Budget, run: Run, *, earlier: int) -> str:
    """Return the reason if no trial has succeeded and the last ``max_failures`` ones failed for the same reason."""
    if budget.max_failures is None or any(trial.ok for trial in run.trials):
        return ""
    failures = run.trials[earlier:][-budget.max_failures :]
    if len(failures) < budget.max_failures or len({_kind_of_failure(trial) for trial in failures}) > 1:
        return ""
    return f"{plural(len(failures), 'failure')} in a row for the same reason: {_reason(failures[-1])}"


def _reason(trial: Trial) -> str:
    return trial.notes[0] if trial.notes else "unknown"


def _kind_of_failure(trial: Trial) -> str:
    return NUMBERS.sub("0", _reason(trial))
