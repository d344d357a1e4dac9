"""The ensemble: the models of the target and of the sources, their weights, and the points visited so far.

The weighted sum ``f = sum_i w_i f_i`` of independent Gaussian processes is itself one, with

    m(x) = sum_i w_i mu_i(x),     c(x, x') = sum_i w_i^2 Sigma_i(x, x')          (paper section 4.1)

A joint model of all tasks takes the place of the target's model, without sources.

Notation: ``k`` sources, of which ``a`` are active (have a nonzero weight); arrays over models have length a + 1, the
target last. ``X (n, d)`` evaluated points, ``F (k, n)`` the sources' means there, ``P (p, d)`` pending points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.surrogate.gp import GP, Posterior
from recollect.transfer.sources import Sources
from recollect.transfer.weighting.base import Weights


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """The models of one moment of the search, as acquisition functions see them."""

    target: Posterior
    sources: Sources | None  # None if there are none or a joint model is used
    weights: Weights
    X: FloatArray
    F: FloatArray
    pending: FloatArray  # P

    @property
    def active_sources(self) -> IntArray:
        """Indices (a,) of the sources with a nonzero weight."""
        return self.weights.active

    @property
    def model_weights(self) -> FloatArray:
        """Weights (a + 1,) of the active sources and, last, of the target."""
        return np.append(self.weights.values[self.active_sources], self.weights.target)

    @property
    def target_only(self) -> bool:
        """Whether no source is active."""
        return len(self.active_sources) == 0

    def source_means(self, X: FloatArray) -> FloatArray:
        """Means (a, m) of the active sources."""
        if self.sources is None or self.target_only:
            return np.empty((0, len(X)))
        return self.sources.means(X, self.active_sources)

    def means(self, X: FloatArray) -> FloatArray:
        """Means (a + 1, m) of all models."""
        return np.vstack([self.source_means(X), self.target.mean(X)])

    def means_evaluated(self) -> FloatArray:
        """Means (a + 1, n) of all models at the evaluated points, without new predictions of the sources."""
        return np.vstack([self.F[self.active_sources], self.target.mean(self.X)])

    def means_visited(self) -> FloatArray:
        """Means (a + 1, n + p) of all models at the evaluated and the pending points."""
        if len(self.pending) == 0:
            return self.means_evaluated()
        return np.hstack([self.means_evaluated(), self.means(self.pending)])

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ensemble mean m(x) (m,) and variance c(x, x) (m,)."""
        (means, variances), weights = self.posteriors(X), self.model_weights
        return np.asarray(weights @ means), np.asarray(np.square(weights) @ variances)

    def posteriors(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances (a + 1, m) of all models; zeros for a target without weight, which is not evaluated."""
        means, variances = np.zeros((2, len(self.active_sources) + 1, len(X)))
        if self.weights.target != 0:
            means[-1], variances[-1] = self.target.predict(X)
        if self.sources is not None and not self.target_only:
            means[:-1], variances[:-1] = self.sources.posterior(X, self.active_sources)
        return means, variances

    def covariance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Ensemble covariance c(A, B) (a, b)."""
        total = np.zeros((len(A), len(B)))
        if self.weights.target > 0:
            assert isinstance(self.target, GP), "only Gaussian processes are combined with others"
            total += self.weights.target**2 * self.target.covariance(A, B)
        if self.sources is not None and not self.target_only:
            squared = np.square(self.weights.values[self.active_sources])
            total += np.einsum("i,iab->ab", squared, self.sources.covariances(A, B, self.active_sources))
        return total

    @property
    def visited(self) -> FloatArray:
        """The evaluated and the pending points (n + p, d)."""
        return np.concatenate([self.X, self.pending])

    def target_given_pending(self) -> Posterior:
        """The target's model as if the pending points had returned their predicted means."""
        return self.target.condition(self.pending, self.target.mean(self.pending))
