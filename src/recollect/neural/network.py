"""Fully connected networks whose parameters are one flat vector, and the encoding of their inputs.

Notation: ``widths (w_0, ..., w_l)`` from inputs to outputs; layer j maps ``x`` to ``x W_j + b_j`` with
``W_j (w_{j-1}, w_j)`` and ``b_j (w_j,)``. The flat vector holds W_1, b_1, W_2, ... one after the other. ``X (n, d)``
encoded configurations, numerical columns in the unit cube or a little outside, categorical ones integer codes 0..m-1,
nan (or any value <= -1) = inactive; ``sizes (d,)`` the number of distinct values of a column.

Training runs in JAX. Predictions run in NumPy: candidates come in batches of any size, and JAX would recompile for each
of them. The functions here do for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import jax
import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import INACTIVE, BoolArray, FloatArray, IntArray, is_inactive

Widths: TypeAlias = tuple[int, ...]
A = TypeVar("A", FloatArray, jax.Array)


def parameter_count(widths: Widths) -> int:
    """Return the length of the flat vector."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def draw_parameters(widths: Widths, rng: np.random.Generator) -> FloatArray:
    """Draw Xavier-normal weights, variance 2 / (inputs + outputs), with zero biases."""
    parts = []
    for inputs, outputs in pairwise(widths):
        weights = rng.normal(0.0, math.sqrt(2.0 / (inputs + outputs)), size=inputs * outputs)
        parts += [weights, np.zeros(outputs)]
    return np.concatenate(parts)


def layers(flat: A, widths: Widths) -> list[tuple[A, A]]:
    """Return weights and biases of every layer."""
    parts, begin = [], 0
    for inputs, outputs in pairwise(widths):
        middle, end = begin + inputs * outputs, begin + (inputs + 1) * outputs
        parts.append((flat[begin:middle].reshape(inputs, outputs), flat[middle:end]))
        begin = end
    return parts


def hidden(x: A, stack: list[tuple[A, A]], *, activation: Callable[[A], A]) -> A:
    """Apply layers that all have the activation to ``x (n, w_0)``: ``(n, w_l)``."""
    for W, b in stack:
        x = activation(x @ W + b)
    return x


@dataclass(frozen=True, slots=True, eq=False)
class OneHot:
    """Inputs of a network: numerical columns, then a one-hot block for every categorical column, each in order.

    Inactive is -1 everywhere. For a categorical column that is its whole block: a row of zeros and one -1 would need an
    extra column for "inactive", and a row of zeros would put an inactive entry close to every choice.
    """

    categorical: BoolArray
    sizes: IntArray

    def __post_init__(self) -> None:
        """Check that every categorical column has at least one choice."""
        if self.sizes.shape != self.categorical.shape or np.any(self.sizes[self.categorical] < 1):
            rule = f"a number of values >= 1 for each of {self.categorical.size} columns"
            raise InputError(f"OneHot: expected {rule}, got {self.sizes.tolist()}")

    @property
    def width(self) -> int:
        """Number of columns after encoding."""
        return int((~self.categorical).sum() + self.sizes[self.categorical].sum())

    def encode(self, X: FloatArray) -> FloatArray:
        """Return ``X (n, d)`` as ``(n, width)`` without nan."""
        if X.ndim != 2 or X.shape[1] != self.categorical.size:
            raise InputError(f"OneHot: expected inputs of shape (n, {self.categorical.size}), got {X.shape}")
        absent = is_inactive(X)
        blocks = [np.where(absent, INACTIVE, X)[:, ~self.categorical]]
        for j in np.flatnonzero(self.categorical):
            block = (X[:, j, None] == np.arange(self.sizes[j])).astype(np.float64)
            unknown = ~absent[:, j] & (block.sum(axis=1) == 0.0)
            if unknown.any():
                got = f"{X[unknown, j][0]} in row {int(np.flatnonzero(unknown)[0])}"
                raise InputError(f"OneHot: expected codes 0..{self.sizes[j] - 1} in column {j}, got {got}")
            block[absent[:, j]] = INACTIVE
            blocks.append(block)
        return np.hstack(blocks)
