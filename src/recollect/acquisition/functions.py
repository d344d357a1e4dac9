"""Acquisition functions: expected improvement, plain and noisy, and mixtures (paper sections 2 and 4.2).

An acquisition function sees only an `Ensemble`. `Acquisition.prepare` computes what does not depend on the candidate
and returns a `PreparedAcquisition`: a score that maps candidates ``X (m, d)`` to values ``(m,)``, larger is better.
Scores are logarithms. They order candidates as the acquisition function does, also where the function itself underflows
to zero.

The incumbent is the lowest *predicted mean* over the visited points, not the lowest observed value: under noise the
lowest observation is a lucky one. Visited points are the evaluated ones and the pending ones, which count as if they
had returned their predicted means.

Under a source's model the values at the evaluated points are uncertain, and so is the incumbent. The ensemble is one
Gaussian process ``N(m, c)``, so only its values at the visited points ``V (v, d)`` and at the candidate matter:

    F_s ~ N(m(V), c(V, V)),   eta_s = min F_s
    m_s(x) = m(x) + c(x, V) c(V, V)^-1 (F_s - m(V)),   v(x) = c(x, x) - c(x, V) c(V, V)^-1 c(V, x)
    NEI(x) = mean over s of EI(m_s(x), v(x), eta_s)

with scrambled Sobol draws. `ClosedFormNoisyImprovement` fixes the incumbent point instead and integrates exactly over
its value and the candidate's. When no source is active, both are ordinary expected improvement.

Mixtures are weighted sums of what each model says by itself, in its own units:

    Transfer acquisition function:  a(x) = w_t EI_t(x) + sum_i w_i max(0, b_i - mu_i(x))
    Mixture of Gaussian processes:  a(x) = w_t EI_t(x) + sum_i w_i EI(mu_i(x), s'_i(x), b_i)

``b_i`` is the lowest mean of model i over the visited points. ``s'_i`` is the re-interpolated standard deviation: zero
at the visited points, because a source's model can promise nothing new there.

Notation: ``a`` sources with a nonzero weight; the target comes last, so arrays over models have length a + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import cholesky, solve_lower
from recollect.numerics.normal import log_expected_improvement, log_improvement_slopes, log_sum_exp
from recollect.numerics.quasirandom import sobol_normals
from recollect.surrogate.gp import VARIANCE_FLOOR, Posterior, SmoothPosterior
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.task_prior import TaskPriorPosterior

Score: TypeAlias = Callable[[FloatArray], FloatArray]
ScoreWithGradient: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Predictor: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
VarianceRule = Literal["weighted", "target", "stacked"]


@dataclass(frozen=True, slots=True, eq=False)
class SmoothScore:
    """A score with its gradient by the numerical columns."""

    score: Score
    evaluate: ScoreWithGradient  # from (m, d) to scores (m,) and gradients (m, d), zero by categorical columns
    scales: FloatArray  # (d,) distances over which it changes, for example the length scales of the model


@dataclass(frozen=True, slots=True, eq=False)
class PreparedAcquisition:
    """An acquisition function ready to score candidates."""

    score: Score
    # From one point (d,) to the part of its value that each model contributes (a + 1,): its term in a mixture, else its
    # weight.
    shares: Callable[[FloatArray], FloatArray]
    smooth: SmoothScore | None = None  # the same score with its gradient, where one is known


class Acquisition(Protocol):
    """A rule that turns an ensemble into a score."""

    @property
    def is_mixture(self) -> bool:
        """Whether the value is a weighted sum over the models, each in its own units."""

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:
        """Compute everything that does not depend on the candidate."""


@dataclass(frozen=True, slots=True)
class ExpectedImprovement:
    """EI of the ensemble's mean with one of three variances.

    "weighted" is the ensemble's, sum w_i^2 s_i^2. "target" is that of the target's model. "stacked" is sum w_i s_i^2,
    where weights may be negative and only the target's model knows the pending points.
    """

    variance: VarianceRule = "weighted"
    is_mixture: ClassVar[bool] = False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:  # noqa: ARG002 (interface)
        """Fix the incumbent: the lowest ensemble mean over the visited points."""
        weights = ensemble.model_weights
        eta = float(np.min(weights @ ensemble.means_visited()))
        if self.variance == "target" or ensemble.target_only:
            predict = _target_variance(ensemble)
        elif self.variance == "stacked":
            predict = _stacked_variance(ensemble)
        else:
            predict = ensemble.predict if len(ensemble.pending) == 0 else conditioned(ensemble, ensemble.pending)

        def score(X: FloatArray) -> FloatArray:
            mean, variance = predict(X)
            return log_expected_improvement(mean, np.sqrt(variance), eta)

        smooth = smooth_improvement(ensemble.target_given_pending(), eta, score) if ensemble.target_only else None
        return PreparedAcquisition(score, lambda _: weights, smooth)


def smooth_improvement(model: Posterior, eta: float, score: Score) -> SmoothScore | None:
    """Return the score, which is log-EI under one model, with its gradient; None if the model knows no gradients."""
    if not isinstance(model, SmoothPosterior):
        return None

    def evaluate(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance, mean_gradient, variance_gradient = model.predict_with_gradient(X)
        std = np.sqrt(variance)
        by_mean, by_std = log_improvement_slopes(mean, std, eta)
        gradient = by_mean[:, None] * mean_gradient + (0.5 * by_std / std)[:, None] * variance_gradient
        return log_expected_improvement(mean, std, eta), gradient

    return SmoothScore(score, evaluate, model.lengthscales)


@dataclass(frozen=True, slots=True)
class NoisyImprovement:
    """EI averaged over ``draws`` of the values at the visited points."""

    draws: int = 30
    is_mixture: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the number of draws."""
        if self.draws < 1:
            raise InputError(f"noisy expected improvement needs at least 1 draw, got {self.draws}")

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:
        """Draw the values at the visited points."""
        if ensemble.target_only:
            return ExpectedImprovement().prepare(ensemble, rng)
        weights, V = ensemble.model_weights, ensemble.visited
        factor = _factorize(ensemble.covariance(V, V))
        whitened = sobol_normals(self.draws, len(V), rng)
        etas = (weights @ ensemble.means_visited() + whitened @ factor.T).min(axis=1)

        def score(X: FloatArray) -> FloatArray:
            mean, variance, root = _given(ensemble, V, factor, X)
            terms = log_expected_improvement(mean + whitened @ root, np.sqrt(variance), etas[:, None])
            return log_sum_exp(terms - math.log(self.draws))

        return PreparedAcquisition(score, lambda _: weights)


@dataclass(frozen=True, slots=True)
class ClosedFormNoisyImprovement:
    """EI over the uncertain value at one fixed point: the visited one with the lowest ensemble mean."""

    is_mixture: ClassVar[bool] = False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:
        """Choose the incumbent point."""
        if ensemble.target_only:
            return ExpectedImprovement().prepare(ensemble, rng)
        weights, P = ensemble.model_weights, ensemble.pending
        at_visited = weights @ ensemble.means_visited()
        eta = float(at_visited.min())
        best = ensemble.visited[[int(at_visited.argmin())]]
        factor = _factorize(ensemble.covariance(P, P)) if len(P) else np.empty((0, 0))
        best_root = solve_lower(factor, ensemble.covariance(P, best))
        best_variance = ensemble.covariance(best, best)[0, 0] - float(np.sum(best_root**2))

        def score(X: FloatArray) -> FloatArray:
            root = solve_lower(factor, ensemble.covariance(P, X))
            mean, prior = ensemble.predict(X)
            own = prior - np.einsum("pm,pm->m", root, root)
            between = ensemble.covariance(best, X)[0] - best_root[:, 0] @ root
            variance = np.maximum(best_variance + own - 2.0 * between, 0.0)
            return log_expected_improvement(mean, np.sqrt(variance), eta)

        return PreparedAcquisition(score, lambda _: weights)


def _target_variance(ensemble: Ensemble) -> Predictor:
    """Return the predictor with the ensemble's mean and the variance of the target's model given the pending points."""
    target = ensemble.target_given_pending()
    weights = ensemble.model_weights

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = target.predict(X)
        return np.asarray(weights[-1] * mean + weights[:-1] @ ensemble.source_means(X)), variance

    return predict


def _stacked_variance(ensemble: Ensemble) -> Predictor:
    """Return the predictor with the ensemble's mean and sum w_i s_i^2, at least 1e-10."""
    ensemble = replace(ensemble, target=ensemble.target_given_pending())
    weights = ensemble.model_weights

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, variances = ensemble.posteriors(X)
        return np.asarray(weights @ means), np.asarray(np.maximum(weights @ variances, VARIANCE_FLOOR))

    return predict


def conditioned(ensemble: Ensemble, Z: FloatArray) -> Predictor:
    """Return the ensemble given its mean at ``Z (z, d)``."""
    factor = _factorize(ensemble.covariance(Z, Z))
    return lambda X: _given(ensemble, Z, factor, X)[:2]


def _given(
    ensemble: Ensemble, Z: FloatArray, factor: FloatArray, X: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return m(X), the variances c(x,x) - c(x,Z) c(Z,Z)^-1 c(Z,x), and L^-1 c(Z,X) for the factor L of c(Z,Z)."""
    mean, prior = ensemble.predict(X)
    root = solve_lower(factor, ensemble.covariance(Z, X))
    return mean, np.asarray(np.maximum(prior - np.einsum("zm,zm->m", root, root), 1e-10 * prior)), root


def _factorize(C: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a posterior covariance, which may be nearly singular."""
    scale = max(float(np.max(np.diagonal(C))), np.finfo(float).tiny)
    C = C.copy()
    C.flat[:: len(C) + 1] += 1e-10 * scale
    return cholesky(C, scale)[0]


@dataclass(frozen=True, slots=True)
class TransferImprovement:
    """TAF: expected improvement of the target, predicted improvement of the sources."""

    is_mixture: ClassVar[bool] = True

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:  # noqa: ARG002 (interface)
        """Fix the incumbent of every model."""
        lowest = ensemble.means_visited()[:-1].min(axis=1)

        def source_terms(X: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(lowest[:, None] - ensemble.source_means(X), 0.0)))

        return weighted_sum(ensemble, source_terms)


@dataclass(frozen=True, slots=True)
class MixtureImprovement:
    """MoGP: expected improvement of every model, with re-interpolated posteriors for the sources."""

    is_mixture: ClassVar[bool] = True

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:  # noqa: ARG002 (interface)
        """Fix the incumbent of every model and factorize the re-interpolated posteriors."""
        if ensemble.sources is None or ensemble.target_only:
            return weighted_sum(ensemble, lambda X: np.empty((0, len(X))))
        lowest = ensemble.means_visited()[:-1].min(axis=1)
        variances = ensemble.sources.reinterpolated(ensemble.visited, ensemble.active_sources)

        def source_terms(X: FloatArray) -> FloatArray:
            return log_expected_improvement(ensemble.source_means(X), np.sqrt(variances(X)), lowest[:, None])

        return weighted_sum(ensemble, source_terms)


@dataclass(frozen=True, slots=True)
class AveragedImprovement:
    """EI averaged over the processes of a mixture, each with its own incumbent; of a single process, plain EI."""

    is_mixture: ClassVar[bool] = False

    def prepare(self, ensemble: Ensemble, rng: np.random.Generator) -> PreparedAcquisition:
        """Fix the incumbent of every process."""
        target = ensemble.target
        if not isinstance(target, TaskPriorPosterior):
            return ExpectedImprovement().prepare(ensemble, rng)
        lowest = target.incumbents(ensemble.visited)
        given = target.reinterpolated(ensemble.pending)

        def score(X: FloatArray) -> FloatArray:
            weights, means, variances = given.components(X)
            terms = log_expected_improvement(means, np.sqrt(variances), lowest[:, None])
            return log_sum_exp(terms + np.log(weights)[:, None])

        return PreparedAcquisition(score, lambda _: ensemble.model_weights)


def weighted_sum(ensemble: Ensemble, source_terms: Score) -> PreparedAcquisition:
    """Add the target's expected improvement to ``source_terms (m, d) -> (a, m)``, all logarithms, by their weights."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(ensemble.model_weights)[:, None]
    eta = float(ensemble.target.mean(ensemble.visited).min())
    target = ensemble.target_given_pending()

    def terms(X: FloatArray) -> FloatArray:
        sources = source_terms(X)
        if ensemble.weights.target == 0:
            return np.vstack([sources, np.full(len(X), -np.inf)]) + log_weights
        mean, variance = target.predict(X)
        return np.vstack([sources, log_expected_improvement(mean, np.sqrt(variance), eta)]) + log_weights

    def shares(x: FloatArray) -> FloatArray:
        parts = terms(x[None, :])[:, 0]
        top = np.max(parts)
        if not np.isfinite(top):
            return ensemble.model_weights
        relative = np.exp(parts - top)
        return np.asarray(relative / relative.sum())

    return PreparedAcquisition(lambda X: log_sum_exp(terms(X)), shares)
