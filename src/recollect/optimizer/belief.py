"""What is believed after the trials so far: the target's model, the past runs' predictions, the weights.

A belief is made anew after every successful trial and holds until the next one, so several suggestions in a row (for
parallel evaluation) share it. From the belief before come the hyperparameters the fit starts from, and the past runs'
predictions at all points but the new ones.

Notation: ``X (n, d)`` evaluated points, ``y (n,)`` their values, lower is better; ``F (k, n)`` the past runs' means
at X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray
from recollect.optimizer.method import Method
from recollect.space.space import Space
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import GP
from recollect.surrogate.scaling import Scaling, compress_tail, standardize, transform
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.sources import Sources
from recollect.transfer.weights import Weights

LEAST_TELLING = 20
"""Ordered pairs of different values that it takes to call past runs misleading: five observations without ties."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The models and their weights; ``scaling`` is that of the target's values ``y``."""

    target: GP
    sources: Sources | None
    weights: Weights
    F: FloatArray
    y: FloatArray
    scaling: Scaling
    notes: tuple[str, ...]

    @property
    def misled(self) -> bool:
        """Whether most past runs order the observations worse than a coin would.

        Of two equal observations every model that tells them apart misranks exactly one ordered pair; such pairs say
        nothing and are left out.
        """
        if self.sources is None or np.isnan(self.weights.misranked[:-1]).any():
            return False
        n = len(self.y)
        tied = int(np.sum(np.triu(self.y[:, None] == self.y, 1)))
        telling = n * (n - 1) - 2 * tied
        wrong = self.weights.misranked[:-1] - tied
        return telling >= LEAST_TELLING and bool(np.median(wrong) > 0.5 * telling)

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


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What stays the same during a run: the space, the past runs' models, the number of trials planned."""

    space: Space
    sources: Sources | None
    horizon: int


def believe(
    method: Method, frame: Frame, X: FloatArray, y: FloatArray, *, before: Belief | None, rng: np.random.Generator
) -> Belief:
    """Fit the target's model and weigh the past runs."""
    space, sources = frame.space, frame.sources
    scaling = method.alone if sources is None else method.scaling
    fit_rng, weight_rng = rng.spawn(2)
    model = method.target
    restarts = model.restarts if before is None else model.warm_restarts
    target = fit_gp(
        X,
        _scaled(y, scaling),
        categorical=space.categorical,
        settings=FitSettings(model.prior, restarts, space.conditional),
        start=None if before is None else before.target.hyper,
        rng=fit_rng,
    )
    if sources is None or method.weighting is None:
        sources, F, weights = None, np.empty((0, len(X))), Weights.uniform(0)
    else:
        F = _predictions(sources, X, before)
        weights = method.weighting.weigh(target, sources, F, horizon=frame.horizon, rng=weight_rng)
    notes = (f"the kernel matrix needed a jitter of {target.jitter:.1e}",) if target.jitter > 0 else ()
    return Belief(target, sources, weights, F, y, scaling, notes)


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
