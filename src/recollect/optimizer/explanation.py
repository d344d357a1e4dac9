"""What was transferred and why the last configuration was suggested, as plain data and as a short text.

The weights are read from the very models behind the suggestions. Near the horizon all past runs are dropped, whatever
they are worth; what they contributed is their mean weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.method import Method
from recollect.optimizer.model import FittedModel
from recollect.optimizer.past_runs import PastRun
from recollect.optimizer.suggestion import Suggestion
from recollect.runs.run import Run, sign_of
from recollect.transfer.weighting.base import Weights


@dataclass(frozen=True, slots=True)
class Influence:
    """What one model contributes to the ensemble; None where nothing has been measured yet.

    Attributes:
        task: Name of the task.
        observations: Number of observations that the model uses.
        used: Whether the method uses the run.
        weight: Weight in the last suggestion.
        misranked: Ordered pairs of observations that the model puts in the wrong order.
        drop_probability: Probability with which the model was dropped from the last suggestion.
        dropped: Whether it was dropped from the last suggestion.
        share: Part of the acquisition value of the last suggestion that the model contributes.
        alignment: What was filled in, ignored and dropped to fit the run to the new space.
        mean_weight: Mean weight over all suggestions that models have made so far.
    """

    task: str
    observations: int
    used: bool
    weight: float | None = None
    misranked: int | None = None
    drop_probability: float | None = None
    dropped: bool | None = None
    share: float | None = None
    alignment: str = ""
    mean_weight: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The state of the search, what each past run contributes, and why the last configuration was suggested.

    Values are in the user's units.

    Example:
        >>> explanation = optimizer.explain()
        >>> print(explanation)
        >>> {entry.task: entry.mean_weight for entry in explanation.past}

    Attributes:
        method: Name of the method.
        trials: Number of finished trials, failed ones included.
        failed: Number of failed trials.
        best_value: Best value so far.
        reason: Why the last configuration was suggested.
        predicted_mean: Value that the new task's model predicted for it.
        predicted_std: Standard deviation of that prediction.
        target: Influence of the new task's model.
        past: Influence of each past run, in the order in which they were passed.
        notes: Anything unusual about the last suggestion.
        pairs: Number of ordered pairs of observations among which ``misranked`` pairs are counted.
    """

    method: str
    trials: int
    failed: int
    best_value: float | None
    reason: str
    predicted_mean: float | None
    predicted_std: float | None
    target: Influence
    past: tuple[Influence, ...]
    notes: tuple[str, ...]
    pairs: int | None = None

    def __str__(self) -> str:
        """Return a few plain lines and a table of the past runs, the one with the highest mean weight first."""
        trials = f"{plural(self.trials, 'trial')} finished, {self.failed} of them failed"
        best = "none yet" if self.best_value is None else f"{self.best_value:.6g}"
        lines = [f"method {self.method}: {trials}, best value {best}", f"last suggestion: {self.reason}"]
        if self.predicted_mean is not None and self.predicted_std is not None:
            lines.append(f"predicted value: {self.predicted_mean:.6g} +- {self.predicted_std:.2g}")
        if self.past:
            ranked = sorted(self.past, key=lambda entry: 1.0 if entry.mean_weight is None else -entry.mean_weight)
            lines += _table((*ranked, self.target), self.pairs)
        lines += [f"{entry.task}: {entry.alignment}" for entry in self.past if entry.alignment]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def explain(
    method: Method, run: Run, past: tuple[PastRun, ...],
    *, model: FittedModel | None, last: Suggestion | None, mean_weights: FloatArray | None,
) -> Explanation:  # fmt: skip
    """Summarize a run, its model, its last suggestion and the mean weights (k + 1,) of all suggestions by models."""
    best = run.best
    weights = None if model is None or model.sources is None else model.weights
    shares = None if weights is None or last is None else last.shares
    measured = _measured(weights or Weights.uniform(0), shares, None if weights is None else mean_weights)
    rows = iter(measured if weights is not None else ())
    mean, std = _in_user_units(run, model, last)
    influences = [
        Influence(
            entry.task, 0 if entry.data is None else len(entry.data.y), used=entry.used and method.transfers,
            alignment=str(entry.alignment), **(next(rows, {}) if entry.used else {}),
        )
        for entry in past
    ]  # fmt: skip
    return Explanation(
        method=method.name,
        trials=len(run),
        failed=len(run) - len(run.succeeded),
        best_value=None if best is None else best.value,
        reason="nothing has been suggested yet" if last is None else last.reason,
        predicted_mean=mean,
        predicted_std=std,
        target=Influence("(this task)", len(run.succeeded), used=True, **measured[-1]),
        past=tuple(influences),
        notes=() if last is None else last.notes,
        pairs=None if model is None or weights is None else model.F.shape[1] * (model.F.shape[1] - 1),
    )


def _measured(weights: Weights, shares: FloatArray | None, mean_weights: FloatArray | None) -> list[dict[str, Any]]:
    """Return what was measured of each source and, last, of the target, as fields of `Influence`."""
    columns = (
        weights.values.tolist(),
        [None if np.isnan(count) else int(count) for count in weights.misranked],
        [*(1.0 - weights.keep_probability).tolist(), 0.0],
        [*weights.dropped.tolist(), False],
        repeat(None) if shares is None else shares.tolist(),
        repeat(None) if mean_weights is None else mean_weights.tolist(),
    )
    names = ("weight", "misranked", "drop_probability", "dropped", "share", "mean_weight")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=False)]


def _in_user_units(run: Run, model: FittedModel | None, last: Suggestion | None) -> tuple[float | None, float | None]:
    if model is None or last is None or last.mean is None or last.std is None:
        return None, None
    prediction = model.in_units_of_y(last.mean, last.std)
    return (None, None) if prediction is None else (sign_of(run.direction) * prediction[0], prediction[1])


def _table(entries: tuple[Influence, ...], pairs: int | None) -> list[str]:
    misranked = "misranked" if pairs is None else f"misranked of {pairs}"
    head = ("past run", "observations", "mean weight", "last weight", misranked, "p(drop)", "", "share")
    rows = [head]
    for entry in entries:
        rows.append((
            entry.task[:40], str(entry.observations), _shown(entry.mean_weight), _shown(entry.weight),
            _shown(entry.misranked, "d"), _shown(entry.drop_probability), _state(entry), _shown(entry.share),
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _state(entry: Influence) -> str:
    if not entry.used:
        return "left out"
    return "used" if entry.weight is None else "dropped" if entry.dropped else "kept"


def _shown(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)
