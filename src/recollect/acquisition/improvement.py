"""Expected improvement over the incumbent (paper sections 2 and 4.2).

Every acquisition function ends as a `Prepared`: a *score* that maps candidates ``X (m, d)`` to values ``(m,)``, larger
is better. The maximizers (`finite`, `local`) know nothing else about it. Scores are logarithms: they have the order of
the acquisition function and keep it where the function itself underflows to zero.

The incumbent is the lowest *predicted mean* over the visited points, not the lowest observed value: under noise the
lowest observation is a lucky one. Visited are the evaluated points and the pending ones, which count as if they had
returned their predicted means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import cholesky, solve_lower
from recollect.numerics.normal import log_expected_improvement
from recollect.transfer.ensemble import Ensemble

Score: TypeAlias = Callable[[FloatArray], FloatArray]
VARIANCE_FLOOR = 1e-10
Predictor: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
VarianceRule = Literal["weighted", "target", "stacked"]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """An acquisition function ready for use.

    ``score (m, d) -> (m,)``; ``shares (d,) -> (a + 1,)`` says which part of the value at one point each member of the
    ensemble (the target last) stands for: its term where the function is a sum over members, else its weight.
    """

    score: Score
    shares: Callable[[FloatArray], FloatArray]


class Acquisition(Protocol):
    """A rule that turns an ensemble into a score."""

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members, each in its own units."""

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:
        """Compute all that does not depend on the candidate."""


@dataclass(frozen=True, slots=True)
class ExpectedImprovement:
    """EI of the ensemble's mean with a variance.

    "weighted": the ensemble's, sum w_i^2 s_i^2; "target": that of the target's model alone; "stacked": sum w_i s_i^2,
    where weights may be negative and pending points are known to the target's model only.
    """

    variance: VarianceRule = "weighted"

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members; no, it is that of one posterior."""
        return False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:  # noqa: ARG002 (interface)
        """Fix the incumbent: the lowest ensemble mean over the visited points."""
        weights = ensemble.member_weights
        eta = float(np.min(weights @ ensemble.means_visited()))
        predict = self._predictor(ensemble)

        def score(X: FloatArray) -> FloatArray:
            mean, variance = predict(X)
            return log_expected_improvement(mean, np.sqrt(variance), eta)

        return Prepared(score, lambda _: weights)

    def _predictor(self, ensemble: Ensemble) -> Predictor:
        if self.variance == "target" or ensemble.alone:
            return target_variance(ensemble)
        if self.variance == "stacked":
            return stacked_variance(ensemble)
        return ensemble.predict if len(ensemble.pending) == 0 else conditioned(ensemble, ensemble.pending)


def target_variance(ensemble: Ensemble) -> Predictor:
    """Return the predictor with the ensemble's mean and the variance of the target's model, aware of pending points."""
    aware = ensemble.target_aware_of_pending()
    weights = ensemble.member_weights

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = aware.predict(X)
        return np.asarray(weights[-1] * mean + weights[:-1] @ ensemble.source_means(X)), variance

    return predict


def stacked_variance(ensemble: Ensemble) -> Predictor:
    """Return the predictor with the ensemble's mean and sum w_i s_i^2, at least 1e-10."""
    aware = replace(ensemble, target=ensemble.target_aware_of_pending())
    weights = ensemble.member_weights

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, variances = aware.posteriors(X)
        return np.asarray(weights @ means), np.asarray(np.maximum(weights @ variances, VARIANCE_FLOOR))

    return predict


def conditioned(ensemble: Ensemble, Z: FloatArray) -> Predictor:
    """Return the ensemble given its mean at ``Z (z, d)``: the variance becomes c(x,x) - c(x,Z) c(Z,Z)^-1 c(Z,x)."""
    factor = factorize(ensemble.covariance(Z, Z))

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, own = ensemble.predict(X)
        known = solve_lower(factor, ensemble.covariance(Z, X))
        return mean, np.asarray(np.maximum(own - np.einsum("zm,zm->m", known, known), 1e-10 * own))

    return predict


def factorize(C: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a posterior covariance, which may be nearly singular."""
    scale = max(float(np.max(np.diagonal(C))), np.finfo(float).tiny)
    C = C.copy()
    C.flat[:: len(C) + 1] += 1e-10 * scale
    return cholesky(C, scale)[0]
