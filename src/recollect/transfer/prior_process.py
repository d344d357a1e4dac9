"""One Gaussian process of the task prior: its covariance, the scale of the values, and the evidence.

The values ``t (n,)`` of the new task are t = a + (g(x) + e) / u, g ~ GP(m, C + deviation^2 K), e ~ N(0, noise^2), and a
is flat: `FLAT` is added to the covariance of u t. The scale is where the evidence is highest; with A = t' S^-1 t
and B = t' S^-1 m, where S is the covariance of u t and m its prior mean, ::

    u = (B + sqrt(B^2 + 4 A (n - 1))) / (2 A)
    log evidence = -1/2 (u t - m)' S^-1 (u t - m) - 1/2 log|S| + (n - 1) log u - (n - 1)/2 log 2 pi + 1/2 log FLAT
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import cholesky, solve_lower, solve_posdef
from recollect.surrogate.gp import VARIANCE_FLOOR

Hypothesis = Literal["alike", "reversed", "unrelated", "plain"]

FLAT = 100.0  # prior variance of the new task's offset, in units of the past tasks' functions
SIGNS: dict[Hypothesis, float] = {"alike": 1.0, "reversed": -1.0, "unrelated": 0.0}  # of the prior mean


class Structure(NamedTuple):
    """What a prior covariance is made of, without the noise."""

    uses_past: bool  # whether C is part of it
    deviation: float
    kernel: int = 0  # number of the kernel K that the deviation has


class Factor(NamedTuple):
    """A prior covariance of the scaled observations, S = L L^T; ``K`` is one matrix per kernel throughout."""

    structure: Structure
    noise: float
    L: FloatArray  # (n, n)

    @classmethod
    def of(cls, C: FloatArray, K: Sequence[FloatArray], structure: Structure, noise: float) -> Factor:
        """Factorize the covariance of observations with C and K ``(n, n)`` among them."""
        self = cls(structure, noise, np.empty((0, 0)))
        return self._replace(L=cholesky(self.observed(C, K), FLAT)[0])

    def given(self, C: FloatArray, K: Sequence[FloatArray], noises: FloatArray) -> Factor:
        """Factorize the same covariance with C and K ``(v, v)`` among other points, observed with ``noises (v,)``."""
        S = self.between(C, K)
        S.flat[:: len(S) + 1] += np.square(noises)
        return self._replace(L=cholesky(S, FLAT)[0])

    def variance(self, C: FloatArray, K: Sequence[FloatArray], own: FloatArray) -> FloatArray:
        """Return what the observations leave of the variance (m,), in units of u t.

        ``C`` and ``K (m, n)`` are covariances with the observations, ``own (m,)`` is C of each point with itself.
        """
        V = solve_lower(self.L, self.between(C, K).T, overwrite=True)
        prior = self.structure.deviation**2 + FLAT + (own if self.structure.uses_past else 0.0)
        return np.asarray(np.maximum(prior - np.einsum("nm,nm->m", V, V), VARIANCE_FLOOR))

    def between(self, C: FloatArray, K: Sequence[FloatArray]) -> FloatArray:
        """Return the prior covariance of the function and its offset, from C and K between the same points."""
        S = self.structure.deviation**2 * K[self.structure.kernel]
        S += FLAT
        if self.structure.uses_past:
            S += C
        return np.asarray(S)

    def observed(self, C: FloatArray, K: Sequence[FloatArray]) -> FloatArray:
        """Return the same with the noise on the diagonal."""
        S = self.between(C, K)
        S.flat[:: len(S) + 1] += self.noise**2
        return S


class Process(NamedTuple):
    """One Gaussian process of the mixture."""

    factor: int  # number of its covariance
    hypothesis: Hypothesis
    u: float  # the inverse of the scale of t
    alpha: FloatArray  # (n,) S^-1 (u t - m)
    log_evidence: float


def fit_process(number: int, factor: Factor, hypothesis: Hypothesis, t: FloatArray, mean: FloatArray) -> Process:
    """Find the scale of ``t (n,)`` and the evidence, for the prior mean m ``(n,)`` of the hypothesis 'alike'."""
    n, prior = len(t), SIGNS[hypothesis] * mean
    solved = solve_posdef(factor.L, np.column_stack((t, prior)))
    A, B = float(t @ solved[:, 0]), float(prior @ solved[:, 0])
    u = (B + math.sqrt(B * B + 4.0 * A * (n - 1))) / (2.0 * A) if A > 0.0 else 1.0
    alpha = u * solved[:, 0] - solved[:, 1]
    log_evidence = -0.5 * float((u * t - prior) @ alpha) - float(np.log(factor.L.diagonal()).sum())
    log_evidence += (n - 1) * (math.log(u) - 0.5 * math.log(2.0 * math.pi)) + 0.5 * math.log(FLAT)
    return Process(number, hypothesis, u, alpha, log_evidence)
