"""One column of an encoded configuration: how the values of one hyperparameter become numbers and back.

Notation: v a value, u its code, m the number of distinct values (0 = continuum), k = 0..m-1 the cell of a discrete
value; u and t are (n,) arrays, in which nan = inactive stays nan.

    Interval  float                 u = (v - lo)/(hi - lo), logarithms taken first on a log scale
    Steps     integer and ordinal   the same on [lo - 0.49999, hi + 0.49999]; an ordinal counts its positions 0..m-1
    Choices   categorical, constant u = k, not scaled

All columns have the same methods. `codes`, `snap` and `value` share their arithmetic, so equal values have bitwise
equal codes. A code of a float is decoded to the shortest decimal that has it: people read 0.01, not
0.010000000000000002.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

import numpy as np

from recollect.numerics.arrays import FloatArray

MARGIN = 0.49999
EDGE_DECIMALS = 1e-13  # ConfigSpace keeps 13 decimals of a float bound: a value may miss a rounded bound by that much
EDGE_RELATIVE = 1e-6
MAX_DIGITS = 17  # significant digits that name every double
MAX_ULPS = 8  # how far around the computed inverse doubles are tried when no short decimal fits
MAX_DECODING_ROUNDS = 4  # how often a code is replaced by that of its computed inverse; the second round finds one
MAX_CHOICES_SHOWN = 12

SpaceColumn: TypeAlias = Union["Interval", "Steps", "Choices"]


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
        """Describe the allowed values, for error messages."""
        return f"a number in [{self.lower!r}, {self.upper!r}]"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Return the codes, nan for other values; one that misses a bound by ConfigSpace's rounding is the bound."""
        v = as_numbers(values)
        below = self.lower - min(EDGE_DECIMALS, EDGE_RELATIVE * abs(self.lower))
        above = self.upper + min(EDGE_DECIMALS, EDGE_RELATIVE * abs(self.upper))
        inside = (v >= below) & (v <= above)
        return self._forward(np.where(inside, np.clip(v, self.lower, self.upper), np.nan))

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Return codes, also outside [0, 1]; nan for what is not finite, or not positive on a log scale."""
        v = as_numbers(values)
        v = np.where(np.isfinite(v) & ((v > 0) | (not self.log)), v, np.nan)
        inside = self.codes(v.tolist())
        with np.errstate(over="ignore", divide="ignore"):  # so far away that the code is infinite
            beyond = self._above_lower(v) / self._width()
        return np.where(np.isnan(inside), beyond, inside)

    def value(self, u: float) -> float:
        """Return the decimal with the fewest digits that has this code, bitwise.

        Codes are rounded, so many values may share one, or none may have it; then the nearest code that some double has
        is taken.
        """
        u = min(max(u, 0.0), 1.0)
        for _ in range(MAX_DECODING_ROUNDS):
            raw = float(self._backward(np.array([u]))[0])
            candidates = _decimals_near(raw)
            inside = (candidates >= self.lower) & (candidates <= self.upper)
            hits = np.flatnonzero(inside & (self._forward(np.clip(candidates, self.lower, self.upper)) == u))
            if hits.size:
                return float(candidates[hits[0]])
            u = float(self._forward(np.array([raw]))[0])
        return raw

    def snap(self, u: FloatArray) -> FloatArray:
        """Move codes to the nearest proper ones: clip to [0, 1]."""
        return np.clip(u, 0.0, 1.0)

    def keys(self, u: FloatArray) -> FloatArray:
        """Return numbers that compare as the values do: the codes."""
        return u

    def comparable(self, u: FloatArray) -> FloatArray:
        """Return the values, to 13 significant digits: 3.0000000000000004 equals 3."""
        return _significant(self._backward(u))

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Turn points of [0, 1) into codes that some double has exactly: decoding and encoding changes nothing."""
        return self._forward(self._backward(t))

    def _width(self) -> float:
        return float(self._above_lower(np.array([self.upper]))[0])

    def _above_lower(self, v: FloatArray) -> FloatArray:
        # ln(v/lo) keeps more digits than ln v - ln lo.
        return np.log(v / self.lower) if self.log else v - self.lower

    def _forward(self, v: FloatArray) -> FloatArray:
        return np.clip(self._above_lower(v) / self._width(), 0.0, 1.0)

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
        """Describe the allowed values, for error messages."""
        if self.choices is not None:
            return f"one of {_choice_list(self.choices)}"
        return f"an integer in [{self.lower}, {self.lower + self.size - 1}]"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Return the centres of the values' cells; nan for other values."""
        if self.index is not None:
            return self.centres(_positions(self.index, values))
        k = as_numbers(values) - self.lower
        belongs = (k >= 0) & (k <= self.size - 1) & (k == np.rint(k))
        return self.centres(np.where(belongs, k, np.nan))

    def codes_anywhere(self, values: Sequence[Any]) -> FloatArray:
        """Return codes, also outside [0, 1]; nan for other than integers, and if not positive on a log scale."""
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
        """Move codes to the centre of their cell."""
        return self.centres(self.keys(u))

    def keys(self, u: FloatArray) -> FloatArray:
        """Return the cells k that hold u."""
        start, width = self._scale()
        t = start + u * width
        return np.clip(np.rint(np.exp(t) - self.lower if self.log else t), 0, self.size - 1)

    def comparable(self, u: FloatArray) -> np.ndarray[Any, Any]:
        """Return the integers, or the choices."""
        k = self.keys(u)
        return k + self.lower if self.choices is None else _as_array(self.choices)[k.astype(np.intp)]

    from_unit = snap  # points of [0, 1) become codes: centres of cells

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
    """Unordered choices, with cumulative probabilities (m,); ``constant``: a fixed value, not the only choice left."""

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
        """Describe the allowed values, for error messages."""
        return f"the constant {self.choices[0]!r}" if self.constant else f"one of {_choice_list(self.choices)}"

    def codes(self, values: Sequence[Any]) -> FloatArray:
        """Return the choices' positions; nan for other values."""
        return _positions(self.index, values)

    codes_anywhere = codes  # choices have no outside

    def value(self, u: float) -> Any:
        """Return the choice."""
        return self.choices[int(self.snap(np.array([u]))[0])]

    def snap(self, u: FloatArray) -> FloatArray:
        """Round codes to positions."""
        return np.clip(np.rint(u), 0, self.size - 1)

    keys = snap

    def comparable(self, u: FloatArray) -> np.ndarray[Any, Any]:
        """Return the choices."""
        return _as_array(self.choices)[self.snap(u).astype(np.intp)]

    def from_unit(self, t: FloatArray) -> FloatArray:
        """Turn points of [0, 1) into positions: m equal parts."""
        return np.clip(np.floor(t * self.size), 0, self.size - 1)

    def from_unit_by_weight(self, t: FloatArray) -> FloatArray:
        """Turn points of [0, 1) into positions: parts as long as the choices are probable."""
        return np.searchsorted(self.cumulative, t, side="right").astype(np.float64)


def as_numbers(values: Sequence[Any]) -> FloatArray:
    """Return (n,) floats; nan where a value is not a real number (True and False are not)."""
    if set(map(type, values)) <= {float, int}:  # nearly always, and the tests of single values are slow
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    return np.array([_as_number(value) for value in values], dtype=np.float64)


def _as_number(value: Any) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan


def _positions(index: Mapping[Any, int], values: Sequence[Any]) -> FloatArray:
    """Return (n,) positions; nan where a value is not among the choices."""

    def position(value: Any) -> float:
        try:
            return index.get(value, math.nan)
        except TypeError:  # not hashable, hence not a choice
            return math.nan

    try:  # one by one only where it is necessary
        return np.array([index.get(value, math.nan) for value in values], dtype=np.float64)
    except TypeError:
        return np.array([position(value) for value in values], dtype=np.float64)


def _as_array(choices: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the choices as a float array if all are numbers, else as an object array."""
    if all(isinstance(choice, numbers.Real) for choice in choices):
        return np.array([float(choice) for choice in choices])
    table = np.empty(len(choices), dtype=object)
    table[:] = choices
    return table


def _significant(v: FloatArray) -> FloatArray:
    """Round to 13 significant digits (fewer below 1e-10); numbers too large to have decimals stay as they are."""
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(np.abs(v)))
    power = 10.0 ** np.clip(12 - magnitude, 0, 22)
    return np.where(np.abs(v) < 1e12, np.rint(v * power) / power, v)


def _choice_list(choices: tuple[Any, ...]) -> str:
    """Return the choices as text, shortened when there are many."""
    shown = ", ".join(map(repr, choices[:MAX_CHOICES_SHOWN]))
    return f"[{shown}]" if len(choices) <= MAX_CHOICES_SHOWN else f"[{shown}, ... {len(choices)} in all]"


def _decimals_near(raw: float) -> FloatArray:
    """List decimals near ``raw`` by increasing number of digits, then the doubles around it, nearest first."""
    decimals = [0.0]
    for digits in range(1, MAX_DIGITS + 1):
        mantissa, exponent = f"{raw:.{digits - 1}e}".split("e")
        whole, power = int(mantissa.replace(".", "")), int(exponent) - digits + 1
        decimals += [float(f"{whole + shift}e{power}") for shift in (0, -1, 1)]
    steps = np.arange(1, MAX_ULPS + 1)
    around = raw + np.concatenate(([0], np.stack((steps, -steps), axis=1).ravel())) * np.spacing(abs(raw))
    return np.concatenate((decimals, around))
