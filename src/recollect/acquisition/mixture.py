"""Acquisitions that are sums over the members: each judges by its own model (paper section 4.2).

Transfer acquisition function:  a(x) = w_t EI_t(x) + sum_i w_i max(0, b_i - mu_i(x))
Mixture of Gaussian processes:  a(x) = w_t EI_t(x) + sum_i w_i EI(mu_i(x), s'_i(x), b_i)

``b_i`` is the lowest mean of member i over the visited points: evaluated ones, and pending ones, which count as if they
had returned what the member predicts. ``s'_i`` is the re-interpolated deviation: zero at the visited points,
because there a past run's model can promise nothing new. All quantities are in each model's own output units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.acquisition.improvement import Prepared, Score
from recollect.numerics.arrays import FloatArray
from recollect.numerics.logs import log_sum_exp
from recollect.numerics.normal import log_expected_improvement
from recollect.transfer.ensemble import Ensemble


@dataclass(frozen=True, slots=True)
class TransferImprovement:
    """TAF: expected improvement of the target, predicted improvement of the past runs."""

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members, each in its own units."""
        return True

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:  # noqa: ARG002 (interface)
        """Fix the incumbents of all members."""
        lowest = ensemble.means_visited()[:-1].min(axis=1)

        def source_terms(X: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(lowest[:, None] - ensemble.source_means(X), 0.0)))

        return weighted_sum(ensemble, source_terms)


@dataclass(frozen=True, slots=True)
class MixtureImprovement:
    """MoGP: expected improvement of every member, by re-interpolated posteriors for the past runs."""

    @property
    def adds_up(self) -> bool:
        """Whether the value is a sum over members, each in its own units."""
        return True

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> Prepared:  # noqa: ARG002 (interface)
        """Fix the incumbents of all members and factorize their re-interpolated posteriors."""
        if ensemble.sources is None or ensemble.alone:
            return weighted_sum(ensemble, lambda X: np.empty((0, len(X))))
        lowest = ensemble.means_visited()[:-1].min(axis=1)
        variances = ensemble.sources.reinterpolated(ensemble.visited, ensemble.members)

        def source_terms(X: FloatArray) -> FloatArray:
            return log_expected_improvement(ensemble.source_means(X), np.sqrt(variances(X)), lowest[:, None])

        return weighted_sum(ensemble, source_terms)


def weighted_sum(ensemble: Ensemble, source_terms: Score) -> Prepared:
    """Add the target's expected improvement to ``source_terms (m, d) -> (a, m)``, all logarithms, by their weights."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(ensemble.member_weights)[:, None]
    eta = float(ensemble.target.mean(ensemble.visited).min())
    aware = ensemble.target_aware_of_pending()

    def terms(X: FloatArray) -> FloatArray:
        sources = source_terms(X)
        if ensemble.weights.target == 0:
            return np.vstack([sources, np.full(len(X), -np.inf)]) + log_weights
        mean, variance = aware.predict(X)
        return np.vstack([sources, log_expected_improvement(mean, np.sqrt(variance), eta)]) + log_weights

    def score(X: FloatArray) -> FloatArray:
        return log_sum_exp(terms(X))

    def shares(x: FloatArray) -> FloatArray:
        parts = terms(x[None, :])[:, 0]
        top = np.max(parts)
        if not np.isfinite(top):
            return ensemble.member_weights
        relative = np.exp(parts - top)
        return np.asarray(relative / relative.sum())

    return Prepared(score, shares)

