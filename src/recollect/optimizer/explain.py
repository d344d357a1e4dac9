"""What was transferred and what drove the last suggestion, as plain data and as a short text.

The weights shown are the weights that were used: they are read from the very beliefs behind the suggestions. Towards
the horizon all past runs are dropped, whatever they are worth; what they contributed is their mean weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recollect.history.run import Run, sign_of
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.belief import Belief
from recollect.optimizer.method import Method
from recollect.optimizer.past import PastRun
from recollect.optimizer.suggest import Suggestion

STATES = ("kept", "dropped")


@dataclass(frozen=True, slots=True)
class Influence:
    """What one model says in the ensemble; None where nothing has been measured yet.

    ``weight``, ``misranked``, ``drop_probability``, ``dropped`` and ``share`` are those of the last suggestion:
    ``misranked`` counts ordered pairs of observations that the model puts in the wrong order, ``share`` is its part in
    the acquisition value. ``mean_weight`` is the mean over all suggestions that models have made so far;
    ``alignment`` says what was filled, mapped and dropped.
    """

    task: str
    observations: int
    used: bool
    weight: float | None
    misranked: int | None
    drop_probability: float | None
    dropped: bool | None
    share: float | None
    alignment: str
    mean_weight: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where the search stands, what each past run contributes, and why the last configuration was suggested.

    Values are in the user's units. ``past`` has one entry for each past run given, ``target`` is the new task's model,
    ``pairs`` is of how many ordered pairs each may have misranked some.
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
        """Return the explanation as a few plain lines and a table of the past runs, most influential first."""
        trials = "1 trial" if self.trials == 1 else f"{self.trials} trials"
        best = "none yet" if self.best_value is None else f"{self.best_value:.6g}"
        lines = [
            f"method {self.method}: {trials} told, {self.failed} failed, best value {best}",
            f"last suggestion: {self.reason}",
        ]
        if self.predicted_mean is not None and self.predicted_std is not None:
            lines.append(f"expected there: {self.predicted_mean:.6g} +- {self.predicted_std:.2g}")
        if self.past:
            lines += _table((*sorted(self.past, key=_by_weight), self.target), self.pairs)
        lines += [f"{entry.task}: {entry.alignment}" for entry in self.past if entry.alignment]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def explain(
    method: Method,
    run: Run,
    past: tuple[PastRun, ...],
    *,
    belief: Belief | None,
    last: Suggestion | None,
    mean_weights: FloatArray | None,
) -> Explanation:
    """Summarise a run, the belief behind it, its last suggestion and the weights (k + 1,) of all suggestions."""
    best = run.best
    mean, std = _in_user_units(run, belief, last)
    target, influences = _influences(past, belief, last, trials=len(run.succeeded))
    if mean_weights is not None and belief is not None and belief.sources is not None:
        used = iter(mean_weights.tolist())
        influences = tuple(replace(each, mean_weight=next(used)) if each.used else each for each in influences)
        target = replace(target, mean_weight=next(used))
    if not method.transfers:
        influences = tuple(replace(entry, used=False) for entry in influences)
    return Explanation(
        method=method.name,
        trials=len(run),
        failed=len(run) - len(run.succeeded),
        best_value=None if best is None else best.value,
        reason="nothing has been suggested yet" if last is None else last.reason,
        predicted_mean=mean,
        predicted_std=std,
        target=target,
        past=influences,
        notes=() if last is None else last.notes,
        pairs=None if belief is None or belief.sources is None else belief.F.shape[1] * (belief.F.shape[1] - 1),
    )


def _in_user_units(run: Run, belief: Belief | None, last: Suggestion | None) -> tuple[float | None, float | None]:
    if belief is None or last is None or last.mean is None or last.std is None:
        return None, None
    expected = belief.in_units_of_y(last.mean, last.std)
    return (None, None) if expected is None else (sign_of(run.direction) * expected[0], expected[1])


def _influences(
    past: tuple[PastRun, ...], belief: Belief | None, last: Suggestion | None, *, trials: int
) -> tuple[Influence, tuple[Influence, ...]]:
    weights = None if belief is None or belief.sources is None else belief.weights
    shares = None if weights is None or last is None else last.shares
    position = {id(entry): i for i, entry in enumerate(entry for entry in past if entry.used)}

    def influence(entry: PastRun) -> Influence:
        size = 0 if entry.data is None else len(entry.data.y)
        if weights is None or not entry.used:
            return Influence(entry.task, size, entry.used, None, None, None, None, None, str(entry.alignment))
        i = position[id(entry)]
        return Influence(
            entry.task, size, True,
            weight=float(weights.values[i]),
            misranked=_count(weights.misranked[i]),
            drop_probability=float(1.0 - weights.keep_probability[i]),
            dropped=bool(weights.dropped[i]),
            share=None if shares is None else float(shares[i]),
            alignment=str(entry.alignment),
        )  # fmt: skip

    target = Influence(
        "(this task)", trials, True,
        weight=1.0 if weights is None else weights.target,
        misranked=None if weights is None else _count(weights.misranked[-1]),
        drop_probability=0.0,
        dropped=False,
        share=None if shares is None else float(shares[-1]),
        alignment="",
    )  # fmt: skip
    return target, tuple(map(influence, past))


def _count(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _by_weight(entry: Influence) -> float:
    return 1.0 if entry.mean_weight is None else -entry.mean_weight


def _table(entries: tuple[Influence, ...], pairs: int | None) -> list[str]:
    of = "misranked" if pairs is None else f"misranked of {pairs}"
    head = ("past run", "observations", "mean weight", "last weight", of, "p(drop)", "", "share")
    rows = [head]
    for entry in entries:
        state = "left out" if not entry.used else "used" if entry.weight is None else STATES[bool(entry.dropped)]
        rows.append((
            entry.task[:40], str(entry.observations), _shown(entry.mean_weight), _shown(entry.weight),
            _shown(entry.misranked, "d"), _shown(entry.drop_probability), state, _shown(entry.share),
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _shown(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)
