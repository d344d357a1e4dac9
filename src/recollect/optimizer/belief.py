"""What is believed after the trials so far: the target's model, the past runs' predictions, the weights.

A belief is made anew after every successful trial and holds until the next one, so several suggestions in a row (for
parallel evaluation) share it. From the belief before come the hyperparameters the fit starts from, and the past runs'
predictions at all points but the new ones.

Past runs are combined with a model on the method's scale. When none of them has a weight left there is nothing to
combine, and the model is fitted on the scale of plain Bayesian optimization: left alone, every method is `gp`.

Where the weighting drops misleading runs at all, two more cautions apply. When past runs together order the
observations no better than a coin, those that are not clearly better by themselves are dropped, whatever their luck in
the draw. And where the acquisition function adds up what the members say in their own units, the target decides alone
with the probability that it ranks best, which is its weight: its expected improvement shrinks from trial to trial,
while a past run's promise never does, so that even a past run with a tiny weight would outvote it.

Notation: ``X (n, d)`` evaluated points, ``y (n,)`` their values, lower is better; ``F (k, n)`` the past runs' means
at X.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.optimizer.frame import Frame
from recollect.optimizer.method import Method, TargetModel
from recollect.space.space import Space
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import GP
from recollect.surrogate.posterior import Posterior
from recollect.surrogate.scaling import Scaling, compress_tail, standardize, transform
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.sources import Sources
from recollect.transfer.weights import Weights

LEAST_TELLING = 20
"""Ordered pairs of different values that it takes to doubt past runs: five observations without ties."""
TOGETHER = 1.0
"""By how many standard errors past runs together must do better than a coin, else each must prove itself."""
CHANCE = 0.05
"""With which one of the past runs that must prove themselves does so by luck, if none knows anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The models and their weights; ``scaling`` is that of the target's values ``y``.

    ``fits`` holds the latest fit on each scale, from which the next one starts. ``misled``: no past run is of use.
    """

    target: Posterior
    sources: Sources | None
    weights: Weights
    F: FloatArray
    y: FloatArray
    scaling: Scaling
    fits: Mapping[Scaling, GP]
    misled: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the model's fit."""
        jitter = self.target.jitter if isinstance(self.target, GP) else 0.0
        return (f"the kernel matrix needed a jitter of {jitter:.1e}",) if jitter > 0 else ()

    def in_units_of_y(self, mean: float, std: float) -> tuple[float, float] | None:
        """Turn what the target's model predicts into the units of y; None where ranks have no units."""
        if self.scaling == "copula":
            return None
        if self.scaling == "unscaled":
            return mean, std
        _, offset, scale = standardize(self.y) if self.scaling == "meanvar" else compress_tail(self.y)
        if self.scaling == "tail" and mean > 0.0:
            return offset + scale * math.expm1(min(mean, 600.0)), scale * math.exp(min(mean, 600.0)) * std
        return offset + scale * mean, scale * std

    def ensemble(self, pending: FloatArray) -> Ensemble:
        """Return the ensemble as the acquisition functions see it."""
        return Ensemble(self.target, self.sources, self.weights, self.target.X, self.F, pending)


def believe(
    method: Method, frame: Frame, X: FloatArray, y: FloatArray, *, before: Belief | None, rng: np.random.Generator
) -> Belief:
    """Fit the target's model and weigh the past runs."""
    if frame.learned is not None:
        start = None if before is None else before.target
        target = frame.learned.fit(X, _scaled(y, method.scaling), start=start, rng=rng)
        return Belief(target, None, Weights.uniform(0), np.empty((0, len(X))), y, method.scaling, {})
    fit_rng, weight_rng, lone_rng, caution_rng = rng.spawn(4)
    earlier = {} if before is None else before.fits

    def fit(scaling: Scaling, own_rng: np.random.Generator, *, settings: TargetModel = method.target) -> GP:
        start = earlier.get(scaling)
        return _fit(X, _scaled(y, scaling), settings=settings, space=frame.space, start=start, rng=own_rng)

    if frame.sources is None or frame.weigher is None or method.weighting is None:
        lone = fit(method.alone, fit_rng)
        fits = {method.alone: lone}
        return Belief(lone, None, Weights.uniform(0), np.empty((0, len(X))), y, method.alone, fits)
    # Where the target stood alone this model is only asked for its ranking, and goes on from its last optimum.
    alone = before is not None and len(before.weights.active) == 0
    settings = replace(method.target, warm_restarts=0) if alone else method.target
    target = fit(method.scaling, fit_rng, settings=settings)
    fits = {**earlier, method.scaling: target}
    F = _predictions(frame.sources, X, before)
    weights = frame.weigher.weigh(target, F, horizon=frame.horizon, rng=weight_rng)
    weights, misled = _with_caution(method, weights, y, rng=caution_rng)
    if len(weights.active) > 0 or method.alone == method.scaling:
        return Belief(target, frame.sources, weights, F, y, method.scaling, fits, misled)
    lone = fit(method.alone, lone_rng)
    return Belief(lone, frame.sources, weights, F, y, method.alone, {**fits, method.alone: lone}, misled)


def _with_caution(method: Method, weights: Weights, y: FloatArray, *, rng: np.random.Generator) -> tuple[Weights, bool]:
    """Drop past runs as described above; return also whether that left none."""
    if not method.cautious or method.weighting is None or not method.weighting.guarded:
        return weights, False
    wrong = unproven(weights, y)
    misled = bool(wrong.all())
    weights = weights.without(wrong)
    if method.acquisition is not None and method.acquisition.adds_up:
        weights = weights.all_dropped_with(weights.target, rng)
    return weights, misled


def unproven(weights: Weights, y: FloatArray) -> BoolArray:
    """Say which past runs (k,) have not shown that they order the observations better than a coin would.

    Asked only when all together have not shown it either. The scale is that of Kendall's rank statistic: the number of
    pairs in the right order minus those in the wrong one, over its deviation for a model that knows nothing.
    """
    from scipy.special import ndtri

    n, k = len(y), len(weights.dropped)
    times = np.unique(y, return_counts=True)[1]
    tied = int(np.sum(times * (times - 1))) // 2
    pairs = n * (n - 1) // 2 - tied
    if 2 * pairs < LEAST_TELLING:
        return np.zeros(k, dtype=np.bool_)
    variance = (n * (n - 1) * (2 * n + 5) - np.sum(times * (times - 1) * (2 * times + 5))) / 18
    # Of two equal observations every model that tells them apart misranks exactly one ordered pair.
    scores = (pairs - (weights.misranked[:-1] - tied)) / math.sqrt(variance)
    if scores.sum() > TOGETHER * math.sqrt(k):
        return np.zeros(k, dtype=np.bool_)
    return np.asarray(scores < ndtri(1.0 - CHANCE / k), dtype=np.bool_)


def _fit(
    X: FloatArray, z: FloatArray, *, settings: TargetModel, space: Space, start: GP | None, rng: np.random.Generator
) -> GP:
    """Fit a Gaussian process to scaled values z, from scratch or from an earlier fit on the same scale."""
    restarts = settings.restarts if start is None else settings.warm_restarts
    return fit_gp(
        X,
        z,
        categorical=space.categorical,
        settings=FitSettings(settings.prior, restarts, space.conditional),
        start=None if start is None else start.hyper,
        rng=rng,
    )


def _scaled(y: FloatArray, scaling: Scaling) -> FloatArray:
    """Return the values on the given scale; a single value has no rank and counts as average."""
    if scaling == "copula" and len(y) == 1:
        return np.zeros(1)
    return transform(y, scaling)


def _predictions(sources: Sources, X: FloatArray, before: Belief | None) -> FloatArray:
    """Return F (k, n): one new column for each point that is new."""
    known = 0 if before is None or before.sources is not sources else before.F.shape[1]
    if known == 0 or before is None:
        return sources.means(X)
    return np.hstack([before.F, sources.means(X[known:])])
