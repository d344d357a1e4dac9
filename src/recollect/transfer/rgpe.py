"""Ranking weights: the probability of each model to rank the target's observations best (paper sections 4.1, 4.3).

``rgpe_weights`` estimates it by the bootstrap; ``percentile_weights`` is the scheme of the 2018 preprint, which takes
posterior draws instead of resamples and drops by percentiles instead of by chance.

Notation: k base models, n observations ``y``, S resamples or draws, target last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.numerics.threads import single_threaded
from recollect.transfer import ranking
from recollect.transfer.dilution import Dilution, check_dilution, draw_dropped, keep_probability
from recollect.transfer.weights import Weights, as_count, as_finite, as_generator, as_shape

LEAST_OBSERVATIONS = 3  # a leave-one-out model needs two observations of its own


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

    base     (k, n)  predictions of the base models at the target's inputs; any units, only their order counts
    loo      (n,)    leave-one-out predictions of the target model, in the units of y; not looked at when n < 3
    y        (n,)    observations of the target, lower is better
    samples  number of resamples
    horizon  evaluations planned in all; base models fade out until then
    dilution "probabilistic" (paper), "constant" (without the fading), "none" (drop nothing)

    Fewer than three observations give uniform weights. A dropped model gets exactly 0; when all base models are dropped
    the target gets exactly 1.
    """
    base, loo, y = _checked(base, loo, y)
    samples = as_count("samples", samples, least=1)
    horizon = as_count("horizon", horizon, least=1)
    check_dilution(dilution)
    rng = as_generator("rng", rng)
    if y.size < LEAST_OBSERVATIONS:
        return Weights.uniform(len(base))
    with single_threaded():
        losses = ranking.ResampledLosses.over(base, loo, y, ranking.bootstrap_counts(y.size, samples, rng=rng))
        fraction, mean = losses.compare()
        keep = keep_probability(fraction, y.size, horizon=horizon, kind=dilution)
        dropped = draw_dropped(keep, rng)
        return Weights(losses.shares(dropped), mean, ranking.misranked_counts(base, loo, y), dropped, keep)


def percentile_weights(base_draws: ArrayLike, fold_draws: ArrayLike, y: ArrayLike) -> Weights:
    """Weigh by posterior draws, dropping base models whose median loss reaches the target's 95th percentile.

    base_draws  (k, S, n)  joint posterior draws of the base models at the target's inputs
    fold_draws  (n, S, n)  joint draws at the same inputs of the target model without observation 1, 2, ... n;
                           not looked at when n < 3
    y           (n,)       observations of the target, lower is better

    ``misranked`` of the answer is that of the draws' means. Fewer than three observations give uniform weights.
    """
    y = as_finite("y", y, shape=(None,))
    base_draws = as_finite("base_draws", base_draws, shape=(None, None, y.size))
    fold_draws = as_shape("fold_draws", fold_draws, shape=(y.size, base_draws.shape[1], y.size))
    as_count("number of draws", base_draws.shape[1], least=1)
    if y.size < LEAST_OBSERVATIONS:
        return Weights.uniform(len(base_draws))
    fold_draws = as_finite("fold_draws", fold_draws, shape=fold_draws.shape)
    losses = np.vstack([ranking.draw_losses(base_draws, y), ranking.fold_losses(fold_draws, y)])
    dropped: BoolArray = np.median(losses[:-1], axis=1) >= np.percentile(losses[-1], 95)
    kept = np.append(~dropped, True)
    left_out = fold_draws[np.arange(y.size), :, np.arange(y.size)].mean(axis=1)
    misranked = ranking.misranked_counts(base_draws.mean(axis=1), left_out, y)
    return Weights(ranking.argmin_shares([losses[kept]], kept), losses.mean(axis=1), misranked, dropped, kept[:-1])


def _checked(base: ArrayLike, loo: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check predictions and observations; of a constant y the leave-one-out predictions are known exactly."""
    y = as_finite("y", y, shape=(None,))
    base = as_finite("base", base, shape=(None, y.size))
    loo = as_shape("loo", loo, shape=(y.size,))
    if y.size < LEAST_OBSERVATIONS:
        return base, loo, y
    loo = as_finite("loo", loo, shape=(y.size,))
    # A rounding error below a constant y would count as n^2 misranked pairs.
    return base, y if y.min() == y.max() else loo, y
