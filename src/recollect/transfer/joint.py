"""Models of all tasks together, which take the place of an ensemble: `multitask`, and those of `recollect.neural`.

A joint model is learned from the past runs once and fitted to the new task after every trial.

Notation: past run i has ``X (n_i, d)`` and ``y (n_i,)``, already on the method's scale; ``sizes (d,)`` is the number of
distinct values of each column, 0 for a continuum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.posterior import Posterior
from recollect.transfer.sources import SourceData


class Learned(Protocol):
    """What a joint model knows from the past runs."""

    def fit(self, X: FloatArray, y: FloatArray, *, start: Posterior | None, rng: np.random.Generator) -> Posterior:
        """Fit the new task's observations; ``start`` is the answer of the trial before, to go on from."""


class JointModel(Protocol):
    """Settings of a joint model."""

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse past runs that the model cannot take, or an installation that lacks what it needs."""

    def learn(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> Learned:
        """Learn from the past runs."""
