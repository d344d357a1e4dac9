"""Fully connected networks whose parameters are one flat vector, for NumPy and for JAX alike.

Notation: ``widths (w_0, ..., w_l)`` from inputs to outputs; layer j maps ``x`` to ``x W_j + b_j`` with
``W_j (w_{j-1}, w_j)`` and ``b_j (w_j,)``.  The flat vector holds W_1, b_1, W_2, ... one after the other.

Training runs in JAX.  Predictions run in NumPy: candidates come in batches of any size, and JAX would compile anew for
each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias, TypeVar

import jax
import numpy as np

from recollect.numerics.arrays import FloatArray

Widths: TypeAlias = tuple[int, ...]
A = TypeVar("A", FloatArray, jax.Array)


def parameter_count(widths: Widths) -> int:
    """Length of the flat vector."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def draw_parameters(widths: Widths, rng: np.random.Generator) -> FloatArray:
    """Xavier-normal weights, variance 2 / (inputs + outputs), and biases of zero."""
    parts = []
    for inputs, outputs in pairwise(widths):
        parts.append(rng.normal(0.0, math.sqrt(2.0 / (inputs + outputs)), size=inputs * outputs))
        parts.append(np.zeros(outputs))
    return np.concatenate(parts)


def layers(flat: A, widths: Widths) -> list[tuple[A, A]]:
    """Weights and biases of every layer."""
    found, begin = [], 0
    for inputs, outputs in pairwise(widths):
        middle, end = begin + inputs * outputs, begin + (inputs + 1) * outputs
        found.append((flat[begin:middle].reshape(inputs, outputs), flat[middle:end]))
        begin = end
    return found


def hidden(x: A, stack: list[tuple[A, A]], *, activation: Callable[[A], A]) -> A:
    """``x (n, w_0)`` after layers that all have the activation: ``(n, w_l)``."""
    for W, b in stack:
        x = activation(x @ W + b)
    return x
