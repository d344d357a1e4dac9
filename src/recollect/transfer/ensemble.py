"""The ensemble: the target's model, the past runs' models and their weights, looked at from where the search stands.

The weighted sum ``f = sum_i w_i f_i`` of independent Gaussian processes is itself one, with

    m(x) = sum_i w_i mu_i(x),     c(x, x') = sum_i w_i^2 Sigma_i(x, x')          (paper section 4.1)

Where a model of all tasks takes the place of the ensemble, it is the target's model and decides alone.

Notation: ``k`` past runs of which ``a`` have a weight (the members; the target comes after them); ``X (n, d)``
evaluated points, ``F (k, n)`` what the past runs predict there, ``P (p, d)`` pending points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.surrogate.gp import GP
from recollect.surrogate.posterior import Posterior
from recollect.transfer.sources import Sources
from recollect.transfer.weights import Weights


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """All that is believed about the target function at one moment of the search."""

    target: Posterior
    sources: Sources | None
    weights: Weights
    X: FloatArray
    F: FloatArray
    pending: FloatArray

    @property
    def members(self) -> IntArray:
        """Indices (a,) of the past runs that have a weight."""
        return self.weights.active

    @property
    def member_weights(self) -> FloatArray:
        """Weights (a + 1,) of the members and, last, of the target."""
        return np.append(self.weights.values[self.members], self.weights.target)

    @property
    def alone(self) -> bool:
        """Whether the target's model decides alone: no past run has a weight."""
        return len(self.members) == 0

    def source_means(self, X: FloatArray) -> FloatArray:
        """Means (a, m) of the past runs that are members."""
        if self.sources is None or self.alone:
            return np.empty((0, len(X)))
        return self.sources.means(X, self.members)

    def means(self, X: FloatArray) -> FloatArray:
        """Means (a + 1, m) of all members, the target last."""
        return np.vstack([self.source_means(X), self.target.mean(X)])

    def means_evaluated(self) -> FloatArray:
        """Means (a + 1, n) of all members at the evaluated points, without predicting anew for the past runs."""
        return np.vstack([self.F[self.members], self.target.mean(self.X)])

    def means_visited(self) -> FloatArray:
        """Means (a + 1, n + p) of all members at the evaluated and the pending points."""
        if len(self.pending) == 0:
            return self.means_evaluated()
        return np.hstack([self.means_evaluated(), self.means(self.pending)])

    def mean(self, X: FloatArray) -> FloatArray:
        """Ensemble mean m(x) (m,)."""
        return np.asarray(self.member_weights @ self.means(X))

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ensemble mean m(x) (m,) and variance c(x, x) (m,)."""
        means, variances = self.posteriors(X)
        weights = self.member_weights
        return np.asarray(weights @ means), np.asarray(np.square(weights) @ variances)

    def posteriors(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances (a + 1, m) of all members, the target last; without weight it is not asked: zeros."""
        means, variances = np.zeros((2, len(self.members) + 1, len(X)))
        if self.weights.target != 0:
            means[-1], variances[-1] = self.target.predict(X)
        if self.sources is not None and not self.alone:
            means[:-1], variances[:-1] = self.sources.posterior(X, self.members)
        return means, variances

    def variance(self, X: FloatArray) -> FloatArray:
        """Ensemble variance c(x, x) (m,)."""
        return self.predict(X)[1]

    def covariance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Ensemble covariance c(A, B) (a, b)."""
        total = np.zeros((len(A), len(B)))
        if self.weights.target > 0:
            assert isinstance(self.target, GP), "only Gaussian processes are combined with others"
            total += self.weights.target**2 * self.target.covariance(A, B)
        if self.sources is not None and not self.alone:
            squared = np.square(self.weights.values[self.members])
            total += np.einsum("i,iab->ab", squared, self.sources.covariances(A, B, self.members))
        return total

    @property
    def visited(self) -> FloatArray:
        """The evaluated and the pending points (n + p, d)."""
        return np.concatenate([self.X, self.pending])

    def target_aware_of_pending(self) -> Posterior:
        """Return the target's model as if the pending points had returned their predicted means."""
        return self.target.condition(self.pending, self.target.mean(self.pending))

