"""Axes of the figures of a run: for values of trials, and for hyperparameters.

The axis for values is logarithmic if all values are positive and some are far larger than others; failed trials are
drawn beyond the worst value. On the axis of a hyperparameter, every value has a position between 0 and 1: numbers and
integers lie where the search sees them, on their linear or logarithmic scale; choices are spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.analysis.run_data import RunData
from recollect.analysis.run_progress import trial_values
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import rounded
from recollect.report.formatting import compact_number, param_text, printable
from recollect.runs.run import Config, Run
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps
from recollect.space.space import MISSING

LOG_RATIO = 20.0  # between the largest and the smallest value, above which the scale is logarithmic
MANY_DECADES, MAX_TICKS = 3.0, 8  # on a log axis: ticks at 1, 2 and 5 for fewer decades, at powers of 10 for more
HORIZONTAL_TICKS = 4  # labels of numbers that fit side by side on a narrow screen
FEW_STEPS = 6  # integers that all have a tick
PADDING, BEYOND = 0.05, 0.1  # shares of the axis around the values, and from the worst value to failed trials


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """An axis for values; low and high are its ends, failed is the position of failed trials, all in its units."""

    log: bool
    low: float
    high: float
    failed: float

    def layout(self, title: str = "value") -> dict[str, Any]:
        """Return the axis as plotly expects it."""
        ends = np.log10([self.low, self.high]) if self.log else np.array([self.low, self.high])
        decades = float(ends[1] - ends[0])
        step: str | int = "D2" if decades < MANY_DECADES else math.ceil(decades / MAX_TICKS)
        scale = {"type": "log", "dtick": step, "tickformat": "~g"} if self.log else {}
        return {"title": {"text": title}, "range": rounded(ends, 6), "zeroline": False, **scale}

    def horizontal_layout(self, title: str = "value") -> dict[str, Any]:
        """Return the axis with so few ticks that their labels fit side by side on a narrow screen."""
        if not self.log:
            return {**self.layout(title), "nticks": HORIZONTAL_TICKS}
        shown = round_log_values(math.log10(self.low), math.log10(self.high), most=HORIZONTAL_TICKS)
        return {**self.layout(title), "dtick": None, "tickvals": shown, "ticktext": list(map(compact_number, shown))}


def round_log_values(low: float, high: float, *, most: int) -> list[float]:
    """Return at most this many round numbers between 10^low and 10^high."""
    steps = (1,) if high - low > MANY_DECADES else (1, 2, 5)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    inside = [value for value in values if low < math.log10(value) < high]
    return inside[:: max(1, math.ceil(len(inside) / most))]


def value_axis(run: Run, others: FloatArray | None = None) -> ValueAxis:
    """Return an axis for the values of a run with at least one value, and for others that are drawn beside them."""
    values = trial_values(run)
    every = values[np.isfinite(values)]
    if others is not None:
        every = np.concatenate([every, others[np.isfinite(others)]])
    log = bool(every.min() > 0 and every.max() > LOG_RATIO * every.min())
    scaled = np.log10(every) if log else every
    low, high = float(scaled.min()), float(scaled.max())
    span = (high - low) or abs(high) * 0.1 or 1.0
    worst, sign = (high, 1.0) if run.direction == "minimize" else (low, -1.0)
    failed = worst + sign * BEYOND * span
    ends = [low - PADDING * span, high + PADDING * span]
    if np.isnan(values).any():
        ends[sign > 0] = failed + sign * PADDING * span
    low, high, failed = (float(10.0 ** min(max(place, -307.0), 307.0)) if log else place for place in (*ends, failed))
    return ValueAxis(log, low, high, failed)


MAX_AXES = 12  # hyperparameters in a figure
MAX_LABEL_CHARACTERS = 22  # of all labels of choices together: this many fit on a narrow screen
MAX_LABELS, MIN_CHARACTERS = 5, 3  # labels that are shown side by side, and characters that are left of each
INACTIVE_LABEL = "off"
PRUNED_MARKER = {"color": "@orange", "size": 7, "symbol": "triangle-down"}
FAILED_MARKER = {"color": "@vermillion", "size": 8, "symbol": "x-thin-open", "line": {"width": 2}}


def best_label(best: Collection[int]) -> str:
    """Return what the best trials are called in the key of a figure."""
    return f"the best {len(best)}" if len(best) != 1 else "the best trial"


@dataclass(frozen=True, slots=True, eq=False)
class HyperparameterAxis:
    """A hyperparameter as an axis; ticks: positions and labels; positions (n,): of trials, nan where it is inactive."""

    name: str
    column: SpaceColumn
    ticks: tuple[tuple[float, str], ...]
    positions: FloatArray

    @property
    def sometimes_inactive(self) -> bool:
        """Whether it is inactive in some of the trials."""
        return bool(np.isnan(self.positions).any())

    @property
    def ordered(self) -> bool:
        """Whether its values have an order."""
        return not self.column.categorical

    def text_at(self, position: float) -> str:
        """Return the value at a position."""
        code = position * self.column.size - 0.5 if isinstance(self.column, Choices) else position
        return param_text(self.column.value(float(code)))

    def text_in(self, config: Config, otherwise: str = "inactive") -> str:
        """Return the value in a configuration, or another text if it has none."""
        return param_text(config.get(self.name, otherwise))

    def range_text(self, positions: FloatArray) -> str:
        """Return the range of values, or the choices, at these positions as a phrase."""
        distinct = np.unique(positions[np.isfinite(positions)])
        if not self.ordered:
            return " or ".join(map(self.text_at, distinct))
        low, high = self.text_at(distinct[0]), self.text_at(distinct[-1])
        return low if low == high else f"{low} to {high}"


def hyperparameter_axes(data: RunData, importance: Sequence[str] = ()) -> list[HyperparameterAxis]:
    """Return the axes of the hyperparameters that vary, in the order of the space; of many, the most important ones."""
    if data.space is None:
        return []
    varying = [column for column, varies in zip(data.space.columns, data.space.varying, strict=True) if varies]
    if len(varying) > MAX_AXES:
        rank = {name: place for place, name in enumerate(importance)}
        ranked = sorted(varying, key=lambda column: rank.get(column.name, len(rank)))
        first = {column.name for column in ranked[:MAX_AXES]}
        varying = [column for column in varying if column.name in first]
    configs = data.run.configs
    return [HyperparameterAxis(column.name, column, _ticks(column), _positions(column, configs)) for column in varying]


def _positions(column: SpaceColumn, configs: Sequence[Config]) -> FloatArray:
    """Return the positions (n,), nan where it is inactive."""
    codes = column.codes_anywhere([config.get(column.name, MISSING) for config in configs])
    return np.clip((codes + 0.5) / column.size if isinstance(column, Choices) else codes, 0.0, 1.0)


def _ticks(column: SpaceColumn) -> tuple[tuple[float, str], ...]:
    if isinstance(column, Interval):
        return tuple((place, compact_number(column.value(place))) for place in (0.0, 0.5, 1.0))
    if isinstance(column, Steps) and column.choices is None:
        places = np.linspace(0.0, 1.0, column.size if column.size <= FEW_STEPS else 3)
        values = sorted({column.value(float(place)) for place in places})
        codes = column.codes(values)
        return tuple((float(code), compact_number(value)) for code, value in zip(codes, values, strict=True))
    choices = column.choices or ()
    positions = _positions(column, [{column.name: choice} for choice in choices])
    return tuple(zip(positions.tolist(), _choice_labels(choices), strict=True))


def _choice_labels(choices: Sequence[Any]) -> list[str]:
    """Return labels of choices that fit beside each other; of too many, only the first and the last."""
    texts = [param_text(choice) for choice in choices]
    if len(texts) > MAX_LABELS:
        texts = [texts[0], *[""] * (len(texts) - 2), texts[-1]]
    most = max(map(len, texts))
    while most > MIN_CHARACTERS and sum(min(len(text), most) + 1 for text in texts if text) > MAX_LABEL_CHARACTERS:
        most -= 1
    return [printable(text, most) if text else "" for text in texts]
