"""Hyperparameters as axes: every value has a place between 0 and 1, an inactive one has a place of its own.

Numbers and integers lie as the search sees them, on their linear or logarithmic scale; choices are spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray
from recollect.report.names import named
from recollect.report.run.values import compact
from recollect.report.story import Story
from recollect.space.columns import Choices, Column, Interval, Steps
from recollect.space.reading import MISSING

MOST = 12  # hyperparameters in a figure
LABELS = 22  # signs of all labels of choices together: so many fit side by side on a narrow screen
MOST_LABELS, LEAST_SIGNS = 5, 3  # labels that are shown side by side, and signs that are left of each
OFF = "off"


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A hyperparameter. ticks: places and labels, from left to right; off: whether it is inactive in some trial."""

    name: str
    column: Column
    ticks: tuple[tuple[float, str], ...]
    places: FloatArray

    @property
    def off(self) -> bool:
        """Whether it is inactive in some of the trials."""
        return bool(np.isnan(self.places).any())

    def text(self, place: float) -> str:
        """Return the value at a place."""
        code = place * self.column.size - 0.5 if isinstance(self.column, Choices) else place
        return value_text(self.column.value(float(code)))

    @property
    def ordered(self) -> bool:
        """Whether its values have an order."""
        return not self.column.categorical


def axes(story: Story, importance: Sequence[str] = ()) -> list[Axis]:
    """Return the axes of the hyperparameters that vary: the most important ones of many, in the order of the space."""
    if story.space is None:
        return []
    varying = [column for column, varies in zip(story.space.columns, story.space.varying, strict=True) if varies]
    if len(varying) > MOST:
        rank = {name: place for place, name in enumerate(importance)}
        first = {column.name for column in sorted(varying, key=lambda column: rank.get(column.name, len(rank)))[:MOST]}
        varying = [column for column in varying if column.name in first]
    return [Axis(column.name, column, _ticks(column), _places(column, story.run.configs)) for column in varying]


def value_text(value: Any) -> str:
    """Return a value of a hyperparameter as it is shown."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return named(str(value), 60)


def config_text(config: Config, most: int = 400) -> str:
    """Return a configuration in one line."""
    return named(", ".join(f"{name} = {value_text(value)}" for name, value in config.items()), most)


def ends_text(axis: Axis, places: FloatArray) -> str:
    """Return the values between which places lie, or the choices, as a phrase."""
    known = np.unique(places[np.isfinite(places)])
    if not axis.ordered:
        return " or ".join(map(axis.text, known))
    low, high = axis.text(known[0]), axis.text(known[-1])
    return low if low == high else f"{low} to {high}"


def _places(column: Column, configs: Sequence[Config]) -> FloatArray:
    """Return the places (n,), nan where it is inactive."""
    codes = column.codes_anywhere([config.get(column.name, MISSING) for config in configs])
    return np.clip((codes + 0.5) / column.size if isinstance(column, Choices) else codes, 0.0, 1.0)


def _ticks(column: Column) -> tuple[tuple[float, str], ...]:
    if isinstance(column, Interval):
        return tuple((place, compact(column.value(place))) for place in (0.0, 0.5, 1.0))
    if isinstance(column, Steps) and column.choices is None:
        values = sorted({column.value(place) for place in (0.0, 0.5, 1.0)})
        return tuple((float(code), compact(value)) for code, value in zip(column.codes(values), values, strict=True))
    choices: tuple[Any, ...] = column.choices  # type: ignore[attr-defined]
    places = _places(column, [{column.name: choice} for choice in choices])
    return tuple(zip(places.tolist(), _fit(choices), strict=True))


def _fit(choices: Sequence[Any]) -> list[str]:
    """Return labels of choices that have room beside each other; of too many, the first and the last."""
    texts = [value_text(choice) for choice in choices]
    if len(texts) > MOST_LABELS:
        texts = [texts[0], *[""] * (len(texts) - 2), texts[-1]]
    most = max(map(len, texts))
    while most > LEAST_SIGNS and sum(min(len(text), most) + 1 for text in texts if text) > LABELS:
        most -= 1
    return [named(text, most) if text else "" for text in texts]
