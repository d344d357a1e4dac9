"""Why a trial was suggested: what is noted on it, how it is read, and what all notes of a run say together.

Explanations of a finished run and reports both use the notes, so they agree, also if several processes worked on the
run or it was resumed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.optimizer.explanation import Explanation, PriorInfluence

MIN_NOTED_WEIGHT = 0.005  # smaller weights are not noted on a trial
MAX_PROBABILITY = 1.001  # probabilities are rounded


def influence_note(explanation: Explanation) -> dict[str, Any]:
    """Return what is noted on a trial: a few words, the prediction, weights, shares, and how much the past counts."""
    note: dict[str, Any] = {"reason": explanation.reason}
    if explanation.predicted_mean is not None and explanation.predicted_std is not None:
        note |= {"mean": float(f"{explanation.predicted_mean:.6g}"), "std": float(f"{explanation.predicted_std:.3g}")}
    if explanation.target.weight is not None and any(entry.weight is not None for entry in explanation.past):
        note["target"] = round(explanation.target.weight, 4)
        note["past"] = _by_task(explanation, "weight")
        note["dropped"] = [entry.task for entry in explanation.past if entry.dropped]
        note["shares"] = _by_task(explanation, "share")
    if explanation.prior is not None:
        note |= _prior_note(explanation, explanation.prior)
    return note


def _by_task(explanation: Explanation, name: str) -> dict[str, float]:
    """Return an attribute of past runs by task, without what is too small; runs with the same name count together."""
    sums: dict[str, float] = {}
    for entry in explanation.past:
        if (value := getattr(entry, name)) is not None:
            sums[entry.task] = sums.get(entry.task, 0.0) + value
    return {task: round(total, 4) for task, total in sums.items() if abs(total) >= MIN_NOTED_WEIGHT}


def _prior_note(explanation: Explanation, prior: PriorInfluence) -> dict[str, Any]:
    return {
        "prior": {
            "alike": round(prior.alike, 4), "reversed": round(prior.reversed, 4),
            "misranked": prior.misranked, "pairs": prior.pairs,
        },
        "coefficients": _by_task(explanation, "coefficient"),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SuggestionNote:
    """Why a trial was suggested: a few words, and the weights of this task's own model and of past runs, by task."""

    reason: str
    target_weight: float | None = None  # None: no weights were used
    source_weights: Mapping[str, float] = field(default_factory=dict)  # without those below half a percent
    dropped: frozenset[str] = frozenset()
    expected: tuple[float, float] | None = None  # mean and standard deviation that the model predicted, user's units
    shares: Mapping[str, float] = field(default_factory=dict)  # parts of the acquisition value, by past run
    prior: PriorInfluence | None = None  # how much the past counted, for a method with a prior from past runs
    coefficients: Mapping[str, float] = field(default_factory=dict)  # of past runs in the prediction, with their signs

    @property
    def sources(self) -> tuple[str, ...]:
        """All past runs that it names."""
        return (*self.source_weights, *sorted(self.dropped))


def read_note(stored: object) -> SuggestionNote | None:
    """Read what is stored with a trial about its suggestion; None for anything else."""
    if not isinstance(stored, Mapping):
        return None
    reason, dropped = str(stored.get("reason", "")), stored.get("dropped")
    target, mean, std = _weight(stored.get("target")), _number(stored.get("mean")), _number(stored.get("std"))
    expected = None if mean is None or std is None else (mean, std)
    if target is None or not isinstance(stored.get("past"), Mapping):
        return SuggestionNote(reason, expected=expected)
    names = frozenset(map(str, dropped if isinstance(dropped, list) else ()))
    return SuggestionNote(
        reason, target, _weights(stored["past"]), names, expected, _weights(stored.get("shares")),
        _prior(stored.get("prior")), _numbers(stored.get("coefficients")),
    )  # fmt: skip


def _prior(stored: object) -> PriorInfluence | None:
    if not isinstance(stored, Mapping):
        return None
    alike, reverse = _weight(stored.get("alike")), _weight(stored.get("reversed"))
    counts = [_number(stored.get(name)) for name in ("misranked", "pairs")]
    if alike is None or reverse is None or alike + reverse > MAX_PROBABILITY or None in counts:
        return None
    misranked, pairs = (int(count or 0) for count in counts)
    return PriorInfluence(alike, reverse, max(1.0 - alike - reverse, 0.0), misranked, pairs)


def _weights(stored: object) -> dict[str, float]:
    return {task: min(max(number, 0.0), 1.0) for task, number in _numbers(stored).items()}


def _numbers(stored: object) -> dict[str, float]:
    pairs = stored.items() if isinstance(stored, Mapping) else ()
    return {str(task): number for task, value in pairs if (number := _number(value)) is not None}


def _number(value: object) -> float | None:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if valid else None  # type: ignore[arg-type]


def _weight(value: object) -> float | None:
    number = _number(value)
    return None if number is None else min(max(number, 0.0), 1.0)


def with_recorded_weights(explanation: Explanation, notes: Iterable[SuggestionNote | None]) -> Explanation:
    """Return an explanation with the mean weights that the notes of all trials say, whichever process made them.

    Notes name past runs. Where several have the same name, the explanation stays as it is.
    """
    weighed = [note for note in notes if note is not None and note.target_weight is not None]
    if not weighed or len({entry.task for entry in explanation.past}) < len(explanation.past):
        return explanation
    own = sum(note.target_weight or 0.0 for note in weighed) / len(weighed)
    past = tuple(
        replace(entry, mean_weight=sum(note.source_weights.get(entry.task, 0.0) for note in weighed) / len(weighed))
        if entry.used
        else entry
        for entry in explanation.past
    )
    target = replace(explanation.target, mean_weight=own)
    return replace(explanation, target=target, past=past, prior=weighed[-1].prior or explanation.prior)
