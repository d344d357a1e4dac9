"""What a weighting answers (:class:`Weights`), and the checks of what it is asked.

Notation: ``k`` past runs (base models), ``n`` observations of the target. The target always comes last, so arrays over
all models have length k + 1 (paper section 4.1).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError, InputTypeError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """How much each model says in the ensemble, and why. All arrays are read-only; nan stands for "not measured".

    values            (k+1,)  sum to 1, target last
    losses            (k+1,)  mean loss by which the models were compared (mean over resamples for RGPE)
    misranked         (k+1,)  misranked ordered pairs on the observations as they are, without resampling
    dropped           (k,)    base models that were left out; their value is 0. The target is never left out
    keep_probability  (k,)    with which dilution keeps each base model; 1 where it never drops any
    """

    values: FloatArray
    losses: FloatArray
    misranked: FloatArray
    dropped: BoolArray
    keep_probability: FloatArray

    def __post_init__(self) -> None:
        """Take private, read-only copies and check that they fit together."""
        members = np.size(self.values)
        for name, size in (
            ("values", members),
            ("losses", members),
            ("misranked", members),
            ("dropped", members - 1),
            ("keep_probability", members - 1),
        ):
            array = np.array(getattr(self, name), dtype=np.bool_ if name == "dropped" else np.float64)
            if array.shape != (size,):
                raise InputError(f"Weights: {name} must have shape ({size},), got {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not abs(self.values.sum() - 1.0) <= _SUM_TOLERANCE:
            raise InputError(f"Weights: values must be finite and sum to 1, got a sum of {self.values.sum()}")
        if self.values[:-1][self.dropped].any():
            raise InputError("Weights: a dropped base model must have the value 0")

    @classmethod
    def uniform(cls, past: int) -> Self:
        """Give the same weight to each of ``past`` base models and the target: too little is known to compare them."""
        unknown = np.full(past + 1, np.nan)
        equal = np.full(past + 1, 1.0 / (past + 1))
        return cls(equal, unknown, unknown, np.zeros(past, dtype=np.bool_), np.ones(past))

    def without(self, some: BoolArray) -> Self:
        """Drop some base models (k,); the others keep their proportions. If none has a weight the target gets all."""
        values = np.where(np.append(some, False), 0.0, self.values)
        total = values.sum()
        values = values / total if total > 0 else np.append(np.zeros(len(some)), 1.0)
        keep = np.where(some, 0.0, self.keep_probability)
        return replace(self, values=values, dropped=self.dropped | some, keep_probability=keep)

    def all_dropped_with(self, chance: float, rng: np.random.Generator) -> Self:
        """Drop all base models that are left, or none, by one draw."""
        if len(self.active) == 0:
            return self
        drawn = self.without(np.full(len(self.dropped), rng.random() < chance))
        return replace(drawn, keep_probability=(1.0 - chance) * self.keep_probability)

    @property
    def target(self) -> float:
        """Weight of the target model; exactly 1.0 when all base models were dropped."""
        return float(self.values[-1])

    @property
    def active(self) -> IntArray:
        """Indices of the base models that have a weight."""
        return np.flatnonzero(self.values[:-1] != 0.0)


def as_finite(name: str, value: ArrayLike, *, shape: tuple[int | None, ...]) -> FloatArray:
    """Turn ``value`` into a float array of ``shape`` (None: any length) without nan and infinities, or refuse it."""
    array = as_shape(name, value, shape=shape)
    if not np.isfinite(array).all():
        count = int(array.size - np.isfinite(array).sum())
        raise InputError(f"{name} must be finite, got {count} nan or infinite values of {array.size}")
    return array


def as_shape(name: str, value: ArrayLike, *, shape: tuple[int | None, ...]) -> FloatArray:
    """Turn ``value`` into a float array of ``shape`` (None: any length), or refuse it."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must be an array of numbers, got {type(value).__name__}: {error}") from error
    fits = array.ndim == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if size is None else str(size) for size in shape) + ("," * (len(shape) == 1))
        raise InputError(f"{name} must have shape {wanted}), got {array.shape}")
    return array


def as_count(name: str, value: SupportsIndex, *, least: int) -> int:
    """Turn ``value`` into an int that is at least ``least``, or refuse it."""
    try:
        count = operator.index(value)
    except TypeError as error:
        raise InputTypeError(f"{name} must be an integer, got {value!r}") from error
    if count < least:
        raise InputError(f"{name} must be at least {least}, got {count}")
    return count


def as_generator(name: str, value: np.random.Generator) -> np.random.Generator:
    """Return ``value`` if it is a NumPy random generator, or refuse it."""
    if not isinstance(value, np.random.Generator):
        raise InputTypeError(f"{name} must be a numpy.random.Generator, got {type(value).__name__}")
    return value
