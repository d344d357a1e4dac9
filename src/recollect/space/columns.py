"""One column of an encoded configuration: how the values of one hyperparameter become numbers and back.

Notation: v a value, u its code, m the number of distinct values (0 = continuum), k = 0..m-1 the cell of a discrete
value.

    Interval  float                 u = (v - lo)/(hi - lo), logarithms taken first on a log scale
    Steps     integer and ordinal   the same on [lo - 0.49999, hi + 0.49999]; an ordinal counts its positions 0..m-1
    Choices   categorical, constant u = k, not scaled

The arithmetic of `codes`, `snap` and `value` is shared, so that equal values have bitwise equal
codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recollect.numerics.arrays import FloatArray
from recollect.space.decimals import shortest_decimal
from recollect.space.values import as_numbers, as_values, listed, look_up, significant

MARGIN = 0.49999
EDGE_DECIMALS = 1e-13
"""ConfigSpace keeps 13 decimals of a float bound, so a value may miss a rounded bound by that much."""
EDGE_RELATIVE = 1e-6


class Column(Protocol):
    """What the space asks of one column; u and t are (n,) arrays, nan = inactive stays nan."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def categorical(self) -> bool: ...  # noqa: D102
    @property
    def default(self) -> float: ...  # noqa: D102

    def expected(self) -> str:
        """Say which values are allowed, for error messages."""

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Return the code of every value; nan where the value does not belong to this column."""

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Return the same, but numbers outside the range have a code too, outside [0, 1] on the same scale."""

    def value(self, u: float) -> Any:
        """Return the value, as a native Python object, behind one code."""

    def snap(self, u: FloatArray) -> FloatArray:
        """Move codes to the nearest proper ones."""

    def keys(self, u: FloatArray) -> FloatArray:
        """Return numbers that compare (==, <, >) as the values do in conditions and forbidden clauses."""

    def comparable(self, u: FloatArray) -> np.ndarray[Any, Any]:
        """Return the values themselves, for comparison with another hyperparameter's."""

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Turn points of [0, 1) into proper codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A float in [lower, upper], on a linear or a logarithmic scale."""

    name: str
    lower: float
    upper: float
    log: bool
    default: float

    size: int = 0
    categorical: bool = False

    def expected(self) -> str:
        """Say which values are allowed."""
        return f"a number in [{self.lower!r}, {self.upper!r}]"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Encode; values that miss a bound by less than ConfigSpace's rounding count as the bound."""
        v = as_numbers(values)
        below = self.lower - min(EDGE_DECIMALS, EDGE_RELATIVE * abs(self.lower))
        above = self.upper + min(EDGE_DECIMALS, EDGE_RELATIVE * abs(self.upper))
        inside = (v >= below) & (v <= above)
        return self._forward(np.where(inside, np.clip(v, self.lower, self.upper), np.nan))

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Encode beyond the bounds too; nan for what is not finite, or not positive on a log scale."""
        v = as_numbers(values)
        v = np.where(np.isfinite(v) & ((v > 0) | (not self.log)), v, np.nan)
        inside = self.codes(v.tolist())
        with np.errstate(over="ignore", divide="ignore"):  # so far away that the code is infinite
            beyond = self._above_lower(v) / self._width()
        return np.where(np.isnan(inside), beyond, inside)

    def value(self, u: float) -> float:
        """Return the shortest decimal with this code."""
        return shortest_decimal(min(max(u, 0.0), 1.0), self._strict_forward, self._backward)

    def snap(self, u: FloatArray) -> FloatArray:
        """Clip to [0, 1]."""
        return np.clip(u, 0.0, 1.0)

    def keys(self, u: FloatArray) -> FloatArray:
        """Return the codes: the scale is increasing."""
        return u

    def comparable(self, u: FloatArray) -> FloatArray:
        """Return the values to 13 significant digits, so that 3.0000000000000004 equals 3."""
        return significant(self._backward(u))

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Return codes that some double has exactly, so that decoding and encoding again changes nothing."""
        return self._forward(self._backward(t))

    def _width(self) -> float:
        return float(self._above_lower(np.array([self.upper]))[0])

    def _above_lower(self, v: FloatArray) -> FloatArray:
        # ln(v/lo) keeps more digits than ln v - ln lo.
        return np.log(v / self.lower) if self.log else v - self.lower

    def _forward(self, v: FloatArray) -> FloatArray:
        return np.clip(self._above_lower(v) / self._width(), 0.0, 1.0)

    def _strict_forward(self, v: FloatArray) -> FloatArray:
        return self._forward(np.where((v >= self.lower) & (v <= self.upper), v, np.nan))

    def _backward(self, u: FloatArray) -> FloatArray:
        above = u * self._width()
        v = self.lower * np.exp(above) if self.log else self.lower + above
        return np.clip(v, self.lower, self.upper)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Integers lower, lower + 1, ... (``choices`` is None), or the ordered choices of an ordinal hyperparameter."""

    name: str
    lower: int
    size: int
    log: bool
    default: float
    choices: tuple[Any, ...] | None = None
    index: Mapping[Any, int] | None = None

    categorical: bool = False

    def expected(self) -> str:
        """Say which values are allowed."""
        if self.choices is not None:
            return f"one of {listed(self.choices)}"
        return f"an integer in [{self.lower}, {self.lower + self.size - 1}]"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Encode as the centre of the value's cell."""
        if self.index is not None:
            return self.centres(look_up(self.index, values))
        k = as_numbers(values) - self.lower
        belongs = (k >= 0) & (k <= self.size - 1) & (k == np.rint(k))
        return self.centres(np.where(belongs, k, np.nan))

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Encode integers beyond the bounds too; nan for those that are not positive on a log scale."""
        if self.index is not None:
            return self.codes(values)
        v = as_numbers(values)
        belongs = np.isfinite(v) & (v == np.rint(v)) & ((v > 0) | (not self.log))
        k = np.where(belongs, v, np.nan) - self.lower
        return np.where((k >= 0) & (k <= self.size - 1), self.centres(k), self._centres_anywhere(k))

    def value(self, u: float) -> Any:
        """Return the integer, or the choice, of the cell that holds u."""
        k = int(self.keys(np.array([u]))[0])
        return self.lower + k if self.choices is None else self.choices[k]

    def snap(self, u: FloatArray) -> FloatArray:
        """Move to the centre of the cell."""
        return self.centres(self.keys(u))

    def keys(self, u: FloatArray) -> FloatArray:
        """Return the cell k that holds u."""
        start, width = self._scale()
        t = start + u * width
        return np.clip(np.rint(np.exp(t) - self.lower if self.log else t), 0, self.size - 1)

    def comparable(self, u: FloatArray) -> np.ndarray[Any, Any]:
        """Return the integers, or the choices."""
        k = self.keys(u)
        return k + self.lower if self.choices is None else as_values(self.choices)[k.astype(np.intp)]

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Move to the centre of the cell."""
        return self.snap(t)

    def centres(self, k: FloatArray) -> FloatArray:
        """Return the codes of the cells k."""
        return np.clip(self._centres_anywhere(k), 0.0, 1.0)

    def _centres_anywhere(self, k: FloatArray) -> FloatArray:
        start, width = self._scale()
        return ((np.log(self.lower + k) if self.log else k) - start) / width

    def _scale(self) -> tuple[float, float]:
        # On a linear scale counting from zero keeps every digit; the usual formula is the same one, shifted.
        first, last = (self.lower, self.lower + self.size - 1) if self.log else (0, self.size - 1)
        ends = np.array([first - MARGIN, last + MARGIN])
        low, high = np.log(ends) if self.log else ends
        return float(low), float(high - low)


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Unordered choices. ``cumulative`` (m,) adds up their probabilities.

    ``constant``: a fixed value rather than the one choice that is left.
    """

    name: str
    choices: tuple[Any, ...]
    index: Mapping[Any, int]
    cumulative: FloatArray
    default: float
    constant: bool = False

    categorical: bool = True

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.choices)

    def expected(self) -> str:
        """Say which values are allowed."""
        return f"the constant {self.choices[0]!r}" if self.constant else f"one of {listed(self.choices)}"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Encode as the choice's position."""
        return look_up(self.index, values)

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Encode as `codes` does: choices have no outside."""
        return self.codes(values)

    def value(self, u: float) -> Any:
        """Return the choice."""
        return self.choices[int(self.snap(np.array([u]))[0])]

    def snap(self, u: FloatArray) -> FloatArray:
        """Round to a position."""
        return np.clip(np.rint(u), 0, self.size - 1)

    def keys(self, u: FloatArray) -> FloatArray:
        """Return the positions."""
        return self.snap(u)

    def comparable(self, u: FloatArray) -> np.ndarray[Any, Any]:
        """Return the choices."""
        return as_values(self.choices)[self.snap(u).astype(np.intp)]

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Cut [0, 1) into m equal parts."""
        return np.clip(np.floor(t * self.size), 0, self.size - 1)

    def weighted(self, t: FloatArray) -> FloatArray:
        """Cut [0, 1) into parts as long as the choices are probable."""
        return np.searchsorted(self.cumulative, t, side="right").astype(np.float64)
