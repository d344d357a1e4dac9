"""What was transferred and why the last configuration was suggested, as plain data and as a short text.

The weights are read from the very models behind the suggestions. Near the horizon all past runs are dropped, whatever
they are worth; what they contributed is their mean weight. Whether they helped is read from the order of all results so
far: a model of a past run that puts clearly more than half of the pairs in the right order knows something about this
task. Pairs of equal results have no order. `transfer_verdict` is the one sentence about it; reports use it, too.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.history import History
from recollect.optimizer.method import Method
from recollect.optimizer.model import FALSE_POSITIVE_RATE, MIN_ORDERED_PAIRS, FittedModel
from recollect.optimizer.past_runs import PastRun
from recollect.optimizer.suggestion import Suggestion
from recollect.runs.run import Direction, sign_of
from recollect.transfer.screening import Choice
from recollect.transfer.task_prior import TaskPriorPosterior
from recollect.transfer.weighting.base import Weights
from recollect.transfer.weighting.ranking import MAX_COMPARED, misranked_different, tied_pairs

SHOWN_PAST_RUNS = 10  # in the text, unless all are requested
TEXT_WIDTH = 100  # columns of the summary
SMALL_WEIGHT = 0.05  # of all past runs together, below which they hardly had a say
CLEARLY_ALIKE = 0.8  # probability; before the first result it is below 0.5


@dataclass(frozen=True, slots=True, eq=False)
class WeightSum:
    """The weights of all past runs and, last, of the target (k + 1,), summed over suggestions."""

    choice: Choice | None = None  # the past runs that take part now; None: all
    total: FloatArray = field(default_factory=lambda: np.zeros(1))
    suggestions: int = 0

    def plus(self, values: FloatArray) -> WeightSum:
        """Return the sum with one more suggestion, made with the past runs that take part now."""
        if self.choice is not None and len(values) > 1:
            chosen, values = values, np.zeros(self.choice.of + 1)
            values[np.append(self.choice.rows, self.choice.of)] = chosen
        return WeightSum(self.choice, self.total + values, self.suggestions + 1)

    def means(self, choice: Choice | None) -> FloatArray | None:
        """Return the mean weights of the chosen past runs and the target; None before the first suggestion."""
        if self.suggestions == 0:
            return None
        means: FloatArray = self.total / self.suggestions
        return means if choice is None or len(means) == 1 else means[np.append(choice.rows, choice.of)]


@dataclass(frozen=True, slots=True)
class Influence:
    """What one model contributes to the ensemble; None where nothing has been measured yet.

    Attributes:
        task: Name of the task.
        observations: Number of observations that the model uses.
        used: Whether the method uses the run.
        weight: Weight in the last suggestion.
        misranked: Ordered pairs of different results that the model puts in the wrong order; of the new task's own
            model only as long as it has seen all results.
        drop_probability: Probability with which the model was dropped from the last suggestion.
        dropped: Whether it was dropped from the last suggestion.
        share: Part of the acquisition value of the last suggestion that the model contributes.
        alignment: What was filled in, ignored and dropped to fit the run to the new space.
        mean_weight: Mean weight over all suggestions that models have made so far.
        coefficient: Factor of the run's function in the prediction of a method with a prior; negative: reversed.
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
    coefficient: float | None = None


@dataclass(frozen=True, slots=True)
class PriorInfluence:
    """How much the past counts now, for a method with a prior from past runs.

    Attributes:
        alike: Probability that the new task is one more of the past tasks.
        reversed: Probability that what was good in past runs is bad now.
        own_model: Probability that past runs do not say where good values are.
        misranked: Ordered pairs of different results that past runs together put in the wrong order, at the last
            suggestion by a model; half of all is chance.
        pairs: Number of ordered pairs of different results then.
    """

    alike: float
    reversed: float
    own_model: float
    misranked: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The state of the search, what each past run contributes, and why the last configuration was suggested.

    Values are in the user's units.

    Examples:
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
        past: Influence of each past run, in the order in which they were passed. Of more past runs than take part in
            one suggestion, only those that took part in the last one and those that cannot be used.
        notes: Anything unusual about the last suggestion.
        pairs: Number of ordered pairs of different results among which ``misranked`` pairs are counted.
        prior: How much the past counts; None for methods without a prior from past runs.
        screening: How many of all past runs took part in the last suggestion, and how they were chosen; empty if all
            did.
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
    prior: PriorInfluence | None = None
    screening: str = ""

    @property
    def summary(self) -> str:
        """Whether past runs helped and how much, in one sentence."""
        used = [entry for entry in self.past if entry.used]
        return transfer_verdict(
            {entry.task: _right_order(entry, self.pairs) for entry in used}, unused=len(self.past) - len(used),
            pairs=self.pairs, results=self.target.observations, prior=self.prior,
            past_weight=None if self.target.mean_weight is None else 1.0 - self.target.mean_weight,
        )  # fmt: skip

    def text(self, limit: int | None = SHOWN_PAST_RUNS) -> str:
        """Return the summary, the state of the search and a table of the past runs.

        Args:
            limit: Number of past runs to list, those with the highest mean weight first; None lists all.

        Returns:
            A text of several lines.
        """
        trials = f"{plural(self.trials, 'trial')} finished, {self.failed} of them failed"
        best = "no best value yet" if self.best_value is None else f"best value {self.best_value:.6g}"
        alone = self.past and all(entry.dropped or not entry.used for entry in self.past)
        lines = [
            *textwrap.wrap(self.summary, TEXT_WIDTH),
            f"method {self.method}: {trials}, {best}",
            f"last suggestion: {self.reason}" + (", from this task's results alone" if alone else ""),
            *([self.screening] if self.screening else []),
        ]
        if self.predicted_mean is not None and self.predicted_std is not None:
            lines.append(f"predicted value: {self.predicted_mean:.6g} +- {self.predicted_std:.2g}")
        ranked = sorted(self.past, key=lambda entry: 1.0 if entry.mean_weight is None else -entry.mean_weight)
        listed = ranked[:limit]
        if listed:
            lines += ["", *_table((*listed, self.target), self.pairs)]
        if len(listed) < len(ranked):
            lines.append(f"and {plural(len(ranked) - len(listed), 'more past run')}")
        lines += [f"{entry.task}: {entry.alignment}" for entry in listed if entry.alignment]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the text with the ten most important past runs."""
        return self.text()


def explain(
    method: Method, history: History, past: tuple[PastRun, ...],
    *, model: FittedModel | None, last: Suggestion | None, weights: WeightSum,
) -> Explanation:  # fmt: skip
    """Summarize a run, its model, its last suggestion and the weights of all suggestions by models."""
    choice = weights.choice if model is None else model.choice
    best, mean_weights = history.best, weights.means(choice)
    if choice is not None:
        chosen = set(np.flatnonzero([entry.used for entry in past])[choice.rows].tolist())
        past = tuple(entry for number, entry in enumerate(past) if number in chosen or not entry.used)
    current = None if model is None or len(model.weights.values) == 1 else model.weights
    shares = None if current is None or last is None or model is None or model.sources is None else last.shares
    misranked, pairs = (np.full(1, np.nan), None) if current is None else _order(model, history)
    measured = _measured(current or Weights.uniform(0), misranked, shares, None if current is None else mean_weights)
    posterior = model.target if model is not None and isinstance(model.target, TaskPriorPosterior) else None
    for row, coefficient in zip(measured, [] if posterior is None else posterior.coefficients(), strict=False):
        row["coefficient"] = float(coefficient)
    rows = iter(measured if current is not None else ())
    mean, std = _in_user_units(history.direction, model, last)
    influences = [
        Influence(
            entry.task, 0 if entry.data is None else len(entry.data.y), used=entry.used and method.transfers,
            alignment=str(entry.alignment), **(next(rows, {}) if entry.used else {}),
        )
        for entry in past
    ]  # fmt: skip
    return Explanation(
        method=method.name,
        trials=len(history),
        failed=len(history.failed),
        best_value=None if best is None else best.value,
        reason="nothing has been suggested yet" if last is None else last.reason,
        predicted_mean=mean,
        predicted_std=std,
        target=Influence("(this task)", history.usable, used=True, **measured[-1]),
        past=tuple(influences),
        notes=() if last is None else last.notes,
        pairs=pairs,
        prior=None if model is None or posterior is None else _prior_influence(posterior, model.y),
        screening="" if choice is None else str(choice),
    )


def _prior_influence(posterior: TaskPriorPosterior, y: FloatArray) -> PriorInfluence:
    alike, reverse = posterior.probability("alike"), posterior.probability("reversed")
    misranked, pairs = misranked_different(posterior.prior_mean[None, :], y)
    return PriorInfluence(alike, reverse, 1.0 - alike - reverse, int(misranked[0]), pairs)


def _order(model: FittedModel | None, history: History) -> tuple[FloatArray, int]:
    """Return how many pairs of all results each source and, last, the target misranks, and how many pairs there are.

    nan for the target if results have come in since it was fitted: its model of them is not known.
    """
    assert model is not None
    sources = model.target.prior.sources if isinstance(model.target, TaskPriorPosterior) else model.sources
    assert sources is not None
    (X, y), known = history.modelled(), model.weights.misranked
    current = len(model.y) == len(y)
    if current and len(y) <= MAX_COMPARED and not np.isnan(known[:-1]).any():
        tied = tied_pairs(y)
        return np.maximum(known - tied, 0.0), len(y) * (len(y) - 1) - 2 * tied
    misranked, pairs = misranked_different(model.F if current else sources.means(X), y)
    return np.append(misranked, np.nan), pairs


def _measured(
    weights: Weights, misranked: FloatArray, shares: FloatArray | None, mean_weights: FloatArray | None
) -> list[dict[str, Any]]:
    """Return what was measured of each source and, last, of the target, as fields of `Influence`."""
    columns = (
        weights.values.tolist(),
        [None if np.isnan(count) else int(count) for count in misranked],
        [*(1.0 - weights.keep_probability).tolist(), 0.0],
        [*weights.dropped.tolist(), False],
        repeat(None) if shares is None else shares.tolist(),
        repeat(None) if mean_weights is None else mean_weights.tolist(),
    )
    names = ("weight", "misranked", "drop_probability", "dropped", "share", "mean_weight")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=False)]


def _in_user_units(
    direction: Direction, model: FittedModel | None, last: Suggestion | None
) -> tuple[float | None, float | None]:
    if model is None or last is None or last.mean is None or last.std is None:
        return None, None
    prediction = model.in_units_of_y(last.mean, last.std)
    return (None, None) if prediction is None else (sign_of(direction) * prediction[0], prediction[1])


def transfer_verdict(
    agreements: Mapping[str, float | None], *, unused: int = 0, pairs: int | None, results: int,
    past_weight: float | None, prior: PriorInfluence | None = None,
) -> str:  # fmt: skip
    """Return whether past runs helped and how much, in one sentence.

    Args:
        agreements: Share of the pairs of different results that each used past run puts in the right order, by task.
        unused: Number of further past runs.
        pairs: Number of ordered pairs of different results; None: not known.
        results: Number of results that models learn from.
        past_weight: Mean weight of all past runs together.
        prior: How much the past counts, for a method with a prior from past runs.
    """
    if not agreements:
        left_out = "The only past run was not used." if unused == 1 else f"None of the {unused:,} past runs was used."
        return left_out if unused else "There are no past runs."
    early = f"Too early to say whether past runs help: {plural(results, 'result')} so far."
    if prior is not None and prior.pairs:
        return _prior_verdict(prior) if prior.pairs >= MIN_ORDERED_PAIRS else early
    ordered = [(share, task) for task, share in agreements.items() if share is not None]
    if not ordered or pairs is None:
        help_ = "it helps" if len(agreements) == 1 else "they help"
        return f"{plural(len(agreements), 'past run')} in use; whether {help_} has not been measured."
    if pairs < MIN_ORDERED_PAIRS:
        return early
    share, task = max(ordered)
    order = f"{share:.0%} of all pairs of results in the right order (chance: 50%)"
    if not _above_chance(share, pairs, len(ordered)):
        best = f"the best of {len(agreements)}, {task!r}, puts {order}, no more than luck explains"
        return f"It is not clear that past runs helped: {best}."
    weight = past_weight or 0.0
    much = " little" if weight < SMALL_WEIGHT else ""
    say = f"past runs had {weight:.0%} of the weight in the suggestions"
    return f"Past runs helped{much}: {task!r} puts {order}, and {say}."


def _prior_verdict(prior: PriorInfluence) -> str:
    right, weight = 1.0 - prior.misranked / prior.pairs, 1.0 - prior.own_model
    seen = f"together they put {right:.0%} of all pairs of results in the right order (chance: 50%)"
    had = f"had {weight:.0%} of the weight in the last suggestion"
    if prior.reversed > max(prior.alike, prior.own_model):
        return f"Past runs count in reverse, since what was good there is bad here: {seen} and {had}."
    if _above_chance(right, prior.pairs, 1):
        return f"Past runs helped: {seen} and {had}."
    if prior.alike >= CLEARLY_ALIKE:
        return f"Past runs probably helped: {seen}, but their predictions fit, and they {had}."
    return f"It is not clear that past runs helped: {seen} and {had}."


def _right_order(entry: Influence, pairs: int | None) -> float | None:
    """Return the share of pairs of results that a model puts in the right order; None if it was not measured."""
    return None if entry.misranked is None or not pairs else 1.0 - entry.misranked / pairs


def _above_chance(share: float, pairs: int, sources: int) -> bool:
    """Return whether the best of several models puts more of the n (n - 1) ordered pairs right than chance explains."""
    from scipy.special import ndtri

    n = round((1.0 + math.sqrt(1.0 + 4.0 * pairs)) / 2.0)
    deviation = math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))  # of Kendall's tau of a model that knows nothing
    return bool(2.0 * share - 1.0 > deviation * ndtri(1.0 - FALSE_POSITIVE_RATE / sources))


def _table(entries: tuple[Influence, ...], pairs: int | None) -> list[str]:
    head = ("past run", "trials", "right order", "mean weight", "last suggestion", "coefficient")
    rows: list[tuple[str, ...]] = [head]
    for entry in entries:
        share = _right_order(entry, pairs)
        rows.append((
            entry.task[:40], str(entry.observations), _percent(share), _percent(entry.mean_weight), _state(entry),
            "" if entry.coefficient is None else f"{entry.coefficient:+.2f}",
        ))  # fmt: skip
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _state(entry: Influence) -> str:
    if not entry.used:
        return "left out"
    return "used" if entry.weight is None else "not used" if entry.dropped else _percent(entry.weight)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
