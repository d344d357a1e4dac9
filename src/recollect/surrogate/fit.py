"""Maximum a posteriori fit of a Gaussian process (spec 1.3).

``fit_gp`` searches the logarithms of the hyperparameters by quasi-Newton steps, from one given starting point and from
``restarts`` random ones together, and keeps the best.  Columns that never vary do not matter; their length scales stay
at the given starting point's (1 by default).

A start is followed to convergence unless every hyperparameter comes within a factor of two of those of a better one:
that saves a quarter of the evaluations and was not seen to lose an optimum.  Giving up starts because they seem too far
behind, or following all loosely and polishing the best, loses one now and then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.lockstep import Rules, minimize_lockstep
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import GP, checked_data, make_gp
from recollect.surrogate.kernels import Hyperparameters, KernelShape, inactive
from recollect.surrogate.objective import NegativeLogPosterior
from recollect.surrogate.pairs import Scratch
from recollect.surrogate.prior import PAPER_PRIOR, Prior
from recollect.surrogate.scaling import standardize


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How to fit: prior, random starts besides the given one, and whether rows of different activity are unrelated.

    ``conditional=None`` means: if the data have inactive entries.
    """

    prior: Prior = PAPER_PRIOR
    restarts: int = 10
    conditional: bool | None = None

    def __post_init__(self) -> None:
        """Check the number of restarts."""
        if self.restarts < 0:
            raise InputError(f"FitSettings: expected restarts >= 0, got {self.restarts}")


PAPER_SETTINGS = FitSettings()
RULES = Rules(near=math.log(2.0))


def fit_gp(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    categorical: npt.ArrayLike | None = None,
    settings: FitSettings = PAPER_SETTINGS,
    start: Hyperparameters | None = None,
    rng: np.random.Generator,
) -> GP:
    """Gaussian process on ``X (n, d)``, nan = inactive, and ``y (n,)``, at the most probable hyperparameters found.

    ``categorical (d,)`` marks the columns compared by equality; ``start`` is the first starting point, for instance the
    hyperparameters of the previous fit.
    """
    X, y = checked_data(X, y)
    shape = _kernel_shape(X, categorical, settings.conditional)
    first = start or Hyperparameters.default(shape.d)
    if first.lengthscales.size != shape.d:
        raise InputError(f"fit_gp: expected a start with {shape.d} length scales, got {first.lengthscales.size}")
    with single_threaded():
        (theta,) = most_probable([Search(X, standardize(y)[0], shape, first.log(), rng)], settings)
        log_prior = float(settings.prior.log_density(theta[:1], theta[-1:])[0][0])
        log_prior += float(settings.prior.lengthscale_log_density(theta[None, 1:-1])[0][0])
        hyper = settings.prior.clip(Hyperparameters.from_log(theta))
        return make_gp(X, y, shape=shape, hyper=hyper, log_prior=log_prior)


def _kernel_shape(X: FloatArray, categorical: npt.ArrayLike | None, conditional: bool | None) -> KernelShape:
    d = X.shape[1]
    mask = np.zeros(d, dtype=np.bool_) if categorical is None else np.asarray(categorical, dtype=np.bool_)
    if mask.shape != (d,):
        raise InputError(f"fit_gp: expected categorical to be a mask of shape ({d},), got {mask.shape}")
    return KernelShape(mask, bool(inactive(X).any()) if conditional is None else conditional)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Data ``X (n, d)``, ``z (n,)`` standardised, whose hyperparameters are sought, and where to begin.

    ``first (d + 2,)`` are the logarithms of the first starting point; the random ones come from ``rng``.
    """

    X: FloatArray
    z: FloatArray
    shape: KernelShape
    first: FloatArray
    rng: np.random.Generator


def most_probable(searches: Sequence[Search], settings: FitSettings) -> list[FloatArray]:
    """Logarithms of the hyperparameters ``(d + 2,)`` that maximise each posterior; none depends on the others."""
    scratch, prior = Scratch(), settings.prior
    objectives, moving, starts = [], [], []
    bounds = prior.log_bounds(searches[0].shape.d)
    for search in searches:
        objective = NegativeLogPosterior(search.X, search.z, shape=search.shape, prior=prior, scratch=scratch)
        free = np.concatenate(([True], objective.free, [True]))
        begin = np.tile(np.clip(search.first, bounds[:, 0], bounds[:, 1]), (settings.restarts + 1, 1))
        begin[1:, free] = prior.draw_starts(settings.restarts, int(objective.free.sum()), rng=search.rng)
        objectives.append(objective)
        moving.append(free)
        starts.append(begin)

    def posterior(theta: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = np.empty(len(theta)), np.zeros(theta.shape)
        edges = np.searchsorted(group, np.arange(len(searches) + 1))
        for number in np.unique(group):
            rows = slice(edges[number], edges[number + 1])
            values[rows], slopes[rows, moving[number]] = objectives[number](theta[rows, moving[number]])
        return values, slopes

    group = np.repeat(np.arange(len(searches)), settings.restarts + 1)
    ends, values = minimize_lockstep(posterior, np.vstack(starts), bounds, group=group, rules=RULES)
    best = values.reshape(len(searches), -1).argmin(axis=1) + np.arange(len(searches)) * (settings.restarts + 1)
    return list(ends[best])
