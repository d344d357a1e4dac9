"""Weights by rankings of the target's observations: RGPE (paper sections 4.1, 4.3) and TST-R (section 3.1).

The weights of RGPE are the probability that each model ranks the observations best. `rgpe_weights` estimates it by the
bootstrap. `percentile_weights` is the scheme of the 2018 preprint, which uses posterior draws instead of resamples and
drops by percentiles instead of at random.

In TST-R, two-stage transfer from rankings, the distance of a base model to the target is the share of pairs it
misranks; an Epanechnikov kernel of bandwidth rho turns it into a weight. The target has distance 0 to itself, so
nothing is measured for it.

Notation: k base models, n observations ``y``, S resamples or draws, target last. ``d (k,)`` misranked share of the
pairs a < b, ``v (k+1,)`` weights before normalization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.numerics.linalg import cholesky, single_threaded
from recollect.numerics.quasirandom import sobol_normals
from recollect.surrogate.gp import GP, make_gp
from recollect.transfer.sources import Sources
from recollect.transfer.weighting import ranking
from recollect.transfer.weighting.base import (
    Dilution,
    StatelessWeighting,
    Weigher,
    Weights,
    check_dilution,
    check_predictions,
    draw_dropped,
    keep_probability,
)
from recollect.validation import as_count, as_finite, as_generator, as_positive, as_shape

MIN_OBSERVATIONS = 3  # a leave-one-out model needs two observations of its own


def rgpe_weights(
    base: ArrayLike,
    loo: ArrayLike,
    y: ArrayLike,
    *,
    samples: int = 1000,
    horizon: int = 50,
    dilution: Dilution = "probabilistic",
    rng: np.random.Generator,
) -> Weights:
    """Weigh base models and target by how often each ranks a bootstrap resample of the observations best.

    Args:
        base: Predictions (k, n) of the base models at the target's inputs; any units, only their order counts.
        loo: Leave-one-out predictions (n,) of the target model, in the units of y; ignored if n < 3.
        y: Observations (n,) of the target, lower is better.
        samples: Number of resamples.
        horizon: Evaluations planned in all; base models fade out until then.
        dilution: "probabilistic" (paper), "constant" (without fading), or "none" (drop nothing).
        rng: Source of the resamples and of the draws that drop base models.

    Returns:
        The weights. Fewer than three observations give uniform weights. A dropped model gets exactly 0; if all base
        models are dropped, the target gets exactly 1.

    Raises:
        InputError: If shapes do not match, values are not finite, or a number is out of range.
        InputTypeError: If an argument has the wrong type.

    Examples:
        >>> weights = rgpe_weights(base, loo, y, rng=np.random.default_rng(0))
        >>> weights.values, weights.dropped
    """
    base, loo, y = check_predictions(base, loo, y, minimum=MIN_OBSERVATIONS)
    samples = as_count("samples", samples, minimum=1)
    horizon = as_count("horizon", horizon, minimum=1)
    check_dilution(dilution)
    rng = as_generator("rng", rng)
    if y.size < MIN_OBSERVATIONS:
        return Weights.uniform(len(base))
    with single_threaded():
        losses = ranking.ResampledLosses.over(base, loo, y, ranking.bootstrap_counts(y.size, samples, rng=rng))
        fraction, mean = losses.compare()
        keep = keep_probability(fraction, y.size, horizon=horizon, kind=dilution)
        dropped = draw_dropped(keep, rng)
        return Weights(losses.shares(dropped), mean, ranking.misranked_counts(base, loo, y), dropped, keep)


def percentile_weights(base_draws: ArrayLike, fold_draws: ArrayLike, y: ArrayLike) -> Weights:
    """Weigh by posterior draws; drop base models whose median loss reaches the target's 95th percentile.

    ``base_draws (k, S, n)`` are joint posterior draws of the base models at the target's inputs, ``fold_draws
    (n, S, n)`` those of the target model without observation 1, 2, ... n, ignored if n < 3: then weights are uniform.
    ``misranked`` of the result is that of the draws' means.
    """
    y = as_finite("y", y, shape=(None,))
    base_draws = as_finite("base_draws", base_draws, shape=(None, None, y.size))
    fold_draws = as_shape("fold_draws", fold_draws, shape=(y.size, base_draws.shape[1], y.size))
    as_count("number of draws", base_draws.shape[1], minimum=1)
    if y.size < MIN_OBSERVATIONS:
        return Weights.uniform(len(base_draws))
    fold_draws = as_finite("fold_draws", fold_draws, shape=fold_draws.shape)
    losses = np.vstack([ranking.draw_losses(base_draws, y), ranking.fold_losses(fold_draws, y)])
    dropped: BoolArray = np.median(losses[:-1], axis=1) >= np.percentile(losses[-1], 95)
    kept = np.append(~dropped, True)
    left_out = fold_draws[np.arange(y.size), :, np.arange(y.size)].mean(axis=1)
    misranked = ranking.misranked_counts(base_draws.mean(axis=1), left_out, y)
    return Weights(ranking.argmin_shares([losses[kept]], kept), losses.mean(axis=1), misranked, dropped, kept[:-1])


def tst_weights(
    base: ArrayLike,
    y: ArrayLike,
    *,
    rho: float,
    horizon: int | None = None,
    dilution: Dilution = "none",
    rng: np.random.Generator | None = None,
) -> Weights:
    """Weigh base models by the share of observation pairs that they misrank.

    Args:
        base: Predictions (k, n) of the base models at the target's inputs; only their order counts.
        y: Observations (n,) of the target, lower is better.
        rho: Bandwidth: a base model that misranks this share of the pairs, or more, is dropped.
        horizon: Evaluations planned in all; needed by the dilution "probabilistic".
        dilution: "none" (original), "probabilistic" or "constant". The latter two keep a base model with the
            probability (1 - n/H)(1 - d) and 1 - d, respectively, and need ``rng``.
        rng: Source of the draws that drop base models.

    Returns:
        The weights; their ``losses`` are the shares d. Fewer than two observations give uniform weights.

    Raises:
        InputError: If shapes do not match, values are not finite, or an argument is missing or out of range.
        InputTypeError: If an argument has the wrong type.
    """
    y = as_finite("y", y, shape=(None,))
    base = as_finite("base", base, shape=(None, y.size))
    horizon = None if horizon is None else as_count("horizon", horizon, minimum=1)
    rho = as_positive("rho", rho)
    check_dilution(dilution, has_horizon=horizon is not None)
    if dilution != "none" and rng is None:
        raise InputError(f"rng must be given for the dilution {dilution!r}, got None")
    if rng is not None:
        as_generator("rng", rng)
    if y.size < 2:
        return Weights.uniform(len(base))
    distance = ranking.misranked_fraction(base, y)
    keep = keep_probability(1.0 - distance, y.size, horizon=horizon, kind=dilution)
    q = np.minimum(distance, rho) / rho  # the kernel is zero from 1 on
    dropped: BoolArray = q >= 1.0
    if rng is not None:
        dropped |= draw_dropped(keep, rng)
    v: FloatArray = np.append(np.where(dropped, 0.0, 0.75 * (1.0 - q**2)), 0.75)
    misranked = ranking.misranked_counts(base, None, y)
    return Weights(v / v.sum(), np.append(distance, np.nan), np.append(misranked, np.nan), dropped, keep)


@dataclass(frozen=True, slots=True)
class RankingWeighting(StatelessWeighting):
    """RGPE: the probability of ranking a bootstrap resample of the observations best."""

    samples: int = 1000
    dilution: Dilution = "probabilistic"

    def __post_init__(self) -> None:
        """Check the settings."""
        as_count("samples", self.samples, minimum=1)
        check_dilution(self.dilution)

    @property
    def allows_guard(self) -> bool:
        """Whether the negative-transfer guard may act: only where the weighting drops sources itself."""
        return self.dilution != "none"

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Weigh by bootstrap ranking losses."""
        loo, _ = target.loo()
        return rgpe_weights(F, loo, target.y, samples=self.samples, horizon=horizon, dilution=self.dilution, rng=rng)


@dataclass(frozen=True, slots=True)
class PercentileWeighting:
    """RGPE of 2018: posterior draws instead of resamples, dropping by the target's 95th percentile."""

    samples: int = 1000

    def __post_init__(self) -> None:
        """Check the settings."""
        as_count("samples", self.samples, minimum=1)

    allows_guard: ClassVar[bool] = False  # the percentile rule is the whole method

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:  # noqa: ARG002 (interface)
        """Keep the past runs, to draw from their joint posteriors."""
        return _PercentileWeigher(self.samples, sources)


@dataclass(frozen=True, slots=True, eq=False)
class _PercentileWeigher:
    samples: int
    sources: Sources

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Weigh by losses of joint posterior draws."""
        n = target.n
        if n < MIN_OBSERVATIONS:
            return Weights.uniform(len(F))
        spreads = self.sources.covariances(target.X, target.X, np.arange(len(F)))
        points = sobol_normals(self.samples, n, rng)
        base = np.stack([_draws(mean, C, rng.permutation(points)) for mean, C in zip(F, spreads, strict=True)])
        folds = np.stack([_draws(*_fold(target, k), rng.permutation(points)) for k in range(n)])
        return percentile_weights(base, folds, target.y)


def _fold(target: GP, left_out: int) -> tuple[FloatArray, FloatArray]:
    """Return the joint posterior at all of X of the target model without one observation."""
    kept = np.arange(target.n) != left_out
    return make_gp(target.X[kept], target.y[kept], shape=target.shape, hyper=target.hyper).joint(target.X)


def _draws(mean: FloatArray, C: FloatArray, points: FloatArray) -> FloatArray:
    """Return draws (S, n) of N(mean, C) for scrambled Sobol ``points (S, n)``: mean + U L^T, not U L.

    All models use the same points, each in its own random order, because draw s of one model is compared with draw s of
    another: in the same order the models' draws would be correlated instead of independent.
    """
    scale = max(float(np.max(np.diagonal(C))), np.finfo(float).tiny)
    L, _ = cholesky(C + 1e-8 * scale * np.eye(len(C)), scale)
    return np.asarray(mean + points @ L.T)


@dataclass(frozen=True, slots=True)
class TwoStageWeighting(StatelessWeighting):
    """TST-R: an Epanechnikov kernel of bandwidth ``rho`` over the share of misranked pairs."""

    rho: float = 0.5
    dilution: Dilution = "none"

    def __post_init__(self) -> None:
        """Check the settings."""
        as_positive("rho", self.rho)
        check_dilution(self.dilution)

    @property
    def allows_guard(self) -> bool:
        """Whether the negative-transfer guard may act: only where the weighting drops sources itself."""
        return self.dilution != "none"

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Weigh by misranked pairs."""
        return tst_weights(F, target.y, rho=self.rho, horizon=horizon, dilution=self.dilution, rng=rng)
