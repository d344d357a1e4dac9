"""Noisy expected improvement of the ensemble (paper section 4.2).

Under a past run's model the values at the evaluated points are uncertain, and so is the incumbent. The ensemble is one
Gaussian process ``N(m, c)``, so only its values at the visited points ``V (v, d)`` (evaluated or
pending) and at the candidate matter:

    F_s ~ N(m(V), c(V, V)),   eta_s = min F_s
    m_s(x) = m(x) + c(x, V) c(V, V)^-1 (F_s - m(V)),   v(x) = c(x, x) - c(x, V) c(V, V)^-1 c(V, x)
    NEI(x) = mean over s of EI(m_s(x), v(x), eta_s)

with scrambled Sobol draws. `ClosedFormNoisyImprovement` fixes the incumbent point instead and integrates exactly over
its value and the candidate's. When the target's model decides alone both are ordinary expected improvement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recollect.acquisition.improvement import ExpectedImprovement, Prepared, factorize
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import solve_lower
from recollect.numerics.logs import log_sum_exp
from recollect.numerics.normal import log_expected_improvement
from recollect.numerics.quasirandom import sobol_normals
from recollect.transfer.ensemble import Ensemble


@dataclass(frozen=True, slots=True)
class NoisyImprovement:
    """EI averaged over draws of what the values at the visited points may be."""

    draws: int = 30

    def __post_init__(self) -> None:
        """Check the number of draws."""
        if self.draws < 1:
            raise InputError(f"noisy expected improvement needs at least 1 draw, got {self.draws}")

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members; no, it is that of one posterior."""
        return False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:
        """Draw the values at the visited points."""
        if ensemble.alone:
            return ExpectedImprovement().prepare(ensemble, rng)
        weights = ensemble.member_weights
        V = ensemble.visited
        factor = factorize(ensemble.covariance(V, V))
        whitened = sobol_normals(self.draws, len(V), rng)
        values = weights @ ensemble.means_visited() + whitened @ factor.T
        etas = values.min(axis=1)

        def score(X: FloatArray) -> FloatArray:
            known = solve_lower(factor, ensemble.covariance(V, X))
            mean, own = ensemble.predict(X)
            variance = np.maximum(own - np.einsum("vm,vm->m", known, known), 1e-10 * own)
            means = mean + whitened @ known
            terms = log_expected_improvement(means, np.sqrt(variance), etas[:, None])
            return log_sum_exp(terms - math.log(self.draws))

        return Prepared(score, lambda _: weights)


@dataclass(frozen=True, slots=True)
class ClosedFormNoisyImprovement:
    """EI over the uncertain value at one fixed point: the visited one with the lowest ensemble mean."""

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members; no, it is that of one posterior."""
        return False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:
        """Choose the incumbent point."""
        if ensemble.alone:
            return ExpectedImprovement().prepare(ensemble, rng)
        weights = ensemble.member_weights
        at_visited = weights @ ensemble.means_visited()
        eta = float(at_visited.min())
        best = ensemble.visited[[int(at_visited.argmin())]]
        P = ensemble.pending
        factor = factorize(ensemble.covariance(P, P)) if len(P) else np.empty((0, 0))
        known_best = solve_lower(factor, ensemble.covariance(P, best))
        own_best = ensemble.covariance(best, best)[0, 0] - float(np.sum(known_best**2))

        def score(X: FloatArray) -> FloatArray:
            known = solve_lower(factor, ensemble.covariance(P, X))
            mean, own = ensemble.predict(X)
            own = own - np.einsum("pm,pm->m", known, known)
            between = ensemble.covariance(best, X)[0] - known_best[:, 0] @ known
            variance = np.maximum(own_best + own - 2.0 * between, 0.0)
            return log_expected_improvement(mean, np.sqrt(variance), eta)

        return Prepared(score, lambda _: weights)

