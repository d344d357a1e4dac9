"""What users write as values, turned into arrays with nan for what does not belong."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recollect.numerics.arrays import FloatArray

SHOWN_CHOICES = 12


def as_numbers(values: Sequence[Any]) -> FloatArray:
    """Return (n,) floats; nan where a value is not a real number (True and False are not)."""
    if set(map(type, values)) == {float}:
        return np.array(values, dtype=np.float64)
    return np.array([_as_number(value) for value in values], dtype=np.float64)


def _as_number(value: Any) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan


def look_up(index: Mapping[Any, int], values: Sequence[Any]) -> FloatArray:
    """Return (n,) positions; nan where a value is not among the choices."""

    def position(value: Any) -> float:
        try:
            return index.get(value, math.nan)
        except TypeError:  # not hashable, hence not a choice
            return math.nan

    return np.array([position(value) for value in values], dtype=np.float64)


def as_values(choices: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Return the choices as a float array if all are numbers, else as an object array."""
    if all(isinstance(choice, numbers.Real) for choice in choices):
        return np.array([float(choice) for choice in choices])
    table = np.empty(len(choices), dtype=object)
    table[:] = choices
    return table


def significant(v: FloatArray) -> FloatArray:
    """Round to 13 significant digits (fewer below 1e-10), leaving what is too large to have decimals."""
    with np.errstate(divide="ignore"):
        magnitude = np.floor(np.log10(np.abs(v)))
    power = 10.0 ** np.clip(12 - magnitude, 0, 22)
    return np.where(np.abs(v) < 1e12, np.rint(v * power) / power, v)


def listed(choices: tuple[Any, ...]) -> str:
    """Write the choices out, shortened when there are many."""
    shown = ", ".join(map(repr, choices[:SHOWN_CHOICES]))
    return f"[{shown}]" if len(choices) <= SHOWN_CHOICES else f"[{shown}, ... {len(choices)} in all]"
